/* hadamard.cuh -- random Hadamard transforms of rows of whole groups of 16, near the speed of memory. */
#pragma once

#include "groups.cuh"

/* Two numbers to nearest as codes of a word. */
template <int IN>
static __device__ __forceinline__ uint32_t gpu_pair_code(const gpu_format &f, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t pair;
    if (IN == GPU_INPUT_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return gpu_encode(f, GPU_NEAREST, low).code | gpu_encode(f, GPU_NEAREST, high).code << 16;
#endif
}

/* mpsim_hadamard of rows that are a multiple of 16: a lane has 16 bytes, 2 or 4 lanes a group of 16 numbers. */
template <int IN>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    hadamard_line_kernel(GPU_CONSTANT(gpu_format) f, void *y, const void *x, size_t n)
{
    enum { E = gpu_group<IN>::E, LANES = 16 / E };
    const uint32_t negative = 0xd7e8; /* bit i: element i of a group */
    const size_t step = (size_t)gridDim.x * blockDim.x * E;
    for (size_t from = (size_t)blockIdx.x * blockDim.x * E; from < n; from += step) {
        const size_t i = from + threadIdx.x * E;
        const unsigned first = (unsigned)(i % 16);
        gpu_group<IN> g;
        float v[E];
        if (i < n)
            g.load(x, i);
        else
            g.clear();
        GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = __uint_as_float(__float_as_uint(gpu_group_value<IN>(g, k)) ^ (negative >> (first + (unsigned)k) & 1)
                                                                                    << 31);
        GPU_UNROLL
        for (int half = 1; half < E; half *= 2)
            GPU_UNROLL
        for (int k = 0; k < E; k++)
            if (!(k & half)) {
                const float a = v[k], b = v[k + half];
                v[k] = __fadd_rn(a, b);
                v[k + half] = __fsub_rn(a, b);
            }
        GPU_UNROLL
        for (int half = 1; half < LANES; half *= 2)
            GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = gpu_butterfly(v[k], (unsigned)half);
        GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = __fmul_rn(v[k], 0.25f);
        if (i >= n)
            continue;
        if (IN == GPU_INPUT_F32)
            gpu_store_quad(static_cast<float *>(y) + i, v);
        else
            GPU_UNROLL
        for (int k = 0; k < E; k += 4)
            gpu_store_two(static_cast<uint16_t *>(y) + i + k, gpu_pair_code<IN>(f, v[k], v[k + 1]),
                          gpu_pair_code<IN>(f, v[k + 2 < E ? k + 2 : 0], v[k + 3 < E ? k + 3 : 0]));
    }
}
