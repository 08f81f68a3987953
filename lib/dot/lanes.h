/* lanes.h -- the fast paths of additions that AMD's matrix instructions make, and of chains of fused multiply-adds in
 * binary64: rows of a times a panel of columns of b, a column a lane. Bits of the reference.
 *
 *  - Doubles: the machine's own operation.
 *  - Exact sums of up to 128 products and the accumulator, rounded to binary32: products of numbers of up to 24 bits in
 *    both together are exact in binary64, each addition's error is computed there (Knuth's two-sum), and where
 *    all are zero the sum is exact and the machine rounds it. Other lanes are left to the exact sums of
 *    lib/stats/sum.h.
 *  - Flushed: products and sums of neighbours in binary32 by the machine, subnormal results set to zero.
 *  - In two stages: integers of 32 bits per lane. A product is cut to one as in tile.h, the exponents of a
 *    sum within MPSIM_TILE_LOW and _HIGH; sums are shifted, which rounds toward -infinity. With T the sum of the products in units
 *    of 2^(E' - F), d = E - E' and C the accumulator in units of 2^(E - F), the whole is T 2^(k - d) + C 2^k units
 *    of 2^(E - F - k), k = kept + 1 - F: its higher part (T >> d) + C and its k lower bits are put together as a binary64
 *    number, which adding and subtracting 1.5 2^(52 - kept) times its power of two rounds to kept + 1 bits; the last step
 *    is the machine's rounding to binary32.
 *
 * Lanes that have a result that is not finite are reported, and the reference does them. Counts on the default
 * environment. */
#pragma once

#include "staged.h"
#include "tile.h"

enum { MPSIM_LANES_NONE, MPSIM_LANES_DOUBLE, MPSIM_LANES_EXACT, MPSIM_LANES_FLUSHED, MPSIM_LANES_STAGED };

typedef struct mpsim_lanes {
    int kind;
    size_t length;       /* products an addition                                        */
    int flush_products;  /* FLUSHED: one may be subnormal                                */
    int lower;           /* STAGED: k                                                    */
    mpsim_staged staged; /* STAGED; bits_a: significand bits of a's format               */
    int bits_a, bits_b;
} mpsim_lanes;

/* mpsim_lanes_init -- whether one of these paths can do the model with these operands; fills *p. */
int mpsim_lanes_init(mpsim_lanes *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* mpsim_lanes_exact -- *c + the products of n values, exactly, rounded to binary32; an exact zero is +0.
 * b: MPSIM_PANEL values from one to the next. Returns whether the reference must do it: it is not finite. */
unsigned mpsim_lanes_exact(const float *a, const float *b, float *c, size_t n);

/* mpsim_lanes_staged -- the same of an addition in two stages; exponents as in mpsim_tile_lane. */
unsigned mpsim_lanes_staged(const mpsim_lanes *p, const float *a, const int16_t *ea, const float *b, const int16_t *eb,
                            float *c, size_t n);

/* A lanes function -- all additions over `depth` products: `rows` rows of a, `next` values apart, and a panel of b,
 * from accumulators c (rows x MPSIM_PANEL), which are overwritten. Exponents: STAGED only, those of columns in pairs (tile.h), depth even.
 * redo[r] |= the columns that the reference must do. */
typedef void mpsim_lanes_function(const mpsim_lanes *p, const float *a, const int16_t *ea, size_t next, const float *b,
                                  const int16_t *eb, float *c, size_t rows, size_t depth, unsigned *redo);
