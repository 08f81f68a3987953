/* tma_host.cc -- gpu/kernels/gemm_tma.cu on the host executor. */
#include "../../gpu/kernels/gemm_tma.cu"
