/* binary32.cuh -- statistics of binary32 elements in one pass: state.h says what comes of it.
 *
 * A warp takes 512 elements at a time, 16 a thread. They are summed in binary64, exactly: all numbers of a
 * window are multiples of one unit, from 2^(E - WINDOW) to below 2^(E + 1), so that DEPTH chunks of them add up
 * below 2^53 units. Of squares the part that is a multiple of a larger unit is rounded off into one sum, what is
 * left into another, by
 *
 *     high' = fma(x, x, high)       rounded to the unit of `high`, which stays in its binade
 *     low  += fma(x, x, -(high' - high))
 *
 * where both differences are exact. x less x rounded to a format is exact, too: (x + M) - M rounds to a multiple of
 * the unit of M = 1.5 * 2^(52 + exponent of the unit), to nearest, and in ties both neighbours are as far. Then
 * sums of windows become integers. What no window holds (numbers far smaller than their neighbours, subnormal
 * ones) is added by integers, one by one; what is zero, infinite or NaN adds nothing. No sum depends on the order. */
#pragma once

#include "../kernels/cuda.cuh"
#include "plan.h"

#ifdef __CUDACC__
#pragma nv_diag_suppress 128, 186 /* loops over no casts */
#endif

namespace stats
{

enum {
    LANE = 16,         /* elements of a thread in a chunk                              */
    CHUNK = 32 * LANE, /* of a warp                                                    */
    DEPTH = 8,         /* chunks that a window takes: 128 elements of a thread         */
    ROUNDS = 16,       /* windows whose sums, as integers of all threads, fit 64 bits  */
    WINDOW = 21,       /* binades below that of the largest number                     */
    SLACK = 6,         /* binades that the largest numbers may fall before it moves    */
    FEW = 8,           /* threads with numbers for the next window, below which it is not worth while */
    LOWEST = 24,       /* the lowest window: its E, biased                             */
    THREADS = 256,
    CASTS = 4 /* of a launch */
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
    int base, histogram; /* base: the array, too */
    unsigned first;      /* cast */
    stats::cast casts[CASTS];
};

__device__ inline double power(int e)
{
    return __longlong_as_double(i64(1023 + e) << 52);
}

/* ---- exact sums in memory ---- */

__device__ inline void add_limb(u64 *limb, u64 v, int negative)
{
    if (v)
        atomicAdd(limb, negative ? 0 - v : v);
}

/* (hi, lo) * 2^exp, less than 2^128 */
__device__ inline void add_wide(u64 *limbs, u64 hi, u64 lo, int exp, int negative)
{
    const unsigned at = unsigned(exp - STATE_LOWEST), shift = at % 32;
    u64 *limb = limbs + at / 32;
    const u64 top = shift ? hi >> (64 - shift) : 0;
    const u64 mid = shift ? (hi << shift | lo >> (64 - shift)) : hi, low = lo << shift;
    add_limb(limb, low & 0xffffffffu, negative);
    add_limb(limb + 1, low >> 32, negative);
    add_limb(limb + 2, mid & 0xffffffffu, negative);
    if (mid >> 32 | top) {
        add_limb(limb + 3, mid >> 32, negative);
        add_limb(limb + 4, top, negative);
    }
}

__device__ inline void add_integer(u64 *limbs, i64 v, int exp)
{
    add_wide(limbs, 0, v < 0 ? 0 - u64(v) : u64(v), exp, v < 0);
}

/* The square of a finite number. */
__device__ inline void add_square(u64 *limbs, double d)
{
    const u64 u = u64(__double_as_longlong(d));
    const int biased = int(u >> 52 & 2047);
    const u64 m = (u & 0xfffffffffffffull) | (u64(1) << 52);
    const u64 a = m >> 32, b = m & 0xffffffffu; /* a below 2^21 */
    const u64 cross = 2 * a * b, low = b * b + (cross << 32);
    if (biased) /* numbers here are far above the least of binary64 */
        add_wide(limbs, a * a + (cross >> 32) + (low < b * b), low, 2 * (biased - 1075), 0);
}

__device__ inline void raise_ratio(u64 *to, double ratio)
{
    if (ratio > 0) /* positive numbers are ordered as their bits */
        atomicMax(to, u64(__double_as_longlong(ratio)));
}

/* ---- elements that no window holds ---- */

/* What a cast does to a number of significand sig in [2^23, 2^24), times 2^(key - 150). */
__device__ inline void cast_alone(u64 *to, const cast &c, unsigned a, unsigned sig, int key)
{
    double error, of = double(sig) * power(key - 150);
    if (a >= c.over) {
        atomicAdd(to + STATE_INEXACT, u64(1));
        atomicAdd(to + STATE_OVERFLOW, u64(1));
        if (!c.saturates) {
            atomicAdd(to + STATE_LEFT, u64(1));
            add_wide(to + STATE_LEFT_SQUARES, 0, u64(sig) * sig, 2 * (key - 150), 0);
            return;
        }
        error = of - c.largest;
    } else if (a < c.least) {
        atomicAdd(to + STATE_INEXACT, u64(1));
        atomicAdd(to + STATE_UNDERFLOW, u64(1));
        error = of;
    } else {
        const int drop = c.drop + (key < c.floor ? c.floor - key : 0);
        if (a < c.normal)
            atomicAdd(to + STATE_SUBNORMAL, u64(1));
        if (drop <= 0)
            return;
        const unsigned unit = 1u << drop, rest = sig & (unit - 1); /* at most 25 bits: else it is below `least` */
        const unsigned distance = !c.truncates && rest > unit / 2 ? unit - rest : rest;
        if (distance == 0)
            return;
        atomicAdd(to + STATE_INEXACT, u64(1));
        error = double(distance) * power(key - 150);
    }
    add_square(to + STATE_ERRORS, error);
    raise_ratio(to + STATE_RATIO, error / of);
}

__device__ GPU_NOINLINE void add_element(const job &j, u64 *state, unsigned u, int n_casts)
{
    const unsigned a = u & 0x7fffffffu;
    int key = int(a >> 23);
    unsigned sig = (a & 0x7fffffu) | (key ? 0x800000u : 0);
    key += key == 0;
    while (sig < 0x800000u) {
        sig <<= 1;
        key--;
    }
    if (j.base) {
        add_integer(state + STATE_SUM, u >> 31 ? -i64(sig) : i64(sig), key - 150);
        add_wide(state + STATE_SQUARES, 0, u64(sig) * sig, 2 * (key - 150), 0);
        if (j.histogram)
            atomicAdd(state + STATE_HISTOGRAM + (key - 127 + 149), u64(1));
    }
    for (int c = 0; c < n_casts; c++)
        cast_alone(state + STATE_CASTS + (j.first + unsigned(c)) * STATE_CAST, j.casts[c], a, sig, key);
}

/* ---- elements in windows ---- */

/* A sum of squares, or of two of them. */
struct pair {
    double high, low;
};

__device__ inline void add(pair &s, double x)
{
    const double high = __fma_rn(x, x, s.high), part = high - s.high;
    s.low += __fma_rn(x, x, -part);
    s.high = high;
}

template <int N>
struct sums {
    double sum;
    pair squares, errors[N ? N : 1], left[N ? N : 1];
};

template <int N>
struct counts {
    unsigned inexact[N ? N : 1], underflow[N ? N : 1], small[N ? N : 1], overflow[N ? N : 1];
    double bound[N ? N : 1];
    u64 *bounds; /* of the block, as bits */
};

/* Exponents of a window: of the number that the sums of squares begin with, and of the units. */
struct window {
    int top; /* E, biased by 127; 0: none yet */
    __device__ int start() const
    {
        return 2 * (top - 127) + 11;
    }
    __device__ int unit() const
    {
        return top - 127 - WINDOW - 23;
    }
    __device__ int high() const
    {
        return start() - 52;
    }
    __device__ int low() const
    {
        return 2 * unit();
    }
};

template <int N>
__device__ inline void begin(sums<N> &s, const window &w)
{
    const pair start = {1.5 * power(w.start()), 0};
    s.sum = 0;
    s.squares = start;
    GPU_UNROLL for (int c = 0; c < N; c++) s.errors[c] = s.left[c] = start;
}

__device__ inline i64 integer(double x, int unit)
{
    return __double2ll_rn(x * power(-unit));
}

/* The sums of a window, added to the thread's integers. */
template <int N>
__device__ inline void settle(sums<N> &s, const window &w, i64 *column)
{
    const double start = 1.5 * power(w.start());
    column[0] += integer(s.sum, w.unit());
    column[THREADS] += integer(s.squares.high - start, w.high());
    column[2 * THREADS] += integer(s.squares.low, w.low());
    GPU_UNROLL for (int c = 0; c < N; c++)
    {
        i64 *const at = column + (3 + 4 * c) * THREADS;
        at[0] += integer(s.errors[c].high - start, w.high());
        at[THREADS] += integer(s.errors[c].low, w.low());
        at[2 * THREADS] += integer(s.left[c].high - start, w.high());
        at[3 * THREADS] += integer(s.left[c].low, w.low());
    }
    begin(s, w);
}

/* The integers of the warp, in memory: each sum by a lane of its own. */
template <int N>
__device__ GPU_NOINLINE void publish(const job &j, u64 *state, const window &w, i64 *column)
{
    const int lane = int(threadIdx.x % 32);
    i64 mine = 0;
    for (int k = 0; k < 3 + 4 * N; k++) {
        i64 v = column[k * THREADS];
        column[k * THREADS] = 0;
        GPU_UNROLL for (int m = 16; m; m /= 2) v += __shfl_xor_sync(0xffffffffu, v, m);
        mine = lane == k ? v : mine;
    }
    if (mine == 0 || (lane < 3 && !j.base))
        return;
    const int of = (lane - 3) / 4, which = (lane - 3) % 4; /* of a cast: errors, left, high and low in turn */
    u64 *const cast = state + STATE_CASTS + (j.first + unsigned(of)) * STATE_CAST;
    u64 *const limbs = lane == 0   ? state + STATE_SUM
                       : lane < 3  ? state + STATE_SQUARES
                       : which < 2 ? cast + STATE_ERRORS
                                   : cast + STATE_LEFT_SQUARES;
    add_integer(limbs, mine, lane == 0 ? w.unit() : lane % 2 ? w.high() : w.low());
}

__device__ inline unsigned load(const unsigned char *p)
{
    if ((size_t(p) & 3) == 0)
        return *reinterpret_cast<const unsigned *>(p);
    return unsigned(p[0]) | unsigned(p[1]) << 8 | unsigned(p[2]) << 16 | unsigned(p[3]) << 24;
}

/* Four elements of the thread, part k of a full chunk. */
__device__ inline uint4 take(const job &j, u64 chunk, unsigned k, unsigned lane)
{
    return reinterpret_cast<const uint4 *>(j.x + 4 * (j.head + chunk * CHUNK))[32 * k + lane];
}

/* Of what is before the first full chunk, and behind the last. *there: which there are, a bit each; others are zeros. */
__device__ GPU_NOINLINE uint4 take_loose(const job &j, u64 chunk, unsigned k, unsigned lane, unsigned *there)
{
    unsigned u[4], found = 0;
    GPU_UNROLL for (unsigned m = 0; m < 4; m++)
    {
        u64 i = (chunk - j.full) * CHUNK + (4 * k + m) * 32 + lane;
        i += i < j.head ? 0 : j.full * CHUNK;
        u[m] = i < j.n ? load(j.x + i64(i) * j.stride) : 0;
        found |= unsigned(i < j.n) << m;
    }
    *there = found;
    return make_uint4(u[0], u[1], u[2], u[3]);
}

/* What x, a number of a window, loses in a cast to nearest that does not flush it; u is x as a word. */
__device__ inline double lost(const cast &c, unsigned u, double x)
{
    const int own = int(u >> 3) & 0x0ff00000;
    const double m = __hiloint2double((own > c.floor_word ? own : c.floor_word) + c.unit_word, 0);
    return x - ((x + m) - m);
}

/* The same of every cast, what overflows counted as well. */
template <int N>
__device__ inline double lost_rarely(const cast &c, int i, unsigned u, double x, sums<N> &s, counts<N> &n)
{
    const unsigned a = u & 0x7fffffffu;
    const double magnitude = fabs(x);
    double error = lost(c, a, magnitude);
    if (c.truncates && error < 0) { /* by M's unit too far */
        const int own = int(a >> 3) & 0x0ff00000, word = (own > c.floor_word ? own : c.floor_word) + c.unit_word;
        error += __hiloint2double((word & 0x7ff00000) - (52 << 20), 0);
    }
    if (c.flushes && a < c.least)
        error = magnitude;
    if (a >= c.over) {
        n.overflow[i]++;
        error = 0;
        if (c.saturates) {
            error = magnitude - c.largest;
            n.inexact[i] += error == 0;
        } else {
            n.inexact[i]++;
            add(s.left[i], x);
        }
    }
    return error;
}

/* A relative error, if it is larger than those that the block has met. */
template <int N>
__device__ inline void raise_bound(counts<N> &n, int i, double error, double x)
{
    if (error == 0)
        return;
    const u64 above = u64(__double_as_longlong(fabs(error) / fabs(x))) + 1;
    if (above > u64(__double_as_longlong(n.bound[i]))) {
        n.bound[i] = __longlong_as_double(i64(above));
        atomicMax(n.bounds + i, above);
    }
}

/* Four numbers of a window under all casts. RARE: some of the chunk overflow, or a cast does not round to nearest, or
 * flushes.
 *
 * A bound is the number of binary64 above the largest relative error. Two quotients of integers below 2^24 are as far
 * apart as that, so what is larger than the bound is larger than the error, and what is not is not. Whether a quotient is
 * larger the sign of an fma says exactly. In RARE ones integers have up to 53 bits, and the bound is a little lower. */
template <int N, int RARE>
__device__ inline void cast_four(const job &j, const unsigned *u, const double *x, sums<N> &s, counts<N> &n)
{
    int larger = 0; /* negative: an error is the largest */
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        const cast &c = j.casts[i];
        GPU_UNROLL for (int k = 0; k < 4; k++)
        {
            const unsigned below = (u[k] & 0x7fffffffu) - 1;
            const double error = RARE ? lost_rarely(c, i, u[k], x[k], s, n) : lost(c, u[k], x[k]);
            n.inexact[i] += error != 0;
            n.underflow[i] += below < c.least - 1;
            n.small[i] += below < c.normal - 1;
            add(s.errors[i], error);
            const double bound = RARE ? n.bound[i] * (1 - 0x1p-50) : n.bound[i];
            const double less = __fma_rn(bound, fabs(x[k]), -fabs(error));
            larger |= __double2hiint(less);
            if (RARE && less < 0)
                raise_bound(n, i, error, x[k]);
        }
    }
    if (RARE || larger >= 0)
        return;
    for (int k = 0; k < 4; k++) { /* without an index into registers */
        const unsigned v = k == 0 ? u[0] : k == 1 ? u[1] : k == 2 ? u[2] : u[3];
        const double y = double(__uint_as_float(v));
        GPU_UNROLL for (int i = 0; i < N; i++) raise_bound(n, i, lost(j.casts[i], v, y), y);
    }
}

/* Four elements: those of a window, of magnitudes in [from, below), are summed. The largest magnitude that is smaller. */
template <int N, int RARE>
__device__ inline unsigned add_four(const job &j, const uint4 &v, unsigned from, unsigned below, unsigned *bins,
                                    sums<N> &s, counts<N> &n)
{
    unsigned u[4] = {v.x, v.y, v.z, v.w}, out = 0, rest = 0;
    double x[4];
    GPU_UNROLL for (int k = 0; k < 4; k++)
    {
        const unsigned a = u[k] & 0x7fffffffu;
        const unsigned inside = a - from < below - from ? u[k] : 0;
        out |= inside ^ u[k];
        u[k] = inside;
        x[k] = double(__uint_as_float(u[k]));
    }
    if (j.base)
        GPU_UNROLL for (int k = 0; k < 4; k++)
        {
            s.sum += x[k];
            add(s.squares, x[k]);
        }
    if (j.histogram)
        GPU_UNROLL for (int k = 0; k < 4; k++) atomicAdd(&bins[u[k] >> 23 & 255], 1u); /* of zeros nothing is asked */
    if constexpr (N > 0)
        cast_four<N, RARE>(j, u, x, s, n);
    if (out << 1) {
        const unsigned all[4] = {v.x, v.y, v.z, v.w};
        GPU_UNROLL for (int k = 0; k < 4; k++)
        {
            const unsigned a = all[k] & 0x7fffffffu;
            rest = a < from && a > rest ? a : rest;
        }
    }
    return rest;
}

template <int N>
__device__ inline void put_counts(const job &j, u64 *state, const counts<N> &n)
{
    for (int c = 0; c < N; c++) {
        u64 *const to = state + STATE_CASTS + (j.first + unsigned(c)) * STATE_CAST;
        const unsigned inexact = __reduce_add_sync(0xffffffffu, n.inexact[c]);
        const unsigned under = __reduce_add_sync(0xffffffffu, n.underflow[c]);
        const unsigned small = __reduce_add_sync(0xffffffffu, n.small[c]);
        const unsigned over = __reduce_add_sync(0xffffffffu, n.overflow[c]);
        if (threadIdx.x % 32)
            continue;
        add_limb(to + STATE_INEXACT, inexact, 0);
        add_limb(to + STATE_UNDERFLOW, under, 0);
        add_limb(to + STATE_SUBNORMAL, small - under, 0);
        add_limb(to + STATE_OVERFLOW, over, 0);
        add_limb(to + STATE_LEFT, j.casts[c].saturates ? 0 : over, 0);
    }
}

/* Extremes of the elements of a thread, and what is no number to sum. */
struct seen {
    unsigned zero, inf, nan, largest, least; /* least: less 1 */
};

/* The largest magnitude of four, infinite ones and NaNs among them. */
__device__ inline unsigned look(const uint4 &v, seen &of)
{
    const unsigned u[4] = {v.x, v.y, v.z, v.w};
    unsigned most = 0;
    GPU_UNROLL for (int k = 0; k < 4; k++)
    {
        const unsigned a = u[k] & 0x7fffffffu;
        most = a > most ? a : most;
        of.least = a - 1 < of.least ? a - 1 : of.least;
        of.zero += a == 0;
    }
    return most;
}

/* Of a chunk with infinities or NaNs: the largest finite magnitude, how many of them. */
__device__ GPU_NOINLINE uint4 look_again(const job &j, u64 chunk, unsigned lane)
{
    unsigned most = 0, inf = 0, nan = 0;
    for (unsigned k = 0; k < LANE / 4; k++) {
        unsigned there;
        const uint4 v = chunk < j.full ? take(j, chunk, k, lane) : take_loose(j, chunk, k, lane, &there);
        const unsigned u[4] = {v.x, v.y, v.z, v.w};
        GPU_UNROLL for (int m = 0; m < 4; m++)
        {
            const unsigned a = u[m] & 0x7fffffffu;
            inf += a == 0x7f800000u;
            nan += a > 0x7f800000u;
            most = a < 0x7f800000u && a > most ? a : most;
        }
    }
    return make_uint4(most, inf, nan, 0);
}

/* The array's numbers of a warp, in memory. */
__device__ inline void put_seen(u64 *state, const seen &of)
{
    const unsigned zeros = __reduce_add_sync(0xffffffffu, of.zero); /* modulo 2^32: what is not there was taken away */
    const unsigned inf = __reduce_add_sync(0xffffffffu, of.inf), nan = __reduce_add_sync(0xffffffffu, of.nan);
    const unsigned max = __reduce_max_sync(0xffffffffu, of.largest);
    const unsigned min = ~__reduce_max_sync(0xffffffffu, ~of.least);
    if (threadIdx.x % 32)
        return;
    add_limb(state + STATE_ZERO, zeros, 0);
    add_limb(state + STATE_INF, inf, 0);
    add_limb(state + STATE_NAN, nan, 0);
    if (max)
        atomicMax(state + STATE_MAX, u64(max));
    if (min < 0x7f7fffffu)
        atomicMax(state + STATE_UNMIN, u64(0xffffffffu - (min + 1)));
}

/* The elements of a chunk whose magnitudes are below a bound, by integers. */
template <int N>
__device__ GPU_NOINLINE void add_alone(const job &j, u64 *state, u64 chunk, unsigned lane, unsigned below)
{
    for (unsigned k = 0; k < LANE / 4; k++) {
        unsigned there;
        const uint4 v = chunk < j.full ? take(j, chunk, k, lane) : take_loose(j, chunk, k, lane, &there);
        for (unsigned m = 0; m < 4; m++) {
            const unsigned u = m == 0 ? v.x : m == 1 ? v.y : m == 2 ? v.z : v.w, a = u & 0x7fffffffu;
            if (a && a < below)
                add_element(j, state, u, N);
        }
        __syncwarp();
    }
}

/* What a chunk asks for, its largest magnitude being `most`. */
enum { USUAL, RARELY, ALONE };

template <int N>
__device__ inline int way_of(const job &j, unsigned most, const window &w)
{
    int way = USUAL;
    GPU_UNROLL for (int c = 0; c < N; c++)
    {
        const int over = most >= j.casts[c].over;
        if (over || j.casts[c].truncates || j.casts[c].flushes)
            way = way > RARELY ? way : +RARELY;
        if (over && j.casts[c].saturates && j.casts[c].largest_exp < w.unit()) /* the window has no such units */
            way = ALONE;
    }
    return way;
}

/* ---- a chunk ---- */

/* A chunk for the first time: the largest magnitude of this lane's finite numbers; `of`: what was seen. The next one is
 * asked for. */
static __device__ __forceinline__ unsigned look_first(const job &j, u64 chunk, u64 warps, unsigned lane, seen &of)
{
    unsigned most = 0, there;
    if (chunk < j.full) {
        uint4 v[LANE / 4];
        GPU_UNROLL for (unsigned k = 0; k < LANE / 4; k++) v[k] = take(j, chunk, k, lane);
        GPU_UNROLL for (unsigned k = 0; k < LANE / 4; k++)
        {
            const unsigned m = look(v[k], of);
            most = m > most ? m : most;
        }
        if (chunk + warps < j.full && lane < 16)
            GPU_PREFETCH(j.x + 4 * (j.head + (chunk + warps) * CHUNK + 32 * lane));
    } else {
        for (unsigned k = 0; k < LANE / 4; k++) {
            const uint4 v = take_loose(j, chunk, k, lane, &there);
            const unsigned m = look(v, of);
            of.zero -= 4 - unsigned(__popc(there));
            most = m > most ? m : most;
        }
    }
    if (most >= 0x7f800000u) {
        const uint4 found = look_again(j, chunk, lane);
        most = found.x;
        of.inf += found.y;
        of.nan += found.z;
    }
    return most;
}

/* The window for magnitudes up to `most`: it moves where they are above it or far below, and what it holds is settled then, or
 * once it is `depth` = DEPTH chunks deep; `rounds`: how often that was since the integers of `column` were published. */
template <int N>
static __device__ __forceinline__ void place(const job &j, u64 *state, i64 *column, int &depth, int &rounds, window &w,
                                             sums<N> &s, unsigned most)
{
    const int key = int(most >> 23);
    const int moves = key > w.top || (key + SLACK < w.top && w.top > LOWEST);
    if (moves || depth == DEPTH) {
        const int top = !moves ? w.top : key + 1 > LOWEST ? key + 1 : +LOWEST;
        if (w.top) {
            settle(s, w, column);
            if (++rounds == ROUNDS || moves) {
                publish<N>(j, state, w, column);
                rounds = 0;
            }
        }
        w.top = top;
        depth = 0;
        begin(s, w);
    }
    depth++;
}

/* The chunk's magnitudes in [from, below) into the window's sums; the largest one below them is what is left. */
template <int N>
static __device__ __forceinline__ unsigned add_window(const job &j, u64 chunk, unsigned lane, int way, unsigned from,
                                                      unsigned below, unsigned *bins, sums<N> &s, counts<N> &n)
{
    unsigned rest = 0, there;
#pragma unroll 1
    for (unsigned k = 0; k < LANE / 4; k++) {
        const uint4 v = chunk < j.full ? take(j, chunk, k, lane) : take_loose(j, chunk, k, lane, &there);
        const unsigned r = way == USUAL ? add_four<N, 0>(j, v, from, below, bins, s, n)
                                        : add_four<N, 1>(j, v, from, below, bins, s, n);
        rest = r > rest ? r : rest;
    }
    return rest;
}

/* N casts, from j.first on; threads hold 3 + 4 N integers each in shared memory. A chunk is read twice, the second
 * time from the cache. */
template <int N>
GPU_KERNEL void __launch_bounds__(THREADS, N < 2 ? 3 : 2) binary32(GPU_CONSTANT(job) j)
{
    GPU_DYNAMIC_SHARED(i64, integers);
    GPU_SHARED(unsigned, bins, [256]);
    GPU_SHARED(u64, bounds, [CASTS]);
    const unsigned lane = threadIdx.x % 32, warps = gridDim.x * (THREADS / 32);
    const u64 chunks = j.full + (j.n - j.full * CHUNK + CHUNK - 1) / CHUNK;
    u64 *const state = j.states + u64(blockIdx.x % j.replicas) * j.words;
    i64 *const column = integers + threadIdx.x;
    window w = {0};
    sums<N> s = {};
    counts<N> n = {};
    n.bounds = bounds;
    seen of = {0, 0, 0, 0, ~0u};
    int depth = 0, rounds = 0;
    for (int k = 0; k < 3 + 4 * N; k++)
        column[k * THREADS] = 0;
    bins[threadIdx.x] = 0;
    if (threadIdx.x < CASTS)
        bounds[threadIdx.x] = 0;
    __syncthreads();
    for (u64 chunk = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; chunk < chunks; chunk += warps) {
        unsigned most = look_first(j, chunk, warps, lane, of);
        GPU_UNROLL for (int c = 0; c < N; c++) n.bound[c] = __longlong_as_double(i64(*(volatile u64 *)(bounds + c)));
        of.largest = most > of.largest ? most : of.largest;
        most = __reduce_max_sync(0xffffffffu, most);
        /* windows from the largest number down, as long as many elements are in the next; the others alone */
        for (unsigned below = 0x7f800000u;;) {
            place<N>(j, state, column, depth, rounds, w, s, most);
            const int low = w.top - WINDOW, way = way_of<N>(j, most, w);
            const unsigned from = low < 1 ? 0x00800000u : unsigned(low) << 23;
            unsigned rest = most;
            if (way != ALONE)
                rest = add_window<N>(j, chunk, lane, way, from, below, bins, s, n);
            most = __reduce_max_sync(0xffffffffu, rest);
            if (most == 0)
                break;
            if (way == ALONE || w.top == LOWEST || __popc(__ballot_sync(0xffffffffu, rest >= 0x00800000u)) < FEW) {
                add_alone<N>(j, state, chunk, lane, way == ALONE ? below : from);
                break;
            }
            below = from;
        }
    }
    if (w.top) {
        settle(s, w, column);
        publish<N>(j, state, w, column);
    }
    put_counts<N>(j, state, n);
    if (j.base)
        put_seen(state, of);
    __syncthreads();
    if (threadIdx.x < N && bounds[threadIdx.x])
        atomicMax(state + STATE_CASTS + (j.first + threadIdx.x) * STATE_CAST + STATE_RATIO, bounds[threadIdx.x] - 1);
    if (j.histogram && threadIdx.x && threadIdx.x < 255)
        add_limb(state + STATE_HISTOGRAM + threadIdx.x - 127 + 149, bins[threadIdx.x], 0);
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
