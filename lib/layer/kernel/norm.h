/* norm.h -- rows of LayerNorm and RMSNorm and their gradients in vectors. A row with a NaN among its numbers is computed
 * again with CAREFUL operations, before anything is stored: results may be operands. Included by vector.h. */
#pragma once

#include "lanes.h"

V_INLINE vf32 numbers_of(const vround *m, const float *x, size_t c, size_t n)
{
    return to(m, take(x + c, n - c));
}

/* Lanes with a NaN are added to `nan`. */
V_INLINE void look_at(const float *x, size_t c, size_t n, m32 *nan)
{
    *nan = m32_or(*nan, is_nan(take(x + c, n - c)));
}

/* Lanes beyond n become +0. */
V_INLINE vf32 within(vf32 x, size_t c, size_t n)
{
    return (vf32)v_keep_u32(first_lanes(n - c), (vu32)x);
}

/* ---- forward ---- */

V_INLINE float row_mean(const vround *m, const mpsim_norm_job *j, const float *x)
{
    const size_t n = j->r->cols;
    vlanes a = no_lanes();
    IN_LANES(n, c, k)
    a.s[k] = add(m, a.s[k], numbers_of(m, x, c, n));
    return mpsim_math_div(&j->m, lanes_sum(m, &a), j->n);
}

V_INLINE float row_inverse(const vround *m, const mpsim_norm_job *j, const float *x, float mean, m32 *nan)
{
    const size_t n = j->r->cols;
    vlanes a = no_lanes();
    IN_LANES(n, c, k)
    {
        look_at(x, c, n, nan);
        const vf32 d = sub(m, numbers_of(m, x, c, n), v_f32(mean));
        a.s[k] = add(m, a.s[k], within(mul(m, d, d), c, n));
    }
    const float var = mpsim_math_div(&j->m, lanes_sum(m, &a), j->n);
    return mpsim_batchnorm_inverse(&j->m, var, j->eps);
}

V_INLINE vf32 scaled_by(const vround *m, vf32 h, vf32 w, const mpsim_norm_row *r, vf32 b)
{
    const vf32 v = mul(m, h, to(m, w));
    return r->bias ? add(m, v, to(m, b)) : v;
}

V_INLINE void scale_row(const vround *m, const vround *careful, const mpsim_norm_job *j, const mpsim_norm_row *r,
                        float *y)
{
    const size_t n = j->r->cols;
    for (size_t c = 0; c < n; c += V_LANES) {
        const vf32 h = mul(m, sub(m, numbers_of(m, r->x, c, n), v_f32(r->mean)), v_f32(r->inverse));
        const vf32 w = take(r->weight + c, n - c), b = r->bias ? take(r->bias + c, n - c) : w;
        if (m32_any(m32_or(is_nan(w), is_nan(b))))
            give(y + c, scaled_by(careful, h, w, r, b), n - c);
        else
            give(y + c, scaled_by(m, h, w, r, b), n - c);
    }
}

V_INLINE int norm_loop(int how, const mpsim_norm_job *j, mpsim_norm_row *r, float *y)
{
    const vround m = rounding_of(how, &j->m), careful = rounding_of(how | CAREFUL, &j->m);
    m32 nan = no_lane();
    r->mean = j->r->kind == MPSIM_NORM_LAYER ? row_mean(&m, j, r->x) : 0.0f;
    r->inverse = row_inverse(&m, j, r->x, r->mean, &nan);
    if (!m.careful && m32_any(nan))
        return 0;
    scale_row(&m, &careful, j, r, y);
    return 1;
}

/* ---- backward ---- */

V_INLINE vf32 h_of(const vround *m, const mpsim_norm_row *r, size_t c, size_t n)
{
    return mul(m, sub(m, numbers_of(m, r->x, c, n), v_f32(r->mean)), v_f32(r->inverse));
}

V_INLINE vf32 g_of(const vround *m, const mpsim_norm_row *r, size_t c, size_t n)
{
    return mul(m, numbers_of(m, r->dy, c, n), numbers_of(m, r->weight, c, n));
}

V_INLINE int norm_back_loop(int how, const mpsim_norm_job *j, const mpsim_norm_row *r, float *dx)
{
    const size_t n = j->r->cols;
    const vround m = rounding_of(how, &j->m);
    vlanes of_g = no_lanes(), of_products = no_lanes();
    m32 nan = m32_or(is_nan(v_f32(r->mean)), is_nan(v_f32(r->inverse)));
    IN_LANES(n, c, k)
    {
        look_at(r->dy, c, n, &nan);
        look_at(r->x, c, n, &nan);
        look_at(r->weight, c, n, &nan);
        const vf32 g = g_of(&m, r, c, n);
        of_g.s[k] = add(&m, of_g.s[k], g);
        of_products.s[k] = add(&m, of_products.s[k], within(mul(&m, g, h_of(&m, r, c, n)), c, n));
    }
    const float sum = lanes_sum(&m, &of_g);
    const float a = j->r->kind == MPSIM_NORM_LAYER ? mpsim_math_div(&j->m, sum, j->n) : 0.0f;
    const float b = mpsim_math_div(&j->m, lanes_sum(&m, &of_products), j->n);
    if (!m.careful && m32_any(nan))
        return 0;
    for (size_t c = 0; c < n; c += V_LANES) {
        const vf32 centred = sub(&m, g_of(&m, r, c, n), v_f32(a)), product = mul(&m, h_of(&m, r, c, n), v_f32(b));
        give(dx + c, mul(&m, v_f32(r->inverse), sub(&m, centred, product)), n - c);
    }
    return 1;
}

/* ---- by the rounding ---- */

static void V_NAME(norm)(const mpsim_norm_job *j, mpsim_norm_row *r, float *y)
{
    int done = 0;
    BY_CARE(how_of(&j->m), how, done, norm_loop(how, j, r, y));
    if (done)
        V_NAME(finish)(&j->m, &j->out, y, j->r->cols);
    else
        mpsim_norm_plain(j, r, y);
}

static void V_NAME(norm_back)(const mpsim_norm_job *j, const mpsim_norm_row *r, float *dx)
{
    int done = 0;
    BY_CARE(how_of(&j->m), how, done, norm_back_loop(how, j, r, dx));
    if (done)
        V_NAME(finish)(&j->m, &j->out, dx, j->r->cols);
    else
        mpsim_norm_back_plain(j, r, dx);
}
