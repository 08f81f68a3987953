/* epilogue.h -- the end of the sums of a product: factors, bias, an addend, one rounding, the place in memory. */
#pragma once

#include "../round/ready.h"
#include "stack.h"

#include <stdatomic.h>

/* A matrix that is added: its first code here, and the steps from row to row and from column to column. */
typedef struct mpsim_addend {
    const mpsim_format *format;
    const void *codes; /* NULL: none */
    int64_t first, row, col;
} mpsim_addend;

/* What all matrices of a product share. */
typedef struct mpsim_epilogue {
    const mpsim_format *sums;       /* of the model's results                          */
    const mpsim_format *numbers;    /* that are rounded to                             */
    const mpsim_format *lies;       /* of d's codes                                    */
    int wide;                       /* in binary64                                     */
    int narrow;                     /* binary32 has all these numbers                  */
    int rounds;                     /* 0: sums are such numbers, and nothing is done to them */
    int scales, multiplies, weighs; /* factors other than 1                          */
    float inverse, factor, add_factor;
    int counting;
    mpsim_rounding rounding;
    mpsim_ready ready;       /* this rounding, to d's codes */
    atomic_ullong counts[4]; /* those of mpsim_entered, in their order */
    atomic_int status;
} mpsim_epilogue;

/* mpsim_epilogue_init -- results of `sums` as `numbers` (NULL: those of d's format) in d's format; no factor, nothing counted.
 * mpsim_epilogue_scale -- what they are multiplied by. mpsim_epilogue_count -- adds what was counted; to NULL: nothing. */
void mpsim_epilogue_init(mpsim_epilogue *e, const mpsim_format *sums, const mpsim_format *numbers,
                         const mpsim_format *lies);
void mpsim_epilogue_scale(mpsim_epilogue *e, float inverse_a, float inverse_b, float factor);
void mpsim_epilogue_count(const mpsim_epilogue *e, mpsim_entered *to);

/* One matrix of d. */
typedef struct mpsim_ending {
    mpsim_epilogue *e;
    void *d;
    int64_t first, row, col;
    mpsim_addend bias, add;
} mpsim_ending;

enum { MPSIM_ENDING_ROWS = 32 };

/* mpsim_end_sums -- rows first to first + rows - 1 (at most MPSIM_ENDING_ROWS), at most MPSIM_PANEL columns, from sums of
 * e->sums that are `stride` apart from row to row. In the default environment. */
void mpsim_end_sums(mpsim_ending *to, size_t first, size_t rows, size_t column, size_t columns, const void *sums,
                    size_t stride);
