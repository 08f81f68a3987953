/* cudaoptim.h -- optimizer steps of tensors in the memory of a CUDA device: libmpsim-cuda. */
#ifndef MPSIM_CUDAOPTIM_H
#define MPSIM_CUDAOPTIM_H

#include <mpsim/cudacall.h>
#include <mpsim/optim.h>

MPSIM_BEGIN

/* A tensor of n elements. Arrays are codes in the memory of the device (of binary32: numbers). The step is fastest where they are
 * aligned to four codes; arrays of different tensors must not overlap. */
typedef struct mpsim_cuda_parameter {
    void *param;      /* of optim->param; NULL: the parameter is `model` and `remainder`                              */
    const void *grad; /* of `grad` below                                                                              */
    void *m, *v,
        *vmax;   /* of optim->state, where mpsim_optim_arrays says that the step needs them                      */
    void *kahan; /* MPSIM_STORE_KAHAN: of optim->param                                                           */
    void *model; /* gets the parameter rounded to `model` below, to nearest even; NULL: there is no such copy     */
    int16_t
        *remainder; /* with param NULL: the parameter is a binary32 master as mpsim_master_split keeps it            */
    uint64_t n;
    mpsim_rng
        rng; /* MPSIM_STORE_STOCHASTIC: element i takes the random word of index rng.index + i                    */
} mpsim_cuda_parameter;

typedef struct mpsim_cuda_optim {
    const mpsim_optim *optim;
    const mpsim_format
        *grad; /* of the gradients; NULL: optim->param                                                  */
    const mpsim_format
        *model; /* of the copies; NULL: bf16                                                             */
    const float
        *grad_scale; /* on the device: takes the place of optim->grad_scale, as a number that is not 1; NULL: none */
} mpsim_cuda_optim;

/* mpsim_cuda_optimizer_room -- bytes of the workspace of a step; 0 for all but Adafactor. */
MPSIM_API size_t mpsim_cuda_optimizer_room(const mpsim_optim *o, const mpsim_cuda_parameter *t, size_t n);

/* mpsim_cuda_optimizer -- step `step` of n tensors: the bits of mpsim_optim_step for each of them, but of NaNs, of which only that
 * they are NaNs. One launch takes 256 tensors; Adafactor has 5 or 7 launches for each tensor, of optim->rows x optim->cols matrices.
 *
 * All variants have kernels. A format has at most 32 bits, and binary32 has all of its numbers; binary32 and bf16 are fast.
 * Tensors must be whole for variants of which mpsim_optim_step says so.
 *
 * MPSIM_EUNAVAILABLE and a line that names the variant if it has no kernel, or an option that it lacks; MPSIM_EINVAL for invalid
 * settings, step 0, a needed array that is NULL, and matrices that are not whole; MPSIM_ENOMEM for
 * a small workspace; MPSIM_ERANGE for a format that has numbers that binary32 has not. */
MPSIM_API mpsim_status mpsim_cuda_optimizer(const mpsim_cuda_optim *o, uint64_t step, const mpsim_cuda_parameter *t,
                                            size_t n, const mpsim_cuda_call *call);

MPSIM_END

#endif
