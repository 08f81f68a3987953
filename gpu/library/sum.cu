/* sum.cu -- mpsim_cuda_sum: arguments are checked here, threads are given to sums; the kernels are kernels/orders.cuh's. */
#include "../include/mpsim/cudasum.h"

#include "../kernels/orders.cuh"
#include "call.cuh"

namespace library
{

static const char SUM[] = "mpsim_cuda_sum";

/* Blocks that a large device keeps busy. */
enum { SUM_BLOCKS = 264, SUM_LANES_MOST = 1024, SUM_PER_MOST = 32 };

static int valid_lanes(size_t n)
{
    return n >= 1 && n <= SUM_LANES_MOST && (n & (n - 1)) == 0;
}

static mpsim_status sum_format(gpu_format *g, const mpsim_format *f, const char *what, const mpsim_cuda_call *call)
{
    if (gpu_format_set(g, f ? f : mpsim_format_find("binary32")))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no %s in %s", SUM, what, f->name);
    return MPSIM_OK;
}

static mpsim_status set_formats(gpu_lines *l, const mpsim_cuda_summing *how, const mpsim_cuda_lines *x,
                                const mpsim_cuda_call *call)
{
    mpsim_status s = sum_format(&l->from, x->format, "terms", call);
    if (!s)
        s = sum_format(&l->math, how->order == MPSIM_CUDA_SUM_EXACT ? NULL : how->math, "additions", call);
    return s ? s : sum_format(&l->to, how->format, "results", call);
}

static mpsim_status set_lines(gpu_lines *l, const mpsim_cuda_summing *how, void *y, const mpsim_cuda_lines *x,
                              const mpsim_cuda_call *call)
{
    if (!how || !x || !x->format)
        return refuse(call, MPSIM_EINVAL, "%s: no order, no lines or no format is given", SUM);
    if (unsigned(how->order) > MPSIM_CUDA_SUM_EXACT)
        return refuse(call, MPSIM_EINVAL, "%s: order %u is unknown", SUM, unsigned(how->order));
    if (how->order == MPSIM_CUDA_SUM_LANES && !valid_lanes(how->lanes))
        return refuse(call, MPSIM_EINVAL, "%s: expected a power of two from 1 to 1024 as lanes, found %zu", SUM,
                      how->lanes);
    if (how->order == MPSIM_CUDA_SUM_EXACT && how->counted)
        return refuse(call, MPSIM_EINVAL, "%s: an exact sum is not divided", SUM);
    if (x->inner && x->outer > (uint64_t(1) << 31) / x->inner - 1)
        return refuse(call, MPSIM_EINVAL, "%s: 2^31 sums or more", SUM);
    l->sums = x->outer * x->inner;
    if (l->sums && (!y || (x->terms && !x->x)))
        return refuse(call, MPSIM_EINVAL, "%s: x or y is NULL", SUM);
    const mpsim_status s = set_formats(l, how, x, call);
    l->x = x->x;
    l->y = y;
    l->inner = x->inner;
    l->terms = x->terms;
    l->outer_stride = x->outer_stride;
    l->inner_stride = x->inner_stride;
    l->stride = x->stride;
    return s;
}

/* ---- lanes ---- */

/* Sums beside one another are read by neighbours, at least eight by eight; others by all threads of a sum. PER: lanes of a thread. */
static unsigned share_lanes(gpu_lines *l)
{
    const unsigned lanes = l->lanes;
    l->beside = l->inner_stride == 1 && l->stride != 1 && l->inner >= 8;
    unsigned across = l->beside ? 32 : lanes < GPU_ORDER_THREADS ? GPU_ORDER_THREADS / lanes : 1;
    while (l->beside && across > 8 && (l->sums + across - 1) / across < SUM_BLOCKS)
        across /= 2;
    unsigned per = lanes * across > GPU_ORDER_THREADS ? lanes * across / GPU_ORDER_THREADS : 1;
    while (per > SUM_PER_MOST)
        per /= 2, across /= 2;
    if (lanes / per * across < GPU_ORDER_THREADS)
        across = GPU_ORDER_THREADS / (lanes / per);
    l->across = across;
    return per;
}

template <class M, int PER>
static void launch_lanes(cudaStream_t stream, const gpu_lines &l)
{
    GPU_LAUNCH_ON(stream, (lanes_kernel<M, PER>), unsigned((l.sums + l.across - 1) / l.across), GPU_ORDER_THREADS, 0,
                  l);
}

template <class M>
static void sum_lanes(cudaStream_t stream, gpu_lines &l)
{
    switch (share_lanes(&l)) {
    case 1:
        return launch_lanes<M, 1>(stream, l);
    case 2:
        return launch_lanes<M, 2>(stream, l);
    case 4:
        return launch_lanes<M, 4>(stream, l);
    case 8:
        return launch_lanes<M, 8>(stream, l);
    case 16:
        return launch_lanes<M, 16>(stream, l);
    default:
        launch_lanes<M, 32>(stream, l);
    }
}

/* ---- all ---- */

template <class M>
static void sum_by(cudaStream_t stream, mpsim_cuda_sum_order order, gpu_lines &l)
{
    if (order == MPSIM_CUDA_SUM_LANES)
        return sum_lanes<M>(stream, l);
    for (l.part = 1; l.terms > l.part * GPU_ORDER_THREADS;)
        l.part *= 2;
    GPU_LAUNCH_ON(stream, pairwise_kernel<M>, unsigned(l.sums), GPU_ORDER_THREADS, 0, l);
}

static int is_plain(const gpu_lines &l)
{
    return l.math.kind == GPU_BINARY32 && (l.from.kind == GPU_BINARY32 || l.from.convert == GPU_CVT_BF16);
}

} // namespace library

mpsim_status mpsim_cuda_sum(const mpsim_cuda_summing *how, void *y, const mpsim_cuda_lines *x,
                            const mpsim_cuda_call *call)
{
    using namespace library;
    gpu_lines l;
    memset(static_cast<void *>(&l), 0, sizeof l);
    if (!call)
        return MPSIM_EINVAL;
    const mpsim_status s = set_lines(&l, how, y, x, call);
    if (s || l.sums == 0)
        return s;
    l.lanes = unsigned(how->lanes);
    l.divisor = how->counted ? mpsim_math_round(&l.math.math, float(how->counted)) : 0;
    if (how->order == MPSIM_CUDA_SUM_EXACT)
        GPU_LAUNCH_ON(stream_of(call), exact_kernel, unsigned(l.sums), GPU_ORDER_THREADS, 0, l);
    else if (is_plain(l))
        sum_by<gpu_order_plain>(stream_of(call), how->order, l);
    else
        sum_by<gpu_order_any>(stream_of(call), how->order, l);
    return launched(call, SUM);
}
