/* between.cuh -- the kernels of mpsim_cuda_between: the elements of lib/layer/transformer.h and scalar.h on arrays with strides, in
 * binary32. A warp has a row of a sum over columns, a block 32 columns of a sum over rows; the trees are those of mpsim_sum_lanes. */
#pragma once

#include "../kernels/rows.cuh"

#include <mpsim/between.h>

namespace library
{

enum { BETWEEN_ARRAYS = 8, BETWEEN_THREADS = 256 };

struct between_array {
    void *data; /* or NULL */
    gpu_format format;
    int64_t stride[MPSIM_BETWEEN_DIMS];
    int rounds; /* to `to` first */
};

struct between_job {
    int dims, activation, layer, added, ignores;
    size_t shape[MPSIM_BETWEEN_DIMS];
    size_t rows, cols, length, entries;
    float eps, momentum, scale;
    const int64_t *index;
    int64_t ignored;
    unsigned long long *found;
    float *scratch[2]; /* a number a column each */
    gpu_format to;
    between_array x[BETWEEN_ARRAYS];
};

/* ---- arrays ---- */

/* Where row `row` begins. */
static __device__ GPU_NOINLINE int64_t between_row(const between_job &o, const between_array &a, size_t row)
{
    int64_t at = 0;
    for (int d = o.dims - 1; d-- > 0; row /= o.shape[d])
        at += (int64_t)(row % o.shape[d]) * a.stride[d];
    return at;
}

/* Codes but those of binary32: calls, since kernels have many of them. */
static __device__ GPU_NOINLINE float between_decode(const between_array &a, int64_t at)
{
    return gpu_value(a.format, a.data, (size_t)at);
}

static __device__ GPU_NOINLINE void between_encode(const gpu_format &to, const between_array &a, int64_t at, float v)
{
    gpu_store(a.format, a.data, (size_t)at, gpu_encode(a.format, GPU_NEAREST, a.rounds ? gpu_hold(to, v) : v).code);
}

/* An array, one of its rows, or its only row. */
struct between_line {
    const between_array *a;
    int64_t at, step;

    __device__ __forceinline__ float operator[](size_t c) const
    {
        const int64_t i = at + (int64_t)c * step;
        return a->format.kind == GPU_BINARY32 ? static_cast<const float *>(a->data)[i] : between_decode(*a, i);
    }
};

static __device__ __forceinline__ between_line between_line_of(const between_job &o, int k, size_t row)
{
    const between_array &a = o.x[k];
    const between_line l = {&a, a.data ? between_row(o, a, row) : 0, a.stride[o.dims - 1]};
    return l;
}

static __device__ __forceinline__ between_line between_columns(const between_job &o, int k)
{
    const between_line l = {&o.x[k], 0, o.x[k].stride[o.dims - 1]};
    return l;
}

/* Row k of a table. */
static __device__ __forceinline__ between_line between_entry(const between_job &o, int k, int64_t entry)
{
    const between_line l = {&o.x[k], entry * o.x[k].stride[0], o.x[k].stride[o.dims - 1]};
    return l;
}

static __device__ __forceinline__ void between_put(const between_job &o, const between_line &l, size_t c, float v)
{
    const between_array &a = *l.a;
    const int64_t i = l.at + (int64_t)c * l.step;
    if (!a.data)
        return;
    if (a.format.kind == GPU_BINARY32 && !a.rounds)
        static_cast<float *>(a.data)[i] = v;
    else
        between_encode(o.to, a, i, v);
}

/* A number of each row. */
static __device__ __forceinline__ float between_scalar(const between_job &o, int k, size_t row)
{
    const between_line l = {&o.x[k], o.x[k].data ? between_row(o, o.x[k], row) : 0, 0};
    return o.x[k].data ? l[0] : 0.0f;
}

static __device__ __forceinline__ void between_put_scalar(const between_job &o, int k, size_t row, float v)
{
    const between_line l = {&o.x[k], o.x[k].data ? between_row(o, o.x[k], row) : 0, 0};
    between_put(o, l, 0, v);
}

static __device__ __forceinline__ float between_or(const between_line &l, size_t c, float missing)
{
    return l.a->data ? l[c] : missing;
}

static __device__ GPU_NOINLINE float between_exp(float x)
{
    return mpsim_exp_f32(x);
}

static __device__ __forceinline__ float between_nan()
{
    return __uint_as_float(0x7fc00000u);
}

/* An element of the whole shape. */
#define BETWEEN_FOR_ELEMENTS(o, row, c)    \
    GPU_FOR(between_i, (o).rows *(o).cols) \
    if (const size_t row = between_i / (o).cols, c = between_i % (o).cols; true)

/* ---- normalisation of rows: x [weight] [bias] -> y [mean] [inverse] ---- */

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS) between_norm_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const float n = (float)o.cols;
    const between_line weight = between_columns(o, 1), bias = between_columns(o, 2);
    GPU_FOR_ROWS(row, o.rows)
    {
        const between_line x = between_line_of(o, 0, row), y = between_line_of(o, 3, row);
        const auto all = gpu_row_of(o.cols, [&](size_t c) { return x[c]; });
        const float centre = o.layer ? mpsim_math_div(m, gpu_row_sum(m, all), n) : 0.0f;
        const auto squares = gpu_row_of(o.cols, [&](size_t c) { return mpsim_batchnorm_square(m, x[c], centre); });
        const float var = mpsim_math_div(m, gpu_row_sum(m, squares), n);
        const float factor = mpsim_batchnorm_inverse(m, var, o.eps);
        if (threadIdx.x % 32 == 0) {
            between_put_scalar(o, 4, row, centre);
            between_put_scalar(o, 5, row, factor);
        }
        all.each(o.cols, [&](size_t c, float of) {
            const float h = mpsim_batchnorm_normal(m, of, centre, factor);
            const float v = mpsim_rownorm_y(m, h, between_or(weight, c, 1.0f));
            between_put(o, y, c, bias.a->data ? mpsim_math_add(m, v, bias[c]) : v);
        });
    }
}

/* dy x [mean] inverse [weight] -> dx */
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS) between_norm_back_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const float n = (float)o.cols;
    const between_line weight = between_columns(o, 4);
    GPU_FOR_ROWS(row, o.rows)
    {
        const between_line dy = between_line_of(o, 0, row), x = between_line_of(o, 1, row),
                           dx = between_line_of(o, 5, row);
        const float mean = o.layer ? between_scalar(o, 2, row) : 0.0f, inverse = between_scalar(o, 3, row);
        const auto g = gpu_row_of(o.cols,
                                  [&](size_t c) { return mpsim_math_mul(m, dy[c], between_or(weight, c, 1.0f)); });
        const auto h = [&](size_t c) { return mpsim_batchnorm_normal(m, x[c], mean, inverse); };
        const float a = o.layer ? mpsim_math_div(m, gpu_row_sum(m, g), n) : 0.0f;
        const auto products = gpu_row_of(o.cols, [&](size_t c) { return mpsim_math_mul(m, g.f(c), h(c)); });
        const float b = mpsim_math_div(m, gpu_row_sum(m, products), n);
        g.each(o.cols,
               [&](size_t c, float of) { between_put(o, dx, c, mpsim_batchnorm_dx(m, of, h(c), inverse, a, b)); });
    }
}

/* ---- softmax: s [mask] -> p; dp p [mask] -> ds ---- */

/* How many columns a row may see. */
static __device__ __forceinline__ size_t between_seen(const between_job &o, size_t row)
{
    if (o.length == 0)
        return o.cols;
    const size_t seen = row % o.length + 1 + o.cols, n = seen > o.length ? seen - o.length : 0;
    return n < o.cols ? n : o.cols;
}

/* The columns of a row that are seen. */
struct between_sight {
    const unsigned char *mask; /* or NULL */
    int64_t step;
    size_t n;
    __device__ __forceinline__ int operator()(size_t c) const
    {
        return c < n && (!mask || mask[(int64_t)c * step]);
    }
};

static __device__ __forceinline__ between_sight between_sight_of(const between_job &o, int k, size_t row)
{
    const between_array &a = o.x[k];
    const between_sight s = {a.data ? static_cast<const unsigned char *>(a.data) + between_row(o, a, row) : nullptr,
                             a.stride[o.dims - 1], between_seen(o, row)};
    return s;
}

/* The zero that mpsim_log_softmax subtracts, where the largest score is one: mpsim_softmax_zero. */
static __device__ float between_zero(const between_sight &sees, const between_line &s, float scale)
{
    enum { ABREAST = 16 };
    const size_t whole = sees.n - sees.n % ABREAST;
    for (size_t i = 0; i < sees.n; i++) {
        const size_t lane = i * ABREAST / (whole ? whole : (size_t)ABREAST);
        const size_t c = i < whole ? i % (whole / ABREAST) * ABREAST + lane : i;
        const float x = mpsim_f32_mul(scale, s[c]);
        if (x == 0 && sees(c))
            return x;
    }
    return 0.0f;
}

template <int LOG>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS) between_softmax_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const float none = __uint_as_float(0xff800000u);
    GPU_FOR_ROWS(row, o.rows)
    {
        const between_line s = between_line_of(o, 0, row), p = between_line_of(o, 2, row);
        const between_sight sees = between_sight_of(o, 1, row);
        const auto x = gpu_row_of(sees.n, [&](size_t c) { return sees(c) ? mpsim_causal_x(m, o.scale, s[c]) : none; });
        float most = gpu_row_max(none, x);
        if (LOG && most == 0)
            most = between_zero(sees, s, o.scale);
        const auto e = gpu_row_of(sees.n,
                                  [&](size_t c) { return sees(c) ? between_exp(mpsim_f32_sub(x.f(c), most)) : 0.0f; });
        const float z = gpu_row_sum(m, e), log_z = LOG ? mpsim_log_f32(z) : 0.0f;
        for (size_t c = threadIdx.x % 32; c < o.cols; c += 32) {
            float y = LOG ? none : 0.0f;
            if (sees(c))
                y = LOG ? mpsim_softmax_log(m, mpsim_math_sub(m, x.f(c), most), log_z) : mpsim_causal_p(m, e.f(c), z);
            between_put(o, p, c, y);
        }
    }
}

template <int LOG>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS) between_softmax_back_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR_ROWS(row, o.rows)
    {
        const between_line dp = between_line_of(o, 0, row), p = between_line_of(o, 1, row),
                           ds = between_line_of(o, 3, row);
        const between_sight sees = between_sight_of(o, 2, row);
        const auto terms = gpu_row_of(sees.n, [&](size_t c) {
            return !sees(c) ? 0.0f : LOG ? dp[c] : mpsim_causal_term(m, p[c], dp[c]);
        });
        const float d = gpu_row_sum(m, terms);
        for (size_t c = threadIdx.x % 32; c < o.cols; c += 32) {
            float v = 0.0f;
            if (sees(c))
                v = LOG ? mpsim_softmax_log_ds(m, between_exp(p[c]), dp[c], d, o.scale)
                        : mpsim_causal_ds(m, p[c], dp[c], d, o.scale);
            between_put(o, ds, c, v);
        }
    }
}

/* ---- cross-entropy: x -> [loss] [dx] ---- */

static __device__ __forceinline__ int between_is_ignored(const between_job &o, int64_t index)
{
    return o.ignores && index == o.ignored;
}

static __device__ __forceinline__ int between_is_entry(int64_t index, size_t entries)
{
    return index >= 0 && (uint64_t)index < entries;
}

/* A row without a label: of an ignored one all is 0. */
static __device__ void between_no_row(const between_job &o, size_t row, const between_line &dx, float v)
{
    if (threadIdx.x % 32 == 0)
        between_put_scalar(o, 1, row, v);
    for (size_t c = threadIdx.x % 32; c < o.cols; c += 32)
        between_put(o, dx, c, v);
}

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS) between_loss_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR_ROWS(row, o.rows)
    {
        const between_line x = between_line_of(o, 0, row), dx = between_line_of(o, 2, row);
        const int64_t label = o.index[row];
        if (between_is_ignored(o, label) || !between_is_entry(label, o.cols)) {
            between_no_row(o, row, dx, between_is_ignored(o, label) ? 0.0f : between_nan());
            continue;
        }
        const auto all = gpu_row_of(o.cols, [&](size_t c) { return x[c]; });
        const float most = gpu_row_max(__uint_as_float(0xff800000u), all);
        const auto e = gpu_row_of(o.cols, [&](size_t c) { return between_exp(mpsim_f32_sub(x[c], most)); });
        const float sum = gpu_row_sum(m, e), logit = x[(size_t)label];
        const auto before = gpu_row_of((size_t)label, [&](size_t c) { return x[c] == most ? 1.0f : 0.0f; });
        const int hit = logit == most && gpu_row_sum(m, before) == 0;
        if (threadIdx.x % 32 == 0) {
            between_put_scalar(o, 1, row, mpsim_softmax_loss(m, sum, logit, most));
            if (o.found) {
                atomicAdd(o.found, (unsigned long long)hit);
                atomicAdd(o.found + 1, 1ull);
            }
        }
        __syncwarp(); /* all have read the row, which dx may be */
        for (size_t c = threadIdx.x % 32; dx.a->data && c < o.cols; c += 32)
            between_put(o, dx, c, mpsim_softmax_gradient(m, e.f(c), sum, o.scale, c == (size_t)label));
    }
}

/* ---- sums over rows ---- */

/* dy x [mean] inverse -> [dweight] [dbias], of norms */
GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS) between_gradients_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < o.cols;
    for (int of_bias = 0; of_bias < 2; of_bias++) {
        const float sum = gpu_column_sum(o.rows, inside, tree, [&](size_t row) {
            const float dy = between_line_of(o, 0, row)[c];
            const float mean = o.layer ? between_scalar(o, 2, row) : 0.0f;
            return of_bias ? dy
                           : mpsim_math_mul(m, dy,
                                            mpsim_batchnorm_normal(m, between_line_of(o, 1, row)[c], mean,
                                                                   between_scalar(o, 3, row)));
        });
        if (inside && threadIdx.y == 0)
            between_put(o, between_columns(o, of_bias ? 5 : 4), c, sum);
    }
}

/* x -> sums */
GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS) between_columns_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < o.cols;
    const float sum = gpu_column_sum(o.rows, inside, tree, [&](size_t row) { return between_line_of(o, 0, row)[c]; });
    if (inside && threadIdx.y == 0)
        between_put(o, between_columns(o, 1), c, sum);
}

/* x -> sums: sums[t] of rows t, t + period, ... */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_period_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_FOR(i, o.entries * o.cols)
    {
        const size_t t = i / o.cols, c = i % o.cols;
        const between_line to = between_entry(o, 1, (int64_t)t);
        float s = o.added ? to[c] : 0.0f;
        for (size_t row = t; row < o.rows; row += o.entries)
            s = __fadd_rn(s, between_line_of(o, 0, row)[c]);
        between_put(o, to, c, s);
    }
}

/* ---- batch normalisation: a channel is a column ---- */

/* x [weight] [bias] -> y [mean] [inverse] [running_mean] [running_var]: all but y */
GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS) between_channels_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < o.cols;
    const float n = (float)o.rows;
    const float sum = gpu_column_sum(o.rows, inside, tree, [&](size_t row) { return between_line_of(o, 0, row)[c]; });
    const float mean = mpsim_math_div(m, sum, n);
    const float squares = gpu_column_sum(o.rows, inside, tree, [&](size_t row) {
        return mpsim_batchnorm_square(m, between_line_of(o, 0, row)[c], mean);
    });
    if (!inside || threadIdx.y != 0)
        return;
    const float inverse = mpsim_batchnorm_inverse(m, mpsim_math_div(m, squares, n), o.eps);
    o.scratch[0][c] = mean;
    o.scratch[1][c] = inverse;
    between_put(o, between_columns(o, 4), c, mean);
    between_put(o, between_columns(o, 5), c, inverse);
    if (!o.x[6].data)
        return;
    const between_line means = between_columns(o, 6), vars = between_columns(o, 7);
    const float unbiased = mpsim_f32_div(squares, (float)(o.rows - 1));
    between_put(o, means, c, mpsim_batchnorm_running(means[c], o.momentum, mean));
    between_put(o, vars, c, mpsim_batchnorm_running(vars[c], o.momentum, unbiased));
}

static __device__ __forceinline__ float between_channel_y(const between_job &o, float x, float mean, float inverse,
                                                          int weight, int bias, size_t c)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    return mpsim_batchnorm_y(m, mpsim_batchnorm_normal(m, x, mean, inverse),
                             between_or(between_columns(o, weight), c, 1.0f),
                             between_or(between_columns(o, bias), c, 0.0f));
}

GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_channels_y_kernel(GPU_CONSTANT(between_job) o)
{
    BETWEEN_FOR_ELEMENTS(o, row, c)
    between_put(o, between_line_of(o, 3, row), c,
                between_channel_y(o, between_line_of(o, 0, row)[c], o.scratch[0][c], o.scratch[1][c], 1, 2, c));
}

/* x running_mean running_var [weight] [bias] -> y */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_inference_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    BETWEEN_FOR_ELEMENTS(o, row, c)
    between_put(o, between_line_of(o, 5, row), c,
                between_channel_y(o, between_line_of(o, 0, row)[c], between_columns(o, 1)[c],
                                  mpsim_batchnorm_inverse(m, between_columns(o, 2)[c], o.eps), 3, 4, c));
}

/* dy x mean inverse [weight] -> [dx] [dweight] [dbias]: all but dx */
GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS)
    between_channels_back_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const size_t c = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = c < o.cols;
    const float n = (float)o.rows;
    const float mean = inside ? between_columns(o, 2)[c] : 0.0f, inverse = inside ? between_columns(o, 3)[c] : 0.0f;
    const float sum = gpu_column_sum(o.rows, inside, tree, [&](size_t row) { return between_line_of(o, 0, row)[c]; });
    const float products = gpu_column_sum(o.rows, inside, tree, [&](size_t row) {
        return mpsim_math_mul(m, between_line_of(o, 0, row)[c],
                              mpsim_batchnorm_normal(m, between_line_of(o, 1, row)[c], mean, inverse));
    });
    if (!inside || threadIdx.y != 0)
        return;
    between_put(o, between_columns(o, 6), c, products);
    between_put(o, between_columns(o, 7), c, sum);
    o.scratch[0][c] = mpsim_math_div(m, sum, n);
    o.scratch[1][c] = mpsim_math_div(m, products, n);
}

GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_channels_dx_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    BETWEEN_FOR_ELEMENTS(o, row, c)
    {
        const float inverse = between_columns(o, 3)[c];
        const float h = mpsim_batchnorm_normal(m, between_line_of(o, 1, row)[c], between_columns(o, 2)[c], inverse);
        const float factor = mpsim_math_mul(m, between_or(between_columns(o, 4), c, 1.0f), inverse);
        between_put(o, between_line_of(o, 5, row), c,
                    mpsim_batchnorm_dx(m, between_line_of(o, 0, row)[c], h, factor, o.scratch[0][c], o.scratch[1][c]));
    }
}

/* ---- elements ---- */

static __device__ GPU_NOINLINE float between_value(int kind, float x, float v)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    mpsim_gelu g;
    mpsim_gelu_set(&g, m);
    switch (kind) {
    case MPSIM_GELU_TANH:
        return mpsim_gelu_y(m, x, mpsim_gelu_tanh_t(m, &g, x));
    case MPSIM_GELU:
        return mpsim_gelu_y(m, x, mpsim_gelu_erf_t(m, &g, x));
    case MPSIM_SWIGLU:
        return mpsim_swiglu_y(m, x, v, mpsim_swiglu_s(m, x));
    case MPSIM_RELU:
        return x > 0 || x != x ? x : 0.0f;
    case MPSIM_SILU:
        return mpsim_silu_y(m, x, mpsim_swiglu_s(m, x));
    case MPSIM_SIGMOID:
        return mpsim_swiglu_s(m, x);
    case MPSIM_TANH:
        return mpsim_tanh_f32(x);
    default:
        return mpsim_exp_f32(x);
    }
}

/* x of ReLU, sigmoid, tanh and exp: the result. */
static __device__ GPU_NOINLINE float between_slope(int kind, float dy, float x, float v)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    mpsim_gelu g;
    mpsim_gelu_set(&g, m);
    switch (kind) {
    case MPSIM_GELU_TANH:
        return mpsim_gelu_tanh_dx(m, &g, dy, x, mpsim_gelu_tanh_t(m, &g, x));
    case MPSIM_GELU:
        return mpsim_gelu_erf_dx(m, &g, dy, x, mpsim_gelu_erf_t(m, &g, x));
    case MPSIM_SWIGLU:
        return mpsim_swiglu_dgate(m, dy, x, v, mpsim_swiglu_s(m, x));
    case MPSIM_RELU:
        return x > 0 ? dy : 0.0f;
    case MPSIM_SILU:
        return mpsim_silu_dx(m, dy, x, mpsim_swiglu_s(m, x));
    case MPSIM_SIGMOID:
        return mpsim_sigmoid_dx(m, dy, x);
    case MPSIM_TANH:
        return mpsim_tanh_dx(m, dy, x);
    default:
        return mpsim_exp_dx(m, dy, x);
    }
}

/* x [value] -> y */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_activate_kernel(GPU_CONSTANT(between_job) o)
{
    BETWEEN_FOR_ELEMENTS(o, row, c)
    between_put(
        o, between_line_of(o, 2, row), c,
        between_value(o.activation, between_line_of(o, 0, row)[c], between_or(between_line_of(o, 1, row), c, 0.0f)));
}

/* dy x [value] -> dx [dvalue] */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_activate_back_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    BETWEEN_FOR_ELEMENTS(o, row, c)
    {
        const float dy = between_line_of(o, 0, row)[c], x = between_line_of(o, 1, row)[c];
        const float v = between_or(between_line_of(o, 2, row), c, 0.0f);
        between_put(o, between_line_of(o, 3, row), c, between_slope(o.activation, dy, x, v));
        if (o.x[4].data)
            between_put(o, between_line_of(o, 4, row), c, mpsim_swiglu_dvalue(m, dy, x, mpsim_swiglu_s(m, x)));
    }
}

/* a b -> y */
template <int MULTIPLIES>
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_two_kernel(GPU_CONSTANT(between_job) o)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    BETWEEN_FOR_ELEMENTS(o, row, c)
    {
        const float a = between_line_of(o, 0, row)[c], b = between_line_of(o, 1, row)[c];
        between_put(o, between_line_of(o, 2, row), c, MULTIPLIES ? mpsim_math_mul(m, a, b) : mpsim_math_add(m, a, b));
    }
}

/* ---- tables ---- */

/* table -> y */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_embed_kernel(GPU_CONSTANT(between_job) o)
{
    BETWEEN_FOR_ELEMENTS(o, row, c)
    {
        const int64_t entry = o.index[row];
        between_put(o, between_line_of(o, 1, row), c,
                    between_is_entry(entry, o.entries) ? between_entry(o, 0, entry)[c] : between_nan());
    }
}

/* dtable = 0 */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_no_table_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_FOR(i, o.entries * o.cols)
    between_put(o, between_entry(o, 1, (int64_t)(i / o.cols)), i % o.cols, 0.0f);
}

/* dy -> dtable: a thread has a column, so that rows are added in their order. */
GPU_KERNEL void __launch_bounds__(BETWEEN_THREADS) between_embed_back_kernel(GPU_CONSTANT(between_job) o)
{
    GPU_FOR(c, o.cols)
    for (size_t row = 0; row < o.rows; row++) {
        const int64_t entry = o.index[row];
        if (between_is_ignored(o, entry) || !between_is_entry(entry, o.entries))
            continue;
        const between_line to = between_entry(o, 1, entry);
        between_put(o, to, c, __fadd_rn(to[c], between_line_of(o, 0, row)[c]));
    }
}

} // namespace library
