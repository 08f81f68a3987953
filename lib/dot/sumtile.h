/* sumtile.h -- sums of a convolution, a tile at a time: the depth in pieces that stay in a cache, what follows the sums, and
 * where they are stored. */
#pragma once

#include <mpsim/convolution.h>

/* A row or a column of a tile: what it adds to the place of a number in memory, in codes, and to its number in the result;
 * its output, which has a bias. */
typedef struct mpsim_place {
    ptrdiff_t at;
    uint64_t number;
    size_t output;
} mpsim_place;

/* What the tiles of a result share. */
typedef struct mpsim_summing {
    const mpsim_convolution_how *how;
    const mpsim_format *a, *b;   /* of the operands, as they are multiplied             */
    const mpsim_strided *result; /* its codes and formats                               */
    void *bias;                  /* by output: float, or double where `wide`; NULL: none */
    int wide;                    /* sums are finished in binary64                       */
    size_t piece;                /* products that are added in one call; 0: all of them */
} mpsim_summing;

typedef struct mpsim_sumtile {
    const mpsim_summing *s;
    size_t rows, columns;
    mpsim_place *row, *column; /* set by who adds up                             */
    int bias_by_row;           /* outputs are those of rows, not of columns      */
    unsigned char *sums;       /* codes of the model's result, row-major         */
    void *values;              /* as many numbers                                */
} mpsim_sumtile;

/* mpsim_summing_check -- MPSIM_OK if the sums can be made and stored; MPSIM_EINVAL, MPSIM_ERANGE. */
mpsim_status mpsim_summing_check(const mpsim_convolution_how *how, const mpsim_format *a, const mpsim_format *b,
                                 const mpsim_strided *result);

/* mpsim_summing_init -- bias: NULL, or `outputs` numbers that mpsim_summing_bias has put side by side. */
void mpsim_summing_init(mpsim_summing *s, const mpsim_convolution_how *how, const mpsim_format *a,
                        const mpsim_format *b, const mpsim_strided *result);

/* mpsim_summing_bias -- n numbers of a bias: memory that the caller frees, or NULL. */
void *mpsim_summing_bias(const mpsim_summing *s, const mpsim_strided *bias, size_t n);

/* mpsim_sumtile_open -- memory for a tile; 0: there is none. */
int mpsim_sumtile_open(mpsim_sumtile *t, const mpsim_summing *s, size_t rows, size_t columns);
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
