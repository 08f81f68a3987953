/* reference.c -- an optimizer step in binary64. */
#include "kernel/kernel.h"

#include <math.h>

static double reference_sgd(const mpsim_reference *r, double g, double *m, double *v, double *vmax)
{
    const mpsim_optim *o = r->o;
    (void)v, (void)vmax;
    if (o->momentum == 0)
        return o->lr * g;
    *m = r->step == 1 ? g : o->momentum * *m + (1 - o->dampening) * g;
    return o->lr * (o->nesterov ? g + o->momentum * *m : *m);
}

static double reference_adam(const mpsim_reference *r, double g, double *m, double *v, double *vmax)
{
    const mpsim_optim *o = r->o;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * (g * g);
    if (vmax)
        *vmax = *vmax > *v || isnan(*vmax) ? *vmax : *v;
    return o->lr * (*m / r->bc1) / (sqrt((vmax ? *vmax : *v) / r->bc2) + o->eps);
}

static double reference_lion(const mpsim_reference *r, double g, double *m, double *v, double *vmax)
{
    (void)v, (void)vmax;
    return mpsim_lion_reference(r, g, m);
}

/* What a parameter gives away, but for decay; whether vectors do it, too; or a step of a whole tensor. */
static const struct {
    double (*update)(const mpsim_reference *r, double g, double *m, double *v, double *vmax);
    int in_vectors;
    void (*tensor)(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t n);
} families[MPSIM_OPTIM_ALGORITHMS] = {[MPSIM_OPTIM_SGD] = {reference_sgd, 1, NULL},
                                      [MPSIM_OPTIM_ADAM] = {reference_adam, 1, NULL},
                                      [MPSIM_OPTIM_LION] = {reference_lion, 0, NULL},
                                      [MPSIM_OPTIM_ADAFACTOR] = {.tensor = mpsim_adafactor_reference}};

static double *at(double *x, size_t i)
{
    return x ? x + i : NULL;
}

/* Elements begin to end - 1: the reference of kernel/gradient.h, and what it leaves. */
static void update(const mpsim_reference *r, const mpsim_reference_arrays *a, size_t begin, size_t end)
{
    const mpsim_optim *o = r->o;
    for (size_t i = begin; i < end; i++) {
        double g = a->g[i] / o->grad_scale;
        g = o->maximize ? -g : g;
        if (o->weight_decay != 0 && r->decoupled)
            a->p[i] -= o->lr * o->weight_decay * a->p[i];
        else if (o->weight_decay != 0)
            g += o->weight_decay * a->p[i];
        a->p[i] -= families[r->family].update(r, g, at(a->m, i), at(a->v, i), at(a->vmax, i));
    }
}

static mpsim_reference reference_of(const mpsim_optim *o, uint64_t step)
{
    const mpsim_optim_traits *t = mpsim_optim_traits_of(o->algorithm);
    return (mpsim_reference){.o = o,
                             .step = step,
                             .bc1 = 1 - mpsim_power(o->beta1, step),
                             .bc2 = 1 - mpsim_power(o->beta2, step),
                             .arrays = mpsim_optim_arrays(o),
                             .decoupled = t->decoupled,
                             .family = t->family};
}

size_t mpsim_optim_moves(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t, uint32_t *moved)
{
    const mpsim_optim_kernels *k = mpsim_optim_kernels_active();
    const mpsim_reference r = reference_of(o, step);
    return k && r.family == MPSIM_OPTIM_ADAM ? k->moves(&r, t, moved) : 0;
}

mpsim_status mpsim_optim_reference(const mpsim_optim *o, uint64_t step, double *param, const double *grad, double *m,
                                   double *v, double *vmax, size_t n)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0 || !mpsim_optim_fits(o, n))
        return MPSIM_EINVAL;
    const unsigned arrays = mpsim_optim_arrays(o);
    const int has_m = arrays & MPSIM_OPTIM_M, has_v = arrays & MPSIM_OPTIM_V, has_vmax = arrays & MPSIM_OPTIM_VMAX;
    if (n > 0 && (!param || !grad || (!m && has_m) || (!v && has_v) || (!vmax && has_vmax)))
        return MPSIM_EINVAL;
    const mpsim_optim_traits *t = mpsim_optim_traits_of(o->algorithm);
    const mpsim_optim_kernels *k = families[t->family].in_vectors ? mpsim_optim_kernels_active() : NULL;
    const mpsim_reference r = reference_of(o, step);
    if (families[t->family].tensor && n > 0) {
        const mpsim_reference_arrays a = {param, m, v, vmax, grad};
        families[t->family].tensor(&r, &a, n);
        return MPSIM_OK;
    }
    for (size_t i = 0; i < n;) {
        const mpsim_reference_arrays a = {param + i, has_m ? m + i : NULL, has_v ? v + i : NULL,
                                          has_vmax ? vmax + i : NULL, grad + i};
        const size_t done = k ? k->reference(&r, &a, n - i) : 0;
        const size_t left = !k || n - i - done < MPSIM_OPTIM_LEFT ? n - i - done : MPSIM_OPTIM_LEFT;
        update(&r, &a, done, done + left);
        i += done + left;
    }
    return MPSIM_OK;
}
