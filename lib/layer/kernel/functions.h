/* functions.h -- exp, exp2, tanh, erf and sigmoid of the lanes of a vector: scalar.h and ../functions.h with all
 * branches computed and one picked. Included by vector.h. */
#pragma once

#include "kernel.h"

#include "../functions.h"

/* ---- pairs ---- */

typedef struct vpair {
    vf32 hi, lo;
} vpair;

V_INLINE vf32 pick(m32 m, vf32 a, vf32 b)
{
    return (vf32)v_pick_u32(m, (vu32)a, (vu32)b);
}

V_INLINE vpair pair_sum(vf32 hi, vf32 x)
{
    const vf32 s = hi + x;
    return (vpair){s, (hi - s) + x};
}

V_INLINE vpair pair_mul(vf32 a, vpair b)
{
    const vf32 hi = a * b.hi;
    return (vpair){hi, v_fma_f32(a, b.lo, v_fma_f32(a, b.hi, -hi))};
}

V_INLINE vpair pair_horner(float c, float c_lo, vf32 x, vpair b)
{
    const vpair p = pair_mul(x, b);
    vpair s = pair_sum(v_f32(c), p.hi);
    s.lo = s.lo + (p.lo + v_f32(c_lo));
    return s;
}

V_INLINE vpair pair_square(vf32 x)
{
    const vf32 hi = x * x;
    return (vpair){hi, v_fma_f32(x, x, -hi)};
}

V_INLINE vpair pair_horner_pair(float c, float c_lo, vpair z, vpair b)
{
    vpair s = pair_horner(c, c_lo, z.hi, b);
    s.lo = v_fma_f32(z.lo, b.hi, s.lo);
    return s;
}

V_INLINE vpair pair_quotient(float n, float back, vpair d)
{
    const vf32 hi = v_f32(n) / d.hi;
    const vf32 rest = v_fma_f32(-hi, d.lo, v_fma_f32(-hi, d.hi, v_f32(n)));
    return (vpair){hi, rest * (hi * v_f32(back))};
}

V_INLINE vf32 one_minus(vpair q)
{
    const vpair s = pair_sum(v_f32(1.0f), -q.hi);
    return s.hi + (s.lo - q.lo);
}

V_INLINE vpair pair_scale(vpair p, vi32 n)
{
    const vf32 power = (vf32)((n + v_i32(127)) << 23);
    return (vpair){p.hi * power, p.lo * power};
}

V_INLINE vf32 magnitude(vf32 x)
{
    return (vf32)((vu32)x & v_u32(0x7fffffffu));
}

V_INLINE vf32 signed_as(vf32 magnitude, vf32 x)
{
    return (vf32)((vu32)magnitude | ((vu32)x & v_u32(0x80000000u)));
}

V_INLINE m32 is_nan(vf32 x)
{
    return m32_not(v_eq_f32(x, x));
}

/* c[0] + x (c[1] + x (...)), from the last on. */
V_INLINE vf32 horner(const float *c, size_t n, vf32 x)
{
    vf32 q = v_f32(c[n - 1]);
    for (size_t i = n - 1; i > 0; i--)
        q = v_fma_f32(q, x, v_f32(c[i - 1]));
    return q;
}

/* Functions are called, not copied into each loop over arrays: vectors are passed in registers. */
#define V_CALLED static __attribute__((noinline, unused))

/* ---- exp ---- */

typedef struct vargument {
    vf32 r, tail;
    vi32 n;
} vargument;

V_INLINE vargument exp_reduce(vf32 x)
{
    const vf32 big = v_fma_f32(x, v_f32(0x1.715476p+0f), v_f32(0x1.8p+23f));
    const vf32 n = big - v_f32(0x1.8p+23f);
    const vf32 part = v_fma_f32(-n, v_f32(MPSIM_LN2_HI), x);
    const vf32 r = v_fma_f32(-n, v_f32(MPSIM_LN2_LO), part);
    return (vargument){r, v_fma_f32(-n, v_f32(MPSIM_LN2_LO), part - r), (vi32)((vu32)big - v_u32(0x4b400000u))};
}

V_INLINE vpair exp_reduced(vf32 r, vf32 tail)
{
    static const float c[] = {0x1.555554p-3f, 0x1.5554e8p-5f, 0x1.11130ep-7f, 0x1.6d4cc2p-10f, 0x1.9dfbc6p-13f};
    vpair s = {horner(c, 5, r), v_f32(0.0f)};
    s = pair_horner(0.5f, 0.0f, r, s);
    s = pair_horner(1.0f, 0.0f, r, s);
    s = pair_horner(1.0f, 0.0f, r, s);
    s.lo = v_fma_f32(tail, s.hi, s.lo);
    return s;
}

V_INLINE vf32 exp_scale(vpair y, vi32 n)
{
    const vi32 code = (vi32)((vu32)(y.hi + y.lo) + ((vu32)n << 23));
    const vu32 c_bits = (vu32)(v_i32(1) - n) << 23;
    const vf32 c = (vf32)c_bits, t = c + y.hi, rest = (y.hi - (t - c)) + y.lo;
    const vu32 small = (vu32)(t + rest) - c_bits;
    return (vf32)v_pick_u32(v_gt_i32(code, v_i32(0x7fffff)), (vu32)code, small);
}

/* 0 for numbers below 2^-28, which no function of 1 + x sees: operations on subnormal numbers are slow. */
V_INLINE vf32 not_tiny(vf32 x)
{
    return (vf32)v_keep_u32(v_gt_f32(magnitude(x), v_f32(0x1p-28f)), (vu32)x);
}

V_CALLED vf32 vector_exp(vf32 x)
{
    const m32 large = v_gt_f32(x, v_f32(0x1.62e42ep+6f)), none = v_gt_f32(v_f32(-104.0f), x);
    const m32 far = m32_or(m32_or(large, none), is_nan(x));
    const vargument e = exp_reduce(not_tiny(pick(far, v_f32(0.0f), x)));
    const vf32 y = exp_scale(exp_reduced(e.r, e.tail), e.n);
    const vf32 other = pick(large, v_f32(INFINITY), pick(none, v_f32(0.0f), x + x));
    return pick(far, other, y);
}

V_INLINE vargument exp2_reduce(vf32 x)
{
    const vf32 big = x + v_f32(0x1.8p+23f), f = x - (big - v_f32(0x1.8p+23f)), r = f * v_f32(MPSIM_LN2);
    const vf32 tail = v_fma_f32(f, v_f32(MPSIM_LN2_REST), v_fma_f32(f, v_f32(MPSIM_LN2), -r));
    return (vargument){r, tail, (vi32)((vu32)big - v_u32(0x4b400000u))};
}

V_INLINE vf32 vector_exp2(vf32 x)
{
    const m32 none = v_gt_f32(v_f32(-150.0f), x), large = v_gt_f32(x, v_f32(0x1.fffffep+6f));
    const m32 far = m32_or(m32_or(large, none), is_nan(x));
    const vargument e = exp2_reduce(not_tiny(pick(far, v_f32(0.0f), x)));
    const vf32 y = exp_scale(exp_reduced(e.r, e.tail), e.n);
    const vf32 other = pick(large, v_f32(INFINITY), pick(none, v_f32(0.0f), x + x));
    return pick(far, other, y);
}

/* ---- tanh ---- */

V_INLINE vf32 tanh_near_zero(vf32 a)
{
    static const float c[] = {0x1.1110dcp-3f, -0x1.ba0994p-5f, 0x1.64e338p-6f, -0x1.13afb4p-7f, 0x1.39e42ep-9f};
    const vpair z = pair_square(a);
    vpair s = {horner(c, 5, z.hi), v_f32(0.0f)};
    s = pair_horner_pair(-0x1.555554p-2f, -0x1.daa832p-27f, z, s);
    s = pair_horner_pair(1.0f, 0.0f, z, s);
    s = pair_mul(a, s);
    return s.hi + s.lo;
}

V_CALLED vf32 vector_tanh(vf32 x)
{
    const vf32 a = magnitude(x);
    const m32 inside = v_gt_f32(v_f32(0x1.194p-1f), a), far = v_gt_f32(a, v_f32(9.02f));
    const m32 same = v_gt_f32(v_f32(0x1p-12f), a), nan = is_nan(x);
    const vf32 b = pick(m32_or(far, m32_or(same, nan)), v_f32(1.0f), a);
    const vargument e = exp_reduce(v_f32(2.0f) * b);
    const vpair y = pair_scale(exp_reduced(e.r, e.tail), e.n);
    vpair s = pair_sum(y.hi, v_f32(1.0f));
    s.lo = s.lo + y.lo;
    const vf32 outside = one_minus(pair_quotient(2.0f, 0.5f, s));
    const vf32 t = pick(far, v_f32(1.0f), pick(inside, tanh_near_zero(b), outside));
    return pick(nan, x + x, pick(same, x, signed_as(t, x)));
}

/* ---- erf ---- */

V_INLINE vf32 erf_near_zero(vf32 a)
{
    static const float c[] = {-0x1.b829a8p-6f, 0x1.5628f8p-8f, -0x1.bcbf48p-11f, 0x1.d82b56p-14f, -0x1.438fe8p-17f};
    const vpair z = pair_square(a);
    vpair s = {horner(c, 5, z.hi), v_f32(0.0f)};
    s = pair_horner_pair(0x1.ce2f08p-4f, -0x1.a2ecc6p-30f, z, s);
    s = pair_horner_pair(-0x1.812746p-2f, -0x1.7ec244p-28f, z, s);
    s = pair_horner_pair(0x1.20dd76p+0f, -0x1.f7ff24p-25f, z, s);
    s = pair_mul(a, s);
    return s.hi + s.lo;
}

V_INLINE vpair erf_tail(vf32 a)
{
    static const float c[] = {-0x1.bcda68p-4f, 0x1.9f517cp-6f,   -0x1.17e20cp-8f,
                              0x1.e2badcp-12f, -0x1.9f52d0p-16f, 0x1.c77a92p-23f};
    vpair s = {horner(c, 6, a), v_f32(0.0f)};
    s = pair_horner(-0x1.44212ep-1f, 0x1.3d9e42p-27f, a, s);
    s = pair_horner(-0x1.2130b4p+0f, 0x1.1f9102p-27f, a, s);
    s = pair_mul(a, s);
    const vf32 lo = s.lo;
    s = pair_sum(s.hi, v_f32(0x1.a7c7e6p-13f));
    s.lo = s.lo + lo;
    return s;
}

/* Of 0 <= a < 2^-64: only p(0) counts. */
V_INLINE vf32 erf_tiny(vf32 a)
{
    const m32 subnormal = v_gt_u32(v_u32(0x800000u), (vu32)a);
    const vf32 normal = (vf32)v_keep_u32(m32_not(subnormal), (vu32)a) * v_f32(0x1p64f);
    const vf32 lifted = pick(subnormal, v_f32_of_i32((vi32)a) * v_f32(0x1p-85f), normal);
    const vpair y = pair_mul(lifted, (vpair){v_f32(0x1.20dd76p+0f), v_f32(-0x1.f7ff24p-25f)});
    return exp_scale(pair_sum(y.hi, y.lo), v_i32(-64));
}

V_INLINE vf32 erf_inside(vf32 a)
{
    const m32 tiny = v_gt_f32(v_f32(0x1p-64f), a);
    const vf32 y = erf_near_zero(pick(tiny, v_f32(0.0f), a));
    return m32_any(tiny) ? pick(tiny, erf_tiny(pick(tiny, a, v_f32(0.0f))), y) : y;
}

V_CALLED vf32 vector_erf(vf32 x)
{
    const vf32 a = magnitude(x);
    const m32 inside = v_gt_f32(v_f32(1.0f), a), far = v_gt_f32(a, v_f32(3.92f)), nan = is_nan(x);
    const vf32 b = pick(m32_or(m32_or(far, nan), inside), v_f32(1.0f), a);
    const vpair p = erf_tail(b);
    const vargument e = exp_reduce(p.hi);
    const vpair y = pair_scale(exp_reduced(e.r, e.tail + p.lo), e.n);
    const vf32 t = pick(far, v_f32(1.0f), pick(inside, erf_inside(a), one_minus(y)));
    return pick(nan, x + x, signed_as(t, x));
}

/* ---- sigmoid ---- */

V_CALLED vf32 vector_sigmoid(vf32 x)
{
    const m32 large = v_gt_f32(x, v_f32(20.0f)), none = v_gt_f32(v_f32(-104.0f), x);
    const m32 far = m32_or(m32_or(large, none), is_nan(x));
    const vargument e = exp_reduce(-magnitude(not_tiny(pick(far, v_f32(0.0f), x))));
    const vpair y = exp_reduced(e.r, e.tail);
    const vpair u = pair_scale(y, v_max_i32(e.n, v_i32(-64)));
    vpair s = pair_sum(v_f32(1.0f), u.hi);
    s.lo = s.lo + u.lo;
    const vpair q = pair_quotient(1.0f, 1.0f, s);
    vpair p = pair_mul(q.hi, y);
    p.lo = v_fma_f32(q.lo, y.hi, p.lo);
    const vf32 below = exp_scale(pair_sum(p.hi, p.lo), e.n);
    const m32 negative = v_gt_f32(v_f32(0.0f), x);
    const vf32 other = pick(large, v_f32(1.0f), pick(none, v_f32(0.0f), x + x));
    return pick(far, other, pick(negative, below, q.hi + q.lo));
}

/* ---- arrays ---- */

/* The next lanes: n of them from memory, or all. */
V_INLINE vf32 take(const float *x, size_t n)
{
    return n < V_LANES ? (vf32)v_load_u32_part(x, n) : v_load_f32(x);
}

V_INLINE void give(float *y, vf32 v, size_t n)
{
    if (n < V_LANES)
        v_store_u32_part(y, (vu32)v, n);
    else
        v_store_f32(y, v);
}

#define ARRAY(name)                                                      \
    static void V_NAME(array_##name)(float *y, const float *x, size_t n) \
    {                                                                    \
        for (size_t i = 0; i < n; i += V_LANES)                          \
            give(y + i, vector_##name(take(x + i, n - i)), n - i);       \
    }
ARRAY(exp)
ARRAY(exp2)
ARRAY(tanh)
ARRAY(erf)
ARRAY(sigmoid)
#undef ARRAY

static mpsim_number_counts V_NAME(count_numbers)(const float *x, size_t n)
{
    const vu32 infinity = v_u32(0x7f800000u);
    const size_t filled = n % V_LANES ? V_LANES - n % V_LANES : 0; /* by zeros */
    mpsim_number_counts c = {0, 0};
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 m = (vu32)take(x + i, n - i) & v_u32(0x7fffffffu);
        const m32 finite = v_gt_u32(infinity, m);
        c.finite += m32_count(finite);
        c.nonzero += m32_count(m32_and(finite, v_test_u32(m, m)));
    }
    c.finite -= filled;
    return c;
}
