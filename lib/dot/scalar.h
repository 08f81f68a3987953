/* scalar.h -- THE reference of the fused addition of tensor cores: see MPSIM_ADDITION_FUSED in
 * mpsim/dot.h. Integers only, C17 and CUDA; written to be read. */
#pragma once

#include "../arith/scalar.h"

#include <mpsim/dot.h>

enum {
    MPSIM_FUSED_LENGTH = 128,  /* most products of an addition                       */
    MPSIM_FUSED_FRACTION = 50, /* with them, |T| < (4 * 128 + 2) 2^50 < 2^63         */
    MPSIM_FUSED_BITS = 60,     /* p_a + p_b: products stay below 2^62                */
    MPSIM_FUSED_QUADS = 4096   /* longest chunk in order QUADS                       */
};

/* The fields of a model that an addition reads. */
typedef struct mpsim_fused {
    int alignment, normalised, fraction, floor;
    int bits; /* p_a + p_b                                  */
} mpsim_fused;

/* A finite operand is (-1)^sign s 2^(e - p), not normalised beyond the smallest exponent of its
 * format, or the one that it is widened to. */
typedef struct mpsim_term {
    int kind, sign, e;
    uint64_t s;
} mpsim_term;

static inline MPSIM_HD mpsim_term mpsim_scalar_term(const mpsim_format *f, int operand_emin, uint64_t code)
{
    const uint64_t m = code & mpsim_magnitude_mask(f);
    const uint64_t trailing = m & (((uint64_t)1 << f->mbits) - 1);
    const int field = (int)(m >> f->mbits);
    const mpsim_class c = mpsim_scalar_classify(f, code);
    mpsim_term t;
    t.kind = c == MPSIM_CLASS_NAN ? MPSIM_NUMBER_NAN : c == MPSIM_CLASS_INF ? MPSIM_NUMBER_INF : MPSIM_NUMBER_FINITE;
    t.sign = mpsim_has_sign(f) && (code >> mpsim_magnitude_bits(f) & 1);
    if (c == MPSIM_CLASS_NORMAL) {
        t.s = (uint64_t)1 << f->mbits | trailing;
        t.e = field - f->bias;
    } else {
        t.s = t.kind == MPSIM_NUMBER_FINITE ? trailing : 0;
        t.e = mpsim_emin(f);
        while (t.s != 0 && t.s >> f->mbits == 0 && t.e > operand_emin) {
            t.s <<= 1;
            t.e--;
        }
    }
    return t;
}

static inline MPSIM_HD int mpsim_term_is_zero(mpsim_term t)
{
    return t.kind == MPSIM_NUMBER_FINITE && t.s == 0;
}

/* The exponent of a product for the choice of E. */
static inline MPSIM_HD int mpsim_fused_exponent(const mpsim_fused *p, mpsim_term a, mpsim_term b)
{
    const int e = a.e + b.e;
    return p->normalised ? e + 63 - mpsim_clz64(a.s * b.s) - p->bits : e;
}

/* The integer near (-1)^sign s 2^shift. */
static inline MPSIM_HD int64_t mpsim_fused_align(int alignment, int sign, uint64_t s, int shift)
{
    uint64_t q;
    if (shift >= 0) {
        q = s << shift;
    } else {
        const int n = -shift;
        const uint64_t whole = n < 64 ? s >> n : 0;
        const uint64_t rest = n < 64 ? s << (64 - n) : s; /* of 2^64, or of something larger */
        const uint64_t half = (uint64_t)1 << 63;
        q = whole;
        if (alignment == MPSIM_ALIGN_FLOOR)
            q += rest != 0 && sign;
        else if (alignment == MPSIM_ALIGN_NEAREST && n <= 64)
            q += rest > half || (rest == half && (whole & 1));
    }
    return sign ? -(int64_t)q : (int64_t)q;
}

/* What the terms of an addition are: n products and the accumulator s, whose format has the smallest
 * normal exponent `emin`. */
typedef struct mpsim_fused_terms {
    int nan, infinities[2]; /* of either sign             */
    int any;                /* one is finite and not zero */
    int largest;            /* exponent: E                */
} mpsim_fused_terms;

static inline MPSIM_HD mpsim_fused_terms mpsim_fused_look(const mpsim_fused *p, const mpsim_term *a,
                                                          const mpsim_term *b, int n, mpsim_number s, int emin)
{
    mpsim_fused_terms t = {s.kind == MPSIM_NUMBER_NAN, {0, 0}, 0, p->floor};
    if (s.kind == MPSIM_NUMBER_INF)
        t.infinities[s.sign] = 1;
    const int s_e = s.exp > emin ? s.exp : emin;
    if (s.kind == MPSIM_NUMBER_FINITE && s.hi != 0) {
        t.any = 1;
        t.largest = s_e > t.largest ? s_e : t.largest;
    }
    for (int i = 0; i < n; i++) {
        if (a[i].kind != MPSIM_NUMBER_FINITE || b[i].kind != MPSIM_NUMBER_FINITE) {
            if (a[i].kind == MPSIM_NUMBER_NAN || b[i].kind == MPSIM_NUMBER_NAN || mpsim_term_is_zero(a[i]) ||
                mpsim_term_is_zero(b[i]))
                t.nan = 1;
            else
                t.infinities[a[i].sign ^ b[i].sign] = 1;
        } else if (a[i].s != 0 && b[i].s != 0) {
            const int e = mpsim_fused_exponent(p, a[i], b[i]);
            t.any = 1;
            t.largest = e > t.largest ? e : t.largest;
        }
    }
    return t;
}

/* The accumulator and a product in units of 2^unit. */
static inline MPSIM_HD int64_t mpsim_fused_accumulator(const mpsim_fused *p, mpsim_number s, int unit)
{
    return s.hi ? mpsim_fused_align(p->alignment, s.sign, s.hi, s.exp - 63 - unit) : 0;
}

static inline MPSIM_HD int64_t mpsim_fused_product(const mpsim_fused *p, mpsim_term a, mpsim_term b, int unit)
{
    if (a.s == 0 || b.s == 0)
        return 0;
    return mpsim_fused_align(p->alignment, a.sign ^ b.sign, a.s * b.s, a.e + b.e - p->bits - unit);
}

/* One addition: the aligned sum of n products and s; still to be rounded. *flags receives INVALID. */
static inline MPSIM_HD mpsim_number mpsim_fused_sum(const mpsim_fused *p, const mpsim_term *a, const mpsim_term *b,
                                                    int n, mpsim_number s, int emin, unsigned *flags)
{
    const mpsim_fused_terms t = mpsim_fused_look(p, a, b, n, s, emin);
    if (t.nan || (t.infinities[0] && t.infinities[1]))
        return mpsim_number_invalid(flags);
    if (t.infinities[0] || t.infinities[1])
        return mpsim_number_infinity(t.infinities[1]);
    if (!t.any)
        return mpsim_number_make(0, 0, 0);

    const int unit = t.largest - p->fraction; /* the terms are multiples of 2^unit */
    int64_t total = mpsim_fused_accumulator(p, s, unit);
    for (int i = 0; i < n; i++)
        total += mpsim_fused_product(p, a[i], b[i], unit);
    return mpsim_number_make(total < 0, total < 0 ? (uint64_t)-total : (uint64_t)total, unit);
}

/* Where product i of a chunk comes from in order QUADS. */
static inline MPSIM_HD size_t mpsim_fused_quads(size_t i, size_t chunk)
{
    const size_t half = chunk / 2, j = i < half ? i : i - half;
    return 4 * (j / 2) + j % 2 + (i < half ? 0 : 2);
}

/* x rounded once, where an overflow is an infinity in every mode but with the choice MAX. A negative number where there
 * is no sign is an overflow of another kind. */
static inline MPSIM_HD uint64_t mpsim_round_to_infinity(const mpsim_rounded *to, mpsim_number x, uint32_t random)
{
    unsigned flags;
    const uint64_t code = mpsim_scalar_encode(&to->format, &to->rounding, to->rounding.mode, x, random, &flags);
    const int is_signed = mpsim_has_sign(&to->format);
    if (!(flags & MPSIM_FLAG_OVERFLOW) || to->rounding.overflow == MPSIM_OVERFLOW_MAX ||
        (x.sign && !is_signed && to->rounding.negative != MPSIM_NEGATIVE_ABS))
        return code;
    return mpsim_scalar_infinite(&to->format, &to->rounding, x.sign && is_signed);
}

/* The code of an aligned sum: a zero is +0. */
static inline MPSIM_HD uint64_t mpsim_fused_round(const mpsim_rounded *to, mpsim_number sum, uint32_t random)
{
    const uint64_t code = mpsim_round_to_infinity(to, sum, random);
    return mpsim_scalar_classify(&to->format, code) == MPSIM_CLASS_ZERO ? 0 : code;
}
