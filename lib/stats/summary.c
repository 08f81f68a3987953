/* summary.c -- one pass for everything; see mpsim/summary.h. */
#include <mpsim/summary.h>

#include "../base/counts.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 };

struct mpsim_summary {
    mpsim_cast *casts;
    size_t n_casts;
    unsigned want;
    int begun;
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats *results;
};

mpsim_summary *mpsim_summary_new(void)
{
    return calloc(1, sizeof(mpsim_summary));
}

void mpsim_summary_free(mpsim_summary *s)
{
    if (!s)
        return;
    free(s->casts);
    free(s->results);
    free(s);
}

mpsim_status mpsim_summary_begin(mpsim_summary *s, const mpsim_cast *casts, size_t n, unsigned want)
{
    if (!s)
        return MPSIM_EINVAL;
    s->begun = 0;
    if (n && !casts)
        return MPSIM_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (mpsim_format_check(casts[i].format) != MPSIM_OK ||
            mpsim_rounding_check(&casts[i].rounding) != MPSIM_OK)
            return MPSIM_EINVAL;
    free(s->casts);
    free(s->results);
    s->casts = malloc((n ? n : 1) * sizeof *s->casts);
    s->results = calloc(n ? n : 1, sizeof *s->results);
    if (!s->casts || !s->results)
        return MPSIM_ENOMEM;
    if (n)
        memcpy(s->casts, casts, n * sizeof *casts);
    s->n_casts = n;
    s->want = want;
    s->begun = 1;
    mpsim_stats_init(&s->stats);
    mpsim_histogram_init(&s->histogram);
    return MPSIM_OK;
}

/* Whether the arguments of an addition are good. */
static int may_add(const mpsim_summary *s, const mpsim_rng *rng, const void *x, size_t n)
{
    if (!s || !s->begun || (n && !x))
        return 0;
    for (size_t i = 0; i < s->n_casts && !rng; i++)
        if (s->casts[i].rounding.mode >= MPSIM_ROUND_STOCHASTIC_A)
            return 0;
    return 1;
}

static void add_block(mpsim_summary *s, const mpsim_rng *rng, const double *x, size_t n)
{
    mpsim_stats_add(&s->stats, x, n);
    if (s->want & MPSIM_SUMMARY_HISTOGRAM)
        mpsim_histogram_add(&s->histogram, x, n);
    for (size_t i = 0; i < s->n_casts; i++) /* formats and roundings were checked */
        (void)mpsim_cast_stats_add(&s->results[i], s->casts[i].format, &s->casts[i].rounding, rng, x,
                                   n);
}

mpsim_status mpsim_summary_add_f32(mpsim_summary *s, const mpsim_rng *rng, const float *x, size_t n)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    return mpsim_summary_add_codes(s, f, rng, x, n);
}

mpsim_status mpsim_summary_add_f64(mpsim_summary *s, const mpsim_rng *rng, const double *x, size_t n)
{
    const mpsim_format *f = mpsim_format_find("binary64");
    return mpsim_summary_add_codes(s, f, rng, x, n);
}

mpsim_status mpsim_summary_add_codes(mpsim_summary *s, const mpsim_format *f, const mpsim_rng *rng,
                                     const void *codes, size_t n)
{
    double x[BLOCK];
    mpsim_rng at = rng ? *rng : (mpsim_rng){0, 0, 0};
    if (!may_add(s, rng, codes, n) || mpsim_format_check(f) != MPSIM_OK)
        return MPSIM_EINVAL;
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        (void)mpsim_decode_array(f, x, (const unsigned char *)codes + i * bytes, m);
        add_block(s, rng ? &at : NULL, x, m);
        at.index += m;
    }
    return MPSIM_OK;
}

static int same_cast(const mpsim_cast *a, const mpsim_cast *b)
{
    const mpsim_rounding *x = &a->rounding, *y = &b->rounding;
    return memcmp(x, y, offsetof(mpsim_rounding, flush_output) + 1) == 0 && x->scale == y->scale &&
           x->flush_below == y->flush_below && mpsim_format_same(a->format, b->format);
}

static int same_casts(const mpsim_summary *s, const mpsim_cast *casts, size_t n, unsigned want)
{
    if (s->n_casts != n || s->want != want)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!same_cast(&s->casts[i], &casts[i]))
            return 0;
    return 1;
}

static void add_stats(const mpsim_summary *s, mpsim_stats *to, const mpsim_stats *from)
{
    mpsim_stats all = *from;
    if (!(s->want & MPSIM_SUMMARY_SUMS)) {
        mpsim_sum_init(&all.sum);
        mpsim_sum_init(&all.sum_squares);
    }
    mpsim_stats_merge(to, &all);
}

mpsim_status mpsim_summary_merge(mpsim_summary *to, mpsim_summary *from)
{
    if (!to || !from || !to->begun || !from->begun || !same_casts(to, from->casts, from->n_casts, from->want))
        return MPSIM_EINVAL;
    mpsim_stats_merge(&to->stats, &from->stats);
    mpsim_histogram_merge(&to->histogram, &from->histogram);
    for (size_t i = 0; i < to->n_casts; i++)
        mpsim_cast_stats_merge(&to->results[i], &from->results[i]);
    return MPSIM_OK;
}

mpsim_status mpsim_summary_read(mpsim_summary *s, mpsim_stats *stats, mpsim_histogram *histogram,
                                mpsim_cast_stats *casts)
{
    if (!s || !s->begun || !stats || (s->n_casts && !casts))
        return MPSIM_EINVAL;
    add_stats(s, stats, &s->stats);
    if (histogram && (s->want & MPSIM_SUMMARY_HISTOGRAM))
        mpsim_histogram_merge(histogram, &s->histogram);
    for (size_t i = 0; i < s->n_casts; i++) {
        if (s->want & MPSIM_SUMMARY_ERRORS)
            mpsim_cast_stats_merge(&casts[i], &s->results[i]);
        else
            mpsim_counts_add(&casts[i].counts, &s->results[i].counts);
    }
    return MPSIM_OK;
}
