/* functions.cu -- the device's part of functions.h: kernels that ask the unit and compute nothing else in floating point. */
#include "unit.cuh"

#include "../validation/checks/open.cuh"
#include "cases.h"
#include "exact.h"

#include <stdio.h>

enum { GPU_FUNCTION_THREADS = 128, GPU_FUNCTION_BLOCKS = 16 };
typedef unsigned long long gpu_word; /* what atomics take */

/* ---- digests ---- */

struct gpu_digests {
    gpu_word all, sample;
};

/* Results of operand or pair number i, which a thread adds to its own sums. */
struct gpu_sums {
    gpu_word all, sample;

    __device__ void add(uint64_t index, uint32_t result, bool is_sample)
    {
        const gpu_word mix = mpsim_mix(index, result);
        all += mix;
        sample += is_sample ? mix : 0;
    }
    __device__ void give(gpu_digests *to) const
    {
        atomicAdd(&to->all, all);
        atomicAdd(&to->sample, sample);
    }
};

/* Binade blockIdx.y; of 16 bits the only one, of pairs the kind. */
template <int operation>
GPU_KERNEL void __launch_bounds__(GPU_FUNCTION_THREADS)
    digests_kernel(gpu_shape shape, int shift, uint32_t step, uint32_t count, gpu_digests *to)
{
    gpu_sums sums = {0, 0}, upper = {0, 0};
    const uint32_t row = blockIdx.y, stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        if (shape == GPU_PACKED) {
            const uint32_t high = gpu_function_partner(i), y = gpu_unit<operation>(high << 16 | i, 0);
            sums.add(i, y & 0xffff, true);
            upper.add(high, y >> 16, true);
        } else if (shape == GPU_BINARY) {
            uint32_t a, b;
            gpu_function_pair((int)row, shift, i, &a, &b);
            sums.add(i, gpu_unit<operation>(a, b), i % step == 0);
        } else {
            const uint32_t x = shape == GPU_HALF ? i : row << 23 | i << shift;
            sums.add(x, gpu_unit<operation>(x, 0), shape == GPU_HALF || i % step == 0);
        }
    }
    sums.give(to + row);
    if (shape == GPU_PACKED)
        upper.give(to + 1);
}

/* ---- distances from the correctly rounded results ---- */

struct gpu_apartness {
    gpu_word equal, one, two, largest;
};

template <int function>
GPU_KERNEL void __launch_bounds__(GPU_FUNCTION_THREADS) distances_kernel(int shift, uint32_t count, gpu_apartness *to)
{
    gpu_word near[3] = {0, 0, 0}, largest = 0;
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const uint32_t x = blockIdx.y << 23 | i << shift;
        int open = 0;
        const gpu_word apart = gpu_codes_apart(gpu_unit<function>(x, 0), gpu_exact((gpu_function)function, x, &open),
                                               32);
        near[0] += apart == 0;
        near[1] += apart == 1;
        near[2] += apart == 2;
        largest = apart > largest ? apart : largest;
    }
    atomicAdd(&to[blockIdx.y].equal, near[0]);
    atomicAdd(&to[blockIdx.y].one, near[1]);
    atomicAdd(&to[blockIdx.y].two, near[2]);
    atomicMax(&to[blockIdx.y].largest, largest);
}

/* ---- all results of a table ---- */

template <int operation>
GPU_KERNEL void __launch_bounds__(GPU_FUNCTION_THREADS)
    values_kernel(uint32_t first, int shift, uint32_t count, uint32_t *results, uint32_t *exact)
{
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const uint32_t x = first + (i << shift);
        int open = 0;
        results[i] = gpu_unit<operation>(x, 0);
        exact[i] = operation < GPU_FUNCTIONS ? gpu_exact((gpu_function)operation, x, &open) : 0;
    }
}

/* ---- launches ---- */

static unsigned blocks_of(uint32_t count)
{
    const unsigned whole = (count + GPU_FUNCTION_THREADS - 1) / GPU_FUNCTION_THREADS;
    return whole < GPU_FUNCTION_BLOCKS ? whole : (unsigned)GPU_FUNCTION_BLOCKS;
}

template <int operation>
static void launch_digests(int wanted, gpu_shape shape, const gpu_extent *e, gpu_digests *to)
{
    if (wanted != operation) {
        if constexpr (operation + 1 < GPU_OPERATIONS)
            launch_digests<operation + 1>(wanted, shape, e, to);
        return;
    }
    const uint32_t count = shape == GPU_UNARY ? gpu_extent_count(e) : shape == GPU_BINARY ? e->pairs : 1 << 16;
    const unsigned rows = shape == GPU_UNARY ? GPU_BINADES : shape == GPU_BINARY ? 2 : 1;
    const unsigned blocks = shape == GPU_BINARY ? 64 * blocks_of(e->pairs) : blocks_of(count);
    GPU_LAUNCH(digests_kernel<operation>, dim3(blocks, rows), GPU_FUNCTION_THREADS, 0, shape, e->shift, e->sample_step,
               count, to);
}

template <int function>
static void launch_distances(int wanted, const gpu_extent *e, gpu_apartness *to)
{
    if (wanted != function) {
        if constexpr (function + 1 < GPU_FUNCTIONS)
            launch_distances<function + 1>(wanted, e, to);
        return;
    }
    const uint32_t count = gpu_extent_count(e);
    GPU_LAUNCH(distances_kernel<function>, dim3(blocks_of(count), GPU_BINADES), GPU_FUNCTION_THREADS, 0, e->shift,
               count, to);
}

template <int operation>
static void launch_values(const gpu_table *t, int shift, uint32_t count, uint32_t *results, uint32_t *exact)
{
    if (t->operation != operation) {
        if constexpr (operation + 1 < GPU_OPERATIONS)
            launch_values<operation + 1>(t, shift, count, results, exact);
        return;
    }
    GPU_LAUNCH(values_kernel<operation>, 64 * blocks_of(count), GPU_FUNCTION_THREADS, 0, t->first, shift, count,
               results, exact);
}

/* ---- the C interface ---- */

/* Memory of the device, zeros at first, freed at the end of its scope. */
template <class T>
struct gpu_lent {
    T *at;
    size_t count;
    cudaError_t error;

    explicit gpu_lent(size_t n) : at(nullptr), count(n), error(cudaMalloc(&at, n * sizeof(T)))
    {
        if (error == cudaSuccess)
            error = cudaMemset(at, 0, n * sizeof(T));
    }
    ~gpu_lent()
    {
        cudaFree(at);
    }
    cudaError_t back(void *to)
    {
        error = cudaGetLastError();
        error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
        return error == cudaSuccess ? cudaMemcpy(to, at, count * sizeof(T), cudaMemcpyDeviceToHost) : error;
    }
};

static int told(cudaError_t e, char *why, size_t size)
{
    if (e != cudaSuccess)
        snprintf(why, size, "%s", cudaGetErrorString(e));
    return e == cudaSuccess ? 0 : -1;
}

int gpu_functions_open(gpu_device *d, char *why, size_t size)
{
    if (gpu_open_device(d, why, size))
        return -1;
    cudaFuncAttributes a;
    return told(cudaFuncGetAttributes(&a, values_kernel<0>), why, size);
}

int gpu_functions_digests(int operation, const gpu_extent *e, gpu_binade *to, char *why, size_t size)
{
    gpu_lent<gpu_digests> lent(GPU_BINADES);
    if (lent.error == cudaSuccess)
        launch_digests<0>(operation, gpu_operation_at(operation)->shape, e, lent.at);
    static_assert(sizeof(gpu_digests) == sizeof(gpu_binade), "the same members");
    return told(lent.error == cudaSuccess ? lent.back(to) : lent.error, why, size);
}

int gpu_functions_distances(gpu_function f, const gpu_extent *e, gpu_distance *to, char *why, size_t size)
{
    gpu_lent<gpu_apartness> lent(GPU_BINADES);
    if (lent.error == cudaSuccess)
        launch_distances<0>(f, e, lent.at);
    static_assert(sizeof(gpu_apartness) == sizeof(gpu_distance), "the same members");
    return told(lent.error == cudaSuccess ? lent.back(to) : lent.error, why, size);
}

int gpu_functions_values(const gpu_table *t, const gpu_extent *e, uint32_t *results, uint32_t *exact, char *why,
                         size_t size)
{
    const uint32_t count = gpu_table_count(t, e);
    gpu_lent<uint32_t> lent(count), beside(count);
    cudaError_t error = lent.error == cudaSuccess ? beside.error : lent.error;
    if (error == cudaSuccess) {
        launch_values<0>(t, gpu_operation_at(t->operation)->shape == GPU_HALF ? 0 : e->shift, count, lent.at,
                         beside.at);
        error = lent.back(results);
    }
    return told(error == cudaSuccess ? beside.back(exact) : error, why, size);
}
