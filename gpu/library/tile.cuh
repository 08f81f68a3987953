/* tile.cuh -- what tiles of chains (chain.cuh) and of exact sums (exact.cuh) share: 64 x 64 results, operands decoded once to shared
 * memory, 16 products at a time, 4 x 4 results a thread; what is left to the reference; the way to d. */
#pragma once

#include "product.cuh"

#include "../kernels/usual.cuh"

namespace library
{

enum { TILE_LINES = 64, TILE_DEEP = 16, TILE_PITCH = 68, TILE_THREADS = 256, TILE_SIDE = 4 };

/* How codes become values; others by the reference. */
enum tile_codes { TILE_OF_BINARY32, TILE_OF_BF16, TILE_OF_FP16, TILE_OF_E4M3, TILE_OF_E5M2, TILE_OF_OTHERS };

/* ---- operands ---- */

static __device__ GPU_NOINLINE float tile_value_of_others(const codes_line &x, int64_t i)
{
    float y;
    number_to(mpsim_scalar_unpack(x.format, load_code(x.codes, x.bytes, i)), &y);
    return y;
}

static __device__ __forceinline__ float tile_value(const codes_line &x, tile_codes how, int64_t i)
{
    switch (how) {
    case TILE_OF_BINARY32:
        return reinterpret_cast<const float *>(x.codes)[i];
    case TILE_OF_BF16:
        return gpu_any<gpu_bf16>(reinterpret_cast<const uint16_t *>(x.codes)[i]);
    case TILE_OF_FP16:
        return gpu_any<gpu_fp16>(reinterpret_cast<const uint16_t *>(x.codes)[i]);
    case TILE_OF_E4M3:
        return gpu_any<gpu_e4m3>(x.codes[i]);
    case TILE_OF_E5M2:
        return gpu_any<gpu_e5m2>(x.codes[i]);
    default:
        return tile_value_of_others(x, i);
    }
}

/* What stands for numbers that are not there, and which are read as zeros: those smaller than `least`. */
struct tile_reading {
    float fill, least;
    uint32_t sign; /* of zeros that stay: a mask */
};

/* 2^e, of a format within binary32, whose normal numbers may be subnormal ones here. */
static __device__ __forceinline__ float tile_power_of_two(int e)
{
    return __uint_as_float(e < -126 ? 1u << (e + 149) : static_cast<uint32_t>(e + 127) << 23);
}

static __device__ __forceinline__ tile_reading tile_reading_of(const product_operand &o, int flush, unsigned traits)
{
    const tile_reading r = {0, flush ? tile_power_of_two(mpsim_emin(&o.multiplied)) : 0.0f,
                            traits & MPSIM_TRAIT_PLUS_ZERO ? 0 : 0x80000000u};
    return r;
}

/* Lines first to first + 63 of an operand, products k0 to k0 + 15. x: line 0; apart: from line to line. */
template <class T>
static __device__ __forceinline__ void tile_load(T (*to)[TILE_PITCH], const codes_line &x, tile_codes how,
                                                 int64_t apart, int64_t first, int64_t lines, int64_t k0, int64_t depth,
                                                 const tile_reading &r)
{
    const int along = x.step == 1;
    GPU_ROLLED
    for (int n = 0; n < TILE_LINES * TILE_DEEP / TILE_THREADS; n++) {
        const int i = n * TILE_THREADS + static_cast<int>(threadIdx.x);
        const int line = along ? i / TILE_DEEP : i % TILE_LINES, k = along ? i % TILE_DEEP : i / TILE_LINES;
        const int is = first + line < lines && k0 + k < depth;
        const float v = is ? tile_value(x, how, x.first + (first + line) * apart + (k0 + k) * x.step) : r.fill;
        to[k][line] = static_cast<T>(is && fabsf(v) < r.least ? __uint_as_float(__float_as_uint(v) & r.sign) : v);
    }
}

static __device__ __forceinline__ int64_t apart_of(const product_operand &o, const unsigned char *entered,
                                                   int64_t depth)
{
    return entered ? depth : o.at.row;
}

/* ---- results ---- */

/* Results of a tile to d; sums: 64 x 64, in shared memory. What is a NaN is left to the reference (walk_filter): left is 1 there. */
static __device__ GPU_NOINLINE void tile_finish(const product_arguments &p, const matrix_places &at, int64_t matrix,
                                                int64_t row, int64_t column, const float *sums, unsigned char *left)
{
    const product_shape &g = p.shape;
    const end_scales v = scales_of(p);
    end_counts c = {{0, 0, 0, 0}};
    GPU_ROLLED
    for (int n = static_cast<int>(threadIdx.x); n < TILE_LINES * TILE_LINES; n += TILE_THREADS) {
        const int64_t i = row + n / TILE_LINES, j = column + n % TILE_LINES;
        if (i >= g.rows || j >= g.columns)
            continue;
        const float s = sums[n];
        left[(matrix * g.rows + i) * g.columns + j] = s != s;
        if (s == s)
            finish_f32(p, at, v, i, j, s, &c);
    }
    give_counts(p.end, c);
}

/* ---- on the host ---- */

static inline tile_codes tile_codes_of(const mpsim_format &f)
{
    static int (*const is[TILE_OF_OTHERS])(const mpsim_format *) = {gpu_is_usual<gpu_binary32>, gpu_is_usual<gpu_bf16>,
                                                                    gpu_is_usual<gpu_fp16>, gpu_is_usual<gpu_e4m3>,
                                                                    gpu_is_usual<gpu_e5m2>};
    int k = 0;
    while (k < TILE_OF_OTHERS && !is[k](&f))
        k++;
    return static_cast<tile_codes>(k);
}

} // namespace library
