/* fused_tile.cuh -- the kernel of products by fused additions and their kin in binary64 (fused.cuh, staged.cuh): 64 x 64 results a
 * block of threads, 4 x 4 a thread; and what follows it. */
#pragma once

#include "staged.cuh"

namespace library
{

/* s + t, to nearest even: sums of two such numbers in binary64 may be rounded a second time. Results are normal here, or exact. */
template <fused_kind KIND>
static __device__ __forceinline__ double fused_outer(double s, double t)
{
    enum { DROPPED = KIND == FUSED_FP16 ? 42 : 29, EMAX = KIND == FUSED_FP16 ? 15 : 127 };
    const double sum = __dadd_rn(s, t);
    const int field = high_of(sum) >> 20 & 0x7ff;
    if (sum != sum || field == 0x7ff || field < (KIND == FUSED_FP16 ? -14 : -126) + FUSED_BIAS)
        return sum; /* below the normal numbers the sum is exact */
    const double y = rounded_bits<DROPPED, 1>(sum);
    return (high_of(y) >> 20 & 0x7ff) > EMAX + FUSED_BIAS ? __hiloint2double((high_of(y) & INT32_MIN) | 0x7ff00000, 0)
                                                          : y;
}

/* ---- chunks, and blocks with factors ---- */

typedef double fused_sums[FUSED_SIDE][FUSED_SIDE];

template <fused_kind KIND>
static __device__ __forceinline__ void fused_outer_all(fused_sums &sums, const fused_results &r)
{
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE * FUSED_SIDE; i++)
        sums[i / FUSED_SIDE][i % FUSED_SIDE] = fused_outer<KIND>(sums[i / FUSED_SIDE][i % FUSED_SIDE],
                                                                 r.s[i / FUSED_SIDE][i % FUSED_SIDE]);
}

/* Where the factors of a thread's lines begin. */
struct fused_factor_lines {
    int a[FUSED_SIDE], b[FUSED_SIDE];
};

static __device__ __forceinline__ fused_factor_lines factor_lines(const fused_product &f, const product_shape &g,
                                                                  int64_t matrix, int64_t row, int64_t column)
{
    fused_factor_lines x;
    const int64_t a = offset_of(g, f.a.lies, matrix), b = offset_of(g, f.b.lies, matrix);
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++) {
        x.a[i] = factor_line(f.a, a, row + i, g.rows);
        x.b[i] = factor_line(f.b, b, column + i / 2 * FUSED_APART + i % 2, g.columns);
    }
    return x;
}

/* fma(both factors of block q, its sum, the sum so far), in binary32. */
static __device__ __forceinline__ void fused_promote(fused_sums &sums, const fused_results &r, const fused_product &f,
                                                     const fused_factor_lines &x, int q)
{
    if (q >= f.blocks)
        return;
    GPU_UNROLL
    for (int i = 0; i < FUSED_SIDE; i++) {
        const float a = f.a.at[x.a[i] + q];
        GPU_UNROLL
        for (int j = 0; j < FUSED_SIDE; j++)
            sums[i][j] = static_cast<double>(__fmaf_rn(__fmul_rn(a, f.b.at[x.b[j] + q]), static_cast<float>(r.s[i][j]),
                                                       static_cast<float>(sums[i][j])));
    }
}

/* ---- the kernel ---- */

template <int L, fused_kind KIND>
static __device__ __forceinline__ void addition_of(fused_results *r, const fused_shared<L> &m, int group, int row,
                                                   int column, const fused_steps &w)
{
    if constexpr (KIND == FUSED_STAGED)
        staged_addition<L, 1>(r, m, group, row, column, w);
    else if constexpr (KIND == FUSED_STAGED_TWO)
        staged_addition<L, 2>(r, m, group, row, column, w);
    else
        fused_addition<L, KIND>(r, m, group, row, column, w);
}

template <int L, fused_kind KIND, int CHUNKED>
GPU_KERNEL void __launch_bounds__(FUSED_THREADS, CHUNKED || KIND == FUSED_STAGED_TWO ? 1 : 2)
    fused_kernel(GPU_CONSTANT(fused_product) f, GPU_CONSTANT(product_shape) g, GPU_CONSTANT(strided) to,
                 GPU_CONSTANT(fused_places) at, float *d)
{
    enum { DEEP = fused_stage<L>::DEEP, GROUPS = fused_stage<L>::GROUPS };
    GPU_SHARED(fused_shared<L>, m, [1]);
    const fused_place x = fused_place_of(f);
    const int64_t first_k = x.matrix * f.deep;
    const fused_steps w = steps_of(f);
    const fused_part part_a = fused_part_of(f.rows), part_b = fused_part_of(f.columns);
    fused_results r;
    fused_sums sums = {};
    fused_factor_lines factors = {};
    int left = f.per_chunk, q = 0;
    fused_clear(&r);
    if (CHUNKED && f.blocks)
        factors = factor_lines(f, g, x.matrix, x.row0 + x.row, x.column0 + x.column);
    GPU_ROLLED
    for (int64_t k = 0; k < f.deep; k += DEEP) {
        fused_load<L>(m, 0, at.a, first_k + k, f.rows, x.row0, part_a, 0);
        fused_load<L>(m, 1, at.b, first_k + k, f.columns, x.column0, part_b, w.odd);
        __syncthreads();
        GPU_ROLLED
        for (int n = 0; n < GROUPS; n++) {
            if (k + n * L < f.end)
                addition_of<L, KIND>(&r, *m, n, x.row, x.column, w);
            if (CHUNKED && --left == 0) {
                left = f.per_chunk;
                if (f.blocks)
                    fused_promote(sums, r, f, factors, q++);
                else
                    fused_outer_all<KIND>(sums, r);
                fused_clear(&r);
            }
        }
        __syncthreads();
    }
    fused_store(CHUNKED ? sums : r.s, f, g, to, at, x, d, CHUNKED && f.blocks);
}

/* Sums of the workspace to d, but those of special lines. */
GPU_KERNEL void fused_finish_kernel(GPU_CONSTANT(product_arguments) p, GPU_CONSTANT(fused_product) f,
                                    GPU_CONSTANT(fused_places) at)
{
    const product_shape &g = p.shape;
    const int64_t each = g.rows * g.columns, n = each * g.matrices;
    const end_scales v = scales_of(p);
    end_counts c = {{0, 0, 0, 0}};
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t matrix = e / each, i = e % each / g.columns, j = e % g.columns;
        const float s = at.sums[e];
        if (at.a.special[matrix * f.rows + i] | at.b.special[matrix * f.columns + j])
            continue;
        if (s == s)
            finish_f32(p, places_of(p, matrix), v, i, j, s, &c);
        else
            finish_code(p, places_of(p, matrix), v, i, j, f.invalid, &c);
    }
    give_counts(p.end, c);
}

} // namespace library
