/* chain_tree.cuh -- a tree over all products in binary32 (mpsim/dot.h: PAIRWISE), for the tiles of chain.cuh: neighbours are added, again
 * and again. The 16 products of a stage are a tree in registers. Sums of stages wait in memory of the thread: those of 1, 2, 4, ...
 * stages, as the bits of their number say. Products that fill the last stage up are -0 and change no sum. */
#pragma once

#include "flushed.cuh"

namespace library
{

enum { TREE_LEVELS = 28 }; /* 2^31 products and more */

struct tree_waiting {
    chain_sums sums[TREE_LEVELS];
    unsigned stages;
};

static __device__ __forceinline__ void tree_add(chain_sums &s, const chain_sums &left)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        s[i / TILE_SIDE][i % TILE_SIDE] = __fadd_rn(left[i / TILE_SIDE][i % TILE_SIDE],
                                                    s[i / TILE_SIDE][i % TILE_SIDE]);
}

static __device__ __forceinline__ void tree_copy(chain_sums &to, const chain_sums &from)
{
    GPU_UNROLL
    for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
        to[i / TILE_SIDE][i % TILE_SIDE] = from[i / TILE_SIDE][i % TILE_SIDE];
}

/* The tree of products k to k + 2^LEVEL - 1 of a stage. */
template <int LEVEL>
static __device__ __forceinline__ void tree_of_products(chain_sums &s, const float (*a)[TILE_PITCH],
                                                        const float (*b)[TILE_PITCH], int k, int row, int column)
{
    if constexpr (LEVEL == 0) {
        const flushed_values v = flushed_at(a, b, k, row, column);
        GPU_UNROLL
        for (int i = 0; i < TILE_SIDE * TILE_SIDE; i++)
            s[i / TILE_SIDE][i % TILE_SIDE] = __fmul_rn(v.x[i / TILE_SIDE], v.y[i % TILE_SIDE]);
    } else {
        chain_sums left;
        tree_of_products<LEVEL - 1>(left, a, b, k, row, column);
        tree_of_products<LEVEL - 1>(s, a, b, k + (1 << (LEVEL - 1)), row, column);
        tree_add(s, left);
    }
}

/* The next stage. */
static __device__ __forceinline__ void tree_stage(tree_waiting &w, const float (*a)[TILE_PITCH],
                                                  const float (*b)[TILE_PITCH], int row, int column)
{
    chain_sums s;
    int level = 0;
    tree_of_products<4>(s, a, b, 0, row, column);
    GPU_ROLLED
    for (unsigned n = w.stages++; n & 1; n >>= 1)
        tree_add(s, w.sums[level++]);
    tree_copy(w.sums[level], s);
}

/* s + the tree of all. */
static __device__ __forceinline__ void tree_end(chain_sums &s, const tree_waiting &w)
{
    chain_sums all;
    int level = 0;
    while (!(w.stages >> level & 1))
        level++;
    tree_copy(all, w.sums[level]);
    GPU_ROLLED
    for (level++; level < TREE_LEVELS; level++)
        if (w.stages >> level & 1)
            tree_add(all, w.sums[level]);
    tree_add(all, s);
    tree_copy(s, all);
}

} // namespace library
