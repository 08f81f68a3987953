/* engine_quantize.cuh -- the operation quantize: rules, scales, passes. */
#ifndef MPSIM_GPU_KERNELS_ENGINE_QUANTIZE_CUH
#define MPSIM_GPU_KERNELS_ENGINE_QUANTIZE_CUH

#include "engine.cuh"
#include "quantize.cuh"

#include <mpsim/block.h>
#include <mpsim/recipe.h>

/* The rule as kernels know it, GPU_SCALE_NONE: there is none. */
static int scale_rule_of(const mpsim_block_recipe *b, int whole)
{
    static const struct {
        int rule, kernel;
    } rows[] = {{MPSIM_SCALE_E8M0_TE, GPU_SCALE_E8M0},       {MPSIM_SCALE_E8M0_FLOOR, GPU_SCALE_FLOOR},
                {MPSIM_SCALE_E8M0_EVEN, GPU_SCALE_EVEN},     {MPSIM_SCALE_E8M0_CEIL, GPU_SCALE_CEIL},
                {MPSIM_SCALE_E8M0_RCEIL, GPU_SCALE_RCEIL},   {MPSIM_SCALE_AMAX_TE, GPU_SCALE_AMAX},
                {MPSIM_SCALE_NVFP4_TE, GPU_SCALE_NVFP4},     {MPSIM_SCALE_AMAX_DEEPSEEK, GPU_SCALE_DEEPSEEK},
                {MPSIM_SCALE_E8M0_DEEPGEMM, GPU_SCALE_DEEPGEMM}};
    const int fp4 = b->rule == MPSIM_SCALE_NVFP4_TE;
    const int columns_fit = b->block_cols == 16 || b->block_cols % GPU_TILE == 0;
    if (b->element_mode != MPSIM_ROUND_NEAREST_EVEN && !fp4)
        return GPU_SCALE_NONE;
    if (b->rule == MPSIM_SCALE_GIVEN || (b->rule == MPSIM_SCALE_AMAX_TE && whole))
        return GPU_SCALE_ONE;
    for (const auto &row : rows)
        if (row.rule == b->rule && columns_fit && !whole)
            return row.kernel;
    return GPU_SCALE_NONE;
}

static void quantize_set(gpu_quantize *g, const train_quantize *q, const gpu_format &element,
                         const train_tensor *y, const train_tensor *x)
{
    const mpsim_block_recipe *b = q->recipe;
    const int rule = b->rule;
    memset(g, 0, sizeof *g);
    g->from = format_of(x);
    g->element = element;
    g->to = format_of(y);
    g->rows = y->rows;
    g->cols = y->cols;
    g->block_rows = b->block_rows ? b->block_rows : y->rows ? y->rows : 1;
    g->block_cols = b->block_cols ? b->block_cols : y->cols ? y->cols : 1;
    g->grid_cols = (y->cols + g->block_cols - 1) / g->block_cols;
    g->transposed = q->transposed != 0;
    g->codes = (b->block_rows == 0 && b->block_cols == 0) || q->blocks;
    g->factors = static_cast<float *>(at_of(q->blocks));
    g->span = g->block_cols == 16 ? 16 : GPU_TILE;
    g->keeps_nan = (rule >= MPSIM_SCALE_E8M0_FLOOR && rule <= MPSIM_SCALE_E8M0_RCEIL) ||
                   rule == MPSIM_SCALE_E8M0_DEEPGEMM;
    g->stochastic = mpsim_is_stochastic((mpsim_round_mode)b->element_mode);
    g->rng = q->rng;
    g->max = (float)mpsim_format_max(&element.math.format);
    g->epsilon = (float)b->amax_epsilon;
    g->for_inf = (float)b->scale_for_inf;
    g->power_of_two = b->power_of_two;
}

static void quantize_launch(const gpu_quantize &g, void *y, const void *x)
{
    const size_t across = (g.cols + GPU_TILE - 1) / GPU_TILE,
                 down = (g.rows + GPU_TILE - 1) / GPU_TILE;
    if (across > 0 && down > 0)
        GPU_LAUNCH(quantize_kernel, (unsigned)(across * down), dim3(GPU_TILE, GPU_TILE_ROWS), 0, g,
                   y, x);
}

/* Blocks whose largest element no single warp sees: their amax first. */
static int quantize_blocks(train_engine *e, gpu_quantize *g, void *y, const void *x)
{
    const size_t blocks = g->grid_cols * ((g->rows + g->block_rows - 1) / g->block_rows);
    gpu_quantize first = *g;
    unsigned *amax = static_cast<unsigned *>(buffer_of(e, 0, blocks * sizeof *amax));
    if (!amax || cuda_done(e, "quantize", cudaMemsetAsync(amax, 0, blocks * sizeof *amax)))
        return -1;
    first.rule = GPU_SCALE_NONE;
    first.block_amax = g->block_amax = amax;
    first.amax = NULL;
    quantize_launch(first, NULL, x);
    quantize_launch(*g, y, x);
    return 0;
}

/* The scale of the whole tensor, and its amax. */
static int quantize_amax(train_engine *e, const gpu_quantize *g, const void *x, float *amax)
{
    gpu_quantize first = *g;
    first.rule = GPU_SCALE_NONE;
    first.amax = &self_of(e)->results->amax;
    if (results_begin(e, "quantize"))
        return -1;
    quantize_launch(first, NULL, x);
    const cuda_results *r = results_end(e, "quantize");
    if (r)
        *amax = mpsim_f32_bits(r->amax);
    return r ? 0 : -1;
}

/* NVFP4's scales of the tensor, as nvfp4_te_tensor has them. */
static int quantize_tensor(train_engine *e, gpu_quantize *g, const void *x)
{
    float whole = 0;
    if (gpu_format_set(&g->scale, mpsim_format_find("e4m3")) || quantize_amax(e, g, x, &whole))
        return -1;
    const float most = 448 * g->max / whole;
    const float encode = whole == 0 || most == 0 ? 1 : most < FLT_MAX ? most : FLT_MAX;
    g->encode = encode * (1 / g->max);
    g->decode = 1 / encode;
    return 0;
}

/* The larger of both, where it is wanted. */
static void raise(float *amax, float whole)
{
    if (amax && whole > *amax)
        *amax = whole;
}

static int quantize_run(train_engine *e, gpu_quantize *g, train_tensor *y, const train_tensor *x,
                        const train_quantize *q, float *amax)
{
    const mpsim_block_recipe *b = q->recipe;
    float whole = 0;
    if (b->rule == MPSIM_SCALE_AMAX_TE && g->rule == GPU_SCALE_ONE) {
        if (quantize_amax(e, g, at_of(x), &whole))
            return -1;
        g->factor = mpsim_fp8_scale(whole, g->max, g->epsilon, g->for_inf, g->power_of_two);
        raise(amax, whole);
        amax = NULL;
    } else if (g->rule == GPU_SCALE_ONE) {
        g->factor = q->given;
    } else if (g->rule == GPU_SCALE_NVFP4 && quantize_tensor(e, g, at_of(x))) {
        return -1;
    }
    g->amax = reinterpret_cast<unsigned *>(amax ? slot_for(e, CUDA_AMAX, amax, NULL) : NULL);
    if (amax && !g->amax)
        return -1;
    g->in_warp = g->rule != GPU_SCALE_ONE && g->block_rows == 1 && g->block_cols == (size_t)g->span;
    if (g->rule == GPU_SCALE_ONE || g->in_warp)
        quantize_launch(*g, at_of(y), at_of(x));
    else if (quantize_blocks(e, g, at_of(y), at_of(x)))
        return -1;
    y->inverse = g->codes && !q->blocks && size_of(y) ? 1 / g->factor : 1;
    return cuda_launched(e, "quantize");
}

/* Factors have a number for each block of y, and are all that is needed beside the codes. */
static int check_factors(train_engine *e, const train_quantize *q, const train_tensor *y, int rule)
{
    size_t rows, cols;
    if (!q->blocks)
        return 0;
    mpsim_block_grid(q->recipe, y->rows, y->cols, &rows, &cols);
    if (rule == GPU_SCALE_NVFP4)
        return cuda_fail(e, "quantize: %s has two scales", q->recipe->name);
    if (check_shape(e, "quantize: blocks", q->blocks, rows, cols))
        return -1;
    return check_formats(e, "quantize: blocks", q->blocks->format, mpsim_format_find("binary32"));
}

static int cuda_quantize(train_engine *e, train_tensor *y, const train_tensor *x,
                         const train_quantize *q, float *amax, train_counts *counts)
{
    gpu_quantize g;
    gpu_format element;
    int failed = 0;
    if (!q || mpsim_block_check(q->recipe))
        return cuda_fail(e, "quantize: no valid recipe");
    const mpsim_block_recipe *b = q->recipe;
    const int whole = b->block_rows == 0 && b->block_cols == 0;
    const int rule = scale_rule_of(b, whole);
    if (rule == GPU_SCALE_NONE || gpu_format_set(&element, mpsim_format_find(b->element)) ||
        (rule != GPU_SCALE_NVFP4 && (element.kind != GPU_BITS || element.inf == 0)))
        return cuda_fail(e, "quantize: the device has no kernel for recipe %s", b->name);
    if (check(e, "quantize", x) ||
        check_shape(e, "quantize", y, q->transposed ? x->cols : x->rows,
                    q->transposed ? x->rows : x->cols) ||
        check_formats(e, "quantize", y->format,
                      mpsim_format_find(whole || q->blocks ? b->element : "bf16")) ||
        check_factors(e, q, y, rule))
        return -1;
    if (y->data == x->data)
        return cuda_fail(e, "quantize: the result is the operand");
    if (b->rule == MPSIM_SCALE_GIVEN && !(q->given >= 0))
        return cuda_fail(e, "quantize: %s with scale %g", b->name, (double)q->given);
    quantize_set(&g, q, element, y, x);
    g.rule = rule;
    if (reserve_slots(e, 2))
        return -1;
    g.counts = slot_of(e, counts, &failed);
    return failed ? -1 : quantize_run(e, &g, y, x, q, amax);
}

static int cuda_hadamard(train_engine *e, train_tensor *y, const train_tensor *x, int transposed)
{
    if (check(e, "hadamard", x) ||
        check_shape(e, "hadamard", y, transposed ? x->cols : x->rows,
                    transposed ? x->rows : x->cols) ||
        check_formats(e, "hadamard", y->format, x->format))
        return -1;
    if (y->data == x->data)
        return cuda_fail(e, "hadamard: the result is the operand");
    GPU_LAUNCH(hadamard_kernel, blocks_of(y->rows * ((y->cols + 15) / 16), GPU_THREADS_ELEMENT),
               GPU_THREADS_ELEMENT, 0, format_of(y), at_of(y), at_of(x), y->rows, y->cols,
               transposed != 0);
    return wrote(e, "hadamard", y);
}

#endif
