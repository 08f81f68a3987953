/* cudasum.h -- sums of lines of a tensor in the memory of a CUDA device, each in a fixed order: libmpsim-cuda. */
#ifndef MPSIM_CUDASUM_H
#define MPSIM_CUDASUM_H

#include <mpsim/cudacall.h>
#include <mpsim/format.h>

MPSIM_BEGIN

typedef enum mpsim_cuda_sum_order {
    MPSIM_CUDA_SUM_LANES,    /* mpsim_sum_lanes; lanes = 1: one term after the other, from +0                    */
    MPSIM_CUDA_SUM_PAIRWISE, /* mpsim_dot with the model pairwise:MATH, of the terms and ones, c = +0            */
    MPSIM_CUDA_SUM_EXACT     /* the exact sum, rounded once, to `format`                                         */
} mpsim_cuda_sum_order;

typedef struct mpsim_cuda_summing {
    mpsim_cuda_sum_order order;
    size_t lanes; /* LANES: a power of two, 1 to 1024 (MPSIM_LANES_ROW, MPSIM_LANES_ALL)              */
    const mpsim_format
        *math; /* each term and each addition is rounded to it, to nearest even; NULL: binary32. EXACT: not read */
    const mpsim_format *format; /* of the results; NULL: binary32                                                 */
    uint64_t counted; /* not 0: the sum is divided by f32(counted) in `math`, as mpsim_mean. Not with EXACT  */
} mpsim_cuda_summing;

/* outer x inner sums of `terms` terms: term k of sum (o, i) is x[o outer_stride + i inner_stride + k stride]. The last dimension of a
 * rows x cols matrix: outer = rows, outer_stride = cols, inner = 1, terms = cols, stride = 1; its columns (mpsim_column_sums): outer = 1,
 * inner = cols, inner_stride = 1, terms = rows, stride = cols. */
typedef struct mpsim_cuda_lines {
    const void *x; /* of the device: codes of `format`           */
    const mpsim_format *format;
    uint64_t outer, inner, terms;
    int64_t outer_stride, inner_stride, stride; /* in elements */
} mpsim_cuda_lines;

/* mpsim_cuda_sum -- y[o inner + i] = the sum (o, i), codes of how->format on the device, with the bits of the function of libmpsim that the
 * order names, but of NaNs, of which only that they are NaNs. One launch; no workspace is needed. y must not overlap x.
 *
 * MPSIM_EINVAL for an order, lanes or a pointer that is invalid, and 2^31 sums and more; MPSIM_EUNAVAILABLE for a format of more than 32 bits, or
 * that has numbers that binary32 has not. */
MPSIM_API mpsim_status mpsim_cuda_sum(const mpsim_cuda_summing *how, void *y, const mpsim_cuda_lines *x,
                                      const mpsim_cuda_call *call);

MPSIM_END

#endif
