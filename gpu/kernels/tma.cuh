/* tma.cuh -- mbarriers, copies of tiles by the tensor memory accelerator, barriers of warpgroups and clusters, registers that
 * move between warpgroups: sm_90a. On a host tests/gpu/host_tma.h plays them, and finds mistakes (macros there have the
 * place in the source). PTX ISA: "mbarrier", "cp.async.bulk.tensor", "setmaxnreg".
 *
 *   gpu_bar_init(bar, count)           one thread; then gpu_bar_publish() and gpu_cluster_sync()
 *   gpu_bar_expect(bar, bytes)         an arrival, and so many bytes that the phase waits for
 *   gpu_bar_arrive(bar)                an arrival of this block
 *   gpu_bar_arrive_at(bar, rank)       an arrival at the same barrier of a block of the cluster
 *   gpu_bar_copies(bar)                an arrival, when this thread's cp.async have arrived
 *   gpu_bar_wait(bar, parity)          until the phase of that parity has ended; 1 before the first: at once
 *   gpu_tile(tensor, to, bar, x, y, z, mask)   a box to `to` of the blocks of mask, or of this one: 0; counted by bar there
 *   gpu_group_sync(number, threads)    a named barrier
 *   gpu_cluster_sync(), gpu_cluster_rank()
 *   gpu_registers_more<N>(), gpu_registers_less<N>()   a warpgroup has N a thread from here on */
#pragma once

#include "fragments.cuh"

#if GPU_ON_HOST

#define gpu_bar_init(bar, count) gpu_host_mbarrier_init(bar, count, __FILE__, __LINE__)
#define gpu_bar_publish() ((void)0)
#define gpu_bar_expect(bar, n) \
    gpu_host_mbarrier_arrive(gpu_host.rank, gpu_host_offset(bar), static_cast<long>(n), __FILE__, __LINE__)
#define gpu_bar_arrive(bar) gpu_host_mbarrier_arrive(gpu_host.rank, gpu_host_offset(bar), 0, __FILE__, __LINE__)
#define gpu_bar_arrive_at(bar, rank) gpu_host_mbarrier_arrive(rank, gpu_host_offset(bar), 0, __FILE__, __LINE__)
#define gpu_bar_copies(bar) gpu_host_copies_arrive(bar, __FILE__, __LINE__)
#define gpu_bar_wait(bar, parity) gpu_host_mbarrier_wait(bar, parity, __FILE__, __LINE__)
#define gpu_tile(tensor, to, bar, x, y, z, mask) gpu_host_tile_later(tensor, to, bar, x, y, z, mask, __FILE__, __LINE__)
#define gpu_group_sync(number, threads) gpu_host_named(number, threads, __FILE__, __LINE__)
#define gpu_cluster_sync() gpu_host_cluster_barrier(__FILE__, __LINE__)
#define gpu_cluster_rank() (gpu_host.rank)
template <int N>
static inline void gpu_registers_more()
{
}
template <int N>
static inline void gpu_registers_less()
{
}

#else

#include <cuda.h>

typedef CUtensorMap gpu_tensor;

static __device__ __forceinline__ uint32_t gpu_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void gpu_bar_init(uint64_t *bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(gpu_shared_address(bar)), "r"(count) : "memory");
}
static __device__ __forceinline__ void gpu_bar_publish()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
static __device__ __forceinline__ void gpu_bar_expect(uint64_t *bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(gpu_shared_address(bar)), "r"(bytes)
                 : "memory");
}
static __device__ __forceinline__ void gpu_bar_arrive(uint64_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(gpu_shared_address(bar)) : "memory");
}
static __device__ __forceinline__ void gpu_bar_arrive_at(uint64_t *bar, unsigned rank)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(gpu_shared_address(bar)),
                 "r"(rank)
                 : "memory");
}
static __device__ __forceinline__ void gpu_bar_copies(uint64_t *bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(gpu_shared_address(bar)) : "memory");
}
static __device__ __forceinline__ void gpu_bar_wait(uint64_t *bar, unsigned parity)
{
    uint32_t is_over;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(is_over)
                     : "r"(gpu_shared_address(bar)), "r"(parity)
                     : "memory");
    } while (!is_over);
}

#define GPU_TILE "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
static __device__ __forceinline__ void gpu_tile(const gpu_tensor &tensor, unsigned char *to, uint64_t *bar, unsigned x,
                                                unsigned y, unsigned z, unsigned mask)
{
    if (mask)
        asm volatile(GPU_TILE ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(gpu_shared_address(to)),
                     "l"(&tensor), "r"(gpu_shared_address(bar)), "r"(x), "r"(y), "r"(z), "h"((uint16_t)mask)
                     : "memory");
    else
        asm volatile(GPU_TILE " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(gpu_shared_address(to)), "l"(&tensor),
                     "r"(gpu_shared_address(bar)), "r"(x), "r"(y), "r"(z)
                     : "memory");
}
#undef GPU_TILE

static __device__ __forceinline__ void gpu_group_sync(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
static __device__ __forceinline__ void gpu_cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
static __device__ __forceinline__ unsigned gpu_cluster_rank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
template <int N>
static __device__ __forceinline__ void gpu_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
static __device__ __forceinline__ void gpu_registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

#endif
