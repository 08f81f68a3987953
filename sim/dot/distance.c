/* distance.c -- see distance.h. */
#include "distance.h"

#include "../array/need.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums on the way: of all finite results, and of those that the relative measures count. */
typedef struct sums {
    mpsim_sum squares, sizes, errors; /* of all: (d - e)^2, |d - e|, d - e */
    mpsim_sum counted_squares, exact_squares, magnitudes, gained, quotients;
    uint64_t finite, nonzero; /* results; those counted with e not zero */
} sums;

static void begin(sums *s)
{
    mpsim_sum *const all[] = {&s->squares,       &s->sizes,      &s->errors, &s->counted_squares,
                              &s->exact_squares, &s->magnitudes, &s->gained, &s->quotients};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        mpsim_sum_init(all[i]);
    s->finite = s->nonzero = 0;
}

static void add_absolute(dot_distance *to, sums *s, double error)
{
    mpsim_sum_add_square(&s->squares, error);
    mpsim_sum_add(&s->sizes, fabs(error));
    mpsim_sum_add(&s->errors, error);
    to->max_abs = fabs(error) > to->max_abs ? fabs(error) : to->max_abs;
    s->finite++;
}

static void add_quotient(dot_distance *to, sums *s, double error, double e)
{
    const double quotient = fabs(error / e);
    if (quotient > to->max_rel) {
        to->max_rel = quotient;
        to->cancelled = fabs(e);
    }
    if (isfinite(quotient))
        mpsim_sum_add(&s->quotients, quotient);
    s->nonzero++;
}

static void add_relative(dot_distance *to, sums *s, double d, double e)
{
    if (e != 0)
        add_quotient(to, s, d - e, e);
    mpsim_sum_add_square(&s->counted_squares, d - e);
    mpsim_sum_add_square(&s->exact_squares, e);
    mpsim_sum_add(&s->magnitudes, fabs(e));
    mpsim_sum_add(&s->gained, fabs(d));
    mpsim_sum_add(&s->gained, -fabs(e));
    to->compared++;
}

/* a / b of two exact sums, whose values may lie beyond binary64; 0 if a is zero. */
static double ratio(const mpsim_sum *a, const mpsim_sum *b)
{
    int ea, eb;
    const double fa = mpsim_sum_frexp(a, &ea), fb = mpsim_sum_frexp(b, &eb);
    return fa == 0 ? 0 : ldexp(fa / fb, ea - eb);
}

/* The root of a sum of squares over n, which may lie beyond binary64. */
static double root(const mpsim_sum *squares, double n)
{
    int e;
    const double f = mpsim_sum_frexp(squares, &e);
    return e & 1 ? ldexp(sqrt(2 * f / n), (e - 1) / 2) : ldexp(sqrt(f / n), e / 2);
}

/* x without the scales of the operands. */
static double unscaled(double x, const dot_truth *truth)
{
    return x / truth->unit[0] / truth->unit[1];
}

static void end_absolute(dot_distance *to, const sums *s, const dot_truth *truth)
{
    const double n = (double)s->finite;
    to->max_abs = s->finite ? unscaled(to->max_abs, truth) : (double)NAN;
    to->rmse = unscaled(root(&s->squares, n), truth);
    to->mean_abs = unscaled(mpsim_sum_value(&s->sizes) / n, truth);
    to->mean = unscaled(mpsim_sum_value(&s->errors) / n, truth);
}

static void end_relative(dot_distance *to, const sums *s)
{
    const double typical = root(&s->exact_squares, (double)to->compared);
    if (to->compared == 0) {
        to->max_rel = to->mean_rel = to->rel = to->bias = (double)NAN;
        return;
    }
    to->mean_rel = isinf(to->max_rel) || !s->nonzero ? to->max_rel
                                                     : mpsim_sum_value(&s->quotients) / (double)s->nonzero;
    to->rel = sqrt(ratio(&s->counted_squares, &s->exact_squares));
    to->bias = ratio(&s->gained, &s->magnitudes);
    to->cancelled = typical > 0 ? to->cancelled / typical : 0;
}

dot_truth dot_truth_make(size_t n, int same, double above)
{
    double *rounded = need_memory(n, sizeof *rounded);
    return (dot_truth){same ? rounded : need_memory(n, sizeof *rounded), rounded, {1, 1}, above};
}

void dot_truth_clear(dot_truth *t)
{
    free(t->given == t->rounded ? NULL : t->given);
    free(t->rounded);
}

static int is_finite(const double *d, const dot_truth *truth, size_t i)
{
    return isfinite(d[i]) && isfinite(truth->given[i]) && isfinite(truth->rounded[i]);
}

static void measure(dot_distance *to, const double *d, const double *e, const dot_truth *truth, size_t n)
{
    sums s;
    begin(&s);
    for (size_t i = 0; i < n; i++) {
        if (!is_finite(d, truth, i))
            continue;
        add_absolute(to, &s, d[i] - e[i]);
        if (unscaled(fabs(truth->given[i]), truth) > truth->above)
            add_relative(to, &s, d[i], e[i]);
    }
    end_absolute(to, &s, truth);
    end_relative(to, &s);
}

double dot_bits_lost(double rel, int precision)
{
    const double bits = rel > 0 ? precision + log2(rel) : 0;
    return isnan(rel) ? rel : bits < 0 ? 0 : bits > precision ? precision : bits;
}

void dot_error_compare(dot_error *e, const double *d, const dot_truth *truth, size_t n, int precision)
{
    memset(e, 0, sizeof *e);
    e->count = n;
    e->same = truth->given == truth->rounded;
    for (size_t i = 0; i < n; i++)
        e->not_finite += !is_finite(d, truth, i);
    measure(&e->rounded, d, truth->rounded, truth, n);
    if (e->same)
        e->given = e->rounded;
    else
        measure(&e->given, d, truth->given, truth, n);
    e->bits_lost = dot_bits_lost(e->rounded.rel, precision);
}
