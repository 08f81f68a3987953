/* library_fused_host.cc -- products by fused additions in binary64, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/library/fused.cu"
