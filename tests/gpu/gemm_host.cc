/* gemm_host.cc -- the matrix products of training, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/kernels/gemm.cu"
