/* gemm_fma.cuh -- matrix products in binary32, one product after the other in order of depth:
 * models "fma" (s = fma(a, b, s)) and "sequential" (s = s + a * b, both rounded). */
#pragma once

#include "gemm_finish.cuh"

/* 64 x 64 elements a block, 16 of depth at a time, 4 x 4 elements a thread. The depth is not filled
 * up: an underflow to -0 would become +0 by adding +0. */
enum { FMA_LINES = 64, FMA_DEEP = 16, FMA_PITCH = 68, FMA_THREADS = 256 };

static __device__ __forceinline__ void fma_load(float (*to)[FMA_PITCH], const gpu_format &f, const gpu_lines &x,
                                                const unsigned char *from, size_t first, size_t k0, size_t depth)
{
#pragma unroll 2 /* four at once do not fit into 64 registers */
    for (int n = 0; n < FMA_LINES * FMA_DEEP / FMA_THREADS; n++) {
        const int i = n * FMA_THREADS + static_cast<int>(threadIdx.x);
        const int line = x.along ? i / FMA_DEEP : i % FMA_LINES;
        const int k = x.along ? i % FMA_DEEP : i / FMA_LINES;
        float v = 0;
        if (first + line < x.lines && k0 + k < depth) {
            const size_t at = x.along ? (first + line) * x.stride + k0 + k : (k0 + k) * x.stride + first + line;
            v = gpu_value(f, from, at);
        }
        to[k][line] = v;
    }
}

enum { FMA_ROOM = gpu_sums_bytes(FMA_LINES, FMA_LINES) };

/* A block's part of a product; sums: FMA_ROOM bytes of shared memory. */
template <int FUSED>
static __device__ __forceinline__ void fma_product(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                                   float *sums)
{
    float(*const a)[FMA_PITCH] = reinterpret_cast<float(*)[FMA_PITCH]>(sums);
    float(*const b)[FMA_PITCH] = a + FMA_DEEP;
    const int row = static_cast<int>(threadIdx.x) / 16 * 4, column = threadIdx.x % 16 * 4;
    float s[4][4] = {};
    unsigned m, n;
    gpu_tile(j, &m, &n);
    const unsigned char *const from_a = gpu_a(j), *const from_b = gpu_b(j);
    const size_t first_row = static_cast<size_t>(m) * FMA_LINES;
    const size_t first_column = static_cast<size_t>(n) * FMA_LINES;
    if (j.out.start == TRAIN_FROM_SUM)
        for (int i = 0; i < 16; i++)
            s[i / 4][i % 4] = gpu_begin(j, first_row + row + i / 4, first_column + column + i % 4);
    for (size_t k0 = 0; k0 < j.depth; k0 += FMA_DEEP) {
        const int deep = j.depth - k0 < FMA_DEEP ? static_cast<int>(j.depth - k0) : FMA_DEEP;
        fma_load(a, f.a, j.a, from_a, first_row, k0, j.depth);
        fma_load(b, f.b, j.b, from_b, first_column, k0, j.depth);
        __syncthreads();
        for (int k = 0; k < deep; k++) {
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const float x = a[k][row + i / 4], y = b[k][column + i % 4];
                float *to = &s[i / 4][i % 4];
                *to = FUSED ? __fmaf_rn(x, y, *to) : __fadd_rn(*to, __fmul_rn(x, y));
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        gpu_sums_put(sums, FMA_LINES, row + i / 2, column + i % 2 * 2, &s[i / 2][i % 2 * 2]);
    gpu_finish_tile<FMA_LINES, FMA_LINES, FMA_THREADS>(f, to, j, sums, first_row, first_column);
}

template <int FUSED>
struct gemm_fma {
    enum { THREADS = FMA_THREADS, BLOCKS = 4, ROOM = FMA_ROOM };
    static __device__ __forceinline__ void run(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                               float *sums)
    {
        fma_product<FUSED>(f, to, j, sums);
    }
};
