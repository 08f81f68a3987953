/* cudagemm.h -- products of stacks of matrices in the memory of a CUDA device, by any accumulation model: mpsim/product.h on a
 * device, with the same bits. */
#ifndef MPSIM_CUDAGEMM_H
#define MPSIM_CUDAGEMM_H

#include <mpsim/cudacall.h>
#include <mpsim/product.h>

MPSIM_BEGIN

/* An operand whose codes and factors are memory of the device. */
typedef struct mpsim_cuda_operand {
    mpsim_operand of;
    const float *inverse; /* of the device: one number, which stands for of.inverse; NULL: of.inverse is meant */
} mpsim_cuda_operand;

/* mpsim_cuda_gemm_room -- bytes of the workspace of this product; 0 also for what mpsim_cuda_gemm refuses. */
MPSIM_API size_t mpsim_cuda_gemm_room(const mpsim_product *p, const mpsim_cuda_operand *a, const mpsim_cuda_operand *b);

/* mpsim_cuda_gemm -- the product of p, whose operands are a and b (p->a and p->b are ignored), with the bits of
 * mpsim_product_run and its rules for shapes and formats. Codes of d, start, bias and add, factors, and the counts are memory of
 * the device; the structures, formats and p->rng are read before the function returns.
 *
 * All models are computed: by an instruction of the device where an instruction has the model's bits, else in integers,
 * binary64 or binary32. NaNs of the operations behind the sum are those of x86. MPSIM_ERANGE as mpsim_product_run; the rest as in
 * mpsim/cudacall.h. "binary64" needs 6.25 to 7 bytes of the workspace for each element of an operand of each matrix; exact sums and
 * "binary32" need one byte for each result. */
MPSIM_API mpsim_status mpsim_cuda_gemm(const mpsim_product *p, const mpsim_cuda_operand *a, const mpsim_cuda_operand *b,
                                       const mpsim_cuda_call *call);

/* mpsim_cuda_gemm_kernel -- what computes this product on the current device: "tensor cores", "binary64" (fused additions),
 * "binary32" (products added one after the other, in binary32, bf16 or fp16), or "one thread a result". NULL for what mpsim_cuda_gemm
 * refuses. The string is static. */
MPSIM_API const char *mpsim_cuda_gemm_kernel(const mpsim_product *p, const mpsim_cuda_operand *a,
                                             const mpsim_cuda_operand *b);

MPSIM_END

#endif
