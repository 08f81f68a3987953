/* causal.c -- softmax of the rows of causal attention; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "rows.h"
#include "transformer.h"

typedef struct job {
    mpsim_math m, out;
    float scale;
    size_t matrices; /* 0 where they have no rows */
    const mpsim_layer_kernels *kernels;
} job;

static mpsim_status start(job *j, const mpsim_causal *c, const void *const *needed, size_t n)
{
    if (!c)
        return MPSIM_EINVAL;
    const int any = c->matrices > 0 && c->length > 0;
    const mpsim_status s = mpsim_layer_begin(&j->m, c->math, &j->out, c->f, any, needed, n);
    if (s != MPSIM_OK)
        return s;
    j->matrices = any ? c->matrices : 0;
    j->kernels = mpsim_layer_kernels_active();
    j->scale = mpsim_math_round(&j->m, c->scale);
    return MPSIM_OK;
}

/* n numbers, and +0 up to length. */
static inline void softmax_row(const job *j, const mpsim_math *m, float *p, const float *s, size_t n, size_t length)
{
    mpsim_lanes a = {{0}};
    float max = mpsim_causal_x(m, j->scale, mpsim_math_round(m, s[0]));
    for (size_t i = 1; i < n; i++)
        max = mpsim_softmax_max(max, mpsim_causal_x(m, j->scale, mpsim_math_round(m, s[i])));
    for (size_t i = 0; i < n; i++) {
        const float x = mpsim_causal_x(m, j->scale, mpsim_math_round(m, s[i]));
        p[i] = mpsim_math_sub(m, x, max);
    }
    j->kernels->exp(p, p, n);
    mpsim_rows_round(m, p, n);
    for (size_t i = 0; i < n; i += MPSIM_LANES_ROW)
        mpsim_lanes_add(m, &a, p + i, mpsim_rows_width(n, i));
    const float z = mpsim_lanes_sum(m, &a);
    for (size_t i = 0; i < n; i++)
        p[i] = mpsim_causal_p(m, p[i], z);
    mpsim_rows_round(&j->out, p, n);
    memset(p + n, 0, (length - n) * sizeof *p);
}

mpsim_status mpsim_causal_softmax(const mpsim_causal *c, float *p, const float *s)
{
    job j;
    const mpsim_status status = start(&j, c, MPSIM_NEEDED(p, s));
    if (status != MPSIM_OK)
        return status;
    for (size_t b = 0; b < j.matrices; b++)
        for (size_t i = 0; i < c->length; i++) {
            const size_t at = (b * c->length + i) * c->length;
            MPSIM_ROWS_BY_MATH(&j.m, m, softmax_row(&j, m, p + at, s + at, i + 1, c->length));
        }
    return MPSIM_OK;
}

static inline void backward_row(const job *j, const mpsim_math *m, float *ds, const float *dp, const float *p, size_t n,
                                size_t length)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < n; at += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(n, at);
        for (size_t t = 0; t < width; t++)
            a.s[t] = mpsim_math_add(
                m, a.s[t], mpsim_causal_term(m, mpsim_math_round(m, p[at + t]), mpsim_math_round(m, dp[at + t])));
    }
    const float d = mpsim_lanes_sum(m, &a);
    for (size_t i = 0; i < n; i++)
        ds[i] = mpsim_causal_ds(m, mpsim_math_round(m, p[i]), mpsim_math_round(m, dp[i]), d, j->scale);
    mpsim_rows_round(&j->out, ds, n);
    memset(ds + n, 0, (length - n) * sizeof *ds);
}

mpsim_status mpsim_causal_softmax_backward(const mpsim_causal *c, float *ds, const float *dp, const float *p)
{
    job j;
    const mpsim_status s = start(&j, c, MPSIM_NEEDED(ds, dp, p));
    if (s != MPSIM_OK)
        return s;
    for (size_t b = 0; b < j.matrices; b++)
        for (size_t i = 0; i < c->length; i++) {
            const size_t at = (b * c->length + i) * c->length;
            MPSIM_ROWS_BY_MATH(&j.m, m, backward_row(&j, m, ds + at, dp + at, p + at, i + 1, c->length));
        }
    return MPSIM_OK;
}
