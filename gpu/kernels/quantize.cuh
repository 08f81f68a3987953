/* quantize.cuh -- block recipes on a device: per tensor, and per blocks whose columns are multiples
 * of 32. The scales are those of lib/block/scale.c (TransformerEngine's rules), the elements
 * saturate. */
#ifndef MPSIM_GPU_KERNELS_QUANTIZE_CUH
#define MPSIM_GPU_KERNELS_QUANTIZE_CUH

#include "codes.cuh"

enum gpu_scale_rule {
    GPU_SCALE_NONE, /* amax only                                     */
    GPU_SCALE_ONE,  /* one factor for the tensor                     */
    GPU_SCALE_E8M0, /* MPSIM_SCALE_E8M0_TE of a block's amax         */
    GPU_SCALE_AMAX  /* MPSIM_SCALE_AMAX_TE of a block's amax         */
};

enum { GPU_TILE = 32, GPU_TILE_ROWS = 8 };

struct gpu_quantize {
    gpu_format from, element,
        to;            /* to: the element's format, or bf16 with the scale multiplied in */
    size_t rows, cols; /* of y                                                 */
    size_t block_rows, block_cols, grid_cols; /* extents of a block; blocks in a row      */
    int transposed, per_tensor;
    int rule;     /* gpu_scale_rule                                                */
    int in_warp;  /* 1: blocks of 1 x 32, whose amax a warp finds itself           */
    float factor; /* GPU_SCALE_ONE                                                 */
    float max, epsilon, for_inf;
    int power_of_two;
    unsigned *block_amax; /* bits, of every block, or NULL                                */
    unsigned *amax;       /* bits, of the tensor, or NULL                                 */
    gpu_word *counts;
};

struct gpu_factor {
    float factor, inverse;
};

/* 2^e for -149 <= e <= 127. */
static __device__ __forceinline__ float gpu_power_of_two(int e)
{
    return __uint_as_float(e < -126 ? 1u << (e + 149) : (unsigned)(e + 127) << 23);
}

/* amax times 1 / max, rounded up to a power of two; infinity has code 254. 2^-127 is one. */
static __device__ __forceinline__ gpu_factor gpu_factor_e8m0(float amax, float max)
{
    const float v = __fmul_rn(amax, __fdiv_rn(1, max));
    const uint32_t u = __float_as_uint(v), e = u >> 23, m = u & 0x7fffffu;
    const int up = e == 0 ? m > 0x400000u : m != 0;
    const int code = v > 0x1p127f ? 254 : (int)e + up;
    gpu_factor s;
    s.factor = gpu_power_of_two(127 - code);
    s.inverse = gpu_power_of_two(code - 127);
    return s;
}

/* mpsim_fp8_scale */
static __device__ __forceinline__ gpu_factor gpu_factor_amax(const gpu_quantize &q, float amax)
{
    gpu_factor s;
    if (amax < q.epsilon)
        amax = q.epsilon;
    s.factor = 1;
    if (gpu_is_finite(amax) && amax != 0) {
        s.factor = __fdiv_rn(q.max, amax);
        if (!gpu_is_finite(s.factor))
            s.factor = q.for_inf;
        if (q.power_of_two)
            s.factor = __uint_as_float(__float_as_uint(s.factor) & 0xff800000u);
    }
    s.inverse = __fdiv_rn(1, s.factor);
    return s;
}

static __device__ __forceinline__ gpu_factor gpu_factor_of(const gpu_quantize &q, unsigned amax)
{
    if (q.rule == GPU_SCALE_E8M0)
        return gpu_factor_e8m0(__uint_as_float(amax), q.max);
    if (q.rule == GPU_SCALE_AMAX)
        return gpu_factor_amax(q, __uint_as_float(amax));
    gpu_factor s;
    s.factor = q.factor;
    s.inverse = __fdiv_rn(1, q.factor);
    return s;
}

/* An element: x times the factor, cast, and scaled back where blocks have their own scales. Counts
 * as mpsim_blocks.casts does. */
static __device__ __forceinline__ void gpu_quantize_one(const gpu_quantize &q, void *y, size_t at,
                                                        float x, gpu_factor s, gpu_counter *c)
{
    const float scaled = __fmul_rn(x, s.factor);
    gpu_code code = gpu_encode(q.element, GPU_SATURATE, scaled);
    const int lost = gpu_is_zero_code(q.element, code.code);
    int overflow = code.overflow + !gpu_is_finite(scaled);
    const float element = gpu_decode(q.element, code.code);
    const float value = __fmul_rn(element, s.inverse);
    overflow += gpu_is_finite(element) && !gpu_is_finite(value);
    if (!q.per_tensor)
        code = gpu_encode(q.to, GPU_NEAREST, value);
    gpu_store(q.to, y, at, code.code);
    if (gpu_is_finite(x)) {
        c->nonzero += x != 0;
        c->lost += x != 0 && lost;
        c->overflow += (unsigned)overflow;
    }
    c->nonfinite += gpu_is_nonfinite_code(q.to, code.code);
}

/* A block of 32 x 8 threads has a tile of 32 x 32 elements of y; a warp has the rows r, r + 8, ...
 * of it. */
GPU_KERNEL void __launch_bounds__(GPU_TILE * GPU_TILE_ROWS)
    quantize_kernel(const __grid_constant__ gpu_quantize q, void *y, const void *x)
{
    GPU_SHARED(float, tile, [GPU_TILE][GPU_TILE + 1]);
    gpu_counter counter;
    const unsigned c = threadIdx.x, r = threadIdx.y;
    const size_t tiles = (q.cols + GPU_TILE - 1) / GPU_TILE;
    const size_t top = blockIdx.x / tiles * GPU_TILE, left = blockIdx.x % tiles * GPU_TILE;
    for (unsigned k = r; k < GPU_TILE; k += GPU_TILE_ROWS) {
        const size_t row = q.transposed ? left + k : top + k,
                     col = q.transposed ? top + c : left + c;
        const size_t rows = q.transposed ? q.cols : q.rows, cols = q.transposed ? q.rows : q.cols;
        tile[k][c] = row < rows && col < cols ? gpu_value(q.from, x, row * cols + col) : 0;
    }
    __syncthreads();
    unsigned most = 0;
    for (unsigned k = r; k < GPU_TILE; k += GPU_TILE_ROWS) {
        const size_t row = top + k, col = left + c, at = row * q.cols + col;
        const size_t block = row / q.block_rows * q.grid_cols + left / q.block_cols;
        const float v = q.transposed ? tile[c][k] : tile[k][c];
        const int inside = row < q.rows && col < q.cols;
        unsigned amax = __float_as_uint(v) & 0x7fffffffu;
        amax = amax > 0x7f800000u ? 0 : amax; /* NaN is dropped */
        if (q.amax || q.in_warp || q.rule == GPU_SCALE_NONE) {
            for (int h = 16; h > 0; h /= 2) {
                const unsigned other = __shfl_xor_sync(0xffffffffu, amax, h);
                amax = other > amax ? other : amax;
            }
            most = amax > most ? amax : most;
        }
        if (q.rule == GPU_SCALE_NONE) {
            if (q.block_amax && c == 0 && row < q.rows)
                atomicMax(q.block_amax + block, amax);
        } else if (inside) {
            const int own = q.in_warp || q.rule == GPU_SCALE_ONE;
            gpu_quantize_one(q, y, at, v, gpu_factor_of(q, own ? amax : q.block_amax[block]),
                             &counter);
        }
    }
    if (q.amax && c == 0)
        atomicMax(q.amax, most);
    if (q.rule != GPU_SCALE_NONE)
        counter.give(q.counts);
}

#endif
