/* anycast.cuh -- casts between any formats of at most 32 bits, by every rounding, of any strides: the reference of
 * lib/round/scalar.h, an element at a time. */
#pragma once

#include "codes.cuh"

#include <mpsim/product.h>

/* Dimensions of both arrays, the slowest first; their strides, in codes. */
struct gpu_layout {
    uint32_t rank;
    size_t shape[MPSIM_STACK_RANK];
    int64_t x[MPSIM_STACK_RANK], y[MPSIM_STACK_RANK];
};

enum gpu_written { GPU_WRITES_CODES, GPU_WRITES_BINARY32, GPU_WRITES_VALUES /* codes of another format */ };

struct gpu_any_cast {
    mpsim_format from, to, y, binary32;
    mpsim_rounding rounding, plain; /* plain: of values as codes of y */
    mpsim_number scale;
    int from_bytes, y_bytes, writes;
    int is_f32, is_wide; /* x: values of float; numbers that are not all numbers of binary32 */
    const void *x;
    void *codes;
    mpsim_rng rng;
    gpu_layout layout;
    size_t n;
    gpu_word *counts;
};

static __device__ __forceinline__ void gpu_places(const gpu_layout &l, size_t i, int64_t *x, int64_t *y)
{
    *x = *y = 0;
    for (uint32_t k = l.rank; k-- > 0;) {
        const size_t at = k ? i % l.shape[k] : i;
        i = k ? i / l.shape[k] : 0;
        *x += (int64_t)at * l.x[k];
        *y += (int64_t)at * l.y[k];
    }
}

static __device__ __forceinline__ uint32_t gpu_load_any(const void *p, int bytes, int64_t i)
{
    return bytes == 1   ? static_cast<const uint8_t *>(p)[i]
           : bytes == 2 ? static_cast<const uint16_t *>(p)[i]
                        : static_cast<const uint32_t *>(p)[i];
}

static __device__ __forceinline__ void gpu_store_any(void *p, int bytes, int64_t i, uint32_t code)
{
    if (bytes == 1)
        static_cast<uint8_t *>(p)[i] = (uint8_t)code;
    else if (bytes == 2)
        static_cast<uint16_t *>(p)[i] = (uint16_t)code;
    else
        static_cast<uint32_t *>(p)[i] = code;
}

/* The code of x, whose numbers are no binary32 numbers: as mpsim_encode_f64. */
static __device__ __forceinline__ uint64_t gpu_encode_wide(const gpu_any_cast &c, uint32_t code, uint32_t random,
                                                           unsigned *flags)
{
    const double value = mpsim_scalar_decode(&c.from, code);
    unsigned first;
    if (!c.rounding.via_binary32)
        return mpsim_scalar_encode_f64(&c.to, &c.rounding, c.scale, value, random, flags);
    const uint32_t u = mpsim_scalar_to_binary32(&c.binary32, value, &first);
    const uint64_t rounded = mpsim_scalar_encode_bits(&c.to, &c.rounding, c.scale, u, random, flags);
    *flags |= first;
    return rounded;
}

static __device__ __forceinline__ uint64_t gpu_encode_any(const gpu_any_cast &c, uint32_t code, uint32_t random,
                                                          unsigned *flags)
{
    if (c.is_wide)
        return gpu_encode_wide(c, code, random, flags);
    if (!c.is_f32)
        code = mpsim_bits_f32(mpsim_number_to_f32(mpsim_number_f64(mpsim_scalar_decode(&c.from, code))));
    return mpsim_scalar_encode_bits(&c.to, &c.rounding, c.scale, code, random, flags);
}

/* The rounded code as it is written. */
static __device__ __forceinline__ uint32_t gpu_written_code(const gpu_any_cast &c, uint64_t code)
{
    unsigned flags;
    if (c.writes == GPU_WRITES_CODES)
        return (uint32_t)code;
    const mpsim_number value = mpsim_number_f64(mpsim_scalar_decode(&c.to, code));
    if (c.writes == GPU_WRITES_BINARY32)
        return mpsim_bits_f32(mpsim_number_to_f32(value));
    return (uint32_t)mpsim_scalar_encode(&c.y, &c.plain, MPSIM_ROUND_NEAREST_EVEN, value, 0, &flags);
}

static __device__ __forceinline__ uint32_t gpu_random_word(const gpu_any_cast &c, size_t i)
{
    uint32_t words[4];
    const uint64_t index = c.rng.index + i;
    if (!mpsim_is_stochastic(c.rounding.mode))
        return 0;
    mpsim_rng_block(words, c.rng.seed, c.rng.stream, index / 4);
    return words[index % 4];
}

GPU_KERNEL void __launch_bounds__(256) any_cast_kernel(GPU_CONSTANT(gpu_any_cast) c)
{
    gpu_counter seen;
    GPU_FOR(i, c.n)
    {
        int64_t x, y;
        unsigned flags;
        gpu_places(c.layout, i, &x, &y);
        const uint32_t code = gpu_load_any(c.x, c.from_bytes, x);
        const mpsim_class of = mpsim_scalar_classify(&c.from, code);
        const uint64_t rounded = gpu_encode_any(c, code, gpu_random_word(c, i), &flags);
        gpu_store_any(c.codes, c.y_bytes, y, gpu_written_code(c, rounded));
        seen.nonzero += of > MPSIM_CLASS_ZERO;
        seen.lost += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
        seen.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
        seen.nonfinite += mpsim_scalar_classify(&c.to, rounded) < MPSIM_CLASS_ZERO;
    }
    seen.give(c.counts);
}
