/* optimkernels.h -- the rest of optim.h: optimizers that are one kernel, which works in
 * binary32 or binary64 and rounds what it stores, and the table of all. */
#pragma once

#include "optim.h"

/* ------------------------------------------------------------------------- fused CUDA kernels */

/* Generations A and B: scalars are binary64. Open: FMAs of binary64 (pick 0); whether the step size
 * is opmath (1) or binary64 (0); what NaN does in amsgrad's maximum. */
static inline void fused_f64_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 3, 3, 2);
    q->w1 = sub(B64, 1, o->beta1);
    q->w2 = sub(B64, 1, o->beta2);
    const double bc1 = sub(B64, 1, power(B64, o->beta1, q->step));
    const double bc2 = sub(B64, 1, power(B64, o->beta2, q->step));
    q->bc2s = strcmp(q->s->variant, "torch-fused-a") == 0 ? root(B32, to(B32, bc2)) : to(B32, root(B64, bc2));
    q->value = q->pick[1] == 0   ? quo(B64, o->lr, bc1)
               : q->pick[1] == 1 ? to(B32, quo(B64, o->lr, to(B32, bc1)))
                                 : quo(B64, o->lr, to(B32, bc1));
}

static inline void fused_store(const plan *q, element *e, double p, double m, double v, double x)
{
    e->p = stored(q, p, e);
    e->m = to(q->sf, m);
    e->v = to(q->sf, v);
    if (q->o->amsgrad)
        e->x = to(q->sf, x);
}

static inline void fused_f64(const plan *q, element *e)
{
    const mpsim_optim *o = q->o;
    const unsigned c = q->pick[0];
    double p = e->p, g = scaled_down(q, e->g);
    if (o->maximize)
        g = -g;
    if (decays(q) && decoupled(q))
        p = to(B32, plus_product(B64, c != 0, p, -mul(B64, o->lr, o->weight_decay), p));
    else if (decays(q))
        g = to(B32, plus_product(B64, c != 0, g, p, o->weight_decay));
    const double m = to(B32, two_products(B64, c, o->beta1, e->m, q->w1, g));
    const double v = to(B32, two_products(B64, c, o->beta2, e->v, mul(B64, q->w2, g), g));
    const double x = o->amsgrad ? largest(q->pick[2] != 0, e->x, v) : v;
    const double d = to(B32, add(B64, quo(B32, root(B32, x), q->bc2s), o->eps));
    if (q->pick[1] == 1)
        p = sub(B32, p, quo(B32, mul(B32, q->value, m), d));
    else
        p = to(B32, sub(B64, p, quo(B64, mul(B64, q->value, m), d)));
    fused_store(q, e, p, m, v, x);
}

/* Generation C: binary32, the lerps by explicit FMAs. An FMA of decay: in AdamW open; in Adam not that of a thread's first
 * element, but with a scale, and never with maximize. Open, too: where powf is rounded; NaN in the maximum. */
static inline void fused_f32_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 2, 2, 2);
    q->lr = to(B32, o->lr);
    q->b1 = to(B32, o->beta1);
    q->b2 = to(B32, o->beta2);
    q->wd = to(B32, o->weight_decay);
    q->eps = to(B32, o->eps);
    if (q->pick[1]) {
        q->bc1 = to(B32, sub(B64, 1, power(B64, q->b1, q->step)));
        q->bc2 = to(B32, sub(B64, 1, power(B64, q->b2, q->step)));
    } else {
        q->bc1 = sub(B32, 1, power(B32, q->b1, q->step));
        q->bc2 = sub(B32, 1, power(B32, q->b2, q->step));
    }
    q->bc2s = root(B32, q->bc2);
    q->value = quo(B32, q->lr, q->bc1);
    q->decay = mul(B32, q->lr, q->wd);
}

static inline void fused_f32(const plan *q, element *e)
{
    double p = e->p, g = scaled_down(q, e->g);
    if (q->o->maximize)
        g = -g;
    if (decays(q) && decoupled(q))
        p = plus_product(B32, q->pick[0], p, -q->decay, p);
    else if (decays(q))
        g = plus_product(B32, !q->o->maximize && (q->o->grad_scale != 1 || e->place != 0), g, p, q->wd);
    const double m = fused(B32, q->b1, e->m, fused(B32, -q->b1, g, g));
    const double gg = mul(B32, g, g);
    const double v = fused(B32, q->b2, e->v, fused(B32, -q->b2, gg, gg));
    const double x = q->o->amsgrad ? largest(q->pick[2] != 0, e->x, v) : v;
    const double d = add(B32, quo(B32, root(B32, x), q->bc2s), q->eps);
    p = sub(B32, p, quo(B32, mul(B32, q->value, m), d));
    fused_store(q, e, p, m, v, x);
}

/* SGD of one kernel, by pick: 0: FMAs (none, of the buffer's product, of the gradient's); 1:
 * scalars and sums in binary64; 2: 1 - dampening formed in binary32; 3: a scale's reciprocal
 * multiplies. */
static inline void kernel_sgd_scalars(plan *q)
{
    const int f = q->pick[1] ? B64 : B32;
    q->lr = to(f, q->o->lr);
    q->wd = to(f, q->o->weight_decay);
    q->mom = to(f, q->o->momentum);
    q->undamped = q->pick[2] ? sub(f, 1, to(f, q->o->dampening)) : to(f, sub(B64, 1, q->o->dampening));
}

static inline void sgd_f64_scalars(plan *q) /* open: FMAs of binary64 */
{
    DIGITS(q, 3);
    q->pick[1] = 1;
    kernel_sgd_scalars(q);
}

static inline void sgd_f32_scalars(plan *q) /* open: FMAs; 1 - dampening */
{
    DIGITS(q, 3, 1, 2);
    kernel_sgd_scalars(q);
}

static inline void sgd_apex_scalars(plan *q) /* open too: how a scale is applied */
{
    DIGITS(q, 3, 1, 2, 2);
    kernel_sgd_scalars(q);
}

static inline void kernel_sgd(const plan *q, element *e)
{
    const int f = q->pick[1] ? B64 : B32;
    const unsigned c = q->pick[0];
    double g = scaled_down(q, e->g);
    if (q->pick[3] && q->o->grad_scale != 1)
        g = mul(B32, e->g, to(B32, quo(B64, 1, q->o->grad_scale)));
    if (q->o->maximize)
        g = -g;
    if (decays(q))
        g = to(B32, plus_product(f, c != 0, g, q->wd, e->p));
    if (q->o->momentum != 0) {
        const double b = q->step == 1 ? g : to(B32, two_products(f, c, q->mom, e->m, q->undamped, g));
        e->m = to(q->sf, b);
        g = q->o->nesterov ? to(B32, plus_product(f, c != 0, g, q->mom, b)) : b;
    }
    const int apart = strcmp(q->s->variant, "torch-fused-c") == 0 && q->o->grad_scale != 1 && e->place != 3;
    e->p = stored(q, to(B32, plus_product(f, c != 0 && !apart, e->p, -q->lr, g)), e);
}

/* Fused on CPU, the vector body: bias corrections in binary64, the lerp by two branches. Open:
 * which operations of v are contracted (0), those of weight decay and lerp (1). */
static inline void fused_cpu_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    q->cpu = 1;
    if (!strstr(q->s->variant, "default")) {
        DIGITS(q, 3, 2);
        q->contract = q->pick[1] ? FMA_LERP : 0;
    }
    q->wd = to(B32, o->weight_decay);
    q->decay = to(B32, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    q->w1 = to(B32, sub(B64, 1, o->beta1));
    q->b2 = to(B32, o->beta2);
    q->w2 = to(B32, sub(B64, 1, o->beta2));
    q->eps = to(B32, o->eps);
    q->value = to(B32, -quo(B64, o->lr, sub(B64, 1, power(B64, o->beta1, q->step))));
    q->bc2s = to(B32, root(B64, sub(B64, 1, power(B64, o->beta2, q->step))));
}

static inline void fused_cpu(const plan *q, element *e)
{
    double p = e->p, g = scaled_down(q, e->g);
    if (q->o->maximize)
        g = -g;
    if (decays(q) && decoupled(q))
        p = mul(B32, p, q->decay);
    else if (decays(q))
        g = plus_product(B32, q->pick[1], g, p, q->wd);
    const double m = aten_lerp(q, B32, e->m, g, q->w1);
    const double v = two_products(B32, q->pick[0], e->v, q->b2, mul(B32, q->w2, g), g);
    const double x = q->o->amsgrad ? largest(1, e->x, v) : v;
    const double d = add(B32, quo(B32, root(B32, x), q->bc2s), q->eps);
    fused_store(q, e, add(B32, p, quo(B32, mul(B32, q->value, m), d)), m, v, x);
}

/* ------------------------------------------------------------------ Apex and TransformerEngine */

/* 1 - beta in binary32; the power of the binary32 beta in binary64. Open: how a scale is
 * applied. */
static inline void apex_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 2);
    q->lr = to(B32, o->lr);
    q->b1 = to(B32, o->beta1);
    q->b2 = to(B32, o->beta2);
    q->w1 = sub(B32, 1, q->b1);
    q->w2 = sub(B32, 1, q->b2);
    q->wd = to(B32, o->weight_decay);
    q->eps = to(B32, o->eps);
    q->bc1 = to(B32, sub(B64, 1, power(B64, q->b1, q->step)));
    q->bc2 = to(B32, sub(B64, 1, power(B64, q->b2, q->step)));
}

static inline void apex_adam(const plan *q, element *e)
{
    double g = scaled_down(q, e->g);
    if (q->pick[0] && q->o->grad_scale != 1)
        g = mul(B32, e->g, to(B32, quo(B64, 1, q->o->grad_scale)));
    if (!decoupled(q)) /* also where it adds 0 p */
        g = fused(B32, q->wd, e->p, g);
    const double m = fused(B32, e->m, q->b1, mul(B32, q->w1, g));
    const double v = fused(B32, e->v, q->b2, mul(B32, g, mul(B32, q->w2, g)));
    const double d = add(B32, root(B32, quo(B32, v, q->bc2)), q->eps);
    double update = quo(B32, quo(B32, m, q->bc1), d);
    if (decoupled(q))
        update = fused(B32, q->wd, e->p, update);
    fused_store(q, e, fused(B32, -q->lr, update, e->p), m, v, v);
}

/* ----------------------------------------------------------------------------------- torchao */

/* Compiled by Inductor. Open: FMAs of the decay and of the lerps, where the power is rounded, the
 * association of lr m / denominator, the form of the lerp. */
static inline void torchao_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 2, 2, 3, 2, 2);
    q->contract = q->pick[1] ? FMA_LERP : 0;
    q->cpu = (int)q->pick[4];
    q->lr = to(B32, o->lr);
    q->w1 = to(B32, sub(B64, 1, o->beta1));
    q->w2 = to(B32, sub(B64, 1, o->beta2));
    q->wd = to(B32, o->weight_decay);
    q->eps = to(B32, o->eps);
    q->decay = mul(B32, q->lr, q->wd);
    const double b1 = q->pick[2] == 0 ? o->beta1 : to(B32, o->beta1);
    const double b2 = q->pick[2] == 0 ? o->beta2 : to(B32, o->beta2);
    q->bc1 = to(B32, sub(B64, 1, power(q->pick[2] == 2 ? B32 : B64, b1, q->step)));
    q->bc2 = to(B32, sub(B64, 1, power(q->pick[2] == 2 ? B32 : B64, b2, q->step)));
    q->bc2s = root(B32, q->bc2);
}

static inline void torchao_adam(const plan *q, element *e)
{
    double p = e->p, g = e->g;
    if (decoupled(q)) /* also where it adds 0 p */
        p = plus_product(B32, q->pick[0], p, -q->decay, p);
    else
        g = plus_product(B32, q->pick[0], g, q->wd, p);
    const double m = aten_lerp(q, B32, e->m, g, q->w1);
    const double v = aten_lerp(q, B32, e->v, mul(B32, g, g), q->w2);
    const double x = q->o->amsgrad ? largest(1, e->x, v) : v;
    const double d = add(B32, quo(B32, root(B32, x), q->bc2s), q->eps);
    const double mh = quo(B32, m, q->bc1);
    const double u = q->pick[3] ? mul(B32, q->lr, quo(B32, mh, d)) : quo(B32, mul(B32, q->lr, mh), d);
    fused_store(q, e, sub(B32, p, u), m, v, x);
}

/* ------------------------------------------------------------------------- optimi on Triton */

/* Triton: binary32 but for the parameter. Open: the association of comp2 g g (pick 0), whether
 * the decayed parameter is rounded (1), lr m / denominator (2; the last with an FMA), 1 - b'
 * in binary32 (3), the order of the compensation's sum (4), the FMA of weight decay (5), the
 * sum without compensation (6: as with one of 0). */
static inline void triton_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 2, 2, 3, 2, 2, 2, 2);
    const double b1 = debiased(o->beta1, q->step), b2 = debiased(o->beta2, q->step);
    q->b1 = to(B32, b1);
    q->b2 = to(B32, b2);
    q->w1 = q->pick[3] ? sub(B32, 1, q->b1) : to(B32, sub(B64, 1, b1));
    q->w2 = q->pick[3] ? sub(B32, 1, q->b2) : to(B32, sub(B64, 1, b2));
    q->wd = to(B32, o->weight_decay);
    q->decay = to(B32, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
    q->eps = to(B32, o->eps);
    q->lr = to(B32, o->lr);
}

static inline void triton_adam(const plan *q, element *e)
{
    double p = e->p, g = q->o->maximize ? -e->g : e->g;
    if (decays(q) && decoupled(q))
        p = to(q->pick[1] ? B32 : q->pf, mul(B32, p, q->decay));
    else if (decays(q))
        g = plus_product(B32, q->pick[5], g, q->wd, p);
    const double cg = mul(B32, q->w2, g);
    const double m = fused(B32, e->m, q->b1, mul(B32, q->w1, g));
    const double v = fused(B32, e->v, q->b2, q->pick[0] ? mul(B32, q->w2, mul(B32, g, g)) : mul(B32, cg, g));
    const double d = add(B32, root(B32, v), q->eps);
    const int kahan = q->o->store == MPSIM_STORE_KAHAN;
    const double z = kahan ? e->k : q->pick[6] ? 0 : p;
    const double k = q->pick[2] == 0   ? sub(B32, z, quo(B32, mul(B32, q->lr, m), d))
                     : q->pick[2] == 1 ? sub(B32, z, mul(B32, q->lr, quo(B32, m, d)))
                                       : fused(B32, -q->lr, quo(B32, m, d), z);
    e->m = to(q->sf, m);
    e->v = to(q->sf, v);
    if (!kahan && !q->pick[6]) {
        e->p = to(q->pf, k);
        return;
    }
    e->p = to(q->pf, add(B32, p, to(q->pf, k)));
    if (!kahan)
        return;
    e->k = to(q->pf, q->pick[4] ? add(B32, k, sub(B32, p, e->p)) : sub(B32, add(B32, k, p), e->p));
}

/* ---------------------------------------------------------------------------- COAT and MS-AMP */

/* Open: whether beta^step is binary32 before 1 - beta^step is formed (pick 0). */
static inline void fp8_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    DIGITS(q, 2);
    q->lr = to(B32, o->lr);
    q->b1 = to(B32, o->beta1);
    q->b2 = to(B32, o->beta2);
    q->w1 = sub(B32, 1, q->b1);
    q->w2 = sub(B32, 1, q->b2);
    q->wd = to(B32, o->weight_decay);
    q->eps = to(B32, o->eps);
    q->bc1 = to(B32, sub(B64, 1, power(q->pick[0] ? B32 : B64, q->b1, q->step)));
    q->bc2s = root(B32, to(B32, sub(B64, 1, power(q->pick[0] ? B32 : B64, q->b2, q->step))));
    q->value = quo(B32, q->lr, q->bc1);
    q->decay = to(B32, sub(B64, 1, mul(B64, o->lr, o->weight_decay)));
}

static inline void coat_adam(const plan *q, element *e)
{
    const double m = fused(B32, e->m, q->b1, mul(B32, q->w1, e->g));
    const double v = fused(B32, e->v, q->b2, mul(B32, mul(B32, q->w2, e->g), e->g));
    const double d = mul(B32, add(B32, quo(B32, root(B32, v), q->bc2s), q->eps), q->bc1);
    const double u = fused(B32, q->wd, e->p, quo(B32, m, d));
    fused_store(q, e, fused(B32, -q->lr, u, e->p), m, v, 0);
}

static inline void msamp_adam(const plan *q, element *e)
{
    double p = e->p, g = q->o->maximize ? -e->g : e->g;
    if (decays(q) && decoupled(q))
        p = mul(B32, p, q->decay);
    else if (decays(q))
        g = fused(B32, q->wd, p, g);
    const double m = fused(B32, e->m, q->b1, mul(B32, q->w1, g));
    const double v = fused(B32, e->v, q->b2, mul(B32, q->w2, mul(B32, g, g)));
    const double d = add(B32, quo(B32, root(B32, v), q->bc2s), q->eps);
    fused_store(q, e, fused(B32, -q->value, quo(B32, m, d), p), m, v, 0);
}

/* -------------------------------------------------------------------------------------- ieee */

/* The order of <mpsim/optim.h>, scalars formed in binary64; no FMA. */
static inline void ieee_scalars(plan *q)
{
    const mpsim_optim *o = q->o;
    q->lr = to(B32, o->lr);
    q->b1 = to(B32, o->beta1);
    q->b2 = to(B32, o->beta2);
    q->w1 = to(B32, sub(B64, 1, o->beta1));
    q->w2 = to(B32, sub(B64, 1, o->beta2));
    q->wd = to(B32, o->weight_decay);
    q->eps = to(B32, o->eps);
    q->bc1 = to(B32, sub(B64, 1, power(B64, o->beta1, q->step)));
    q->bc2 = to(B32, sub(B64, 1, power(B64, o->beta2, q->step)));
    q->decay = to(B32, mul(B64, o->lr, o->weight_decay));
}

static inline void ieee_adam(const plan *q, element *e)
{
    double p = e->p, g = scaled_down(q, e->g);
    if (q->o->maximize)
        g = -g;
    if (decays(q) && decoupled(q))
        p = sub(B32, p, mul(B32, q->decay, p));
    else if (decays(q))
        g = add(B32, g, mul(B32, q->wd, p));
    const double m = add(B32, mul(B32, q->b1, e->m), mul(B32, q->w1, g));
    const double v = add(B32, mul(B32, q->b2, e->v), mul(B32, q->w2, mul(B32, g, g)));
    const double x = q->o->amsgrad ? largest(1, e->x, v) : v;
    const double d = add(B32, root(B32, quo(B32, x, q->bc2)), q->eps);
    const double u = quo(B32, mul(B32, q->lr, quo(B32, m, q->bc1)), d);
    fused_store(q, e, sub(B32, p, u), m, v, x);
}

static inline void ieee_lion(const plan *q, element *e)
{
    const double scaled = scaled_down(q, e->g), g = q->o->maximize ? -scaled : scaled;
    const double kept = decays(q) ? sub(B32, e->p, mul(B32, q->decay, e->p)) : e->p;
    const double u = sign_of(add(B32, mul(B32, q->b1, e->m), mul(B32, q->w1, g)));
    const double m = add(B32, mul(B32, q->b2, e->m), mul(B32, q->w2, g));
    fused_store(q, e, sub(B32, kept, mul(B32, q->lr, u)), m, e->v, e->x);
}

static inline void ieee_sgd_scalars(plan *q)
{
    kernel_sgd_scalars(q); /* every pick is 0 */
}

/* --------------------------------------------------------------------------------- the table */

#define ADAM_AND_SGD_(adams, sgds, adam_scalars, adam, sgd_scalars, sgd)                                 \
    {                                                                                                    \
        [MPSIM_OPTIM_ADAM] = {adams, adam_scalars, adam}, [MPSIM_OPTIM_SGD] = { sgds, sgd_scalars, sgd } \
    }
#define ADAM_AND_SGD(adams, sgds, ...) ADAM_AND_SGD_(adams, sgds, __VA_ARGS__)
#define ADAM(alternatives, scalars, step)                    \
    {                                                        \
        [MPSIM_OPTIM_ADAM] = { alternatives, scalars, step } \
    }
#define LION(alternatives)                                        \
    {                                                             \
        [MPSIM_OPTIM_LION] = { alternatives, lion_scalars, lion } \
    }
#define ATEN aten_adam_scalars, aten_adam, aten_sgd_scalars, aten_sgd
#define FUSED_F64 fused_f64_scalars, fused_f64, sgd_f64_scalars, kernel_sgd
#define FUSED_F32 fused_f32_scalars, fused_f32, sgd_f32_scalars, kernel_sgd
#define OPTIMI optimi_scalars, optimi_adam, optimi_sgd_scalars, optimi_sgd
static const sequence sequences[] = {
    {"ieee",
     0,
     {[MPSIM_OPTIM_ADAM] = {1, ieee_scalars, ieee_adam},
      [MPSIM_OPTIM_SGD] = {1, ieee_sgd_scalars, kernel_sgd},
      [MPSIM_OPTIM_LION] = {1, ieee_scalars, ieee_lion}}},
    {"torch", 1, ADAM_AND_SGD(1, 1, ATEN)},
    {"torch-foreach", 1, ADAM_AND_SGD(1, 1, ATEN)},
    {"torch-capturable", 0, ADAM(48, capturable_scalars, capturable)},
    {"torch-foreach-capturable", 0, ADAM(1, capturable_list_scalars, capturable_list)},
    {"torch-cpu", 1, ADAM_AND_SGD(256, 8, ATEN)},
    {"torch-cpu-default", 1, ADAM_AND_SGD(256, 8, ATEN)},
    {"torch-cpu-foreach", 1, ADAM_AND_SGD(256, 8, ATEN)},
    {"torch-cpu-foreach-default", 1, ADAM_AND_SGD(256, 8, ATEN)},
    {"torch-fused-a", 0, ADAM_AND_SGD(18, 3, FUSED_F64)},
    {"torch-fused-b", 0, ADAM_AND_SGD(18, 3, FUSED_F64)},
    {"torch-fused-c", 0, ADAM_AND_SGD(8, 6, FUSED_F32)},
    {"torch-fused-cpu", 0, ADAM_AND_SGD(6, 6, fused_cpu_scalars, fused_cpu, sgd_f32_scalars, kernel_sgd)},
    {"torch-fused-cpu-default", 0, ADAM_AND_SGD(1, 1, fused_cpu_scalars, fused_cpu, ieee_sgd_scalars, kernel_sgd)},
    {"apex", 0, ADAM_AND_SGD(2, 12, apex_scalars, apex_adam, sgd_apex_scalars, kernel_sgd)},
    {"torchao", 0, ADAM(48, torchao_scalars, torchao_adam)},
    {"torchao-cpu", 0, ADAM(48, torchao_scalars, torchao_adam)},
    {"optimi", 1, ADAM_AND_SGD(2, 2, OPTIMI)},
    {"optimi-cpu", 1, ADAM_AND_SGD(512, 32, OPTIMI)},
    {"optimi-cpu-default", 1, ADAM_AND_SGD(512, 32, OPTIMI)},
    {"optimi-cpu-foreach", 1, ADAM_AND_SGD(512, 32, OPTIMI)},
    {"optimi-cpu-foreach-default", 1, ADAM_AND_SGD(512, 32, OPTIMI)},
    {"optimi-triton", 0, ADAM(192, triton_scalars, triton_adam)},
    {"lion-pytorch", 1, LION(1)},
    {"lion-pytorch-cpu", 1, LION(8)},
    {"lion-pytorch-cpu-default", 1, LION(8)},
    {"coat", 0, ADAM(2, fp8_scalars, coat_adam)},
    {"ms-amp", 0, ADAM(2, fp8_scalars, msamp_adam)},
};
enum { SEQUENCES = sizeof sequences / sizeof sequences[0], ALTERNATIVES = 512 * (FMA_ALL + 1) };
