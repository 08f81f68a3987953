/* layer.c -- see layer.h. */
#include "layer.h"

#include <math.h>
#include <mpsim/layer.h>
#include <stdlib.h>
#include <string.h>

static const oracle_format formats[] = {
    {"binary32", 24, -126, 0x1.fffffep+127, 1},
    {"tf32", 11, -126, 0x1.ffcp+127, 1},
    {"bf16", 8, -126, 0x1.fep+127, 1},
    {"fp16", 11, -14, 65504, 1},
    {"e5m2", 3, -14, 57344, 1},
    {"e4m3", 4, -6, 448, 0},
};

const oracle_format *oracle_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name ? name : "binary32", formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

float oracle_to(const oracle_format *f, double x)
{
    if (isnan(x))
        return NAN;
    if (x == 0 || isinf(x))
        return isinf(x) && !f->infinity ? NAN : (float)x;
    int e;
    (void)frexp(x, &e);
    const int quantum = (e - 1 > f->emin ? e - 1 : f->emin) - (f->precision - 1);
    const double units = ldexp(fabs(x), -quantum), whole = floor(units), rest = units - whole;
    const int up = rest > 0.5 || (rest == 0.5 && fmod(whole, 2) == 1);
    double y = ldexp(whole + up, quantum);
    if (y > f->max)
        y = f->infinity ? (double)INFINITY : (double)NAN;
    return (float)copysign(y, x);
}

float oracle_add(const oracle_format *f, float a, float b)
{
    return oracle_to(f, (double)a + (double)b);
}

float oracle_sub(const oracle_format *f, float a, float b)
{
    return oracle_to(f, (double)a - (double)b);
}

float oracle_mul(const oracle_format *f, float a, float b)
{
    return oracle_to(f, (double)a * (double)b);
}

float oracle_div(const oracle_format *f, float a, float b)
{
    return oracle_to(f, (double)a / (double)b);
}

float oracle_root(const oracle_format *f, float a)
{
    return oracle_to(f, sqrt((double)a));
}

float oracle_sum(const oracle_format *f, const float *x, size_t n, size_t stride, size_t lanes)
{
    float s[1024];
    for (size_t t = 0; t < lanes; t++) {
        s[t] = 0;
        for (size_t i = t; i < n; i += lanes)
            s[t] = oracle_add(f, s[t], oracle_to(f, (double)x[i * stride]));
    }
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            s[t] = oracle_add(f, s[t], s[t + h]);
    return s[0];
}

int oracle_same(float a, float b)
{
    return isnan(a) ? isnan(b) : memcmp(&a, &b, sizeof a) == 0;
}

size_t oracle_differs(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!oracle_same(a[i], b[i]))
            return i;
    return n;
}

static float *rounded(const oracle_format *f, const float *x, size_t n)
{
    float *y = malloc((n ? n : 1) * sizeof *y);
    if (!y)
        abort();
    for (size_t i = 0; i < n; i++)
        y[i] = oracle_to(f, (double)x[i]);
    return y;
}

/* ---- softmax and cross-entropy ---- */

static float largest(const float *x, size_t n, size_t *first)
{
    *first = 0;
    for (size_t j = 0; j < n; j++) {
        if (isnan(x[j]))
            return NAN;
        if (x[j] > x[*first])
            *first = j;
    }
    return x[*first];
}

void oracle_xent(const oracle_format *math, const oracle_format *f, size_t rows, size_t classes, const float *x,
                 const uint32_t *labels, float coefficient, float *loss, float *dx, uint64_t *correct)
{
    const float c = oracle_to(math, (double)coefficient);
    *correct = 0;
    for (size_t r = 0; r < rows; r++) {
        float *row = rounded(math, x + r * classes, classes);
        size_t first;
        const float m = largest(row, classes, &first);
        if (!isnan(m) && first == labels[r])
            ++*correct;
        const float own = oracle_sub(math, row[labels[r]], m);
        for (size_t j = 0; j < classes; j++)
            row[j] = oracle_to(math, (double)mpsim_exp(oracle_sub(math, row[j], m)));
        const float s = oracle_sum(math, row, classes, 1, 32);
        loss[r] = oracle_sub(math, oracle_to(math, (double)mpsim_log(s)), own);
        for (size_t j = 0; j < classes; j++) {
            float g = oracle_mul(math, oracle_div(math, row[j], s), c);
            if (j == labels[r])
                g = oracle_sub(math, g, c);
            dx[r * classes + j] = oracle_to(f, (double)g);
        }
        free(row);
    }
}

/* ---- batch normalisation ---- */

/* One channel of a matrix, as a column of its own. */
static float *column(const oracle_batchnorm *b, const float *x, size_t channel)
{
    float *y = malloc((b->rows ? b->rows : 1) * sizeof *y);
    if (!y)
        abort();
    for (size_t r = 0; r < b->rows; r++)
        y[r] = oracle_to(b->math, (double)x[r * b->channels + channel]);
    return y;
}

static float sum_of(const oracle_batchnorm *b, const float *x)
{
    return oracle_sum(b->math, x, b->rows, 1, 256);
}

static float count(const oracle_format *f, size_t n)
{
    return oracle_to(f, (double)oracle_to(oracle_format_find(NULL), (double)n));
}

static float inverse_root(const oracle_format *f, float var, float eps)
{
    const float root = oracle_root(f, oracle_add(f, var, oracle_to(f, (double)eps)));
    return oracle_div(f, 1, root);
}

/* The mix of old and new, in binary32 always. */
static float mixed(float momentum, float old, float new)
{
    const oracle_format *f = oracle_format_find(NULL);
    return oracle_add(f, oracle_mul(f, oracle_sub(f, 1, momentum), old), oracle_mul(f, momentum, new));
}

void oracle_forward(const oracle_batchnorm *b, float *y, float *mean, float *inverse, float *running_mean,
                    float *running_var, const float *x, const float *weight, const float *bias)
{
    const oracle_format *f = b->math, *wide = oracle_format_find(NULL);
    for (size_t c = 0; c < b->channels; c++) {
        float *d = column(b, x, c);
        float *squares = rounded(f, d, b->rows);
        mean[c] = oracle_div(f, sum_of(b, d), count(f, b->rows));
        for (size_t r = 0; r < b->rows; r++) {
            d[r] = oracle_sub(f, d[r], mean[c]);
            squares[r] = oracle_mul(f, d[r], d[r]);
        }
        const float total = sum_of(b, squares);
        inverse[c] = inverse_root(f, oracle_div(f, total, count(f, b->rows)), b->eps);
        const float w = oracle_to(f, (double)weight[c]), z = oracle_to(f, (double)bias[c]);
        for (size_t r = 0; r < b->rows; r++)
            y[r * b->channels + c] =
                oracle_to(b->f, (double)oracle_add(f, oracle_mul(f, oracle_mul(f, d[r], inverse[c]), w), z));
        if (running_mean) {
            const float unbiased = oracle_div(wide, total, count(wide, b->rows - 1));
            running_mean[c] = mixed(b->momentum, running_mean[c], mean[c]);
            running_var[c] = mixed(b->momentum, running_var[c], unbiased);
        }
        free(squares);
        free(d);
    }
}

void oracle_backward(const oracle_batchnorm *b, float *dx, float *dweight, float *dbias, const float *dy,
                     const float *x, const float *mean, const float *inverse, const float *weight)
{
    const oracle_format *f = b->math;
    for (size_t c = 0; c < b->channels; c++) {
        const float mu = oracle_to(f, (double)mean[c]), s = oracle_to(f, (double)inverse[c]);
        float *g = column(b, dy, c), *h = column(b, x, c);
        float *terms = rounded(f, g, b->rows);
        for (size_t r = 0; r < b->rows; r++) {
            h[r] = oracle_mul(f, oracle_sub(f, h[r], mu), s);
            terms[r] = oracle_mul(f, g[r], h[r]);
        }
        dbias[c] = sum_of(b, g);
        dweight[c] = sum_of(b, terms);
        const float a = oracle_div(f, dbias[c], count(f, b->rows));
        const float k = oracle_div(f, dweight[c], count(f, b->rows));
        const float outer = oracle_mul(f, oracle_to(f, (double)weight[c]), s);
        for (size_t r = 0; r < b->rows; r++) {
            const float inner = oracle_sub(f, oracle_sub(f, g[r], a), oracle_mul(f, h[r], k));
            dx[r * b->channels + c] = oracle_to(b->f, (double)oracle_mul(f, outer, inner));
        }
        free(terms);
        free(h);
        free(g);
    }
}

void oracle_inference(const oracle_batchnorm *b, float *y, const float *x, const float *running_mean,
                      const float *running_var, const float *weight, const float *bias)
{
    const oracle_format *f = b->math;
    for (size_t c = 0; c < b->channels; c++) {
        float *d = column(b, x, c);
        const float mu = oracle_to(f, (double)running_mean[c]);
        const float s = inverse_root(f, oracle_to(f, (double)running_var[c]), b->eps);
        const float w = oracle_to(f, (double)weight[c]), z = oracle_to(f, (double)bias[c]);
        for (size_t r = 0; r < b->rows; r++) {
            const float h = oracle_mul(f, oracle_sub(f, d[r], mu), s);
            y[r * b->channels + c] = oracle_to(b->f, (double)oracle_add(f, oracle_mul(f, h, w), z));
        }
        free(d);
    }
}
