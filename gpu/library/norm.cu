/* norm.cu -- mpsim_cuda_norm: exact sums of squares in integers (kernels/squares.cuh), rounded on the device. */
#include "../include/mpsim/cudanorm.h"

#include "../kernels/lists.cuh"
#include "call.cuh"

namespace library
{

static const char NORM[] = "mpsim_cuda_norm";

enum { NORM_THREADS = 256 };

GPU_KERNEL void __launch_bounds__(NORM_THREADS) norm_clear_kernel(gpu_squares *sums, size_t n)
{
    GPU_FOR(i, n * GPU_SQUARES_LIMBS)
    {
        sums[i / GPU_SQUARES_LIMBS].limb[i % GPU_SQUARES_LIMBS] = 0;
        if (i % GPU_SQUARES_LIMBS == 0)
            sums[i / GPU_SQUARES_LIMBS].found = 0;
    }
}

GPU_KERNEL void __launch_bounds__(NORM_THREADS)
    norm_round_kernel(GPU_CONSTANT(gpu_format) f, const gpu_squares *sums, float *norms, size_t n)
{
    GPU_FOR(i, n)
    norms[i] = gpu_hold_wide(f, gpu_squares_root(sums[i].limb, sums[i].found));
}

static unsigned norm_blocks(size_t n)
{
    const size_t blocks = (n + NORM_THREADS - 1) / NORM_THREADS;
    return unsigned(blocks < (1u << 16) ? blocks : 1u << 16);
}

static const mpsim_format *norm_format(const mpsim_cuda_array &x)
{
    return x.format ? x.format : mpsim_format_find("binary32");
}

static mpsim_status check_norms(const float *norms, const mpsim_cuda_array *x, size_t n, const mpsim_cuda_call *call)
{
    gpu_format f;
    if (n && (!norms || !x))
        return refuse(call, MPSIM_EINVAL, "%s: norms or the list of arrays is NULL", NORM);
    for (size_t i = 0; i < n; i++) {
        if (x[i].n && !x[i].x)
            return refuse(call, MPSIM_EINVAL, "%s: array %zu is NULL", NORM, i);
        if (gpu_format_set(&f, norm_format(x[i])))
            return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no norms in %s", NORM, x[i].format->name);
    }
    return has_room(call, NORM, mpsim_cuda_norm_room(n));
}

/* Squares of as many arrays as a launch takes. */
static void add_squares(const mpsim_cuda_array *x, size_t n, gpu_squares *sums, cudaStream_t on)
{
    gpu_format binary32;
    gpu_pairs list;
    (void)gpu_format_set(&binary32, mpsim_format_find("binary32"));
    for (size_t i = 0; i < n;) {
        unsigned blocks = 0;
        for (list.n = 0; i < n && list.n < unsigned(gpu_pairs::ROOM); i++)
            if (x[i].n) {
                list.item[list.n] = {NULL, x[i].x, size_t(x[i].n), sums + i};
                list.end[list.n++] = blocks += gpu_list_blocks(size_t(x[i].n));
            }
        if (blocks)
            GPU_LAUNCH_ON(on, squares_kernel, blocks, GPU_LIST_THREADS, 0, binary32, list);
    }
}

/* Neighbours of one format are rounded by one launch. */
static void round_norms(float *norms, const mpsim_cuda_array *x, size_t n, const gpu_squares *sums, cudaStream_t on)
{
    for (size_t i = 0, end; i < n; i = end) {
        gpu_format f;
        (void)gpu_format_set(&f, norm_format(x[i]));
        for (end = i + 1; end < n && mpsim_format_same(norm_format(x[end]), norm_format(x[i])); end++)
            continue;
        GPU_LAUNCH_ON(on, norm_round_kernel, norm_blocks(end - i), NORM_THREADS, 0, f, sums + i, norms + i, end - i);
    }
}

} // namespace library

extern "C" size_t mpsim_cuda_norm_room(size_t n)
{
    library::room r(NULL);
    (void)r.take<gpu_squares>(n);
    return r.used;
}

extern "C" mpsim_status mpsim_cuda_norm(float *norms, const mpsim_cuda_array *x, size_t n, const mpsim_cuda_call *call)
{
    using namespace library;
    if (!call)
        return MPSIM_EINVAL;
    const mpsim_status s = check_norms(norms, x, n, call);
    if (s || n == 0)
        return s;
    gpu_squares *const sums = static_cast<gpu_squares *>(call->room);
    const cudaStream_t on = stream_of(call);
    GPU_LAUNCH_ON(on, norm_clear_kernel, norm_blocks(n * GPU_SQUARES_LIMBS), NORM_THREADS, 0, sums, n);
    add_squares(x, n, sums, on);
    round_norms(norms, x, n, sums, on);
    return launched(call, NORM);
}
