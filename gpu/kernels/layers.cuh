/* layers.cuh -- softmax with cross-entropy, and batch normalisation: mpsim/layer.h in parallel, in
 * binary32. exp and log are those of lib/layer/scalar.h, the trees of sums those of mpsim_sum_lanes.
 */
#pragma once

#include "codes.cuh"
#include "sums.cuh"

/* ---- softmax: a warp has a row ---- */

enum { GPU_SOFTMAX_THREADS = 128 };

struct gpu_softmax {
    gpu_format from, to;
    size_t rows, classes;
    float coefficient;
};

/* One copy a kernel, for the instruction cache. */
static __device__ GPU_NOINLINE float softmax_exp(float x)
{
    return mpsim_exp_f32(x);
}

/* The largest number of all lanes and where it is first, in every lane; NaN if there is one. */
static __device__ __forceinline__ float softmax_larger_of_lanes(float most, unsigned at, unsigned *where)
{
    for (int h = 16; h > 0; h /= 2) {
        const float v = __shfl_xor_sync(0xffffffffu, most, h);
        const unsigned w = __shfl_xor_sync(0xffffffffu, at, h);
        const int nan = v != v, own_nan = most != most;
        const int better = nan != own_nan ? nan : nan || v == most ? w < at : v > most;
        if (better) {
            most = v;
            at = w;
        }
    }
    *where = at;
    return most;
}

static __device__ __forceinline__ float softmax_sum_of_lanes(float sum)
{
    for (unsigned h = 16; h > 0; h /= 2)
        sum = __fadd_rn(sum, __shfl_down_sync(0xffffffffu, sum, h));
    return __shfl_sync(0xffffffffu, sum, 0);
}

/* The loss of a row, and whether its largest logit is that of the label. */
static __device__ __forceinline__ void softmax_loss(const gpu_softmax &p, float *loss, const void *x, size_t row,
                                                    uint32_t label, float most, unsigned where, float sum,
                                                    unsigned *correct)
{
    const float logit = gpu_value(p.from, x, row * p.classes + label);
    loss[row] = __fsub_rn(mpsim_log_f32(sum), __fsub_rn(logit, most));
    if (most == most && where == label)
        atomicAdd(correct, 1u);
}

/* The largest logit of the row. */
static __device__ __forceinline__ float softmax_largest(const gpu_softmax &p, const void *x, size_t row, unsigned lane,
                                                        unsigned *where)
{
    float most = __uint_as_float(0xff800000u);
    unsigned at = 0xffffffffu;
    for (size_t j = lane; j < p.classes; j += 32) {
        const float v = gpu_value(p.from, x, row * p.classes + j);
        if (at == 0xffffffffu || (most == most && (v > most || v != v))) {
            most = v;
            at = (unsigned)j;
        }
    }
    return softmax_larger_of_lanes(most, at, where);
}

GPU_KERNEL void __launch_bounds__(GPU_SOFTMAX_THREADS)
    softmax_kernel(GPU_CONSTANT(gpu_softmax) p, float *loss, void *dx, const void *x, const uint32_t *labels,
                   unsigned *correct, gpu_word *counts)
{
    gpu_counter c;
    const unsigned lane = threadIdx.x % 32;
    const size_t warps = (size_t)gridDim.x * (GPU_SOFTMAX_THREADS / 32);
    for (size_t row = (size_t)blockIdx.x * (GPU_SOFTMAX_THREADS / 32) + threadIdx.x / 32; row < p.rows; row += warps) {
        unsigned where;
        const float most = softmax_largest(p, x, row, lane, &where);
        const uint32_t label = labels[row];
        float sum = 0;
        for (size_t j = lane; j < p.classes; j += 32)
            sum = __fadd_rn(sum, softmax_exp(__fsub_rn(gpu_value(p.from, x, row * p.classes + j), most)));
        sum = softmax_sum_of_lanes(sum);
        if (lane == 0)
            softmax_loss(p, loss, x, row, label, most, where, sum, correct);
        if (dx)
            for (size_t j = lane; j < p.classes; j += 32) {
                const size_t at = row * p.classes + j;
                const float e = softmax_exp(__fsub_rn(gpu_value(p.from, x, at), most));
                const float g = __fmul_rn(__fdiv_rn(e, sum), p.coefficient);
                gpu_put(p.to, dx, at, j == label ? __fsub_rn(g, p.coefficient) : g, &c);
            }
    }
    if (dx)
        c.give(counts);
}

/* ---- batch normalisation ---- */

struct gpu_batchnorm {
    gpu_format x, y; /* backward: of x, and of dy and dx apart */
    gpu_format dx;
    gpu_format mean, inverse, weight, bias; /* backward: of dweight and dbias apart */
    gpu_format dweight, dbias;
    size_t rows, channels;
    float n, n_less_one, eps, momentum;
};

/* Numbers of a channel that the elements need; unrounded. */
struct gpu_channel {
    float *mean, *inverse; /* backward: dbias / n and dweight / n */
};

static __device__ __forceinline__ float batchnorm_inverse(float var, float eps)
{
    return __fdiv_rn(1, __fsqrt_rn(__fadd_rn(var, eps)));
}

static __device__ __forceinline__ float batchnorm_running(float running, float momentum, float value)
{
    return __fadd_rn(__fmul_rn(__fsub_rn(1, momentum), running), __fmul_rn(momentum, value));
}

GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS)
    batchnorm_statistics_kernel(GPU_CONSTANT(gpu_batchnorm) b, GPU_CONSTANT(gpu_channel) to, void *mean_codes,
                                void *inverse_codes, float *running_mean, float *running_var, const void *x)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < b.channels;
    const float sum = gpu_column_sum(b.rows, inside, tree,
                                     [&](size_t row) { return gpu_value(b.x, x, row * b.channels + c); });
    const float mean = __fdiv_rn(sum, b.n);
    const float squares = gpu_column_sum(b.rows, inside, tree, [&](size_t row) {
        const float d = __fsub_rn(gpu_value(b.x, x, row * b.channels + c), mean);
        return __fmul_rn(d, d);
    });
    if (!inside || threadIdx.y != 0)
        return;
    const float var = __fdiv_rn(squares, b.n);
    const float inverse = batchnorm_inverse(var, b.eps);
    to.mean[c] = mean;
    to.inverse[c] = inverse;
    gpu_store(b.mean, mean_codes, c, gpu_encode(b.mean, GPU_NEAREST, mean).code);
    gpu_store(b.inverse, inverse_codes, c, gpu_encode(b.inverse, GPU_NEAREST, inverse).code);
    if (running_mean) {
        const float unbiased = __fdiv_rn(squares, b.n_less_one);
        running_mean[c] = batchnorm_running(running_mean[c], b.momentum, mean);
        running_var[c] = batchnorm_running(running_var[c], b.momentum, unbiased);
    }
}

GPU_KERNEL void __launch_bounds__(256)
    batchnorm_apply_kernel(GPU_CONSTANT(gpu_batchnorm) b, GPU_CONSTANT(gpu_channel) of, void *y, const void *x,
                           const void *weight, const void *bias, gpu_word *counts)
{
    gpu_counter counter;
    GPU_FOR(i, b.rows * b.channels)
    {
        const size_t c = i % b.channels;
        const float h = __fmul_rn(__fsub_rn(gpu_value(b.x, x, i), of.mean[c]), of.inverse[c]);
        gpu_put(b.y, y, i, __fadd_rn(__fmul_rn(h, gpu_value(b.weight, weight, c)), gpu_value(b.bias, bias, c)),
                &counter);
    }
    counter.give(counts);
}

/* 1 / sqrt(running_var + eps), and the running mean, as the elements need them */
GPU_KERNEL void __launch_bounds__(256)
    batchnorm_running_kernel(GPU_CONSTANT(gpu_batchnorm) b, GPU_CONSTANT(gpu_channel) to, const void *running_mean,
                             const void *running_var)
{
    GPU_FOR(c, b.channels)
    {
        to.mean[c] = gpu_value(b.mean, running_mean, c);
        to.inverse[c] = batchnorm_inverse(gpu_value(b.inverse, running_var, c), b.eps);
    }
}

GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS)
    batchnorm_gradients_kernel(GPU_CONSTANT(gpu_batchnorm) b, GPU_CONSTANT(gpu_channel) to, void *dweight, void *dbias,
                               const void *dy, const void *x, const void *mean_codes, const void *inverse_codes)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < b.channels;
    const float mean = inside ? gpu_value(b.mean, mean_codes, c) : 0;
    const float inverse = inside ? gpu_value(b.inverse, inverse_codes, c) : 0;
    const float sum = gpu_column_sum(b.rows, inside, tree,
                                     [&](size_t row) { return gpu_value(b.y, dy, row * b.channels + c); });
    const float products = gpu_column_sum(b.rows, inside, tree, [&](size_t row) {
        const size_t i = row * b.channels + c;
        const float h = __fmul_rn(__fsub_rn(gpu_value(b.x, x, i), mean), inverse);
        return __fmul_rn(gpu_value(b.y, dy, i), h);
    });
    if (!inside || threadIdx.y != 0)
        return;
    gpu_store(b.dbias, dbias, c, gpu_encode(b.dbias, GPU_NEAREST, sum).code);
    gpu_store(b.dweight, dweight, c, gpu_encode(b.dweight, GPU_NEAREST, products).code);
    to.mean[c] = __fdiv_rn(sum, b.n);
    to.inverse[c] = __fdiv_rn(products, b.n);
}

GPU_KERNEL void __launch_bounds__(256)
    batchnorm_backward_kernel(GPU_CONSTANT(gpu_batchnorm) b, GPU_CONSTANT(gpu_channel) of, void *dx, const void *dy,
                              const void *x, const void *mean_codes, const void *inverse_codes, const void *weight,
                              gpu_word *counts)
{
    gpu_counter counter;
    GPU_FOR(i, b.rows * b.channels)
    {
        const size_t c = i % b.channels;
        const float inverse = gpu_value(b.inverse, inverse_codes, c);
        const float mean = gpu_value(b.mean, mean_codes, c);
        const float factor = __fmul_rn(gpu_value(b.weight, weight, c), inverse);
        const float h = __fmul_rn(__fsub_rn(gpu_value(b.x, x, i), mean), inverse);
        const float centred = __fsub_rn(gpu_value(b.y, dy, i), of.mean[c]);
        gpu_put(b.dx, dx, i, __fmul_rn(factor, __fsub_rn(centred, __fmul_rn(h, of.inverse[c]))), &counter);
    }
    counter.give(counts);
}
