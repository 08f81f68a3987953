/* cvt.cu -- the conversions of conversions.h by the hardware's cvt, against mpsim_scalar_arith (MPSIM_OP_CONVERT). */
#include "cvt.cuh"

static __device__ uint32_t hardware(const gpu_scalar &s, const uint32_t in[3])
{
    unsigned short h = 0;
    uint32_t w = 0;
    float f = 0;
    switch (s.instruction) {
#if __CUDA_ARCH__ >= 900
        GPU_CONVERSIONS(GPU_CVT_CASE)
#endif
    default:
        return h + w + __float_as_uint(f);
    }
}

cudaError_t gpu_cvt_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return scalar_launch<hardware>(s, span, tally);
}
