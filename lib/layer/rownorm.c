/* rownorm.c -- LayerNorm and RMSNorm of the rows of a matrix; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "rows.h"
#include "transformer.h"

enum { WIDTH = 16 };

typedef struct job {
    const mpsim_rownorm *r;
    mpsim_math m, out;
    float n, eps;
} job;

/* n pointers that are needed where there are elements. */
static mpsim_status start(job *j, const mpsim_rownorm *r, const void *const *needed, size_t n)
{
    if (!r || r->kind > MPSIM_NORM_RMS)
        return MPSIM_EINVAL;
    const mpsim_status s = mpsim_layer_begin(&j->m, r->math, &j->out, r->f, mpsim_elements(r->rows, r->cols), needed,
                                             n);
    if (s != MPSIM_OK)
        return s;
    j->r = r;
    j->n = mpsim_math_round(&j->m, (float)r->cols);
    j->eps = mpsim_math_round(&j->m, r->eps);
    return MPSIM_OK;
}

/* ---- forward ---- */

static inline float mean_of(const job *j, const mpsim_math *m, const float *x)
{
    mpsim_lanes a = {{0}};
    for (size_t c = 0; c < j->r->cols; c += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(j->r->cols, c);
        for (size_t t = 0; t < width; t++)
            a.s[t] = mpsim_math_add(m, a.s[t], mpsim_math_round(m, x[c + t]));
    }
    return mpsim_math_div(m, mpsim_lanes_sum(m, &a), j->n);
}

static inline float inverse_of(const job *j, const mpsim_math *m, const float *x, float mean)
{
    mpsim_lanes a = {{0}};
    for (size_t c = 0; c < j->r->cols; c += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(j->r->cols, c);
        for (size_t t = 0; t < width; t++)
            a.s[t] = mpsim_math_add(m, a.s[t], mpsim_batchnorm_square(m, mpsim_math_round(m, x[c + t]), mean));
    }
    const float var = mpsim_math_div(m, mpsim_lanes_sum(m, &a), j->n);
    return mpsim_batchnorm_inverse(m, var, j->eps);
}

static inline void forward_row(const job *j, const mpsim_math *m, float *y, float *mean, float *inverse, const float *x,
                               const float *weight, const float *bias)
{
    const size_t n = j->r->cols;
    *mean = j->r->kind == MPSIM_NORM_LAYER ? mean_of(j, m, x) : 0.0f;
    *inverse = inverse_of(j, m, x, *mean);
    const float centre = *mean, factor = *inverse;
    for (size_t c = 0; c < n; c++) {
        const float h = mpsim_batchnorm_normal(m, mpsim_math_round(m, x[c]), centre, factor);
        const float v = mpsim_rownorm_y(m, h, mpsim_math_round(m, weight[c]));
        y[c] = bias ? mpsim_math_add(m, v, mpsim_math_round(m, bias[c])) : v;
    }
    mpsim_rows_round(&j->out, y, n);
}

mpsim_status mpsim_rownorm_forward(const mpsim_rownorm *r, float *y, float *mean, float *inverse, const float *x,
                                   const float *weight, const float *bias)
{
    job j;
    const mpsim_status s = start(&j, r, MPSIM_NEEDED(y, mean, inverse, x, weight));
    for (size_t i = 0; s == MPSIM_OK && r->cols > 0 && i < r->rows; i++)
        MPSIM_ROWS_BY_MATH(&j.m, m,
                           forward_row(&j, m, y + i * r->cols, mean + i, inverse + i, x + i * r->cols, weight, bias));
    return s;
}

/* ---- backward ---- */

/* A row: h of it, from x, and g = dy * w. */
typedef struct row {
    const float *dy, *x, *weight;
    float mean, inverse;
} row;

static inline row row_at(const job *j, size_t i, const float *dy, const float *x, const float *mean,
                         const float *inverse, const float *weight)
{
    row r = {.dy = dy + i * j->r->cols, .x = x + i * j->r->cols, .weight = weight};
    r.mean = j->r->kind == MPSIM_NORM_LAYER ? mpsim_math_round(&j->m, mean[i]) : 0.0f;
    r.inverse = mpsim_math_round(&j->m, inverse[i]);
    return r;
}

static inline float h_at(const mpsim_math *m, const row *r, size_t c)
{
    return mpsim_batchnorm_normal(m, mpsim_math_round(m, r->x[c]), r->mean, r->inverse);
}

static inline float g_at(const mpsim_math *m, const row *r, size_t c)
{
    return mpsim_math_mul(m, mpsim_math_round(m, r->dy[c]), mpsim_math_round(m, r->weight[c]));
}

/* dx may be dy or x. */
static inline void backward_row(const job *j, const mpsim_math *m, float *dx, const row *r)
{
    const size_t n = j->r->cols;
    mpsim_lanes of_g = {{0}}, of_products = {{0}};
    for (size_t at = 0; at < n; at += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(n, at);
        for (size_t t = 0; t < width; t++) {
            const float g = g_at(m, r, at + t), h = h_at(m, r, at + t);
            of_g.s[t] = mpsim_math_add(m, of_g.s[t], g);
            of_products.s[t] = mpsim_math_add(m, of_products.s[t], mpsim_math_mul(m, g, h));
        }
    }
    const float sum = mpsim_lanes_sum(m, &of_g);
    const float a = j->r->kind == MPSIM_NORM_LAYER ? mpsim_math_div(m, sum, j->n) : 0.0f;
    const float b = mpsim_math_div(m, mpsim_lanes_sum(m, &of_products), j->n);
    for (size_t c = 0; c < n; c++)
        dx[c] = mpsim_batchnorm_dx(m, g_at(m, r, c), h_at(m, r, c), r->inverse, a, b);
    mpsim_rows_round(&j->out, dx, n);
}

/* Lanes of the sums over rows, of some columns. */
typedef struct columns {
    float dweight[MPSIM_LANES_ALL][WIDTH], dbias[MPSIM_LANES_ALL][WIDTH];
} columns;

static inline void columns_add(const mpsim_math *m, columns *a, size_t lane, size_t at, size_t width, const row *r)
{
    float *restrict dweight = a->dweight[lane], *restrict dbias = a->dbias[lane];
    for (size_t c = 0; c < width; c++) {
        const float dy = mpsim_math_round(m, r->dy[at + c]);
        dweight[c] = mpsim_math_add(m, dweight[c], mpsim_math_mul(m, dy, h_at(m, r, at + c)));
        dbias[c] = mpsim_math_add(m, dbias[c], dy);
    }
}

static inline void columns_sum(const mpsim_math *m, float (*s)[WIDTH], size_t lanes, size_t width, float *sum)
{
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            for (size_t c = 0; c < width; c++)
                s[t][c] = mpsim_math_add(m, s[t][c], s[t + h][c]);
    memcpy(sum, s[0], width * sizeof *sum);
}

mpsim_status mpsim_rownorm_backward(const mpsim_rownorm *r, float *dx, float *dweight, float *dbias, const float *dy,
                                    const float *x, const float *mean, const float *inverse, const float *weight)
{
    job j;
    const void *used = r && r->kind == MPSIM_NORM_RMS ? inverse : mean;
    const mpsim_status s = start(&j, r, MPSIM_NEEDED(dy, x, used, inverse, weight));
    if (s != MPSIM_OK)
        return s;
    const size_t lanes = mpsim_lanes_used(r->rows);
    for (size_t at = 0; (dweight || dbias) && at < r->cols; at += WIDTH) {
        const size_t width = r->cols - at < WIDTH ? r->cols - at : WIDTH;
        columns a;
        memset(a.dweight, 0, lanes * sizeof a.dweight[0]);
        memset(a.dbias, 0, lanes * sizeof a.dbias[0]);
        for (size_t i = 0; i < r->rows; i++) {
            const row line = row_at(&j, i, dy, x, mean, inverse, weight);
            MPSIM_ROWS_BY_MATH(&j.m, m, columns_add(m, &a, i % MPSIM_LANES_ALL, at, width, &line));
        }
        if (dweight)
            columns_sum(&j.m, a.dweight, lanes, width, dweight + at);
        if (dbias)
            columns_sum(&j.m, a.dbias, lanes, width, dbias + at);
    }
    for (size_t i = 0; dx && r->cols > 0 && i < r->rows; i++) {
        const row line = row_at(&j, i, dy, x, mean, inverse, weight);
        MPSIM_ROWS_BY_MATH(&j.m, m, backward_row(&j, m, dx + i * r->cols, &line));
    }
    return MPSIM_OK;
}
