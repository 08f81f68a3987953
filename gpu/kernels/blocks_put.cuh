/* blocks_put.cuh -- what kernels of blocks do with a group: scale, codes, values, counters. Blocks with NaN or infinity, very large
 * or very small ones are rare: recipe.cuh has them. */
#pragma once

#include "grids.cuh"
#include "list.cuh"
#include "recipe.cuh"

/* ---- results ---- */

/* The number of an E4M3 code of a scale. */
static __device__ __forceinline__ float gpu_scale_number(uint8_t code)
{
    const uint32_t m = code & 0x7fu, sign = (code & 0x80u) << 24;
    if (m == 0x7f)
        return __uint_as_float(sign | 0x7ff00000u);
    return m >> 3 ? __uint_as_float(sign | (m + (120u << 3)) << 20) : (float)m * 0x1p-9f;
}

/* A finite number as bf16. */
static __device__ __forceinline__ uint32_t gpu_bf16_code(float x)
{
    const uint32_t u = __float_as_uint(x);
    return (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}

/* Four values, finite ones. */
static __device__ __forceinline__ void gpu_store_values(const gpu_results &to, size_t i, const float value[4])
{
    if (to.values)
        gpu_store_quad(to.values + i, value);
    if (to.halves) {
        uint32_t pair[2];
        GPU_UNROLL
        for (int k = 0; k < 2; k++)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair[k]) : "f"(value[2 * k + 1]), "f"(value[2 * k]));
#else
            pair[k] = gpu_bf16_code(value[2 * k]) | gpu_bf16_code(value[2 * k + 1]) << 16;
#endif
        gpu_store_two(to.halves + i, pair[0], pair[1]);
    }
}

/* The counters of all threads of a block: an addition to memory each. */
static __device__ __forceinline__ void gpu_give_all(const gpu_counter &c, unsigned most, gpu_word *counts, int *to)
{
    GPU_SHARED(unsigned, sums, [GPU_COUNTERS + 1]);
    const unsigned own[GPU_COUNTERS + 1] = {c.nonzero, c.lost, c.overflow, c.nonfinite, most};
    if (!counts && !to)
        return;
    if (threadIdx.x <= GPU_COUNTERS)
        sums[threadIdx.x] = 0;
    __syncthreads();
    GPU_UNROLL
    for (int k = 0; k <= GPU_COUNTERS; k++) {
        const unsigned all = k < GPU_COUNTERS ? __reduce_add_sync(0xffffffffu, own[k])
                                              : __reduce_max_sync(0xffffffffu, own[k]);
        if (threadIdx.x % 32 == 0 && k < GPU_COUNTERS)
            atomicAdd(&sums[k], all);
        else if (threadIdx.x % 32 == 0)
            atomicMax(&sums[k], all);
    }
    __syncthreads();
    if (threadIdx.x < GPU_COUNTERS && counts && sums[threadIdx.x])
        atomicAdd(counts + threadIdx.x, (gpu_word)sums[threadIdx.x]);
    if (threadIdx.x == GPU_COUNTERS && to)
        atomicMax(to, (int)sums[GPU_COUNTERS]);
}

/* ---- one tensor ---- */

struct gpu_blocked {
    const void *x;
    size_t rows, cols;
    mpsim_rng rng;
    float given;    /* where the recipe has no place of the device for it */
    gpu_results to; /* without scratch */
};

typedef gpu_list<gpu_blocked, 16> gpu_blocked_list;
static_assert(sizeof(gpu_blocked_list) + sizeof(gpu_recipe) <= GPU_LIST_PARAMETERS, "too many");

/* A block's scale, as its elements need it. */
struct gpu_scaling {
    float factor, inverse;
    int odd, over; /* elements are NaN, infinite or the like: by the reference; some may overflow */
};

/* Where the scale is what the usual operations suppose, a number; else NaN. */
static __device__ __forceinline__ float gpu_plain_factor(const mpsim_block_scale &s)
{
    return s.inverse < 0x1p111f ? s.factor : __uint_as_float(0x7fffffffu);
}

template <int ELEMENT>
static __device__ __forceinline__ gpu_scaling gpu_scaling_of(const gpu_recipe &q, float most, float factor,
                                                             float inverse)
{
    gpu_scaling s;
    s.factor = factor;
    s.inverse = inverse;
    s.odd = !(most < 0x1p120f) || !(factor <= FLT_MAX) || (q.divides && most < 0x1p-60f);
    s.over = most * factor >= __uint_as_float(gpu_grid<ELEMENT>::OVER);
    return s;
}

static __device__ __forceinline__ mpsim_scale_env gpu_env_of(const gpu_recipe &q, const gpu_blocked &b)
{
    mpsim_scale_env env = q.env;
    env.given = q.given ? *q.given : b.given;
    if (q.has_tensor)
        mpsim_rule_tensor(&env, *b.to.tensor_amax);
    return env;
}

static __device__ GPU_NOINLINE mpsim_block_scale gpu_rule_apart(mpsim_scale_env env, float amax)
{
    return mpsim_rule_block(&env, amax);
}

/* What a block's scale is stored as. */
static __device__ __forceinline__ void gpu_store_scale(const gpu_recipe &q, const gpu_results &to, size_t block,
                                                       unsigned amax, const mpsim_block_scale &s)
{
    if (to.scale_codes)
        to.scale_codes[block] = s.code;
    if (to.scales)
        to.scales[block] = s.factor;
    if (to.inverses)
        to.inverses[block] = s.inverse;
    if (to.amax)
        to.amax[block] = __uint_as_float(amax);
    if (to.factors && !to.factors_are_codes)
        to.factors[block] = s.inverse;
    else if (to.factors)
        to.factors[block] = q.has_tensor || q.env.rule == MPSIM_SCALE_NVFP4_1LEVEL ? gpu_scale_number(s.code)
                                                                                   : mpsim_rule_e8m0(s.code).inverse;
}

/* A group by the reference; what it counts. */
template <int IN>
static __device__ GPU_NOINLINE gpu_counter gpu_group_reference(const gpu_recipe &q, const gpu_blocked &b, size_t i,
                                                               float factor, float inverse)
{
    enum { E = gpu_group<IN>::E };
    gpu_counter c;
    for (int k = 0; k < E; k++) {
        const float v = IN == GPU_INPUT_F32 ? static_cast<const float *>(b.x)[i + (size_t)k]
                                            : gpu_code_value<IN>(static_cast<const uint16_t *>(b.x)[i + (size_t)k]);
        gpu_recipe_element(q, b.to, b.rng, i + (size_t)k, v, factor, inverse, &c);
    }
    return c;
}

static __device__ __forceinline__ void gpu_count(gpu_counter *to, const gpu_counter &c)
{
    to->nonzero += c.nonzero;
    to->lost += c.lost;
    to->overflow += c.overflow;
    to->nonfinite += c.nonfinite;
}

/* x / s to nearest, where neither is very small or large: x times the rounded 1 / s, corrected by what remains (Markstein).
 * The sign is that of x, also of zeros. */
static __device__ __forceinline__ float gpu_divided(float x, float factor, float s)
{
    const float y = __fmul_rn(x, factor), z = __fmaf_rn(__fmaf_rn(-y, s, x), factor, y);
    return __uint_as_float(__float_as_uint(z) | (__float_as_uint(x) & 0x80000000u));
}

/* Elements i to i + E - 1 of a block with a plain scale: codes, counts; VALUES: values, too. */
template <int IN, int ELEMENT, int VALUES>
static __device__ __forceinline__ void gpu_group_put(const gpu_recipe &q, const gpu_blocked &b, size_t i,
                                                     const gpu_group<IN> &g, const gpu_scaling &s, gpu_counter *c)
{
    enum { E = gpu_group<IN>::E };
    const gpu_results &to = b.to;
    uint32_t zeros = 0, codes[2];
    GPU_UNROLL
    for (int h = 0; h < E / 4; h++) {
        float x[4], y[4];
        uint32_t words[4] = {0, 0, 0, 0};
        GPU_UNROLL
        for (int k = 0; k < 4; k++) {
            x[k] = gpu_group_value<IN>(g, 4 * h + k);
            y[k] = __fmul_rn(x[k], s.factor);
        }
        if (q.divides)
            GPU_UNROLL
        for (int k = 0; k < 4; k++)
            y[k] = gpu_divided(x[k], s.factor, s.inverse);
        if (ELEMENT == GPU_E2M1_RANDOM)
            mpsim_rng_block(words, b.rng.seed, b.rng.stream, (b.rng.index + i) / 4 + (unsigned)h);
        const gpu_packed p = gpu_pack<ELEMENT>(y, words, VALUES);
        const uint32_t not_zero = gpu_not_zero<ELEMENT>(p.codes);
        codes[h] = p.codes;
        c->overflow += p.over;
        if (gpu_grid<ELEMENT>::SIGN == 0x80) { /* zeros are rare */
            zeros |= ~not_zero;
        } else {
            unsigned n = 0;
            GPU_UNROLL
            for (int k = 0; k < 4; k++)
                n += x[k] != 0;
            c->nonzero += n;
            c->lost += n - (unsigned)__popc(not_zero);
        }
        if (ELEMENT != GPU_E2M1_RANDOM && s.over)
            GPU_UNROLL
        for (int k = 0; k < 4; k++)
            c->overflow += fabsf(y[k]) >= __uint_as_float(gpu_grid<ELEMENT>::OVER);
        if (VALUES) {
            float value[4];
            GPU_UNROLL
            for (int k = 0; k < 4; k++)
                value[k] = __fmul_rn(p.number[k], s.inverse);
            if (q.over_factor)
                GPU_UNROLL
            for (int k = 0; k < 4; k++)
                value[k] = gpu_divided(p.number[k], s.inverse, s.factor);
            gpu_store_values(to, i + 4 * (unsigned)h, value);
        }
    }
    if (gpu_grid<ELEMENT>::SIGN == 0x80) {
        c->nonzero += E;
        if (zeros & 0x80808080u) {
            GPU_UNROLL
            for (int k = 0; k < E; k++) {
                const int gone = gpu_group_value<IN>(g, k) == 0, zero = (codes[k / 4] >> 8 * (k % 4) & 0x7f) == 0;
                c->nonzero -= gone;
                c->lost += zero && !gone;
            }
        }
    }
    if (to.codes && E == 4)
        *reinterpret_cast<uint32_t *>(to.codes + i) = codes[0];
    else if (to.codes)
        gpu_store_two(to.codes + i, codes[0], codes[1]);
}
