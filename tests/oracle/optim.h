/* optim.h -- optimizer steps as sequences of rounded operations, for one element.
 *
 * Written from the facts that are known of the frameworks, not from the library, on the
 * operations of rounded.h. Where those facts leave something open (which product of two is
 * contracted, whether a scalar is rounded early), a variant has alternatives: `alt` says which
 * one is computed, and a library that does the same sequence throughout agrees with one of
 * them in every bit. Variants without alternatives are determined. */
#pragma once

#include "rounded.h"

#include <math.h>
#include <mpsim/optim.h>
#include <string.h>

/* One element: parameter, gradient, moments (or buffer in m), largest v, compensation. */
typedef struct element {
    double p, g, m, v, x, k;
    uint32_t random;
    unsigned place; /* among the four of a thread of a fused kernel */
} element;

typedef struct plan plan;
typedef struct sequence {
    const char *variant;
    int on_tensors; /* operation by operation on tensors: what a CPU's tail contracts is open */
    struct {
        unsigned alternatives; /* 0: not known by this oracle */
        void (*scalars)(plan *q);
        void (*step)(const plan *q, element *e);
    } of[MPSIM_OPTIM_ALGORITHMS]; /* by the first algorithm of a family: SGD, Adam, Lion */
} sequence;

/* The family of an algorithm: AdamW is Adam but for decay. */
static inline int family_of(const mpsim_optim *o)
{
    return o->algorithm == MPSIM_OPTIM_ADAMW ? MPSIM_OPTIM_ADAM : o->algorithm;
}

/* What a step needs beside the element; `pick` are the digits of alt. */
struct plan {
    const mpsim_optim *o;
    const sequence *s;
    uint64_t step;
    unsigned alt, pick[8];
    int pf, sf;        /* shapes of parameter and state                        */
    int cpu, div;      /* ATen: CPU's association, division by a scalar        */
    int tail;          /* CPU: elements beyond the vector body                 */
    unsigned contract; /* set of FMA_*                                         */
    unsigned narrow;   /* CPU: bit k: scalars of kind k are rounded to pf      */
    double lr, b1, b2, w1, w2, bc1, bc2, bc2s, eps, wd, decay, value, mom, undamped;
};

static inline int decoupled(const plan *q)
{
    return q->o->algorithm == MPSIM_OPTIM_ADAMW || q->o->algorithm == MPSIM_OPTIM_LION;
}

static inline int decays(const plan *q)
{
    return q->o->weight_decay != 0;
}

/* Digits of alt, least significant first. */
static inline void digits(plan *q, unsigned n, const unsigned *radix)
{
    unsigned a = q->alt;
    for (unsigned i = 0; i < n; i++) {
        q->pick[i] = a % radix[i];
        a /= radix[i];
    }
}
#define DIGITS(q, ...) digits(q, sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned), (const unsigned[]){__VA_ARGS__})

/* torch.maximum hands NaN on. std::max(a, b), which is a < b ? b : a, does not if b is NaN. */
static inline double largest(int propagate, double a, double b)
{
    if (propagate && (isnan(a) || isnan(b)))
        return (double)NAN;
    return a < b ? b : a;
}

/* StochasticA with 32 bits: away if floor(nu 2^32) + R >= 2^32; ldexp, floor and these differences
 * are exact. */
static inline double stored_stochastic(int f, double x, uint32_t random)
{
    if (!isfinite(x) || x == 0)
        return x;
    int e;
    (void)frexp(fabs(x), &e);
    const int least = (int)shapes[f].emin - 1;
    int quantum = e - (int)shapes[f].precision;
    if (quantum < least)
        quantum = least;
    const double units = ldexp(fabs(x), -quantum), whole = floor(units);
    const double sum = floor(ldexp(units - whole, 32)) + (double)random;
    const double y = ldexp(whole + (sum >= 0x1p32), quantum);
    const double max = ldexp(1, (int)shapes[f].emax);
    return copysign(y >= max ? (double)INFINITY : y, x);
}

static inline double stored(const plan *q, double p, const element *e)
{
    return q->o->store == MPSIM_STORE_STOCHASTIC ? stored_stochastic(q->pf, p, e->random) : to(q->pf, p);
}

static inline double scaled_down(const plan *q, double g)
{
    return q->o->grad_scale == 1 ? g : quo(B32, g, to(B32, q->o->grad_scale));
}

/* a b + c d in f: no contraction, or one product exact. */
static inline double two_products(int f, unsigned how, double a, double b, double c, double d)
{
    return how == 0   ? add(f, mul(f, a, b), mul(f, c, d))
           : how == 1 ? fused(f, a, b, mul(f, c, d))
                      : fused(f, c, d, mul(f, a, b));
}

static inline double plus_product(int f, unsigned contracted, double z, double a, double b)
{
    return contracted ? fused(f, a, b, z) : add(f, z, mul(f, a, b));
}

/* ---------------------------------------------------------------- ATen, operation by operation */

/* Scalars of low-precision operations on CPU: open which of them are rounded to the tensor's
 * format, and whether the product of an addition is. */
enum {
    OF_ADD,
    OF_MUL,
    OF_PRODUCT,
    OF_LERP,
    OF_ADDCMUL,
    OF_ADDCDIV,
    OF_DIV,
    OF_EPS,
    KINDS,
    SGD_KINDS = OF_PRODUCT + 1,
    OPTIMI_SGD_KINDS = OF_LERP + 1
};

/* Operations with an FMA. CPU, scalar tail: open which have it there. */
enum { FMA_ADD = 1, FMA_LERP = 2, FMA_ADDCMUL = 4, FMA_ALL = 7 };

static inline double scalar(const plan *q, int kind, int f, double x)
{
    return to(q->narrow >> kind & 1 ? f : B32, x);
}

/* Every operation is done in binary32 and rounded to the tensor's format, f. */
static inline double aten_add(const plan *q, int f, double self, double x, double alpha)
{
    if (f != B32 && (q->narrow >> OF_PRODUCT & 1))
        return to(f, add(B32, self, to(f, mul(B32, alpha, x))));
    return to(f, plus_product(B32, q->contract & FMA_ADD, self, alpha, x));
}

static inline double aten_mul(int f, double self, double x)
{
    return to(f, mul(B32, self, x));
}

/* CUDA: e - (e - s)(1 - w); CPU: e + (w - 1)(e - s): where w is 1 the signs of zeros may differ. */
static inline double aten_lerp(const plan *q, int f, double s, double e, double w)
{
    const double d = sub(B32, e, s);
    const unsigned c = q->contract & FMA_LERP;
    if (fabs(w) < 0.5)
        return to(f, plus_product(B32, c, s, w, d));
    if (q->cpu)
        return to(f, plus_product(B32, c, e, sub(B32, w, 1), d));
    return to(f, plus_product(B32, c, e, -d, sub(B32, 1, w)));
}

static inline double aten_addcmul(const plan *q, int f, double self, double t1, double t2, double value)
{
    if (q->cpu)
        return to(f, plus_product(B32, q->contract & FMA_ADDCMUL, self, mul(B32, value, t1), t2));
    return to(f, fused(B32, value, mul(B32, t1, t2), self));
}

static inline double aten_addcdiv(const plan *q, int f, double self, double t1, double t2, double value)
{
    if (q->cpu)
        return to(f, add(B32, self, quo(B32, mul(B32, value, t1), t2)));
    return to(f, fused(B32, value, quo(B32, t1, t2), self));
}

/* The digits of a variant on CPU: `kinds` bits of narrow, the contractions of the tail, and
 * the rest. */
static inline unsigned aten_kind(plan *q, int kinds)
{
    const char *name = q->s->variant;
    q->cpu = strstr(name, "cpu") != NULL;
    q->contract = strstr(name, "default") ? 0 : FMA_ALL;
    q->div = strcmp(name, "torch") != 0;
    if (!q->cpu)
        return q->alt;
    q->narrow = q->alt % (1u << kinds);
    const unsigned rest = q->alt >> kinds;
    if (!q->tail || !q->contract)
        return rest;
    q->contract &= rest;
    return rest / (FMA_ALL + 1);
}

static inline void aten_sgd_scalars(plan *q)
{
    (void)aten_kind(q, SGD_KINDS);
    q->wd = scalar(q, OF_ADD, q->pf, q->o->weight_decay);
    q->b1 = scalar(q, OF_MUL, q->sf, q->o->momentum);
    q->mom = scalar(q, OF_ADD, q->pf, q->o->momentum);
    q->undamped = scalar(q, OF_ADD, q->sf, sub(B64, 1, q->o->dampening));
    q->lr = scalar(q, OF_ADD, q->pf, -q->o->lr);
}

static inline void aten_sgd(const plan *q, element *e)
{
    double g = q->o->maximize ? -e->g : e->g;
    if (decays(q))
        g = aten_add(q, q->pf, g, e->p, q->wd);
    if (q->o->momentum != 0) {
        e->m = q->step == 1 ? to(q->sf, g) : aten_add(q, q->sf, aten_mul(q->sf, e->m, q->b1), g, q->undamped);
        g = q->o->nesterov ? aten_add(q, q->pf, g, e->m, q->mom) : e->m;
    }
    e->p = aten_add(q, q->pf, e->p, g, q->lr);
}

static inline void aten_adam_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    (void)aten_kind(q, KINDS);
    q->wd = scalar(q, OF_ADD, q->pf, o->weight_decay);
    q->decay = scalar(q, OF_MUL, q->pf, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    q->w1 = scalar(q, OF_LERP, q->sf, sub(B64, 1, o->beta1));
    q->b2 = scalar(q, OF_MUL, q->sf, o->beta2);
    q->w2 = scalar(q, OF_ADDCMUL, q->sf, sub(B64, 1, o->beta2));
    q->eps = scalar(q, OF_EPS, q->sf, o->eps);
    const double bc1 = sub(B64, 1, power(B64, o->beta1, q->step));
    const double bc2 = sub(B64, 1, power(B64, o->beta2, q->step));
    q->value = scalar(q, OF_ADDCDIV, q->pf, -quo(B64, o->lr, bc1));
    q->bc2s = q->div ? scalar(q, OF_DIV, q->sf, root(B64, bc2)) : to(B32, quo(B64, 1, root(B64, bc2)));
}

static inline double aten_decayed(const plan *q, element *e)
{
    double g = q->o->maximize ? -e->g : e->g;
    if (decays(q) && decoupled(q))
        e->p = aten_mul(q->pf, e->p, q->decay);
    else if (decays(q))
        g = aten_add(q, q->pf, g, e->p, q->wd);
    return g;
}

static inline double aten_moments(const plan *q, element *e, double g)
{
    e->m = aten_lerp(q, q->sf, e->m, g, q->w1);
    e->v = aten_addcmul(q, q->sf, aten_mul(q->sf, e->v, q->b2), g, g, q->w2);
    if (q->o->amsgrad)
        e->x = largest(1, e->x, e->v);
    return to(q->sf, root(B32, q->o->amsgrad ? e->x : e->v));
}

static inline void aten_adam(const plan *q, element *e)
{
    const double r = aten_moments(q, e, aten_decayed(q, e));
    const double s = to(q->sf, q->div ? quo(B32, r, q->bc2s) : mul(B32, r, q->bc2s));
    const double d = to(q->sf, add(B32, s, q->eps));
    e->p = aten_addcdiv(q, q->pf, e->p, e->m, d, q->value);
}

/* Open: whether the tensors of the denominator are cast to its format. */
static inline void capturable_cast(plan *q)
{
    if (q->pick[4]) {
        q->bc2s = to(q->sf, q->bc2s);
        q->eps = to(q->sf, q->eps);
    }
}

/* torch.sign: +0 of either zero and of a NaN. */
static inline double sign_of(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

/* lion-pytorch, always with decay: p *= 1 - lr wd; p -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g. */
static inline void lion_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    (void)aten_kind(q, SGD_KINDS);
    q->decay = scalar(q, OF_MUL, q->pf, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    q->b1 = scalar(q, OF_MUL, q->sf, o->beta1);
    q->b2 = scalar(q, OF_MUL, q->sf, o->beta2);
    q->w1 = scalar(q, OF_ADD, q->sf, sub(B64, 1, o->beta1));
    q->w2 = scalar(q, OF_ADD, q->sf, sub(B64, 1, o->beta2));
    q->lr = scalar(q, OF_ADD, q->pf, -o->lr);
}

static inline void lion(const plan *q, element *e)
{
    const double u = aten_add(q, q->sf, aten_mul(q->sf, e->m, q->b1), e->g, q->w1);
    e->p = aten_add(q, q->pf, aten_mul(q->pf, e->p, q->decay), sign_of(u), q->lr);
    e->m = aten_add(q, q->sf, aten_mul(q->sf, e->m, q->b2), e->g, q->w2);
}

/* Capturable: the bias corrections are binary32 tensors. Open: the base of the power, where it is
 * rounded, whether scalar / tensor is a product with the reciprocal (pick 2, 3), or all of it in
 * binary64 up to the two tensors of the denominator (pick 0 == 2). */
static inline void capturable_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    aten_adam_scalars(q);
    DIGITS(q, 3, 2, 2, 2, 2);
    if (q->pick[0] == 2) {
        const double bc1 = sub(B64, 1, power(B64, o->beta1, q->step));
        const double bc2 = sub(B64, 1, power(B64, o->beta2, q->step));
        const double ns = to(B32, -quo(B64, o->lr, bc1));
        q->bc2s = mul(B32, to(B32, root(B64, bc2)), ns);
        q->eps = quo(B32, q->eps, ns);
        capturable_cast(q);
        return;
    }
    const double b1 = q->pick[0] ? o->beta1 : to(B32, o->beta1);
    const double b2 = q->pick[0] ? o->beta2 : to(B32, o->beta2);
    double bc1, bc2;
    if (q->pick[1]) {
        bc1 = to(B32, sub(B64, 1, power(B64, b1, q->step)));
        bc2 = to(B32, sub(B64, 1, power(B64, b2, q->step)));
    } else {
        bc1 = sub(B32, 1, power(B32, b1, q->step));
        bc2 = sub(B32, 1, power(B32, b2, q->step));
    }
    const double lr = to(B32, o->lr);
    const double ns = -(q->pick[2] ? mul(B32, quo(B32, 1, bc1), lr) : quo(B32, lr, bc1));
    q->bc2s = mul(B32, root(B32, bc2), ns);
    q->eps = q->pick[3] ? mul(B32, quo(B32, 1, ns), q->eps) : quo(B32, q->eps, ns);
    capturable_cast(q);
}

static inline void capturable(const plan *q, element *e)
{
    const double r = aten_moments(q, e, aten_decayed(q, e));
    const double d = to(q->sf, add(B32, to(q->sf, quo(B32, r, q->bc2s)), q->eps));
    e->p = to(q->pf, add(B32, e->p, quo(B32, e->m, d)));
}

/* Capturable and foreach: minus the step size divides the denominator. */
static inline void capturable_list_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    aten_adam_scalars(q);
    const double bc1 = sub(B32, power(B32, to(B32, o->beta1), q->step), 1);
    const double bc2 = -sub(B32, power(B32, to(B32, o->beta2), q->step), 1);
    q->bc2s = to(q->sf, root(B32, bc2));
    q->value = to(q->sf, quo(B32, 1, mul(B32, bc1, to(B32, quo(B64, 1, o->lr)))));
}

static inline void capturable_list(const plan *q, element *e)
{
    const double r = aten_moments(q, e, aten_decayed(q, e));
    const double d = to(q->sf, add(B32, to(q->sf, quo(B32, r, q->bc2s)), q->eps));
    e->p = to(q->pf, add(B32, e->p, quo(B32, e->m, to(q->sf, quo(B32, d, q->value)))));
}

/* ------------------------------------------------------------------------------------ optimi */

/* Debiased betas b' = (b^t - b) / (b^t - 1), in binary64. */
static inline double debiased(double beta, uint64_t step)
{
    const double b = power(B64, beta, step);
    return quo(B64, sub(B64, b, beta), sub(B64, b, 1));
}

static inline void optimi_compensated(const plan *q, element *e, double k)
{
    const double old = e->p;
    e->p = to(q->pf, add(B32, old, k));
    e->k = to(q->pf, add(B32, k, to(q->pf, sub(B32, old, e->p))));
}

/* Operation by operation. Open: whether m is a lerp or mul and add (pick 0); scalars on CPU. */
static inline void optimi_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    q->pick[0] = aten_kind(q, KINDS);
    const double b1 = debiased(o->beta1, q->step), b2 = debiased(o->beta2, q->step);
    q->b1 = scalar(q, OF_MUL, q->sf, b1);
    q->b2 = scalar(q, OF_MUL, q->sf, b2);
    q->w1 = scalar(q, q->pick[0] ? OF_ADD : OF_LERP, q->sf, sub(B64, 1, b1));
    q->w2 = scalar(q, OF_ADDCMUL, q->sf, sub(B64, 1, b2));
    q->wd = scalar(q, OF_ADD, q->pf, o->weight_decay);
    q->decay = scalar(q, OF_MUL, q->pf, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    q->eps = scalar(q, OF_EPS, q->sf, o->eps);
    q->lr = scalar(q, OF_ADDCDIV, q->pf, -o->lr);
}

static inline void optimi_adam(const plan *q, element *e)
{
    const double g = aten_decayed(q, e);
    e->m = q->pick[0] ? aten_add(q, q->sf, aten_mul(q->sf, e->m, q->b1), g, q->w1)
                      : aten_lerp(q, q->sf, e->m, g, q->w1);
    e->v = aten_addcmul(q, q->sf, aten_mul(q->sf, e->v, q->b2), g, g, q->w2);
    const double d = to(q->sf, add(B32, to(q->sf, root(B32, e->v)), q->eps));
    if (q->o->store != MPSIM_STORE_KAHAN) {
        e->p = aten_addcdiv(q, q->pf, e->p, e->m, d, q->lr);
        return;
    }
    optimi_compensated(q, e, aten_addcdiv(q, q->pf, e->k, e->m, d, q->lr));
}

/* SGD is not described: mul and add or, where it is damped, a lerp (pick 0); the buffer starts
 * at 0, and momentum is dampening if that is not 0. */
static inline void optimi_sgd_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    q->pick[0] = aten_kind(q, OPTIMI_SGD_KINDS);
    q->wd = scalar(q, OF_ADD, q->pf, o->weight_decay);
    q->mom = scalar(q, OF_MUL, q->sf, o->momentum);
    q->undamped = scalar(q, q->pick[0] ? OF_LERP : OF_ADD, q->sf, sub(B64, 1, o->dampening));
    q->lr = scalar(q, OF_ADD, q->pf, -o->lr);
}

static inline void optimi_sgd(const plan *q, element *e)
{
    double g = e->g;
    if (decays(q))
        g = aten_add(q, q->pf, g, e->p, q->wd);
    if (q->o->momentum != 0) {
        e->m = q->pick[0] && q->o->dampening != 0 ? aten_lerp(q, q->sf, e->m, g, q->undamped)
                                                  : aten_add(q, q->sf, aten_mul(q->sf, e->m, q->mom), g, q->undamped);
        g = e->m;
    }
    if (q->o->store != MPSIM_STORE_KAHAN) {
        e->p = aten_add(q, q->pf, e->p, g, q->lr);
        return;
    }
    optimi_compensated(q, e, aten_add(q, q->pf, e->k, g, q->lr));
}
