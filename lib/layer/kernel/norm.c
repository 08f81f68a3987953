/* norm.c -- rows of LayerNorm and RMSNorm and their gradients, one number at a time: what norm.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

typedef mpsim_norm_job job;
typedef mpsim_norm_row row;

static inline void round_to(const job *j, const mpsim_math *m, float *x, size_t n)
{
    if (m->kind != MPSIM_MATH_BINARY32)
        j->kernels->round(m, x, n);
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

static inline void scale(const job *j, const mpsim_math *m, const row *r, float *y)
{
    const size_t n = j->r->cols;
    for (size_t c = 0; c < n; c++) {
        const float h = mpsim_batchnorm_normal(m, mpsim_math_round(m, r->x[c]), r->mean, r->inverse);
        const float v = mpsim_rownorm_y(m, h, mpsim_math_round(m, r->weight[c]));
        y[c] = r->bias ? mpsim_math_add(m, v, mpsim_math_round(m, r->bias[c])) : v;
    }
    round_to(j, &j->out, y, n);
}

static inline void forward(const job *j, const mpsim_math *m, row *r, float *y)
{
    r->mean = j->r->kind == MPSIM_NORM_LAYER ? mean_of(j, m, r->x) : 0.0f;
    r->inverse = inverse_of(j, m, r->x, r->mean);
    scale(j, m, r, y);
}

void mpsim_norm_plain(const job *j, row *r, float *y)
{
    MPSIM_ROWS_BY_MATH(&j->m, m, forward(j, m, r, y));
}

/* ---- backward ---- */

static inline float h_at(const mpsim_math *m, const row *r, size_t c)
{
    return mpsim_batchnorm_normal(m, mpsim_math_round(m, r->x[c]), r->mean, r->inverse);
}

static inline float g_at(const mpsim_math *m, const row *r, size_t c)
{
    return mpsim_math_mul(m, mpsim_math_round(m, r->dy[c]), mpsim_math_round(m, r->weight[c]));
}

static inline void backward(const job *j, const mpsim_math *m, const row *r, float *dx)
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
    round_to(j, &j->out, dx, n);
}

void mpsim_norm_back_plain(const job *j, const row *r, float *dx)
{
    MPSIM_ROWS_BY_MATH(&j->m, m, backward(j, m, r, dx));
}
