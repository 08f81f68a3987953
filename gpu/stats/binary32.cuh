/* binary32.cuh -- statistics of binary32 elements in one pass: state.h says what comes of it.
 *
 * A warp takes 512 elements at a time, 16 a thread, into registers. Those within 9 binades of the largest become integers
 * (window.cuh), whose sums stay in registers as long as the window is the same; what is smaller is put aside (alone.cuh). All sums
 * are sums of integers, so none depends on the order. Binary64 is used where a relative error is larger than all before, for
 * what saturates, and nowhere else: devices other than data centres' have 64 times fewer units for it.
 *
 * Speed: SPEED-IS-FILLED-IN-LATER */
#pragma once

#include "window.cuh"

#ifdef __CUDACC__
#pragma nv_diag_suppress 128, 186 /* loops over no casts */
#endif

namespace stats
{

/* ---- what a chunk is ---- */

__device__ inline unsigned load(const unsigned char *p)
{
    if ((size_t(p) & 3) == 0)
        return *reinterpret_cast<const unsigned *>(p);
    return unsigned(p[0]) | unsigned(p[1]) << 8 | unsigned(p[2]) << 16 | unsigned(p[3]) << 24;
}

/* Extremes of the elements of a thread, and what is no number to sum. */
struct seen {
    unsigned zero, inf, nan, largest, least; /* least: less 1 */
};

__device__ __forceinline__ void take(const job &j, u64 chunk, u64 warps, elements &e)
{
    const unsigned lane = threadIdx.x % 32;
    const uint4 *const p = reinterpret_cast<const uint4 *>(j.x + 4 * (j.head + chunk * CHUNK)) + lane;
    GPU_UNROLL for (int k = 0; k < LANE / 4; k++)
    {
        const uint4 v = __ldcs(p + 32 * k);
        e.u[4 * k] = v.x;
        e.u[4 * k + 1] = v.y;
        e.u[4 * k + 2] = v.z;
        e.u[4 * k + 3] = v.w;
    }
    if (chunk + warps < j.full && lane < 16)
        GPU_PREFETCH(j.x + 4 * (j.head + (chunk + warps) * CHUNK + 32 * lane));
}

/* Of what is before the first full chunk, and behind the last; zeros where nothing is, which are not counted. */
__device__ GPU_NOINLINE unsigned load_loose(const job &j, u64 i)
{
    i += i < j.head ? 0 : j.full * CHUNK;
    return i < j.n ? load(j.x + i64(i) * j.stride) : 0;
}

__device__ __forceinline__ void take_loose(const job &j, u64 chunk, elements &e, seen &of)
{
    const u64 first = (chunk - j.full) * CHUNK + threadIdx.x % 32, count = j.n - j.full * CHUNK;
    GPU_UNROLL for (unsigned m = 0; m < LANE; m++)
    {
        e.u[m] = load_loose(j, first + m * 32);
        of.zero -= first + m * 32 >= count;
    }
}

/* Infinities and NaNs become zeros that are not counted: the largest magnitude of others. */
__device__ __forceinline__ unsigned take_out(elements &e, seen &of)
{
    unsigned most = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned a = e.u[m] & 0x7fffffffu;
        of.inf += a == 0x7f800000u;
        of.nan += a > 0x7f800000u;
        of.zero -= a >= 0x7f800000u;
        e.u[m] = a >= 0x7f800000u ? 0 : e.u[m];
        most = a < 0x7f800000u && a > most ? a : most;
    }
    return most;
}

/* A chunk's extremes, of a thread. */
struct extremes {
    unsigned most, least[LANE / 4], lowest; /* least: less 1, of four elements that are not zero; lowest: 0 if any is */
};

__device__ __forceinline__ extremes look(elements &e, seen &of)
{
    extremes x = {0, {~0u, ~0u, ~0u, ~0u}, ~0u};
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned a = e.u[m] & 0x7fffffffu, less = a - 1;
        x.most = a > x.most ? a : x.most;
        x.least[m / 4] = less < x.least[m / 4] ? less : x.least[m / 4];
        x.lowest = a < x.lowest ? a : x.lowest;
    }
    if (x.most >= 0x7f800000u) {
        x.most = take_out(e, of);
        x.lowest = 0;
    }
    if (x.lowest == 0)
        GPU_UNROLL for (int m = 0; m < LANE; m++) of.zero += (e.u[m] & 0x7fffffffu) == 0;
    of.largest = x.most > of.largest ? x.most : of.largest;
    return x;
}

/* What is below the window, to the queue; nothing there is left of it, nor of zeros. */
__device__ __forceinline__ void put_aside(elements &e, const extremes &x, seen &of, queue &q, unsigned from)
{
    GPU_UNROLL for (int k = 0; k < LANE / 4; k++)
    {
        of.least = x.least[k] < of.least ? x.least[k] : of.least;
        if (x.least[k] < from - 1)
            GPU_UNROLL for (int m = 4 * k; m < 4 * k + 4; m++)
            {
                const unsigned a = e.u[m] & 0x7fffffffu;
                if (a - 1 < from - 1)
                    put(q, e.u[m]);
            }
    }
    if (x.lowest < from)
        GPU_UNROLL for (int m = 0; m < LANE; m++) e.u[m] = (e.u[m] & 0x7fffffffu) < from ? 1 : e.u[m];
}

/* The window for magnitudes up to `most`: it moves where they are above it or far below. */
template <int N>
__device__ __forceinline__ void place(const job &j, const shared &of, queue &q, sums<N> &s, unsigned most)
{
    const int key = int(most >> 23), top = key > LOWEST ? key : +LOWEST;
    if (top <= s.top && top + SLACK >= s.top)
        return;
    if (s.top)
        publish<N>(j, of, q, s);
    s.top = top;
}

template <int N>
__device__ __forceinline__ void count_exponents(const job &j, const shared &of, const elements &e)
{
    if (j.histogram)
        GPU_UNROLL for (int m = 0; m < LANE; m++) atomicAdd(&of.bins[e.u[m] >> 23 & 255], 1u); /* of zeros nothing is asked */
}

template <int N>
__device__ __forceinline__ void add_chunk(const job &j, const shared &of, queue &q, sums<N> &s, seen &found, u64 chunk,
                                          u64 warps)
{
    elements e;
    if (chunk < j.full)
        take(j, chunk, warps, e);
    else
        take_loose(j, chunk, e, found);
    const extremes x = look(e, found);
    const unsigned most = __reduce_max_sync(0xffffffffu, x.most);
    if (most == 0)
        return;
    count_exponents<N>(j, of, e);
    place<N>(j, of, q, s, most);
    int ways[N ? N : 1], alone = 0;
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        ways[i] = way_of(j.casts[i], most, s.low());
        alone |= ways[i] == ALONE;
    }
    put_aside(e, x, found, q, alone ? 0x7f800000u : unsigned(s.low()) << 23);
    if (!alone) {
        if (j.base)
            add_array<N>(e, s);
        GPU_UNROLL for (int i = 0; i < N; i++)
        {
            if (ways[i] == USUALLY)
                cast_usually<N>(j, of, i, e, s);
            else
                cast_rarely<N>(j, of, i, e, s);
        }
    }
    __syncwarp();
    if (*(volatile unsigned *)q.count >= 32)
        empty_queue<N>(j, of, q, 0);
}

/* ---- the end of a block ---- */

/* The array's numbers of a warp, in memory. */
__device__ inline void put_seen(u64 *state, const seen &of)
{
    const unsigned zeros = __reduce_add_sync(0xffffffffu, of.zero); /* modulo 2^32: what is not there was taken away */
    const unsigned inf = __reduce_add_sync(0xffffffffu, of.inf), nan = __reduce_add_sync(0xffffffffu, of.nan);
    const unsigned max = __reduce_max_sync(0xffffffffu, of.largest);
    const unsigned min = ~__reduce_max_sync(0xffffffffu, ~of.least);
    if (threadIdx.x % 32)
        return;
    add_limb(state + STATE_ZERO, zeros);
    add_limb(state + STATE_INF, inf);
    add_limb(state + STATE_NAN, nan);
    if (max)
        atomicMax(state + STATE_MAX, u64(max));
    if (min < 0x7f7fffffu)
        atomicMax(state + STATE_UNMIN, u64(0xffffffffu - (min + 1)));
}

/* A cast's counters, by a thread of the block. */
__device__ inline void put_counters(const job &j, const shared &of, int i)
{
    u64 *const to = of.state + STATE_CASTS + (j.first + unsigned(i)) * STATE_CAST;
    const unsigned *const n = of.counters + i * COUNTERS_OF_CAST;
    add_limb(to + STATE_EXACT, n[COUNT_EXACT]);
    add_limb(to + STATE_UNDERFLOW, n[COUNT_UNDER]);
    add_limb(to + STATE_SUBNORMAL, n[COUNT_SMALL] - n[COUNT_UNDER]);
    add_limb(to + STATE_OVERFLOW, n[COUNT_OVER]);
    add_limb(to + STATE_LEFT, j.casts[i].saturates ? 0 : n[COUNT_OVER]);
    if (of.bounds[i])
        atomicMax(to + STATE_RATIO, of.bounds[i]);
}

/* Words of shared memory of a block: limbs, queues, what casts leave out of each thread. */
template <int N>
__host__ __device__ constexpr int shared_words()
{
    return (2 + 2 * N) * LIMBS + THREADS / 32 * (QUEUE + 1) + 3 * N * THREADS;
}

/* N casts, from j.first on. */
template <int N>
GPU_KERNEL void __launch_bounds__(THREADS, N < 2 ? 3 : 2) binary32(GPU_CONSTANT(job) j)
{
    GPU_DYNAMIC_SHARED(unsigned, words);
    GPU_SHARED(unsigned, bins, [256]);
    GPU_SHARED(unsigned, counters, [CASTS * COUNTERS_OF_CAST]);
    GPU_SHARED(u64, bounds, [CASTS]);
    GPU_SHARED(u64, ratios, [CASTS]);
    GPU_SHARED(unsigned, fractions, [2 * CASTS]);
    const unsigned thread = threadIdx.x, warp = thread / 32, warps = gridDim.x * (THREADS / 32);
    const u64 chunks = j.full + (j.n - j.full * CHUNK + CHUNK - 1) / CHUNK;
    unsigned *const queues = words + (2 + 2 * N) * LIMBS, *const counts = queues + THREADS / 32 * QUEUE;
    unsigned *const left_out = counts + THREADS / 32;
    const shared of = {words,  counters,          bounds, ratios, fractions, fractions + CASTS,
                       bins, j.states + u64(blockIdx.x % j.replicas) * j.words};
    queue q = {queues + warp * QUEUE, counts + warp, 0};
    sums<N> s = {};
    seen found = {0, 0, 0, 0, ~0u};
    s.column = left_out + 3 * thread;
    for (unsigned i = thread; i < unsigned(shared_words<N>()); i += THREADS)
        words[i] = 0;
    bins[thread] = 0;
    if (thread < CASTS * COUNTERS_OF_CAST)
        counters[thread] = 0;
    if (thread < CASTS) {
        bounds[thread] = ratios[thread] = 0;
        fractions[thread] = 0;
        fractions[CASTS + thread] = ~0u;
    }
    __syncthreads();
    for (u64 chunk = blockIdx.x * (THREADS / 32) + warp; chunk < chunks; chunk += warps)
        add_chunk<N>(j, of, q, s, found, chunk, warps);
    empty_queue<N>(j, of, q, 1);
    if (s.top)
        publish<N>(j, of, q, s);
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        const unsigned exact = __reduce_add_sync(0xffffffffu, s.exact[i]);
        if (thread % 32 == 0)
            atomicAdd(counters + i * COUNTERS_OF_CAST + COUNT_EXACT, exact);
    }
    if (j.base)
        put_seen(of.state, found);
    __syncthreads();
    if (warp == 0)
        empty_limbs(j, of, 2 + 2 * N);
    if (thread < N)
        put_counters(j, of, int(thread));
    if (j.histogram && thread && thread < 255)
        add_limb(of.state + STATE_HISTOGRAM + thread - 127 + 149, bins[thread]);
}

/* All replicas, in the first. */
GPU_KERNEL void gather(u64 *states, unsigned words, unsigned replicas)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        const int maximum = i == STATE_MAX || i == STATE_UNMIN ||
                            (i >= STATE_CASTS && (i - STATE_CASTS) % STATE_CAST == STATE_RATIO);
        u64 v = states[i];
        for (unsigned r = 1; r < replicas; r++) {
            const u64 other = states[u64(r) * words + i];
            v = maximum ? (other > v ? other : v) : v + other;
        }
        states[i] = v;
    }
}

} // namespace stats
