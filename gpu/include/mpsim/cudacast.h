/* cudacast.h -- casts of arrays on a device: libmpsim-cuda.
 *
 * Every format of at most 32 bits, every rounding, and any strides. Casts between usual formats (binary32, tf32, fp16, bf16, e4m3,
 * e5m2, e2m1) to nearest even and stochastically run near the speed of memory if both arrays have no gaps and are aligned to 16
 * bytes; so do casts between binary32, fp16, bf16, e4m3 and e5m2 to nearest even with a scale of binary32. Others compute each
 * element by integers. */
#ifndef MPSIM_CUDACAST_H
#define MPSIM_CUDACAST_H

#include <mpsim/cudacall.h>
#include <mpsim/product.h>
#include <mpsim/summary.h>

MPSIM_BEGIN

/* mpsim_cuda_cast -- the elements of x times the scale, rounded once: mpsim_encode_array_f32 or, in another format,
 * mpsim_round_array_f32 on a device.
 *
 *   y       codes of to->format; or of a wider format that has all its numbers, which receives the values
 *   x       codes of any format, of y's shape. It may be y if codes and strides are the same; otherwise they must not overlap
 *   rng     of a stochastic mode, else NULL: element i of y, counted row-major, takes index rng->index + i
 *   counts  memory of the device, which is added to; or NULL
 *
 * A NaN of a value in binary32 is that of mpsim_round_array_f32; in other formats it is the canonical one with its sign.
 * Numbers of x that are not all numbers of binary32 are rounded as by mpsim_encode_array_f64. The workspace is not used.
 *
 * MPSIM_ERANGE if y's format has not all numbers of to->format. MPSIM_EUNAVAILABLE for formats of more than 32 bits. */
MPSIM_API mpsim_status mpsim_cuda_cast(const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to,
                                       const mpsim_rng *rng, mpsim_entered *counts, const mpsim_cuda_call *call);

MPSIM_END

#endif
