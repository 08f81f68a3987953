/* tile_lane.h -- one column of one addition of tile.h, in scalars, for the lanes that vectors leave: every
 * exponent, sums of any size, subnormal results. */
#pragma once

#include "tile.h"

/* How a column ends that the reference must do, as bits of redo: where it overflowed, the accumulator is that infinity, and
 * stays it; else nobody knows. */
enum { MPSIM_TILE_OVERFLOW = 1, MPSIM_TILE_UNKNOWN = 0x10001 };

/* The accumulator for T 2^(E - F) given as a binary64 number that is not zero, +0 where it rounds to
 * zero; *bad: one of these, or 0. */
static inline uint64_t mpsim_tile_round(const mpsim_tile *t, uint64_t u, unsigned *bad)
{
    uint64_t m = u & 0x7fffffffffffffffu;
    const int e = (int)(m >> 52) - 1023;
    const int drop = 52 - t->mbits + (e < t->emin ? t->emin - e : 0);
    if (drop > 51) { /* the last bit that is kept is not among the 52 explicit ones */
        *bad = MPSIM_TILE_UNKNOWN;
        return 0;
    }
    if (t->nearest)
        m += ((uint64_t)1 << (drop - 1)) - 1 + (m >> drop & 1);
    m = m >> drop << drop;
    *bad = m > t->most ? MPSIM_TILE_OVERFLOW : 0;
    m = *bad ? 0x7ff0000000000000 : m;
    return m ? m | (u & 0x8000000000000000u) : 0;
}

/* The exponent of an accumulator, one that is zero does not count. */
static inline int mpsim_tile_exponent(const mpsim_tile *t, double c)
{
    const int e = (int)(mpsim_bits_f64(c) >> 52 & 0x7ff) - 1023;
    return c == 0 ? MPSIM_EXPONENT_ZERO : e > t->emin ? e : t->emin;
}

/* Adds x toward zero to *sum. 0 where it is no number, or too large for one of a few hundred. */
static inline int mpsim_tile_take(double x, int64_t *sum)
{
    if (!(x > -0x1p53 && x < 0x1p53))
        return 0;
    *sum += (int64_t)x;
    return 1;
}

/* *c after an addition of n products a[k] b[k MPSIM_TILE], their exponents ea[k] and eb[2 MPSIM_TILE (k / 2)
 * + k % 2]. Returns 0, or how it ended. */
static inline unsigned mpsim_tile_lane(const mpsim_tile *t, const float *a, const int16_t *ea, const float *b,
                                       const int16_t *eb, float *c, size_t n)
{
    int e = mpsim_tile_exponent(t, (double)*c);
    unsigned bad = 0;
    if ((mpsim_bits_f32(*c) & 0x7f800000) == 0x7f800000)
        return MPSIM_TILE_OVERFLOW;
    e = e > t->floor ? e : t->floor;
    for (size_t k = 0; k < n; k++) {
        const int es = ea[k] + eb[2 * MPSIM_TILE * (k / 2) + k % 2];
        e = es > e ? es : e;
    }
    const double up = mpsim_f64_bits((uint64_t)(1023 + t->fraction - e) << 52);
    const double down = mpsim_f64_bits((uint64_t)(1023 - t->fraction + e) << 52);
    int64_t sum = 0;
    int fits = mpsim_tile_take((double)*c * up, &sum);
    for (size_t k = 0; k < n; k++)
        if (ea[k] + eb[2 * MPSIM_TILE * (k / 2) + k % 2] > MPSIM_EXPONENT_ZERO / 2) /* in cut.h zeros are numbers */
            fits &= mpsim_tile_take((double)a[k] * (double)b[k * MPSIM_TILE] * up, &sum);
    if (!fits) {
        *c = 0;
        return MPSIM_TILE_UNKNOWN;
    }
    const uint64_t u = sum ? mpsim_tile_round(t, mpsim_bits_f64((double)sum * down), &bad) : 0;
    *c = (float)mpsim_f64_bits(u);
    return bad;
}
