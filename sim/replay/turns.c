/* turns.c -- which of the optimizers step, and with which gradients: skips, unscaling and clips of each; see state.h. */
#include "impl.h"

#include <math.h>
#include <string.h>

/* ---- skips ---- */

/* GradScaler asks the gradients of each optimizer; others, and a norm of all, those of all. */
static int skips_each(const replay *r)
{
    const mpsim_scaler_config *c = &r->plan->scaler;
    return r->groups.n_optimizers > 1 && strncmp(c->name, "torch", 5) == 0 && c->check == MPSIM_CHECK_ELEMENTS &&
           !r->overflow;
}

void replay_choose_skips(replay *r, int all, int overflowed)
{
    for (size_t k = 0; k < replay_optimizers(r); k++) {
        const record_optimizer *o = &r->groups.optimizers[k];
        const int own = !skips_each(r) || (r->facts.not_finite_in >> k & 1);
        replay_optimizer *s = &r->of[k];
        *s = (replay_optimizer){.grad_scale = 1, .out.norm = (double)NAN};
        s->idle = r->groups.n_optimizers > 1 && o->skipped == 1 && o->found_inf != 1;
        s->out.skipped = all || s->idle || (overflowed && own);
        r->shown[k] = s->out;
    }
    r->out.optimizers = r->groups.n_optimizers > 1 ? r->shown : NULL;
    r->out.n_optimizers = r->groups.n_optimizers > 1 ? r->groups.n_optimizers : 0;
}

/* ---- clips ---- */

/* Whether the record has clips of single optimizers, and the policy has none. */
static int clips_each(const replay *r)
{
    int any = 0;
    for (size_t k = 0; k < r->groups.n_optimizers; k++)
        any |= !isnan(r->groups.optimizers[k].grad_clip) || !isnan(r->groups.optimizers[k].grad_clip_value);
    return any && !r->plan->clip_given;
}

/* The clip of one of them: of `only`, or of all that step. What is in force is kept for the references. */
static int clip(replay *r, ptrdiff_t only, double unscale, int skipped)
{
    double in_optimizer = 1;
    replay_choose_clip(r);
    r->only = only;
    int code = skipped ? 0 : replay_unscale_and_clip(r, unscale, &in_optimizer);
    for (size_t k = 0; k < replay_optimizers(r); k++) {
        replay_optimizer *s = &r->of[k];
        if (only >= 0 && (size_t)only != k)
            continue;
        s->grad_scale = in_optimizer;
        s->out.norm = s->out.skipped ? (double)NAN : r->out.norm;
        s->out.clipped = !s->out.skipped && r->out.clipped;
        if (!code && r->options->references)
            code = replay_reference_factor(r, &s->reference_factor);
    }
    r->only = -1;
    return code;
}

/* Each with the clip that the record says of it. */
static int clip_each(replay *r, double unscale)
{
    const step_record all = r->record;
    int code = 0, clipped = 0;
    for (size_t k = 0; k < r->groups.n_optimizers && !code; k++) {
        const record_optimizer *o = &r->groups.optimizers[k];
        r->record.grad_clip = o->grad_clip;
        r->record.grad_clip_value = o->grad_clip_value;
        r->record.grad_norm = o->grad_norm;
        r->record.grad_norm_type = o->grad_norm_type;
        r->out.clip_value = 0;
        r->out.clipped = 0;
        code = clip(r, (ptrdiff_t)k, unscale, r->of[k].out.skipped);
        clipped |= r->out.clipped;
    }
    r->out.clipped = clipped;
    r->out.own_clips = 1;
    r->record = all;
    return code;
}

int replay_clip_all(replay *r, double unscale)
{
    int skipped = 1;
    for (size_t k = 0; k < replay_optimizers(r); k++)
        skipped &= r->of[k].out.skipped;
    const int code = clips_each(r) ? clip_each(r, unscale) : clip(r, -1, unscale, skipped);
    for (size_t k = 0; k < replay_optimizers(r); k++)
        r->shown[k] = r->of[k].out;
    return code;
}
