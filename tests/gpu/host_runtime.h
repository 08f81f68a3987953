/* host_runtime.h -- the functions of the CUDA runtime that training uses, on a CPU: see tests/gpu/host.h.
 */
#pragma once

#include "host_fibers.h"

enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
struct gpu_host_stream {
    cudaStreamCaptureStatus status;
};
typedef gpu_host_stream *cudaStream_t;
typedef struct gpu_host_event {
    double ms;
} * cudaEvent_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount;
};

/* What tests set, and what they see of calls. */
struct gpu_host_driver {
    int devices, device;          /* how many there are; the thread's                                    */
    size_t shared;                /* that a block may have                                               */
    cudaError_t query;            /* what cudaEventQuery finds                                           */
    cudaError_t last;             /* what cudaGetLastError says once                                     */
    cudaStreamCaptureMode mode;   /* the thread's                                                        */
    gpu_host_stream *capturing;   /* the stream that captures a graph; NULL: none                        */
    int broken;                   /* calls that have ended its capture, or would be part of the graph    */
    uint64_t waits_on_the_stream; /* cudaStreamWaitEvent                                                */
    int anywhere;                 /* all memory of the process is the device's                           */
    int processors;               /* multiprocessors                                                     */
};
inline gpu_host_driver gpu_host_driver_now = {
    1, 0, 232448, cudaSuccess, cudaSuccess, cudaStreamCaptureModeGlobal, nullptr, 0, 0, 0, 1};

/* A call that ends the capture of a graph by any stream, but in the relaxed mode. */
static inline cudaError_t gpu_host_unsafe()
{
    gpu_host_driver &now = gpu_host_driver_now;
    if (!now.capturing || now.mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    now.broken++;
    return cudaErrorStreamCaptureUnsupported;
}

/* A call on a stream: as part of a graph, or on the default stream beside one, it is not done. */
static inline cudaError_t gpu_host_on_stream(cudaStream_t stream)
{
    gpu_host_driver &now = gpu_host_driver_now;
    if (!now.capturing || (stream && stream != now.capturing))
        return cudaSuccess;
    now.broken++;
    return stream ? cudaSuccess : cudaErrorStreamCaptureImplicit;
}

static inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    const cudaStreamCaptureMode before = gpu_host_driver_now.mode;
    gpu_host_driver_now.mode = *mode;
    *mode = before;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    const gpu_host_driver &now = gpu_host_driver_now;
    *status = stream && stream == now.capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return !stream && now.capturing ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t, unsigned)
{
    gpu_host_driver_now.waits_on_the_stream++;
    return gpu_host_on_stream(stream);
}

static inline cudaError_t cudaGetDeviceCount(int *n)
{
    *n = gpu_host_driver_now.devices;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device)
{
    *device = gpu_host_driver_now.device;
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= gpu_host_driver_now.devices)
        return cudaErrorInvalidDevice;
    gpu_host_driver_now.device = device;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, device ? "CPU executor, device %d" : "CPU executor", device);
    p->totalGlobalMem = size_t(1) << 32;
    p->sharedMemPerBlockOptin = gpu_host_driver_now.shared;
    p->major = 9;
    p->multiProcessorCount = 1;
    return cudaSuccess;
}

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = gpu_host_driver_now.processors;
    return cudaSuccess;
}

static inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 0;
    return cudaSuccess;
}

template <class T>
static inline cudaError_t cudaMalloc(T **p, size_t bytes)
{
    if (gpu_host.error != cudaSuccess || gpu_host_unsafe() != cudaSuccess)
        return gpu_host.error != cudaSuccess ? gpu_host.error : cudaErrorStreamCaptureUnsupported;
    unsigned char *base =
        static_cast<unsigned char *>(aligned_alloc(256, (bytes + 2 * GPU_HOST_GUARD + 192 + 255) / 256 * 256));
    if (!base)
        return cudaErrorMemoryAllocation;
    base += 256 - GPU_HOST_GUARD; /* the memory itself is aligned to 256 */
    memset(base, 0xff, bytes + 2 * GPU_HOST_GUARD);
    gpu_host.memory.push_back(gpu_host_memory{base, bytes, gpu_host_driver_now.device});
    *p = reinterpret_cast<T *>(base + GPU_HOST_GUARD);
    return cudaSuccess;
}

static inline cudaError_t cudaFree(void *p)
{
    if (!p)
        return cudaSuccess;
    for (size_t i = 0; i < gpu_host.memory.size(); i++)
        if (gpu_host.memory[i].base + GPU_HOST_GUARD == p) {
            gpu_host_check();
            free(gpu_host.memory[i].base - (256 - GPU_HOST_GUARD));
            gpu_host.memory[i] = gpu_host.memory.back();
            gpu_host.memory.pop_back();
            return gpu_host.error;
        }
    gpu_host_fail(cudaErrorInvalidValue, "cudaFree of what is no allocation");
    return cudaErrorInvalidValue;
}

/* The allocation of bytes; NULL: they are in none. */
static inline const gpu_host_memory *gpu_host_allocation(const void *p, size_t bytes)
{
    const unsigned char *q = static_cast<const unsigned char *>(p);
    for (const gpu_host_memory &m : gpu_host.memory)
        if (q >= m.base + GPU_HOST_GUARD && q + bytes <= m.base + GPU_HOST_GUARD + m.bytes)
            return &m;
    return nullptr;
}

/* Bytes that lie in no allocation, on the side that is the device's, are an error. */
static inline int gpu_host_is_device(const void *p, size_t bytes)
{
    return gpu_host_allocation(p, bytes) || bytes == 0 || gpu_host_driver_now.anywhere;
}

enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
};
static inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p)
{
    const gpu_host_memory *const m = gpu_host_allocation(p, 1);
    a->device = m ? m->device : 0;
    a->type = m ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const int to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const int from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if ((to_device && !gpu_host_is_device(to, bytes)) || (from_device && !gpu_host_is_device(from, bytes))) {
        gpu_host_fail(cudaErrorInvalidValue, "cudaMemcpy beside the memory of the device");
        return cudaErrorInvalidValue;
    }
    if (bytes)
        memmove(to, from, bytes);
    gpu_host.waits++;
    return gpu_host.error;
}

/* Copies to the device from here do not wait. */
inline std::vector<gpu_host_memory> gpu_host_pinned;

template <class T>
static inline cudaError_t cudaMallocHost(T **p, size_t bytes)
{
    if (gpu_host_unsafe() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    *p = static_cast<T *>(malloc(bytes));
    gpu_host_pinned.push_back(gpu_host_memory{reinterpret_cast<unsigned char *>(*p), bytes, 0});
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFreeHost(void *p)
{
    for (gpu_host_memory &m : gpu_host_pinned)
        if (m.base == p)
            m.bytes = 0;
    free(p);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream = nullptr)
{
    if (gpu_host_on_stream(stream) != cudaSuccess)
        return cudaErrorStreamCaptureImplicit;
    const unsigned char *q = static_cast<const unsigned char *>(from);
    for (const gpu_host_memory &m : gpu_host_pinned)
        if (kind == cudaMemcpyHostToDevice && q >= m.base && q + bytes <= m.base + m.bytes)
            gpu_host.waits--;
    return cudaMemcpy(to, from, bytes, kind);
}

static inline cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    if (!gpu_host_is_device(to, bytes)) {
        gpu_host_fail(cudaErrorInvalidValue, "cudaMemset beside the memory of the device");
        return cudaErrorInvalidValue;
    }
    if (bytes)
        memset(to, value, bytes);
    return gpu_host.error;
}

static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = nullptr)
{
    const cudaError_t e = gpu_host_on_stream(stream);
    return e == cudaSuccess ? cudaMemset(to, value, bytes) : e;
}

/* The error that stands stays, so that no test passes behind it: gpu_host_clear. */
static inline cudaError_t cudaGetLastError()
{
    const cudaError_t last = gpu_host_driver_now.last;
    gpu_host_driver_now.last = cudaSuccess;
    return last != cudaSuccess ? last : gpu_host.error;
}
static inline cudaError_t cudaDeviceSynchronize()
{
    gpu_host.waits++;
    return gpu_host_check();
}
static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : gpu_host.text;
}
static inline void gpu_host_clear()
{
    gpu_host.error = cudaSuccess;
    gpu_host.text[0] = 0;
}

static inline cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    *e = static_cast<cudaEvent_t>(calloc(1, sizeof **e));
    return *e ? cudaSuccess : cudaErrorMemoryAllocation;
}
enum { cudaStreamNonBlocking = 1 };
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    *s = nullptr;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}

enum { cudaEventDisableTiming = 2 };
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    return cudaEventCreate(e);
}
static inline cudaError_t cudaEventQuery(cudaEvent_t)
{
    const cudaError_t e = gpu_host_unsafe();
    gpu_host_driver_now.last = e == cudaSuccess ? gpu_host_driver_now.query : e;
    return gpu_host_driver_now.last;
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return gpu_host_unsafe();
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 0;
    return cudaSuccess;
}
struct cudaFuncAttributes {
    int binaryVersion, ptxVersion;
};
template <class K>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, K)
{
    a->binaryVersion = a->ptxVersion = 90;
    return cudaSuccess;
}
template <class K>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, K, int threads, size_t)
{
    *n = 2048 / threads;
    return cudaSuccess;
}
template <class K>
static inline cudaError_t cudaFuncSetAttribute(K, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
