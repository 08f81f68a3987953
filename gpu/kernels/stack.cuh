/* stack.cuh -- stacks of matrices (mpsim/product.h) as kernels read them: any strides, any format. */
#pragma once

#include "codes.cuh"

#include <mpsim/product.h>

struct gpu_stack {
    const void *codes;
    mpsim_format format;
    int bytes;      /* of a code                                           */
    int is_f32;     /* codes are values                                    */
    int is_dense;   /* row after row, matrix after matrix, without gaps    */
    uint32_t outer; /* dimensions before the last two                      */
    size_t shape[MPSIM_STACK_RANK];
    int64_t strides[MPSIM_STACK_RANK]; /* of these */
    int64_t row, col;
    size_t rows, cols, lines; /* of a matrix; of all */
};

static __device__ __forceinline__ int64_t gpu_stack_line(const gpu_stack &s, size_t line)
{
    if (s.is_dense)
        return (int64_t)(line * s.cols);
    size_t matrix = line / s.rows;
    int64_t at = (int64_t)(line % s.rows) * s.row;
    for (uint32_t i = s.outer; i-- > 0; matrix /= s.shape[i])
        at += (int64_t)(matrix % s.shape[i]) * s.strides[i];
    return at;
}

static __device__ __forceinline__ uint64_t gpu_stack_code(const gpu_stack &s, size_t line, size_t k)
{
    const int64_t at = gpu_stack_line(s, line) + (s.is_dense ? (int64_t)k : (int64_t)k * s.col);
    switch (s.bytes) {
    case 1:
        return static_cast<const uint8_t *>(s.codes)[at];
    case 2:
        return static_cast<const uint16_t *>(s.codes)[at];
    case 4:
        return static_cast<const uint32_t *>(s.codes)[at];
    default:
        return static_cast<const uint64_t *>(s.codes)[at];
    }
}

/* The number of a code of a format within binary32. */
static __device__ __forceinline__ float gpu_stack_value(const gpu_stack &s, size_t line, size_t k)
{
    const uint64_t code = gpu_stack_code(s, line, k);
    return s.is_f32 ? __uint_as_float((uint32_t)code) : mpsim_number_to_f32(mpsim_scalar_unpack(&s.format, code));
}

/* The bits of |x|; a NaN is the largest, or 0. */
static __device__ __forceinline__ unsigned gpu_magnitude(float x, int keeps_nan)
{
    const unsigned a = __float_as_uint(x) & 0x7fffffffu;
    return a > 0x7f800000u && !keeps_nan ? 0 : a;
}

/* *to becomes the larger of itself and the largest magnitude of a warp; to may be NULL. */
static __device__ __forceinline__ void gpu_give_most(int *to, unsigned most)
{
    most = to ? __reduce_max_sync(0xffffffffu, most) : 0;
    if (to && threadIdx.x % 32 == 0)
        atomicMax(to, (int)most);
}

/* ---- reading, rounding ---- */

struct gpu_reading {
    gpu_stack from;
    mpsim_format to;
    mpsim_rounding rounding;
    int rounds; /* 0: they are numbers of `to`        */
    int bytes;  /* of a code of `to`                  */
    void *codes;
    float *values;    /* or the values */
    gpu_word *counts; /* of the rounding, or NULL */
    int *most;        /* becomes the larger of itself and the largest magnitude, without NaNs; or NULL */
};

static __device__ __forceinline__ void gpu_store_wide(void *to, int bytes, size_t i, uint64_t code)
{
    switch (bytes) {
    case 1:
        static_cast<uint8_t *>(to)[i] = (uint8_t)code;
        break;
    case 2:
        static_cast<uint16_t *>(to)[i] = (uint16_t)code;
        break;
    case 4:
        static_cast<uint32_t *>(to)[i] = (uint32_t)code;
        break;
    default:
        static_cast<uint64_t *>(to)[i] = code;
    }
}

GPU_KERNEL void __launch_bounds__(256) read_kernel(GPU_CONSTANT(gpu_reading) r, size_t n)
{
    gpu_counter c;
    unsigned most = 0;
    GPU_FOR(i, n)
    {
        unsigned flags = 0;
        uint64_t code = gpu_stack_code(r.from, i / r.from.cols, i % r.from.cols);
        const mpsim_number x = mpsim_scalar_unpack(&r.from.format, code);
        if (r.rounds)
            code = mpsim_scalar_encode(&r.to, &r.rounding, r.rounding.mode, x, 0, &flags);
        if (r.values || r.most) {
            const float v = mpsim_number_to_f32(mpsim_scalar_unpack(&r.to, code));
            const unsigned a = gpu_magnitude(v, 0);
            most = a > most ? a : most;
            if (r.values)
                r.values[i] = v;
        }
        if (r.codes)
            gpu_store_wide(r.codes, r.bytes, i, code);
        c.nonzero += x.kind == MPSIM_NUMBER_FINITE && x.hi != 0;
        c.lost += (flags & MPSIM_FLAG_UNDERFLOW) != 0;
        c.overflow += (flags & MPSIM_FLAG_OVERFLOW) != 0;
        c.nonfinite += mpsim_scalar_classify(&r.to, code) < MPSIM_CLASS_ZERO;
    }
    c.give(r.counts);
    gpu_give_most(r.most, most);
}

/* n values that are numbers of a format, as codes; the largest magnitude, without NaNs. */
GPU_KERNEL void __launch_bounds__(256)
    write_kernel(GPU_CONSTANT(gpu_reading) r, const float *values, int *amax, size_t n)
{
    unsigned most = 0;
    GPU_FOR(i, n)
    {
        unsigned flags;
        const unsigned a = gpu_magnitude(values[i], 0);
        most = a > most ? a : most;
        gpu_store_wide(
            r.codes, r.bytes, i,
            mpsim_scalar_encode(&r.to, &r.rounding, r.rounding.mode, mpsim_number_f32(values[i]), 0, &flags));
    }
    gpu_give_most(amax, most);
}

/* ---- the transform: mpsim_hadamard_groups ---- */

struct gpu_hadamard {
    float *values;
    size_t lines, cols;
    unsigned size;     /* of a group: 16, 32, 64, 128             */
    uint32_t signs[4]; /* bit i: element i of a group is negated */
    float norm;
    mpsim_format to; /* rounded to it afterwards */
    mpsim_rounding rounding;
    int rounds;
};

/* The butterflies of the lanes at distance `half`. */
static __device__ __forceinline__ float gpu_butterfly(float v, unsigned half)
{
    const float other = __shfl_xor_sync(0xffffffffu, v, (int)half);
    return threadIdx.x & half ? __fsub_rn(other, v) : __fadd_rn(v, other);
}

/* A warp has a group, or two of 16: lane l has the elements l, l + 32, ... */
GPU_KERNEL void __launch_bounds__(256) hadamard_groups_kernel(GPU_CONSTANT(gpu_hadamard) h, size_t groups)
{
    const unsigned lane = threadIdx.x % 32, each = h.size / 32, wide = h.size < 32 ? 2 : 1;
    const size_t in_line = h.cols / h.size, warps = (size_t)gridDim.x * blockDim.x / 32;
    for (size_t w = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; w * wide < groups; w += warps) {
        const size_t g = wide == 2 ? 2 * w + lane / 16 : w, at = g / in_line * h.cols + g % in_line * h.size;
        const unsigned first = wide == 2 ? lane % 16 : lane;
        const int inside = g < groups;
        float v[4];
        GPU_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            const unsigned i = first + 32 * k;
            v[k] = inside && i < h.size ? h.values[at + i] : 0;
            v[k] = h.signs[k] >> first & 1 ? -v[k] : v[k];
            for (unsigned half = 1; half < 32 && half < h.size; half *= 2)
                v[k] = gpu_butterfly(v[k], half);
        }
        GPU_UNROLL
        for (unsigned half = 1; half < 4; half *= 2)
            GPU_UNROLL
        for (unsigned k = 0; k < 4; k++)
            if (half < each && !(k & half)) {
                const float a = v[k], b = v[k + half];
                v[k] = __fadd_rn(a, b);
                v[k + half] = __fsub_rn(a, b);
            }
        GPU_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            const unsigned i = first + 32 * k;
            unsigned flags;
            float y = __fmul_rn(v[k], h.norm);
            if (h.rounds)
                y = mpsim_number_to_f32(mpsim_scalar_unpack(
                    &h.to, mpsim_scalar_encode(&h.to, &h.rounding, h.rounding.mode, mpsim_number_f32(y), 0, &flags)));
            if (inside && i < h.size)
                h.values[at + i] = y;
        }
    }
}
