/* clip.c -- gradients as the optimizer gets them: unscaled and clipped, by the policy's rule or the
 * recorded one; see state.h. */
#include "impl.h"

#include "../array/need.h"
#include "../process/world.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>

/* ---- the clip in force ---- */

/* The policy's, or where it is silent the recorded one: torch's on the device of the run. */
void replay_choose_clip(replay *r)
{
    const plan *p = r->plan;
    const step_record *m = &r->record;
    replay_step *s = &r->out;
    if (!p->clip_given && isnan(m->grad_clip) && isnan(m->grad_clip_value))
        replay_say(r, NOTE_CLIP,
                   "whether gradients were clipped (mpsim.grad_clip): that they were not is "
                   "assumed, else all weights and moments may differ");
    s->clip = p->clip;
    s->max_norm = p->max_norm;
    s->recorded_clip = !p->clip_given && (m->grad_clip > 0 || m->grad_clip_value > 0);
    if (s->recorded_clip && m->grad_clip_value > 0)
        s->clip_value = m->grad_clip_value;
    if (!s->recorded_clip || !(m->grad_clip > 0))
        return;
    s->clip = m->device == DEVICE_CPU ? MPSIM_CLIP_TORCH_CPU : MPSIM_CLIP_TORCH;
    s->max_norm = m->grad_clip;
}

static int differs(const parameter *p, double factor)
{
    int differ = p->ranks != 1;
    for (size_t j = 0; j < p->n && !differ; j++)
        differ = (double)p->g[j] != replay_value_at(&p->grads[0], j) * factor;
    return differ;
}

/* Whether the gradients at hand are not the recorded ones: something was lost in their cast. 0 or an
 * exit code. */
static int any_differs(const replay *r, parameter *const *list, size_t n, int *differ)
{
    const double from = r->record.grads_scaled ? r->record.loss_scale : 1;
    *differ = 0;
    for (size_t i = 0; i < n && !*differ; i++)
        *differ = differs(list[i], r->out.scale / from);
    return world_unite(differ, sizeof *differ);
}

/* ---- the gradients of all parameters, as train/step.h sees them ---- */

/* The list, as the context of mpsim_gradients. */
typedef struct gradients {
    parameter **list;
    size_t n;
} gradients;

/* The format of a gradient as the optimizer gets it: that of the parameter it updates. */
static const mpsim_format *format_of(void *context, size_t i)
{
    const gradients *g = context;
    return &g->list[i]->place.kept;
}

/* What is done to each of them, on all threads. */
typedef struct task {
    parameter *const *list;
    void (*one)(const struct task *t, size_t i);
    mpsim_unscale_rule rule;
    double scale;
    float factor, *norms;
    int own; /* 1: norms are rounded to the gradients' formats */
} task;

static void run_one(int i, void *context)
{
    const task *t = context;
    t->one(t, (size_t)i);
}

static void run(const gradients *g, task t)
{
    t.list = g->list;
    parallel_for((int)g->n, run_one, &t);
}

static void unscale_one(const task *t, size_t i)
{
    parameter *p = t->list[i];
    if (t->scale != 1)
        mpsim_unscale_array(t->rule, t->scale, &p->place.kept, p->g, p->g, p->n);
    else if (p->place.kept.mbits < 23)
        mpsim_scale_array(&p->place.kept, p->g, p->g, p->n, 1.0f);
}

static void norm_one(const task *t, size_t i)
{
    const parameter *p = t->list[i];
    t->norms[i] = mpsim_norm(t->own ? &p->place.kept : NULL, p->g, p->n);
}

static void scale_one(const task *t, size_t i)
{
    parameter *p = t->list[i];
    mpsim_scale_array(&p->place.kept, p->g, p->g, p->n, t->factor);
}

static int unscale(void *context, mpsim_unscale_rule rule, double scale)
{
    run(context, (task){.one = unscale_one, .rule = rule, .scale = scale});
    return 0;
}

/* Those of other processes are 0 here. */
static int norms_of(void *context, int own, float *norms)
{
    const gradients *g = context;
    run(g, (task){.one = norm_one, .norms = norms, .own = own});
    return world_unite(norms, g->n * sizeof *norms);
}

static int scale_by(void *context, float factor)
{
    run(context, (task){.one = scale_one, .factor = factor});
    return 0;
}

/* Each element within +-limit, as clip_grad_value_ does; a NaN stays. */
static void clip_values(parameter *const *list, size_t n, float limit)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < list[i]->n; j++) {
            float *g = &list[i]->g[j];
            *g = *g > limit ? limit : *g < -limit ? -limit : *g;
        }
}

/* ---- the norm that counts ---- */

/* *norm: NaN is the exact one. Gradients are unscaled where that is done before; *done: by what they were
 * divided already. 0 or an exit code. */
static int find_norm(replay *r, const mpsim_step_rules *rules, gradients *g, double scale, double *done, double *norm)
{
    const plan *pl = r->plan;
    int differ, code;
    *norm = *done = (double)NAN;
    if (rules->clip == MPSIM_CLIP_NONE || (pl->norm_given && !pl->recorded_norm))
        return 0;
    if (pl->recorded_norm) {
        *norm = r->record.grad_norm;
        return 0;
    }
    if ((code = any_differs(r, g->list, g->n, &differ)) || differ)
        return code;
    if (!isnan(r->record.grad_norm)) {
        *norm = r->record.grad_norm;
        return 0;
    }
    if (!mpsim_clip_unscales(rules->clip) && !rules->clip_scaled) {
        *done = mpsim_unscaling_of(rules, scale).before;
        unscale(g, rules->unscale, *done);
        code = replay_cpu_norm(r, g->list, g->n, norm);
    }
    if (!code && isnan(*norm))
        replay_say(r, NOTE_NORM, "the norm before clipping (mpsim.grad_norm) at step %lld: the exact %s",
                   (long long)r->step,
                   r->record.grad_norm_type == 2
                       ? "one is taken, but frameworks sum in an order of their own, so that the last "
                         "bits of all weights and moments may differ"
                       : "2-norm is taken, not that of mpsim.grad_norm_type, so that all weights and "
                         "moments may differ");
    return code;
}

static int check_norm(const replay *r, const mpsim_step_rules *rules)
{
    if (rules->clip == MPSIM_CLIP_NONE || !r->plan->recorded_norm || !isnan(r->record.grad_norm))
        return 0;
    return fail(EXIT_DATA,
                "replay: step %lld records no norm (mpsim.grad_norm), which the policy needs (clip: norm: trace)",
                (long long)r->step);
}

/* Of groups that unscale themselves and others, one that does not: then all are unscaled before. */
static const mpsim_optim_variant *variant_of(const replay *r)
{
    const mpsim_optim_variant *v = NULL;
    for (size_t i = 0; i < r->n_settings; i++)
        if (r->settings[i].parameters && (!v || mpsim_optim_variant_unscales(v)))
            v = r->settings[i].optimizer.variant;
    return v;
}

/* Whether a parameter is updated in this step by the optimizer that is at it. */
static int moves(const replay *r, const parameter *p)
{
    const size_t owner = replay_owner(r, p);
    return replay_is_updated(p) && !r->of[owner].out.skipped && (r->only < 0 || owner == (size_t)r->only);
}

int replay_unscale_and_clip(replay *r, double scale, double *in_optimizer)
{
    const plan *pl = r->plan;
    const mpsim_step_rules rules = {(mpsim_unscale_rule)pl->scaler.unscale, r->out.clip, r->out.max_norm, variant_of(r),
                                    !r->out.recorded_clip && pl->clip_scaled};
    gradients all = {need_memory(r->n_parameters, sizeof *all.list), 0};
    mpsim_gradients g = {&all,     0,       need_memory(r->n_parameters, sizeof *g.norms), format_of, unscale,
                         norms_of, scale_by};
    mpsim_readied ready;
    int code = check_norm(r, &rules);
    for (size_t i = 0; i < r->n_parameters && !code; i++)
        if (moves(r, &r->parameters[i]))
            all.list[all.n++] = &r->parameters[i];
    g.n = all.n;
    double unscaled, norm;
    if (!code)
        code = find_norm(r, &rules, &all, scale, &unscaled, &norm);
    if (!code)
        code = mpsim_gradients_ready(&rules, &g, scale, unscaled, norm, &ready);
    if (!code) {
        r->out.norm = ready.norm;
        r->out.clipped = ready.clipped;
        *in_optimizer = ready.in_optimizer;
        if (r->out.clip_value > 0)
            clip_values(all.list, all.n, (float)(r->out.clip_value * ready.in_optimizer));
    }
    free(all.list);
    free(g.norms);
    return code;
}
