/* careful.h -- operations on lanes with the NaNs of ../scalar.h and without those of the machine that are slow. Some
 * processors take a hundred cycles more for a product, a quotient or a fused multiply-add with a subnormal operand or
 * result: here significands are multiplied and divided as normal numbers, and exponents are added as integers.
 *
 * Loops of careful operations take up to three times as long as others. A part of an array, or a row, is computed by them
 * after one in which the machine met a subnormal number: its flags say so. Results are the same. Included by rounding.h. */
#pragma once

#include "functions.h"

/* The NaN of the first operand, where that is one: mpsim_math_settle. */
V_INLINE vf32 settled(vf32 a, vf32 y)
{
    return pick(is_nan(a), (vf32)((vu32)a | v_u32(0x400000u)), y);
}

/* A finite number as m 2^exponent, 1 <= m < 2. */
typedef struct vparts {
    vf32 m;
    vi32 exponent;
} vparts;

V_INLINE vparts parts_of(vf32 x)
{
    const vu32 a = (vu32)magnitude(x);
    const m32 small = v_gt_u32(v_u32(0x800000u), a);
    const vu32 normal = v_pick_u32(small, (vu32)v_f32_of_i32((vi32)a), a);
    const vi32 bias = (vi32)v_pick_u32(small, v_u32(127 + 149), v_u32(127));
    return (vparts){(vf32)((normal & v_u32(0x7fffffu)) | v_u32(0x3f800000u)), (vi32)(normal >> 23) - bias};
}

/* (y + rest) 2^e, rounded once: y a normal number, to which y + rest was rounded; of rest the sign counts. */
V_INLINE vu32 rounded_parts(vf32 y, vf32 rest, vi32 e)
{
    const vf32 zero = v_f32(0.0f);
    const vi32 code = (vi32)((vu32)y + ((vu32)v_max_i32(e, v_i32(-300)) << 23));
    const vu32 drop = (vu32)v_min_i32(v_i32(3) - (code >> 23), v_i32(31)); /* used where code has no exponent */
    const vu32 exact = (((vu32)y & v_u32(0x7fffffu)) | v_u32(0x800000u)) << 2;
    const vu32 s = v_inc_u32(v_gt_f32(rest, zero), exact) - v_keep_u32(v_gt_f32(zero, rest), v_u32(1));
    const vu32 half = v_shl_u32(v_u32(1), drop - v_u32(1)), odd = v_shr_u32(s, drop) & v_u32(1);
    const vu32 subnormal = v_shr_u32(s + (half - v_u32(1)) + odd, drop);
    return v_pick_u32(v_gt_i32(code, v_i32(0x7fffff)), (vu32)code, subnormal);
}

V_INLINE vf32 signed_parts(vu32 magnitude, vf32 a, vf32 b)
{
    return (vf32)(magnitude | (((vu32)a ^ (vu32)b) & v_u32(0x80000000u)));
}

/* Of finite numbers, of which neither is zero. */
V_CALLED vf32 small_product(vf32 a, vf32 b)
{
    const vparts u = parts_of(a), v = parts_of(b);
    const vf32 y = u.m * v.m;
    return signed_parts(rounded_parts(y, v_fma_f32(u.m, v.m, -y), u.exponent + v.exponent), a, b);
}

V_INLINE m32 no_number(vu32 magnitude)
{
    return v_gt_u32(magnitude, v_u32(0x7f7fffffu));
}

/* Lanes that are zero, below 2^-150: +-0; others that a subnormal number has a part in: small_product. */
V_CALLED vf32 careful_product(vf32 a, vf32 b)
{
    const vu32 u = (vu32)magnitude(a), v = (vu32)magnitude(b), e = (u >> 23) + (v >> 23);
    const m32 number = m32_not(m32_or(no_number(u), no_number(v)));
    const m32 subnormal = v_gt_u32(v_u32(0x800000u), v_min_u32(u, v));
    const m32 low = m32_and(number, m32_or(subnormal, v_gt_u32(v_u32(128), e)));
    if (!m32_any(low))
        return a * b;
    const m32 none = m32_and(low, m32_or(v_gt_u32(v_u32(103), e), v_eq_u32(v_min_u32(u, v), v_u32(0))));
    const m32 small = m32_and(low, m32_not(none));
    const vf32 one = v_f32(1.0f), y = pick(low, signed_parts(v_u32(0), a, b), pick(low, one, a) * pick(low, one, b));
    return m32_any(small) ? pick(small, small_product(pick(small, a, one), pick(small, b, one)), y) : y;
}

V_CALLED vf32 small_quotient(vf32 a, vf32 b)
{
    const vparts u = parts_of(a), v = parts_of(b);
    const vi32 e = u.exponent - v.exponent;
    const vf32 y = u.m / v.m;
    const vu32 magnitude = rounded_parts(y, v_fma_f32(-y, v.m, u.m), v_min_i32(e, v_i32(128)));
    const m32 beyond = m32_or(v_gt_i32(e, v_i32(128)), v_gt_u32(magnitude, v_u32(0x7f800000u)));
    return signed_parts(v_pick_u32(beyond, v_u32(0x7f800000u), magnitude), a, b);
}

/* Lanes that a subnormal number has a part in: small_quotient. */
V_CALLED vf32 careful_quotient(vf32 a, vf32 b)
{
    const vu32 u = (vu32)magnitude(a), v = (vu32)magnitude(b);
    const m32 special = m32_or(m32_or(no_number(u), no_number(v)), v_eq_u32(v_min_u32(u, v), v_u32(0)));
    const m32 subnormal = v_gt_u32(v_u32(0x800000u), v_min_u32(u, v));
    const m32 deep = m32_or(subnormal, v_gt_u32(v >> 23, (u >> 23) + v_u32(124)));
    const m32 small = m32_and(deep, m32_not(special));
    const vf32 one = v_f32(1.0f);
    if (!m32_any(small))
        return a / b;
    return pick(small, small_quotient(pick(small, a, one), pick(small, b, one)),
                pick(small, one, a) / pick(small, one, b));
}

/* ---- when ---- */

#if defined(__SSE__)
enum { SUBNORMAL_FLAG = 0x02, UNDERFLOW_FLAG = 0x10 };

/* Parts and rows of a thread that are computed carefully before it is tried otherwise again. */
static _Thread_local unsigned careful_parts;
#endif

enum { CARE = 8, CAREFUL_PARTS = 64 };

typedef struct watch {
    unsigned flags, slow; /* of the thread; those of slow numbers */
    int careful;          /* CARE, or 0 */
} watch;

/* underflows: whether the rounding to a format raises the flag of a result that is too small, too. */
V_INLINE watch watch_begin(int underflows)
{
    watch w = {0, 0, 0};
    (void)underflows;
#if defined(__SSE__)
    w.slow = underflows ? SUBNORMAL_FLAG : SUBNORMAL_FLAG | UNDERFLOW_FLAG;
    w.flags = _mm_getcsr();
    w.careful = careful_parts ? CARE : 0;
    if (w.flags & w.slow)
        _mm_setcsr(w.flags & ~w.slow);
    __asm__ volatile("" ::: "memory");
#endif
    return w;
}

/* Flags of slow numbers stay cleared: to raise those of before again costs as much as a row of 64 numbers. */
V_INLINE void watch_end(watch w)
{
#if defined(__SSE__)
    __asm__ volatile("" ::: "memory");
    const unsigned now = _mm_getcsr();
    if (now & w.slow)
        careful_parts = CAREFUL_PARTS;
    else if (careful_parts)
        careful_parts--;
#else
    (void)w;
#endif
}
