/* rounding.h -- the rounding to a format (mpsim_math of scalar.h) of the lanes of a vector, without a branch an element:
 * how is a constant where a loop is compiled. Included by the unit of each instruction set, after functions.h. */
#pragma once

#include "careful.h"

/* What loops are compiled for. ANY: formats whose overflow is infinity, as mpsim_math_by_bits rounds to them; PLAIN: none.
 * With CAREFUL operations keep the NaNs of the reference and are quick on subnormal numbers. */
enum { ROUND_BINARY32, ROUND_BF16, ROUND_FP16, ROUND_ANY, ROUNDINGS, ROUND_PLAIN = ROUNDINGS, CAREFUL = CARE };
enum {
    ROUND_CAREFUL_BINARY32 = ROUND_BINARY32 | CAREFUL,
    ROUND_CAREFUL_BF16 = ROUND_BF16 | CAREFUL,
    ROUND_CAREFUL_FP16 = ROUND_FP16 | CAREFUL,
    ROUND_CAREFUL_ANY = ROUND_ANY | CAREFUL,
    ALL_ROUNDINGS
};

typedef struct vround {
    int how, careful, shift;
    vu32 min_normal, max, beyond, half;
    vf32 subnormal;
} vround;

/* Whether m is what `how` knows: bf16, fp16. */
static int is_format(const mpsim_math *m, int shift, uint32_t min_normal, uint32_t max)
{
    return m->shift == shift && m->min_normal == min_normal && m->max == max && m->beyond == 0x7f800000u;
}

/* How operations are rounded to m. A format without infinities makes other NaNs than the machine: PLAIN. */
static int how_of(const mpsim_math *m)
{
    if (m->kind == MPSIM_MATH_BINARY32)
        return ROUND_BINARY32;
    if (m->kind != MPSIM_MATH_BITS || m->beyond != 0x7f800000u)
        return ROUND_PLAIN;
    if (is_format(m, 16, 0x00800000u, 0x7f7f0000u))
        return ROUND_BF16;
#ifdef V_HALF
    if (is_format(m, 13, 0x38800000u, 0x477fe000u))
        return ROUND_FP16;
#endif
    return ROUND_ANY;
}

V_INLINE vround rounding_of(int how, const mpsim_math *m)
{
    vround r = {.how = how & ~CAREFUL, .careful = how & CAREFUL, .shift = m->shift};
    if (r.how == ROUND_ANY) {
        r.min_normal = v_u32(m->min_normal);
        r.max = v_u32(m->max);
        r.beyond = v_u32(m->beyond);
        r.half = v_u32((1u << (m->shift - 1)) - 1);
        r.subnormal = v_f32(m->subnormal);
    }
    return r;
}

/* To nearest even, as integers: exponents are binary32's. The NaN that operations make stays as it is, not each. */
V_INLINE vf32 to_bf16(vf32 x)
{
    const vu32 u = (vu32)x;
    return (vf32)((u + v_u32(0x7fff) + (u >> 16 & v_u32(1))) & v_u32(0xffff0000u));
}

V_INLINE vf32 to_any(const vround *r, vf32 x)
{
    const vu32 sign = (vu32)x & v_u32(0x80000000u), a = (vu32)x ^ sign;
    const vu32 small = (vu32)(((vf32)a + r->subnormal) - r->subnormal);
    const vu32 cut = (a + r->half + (a >> r->shift & v_u32(1))) >> r->shift << r->shift;
    const vu32 y = v_pick_u32(v_gt_u32(r->min_normal, a), small, cut);
    const vu32 z = v_pick_u32(v_gt_u32(y, r->max), r->beyond, y);
    return (vf32)(v_pick_u32(v_gt_u32(a, v_u32(0x7f800000u)), a, z) | sign);
}

V_INLINE vf32 to_quickly(const vround *r, vf32 x)
{
    switch (r->how) {
    case ROUND_BINARY32:
        return x;
    case ROUND_BF16:
        return to_bf16(x);
#ifdef V_HALF
    case ROUND_FP16:
        return v_half_f32(x);
#endif
    default:
        return to_any(r, x);
    }
}

/* x rounded; no NaN, or one that an operation made: that stays as it is. Any NaN stays where it is CAREFUL. */
V_INLINE vf32 to(const vround *r, vf32 x)
{
    const vf32 y = to_quickly(r, x);
    return r->careful && (r->how == ROUND_BF16 || r->how == ROUND_FP16) ? pick(is_nan(x), x, y) : y;
}

V_INLINE m32 no_lane(void)
{
    return v_test_u32(v_u32(0), v_u32(0));
}

V_INLINE vf32 add(const vround *r, vf32 a, vf32 b)
{
    return to(r, r->careful ? settled(a, a + b) : a + b);
}

V_INLINE vf32 sub(const vround *r, vf32 a, vf32 b)
{
    return to(r, a - b);
}

V_INLINE vf32 mul(const vround *r, vf32 a, vf32 b)
{
    return to(r, r->careful ? settled(a, careful_product(a, b)) : a * b);
}

V_INLINE vf32 divide(const vround *r, vf32 a, vf32 b)
{
    return to(r, r->careful ? careful_quotient(a, b) : a / b);
}

/* ---- arrays ---- */

V_INLINE size_t lanes_of(size_t n)
{
    return n < V_LANES ? n : V_LANES;
}

/* NaNs stay what they are, signalling ones, too. */
V_INLINE void round_loop(int how, const mpsim_math *m, float *x, size_t n)
{
    const vround r = rounding_of(how, m);
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf32 v = take(x + i, n - i), y = to(&r, v);
        give(x + i, how == ROUND_ANY ? y : pick(is_nan(v), v, y), n - i);
    }
}

/* A statement with the constant `how` for what `value` is; none where that is PLAIN. */
#define HOW(constant, how, ...)  \
    case constant: {             \
        enum { how = constant }; \
        __VA_ARGS__;             \
        break;                   \
    }
#ifdef V_HALF
#define HOW_HALF(careful, how, ...) HOW(ROUND_FP16 | careful, how, __VA_ARGS__)
#else
#define HOW_HALF(careful, how, ...)
#endif
#define HOW_ALL(careful, how, ...)                  \
    HOW(ROUND_BINARY32 | careful, how, __VA_ARGS__) \
    HOW(ROUND_BF16 | careful, how, __VA_ARGS__)     \
    HOW_HALF(careful, how, __VA_ARGS__)             \
    HOW(ROUND_ANY | careful, how, __VA_ARGS__)
#define BY_ROUNDING(value, how, ...)       \
    switch (value) {                       \
        HOW_ALL(0, how, __VA_ARGS__)       \
        HOW_ALL(CAREFUL, how, __VA_ARGS__) \
    default:                               \
        break;                             \
    }

/* A row by a loop that says whether it could: as numbers so far were, then carefully. */
#define BY_CARE(value, how, done, ...)                                        \
    do {                                                                      \
        const watch w = watch_begin((value) == ROUND_FP16);                   \
        for (int care = w.careful; !done && care <= CAREFUL; care += CAREFUL) \
            BY_ROUNDING((value) | care, how, done = __VA_ARGS__);             \
        watch_end(w);                                                         \
    } while (0)

static void V_NAME(round_numbers)(const mpsim_math *m, float *x, size_t n)
{
    const int value = m->kind == MPSIM_MATH_BITS && m->beyond != 0x7f800000u ? ROUND_ANY : how_of(m);
    BY_ROUNDING(value, how, round_loop(how, m, x, n));
    for (size_t i = 0; value == ROUND_PLAIN && i < n; i++)
        x[i] = mpsim_math_narrow(m, x[i]);
}

/* Results of operations in m are rounded to `out`, a part of an array at a time: what both are is no rounding. */
static void V_NAME(finish)(const mpsim_math *m, const mpsim_math *out, float *x, size_t n)
{
    if (out->kind != MPSIM_MATH_BINARY32 && memcmp(out, m, sizeof *m) != 0)
        V_NAME(round_numbers)(out, x, n);
}

enum { PART = 1 << 12 }; /* numbers that stay in a cache until they are rounded */
