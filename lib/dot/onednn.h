/* onednn.h -- how oneDNN 3.13 cuts the depth of a product of two matrices of 16-bit numbers: by its heuristics for speed, which
 * are a function of the shape, of how the operands lie, of the number of threads and of the sizes of caches. Here caches are
 * those of Intel's CPUs with AMX so far: 48 KiB of the first level, 2 MiB of the second with 16 ways.
 *
 * Source: oneDNN, src/cpu/x64/matmul/amx_blocking_heuristics.cpp and brgemm_matmul_utils.cpp: what is computed there, in
 * binary32 where it is there, since a rounding may decide. Compared with torch 2.15.0: data/vectors/onednn. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct mpsim_onednn_shape {
    int64_t rows, columns, depth, threads;
    int left_transposed, right_transposed; /* that operand is stored by columns */
    int bf16;
} mpsim_onednn_shape;

/* A depth is cut into pieces of `piece` products. `parts` threads have them one after the other, the first ones one piece more
 * where they do not come out even. Of its pieces a thread sums chunks of `chunk` products. */
typedef struct mpsim_onednn_cuts {
    int64_t parts, piece, chunk;
    int equal;  /* AMX: tiles of a chunk are equal where they can be            */
    int apart;  /* what is beyond a multiple of 32 products is a chunk of its own */
    int avx512; /* too small for AMX: a chain of AVX512's                         */
} mpsim_onednn_cuts;

/* mpsim_onednn_amx, mpsim_onednn_avx512 -- the cuts of products of more than one row and column, and a depth of at least one. */
void mpsim_onednn_amx(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s);
void mpsim_onednn_avx512(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s);

/* mpsim_onednn_by_chunks -- AMX where the left operand is stored by columns; in the default environment. */
void mpsim_onednn_by_chunks(mpsim_onednn_cuts *c, const mpsim_onednn_shape *s);

enum {
    MPSIM_ONEDNN_L2 = 3 * (2 << 20) / 4, /* of the second level what a plan may fill */
    MPSIM_ONEDNN_TILE = 32               /* products of a tile                       */
};

static inline int64_t mpsim_up(int64_t a, int64_t b) /* a / b, rounded up */
{
    return (a + b - 1) / b;
}

static inline int64_t mpsim_whole(int64_t a, int64_t b) /* the multiple of b that is not below a */
{
    return mpsim_up(a, b) * b;
}

static inline int64_t mpsim_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mpsim_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether n products, at least one, can be divided among their tiles equally, an even number to each. */
static inline int mpsim_fills_equal_tiles(int64_t n)
{
    return n % (2 * mpsim_up(n, MPSIM_ONEDNN_TILE)) == 0;
}

/* Into chunks of how many products AVX512 cuts a depth; 0: it does not. */
static inline int64_t mpsim_onednn_chunk(int64_t depth, int left_transposed)
{
    return depth <= 512 ? 0 : depth <= 1024 || left_transposed ? 512 : 1024;
}
