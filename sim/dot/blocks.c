/* blocks.c -- see blocks.h. */
#include "blocks.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <stdlib.h>
#include <string.h>

/* Every element times its block's scale, as bf16: both have at most 4 significant bits. */
static void unscale(operand *o)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < o->rows; i++)
        for (size_t k = 0; k < o->depth; k++) {
            const double s = mpsim_decode(&o->scale_format, o->scales[i * o->scale_stride + k / o->block]);
            o->numbers[i * o->depth + k] =
                (uint16_t)mpsim_encode_f64(bf16, &r, mpsim_decode(&o->format, o->codes[i * o->depth + k]) * s, 0, NULL);
        }
}

int dot_operand_quantise(operand *o, const mpsim_block_recipe *recipe)
{
    const mpsim_format *scales = mpsim_block_scale_format(recipe);
    const size_t n = o->rows * o->depth;
    if (!scales || recipe->block_cols == 0 || recipe->block_cols > 128)
        return fail(EXIT_USAGE,
                    "dot: --blocks: '%s' has no scale codes along K: use mxfp8, mxfp6-e3m2, mxfp6-e2m3, mxfp4, "
                    "nvfp4 or one of their rules",
                    recipe->name);
    size_t grid_rows, grid_cols;
    float *x = need_memory(n, sizeof *x), tensor_scale = 1;
    mpsim_block_grid(recipe, o->rows, o->depth, &grid_rows, &grid_cols);
    uint8_t *codes = need_memory(grid_rows * grid_cols, 1);
    o->exact = 1;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)o->x[i];
        o->exact &= (double)x[i] == o->x[i];
        o->nonzero += o->x[i] != 0;
    }
    (void)mpsim_format_parse(&o->format, recipe->element);
    o->scale_format = *scales;
    o->codes = need_memory(n, 1);
    o->numbers = need_memory(n, sizeof *o->numbers);
    o->block = recipe->block_cols;
    o->scale_stride = grid_cols;
    o->scales = need_memory(o->rows * grid_cols, 1);
    const mpsim_rng rng = {.seed = 1};
    const mpsim_blocks out = {.codes = o->codes, .scale_codes = codes, .counts = &o->counts};
    const mpsim_status s = mpsim_block_quantize(recipe, x, o->rows, o->depth, -1, 1, &rng, &out, &tensor_scale);
    const size_t each = recipe->block_rows ? recipe->block_rows : o->rows;
    for (size_t i = 0; i < o->rows; i++)
        memcpy(o->scales + i * grid_cols, codes + i / each * grid_cols, grid_cols);
    o->scale = 1 / (double)tensor_scale;
    o->exact &= o->counts.inexact == 0;
    free(codes);
    free(x);
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "dot: --blocks: '%s': %s", recipe->name, mpsim_status_string(s));
    unscale(o);
    return 0;
}

/* ---- models ---- */

static int takes_blocks(const mpsim_model *m, const operand *a, const operand *b)
{
    return m->block == a->block && m->scales && strstr(m->scales, a->scale_format.name) &&
           strstr(m->scales, b->scale_format.name) && mpsim_model_accepts(m, &a->format, &b->format);
}

static int takes_numbers(const mpsim_model *m)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    return m->block == 0 && mpsim_model_accepts(m, bf16, bf16);
}

int dot_blocks_models(model_list *l, const operand *a, const operand *b)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        if (takes_blocks(&l->items[i], a, b) || takes_numbers(&l->items[i]))
            l->items[kept++] = l->items[i];
    l->count = kept;
    return kept ? 0
                : fail(EXIT_USAGE,
                       "dot: --blocks: none of the models takes %s in blocks of %zu with scales of %s, or bf16",
                       a->format.name, a->block, a->scale_format.name);
}

mpsim_status dot_blocks_gemm(const mpsim_model *m, const operand *a, const operand *b, size_t first, size_t depth,
                             void *d, const mpsim_pool *pool)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    if (m->block == 0) {
        const mpsim_matrix x = {bf16, a->numbers + first, a->depth, 0}, y = {bf16, b->numbers + first, b->depth, 1};
        const mpsim_rng rng = {1, 0, 0};
        return mpsim_gemm(m, a->rows, b->rows, depth, &x, &y, NULL, d, b->rows, &rng, pool);
    }
    if (first % a->block != 0) /* a part that begins within a block */
        return MPSIM_EINVAL;
    const mpsim_matrix x = {&a->format, a->codes + first, a->depth, 0}, y = {&b->format, b->codes + first, b->depth, 1};
    const mpsim_scales sx = {&a->scale_format, a->scales + first / a->block, a->scale_stride};
    const mpsim_scales sy = {&b->scale_format, b->scales + first / b->block, b->scale_stride};
    return mpsim_gemm_scaled(m, a->rows, b->rows, depth, &x, &sx, &y, &sy, NULL, d, b->rows, NULL, pool);
}
