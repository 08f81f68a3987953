/* elements.cuh -- kernels that make an element of one or a few: gather, ReLU, pooling. See lib/include/train/engine.h for what each is to the bit. */
#pragma once

#include "codes.cuh"

enum { GPU_THREADS_ELEMENT = 256 };

template <class T>
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT) gather_kernel(T *y, const T *x, const int32_t *index, size_t n)
{
    GPU_FOR(i, n)
    {
        const int32_t at = index[i];
        y[i] = at < 0 ? T(0) : x[at];
    }
}

GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    relu_kernel(GPU_CONSTANT(gpu_format) f, void *y, const void *x, size_t n)
{
    GPU_FOR(i, n)
    {
        const uint32_t code = gpu_load(f, x, i);
        const float v = gpu_decode(f, code);
        gpu_store(f, y, i, v > 0 || v != v ? code : 0);
    }
}

/* of: the format of dx and dy */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    relu_backward_kernel(GPU_CONSTANT(gpu_format) of, void *dx, const void *dy, GPU_CONSTANT(gpu_format) f,
                         const void *y, size_t n)
{
    GPU_FOR(i, n)
    gpu_store(of, dx, i, gpu_value(f, y, i) > 0 ? gpu_load(of, dy, i) : 0);
}

/* ---- pooling ---- */

struct gpu_pool {
    uint32_t height, width, channels, size; /* of the input */
};

/* The element of the window at (row, column) of image `image` that counts: its index in x. */
static __device__ __forceinline__ size_t pool_best(const gpu_format &f, const void *x, const gpu_pool &p, size_t image,
                                                   uint32_t row, uint32_t column, uint32_t channel)
{
    size_t best = 0;
    float most = 0;
    for (uint32_t i = 0; i < p.size; i++)
        for (uint32_t j = 0; j < p.size; j++) {
            const size_t pixel = (image * p.height + row * p.size + i) * p.width + column * p.size + j;
            const size_t at = pixel * p.channels + channel;
            const float v = gpu_value(f, x, at);
            if ((i == 0 && j == 0) || (most == most && (v > most || v != v))) {
                most = v;
                best = at;
            }
        }
    return best;
}

GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    maxpool_kernel(GPU_CONSTANT(gpu_format) f, void *y, const void *x, GPU_CONSTANT(gpu_pool) p, size_t n)
{
    const uint32_t height = p.height / p.size, width = p.width / p.size;
    GPU_FOR(i, n)
    {
        const uint32_t channel = (uint32_t)(i % p.channels);
        const size_t pixel = i / p.channels;
        const uint32_t column = (uint32_t)(pixel % width);
        const uint32_t row = (uint32_t)(pixel / width % height);
        const size_t at = pool_best(f, x, p, pixel / width / height, row, column, channel);
        gpu_store(f, y, i, gpu_load(f, x, at));
    }
}

/* n elements of dx; of: the format of dx and dy */
GPU_KERNEL void __launch_bounds__(GPU_THREADS_ELEMENT)
    maxpool_backward_kernel(GPU_CONSTANT(gpu_format) of, void *dx, const void *dy, GPU_CONSTANT(gpu_format) f,
                            const void *x, GPU_CONSTANT(gpu_pool) p, size_t n)
{
    const uint32_t height = p.height / p.size, width = p.width / p.size;
    GPU_FOR(i, n)
    {
        const uint32_t channel = (uint32_t)(i % p.channels);
        const size_t pixel = i / p.channels, image = pixel / p.width / p.height;
        const uint32_t column = (uint32_t)(pixel % p.width) / p.size;
        const uint32_t row = (uint32_t)(pixel / p.width % p.height) / p.size;
        uint32_t code = 0;
        if (row < height && column < width && pool_best(f, x, p, image, row, column, channel) == i)
            code = gpu_load(of, dy, ((image * height + row) * width + column) * p.channels + channel);
        gpu_store(of, dx, i, code);
    }
}
