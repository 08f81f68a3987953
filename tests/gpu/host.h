/* host.h -- CUDA kernels on a CPU, for tests: the part of CUDA that the kernels of training use, in
 * plain C++17.
 *
 * A grid runs block by block, or cluster by cluster; the threads of a block as fibers that take turns: each runs until it
 * ends, or waits at a barrier, a warp collective or in gpu_host_yield. Nothing runs in parallel, so
 * atomics are plain operations, and a launch has ended when it returns.
 *
 * What is found (cudaGetLastError then says cudaErrorLaunchFailure, cudaGetErrorString what):
 *   - a thread that ends, or waits elsewhere, while others wait at __syncthreads or in a
 * collective;
 *   - __syncthreads reached at two places of the source at once;
 *   - writes beside an allocation of cudaMalloc, beside a shared array (guards of 64 bytes), below
 * a fiber's stack;
 *   - launches that a device refuses: no threads, more than 1024, too much shared memory;
 *   - mistakes with mbarriers, tiles by TMA and clusters: host_tma.h.
 * Memory of cudaMalloc and shared memory of every block begin as bytes 0xff, which is NaN.
 *
 * Tensor-core instructions are computed by the rows of the models. So this finds wrong indices, barriers and
 * orders; it cannot judge the arithmetic of the hardware. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- words of the language ---- */

#define _Static_assert static_assert /* headers that are C17 */
#define __global__ inline            /* external, so that host_faults.h finds the name */
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static /* not poisoned: GPU_SHARED is */
#define __launch_bounds__(...)
#define GPU_CLUSTERS(n)
#define GPU_CONSTANT(...) const __VA_ARGS__ &
#define __forceinline__ inline /* not always: each of 60 kernels would have its copy of everything */
#define __align__(n) __attribute__((aligned(n)))
#define GPU_NOINLINE __attribute__((noinline))
#define GPU_PREFETCH(p) ((void)(p))

#include "host_launch.h"
#include "host_runtime.h"
#include "host_graph.h"

/* ---- what a thread is ---- */

#define threadIdx (gpu_host.now->thread)
#define blockIdx (gpu_host.block)
#define blockDim (gpu_host.block_dim)
#define gridDim (gpu_host.grid_dim)
static const int warpSize = 32;

#define __syncthreads() gpu_host_barrier(__FILE__, __LINE__)
#define __syncwarp         \
    gpu_host_sync_warp     \
    {                      \
        __FILE__, __LINE__ \
    }
#define __shfl_sync(...) gpu_host_shfl(__FILE__, __LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) gpu_host_shfl_xor(__FILE__, __LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) gpu_host_shfl_down(__FILE__, __LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) gpu_host_shfl_up(__FILE__, __LINE__, __VA_ARGS__)
#define __ballot_sync(mask, p) gpu_host_ballot(__FILE__, __LINE__, mask, p)
#define __any_sync(mask, p) (gpu_host_ballot(__FILE__, __LINE__, mask, p) != 0)
#define __all_sync(mask, p) (gpu_host_ballot(__FILE__, __LINE__, mask, !(p)) == 0)
#define __reduce_add_sync(mask, v) gpu_host_reduce_add(__FILE__, __LINE__, mask, v)
#define __reduce_max_sync(mask, v) gpu_host_reduce_max(__FILE__, __LINE__, mask, v)
#define __reduce_min_sync(mask, v) (~gpu_host_reduce_max(__FILE__, __LINE__, mask, ~(v)))
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

inline unsigned gpu_host_lane()
{
    return gpu_host.now->number % 32;
}

/* The warp's values of v. */
template <class T>
static inline void gpu_host_gather(const char *file, int line, unsigned mask, T v, T all[32])
{
    gpu_host_meet(gpu_host.now->number / 32 * 32, 32, mask, &v, sizeof v, all, file, line);
}

struct gpu_host_sync_warp {
    const char *file;
    int line;
    void operator()(unsigned mask = 0xffffffffu) const
    {
        gpu_host_meet(gpu_host.now->number / 32 * 32, 32, mask, nullptr, 0, nullptr, file, line);
    }
};

template <class T>
static inline T gpu_host_from(const char *file, int line, unsigned mask, T v, unsigned lane)
{
    T all[32];
    memset(static_cast<void *>(all), 0xff, sizeof all);
    gpu_host_gather(file, line, mask, v, all);
    return all[lane & 31];
}

template <class T>
static inline T gpu_host_shfl(const char *file, int line, unsigned mask, T v, int lane, int width = 32)
{
    const unsigned self = gpu_host_lane(), w = unsigned(width);
    return gpu_host_from(file, line, mask, v, self / w * w + unsigned(lane) % w);
}

template <class T>
static inline T gpu_host_shfl_xor(const char *file, int line, unsigned mask, T v, int x, int width = 32)
{
    const unsigned self = gpu_host_lane(), to = self ^ unsigned(x), w = unsigned(width);
    return gpu_host_from(file, line, mask, v, to / w <= self / w ? to : self);
}

template <class T>
static inline T gpu_host_shfl_down(const char *file, int line, unsigned mask, T v, unsigned n, int width = 32)
{
    const unsigned self = gpu_host_lane(), w = unsigned(width);
    return gpu_host_from(file, line, mask, v, self % w + n < w ? self + n : self);
}

template <class T>
static inline T gpu_host_shfl_up(const char *file, int line, unsigned mask, T v, unsigned n, int width = 32)
{
    const unsigned self = gpu_host_lane(), w = unsigned(width);
    return gpu_host_from(file, line, mask, v, self % w >= n ? self - n : self);
}

static inline unsigned gpu_host_ballot(const char *file, int line, unsigned mask, int predicate)
{
    int all[32] = {0};
    unsigned set = 0;
    gpu_host_gather(file, line, mask, predicate != 0 ? 1 : 0, all);
    for (unsigned i = 0; i < 32; i++)
        set |= (mask >> i & 1) && all[i] ? 1u << i : 0;
    return set;
}

static inline unsigned gpu_host_reduce_add(const char *file, int line, unsigned mask, unsigned v)
{
    unsigned all[32] = {0}, sum = 0;
    gpu_host_gather(file, line, mask, v, all);
    for (unsigned i = 0; i < 32; i++)
        sum += all[i];
    return sum;
}

static inline unsigned gpu_host_reduce_max(const char *file, int line, unsigned mask, unsigned v)
{
    unsigned all[32] = {0}, most = 0;
    gpu_host_gather(file, line, mask, v, all);
    for (unsigned i = 0; i < 32; i++)
        most = all[i] > most ? all[i] : most;
    return most;
}

/* ---- atomics: one thread runs at a time ---- */

#define GPU_HOST_ATOMIC(name, expression)                                                       \
    template <class T, class V>                                                                 \
    static inline T name(T *p, V value)                                                         \
    {                                                                                           \
        static_assert(sizeof(T) >= 4 && T(1) / 2 == T(0), "integers only: sums have an order"); \
        const T old = *p, v = T(value);                                                         \
        const int is_far = size_t((unsigned char *)p - gpu_host.shared) >= GPU_HOST_SHARED;     \
        gpu_host.atomics += is_far ? 1 : 0;                                                     \
        gpu_host.shared_atomics += is_far ? 0 : 1;                                              \
        *p = (expression);                                                                      \
        return old;                                                                             \
    }
GPU_HOST_ATOMIC(atomicAdd, T(old + v))
GPU_HOST_ATOMIC(atomicSub, T(old - v))
GPU_HOST_ATOMIC(atomicMax, old > v ? old : v)
GPU_HOST_ATOMIC(atomicMin, old < v ? old : v)
GPU_HOST_ATOMIC(atomicOr, T(old | v))
GPU_HOST_ATOMIC(atomicAnd, T(old &v))
GPU_HOST_ATOMIC(atomicExch, v)

/* ---- loads, bits, arithmetic ---- */

template <class T>
static inline T __ldcs(const T *p)
{
    return *p;
}
template <class To, class From>
static inline To gpu_host_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "the same size");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
/* Bytes of (b, a), by the digits of `which`. */
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which)
{
    unsigned y = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned k = which >> 4 * i & 7;
        y |= ((k < 4 ? a : b) >> 8 * (k % 4) & 0xff) << 8 * i;
    }
    return y;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}

static inline int __clz(int x)
{
    return x ? __builtin_clz(unsigned(x)) : 32;
}
static inline unsigned __float_as_uint(float x)
{
    return gpu_host_bits<unsigned>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return gpu_host_bits<float>(x);
}
static inline double __longlong_as_double(long long x)
{
    return gpu_host_bits<double>(x);
}
static inline long long __double_as_longlong(double x)
{
    return gpu_host_bits<long long>(x);
}
static inline double __hiloint2double(int hi, int lo)
{
    return gpu_host_bits<double>(uint64_t(unsigned(hi)) << 32 | unsigned(lo));
}
static inline int __double2hiint(double x)
{
    return int(gpu_host_bits<uint64_t>(x) >> 32);
}
static inline long long __double2ll_rn(double x)
{
    return llrint(x);
}
static inline long long __double2ll_rd(double x)
{
    return (long long)floor(x);
}
static inline long long __double2ll_ru(double x)
{
    return (long long)ceil(x);
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
/* Rounded toward -infinity: the nearest number, or the one below it; zero is -0 but for a sum of two that are not negative. The
 * error of a sum is exact in binary64; so is that of a product and of each sum on the way, whose total has the sign of the
 * largest that is not zero. */
static inline double gpu_host_error(double a, double b, double sum)
{
    const double part = sum - a;
    return (a - (sum - part)) + (b - part);
}
/* x, or the number below it: no branch, since that is at random. */
static inline double gpu_host_below(double x, double error)
{
    const uint64_t bits = gpu_host_bits<uint64_t>(x), step = error < 0;
    return x == 0 ? (step ? -0x1p-1074 : x) : gpu_host_bits<double>(bits + step * (2 * (bits >> 63) - 1));
}
static inline float gpu_host_below(float x, bool is_above)
{
    const unsigned bits = gpu_host_bits<unsigned>(x), step = is_above;
    return x == 0 ? (step ? -0x1p-149f : x) : gpu_host_bits<float>(bits + step * (2 * (bits >> 31) - 1));
}
static inline double __dadd_rd(double a, double b)
{
    const double sum = a + b;
    if (sum == 0)
        return signbit(a) || signbit(b) ? -0.0 : 0.0;
    return gpu_host_below(sum, gpu_host_error(a, b, sum));
}
/* Of products above 2^-900. The exact sum is middle + rest + low: less than half a unit of `sum` away from it. */
__attribute__((noinline, unused)) static double gpu_host_fma_below(double a, double b, double c)
{
    const double sum = fma(a, b, c), product = a * b, low = fma(a, b, -product);
    const double middle = product + c, rest = gpu_host_error(product, c, middle);
    const double tail = rest + low, last = gpu_host_error(rest, low, tail), gap = middle - sum;
    const double error = gap + tail != 0 ? gap + tail : last;
    return sum == 0 && error == 0 ? __dadd_rd(product, c) : gpu_host_below(sum, error);
}
/* Zeros at the end of a number's bits. */
static inline int gpu_host_zeros(double x)
{
    return __builtin_ctzll(gpu_host_bits<uint64_t>(x) | uint64_t(1) << 63);
}
/* Products of numbers that have 53 bits together are exact. */
static inline double __fma_rd(double a, double b, double c)
{
    const double product = a * b, magnitude = fabs(product);
    if (gpu_host_zeros(a) + gpu_host_zeros(b) >= 53 &&
        ((magnitude >= 0x1p-1022 && magnitude <= 0x1p1023) || a == 0 || b == 0))
        return __dadd_rd(product, c);
    return gpu_host_fma_below(a, b, c);
}
static inline double __fma_ru(double a, double b, double c)
{
    return -__fma_rd(-a, b, -c);
}
/* max(a + b, c) of two signed halves */
static inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c)
{
    unsigned r = 0;
    for (int h = 0; h < 32; h += 16) {
        const int16_t sum = int16_t(uint16_t(a >> h) + uint16_t(b >> h)), least = int16_t(uint16_t(c >> h));
        r |= unsigned(uint16_t(sum > least ? sum : least)) << h;
    }
    return r;
}
/* Products of four signed bytes and c. */
static inline int __dp4a(int a, int b, int c)
{
    for (int h = 0; h < 32; h += 8)
        c += int(int8_t(a >> h)) * int(int8_t(b >> h));
    return c;
}
static inline unsigned __vmaxs2(unsigned a, unsigned b)
{
    return __viaddmax_s16x2(a, 0, b);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
/* A NaN is that of this CPU, or, where a test asks for it, that of a device. */
static inline float __fmaf_rn(float a, float b, float c)
{
    const float y = fmaf(a, b, c);
    return y != y && gpu_host.device_nans ? __uint_as_float(0x7fffffffu) : y;
}
/* Products of binary32 are exact in binary64. */
static inline float __fmul_rz(float a, float b)
{
    const double exact = double(a) * double(b);
    const float nearest = float(exact);
    return fabs(double(nearest)) > fabs(exact) ? __uint_as_float(__float_as_uint(nearest) - 1) : nearest;
}
static inline float __fmul_rd(float a, float b)
{
    const double exact = double(a) * double(b);
    const float nearest = float(exact);
    return gpu_host_below(nearest, double(nearest) > exact);
}
static inline float __fmul_ru(float a, float b)
{
    return -__fmul_rd(-a, b);
}
static inline float __fmaf_ru(float a, float b, float c)
{
    const double product = double(a) * double(b), sum = product + c, rest = gpu_host_error(product, c, sum);
    const float nearest = float(sum);
    return -gpu_host_below(-nearest, (nearest < sum) | ((nearest == sum) & (rest > 0)));
}
static inline float __fmaf_rd(float a, float b, float c)
{
    return -__fmaf_ru(-a, b, -c);
}
static inline float __fmaf_rz(float a, float b, float c)
{
    const float low = __fmaf_rd(a, b, c), high = __fmaf_ru(a, b, c);
    return low == 0 && high == 0 ? fmaf(a, b, c) : fabsf(low) < fabsf(high) ? low : high;
}
static inline float __fadd_ru(float a, float b)
{
    return __fmaf_ru(a, 1, b);
}
static inline float __fadd_rd(float a, float b)
{
    return __fmaf_rd(a, 1, b);
}
static inline float __fadd_rz(float a, float b)
{
    return __fmaf_rz(a, 1, b);
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __dsqrt_rn(double a)
{
    return sqrt(a);
}
#ifndef min
template <class T>
static inline T min(T a, T b)
{
    return b < a ? b : a;
}
template <class T>
static inline T max(T a, T b)
{
    return a < b ? b : a;
}
#endif
