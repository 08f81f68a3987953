/* attention.cuh -- the kernels between the products of mpsim_cuda_attention_forward and _backward: a warp has a row of a tile. The
 * elements are those of lib/layer/transformer.h, in binary32. */
#pragma once

#include "../kernels/rows.cuh"

namespace library
{

enum { ATTENTION_THREADS = 256 };

/* A tile, and what is seen of it. */
struct attention_tile {
    size_t first, n, from, to; /* of mpsim_key_tile */
    size_t queries, keys, size, left, right;
    float scale, log2e, p_scale, back;
    int exp2, rounded, separate, reciprocal;
};

static __device__ __forceinline__ int attention_sees(const attention_tile &t, size_t i, size_t j)
{
    const size_t own = i + t.keys, key = j + t.first + t.queries;
    return (key >= own || own - key <= t.left) && (key <= own || key - own <= t.right);
}

GPU_KERNEL void attention_fill_kernel(float *x, size_t n, float v)
{
    GPU_FOR(i, n)
    x[i] = v;
}

GPU_KERNEL void attention_zero_kernel(GPU_CONSTANT(gpu_format) f, void *x, size_t n)
{
    GPU_FOR(i, n)
    gpu_store(f, x, i, gpu_encode(f, GPU_NEAREST, 0.0f).code);
}

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    attention_row_kernel(GPU_CONSTANT(attention_tile) t, GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) of_o,
                         void *p, void *o, float *max, float *sum, const float *s)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR_ROWS(row, t.to - t.from)
    {
        const size_t i = t.from + row, at = row * t.n;
        const auto x = gpu_row_of(t.n, [&](size_t j) {
            return !attention_sees(t, i, j) ? __uint_as_float(0xff800000u)
                   : t.exp2                 ? s[at + j]
                                            : mpsim_causal_x(m, t.scale, s[at + j]);
        });
        const float before = max[i], most = mpsim_softmax_max(before, gpu_row_max(__uint_as_float(0xff800000u), x));
        const float r = mpsim_tile_r(most), less = mpsim_f32_sub(before, r), far = mpsim_f32_mul(r, t.log2e);
        const float a = t.exp2 ? mpsim_exp2_f32(mpsim_f32_mul(less, t.log2e)) : mpsim_exp_f32(less);
        const auto e = x.map([&](size_t j, float v) {
            return !attention_sees(t, i, j) ? 0.0f
                   : t.exp2                 ? mpsim_exp2_f32(mpsim_f32_fma(v, t.log2e, -far))
                                            : mpsim_tile_exp(v, r);
        });
        e.each(t.n, [&](size_t j, float v) {
            gpu_store(to, p, at + j, gpu_encode(to, GPU_NEAREST, mpsim_f32_mul(v, t.p_scale)).code);
        });
        const auto kept = gpu_row_of(t.n, [&](size_t j) { return mpsim_f32_mul(gpu_value(to, p, at + j), t.back); });
        const float z = t.rounded ? gpu_row_sum(m, kept) : gpu_row_sum(m, e);
        __syncwarp(); /* all have read max */
        if (threadIdx.x % 32 == 0) {
            sum[i] = mpsim_tile_sum(sum[i], a, z);
            max[i] = most;
        }
        for (size_t c = threadIdx.x % 32; c < t.size; c += 32) {
            const size_t k = i * t.size + c;
            gpu_store(of_o, o, k, gpu_encode(of_o, GPU_NEAREST, mpsim_f32_mul(gpu_value(of_o, o, k), a)).code);
        }
    }
}

/* What a tile gave, taken into O. */
GPU_KERNEL void attention_take_kernel(GPU_CONSTANT(attention_tile) t, GPU_CONSTANT(gpu_format) f, void *o,
                                      const void *part)
{
    GPU_FOR(k, (t.to - t.from) * t.size)
    {
        const size_t at = t.from * t.size + k;
        const float v = gpu_value(f, part, k);
        gpu_store(f, o, at, gpu_encode(f, GPU_NEAREST, t.separate ? mpsim_f32_add(gpu_value(f, o, at), v) : v).code);
    }
}

GPU_KERNEL void attention_end_kernel(GPU_CONSTANT(attention_tile) t, GPU_CONSTANT(gpu_format) f, float *y, float *lse,
                                     const void *o, const float *max, const float *sum)
{
    GPU_FOR(k, t.queries * t.size)
    {
        const float z = sum[k / t.size], v = gpu_value(f, o, k);
        y[k] = z == 0         ? 0.0f
               : t.reciprocal ? mpsim_f32_mul(mpsim_f32_mul(v, t.back), mpsim_f32_div(1.0f, z))
                              : mpsim_tile_y(v, t.back, z);
    }
    GPU_FOR(i, lse ? t.queries : 0)
    lse[i] = mpsim_tile_lse(t.exp2 ? mpsim_f32_mul(max[i], t.scale) : max[i], sum[i]);
}

/* ---- backward ---- */

GPU_KERNEL void __launch_bounds__(GPU_ROW_THREADS)
    attention_dots_kernel(GPU_CONSTANT(attention_tile) t, GPU_CONSTANT(gpu_format) f, float *d, const void *dy,
                          size_t row_step, size_t step, const float *y)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR_ROWS(row, t.queries)
    {
        const float s = gpu_row_sum(m, gpu_row_of(t.size, [&](size_t c) {
                                        return mpsim_f32_mul(gpu_value(f, dy, row * row_step + c * step),
                                                             y[row * t.size + c]);
                                    }));
        if (threadIdx.x % 32 == 0)
            d[row] = s;
    }
}

/* P and dS. t.scale is that of the scores, by_scale of dS. */
GPU_KERNEL void attention_again_kernel(GPU_CONSTANT(attention_tile) t, GPU_CONSTANT(gpu_format) of_p,
                                       GPU_CONSTANT(gpu_format) of_ds, void *p, void *ds, const float *s,
                                       const float *dp, const float *lse, const float *d, float by_scale)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    GPU_FOR(k, (t.to - t.from) * t.n)
    {
        const size_t i = t.from + k / t.n;
        float e = 0, v = 0;
        if (attention_sees(t, i, k % t.n)) {
            const float far = mpsim_f32_mul(lse[i], 0x1.715476p+0f);
            e = t.exp2 ? mpsim_exp2_f32(mpsim_f32_fma(s[k], t.log2e, -far))
                       : mpsim_tile_exp(mpsim_causal_x(m, t.scale, s[k]), lse[i]);
            v = mpsim_causal_ds(m, e, dp[k], d[i], by_scale);
        }
        gpu_store(of_p, p, k, gpu_encode(of_p, GPU_NEAREST, e).code);
        gpu_store(of_ds, ds, k, gpu_encode(of_ds, GPU_NEAREST, v).code);
    }
}

GPU_KERNEL void attention_add_kernel(float *sum, const float *part, size_t n)
{
    GPU_FOR(i, n)
    sum[i] = mpsim_f32_add(sum[i], part[i]);
}

GPU_KERNEL void attention_scale_kernel(float *x, size_t n, float scale)
{
    GPU_FOR(i, n)
    x[i] = mpsim_f32_mul(x[i], scale);
}

} // namespace library
