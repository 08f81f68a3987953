/* fused.c -- optimizer steps that are one pass in registers: what is stored is rounded, what
 * is used on the way is not. Fused kernels of torch on CUDA and CPU, Apex, and the textbook.
 *
 * An element's temporaries are binary32 unless they say otherwise. What these functions do is the
 * reference of kernel/fused.h, and what it leaves. */
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
static inline float second_moment(const mpsim_optim_job *j, const mpsim_optim_block *b, results *r, size_t i)
{
    if (!j->o->amsgrad)
        return r->v[i];
    r->vmax[i] = mpsim_optim_larger(b->vmax[i], r->v[i]);
    return r->vmax[i];
}

static void store(const mpsim_optim_job *j, const mpsim_optim_block *b, results *r)
{
    if (mpsim_optim_stores_m(j))
        mpsim_optim_store_state(j, b->m, r->m, b->n);
    if (j->arrays & MPSIM_OPTIM_V)
        mpsim_optim_store_state(j, b->v, r->v, b->n);
    if (j->arrays & MPSIM_OPTIM_VMAX)
        mpsim_optim_store_state(j, b->vmax, r->vmax, b->n);
    mpsim_optim_store_param(j, b, r->p);
}

/* A decay or momentum that is 0 in binary32 counts as not set. */
static void see_binary32(mpsim_optim_numbers *x)
{
    x->decays = x->wd != 0;
    x->has_momentum = x->momentum != 0;
}

/* ---- fused CUDA kernels, generations A and B: hyper-parameters and products in binary64 ----
 *
 * fused_adam_utils.cuh a11d775f, 3539e1d2. Whether nvcc contracts these products is not known; that
 * shows in binary32 once in 2^29 elements. */

static void keep_numbers(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    (void)j, (void)x;
}

static void sgd_fused_double(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    for (size_t i = 0; i < b->n; i++) {
        const double p = (double)b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
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

const mpsim_step mpsim_sgd_fused_double = {keep_numbers, sgd_fused_double};

static void numbers_fused_double(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const double bc2 = 1 - j->beta2.of_double;
    x->bc1 = (float)(1 - j->beta1.of_double);
    x->root = j->row->generation == 'a' ? sqrtf((float)bc2) : (float)sqrt(bc2);
    x->step_size = (float)(j->o->lr / (double)x->bc1);
}

static void adam_fused_double(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float root = j->x.root, step_size = j->x.step_size;
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (o->weight_decay != 0 && j->traits->decoupled)
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

const mpsim_step mpsim_adam_fused_double = {numbers_fused_double, adam_fused_double};

/* ---- fused CUDA kernels, generation C: binary32, moments by explicit FMAs ----
 *
 * Other products next to a sum are contracted by nvcc, but not in all of the four elements that a thread has
 * (recorded on an H200: data/vectors/device, fused). Of mom * buf + (1 - d) * g the first product is rounded. */

/* Which of its thread's four an element is: lengths that are multiples of four are taken by fours, others 512 apart. */
static inline size_t place_of(const mpsim_optim_job *j, const mpsim_optim_block *b, size_t i)
{
    return (j->n % 4 ? (b->at + i) / 512 : b->at + i) % 4;
}

static void numbers_sgd_float(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    see_binary32(x);
    x->rest = 1 - (float)j->o->dampening;
    x->uneven = x->divides;
}

static void sgd_fused_float(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = j->x.lr, wd = j->x.wd, momentum = j->x.momentum, rest = j->x.rest;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (wd != 0)
            g = fmaf(wd, p, g);
        if (momentum != 0) {
            r.m[i] = j->step == 1 ? g : fmaf(rest, g, momentum * b->m[i]);
            g = o->nesterov ? fmaf(momentum, r.m[i], g) : r.m[i];
        }
        r.p[i] = multiply_add(!j->x.divides || place_of(j, b, i) == 3, -lr, g, p);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_sgd_fused_float = {numbers_sgd_float, sgd_fused_float};

static void numbers_adam_float(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    see_binary32(x);
    x->bc1 = 1 - (float)j->beta1.of_float;
    x->root = sqrtf(1 - (float)j->beta2.of_float);
    x->step_size = x->lr / x->bc1;
    x->decay = x->lr * x->wd;
    x->uneven = x->decays && !j->traits->decoupled && (x->negates || !x->divides);
}

/* Whether the decay of an element is an FMA: with a scale of all, with maximize of none, else of all but the first. */
static inline int contracts_decay(const mpsim_optim_job *j, const mpsim_optim_block *b, size_t i)
{
    return !j->x.uneven || (!j->x.negates && place_of(j, b, i) != 0);
}

static void adam_fused_float(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const float wd = j->x.wd, decay = j->x.decay, eps = j->x.eps, b1 = j->x.b1, b2 = j->x.b2;
    const float root = j->x.root, step_size = j->x.step_size;
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (wd != 0 && j->traits->decoupled)
            p = fmaf(-decay, p, p);
        else if (wd != 0)
            g = multiply_add(contracts_decay(j, b, i), p, wd, g);
        r.m[i] = fmaf(b1, b->m[i], fmaf(-b1, g, g));
        r.v[i] = fmaf(b2, b->v[i], fmaf(-b2, g * g, g * g));
        const float v = second_moment(j, b, &r, i);
        r.p[i] = p - step_size * r.m[i] / (sqrtf(v) / root + eps);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_fused_float = {numbers_adam_float, adam_fused_float};

/* ---- fused CPU kernels (data/vectors/optim/check_optim.py) ----
 *
 * Hyper-parameters are doubles, rounded to binary32 where they meet an element. Where two products
 * meet in a sum, the vector body contracts the second one, the scalar tail the first one. */

static void numbers_sgd(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    see_binary32(x);
    x->rest = (float)(1 - j->o->dampening);
}

static void sgd_fused_cpu(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const int fused = j->row->fused;
    const float lr = j->x.lr, wd = j->x.wd, momentum = j->x.momentum, rest = j->x.rest;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
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

const mpsim_step mpsim_sgd_fused_cpu = {numbers_sgd, sgd_fused_cpu};

static void numbers_adam_cpu(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    const mpsim_optim *o = j->o;
    see_binary32(x);
    x->kept = (float)(1 - o->lr * o->weight_decay);
    x->root = (float)sqrt(1 - j->beta2.of_double);
    x->step_size = (float)(o->lr / (1 - j->beta1.of_double));
}

static void adam_fused_cpu(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const int fused = j->row->fused;
    const float wd = j->x.wd, eps = j->x.eps, b2 = j->x.b2, kept = j->x.kept;
    const float w = j->x.rest1, rest = j->x.rest2, root = j->x.root, step_size = j->x.step_size;
    for (size_t i = 0; i < b->n; i++) {
        const float m = b->m[i], v = b->v[i];
        float p = b->p[i], g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (wd != 0 && j->traits->decoupled)
            p *= kept;
        else if (wd != 0)
            g = multiply_add(fused, p, wd, g);
        r.m[i] = w < 0.5f ? multiply_add(fused, w, g - m, m) : multiply_add(fused, w - 1, g - m, g);
        r.v[i] = b->tail ? multiply_add(fused, v, b2, rest * g * g) : multiply_add(fused, rest * g, g, v * b2);
        const float largest = second_moment(j, b, &r, i);
        r.p[i] = p - step_size * r.m[i] / (sqrtf(largest) / root + eps);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_fused_cpu = {numbers_adam_cpu, adam_fused_cpu};

/* ---- Apex and TransformerEngine, with IEEE division and square root ----
 *
 * multi_tensor_adam.cu, multi_tensor_sgd_kernel.cu; contractions as in TE's adam.cu by nvcc 13.0.
 * 1 - beta is formed in binary32; decay is added whatever it is. Gradients are multiplied by the
 * reciprocal of grad_scale. */

static void multiply_gradients(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->multiplies = x->divides;
    x->divides = 0;
    x->grad_scale = (float)(1 / j->o->grad_scale);
}

static void numbers_sgd_apex(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    see_binary32(x);
    x->rest = 1 - (float)j->o->dampening;
    multiply_gradients(j, x);
}

static void sgd_apex(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = j->x.lr, wd = j->x.wd, momentum = j->x.momentum, rest = j->x.rest;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
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

const mpsim_step mpsim_sgd_apex = {numbers_sgd_apex, sgd_apex};

static void numbers_adam_apex(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    x->rest1 = 1 - x->b1;
    x->rest2 = 1 - x->b2;
    x->bc1 = (float)(1 - j->beta1.of_float);
    x->bc2 = (float)(1 - j->beta2.of_float);
    multiply_gradients(j, x);
}

static void adam_apex(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const float lr = j->x.lr, decay = j->x.wd, eps = j->x.eps, b1 = j->x.b1, b2 = j->x.b2;
    const float rest1 = j->x.rest1, rest2 = j->x.rest2, bc1 = j->x.bc1, bc2 = j->x.bc2;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (!j->traits->decoupled)
            g = fmaf(decay, p, g);
        r.m[i] = fmaf(b->m[i], b1, rest1 * g);
        r.v[i] = fmaf(b->v[i], b2, g * (rest2 * g));
        const float denominator = sqrtf(r.v[i] / bc2) + eps;
        float update = r.m[i] / bc1 / denominator;
        if (j->traits->decoupled)
            update = fmaf(decay, p, update);
        r.p[i] = fmaf(-lr, update, p);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_apex = {numbers_adam_apex, adam_apex};

/* ---- the textbook, every operation rounded ---- */

static void sgd_ieee(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const mpsim_optim *o = j->o;
    const float lr = j->x.lr, wd = j->x.wd, momentum = j->x.momentum, rest = j->x.rest;
    for (size_t i = 0; i < b->n; i++) {
        const float p = b->p[i];
        float g = mpsim_optim_gradient(&j->x, b->g[i]);
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

const mpsim_step mpsim_sgd_ieee = {numbers_sgd, sgd_ieee};

static void numbers_adam_ieee(const mpsim_optim_job *j, mpsim_optim_numbers *x)
{
    see_binary32(x);
    x->decay = (float)(j->o->lr * j->o->weight_decay);
    x->bc1 = (float)(1 - j->beta1.of_double);
    x->bc2 = (float)(1 - j->beta2.of_double);
}

static void adam_ieee(const mpsim_optim_job *j, const mpsim_optim_block *b)
{
    results r;
    const float lr = j->x.lr, wd = j->x.wd, decay = j->x.decay, eps = j->x.eps;
    const float b1 = j->x.b1, b2 = j->x.b2, rest1 = j->x.rest1, rest2 = j->x.rest2;
    const float bc1 = j->x.bc1, bc2 = j->x.bc2;
    for (size_t i = 0; i < b->n; i++) {
        float p = b->p[i], g = mpsim_optim_gradient(&j->x, b->g[i]);
        if (wd != 0 && j->traits->decoupled)
            p = p - decay * p;
        else if (wd != 0)
            g = g + wd * p;
        r.v[i] = b2 * b->v[i] + rest2 * (g * g);
        r.m[i] = b1 * b->m[i] + rest1 * g;
        const float v = second_moment(j, b, &r, i);
        r.p[i] = p - lr * (r.m[i] / bc1) / (sqrtf(v / bc2) + eps);
    }
    store(j, b, &r);
}

const mpsim_step mpsim_adam_ieee = {numbers_adam_ieee, adam_ieee};
