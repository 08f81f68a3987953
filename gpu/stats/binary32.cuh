/* binary32.cuh -- statistics of binary32 elements in one pass: state.h says what comes of it.
 *
 * A warp takes 512 elements at a time, 16 a thread, into registers. Those within 9 binades of the largest become integers
 * (window.cuh), whose sums stay in registers as long as the window is the same; what is smaller is put aside (alone.cuh). All sums
 * are sums of integers, so none depends on the order. Binary64 is used where a relative error is larger than all before, for
 * what saturates, and nowhere else: devices other than data centres' have 64 times fewer units for it.
 *
 * Speed, of four usual casts and a histogram, counted in SASS (sm_90): 52 instructions an element, of which 24 are of the integer
 * unit, 19 are multiplications, and none is of binary64. The moments take 8, a cast 5.2, the histogram 3.3. A multiprocessor has 64
 * integer units and issues 128 instructions a clock, so what it issues is the bound: 2.5 elements a clock, which on an H200 at
 * 1.7 GHz are 2.2 TB/s, 0.53 of a copy. The loop in binary64 that was here before took 127 instructions, of which 41 were of
 * binary64. On sm_86, sm_89 and sm_120, which have 2 units of binary64 a multiprocessor, those were the bound. An element that
 * is put aside costs about ten times as much as others. */
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

__device__ __forceinline__ void take(const job &j, u64 chunk, u64 warps, unsigned *u)
{
    const unsigned lane = threadIdx.x % 32;
    const uint4 *const p = reinterpret_cast<const uint4 *>(j.x + 4 * (j.head + chunk * CHUNK)) + lane;
    GPU_UNROLL for (int k = 0; k < LANE / 4; k++)
    {
        const uint4 v = __ldcs(p + 32 * k);
        u[4 * k] = v.x;
        u[4 * k + 1] = v.y;
        u[4 * k + 2] = v.z;
        u[4 * k + 3] = v.w;
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

__device__ __forceinline__ void take_loose(const job &j, u64 chunk, unsigned *u, seen &of)
{
    const u64 first = (chunk - j.full) * CHUNK + threadIdx.x % 32, count = j.n - j.full * CHUNK;
    GPU_UNROLL for (unsigned m = 0; m < LANE; m++)
    {
        u[m] = load_loose(j, first + m * 32);
        of.zero -= first + m * 32 >= count;
    }
}

/* Infinities and NaNs become zeros that are not counted: the largest magnitude of others. */
__device__ __forceinline__ unsigned take_out(unsigned *u, seen &of)
{
    unsigned most = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned a = u[m] & 0x7fffffffu;
        of.inf += a == 0x7f800000u;
        of.nan += a > 0x7f800000u;
        of.zero -= a >= 0x7f800000u;
        u[m] = a >= 0x7f800000u ? 0 : u[m];
        most = a < 0x7f800000u && a > most ? a : most;
    }
    return most;
}

/* The largest magnitude of a thread's elements; least: the smallest one, less 1, of four each. Zeros are counted: they are -1. */
__device__ __forceinline__ unsigned look(unsigned *u, seen &of, int *least)
{
    unsigned most = 0;
    GPU_UNROLL for (int k = 0; k < LANE; k++)
    {
        const int a = int(u[k] & 0x7fffffffu);
        most = unsigned(a) > most ? unsigned(a) : most;
        least[k / 4] = k % 4 == 0 || a - 1 < least[k / 4] ? a - 1 : least[k / 4];
    }
    if (most >= 0x7f800000u) {
        most = take_out(u, of);
        GPU_UNROLL for (int k = 0; k < LANE / 4; k++) least[k] = -1;
    }
    int low = least[0];
    GPU_UNROLL for (int k = 1; k < LANE / 4; k++) low = least[k] < low ? least[k] : low;
    unsigned smallest = unsigned(low);
    if (low < 0) {
        smallest = 0x7f7fffffu;
        GPU_UNROLL for (int m = 0; m < LANE; m++)
        {
            const unsigned a = u[m] & 0x7fffffffu;
            of.zero += a == 0;
            smallest = a - 1 < smallest ? a - 1 : smallest;
        }
    }
    of.least = smallest < of.least ? smallest : of.least;
    of.largest = most > of.largest ? most : of.largest;
    return most;
}

/* What is below the window, to the queue; nothing there is left of it, nor of zeros. */
__device__ __forceinline__ void put_aside(const unsigned *u, elements &e, const int *least, int low)
{
    GPU_UNROLL for (int k = 0; k < LANE; k += 4) if (least[k / 4] < (low << 23) - 1)
        GPU_UNROLL for (int m = k; m < k + 4; m++)
    {
        e.sig[m] = is_there(e, m) ? e.sig[m] : 1;
        if (!is_there(e, m) && u[m] << 1)
            put(u[m]);
    }
}

/* The window for magnitudes up to `most`: it moves where they are above it or far below. */
template <int N>
__device__ __forceinline__ void place(const job &j, queue &q, sums<N> &s, unsigned most)
{
    const int key = int(most >> 23), top = key > LOWEST ? key : +LOWEST;
    if (top <= s.top && top + SLACK >= s.top)
        return;
    if (s.top)
        publish<N>(j, q, s);
    s.top = top;
    s.usual_below = usual_below<N>(j, s.low());
}

/* Words as elements of the window, counted by their exponents. */
__device__ __forceinline__ void split(const job &j, const unsigned *u, elements &e, int low)
{
    unsigned hidden = 0x800000u;
#ifdef __CUDA_ARCH__
    asm("" : "+r"(hidden));
#endif
    unsigned *const bins = block_bins() + low;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned place = place_of(u[m] & 0x7fffffffu, low);
        e.factor[m] = left(1u << MOST_DROPPED, place);
        e.sig[m] = significand(u[m], hidden);
        if (j.histogram) /* of zeros nothing is asked */
            atomicAdd(bins + int(place), 1u);
    }
}

template <int N>
__device__ __forceinline__ void add_chunk(const job &j, queue &q, sums<N> &s, seen &found, u64 chunk, u64 warps)
{
    unsigned u[LANE];
    elements e;
    int least[LANE / 4];
    if (chunk < j.full)
        take(j, chunk, warps, u);
    else
        take_loose(j, chunk, u, found);
    const unsigned own = look(u, found, least), most = __reduce_max_sync(0xffffffffu, own);
    if (most == 0)
        return;
    place<N>(j, q, s, most);
    int low = s.low();
    if (most >= s.usual_below && is_alone<N>(j, most, low))
        low = 255; /* a window above all elements */
    split(j, u, e, low);
    put_aside(u, e, least, low);
    if (low < 255) {
        if (j.base)
            add_array<N>(e, u, s);
        cast_all<N>(j, e, s, most);
    }
    __syncwarp();
    if (*(volatile unsigned *)block_queue() >= 32)
        empty_queue<N>(j, q, 0);
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
__device__ inline void put_counters(const job &j, int i)
{
    u64 *const to = state_of(j) + STATE_CASTS + (j.first + unsigned(i)) * STATE_CAST;
    const unsigned *const n = block_counters() + i * COUNTERS_OF_CAST;
    add_limb(to + STATE_EXACT, n[COUNT_EXACT]);
    add_limb(to + STATE_UNDERFLOW, n[COUNT_UNDER]);
    add_limb(to + STATE_SUBNORMAL, n[COUNT_SMALL] - n[COUNT_UNDER]);
    add_limb(to + STATE_OVERFLOW, n[COUNT_OVER]);
    add_limb(to + STATE_LEFT, j.casts[i].saturates ? 0 : n[COUNT_OVER]);
    if (block_bounds()[i])
        atomicMax(to + STATE_RATIO, block_bounds()[i]);
}

template <int N>
__host__ __device__ constexpr int shared_words()
{
    return AT_LEFT + 3 * N * THREADS;
}

/* N casts, from j.first on. */
template <int N>
GPU_KERNEL void __launch_bounds__(THREADS, N < 1 ? 3 : 2) binary32(GPU_CONSTANT(job) j)
{
    GPU_DYNAMIC_SHARED(unsigned, words);
    const unsigned thread = threadIdx.x, warp = thread / 32, warps = gridDim.x * (THREADS / 32);
    const u64 chunks = j.full + (j.n - j.full * CHUNK + CHUNK - 1) / CHUNK;
    queue q = {0};
    sums<N> s = {};
    seen found = {0, 0, 0, 0, ~0u};
    for (unsigned i = thread; i < unsigned(shared_words<N>()); i += THREADS)
        words[i] = i / CASTS == AT_BELOW / CASTS ? ~0u : 0;
    __syncthreads();
    for (u64 chunk = blockIdx.x * (THREADS / 32) + warp; chunk < chunks; chunk += warps)
        add_chunk<N>(j, q, s, found, chunk, warps);
    empty_queue<N>(j, q, 1);
    if (s.top)
        publish<N>(j, q, s);
    if (j.base)
        put_seen(state_of(j), found);
    __syncthreads();
    if (warp == 0)
        empty_limbs(j, 2 + 2 * N);
    if (thread < N)
        put_counters(j, int(thread));
    if (j.histogram && thread && thread < 255)
        add_limb(state_of(j) + STATE_HISTOGRAM + thread - 127 + 149, block_bins()[thread]);
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
