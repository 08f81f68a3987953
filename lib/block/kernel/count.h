/* count.h -- what happens to elements, counted V_LANES at a time as account of batch.c does. Included by
 * vector.h. In the blocks that come here elements are finite or NaN, and factors are finite. */

typedef struct tally {
    vu32 underflow, subnormal, overflow, nan;
    vu64 exact;
    uint64_t all; /* elements, those of unfilled vectors included: they are exact zeros */
} tally;

/* Scaled elements y that are finite and saturate; a is their magnitude. */
V_INLINE m32 saturates(const mpsim_block_kernel *k, int mode, vf32 y, vu32 word)
{
    const vu32 a = magnitude((vu32)y);
    vu32 least = v_u32(k->over[0]);
    if (mode == MPSIM_ROUND_UP || mode == MPSIM_ROUND_DOWN)
        least = v_pick_u32(v_top_u32((vu32)y), v_u32(k->over[1]), least);
    m32 beyond = m32_not(less_u31(a, least));
    if (mode == GRID)
        beyond = m32_not(v_gt_f32(v_f32(8), fp4_sum(a, word)));
    return m32_and(beyond, less_u31(a, v_u32(INFINITE)));
}

V_INLINE m32 not_finite(vf32 x)
{
    return m32_not(less_u31(magnitude((vu32)x), v_u32(INFINITE)));
}

/* Adds 1 where q is the scaled element: products of binary32 numbers are exact in binary64; NaN equals
 * nothing. */
V_INLINE vu64 count_exact(const mpsim_block_kernel *k, vu64 n, vf32 x, vf32 factor, vf32 inverse, vf32 q)
{
    const vf32 of = k->divides ? q : x, by = k->divides ? inverse : factor, is = k->divides ? x : q;
    n = v_inc_u64(v_eq_f64(v_first_f64(of) * v_first_f64(by), v_first_f64(is)), n);
    return v_inc_u64(v_eq_f64(v_last_f64(of) * v_last_f64(by), v_last_f64(is)), n);
}

/* x is scaled to y, rounded to q, and stands for `value`. */
V_INLINE void count(const mpsim_block_kernel *k, int mode, tally *t, vf32 x, vf32 factor, vf32 inverse, vf32 y,
                    vu32 word, vf32 q, vf32 value)
{
    const vu32 none = v_u32(0), size = magnitude((vu32)q);
    const m32 nan = less_u31(v_u32(INFINITE), magnitude((vu32)x)), number = m32_not(nan);
    const m32 zero = v_eq_u32(size, none), lost = m32_or(not_finite(y), not_finite(value));
    const m32 tiny = m32_and(less_u31(size, v_u32(k->grid.normal)), m32_not(zero));
    const m32 small = m32_and(zero, less_u31(none, magnitude((vu32)x)));
    t->nan = v_inc_u32(nan, t->nan);
    t->underflow = v_inc_u32(m32_and(number, small), t->underflow);
    t->subnormal = v_inc_u32(m32_and(number, tiny), t->subnormal);
    t->overflow = v_inc_u32(m32_and(number, m32_or(saturates(k, mode, y, word), lost)), t->overflow);
    q = (vf32)v_pick_u32(not_finite(value), v_u32(0x7fc00000u), (vu32)q);
    t->exact = count_exact(k, t->exact, x, factor, inverse, q);
    t->all += V_LANES;
}

V_INLINE uint64_t sum_of(vu32 a)
{
    return v_sum_u64(v_first_u64(a)) + v_sum_u64(v_last_u64(a));
}

V_INLINE void add_tally(mpsim_counts *to, const tally *t)
{
    const uint64_t nan = sum_of(t->nan);
    to->inexact += t->all - v_sum_u64(t->exact) - nan;
    to->underflow += sum_of(t->underflow);
    to->subnormal += sum_of(t->subnormal);
    to->overflow += sum_of(t->overflow);
    to->nan += nan;
}
