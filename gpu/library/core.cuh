/* core.cuh -- products whose model is an instruction of tensor cores of the device at hand: by the kernels of training (gpu/kernels).
 *
 * They know matrices whose rows or columns are contiguous, stacks of them at one distance, one factor, and results in any
 * format. What they do not know is done beside them: operands that are rounded are written to the workspace first; sums that need
 * more than a factor go to the workspace as binary32 and are finished by finish_kernel. */
#pragma once

#include "product.cuh"

#include "../kernels/gemm.h"

namespace library
{

/* Compute capability of the current device, asked once for each device. */
static inline int capability()
{
    enum { DEVICES = 64 };
    static int known[DEVICES]; /* 0: not asked yet; all threads write the same */
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) != cudaSuccess)
        return 0;
    if (device >= 0 && device < DEVICES && known[device])
        return known[device];
#if GPU_ON_HOST
    cudaDeviceProp p;
    (void)cudaGetDeviceProperties(&p, device);
    major = p.major;
    minor = p.minor;
#else
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
#endif
    if (device >= 0 && device < DEVICES)
        known[device] = 10 * major + minor;
    return 10 * major + minor;
}

/* A product as launches of gpu_gemm: one for each matrix of the outer dimensions before the last. */
struct core_product {
    gpu_product p;
    int launches, to_sums; /* to_sums: of binary32 in the workspace */
    const mpsim_format *format_a, *format_b;
};

static inline int is_pair(const product_arguments &p)
{
    return p.shape.rows > 0 && p.shape.columns > 0 && p.shape.depth > 0;
}

/* An operand's matrix: depth along, or lines. */
static inline int matrix_of(mpsim_matrix *m, const strided &at, int64_t lines, int64_t depth, int is_b)
{
    const int along = at.col == 1 || depth == 1, across = at.row == 1 || lines == 1;
    if (!along && !across)
        return 0;
    const int64_t stride = along ? (lines == 1 ? depth : at.row) : (depth == 1 ? lines : at.col);
    if (stride < (along ? depth : lines))
        return 0;
    m->stride = static_cast<size_t>(stride);
    m->transposed = along ? is_b : !is_b;
    return 1;
}

/* What follows the sum is at most one factor, no NaN is made by it, and d is a matrix of rows. */
static inline int is_simple(const product_arguments &p, float *factor)
{
    const product_ending &e = p.end;
    const int scales = p.a.own_inverse != 1 || p.b.own_inverse != 1;
    *factor = scales ? p.a.own_inverse * p.b.own_inverse : e.factor;
    return !p.a.inverse && !p.b.inverse && !(scales && e.factor != 1) && *factor != 0 && *factor - *factor == 0 &&
           !e.bias.codes && !e.add.codes && !e.counts && e.same && e.narrow && e.lies.bits <= 32 && e.at.col == 1 &&
           e.at.row >= p.shape.columns;
}

static inline strided dense(int64_t rows, int64_t cols, int rank, const int64_t *outer)
{
    strided s = {{0}, cols, 1};
    int64_t step = rows * cols;
    for (int k = rank; k-- > 0; step *= outer[k])
        s.outer[k] = step;
    return s;
}

/* 1: the tensor cores of this device compute the product. */
static inline int core_of(core_product *c, const product_arguments &p, int sm)
{
    enum { LAUNCHES = 64 };
    const product_shape &g = p.shape;
    gpu_product *q = &c->p;
    memset(static_cast<void *>(c), 0, sizeof *c);
    if (!is_pair(p) || !mpsim_model_accepts(&p.model, &p.a.multiplied, &p.b.multiplied) || p.start.codes ||
        g.depth > 1 << 29 || !gpu_gemm_core(&p.model, &p.a.multiplied, &p.b.multiplied, sm))
        return 0;
    if (p.a.factors && (!gpu_gemm_core_factors(&p.model, sm) || p.a.block_cols != GPU_GEMM_BLOCK || g.matrices != 1))
        return 0;
    const strided a = p.a.enters ? dense(g.rows, g.depth, g.rank, g.outer) : p.a.at;
    const strided b = p.b.enters ? dense(g.columns, g.depth, g.rank, g.outer) : p.b.at;
    if (!matrix_of(&q->a, a, g.rows, g.depth, 0) || !matrix_of(&q->b, b, g.columns, g.depth, 1))
        return 0;
    c->launches = 1;
    for (int k = 0; k + 1 < g.rank; k++)
        c->launches = c->launches * g.outer[k] <= LAUNCHES ? static_cast<int>(c->launches * g.outer[k]) : LAUNCHES + 1;
    const int last = g.rank - 1;
    for (int k = 0; k < g.rank; k++)
        if (a.outer[k] < 0 || b.outer[k] < 0 || p.end.at.outer[k] < 0)
            return 0;
    if (c->launches > LAUNCHES)
        return 0;
    q->rows = static_cast<size_t>(g.rows);
    q->columns = static_cast<size_t>(g.columns);
    q->depth = static_cast<size_t>(g.depth);
    q->stacks = last >= 0 ? static_cast<size_t>(g.outer[last]) : 1;
    q->a_apart = last >= 0 ? static_cast<size_t>(a.outer[last]) : 0;
    q->b_apart = last >= 0 ? static_cast<size_t>(b.outer[last]) : 0;
    c->to_sums = !is_simple(p, &q->factor) || p.a.factors;
    q->factor = c->to_sums ? 1 : q->factor;
    q->d_stride = static_cast<size_t>(c->to_sums ? g.columns : p.end.at.row);
    q->d_apart = last >= 0 ? static_cast<size_t>(c->to_sums ? g.rows * g.columns : p.end.at.outer[last]) : 0;
    return 1;
}

static inline const unsigned char *codes_of(const product_operand &o, const unsigned char *entered, const strided &at,
                                            const product_shape &g, int64_t matrix)
{
    const int64_t bytes = entered ? static_cast<int64_t>(mpsim_format_code_bytes(&o.multiplied)) : o.bytes;
    return (entered ? entered : o.codes) + offset_of(g, at, matrix) * bytes;
}

static inline gpu_factors factors_of(const product_operand &o)
{
    gpu_factors f = {o.factors, static_cast<size_t>(o.block_rows), static_cast<size_t>(o.grid_cols)};
    return f;
}

/* All launches; 0, or -1 and a line. */
static inline int launch_core(core_product c, const product_arguments &p, const mpsim_format *f32,
                              const unsigned char *entered_a, const unsigned char *entered_b, float *sums, int sm,
                              cudaStream_t on, char *why, size_t size)
{
    const product_shape &g = p.shape;
    const strided a = entered_a ? dense(g.rows, g.depth, g.rank, g.outer) : p.a.at;
    const strided b = entered_b ? dense(g.columns, g.depth, g.rank, g.outer) : p.b.at;
    const int64_t stacks = static_cast<int64_t>(c.p.stacks);
    c.p.model = &p.model;
    c.p.a.format = &p.a.multiplied;
    c.p.b.format = &p.b.multiplied;
    c.p.format = sums ? f32 : &p.end.lies;
    c.p.stream = on;
    if (p.a.factors) {
        c.p.a_factors = factors_of(p.a);
        c.p.b_factors = factors_of(p.b);
    }
    for (int64_t i = 0; i < c.launches; i++) {
        c.p.a.codes = codes_of(p.a, entered_a, a, g, i * stacks);
        c.p.b.codes = codes_of(p.b, entered_b, b, g, i * stacks);
        c.p.d = sums ? static_cast<void *>(sums + i * stacks * g.rows * g.columns)
                     : p.end.d + offset_of(g, p.end.at, i * stacks) * p.end.bytes;
        if (gpu_gemm(&c.p, sm, GPU_GEMM_AUTO, why, size))
            return -1;
    }
    return 0;
}

/* Products with factors: the sign of a NaN from infinities between blocks is the operation's, another one than x86's. So the
 * reference computes every sum that is a NaN. */
GPU_KERNEL void __launch_bounds__(WALK_THREADS)
    settle_kernel(GPU_CONSTANT(product_arguments) p, const unsigned char *entered_a, const unsigned char *entered_b,
                  float *sums)
{
    const product_shape &g = p.shape;
    const int64_t each = g.rows * g.columns, n = each * g.matrices;
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * WALK_THREADS + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * WALK_THREADS) {
        if (sums[e] == sums[e])
            continue;
        const int64_t matrix = e / each, i = e % each / g.columns, j = e % g.columns;
        const matrix_places x = places_of(p, matrix);
        walk w = walk_of(p, line_of(p.a, entered_a, g.rows, g.depth, matrix, x.a, i),
                         line_of(p.b, entered_b, g.columns, g.depth, matrix, x.b, j), matrix, i, j);
        sums[e] = promoted<WALK_ADDITIONS>(p, w, factors_of(p.a, x.a, i), factors_of(p.b, x.b, j));
    }
}

/* Sums of all matrices, row after row, to d. */
GPU_KERNEL void finish_kernel(GPU_CONSTANT(product_arguments) p, const float *sums)
{
    const product_shape &g = p.shape;
    const int64_t each = g.rows * g.columns, n = each * g.matrices;
    const end_scales v = scales_of(p);
    end_counts c = {{0, 0, 0, 0}};
    for (int64_t e = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; e < n;
         e += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t matrix = e / each, i = e % each / g.columns, j = e % g.columns;
        finish_f32(p, places_of(p, matrix), v, i, j, sums[e], &c);
    }
    give_counts(p.end, c);
}

} // namespace library
