/* gemm_wgmma.cu -- launches the kernels of gemm_wgmma.cuh; compiled for sm_90a and nothing else. */
#include "gemm_wgmma.cuh"

template <int TYPES, int N, int SUMS, int START>
static cudaError_t launch(const gpu_formats *f, const gpu_job *j, cudaStream_t stream)
{
    const int shared = wg_shared_bytes(N, SUMS);
    const cudaError_t e = cudaFuncSetAttribute(gemm_wgmma_kernel<TYPES, N, SUMS, START>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess)
        return e;
    GPU_LAUNCH_ON(stream, (gemm_wgmma_kernel<TYPES, N, SUMS, START>), j->blocks, WG_THREADS, shared, *f, *j);
    return cudaGetLastError();
}

typedef cudaError_t launcher(const gpu_formats *f, const gpu_job *j, cudaStream_t stream);

/* By types, then by what becomes of sums: tiles of 128 columns from zero, from what is in d; tiles of 256. */
struct of_types {
    launcher *narrow[3][2], *wide;
};

#define SIXTEEN(types)                                                                  \
    {                                                                                   \
        {{launch<types, 128, GPU_SUMS_KEPT, 0>, launch<types, 128, GPU_SUMS_KEPT, 1>}}, \
            launch<types, 256, GPU_SUMS_KEPT, 0>                                        \
    }
#define EIGHT(types)                                                                           \
    {                                                                                          \
        {{launch<types, 128, GPU_SUMS_KEPT, 0>, launch<types, 128, GPU_SUMS_KEPT, 1>},         \
         {launch<types, 128, GPU_SUMS_PROMOTED, 0>, launch<types, 128, GPU_SUMS_PROMOTED, 1>}, \
         {launch<types, 128, GPU_SUMS_FACTORED, 0>}},                                          \
            launch<types, 256, GPU_SUMS_KEPT, 0>                                               \
    }

static const of_types launchers[GPU_TYPES_COUNT] = {
    SIXTEEN(GPU_TYPES_F16),     SIXTEEN(GPU_TYPES_BF16),   {}, EIGHT(GPU_TYPES_E4M3_E4M3), EIGHT(GPU_TYPES_E4M3_E5M2),
    EIGHT(GPU_TYPES_E5M2_E4M3), EIGHT(GPU_TYPES_E5M2_E5M2)};

cudaError_t gpu_gemm_wgmma_launch(const gpu_formats *f, const gpu_job *j, int types, int wide, gpu_sums sums,
                                  cudaStream_t stream)
{
    const int goes_on = j->out.start == TRAIN_FROM_SUM;
    if (wide && (goes_on || sums != GPU_SUMS_KEPT))
        return cudaErrorInvalidValue;
    launcher *const l = wide ? launchers[types].wide : launchers[types].narrow[sums][goes_on];
    return l ? l(f, j, stream) : cudaErrorInvalidValue;
}
