/* gemm_finish.cuh -- what all matrix products share: arguments of a kernel, words of an operand,
 * and the way from a sum to its place in the result. */
#pragma once

#include "fragments.cuh"
#include "gemm.h"
#include "list.cuh"

#include <train/engine.h>

/* ---- arguments of a kernel ---- */

struct gpu_lines { /* an operand; lines are rows of a, columns of b */
    const unsigned char *at;
    size_t stride, lines; /* elements */
    int along;            /* 1: the depth is contiguous, else the lines are */
    int shift;            /* bytes of an element: 1 << shift */
    int aligned;          /* address, stride and apart are multiples of 16 bytes */
    size_t apart;         /* bytes from a matrix of the stack to the next */
};

/* Formats of results that kernels know when they are compiled, nothing added to what is there; any. */
enum gpu_result { GPU_RESULT_ANY, GPU_RESULT_BINARY32, GPU_RESULT_F16, GPU_RESULT_BF16 };

struct gpu_finish { /* the result */
    gpu_result result;
    int scaled, pairs; /* pairs: two neighbours in a row may be stored at once */
    int pieces;        /* 16 bytes of a row, from a multiple of 16 on, may be, too */
    int start;         /* train_start */
    float factor;
    const void *bias; /* or NULL */
    unsigned char *d;
    size_t rows, columns, stride;
    size_t apart; /* bytes from a matrix of the stack to the next */
    gpu_word *counts;
};

struct gpu_job {
    gpu_lines a, b;
    gpu_factors a_factors, b_factors; /* of products whose sums are GPU_SUMS_FACTORED */
    size_t depth;                     /* after the limit */
    unsigned tiles_m, tiles_n;        /* of a matrix of the stack */
    unsigned shared;                  /* matrices of d that take the same of b */
    unsigned first, blocks;           /* of the grid: all tiles of all matrices */
    unsigned to;                      /* number of the result's format in gpu_formats */
    gpu_finish out;
};

/* Apart, since several products of a launch have them in common; results are in one of the two in `out`. */
struct gpu_formats {
    gpu_format a, b, bias, out[2];
};

typedef gpu_list<gpu_job, GPU_GEMM_AT_ONCE> gpu_jobs;
static_assert(sizeof(gpu_jobs) + sizeof(gpu_formats) <= GPU_LIST_PARAMETERS, "too many");

/* Where sums stay: in the tensor core; or they leave it every 128 products, to be added to others, after
 * they have been multiplied by the factors of their block or not. */
enum gpu_sums { GPU_SUMS_KEPT, GPU_SUMS_PROMOTED, GPU_SUMS_FACTORED };

/* In gemm_wgmma.cu, compiled for sm_90a. types: GPU_TYPES_*; wide: tiles of 256 columns, for sums that are
 * kept and begin with +0; the others are of FP8. */
cudaError_t gpu_gemm_wgmma_launch(const gpu_formats *f, const gpu_job *j, int types, int wide, gpu_sums sums,
                                  cudaStream_t stream);

/* In gemm_tma.cu, the same. tiles_m counts pairs of 128 rows; tiles have 256 columns, or 128 of sums that leave the tensor
 * core. Operands are aligned, there is depth, and FP8 lies along it; sums begin with +0. */
cudaError_t gpu_gemm_tma_launch(const gpu_formats *f, const gpu_job *j, int types, size_t stacks, gpu_sums sums,
                                cudaStream_t stream);

/* ---- matrices of a stack: a grid has the tiles of the first, then those of the second, ... ---- */

static __device__ __forceinline__ unsigned gpu_stack(const gpu_job &j)
{
    return (blockIdx.x - j.first) / (j.tiles_m * j.tiles_n);
}

static __device__ __forceinline__ const unsigned char *gpu_a(const gpu_job &j)
{
    return j.a.at + gpu_stack(j) * j.a.apart;
}

static __device__ __forceinline__ const unsigned char *gpu_b(const gpu_job &j)
{
    return j.b.at + gpu_stack(j) / j.shared * j.b.apart;
}

static __device__ __forceinline__ unsigned char *gpu_d(const gpu_job &j)
{
    return j.out.d + gpu_stack(j) * j.out.apart;
}

/* ---- operands ---- */

static __host__ __device__ constexpr int gpu_types_shift(int types)
{
    return types >= GPU_TYPES_E4M3_E4M3 ? 0 : types == GPU_TYPES_TF32 ? 2 : 1;
}

template <int SHIFT>
static __device__ __forceinline__ uint32_t gpu_element(const unsigned char *p, size_t i)
{
    if constexpr (SHIFT == 0)
        return p[i];
    if constexpr (SHIFT == 1)
        return reinterpret_cast<const uint16_t *>(p)[i];
    return reinterpret_cast<const uint32_t *>(p)[i];
}

/* Elements k, k + 1, ... of a line of the matrix at `from` as 32 bits; zeros outside. A code of tf32 has
 * its 19 bits at the top of the word. */
template <int TYPES>
static __device__ __forceinline__ uint32_t gpu_packed(const gpu_lines &x, const unsigned char *from, size_t line,
                                                      size_t k, size_t depth)
{
    constexpr int SHIFT = gpu_types_shift(TYPES), PER = 4 >> SHIFT;
    constexpr unsigned LEFT = TYPES == GPU_TYPES_TF32 ? 13 : 0;
    uint32_t word = 0;
    if (line >= x.lines || k >= depth)
        return 0;
    if (x.along) {
        const unsigned char *at = from + ((line * x.stride + k) << SHIFT);
        if (k + PER <= depth && (reinterpret_cast<uintptr_t>(at) & 3) == 0)
            return *reinterpret_cast<const uint32_t *>(at) << LEFT;
#pragma unroll
        for (int i = 0; i < PER; i++)
            if (k + i < depth)
                word |= gpu_element<SHIFT>(at, i) << (8u * i << SHIFT);
        return word << LEFT;
    }
    const unsigned char *at = from + ((k * x.stride + line) << SHIFT);
#pragma unroll
    for (int i = 0; i < PER; i++)
        if (k + i < depth)
            word |= gpu_element<SHIFT>(at, i * x.stride) << (8u * i << SHIFT);
    return word << LEFT;
}

/* Neighbouring blocks share lines of both operands, for the sake of the L2 cache: tiles go in
 * groups of eight rows of tiles, column by column. */
static __device__ __forceinline__ void gpu_tile(const gpu_job &j, unsigned *m, unsigned *n)
{
    const unsigned tile = (blockIdx.x - j.first) % (j.tiles_m * j.tiles_n);
    const unsigned group = 8 * j.tiles_n, first = tile / group * 8;
    const unsigned rows = j.tiles_m - first < 8 ? j.tiles_m - first : 8;
    *m = first + tile % group % rows;
    *n = tile % group / rows;
}

/* ---- results ---- */

/* What the chain of an element begins with. */
static __device__ __forceinline__ float gpu_begin(const gpu_job &j, size_t row, size_t column)
{
    if (j.out.start != TRAIN_FROM_SUM || row >= j.out.rows || column >= j.out.columns)
        return 0;
    return reinterpret_cast<const float *>(gpu_d(j))[row * j.out.stride + column];
}

/* f with the fields that its format decides as constants, so that a compiler drops the other cases. */
template <gpu_result RESULT>
static __host__ __device__ __forceinline__ gpu_format gpu_fixed(gpu_format f)
{
    constexpr bool SINGLE = RESULT == GPU_RESULT_BINARY32, HALF = RESULT == GPU_RESULT_F16;
    f.kind = SINGLE ? GPU_BINARY32 : GPU_BITS;
    f.bytes = SINGLE ? 4 : 2;
    f.mbits = SINGLE ? 23 : HALF ? 10 : 7;
    f.shift = 23 - f.mbits;
    f.mask = SINGLE ? 0x7fffffff : 0x7fff;
    f.sign = f.mask + 1;
    f.max = SINGLE ? 0x7f7fffff : HALF ? 0x7bff : 0x7f7f;
    f.inf = f.max + 1;
    if constexpr (!SINGLE) {
        f.convert = HALF ? GPU_CVT_F16 : GPU_CVT_BF16;
        f.least = HALF ? 0x38800000 : 0x00800000;
        f.limit = HALF ? 0x477ff000 : 0x7f7f8000;
    }
    return f;
}

/* Two neighbours of a row, of which n are there: their sums s to place `at` of the matrix at d. */
template <gpu_result RESULT>
static __device__ __forceinline__ void gpu_finish_pair(const gpu_finish &o, const gpu_format &f, unsigned char *d,
                                                       size_t at, int n, const float *s, const float bias[2],
                                                       gpu_counter *c)
{
    uint32_t code[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (k == n)
            break;
        float x = s[k];
        if (o.scaled)
            x = __fmul_rn(x, o.factor);
        if (o.bias)
            x = __fadd_rn(x, bias[k]);
        if (RESULT == GPU_RESULT_ANY && o.start == TRAIN_ADD_TO)
            x = __fadd_rn(reinterpret_cast<const float *>(d)[at + k], x);
        const gpu_code y = gpu_encode(f, GPU_NEAREST, x);
        c->add(f, x, y);
        code[k] = y.code;
    }
    if (n == 2 && o.pairs && f.bytes == 2) {
        *reinterpret_cast<uint32_t *>(d + 2 * at) = code[0] | code[1] << 16;
    } else if (n == 2 && o.pairs && f.bytes == 4) {
        *reinterpret_cast<uint2 *>(d + 4 * at) = make_uint2(code[0], code[1]);
    } else {
        gpu_store(f, d, at, code[0]);
        if (n == 2)
            gpu_store(f, d, at + 1, code[1]);
    }
}

/* Sums of a tile in shared memory: lines of `columns` binary32 numbers, GPU_SUMS_PAD more from line
 * to line, so that fragments are stored without conflicts. */
enum { GPU_SUMS_PAD = 8 };

static __host__ __device__ constexpr int gpu_sums_bytes(int rows, int columns)
{
    return rows * (columns + GPU_SUMS_PAD) * 4;
}

/* Two sums of a fragment, columns `column` (even) and the next. */
static __device__ __forceinline__ void gpu_sums_put(float *sums, int columns, int row, int column, const float s[2])
{
    float *to = sums + row * (columns + GPU_SUMS_PAD) + column;
    *reinterpret_cast<float2 *>(to) = make_float2(s[0], s[1]);
}

/* This thread's part of a tile of ROWS x COLUMNS sums: two columns, every so many rows. */
template <int ROWS, int COLUMNS, int THREADS, gpu_result RESULT>
static __device__ __forceinline__ void gpu_finish_rows(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                                       const float *sums, size_t first_row, size_t first_column,
                                                       gpu_counter *c)
{
    constexpr int PAIRS = COLUMNS / 2;
    static_assert(THREADS % PAIRS == 0, "a thread has the same columns in every row");
    const gpu_finish &o = j.out;
    unsigned char *const d = gpu_d(j);
    const int place = static_cast<int>(threadIdx.x) % PAIRS * 2;
    const size_t column = first_column + place;
    if (column >= o.columns)
        return;
    const int n = column + 1 < o.columns ? 2 : 1;
    float bias[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < 2; k++)
        if (o.bias && k < n)
            bias[k] = gpu_value(f.bias, o.bias, column + k);
#pragma unroll 1
    for (int line = static_cast<int>(threadIdx.x) / PAIRS; line < ROWS && first_row + line < o.rows;
         line += THREADS / PAIRS) {
        const float *s = sums + line * (COLUMNS + GPU_SUMS_PAD) + place;
        const size_t at = (first_row + line) * o.stride + column;
        if constexpr (RESULT == GPU_RESULT_ANY) /* not a copy: that would take a stack */
            gpu_finish_pair<RESULT>(o, to, d, at, n, s, bias, c);
        else
            gpu_finish_pair<RESULT>(o, gpu_fixed<RESULT>(to), d, at, n, s, bias, c);
    }
}

/* The block, whose THREADS threads all call it, finishes a tile. to: f.out[j.to], which is f.out[0] where there is
 * one product. */
template <int ROWS, int COLUMNS, int THREADS>
static __device__ __forceinline__ void gpu_finish_tile(const gpu_formats &f, const gpu_format &to, const gpu_job &j,
                                                       const float *sums, size_t first_row, size_t first_column)
{
    gpu_counter c;
    __syncthreads();
#define FINISH(result) gpu_finish_rows<ROWS, COLUMNS, THREADS, result>(f, to, j, sums, first_row, first_column, &c)
    switch (j.out.result) {
    case GPU_RESULT_BINARY32:
        FINISH(GPU_RESULT_BINARY32);
        break;
    case GPU_RESULT_F16:
        FINISH(GPU_RESULT_F16);
        break;
    case GPU_RESULT_BF16:
        FINISH(GPU_RESULT_BF16);
        break;
    default:
        FINISH(GPU_RESULT_ANY);
    }
#undef FINISH
    c.give(j.out.counts);
}

/* ---- kernels of small tiles ----
 *
 * One product, or a list of them. PRODUCT: its THREADS, BLOCKS on a multiprocessor, ROOM in bytes of shared memory, and
 * run(f, to, j, sums), a block's part of a product, where `sums` has that room. */
template <class PRODUCT>
__global__ void __launch_bounds__(PRODUCT::THREADS, PRODUCT::BLOCKS)
    gemm_kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_job) j)
{
    GPU_SHARED(float4, room, [PRODUCT::ROOM / 16]);
    PRODUCT::run(f, f.out[0], j, reinterpret_cast<float *>(room));
}

template <class PRODUCT>
__global__ void __launch_bounds__(PRODUCT::THREADS, PRODUCT::BLOCKS)
    gemm_list_kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_jobs) list)
{
    GPU_SHARED(float4, room, [PRODUCT::ROOM / 16]);
    const gpu_job &j = list.item[gpu_list_item(list)];
    PRODUCT::run(f, f.out[j.to], j, reinterpret_cast<float *>(room));
}
