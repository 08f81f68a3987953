/* axes.h -- tensors of any strides, put side by side as codes of a format. */
#pragma once

#include <mpsim/dot.h>

#include <stddef.h>

enum { MPSIM_AXES = 7 };

/* Numbers in an order of axes, the slowest first: numbers go from `codes` in steps of stride[i] codes. */
typedef struct mpsim_axes {
    const mpsim_format *format;
    const unsigned char *codes;
    const mpsim_rounded *rounded; /* the numbers are rounded so; NULL: codes are copied */
    size_t dims, size[MPSIM_AXES];
    ptrdiff_t stride[MPSIM_AXES];
} mpsim_axes;

/* mpsim_axes_add -- one more axis, faster than those before. */
static inline void mpsim_axes_add(mpsim_axes *x, size_t size, ptrdiff_t stride)
{
    x->size[x->dims] = size;
    x->stride[x->dims++] = stride;
}

/* The format in which the numbers are put side by side. */
static inline const mpsim_format *mpsim_axes_format(const mpsim_axes *x)
{
    return x->rounded ? &x->rounded->format : x->format;
}

/* How many numbers there are. */
size_t mpsim_axes_count(const mpsim_axes *x);

/* mpsim_axes_put -- all of them, side by side. */
void mpsim_axes_put(const mpsim_axes *x, void *to, const mpsim_pool *pool);
