/* cell.c -- elements into one cell; see cells.h. */
#include "cells.h"

enum { FEW = 6 }; /* elements that are quicker one by one */

/* A little less than the largest relative error: by more than its rounding and that of a product with a significand. */
static float bound_of(const mpsim_drop *d)
{
    return (float)d->largest.error / (float)d->largest.sig * (1 - 0x1p-20f);
}

static void note_ratio(mpsim_drop *d, mpsim_ratio r)
{
    if ((uint64_t)r.error * d->largest.sig > (uint64_t)d->largest.error * r.sig)
        d->largest = r;
}

static void begin_cell(mpsim_cells *m, uint32_t key, mpsim_cell *c)
{
    const mpsim_binade *b = &m->binades[key];
    const mpsim_cell *first = mpsim_cells_of(m, key);
    int known = 0;
    for (uint32_t i = 0; i < b->cells; i++)
        known |= first[i].n != 0;
    if (!known)
        m->used[m->n_used++] = key;
    c->sum[0] = c->sum[1] = 0;
    c->squares = (mpsim_wide){0, 0};
    c->min = ~0u;
    c->max = 0;
    for (int d = 1; d < MPSIM_DROPS; d++) {
        if (b->exact >> d & 1)
            c->exact[d] = 0;
        for (int kind = 0; kind < MPSIM_CELL_KINDS; kind++)
            if (b->drops >> (MPSIM_DROPS * kind + d) & 1)
                c->drops[kind][d] = (mpsim_drop){{0, 0}, {0, 1}};
    }
    for (uint32_t i = 0; i < b->cuts; i++)
        c->reached[i] = 0;
}

/* The lowest set bit of u, as a number from 0; u is not 0. */
static int lowest(uint64_t u)
{
    return 63 - mpsim_clz64(u & -u);
}

/* Drops that follow one another are summed together. */
static void sum_drops(const mpsim_cell_loops *loops, const mpsim_binade *b, mpsim_cell *c, const uint32_t *sig,
                      size_t n)
{
    for (uint64_t left = b->drops; left;) {
        const int bit = lowest(left), kind = bit / MPSIM_DROPS, drop = bit % MPSIM_DROPS;
        mpsim_drop *d = &c->drops[kind][drop];
        mpsim_drop_sums sums[MPSIM_CHAIN];
        float bound[MPSIM_CHAIN];
        int count = 0;
        for (; count < MPSIM_CHAIN && drop + count < MPSIM_DROPS && left >> (bit + count) & 1; count++) {
            bound[count] = bound_of(&d[count]);
            left &= ~((uint64_t)1 << (bit + count));
        }
        loops->drops[kind](sums, sig, n, drop, count, bound);
        for (int i = 0; i < count; i++) {
            mpsim_wide_add(&d[i].squares, (mpsim_wide){0, sums[i].squares});
            if (sums[i].raises)
                loops->raise[kind](&d[i].largest, sig, n, drop + i);
        }
    }
}

/* Add n words of one cell and sign, each as often as its weight says. */
void mpsim_cell_add_weighted(mpsim_cells *m, uint32_t key, mpsim_cell *c, const uint32_t *words,
                             const uint64_t *weights, size_t n)
{
    const mpsim_binade *b = &m->binades[key];
    if (c->n == 0 && n)
        begin_cell(m, key, c);
    for (size_t i = 0; i < n; i++) {
        const uint32_t sig = (words[i] & 0x7fffff) | 0x800000;
        const uint64_t w = weights[i];
        c->n += w;
        c->sum[words[i] >> 31] += w * sig;
        mpsim_wide_add(&c->squares, mpsim_wide_product((uint64_t)sig * sig, w));
        c->min = sig < c->min ? sig : c->min;
        c->max = sig > c->max ? sig : c->max;
        for (uint32_t left = b->exact; left; left &= left - 1) {
            const int d = lowest(left);
            if (sig & (((uint32_t)1 << d) - 1))
                break;
            c->exact[d] += w;
        }
        for (uint64_t left = b->drops; left; left &= left - 1) {
            const int bit = lowest(left), kind = bit / MPSIM_DROPS, drop = bit % MPSIM_DROPS;
            const uint32_t unit = (uint32_t)1 << drop, rest = sig & (unit - 1);
            const uint32_t error = kind == MPSIM_CELL_NEAREST && rest > unit / 2 ? unit - rest : rest;
            mpsim_drop *d = &c->drops[kind][drop];
            if (error == 0)
                continue;
            mpsim_wide_add(&d->squares, mpsim_wide_product((uint64_t)error * error, w));
            note_ratio(d, (mpsim_ratio){error, sig});
        }
        for (uint32_t k = 0; k < b->cuts; k++)
            c->reached[k] += (words[i] & 0x7fffffff) >= m->cuts[b->first_cut + k] ? w : 0;
    }
}

void mpsim_cell_add_counted(mpsim_cells *m, uint32_t key, mpsim_cell *c, uint32_t from, int zeros, uint64_t n)
{
    const mpsim_binade *b = &m->binades[key];
    if (c->n == 0)
        begin_cell(m, key, c);
    c->n += n;
    for (uint32_t left = b->exact; left && lowest(left) <= zeros; left &= left - 1)
        c->exact[lowest(left)] += n;
    for (uint32_t i = 0; i < b->cuts; i++) {
        const uint32_t cut = m->cuts[b->first_cut + i] & 0x7fffff;
        c->reached[i] += cut == 1 ? (zeros < 23 ? n : 0) : cut <= from ? n : 0;
    }
}

/* Add n words of one cell and sign; they become significands. */
void mpsim_cell_add(mpsim_cells *m, uint32_t key, mpsim_cell *c, uint32_t *words, size_t n)
{
    const mpsim_cell_loops *loops = m->loops;
    const mpsim_binade *b = &m->binades[key];
    static const uint64_t ones[FEW] = {1, 1, 1, 1, 1, 1};
    mpsim_cell_sums s;
    if (n <= FEW) {
        mpsim_cell_add_weighted(m, key, c, words, ones, n);
        return;
    }
    if (c->n == 0)
        begin_cell(m, key, c);
    const int sign = (int)(words[0] >> 31);
    loops->sums(&s, words, n, (b->exact & -b->exact) - 1);
    c->n += n;
    c->sum[sign] += s.sum;
    mpsim_wide_add(&c->squares, (mpsim_wide){0, s.squares});
    c->min = s.min < c->min ? s.min : c->min;
    c->max = s.max > c->max ? s.max : c->max;
    if (s.low == 0)
        for (uint32_t left = b->exact; left; left &= left - 1) {
            const int d = lowest(left);
            const size_t exact = n - loops->with_bits(words, n, ((uint32_t)1 << d) - 1);
            c->exact[d] += exact;
            if (exact == 0)
                break;
        }
    sum_drops(loops, b, c, words, n);
    for (uint32_t i = 0; i < b->cuts; i++) {
        const uint32_t cut = m->cuts[b->first_cut + i];
        const uint32_t sig = (cut & 0x7fffff) | 0x800000;
        if (cut <= c->from || cut >= c->below || s.max < sig)
            continue;
        c->reached[i] += s.min >= sig ? n : loops->at_least(words, n, sig);
    }
}

void mpsim_cell_merge(mpsim_cells *m, uint32_t key, mpsim_cell *to, const mpsim_cell *from)
{
    const mpsim_binade *b = &m->binades[key];
    if (from->n == 0)
        return;
    if (to->n == 0)
        begin_cell(m, key, to);
    to->n += from->n;
    to->sum[0] += from->sum[0];
    to->sum[1] += from->sum[1];
    mpsim_wide_add(&to->squares, from->squares);
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
    for (int d = 1; d < MPSIM_DROPS; d++) {
        if (b->exact >> d & 1)
            to->exact[d] += from->exact[d];
        for (int kind = 0; kind < MPSIM_CELL_KINDS; kind++) {
            if (!(b->drops >> (MPSIM_DROPS * kind + d) & 1))
                continue;
            mpsim_wide_add(&to->drops[kind][d].squares, from->drops[kind][d].squares);
            note_ratio(&to->drops[kind][d], from->drops[kind][d].largest);
        }
    }
    for (uint32_t i = 0; i < b->cuts; i++)
        to->reached[i] += from->reached[i];
}
