/* engine_blocks.cuh -- products of operands in blocks: the sums of each block of the depth, added with the factors
 * of the blocks, as DeepGEMM's promotion adds them. One launch where gemm.h has it; else (another architecture,
 * model or length of blocks) a product for each block, by any kernel of gemm.h. */
#pragma once

#include "elements.cuh"
#include "engine.cuh"
#include "gemm.h"

struct gpu_promotion {
    const float *a, *b;             /* factors, a row of each for `a_rows` rows, `b_rows` columns */
    size_t a_rows, b_rows, per_row; /* per_row: blocks of the depth                               */
    size_t columns, n;              /* of the sums                                                */
};

/* s += the sums p of a block, each times its factors. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    promote_kernel(GPU_CONSTANT(gpu_promotion) q, float *s, const float *p, size_t block)
{
    GPU_FOR(i, q.n)
    {
        const size_t row = i / q.columns, column = i % q.columns;
        const float factor = __fmul_rn(q.a[row / q.a_rows * q.per_row + block],
                                       q.b[column / q.b_rows * q.per_row + block]);
        s[i] = __fmaf_rn(factor, p[i], s[i]);
    }
}

/* d = s * factor + bias, rounded; to multiply by a factor of 1 changes nothing. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    finish_kernel(GPU_CONSTANT(gpu_format) to, void *d, const float *s, size_t n, size_t columns, float factor,
                  GPU_CONSTANT(gpu_format) of_bias, const void *bias, gpu_word *counts)
{
    gpu_counter c;
    GPU_FOR(i, n)
    {
        const float x = __fmul_rn(s[i], factor);
        gpu_put(to, d, i, bias ? __fadd_rn(x, gpu_value(of_bias, bias, i % columns)) : x, &c);
    }
    c.give(counts);
}

/* p: the product as a whole. */
static int gemm_one_by_one(train_engine *e, const train_gemm *g, const gpu_product *p)
{
    char why[160] = "";
    const size_t depth = p->depth_limit && p->depth_limit < p->depth ? p->depth_limit : p->depth;
    const size_t n = p->rows * p->columns, bytes = n * sizeof(float);
    const unsigned blocks = blocks_of(n, GPU_THREADS_ELEMENT);
    const gpu_promotion q = {static_cast<const float *>(at_of(g->a_blocks)),
                             static_cast<const float *>(at_of(g->b_blocks)),
                             g->a_rows,
                             g->b_rows,
                             g->a_blocks->cols,
                             p->columns,
                             n};
    float *s = static_cast<float *>(buffer_of(e, 0, bytes));
    float *part = s ? static_cast<float *>(buffer_of(e, 1, bytes)) : NULL;
    gpu_format to, of_bias;
    if (!part || cuda_done(e, "gemm", gpu_set_async(s, 0, bytes)) || gpu_format_set(&to, p->format) ||
        gpu_format_set(&of_bias, p->bias ? p->bias_format : p->format))
        return -1;
    for (size_t k = 0; k < depth; k += g->promote) {
        gpu_product one = *p;
        const size_t at = k * mpsim_format_code_bytes(p->a.format);
        one.depth = depth - k < g->promote ? depth - k : g->promote;
        one.depth_limit = 0;
        one.a.codes = static_cast<const unsigned char *>(p->a.codes) + at;
        one.b.codes = static_cast<const unsigned char *>(p->b.codes) + at;
        one.bias = NULL;
        one.factor = 1;
        one.format = mpsim_format_find("binary32");
        one.d = part;
        one.d_stride = p->columns;
        one.counts = NULL;
        if (gpu_gemm(&one, self_of(e)->sm, GPU_GEMM_AUTO, why, sizeof why))
            return cuda_fail(e, "gemm: %s", why);
        GPU_LAUNCH(promote_kernel, blocks, GPU_THREADS_ELEMENT, 0, q, s, part, k / g->promote);
    }
    GPU_LAUNCH(finish_kernel, blocks, GPU_THREADS_ELEMENT, 0, to, p->d, s, n, p->columns, p->factor, of_bias, p->bias,
               p->counts);
    return 0;
}

static int gemm_blocks(train_engine *e, const train_gemm *g, gpu_product *p)
{
    char why[160] = "";
    if (g->promote != GPU_GEMM_BLOCK || !gpu_gemm_has_factors(p->model->name, self_of(e)->sm))
        return gemm_one_by_one(e, g, p);
    p->a_factors = {static_cast<const float *>(at_of(g->a_blocks)), g->a_rows, g->a_blocks->cols};
    p->b_factors = {static_cast<const float *>(at_of(g->b_blocks)), g->b_rows, g->b_blocks->cols};
    return gpu_gemm(p, self_of(e)->sm, GPU_GEMM_AUTO, why, sizeof why) ? cuda_fail(e, "gemm: %s", why) : 0;
}
