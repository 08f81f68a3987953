/* channels.c -- rows of batch normalisation and of its gradient, one number at a time: what channels.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

typedef mpsim_channels channels;

static void round_to(const mpsim_math *out, float *y, size_t n)
{
    for (size_t k = 0; k < n && out->kind != MPSIM_MATH_BINARY32; k++)
        y[k] = mpsim_math_narrow(out, y[k]);
}

static inline float h_at(const channels *c, const mpsim_math *m, float x, size_t k)
{
    return mpsim_batchnorm_normal(m, mpsim_math_round(m, x), c->mean[k], c->inverse[k]);
}

static inline void forward(const channels *c, const mpsim_math *m, float *y, const float *x)
{
    for (size_t k = 0; k < c->width; k++)
        y[k] = mpsim_batchnorm_y(m, h_at(c, m, x[k], k), c->weight[k], c->bias[k]);
    round_to(c->out, y, c->width);
}

static inline void backward(const channels *c, const mpsim_math *m, float *dx, const float *dy, const float *x)
{
    for (size_t k = 0; k < c->width; k++)
        dx[k] = mpsim_batchnorm_dx(m, mpsim_math_round(m, dy[k]), h_at(c, m, x[k], k), c->weight[k], c->bias[k],
                                   c->slope[k]);
    round_to(c->out, dx, c->width);
}

void mpsim_channels_plain(const channels *c, float *y, const float *x)
{
    for (size_t i = 0, at = 0; i < c->rows; i++, at += c->stride)
        MPSIM_ROWS_BY_MATH(c->m, m, forward(c, m, y + at, x + at));
}

void mpsim_channels_back_plain(const channels *c, float *dx, const float *dy, const float *x)
{
    for (size_t i = 0, at = 0; i < c->rows; i++, at += c->stride)
        MPSIM_ROWS_BY_MATH(c->m, m, backward(c, m, dx + at, dy + at, x + at));
}
