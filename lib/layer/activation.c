/* activation.c -- GELU, SwiGLU and other functions of arrays; see mpsim/transformer.h.
 *
 * Gradients of sigmoid, tanh and exp take the result of the function, as frameworks save it. Gradients of GELU and
 * SiLU take the argument. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "shared.h"

typedef mpsim_activate_job job;

static mpsim_status start(job *j, mpsim_activation kind, const mpsim_format *math, const mpsim_format *f)
{
    mpsim_status s = mpsim_layer_begin(&j->m, math, &j->out, f, 0, NULL, 0);
    if (s == MPSIM_OK && (unsigned)kind > MPSIM_EXP)
        s = MPSIM_EINVAL;
    if (s != MPSIM_OK)
        return s;
    j->kind = kind;
    j->kernels = mpsim_layer_kernels_active();
    mpsim_gelu_set(&j->g, &j->m);
    return MPSIM_OK;
}

/* Whether memory can hold rows of x. */
static int are_rows(mpsim_activation kind, size_t rows, size_t cols)
{
    return mpsim_fits(mpsim_elements(rows, mpsim_elements(kind == MPSIM_SWIGLU ? 2 : 1, cols)), sizeof(float));
}

mpsim_status mpsim_activate(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f, float *y,
                            const float *x, size_t rows, size_t cols)
{
    job j;
    const mpsim_status s = start(&j, kind, math, f);
    if (s != MPSIM_OK || rows == 0 || cols == 0)
        return s;
    if (!y || !x || !are_rows(kind, rows, cols))
        return MPSIM_EINVAL;
    if (kind != MPSIM_SWIGLU)
        j.kernels->activate(&j, y, x, NULL, rows * cols);
    for (size_t i = 0; kind == MPSIM_SWIGLU && i < rows; i++) {
        const float *const gates = x + i * 2 * cols;
        j.kernels->activate(&j, y + i * cols, gates, gates + cols, cols);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_swiglu_forward(const mpsim_format *math, const mpsim_format *f, float *y, const float *gate,
                                  const float *value, size_t n)
{
    job j;
    const mpsim_status s = start(&j, MPSIM_SWIGLU, math, f);
    if (s == MPSIM_OK)
        j.kernels->activate(&j, y, gate, value, n);
    return s;
}

mpsim_status mpsim_activate_backward(mpsim_activation kind, const mpsim_format *math, const mpsim_format *f, float *dx,
                                     const float *dy, const float *x, size_t rows, size_t cols)
{
    job j;
    const mpsim_status s = start(&j, kind, math, f);
    if (s != MPSIM_OK || rows == 0 || cols == 0)
        return s;
    if (!dx || !dy || !x || !are_rows(kind, rows, cols))
        return MPSIM_EINVAL;
    if (kind != MPSIM_SWIGLU)
        j.kernels->activate_back(&j, dx, NULL, dy, x, NULL, rows * cols);
    for (size_t i = 0; kind == MPSIM_SWIGLU && i < rows; i++) {
        float *const to = dx + i * 2 * cols;
        const float *const gates = x + i * 2 * cols;
        j.kernels->activate_back(&j, to, to + cols, dy + i * cols, gates, gates + cols, cols);
    }
    return MPSIM_OK;
}

mpsim_status mpsim_swiglu_backward(const mpsim_format *math, const mpsim_format *f, float *dgate, float *dvalue,
                                   const float *dy, const float *gate, const float *value, size_t n)
{
    job j;
    const mpsim_status s = start(&j, MPSIM_SWIGLU, math, f);
    if (s == MPSIM_OK)
        j.kernels->activate_back(&j, dgate, dvalue, dy, gate, value, n);
    return s;
}
