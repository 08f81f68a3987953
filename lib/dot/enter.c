/* enter.c -- operands of products: numbers of any stack, rounded, transformed, put through a block recipe; see
 * mpsim/product.h. */
#include "../base/matrix.h"
#include "entry.h"

#include <stdlib.h>

static void add_counts(mpsim_entered *to, const mpsim_entered *from)
{
    to->nonzero += from->nonzero;
    to->lost += from->lost;
    to->overflow += from->overflow;
    to->nonfinite += from->nonfinite;
}

static mpsim_status begin(mpsim_entering_work *e, const mpsim_stack *x, const mpsim_entering *how,
                          const mpsim_entry_stats *stats)
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
    e->measuring = stats && stats->amax;
    e->amax = -1;
    e->inverse = 1;
    return (how->recipe || how->hadamard || (stats && (stats->counts || stats->amax))) && !mpsim_in_binary32(e->format)
               ? MPSIM_ERANGE
               : MPSIM_OK;
}

/* The operand of codes in memory of its own. */
static void fill(mpsim_operand *o, const mpsim_entering_work *e, const mpsim_format *format, unsigned char *memory)
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

static void fill_blocks(mpsim_operand *o, const mpsim_entering_work *e)
{
    const mpsim_block_recipe *b = e->how->recipe;
    o->factors = e->factors;
    o->block_rows = b->block_rows ? b->block_rows : e->rows;
    o->block_cols = b->block_cols ? b->block_cols : e->cols;
    o->grid_rows = e->grid_rows;
    o->grid_cols = e->grid_cols;
    o->scales = e->how->use == MPSIM_BLOCKS_SCALED ? mpsim_block_scale_format(b) : NULL;
}

static void report(const mpsim_entering_work *e, const mpsim_entry_stats *stats)
{
    for (size_t i = 0; stats && i < MPSIM_PIECES; i++) {
        if (stats->counts)
            add_counts(stats->counts, &e->counts[i]);
        if (stats->casts)
            mpsim_cast_stats_merge(stats->casts, &e->casts[i]);
    }
    for (size_t i = 0; stats && stats->amax && i < MPSIM_PIECES; i++)
        *stats->amax = e->most[i] > *stats->amax ? e->most[i] : *stats->amax;
}

/* Numbers that are rounded at most. */
static mpsim_status enter_codes(mpsim_operand *o, mpsim_entering_work *e, const mpsim_pool *pool)
{
    unsigned char *kept;
    mpsim_status s = mpsim_entry_allocate(e, &kept, mpsim_format_code_bytes(e->format));
    if (s)
        return s;
    mpsim_pieces(pool, e->lines, 1, (double)e->cols, mpsim_encode_lines, e);
    s = mpsim_entry_error(e);
    if (s)
        free(kept);
    else
        fill(o, e, e->format, kept);
    return s;
}

/* Numbers that are rounded, and transformed or counted as values. */
static mpsim_status enter_rounded(mpsim_entering_work *e, unsigned char **kept, const mpsim_pool *pool)
{
    const mpsim_status s = mpsim_entry_allocate(e, kept, mpsim_format_code_bytes(e->format));
    e->multiplied = e->format;
    if (!s)
        mpsim_pieces(pool, e->lines, 1, (double)e->cols, mpsim_round_lines, e);
    return s ? s : mpsim_entry_error(e);
}

static mpsim_status enter_values(mpsim_operand *o, mpsim_entering_work *e, const mpsim_entry_stats *stats,
                                 const mpsim_pool *pool)
{
    unsigned char *kept = NULL;
    const mpsim_status s = e->how->recipe ? mpsim_enter_recipe(e, &kept, pool) : enter_rounded(e, &kept, pool);
    if (s) {
        free(kept);
        return s;
    }
    report(e, stats);
    fill(o, e, e->multiplied, kept);
    if (e->factors)
        fill_blocks(o, e);
    return MPSIM_OK;
}

static mpsim_status new_casts(mpsim_entering_work *e)
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
    mpsim_entering_work e;
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
    mpsim_entering_work e;
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
