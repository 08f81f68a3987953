/* between.cu -- mpsim_cuda_between: what each operation takes and launches; see mpsim/cudabetween.h. */
#include "../include/mpsim/cudabetween.h"

#include "between.cuh"
#include "call.cuh"

namespace library
{
namespace between
{

static const char NAME[] = "mpsim_cuda_between";

typedef void kernel(GPU_CONSTANT_TYPE(between_job) o);

/* What a launch goes over. */
enum over { OVER_NOTHING, OVER_ROWS, OVER_COLUMNS, OVER_ELEMENTS, OVER_TABLE, OVER_EACH_COLUMN };

struct launch {
    over of;
    kernel *run;
};

/* Letters of an array: i read, o written, f rounded to the format that is given, ? may be missing. */
struct kind {
    int n;
    const char *arrays[BETWEEN_ARRAYS];
    launch first, second;
    int indexed, scratches;
};

#define ROWS(k)      \
    {                \
        OVER_ROWS, k \
    }
#define COLUMNS(k)      \
    {                   \
        OVER_COLUMNS, k \
    }
#define EACH(k)          \
    {                    \
        OVER_ELEMENTS, k \
    }
#define NONE                  \
    {                         \
        OVER_NOTHING, nullptr \
    }

/* In the order of mpsim_between_kind. */
static const kind kinds[] = {
    {6, {"i", "i?", "i?", "of", "o?", "o?"}, ROWS(between_norm_kernel), NONE, 0, 0},
    {6, {"i", "i", "i?", "i", "i?", "of"}, ROWS(between_norm_back_kernel), NONE, 0, 0},
    {6, {"i", "i", "i?", "i", "o?", "o?"}, COLUMNS(between_gradients_kernel), NONE, 0, 0},
    {3, {"i", "i?", "of"}, EACH(between_activate_kernel), NONE, 0, 0},
    {5, {"i", "i", "i?", "of", "of?"}, EACH(between_activate_back_kernel), NONE, 0, 0},
    {3, {"i", "m?", "of"}, ROWS(between_softmax_kernel<0>), NONE, 0, 0},
    {4, {"i", "i", "m?", "of"}, ROWS(between_softmax_back_kernel<0>), NONE, 0, 0},
    {3, {"i", "m?", "of"}, ROWS(between_softmax_kernel<1>), NONE, 0, 0},
    {4, {"i", "i", "m?", "of"}, ROWS(between_softmax_back_kernel<1>), NONE, 0, 0},
    {3, {"i", "o?", "of?"}, ROWS(between_loss_kernel), NONE, 1, 0},
    {2, {"i", "of"}, EACH(between_embed_kernel), NONE, 1, 0},
    {2, {"i", "o"}, {OVER_TABLE, between_no_table_kernel}, {OVER_EACH_COLUMN, between_embed_back_kernel}, 1, 0},
    {3, {"i", "i", "of"}, EACH(between_two_kernel<0>), NONE, 0, 0},
    {3, {"i", "i", "of"}, EACH(between_two_kernel<1>), NONE, 0, 0},
    {0, {}, NONE, NONE, 0, 0},
    {2, {"i", "of"}, COLUMNS(between_columns_kernel), NONE, 0, 0},
    {2, {"i", "of"}, {OVER_TABLE, between_period_kernel}, NONE, 0, 0},
    {8,
     {"i", "i?", "i?", "of", "o?", "o?", "o?", "o?"},
     COLUMNS(between_channels_kernel),
     EACH(between_channels_y_kernel),
     0,
     1},
    {8,
     {"i", "i", "i", "i", "i?", "of?", "o?", "o?"},
     COLUMNS(between_channels_back_kernel),
     EACH(between_channels_dx_kernel),
     0,
     1},
    {6, {"i", "i", "i", "i?", "i?", "of"}, EACH(between_inference_kernel), NONE, 0, 0},
};

#undef ROWS
#undef COLUMNS
#undef EACH
#undef NONE

static const kind *kind_of(const mpsim_between *o)
{
    return o && o->kind < sizeof kinds / sizeof *kinds ? &kinds[o->kind] : NULL;
}

static int is_f32(const mpsim_format *f)
{
    return !f || (f->bits == 32 && f->ebits == 8 && f->mbits == 23);
}

/* ---- arguments ---- */

static int is_missing(const kind *k, const mpsim_strided *arrays)
{
    for (int i = 0; i < k->n; i++)
        if (!arrays[i].data && !strchr(k->arrays[i], '?'))
            return 1;
    return 0;
}

/* What an operation asks beyond its arrays. */
static int is_consistent(const mpsim_between *o, const mpsim_strided *arrays)
{
    const int swiglu = o->activation == MPSIM_SWIGLU, running = o->kind == MPSIM_BETWEEN_BATCHNORM;
    if (o->norm > MPSIM_NORM_RMS || o->activation > MPSIM_EXP || (running && !arrays[6].data != !arrays[7].data))
        return 0;
    if (o->kind == MPSIM_BETWEEN_ACTIVATE)
        return !swiglu == !arrays[1].data;
    if (o->kind == MPSIM_BETWEEN_ACTIVATE_BACKWARD)
        return !swiglu == !arrays[2].data && !swiglu == !arrays[4].data;
    if (o->kind == MPSIM_BETWEEN_ROWNORM_BACKWARD || o->kind == MPSIM_BETWEEN_ROWNORM_GRADIENTS)
        return o->norm == MPSIM_NORM_RMS || arrays[2].data;
    return o->kind != MPSIM_BETWEEN_PERIOD_SUMS || o->entries > 0;
}

static mpsim_status check(const mpsim_between *o, const mpsim_strided *arrays, size_t n, const mpsim_cuda_call *call)
{
    const kind *k = kind_of(o);
    if (!call)
        return MPSIM_EINVAL;
    if (!k || !arrays || n < size_t(k->n) || o->dims < 1 || o->dims > MPSIM_BETWEEN_DIMS)
        return refuse(call, MPSIM_EINVAL, "%s: expected an operation of mpsim/between.h and all of its arrays", NAME);
    if (k->n == 0)
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device has no kernel for dropout", NAME);
    if (is_missing(k, arrays) || (k->indexed && !o->index) || !is_consistent(o, arrays))
        return refuse(call, MPSIM_EINVAL, "%s: an array is missing, or settings do not fit together", NAME);
    size_t rows = 1;
    for (int d = 0; d + 1 < o->dims; d++)
        rows *= o->shape[d];
    if (k->scratches && rows == 0)
        return refuse(call, MPSIM_EINVAL, "%s: batch normalisation of no rows", NAME);
    if (!is_f32(o->math))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: the device computes in binary32, not in %s", NAME, o->math->name);
    if (o->kind == MPSIM_BETWEEN_EMBED_BACKWARD && !is_f32(arrays[1].format))
        return refuse(call, MPSIM_EUNAVAILABLE, "%s: expected a dtable in binary32, found %s", NAME,
                      arrays[1].format->name);
    return MPSIM_OK;
}

static int set_array(between_array *a, const mpsim_between *o, const mpsim_strided &from, const char *how)
{
    a->data = from.data;
    a->rounds = o->f && strchr(how, 'f') &&
                !mpsim_format_same(o->f, from.format ? from.format : mpsim_format_find("binary32"));
    for (int d = 0; d < o->dims; d++)
        a->stride[d] = from.stride[d];
    return !from.data || *how == 'm' ||
           !gpu_format_set(&a->format, from.format ? from.format : mpsim_format_find("binary32"));
}

static mpsim_status set(between_job *j, const mpsim_between *o, const mpsim_strided *arrays, uint64_t *found,
                        const mpsim_cuda_call *call)
{
    const kind *k = kind_of(o);
    memset(static_cast<void *>(j), 0, sizeof *j);
    j->dims = o->dims;
    j->activation = o->activation;
    j->layer = o->norm == MPSIM_NORM_LAYER;
    j->added = o->added;
    j->ignores = o->ignores;
    j->ignored = o->ignored;
    j->index = o->index;
    j->found = reinterpret_cast<unsigned long long *>(found);
    j->length = o->length;
    j->entries = o->entries;
    j->eps = o->eps;
    j->momentum = o->momentum;
    j->scale = o->scale;
    j->rows = 1;
    j->cols = o->shape[o->dims - 1];
    for (int d = 0; d < o->dims; d++)
        j->shape[d] = o->shape[d];
    for (int d = 0; d + 1 < o->dims; d++)
        j->rows *= o->shape[d];
    int fits = !o->f || !gpu_format_set(&j->to, o->f);
    for (int i = 0; i < k->n; i++)
        fits = fits && set_array(&j->x[i], o, arrays[i], k->arrays[i]);
    return fits ? MPSIM_OK : refuse(call, MPSIM_ERANGE, "%s: a format has numbers that binary32 has not", NAME);
}

/* ---- launches ---- */

static unsigned blocks_of_threads(size_t n, size_t each)
{
    const size_t blocks = (n + each - 1) / each;
    return unsigned(blocks < (1u << 20) ? blocks : 1u << 20);
}

static void put(const launch &l, const between_job &j, cudaStream_t on)
{
    const dim3 columns(GPU_COLUMNS, GPU_COLUMN_ROWS);
    const size_t elements = l.of == OVER_TABLE         ? j.entries * j.cols
                            : l.of == OVER_EACH_COLUMN ? j.cols
                                                       : j.rows * j.cols;
    if (l.of == OVER_ROWS && elements)
        GPU_LAUNCH_ON(on, l.run, blocks_of_threads(j.rows, GPU_ROW_WARPS), GPU_ROW_THREADS, 0, j);
    else if (l.of == OVER_COLUMNS && j.cols)
        GPU_LAUNCH_ON(on, l.run, unsigned((j.cols + GPU_COLUMNS - 1) / GPU_COLUMNS), columns, 0, j);
    else if (l.of != OVER_ROWS && l.of != OVER_COLUMNS && l.of != OVER_NOTHING && elements)
        GPU_LAUNCH_ON(on, l.run, blocks_of_threads(elements, BETWEEN_THREADS), BETWEEN_THREADS, 0, j);
}

} // namespace between
} // namespace library

extern "C" size_t mpsim_cuda_between_room(const mpsim_between *o)
{
    using namespace library;
    const between::kind *k = between::kind_of(o);
    room r(NULL);
    if (!k || !k->scratches || o->dims < 1 || o->dims > MPSIM_BETWEEN_DIMS)
        return 0;
    (void)r.take<float>(2 * o->shape[o->dims - 1]);
    return r.used;
}

extern "C" mpsim_status mpsim_cuda_between(const mpsim_between *o, const mpsim_strided *arrays, size_t n,
                                           uint64_t *found, const mpsim_cuda_call *call)
{
    using namespace library;
    between_job j;
    mpsim_status s = between::check(o, arrays, n, call);
    if (s == MPSIM_OK)
        s = between::set(&j, o, arrays, found, call);
    const size_t bytes = s == MPSIM_OK ? mpsim_cuda_between_room(o) : 0;
    if (s == MPSIM_OK)
        s = has_room(call, between::NAME, bytes);
    if (s != MPSIM_OK)
        return s;
    if (bytes) {
        j.scratch[0] = static_cast<float *>(call->room);
        j.scratch[1] = j.scratch[0] + j.cols;
    }
    const between::kind *k = between::kind_of(o);
    const int adds = o->kind == MPSIM_BETWEEN_EMBED_BACKWARD && o->added;
    if (!adds)
        between::put(k->first, j, stream_of(call));
    between::put(k->second, j, stream_of(call));
    return launched(call, between::NAME);
}
