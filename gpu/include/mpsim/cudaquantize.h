/* cudaquantize.h -- scaled quantisation on a device; see mpsim/block.h. Part of libmpsim-cuda. */
#ifndef MPSIM_CUDAQUANTIZE_H
#define MPSIM_CUDAQUANTIZE_H

#include <mpsim/block.h>
#include <mpsim/cudacall.h>
#include <mpsim/product.h>

MPSIM_BEGIN

/* Results of quantising, and what the tensor's scale comes from: memory of the device, as mpsim_blocks of mpsim/block.h has them.
 * Pointers may be NULL. */
typedef struct mpsim_cuda_blocks {
    uint8_t *codes;           /* rows x cols: the element's code             */
    float *values;            /* rows x cols: dequantised values             */
    uint8_t *scale_codes;     /* per block                                   */
    float *scales, *inverses; /* per block                                   */
    float *amax;              /* per block                                   */
    const float *tensor_amax; /* NVFP4: the tensor's largest magnitude, not negative; NULL: of x itself */
    float *tensor_scale;      /* one number: NVFP4's global decode scale, 1 for others */
    mpsim_entered *counts;    /* added to; `nonfinite` counts values, or codes if `values` is NULL */
} mpsim_cuda_blocks;

/* mpsim_cuda_quantize_room -- bytes of workspace for a matrix; 0 also for a recipe that mpsim_cuda_quantize refuses. */
MPSIM_API size_t mpsim_cuda_quantize_room(const mpsim_block_recipe *b, size_t rows, size_t cols);

/* mpsim_cuda_quantize -- mpsim_block_quantize on a device: the same codes, scale codes, scales, inverses, amax, tensor scale, and
 * counts as mpsim_operand_enter has them.
 *
 *   x      codes of a format within binary32, of any strides; cols is the last dimension, rows all others
 *   given  GIVEN, MSAMP: a number of the device, not negative, not NaN; else NULL
 *   rng    for a stochastic element_mode: element i of x, counted row-major, takes index rng->index + i
 *
 * NaNs of values are NaNs of any sign; in all other results their bits are the CPU's. MPSIM_ERANGE for a format that is not within
 * binary32. */
MPSIM_API mpsim_status mpsim_cuda_quantize(const mpsim_block_recipe *b, const mpsim_stack *x, const float *given,
                                           const mpsim_rng *rng, const mpsim_cuda_blocks *out,
                                           const mpsim_cuda_call *call);

MPSIM_END

#endif
