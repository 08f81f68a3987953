/* call.cuh -- what the operations of libmpsim-cuda share: errors, the workspace, launches (mpsim/cudacall.h). */
#pragma once

#include "../include/mpsim/cudacall.h"

#include "../kernels/cuda.cuh"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

namespace library
{

static inline cudaStream_t stream_of(const mpsim_cuda_call *call)
{
    return static_cast<cudaStream_t>(call->stream);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static mpsim_status
refuse(const mpsim_cuda_call *call, mpsim_status status, const char *message, ...)
{
    va_list arguments;
    va_start(arguments, message);
    if (call && call->why && call->why_size)
        vsnprintf(call->why, call->why_size, message, arguments);
    va_end(arguments);
    return status;
}

/* MPSIM_OK if the workspace has `bytes` bytes for `operation`. */
static inline mpsim_status has_room(const mpsim_cuda_call *call, const char *operation, size_t bytes)
{
    if (bytes == 0)
        return MPSIM_OK;
    if (!call->room || call->bytes < bytes)
        return refuse(call, MPSIM_ENOMEM, "%s: expected a workspace of %zu bytes, found %zu", operation, bytes,
                      call->room ? call->bytes : size_t(0));
    if (reinterpret_cast<uintptr_t>(call->room) % MPSIM_CUDA_ALIGNMENT)
        return refuse(call, MPSIM_EINVAL, "%s: expected a workspace aligned to %d bytes", operation,
                      int(MPSIM_CUDA_ALIGNMENT));
    return MPSIM_OK;
}

/* The status of the launches and asynchronous calls so far. */
static inline mpsim_status launched(const mpsim_cuda_call *call, const char *operation)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? MPSIM_OK : refuse(call, MPSIM_EIO, "%s: %.200s", operation, cudaGetErrorString(e));
}

/* Hands out parts of a workspace, or with `at` NULL only counts their bytes. */
struct room {
    unsigned char *at;
    size_t used;
    explicit room(void *from) : at(static_cast<unsigned char *>(from)), used(0)
    {
    }
    template <class T>
    T *take(size_t n)
    {
        unsigned char *const p = at ? at + used : nullptr;
        used += (n * sizeof(T) + MPSIM_CUDA_ALIGNMENT - 1) / MPSIM_CUDA_ALIGNMENT * MPSIM_CUDA_ALIGNMENT;
        return reinterpret_cast<T *>(p);
    }
};

} // namespace library
