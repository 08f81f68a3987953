/* flat_elements.cuh -- sums of two tensors, GELU and heads of attention as flat.cuh has tensors: eight elements at a time, with divisions of 32
 * bits for eight elements instead of 64 bits for one. The bits are those of tokens.cuh, rows.cuh and attention.cuh. */
#pragma once

#include "flat_softmax.cuh"
#include "tokens.cuh"

/* y = a + b, b of `period` eights that are repeated. */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    flat_add_kernel(GPU_CONSTANT(gpu_format) to, void *y, GPU_CONSTANT(gpu_format) fa, const void *a,
                    GPU_CONSTANT(gpu_format) fb, const void *b, size_t eights, size_t period, gpu_word *counts)
{
    const gpu_flat_out out(to);
    gpu_counter c;
    GPU_FOR(i, eights)
    {
        float u[8], v[8];
        const size_t of_b = period == eights ? i : i - gpu_quotient(i, period) * period;
        const gpu_eight first = gpu_flat_load(fa, a, i), second = gpu_flat_load(fb, b, of_b);
        gpu_flat_values(fa, first, u);
        gpu_flat_values(fb, second, v);
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = __fadd_rn(u[t], v[t]);
        out.put(y, i, v, &c);
    }
    c.give(counts);
}

/* ---- GELU ----
 *
 * A warp has numbers on both sides of the place where tanh and erf change their polynomials, so that it would go both ways for each
 * number. Of eight ordinary numbers both results are computed without a branch, and one is taken. */

/* x, which the compiler does not compute behind a branch. */
static __device__ __forceinline__ float flat_computed(float x)
{
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+f"(x));
#endif
    return x;
}

/* 2 / d, correctly rounded, for d from 1 to 2^100, by a reciprocal whose relative error is at most 2^-22. Both additions to codes
 * are for the d just below a power of two, where the last step has a tie else. All d of a binade and all their reciprocals have been
 * tried; t-decoder tries some, and that one. */
static __device__ __forceinline__ float flat_two_over_by(float d, float reciprocal)
{
    const float start = mpsim_f32_bits(mpsim_bits_f32(reciprocal) + 8);
    const float y = mpsim_f32_fma(mpsim_f32_fma(-d, start, 1.0f), start, start), q = mpsim_f32_add(y, y);
    return mpsim_f32_fma(mpsim_f32_fma(-d, q, 2.0f), mpsim_f32_bits(mpsim_bits_f32(y) + 1), q);
}

static __device__ __forceinline__ float flat_two_over(float d)
{
    float reciprocal;
#if defined(__CUDA_ARCH__)
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(d)); /* error: a unit in the last place */
#else
    reciprocal = 1.0f / d;
#endif
    return flat_two_over_by(d, reciprocal);
}

/* mpsim_tanh_far. */
static __device__ __forceinline__ float flat_tanh_far(float a)
{
    const mpsim_exp_argument e = mpsim_exp_reduce(mpsim_f32_mul(2.0f, a));
    const mpsim_pair s = mpsim_tanh_divisor(mpsim_pair_scale(gpu_exp_reduced(e.r, e.tail), e.n));
    return mpsim_one_minus(mpsim_pair_quotient_of(flat_two_over(s.hi), 2.0f, 0.5f, s));
}

/* mpsim_erf_far. */
static __device__ __forceinline__ float flat_erf_far(float a)
{
    const mpsim_pair p = mpsim_erf_tail(a);
    const mpsim_exp_argument e = mpsim_exp_reduce(p.hi);
    return mpsim_one_minus(mpsim_pair_scale(gpu_exp_reduced(e.r, mpsim_f32_add(e.tail, p.lo)), e.n));
}

/* mpsim_tanh_f32 of eight. */
static __device__ __forceinline__ void flat_tanh(float v[8])
{
    float most = 0;
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        most = gpu_most_of(most, fabsf(v[t]));
    if (!(most <= 9.02f)) {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = mpsim_tanh_f32(v[t]);
        return;
    }
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        const float a = mpsim_magnitude(v[t]), near = flat_computed(mpsim_tanh_near_zero(a));
        const float far = flat_computed(flat_tanh_far(a));
        v[t] = a < 0x1p-12f ? v[t] : mpsim_signed_as(a < 0x1.194p-1f ? near : far, v[t]);
    }
}

/* mpsim_erf_f32 of eight. */
static __device__ __forceinline__ void flat_erf(float v[8])
{
    float most = 0, least = fabsf(v[0]);
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        most = gpu_most_of(most, fabsf(v[t]));
        least = fminf(least, fabsf(v[t]));
    }
    if (!(most <= 3.92f && least >= 0x1p-64f)) {
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            v[t] = mpsim_erf_f32(v[t]);
        return;
    }
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        const float a = mpsim_magnitude(v[t]);
        const float near = flat_computed(mpsim_erf_ordinary(a)), far = flat_computed(flat_erf_far(a));
        v[t] = mpsim_signed_as(a < 1.0f ? near : far, v[t]);
    }
}

/* t: the tanh, the erf that y and dx need. */
template <int KIND>
static __device__ __forceinline__ void flat_gelu_t(const mpsim_math *m, const mpsim_gelu *g, const float v[8],
                                                   float to[8])
{
    GPU_UNROLL
    for (int t = 0; t < 8; t++)
        to[t] = KIND == MPSIM_GELU ? mpsim_gelu_erf_u(m, g, v[t]) : mpsim_gelu_tanh_u(m, g, v[t]);
    if (KIND == MPSIM_GELU)
        flat_erf(to);
    else
        flat_tanh(to);
}

template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    flat_gelu_kernel(GPU_CONSTANT(gpu_activation) a, void *y, const void *x, gpu_word *counts)
{
    const mpsim_math math = gpu_math<MPSIM_MATH_BINARY32>(a.math), *const m = &math;
    const gpu_flat_out out(a.y);
    gpu_counter c;
    GPU_FOR(i, a.n / 8)
    {
        float v[8], to[8];
        gpu_flat_values(a.x, gpu_flat_load(a.x, x, i), v);
        flat_gelu_t<KIND>(m, &a.gelu, v, to);
        GPU_UNROLL
        for (int t = 0; t < 8; t++)
            to[t] = mpsim_gelu_y(m, v[t], to[t]);
        out.put(y, i, to, &c);
    }
    c.give(counts);
}

template <int KIND>
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    flat_gelu_backward_kernel(GPU_CONSTANT(gpu_activation) a, void *dx, const void *dy, const void *x, gpu_word *counts)
{
    const mpsim_math math = gpu_math<MPSIM_MATH_BINARY32>(a.math), *const m = &math;
    const gpu_flat_out out(a.dx);
    gpu_counter c;
    GPU_FOR(i, a.n / 8)
    {
        float v[8], d[8], to[8];
        const gpu_eight of_x = gpu_flat_load(a.x, x, i), of_dy = gpu_flat_load(a.y, dy, i);
        gpu_flat_values(a.x, of_x, v);
        flat_gelu_t<KIND>(m, &a.gelu, v, to);
        gpu_flat_values(a.y, of_dy, d);
        if (KIND == MPSIM_GELU) {
            float e[8];
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                e[t] = mpsim_gelu_power(m, v[t]);
            gpu_flat_exp(e, 0.0f);
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                to[t] = mpsim_gelu_erf_slope(m, &a.gelu, d[t], v[t], to[t], e[t]);
        } else {
            GPU_UNROLL
            for (int t = 0; t < 8; t++)
                to[t] = mpsim_gelu_tanh_dx(m, &a.gelu, d[t], v[t], to[t]);
        }
        out.put(dx, i, to, &c);
    }
    c.give(counts);
}

/* ---- heads ---- */

static __device__ __forceinline__ void flat_floats(const float *p, float v[8])
{
    const gpu_words<4> *const at = reinterpret_cast<const gpu_words<4> *>(p);
    const gpu_words<4> low = at[0], high = at[1];
    GPU_UNROLL
    for (int t = 0; t < 4; t++) {
        v[t] = __uint_as_float(low.w[t]);
        v[4 + t] = __uint_as_float(high.w[t]);
    }
}

/* Eight e of a head, v, turned by its place; the eights half a head away are at `other`. */
static __device__ __forceinline__ void flat_turn(const gpu_heads &h, const gpu_format &from, float v[8], unsigned e,
                                                 size_t other, size_t place, int back)
{
    float u[8], cosine[8], sine[8];
    const unsigned half = (unsigned)(h.size / 2);
    const size_t k = place * half + 8 * e % half;
    gpu_flat_values(from, gpu_flat_load(from, h.x, other), u);
    flat_floats(h.cos + k, cosine);
    flat_floats(h.sin + k, sine);
    GPU_UNROLL
    for (int t = 0; t < 8; t++) {
        const float kept = __fmul_rn(v[t], cosine[t]), moved = __fmul_rn(u[t], back ? -sine[t] : sine[t]);
        v[t] = 8 * e < half ? __fsub_rn(kept, moved) : __fadd_rn(kept, moved);
    }
}

/* heads_kernel: sizes of heads are multiples of 8, of 16 where they are turned. */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    flat_heads_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from, GPU_CONSTANT(gpu_heads_list) list,
                      int back)
{
    const gpu_flat_out out(to);
    gpu_counter c;
    const unsigned k = gpu_list_item(list);
    const gpu_heads &h = list.item[k];
    const unsigned eights = (unsigned)(h.size / 8);
    GPU_FOR_ITEM(i, list, k, h.n / 8)
    {
        const size_t row = gpu_quotient(i, eights), matrix = gpu_quotient(row, h.length),
                     sequence = gpu_quotient(matrix, h.heads);
        const size_t place = row - matrix * h.length, head = matrix - sequence * h.heads;
        const unsigned e = (unsigned)(i - row * eights);
        const size_t at = (sequence * h.length + place) * (h.cols / 8) + h.first / 8 + head * eights + e;
        const size_t of_x = back ? i : at;
        float v[8];
        gpu_flat_values(from, gpu_flat_load(from, h.x, of_x), v);
        if (h.cos)
            flat_turn(h, from, v, e, 2 * e < eights ? of_x + eights / 2 : of_x - eights / 2, place, back);
        out.put(h.y, back ? at : i, v, &c);
    }
    c.give(h.counts);
}
