/* cell_loops.h -- the loops of loops.h in the vocabulary of vectors (lib/simd/); once in each unit. */
#include "loops.h"

static const uint32_t lane_numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* One word to the buffers from `first` on. Not 0 if its buffer is full now. */
V_INLINE int put(uint32_t *buffers, uint32_t *at, uint32_t u, uint32_t first, uint32_t *full)
{
    const uint32_t buffer = first + (u >> 23), to = at[buffer];
    buffers[to] = u;
    at[buffer] = to + 1;
    if (__builtin_expect((to + 1) % MPSIM_CELL_BLOCK != 0, 1))
        return 0;
    *full = buffer;
    return 1;
}

V_INLINE uint32_t word_at(const unsigned char *from)
{
    uint32_t u;
    memcpy(&u, from, sizeof u);
    return u;
}

/* A load of at[] waits for the stores of the words before it, so neighbours go to different buffers. */
static size_t distribute(uint32_t *buffers, uint32_t *at, const void *x, size_t n, uint32_t second, uint32_t *full)
{
    const unsigned char *from = x;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
#pragma GCC unroll 8
        for (size_t k = 0; k < 8; k++)
            if (put(buffers, at, word_at(from + 4 * (i + k)), k % 2 ? second : 0, full))
                return i + k + 1;
    }
    for (; i < n; i++)
        if (put(buffers, at, word_at(from + 4 * i), 0, full))
            return i + 1;
    *full = MPSIM_BUFFERS;
    return n;
}

/* Where the counters of elements are, 127 too far. */
V_INLINE vu32 bin_of(vu32 u, vu32 sig)
{
    const vu32 last = sig & ((vu32){0} - sig); /* a power of two */
    return ((u >> 18) & v_u32(255 * MPSIM_ROW)) + ((vu32)v_f32_of_i32((vi32)last) >> 23);
}

static int bin(mpsim_bin_job *job, const void *x, size_t n)
{
    enum { ZERO = 127 };
    const unsigned char *from = x;
    const vu32 fraction = v_u32(0x7fffff), one = v_u32(0x800000), unit = v_u32(1);
    const vu32 sheet = v_u32(MPSIM_SHEET);
    vu32 min = v_u32(~0u), max = v_u32(0);
    uint32_t index[MPSIM_CELL_BLOCK];
    for (size_t i = 0; i < n; i += 2 * V_LANES) {
        const vu32 u = v_load_u32(from + 4 * i), w = v_load_u32(from + 4 * (i + V_LANES));
        const vu32 s = (u & fraction) | one, t = (w & fraction) | one;
        vu32 a = bin_of(u, s), b = bin_of(w, t);
        for (uint32_t k = 0; k < job->n_cuts; k++) {
            const vu32 cut = v_u32(job->cuts[k]);
            a = v_pick_u32(v_ge_u32(s, cut), a + sheet, a);
            b = v_pick_u32(v_ge_u32(t, cut), b + sheet, b);
        }
        min = v_min_u32(min, v_min_u32((u << 1) - unit, (w << 1) - unit));
        max = v_max_u32(max, v_max_u32(u << 1, w << 1));
        v_store_u32(index + i, a);
        v_store_u32(index + i + V_LANES, b);
    }
    job->min = v_reduce_min_u32(min) + 1;
    job->max = v_reduce_max_u32(max);
    if (job->min && job->min < 1 << 24)
        return 0;
    for (size_t i = 0; i < n; i += 4) {
        job->bins[index[i] - ZERO]++;
        job->bins[index[i + 1] - ZERO]++;
        job->bins[index[i + 2] - ZERO]++;
        job->bins[index[i + 3] - ZERO]++;
    }
    return 1;
}

static void sums(mpsim_cell_sums *s, uint32_t *x, size_t n, uint32_t low)
{
    const vu32 fraction = v_u32(0x7fffff), one = v_u32(0x800000), bits = v_u32(low);
    vu32 sum = v_u32(0), min = v_u32(~0u), max = v_u32(0), least = v_u32(~0u);
    vu64 even = v_u64(0), odd = v_u64(0);
    size_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES) {
        const vu32 sig = (v_load_u32(x + i) & fraction) | one;
        v_store_u32(x + i, sig);
        sum += sig; /* at most 2^8 times 2^24 - 1 */
        even += v_mul_even_u32(sig, sig);
        odd += v_mul_odd_u32(sig, sig);
        min = v_min_u32(min, sig);
        max = v_max_u32(max, sig);
        least = v_min_u32(least, sig & bits);
    }
    if (i < n) {
        const m32 there = v_gt_u32(v_u32((uint32_t)(n - i)), v_load_u32(lane_numbers));
        const vu32 sig = v_keep_u32(there, (v_load_u32(x + i) & fraction) | one);
        v_store_u32(x + i, sig);
        sum += sig;
        even += v_mul_even_u32(sig, sig);
        odd += v_mul_odd_u32(sig, sig);
        max = v_max_u32(max, sig);
        min = v_min_u32(min, v_pick_u32(there, sig, v_u32(~0u)));
        least = v_min_u32(least, v_pick_u32(there, sig & bits, v_u32(~0u)));
    }
    s->sum = v_sum_u64(v_first_u64(sum) + v_last_u64(sum));
    s->squares = v_sum_u64(even + odd);
    s->min = v_reduce_min_u32(min);
    s->max = v_reduce_max_u32(max);
    s->low = v_reduce_min_u32(least);
}

static size_t split(uint32_t *x, uint32_t *above, size_t n, uint32_t cut)
{
    const vu32 c = v_u32(cut), end = v_u32((uint32_t)n), lanes = v_load_u32(lane_numbers);
    size_t i = 0, stay, go = 0;
    while (i + V_LANES <= n && !m32_any(v_ge_u32(v_load_u32(x + i), c)))
        i += V_LANES;
    for (stay = i; i < n; i += V_LANES) {
        const vu32 u = v_load_u32(x + i);
        const m32 there = v_gt_u32(end, lanes + v_u32((uint32_t)i)), high = v_ge_u32(u, c);
        go += v_pack_u32(above + go, m32_and(there, high), u);
        stay += v_pack_u32(x + stay, m32_and(there, m32_not(high)), u);
    }
    return stay;
}

/* Distances of significands from the multiple of 2^(32 - left) that is nearest, or not above. */
V_INLINE vu32 distances(vu32 sig, vu32 left, const int kind)
{
    const vu32 top = v_shl_u32(sig, left);
    if (kind == MPSIM_CELL_TRUNCATED)
        return v_shr_u32(top, left);
    const vi32 rest = v_sar_i32((vi32)top, left);
    return v_min_u32((vu32)rest, (vu32)(-rest));
}

/* The largest of a - bound x, 0 if there is none above: of errors a and significands x, both exact in binary32. */
typedef struct excess {
    vf32 less, most;
} excess;

V_INLINE excess excess_start(float bound)
{
    return (excess){v_f32(-bound), v_f32(0)};
}

V_INLINE void excess_add(excess *e, vu32 a, vf32 x)
{
    e->most = v_max_f32(e->most, v_about_f32(e->less, x, v_f32_of_i32((vi32)a)));
}

V_INLINE int excess_end(const excess *e)
{
    return v_reduce_max_u32((vu32)e->most) > 0;
}

/* The squares of `count` drops in turn, at most 4, a constant.
 *
 * Let a be the distance from a multiple of 2^d, and k, 0 or 1, whether the nearest one is odd: bit d of
 * significand and half unit together, which is the exclusive or of bits d and d - 1. Of d + 1 bits the
 * distance is k ? 2^d - a : a, so the sum of its squares is that of d bits, plus 2^2d for each k = 1, minus
 * 2^(d + 1) a for each. Truncated: bit d, 2^d + a, and plus. */
typedef struct link {
    vu32 unit, moved; /* 2^d of the drop before, the sum of a where k */
    uint64_t odds;    /* the sum of k                                 */
    excess above;
} link;

V_INLINE link link_start(int drop, float bound)
{
    return (link){v_u32((uint32_t)1 << (drop - 1)), v_u32(0), 0, excess_start(bound)};
}

/* From the distances of the drop before to those of this one. */
V_INLINE vu32 link_add(link *l, vu32 a, vf32 x, vu32 bits, const int kind)
{
    const m32 odd = v_test_u32(bits, l->unit);
    const vu32 next = v_pick_u32(odd, kind == MPSIM_CELL_NEAREST ? l->unit - a : l->unit + a, a);
    l->odds += m32_count(odd);
    l->moved = v_pick_u32(odd, l->moved + a, l->moved);
    excess_add(&l->above, next, x);
    return next;
}

V_INLINE void link_end(const link *l, mpsim_drop_sums *s, int drop, const int kind)
{
    const uint64_t cross = v_sum_u64(v_first_u64(l->moved) + v_last_u64(l->moved)) << drop;
    s[0].squares = s[-1].squares + (l->odds << (2 * drop - 2)) +
                   (kind == MPSIM_CELL_NEAREST ? (uint64_t)0 - cross : cross);
    s[0].raises = excess_end(&l->above);
}

V_INLINE void drops_counted(mpsim_drop_sums *s, const uint32_t *sig, size_t n, int drop, const float *bound,
                            const int kind, const int count)
{
    const vu32 left = v_u32((uint32_t)(32 - drop));
    vu64 even = v_u64(0), odd = v_u64(0);
    excess above = excess_start(bound[0]);
    link second = link_start(drop + 1, bound[count > 1 ? 1 : 0]);
    link third = link_start(drop + 2, bound[count > 2 ? 2 : 0]);
    link last = link_start(drop + 3, bound[count > 3 ? 3 : 0]);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 u = v_load_u32(sig + i);
        const vu32 bits = kind == MPSIM_CELL_NEAREST ? u ^ (u << 1) : u;
        const vf32 x = v_f32_of_i32((vi32)u);
        vu32 a = distances(u, left, kind);
        even += v_mul_even_u32(a, a);
        odd += v_mul_odd_u32(a, a);
        excess_add(&above, a, x);
        if (count > 1)
            a = link_add(&second, a, x, bits, kind);
        if (count > 2)
            a = link_add(&third, a, x, bits, kind);
        if (count > 3)
            a = link_add(&last, a, x, bits, kind);
    }
    s[0].squares = v_sum_u64(even + odd);
    s[0].raises = excess_end(&above);
    if (count > 1)
        link_end(&second, s + 1, drop + 1, kind);
    if (count > 2)
        link_end(&third, s + 2, drop + 2, kind);
    if (count > 3)
        link_end(&last, s + 3, drop + 3, kind);
}

V_INLINE void drops_kind(mpsim_drop_sums *s, const uint32_t *sig, size_t n, int drop, int count, const float *bound,
                         const int kind)
{
    switch (count) {
    case 1:
        drops_counted(s, sig, n, drop, bound, kind, 1);
        break;
    case 2:
        drops_counted(s, sig, n, drop, bound, kind, 2);
        break;
    case 3:
        drops_counted(s, sig, n, drop, bound, kind, 3);
        break;
    default:
        drops_counted(s, sig, n, drop, bound, kind, MPSIM_CHAIN);
    }
}

static void drops_nearest(mpsim_drop_sums *s, const uint32_t *sig, size_t n, int drop, int count, const float *bound)
{
    drops_kind(s, sig, n, drop, count, bound, MPSIM_CELL_NEAREST);
}

static void drops_truncated(mpsim_drop_sums *s, const uint32_t *sig, size_t n, int drop, int count, const float *bound)
{
    drops_kind(s, sig, n, drop, count, bound, MPSIM_CELL_TRUNCATED);
}

static size_t with_bits(const uint32_t *sig, size_t n, uint32_t bits)
{
    const vu32 b = v_u32(bits);
    size_t count = 0;
    for (size_t i = 0; i < n; i += V_LANES)
        count += m32_count(v_test_u32(v_load_u32(sig + i), b));
    return count;
}

static size_t at_least(const uint32_t *sig, size_t n, uint32_t cut)
{
    const vu32 c = v_u32(cut);
    size_t count = 0;
    for (size_t i = 0; i < n; i += V_LANES)
        count += m32_count(v_ge_u32(v_load_u32(sig + i), c));
    return count;
}

/* error / sig > best, by products of at most 48 bits */
V_INLINE void raise_kind(mpsim_ratio *best, const uint32_t *sig, size_t n, int drop, const int kind)
{
    const vu32 left = v_u32((uint32_t)(32 - drop));
    vu32 error = v_u32(best->error), of = v_u32(best->sig);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vu32 x = v_load_u32(sig + i);
        const vu32 c = distances(x, left, kind);
        const m64 even = v_gt_i64((vi64)v_mul_even_u32(c, of), (vi64)v_mul_even_u32(error, x));
        const m64 odd = v_gt_i64((vi64)v_mul_odd_u32(c, of), (vi64)v_mul_odd_u32(error, x));
        if (!m64_any(m64_or(even, odd)))
            continue;
        uint32_t cs[V_LANES], xs[V_LANES];
        v_store_u32(cs, c);
        v_store_u32(xs, x);
        for (int l = 0; l < V_LANES; l++)
            if ((uint64_t)cs[l] * best->sig > (uint64_t)best->error * xs[l])
                *best = (mpsim_ratio){cs[l], xs[l]};
        error = v_u32(best->error);
        of = v_u32(best->sig);
    }
}

static void raise_nearest(mpsim_ratio *best, const uint32_t *sig, size_t n, int drop)
{
    raise_kind(best, sig, n, drop, MPSIM_CELL_NEAREST);
}

static void raise_truncated(mpsim_ratio *best, const uint32_t *sig, size_t n, int drop)
{
    raise_kind(best, sig, n, drop, MPSIM_CELL_TRUNCATED);
}

const mpsim_cell_loops V_NAME(mpsim_cell_loops) = {
    distribute,
    bin,
    sums,
    split,
    {drops_nearest, drops_truncated},
    with_bits,
    at_least,
    {raise_nearest, raise_truncated},
};
