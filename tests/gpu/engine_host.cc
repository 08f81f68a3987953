/* engine_host.cc -- the CUDA engine of training, compiled for a CPU through gpu/host.h. */
#include "../../gpu/engine.cu"
