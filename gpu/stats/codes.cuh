/* codes.cuh -- how often each code of an array occurs, of 16 bits or 8; two bytes that are neighbours count as one
 * code of 16 bits.
 *
 * A block keeps counters of 16 bits for all codes in shared memory, two in a word, and adds to them without a look at what is there. A
 * counter that overflows makes the sum of all counters too small by 2^16, or by 2^16 - 1 where it adds to its neighbour, and nothing makes it larger. So if at the end
 * the sum is what was added, no counter has overflowed; else the block counts once more, with care: the thread whose addition
 * brings a counter to 2^15 takes as many away, into the table in memory, and between two barriers a block adds at most
 * 2^15. Zeros, and what whole vectors of a warp hold, are counted apart. So are two codes that a quarter of a warp's lanes have, when it
 * looks, which is seldom: additions of a warp to one counter follow one another.
 *
 * A device whose blocks have 99 KiB of shared memory (sm_86, sm_89, sm_120) has room for the codes of one sign: there a block
 * counts those of one sign alone, of two blocks that read the same elements. */
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
    CODES_BESIDE = 1024, /* bytes of shared memory beside the counters */
    VECTORS = 4,         /* of 16 bytes, of a thread between two barriers: 2^15 codes of a block */
    HALF = 1 << 15,
    MANY = 8,  /* lanes with one code, from which on it is counted apart */
    TURNS = 32 /* vectors until a warp looks for such codes again        */
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

/* How codes are counted in the block's counters: without and with care. */
enum { FAST, CAREFUL };

/* What a thread counts apart. */
struct apart {
    unsigned zeros[4];                 /* of each sign, or of the signs of two bytes */
    unsigned code, times;              /* times: of the code that a warp had last */
    unsigned often[2], often_times[2]; /* codes that many lanes have; CODES: there are none */
    unsigned turns;                    /* until they are looked for */
    unsigned added;                    /* to the counters */
};

/* Whether the codes of a block are those of all signs, PARTS = 1, or this one is among its own. */
template <int PARTS>
__device__ inline int is_own(unsigned code)
{
    return PARTS == 1 || code / HALF == blockIdx.x % PARTS;
}

/* One more of a code. */
template <int HOW, int PARTS>
__device__ inline void count(unsigned *counters, unsigned *table, unsigned code, apart &of)
{
    if (!is_own<PARTS>(code))
        return;
    unsigned *const at = counters + code % (CODES / PARTS) / 2;
    const unsigned one = (code & 1) * 0xffffu + 1;
    of.added++;
    if (HOW == FAST) {
        atomicAdd(at, one);
        return;
    }
    const unsigned shift = code % 2 * 16, before = atomicAdd(at, one) >> shift & 0xffffu;
    if (before == HALF - 1) {
        atomicSub(at, unsigned(HALF) << shift);
        atomicAdd(table + code, unsigned(HALF));
    }
}

/* One code, zero perhaps: zeros have no bits but those of `signs`. */
template <int HOW, int PARTS>
__device__ inline void count_code(unsigned *counters, unsigned *table, unsigned code, unsigned signs, apart &of)
{
    if (!is_own<PARTS>(code))
        return;
    if (code & ~signs)
        count<HOW, PARTS>(counters, table, code, of);
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
template <int HOW, int PARTS>
__device__ inline void count_vector(unsigned *counters, unsigned *table, const uint4 &v, unsigned signs, apart &of)
{
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
    if (has_zero(v.x, signs) | has_zero(v.y, signs) | has_zero(v.z, signs) | has_zero(v.w, signs)) {
        GPU_UNROLL for (int k = 0; k < 4; k++)
        {
            count_code<HOW, PARTS>(counters, table, words[k] & 0xffffu, signs, of);
            count_code<HOW, PARTS>(counters, table, words[k] >> 16, signs, of);
        }
        return;
    }
    GPU_UNROLL for (int k = 0; k < 4; k++)
    {
        count<HOW, PARTS>(counters, table, words[k] & 0xffffu, of);
        count<HOW, PARTS>(counters, table, words[k] >> 16, of);
    }
}

/* Of a word, the highest bit of each half that is not zero. */
__device__ inline unsigned are_nonzero(unsigned word)
{
    return (((word & 0x7fff7fffu) + 0x7fff7fffu) | word) & 0x80008000u;
}

/* Eight codes, of which many are one of two. */
template <int HOW, int PARTS>
__device__ inline void count_often(unsigned *counters, unsigned *table, const uint4 &v, unsigned signs, apart &of)
{
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
    const unsigned a = of.often[0] * 0x10001u, b = of.often[1] * 0x10001u;
    GPU_UNROLL for (int k = 0; k < 4; k++)
    {
        const unsigned not_a = are_nonzero(words[k] ^ a), neither = not_a & are_nonzero(words[k] ^ b);
        of.often_times[0] += 2 - unsigned(__popc(not_a));
        of.often_times[1] += unsigned(__popc(not_a ^ neither));
        if (neither & 0x8000u)
            count_code<HOW, PARTS>(counters, table, words[k] & 0xffffu, signs, of);
        if (neither >> 31)
            count_code<HOW, PARTS>(counters, table, words[k] >> 16, signs, of);
    }
}

/* What was counted of such codes, to memory; with care the first time has counted it. All threads of a warp. */
template <int HOW, int PARTS>
__device__ inline void put_often(unsigned *table, apart &of)
{
    GPU_UNROLL for (int k = 0; k < 2; k++)
    {
        const unsigned times = __reduce_add_sync(0xffffffffu, of.often_times[k]);
        if (HOW == FAST && threadIdx.x % 32 == 0 && times && is_own<PARTS>(of.often[k]))
            atomicAdd(table + of.often[k], times);
        of.often_times[k] = 0;
    }
}

/* The code of the first lane, and of the first that has another; `word`: of each lane. All threads of a warp. */
template <int HOW, int PARTS>
__device__ inline void look_for_often(unsigned *table, unsigned word, apart &of)
{
    const unsigned code = word & 0xffffu, all = 0xffffffffu, first = __shfl_sync(all, code, 0);
    const unsigned same = __ballot_sync(all, code == first), other = ~same;
    const unsigned second = __shfl_sync(all, code, other ? __ffs(int(other)) - 1 : 0);
    const unsigned also = __ballot_sync(all, code == second);
    put_often<HOW, PARTS>(table, of);
    of.often[0] = __popc(same) >= MANY || __popc(also) >= MANY ? first : +CODES;
    of.often[1] = second;
    of.turns = TURNS;
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
template <int HOW, int PARTS>
__device__ inline void count_all(const codes_job &j, unsigned *counters, apart &of)
{
    const unsigned thread = threadIdx.x, signs = j.width == 1 ? 0x8080u : 0x8000u;
    const unsigned block = blockIdx.x / PARTS;
    const unsigned long long step = (unsigned long long)(gridDim.x / PARTS) * CODES_THREADS;
    const uint4 *const vectors = reinterpret_cast<const uint4 *>(j.x + 2 * j.head);
    uint4 v[VECTORS];
    const uint4 none = make_uint4(0, 0, 0, 0);
    unsigned long long at = block * CODES_THREADS * VECTORS;
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
                if (HOW == FAST && is_own<PARTS>(word & 0xffffu)) /* CAREFUL: the first time has counted it */
                    count_same(j.table, word, of);
                continue;
            }
            if (of.turns-- == 0)
                look_for_often<HOW, PARTS>(j.table, word, of);
            if (there && of.often[0] < CODES)
                count_often<HOW, PARTS>(counters, j.table, v[k], signs, of);
            else if (there)
                count_vector<HOW, PARTS>(counters, j.table, v[k], signs, of);
        }
        GPU_UNROLL for (int k = 0; k < VECTORS; k++) v[k] = next[k];
        if (HOW == CAREFUL)
            __syncthreads();
    }
    put_often<HOW, PARTS>(j.table, of);
    /* units before and behind them */
    const unsigned long long rest = j.units - 8 * j.full;
    for (unsigned long long first = (unsigned long long)block * CODES_THREADS; first < rest; first += step) {
        const unsigned long long i = first + thread;
        if (i < rest) {
            const unsigned code = load_unit(j, i < j.head ? i : i + 8 * j.full);
            count_code<HOW, PARTS>(counters, j.table, code, signs, of);
        }
        if (HOW == CAREFUL)
            __syncthreads();
    }
}

/* Whether the block's counters hold what its threads have added. */
template <int PARTS>
__device__ inline int is_whole(const unsigned *counters, const apart &of, unsigned *sum)
{
    unsigned mine = -of.added;
    if (threadIdx.x == 0)
        *sum = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < CODES / PARTS / 2; i += CODES_THREADS)
        mine += (counters[i] & 0xffffu) + (counters[i] >> 16);
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, mine);
    __syncthreads();
    return *sum == 0;
}

template <int PARTS>
__device__ inline void clear(unsigned *counters)
{
    for (unsigned i = threadIdx.x; i < CODES / PARTS / 2; i += CODES_THREADS)
        counters[i] = 0;
    __syncthreads();
}

/* PARTS: 1, or 2, which many blocks are. */
template <int PARTS>
GPU_KERNEL void __launch_bounds__(CODES_THREADS) codes(GPU_CONSTANT(codes_job) j)
{
    GPU_DYNAMIC_SHARED(unsigned, counters);
    GPU_SHARED(unsigned, sum, [1]);
    const unsigned thread = threadIdx.x;
    apart of = {};
    of.often[0] = CODES;
    clear<PARTS>(counters);
    count_all<FAST, PARTS>(j, counters, of);
    __syncthreads();
    if (!is_whole<PARTS>(counters, of, sum)) {
        __syncthreads();
        clear<PARTS>(counters);
        of.zeros[0] = of.zeros[1] = of.zeros[2] = of.zeros[3] = 0;
        of.turns = 0; /* the same codes are counted apart again */
        of.often[0] = CODES;
        count_all<CAREFUL, PARTS>(j, counters, of);
        __syncthreads();
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
    unsigned *const own = j.table + blockIdx.x % PARTS * HALF;
    for (unsigned i = thread; i < CODES / PARTS / 2; i += CODES_THREADS) {
        const unsigned two = counters[i];
        if (two & 0xffffu)
            atomicAdd(own + 2 * i, two & 0xffffu);
        if (two >> 16)
            atomicAdd(own + 2 * i + 1, two >> 16);
    }
}

} // namespace stats
