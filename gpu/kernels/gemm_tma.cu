/* gemm_tma.cu -- launches the kernels of gemm_tma.cuh; compiled for sm_90a and nothing else. */
#include "gemm_tma.cuh"

#if !GPU_ON_HOST
#include <cudaTypedefs.h>
#endif

/* ---- tensors ---- */

#if !GPU_ON_HOST

/* cuTensorMapEncodeTiled, of the driver, which is not linked; NULL: it has none. */
static PFN_cuTensorMapEncodeTiled_v12000 encoder(void)
{
    void *p = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault,
                                                           &found);
    return e == cudaSuccess && found == cudaDriverEntryPointSuccess
               ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(p)
               : nullptr;
}

static int gpu_tensor_set(gpu_tensor *t, const void *at, size_t bytes, const size_t elements[3], const size_t apart[3],
                          const unsigned box[2])
{
    static const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
    const cuuint64_t dims[3] = {elements[0], elements[1], elements[2]}, strides[2] = {apart[1], apart[2]};
    const cuuint32_t boxes[3] = {box[0], box[1], 1}, ones[3] = {1, 1, 1};
    return encode && encode(t, bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 3,
                            const_cast<void *>(at), dims, strides, boxes, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                            CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS
               ? 0
               : -1;
}

#endif

/* The tensor of an operand, whose boxes have `lines` lines of 128 bytes of the depth, or 64 depths of 64 lines. */
static int tensor_of(gpu_tensor *t, const gpu_lines &x, size_t depth, size_t matrices, unsigned lines)
{
    const size_t bytes = size_t(1) << x.shift, next = x.stride << x.shift;
    const size_t elements[3] = {x.along ? depth : x.lines, x.along ? x.lines : depth, x.apart ? matrices : 1};
    const size_t apart[3] = {bytes, next, x.apart ? x.apart : next};
    const unsigned box[2] = {static_cast<unsigned>(WG_BYTES >> x.shift), x.along ? lines : 64};
    return gpu_tensor_set(t, x.at, bytes, elements, apart, box);
}

/* ---- launches ---- */

template <int TYPES, int ALONG_A, int ALONG_B, int SUMS>
static cudaError_t launch(const gpu_formats &f, const gpu_job &j, size_t stacks, int processors, cudaStream_t stream)
{
    typedef tma_shape<SUMS> shape;
    gpu_tensor a, b;
    if (tensor_of(&a, j.a, j.depth, stacks, TMA_LINES) != 0 ||
        tensor_of(&b, j.b, j.depth, (stacks + j.shared - 1) / j.shared, shape::COLUMNS / TMA_CLUSTER) != 0)
        return cudaErrorInvalidValue;
    const cudaError_t e = cudaFuncSetAttribute(gemm_tma_kernel<TYPES, ALONG_A, ALONG_B, SUMS>,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize, shape::ALL);
    if (e != cudaSuccess)
        return e;
    const unsigned most = processors < TMA_CLUSTER ? 1 : unsigned(processors) / TMA_CLUSTER;
    const unsigned wanted = (j.blocks + shape::RINGS - 1) / shape::RINGS;
    GPU_LAUNCH_CLUSTERS(stream, TMA_CLUSTER, (gemm_tma_kernel<TYPES, ALONG_A, ALONG_B, SUMS>),
                        TMA_CLUSTER * (wanted < most ? wanted : most), TMA_THREADS, shape::ALL, f, j, a, b);
    return cudaGetLastError();
}

typedef cudaError_t launcher(const gpu_formats &f, const gpu_job &j, size_t stacks, int processors,
                             cudaStream_t stream);

/* By types; sixteen bits: by whether the depth is contiguous in a and b, eight: by what becomes of sums. */
struct of_types {
    launcher *sixteen[2][2], *eight[3];
};

#define SIXTEEN(types)                                                              \
    {                                                                               \
        {{launch<types, 0, 0, GPU_SUMS_KEPT>, launch<types, 0, 1, GPU_SUMS_KEPT>},  \
         {launch<types, 1, 0, GPU_SUMS_KEPT>, launch<types, 1, 1, GPU_SUMS_KEPT>}}, \
        {                                                                           \
        }                                                                           \
    }
#define EIGHT(types)                                                                    \
    {                                                                                   \
        {},                                                                             \
        {                                                                               \
            launch<types, 1, 1, GPU_SUMS_KEPT>, launch<types, 1, 1, GPU_SUMS_PROMOTED>, \
                launch<types, 1, 1, GPU_SUMS_FACTORED>                                  \
        }                                                                               \
    }

static const of_types launchers[GPU_TYPES_COUNT] = {
    SIXTEEN(GPU_TYPES_F16),     SIXTEEN(GPU_TYPES_BF16),   {}, EIGHT(GPU_TYPES_E4M3_E4M3), EIGHT(GPU_TYPES_E4M3_E5M2),
    EIGHT(GPU_TYPES_E5M2_E4M3), EIGHT(GPU_TYPES_E5M2_E5M2)};

cudaError_t gpu_gemm_tma_launch(const gpu_formats *f, const gpu_job *j, int types, size_t stacks, gpu_sums sums,
                                cudaStream_t stream)
{
    int device, processors;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (e != cudaSuccess)
        return e;
    launcher *const l = j->a.shift ? launchers[types].sixteen[j->a.along][j->b.along] : launchers[types].eight[sums];
    return l ? l(*f, *j, stacks, processors, stream) : cudaErrorInvalidValue;
}
