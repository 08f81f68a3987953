/* sum.c -- exact sums in fixed point; see mpsim/stats.h.
 *
 * An addition deposits its bits into a few limbs without carrying: a limb grows by less than
 * 2^33 each time (two deposits for a product), so that carries need to be propagated only
 * every 2^29 additions.
 *
 * Any division and any order of the elements gives the same bytes. Reports use the C library (log10, log2, log,
 * exp, pow) only for the decibels of SQNR, bits lost of `dot`, ratios of `diff --logprob`, exact references of
 * `attention` and `mismatch`, and angles of `formats --positions`. The last digit of these may differ between
 * machines. */
#include <mpsim/stats.h>

#include "sum.h"

#include <string.h>

enum {
    LOWEST = -2176, /* exponent of bit 0 of limb 0: -68 limbs, below 2^-2148 */
    CARRY_EVERY = 1 << 29
};
_Static_assert(LOWEST % 32 == 0 && 32 * MPSIM_SUM_LIMBS + LOWEST == 2176, "range of a sum");

void mpsim_sum_init(mpsim_sum *s)
{
    memset(s, 0, sizeof *s);
}

/* Bring the limbs into the one form in which a number has no others: all in [0, 2^32) but the highest, which
 * has the sign and is -1 only if it is alone; the lowest is not zero. Nothing is left for the limb above
 * the last, to which it all belongs. */
static void propagate(mpsim_sum *s)
{
    const int64_t base = (int64_t)1 << 32;
    int first = s->first, end = s->end, i = first;
    int64_t carry = 0;
    for (; i < end && i < MPSIM_SUM_LIMBS - 1; i++) {
        const int64_t v = s->limb[i] + carry;
        s->limb[i] = (int64_t)((uint64_t)v & 0xffffffffu);
        carry = (v - s->limb[i]) / base;
    }
    if (carry) {
        s->limb[i] += carry;
        end = i + 1;
    }
    while (first < end && s->limb[first] == 0)
        first++;
    while (end > first && s->limb[end - 1] == 0)
        end--;
    while (end - 1 > first && s->limb[end - 1] == -1) {
        s->limb[end - 1] = 0;
        s->limb[end - 2] -= base;
        end--;
    }
    s->first = (uint16_t)(first < end ? first : 0);
    s->end = (uint16_t)(first < end ? end : 0);
    s->pending = 0;
}

/* Limbs i to i + n - 1 are about to change. */
static inline void touch(mpsim_sum *s, int i, int n)
{
    if (s->end == 0 || i < s->first)
        s->first = (uint16_t)i;
    if (i + n > s->end)
        s->end = (uint16_t)(i + n);
}

static void count_additions(mpsim_sum *s, uint32_t n)
{
    s->pending += n;
    if (s->pending >= CARRY_EVERY)
        propagate(s);
}

/* s += (-1)^sign * sig * 2^exp */
static inline void deposit(mpsim_sum *s, int sign, uint64_t sig, int exp)
{
    const int at = exp - LOWEST, n = at & 31;
    int64_t *limb = &s->limb[at >> 5];
    const uint64_t low = sig << n;
    const int64_t a = (int64_t)(low & 0xffffffffu), b = (int64_t)(low >> 32);
    const int64_t c = (int64_t)(n ? sig >> (64 - n) : 0);
    const int64_t flip = -(int64_t)sign; /* 0 or -1: (v ^ flip) - flip is +-v */
    touch(s, at >> 5, 3);
    limb[0] += (a ^ flip) - flip;
    limb[1] += (b ^ flip) - flip;
    limb[2] += (c ^ flip) - flip;
}

/* A finite x as an integer of at most 53 bits times a power of two. */
static inline uint64_t integer_of(double x, int *exp)
{
    const uint64_t u = mpsim_bits_f64(x), t = u & 0xfffffffffffffu;
    const int e = (int)(u >> 52 & 0x7ff);
    *exp = (e ? e : 1) - 1075;
    return e ? t | (uint64_t)1 << 52 : t;
}

void mpsim_sum_add(mpsim_sum *s, double x)
{
    int exp;
    const uint64_t sig = integer_of(x, &exp);
    deposit(s, (int)(mpsim_bits_f64(x) >> 63), sig, exp);
    count_additions(s, 1);
}

void mpsim_sum_add_product(mpsim_sum *s, double x, double y)
{
    int ex, ey;
    const uint64_t a = integer_of(x, &ex), b = integer_of(y, &ey);
    const int sign = (int)((mpsim_bits_f64(x) ^ mpsim_bits_f64(y)) >> 63);
    uint64_t hi, lo;
    mpsim_mul64(&hi, &lo, a, b);
    deposit(s, sign, lo, ex + ey);
    if (hi)
        deposit(s, sign, hi, ex + ey + 64);
    count_additions(s, 2);
}

void mpsim_sum_add_square(mpsim_sum *s, double x)
{
    mpsim_sum_add_product(s, x, x);
}

void mpsim_sum_add_integer(mpsim_sum *s, int sign, mpsim_wide x, int exp)
{
    deposit(s, sign, x.lo, exp);
    if (x.hi)
        deposit(s, sign, x.hi, exp + 64);
    count_additions(s, 2);
}

/* Both sides are brought to the same canonical digits first, so that a merged accumulator
 * is equal to one that saw all the elements. */
static void merge(mpsim_sum *to, const mpsim_sum *from, int sign)
{
    mpsim_sum b;
    if (from->end == 0) {
        propagate(to);
        return;
    }
    memset(b.limb + from->first, 0, sizeof b.limb - from->first * sizeof *b.limb);
    memcpy(b.limb + from->first, from->limb + from->first, (size_t)(from->end - from->first) * sizeof *b.limb);
    b.first = from->first;
    b.end = from->end;
    propagate(&b);
    propagate(to);
    if (b.end)
        touch(to, b.first, b.end - b.first);
    for (int i = b.first; i < b.end; i++)
        to->limb[i] += sign * b.limb[i];
    propagate(to);
}

void mpsim_sum_merge(mpsim_sum *to, const mpsim_sum *from)
{
    merge(to, from, 1);
}

void mpsim_sum_subtract(mpsim_sum *from, const mpsim_sum *s)
{
    merge(from, s, -1);
}

mpsim_number mpsim_sum_number(const mpsim_sum *s)
{
    mpsim_sum m = *s;
    propagate(&m);
    int top = m.end ? m.end - 1 : 0;
    const int sign = m.limb[top] < 0;
    if (sign) {
        for (int i = m.first; i < m.end; i++)
            m.limb[i] = -m.limb[i];
        propagate(&m);
        top = m.end - 1;
    }
    mpsim_number x = mpsim_number_make(sign, (uint64_t)m.limb[top], 32 * top + LOWEST);
    if (x.hi == 0) {
        x.sign = 0;
        return x;
    }
    int room = mpsim_clz64((uint64_t)m.limb[top]) + 64; /* free bits of hi:lo below the limb */
    for (int i = top - 1; i >= m.first; i--) {
        const uint64_t limb = (uint64_t)m.limb[i];
        room -= 32;
        if (room >= 64) {
            x.hi |= limb << (room - 64);
        } else if (room > 32) {
            x.hi |= limb >> (64 - room);
            x.lo |= limb << room;
        } else if (room >= 0) {
            x.lo |= limb << room;
        } else if (limb) {
            x.lo |= 1;
        }
    }
    return x;
}

static double round_to_f64(mpsim_number x)
{
    static const mpsim_format binary64 = {.bits = 64,
                                          .ebits = 11,
                                          .mbits = 52,
                                          .inf = 1,
                                          .nan = MPSIM_NAN_TOP,
                                          .bias = 1023,
                                          .max_finite = 0x7fefffffffffffff,
                                          .nan_code = 0x7ff8000000000000};
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_f64_bits(mpsim_scalar_encode(&binary64, &r, MPSIM_ROUND_NEAREST_EVEN, x, 0, &flags));
}

double mpsim_sum_value(const mpsim_sum *s)
{
    return round_to_f64(mpsim_sum_number(s));
}

double mpsim_sum_frexp(const mpsim_sum *s, int *exponent)
{
    mpsim_number x = mpsim_sum_number(s);
    *exponent = x.hi ? x.exp + 1 : 0;
    x.exp = -1; /* in [1/2, 1): nothing overflows or is subnormal */
    const double f = round_to_f64(x);
    if (f != 1 && f != -1)
        return f;
    ++*exponent;
    return f / 2;
}

void mpsim_sum_add_times(mpsim_sum *to, const mpsim_sum *s, uint64_t times)
{
    for (int i = s->first; i < s->end; i++) {
        const int64_t v = s->limb[i];
        const uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
        mpsim_sum_add_integer(to, v < 0, mpsim_wide_product(magnitude, times), 32 * i + LOWEST);
    }
}
