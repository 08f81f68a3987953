/* convolution.h -- what the parts of convolutions share: sizes of three dimensions, operands as they enter the sums. */
#pragma once

#include "strided.h"
#include "sumtile.h"
#include "window.h"

enum { MPSIM_DIMS = MPSIM_CONVOLUTION_DIMS };

/* A convolution of three dimensions: those that it has not are of size 1. */
typedef struct mpsim_geometry {
    size_t images, channels, outputs, groups, in[MPSIM_DIMS], out[MPSIM_DIMS];
    size_t kernel[MPSIM_DIMS], stride[MPSIM_DIMS], padding[MPSIM_DIMS], dilation[MPSIM_DIMS];
    int order, taps, transposed;
} mpsim_geometry;

/* An operand: the numbers of its tensor by axes (image or output, channel, z, y, x), put side by side where they must be. */
typedef struct mpsim_operand {
    const mpsim_format *format; /* in which they are multiplied */
    const unsigned char *codes;
    ptrdiff_t stride[2 + MPSIM_DIMS];
    void *own; /* memory of the copy, or NULL */
} mpsim_operand;

typedef struct mpsim_convolving {
    const mpsim_geometry *g;
    const mpsim_convolution_how *how;
    mpsim_strided first, second, result; /* with strides of three dimensions */
    size_t threads;
} mpsim_convolving;

/* A sum over taps and channels: forward, or backward_input. `turned`: positions are where taps meet them, p stride = q +
 * padding - t dilation. `second` is the weight. */
mpsim_status mpsim_convolve_taps(const mpsim_convolving *v, int turned);

/* A sum over images and positions: backward_weight. `first` is dy, `second` x. */
mpsim_status mpsim_convolve_positions(const mpsim_convolving *v);

/* ---- for both ---- */

/* mpsim_operand_format -- in which the numbers of a tensor are multiplied. */
static inline const mpsim_format *mpsim_operand_format(const mpsim_strided *x)
{
    return x->rounded ? &x->rounded->format : x->format;
}

static inline size_t mpsim_product3(const size_t *n)
{
    return n[0] * n[1] * n[2];
}

/* mpsim_operand_open -- a tensor of sizes images, channels, extent. Its channels stand side by side, or with `planar` may
 * stand anywhere. 0: no memory. */
int mpsim_operand_open(mpsim_operand *o, const mpsim_strided *x, size_t images, size_t channels, const size_t *extent,
                       int planar, const mpsim_pool *pool);

/* mpsim_convolving_bias -- that of forward, as mpsim_summing has it; 0: no memory. */
int mpsim_convolving_bias(const mpsim_convolving *v, mpsim_summing *s);

/* mpsim_convolving_is_random -- whether numbers are dot products one by one, with random words. */
int mpsim_convolving_is_random(const mpsim_convolving *v);

/* Tasks, each of which may lack memory. */
typedef struct mpsim_tasks {
    size_t n;
    mpsim_status (*task)(void *context, size_t i);
    void *context;
    unsigned char *status; /* of each */
} mpsim_tasks;

mpsim_status mpsim_tasks_run(mpsim_tasks *t, const mpsim_pool *pool);

/* mpsim_tile_side -- numbers along one side of a tile, `most` if that leaves `wanted` tiles, but not fewer than `least`. */
static inline size_t mpsim_tile_side(size_t n, size_t most, size_t least, size_t wanted)
{
    const size_t even = wanted ? n / wanted : n, side = even < most ? even : most;
    return side > least ? (side + 15) / 16 * 16 : least;
}
