/* flat_softmax.cuh -- softmax of causal scores, whole and in tiles, and what else attention computes beside its products, of rows as
 * flat.cuh has them, in binary32. The bits are those of attention.cuh. */
#pragma once

#include "attention.cuh"
#include "flat_norms.cuh"

/* ---- exp and quotients ---- */

/* mpsim_exp_reduced without the additions of zero, which change no number but a zero's sign. */
static __device__ __forceinline__ mpsim_pair gpu_exp_reduced(float r, float tail)
{
    float q = 0x1.9dfbc6p-13f;
    q = mpsim_f32_fma(q, r, 0x1.6d4cc2p-10f);
    q = mpsim_f32_fma(q, r, 0x1.11130ep-7f);
    q = mpsim_f32_fma(q, r, 0x1.5554e8p-5f);
    q = mpsim_f32_fma(q, r, 0x1.555554p-3f);
    float p = mpsim_f32_mul(r, q), rest = mpsim_f32_fma(r, q, -p);
    mpsim_pair s = mpsim_pair_sum(0.5f, p);
    s.lo = mpsim_f32_add(s.lo, rest);
    GPU_UNROLL
    for (int k = 0; k < 2; k++) {
        p = mpsim_f32_mul(r, s.hi);
        rest = mpsim_f32_fma(r, s.lo, mpsim_f32_fma(r, s.hi, -p));
        s = mpsim_pair_sum(1.0f, p);
        s.lo = mpsim_f32_add(s.lo, rest);
    }
    s.lo = mpsim_f32_fma(tail, s.hi, s.lo);
    return s;
}

/* mpsim_exp_f32 for |x| <= 87. */
static __device__ __forceinline__ float gpu_exp_ordinary(float x)
{
    const mpsim_exp_argument a = mpsim_exp_reduce(x);
    const mpsim_pair s = gpu_exp_reduced(a.r, a.tail);
    return mpsim_f32_bits(mpsim_bits_f32(mpsim_f32_add(s.hi, s.lo)) + ((uint32_t)a.n << 23));
}

/* exp(v - less) of eight. */
static __device__ __forceinline__ void gpu_flat_exp(float v[8], float less)
{
    int is_ordinary = 1;
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        v[t] = mpsim_f32_sub(v[t], less);
        is_ordinary &= fabsf(v[t]) <= 87.0f;
    }
    if (is_ordinary) {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = gpu_exp_ordinary(v[t]);
        return;
    }
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        v[t] = mpsim_exp_f32(v[t]);
}

/* A divisor from 1 to 2^24 and its correctly rounded reciprocal. A quotient of which the error is at most a unit in the last place
 * becomes, by one step more, the nearest number (Markstein, 1990); the first product may be two units off. */
struct gpu_divisor {
    float z, back;

    __device__ __forceinline__ gpu_divisor(float of)
    {
        z = of;
        back = __fdiv_rn(1.0f, of);
    }
    __device__ __forceinline__ void divide(float v[8]) const
    {
        float least = v[0];
        GPU_UNROLL
        for (int t = 1; t < 8; t++)
            least = fminf(least, v[t]);
        if (least >= 0x1p-100f && z <= 0x1p+24f) { /* a NaN among others gives one */
            GPU_UNROLL
            for (int t = 0; t < 8; t++) {
                float y = mpsim_f32_mul(v[t], back);
                y = mpsim_f32_fma(mpsim_f32_fma(-z, y, v[t]), back, y);
                v[t] = mpsim_f32_fma(mpsim_f32_fma(-z, y, v[t]), back, y);
            }
            return;
        }
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = mpsim_f32_div(v[t], z);
    }
};

/* ---- numbers of a row in shared memory ---- */

struct gpu_flat_numbers {
    gpu_words<4> *room; /* NULL: not held */

    __device__ __forceinline__ gpu_words<4> *at(unsigned e) const
    {
        return room + e / GPU_FLAT_TEAM * 2 * GPU_FLAT_THREADS + threadIdx.x;
    }
    __device__ __forceinline__ void hold(unsigned e, const float v[8]) const
    {
        gpu_words<4> low, high;
        GPU_UNROLL
        for (int t = 0; t < 4; t++) {
            low.w[t] = __float_as_uint(v[t]);
            high.w[t] = __float_as_uint(v[4 + t]);
        }
        at(e)[0] = low;
        at(e)[GPU_FLAT_THREADS] = high;
    }
    __device__ __forceinline__ void again(unsigned e, float v[8]) const
    {
        const gpu_words<4> low = at(e)[0], high = at(e)[GPU_FLAT_THREADS];
        GPU_UNROLL
        for (int t = 0; t < 4; t++) {
            v[t] = __uint_as_float(low.w[t]);
            v[4 + t] = __uint_as_float(high.w[t]);
        }
    }
};

/* Numbers of eight e from number n of the row on become `to`. */
static __device__ __forceinline__ void gpu_flat_cut(float v[8], unsigned e, unsigned n, float to)
{
    if (8 * e + 8 > n)
        GPU_UNROLL
    for (int t = 0; t < 8; t++)
        v[t] = 8 * e + t < n ? v[t] : to;
}

/* The visible part of a row of scores: how it is read, and scaled. */
struct gpu_flat_scores {
    const gpu_format &f;
    const void *s;
    size_t first;
    unsigned n;
    float scale;
    gpu_flat_numbers held;

    __device__ __forceinline__ unsigned end() const
    {
        return (n + 7) / 8;
    }
    __device__ __forceinline__ gpu_eight load(unsigned e) const
    {
        return gpu_flat_load(f, s, first + e);
    }
    __device__ __forceinline__ void scaled(unsigned e, const gpu_eight &c, float v[8]) const
    {
        gpu_flat_values(f, c, v);
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = mpsim_f32_mul(scale, v[t]);
        gpu_flat_cut(v, e, n, __uint_as_float(0xff800000u));
    }
    __device__ __forceinline__ void again(unsigned e, float v[8]) const
    {
        if (held.room)
            held.again(e, v);
        else
            scaled(e, load(e), v);
    }
    /* The largest of `first` and the row. */
    __device__ __forceinline__ float largest(const gpu_flat_row &row, float most) const
    {
        row.each(
            end(), [&](unsigned e) { return load(e); },
            [&](unsigned e, const gpu_eight &c) {
                float v[8];
                scaled(e, c, v);
                if (held.room)
                    held.hold(e, v);
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    most = gpu_most_of(most, v[t]);
            });
        most = gpu_most_of(most, __shfl_xor_sync(0xffffffffu, most, 1));
        return gpu_most_of(most, __shfl_xor_sync(0xffffffffu, most, 2));
    }
    /* The sum of exp(x - less), which is held in place of x. */
    __device__ __forceinline__ float sum_of_exp(const gpu_flat_row &row, float less) const
    {
        float z[8];
        gpu_flat_zero(z);
        row.each(end(), [&](unsigned e) {
            float v[8];
            again(e, v);
            gpu_flat_exp(v, less);
            if (held.room)
                held.hold(e, v);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                z[t] = __fadd_rn(z[t], v[t]);
        });
        return gpu_flat_sum(z);
    }
    __device__ __forceinline__ void exp_again(unsigned e, float less, float v[8]) const
    {
        again(e, v);
        if (!held.room)
            gpu_flat_exp(v, less);
    }
};

static __device__ __forceinline__ void gpu_flat_zeros(const gpu_format &f, void *p, const gpu_flat_row &row,
                                                      unsigned from)
{
    const gpu_eight none = {{0, 0, 0, 0, 0, 0, 0, 0}};
    GPU_ROLLED
    for (unsigned e = from + (row.q - from) % GPU_FLAT_TEAM; e < row.eights; e += GPU_FLAT_TEAM)
        gpu_flat_store(f, p, row.first + e, none);
}

/* a / b and a % b of numbers that usually have 32 bits. */
static __device__ __forceinline__ size_t gpu_quotient(size_t a, size_t b)
{
    return (a | b) >> 32 ? a / b : (uint32_t)a / (uint32_t)b;
}

/* ---- whole rows ---- */

GPU_KERNEL void __launch_bounds__(GPU_FLAT_THREADS)
    flat_causal_kernel(GPU_CONSTANT(gpu_causal) q, void *p, const void *s, gpu_word *counts, int is_held)
{
    GPU_DYNAMIC_SHARED(gpu_words<4>, room);
    const gpu_flat_out out(q.to);
    gpu_counter counter;
    GPU_FOR_FLAT_ROWS(of_warp, q.rows)
    {
        const gpu_flat_row row(of_warp, q.rows, q.length);
        const unsigned n = (unsigned)(row.row - gpu_quotient(row.row, q.length) * q.length) + 1;
        const gpu_flat_scores x = {q.from, s, row.first, n, q.scale, {is_held ? room : nullptr}};
        const float most = x.largest(row, __uint_as_float(0xff800000u));
        const gpu_divisor z(x.sum_of_exp(row, most));
        if (!row.is_inside)
            continue;
        row.each(x.end(), [&](unsigned e) {
            float v[8];
            x.exp_again(e, most, v);
            z.divide(v);
            gpu_flat_cut(v, e, n, 0);
            out.put(p, row.first + e, v, &counter);
        });
        gpu_flat_zeros(q.to, p, row, x.end());
    }
    counter.give(counts);
}

/* Eight of P and dP. */
GPU_KERNEL void __launch_bounds__(GPU_FLAT_THREADS)
    flat_causal_backward_kernel(GPU_CONSTANT(gpu_causal) q, void *ds, const void *dp, const void *p, gpu_word *counts,
                                unsigned of_dp) /* where dP is held, in 16 bytes; 0: nowhere */
{
    GPU_DYNAMIC_SHARED(gpu_words<4>, room);
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const gpu_flat_out out(q.to);
    gpu_counter counter;
    GPU_FOR_FLAT_ROWS(of_warp, q.rows)
    {
        const gpu_flat_row row(of_warp, q.rows, q.length);
        const unsigned n = (unsigned)(row.row - gpu_quotient(row.row, q.length) * q.length) + 1, end = (n + 7) / 8;
        const gpu_flat_held x = {of_dp ? room : nullptr, q.p, p, row.first};
        const gpu_flat_held y = {of_dp ? room + of_dp : nullptr, q.from, dp, row.first};
        float s[8], u[8], v[8];
        gpu_flat_zero(s);
        row.each(
            end,
            [&](unsigned e) {
                return gpu_eights{y.load(e), x.load(e)};
            },
            [&](unsigned e, const gpu_eights &c) {
                x.hold(e, c.x);
                y.hold(e, c.dy);
                gpu_flat_values(q.p, c.x, u);
                gpu_flat_values(q.from, c.dy, v);
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    if (8 * e + t < n)
                        s[t] = mpsim_math_add(m, s[t], mpsim_causal_term(m, u[t], v[t]));
            });
        const float d = gpu_flat_sum(s);
        if (!row.is_inside)
            continue;
        row.each(end, [&](unsigned e) {
            x.again(e, u);
            y.again(e, v);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                v[t] = mpsim_causal_ds(m, u[t], v[t], d, q.scale);
            gpu_flat_cut(v, e, n, 0);
            out.put(ds, row.first + e, v, &counter);
        });
        gpu_flat_zeros(q.to, ds, row, end);
    }
    counter.give(counts);
}

/* ---- tiles ---- */

/* o times a, a row of it. */
static __device__ __forceinline__ void flat_tile_rescale(const gpu_tiles &t, float *o, size_t row, unsigned q, float a)
{
    gpu_words<4> *const at = reinterpret_cast<gpu_words<4> *>(o + row * t.size);
    for (unsigned c = q; c < t.size / 4; c += GPU_FLAT_TEAM) {
        gpu_words<4> v = at[c];
        GPU_UNROLL
        for (int k = 0; k < 4; k++)
            v.w[k] = __float_as_uint(__fmul_rn(__uint_as_float(v.w[k]), a));
        at[c] = v;
    }
}

GPU_KERNEL void __launch_bounds__(GPU_FLAT_THREADS)
    flat_tile_forward_kernel(GPU_CONSTANT(gpu_tiles) t, GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from,
                             void *p, float *o, float *max, float *sum, const float *s, gpu_word *counts, int is_held)
{
    GPU_DYNAMIC_SHARED(gpu_words<4>, room);
    const gpu_flat_out out(to);
    gpu_counter counter;
    GPU_FOR_FLAT_ROWS(of_warp, t.rows)
    {
        const gpu_flat_row row(of_warp, t.rows, t.cols);
        const gpu_tile_row w = tile_row(t, row.row);
        const gpu_flat_scores x = {from, s, row.first, (unsigned)w.n, t.scale, {is_held ? room : nullptr}};
        const float before = max[w.row], most = x.largest(row, before);
        const float r = mpsim_tile_r(most), a = mpsim_tile_exp(before, r);
        const float z = x.sum_of_exp(row, r);
        __syncwarp(); /* all have read max */
        if (!row.is_inside)
            continue;
        if (row.q == 0) {
            sum[w.row] = mpsim_tile_sum(sum[w.row], a, z);
            max[w.row] = most;
        }
        flat_tile_rescale(t, o, w.row, row.q, a);
        row.each(x.end(), [&](unsigned e) {
            float v[8];
            x.exp_again(e, r, v);
            GPU_UNROLL
            for (int k = 0; k < 8; k++)
                v[k] = __fmul_rn(v[k], t.p_scale);
            gpu_flat_cut(v, e, x.n, 0);
            out.put(p, row.first + e, v, &counter);
        });
        gpu_flat_zeros(to, p, row, x.end());
    }
    counter.give(counts);
}

/* P again, or dS. */
template <int BACKWARD>
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    flat_tile_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) single, GPU_CONSTANT(gpu_tiled_list) list)
{
    const mpsim_math math = gpu_math_binary32(), *const m = &math;
    const gpu_flat_out out(to);
    gpu_counter counter;
    const unsigned k = gpu_list_item(list);
    const gpu_tiled &p = list.item[k];
    const size_t eights = p.t.cols / 8;
    GPU_FOR_ITEM(i, list, k, p.n / 8)
    {
        const size_t row = gpu_quotient(i, eights), height = p.t.length - p.t.first, matrix = gpu_quotient(row, height);
        const unsigned e = (unsigned)(i - row * eights), n = (unsigned)(row - matrix * height) + 1;
        const size_t at = matrix * p.t.length + p.t.first + (row - matrix * height);
        float v[8] = {0, 0, 0, 0, 0, 0, 0, 0}, u[8];
        if (8 * e < n) {
            gpu_flat_values(single, gpu_flat_load(single, p.s, i), v);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                v[t] = __fmul_rn(p.t.scale, v[t]);
            gpu_flat_exp(v, p.lse[at]);
            if (BACKWARD) {
                gpu_flat_values(single, gpu_flat_load(single, p.dp, i), u);
                const float d = p.d[at];
                GPU_UNROLL
                for (int t = 0; t < 8; t++)
                    v[t] = mpsim_causal_ds(m, v[t], u[t], d, p.t.scale);
            }
            gpu_flat_cut(v, e, n, 0);
            out.put(p.y, i, v, &counter);
        } else {
            gpu_flat_store(to, p.y, i, gpu_eight{{0, 0, 0, 0, 0, 0, 0, 0}});
        }
    }
    counter.give(p.counts);
}
