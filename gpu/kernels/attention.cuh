/* attention.cuh -- attention beside its products: heads of rows and back, softmax of causal scores, whole and
 * in tiles. mpsim/transformer.h in parallel; a warp has a row of a sum. */
#pragma once

#include "lists.cuh"
#include "rows.cuh"

/* ---- heads ---- */

struct gpu_heads {
    void *y;
    const void *x;
    gpu_word *counts;
    size_t length, heads, size, first; /* of train_heads */
    size_t cols;                       /* of the tensor whose rows are places */
    size_t n;                          /* elements of heads */
    const float *cos, *sin;            /* or NULL */
};

typedef gpu_list<gpu_heads, 32> gpu_heads_list;
static_assert(sizeof(gpu_heads_list) + 2 * sizeof(gpu_format) <= GPU_LIST_PARAMETERS, "too many");

/* Where element i of the heads is in rows of places; *place: of the sequence. */
static __device__ __forceinline__ size_t heads_at(const gpu_heads &h, size_t i, size_t *place)
{
    const size_t row = i / h.size, head = row / h.length % h.heads;
    *place = row % h.length;
    return (row / h.length / h.heads * h.length + *place) * h.cols + h.first + head * h.size + i % h.size;
}

/* Element c of a head, `at` of x, turned by its place; back: turned back. */
static __device__ __forceinline__ float heads_turned(const gpu_heads &h, const gpu_format &from, size_t at, size_t c,
                                                     size_t place, int back)
{
    const float v = gpu_value(from, h.x, at);
    if (!h.cos)
        return v;
    const size_t half = h.size / 2, k = place * half + c % half;
    const float sine = back ? -h.sin[k] : h.sin[k], kept = __fmul_rn(v, h.cos[k]);
    return c < half ? __fsub_rn(kept, __fmul_rn(gpu_value(from, h.x, at + half), sine))
                    : __fadd_rn(kept, __fmul_rn(gpu_value(from, h.x, at - half), sine));
}

/* back: from heads to rows of places */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    heads_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from, GPU_CONSTANT(gpu_heads_list) list,
                 int back)
{
    gpu_counter c;
    const unsigned k = gpu_list_item(list);
    const gpu_heads h = list.item[k];
    GPU_FOR_ITEM(i, list, k, h.n)
    {
        size_t place;
        const size_t at = heads_at(h, i, &place);
        gpu_put(to, h.y, back ? at : i, heads_turned(h, from, back ? i : at, i % h.size, place, back), &c);
    }
    c.give(h.counts);
}

/* ---- softmax ---- */

struct gpu_causal {
    gpu_format math, from, to; /* backward: of dP, dS, and of P apart */
    gpu_format p;
    size_t rows, length;
    float scale; /* rounded to math */
};

/* p may be s: a lane reads what it writes, and all have read before. */
template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    causal_kernel(GPU_CONSTANT(gpu_causal) q, void *p, const void *s, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(q.math), *const m = &math;
    gpu_counter counter;
    GPU_FOR_ROWS(row, q.rows)
    {
        const size_t first = row * q.length, n = row % q.length + 1;
        const auto x =
            gpu_row_of(n, [&](size_t j) { return mpsim_causal_x(m, q.scale, gpu_take(m, q.from, s, first + j)); });
        const float most = gpu_row_max(__uint_as_float(0xff800000u), x);
        const auto e = x.map([&](size_t, float v) { return mpsim_softmax_exp(m, v, most); });
        const float z = gpu_row_sum(m, e);
        e.each(q.length, [&](size_t j, float v) {
            gpu_put(q.to, p, first + j, j < n ? mpsim_causal_p(m, v, z) : 0.0f, &counter);
        });
    }
    counter.give(counts);
}

template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    causal_backward_kernel(GPU_CONSTANT(gpu_causal) q, void *ds, const void *dp, const void *p, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(q.math), *const m = &math;
    gpu_counter counter;
    GPU_FOR_ROWS(row, q.rows)
    {
        const size_t first = row * q.length, n = row % q.length + 1;
        const auto x = gpu_row_of(n, [&](size_t j) { return gpu_take(m, q.p, p, first + j); });
        const auto y = gpu_row_of(n, [&](size_t j) { return gpu_take(m, q.from, dp, first + j); });
        const auto terms = x.map([&](size_t j, float v) { return mpsim_causal_term(m, v, y.f(j)); });
        const float d = gpu_row_sum(m, terms);
        x.each(q.length, [&](size_t j, float v) {
            gpu_put(q.to, ds, first + j, j < n ? mpsim_causal_ds(m, v, y.f(j), d, q.scale) : 0.0f, &counter);
        });
    }
    counter.give(counts);
}

/* ---- tiles: binary32 ---- */

struct gpu_tiles {
    size_t length, first, cols, size; /* of train_tile */
    size_t rows;                      /* of the tile's matrices; of tile_end and tile_dots: all */
    float scale, p_scale, back;       /* back: 1 / p_scale */
};

/* A row of the tile: its first number, its row among all, how many columns it has seen. */
struct gpu_tile_row {
    size_t at, row, n;
};

static __device__ __forceinline__ gpu_tile_row tile_row(const gpu_tiles &t, size_t row)
{
    const size_t height = t.length - t.first, i = row % height;
    gpu_tile_row r;
    r.at = row * t.cols;
    r.row = row / height * t.length + t.first + i;
    r.n = i + 1 < t.cols ? i + 1 : t.cols;
    return r;
}

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    tile_forward_kernel(GPU_CONSTANT(gpu_tiles) t, GPU_CONSTANT(gpu_format) to, void *p, float *o, float *max,
                        float *sum, const float *s, gpu_word *counts)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    gpu_counter counter;
    GPU_FOR_ROWS(row, t.rows)
    {
        const gpu_tile_row w = tile_row(t, row);
        const auto x = gpu_row_of(w.n, [&](size_t j) { return mpsim_causal_x(m, t.scale, s[w.at + j]); });
        const float before = max[w.row], most = gpu_row_max(before, x);
        const float r = mpsim_tile_r(most), a = mpsim_tile_exp(before, r);
        const auto e = x.map([&](size_t, float v) { return mpsim_tile_exp(v, r); });
        const float z = gpu_row_sum(m, e);
        __syncwarp(); /* all have read max */
        if (threadIdx.x % 32 == 0) {
            sum[w.row] = mpsim_tile_sum(sum[w.row], a, z);
            max[w.row] = most;
        }
        for (size_t c = threadIdx.x % 32; c < t.size; c += 32)
            o[w.row * t.size + c] = __fmul_rn(o[w.row * t.size + c], a);
        e.each(t.cols, [&](size_t j, float v) {
            gpu_put(to, p, w.at + j, j < w.n ? __fmul_rn(v, t.p_scale) : 0.0f, &counter);
        });
    }
    counter.give(counts);
}

GPU_KERNEL void __launch_bounds__(256)
    tile_end_kernel(GPU_CONSTANT(gpu_tiles) t, GPU_CONSTANT(gpu_format) to, void *y, float *lse, const float *o,
                    const float *max, const float *sum, gpu_word *counts)
{
    gpu_counter counter;
    GPU_FOR(i, t.rows * t.size)
    gpu_put(to, y, i, mpsim_tile_y(o[i], t.back, sum[i / t.size]), &counter);
    GPU_FOR(i, t.rows)
    lse[i] = mpsim_tile_lse(max[i], sum[i]);
    counter.give(counts);
}

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    tile_dots_kernel(GPU_CONSTANT(gpu_tiles) t, float *d, GPU_CONSTANT(gpu_format) f, const void *dy,
                     GPU_CONSTANT(gpu_format) g, const void *y)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR_ROWS(row, t.rows)
    {
        const auto terms = gpu_row_of(t.size, [&](size_t c) {
            const size_t at = row * t.size + c;
            return mpsim_causal_term(m, gpu_value(f, dy, at), gpu_value(g, y, at));
        });
        const float s = gpu_row_sum(m, terms);
        if (threadIdx.x % 32 == 0)
            d[row] = s;
    }
}

/* A tile of a list: y is P or dS. */
struct gpu_tiled {
    gpu_tiles t;
    void *y;
    const float *s, *lse, *dp, *d;
    size_t n; /* elements of the tile */
    gpu_word *counts;
};

typedef gpu_list<gpu_tiled, 24> gpu_tiled_list;
static_assert(sizeof(gpu_tiled_list) + sizeof(gpu_format) <= GPU_LIST_PARAMETERS, "too many");

GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    tile_again_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_tiled_list) list)
{
    gpu_counter counter;
    const unsigned k = gpu_list_item(list);
    const gpu_tiled p = list.item[k];
    GPU_FOR_ITEM(i, list, k, p.n)
    {
        const gpu_tile_row w = tile_row(p.t, i / p.t.cols);
        const int seen = i % p.t.cols < w.n;
        gpu_put(to, p.y, i, seen ? mpsim_tile_exp(__fmul_rn(p.t.scale, p.s[i]), p.lse[w.row]) : 0.0f, &counter);
    }
    counter.give(p.counts);
}

GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    tile_backward_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_tiled_list) list)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    gpu_counter counter;
    const unsigned k = gpu_list_item(list);
    const gpu_tiled p = list.item[k];
    GPU_FOR_ITEM(i, list, k, p.n)
    {
        const gpu_tile_row w = tile_row(p.t, i / p.t.cols);
        float v = 0;
        if (i % p.t.cols < w.n)
            v = mpsim_causal_ds(m, mpsim_tile_exp(__fmul_rn(p.t.scale, p.s[i]), p.lse[w.row]), p.dp[i], p.d[w.row],
                                p.t.scale);
        gpu_put(to, p.y, i, v, &counter);
    }
    counter.give(p.counts);
}
