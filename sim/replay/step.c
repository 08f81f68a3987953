/* step.c -- from gradients to new weights; see run.h. */
#include "run.h"

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
    const optimizer_choice *c = &r->plan->optimizer;
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
    const int low = plan_low(r->plan, p->kind, p->layer, ROLE_WGRAD);
    const mpsim_format *f = low ? &r->plan->grads : mpsim_format_find("binary32");
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
        code = replay_cast_tensor(r, name, ROLE_WGRAD, p->kind, p->layer, 0, p->grads[k], p->n,
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
        !isfinite(mpsim_clip_total(MPSIM_CLIP_APEX, NULL, norms, used))) {
        found = 1;
        r->cause = "norm of all gradients";
    }
    free(norms);
    return found;
}

/* The format of a gradient as the optimizer gets it: that of the parameter it updates. */
static const mpsim_format *gradient_format(const parameter *p)
{
    return &p->kept;
}

static int is_torch(mpsim_clip_rule rule)
{
    return rule == MPSIM_CLIP_TORCH || rule == MPSIM_CLIP_TORCH_CPU;
}

/* The format of the total norm: that of all gradients, if they have one; torch promotes others to
 * binary32. */
static const mpsim_format *common_format(const replay *r)
{
    const mpsim_format *f = NULL;
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        if (!p->ranks || !p->p)
            continue;
        if (f && strcmp(f->name, p->kept.name) != 0)
            return NULL;
        f = &p->kept;
    }
    return f;
}

/* Unscale and clip in the order of the rule. In a fused kernel the optimizer divides by `in_kernel`
 * itself. */
static int unscale_and_clip(replay *r, const mpsim_scaler_result *s,
                            const mpsim_optim_variant *variant, double *in_kernel)
{
    const plan *pl = r->plan;
    float *norms = calloc(r->n_parameters ? r->n_parameters : 1, sizeof *norms);
    size_t used = 0;
    *in_kernel = 1;
    if (!norms)
        return replay_no_memory();
    const int combined = mpsim_clip_unscales(pl->clip);
    const int in_optimizer = mpsim_optim_variant_unscales(variant) &&
                             pl->clip == MPSIM_CLIP_NONE && s->unscale != 1;
    if (in_optimizer)
        *in_kernel = s->unscale;
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        if (!p->ranks || !p->p)
            continue;
        if (!combined && !in_optimizer && s->unscale != 1)
            mpsim_unscale_array((mpsim_unscale_rule)pl->scaler.unscale, s->unscale,
                                gradient_format(p), p->g, p->g, p->n);
        else if (p->kept.mbits < 23)
            mpsim_scale_array(gradient_format(p), p->g, p->g, p->n, 1.0f);
        if (pl->clip != MPSIM_CLIP_NONE)
            norms[used++] = mpsim_norm(is_torch(pl->clip) ? gradient_format(p) : NULL, p->g, p->n);
    }
    if (pl->clip != MPSIM_CLIP_NONE) {
        if (pl->recorded_norm && isnan(r->record.grad_norm)) {
            free(norms);
            return fail(EXIT_DATA, "replay: step %lld records no norm (mpsim.grad_norm), and the "
                                   "policy says clip: norm: trace", (long long)r->step);
        }
        const mpsim_format *f = common_format(r);
        const double total = pl->recorded_norm
                                 ? r->record.grad_norm * (combined ? s->unscale : 1)
                                 : mpsim_clip_total(pl->clip, f, norms, used);
        const mpsim_clip c = mpsim_clip_factor(pl->clip, f, total, pl->max_norm, s->unscale);
        r->out.norm = combined ? total / s->unscale : total;
        r->out.clipped = c.clipped;
        for (size_t i = 0; c.apply && i < r->n_parameters; i++) {
            parameter *p = &r->parameters[i];
            if (p->ranks && p->p)
                mpsim_scale_array(gradient_format(p), p->g, p->g, p->n, (float)c.factor);
        }
    }
    free(norms);
    return 0;
}

/* ---- one parameter ---- */

static int step_parameter(replay *r, mpsim_optim *o, parameter *p, replay_weight *w)
{
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
    o->param = p->kept;
    o->state = p->state;
    o->store = (uint8_t)(p->kept.mbits < 23 ? r->plan->optimizer.store : MPSIM_STORE_NEAREST);
    p->t++;
    if (!bad) {
        const mpsim_optim_tensor t = {.param = p->p, .grad = p->g, .m = p->pm, .v = p->pv,
                                      .vmax = p->vmax, .kahan = p->kahan, .n = p->n};
        const mpsim_status s = mpsim_optim_check(o);
        if (s || mpsim_optim_step(o, p->t, &t, &rng))
            code = fail(EXIT_DATA, "replay: %s cannot be stepped: variant %s of %s in %s: %s",
                        p->name, o->variant->name,
                        mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
                        p->kept.name, mpsim_status_string(s ? s : MPSIM_EINVAL));
    }
    parameter_refresh(r, p);
    if (!bad && !code)
        code = replay_count_lost(o, p, old[0], old[1], old[2], old[3], old[4], old[5], w);
    for (int i = 0; i < 6; i++)
        free(old[i]);
    return bad ? replay_no_memory() : code;
}

/* ---- the step ---- */

static int step_all(replay *r, mpsim_optim *o, int skip, int finite)
{
    replay_distance all[4];
    const double factor = r->options->references ? replay_reference_factor(r) : 1;
    for (int i = 0; i < 4; i++)
        replay_distance_init(&all[i]);
    for (size_t i = 0; i < r->n_parameters; i++) {
        parameter *p = &r->parameters[i];
        replay_weight *w = &r->weights[i];
        int code = 0;
        if (!p->ranks || !p->p)
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
        if (r->parameters[i].ranks && r->parameters[i].p)
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
    if (!code && !skip)
        code = unscale_and_clip(r, &s, o.variant, &o.grad_scale);
    return code ? code : step_all(r, &o, skip, finite);
}
