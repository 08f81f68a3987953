/* stats_host.cc -- libmpsim-cuda and what judges it, compiled for a CPU through tests/gpu/host.h. */
#include "../../gpu/stats/stats.cu"

#include "../../gpu/stats/check.cu"
