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
struct gpu_grid<GPU_E2M1_RANDOM> { /* OVER: of what is not rounded as usual */
    enum : uint32_t { MBITS = 1, LEAST = 127, MAX = 0x40c00000, OVER = 0x41000000, SIGN = 8 };
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

/* Magnitudes are added to a power of two whose last place is the step between codes of their binade. The last bits of the sum count
 * steps: less than 2^MBITS below the least normal number, 2^MBITS or more in a binade. With the binade's own bits added they are
 * the code, but for a constant (gpu_join_codes). */
template <int ELEMENT>
static __device__ __forceinline__ float gpu_binade(float a)
{
    const uint32_t least = gpu_grid<ELEMENT>::LEAST << 23, binade = __float_as_uint(a) & 0x7f800000u;
    return __uint_as_float(binade > least ? binade : least);
}

/* 2^(23 - MBITS): times a binade, what is added. */
template <int ELEMENT>
static __device__ __forceinline__ float gpu_lift()
{
    return __uint_as_float((150u - gpu_grid<ELEMENT>::MBITS) << 23);
}

template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_lifted_code(float sum, float binade, float *number)
{
    *number = __fmaf_rn(-binade, gpu_lift<ELEMENT>(), sum); /* exact */
    return __float_as_uint(sum) + (__float_as_uint(binade) >> (23 - gpu_grid<ELEMENT>::MBITS));
}

template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_nearest_code(float y, float *number)
{
    const float a = fminf(fabsf(y), __uint_as_float(gpu_grid<ELEMENT>::MAX)), binade = gpu_binade<ELEMENT>(a);
    return gpu_lifted_code<ELEMENT>(__fmaf_rn(binade, gpu_lift<ELEMENT>(), a), binade, number);
}

/* Magnitudes below 8 as E2M1 by 8 random bits, as mpsim_rule_fp4_random: a part of a step is added, and the sum cut off. If it is
 * in the next binade, it is near its least number, so that the shorter steps cut it off there, too. 8: beyond the largest. */
static __device__ __forceinline__ uint32_t gpu_random_code(float a, uint32_t word, float *number)
{
    const float binade = gpu_binade<GPU_E2M1>(a);
    const float more = __uint_as_float(__float_as_uint(binade) | (word >> 9 & 0x7f8000u));
    const float t = __fmaf_rn(__fsub_rn(more, binade), 0.5f, a);
    const uint32_t code = gpu_lifted_code<GPU_E2M1>(__fmaf_rz(binade, gpu_lift<GPU_E2M1>(), t), binade, number);
    *number = fminf(*number, 6.0f);
    return code;
}

/* The last bytes of four words, in a word. */
static __device__ __forceinline__ uint32_t gpu_last_bytes(const uint32_t v[4])
{
    return __byte_perm(__byte_perm(v[0], v[1], 0x0040), __byte_perm(v[2], v[3], 0x0040), 0x5410);
}

/* The signs of numbers 4 h to 4 h + 3 of a group: the first bits of four bytes. */
template <int IN>
static __device__ __forceinline__ uint32_t gpu_signs(const gpu_group<IN> &g, int h)
{
    if (IN != GPU_INPUT_F32)
        return __byte_perm(g.u[2 * h & 3], g.u[(2 * h + 1) & 3], 0x7531) & 0x80808080u;
    return __byte_perm(__byte_perm(g.u[0], g.u[1], 0x0073), __byte_perm(g.u[2], g.u[3], 0x0073), 0x5410) & 0x80808080u;
}

/* Sums' last bytes as codes with signs. over: numbers that have come to 8, in E2M1: their codes become the largest one. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_join_codes(const uint32_t bits[4], uint32_t signs, unsigned *over)
{
    typedef gpu_grid<ELEMENT> grid;
    const uint32_t ones = 0x01010101u, range = ELEMENT == GPU_E2M1_RANDOM ? 16u : +grid::SIGN;
    const uint32_t mask = (range - 1) * ones, bias = (grid::LEAST << grid::MBITS) % range;
    uint32_t codes = ((gpu_last_bytes(bits) & mask) + (range - bias) % range * ones) & mask;
    if (ELEMENT == GPU_E2M1_RANDOM) {
        const uint32_t beyond = codes & 8 * ones;
        codes = (codes & 7 * ones) | (beyond - (beyond >> 3));
        *over = (unsigned)__popc(beyond);
    }
    return codes | signs / (0x80 / grid::SIGN);
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

/* y: the signs are in `signs`, too; of random rounding there alone. */
template <int ELEMENT>
static __device__ __forceinline__ gpu_packed gpu_pack(const float y[4], uint32_t signs, const uint32_t words[4],
                                                      [[maybe_unused]] int wanted)
{
    gpu_packed p;
    uint32_t bits[4];
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
    GPU_UNROLL
    for (int k = 0; k < 4; k++)
        bits[k] = ELEMENT == GPU_E2M1_RANDOM ? gpu_random_code(y[k], words[k], &p.number[k])
                                             : gpu_nearest_code<ELEMENT>(y[k], &p.number[k]);
    p.codes = gpu_join_codes<ELEMENT>(bits, signs, &p.over);
    GPU_UNROLL
    for (int k = 0; k < 4; k++)
        p.number[k] = __uint_as_float(__float_as_uint(p.number[k]) | (signs << (24 - 8 * k) & 0x80000000u));
    return p;
}

/* 0x80 in each byte whose magnitude code is not 0. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_not_zero(uint32_t codes)
{
    const uint32_t mask = (gpu_grid<ELEMENT>::SIGN - 1) * 0x01010101u;
    return ((codes & mask) + 0x7f7f7f7fu) & 0x80808080u;
}
