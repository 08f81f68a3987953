/* blockquant.h -- quantising what a tile holds of a tensor as if all of the tensor had been quantised at once. */
#ifndef MPSIM_SIM_STAT_BLOCKQUANT_H
#define MPSIM_SIM_STAT_BLOCKQUANT_H

#include "../cli/target.h"
#include "../pass/peaks.h"

/* A rectangle of the matrix that is quantised, `cols` of whose `all_cols` columns it has, from row `row` and column
 * `col` on; whole blocks, but of recipes whose scale is that of a row or of the tensor. */
typedef struct block_rectangle {
    const float *x;
    const float *origin;      /* errors are against this; NULL: x */
    float *values;            /* or NULL                          */
    size_t rows, cols;
    uint64_t row, col, all_cols;
    peak tensor;              /* of all its elements              */
    const peak *of_rows;      /* of each of its rows; NULL where no recipe needs it */
    int begins;               /* it has the tensor's first element */
} block_rectangle;

/* Buffers of a thread. */
typedef struct block_room {
    float *x, *origin, *values; /* of a block        */
    float *amax;                /* of several blocks */
} block_room;

/* block_room_make -- 0, or -1 without memory; block_room_clear in any case. */
int block_room_make(block_room *r);
void block_room_clear(block_room *r);

/* What a recipe needs of the tensor before its blocks. */
int block_needs_tensor(const mpsim_block_recipe *b);
int block_needs_rows(const mpsim_block_recipe *b);

/* block_quantise -- add to *to (NULL: nothing). Random bits: word i of the stream is that of element i of the matrix, but
 * under blocks of several rows of element i of the blocks, one behind the other, each as large as those in the middle. */
void block_quantise(const mpsim_block_recipe *b, const block_rectangle *r, const mpsim_rng *rng, block_room *room,
                    mpsim_block_stats *to);

#endif
