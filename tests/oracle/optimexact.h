/* optimexact.h -- an optimizer step in 200 bits, and how much an error of its parts may weigh. */
#pragma once

#include "optim.h"

static inline int is_adam(const mpsim_optim *o)
{
    return family_of(o) == MPSIM_OPTIM_ADAM;
}

typedef struct exact {
    double p, m, v, x;                /* the step, rounded to binary64                         */
    double p_scale, m_scale, v_scale; /* sums of the magnitudes that were added up    */
} exact;

typedef struct work {
    int ready;
    mpfr_t p, g, m, v, t, u;
} work;

static inline work *work_get(void)
{
    static work w;
    if (!w.ready)
        mpfr_inits2(200, w.p, w.g, w.m, w.v, w.t, w.u, (mpfr_ptr)NULL);
    w.ready = 1;
    return &w;
}

/* z = a y + b x for binary64 a, and b = 1 - a if b is NULL; returns |a y| + |b x|. */
static inline double blend(mpfr_t z, double a, const mpfr_t y, const double *b, const mpfr_t x, work *w)
{
    mpfr_mul_d(w->t, y, a, MPFR_RNDN);
    mpfr_set_d(w->u, b ? *b : a, MPFR_RNDN);
    if (!b)
        mpfr_ui_sub(w->u, 1, w->u, MPFR_RNDN);
    mpfr_mul(w->u, w->u, x, MPFR_RNDN);
    mpfr_add(z, w->t, w->u, MPFR_RNDN);
    return fabs(mpfr_get_d(w->t, MPFR_RNDN)) + fabs(mpfr_get_d(w->u, MPFR_RNDN));
}

/* 1 - beta^step, exactly enough. */
static inline void correction(mpfr_t z, double beta, uint64_t step)
{
    mpfr_set_d(z, beta, MPFR_RNDN);
    mpfr_pow_ui(z, z, (unsigned long)step, MPFR_RNDN);
    mpfr_ui_sub(z, 1, z, MPFR_RNDN);
}

static inline void exact_sgd(const mpsim_optim *o, uint64_t step, double m, exact *y, work *w)
{
    const double one = 1, undamped = 1 - o->dampening;
    if (o->momentum != 0) {
        mpfr_set_d(w->m, m, MPFR_RNDN);
        if (step == 1) {
            mpfr_set(w->m, w->g, MPFR_RNDN);
        } else {
            y->m_scale += blend(w->m, o->momentum, w->m, &undamped, w->g, w);
        }
        y->m = mpfr_get_d(w->m, MPFR_RNDN);
        if (o->nesterov)
            y->m_scale += blend(w->g, o->momentum, w->m, &one, w->g, w);
        else
            mpfr_set(w->g, w->m, MPFR_RNDN);
    }
    mpfr_mul_d(w->u, w->g, o->lr, MPFR_RNDN);
}

/* u = the update without decoupled decay. */
static inline void exact_adam(const mpsim_optim *o, uint64_t step, const element *e, exact *y, work *w)
{
    mpfr_set_d(w->m, e->m, MPFR_RNDN);
    mpfr_set_d(w->v, e->v, MPFR_RNDN);
    y->m_scale += blend(w->m, o->beta1, w->m, NULL, w->g, w);
    mpfr_sqr(w->g, w->g, MPFR_RNDN);
    y->v_scale = blend(w->v, o->beta2, w->v, NULL, w->g, w);
    y->m = mpfr_get_d(w->m, MPFR_RNDN);
    y->v = y->x = mpfr_get_d(w->v, MPFR_RNDN);
    if (o->amsgrad && mpfr_cmp_d(w->v, e->x) < 0) {
        mpfr_set_d(w->v, e->x, MPFR_RNDN);
        y->x = e->x;
    }
    correction(w->t, o->beta2, step);
    mpfr_div(w->v, w->v, w->t, MPFR_RNDN);
    mpfr_sqrt(w->v, w->v, MPFR_RNDN);
    mpfr_add_d(w->v, w->v, o->eps, MPFR_RNDN);
    correction(w->t, o->beta1, step);
    mpfr_mul(w->v, w->v, w->t, MPFR_RNDN);
    mpfr_mul_d(w->u, w->m, o->lr, MPFR_RNDN);
    mpfr_div(w->u, w->u, w->v, MPFR_RNDN);
}

/* The sign of the interpolation, of which the sum of its terms may leave nothing. */
static inline void exact_lion(const mpsim_optim *o, double m, exact *y, work *w)
{
    mpfr_set_d(w->m, m, MPFR_RNDN);
    const double scale = blend(w->v, o->beta1, w->m, NULL, w->g, w), u = mpfr_get_d(w->v, MPFR_RNDN);
    y->m_scale += blend(w->m, o->beta2, w->m, NULL, w->g, w);
    y->m = mpfr_get_d(w->m, MPFR_RNDN);
    y->p_scale = fabs(u) < 0x1p-20 * scale ? 0x1p30 * o->lr : 0; /* either sign may come */
    mpfr_set_d(w->u, u > 0 ? o->lr : u < 0 ? -o->lr : 0, MPFR_RNDN);
}

static inline exact exact_step(const mpsim_optim *o, uint64_t step, const element *e)
{
    work *w = work_get();
    exact y = {0, 0, 0, 0, 0, 0, 0};
    const double one = 1;
    mpfr_set_d(w->p, e->p, MPFR_RNDN);
    mpfr_set_d(w->g, o->maximize ? -e->g : e->g, MPFR_RNDN);
    mpfr_div_d(w->g, w->g, o->grad_scale, MPFR_RNDN);
    const int with_g = o->algorithm != MPSIM_OPTIM_ADAMW && o->algorithm != MPSIM_OPTIM_LION;
    if (with_g)
        y.m_scale = blend(w->g, o->weight_decay, w->p, &one, w->g, w);
    if (is_adam(o))
        exact_adam(o, step, e, &y, w);
    else if (o->algorithm == MPSIM_OPTIM_LION)
        exact_lion(o, e->m, &y, w);
    else
        exact_sgd(o, step, e->m, &y, w);
    /* How much of u an error of m_scale makes: u / m. */
    double gain = o->lr;
    if (is_adam(o))
        gain = y.m == 0 ? 0 : fabs(mpfr_get_d(w->u, MPFR_RNDN) / y.m);
    if (o->algorithm == MPSIM_OPTIM_LION)
        gain = 0;
    y.p_scale += fabs(e->p) + fabs(mpfr_get_d(w->u, MPFR_RNDN)) + gain * y.m_scale;
    mpfr_sub(w->u, w->p, w->u, MPFR_RNDN);
    if (!with_g) {
        mpfr_mul_d(w->p, w->p, o->lr, MPFR_RNDN);
        mpfr_mul_d(w->p, w->p, o->weight_decay, MPFR_RNDN);
        mpfr_sub(w->u, w->u, w->p, MPFR_RNDN);
    }
    y.p = mpfr_get_d(w->u, MPFR_RNDN);
    return y;
}
