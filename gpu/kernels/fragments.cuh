/* fragments.cuh -- the instructions that matrix products are made of, as functions of a warp:
 * mma.sync, ldmatrix, cp.async. On a host tests/gpu/host_cores.h plays them by the models.
 *
 * mma.sync takes A as 16 lines of 8 words (32 bits: 1 tf32, 2 numbers of 16 bits, 4 of 8 bits), B
 * as 8 columns of 8 words, whatever the type. With g = lane / 4, t = lane mod 4 (PTX ISA, "Matrix
 * Fragments for mma.m16n8k8, k16, k32"):
 *
 *   A  register r: line g + 8 (r mod 2), word t + 4 (r / 2)
 *   B  register r: column g, word t + 4 r
 *   D  element i:  line g + 8 (i / 2), column 2 t + i mod 2 */
#pragma once

#include "codes.cuh"

/* One instruction: 16 x 8 elements (wgmma: 64 x n), 32 bytes of depth. Names of formats in a, b. */
enum {
    GPU_TYPES_F16,
    GPU_TYPES_BF16,
    GPU_TYPES_TF32,
    GPU_TYPES_E4M3_E4M3,
    GPU_TYPES_E4M3_E5M2,
    GPU_TYPES_E5M2_E4M3,
    GPU_TYPES_E5M2_E5M2,
    GPU_TYPES_COUNT
};

#if GPU_ON_HOST
#include "../../tests/gpu/host_cores.h"
#else

#define GPU_MMA_SYNC(text)                                                                         \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <int TYPES>
static __device__ __forceinline__ void gpu_mma(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    if constexpr (TYPES == GPU_TYPES_F16)
        GPU_MMA_SYNC("m16n8k16.row.col.f32.f16.f16.f32");
    if constexpr (TYPES == GPU_TYPES_BF16)
        GPU_MMA_SYNC("m16n8k16.row.col.f32.bf16.bf16.f32");
    if constexpr (TYPES == GPU_TYPES_TF32)
        GPU_MMA_SYNC("m16n8k8.row.col.f32.tf32.tf32.f32");
#if __CUDA_ARCH__ >= 890
    if constexpr (TYPES == GPU_TYPES_E4M3_E4M3)
        GPU_MMA_SYNC("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    if constexpr (TYPES == GPU_TYPES_E4M3_E5M2)
        GPU_MMA_SYNC("m16n8k32.row.col.f32.e4m3.e5m2.f32");
    if constexpr (TYPES == GPU_TYPES_E5M2_E4M3)
        GPU_MMA_SYNC("m16n8k32.row.col.f32.e5m2.e4m3.f32");
    if constexpr (TYPES == GPU_TYPES_E5M2_E5M2)
        GPU_MMA_SYNC("m16n8k32.row.col.f32.e5m2.e5m2.f32");
#endif
}

/* Four 8 x 8 matrices of 16 bits. Lane L gives the address of line L mod 8 of matrix L / 8 (16
 * bytes); register m receives of matrix m line lane / 4, columns 2 (lane mod 4) and the next;
 * transposed: column lane / 4, lines 2 (lane mod 4) and the next. */
template <int TRANSPOSED>
static __device__ __forceinline__ void gpu_ldmatrix(uint32_t r[4], const unsigned char *line)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(line);
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(at)
                     : "memory");
}

/* 16 bytes to shared memory: the first `bytes` from `from`, then zeros. They are there after
 * gpu_copy_wait, for other threads after a barrier, too. */
static __device__ __forceinline__ void gpu_copy(unsigned char *to, const unsigned char *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
}
/* The same with all 16 bytes or none, and nothing to compute for it. */
static __device__ __forceinline__ void gpu_copy_if(unsigned char *to, const unsigned char *from, bool there)
{
    asm volatile("{ .reg .pred none; setp.eq.u32 none, %2, 0;\n"
                 "cp.async.cg.shared.global [%0], [%1], 16, none; }" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"((uint32_t)there)
                 : "memory");
}
/* 4 bytes, or zeros. */
static __device__ __forceinline__ void gpu_copy_word(unsigned char *to, const void *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 4 : 0)
                 : "memory");
}
static __device__ __forceinline__ void gpu_copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* All groups of this thread but the last N have arrived. */
template <int N>
static __device__ __forceinline__ void gpu_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif
