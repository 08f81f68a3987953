/* exact.cuh -- exact sums of products (mpsim/dot.h: EXACT) that are rounded to binary32, to nearest even, by tiles.
 *
 * Two sums in binary64 begin with the same number. One takes each product toward -infinity, the other toward +infinity: the exact
 * sum lies between them. As roundings are monotone, it is rounded as both are if these agree. They are most often equal: a
 * binary64 number holds products of 22 bits whose exponents differ by 30. A sum whose bounds are rounded to different numbers
 * becomes a NaN, which stays, and the reference computes that result; so it does for NaNs.
 *
 * What bounds it (gpu/sassproducts.sh): two multiply-adds of binary64 a product: 7 10^12 products a second on an H100. */
#pragma once

#include "exact.h"

namespace library
{

typedef double exact_sums[TILE_SIDE][TILE_SIDE];

struct exact_bounds {
    exact_sums low, high;
};

enum { EXACT_BIAS = 1023 };

static __device__ __forceinline__ double exact_unknown()
{
    return __hiloint2double(0x7ff80000, 0);
}

/* Bounds that are no usual numbers, or differ, rounded. */
static __device__ GPU_NOINLINE double exact_rare(double low, double high, int flush)
{
    const float x = static_cast<float>(low), y = static_cast<float>(high);
    if (low == 0 && high == 0)
        return 0;
    /* below the normal numbers also 2^-126 may be a number that is flushed */
    if (__float_as_uint(x) != __float_as_uint(y) || (flush && fabsf(x) <= 0x1p-126f))
        return exact_unknown();
    return static_cast<double>(x);
}

/* A binary64 number with a usual exponent, rounded to binary32. */
static __device__ __forceinline__ double exact_nearest(double x)
{
    const double units = __hiloint2double((__double2hiint(x) & 0x7ff00000) + 29 * 0x100000 + 0x80000, 0);
    return __dadd_rn(__dadd_rn(x, units), -units);
}

static __device__ __forceinline__ int exact_is_rare(double low, double high)
{
    const uint32_t place = static_cast<uint32_t>(__double2hiint(low)) * 2u;
    return low != high || place - ((EXACT_BIAS - 126u) << 21) >= 253u << 21;
}

static __device__ __forceinline__ void exact_round(exact_sums &s, const exact_bounds &b, int flush)
{
    int rare = 0;
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        rare |= exact_is_rare(b.low[i / TILE_SIDE][i % TILE_SIDE], b.high[i / TILE_SIDE][i % TILE_SIDE]);
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        s[i / TILE_SIDE][i % TILE_SIDE] = exact_nearest(b.low[i / TILE_SIDE][i % TILE_SIDE]);
    if (!rare)
        return;
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const double low = b.low[i / TILE_SIDE][i % TILE_SIDE], high = b.high[i / TILE_SIDE][i % TILE_SIDE];
        if (exact_is_rare(low, high))
            s[i / TILE_SIDE][i % TILE_SIDE] = exact_rare(low, high, flush);
    }
}

/* ---- a tile ---- */

struct alignas(16) exact_two {
    double v[2];
};

static __device__ __forceinline__ void exact_product_of(exact_bounds &s, const double *a, const double *b)
{
    double x[TILE_SIDE], y[TILE_SIDE];
    GPU_UNROLL
    for (int i = 0; i < 2; i++) {
        const exact_two c = *reinterpret_cast<const exact_two *>(a + 2 * i);
        const exact_two d = *reinterpret_cast<const exact_two *>(b + i * (TILE_LINES / 2));
        x[2 * i] = c.v[0], x[2 * i + 1] = c.v[1];
        y[2 * i] = d.v[0], y[2 * i + 1] = d.v[1];
    }
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        double &low = s.low[i / TILE_SIDE][i % TILE_SIDE], &high = s.high[i / TILE_SIDE][i % TILE_SIDE];
        low = __fma_rd(x[i / TILE_SIDE], y[i % TILE_SIDE], low);
        high = __fma_ru(x[i / TILE_SIDE], y[i % TILE_SIDE], high);
    }
}

static __device__ __forceinline__ void exact_begin(exact_bounds &b, const exact_sums &s)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        b.low[i / TILE_SIDE][i % TILE_SIDE] = b.high[i / TILE_SIDE][i % TILE_SIDE] = s[i / TILE_SIDE][i % TILE_SIDE];
}

/* The sum of a chunk, rounded, to the sums so far; the next one from +0. */
static __device__ __forceinline__ void exact_chunk(exact_sums &s, exact_bounds &b, int flush)
{
    exact_sums t;
    exact_round(t, b, flush);
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const double sum = __dadd_rn(s[i / TILE_SIDE][i % TILE_SIDE], t[i / TILE_SIDE][i % TILE_SIDE]);
        b.low[i / TILE_SIDE][i % TILE_SIDE] = b.high[i / TILE_SIDE][i % TILE_SIDE] = sum;
    }
    exact_round(s, b, flush); /* the second rounding of a sum of two such numbers changes nothing */
    exact_sums none = {};
    exact_begin(b, none);
}

static __device__ __forceinline__ void exact_start(exact_sums &s, const product_arguments &p, const matrix_places &at,
                                                   int64_t row, int64_t column)
{
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const int64_t x = row + i / TILE_SIDE, y = column + i % TILE_SIDE / 2 * (TILE_LINES / 2) + i % 2;
        s[i / TILE_SIDE][i % TILE_SIDE] = p.start.codes && x < p.shape.rows && y < p.shape.columns
                                              ? static_cast<double>(addend_at<float>(p.start, at.start, x, y))
                                              : 0.0;
    }
}

/* L: products of an addition; 0: all, or chunks. */
template <int L, int CHUNKED>
GPU_KERNEL void __launch_bounds__(TILE_THREADS, 1)
    exact_tile_kernel(GPU_CONSTANT(product_arguments) p, GPU_CONSTANT(exact_product) f, const unsigned char *entered_a,
                      const unsigned char *entered_b, unsigned char *left_alone)
{
    GPU_SHARED(exact_two, room, [TILE_DEEP * TILE_PITCH]);
    double(*const a)[TILE_PITCH] = reinterpret_cast<double(*)[TILE_PITCH]>(&room[0]);
    double(*const b)[TILE_PITCH] = a + TILE_DEEP;
    const product_shape &g = p.shape;
    const tile_work w = tile_work_of(p, f.tiles, entered_a, entered_b);
    const int row = static_cast<int>(threadIdx.x) / 16 * TILE_SIDE, column = threadIdx.x % 16 * 2;
    const tile_reading read_a = tile_reading_of(p.a, f.flush_in, p.model.traits),
                       read_b = tile_reading_of(p.b, f.flush_in, p.model.traits);
    exact_sums s;
    exact_bounds sums;
    int left = f.chunk;
    exact_start(s, p, w.at, w.row0 + row, w.column0 + column);
    exact_begin(sums, s);
    GPU_ROLLED
    for (int64_t k0 = 0; k0 < g.depth; k0 += TILE_DEEP) {
        const int deep = tile_stage(a, b, g, f.tiles, w, k0, read_a, read_b);
        for (int k = 0; k < deep;) {
            if (L) {
                GPU_UNROLL
                for (int i = 0; i < L; i++) /* zeros fill the last addition up */
                    exact_product_of(sums, &a[k + i][row], &b[k + i][column]);
                k += L;
                exact_round(s, sums, f.flush_out);
                exact_begin(sums, s);
                continue;
            }
            const int end = CHUNKED && left < deep - k ? k + left : deep;
            left -= end - k;
#if !GPU_ON_HOST
#pragma unroll 2
#endif
            for (; k < end; k++)
                exact_product_of(sums, &a[k][row], &b[k][column]);
            if (CHUNKED && left == 0) {
                left = f.chunk;
                exact_chunk(s, sums, f.flush_out);
            }
        }
        __syncthreads();
    }
    if (CHUNKED && left != f.chunk)
        exact_chunk(s, sums, f.flush_out);
    if (!CHUNKED && !L) /* a -0 that the last addition of L was rounded to stays */
        exact_round(s, sums, 0);
    float *const results = reinterpret_cast<float *>(room);
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        results[(row + i / TILE_SIDE) * TILE_LINES + column + i % TILE_SIDE / 2 * (TILE_LINES / 2) + i % 2] =
            static_cast<float>(s[i / TILE_SIDE][i % TILE_SIDE]);
    __syncthreads();
    tile_finish(p, w, results, left_alone);
}

} // namespace library
