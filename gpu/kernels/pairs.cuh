/* pairs.cuh -- two binary32 numbers as codes at once, by the device's instructions. */
#ifndef MPSIM_GPU_KERNELS_PAIRS_CUH
#define MPSIM_GPU_KERNELS_PAIRS_CUH

#include "codes.cuh"

/* Two codes of 16 bits of binary32 numbers, the first one low; two of 8 bits, which saturate. Where
 * the device has no instruction, and on a host, gpu_encode does it. They differ in NaNs: an
 * instruction gives 7fff, 7f. */
#if defined(__CUDA_ARCH__)
#define GPU_PAIR(name, register, cvt)                                                         \
    static __device__ __forceinline__ uint32_t name(const gpu_format &, float low, float high)   \
    {                                                                                         \
        uint##register##_t d;                                                                 \
        asm(cvt " %0, %1, %2;" : GPU_PAIR_OUT_##register(d) : "f"(high), "f"(low));            \
        return d;                                                                             \
    }
#define GPU_PAIR_OUT_32(d) "=r"(d)
#define GPU_PAIR_OUT_16(d) "=h"(d)
GPU_PAIR(gpu_pair_f16, 32, "cvt.rn.f16x2.f32")
GPU_PAIR(gpu_pair_bf16, 32, "cvt.rn.bf16x2.f32")
#if __CUDA_ARCH__ >= 890
GPU_PAIR(gpu_pair_e4m3, 16, "cvt.rn.satfinite.e4m3x2.f32")
GPU_PAIR(gpu_pair_e5m2, 16, "cvt.rn.satfinite.e5m2x2.f32")
#endif
#endif

#define GPU_PAIR_BY_FORMAT(name, mode, bits)                                                  \
    static __device__ __forceinline__ uint32_t name(const gpu_format &f, float low, float high)  \
    {                                                                                         \
        return gpu_encode(f, mode, low).code | gpu_encode(f, mode, high).code << bits;        \
    }
#if !defined(__CUDA_ARCH__)
GPU_PAIR_BY_FORMAT(gpu_pair_f16, GPU_NEAREST, 16)
GPU_PAIR_BY_FORMAT(gpu_pair_bf16, GPU_NEAREST, 16)
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 890
GPU_PAIR_BY_FORMAT(gpu_pair_e4m3, GPU_SATURATE, 8)
GPU_PAIR_BY_FORMAT(gpu_pair_e5m2, GPU_SATURATE, 8)
#endif

#endif
