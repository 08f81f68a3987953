/* library_exact_host.cc -- products by exact sums, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/library/exact.cu"
