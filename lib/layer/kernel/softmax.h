/* softmax.h -- rows of softmax, of its logarithm and of their gradients in vectors. A row with a NaN among its operands is
 * computed again with CAREFUL operations, before anything is stored: results may be operands. Included by vector.h. */
#pragma once

#include "lanes.h"

typedef struct vsoftmax {
    vround m;
    vf32 scale;
    const mpsim_softmax_row *r;
} vsoftmax;

V_INLINE vsoftmax softmax_of(int how, const mpsim_softmax_row *r)
{
    return (vsoftmax){rounding_of(how, r->m), v_f32(r->scale), r};
}

/* Lanes from column c on that the row has and sees. */
V_INLINE m32 seen(const mpsim_softmax_row *r, size_t c)
{
    const size_t left = r->n - c;
    const m32 there = first_lanes(left);
    if (!r->mask)
        return there;
    uint8_t bytes[V_LANES] = {0};
    memcpy(bytes, r->mask + c, lanes_of(left));
    const vu32 b = v_load_u8(bytes);
    return m32_and(there, v_test_u32(b, b));
}

V_INLINE vf32 kept(m32 lanes, vf32 x)
{
    return (vf32)v_keep_u32(lanes, (vu32)x);
}

V_INLINE vf32 numbers(const vsoftmax *v, const float *x, size_t c)
{
    return to(&v->m, take(x + c, v->r->n - c));
}

/* The lanes with a NaN that it sees are added to `nan`. */
V_INLINE void look(const vsoftmax *v, const float *x, size_t c, m32 *nan)
{
    *nan = m32_or(*nan, m32_and(seen(v->r, c), is_nan(take(x + c, v->r->n - c))));
}

/* scale * s of what it sees, -infinity elsewhere. */
V_INLINE vf32 scores(const vsoftmax *v, const float *s, size_t c)
{
    return pick(seen(v->r, c), mul(&v->m, v->scale, numbers(v, s, c)), v_f32(-INFINITY));
}

/* The largest lane; of two zeros either. */
V_INLINE float largest_lane(vf32 x)
{
    const vu32 top = v_u32(0x80000000u), u = (vu32)x;
    const uint32_t k = v_reduce_max_u32(u ^ ((vu32)((vi32)u >> 31) | top));
    return mpsim_f32_bits(k & 0x80000000u ? k ^ 0x80000000u : ~k);
}

/* The largest score; which one of several NaNs is decided as softmax.c does. */
V_INLINE float largest_score(const vsoftmax *v, const float *s, m32 *nan)
{
    vf32 max = v_f32(-INFINITY);
    for (size_t c = 0; c < v->r->n; c += V_LANES) {
        look(v, s, c, nan);
        max = v_max_f32(scores(v, s, c), max);
    }
    return v->m.careful && m32_any(*nan) ? mpsim_softmax_nan(v->r, s) : largest_lane(max);
}

/* x - max of what it sees, -infinity elsewhere. */
V_INLINE vf32 differences(const vsoftmax *v, const float *s, size_t c, vf32 max)
{
    return pick(seen(v->r, c), sub(&v->m, scores(v, s, c), max), v_f32(-INFINITY));
}

/* Whether the vectors compute it: a scale that makes no NaN, none among the numbers. */
V_INLINE int can(const vsoftmax *v, m32 nan)
{
    const float s = v->r->scale;
    return (s > 0 || s < 0) && s - s == 0 && (v->m.careful || !m32_any(nan));
}

V_INLINE int softmax_loop(int how, const mpsim_softmax_row *r, float *p, const float *s)
{
    const vsoftmax v = softmax_of(how, r);
    m32 nan = no_lane();
    const float max = largest_score(&v, s, &nan);
    if (!can(&v, nan))
        return 0;
    vlanes a = no_lanes();
    IN_LANES(r->n, c, k)
    {
        const vf32 e = to(&v.m, vector_exp(differences(&v, s, c, v_f32(max)))), term = kept(seen(r, c), e);
        give(p + c, term, r->n - c);
        a.s[k] = add(&v.m, a.s[k], term);
    }
    const vf32 z = v_f32(lanes_sum(&v.m, &a));
    for (size_t c = 0; c < r->n; c += V_LANES) {
        const vf32 y = divide(&v.m, take(p + c, r->n - c), z);
        give(p + c, r->mask ? kept(seen(r, c), y) : y, r->n - c);
    }
    return 1;
}

V_INLINE int log_softmax_loop(int how, const mpsim_softmax_row *r, float *y, const float *s)
{
    const vsoftmax v = softmax_of(how, r);
    m32 nan = no_lane();
    float max = largest_score(&v, s, &nan);
    if (!can(&v, nan))
        return 0;
    if (max == 0)
        max = mpsim_softmax_zero(r, s);
    vlanes a = no_lanes();
    IN_LANES(r->n, c, k)
    {
        const vf32 d = differences(&v, s, c, v_f32(max));
        give(y + c, d, r->n - c);
        a.s[k] = add(&v.m, a.s[k], kept(seen(r, c), to(&v.m, vector_exp(d))));
    }
    const vf32 log_z = v_f32(mpsim_math_round(r->m, mpsim_log_f32(lanes_sum(&v.m, &a))));
    for (size_t c = 0; c < r->n; c += V_LANES) {
        const vf32 d = sub(&v.m, take(y + c, r->n - c), log_z);
        give(y + c, pick(seen(r, c), d, v_f32(-INFINITY)), r->n - c);
    }
    return 1;
}

V_INLINE int softmax_back_loop(int how, const mpsim_softmax_row *r, float *ds, const float *dp, const float *p)
{
    const vsoftmax v = softmax_of(how, r);
    vlanes a = no_lanes();
    m32 nan = no_lane();
    IN_LANES(r->n, c, k)
    {
        look(&v, p, c, &nan);
        look(&v, dp, c, &nan);
        const vf32 term = mul(&v.m, numbers(&v, p, c), numbers(&v, dp, c));
        a.s[k] = add(&v.m, a.s[k], kept(seen(r, c), term));
    }
    const float d = lanes_sum(&v.m, &a);
    if (!can(&v, nan))
        return 0;
    for (size_t c = 0; c < r->n; c += V_LANES) {
        const vf32 rest = sub(&v.m, numbers(&v, dp, c), v_f32(d));
        const vf32 x = mul(&v.m, mul(&v.m, numbers(&v, p, c), rest), v.scale);
        give(ds + c, r->mask ? kept(seen(r, c), x) : x, r->n - c);
    }
    return 1;
}

V_INLINE int log_softmax_back_loop(int how, const mpsim_softmax_row *r, float *ds, const float *dy, const float *y)
{
    const vsoftmax v = softmax_of(how, r);
    vlanes a = no_lanes();
    m32 nan = no_lane();
    IN_LANES(r->n, c, k)
    {
        look(&v, y, c, &nan);
        look(&v, dy, c, &nan);
        a.s[k] = add(&v.m, a.s[k], kept(seen(r, c), numbers(&v, dy, c)));
    }
    const float d = lanes_sum(&v.m, &a);
    if (!can(&v, nan))
        return 0;
    for (size_t c = 0; c < r->n; c += V_LANES) {
        const vf32 e = to(&v.m, vector_exp(numbers(&v, y, c)));
        const vf32 rest = sub(&v.m, numbers(&v, dy, c), mul(&v.m, e, v_f32(d)));
        const vf32 x = mul(&v.m, rest, v.scale);
        give(ds + c, r->mask ? kept(seen(r, c), x) : x, r->n - c);
    }
    return 1;
}

/* ---- by the rounding ---- */

V_INLINE int softmax_by(int how, mpsim_softmax_kind kind, const mpsim_softmax_row *r, float *y, const float *a,
                        const float *b)
{
    switch (kind) {
    case MPSIM_SOFTMAX_P:
        return softmax_loop(how, r, y, a);
    case MPSIM_SOFTMAX_LOG:
        return log_softmax_loop(how, r, y, a);
    case MPSIM_SOFTMAX_BACK:
        return softmax_back_loop(how, r, y, a, b);
    default:
        return log_softmax_back_loop(how, r, y, a, b);
    }
}

#define ROWS_OF(name, kind, plain)                                                                 \
    static void V_NAME(name)(const mpsim_softmax_row *r, float *y, const float *a, const float *b) \
    {                                                                                              \
        int done = 0;                                                                              \
        BY_CARE(how_of(r->m), how, done, softmax_by(how, kind, r, y, a, b));                       \
        if (done)                                                                                  \
            V_NAME(finish)(r->m, r->out, y, r->n);                                                 \
        else                                                                                       \
            plain(r, y, a, b);                                                                     \
    }
ROWS_OF(softmax_row, MPSIM_SOFTMAX_P, mpsim_softmax_p_plain)
ROWS_OF(log_softmax_row, MPSIM_SOFTMAX_LOG, mpsim_softmax_log_plain)
ROWS_OF(softmax_back_row, MPSIM_SOFTMAX_BACK, mpsim_softmax_back_plain)
ROWS_OF(log_softmax_back_row, MPSIM_SOFTMAX_LOG_BACK, mpsim_softmax_log_back_plain)
#undef ROWS_OF
