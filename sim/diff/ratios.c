/* ratios.c -- see ratios.h. Sums are in the order of the tokens, which no thread changes. */
#include "ratios.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>

/* Tokens before the padding at the end of a sequence. */
static size_t length_of(const double *a, const double *b, size_t n)
{
    while (n && a[n - 1] == 0 && b[n - 1] == 0)
        n--;
    return n;
}

static void add_sums(ratios *r, double d, double a, double b)
{
    const double ratio = exp(d), apart = fabs(exp(b) - exp(a));
    r->sum += d;
    r->sum_of_magnitudes += fabs(d);
    r->sum_of_squares += d * d;
    r->sum_of_ratios += ratio;
    r->sum_of_square_ratios += ratio * ratio;
    r->sum_k3 += expm1(d) - d;
    r->probability += apart;
    r->most_probability = fmax(r->most_probability, apart);
    r->equal += d == 0;
    r->above += ratio > r->high;
    r->over_dual += ratio > r->dual;
    r->over += ratio > r->truncated;
    r->lost += fmax(0, ratio - r->truncated);
    r->most_ratio = fmax(r->most_ratio, ratio);
    r->outside += ratio < r->low || ratio > r->high;
}

static void add_token(ratios *r, double a, double b, uint64_t at)
{
    const double d = b - a;
    need_room(&r->magnitudes, r->tokens, sizeof *r->magnitudes);
    if (r->tokens == 0 || fabs(d) > fabs(r->worst[1] - r->worst[0])) {
        r->worst[0] = a;
        r->worst[1] = b;
        r->worst_at[0] = r->rows;
        r->worst_at[1] = at;
    }
    r->magnitudes[r->tokens++] = fabs(d);
    r->above_zero += a > 0 || b > 0;
    add_sums(r, d, a, b);
}

static void add_sequence(ratios *r, double product)
{
    need_room(&r->products, r->sequences, sizeof *r->products);
    r->products[r->sequences++] = product;
    r->outside_sequences += exp(product) < r->low || exp(product) > r->high;
}

void diff_ratios_add(ratios *r, const double *a, const double *b, size_t n)
{
    const size_t length = r->whole ? n : length_of(a, b, n);
    const uint64_t before = r->tokens;
    double product = 0;
    r->padding += n - length;
    for (size_t i = 0; i < length; i++) {
        const int x = isfinite(a[i]), y = isfinite(b[i]);
        r->padding += !x && !y;
        r->one_sided += x != y;
        if (!x || !y)
            continue;
        add_token(r, a[i], b[i], i);
        product += b[i] - a[i];
    }
    r->rows++;
    if (r->tokens > before)
        add_sequence(r, product);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void diff_ratios_sort(ratios *r)
{
    if (r->tokens)
        qsort(r->magnitudes, r->tokens, sizeof *r->magnitudes, by_size);
    if (r->sequences)
        qsort(r->products, r->sequences, sizeof *r->products, by_size);
}

void diff_ratios_clear(ratios *r)
{
    free(r->magnitudes);
    free(r->products);
    r->magnitudes = r->products = NULL;
}

static double quantile(const double *x, uint64_t n, double q)
{
    const double at = ceil(q * (double)n) - 1;
    return n == 0 ? (double)NAN : x[at < 0 ? 0 : (size_t)at];
}

double diff_ratios_magnitude(const ratios *r, double q)
{
    return quantile(r->magnitudes, r->tokens, q);
}
double diff_ratios_product(const ratios *r, double q)
{
    return quantile(r->products, r->sequences, q);
}

ratios_sequences diff_ratios_of_sequences(const ratios *r)
{
    double sum = 0, squares = 0, lost = 0;
    ratios_sequences s = {0};
    for (size_t i = 0; i < r->sequences; i++) {
        const double x = exp(r->products[i]);
        sum += x;
        squares += x * x;
        lost += fmax(0, x - r->truncated);
        s.over += x > r->truncated;
    }
    s.mean = sum / (double)r->sequences;
    s.effective = s.mean * (sum / squares);
    s.lost = lost / sum;
    return s;
}

double diff_ratios_effective(const ratios *r)
{
    return r->sum_of_ratios / (double)r->tokens * (r->sum_of_ratios / r->sum_of_square_ratios);
}
