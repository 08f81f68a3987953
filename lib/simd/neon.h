/* neon.h -- the vector vocabulary (see generic.h) for NEON of 64-bit ARM: its words as the compiler makes
 * them, but for those here, which it does not find. */
#pragma once

#include <arm_neon.h>

#define V_NEON 1
#define V_NAME(name) name##_neon
#include "generic.h"

V_INLINE int m32_any(m32 a) { return vmaxvq_u32((uint32x4_t)a) != 0; }
V_INLINE unsigned m32_count(m32 a) { return (unsigned)-vaddvq_s32((int32x4_t)a); }
V_INLINE unsigned m32_bits(m32 a)
{
    const uint32x4_t place = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32((uint32x4_t)a, place));
}

/* The even, the odd lanes of a, in the first half. */
V_INLINE uint32x2_t v_even(vu32 a) { return vmovn_u64((uint64x2_t)a); }
V_INLINE uint32x2_t v_odd(vu32 a) { return vshrn_n_u64((uint64x2_t)a, 32); }

V_INLINE vu64 v_mul_even_u32(vu32 a, vu32 b) { return (vu64)vmull_u32(v_even(a), v_even(b)); }
V_INLINE vu64 v_mul_odd_u32(vu32 a, vu32 b) { return (vu64)vmull_u32(v_odd(a), v_odd(b)); }

V_INLINE vu32 v_high_words(vu64 even, vu64 odd) { return (vu32)vtrn2q_u32((uint32x4_t)even, (uint32x4_t)odd); }

V_INLINE vu32 v_low_words(vu64 even, vu64 odd) { return (vu32)vtrn1q_u32((uint32x4_t)even, (uint32x4_t)odd); }

V_INLINE vu32 v_narrow_u32(vu64 first, vu64 last) { return (vu32)vuzp1q_u32((uint32x4_t)first, (uint32x4_t)last); }

V_INLINE vf32 v_fma_f32(vf32 a, vf32 b, vf32 c)
{
    return (vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

V_INLINE vf32 v_sqrt_f32(vf32 a) { return (vf32)vsqrtq_f32((float32x4_t)a); }
