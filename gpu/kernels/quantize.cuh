/* quantize.cuh -- block recipes on a device: per tensor, and per blocks of 16 columns or a multiple of
 * 32. The scales are those of lib/block/scale.c (TransformerEngine's rules, torchao's of powers of two),
 * the elements saturate. */
#pragma once

#include "elements.cuh"
#include "list.cuh"

#include <float.h>

enum gpu_scale_rule {
    GPU_SCALE_NONE, /* amax only                                     */
    GPU_SCALE_ONE,  /* one factor for the tensor                     */
    GPU_SCALE_E8M0, /* MPSIM_SCALE_E8M0_TE of a block's amax         */
    GPU_SCALE_FLOOR,
    GPU_SCALE_EVEN,
    GPU_SCALE_CEIL,
    GPU_SCALE_RCEIL,    /* MPSIM_SCALE_E8M0_...  */
    GPU_SCALE_DEEPGEMM, /* MPSIM_SCALE_E8M0_DEEPGEMM                 */
    GPU_SCALE_DEEPSEEK, /* MPSIM_SCALE_AMAX_DEEPSEEK: elements are divided by the inverse        */
    GPU_SCALE_AMAX,     /* MPSIM_SCALE_AMAX_TE of a block's amax         */
    GPU_SCALE_NVFP4     /* MPSIM_SCALE_NVFP4_TE, of that and the tensor's */
};

enum { GPU_TILE = 32, GPU_TILE_ROWS = 8 };

/* How tensors are quantised; those of a launch alike. */
struct gpu_quantize {
    gpu_format from, element, to; /* to: the element's format, or bf16 with the scale multiplied in */
    int codes;                    /* 1: y holds codes, else their values                           */
    int rule;                     /* gpu_scale_rule                                                */
    int span;                     /* lanes with one block: 16, 32                                  */
    int in_warp;                  /* 1: blocks of 1 x span, whose amax a warp finds itself         */
    int keeps_nan;                /* 1: a NaN is the largest magnitude of its block                */
    float max, epsilon, for_inf;
    int power_of_two;
    gpu_format scale; /* NVFP4: of the block's scale                                 */
    int stochastic;   /* NVFP4's own rule, with 8 bits                               */
};

/* One of them. */
struct gpu_quantized {
    void *y;
    const void *x;
    size_t rows, cols;                        /* of y                                                       */
    size_t block_rows, block_cols, grid_cols; /* extents of a block; blocks in a row */
    float factor;                             /* GPU_SCALE_ONE                                           */
    float encode, decode;                     /* NVFP4: the tensor's, the former times 1 / 6             */
    float whole;                              /* NVFP4: the tensor's amax                                */
    int transposed;
    mpsim_rng rng;
    float *factors;       /* of every block: what codes are multiplied by, or NULL   */
    unsigned *block_amax; /* bits, of every block, or NULL                           */
    unsigned *amax;       /* bits, of the tensor, or NULL                            */
    gpu_word *counts;
};

typedef gpu_list<gpu_quantized, 20> gpu_quantized_list;
static_assert(sizeof(gpu_quantized_list) + sizeof(gpu_quantize) <= GPU_LIST_PARAMETERS, "too many");

struct gpu_factor {
    float factor, inverse;
};

/* 2^e for -149 <= e <= 127. */
static __device__ __forceinline__ float gpu_power_of_two(int e)
{
    return __uint_as_float(e < -126 ? 1u << (e + 149) : (unsigned)(e + 127) << 23);
}

static __device__ __forceinline__ gpu_factor gpu_factor_code(int code)
{
    gpu_factor s;
    s.factor = code == 255 ? __uint_as_float(0x7fc00000u) : gpu_power_of_two(127 - code);
    s.inverse = code == 255 ? __uint_as_float(0x7fc00000u) : gpu_power_of_two(code - 127);
    return s;
}

/* amax times 1 / max, rounded up to a power of two; infinity has code 254. 2^-127 is one. */
static __device__ __forceinline__ gpu_factor gpu_factor_e8m0(float amax, float max)
{
    const float v = __fmul_rn(amax, __fdiv_rn(1, max));
    const uint32_t u = __float_as_uint(v), e = u >> 23, m = u & 0x7fffffu;
    const int up = e == 0 ? m > 0x400000u : m != 0;
    return gpu_factor_code(v > 0x1p127f ? 254 : (int)e + up);
}

/* torchao's rules: the exponent of amax itself, which may be NaN. */
static __device__ __forceinline__ gpu_factor gpu_factor_ao(const gpu_quantize &q, uint32_t amax)
{
    const int mbits = q.element.mbits;
    const int emax = (int)(q.element.max >> mbits) - (int)q.element.math.format.bias;
    uint32_t u = amax;
    if (amax >= 0x7f800000u)
        return gpu_factor_code(255);
    if (q.rule == GPU_SCALE_RCEIL) {
        u = __float_as_uint(__fmul_rn(__uint_as_float(amax), __fdiv_rn(1, q.max)));
        const uint32_t e = u >> 23, m = u & 0x7fffffu;
        return gpu_factor_code((int)e + (e == 0 ? m > 0x400000u : m != 0));
    }
    if (q.rule == GPU_SCALE_EVEN)
        u = (u + (1u << (22 - mbits))) & 0xff800000u;
    if (u >= 0x7f800000u)
        return gpu_factor_code(255);
    const int e = (int)(u >> 23) - 127 + (q.rule == GPU_SCALE_CEIL && (u & 0x7fffffu)) - emax;
    return gpu_factor_code((e < -127 ? -127 : e) + 127);
}

/* amax / max, or (DEEPGEMM) that rounded up to a power of two from 2^-126 on. */
static __device__ __forceinline__ gpu_factor gpu_factor_quotient(const gpu_quantize &q, uint32_t amax)
{
    const float a = __uint_as_float(amax), v = __fdiv_rn(a < q.epsilon ? q.epsilon : a, q.max);
    const uint32_t u = __float_as_uint(v);
    gpu_factor s;
    if (q.rule == GPU_SCALE_DEEPGEMM) {
        const int code = (int)(u >> 23) + ((u & 0x7fffffu) != 0);
        return gpu_factor_code(!gpu_is_finite(v) ? 255 : code < 1 ? 1 : code);
    }
    s.inverse = v == 0 ? 1 : v;
    s.factor = __fdiv_rn(1, s.inverse);
    return s;
}

/* The block's scale in E4M3 under the tensor's. */
static __device__ __forceinline__ gpu_factor gpu_factor_nvfp4(const gpu_quantize &q, const gpu_quantized &p, float amax)
{
    gpu_factor s;
    const float v = __fmul_rn(amax, p.encode);
    const float block = gpu_decode(q.scale, gpu_encode(q.scale, GPU_SATURATE, v).code);
    const float f = __fdiv_rn(1, __fmul_rn(block, p.decode));
    s.inverse = __fmul_rn(__fmul_rn(block, p.whole), 1 / (448 * 6.0f));
    s.factor = f > FLT_MAX ? FLT_MAX : f;
    return s;
}

/* mpsim_fp8_scale */
static __device__ __forceinline__ gpu_factor gpu_factor_amax(const gpu_quantize &q, float amax)
{
    gpu_factor s;
    if (amax < q.epsilon)
        amax = q.epsilon;
    s.factor = 1;
    if (gpu_is_finite(amax) && amax != 0) {
        s.factor = __fdiv_rn(q.max, amax);
        if (!gpu_is_finite(s.factor))
            s.factor = q.for_inf;
        if (q.power_of_two)
            s.factor = __uint_as_float(__float_as_uint(s.factor) & 0xff800000u);
    }
    s.inverse = __fdiv_rn(1, s.factor);
    return s;
}

static __device__ __forceinline__ gpu_factor gpu_factor_of(const gpu_quantize &q, const gpu_quantized &p, unsigned amax)
{
    if (q.rule == GPU_SCALE_E8M0)
        return gpu_factor_e8m0(__uint_as_float(amax), q.max);
    if (q.rule == GPU_SCALE_AMAX)
        return gpu_factor_amax(q, __uint_as_float(amax));
    if (q.rule == GPU_SCALE_NVFP4)
        return gpu_factor_nvfp4(q, p, __uint_as_float(amax));
    if (q.rule == GPU_SCALE_DEEPSEEK || q.rule == GPU_SCALE_DEEPGEMM)
        return gpu_factor_quotient(q, amax);
    if (q.rule != GPU_SCALE_ONE)
        return gpu_factor_ao(q, amax);
    gpu_factor s;
    s.factor = p.factor;
    s.inverse = __fdiv_rn(1, p.factor);
    return s;
}

/* ---- E2M1, which has no NaN: it is +6 ---- */

static __device__ __forceinline__ float gpu_fp4_step(float a)
{
    return a < 2 ? 0.5f : a < 4 ? 1.0f : 2.0f;
}

/* By the word, 8 bits of it, as NVFP4 is rounded stochastically. */
static __device__ __forceinline__ gpu_code gpu_fp4_stochastic(float x, uint32_t word)
{
    gpu_code y;
    const float a = fabsf(x);
    const float t = __fmaf_rn(__fmul_rn((float)(word >> 24), 0x1p-8f), gpu_fp4_step(a), a);
    const float u = gpu_fp4_step(t), v = __fmul_rn(floorf(__fdiv_rn(t, u)), u);
    y.overflow = v > 6 && gpu_is_finite(x);
    y.code = (v >= 0.5f) + (v >= 1) + (v >= 1.5f) + (v >= 2) + (v >= 3) + (v >= 4) + (v >= 6);
    return y;
}

static __device__ __forceinline__ gpu_code gpu_fp4_nearest(float x)
{
    gpu_code y;
    const float a = fabsf(x);
    y.overflow = a >= 7 && gpu_is_finite(x);
    y.code = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5);
    return y;
}

static __device__ __forceinline__ float gpu_fp4_value(uint32_t code)
{
    const uint32_t m = code & 7;
    const float v = m < 5 ? 0.5f * (float)m : (float)(m == 7 ? 6 : m - 2);
    return code & 8 ? -v : v;
}

static __device__ __forceinline__ gpu_code gpu_fp4_encode(const gpu_quantize &q, const gpu_quantized &p, size_t at,
                                                          float x)
{
    gpu_code y;
    y.code = 7;
    y.overflow = 0;
    if (x != x)
        return y;
    if (q.stochastic) {
        uint32_t words[4];
        const uint64_t index = p.rng.index + at;
        mpsim_rng_block(words, p.rng.seed, p.rng.stream, index / 4);
        y = gpu_fp4_stochastic(x, words[index % 4]);
    } else {
        y = gpu_fp4_nearest(x);
    }
    y.code |= __float_as_uint(x) >> 31 ? 8u : 0;
    return y;
}

/* ---- elements ---- */

/* An element: x times the factor, cast, and scaled back where blocks have their own scales. Counts
 * as mpsim_blocks.casts does. */
static __device__ __forceinline__ void gpu_quantize_one(const gpu_quantize &q, const gpu_quantized &p, size_t at,
                                                        float x, gpu_factor s, gpu_counter *c)
{
    const float scaled = q.rule == GPU_SCALE_DEEPSEEK ? __fdiv_rn(x, s.inverse) : __fmul_rn(x, s.factor);
    const int fp4 = q.rule == GPU_SCALE_NVFP4;
    gpu_code code = fp4 ? gpu_fp4_encode(q, p, at, scaled) : gpu_encode(q.element, GPU_SATURATE, scaled);
    const int lost = fp4 ? (code.code & 7) == 0 : gpu_is_zero_code(q.element, code.code);
    int overflow = code.overflow + !gpu_is_finite(scaled);
    const float element = fp4 ? gpu_fp4_value(code.code) : gpu_decode(q.element, code.code);
    const float value = __fmul_rn(element, s.inverse);
    overflow += gpu_is_finite(element) && !gpu_is_finite(value);
    if (!q.codes)
        code = gpu_encode(q.to, GPU_NEAREST, value);
    gpu_store(q.to, p.y, at, code.code);
    if (gpu_is_finite(x)) {
        c->nonzero += x != 0;
        c->lost += x != 0 && lost;
        c->overflow += overflow != 0;
    }
    c->nonfinite += gpu_is_nonfinite_code(q.to, code.code);
}

/* A block of 32 x 8 threads has a tile of 32 x 32 elements of one y; a warp has the rows r, r + 8, ...
 * of it. */
GPU_KERNEL void __launch_bounds__(GPU_TILE *GPU_TILE_ROWS)
    quantize_kernel(GPU_CONSTANT(gpu_quantize) q, GPU_CONSTANT(gpu_quantized_list) list)
{
    GPU_SHARED(float, tile, [GPU_TILE][GPU_TILE + 1]);
    gpu_counter counter;
    const unsigned item = gpu_list_item(list), at_tile = gpu_list_block(list, item);
    const gpu_quantized &p = list.item[item];
    const unsigned c = threadIdx.x, r = threadIdx.y;
    const size_t tiles = (p.cols + GPU_TILE - 1) / GPU_TILE;
    const size_t top = at_tile / tiles * GPU_TILE, left = at_tile % tiles * GPU_TILE;
    for (unsigned k = r; k < GPU_TILE; k += GPU_TILE_ROWS) {
        const size_t row = p.transposed ? left + k : top + k, col = p.transposed ? top + c : left + c;
        const size_t rows = p.transposed ? p.cols : p.rows, cols = p.transposed ? p.rows : p.cols;
        tile[k][c] = row < rows && col < cols ? gpu_value(q.from, p.x, row * cols + col) : 0;
    }
    __syncthreads();
    unsigned most = 0;
    for (unsigned k = r; k < GPU_TILE; k += GPU_TILE_ROWS) {
        const size_t row = top + k, col = left + c, at = row * p.cols + col;
        const size_t block = row / p.block_rows * p.grid_cols + col / p.block_cols;
        const float v = p.transposed ? tile[c][k] : tile[k][c];
        const int inside = row < p.rows && col < p.cols;
        const unsigned bits = __float_as_uint(v) & 0x7fffffffu;
        const unsigned number = bits > 0x7f800000u ? 0 : bits; /* NaN is dropped */
        unsigned amax = q.keeps_nan ? bits : number;
        most = number > most ? number : most;
        if (q.in_warp || p.block_amax) {
            for (int h = q.span / 2; h > 0; h /= 2) {
                const unsigned other = __shfl_xor_sync(0xffffffffu, amax, h);
                amax = other > amax ? other : amax;
            }
        }
        if (q.rule == GPU_SCALE_NONE) {
            if (p.block_amax && c % (unsigned)q.span == 0 && inside)
                atomicMax(p.block_amax + block, amax);
        } else if (inside) {
            const int own = q.in_warp || q.rule == GPU_SCALE_ONE;
            const gpu_factor s = gpu_factor_of(q, p, own ? amax : p.block_amax[block]);
            gpu_quantize_one(q, p, at, v, s, &counter);
            if (p.factors && row % p.block_rows == 0 && col % p.block_cols == 0)
                p.factors[block] = s.inverse;
        }
    }
    if (p.amax) {
        for (int h = 16; h > 0; h /= 2) {
            const unsigned other = __shfl_xor_sync(0xffffffffu, most, h);
            most = other > most ? other : most;
        }
        if (c == 0)
            atomicMax(p.amax, most);
    }
    if (q.rule != GPU_SCALE_NONE)
        counter.give(p.counts);
}

/* ---- the transform ---- */

/* A thread has 16 numbers of a row of y, or fewer at its end, which stay as they are. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    hadamard_kernel(GPU_CONSTANT(gpu_format) f, void *y, const void *x, size_t rows, size_t cols, int transposed)
{
    const uint32_t negative = 0xd7e8; /* bit i: element i of a group */
    const size_t groups = (cols + 15) / 16;
    GPU_FOR(i, rows * groups)
    {
        const size_t row = i / groups, first = i % groups * 16;
        const int n = cols - first < 16 ? (int)(cols - first) : 16;
        float v[16] = {};
        for (int k = 0; k < n; k++)
            v[k] = gpu_value(f, x, transposed ? (first + k) * rows + row : row * cols + first + k);
        for (int k = 0; k < 16 && n == 16; k++)
            v[k] = negative >> k & 1 ? -v[k] : v[k];
        for (int half = 1; half < 16 && n == 16; half *= 2)
            for (int k = 0; k < 16; k++)
                if (!(k & half)) {
                    const float a = v[k], b = v[k + half];
                    v[k] = __fadd_rn(a, b);
                    v[k + half] = __fsub_rn(a, b);
                }
        for (int k = 0; k < n; k++)
            gpu_store(f, y, row * cols + first + k,
                      gpu_encode(f, GPU_NEAREST, n == 16 ? __fmul_rn(v[k], 0.25f) : v[k]).code);
    }
}
