/* decoderrows.c -- see decoderrows.h. */
#include "decoderrows.h"

#include <math.h>
#include <mpsim/transformer.h>
#include <stdlib.h>
#include <string.h>

static float *room(size_t n)
{
    float *y = calloc(n ? n : 1, sizeof *y);
    if (!y)
        abort();
    return y;
}

static float in(const oracle_format *f, float x)
{
    return oracle_to(f, (double)x);
}

static float count_of(const oracle_format *f, size_t n)
{
    return in(f, (float)n);
}

/* ---- norms ---- */

/* Along a row: the mean of n terms. */
static float mean_of(const oracle_format *f, const float *terms, size_t n)
{
    return oracle_div(f, oracle_sum(f, terms, n, 1, 32), count_of(f, n));
}

void oracle_norm(const oracle_rows *r, int rms, float *y, float *mean, float *inverse, const float *x,
                 const float *weight, const float *bias)
{
    const oracle_format *f = r->math;
    const size_t n = r->cols;
    float *d = room(n), *squares = room(n);
    for (size_t i = 0; i < r->rows; i++) {
        for (size_t j = 0; j < n; j++)
            d[j] = in(f, x[i * n + j]);
        mean[i] = rms ? 0 : mean_of(f, d, n);
        for (size_t j = 0; j < n; j++) {
            d[j] = rms ? d[j] : oracle_sub(f, d[j], mean[i]);
            squares[j] = oracle_mul(f, d[j], d[j]);
        }
        const float var = mean_of(f, squares, n);
        inverse[i] = oracle_div(f, 1, oracle_root(f, oracle_add(f, var, in(f, 1e-5f))));
        for (size_t j = 0; j < n; j++) {
            float v = oracle_mul(f, oracle_mul(f, d[j], inverse[i]), in(f, weight[j]));
            if (bias)
                v = oracle_add(f, v, in(f, bias[j]));
            y[i * n + j] = in(r->f, v);
        }
    }
    free(squares);
    free(d);
}

/* h = d * inverse of row i */
static float height(const oracle_rows *r, int rms, float x, float mean, float inverse)
{
    const oracle_format *f = r->math;
    const float d = rms ? in(f, x) : oracle_sub(f, in(f, x), in(f, mean));
    return oracle_mul(f, d, in(f, inverse));
}

void oracle_norm_back(const oracle_rows *r, int rms, float *dx, float *dweight, float *dbias, const float *dy,
                      const float *x, const float *mean, const float *inverse, const float *weight)
{
    const oracle_format *f = r->math;
    const size_t n = r->cols;
    float *h = room(r->rows * n), *g = room(n), *terms = room(n), *column = room(r->rows);
    for (size_t i = 0; i < r->rows; i++) {
        float *own = h + i * n;
        for (size_t j = 0; j < n; j++) {
            own[j] = height(r, rms, x[i * n + j], mean[i], inverse[i]);
            g[j] = oracle_mul(f, in(f, dy[i * n + j]), in(f, weight[j]));
            terms[j] = oracle_mul(f, g[j], own[j]);
        }
        const float a = rms ? 0 : mean_of(f, g, n), c = mean_of(f, terms, n);
        for (size_t j = 0; j < n; j++) {
            const float left = rms ? g[j] : oracle_sub(f, g[j], a);
            const float inner = oracle_sub(f, left, oracle_mul(f, own[j], c));
            dx[i * n + j] = in(r->f, oracle_mul(f, in(f, inverse[i]), inner));
        }
    }
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < r->rows; i++)
            column[i] = oracle_mul(f, in(f, dy[i * n + j]), h[i * n + j]);
        dweight[j] = oracle_sum(f, column, r->rows, 1, 256);
        if (dbias)
            dbias[j] = oracle_sum(f, dy + j, r->rows, n, 256);
    }
    free(column);
    free(terms);
    free(g);
    free(h);
}

/* ---- activations ---- */

static const float half = 0.5f, k_tanh = 0x1.988454p-1f, c_tanh = 0x1.6e4e26p-5f, c3_tanh = 0x1.12ba9ep-3f,
                   r_erf = 0x1.6a09e6p-1f, q_erf = 0x1.988454p-2f;

/* t: the tanh or erf that x meets */
static float inner(const oracle_format *f, int kind, float x)
{
    if (kind == MPSIM_GELU)
        return in(f, mpsim_erf(oracle_mul(f, x, in(f, r_erf))));
    const float cube = oracle_mul(f, oracle_mul(f, x, x), x);
    const float sum = oracle_add(f, x, oracle_mul(f, in(f, c_tanh), cube));
    return in(f, mpsim_tanh(oracle_mul(f, in(f, k_tanh), sum)));
}

void oracle_activate(const oracle_rows *r, int kind, float *y, const float *x)
{
    const oracle_format *f = r->math;
    for (size_t i = 0; i < r->rows * r->cols; i++) {
        const size_t row = i / r->cols, j = i % r->cols;
        float z;
        if (kind == MPSIM_SWIGLU) {
            const float g = in(f, x[row * 2 * r->cols + j]), v = in(f, x[(row * 2 + 1) * r->cols + j]);
            z = oracle_mul(f, oracle_mul(f, g, in(f, mpsim_sigmoid(g))), v);
        } else {
            const float a = in(f, x[i]);
            z = oracle_mul(f, oracle_mul(f, half, a), oracle_add(f, 1, inner(f, kind, a)));
        }
        y[i] = in(r->f, z);
    }
}

/* What dy is multiplied by. */
static float slope(const oracle_format *f, int kind, float x)
{
    const float t = inner(f, kind, x), left = oracle_mul(f, half, oracle_add(f, 1, t));
    const float square = oracle_mul(f, x, x);
    if (kind == MPSIM_GELU) {
        const float e = in(f, mpsim_exp(oracle_mul(f, -half, square)));
        return oracle_add(f, left, oracle_mul(f, x, oracle_mul(f, in(f, q_erf), e)));
    }
    const float s = oracle_sub(f, 1, oracle_mul(f, t, t));
    const float w = oracle_mul(f, in(f, k_tanh), oracle_add(f, 1, oracle_mul(f, in(f, c3_tanh), square)));
    return oracle_add(f, left, oracle_mul(f, oracle_mul(f, oracle_mul(f, half, x), s), w));
}

void oracle_activate_back(const oracle_rows *r, int kind, float *dx, const float *dy, const float *x)
{
    const oracle_format *f = r->math;
    for (size_t i = 0; i < r->rows * r->cols; i++) {
        const size_t gate = i / r->cols * 2 * r->cols + i % r->cols, value = gate + r->cols;
        const float d = in(f, dy[i]);
        if (kind != MPSIM_SWIGLU) {
            dx[i] = in(r->f, oracle_mul(f, d, slope(f, kind, in(f, x[i]))));
            continue;
        }
        const float g = in(f, x[gate]), v = in(f, x[value]), s = in(f, mpsim_sigmoid(g));
        const float tail = oracle_add(f, 1, oracle_mul(f, g, oracle_sub(f, 1, s)));
        dx[value] = in(r->f, oracle_mul(f, d, oracle_mul(f, g, s)));
        dx[gate] = in(r->f, oracle_mul(f, oracle_mul(f, d, v), oracle_mul(f, s, tail)));
    }
}

/* ---- softmax ---- */

static float larger(float a, float b)
{
    return isnan(a) || isnan(b) ? NAN : b > a ? b : a;
}

void oracle_causal(const oracle_rows *r, float scale, float *p, const float *s)
{
    const oracle_format *f = r->math;
    const size_t n = r->cols;
    float *e = room(n);
    for (size_t i = 0; i < r->rows; i++) {
        const size_t there = i % n + 1;
        float m = -INFINITY;
        for (size_t j = 0; j < there; j++) {
            e[j] = oracle_mul(f, in(f, scale), in(f, s[i * n + j]));
            m = larger(m, e[j]);
        }
        for (size_t j = 0; j < there; j++)
            e[j] = in(f, mpsim_exp(oracle_sub(f, e[j], m)));
        const float z = oracle_sum(f, e, there, 1, 32);
        for (size_t j = 0; j < n; j++)
            p[i * n + j] = j < there ? in(r->f, oracle_div(f, e[j], z)) : 0;
    }
    free(e);
}

void oracle_causal_back(const oracle_rows *r, float scale, float *ds, const float *dp, const float *p)
{
    const oracle_format *f = r->math;
    const size_t n = r->cols;
    float *terms = room(n);
    for (size_t i = 0; i < r->rows; i++) {
        const size_t there = i % n + 1, at = i * n;
        for (size_t j = 0; j < there; j++)
            terms[j] = oracle_mul(f, in(f, p[at + j]), in(f, dp[at + j]));
        const float d = oracle_sum(f, terms, there, 1, 32);
        for (size_t j = 0; j < n; j++) {
            const float x = oracle_mul(f, in(f, p[at + j]), oracle_sub(f, in(f, dp[at + j]), d));
            ds[at + j] = j < there ? in(r->f, oracle_mul(f, x, in(f, scale))) : 0;
        }
    }
    free(terms);
}

/* ---- tiles: binary32, whose operations are the compiler's ---- */

void oracle_tile(const oracle_tile_row *t, float *p, float *o, float *max, float *sum, const float *s)
{
    const oracle_format *f = oracle_format_find(NULL);
    float *e = room(t->n), m = *max;
    for (size_t j = 0; j < t->n; j++) {
        e[j] = t->scale * s[j];
        m = larger(m, e[j]);
    }
    const float r = m == -INFINITY ? 0 : m, a = mpsim_exp(*max - r);
    for (size_t j = 0; j < t->n; j++)
        e[j] = mpsim_exp(e[j] - r);
    *sum = *sum * a + oracle_sum(f, e, t->n, 1, 32);
    *max = m;
    for (size_t c = 0; c < t->size; c++)
        o[c] = o[c] * a;
    for (size_t j = 0; j < t->cols; j++)
        p[j] = j < t->n ? in(t->f, e[j] * t->p_scale) : 0;
    free(e);
}

void oracle_tile_end(const oracle_tile_row *t, float *y, float *lse, const float *o, float max, float sum)
{
    for (size_t c = 0; c < t->size; c++)
        y[c] = in(t->f, o[c] * (1 / t->p_scale) / sum);
    *lse = max + mpsim_log(sum);
}

float oracle_dots(const float *a, const float *b, size_t n)
{
    float *terms = room(n);
    for (size_t c = 0; c < n; c++)
        terms[c] = a[c] * b[c];
    const float d = oracle_sum(oracle_format_find(NULL), terms, n, 1, 32);
    free(terms);
    return d;
}

static float again(const oracle_tile_row *t, float s, float lse)
{
    return mpsim_exp(t->scale * s - lse);
}

void oracle_tile_again(const oracle_tile_row *t, float *p, const float *s, float lse)
{
    for (size_t j = 0; j < t->cols; j++)
        p[j] = j < t->n ? in(t->f, again(t, s[j], lse)) : 0;
}

void oracle_tile_back(const oracle_tile_row *t, float *ds, const float *dp, const float *s, float lse, float d)
{
    for (size_t j = 0; j < t->cols; j++)
        ds[j] = j < t->n ? in(t->f, again(t, s[j], lse) * (dp[j] - d) * t->scale) : 0;
}
