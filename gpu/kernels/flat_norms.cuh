/* flat_norms.cuh -- normalisation of rows as flat.cuh has them, in binary32: one pass over memory forward, one backward, one for
 * both gradients. The bits are those of rows.cuh. */
#pragma once

#include "flat.cuh"
#include "rows.cuh"

/* Forward: squares of a row less its centre are added. */
static __device__ __forceinline__ void flat_squares(const mpsim_math *m, const float v[8], float centre, float s[8])
{
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        s[t] = mpsim_math_add(m, s[t], mpsim_batchnorm_square(m, v[t], centre));
}

GPU_KERNEL void __launch_bounds__(GPU_FLAT_THREADS)
    flat_norm_kernel(GPU_CONSTANT(gpu_rownorm) r, void *y, float *mean, float *inverse, const void *x,
                     const void *weight, const void *bias, gpu_word *counts, int is_held)
{
    GPU_DYNAMIC_SHARED(gpu_words<4>, room);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const gpu_flat_out out(r.y);
    gpu_counter counter;
    GPU_FOR_FLAT_ROWS(of_warp, r.rows)
    {
        const gpu_flat_row row(of_warp, r.rows, r.cols);
        const gpu_flat_held in = {is_held ? room : nullptr, r.x, x, row.first};
        float s[8], centre = 0;
        gpu_flat_zero(s);
        row.each(
            row.eights, [&](unsigned e) { return in.load(e); },
            [&](unsigned e, const gpu_eight &c) {
                float v[8];
                in.hold(e, c);
                gpu_flat_values(r.x, c, v);
                if (!r.layer)
                    return flat_squares(m, v, 0, s);
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    s[t] = mpsim_math_add(m, s[t], v[t]);
            });
        if (r.layer) {
            centre = mpsim_math_div(m, gpu_flat_sum(s), r.n);
            gpu_flat_zero(s);
            row.each(row.eights, [&](unsigned e) {
                float v[8];
                in.again(e, v);
                flat_squares(m, v, centre, s);
            });
        }
        const float factor = mpsim_batchnorm_inverse(m, mpsim_math_div(m, gpu_flat_sum(s), r.n), r.eps);
        if (!row.is_inside)
            continue;
        if (row.q == 0) {
            mean[row.row] = centre;
            inverse[row.row] = factor;
        }
        row.each(row.eights, [&](unsigned e) {
            float v[8], w[8];
            in.again(e, v);
            gpu_flat_values(r.weight, gpu_flat_load(r.weight, weight, e), w);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                v[t] = mpsim_rownorm_y(m, mpsim_batchnorm_normal(m, v[t], centre, factor), w[t]);
            if (bias) {
                gpu_flat_values(r.bias, gpu_flat_load(r.bias, bias, e), w);
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    v[t] = mpsim_math_add(m, v[t], w[t]);
            }
            out.put(y, row.first + e, v, &counter);
        });
    }
    counter.give(counts);
}

/* ---- backward ---- */

/* Eight of dy and x. */
struct gpu_eights {
    gpu_eight dy, x;
};

/* g and h of eight elements. */
static __device__ __forceinline__ void flat_backward_terms(const mpsim_math *m, const float w[8], float mean,
                                                           float inverse, float g[8], float h[8])
{
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        g[t] = mpsim_math_mul(m, g[t], w[t]);
        h[t] = mpsim_batchnorm_normal(m, h[t], mean, inverse);
    }
}

GPU_KERNEL void __launch_bounds__(GPU_FLAT_THREADS)
    flat_norm_backward_kernel(GPU_CONSTANT(gpu_rownorm) r, GPU_CONSTANT(gpu_rownorm_in) in, void *dx, gpu_word *counts,
                              unsigned of_x) /* where x is held, in 16 bytes; 0: nowhere */
{
    GPU_DYNAMIC_SHARED(gpu_words<4>, room);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const gpu_flat_out out(r.dx);
    gpu_counter counter;
    GPU_FOR_FLAT_ROWS(of_warp, r.rows)
    {
        const gpu_flat_row row(of_warp, r.rows, r.cols);
        const gpu_flat_held dy = {of_x ? room : nullptr, r.y, in.dy, row.first};
        const gpu_flat_held x = {of_x ? room + of_x : nullptr, r.x, in.x, row.first};
        const float mean = r.layer ? in.mean[row.row] : 0.0f, inverse = in.inverse[row.row];
        float sums[8], products[8], g[8], h[8], w[8];
        gpu_flat_zero(sums);
        gpu_flat_zero(products);
        row.each(
            row.eights,
            [&](unsigned e) {
                return gpu_eights{dy.load(e), x.load(e)};
            },
            [&](unsigned e, const gpu_eights &c) {
                dy.hold(e, c.dy);
                x.hold(e, c.x);
                gpu_flat_values(r.y, c.dy, g);
                gpu_flat_values(r.x, c.x, h);
                gpu_flat_values(r.weight, gpu_flat_load(r.weight, in.weight, e), w);
                flat_backward_terms(m, w, mean, inverse, g, h);
                GPU_UNROLL
                for (int t = 0; t < 8; t++) {
                    sums[t] = mpsim_math_add(m, sums[t], g[t]);
                    products[t] = mpsim_math_add(m, products[t], mpsim_math_mul(m, g[t], h[t]));
                }
            });
        const float sum = gpu_flat_sum(sums), a = r.layer ? mpsim_math_div(m, sum, r.n) : 0.0f;
        const float b = mpsim_math_div(m, gpu_flat_sum(products), r.n);
        if (!row.is_inside)
            continue;
        row.each(row.eights, [&](unsigned e) {
            dy.again(e, g);
            x.again(e, h);
            gpu_flat_values(r.weight, gpu_flat_load(r.weight, in.weight, e), w);
            flat_backward_terms(m, w, mean, inverse, g, h);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                g[t] = mpsim_batchnorm_dx(m, g[t], h[t], inverse, a, b);
            out.put(dx, row.first + e, g, &counter);
        });
    }
    counter.give(counts);
}

/* ---- gradients ---- */

static __device__ __forceinline__ void flat_gradient_store(const gpu_format &f, void *p, size_t eight, const float s[8])
{
    gpu_counter none;
    gpu_flat_out(f).put(p, eight, s, &none);
}

/* Eight of dy and x of a row, and what the row has. */
struct gpu_normed_eights {
    gpu_eights c;
    float mean, inverse;
};

/* A block has GPU_FLAT_COLUMNS columns of all rows. */
GPU_KERNEL void __launch_bounds__(GPU_FLAT_COLUMN_THREADS)
    flat_norm_gradients_kernel(GPU_CONSTANT(gpu_rownorm) r, GPU_CONSTANT(gpu_normed_list) list)
{
    GPU_SHARED(gpu_flat_tree, tree, [1]);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const unsigned k = gpu_list_item(list);
    const gpu_normed &p = list.item[k];
    const size_t eight = (size_t)gpu_list_block(list, k) * 2 + threadIdx.x % 2, eights = r.cols / 8;
    float weights[8], biases[8];
    gpu_flat_zero(weights);
    gpu_flat_zero(biases);
    gpu_flat_lane(
        eight < eights ? r.rows : 0,
        [&](size_t row) {
            return gpu_normed_eights{
                {gpu_flat_load(r.y, p.in.dy, row * eights + eight), gpu_flat_load(r.x, p.in.x, row * eights + eight)},
                r.layer ? p.in.mean[row] : 0.0f,
                p.in.inverse[row]};
        },
        [&](const gpu_normed_eights &of) {
            float dy[8], x[8];
            gpu_flat_values(r.y, of.c.dy, dy);
            gpu_flat_values(r.x, of.c.x, x);
            GPU_UNROLL
            for (int t = 0; t < 8; t++) {
                const float h = mpsim_batchnorm_normal(m, x[t], of.mean, of.inverse);
                weights[t] = mpsim_math_add(m, weights[t], mpsim_math_mul(m, dy[t], h));
                biases[t] = mpsim_math_add(m, biases[t], dy[t]);
            }
        });
    gpu_flat_columns(tree[0], weights);
    if (p.dbias)
        gpu_flat_columns(tree[0], biases);
    if (threadIdx.x >= 2 || eight >= eights)
        return;
    flat_gradient_store(r.dweight, p.dweight, eight, weights);
    if (p.dbias)
        flat_gradient_store(r.dbias, p.dbias, eight, biases);
}

/* Sums of columns: column_sums_kernel. */
GPU_KERNEL void __launch_bounds__(GPU_FLAT_COLUMN_THREADS)
    flat_column_sums_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from,
                            GPU_CONSTANT(gpu_column_list) list)
{
    GPU_SHARED(gpu_flat_tree, tree, [1]);
    gpu_counter counter;
    const unsigned k = gpu_list_item(list);
    const gpu_columns p = list.item[k];
    const size_t eight = (size_t)gpu_list_block(list, k) * 2 + threadIdx.x % 2, eights = p.cols / 8;
    float s[8];
    gpu_flat_zero(s);
    gpu_flat_lane(
        eight < eights ? p.rows : 0, [&](size_t row) { return gpu_flat_load(from, p.x, row * eights + eight); },
        [&](const gpu_eight &c) {
            float v[8];
            gpu_flat_values(from, c, v);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                s[t] = __fadd_rn(s[t], v[t]);
        });
    gpu_flat_columns(tree[0], s);
    if (threadIdx.x < 2 && eight < eights)
        gpu_flat_out(to).put(p.y, eight, s, &counter);
    counter.give(p.counts);
}
