/* exact.h -- the fast path of exact sums: products of numbers that binary32 has, added in binary64
 * where nothing can be inexact, else in integers of 128 bits, which is decided by row and
 * column. */
#ifndef MPSIM_LIB_DOT_EXACT_H
#define MPSIM_LIB_DOT_EXACT_H

#include "chain.h"

/* What exact sums of a matrix product have in common. Values of lines are binary64. */
typedef struct mpsim_exact {
    int bits_a, bits_b;  /* significand of the operands: mbits + 1       */
    int carry;           /* bits that the sum of `depth` terms may add   */
    size_t depth;
} mpsim_exact;

/* mpsim_exact_init -- whether the fast path can do this model with these operands. */
int mpsim_exact_init(mpsim_exact *e, const mpsim_model *m, const mpsim_format *fa,
                     const mpsim_format *fb, size_t depth);

/* One row of a and a panel of b, with the exponents of their least and largest numbers. */
typedef struct mpsim_exact_row {
    const double *a, *b;
    int low, high;
    const int16_t *lows, *highs; /* MPSIM_PANEL */
} mpsim_exact_row;

/* mpsim_exact_in_f64 -- whether binary64 holds every sum of the row. */
int mpsim_exact_in_f64(const mpsim_exact *e, const mpsim_exact_row *x);

/* mpsim_exact_integers -- the sums of the columns of `wanted` as numbers. Returns the columns, as
 * bits, whose sums do not fit. A sum of zero has sign 0. */
unsigned mpsim_exact_integers(const mpsim_exact *e, const mpsim_exact_row *x, unsigned wanted,
                              mpsim_number *sums);

#endif
