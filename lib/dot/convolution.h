/* convolution.h -- what the parts of convolutions share: sizes of three dimensions, operands as they enter the sums. */
#pragma once

#include "axes.h"
#include "sumtile.h"
#include "window.h"

enum { MPSIM_DIMS = MPSIM_CONVOLUTION_DIMS, MPSIM_TENSOR = 2 + MPSIM_DIMS };

/* A tensor by axes: images or outputs, channels, z, y, x; those that it has not are of size 1. */
typedef struct mpsim_tensor {
    const mpsim_format *format; /* of its codes */
    const unsigned char *codes;
    size_t size[MPSIM_TENSOR];
    int64_t stride[MPSIM_TENSOR];
} mpsim_tensor;

/* The same as it is multiplied: its numbers are rounded, unless it has them. */
typedef struct mpsim_factor {
    mpsim_tensor x;
    mpsim_rounded rounded;
    int rounds;
    void *own; /* memory of a copy, or NULL */
} mpsim_factor;

/* A convolution of three dimensions. */
typedef struct mpsim_convolving {
    const mpsim_convolution *c;
    const mpsim_pool *pool;
    size_t threads;
    mpsim_summing s;
    mpsim_factor a, b;
    mpsim_tensor d;
    size_t images, channels, outputs; /* of what is read, of the result: exchanged in backward_input */
    size_t in[MPSIM_DIMS], out[MPSIM_DIMS], kernel[MPSIM_DIMS];
    size_t stride[MPSIM_DIMS], padding[MPSIM_DIMS], dilation[MPSIM_DIMS];
} mpsim_convolving;

/* A sum over taps and channels: forward, or backward_input. `turned`: positions are where taps meet them, p stride = q +
 * padding - t dilation. b is the weight. */
mpsim_status mpsim_convolve_taps(mpsim_convolving *v, int turned);

/* A sum over images and positions: backward_weight. */
mpsim_status mpsim_convolve_positions(mpsim_convolving *v);

/* ---- for both ---- */

static inline size_t mpsim_product3(const size_t *n)
{
    return n[0] * n[1] * n[2];
}

/* mpsim_factor_axes -- its numbers, without axes yet. */
mpsim_axes mpsim_factor_axes(const mpsim_factor *f);

/* mpsim_factor_open -- its channels are adjacent then, or with `planar` may be anywhere, and its numbers are rounded.
 * 0: no memory. */
int mpsim_factor_open(mpsim_factor *f, int planar, const mpsim_pool *pool);

/* mpsim_convolving_is_random -- whether numbers are dot products one by one, with random words. */
int mpsim_convolving_is_random(const mpsim_convolving *v);

/* mpsim_tasks_run -- n tasks, each of which may lack memory. */
typedef mpsim_status mpsim_task(void *context, size_t i);
mpsim_status mpsim_tasks_run(size_t n, mpsim_task *task, void *context, const mpsim_pool *pool);

/* mpsim_tile_side -- numbers along one side of a tile, `most` if that leaves `wanted` tiles, but not fewer than `least`. */
static inline size_t mpsim_tile_side(size_t n, size_t most, size_t least, size_t wanted)
{
    const size_t even = wanted ? n / wanted : n, side = even < most ? even : most;
    return side > least ? (side + 15) / 16 * 16 : least;
}
