/* held.h -- rounding vectors to the formats of parameter and moments: the bits of mpsim_hold_array, and of a stochastic store of what has
 * binary32's exponents. Included by kernels.h only. */

/* A mpsim_held in all lanes. */
typedef struct held {
    vu32 drop, even, mask, one;            /* flat */
    vu32 huge, normal, up, last, infinite; /* by sums */
    int in;
} held;

V_INLINE held held_of(const mpsim_held *h)
{
    const uint32_t half = h->in == MPSIM_HELD_FLAT ? (uint32_t)1 << (h->drop - 1) : 0;
    return (held){.drop = v_u32(h->drop),
                  .even = v_u32(half - 1),
                  .mask = v_u32(~(2 * half - 1)),
                  .one = v_u32(1),
                  .huge = v_u32(h->last + ((uint32_t)1 << 24)),
                  .normal = v_u32(h->normal),
                  .up = v_u32((uint32_t)h->drop << 23),
                  .last = v_u32(h->last),
                  .infinite = v_u32(0x7f800000),
                  .in = h->in};
}

V_INLINE int has_nan(vf32 a) { return m32_any(m32_not(v_eq_f32(a, a))); }

/* In binary32, b + much has the last bit of the format. */
V_INLINE vf32 hold_sum(const held *h, vf32 x)
{
    const vu32 a = (vu32)x & 0x7fffffff, b = v_min_u32(a, h->huge);
    const vu32 much = v_max_u32(b & 0x7f800000, h->normal) + h->up;
    const vu32 sum = (vu32)((vf32)b + (vf32)much - (vf32)much);
    const vu32 number = v_pick_u32(v_gt_u32(sum, h->last), h->infinite, sum);
    return (vf32)v_pick_u32(v_eq_f32(x, x), number | ((vu32)x & 0x80000000), (vu32)x);
}

/* To nearest even. Of a NaN some NaN: those that would carry into the sign are left to the scalar code. */
V_INLINE vf32 hold(const held *h, vf32 x)
{
    if (h->in == MPSIM_HELD_EXACT)
        return x;
    if (h->in == MPSIM_HELD_SUM)
        return hold_sum(h, x);
    return (vf32)(((vu32)x + (v_shr_u32((vu32)x, h->drop) & h->one) + h->even) & h->mask);
}

/* Away where the draw and what is cut off reach one. */
V_INLINE vf32 hold_drawn(const held *h, vf32 x, vu32 word)
{
    return (vf32)(((vu32)x + v_shr_u32(word, 32 - h->drop)) & h->mask);
}
