/* tile.c -- softmax of causal attention in tiles of columns; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "../base/extent.h"
#include "kernel/kernel.h"
#include "rows.h"
#include "transformer.h"

static const mpsim_math *const binary32 = &mpsim_rows_binary32;

/* What is needed where there are elements: of the tile, and for every row. */
typedef struct needs {
    const void *tile[3], *rows[3];
} needs;

/* Whether memory can hold the rows of the tile, and those of `size` numbers. */
static int is_held(const mpsim_causal_tile *t)
{
    const size_t widest = t->cols > t->size ? t->cols : t->size;
    return mpsim_fits(mpsim_elements(mpsim_elements(t->c.matrices, t->c.length), widest ? widest : 1), sizeof(float));
}

static mpsim_status start(mpsim_math *out, const mpsim_causal_tile *t, needs n)
{
    if (!t)
        return MPSIM_EINVAL;
    const mpsim_status s = mpsim_math_init(out, t->c.f);
    if (s != MPSIM_OK)
        return s;
    const int any = t->c.matrices > 0 && t->first < t->c.length;
    for (size_t i = 0; i < 3; i++)
        if (any && ((t->cols > 0 && !n.tile[i]) || !n.rows[i]))
            return MPSIM_EINVAL;
    return any && !is_held(t) ? MPSIM_EINVAL : MPSIM_OK;
}

/* A row of a tile: where it is in the tile and among all rows, and its columns up to the diagonal. */
typedef struct place {
    size_t at, row, n;
} place;

static place place_of(const mpsim_causal_tile *t, size_t b, size_t i)
{
    const size_t seen = i - t->first + 1;
    return (place){.at = (b * (t->c.length - t->first) + i - t->first) * t->cols,
                   .row = b * t->c.length + i,
                   .n = seen < t->cols ? seen : t->cols};
}

static void finish(const mpsim_causal_tile *t, const mpsim_math *out, float *p, size_t n)
{
    mpsim_rows_round(out, p, n);
    for (; n < t->cols; n++)
        p[n] = 0;
}

/* ---- forward ---- */

/* The larger of max and all scores. */
static float largest(float max, const float *s, float scale, size_t n)
{
    for (size_t j = 0; j < n; j++)
        max = mpsim_softmax_max(max, mpsim_causal_x(binary32, scale, s[j]));
    return max;
}

/* p: what the exponentials are of. */
static void differences(float *p, const float *s, float scale, float r, size_t n)
{
    for (size_t j = 0; j < n; j++)
        p[j] = mpsim_f32_sub(mpsim_causal_x(binary32, scale, s[j]), r);
}

/* p: the exponentials of n scores; their sum. */
static float exponentials(float *p, const float *s, float scale, float r, size_t n)
{
    mpsim_lanes a = {{0}};
    differences(p, s, scale, r, n);
    mpsim_layer_kernels_active()->exp(p, p, n);
    for (size_t j = 0; j < n; j += MPSIM_LANES_ROW)
        mpsim_lanes_add(binary32, &a, p + j, mpsim_rows_width(n, j));
    return mpsim_lanes_sum(binary32, &a);
}

static void forward_row(const mpsim_causal_tile *t, const mpsim_math *out, place w, float *p, float *o, float *max,
                        float *sum, const float *s)
{
    const float m = largest(*max, s, t->c.scale, w.n), r = mpsim_tile_r(m);
    const float a = mpsim_tile_exp(*max, r);
    const float z = exponentials(p, s, t->c.scale, r, w.n);
    *sum = mpsim_tile_sum(*sum, a, z);
    *max = m;
    for (size_t c = 0; c < t->size; c++)
        o[c] = mpsim_f32_mul(o[c], a);
    for (size_t j = 0; j < w.n; j++)
        p[j] = mpsim_f32_mul(p[j], t->p_scale);
    finish(t, out, p, w.n);
}

mpsim_status mpsim_causal_tile_forward(const mpsim_causal_tile *t, float *p, float *o, float *max, float *sum,
                                       const float *s)
{
    mpsim_math out;
    const void *const room = t && t->size > 0 ? o : (const void *)max;
    const mpsim_status status = start(&out, t, (needs){{p, s, s}, {room, max, sum}});
    for (size_t b = 0; status == MPSIM_OK && t->first < t->c.length && b < t->c.matrices; b++)
        for (size_t i = t->first; i < t->c.length; i++) {
            const place w = place_of(t, b, i);
            forward_row(t, &out, w, p + w.at, o + w.row * t->size, max + w.row, sum + w.row, s + w.at);
        }
    return status;
}

/* ---- every row, whatever the tile ---- */

static mpsim_status start_rows(mpsim_math *out, const mpsim_causal_tile *t, needs n)
{
    if (!t)
        return MPSIM_EINVAL;
    const mpsim_causal_tile whole = {.c = t->c, .cols = t->size};
    return start(out, &whole, n);
}

mpsim_status mpsim_causal_tile_end(const mpsim_causal_tile *t, float *y, float *lse, const float *o, const float *max,
                                   const float *sum)
{
    mpsim_math out;
    const mpsim_status s = start_rows(&out, t, (needs){{y, o, o}, {lse, max, sum}});
    if (s != MPSIM_OK)
        return s;
    const float back = mpsim_f32_div(1.0f, t->p_scale);
    for (size_t i = 0; i < t->c.matrices * t->c.length; i++) {
        float *const row = y + i * t->size;
        const float z = sum[i];
        for (size_t c = 0; c < t->size; c++)
            row[c] = mpsim_tile_y(o[i * t->size + c], back, z);
        mpsim_rows_round(&out, row, t->size);
        lse[i] = mpsim_tile_lse(max[i], z);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_causal_tile_dots(const mpsim_causal_tile *t, float *d, const float *dy, const float *y)
{
    mpsim_math out;
    const mpsim_status s = start_rows(&out, t, (needs){{dy, y, y}, {d, d, d}});
    for (size_t i = 0; s == MPSIM_OK && i < t->c.matrices * t->c.length; i++) {
        mpsim_lanes a = {{0}};
        for (size_t at = 0; at < t->size; at += MPSIM_LANES_ROW) {
            const float *const g = dy + i * t->size + at, *const v = y + i * t->size + at;
            const size_t width = mpsim_rows_width(t->size, at);
            for (size_t c = 0; c < width; c++)
                a.s[c] = mpsim_f32_add(a.s[c], mpsim_causal_term(binary32, g[c], v[c]));
        }
        d[i] = mpsim_lanes_sum(binary32, &a);
    }
    return s;
}

/* ---- backward ---- */

mpsim_status mpsim_causal_tile_again(const mpsim_causal_tile *t, float *p, const float *s, const float *lse)
{
    mpsim_math out;
    const mpsim_status status = start(&out, t, (needs){{p, s, s}, {lse, lse, lse}});
    for (size_t b = 0; status == MPSIM_OK && t->first < t->c.length && b < t->c.matrices; b++)
        for (size_t i = t->first; i < t->c.length; i++) {
            const place w = place_of(t, b, i);
            differences(p + w.at, s + w.at, t->c.scale, lse[w.row], w.n);
            mpsim_layer_kernels_active()->exp(p + w.at, p + w.at, w.n);
            finish(t, &out, p + w.at, w.n);
        }
    return status;
}

/* ds may be dp or s. */
static void backward_row(const mpsim_causal_tile *t, float *ds, const float *dp, const float *s, float lse, float d,
                         size_t n)
{
    float e[MPSIM_LANES_ROW];
    for (size_t at = 0; at < n; at += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(n, at);
        differences(e, s + at, t->c.scale, lse, width);
        mpsim_layer_kernels_active()->exp(e, e, width);
        for (size_t j = 0; j < width; j++)
            ds[at + j] = mpsim_causal_ds(binary32, e[j], dp[at + j], d, t->c.scale);
    }
}

mpsim_status mpsim_causal_tile_backward(const mpsim_causal_tile *t, float *ds, const float *dp, const float *s,
                                        const float *lse, const float *d)
{
    mpsim_math out;
    const mpsim_status status = start(&out, t, (needs){{ds, dp, s}, {lse, d, d}});
    for (size_t b = 0; status == MPSIM_OK && t->first < t->c.length && b < t->c.matrices; b++)
        for (size_t i = t->first; i < t->c.length; i++) {
            const place w = place_of(t, b, i);
            backward_row(t, ds + w.at, dp + w.at, s + w.at, lse[w.row], d[w.row], w.n);
            finish(t, &out, ds + w.at, w.n);
        }
    return status;
}
