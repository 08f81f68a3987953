/* engine_host.cc -- the CUDA engine of training, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/kernels/engine.cu"
