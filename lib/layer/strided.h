/* strided.h -- numbers of arrays in memory, taken and stored as rows of binary32; see mpsim/between.h. */
#pragma once

#include <mpsim/between.h>

/* The dimensions of an operation: rows are all but the last. */
typedef struct mpsim_layer_shape {
    size_t dims, rows, cols;
    const size_t *shape;
} mpsim_layer_shape;

/* mpsim_strided_dense -- whether the rows of the array follow one another without gaps. */
int mpsim_strided_dense(const mpsim_strided *a, const mpsim_layer_shape *s);

/* mpsim_strided_plain -- whether the array holds binary32. */
int mpsim_strided_plain(const mpsim_strided *a);

/* mpsim_strided_run -- how many rows from row `row` on are as far apart as the first two. */
size_t mpsim_strided_run(const mpsim_strided *a, const mpsim_layer_shape *s, size_t row);

/* mpsim_strided_at -- where row `row` of the array begins, in elements. */
ptrdiff_t mpsim_strided_at(const mpsim_strided *a, const mpsim_layer_shape *s, size_t row);

/* Elements of an array from element `at` on: rows that are `row` apart, of elements `col` apart. */
typedef struct mpsim_strided_rows {
    ptrdiff_t at, row, col;
    size_t rows, cols;
    void *room; /* for as many numbers, NULL: none */
} mpsim_strided_rows;

/* mpsim_strided_take, mpsim_strided_give -- these elements, row after row in x. */
void mpsim_strided_take(const mpsim_strided *a, const mpsim_strided_rows *m, float *x);
void mpsim_strided_give(const mpsim_strided *a, const mpsim_strided_rows *m, float *x);

/* mpsim_strided_bytes -- the same of bytes. */
void mpsim_strided_bytes(const mpsim_strided *a, const mpsim_strided_rows *m, uint8_t *x);

/* mpsim_strided_turned -- whether the columns of an array are contiguous in memory and its rows are not. */
static inline int mpsim_strided_turned(ptrdiff_t row, ptrdiff_t col)
{
    return row == 1 && col != 1;
}
