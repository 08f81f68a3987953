/* wgmma_host.cc -- the products by wgmma, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/kernels/gemm_wgmma.cu"
