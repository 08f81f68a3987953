/* window.cuh -- elements of a window: 9 binades, from 2^low to below 2^(low + 9), as integers of one unit.
 *
 * An element is X = significand * 2^k, k from 0 to 8, below 2^32. Its square is below 2^64, and sums of squares take 96 bits. To
 * nearest, a cast that drops d bits of every significand loses the lowest d + k bits of X, as a signed number:
 * a shift to the left that drops the others, one to the right. Four casts of the usual kind take 6 instructions an element each:
 * three for the error, a product, a comparison with 0 and a minimum for the relative error (bounds.cuh). Where thresholds of a
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

/* Of a thread: what its elements of a window add up to. What is rare is in shared memory, a column each. */
template <int N>
struct sums {
    i64 sum;
    wide squares, errors[N ? N : 1];
    unsigned exact[N ? N : 1];
    unsigned *column; /* of `left` a wide, of each cast */
    int top;          /* of the window: the exponent of its highest binade, biased; 0: none yet */
    __device__ int low() const
    {
        return top - WINDOW;
    }
    __device__ int unit() const
    {
        return low() - 150;
    }
};

/* A chunk, or zeros in place of what no window holds. */
struct elements {
    unsigned u[LANE]; /* 1, subnormal: it is not in the window */
};

/* The exponent above the lowest one; more than 31 if it is lower. */
__device__ inline unsigned place_of(unsigned u, int low)
{
    return (u >> 23 & 255) - unsigned(low);
}

__device__ inline unsigned integer_of(unsigned u, unsigned k)
{
    return left((u & 0x7fffffu) | 0x800000u, k);
}

/* ---- the array ---- */

template <int N>
__device__ __forceinline__ void add_array(const elements &e, sums<N> &s)
{
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned x = integer_of(e.u[m], place_of(e.u[m], s.low()));
        s.sum += e.u[m] >> 31 ? -i64(x) : i64(x);
        add_product(s.squares, x);
    }
}

/* ---- casts ---- */

/* A relative error may be larger than the block's. */
__device__ GPU_NOINLINE void look_whether_larger(const job &j, const shared &of, int i, unsigned u)
{
    const unsigned up = unsigned(32 - j.casts[i].drop);
    const int t = right(int(left(u, up)), up);
    const unsigned error = unsigned(t < 0 ? -t : t), sig = (u & 0x7fffffu) | 0x800000u;
    if (u != 1 && is_larger(error, sig, *(volatile u64 *)(of.ratios + i)))
        raise(j, of, i, double(error), double(sig));
}

template <int N>
__device__ __forceinline__ void cast_usually(const job &j, const shared &of, int i, const elements &e, sums<N> &s)
{
    const cast &c = j.casts[i];
    const unsigned up = unsigned(32 - c.drop), above = up + unsigned(s.low());
    const unsigned from = *(volatile unsigned *)(of.above + i) + 1, to = *(volatile unsigned *)(of.below + i);
    unsigned nearest = ~0u;
    int has_exact = 0;
    u64 errors = 0;
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned u = e.u[m], fraction = (u & 0x7fffffu) - from;
        const int t = int(left(u, up)), error = right(t, above - (u >> 23 & 255));
        errors += u64(i64(error) * error);
        has_exact |= t == 0;
        nearest = fraction < nearest ? fraction : nearest;
    }
    add(s.errors[i], errors);
    if (has_exact)
        GPU_UNROLL for (int m = 0; m < LANE; m++) s.exact[i] += e.u[m] != 1 && left(e.u[m], up) == 0;
    if (to > from && nearest < to - from && errors)
        GPU_UNROLL for (int m = 0; m < LANE; m++) look_whether_larger(j, of, i, e.u[m]);
}

/* What an element of the window loses in any cast: an integer of the window's unit. drop, floor: bits of X. */
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
__device__ __forceinline__ void cast_rarely(const job &j, const shared &of, int i, const elements &e, sums<N> &s)
{
    const cast &c = j.casts[i];
    const int floor = c.drop + c.floor - s.low();
    const double units = c.largest * power(-s.unit());
    const unsigned largest = units < 0x1p32 ? unsigned(__double2ll_rd(units)) : 0; /* else nothing is so large */
    unsigned under = 0, small = 0, over = 0;
    wide *const left_out = reinterpret_cast<wide *>(s.column) + i * THREADS;
    wide errors = s.errors[i];
    GPU_UNROLL for (int m = 0; m < LANE; m++)
    {
        const unsigned a = e.u[m] & 0x7fffffffu, k = place_of(a, s.low()), x = integer_of(a, k);
        if (k > WINDOW)
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
        s.exact[i] += error == 0;
        add_product(errors, error);
        if (is_larger(error, x, *(volatile u64 *)(of.ratios + i)))
            raise(j, of, i, double(error), double(x));
    }
    s.errors[i] = errors;
    unsigned *const counters = of.counters + i * COUNTERS_OF_CAST;
    under = __reduce_add_sync(0xffffffffu, under);
    small = __reduce_add_sync(0xffffffffu, small);
    over = __reduce_add_sync(0xffffffffu, over);
    if (threadIdx.x % 32 == 0) {
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
    return over || c.truncates || c.floor > low || c.least > least || c.normal > least || c.drop > 22 ? RARELY
                                                                                                       : USUALLY;
}

/* ---- the sums of a warp, into the block's ---- */

template <int N>
__device__ GPU_NOINLINE void publish(const job &j, const shared &of, queue &q, sums<N> &s)
{
    const int unit = s.unit();
    const unsigned high = unsigned(s.sum >> 63);
    if (j.base) {
        add_pieces(of.limbs, unsigned(s.sum), unsigned(s.sum >> 32), int(high), unit);
        add_pieces(of.limbs + LIMBS, s.squares.low, s.squares.mid, int(s.squares.high), 2 * unit);
    }
    GPU_UNROLL for (int i = 0; i < N; i++)
    {
        unsigned *const to = of.limbs + (2 + 2 * i) * LIMBS;
        wide *const left_out = reinterpret_cast<wide *>(s.column) + i * THREADS;
        add_pieces(to, s.errors[i].low, s.errors[i].mid, int(s.errors[i].high), 2 * unit);
        add_pieces(to + LIMBS, left_out->low, left_out->mid, int(left_out->high), 2 * unit);
        s.errors[i] = *left_out = wide{0, 0, 0};
    }
    s.sum = 0;
    s.squares = wide{0, 0, 0};
    count_added(j, of, q, 2 + 2 * N, 64);
}

} // namespace stats
