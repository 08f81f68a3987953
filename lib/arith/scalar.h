/* scalar.h -- THE reference arithmetic, part two: exact operations on unpacked numbers.
 *
 * Integers only, as scalar.h. The operands are unpacked codes: at most 53 significant bits, lo = 0.
 * The results have 128, the last of which is or-ed with all bits below it: rounding looks at
 * no more than 53 bits of significand and 33 of fraction, so that one rounding of a result is
 * one rounding of the exact value (mpsim_scalar_encode). mpsim/arith.h has the definitions. */
#pragma once

#include "../round/scalar.h"

#include <mpsim/arith.h>

/* ---- 128-bit integers ---- */

typedef struct mpsim_u128 {
    uint64_t hi, lo;
} mpsim_u128;

static inline MPSIM_HD mpsim_u128 mpsim_u128_add(mpsim_u128 a, mpsim_u128 b)
{
    mpsim_u128 s;
    s.lo = a.lo + b.lo;
    s.hi = a.hi + b.hi + (s.lo < a.lo);
    return s;
}

static inline MPSIM_HD mpsim_u128 mpsim_u128_sub(mpsim_u128 a, mpsim_u128 b)
{
    mpsim_u128 d;
    d.lo = a.lo - b.lo;
    d.hi = a.hi - b.hi - (a.lo < b.lo);
    return d;
}

static inline MPSIM_HD int mpsim_u128_less(mpsim_u128 a, mpsim_u128 b)
{
    return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}

/* a 2^n, 0 <= n < 128; bits leave at the top. */
static inline MPSIM_HD mpsim_u128 mpsim_u128_left(mpsim_u128 a, int n)
{
    if (n >= 64) {
        a.hi = a.lo << (n - 64);
        a.lo = 0;
    } else if (n > 0) {
        a.hi = a.hi << n | a.lo >> (64 - n);
        a.lo <<= n;
    }
    return a;
}

/* a 2^-n, n >= 0, with the bits that leave or-ed into bit 0. */
static inline MPSIM_HD mpsim_u128 mpsim_u128_right_sticky(mpsim_u128 a, int n)
{
    uint64_t lost;
    if (n == 0)
        return a;
    if (n >= 128) {
        lost = a.hi | a.lo;
        a.hi = a.lo = 0;
    } else if (n >= 64) {
        lost = a.lo | (n > 64 ? a.hi << (128 - n) : 0);
        a.lo = n > 64 ? a.hi >> (n - 64) : a.hi;
        a.hi = 0;
    } else {
        lost = a.lo << (64 - n);
        a.lo = a.hi << (64 - n) | a.lo >> n;
        a.hi >>= n;
    }
    a.lo |= lost != 0;
    return a;
}

/* The number m / 2^127 * 2^exp, normalised; m not zero. */
static inline MPSIM_HD mpsim_number mpsim_number_wide(int sign, mpsim_u128 m, int exp)
{
    const int n = m.hi ? mpsim_clz64(m.hi) : 64 + mpsim_clz64(m.lo);
    mpsim_number x;
    m = mpsim_u128_left(m, n);
    x.kind = MPSIM_NUMBER_FINITE;
    x.sign = sign;
    x.exp = exp - n;
    x.hi = m.hi;
    x.lo = m.lo;
    return x;
}

/* ---- what is not a finite number ---- */

static inline MPSIM_HD int mpsim_number_is_zero(mpsim_number x)
{
    return x.kind == MPSIM_NUMBER_FINITE && x.hi == 0;
}

static inline MPSIM_HD mpsim_number mpsim_number_infinity(int sign)
{
    mpsim_number x = mpsim_number_make(sign, 0, 0);
    x.kind = MPSIM_NUMBER_INF;
    return x;
}

/* The NaN of an operation without a value. */
static inline MPSIM_HD mpsim_number mpsim_number_invalid(unsigned *flags)
{
    mpsim_number x = mpsim_number_make(0, 0, 0);
    x.kind = MPSIM_NUMBER_NAN;
    *flags |= MPSIM_FLAG_INVALID;
    return x;
}

/* ---- operations; *flags receives INVALID and DIVBYZERO, and keeps what it has ---- */

/* x + y. `down` says whether the sum is rounded toward -infinity: the sign of a zero.
 *
 * Both significands end in zeros (a product of two codes has 106 bits), so that the bit of the
 * larger one that meets the sticky bit of the smaller one is 0, and the difference with a sticky
 * bit is what lies below the exact difference or equals it, or-ed with a sticky bit again. Bits
 * are lost only where the exponents are more than 22 apart, and then no more than the top bit
 * cancels. */
static inline MPSIM_HD mpsim_number mpsim_number_add(mpsim_number x, mpsim_number y, int down, unsigned *flags)
{
    if (x.kind == MPSIM_NUMBER_NAN)
        return x;
    if (y.kind == MPSIM_NUMBER_NAN)
        return y;
    if (x.kind == MPSIM_NUMBER_INF)
        return y.kind == MPSIM_NUMBER_INF && x.sign != y.sign ? mpsim_number_invalid(flags) : x;
    if (y.kind == MPSIM_NUMBER_INF)
        return y;
    if (x.hi == 0 && y.hi == 0)
        return mpsim_number_make(x.sign == y.sign ? x.sign : down, 0, 0);
    if (y.hi == 0)
        return x;
    if (x.hi == 0)
        return y;

    mpsim_u128 a = {x.hi, x.lo}, b = {y.hi, y.lo};
    if (x.exp < y.exp || (x.exp == y.exp && mpsim_u128_less(a, b))) {
        const mpsim_number z = x;
        const mpsim_u128 c = a;
        x = y;
        y = z;
        a = b;
        b = c;
    }
    b = mpsim_u128_right_sticky(b, x.exp - y.exp);
    if (x.sign == y.sign) { /* one bit lower, to make room for a carry */
        a = mpsim_u128_right_sticky(a, 1);
        b = mpsim_u128_right_sticky(b, 1);
        return mpsim_number_wide(x.sign, mpsim_u128_add(a, b), x.exp + 1);
    }
    a = mpsim_u128_sub(a, b);
    if (a.hi == 0 && a.lo == 0)
        return mpsim_number_make(down, 0, 0);
    return mpsim_number_wide(x.sign, a, x.exp);
}

static inline MPSIM_HD mpsim_number mpsim_number_mul(mpsim_number x, mpsim_number y, unsigned *flags)
{
    const int sign = x.sign ^ y.sign;
    if (x.kind == MPSIM_NUMBER_NAN)
        return x;
    if (y.kind == MPSIM_NUMBER_NAN)
        return y;
    if (x.kind == MPSIM_NUMBER_INF || y.kind == MPSIM_NUMBER_INF)
        return mpsim_number_is_zero(x) || mpsim_number_is_zero(y) ? mpsim_number_invalid(flags)
                                                                  : mpsim_number_infinity(sign);
    if (x.hi == 0 || y.hi == 0)
        return mpsim_number_make(sign, 0, 0);
    mpsim_u128 m;
    mpsim_mul64(&m.hi, &m.lo, x.hi, y.hi); /* in [2^126, 2^128): 2^126 stands for 1 */
    return mpsim_number_wide(sign, m, x.exp + y.exp + 1);
}

/* x / y, by long division: one bit of the quotient at a time, then the remainder's sticky bit. */
static inline MPSIM_HD mpsim_number mpsim_number_div(mpsim_number x, mpsim_number y, unsigned *flags)
{
    const int sign = x.sign ^ y.sign;
    if (x.kind == MPSIM_NUMBER_NAN)
        return x;
    if (y.kind == MPSIM_NUMBER_NAN)
        return y;
    if (x.kind == MPSIM_NUMBER_INF)
        return y.kind == MPSIM_NUMBER_INF ? mpsim_number_invalid(flags) : mpsim_number_infinity(sign);
    if (y.kind == MPSIM_NUMBER_INF)
        return mpsim_number_make(sign, 0, 0);
    if (y.hi == 0) {
        if (x.hi == 0)
            return mpsim_number_invalid(flags);
        *flags |= MPSIM_FLAG_DIVBYZERO;
        return mpsim_number_infinity(sign);
    }
    if (x.hi == 0)
        return mpsim_number_make(sign, 0, 0);

    /* x.hi / y.hi is in (1/2, 2): the first bit is that of 2^0. Remainders stay below y.hi, whose
     * low bits are zero, so that doubling one after halving both does not lose a bit. */
    uint64_t rest = x.hi >> 1;
    const uint64_t divisor = y.hi >> 1;
    mpsim_u128 q = {0, 0};
    enum { BITS = 96 };
    for (int i = 0; i < BITS; i++) {
        const int bit = rest >= divisor;
        q.hi = q.hi << 1 | q.lo >> 63;
        q.lo = q.lo << 1 | (uint64_t)bit;
        rest = (rest - (bit ? divisor : 0)) << 1;
    }
    q = mpsim_u128_left(q, 128 - BITS);
    q.lo |= rest != 0;
    return mpsim_number_wide(sign, q, x.exp - y.exp);
}

/* The square root, by the pencil-and-paper method: two bits of the radicand bring one of the root,
 * root^2 + rest = what has been brought down; then the remainder's sticky bit. */
static inline MPSIM_HD mpsim_number mpsim_number_sqrt(mpsim_number x, unsigned *flags)
{
    if (x.kind == MPSIM_NUMBER_NAN || mpsim_number_is_zero(x))
        return x;
    if (x.sign)
        return mpsim_number_invalid(flags);
    if (x.kind == MPSIM_NUMBER_INF)
        return x;

    const int odd = x.exp & 1;
    /* the radicand, in [1, 4), as an integer with two bits before the point */
    mpsim_u128 m = {odd ? x.hi : x.hi >> 1, 0};
    m.lo = odd ? 0 : x.hi << 63;
    mpsim_u128 root = {0, 0}, rest = {0, 0};
    enum { BITS = 96 };
    for (int i = 0; i < BITS; i++) {
        rest = mpsim_u128_left(rest, 2);
        rest.lo |= m.hi >> 62;
        m = mpsim_u128_left(m, 2);
        mpsim_u128 trial = mpsim_u128_left(root, 2);
        trial.lo |= 1;
        root = mpsim_u128_left(root, 1);
        if (!mpsim_u128_less(rest, trial)) {
            rest = mpsim_u128_sub(rest, trial);
            root.lo |= 1;
        }
    }
    root = mpsim_u128_left(root, 128 - BITS);
    root.lo |= (rest.hi | rest.lo) != 0;
    return mpsim_number_wide(0, root, (x.exp - odd) / 2);
}

/* x y + z, where a NaN counts in the order x, y, z, before an invalid product. */
static inline MPSIM_HD mpsim_number mpsim_number_fma(mpsim_number x, mpsim_number y, mpsim_number z, int down,
                                                     unsigned *flags)
{
    unsigned of_product = 0;
    const mpsim_number p = mpsim_number_mul(x, y, &of_product);
    if (z.kind == MPSIM_NUMBER_NAN && of_product)
        return z;
    *flags |= of_product;
    return mpsim_number_add(p, z, down, flags);
}

/* ---- from codes to a code ---- */

/* The number of an operand, flushed if r says so. */
static inline MPSIM_HD mpsim_number mpsim_scalar_operand(const mpsim_format *f, const mpsim_rounding *r, uint64_t code)
{
    return mpsim_scalar_flush(r, mpsim_scalar_unpack(f, code), mpsim_emin(f));
}

/* The exact value of an operation, not rounded yet; *raised receives what it raises itself. */
static inline MPSIM_HD mpsim_number mpsim_scalar_exact(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c,
                                                       unsigned *raised)
{
    const mpsim_rounding *r = &o->rounding;
    const int down = r->mode == MPSIM_ROUND_DOWN;
    const mpsim_number x = mpsim_scalar_operand(&o->operand[0], r, a);
    mpsim_number y, z = x;
    *raised = 0;
    switch (o->op) {
    case MPSIM_OP_ADD:
    case MPSIM_OP_SUB:
        y = mpsim_scalar_operand(&o->operand[1], r, b);
        if (o->op == MPSIM_OP_SUB && y.kind != MPSIM_NUMBER_NAN)
            y.sign = !y.sign;
        z = mpsim_number_add(x, y, down, raised);
        break;
    case MPSIM_OP_MUL:
        z = mpsim_number_mul(x, mpsim_scalar_operand(&o->operand[1], r, b), raised);
        break;
    case MPSIM_OP_DIV:
        z = mpsim_number_div(x, mpsim_scalar_operand(&o->operand[1], r, b), raised);
        break;
    case MPSIM_OP_SQRT:
        z = mpsim_number_sqrt(x, raised);
        break;
    case MPSIM_OP_FMA:
        y = mpsim_scalar_operand(&o->operand[1], r, b);
        z = mpsim_number_fma(x, y, mpsim_scalar_operand(&o->operand[2], r, c), down, raised);
        break;
    case MPSIM_OP_CONVERT:
    default:
        break;
    }
    return z;
}

static inline MPSIM_HD uint64_t mpsim_scalar_arith(const mpsim_arith *o, uint64_t a, uint64_t b, uint64_t c,
                                                   uint32_t random, unsigned *flags)
{
    const mpsim_rounding *r = &o->rounding;
    unsigned raised;
    const mpsim_number z = mpsim_scalar_exact(o, a, b, c, &raised);
    const uint64_t code = mpsim_scalar_encode(&o->result, r, r->mode, z, random, flags);
    *flags |= raised;
    return code;
}

/* How a compares to b: both unpacked codes. */
static inline MPSIM_HD int mpsim_number_compare(mpsim_number a, mpsim_number b)
{
    if (a.kind == MPSIM_NUMBER_NAN || b.kind == MPSIM_NUMBER_NAN)
        return MPSIM_UNORDERED;
    const int a_zero = mpsim_number_is_zero(a), b_zero = mpsim_number_is_zero(b);
    const int a_sign = a_zero ? 0 : a.sign ? -1 : 1, b_sign = b_zero ? 0 : b.sign ? -1 : 1;
    if (a_sign != b_sign)
        return a_sign < b_sign ? MPSIM_LESS : MPSIM_GREATER;
    if (a_sign == 0)
        return MPSIM_EQUAL;
    int larger; /* of the magnitudes: -1, 0, 1 */
    if (a.kind != b.kind)
        larger = a.kind == MPSIM_NUMBER_INF ? 1 : -1;
    else if (a.kind == MPSIM_NUMBER_INF)
        larger = 0;
    else if (a.exp != b.exp)
        larger = a.exp > b.exp ? 1 : -1;
    else
        larger = (a.hi > b.hi) - (a.hi < b.hi);
    return larger * a_sign;
}
