/* rows.h -- loops along rows: their numbers some at a time, as many as a row's sum has lanes. */
#pragma once

#include "kernel/kernel.h"
#include "shared.h"

static const mpsim_math mpsim_rows_binary32 = {.kind = MPSIM_MATH_BINARY32};

/* A call of an inline function with a rounding m: that of binary32 known to the compiler, so that its
 * loops are those of a machine's operations. */
#define MPSIM_ROWS_BY_MATH(math, m, ...)                      \
    do {                                                      \
        if ((math)->kind == MPSIM_MATH_BINARY32) {            \
            const mpsim_math *const m = &mpsim_rows_binary32; \
            __VA_ARGS__;                                      \
        } else {                                              \
            const mpsim_math *const m = (math);               \
            __VA_ARGS__;                                      \
        }                                                     \
    } while (0)

/* Some numbers of a row; s: the lanes of a sum. */
typedef struct mpsim_lanes {
    float s[MPSIM_LANES_ROW];
} mpsim_lanes;

static inline size_t mpsim_rows_width(size_t n, size_t at)
{
    return n - at < MPSIM_LANES_ROW ? n - at : MPSIM_LANES_ROW;
}

static inline void mpsim_lanes_add(const mpsim_math *m, mpsim_lanes *a, const float *term, size_t n)
{
    for (size_t t = 0; t < n; t++)
        a->s[t] = mpsim_math_add(m, a->s[t], term[t]);
}

static inline float mpsim_lanes_sum(const mpsim_math *m, mpsim_lanes *a)
{
    return mpsim_lanes_tree(m, a->s, MPSIM_LANES_ROW);
}

static inline void mpsim_rows_round(const mpsim_math *m, float *x, size_t n)
{
    if (m->kind != MPSIM_MATH_BINARY32)
        mpsim_layer_kernels_active()->round(m, x, n);
}
