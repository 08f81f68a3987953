/* xent.h -- a row's cross-entropy and its gradient in vectors. A row with a NaN is computed again with CAREFUL
 * operations, before anything is stored: dx may be x. Included by vector.h. */
#pragma once

#include "softmax.h"

/* The last NaN, which is what xent.c has for the largest number. */
V_INLINE float last_nan(const float *x, size_t n)
{
    size_t c = n - 1;
    while (x[c] == x[c])
        c--;
    return x[c];
}

/* The largest number, NaN where there is one. */
V_INLINE float xent_max(const vround *m, const float *x, size_t n)
{
    vf32 max = v_f32(-INFINITY);
    m32 nan = no_lane();
    for (size_t c = 0; c < n; c += V_LANES) {
        const vf32 v = take(x + c, n - c);
        nan = m32_or(nan, is_nan(v));
        max = v_max_f32(pick(first_lanes(n - c), to(m, v), max), max);
    }
    return m32_any(nan) ? last_nan(x, n) : largest_lane(max);
}

/* Whether no number before the label's is as large. */
V_INLINE int is_first(const vround *m, const float *x, size_t label, float max)
{
    m32 before = no_lane();
    for (size_t c = 0; c < label; c += V_LANES)
        before = m32_or(before, m32_and(first_lanes(label - c), v_eq_f32(to(m, take(x + c, label - c)), v_f32(max))));
    return !m32_any(before);
}

V_INLINE int xent_loop(int how, const mpsim_xent *p, float *dx, const float *x, size_t label, int *hit, float *loss)
{
    const size_t n = p->classes;
    const vround m = rounding_of(how, &p->m);
    const float max = xent_max(&m, x, n), logit = mpsim_math_round(&p->m, x[label]);
    if ((!m.careful && max != max) || p->coefficient - p->coefficient != 0)
        return 0;
    *hit = logit == max && is_first(&m, x, label, max);
    vlanes a = no_lanes();
    IN_LANES(n, c, k)
    {
        const vf32 e = to(&m, vector_exp(sub(&m, to(&m, take(x + c, n - c)), v_f32(max))));
        a.s[k] = add(&m, a.s[k], kept(first_lanes(n - c), e));
        if (dx)
            give(dx + c, e, n - c);
    }
    const float sum = lanes_sum(&m, &a), own = dx ? dx[label] : 0;
    for (size_t c = 0; dx && c < n; c += V_LANES)
        give(dx + c, mul(&m, divide(&m, take(dx + c, n - c), v_f32(sum)), v_f32(p->coefficient)), n - c);
    if (dx)
        dx[label] = mpsim_softmax_gradient(&p->m, own, sum, p->coefficient, 1);
    *loss = mpsim_softmax_loss(&p->m, sum, logit, max);
    return 1;
}

static float V_NAME(xent)(const mpsim_xent *p, float *dx, const float *x, size_t label, int *hit)
{
    int done = 0;
    float loss = 0;
    BY_CARE(how_of(&p->m), how, done, xent_loop(how, p, dx, x, label, hit, &loss));
    if (!done)
        return mpsim_xent_plain(p, dx, x, label, hit);
    if (dx)
        V_NAME(finish)(&p->m, &p->out, dx, p->classes);
    return loss;
}
