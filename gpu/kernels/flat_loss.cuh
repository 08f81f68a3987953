/* flat_loss.cuh -- softmax with cross-entropy of rows whose length is a multiple of 8, in binary32. The bits are those of
 * softmax_kernel (layers.cuh): a warp has a row, too, but each thread loads eight numbers at once and takes their exponentials.
 * These go through shared memory to the lane that adds them, so that each lane has its order. */
#pragma once

#include "flat_softmax.cuh"
#include "layers.cuh"

enum { GPU_LOSS_STEP = 32 * 8 /* numbers of a warp at a time */ };

/* The larger of (most, at) and of eight numbers from column `first` on: the first one, and a NaN before all. at: 2^32 - 1: none yet. */
static __device__ __forceinline__ void flat_loss_largest(const float v[8], unsigned first, float *most, unsigned *at)
{
    float top = v[0];
    GPU_UNROLL
    for (int t = 1; t < 8; t++)
        top = gpu_most_of(top, v[t]);
    if (*at != 0xffffffffu && top <= *most)
        return;
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        if (*at == 0xffffffffu || (*most == *most && (v[t] > *most || v[t] != v[t]))) {
            *most = v[t];
            *at = first + t;
        }
}

/* A row: eights e of the thread, from its lane on. */
struct gpu_loss_row {
    const gpu_format &f;
    const void *x;
    size_t first; /* eight */
    unsigned eights, lane;

    __device__ __forceinline__ void load(unsigned e, float v[8]) const
    {
        gpu_flat_values(f, gpu_flat_load(f, x, first + e), v);
    }
    __device__ __forceinline__ float largest(unsigned *where) const
    {
        float most = __uint_as_float(0xff800000u);
        unsigned at = 0xffffffffu;
        GPU_ROLLED
        for (unsigned e = lane; e < eights; e += 32) {
            float v[8];
            load(e, v);
            flat_loss_largest(v, 8 * e, &most, &at);
        }
        return softmax_larger_of_lanes(most, at, where);
    }
    /* The sum of exp(x - most) in 32 lanes. tile: of the warp. */
    __device__ __forceinline__ float sum(float most, float *tile) const
    {
        float s = 0;
        GPU_ROLLED
        for (unsigned e = lane; e - lane < eights; e += 32) {
            const unsigned numbers = 8 * (eights - (e - lane));
            if (e < eights) {
                float v[8];
                load(e, v);
                gpu_flat_exp(v, most);
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    tile[8 * lane + t] = v[t];
            }
            __syncwarp();
            GPU_UNROLL
            for (unsigned j = lane; j < GPU_LOSS_STEP; j += 32)
                s = j < numbers ? __fadd_rn(s, tile[j]) : s;
            __syncwarp();
        }
        return softmax_sum_of_lanes(s);
    }
};

GPU_KERNEL void __launch_bounds__(GPU_SOFTMAX_THREADS)
    flat_loss_kernel(GPU_CONSTANT(gpu_softmax) p, float *loss, void *dx, const void *x, const uint32_t *labels,
                     unsigned *correct, gpu_word *counts)
{
    GPU_SHARED(gpu_words<4>, tiles, [GPU_SOFTMAX_THREADS / 32][GPU_LOSS_STEP / 4]);
    const gpu_flat_out out(p.to);
    gpu_counter c;
    const unsigned lane = threadIdx.x % 32, eights = (unsigned)(p.classes / 8);
    const size_t warps = (size_t)gridDim.x * (GPU_SOFTMAX_THREADS / 32);
    for (size_t row = (size_t)blockIdx.x * (GPU_SOFTMAX_THREADS / 32) + threadIdx.x / 32; row < p.rows; row += warps) {
        const gpu_loss_row r = {p.from, x, row * eights, eights, lane};
        const uint32_t label = labels[row];
        unsigned where;
        const float most = r.largest(&where);
        const float sum = r.sum(most, reinterpret_cast<float *>(tiles[threadIdx.x / 32]));
        if (lane == 0)
            softmax_loss(p, loss, x, row, label, most, where, sum, correct);
        __syncwarp();
        if (!dx)
            continue;
        const gpu_divisor z(sum);
        GPU_ROLLED
        for (unsigned e = lane; e < eights; e += 32) {
            float v[8];
            r.load(e, v);
            gpu_flat_exp(v, most);
            z.divide(v);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                v[t] = __fmul_rn(v[t], p.coefficient);
            if (label / 8 == e)
                GPU_UNROLL
            for (unsigned t = 0; t < 8; t++)
                v[t] = t == label % 8 ? __fsub_rn(v[t], p.coefficient) : v[t];
            out.put(dx, r.first + e, v, &c);
        }
    }
    if (dx)
        c.give(counts);
}
