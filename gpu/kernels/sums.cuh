/* sums.cuh -- sums in the fixed tree of mpsim_sum_lanes, and exact ones in integers. */
#ifndef MPSIM_GPU_KERNELS_SUMS_CUH
#define MPSIM_GPU_KERNELS_SUMS_CUH

#include "codes.cuh"

#include <mpsim/stats.h>

/* ---- columns of a matrix ----
 *
 * A block of 32 x 8 threads sums 32 columns over all rows, 256 lanes each: thread (c, r) of the
 * block holds lanes r, r + 8, ..., r + 248 of column c, so that a warp reads 32 neighbours of a
 * row. */
enum { GPU_COLUMNS = 32, GPU_COLUMN_ROWS = 8, GPU_COLUMN_LANES = 32 };

/* The sum by add(a, b) of term(row) over all rows, in every thread of the column. `tree` is shared; all
 * threads of the block come here, those with inside = 0 without a column. */
template <class Add, class Term>
static __device__ float gpu_column_sum(size_t rows, int inside,
                                       float (&tree)[GPU_COLUMN_ROWS][GPU_COLUMNS], Add add,
                                       Term term)
{
    float s[GPU_COLUMN_LANES];
    const unsigned c = threadIdx.x, r = threadIdx.y;
    GPU_UNROLL
    for (int k = 0; k < GPU_COLUMN_LANES; k++)
        s[k] = 0;
    if (inside)
        for (size_t first = 0; first < rows; first += GPU_COLUMN_LANES * GPU_COLUMN_ROWS) {
            GPU_UNROLL
            for (int k = 0; k < GPU_COLUMN_LANES; k++) {
                const size_t row = first + (size_t)(GPU_COLUMN_ROWS * k) + r;
                if (row < rows)
                    s[k] = add(s[k], term(row));
            }
        }
    GPU_UNROLL
    for (int h = GPU_COLUMN_LANES / 2; h > 0; h /= 2)
        GPU_UNROLL
        for (int k = 0; k < GPU_COLUMN_LANES / 2; k++)
            if (k < h)
                s[k] = add(s[k], s[k + h]);
    tree[r][c] = s[0];
    __syncthreads();
    for (unsigned h = GPU_COLUMN_ROWS / 2; h > 0; h /= 2) {
        if (r < h)
            tree[r][c] = add(tree[r][c], tree[r + h][c]);
        __syncthreads();
    }
    const float sum = tree[0][c];
    __syncthreads();
    return sum;
}

/* The same in binary32. */
template <class Term>
static __device__ __forceinline__ float gpu_column_sum(size_t rows, int inside,
                                                       float (&tree)[GPU_COLUMN_ROWS][GPU_COLUMNS],
                                                       Term term)
{
    return gpu_column_sum(
        rows, inside, tree, [](float a, float b) { return __fadd_rn(a, b); }, term);
}

GPU_KERNEL void __launch_bounds__(GPU_COLUMNS * GPU_COLUMN_ROWS)
    column_sums_kernel(const __grid_constant__ gpu_format to, void *d,
                       const __grid_constant__ gpu_format from, const void *x, size_t rows,
                       size_t cols, gpu_word *counts)
{
    GPU_SHARED(float, tree, [GPU_COLUMN_ROWS][GPU_COLUMNS]);
    gpu_counter c;
    const size_t column = (size_t)blockIdx.x * GPU_COLUMNS + threadIdx.x;
    const int inside = column < cols;
    const float sum = gpu_column_sum(
        rows, inside, tree, [&](size_t row) { return gpu_value(from, x, row * cols + column); });
    if (inside && threadIdx.y == 0)
        gpu_put(to, d, column, sum, &c);
    c.give(counts);
}

/* ---- a list ---- */

enum { GPU_LIST_THREADS = 256 };

/* *mean = (the sum of n numbers in 256 lanes) / count; one block. */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    mean_kernel(const float *x, size_t n, float count, float *mean)
{
    GPU_SHARED(float, s, [GPU_LIST_THREADS]);
    const unsigned t = threadIdx.x;
    float own = 0;
    for (size_t i = t; i < n; i += GPU_LIST_THREADS)
        own = __fadd_rn(own, x[i]);
    s[t] = own;
    __syncthreads();
    for (unsigned h = GPU_LIST_THREADS / 2; h > 0; h /= 2) {
        if (t < h)
            s[t] = __fadd_rn(s[t], s[t + h]);
        __syncthreads();
    }
    if (t == 0)
        *mean = __fdiv_rn(s[0], count);
}

/* ---- sums of squares ----
 *
 * A square of a binary32 number is an integer of at most 48 bits times 2^e, e >= -298: its bits go
 * to limbs of 32 bits, each kept in 64, so that 2^31 squares need no carry. The exact sum, in any
 * order. */
enum {
    GPU_SQUARES_LOWEST = -320, /* exponent of bit 0 of limb 0 */
    GPU_SQUARES_LIMBS = 20     /* to 2^320 */
};

struct gpu_squares {
    gpu_word limb[GPU_SQUARES_LIMBS];
    unsigned found; /* 1: a NaN, 2: an infinity */
};

struct gpu_square_run { /* what a thread adds to three neighbouring limbs before it gives it away */
    int at;
    gpu_word low, middle, high;
};

static __device__ __forceinline__ void gpu_squares_give(gpu_word *limb, const gpu_square_run &r)
{
    if (r.low)
        atomicAdd(limb + r.at, r.low);
    if (r.middle)
        atomicAdd(limb + r.at + 1, r.middle);
    if (r.high)
        atomicAdd(limb + r.at + 2, r.high);
}

GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    squares_kernel(const __grid_constant__ gpu_format f, const void *x, size_t n, gpu_squares *sum)
{
    GPU_SHARED(gpu_word, limb, [GPU_SQUARES_LIMBS + 2]);
    gpu_square_run run = {0, 0, 0, 0};
    unsigned found = 0;
    if (threadIdx.x < GPU_SQUARES_LIMBS + 2)
        limb[threadIdx.x] = 0;
    __syncthreads();
    GPU_FOR(i, n) {
        const uint32_t a = __float_as_uint(gpu_value(f, x, i)) & 0x7fffffffu, e = a >> 23;
        if (e == 255) {
            found |= a > 0x7f800000u ? 1u : 2u;
            continue;
        }
        const uint32_t significand = e ? (a & 0x7fffffu) | 0x800000u : a;
        const gpu_word square = (gpu_word)significand * significand; /* times 2^exp */
        const int exp = 2 * ((int)(e ? e : 1) - 150) - GPU_SQUARES_LOWEST, shift = exp & 31;
        if (exp >> 5 != run.at) {
            gpu_squares_give(limb, run);
            run.at = exp >> 5;
            run.low = run.middle = run.high = 0;
        }
        const gpu_word low = square << shift;
        run.low += low & 0xffffffffu;
        run.middle += low >> 32;
        run.high += shift ? square >> (64 - shift) : 0;
    }
    gpu_squares_give(limb, run);
    __syncthreads();
    if (threadIdx.x < GPU_SQUARES_LIMBS && limb[threadIdx.x])
        atomicAdd(&sum->limb[threadIdx.x], limb[threadIdx.x]);
    if (found)
        atomicOr(&sum->found, found);
}

/* The norm, as mpsim_norm rounds it: the sum to binary64, its root to binary64, then to f. */
static inline float gpu_squares_norm(const gpu_squares *q, const mpsim_format *f)
{
    mpsim_sum s;
    uint64_t carry = 0;
    mpsim_sum_init(&s);
    if (q->found & 1)
        return NAN;
    if (q->found)
        return INFINITY;
    s.first = (GPU_SQUARES_LOWEST + 2176) / 32;
    s.end = (uint16_t)(s.first + GPU_SQUARES_LIMBS + 1);
    for (int i = 0; i < GPU_SQUARES_LIMBS; i++) {
        const uint64_t low = (q->limb[i] & 0xffffffffu) + (carry & 0xffffffffu);
        s.limb[s.first + i] = (int64_t)(low & 0xffffffffu);
        carry = (q->limb[i] >> 32) + (carry >> 32) + (low >> 32);
    }
    s.limb[s.end - 1] = (int64_t)carry;
    double root = sqrt(mpsim_sum_value(&s));
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (f)
        mpsim_round_array_f64(f, &r, NULL, &root, &root, 1, NULL);
    return (float)root;
}

#endif
