/* lanes.h -- the fast paths of additions that AMD's matrix instructions make (but those in two stages: cut.h), and of chains of fused multiply-adds in
 * binary64: rows of a times a panel of columns of b, a column a lane. Bits of the reference.
 *
 *  - Doubles: the machine's own operation.
 *  - Exact sums of up to 128 products and the accumulator, rounded to binary32: products of numbers of up to 24 bits in
 *    both together are exact in binary64, each addition's error is computed there (Knuth's two-sum), and where
 *    all are zero the sum is exact and the machine rounds it. Other lanes are left to the exact sums of
 *    lib/stats/sum.h.
 *  - Flushed: products and sums of neighbours in binary32 by the machine, subnormal results set to zero.
 *
 * Lanes that have a result that is not finite are reported, and the reference does them. Counts on the default
 * environment. */
#pragma once

#include "panel.h"

enum { MPSIM_LANES_NONE, MPSIM_LANES_DOUBLE, MPSIM_LANES_EXACT, MPSIM_LANES_FLUSHED };

typedef struct mpsim_lanes {
    int kind;
    size_t length;      /* products an addition         */
    int flush_products; /* FLUSHED: one may be subnormal */
} mpsim_lanes;

/* mpsim_lanes_init -- whether one of these paths can do the model with these operands; fills *p. */
int mpsim_lanes_init(mpsim_lanes *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* mpsim_lanes_exact -- *c + the products of n values, exactly, rounded to binary32; an exact zero is +0.
 * b: MPSIM_PANEL values from one to the next. Returns whether the reference must do it: it is not finite. */
unsigned mpsim_lanes_exact(const float *a, const float *b, float *c, size_t n);

/* A lanes function -- all additions over `depth` products: `rows` rows of a, `next` values apart, and a panel of b,
 * from accumulators c (rows x MPSIM_PANEL), which are overwritten.
 * redo[r] |= the columns that the reference must do. */
typedef void mpsim_lanes_function(const mpsim_lanes *p, const float *a, size_t next, const float *b, float *c,
                                  size_t rows, size_t depth, unsigned *redo);
