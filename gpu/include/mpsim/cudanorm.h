/* cudanorm.h -- norms of arrays in the memory of a CUDA device: libmpsim-cuda. */
#ifndef MPSIM_CUDANORM_H
#define MPSIM_CUDANORM_H

#include <mpsim/cudacall.h>
#include <mpsim/format.h>

MPSIM_BEGIN

/* n binary32 numbers on the device, and the format of their norm; NULL: binary32. */
typedef struct mpsim_cuda_array {
    const float *x;
    uint64_t n;
    const mpsim_format *format;
} mpsim_cuda_array;

/* mpsim_cuda_norm_room -- bytes of the workspace of the norms of n arrays. */
MPSIM_API size_t mpsim_cuda_norm_room(size_t n);

/* mpsim_cuda_norm -- norms[i], a binary32 number on the device, becomes the norm of array i with the bits of mpsim_norm (mpsim/gradient.h): the
 * exact sum of squares. A NaN may have another sign and payload.
 *
 * MPSIM_EINVAL for a pointer that is NULL; MPSIM_EUNAVAILABLE for a format of more than 32 bits, or that has numbers that binary32 has not. */
MPSIM_API mpsim_status mpsim_cuda_norm(float *norms, const mpsim_cuda_array *x, size_t n, const mpsim_cuda_call *call);

MPSIM_END

#endif
