/* rownorm.c -- LayerNorm and RMSNorm of the rows of a matrix; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "shared.h"

typedef mpsim_norm_job job;
typedef mpsim_norm_row row;

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
    j->kernels = mpsim_layer_kernels_active();
    j->n = mpsim_math_round(&j->m, (float)r->cols);
    j->eps = mpsim_math_round(&j->m, r->eps);
    return MPSIM_OK;
}

mpsim_status mpsim_rownorm_forward(const mpsim_rownorm *r, float *y, float *mean, float *inverse, const float *x,
                                   const float *weight, const float *bias)
{
    job j;
    const mpsim_status s = start(&j, r, MPSIM_NEEDED(y, mean, inverse, x, weight));
    for (size_t i = 0; s == MPSIM_OK && r->cols > 0 && i < r->rows; i++) {
        row line = {.x = x + i * r->cols, .weight = weight, .bias = bias};
        j.kernels->norm(&j, &line, y + i * r->cols);
        mean[i] = line.mean;
        inverse[i] = line.inverse;
    }
    return s;
}

/* ---- backward ---- */

static row row_at(const job *j, size_t i, const float *dy, const float *x, const float *mean, const float *inverse,
                  const float *weight)
{
    row r = {.dy = dy + i * j->r->cols, .x = x + i * j->r->cols, .weight = weight};
    r.mean = j->r->kind == MPSIM_NORM_LAYER ? mpsim_math_round(&j->m, mean[i]) : 0.0f;
    r.inverse = mpsim_math_round(&j->m, inverse[i]);
    return r;
}

mpsim_status mpsim_rownorm_backward(const mpsim_rownorm *r, float *dx, float *dweight, float *dbias, const float *dy,
                                    const float *x, const float *mean, const float *inverse, const float *weight)
{
    job j;
    const void *used = r && r->kind == MPSIM_NORM_RMS ? inverse : mean;
    const mpsim_status s = start(&j, r, MPSIM_NEEDED(dy, x, used, inverse, weight));
    if (s != MPSIM_OK)
        return s;
    mpsim_columns c = {.m = &j.m, .dy = dy, .x = x, .inverse = inverse, .rows = r->rows, .stride = r->cols};
    c.mean = r->kind == MPSIM_NORM_LAYER ? mean : NULL;
    for (; (dweight || dbias) && c.at < r->cols; c.at += c.width) {
        c.width = r->cols - c.at < MPSIM_COLUMNS_WIDTH ? r->cols - c.at : MPSIM_COLUMNS_WIDTH;
        j.kernels->columns(&c, dbias ? dbias + c.at : NULL, dweight ? dweight + c.at : NULL);
    }
    for (size_t i = 0; dx && r->cols > 0 && i < r->rows; i++) {
        const row line = row_at(&j, i, dy, x, mean, inverse, weight);
        j.kernels->norm_back(&j, &line, dx + i * r->cols);
    }
    return MPSIM_OK;
}
