/* update.c -- from gradients to new weights: check, scaler, then the order of step.h, optimizer. */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

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

static int failed(const train *t, char *error)
{
    return train_engine_failed(t, "gradients", error);
}

/* All unscaled; found, if not NULL: of each, and 0 before. */
static int unscale_all(train *t, mpsim_unscale_rule rule, double scale, unsigned *found, char *error)
{
    train_pair list[TRAIN_PARAMS];
    for (size_t i = 0; i < t->n_params; i++)
        list[i] = (train_pair){.y = &t->params[i].grad, .x = t->params[i].source};
    return t->e->ops->unscale(t->e, list, t->n_params, rule, scale, found) ? failed(t, error) : 0;
}

static int unscale(void *context, mpsim_unscale_rule rule, double scale)
{
    const gradients *g = context;
    return unscale_all(g->t, rule, scale, NULL, g->error); /* the check is over */
}

static int norms_of(void *context, int own, float *norms)
{
    const gradients *g = context;
    const train_tensor *x[TRAIN_PARAMS];
    const mpsim_format *f[TRAIN_PARAMS];
    for (size_t i = 0; i < g->t->n_params; i++) {
        x[i] = &g->t->params[i].grad;
        f[i] = own ? x[i]->format : NULL;
    }
    return g->t->e->ops->norm(g->t->e, x, g->t->n_params, f, norms) ? failed(g->t, g->error) : 0;
}

static int scale_by(void *context, float factor)
{
    const gradients *g = context;
    train_tensor *x[TRAIN_PARAMS];
    for (size_t i = 0; i < g->t->n_params; i++)
        x[i] = &g->t->params[i].grad;
    return g->t->e->ops->scale(g->t->e, x, g->t->n_params, factor) ? failed(g->t, g->error) : 0;
}

/* ---- the check ---- */

/* The first gradient that came with an infinity or NaN, or NULL. */
static const char *cause_of(const train *t, const unsigned *found)
{
    for (size_t i = 0; i < t->n_params; i++)
        if (found[i] & MPSIM_FOUND_INPUT)
            return t->params[i].name;
    return NULL;
}

/* All gradients unscaled. Does the step overflow, as the scaler's check sees it? *cause comes from the
 * elements, if they say so. */
static int check(train *t, mpsim_unscale_rule rule, double scale, const char **cause, int *overflows, char *error)
{
    const train_tensor *x[TRAIN_PARAMS];
    float norms[TRAIN_PARAMS];
    unsigned found[TRAIN_PARAMS] = {0};
    if (unscale_all(t, rule, scale, found, error))
        return -1;
    *cause = cause_of(t, found);
    *overflows = *cause != NULL;
    if (t->plan->scaler.check != MPSIM_CHECK_NORM)
        return 0;
    for (size_t i = 0; i < t->n_params; i++)
        x[i] = t->params[i].source;
    if (t->e->ops->norm(t->e, x, t->n_params, NULL, norms))
        return failed(t, error);
    *overflows = mpsim_norm_overflows(norms, t->n_params);
    if (*overflows && !*cause)
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

/* A parameter's, with what it points to. */
typedef struct update {
    mpsim_optim optim;
    mpsim_rng rng;
} update;

static int set_update(train *t, const mpsim_optim *all, train_param *p, update *own, train_update *u, char *error)
{
    mpsim_optim *o = &own->optim;
    *o = mpsim_optim_placed(all, train_param_place(t, p));
    train_param_matrices(t, p, o);
    o->state = *mpsim_placement_state(train_param_place(t, p), (uint64_t)p->kept.rows * p->kept.cols);
    const unsigned needs = mpsim_optim_needs(o, &o->param);
    if (!decays(t, p))
        o->weight_decay = 0;
    own->rng = (mpsim_rng){.seed = t->run->settings.seed, .stream = train_stream_of_step(t->step, p->name)};
    *u = (train_update){.param = &p->kept,
                        .grad = &p->grad,
                        .m = needed(needs, MPSIM_OPTIM_M, &p->m),
                        .v = needed(needs, MPSIM_OPTIM_V, &p->v),
                        .vmax = needed(needs, MPSIM_OPTIM_VMAX, &p->vmax),
                        .kahan = needed(needs, MPSIM_OPTIM_KAHAN, &p->kahan),
                        .optim = o,
                        .step = p->age + 1,
                        .rng = &own->rng,
                        .states = train_param_place(t, p)->states};
    const mpsim_status s = mpsim_optim_check(o);
    return s ? train_fail(error, "%s cannot be updated: variant %s of %s in %s: %s", p->name, o->variant->name,
                          mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), o->param.name, mpsim_status_string(s))
             : 0;
}

/* KELLER's scale of a kernel is that of its last two dimensions. */
static int step_by_muon(train *t, train_param *p, train_update *u, char *error)
{
    mpsim_muon o = t->plan->muon;
    mpsim_optim shaped = *u->optim;
    train_param_matrices(t, p, &shaped);
    o.param = *p->kept.format;
    o.lr *= train_schedule(&t->run->settings, t->step);
    if (o.form == MPSIM_MUON_KELLER && shaped.cols != p->kept.cols)
        o.factor = mpsim_muon_factor(&o, shaped.rows, shaped.cols);
    u->m = &p->m;
    return t->e->ops->muon(t->e, u, &o, t->count ? &t->updates : NULL, t->count ? &t->lost : NULL)
               ? train_engine_failed(t, p->name, error)
               : 0;
}

static int step_params(train *t, const mpsim_optim *all, update *own, char *error)
{
    train_update list[TRAIN_PARAMS], u;
    size_t n = 0;
    for (size_t i = 0; i < t->n_params; i++) {
        train_param *p = &t->params[i];
        const int is_muon = train_param_place(t, p)->muon && !p->bias;
        if (set_update(t, all, p, &own[i], &u, error) || (is_muon && step_by_muon(t, p, &u, error)))
            return -1;
        if (!is_muon)
            list[n++] = u;
    }
    if (t->e->ops->optim(t->e, list, n, t->count ? &t->updates : NULL, t->count ? &t->lost : NULL))
        return train_engine_failed(t, "parameters", error);
    for (size_t i = 0; i < t->n_params; i++)
        t->params[i].age++;
    return train_params_refresh(t, error);
}

static int move(train *t, const mpsim_step_rules *rules, double scale, double unscaled, train_step *out, char *error)
{
    float norms[TRAIN_PARAMS];
    gradients context = {t, error};
    const mpsim_gradients g = {&context, t->n_params, norms, format_of, unscale, norms_of, scale_by};
    mpsim_optim o = t->plan->optimizer;
    mpsim_readied ready;
    if (mpsim_gradients_ready(rules, &g, scale, unscaled, (double)NAN, &ready))
        return -1;
    out->norm = ready.norm;
    out->clipped = ready.clipped;
    o.grad_scale = ready.in_optimizer;
    o.lr = out->lr;
    update *own = malloc((t->n_params ? t->n_params : 1) * sizeof *own);
    const int code = own ? step_params(t, &o, own, error) : train_fail(error, "out of memory");
    free(own);
    return code;
}

int train_apply(train *t, train_step *out, char *error)
{
    const train_plan *p = t->plan;
    const mpsim_step_rules rules = {(mpsim_unscale_rule)p->scaler.unscale, p->clip, p->max_norm, p->optimizer.variant,
                                    (int)p->clip_scaled};
    const double unscaled = mpsim_unscaling_of(&rules, t->scaler.scale).before;
    const char *cause;
    int found;
    if (check(t, rules.unscale, unscaled, &cause, &found, error))
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
