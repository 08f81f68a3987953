/* cudaenter.h -- operands of products on a device: numbers of any stack, rounded, transformed, put through a block recipe; see
 * mpsim/product.h. Part of libmpsim-cuda. */
#ifndef MPSIM_CUDAENTER_H
#define MPSIM_CUDAENTER_H

#include <mpsim/cudagemm.h>

MPSIM_BEGIN

/* mpsim_cuda_enter_room -- bytes of workspace that mpsim_cuda_enter needs; 0 also for what it refuses, and where nothing is to be
 * done. */
MPSIM_API size_t mpsim_cuda_enter_room(const mpsim_stack *x, const mpsim_entering *how);

/* mpsim_cuda_enter -- mpsim_operand_enter on a device: the same codes, factors, inverse, amax and counts.
 *
 *   x       codes of the device
 *   amax    NULL, or a number of the device that becomes the larger of itself and the largest magnitude of what the recipe is given
 *   counts  NULL, or of the device: added to
 *
 * The operand lies in the workspace, which must stay as long as the operand; x where it lies if nothing is to be done. `inverse` is
 * set for recipes whose inverse the device finds: one scale for the whole stack, NVFP4 with scale codes. NaNs of values are NaNs,
 * of any sign; after a transform the codes of NaNs may have another sign than on a CPU. */
MPSIM_API mpsim_status mpsim_cuda_enter(mpsim_cuda_operand *o, const mpsim_stack *x, const mpsim_entering *how,
                                        float *amax, mpsim_entered *counts, const mpsim_cuda_call *call);

MPSIM_END

#endif
