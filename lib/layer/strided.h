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

/* mpsim_strided_at -- where row `row` of the array begins, in elements. */
ptrdiff_t mpsim_strided_at(const mpsim_strided *a, const mpsim_layer_shape *s, size_t row);

/* mpsim_strided_take, mpsim_strided_give -- a line of n elements from element `at` on, `stride` apart. */
void mpsim_strided_take(const mpsim_strided *a, ptrdiff_t at, ptrdiff_t stride, size_t n, float *x);
void mpsim_strided_give(const mpsim_strided *a, ptrdiff_t at, ptrdiff_t stride, size_t n, const float *x);

/* mpsim_strided_bytes -- the same of bytes. */
void mpsim_strided_bytes(const mpsim_strided *a, ptrdiff_t at, ptrdiff_t stride, size_t n, uint8_t *x);
