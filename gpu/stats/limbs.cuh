/* limbs.cuh -- exact sums of a block, in shared memory: fixed-point numbers in limbs of 16 bits, each kept in 32, which a
 * device adds to by one instruction.
 *
 * A warp that has added BETWEEN times since it last did moves all limbs to the sums in memory (state.h). An addition gives a
 * limb less than 2^16, or what counts as several: the eight warps' are below 2^31. */
#pragma once

#include "../kernels/cuda.cuh"
#include "plan.h"

namespace stats
{

enum {
    THREADS = 256,
    CASTS = 4, /* of a launch */
    LIMBS = 2 * STATE_LIMBS,
    QUEUE = 32 + 512,     /* elements of a warp that wait: alone.cuh */
    SUMS = 2 + 2 * CASTS, /* elements, their squares; of each cast squares of errors, and of what is left out */
    BETWEEN = 4000        /* times 8 warps, times 2^16: below 2^31 */
};

typedef unsigned long long u64;
typedef long long i64;

typedef stats_cast cast;

struct job {
    const unsigned char *x;
    u64 n, head, full; /* head: elements before the first that is aligned to 16 bytes; full: chunks from there on */
    i64 stride;        /* bytes */
    u64 *states;
    unsigned words, replicas;
    int base, histogram;      /* base: the array, too */
    unsigned dropped;         /* bits that every cast drops */
    unsigned at[CASTS];       /* which casts of the caller's these are */
    stats::cast casts[CASTS]; /* the first drops the fewest bits */
};

/* What counts a cast's elements, in shared memory. */
enum { COUNT_EXACT, COUNT_UNDER, COUNT_SMALL, COUNT_OVER, COUNTERS_OF_CAST };

/* ---- what the threads of a block share ---- */

/* Words of shared memory: where each part begins. */
enum {
    AT_BOUNDS = 0,                         /* u64 of each cast: the largest relative error, the bits of a binary64 */
    AT_RATIOS = AT_BOUNDS + 2 * CASTS,     /* the same times 2^56, a little more or less: is_larger */
    AT_THRESHOLDS = AT_RATIOS + 2 * CASTS, /* from and end: significands between may have a larger one (bounds.cuh) */
    AT_COUNTERS = AT_THRESHOLDS + 2 * CASTS,
    AT_NO_NUMBERS = AT_COUNTERS + CASTS * COUNTERS_OF_CAST, /* infinities, NaNs */
    AT_BINS = AT_NO_NUMBERS + 2,                            /* by exponent, the largest first */
    AT_LIMBS = AT_BINS + 256,
    AT_QUEUES = AT_LIMBS + SUMS * LIMBS,             /* a count and words of each warp */
    AT_LEFT = AT_QUEUES + THREADS / 32 * (1 + QUEUE) /* of each cast and thread what is left out, 96 bits */
};

/* As functions of the array itself: a pointer in a structure would be one to any memory, for a compiler. */
template <class T, int AT>
__device__ __forceinline__ T *block_part()
{
    GPU_DYNAMIC_SHARED(unsigned, words);
    return reinterpret_cast<T *>(words + AT);
}

__device__ __forceinline__ u64 *block_bounds()
{
    return block_part<u64, AT_BOUNDS>();
}
__device__ __forceinline__ u64 *block_ratios()
{
    return block_part<u64, AT_RATIOS>();
}
__device__ __forceinline__ unsigned *block_thresholds()
{
    return block_part<unsigned, AT_THRESHOLDS>();
}
__device__ __forceinline__ unsigned *block_counters()
{
    return block_part<unsigned, AT_COUNTERS>();
}
__device__ __forceinline__ unsigned *block_no_numbers()
{
    return block_part<unsigned, AT_NO_NUMBERS>();
}
__device__ __forceinline__ unsigned *block_bins()
{
    return block_part<unsigned, AT_BINS>();
}
__device__ __forceinline__ unsigned *block_limbs()
{
    return block_part<unsigned, AT_LIMBS>();
}
__device__ __forceinline__ unsigned *block_queue()
{
    return block_part<unsigned, AT_QUEUES>() + threadIdx.x / 32 * (1 + QUEUE);
}
__device__ __forceinline__ unsigned *block_left()
{
    return block_part<unsigned, AT_LEFT>() + 3 * threadIdx.x;
}

/* Where the block's numbers go, in memory. */
__device__ inline u64 *state_of(const job &j)
{
    return j.states + u64(blockIdx.x % j.replicas) * j.words;
}

/* Adds 1 to a word of the block, n words behind another: one instruction for the place, one for the addition. */
__device__ __forceinline__ void count_at(unsigned *words, unsigned n)
{
#ifdef __CUDA_ARCH__
    asm volatile("red.shared.add.u32 [%0], 1;" : : "r"(unsigned(__cvta_generic_to_shared(words)) + 4 * n) : "memory");
#else
    atomicAdd(words + n, 1u);
#endif
}

__device__ inline double power(int e)
{
    return __longlong_as_double(i64(1023 + e) << 52);
}

__device__ inline void add_limb(u64 *limb, u64 v)
{
    if (v)
        atomicAdd(limb, v);
}

/* (hi, lo) * 2^exp, less than 2^128 */
__device__ inline void add_wide(unsigned *limbs, u64 hi, u64 lo, int exp, int negative)
{
    const unsigned at = unsigned(exp - STATE_LOWEST), shift = at % 16;
    const u64 top = shift ? hi >> (64 - shift) : 0;
    const u64 mid = shift ? (hi << shift | lo >> (64 - shift)) : hi, low = lo << shift;
    for (unsigned k = 0; k < 9; k++) {
        const u64 word = k < 4 ? low : k < 8 ? mid : top;
        const unsigned v = unsigned(word >> k % 4 * 16) & 0xffffu;
        if (v)
            atomicAdd(limbs + at / 16 + k, negative ? 0 - v : v);
    }
}

/* A small integer, less than 2^48. */
__device__ inline void add_small(unsigned *limbs, u64 v, int exp, int negative)
{
    const unsigned at = unsigned(exp - STATE_LOWEST);
    v <<= at % 16;
    GPU_UNROLL for (unsigned k = 0; k < 4; k++)
    {
        const unsigned piece = unsigned(v >> 16 * k) & 0xffffu;
        if (piece)
            atomicAdd(limbs + at / 16 + k, negative ? 0 - piece : piece);
    }
}

/* The square of a finite number. */
__device__ inline void add_square(unsigned *limbs, double d)
{
    const u64 u = u64(__double_as_longlong(d));
    const int biased = int(u >> 52 & 2047);
    const u64 m = (u & 0xfffffffffffffull) | (u64(1) << 52);
    const u64 a = m >> 32, b = m & 0xffffffffu; /* a below 2^21 */
    const u64 cross = 2 * a * b, low = b * b + (cross << 32);
    if (biased) /* numbers here are far above the least of binary64 */
        add_wide(limbs, a * a + (cross >> 32) + (low < b * b), low, 2 * (biased - 1075), 0);
}

/* A sum of the warp: six pieces of 16 bits of a thread's integer, the highest one signed, times 2^exp. All threads. */
__device__ inline void add_pieces(unsigned *limbs, unsigned low, unsigned mid, int high, int exp)
{
    const unsigned lane = threadIdx.x % 32, at = unsigned(exp - STATE_LOWEST);
    const unsigned pieces[6] = {low & 0xffffu,       low >> 16, mid & 0xffffu, mid >> 16, unsigned(high) & 0xffffu,
                                unsigned(high >> 16)};
    int mine = 0;
    GPU_UNROLL for (unsigned k = 0; k < 6; k++)
    {
        const int all = int(__reduce_add_sync(0xffffffffu, pieces[k]));
        mine = lane == k ? all : mine;
    }
    const i64 v = i64(mine) * (1 << at % 16); /* below 2^37 */
    if (v & 0xffff)
        atomicAdd(limbs + at / 16 + lane, unsigned(v & 0xffff));
    if (v >> 16)
        atomicAdd(limbs + at / 16 + lane + 1, unsigned(v >> 16));
}

/* Where a sum of the block is in the state. */
__device__ inline u64 *sum_of(const job &j, u64 *state, unsigned sum)
{
    u64 *const cast = state + STATE_CASTS + j.at[sum < 2 ? 0 : (sum - 2) / 2] * STATE_CAST;
    return sum == 0       ? state + STATE_SUM
           : sum == 1     ? state + STATE_SQUARES
           : sum % 2 == 0 ? cast + STATE_ERRORS
                          : cast + STATE_LEFT_SQUARES;
}

/* All limbs of the block to memory, by a warp. Others may add at the same time. */
__device__ GPU_NOINLINE void empty_limbs(const job &j, unsigned sums)
{
    for (unsigned i = threadIdx.x % 32; i < sums * LIMBS; i += 32) {
        const int v = int(atomicExch(block_limbs() + i, 0u));
        if (v)
            atomicAdd(sum_of(j, state_of(j), i / LIMBS) + i % LIMBS / 2, u64(i64(v) * (i % 2 ? 1 << 16 : 1)));
    }
    __syncwarp();
}

} // namespace stats
