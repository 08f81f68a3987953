/* blocks.cuh -- the usual block recipes on a device, near the speed of memory: inputs of binary32, bf16 and fp16, elements of 4 to 8
 * bits rounded to nearest, and NVFP4's random rounding. recipe.cuh has all others, and what is rare here: blocks with NaN or
 * infinity, very large or very small ones.
 *
 * A lane has groups of 16 bytes: 4 or 8 numbers of one block; its loads are under way together. Lanes that share blocks find the
 * amax by shuffles; then each makes the scale of one of them. Codes are packed four to a word. Counters stay in registers, with an
 * addition to memory for each block of threads and counter. Where the scale comes from the whole tensor, a kernel before finds its
 * amax, which stays on the device. */
#pragma once

#include "list.cuh"
#include "recipe.cuh"

enum { GPU_BLOCKS_THREADS = 256, GPU_BLOCKS_WARPS = GPU_BLOCKS_THREADS / 32 };

/* ---- inputs ---- */

enum gpu_input { GPU_INPUT_F32, GPU_INPUT_BF16, GPU_INPUT_F16, GPU_INPUTS };

template <int IN>
struct gpu_group {
    enum { E = IN == GPU_INPUT_F32 ? 4 : 8 }; /* numbers of 16 bytes */
    uint32_t u[4];

    __device__ __forceinline__ void load(const void *x, size_t i)
    {
#if defined(__CUDACC__)
        const uint4 v = static_cast<const uint4 *>(x)[i / E];
        u[0] = v.x;
        u[1] = v.y;
        u[2] = v.z;
        u[3] = v.w;
#else
        memcpy(u, static_cast<const unsigned char *>(x) + i * (16 / E), sizeof u);
#endif
    }
    __device__ __forceinline__ void clear()
    {
        u[0] = u[1] = u[2] = u[3] = 0;
    }
};

static __device__ __forceinline__ float gpu_half_value(uint32_t code)
{
#if defined(__CUDA_ARCH__)
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"((unsigned short)code));
    return v;
#else
    const uint32_t m = code & 0x7fffu, sign = (code & 0x8000u) << 16;
    if (m >= 0x7c00u)
        return __uint_as_float(sign | (m == 0x7c00u ? 0x7f800000u : 0x7fc00000u | m << 13));
    return __uint_as_float(sign | (m >> 10 ? (m << 13) + 0x38000000u : __float_as_uint((float)m * 0x1p-24f)));
#endif
}

/* The number of a code of 16 bits. */
template <int IN>
static __device__ __forceinline__ float gpu_code_value(uint32_t code)
{
    return IN == GPU_INPUT_BF16 ? __uint_as_float(code << 16) : gpu_half_value(code);
}

/* Number k of a group. */
template <int IN>
static __device__ __forceinline__ float gpu_group_value(const gpu_group<IN> &g, int k)
{
    if (IN == GPU_INPUT_F32)
        return __uint_as_float(g.u[k & 3]);
    const uint32_t w = g.u[k / 2 & 3];
    if (IN == GPU_INPUT_BF16)
        return __uint_as_float(k & 1 ? w & 0xffff0000u : w << 16);
    return gpu_half_value(k & 1 ? w >> 16 : w & 0xffffu);
}

/* The larger magnitude; NaN if one is. */
static __device__ __forceinline__ float gpu_larger_or_nan(float a, float b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(fabsf(b)));
    return y;
#else
    const uint32_t u = __float_as_uint(a), v = __float_as_uint(b) & 0x7fffffffu;
    return __uint_as_float(u > v ? u : v);
#endif
}

/* The larger of both halves, each. */
static __device__ __forceinline__ uint32_t gpu_larger_halves(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__)
    return __vmaxu2(a, b);
#else
    const uint32_t low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff,
                   high = a >> 16 > b >> 16 ? a >> 16 : b >> 16;
    return high << 16 | low;
#endif
}

/* The largest magnitude of a group; NaN if there is one. */
template <int IN>
static __device__ __forceinline__ float gpu_group_most(const gpu_group<IN> &g)
{
    if (IN == GPU_INPUT_F32) {
        float m = fabsf(__uint_as_float(g.u[0]));
        GPU_UNROLL
        for (int k = 1; k < 4; k++)
            m = gpu_larger_or_nan(m, __uint_as_float(g.u[k]));
        return m;
    }
    const uint32_t mask = 0x7fff7fffu;
    const uint32_t both = gpu_larger_halves(gpu_larger_halves(g.u[0] & mask, g.u[1] & mask),
                                            gpu_larger_halves(g.u[2] & mask, g.u[3] & mask));
    const uint32_t one = both >> 16 > (both & 0xffffu) ? both >> 16 : both & 0xffffu;
    return IN == GPU_INPUT_BF16 ? __uint_as_float(one << 16) : gpu_half_value(one);
}

/* The bits of a group's largest magnitude, as a rule sees NaNs. */
template <int IN>
static __device__ GPU_NOINLINE unsigned gpu_group_bits(const void *x, size_t i, int keeps_nan)
{
    gpu_group<IN> g;
    unsigned most = 0;
    g.load(x, i);
    GPU_UNROLL
    for (int k = 0; k < gpu_group<IN>::E; k++) {
        const float v = gpu_group_value<IN>(g, k);
        const unsigned quiet = v != v ? 0x400000u * (IN != GPU_INPUT_F32) : 0, a = gpu_magnitude(v, keeps_nan);
        most = (a ? a | quiet : 0) > most ? a | quiet : most;
    }
    return most;
}

/* ---- elements ---- */

enum gpu_elements { GPU_E4M3, GPU_E5M2, GPU_E2M1, GPU_E3M2, GPU_E2M3, GPU_E2M1_RANDOM, GPU_ELEMENTS };

/* MAX: bits of the largest number; OVER: bits of the smallest that overflows; SIGN: of a code. */
template <int ELEMENT>
struct gpu_grid;
template <>
struct gpu_grid<GPU_E4M3> {
    enum : uint32_t { MBITS = 3, LEAST = 121, MAX = 0x43e00000, OVER = 0x43e80001, SIGN = 0x80 };
};
template <>
struct gpu_grid<GPU_E5M2> {
    enum : uint32_t { MBITS = 2, LEAST = 113, MAX = 0x47600000, OVER = 0x47700000, SIGN = 0x80 };
};
template <>
struct gpu_grid<GPU_E2M1> {
    enum : uint32_t { MBITS = 1, LEAST = 127, MAX = 0x40c00000, OVER = 0x40e00000, SIGN = 8 };
};
template <>
struct gpu_grid<GPU_E2M1_RANDOM> : gpu_grid<GPU_E2M1> {
};
template <>
struct gpu_grid<GPU_E3M2> {
    enum : uint32_t { MBITS = 2, LEAST = 125, MAX = 0x41e00000, OVER = 0x41f00000, SIGN = 0x20 };
};
template <>
struct gpu_grid<GPU_E2M3> {
    enum : uint32_t { MBITS = 3, LEAST = 127, MAX = 0x40f00000, OVER = 0x40f80000, SIGN = 0x20 };
};

/* Whether the device converts: FP8 from sm_89 on. */
template <int ELEMENT>
struct gpu_has_convert {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    enum { YES = ELEMENT == GPU_E4M3 || ELEMENT == GPU_E5M2 };
#else
    enum { YES = 0 };
#endif
};

/* Codes of four scaled numbers that are no NaNs; and, if they are wanted, the numbers of the codes. */
struct gpu_packed {
    uint32_t codes;
    float number[4];
    unsigned over; /* random rounding: how many overflow */
};

/* The magnitude code of a number: its step is the last place of `lift`, to which it is added. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_nearest_code(float y, float *number)
{
    typedef gpu_grid<ELEMENT> grid;
    const uint32_t drop = 23 - grid::MBITS, least = grid::LEAST << 23;
    const float a = fminf(fabsf(y), __uint_as_float(grid::MAX));
    const uint32_t binade = __float_as_uint(a) & 0x7f800000u;
    const uint32_t lift = (binade > least ? binade : least) + (drop << 23);
    const float sum = __fadd_rn(a, __uint_as_float(lift));
    *number = __uint_as_float(__float_as_uint(__fsub_rn(sum, __uint_as_float(lift))) |
                              (__float_as_uint(y) & 0x80000000u));
    return __float_as_uint(sum) - lift + ((lift - least - (drop << 23)) >> drop);
}

/* The same of E2M1 by 8 random bits, as mpsim_rule_fp4_random. */
static __device__ __forceinline__ uint32_t gpu_random_code(float y, uint32_t word, float *number, unsigned *over)
{
    const float a = fabsf(y), part = __fadd_rn(__uint_as_float(0x3f800000u | word >> 24 << 15), -1.0f);
    const float t = __fmaf_rn(part, mpsim_rule_fp4_step(a), a);
    const int high = (int)(__float_as_uint(t) >> 22) - 252, low = t >= 0.5f;
    const int code = high > low ? high : low;
    *over += t >= 8;
    const float q = t >= 1 ? __uint_as_float(__float_as_uint(t) & 0xffc00000u) : low ? 0.5f : 0.0f;
    *number = __uint_as_float(__float_as_uint(fminf(q, 6.0f)) | (__float_as_uint(y) & 0x80000000u));
    return (uint32_t)(code < 7 ? code : 7);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_convert_pair(float low, float high)
{
    unsigned short y;
    if (ELEMENT == GPU_E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(y) : "f"(high), "f"(low));
    return y;
}

template <int ELEMENT>
static __device__ __forceinline__ void gpu_convert_back(uint32_t pair, float *low, float *high)
{
    uint32_t halves;
    if (ELEMENT == GPU_E4M3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)pair));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"((unsigned short)pair));
    *low = gpu_half_value(halves & 0xffffu);
    *high = gpu_half_value(halves >> 16);
}
#endif

template <int ELEMENT>
static __device__ __forceinline__ gpu_packed gpu_pack(const float y[4], const uint32_t words[4],
                                                      [[maybe_unused]] int wanted)
{
    typedef gpu_grid<ELEMENT> grid;
    gpu_packed p;
    p.over = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if (gpu_has_convert<ELEMENT>::YES) {
        const uint32_t low = gpu_convert_pair<ELEMENT>(y[0], y[1]), high = gpu_convert_pair<ELEMENT>(y[2], y[3]);
        p.codes = low | high << 16;
        if (wanted) {
            gpu_convert_back<ELEMENT>(low, &p.number[0], &p.number[1]);
            gpu_convert_back<ELEMENT>(high, &p.number[2], &p.number[3]);
        }
        return p;
    }
#endif
    uint32_t signs = 0;
    p.codes = 0;
    GPU_UNROLL
    for (int k = 0; k < 4; k++) {
        const uint32_t code = ELEMENT == GPU_E2M1_RANDOM ? gpu_random_code(y[k], words[k], &p.number[k], &p.over)
                                                         : gpu_nearest_code<ELEMENT>(y[k], &p.number[k]);
        p.codes |= code << 8 * k;
        signs |= (__float_as_uint(y[k]) >> 31) << 8 * k;
    }
    p.codes |= signs * grid::SIGN;
    return p;
}

/* 0x80 in each byte whose magnitude code is not 0. */
template <int ELEMENT>
static __device__ __forceinline__ uint32_t gpu_not_zero(uint32_t codes)
{
    const uint32_t mask = (gpu_grid<ELEMENT>::SIGN - 1) * 0x01010101u;
    return ((codes & mask) + 0x7f7f7f7fu) & 0x80808080u;
}

/* ---- results ---- */

/* Two or four words, by one access. */
static __device__ __forceinline__ void gpu_store_two(void *to, uint32_t a, uint32_t b)
{
#if defined(__CUDACC__)
    *static_cast<uint2 *>(to) = make_uint2(a, b);
#else
    const uint32_t v[2] = {a, b};
    memcpy(to, v, sizeof v);
#endif
}

static __device__ __forceinline__ void gpu_store_quad(void *to, const float v[4])
{
#if defined(__CUDACC__)
    *static_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
#else
    memcpy(to, v, 4 * sizeof *v);
#endif
}

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

/* ---- blocks in a row ---- */

static __device__ GPU_NOINLINE mpsim_block_scale gpu_rule_apart(mpsim_scale_env env, float amax)
{
    return mpsim_rule_block(&env, amax);
}

/* The amax of the groups of a warp, of which L lanes each share a block, as the rule sees NaNs. */
template <int IN>
static __device__ __forceinline__ unsigned gpu_exact_amax(const gpu_recipe &q, const void *x, size_t i, int inside,
                                                          int lanes)
{
    unsigned a = inside ? gpu_group_bits<IN>(x, i, q.keeps_nan) : 0;
    for (int h = 1; h < lanes; h *= 2) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, a, h);
        a = other > a ? other : a;
    }
    return a;
}

/* Blocks of 1 x B in rows that are a multiple of B: the tensor is one row. A warp has J loads of 32 groups. */
template <int IN, int ELEMENT, int VALUES, int B>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, L = B / E, J = 16 / E, OWN = L < J ? L : J, STEP = J * 32 * E };
    const unsigned item = gpu_list_item(list), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gpu_blocked &b = list.item[item];
    const size_t n = b.rows * b.cols, step = (size_t)gpu_list_own(list, item) * GPU_BLOCKS_WARPS * STEP;
    const mpsim_scale_env env = gpu_env_of(q, b);
    gpu_counter c;
    unsigned most = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (size_t at = ((size_t)gpu_list_block(list, item) * GPU_BLOCKS_WARPS + warp) * STEP; at < n; at += step) {
        gpu_group<IN> g[J];
        gpu_scaling s[J];
        float m[J];
        int odd = 0;
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const size_t i = at + ((unsigned)j * 32 + lane) * E;
            if (i < n)
                g[j].load(b.x, i);
            else
                g[j].clear();
        }
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            m[j] = gpu_group_most<IN>(g[j]);
            GPU_UNROLL
            for (int h = 1; h < L; h *= 2)
                m[j] = gpu_larger_or_nan(m[j], __shfl_xor_sync(0xffffffffu, m[j], h));
            const unsigned bits = __float_as_uint(m[j]);
            most = bits < 0x7f800000u && bits > most ? bits : most;
        }
        GPU_UNROLL
        for (int k = 0; k < J; k += OWN) { /* each lane of a block makes the scale of one of OWN blocks */
            const unsigned own = lane % OWN;
            float mine = m[k];
            GPU_UNROLL
            for (int t = 1; t < OWN; t++)
                mine = own == (unsigned)t ? m[k + t] : mine;
            const mpsim_block_scale scale = mpsim_rule_block(&env, mine);
            const float plain = gpu_plain_factor(scale);
            GPU_UNROLL
            for (int t = 0; t < OWN; t++) {
                const int from = (int)(lane / L * L) + t;
                s[k + t] = gpu_scaling_of<ELEMENT>(q, m[k + t], __shfl_sync(0xffffffffu, plain, from),
                                                   __shfl_sync(0xffffffffu, scale.inverse, from));
                odd |= s[k + t].odd;
            }
            const size_t i = at + (((unsigned)k + own) * 32 + lane) * E;
            if (lane % L < OWN && i < n && !gpu_scaling_of<ELEMENT>(q, mine, plain, scale.inverse).odd)
                gpu_store_scale(q, b.to, i / B, __float_as_uint(mine), scale);
        }
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const size_t i = at + ((unsigned)j * 32 + lane) * E;
            if (i < n && !s[j].odd)
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g[j], s[j], &c);
        }
        if (!__any_sync(0xffffffffu, odd))
            continue;
        for (int j = 0; j < J; j++) {
            const size_t i = at + ((unsigned)j * 32 + lane) * E;
            const unsigned a = gpu_exact_amax<IN>(q, b.x, i, i < n, L);
            const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
            int is_odd = s[0].odd;
            GPU_UNROLL
            for (int t = 1; t < J; t++)
                is_odd = j == t ? s[t].odd : is_odd;
            if (i >= n || !is_odd)
                continue;
            gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
            const unsigned number = gpu_group_bits<IN>(b.x, i, 0);
            most = number > most ? number : most;
            if (lane % L == 0)
                gpu_store_scale(q, b.to, i / B, a, scale);
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* ---- one block ---- */

/* The amax of a tensor, as the rule sees NaNs, to found_amax. */
template <int IN>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    blocks_amax_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, J = 4, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const size_t n = b.rows * b.cols, step = (size_t)gpu_list_own(list, item) * J * STEP;
    const gpu_counter none;
    unsigned most = 0;
    for (size_t at = (size_t)gpu_list_block(list, item) * J * STEP + threadIdx.x * E; at < n; at += step) {
        gpu_group<IN> g[J];
        float m = 0;
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            if (at + (size_t)j * STEP < n)
                g[j].load(b.x, at + (size_t)j * STEP);
            else
                g[j].clear();
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            m = gpu_larger_or_nan(m, gpu_group_most<IN>(g[j]));
        if (m <= FLT_MAX) {
            most = __float_as_uint(m) > most ? __float_as_uint(m) : most;
            continue;
        }
        for (int j = 0; j < J && at + (size_t)j * STEP < n; j++) {
            const unsigned a = gpu_group_bits<IN>(b.x, at + (size_t)j * STEP, q.keeps_nan);
            most = a > most ? a : most;
        }
    }
    gpu_give_all(none, most, NULL, reinterpret_cast<int *>(b.to.found_amax));
}

/* One scale for the tensor, whose amax is found. */
template <int IN, int ELEMENT, int VALUES>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    one_block_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, J = 16 / E, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const size_t n = b.rows * b.cols, step = (size_t)gpu_list_own(list, item) * J * STEP;
    const mpsim_scale_env env = gpu_env_of(q, b);
    const float amax = b.to.tensor_amax ? *b.to.tensor_amax : 0;
    const mpsim_block_scale scale = gpu_rule_apart(env, amax);
    const float plain = gpu_plain_factor(scale);
    gpu_counter c;
    unsigned most = 0;
    if (gpu_list_block(list, item) == 0 && threadIdx.x == 0) {
        gpu_store_scale(q, b.to, 0, __float_as_uint(amax), scale);
        if (b.to.tensor_scale)
            *b.to.tensor_scale = env.decode;
    }
    for (size_t at = (size_t)gpu_list_block(list, item) * J * STEP + threadIdx.x * E; at < n; at += step) {
        gpu_group<IN> g[J];
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            if (at + (size_t)j * STEP < n)
                g[j].load(b.x, at + (size_t)j * STEP);
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const size_t i = at + (size_t)j * STEP;
            if (i >= n)
                continue;
            const float m = gpu_group_most<IN>(g[j]);
            const gpu_scaling s = gpu_scaling_of<ELEMENT>(q, m, plain, scale.inverse);
            unsigned number = __float_as_uint(m);
            if (s.odd) {
                number = gpu_group_bits<IN>(b.x, i, 0);
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
            } else {
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g[j], s, &c);
            }
            most = number > most ? number : most;
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* ---- rows, tiles ---- */

/* The largest of all threads of a block; every thread has it. */
static __device__ __forceinline__ unsigned gpu_block_most(unsigned a)
{
    GPU_SHARED(unsigned, most, [GPU_BLOCKS_WARPS]);
    a = __reduce_max_sync(0xffffffffu, a);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        most[threadIdx.x / 32] = a;
    __syncthreads();
    for (int k = 0; k < GPU_BLOCKS_WARPS; k++)
        a = most[k] > a ? most[k] : a;
    return a;
}

/* A block of threads has a row, whose second reading is near. */
template <int IN, int ELEMENT, int VALUES>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    row_blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, STEP = GPU_BLOCKS_THREADS * E };
    const unsigned item = gpu_list_item(list);
    const gpu_blocked &b = list.item[item];
    const mpsim_scale_env env = gpu_env_of(q, b);
    gpu_counter c;
    unsigned most = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (size_t row = gpu_list_block(list, item); row < b.rows; row += gpu_list_own(list, item)) {
        const size_t first = row * b.cols, end = first + b.cols;
        gpu_group<IN> g;
        unsigned a = 0;
        for (size_t i = first + threadIdx.x * E; i < end; i += STEP) {
            g.load(b.x, i);
            const unsigned bits = __float_as_uint(gpu_group_most<IN>(g));
            const unsigned d = bits < 0x7f800000u ? bits : gpu_group_bits<IN>(b.x, i, 0);
            const unsigned own = bits < 0x7f800000u ? bits : gpu_group_bits<IN>(b.x, i, q.keeps_nan);
            a = own > a ? own : a;
            most = d > most ? d : most;
        }
        a = gpu_block_most(a);
        const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
        const float plain = gpu_plain_factor(scale);
        if (threadIdx.x == 0)
            gpu_store_scale(q, b.to, row, a, scale);
        for (size_t i = first + threadIdx.x * E; i < end; i += STEP) {
            g.load(b.x, i);
            const gpu_scaling s = gpu_scaling_of<ELEMENT>(q, gpu_group_most<IN>(g), plain, scale.inverse);
            if (s.odd)
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
            else
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g, s, &c);
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* Blocks of H rows, H = 16 TALL: a warp has 16 rows of 32 groups, which stay in registers; TALL warps share blocks. */
template <int IN, int ELEMENT, int VALUES, int TALL>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    tile_blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    enum { E = gpu_group<IN>::E, R = 16, WIDE = 32 * E, AT_ONCE = GPU_BLOCKS_WARPS / TALL };
    GPU_SHARED(unsigned, shared_amax, [GPU_BLOCKS_WARPS][32]);
    const unsigned item = gpu_list_item(list), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gpu_blocked &b = list.item[item];
    const mpsim_scale_env env = gpu_env_of(q, b);
    const size_t across = (b.cols + WIDE - 1) / WIDE, tiles = (b.rows + R * TALL - 1) / (R * TALL) * across;
    const int lanes = (int)(q.block_cols / E);
    gpu_counter c;
    unsigned most = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (size_t first = (size_t)gpu_list_block(list, item) * AT_ONCE; first < tiles;
         first += (size_t)gpu_list_own(list, item) * AT_ONCE) {
        const size_t tile = first + warp / TALL, top = tile / across * (R * TALL) + warp % TALL * R;
        const size_t col = tile % across * WIDE + lane * E;
        const size_t rows = tile < tiles && col < b.cols && top < b.rows ? b.rows - top : 0, at = top * b.cols + col;
        gpu_group<IN> g[R];
        float m = 0;
        GPU_UNROLL
        for (int r = 0; r < R; r++)
            if ((size_t)r < rows)
                g[r].load(b.x, at + (size_t)r * b.cols);
            else
                g[r].clear();
        GPU_UNROLL
        for (int r = 0; r < R; r++)
            m = gpu_larger_or_nan(m, gpu_group_most<IN>(g[r]));
        unsigned a = __float_as_uint(m), number = a;
        if (!(m <= FLT_MAX)) { /* NaNs as the rule sees them */
            a = number = 0;
            for (int r = 0; r < R && (size_t)r < rows; r++) {
                const unsigned own = gpu_group_bits<IN>(b.x, at + (size_t)r * b.cols, q.keeps_nan);
                const unsigned dropped = gpu_group_bits<IN>(b.x, at + (size_t)r * b.cols, 0);
                a = own > a ? own : a;
                number = dropped > number ? dropped : number;
            }
        }
        most = number > most ? number : most;
        for (int h = 1; h < lanes; h *= 2) {
            const unsigned other = __shfl_xor_sync(0xffffffffu, a, h);
            a = other > a ? other : a;
        }
        if (TALL > 1) {
            __syncthreads();
            shared_amax[warp][lane] = a;
            __syncthreads();
            GPU_UNROLL
            for (int w = 0; w < TALL; w++) {
                const unsigned other = shared_amax[warp / TALL * TALL + w][lane];
                a = other > a ? other : a;
            }
        }
        const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
        const float plain = gpu_plain_factor(scale);
        if (rows && warp % TALL == 0 && lane % (unsigned)lanes == 0)
            gpu_store_scale(q, b.to, top / (R * TALL) * q.grid_cols + col / q.block_cols, a, scale);
        /* NaNs that the rule drops are found by their own group */
        const int whole = m <= FLT_MAX;
        const gpu_scaling s = gpu_scaling_of<ELEMENT>(q, __uint_as_float(a), plain, scale.inverse);
        GPU_UNROLL
        for (int r = 0; r < R; r++) {
            const size_t i = at + (size_t)r * b.cols;
            if ((size_t)r >= rows)
                continue;
            if (whole && !s.odd)
                gpu_group_put<IN, ELEMENT, VALUES>(q, b, i, g[r], s, &c);
            else
                gpu_count(&c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
        }
    }
    gpu_give_all(c, most, b.to.counts, b.to.most);
}

/* ---- the transform ---- */

/* Two numbers to nearest as codes of a word. */
template <int IN>
static __device__ __forceinline__ uint32_t gpu_pair_code(const gpu_format &f, float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t pair;
    if (IN == GPU_INPUT_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return gpu_encode(f, GPU_NEAREST, low).code | gpu_encode(f, GPU_NEAREST, high).code << 16;
#endif
}

/* mpsim_hadamard of rows that are a multiple of 16: a lane has 16 bytes, 2 or 4 lanes a group of 16 numbers. */
template <int IN>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    hadamard_line_kernel(GPU_CONSTANT(gpu_format) f, void *y, const void *x, size_t n)
{
    enum { E = gpu_group<IN>::E, LANES = 16 / E };
    const uint32_t negative = 0xd7e8; /* bit i: element i of a group */
    const size_t step = (size_t)gridDim.x * blockDim.x * E;
    for (size_t from = (size_t)blockIdx.x * blockDim.x * E; from < n; from += step) {
        const size_t i = from + threadIdx.x * E;
        const unsigned first = (unsigned)(i % 16);
        gpu_group<IN> g;
        float v[E];
        if (i < n)
            g.load(x, i);
        else
            g.clear();
        GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = __uint_as_float(__float_as_uint(gpu_group_value<IN>(g, k)) ^ (negative >> (first + (unsigned)k) & 1)
                                                                                    << 31);
        GPU_UNROLL
        for (int half = 1; half < E; half *= 2)
            GPU_UNROLL
        for (int k = 0; k < E; k++)
            if (!(k & half)) {
                const float a = v[k], b = v[k + half];
                v[k] = __fadd_rn(a, b);
                v[k + half] = __fsub_rn(a, b);
            }
        GPU_UNROLL
        for (int half = 1; half < LANES; half *= 2)
            GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = gpu_butterfly(v[k], (unsigned)half);
        GPU_UNROLL
        for (int k = 0; k < E; k++)
            v[k] = __fmul_rn(v[k], 0.25f);
        if (i >= n)
            continue;
        if (IN == GPU_INPUT_F32)
            gpu_store_quad(static_cast<float *>(y) + i, v);
        else
            GPU_UNROLL
        for (int k = 0; k < E; k += 4)
            gpu_store_two(static_cast<uint16_t *>(y) + i + k, gpu_pair_code<IN>(f, v[k], v[k + 1]),
                          gpu_pair_code<IN>(f, v[k + 2 < E ? k + 2 : 0], v[k + 3 < E ? k + 3 : 0]));
    }
}
