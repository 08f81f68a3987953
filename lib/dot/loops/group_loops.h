/* group_loops.h -- the loops of groups.h: included by one unit per instruction set, after rounded_vectors.h. */

/* x, or zero of its sign where it is tiny. */
static ALWAYS_INLINE vf64 flushed(vf64 x)
{
    const vu64 sign = (vu64)v_f64(-0.0);
    const m64 kept = v_gt_f64((vf64)((vu64)x & ~sign), v_f64(0x1.fffffffffffffp-127));
    return (vf64)(v_keep_u64(kept, (vu64)x) | ((vu64)x & sign));
}

typedef struct group_columns {
    const double *a, *b; /* a row; a column of vectors */
    size_t depth;
} group_columns;

/* Product k; a zero beyond the operands. */
static ALWAYS_INLINE vf64 group_product(const group_columns *x, size_t k)
{
    if (k >= x->depth)
        return v_f64(0);
    return v_f64(x->a[k]) * v_load_f64(x->b + k * MPSIM_PANEL);
}

static ALWAYS_INLINE vf64 group_pairs(const group_columns *x, const place_f64 *place, vf64 s, vf64 *over)
{
    for (size_t k = 0; k < x->depth; k += 2) {
        const vf64 t = add_odd(group_product(x, k), group_product(x, k + 1));
        s = round_f64(0, add_odd(s, round_f64(0, t, place, over)), place, over);
    }
    return s;
}

static ALWAYS_INLINE vf64 group_exact(const group_columns *x, size_t chunk, const place_f64 *place, vf64 s, vf64 *over)
{
    const vf64 cut = v_f64(0x1.8p52);
    for (size_t k = 0; k < x->depth; k += chunk) {
        const size_t end = x->depth - k < chunk ? x->depth : k + chunk;
        vf64 high = v_f64(0), low = v_f64(0);
        for (size_t i = k; i < end; i++) {
            const vf64 p = group_product(x, i), whole = (p + cut) - cut;
            high += whole;
            low += p - whole;
        }
        const vf64 t = round_f64(0, add_odd(high, low), place, over);
        s = flushed(round_f64(0, add_odd(s, t), place, over));
    }
    return s;
}

static void groups(const mpsim_group *p, const double *a, size_t next, const double *b, double *s, size_t rows,
                   size_t depth, unsigned *redo)
{
    const place_f64 place = place_of_f64(&p->place);
    for (size_t r = 0; r < rows; r++)
        for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES / 2) {
            const group_columns x = {a + r * next, b + j, depth};
            double *at = s + r * MPSIM_PANEL + j;
            vf64 sum = v_load_f64(at), over = v_f64(0);
            sum = p->kind == MPSIM_GROUP_PAIRS ? group_pairs(&x, &place, sum, &over)
                                               : group_exact(&x, p->chunk, &place, sum, &over);
            v_store_f64(at, sum);
            redo[r] |= beyond_f64(over, &p->place) << j;
        }
}

/* ---- to odd, in binary32 ---- */

#ifdef __AVX512F__
enum { ODD_ROWS = 8 };
#else
enum { ODD_ROWS = 4 };
#endif

/* As add_odd, where the sum is below the largest number. */
static ALWAYS_INLINE vf32 add_odd_f32(vf32 x, vf32 y)
{
#ifdef V_NEAR
    const vf32 down = v_down_add_f32(x, y), up = v_up_add_f32(x, y);
    return (vf32)v_pick_u32(v_test_u32((vu32)down, v_u32(1)), (vu32)down, (vu32)up);
#else
    const vf32 sum = x + y, part = sum - x;
    const vf32 error = (x - (sum - part)) + (y - part);
    const vu32 u = (vu32)sum, inward = ((vu32)error ^ u) >> 31; /* of other signs */
    const m32 inexact = m32_not(v_eq_f32(error, v_f32(0)));
    const vu32 move = v_keep_u32(inexact, ~u & v_u32(1));
    return (vf32)(u + move - ((move & inward) << 1));
#endif
}

static ALWAYS_INLINE vf32 odd_sum(vf32 x, vf32 y, vu32 *over)
{
    const vf32 sum = flush_lanes(add_odd_f32(x, y));
    *over = v_max_u32(*over, (vu32)sum << 1);
    return sum;
}

/* Of any numbers: what reaches 2^128 is infinite, and below it the largest number is odd. The sum of binary64 is exact
 * there, or far from 2^128. */
static ALWAYS_INLINE vf32 add_odd_any(vf32 x, vf32 y)
{
    const vu64 top = (vu64)v_f64(-0.0);
    const vf64 first = v_first_f64(x) + v_first_f64(y), last = v_last_f64(x) + v_last_f64(y), end = v_f64(0x1p128);
    const vf32 sum = v_narrow_f32(first, last);
    const vf32 over = v_narrow_f32((vf64)((vu64)first & ~top) - end, (vf64)((vu64)last & ~top) - end);
    const vu32 sign = (vu32)sum & 0x80000000u, largest = sign | 0x7f7fffffu, infinite = sign | 0x7f800000u;
    vu32 large = v_pick_u32(v_gt_f32(v_f32(0), over), largest, infinite);
    large = v_pick_u32(v_eq_f32(sum, sum), large, (vu32)sum);
    return (vf32)v_pick_u32(v_ge_u32((vu32)sum ^ sign, v_u32(0x7f7fffffu)), large, (vu32)add_odd_f32(x, y));
}

/* A row with a sum that was the largest number, or none: as odd_some. */
static __attribute__((noinline)) void odd_again(const float *x, const float *b, float *s, size_t depth)
{
    vf32 sum = v_load_f32(s);
    for (size_t k = 0; k < depth; k += 2) {
        const int two = k + 1 < depth;
        const vf32 y = flush_lanes(v_load_f32(b + k * MPSIM_PANEL));
        const vf32 z = two ? flush_lanes(v_load_f32(b + (k + 1) * MPSIM_PANEL)) : v_f32(0);
        const vf32 p = flush_lanes(flush_lanes(v_f32(x[k])) * y);
        const vf32 q = two ? flush_lanes(flush_lanes(v_f32(x[k + 1])) * z) : v_f32(0);
        sum = flush_lanes(add_odd_any(sum, flush_lanes(add_odd_any(p, q))));
    }
    v_store_f32(s, sum);
}

static ALWAYS_INLINE void odd_some(const size_t rows, const float *a, size_t next, const float *b, float *s,
                                   size_t depth)
{
    vf32 sum[ODD_ROWS];
    vu32 over[ODD_ROWS];
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        sum[r] = v_load_f32(s + r * MPSIM_PANEL);
        over[r] = v_u32(0);
    }
    for (size_t k = 0; k < depth; k += 2) {
        const int two = k + 1 < depth;
        const vf32 y = flush_lanes(v_load_f32(b + k * MPSIM_PANEL));
        const vf32 z = two ? flush_lanes(v_load_f32(b + (k + 1) * MPSIM_PANEL)) : v_f32(0);
        UNROLL
        for (size_t r = 0; r < rows; r++) {
            const float *x = a + r * next + k;
            const vf32 p = flush_lanes(flush_lanes(v_f32(x[0])) * y);
            const vf32 q = two ? flush_lanes(flush_lanes(v_f32(x[1])) * z) : v_f32(0);
            sum[r] = odd_sum(sum[r], odd_sum(p, q, &over[r]), &over[r]);
        }
    }
    UNROLL
    for (size_t r = 0; r < rows; r++) {
        if (m32_any(v_ge_u32(over[r], v_u32(0xfefffffe))))
            odd_again(a + r * next, b, s + r * MPSIM_PANEL, depth);
        else
            v_store_f32(s + r * MPSIM_PANEL, sum[r]);
    }
}

static void odd_groups(const float *a, size_t next, const float *b, float *s, size_t rows, size_t depth)
{
    for (unsigned j = 0; j < MPSIM_PANEL; j += V_LANES) {
        size_t r = 0;
        for (; r + ODD_ROWS <= rows; r += ODD_ROWS)
            odd_some(ODD_ROWS, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth);
        for (; r < rows; r++)
            odd_some(1, a + r * next, next, b + j, s + r * MPSIM_PANEL + j, depth);
    }
}
