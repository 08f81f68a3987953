/* muon.cuh -- what lies between the products of a step of Muon (mpsim/muon.h), on binary32 numbers, a thread an element. */
#pragma once

#include "contract.cuh"
#include "lists.cuh"

enum { GPU_MUON_THREADS = 256 };

struct gpu_muon {
    mpsim_muon_plan plan;
    gpu_format param, format;
    float *p, *m, *x;
    const float *grad;
    size_t n;
    float grad_scale; /* 1: the gradients are not divided */
    int nesterov, keller;
    gpu_squares *squares;
    float *norm;
};

/* The momentum, and what is orthogonalised. */
GPU_KERNEL void __launch_bounds__(GPU_MUON_THREADS) muon_momentum_kernel(GPU_CONSTANT(gpu_muon) o)
{
    if (blockIdx.x == 0 && threadIdx.x < GPU_SQUARES_LIMBS)
        o.squares->limb[threadIdx.x] = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        o.squares->found = 0;
    GPU_FOR(i, o.n)
    {
        float g = o.grad[i];
        if (o.grad_scale != 1)
            g = __fdiv_rn(g, o.grad_scale);
        g = gpu_hold(o.param, g);
        const float m = gpu_hold(o.param, gpu_lerp(o.plan.contraction, o.m[i], g, o.plan.end));
        float u = m;
        if (o.nesterov)
            u = gpu_hold(o.param, gpu_lerp(o.plan.contraction, g, m, o.plan.momentum));
        o.m[i] = m;
        o.x[i] = gpu_hold(o.format, u);
    }
}

/* One thread. */
GPU_KERNEL void muon_norm_kernel(GPU_CONSTANT(gpu_muon) o)
{
    const float norm = gpu_hold_wide(o.format, gpu_squares_root(o.squares->limb, o.squares->found));
    *o.norm = o.keller ? gpu_hold(o.format, __fadd_rn(norm, o.plan.eps)) : norm < o.plan.eps ? o.plan.eps : norm;
}

GPU_KERNEL void __launch_bounds__(GPU_MUON_THREADS) muon_divide_kernel(GPU_CONSTANT(gpu_muon) o)
{
    const float norm = *o.norm;
    GPU_FOR(i, o.n)
    o.x[i] = gpu_hold(o.format, __fdiv_rn(o.x[i], norm));
}

/* y = [x], and scaled = [scale [x]] or NULL. */
GPU_KERNEL void __launch_bounds__(GPU_MUON_THREADS)
    muon_hold_kernel(GPU_CONSTANT(gpu_format) f, float *y, float *scaled, const float *x, float scale, size_t n)
{
    GPU_FOR(i, n)
    {
        y[i] = gpu_hold(f, x[i]);
        if (scaled)
            scaled[i] = gpu_hold(f, __fmul_rn(y[i], scale));
    }
}

/* y = [cp p + cx x], KELLER: [[cx x] + [p]]; y may be x. */
GPU_KERNEL void __launch_bounds__(GPU_MUON_THREADS)
    muon_combine_kernel(GPU_CONSTANT(gpu_format) f, float *y, const float *p, float cp, const float *x, float cx,
                        int keller, size_t n)
{
    GPU_FOR(i, n)
    {
        const float z = __fmul_rn(x[i], cx);
        y[i] = gpu_hold(f, keller ? __fadd_rn(gpu_hold(f, z), gpu_hold(f, p[i])) : __fadd_rn(z, __fmul_rn(p[i], cp)));
    }
}

GPU_KERNEL void __launch_bounds__(GPU_MUON_THREADS) muon_apply_kernel(GPU_CONSTANT(gpu_muon) o)
{
    const size_t body = o.plan.multiple ? o.n - o.n % o.plan.multiple : 0;
    GPU_FOR(i, o.n)
    {
        float y = o.x[i];
        if (o.keller)
            y = gpu_hold(o.format, __fmul_rn(y, o.plan.factor));
        const float p = gpu_hold(o.param, __fmul_rn(o.p[i], o.plan.decay));
        if (o.plan.rounds_products) {
            const float product = __fmul_rn(y, o.plan.alpha);
            y = __fadd_rn(p, i < body ? product : gpu_hold(o.param, product));
        } else {
            y = gpu_add_scaled(o.plan.contraction, p, y, o.plan.alpha);
        }
        o.p[i] = gpu_hold(o.param, y);
    }
}
