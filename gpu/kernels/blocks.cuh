/* blocks.cuh -- the usual block recipes on a device, near the speed of memory: inputs of binary32, bf16 and fp16, elements of 4 to 8
 * bits rounded to nearest, and NVFP4's random rounding. recipe.cuh has all others, and what is rare here: blocks with NaN or
 * infinity, very large or very small ones.
 *
 * A lane has groups of 16 bytes: 4 or 8 numbers of one block; its loads are under way together. Lanes that share blocks find the
 * amax by shuffles. A scale that is a power of two comes from the exponent of the amax (gpu_power_scale), by every lane; of other
 * scales each lane makes one. Codes are packed four to a word. Counters stay in registers, with an addition to memory for each
 * block of threads and counter. Where the scale comes from the whole tensor, a kernel before finds its amax, which stays on the
 * device. Warps that saw rare blocks go through their blocks again. */
#pragma once

#include "blocks_put.cuh"

/* How a block's scale is made. */
enum gpu_line_rule { GPU_LINE_POWER, GPU_LINE_NVFP4, GPU_LINE_DEEPSEEK };

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
template <int IN, int ELEMENT, int VALUES, int B, int RULE>
struct gpu_line {
    enum { E = gpu_group<IN>::E, L = B / E, J = 16 / E, STEP = J * 32 };
    typedef gpu_group<IN> group;
    static_assert(J <= L, "a lane makes the scale of one of J loads");

    /* The amax of each load's block, or NaN. */
    static __device__ __forceinline__ void most(const group g[J], float m[J])
    {
        if constexpr (IN == GPU_INPUT_F32) {
            GPU_UNROLL
            for (int j = 0; j < J; j++) {
                m[j] = gpu_group_most<IN>(g[j]);
                GPU_UNROLL
                for (int h = 1; h < L; h *= 2)
                    m[j] = gpu_larger_or_nan(m[j], __shfl_xor_sync(0xffffffffu, m[j], h));
            }
        } else { /* of both loads, in a word */
            const uint32_t a = gpu_group_both<IN>(g[0]), b = gpu_group_both<IN>(g[1]);
            uint32_t both = gpu_extreme_pair<IN, GPU_LARGER>(__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632));
            GPU_UNROLL
            for (int h = 1; h < L; h *= 2)
                both = gpu_extreme_pair<IN, GPU_LARGER>(both, __shfl_xor_sync(0xffffffffu, both, h));
            m[0] = fabsf(gpu_code_value<IN>(both & 0xffffu));
            m[1] = fabsf(gpu_code_value<IN>(both >> 16));
        }
    }

    static __device__ __forceinline__ gpu_scaling scale_of(const gpu_recipe &q, const mpsim_scale_env &env, float m)
    {
        if constexpr (RULE == GPU_LINE_POWER)
            return gpu_power_scale<ELEMENT>(q.power, m);
        const mpsim_block_scale s = RULE == GPU_LINE_DEEPSEEK          ? mpsim_rule_deepseek(&env, m)
                                    : env.rule == MPSIM_SCALE_NVFP4_TE ? gpu_nvfp4_scale(env, m)
                                                                       : mpsim_rule_nvfp4_torchao(&env, m);
        gpu_scaling to = gpu_scaling_of<ELEMENT>(RULE == GPU_LINE_DEEPSEEK, m, gpu_plain_factor(s), s.inverse);
        to.code = s.code;
        return to;
    }

    /* The scales of all loads, and of the load that the lane stores. */
    static __device__ __forceinline__ gpu_scaling scales(const gpu_recipe &q, const mpsim_scale_env &env,
                                                         const float m[J], float *mine, gpu_scaling s[J])
    {
        const unsigned lane = threadIdx.x % 32, own = lane % J;
        gpu_scaling of;
        *mine = m[0];
        GPU_UNROLL
        for (int j = 1; j < J; j++)
            *mine = own == (unsigned)j ? m[j] : *mine;
        if (RULE == GPU_LINE_POWER) {
            GPU_UNROLL
            for (int j = 0; j < J; j++) {
                s[j] = scale_of(q, env, m[j]);
                of = j == 0 || own == (unsigned)j ? s[j] : of;
            }
            return of;
        }
        of = scale_of(q, env, *mine);
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const int from = (int)(lane / J * J) + j;
            s[j] = gpu_scaling_of<ELEMENT>(
                RULE == GPU_LINE_DEEPSEEK, m[j],
                __shfl_sync(0xffffffffu, of.odd ? __uint_as_float(0x7fffffffu) : of.factor, from),
                VALUES || RULE == GPU_LINE_DEEPSEEK ? __shfl_sync(0xffffffffu, of.inverse, from) : 0.0f);
        }
        return of;
    }

    /* Group k of a rare block by the reference. All lanes. */
    static __device__ void rare(const gpu_recipe &q, const gpu_blocked &b, unsigned k, unsigned groups, gpu_counter *c,
                                unsigned *most)
    {
        const mpsim_scale_env env = gpu_env_of(q, b);
        const size_t i = (size_t)k * E;
        group g;
        g.clear();
        if (k < groups)
            g.load(b.x, i);
        float m = gpu_group_most<IN>(g);
        for (int h = 1; h < L; h *= 2)
            m = gpu_larger_or_nan(m, __shfl_xor_sync(0xffffffffu, m, h));
        const unsigned a = gpu_exact_amax<IN>(q, b.x, i, k < groups, L);
        if (k >= groups || !scale_of(q, env, m).odd)
            return;
        const mpsim_block_scale scale = gpu_rule_apart(env, __uint_as_float(a));
        gpu_count(c, gpu_group_reference<IN>(q, b, i, scale.factor, scale.inverse));
        const unsigned number = gpu_group_bits<IN>(b.x, i, 0);
        *most = number > *most ? number : *most;
        if (k % L == 0)
            gpu_store_scale(q, b.to, k / L, a, scale);
    }
};

template <int IN, int ELEMENT, int VALUES, int B, int RULE>
GPU_KERNEL void __launch_bounds__(GPU_BLOCKS_THREADS)
    blocks_kernel(GPU_CONSTANT(gpu_recipe) q, GPU_CONSTANT(gpu_blocked_list) list)
{
    typedef gpu_line<IN, ELEMENT, VALUES, B, RULE> line;
    enum { E = line::E, L = line::L, J = line::J };
    const unsigned item = gpu_list_item(list), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const gpu_blocked &b = list.item[item];
    const unsigned groups = (unsigned)(b.rows * b.cols / E),
                   step = gpu_list_own(list, item) * GPU_BLOCKS_WARPS * line::STEP;
    const unsigned first = (gpu_list_block(list, item) * GPU_BLOCKS_WARPS + warp) * line::STEP;
    const unsigned stores = gpu_scale_stores(b.to);
    const mpsim_scale_env env = gpu_env_of(q, b);
    gpu_counter c;
    float most = 0;
    int odd = 0;
    if (b.to.tensor_scale && gpu_list_block(list, item) == 0 && threadIdx.x == 0)
        *b.to.tensor_scale = env.decode;
    for (unsigned at = first; at < groups; at += step) {
        gpu_group<IN> g[J];
        gpu_scaling s[J];
        float m[J], mine;
        GPU_UNROLL
        for (int j = 0; j < J; j++)
            if (at + (unsigned)j * 32 + lane < groups)
                g[j].load(b.x, (size_t)(at + (unsigned)j * 32 + lane) * E);
            else
                g[j].clear();
        line::most(g, m);
        const gpu_scaling own = line::scales(q, env, m, &mine, s);
        const unsigned k = at + lane % J * 32 + lane;
        if (lane % L < J && k < groups && !own.odd)
            gpu_put_scale(q, b.to, stores, k / L, mine, own);
        GPU_UNROLL
        for (int j = 0; j < J; j++) {
            const unsigned i = at + (unsigned)j * 32 + lane;
            odd |= s[j].odd;
            most = s[j].odd ? most : fmaxf(most, m[j]);
            gpu_group_put<IN, ELEMENT, VALUES, RULE == GPU_LINE_POWER>(
                q, b, (size_t)i * E, g[j], s[j], RULE == GPU_LINE_DEEPSEEK, i < groups && !s[j].odd, &c);
        }
    }
    unsigned bits = __float_as_uint(most);
    if (__any_sync(0xffffffffu, odd))
        for (unsigned at = first; at < groups; at += step)
            for (unsigned j = 0; j < J; j++)
                line::rare(q, b, at + j * 32 + lane, groups, &c, &bits);
    gpu_give_all(c, bits, b.to.counts, b.to.most);
}
