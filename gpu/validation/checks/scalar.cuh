/* scalar.cuh -- the kernel of operations on scalars: hardware against reference. */
#pragma once

#include "tally.cuh"

/* Not inlined: one copy of the reference a file. */
static __device__ __noinline__ uint64_t scalar_expected(const gpu_scalar &s, const uint32_t in[3])
{
    return gpu_scalar_expected(&s, in);
}

typedef uint32_t scalar_hardware(const gpu_scalar &s, const uint32_t in[3]);

template <scalar_hardware hardware>
__global__ void __launch_bounds__(GPU_THREADS)
    scalar_kernel(GPU_CONSTANT(gpu_scalar) s, GPU_CONSTANT(gpu_span) span, gpu_tally *tally)
{
    gpu_local local(tally);
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = span.first + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < span.end; i += stride) {
        uint32_t in[3];
        gpu_scalar_case(&s, i, in);
        const uint64_t expected = scalar_expected(s, in);
        const bool is_asked = expected != GPU_NOT_ASKED;
        local.add(span, i, is_asked ? hardware(s, in) : 0, is_asked ? expected : 0);
    }
    local.give();
}

template <scalar_hardware hardware>
static cudaError_t scalar_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    const uint64_t blocks = (span->end - span->first + GPU_THREADS - 1) / GPU_THREADS;
    scalar_kernel<hardware><<<(unsigned)(blocks < GPU_BLOCKS ? blocks : GPU_BLOCKS), GPU_THREADS>>>(*s, *span, tally);
    return cudaGetLastError();
}
