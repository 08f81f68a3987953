/* alone.cuh -- elements that no window holds: subnormal ones, and those far smaller than their neighbours. Their warp keeps them
 * in a queue until there are 32, so that all its threads work, and adds each to the block's limbs. */
#pragma once

#include "bounds.cuh"

namespace stats
{

/* What a cast does to a number of significand sig in [2^23, 2^24), times 2^(key - 150). */
__device__ inline void cast_alone(const job &j, int i, unsigned a, unsigned sig, int key)
{
    const cast &c = j.casts[i];
    unsigned *const counters = block_counters() + i * COUNTERS_OF_CAST, *const errors = block_limbs() +
                                                                                        (2 + 2 * i) * LIMBS;
    if (a >= c.over) {
        atomicAdd(counters + COUNT_OVER, 1u);
        if (!c.saturates) {
            add_small(errors + LIMBS, u64(sig) * sig, 2 * (key - 150), 0);
            return;
        }
        const double number = double(sig) * power(key - 150), error = number - c.largest;
        add_square(errors, error);
        if (error > 0)
            raise(j, i, error, number);
        return;
    }
    unsigned error = sig;
    if (a < c.normal)
        atomicAdd(counters + COUNT_SMALL, 1u);
    if (a < c.least)
        atomicAdd(counters + COUNT_UNDER, 1u);
    else {
        const int drop = c.drop + (key < c.floor ? c.floor - key : 0);
        const unsigned unit = drop > 0 ? 1u << drop : 1,
                       rest = sig & (unit - 1); /* at most 25 bits: else below `least` */
        error = !c.truncates && rest > unit / 2 ? unit - rest : rest;
    }
    if (error == 0) {
        atomicAdd(counters + COUNT_EXACT, 1u);
        return;
    }
    add_small(errors, u64(error) * error, 2 * (key - 150), 0);
    if (is_larger(error, sig, *(volatile u64 *)(block_ratios() + i)))
        raise(j, i, double(error), double(sig));
}

template <int N>
__device__ GPU_NOINLINE void add_alone(const job &j, unsigned u)
{
    const unsigned a = u & 0x7fffffffu;
    int key = int(a >> 23);
    unsigned sig = (a & 0x7fffffu) | (key ? 0x800000u : 0);
    const int is_subnormal = key == 0;
    if (is_subnormal) {
        const int zeros = __clz(int(sig)) - 8;
        sig <<= zeros;
        key = 1 - zeros;
    }
    if (j.base) {
        add_small(block_limbs(), sig, key - 150, int(u >> 31));
        add_small(block_limbs() + LIMBS, u64(sig) * sig, 2 * (key - 150), 0);
        if (j.histogram && is_subnormal)
            atomicAdd(state_of(j) + STATE_HISTOGRAM + (key - 127 + 149), u64(1));
    }
    GPU_UNROLL for (int i = 0; i < N; i++) cast_alone(j, i, a, sig, key);
}

/* ---- the queue ---- */

struct queue {
    unsigned added; /* to limbs, since the warp moved them */
};

/* The warp has added `times` to limbs. */
__device__ inline void count_added(const job &j, queue &q, unsigned sums, unsigned times)
{
    q.added += times;
    if (q.added > BETWEEN - 512) {
        empty_limbs(j, sums);
        q.added = 0;
    }
}

__device__ inline void put(unsigned u)
{
    unsigned *const queue = block_queue();
    queue[1 + atomicAdd(queue, 1u)] = u;
}

/* As many as fill the warp, or all. */
template <int N>
__device__ GPU_NOINLINE void empty_queue(const job &j, queue &q, int all)
{
    const unsigned lane = threadIdx.x % 32;
    unsigned *const words = block_queue();
    __syncwarp();
    unsigned n = *(volatile unsigned *)words;
    __syncwarp();
    while (n >= 32 || (all && n)) {
        const unsigned some = n < 32 ? n : 32;
        n -= some;
        if (lane < some)
            add_alone<N>(j, words[1 + n + lane]);
        __syncwarp();
        count_added(j, q, 2 + 2 * N, 32);
    }
    if (lane == 0)
        *words = n;
    __syncwarp();
}

} // namespace stats
