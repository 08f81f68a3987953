/* grids.cuh -- elements of blocks, of 4 to 8 bits: codes of four scaled numbers by rounding to nearest, by the device's packed
 * conversions where it has them, and by NVFP4's random bits; the numbers of the codes. */
#pragma once

#include "groups.cuh"

enum gpu_elements { GPU_E4M3, GPU_E5M2, GPU_E2M1, GPU_E3M2, GPU_E2M3, GPU_E2M1_RANDOM, GPU_ELEMENTS };

/* MAX: bits of the largest number; OVER: bits of the smallest that overflows; SIGN: of a code. */
template <int ELEMENT>
struct gpu_grid;
template <>
struct gpu_grid<GPU_E4M3> {
    enum : uint32_t { MBITS = 3, LEAST = 121, MAX = 0x43e00000, OVER = 0x43e80001, SIGN = 0x80 };
};
template <>
struct gpu_grid<GPU_E5M2> {
    enum : uint32_t { MBITS = 2, LEAST = 113, MAX = 0x47600000, OVER = 0x47700000, SIGN = 0x80 };
};
template <>
struct gpu_grid<GPU_E2M1> {
    enum : uint32_t { MBITS = 1, LEAST = 127, MAX = 0x40c00000, OVER = 0x40e00000, SIGN = 8 };
};
template <>
struct gpu_grid<GPU_E2M1_RANDOM> : gpu_grid<GPU_E2M1> {
};
template <>
struct gpu_grid<GPU_E3M2> {
    enum : uint32_t { MBITS = 2, LEAST = 125, MAX = 0x41e00000, OVER = 0x41f00000, SIGN = 0x20 };
};
template <>
struct gpu_grid<GPU_E2M3> {
    enum : uint32_t { MBITS = 3, LEAST = 127, MAX = 0x40f00000, OVER = 0x40f80000, SIGN = 0x20 };
};

/* Whether the device converts: FP8 from sm_89 on. */
template <int ELEMENT>
struct gpu_has_convert {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    enum { YES = ELEMENT == GPU_E4M3 || ELEMENT == GPU_E5M2 };
#else
    enum { YES = 0 };
#endif
};

/* Codes of four scaled numbers that are no NaNs; and, if they are wanted, the numbers of the codes. */
struct gpu_packed {
    uint32_t codes;
    float number[4];
    unsigned over; /* random rounding: how many overflow */
};

/* The magnitude code of a number: its step is the last place of `lift`, to which it is added. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_nearest_code(float y, float *number)
{
    typedef gpu_grid<ELEMENT> grid;
    const uint32_t drop = 23 - grid::MBITS, least = grid::LEAST << 23;
    const float a = fminf(fabsf(y), __uint_as_float(grid::MAX));
    const uint32_t binade = __float_as_uint(a) & 0x7f800000u;
    const uint32_t lift = (binade > least ? binade : least) + (drop << 23);
    const float sum = __fadd_rn(a, __uint_as_float(lift));
    *number = __uint_as_float(__float_as_uint(__fsub_rn(sum, __uint_as_float(lift))) |
                              (__float_as_uint(y) & 0x80000000u));
    return __float_as_uint(sum) - lift + ((lift - least - (drop << 23)) >> drop);
}

/* The same of E2M1 by 8 random bits, as mpsim_rule_fp4_random. */
static __device__ __forceinline__ uint32_t gpu_random_code(float y, uint32_t word, float *number, unsigned *over)
{
    const float a = fabsf(y), part = __fadd_rn(__uint_as_float(0x3f800000u | word >> 24 << 15), -1.0f);
    const float t = __fmaf_rn(part, mpsim_rule_fp4_step(a), a);
    const int high = (int)(__float_as_uint(t) >> 22) - 252, low = t >= 0.5f;
    const int code = high > low ? high : low;
    *over += t >= 8;
    const float q = t >= 1 ? __uint_as_float(__float_as_uint(t) & 0xffc00000u) : low ? 0.5f : 0.0f;
    *number = __uint_as_float(__float_as_uint(fminf(q, 6.0f)) | (__float_as_uint(y) & 0x80000000u));
    return (uint32_t)(code < 7 ? code : 7);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_convert_pair(float low, float high)
{
    unsigned short y;
    if (ELEMENT == GPU_E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
    return y;
}

template <int ELEMENT>
static __device__ __forceinline__ void gpu_convert_back(uint32_t pair, float *low, float *high)
{
    uint32_t halves;
    if (ELEMENT == GPU_E4M3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)pair));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)pair));
    *low = gpu_half_value(halves & 0xffffu);
    *high = gpu_half_value(halves >> 16);
}
#endif

template <int ELEMENT>
static __device__ __forceinline__ gpu_packed gpu_pack(const float y[4], const uint32_t words[4],
                                                      [[maybe_unused]] int wanted)
{
    typedef gpu_grid<ELEMENT> grid;
    gpu_packed p;
    p.over = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if (gpu_has_convert<ELEMENT>::YES) {
        const uint32_t low = gpu_convert_pair<ELEMENT>(y[0], y[1]), high = gpu_convert_pair<ELEMENT>(y[2], y[3]);
        p.codes = low | high << 16;
        if (wanted) {
            gpu_convert_back<ELEMENT>(low, &p.number[0], &p.number[1]);
            gpu_convert_back<ELEMENT>(high, &p.number[2], &p.number[3]);
        }
        return p;
    }
#endif
    uint32_t signs = 0;
    p.codes = 0;
    GPU_UNROLL
    for (int k = 0; k < 4; k++) {
        const uint32_t code = ELEMENT == GPU_E2M1_RANDOM ? gpu_random_code(y[k], words[k], &p.number[k], &p.over)
                                                         : gpu_nearest_code<ELEMENT>(y[k], &p.number[k]);
        p.codes |= code << 8 * k;
        signs |= (__float_as_uint(y[k]) >> 31) << 8 * k;
    }
    p.codes |= signs * grid::SIGN;
    return p;
}

/* 0x80 in each byte whose magnitude code is not 0. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_not_zero(uint32_t codes)
{
    const uint32_t mask = (gpu_grid<ELEMENT>::SIGN - 1) * 0x01010101u;
    return ((codes & mask) + 0x7f7f7f7fu) & 0x80808080u;
}
