/* wgmma.cuh -- the instructions of wgmma (sm_90a), their waits and descriptors. On a host tests/gpu/host_cores.h plays
 * them by the models. */
#pragma once

#include "fragments.cuh"

/* A line of an operand in shared memory has 128 bytes, 8 lines are an atom of the swizzle. */
enum { WG_BYTES = 128, WG_ATOM = 8 * WG_BYTES };

#if GPU_ON_HOST

static inline uint32_t wg_address(const unsigned char *p)
{
    return static_cast<uint32_t>(p - gpu_host.shared);
}
static inline void wg_publish()
{
}
template <int N>
static inline void wg_hold(float (&)[N / 2])
{
}
static inline void wg_begin()
{
}
static inline void wg_commit()
{
    gpu_host_queue_now()->product_group++;
}

template <int TYPES, int N, int MN_A = 0, int MN_B = 0>
static inline void wg_multiply(float *d, uint64_t a, uint64_t b, int adds = 1)
{
    gpu_host_queue *q = gpu_host_queue_now();
    q->products.push_back(gpu_host_async{TYPES, N, d, a, b, q->product_group, MN_A, MN_B, adds});
}
template <int LEFT>
static inline void wg_wait()
{
    gpu_host_queue *q = gpu_host_queue_now();
    std::vector<gpu_host_async> left;
    for (const gpu_host_async &p : q->products)
        if (p.group + LEFT < q->product_group)
            gpu_host_wgmma(&p);
        else
            left.push_back(p);
    q->products.swap(left);
}

#else

static __device__ __forceinline__ uint32_t wg_address(const unsigned char *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
/* What this thread wrote to shared memory is for the async proxy, which wgmma reads through. Without
 * the state space it would be a fence of all memory, for the whole device. */
static __device__ __forceinline__ void wg_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
static __device__ __forceinline__ void wg_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
static __device__ __forceinline__ void wg_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT>
static __device__ __forceinline__ void wg_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The registers have their numbers from here on: without it a compiler might read sums before the wait, or set
 * them to zero behind the fence. */
template <int N>
static __device__ __forceinline__ void wg_hold(float (&d)[N / 2])
{
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}

/* Names and operands of registers, ten or eight at a time. */
#define WG_TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define WG_R64 WG_TEN() WG_TEN(1) WG_TEN(2) WG_TEN(3) WG_TEN(4) WG_TEN(5) "%60,%61,%62,%63"
/* clang-format off */
#define WG_R128                                                                               \
    WG_TEN() WG_TEN(1) WG_TEN(2) WG_TEN(3) WG_TEN(4) WG_TEN(5) WG_TEN(6) WG_TEN(7) WG_TEN(8)  \
        WG_TEN(9) WG_TEN(10) WG_TEN(11) "%120,%121,%122,%123,%124,%125,%126,%127"
/* clang-format on */
#define WG_D8(i)                                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define WG_D64(i) \
    WG_D8(i), WG_D8(i + 8), WG_D8(i + 16), WG_D8(i + 24), WG_D8(i + 32), WG_D8(i + 40), WG_D8(i + 48), WG_D8(i + 56)

/* The predicate is scale-d: whether sums begin with what is in the registers. Then scales 1 of A and B; 16 bits: whether
 * each is MN-major. */
#define WG_ASM_128(type, more)                                                                             \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"                                                \
                 "wgmma.mma_async.sync.aligned.m64n128" type " {" WG_R64 "}, %64, %65, p, 1, 1" more "; }" \
                 : WG_D64(0)                                                                               \
                 : "l"(a), "l"(b), "r"(adds), "n"(MN_A), "n"(MN_B))
#define WG_ASM_256(type, more)                                                                                \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0;\n"                                                  \
                 "wgmma.mma_async.sync.aligned.m64n256" type " {" WG_R128 "}, %128, %129, p, 1, 1" more "; }" \
                 : WG_D64(0), WG_D64(64)                                                                      \
                 : "l"(a), "l"(b), "r"(adds), "n"(MN_A), "n"(MN_B))
#define WG_CASE(types, type, more_128, more_256) \
    if constexpr (TYPES == types && N == 128)    \
        WG_ASM_128(type, more_128);              \
    if constexpr (TYPES == types && N == 256)    \
        WG_ASM_256(type, more_256);

template <int TYPES, int N, int MN_A = 0, int MN_B = 0>
static __device__ __forceinline__ void wg_multiply(float (&d)[N / 2], uint64_t a, uint64_t b, int adds = 1)
{
    WG_CASE(GPU_TYPES_F16, "k16.f32.f16.f16", ", %67, %68", ", %131, %132")
    WG_CASE(GPU_TYPES_BF16, "k16.f32.bf16.bf16", ", %67, %68", ", %131, %132")
    WG_CASE(GPU_TYPES_E4M3_E4M3, "k32.f32.e4m3.e4m3", "", "")
    WG_CASE(GPU_TYPES_E4M3_E5M2, "k32.f32.e4m3.e5m2", "", "")
    WG_CASE(GPU_TYPES_E5M2_E4M3, "k32.f32.e5m2.e4m3", "", "")
    WG_CASE(GPU_TYPES_E5M2_E5M2, "k32.f32.e5m2.e5m2", "", "")
}

#endif

/* "Matrix Descriptor Format": bits 0-13 address, 16-29 leading dimension (K-major with this swizzle unused: 1), 32-45
 * stride dimension, each without its low 4 bits; 62-63: 1 is the swizzle of 128 bytes. K-major, the stride is from 8 lines
 * to the next 8. MN-major (64 lines are 128 bytes of a depth) it is from 8 depths to the next 8, and the leading
 * dimension from 64 lines to the next 64. */
static __device__ __forceinline__ uint64_t wg_descriptor(const unsigned char *p, int leading = 16)
{
    return (uint64_t)((wg_address(p) & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 |
           (uint64_t)(WG_ATOM >> 4) << 32 | (uint64_t)1 << 62;
}
