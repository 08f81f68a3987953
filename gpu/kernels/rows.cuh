/* rows.cuh -- rows of transformers: normalisation, activations. mpsim/transformer.h in parallel; the elements are
 * those of lib/layer/transformer.h, the trees of sums those of mpsim_sum_lanes: a warp has a row. */
#pragma once

#include "codes.cuh"
#include "sums.cuh"

#include "../../lib/layer/transformer.h"

#include <mpsim/transformer.h>

enum { GPU_ROW_THREADS = 128, GPU_ROW_WARPS = GPU_ROW_THREADS / 32 };

/* ---- rounding to the format of the arithmetic, whose kind a compiler knows ---- */

template <int KIND>
static __device__ __forceinline__ mpsim_math gpu_math(const gpu_format &f)
{
    mpsim_math m;
    m.kind = KIND;
    m.shift = f.math.shift;
    m.min_normal = f.math.min_normal;
    m.max = f.math.max;
    m.beyond = f.math.beyond;
    m.subnormal = f.math.subnormal;
    return m;
}

/* Of binary32 alone. */
static __device__ __forceinline__ mpsim_math gpu_math_binary32()
{
    mpsim_math m;
    m.kind = MPSIM_MATH_BINARY32;
    return m;
}

/* A kernel<KIND> with its arguments; f: a format of the device, not of kind REFERENCE. */
#define GPU_LAUNCH_BY_MATH(f, kernel, blocks, threads, ...)                             \
    do {                                                                                \
        if ((f).math.kind == MPSIM_MATH_BINARY32)                                       \
            GPU_LAUNCH((kernel<MPSIM_MATH_BINARY32>), blocks, threads, 0, __VA_ARGS__); \
        else                                                                            \
            GPU_LAUNCH((kernel<MPSIM_MATH_BITS>), blocks, threads, 0, __VA_ARGS__);     \
    } while (0)

static __device__ __forceinline__ float gpu_take(const mpsim_math *m, const gpu_format &f, const void *x, size_t i)
{
    return mpsim_math_round(m, gpu_value(f, x, i));
}

/* ---- rows ---- */

/* A loop of a warp over rows: all lanes come to its collectives. */
#define GPU_FOR_ROWS(row, rows)                                                            \
    for (size_t row = (size_t)blockIdx.x * GPU_ROW_WARPS + threadIdx.x / 32; row < (rows); \
         row += (size_t)gridDim.x * GPU_ROW_WARPS)

/* f(i) for i < n, the numbers of a row that a warp goes through more than once: each time computed again. */
template <class F>
struct gpu_row {
    F f;
    size_t n;

    __device__ __forceinline__ gpu_row(size_t count, F of) : f(of), n(count)
    {
    }
    /* g(i, f(i)) for the i of this lane, ascending; for those below `end`, which may be beyond n, g(i, 0). */
    template <class G>
    __device__ __forceinline__ void each(size_t end, G g) const
    {
        for (size_t i = threadIdx.x % 32; i < end; i += 32)
            g(i, i < n ? f(i) : 0.0f);
    }
    /* h(i, f(i)) of the same. */
    template <class H>
    __device__ __forceinline__ auto map(H h) const
    {
        const gpu_row &self = *this;
        const auto of = [&self, h](size_t i) { return h(i, self.f(i)); };
        return gpu_row<decltype(of)>(n, of);
    }
};

template <class F>
static __device__ __forceinline__ gpu_row<F> gpu_row_of(size_t n, F f)
{
    return gpu_row<F>(n, f);
}

/* The sum of a row in 32 lanes, in every lane of the warp. */
template <class F>
static __device__ __forceinline__ float gpu_row_sum(const mpsim_math *m, const gpu_row<F> &x)
{
    float s = 0;
    x.each(x.n, [&](size_t, float v) { s = mpsim_math_add(m, s, v); });
    for (unsigned h = 16; h > 0; h /= 2)
        s = mpsim_math_add(m, s, __shfl_down_sync(0xffffffffu, s, h));
    return __shfl_sync(0xffffffffu, s, 0);
}

/* The largest of `first` and a row, in every lane; NaN if one is NaN. */
template <class F>
static __device__ __forceinline__ float gpu_row_max(float first, const gpu_row<F> &x)
{
    float most = first;
    x.each(x.n, [&](size_t, float v) { most = mpsim_softmax_max(most, v); });
    for (int h = 16; h > 0; h /= 2)
        most = mpsim_softmax_max(most, __shfl_xor_sync(0xffffffffu, most, h));
    return most;
}

/* ---- normalisation ---- */

struct gpu_rownorm {
    gpu_format math, x, y; /* backward: of x, and of dy and dx apart */
    gpu_format dx, weight, bias;
    gpu_format dweight, dbias;
    size_t rows, cols;
    int layer;    /* LayerNorm, else RMSNorm */
    float n, eps; /* rounded to math */
};

template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    rownorm_kernel(GPU_CONSTANT(gpu_rownorm) r, void *y, float *mean, float *inverse, const void *x, const void *weight,
                   const void *bias, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(r.math), *const m = &math;
    const size_t n = r.cols;
    gpu_counter counter;
    GPU_FOR_ROWS(row, r.rows)
    {
        const size_t first = row * n;
        const auto all = gpu_row_of(n, [&](size_t c) { return gpu_take(m, r.x, x, first + c); });
        float centre = 0;
        if (r.layer)
            centre = mpsim_math_div(m, gpu_row_sum(m, all), r.n);
        const auto squares = all.map([&](size_t, float v) { return mpsim_batchnorm_square(m, v, centre); });
        const float var = mpsim_math_div(m, gpu_row_sum(m, squares), r.n);
        const float factor = mpsim_batchnorm_inverse(m, var, r.eps);
        if (threadIdx.x % 32 == 0) {
            mean[row] = centre;
            inverse[row] = factor;
        }
        all.each(n, [&](size_t c, float of) {
            const float h = mpsim_batchnorm_normal(m, of, centre, factor);
            float v = mpsim_rownorm_y(m, h, gpu_take(m, r.weight, weight, c));
            if (bias)
                v = mpsim_math_add(m, v, gpu_take(m, r.bias, bias, c));
            gpu_put(r.y, y, first + c, v, &counter);
        });
    }
    counter.give(counts);
}

/* What the backward pass reads. */
struct gpu_rownorm_in {
    const void *dy, *x, *weight;
    const float *mean, *inverse;
};

static __device__ __forceinline__ float rownorm_h(const mpsim_math *m, const gpu_rownorm &r, const gpu_rownorm_in &in,
                                                  size_t row, size_t c, float mean, float inverse)
{
    return mpsim_batchnorm_normal(m, gpu_take(m, r.x, in.x, row * r.cols + c), mean, inverse);
}

/* A term of dweight, or of dbias; calls, since a sum over columns has 32 of them in a row. */
template <int KIND>
static __device__ GPU_NOINLINE float rownorm_term(const gpu_rownorm &r, const gpu_rownorm_in &in, size_t row, size_t c,
                                                  int of_weight)
{
    const mpsim_math math = gpu_math<KIND>(r.math), *const m = &math;
    const float dy = gpu_take(m, r.y, in.dy, row * r.cols + c);
    if (!of_weight)
        return dy;
    const float mean = r.layer ? mpsim_math_round(m, in.mean[row]) : 0.0f;
    const float inverse = mpsim_math_round(m, in.inverse[row]);
    return mpsim_math_mul(m, dy, rownorm_h(m, r, in, row, c, mean, inverse));
}

template <int KIND>
static __device__ GPU_NOINLINE float rownorm_add(const gpu_rownorm &r, float a, float b)
{
    const mpsim_math math = gpu_math<KIND>(r.math);
    return mpsim_math_add(&math, a, b);
}

/* One of a list, of which gpu_rownorm says what they have in common. */
struct gpu_normed {
    gpu_rownorm_in in;
    void *dweight, *dbias;
};

typedef gpu_list<gpu_normed, 40> gpu_normed_list;
static_assert(sizeof(gpu_normed_list) + sizeof(gpu_rownorm) <= GPU_LIST_PARAMETERS, "too many");

/* A block has GPU_COLUMNS columns of all rows: first of dweight, then of dbias. */
template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_COLUMNS *GPU_COLUMN_ROWS)
    rownorm_gradients_kernel(GPU_CONSTANT(gpu_rownorm) r, GPU_CONSTANT(gpu_normed_list) list)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    const unsigned k = gpu_list_item(list);
    const gpu_normed &p = list.item[k];
    const size_t c = (size_t)gpu_list_block(list, k) * GPU_COLUMNS + threadIdx.x;
    const int inside = c < r.cols;
#pragma unroll 1
    for (int of_weight = 1; of_weight >= (p.dbias ? 0 : 1); of_weight--) {
        const float sum = gpu_column_sum(
            r.rows, inside, tree, [&](float a, float b) { return rownorm_add<KIND>(r, a, b); },
            [&](size_t row) { return rownorm_term<KIND>(r, p.in, row, c, of_weight); });
        const gpu_format &to = of_weight ? r.dweight : r.dbias;
        if (inside && threadIdx.y == 0)
            gpu_store(to, of_weight ? p.dweight : p.dbias, c, gpu_encode(to, GPU_NEAREST, sum).code);
    }
}

template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    rownorm_backward_kernel(GPU_CONSTANT(gpu_rownorm) r, GPU_CONSTANT(gpu_rownorm_in) in, void *dx, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(r.math), *const m = &math;
    gpu_counter counter;
    GPU_FOR_ROWS(row, r.rows)
    {
        const float mean = r.layer ? mpsim_math_round(m, in.mean[row]) : 0.0f;
        const float inverse = mpsim_math_round(m, in.inverse[row]);
        const auto g = gpu_row_of(r.cols, [&](size_t c) {
            return mpsim_math_mul(m, gpu_take(m, r.y, in.dy, row * r.cols + c), gpu_take(m, r.weight, in.weight, c));
        });
        const auto h = gpu_row_of(r.cols, [&](size_t c) { return rownorm_h(m, r, in, row, c, mean, inverse); });
        float a = 0;
        if (r.layer)
            a = mpsim_math_div(m, gpu_row_sum(m, g), r.n);
        const auto products = g.map([&](size_t c, float of) { return mpsim_math_mul(m, of, h.f(c)); });
        const float b = mpsim_math_div(m, gpu_row_sum(m, products), r.n);
        g.each(r.cols, [&](size_t c, float of) {
            gpu_put(r.dx, dx, row * r.cols + c, mpsim_batchnorm_dx(m, of, h.f(c), inverse, a, b), &counter);
        });
    }
    counter.give(counts);
}

/* ---- activations ---- */

struct gpu_activation {
    gpu_format math, x, y; /* backward: of x, and of dy and dx apart */
    gpu_format dx;
    mpsim_gelu gelu;
    int kind;       /* mpsim_activation */
    size_t n, cols; /* elements and columns of y */
};

template <int KIND>
GPU_KERNEL void __launch_bounds__(256)
    activate_kernel(GPU_CONSTANT(gpu_activation) a, void *y, const void *x, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(a.math), *const m = &math;
    gpu_counter counter;
    GPU_FOR(i, a.n)
    {
        const size_t row = i / a.cols;
        const float v = gpu_take(m, a.x, x, a.kind == MPSIM_SWIGLU ? i + row * a.cols : i);
        float to;
        if (a.kind == MPSIM_SWIGLU)
            to = mpsim_swiglu_y(m, v, gpu_take(m, a.x, x, i + (row + 1) * a.cols), mpsim_swiglu_s(m, v));
        else
            to = mpsim_gelu_y(
                m, v, a.kind == MPSIM_GELU ? mpsim_gelu_erf_t(m, &a.gelu, v) : mpsim_gelu_tanh_t(m, &a.gelu, v));
        gpu_put(a.y, y, i, to, &counter);
    }
    counter.give(counts);
}

template <int KIND>
GPU_KERNEL void __launch_bounds__(256)
    activate_backward_kernel(GPU_CONSTANT(gpu_activation) a, void *dx, const void *dy, const void *x, gpu_word *counts)
{
    const mpsim_math math = gpu_math<KIND>(a.math), *const m = &math;
    gpu_counter counter;
    GPU_FOR(i, a.n)
    {
        const float d = gpu_take(m, a.y, dy, i);
        if (a.kind == MPSIM_SWIGLU) {
            const size_t gate = i + i / a.cols * a.cols, value = gate + a.cols;
            const float g = gpu_take(m, a.x, x, gate), v = gpu_take(m, a.x, x, value);
            const float s = mpsim_swiglu_s(m, g);
            gpu_put(a.dx, dx, gate, mpsim_swiglu_dgate(m, d, g, v, s), &counter);
            gpu_put(a.dx, dx, value, mpsim_swiglu_dvalue(m, d, g, s), &counter);
            continue;
        }
        const float v = gpu_take(m, a.x, x, i);
        gpu_put(a.dx, dx, i,
                a.kind == MPSIM_GELU ? mpsim_gelu_erf_dx(m, &a.gelu, d, v, mpsim_gelu_erf_t(m, &a.gelu, v))
                                     : mpsim_gelu_tanh_dx(m, &a.gelu, d, v, mpsim_gelu_tanh_t(m, &a.gelu, v)),
                &counter);
    }
    counter.give(counts);
}
