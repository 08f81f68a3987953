/* gemm_wgmma.cu -- launches the kernels of gemm_wgmma.cuh; compiled for sm_90a and nothing else. */
#include "gemm_wgmma.cuh"

template <int TYPES, int N, int PROMOTE>
static cudaError_t launch(const gpu_job *j)
{
    const int shared = wg_shared_bytes(N);
    const cudaError_t e = cudaFuncSetAttribute(
        gemm_wgmma_kernel<TYPES, N, PROMOTE>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess)
        return e;
    GPU_LAUNCH((gemm_wgmma_kernel<TYPES, N, PROMOTE>), j->blocks, WG_THREADS, shared,
               *j);
    return cudaGetLastError();
}

typedef cudaError_t launcher(const gpu_job *j);

/* Tiles of 128, of 256, and of 128 with sums that leave the tensor core. */
static launcher *const launchers[GPU_TYPES_COUNT][3] = {
    {launch<GPU_TYPES_F16, 128, 0>, launch<GPU_TYPES_F16, 256, 0>, nullptr},
    {launch<GPU_TYPES_BF16, 128, 0>, launch<GPU_TYPES_BF16, 256, 0>, nullptr},
    {nullptr, nullptr, nullptr},
    {launch<GPU_TYPES_E4M3_E4M3, 128, 0>, launch<GPU_TYPES_E4M3_E4M3, 256, 0>,
     launch<GPU_TYPES_E4M3_E4M3, 128, 1>},
    {launch<GPU_TYPES_E4M3_E5M2, 128, 0>, launch<GPU_TYPES_E4M3_E5M2, 256, 0>,
     launch<GPU_TYPES_E4M3_E5M2, 128, 1>},
    {launch<GPU_TYPES_E5M2_E4M3, 128, 0>, launch<GPU_TYPES_E5M2_E4M3, 256, 0>,
     launch<GPU_TYPES_E5M2_E4M3, 128, 1>},
    {launch<GPU_TYPES_E5M2_E5M2, 128, 0>, launch<GPU_TYPES_E5M2_E5M2, 256, 0>,
     launch<GPU_TYPES_E5M2_E5M2, 128, 1>},
};

cudaError_t gpu_gemm_wgmma_launch(const gpu_job *j, int types, int wide, int promote)
{
    launcher *const l = launchers[types][promote ? 2 : wide ? 1 : 0];
    return l ? l(j) : cudaErrorInvalidValue;
}
