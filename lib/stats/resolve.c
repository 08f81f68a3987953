/* resolve.c -- what cells say of an array and of its casts; see cells.h. */
#include "cells.h"

#include "../base/counts.h"

/* The binary64 of a significand in a binade. */
static double value_of(uint32_t key, uint32_t sig)
{
    return (double)mpsim_f32_bits(key << 23 | (sig & 0x7fffff));
}

/* ---- the array ---- */

static void note_extremes(mpsim_stats *to, double min, double max)
{
    if (max > to->amax)
        to->amax = max;
    if (to->amin == 0 || min < to->amin)
        to->amin = min;
}

static void stats_of_cell(const mpsim_cell *c, uint32_t key, int sums, mpsim_stats *to)
{
    const int unit = (int)key - 150;
    to->count += c->n;
    if (c->max)
        note_extremes(to, value_of(key, c->min), value_of(key, c->max));
    if (!sums)
        return;
    mpsim_sum_add_integer(&to->sum, 0, (mpsim_wide){0, c->sum[0]}, unit);
    mpsim_sum_add_integer(&to->sum, 1, (mpsim_wide){0, c->sum[1]}, unit);
    mpsim_sum_add_integer(&to->sum_squares, 0, c->squares, 2 * unit);
}

void mpsim_cells_stats(const mpsim_cells *m, int sums, mpsim_stats *to)
{
    for (size_t i = 0; i < m->n_used; i++) {
        const mpsim_cell *c = mpsim_cells_of(m, m->used[i]);
        for (uint32_t k = 0; k < m->binades[m->used[i]].cells; k++)
            if (c[k].n)
                stats_of_cell(&c[k], m->used[i], sums, to);
    }
    if (m->max)
        note_extremes(to, (double)mpsim_f32_bits(m->min), (double)mpsim_f32_bits(m->max));
    to->count += m->zero + m->inf + m->nan;
    to->zero += m->zero;
    to->inf += m->inf;
    to->nan += m->nan;
}

void mpsim_cells_histogram(const mpsim_cells *m, mpsim_histogram *to)
{
    for (size_t i = 0; i < m->n_used; i++) {
        const uint32_t key = m->used[i];
        for (uint32_t k = 0; k < m->binades[key].cells; k++)
            to->bin[(int)key - 127 - MPSIM_HISTOGRAM_MIN] += mpsim_cells_of(m, key)[k].n;
    }
    to->zero += m->zero;
    to->inf += m->inf;
    to->nan += m->nan;
}

/* ---- a cast ---- */

static void raise_error(mpsim_cast_stats *to, double error, double of)
{
    if (error / of > to->max_rel_err)
        to->max_rel_err = error / of;
}

/* Elements beyond the largest number become it: with M = `largest`, the sum of (x - M)^2 is that of x^2
 * less 2 M times that of x and n M^2 more. */
static void saturated(const mpsim_target *t, const mpsim_cell *c, uint32_t key, mpsim_cast_stats *to)
{
    const double max = value_of(key, c->max);
    const int unit = (int)key - 150, exp = t->largest_exp;
    mpsim_sum *sum = &to->sum_squared_error;
    double largest = 0;
    mpsim_sum_add_integer(sum, 0, c->squares, 2 * unit);
    if (mpsim_target_excess(t, (int)key) == MPSIM_EXCESS_EXACT) {
        mpsim_sum_add_integer(sum, 1, mpsim_wide_product(c->sum[0] + c->sum[1], t->largest), unit + exp + 1);
        mpsim_sum_add_integer(sum, 0, mpsim_wide_product(c->n, t->largest * t->largest), 2 * exp);
        largest = mpsim_number_to_f64(mpsim_number_make(0, t->largest, exp));
    }
    to->compared += c->n;
    raise_error(to, max - largest, max);
}

/* How many elements of the cell are smaller than `word`. */
static uint64_t below(const mpsim_cells *m, const mpsim_cell *c, uint32_t key, uint32_t word)
{
    const mpsim_binade *b = &m->binades[key];
    uint32_t i = 0;
    if (word <= c->from)
        return 0;
    if (word >= c->below)
        return c->n;
    while (m->cuts[b->first_cut + i] != word)
        i++;
    return c->n - c->reached[i];
}

/* Elements that are rounded within the range of the format. */
static void rounded(const mpsim_cells *m, const mpsim_target *t, const mpsim_cell *c, uint32_t key, int errors,
                    mpsim_cast_stats *to)
{
    const int drop = mpsim_target_drop(t, (int)key), unit = (int)key - 150;
    const uint64_t zero = below(m, c, key, t->least), small = below(m, c, key, t->normal);
    to->counts.underflow += zero;
    to->counts.subnormal += small - zero;
    to->compared += errors ? c->n : 0;
    if (drop <= 0)
        return;
    to->counts.inexact += c->n - c->exact[drop];
    if (!errors)
        return;
    const mpsim_drop *d = &c->drops[t->kind][drop];
    mpsim_sum_add_integer(&to->sum_squared_error, 0, d->squares, 2 * unit);
    raise_error(to, (double)d->largest.error, (double)d->largest.sig);
}

static void cast_of_cell(const mpsim_cells *m, const mpsim_target *t, const mpsim_cell *c, uint32_t key, int errors,
                         mpsim_cast_stats *to)
{
    const int unit = (int)key - 150;
    if (c->below > t->least && c->from < t->over) {
        rounded(m, t, c, key, errors, to);
        return;
    }
    to->counts.inexact += c->n;
    if (c->below <= t->least) {
        to->counts.underflow += c->n;
        if (!errors)
            return;
        to->compared += c->n;
        mpsim_sum_add_integer(&to->sum_squared_error, 0, c->squares, 2 * unit);
        raise_error(to, 1, 1);
        return;
    }
    to->counts.overflow += c->n;
    if (errors && t->saturates)
        saturated(t, c, key, to);
    else if (errors)
        mpsim_sum_add_integer(&to->sum_squares_left_out, 0, c->squares, 2 * unit);
}

void mpsim_cells_casts(const mpsim_cells *m, int errors, mpsim_cast_stats *to)
{
    for (size_t i = 0; i < m->n_targets; i++) {
        const mpsim_target *t = &m->targets[i];
        mpsim_cast_stats *cast = &to[t->index];
        for (size_t u = 0; u < m->n_used; u++) {
            const uint32_t key = m->used[u];
            const mpsim_binade *b = &m->binades[key];
            const mpsim_cell *c = mpsim_cells_of(m, key);
            if (b->left && mpsim_target_leaves(t, (int)key))
                continue;
            for (uint32_t k = 0; k < b->cells; k++)
                if (c[k].n)
                    cast_of_cell(m, t, &c[k], key, errors, cast);
        }
        cast->counts.nan += m->nan;
        cast->compared += errors ? m->zero : 0;
    }
}
