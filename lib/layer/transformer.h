/* transformer.h -- the elements of what a transformer computes beside matrix products, one number at
 * a time: normalisation of rows, activations, softmax of causal attention. See mpsim/transformer.h.
 *
 * As scalar.h: C17 and CUDA C++, the same bits. Inputs are numbers of m. Sums are left to the caller,
 * and so is the rounding of y, dx, P and dS to their format. */
#pragma once

#include "functions.h"

/* ---- normalisation of rows ---- */

/* As in batch normalisation: terms of the variance (mpsim_batchnorm_square), the inverse, h
 * (mpsim_batchnorm_normal) and, of g instead of dy and of the inverse as the factor, dx
 * (mpsim_batchnorm_dx). For RMSNorm mean and a are +0, which changes no number that it is subtracted
 * from. y with a bias is mpsim_batchnorm_y. */
static inline MPSIM_HD float mpsim_rownorm_y(const mpsim_math *m, float h, float weight)
{
    return mpsim_math_mul(m, h, weight);
}

/* ---- activations ---- */

/* Constants of the activations, rounded to m. */
typedef struct mpsim_gelu {
    float k, c, c3, r, q;
} mpsim_gelu;

static inline MPSIM_HD void mpsim_gelu_set(mpsim_gelu *g, const mpsim_math *m)
{
    g->k = mpsim_math_round(m, 0x1.988454p-1f);
    g->c = mpsim_math_round(m, 0x1.6e4e26p-5f);
    g->c3 = mpsim_math_round(m, 0x1.12ba9ep-3f);
    g->r = mpsim_math_round(m, 0x1.6a09e6p-1f);
    g->q = mpsim_math_round(m, 0x1.988454p-2f);
}

/* What t is the tanh, the erf of. */
static inline MPSIM_HD float mpsim_gelu_tanh_u(const mpsim_math *m, const mpsim_gelu *g, float x)
{
    const float cube = mpsim_math_mul(m, mpsim_math_mul(m, x, x), x);
    const float inner = mpsim_math_add(m, x, mpsim_math_mul(m, g->c, cube));
    return mpsim_math_mul(m, g->k, inner);
}

static inline MPSIM_HD float mpsim_gelu_erf_u(const mpsim_math *m, const mpsim_gelu *g, float x)
{
    return mpsim_math_mul(m, x, g->r);
}

static inline MPSIM_HD float mpsim_gelu_tanh_t(const mpsim_math *m, const mpsim_gelu *g, float x)
{
    return mpsim_math_round(m, mpsim_tanh_f32(mpsim_gelu_tanh_u(m, g, x)));
}

static inline MPSIM_HD float mpsim_gelu_erf_t(const mpsim_math *m, const mpsim_gelu *g, float x)
{
    return mpsim_math_round(m, mpsim_erf_f32(mpsim_gelu_erf_u(m, g, x)));
}

/* y of both. */
static inline MPSIM_HD float mpsim_gelu_y(const mpsim_math *m, float x, float t)
{
    return mpsim_math_mul(m, mpsim_math_mul(m, 0.5f, x), mpsim_math_add(m, 1.0f, t));
}

static inline MPSIM_HD float mpsim_gelu_tanh_dx(const mpsim_math *m, const mpsim_gelu *g, float dy, float x, float t)
{
    const float s = mpsim_math_sub(m, 1.0f, mpsim_math_mul(m, t, t));
    const float square = mpsim_math_mul(m, g->c3, mpsim_math_mul(m, x, x));
    const float w = mpsim_math_mul(m, g->k, mpsim_math_add(m, 1.0f, square));
    const float left = mpsim_math_mul(m, 0.5f, mpsim_math_add(m, 1.0f, t));
    const float right = mpsim_math_mul(m, mpsim_math_mul(m, mpsim_math_mul(m, 0.5f, x), s), w);
    return mpsim_math_mul(m, dy, mpsim_math_add(m, left, right));
}

/* What the density of GELU's derivative is the exponential of; e: that, rounded. */
static inline MPSIM_HD float mpsim_gelu_power(const mpsim_math *m, float x)
{
    return mpsim_math_mul(m, -0.5f, mpsim_math_mul(m, x, x));
}

static inline MPSIM_HD float mpsim_gelu_erf_slope(const mpsim_math *m, const mpsim_gelu *g, float dy, float x, float t,
                                                  float e)
{
    const float p = mpsim_math_mul(m, g->q, e);
    const float left = mpsim_math_mul(m, 0.5f, mpsim_math_add(m, 1.0f, t));
    return mpsim_math_mul(m, dy, mpsim_math_add(m, left, mpsim_math_mul(m, x, p)));
}

static inline MPSIM_HD float mpsim_gelu_erf_dx(const mpsim_math *m, const mpsim_gelu *g, float dy, float x, float t)
{
    const float e = mpsim_math_round(m, mpsim_exp_f32(mpsim_gelu_power(m, x)));
    return mpsim_gelu_erf_slope(m, g, dy, x, t, e);
}

/* sigmoid of a gate: s. */
static inline MPSIM_HD float mpsim_swiglu_s(const mpsim_math *m, float gate)
{
    return mpsim_math_round(m, mpsim_sigmoid_f32(gate));
}

static inline MPSIM_HD float mpsim_swiglu_y(const mpsim_math *m, float gate, float value, float s)
{
    return mpsim_math_mul(m, mpsim_math_mul(m, gate, s), value);
}

/* The gradient of the value. */
static inline MPSIM_HD float mpsim_swiglu_dvalue(const mpsim_math *m, float dy, float gate, float s)
{
    return mpsim_math_mul(m, dy, mpsim_math_mul(m, gate, s));
}

/* The derivative of x * sigmoid(x), of s = sigmoid(x). */
static inline MPSIM_HD float mpsim_silu_slope(const mpsim_math *m, float x, float s)
{
    const float rest = mpsim_math_mul(m, x, mpsim_math_sub(m, 1.0f, s));
    return mpsim_math_mul(m, s, mpsim_math_add(m, 1.0f, rest));
}

/* The gradient of the gate. */
static inline MPSIM_HD float mpsim_swiglu_dgate(const mpsim_math *m, float dy, float gate, float value, float s)
{
    return mpsim_math_mul(m, mpsim_math_mul(m, dy, value), mpsim_silu_slope(m, gate, s));
}

/* s: sigmoid(x). */
static inline MPSIM_HD float mpsim_silu_y(const mpsim_math *m, float x, float s)
{
    return mpsim_math_mul(m, x, s);
}

static inline MPSIM_HD float mpsim_silu_dx(const mpsim_math *m, float dy, float x, float s)
{
    return mpsim_math_mul(m, dy, mpsim_silu_slope(m, x, s));
}

/* Of results y: sigmoid's, tanh's, exp's. */
static inline MPSIM_HD float mpsim_sigmoid_dx(const mpsim_math *m, float dy, float y)
{
    return mpsim_math_mul(m, dy, mpsim_math_mul(m, y, mpsim_math_sub(m, 1.0f, y)));
}

static inline MPSIM_HD float mpsim_tanh_dx(const mpsim_math *m, float dy, float y)
{
    return mpsim_math_mul(m, dy, mpsim_math_sub(m, 1.0f, mpsim_math_mul(m, y, y)));
}

static inline MPSIM_HD float mpsim_exp_dx(const mpsim_math *m, float dy, float y)
{
    return mpsim_math_mul(m, dy, y);
}

/* ---- softmax of causal attention ---- */

/* x[j]; the largest is mpsim_softmax_max, e[j] mpsim_softmax_exp. */
static inline MPSIM_HD float mpsim_causal_x(const mpsim_math *m, float scale, float s)
{
    return mpsim_math_mul(m, scale, s);
}

static inline MPSIM_HD float mpsim_causal_p(const mpsim_math *m, float e, float z)
{
    return mpsim_math_div(m, e, z);
}

/* A term of D. */
static inline MPSIM_HD float mpsim_causal_term(const mpsim_math *m, float p, float dp)
{
    return mpsim_math_mul(m, p, dp);
}

/* Also of tiles, of e, d and m binary32. */
static inline MPSIM_HD float mpsim_causal_ds(const mpsim_math *m, float p, float dp, float d, float scale)
{
    return mpsim_math_mul(m, mpsim_math_mul(m, p, mpsim_math_sub(m, dp, d)), scale);
}

/* log of P, of x - max and log z. */
static inline MPSIM_HD float mpsim_softmax_log(const mpsim_math *m, float less, float log_z)
{
    return mpsim_math_sub(m, less, log_z);
}

/* e: exp of a logarithm y; d: the sum of dy. */
static inline MPSIM_HD float mpsim_softmax_log_ds(const mpsim_math *m, float e, float dy, float d, float scale)
{
    return mpsim_math_mul(m, mpsim_math_sub(m, dy, mpsim_math_mul(m, e, d)), scale);
}

/* ---- tiles: binary32 ---- */

/* r of a largest number. */
static inline MPSIM_HD float mpsim_tile_r(float max)
{
    return mpsim_bits_f32(max) == 0xff800000u ? 0.0f : max;
}

/* exp(x - r): e of an element, r = lse in the backward pass; a of the largest number before. */
static inline MPSIM_HD float mpsim_tile_exp(float x, float r)
{
    return mpsim_exp_f32(mpsim_f32_sub(x, r));
}

static inline MPSIM_HD float mpsim_tile_sum(float sum, float a, float z)
{
    return mpsim_f32_add(mpsim_f32_mul(sum, a), z);
}

/* back = 1 / p_scale. */
static inline MPSIM_HD float mpsim_tile_y(float o, float back, float sum)
{
    return mpsim_f32_div(mpsim_f32_mul(o, back), sum);
}

static inline MPSIM_HD float mpsim_tile_lse(float max, float sum)
{
    return mpsim_f32_add(max, mpsim_log_f32(sum));
}
