/* library_gemm_host.cc -- mpsim_cuda_gemm, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/library/gemm.cu"
