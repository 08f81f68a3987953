/* elements.h -- sums and products of elements and dropout in vectors. Vectors with a NaN among their operands are
 * computed with CAREFUL operations. Included by vector.h. */
#pragma once

#include "rounding.h"

V_INLINE vf32 element_of(mpsim_elements_kind kind, const vround *m, const mpsim_elementwise *e, vf32 a, vf32 b)
{
    switch (kind) {
    case MPSIM_ELEMENTS_ADD:
        return add(m, a, to(m, b));
    case MPSIM_ELEMENTS_MULTIPLY:
        return mul(m, a, to(m, b));
    default: /* b: random words */
        return (vf32)v_keep_u32(v_ge_u32((vu32)b, v_u32((uint32_t)e->least)), (vu32)mul(m, a, v_f32(e->factor)));
    }
}

V_INLINE void elements_loop(int how, mpsim_elements_kind kind, const mpsim_elementwise *e, float *y, const float *a,
                            const void *b, size_t n)
{
    const vround m = rounding_of(how, &e->m), careful = rounding_of(how | CAREFUL, &e->m);
    const float *const others = b;
    for (size_t i = 0; i < n; i += V_LANES) {
        const vf32 x = take(a + i, n - i), other = take(others + i, n - i);
        const m32 nan = kind == MPSIM_ELEMENTS_DROP ? is_nan(x) : m32_or(is_nan(x), is_nan(other));
        if (m32_any(nan))
            give(y + i, element_of(kind, &careful, e, to(&careful, x), other), n - i);
        else
            give(y + i, element_of(kind, &m, e, to(&m, x), other), n - i);
    }
}

#define ELEMENTS(name, kind, plain)                                                                                \
    static void V_NAME(name##_part)(const mpsim_elementwise *e, float *y, const float *a, const void *b, size_t n) \
    {                                                                                                              \
        const int value = e->least > UINT32_MAX ? ROUND_PLAIN : how_of(&e->m);                                     \
        const watch w = watch_begin(value == ROUND_FP16);                                                          \
        BY_ROUNDING(value | w.careful, how, elements_loop(how, kind, e, y, a, b, n));                              \
        watch_end(w);                                                                                              \
        if (value == ROUND_PLAIN)                                                                                  \
            plain(e, y, a, b, n);                                                                                  \
    }                                                                                                              \
    static void V_NAME(name)(const mpsim_elementwise *e, float *y, const float *a, const void *b, size_t n)        \
    {                                                                                                              \
        const float *const others = b;                                                                             \
        for (size_t i = 0, some; i < n; i += some) {                                                               \
            some = n - i < PART ? n - i : PART;                                                                    \
            V_NAME(name##_part)(e, y + i, a + i, others + i, some);                                                \
            V_NAME(finish)(&e->m, &e->out, y + i, some);                                                           \
        }                                                                                                          \
    }
ELEMENTS(add_numbers, MPSIM_ELEMENTS_ADD, mpsim_add_plain)
ELEMENTS(multiply_numbers, MPSIM_ELEMENTS_MULTIPLY, mpsim_multiply_plain)
ELEMENTS(drop_numbers, MPSIM_ELEMENTS_DROP, mpsim_drop_plain)
#undef ELEMENTS
