/* blocks_whole.cuh -- blocks as large as a tensor, a row or several rows on a device: one scale a tensor, a scale a row, tiles. */
#pragma once

#include "blocks_put.cuh"

/* ---- one block ---- */

/* The amax of a tensor, as the rule sees NaNs, to found_amax. */
template <int IN>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    blocks_amax_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, J = 4, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const size_t n = b.rows * b.cols, step = (size_t)gpu_list_own(list, item) * J * STEP;
    const gpu_counter none;
    unsigned most = 0;
    for (size_t at = (size_t)gpu_list_block(list, item) * J * STEP + threadIdx.x * E; at < n; at += step) {
        gpu_group<IN> g[J];
        float m = 0;
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            if (at + (size_t)j * STEP < n)
                g[j].load(b.x, at + (size_t)j * STEP);
            else
                g[j].clear();
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            m = gpu_larger_or_nan(m, gpu_group_most<IN>(g[j]));
        if (m <= FLT_MAX) {
            most = __float_as_uint(m) > most ? __float_as_uint(m) : most;
            continue;
        }
        for (int j = 0; j < J && at + (size_t)j * STEP < n; j++) {
            const unsigned a = gpu_group_bits<IN>(b.x, at + (size_t)j * STEP, q.keeps_nan);
            most = a > most ? a : most;
        }
    }
    gpu_give_all(none, most, NULL, reinterpret_cast<int *>(b.to.found_amax));
}

/* One scale for the tensor, whose amax is found. */
template <int IN, int ELEMENT, int VALUES>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    one_block_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, J = 16 / E, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const size_t n = b.rows * b.cols, step = (size_t)gpu_list_own(list, item) * J * STEP;
    const mpsim_scale_env env = gpu_env_of(q, b);
    const float amax = b.to.tensor_amax ? *b.to.tensor_amax : 0;
    const mpsim_block_scale scale = gpu_rule_apart(env, amax);
    const float plain = gpu_plain_factor(scale);
    gpu_counter c;
    unsigned most = 0;
    if (gpu_list_block(list, item) == 0 && threadIdx.x == 0) {
        gpu_store_scale(q, b.to, 0, __float_as_uint(amax), scale);
        if (b.to.tensor_scale)
            *b.to.tensor_scale = env.decode;
    }
    for (size_t at = (size_t)gpu_list_block(list, item) * J * STEP + threadIdx.x * E; at < n; at += step) {
        gpu_group<IN> g[J];
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            if (at + (size_t)j * STEP < n)
                g[j].load(b.x, at + (size_t)j * STEP);
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const size_t i = at + (size_t)j * STEP;
            if (i >= n)
                continue;
            const float m = gpu_group_most<IN>(g[j]);
            const gpu_scaling s = gpu_scaling_of<ELEMENT>(q.divides, m, plain, scale.inverse);
            unsigned number = __float_as_uint(m);
            if (s.odd) {
                number = gpu_group_bits<IN>(b.x, i, 0);
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
            } else {
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g[j], s, q.divides, 1, &c);
            }
            most = number > most ? number : most;
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* ---- rows, tiles ---- */

/* The largest of all threads of a block; every thread has it. */
static __device__ __forceinline__ unsigned gpu_block_most(unsigned a)
{
    GPU_SHARED(unsigned, most, [GPU_BLOCKS_WARPS]);
    a = __reduce_max_sync(0xffffffffu, a);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        most[threadIdx.x / 32] = a;
    __syncthreads();
    for (int k = 0; k < GPU_BLOCKS_WARPS; k++)
        a = most[k] > a ? most[k] : a;
    return a;
}

/* A block of threads has a row, whose second reading is near. */
template <int IN, int ELEMENT, int VALUES>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    row_blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const mpsim_scale_env env = gpu_env_of(q, b);
    gpu_counter c;
    unsigned most = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (size_t row = gpu_list_block(list, item); row < b.rows; row += gpu_list_own(list, item)) {
        const size_t first = row * b.cols, end = first + b.cols;
        gpu_group<IN> g;
        unsigned a = 0;
        for (size_t i = first + threadIdx.x * E; i < end; i += STEP) {
            g.load(b.x, i);
            const unsigned bits = __float_as_uint(gpu_group_most<IN>(g));
            const unsigned d = bits < 0x7f800000u ? bits : gpu_group_bits<IN>(b.x, i, 0);
            const unsigned own = bits < 0x7f800000u ? bits : gpu_group_bits<IN>(b.x, i, q.keeps_nan);
            a = own > a ? own : a;
            most = d > most ? d : most;
        }
        a = gpu_block_most(a);
        const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
        const float plain = gpu_plain_factor(scale);
        if (threadIdx.x == 0)
            gpu_store_scale(q, b.to, row, a, scale);
        for (size_t i = first + threadIdx.x * E; i < end; i += STEP) {
            g.load(b.x, i);
            const gpu_scaling s = gpu_scaling_of<ELEMENT>(q.divides, gpu_group_most<IN>(g), plain, scale.inverse);
            if (s.odd)
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
            else
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g, s, q.divides, 1, &c);
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* Blocks of H rows, H = 16 TALL: a warp has 16 rows of 32 groups, which stay in registers; TALL warps share blocks. */
template <int IN, int ELEMENT, int VALUES, int TALL>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    tile_blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, R = 16, WIDE = 32 * E, AT_ONCE = GPU_BLOCKS_WARPS / TALL };
    GPU_SHARED(unsigned, shared_amax, [GPU_BLOCKS_WARPS][32]);
    const unsigned item = gpu_list_item(list), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gpu_blocked &b = list.item[item];
    const mpsim_scale_env env = gpu_env_of(q, b);
    const size_t across = (b.cols + WIDE - 1) / WIDE, tiles = (b.rows + R * TALL - 1) / (R * TALL) * across;
    const int lanes = (int)(q.block_cols / E);
    gpu_counter c;
    unsigned most = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (size_t first = (size_t)gpu_list_block(list, item) * AT_ONCE; first < tiles;
         first += (size_t)gpu_list_own(list, item) * AT_ONCE) {
        const size_t tile = first + warp / TALL, top = tile / across * (R * TALL) + warp % TALL * R;
        const size_t col = tile % across * WIDE + lane * E;
        const size_t rows = tile < tiles && col < b.cols && top < b.rows ? b.rows - top : 0, at = top * b.cols + col;
        gpu_group<IN> g[R];
        float m = 0;
        GPU_UNROLL
        for (int r = 0; r < R; r++)
            if ((size_t)r < rows)
                g[r].load(b.x, at + (size_t)r * b.cols);
            else
                g[r].clear();
        GPU_UNROLL
        for (int r = 0; r < R; r++)
            m = gpu_larger_or_nan(m, gpu_group_most<IN>(g[r]));
        unsigned a = __float_as_uint(m), number = a;
        if (!(m <= FLT_MAX)) { /* NaNs as the rule sees them */
            a = number = 0;
            for (int r = 0; r < R && (size_t)r < rows; r++) {
                const unsigned own = gpu_group_bits<IN>(b.x, at + (size_t)r * b.cols, q.keeps_nan);
                const unsigned dropped = gpu_group_bits<IN>(b.x, at + (size_t)r * b.cols, 0);
                a = own > a ? own : a;
                number = dropped > number ? dropped : number;
            }
        }
        most = number > most ? number : most;
        for (int h = 1; h < lanes; h *= 2) {
            const unsigned other = __shfl_xor_sync(0xffffffffu, a, h);
            a = other > a ? other : a;
        }
        if (TALL > 1) {
            __syncthreads();
            shared_amax[warp][lane] = a;
            __syncthreads();
            GPU_UNROLL
            for (int w = 0; w < TALL; w++) {
                const unsigned other = shared_amax[warp / TALL * TALL + w][lane];
                a = other > a ? other : a;
            }
        }
        const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
        const float plain = gpu_plain_factor(scale);
        if (rows && warp % TALL == 0 && lane % (unsigned)lanes == 0)
            gpu_store_scale(q, b.to, top / (R * TALL) * q.grid_cols + col / q.block_cols, a, scale);
        /* NaNs that the rule drops are found by their own group */
        const int whole = m <= FLT_MAX;
        const gpu_scaling s = gpu_scaling_of<ELEMENT>(q.divides, __uint_as_float(a), plain, scale.inverse);
        GPU_UNROLL
        for (int r = 0; r < R; r++) {
            const size_t i = at + (size_t)r * b.cols;
            if ((size_t)r >= rows)
                continue;
            if (whole && !s.odd)
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g[r], s, q.divides, 1, &c);
            else
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}
