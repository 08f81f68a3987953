/* cuda.cuh -- what the kernels of training are written against. Under nvcc it is CUDA; under a
 * plain C++17 compiler it is tests/gpu/host.h, which runs the same source on a CPU: threads of a block
 * take turns, barriers and warp collectives are real, and mistakes that a device would hide are
 * errors.
 *
 *   GPU_LAUNCH(kernel, grid, block, shared_bytes, arguments...)   on the default stream; a template
 * with a comma in its arguments stands in parentheses GPU_SHARED(float, tile, [16][17]); static
 * shared memory; GPU_SHARED(int, one, ); GPU_DYNAMIC_SHARED(float, x);           float *x, the
 * block's shared_bytes, aligned to 1024
 *
 * No floating-point operation of these sources may be contracted or approximated: operators stand
 * only where a compiler keeps them (-fmad=false, -ffp-contract=off), and __fmaf_rn where an fma is
 * meant. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define GPU_ON_HOST 0
#define GPU_LAUNCH_NOW(stream, kernel, grid, block, shared, ...) \
    (kernel)<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#define GPU_RECORD(...) gpu_record(__VA_ARGS__)
/* Clusters of n blocks, which the kernel has as GPU_CLUSTERS(n), too. */
#define GPU_LAUNCH_CLUSTERS(stream, n, ...) GPU_LAUNCH_ON(stream, __VA_ARGS__)
#define GPU_CLUSTERS(n) __cluster_dims__(n, 1, 1)
/* A parameter of a kernel that all its threads read in place; on a CPU a reference. */
#define GPU_CONSTANT(...) const __grid_constant__ __VA_ARGS__
#define GPU_CONSTANT_TYPE(...) __VA_ARGS__ /* in the type of a pointer to a kernel */
#define GPU_SHARED(type, name, dims) __shared__ type name dims
#define GPU_DYNAMIC_SHARED(type, name)                                    \
    extern __shared__ __align__(1024) unsigned char gpu_dynamic_shared[]; \
    type *const name = reinterpret_cast<type *>(gpu_dynamic_shared)
#define GPU_NOINLINE __noinline__
#define GPU_PREFETCH(p) asm volatile("prefetch.global.L2 [%0];" ::"l"(p))
#define GPU_KERNEL [[maybe_unused]] static __global__
#define GPU_UNROLL _Pragma("unroll")
#define GPU_ROLLED _Pragma("unroll 1")

#else

#define GPU_ON_HOST 1
#define GPU_CONSTANT_TYPE(...) const __VA_ARGS__ &
#define GPU_UNROLL
#define GPU_ROLLED
#define GPU_KERNEL [[maybe_unused]] __global__
#include "../../tests/gpu/host.h"

#endif

#include "replay.cuh"

/* At once, or where the thread has a recorder, on the default stream, when the host waits (replay.cuh). */
#define GPU_LAUNCH(...) GPU_LAUNCH_ON(0, __VA_ARGS__)
#define GPU_LAUNCH_ON(stream, kernel, grid, block, shared, ...)                              \
    (gpu_recording && !(stream) ? (void)GPU_RECORD(kernel, grid, block, shared, __VA_ARGS__) \
                                : (void)GPU_LAUNCH_NOW(stream, kernel, grid, block, shared, __VA_ARGS__))
