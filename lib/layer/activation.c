/* activation.c -- GELU and SwiGLU of arrays; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "rows.h"
#include "transformer.h"

typedef struct job {
    mpsim_activation kind;
    mpsim_math m, out;
    mpsim_gelu g;
    const mpsim_layer_kernels *kernels;
} job;

static mpsim_status start(job *j, mpsim_activation kind, const mpsim_format *math, const mpsim_format *f)
{
    mpsim_status s = mpsim_layer_begin(&j->m, math, &j->out, f, 0, NULL, 0);
    if (s == MPSIM_OK && (unsigned)kind > MPSIM_SWIGLU)
        s = MPSIM_EINVAL;
    if (s != MPSIM_OK)
        return s;
    j->kind = kind;
    j->kernels = mpsim_layer_kernels_active();
    mpsim_gelu_set(&j->g, &j->m);
    return MPSIM_OK;
}

/* Elements at a time: their functions are computed in between. */
enum { SOME = 128 };

/* t of GELUs. */
static inline void t_of(const job *j, const mpsim_math *m, float *t, const float *x, size_t n)
{
    const int erf = j->kind == MPSIM_GELU;
    for (size_t i = 0; i < n; i++) {
        const float v = mpsim_math_round(m, x[i]);
        t[i] = erf ? mpsim_gelu_erf_u(m, &j->g, v) : mpsim_gelu_tanh_u(m, &j->g, v);
    }
    (erf ? j->kernels->erf : j->kernels->tanh)(t, t, n);
    mpsim_rows_round(m, t, n);
}

/* s of gates. */
static inline void s_of(const job *j, const mpsim_math *m, float *s, const float *x, size_t n)
{
    size_t i = 0;
    do /* n > 0, which compilers want to see */
        s[i] = mpsim_math_round(m, x[i]);
    while (++i < n);
    j->kernels->sigmoid(s, s, n);
    mpsim_rows_round(m, s, n);
}

/* ---- forward ---- */

/* v: the values of gates. */
static inline void forward_some(const job *j, const mpsim_math *m, float *y, const float *x, const float *v, size_t n)
{
    float t[SOME];
    if (j->kind == MPSIM_SWIGLU) {
        s_of(j, m, t, x, n);
        for (size_t i = 0; i < n; i++)
            y[i] = mpsim_swiglu_y(m, mpsim_math_round(m, x[i]), mpsim_math_round(m, v[i]), t[i]);
    } else {
        t_of(j, m, t, x, n);
        for (size_t i = 0; i < n; i++)
            y[i] = mpsim_gelu_y(m, mpsim_math_round(m, x[i]), t[i]);
    }
    mpsim_rows_round(&j->out, y, n);
}

static inline void forward(const job *j, const mpsim_math *m, float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += SOME)
        forward_some(j, m, y + i, x + i, x + n + i, n - i < SOME ? n - i : SOME);
}

mpsim_status mpsim_activate(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f, float *y,
                            const float *x, size_t rows, size_t cols)
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

/* n gates, and their values. */
static inline void backward_gates(const job *j, const mpsim_math *m, float *dx, float *dv, const float *dy,
                                  const float *x, const float *v, size_t n)
{
    float s[SOME];
    s_of(j, m, s, x, n);
    for (size_t i = 0; i < n; i++) {
        const float gate = mpsim_math_round(m, x[i]), value = mpsim_math_round(m, v[i]);
        const float d = mpsim_math_round(m, dy[i]);
        dx[i] = mpsim_swiglu_dgate(m, d, gate, value, s[i]);
        dv[i] = mpsim_swiglu_dvalue(m, d, gate, s[i]);
    }
}

static inline void backward_gelu(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *x,
                                 size_t n)
{
    float t[SOME], e[SOME];
    t_of(j, m, t, x, n);
    if (j->kind == MPSIM_GELU) {
        for (size_t i = 0; i < n; i++)
            e[i] = mpsim_gelu_power(m, mpsim_math_round(m, x[i]));
        j->kernels->exp(e, e, n);
        mpsim_rows_round(m, e, n);
    }
    for (size_t i = 0; i < n; i++) {
        const float v = mpsim_math_round(m, x[i]), d = mpsim_math_round(m, dy[i]);
        dx[i] = j->kind == MPSIM_GELU ? mpsim_gelu_erf_slope(m, &j->g, d, v, t[i], e[i])
                                      : mpsim_gelu_tanh_dx(m, &j->g, d, v, t[i]);
    }
}

static inline void backward(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME;
        if (j->kind == MPSIM_SWIGLU)
            backward_gates(j, m, dx + i, dx + n + i, dy + i, x + i, x + n + i, some);
        else
            backward_gelu(j, m, dx + i, dy + i, x + i, some);
    }
}

mpsim_status mpsim_activate_backward(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f, float *dx,
                                     const float *dy, const float *x, size_t rows, size_t cols)
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
        MPSIM_ROWS_BY_MATH(&j.m, m, backward(&j, m, to, d, v, cols));
        mpsim_rows_round(&j.out, to, stride);
    }
    return MPSIM_OK;
}
