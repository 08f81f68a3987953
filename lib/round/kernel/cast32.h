/* cast32.h -- casting binary32 in lanes of 32 bits; the notation is that of kernel.h. */
#pragma once

#include "kernel.h"
#include "philox.h"

#define CAST_TOP 0x80000000u

/* V_LANES results from element i on. */
V_INLINE void cast_put(void *out, size_t i, vu32 result, int bytes, int stream)
{
    unsigned char *to = (unsigned char *)out + i * (size_t)bytes;
    if (stream) {
        if (bytes == 4)
            v_stream_u32(to, result);
        else if (bytes == 2)
            v_stream_u16(to, result);
        else
            v_stream_u8(to, result);
    } else if (bytes == 4) {
        v_store_u32(to, result);
    } else if (bytes == 2) {
        v_store_u16(to, result);
    } else {
        v_store_u8(to, result);
    }
}

/* By sign. */
V_INLINE vu32 cast_by(m32 negative, const vu32 by[2])
{
    return v_pick_u32(negative, by[1], by[0]);
}

/* E of magnitudes a: a subnormal number is an integer, whose conversion is exact. */
V_INLINE vu32 cast_extended(vu32 a)
{
    const vi32 t = (vi32)(a & 0x7fffff);
    return v_pick_u32(v_gt_i32(v_i32(0x800000), (vi32)a), (vu32)v_f32_of_i32(t) - (149u << 23), a);
}

/* E times a significand s + s_low / 2^32 that has its point after the top bit. */
V_INLINE vu32 cast_product(vu32 e, vu32 s, vu32 s_low, int low)
{
    const vu32 sig = e << 8 | CAST_TOP;
    vu64 even = v_mul_even_u32(sig, s), odd = v_mul_odd_u32(sig, s);
    vu32 lost = {0};
    if (low) {
        const vu64 even_low = v_mul_even_u32(sig, s_low), odd_low = v_mul_odd_u32(sig, s_low);
        even += even_low >> 32;
        odd += odd_low >> 32;
        lost = v_low_words(even_low, odd_low);
    }
    const vu32 high = v_high_words(even, odd), top = high >> 31;
    const vu32 q = v_shr_u32(high, top + 7);
    lost |= v_low_words(even, odd) | (high ^ v_shl_u32(q, top + 7));
    const vu32 jammed = v_pick_u32(v_eq_u32(lost, v_u32(0)), q, q | 1);
    return (e & 0xff800000u) + (top << 23) + (jammed - 0x800000);
}

#ifdef V_NEAR
/* The same for a scale of 24 bits, s in [1, 2), whose product with a is far from both ends of the
 * exponents wherever a bit of it matters. */
V_INLINE vu32 cast_product_near(vu32 a, vf32 s)
{
    const vf32 p = v_cut_mul_f32((vf32)a, s), rest = v_near_rest_f32((vf32)a, s, p);
    const m32 exact = v_eq_u32((vu32)rest, v_u32(0));
    return v_pick_u32(exact, (vu32)p, (vu32)p | 1);
}

/* Likewise with any exponents: only the significands are multiplied. */
V_INLINE vu32 cast_product_apart(vu32 e, vf32 s)
{
    const vu32 one = v_u32(0x3f800000), sig = v_bits_u32(v_u32(0x7fffff), e, one);
    return (e & 0xff800000u) + (cast_product_near(sig, s) - one);
}
#endif

/* An extended magnitude above zero as a binary32 number. */
V_INLINE vu32 cast_contracted(vu32 e)
{
    const vu32 sig = (e & 0x7fffff) | 0x800000, n = 1 - (vu32)((vi32)e >> 23);
    return v_pick_u32(v_gt_i32(v_i32(0x800000), (vi32)e), v_shr_u32(sig, n), e);
}

/* ---- decisions of the stochastic modes ---- */

/* Stochastic: whether b / 2^d rounds away. The fraction f = floor(nu 2^32); with a draw R of N bits at
 * the top of the lane,
 *     A: away if f + R >= 2^32                            f > ~R
 *     B: f + half of the last bit + R >= 2^32             f > ~(R | half)
 *     C: as B, but f > ~(R | half) + 1 where the bit above `half` is 0: a tie goes to even.
 * Bits of nu beyond f are asked for where f is just there: they decide B and C of 32 bits (ties 1: B,
 * 2: C), and whether C's tie is one (ties 3). */
typedef struct cast_draws {
    vu32 draw, half, even, tie;
    int last, ties, to_even;
} cast_draws;

V_INLINE cast_draws cast_draws_of(const mpsim_cast_constants *k)
{
    const cast_draws r = {v_u32((uint32_t)k->draw),
                          v_u32((uint32_t)k->half),
                          v_u32((uint32_t)k->even),
                          v_u32(k->ties == 3),
                          k->last,
                          k->ties,
                          k->even};
    return r;
}

/* Which of the lanes `close` do. */
V_INLINE m32 cast_tie(int ties, m32 close, vu32 b, vu32 past, vu32 f)
{
    const vu32 half = v_u32(CAST_TOP), none = v_u32(0);
    const vu32 far = v_keep_u32(v_gt_i32((vi32)past, v_i32(32)), v_u32(1));
    const vu32 beyond = v_shl_u32(b, 32 - past) | v_shr_u32(b, past - 32) | far;
    const vu32 least = ties == 1 ? half - 1 : ties == 2 ? half - (f & 1) : none;
    const m32 deep = m32_and(v_gt_i32((vi32)past, v_i32(0)), v_gt_i32((vi32)b, (vi32)none));
    return m32_and(m32_and(close, deep), v_gt_u32(beyond, least));
}

/* past = d - 32: where that is above 0, so many bits are beyond f; room = -past. */
V_INLINE m32 cast_draw(const cast_draws *r, vu32 b, vu32 room, vu32 past, vu32 word, const int flat)
{
    const vu32 f = flat ? v_shl_u32(b, room) : v_shl_u32(b, room) | v_shr_u32(b, past);
    const vu32 limit = ~((word & r->draw) | r->half);
    m32 away = v_gt_u32(f, limit);
    if (r->to_even)
        away = v_gt_u32(f, limit + (~(f >> r->last) & r->even));
    if (flat || !r->ties)
        return away;
    const m32 close = v_eq_u32(f, limit + r->tie);
    if (__builtin_expect(m32_any(close), 0))
        return m32_or(away, cast_tie(r->ties, close, b, past, f));
    return away;
}

/* Draws that are added as they are (A; B and C of 32 bits): b / 2^d and R / 2^32 make floor((b + R / 2^(32 - d)) / 2^d), which 32 bits
 * hold up to d = 31; then no bit of nu is beyond f, either. Lanes further down are decided as above. */
V_INLINE vu32 cast_drawn(const cast_draws *r, vu32 b, vu32 d, vu32 room, vu32 word, const int flat)
{
    const vu32 m = v_shr_u32(b + v_shr_u32(word & r->draw, room), d);
    if (flat)
        return m;
    const m32 far = m32_and(v_gt_i32((vi32)d, v_i32(31)), v_gt_i32((vi32)b, v_i32(0)));
    if (__builtin_expect(!m32_any(far), 1))
        return m;
    return v_inc_u32(m32_and(far, cast_draw(r, b, room, -room, word, 0)), m);
}

/* ---- without counts: signed formats with a zero, whose values are normal numbers or their shifted
 * codes. The modes: NEAR is nearest-even, FIXED any deterministic one, RANDOM, DRAWN those of cast_drawn ---- */

enum { CAST_NEAR, CAST_FIXED, CAST_RANDOM, CAST_DRAWN };

typedef struct cast_limits { /* deterministic modes */
    vu32 threshold[2], by_odd, by_sign;
} cast_limits;

V_INLINE cast_limits cast_limits_of(const mpsim_cast_constants *k)
{
    const cast_limits c = {{v_u32((uint32_t)k->threshold[0]), v_u32((uint32_t)k->threshold[1])},
                           v_u32((uint32_t)k->by_odd),
                           v_u32(k->by_sign ? CAST_TOP : 0)};
    return c;
}

typedef struct cast_lean_constants {
    vu32 below, sign_bit, drop_base, past, base, unscale, max, subnormal, least, over[2];
} cast_lean_constants;

V_INLINE cast_lean_constants cast_lean_of(const mpsim_cast_constants *k)
{
    const cast_lean_constants c = {
        v_u32((uint32_t)k->below),      v_u32((uint32_t)k->sign_bit),
        v_u32((uint32_t)k->drop_base),  v_u32((uint32_t)k->drop_base - 32),
        v_u32((uint32_t)k->base << 23), v_u32((uint32_t)k->scale_exp << 23),
        v_u32((uint32_t)k->max_finite), v_u32((uint32_t)k->normal - 1),
        v_u32((uint32_t)k->least),      {v_u32((uint32_t)k->over[0]), v_u32((uint32_t)k->over[1])}};
    return c;
}

/* Infinities and NaN among the results. */
V_INLINE vu32 cast_special(const mpsim_cast_constants *k, vu32 a, m32 negative, m32 special, vu32 result)
{
    const vu32 infinite[2] = {v_u32((uint32_t)k->infinite[0]), v_u32((uint32_t)k->infinite[1])};
    const vu32 nan[2] = {v_u32((uint32_t)k->nan[0]), v_u32((uint32_t)k->nan[1])};
    const vu32 payload = a >> k->payload_shift & (uint32_t)k->payload;
    const m32 is_nan = v_gt_i32((vi32)a, v_i32(0x7f800000));
    const vu32 quiet = v_pick_u32(v_eq_u32(payload, v_u32(0)), v_u32(0), v_u32((uint32_t)k->quiet));
    const vu32 specials = v_pick_u32(is_nan, cast_by(negative, nan) | payload | quiet, cast_by(negative, infinite));
    return v_pick_u32(special, specials, result);
}

V_INLINE void cast_lean(const mpsim_cast_constants *k, void *out, const void *x, size_t n, const uint32_t *words,
                        const int flat, const int product, const int mode, const int values)
{
    const int drop = k->drop, bytes = k->bytes, stream = k->stream, sign_shift = k->sign_shift, one_zero = k->one_zero,
              wide = k->wide, flush = k->flush, shifted = k->flat_values, near_scale = k->near_scale,
              by_sign = k->over_by_sign;
    (void)near_scale;
    const cast_lean_constants c = cast_lean_of(k);
    const cast_limits limits = cast_limits_of(k);
    const cast_draws draws = cast_draws_of(k);
    const vu32 zero = v_u32(0), one = v_u32(1), top = v_u32(CAST_TOP), last = v_u32(0x7f7fffff);
    const vu32 exponent = v_u32(0xff800000u), implicit = v_u32(0x800000);
    const vu32 s = v_u32((uint32_t)(k->scale >> 32)), s_low = v_u32((uint32_t)k->scale);
    const vu32 down = v_u32((uint32_t)sign_shift);
    words_source source;
    if (mode >= CAST_RANDOM)
        words_begin(&source, words, k->seed, k->word_stream, k->index);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 word = mode >= CAST_RANDOM ? v_load_u32(words_at(&source, i)) : zero;
        const vu32 u = v_load_u32((const unsigned char *)x + 4 * i), a = u & ~top;
        const m32 kept = v_gt_i32((vi32)a, (vi32)c.below);
        vu32 e = a, h = zero, d = v_u32((uint32_t)drop), room = 32 - d, past = room;
        if (!flat && wide)
            e = cast_extended(a);
#ifdef V_NEAR
        if (product && near_scale == 1)
            e = cast_product_near(a, (vf32)((s >> 8 & 0x7fffff) | 0x3f800000));
        else if (product && near_scale)
            e = cast_product_apart(e, (vf32)((s >> 8 & 0x7fffff) | 0x3f800000));
        else
#endif
            if (product)
            e = cast_product(e, s, s_low, (uint32_t)k->scale != 0);
        if (!flat) {
            h = (vu32)v_min_i32((vi32)c.base, (vi32)((e & exponent) - implicit));
            d = c.drop_base - (vu32)((vi32)h >> 23);
            room = (vu32)((vi32)h >> 23) - c.past;
            past = c.past - (vu32)((vi32)h >> 23);
            if (mode == CAST_FIXED) /* bits further down decide as they do there */
                d = (vu32)v_min_i32((vi32)d, v_i32(31));
        }
        const vu32 b = v_keep_u32(kept, e - h), low = flat && mode != CAST_DRAWN ? b >> drop : v_shr_u32(b, d);
        const vu32 rest = flat ? b << 1 << (31 - drop) : v_shl_u32(b, 32 - d);
        m32 away = kept;
        if (mode == CAST_NEAR) { /* rest + odd > half */
            away = v_gt_i32((vi32)(rest + v_bits_u32(one, low, top)), (vi32)zero);
        } else if (mode == CAST_FIXED) {
            const m32 other = v_test_u32((low & limits.by_odd) | (u & limits.by_sign), top | one);
            away = v_gt_u32(rest, v_pick_u32(other, limits.threshold[1], limits.threshold[0]));
        } else if (mode == CAST_RANDOM) {
            away = cast_draw(&draws, b, room, past, word, flat);
        }
        vu32 m = mode == CAST_DRAWN ? cast_drawn(&draws, b, d, room, word, flat) : v_inc_u32(away, low);
        if (flush)
            m = v_keep_u32(v_gt_i32((vi32)m, (vi32)c.subnormal), m);
        const m32 above = v_gt_i32((vi32)m, (vi32)zero);
        vu32 number = m, sign = values ? u : v_shr_u32(u, down);
        if (values && (flat || shifted)) {
            number = m << drop;
        } else if (values) {
            number = v_keep_u32(above, v_shl_u32(m, d) + h + c.unscale);
            if (mode != CAST_NEAR)
                number = v_pick_u32(v_eq_u32(m, one), c.least, number);
        }
        if (one_zero)
            sign = v_keep_u32(above, sign);
        const m32 over = v_gt_i32((vi32)m, (vi32)c.max), special = v_gt_i32((vi32)a, (vi32)last);
        vu32 result = v_bits_u32(c.sign_bit, sign, v_pick_u32(over, c.over[0], number));
        if (by_sign)
            result = v_pick_u32(over, cast_by(v_top_u32(u), c.over), result);
        if (__builtin_expect(m32_any(special), 0))
            result = cast_special(k, a, v_top_u32(u), special, result);
        cast_put(out, i, result, bytes, stream);
    }
}

#ifdef V_NEAR
/* Results of sources u of magnitude a whose codes or values are `number`, signs and what is beyond all
 * numbers apart. */
V_INLINE vu32 cast_signed(const mpsim_cast_constants *k, vu32 u, vu32 a, vu32 number)
{
    if (k->flush)
        number = v_keep_u32(v_gt_i32((vi32)number, v_i32((int32_t)k->flush_value)), number);
    const vu32 over[2] = {v_u32((uint32_t)k->over[0]), v_u32((uint32_t)k->over[1])};
    const m32 beyond = v_gt_i32((vi32)number, v_i32((int32_t)k->max_value));
    const m32 special = v_gt_i32((vi32)a, v_i32(0x7f7fffff));
    vu32 sign = u >> k->sign_shift;
    if (k->one_zero)
        sign = v_keep_u32(v_gt_i32((vi32)number, v_i32(0)), sign);
    vu32 result = v_bits_u32(v_u32((uint32_t)k->sign_bit), sign, v_pick_u32(beyond, over[0], number));
    if (k->over_by_sign)
        result = v_pick_u32(beyond, cast_by(v_top_u32(u), over), result);
    if (__builtin_expect(m32_any(special), 0))
        result = cast_special(k, a, v_top_u32(u), special, result);
    return result;
}

enum { SUMS_NEAR, SUMS_CUT, SUMS_UP, SUMS_DOWN };

/* b + much, rounded so; up and down with the signs of u, and where even the least number counts, though
 * an environment may take subnormal numbers for zeros. */
V_INLINE vu32 cast_sum_to(vu32 u, vu32 b, vu32 much, const int to)
{
    if (to == SUMS_NEAR)
        return (vu32)v_near_add_f32((vf32)b, (vf32)much);
    if (to == SUMS_CUT)
        return (vu32)v_cut_add_f32((vf32)b, (vf32)much);
    const vu32 sign = u & CAST_TOP, some = v_keep_u32(v_gt_i32((vi32)b, v_i32(0)), v_u32(0x800000));
    const vf32 x = (vf32)(v_max_u32(b, some) | sign), y = (vf32)(much | sign);
    return (vu32)(to == SUMS_UP ? v_up_add_f32(x, y) : v_down_add_f32(x, y)) & ~CAST_TOP;
}

/* By a sum: h is so large a power of two that the last bit of a + h is that of the result,
 * which has the significand with its leading bit below h. Where k->near_sums says that all is normal. */
V_INLINE void cast_sums(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const int to,
                        const int values)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    const uint32_t lowest = (uint32_t)(k->near_base + 1) << 23, above = (uint32_t)k->near_drop << 23;
    const vu32 exponent = v_u32(0x7f800000), huge = v_u32((uint32_t)k->near_huge << 23), least = v_u32(lowest),
               up = v_u32(above), first = v_u32((lowest >> k->near_drop) + above);
    const vf32 scale = (vf32)v_u32((uint32_t)(k->scale_exp + 127) << 23);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 u = v_load_u32((const unsigned char *)x + 4 * i), a = u & 0x7fffffff;
        const vu32 b = v_min_u32(a, huge), h = v_max_u32(b & exponent, least);
        const vu32 much = h + up, sum = cast_sum_to(u, b, much, to);
        const vu32 number = values ? (vu32)v_near_mul_f32(v_near_sub_f32((vf32)sum, (vf32)much), scale)
                                   : sum - h + ((h >> k->near_drop) - first);
        cast_put(out, i, cast_signed(k, u, a, number), k->bytes, k->stream);
    }
}
#endif

/* Nearest-even to the powers of two from 2^-127 on, without a sign and a zero: the code is binary32's
 * exponent field, up to 2^-126 by one bit less. A tie goes to the even code; up to 2^-128 there is none. */
V_INLINE void cast_power(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const int values)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    const vu32 normal = v_u32(0x3fffff), subnormal = v_u32(0x1fffff), least = v_u32(0x400000);
    const vu32 over = v_u32((uint32_t)k->over[0]), small = v_u32((uint32_t)k->small[0]),
               refused = v_u32((uint32_t)k->negative), sign = v_u32((uint32_t)k->sign);
    const vu32 zero[2] = {v_u32((uint32_t)k->zero[0]), v_u32((uint32_t)k->zero[1])};
    const vi32 max = v_i32((int32_t)k->max_finite - 1), below = v_i32((int32_t)k->below);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 u = v_load_u32((const unsigned char *)x + 4 * i), a = u & 0x7fffffff;
        const vu32 half = v_pick_u32(v_gt_i32((vi32)a, v_i32(0x7fffff)), normal, subnormal);
        const vu32 code = (a + half + (a >> 23 & 1)) >> 23;
        const m32 negative = v_top_u32(u & sign), special = v_gt_i32((vi32)a, v_i32(0x7f7fffff));
        vu32 result = values ? (vu32)v_max_i32((vi32)(code << 23), (vi32)least) : code;
        result = v_pick_u32(v_gt_i32((vi32)code, max), over, result);
        result = v_pick_u32(v_gt_i32((vi32)a, v_i32(0x200000)), result, small);
        result = v_pick_u32(negative, refused, result);
        result = v_pick_u32(v_gt_i32((vi32)a, below), result, cast_by(negative, zero));
        if (__builtin_expect(m32_any(special), 0))
            result = cast_special(k, a, negative, special, result);
        cast_put(out, i, result, k->bytes, k->stream);
    }
}

/* ---- everything ---- */

typedef struct cast_tally {
    vu32 inexact, underflow, subnormal, overflow, nan;
} cast_tally;

V_INLINE uint64_t cast_sum(vu32 a)
{
    return v_sum_u64(v_first_u64(a)) + v_sum_u64(v_last_u64(a));
}

V_INLINE void cast_add(mpsim_counts *to, const cast_tally *t)
{
    to->inexact += cast_sum(t->inexact);
    to->underflow += cast_sum(t->underflow);
    to->subnormal += cast_sum(t->subnormal);
    to->overflow += cast_sum(t->overflow);
    to->nan += cast_sum(t->nan);
}

/* Deterministic: `rest` is the fraction. */
V_INLINE m32 cast_decide(const mpsim_cast_constants *k, vu32 rest, vu32 low, vu32 u)
{
    vu32 odd = (low ^ (uint32_t)k->no_zero) & (uint32_t)k->by_odd;
    if (k->no_zero) /* nothing below the smallest number: even */
        odd = v_keep_u32(v_gt_i32((vi32)low, v_i32(0)), odd);
    const vu32 which = odd | (u >> 31 & (uint32_t)k->by_sign);
    const vu32 threshold = v_pick_u32(v_gt_i32((vi32)which, v_i32(0)), v_u32((uint32_t)k->threshold[1]),
                                      v_u32((uint32_t)k->threshold[0]));
    return v_gt_u32(rest, threshold);
}

/* The value whose code (+ no_zero) is m: A was shifted by d and is E - h. */
V_INLINE vu32 cast_value(const mpsim_cast_constants *k, vu32 m, vu32 d, vu32 h)
{
    if (k->flat_values)
        return m << k->drop;
    const vu32 e = v_shl_u32(m, d) + h + ((uint32_t)k->scale_exp << 23);
    const vu32 value = k->subnormal_values ? cast_contracted(e) : e;
    return v_pick_u32(v_eq_u32(m, v_u32(1)), v_u32((uint32_t)k->least), value);
}

/* What V_LANES results became on the way; `kept` are the elements that are not zero. */
typedef struct cast_lanes {
    vu32 u, a, m, rest;
    m32 kept, negative, special, over, zero;
} cast_lanes;

V_INLINE void cast_count(const mpsim_cast_constants *k, cast_tally *t, const cast_lanes *l, m32 refused)
{
    const vu32 none = v_u32(0);
    const m32 live = m32_and(l->kept, m32_not(l->special));
    const m32 exact = v_eq_u32(l->rest, none);
    const m32 tiny = m32_and(v_gt_i32(v_i32((int32_t)k->normal), (vi32)l->m), m32_not(refused));
    const m32 beyond = m32_and(m32_or(l->over, refused), live);
    m32 inexact = m32_or(m32_not(exact), m32_or(l->over, refused)), under = l->zero;
    m32 subnormal = m32_and(tiny, m32_not(l->zero));
    if (k->no_zero)
        under = m32_and(under, v_gt_i32(v_i32(0), v_i32(0)));
    if (k->flush) {
        inexact = m32_or(inexact, subnormal);
        under = m32_or(under, subnormal);
        subnormal = m32_and(subnormal, m32_not(subnormal));
    }
    under = m32_and(under, live);
    inexact = m32_and(inexact, live);
    const m32 read_as_zero = m32_and(m32_not(l->kept), m32_not(v_eq_u32(l->a, none)));
    if (k->no_zero) {
        inexact = m32_or(inexact, m32_not(l->kept));
        t->overflow = v_inc_u32(m32_and(m32_not(l->kept), l->negative), t->overflow);
    } else {
        inexact = m32_or(inexact, read_as_zero);
        under = m32_or(under, read_as_zero);
    }
    t->inexact = v_inc_u32(inexact, t->inexact);
    t->underflow = v_inc_u32(under, t->underflow);
    t->subnormal = v_inc_u32(m32_and(subnormal, live), t->subnormal);
    t->overflow = v_inc_u32(beyond, t->overflow);
    t->nan = v_inc_u32(v_gt_i32((vi32)l->a, v_i32(0x7f800000)), t->nan);
}

/* The result of elements whose code (+ no_zero) is l->m, as a code or as `value`. */
V_INLINE vu32 cast_result(const mpsim_cast_constants *k, const cast_lanes *l, vu32 value, m32 refused, const int values)
{
    const vu32 zero[2] = {v_u32((uint32_t)k->zero[0]), v_u32((uint32_t)k->zero[1])};
    const vu32 small[2] = {v_u32((uint32_t)k->small[0]), v_u32((uint32_t)k->small[1])};
    const vu32 over[2] = {v_u32((uint32_t)k->over[0]), v_u32((uint32_t)k->over[1])};
    const vu32 number = values ? value : l->m - (uint32_t)k->no_zero;
    const vu32 sign = l->u >> k->sign_shift;
    vu32 result = v_bits_u32(v_u32((uint32_t)k->sign_bit), sign, number);
    result = v_pick_u32(l->over, cast_by(l->negative, over), result);
    if (k->flush)
        result = v_pick_u32(v_gt_i32(v_i32((int32_t)k->normal), (vi32)l->m), cast_by(l->negative, zero), result);
    result = v_pick_u32(l->zero, cast_by(l->negative, small), result);
    if (k->is_unsigned)
        result = v_pick_u32(refused, v_u32((uint32_t)k->negative), result);
    if (k->no_zero)
        result = v_pick_u32(l->kept, result, cast_by(l->negative, zero));
    if (__builtin_expect(m32_any(l->special), 0))
        result = cast_special(k, l->a, l->negative, l->special, result);
    return result;
}

V_INLINE void cast_full(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const uint32_t *words,
                        mpsim_counts *counts, const int flat, const int product, const int random, const int values,
                        const int count)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    cast_tally tally = {v_u32(0), v_u32(0), v_u32(0), v_u32(0), v_u32(0)};
    for (size_t i = 0; i < n; i += V_LANES) {
        cast_lanes l;
        l.u = v_load_u32((const unsigned char *)x + 4 * i);
        l.a = l.u & 0x7fffffff;
        l.negative = v_top_u32(l.u & (uint32_t)k->sign);
        l.kept = v_gt_i32((vi32)l.a, v_i32((int32_t)k->below));
        l.special = v_gt_i32((vi32)l.a, v_i32(0x7f7fffff));
        vu32 e = flat ? l.a : cast_extended(l.a), h = v_u32(0), d = v_u32((uint32_t)k->drop);
        if (product)
            e = cast_product(e, v_u32((uint32_t)(k->scale >> 32)), v_u32((uint32_t)k->scale), (uint32_t)k->scale != 0);
        if (!flat) {
            h = (vu32)v_min_i32(v_i32((int32_t)((uint32_t)k->base << 23)), (vi32)((e & 0xff800000u) - 0x800000));
            d = (uint32_t)k->drop_base - (vu32)((vi32)h >> 23);
            if (!random) /* bits further down decide as they do there */
                d = v_min_u32(d, v_u32(31));
        }
        const vu32 b = v_keep_u32(l.kept, e - h);
        const vu32 low = flat ? b >> k->drop : v_shr_u32(b, d);
        l.rest = flat ? b << 1 << (31 - k->drop) : v_shl_u32(b, 32 - d);
        const cast_draws draws = cast_draws_of(k);
        const m32 away = random ? cast_draw(&draws, b, 32 - d, d - 32, v_load_u32(words + i), flat)
                                : cast_decide(k, l.rest, low, l.u);
        if (random && count) /* a fraction above 0, also of those far below the smallest number */
            l.rest |= v_keep_u32(v_gt_i32((vi32)d, v_i32(31)), b);
        l.m = v_inc_u32(away, low);
        l.over = v_gt_i32((vi32)l.m, v_i32((int32_t)k->max_finite));
        l.zero = v_eq_u32(l.m, v_u32(0));
        m32 refused = m32_and(l.over, m32_not(l.over));
        if (k->is_unsigned)
            refused = k->no_zero ? l.negative : m32_and(l.negative, m32_not(l.zero));
        const vu32 value = values ? cast_value(k, l.m, d, h) : l.m;
        if (count)
            cast_count(k, &tally, &l, refused);
        cast_put(out, i, cast_result(k, &l, value, refused, values), k->bytes, k->stream);
    }
    if (count)
        cast_add(counts, &tally);
}
