/* blocks_launch.cuh -- which kernel of blocks.cuh, blocks_both.cuh and blocks_whole.cuh a recipe and a tensor have, and its launch (blocks.cu). */
#pragma once

#include "blocks_both.cuh"
#include "blocks_whole.cuh"

#include <mpsim/format.h>

extern "C" {
#include "../../lib/block/scale.h"
}

/* ---- recipes as kernels take them ---- */

static inline int gpu_in_one_block(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

/* The exponent field of a block's inverse, if it and the factor are powers of two; else -1. */
static inline int gpu_power_field(const mpsim_scale_env &env, float amax)
{
    const mpsim_block_scale s = mpsim_rule_block(&env, amax);
    const uint32_t factor = mpsim_bits_f32(s.factor), inverse = mpsim_bits_f32(s.inverse);
    const int field = 254 - (int)(factor >> 23), least = inverse == 1u << 22;
    return factor % (1u << 23) == 0 && field >= 0 && field < 254 &&
                   (least ? field == 0 : inverse == (uint32_t)field << 23)
               ? field
               : -1;
}

/* Whether the sums of bits give what the rule does, in some binades: at both ends, and where the exponent changes. */
static inline int gpu_power_holds(const gpu_power &p, const mpsim_scale_env &env)
{
    const uint32_t turn = (1u << 23) - p.add, places[] = {0, 1, turn - 1, turn, turn + 1, (1u << 23) - 1};
    for (const uint32_t e : {27u, 77u, 127u, 177u, 226u})
        for (const uint32_t place : places) {
            const uint32_t a = (e << 23) + place % (1u << 23);
            const int field = gpu_power_field(env, mpsim_f32_bits(a));
            const uint32_t code = mpsim_rule_block(&env, mpsim_f32_bits(a)).code;
            if (field < 0 || (((a + p.add) & 0x7f800000u) - p.low) != (uint32_t)field << 23 ||
                code != (p.has_codes ? (uint32_t)field : 0u))
                return 0;
        }
    return 1;
}

/* Scales of these rules have the exponent of amax plus a number, which is found by trying: the rule itself decides. */
static inline gpu_power gpu_power_of(mpsim_scale_env env)
{
    gpu_power p;
    const float least = (float)env.epsilon,
                zero = env.rule == MPSIM_SCALE_E8M0_DEEPGEMM || env.rule == MPSIM_SCALE_AMAX_TE ? least : 0;
    memset(&p, 0, sizeof p);
    if (env.rule == MPSIM_SCALE_GIVEN || env.rule == MPSIM_SCALE_MSAMP)
        return p;
    p.least = mpsim_bits_f32(zero);
    const int at_zero = gpu_power_field(env, 0);
    const uint32_t zero_code = mpsim_rule_block(&env, 0).code;
    env.epsilon = 0;
    const int field = gpu_power_field(env, 1);
    uint32_t low = 0, high = 1u << 23; /* the exponent of 1 + low 2^-23 is that of 1, of 1 + high 2^-23 another */
    while (high - low > 1) {
        const uint32_t mid = (low + high) / 2;
        *(gpu_power_field(env, mpsim_f32_bits(0x3f800000u + mid)) == field ? &low : &high) = mid;
    }
    p.add = (1u << 23) - high;
    p.low = (127u - (uint32_t)field) << 23;
    p.top = (254u << 23) + p.low;
    p.has_codes = mpsim_rule_block(&env, 1).code != 0;
    p.at_zero = ((uint32_t)at_zero << 23) + p.low;
    p.zero = at_zero >= 0 && zero_code == (p.has_codes ? (uint32_t)at_zero : 0u) ? 0 : -1;
    p.is = field >= 0 && gpu_power_holds(p, env);
    return p;
}

/* A recipe for matrices of `high` rows; of one with a single block all lines are one matrix. */
static inline gpu_recipe gpu_recipe_of(const mpsim_block_recipe *b, size_t lines, size_t high, size_t cols, float given,
                                       const mpsim_rng *rng)
{
    gpu_recipe q;
    const mpsim_scale_rule_row *rule = mpsim_scale_rule_at(b->rule);
    const mpsim_format *f = mpsim_format_find(b->element);
    memset(&q, 0, sizeof q);
    mpsim_scale_env_set(&q.env, b, f, given);
    q.power = gpu_power_of(q.env);
    mpsim_element_rounding(&q.rounding, b);
    q.element = *f;
    q.cast = rule->cast;
    q.over_factor = rule->dequantize == MPSIM_OVER_FACTOR;
    q.divides = rule->divides;
    q.keeps_nan = !rule->drops_nan;
    q.has_tensor = rule->has_tensor;
    q.stochastic = mpsim_is_stochastic(b->element_mode);
    q.fp4_grid = q.stochastic && rule->fp4_only && rule->cast == MPSIM_CAST_CUDA;
    q.below_half = mpsim_below_half(f);
    if (q.stochastic)
        q.rng = *rng;
    q.high = gpu_in_one_block(b) ? (lines ? lines : 1) : high ? high : 1;
    q.block_rows = b->block_rows ? b->block_rows : q.high;
    q.block_cols = b->block_cols ? b->block_cols : cols ? cols : 1;
    mpsim_block_grid(b, q.high, cols, &q.grid_rows, &q.grid_cols);
    q.blocks = cols ? lines / q.high * q.grid_rows * q.grid_cols : 0;
    return q;
}

/* ---- forms ---- */

enum gpu_blocks_way { GPU_WAY_NONE, GPU_WAY_LINE, GPU_WAY_ONE, GPU_WAY_ROWS, GPU_WAY_TILES };

/* What kernels know at compile time. */
struct gpu_blocks_form {
    int way;     /* gpu_blocks_way */
    int input;   /* gpu_input      */
    int element; /* gpu_elements   */
    int values;  /* 1: values, too */
};

enum { GPU_BLOCKS_MOST = 1056 }; /* blocks of threads of a launch */

static inline int gpu_blocks_input(const mpsim_format *f)
{
    static const char *const names[GPU_INPUTS] = {"binary32", "bf16", "fp16"};
    for (int i = 0; i < GPU_INPUTS; i++)
        if (mpsim_format_same(f, mpsim_format_find(names[i])))
            return i;
    return -1;
}

static inline int gpu_blocks_element(const gpu_recipe &q)
{
    static const char *const names[] = {"e4m3", "e5m2", "e2m1", "e3m2", "e2m3"};
    const int nearest = q.rounding.mode == MPSIM_ROUND_NEAREST_EVEN && q.cast != MPSIM_CAST_MICROX;
    for (int i = 0; i <= GPU_E2M3; i++)
        if (mpsim_format_same(&q.element, mpsim_format_find(names[i])))
            return nearest ? i : i == GPU_E2M1 && q.fp4_grid ? GPU_E2M1_RANDOM : -1;
    return -1;
}

/* Blocks in a row that have kernels. */
static inline int gpu_blocks_has(const gpu_recipe &q, int element, size_t cols)
{
    const int fp8 = element == GPU_E4M3 || element == GPU_E5M2, rule = q.env.rule;
    const int nvfp4 = rule == MPSIM_SCALE_NVFP4_TE || rule == MPSIM_SCALE_NVFP4_TORCHAO ||
                      rule == MPSIM_SCALE_NVFP4_1LEVEL;
    return (cols == 16 && nvfp4 && (element == GPU_E2M1 || element == GPU_E2M1_RANDOM)) ||
           (cols == 32 && element != GPU_E2M1_RANDOM && q.power.is) || (cols == 128 && fp8 && q.power.is) ||
           (cols == 128 && element == GPU_E4M3 && rule == MPSIM_SCALE_AMAX_DEEPSEEK);
}

static inline int gpu_is_aligned(const void *p, size_t bytes)
{
    return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

/* whole: the tensor is one block. */
static inline int gpu_blocks_way_of(const gpu_recipe &q, int element, size_t numbers, size_t rows, size_t cols,
                                    int whole)
{
    const size_t lanes = q.block_cols / numbers;
    if (rows == 0 || cols == 0 || cols % numbers)
        return GPU_WAY_NONE;
    if (whole)
        return q.has_tensor || element > GPU_E5M2 ? GPU_WAY_NONE : GPU_WAY_ONE;
    if (q.block_rows == 1 && cols % q.block_cols == 0 && gpu_blocks_has(q, element, q.block_cols) &&
        rows * cols / numbers < (size_t)1 << 31)
        return GPU_WAY_LINE;
    if (q.block_rows == 1)
        return q.block_cols == cols && element <= GPU_E5M2 ? GPU_WAY_ROWS : GPU_WAY_NONE;
    if (q.high % q.block_rows && q.high != rows)
        return GPU_WAY_NONE;
    if (q.block_rows == 16 && q.block_cols == 16 && (element == GPU_E2M1 || element == GPU_E2M1_RANDOM))
        return GPU_WAY_TILES;
    return q.block_rows == 128 && element <= GPU_E5M2 && q.block_cols % numbers == 0 && lanes <= 32 &&
                   (lanes & (lanes - 1)) == 0
               ? GPU_WAY_TILES
               : GPU_WAY_NONE;
}

/* The form for a tensor whose rows lie without gaps; way GPU_WAY_NONE: none. */
static inline gpu_blocks_form gpu_blocks_form_of(const gpu_recipe &q, const mpsim_format *f, const gpu_blocked &b,
                                                 int whole)
{
    gpu_blocks_form form = {GPU_WAY_NONE, gpu_blocks_input(f), gpu_blocks_element(q), b.to.values || b.to.halves};
    if (form.input < 0 || form.element < 0 || (form.element == GPU_E2M1_RANDOM && b.rng.index % 4))
        return form;
    if (gpu_is_aligned(b.x, 16) && gpu_is_aligned(b.to.codes, 8) && gpu_is_aligned(b.to.values, 16) &&
        gpu_is_aligned(b.to.halves, 8))
        form.way = gpu_blocks_way_of(q, form.element, form.input == GPU_INPUT_F32 ? 4 : 8, b.rows, b.cols, whole);
    return form;
}

/* Blocks of threads for a tensor. */
static inline unsigned gpu_blocks_grid(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked &b)
{
    const size_t each = 16 * size_t(GPU_BLOCKS_THREADS), wide = form.input == GPU_INPUT_F32 ? 128 : 256;
    const size_t n = b.rows * b.cols, high = q.block_rows ? q.block_rows : 1;
    size_t blocks = (n + each - 1) / each;
    if (form.way == GPU_WAY_ROWS)
        blocks = b.rows;
    if (form.way == GPU_WAY_TILES)
        blocks = (b.rows + high - 1) / high * ((b.cols + wide - 1) / wide) / (high == 16 ? 8 : 1) + 1;
    return unsigned(blocks < GPU_BLOCKS_MOST ? blocks : size_t(GPU_BLOCKS_MOST));
}

/* Whether the amax of all has to be known before. */
static inline int gpu_blocks_needs_amax(const gpu_blocks_form &form, const gpu_recipe &q)
{
    return form.way == GPU_WAY_ONE ? q.env.rule != MPSIM_SCALE_GIVEN : q.has_tensor;
}

/* Tensors of one form, list.n of them; blocks as list.end says. */
void gpu_blocks_launch(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked_list &list,
                       cudaStream_t stream);

/* The amax of each. */
void gpu_blocks_launch_amax(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked_list &list,
                            cudaStream_t stream);

/* ---- both directions ---- */

/* Whether both_blocks_kernel has the form of a transpose, whose row is a column of x. */
static inline int gpu_both_has(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_blocked &column)
{
    return form.way == GPU_WAY_LINE && q.block_cols == 32 && q.power.is && form.element <= GPU_E5M2 &&
           column.rows % (form.input == GPU_INPUT_F32 ? 4 : 8) == 0 && column.rows * column.cols < (size_t)1 << 31;
}

static inline unsigned gpu_both_grid(const gpu_blocks_form &form, const gpu_both &b)
{
    const size_t wide = 2 * (form.input == GPU_INPUT_F32 ? 32 : 64);
    const size_t blocks = (b.column.cols + 127) / 128 * ((b.column.rows + wide - 1) / wide);
    return unsigned(blocks < GPU_BLOCKS_MOST ? blocks : size_t(GPU_BLOCKS_MOST));
}

void gpu_blocks_launch_both(const gpu_blocks_form &form, const gpu_recipe &q, const gpu_both_list &list,
                            cudaStream_t stream);
