/* codes.cuh -- how often each code of an array occurs, of 16 bits or 8; two bytes that are neighbours count as one
 * code of 16 bits.
 *
 * A block keeps counters of 16 bits for all codes in shared memory, two in a word, and adds to them without a look at what is there. A
 * counter that overflows makes the sum of all counters too small by 2^16, or by 2^16 - 1 where it adds to its neighbour, and nothing makes it larger. So if at the end
 * the sum is what was added, no counter has overflowed; else the block counts once more, with care: the thread whose addition
 * brings a counter to 2^15 takes as many away, into the table in memory, and between two barriers a block adds at most
 * 2^15. Zeros, and what whole vectors of a warp hold, are counted apart. */
#pragma once

#include "../kernels/cuda.cuh"

namespace stats
{

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

/* How codes are counted: in memory, for devices with little shared memory; in the block's counters, without and with care. */
enum { IN_MEMORY, FAST, CAREFUL };

/* What a thread counts apart. */
struct apart {
    unsigned zeros[4];    /* of each sign, or of the signs of two bytes */
    unsigned code, times; /* times: of the code that a warp had last */
    unsigned added;       /* to the counters */
};

/* One more of a code. */
template <int HOW>
__device__ inline void count(unsigned *counters, unsigned *table, unsigned code)
{
    if (HOW == IN_MEMORY) {
        atomicAdd(table + code, 1u);
        return;
    }
    const unsigned one = (code & 1) * 0xffffu + 1;
    if (HOW == FAST) {
        atomicAdd(counters + code / 2, one);
        return;
    }
    const unsigned shift = code % 2 * 16, before = atomicAdd(counters + code / 2, one) >> shift & 0xffffu;
    if (before == HALF - 1) {
        atomicSub(counters + code / 2, unsigned(HALF) << shift);
        atomicAdd(table + code, unsigned(HALF));
    }
}

/* One code, zero perhaps: zeros have no bits but those of `signs`. */
template <int HOW>
__device__ inline void count_code(unsigned *counters, unsigned *table, unsigned code, unsigned signs, apart &of)
{
    if (code & ~signs)
        count<HOW>(counters, table, code);
    of.zeros[0] += code == 0;
    of.zeros[1] += code == 0x8000u;
    of.zeros[2] += code == 0x80u && signs == 0x8080u;
    of.zeros[3] += code == 0x8080u && signs == 0x8080u;
}

/* Of a word, bits that are set if one of its halves is zero. */
__device__ inline unsigned has_zero(unsigned word, unsigned signs)
{
    const unsigned magnitudes = word & ~(signs | signs << 16);
    return (magnitudes - 0x00010001u) & ~magnitudes & 0x80008000u;
}

/* Eight codes. */
template <int HOW>
__device__ inline void count_vector(unsigned *counters, unsigned *table, const uint4 &v, unsigned signs, apart &of)
{
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
    if (has_zero(v.x, signs) | has_zero(v.y, signs) | has_zero(v.z, signs) | has_zero(v.w, signs)) {
        GPU_UNROLL for (int k = 0; k < 4; k++)
        {
            count_code<HOW>(counters, table, words[k] & 0xffffu, signs, of);
            count_code<HOW>(counters, table, words[k] >> 16, signs, of);
        }
        return;
    }
    GPU_UNROLL for (int k = 0; k < 4; k++)
    {
        count<HOW>(counters, table, words[k] & 0xffffu);
        count<HOW>(counters, table, words[k] >> 16);
    }
}

/* Eight codes of each thread of a warp are one and the same: each thread keeps how many it has read. */
__device__ inline void count_same(unsigned *table, unsigned word, apart &of)
{
    const unsigned code = word & 0xffffu;
    if (code != of.code && of.times) {
        if (threadIdx.x % 32 == 0)
            atomicAdd(table + of.code, 32 * of.times);
        of.times = 0;
    }
    of.code = code;
    of.times += 8;
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

/* All that a block has to count. */
template <int HOW>
__device__ inline void count_all(const codes_job &j, unsigned *counters, apart &of)
{
    const unsigned thread = threadIdx.x, signs = j.width == 1 ? 0x8080u : 0x8000u;
    const unsigned long long step = (unsigned long long)gridDim.x * CODES_THREADS;
    const uint4 *const vectors = reinterpret_cast<const uint4 *>(j.x + 2 * j.head);
    uint4 v[VECTORS];
    const uint4 none = make_uint4(0, 0, 0, 0);
    unsigned long long at = blockIdx.x * CODES_THREADS * VECTORS;
    GPU_UNROLL for (int k = 0; k < VECTORS; k++)
    {
        const unsigned long long i = at + unsigned(k) * CODES_THREADS + thread;
        v[k] = i < j.full ? __ldcs(vectors + i) : none;
    }
    for (; at < j.full; at += step * VECTORS) {
        uint4 next[VECTORS];
        GPU_UNROLL for (int k = 0; k < VECTORS; k++)
        {
            const unsigned long long i = at + step * VECTORS + unsigned(k) * CODES_THREADS + thread;
            next[k] = i < j.full ? __ldcs(vectors + i) : none;
        }
        GPU_UNROLL for (int k = 0; k < VECTORS; k++)
        {
            const unsigned word = v[k].x, same = __shfl_sync(0xffffffffu, word, 0);
            const int there = at + unsigned(k) * CODES_THREADS + thread < j.full;
            const int equal = there && word == same && word == v[k].y && word == v[k].z && word == v[k].w &&
                              (word & 0xffffu) == word >> 16;
            if (__all_sync(0xffffffffu, equal)) {
                if (HOW != CAREFUL) /* which the first time has counted */
                    count_same(j.table, word, of);
            } else if (there) {
                count_vector<HOW>(counters, j.table, v[k], signs, of);
                of.added += 8;
            }
        }
        GPU_UNROLL for (int k = 0; k < VECTORS; k++) v[k] = next[k];
        if (HOW == CAREFUL)
            __syncthreads();
    }
    /* units before and behind them */
    const unsigned long long rest = j.units - 8 * j.full;
    for (unsigned long long first = (unsigned long long)blockIdx.x * CODES_THREADS; first < rest; first += step) {
        const unsigned long long i = first + thread;
        if (i < rest) {
            const unsigned code = load_unit(j, i < j.head ? i : i + 8 * j.full);
            of.added++;
            count_code<HOW>(counters, j.table, code, signs, of);
        }
        if (HOW == CAREFUL)
            __syncthreads();
    }
}

/* Whether the block's counters hold what its threads have added. */
__device__ inline int is_whole(const unsigned *counters, const apart &of, unsigned *sum)
{
    unsigned mine = of.zeros[0] + of.zeros[1] + of.zeros[2] + of.zeros[3] - of.added; /* zeros are not in them */
    if (threadIdx.x == 0)
        *sum = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < CODES / 2; i += CODES_THREADS)
        mine += (counters[i] & 0xffffu) + (counters[i] >> 16);
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
    __syncthreads();
    return *sum == 0;
}

__device__ inline void clear(unsigned *counters)
{
    for (unsigned i = threadIdx.x; i < CODES / 2; i += CODES_THREADS)
        counters[i] = 0;
    __syncthreads();
}

template <int SHARED>
GPU_KERNEL void __launch_bounds__(CODES_THREADS) codes(GPU_CONSTANT(codes_job) j)
{
    GPU_DYNAMIC_SHARED(unsigned, counters);
    GPU_SHARED(unsigned, sum, [1]);
    const unsigned thread = threadIdx.x;
    apart of = {};
    if (SHARED) {
        clear(counters);
        count_all<FAST>(j, counters, of);
        __syncthreads();
        if (!is_whole(counters, of, sum)) {
            __syncthreads();
            clear(counters);
            of.zeros[0] = of.zeros[1] = of.zeros[2] = of.zeros[3] = of.added = 0;
            count_all<CAREFUL>(j, counters, of);
            __syncthreads();
        }
    } else {
        count_all<IN_MEMORY>(j, counters, of);
    }
    GPU_UNROLL for (unsigned k = 0; k < 4; k++)
    {
        const unsigned zeros = __reduce_add_sync(0xffffffffu, of.zeros[k]);
        if (thread % 32 == 0 && zeros)
            atomicAdd(j.table + (k % 2 * 0x8000u | k / 2 * 0x80u), zeros);
    }
    if (thread % 32 == 0 && of.times) /* all threads of a warp have met as many */
        atomicAdd(j.table + of.code, 32 * of.times);
    if (j.odd && blockIdx.x == 0 && thread == 0)
        atomicAdd(j.table + CODES + j.x[(long long)(2 * j.units) * j.stride], 1u);
    for (unsigned i = thread; SHARED && i < CODES / 2; i += CODES_THREADS) {
        const unsigned two = counters[i];
        if (two & 0xffffu)
            atomicAdd(j.table + 2 * i, two & 0xffffu);
        if (two >> 16)
            atomicAdd(j.table + 2 * i + 1, two >> 16);
    }
}

} // namespace stats
