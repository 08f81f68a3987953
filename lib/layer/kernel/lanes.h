/* lanes.h -- the sum of a row, which MPSIM_LANES_ROW lanes take by turns, in vectors. Included by vector.h. */
#pragma once

#include "rounding.h"

enum { ROW_VECTORS = MPSIM_LANES_ROW / V_LANES };

typedef struct vlanes {
    vf32 s[ROW_VECTORS];
} vlanes;

/* The first n lanes, or all. */
V_INLINE m32 first_lanes(size_t n)
{
    static const uint32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return v_gt_u32(v_u32((uint32_t)lanes_of(n)), v_load_u32(numbers));
}

V_INLINE vlanes no_lanes(void)
{
    vlanes a;
    for (int k = 0; k < ROW_VECTORS; k++)
        a.s[k] = v_f32(0.0f);
    return a;
}

/* A statement for each vector from column c on of n numbers; its terms are added to vector k of the lanes. Lanes beyond
 * n take +0, which changes no sum that began with +0. */
#define IN_LANES(n, c, k)                                         \
    for (size_t c##_0 = 0; c##_0 < (n); c##_0 += MPSIM_LANES_ROW) \
        for (size_t k = 0, c = c##_0; k < ROW_VECTORS && c < (n); k++, c += V_LANES)

/* The tree of mpsim_lanes_tree. */
V_INLINE float lanes_sum(const vround *m, vlanes *a)
{
    for (int h = ROW_VECTORS / 2; h > 0; h /= 2)
        for (int t = 0; t < h; t++)
            a->s[t] = add(m, a->s[t], a->s[t + h]);
    vf32 s = a->s[0];
    if (V_LANES > 8)
        s = add(m, s, v_swap_f32(s, 8));
    if (V_LANES > 4)
        s = add(m, s, v_swap_f32(s, 4));
    s = add(m, s, v_swap_f32(s, 2));
    s = add(m, s, v_swap_f32(s, 1));
    return s[0];
}
