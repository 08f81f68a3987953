/* cvt_next.cu -- the same of conversions that only Blackwell has (sm_100a, sm_120a: nothing else is compiled from this
 * file). */
#include "cvt.cuh"

static __device__ uint32_t hardware(const gpu_scalar &s, const uint32_t in[3])
{
    unsigned short h = 0;
    uint32_t w = 0;
    switch (s.instruction) {
        GPU_CONVERSIONS_NEXT(GPU_CVT_CASE)
    default:
        return h + w;
    }
}

cudaError_t gpu_cvt_next_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return scalar_launch<hardware>(s, span, tally);
}

int gpu_cvt_next_compiled(void)
{
    cudaFuncAttributes a;
    if (cudaFuncGetAttributes(&a, scalar_kernel<hardware>) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return 1;
}
