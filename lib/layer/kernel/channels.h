/* channels.h -- rows of batch normalisation and of its gradient in vectors, some channels side by side. Vectors with a NaN
 * among their operands are computed with CAREFUL operations. Included by vector.h. */
#pragma once

#include "rounding.h"

enum { CHANNEL_VECTORS = MPSIM_COLUMNS_WIDTH / V_LANES };

/* V_LANES channels. */
typedef struct vchannels {
    vf32 mean, inverse, weight, bias, slope;
    m32 nan;
} vchannels;

V_INLINE vchannels channels_at(const mpsim_channels *c, size_t first)
{
    vchannels v = {.mean = v_load_f32(c->mean + first),
                   .inverse = v_load_f32(c->inverse + first),
                   .weight = v_load_f32(c->weight + first),
                   .bias = v_load_f32(c->bias + first),
                   .slope = v_load_f32(c->slope + first)};
    v.nan = m32_or(m32_or(is_nan(v.mean), is_nan(v.inverse)), m32_or(is_nan(v.weight), is_nan(v.bias)));
    v.nan = m32_or(v.nan, is_nan(v.slope));
    return v;
}

V_INLINE vf32 channels_h(const vround *m, const vchannels *v, vf32 x)
{
    return mul(m, sub(m, to(m, x), v->mean), v->inverse);
}

V_INLINE vf32 channels_y(const vround *m, const vchannels *v, vf32 x)
{
    return add(m, mul(m, channels_h(m, v, x), v->weight), v->bias);
}

V_INLINE vf32 channels_dx(const vround *m, const vchannels *v, vf32 dy, vf32 x)
{
    const vf32 h = channels_h(m, v, x), centred = sub(m, to(m, dy), v->bias);
    return mul(m, v->weight, sub(m, centred, mul(m, h, v->slope)));
}

V_INLINE void channels_loop(int how, const mpsim_channels *c, float *y, const float *x)
{
    const vround m = rounding_of(how, c->m), careful = rounding_of(how | CAREFUL, c->m);
    for (size_t first = 0; first < c->width; first += V_LANES) {
        const vchannels v = channels_at(c, first);
        const size_t n = c->width - first;
        for (size_t i = 0, at = first; i < c->rows; i++, at += c->stride) {
            const vf32 from = take(x + at, n);
            if (m32_any(m32_or(v.nan, is_nan(from))))
                give(y + at, channels_y(&careful, &v, from), n);
            else
                give(y + at, channels_y(&m, &v, from), n);
        }
    }
}

V_INLINE void channels_back_loop(int how, const mpsim_channels *c, float *dx, const float *dy, const float *x)
{
    const vround m = rounding_of(how, c->m), careful = rounding_of(how | CAREFUL, c->m);
    for (size_t first = 0; first < c->width; first += V_LANES) {
        const vchannels v = channels_at(c, first);
        const size_t n = c->width - first;
        for (size_t i = 0, at = first; i < c->rows; i++, at += c->stride) {
            const vf32 from = take(x + at, n), d = take(dy + at, n);
            if (m32_any(m32_or(v.nan, m32_or(is_nan(from), is_nan(d)))))
                give(dx + at, channels_dx(&careful, &v, d, from), n);
            else
                give(dx + at, channels_dx(&m, &v, d, from), n);
        }
    }
}

/* Rows of results are rounded after all of them: they are some numbers each. */
static void V_NAME(finish_rows)(const mpsim_channels *c, float *y)
{
    for (size_t i = 0; i < c->rows && c->out->kind != MPSIM_MATH_BINARY32; i++)
        V_NAME(finish)(c->m, c->out, y + i * c->stride, c->width);
}

static void V_NAME(channels)(const mpsim_channels *c, float *y, const float *x)
{
    const int value = how_of(c->m);
    const watch w = watch_begin(value == ROUND_FP16);
    BY_ROUNDING(value | w.careful, how, channels_loop(how, c, y, x));
    watch_end(w);
    if (value == ROUND_PLAIN)
        mpsim_channels_plain(c, y, x);
    else
        V_NAME(finish_rows)(c, y);
}

static void V_NAME(channels_back)(const mpsim_channels *c, float *dx, const float *dy, const float *x)
{
    const int value = how_of(c->m);
    const watch w = watch_begin(value == ROUND_FP16);
    BY_ROUNDING(value | w.careful, how, channels_back_loop(how, c, dx, dy, x));
    watch_end(w);
    if (value == ROUND_PLAIN)
        mpsim_channels_back_plain(c, dx, dy, x);
    else
        V_NAME(finish_rows)(c, dx);
}
