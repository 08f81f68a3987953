/* cuda_host.cc -- libmpsim-cuda as a library whose device is a CPU (tests/gpu/host.h), for tests of what loads it: memory there
 * comes from mpsim_test_memory. */
#include "../../gpu/stats/stats.cu"

#include "../../gpu/library/cast.cu"
#include "../../gpu/library/enter.cu"
#include "../../gpu/library/quantize.cu"

#include "../../gpu/library/muon.cu"
#include "../../gpu/library/norm.cu"
#include "../../gpu/library/optimizer.cu"
#include "../../gpu/library/attention.cu"
#include "../../gpu/library/between.cu"
#include "../../gpu/library/sum.cu"

/* 1: from now on all memory of the process is the device's, as that of torch's tensors on a CPU. */
extern "C" MPSIM_API void mpsim_test_anywhere(int on)
{
    gpu_host_driver_now.anywhere = on;
}

extern "C" MPSIM_API void *mpsim_test_memory(size_t bytes)
{
    void *p = nullptr;
    return cudaMalloc(&p, bytes) == cudaSuccess ? p : nullptr;
}
