/* optimizer_steps.cuh -- the step of one element in each variant of mpsim/optim.h, in the order of lib/optim: fused.c, lowp.c,
 * lion.c and lowbits.c compute in binary32 or binary64 and round what they store; ops.c rounds every operation (optimizer_ops.cuh). Which
 * numbers a step has, lib/optim says (lib/optim/numbers.h). */
#pragma once

#include "codes.cuh"

#include "../../lib/optim/numbers.h"

/* A step of a launch: its numbers and formats. */
struct gpu_optim {
    gpu_format param, grad, state, model;
    mpsim_optim_numbers x;
    double lr, wd, momentum, dampening, beta1, beta2, eps; /* of steps in binary64 */
    int kernel;                                            /* mpsim_step_kernel    */
    mpsim_contraction contraction;
    int decoupled, amsgrad, nesterov, first, stochastic, compensates, dampened;
    int has_m, has_v, has_vmax;
    unsigned multiple;       /* elements beyond the largest multiple of it are a scalar tail; 0: none is */
    const float *grad_scale; /* on the device, or NULL: x.grad_scale */
};

/* One element; `place`: which of its thread's four it is in torch's fused kernel. */
struct gpu_parameter {
    float p, g, m, v, vmax, kahan;
    int tail, place;
};

static __device__ __forceinline__ float optim_larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

static __device__ __forceinline__ float optim_fused_if(int contracted, float a, float b, float c)
{
    return contracted ? __fmaf_rn(a, b, c) : __fadd_rn(__fmul_rn(a, b), c);
}

static __device__ __forceinline__ float optim_sign(float x)
{
    return (float)((x > 0) - (x < 0));
}

/* The gradient as it enters a step. */
static __device__ __forceinline__ float optim_gradient(const mpsim_optim_numbers &x, float g)
{
    if (x.divides)
        g = __fdiv_rn(g, x.grad_scale);
    else if (x.multiplies)
        g = __fmul_rn(g, x.grad_scale);
    return x.negates ? -g : g;
}

/* The second moment that is used. */
static __device__ __forceinline__ float optim_second(const gpu_optim &o, gpu_parameter &e)
{
    if (!o.amsgrad)
        return e.v;
    e.vmax = optim_larger(e.vmax, e.v);
    return e.vmax;
}

/* root + eps, p - a m / that */
static __device__ __forceinline__ float optim_below(const mpsim_optim_numbers &x, float v)
{
    return __fadd_rn(__fdiv_rn(__fsqrt_rn(v), x.root), x.eps);
}

/* ---- textbook: no fma ---- */

static __device__ __forceinline__ void sgd_ieee(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays)
        e.g = __fadd_rn(e.g, __fmul_rn(x.wd, e.p));
    if (x.has_momentum) {
        e.m = o.first ? e.g : __fadd_rn(__fmul_rn(x.momentum, e.m), __fmul_rn(x.rest, e.g));
        e.g = o.nesterov ? __fadd_rn(e.g, __fmul_rn(x.momentum, e.m)) : e.m;
    }
    e.p = __fsub_rn(e.p, __fmul_rn(x.lr, e.g));
}

static __device__ __forceinline__ void adam_ieee(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = __fsub_rn(e.p, __fmul_rn(x.decay, e.p));
    else if (x.decays)
        e.g = __fadd_rn(e.g, __fmul_rn(x.wd, e.p));
    e.m = __fadd_rn(__fmul_rn(x.b1, e.m), __fmul_rn(x.rest1, e.g));
    e.v = __fadd_rn(__fmul_rn(x.b2, e.v), __fmul_rn(x.rest2, __fmul_rn(e.g, e.g)));
    const float v = optim_second(o, e);
    const float down = __fadd_rn(__fsqrt_rn(__fdiv_rn(v, x.bc2)), x.eps);
    e.p = __fsub_rn(e.p, __fdiv_rn(__fmul_rn(x.lr, __fdiv_rn(e.m, x.bc1)), down));
}

static __device__ __forceinline__ void lion_ieee(const gpu_optim &, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    const float kept = x.decays ? __fsub_rn(e.p, __fmul_rn(x.decay, e.p)) : e.p;
    const float u = optim_sign(__fadd_rn(__fmul_rn(x.b1, e.m), __fmul_rn(x.rest1, e.g)));
    e.p = __fsub_rn(kept, __fmul_rn(x.lr, u));
    e.m = __fadd_rn(__fmul_rn(x.b2, e.m), __fmul_rn(x.rest2, e.g));
}

/* ---- torch's fused kernels: in binary64 ---- */

/* x + a y */
static __device__ __forceinline__ float optim_wide_add(float x, double a, float y)
{
    return (float)__dadd_rn((double)x, __dmul_rn(a, (double)y));
}

static __device__ __forceinline__ void sgd_fused_double(const gpu_optim &o, const mpsim_optim_numbers &x,
                                                        gpu_parameter &e)
{
    if (x.decays)
        e.g = optim_wide_add(e.g, o.wd, e.p);
    if (x.has_momentum) {
        const double rest = __dadd_rn(1, -o.dampening);
        e.m = o.first ? e.g : (float)__dadd_rn(__dmul_rn(o.momentum, (double)e.m), __dmul_rn(rest, (double)e.g));
        e.g = o.nesterov ? optim_wide_add(e.g, o.momentum, e.m) : e.m;
    }
    e.p = optim_wide_add(e.p, -o.lr, e.g);
}

static __device__ __forceinline__ void adam_fused_double(const gpu_optim &o, const mpsim_optim_numbers &x,
                                                         gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = optim_wide_add(e.p, -__dmul_rn(o.lr, o.wd), e.p);
    else if (x.decays)
        e.g = optim_wide_add(e.g, o.wd, e.p);
    const double g = (double)e.g, rest1 = __dadd_rn(1, -o.beta1), rest2 = __dadd_rn(1, -o.beta2);
    e.m = (float)__dadd_rn(__dmul_rn(o.beta1, (double)e.m), __dmul_rn(rest1, g));
    e.v = (float)__dadd_rn(__dmul_rn(o.beta2, (double)e.v), __dmul_rn(__dmul_rn(rest2, g), g));
    const float root = __fdiv_rn(__fsqrt_rn(optim_second(o, e)), x.root);
    const float below = (float)__dadd_rn((double)root, o.eps);
    e.p = __fsub_rn(e.p, __fdiv_rn(__fmul_rn(x.step_size, e.m), below));
}

/* ---- torch's fused kernels: in binary32 ---- */

static __device__ __forceinline__ void adam_fused_float(const gpu_optim &o, const mpsim_optim_numbers &x,
                                                        gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = __fmaf_rn(-x.decay, e.p, e.p);
    else if (x.decays)
        e.g = optim_fused_if(!x.uneven || (!x.negates && e.place != 0), e.p, x.wd, e.g);
    const float square = __fmul_rn(e.g, e.g);
    e.m = __fmaf_rn(x.b1, e.m, __fmaf_rn(-x.b1, e.g, e.g));
    e.v = __fmaf_rn(x.b2, e.v, __fmaf_rn(-x.b2, square, square));
    const float below = optim_below(x, optim_second(o, e));
    e.p = __fsub_rn(e.p, __fdiv_rn(__fmul_rn(x.step_size, e.m), below));
}

template <int FUSED>
static __device__ __forceinline__ void sgd_cpu(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays)
        e.g = optim_fused_if(FUSED, e.p, x.wd, e.g);
    if (x.has_momentum) {
        const float next = e.tail ? optim_fused_if(FUSED, e.m, x.momentum, __fmul_rn(e.g, x.rest))
                                  : optim_fused_if(FUSED, e.g, x.rest, __fmul_rn(e.m, x.momentum));
        e.m = o.first ? e.g : next;
        e.g = o.nesterov ? optim_fused_if(FUSED, e.m, x.momentum, e.g) : e.m;
    }
    e.p = optim_fused_if(FUSED && (!x.uneven || e.place == 3), e.g, -x.lr, e.p);
}

template <int FUSED>
static __device__ __forceinline__ void adam_cpu(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = __fmul_rn(e.p, x.kept);
    else if (x.decays)
        e.g = optim_fused_if(FUSED, e.p, x.wd, e.g);
    const float d = __fsub_rn(e.g, e.m), drawn = __fmul_rn(x.rest2, e.g);
    e.m = x.rest1 < 0.5f ? optim_fused_if(FUSED, x.rest1, d, e.m)
                         : optim_fused_if(FUSED, __fsub_rn(x.rest1, 1), d, e.g);
    e.v = e.tail ? optim_fused_if(FUSED, e.v, x.b2, __fmul_rn(drawn, e.g))
                 : optim_fused_if(FUSED, drawn, e.g, __fmul_rn(e.v, x.b2));
    const float below = optim_below(x, optim_second(o, e));
    e.p = __fsub_rn(e.p, __fdiv_rn(__fmul_rn(x.step_size, e.m), below));
}

/* ---- Apex and TransformerEngine ---- */

static __device__ __forceinline__ void sgd_apex(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays)
        e.g = __fmaf_rn(x.wd, e.p, e.g);
    if (x.has_momentum) {
        e.m = o.first ? e.g : __fmaf_rn(e.m, x.momentum, __fmul_rn(x.rest, e.g));
        e.g = o.nesterov ? __fmaf_rn(x.momentum, e.m, e.g) : e.m;
    }
    e.p = __fmaf_rn(-x.lr, e.g, e.p);
}

static __device__ __forceinline__ void adam_apex(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (!o.decoupled)
        e.g = __fmaf_rn(x.wd, e.p, e.g);
    e.m = __fmaf_rn(e.m, x.b1, __fmul_rn(x.rest1, e.g));
    e.v = __fmaf_rn(e.v, x.b2, __fmul_rn(e.g, __fmul_rn(x.rest2, e.g)));
    const float below = __fadd_rn(__fsqrt_rn(__fdiv_rn(e.v, x.bc2)), x.eps);
    float update = __fdiv_rn(__fdiv_rn(e.m, x.bc1), below);
    if (o.decoupled)
        update = __fmaf_rn(x.wd, e.p, update);
    e.p = __fmaf_rn(-x.lr, update, e.p);
}

/* ---- torchao ---- */

template <int FUSED>
static __device__ __forceinline__ float torchao_lerp(float s, float e, float w)
{
    return optim_fused_if(FUSED, w < 0.5f ? w : __fsub_rn(w, 1), __fsub_rn(e, s), w < 0.5f ? s : e);
}

template <int FUSED>
static __device__ __forceinline__ void adam_torchao(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (o.decoupled)
        e.p = __fsub_rn(e.p, __fmul_rn(x.decay, e.p));
    else
        e.g = __fadd_rn(e.g, __fmul_rn(x.wd, e.p));
    e.m = torchao_lerp<FUSED>(e.m, e.g, x.rest1);
    e.v = torchao_lerp<FUSED>(e.v, __fmul_rn(e.g, e.g), x.rest2);
    const float below = optim_below(x, optim_second(o, e));
    e.p = __fsub_rn(e.p, __fdiv_rn(__fmul_rn(x.lr, __fdiv_rn(e.m, x.bc1)), below));
}

/* ---- COAT and MS-AMP, their moments as binary32 ---- */

static __device__ __forceinline__ void adam_coat(const gpu_optim &, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    e.m = __fmaf_rn(e.m, x.b1, __fmul_rn(x.rest1, e.g));
    e.v = __fmaf_rn(e.v, x.b2, __fmul_rn(__fmul_rn(x.rest2, e.g), e.g));
    const float below = __fmul_rn(optim_below(x, e.v), x.bc1);
    e.p = __fmaf_rn(-x.lr, __fmaf_rn(x.wd, e.p, __fdiv_rn(e.m, below)), e.p);
}

static __device__ __forceinline__ void adam_msamp(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = __fmul_rn(e.p, x.kept);
    else if (x.decays)
        e.g = __fmaf_rn(x.wd, e.p, e.g);
    e.m = __fmaf_rn(e.m, x.b1, __fmul_rn(x.rest1, e.g));
    e.v = __fmaf_rn(e.v, x.b2, __fmul_rn(x.rest2, __fmul_rn(e.g, e.g)));
    e.p = __fmaf_rn(-x.step_size, __fdiv_rn(e.m, optim_below(x, e.v)), e.p);
}
