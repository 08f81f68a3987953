/* tile.h -- the fast path of fused additions: one row of a times a panel of columns of b.
 *
 * The same bits as mpsim_fused_sum and mpsim_fused_round, in plain loops over the columns of a
 * panel that compilers turn into vector code. A product of two operands is exact in binary32 (small
 * exponents) or binary64; scaled by a power of two and converted to an integer it is truncated,
 * which is what the hardware's alignment does. No operation before a conversion is inexact but
 * those that underflow, and these convert to 0 however they round, so that neither the rounding
 * mode nor flush-to-zero can change a bit. Accumulators are binary64 numbers.
 * What a panel cannot do (infinities, NaN, overflow, results far below the normal range) it
 * reports, and the reference does it. */
#ifndef MPSIM_LIB_DOT_TILE_H
#define MPSIM_LIB_DOT_TILE_H

#include "panel.h"
#include "scalar.h"

enum { MPSIM_TILE = MPSIM_PANEL }; /* columns of a panel */

typedef struct mpsim_tile {
    int wide;               /* operands are binary64, not binary32                       */
    int length, fraction;
    int group;              /* products whose aligned sum fits in 31 bits                */
    int floor;              /* of the exponent E                                         */
    int lowest;             /* no product that is not zero has a lower exponent          */
    int emin, mbits;        /* of the accumulator                                        */
    int nearest;            /* it is rounded to nearest even, not toward zero            */
    uint64_t least, most;   /* bits of its smallest normal and largest number            */
} mpsim_tile;

/* mpsim_tile_init -- whether the fast path can do this model with these operands; fills *t. */
int mpsim_tile_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa,
                    const mpsim_format *fb);

/* mpsim_tile_lowest -- the smallest exponent e of an operand that is not zero. */
int mpsim_tile_lowest(const mpsim_model *m, const mpsim_format *f);

/* A tile function -- all additions over `depth` products.
 *
 *   a, ea  depth values and exponents e_a of a row (MPSIM_EXPONENT_ZERO for zeros)
 *   b, eb  the same for MPSIM_TILE columns, k-major
 *   c      MPSIM_TILE accumulators, finite; overwritten
 *
 * Returns the columns, as bits, that the reference must do again from the start. */
typedef unsigned mpsim_tile_function(const mpsim_tile *t, const void *a, const int16_t *ea,
                                     const void *b, const int16_t *eb, double *c, size_t depth);

#endif
