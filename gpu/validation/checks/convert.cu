/* convert.cu -- conversions from binary32 by the hardware's cvt instructions, against
 * mpsim_scalar_arith (MPSIM_OP_CONVERT) with the choices of the preset "cuda".
 *
 * The low 13 bits of a tf32 register are not part of the result (PTX ISA, cvt); rows of their own ask what they are. */
#include "scalar.cuh"

static __device__ uint32_t hardware(const gpu_scalar &s, const uint32_t in[3])
{
    const float x = __uint_as_float(in[0]);
    unsigned short h = 0;
    uint32_t w = 0;
    switch (s.instruction) {
    case GPU_CVT_RN_F16:
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
        return h;
    case GPU_CVT_RZ_F16:
        asm("cvt.rz.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
        return h;
    case GPU_CVT_RN_BF16:
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
        return h;
    case GPU_CVT_RZ_BF16:
        asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
        return h;
    case GPU_CVT_RNA_TF32:
    case GPU_CVT_RNA_TF32_REST:
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
        return s.instruction == GPU_CVT_RNA_TF32 ? w >> 13 : w & 0x1fff;
#if __CUDA_ARCH__ >= 900
    case GPU_CVT_RN_TF32:
    case GPU_CVT_RN_TF32_REST:
        asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
        return s.instruction == GPU_CVT_RN_TF32 ? w >> 13 : w & 0x1fff;
    case GPU_CVT_RZ_TF32:
    case GPU_CVT_RZ_TF32_REST:
        asm("cvt.rz.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
        return s.instruction == GPU_CVT_RZ_TF32 ? w >> 13 : w & 0x1fff;
#endif
#if __CUDA_ARCH__ >= 890
    case GPU_CVT_RN_E4M3: /* of a pair, whose second operand is the low byte */
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(x));
        return h & 0xff;
    case GPU_CVT_RN_E5M2:
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(x));
        return h & 0xff;
#endif
    default:
        return 0;
    }
}

cudaError_t gpu_convert_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally)
{
    return scalar_launch<hardware>(s, span, tally);
}

int gpu_compiled_for(void)
{
    cudaFuncAttributes a;
    if (cudaFuncGetAttributes(&a, scalar_kernel<hardware>) != cudaSuccess) {
        cudaGetLastError();
        return -1;
    }
    return a.binaryVersion;
}
