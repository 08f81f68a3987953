/* reference.c -- an optimizer step in binary64. */
#include "steps.h"

#include <math.h>

/* What an element is updated with. */
typedef struct reference {
    const mpsim_optim *o;
    uint64_t step;
    double bc1, bc2;
} reference;

static double reference_sgd(const reference *r, double g, double *m)
{
    const mpsim_optim *o = r->o;
    if (o->momentum == 0)
        return o->lr * g;
    *m = r->step == 1 ? g : o->momentum * *m + (1 - o->dampening) * g;
    return o->lr * (o->nesterov ? g + o->momentum * *m : *m);
}

static double reference_adam(const reference *r, double g, double *m, double *v, double *vmax)
{
    const mpsim_optim *o = r->o;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * (g * g);
    if (vmax)
        *vmax = *vmax > *v || isnan(*vmax) ? *vmax : *v;
    return o->lr * (*m / r->bc1) / (sqrt((vmax ? *vmax : *v) / r->bc2) + o->eps);
}

mpsim_status mpsim_optim_reference(const mpsim_optim *o, uint64_t step, double *param,
                                   const double *grad, double *m, double *v, double *vmax,
                                   size_t n)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0)
        return MPSIM_EINVAL;
    const int adam = o->algorithm != MPSIM_OPTIM_SGD;
    if (n > 0 && (!param || !grad || (!m && (adam || o->momentum != 0)) || (!v && adam) ||
                  (!vmax && o->amsgrad)))
        return MPSIM_EINVAL;
    const reference r = {.o = o, .step = step, .bc1 = 1 - mpsim_power(o->beta1, step),
                         .bc2 = 1 - mpsim_power(o->beta2, step)};
    for (size_t i = 0; i < n; i++) {
        double g = grad[i] / o->grad_scale;
        g = o->maximize ? -g : g;
        if (o->weight_decay != 0 && o->algorithm == MPSIM_OPTIM_ADAMW)
            param[i] -= o->lr * o->weight_decay * param[i];
        else if (o->weight_decay != 0)
            g += o->weight_decay * param[i];
        param[i] -= adam ? reference_adam(&r, g, m + i, v + i, o->amsgrad ? vmax + i : NULL)
                         : reference_sgd(&r, g, o->momentum != 0 ? m + i : NULL);
    }
    return MPSIM_OK;
}
