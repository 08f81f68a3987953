/* list.cuh -- the arguments of a launch for many tensors at once: items, as many as its parameters hold, each with
 * blocks of its own. */
#pragma once

#include "cuda.cuh"

/* PARAMETERS: bytes that every driver takes. LEAST: elements that are worth a block. */
enum { GPU_LIST_PARAMETERS = 4096, GPU_LIST_THREADS = 256, GPU_LIST_LEAST = 1024 };

template <class Item, unsigned N>
struct gpu_list {
    enum { ROOM = N };
    unsigned n;
    unsigned end[N]; /* of the blocks of an item */
    Item item[N];
};

/* Number of a block's item. */
template <class List>
static __device__ __forceinline__ unsigned gpu_list_item(const List &list)
{
    unsigned low = 0, high = list.n - 1;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (blockIdx.x < list.end[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Number of a block among those of its item k. */
template <class List>
static __device__ __forceinline__ unsigned gpu_list_block(const List &list, unsigned k)
{
    return k ? blockIdx.x - list.end[k - 1] : blockIdx.x;
}

template <class List>
static __device__ __forceinline__ unsigned gpu_list_own(const List &list, unsigned k)
{
    return k ? list.end[k] - list.end[k - 1] : list.end[0];
}

/* A loop of a thread over the n elements of item k of a list; bodies hold no collective. */
#define GPU_FOR_ITEM(i, list, k, n)                                                      \
    for (size_t i = (size_t)gpu_list_block(list, k) * blockDim.x + threadIdx.x; i < (n); \
         i += (size_t)gpu_list_own(list, k) * blockDim.x)

/* ---- on the host ---- */

/* Blocks of n elements. */
static inline unsigned gpu_list_blocks(size_t n)
{
    const size_t most = 4096, blocks = (n + GPU_LIST_LEAST - 1) / GPU_LIST_LEAST;
    return (unsigned)(blocks < most ? blocks : most);
}

/* The next launch of a list of n: its first one that has not been in a launch, and those after it that
 * are alike(first, i); `taken` remembers them. fill(&item, i) gives the item's blocks, which may be none.
 * Returns all blocks; 0: the list is at its end. */
template <class List, class Alike, class Fill>
static inline unsigned gpu_list_next(List *list, unsigned char *taken, size_t n, size_t *first, Alike alike, Fill fill)
{
    unsigned blocks = 0;
    list->n = 0;
    for (size_t i = 0; i < n && list->n < (unsigned)List::ROOM; i++) {
        if (taken[i] || (list->n > 0 && !alike(*first, i)))
            continue;
        if (list->n == 0)
            *first = i;
        const unsigned own = fill(&list->item[list->n], i);
        taken[i] = 1;
        if (own == 0)
            continue;
        blocks += own;
        list->end[list->n++] = blocks;
    }
    return blocks;
}
