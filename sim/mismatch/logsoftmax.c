/* logsoftmax.c -- see logsoftmax.h. Every operation is rounded to the format `softmax`. */
#include "logsoftmax.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- temperatures, words that are dropped ---- */

static int larger_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* How many of the n largest words reach the share p. */
static size_t reaching(const double *sorted, size_t n, double p)
{
    double sum = 0, part = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp(sorted[i] - sorted[0]);
    for (size_t i = 0; i < n; i++)
        if ((part += exp(sorted[i] - sorted[0])) >= p * sum)
            return i + 1;
    return n;
}

static void drop(const arithmetic *a, double *x, double *sorted, size_t n)
{
    size_t kept = a->top_k && a->top_k < n ? a->top_k : n;
    memcpy(sorted, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, larger_first);
    if (!isfinite(sorted[0]) || isnan(sorted[n - 1]))
        return;
    if (a->top_p < 1)
        kept = reaching(sorted, kept, a->top_p);
    for (size_t i = 0; i < n; i++)
        if (x[i] < sorted[kept - 1])
            x[i] = -HUGE_VAL;
}

void mismatch_temper(const arithmetic *a, double *x, double *sorted, size_t n, int narrow)
{
    const float by = (float)a->temperature;
    for (size_t i = 0; i < n && a->temperature != 1; i++)
        x[i] = narrow ? (double)((float)x[i] / by) : x[i] / a->temperature;
    if (a->top_k || a->top_p < 1)
        drop(a, x, sorted, n);
}

/* ---- the log-softmax ---- */

static float rounded(const mpsim_format *f, float x)
{
    mpsim_rounding nearest;
    if (f->mbits == 23)
        return x;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f32(f, &nearest, NULL, &x, &x, 1, NULL);
    return x;
}

static float largest(const float *x, size_t n)
{
    float m = -INFINITY;
    for (size_t i = 0; i < n; i++)
        m = x[i] > m || isnan(x[i]) ? x[i] : m;
    return m;
}

/* The sum of exp(x - m) of some words, in the tree of a softmax. */
static float sum_of(const mpsim_format *f, const float *x, float *e, size_t n, float m)
{
    for (size_t i = 0; i < n; i++)
        e[i] = rounded(f, mpsim_exp(rounded(f, x[i] - m)));
    return mpsim_sum_lanes(f, e, n, 1, MPSIM_LANES_ROW);
}

/* Chunks one after another, with the maximum and the sum so far. */
static float in_chunks(const arithmetic *a, const float *x, float *e, size_t n, float *m)
{
    const mpsim_format *f = &a->softmax;
    float s = 0;
    *m = -INFINITY;
    for (size_t at = 0; at < n; at += a->chunk) {
        const size_t length = n - at < a->chunk ? n - at : a->chunk;
        const float before = *m, here = largest(x + at, length);
        if (here == -INFINITY)
            continue;
        *m = here > before || isnan(here) ? here : before;
        const float old = rounded(f, s * rounded(f, mpsim_exp(rounded(f, before - *m))));
        s = rounded(f, old + sum_of(f, x + at, e, length, *m));
    }
    return s;
}

/* Sums of ranks, from rank 0 on, or neighbours first. */
static float all_reduce(const arithmetic *a, float *part, size_t n)
{
    const mpsim_format *f = &a->reduce;
    if (a->order == ARITHMETIC_CHAIN) {
        for (size_t i = 1; i < n; i++)
            part[0] = rounded(f, part[0] + part[i]);
        return part[0];
    }
    for (size_t apart = 1; apart < n; apart *= 2)
        for (size_t i = 0; i + apart < n; i += 2 * apart)
            part[i] = rounded(f, part[i] + part[i + apart]);
    return part[0];
}

/* Each rank has as many words, the last one the rest; the maximum is exact in any format. */
static float of_ranks(const arithmetic *a, const float *x, float *e, size_t n, float *m)
{
    const size_t each = (n - 1) / a->ranks + 1;
    float part[ARITHMETIC_RANKS] = {0};
    size_t ranks = 0;
    *m = largest(x, n);
    for (size_t at = 0; at < n; at += each)
        part[ranks++] = rounded(&a->reduce, sum_of(&a->softmax, x + at, e, n - at < each ? n - at : each, *m));
    return all_reduce(a, part, ranks);
}

double mismatch_log_probability(const arithmetic *a, const float *x, float *room, size_t n, uint32_t word)
{
    const mpsim_format *f = &a->softmax;
    float loss = NAN, m;
    if (a->chunk == 0 && a->ranks == 1) {
        (void)mpsim_softmax_xent(f, NULL, 1, n, x, &word, 1, &loss, NULL, NULL);
        return -(double)loss;
    }
    const int same = f->mbits == 23;
    if (!same)
        for (size_t i = 0; i < n; i++)
            room[n + i] = rounded(f, x[i]);
    x = same ? x : room + n;
    const float s = a->chunk ? in_chunks(a, x, room, n, &m) : of_ranks(a, x, room, n, &m);
    const float log_s = rounded(f, mpsim_log(s));
    return -(double)rounded(f, log_s - rounded(f, x[word] - m));
}
