/* sum.h -- an exact sum as a number that can be rounded to any format; integers added to it. */
#pragma once

#include "../round/scalar.h"

#include <mpsim/stats.h>

/* The sum with its highest 97 or more bits, and a sticky bit for the rest; +0 if it is zero. */
mpsim_number mpsim_sum_number(const mpsim_sum *s);

/* An integer of 128 bits, not negative. */
typedef struct mpsim_wide {
    uint64_t hi, lo;
} mpsim_wide;

static inline void mpsim_wide_add(mpsim_wide *to, mpsim_wide x)
{
    to->lo += x.lo;
    to->hi += x.hi + (to->lo < x.lo);
}

static inline mpsim_wide mpsim_wide_product(uint64_t a, uint64_t b)
{
    mpsim_wide p;
    mpsim_mul64(&p.hi, &p.lo, a, b);
    return p;
}

/* to += s, `times` times. Of s a few limbs are not zero. */
void mpsim_sum_add_times(mpsim_sum *to, const mpsim_sum *s, uint64_t times);

/* s += (-1)^sign * x * 2^exp, -2176 <= exp <= 1900 */
void mpsim_sum_add_integer(mpsim_sum *s, int sign, mpsim_wide x, int exp);
