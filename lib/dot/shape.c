/* shape.c -- see shape.h. */
#include "shape.h"

#include "dot.h"
#include "panel.h"

static int is_operand(const mpsim_operand *o)
{
    return o && mpsim_is_stack(&o->stack, 0) && mpsim_format_check(o->format) == MPSIM_OK &&
           o->mode < MPSIM_ROUND_STOCHASTIC_A && (!o->factors || (o->block_rows && o->block_cols));
}

/* Blocks of both, of one depth; with scales if the model has them. */
static mpsim_status check_factors(const mpsim_product *w, size_t depth)
{
    const mpsim_operand *a = w->a, *b = w->b;
    if (!a->factors != !b->factors)
        return MPSIM_EINVAL;
    if (!a->factors)
        return MPSIM_OK;
    const size_t blocks = depth ? (depth - 1) / a->block_cols + 1 : 0;
    if (a->block_cols != b->block_cols || !a->scales != !b->scales || a->grid_cols < blocks || b->grid_cols < blocks ||
        !a->scales != !w->model->block || w->rng)
        return MPSIM_EINVAL;
    if (!a->scales)
        return w->start || !mpsim_is_f32(&w->model->result.format) ? MPSIM_EINVAL : MPSIM_OK;
    const mpsim_scales sa = {a->scales, a->factors, a->grid_cols}, sb = {b->scales, b->factors, b->grid_cols};
    const mpsim_status s = a->block_cols == w->model->block ? mpsim_scales_check(w->model, &sa) : MPSIM_EINVAL;
    return s ? s : mpsim_scales_check(w->model, &sb);
}

static mpsim_status check_results(const mpsim_product *w, int wide)
{
    const mpsim_stack *addends[2] = {w->bias, w->add};
    if ((w->numbers && mpsim_format_check(w->numbers) != MPSIM_OK) ||
        (w->start && (!mpsim_is_stack(w->start, 0) || !mpsim_format_same(w->start->format, &w->model->result.format))))
        return MPSIM_EINVAL;
    for (size_t i = 0; i < 2; i++)
        if (addends[i] && !mpsim_is_stack(addends[i], 0))
            return MPSIM_EINVAL;
    for (size_t i = 0; i < 2; i++)
        if (addends[i] && !wide && !mpsim_in_binary32(addends[i]->format))
            return MPSIM_ERANGE;
    return MPSIM_OK;
}

int mpsim_is_within(const mpsim_format *f, const mpsim_format *g)
{
    return mpsim_format_same(f, g) || (f->mbits <= g->mbits && mpsim_format_last_bit(f) >= mpsim_format_last_bit(g) &&
                                       mpsim_format_max(f) <= mpsim_format_max(g) && f->inf <= g->inf);
}

static mpsim_status set_steps(mpsim_product_shape *s, const mpsim_product *w)
{
    (void)mpsim_steps_in(&s->d, w->d, &s->outer);
    if ((w->bias && !mpsim_steps_across(&s->bias, w->bias, &s->outer, s->rows, s->columns)) ||
        (w->add && !mpsim_steps_across(&s->add, w->add, &s->outer, s->rows, s->columns)) ||
        (w->start && !mpsim_steps_across(&s->start, w->start, &s->outer, s->rows, s->columns)))
        return MPSIM_EINVAL;
    return MPSIM_OK;
}

static mpsim_status set_sizes(mpsim_product_shape *s, const mpsim_product *w)
{
    s->outer = mpsim_outer_of(w->d);
    s->matrices = mpsim_outer_count(&s->outer);
    s->rows = mpsim_stack_rows(w->d);
    s->columns = mpsim_stack_cols(w->d);
    s->depth = mpsim_stack_cols(&w->a->stack);
    if (mpsim_stack_rows(&w->a->stack) != s->rows || mpsim_stack_rows(&w->b->stack) != s->columns ||
        mpsim_stack_cols(&w->b->stack) != s->depth)
        return MPSIM_EINVAL;
    if (w->depth_limit && w->depth_limit < s->depth)
        s->depth = w->depth_limit;
    s->numbers = w->numbers ? w->numbers : w->d->format;
    s->wide = !mpsim_in_binary32(&w->model->result.format);
    return MPSIM_OK;
}

mpsim_status mpsim_product_shape_of(mpsim_product_shape *s, const mpsim_product *w)
{
    memset(s, 0, sizeof *s);
    if (!w || !is_operand(w->a) || !is_operand(w->b) || !mpsim_is_stack(w->d, 1))
        return MPSIM_EINVAL;
    mpsim_status status = mpsim_dot_check(w->model, w->a->format, w->b->format, w->rng);
    if (!status)
        status = set_sizes(s, w);
    if (!status)
        status = check_factors(w, s->depth);
    if (!status)
        status = check_results(w, s->wide);
    if (!status && !mpsim_is_within(s->numbers, w->d->format))
        status = MPSIM_ERANGE;
    return status ? status : set_steps(s, w);
}
