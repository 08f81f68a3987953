/* tally.cuh -- what kernels count: mismatches, digests, the first mismatch. */
#pragma once

#include "cases.h"
#include "../../../lib/digest/scalar.h"
#include "../../gpu.h"
#include "../../kernels/cuda.cuh"
#include "reference.h"

typedef unsigned long long gpu_word; /* what atomics take */

/* In device memory, zero at first but for `first`, which is all ones. */
struct gpu_tally {
    gpu_word mismatches, first, digest_all, digest_sample, digest_large;
    unsigned kept; /* may grow beyond GPU_KEPT */
    uint64_t kept_index[GPU_KEPT];
    uint32_t kept_output[GPU_KEPT];
};

/* The outputs of one launch: indices first to end - 1. `out`, if not NULL, receives the outputs;
 * output `first` is out[0]. */
struct gpu_span {
    uint64_t first, end, sample_step, large_step;
    uint32_t *out;
};

/* What one thread has seen. */
struct gpu_local {
    gpu_tally *tally;
    gpu_word mismatches, first, all, sample, large;

    __device__ explicit gpu_local(gpu_tally *to) : tally(to), mismatches(0), first(~0ull), all(0), sample(0), large(0)
    {
    }

    /* A thread offers its first few mismatches. */
    __device__ void keep(uint64_t index, uint64_t hardware)
    {
        if (mismatches >= 4)
            return;
        const unsigned n = atomicAdd(&tally->kept, 1u);
        if (n < GPU_KEPT) {
            tally->kept_index[n] = index;
            tally->kept_output[n] = (uint32_t)hardware;
        }
    }

    __device__ void add(const gpu_span &span, uint64_t index, uint64_t hardware, uint64_t reference)
    {
        const uint64_t mix = mpsim_mix(index, hardware);
        all += mix;
        if (index % span.sample_step == 0)
            sample += mix;
        if (index % span.large_step == 0)
            large += mix;
        if (hardware != reference) {
            keep(index, hardware);
            mismatches++;
            first = index < first ? index : first;
        }
        if (span.out)
            span.out[index - span.first] = (uint32_t)hardware;
    }

    __device__ void give() const
    {
        atomicAdd(&tally->digest_all, all);
        atomicAdd(&tally->digest_sample, sample);
        atomicAdd(&tally->digest_large, large);
        if (mismatches) {
            atomicAdd(&tally->mismatches, mismatches);
            atomicMin(&tally->first, first);
        }
    }
};

/* The launches, each asynchronous on the default stream. They return the error of the launch. */
cudaError_t gpu_convert_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_cvt_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_cvt_next_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_reduce_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_arith_launch(const gpu_scalar *s, const gpu_span *span, gpu_tally *tally);
/* One round of the sums of an order: sums[i], uneven[i] (see order.cu); both on the device. */
struct gpu_order_plan;
cudaError_t gpu_order_launch(const gpu_order_plan *p, uint32_t *sums, uint32_t *uneven);
/* Spans of dot products hold whole tiles. `swap`: see wgmma.cu. */
cudaError_t gpu_mma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_wgmma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally, int swap);
cudaError_t gpu_wgmma_sparse_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_dmma_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_mma_variant_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally);
cudaError_t gpu_variant_launch(const gpu_dots *j, const gpu_span *span, gpu_tally *tally, int swap);

/* The architecture that the running code of the kernels was compiled for (80, 90), or -1 if there
 * is none for this device. */
int gpu_compiled_for(void);
int gpu_wgmma_compiled(void);
int gpu_cvt_next_compiled(void);

enum { GPU_BLOCKS = 2048, GPU_THREADS = 128 };
