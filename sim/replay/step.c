/* step.c -- from gradients to new weights; see state.h. */
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the optimizer that policy and trace agree on ---- */

static double pick(double chosen, double recorded, double otherwise)
{
    return !isnan(chosen) ? chosen : !isnan(recorded) ? recorded : otherwise;
}

static int pick_flag(int chosen, int recorded)
{
    return chosen >= 0 ? chosen : recorded > 0;
}

static int choose_optimizer(const replay *r, mpsim_optim *o)
{
    const plan_optimizer *c = &r->plan->optimizer;
    const step_record *t = &r->record;
    const int algorithm = c->algorithm >= 0 ? c->algorithm : t->optimizer;
    char escaped[160];
    if (algorithm < 0 && t->optimizer_name[0])
        return fail(EXIT_DATA, "replay: the trace's optimizer (mpsim.optimizer) is '%s': only sgd, "
                               "adam and adamw are known; the policy may name one of them",
                    escape_text(escaped, sizeof escaped, t->optimizer_name));
    if (algorithm < 0)
        return fail(EXIT_DATA, "replay: neither the policy (optimizer) nor the trace "
                               "(mpsim.optimizer) names an optimizer: sgd, adam, adamw");
    const mpsim_optim_variant *variant = policy_variant(c, algorithm);
    if (!variant)
        return fail(EXIT_DATA, "replay: %s: variant %s has no %s that stores as the policy says; "
                               "the first of a list that has it is taken: variant: [%s, ieee]",
                    r->policy->name, c->variants[0]->name,
                    mpsim_optim_name((mpsim_optim_algorithm)algorithm), c->variants[0]->name);
    mpsim_optim_init(o, (mpsim_optim_algorithm)algorithm, variant);
    /* settings of the trace belong to the trace's optimizer */
    const int same = algorithm == t->optimizer;
    const double unset = (double)NAN;
    o->lr = pick(c->lr, t->lr, unset);
    if (isnan(o->lr))
        return fail(EXIT_DATA, "replay: neither the policy (optimizer: lr) nor the trace "
                               "(mpsim.lr) says the learning rate");
    o->momentum = pick(c->momentum, same ? t->momentum : unset, o->momentum);
    o->dampening = pick(c->dampening, same ? t->dampening : unset, o->dampening);
    o->weight_decay = pick(c->weight_decay, same ? t->weight_decay : unset, o->weight_decay);
    o->beta1 = pick(c->beta1, same ? t->beta1 : unset, o->beta1);
    o->beta2 = pick(c->beta2, same ? t->beta2 : unset, o->beta2);
    o->eps = pick(c->eps, same ? t->eps : unset, o->eps);
    o->nesterov = (uint8_t)pick_flag(c->nesterov, same ? t->nesterov : -1);
    o->amsgrad = (uint8_t)pick_flag(c->amsgrad, same ? t->amsgrad : -1);
    o->maximize = (uint8_t)pick_flag(c->maximize, same ? t->maximize : -1);
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return fail(EXIT_DATA, "replay: %s: nesterov needs momentum and dampening 0, not %g and %g",
                    r->policy->name, o->momentum, o->dampening);
    if (mpsim_optim_check(o) == MPSIM_EINVAL)
        return fail(EXIT_DATA, "replay: no %s has such settings, of policy and trace together: "
                               "lr %g, momentum %g, dampening %g, weight decay %g, betas %g and %g, eps %g",
                    mpsim_optim_name((mpsim_optim_algorithm)algorithm), o->lr, o->momentum,
                    o->dampening, o->weight_decay, o->beta1, o->beta2, o->eps);
    return 0;
}

/* ---- gradients ---- */

/* A gradient in the plan's format, times the loss scale, summed over ranks, in p->g. */
static int make_gradient(replay *r, parameter *p, double factor)
{
    const mpsim_format *f = &p->place.format[TRAIN_WGRAD];
    char name[512];
    int code = 0;
    snprintf(name, sizeof name, "wgrad:%s", p->name);
    float **wire = calloc(p->ranks, sizeof *wire);
    for (size_t k = 0; wire && k < p->ranks && !code; k++) {
        wire[k] = k == 0 ? p->g : malloc((p->n ? p->n : 1) * sizeof **wire);
        if (!wire[k]) {
            code = replay_no_memory();
            break;
        }
        code = replay_cast_tensor(r, name, TRAIN_WGRAD, p->kind, &p->place, 0, p->grads[k], p->n,
                                  p->cols, factor);
        if (!code)
            replay_round(f, factor, wire[k], p->grads[k], p->n);
    }
    if (!wire)
        code = replay_no_memory();
    if (!code && p->ranks > 1) {
        mpsim_reduce d = r->plan->reduce;
        if (!r->plan->reduce_given)
            d.wire = d.accumulator = d.result = *f;
        if (mpsim_reduce_array(&d, p->g, (const float *const *)wire, p->ranks, p->n))
            code = fail(EXIT_DATA, "replay: %s: the gradients of its ranks cannot be reduced",
                        p->name);
    }
    for (size_t k = 1; wire && k < p->ranks; k++)
        free(wire[k]);
    free(wire);
    return code;
}

static int not_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 1;
    return 0;
}

/* The name that the casts have: "wgrad:...". */
static const char *gradient_name(replay *r, const parameter *p)
{
    char name[512];
    snprintf(name, sizeof name, "wgrad:%s", p->name);
    const cast_state *s = replay_state(r, name);
    return s ? s->name : p->name;
}

/* Does the step overflow, as the scaler's check sees it? */
static int overflows(replay *r)
{
    float *norms = calloc(r->n_parameters ? r->n_parameters : 1, sizeof *norms);
    int found = r->overflow;
    size_t used = 0;
    if (!norms)
        return -1;
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        if (!p->ranks)
            continue;
        if (!found && r->plan->scaler.check == MPSIM_CHECK_ELEMENTS && not_finite(p->g, p->n)) {
            found = 1;
            r->cause = gradient_name(r, p);
        }
        norms[used++] = mpsim_norm(NULL, p->g, p->n);
    }
    if (!found && r->plan->scaler.check == MPSIM_CHECK_NORM &&
        train_norm_overflows(norms, used)) {
        found = 1;
        r->cause = train_norm_name;
    }
    free(norms);
    return found;
}

/* ---- the gradients of all parameters, as train/step.h sees them ---- */

/* The format of a gradient as the optimizer gets it: that of the parameter it updates. */
static const mpsim_format *format_of(void *context, size_t i)
{
    parameter *const *list = context;
    return &list[i]->place.kept;
}

static int unscale(void *context, size_t i, mpsim_unscale_rule rule, double scale)
{
    parameter *p = ((parameter **)context)[i];
    if (scale != 1)
        mpsim_unscale_array(rule, scale, &p->place.kept, p->g, p->g, p->n);
    else if (p->place.kept.mbits < 23)
        mpsim_scale_array(&p->place.kept, p->g, p->g, p->n, 1.0f);
    return 0;
}

static int norm_of(void *context, size_t i, const mpsim_format *f, float *norm)
{
    const parameter *p = ((parameter **)context)[i];
    *norm = mpsim_norm(f, p->g, p->n);
    return 0;
}

static int scale_by(void *context, size_t i, float factor)
{
    parameter *p = ((parameter **)context)[i];
    mpsim_scale_array(&p->place.kept, p->g, p->g, p->n, factor);
    return 0;
}

static int is_updated(const parameter *p)
{
    return p->ranks && p->p;
}

/* Gradients as the optimizer gets them, which divides by *in_optimizer itself. */
static int unscale_and_clip(replay *r, double scale, const mpsim_optim_variant *variant,
                            double *in_optimizer)
{
    const plan *pl = r->plan;
    const train_rules rules = {(mpsim_unscale_rule)pl->scaler.unscale, pl->clip, pl->max_norm,
                               variant};
    const size_t room = r->n_parameters ? r->n_parameters : 1;
    parameter **list = malloc(room * sizeof *list);
    train_gradients g = {list, 0, malloc(room * sizeof *g.norms), format_of, unscale, norm_of,
                         scale_by};
    train_readied ready;
    int code = list && g.norms ? 0 : replay_no_memory();
    for (size_t i = 0; i < r->n_parameters && !code; i++)
        if (is_updated(&r->parameters[i]))
            list[g.n++] = &r->parameters[i];
    if (!code && pl->clip != MPSIM_CLIP_NONE && pl->recorded_norm && isnan(r->record.grad_norm))
        code = fail(EXIT_DATA, "replay: step %lld records no norm (mpsim.grad_norm), and the "
                               "policy says clip: norm: trace", (long long)r->step);
    if (!code) {
        train_ready(&rules, &g, scale, (double)NAN,
                    pl->recorded_norm ? r->record.grad_norm : (double)NAN, &ready);
        r->out.norm = ready.norm;
        r->out.clipped = ready.clipped;
        *in_optimizer = ready.in_optimizer;
    }
    free(list);
    free(g.norms);
    return code;
}

/* ---- one parameter ---- */

static int step_parameter(replay *r, const mpsim_optim *all, parameter *p, replay_weight *w)
{
    const mpsim_optim o = train_optim_of(all, &p->place);
    const mpsim_rng rng = replay_rng(r, p->name);
    const size_t bytes = (p->n ? p->n : 1) * sizeof(float);
    const float *from[6] = {p->p, p->model, p->pm, p->pv, p->vmax, p->kahan};
    float *old[6];
    int bad = 0, code = 0;
    for (int i = 0; i < 6; i++) {
        bad |= (old[i] = malloc(bytes)) == NULL;
        if (old[i])
            memcpy(old[i], from[i], p->n * sizeof(float));
    }
    p->t++;
    if (!bad) {
        const mpsim_optim_tensor t = {.param = p->p, .grad = p->g, .m = p->pm, .v = p->pv,
                                      .vmax = p->vmax, .kahan = p->kahan, .n = p->n};
        const mpsim_status s = mpsim_optim_check(&o);
        if (s || mpsim_optim_step(&o, p->t, &t, &rng))
            code = fail(EXIT_DATA, "replay: %s cannot be stepped: variant %s of %s in %s: %s",
                        p->name, o.variant->name, mpsim_optim_name((mpsim_optim_algorithm)o.algorithm),
                        o.param.name, mpsim_status_string(s ? s : MPSIM_EINVAL));
    }
    parameter_refresh(r, p);
    if (!bad && !code)
        code = replay_count_lost(&o, p, old[0], old[1], old[2], old[3], old[4], old[5], w);
    for (int i = 0; i < 6; i++)
        free(old[i]);
    return bad ? replay_no_memory() : code;
}

/* ---- the step ---- */

static int step_all(replay *r, const mpsim_optim *o, int skip, int finite)
{
    replay_distance all[4];
    const double factor = r->options->references ? replay_reference_factor(r) : 1;
    for (int i = 0; i < 4; i++)
        replay_distance_init(&all[i]);
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        replay_weight *w = &r->weights[i];
        int code = 0;
        if (!is_updated(p))
            continue;
        if (!skip)
            code = step_parameter(r, o, p, w);
        if (!code && p->p64 && finite)
            code = replay_references(o, p, factor);
        if (code)
            return code;
        if (p->p64)
            replay_measure(p, w, all);
    }
    if (r->options->references) {
        r->out.distance_fp32 = replay_distance_value(&all[0]);
        r->out.distance_f64 = replay_distance_value(&all[1]);
        r->out.fp32_f64 = replay_distance_value(&all[2]);
        r->out.kept_fp32 = replay_distance_value(&all[3]);
    }
    return 0;
}

static int any_update(const replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++)
        if (is_updated(&r->parameters[i]))
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

int replay_update(replay *r)
{
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    const double factor = r->scaler.scale / from;
    mpsim_optim o;
    r->out.scale = r->out.unscale = r->out.next_scale = r->scaler.scale;
    r->out.tracker = r->scaler.clean;
    r->out.trains = is_training(r);
    if (!r->out.trains)
        return 0;
    if (!(factor > 0 && isfinite(factor)))
        return fail(EXIT_DATA, "replay: step %lld: gradients recorded at a loss scale of %g cannot "
                               "be brought to %g", (long long)r->step, from, r->scaler.scale);
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        const int code = p->ranks ? make_gradient(r, p, factor) : 0;
        if (code)
            return code;
    }
    /* a gradient that overflowed when it was recorded is not known at smaller scales */
    const int finite = replay_record_finite(r);
    r->out.unknown = r->record.grads_scaled && r->scaler.scale < r->record.loss_scale && !finite;
    const int found = r->out.unknown ? r->overflow : overflows(r);
    if (found < 0)
        return replay_no_memory();
    const mpsim_scaler_result s = mpsim_scaler_update(&r->scaler, found);
    r->out.scale = s.scale;
    r->out.unscale = s.unscale;
    r->out.next_scale = s.next;
    r->out.events = s.events;
    r->out.tracker = r->scaler.clean;
    r->out.cause = found ? r->cause : NULL;
    const int skip =
        r->out.unknown || (s.events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED)) != 0;
    if (!any_update(r))
        return 0;
    int code = choose_optimizer(r, &o);
    if (!code) {
        r->optimizer = o;
        r->has_optimizer = 1;
        r->out.optimizer = skip ? NULL : &r->optimizer;
    }
    o.store = (uint8_t)r->plan->optimizer.store;
    if (!code && !skip)
        code = unscale_and_clip(r, s.unscale, o.variant, &o.grad_scale);
    return code ? code : step_all(r, &o, skip, finite);
}
