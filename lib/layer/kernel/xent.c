/* xent.c -- a row's cross-entropy and its gradient, one number at a time: what xent.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

/* The largest of x, NaN if there is one; *first is where the first largest one stands. */
static float find_max(const mpsim_xent *p, const float *x, size_t *first)
{
    float max = mpsim_math_round(&p->m, x[0]);
    *first = 0;
    for (size_t j = 1; j < p->classes; j++) {
        const float v = mpsim_math_round(&p->m, x[j]);
        if (v > max)
            *first = j;
        max = mpsim_softmax_max(max, v);
    }
    return max;
}

/* The sum of e[j] = exp(x[j] - max); e may be x, or NULL. */
static float exponentials(const mpsim_xent *p, float *e, const float *x, float max)
{
    mpsim_lanes a = {{0}};
    for (size_t at = 0; at < p->classes; at += MPSIM_LANES_ROW) {
        float some[MPSIM_LANES_ROW];
        const size_t n = mpsim_rows_width(p->classes, at);
        for (size_t t = 0; t < n; t++)
            some[t] = mpsim_math_sub(&p->m, mpsim_math_round(&p->m, x[at + t]), max);
        p->kernels->exp(some, some, n);
        for (size_t t = 0; t < n; t++) {
            some[t] = mpsim_math_round(&p->m, some[t]);
            a.s[t] = mpsim_math_add(&p->m, a.s[t], some[t]);
        }
        if (e)
            memcpy(e + at, some, n * sizeof *e);
    }
    return mpsim_lanes_sum(&p->m, &a);
}

float mpsim_xent_plain(const mpsim_xent *p, float *dx, const float *x, size_t label, int *hit)
{
    size_t first;
    const float max = find_max(p, x, &first);
    const float logit = mpsim_math_round(&p->m, x[label]);
    const float sum = exponentials(p, dx, x, max);
    *hit = first == label && max == max;
    for (size_t j = 0; dx && j < p->classes; j++)
        dx[j] = mpsim_math_round(&p->out, mpsim_softmax_gradient(&p->m, dx[j], sum, p->coefficient, j == label));
    return mpsim_softmax_loss(&p->m, sum, logit, max);
}
