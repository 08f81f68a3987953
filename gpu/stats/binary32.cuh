/* binary32.cuh -- statistics of binary32 elements in one pass: state.h says what comes of it.
 *
 * A warp takes 512 elements at a time, 16 a thread, into registers. Those within 9 binades of the largest become integers
 * (window.cuh), whose sums stay in registers as long as the window is the same; what is smaller is put aside (alone.cuh). All sums
 * are sums of integers, so none depends on the order. Binary64 is used where a relative error is larger than all before, for
 * what saturates, and nowhere else: devices other than data centres' have 64 times fewer units for it.
 *
 * Speed: gpu/sassstats.sh prints the instructions of an element: 41 with four usual casts and a histogram (sm_90; 52 before).
 * Sixteen of them are those of the casts (window.cuh), 11 those of the histogram and the moments; none is of binary64. A
 * multiprocessor issues 128 instructions a clock, which is the bound: 3.1 elements a clock, on an H200 at 1.7 GHz 2.8 TB/s,
 * 0.67 of a copy. The loop in binary64 that was here before took 127 instructions, of which 41 were of binary64. On sm_86, sm_89
 * and sm_120, which have 2 units of binary64 a multiprocessor, those were the bound. An element that is put aside costs about
 * ten times as much as others. With four casts two words of a thread lie in memory as long as the loop runs. */
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

/* Extremes of the elements of a thread, as complements; zero: what is none of the extremes, modulo 2^32. */
struct seen {
    unsigned zero, largest, least; /* least: 0: none */
};

/* at: the thread's first elements; step: bytes to those of its next chunk. */
__device__ __forceinline__ void take(const unsigned char *&at, unsigned step, int has_next, unsigned *u)
{
    const uint4 *const p = reinterpret_cast<const uint4 *>(at);
    GPU_UNROLL for (int k = 0; k < LANE / 4; k++)
    {
        const uint4 v = __ldcs(p + 32 * k);
        u[4 * k] = v.x;
        u[4 * k + 1] = v.y;
        u[4 * k + 2] = v.z;
        u[4 * k + 3] = v.w;
    }
    at += step;
    if (has_next && threadIdx.x % 32 < 16)
        GPU_PREFETCH(at + 112 * (threadIdx.x % 32)); /* every 128 bytes */
}

/* Of what is before the first full chunk, and behind the last; zeros where nothing is, which are not counted. */
__device__ GPU_NOINLINE unsigned load_loose(const job &j, u64 i)
{
    i += i < j.head ? 0 : j.full * CHUNK;
    return i < j.n ? load(j.x + i64(i) * j.stride) : 0;
}

__device__ __forceinline__ void take_loose(const job &j, unsigned chunk, unsigned *u, seen &of)
{
    const u64 first = u64(chunk - unsigned(j.full)) * CHUNK + threadIdx.x % 32, count = j.n - j.full * CHUNK;
    GPU_UNROLL for (unsigned m = 0; m < LANE; m++)
    {
        u[m] = load_loose(j, first + m * 32);
        of.zero -= first + m * 32 >= count;
    }
}

/* Infinities and NaNs become zeros. */
__device__ __forceinline__ void take_out(unsigned *u, unsigned *c)
{
    unsigned inf = 0, nan = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        inf += c[m] == INFINITE;
        nan += c[m] < INFINITE;
        u[m] = c[m] <= INFINITE ? 0 : u[m];
        c[m] = complement(u[m]);
    }
    atomicAdd(block_no_numbers(), inf);
    atomicAdd(block_no_numbers() + 1, nan);
}

/* The largest complements, of four each. */
__device__ __forceinline__ void find_least(const unsigned *c, unsigned *least)
{
    GPU_UNROLL for (int k = 0; k < LANE; k++) least[k / 4] = k % 4 == 0 || c[k] > least[k / 4] ? c[k] : least[k / 4];
}

__device__ __forceinline__ unsigned find_largest(const unsigned *c)
{
    unsigned largest = ZERO;
    GPU_UNROLL for (int k = 0; k < LANE; k++) largest = c[k] < largest ? c[k] : largest;
    return largest;
}

/* The complement of the largest magnitude of a thread's elements; least: those of the smallest, of four each. Zeros are counted. */
__device__ __forceinline__ unsigned look(unsigned *u, unsigned *c, seen &of, unsigned *least)
{
    GPU_UNROLL for (int k = 0; k < LANE; k++) c[k] = complement(u[k]);
    unsigned largest = find_largest(c);
    find_least(c, least);
    if (largest <= INFINITE) {
        take_out(u, c);
        largest = find_largest(c);
        find_least(c, least);
    }
    unsigned smallest = least[0];
    GPU_UNROLL for (int k = 1; k < LANE / 4; k++) smallest = least[k] > smallest ? least[k] : smallest;
    if (smallest == ZERO) {
        smallest = 0;
        GPU_UNROLL for (int m = 0; m < LANE; m++)
        {
            of.zero += c[m] == ZERO;
            smallest = c[m] != ZERO && c[m] > smallest ? c[m] : smallest;
        }
    }
    of.least = smallest > of.least ? smallest : of.least;
    of.largest = largest < of.largest ? largest : of.largest;
    return largest;
}

/* What is below the window, to the queue; nothing there is left of it, nor of zeros. */
template <int N>
__device__ __forceinline__ void put_aside(const job &j, const unsigned *u, elements &e, const unsigned *least, int low,
                                          sums<N> &s, i64 &sum)
{
    const unsigned lowest = ZERO - (unsigned(low) << 23);
    GPU_UNROLL for (int k = 0; k < LANE; k += 4) if (least[k / 4] > lowest) GPU_UNROLL for (int m = k; m < k + 4; m++)
    {
        const unsigned c = complement(u[m]);
        if (c <= lowest)
            continue;
        if (j.base)
            take_back(e, m, depth_of(c, low + WINDOW), s, sum);
        if (c != ZERO)
            put(u[m]);
        e.sig[m] = 1;
        e.factor[m] = 0;
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

/* What is asked of the array: nothing, sums, a histogram, too. */
enum { CASTS_ALONE, SUMS_TOO, ALL_OF_IT };

/* Words as elements of the window, counted by their exponents; squares, and the sum times 2^22, of what is not in the window, too:
 * take_back. */
template <int N, int ASKED>
__device__ __forceinline__ i64 split(const unsigned *u, const unsigned *c, elements &e, int top, sums<N> &s)
{
    unsigned hidden = 0x800000u, highest = 1u << (MOST_DROPPED + WINDOW);
#ifdef __CUDA_ARCH__
    asm("" : "+r"(hidden), "+r"(highest));
#endif
    unsigned *const bins = block_bins() + (255 - top);
    i64 sum = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned depth = depth_of(c[m], top);
        if (ASKED == ALL_OF_IT)
            count_at(bins, depth); /* of zeros nothing is asked */
        e.factor[m] = right(int(with<0x80000000u>(u[m], highest)), depth);
        e.sig[m] = with<0x7fffffu>(u[m], hidden);
        if (ASKED != CASTS_ALONE) {
            sum += i64(int(e.sig[m])) * e.factor[m];
            add_product(s.squares, right(e.sig[m] << WINDOW, depth));
        }
    }
    return sum;
}

template <int N>
__device__ __forceinline__ void add_chunk(const job &j, queue &q, sums<N> &s, seen &found, const unsigned char *&at,
                                          unsigned chunk, unsigned warps)
{
    unsigned u[LANE], c[LANE], least[LANE / 4];
    elements e;
    if (chunk < unsigned(j.full))
        take(at, 4 * CHUNK * warps, chunk + warps < unsigned(j.full), u);
    else
        take_loose(j, chunk, u, found);
    const unsigned own = look(u, c, found, least), most = ZERO - __reduce_min_sync(0xffffffffu, own);
    if (most == 0)
        return;
    place<N>(j, q, s, most);
    int low = s.low();
    if (most >= s.usual_below && is_alone<N>(j, most, low))
        low = 255; /* a window above all elements */
    i64 sum = j.histogram ? split<N, ALL_OF_IT>(u, c, e, low + WINDOW, s)
              : j.base    ? split<N, SUMS_TOO>(u, c, e, low + WINDOW, s)
                          : split<N, CASTS_ALONE>(u, c, e, low + WINDOW, s);
    put_aside<N>(j, u, e, least, low, s, sum);
    s.sum += sum >> MOST_DROPPED;
    if (low < 255)
        cast_all<N>(j, e, s, most);
    __syncwarp();
    if (*(volatile unsigned *)block_queue() >= 32)
        empty_queue<N>(j, q, 0);
}

/* ---- the end of a block ---- */

/* The block's infinities and NaNs, which are among its zeros. */
__device__ inline void put_no_numbers(u64 *state)
{
    const unsigned inf = block_no_numbers()[0], nan = block_no_numbers()[1];
    add_limb(state + STATE_ZERO, u64(0) - inf - nan);
    add_limb(state + STATE_INF, inf);
    add_limb(state + STATE_NAN, nan);
}

/* The array's numbers of a warp, in memory. */
__device__ inline void put_seen(u64 *state, const seen &of)
{
    const unsigned zeros = __reduce_add_sync(0xffffffffu, of.zero); /* modulo 2^32: what is not there was taken away */
    const unsigned max = ZERO - __reduce_min_sync(0xffffffffu, of.largest);
    const unsigned unmin = __reduce_max_sync(0xffffffffu, of.least);
    if (threadIdx.x % 32)
        return;
    add_limb(state + STATE_ZERO, zeros);
    if (max)
        atomicMax(state + STATE_MAX, u64(max));
    if (unmin)
        atomicMax(state + STATE_UNMIN, u64(0x80000000u + unmin));
}

/* A cast's counters, by a thread of the block. */
__device__ inline void put_counters(const job &j, int i)
{
    u64 *const to = state_of(j) + STATE_CASTS + j.at[i] * STATE_CAST;
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
    const unsigned chunks =
        unsigned(j.full + (j.n - j.full * CHUNK + CHUNK - 1) / CHUNK); /* of fewer than 2^32 elements */
    queue q = {0};
    sums<N> s = {};
    seen found = {0, ZERO, 0};
    for (unsigned i = thread; i < unsigned(shared_words<N>()); i += THREADS)
        words[i] = i / (2 * CASTS) != AT_THRESHOLDS / (2 * CASTS) ? 0 : i % 2 ? +LAST : +FIRST;
    __syncthreads();
    const unsigned first = blockIdx.x * (THREADS / 32) + warp;
    const unsigned char *at = j.x + 4 * (j.head + u64(first) * CHUNK) + 16 * (thread % 32);
    for (unsigned chunk = first; chunk < chunks; chunk += warps)
        add_chunk<N>(j, q, s, found, at, chunk, warps);
    empty_queue<N>(j, q, 1);
    if (s.top)
        publish<N>(j, q, s);
    if (j.base)
        put_seen(state_of(j), found);
    __syncthreads();
    if (warp == 0)
        empty_limbs(j, 2 + 2 * N);
    if (thread == 0 && j.base)
        put_no_numbers(state_of(j));
    if (thread < N)
        put_counters(j, int(thread));
    if (j.histogram && thread && thread < 255)
        add_limb(state_of(j) + STATE_HISTOGRAM + thread - 127 + 149, block_bins()[255 - thread]);
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
