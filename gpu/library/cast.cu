/* cast.cu -- mpsim_cuda_cast; see mpsim/cudacast.h. */
#include "../include/mpsim/cudacast.h"

#include "call.cuh"

#include "../kernels/anycast.cuh"
#include "../kernels/casts.cuh"

#include <mpsim/format.h>

extern "C" {
#include "../../lib/dot/shape.h"
}

namespace library
{
namespace casting
{

typedef gpu_list<gpu_pair, 1> one_pair;
typedef gpu_usual_cast<one_pair> row;

/* From one format to codes of another, and to its values in a third. */
static const row rows[] = {
    row::of<gpu_binary32, gpu_fp16, gpu_fp16, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_tf32, gpu_tf32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_e2m1, GPU_NEAREST>(),
    row::of<gpu_fp16, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_fp16, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_fp16, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
    row::of<gpu_fp16, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
    row::of<gpu_fp16, gpu_e2m1, gpu_e2m1, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_fp16, gpu_fp16, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e5m2, gpu_e5m2, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e2m1, gpu_e2m1, GPU_NEAREST>(),
    row::of<gpu_e4m3, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_e4m3, gpu_fp16, gpu_fp16, GPU_NEAREST>(),
    row::of<gpu_e4m3, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_e5m2, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_e5m2, gpu_fp16, gpu_fp16, GPU_NEAREST>(),
    row::of<gpu_e5m2, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_e2m1, gpu_binary32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_e2m1, gpu_bf16, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_tf32, gpu_binary32, GPU_AWAY>(),
    row::of<gpu_binary32, gpu_tf32, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_fp16, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_bf16, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_binary32, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e4m3, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e5m2, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_bf16, gpu_e2m1, gpu_bf16, GPU_NEAREST>(),
    row::of<gpu_binary32, gpu_fp16, gpu_fp16, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_bf16, gpu_bf16, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_e5m2, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_e2m1, GPU_STOCHASTIC>(),
    row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_STOCHASTIC>(),
    row::of<gpu_bf16, gpu_e5m2, gpu_e5m2, GPU_STOCHASTIC>(),
    row::of<gpu_bf16, gpu_e2m1, gpu_e2m1, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_bf16, gpu_binary32, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_binary32, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_binary32, GPU_STOCHASTIC>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_binary32, GPU_STOCHASTIC>(),
    /* times a scale */
    row::of<gpu_binary32, gpu_fp16, gpu_fp16, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_bf16, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_e4m3, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_e5m2, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_fp16, gpu_fp16, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_e4m3, gpu_e4m3, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_e5m2, gpu_e5m2, GPU_NEAREST, 1>(),
    row::of<gpu_fp16, gpu_bf16, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_fp16, gpu_e4m3, gpu_e4m3, GPU_NEAREST, 1>(),
    row::of<gpu_fp16, gpu_e5m2, gpu_e5m2, GPU_NEAREST, 1>(),
    row::of<gpu_e4m3, gpu_binary32, gpu_binary32, GPU_NEAREST, 1>(),
    row::of<gpu_e4m3, gpu_bf16, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_e4m3, gpu_fp16, gpu_fp16, GPU_NEAREST, 1>(),
    row::of<gpu_e5m2, gpu_binary32, gpu_binary32, GPU_NEAREST, 1>(),
    row::of<gpu_e5m2, gpu_bf16, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_e5m2, gpu_fp16, gpu_fp16, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e4m3, gpu_binary32, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e5m2, gpu_binary32, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_e4m3, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_e5m2, gpu_bf16, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_tf32, gpu_binary32, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_e2m1, GPU_NEAREST, 1>(),
    row::of<gpu_bf16, gpu_e2m1, gpu_e2m1, GPU_NEAREST, 1>(),
    row::of<gpu_binary32, gpu_e2m1, gpu_binary32, GPU_NEAREST, 1>(),
};

/* ---- arguments ---- */

static int has_numbers(const mpsim_format *y, const mpsim_format *f)
{
    return mpsim_format_same(y, f) ||
           (mpsim_is_within(f, y) && mpsim_format_is_signed(f) <= mpsim_format_is_signed(y) &&
            (y->zero != MPSIM_ZERO_NONE || f->zero == MPSIM_ZERO_NONE) &&
            (y->zero == MPSIM_ZERO_SIGNED || f->zero != MPSIM_ZERO_SIGNED) && (f->nan == MPSIM_NAN_NONE || y->nan));
}

static int is_same_shape(const mpsim_stack *y, const mpsim_stack *x)
{
    if (y->rank != x->rank)
        return 0;
    for (uint32_t i = 0; i < y->rank; i++)
        if (y->shape[i] != x->shape[i])
            return 0;
    return 1;
}

static mpsim_status check(const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to, const mpsim_rng *rng,
                          const mpsim_cuda_call *call)
{
    if (!call)
        return MPSIM_EINVAL;
    if (!to || mpsim_format_check(to->format) != MPSIM_OK || mpsim_rounding_check(&to->rounding) != MPSIM_OK)
        return refuse(call, MPSIM_EINVAL, "cast: the format or the rounding is invalid");
    if (!mpsim_is_stack(x, 0) || !mpsim_is_stack(y, 1))
        return refuse(call, MPSIM_EINVAL, "cast: expected arrays of 2 to %d dimensions in valid formats",
                      int(MPSIM_STACK_RANK));
    if (!is_same_shape(y, x))
        return refuse(call, MPSIM_EINVAL, "cast: the arrays have different shapes");
    if (mpsim_is_stochastic(to->rounding.mode) && !rng)
        return refuse(call, MPSIM_EINVAL, "cast: mode %s needs random bits",
                      mpsim_round_mode_name(mpsim_round_mode(to->rounding.mode)));
    for (const mpsim_format *f : {x->format, to->format, y->format})
        if (f->bits > 32)
            return refuse(call, MPSIM_EUNAVAILABLE, "cast: no kernel for %s: formats of at most 32 bits", f->name);
    if (!has_numbers(y->format, to->format))
        return refuse(call, MPSIM_ERANGE, "cast: %s has not all numbers of %s", y->format->name, to->format->name);
    return MPSIM_OK;
}

/* ---- places ---- */

/* Dimensions of one element are left out; dimensions without a gap between them, in both arrays, become one. */
static gpu_layout layout_of(const mpsim_stack *y, const mpsim_stack *x)
{
    gpu_layout l;
    memset(&l, 0, sizeof l);
    for (uint32_t i = 0; i < y->rank; i++) {
        const int64_t n = int64_t(y->shape[i]);
        const uint32_t k = l.rank ? l.rank - 1 : 0;
        if (n == 1)
            continue;
        const int joins = l.rank && l.x[k] == n * x->strides[i] && l.y[k] == n * y->strides[i];
        l.rank += joins ? 0 : 1;
        l.shape[l.rank - 1] = joins ? l.shape[k] * size_t(n) : size_t(n);
        l.x[l.rank - 1] = x->strides[i];
        l.y[l.rank - 1] = y->strides[i];
    }
    return l;
}

static size_t elements_of(const mpsim_stack *y)
{
    size_t n = 1;
    for (uint32_t i = 0; i < y->rank; i++)
        n *= y->shape[i];
    return n;
}

static int is_dense(const gpu_layout &l)
{
    return l.rank == 0 || (l.rank == 1 && l.x[0] == 1 && l.y[0] == 1);
}

/* ---- kernels ---- */

static int multiprocessors()
{
    int device = 0, n = 1;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return 1;
    return n;
}

static void launch_usual(const row *kernel, const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to,
                         const mpsim_rng *rng, size_t n, mpsim_entered *counts, cudaStream_t stream)
{
    gpu_casting how;
    one_pair list;
    memset(&list, 0, sizeof list);
    gpu_casting_set(&how, to->format, &to->rounding, rng, y->format);
    list.n = 1;
    list.item[0] = gpu_pair{y->codes, x->codes, n, counts};
    list.end[0] = gpu_usual_blocks(n, kernel->blocks, multiprocessors());
    GPU_LAUNCH_ON(stream, kernel->kernel, list.end[0], GPU_LIST_THREADS, 0, how, list);
}

static void launch_any(const gpu_layout &layout, const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to,
                       const mpsim_rng *rng, size_t n, mpsim_entered *counts, cudaStream_t stream)
{
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    gpu_any_cast c;
    memset(static_cast<void *>(&c), 0, sizeof c);
    c.from = *x->format;
    c.to = *to->format;
    c.y = *y->format;
    c.binary32 = *binary32;
    c.rounding = to->rounding;
    mpsim_rounding_init(&c.plain, MPSIM_ROUND_NEAREST_EVEN);
    c.scale = mpsim_number_f64(to->rounding.scale);
    c.from_bytes = int(mpsim_format_code_bytes(x->format));
    c.y_bytes = int(mpsim_format_code_bytes(y->format));
    c.writes = mpsim_format_same(y->format, to->format) ? GPU_WRITES_CODES
               : mpsim_format_same(y->format, binary32) ? GPU_WRITES_BINARY32
                                                        : GPU_WRITES_VALUES;
    c.is_f32 = mpsim_format_same(x->format, binary32);
    c.is_wide = !mpsim_is_within(x->format, binary32);
    c.x = x->codes;
    c.codes = y->codes;
    c.layout = layout;
    c.n = n;
    c.counts = reinterpret_cast<gpu_word *>(counts);
    if (rng)
        c.rng = *rng;
    GPU_LAUNCH_ON(stream, any_cast_kernel, gpu_list_blocks(n), 256, 0, c);
}

} // namespace casting
} // namespace library

extern "C" mpsim_status mpsim_cuda_cast(const mpsim_stack *y, const mpsim_stack *x, const mpsim_cast *to,
                                        const mpsim_rng *rng, mpsim_entered *counts, const mpsim_cuda_call *call)
{
    using namespace library;
    const mpsim_status s = casting::check(y, x, to, rng, call);
    const size_t n = s == MPSIM_OK ? casting::elements_of(y) : 0;
    if (s != MPSIM_OK || n == 0)
        return s;
    const gpu_layout layout = casting::layout_of(y, x);
    const int wraps = rng && rng->index + n < rng->index; /* indices begin again at 0 */
    const int mode = wraps ? -1 : gpu_cast_mode(to->format, &to->rounding, rng);
    const casting::row *kernel = casting::is_dense(layout) && mode >= 0
                                     ? gpu_usual_find(casting::rows, sizeof casting::rows / sizeof *casting::rows,
                                                      x->format, to->format, y->format, mode, to->rounding.scale != 1)
                                     : NULL;
    if (kernel)
        casting::launch_usual(kernel, y, x, to, rng, n, counts, stream_of(call));
    else
        casting::launch_any(layout, y, x, to, rng, n, counts, stream_of(call));
    return launched(call, "cast");
}
