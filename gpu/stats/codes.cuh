/* codes.cuh -- how often each code of an array occurs, of 16 bits or 8; two bytes that are neighbours count as one
 * code of 16 bits.
 *
 * A block keeps counters of 16 bits for all codes in shared memory. The thread whose addition brings one to 2^15 takes
 * as many away, into the table in memory; between two barriers a block adds at most 2^15, so none overflows. */
#pragma once

#include "../kernels/cuda.cuh"

namespace stats {

enum {
    CODES = 1 << 16,
    BYTES = 256, /* behind them: a byte that has no neighbour */
    COUNTERS = CODES + BYTES,
    CODES_THREADS = 1024,
    CODES_SHARED = 2 * CODES,
    VECTORS = 4, /* of 16 bytes, of a thread between two barriers: 2^15 codes of a block */
    HALF = 1 << 15
};

struct codes_job {
    const unsigned char *x;
    unsigned long long units, head, full; /* units: codes of 16 bits; head: those before the first that is aligned to
                                             16 bytes; full: vectors from there on */
    long long stride;                     /* bytes between elements */
    int width;                            /* bytes of an element */
    int odd;                              /* one byte is left */
    unsigned *table;
};

/* `n` more of a code. SHARED: counters are those of the block. */
template <int SHARED>
__device__ inline void count(unsigned *counters, unsigned *table, unsigned code, unsigned n)
{
    if (!SHARED) {
        atomicAdd(table + code, n);
        return;
    }
    const unsigned shift = code % 2 * 16;
    const unsigned before = atomicAdd(counters + code / 2, n << shift) >> shift & 0xffffu;
    if (before < HALF && before + n >= HALF) {
        atomicSub(counters + code / 2, unsigned(HALF) << shift);
        atomicAdd(table + code, unsigned(HALF));
    }
}

/* Two codes; how often both were zero is counted apart, since that may be most of an array. */
template <int SHARED>
__device__ inline void count_word(unsigned *counters, unsigned *table, unsigned word, unsigned &zeros)
{
    const unsigned low = word & 0xffffu, high = word >> 16;
    zeros += (low == 0) + (high == 0);
    if (low)
        count<SHARED>(counters, table, low, 1);
    if (high)
        count<SHARED>(counters, table, high, 1);
}

__device__ inline unsigned load_unit(const codes_job &j, unsigned long long i)
{
    if (j.width == 1) {
        const unsigned char *const p = j.x + (long long)(2 * i) * j.stride;
        return p[0] | unsigned(p[j.stride]) << 8;
    }
    const unsigned char *const p = j.x + (long long)i * j.stride;
    return p[0] | unsigned(p[1]) << 8;
}

template <int SHARED>
GPU_KERNEL void __launch_bounds__(CODES_THREADS) codes(GPU_CONSTANT(codes_job) j)
{
    GPU_DYNAMIC_SHARED(unsigned, counters);
    const unsigned thread = threadIdx.x, lane = thread % 32;
    const unsigned long long step = (unsigned long long)gridDim.x * CODES_THREADS;
    const uint4 *const vectors = reinterpret_cast<const uint4 *>(j.x + 2 * j.head);
    unsigned zeros = 0;
    for (unsigned i = thread; SHARED && i < CODES / 2; i += CODES_THREADS)
        counters[i] = 0;
    __syncthreads();
    uint4 v[VECTORS];
    const uint4 none = make_uint4(0, 0, 0, 0);
    unsigned long long at = blockIdx.x * CODES_THREADS * VECTORS;
    GPU_UNROLL for (int k = 0; k < VECTORS; k++) {
        const unsigned long long i = at + unsigned(k) * CODES_THREADS + thread;
        v[k] = i < j.full ? __ldcs(vectors + i) : none;
    }
    for (; at < j.full; at += step * VECTORS) {
        uint4 next[VECTORS];
        GPU_UNROLL for (int k = 0; k < VECTORS; k++) {
            const unsigned long long i = at + step * VECTORS + unsigned(k) * CODES_THREADS + thread;
            next[k] = i < j.full ? __ldcs(vectors + i) : none;
        }
        GPU_UNROLL for (int k = 0; k < VECTORS; k++) {
            const unsigned word = v[k].x, same = __shfl_sync(0xffffffffu, word, 0);
            const int there = at + unsigned(k) * CODES_THREADS + thread < j.full;
            const int equal = there && word == same && word == v[k].y && word == v[k].z && word == v[k].w &&
                              (word & 0xffffu) == word >> 16;
            if (__all_sync(0xffffffffu, equal)) {
                if (lane == 0 && word)
                    count<SHARED>(counters, j.table, word & 0xffffu, 256);
                zeros += word ? 0 : 8;
            } else if (there) {
                count_word<SHARED>(counters, j.table, v[k].x, zeros);
                count_word<SHARED>(counters, j.table, v[k].y, zeros);
                count_word<SHARED>(counters, j.table, v[k].z, zeros);
                count_word<SHARED>(counters, j.table, v[k].w, zeros);
            }
        }
        GPU_UNROLL for (int k = 0; k < VECTORS; k++)
            v[k] = next[k];
        __syncthreads();
    }
    /* units before and behind them */
    const unsigned long long rest = j.units - 8 * j.full;
    for (unsigned long long first = (unsigned long long)blockIdx.x * CODES_THREADS; first < rest; first += step) {
        const unsigned long long i = first + thread;
        if (i < rest) {
            const unsigned code = load_unit(j, i < j.head ? i : i + 8 * j.full);
            zeros += code == 0;
            if (code)
                count<SHARED>(counters, j.table, code, 1);
        }
        __syncthreads();
    }
    zeros = __reduce_add_sync(0xffffffffu, zeros);
    if (lane == 0 && zeros)
        atomicAdd(j.table, zeros);
    if (j.odd && blockIdx.x == 0 && thread == 0)
        atomicAdd(j.table + CODES + j.x[(long long)(2 * j.units) * j.stride], 1u);
    __syncthreads();
    for (unsigned i = thread; SHARED && i < CODES / 2; i += CODES_THREADS) {
        const unsigned two = counters[i];
        if (two & 0xffffu)
            atomicAdd(j.table + 2 * i, two & 0xffffu);
        if (two >> 16)
            atomicAdd(j.table + 2 * i + 1, two >> 16);
    }
}

} // namespace stats
