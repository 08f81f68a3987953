/* entryrecipe.c -- numbers that a recipe quantises as they enter: see entry.h. */
#include "../round/scalar.h"
#include "entry.h"

#include <math.h>
#include <mpsim/layer.h>

#include <stdlib.h>

enum { SOME = 1024 }; /* numbers that are decoded at once */

/* Some lines that have whole blocks of their own, or parts of the one block. */
typedef struct quantising {
    mpsim_entering_work *e;
    size_t first; /* line of all */
    size_t unit;
} quantising;

/* What a recipe did to n numbers from `at` on, which are `values` now; NULL: their codes. */
static void count_quantised(mpsim_entering_work *e, size_t piece, size_t at, size_t n, const float *given,
                            const float *values, const mpsim_counts *cast)
{
    mpsim_entered *to = &e->counts[piece];
    to->nonzero += mpsim_count_numbers(given, n).nonzero;
    to->lost += cast->underflow;
    to->overflow += cast->overflow;
    for (size_t k = 0; k < n; k += SOME) {
        const size_t some = n - k < SOME ? n - k : SOME;
        float decoded[SOME];
        if (!values)
            mpsim_decode_array_f32(e->multiplied, decoded, e->codes + at + k, some);
        to->nonfinite += some - mpsim_count_numbers(values ? values + k : decoded, some).finite;
    }
}

/* The values as bf16. */
static mpsim_status keep_values(mpsim_entering_work *e, size_t at, size_t n, float *values)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_status s = mpsim_encode_array_f32(e->multiplied, &r, NULL, e->codes + 2 * at, values, n, NULL);
    return s || !e->counting ? s : mpsim_round_array_f32(e->multiplied, &r, NULL, values, values, n, NULL);
}

/* The first block of a batch of lines, counted over all matrices. */
static size_t block_of(const quantising *q, size_t line)
{
    const mpsim_entering_work *e = q->e;
    const size_t high = e->how->recipe->block_rows, matrix = e->rows ? q->first / e->rows : 0;
    return matrix * e->grid_rows * e->grid_cols + (high ? (line - matrix * e->rows) / high * e->grid_cols : 0);
}

/* Where a recipe puts what it makes of the lines from `line` on. */
static mpsim_blocks places(const quantising *q, size_t piece, size_t line, float *values, float *inverse)
{
    mpsim_entering_work *e = q->e;
    const size_t at = line * e->cols, block = block_of(q, line);
    mpsim_blocks out = {.casts = e->casts ? &e->casts[piece] : NULL, .values = values};
    out.codes = mpsim_enters_as_codes(e) ? e->codes + at : NULL;
    if (mpsim_in_one_block(e->how->recipe) && e->has_amax)
        out.block_amax = &e->amax;
    if (e->scale_codes)
        out.scale_codes = e->scale_codes + block;
    else if (e->factors)
        out.inverses = e->factors + block;
    else if (out.codes)
        out.inverses = inverse;
    return out;
}

static void quantise_batch(mpsim_entering_work *e, size_t piece, size_t first, size_t n, const float *given,
                           const void *more)
{
    const quantising *q = (const quantising *)more;
    const size_t at = first * e->cols, all = n * e->cols;
    const int as_bf16 = !mpsim_enters_as_codes(e) && e->how->use != MPSIM_BLOCKS_AS_NUMBERS;
    float *own = as_bf16 ? (float *)malloc(all * sizeof(float) + 1) : NULL, inverse = 1;
    float *values = as_bf16 ? own : mpsim_enters_as_codes(e) ? NULL : (float *)(void *)e->codes + at;
    mpsim_counts cast = {0, 0, 0, 0, 0};
    mpsim_rng rng = e->how->rng;
    rng.index += at;
    if (as_bf16 && !own) {
        e->status[piece] = MPSIM_ENOMEM;
        return;
    }
    mpsim_measure_most(e, piece, given, all);
    mpsim_blocks out = places(q, piece, first, values, all ? &inverse : NULL);
    out.counts = e->counting ? &cast : NULL;
    e->status[piece] = mpsim_block_quantize(e->how->recipe, given, n, e->cols, e->amax, e->how->given, &rng, &out,
                                            e->scale_codes ? &inverse : NULL);
    if (first == 0)
        e->inverse = inverse;
    if (!e->status[piece] && as_bf16)
        e->status[piece] = keep_values(e, at, all, own);
    if (!e->status[piece] && e->counting)
        count_quantised(e, piece, at, all, given, values, &cast);
    free(own);
}

static void quantise_lines(void *job, size_t piece, size_t from, size_t n)
{
    const quantising *q = (const quantising *)job;
    mpsim_each_batch(q->e, piece, q->first + from, n, q->unit, quantise_batch, q);
}

/* The larger magnitude, as bits: NaNs are the largest. */
static float larger(float a, float b)
{
    return mpsim_bits_f32(a) > mpsim_bits_f32(b) ? a : b;
}

/* The largest magnitude, NaN where there is one and the rule keeps that. */
static float amax_of(const mpsim_block_recipe *b, const float *x, size_t n)
{
    float most = mpsim_amax(x, n);
    if (b->rule == MPSIM_SCALE_NVFP4_TORCHAO && mpsim_count_numbers(x, n).finite < n)
        for (size_t i = 0; i < n; i++)
            most = larger(fabsf(x[i]), most);
    return most;
}

/* The largest magnitude of a tensor, from which its scale comes. */
static void amax_batch(mpsim_entering_work *e, size_t piece, size_t first, size_t n, const float *values,
                       const void *more)
{
    const mpsim_block_recipe *b = e->how->recipe;
    const float so_far = e->most[piece];
    float most = 0;
    (void)first;
    (void)more;
    mpsim_blocks out = {.amax = &most, .block_amax = &so_far};
    if (mpsim_in_one_block(b))
        e->status[piece] = mpsim_block_quantize(b, values, n, e->cols, -1, e->how->given, &e->how->rng, &out, NULL);
    else
        most = larger(amax_of(b, values, n * e->cols), so_far);
    e->most[piece] = most;
}

static void amax_lines(void *job, size_t piece, size_t first, size_t n)
{
    mpsim_each_batch((mpsim_entering_work *)job, piece, first, n, 1, amax_batch, NULL);
}

/* Lines that a piece must have whole; 0: all. A tensor of one batch is no work for several. */
static size_t lines_of_piece(const mpsim_entering_work *e)
{
    const mpsim_block_recipe *b = e->how->recipe;
    if (mpsim_in_one_block(b))
        return e->lines * e->cols > MPSIM_ENTRY_BATCH;
    if (b->rule == MPSIM_SCALE_GIVEN)
        return b->block_rows ? b->block_rows : 1;
    return b->block_rows;
}

/* The amax of all lines, as the rule sees it. */
static void find_amax(mpsim_entering_work *e, const mpsim_pool *pool)
{
    mpsim_pieces(pool, e->lines, 1, (double)e->cols, amax_lines, e);
    e->amax = 0;
    for (size_t i = 0; i < MPSIM_PIECES; i++)
        e->amax = larger(e->most[i], e->amax);
    e->has_amax = 1;
    memset(e->most, 0, sizeof e->most);
    if (e->room)
        e->values = e->room;
}

/* Whether the scale of a tensor comes from all its lines, which pieces share. */
static int needs_amax(const mpsim_entering_work *e, size_t unit)
{
    const mpsim_scale_rule rule = (mpsim_scale_rule)e->how->recipe->rule;
    if (mpsim_in_one_block(e->how->recipe))
        return unit && rule != MPSIM_SCALE_GIVEN;
    return rule == MPSIM_SCALE_NVFP4_TE || rule == MPSIM_SCALE_NVFP4_TORCHAO;
}

/* Room for all values, which are worth keeping where they are read twice. */
static mpsim_status keep_room(mpsim_entering_work *e)
{
    if (e->values || !(e->how->hadamard || mpsim_lies_across(e) || mpsim_is_wide(e)))
        return MPSIM_OK;
    e->room = (float *)malloc(e->lines * e->cols * sizeof(float) + 1);
    return e->room ? MPSIM_OK : MPSIM_ENOMEM;
}

/* Blocks end with their matrix: all lines are one where that makes no difference. */
static mpsim_status quantise(mpsim_entering_work *e, const mpsim_pool *pool)
{
    const mpsim_block_recipe *b = e->how->recipe;
    const size_t unit = lines_of_piece(e);
    const int together = mpsim_in_one_block(b) || (b->block_rows && e->rows % b->block_rows == 0);
    const size_t n = together ? e->lines : e->rows;
    mpsim_status s = MPSIM_OK;
    if (needs_amax(e, unit)) {
        s = keep_room(e);
        if (!s)
            find_amax(e, pool);
        s = s ? s : mpsim_entry_error(e);
    }
    for (size_t first = 0; first < e->lines && !s; first += n) {
        quantising q = {e, first, unit};
        mpsim_pieces(pool, n, unit, (double)e->cols, quantise_lines, &q);
    }
    s = s ? s : mpsim_entry_error(e);
    const mpsim_format *scales = e->scale_codes ? mpsim_block_scale_format(b) : NULL;
    return s || !scales ? s
                        : mpsim_decode_array_f32(scales, e->factors, e->scale_codes,
                                                 e->lines / (e->rows ? e->rows : 1) * e->grid_rows * e->grid_cols);
}

/* x itself, where it is an array of values that nothing changes. */
static int are_values(const mpsim_entering_work *e)
{
    int64_t step = (int64_t)e->cols;
    if (e->rounds || e->how->hadamard || !mpsim_is_f32(e->x->format) || (e->steps.col != 1 && e->cols > 1) ||
        (e->steps.row != step && e->rows > 1))
        return 0;
    step *= (int64_t)e->rows;
    for (uint32_t i = e->outer.rank; i-- > 0; step *= (int64_t)e->outer.shape[i])
        if (e->outer.shape[i] > 1 && e->steps.outer[i] != step)
            return 0;
    return 1;
}

/* Whether a recipe can be followed; its element format. */
static mpsim_status check_recipe(const mpsim_entering *how, const mpsim_format **element)
{
    const mpsim_block_recipe *b = how->recipe;
    if (mpsim_block_check(b) != MPSIM_OK || how->use > MPSIM_BLOCKS_AS_NUMBERS)
        return MPSIM_EINVAL;
    if (how->use == MPSIM_BLOCKS_SCALED && !mpsim_in_one_block(b) && !mpsim_block_scale_format(b))
        return MPSIM_EINVAL;
    *element = mpsim_format_find(b->element);
    return *element ? MPSIM_OK : MPSIM_EINVAL;
}

/* What is multiplied of a recipe's blocks. */
static const mpsim_format *multiplied(const mpsim_entering_work *e, const mpsim_format *element)
{
    return mpsim_enters_as_codes(e) ? element
                                    : mpsim_format_find(e->how->use == MPSIM_BLOCKS_AS_NUMBERS ? "binary32" : "bf16");
}

/* Memory for what a recipe makes. */
static mpsim_status prepare(mpsim_entering_work *e, unsigned char **kept)
{
    const mpsim_block_recipe *b = e->how->recipe;
    const mpsim_format *element;
    mpsim_status s = check_recipe(e->how, &element);
    if (s)
        return s;
    e->multiplied = multiplied(e, element);
    if (!mpsim_in_one_block(b) && mpsim_enters_as_codes(e))
        mpsim_block_grid(b, e->rows, e->cols, &e->grid_rows, &e->grid_cols);
    s = mpsim_entry_allocate(e, kept, mpsim_format_code_bytes(e->multiplied));
    if (s || !e->factors || e->how->use != MPSIM_BLOCKS_SCALED)
        return s;
    e->scale_codes = (uint8_t *)malloc(e->lines / (e->rows ? e->rows : 1) * e->grid_rows * e->grid_cols + 1);
    return e->scale_codes ? MPSIM_OK : MPSIM_ENOMEM;
}

mpsim_status mpsim_enter_recipe(mpsim_entering_work *e, unsigned char **kept, const mpsim_pool *pool)
{
    mpsim_status s = prepare(e, kept);
    e->values = are_values(e) ? (const float *)e->x->codes : NULL;
    if (!s)
        s = quantise(e, pool);
    free(e->scale_codes);
    free(e->room);
    return s;
}
