/* gemm_host.cc -- the matrix products of training, compiled for a CPU through gpu/host.h. */
#include "../../gpu/gemm.cu"
