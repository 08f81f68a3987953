/* blocks.cuh -- the usual block recipes on a device, near the speed of memory: inputs of binary32, bf16 and fp16, elements of 4 to 8
 * bits rounded to nearest, and NVFP4's random rounding. recipe.cuh has all others, and what is rare here: blocks with NaN or
 * infinity, very large or very small ones.
 *
 * A lane has groups of 16 bytes: 4 or 8 numbers of one block; its loads are under way together. Lanes that share blocks find the
 * amax by shuffles; then each makes the scale of one of them. Codes are packed four to a word. Counters stay in registers, with an
 * addition to memory for each block of threads and counter. Where the scale comes from the whole tensor, a kernel before finds its
 * amax, which stays on the device. */
#pragma once

#include "blocks_put.cuh"

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
