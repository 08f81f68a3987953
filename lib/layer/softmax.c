/* softmax.c -- softmax and its logarithm of the columns that rows see; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "rows.h"
#include "transformer.h"

#include <math.h>

typedef struct job {
    mpsim_math m, out;
    float scale;
    size_t rows, cols, length, first;
    const mpsim_layer_kernels *kernels;
} job;

static mpsim_status start(job *j, const mpsim_softmax *c, const void *const *needed, size_t n)
{
    if (!c)
        return MPSIM_EINVAL;
    const int any = c->rows > 0 && c->cols > 0;
    const mpsim_status s = mpsim_layer_begin(&j->m, c->math, &j->out, c->f, mpsim_elements(c->rows, c->cols), needed,
                                             n);
    if (s != MPSIM_OK)
        return s;
    j->rows = any ? c->rows : 0;
    j->cols = c->cols;
    j->length = c->length;
    j->first = c->first;
    j->kernels = mpsim_layer_kernels_active();
    j->scale = mpsim_math_round(&j->m, c->scale);
    return MPSIM_OK;
}

/* A row: its first n columns, of these those whose byte is not 0 (mask NULL: all). */
typedef struct row {
    size_t at, n;
    const uint8_t *mask;
} row;

static row row_at(const job *j, const uint8_t *mask, size_t i)
{
    row r = {.at = i * j->cols, .n = j->cols, .mask = mask ? mask + i * j->cols : NULL};
    if (j->length > 0) {
        const size_t seen = (j->first + i) % j->length + 1 + j->cols;
        r.n = seen > j->length ? seen - j->length : 0;
    }
    r.n = r.n < j->cols ? r.n : j->cols;
    return r;
}

static inline int sees(const row *r, size_t c)
{
    return !r->mask || r->mask[c];
}

static void fill(const row *r, float *y, size_t cols, float value)
{
    for (size_t c = r->n; c < cols; c++)
        y[c] = value;
    for (size_t c = 0; c < r->n && r->mask; c++)
        y[c] = r->mask[c] ? y[c] : value;
}

/* ---- forward ---- */

/* x of columns that it sees, -infinity of others; y may be s. Whether there is one that it sees. */
static inline int scores(const job *j, const mpsim_math *m, const row *r, float *y, const float *s)
{
    int any = r->n > 0 && !r->mask;
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_causal_x(m, j->scale, mpsim_math_round(m, s[c]));
    for (size_t c = 0; c < r->n && r->mask; c++) {
        any |= r->mask[c] != 0;
        y[c] = r->mask[c] ? y[c] : -INFINITY;
    }
    return any;
}

enum { ABREAST = 16 };

/* The largest of n numbers, NaN if one is, some side by side; of two zeros either. */
static float largest(const float *x, size_t n)
{
    float some[ABREAST], max = -INFINITY;
    size_t c = 0;
    for (size_t t = 0; t < ABREAST; t++)
        some[t] = -INFINITY;
    for (; c + ABREAST <= n; c += ABREAST)
        for (size_t t = 0; t < ABREAST; t++)
            some[t] = mpsim_softmax_max(some[t], x[c + t]);
    for (size_t t = 0; t < ABREAST; t++)
        max = mpsim_softmax_max(max, some[t]);
    for (; c < n; c++)
        max = mpsim_softmax_max(max, x[c]);
    return max;
}

/* x - m in y, -infinity of masked columns. */
static inline int differences(const job *j, const mpsim_math *m, const row *r, float *y, const float *s)
{
    const int any = scores(j, m, r, y, s);
    const float max = largest(y, r->n);
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_math_sub(m, y[c], max);
    for (size_t c = 0; c < r->n && r->mask; c++)
        y[c] = r->mask[c] ? y[c] : -INFINITY;
    return any;
}

static inline void forward_row(const job *j, const mpsim_math *m, const row *r, float *p, const float *s)
{
    mpsim_lanes a = {{0}};
    const int any = differences(j, m, r, p, s);
    j->kernels->exp(p, p, r->n);
    mpsim_rows_round(m, p, r->n);
    for (size_t c = 0; c < r->n; c += MPSIM_LANES_ROW)
        mpsim_lanes_add(m, &a, p + c, mpsim_rows_width(r->n, c));
    const float z = mpsim_lanes_sum(m, &a);
    for (size_t c = 0; any && c < r->n; c++)
        p[c] = mpsim_causal_p(m, p[c], z);
    mpsim_rows_round(&j->out, p, r->n);
    fill(r, p, j->cols, 0.0f);
}

mpsim_status mpsim_softmax_rows(const mpsim_softmax *c, float *p, const float *s, const uint8_t *mask)
{
    job j;
    const mpsim_status status = start(&j, c, MPSIM_NEEDED(p, s));
    if (status != MPSIM_OK)
        return status;
    for (size_t i = 0; i < j.rows; i++) {
        const row r = row_at(&j, mask, i);
        MPSIM_ROWS_BY_MATH(&j.m, m, forward_row(&j, m, &r, p + r.at, s + r.at));
    }
    return MPSIM_OK;
}

static inline void log_row(const job *j, const mpsim_math *m, const row *r, float *y, const float *s)
{
    mpsim_lanes a = {{0}};
    float e[MPSIM_LANES_ROW];
    (void)differences(j, m, r, y, s);
    for (size_t c = 0; c < r->n; c += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(r->n, c);
        j->kernels->exp(e, y + c, width);
        mpsim_rows_round(m, e, width);
        mpsim_lanes_add(m, &a, e, width);
    }
    const float log_z = mpsim_math_round(m, mpsim_log_f32(mpsim_lanes_sum(m, &a)));
    for (size_t c = 0; c < r->n; c++)
        y[c] = mpsim_softmax_log(m, y[c], log_z);
    fill(r, y, j->cols, -INFINITY);
    mpsim_rows_round(&j->out, y, j->cols);
}

mpsim_status mpsim_log_softmax(const mpsim_softmax *c, float *y, const float *s, const uint8_t *mask)
{
    job j;
    const mpsim_status status = start(&j, c, MPSIM_NEEDED(y, s));
    if (status != MPSIM_OK)
        return status;
    for (size_t i = 0; i < j.rows; i++) {
        const row r = row_at(&j, mask, i);
        MPSIM_ROWS_BY_MATH(&j.m, m, log_row(&j, m, &r, y + r.at, s + r.at));
    }
    return MPSIM_OK;
}

/* ---- backward ---- */

static inline void backward_row(const job *j, const mpsim_math *m, const row *r, float *ds, const float *dp,
                                const float *p)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(r->n, at);
        for (size_t t = 0; t < width; t++) {
            const float term = mpsim_causal_term(m, mpsim_math_round(m, p[at + t]), mpsim_math_round(m, dp[at + t]));
            a.s[t] = mpsim_math_add(m, a.s[t], sees(r, at + t) ? term : 0.0f);
        }
    }
    const float d = mpsim_lanes_sum(m, &a);
    for (size_t c = 0; c < r->n; c++)
        ds[c] = mpsim_causal_ds(m, mpsim_math_round(m, p[c]), mpsim_math_round(m, dp[c]), d, j->scale);
    mpsim_rows_round(&j->out, ds, r->n);
    fill(r, ds, j->cols, 0.0f);
}

mpsim_status mpsim_softmax_backward(const mpsim_softmax *c, float *ds, const float *dp, const float *p,
                                    const uint8_t *mask)
{
    job j;
    const mpsim_status s = start(&j, c, MPSIM_NEEDED(ds, dp, p));
    if (s != MPSIM_OK)
        return s;
    for (size_t i = 0; i < j.rows; i++) {
        const row r = row_at(&j, mask, i);
        MPSIM_ROWS_BY_MATH(&j.m, m, backward_row(&j, m, &r, ds + r.at, dp + r.at, p + r.at));
    }
    return MPSIM_OK;
}

static inline void log_backward_row(const job *j, const mpsim_math *m, const row *r, float *ds, const float *dy,
                                    const float *y)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW)
        for (size_t t = 0; t < mpsim_rows_width(r->n, at); t++)
            a.s[t] = mpsim_math_add(m, a.s[t], sees(r, at + t) ? mpsim_math_round(m, dy[at + t]) : 0.0f);
    const float d = mpsim_lanes_sum(m, &a);
    for (size_t at = 0; at < r->n; at += MPSIM_LANES_ROW) {
        float e[MPSIM_LANES_ROW];
        const size_t width = mpsim_rows_width(r->n, at);
        for (size_t t = 0; t < width; t++)
            e[t] = mpsim_math_round(m, y[at + t]);
        j->kernels->exp(e, e, width);
        mpsim_rows_round(m, e, width);
        for (size_t t = 0; t < width; t++)
            ds[at + t] = mpsim_softmax_log_ds(m, e[t], mpsim_math_round(m, dy[at + t]), d, j->scale);
    }
    mpsim_rows_round(&j->out, ds, r->n);
    fill(r, ds, j->cols, 0.0f);
}

mpsim_status mpsim_log_softmax_backward(const mpsim_softmax *c, float *ds, const float *dy, const float *y,
                                        const uint8_t *mask)
{
    job j;
    const mpsim_status s = start(&j, c, MPSIM_NEEDED(ds, dy, y));
    if (s != MPSIM_OK)
        return s;
    for (size_t i = 0; i < j.rows; i++) {
        const row r = row_at(&j, mask, i);
        MPSIM_ROWS_BY_MATH(&j.m, m, log_backward_row(&j, m, &r, ds + r.at, dy + r.at, y + r.at));
    }
    return MPSIM_OK;
}
