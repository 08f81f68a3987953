/* update.c -- from gradients to new weights: check, scaler, then the order of step.h, optimizer. */
#include "trainer.h"

#include <math.h>

/* ---- the gradients of all parameters, as step.h sees them ---- */

typedef struct gradients {
    train *t;
    char *error;
} gradients;

static const mpsim_format *format_of(void *context, size_t i)
{
    const gradients *g = context;
    return g->t->params[i].grad.format;
}

static int unscale(void *context, size_t i, mpsim_unscale_rule rule, double scale)
{
    const gradients *g = context;
    train_param *p = &g->t->params[i];
    unsigned found = 0; /* of the check, which is over */
    return g->t->e->ops->unscale(g->t->e, &p->grad, p->source, rule, scale, &found)
               ? train_engine_failed(g->t, p->name, g->error)
               : 0;
}

static int norm_of(void *context, size_t i, const mpsim_format *f, float *norm)
{
    const gradients *g = context;
    train_param *p = &g->t->params[i];
    return g->t->e->ops->norm(g->t->e, &p->grad, f, norm)
               ? train_engine_failed(g->t, p->name, g->error)
               : 0;
}

static int scale_by(void *context, size_t i, float factor)
{
    const gradients *g = context;
    train_param *p = &g->t->params[i];
    return g->t->e->ops->scale(g->t->e, &p->grad, factor)
               ? train_engine_failed(g->t, p->name, g->error)
               : 0;
}

/* ---- the check ---- */

/* All gradients unscaled; *cause: the first that came with an infinity or NaN. */
static int unscale_all(train *t, mpsim_unscale_rule rule, double scale, const char **cause,
                       char *error)
{
    *cause = NULL;
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        unsigned found = 0;
        if (t->e->ops->unscale(t->e, &p->grad, p->source, rule, scale, &found))
            return train_engine_failed(t, p->name, error);
        if (!*cause && (found & MPSIM_FOUND_INPUT))
            *cause = p->name;
    }
    return 0;
}

/* Does the step overflow, as the scaler's check sees it? *cause comes from the elements. */
static int overflows(train *t, const char **cause, int *found, char *error)
{
    float norms[TRAIN_PARAMS];
    *found = *cause != NULL;
    if (t->plan->scaler.check != MPSIM_CHECK_NORM)
        return 0;
    for (size_t i = 0; i < t->n_params; i++)
        if (t->e->ops->norm(t->e, t->params[i].source, NULL, &norms[i]))
            return train_engine_failed(t, t->params[i].name, error);
    *found = train_norm_overflows(norms, t->n_params);
    if (*found && !*cause)
        *cause = train_norm_name;
    return 0;
}

/* ---- the step ---- */

static train_tensor *needed(unsigned needs, unsigned bit, train_tensor *x)
{
    return needs & bit ? x : NULL;
}

/* Of transformers norms and biases do not, unless the settings say so. */
static int decays(const train *t, const train_param *p)
{
    const train_settings *s = &t->run->settings;
    return !train_is_text(s) || s->decoder.decay_all || p->rank > 1;
}

static int step_param(train *t, const mpsim_optim *all, train_param *p, char *error)
{
    mpsim_optim o = train_optim_of(all, train_param_place(t, p));
    const unsigned needs = train_needs(&o, &o.param);
    const mpsim_rng rng = {.seed = t->run->settings.seed,
                           .stream = train_stream_of_step(t->step, p->name)};
    const train_update u = {.param = &p->kept, .grad = &p->grad,
                            .m = needed(needs, TRAIN_NEEDS_M, &p->m),
                            .v = needed(needs, TRAIN_NEEDS_V, &p->v),
                            .vmax = needed(needs, TRAIN_NEEDS_VMAX, &p->vmax),
                            .kahan = needed(needs, TRAIN_NEEDS_KAHAN, &p->kahan)};
    if (!decays(t, p))
        o.weight_decay = 0;
    const mpsim_status s = mpsim_optim_check(&o);
    if (s)
        return train_fail(error, "%s cannot be updated: variant %s of %s in %s: %s", p->name,
                          o.variant->name, mpsim_optim_name((mpsim_optim_algorithm)o.algorithm),
                          o.param.name, mpsim_status_string(s));
    if (t->e->ops->optim(t->e, &o, p->age + 1, &u, &rng, t->count ? &t->updates : NULL,
                         t->count ? &t->lost : NULL))
        return train_engine_failed(t, p->name, error);
    p->age++;
    return train_param_refresh(t, p, error);
}

static int move(train *t, const train_rules *rules, double scale, double unscaled, train_step *out,
                char *error)
{
    float norms[TRAIN_PARAMS];
    gradients context = {t, error};
    const train_gradients g = {&context, t->n_params, norms, format_of, unscale, norm_of, scale_by, 0, NULL};
    mpsim_optim o = t->plan->optimizer;
    train_readied ready;
    if (train_ready(rules, &g, scale, unscaled, (double)NAN, &ready))
        return -1;
    out->norm = ready.norm;
    out->clipped = ready.clipped;
    o.grad_scale = ready.in_optimizer;
    o.lr = out->lr;
    for (size_t i = 0; i < t->n_params; i++)
        if (step_param(t, &o, &t->params[i], error))
            return -1;
    return 0;
}

int train_apply(train *t, train_step *out, char *error)
{
    const train_plan *p = t->plan;
    const train_rules rules = {(mpsim_unscale_rule)p->scaler.unscale, p->clip, p->max_norm,
                               p->optimizer.variant};
    const double unscaled = train_unscaling_of(&rules, t->scaler.scale).before;
    const char *cause;
    int found;
    if (unscale_all(t, rules.unscale, unscaled, &cause, error) ||
        overflows(t, &cause, &found, error))
        return -1;
    const mpsim_scaler_result s = mpsim_scaler_update(&t->scaler, found);
    out->scale = s.scale;
    out->next_scale = s.next;
    out->events = s.events;
    out->cause = found ? cause : NULL;
    out->stopped = (s.events & MPSIM_SCALER_RAISED) != 0;
    out->skipped = (s.events & (MPSIM_SCALER_SKIP | MPSIM_SCALER_RAISED)) != 0;
    out->norm = (double)NAN;
    out->lr = p->optimizer.lr * train_schedule(&t->run->settings, t->step);
    return out->skipped ? 0 : move(t, &rules, s.unscale, unscaled, out, error);
}
