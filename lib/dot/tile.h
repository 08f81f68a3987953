/* tile.h -- the fast path of fused additions: rows of a times a panel of columns of b.
 *
 * The same bits as mpsim_fused_sum and mpsim_fused_round. A product of two operands is exact;
 * scaled by a power of two and converted to an integer it is truncated, which is what the
 * hardware's alignment does. There are two ways:
 *
 *  - Vectors (loops/fused_loops.h) of binary32 lanes, for all rows of the table: operands that are
 *    binary32 numbers, 24 bits for both significands. Where the exponent E of the alignment is
 *    within MPSIM_TILE_LOW and _HIGH products neither overflow nor lose a bit but where they are
 *    below 2^-125, and these are aligned to 0 however they round: 2^(F - E) <= 2^118. A lane of
 *    another E, one whose sum does not fit 32 bits or whose result is not ordinary is done alone
 *    (tile_lane.h).
 *  - Plain loops over the columns (loops/tile_loops.h) for everything else. Accumulators are
 *    binary64 numbers.
 *
 * What these cannot do (overflow, results far below the normal range) they report, and the reference does it. Infinities and
 * NaNs count as zeros here: see special.h. */
#pragma once

#include "panel.h"
#include "scalar.h"

enum { MPSIM_TILE = MPSIM_PANEL }; /* columns of a panel */

enum { MPSIM_CUT_NONE, MPSIM_CUT_NARROW, MPSIM_CUT_WIDE };

enum { MPSIM_TILE_LOW = -90, MPSIM_TILE_HIGH = 60 };

typedef struct mpsim_tile {
    int vectors; /* exponents of a panel stand in pairs, accumulators are binary32 */
    int cut;     /* vectors: by the chains of cut.h: MPSIM_CUT_... */
    int counts;  /* cut: the machine has an instruction that counts bits */
    int tame;    /* cut: products are so few and small that no sum that begins small becomes large */
    int wide;    /* operands are binary64, not binary32                       */
    int length, fraction;
    int ways, kept,
        drop;        /* of an addition in two stages (staged.h), which only the chains of cut.h do; else ways is 0 */
    int group;       /* products whose aligned sum fits in 31 bits                */
    int floor;       /* of the exponent E                                         */
    int lowest;      /* no product that is not zero has a lower exponent          */
    int emin, mbits; /* of the accumulator                                        */
    int nearest;     /* it is rounded to nearest even, not toward zero            */
    uint64_t least, most; /* bits of its smallest normal and largest number            */
} mpsim_tile;

/* mpsim_tile_init -- whether the fast path can do this model with these operands; fills *t. */
int mpsim_tile_init(mpsim_tile *t, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* mpsim_tile_lowest -- the smallest exponent e of an operand that is not zero. */
int mpsim_tile_lowest(const mpsim_model *m, const mpsim_format *f);

/* A tile function -- all additions over `depth` products.
 *
 *   a, ea  depth values and exponents e_a of a row (MPSIM_EXPONENT_ZERO for zeros)
 *   b, eb  the same for MPSIM_TILE columns, k-major
 *   c      MPSIM_TILE accumulators, finite; overwritten
 *
 * Returns the columns, as bits, that the reference must do again from the start. */
typedef unsigned mpsim_tile_function(const mpsim_tile *t, const void *a, const int16_t *ea, const void *b,
                                     const int16_t *eb, double *c, size_t depth);

/* A fused function -- the same in vectors, for `rows` rows that are `next` values apart. The exponents
 * of columns stand in pairs: those of k and k + 1, k even, side by side. depth is even.
 * redo[r] |= the columns that the reference must do. */
typedef void mpsim_fused_function(const mpsim_tile *t, const float *a, const int16_t *ea, size_t next, const float *b,
                                  const int16_t *eb, float *c, size_t rows, size_t depth, unsigned *redo);
