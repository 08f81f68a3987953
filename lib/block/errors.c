/* errors.c -- see errors.h: what is done once for many elements, or for few. */
#include "errors.h"

#include "../stats/sum.h"

#include <math.h>
#include <string.h>

/* 1.5 * 2^(52 + e) */
static double start_of(int e)
{
    return mpsim_f64_bits(((uint64_t)(52 + e + 1023) << 52) | (uint64_t)1 << 51);
}

static int unit_of(const mpsim_block_errors *e, int level)
{
    return e->top - (level + 1) * MPSIM_ERROR_STEP;
}

static void empty(mpsim_block_errors *e)
{
    for (int i = 0; i < MPSIM_ERROR_LEVELS; i++) {
        const int64_t start = (int64_t)mpsim_bits_f64(start_of(unit_of(e, i)));
        int64_t units = 0;
        for (int half = 0; half < 2; half++)
            for (int lane = 0; lane < MPSIM_ERROR_LANES; lane++)
                units += (int64_t)mpsim_bits_f64(e->level[i][half][lane]) - start;
        const mpsim_wide size = {0, (uint64_t)(units < 0 ? -units : units)};
        if (units)
            mpsim_sum_add_integer(&e->to->sum_squared_error, units < 0, size, unit_of(e, i));
    }
}

void mpsim_block_errors_move(mpsim_block_errors *e, int top)
{
    if (e->additions)
        empty(e);
    e->additions = 0;
    e->top = top;
    for (int i = 0; i < MPSIM_ERROR_LEVELS; i++)
        for (int half = 0; half < 2; half++)
            for (int lane = 0; lane < MPSIM_ERROR_LANES; lane++)
                e->level[i][half][lane] = start_of(unit_of(e, i));
}

/* Two numbers below the largest relative error: the product with |x|, rounded, stays below what is
 * larger. */
static void settle_relative(mpsim_block_errors *e)
{
    const double m = e->to->max_rel_err;
    float f = (float)m;
    if (m > 0 && (double)f >= m)
        f = mpsim_f32_bits(mpsim_bits_f32(f) - 1);
    e->relative = m > 0 ? mpsim_f32_bits(mpsim_bits_f32(f) - 1) : 0;
}

void mpsim_block_errors_begin(mpsim_block_errors *e, mpsim_cast_stats *to)
{
    e->to = to;
    e->additions = 0;
    settle_relative(e);
    mpsim_block_errors_move(e, 0);
}

void mpsim_block_errors_one(mpsim_block_errors *e, float x, float value)
{
    e->to->compared--;
    mpsim_cast_stats_add_values(e->to, &x, &value, 1);
    settle_relative(e);
}

void mpsim_block_errors_relative(mpsim_block_errors *e, float x, float d)
{
    const double ratio = fabs((double)d) / fabs((double)x);
    if (!(ratio > e->to->max_rel_err))
        return;
    e->to->max_rel_err = ratio;
    settle_relative(e);
}

void mpsim_block_errors_rest(mpsim_block_errors *e, const double *rest, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rest[i] != 0)
            mpsim_sum_add(&e->to->sum_squared_error, rest[i]);
}
