/* replay.c -- see replay.h: from files to steps. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../operand/target.h"
#include "../process/world.h"
#include "../text/words.h"

#include <train/step.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

/* The next numbers of the selected tensor as binary32, which they are. */
static int read_narrow(trace *t, float *y, size_t n, size_t *got, trace_error *error)
{
    enum { BLOCK = 4096 };
    double x[BLOCK];
    if (trace_read(t, x, n < BLOCK ? n : BLOCK, got, error))
        return -1;
    for (size_t i = 0; i < *got; i++)
        y[i] = (float)x[i];
    return 0;
}

static int is_binary32(const mpsim_format *f)
{
    return mpsim_format_same(f, mpsim_format_find("binary32"));
}

static int read_more(trace *t, const trace_tensor *tensor, record_values *v, size_t at, size_t *got, trace_error *error)
{
    const size_t n = (size_t)tensor->count - at;
    if (v->wide)
        return trace_read(t, v->wide + at, n, got, error);
    if (is_binary32(tensor->format))
        return trace_read_codes(t, v->narrow + at, n, got, error);
    return read_narrow(t, v->narrow + at, n, got, error);
}

/* All elements, or none of a tensor that another process has. */
static int read_values(trace *t, size_t i, int mine, record_values *v, trace_error *error)
{
    const trace_tensor *tensor = trace_at(t, i);
    const size_t n = mine ? (size_t)tensor->count : 0;
    size_t at = 0, got = 0;
    *v = (record_values){NULL, NULL};
    if (tensor->count < SIZE_MAX / sizeof(double)) {
        if (format_is_narrow(tensor->format))
            v->narrow = array_memory(n, sizeof *v->narrow);
        else
            v->wide = array_memory(n, sizeof *v->wide);
    }
    if (!replay_values_there(v))
        return trace_no_memory(t, error);
    int bad = mine && trace_select(t, i, error);
    if (!bad && mine)
        do {
            bad = read_more(t, tensor, v, at, &got, error);
            at += bad ? 0 : got;
        } while (!bad && got > 0 && at < n);
    if (bad)
        replay_values_free(v);
    return bad;
}

static size_t columns(const trace_tensor *t)
{
    return t->rank ? (size_t)t->shape[t->rank - 1] : 1;
}

/* Of a model with parameters in several formats, each is in its own: so are its gradients, as torch insists. */
static void place_as_recorded(replay *r, parameter *p)
{
    train_placement *to = &p->place;
    if (!r->mixed || r->plan->params_given || r->plan->master != TRAIN_NO_MASTER || !p->weight_format ||
        p->weight_format->mbits >= 23)
        return;
    replay_say(
        r, NOTE_FORMATS,
        "each parameter is in the format that the record has it in, %s beside binary32: params in the policy gives all of them one",
        p->weight_format->name);
    to->storage = to->kept = to->format[TRAIN_WGRAD] = *p->weight_format;
    if (!r->plan->optimizer.state_given)
        to->state = to->kept;
}

static void place_parameter(replay *r, parameter *p)
{
    p->kind = policy_layer(r->plan, p->layer, p->weight_rank);
    policy_plan_place(r->plan, p->kind, p->layer, &p->place);
    policy_plan_keep_ends(r->plan, &r->depth, p->layer, &p->place);
    place_as_recorded(r, p);
    p->place.state = *mpsim_placement_state(&p->place, p->count);
}

static parameter *find_parameter(replay *r, const char *name, const trace_tensor *tensor)
{
    const size_t known = r->n_parameters;
    parameter *p = nameindex_item(&r->parameter_names, &r->parameters, &r->n_parameters, sizeof *p, name);
    if (r->n_parameters == known)
        return p;
    const char *dot = strrchr(name, '.');
    p->layer = need_part(name, dot ? (size_t)(dot - name) : strlen(name));
    p->count = tensor->count;
    p->mine = replay_tensor_is_mine(r, tensor);
    p->n = p->mine ? (size_t)tensor->count : 0;
    p->cols = columns(tensor);
    p->shape_rank = tensor->rank;
    p->rows = tensor->rank ? (size_t)tensor->shape[0] : 1;
    p->kernel = tensor->rank > 1 ? (size_t)tensor->shape[tensor->rank - 2] : 1;
    p->weight_rank = replay_weight_rank(r, p->layer);
    place_parameter(r, p);
    return p;
}

static void add_gradient(parameter *p, record_values x)
{
    need_room(&p->grads, p->ranks, sizeof *p->grads);
    p->grads[p->ranks++] = x;
}

/* A tensor of a parameter: kept until the step is done. Gradients that are reduced already, and
 * weights, are taken from the first rank's file. */
static int take_parameter(replay *r, trace *t, const trace_tensor *tensor, record_values x)
{
    const char *kind = tensor->kind;
    parameter *p = find_parameter(r, tensor->fqn, tensor);
    record_values *to = NULL;
    if (p->count != tensor->count) {
        replay_values_free(&x);
        return replay_bad_file(t, "%s has %" PRIu64 " elements, and %" PRIu64 " elsewhere", tensor->name, tensor->count,
                               p->count);
    }
    if (strcmp(kind, "wgrad") == 0) {
        if (p->ranks == 0 || !r->record.reduced)
            add_gradient(p, x);
        else
            replay_values_free(&x);
        return 0;
    }
    to = strcmp(kind, "weight") == 0   ? &p->weight
         : strcmp(kind, "master") == 0 ? &p->master
         : strcmp(kind, "opt.m") == 0  ? &p->m
         : strcmp(kind, "opt.v") == 0  ? &p->v
                                       : &p->vmax_recorded;
    if (to == &p->weight) {
        p->weight_format = tensor->format;
        place_parameter(r, p);
    }
    if (replay_values_there(to))
        replay_values_free(&x);
    else
        *to = x;
    return 0;
}

/* An activation or its gradient: cast at once and forgotten. */
static int take_activation(replay *r, const trace_tensor *tensor, train_role role, const record_values *x)
{
    const char *layer = tensor->fqn;
    replay_add_cast(r, tensor->kind, tensor->fqn);
    cast_state *s = replay_state(r, r->casts[r->n_casts - 1].name);
    if (!s->layer_known) {
        s->layer = policy_layer(r->plan, layer, replay_weight_rank(r, layer));
        policy_plan_place(r->plan, s->layer, layer, &s->place);
        policy_plan_keep_ends(r->plan, &r->depth, layer, &s->place);
        s->layer_known = 1;
    }
    const int backward = role == TRAIN_AGRAD || role == TRAIN_DGRAD;
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    const mpsim_block_recipe *b = s->place.recipe[role];
    const size_t n = s->mine ? (size_t)tensor->count : 0, cols = columns(tensor);
    if (role == TRAIN_ACT && r->rank == 0)
        r->out.bytes.activations += b ? mpsim_block_bytes(b, cols ? tensor->count / cols : 0, cols)
                                      : tensor->count * mpsim_format_code_bytes(&s->place.format[role]);
    const train_placement place = s->place;
    replay_casting how = {role, s->layer, &place, 1, n, cols, backward ? r->scaler.scale / from : 1, 0};
    replay_problem problem = {0};
    replay_cast_tensor(r, r->n_casts - 1, &how, x, &problem);
    if (b && r->plan->recipe->columns && !problem.code) {
        replay_add_columns(r, tensor->kind, layer);
        how.columns = 1;
        replay_cast_tensor(r, r->n_casts - 1, &how, x, &problem);
    }
    return problem.code ? fail(problem.code, "%s", problem.text) : 0;
}

/* Weights of several formats in a file, and no masters, which were updated in their stead. */
static int is_mixed(const trace *t)
{
    int low = 0, high = 0;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        const int is_weight = tensor->kind && strcmp(tensor->kind, "weight") == 0;
        if (tensor->kind && strcmp(tensor->kind, "master") == 0)
            return 0;
        low |= is_weight && tensor->format->mbits < 23;
        high |= is_weight && tensor->format->mbits >= 23;
    }
    return low && high;
}

static int take_tensor(replay *r, trace *t, size_t i)
{
    static const struct {
        const char *kind;
        int role; /* -1: of a parameter */
    } kinds[] = {{"weight", -1},         {"wgrad", -1},         {"opt.m", -1},      {"opt.v", -1},
                 {"opt.vmax", -1},       {"master", -1},        {"act", TRAIN_ACT}, {"out", TRAIN_OUT},
                 {"agrad", TRAIN_AGRAD}, {"dgrad", TRAIN_DGRAD}};
    const trace_tensor *tensor = trace_at(t, i);
    trace_error error;
    world_pass(1);
    if (!replay_wants(r, tensor))
        return 0;
    if (strlen(tensor->name) > REPLAY_NAME_MAX || strlen(tensor->fqn) > REPLAY_NAME_MAX)
        return replay_bad_file(t, "%.60s...: a name of more than %d bytes", tensor->name, REPLAY_NAME_MAX);
    record_values x;
    if (read_values(t, i, replay_tensor_is_mine(r, tensor), &x, &error))
        return fail(error.exit, "%s", error.text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].kind, tensor->kind) != 0)
            continue;
        if (kinds[k].role < 0)
            return take_parameter(r, t, tensor, x);
        const int code = take_activation(r, tensor, (train_role)kinds[k].role, &x);
        replay_values_free(&x);
        return code;
    }
    replay_values_free(&x);
    return 0;
}

/* ---- steps ---- */

/* Another plan: layers may be of other kinds, their tensors elsewhere. */
static void place_anew(replay *r)
{
    for (size_t i = 0; i < r->n_states; i++)
        r->states[i].layer_known = 0;
    for (size_t i = 0; i < r->n_parameters; i++)
        place_parameter(r, &r->parameters[i]);
}

/* The layers of the file at hand: 1 if there are now more than before. */
static int number_layers(replay *r)
{
    int more = 0;
    for (size_t i = 0; i < r->n_layer_names; i++) {
        const char *layer = r->layer_names[i];
        const int rank = replay_weight_rank(r, layer);
        if (rank >= 2 && rank != POLICY_TABLE)
            more |= policy_depth_add(&r->depth, layer);
    }
    return more;
}

static int begin_step(replay *r, int64_t step)
{
    const plan *p = policy_plan(r->policy, step > 0 ? (uint64_t)step : 0);
    r->new_plan = r->plan != p;
    if (r->new_plan && (!r->plan || !train_same_scaler(&r->plan->scaler, &p->scaler)))
        if (mpsim_scaler_init(&r->scaler, &p->scaler))
            return fail(EXIT_DATA, "replay: the policy's scaler cannot be used");
    r->plan = p;
    if (r->new_plan) {
        place_anew(r);
        replay_say_refused(r);
    }
    r->step = step;
    r->have_step = 1;
    r->rank = r->files = 0;
    r->overflow = 0;
    r->cause = NULL;
    r->measured = 0;
    r->from_record = 0;
    r->gap = r->options->weights != REPLAY_CARRY && (r->stepped ? step != r->last_step + 1 : step > 1);
    r->n_casts = 0;
    memset(&r->out, 0, sizeof r->out);
    return 0;
}

/* The model's weights as the forward pass reads them. */
static void cast_weight(replay *r, parameter *p, replay_weight *w)
{
    const replay_casting how = {TRAIN_WEIGHT, p->kind, &p->place, p->shape_rank == 2, p->n, p->cols, 1, 0};
    const record_values model = {.narrow = p->model};
    (void)w;
    if (p->p)
        replay_cast_tensor(r, p->cast, &how, &model, &p->problem);
}

static int cast_weights(replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        if (!p->p)
            continue;
        replay_add_cast(r, "weight", p->name);
        p->cast = r->n_casts - 1;
    }
    return replay_each(r, cast_weight);
}

static void count_storage(replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        r->weights[i].grads = r->parameters[i].place.format[TRAIN_WGRAD].name;
}

/* Gradients that wait for their reduction must be there from all ranks. */
static int check_ranks(const replay *r)
{
    if (r->record.reduced)
        return 0;
    if (r->record.world && r->record.world != r->files)
        return fail(EXIT_DATA, "replay: step %" PRId64 ": %zu file%s, but %" PRIu64 " ranks (mpsim.world)", r->step,
                    r->files, text_plural(r->files), r->record.world);
    for (size_t i = 0; i < r->n_parameters; i++)
        if (r->parameters[i].ranks && r->parameters[i].ranks != r->files)
            return fail(EXIT_DATA, "replay: step %" PRId64 ": %s: %zu gradients from %zu ranks", r->step,
                        r->parameters[i].name, r->parameters[i].ranks, r->files);
    return 0;
}

/* The distances of all, and what is told of the step: casts and weights by the first process alone. */
static int collect(replay *r)
{
    const int code = replay_collect(r);
    if (!code && r->measured) {
        r->out.distance_fp32 = replay_distance_value(&r->distances[0]);
        r->out.distance_f64 = replay_distance_value(&r->distances[1]);
        r->out.fp32_f64 = replay_distance_value(&r->distances[2]);
        r->out.kept_fp32 = replay_distance_value(&r->distances[3]);
    }
    r->out.casts = r->casts;
    r->out.weights = r->weights;
    r->out.n_casts = world_rank() ? 0 : r->n_casts;
    r->out.n_weights = world_rank() ? 0 : r->n_parameters;
    return code;
}

static int end_step(replay *r)
{
    if (!r->have_step)
        return 0;
    int code = check_ranks(r);
    replay_find_groups(r);
    if (!code)
        code = replay_begin_weights(r);
    if (!code)
        code = cast_weights(r);
    r->out.norm = r->out.distance_fp32 = r->out.distance_f64 = r->out.fp32_f64 = r->out.kept_fp32 = (double)NAN;
    if (!code)
        code = replay_update(r);
    if (code)
        return code;
    count_storage(r);
    replay_count_bytes(r);
    replay_states_update(r);
    r->out.step = r->step;
    r->out.ranks = r->record.reduced ? 1 : r->files;
    r->out.plan = r->plan;
    r->out.notes = &r->notes;
    r->out.new_plan = r->new_plan;
    r->out.from_record = r->from_record;
    r->out.recorded_scale = r->record.scale_known ? r->record.loss_scale : (double)NAN;
    code = collect(r);
    if (code)
        return code;
    for (size_t i = 0; i < r->n_parameters; i++)
        replay_parameter_forget(&r->parameters[i]);
    r->have_step = 0;
    r->stepped = 1;
    r->last_step = r->step;
    r->ended = (r->out.events & MPSIM_SCALER_RAISED) != 0;
    return r->done(&r->out, r->context);
}

/* What the recorder left out: as many entries of its list as fit. */
static void say_not_recorded(replay *r, const trace *t)
{
    enum { SHOWN = 4, LONGEST = 60 };
    const char *text = trace_metadata(t, "mpsim.not_recorded");
    char list[SHOWN * (LONGEST + 2) + 8] = "";
    size_t n = 0;
    while (text && *text) {
        const size_t length = strcspn(text, ",");
        if (n++ < SHOWN)
            text_add(list, sizeof list, "%s%.*s", *list ? ", " : "", (int)(length < LONGEST ? length : LONGEST), text);
        text += length + (text[length] == ',');
    }
    if (n > SHOWN)
        text_add(list, sizeof list, ", ...");
    if (n)
        replay_say(r, NOTE_NOT_RECORDED, "%s", list);
}

static int visit(input *in, trace *t, void *context)
{
    replay *r = context;
    const int64_t step = trace_step(t);
    (void)in;
    world_pass(1);
    if (step < 0)
        return replay_bad_file(t, "which step is this? neither its metadata (mpsim.step) nor its path says");
    if (!r->have_step || step != r->step) {
        const int code = end_step(r);
        if (code)
            return code;
        if (r->ended)
            return 0;
        if (r->stepped && step <= r->last_step)
            return replay_bad_file(
                t, "step %" PRId64 " after step %" PRId64 ": steps must increase in the order of the files", step,
                r->last_step);
        const int bad = begin_step(r, step);
        if (bad)
            return bad;
    }
    step_record record;
    int code = replay_read_record(t, &record);
    if (!code && r->files == 0)
        code = replay_read_groups(&r->groups, t);
    else if (!code && (memcmp(&record, &r->record, sizeof record) != 0 || !replay_same_groups(&r->groups, t)))
        code = replay_bad_file(t,
                               "its metadata differ from those of the other files of step "
                               "%" PRId64 ": loss scale, optimizer settings, mpsim.reduced and mpsim.world must agree",
                               step);
    if (code)
        return code;
    r->record = record;
    say_not_recorded(r, t);
    r->mixed |= is_mixed(t);
    r->files++;
    replay_index_weights(r, t);
    if (number_layers(r))
        place_anew(r);
    replay_divide(r, t);
    for (size_t i = 0; i < trace_count(t) && !code; i++) {
        const int bad = take_tensor(r, t, i);
        if (bad)
            return bad;
    }
    replay_forget_weights(r);
    r->rank++;
    return code;
}

int replay_run(const policy *p, input *in, const replay_options *o, int (*done)(const replay_step *s, void *context),
               void *context, char *unmatched, size_t size)
{
    replay r;
    memset(&r, 0, sizeof r);
    r.policy = p;
    r.options = o;
    r.in = in;
    r.done = done;
    r.context = context;
    r.only = -1;
    replay_hire(&r);
    int code = input_each(in, visit, &r);
    if (!code)
        code = end_step(&r);
    replay_dismiss(&r);
    if (unmatched)
        replay_find_unmatched(&r, unmatched, size);
    for (size_t i = 0; i < r.n_parameters; i++)
        replay_parameter_free(&r.parameters[i]);
    free(r.parameters);
    free(r.casts);
    free(r.weights);
    free(r.settings);
    replay_groups_clear(&r.groups);
    replay_forget_weights(&r);
    nameindex_clear(&r.parameter_names);
    replay_states_clear(&r);
    replay_division_clear(&r.division);
    return code;
}
