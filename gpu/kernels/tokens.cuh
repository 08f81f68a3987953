/* tokens.cuh -- sums of tensors, rows of tables by tokens and their gradients, sums over ranks. Every element is
 * one thread's: gradients of tables are gathered, nothing is scattered. See lib/include/train/engine.h. */
#pragma once

#include "elements.cuh"
#include "lists.cuh"

#include <mpsim/gradient.h>

/* y = a + b, b of `period` elements that are repeated. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    add_kernel(GPU_CONSTANT(gpu_format) to, void *y, GPU_CONSTANT(gpu_format) fa, const void *a,
               GPU_CONSTANT(gpu_format) fb, const void *b, size_t n, size_t period, gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    gpu_put(to, y, i, __fadd_rn(gpu_value(fa, a, i), gpu_value(fb, b, i % period)), &c);
    c.give(counts);
}

/* n elements of the table, those of dy that are a whole number of tables further. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    add_rows_backward_kernel(GPU_CONSTANT(gpu_format) to, void *dtable, GPU_CONSTANT(gpu_format) from, const void *dy,
                             size_t n, size_t of_dy, gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    {
        float s = 0;
        for (size_t k = i; k < of_dy; k += n)
            s = __fadd_rn(s, gpu_value(from, dy, k));
        gpu_put(to, dtable, i, s, &c);
    }
    c.give(counts);
}

GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    embed_kernel(GPU_CONSTANT(gpu_format) to, void *y, GPU_CONSTANT(gpu_format) from, const void *table,
                 const uint32_t *index, size_t n, size_t cols, gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    gpu_put(to, y, i, gpu_value(from, table, index[i / cols] * cols + i % cols), &c);
    c.give(counts);
}

/* rows[begin[v]] to rows[begin[v + 1] - 1], ascending: the rows of dy that belong to row v of the table. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    embed_backward_kernel(GPU_CONSTANT(gpu_format) to, void *dtable, GPU_CONSTANT(gpu_format) from, const void *dy,
                          const uint32_t *begin, const uint32_t *rows, size_t n, size_t cols, int added,
                          gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    {
        const size_t v = i / cols, column = i % cols;
        float s = added ? gpu_value(to, dtable, i) : 0.0f;
        for (uint32_t k = begin[v]; k < begin[v + 1]; k++)
            s = __fadd_rn(s, gpu_value(from, dy, rows[k] * cols + column));
        gpu_put(to, dtable, i, s, &c);
    }
    c.give(counts);
}

/* Matrices of `matrix` elements: each of y is the sum of `group` of x, one below the other. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    add_groups_kernel(GPU_CONSTANT(gpu_format) to, void *y, GPU_CONSTANT(gpu_format) from, const void *x, size_t n,
                      size_t matrix, size_t group, gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    {
        const size_t first = i / matrix * group * matrix + i % matrix;
        float s = gpu_value(from, x, first);
        for (size_t k = 1; k < group; k++)
            s = __fadd_rn(s, gpu_value(from, x, first + k * matrix));
        gpu_put(to, y, i, s, &c);
    }
    c.give(counts);
}

/* ---- sums over ranks: mpsim_reduce_array ---- */

enum { GPU_RANKS = 1 << 16, GPU_RANK_LEVELS = 17 + 1 };

struct gpu_reduce {
    gpu_format x, wire, accumulator, result;
    int order, average; /* mpsim_reduce_order, mpsim_reduce_average */
    size_t ranks;
    float share; /* 1 / ranks */
};

/* A tensor of the list; chunk: elements of a rank's part of a ring. */
struct gpu_sum {
    void *y;
    const void *const *x;
    size_t n, chunk;
};

typedef gpu_list<gpu_sum, 64> gpu_sums;
static_assert(sizeof(gpu_reduce) + sizeof(gpu_sums) <= GPU_LIST_PARAMETERS, "too many");

static __device__ __forceinline__ float reduce_one(const gpu_reduce &r, const void *const *x, size_t rank, size_t i)
{
    const float v = gpu_hold(r.wire, gpu_value(r.x, x[rank], i));
    return r.average == MPSIM_AVERAGE_BEFORE ? gpu_hold(r.wire, __fmul_rn(v, r.share)) : v;
}

static __device__ __forceinline__ float reduce_add(const gpu_reduce &r, float a, float b)
{
    return gpu_hold(r.accumulator, __fadd_rn(a, b));
}

/* Two complete subtrees of one size become one; what is left at the end is added from the right. */
static __device__ float reduce_tree(const gpu_reduce &r, const void *const *x, size_t i)
{
    float s[GPU_RANK_LEVELS];
    int depth = 0;
    for (size_t rank = 0; rank < r.ranks; rank++) {
        s[depth++] = reduce_one(r, x, rank, i);
        for (size_t carries = rank; carries & 1; carries >>= 1, depth--)
            s[depth - 2] = reduce_add(r, s[depth - 2], s[depth - 1]);
    }
    for (; depth > 1; depth--)
        s[depth - 2] = reduce_add(r, s[depth - 2], s[depth - 1]);
    return s[0];
}

static __device__ float reduce_chain(const gpu_reduce &r, const void *const *x, size_t chunk, size_t i)
{
    size_t rank = r.order == MPSIM_REDUCE_RING ? i / chunk : 0;
    float s = reduce_one(r, x, rank, i);
    for (size_t k = 1; k < r.ranks; k++) {
        rank = rank + 1 < r.ranks ? rank + 1 : 0;
        s = reduce_add(r, s, reduce_one(r, x, rank, i));
    }
    return s;
}

/* y may be one of x: a thread reads its element of all ranks before it writes it. */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    reduce_kernel(GPU_CONSTANT(gpu_reduce) r, GPU_CONSTANT(gpu_sums) list)
{
    const unsigned k = gpu_list_item(list);
    const gpu_sum a = list.item[k];
    GPU_FOR_ITEM(i, list, k, a.n)
    {
        float s = r.order == MPSIM_REDUCE_TREE ? reduce_tree(r, a.x, i) : reduce_chain(r, a.x, a.chunk, i);
        if (r.average == MPSIM_AVERAGE_AFTER)
            s = __fdiv_rn(s, (float)r.ranks);
        gpu_store(r.result, a.y, i, gpu_encode(r.result, GPU_NEAREST, s).code);
    }
}
