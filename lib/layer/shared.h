/* shared.h -- what the layers on the CPU share beside scalar.h. */
#pragma once

#include "../base/extent.h"
#include "scalar.h"

/* mpsim_math_init -- the rounding to f, NULL: binary32. MPSIM_EINVAL if f is invalid, MPSIM_ERANGE
 * if it has numbers that binary32 has not. */
mpsim_status mpsim_math_init(mpsim_math *m, const mpsim_format *f);

/* mpsim_layer_begin -- the roundings to `math` and to f; MPSIM_EINVAL, too, where memory cannot hold so many elements of
 * binary32, and where there are some and one of the n pointers that are needed is NULL. MPSIM_NEEDED -- these pointers, and n. */
mpsim_status mpsim_layer_begin(mpsim_math *m, const mpsim_format *math, mpsim_math *out, const mpsim_format *f,
                               size_t elements, const void *const *needed, size_t n);
#define MPSIM_NEEDED(...) (const void *const[]){__VA_ARGS__}, sizeof(const void *const[]){__VA_ARGS__} / sizeof(void *)

/* mpsim_swiglu_forward, mpsim_swiglu_backward -- MPSIM_SWIGLU of n gates and values in separate arrays. */
mpsim_status mpsim_swiglu_forward(const mpsim_format *math, const mpsim_format *f, float *y, const float *gate,
                                  const float *value, size_t n);
mpsim_status mpsim_swiglu_backward(const mpsim_format *math, const mpsim_format *f, float *dgate, float *dvalue,
                                   const float *dy, const float *gate, const float *value, size_t n);

/* The tree over the lanes of mpsim_sum_lanes; s is overwritten. */
static inline float mpsim_lanes_tree(const mpsim_math *m, float *s, size_t lanes)
{
    for (size_t h = lanes / 2; h > 0; h /= 2)
        for (size_t t = 0; t < h; t++)
            s[t] = mpsim_math_add(m, s[t], s[t + h]);
    return s[0];
}

/* Of MPSIM_LANES_ALL lanes over n numbers those that a tree needs: a power of two. The others are +0, which changes no
 * sum of numbers that began with +0. */
static inline size_t mpsim_lanes_used(size_t n)
{
    size_t lanes = 1;
    while (lanes < n && lanes < MPSIM_LANES_ALL)
        lanes *= 2;
    return lanes;
}
