/* optimizer.cuh -- optimizer steps on a device: variants ieee, torch and torch-foreach of
 * mpsim/optim.h, in the order of lib/optim/fused.c and lib/optim/ops.c. Scalars are formed on the
 * host, as the library does. */
#pragma once

#include "lists.cuh"

#include <mpsim/optim.h>

struct gpu_optim {
    gpu_format param, grad, state;
    int torch, adam, decoupled, amsgrad, nesterov, maximize, stochastic;
    int has_momentum, has_decay;
    int first;             /* SGD: the buffer becomes the gradient */
    int reciprocal;        /* torch: correction2 is the reciprocal */
    float lr, decay, keep; /* decay: weight decay; keep: ieee: lr wd, torch: 1 - lr wd */
    float momentum, rest;  /* 1 - dampening                 */
    float beta1, beta2, rest1, rest2;
    float correction1, correction2; /* ieee: 1 - beta^t; torch: step size, root of 1 - beta2^t */
    float eps, grad_scale;
    size_t n;
};

/* Scalars of the binary64 reference. */
struct gpu_reference {
    double lr, momentum, dampening, decay, beta1, beta2, bc1, bc2, eps, grad_scale;
};

struct gpu_optim_tensors {
    void *param, *m, *v, *vmax;
    const void *grad;
};

/* One element. */
struct gpu_parameter {
    float p, g, m, v, vmax;
};

static __device__ __forceinline__ float optim_larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* ---- ieee: no fma; results are rounded to their formats when they are stored ---- */

static __device__ __forceinline__ void ieee_step(const gpu_optim &o, gpu_parameter *x)
{
    float g = x->g, p = x->p;
    if (o.grad_scale != 1)
        g = __fdiv_rn(g, o.grad_scale);
    if (o.maximize)
        g = -g;
    if (o.has_decay && o.decoupled)
        p = __fsub_rn(p, __fmul_rn(o.keep, p));
    else if (o.has_decay)
        g = __fadd_rn(g, __fmul_rn(o.decay, p));
    if (!o.adam) {
        if (o.has_momentum) {
            x->m = o.first ? g : __fadd_rn(__fmul_rn(o.momentum, x->m), __fmul_rn(o.rest, g));
            g = o.nesterov ? __fadd_rn(g, __fmul_rn(o.momentum, x->m)) : x->m;
        }
        x->p = __fsub_rn(p, __fmul_rn(o.lr, g));
        return;
    }
    x->m = __fadd_rn(__fmul_rn(o.beta1, x->m), __fmul_rn(o.rest1, g));
    x->v = __fadd_rn(__fmul_rn(o.beta2, x->v), __fmul_rn(o.rest2, __fmul_rn(g, g)));
    float v = x->v;
    if (o.amsgrad)
        v = x->vmax = optim_larger(x->vmax, x->v);
    const float up = __fmul_rn(o.lr, __fdiv_rn(x->m, o.correction1));
    const float down = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, o.correction2)), o.eps);
    x->p = __fsub_rn(p, __fdiv_rn(up, down));
}

/* ---- torch: tensor operations with ATen's contractions, each result rounded to its tensor's
 * format ---- */

static __device__ __forceinline__ float torch_param(const gpu_optim &o, float x)
{
    return gpu_hold(o.param, x);
}

static __device__ __forceinline__ float torch_state(const gpu_optim &o, float x)
{
    return gpu_hold(o.state, x);
}

/* y + s (x - y), from the nearer end */
static __device__ __forceinline__ float torch_lerp(float y, float x, float s)
{
    const float d = __fsub_rn(x, y), a = s < 0 ? -s : s;
    return a < 0.5f ? __fmaf_rn(s, d, y) : __fmaf_rn(-d, __fsub_rn(1, s), x);
}

static __device__ __forceinline__ void torch_step(const gpu_optim &o, gpu_parameter *x)
{
    float g = o.maximize ? -x->g : x->g;
    if (o.has_decay && !o.decoupled)
        g = torch_param(o, __fmaf_rn(o.decay, x->p, g));
    if (!o.adam) {
        if (o.has_momentum) {
            if (o.first) {
                x->m = torch_state(o, g);
            } else {
                x->m = torch_state(o, __fmul_rn(x->m, o.momentum));
                x->m = torch_state(o, __fmaf_rn(o.rest, g, x->m));
            }
            g = o.nesterov ? torch_param(o, __fmaf_rn(o.momentum, x->m, g)) : x->m;
        }
        x->p = torch_param(o, __fmaf_rn(-o.lr, g, x->p));
        return;
    }
    if (o.has_decay && o.decoupled)
        x->p = torch_param(o, __fmul_rn(x->p, o.keep));
    x->m = torch_state(o, torch_lerp(x->m, g, o.rest1));
    x->v = torch_state(o, __fmul_rn(x->v, o.beta2));
    x->v = torch_state(o, o.rest2 == 1 ? __fmaf_rn(g, g, x->v) : __fmaf_rn(o.rest2, __fmul_rn(g, g), x->v));
    float v = x->v;
    if (o.amsgrad)
        v = x->vmax = optim_larger(x->vmax, x->v);
    float d = torch_state(o, __fsqrt_rn(v));
    d = torch_state(o, o.reciprocal ? __fmul_rn(d, o.correction2) : __fdiv_rn(d, o.correction2));
    d = torch_state(o, __fadd_rn(d, o.eps));
    x->p = torch_param(o, __fmaf_rn(-o.correction1, __fdiv_rn(x->m, d), x->p));
}

/* ---- mpsim_optim_reference: binary64, one operation after the other ---- */

static __device__ __forceinline__ double reference_sgd(const gpu_optim &o, const gpu_reference &r, double g, double m)
{
    if (r.momentum == 0)
        return __dmul_rn(r.lr, g);
    const double next = o.first ? g : __dadd_rn(__dmul_rn(r.momentum, m), __dmul_rn(__dadd_rn(1, -r.dampening), g));
    return __dmul_rn(r.lr, o.nesterov ? __dadd_rn(g, __dmul_rn(r.momentum, next)) : next);
}

static __device__ __forceinline__ double reference_adam(const gpu_optim &o, const gpu_reference &r, double g,
                                                        const gpu_parameter &x)
{
    const double m = __dadd_rn(__dmul_rn(r.beta1, (double)x.m), __dmul_rn(__dadd_rn(1, -r.beta1), g));
    double v = __dadd_rn(__dmul_rn(r.beta2, (double)x.v), __dmul_rn(__dadd_rn(1, -r.beta2), __dmul_rn(g, g)));
    if (o.amsgrad) {
        const double most = (double)x.vmax;
        v = most > v || most != most ? most : v;
    }
    const double root = __dsqrt_rn(__ddiv_rn(v, r.bc2));
    return __ddiv_rn(__dmul_rn(r.lr, __ddiv_rn(m, r.bc1)), __dadd_rn(root, r.eps));
}

/* The parameter after the step. */
static __device__ double reference_step(const gpu_optim &o, const gpu_reference &r, const gpu_parameter &x)
{
    double p = (double)x.p, g = __ddiv_rn((double)x.g, r.grad_scale);
    g = o.maximize ? -g : g;
    if (r.decay != 0 && o.decoupled)
        p = __dadd_rn(p, -__dmul_rn(__dmul_rn(r.lr, r.decay), p));
    else if (r.decay != 0)
        g = __dadd_rn(g, __dmul_rn(r.decay, p));
    return __dadd_rn(p, -(o.adam ? reference_adam(o, r, g, x) : reference_sgd(o, r, g, (double)x.m)));
}

/* ---- the kernel ---- */

static __device__ __forceinline__ void optim_store(const gpu_format &f, void *to, size_t i, float x)
{
    gpu_store(f, to, i, gpu_encode(f, GPU_NEAREST, x).code);
}

struct gpu_update {
    gpu_optim_tensors at;
    size_t n;
    mpsim_rng rng;
};

typedef gpu_list<gpu_update, 36> gpu_updates;
static_assert(sizeof(gpu_optim) + sizeof(gpu_reference) + sizeof(gpu_updates) + 8 <= GPU_LIST_PARAMETERS, "too many");

/* Element i. 1: the reference would move it; *stays: and it stays. */
static __device__ __forceinline__ int optim_one(const gpu_optim &o, const gpu_reference &r, const gpu_update &u,
                                                size_t i, int counting, int *stays)
{
    const gpu_optim_tensors &t = u.at;
    gpu_parameter x;
    x.p = gpu_value(o.param, t.param, i);
    x.g = gpu_value(o.grad, t.grad, i);
    x.m = t.m ? gpu_value(o.state, t.m, i) : 0;
    x.v = t.v ? gpu_value(o.state, t.v, i) : 0;
    x.vmax = t.vmax ? gpu_value(o.state, t.vmax, i) : 0;
    const float before = x.p;
    const int would = counting && reference_step(o, r, x) != (double)before;
    if (o.torch)
        torch_step(o, &x);
    else
        ieee_step(o, &x);
    uint32_t code;
    if (o.stochastic) {
        uint32_t words[4];
        const uint64_t index = u.rng.index + i;
        mpsim_rng_block(words, u.rng.seed, u.rng.stream, index / 4);
        code = gpu_encode_stochastic(o.param, x.p, words[index % 4]);
    } else {
        code = gpu_encode(o.param, GPU_NEAREST, x.p).code;
    }
    gpu_store(o.param, t.param, i, code);
    if (t.m && (o.adam || o.has_momentum))
        optim_store(o.state, t.m, i, x.m);
    if (t.v && o.adam)
        optim_store(o.state, t.v, i, x.v);
    if (t.vmax && o.amsgrad)
        optim_store(o.state, t.vmax, i, x.vmax);
    *stays = would && gpu_decode(o.param, code) == before;
    return would;
}

/* Parameters with the same settings. moved: two counters, of elements that the reference moves, and of those
 * of them that stay; or NULL */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    optim_kernel(GPU_CONSTANT(gpu_optim) o, GPU_CONSTANT(gpu_reference) r, GPU_CONSTANT(gpu_updates) list,
                 gpu_word *moved)
{
    unsigned moves = 0, stays = 0;
    const unsigned k = gpu_list_item(list);
    const gpu_update u = list.item[k];
    GPU_FOR_ITEM(i, list, k, u.n)
    {
        int stay;
        moves += (unsigned)optim_one(o, r, u, i, moved != NULL, &stay);
        stays += (unsigned)stay;
    }
    if (moved) {
        gpu_counter::one(moved, moves);
        gpu_counter::one(moved + 1, stays);
    }
}

/* The variant's scalars. 0, or -1: no kernel. Formats of tensors, rng and n are the caller's. */
static inline int gpu_optim_set(gpu_optim *g, gpu_reference *r, const mpsim_optim *o, uint64_t step)
{
    static const struct {
        const char *name;
        int torch, reciprocal;
    } rows[] = {{"ieee", 0, 0}, {"torch", 1, 1}, {"torch-foreach", 1, 0}};
    int row = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(o->variant->name, rows[i].name) == 0)
            row = i;
    if (row < 0 || o->store == MPSIM_STORE_KAHAN)
        return -1;
    memset(g, 0, sizeof *g);
    g->torch = rows[row].torch;
    g->reciprocal = rows[row].reciprocal;
    g->adam = mpsim_optim_traits_of(o->algorithm)->family == MPSIM_OPTIM_ADAM;
    g->decoupled = mpsim_optim_traits_of(o->algorithm)->decoupled;
    g->amsgrad = o->amsgrad;
    g->nesterov = o->nesterov;
    g->maximize = o->maximize;
    g->stochastic = o->store == MPSIM_STORE_STOCHASTIC;
    g->first = step == 1;
    const double power1 = g->adam ? mpsim_power(o->beta1, step) : 0;
    const double power2 = g->adam ? mpsim_power(o->beta2, step) : 0;
    /* ieee asks the binary32 number, torch the binary64 one */
    g->has_momentum = g->torch ? o->momentum != 0 : (float)o->momentum != 0;
    g->has_decay = g->torch ? o->weight_decay != 0 : (float)o->weight_decay != 0;
    g->lr = (float)o->lr;
    g->decay = (float)o->weight_decay;
    g->keep = (float)(g->torch ? 1 - o->lr * o->weight_decay : o->lr * o->weight_decay);
    g->momentum = (float)o->momentum;
    g->rest = (float)(1 - o->dampening);
    g->beta1 = (float)o->beta1;
    g->beta2 = (float)o->beta2;
    g->rest1 = (float)(1 - o->beta1);
    g->rest2 = (float)(1 - o->beta2);
    g->correction1 = (float)(g->torch ? o->lr / (1 - power1) : 1 - power1);
    const double root = sqrt(1 - power2);
    g->correction2 = (float)(!g->torch ? 1 - power2 : g->reciprocal ? 1 / root : root);
    g->eps = (float)o->eps;
    g->grad_scale = (float)o->grad_scale;
    r->lr = o->lr;
    r->momentum = o->momentum;
    r->dampening = o->dampening;
    r->decay = o->weight_decay;
    r->beta1 = o->beta1;
    r->beta2 = o->beta2;
    r->bc1 = 1 - power1;
    r->bc2 = 1 - power2;
    r->eps = o->eps;
    r->grad_scale = o->grad_scale;
    return 0;
}
