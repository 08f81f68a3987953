/* sumtile.h -- sums of a convolution, a tile at a time: the depth in pieces that stay in a cache, what follows the sums, and
 * where they are stored. */
#pragma once

#include "epilogue.h"

#include <mpsim/convolution.h>

/* A row or a column of a tile: what it adds to the place of a number in memory, in codes, and to its number in the result;
 * its output, which has a bias. */
typedef struct mpsim_spot {
    int64_t at;
    uint64_t number;
    size_t output;
} mpsim_spot;

/* What the tiles of a result share. */
typedef struct mpsim_summing {
    const mpsim_convolution *c;
    mpsim_epilogue e;
    size_t piece; /* products that are added in one call; 0: all of them */
} mpsim_summing;

typedef struct mpsim_sumtile {
    mpsim_summing *s;
    size_t rows, columns;
    mpsim_spot *row, *column; /* set by who adds up                          */
    int bias_by_row;          /* outputs are those of rows, not of columns   */
    unsigned char *sums;      /* codes of the model's result, row-major      */
} mpsim_sumtile;

/* mpsim_summing_check -- MPSIM_OK if the sums of c can be made and stored; MPSIM_EINVAL, MPSIM_ERANGE. */
mpsim_status mpsim_summing_check(const mpsim_convolution *c);

void mpsim_summing_init(mpsim_summing *s, const mpsim_convolution *c);

/* mpsim_summing_end -- adds what was counted; what went wrong in tiles that were stored. */
mpsim_status mpsim_summing_end(mpsim_summing *s);

/* mpsim_sumtile_open -- memory for a tile; 0: there is none. */
int mpsim_sumtile_open(mpsim_sumtile *t, mpsim_summing *s, size_t rows, size_t columns);
void mpsim_sumtile_close(mpsim_sumtile *t);

/* mpsim_sumtile_add -- `depth` more products, of a: rows x depth and b: depth x columns; the first begin with +0. */
mpsim_status mpsim_sumtile_add(mpsim_sumtile *t, const mpsim_matrix *a, const mpsim_matrix *b, size_t depth,
                               int is_first);

/* mpsim_sumtile_whole -- all products, in pieces. */
mpsim_status mpsim_sumtile_whole(mpsim_sumtile *t, const mpsim_matrix *a, const mpsim_matrix *b, size_t depth);

/* mpsim_sumtile_dots -- all products, one number after the other, with random words: a, b: lines of `depth` codes. */
mpsim_status mpsim_sumtile_dots(mpsim_sumtile *t, const void *a, const void *b, size_t depth);

/* mpsim_sumtile_store -- what follows the sums. */
void mpsim_sumtile_store(mpsim_sumtile *t);
