/* convolution.h -- convolutions and their gradients under accumulation models: one to three dimensions, groups, strides,
 * padding, dilation, transposed ones, tensors of any strides in memory.
 *
 * Every number of a result is one dot product (mpsim/dot.h), from +0 on, which mpsim_gemm's kernels compute: nothing is
 * scattered, and no matrix of all windows (im2col) is ever in memory. With x of images x channels, y of images x outputs,
 * dy and dx likewise, w of outputs x channels / groups x taps, and the sums over the channels or outputs of one group:
 *
 *   forward          y[n, o, p] = sum over t, c of x[n, c, p stride - padding + t dilation] w[o, c, t]
 *   backward_input  dx[n, c, q] = sum over t, o of dy[n, o, p] w[o, c, t], p stride = q + padding - t dilation
 *   backward_weight dw[o, c, t] = sum over n, p of dy[n, o, p] x[n, c, p stride - padding + t dilation]
 *
 * and of a transposed convolution, whose w is channels x outputs / groups x taps:
 *
 *   forward          y[n, o, q] = sum over t, c of x[n, c, p] w[c, o, t], p stride = q + padding - t dilation
 *   backward_input  dx[n, c, p] = sum over t, o of dy[n, o, p stride - padding + t dilation] w[c, o, t]
 *   backward_weight dw[c, o, t] = sum over n, p of dy[n, o, p stride - padding + t dilation] x[n, c, p]
 *
 * In a product the gradient, and in forward x, is the first factor.
 *
 * Order. Taps t are in row-major order (z, y, x ascending), so that what they read ascends in the tensor; where they read
 * p stride = ... they go from the last to the first, so that p ascends likewise (unless `taps` says otherwise). `order` says
 * how taps and channels (in backward_input: outputs) take turns. Sums over n, p go over the images, and in each over p in
 * row-major order.
 *
 * Zeros. A tap that reads outside of the tensor (padding) is a product of +0 and the weight, in its place of the sum: it
 * counts where products are added in groups, and with an infinite weight it is a NaN. Where p stride = ... has no
 * integer p, there is no product, and the next one takes its place: with a stride of 2 and 3 taps sums have 1 or 2 taps a
 * dimension. A sum of no products is +0. */
#ifndef MPSIM_CONVOLUTION_H
#define MPSIM_CONVOLUTION_H

#include <mpsim/dot.h>

#include <stddef.h>

MPSIM_BEGIN

enum {
    MPSIM_CONVOLUTION_DIMS = 3,
    MPSIM_CONVOLUTION_BLOCK = 16 /* channels of a block; the last may have fewer */
};

/* What the sum over taps and channels goes through, the last the fastest. */
typedef enum mpsim_convolution_order {
    MPSIM_TAPS_CHANNELS,        /* tap, channel: kernels for NHWC; mpsim train                       */
    MPSIM_BLOCKS_TAPS_CHANNELS, /* block of channels, tap, channel of the block: oneDNN for NCHW on CPUs    */
    MPSIM_CHANNELS_TAPS,        /* channel, tap: the columns of torch.unfold                         */
    MPSIM_CONVOLUTION_ORDERS
} mpsim_convolution_order;

typedef enum mpsim_convolution_taps {
    MPSIM_TAPS_AS_READ,    /* as "Order" says                                                     */
    MPSIM_TAPS_AS_WEIGHTS, /* as they are in w, wherever they read                                */
    MPSIM_CONVOLUTION_TAPS
} mpsim_convolution_taps;

/* Every size is at most 2^31 - 1. Of arrays the first `dims` entries count, those of x last. */
typedef struct mpsim_convolution {
    uint8_t dims;       /* 1 to 3                                                                   */
    uint8_t transposed; /* 1: as said above                                                         */
    uint8_t order;      /* mpsim_convolution_order                                                  */
    uint8_t taps;       /* mpsim_convolution_taps                                                   */
    size_t images;
    size_t channels, outputs;           /* of x, of y: multiples of groups                          */
    size_t groups;                      /* above 0                                                  */
    size_t in[MPSIM_CONVOLUTION_DIMS];  /* of x                                                     */
    size_t out[MPSIM_CONVOLUTION_DIMS]; /* of y: whatever is wanted; see mpsim_convolution_sizes    */
    size_t kernel[MPSIM_CONVOLUTION_DIMS];
    size_t stride[MPSIM_CONVOLUTION_DIMS]; /* above 0                                               */
    size_t padding[MPSIM_CONVOLUTION_DIMS];
    size_t dilation[MPSIM_CONVOLUTION_DIMS]; /* above 0                                             */
} mpsim_convolution;

/* mpsim_convolution_init -- dims, strides, dilations and groups 1, everything else 0. */
MPSIM_API void mpsim_convolution_init(mpsim_convolution *c, size_t dims);

/* mpsim_convolution_sizes -- set c->out to what frameworks make of the rest: with e = (kernel - 1) dilation + 1,
 * (in + 2 padding - e) / stride + 1, rounded down; transposed (in - 1) stride - 2 padding + e + output_padding (NULL: 0).
 * MPSIM_EINVAL for NULL, what is out of range, or if a size would be negative; c is untouched then. */
MPSIM_API mpsim_status mpsim_convolution_sizes(mpsim_convolution *c, const size_t *output_padding);

/* A tensor in memory: number (i, j, z, y, x), as it is said above, is code number i stride[0] + j stride[1] + z stride[2] +
 * ...; strides of any sign, those of operands also 0. A convolution of fewer dimensions has the first 2 + dims strides. */
typedef struct mpsim_strided {
    const mpsim_format *format;
    void *codes; /* an operand's are not written to; may be NULL if there is no number */
    ptrdiff_t stride[2 + MPSIM_CONVOLUTION_DIMS];
    /* NULL: operands are as they are, results are rounded to `format` to nearest even. Else where the numbers of an operand
     * are rounded before they are multiplied, a result before it is stored, where `format` has all its numbers. No
     * stochastic mode */
    const mpsim_rounded *rounded;
} mpsim_strided;

/* What becomes of the sums, which are numbers of the model's result: in binary32 (in binary64 where binary32 has not all
 * their numbers),
 *
 *   s = s * factor, unless factor is 1;  s = s + bias[o], unless it is NULL;  the result is s, rounded once
 *
 * A NaN behind the first two is the positive quiet one. */
typedef struct mpsim_convolution_how {
    const mpsim_model *model;
    double factor; /* a number of binary32, where that is computed in                                        */
    const mpsim_strided
        *bias;              /* of forward: `outputs` numbers, stride[1] codes apart                                   */
    const mpsim_rng *rng;   /* NULL, unless the model rounds stochastically: number i of a result, in row-major order of
                             its tensor, is a dot product whose index starts at rng->index + 2^32 i                     */
    const mpsim_pool *pool; /* threads, or NULL; they change no bit                                                   */
} mpsim_convolution_how;

/* The sums. Results must not overlap operands.
 *
 * MPSIM_EINVAL if a setting, size, format or rounding is invalid or a needed pointer is NULL, MPSIM_ERANGE if the model cannot
 * take the operands, an operand's format has no zero, or a result's `rounded` has numbers that its `format` has not;
 * MPSIM_ENOMEM. Results are untouched after the first two. Beside copies of operands that are rounded, or that have
 * another order of axes than the sums, in the operands' formats, memory of about a MiB for each thread. */
MPSIM_API mpsim_status mpsim_convolution_forward(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                                 const mpsim_strided *x, const mpsim_strided *w,
                                                 const mpsim_strided *y);
MPSIM_API mpsim_status mpsim_convolution_backward_input(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                                        const mpsim_strided *dy, const mpsim_strided *w,
                                                        const mpsim_strided *dx);
MPSIM_API mpsim_status mpsim_convolution_backward_weight(const mpsim_convolution *c, const mpsim_convolution_how *how,
                                                         const mpsim_strided *dy, const mpsim_strided *x,
                                                         const mpsim_strided *dw);

MPSIM_END

#endif
