/* update.c -- from gradients to new weights: check, scaler, unscale, clip, optimizer; the order of
 * sim/replay/step.c. */
#include "trainer.h"

#include <math.h>

/* What the step does with gradients before the optimizer. */
typedef struct way {
    int combined;     /* the clipping factor contains 1 / S                */
    int in_optimizer; /* a fused optimizer divides by S itself             */
    double scale;     /* that gradients are unscaled with, 1 in both cases */
} way;

static way choose(const train *t, double scale)
{
    const train_plan *p = t->plan;
    way w = {.scale = scale};
    w.combined = mpsim_clip_unscales(p->clip);
    w.in_optimizer = mpsim_optim_variant_unscales(p->optimizer.variant) &&
                     p->clip == MPSIM_CLIP_NONE && scale != 1;
    if (w.combined || w.in_optimizer)
        w.scale = 1;
    return w;
}

/* All gradients unscaled; *cause: the first that came with an infinity or NaN. */
static int unscale(train *t, double scale, const char **cause, char *error)
{
    *cause = NULL;
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        unsigned found = 0;
        if (t->e->ops->unscale(t->e, &p->grad, &p->wgrad,
                               (mpsim_unscale_rule)t->plan->scaler.unscale, scale, &found))
            return train_engine_failed(t, p->name, error);
        if (!*cause && (found & MPSIM_FOUND_INPUT))
            *cause = p->name;
    }
    return 0;
}

/* The norms of all gradients, each rounded to its parameter's format if `rounded`. */
static int norms(train *t, int scaled, int rounded, float *out, char *error)
{
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        if (t->e->ops->norm(t->e, scaled ? &p->wgrad : &p->grad, rounded ? p->grad.format : NULL,
                            &out[i]))
            return train_engine_failed(t, p->name, error);
    }
    return 0;
}

/* Does the step overflow, as the scaler's check sees it? *cause comes from the elements. */
static int overflows(train *t, const char **cause, int *found, char *error)
{
    float each[TRAIN_PARAMS];
    *found = *cause != NULL;
    if (t->plan->scaler.check != MPSIM_CHECK_NORM)
        return 0;
    if (norms(t, 1, 0, each, error))
        return -1;
    *found = !isfinite(mpsim_clip_total(MPSIM_CLIP_APEX, NULL, each, t->n_params));
    if (*found && !*cause)
        *cause = "norm of all gradients";
    return 0;
}

/* The format of all gradients, if they have one. */
static const mpsim_format *common_format(const train *t)
{
    for (size_t i = 1; i < t->n_params; i++)
        if (!mpsim_format_same(t->params[i].grad.format, t->params[0].grad.format))
            return NULL;
    return t->params[0].grad.format;
}

static int clip(train *t, const way *w, double scale, train_step *out, char *error)
{
    const train_plan *plan = t->plan;
    const int torch = plan->clip == MPSIM_CLIP_TORCH || plan->clip == MPSIM_CLIP_TORCH_CPU;
    const mpsim_format *f = common_format(t);
    float each[TRAIN_PARAMS];
    if (plan->clip == MPSIM_CLIP_NONE)
        return 0;
    if (norms(t, 0, torch, each, error))
        return -1;
    const double total = mpsim_clip_total(plan->clip, f, each, t->n_params);
    const mpsim_clip c = mpsim_clip_factor(plan->clip, f, total, plan->max_norm, scale);
    out->norm = w->combined ? total / scale : total;
    out->clipped = c.clipped;
    for (size_t i = 0; c.apply && i < t->n_params; i++)
        if (t->e->ops->scale(t->e, &t->params[i].grad, (float)c.factor))
            return train_engine_failed(t, t->params[i].name, error);
    return 0;
}

static train_tensor *needed(unsigned needs, unsigned bit, train_tensor *x)
{
    return needs & bit ? x : NULL;
}

static int step_param(train *t, mpsim_optim *o, train_param *p, char *error)
{
    const train_placement *l = train_param_place(t, p);
    const unsigned needs = train_needs(t->plan, &l->kept);
    const mpsim_rng rng = {.seed = t->run->settings.seed,
                           .stream = train_stream_of_step(t->step, p->name)};
    const train_update u = {.param = &p->kept, .grad = &p->grad,
                            .m = needed(needs, TRAIN_NEEDS_M, &p->m),
                            .v = needed(needs, TRAIN_NEEDS_V, &p->v),
                            .vmax = needed(needs, TRAIN_NEEDS_VMAX, &p->vmax),
                            .kahan = needed(needs, TRAIN_NEEDS_KAHAN, &p->kahan)};
    o->param = l->kept;
    o->state = l->state;
    o->store = (uint8_t)(l->kept.mbits < 23 ? t->plan->optimizer.store : MPSIM_STORE_NEAREST);
    const mpsim_status s = mpsim_optim_check(o);
    if (s)
        return train_fail(error, "%s cannot be updated: variant %s of %s in %s: %s", p->name,
                          o->variant->name, mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
                          l->kept.name, mpsim_status_string(s));
    if (t->e->ops->optim(t->e, o, p->age + 1, &u, &rng, t->count ? &t->updates : NULL,
                         t->count ? &t->lost : NULL))
        return train_engine_failed(t, p->name, error);
    p->age++;
    return train_param_refresh(t, p, error);
}

int train_apply(train *t, train_step *out, char *error)
{
    mpsim_optim o = t->plan->optimizer;
    way w = choose(t, t->scaler.scale);
    const char *cause;
    int found;
    if (unscale(t, w.scale, &cause, error) || overflows(t, &cause, &found, error))
        return -1;
    const double unscaled = w.scale;
    const mpsim_scaler_result s = mpsim_scaler_update(&t->scaler, found);
    out->scale = s.scale;
    out->next_scale = s.next;
    out->events = s.events;
    out->cause = found ? cause : NULL;
    out->stopped = (s.events & MPSIM_SCALER_RAISED) != 0;
    out->skipped = (s.events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED)) != 0;
    out->norm = (double)NAN;
    if (out->skipped)
        return 0;
    w = choose(t, s.unscale);
    if (w.scale != unscaled && unscale(t, w.scale, &cause, error)) /* scaler: before-unscale */
        return -1;
    o.grad_scale = w.in_optimizer ? s.unscale : 1;
    if (clip(t, &w, s.unscale, out, error))
        return -1;
    for (size_t i = 0; i < t->n_params; i++)
        if (step_param(t, &o, &t->params[i], error))
            return -1;
    return 0;
}
