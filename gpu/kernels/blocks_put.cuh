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
    uint32_t code;
};

/* Where the scale is what the usual operations suppose, a number; else NaN. */
static __device__ __forceinline__ float gpu_plain_factor(const mpsim_block_scale &s)
{
    return s.inverse < 0x1p111f ? s.factor : __uint_as_float(0x7fffffffu);
}

template <int ELEMENT>
static __device__ __forceinline__ gpu_scaling gpu_scaling_of(int divides, float most, float factor, float inverse)
{
    gpu_scaling s;
    s.factor = factor;
    s.inverse = inverse;
    s.over = most * factor >= __uint_as_float(gpu_grid<ELEMENT>::OVER);
    s.odd = !(most < 0x1p120f) || !(factor <= FLT_MAX) || (divides && most < 0x1p-60f) ||
            (ELEMENT == GPU_E2M1_RANDOM && s.over);
    s.code = 0;
    return s;
}

/* Of a rule of powers of two. amax plus `add` has the exponent of the scale, but for `low`; amax beyond 2^-100 to 2^100 is odd. */
template <int ELEMENT>
static __device__ __forceinline__ gpu_scaling gpu_power_scale(const gpu_power &p, float most)
{
    const uint32_t from = 27u << 23, span = 200u << 23, least = 1u << 22;
    const uint32_t u = __float_as_uint(most), a = u > p.least ? u : p.least;
    const uint32_t exponent = a ? (a + p.add) & 0x7f800000u : p.at_zero, inverse = exponent - p.low;
    gpu_scaling s;
    s.odd = a - from > span && (int)a > p.zero;
    s.factor = __uint_as_float(p.top - exponent);
    s.inverse = __uint_as_float((int)inverse > (int)least ? inverse : least);
    s.over = most * s.factor >= __uint_as_float(gpu_grid<ELEMENT>::OVER);
    s.code = p.has_codes ? inverse >> 23 : 0;
    return s;
}

/* NVFP4_TE, by the conversions of the device. */
static __device__ __forceinline__ mpsim_block_scale gpu_nvfp4_scale(const mpsim_scale_env &env, float most)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    mpsim_block_scale s;
    float value, none;
    s.code = (uint8_t)gpu_convert_pair<GPU_E4M3>(most * (env.encode * (1 / env.max)), 0);
    gpu_convert_back<GPU_E4M3>(s.code, &value, &none);
    s.factor = fminf(1 / (value * env.decode), FLT_MAX);
    s.inverse = value * env.amax * (1 / (MPSIM_RULE_E4M3 * env.max));
    return s;
#else
    return mpsim_rule_nvfp4_te(&env, most);
#endif
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

/* What is stored of a scale: bit 0: its code, 1: more. */
static __device__ __forceinline__ unsigned gpu_scale_stores(const gpu_results &to)
{
    return (to.scale_codes != NULL) + 2 * (to.scales || to.inverses || to.amax || to.factors);
}

static __device__ __forceinline__ void gpu_put_scale(const gpu_recipe &q, const gpu_results &to, unsigned stores,
                                                     size_t block, float amax, const gpu_scaling &s)
{
    const mpsim_block_scale scale = {s.factor, s.inverse, (uint8_t)s.code};
    if (stores & 2)
        gpu_store_scale(q, to, block, __float_as_uint(amax), scale);
    else if (stores)
        to.scale_codes[block] = scale.code;
}

/* A group by the reference; what it counts. */
template <int IN>
static __device__ GPU_NOINLINE gpu_counter gpu_group_reference(const gpu_recipe &q, const gpu_blocked &b, size_t i,
                                                               float factor, float inverse)
{
    enum { E = gpu_group<IN>::E };
    gpu_counter c;
    for (int k = 0; k < E; k++) {
        gpu_recipe_element(q, b.to, b.rng, i + (size_t)k, gpu_number_at<IN>(b.x, i + (size_t)k), factor, inverse, &c);
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

/* Products of two bf16 numbers with two, each to nearest. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
enum { GPU_HAS_PAIRS = 0 };
#else
enum { GPU_HAS_PAIRS = 1 };
#endif

static __device__ __forceinline__ uint32_t gpu_times_pair(uint32_t a, uint32_t b)
{
#if !defined(__CUDA_ARCH__)
    const float low = __uint_as_float(a << 16) * __uint_as_float(b << 16);
    return gpu_bf16_code(low) | gpu_bf16_code(__uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u))
                                    << 16;
#elif __CUDA_ARCH__ >= 900
    uint32_t pair;
    asm("mul.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
#else
    return 0;
#endif
}

/* Four of a group's numbers times the factor; MAGNITUDES: without signs. POWER: it is a power of two, by which bf16 is multiplied in pairs: what is too small
 * for bf16 is zero in any element. */
template <int IN, int POWER, int MAGNITUDES>
static __device__ __forceinline__ void gpu_scale_four(const gpu_group<IN> &g, int h, const gpu_scaling &s, int divides,
                                                      float y[4])
{
    if (POWER && IN == GPU_INPUT_BF16 && GPU_HAS_PAIRS) {
        GPU_UNROLL
        for (int k = 0; k < 2; k++) {
            const uint32_t pair = gpu_times_pair(g.u[(2 * h + k) & 3],
                                                 __byte_perm(__float_as_uint(s.factor), 0, 0x3232));
            y[2 * k] = __uint_as_float((MAGNITUDES ? pair & 0x7fffu : pair) << 16);
            y[2 * k + 1] = __uint_as_float(pair & (MAGNITUDES ? 0x7fff0000u : 0xffff0000u));
        }
        return;
    }
    GPU_UNROLL
    for (int k = 0; k < 4; k++) {
        const float x = gpu_group_value<IN>(g, 4 * h + k);
        y[k] = divides ? gpu_divided(x, s.factor, s.inverse) : __fmul_rn(MAGNITUDES ? fabsf(x) : x, s.factor);
    }
}

template <int IN>
static __device__ __forceinline__ unsigned gpu_zeros_of(const gpu_group<IN> &g)
{
    unsigned n = 0;
    GPU_UNROLL
    for (int k = 0; k < gpu_group<IN>::E; k++)
        n += gpu_group_value<IN>(g, k) == 0;
    return n;
}

/* Counts of a group's codes. Numbers are seldom zero, nor are codes of FP8. */
template <int IN, int ELEMENT, int POWER>
static __device__ __forceinline__ void gpu_count_group(const gpu_group<IN> &g, const uint32_t *codes,
                                                       const gpu_scaling &s, int divides, int is, gpu_counter *c)
{
    enum { E = gpu_group<IN>::E, IS_FP8 = gpu_grid<ELEMENT>::SIGN == 0x80, IS_RANDOM = ELEMENT == GPU_E2M1_RANDOM };
    const uint32_t none = 0x80808080u, first = gpu_not_zero<ELEMENT>(codes[0]),
                   second = E == 8 ? gpu_not_zero<ELEMENT>(codes[E / 4 - 1]) : none;
    c->nonzero += is ? +E : 0;
    if (!IS_FP8)
        c->lost += is ? 8 - (unsigned)__popc(first) - (unsigned)__popc(second) : 0;
    const int has_zeros = IS_FP8 ? (first & second) != none : gpu_has_zero<IN>(g);
    if (!is || !(has_zeros || (!IS_RANDOM && s.over)))
        return;
    const unsigned gone = gpu_zeros_of<IN>(g);
    c->nonzero -= gone;
    c->lost += (IS_FP8 ? 8 - (unsigned)__popc(first) - (unsigned)__popc(second) : 0) - gone;
    if (!IS_RANDOM && s.over)
        GPU_UNROLL
    for (int h = 0; h < E / 4; h++) {
        float y[4];
        gpu_scale_four<IN, POWER, 0>(g, h, s, divides, y);
        GPU_UNROLL
        for (int k = 0; k < 4; k++)
            c->overflow += fabsf(y[k]) >= __uint_as_float(gpu_grid<ELEMENT>::OVER);
    }
}

/* The random words of a group. Rounds of all blocks go together, so that the keys of a round are made once. */
template <int N>
static __device__ __forceinline__ void gpu_random_words(const mpsim_rng &rng, uint64_t first, uint32_t c[N][4])
{
    uint32_t k0 = (uint32_t)rng.seed, k1 = (uint32_t)(rng.seed >> 32);
    GPU_UNROLL
    for (int n = 0; n < N; n++) {
        c[n][0] = (uint32_t)(first + (unsigned)n);
        c[n][1] = (uint32_t)((first + (unsigned)n) >> 32);
        c[n][2] = (uint32_t)rng.stream;
        c[n][3] = (uint32_t)(rng.stream >> 32);
    }
    GPU_UNROLL
    for (int round = 0; round < MPSIM_PHILOX_ROUNDS; round++) {
        GPU_UNROLL
        for (int n = 0; n < N; n++)
            mpsim_philox_round(c[n], k0, k1);
        mpsim_philox_key(&k0, &k1);
    }
}

/* Elements i to i + E - 1 of a block with a plain scale: codes, counts; VALUES: values, too. is 0: nothing of it. */
template <int IN, int ELEMENT, int VALUES, int POWER = 0>
static __device__ __forceinline__ void gpu_group_put(const gpu_recipe &q, const gpu_blocked &b, size_t i,
                                                     const gpu_group<IN> &g, const gpu_scaling &s, int divides, int is,
                                                     gpu_counter *c)
{
    enum { E = gpu_group<IN>::E, CONVERTS = gpu_has_convert<ELEMENT>::YES, QUADS = E / 4 };
    const gpu_results &to = b.to;
    uint32_t codes[2], words[QUADS][4] = {};
    if (ELEMENT == GPU_E2M1_RANDOM)
        gpu_random_words<QUADS>(b.rng, (b.rng.index + i) / 4, words);
    GPU_UNROLL
    for (int h = 0; h < QUADS; h++) {
        float y[4];
        gpu_scale_four<IN, POWER, !CONVERTS>(g, h, s, divides, y);
        const gpu_packed p = gpu_pack<ELEMENT>(y, gpu_signs<IN>(g, h), words[h], VALUES);
        codes[h] = p.codes;
        c->overflow += is ? p.over : 0;
        if (VALUES) {
            float value[4];
            GPU_UNROLL
            for (int k = 0; k < 4; k++)
                value[k] = __fmul_rn(p.number[k], s.inverse);
            if (!POWER && q.over_factor)
                GPU_UNROLL
            for (int k = 0; k < 4; k++)
                value[k] = gpu_divided(p.number[k], s.inverse, s.factor);
            if (is)
                gpu_store_values(to, i + 4 * (unsigned)h, value);
        }
    }
    gpu_count_group<IN, ELEMENT, POWER>(g, codes, s, divides, is, c);
    if (is && to.codes && E == 4)
        *reinterpret_cast<uint32_t *>(to.codes + i) = codes[0];
    else if (is && to.codes)
        gpu_store_two(to.codes + i, codes[0], codes[1]);
}
