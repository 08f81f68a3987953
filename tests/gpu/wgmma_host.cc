/* wgmma_host.cc -- the products by wgmma, compiled for a CPU through gpu/host.h. */
#include "../../gpu/wgmma_gemm.cu"
