/* optimizer_ops.cuh -- steps of one element that are sequences of tensor operations, each rounded to its tensor's format:
 * lib/optim/ops.c, lion.c, optimi in lowp.c. F rounds: F::param(o, x) and F::state(o, x). */
#pragma once

#include "optimizer_steps.cuh"

/* How operations contract: ATen's on CUDA; on CPUs with FMA, and without. */
enum gpu_ops { GPU_OPS_CUDA, GPU_OPS_CPU, GPU_OPS_PLAIN };

struct gpu_to_param {
    template <class F>
    static __device__ __forceinline__ float hold(const gpu_optim &o, float x)
    {
        return F::hold(o.param, x);
    }
    static __device__ __forceinline__ int exact(const gpu_optim &o)
    {
        return o.param.kind == GPU_BINARY32;
    }
};

struct gpu_to_state {
    template <class F>
    static __device__ __forceinline__ float hold(const gpu_optim &o, float x)
    {
        return F::hold(o.state, x);
    }
    static __device__ __forceinline__ int exact(const gpu_optim &o)
    {
        return o.state.kind == GPU_BINARY32;
    }
};

/* y + s x. On a CPU, in few bits, these are two operations, of which scalar code rounds the product, too. */
template <int R, class F, class To>
static __device__ __forceinline__ float ops_add(const gpu_optim &o, const gpu_parameter &e, float y, float x, float s)
{
    if (R == GPU_OPS_CUDA || (R == GPU_OPS_CPU && To::exact(o)))
        return To::template hold<F>(o, __fmaf_rn(s, x, y));
    float product = __fmul_rn(s, x);
    if (R == GPU_OPS_PLAIN || e.tail)
        product = To::template hold<F>(o, product);
    return To::template hold<F>(o, __fadd_rn(y, product));
}

/* b y + s x, a product and a sum. */
template <int R, class F>
static __device__ __forceinline__ float ops_follow(const gpu_optim &o, const gpu_parameter &e, float y, float b,
                                                   float x, float s)
{
    return ops_add<R, F, gpu_to_state>(o, e, F::hold(o.state, __fmul_rn(y, b)), x, s);
}

/* y + s (x - y), from the nearer end. */
template <int R>
static __device__ __forceinline__ float ops_lerp(float y, float x, float s)
{
    const float d = __fsub_rn(x, y);
    const int low = (s < 0 ? -s : s) < 0.5f;
    if (R == GPU_OPS_CUDA)
        return low ? __fmaf_rn(s, d, y) : __fmaf_rn(-d, __fsub_rn(1, s), x);
    return optim_fused_if(R == GPU_OPS_CPU, low ? s : __fsub_rn(s, 1), d, low ? y : x);
}

/* y + s a a */
template <int R>
static __device__ __forceinline__ float ops_square(float y, float a, float s)
{
    if (R == GPU_OPS_CUDA)
        return s == 1 ? __fmaf_rn(a, a, y) : __fmaf_rn(s, __fmul_rn(a, a), y);
    return optim_fused_if(R == GPU_OPS_CPU, __fmul_rn(s, a), a, y);
}

/* y + s a / b */
template <int R>
static __device__ __forceinline__ float ops_quotient(float y, float a, float b, float s)
{
    return R == GPU_OPS_CUDA ? __fmaf_rn(s, __fdiv_rn(a, b), y) : __fadd_rn(y, __fdiv_rn(__fmul_rn(s, a), b));
}

template <int R, class F>
static __device__ __forceinline__ void ops_decay(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = F::hold(o.param, __fmul_rn(e.p, x.kept));
    else if (x.decays)
        e.g = ops_add<R, F, gpu_to_param>(o, e, e.g, e.p, x.wd);
}

/* ---- torch ---- */

template <int R, class F>
static __device__ __forceinline__ void sgd_ops(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays)
        e.g = ops_add<R, F, gpu_to_param>(o, e, e.g, e.p, x.wd);
    if (x.has_momentum) {
        e.m = o.first ? F::hold(o.state, e.g) : ops_follow<R, F>(o, e, e.m, x.b1, e.g, x.rest);
        e.g = o.nesterov ? ops_add<R, F, gpu_to_param>(o, e, e.g, e.m, x.momentum) : e.m;
    }
    e.p = ops_add<R, F, gpu_to_param>(o, e, e.p, e.g, x.step_size);
}

/* Decay and moments; the root of the second moment that is used. */
template <int R, class F>
static __device__ __forceinline__ float ops_root(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    ops_decay<R, F>(o, x, e);
    e.m = F::hold(o.state, ops_lerp<R>(e.m, e.g, x.rest1));
    e.v = F::hold(o.state, ops_square<R>(F::hold(o.state, __fmul_rn(e.v, x.b2)), e.g, x.rest2));
    return F::hold(o.state, __fsqrt_rn(optim_second(o, e)));
}

enum gpu_divides { GPU_BY_QUOTIENT, GPU_BY_RECIPROCAL, GPU_BY_TWO };

/* BY_TWO: capturable foreach, which divides by the step size, too. */
template <int R, class F, int DIVIDES>
static __device__ __forceinline__ void adam_ops(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    float d = ops_root<R, F>(o, x, e);
    d = F::hold(o.state, DIVIDES == GPU_BY_RECIPROCAL ? __fmul_rn(d, x.root) : __fdiv_rn(d, x.root));
    d = F::hold(o.state, __fadd_rn(d, x.eps));
    if (DIVIDES == GPU_BY_TWO)
        d = F::hold(o.state, __fdiv_rn(d, x.step_size));
    e.p = F::hold(o.param, ops_quotient<R>(e.p, e.m, d, DIVIDES == GPU_BY_TWO ? 1 : x.step_size));
}

/* ---- Lion ---- */

template <int R, class F>
static __device__ __forceinline__ void lion_ops(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    const float u = optim_sign(ops_follow<R, F>(o, e, e.m, x.b1, e.g, x.rest1));
    const float kept = F::hold(o.param, __fmul_rn(e.p, x.kept));
    e.p = ops_add<R, F, gpu_to_param>(o, e, kept, u, x.step_size);
    e.m = ops_follow<R, F>(o, e, e.m, x.b2, e.g, x.rest2);
}

/* ---- optimi ---- */

/* The update is in the compensation: p gets it, and the compensation what p did not take. */
template <int R, class F>
static __device__ __forceinline__ void ops_compensate(const gpu_optim &o, gpu_parameter &e)
{
    const float old = e.p;
    e.p = ops_add<R, F, gpu_to_param>(o, e, old, e.kahan, 1);
    e.kahan = ops_add<R, F, gpu_to_param>(o, e, e.kahan, ops_add<R, F, gpu_to_param>(o, e, old, e.p, -1), 1);
}

template <int R, class F>
static __device__ __forceinline__ void sgd_optimi(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    ops_decay<R, F>(o, x, e);
    if (x.has_momentum && o.dampened)
        e.g = e.m = F::hold(o.state, ops_lerp<R>(e.m, e.g, x.rest1));
    else if (x.has_momentum)
        e.g = e.m = ops_follow<R, F>(o, e, e.m, x.b1, e.g, 1);
    float &to = o.compensates ? e.kahan : e.p;
    to = ops_add<R, F, gpu_to_param>(o, e, to, e.g, x.step_size);
    if (o.compensates)
        ops_compensate<R, F>(o, e);
}

template <int R, class F>
static __device__ __forceinline__ void adam_optimi(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    const float d = F::hold(o.state, __fadd_rn(ops_root<R, F>(o, x, e), x.eps));
    float &to = o.compensates ? e.kahan : e.p;
    to = F::hold(o.param, ops_quotient<R>(to, e.m, d, x.step_size));
    if (o.compensates)
        ops_compensate<R, F>(o, e);
}

/* ---- optimi's Triton kernels ---- */

template <class F>
static __device__ __forceinline__ void triton_start(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    if (x.decays && o.decoupled)
        e.p = F::hold(o.param, __fmul_rn(e.p, x.kept));
    else if (x.decays)
        e.g = __fmaf_rn(x.wd, e.p, e.g);
}

/* p = p + rounded k; the compensation gets what p did not take. */
template <class F>
static __device__ __forceinline__ void triton_finish(const gpu_optim &o, gpu_parameter &e, float k)
{
    const float sum = F::hold(o.param, __fadd_rn(F::hold(o.param, k), e.p));
    if (o.compensates)
        e.kahan = F::hold(o.param, __fsub_rn(__fadd_rn(k, e.p), sum));
    e.p = sum;
}

template <class F>
static __device__ __forceinline__ void sgd_triton(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    triton_start<F>(o, x, e);
    if (x.has_momentum)
        e.g = __fmaf_rn(e.m, x.momentum, __fmul_rn(x.rest, e.g));
    e.m = F::hold(o.state, e.g);
    triton_finish<F>(o, e, __fmaf_rn(-x.lr, e.g, o.compensates ? e.kahan : 0));
}

template <class F>
static __device__ __forceinline__ void adam_triton(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
    triton_start<F>(o, x, e);
    e.m = __fmaf_rn(e.m, x.b1, __fmul_rn(x.rest1, e.g));
    e.v = __fmaf_rn(e.v, x.b2, __fmul_rn(__fmul_rn(x.rest2, e.g), e.g));
    const float up = __fmul_rn(x.lr, e.m), below = __fadd_rn(__fsqrt_rn(e.v), x.eps);
    triton_finish<F>(o, e, __fsub_rn(o.compensates ? e.kahan : 0, __fdiv_rn(up, below)));
    e.m = F::hold(o.state, e.m);
    e.v = F::hold(o.state, e.v);
}

/* ---- all ---- */

/* X(enumerator's end, step): mpsim_step_kernel by name. */
#define GPU_OPTIM_STEPS(X)                                                 \
    X(SGD_IEEE, (sgd_ieee))                                                \
    X(SGD_FUSED_DOUBLE, (sgd_fused_double))                                \
    X(SGD_FUSED_FLOAT, (sgd_apex))                                         \
    X(SGD_FUSED_CPU, (sgd_cpu<1>))                                         \
    X(SGD_FUSED_CPU_PLAIN, (sgd_cpu<0>))                                   \
    X(SGD_OPS_CUDA, (sgd_ops<GPU_OPS_CUDA, F>))                            \
    X(SGD_OPS_CPU, (sgd_ops<GPU_OPS_CPU, F>))                              \
    X(SGD_OPS_PLAIN, (sgd_ops<GPU_OPS_PLAIN, F>))                          \
    X(SGD_OPTIMI_CUDA, (sgd_optimi<GPU_OPS_CUDA, F>))                      \
    X(SGD_OPTIMI_CPU, (sgd_optimi<GPU_OPS_CPU, F>))                        \
    X(SGD_OPTIMI_PLAIN, (sgd_optimi<GPU_OPS_PLAIN, F>))                    \
    X(SGD_TRITON, (sgd_triton<F>))                                         \
    X(ADAM_IEEE, (adam_ieee))                                              \
    X(ADAM_FUSED_DOUBLE, (adam_fused_double))                              \
    X(ADAM_FUSED_FLOAT, (adam_fused_float))                                \
    X(ADAM_FUSED_CPU, (adam_cpu<1>))                                       \
    X(ADAM_FUSED_CPU_PLAIN, (adam_cpu<0>))                                 \
    X(ADAM_APEX, (adam_apex))                                              \
    X(ADAM_TORCHAO, (adam_torchao<1>))                                     \
    X(ADAM_TORCHAO_PLAIN, (adam_torchao<0>))                               \
    X(ADAM_OPS_RECIPROCAL, (adam_ops<GPU_OPS_CUDA, F, GPU_BY_RECIPROCAL>)) \
    X(ADAM_OPS_CUDA, (adam_ops<GPU_OPS_CUDA, F, GPU_BY_QUOTIENT>))         \
    X(ADAM_OPS_CPU, (adam_ops<GPU_OPS_CPU, F, GPU_BY_QUOTIENT>))           \
    X(ADAM_OPS_PLAIN, (adam_ops<GPU_OPS_PLAIN, F, GPU_BY_QUOTIENT>))       \
    X(ADAM_OPTIMI_CUDA, (adam_optimi<GPU_OPS_CUDA, F>))                    \
    X(ADAM_OPTIMI_CPU, (adam_optimi<GPU_OPS_CPU, F>))                      \
    X(ADAM_OPTIMI_PLAIN, (adam_optimi<GPU_OPS_PLAIN, F>))                  \
    X(ADAM_TRITON, (adam_triton<F>))                                       \
    X(LION_IEEE, (lion_ieee))                                              \
    X(LION_OPS_CUDA, (lion_ops<GPU_OPS_CUDA, F>))                          \
    X(LION_OPS_CPU, (lion_ops<GPU_OPS_CPU, F>))                            \
    X(LION_OPS_PLAIN, (lion_ops<GPU_OPS_PLAIN, F>))                        \
    X(ADAM_CAPTURABLE_LIST, (adam_ops<GPU_OPS_CUDA, F, GPU_BY_TWO>))       \
    X(ADAM_COAT, (adam_coat))                                              \
    X(ADAM_MSAMP, (adam_msamp))

template <int STEP, class F>
static __device__ __forceinline__ void optim_step(const gpu_optim &o, const mpsim_optim_numbers &x, gpu_parameter &e)
{
#define GPU_OPTIM_IF(NAME, OF)               \
    if constexpr (STEP == MPSIM_STEP_##NAME) \
        OF(o, x, e);
    GPU_OPTIM_STEPS(GPU_OPTIM_IF)
#undef GPU_OPTIM_IF
}
