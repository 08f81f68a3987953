/* softmax.c -- softmax and its logarithm of the columns that rows see; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "kernel/kernel.h"
#include "shared.h"

#include <math.h>

typedef struct job {
    mpsim_math m, out;
    mpsim_softmax_row row;
    size_t rows, cols, length, first;
} job;

static mpsim_status start(job *j, const mpsim_softmax *c, const void *const *needed, size_t n)
{
    if (!c)
        return MPSIM_EINVAL;
    const int any = c->rows > 0 && c->cols > 0;
    const mpsim_status s = mpsim_layer_begin(&j->m, c->math, &j->out, c->f, mpsim_elements(c->rows, c->cols), needed,
                                             n);
    if (s != MPSIM_OK)
        return s;
    j->rows = any ? c->rows : 0;
    j->cols = c->cols;
    j->length = c->length;
    j->first = c->first;
    j->row.m = &j->m;
    j->row.out = &j->out;
    j->row.scale = mpsim_math_round(&j->m, c->scale);
    j->row.kernels = mpsim_layer_kernels_active();
    return MPSIM_OK;
}

/* How many columns row i may see. */
static size_t columns_of(const job *j, size_t i)
{
    if (j->length == 0)
        return j->cols;
    const size_t seen = (j->first + i) % j->length + 1 + j->cols, n = seen > j->length ? seen - j->length : 0;
    return n < j->cols ? n : j->cols;
}

/* Every row: `empty` where it sees nothing. */
static mpsim_status run(const mpsim_softmax *c, mpsim_softmax_kind kind, float empty, float *y, const float *a,
                        const float *b, const uint8_t *mask)
{
    job j;
    const mpsim_status s = start(&j, c, MPSIM_NEEDED(y, a, b));
    if (s != MPSIM_OK)
        return s;
    mpsim_softmax_function *const function = j.row.kernels->softmax[kind];
    const float hidden = mpsim_math_round(&j.out, empty);
    for (size_t i = 0, at = 0; i < j.rows; i++, at += j.cols) {
        j.row.n = columns_of(&j, i);
        j.row.mask = mask ? mask + at : NULL;
        function(&j.row, y + at, a + at, b + at);
        for (size_t k = j.row.n; k < j.cols; k++)
            y[at + k] = hidden;
    }
    return MPSIM_OK;
}

mpsim_status mpsim_softmax_rows(const mpsim_softmax *c, float *p, const float *s, const uint8_t *mask)
{
    return run(c, MPSIM_SOFTMAX_P, 0.0f, p, s, s, mask);
}

mpsim_status mpsim_log_softmax(const mpsim_softmax *c, float *y, const float *s, const uint8_t *mask)
{
    return run(c, MPSIM_SOFTMAX_LOG, -INFINITY, y, s, s, mask);
}

mpsim_status mpsim_softmax_backward(const mpsim_softmax *c, float *ds, const float *dp, const float *p,
                                    const uint8_t *mask)
{
    return run(c, MPSIM_SOFTMAX_BACK, 0.0f, ds, dp, p, mask);
}

mpsim_status mpsim_log_softmax_backward(const mpsim_softmax *c, float *ds, const float *dy, const float *y,
                                        const uint8_t *mask)
{
    return run(c, MPSIM_SOFTMAX_LOG_BACK, 0.0f, ds, dy, y, mask);
}
