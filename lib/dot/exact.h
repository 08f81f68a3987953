/* exact.h -- the fast path of exact sums: products of numbers that binary32 has. Where binary64 holds every
 * sum of a row and the columns of a panel they are added there; where it holds those of a row that is cut in two, two
 * sums are, whose sum is rounded once; else the numbers are cut in slices. Where lines are too wide for slices, a sum in
 * binary64 has bounds, and the code is known where both bounds have it (sums.c).
 *
 * The numbers of a line (a row or a column) are integers below 2^width in units of 2^unit.
 *
 * Halves: with h = (width + 1) / 2 a number of a row is a multiple of 2^h units, at most 2^(width - h) of them, and a
 * rest of at most 2^(h - 1) units, the nearest such; width - h and h - 1 are at most width / 2. So binary64 holds both
 * sums with columns of width w where width / 2 + w and what adding carries are at most 53 bits.
 *
 * Slice i of such a number is a multiple of 2^(21 i) units, at most 2^21 of them in magnitude, and a number is the sum of
 * its 2 or 3 slices: x + 1.5 2^(52 + u) - 1.5 2^(52 + u) is x to the nearest multiple of 2^u, and what is
 * left of x, exact and at most half of that, gives the slices below. Products of slices i and j are
 * multiples of 2^(21 (i + j)), at most 2^42 of them; 3 * 512 or 2 * 1024 of them have a sum that is exact in
 * binary64. These sums are added in integers of 128 bits. Counts on the default environment.
 *
 * What bounds it (make bench, rows `chain`): sums are chains in binary64 and reach 0.66 of its peak; sums in halves
 * are two chains and reach 0.7 of half the peak. A row is cut for four panels at a time. Rows of binary64 operands
 * are read in place and reach 0.7 to 0.75; half of the rest is reading operands of 2 MiB twice, once for NaNs and
 * infinities. */
#pragma once

#include "chain.h"

enum {
    MPSIM_SLICE = 21,          /* bits */
    MPSIM_SLICES = 3,          /* most of a number */
    MPSIM_SLICE_PRODUCTS = 512 /* that are added before the sums are taken */
};

/* What exact sums of a matrix product have in common. Values of lines are binary64. */
typedef struct mpsim_exact {
    int bits_a, bits_b; /* significand of the operands: mbits + 1       */
    int last_a, last_b; /* exponent of the last bit of any number       */
    int carry;          /* bits that the sum of `depth` terms may add   */
    size_t depth;
} mpsim_exact;

/* mpsim_exact_init -- whether the fast path can do this model with these operands. */
int mpsim_exact_init(mpsim_exact *e, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb,
                     size_t depth);

/* Rows of a, `next` values apart, and a panel of b, with the exponents of their least and largest
 * numbers. */
typedef struct mpsim_exact_lines {
    const double *a, *b;
    size_t rows, next;
    const int16_t *low, *high;   /* rows */
    const int16_t *lows, *highs; /* MPSIM_PANEL */
} mpsim_exact_lines;

/* How sums are taken. */
enum { MPSIM_EXACT_WHOLE, MPSIM_EXACT_HALVES, MPSIM_EXACT_SLICED };

/* mpsim_exact_width -- of the widest column; mpsim_exact_way -- how the sums of row r with columns so wide are taken. */
int mpsim_exact_width(const mpsim_exact *e, const mpsim_exact_lines *x);
int mpsim_exact_way(const mpsim_exact *e, const mpsim_exact_lines *x, size_t r, int width);

/* mpsim_exact_cut -- 1.5 2^(52 + u): adding and subtracting it gives the higher half of a number of row r. */
double mpsim_exact_cut(const mpsim_exact *e, const mpsim_exact_lines *x, size_t r);

/* A function of halves -- n values in two. */
typedef void mpsim_halves_function(const double *x, double cut, double *high, double *low, size_t n);

/* A function of odd sums -- MPSIM_PANEL sums high + low, each rounded to odd. */
typedef void mpsim_odd_function(const double *high, const double *low, double *s);

/* A slicing function -- slices of 16 n values: c[i][j], 0 < i < count, is 1.5 2^(52 + u) for slice i of
 * values j modulo 16. to[k][i]: slices i of the values 16 k to 16 k + 15. */
typedef void mpsim_slice_function(const double *x, const double (*c)[MPSIM_PANEL], double *to, size_t count, size_t n);

/* A function of products of slices -- s[i + j] += the products of slices i of a row and slices j of a
 * panel, both as above, over depth products. */
typedef void mpsim_slices_function(const double *a, const double *b, double (*s)[MPSIM_PANEL], size_t count,
                                   size_t depth);

/* mpsim_exact_slices -- the sums of the columns that are not in redo[r] as numbers; redo[r] |= the columns
 * whose sums do not fit. A sum of zero has sign 0. Nothing is done for rows with redo[r] = ~0u. */
void mpsim_exact_slices(const mpsim_exact *e, const mpsim_exact_lines *x, mpsim_slice_function *slice,
                        mpsim_slices_function *add, unsigned *redo, mpsim_number (*sums)[MPSIM_PANEL]);
