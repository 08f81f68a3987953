/* functions.h -- tanh, erf, sigmoid, rsqrt, sin and cos in binary32, one number at a time. See
 * mpsim/transformer.h.
 *
 * As scalar.h: C17 and CUDA C++, the same bits: correctly rounded operations and integers in a fixed
 * order. What decides the last place is computed in pairs, as exp and log are. The polynomials are
 * weighted minimax fits (Remez' exchange on 400 points in 140 bits; a coefficient is rounded, from the
 * lowest on, and the others fitted again); their relative errors are beside them, roundings of
 * the coefficients included, those of the evaluation not. */
#pragma once

#include "scalar.h"

/* x^2, exact while it does not underflow. */
static inline MPSIM_HD mpsim_pair mpsim_pair_square(float x)
{
    mpsim_pair z;
    z.hi = mpsim_f32_mul(x, x);
    z.lo = mpsim_f32_fma(x, x, -z.hi);
    return z;
}

/* c + c_lo + z b: mpsim_pair_horner with an argument in two parts. */
static inline MPSIM_HD mpsim_pair mpsim_pair_horner_pair(float c, float c_lo, mpsim_pair z, mpsim_pair b)
{
    mpsim_pair s = mpsim_pair_horner(c, c_lo, z.hi, b);
    s.lo = mpsim_f32_fma(z.lo, b.hi, s.lo);
    return s;
}

/* n / d for n = 1 or 2 and back = 1 / n; hi: n / d.hi. */
static inline MPSIM_HD mpsim_pair mpsim_pair_quotient_of(float hi, float n, float back, mpsim_pair d)
{
    mpsim_pair q;
    q.hi = hi;
    const float rest = mpsim_f32_fma(-q.hi, d.lo, mpsim_f32_fma(-q.hi, d.hi, n));
    q.lo = mpsim_f32_mul(rest, mpsim_f32_mul(q.hi, back));
    return q;
}

static inline MPSIM_HD mpsim_pair mpsim_pair_quotient(float n, float back, mpsim_pair d)
{
    return mpsim_pair_quotient_of(mpsim_f32_div(n, d.hi), n, back, d);
}

/* 1 - q, |q| <= 1, rounded once. */
static inline MPSIM_HD float mpsim_one_minus(mpsim_pair q)
{
    const mpsim_pair s = mpsim_pair_sum(1.0f, -q.hi);
    return mpsim_f32_add(s.hi, mpsim_f32_sub(s.lo, q.lo));
}

static inline MPSIM_HD float mpsim_signed_as(float magnitude, float x)
{
    return mpsim_f32_bits(mpsim_bits_f32(magnitude) | (mpsim_bits_f32(x) & 0x80000000u));
}

static inline MPSIM_HD float mpsim_magnitude(float x)
{
    return mpsim_f32_bits(mpsim_bits_f32(x) & 0x7fffffffu);
}

/* p 2^n for -126 <= n <= 127, where that does not underflow. */
static inline MPSIM_HD mpsim_pair mpsim_pair_scale(mpsim_pair p, int32_t n)
{
    const float power = mpsim_f32_bits((uint32_t)(n + 127) << 23);
    p.hi = mpsim_f32_mul(p.hi, power);
    p.lo = mpsim_f32_mul(p.lo, power);
    return p;
}

/* ---- tanh ---- */

/* a + a^3 p(a^2) for 0 <= a < 0.5494, p of degree 5: 2^-34.9. */
static inline MPSIM_HD float mpsim_tanh_near_zero(float a)
{
    const mpsim_pair z = mpsim_pair_square(a);
    float q = 0x1.39e42ep-9f;
    q = mpsim_f32_fma(q, z.hi, -0x1.13afb4p-7f);
    q = mpsim_f32_fma(q, z.hi, 0x1.64e338p-6f);
    q = mpsim_f32_fma(q, z.hi, -0x1.ba0994p-5f);
    q = mpsim_f32_fma(q, z.hi, 0x1.1110dcp-3f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner_pair(-0x1.555554p-2f, -0x1.daa832p-27f, z, s);
    s = mpsim_pair_horner_pair(1.0f, 0.0f, z, s);
    s = mpsim_pair_mul(a, s);
    return mpsim_f32_add(s.hi, s.lo);
}

/* y + 1. */
static inline MPSIM_HD mpsim_pair mpsim_tanh_divisor(mpsim_pair y)
{
    mpsim_pair s = mpsim_pair_sum(y.hi, 1.0f);
    s.lo = mpsim_f32_add(s.lo, y.lo);
    return s;
}

/* 1 - 2 / (e^2a + 1) for 0 <= a <= 9.02. */
static inline MPSIM_HD float mpsim_tanh_far(float a)
{
    const mpsim_exp_argument e = mpsim_exp_reduce(mpsim_f32_mul(2.0f, a));
    const mpsim_pair s = mpsim_tanh_divisor(mpsim_pair_scale(mpsim_exp_reduced(e.r, e.tail), e.n));
    return mpsim_one_minus(mpsim_pair_quotient(2.0f, 0.5f, s));
}

/* mpsim_tanh_far where that is at least 1/2. */
static inline MPSIM_HD float mpsim_tanh_f32(float x)
{
    const float a = mpsim_magnitude(x);
    if (a < 0x1p-12f) /* the nearest number to x - x^3 / 3 */
        return x;
    if (a < 0x1.194p-1f)
        return mpsim_signed_as(mpsim_tanh_near_zero(a), x);
    if (x != x)
        return mpsim_f32_add(x, x);
    if (a > 9.02f)
        return mpsim_signed_as(1.0f, x);
    return mpsim_signed_as(mpsim_tanh_far(a), x);
}

/* ---- erf ---- */

/* a p(a^2) for 2^-64 <= a < 1, p of degree 7: 2^-34.7. */
static inline MPSIM_HD float mpsim_erf_ordinary(float a)
{
    const mpsim_pair z = mpsim_pair_square(a);
    float q = -0x1.438fe8p-17f;
    q = mpsim_f32_fma(q, z.hi, 0x1.d82b56p-14f);
    q = mpsim_f32_fma(q, z.hi, -0x1.bcbf48p-11f);
    q = mpsim_f32_fma(q, z.hi, 0x1.5628f8p-8f);
    q = mpsim_f32_fma(q, z.hi, -0x1.b829a8p-6f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner_pair(0x1.ce2f08p-4f, -0x1.a2ecc6p-30f, z, s);
    s = mpsim_pair_horner_pair(-0x1.812746p-2f, -0x1.7ec244p-28f, z, s);
    s = mpsim_pair_horner_pair(0x1.20dd76p+0f, -0x1.f7ff24p-25f, z, s);
    s = mpsim_pair_mul(a, s);
    return mpsim_f32_add(s.hi, s.lo);
}

/* The same from 0 on. */
static inline MPSIM_HD float mpsim_erf_near_zero(float a)
{
    if (a < 0x1p-64f) { /* only p(0) counts; the result may be subnormal */
        const mpsim_pair c = {0x1.20dd76p+0f, -0x1.f7ff24p-25f};
        const mpsim_pair y = mpsim_pair_mul(mpsim_f32_mul(a, 0x1p+64f), c);
        return mpsim_exp_scale(mpsim_pair_sum(y.hi, y.lo), -64);
    }
    return mpsim_erf_ordinary(a);
}

/* ln(1 - erf(a)) for 1 <= a < 3.93, of degree 8: it moves erf(a) by 2^-35.4 of it. */
static inline MPSIM_HD mpsim_pair mpsim_erf_tail(float a)
{
    float q = 0x1.c77a92p-23f;
    q = mpsim_f32_fma(q, a, -0x1.9f52d0p-16f);
    q = mpsim_f32_fma(q, a, 0x1.e2badcp-12f);
    q = mpsim_f32_fma(q, a, -0x1.17e20cp-8f);
    q = mpsim_f32_fma(q, a, 0x1.9f517cp-6f);
    q = mpsim_f32_fma(q, a, -0x1.bcda68p-4f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner(-0x1.44212ep-1f, 0x1.3d9e42p-27f, a, s);
    s = mpsim_pair_horner(-0x1.2130b4p+0f, 0x1.1f9102p-27f, a, s);
    s = mpsim_pair_mul(a, s);
    const float lo = s.lo;
    s = mpsim_pair_sum(s.hi, 0x1.a7c7e6p-13f);
    s.lo = mpsim_f32_add(s.lo, lo);
    return s;
}

/* erf(a) for 1 <= a <= 3.92, and a number below. */
static inline MPSIM_HD float mpsim_erf_far(float a)
{
    const mpsim_pair p = mpsim_erf_tail(a);
    const mpsim_exp_argument e = mpsim_exp_reduce(p.hi);
    const mpsim_pair y = mpsim_exp_reduced(e.r, mpsim_f32_add(e.tail, p.lo));
    return mpsim_one_minus(mpsim_pair_scale(y, e.n));
}

static inline MPSIM_HD float mpsim_erf_f32(float x)
{
    const float a = mpsim_magnitude(x);
    if (a < 1.0f)
        return mpsim_signed_as(mpsim_erf_near_zero(a), x);
    if (x != x)
        return mpsim_f32_add(x, x);
    if (a > 3.92f)
        return mpsim_signed_as(1.0f, x);
    return mpsim_signed_as(mpsim_erf_far(a), x);
}

/* ---- sigmoid ---- */

/* u = e^-|x| = y 2^n: 1 / (1 + u), or y / (1 + u) 2^n for negative x. */
static inline MPSIM_HD float mpsim_sigmoid_f32(float x)
{
    if (x != x)
        return mpsim_f32_add(x, x);
    if (x > 20.0f)
        return 1.0f;
    if (x < -104.0f)
        return 0.0f;
    const mpsim_exp_argument e = mpsim_exp_reduce(-mpsim_magnitude(x));
    const mpsim_pair y = mpsim_exp_reduced(e.r, e.tail);
    const mpsim_pair u = mpsim_pair_scale(y, e.n < -64 ? -64 : e.n);
    mpsim_pair s = mpsim_pair_sum(1.0f, u.hi);
    s.lo = mpsim_f32_add(s.lo, u.lo);
    const mpsim_pair q = mpsim_pair_quotient(1.0f, 1.0f, s);
    if (x >= 0.0f)
        return mpsim_f32_add(q.hi, q.lo);
    mpsim_pair p = mpsim_pair_mul(q.hi, y);
    p.lo = mpsim_f32_fma(q.lo, y.hi, p.lo);
    return mpsim_exp_scale(mpsim_pair_sum(p.hi, p.lo), e.n);
}

/* ---- rsqrt ---- */

/* 1 / sqrt(m) for m in [1, 4): the quotient and the root with their rests. */
static inline MPSIM_HD float mpsim_rsqrt_reduced(float m)
{
    const float s = mpsim_f32_sqrt(m);
    const float y = mpsim_f32_div(1.0f, s);
    const float of_root = mpsim_f32_fma(-s, s, m);
    const float of_quotient = mpsim_f32_fma(-y, s, 1.0f);
    const float half = mpsim_f32_mul(mpsim_f32_mul(-0.5f, y), y);
    return mpsim_f32_fma(y, mpsim_f32_fma(half, of_root, of_quotient), y);
}

/* x = m 4^k. */
static inline MPSIM_HD float mpsim_rsqrt_f32(float x)
{
    uint32_t u = mpsim_bits_f32(x);
    uint32_t power = (127 + 63) << 23; /* 2^63: 127 - (exponent - 1) / 2 with an even sum */
    if (x != x)
        return mpsim_f32_add(x, x);
    if (x == 0.0f)
        return mpsim_f32_bits(0x7f800000u | u);
    if (x < 0.0f)
        return mpsim_f32_bits(0x7fc00000u);
    if (u == 0x7f800000u)
        return 0.0f;
    if (u < 0x800000u) { /* subnormal */
        u = mpsim_bits_f32(mpsim_f32_mul(x, 0x1p+24f));
        power += 12 << 23;
    }
    const uint32_t odd = ~(u >> 23) & 1; /* the field of 1 is 127 */
    const uint32_t m = (u & 0x7fffffu) | (127 + odd) << 23;
    power -= ((u >> 23) - odd - 1) / 2 << 23; /* k + 63 */
    return mpsim_f32_mul(mpsim_rsqrt_reduced(mpsim_f32_bits(m)), mpsim_f32_bits(power));
}

/* ---- sin and cos ---- */

/* A number as quarters of a turn and the rest in radians, |rest| <= pi / 4. */
typedef struct mpsim_turn {
    uint32_t quarters; /* the last two bits count */
    mpsim_pair rest;
} mpsim_turn;

/* 32 bits of 2 / pi = 0.A2F9836E... from bit `at` on; bits 0 to 31 are before the point. */
static inline MPSIM_HD uint32_t mpsim_two_over_pi(uint32_t at)
{
    const uint32_t words[9] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                               0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
    const uint64_t two = (uint64_t)words[at / 32] << 32 | words[at / 32 + 1];
    return (uint32_t)(two >> (32 - at % 32));
}

/* a (from pi / 4 on) = m 2^e, m an integer: of 2 / pi only 96
 * bits count, those before give whole turns, those behind less than 2^-70 quarters. Their product
 * with m is exact; its first two bits are quarters, the other 94 bits of one (Payne and Hanek, 1983).
 * The rest has 64 bits, the smallest of all binary32 numbers about 2^-30: at least 33 are right. */
static inline MPSIM_HD mpsim_turn mpsim_turn_of(float a)
{
    const uint32_t u = mpsim_bits_f32(a), m = (u & 0x7fffffu) | 0x800000u;
    const uint32_t at = (u >> 23) - 120; /* e - 1 + 31 */
    const uint64_t last = (uint64_t)m * mpsim_two_over_pi(at + 64);
    const uint64_t middle = (uint64_t)m * mpsim_two_over_pi(at + 32) + (last >> 32);
    const uint32_t first = m * mpsim_two_over_pi(at) + (uint32_t)(middle >> 32);
    const uint64_t bits = (uint64_t)first << 32 | (uint32_t)middle;
    const uint64_t fraction = bits << 2 | (uint32_t)last >> 30; /* of a quarter, 2^64 */
    const int beyond = (int)(fraction >> 63);                   /* of the middle: the next one */
    const uint64_t rest = beyond ? 0 - fraction : fraction;
    const float hi = (float)rest; /* to nearest, as conversions are */
    const uint64_t back = (uint64_t)hi;
    const float lo = rest >= back ? (float)(rest - back) : -(float)(back - rest);
    const mpsim_pair unit = {0x1.921fb6p-64f, -0x1.777a5cp-89f}; /* pi / 2 2^-64 */
    mpsim_pair r = mpsim_pair_mul(hi, unit);
    r.lo = mpsim_f32_fma(lo, unit.hi, r.lo);
    r = mpsim_pair_sum(r.hi, r.lo);
    mpsim_turn t;
    t.quarters = (first >> 30) + (uint32_t)beyond;
    t.rest.hi = beyond ? -r.hi : r.hi;
    t.rest.lo = beyond ? -r.lo : r.lo;
    return t;
}

/* r + r^3 p(r^2) for |r| <= pi / 4, p of degree 3: 2^-37. */
static inline MPSIM_HD float mpsim_sin_reduced(mpsim_pair r)
{
    const mpsim_pair z = mpsim_pair_square(r.hi);
    float q = 0x1.6cad28p-19f;
    q = mpsim_f32_fma(q, z.hi, -0x1.a00efep-13f);
    q = mpsim_f32_fma(q, z.hi, 0x1.111108p-7f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner_pair(-0x1.555556p-3f, 0x1.671c66p-28f, z, s);
    s = mpsim_pair_horner_pair(1.0f, 0.0f, z, s);
    s = mpsim_pair_mul(r.hi, s);
    s.lo = mpsim_f32_fma(r.lo, mpsim_f32_fma(-0.5f, z.hi, 1.0f), s.lo);
    return mpsim_f32_add(s.hi, s.lo);
}

/* 1 - r^2 / 2 + r^4 p(r^2) for |r| <= pi / 4, p of degree 3: 2^-37. */
static inline MPSIM_HD float mpsim_cos_reduced(mpsim_pair r)
{
    const mpsim_pair z = mpsim_pair_square(r.hi);
    float q = -0x1.361c22p-22f;
    q = mpsim_f32_fma(q, z.hi, 0x1.a071c6p-16f);
    q = mpsim_f32_fma(q, z.hi, -0x1.6c175ep-10f);
    q = mpsim_f32_fma(q, z.hi, 0x1.555556p-5f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner_pair(-0.5f, 0.0f, z, s);
    s = mpsim_pair_horner_pair(1.0f, 0.0f, z, s);
    const float sine = mpsim_f32_mul(r.hi, mpsim_f32_fma(-0x1.555556p-3f, z.hi, 1.0f));
    s.lo = mpsim_f32_fma(-r.lo, sine, s.lo);
    return mpsim_f32_add(s.hi, s.lo);
}

/* The sine of a, or of a quarter more: of a >= 0, finite. */
static inline MPSIM_HD float mpsim_sin_quarters(float a, uint32_t more)
{
    mpsim_turn t;
    if (a < 0x1.921fb6p-1f) {
        t.quarters = 0;
        t.rest.hi = a;
        t.rest.lo = 0.0f;
    } else {
        t = mpsim_turn_of(a);
    }
    t.quarters += more;
    const float y = t.quarters & 1 ? mpsim_cos_reduced(t.rest) : mpsim_sin_reduced(t.rest);
    return t.quarters & 2 ? -y : y;
}

static inline MPSIM_HD float mpsim_sin_f32(float x)
{
    const float a = mpsim_magnitude(x);
    if (a < 0x1p-12f) /* the nearest number to x - x^3 / 6 */
        return x;
    if (!(a < mpsim_f32_bits(0x7f800000u)))
        return mpsim_f32_sub(x, x);
    const float y = mpsim_sin_quarters(a, 0);
    return x < 0.0f ? -y : y;
}

static inline MPSIM_HD float mpsim_cos_f32(float x)
{
    const float a = mpsim_magnitude(x);
    if (!(a < mpsim_f32_bits(0x7f800000u)))
        return mpsim_f32_sub(x, x);
    return mpsim_sin_quarters(a, 1);
}
