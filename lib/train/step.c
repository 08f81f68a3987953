/* step.c -- see step.h. */
#include <train/step.h>

#include "run/fields.h"

#include <math.h>
#include <string.h>

/* ---- from gradients to the optimizer ---- */

train_unscaling train_unscaling_of(const train_rules *r, double scale)
{
    train_unscaling u = {.before = scale, .in_optimizer = 1};
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
static const mpsim_format *common_format(const train_gradients *g)
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

static int clip(const train_rules *r, const train_gradients *g, double scale, double norm, train_readied *out)
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
static int clip_then_unscale(const train_rules *r, const train_gradients *g, double scale, double norm,
                             train_readied *out)
{
    const int code = clip(r, g, scale, norm, out);
    return code || scale == 1 ? code : g->scale(g->context, (float)(1 / scale));
}

int train_ready(const train_rules *r, const train_gradients *g, double scale, double unscaled, double norm,
                train_readied *out)
{
    const train_unscaling u = train_unscaling_of(r, scale);
    *out = (train_readied){.norm = (double)NAN, .in_optimizer = u.in_optimizer};
    const int code = u.before != unscaled ? g->unscale(g->context, r->unscale, u.before) : 0;
    if (code || r->clip == MPSIM_CLIP_NONE)
        return code;
    return (r->clip_scaled ? clip_then_unscale : clip)(r, g, scale, norm, out);
}

const char train_norm_name[] = "norm of all gradients";

int train_norm_overflows(const float *norms, size_t n)
{
    return !isfinite(mpsim_clip_total(MPSIM_CLIP_APEX, NULL, norms, n));
}

static int is_binary32(const mpsim_format *f)
{
    return f->mbits >= 23;
}

mpsim_optim train_optim_of(const mpsim_optim *o, const train_placement *l)
{
    mpsim_optim placed = *o;
    placed.param = l->kept;
    placed.state = l->state;
    if (is_binary32(&l->kept))
        placed.store = MPSIM_STORE_NEAREST;
    return placed;
}

const mpsim_format *train_state_format(const train_placement *l, uint64_t n)
{
    const mpsim_states *s = l->states;
    const int in_binary32 = s && (s->binary32 || mpsim_states_apply(s, s->m, n));
    return in_binary32 ? mpsim_format_find("binary32") : &l->state;
}

unsigned train_needs(const mpsim_optim *o, const mpsim_format *kept)
{
    const unsigned kahan = o->store == MPSIM_STORE_KAHAN && !is_binary32(kept) ? TRAIN_NEEDS_KAHAN : 0;
    return mpsim_optim_arrays(o) | kahan;
}

/* ---- memory ---- */

/* Of an array that states may quantise. */
static uint64_t array_bytes(const mpsim_states *s, const mpsim_state *array, uint64_t n, uint64_t each)
{
    return n && s && mpsim_states_apply(s, array, n) ? mpsim_state_bytes(array, n) : n * each;
}

static uint64_t moment_bytes(const train_placement *l, const mpsim_optim *o, uint64_t n)
{
    const mpsim_states *s = l->states;
    const uint64_t each = s && s->binary32 ? 4 : mpsim_format_code_bytes(&l->state);
    return array_bytes(s, s ? s->m : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_M, n), each) +
           array_bytes(s, s ? s->v : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_V, n), each) +
           array_bytes(s, s ? s->v : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_VMAX, n), each);
}

void train_bytes_add(train_bytes *b, const train_placement *l, train_master master, const mpsim_optim *o, uint64_t n,
                     uint64_t quantised)
{
    const size_t stored = mpsim_format_code_bytes(&l->storage), kept = mpsim_format_code_bytes(&l->kept);
    const unsigned needs = train_needs(o, &l->kept);
    const mpsim_state *array = l->states ? l->states->kept : NULL;
    const int has_master = !mpsim_format_same(&l->kept, &l->storage) || (quantised && stored == 4);
    b->weights += quantised ? quantised : array_bytes(l->states, has_master ? NULL : array, n, stored);
    if (has_master)
        b->master += master == TRAIN_SPLIT_MASTER ? 2 * n : array_bytes(l->states, array, n, kept);
    /* binary32 parameters have binary32 gradients, whatever backward rounded them to */
    b->gradients += n * (stored < 4 ? mpsim_format_code_bytes(&l->format[TRAIN_WGRAD]) : 4);
    b->state += moment_bytes(l, o, n);
    if (needs & TRAIN_NEEDS_KAHAN)
        b->state += n * mpsim_format_code_bytes(&l->kept);
}

/* ---- from plan to plan ---- */

static int same_fields(const train_fields *all, const void *a, const void *b)
{
    static const size_t sizes[] = {[FLAG] = 1, [WORD] = 1, [I16] = 2, [U32] = 4, [U64] = 8, [F64] = 8};
    for (size_t i = 0; i < all->n; i++) {
        const train_field *f = &all->list[i];
        if (memcmp((const char *)a + f->offset, (const char *)b + f->offset, sizes[f->type]) != 0)
            return 0;
    }
    return 1;
}

int train_same_scaler(const mpsim_scaler_config *a, const mpsim_scaler_config *b)
{
    return strcmp(a->name, b->name) == 0 && same_fields(&train_scaler_fields, a, b);
}

int train_same_history(const mpsim_delayed_config *a, const mpsim_delayed_config *b)
{
    return a->fp8_max == b->fp8_max && same_fields(&train_history_fields, a, b);
}
