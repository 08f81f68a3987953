/* oracle_sum.h -- of oracle_dot.c: an exact sum of numbers and products, by GMP's integers, and its rounding to a code.
 *
 * Not for threads: one sum is under way at a time. */
#pragma once

#include "oracle.h"

#include <gmp.h>
#include <mpsim/dot.h>
#include <stdint.h>

/* A sum under way: oracle_total 2^unit, or what its special terms make of it. */
typedef struct oracle_exact {
    enum { NUMBER, INFINITE, NO_VALUE, NOT_A_NUMBER } kind;
    int negative;     /* of an infinity or a NaN                             */
    uint64_t payload; /* of a NaN                                            */
    int plus, minus;  /* terms of that sign, zeros included                  */
    long unit;
} oracle_exact;

extern mpz_t oracle_total; /* of the one sum that is under way */

uint64_t oracle_integer(const mpz_t z); /* below 2^64: mpz_get_ui gives what fits in a long */

void oracle_begin(oracle_exact *x); /* zero, of no terms */
void oracle_add(oracle_exact *x, double v);
void oracle_add_product(oracle_exact *x, double a, double b);
void oracle_add_infinity(oracle_exact *x, int negative);

/* oracle_add_aligned -- oracle_total += +-s 2^w in units of 2^unit, which the caller knows; what is below the unit goes
 * as the alignment says (MPSIM_ALIGN_...). */
void oracle_add_aligned(uint64_t s, int negative, long w, int alignment, long unit);

/* oracle_forget_nan -- exact sums and fused additions: which NaN it was does not count. */
void oracle_forget_nan(oracle_exact *x);

/* oracle_is_negative_zero -- the sign of a sum of zero: terms of one sign keep it, else +0, or -0 in mode DOWN. */
int oracle_is_negative_zero(const oracle_exact *x, const mpsim_rounding *r);

/* oracle_is_tiny -- does |sum| stay below the smallest normal number of the format even where there are smaller ones? */
int oracle_is_tiny(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r, uint32_t random);

/* oracle_code -- the code of the sum, which is lost. An exact zero has the sign `negative_zero`; with `to_infinity` an
 * overflow is an infinity in every mode. */
uint64_t oracle_code(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *rounding, uint32_t random,
                     int negative_zero, int to_infinity);
