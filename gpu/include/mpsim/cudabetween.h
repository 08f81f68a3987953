/* cudabetween.h -- what lies between products, on a device: mpsim/between.h there, in binary32. */
#ifndef MPSIM_CUDABETWEEN_H
#define MPSIM_CUDABETWEEN_H

#include <mpsim/between.h>
#include <mpsim/cudacall.h>

MPSIM_BEGIN

/* mpsim_cuda_between_room -- bytes of the workspace of this operation; 0 for most. */
MPSIM_API size_t mpsim_cuda_between_room(const mpsim_between *o);

/* mpsim_cuda_between -- an operation on `n` arrays, as mpsim_between_run, with its bits: normalisations, activations, softmax, losses,
 * tables, sums. The arrays, o->index, and found are memory of the device; the structures are read before the function returns.
 *
 * found: of CROSS_ENTROPY 2 numbers that are added to, rows that are correct and rows that count; or NULL.
 *
 * NaNs are where mpsim_between_run has them; their signs and payloads in binary32 are those of the device. Indices are not read
 * on the host: of an index that is no entry the row of y or dx, and its loss, are NaN, and EMBED_BACKWARD leaves the row out.
 *
 * MPSIM_EUNAVAILABLE for DROPOUT, for math other than binary32, and for a dtable of another format than binary32. MPSIM_EINVAL as
 * mpsim_between_run; MPSIM_ERANGE for a format that has numbers that binary32 has not. */
MPSIM_API mpsim_status mpsim_cuda_between(const mpsim_between *o, const mpsim_strided *arrays, size_t n,
                                          uint64_t *found, const mpsim_cuda_call *call);

MPSIM_END

#endif
