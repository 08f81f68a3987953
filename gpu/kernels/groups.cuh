/* groups.cuh -- 16 bytes of a tensor, 4 or 8 numbers of binary32, bf16 or fp16: loads, values, the largest magnitude, stores. */
#pragma once

#include "stack.cuh"

#include "../../lib/block/scalar.h"

enum { GPU_BLOCKS_THREADS = 256, GPU_BLOCKS_WARPS = GPU_BLOCKS_THREADS / 32 };

enum gpu_input { GPU_INPUT_F32, GPU_INPUT_BF16, GPU_INPUT_F16, GPU_INPUTS };

template <int IN>
struct gpu_group {
    enum { E = IN == GPU_INPUT_F32 ? 4 : 8 }; /* numbers of 16 bytes */
    uint32_t u[4];

    __device__ __forceinline__ void load(const void *x, size_t i)
    {
#if defined(__CUDACC__)
        const uint4 v = static_cast<const uint4 *>(x)[i / E];
        u[0] = v.x;
        u[1] = v.y;
        u[2] = v.z;
        u[3] = v.w;
#else
        memcpy(u, static_cast<const unsigned char *>(x) + i * (16 / E), sizeof u);
#endif
    }
    __device__ __forceinline__ void clear()
    {
        u[0] = u[1] = u[2] = u[3] = 0;
    }
};

static __device__ __forceinline__ float gpu_half_value(uint32_t code)
{
#if defined(__CUDA_ARCH__)
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)code));
    return v;
#else
    const uint32_t m = code & 0x7fffu, sign = (code & 0x8000u) << 16;
    if (m >= 0x7c00u)
        return __uint_as_float(sign | (m == 0x7c00u ? 0x7f800000u : 0x7fc00000u | m << 13));
    return __uint_as_float(sign | (m >> 10 ? (m << 13) + 0x38000000u : __float_as_uint((float)m * 0x1p-24f)));
#endif
}

/* The number of a code of 16 bits. */
template <int IN>
static __device__ __forceinline__ float gpu_code_value(uint32_t code)
{
    return IN == GPU_INPUT_BF16 ? __uint_as_float(code << 16) : gpu_half_value(code);
}

/* Number k of a group. */
template <int IN>
static __device__ __forceinline__ float gpu_group_value(const gpu_group<IN> &g, int k)
{
    if (IN == GPU_INPUT_F32)
        return __uint_as_float(g.u[k & 3]);
    const uint32_t w = g.u[k / 2 & 3];
    if (IN == GPU_INPUT_BF16)
        return __uint_as_float(k & 1 ? w & 0xffff0000u : w << 16);
    return gpu_half_value(k & 1 ? w >> 16 : w & 0xffffu);
}

/* The larger magnitude; NaN if one is. */
static __device__ __forceinline__ float gpu_larger_or_nan(float a, float b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(fabsf(b)));
    return y;
#else
    const uint32_t u = __float_as_uint(a), v = __float_as_uint(b) & 0x7fffffffu;
    return __uint_as_float(u > v ? u : v);
#endif
}

enum gpu_extreme { GPU_LARGER, GPU_SMALLER };

/* The larger or smaller magnitude of both halves, each, as codes: of the larger NaN if one is; the sign is any. */
template <int IN, gpu_extreme WHICH>
static __device__ __forceinline__ uint32_t gpu_extreme_pair(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 860
    uint32_t y;
#define GPU_PAIR(operation) asm(operation " %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b))
    if (IN == GPU_INPUT_BF16 && WHICH == GPU_LARGER)
        GPU_PAIR("max.NaN.xorsign.abs.bf16x2");
    else if (IN == GPU_INPUT_BF16)
        GPU_PAIR("min.xorsign.abs.bf16x2");
    else if (WHICH == GPU_LARGER)
        GPU_PAIR("max.NaN.xorsign.abs.f16x2");
    else
        GPU_PAIR("min.xorsign.abs.f16x2");
#undef GPU_PAIR
    return y;
#else
    uint32_t both = 0;
    for (uint32_t half = 0x7fffu; half; half = half == 0x7fffu ? 0x7fff0000u : 0) {
        const uint32_t u = a & half, v = b & half;
        both |= (u > v) == (WHICH == GPU_LARGER) ? u : v;
    }
    return both;
#endif
}

/* The largest magnitudes of numbers in even and in odd places of a group, in a word. */
template <int IN>
static __device__ __forceinline__ uint32_t gpu_group_both(const gpu_group<IN> &g)
{
    return gpu_extreme_pair<IN, GPU_LARGER>(gpu_extreme_pair<IN, GPU_LARGER>(g.u[0], g.u[1]),
                                            gpu_extreme_pair<IN, GPU_LARGER>(g.u[2], g.u[3]));
}

/* Whether one of a group's numbers, no NaNs, is zero. */
template <int IN>
static __device__ __forceinline__ int gpu_has_zero(const gpu_group<IN> &g)
{
    if (IN == GPU_INPUT_F32) {
        const float v = fminf(fminf(fabsf(__uint_as_float(g.u[0])), fabsf(__uint_as_float(g.u[1]))),
                              fminf(fabsf(__uint_as_float(g.u[2])), fabsf(__uint_as_float(g.u[3]))));
        return v == 0;
    }
    const uint32_t least = gpu_extreme_pair<IN, GPU_SMALLER>(gpu_extreme_pair<IN, GPU_SMALLER>(g.u[0], g.u[1]),
                                                             gpu_extreme_pair<IN, GPU_SMALLER>(g.u[2], g.u[3]));
    return (least & 0x7fffu) == 0 || (least & 0x7fff0000u) == 0;
}

/* The largest magnitude of a group; NaN if there is one. */
template <int IN>
static __device__ __forceinline__ float gpu_group_most(const gpu_group<IN> &g)
{
    if (IN == GPU_INPUT_F32) {
        float m = fabsf(__uint_as_float(g.u[0]));
        GPU_UNROLL
        for (int k = 1; k < 4; k++)
            m = gpu_larger_or_nan(m, __uint_as_float(g.u[k]));
        return m;
    }
    const uint32_t both = gpu_group_both<IN>(g);
    const uint32_t one = gpu_extreme_pair<IN, GPU_LARGER>(both, both >> 16) & 0x7fffu;
    return IN == GPU_INPUT_BF16 ? __uint_as_float(one << 16) : gpu_half_value(one);
}

/* Number i of a tensor; a number's magnitude as a rule sees NaNs: bits. */
template <int IN>
static __device__ __forceinline__ float gpu_number_at(const void *x, size_t i)
{
    return IN == GPU_INPUT_F32 ? static_cast<const float *>(x)[i]
                               : gpu_code_value<IN>(static_cast<const uint16_t *>(x)[i]);
}

template <int IN>
static __device__ __forceinline__ unsigned gpu_number_bits(float v, int keeps_nan)
{
    const unsigned quiet = v != v ? 0x400000u * (IN != GPU_INPUT_F32) : 0, a = gpu_magnitude(v, keeps_nan);
    return a ? a | quiet : 0;
}

/* The bits of a group's largest magnitude, as a rule sees NaNs. */
template <int IN>
static __device__ GPU_NOINLINE unsigned gpu_group_bits(const void *x, size_t i, int keeps_nan)
{
    gpu_group<IN> g;
    unsigned most = 0;
    g.load(x, i);
    GPU_UNROLL
    for (int k = 0; k < gpu_group<IN>::E; k++) {
        const unsigned a = gpu_number_bits<IN>(gpu_group_value<IN>(g, k), keeps_nan);
        most = a > most ? a : most;
    }
    return most;
}

/* Two or four words, by one access. */
static __device__ __forceinline__ void gpu_store_two(void *to, uint32_t a, uint32_t b)
{
#if defined(__CUDACC__)
    *static_cast<uint2 *>(to) = make_uint2(a, b);
#else
    const uint32_t v[2] = {a, b};
    memcpy(to, v, sizeof v);
#endif
}

static __device__ __forceinline__ void gpu_store_quad(void *to, const float v[4])
{
#if defined(__CUDACC__)
    *static_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
#else
    memcpy(to, v, 4 * sizeof *v);
#endif
}
