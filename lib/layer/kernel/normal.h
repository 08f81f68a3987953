/* normal.h -- normal numbers in vectors: log of (0, 1] and cos of a turn as ../scalar.h and ../functions.h have them.
 * Included by vector.h. */
#pragma once

#include "functions.h"

/* Of normal numbers up to 1. */
V_CALLED vf32 vector_log(vf32 x)
{
    static const float c[] = {-0x1.ffffd4p-3f, 0x1.999a14p-3f,  -0x1.5563a2p-3f, 0x1.248ef6p-3f, -0x1.fce8e4p-4f,
                              0x1.c411ccp-4f,  -0x1.bb27c8p-4f, 0x1.b357e0p-4f,  -0x1.e95876p-5f};
    const vu32 root = v_u32(0x3f3504f3u), u = (vu32)x + (v_u32(0x3f800000u) - root);
    const vf32 e = v_f32_of_i32((vi32)(u >> 23) - v_i32(127));
    const vf32 f = (vf32)((u & v_u32(0x7fffffu)) + root) - v_f32(1.0f);
    vpair s = {horner(c, 9, f), v_f32(0.0f)};
    s = pair_horner(0x1.555554p-2f, 0x1.5e308ap-27f, f, s);
    s = pair_horner(-0.5f, 0.0f, f, s);
    s = pair_horner(1.0f, 0.0f, f, s);
    s = pair_mul(f, s);
    const vpair sum = pair_sum(e * v_f32(MPSIM_LN2_HI), s.hi);
    return sum.hi + (sum.lo + v_fma_f32(e, v_f32(MPSIM_LN2_LO), s.lo));
}

/* ---- quarters of a turn ---- */

/* high 2^32 + low as hi + rest, in binary64; odd: hi with a last bit that says whether there is a rest, so that it may be
 * rounded once more. */
typedef struct vwide {
    vf64 hi, rest, odd;
} vwide;

V_INLINE vf64 f64_of_words(vu64 w)
{
    return (vf64)(w | v_u64(0x4330000000000000u)) - v_f64(0x1p52);
}

V_INLINE vwide wide_of(vu64 high, vu64 low)
{
    const vf64 h = f64_of_words(high) * v_f64(0x1p32), l = f64_of_words(low), s = h + l, rest = l - (s - h);
    const m64 even = m64_not(v_test_u64((vu64)s, v_u64(1)));
    const vu64 up = v_inc_u64(m64_and(even, v_gt_f64(rest, v_f64(0.0))), (vu64)s);
    return (vwide){s, rest, (vf64)v_pick_u64(m64_and(even, v_gt_f64(v_f64(0.0), rest)), up - v_u64(1), up)};
}

/* The integer high 2^32 + low, below 2^63, to the nearest number, and what is left to the nearest. */
V_INLINE vpair pair_of_words(vu32 high, vu32 low)
{
    const vwide a = wide_of(v_first_u64(high), v_first_u64(low)), b = wide_of(v_last_u64(high), v_last_u64(low));
    const vf32 hi = v_narrow_f32(a.odd, b.odd);
    return (vpair){hi, v_narrow_f32((a.hi - v_first_f64(hi)) + a.rest, (b.hi - v_last_f64(hi)) + b.rest)};
}

typedef struct vturn {
    vu32 quarters;
    vpair rest;
} vturn;

/* 32 bits of 2 / pi of which `before` and `behind` are those before and behind: from bit `at` on, 0 < at < 32. */
V_INLINE vu32 two_over_pi(uint32_t before, uint32_t behind, vu32 at)
{
    return v_shl_u32(v_u32(before), at) | v_shr_u32(v_u32(behind), v_u32(32) - at);
}

/* Of 2^-7 <= a < 2^25. */
V_INLINE vturn turn_of(vf32 a)
{
    const vu32 u = (vu32)a, m = (u & v_u32(0x7fffffu)) | v_u32(0x800000u), at = (u >> 23) - v_u32(120);
    const vu32 w1 = two_over_pi(0xa2f9836eu, 0x4e441529u, at), w2 = two_over_pi(0x4e441529u, 0xfc2757d1u, at);
    const vu64 even2 = v_mul_even_u32(m, w2), odd2 = v_mul_odd_u32(m, w2);
    const vu64 even1 = v_mul_even_u32(m, w1) + (even2 >> 32), odd1 = v_mul_odd_u32(m, w1) + (odd2 >> 32);
    const vu32 last = v_low_words(even2, odd2), middle = v_low_words(even1, odd1);
    const vu32 first = m * two_over_pi(0, 0xa2f9836eu, at) + v_high_words(even1, odd1);
    const vu32 high = first << 2 | middle >> 30, low = middle << 2 | last >> 30;
    const m32 beyond = v_top_u32(high), any = v_test_u32(low, low);
    const vu32 minus_high = v_pick_u32(any, ~high, v_u32(0) - high);
    const vpair p = pair_of_words(v_pick_u32(beyond, minus_high, high), v_pick_u32(beyond, v_u32(0) - low, low));
    const vpair unit = {v_f32(0x1.921fb6p-64f), v_f32(-0x1.777a5cp-89f)};
    vpair r = pair_mul(p.hi, unit);
    r.lo = v_fma_f32(p.lo, unit.hi, r.lo);
    r = pair_sum(r.hi, r.lo);
    return (vturn){v_inc_u32(beyond, first >> 30), {pick(beyond, -r.hi, r.hi), pick(beyond, -r.lo, r.lo)}};
}

V_INLINE vf32 sin_reduced(vpair r)
{
    static const float c[] = {0x1.111108p-7f, -0x1.a00efep-13f, 0x1.6cad28p-19f};
    const vpair z = pair_square(r.hi);
    vpair s = {horner(c, 3, z.hi), v_f32(0.0f)};
    s = pair_horner_pair(-0x1.555556p-3f, 0x1.671c66p-28f, z, s);
    s = pair_horner_pair(1.0f, 0.0f, z, s);
    s = pair_mul(r.hi, s);
    return s.hi + v_fma_f32(r.lo, v_fma_f32(v_f32(-0.5f), z.hi, v_f32(1.0f)), s.lo);
}

V_INLINE vf32 cos_reduced(vpair r)
{
    static const float c[] = {0x1.555556p-5f, -0x1.6c175ep-10f, 0x1.a071c6p-16f, -0x1.361c22p-22f};
    const vpair z = pair_square(r.hi);
    vpair s = {horner(c, 4, z.hi), v_f32(0.0f)};
    s = pair_horner_pair(-0.5f, 0.0f, z, s);
    s = pair_horner_pair(1.0f, 0.0f, z, s);
    const vf32 sine = r.hi * v_fma_f32(v_f32(-0x1.555556p-3f), z.hi, v_f32(1.0f));
    return s.hi + v_fma_f32(-r.lo, sine, s.lo);
}

/* Of 0 <= a < 2^25. */
V_CALLED vf32 vector_cos(vf32 a)
{
    const m32 near = v_gt_f32(v_f32(0x1.921fb6p-1f), a);
    vturn t = turn_of(pick(near, v_f32(1.0f), a));
    t.rest.hi = pick(near, a, t.rest.hi);
    t.rest.lo = pick(near, v_f32(0.0f), t.rest.lo);
    const vu32 quarters = v_pick_u32(near, v_u32(0), t.quarters) + v_u32(1);
    const vf32 y = pick(v_test_u32(quarters, v_u32(1)), cos_reduced(t.rest), sin_reduced(t.rest));
    return (vf32)((vu32)y ^ (quarters & v_u32(2)) << 30);
}

static void V_NAME(normal_numbers)(float deviation, float *y, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu64 a = v_load_u64(words + 2 * i), b = v_load_u64(words + 2 * i + V_LANES);
        const vi32 k = (vi32)(v_narrow_u32(a, b) >> 8) + v_i32(1), turn = (vi32)(v_narrow_u32(a >> 32, b >> 32) >> 8);
        const vf32 log = vector_log(v_f32_of_i32(k) * v_f32(0x1p-24f));
        const vf32 cos = vector_cos(v_f32_of_i32(turn) * v_f32(0x1p-24f) * v_f32(0x1.921fb6p+2f));
        give(y + i, v_f32(deviation) * (v_sqrt_f32(v_f32(-2.0f) * log) * cos), n - i);
    }
}
