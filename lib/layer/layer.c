/* layer.c -- exp, log, softmax with cross-entropy; see mpsim/layer.h. */
#include <mpsim/layer.h>

#include "kernel/kernel.h"
#include "shared.h"

mpsim_status mpsim_math_init(mpsim_math *m, const mpsim_format *f)
{
    if (f) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        const mpsim_status s = mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL);
        if (s != MPSIM_OK)
            return s;
    }
    mpsim_math_set(m, f);
    return MPSIM_OK;
}

float mpsim_exp(float x)
{
    return mpsim_exp_f32(x);
}

float mpsim_exp2(float x)
{
    return mpsim_exp2_f32(x);
}

float mpsim_log(float x)
{
    return mpsim_log_f32(x);
}

mpsim_number_counts mpsim_count_numbers(const float *x, size_t n)
{
    return mpsim_layer_kernels_active()->count(x, mpsim_fits(n, sizeof *x) ? n : 0);
}

mpsim_status mpsim_layer_begin(mpsim_math *m, const mpsim_format *math, mpsim_math *out, const mpsim_format *f,
                               size_t elements, const void *const *needed, size_t n)
{
    mpsim_status s = mpsim_math_init(m, math);
    if (s == MPSIM_OK)
        s = mpsim_math_init(out, f);
    if (s == MPSIM_OK && !mpsim_fits(elements, sizeof(float)))
        s = MPSIM_EINVAL;
    for (size_t i = 0; i < n && s == MPSIM_OK && elements; i++)
        if (!needed[i])
            s = MPSIM_EINVAL;
    return s;
}

/* ---- softmax and cross-entropy ---- */

typedef struct losses {
    size_t rows;
    const float *x;
    const uint32_t *labels, *ignored; /* ignored NULL: none is */
    float *loss, *dx;
    uint64_t *correct, *counted;
} losses;

static int is_ignored(const losses *l, size_t i)
{
    return l->ignored && l->labels[i] == *l->ignored;
}

/* A row that counts: 1 if it is correct. */
static uint64_t one_row(const mpsim_xent *p, const losses *l, size_t i)
{
    int hit;
    float *const dx = l->dx ? l->dx + i * p->classes : NULL;
    const float loss = p->kernels->xent(p, dx, l->x + i * p->classes, l->labels[i], &hit);
    if (l->loss)
        l->loss[i] = loss;
    return (uint64_t)hit;
}

static void no_row(const mpsim_xent *p, const losses *l, size_t i)
{
    if (l->loss)
        l->loss[i] = 0;
    if (l->dx)
        memset(l->dx + i * p->classes, 0, p->classes * sizeof *l->dx);
}

static mpsim_status cross_entropy(const mpsim_format *math, const mpsim_format *f, size_t classes, float coefficient,
                                  const losses *l)
{
    mpsim_xent p = {.classes = classes, .kernels = mpsim_layer_kernels_active()};
    uint64_t hits = 0, counted = 0;
    const mpsim_status s = mpsim_layer_begin(&p.m, math, &p.out, f, mpsim_elements(l->rows, classes ? classes : 1),
                                             MPSIM_NEEDED(l->x, l->labels));
    if (s != MPSIM_OK)
        return s;
    for (size_t i = 0; i < l->rows; i++)
        if (l->labels[i] >= classes && !is_ignored(l, i))
            return MPSIM_EINVAL;
    p.coefficient = mpsim_math_round(&p.m, coefficient);
    for (size_t i = 0; i < l->rows; i++) {
        if (is_ignored(l, i)) {
            no_row(&p, l, i);
            continue;
        }
        hits += one_row(&p, l, i);
        counted++;
    }
    if (l->correct)
        *l->correct = hits;
    if (l->counted)
        *l->counted = counted;
    return MPSIM_OK;
}

mpsim_status mpsim_softmax_xent(const mpsim_format *math, const mpsim_format *f, size_t rows, size_t classes,
                                const float *x, const uint32_t *labels, float coefficient, float *loss, float *dx,
                                uint64_t *correct)
{
    const losses l = {rows, x, labels, NULL, loss, dx, correct, NULL};
    return cross_entropy(math, f, classes, coefficient, &l);
}

mpsim_status mpsim_cross_entropy(const mpsim_format *math, const mpsim_format *f, size_t rows, size_t classes,
                                 const float *x, const uint32_t *labels, uint32_t ignored, float coefficient,
                                 float *loss, float *dx, uint64_t *correct, uint64_t *counted)
{
    const losses l = {rows, x, labels, &ignored, loss, dx, correct, counted};
    return cross_entropy(math, f, classes, coefficient, &l);
}
