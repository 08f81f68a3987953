/* statistics.cuh -- one pass over a tensor: exponents, special values, what casts to narrow formats
 * would lose, and the casts themselves. All results are counts and a maximum of integers: no order
 * changes them. */
#ifndef MPSIM_GPU_KERNELS_STATISTICS_CUH
#define MPSIM_GPU_KERNELS_STATISTICS_CUH

#include "pairs.cuh"

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
 * thread counts only what is on the far side of a limit and in its bin. Those are few: of numbers
 * with uniform exponents and significands one in 800, so that one warp in 25 looks closer. */

enum { STAT_BINS = 256, STAT_LANES = 32, STAT_THREADS = 256 };
enum { STAT_ZERO, STAT_NAN, STAT_BEYOND, STAT_NOTHING = STAT_BEYOND + GPU_CASTS,
       STAT_RAW = STAT_NOTHING + GPU_CASTS };

/* Whether a magnitude is at or beyond `limit` and in its bin. */
static __host__ __device__ constexpr bool stat_is_beyond(uint32_t m, uint32_t limit)
{
    return m - limit < (((limit >> 23) + 1) << 23) - limit;
}
/* Whether it is not zero, at or below `limit` and in its bin. */
static __host__ __device__ constexpr bool stat_is_nothing(uint32_t m, uint32_t limit)
{
    return limit >> 23 ? m - (limit & 0x7f800000) <= (limit & 0x7fffff) : m - 1 < limit;
}

struct stat_seen {
    unsigned n[STAT_RAW], amax;

    /* Bits of a binary32 number. A lane has its own column of every bin, so that the lanes of a
     * warp never meet in a bank. */
    __device__ __forceinline__ void add(unsigned *bins, uint32_t bits)
    {
        const uint32_t m = bits & 0x7fffffffu;
        atomicAdd(&bins[(m >> 23) * STAT_LANES + threadIdx.x % STAT_LANES], 1u);
        n[STAT_ZERO] += m == 0;
        bool odd = m >= stat_beyond(GPU_CAST_BF16); /* Inf, NaN, too */
#pragma unroll
        for (int i = 0; i < GPU_CASTS; i++) {
            if (i != GPU_CAST_BF16 && i != GPU_CAST_F16)
                odd |= stat_is_beyond(m, stat_beyond(i));
            odd |= stat_is_nothing(m, stat_nothing(i));
        }
        if (odd)
            add_odd(m);
        else
            amax = m > amax ? m : amax;
    }
    static_assert(stat_beyond(GPU_CAST_F16) > stat_beyond(GPU_CAST_E5M2) &&
                      stat_beyond(GPU_CAST_F16) >> 23 == stat_beyond(GPU_CAST_E5M2) >> 23,
                  "fp16 overflows where e5m2 does");

    __device__ __forceinline__ void add_odd(uint32_t m)
    {
        n[STAT_NAN] += m > 0x7f800000u;
#pragma unroll
        for (int i = 0; i < GPU_CASTS; i++) {
            n[STAT_BEYOND + i] += stat_is_beyond(m, stat_beyond(i));
            n[STAT_NOTHING + i] += stat_is_nothing(m, stat_nothing(i));
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
#pragma unroll
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
                half[k] = gpu_pair_f16(c.format[GPU_CAST_F16], low, high);
            if constexpr (SET >> GPU_CAST_BF16 & 1)
                brain[k] = gpu_pair_bf16(c.format[GPU_CAST_BF16], low, high);
            if constexpr (SET >> GPU_CAST_E4M3 & 1)
                e4m3[k / 2] |= gpu_pair_e4m3(c.format[GPU_CAST_E4M3], low, high) << up;
            if constexpr (SET >> GPU_CAST_E5M2 & 1)
                e5m2[k / 2] |= gpu_pair_e5m2(c.format[GPU_CAST_E5M2], low, high) << up;
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
