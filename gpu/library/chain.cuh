/* chain.cuh -- products added one after the other (mpsim/dot.h: FMA and MULADD, sequential, with chunks or without) whose roundings
 * are to nearest even in binary32, bf16 or fp16; some without subnormal numbers (flushed.cuh), and trees (chain_tree.cuh): tiles of 64 x 64 results, operands
 * decoded once to shared memory, 4 x 4 results a thread.
 *
 * All values are binary32 numbers. binary32 itself is rounded by its instructions. For bf16 and fp16 an exact result is
 * rounded to odd first: cut off, and the last bit set if something was lost, which the results toward -infinity and
 * +infinity say. Both formats have two bits fewer than binary32 everywhere, so the conversion rounds once. A sum of two
 * such numbers may be rounded to nearest first: 24 >= 2 11 + 2.
 *
 * A result that is no number is left to the reference (walk_filter), so that a NaN has its bits. */
#pragma once

#include "chain_tree.cuh"

#include <type_traits>

namespace library
{

enum chain_kind { CHAIN_BINARY32, CHAIN_BF16, CHAIN_FP16, CHAIN_KINDS };
struct chain_product {
    chain_kind kind;
    chain_way way;
    int chunk;  /* or a block with factors; 0: none */
    int blocks; /* with factors; 0: none */
    block_factors of_a, of_b;
    int outer_binary32; /* sums of chunks are binary32 */
    tile_plan tiles;
};

/* ---- arithmetic ---- */

/* A binary32 number, rounded to the format. */
template <chain_kind KIND>
static __device__ __forceinline__ float chain_rounded(float x)
{
    if constexpr (KIND == CHAIN_BINARY32)
        return x;
#if defined(__CUDA_ARCH__)
    float y;
    if constexpr (KIND == CHAIN_BF16)
        asm("{ .reg .b32 r; cvt.rn.bf16x2.f32 r, %1, 0f00000000; and.b32 %0, r, 0xffff0000; }" : "=f"(y) : "f"(x));
    else
        asm("{ .reg .b16 r; cvt.rn.f16.f32 r, %1; cvt.f32.f16 %0, r; }" : "=f"(y) : "f"(x));
    return y;
#else
    typedef typename std::conditional<KIND == CHAIN_BF16, gpu_bf16, gpu_fp16>::type format;
    if (x != x)
        return x;
    if (fabsf(x) >= __uint_as_float(format::limit(GPU_NEAREST)))
        return __uint_as_float((__float_as_uint(x) & 0x80000000u) | 0x7f800000u);
    return gpu_finite<format>(gpu_nearest<format, GPU_NEAREST>(x));
#endif
}

static __device__ __forceinline__ float chain_odd(float cut, int lost)
{
    return __uint_as_float(__float_as_uint(cut) | static_cast<uint32_t>(lost));
}

template <chain_kind KIND>
static __device__ __forceinline__ float chain_fma(float a, float b, float s)
{
    if constexpr (KIND == CHAIN_BINARY32)
        return __fmaf_rn(a, b, s);
    return chain_rounded<KIND>(chain_odd(__fmaf_rz(a, b, s), __fmaf_rd(a, b, s) != __fmaf_ru(a, b, s)));
}

template <chain_kind KIND>
static __device__ __forceinline__ float chain_product_of(float a, float b)
{
    if constexpr (KIND == CHAIN_BINARY32)
        return __fmul_rn(a, b);
    return chain_rounded<KIND>(chain_odd(__fmul_rz(a, b), __fmul_rd(a, b) != __fmul_ru(a, b)));
}

template <chain_kind KIND>
static __device__ __forceinline__ float chain_sum(float s, float t)
{
    return chain_rounded<KIND>(__fadd_rn(s, t));
}

template <int FUSED, chain_kind KIND>
static __device__ __forceinline__ float chain_step(float a, float b, float s)
{
    return FUSED ? chain_fma<KIND>(a, b, s) : chain_sum<KIND>(s, chain_product_of<KIND>(a, b));
}

/* ---- a tile ---- */

/* Products k to end - 1 of a stage. */
template <int FUSED, chain_kind KIND>
static __device__ __forceinline__ void chain_add(chain_sums &s, const float (*a)[TILE_PITCH],
                                                 const float (*b)[TILE_PITCH], int k, int end, int row, int column)
{
#if !GPU_ON_HOST
#pragma unroll 4
#endif
    for (; k < end; k++) {
        float x[TILE_SIDE], y[TILE_SIDE];
        GPU_UNROLL
        for (int i = 0; i < TILE_SIDE; i++) {
            x[i] = a[k][row + i];
            y[i] = b[k][column + i];
        }
        GPU_UNROLL
        for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
            s[i / TILE_SIDE][i % TILE_SIDE] = chain_step<FUSED, KIND>(x[i / TILE_SIDE], y[i % TILE_SIDE],
                                                                      s[i / TILE_SIDE][i % TILE_SIDE]);
    }
}

/* The sum of a chunk to those before, and the next one from +0. */
template <chain_kind KIND>
static __device__ __forceinline__ void chain_outer(chain_sums &sums, chain_sums &s, int outer_binary32)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        float *const to = &sums[i / TILE_SIDE][i % TILE_SIDE], *const from = &s[i / TILE_SIDE][i % TILE_SIDE];
        *to = outer_binary32 ? __fadd_rn(*to, *from) : chain_sum<KIND>(*to, *from);
        *from = 0;
    }
}

/* Factors of lines, behind the stages of both operands in shared memory. */
enum { CHAIN_FACTORS = 2 * TILE_DEEP * TILE_PITCH };

static __device__ __forceinline__ void chain_factor_lines(int *to, const chain_product &f, const product_shape &g,
                                                          const matrix_places &at, int64_t row, int64_t column)
{
    const int line = static_cast<int>(threadIdx.x) % TILE_LINES;
    if (threadIdx.x < TILE_LINES)
        to[line] = factor_line(f.of_a, at.a, row + line, g.rows);
    else if (threadIdx.x < 2 * TILE_LINES)
        to[TILE_LINES + line] = factor_line(f.of_b, at.b, column + line, g.columns);
}

/* fma(both factors of block q, its sum, the sum so far); the next block from +0. */
static __device__ __forceinline__ void chain_promote(chain_sums &sums, chain_sums &s, const chain_product &f,
                                                     const int *lines, int row, int column, int q)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const float a = f.of_a.at[lines[row + i / TILE_SIDE] + q];
        const float b = f.of_b.at[lines[TILE_LINES + column + i % TILE_SIDE] + q];
        float *const to = &sums[i / TILE_SIDE][i % TILE_SIDE], *const from = &s[i / TILE_SIDE][i % TILE_SIDE];
        *to = __fmaf_rn(__fmul_rn(a, b), *from, *to);
        *from = 0;
    }
}

/* What sums begin with, by way of the thread's own places in shared memory: one loop serves all kernels. */
static __device__ GPU_NOINLINE void chain_start_values(const product_arguments &p, int64_t first, int64_t row,
                                                       int64_t column, float *own)
{
    GPU_ROLLED
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++) {
        const int64_t x = row + i / TILE_SIDE, y = column + i % TILE_SIDE;
        const int is = x < p.shape.rows && y < p.shape.columns;
        own[i / TILE_SIDE * TILE_LINES + i % TILE_SIDE] = is ? addend_at<float>(p.start, first, x, y) : 0.0f;
    }
}

static __device__ __forceinline__ void chain_start(chain_sums &s, const product_arguments &p, const matrix_places &at,
                                                   int64_t row, int64_t column, float *own)
{
    if (!p.start.codes)
        return;
    chain_start_values(p, at.start, row, column, own);
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        s[i / TILE_SIDE][i % TILE_SIDE] = own[i / TILE_SIDE * TILE_LINES + i % TILE_SIDE];
    __syncthreads();
}

struct chain_nothing { /* stands for what a way has no use for */
    unsigned stages;
};

/* What stands for products that are not there: +0, or -0, which changes no sum. */
template <int WAY>
static __device__ __forceinline__ float chain_fill()
{
    return WAY == CHAIN_TREE || WAY == CHAIN_LANES || WAY == CHAIN_PAIRS || WAY == CHAIN_QUADS ? -0.0f : 0.0f;
}

template <int WAY, chain_kind KIND, int CHUNKED>
GPU_KERNEL void __launch_bounds__(TILE_THREADS, 2)
    chain_kernel(GPU_CONSTANT(product_arguments) p, GPU_CONSTANT(chain_product) f, const unsigned char *entered_a,
                 const unsigned char *entered_b, unsigned char *left_alone)
{
    GPU_SHARED(float, room, [TILE_LINES * TILE_LINES]);
    float(*const a)[TILE_PITCH] = reinterpret_cast<float(*)[TILE_PITCH]>(&room[0]);
    float(*const b)[TILE_PITCH] = a + TILE_DEEP;
    const product_shape &g = p.shape;
    const tile_work w = tile_work_of(p, f.tiles, entered_a, entered_b);
    const int row = static_cast<int>(threadIdx.x) / 16 * TILE_SIDE, column = threadIdx.x % 16 * TILE_SIDE;
    const int flush = WAY >= CHAIN_ODD_FIRST && p.model.traits & MPSIM_TRAIT_FLUSH_OPERANDS;
    tile_reading read_a = tile_reading_of(p.a, flush, p.model.traits),
                 read_b = tile_reading_of(p.b, flush, p.model.traits);
    read_a.fill = chain_fill<WAY>();
    int *const lines = reinterpret_cast<int *>(&room[CHAIN_FACTORS]);
    enum { IS_WHOLE = WAY == CHAIN_TREE || (WAY >= CHAIN_ODD_FIRST && WAY != CHAIN_LANES) };
    typename std::conditional<WAY == CHAIN_TREE, tree_waiting, chain_nothing>::type waiting;
    typename std::conditional<WAY == CHAIN_LANES, chain_sums, chain_nothing>::type odd = {};
    chain_sums s = {}, sums = {};
    waiting.stages = 0;
    int left = f.chunk, q = 0;
    chain_start(CHUNKED ? sums : s, p, w.at, w.row0 + row, w.column0 + column, &room[row * TILE_LINES + column]);
    if (CHUNKED && f.blocks)
        chain_factor_lines(lines, f, g, w.at, w.row0, w.column0);
    for (int64_t k0 = 0; k0 < g.depth; k0 += TILE_DEEP) {
        const int deep = tile_stage(a, b, g, f.tiles, w, k0, read_a, read_b);
        if constexpr (WAY == CHAIN_TREE)
            tree_stage(waiting, a, b, row, column);
        else if constexpr (IS_WHOLE)
            flushed_stage<WAY>(s, a, b, deep, row, column);
        for (int k = 0; !IS_WHOLE && k < deep;) {
            const int end = CHUNKED && left < deep - k ? k + left : deep;
            if constexpr (WAY == CHAIN_LANES)
                flushed_lanes(s, odd, a, b, k, end, row, column);
            else
                chain_add<WAY, KIND>(s, a, b, k, end, row, column);
            left -= end - k;
            k = end;
            if (CHUNKED && left == 0) {
                left = f.chunk;
                if constexpr (WAY == CHAIN_LANES)
                    flushed_outer(sums, s, odd);
                else if (f.blocks)
                    chain_promote(sums, s, f, lines, row, column, q++);
                else
                    chain_outer<KIND>(sums, s, f.outer_binary32);
            }
        }
        __syncthreads();
    }
    if constexpr (WAY == CHAIN_TREE) {
        tree_end(s, waiting);
    } else if constexpr (WAY == CHAIN_LANES) {
        if (left != f.chunk)
            flushed_outer(sums, s, odd);
    } else if (CHUNKED && left != f.chunk && f.blocks)
        chain_promote(sums, s, f, lines, row, column, q);
    else if (CHUNKED && left != f.chunk)
        chain_outer<KIND>(sums, s, f.outer_binary32);
    __syncthreads();
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        room[(row + i / TILE_SIDE) * TILE_LINES + column + i % TILE_SIDE] = (CHUNKED ? sums
                                                                                     : s)[i / TILE_SIDE][i % TILE_SIDE];
    __syncthreads();
    tile_finish(p, w, room, left_alone);
}

/* ---- on the host ---- */

typedef void chain_function(GPU_CONSTANT_TYPE(product_arguments) p, GPU_CONSTANT_TYPE(chain_product) f,
                            const unsigned char *entered_a, const unsigned char *entered_b, unsigned char *left);

static inline chain_function *chain_kernel_of(const chain_product &f)
{
#define ROW(fused, kind)                                           \
    {                                                              \
        chain_kernel<fused, kind, 0>, chain_kernel<fused, kind, 1> \
    }
    static chain_function *const kernels[2][CHAIN_KINDS][2] = {
        {ROW(0, CHAIN_BINARY32), ROW(0, CHAIN_BF16), ROW(0, CHAIN_FP16)},
        {ROW(1, CHAIN_BINARY32), ROW(1, CHAIN_BF16), ROW(1, CHAIN_FP16)}};
#undef ROW
    static chain_function *const others[CHAIN_WAYS - CHAIN_TREE] = {
        chain_kernel<CHAIN_TREE, CHAIN_BINARY32, 0>,  chain_kernel<CHAIN_ODD_FIRST, CHAIN_BINARY32, 0>,
        chain_kernel<CHAIN_LANES, CHAIN_BINARY32, 1>, chain_kernel<CHAIN_PAIRS, CHAIN_BINARY32, 0>,
        chain_kernel<CHAIN_QUADS, CHAIN_BINARY32, 0>, chain_kernel<CHAIN_TO_ODD, CHAIN_BINARY32, 0>};
    if (f.way >= CHAIN_TREE)
        return others[f.way - CHAIN_TREE];
    return kernels[f.way][f.kind][f.chunk != 0];
}

static inline int is_chain_place(const mpsim_rounded &p, int kind)
{
    static const int bits[CHAIN_KINDS][2] = {{8, 23}, {8, 7}, {5, 10}};
    return is_place(p, MPSIM_ROUND_NEAREST_EVEN, bits[kind][0], bits[kind][1]);
}

/* The format of every rounding; -1: there is none, or not of these. Sums of chunks and results may be binary32. */
static inline int chain_kind_of(const mpsim_model &m, int starts)
{
    int k = 0;
    while (k < CHAIN_KINDS && !is_chain_place(m.accumulator, k))
        k++;
    if (k == CHAIN_KINDS || (m.addition == MPSIM_ADDITION_MULADD && !is_chain_place(m.product, k)) ||
        (m.chunk && !is_chain_place(m.outer, k) && !is_chain_place(m.outer, CHAIN_BINARY32)))
        return -1;
    const int sums = m.chunk && !is_chain_place(m.outer, k) ? int(CHAIN_BINARY32) : k;
    return is_chain_place(m.result, sums) || (!starts && is_chain_place(m.result, CHAIN_BINARY32)) ? k : -1;
}

/* Instructions that flush take operands below the normal numbers of binary32 for zeros. */
static inline int has_flushed_products(const product_arguments &p)
{
    return p.a.multiplied.mbits + p.b.multiplied.mbits <= 20 && mpsim_emin(&p.a.multiplied) >= -126 &&
           mpsim_emin(&p.b.multiplied) >= -126;
}

/* Arm's pairs: every rounding is to odd. */
static inline int is_to_odd(const mpsim_model &m)
{
    enum { TRAITS = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS | MPSIM_TRAIT_FILLED | MPSIM_TRAIT_OVERFLOW };
    const mpsim_rounded *const places[] = {&m.product, &m.accumulator, &m.outer};
    for (const mpsim_rounded *x : places)
        if (!is_place(*x, MPSIM_ROUND_TO_ODD, 8, 23))
            return 0;
    return m.addition == MPSIM_ADDITION_MULADD && m.order == MPSIM_ORDER_PAIRWISE && m.length == 0 && m.chunk == 2 &&
           m.traits == TRAITS && is_chain_place(m.result, CHAIN_BINARY32);
}

/* Of binary32, but sequential. A tree of all products; without subnormal numbers, from +0: the others, trees of exact products. -1: not
 * these. Traits without an effect: way_of. */
static inline int other_way_of(const mpsim_model &m, const product_arguments &p)
{
    enum { FLUSH = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS };
    const unsigned traits = m.traits & ~unsigned(MPSIM_TRAIT_OVERFLOW | MPSIM_TRAIT_NAN_MINUS);
    if (p.a.factors)
        return -1;
    if (is_to_odd(m))
        return has_flushed_products(p) && !p.start.codes ? int(CHAIN_TO_ODD) : -1;
    if (chain_kind_of(m, 0) != CHAIN_BINARY32 || !is_chain_place(m.result, CHAIN_BINARY32))
        return -1;
    if (m.addition == MPSIM_ADDITION_MULADD && m.order == MPSIM_ORDER_PAIRWISE && !m.length && !m.chunk && !traits)
        return CHAIN_TREE;
    if (p.start.codes)
        return -1;
    if (m.addition == MPSIM_ADDITION_FMA && m.order == MPSIM_ORDER_LANES)
        return m.length == 2 && m.chunk && m.chunk % 2 == 0 && (traits | MPSIM_TRAIT_FLUSH_OPERANDS) == FLUSH
                   ? int(CHAIN_LANES)
                   : -1;
    if (m.chunk)
        return -1;
    if (m.addition == MPSIM_ADDITION_FMA)
        return m.order == MPSIM_ORDER_ODD_FIRST && (traits == FLUSH || traits == (FLUSH | MPSIM_TRAIT_PLUS_ZERO))
                   ? int(CHAIN_ODD_FIRST)
                   : -1;
    if (m.order != MPSIM_ORDER_PAIRWISE || traits != (FLUSH | MPSIM_TRAIT_PLUS_ZERO) || !has_flushed_products(p))
        return -1;
    return m.length == 4 ? int(CHAIN_QUADS) : m.length == 2 ? int(CHAIN_PAIRS) : -1;
}

/* Traits that change nothing here: NaNs are the reference's, nearest overflows to infinity. */
static inline int way_of(const mpsim_model &m, const product_arguments &p)
{
    if (m.order != MPSIM_ORDER_SEQUENTIAL)
        return other_way_of(m, p);
    return m.traits & ~(MPSIM_TRAIT_OVERFLOW | MPSIM_TRAIT_NAN_MINUS) ? -1
           : m.addition == MPSIM_ADDITION_FMA                         ? int(CHAIN_FMA)
                                                                      : int(CHAIN_MULADD);
}

/* Blocks that are summed by themselves and enter the sum with factors. 0: not these. */
static inline int set_chain_blocks(chain_product *f, const product_arguments &p)
{
    if (p.model.chunk || p.a.block_cols <= 0 || p.a.block_cols > 0x7fffffff || !has_small_grids(p) ||
        !is_chain_place(p.model.result, CHAIN_BINARY32))
        return 0;
    f->chunk = static_cast<int>(p.a.block_cols);
    f->blocks = 1;
    f->of_a = block_factors_of(p.a);
    f->of_b = block_factors_of(p.b);
    return 1;
}

/* 1: these kernels compute the product. */
static inline int chain_of(chain_product *f, const product_arguments &p)
{
    const mpsim_model &m = p.model;
    memset(static_cast<void *>(f), 0, sizeof *f);
    if ((m.addition != MPSIM_ADDITION_FMA && m.addition != MPSIM_ADDITION_MULADD) || m.chunk > 0x7fffffff)
        return 0;
    const int way = way_of(m, p);
    const int kind = way >= CHAIN_TREE ? int(CHAIN_BINARY32) : chain_kind_of(m, p.start.codes != nullptr);
    if (kind < 0 || way < 0 || (p.a.factors && !set_chain_blocks(f, p)))
        return 0;
    f->kind = static_cast<chain_kind>(kind);
    f->way = static_cast<chain_way>(way);
    f->chunk = f->blocks ? f->chunk : way == CHAIN_TO_ODD ? 0 : static_cast<int>(m.chunk);
    f->outer_binary32 = m.chunk && !is_chain_place(m.outer, kind);
    return set_tiles(&f->tiles, p);
}

static inline void launch_chain(const chain_product &f, const product_arguments &p, const unsigned char *entered_a,
                                const unsigned char *entered_b, unsigned char *left, cudaStream_t on)
{
    GPU_LAUNCH_ON(on, chain_kernel_of(f), blocks_of_tiles(f.tiles, p), TILE_THREADS, 0, p, f, entered_a, entered_b,
                  left);
}

} // namespace library
