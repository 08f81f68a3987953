/* codes.cuh -- tensors on a device: arrays of codes of a format. Load, decode, encode, count.
 *
 * Formats whose numbers are binary32 numbers. Those with signed zeros and NaNs at the top are done
 * with the bits of the binary32 number, and by instructions of the device where it has them; others
 * by the reference (lib/round/scalar.h). All give the codes of mpsim_encode_f32, but that a NaN is always
 * nan_code. */
#pragma once

#include "cuda.cuh"

#include "../../lib/round/rng.h"
#include "../../lib/round/scalar.h"
#include "../../lib/layer/scalar.h"

enum gpu_kind { GPU_BINARY32, GPU_BITS, GPU_REFERENCE };

/* Instructions that convert: fp16 and bf16 from sm_80 on, FP8 from sm_89 on. */
enum gpu_convert { GPU_CVT_NONE, GPU_CVT_F16, GPU_CVT_BF16, GPU_CVT_E4M3, GPU_CVT_E5M2 };

enum gpu_mode {
    GPU_NEAREST,  /* even; overflow to infinity, or NaN                   */
    GPU_SATURATE, /* even; overflow and infinity to the largest number    */
    GPU_AWAY      /* nearest, ties away; overflow to infinity, or NaN     */
};

struct gpu_format {
    int kind, convert;
    int bytes;              /* of a code: 1, 2, 4                                    */
    int mbits, shift;       /* GPU_BITS: 23 - mbits bits are dropped                 */
    uint32_t mask, sign;    /* of the magnitude, the sign bit                        */
    uint32_t max, inf, nan; /* codes; inf is nan in a format without one          */
    uint32_t least;         /* bits of the smallest normal number                    */
    uint32_t rebias;        /* (bits >> shift) - rebias is the code of a normal one  */
    uint32_t limit;         /* bits of the smallest number that overflows, to nearest even */
    float units;            /* 2^23 times the smallest subnormal number              */
    float unit;             /* the smallest subnormal number                         */
    mpsim_math math;        /* the same as a value                                   */
};

/* 0, or -1: no format of the device. */
static inline int gpu_format_set(gpu_format *g, const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    memset(g, 0, sizeof *g);
    if (!f || mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) != MPSIM_OK)
        return -1;
    mpsim_math_set(&g->math, f);
    g->math.format = *f;
    g->bytes = (int)mpsim_format_code_bytes(f);
    if (g->bytes > 4)
        return -1;
    g->kind = g->math.kind == MPSIM_MATH_BINARY32 ? GPU_BINARY32
              : g->math.kind == MPSIM_MATH_BITS   ? GPU_BITS
                                                  : GPU_REFERENCE;
    g->mbits = f->mbits;
    g->shift = 23 - f->mbits;
    g->mask = (uint32_t)mpsim_magnitude_mask(f);
    g->sign = (uint32_t)mpsim_sign_bit(f, 1);
    g->max = (uint32_t)f->max_finite;
    g->nan = (uint32_t)f->nan_code;
    g->inf = f->inf ? g->max + 1 : g->nan;
    if (g->kind != GPU_BITS)
        return 0;
    g->least = g->math.min_normal;
    g->rebias = (g->least >> g->shift) - ((uint32_t)1 << f->mbits);
    g->limit = g->math.max + ((uint32_t)1 << (g->shift - 1)) + (g->max & 1 ? 0 : 1);
    g->units = g->math.subnormal;
    g->unit = (float)mpsim_format_min_positive(f);
    const struct {
        uint8_t bits, mbits, inf;
        int16_t bias;
        uint32_t max;
        int convert;
    } rows[] = {{16, 10, 1, 15, 0x7bff, GPU_CVT_F16},
                {16, 7, 1, 127, 0x7f7f, GPU_CVT_BF16},
                {8, 3, 0, 7, 0x7e, GPU_CVT_E4M3},
                {8, 2, 1, 15, 0x7b, GPU_CVT_E5M2}};
    for (const auto &row : rows)
        if (row.bits == f->bits && row.mbits == f->mbits && row.bias == f->bias && row.inf == f->inf &&
            row.max == g->max)
            g->convert = row.convert;
    return 0;
}

/* ---- memory ---- */

static __device__ __forceinline__ uint32_t gpu_load(const gpu_format &f, const void *p, size_t i)
{
    switch (f.bytes) {
    case 1:
        return static_cast<const uint8_t *>(p)[i];
    case 2:
        return static_cast<const uint16_t *>(p)[i];
    default:
        return static_cast<const uint32_t *>(p)[i];
    }
}

static __device__ __forceinline__ void gpu_store(const gpu_format &f, void *p, size_t i, uint32_t code)
{
    switch (f.bytes) {
    case 1:
        static_cast<uint8_t *>(p)[i] = (uint8_t)code;
        break;
    case 2:
        static_cast<uint16_t *>(p)[i] = (uint16_t)code;
        break;
    default:
        static_cast<uint32_t *>(p)[i] = code;
    }
}

/* Four codes that follow one another, by one access; `quad` counts fours, p is aligned to their size. */
template <class T>
struct alignas(4 * sizeof(T)) gpu_four {
    T v[4];
};

template <class T>
static __device__ __forceinline__ void gpu_load_as(const void *p, size_t quad, uint32_t to[4])
{
    const gpu_four<T> v = static_cast<const gpu_four<T> *>(p)[quad];
    GPU_UNROLL
    for (int t = 0; t < 4; t++)
        to[t] = v.v[t];
}

template <class T>
static __device__ __forceinline__ void gpu_store_as(void *p, size_t quad, const uint32_t from[4])
{
    gpu_four<T> v;
    GPU_UNROLL
    for (int t = 0; t < 4; t++)
        v.v[t] = (T)from[t];
    static_cast<gpu_four<T> *>(p)[quad] = v;
}

static __device__ __forceinline__ void gpu_load_four(const gpu_format &f, const void *p, size_t quad, uint32_t to[4])
{
    switch (f.bytes) {
    case 1:
        return gpu_load_as<uint8_t>(p, quad, to);
    case 2:
        return gpu_load_as<uint16_t>(p, quad, to);
    default:
        gpu_load_as<uint32_t>(p, quad, to);
    }
}

static __device__ __forceinline__ void gpu_store_four(const gpu_format &f, void *p, size_t quad, const uint32_t from[4])
{
    switch (f.bytes) {
    case 1:
        return gpu_store_as<uint8_t>(p, quad, from);
    case 2:
        return gpu_store_as<uint16_t>(p, quad, from);
    default:
        gpu_store_as<uint32_t>(p, quad, from);
    }
}

static __device__ __forceinline__ int gpu_in_fours(const gpu_format &f, const void *p)
{
    return (uintptr_t)p % (4u * (unsigned)f.bytes) == 0;
}

/* ---- from codes ---- */

static __device__ GPU_NOINLINE float gpu_decode_reference(const gpu_format &f, uint32_t code)
{
    return mpsim_number_to_f32(mpsim_scalar_unpack(&f.math.format, code));
}

static __device__ __forceinline__ float gpu_decode(const gpu_format &f, uint32_t code)
{
    if (f.kind == GPU_BINARY32)
        return __uint_as_float(code);
    if (f.kind == GPU_REFERENCE)
        return gpu_decode_reference(f, code);
    const uint32_t m = code & f.mask, sign = code & f.sign ? 0x80000000u : 0;
    if (m > f.max)
        return __uint_as_float(m == f.inf && f.inf != f.nan ? sign | 0x7f800000u : sign | 0x7fc00000u);
    if (m >> f.mbits)
        return __uint_as_float(sign | (m + f.rebias) << f.shift);
    return __uint_as_float(sign | __float_as_uint(__fmul_rn((float)m, f.unit))); /* exact */
}

static __device__ __forceinline__ float gpu_value(const gpu_format &f, const void *p, size_t i)
{
    return gpu_decode(f, gpu_load(f, p, i));
}

static __device__ __forceinline__ int gpu_is_nan(const gpu_format &f, uint32_t code)
{
    if (f.kind == GPU_BINARY32)
        return (code & 0x7fffffffu) > 0x7f800000u;
    if (f.kind == GPU_BITS)
        return (code & f.mask) > f.max && !((code & f.mask) == f.inf && f.inf != f.nan);
    return mpsim_scalar_classify(&f.math.format, code) == MPSIM_CLASS_NAN;
}

/* ---- to codes ---- */

struct gpu_code {
    uint32_t code;
    int overflow; /* a finite number beyond the largest one, saturated or not */
};

static __device__ GPU_NOINLINE gpu_code gpu_encode_reference(const gpu_format &f, int mode, uint32_t random, float x)
{
    gpu_code y;
    mpsim_rounding r;
    unsigned flags;
    memset(&r, 0, sizeof r); /* the default choices are the enumerators with value 0 */
    r.scale = 1;
    r.sr_bits = 32;
    r.mode = (uint8_t)mode;
    y.code = (uint32_t)mpsim_scalar_encode(&f.math.format, &r, mode, mpsim_number_f32(x), random, &flags);
    y.overflow = (flags & MPSIM_FLAG_OVERFLOW) != 0;
    return y;
}

#if defined(__CUDA_ARCH__)
/* Numbers below the limit, and not NaN. */
static __device__ __forceinline__ uint32_t gpu_convert_bits(int convert, float x)
{
    unsigned short y = 0;
    switch (convert) {
    case GPU_CVT_F16:
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        break;
    case GPU_CVT_BF16:
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        break;
#if __CUDA_ARCH__ >= 890
    case GPU_CVT_E4M3:
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
        break;
    case GPU_CVT_E5M2:
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
        break;
#endif
    }
    return y;
}

static __device__ __forceinline__ int gpu_converts(int convert)
{
    return convert != GPU_CVT_NONE && (__CUDA_ARCH__ >= 890 || convert < GPU_CVT_E4M3);
}
#endif

/* GPU_BITS, |x| in `a`, not NaN, below the limit of overflow. Magnitude codes are consecutive, so a
 * carry out of the significand is right. A sum with `units` has the unit of subnormal numbers in
 * its last place. */
static __device__ __forceinline__ uint32_t gpu_nearest_bits(const gpu_format &f, uint32_t a)
{
    if (a < f.least)
        return __float_as_uint(__fadd_rn(__uint_as_float(a), f.units)) - __float_as_uint(f.units);
    return ((a + ((1u << (f.shift - 1)) - 1) + (a >> f.shift & 1)) >> f.shift) - f.rebias;
}

static __device__ __forceinline__ uint32_t gpu_beyond(const gpu_format &f, int mode, uint32_t sign)
{
    return sign | (mode == GPU_SATURATE ? f.max : f.inf);
}

/* REFERENCE formats know no saturation here: quantised elements are in formats of BITS. */
static __device__ __forceinline__ gpu_code gpu_encode(const gpu_format &f, int mode, float x)
{
    const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu;
    gpu_code y;
    y.code = u;
    y.overflow = 0;
    if (f.kind == GPU_BINARY32)
        return y;
    if (f.kind == GPU_REFERENCE || (mode == GPU_AWAY && a < f.least && f.rebias != 0))
        return gpu_encode_reference(f, mode == GPU_AWAY ? MPSIM_ROUND_NEAREST_AWAY : MPSIM_ROUND_NEAREST_EVEN, 0, x);
    const uint32_t sign = u >> 31 ? f.sign : 0;
    if (a > 0x7f800000u) {
        y.code = f.nan;
        return y;
    }
    if (mode == GPU_AWAY) {
        const uint32_t m = ((a + (1u << (f.shift - 1))) >> f.shift) - f.rebias;
        y.overflow = a != 0x7f800000u && m > f.max;
        y.code = m > f.max ? gpu_beyond(f, mode, sign) : sign | m;
        return y;
    }
    if (a >= f.limit) {
        y.overflow = a != 0x7f800000u;
        y.code = gpu_beyond(f, mode, sign);
        return y;
    }
#if defined(__CUDA_ARCH__)
    if (gpu_converts(f.convert)) {
        y.code = gpu_convert_bits(f.convert, x);
        return y;
    }
#endif
    y.code = sign | gpu_nearest_bits(f, a);
    return y;
}

/* x rounded to nearest even, as a value. */
static __device__ __forceinline__ float gpu_hold(const gpu_format &f, float x)
{
    return f.kind == GPU_BINARY32 ? x : gpu_decode(f, gpu_encode(f, GPU_NEAREST, x).code);
}

/* Mode stochastic-a with 32 random bits: the dropped bits of a significand are at most 22, so that
 * the higher bits of the word decide alone; below the normal numbers the reference does it. */
static __device__ __forceinline__ uint32_t gpu_encode_stochastic(const gpu_format &f, float x, uint32_t random)
{
    const uint32_t u = __float_as_uint(x), a = u & 0x7fffffffu;
    if (f.kind == GPU_BINARY32)
        return u;
    if (f.kind == GPU_REFERENCE || (a < f.least && f.rebias != 0))
        return gpu_encode_reference(f, MPSIM_ROUND_STOCHASTIC_A, random, x).code;
    const uint32_t sign = u >> 31 ? f.sign : 0;
    if (a > 0x7f800000u)
        return f.nan;
    const uint32_t m = ((a + (random >> (32 - f.shift))) >> f.shift) - f.rebias;
    return m > f.max ? gpu_beyond(f, GPU_NEAREST, sign) : sign | m;
}

/* ---- counting: train_counts of lib/include/train/engine.h ---- */

typedef unsigned long long gpu_word; /* what atomics take */

enum { GPU_COUNT_NONZERO, GPU_COUNT_LOST, GPU_COUNT_OVERFLOW, GPU_COUNT_NONFINITE, GPU_COUNTERS };

static __device__ __forceinline__ int gpu_is_finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

static __device__ __forceinline__ int gpu_is_zero_code(const gpu_format &f, uint32_t code)
{
    return f.kind == GPU_REFERENCE ? mpsim_scalar_classify(&f.math.format, code) == MPSIM_CLASS_ZERO
                                   : (code & f.mask) == 0;
}

static __device__ __forceinline__ int gpu_is_nonfinite_code(const gpu_format &f, uint32_t code)
{
    return f.kind == GPU_REFERENCE ? mpsim_scalar_classify(&f.math.format, code) < MPSIM_CLASS_ZERO
                                   : (code & f.mask) > f.max;
}

/* What a thread has seen; every thread of a warp gives. */
struct gpu_counter {
    unsigned nonzero, lost, overflow, nonfinite;

    __device__ gpu_counter() : nonzero(0), lost(0), overflow(0), nonfinite(0)
    {
    }

    /* x before rounding */
    __device__ __forceinline__ void add(const gpu_format &f, float x, gpu_code y)
    {
        if (gpu_is_finite(x) && x != 0) {
            nonzero++;
            lost += gpu_is_zero_code(f, y.code);
            overflow += y.overflow;
        }
        nonfinite += gpu_is_nonfinite_code(f, y.code);
    }

    __device__ void give(gpu_word *counts) const
    {
        if (!counts)
            return;
        one(counts + GPU_COUNT_NONZERO, nonzero);
        one(counts + GPU_COUNT_LOST, lost);
        one(counts + GPU_COUNT_OVERFLOW, overflow);
        one(counts + GPU_COUNT_NONFINITE, nonfinite);
    }

    static __device__ void one(gpu_word *to, unsigned n)
    {
        const unsigned sum = __reduce_add_sync(0xffffffffu, n);
        if (sum && threadIdx.x % 32 == 0)
            atomicAdd(to, (gpu_word)sum);
    }
};

/* x rounded, stored, counted. */
static __device__ __forceinline__ void gpu_put(const gpu_format &f, void *p, size_t i, float x, gpu_counter *c)
{
    const gpu_code y = gpu_encode(f, GPU_NEAREST, x);
    c->add(f, x, y);
    gpu_store(f, p, i, y.code);
}

/* A loop of a thread over n elements, the same number of times in every thread of a warp or not:
 * bodies hold no collective. */
#define GPU_FOR(i, n) \
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)
