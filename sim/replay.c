/* replay.c -- see replay.h: from files to steps. */
#include "replayrun.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 480 };

/* An error in a file, its path and text escaped. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int bad_file(const trace *t, const char *message, ...)
{
    trace_error error;
    char text[800];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    trace_error_set(&error, EXIT_DATA, trace_path(t), UINT64_MAX, "%s", text);
    return fail(error.exit, "%s", error.text);
}

/* ---- metadata ---- */

static double number_of(const trace *t, const char *key)
{
    const char *text = trace_metadata(t, key);
    double x;
    return text && parse_number(&x, text) == 0 ? x : (double)NAN;
}

static int flag_of(const trace *t, const char *key)
{
    const char *text = trace_metadata(t, key);
    if (!text)
        return -1;
    return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static void read_betas(const trace *t, step_record *m)
{
    const char *text = trace_metadata(t, "mpsim.betas");
    const char *comma = text ? strchr(text, ',') : NULL;
    char first[64];
    m->beta1 = number_of(t, "mpsim.beta1");
    m->beta2 = number_of(t, "mpsim.beta2");
    if (!comma || (size_t)(comma - text) >= sizeof first)
        return;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    if (parse_number(&m->beta1, first) || parse_number(&m->beta2, comma + 1))
        m->beta1 = m->beta2 = (double)NAN;
}

static int read_record(const trace *t, step_record *m)
{
    const char *optimizer = trace_metadata(t, "mpsim.optimizer");
    const char *reduced = trace_metadata(t, "mpsim.reduced");
    const char *world = trace_metadata(t, "mpsim.world");
    const char *taken = trace_metadata(t, "mpsim.optimizer_steps");
    mpsim_optim_algorithm a;
    memset(m, 0, sizeof *m);
    m->loss_scale = number_of(t, "mpsim.loss_scale");
    m->scale_known = m->loss_scale > 0;
    m->grads_scaled = flag_of(t, "mpsim.grads_scaled") == 1;
    if (m->grads_scaled && !m->scale_known)
        return bad_file(t, "gradients are scaled (mpsim.grads_scaled), but mpsim.loss_scale is "
                           "missing or not above 0");
    m->reduced = !reduced || strcmp(reduced, "pre") != 0;
    m->optimizer = optimizer && mpsim_optim_parse(&a, optimizer) == MPSIM_OK ? (int)a : -1;
    m->lr = number_of(t, "mpsim.lr");
    m->momentum = number_of(t, "mpsim.momentum");
    m->dampening = number_of(t, "mpsim.dampening");
    m->weight_decay = number_of(t, "mpsim.weight_decay");
    m->eps = number_of(t, "mpsim.eps");
    read_betas(t, m);
    m->nesterov = flag_of(t, "mpsim.nesterov");
    m->amsgrad = flag_of(t, "mpsim.amsgrad");
    m->maximize = flag_of(t, "mpsim.maximize");
    m->grad_norm = number_of(t, "mpsim.grad_norm");
    if (world && (parse_count(&m->world, world) || m->world == 0))
        return bad_file(t, "mpsim.world is not a number of ranks");
    snprintf(m->optimizer_name, sizeof m->optimizer_name, "%.30s", optimizer ? optimizer : "");
    m->steps_known = taken != NULL;
    if (taken && parse_count(&m->optimizer_steps, taken))
        return bad_file(t, "mpsim.optimizer_steps is not an integer");
    return 0;
}

/* ---- tensors ---- */

static double *read_values(trace *t, size_t i, trace_error *error)
{
    const trace_tensor *tensor = trace_at(t, i);
    const size_t n = (size_t)tensor->count;
    double *x = NULL;
    size_t at = 0, got = 0;
    if (tensor->count < SIZE_MAX / sizeof *x)
        x = malloc((n ? n : 1) * sizeof *x);
    if (!x) {
        trace_error_set(error, EXIT_IO, trace_path(t), UINT64_MAX, "out of memory");
        return NULL;
    }
    if (trace_select(t, i, error) == 0)
        do {
            if (trace_read(t, x + at, n - at, &got, error)) {
                free(x);
                return NULL;
            }
            at += got;
        } while (got > 0 && at < n);
    else
        at = SIZE_MAX;
    if (at == n)
        return x;
    free(x);
    return NULL;
}

static size_t columns(const trace_tensor *t)
{
    return t->rank ? (size_t)t->shape[t->rank - 1] : 1;
}

/* The ranks of this file's weights, for what layers are. */
static int index_weights(replay *r, const trace *t)
{
    nameindex_clear(&r->weight_ranks);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (strncmp(tensor->name, "weight:", 7) == 0 &&
            nameindex_add(&r->weight_ranks, tensor->name + 7, tensor->rank))
            return replay_no_memory();
    }
    return 0;
}

static int weight_rank(const replay *r, const char *layer)
{
    char name[NAME_MAX_BYTES + 16];
    snprintf(name, sizeof name, "%s.weight", layer);
    return (int)nameindex_find(&r->weight_ranks, name);
}

static parameter *find_parameter(replay *r, const char *name, const trace_tensor *tensor)
{
    const ptrdiff_t at = nameindex_find(&r->parameter_names, name);
    if (at >= 0)
        return &r->parameters[at];
    parameter *grown = realloc(r->parameters, (r->n_parameters + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    r->parameters = grown;
    parameter *p = &grown[r->n_parameters];
    memset(p, 0, sizeof *p);
    const char *dot = strrchr(name, '.');
    p->name = strdup(name);
    p->layer = dot ? strndup(name, (size_t)(dot - name)) : strdup(name);
    if (!p->name || !p->layer || nameindex_add(&r->parameter_names, p->name, r->n_parameters)) {
        free(p->name);
        free(p->layer);
        return NULL;
    }
    p->n = (size_t)tensor->count;
    p->cols = columns(tensor);
    p->shape_rank = tensor->rank;
    p->weight_rank = weight_rank(r, p->layer);
    p->kind = policy_layer(r->plan, p->layer, p->weight_rank);
    r->n_parameters++;
    return p;
}

static int add_gradient(parameter *p, double *x)
{
    double **grads = realloc(p->grads, (p->ranks + 1) * sizeof *grads);
    if (!grads)
        return -1;
    p->grads = grads;
    grads[p->ranks++] = x;
    return 0;
}

/* A tensor of a parameter: kept until the step is done. Gradients that are reduced already, and
 * weights, are taken from the first rank's file. */
static int take_parameter(replay *r, trace *t, const trace_tensor *tensor, const char *kind,
                          double *x)
{
    parameter *p = find_parameter(r, strchr(tensor->name, ':') + 1, tensor);
    double **to = NULL;
    if (!p) {
        free(x);
        return replay_no_memory();
    }
    if (p->n != tensor->count) {
        free(x);
        return bad_file(t, "%s has %" PRIu64 " elements, and %zu elsewhere", tensor->name,
                        tensor->count, p->n);
    }
    if (strcmp(kind, "wgrad") == 0) {
        if ((p->ranks == 0 || !r->record.reduced) && add_gradient(p, x) == 0)
            return 0;
        const int bad = p->ranks == 0 || !r->record.reduced;
        free(x);
        return bad ? replay_no_memory() : 0;
    }
    to = strcmp(kind, "weight") == 0   ? &p->weight
         : strcmp(kind, "master") == 0 ? &p->master
         : strcmp(kind, "opt.m") == 0  ? &p->m
                                       : &p->v;
    if (to == &p->weight)
        p->weight_format = tensor->format;
    if (*to)
        free(x);
    else
        *to = x;
    return 0;
}

/* An activation or its gradient: cast at once and forgotten. */
static int take_activation(replay *r, const trace_tensor *tensor, tensor_role role,
                           const double *x)
{
    const char *layer = strchr(tensor->name, ':') + 1;
    cast_state *s = replay_state(r, tensor->name);
    if (!s)
        return replay_no_memory();
    if (!s->layer_known) {
        s->layer = policy_layer(r->plan, layer, weight_rank(r, layer));
        s->layer_known = 1;
    }
    const int backward = role == ROLE_AGRAD || role == ROLE_DGRAD;
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    const layer_kind kind = s->layer;
    const mpsim_block_recipe *b = plan_recipe(r->plan, kind, layer, role);
    if (role == ROLE_ACT && r->rank == 0)
        r->out.bytes.activations +=
            b ? mpsim_block_bytes(b, columns(tensor) ? (size_t)tensor->count / columns(tensor) : 0,
                                  columns(tensor))
              : tensor->count *
                    mpsim_format_code_bytes(plan_low(r->plan, kind, layer, role)
                                                ? &r->plan->compute
                                                : mpsim_format_find("binary32"));
    return replay_cast_tensor(r, tensor->name, role, kind, layer, 1, x, (size_t)tensor->count,
                              columns(tensor), backward ? r->scaler.scale / from : 1);
}

static int take_tensor(replay *r, trace *t, size_t i)
{
    static const struct {
        const char *kind;
        int role; /* -1: of a parameter */
    } kinds[] = {{"weight", -1}, {"wgrad", -1},       {"opt.m", -1},         {"opt.v", -1},
                 {"master", -1}, {"act", ROLE_ACT},   {"out", ROLE_OUT},     {"agrad", ROLE_AGRAD},
                 {"dgrad", ROLE_DGRAD}};
    const trace_tensor *tensor = trace_at(t, i);
    const char *kind = trace_kind(tensor->name);
    trace_error error;
    if (!kind || !tensor->format || !input_selects(r->in, tensor))
        return 0;
    if (strlen(tensor->name) > NAME_MAX_BYTES)
        return bad_file(t, "%.60s...: a name of more than %d bytes", tensor->name, NAME_MAX_BYTES);
    double *x = read_values(t, i, &error);
    if (!x)
        return fail(error.exit, "%s", error.text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].kind, kind) != 0)
            continue;
        if (kinds[k].role < 0)
            return take_parameter(r, t, tensor, kind, x);
        const int code = take_activation(r, tensor, (tensor_role)kinds[k].role, x);
        free(x);
        return code;
    }
    free(x);
    return 0;
}

/* ---- steps ---- */

/* A plan may have other layer_kinds. */
static void name_layers_anew(replay *r)
{
    for (size_t i = 0; i < r->n_states; i++)
        r->states[i].layer_known = 0;
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        p->kind = policy_layer(r->plan, p->layer, p->weight_rank);
    }
}

static int begin_step(replay *r, int64_t step)
{
    const plan *p = policy_plan(r->policy, step > 0 ? (uint64_t)step : 0);
    r->new_plan = r->plan != p;
    if (r->new_plan && (!r->plan || memcmp(&r->plan->scaler, &p->scaler, sizeof p->scaler) != 0))
        if (mpsim_scaler_init(&r->scaler, &p->scaler))
            return fail(EXIT_DATA, "replay: the policy's scaler cannot be used");
    r->plan = p;
    if (r->new_plan)
        name_layers_anew(r);
    r->step = step;
    r->have_step = 1;
    r->rank = r->files = 0;
    r->overflow = 0;
    r->cause = NULL;
    r->from_record = 0;
    r->gap = r->options->weights != REPLAY_CARRY &&
             (r->stepped ? step != r->last_step + 1 : step > 1);
    r->n_casts = 0;
    memset(&r->out, 0, sizeof r->out);
    return 0;
}

static void count_bytes(replay *r)
{
    replay_bytes *b = &r->out.bytes;
    const mpsim_optim *o = r->has_optimizer ? &r->optimizer : NULL;
    const size_t states = !o ? 0
                          : o->algorithm == MPSIM_OPTIM_SGD ? o->momentum > 0
                                                            : (size_t)(2 + (o->amsgrad != 0));
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        const mpsim_block_recipe *recipe = plan_recipe(r->plan, p->kind, p->layer, ROLE_WEIGHT);
        if (!p->p)
            continue;
        const size_t stored = mpsim_format_code_bytes(&p->storage);
        const int fp8 = r->plan->fp8_params && recipe && p->shape_rank == 2;
        const int master = p->kept.mbits != p->storage.mbits || (fp8 && stored == 4);
        const int low = plan_low(r->plan, p->kind, p->layer, ROLE_WGRAD);
        b->weights += fp8 ? mpsim_block_bytes(recipe, p->cols ? p->n / p->cols : 0, p->cols)
                          : p->n * stored;
        b->master += !master ? 0 : p->n * (r->plan->master == MASTER_SPLIT ? 2 : 4);
        b->gradients += p->n * (low && stored < 4 ? mpsim_format_code_bytes(&r->plan->grads) : 4);
        b->state += p->n * mpsim_format_code_bytes(&p->state) * states;
        if (r->plan->optimizer.store == MPSIM_STORE_KAHAN && p->kept.mbits < 23)
            b->state += p->n * stored;
    }
}

/* The model's weights as the forward pass reads them. */
static int cast_weights(replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        char name[512];
        if (!p->p)
            continue;
        double *x = malloc((p->n ? p->n : 1) * sizeof *x);
        if (!x)
            return replay_no_memory();
        for (size_t j = 0; j < p->n; j++)
            x[j] = (double)p->model[j];
        snprintf(name, sizeof name, "weight:%s", p->name);
        const int code = replay_cast_tensor(r, name, ROLE_WEIGHT, p->kind, p->layer,
                                            p->shape_rank == 2, x, p->n, p->cols, 1);
        free(x);
        if (code)
            return code;
    }
    return 0;
}

static void count_storage(replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        r->weights[i].grads = plan_low(r->plan, r->parameters[i].kind, r->parameters[i].layer,
                                       ROLE_WGRAD)
                                  ? r->plan->grads.name
                                  : "binary32";
}

/* Gradients that wait for their reduction must be there from all ranks. */
static int check_ranks(const replay *r)
{
    if (r->record.reduced)
        return 0;
    if (r->record.world && r->record.world != r->files)
        return fail(EXIT_DATA, "replay: step %" PRId64 ": %zu files, but %" PRIu64 " ranks "
                               "(mpsim.world)", r->step, r->files, r->record.world);
    for (size_t i = 0; i < r->n_parameters; i++)
        if (r->parameters[i].ranks && r->parameters[i].ranks != r->files)
            return fail(EXIT_DATA, "replay: step %" PRId64 ": %s: %zu gradients from %zu ranks",
                        r->step, r->parameters[i].name, r->parameters[i].ranks, r->files);
    return 0;
}

static int end_step(replay *r)
{
    if (!r->have_step)
        return 0;
    int code = check_ranks(r);
    if (!code)
        code = replay_begin_weights(r);
    if (!code)
        code = cast_weights(r);
    r->out.norm = r->out.distance_fp32 = r->out.distance_f64 = r->out.fp32_f64 =
        r->out.kept_fp32 = (double)NAN;
    if (!code)
        code = replay_update(r);
    if (code)
        return code;
    count_storage(r);
    count_bytes(r);
    replay_states_update(r);
    r->out.step = r->step;
    r->out.plan = r->plan;
    r->out.new_plan = r->new_plan;
    r->out.from_record = r->from_record;
    r->out.recorded_scale = r->record.scale_known ? r->record.loss_scale : (double)NAN;
    r->out.casts = r->casts;
    r->out.n_casts = r->n_casts;
    r->out.weights = r->weights;
    r->out.n_weights = r->n_parameters;
    for (size_t i = 0; i < r->n_parameters; i++)
        parameter_forget(&r->parameters[i]);
    r->have_step = 0;
    r->stepped = 1;
    r->last_step = r->step;
    r->ended = (r->out.events & MPSIM_SCALER_RAISED) != 0;
    return r->done(&r->out, r->context);
}

static int visit(input *in, trace *t, void *context)
{
    replay *r = context;
    const int64_t step = trace_step(t);
    (void)in;
    if (step < 0)
        return bad_file(t, "which step is this? neither its metadata (mpsim.step) nor its path "
                           "says");
    if (!r->have_step || step != r->step) {
        const int code = end_step(r);
        if (code)
            return code;
        if (r->ended)
            return 0;
        if (r->stepped && step <= r->last_step)
            return bad_file(t, "step %" PRId64 " after step %" PRId64
                               ": steps must increase in the order of the files",
                            step, r->last_step);
        const int bad = begin_step(r, step);
        if (bad)
            return bad;
    }
    int code = read_record(t, &r->record);
    if (code)
        return code;
    r->files++;
    code = index_weights(r, t);
    for (size_t i = 0; i < trace_count(t) && !code; i++) {
        const int bad = take_tensor(r, t, i);
        if (bad)
            return bad;
    }
    nameindex_clear(&r->weight_ranks);
    r->rank++;
    return code;
}

/* ---- patterns that fit nothing ---- */

static int fits_a_layer(const replay *r, const char *glob)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        if (fnmatch(glob, r->parameters[i].layer, 0) == 0)
            return 1;
    for (size_t i = 0; i < r->n_states; i++) {
        const char *colon = strchr(r->states[i].name, ':');
        if (colon && fnmatch(glob, colon + 1, 0) == 0)
            return 1;
    }
    return 0;
}

static void list_unmatched(const replay *r, const char *key, const yaml_value *v, char *out,
                           size_t size)
{
    int first = 1;
    for (size_t i = 0; v && i < v->count; i++) {
        const char *glob = v->type == YAML_MAP ? v->items[i].key : v->items[i].value->text;
        const size_t n = strlen(out);
        char escaped[128];
        if (fits_a_layer(r, glob))
            continue;
        if (size - n < sizeof escaped + 32) {
            snprintf(out + n, size - n, ", ...");
            return;
        }
        snprintf(out + n, size - n, "%s%s '%s'", n && first ? "; " : first ? "" : ",",
                 first ? key : "", escape_text(escaped, sizeof escaped, glob));
        first = 0;
    }
}

static void find_unmatched(const replay *r, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < r->policy->count; i++) {
        const plan *p = &r->policy->plans[i], *before = i ? p - 1 : NULL;
        if (!before || before->keep_fp32 != p->keep_fp32)
            list_unmatched(r, "keep_fp32", p->keep_fp32, out, size);
        if (!before || before->fp8_exclude != p->fp8_exclude)
            list_unmatched(r, "fp8_exclude", p->fp8_exclude, out, size);
        if (!before || before->layer_kinds != p->layer_kinds)
            list_unmatched(r, "layer_kinds", p->layer_kinds, out, size);
    }
}

int replay_run(const policy *p, input *in, const replay_options *o,
               int (*done)(const replay_step *s, void *context), void *context, char *unmatched,
               size_t size)
{
    replay r;
    memset(&r, 0, sizeof r);
    r.policy = p;
    r.options = o;
    r.in = in;
    r.done = done;
    r.context = context;
    int code = input_each(in, visit, &r);
    if (!code)
        code = end_step(&r);
    if (unmatched)
        find_unmatched(&r, unmatched, size);
    for (size_t i = 0; i < r.n_parameters; i++)
        parameter_free(&r.parameters[i]);
    free(r.parameters);
    free(r.casts);
    free(r.weights);
    nameindex_clear(&r.weight_ranks);
    nameindex_clear(&r.parameter_names);
    replay_states_clear(&r);
    return code;
}
