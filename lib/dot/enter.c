/* enter.c -- operands of products: numbers of any stack, rounded, transformed, put through a block recipe; see
 * mpsim/product.h. */
#include "../base/environment.h"
#include "../base/matrix.h"
#include "panel.h"
#include "pieces.h"
#include "stack.h"

#include <mpsim/layer.h>
#include <mpsim/recipe.h>

#include <stdlib.h>

/* What enters, and what has been made of it. */
typedef struct entering {
    const mpsim_stack *x;
    const mpsim_entering *how;
    const mpsim_format *format; /* rounded to                         */
    int rounds;                 /* 0: they are such numbers           */
    mpsim_rounding rounding;
    mpsim_outer outer;
    mpsim_steps steps;
    size_t rows, cols, lines; /* of a matrix; of all                  */
    int counting, measuring;
    /* results: */
    unsigned char *codes; /* of `format`, or of the recipe's elements */
    float *values;        /* what the recipe is given, or NULL        */
    float *factors;       /* of blocks, or NULL                       */
    uint8_t *scale_codes; /* the same as codes, or NULL               */
    float amax, inverse;  /* of NVFP4, or -1                          */
    size_t grid_rows, grid_cols;
    mpsim_status status[MPSIM_PIECES];
    mpsim_entered counts[MPSIM_PIECES];
    mpsim_cast_stats *casts; /* MPSIM_PIECES of them, or NULL           */
} entering;

static int in_one_block(const mpsim_block_recipe *b)
{
    return b->block_rows == 0 && b->block_cols == 0;
}

static void add_counts(mpsim_entered *to, const mpsim_entered *from)
{
    to->nonzero += from->nonzero;
    to->lost += from->lost;
    to->overflow += from->overflow;
    to->nonfinite += from->nonfinite;
}

/* ---- a line: its numbers, rounded ---- */

static int is_wide(const entering *e)
{
    return !mpsim_in_binary32(e->x->format);
}

/* Where line i of all begins. */
static int64_t line_at(const entering *e, size_t i)
{
    return mpsim_matrix_at(&e->outer, &e->steps, i / e->rows) + (int64_t)(i % e->rows) * e->steps.row;
}

enum { SOME = 1024 };

/* n numbers of a line from column k on, rounded, as values. */
static mpsim_status values_of(const entering *e, float *to, int64_t at, size_t k, size_t n, mpsim_counts *counts)
{
    double wide[SOME];
    mpsim_status s = MPSIM_OK;
    at += (int64_t)k * e->steps.col;
    if (!is_wide(e)) {
        mpsim_read_f32(to, e->x->format, e->x->codes, at, e->steps.col, n);
        return e->rounds ? mpsim_round_array_f32(e->format, &e->rounding, NULL, to, to, n, counts) : MPSIM_OK;
    }
    mpsim_read_f64(wide, e->x->format, e->x->codes, at, e->steps.col, n);
    if (e->rounds)
        s = mpsim_round_array_f64(e->format, &e->rounding, NULL, wide, wide, n, counts);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)wide[i];
    return s;
}

/* The same, as codes. */
static mpsim_status codes_of(const entering *e, void *to, int64_t at, size_t k, size_t n)
{
    union {
        float f32[SOME];
        double f64[SOME];
    } v;
    at += (int64_t)k * e->steps.col;
    if (!e->rounds) {
        mpsim_read_codes(to, e->x->codes, mpsim_format_code_bytes(e->format), at, e->steps.col, n);
        return MPSIM_OK;
    }
    if (is_wide(e)) {
        mpsim_read_f64(v.f64, e->x->format, e->x->codes, at, e->steps.col, n);
        return mpsim_encode_array_f64(e->format, &e->rounding, NULL, to, v.f64, n, NULL);
    }
    mpsim_read_f32(v.f32, e->x->format, e->x->codes, at, e->steps.col, n);
    return mpsim_encode_array_f32(e->format, &e->rounding, NULL, to, v.f32, n, NULL);
}

/* The errors of rounding what stands in a line. */
static mpsim_status measure(const entering *e, mpsim_cast_stats *c, int64_t at, size_t k, size_t n)
{
    double x[SOME];
    mpsim_read_f64(x, e->x->format, e->x->codes, at + (int64_t)k * e->steps.col, e->steps.col, n);
    return mpsim_cast_stats_add(c, e->format, &e->rounding, NULL, x, n);
}

/* What rounding did to n numbers that are `after` now. */
static void count(const entering *e, mpsim_entered *to, const float *after, int64_t at, size_t k, size_t n,
                  const mpsim_counts *cast)
{
    float before[SOME];
    if (is_wide(e)) {
        double wide[SOME];
        mpsim_read_f64(wide, e->x->format, e->x->codes, at + (int64_t)k * e->steps.col, e->steps.col, n);
        for (size_t i = 0; i < n; i++) /* finite numbers that are not zero stay so */
            before[i] = wide[i] == 0 ? 0.0F : wide[i] - wide[i] == 0 ? 1.0F : (float)(wide[i] - wide[i]);
    } else {
        mpsim_read_f32(before, e->x->format, e->x->codes, at + (int64_t)k * e->steps.col, e->steps.col, n);
    }
    to->nonzero += mpsim_count_numbers(before, n).nonzero;
    to->nonfinite += n - mpsim_count_numbers(after, n).finite;
    to->lost += cast->underflow;
    to->overflow += cast->overflow;
}

/* ---- pieces: lines first to first + n - 1 ---- */

static void encode_lines(void *job, size_t piece, size_t first, size_t n)
{
    entering *e = (entering *)job;
    const size_t bytes = mpsim_format_code_bytes(e->format);
    for (size_t i = first; i < first + n && !e->status[piece]; i++) {
        const int64_t at = line_at(e, i);
        for (size_t k = 0; k < e->cols && !e->status[piece]; k += SOME)
            e->status[piece] = codes_of(e, e->codes + (i * e->cols + k) * bytes, at, k,
                                        e->cols - k < SOME ? e->cols - k : SOME);
    }
}

static mpsim_status value_line(entering *e, size_t piece, size_t i, float *to)
{
    const int counting = e->counting && !e->how->recipe;
    const int64_t at = line_at(e, i);
    mpsim_status s = MPSIM_OK;
    for (size_t k = 0; k < e->cols && !s; k += SOME) {
        const size_t n = e->cols - k < SOME ? e->cols - k : SOME;
        mpsim_counts cast = {0, 0, 0, 0, 0};
        s = values_of(e, to + k, at, k, n, counting ? &cast : NULL);
        if (!s && counting)
            count(e, &e->counts[piece], to + k, at, k, n, &cast);
        if (!s && e->casts && !e->how->recipe)
            s = measure(e, &e->casts[piece], at, k, n);
    }
    return s;
}

static mpsim_status transform(const entering *e, float *line)
{
    const mpsim_status s = mpsim_hadamard_groups(line, e->cols, e->how->hadamard, 0);
    return s ? s : mpsim_round_array_f32(e->format, &e->rounding, NULL, line, line, e->cols, NULL);
}

static void value_lines(void *job, size_t piece, size_t first, size_t n)
{
    entering *e = (entering *)job;
    const mpsim_environment before = mpsim_environment_default();
    const size_t bytes = mpsim_format_code_bytes(e->format);
    for (size_t i = first; i < first + n && !e->status[piece]; i++) {
        float *line = e->values + i * e->cols;
        e->status[piece] = value_line(e, piece, i, line);
        if (!e->status[piece] && e->how->hadamard)
            e->status[piece] = transform(e, line);
        if (!e->status[piece] && !e->how->recipe)
            e->status[piece] = mpsim_encode_array_f32(e->format, &e->rounding, NULL, e->codes + i * e->cols * bytes,
                                                      line, e->cols, NULL);
    }
    mpsim_environment_restore(before);
}

/* ---- recipes ---- */

/* Some lines that have whole blocks of their own. */
typedef struct quantising {
    entering *e;
    size_t first; /* line of all */
    size_t block_rows;
} quantising;

/* What is multiplied of blocks. */
static int has_codes(const entering *e)
{
    return in_one_block(e->how->recipe) || e->how->use != MPSIM_BLOCKS_AS_VALUES;
}

static void count_quantised(entering *e, size_t piece, size_t at, size_t n, const float *values,
                            const mpsim_counts *cast)
{
    mpsim_entered *to = &e->counts[piece];
    to->nonzero += mpsim_count_numbers(e->values + at, n).nonzero;
    to->lost += cast->underflow;
    to->overflow += cast->overflow;
    for (size_t k = 0; k < n; k += SOME) {
        const size_t some = n - k < SOME ? n - k : SOME;
        float decoded[SOME];
        if (!values)
            mpsim_decode_array_f32(e->format, decoded, e->codes + at + k, some);
        to->nonfinite += some - mpsim_count_numbers(values ? values + k : decoded, some).finite;
    }
}

/* The values as bf16. */
static mpsim_status keep_values(entering *e, size_t piece, size_t at, size_t n, float *values, const mpsim_counts *cast)
{
    const mpsim_format *bf16 = e->format;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_status s = mpsim_encode_array_f32(bf16, &r, NULL, e->codes + 2 * at, values, n, NULL);
    if (!s && e->counting) {
        s = mpsim_round_array_f32(bf16, &r, NULL, values, values, n, NULL);
        count_quantised(e, piece, at, n, values, cast);
    }
    return s;
}

static void quantise_lines(void *job, size_t piece, size_t from, size_t n)
{
    const quantising *q = (const quantising *)job;
    entering *e = q->e;
    const mpsim_block_recipe *b = e->how->recipe;
    const size_t first = q->first + from, at = first * e->cols, all = n * e->cols;
    const size_t block = q->first / e->rows * e->grid_rows * e->grid_cols +
                         (q->block_rows ? (first - q->first / e->rows * e->rows) / q->block_rows * e->grid_cols : 0);
    const int codes = has_codes(e);
    float *values = codes ? NULL : (float *)malloc(all * sizeof(float) + 1), inverse = 1;
    mpsim_counts cast = {0, 0, 0, 0, 0};
    mpsim_rng rng = e->how->rng;
    rng.index += at;
    mpsim_blocks out = {.counts = e->counting ? &cast : NULL, .casts = e->casts ? &e->casts[piece] : NULL};
    if (!codes && !values) {
        e->status[piece] = MPSIM_ENOMEM;
        return;
    }
    out.codes = codes ? e->codes + at : NULL;
    out.values = values;
    if (e->scale_codes)
        out.scale_codes = e->scale_codes + block;
    else if (e->factors)
        out.inverses = e->factors + block;
    else if (codes && all)
        out.inverses = &inverse;
    const mpsim_environment before = mpsim_environment_default();
    e->status[piece] = mpsim_block_quantize(b, e->values + at, n, e->cols, e->amax, e->how->given, &rng, &out,
                                            e->scale_codes ? &inverse : NULL);
    if (first == 0)
        e->inverse = inverse;
    if (!e->status[piece] && !codes)
        e->status[piece] = keep_values(e, piece, at, all, values, &cast);
    else if (!e->status[piece] && e->counting)
        count_quantised(e, piece, at, all, NULL, &cast);
    mpsim_environment_restore(before);
    free(values);
}

/* Lines of a piece that is whole: of blocks whose scales are their own, or the caller's. 0: all lines. */
static size_t lines_of_piece(const mpsim_block_recipe *b)
{
    if (b->rule == MPSIM_SCALE_GIVEN)
        return b->block_rows ? b->block_rows : 1;
    return b->rule == MPSIM_SCALE_NVFP4_TORCHAO ? 0 : b->block_rows;
}

static mpsim_status first_error(const entering *e)
{
    for (size_t i = 0; i < MPSIM_PIECES; i++)
        if (e->status[i])
            return e->status[i];
    return MPSIM_OK;
}

/* Blocks end with their matrix: all lines are one where that makes no difference. */
static mpsim_status quantise(entering *e, const mpsim_pool *pool)
{
    const mpsim_block_recipe *b = e->how->recipe;
    const size_t unit = lines_of_piece(b);
    const int together = in_one_block(b) || (b->block_rows && e->rows % b->block_rows == 0);
    const size_t n = together ? e->lines : e->rows;
    if (b->rule == MPSIM_SCALE_NVFP4_TE || (b->rule == MPSIM_SCALE_NVFP4_TORCHAO && !together))
        e->amax = mpsim_amax(e->values, e->lines * e->cols);
    for (size_t first = 0; first < e->lines; first += n) {
        quantising q = {e, first, b->block_rows};
        mpsim_pieces(pool, n, unit, (double)e->cols, quantise_lines, &q);
    }
    const mpsim_status s = first_error(e);
    const mpsim_format *scales = e->scale_codes ? mpsim_block_scale_format(b) : NULL;
    return s || !scales ? s
                        : mpsim_decode_array_f32(scales, e->factors, e->scale_codes,
                                                 e->lines / (e->rows ? e->rows : 1) * e->grid_rows * e->grid_cols);
}

/* ---- memory ---- */

/* Parts of one piece of memory, each as C asks. */
static size_t part(size_t *at, size_t bytes)
{
    const size_t from = *at;
    *at += (bytes + 63) / 64 * 64;
    return from;
}

/* The codes and, of blocks, factors: what stays. Others are e's own. */
static mpsim_status allocate(entering *e, unsigned char **kept, size_t bytes)
{
    const size_t n = e->lines * e->cols, blocks = (e->rows ? e->lines / e->rows : 0) * e->grid_rows * e->grid_cols;
    size_t at = 0;
    const size_t codes = part(&at, n * bytes), factors = part(&at, blocks * sizeof(float));
    *kept = (unsigned char *)malloc(at + 1);
    if (!*kept)
        return MPSIM_ENOMEM;
    e->codes = *kept + codes;
    e->factors = blocks ? (float *)(void *)(*kept + factors) : NULL;
    return MPSIM_OK;
}

/* x itself, where it is an array of values that nothing changes. */
static int are_values(const entering *e)
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

/* ---- the whole ---- */

/* Whether a recipe can be followed; its element format. */
static mpsim_status check_recipe(const mpsim_entering *how, const mpsim_format **element)
{
    const mpsim_block_recipe *b = how->recipe;
    if (mpsim_block_check(b) != MPSIM_OK || how->use > MPSIM_BLOCKS_SCALED)
        return MPSIM_EINVAL;
    if (how->use == MPSIM_BLOCKS_SCALED && !in_one_block(b) && !mpsim_block_scale_format(b))
        return MPSIM_EINVAL;
    *element = mpsim_format_find(b->element);
    return *element ? MPSIM_OK : MPSIM_EINVAL;
}

static mpsim_status begin(entering *e, const mpsim_stack *x, const mpsim_entering *how, const mpsim_entry_stats *stats)
{
    if (!how || !mpsim_is_stack(x, 0) || how->mode >= MPSIM_ROUND_MODES || how->mode >= MPSIM_ROUND_STOCHASTIC_A)
        return MPSIM_EINVAL;
    if (how->format && mpsim_format_check(how->format) != MPSIM_OK)
        return MPSIM_EINVAL;
    if (how->hadamard && how->hadamard != 16 && how->hadamard != 32 && how->hadamard != 64 && how->hadamard != 128)
        return MPSIM_EINVAL;
    e->x = x;
    e->how = how;
    e->format = how->format ? how->format : x->format;
    e->rounds = !mpsim_format_same(e->format, x->format);
    mpsim_rounding_init(&e->rounding, (mpsim_round_mode)how->mode);
    e->outer = mpsim_outer_of(x);
    for (uint32_t i = 0; i < e->outer.rank; i++)
        if (x->strides[i] == 0 && x->shape[i])
            e->outer.shape[i] = 1;
    mpsim_stack collapsed = *x;
    memcpy(collapsed.shape, e->outer.shape, e->outer.rank * sizeof collapsed.shape[0]);
    (void)mpsim_steps_in(&e->steps, &collapsed, &e->outer);
    e->rows = mpsim_stack_rows(x);
    e->cols = mpsim_stack_cols(x);
    e->lines = e->cols ? mpsim_outer_count(&e->outer) * e->rows : 0; /* without elements nothing is gone through */
    e->counting = stats && stats->counts;
    e->amax = -1;
    e->inverse = 1;
    return (how->recipe || how->hadamard || (stats && (stats->counts || stats->amax))) && !mpsim_in_binary32(e->format)
               ? MPSIM_ERANGE
               : MPSIM_OK;
}

/* The operand of codes in memory of its own. */
static void fill(mpsim_operand *o, const entering *e, const mpsim_format *format, unsigned char *memory)
{
    const mpsim_stack *x = e->x;
    int64_t step = (int64_t)(e->rows * e->cols);
    mpsim_operand_init(o, x, NULL, MPSIM_ROUND_NEAREST_EVEN);
    o->stack.format = o->format = format;
    o->stack.codes = e->codes;
    o->memory = memory;
    o->inverse = e->inverse;
    o->stack.strides[x->rank - 1] = 1;
    o->stack.strides[x->rank - 2] = (int64_t)e->cols;
    for (uint32_t i = e->outer.rank; i-- > 0; step *= (int64_t)e->outer.shape[i])
        o->stack.strides[i] = e->outer.shape[i] == 1 ? 0 : step;
}

static void fill_blocks(mpsim_operand *o, const entering *e)
{
    const mpsim_block_recipe *b = e->how->recipe;
    o->factors = e->factors;
    o->block_rows = b->block_rows ? b->block_rows : e->rows;
    o->block_cols = b->block_cols ? b->block_cols : e->cols;
    o->grid_rows = e->grid_rows;
    o->grid_cols = e->grid_cols;
    o->scales = e->how->use == MPSIM_BLOCKS_SCALED ? mpsim_block_scale_format(b) : NULL;
}

static void report(const entering *e, const mpsim_entry_stats *stats)
{
    for (size_t i = 0; stats && i < MPSIM_PIECES; i++) {
        if (stats->counts)
            add_counts(stats->counts, &e->counts[i]);
        if (stats->casts)
            mpsim_cast_stats_merge(stats->casts, &e->casts[i]);
    }
    if (stats && stats->amax && e->values) {
        const float most = mpsim_amax(e->values, e->lines * e->cols);
        *stats->amax = most > *stats->amax ? most : *stats->amax;
    }
}

/* Numbers that are rounded at most. */
static mpsim_status enter_codes(mpsim_operand *o, entering *e, const mpsim_pool *pool)
{
    unsigned char *kept;
    mpsim_status s = allocate(e, &kept, mpsim_format_code_bytes(e->format));
    if (s)
        return s;
    mpsim_pieces(pool, e->lines, 1, (double)e->cols, encode_lines, e);
    s = first_error(e);
    if (s)
        free(kept);
    else
        fill(o, e, e->format, kept);
    return s;
}

/* Numbers of which there are values first. */
static mpsim_status enter_values(mpsim_operand *o, entering *e, const mpsim_entry_stats *stats, const mpsim_pool *pool)
{
    const mpsim_block_recipe *b = e->how->recipe;
    const mpsim_format *element = NULL, *multiplied = e->format;
    unsigned char *kept = NULL;
    float *own = NULL;
    mpsim_status s = b ? check_recipe(e->how, &element) : MPSIM_OK;
    const int in_place = !s && b && are_values(e);
    if (!s && b) {
        multiplied = has_codes(e) ? element : mpsim_format_find("bf16");
        if (!in_one_block(b) && has_codes(e))
            mpsim_block_grid(b, e->rows, e->cols, &e->grid_rows, &e->grid_cols);
    }
    if (!s)
        s = allocate(e, &kept, mpsim_format_code_bytes(multiplied));
    if (!s && !in_place) {
        own = (float *)malloc(e->lines * e->cols * sizeof(float) + 1);
        s = own ? MPSIM_OK : MPSIM_ENOMEM;
    }
    e->values = in_place ? (float *)e->x->codes : own;
    if (!s && !in_place)
        mpsim_pieces(pool, e->lines, 1, (double)e->cols, value_lines, e);
    if (!s)
        s = first_error(e);
    if (!s && b && e->factors && e->how->use == MPSIM_BLOCKS_SCALED) {
        e->scale_codes = (uint8_t *)malloc(e->lines / (e->rows ? e->rows : 1) * e->grid_rows * e->grid_cols + 1);
        s = e->scale_codes ? MPSIM_OK : MPSIM_ENOMEM;
    }
    if (!s && b) {
        e->format = multiplied;
        s = quantise(e, pool);
    }
    free(e->scale_codes);
    if (!s) {
        report(e, stats);
        fill(o, e, multiplied, kept);
        if (e->factors)
            fill_blocks(o, e);
    }
    free(own);
    if (s)
        free(kept);
    return s;
}

static mpsim_status new_casts(entering *e)
{
    e->casts = (mpsim_cast_stats *)malloc(MPSIM_PIECES * sizeof *e->casts);
    for (size_t i = 0; e->casts && i < MPSIM_PIECES; i++)
        mpsim_cast_stats_init(&e->casts[i]);
    return e->casts ? MPSIM_OK : MPSIM_ENOMEM;
}

void mpsim_operand_init(mpsim_operand *o, const mpsim_stack *x, const mpsim_format *format, mpsim_round_mode mode)
{
    const mpsim_operand plain = {
        .stack = *x, .format = format ? format : x->format, .mode = (uint8_t)mode, .inverse = 1};
    *o = plain;
}

mpsim_status mpsim_operand_enter(mpsim_operand *o, const mpsim_stack *x, const mpsim_entering *how,
                                 const mpsim_entry_stats *stats, const mpsim_pool *pool)
{
    const int wanted = stats && (stats->amax || stats->counts || stats->casts);
    entering e;
    memset(&e, 0, sizeof e);
    if (!o || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    mpsim_status s = begin(&e, x, how, stats);
    if (s)
        return s;
    if (!how->recipe && !how->hadamard && !wanted && !e.rounds) {
        mpsim_operand_init(o, x, NULL, MPSIM_ROUND_NEAREST_EVEN);
        return MPSIM_OK;
    }
    if (stats && stats->casts)
        s = new_casts(&e);
    if (!s)
        s = how->recipe || how->hadamard || wanted ? enter_values(o, &e, stats, pool) : enter_codes(o, &e, pool);
    free(e.casts);
    return s;
}

mpsim_status mpsim_operand_copy(mpsim_operand *o, const mpsim_stack *x, const mpsim_pool *pool)
{
    const mpsim_entering how = {.mode = MPSIM_ROUND_NEAREST_EVEN};
    entering e;
    memset(&e, 0, sizeof e);
    const mpsim_status s = begin(&e, x, &how, NULL);
    return s ? s : enter_codes(o, &e, pool);
}

void mpsim_operand_free(mpsim_operand *o)
{
    if (o)
        free(o->memory);
    if (o)
        o->memory = NULL;
}

mpsim_status mpsim_operand_turn(mpsim_operand *turned, const mpsim_operand *o)
{
    if (!turned || !o || o->factors)
        return MPSIM_EINVAL;
    mpsim_stack *s = &turned->stack;
    const uint32_t r = o->stack.rank;
    *turned = *o;
    turned->memory = NULL;
    s->shape[r - 2] = o->stack.shape[r - 1];
    s->shape[r - 1] = o->stack.shape[r - 2];
    s->strides[r - 2] = o->stack.strides[r - 1];
    s->strides[r - 1] = o->stack.strides[r - 2];
    return MPSIM_OK;
}
