/* ready.c -- see mpsim/update.h: gradients as the optimizer gets them, the optimizer of a layer. */
#include <mpsim/update.h>

#include <math.h>

mpsim_unscaling mpsim_unscaling_of(const mpsim_step_rules *r, double scale)
{
    mpsim_unscaling u = {.before = scale, .in_optimizer = 1};
    if (mpsim_clip_unscales(r->clip) || r->clip_scaled) {
        u.before = 1;
    } else if (mpsim_optim_variant_unscales(r->variant) && r->clip == MPSIM_CLIP_NONE) {
        u.before = 1;
        u.in_optimizer = scale;
    }
    return u;
}

/* The format of the total norm: that of all gradients, if they have one; torch promotes others to
 * binary32. */
static const mpsim_format *common_format(const mpsim_gradients *g)
{
    const mpsim_format *f = g->n ? g->format(g->context, 0) : NULL;
    for (size_t i = 1; i < g->n; i++)
        if (!mpsim_format_same(g->format(g->context, i), f))
            return NULL;
    return f;
}

static int is_torch(mpsim_clip_rule rule)
{
    return rule == MPSIM_CLIP_TORCH || rule == MPSIM_CLIP_TORCH_CPU;
}

static int clip(const mpsim_step_rules *r, const mpsim_gradients *g, double scale, double norm, mpsim_readied *out)
{
    const int scaled = mpsim_clip_unscales(r->clip) || r->clip_scaled; /* the gradients at hand are */
    const mpsim_format *f = common_format(g);
    const int code = g->norm(g->context, is_torch(r->clip), g->norms);
    if (code)
        return code;
    const double total = isnan(norm) ? mpsim_clip_total(r->clip, f, g->norms, g->n) : norm * (scaled ? scale : 1);
    const mpsim_clip c = mpsim_clip_factor(r->clip, f, total, r->max_norm, r->clip_scaled ? 1 : scale);
    out->norm = scaled ? total / scale : total;
    out->clipped = c.clipped;
    return c.apply ? g->scale(g->context, (float)c.factor) : 0;
}

/* Clipped as they are, scaled, and unscaled then. */
static int clip_then_unscale(const mpsim_step_rules *r, const mpsim_gradients *g, double scale, double norm,
                             mpsim_readied *out)
{
    const int code = clip(r, g, scale, norm, out);
    return code || scale == 1 ? code : g->scale(g->context, (float)(1 / scale));
}

int mpsim_gradients_ready(const mpsim_step_rules *r, const mpsim_gradients *g, double scale, double unscaled,
                          double norm, mpsim_readied *out)
{
    const mpsim_unscaling u = mpsim_unscaling_of(r, scale);
    *out = (mpsim_readied){.norm = (double)NAN, .in_optimizer = u.in_optimizer};
    const int code = u.before != unscaled ? g->unscale(g->context, r->unscale, u.before) : 0;
    if (code || r->clip == MPSIM_CLIP_NONE)
        return code;
    return (r->clip_scaled ? clip_then_unscale : clip)(r, g, scale, norm, out);
}

int mpsim_norm_overflows(const float *norms, size_t n)
{
    return !isfinite(mpsim_clip_total(MPSIM_CLIP_APEX, NULL, norms, n));
}

static int is_binary32(const mpsim_format *f)
{
    return f->mbits >= 23;
}

mpsim_optim mpsim_optim_placed(const mpsim_optim *o, const mpsim_placement *l)
{
    mpsim_optim placed = *o;
    placed.param = l->kept;
    placed.state = l->state;
    if (is_binary32(&l->kept))
        placed.store = MPSIM_STORE_NEAREST;
    return placed;
}

const mpsim_format *mpsim_placement_state(const mpsim_placement *l, uint64_t n)
{
    const mpsim_states *s = l->states;
    const int in_binary32 = s && (s->binary32 || mpsim_states_apply(s, s->m, n));
    return in_binary32 ? mpsim_format_find("binary32") : &l->state;
}

unsigned mpsim_optim_needs(const mpsim_optim *o, const mpsim_format *kept)
{
    const unsigned kahan = o->store == MPSIM_STORE_KAHAN && !is_binary32(kept) ? MPSIM_OPTIM_KAHAN : 0;
    return mpsim_optim_arrays(o) | kahan;
}
