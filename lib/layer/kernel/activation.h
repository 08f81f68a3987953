/* activation.h -- GELU, SwiGLU and other functions of arrays and their gradients in vectors: the elements of
 * ../transformer.h in registers from operands to results. A loop for each function and rounding. Vectors with a NaN among
 * their operands are computed with CAREFUL operations. Included by the unit of each instruction set, after rounding.h. */
#pragma once

#include "rounding.h"

/* An activation, rounded as a constant says. */
typedef struct vactivation {
    vround m;
    vf32 k, c, c3, r, q;
} vactivation;

V_INLINE vactivation activation_of(int how, const mpsim_activate_job *j)
{
    const mpsim_gelu *g = &j->g;
    return (vactivation){rounding_of(how, &j->m), v_f32(g->k), v_f32(g->c), v_f32(g->c3), v_f32(g->r), v_f32(g->q)};
}

V_INLINE vf32 half(void)
{
    return v_f32(0.5f);
}

V_INLINE vf32 one(void)
{
    return v_f32(1.0f);
}

/* ---- forward ---- */

V_INLINE vf32 gelu_tanh_t(const vactivation *a, vf32 x)
{
    const vround *m = &a->m;
    const vf32 cube = mul(m, mul(m, x, x), x);
    return to(m, vector_tanh(mul(m, a->k, add(m, x, mul(m, a->c, cube)))));
}

V_INLINE vf32 gelu_erf_t(const vactivation *a, vf32 x)
{
    return to(&a->m, vector_erf(mul(&a->m, x, a->r)));
}

V_INLINE vf32 gelu_y(const vround *m, vf32 x, vf32 t)
{
    return mul(m, mul(m, half(), x), add(m, one(), t));
}

V_INLINE vf32 sigmoid_s(const vround *m, vf32 x)
{
    return to(m, vector_sigmoid(x));
}

V_INLINE vf32 relu(const vround *m, vf32 x)
{
    const vf32 y = (vf32)v_keep_u32(m32_not(v_gt_f32(v_f32(0.0f), x)), (vu32)(x + v_f32(0.0f)));
    return m->careful ? pick(is_nan(x), x, y) : y;
}

/* Of numbers x, and v of SWIGLU. */
V_INLINE vf32 value_of(mpsim_activation kind, const vactivation *a, vf32 x, vf32 v)
{
    const vround *m = &a->m;
    switch (kind) {
    case MPSIM_GELU_TANH:
        return gelu_y(m, x, gelu_tanh_t(a, x));
    case MPSIM_GELU:
        return gelu_y(m, x, gelu_erf_t(a, x));
    case MPSIM_SWIGLU:
        return mul(m, mul(m, x, sigmoid_s(m, x)), v);
    case MPSIM_RELU:
        return relu(m, x);
    case MPSIM_SILU:
        return mul(m, x, sigmoid_s(m, x));
    case MPSIM_SIGMOID:
        return sigmoid_s(m, x);
    case MPSIM_TANH:
        return to(m, vector_tanh(x));
    default:
        return to(m, vector_exp(x));
    }
}

V_INLINE vf32 rounded_value(mpsim_activation kind, const vactivation *a, vf32 x, vf32 v)
{
    return value_of(kind, a, to(&a->m, x), to(&a->m, v));
}

V_INLINE void forward_loop(int how, mpsim_activation kind, const mpsim_activate_job *j, float *y, const float *x,
                           const float *v, size_t n)
{
    const vactivation a = activation_of(how, j), careful = activation_of(how | CAREFUL, j);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf32 from = take(x + i, n - i), gated = kind == MPSIM_SWIGLU ? take(v + i, n - i) : from;
        const m32 nan = kind == MPSIM_SWIGLU ? m32_or(is_nan(from), is_nan(gated)) : is_nan(from);
        if (m32_any(nan))
            give(y + i, rounded_value(kind, &careful, from, gated), n - i);
        else
            give(y + i, rounded_value(kind, &a, from, gated), n - i);
    }
}

/* ---- backward ---- */

V_INLINE vf32 gelu_tanh_dx(const vactivation *a, vf32 dy, vf32 x)
{
    const vround *m = &a->m;
    const vf32 t = gelu_tanh_t(a, x), s = sub(m, one(), mul(m, t, t));
    const vf32 w = mul(m, a->k, add(m, one(), mul(m, a->c3, mul(m, x, x))));
    const vf32 left = mul(m, half(), add(m, one(), t)), right = mul(m, mul(m, mul(m, half(), x), s), w);
    return mul(m, dy, add(m, left, right));
}

/* What GELU's density is the exponential of; 0 for what has 1 as well, since the parts of so small numbers are subnormal
 * numbers, which cost some processors a hundred cycles. */
V_INLINE vf32 gelu_power(const vround *m, vf32 x)
{
    const vf32 power = mul(m, -half(), mul(m, x, x));
    return (vf32)v_keep_u32(m32_not(v_gt_f32(power, v_f32(-0x1p-30f))), (vu32)power);
}

V_INLINE vf32 gelu_erf_dx(const vactivation *a, vf32 dy, vf32 x)
{
    const vround *m = &a->m;
    const vf32 t = gelu_erf_t(a, x), e = to(m, vector_exp(gelu_power(m, x)));
    const vf32 left = mul(m, half(), add(m, one(), t)), p = mul(m, a->q, e);
    return mul(m, dy, add(m, left, mul(m, x, p)));
}

V_INLINE vf32 silu_slope(const vround *m, vf32 x, vf32 s)
{
    return mul(m, s, add(m, one(), mul(m, x, sub(m, one(), s))));
}

/* x of RELU, SIGMOID, TANH and EXP: the result. v and dv are SWIGLU's. */
V_INLINE vf32 slope_of(mpsim_activation kind, const vactivation *a, vf32 dy, vf32 x, vf32 v, vf32 *dv)
{
    const vround *m = &a->m;
    vf32 s;
    switch (kind) {
    case MPSIM_GELU_TANH:
        return gelu_tanh_dx(a, dy, x);
    case MPSIM_GELU:
        return gelu_erf_dx(a, dy, x);
    case MPSIM_SWIGLU:
        s = sigmoid_s(m, x);
        *dv = mul(m, dy, mul(m, x, s));
        return mul(m, mul(m, dy, v), silu_slope(m, x, s));
    case MPSIM_RELU:
        return (vf32)v_keep_u32(v_gt_f32(x, v_f32(0.0f)), (vu32)dy);
    case MPSIM_SILU:
        return mul(m, dy, silu_slope(m, x, sigmoid_s(m, x)));
    case MPSIM_SIGMOID:
        return mul(m, dy, mul(m, x, sub(m, one(), x)));
    case MPSIM_TANH:
        return mul(m, dy, sub(m, one(), mul(m, x, x)));
    default:
        return mul(m, dy, x);
    }
}

V_INLINE vf32 rounded_slope(mpsim_activation kind, const vactivation *a, vf32 dy, vf32 x, vf32 v, vf32 *dv)
{
    return slope_of(kind, a, to(&a->m, dy), to(&a->m, x), to(&a->m, v), dv);
}

V_INLINE void backward_loop(int how, mpsim_activation kind, const mpsim_activate_job *j, float *dx, float *dv,
                            const float *dy, const float *x, const float *v, size_t n)
{
    const vactivation a = activation_of(how, j), careful = activation_of(how | CAREFUL, j);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf32 d = take(dy + i, n - i), from = take(x + i, n - i);
        const vf32 gated = kind == MPSIM_SWIGLU ? take(v + i, n - i) : from;
        vf32 of_v = d;
        m32 nan = m32_or(is_nan(d), is_nan(from));
        if (kind == MPSIM_SWIGLU)
            nan = m32_or(nan, is_nan(gated));
        if (m32_any(nan))
            give(dx + i, rounded_slope(kind, &careful, d, from, gated, &of_v), n - i);
        else
            give(dx + i, rounded_slope(kind, &a, d, from, gated, &of_v), n - i);
        if (kind == MPSIM_SWIGLU)
            give(dv + i, of_v, n - i);
    }
}

/* ---- a loop for each ---- */

#define LOOPS(how, name, kind)                                                                                        \
    static void V_NAME(forward_##name##_##how)(const mpsim_activate_job *j, float *y, const float *x, const float *v, \
                                               size_t n)                                                              \
    {                                                                                                                 \
        forward_loop(ROUND_##how, kind, j, y, x, v, n);                                                               \
    }                                                                                                                 \
    static void V_NAME(backward_##name##_##how)(const mpsim_activate_job *j, float *dx, float *dv, const float *dy,   \
                                                const float *x, const float *v, size_t n)                             \
    {                                                                                                                 \
        backward_loop(ROUND_##how, kind, j, dx, dv, dy, x, v, n);                                                     \
    }
#define KINDS(how)                         \
    LOOPS(how, gelu_tanh, MPSIM_GELU_TANH) \
    LOOPS(how, gelu, MPSIM_GELU)           \
    LOOPS(how, swiglu, MPSIM_SWIGLU)       \
    LOOPS(how, relu, MPSIM_RELU)           \
    LOOPS(how, silu, MPSIM_SILU)           \
    LOOPS(how, sigmoid, MPSIM_SIGMOID)     \
    LOOPS(how, tanh, MPSIM_TANH)           \
    LOOPS(how, exp, MPSIM_EXP)
KINDS(BINARY32)
KINDS(BF16)
#ifdef V_HALF
KINDS(FP16)
#endif
KINDS(ANY)
KINDS(CAREFUL_BINARY32)
KINDS(CAREFUL_BF16)
#ifdef V_HALF
KINDS(CAREFUL_FP16)
#endif
KINDS(CAREFUL_ANY)
#undef KINDS
#undef LOOPS

#define LOOP_OF(way, name, how) V_NAME(way##_##name##_##how)
#define ROW(way, how)                                                                                   \
    [ROUND_##how] = {LOOP_OF(way, gelu_tanh, how), LOOP_OF(way, gelu, how), LOOP_OF(way, swiglu, how),  \
                     LOOP_OF(way, relu, how),      LOOP_OF(way, silu, how), LOOP_OF(way, sigmoid, how), \
                     LOOP_OF(way, tanh, how),      LOOP_OF(way, exp, how)}
#ifdef V_HALF
#define HALVES(way) ROW(way, FP16), ROW(way, CAREFUL_FP16),
#else
#define HALVES(way)
#endif
#define ROWS(way)                                                                                          \
    HALVES(way)                                                                                            \
    ROW(way, BINARY32), ROW(way, BF16), ROW(way, ANY), ROW(way, CAREFUL_BINARY32), ROW(way, CAREFUL_BF16), \
        ROW(way, CAREFUL_ANY)

static void V_NAME(activate)(const mpsim_activate_job *j, float *y, const float *x, const float *v, size_t n)
{
    static mpsim_activate_function *const loops[ALL_ROUNDINGS][MPSIM_EXP + 1] = {ROWS(forward)};
    const int how = how_of(&j->m);
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < PART ? n - i : PART;
        const watch w = watch_begin(how == ROUND_FP16);
        (how == ROUND_PLAIN ? mpsim_activate_plain : loops[how | w.careful][j->kind])(j, y + i, x + i, v ? v + i : NULL,
                                                                                      some);
        watch_end(w);
        V_NAME(finish)(&j->m, &j->out, y + i, some);
    }
}

static void V_NAME(activate_back)(const mpsim_activate_job *j, float *dx, float *dv, const float *dy, const float *x,
                                  const float *v, size_t n)
{
    static mpsim_activate_back_function *const loops[ALL_ROUNDINGS][MPSIM_EXP + 1] = {ROWS(backward)};
    const int how = how_of(&j->m);
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < PART ? n - i : PART;
        const watch w = watch_begin(how == ROUND_FP16);
        (how == ROUND_PLAIN ? mpsim_activate_back_plain : loops[how | w.careful][j->kind])(
            j, dx + i, dv ? dv + i : NULL, dy + i, x + i, v ? v + i : NULL, some);
        watch_end(w);
        V_NAME(finish)(&j->m, &j->out, dx + i, some);
        if (dv)
            V_NAME(finish)(&j->m, &j->out, dv + i, some);
    }
}
#undef ROWS
#undef HALVES
#undef ROW
#undef LOOP_OF
