/* cast64.h -- casting in lanes of 64 bits: binary64, and binary32 where a format or a scale needs
 * more bits than cast32.h has. The notation is that of kernel.h; binary32 has E as a binary64
 * number. */
#pragma once

#include "cast32.h"

#define CAST64_TOP ((uint64_t)1 << 63)
#define CAST64_IMPLICIT ((uint64_t)1 << 52)
#define CAST64_FRACTION (CAST64_IMPLICIT - 1)
#define CAST64_REBIAS ((uint64_t)(1023 - 127) << 52) /* from binary32's exponents */

typedef struct cast64_tally {
    vu64 inexact, underflow, subnormal, overflow, nan;
} cast64_tally;

/* The sources: u has the sign in its top bit, a is the magnitude (binary32: << 29), e is E. */
typedef struct cast64_lanes {
    vu64 u, a, e, infinity, m, rest;
    m64 kept, negative, special, over, zero;
} cast64_lanes;

V_INLINE vu64 cast64_by(m64 negative, const uint64_t by[2])
{
    return v_pick_u64(negative, v_u64(by[1]), v_u64(by[0]));
}

/* E of binary64 magnitudes a; a subnormal number is an integer, whose conversion is exact. */
V_INLINE vu64 cast64_extended(vu64 a)
{
    const vu64 two52 = v_u64((uint64_t)(1023 + 52) << 52);
    const vu64 t = (vu64)((vf64)((a & CAST64_FRACTION) | two52) - (vf64)two52);
    return v_pick_u64(v_gt_i64(v_i64((int64_t)CAST64_IMPLICIT), (vi64)a), t - ((uint64_t)1074 << 52), a);
}

/* E times a significand s / 2^63. */
V_INLINE vu64 cast64_product(vu64 e, uint64_t s)
{
    const vu64 sig = (e & CAST64_FRACTION) << 1 | 2 * CAST64_IMPLICIT, low_half = v_u64(0xffffffffu);
    const vu32 s0 = (vu32)sig, s1 = (vu32)(sig >> 32);
    const vu32 c0 = (vu32)v_u64(s & 0xffffffffu), c1 = (vu32)v_u64(s >> 32);
    const vu64 p00 = v_mul_even_u32(s0, c0), p01 = v_mul_even_u32(s0, c1);
    const vu64 p10 = v_mul_even_u32(s1, c0), p11 = v_mul_even_u32(s1, c1);
    const vu64 middle = p01 + (p00 >> 32), low = p10 + (middle & low_half);
    const vu64 high = p11 + (middle >> 32) + (low >> 32); /* in [2^52, 2^54) */
    const vu64 lost = (low | p00) & low_half, top = high >> 53;
    const vu64 q = v_shr_u64(high, top) | (high & top);
    const vu64 jammed = v_pick_u64(v_eq_u64(lost, v_u64(0)), q, q | 1);
    return (e & ~CAST64_FRACTION) + (top << 52) + (jammed - CAST64_IMPLICIT);
}

/* binary64 bits to binary32 bits, in the lower half: exact, but that a NaN loses bits. */
V_INLINE vu64 cast64_to_binary32(vu64 v)
{
    const vu64 a = v & ~CAST64_TOP, n = (1023 - 127 + 1) - (a >> 52);
    const vu64 tiny = v_shr_u64((a & CAST64_FRACTION) | CAST64_IMPLICIT, n);
    const vu64 number = v_pick_u64(v_gt_i64((vi64)n, v_i64(0)), tiny, a - CAST64_REBIAS);
    const vu64 special = (a & CAST64_FRACTION) | (uint64_t)0xff << 52;
    const m64 is_special = v_gt_i64((vi64)a, v_i64(((int64_t)0x7ff << 52) - 1));
    return v_pick_u64(is_special, special, number) >> 29 | (v & CAST64_TOP) >> 32;
}

/* An extended magnitude above zero as a binary64 number. */
V_INLINE vu64 cast64_contracted(vu64 e)
{
    const vu64 n = 2049 - ((e ^ CAST64_TOP) >> 52);
    const vu64 sig = (e & CAST64_FRACTION) | CAST64_IMPLICIT;
    return v_pick_u64(v_gt_i64(v_i64((int64_t)CAST64_IMPLICIT), (vi64)e), v_shr_u64(sig, n), e);
}

/* Stochastic, as cast_draw; here the fraction has all bits that matter, or-ed into one. */
V_INLINE m64 cast64_draw(const mpsim_cast_constants *k, vu64 b, vu64 d, vu64 word)
{
    const vu64 near = v_shl_u64(b, 64 - d), far = v_shr_u64(b, d - 64);
    const m64 lost = m64_and(v_gt_i64((vi64)d, v_i64(64)), m64_not(v_eq_u64(v_shl_u64(far, d - 64), b)));
    const vu64 f = near | far | v_keep_u64(lost, v_u64(1));
    const vu64 limit = ~((word << 32 & k->draw) | k->half);
    return v_gt_u64(f, limit + (~(f >> k->last) & (uint64_t)k->even));
}

V_INLINE m64 cast64_decide(const mpsim_cast_constants *k, vu64 rest, vu64 low, vu64 u)
{
    vu64 odd = (low ^ k->no_zero) & (uint64_t)k->by_odd;
    if (k->no_zero)
        odd = v_keep_u64(m64_not(v_eq_u64(low, v_u64(0))), odd);
    const vu64 which = odd | (u >> 63 & (uint64_t)k->by_sign);
    const m64 other = v_gt_i64((vi64)which, v_i64(0));
    return v_gt_u64(rest, v_pick_u64(other, v_u64(k->threshold[1]), v_u64(k->threshold[0])));
}

V_INLINE vu64 cast64_value(const mpsim_cast_constants *k, vu64 m, vu64 d, vu64 h)
{
    const vu64 e = v_shl_u64(m, d) + h + ((uint64_t)k->scale_exp << 52);
    const vu64 value = k->subnormal_values ? cast64_contracted(e) : e;
    return v_pick_u64(v_eq_u64(m, v_u64(1)), v_u64(k->least), value);
}

V_INLINE void cast64_count(const mpsim_cast_constants *k, cast64_tally *t, const cast64_lanes *l, m64 refused)
{
    const vu64 none = v_u64(0);
    const m64 live = m64_and(l->kept, m64_not(l->special));
    const m64 tiny = m64_and(v_gt_u64(v_u64(k->normal), l->m), m64_not(refused));
    const m64 beyond = m64_and(m64_or(l->over, refused), live);
    m64 inexact = m64_or(m64_not(v_eq_u64(l->rest, none)), m64_or(l->over, refused));
    m64 under = l->zero, subnormal = m64_and(tiny, m64_not(l->zero));
    if (k->no_zero)
        under = m64_and(under, m64_not(under));
    if (k->flush) {
        inexact = m64_or(inexact, subnormal);
        under = m64_or(under, subnormal);
        subnormal = m64_and(subnormal, m64_not(subnormal));
    }
    under = m64_and(under, live);
    inexact = m64_and(inexact, live);
    const m64 read_as_zero = m64_and(m64_not(l->kept), m64_not(v_eq_u64(l->a, none)));
    if (k->no_zero) {
        inexact = m64_or(inexact, m64_not(l->kept));
        t->overflow = v_inc_u64(m64_and(m64_not(l->kept), l->negative), t->overflow);
    } else {
        inexact = m64_or(inexact, read_as_zero);
        under = m64_or(under, read_as_zero);
    }
    t->inexact = v_inc_u64(inexact, t->inexact);
    t->underflow = v_inc_u64(under, t->underflow);
    t->subnormal = v_inc_u64(m64_and(subnormal, live), t->subnormal);
    t->overflow = v_inc_u64(beyond, t->overflow);
    t->nan = v_inc_u64(v_gt_i64((vi64)l->a, (vi64)l->infinity), t->nan);
}

/* Infinities and NaN among the results. */
V_INLINE vu64 cast64_special(const mpsim_cast_constants *k, const cast64_lanes *l, vu64 result)
{
    const m64 is_nan = v_gt_i64((vi64)l->a, (vi64)l->infinity);
    const vu64 payload = l->a >> k->payload_shift & k->payload;
    const vu64 quiet = v_pick_u64(v_eq_u64(payload, v_u64(0)), v_u64(0), v_u64(k->quiet));
    const vu64 specials = v_pick_u64(is_nan, cast64_by(l->negative, k->nan) | payload | quiet,
                                     cast64_by(l->negative, k->infinite));
    return v_pick_u64(l->special, specials, result);
}

V_INLINE vu64 cast64_result(const mpsim_cast_constants *k, const cast64_lanes *l, vu64 value, m64 refused,
                            const int values)
{
    const vu64 number = values ? value : l->m - k->no_zero;
    vu64 result = v_bits_u64(v_u64(k->sign_bit), l->u >> k->sign_shift, number);
    result = v_pick_u64(l->over, cast64_by(l->negative, k->over), result);
    if (k->flush)
        result = v_pick_u64(v_gt_u64(v_u64(k->normal), l->m), cast64_by(l->negative, k->zero), result);
    result = v_pick_u64(l->zero, cast64_by(l->negative, k->small), result);
    if (k->is_unsigned)
        result = v_pick_u64(refused, v_u64(k->negative), result);
    if (k->no_zero)
        result = v_pick_u64(l->kept, result, cast64_by(l->negative, k->zero));
    if (__builtin_expect(m64_any(l->special), 0))
        result = cast64_special(k, l, result);
    return result;
}

/* The results of V_LANES / 2 sources, whose u, a, infinity and e are given. */
V_INLINE vu64 cast64_half(const mpsim_cast_constants *k, cast64_lanes *l, vu64 word, cast64_tally *tally,
                          const int product, const int random, const int values)
{
    l->negative = v_top_u64(l->u & k->sign);
    l->kept = v_gt_i64((vi64)l->a, v_i64((int64_t)k->below));
    l->special = v_gt_i64((vi64)l->a, (vi64)(l->infinity - 1));
    const vu64 e = product ? cast64_product(l->e, k->scale) : l->e;
    const vu64 h = (vu64)v_min_i64(v_i64((int64_t)((uint64_t)k->base << 52)),
                                   (vi64)((e & ~CAST64_FRACTION) - CAST64_IMPLICIT));
    vu64 d = (uint64_t)(k->drop_base + 2048) - ((h ^ CAST64_TOP) >> 52);
    if (!random)
        d = (vu64)v_min_i64((vi64)d, v_i64(63));
    const vu64 b = v_keep_u64(l->kept, e - h), low = v_shr_u64(b, d);
    l->rest = v_shl_u64(b, 64 - d);
    const m64 away = random ? cast64_draw(k, b, d, word) : cast64_decide(k, l->rest, low, l->u);
    if (random)
        l->rest |= v_keep_u64(v_gt_i64((vi64)d, v_i64(63)), b);
    l->m = v_inc_u64(away, low);
    l->over = v_gt_u64(l->m, v_u64(k->max_finite));
    l->zero = v_eq_u64(l->m, v_u64(0));
    m64 refused = m64_and(l->over, m64_not(l->over));
    if (k->is_unsigned)
        refused = k->no_zero ? l->negative : m64_and(l->negative, m64_not(l->zero));
    if (tally)
        cast64_count(k, tally, l, refused);
    return cast64_result(k, l, values ? cast64_value(k, l->m, d, h) : l->m, refused, values);
}

/* The halves of V_LANES results from element i on. */
V_INLINE void cast64_put(void *out, size_t i, vu64 first, vu64 last, int bytes, int stream)
{
    unsigned char *to = (unsigned char *)out + 8 * i;
    if (bytes != 8) {
        cast_put(out, i, v_narrow_u32(first, last), bytes, stream);
    } else if (stream) {
        v_stream_u64(to, first);
        v_stream_u64(to + sizeof first, last);
    } else {
        v_store_u64(to, first);
        v_store_u64(to + sizeof first, last);
    }
}

/* The first and the last half of V_LANES sources from x on. */
V_INLINE void cast64_load(const mpsim_cast_constants *k, cast64_lanes l[2], const unsigned char *x, size_t i)
{
    if (k->source == 4) {
        const vu32 u = v_load_u32(x + 4 * i), a = u & 0x7fffffff, e = cast_extended(a);
        l[0].u = v_first_u64(u) << 32;
        l[1].u = v_last_u64(u) << 32;
        l[0].a = v_first_u64(a) << 29;
        l[1].a = v_last_u64(a) << 29;
        l[0].e = ((vu64)v_first_i64((vi32)e) << 29) + CAST64_REBIAS;
        l[1].e = ((vu64)v_last_i64((vi32)e) << 29) + CAST64_REBIAS;
        l[0].infinity = l[1].infinity = v_u64((uint64_t)0xff << 52);
        return;
    }
    for (int j = 0; j < 2; j++) {
        l[j].u = v_load_u64(x + 8 * i + (size_t)j * sizeof(vu64));
        l[j].a = l[j].u & ~CAST64_TOP;
        l[j].e = cast64_extended(l[j].a);
        l[j].infinity = v_u64((uint64_t)0x7ff << 52);
    }
}

V_INLINE void cast_wide(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const uint32_t *words,
                        mpsim_counts *counts, const int random, const int values)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    const int product = k->loop == MPSIM_CAST_64_PRODUCT;
    const vu64 none = v_u64(0);
    cast64_tally tally = {none, none, none, none, none};
    for (size_t i = 0; i < n; i += V_LANES) {
        cast64_lanes l[2];
        vu64 result[2];
        const vu32 word = random ? v_load_u32(words + i) : v_u32(0);
        cast64_load(k, l, x, i);
        result[0] = cast64_half(k, &l[0], v_first_u64(word), counts ? &tally : NULL, product, random, values);
        result[1] = cast64_half(k, &l[1], v_last_u64(word), counts ? &tally : NULL, product, random, values);
        if (values && k->source == 4) {
            result[0] = cast64_to_binary32(result[0]);
            result[1] = cast64_to_binary32(result[1]);
        }
        cast64_put(out, i, result[0], result[1], k->bytes, k->stream);
    }
    if (counts) {
        counts->inexact += v_sum_u64(tally.inexact);
        counts->underflow += v_sum_u64(tally.underflow);
        counts->subnormal += v_sum_u64(tally.subnormal);
        counts->overflow += v_sum_u64(tally.overflow);
        counts->nan += v_sum_u64(tally.nan);
    }
}

#ifdef V_NEAR
/* Nearest-even by sums, as cast_sums; of binary32, too, with scales of more than 24 bits. */
typedef struct cast64_sum {
    vu64 huge, least, up, first, exponent, none;
    vf64 significand, scale;
    int drop, product, values;
} cast64_sum;

V_INLINE cast64_sum cast64_sum_of(const mpsim_cast_constants *k, int product, int values)
{
    const uint64_t least = (uint64_t)(k->near_base + 1) << 52, up = (uint64_t)k->near_drop << 52;
    const cast64_sum s = {v_u64((uint64_t)k->near_huge << 52),
                          v_u64(least),
                          v_u64(up),
                          v_u64((least >> k->near_drop) + up),
                          v_u64((uint64_t)0x7ff << 52),
                          v_u64(0),
                          (vf64)v_u64((k->scale << 1 >> 12) | (uint64_t)1023 << 52),
                          (vf64)v_u64((uint64_t)(k->scale_exp + 1023) << 52),
                          k->near_drop,
                          product,
                          values};
    return s;
}

/* The code or the value, as binary64, of magnitudes a. */
V_INLINE vu64 cast64_add(const cast64_sum *s, vu64 a)
{
    vu64 b = (vu64)v_min_i64((vi64)a, (vi64)s->huge);
    if (s->product) {
        const vf64 p = v_cut_mul_f64((vf64)b, s->significand);
        const vu64 rest = (vu64)v_near_rest_f64((vf64)b, s->significand, p);
        b = v_pick_u64(v_eq_u64(rest, s->none), (vu64)p, (vu64)p | 1);
    }
    const vu64 h = (vu64)v_max_i64((vi64)(b & s->exponent), (vi64)s->least);
    const vf64 much = (vf64)(h + s->up), sum = v_near_add_f64((vf64)b, much);
    return s->values ? (vu64)v_near_mul_f64(v_near_sub_f64(sum, much), s->scale)
                     : (vu64)sum - h + ((h >> s->drop) - s->first);
}

/* From binary64; results as u64, of V_LANES / 2 sources. */
V_INLINE vu64 cast64_near(const mpsim_cast_constants *k, const cast64_sum *s, vu64 u)
{
    const vu64 a = u & ~CAST64_TOP;
    vu64 number = cast64_add(s, a);
    if (k->flush)
        number = v_keep_u64(v_gt_i64((vi64)number, v_i64((int64_t)k->flush_value)), number);
    const m64 over = v_gt_i64((vi64)number, v_i64((int64_t)k->max_value));
    vu64 sign = u >> k->sign_shift;
    if (k->one_zero)
        sign = v_keep_u64(v_gt_i64((vi64)number, v_i64(0)), sign);
    vu64 result = v_bits_u64(v_u64(k->sign_bit), sign, v_pick_u64(over, v_u64(k->over[0]), number));
    if (k->over_by_sign)
        result = v_pick_u64(over, cast64_by(v_top_u64(u), k->over), result);
    cast64_lanes l;
    l.u = u;
    l.a = a;
    l.infinity = s->exponent;
    l.negative = v_top_u64(u);
    l.special = v_gt_i64((vi64)a, (vi64)(s->exponent - 1));
    return __builtin_expect(m64_any(l.special), 0) ? cast64_special(k, &l, result) : result;
}

V_INLINE void cast64_sums(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const int product,
                          const int values)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    const cast64_sum s = cast64_sum_of(k, product, values);
    const unsigned char *from = x;
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu64 first = cast64_near(k, &s, v_load_u64(from + 8 * i));
        const vu64 last = cast64_near(k, &s, v_load_u64(from + 8 * i + sizeof(vu64)));
        cast64_put(out, i, first, last, k->bytes, k->stream);
    }
}

/* From binary32, whose subnormal numbers and zeros become numbers that are as good as zero. */
V_INLINE void cast_sums_wide(const mpsim_cast_constants *given, void *out, const void *x, size_t n, const int values)
{
    const mpsim_cast_constants here = *given, *k = &here; /* that no store changes */
    const cast64_sum s = cast64_sum_of(k, 1, values);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 u = v_load_u32((const unsigned char *)x + 4 * i), a = u & 0x7fffffff;
        vu64 first = cast64_add(&s, (v_first_u64(a) << 29) + CAST64_REBIAS);
        vu64 last = cast64_add(&s, (v_last_u64(a) << 29) + CAST64_REBIAS);
        if (values) {
            first = v_keep_u64(v_gt_i64((vi64)first, (vi64)s.none), (first - CAST64_REBIAS) >> 29);
            last = v_keep_u64(v_gt_i64((vi64)last, (vi64)s.none), (last - CAST64_REBIAS) >> 29);
        }
        cast_put(out, i, cast_signed(k, u, a, v_narrow_u32(first, last)), k->bytes, k->stream);
    }
}
#endif
