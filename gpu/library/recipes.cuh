/* recipes.cuh -- stacks and block recipes as kernels take them, and the launches of a recipe. */
#pragma once

#include "call.cuh"

#include "../kernels/blocks_launch.cuh"

#include <mpsim/format.h>

extern "C" {
#include "../../lib/dot/stack.h"
}

namespace library
{

enum { THREADS = 256, BLOCKS = 2048 };

static inline unsigned blocks_for(size_t n)
{
    const size_t blocks = (n + THREADS - 1) / THREADS;
    return unsigned(blocks < BLOCKS ? blocks : size_t(BLOCKS));
}

/* Whether all numbers of a format are binary32 numbers. */
static inline int is_within_binary32(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) == MPSIM_OK;
}

/* x, whose dimensions before the last two have so many elements; a stride of 0 counts as any other. */
static inline gpu_stack stack_of(const mpsim_stack *x, const mpsim_outer *outer)
{
    gpu_stack s;
    memset(&s, 0, sizeof s);
    s.codes = x->codes;
    s.format = *x->format;
    s.bytes = int(mpsim_format_code_bytes(x->format));
    s.is_f32 = mpsim_is_f32(x->format);
    s.outer = outer->rank;
    s.row = x->strides[x->rank - 2];
    s.col = x->strides[x->rank - 1];
    s.rows = mpsim_stack_rows(x);
    s.cols = mpsim_stack_cols(x);
    s.lines = s.cols ? mpsim_outer_count(outer) * s.rows : 0;
    s.is_dense = (s.cols < 2 || s.col == 1) && (s.rows < 2 || s.row == int64_t(s.cols));
    int64_t step = int64_t(s.rows * s.cols);
    for (uint32_t i = s.outer; i-- > 0; step *= int64_t(s.shape[i])) {
        s.shape[i] = outer->shape[i];
        s.strides[i] = x->strides[i];
        s.is_dense = s.is_dense && (s.shape[i] == 1 || s.strides[i] == step);
    }
    return s;
}

/* The matrices of a stack of values, one behind the other. */
static inline gpu_stack values_of(const gpu_stack &shape, const float *values)
{
    gpu_stack s = shape;
    s.codes = values;
    s.format = *mpsim_format_find("binary32");
    s.bytes = 4;
    s.is_f32 = s.is_dense = 1;
    return s;
}

/* The scratch of a recipe. */
static inline void scratch_of(room *r, const gpu_recipe &q, gpu_results *to)
{
    to->block_amax = r->take<unsigned>(q.blocks);
    to->factor = r->take<float>(q.blocks);
    to->inverse = r->take<float>(q.blocks);
    to->found_amax = r->take<unsigned>(1);
}

/* The same by kernels of blocks.cuh; 0: there is none. */
static inline int launch_blocks(const gpu_stack &x, const gpu_recipe &q, const gpu_results &to, int whole,
                                cudaStream_t stream)
{
    gpu_blocked_list list;
    gpu_blocked &b = list.item[0];
    b.x = x.codes;
    b.rows = x.lines;
    b.cols = x.cols;
    b.rng = q.rng;
    b.given = q.env.given;
    b.to = to;
    const gpu_blocks_form form = gpu_blocks_form_of(q, &x.format, b, whole);
    if (!x.is_dense || form.way == GPU_WAY_NONE)
        return 0;
    list.n = 1;
    list.end[0] = gpu_blocks_grid(form, q, b);
    if (form.way == GPU_WAY_ONE || (q.has_tensor && !to.tensor_amax)) {
        const int needed = to.amax || gpu_blocks_needs_amax(form, q);
        if (needed)
            cudaMemsetAsync(to.found_amax, 0, sizeof *to.found_amax, stream);
        if (needed)
            gpu_blocks_launch_amax(form, q, list, stream);
        b.to.tensor_amax = needed ? reinterpret_cast<const float *>(to.found_amax) : NULL;
    }
    gpu_blocks_launch(form, q, list, stream);
    return 1;
}

/* Launches: the amax of blocks and of the tensor, scales, codes. Scratch is there; tensor_amax NULL: of x; whole: x is one
 * block. */
static inline void launch_recipe(const gpu_stack &x, const gpu_recipe &q, gpu_results to, int whole,
                                 cudaStream_t stream)
{
    const size_t n = x.lines * x.cols;
    if (launch_blocks(x, q, to, whole, stream))
        return;
    mpsim_format scale = *mpsim_format_find("e8m0");
    const int one_number = q.env.rule == MPSIM_SCALE_GIVEN;
    if (q.has_tensor && !to.tensor_amax)
        to.tensor_amax = reinterpret_cast<const float *>(to.found_amax);
    else
        to.found_amax = NULL;
    if (to.found_amax)
        cudaMemsetAsync(to.found_amax, 0, sizeof *to.found_amax, stream);
    if (one_number && !to.amax)
        to.block_amax = NULL;
    if (to.block_amax && q.blocks)
        cudaMemsetAsync(to.block_amax, 0, q.blocks * sizeof *to.block_amax, stream);
    if (n && (to.block_amax || to.found_amax || to.most))
        GPU_LAUNCH_ON(stream, recipe_amax_kernel, blocks_for(n), THREADS, 0, x, q, to, n);
    if (q.env.rule == MPSIM_SCALE_NVFP4_TE || q.env.rule == MPSIM_SCALE_NVFP4_TORCHAO ||
        q.env.rule == MPSIM_SCALE_NVFP4_1LEVEL)
        scale = *mpsim_format_find("e4m3");
    GPU_LAUNCH_ON(stream, recipe_scale_kernel, blocks_for(q.blocks ? q.blocks : 1), THREADS, 0, q, to, scale);
    if (n && (to.codes || to.values || to.halves || to.counts))
        GPU_LAUNCH_ON(stream, recipe_code_kernel, blocks_for(n), THREADS, 0, x, q, to, n);
}

} // namespace library
