/* stats.c -- tensor, histogram and cast accumulators; see mpsim/stats.h.
 *
 * Elements that overflow to infinity or NaN are counted as overflow and left out of SQNR, MSE and the largest
 * relative error, so that one overflow does not hide the error of the rest. */
#include <mpsim/stats.h>

#include "../base/extent.h"
#include "../base/counts.h"
#include "../round/scalar.h"
#include "differences.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- tensors ---- */

void mpsim_stats_init(mpsim_stats *s)
{
    memset(s, 0, sizeof *s);
}

void mpsim_stats_add(mpsim_stats *s, const double *x, size_t n)
{
    if (!mpsim_fits(n, sizeof *x))
        return;
    s->count += n;
    for (size_t i = 0; i < n; i++) {
        const double a = fabs(x[i]);
        if (!isfinite(x[i])) {
            if (isnan(x[i]))
                s->nan++;
            else
                s->inf++;
        } else if (a == 0) {
            s->zero++;
        } else {
            if (a > s->amax)
                s->amax = a;
            if (s->amin == 0 || a < s->amin)
                s->amin = a;
            mpsim_sum_add(&s->sum, x[i]);
            mpsim_sum_add_square(&s->sum_squares, x[i]);
        }
    }
}

void mpsim_stats_merge(mpsim_stats *to, const mpsim_stats *from)
{
    to->count += from->count;
    to->zero += from->zero;
    to->nan += from->nan;
    to->inf += from->inf;
    if (from->amax > to->amax)
        to->amax = from->amax;
    if (from->amin != 0 && (to->amin == 0 || from->amin < to->amin))
        to->amin = from->amin;
    mpsim_sum_merge(&to->sum, &from->sum);
    mpsim_sum_merge(&to->sum_squares, &from->sum_squares);
}

double mpsim_stats_mean(const mpsim_stats *s)
{
    const uint64_t finite = s->count - s->nan - s->inf;
    const double sum = mpsim_sum_value(&s->sum);
    int e;
    if (finite == 0)
        return (double)NAN;
    if (isfinite(sum))
        return sum / (double)finite;
    const double f = mpsim_sum_frexp(&s->sum, &e);
    return ldexp(f / (double)finite, e);
}

double mpsim_stats_l2(const mpsim_stats *s)
{
    int e;
    const double f = mpsim_sum_frexp(&s->sum_squares, &e);
    return e % 2 ? ldexp(sqrt(f / 2), (e + 1) / 2) : ldexp(sqrt(f), e / 2);
}

/* ---- histogram ---- */

void mpsim_histogram_init(mpsim_histogram *h)
{
    memset(h, 0, sizeof *h);
}

void mpsim_histogram_repeat(mpsim_histogram *h, double x, uint64_t times)
{
    const mpsim_number v = mpsim_number_f64(x);
    if (v.kind == MPSIM_NUMBER_NAN)
        h->nan += times;
    else if (v.kind == MPSIM_NUMBER_INF)
        h->inf += times;
    else if (v.hi == 0)
        h->zero += times;
    else
        h->bin[v.exp - MPSIM_HISTOGRAM_MIN] += times;
}

void mpsim_histogram_add(mpsim_histogram *h, const double *x, size_t n)
{
    for (size_t i = 0; mpsim_fits(n, sizeof *x) && i < n; i++)
        mpsim_histogram_repeat(h, x[i], 1);
}

void mpsim_histogram_merge(mpsim_histogram *to, const mpsim_histogram *from)
{
    to->zero += from->zero;
    to->inf += from->inf;
    to->nan += from->nan;
    for (int i = 0; i < MPSIM_HISTOGRAM_BINS; i++)
        to->bin[i] += from->bin[i];
}

/* ---- casts ---- */

void mpsim_cast_stats_init(mpsim_cast_stats *c)
{
    memset(c, 0, sizeof *c);
}

/* Keep the largest relative error; v is the number that is wrong by d. The product says, without a
 * division, that most are not larger. */
static void note_relative(mpsim_cast_stats *c, double v, double d)
{
    const double magnitude = fabs(v), nearly = 1 - 0x1p-50;
    if (v != 0 && d >= c->max_rel_err * magnitude * nearly && d / magnitude > c->max_rel_err)
        c->max_rel_err = d / magnitude;
}

/* The error of v, of magnitude d: it differs from zero and may be infinite. */
static void add_error(mpsim_cast_stats *c, double v, double d)
{
    if (!isfinite(d))
        d = DBL_MAX;
    mpsim_sum_add_square(&c->sum_squared_error, d);
    note_relative(c, v, d);
}

size_t mpsim_cast_stats_differences(mpsim_cast_stats *c, double scale, const double *x, const double *q, size_t n,
                                    float *left)
{
    int e;
    size_t n_left = 0;
    /* division by a power of two is a multiplication, unless 1 / scale is not a number */
    const int power = frexp(scale, &e) == 0.5 && e > -1020 && e < 1020;
    const double inverse = power ? 1 / scale : 0;
    for (size_t k = 0; k < n; k++) {
        const double v = x[k];
        if (!isfinite(v))
            continue;
        if (!isfinite(q[k])) {
            mpsim_sum_add_square(&c->sum_squares_left_out, v);
            continue;
        }
        c->compared++;
        double d = fabs(v - (power ? q[k] * inverse : q[k] / scale));
        if (d == 0)
            continue;
        if (left && d >= (double)FLT_MIN && d <= (double)FLT_MAX && (double)(float)d == d) {
            left[n_left++] = (float)d;
            note_relative(c, v, d);
            continue;
        }
        if (!isfinite(d)) /* q / scale beyond binary64 */
            d = 2 * fabs(v / 2 - q[k] / 2 / scale);
        add_error(c, v, d);
    }
    return n_left;
}

mpsim_status mpsim_cast_stats_add(mpsim_cast_stats *c, const mpsim_format *f, const mpsim_rounding *r,
                                  const mpsim_rng *rng, const double *x, size_t n)
{
    enum { BLOCK = 512 };
    double q[BLOCK];
    mpsim_rng at = rng ? *rng : (mpsim_rng){0, 0, 0};
    if (!c || !mpsim_fits(n, sizeof *x))
        return MPSIM_EINVAL;
    for (size_t i = 0; i < n || i == 0; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        const mpsim_status s = mpsim_round_array_f64(f, r, rng ? &at : NULL, q, x ? x + i : x, m, &c->counts);
        if (s != MPSIM_OK) /* of the arguments, so in the first block */
            return s;
        at.index += m;
        (void)mpsim_cast_stats_differences(c, r->scale, x ? x + i : x, q, m, NULL);
    }
    return MPSIM_OK;
}

void mpsim_cast_stats_add_values(mpsim_cast_stats *c, const float *x, const float *value, size_t n)
{
    for (size_t i = 0; mpsim_fits(n, sizeof *x) && i < n; i++) {
        const double v = (double)x[i], d = fabs(v - (double)value[i]);
        if (!isfinite(x[i]))
            continue;
        if (!isfinite(value[i])) {
            mpsim_sum_add_square(&c->sum_squares_left_out, v);
            continue;
        }
        c->compared++;
        if (d != 0)
            add_error(c, v, d);
    }
}

void mpsim_cast_stats_merge(mpsim_cast_stats *to, const mpsim_cast_stats *from)
{
    mpsim_counts_add(&to->counts, &from->counts);
    to->compared += from->compared;
    if (from->max_rel_err > to->max_rel_err)
        to->max_rel_err = from->max_rel_err;
    mpsim_sum_merge(&to->sum_squared_error, &from->sum_squared_error);
    mpsim_sum_merge(&to->sum_squares_left_out, &from->sum_squares_left_out);
}

double mpsim_cast_stats_mse(const mpsim_cast_stats *c)
{
    int e;
    if (c->compared == 0)
        return (double)NAN;
    const double f = mpsim_sum_frexp(&c->sum_squared_error, &e);
    return ldexp(f / (double)c->compared, e);
}

double mpsim_cast_stats_sqnr_db(const mpsim_cast_stats *c, const mpsim_stats *s)
{
    mpsim_sum signal = s->sum_squares;
    int ex, ee;
    mpsim_sum_subtract(&signal, &c->sum_squares_left_out);
    const double x = mpsim_sum_frexp(&signal, &ex);
    const double e = mpsim_sum_frexp(&c->sum_squared_error, &ee);
    if (e == 0)
        return c->compared ? (double)INFINITY : (double)NAN;
    /* 10 log10(x 2^ex / (e 2^ee)); log10(2) rounded */
    return 10 * (log10(x / e) + (ex - ee) * 0x1.34413509f79ffp-2);
}
