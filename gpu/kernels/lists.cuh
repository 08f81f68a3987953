/* lists.cuh -- kernels that work on many tensors at once: casts, gradients, sums of squares. A launch takes
 * tensors of one format, as many as its parameters hold, and gives each blocks of its own. See
 * lib/include/train/engine.h for what each is to the bit. */
#pragma once

#include "codes.cuh"
#include "list.cuh"
#include "squares.cuh"

struct gpu_pair {
    void *y;
    const void *x;
    size_t n;
    void *result; /* of the kernel's kind, or NULL */
};

typedef gpu_list<gpu_pair, 96> gpu_pairs;
static_assert(sizeof(gpu_pairs) + 2 * sizeof(gpu_format) + 64 <= GPU_LIST_PARAMETERS, "too many");

/* y = of(x) for all elements of item k, of codes: in fours where the tensors are aligned so. */
template <class List, class F>
static __device__ __forceinline__ void gpu_map(const gpu_format &to, const gpu_format &from, const List &list,
                                               unsigned k, const gpu_pair &p, F of)
{
    const size_t fours = gpu_in_fours(to, p.y) && gpu_in_fours(from, p.x) ? p.n / 4 : 0;
    GPU_FOR_ITEM(q, list, k, fours)
    {
        uint32_t code[4];
        gpu_load_four(from, p.x, q, code);
        GPU_UNROLL
        for (int t = 0; t < 4; t++)
            code[t] = of(gpu_decode(from, code[t]));
        gpu_store_four(to, p.y, q, code);
    }
    GPU_FOR_ITEM(i, list, k, p.n - 4 * fours)
    gpu_store(to, p.y, 4 * fours + i, of(gpu_value(from, p.x, 4 * fours + i)));
}

/* result: gpu_word[GPU_COUNTERS] */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    cast_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from, GPU_CONSTANT(gpu_pairs) list, int mode)
{
    gpu_counter c;
    const unsigned k = gpu_list_item(list);
    const gpu_pair p = list.item[k];
    gpu_map(to, from, list, k, p, [&](float v) {
        const gpu_code code = gpu_encode(to, mode, v);
        c.add(to, v, code);
        return code.code;
    });
    c.give(static_cast<gpu_word *>(p.result));
}

/* y = x * factor, or x / factor. result: unsigned, MPSIM_FOUND_INPUT = 1, _OUTPUT = 2. */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    unscale_kernel(GPU_CONSTANT(gpu_format) to, GPU_CONSTANT(gpu_format) from, GPU_CONSTANT(gpu_pairs) list,
                   float factor, int divide)
{
    unsigned seen = 0;
    const unsigned k = gpu_list_item(list);
    const gpu_pair p = list.item[k];
    gpu_map(to, from, list, k, p, [&](float v) {
        const float w = divide ? __fdiv_rn(v, factor) : __fmul_rn(v, factor);
        const gpu_code code = gpu_encode(to, GPU_NEAREST, w);
        seen |= (gpu_is_finite(v) ? 0u : 1u) | (gpu_is_nonfinite_code(to, code.code) ? 2u : 0u);
        return code.code;
    });
    if (p.result && seen)
        atomicOr(static_cast<unsigned *>(p.result), seen);
}

/* result: gpu_squares */
GPU_KERNEL void __launch_bounds__(GPU_LIST_THREADS)
    squares_kernel(GPU_CONSTANT(gpu_format) f, GPU_CONSTANT(gpu_pairs) list)
{
    GPU_SHARED(gpu_word, limb, [GPU_SQUARES_LIMBS + 2]);
    gpu_square_run run = {0, 0, 0, 0};
    unsigned found = 0;
    const unsigned k = gpu_list_item(list);
    const gpu_pair p = list.item[k];
    gpu_squares *const sum = static_cast<gpu_squares *>(p.result);
    if (threadIdx.x < GPU_SQUARES_LIMBS + 2)
        limb[threadIdx.x] = 0;
    __syncthreads();
    GPU_FOR_ITEM(i, list, k, p.n)
    gpu_squares_add(limb, &run, &found, gpu_value(f, p.x, i));
    gpu_squares_give(limb, run);
    __syncthreads();
    if (threadIdx.x < GPU_SQUARES_LIMBS && limb[threadIdx.x])
        atomicAdd(&sum->limb[threadIdx.x], limb[threadIdx.x]);
    if (found)
        atomicOr(&sum->found, found);
}
