/* window.cuh -- elements of a window: 9 binades, from 2^low to below 2^(low + 9), as integers of one unit.
 *
 * An element is X = significand * 2^k, k from 0 to 8, below 2^32. Its square is below 2^64, and sums of squares take 96 bits. To
 * nearest, a cast that drops d bits of every significand loses the lowest d + k bits of X, as a signed number: a product that
 * drops the others, and the high word of one with 2^(22 + k), which is the error times 2^(22 - d). That factor has the element's
 * sign, for the sum of the array: squares of errors have none. A cast of the usual kind takes
 * 4 instructions an element (sm_90): two for the error, its square, and a minimum for the relative error (bounds.cuh), which alone is
 * of the integer unit. Where thresholds of a
 * cast are among the elements, or numbers become subnormal ones, or a cast truncates, it takes about 30.
 *
 * Counted are the elements that stay as they are, which are rare where speed is asked for; inexact are the others. */
#pragma once

#include "alone.cuh"

namespace stats
{

enum {
    LANE = 16,         /* elements of a thread in a chunk                              */
    CHUNK = 32 * LANE, /* of a warp                                                    */
    WINDOW = 8,        /* binades below that of the largest number                     */
    SLACK = 1,         /* binades that the largest number may fall before it moves     */
    MOST_DROPPED = STATS_MOST_DROPPED,
    LOWEST = WINDOW + 1 /* the lowest window: the exponent of its highest binade, biased */
};

/* What a shift by more bits than there are makes. */
__device__ inline unsigned left(unsigned x, unsigned n)
{
#ifdef __CUDA_ARCH__
    unsigned y;
    asm("shl.b32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(n));
    return y;
#else
    return n < 32 ? x << n : 0;
#endif
}

__device__ inline int right(int x, unsigned n)
{
#ifdef __CUDA_ARCH__
    int y;
    asm("shr.s32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(n));
    return y;
#else
    return x >> (n < 32 ? n : 31);
#endif
}

__device__ inline unsigned right(unsigned x, unsigned n)
{
#ifdef __CUDA_ARCH__
    unsigned y;
    asm("shr.u32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(n));
    return y;
#else
    return n < 32 ? x >> n : 0;
#endif
}

/* An integer of 96 bits. */
struct wide {
    unsigned low, mid, high;
};

__device__ inline void add(wide &s, u64 v)
{
#ifdef __CUDA_ARCH__
    asm("add.cc.u32 %0, %0, %3;\n\taddc.cc.u32 %1, %1, %4;\n\taddc.u32 %2, %2, 0;"
        : "+r"(s.low), "+r"(s.mid), "+r"(s.high)
        : "r"(unsigned(v)), "r"(unsigned(v >> 32)));
#else
    const u64 before = u64(s.mid) << 32 | s.low, sum = before + v;
    s.low = unsigned(sum);
    s.mid = unsigned(sum >> 32);
    s.high += sum < before;
#endif
}

__device__ inline void add_product(wide &s, unsigned x)
{
#ifdef __CUDA_ARCH__
    asm("mad.lo.cc.u32 %0, %3, %3, %0;\n\tmadc.hi.cc.u32 %1, %3, %3, %1;\n\taddc.u32 %2, %2, 0;"
        : "+r"(s.low), "+r"(s.mid), "+r"(s.high)
        : "r"(x));
#else
    add(s, u64(x) * x);
#endif
}

/* Of a thread: what its elements of a window add up to. */
template <int N>
struct sums {
    i64 sum;
    wide squares, errors[N ? N : 1];
    int top;              /* of the window: the exponent of its highest binade, biased; 0: none yet */
    unsigned usual_below; /* magnitudes for which all casts are usual ones, in this window */
    __device__ int low() const
    {
        return top - WINDOW;
    }
    __device__ int unit() const
    {
        return low() - 150;
    }
};

/* A chunk: significands, and 2^(22 + k) with the element's sign, k being the exponent above that of the window's lowest binade. What
 * is not in the window has significand 1 and the factor 0. */
struct elements {
    unsigned sig[LANE];
    int factor[LANE];
};

__device__ inline int is_there(const elements &e, int m)
{
    return e.factor[m] != 0;
}

/* Magnitudes a as 0x7fffffff - a: what a thread asks of their exponents takes one instruction less. */
enum : unsigned { ZERO = 0x7fffffffu, INFINITE = ZERO - 0x7f800000u };

__device__ inline unsigned complement(unsigned u)
{
    return ~u & 0x7fffffffu;
}

/* Binades of the element of complement c below the window's highest one: 8 - k; in one instruction. */
__device__ inline unsigned depth_of(unsigned c, int top)
{
#ifdef __CUDA_ARCH__
    unsigned y;
    asm("mad.hi.u32 %0, %1, 512, %2;" : "=r"(y) : "r"(c), "r"(unsigned(top - 255)));
    return y;
#else
    return (c >> 23) + unsigned(top - 255);
#endif
}

/* (u & MASK) | bits, in one instruction: a compiler that knows `bits` takes two. */
template <unsigned MASK>
__device__ inline unsigned with(unsigned u, unsigned bits)
{
#ifdef __CUDA_ARCH__
    unsigned y;
    asm("lop3.b32 %0, %1, %3, %2, 0xea;" : "=r"(y) : "r"(u), "r"(bits), "n"(MASK));
    return y;
#else
    return (u & MASK) | bits;
#endif
}

/* ---- the array ---- */

template <int N>
__device__ __forceinline__ void take_back(const elements &e, int m, unsigned depth, sums<N> &s, i64 &sum)
{
    const u64 x = right(e.sig[m] << WINDOW, depth);
    sum -= i64(int(e.sig[m])) * e.factor[m];
    add(s.squares, 0 - x * x);
    s.squares.high -= x != 0;
}

/* ---- casts ---- */

/* A relative error may be larger than the block's. */
__device__ GPU_NOINLINE void look_whether_larger(const job &j, int i, unsigned sig)
{
    const unsigned up = unsigned(32 - j.casts[i].drop);
    const int t = right(int(left(sig, up)), up);
    const unsigned error = unsigned(t < 0 ? -t : t);
    if (is_larger(error, sig, *(volatile u64 *)(block_ratios() + i)))
        raise(j, i, double(error), double(sig));
}

/* The thresholds of a cast, in one instruction. */
struct thresholds {
    unsigned from, end;
};

__device__ __forceinline__ thresholds read_thresholds(int i)
{
    thresholds t;
#ifdef __CUDA_ARCH__
    const unsigned at = unsigned(__cvta_generic_to_shared(block_thresholds() + 2 * i));
    asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(t.from), "=r"(t.end) : "r"(at));
#else
    t.from = block_thresholds()[2 * i];
    t.end = block_thresholds()[2 * i + 1];
#endif
    return t;
}

/* What a usual cast does to a chunk; least: of the bits that are dropped, the least word. Returns whether a relative error may be larger
 * than the block's. */
template <int N>
__device__ __forceinline__ int cast_usually(const job &j, int i, const elements &e, sums<N> &s, unsigned &least)
{
    const thresholds t = read_thresholds(i);
    const unsigned less = 0 - t.from, scale = j.casts[i].scale;
    const int width = int(t.end + less);
    unsigned nearest = ~0u;
    u64 errors = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned dropped = e.sig[m] * scale, fraction = e.sig[m] + less;
        const int error = __mulhi(int(dropped), e.factor[m]);
        errors += u64(i64(error) * error);
        nearest = fraction < nearest ? fraction : nearest;
        least = dropped < least ? dropped : least;
    }
    add(s.errors[i], errors >> j.casts[i].shift);
    return (nearest < unsigned(width > 0 ? width : 0)) & (errors != 0);
}

/* Those that stay as they are. */
__device__ __forceinline__ void count_exact(const job &j, int i, const elements &e)
{
    unsigned exact = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++) exact += is_there(e, m) && e.sig[m] * j.casts[i].scale == 0;
    if (exact)
        atomicAdd(block_counters() + i * COUNTERS_OF_CAST + COUNT_EXACT, exact);
}

__device__ __forceinline__ void look_at_errors(const job &j, int i, const elements &e)
{
    const thresholds t = read_thresholds(i);
    GPU_UNROLL for (int m = 0; m < LANE; m++) if (is_there(e, m) && e.sig[m] >= t.from && e.sig[m] < t.end)
        look_whether_larger(j, i, e.sig[m]);
}

/* All casts are usual ones. */
template <int N>
__device__ __forceinline__ void cast_all_usually(const job &j, const elements &e, sums<N> &s)
{
    unsigned least = ~0u, others = 0;
    int larger = 0;
    GPU_UNROLL for (int i = 0; i < N; i++) larger |= cast_usually<N>(j, i, e, s, i ? others : least) << i;
    if (least == 0)
        GPU_UNROLL for (int i = 0; i < N; i++) count_exact(j, i, e);
    if (larger)
        GPU_UNROLL for (int i = 0; i < N; i++) if (larger >> i & 1) look_at_errors(j, i, e);
}

/* What an element of the window loses in any cast: an integer of the window's unit; drop: bits of X. */
__device__ inline unsigned lost(const cast &c, unsigned a, unsigned x, int drop, unsigned largest)
{
    if (a >= c.over)
        return x - largest;
    if (a < c.least || drop > 32)
        return x;
    const unsigned rest = drop <= 0 ? 0 : x & (0xffffffffu >> (32 - drop));
    const unsigned other = left(1, unsigned(drop)) - rest; /* 32: 0 less the rest */
    return !c.truncates && rest && other < rest ? other : rest;
}

template <int N>
__device__ __forceinline__ void cast_rarely(const job &j, int i, const elements &e, sums<N> &s)
{
    const cast &c = j.casts[i];
    const int floor = c.drop + c.floor - s.low();
    const double units = c.largest * power(-s.unit());
    const unsigned largest = units < 0x1p32 ? unsigned(__double2ll_rd(units)) : 0; /* else nothing is so large */
    unsigned exact = 0, under = 0, small = 0, over = 0;
    wide *const left_out = reinterpret_cast<wide *>(block_left()) + i * THREADS;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned k = unsigned(31 - MOST_DROPPED - __clz(abs(e.factor[m]))), x = left(e.sig[m], k);
        const unsigned a = (e.sig[m] & 0x7fffffu) | (unsigned(s.low()) + k) << 23;
        if (!is_there(e, m))
            continue;
        under += a < c.least;
        small += a < c.normal;
        if (a >= c.over) {
            over++;
            if (!c.saturates) {
                add_product(*left_out, x);
                continue;
            }
        }
        const int own = c.drop + int(k);
        const unsigned error = lost(c, a, x, own > floor ? own : floor, largest);
        exact += error == 0;
        add_product(s.errors[i], error);
        if (is_larger(error, x, *(volatile u64 *)(block_ratios() + i)))
            raise(j, i, double(error), double(x));
    }
    unsigned *const counters = block_counters() + i * COUNTERS_OF_CAST;
    exact = __reduce_add_sync(0xffffffffu, exact);
    under = __reduce_add_sync(0xffffffffu, under);
    small = __reduce_add_sync(0xffffffffu, small);
    over = __reduce_add_sync(0xffffffffu, over);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(counters + COUNT_EXACT, exact);
        atomicAdd(counters + COUNT_UNDER, under);
        atomicAdd(counters + COUNT_SMALL, small);
        atomicAdd(counters + COUNT_OVER, over);
    }
}

/* How a chunk's elements are cast, its largest magnitude being `most`. */
enum { USUALLY, RARELY, ALONE };

__device__ inline int way_of(const cast &c, unsigned most, int low)
{
    const unsigned least = unsigned(low) << 23;
    const int over = most >= c.over;
    if (over && c.saturates && c.largest_exp < low - 150) /* the window has no such units */
        return ALONE;
    return over || c.truncates || c.floor > low || c.least > least || c.normal > least || c.drop > MOST_DROPPED
               ? RARELY
               : USUALLY;
}

/* Magnitudes of a window for which all casts are usual ones; 0: for none are they. */
template <int N>
__device__ inline unsigned usual_below(const job &j, int low)
{
    unsigned below = 0x7f800000u;
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        const unsigned over = way_of(j.casts[i], 0, low) == USUALLY ? j.casts[i].over : 0;
        below = over < below ? over : below;
    }
    return below;
}

template <int N>
__device__ inline int is_alone(const job &j, unsigned most, int low)
{
    int alone = 0;
    GPU_UNROLL for (int i = 0; i < N; i++) alone |= way_of(j.casts[i], most, low) == ALONE;
    return alone;
}

/* Whether an element may stay as it is: under the cast that drops the fewest bits, and so under any. */
__device__ __forceinline__ int has_exact(const job &j, const elements &e)
{
    int has = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++) has |= (e.sig[m] & j.dropped) == 0;
    return has;
}

/* Some casts may be usual ones. */
template <int N>
__device__ __forceinline__ void cast_each(const job &j, const elements &e, sums<N> &s, unsigned most)
{
    const int exact = has_exact(j, e);
    unsigned least = 0;
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        if (way_of(j.casts[i], most, s.low()) != USUALLY) {
            cast_rarely<N>(j, i, e, s);
            continue;
        }
        if (cast_usually<N>(j, i, e, s, least))
            look_at_errors(j, i, e);
        if (exact)
            count_exact(j, i, e);
    }
}

template <int N>
__device__ __forceinline__ void cast_all(const job &j, const elements &e, sums<N> &s, unsigned most)
{
    if (N == 0)
        return;
    if (most < s.usual_below)
        cast_all_usually<N>(j, e, s);
    else
        cast_each<N>(j, e, s, most);
}

/* ---- the sums of a warp, into the block's ---- */

template <int N>
__device__ __forceinline__ void publish(const job &j, queue &q, sums<N> &s)
{
    const int unit = s.unit();
    const unsigned high = unsigned(s.sum >> 63);
    if (j.base) {
        add_pieces(block_limbs(), unsigned(s.sum), unsigned(s.sum >> 32), int(high), unit);
        add_pieces(block_limbs() + LIMBS, s.squares.low, s.squares.mid, int(s.squares.high), 2 * unit);
    }
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        unsigned *const to = block_limbs() + (2 + 2 * i) * LIMBS;
        wide *const left_out = reinterpret_cast<wide *>(block_left()) + i * THREADS;
        add_pieces(to, s.errors[i].low, s.errors[i].mid, int(s.errors[i].high), 2 * unit);
        add_pieces(to + LIMBS, left_out->low, left_out->mid, int(left_out->high), 2 * unit);
        s.errors[i] = *left_out = wide{0, 0, 0};
    }
    s.sum = 0;
    s.squares = wide{0, 0, 0};
    count_added(j, q, 2 + 2 * N, 64);
}

} // namespace stats
