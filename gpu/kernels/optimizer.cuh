/* optimizer.cuh -- optimizer steps on a device: the variants of mpsim/optim.h that step each element by itself
 * (optimizer_steps.cuh, optimizer_ops.cuh). A launch takes tensors of the same settings, as many as its parameters hold, and reads and
 * writes four elements at a time where a tensor's arrays are aligned so. */
#pragma once

#include "lists.cuh"
#include "optimizer_ops.cuh"

#include <mpsim/optim.h>

/* Scalars of the binary64 reference. */
struct gpu_reference {
    double lr, momentum, dampening, decay, beta1, beta2, bc1, bc2, eps, grad_scale;
    int adam, maximize;
};

/* The arrays of a tensor. `model` gets the parameter rounded. `remainder`: the parameter is split, its upper half in `model` (mpsim_master_split). */
struct gpu_optim_tensors {
    void *param, *m, *v, *vmax, *kahan, *model;
    int16_t *remainder;
    const void *grad;
};

/* ---- formats ---- */

/* binary32 and bf16, in a few instructions. */
struct optim_flat {
    static __device__ __forceinline__ void load_four(const gpu_format &f, const void *p, size_t i, uint32_t to[4])
    {
        f.bytes == 2 ? gpu_load_as<uint16_t>(p, i, to) : gpu_load_as<uint32_t>(p, i, to);
    }
    static __device__ __forceinline__ void store_four(const gpu_format &f, void *p, size_t i, const uint32_t from[4])
    {
        f.bytes == 2 ? gpu_store_as<uint16_t>(p, i, from) : gpu_store_as<uint32_t>(p, i, from);
    }
    static __device__ __forceinline__ float decode(const gpu_format &f, uint32_t code)
    {
        return __uint_as_float(f.bytes == 2 ? code << 16 : code);
    }
    /* Of a NaN some NaN. */
    static __device__ __forceinline__ uint32_t upper(float x)
    {
#if defined(__CUDA_ARCH__)
        return gpu_convert_bits(GPU_CVT_BF16, x);
#else
        const uint32_t u = __float_as_uint(x);
        return x != x ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
#endif
    }
    static __device__ __forceinline__ float hold(const gpu_format &f, float x)
    {
        return f.bytes == 2 ? __uint_as_float(upper(x) << 16) : x;
    }
    static __device__ __forceinline__ uint32_t encode(const gpu_format &f, float x)
    {
        return f.bytes != 2 ? __float_as_uint(x) : x != x ? f.nan : upper(x);
    }
    static __device__ __forceinline__ uint32_t draw(const gpu_format &f, float x, uint32_t word)
    {
        const uint32_t u = __float_as_uint(x), m = (u & 0x7fffffffu) + (word >> 16);
        return f.bytes != 2 ? u : x != x ? f.nan : (u >> 31 << 15) | min(m >> 16, 0x7f80u);
    }
};

/* Any format of a device, by calls: there is a kernel for each variant. */
struct optim_any {
    static __device__ __forceinline__ void load_four(const gpu_format &f, const void *p, size_t i, uint32_t to[4])
    {
        gpu_load_four(f, p, i, to);
    }
    static __device__ __forceinline__ void store_four(const gpu_format &f, void *p, size_t i, const uint32_t from[4])
    {
        gpu_store_four(f, p, i, from);
    }
    static __device__ GPU_NOINLINE float decode(const gpu_format &f, uint32_t code)
    {
        return gpu_decode(f, code);
    }
    static __device__ GPU_NOINLINE float hold(const gpu_format &f, float x)
    {
        return gpu_hold(f, x);
    }
    static __device__ GPU_NOINLINE uint32_t encode(const gpu_format &f, float x)
    {
        return gpu_encode(f, GPU_NEAREST, x).code;
    }
    static __device__ GPU_NOINLINE uint32_t draw(const gpu_format &f, float x, uint32_t word)
    {
        return gpu_encode_stochastic(f, x, word);
    }
};

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
    g = r.maximize ? -g : g;
    if (r.decay != 0 && o.decoupled)
        p = __dadd_rn(p, -__dmul_rn(__dmul_rn(r.lr, r.decay), p));
    else if (r.decay != 0)
        g = __dadd_rn(g, __dmul_rn(r.decay, p));
    return __dadd_rn(p, -(r.adam ? reference_adam(o, r, g, x) : reference_sgd(o, r, g, (double)x.m)));
}

/* ---- W elements, 1 or 4: the i-th one, or the i-th four ---- */

template <class F, int W>
static __device__ __forceinline__ void optim_load(const gpu_format &f, const void *p, size_t i, float to[W])
{
    uint32_t code[4] = {0, 0, 0, 0};
    if (p && W == 4)
        F::load_four(f, p, i, code);
    else if (p)
        code[0] = gpu_load(f, p, i);
    GPU_UNROLL
    for (int t = 0; t < W; t++)
        to[t] = p ? F::decode(f, code[t]) : 0;
}

template <class F, int W>
static __device__ __forceinline__ void optim_store_codes(const gpu_format &f, void *p, size_t i, const uint32_t code[4])
{
    if (W == 4)
        F::store_four(f, p, i, code);
    else
        gpu_store(f, p, i, code[0]);
}

template <class F, int W>
static __device__ __forceinline__ void optim_store(const gpu_format &f, void *p, size_t i, const float x[W])
{
    uint32_t code[4];
    GPU_UNROLL
    for (int t = 0; t < W; t++)
        code[t] = F::encode(f, x[t]);
    optim_store_codes<F, W>(f, p, i, code);
}

/* A master in two halves, as mpsim_master_join and _split. */
static __device__ __forceinline__ float optim_join(uint32_t model, int16_t remainder)
{
    return __uint_as_float((model - (remainder < 0)) << 16 | (uint16_t)remainder);
}

template <int W>
static __device__ __forceinline__ void optim_load_split(const gpu_optim_tensors &t, size_t i, float p[W])
{
    const uint16_t *const model = static_cast<const uint16_t *>(t.model);
    GPU_UNROLL
    for (int k = 0; k < W; k++)
        p[k] = optim_join(model[W * i + k], t.remainder[W * i + k]);
}

template <int W>
static __device__ __forceinline__ void optim_store_split(const gpu_optim_tensors &t, size_t i, const float p[W])
{
    uint16_t *const model = static_cast<uint16_t *>(t.model);
    GPU_UNROLL
    for (int k = 0; k < W; k++) {
        const uint32_t u = __float_as_uint(p[k]);
        t.remainder[W * i + k] = (int16_t)u;
        model[W * i + k] = (uint16_t)((u >> 16) + (u >> 15 & 1));
    }
}

/* ---- the kernel ---- */

struct gpu_update {
    gpu_optim_tensors at;
    size_t n;
    mpsim_rng rng;
};

/* Drivers of CUDA 12.1 and later take so many bytes of parameters on the architectures that are compiled for. */
enum { GPU_OPTIM_PARAMETERS = 32764 };
typedef gpu_list<gpu_update, 256> gpu_updates;
static_assert(sizeof(gpu_optim) + sizeof(gpu_reference) + sizeof(gpu_updates) + 64 <= GPU_OPTIM_PARAMETERS, "too many");

struct gpu_moved {
    unsigned moves, stays;
};

/* The random words of elements W i to W i + W - 1. */
template <int W>
static __device__ GPU_NOINLINE void optim_words(const mpsim_rng &rng, size_t i, uint32_t words[4])
{
    uint64_t block = ~(uint64_t)0;
    uint32_t of[4];
    GPU_UNROLL
    for (int k = 0; k < W; k++) {
        const uint64_t index = rng.index + W * i + k;
        if (index / 4 != block)
            mpsim_rng_block(of, rng.seed, rng.stream, block = index / 4);
        const unsigned at = (unsigned)(index % 4);
        words[k] = at == 0 ? of[0] : at == 1 ? of[1] : at == 2 ? of[2] : of[3];
    }
}

/* Where four elements begin at a block of the generator it is asked once. */
template <int W>
static __device__ __forceinline__ void optim_draws(const mpsim_rng &rng, size_t i, uint32_t words[4])
{
    if (W == 4 && rng.index % 4 == 0)
        mpsim_rng_block(words, rng.seed, rng.stream, rng.index / 4 + i);
    else
        optim_words<W>(rng, i, words);
}

template <class F, int W>
static __device__ __forceinline__ void optim_store_param(const gpu_optim &o, const gpu_update &u, size_t i,
                                                         const float p[W], uint32_t code[4])
{
    uint32_t words[4];
    if (o.stochastic)
        optim_draws<W>(u.rng, i, words);
    GPU_UNROLL
    for (int k = 0; k < W; k++)
        code[k] = o.stochastic ? F::draw(o.param, p[k], words[k]) : F::encode(o.param, p[k]);
    if (u.at.remainder)
        return optim_store_split<W>(u.at, i, p);
    optim_store_codes<F, W>(o.param, u.at.param, i, code);
    if (u.at.model) {
        float held[W];
        GPU_UNROLL
        for (int k = 0; k < W; k++)
            held[k] = F::decode(o.param, code[k]);
        optim_store<F, W>(o.model, u.at.model, i, held);
    }
}

template <int STEP, class F, int COUNT, int W>
static __device__ __forceinline__ void optim_some(const gpu_optim &o, const mpsim_optim_numbers &x,
                                                  const gpu_reference &r, const gpu_update &u, size_t i,
                                                  gpu_moved *moved)
{
    const gpu_optim_tensors &t = u.at;
    float p[W], g[W], m[W], v[W], vmax[W], kahan[W], before[W];
    int would[W];
    uint32_t code[4];
    if (t.remainder)
        optim_load_split<W>(t, i, p);
    else
        optim_load<F, W>(o.param, t.param, i, p);
    optim_load<F, W>(o.grad, t.grad, i, g);
    optim_load<F, W>(o.state, o.has_m ? t.m : nullptr, i, m);
    optim_load<F, W>(o.state, o.has_v ? t.v : nullptr, i, v);
    optim_load<F, W>(o.state, o.has_vmax ? t.vmax : nullptr, i, vmax);
    optim_load<F, W>(o.param, o.compensates ? t.kahan : nullptr, i, kahan);
    const size_t body = o.multiple ? u.n - u.n % o.multiple : u.n;
    GPU_UNROLL
    for (int k = 0; k < W; k++) {
        const size_t at = W * i + k;
        gpu_parameter e = {p[k], g[k], m[k], v[k], vmax[k], kahan[k], at >= body, (int)((u.n % 4 ? at / 512 : at) % 4)};
        before[k] = p[k];
        would[k] = COUNT && reference_step(o, r, e) != (double)p[k];
        e.g = optim_gradient(x, e.g);
        optim_step<STEP, F>(o, x, e);
        p[k] = e.p, m[k] = e.m, v[k] = e.v, vmax[k] = e.vmax, kahan[k] = e.kahan;
    }
    optim_store_param<F, W>(o, u, i, p, code);
    if (o.has_m)
        optim_store<F, W>(o.state, t.m, i, m);
    if (o.has_v)
        optim_store<F, W>(o.state, t.v, i, v);
    if (o.has_vmax)
        optim_store<F, W>(o.state, t.vmax, i, vmax);
    if (o.compensates)
        optim_store<F, W>(o.param, t.kahan, i, kahan);
    for (int k = 0; COUNT && k < W; k++) {
        moved->moves += (unsigned)would[k];
        moved->stays += would[k] && F::decode(o.param, code[k]) == before[k];
    }
}

/* Whether all arrays of a tensor are aligned for four elements at a time. */
static __device__ __forceinline__ int optim_in_fours(const gpu_optim &o, const gpu_optim_tensors &t)
{
    return gpu_in_fours(o.param, t.param) && gpu_in_fours(o.grad, t.grad) && gpu_in_fours(o.state, t.m) &&
           gpu_in_fours(o.state, t.v) && gpu_in_fours(o.state, t.vmax) && gpu_in_fours(o.param, t.kahan) &&
           (!t.model || gpu_in_fours(o.model, t.model));
}

/* Parameters with the same settings. COUNT: `moved` has two counters, of elements that the reference moves, and of
 * those of them that stay. */
template <int STEP, class F, int COUNT>
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    optim_kernel(GPU_CONSTANT(gpu_optim) o, GPU_CONSTANT(gpu_reference) r, GPU_CONSTANT(gpu_updates) list,
                 gpu_word *moved)
{
    gpu_moved own = {0, 0};
    const unsigned k = gpu_list_item(list);
    const gpu_update u = list.item[k];
    mpsim_optim_numbers x = o.x;
    if (o.grad_scale)
        x.grad_scale = x.multiplies ? (float)__ddiv_rn(1, (double)*o.grad_scale) : *o.grad_scale;
    const size_t fours = optim_in_fours(o, u.at) ? u.n / 4 : 0;
    GPU_FOR_ITEM(q, list, k, fours)
    optim_some<STEP, F, COUNT, 4>(o, x, r, u, q, &own);
    GPU_FOR_ITEM(i, list, k, u.n - 4 * fours)
    optim_some<STEP, F, COUNT, 1>(o, x, r, u, 4 * fours + i, &own);
    if (COUNT && moved) {
        gpu_counter::one(moved, own.moves);
        gpu_counter::one(moved + 1, own.stays);
    }
}

/* ---- on the host ---- */

typedef void gpu_optim_function(cudaStream_t stream, unsigned blocks, const gpu_optim &o, const gpu_reference &r,
                                const gpu_updates &list, gpu_word *moved);

template <int STEP, class F, int COUNT>
static void optim_launch(cudaStream_t stream, unsigned blocks, const gpu_optim &o, const gpu_reference &r,
                         const gpu_updates &list, gpu_word *moved)
{
    GPU_LAUNCH_ON(stream, (optim_kernel<STEP, F, COUNT>), blocks, GPU_LIST_THREADS, 0, o, r, list, moved);
}

static inline int optim_is_flat(const gpu_format &f)
{
    return f.kind == GPU_BINARY32 || f.convert == GPU_CVT_BF16;
}

/* The launch of a step. */
template <int COUNT>
static gpu_optim_function *optim_function(const gpu_optim &o)
{
    const int flat = optim_is_flat(o.param) && optim_is_flat(o.grad) && optim_is_flat(o.state) &&
                     optim_is_flat(o.model);
#define GPU_OPTIM_ROW(NAME, OF)                                          \
    if (o.kernel == MPSIM_STEP_##NAME)                                   \
        return flat ? optim_launch<MPSIM_STEP_##NAME, optim_flat, COUNT> \
                    : optim_launch<MPSIM_STEP_##NAME, optim_any, COUNT>;
    GPU_OPTIM_STEPS(GPU_OPTIM_ROW)
#undef GPU_OPTIM_ROW
    return nullptr;
}

static inline gpu_reference gpu_reference_of(const mpsim_optim *o, uint64_t step)
{
    gpu_reference r;
    const int adam = mpsim_optim_traits_of(o->algorithm)->family == MPSIM_OPTIM_ADAM;
    r.lr = o->lr;
    r.momentum = o->momentum;
    r.dampening = o->dampening;
    r.decay = o->weight_decay;
    r.beta1 = o->beta1;
    r.beta2 = o->beta2;
    r.bc1 = 1 - (adam ? mpsim_power(o->beta1, step) : 0);
    r.bc2 = 1 - (adam ? mpsim_power(o->beta2, step) : 0);
    r.eps = o->eps;
    r.grad_scale = o->grad_scale;
    r.adam = adam;
    r.maximize = o->maximize;
    return r;
}

/* The variant's numbers, all formats but the model's being `grad` or the optimizer's. MPSIM_EUNAVAILABLE: no kernel of one element, unless
 * whole tensors are stepped by others, or no such formats on the device. */
static inline mpsim_status gpu_optim_set(gpu_optim *g, const mpsim_optim *o, uint64_t step, const mpsim_format *grad,
                                         int whole = 0)
{
    mpsim_optim_plan plan;
    const mpsim_status s = mpsim_optim_plan_of(&plan, o, step);
    if (s)
        return s;
    memset(g, 0, sizeof *g);
    if ((plan.kernel == MPSIM_STEP_NONE && !whole) || gpu_format_set(&g->param, &o->param) ||
        gpu_format_set(&g->state, &o->state) || gpu_format_set(&g->grad, grad))
        return MPSIM_EUNAVAILABLE;
    g->model = g->param;
    g->x = plan.x;
    g->lr = o->lr;
    g->wd = o->weight_decay;
    g->momentum = o->momentum;
    g->dampening = o->dampening;
    g->beta1 = o->beta1;
    g->beta2 = o->beta2;
    g->eps = o->eps;
    g->kernel = plan.kernel;
    g->contraction = plan.contraction;
    g->decoupled = plan.decoupled;
    g->amsgrad = o->amsgrad;
    g->nesterov = o->nesterov;
    g->first = plan.first;
    g->stochastic = o->store == MPSIM_STORE_STOCHASTIC && g->param.kind != GPU_BINARY32;
    g->compensates = o->store == MPSIM_STORE_KAHAN;
    g->dampened = o->dampening != 0;
    g->has_m = plan.stores_m;
    g->has_v = (plan.arrays & MPSIM_OPTIM_V) != 0;
    g->has_vmax = (plan.arrays & MPSIM_OPTIM_VMAX) != 0;
    g->multiple = plan.multiple;
    return MPSIM_OK;
}
