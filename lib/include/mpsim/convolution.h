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
 * row-major order; behind each row of positions products of +0 and +0 fill it up to a multiple of `row_multiple`. With the chunk
 * of the model as the multiple no chunk spans two rows: chunks of 28 add a row of 60 as 28, 28 and 4 products, each from +0 on, and
 * their sums in the order of images, rows and columns. With a multiple of 2 and a chunk that is an image, each image is a sum
 * from +0 on. oneDNN does both on CPUs with AVX512-BF16, in one thread, for kernels of more than one tap.
 *
 * Zeros. A tap that reads outside of the tensor (padding) is a product of +0 and the weight, in its place of the sum: it
 * counts where products are added in groups, and with an infinite weight it is a NaN. Where p stride = ... has no
 * integer p, there is no product, and the next one takes its place: with a stride of 2 and 3 taps sums have 1 or 2 taps a
 * dimension. A sum of no products is +0. */
#ifndef MPSIM_CONVOLUTION_H
#define MPSIM_CONVOLUTION_H

#include <mpsim/product.h>

MPSIM_BEGIN

enum {
    MPSIM_CONVOLUTION_DIMS = 3,
    MPSIM_CONVOLUTION_BLOCK = 16 /* channels of a block; the last may have fewer */
};

/* Order of the sum over taps and channels; the last index runs fastest. */
typedef enum mpsim_convolution_order {
    MPSIM_TAPS_CHANNELS,        /* tap, channel: kernels for NHWC; mpsim train                       */
    MPSIM_BLOCKS_TAPS_CHANNELS, /* block of channels, tap, channel of the block: oneDNN for NCHW on CPUs    */
    MPSIM_CHANNELS_TAPS,        /* channel, tap: the columns of torch.unfold                         */
    MPSIM_CONVOLUTION_ORDERS
} mpsim_convolution_order;

typedef enum mpsim_convolution_taps {
    MPSIM_TAPS_AS_READ,    /* as "Order" says                                                     */
    MPSIM_TAPS_AS_WEIGHTS, /* as they are in w: oneDNN's backward_input for NCHW of stride 1   */
    MPSIM_CONVOLUTION_TAPS
} mpsim_convolution_taps;

/* Tensors are stacks (mpsim/product.h) of 3 to 5 dimensions: images x channels x sizes, w as said above. Sizes and channels are at
 * most 2^31 - 1. Where y is longer than what frameworks make it, it reads more that is outside; output padding is that. */
typedef struct mpsim_convolution {
    const mpsim_model *model;
    const mpsim_operand *a, *b;  /* forward: x, w; backward_input: dy, w; backward_weight: dy, x. Without factors */
    const mpsim_stack *d;        /* y, dx or dw: its codes are written; must not overlap operands                 */
    const mpsim_format *numbers; /* that results are rounded to, which d's format must have; NULL: d's            */
    float factor;
    const mpsim_stack *bias; /* of forward: 1 x outputs, or NULL                                              */
    const mpsim_rng *rng;    /* NULL, unless the model rounds stochastically: number i of d, row-major, is a dot product
                               whose index starts at rng->index + 2^32 i                                        */
    mpsim_entered *counts;   /* of the last rounding; or NULL                                                 */
    uint8_t transposed;      /* 1: as said above                                                              */
    uint8_t order;           /* mpsim_convolution_order                                                       */
    uint8_t taps;            /* mpsim_convolution_taps                                                        */
    size_t groups;           /* above 0; channels and outputs are multiples of it                             */
    size_t row_multiple;     /* of backward_weight, as "Order" says; above 0                                  */
    size_t stride
        [MPSIM_CONVOLUTION_DIMS]; /* above 0; of these three the first entries count, as many as there are dimensions */
    size_t padding[MPSIM_CONVOLUTION_DIMS];
    size_t dilation[MPSIM_CONVOLUTION_DIMS]; /* above 0 */
} mpsim_convolution;

/* mpsim_convolution_init -- factor, groups, row_multiple, strides and dilations 1, everything else 0. */
MPSIM_API void mpsim_convolution_init(mpsim_convolution *c);

/* mpsim_convolution_size -- what frameworks make of a size of x in a dimension (0: the first behind the channels): with e =
 * (kernel - 1) dilation + 1, (in + 2 padding - e) / stride + 1, rounded down; transposed (in - 1) stride - 2 padding + e +
 * output_padding. MPSIM_EINVAL for NULL, what is out of range, or a negative size; *out is untouched then. */
MPSIM_API mpsim_status mpsim_convolution_size(const mpsim_convolution *c, size_t dimension, size_t in, size_t kernel,
                                              size_t output_padding, size_t *out);

/* The sums. What becomes of them is that of products (mpsim/product.h): times both inverses, times the factor, plus the bias of
 * the output, one rounding.
 *
 * MPSIM_EINVAL if something is inconsistent or a needed pointer is NULL, MPSIM_ERANGE if the model cannot take the operands, an
 * operand's format has no zero, the bias is not binary32 where sums are, or d's format has not all numbers; MPSIM_ENOMEM. After
 * an error other than MPSIM_ENOMEM d is untouched. Beside copies of operands that are rounded, or have another order of axes than
 * the sums, in the formats that are multiplied, memory of some MiB for each thread. Bits depend neither on threads nor on
 * strides. */
MPSIM_API mpsim_status mpsim_convolution_forward(const mpsim_convolution *c, const mpsim_pool *pool);
MPSIM_API mpsim_status mpsim_convolution_backward_input(const mpsim_convolution *c, const mpsim_pool *pool);
MPSIM_API mpsim_status mpsim_convolution_backward_weight(const mpsim_convolution *c, const mpsim_pool *pool);

MPSIM_END

#endif
