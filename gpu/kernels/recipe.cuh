/* recipe.cuh -- any block recipe on a device, number by number: amax, scales, codes, as mpsim_block_quantize has them. The scales
 * and the rounding are the CPU's scalar code (lib/block/scalar.h). Kernels for the usual recipes: blocks.cuh. */
#pragma once

#include "stack.cuh"

#include "../../lib/block/scalar.h"

/* A rule whose scales are powers of two, as sums of bits: gpu_power_scale. is 0: the rule is none. */
struct gpu_power {
    int is, has_codes, zero; /* zero: an amax above it is no zero that at_zero stands for */
    uint32_t least, add, top, low, at_zero;
};

struct gpu_recipe {
    mpsim_scale_env env;
    gpu_power power;
    mpsim_format element;
    mpsim_rounding rounding;
    int cast, over_factor, divides, keeps_nan, has_tensor, fp4_grid, stochastic;
    uint32_t below_half;
    mpsim_rng rng;
    const float *given; /* of the device; NULL: env.given */
    /* the matrices: rows of one; a block; blocks of a matrix, of all */
    size_t high, block_rows, block_cols, grid_rows, grid_cols, blocks;
};

/* Where results go; pointers may be NULL. */
struct gpu_results {
    uint8_t *codes;
    float *values;
    uint16_t *halves; /* the values as bf16 */
    uint8_t *scale_codes;
    float *scales, *inverses, *amax, *tensor_scale;
    gpu_word *counts;
    int *most; /* becomes the larger of itself and the largest magnitude, without NaNs */
    /* scratch: of each block */
    unsigned *block_amax;
    float *factor, *inverse;
    const float *tensor_amax; /* what the tensor's scale comes from */
    unsigned *found_amax;     /* the same, where it is found, or NULL */
    int factors_are_codes;    /* factors: the numbers of the scale codes */
    float *factors;
};

static __device__ __forceinline__ size_t gpu_block_of(const gpu_recipe &q, size_t line, size_t col)
{
    const size_t matrix = line / q.high, row = line % q.high;
    return (matrix * q.grid_rows + row / q.block_rows) * q.grid_cols + col / q.block_cols;
}

/* The amax of each block and of all. Every thread of a warp goes the same number of times. */
GPU_KERNEL void __launch_bounds__(256)
    recipe_amax_kernel(GPU_CONSTANT(gpu_stack) x, GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_results) to, size_t n)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned most = 0, number = 0;
    for (size_t from = (size_t)blockIdx.x * blockDim.x; from < n; from += step) {
        const size_t i = from + threadIdx.x;
        const size_t line = i / x.cols, col = i % x.cols, block = i < n ? gpu_block_of(q, line, col) : 0;
        const float v = i < n ? gpu_stack_value(x, line, col) : 0;
        const unsigned a = gpu_magnitude(v, q.keeps_nan), b = gpu_magnitude(v, 0);
        most = a > most ? a : most;
        number = b > number ? b : number;
        if (!to.block_amax)
            continue;
        const size_t first = __shfl_sync(0xffffffffu, block, 0);
        if (__all_sync(0xffffffffu, block == first || i >= n)) {
            const unsigned all = __reduce_max_sync(0xffffffffu, a);
            if (threadIdx.x % 32 == 0 && i < n)
                atomicMax(to.block_amax + first, all);
        } else if (i < n) {
            atomicMax(to.block_amax + block, a);
        }
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (threadIdx.x % 32 == 0 && to.found_amax)
        atomicMax(to.found_amax, most);
    gpu_give_most(to.most, number);
}

static __device__ GPU_NOINLINE mpsim_block_scale gpu_recipe_scale(const gpu_recipe &q, const float *tensor_amax,
                                                                  float amax, float *decode)
{
    mpsim_scale_env env = q.env;
    if (q.given)
        env.given = *q.given;
    if (q.has_tensor)
        mpsim_rule_tensor(&env, *tensor_amax);
    *decode = env.decode;
    return mpsim_rule_block(&env, amax);
}

/* A thread has a block. */
GPU_KERNEL void __launch_bounds__(256)
    recipe_scale_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_results) to, GPU_CONSTANT(mpsim_format) scale)
{
    float decode;
    GPU_FOR(k, q.blocks ? q.blocks : 1)
    {
        const float amax = q.blocks && to.block_amax ? __uint_as_float(to.block_amax[k]) : 0;
        const mpsim_block_scale s = gpu_recipe_scale(q, to.tensor_amax, amax, &decode);
        if (k == 0 && to.tensor_scale)
            *to.tensor_scale = decode;
        if (!q.blocks)
            break;
        to.factor[k] = s.factor;
        to.inverse[k] = s.inverse;
        if (to.scale_codes)
            to.scale_codes[k] = s.code;
        if (to.scales)
            to.scales[k] = s.factor;
        if (to.inverses)
            to.inverses[k] = s.inverse;
        if (to.amax)
            to.amax[k] = amax;
        if (to.factors)
            to.factors[k] = to.factors_are_codes ? mpsim_number_to_f32(mpsim_scalar_unpack(&scale, s.code)) : s.inverse;
    }
}

static __device__ __forceinline__ uint32_t gpu_random_word(const mpsim_rng &rng, size_t i)
{
    uint32_t words[4];
    const uint64_t index = rng.index + i;
    mpsim_rng_block(words, rng.seed, rng.stream, index / 4);
    const uint32_t a = index & 1 ? words[1] : words[0], b = index & 1 ? words[3] : words[2];
    return index & 2 ? b : a;
}

/* The code of a scaled element. */
static __device__ __forceinline__ uint8_t gpu_recipe_code(const gpu_recipe &q, const mpsim_rng &rng, float y, size_t i,
                                                          unsigned *flags)
{
    const uint32_t word = q.stochastic ? gpu_random_word(rng, i) : 0;
    *flags = 0;
    if (q.fp4_grid)
        return y != y ? 7 : mpsim_rule_fp4_random(y, word, flags);
    const uint32_t bits = __float_as_uint(y), away = q.rounding.mode == MPSIM_ROUND_NEAREST_AWAY;
    if (q.cast == MPSIM_CAST_TORCH && q.element.nan == MPSIM_NAN_NONE && y != y)
        return mpsim_rule_torch_nan(&q.element, y);
    uint8_t code = (uint8_t)mpsim_scalar_encode(&q.element, &q.rounding, q.rounding.mode, mpsim_number_f32(y), word,
                                                flags);
    if (q.cast == MPSIM_CAST_MICROX && bits == 0x80000000u)
        code = 0;
    else if (q.cast == MPSIM_CAST_MICROX && away && (bits & 0x7fffffffu) == q.below_half)
        code |= 1;
    return code;
}

/* Element i, which is v, under a block's scale: code, value, counts. */
static __device__ __forceinline__ void gpu_recipe_element(const gpu_recipe &q, const gpu_results &to,
                                                          const mpsim_rng &rng, size_t i, float v, float factor,
                                                          float inverse, gpu_counter *c)
{
    const float y = mpsim_rule_settle(q.divides ? __fdiv_rn(v, inverse) : __fmul_rn(v, factor), factor, v);
    unsigned flags;
    const uint8_t code = gpu_recipe_code(q, rng, y, i, &flags);
    const float number = mpsim_number_to_f32(mpsim_scalar_unpack(&q.element, code));
    const float value = q.over_factor ? __fdiv_rn(number, factor) : __fmul_rn(number, inverse);
    float after = to.values ? value : number;
    if (to.codes)
        to.codes[i] = code;
    if (to.values)
        to.values[i] = value;
    if (to.halves) {
        const uint32_t u = __float_as_uint(value);
        const uint32_t half = value != value ? u >> 31 << 15 | 0x7fc0u : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
        to.halves[i] = (uint16_t)half;
        after = __uint_as_float(half << 16);
    }
    if (gpu_is_finite(v)) {
        c->nonzero += v != 0;
        c->lost += v != 0 && number == 0;
        c->overflow += (flags & MPSIM_FLAG_OVERFLOW) || !gpu_is_finite(y) ||
                       (gpu_is_finite(number) && !gpu_is_finite(value));
    }
    c->nonfinite += !gpu_is_finite(after);
}

GPU_KERNEL void __launch_bounds__(256)
    recipe_code_kernel(GPU_CONSTANT(gpu_stack) x, GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_results) to, size_t n)
{
    gpu_counter c;
    GPU_FOR(i, n)
    {
        const size_t line = i / x.cols, col = i % x.cols, block = gpu_block_of(q, line, col);
        gpu_recipe_element(q, to, q.rng, i, gpu_stack_value(x, line, col), to.factor[block], to.inverse[block], &c);
    }
    c.give(to.counts);
}
