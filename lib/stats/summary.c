/* summary.c -- one pass for everything; see mpsim/summary.h.
 *
 * Casts that have a target (target.h) are answered by cells (cells.h), codes of few bits are counted
 * first (codes.h). All else goes the plain way, block by block through the functions of mpsim/stats.h,
 * which is also what the scalar instruction set does with everything. */
#include <mpsim/summary.h>

#include "../base/extent.h"
#include "../base/counts.h"
#include "bins.h"
#include "cells.h"
#include "codes.h"
#include "differences.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, COUNTED = 8192, BINNED = 65536, NEAR = 1 << 15 };
/* COUNTED, BINNED: codes, elements that are worth counting; NEAR: elements that stay in the cache */

struct mpsim_summary {
    mpsim_format *formats;
    mpsim_cast *casts;
    size_t n_casts;
    unsigned want;
    int begun;
    size_t *others; /* casts without a target */
    size_t n_others, n_stochastic;
    mpsim_cells cells;
    mpsim_code_counts codes;
    mpsim_bins bins;
    mpsim_cells errors; /* of other casts, one at a time: no targets */
    /* the plain way */
    int plain;           /* stats, histogram are in use */
    unsigned char *used; /* results[i] is in use        */
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats *results;
};

/* ---- life ---- */

static void free_casts(mpsim_summary *s)
{
    free(s->formats);
    free(s->casts);
    free(s->others);
    free(s->used);
    free(s->results);
    s->formats = NULL;
    s->casts = NULL;
    s->others = NULL;
    s->used = NULL;
    s->results = NULL;
}

mpsim_summary *mpsim_summary_new(void)
{
    return calloc(1, sizeof(mpsim_summary));
}

void mpsim_summary_free(mpsim_summary *s)
{
    if (!s)
        return;
    free_casts(s);
    free(s->codes.counts);
    free(s->bins.job.bins);
    mpsim_cells_free(&s->cells);
    mpsim_cells_free(&s->errors);
    free(s);
}

static int same_cast(const mpsim_cast *a, const mpsim_cast *b)
{
    const mpsim_rounding *x = &a->rounding, *y = &b->rounding;
    return memcmp(x, y, offsetof(mpsim_rounding, flush_output) + 1) == 0 && x->scale == y->scale &&
           x->flush_below == y->flush_below && mpsim_format_same(a->format, b->format);
}

static int same_casts(const mpsim_summary *s, const mpsim_cast *casts, size_t n, unsigned want)
{
    if (!s->begun || s->n_casts != n || s->want != want)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!same_cast(&s->casts[i], &casts[i]))
            return 0;
    return 1;
}

static void forget_plain(mpsim_summary *s)
{
    if (s->plain) {
        mpsim_stats_init(&s->stats);
        mpsim_histogram_init(&s->histogram);
    }
    for (size_t i = 0; i < s->n_casts; i++)
        if (s->used[i]) {
            mpsim_cast_stats_init(&s->results[i]);
            s->used[i] = 0;
        }
    s->plain = 0;
}

/* Copy the casts and give each a target, if it can have one. */
static mpsim_status take_casts(mpsim_summary *s, const mpsim_cast *casts, size_t n)
{
    mpsim_target *targets = malloc((n + 1) * sizeof *targets);
    size_t n_targets = 0;
    free_casts(s);
    s->formats = malloc((n + 1) * sizeof *s->formats);
    s->casts = malloc((n + 1) * sizeof *s->casts);
    s->others = malloc((n + 1) * sizeof *s->others);
    s->used = calloc(n + 1, 1);
    s->results = calloc(n + 1, sizeof *s->results);
    if (!targets || !s->formats || !s->casts || !s->others || !s->used || !s->results) {
        free(targets);
        return MPSIM_ENOMEM;
    }
    s->n_casts = n;
    s->n_others = s->n_stochastic = 0;
    for (size_t i = 0; i < n; i++) {
        s->formats[i] = *casts[i].format;
        s->casts[i] = (mpsim_cast){&s->formats[i], casts[i].rounding};
        s->n_stochastic += (size_t)mpsim_is_stochastic(casts[i].rounding.mode);
        if (mpsim_target_init(&targets[n_targets], &casts[i], i, n_targets ? &targets[n_targets - 1] : NULL))
            n_targets++;
        else
            s->others[s->n_others++] = i;
    }
    const mpsim_status status = mpsim_cells_plan(&s->cells, targets, n_targets, (s->want & MPSIM_SUMMARY_ERRORS) != 0);
    if (status != MPSIM_OK || s->n_others == 0 || s->errors.cells)
        return status;
    return mpsim_cells_plan(&s->errors, NULL, 0, 0);
}

static mpsim_cells_leave leave;
static mpsim_cells_repeat repeat;

mpsim_status mpsim_summary_begin(mpsim_summary *s, const mpsim_cast *casts, size_t n, unsigned want)
{
    if (!s)
        return MPSIM_EINVAL;
    if (want & ~(unsigned)(MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS | MPSIM_SUMMARY_HISTOGRAM))
        return MPSIM_EINVAL;
    const int same = casts && same_casts(s, casts, n, want);
    s->begun = 0;
    if ((n && !casts) || !mpsim_fits(n, sizeof *casts))
        return MPSIM_EINVAL;
    mpsim_code_counts_forget(&s->codes);
    mpsim_bins_forget(&s->bins);
    for (size_t i = 0; i < n && !same; i++)
        if (mpsim_format_check(casts[i].format) != MPSIM_OK || mpsim_rounding_check(&casts[i].rounding) != MPSIM_OK)
            return MPSIM_EINVAL;
    if (same) {
        mpsim_cells_forget(&s->cells);
        forget_plain(s);
    } else {
        s->want = want;
        s->plain = 0;
        mpsim_stats_init(&s->stats);
        mpsim_histogram_init(&s->histogram);
        const mpsim_status status = take_casts(s, casts, n);
        if (status != MPSIM_OK)
            return status;
        mpsim_bins_plan(&s->bins, &s->cells);
        s->cells.leave = leave;
        s->cells.repeat = repeat;
        s->cells.context = s;
    }
    s->begun = 1;
    return MPSIM_OK;
}

/* ---- the plain way ---- */

/* What a cast does to n elements; its arguments were checked. */
static void apply_cast(const mpsim_summary *s, size_t i, const mpsim_rng *rng, const double *x, size_t n,
                       mpsim_cast_stats *to)
{
    double y[BLOCK];
    const mpsim_cast *c = &s->casts[i];
    if (s->want & MPSIM_SUMMARY_ERRORS)
        (void)mpsim_cast_stats_add(to, c->format, &c->rounding, rng, x, n);
    else
        (void)mpsim_round_array_f64(c->format, &c->rounding, rng, y, x, n, &to->counts);
}

static void add_cast(mpsim_summary *s, size_t i, const mpsim_rng *rng, const double *x, size_t n)
{
    s->used[i] = 1;
    apply_cast(s, i, rng, x, n, &s->results[i]);
}

/* x[i] * scale, rounded, of n <= BLOCK binary32 numbers. */
static void round_block(const mpsim_cast *c, const mpsim_rng *rng, double *q, const float *x, const double *wide,
                        size_t n, mpsim_counts *counts)
{
    float y[BLOCK];
    const mpsim_rounding *r = &c->rounding;
    if ((r->flush_input && r->flush_below == 0) || /* depends on the type */
        mpsim_round_array_f32(c->format, r, rng, y, x, n, counts) != MPSIM_OK) {
        (void)mpsim_round_array_f64(c->format, r, rng, q, wide, n, counts);
        return;
    }
    for (size_t k = 0; k < n; k++)
        q[k] = (double)y[k];
}

/* The same as add_cast of binary32 numbers at any alignment. Errors that are binary32 numbers go to cells,
 * which sum their squares. */
static mpsim_status add_other(mpsim_summary *s, const mpsim_cell_loops *loops, size_t i, const mpsim_rng *rng,
                              const void *from, size_t n)
{
    float x[BLOCK], left[BLOCK];
    double wide[BLOCK], q[BLOCK];
    mpsim_rng at = rng ? *rng : (mpsim_rng){0, 0, 0};
    mpsim_stats squares = {0};
    mpsim_cast_stats *to = &s->results[i];
    mpsim_status status = MPSIM_OK;
    s->used[i] = 1;
    for (size_t k = 0; k < n && status == MPSIM_OK; k += BLOCK) {
        const size_t m = n - k < BLOCK ? n - k : BLOCK;
        memcpy(x, (const unsigned char *)from + k * sizeof *x, m * sizeof *x);
        for (size_t j = 0; j < m; j++)
            wide[j] = (double)x[j];
        round_block(&s->casts[i], rng ? &at : NULL, q, x, wide, m, &to->counts);
        at.index += m;
        if (!(s->want & MPSIM_SUMMARY_ERRORS))
            continue;
        const size_t few = mpsim_cast_stats_differences(to, s->casts[i].rounding.scale, wide, q, m, left);
        status = mpsim_cells_add(&s->errors, loops, left, few);
    }
    mpsim_cells_settle(&s->errors);
    mpsim_cells_stats(&s->errors, 1, &squares);
    mpsim_cells_forget(&s->errors);
    mpsim_sum_merge(&to->sum_squared_error, &squares.sum_squares);
    return status;
}

static void add_array(mpsim_summary *s, const double *x, size_t n)
{
    s->plain = 1;
    mpsim_stats_add(&s->stats, x, n);
    if (s->want & MPSIM_SUMMARY_HISTOGRAM)
        mpsim_histogram_add(&s->histogram, x, n);
}

/* What a cast does to `times` elements x: what it does to one, so many times. */
static void repeat_cast(mpsim_summary *s, size_t i, double x, uint64_t times)
{
    mpsim_cast_stats one = {0}, *to = &s->results[i];
    apply_cast(s, i, NULL, &x, 1, &one);
    s->used[i] = 1;
    to->counts.inexact += times * one.counts.inexact;
    to->counts.underflow += times * one.counts.underflow;
    to->counts.subnormal += times * one.counts.subnormal;
    to->counts.overflow += times * one.counts.overflow;
    to->counts.nan += times * one.counts.nan;
    to->compared += times * one.compared;
    to->max_rel_err = one.max_rel_err > to->max_rel_err ? one.max_rel_err : to->max_rel_err;
    mpsim_sum_add_times(&to->sum_squared_error, &one.sum_squared_error, times);
    mpsim_sum_add_times(&to->sum_squares_left_out, &one.sum_squares_left_out, times);
}

/* The same of the array. */
static void repeat_array(mpsim_summary *s, double x, uint64_t times)
{
    mpsim_stats one = {0}, *to = &s->stats;
    mpsim_stats_add(&one, &x, 1);
    s->plain = 1;
    to->count += times;
    to->zero += times * one.zero;
    to->nan += times * one.nan;
    to->inf += times * one.inf;
    to->amax = one.amax > to->amax ? one.amax : to->amax;
    to->amin = one.amin != 0 && (to->amin == 0 || one.amin < to->amin) ? one.amin : to->amin;
    mpsim_sum_add_times(&to->sum, &one.sum, times);
    mpsim_sum_add_times(&to->sum_squares, &one.sum_squares, times);
    if (s->want & MPSIM_SUMMARY_HISTOGRAM)
        mpsim_histogram_repeat(&s->histogram, x, times);
}

/* What cells leave of which is known how often it occurs. */
static void repeat(void *context, const mpsim_target *target, uint32_t word, uint64_t times)
{
    mpsim_summary *s = context;
    const double x = (double)mpsim_f32_bits(word);
    if (target) {
        repeat_cast(s, target->index, x, times);
        return;
    }
    repeat_array(s, x, times);
    for (size_t k = 0; k < s->cells.n_targets; k++)
        repeat_cast(s, s->cells.targets[k].index, x, times);
}

/* What cells leave. */
static void leave(void *context, const mpsim_target *target, const uint32_t *words, size_t n)
{
    mpsim_summary *s = context;
    double x[BLOCK];
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        for (size_t k = 0; k < m; k++)
            x[k] = (double)mpsim_f32_bits(words[i + k]);
        if (target) {
            add_cast(s, target->index, NULL, x, m);
            continue;
        }
        add_array(s, x, m);
        for (size_t k = 0; k < s->cells.n_targets; k++)
            add_cast(s, s->cells.targets[k].index, NULL, x, m);
    }
}

/* Codes by their values, block by block: the array and all casts, or those without a target alone. */
static void add_plain(mpsim_summary *s, const mpsim_format *f, const mpsim_rng *rng, const void *codes, size_t n,
                      int all)
{
    double x[BLOCK];
    const size_t bytes = mpsim_format_code_bytes(f);
    mpsim_rng at = rng ? *rng : (mpsim_rng){0, 0, 0};
    for (size_t i = 0; i < n && (all || s->n_others); i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        (void)mpsim_decode_array(f, x, (const unsigned char *)codes + i * bytes, m);
        if (all)
            add_array(s, x, m);
        for (size_t k = 0; k < (all ? s->n_casts : s->n_others); k++)
            add_cast(s, all ? k : s->others[k], rng ? &at : NULL, x, m);
        at.index += m;
    }
}

/* ---- adding ---- */

static mpsim_status add_others(mpsim_summary *s, const mpsim_cell_loops *loops, const mpsim_rng *rng, const void *x,
                               size_t n)
{
    mpsim_rng at = rng ? *rng : (mpsim_rng){0, 0, 0};
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < n && s->n_others; i += NEAR) {
        const size_t m = n - i < NEAR ? n - i : NEAR;
        for (size_t k = 0; k < s->n_others && status == MPSIM_OK; k++)
            status = add_other(s, loops, s->others[k], rng ? &at : NULL, (const unsigned char *)x + i * sizeof(float),
                               m);
        at.index += m;
    }
    return status;
}

static mpsim_status add_binary32(mpsim_summary *s, const mpsim_rng *rng, const void *x, size_t n)
{
    const mpsim_cell_loops *loops = mpsim_cells_loops();
    const int counts = !(s->want & (MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS)) && s->bins.can;
    mpsim_status status = MPSIM_OK;
    if (loops && counts && n >= BINNED)
        status = mpsim_bins_add(&s->bins, &s->cells, loops, x, n);
    else if (loops)
        status = mpsim_cells_add(&s->cells, loops, x, n);
    if (!loops)
        add_plain(s, mpsim_format_find("binary32"), rng, x, n, 1);
    else if (status == MPSIM_OK)
        status = add_others(s, loops, rng, x, n);
    return status;
}

/* A few codes whose numbers are binary32 numbers. */
static mpsim_status add_values(mpsim_summary *s, const mpsim_cell_loops *loops, const mpsim_format *f,
                               const void *codes, size_t n)
{
    double x[BLOCK];
    float y[BLOCK];
    mpsim_status status = MPSIM_OK;
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < n && status == MPSIM_OK; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        (void)mpsim_decode_array(f, x, (const unsigned char *)codes + i * bytes, m);
        for (size_t k = 0; k < m; k++)
            y[k] = (float)x[k];
        status = mpsim_cells_add(&s->cells, loops, y, m);
    }
    return status;
}

static int may_add(const mpsim_summary *s, const mpsim_rng *rng, const void *x, size_t n, size_t bytes)
{
    return s && s->begun && (x || n == 0) && (rng || !s->n_stochastic) && mpsim_fits(n, bytes);
}

mpsim_status mpsim_summary_add_f32(mpsim_summary *s, const mpsim_rng *rng, const float *x, size_t n)
{
    if (!may_add(s, rng, x, n, sizeof *x))
        return MPSIM_EINVAL;
    return add_binary32(s, rng, x, n);
}

mpsim_status mpsim_summary_add_f64(mpsim_summary *s, const mpsim_rng *rng, const double *x, size_t n)
{
    if (!may_add(s, rng, x, n, sizeof *x))
        return MPSIM_EINVAL;
    add_plain(s, mpsim_format_find("binary64"), rng, x, n, 1);
    return MPSIM_OK;
}

/* Whether its numbers are binary32 numbers. */
static int is_narrow(const mpsim_format *f)
{
    return mpsim_format_max(f) <= (double)FLT_MAX && f->mbits <= 23 && mpsim_format_min_positive(f) >= 0x1p-149;
}

mpsim_status mpsim_summary_add_codes(mpsim_summary *s, const mpsim_format *f, const mpsim_rng *rng, const void *codes,
                                     size_t n)
{
    mpsim_status status = MPSIM_OK;
    if (mpsim_format_check(f) != MPSIM_OK || !may_add(s, rng, codes, n, mpsim_format_code_bytes(f)))
        return MPSIM_EINVAL;
    const mpsim_cell_loops *loops = mpsim_cells_loops();
    if (f->bits == 32 && mpsim_format_same(f, mpsim_format_find("binary32")))
        return add_binary32(s, rng, codes, n);
    const int narrow = loops && is_narrow(f);
    if (narrow && f->bits <= 16 && n >= COUNTED)
        status = mpsim_code_counts_add(&s->codes, &s->cells, f, codes, n);
    else if (narrow)
        status = add_values(s, loops, f, codes, n);
    if (status == MPSIM_OK)
        add_plain(s, f, rng, codes, n, !narrow);
    return status;
}

mpsim_status mpsim_summary_add_counts(mpsim_summary *s, const mpsim_format *f, const uint64_t *counts)
{
    if (!s || !s->begun || !counts || s->n_stochastic || mpsim_format_check(f) != MPSIM_OK || f->bits > 16)
        return MPSIM_EINVAL;
    const int cells = mpsim_cells_loops() && is_narrow(f);
    if (cells)
        mpsim_cells_add_codes(&s->cells, f, counts);
    const size_t n = cells ? s->n_others : s->n_casts;
    for (uint64_t code = 0; code >> f->bits == 0 && (!cells || n); code++) {
        const double x = mpsim_decode(f, code);
        if (counts[code] && !cells)
            repeat_array(s, x, counts[code]);
        for (size_t k = 0; k < n && counts[code]; k++)
            repeat_cast(s, cells ? s->others[k] : k, x, counts[code]);
    }
    return MPSIM_OK;
}

/* ---- merging and reading ---- */

static void settle(mpsim_summary *s)
{
    mpsim_code_counts_settle(&s->codes, &s->cells);
    mpsim_bins_settle(&s->bins, &s->cells);
    mpsim_cells_settle(&s->cells);
}

mpsim_status mpsim_summary_merge(mpsim_summary *to, mpsim_summary *from)
{
    if (!to || !from || !from->begun || !same_casts(to, from->casts, from->n_casts, from->want))
        return MPSIM_EINVAL;
    settle(to);
    settle(from);
    mpsim_cells_merge(&to->cells, &from->cells);
    if (from->plain) {
        mpsim_stats_merge(&to->stats, &from->stats);
        mpsim_histogram_merge(&to->histogram, &from->histogram);
        to->plain = 1;
    }
    for (size_t i = 0; i < to->n_casts; i++)
        if (from->used[i]) {
            mpsim_cast_stats_merge(&to->results[i], &from->results[i]);
            to->used[i] = 1;
        }
    return MPSIM_OK;
}

static void read_plain(mpsim_summary *s, mpsim_stats *stats, mpsim_histogram *histogram)
{
    mpsim_stats all = s->stats;
    if (!(s->want & MPSIM_SUMMARY_SUMS)) {
        mpsim_sum_init(&all.sum);
        mpsim_sum_init(&all.sum_squares);
    }
    mpsim_stats_merge(stats, &all);
    if (histogram)
        mpsim_histogram_merge(histogram, &s->histogram);
}

mpsim_status mpsim_summary_read(mpsim_summary *s, mpsim_stats *stats, mpsim_histogram *histogram,
                                mpsim_cast_stats *casts)
{
    const int errors = s && (s->want & MPSIM_SUMMARY_ERRORS);
    if (!s || !s->begun || !stats || (s->n_casts && !casts))
        return MPSIM_EINVAL;
    if (!(s->want & MPSIM_SUMMARY_HISTOGRAM))
        histogram = NULL;
    settle(s);
    mpsim_cells_stats(&s->cells, (s->want & MPSIM_SUMMARY_SUMS) != 0, stats);
    if (histogram)
        mpsim_cells_histogram(&s->cells, histogram);
    mpsim_cells_casts(&s->cells, errors, casts);
    if (s->plain)
        read_plain(s, stats, histogram);
    for (size_t i = 0; i < s->n_casts; i++) {
        if (s->used[i] && errors)
            mpsim_cast_stats_merge(&casts[i], &s->results[i]);
        else if (s->used[i])
            mpsim_counts_add(&casts[i].counts, &s->results[i].counts);
    }
    return MPSIM_OK;
}
