/* adafactor.cuh -- a step of Adafactor (lib/optim/adafactor.c): mean squares of rows and columns as exact sums in integers, the norm of the
 * updates, which are computed twice rather than kept, and the step. */
#pragma once

#include "contract.cuh"
#include "optimizer.cuh"
#include "orders.cuh"
#include "squares.cuh"

enum { GPU_ADAFACTOR_THREADS = 256, GPU_ADAFACTOR_COLUMNS = 32, GPU_ADAFACTOR_LIMBS = GPU_SQUARES_LIMBS + 2 };

struct gpu_adafactor {
    gpu_optim o;
    mpsim_adafactor_plan plan;
    gpu_optim_tensors t;
    mpsim_rng rng;
    size_t n, rows, cols, each; /* each: elements of a matrix; 0: a vector, of which rows = cols = 1 */
    gpu_squares *sums;          /* of the parameter, of the updates    */
    float *means;               /* of the moments of a matrix's rows   */
};

static __device__ __forceinline__ float adafactor_gradient(const gpu_adafactor &a, const mpsim_optim_numbers &x,
                                                           size_t i)
{
    return optim_gradient(x, gpu_value(a.o.grad, a.t.grad, i));
}

static __device__ __forceinline__ mpsim_optim_numbers adafactor_numbers(const gpu_adafactor &a)
{
    mpsim_optim_numbers x = a.o.x;
    if (a.o.grad_scale)
        x.grad_scale = *a.o.grad_scale;
    return x;
}

GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_clear_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    if (threadIdx.x >= 2 * GPU_SQUARES_LIMBS)
        return;
    a.sums[threadIdx.x / GPU_SQUARES_LIMBS].limb[threadIdx.x % GPU_SQUARES_LIMBS] = 0;
    if (threadIdx.x < 2)
        a.sums[threadIdx.x].found = 0;
}

/* ---- moments ---- */

/* The moment at i of an array follows the mean square of n elements, whose sum is in limbs. */
static __device__ void adafactor_follow(const gpu_adafactor &a, void *moments, size_t i, const gpu_word *limb,
                                        unsigned found, size_t n)
{
    const float norm = (float)gpu_squares_root(limb, found), mean = __fdiv_rn(__fmul_rn(norm, norm), (float)n);
    const float y = gpu_lerp(a.o.contraction, gpu_value(a.o.state, moments, i), mean, a.plan.weight);
    gpu_store(a.o.state, moments, i, gpu_encode(a.o.state, GPU_NEAREST, y).code);
}

/* A block a row. */
GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_rows_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    GPU_SHARED(gpu_word, limb, [GPU_ADAFACTOR_LIMBS]);
    GPU_SHARED(unsigned, found, [1]);
    const mpsim_optim_numbers x = adafactor_numbers(a);
    for (size_t row = blockIdx.x; row < a.n / a.cols; row += gridDim.x) {
        gpu_square_run run = {0, 0, 0, 0};
        unsigned own = 0;
        gpu_exact_begin(limb, GPU_ADAFACTOR_LIMBS, found);
        for (size_t i = threadIdx.x; i < a.cols; i += GPU_ADAFACTOR_THREADS)
            gpu_squares_add(limb, &run, &own, adafactor_gradient(a, x, row * a.cols + i));
        gpu_squares_give(limb, run);
        if (own)
            atomicOr(found, own);
        __syncthreads();
        if (threadIdx.x == 0)
            adafactor_follow(a, a.t.m, row, limb, found[0], a.cols);
        __syncthreads();
    }
}

/* A block 32 columns of a matrix, whose rows its 8 lines of threads share. */
GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_columns_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    GPU_SHARED(gpu_word, limb, [GPU_ADAFACTOR_COLUMNS][GPU_ADAFACTOR_LIMBS]);
    GPU_SHARED(unsigned, found, [GPU_ADAFACTOR_COLUMNS]);
    const mpsim_optim_numbers x = adafactor_numbers(a);
    const size_t groups = (a.cols + GPU_ADAFACTOR_COLUMNS - 1) / GPU_ADAFACTOR_COLUMNS;
    const unsigned c = threadIdx.x, r = threadIdx.y;
    for (size_t group = blockIdx.x; group < a.n / a.each * groups; group += gridDim.x) {
        const size_t matrix = group / groups, column = group % groups * GPU_ADAFACTOR_COLUMNS + c;
        gpu_square_run run = {0, 0, 0, 0};
        unsigned own = 0;
        for (unsigned i = r; i < GPU_ADAFACTOR_LIMBS; i += blockDim.y)
            limb[c][i] = 0;
        if (r == 0)
            found[c] = 0;
        __syncthreads();
        for (size_t i = r; column < a.cols && i < a.rows; i += blockDim.y)
            gpu_squares_add(limb[c], &run, &own, adafactor_gradient(a, x, matrix * a.each + i * a.cols + column));
        gpu_squares_give(limb[c], run);
        if (own)
            atomicOr(&found[c], own);
        __syncthreads();
        if (r == 0 && column < a.cols)
            adafactor_follow(a, a.t.v, matrix * a.cols + column, limb[c], found[c], a.rows);
        __syncthreads();
    }
}

/* The square of one number is as exact as its root. */
GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_vector_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    const mpsim_optim_numbers x = adafactor_numbers(a);
    GPU_FOR(i, a.n)
    {
        const float g = adafactor_gradient(a, x, i), v = gpu_value(a.o.state, a.t.v, i);
        const float y = gpu_lerp(a.o.contraction, v, __fmul_rn(g, g), a.plan.weight);
        gpu_store(a.o.state, a.t.v, i, gpu_encode(a.o.state, GPU_NEAREST, y).code);
    }
}

/* A block a matrix: the mean of the moments of its rows, at least eps. */
GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_means_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    GPU_SHARED(gpu_word, limb, [GPU_EXACT_LIMBS]);
    GPU_SHARED(unsigned, found, [1]);
    for (size_t matrix = blockIdx.x; matrix < a.n / a.each; matrix += gridDim.x) {
        gpu_exact_run run = {0, 0, 0};
        unsigned own = 0;
        gpu_exact_begin(limb, GPU_EXACT_LIMBS, found);
        for (size_t i = threadIdx.x; i < a.rows; i += GPU_ADAFACTOR_THREADS)
            gpu_exact_add(limb, &run, &own, gpu_value(a.o.state, a.t.m, matrix * a.rows + i));
        gpu_exact_give(limb, run);
        if (own)
            atomicOr(found, own);
        __syncthreads();
        if (threadIdx.x == 0) {
            const float mean = __fdiv_rn((float)gpu_nearest_f64(gpu_exact_sum(limb, found[0])), (float)a.rows);
            a.means[matrix] = mean < a.plan.eps1 ? a.plan.eps1 : mean;
        }
        __syncthreads();
    }
}

/* ---- updates ---- */

/* The update of element i before it is clipped. */
static __device__ __forceinline__ float adafactor_update(const gpu_adafactor &a, const mpsim_optim_numbers &x, size_t i)
{
    float v;
    if (a.each) {
        const size_t matrix = i / a.each;
        const float row = gpu_value(a.o.state, a.t.m, i / a.cols);
        const float column = gpu_value(a.o.state, a.t.v, matrix * a.cols + i % a.cols);
        v = __fdiv_rn(__fmul_rn(row, column), a.means[matrix]);
    } else {
        v = gpu_value(a.o.state, a.t.v, i);
    }
    const float root = __fsqrt_rn(v < a.plan.least ? a.plan.least : v);
    return __fmul_rn(__fdiv_rn(1, root), adafactor_gradient(a, x, i));
}

/* The squares of the parameter, or of the updates. */
template <int UPDATES>
GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_squares_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    GPU_SHARED(gpu_word, limb, [GPU_ADAFACTOR_LIMBS]);
    gpu_square_run run = {0, 0, 0, 0};
    unsigned found = 0;
    const mpsim_optim_numbers x = adafactor_numbers(a);
    if (threadIdx.x < GPU_ADAFACTOR_LIMBS)
        limb[threadIdx.x] = 0;
    __syncthreads();
    GPU_FOR(i, a.n)
    gpu_squares_add(limb, &run, &found, UPDATES ? adafactor_update(a, x, i) : gpu_value(a.o.param, a.t.param, i));
    gpu_squares_give(limb, run);
    __syncthreads();
    if (threadIdx.x < GPU_SQUARES_LIMBS && limb[threadIdx.x])
        atomicAdd(&a.sums[UPDATES].limb[threadIdx.x], limb[threadIdx.x]);
    if (found)
        atomicOr(&a.sums[UPDATES].found, found);
}

static __device__ double adafactor_norm(const gpu_squares &s)
{
    return (double)(float)gpu_squares_root(s.limb, s.found);
}

/* What a parameter gets of its update. */
static __device__ float adafactor_step(const gpu_adafactor &a)
{
    const double root_n = __dsqrt_rn((double)a.n), size = __ddiv_rn(adafactor_norm(a.sums[0]), root_n);
    const double alpha = __dmul_rn(size > a.plan.eps2 ? size : a.plan.eps2, a.plan.rho);
    const double clip = __ddiv_rn(adafactor_norm(a.sums[1]), __dmul_rn(root_n, a.plan.d));
    return (float)__ddiv_rn(-alpha, clip > 1 ? clip : 1);
}

GPU_KERNEL void __launch_bounds__(GPU_ADAFACTOR_THREADS) adafactor_apply_kernel(GPU_CONSTANT(gpu_adafactor) a)
{
    GPU_SHARED(float, shared, [1]);
    const mpsim_optim_numbers x = adafactor_numbers(a);
    gpu_update u;
    u.at = a.t;
    u.n = a.n;
    u.rng = a.rng;
    if (threadIdx.x == 0)
        shared[0] = adafactor_step(a);
    __syncthreads();
    const float step = shared[0];
    GPU_FOR(i, a.n)
    {
        uint32_t code[4];
        const float kept = __fmul_rn(gpu_value(a.o.param, a.t.param, i), a.plan.kept);
        const float p = gpu_add_scaled(a.o.contraction, kept, adafactor_update(a, x, i), step);
        optim_store_param<optim_any, 1>(a.o, u, i, &p, code);
    }
}
