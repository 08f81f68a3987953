/* cudaattention.h -- attention in tiles of keys on a device: mpsim/attention.h there, of a head, with softmax in binary32. */
#ifndef MPSIM_CUDAATTENTION_H
#define MPSIM_CUDAATTENTION_H

#include <mpsim/attention.h>
#include <mpsim/cudacall.h>

MPSIM_BEGIN

/* mpsim_cuda_attention_forward_room, ..._backward_room -- bytes of the workspace of a call with these matrices; 0 also where the call is
 * refused. */
MPSIM_API size_t mpsim_cuda_attention_forward_room(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                                   const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v);
MPSIM_API size_t mpsim_cuda_attention_backward_room(const mpsim_attention_gradient *g,
                                                    const mpsim_attention_shape *shape, const mpsim_matrix *q,
                                                    const mpsim_matrix *k, const mpsim_matrix *v,
                                                    const mpsim_matrix *dy);

/* mpsim_cuda_attention_forward, ..._backward -- as the functions without cuda_, with their bits; mpsim_cuda_gemm computes the
 * products. Codes of matrices, y, lse, dq, dk and dv are memory of the device; structures are read before the functions return. A NaN
 * may have another sign and payload.
 *
 * MPSIM_ERANGE as those, and for a mask, beta, a format of the softmax or of results, a model that rounds stochastically, a rounding of P
 * or dS other than mpsim_rounding_init's to nearest even, and a model whose results have no infinity. */
MPSIM_API mpsim_status mpsim_cuda_attention_forward(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                                    const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v,
                                                    float *y, float *lse, const mpsim_cuda_call *call);
MPSIM_API mpsim_status mpsim_cuda_attention_backward(const mpsim_attention_gradient *g,
                                                     const mpsim_attention_shape *shape, const mpsim_matrix *q,
                                                     const mpsim_matrix *k, const mpsim_matrix *v,
                                                     const mpsim_matrix *dy, const float *y, const float *lse,
                                                     float *dq, float *dk, float *dv, const mpsim_cuda_call *call);

MPSIM_END

#endif
