/* tile.cuh -- what tiles of chains (chain.cuh) and of exact sums (exact.cuh) share: which results a block has, 64 x 64 of them,
 * operands decoded once to shared memory, 16 products at a time, 4 x 4 results a thread; what is left to the reference; the way
 * to d. */
#pragma once

#include "product.cuh"

#include "../kernels/usual.cuh"

extern "C" { /* a header of C */
#include "../../lib/dot/shape.h"
}

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

/* ---- the tile of a block of threads ---- */

/* How operands are read, and tiles of a matrix. */
struct tile_plan {
    tile_codes a, b;
    int64_t tiles_m, tiles_n;
};

struct tile_work {
    int64_t matrix, row0, column0;
    matrix_places at;
    codes_line a, b;
    int64_t apart_a, apart_b;
};

static __device__ __forceinline__ tile_work tile_work_of(const product_arguments &p, const tile_plan &f,
                                                         const unsigned char *entered_a, const unsigned char *entered_b)
{
    const product_shape &g = p.shape;
    const int64_t tiles = f.tiles_m * f.tiles_n, tile = blockIdx.x % tiles;
    tile_work w;
    w.matrix = blockIdx.x / tiles;
    w.row0 = tile / f.tiles_n * TILE_LINES;
    w.column0 = tile % f.tiles_n * TILE_LINES;
    w.at = places_of(p, w.matrix);
    w.a = line_of(p.a, entered_a, g.rows, g.depth, w.matrix, w.at.a, 0);
    w.b = line_of(p.b, entered_b, g.columns, g.depth, w.matrix, w.at.b, 0);
    w.apart_a = entered_a ? g.depth : p.a.at.row;
    w.apart_b = entered_b ? g.depth : p.b.at.row;
    return w;
}

/* Products k0 on of both operands; how many there are. */
template <class T>
static __device__ __forceinline__ int tile_stage(T (*a)[TILE_PITCH], T (*b)[TILE_PITCH], const product_shape &g,
                                                 const tile_plan &f, const tile_work &w, int64_t k0,
                                                 const tile_reading &read_a, const tile_reading &read_b)
{
    tile_load(a, w.a, f.a, w.apart_a, w.row0, g.rows, k0, g.depth, read_a);
    tile_load(b, w.b, f.b, w.apart_b, w.column0, g.columns, k0, g.depth, read_b);
    __syncthreads();
    return g.depth - k0 < TILE_DEEP ? static_cast<int>(g.depth - k0) : int(TILE_DEEP);
}

/* ---- results ---- */

/* Results of a tile to d; sums: 64 x 64, in shared memory. What is a NaN is left to the reference (walk_filter): left is 1 there. */
static __device__ GPU_NOINLINE void tile_finish(const product_arguments &p, const tile_work &w, const float *sums,
                                                unsigned char *left)
{
    const product_shape &g = p.shape;
    const end_scales v = scales_of(p);
    end_counts c = {{0, 0, 0, 0}};
    GPU_ROLLED
    for (int n = static_cast<int>(threadIdx.x); n < TILE_LINES * TILE_LINES; n += TILE_THREADS) {
        const int64_t i = w.row0 + n / TILE_LINES, j = w.column0 + n % TILE_LINES;
        if (i >= g.rows || j >= g.columns)
            continue;
        const float s = sums[n];
        left[(w.matrix * g.rows + i) * g.columns + j] = s != s;
        if (s == s)
            finish_f32(p, w.at, v, i, j, s, &c);
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

/* 1: tiles can read the operands, whose numbers are binary32's, and a launch has all tiles. */
static inline int set_tiles(tile_plan *f, const product_arguments &p)
{
    const product_shape &g = p.shape;
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    if (p.end.wide || g.depth == 0 || g.rows == 0 || g.columns == 0 || g.matrices == 0 ||
        !mpsim_is_within(&p.a.multiplied, binary32) || !mpsim_is_within(&p.b.multiplied, binary32))
        return 0;
    f->a = tile_codes_of(p.a.multiplied);
    f->b = tile_codes_of(p.b.multiplied);
    f->tiles_m = (g.rows + TILE_LINES - 1) / TILE_LINES;
    f->tiles_n = (g.columns + TILE_LINES - 1) / TILE_LINES;
    return f->tiles_m * f->tiles_n <= 0x7fffffff / g.matrices;
}

static inline unsigned blocks_of_tiles(const tile_plan &f, const product_arguments &p)
{
    return static_cast<unsigned>(f.tiles_m * f.tiles_n * p.shape.matrices);
}

} // namespace library
