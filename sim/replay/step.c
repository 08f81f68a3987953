/* step.c -- from gradients to new weights; see state.h. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../process/world.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- gradients ---- */

/* Whether the recorded run computed in format f. */
static int computed_in(const replay *r, const mpsim_format *f)
{
    static const char *const names[] = {[COMPUTED_FP16] = "fp16", [COMPUTED_BF16] = "bf16"};
    const record_precision c = r->record.computed;
    return c >= COMPUTED_FP16 && strcmp(f->name, names[c]) == 0;
}

/* A sum of gradients (over micro-batches, or over the uses of a tied weight) is formed in the format of
 * the parameter: it is no number of the format that backward computes in. A policy may say otherwise, but
 * for a record that says the format of its sums. */
static int is_sum(const replay *r, const parameter *p)
{
    if (r->record.accumulation > 1 && r->record.summed_in)
        return computed_in(r, &p->place.format[TRAIN_WGRAD]);
    return (r->record.accumulation > 1 || p->tied) && !r->plan->grads_given && p->place.storage.mbits == 23 &&
           computed_in(r, &p->place.format[TRAIN_WGRAD]);
}

static const mpsim_format *gradient_format(const replay *r, const parameter *p)
{
    const int said = r->record.accumulation > 1 && r->record.summed_in;
    return !is_sum(r, p) ? &p->place.format[TRAIN_WGRAD] : said ? r->record.summed_in : &p->place.storage;
}

/* Recorded gradients that a run in format f would not have: counted, unless the run is known to have
 * computed in another one. */
static void count_unheld(const replay *r, parameter *p, const mpsim_format *f)
{
    enum { BLOCK = 1024 };
    const double scale = r->record.scale_known && !r->record.grads_scaled ? r->record.loss_scale : 1;
    float block[BLOCK];
    p->counts_unheld = f->mbits < 23 && (r->record.computed == COMPUTED_UNKNOWN || computed_in(r, f));
    for (size_t k = 0; p->counts_unheld && k < p->ranks; k++)
        for (size_t i = 0; i < p->n; i += BLOCK) {
            const size_t n = p->n - i < BLOCK ? p->n - i : BLOCK;
            replay_round(f, scale, block, &p->grads[k], i, n);
            for (size_t j = 0; j < n; j++) {
                const double x = replay_value_at(&p->grads[k], i + j);
                p->unheld += isfinite(x) && (double)block[j] != x * scale;
            }
            p->gradients += n;
        }
}

/* Whether a recorded gradient holds an Inf or NaN. */
static int is_damaged(const parameter *p)
{
    for (size_t k = 0; k < p->ranks && p->group >= 0; k++)
        for (size_t j = 0; j < p->n; j++)
            if (!isfinite(replay_value_at(&p->grads[k], j)))
                return 1;
    return 0;
}

/* By which recorded gradients are multiplied to be scaled as in this step. */
static double gradient_factor(const replay *r)
{
    return r->scaler.scale / (r->record.grads_scaled ? r->record.loss_scale : 1);
}

/* The gradients of the ranks, cast, in `wire`; their sum in p->g. */
static void reduce_gradient(const replay *r, parameter *p, float **wire)
{
    train_placement place = p->place;
    const mpsim_format *f = &place.format[TRAIN_WGRAD];
    const replay_casting how = {TRAIN_WGRAD, p->kind, &place, 0, p->n, p->cols, gradient_factor(r), 0};
    place.format[TRAIN_WGRAD] = *gradient_format(r, p);
    for (size_t k = 0; k < p->ranks && !p->problem.code; k++) {
        wire[k] = need(array_memory(p->n, sizeof **wire));
        if (k == 0)
            p->g = wire[0];
        replay_cast_tensor(r, p->cast + k, &how, &p->grads[k], &p->problem);
        replay_round(f, how.factor, wire[k], &p->grads[k], 0, p->n);
    }
    if (p->problem.code || p->ranks < 2)
        return;
    mpsim_reduce d = r->plan->reduce;
    if (!r->plan->reduce_given)
        d.wire = d.accumulator = d.result = *f;
    if (mpsim_reduce_array(&d, p->g, (const float *const *)wire, p->ranks, p->n))
        replay_fails(&p->problem, EXIT_DATA, "replay: %s: the gradients of its ranks cannot be reduced", p->name);
}

static int not_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 1;
    return 0;
}

/* A gradient in the plan's format, times the loss scale, summed over ranks, in p->g. */
static void make_gradient(replay *r, parameter *p, replay_weight *w)
{
    (void)w;
    p->gradients = p->unheld = 0;
    p->counts_unheld = p->damaged = p->not_finite = 0;
    if (!p->ranks)
        return;
    float **wire = need_memory(p->ranks, sizeof *wire);
    count_unheld(r, p, gradient_format(r, p));
    p->damaged = is_damaged(p);
    reduce_gradient(r, p, wire);
    p->not_finite = !p->problem.code && not_finite(p->g, p->n);
    for (size_t k = 1; k < p->ranks; k++)
        free(wire[k]);
    free(wire);
}

/* What the casts and gradients of this process show. */
static void find_facts(const replay *r, replay_facts *f)
{
    *f = (replay_facts){.infinite = UINT64_MAX, .not_finite = UINT64_MAX, .unheld_in = UINT64_MAX};
    for (size_t i = r->n_casts; i-- > 0;)
        if (r->casts[i].infinite)
            f->infinite = i;
    for (size_t i = r->n_parameters; i-- > 0;) {
        const parameter *p = &r->parameters[i];
        f->damaged |= (uint64_t)p->damaged << replay_owner(r, p);
        f->gradients += p->gradients;
        f->unheld += p->unheld;
        if (p->unheld)
            f->unheld_in = i;
        if (p->counts_unheld && f->counting == 0)
            f->counting = i + 1;
        if (p->group < 0 || !p->not_finite) /* of no group: the optimizer does not have it */
            continue;
        f->not_finite = i;
        f->not_finite_in |= (uint64_t)1 << replay_owner(r, p);
    }
}

/* All of them; what they had that is told. */
static int make_gradients(replay *r)
{
    replay_facts *f = &r->facts;
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        p->cast = r->n_casts;
        for (size_t k = 0; k < p->ranks; k++)
            replay_add_cast(r, "wgrad", p->name);
    }
    int code = replay_each(r, make_gradient);
    find_facts(r, f);
    if (!code)
        code = replay_share_facts(f);
    if (code)
        return code;
    r->overflow = f->infinite != UINT64_MAX;
    r->cause = r->overflow ? r->casts[f->infinite].name : NULL;
    r->out.gradients = f->gradients;
    r->out.unheld = f->unheld;
    if (f->counting)
        r->out.gradient_format = r->parameters[f->counting - 1].place.format[TRAIN_WGRAD].name;
    if (f->unheld_in != UINT64_MAX)
        r->out.unheld_in = r->parameters[f->unheld_in].name;
    return 0;
}

/* ---- overflow, as the scaler's check sees it ---- */

static void find_norm(replay *r, parameter *p, replay_weight *w)
{
    (void)r, (void)w;
    p->norm = p->ranks && p->group >= 0 ? mpsim_norm(NULL, p->g, p->n) : 0;
}

/* 0 or an exit code. */
static int norms_overflow(replay *r, int *found)
{
    float *norms = need_memory(r->n_parameters, sizeof *norms);
    size_t used = 0;
    (void)replay_each(r, find_norm);
    for (size_t i = 0; i < r->n_parameters; i++)
        if (r->parameters[i].ranks && r->parameters[i].group >= 0)
            norms[used++] = r->parameters[i].norm; /* of another process: 0 */
    const int code = world_unite(norms, used * sizeof *norms);
    *found = !code && mpsim_norm_overflows(norms, used);
    free(norms);
    return code;
}

/* 0 or an exit code. */
static int overflows(replay *r, int *found)
{
    *found = r->overflow;
    if (r->overflow)
        return 0;
    if (r->plan->scaler.check == MPSIM_CHECK_NORM) {
        const int code = norms_overflow(r, found);
        if (*found)
            r->cause = train_norm_name;
        return code;
    }
    *found = r->facts.not_finite != UINT64_MAX;
    if (*found)
        r->cause = r->casts[r->parameters[r->facts.not_finite].cast].name;
    return 0;
}

/* ---- one parameter ---- */

/* A copy of n numbers; NULL where there are none. */
static float *copy_of(const float *x, size_t n)
{
    float *y = x ? need(array_memory(n, sizeof *y)) : NULL;
    if (y)
        memcpy(y, x, n * sizeof *y);
    return y;
}

/* Moments in few bits: stored, and what that did to them. Adam's largest moment as its second one. */
static void store_moments(const mpsim_optim *o, parameter *p, replay_weight *w)
{
    const mpsim_states *const s = p->place.states;
    const unsigned arrays = mpsim_optim_arrays(o);
    const replay_arrays largest = replay_moments_arrays(s, p->count, NULL, p->vmax, NULL);
    const replay_arrays after = replay_moments_arrays(s, p->count, arrays & MPSIM_OPTIM_M ? p->pm : NULL,
                                                      arrays & MPSIM_OPTIM_V ? p->pv : NULL, p->p);
    const replay_arrays before = {copy_of(after.m, p->n), copy_of(after.v, p->n), copy_of(after.kept, p->n)};
    if (s) {
        replay_moments_store(s, &after, p->n);
        replay_moments_store(s, &largest, p->n);
        replay_moments_measure(o, p->t, &before, &after, p->n, &w->moments);
    }
    free(before.m);
    free(before.v);
    free(before.kept);
}

/* The setting that the variant lacks, where mpsim_optim_check says MPSIM_EUNAVAILABLE. */
static const char *lacking(mpsim_optim o)
{
    const struct {
        const char *name;
        uint8_t *flag;
    } flags[] = {{"amsgrad", &o.amsgrad}, {"nesterov", &o.nesterov}, {"maximize", &o.maximize}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const int asked = *flags[i].flag;
        *flags[i].flag = 0;
        if (asked && mpsim_optim_check(&o) != MPSIM_EUNAVAILABLE)
            return flags[i].name;
    }
    o.dampening = 0;
    return mpsim_optim_check(&o) != MPSIM_EUNAVAILABLE ? "such dampening" : "such storing or scaling";
}

static void refuse_step(parameter *p, const mpsim_optim *o, mpsim_status s)
{
    const char *name = mpsim_optim_name((mpsim_optim_algorithm)o->algorithm);
    if (s == MPSIM_EUNAVAILABLE)
        replay_fails(&p->problem, EXIT_DATA, "replay: %s cannot be stepped: variant %s of %s has no %s", p->name,
                     o->variant->name, name, lacking(*o));
    else
        replay_fails(&p->problem, EXIT_DATA, "replay: %s cannot be stepped: variant %s of %s in %s: %s", p->name,
                     o->variant->name, name, o->param.name, mpsim_status_string(s));
}

static void step_parameter(const replay *r, parameter *p, replay_weight *w)
{
    mpsim_optim o = replay_shaped(replay_optimizer_of(r, p), p);
    o.store = (uint8_t)r->plan->optimizer.store;
    o.grad_scale = r->of[replay_owner(r, p)].grad_scale;
    replay_tensor_scalars(r, p, p->t + 1, &o);
    o = mpsim_optim_placed(&o, &p->place);
    const mpsim_rng rng = replay_rng(r, p->name);
    const unsigned needs = mpsim_optim_needs(&o, &p->place.kept);
    replay_before old = {copy_of(p->p, p->n),
                         copy_of(p->model, p->n),
                         copy_of(needs & MPSIM_OPTIM_M ? p->pm : NULL, p->n),
                         copy_of(needs & MPSIM_OPTIM_V ? p->pv : NULL, p->n),
                         copy_of(needs & MPSIM_OPTIM_VMAX ? p->vmax : NULL, p->n),
                         copy_of(needs & MPSIM_OPTIM_KAHAN ? p->kahan : NULL, p->n)};
    const mpsim_optim_tensor t = {
        .param = p->p, .grad = p->g, .m = p->pm, .v = p->pv, .vmax = p->vmax, .kahan = p->kahan, .n = p->n};
    const mpsim_status s = mpsim_optim_check(&o);
    p->t++;
    if (s || mpsim_optim_step(&o, p->t, &t, &rng))
        refuse_step(p, &o, s ? s : MPSIM_EINVAL);
    if (!p->problem.code)
        store_moments(&o, p, w);
    replay_parameter_refresh(r, p);
    if (!p->problem.code)
        replay_count_lost(&o, p, &old, w);
    free(old.p);
    free(old.model);
    free(old.m);
    free(old.v);
    free(old.vmax);
    free(old.kahan);
}

/* ---- the step ---- */

static void step_one(replay *r, parameter *p, replay_weight *w)
{
    if (!replay_is_updated(p))
        return;
    const size_t owner = replay_owner(r, p);
    const replay_optimizer *by = &r->of[owner];
    const int is_muon = replay_is_muon(r, p), moves = !by->out.skipped;
    const int refers = p->p64 && !by->idle && !(r->facts.damaged >> owner & 1);
    if (moves && is_muon)
        replay_muon_step(r, p, w);
    else if (moves)
        step_parameter(r, p, w);
    if (!p->problem.code && refers && is_muon)
        replay_muon_references(r, p, by->reference_factor);
    else if (!p->problem.code && refers)
        replay_references(replay_optimizer_of(r, p), p, by->reference_factor);
    if (!p->problem.code && p->p64)
        replay_measure(p, w, replay_self(r));
}

static int step_all(replay *r)
{
    r->measured = r->options->references;
    for (int i = 0; i < 4; i++)
        replay_distance_init(&r->distances[i]);
    for (int t = 0; t < parallel_threads(); t++)
        for (int i = 0; i < 4; i++)
            replay_distance_init(&r->workers[t].distances[i]);
    const int code = replay_each(r, step_one);
    for (int t = 0; t < parallel_threads(); t++)
        for (int i = 0; i < 4; i++)
            replay_distance_merge(&r->distances[i], &r->workers[t].distances[i]);
    return code;
}

static int any_update(const replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        if (replay_is_updated(&r->parameters[i]))
            return 1;
    return 0;
}

static int any_step(const replay *r)
{
    for (size_t k = 0; k < replay_optimizers(r); k++)
        if (!r->of[k].out.skipped)
            return 1;
    return 0;
}

/* A file of weights only, after the last step, is no step. */
static int is_training(const replay *r)
{
    for (size_t i = 0; i < r->n_casts; i++)
        if (strcmp(r->casts[i].kind, "weight") != 0)
            return 1;
    for (size_t i = 0; i < r->n_parameters; i++)
        if (r->parameters[i].ranks)
            return 1;
    return 0;
}

/* What the step's reader gets to know of its groups. */
static void say_settings(replay *r)
{
    r->out.settings = r->settings;
    r->out.n_settings = r->n_settings;
    for (size_t i = r->n_settings; i-- > 0;)
        if (r->settings[i].parameters)
            r->out.optimizer = &r->settings[i].optimizer;
    for (size_t i = 0; i < r->n_parameters; i++)
        if (replay_is_updated(&r->parameters[i]) && replay_is_muon(r, &r->parameters[i]))
            replay_say_muon(r, &r->parameters[i]);
}

int replay_update(replay *r)
{
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    const double factor = gradient_factor(r);
    r->out.scale = r->out.unscale = r->out.next_scale = r->scaler.scale;
    r->out.tracker = r->scaler.clean;
    r->out.trains = is_training(r);
    if (!r->out.trains)
        return 0;
    if (!(factor > 0 && isfinite(factor)))
        return fail(EXIT_DATA, "replay: step %lld: gradients recorded at a loss scale of %g cannot be brought to %g",
                    (long long)r->step, from, r->scaler.scale);
    int code = make_gradients(r);
    if (code)
        return code;
    /* a gradient that overflowed when it was recorded is not known at smaller scales */
    r->out.unknown = r->record.grads_scaled && r->scaler.scale < r->record.loss_scale && r->facts.damaged;
    int found = r->overflow;
    if (!r->out.unknown && (code = overflows(r, &found)))
        return code;
    const mpsim_scaler_result s = mpsim_scaler_update(&r->scaler, found);
    r->out.scale = s.scale;
    r->out.unscale = s.unscale;
    r->out.next_scale = s.next;
    r->out.events = s.events;
    r->out.tracker = r->scaler.clean;
    r->out.cause = found ? r->cause : NULL;
    replay_choose_skips(r, r->out.unknown || (s.events & MPSIM_SCALER_RAISED), (s.events & MPSIM_SCALER_SKIP) != 0);
    if (!any_update(r))
        return 0;
    code = replay_choose_optimizers(r);
    if (!code && any_step(r))
        say_settings(r);
    if (!code)
        code = replay_clip_all(r, s.unscale);
    return code ? code : step_all(r);
}
