/* blockquant.h -- quantising a tile of a matrix: the statistics of all tiles add up to those of the whole matrix. */
#pragma once

#include "../operand/target.h"
#include "../pass/amax.h"

/* A rectangle of a matrix of `all_cols` columns, from row `row` and column `col` on. It holds whole blocks, unless a block
 * is a row or the matrix. */
typedef struct block_rectangle {
    const float *x;
    const float *origin; /* errors are against this; NULL: x */
    float *values;       /* or NULL                          */
    size_t rows, cols;
    uint64_t row, col, all_cols;
    amax3 tensor;         /* of the matrix                    */
    const amax3 *of_rows; /* of the whole rows that the rectangle is of; NULL where no recipe needs them */
    int begins;           /* it has the first element of the matrix */
} block_rectangle;

/* Buffers of a thread: of a stochastic block, and the amaxes of several blocks, three magnitudes of each in x. */
enum { BLOCK_ROOM = 1 << 12, BLOCK_AMAXES = 1 << 10 };
typedef struct block_room {
    float x[BLOCK_ROOM], origin[BLOCK_ROOM], values[BLOCK_ROOM];
    float amax[BLOCK_AMAXES];
} block_room;

/* Whether a recipe needs the amax of all of the matrix, or those of its rows. */
int stat_block_needs_tensor(const mpsim_block_recipe *b);
int stat_block_needs_rows(const mpsim_block_recipe *b);

/* stat_block_quantise -- add the statistics to *to (NULL: nothing). Element i of the matrix takes random word i of the stream,
 * counted row by row; with blocks of several rows it is counted block by block, those at the edges as large as others. */
void stat_block_quantise(const mpsim_block_recipe *b, const block_rectangle *r, const mpsim_rng *rng, block_room *room,
                         mpsim_block_stats *to);
