/* batchnorm.c -- batch normalisation over the rows of a matrix, some channels at a time; see mpsim/layer.h. */
#include <mpsim/layer.h>

#include "kernel/kernel.h"
#include "shared.h"

enum { WIDTH = MPSIM_COLUMNS_WIDTH };

typedef struct job {
    const mpsim_batchnorm *b;
    mpsim_math m, out;
    float n, eps;
    const mpsim_layer_kernels *kernels;
} job;

/* ---- beginning ---- */

static mpsim_status start(job *j, const mpsim_batchnorm *b, const void *const *needed, size_t n)
{
    if (!b)
        return MPSIM_EINVAL;
    const size_t elements = b->rows ? mpsim_elements(b->rows, b->channels) : b->channels > 0;
    const mpsim_status s = mpsim_layer_begin(&j->m, b->math, &j->out, b->f, elements, needed, n);
    if (s != MPSIM_OK)
        return s;
    j->b = b;
    j->kernels = mpsim_layer_kernels_active();
    j->n = mpsim_math_round(&j->m, (float)b->rows);
    j->eps = mpsim_math_round(&j->m, b->eps);
    return MPSIM_OK;
}

/* Channels from `at` on. */
static mpsim_channels channels_at(const job *j, size_t at)
{
    const size_t left = j->b->channels - at;
    return (mpsim_channels){.m = &j->m,
                            .out = &j->out,
                            .rows = j->b->rows,
                            .stride = j->b->channels,
                            .at = at,
                            .width = left < WIDTH ? left : WIDTH};
}

/* Numbers of the channels, rounded to `math`. */
static void load(const job *j, const mpsim_channels *c, float *to, const float *from)
{
    for (size_t k = 0; k < c->width; k++)
        to[k] = mpsim_math_round(&j->m, from[c->at + k]);
}

/* ---- sums ---- */

/* What columns of `kind` are summed to. */
static void sum_rows(const job *j, const mpsim_channels *c, mpsim_columns_kind kind, float *sums, float *products,
                     const float *dy, const float *x)
{
    const mpsim_columns of = {.kind = kind,
                              .m = &j->m,
                              .dy = dy,
                              .x = x,
                              .mean = c->mean,
                              .inverse = c->inverse,
                              .rows = c->rows,
                              .stride = c->stride,
                              .at = c->at,
                              .width = c->width};
    j->kernels->columns(&of, sums, products);
}

/* ---- forward ---- */

static void normalise(const job *j, const mpsim_channels *c, float *y, const float *x)
{
    j->kernels->channels(c, y + c->at, x + c->at);
}

static void keep_running(const job *j, const mpsim_channels *c, float *running_mean, float *running_var,
                         const float *squares)
{
    const float others = (float)(j->b->rows - 1);
    for (size_t k = 0; running_mean && k < c->width; k++) {
        float *const mean = &running_mean[c->at + k], *const var = &running_var[c->at + k];
        *mean = mpsim_batchnorm_running(*mean, j->b->momentum, c->mean[k]);
        *var = mpsim_batchnorm_running(*var, j->b->momentum, mpsim_f32_div(squares[k], others));
    }
}

mpsim_status mpsim_batchnorm_forward(const mpsim_batchnorm *b, float *y, float *mean, float *inverse,
                                     float *running_mean, float *running_var, const float *x, const float *weight,
                                     const float *bias)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(y, mean, inverse, x, weight, bias));
    if (s != MPSIM_OK)
        return s;
    if (b->rows == 0 || !running_mean != !running_var)
        return MPSIM_EINVAL;
    for (size_t at = 0; at < b->channels; at += WIDTH) {
        mpsim_channels c = channels_at(&j, at);
        float squares[WIDTH];
        load(&j, &c, c.weight, weight);
        load(&j, &c, c.bias, bias);
        sum_rows(&j, &c, MPSIM_COLUMNS_CHANNELS, c.mean, NULL, x, x);
        for (size_t k = 0; k < c.width; k++)
            mean[at + k] = c.mean[k] = mpsim_math_div(&j.m, c.mean[k], j.n);
        sum_rows(&j, &c, MPSIM_COLUMNS_SQUARES, NULL, squares, x, x);
        for (size_t k = 0; k < c.width; k++)
            inverse[at + k] = c.inverse[k] = mpsim_batchnorm_inverse(&j.m, mpsim_math_div(&j.m, squares[k], j.n),
                                                                     j.eps);
        keep_running(&j, &c, running_mean, running_var, squares);
        normalise(&j, &c, y, x);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_batchnorm_inference(const mpsim_batchnorm *b, float *y, const float *x, const float *running_mean,
                                       const float *running_var, const float *weight, const float *bias)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(running_mean, running_var, weight, bias));
    if (s != MPSIM_OK)
        return s;
    if (b->rows > 0 && b->channels > 0 && (!y || !x))
        return MPSIM_EINVAL;
    for (size_t at = 0; b->rows > 0 && at < b->channels; at += WIDTH) {
        mpsim_channels c = channels_at(&j, at);
        float var[WIDTH];
        load(&j, &c, c.weight, weight);
        load(&j, &c, c.bias, bias);
        load(&j, &c, c.mean, running_mean);
        load(&j, &c, var, running_var);
        for (size_t k = 0; k < c.width; k++)
            c.inverse[k] = mpsim_batchnorm_inverse(&j.m, var[k], j.eps);
        normalise(&j, &c, y, x);
    }
    return MPSIM_OK;
}

/* ---- backward ---- */

mpsim_status mpsim_batchnorm_backward(const mpsim_batchnorm *b, float *dx, float *dweight, float *dbias,
                                      const float *dy, const float *x, const float *mean, const float *inverse,
                                      const float *weight)
{
    job j;
    const mpsim_status s = start(&j, b, MPSIM_NEEDED(dx, dweight, dbias, dy, x, mean, inverse, weight));
    if (s != MPSIM_OK)
        return s;
    if (b->rows == 0)
        return MPSIM_EINVAL;
    for (size_t at = 0; at < b->channels; at += WIDTH) {
        mpsim_channels c = channels_at(&j, at);
        load(&j, &c, c.mean, mean);
        load(&j, &c, c.inverse, inverse);
        load(&j, &c, c.weight, weight);
        sum_rows(&j, &c, MPSIM_COLUMNS_CHANNELS, dbias + at, dweight + at, dy, x);
        for (size_t k = 0; k < c.width; k++) {
            c.weight[k] = mpsim_math_mul(&j.m, c.weight[k], c.inverse[k]);
            c.bias[k] = mpsim_math_div(&j.m, dbias[at + k], j.n);
            c.slope[k] = mpsim_math_div(&j.m, dweight[at + k], j.n);
        }
        j.kernels->channels_back(&c, dx + at, dy + at, x + at);
    }
    return MPSIM_OK;
}
