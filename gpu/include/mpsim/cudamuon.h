/* cudamuon.h -- a step of Muon in the memory of a CUDA device: libmpsim-cuda. */
#ifndef MPSIM_CUDAMUON_H
#define MPSIM_CUDAMUON_H

#include <mpsim/cudacall.h>
#include <mpsim/muon.h>

MPSIM_BEGIN

/* A matrix of rows x cols, row-major. All arrays are binary32 numbers on the device, param and m numbers of o->param. */
typedef struct mpsim_cuda_matrix {
    float *param, *m;
    const float *grad;
    uint64_t rows, cols;
    double grad_scale; /* gradients are divided by it, as binary32; 1: they are not */
} mpsim_cuda_matrix;

/* mpsim_cuda_muon_room -- bytes of the workspace of a step; 0 also for what mpsim_cuda_muon refuses. */
MPSIM_API size_t mpsim_cuda_muon_room(const mpsim_muon *o, const mpsim_cuda_matrix *t);

/* mpsim_cuda_muon -- a step of one matrix, with the bits of mpsim_update_run: gradients divided and rounded to o->param, mpsim_muon_momentum,
 * mpsim_muon_orthogonalise with products by mpsim_cuda_gemm, and mpsim_muon_apply. A NaN may have another sign and payload.
 *
 * MPSIM_EUNAVAILABLE for products of torch's own on a CPU (o->products) and for stochastic models; MPSIM_EINVAL and MPSIM_ERANGE as
 * mpsim_muon_check. */
MPSIM_API mpsim_status mpsim_cuda_muon(const mpsim_muon *o, const mpsim_cuda_matrix *t, const mpsim_cuda_call *call);

MPSIM_END

#endif
