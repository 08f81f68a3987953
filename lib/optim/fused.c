/* fused.c -- optimizer steps that are one pass in registers: what is stored is rounded, what
 * is used on the way is not. Fused kernels of torch on CUDA and CPU, Apex, and the textbook.
 *
 * An element's temporaries are binary32 unless they say otherwise. */
#include "steps.h"

#include <math.h>

/* a * b + c, in one rounding or two. */
static inline float multiply_add(int contracted, float a, float b, float c)
{
    return contracted ? fmaf(a, b, c) : a * b + c;
}

/* Results of a block before they are stored. */
typedef struct results {
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK];
    float vmax[MPSIM_OPTIM_BLOCK];
} results;

/* The second moment that is used: with amsgrad the largest so far. */
static inline float second_moment(const mpsim_optim_job *j, const mpsim_optim_block *b, results *r,
                                  size_t i)
{
    if (!j->o->amsgrad)
        return r->v[i];
    r->vmax[i] = mpsim_optim_larger(b->vmax[i], r->v[i]);
    return r->vmax[i];
}

static void store(const mpsim_optim_job *j, const mpsim_optim_block *b, results *r)
{
    const int adam = j->o->algorithm != MPSIM_OPTIM_SGD;
    if (adam || j->o->momentum != 0)
        mpsim_optim_store_state(j, b->m, r->m, b->n);
    if (adam)
        mpsim_optim_store_state(j, b->v, r->v, b->n);
    if (j->o->amsgrad)
        mpsim_optim_store_state(j, b->vmax, r->vmax, b->n);
    mpsim_optim_store_param(j, b, r->p);
}

static inline int decoupled(const mpsim_optim *o)
{
    return o->algorithm == MPSIM_OPTIM_ADAMW;
}

/* ---- fused CUDA kernels, generations A and B: hyper-parameters and products in binary64 ----
 *
 * fused_adam_utils.cuh a11d775f, 3539e1d2. Whether nvcc contracts these products is not known; that
 * shows in binary32 once in 2^29 elements. */

void mpsim_sgd_fused_double(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    for (size_t i = 0; i < b->n; i++) {
        const double p = (double)b->p[i];
        float g = mpsim_optim_gradient(o, b->g[i]);
        if (o->weight_decay != 0)
            g = (float)((double)g + o->weight_decay * p);
        if (o->momentum != 0) {
            const double m = (double)b->m[i], rest = 1 - o->dampening;
            r.m[i] = j->step == 1 ? g : (float)(o->momentum * m + rest * (double)g);
            g = o->nesterov ? (float)((double)g + o->momentum * (double)r.m[i]) : r.m[i];
        }
        r.p[i] = (float)(p - o->lr * (double)g);
    }
    store(j, b, &r);
}

void mpsim_adam_fused_double(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const double bc2 = 1 - j->beta2.of_double;
    const float bc1 = (float)(1 - j->beta1.of_double);
    const float root = j->row->generation == 'a' ? sqrtf((float)bc2) : (float)sqrt(bc2);
    const float step_size = (float)(o->lr / (double)bc1);
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(o, b->g[i]);
        if (o->weight_decay != 0 && decoupled(o))
            p = (float)((double)p - o->lr * o->weight_decay * (double)p);
        else if (o->weight_decay != 0)
            g = (float)((double)g + (double)p * o->weight_decay);
        r.m[i] = (float)(o->beta1 * (double)b->m[i] + (1 - o->beta1) * (double)g);
        r.v[i] = (float)(o->beta2 * (double)b->v[i] + (1 - o->beta2) * (double)g * (double)g);
        const float v = second_moment(j, b, &r, i);
        const float denominator = (float)((double)(sqrtf(v) / root) + o->eps);
        r.p[i] = p - step_size * r.m[i] / denominator;
    }
    store(j, b, &r);
}

/* ---- fused CUDA kernels, generation C: binary32, moments by explicit FMAs ----
 *
 * Other products next to a sum are contracted by nvcc. For mom * buf + (1 - d) * g it is one of two
 * products that is rounded; nvcc 13.0 took the second one. */

void mpsim_sgd_fused_float(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, momentum = (float)o->momentum;
    const float rest = 1 - (float)o->dampening;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0)
            g = fmaf(wd, p, g);
        if (momentum != 0) {
            r.m[i] = j->step == 1 ? g : fmaf(momentum, b->m[i], rest * g);
            g = o->nesterov ? fmaf(momentum, r.m[i], g) : r.m[i];
        }
        r.p[i] = fmaf(-lr, g, p);
    }
    store(j, b, &r);
}

void mpsim_adam_fused_float(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, eps = (float)o->eps;
    const float b1 = (float)o->beta1, b2 = (float)o->beta2;
    const float bc1 = 1 - (float)j->beta1.of_float;
    const float root = sqrtf(1 - (float)j->beta2.of_float), step_size = lr / bc1;
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0 && decoupled(o))
            p = fmaf(-(lr * wd), p, p);
        else if (wd != 0)
            g = fmaf(p, wd, g);
        r.m[i] = fmaf(b1, b->m[i], fmaf(-b1, g, g));
        r.v[i] = fmaf(b2, b->v[i], fmaf(-b2, g * g, g * g));
        const float v = second_moment(j, b, &r, i);
        r.p[i] = p - step_size * r.m[i] / (sqrtf(v) / root + eps);
    }
    store(j, b, &r);
}

/* ---- fused CPU kernels (data/vectors/optim/README.md) ----
 *
 * Hyper-parameters are doubles, rounded to binary32 where they meet an element. Where two products
 * meet in a sum, the vector body contracts the second one, the scalar tail the first one. */

void mpsim_sgd_fused_cpu(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const int fused = j->row->fused;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, momentum = (float)o->momentum;
    const float rest = (float)(1 - o->dampening);
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0)
            g = multiply_add(fused, p, wd, g);
        if (momentum != 0) {
            const float m = b->m[i];
            r.m[i] = j->step == 1 ? g
                     : b->tail    ? multiply_add(fused, m, momentum, g * rest)
                                  : multiply_add(fused, g, rest, m * momentum);
            g = o->nesterov ? multiply_add(fused, r.m[i], momentum, g) : r.m[i];
        }
        r.p[i] = multiply_add(fused, g, -lr, p);
    }
    store(j, b, &r);
}

void mpsim_adam_fused_cpu(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const int fused = j->row->fused;
    const float wd = (float)o->weight_decay, eps = (float)o->eps, b2 = (float)o->beta2;
    const float kept = (float)(1 - o->lr * o->weight_decay);
    const float w = (float)(1 - o->beta1), rest = (float)(1 - o->beta2);
    const float root = (float)sqrt(1 - j->beta2.of_double);
    const float step_size = (float)(o->lr / (1 - j->beta1.of_double));
    for (size_t i = 0; i < b->n; i++) {
        const float m = b->m[i], v = b->v[i];
        float p = b->p[i], g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0 && decoupled(o))
            p *= kept;
        else if (wd != 0)
            g = multiply_add(fused, p, wd, g);
        r.m[i] = w < 0.5f ? multiply_add(fused, w, g - m, m) : multiply_add(fused, w - 1, g - m, g);
        r.v[i] = b->tail ? multiply_add(fused, v, b2, rest * g * g)
                         : multiply_add(fused, rest * g, g, v * b2);
        const float largest = second_moment(j, b, &r, i);
        r.p[i] = p - step_size * r.m[i] / (sqrtf(largest) / root + eps);
    }
    store(j, b, &r);
}

/* ---- Apex and TransformerEngine, with IEEE division and square root ----
 *
 * multi_tensor_adam.cu, multi_tensor_sgd_kernel.cu; contractions as in TE's adam.cu by nvcc 13.0.
 * 1 - beta is formed in binary32; decay is added whatever it is. Gradients are multiplied by the
 * reciprocal of grad_scale. */

static inline float apex_gradient(const mpsim_optim *o, float g)
{
    return o->grad_scale == 1 ? g : g * (float)(1 / o->grad_scale);
}

void mpsim_sgd_apex(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, momentum = (float)o->momentum;
    const float rest = 1 - (float)o->dampening;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = apex_gradient(o, b->g[i]);
        if (wd != 0)
            g = fmaf(wd, p, g);
        if (momentum != 0) {
            r.m[i] = j->step == 1 ? g : fmaf(b->m[i], momentum, rest * g);
            g = o->nesterov ? fmaf(momentum, r.m[i], g) : r.m[i];
        }
        r.p[i] = fmaf(-lr, g, p);
    }
    store(j, b, &r);
}

void mpsim_adam_apex(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, decay = (float)o->weight_decay, eps = (float)o->eps;
    const float b1 = (float)o->beta1, b2 = (float)o->beta2;
    const float bc1 = (float)(1 - j->beta1.of_float), bc2 = (float)(1 - j->beta2.of_float);
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = apex_gradient(o, b->g[i]);
        if (!decoupled(o))
            g = fmaf(decay, p, g);
        r.m[i] = fmaf(b->m[i], b1, (1 - b1) * g);
        r.v[i] = fmaf(b->v[i], b2, g * ((1 - b2) * g));
        const float denominator = sqrtf(r.v[i] / bc2) + eps;
        float update = r.m[i] / bc1 / denominator;
        if (decoupled(o))
            update = fmaf(decay, p, update);
        r.p[i] = fmaf(-lr, update, p);
    }
    store(j, b, &r);
}

/* ---- the textbook, every operation rounded ---- */

void mpsim_sgd_ieee(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, momentum = (float)o->momentum;
    const float rest = (float)(1 - o->dampening);
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0)
            g = g + wd * p;
        if (momentum != 0) {
            r.m[i] = j->step == 1 ? g : momentum * b->m[i] + rest * g;
            g = o->nesterov ? g + momentum * r.m[i] : r.m[i];
        }
        r.p[i] = p - lr * g;
    }
    store(j, b, &r);
}

void mpsim_adam_ieee(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = (float)o->lr, wd = (float)o->weight_decay, eps = (float)o->eps;
    const float lr_wd = (float)(o->lr * o->weight_decay);
    const float b1 = (float)o->beta1, b2 = (float)o->beta2;
    const float rest1 = (float)(1 - o->beta1), rest2 = (float)(1 - o->beta2);
    const float bc1 = (float)(1 - j->beta1.of_double), bc2 = (float)(1 - j->beta2.of_double);
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(o, b->g[i]);
        if (wd != 0 && decoupled(o))
            p = p - lr_wd * p;
        else if (wd != 0)
            g = g + wd * p;
        r.m[i] = b1 * b->m[i] + rest1 * g;
        r.v[i] = b2 * b->v[i] + rest2 * (g * g);
        const float v = second_moment(j, b, &r, i);
        r.p[i] = p - lr * (r.m[i] / bc1) / (sqrtf(v / bc2) + eps);
    }
    store(j, b, &r);
}
