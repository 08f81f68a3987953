/* statistics.cuh -- one pass over a tensor: exponents, special values, what casts to narrow formats
 * would lose, and the casts themselves. All results are counts and a maximum of integers: no order
 * changes them. */
#ifndef MPSIM_GPU_STATISTICS_CUH
#define MPSIM_GPU_STATISTICS_CUH

#include "codes.cuh"

/* Formats of casts: bits of a set. FP8 saturates. */
enum { GPU_CAST_F16, GPU_CAST_BF16, GPU_CAST_E4M3, GPU_CAST_E5M2, GPU_CASTS };

/* In device memory, zero at first; see gpu_statistics_finish. */
struct gpu_statistics {
    gpu_word bin[256]; /* by exponent field of the binary32 number: 0 is zero and subnormal, 255
                          Inf, NaN */
    gpu_word zero, nan, inf;
    gpu_word overflow[GPU_CASTS];  /* finite, and rounded to nearest beyond the largest number */
    gpu_word underflow[GPU_CASTS]; /* not zero, and rounded to nearest to zero                 */
    unsigned amax;                 /* bits of the largest finite magnitude                     */
    unsigned unused;
};

/* Magnitudes from `beyond` on overflow, magnitudes up to `nothing` become zero (ties to even):
 * 65520, 0x1.ffp127, what follows 464, 61440; 2^-25, 2^-134, 2^-10, 2^-17. */
static __host__ __device__ constexpr uint32_t stat_beyond(int cast)
{
    return cast == GPU_CAST_F16    ? 0x477ff000
           : cast == GPU_CAST_BF16 ? 0x7f7f8000
           : cast == GPU_CAST_E4M3 ? 0x43e80001
                                   : 0x47700000;
}
static __host__ __device__ constexpr uint32_t stat_nothing(int cast)
{
    return cast == GPU_CAST_F16    ? 0x33000000
           : cast == GPU_CAST_BF16 ? 0x00008000
           : cast == GPU_CAST_E4M3 ? 0x3a800000
                                   : 0x37000000;
}

/* ---- what a thread has seen ----
 *
 * A limit lies within one bin. What lies in other bins follows from the histogram in the end, so that a
 * thread looks closer only at numbers whose exponent field is that of a limit, 0 or 255. */

enum { STAT_BINS = 256, STAT_LANES = 32, STAT_THREADS = 256, STAT_BLOCKS_OF_SM = 4 };
enum { STAT_ZERO, STAT_NAN, STAT_BEYOND, STAT_NOTHING = STAT_BEYOND + GPU_CASTS,
       STAT_RAW = STAT_NOTHING + GPU_CASTS };

/* Fields from STAT_LOW on, as bits: those with a limit between 2^-25 and 2^16. */
enum { STAT_LOW = 102 };
static __host__ __device__ constexpr uint64_t stat_limits()
{
    uint64_t set = 0;
    for (int i = 0; i < GPU_CASTS; i++)
        if (i != GPU_CAST_BF16)
            set |= 1ull << ((stat_beyond(i) >> 23) - STAT_LOW) |
                   1ull << ((stat_nothing(i) >> 23) - STAT_LOW);
    return set;
}

struct stat_seen {
    unsigned n[STAT_RAW], amax;

    /* Bits of a binary32 number. A lane has its own column of every bin, so that the lanes of a
     * warp never meet in a bank. Fields 0, 254 and 255 are odd, and those of stat_limits. */
    __device__ __forceinline__ void add(unsigned *bins, uint32_t bits)
    {
        const uint32_t m = bits & 0x7fffffffu, e = m >> 23;
        atomicAdd(&bins[e * STAT_LANES + threadIdx.x % STAT_LANES], 1u);
        const int limit = e - STAT_LOW < 64 && (stat_limits() >> (e - STAT_LOW) & 1);
        if (e - 1 < 253 && !limit)
            amax = m > amax ? m : amax;
        else
            add_odd(m);
    }

    /* Counts within the bin of the limit; zero is no underflow. */
    __device__ __forceinline__ void add_odd(uint32_t m)
    {
        n[STAT_ZERO] += m == 0;
        n[STAT_NAN] += m > 0x7f800000u;
#pragma unroll
        for (int i = 0; i < GPU_CASTS; i++) {
            n[STAT_BEYOND + i] += m >= stat_beyond(i) && m >> 23 == stat_beyond(i) >> 23;
            n[STAT_NOTHING + i] += m - 1 < stat_nothing(i) && m >> 23 == stat_nothing(i) >> 23;
        }
        if (m < 0x7f800000u && m > amax)
            amax = m;
    }
};

static __device__ __forceinline__ void stat_begin(unsigned *bins, unsigned *totals)
{
    for (unsigned i = threadIdx.x; i < STAT_BINS * STAT_LANES; i += blockDim.x)
        bins[i] = 0;
    if (threadIdx.x <= STAT_RAW)
        totals[threadIdx.x] = 0;
    __syncthreads();
}

/* A block's counts join the result: bin by bin, from a column of its own on so that no banks meet.
 */
static __device__ __forceinline__ void stat_end(const stat_seen &seen, const unsigned *bins,
                                                unsigned *totals, gpu_statistics *to)
{
    for (int i = 0; i < STAT_RAW; i++) {
        const unsigned sum = __reduce_add_sync(0xffffffffu, seen.n[i]);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&totals[i], sum);
    }
    atomicMax(&totals[STAT_RAW], seen.amax);
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < STAT_BINS; bin += blockDim.x) {
        gpu_word sum = 0;
        for (unsigned i = 0; i < STAT_LANES; i++)
            sum += bins[bin * STAT_LANES + (bin + i) % STAT_LANES];
        if (sum)
            atomicAdd(&to->bin[bin], sum);
    }
    if (threadIdx.x < STAT_RAW && totals[threadIdx.x]) {
        gpu_word *const counts[STAT_RAW] = {
            &to->zero,          &to->nan,          &to->overflow[0],  &to->overflow[1],
            &to->overflow[2],   &to->overflow[3],  &to->underflow[0], &to->underflow[1],
            &to->underflow[2],  &to->underflow[3]};
        atomicAdd(counts[threadIdx.x], (gpu_word)totals[threadIdx.x]);
    }
    if (threadIdx.x == STAT_RAW)
        atomicMax(&to->amax, totals[STAT_RAW]);
}

/* On the host, after the kernels: what lies in whole bins. */
static inline void gpu_statistics_finish(gpu_statistics *s)
{
    s->inf = s->bin[255] - s->nan;
    for (int i = 0; i < GPU_CASTS; i++) {
        for (uint32_t e = (stat_beyond(i) >> 23) + 1; e < 255; e++)
            s->overflow[i] += s->bin[e];
        for (uint32_t e = 0; e < stat_nothing(i) >> 23; e++)
            s->underflow[i] += s->bin[e];
        if (stat_nothing(i) >> 23 > 0)
            s->underflow[i] -= s->zero;
    }
}

/* ---- elements ---- */

/* Two codes of 16 bits of binary32 numbers, the first one low; two of 8 bits. Where the device has
 * no instruction, `f` does it. */
#if defined(__CUDA_ARCH__)
#define STAT_CVT(name, register, cvt)                                                         \
    static __device__ __forceinline__ uint32_t name(const gpu_format &, float low, float high)   \
    {                                                                                         \
        uint##register##_t d;                                                                 \
        asm(cvt " %0, %1, %2;" : STAT_OUT_##register(d) : "f"(high), "f"(low));               \
        return d;                                                                             \
    }
#define STAT_OUT_32(d) "=r"(d)
#define STAT_OUT_16(d) "=h"(d)
STAT_CVT(stat_f16, 32, "cvt.rn.f16x2.f32")
STAT_CVT(stat_bf16, 32, "cvt.rn.bf16x2.f32")
#if __CUDA_ARCH__ >= 890
STAT_CVT(stat_e4m3, 16, "cvt.rn.satfinite.e4m3x2.f32")
STAT_CVT(stat_e5m2, 16, "cvt.rn.satfinite.e5m2x2.f32")
#endif
#endif

#define STAT_BY_FORMAT(name, mode, bits)                                                      \
    static __device__ __forceinline__ uint32_t name(const gpu_format &f, float low, float high)  \
    {                                                                                         \
        return gpu_encode(f, mode, low).code | gpu_encode(f, mode, high).code << bits;        \
    }
#if !defined(__CUDA_ARCH__)
STAT_BY_FORMAT(stat_f16, GPU_NEAREST, 16)
STAT_BY_FORMAT(stat_bf16, GPU_NEAREST, 16)
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 890
STAT_BY_FORMAT(stat_e4m3, GPU_SATURATE, 8)
STAT_BY_FORMAT(stat_e5m2, GPU_SATURATE, 8)
#endif

/* ---- kernels ---- */

struct stat_source { /* aligned to 16 bytes */
    const void *x;
    size_t n;
    gpu_format format;
};

/* Element i as bits of binary32. BYTES 4: binary32. */
template <int BYTES>
static __device__ __forceinline__ uint32_t stat_bits(const gpu_format &f, const uint4 &v, int i)
{
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    if (BYTES == 4)
        return words[i];
    return __float_as_uint(gpu_decode(f, words[i / 2] >> (16 * (i % 2)) & 0xffff));
}

/* Statistics of binary32 (BYTES 4), fp16 or bf16 (2): a thread has four loads of 16 bytes under
 * way. */
template <int BYTES>
__global__ void __launch_bounds__(STAT_THREADS)
    statistics_kernel(const __grid_constant__ stat_source s, gpu_statistics *to)
{
    GPU_SHARED(unsigned, bins, [STAT_BINS * STAT_LANES]);
    GPU_SHARED(unsigned, totals, [STAT_RAW + 1]);
    constexpr int EACH = 16 / BYTES, AHEAD = 4;
    const uint4 *const x = static_cast<const uint4 *>(s.x);
    const size_t stride = (size_t)gridDim.x * blockDim.x, pieces = s.n / EACH;
    const size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    stat_seen seen = {};
    stat_begin(bins, totals);
    size_t i = first;
    for (; i + (AHEAD - 1) * stride < pieces; i += AHEAD * stride) {
        uint4 v[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            v[k] = __ldcs(x + i + k * stride);
#pragma unroll
        for (int k = 0; k < AHEAD * EACH; k++)
            seen.add(bins, stat_bits<BYTES>(s.format, v[k / EACH], k % EACH));
    }
    for (; i < pieces; i += stride) {
        const uint4 v = __ldcs(x + i);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            seen.add(bins, stat_bits<BYTES>(s.format, v, k));
    }
    if (first < s.n % EACH)
        seen.add(bins, __float_as_uint(gpu_value(s.format, s.x, pieces * EACH + first)));
    stat_end(seen, bins, totals, to);
}

struct stat_casts { /* destinations aligned to 16 bytes; NULL for those not in the set */
    void *to[GPU_CASTS];
    gpu_format format[GPU_CASTS];
};

/* Binary32 to every format of SET (1 << GPU_CAST_F16 | ...), with statistics or without: 8 elements
 * a thread at a time, 32 bytes in, 16 bytes out for each format of 16 bits, 8 for each of 8. */
template <int SET, int COUNTED>
__global__ void __launch_bounds__(STAT_THREADS)
    casts_kernel(const __grid_constant__ stat_source s, const __grid_constant__ stat_casts c,
                 gpu_statistics *to)
{
    GPU_SHARED(unsigned, bins, [COUNTED ? STAT_BINS * STAT_LANES : 1]);
    GPU_SHARED(unsigned, totals, [STAT_RAW + 1]);
    const uint4 *const x = static_cast<const uint4 *>(s.x);
    stat_seen seen = {};
    if constexpr (COUNTED)
        stat_begin(bins, totals);
    GPU_FOR(i, s.n / 8) {
        const uint4 a = __ldcs(x + 2 * i), b = __ldcs(x + 2 * i + 1);
        const uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        uint32_t half[4], brain[4], e4m3[2] = {0, 0}, e5m2[2] = {0, 0};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float low = __uint_as_float(w[2 * k]), high = __uint_as_float(w[2 * k + 1]);
            const int up = k % 2 * 16;
            if constexpr (SET >> GPU_CAST_F16 & 1)
                half[k] = stat_f16(c.format[GPU_CAST_F16], low, high);
            if constexpr (SET >> GPU_CAST_BF16 & 1)
                brain[k] = stat_bf16(c.format[GPU_CAST_BF16], low, high);
            if constexpr (SET >> GPU_CAST_E4M3 & 1)
                e4m3[k / 2] |= stat_e4m3(c.format[GPU_CAST_E4M3], low, high) << up;
            if constexpr (SET >> GPU_CAST_E5M2 & 1)
                e5m2[k / 2] |= stat_e5m2(c.format[GPU_CAST_E5M2], low, high) << up;
        }
        if constexpr (SET >> GPU_CAST_F16 & 1)
            static_cast<uint4 *>(c.to[GPU_CAST_F16])[i] = uint4{half[0], half[1], half[2], half[3]};
        if constexpr (SET >> GPU_CAST_BF16 & 1)
            static_cast<uint4 *>(c.to[GPU_CAST_BF16])[i] =
                uint4{brain[0], brain[1], brain[2], brain[3]};
        if constexpr (SET >> GPU_CAST_E4M3 & 1)
            static_cast<uint2 *>(c.to[GPU_CAST_E4M3])[i] = uint2{e4m3[0], e4m3[1]};
        if constexpr (SET >> GPU_CAST_E5M2 & 1)
            static_cast<uint2 *>(c.to[GPU_CAST_E5M2])[i] = uint2{e5m2[0], e5m2[1]};
        if constexpr (COUNTED)
#pragma unroll
            for (int k = 0; k < 8; k++)
                seen.add(bins, w[k]);
    }
    const size_t rest = s.n / 8 * 8 + (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (rest < s.n) {
        const float v = gpu_value(s.format, s.x, rest);
        for (int k = 0; k < GPU_CASTS; k++)
            if (SET >> k & 1)
                gpu_store(c.format[k], c.to[k], rest,
                          gpu_encode(c.format[k], k < GPU_CAST_E4M3 ? GPU_NEAREST : GPU_SATURATE, v)
                              .code);
        if constexpr (COUNTED)
            seen.add(bins, __float_as_uint(v));
    }
    if constexpr (COUNTED)
        stat_end(seen, bins, totals, to);
}

#endif
