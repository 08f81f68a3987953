/* activation.c -- GELU and SwiGLU of arrays; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "rows.h"
#include "transformer.h"

typedef struct job {
    mpsim_activation kind;
    mpsim_math m, out;
    mpsim_gelu g;
} job;

static mpsim_status start(job *j, mpsim_activation kind, const mpsim_format *math,
                          const mpsim_format *f)
{
    mpsim_status s = mpsim_math_init(&j->m, math);
    if (s == MPSIM_OK)
        s = mpsim_math_init(&j->out, f);
    if (s == MPSIM_OK && (unsigned)kind > MPSIM_SWIGLU)
        s = MPSIM_EINVAL;
    if (s != MPSIM_OK)
        return s;
    j->kind = kind;
    mpsim_gelu_set(&j->g, &j->m);
    return MPSIM_OK;
}

/* t of a GELU. */
static inline float t_of(const job *j, const mpsim_math *m, float x)
{
    return j->kind == MPSIM_GELU ? mpsim_gelu_erf_t(m, &j->g, x) : mpsim_gelu_tanh_t(m, &j->g, x);
}

/* ---- forward ---- */

static inline void forward(const job *j, const mpsim_math *m, float *y, const float *x, size_t n)
{
    if (j->kind == MPSIM_SWIGLU) {
        for (size_t i = 0; i < n; i++) {
            const float gate = mpsim_math_round(m, x[i]), value = mpsim_math_round(m, x[n + i]);
            y[i] = mpsim_swiglu_y(m, gate, value, mpsim_swiglu_s(m, gate));
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            const float v = mpsim_math_round(m, x[i]);
            y[i] = mpsim_gelu_y(m, v, t_of(j, m, v));
        }
    }
    mpsim_rows_round(&j->out, y, n);
}

mpsim_status mpsim_activate(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f,
                            float *y, const float *x, size_t rows, size_t cols)
{
    job j;
    const mpsim_status s = start(&j, kind, math, f);
    if (s != MPSIM_OK || rows == 0 || cols == 0)
        return s;
    if (!y || !x)
        return MPSIM_EINVAL;
    const size_t stride = kind == MPSIM_SWIGLU ? 2 * cols : cols;
    for (size_t i = 0; i < rows; i++)
        MPSIM_ROWS_BY_MATH(&j.m, m, forward(&j, m, y + i * cols, x + i * stride, cols));
    return MPSIM_OK;
}

/* ---- backward ---- */

static inline void backward_gates(const mpsim_math *m, float *dx, const float *dy, const float *x,
                                  size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float gate = mpsim_math_round(m, x[i]), value = mpsim_math_round(m, x[n + i]);
        const float s = mpsim_swiglu_s(m, gate), d = mpsim_math_round(m, dy[i]);
        dx[i] = mpsim_swiglu_dgate(m, d, gate, value, s);
        dx[n + i] = mpsim_swiglu_dvalue(m, d, gate, s);
    }
}

static inline void backward(const job *j, const mpsim_math *m, float *dx, const float *dy,
                            const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = mpsim_math_round(m, x[i]), d = mpsim_math_round(m, dy[i]);
        const float t = t_of(j, m, v);
        dx[i] = j->kind == MPSIM_GELU ? mpsim_gelu_erf_dx(m, &j->g, d, v, t)
                                      : mpsim_gelu_tanh_dx(m, &j->g, d, v, t);
    }
}

mpsim_status mpsim_activate_backward(mpsim_activation kind, const mpsim_format *math,
                                     const mpsim_format *f, float *dx, const float *dy,
                                     const float *x, size_t rows, size_t cols)
{
    job j;
    const mpsim_status s = start(&j, kind, math, f);
    if (s != MPSIM_OK || rows == 0 || cols == 0)
        return s;
    if (!dx || !dy || !x)
        return MPSIM_EINVAL;
    const size_t stride = kind == MPSIM_SWIGLU ? 2 * cols : cols;
    for (size_t i = 0; i < rows; i++) {
        float *const to = dx + i * stride;
        const float *const d = dy + i * cols, *const v = x + i * stride;
        if (kind == MPSIM_SWIGLU)
            MPSIM_ROWS_BY_MATH(&j.m, m, backward_gates(m, to, d, v, cols));
        else
            MPSIM_ROWS_BY_MATH(&j.m, m, backward(&j, m, to, d, v, cols));
        mpsim_rows_round(&j.out, to, stride);
    }
    return MPSIM_OK;
}
