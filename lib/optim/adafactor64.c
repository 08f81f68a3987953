/* adafactor64.c -- Adafactor in binary64, sums from left to right. */
#include "kernel/kernel.h"

#include "expand.h"

#include <math.h>

static double mean_square(const double *x, size_t n, size_t stride, double scale)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i * stride] / scale * (x[i * stride] / scale);
    return sum / (double)n;
}

static void follow(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n, size_t rows, size_t cols)
{
    const mpsim_optim *o = r->o;
    const double w = mpsim_expand_wide(r->step, o->beta2_decay);
    for (size_t i = 0; o->rows && i < n / cols; i++)
        a->m[i] += w * (mean_square(a->g + i * cols, cols, 1, o->grad_scale) - a->m[i]);
    for (size_t i = 0; i < n / rows; i++)
        a->v[i] += w * (mean_square(a->g + i / cols * rows * cols + i % cols, rows, cols, o->grad_scale) - a->v[i]);
}

static double mean_of_rows(const mpsim_optim *o, const double *m)
{
    double sum = 0;
    for (size_t i = 0; i < o->rows; i++)
        sum += m[i];
    return fmax(sum / (double)o->rows, o->eps);
}

/* A step of these updates; the mean of their squares. A step of 0 counts as no step. */
static double updates(const mpsim_optim *o, const mpsim_reference_arrays *a, size_t n, double step)
{
    const size_t each = o->rows * o->cols;
    double mean = 1, sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (each && i % each == 0)
            mean = mean_of_rows(o, a->m + i / o->cols);
        const double v = each ? a->m[i / o->cols] * a->v[i / each * o->cols + i % o->cols] / mean : a->v[i];
        const double u = a->g[i] / o->grad_scale / sqrt(fmax(v, o->eps * o->eps));
        sum += u * u;
        if (step != 0)
            a->p[i] = a->p[i] * (1 - o->lr * o->weight_decay) - step * (o->maximize ? -u : u);
    }
    return sum / (double)n;
}

void mpsim_adafactor_reference(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n)
{
    const mpsim_optim *o = r->o;
    const double rho = fmin(o->lr, 1 / sqrt((double)r->step));
    const double alpha = n ? fmax(o->eps2, sqrt(mean_square(a->p, n, 1, 1))) * rho : 0;
    follow(r, a, n, o->rows ? o->rows : 1, o->rows ? o->cols : 1);
    updates(o, a, n, alpha / fmax(1, sqrt(updates(o, a, n, 0)) / o->d));
}
