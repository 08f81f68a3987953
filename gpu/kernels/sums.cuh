/* sums.cuh -- sums in the fixed tree of mpsim_sum_lanes. */
#pragma once

#include "lists.cuh"

/* ---- columns of a matrix ----
 *
 * A block of 32 x 8 threads sums 32 columns over all rows, 256 lanes each: thread (c, r) of the
 * block holds lanes r, r + 8, ..., r + 248 of column c, so that a warp reads 32 neighbours of a
 * row. */
enum { GPU_COLUMNS = 32, GPU_COLUMN_ROWS = 8, GPU_COLUMN_LANES = 32 };

/* The sum by add(a, b) of term(row) over all rows, in every thread of the column. `tree` is shared; all
 * threads of the block come here, those with inside = 0 without a column. */
template <class Add, class Term>
static __device__ float gpu_column_sum(size_t rows, int inside, float (&tree)[GPU_COLUMN_ROWS][GPU_COLUMNS], Add add,
                                       Term term)
{
    float s[GPU_COLUMN_LANES];
    const unsigned c = threadIdx.x, r = threadIdx.y;
    GPU_UNROLL
    for (int k = 0; k < GPU_COLUMN_LANES; k++)
        s[k] = 0;
    if (inside)
        for (size_t first = 0; first < rows; first += GPU_COLUMN_LANES * GPU_COLUMN_ROWS) {
            GPU_UNROLL
            for (int k = 0; k < GPU_COLUMN_LANES; k++) {
                const size_t row = first + (size_t)(GPU_COLUMN_ROWS * k) + r;
                if (row < rows)
                    s[k] = add(s[k], term(row));
            }
        }
    GPU_UNROLL
    for (int h = GPU_COLUMN_LANES / 2; h > 0; h /= 2)
        GPU_UNROLL
    for (int k = 0; k < GPU_COLUMN_LANES / 2; k++)
        if (k < h)
            s[k] = add(s[k], s[k + h]);
    tree[r][c] = s[0];
    __syncthreads();
    for (unsigned h = GPU_COLUMN_ROWS / 2; h > 0; h /= 2) {
        if (r < h)
            tree[r][c] = add(tree[r][c], tree[r + h][c]);
        __syncthreads();
    }
    const float sum = tree[0][c];
    __syncthreads();
    return sum;
}

/* The same in binary32. */
template <class Term>
static __device__ __forceinline__ float gpu_column_sum(size_t rows, int inside,
                                                       float (&tree)[GPU_COLUMN_ROWS][GPU_COLUMNS], Term term)
{
    return gpu_column_sum(
        rows, inside, tree, [](float a, float b) { return __fadd_rn(a, b); }, term);
}

struct gpu_columns {
    void *y;
    const void *x;
    size_t rows, cols;
    gpu_word *counts;
};

typedef gpu_list<gpu_columns, 64> gpu_column_list;
static_assert(sizeof(gpu_column_list) + 2 * sizeof(gpu_format) <= GPU_LIST_PARAMETERS, "too many");

GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS)
    column_sums_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from, GPU_CONSTANT(gpu_column_list) list)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    gpu_counter c;
    const unsigned k = gpu_list_item(list);
    const gpu_columns p = list.item[k];
    const size_t column = (size_t)gpu_list_block(list, k) * GPU_COLUMNS + threadIdx.x;
    const int inside = column < p.cols;
    const float sum = gpu_column_sum(p.rows, inside, tree,
                                     [&](size_t row) { return gpu_value(from, p.x, row * p.cols + column); });
    if (inside && threadIdx.y == 0)
        gpu_put(to, p.y, column, sum, &c);
    c.give(p.counts);
}

/* ---- a mean ---- */

enum { GPU_MEAN_THREADS = 256 };

/* *mean = (the sum of n numbers in 256 lanes) / count; one block. */
GPU_KERNEL void __launch_bounds__(GPU_MEAN_THREADS) mean_kernel(const float *x, size_t n, float count, float *mean)
{
    GPU_SHARED(float, s, [GPU_MEAN_THREADS]);
    const unsigned t = threadIdx.x;
    float own = 0;
    for (size_t i = t; i < n; i += GPU_MEAN_THREADS)
        own = __fadd_rn(own, x[i]);
    s[t] = own;
    __syncthreads();
    for (unsigned h = GPU_MEAN_THREADS / 2; h > 0; h /= 2) {
        if (t < h)
            s[t] = __fadd_rn(s[t], s[t + h]);
        __syncthreads();
    }
    if (t == 0)
        *mean = __fdiv_rn(s[0], count);
}
