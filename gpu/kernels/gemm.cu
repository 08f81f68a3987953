/* gemm.cu -- matrix products made ready, and their launches. */
#include "gemm.h"

#include "gemm_fma.cuh"
#include "gemm_mma.cuh"
#include "gemm_path.cuh"

#include <stdarg.h>
#include <stdio.h>

/* ---- what there is ---- */

static const struct {
    const char *a, *b;
} type_names[GPU_TYPES_COUNT] = {{"fp16", "fp16"}, {"bf16", "bf16"}, {"tf32", "tf32"}, {"e4m3", "e4m3"},
                                 {"e4m3", "e5m2"}, {"e5m2", "e4m3"}, {"e5m2", "e5m2"}};

/* The instruction for these formats, or -1. */
static int types_of(const mpsim_format *a, const mpsim_format *b)
{
    for (int i = 0; i < GPU_TYPES_COUNT; i++)
        if (strcmp(a->name, type_names[i].a) == 0 && strcmp(b->name, type_names[i].b) == 0)
            return i;
    return -1;
}

int gpu_gemm_takes(const mpsim_model *m, int sm)
{
    return row_of(*m, sm) != nullptr;
}

int gpu_gemm_core(const mpsim_model *m, const mpsim_format *a, const mpsim_format *b, int sm)
{
    const model_row *r = row_of(*m, sm, a, b);
    return r && !(r->paths & FMA) && types_of(a, b) >= 0;
}

int gpu_gemm_has(const char *model, int sm)
{
    return row_of(model, sm) != nullptr;
}

int gpu_gemm_own(const char *model, int sm)
{
    for (const model_row &r : model_rows)
        if (strcmp(r.model, model) == 0 && sm >= r.first && sm <= r.last)
            return 1;
    return 0;
}

int gpu_gemm_core_factors(const mpsim_model *m, int sm)
{
    const model_row *r = row_of(*m, sm);
    return r && r->factors;
}

int gpu_gemm_has_factors(const char *model, int sm)
{
    const model_row *r = row_of(model, sm);
    return r && r->factors;
}

/* ---- operands ---- */

static int gemm_fail(char *why, size_t size, const char *text, ...)
{
    va_list more;
    va_start(more, text);
    vsnprintf(why, size, text, more);
    va_end(more);
    return -1;
}

static int lines_set(gpu_lines *x, gpu_format *f, const mpsim_matrix *m, int along, size_t lines, size_t apart)
{
    if (gpu_format_set(f, m->format) != 0)
        return -1;
    x->at = static_cast<const unsigned char *>(m->codes);
    x->stride = m->stride;
    x->lines = lines;
    x->along = along;
    x->shift = f->bytes == 1 ? 0 : f->bytes == 2 ? 1 : 2;
    x->apart = apart << x->shift;
    x->aligned = reinterpret_cast<uintptr_t>(x->at) % 16 == 0 && (x->stride << x->shift) % 16 == 0 &&
                 x->apart % 16 == 0;
    return 0;
}

static int finish_set(gpu_finish *o, gpu_formats *f, const gpu_product *p)
{
    if (gpu_format_set(&f->out[0], p->format) != 0 || (p->bias && gpu_format_set(&f->bias, p->bias_format) != 0))
        return -1;
    o->scaled = p->factor != 1;
    o->factor = p->factor;
    o->bias = p->bias;
    o->d = static_cast<unsigned char *>(p->d);
    o->rows = p->rows;
    o->columns = p->columns;
    o->stride = p->d_stride;
    o->apart = p->d_apart * static_cast<size_t>(f->out[0].bytes);
    o->start = p->start;
    o->result = p->start == TRAIN_ADD_TO            ? GPU_RESULT_ANY
                : f->out[0].kind == GPU_BINARY32    ? GPU_RESULT_BINARY32
                : f->out[0].convert == GPU_CVT_F16  ? GPU_RESULT_F16
                : f->out[0].convert == GPU_CVT_BF16 ? GPU_RESULT_BF16
                                                    : GPU_RESULT_ANY;
    o->counts = p->counts;
    o->pieces = p->d_stride * static_cast<size_t>(f->out[0].bytes) % 16 == 0 && o->apart % 16 == 0 &&
                reinterpret_cast<uintptr_t>(o->d) % 16 == 0;
    o->pairs = p->d_stride % 2 == 0 && p->d_apart % 2 == 0 &&
               reinterpret_cast<uintptr_t>(o->d) % (2 * static_cast<size_t>(f->out[0].bytes)) == 0;
    return 0;
}

/* ---- launches ---- */

static cudaError_t tiles_set(gpu_job *j, size_t stacks, size_t rows_of_tile, size_t columns_of_tile)
{
    const size_t m = (j->out.rows + rows_of_tile - 1) / rows_of_tile;
    const size_t n = (j->out.columns + columns_of_tile - 1) / columns_of_tile;
    if (n > 0xffff || m * n > 0x7fffffff || stacks > 0x7fffffff / (m * n))
        return cudaErrorInvalidConfiguration;
    j->tiles_m = static_cast<unsigned>(m);
    j->tiles_n = static_cast<unsigned>(n);
    j->blocks = static_cast<unsigned>(m * n * stacks);
    return cudaSuccess;
}

/* A product that can be launched. */
struct ready {
    const gpu_product *product;
    gpu_formats formats;
    gpu_job job;
    size_t stacks;
    gpu_gemm_path path; /* AUTO: there is nothing to do */
    int types, fused;
    gpu_sums sums;
};

static cudaStream_t stream_of(const ready *r)
{
    return static_cast<cudaStream_t>(r->product->stream);
}

typedef void kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_job) j);
typedef void list_kernel(GPU_CONSTANT(gpu_formats) f, GPU_CONSTANT(gpu_jobs) list);

static cudaError_t launch(kernel *k, ready *r, int tile, int threads, int shared)
{
    cudaError_t e = tiles_set(&r->job, r->stacks, static_cast<size_t>(tile), static_cast<size_t>(tile));
    if (e == cudaSuccess && shared > 48 * 1024)
        e = cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess)
        return e;
    GPU_LAUNCH_ON(stream_of(r), k, r->job.blocks, threads, shared, r->formats, r->job);
    return cudaGetLastError();
}

#define EACH_TYPE(kernel)                                                                                \
    kernel<gemm_mma<GPU_TYPES_F16>>, kernel<gemm_mma<GPU_TYPES_BF16>>, kernel<gemm_mma<GPU_TYPES_TF32>>, \
        kernel<gemm_mma<GPU_TYPES_E4M3_E4M3>>, kernel<gemm_mma<GPU_TYPES_E4M3_E5M2>>,                    \
        kernel<gemm_mma<GPU_TYPES_E5M2_E4M3>>, kernel<gemm_mma<GPU_TYPES_E5M2_E5M2>>
static kernel *const mma_kernels[GPU_TYPES_COUNT] = {EACH_TYPE(gemm_kernel)};
static list_kernel *const mma_list_kernels[GPU_TYPES_COUNT] = {EACH_TYPE(gemm_list_kernel)};
#undef EACH_TYPE

/* By types, then whether the depth is contiguous in a and b; warps of 64 x 32, of 64 x 64. */
#define EACH_LAYOUT(types, width)                                                      \
    {                                                                                  \
        {gemm_fast_kernel<types, 0, 0, width>, gemm_fast_kernel<types, 0, 1, width>},  \
        {                                                                              \
            gemm_fast_kernel<types, 1, 0, width>, gemm_fast_kernel<types, 1, 1, width> \
        }                                                                              \
    }
static kernel *const fast_kernels[2][2][2] = {EACH_LAYOUT(GPU_TYPES_F16, 32), EACH_LAYOUT(GPU_TYPES_BF16, 32)};
static kernel *const square_kernels[2][2][2] = {EACH_LAYOUT(GPU_TYPES_F16, 64), EACH_LAYOUT(GPU_TYPES_BF16, 64)};
#undef EACH_LAYOUT

static cudaError_t launch_path(ready *r)
{
    gpu_job *j = &r->job;
    cudaError_t e;
    switch (r->path) {
    case GPU_GEMM_FMA:
        return launch(r->fused ? gemm_kernel<gemm_fma<1>> : gemm_kernel<gemm_fma<0>>, r, FMA_LINES, FMA_THREADS, 0);
    case GPU_GEMM_MMA:
        return launch(mma_kernels[r->types], r, MMA_LINES, MMA_THREADS, 0);
    case GPU_GEMM_FAST:
        return launch(fast_kernels[r->types][j->a.along][j->b.along], r, FAST_LINES, fast_threads(32), FAST_SHARED);
    case GPU_GEMM_SQUARE:
        return launch(square_kernels[r->types][j->a.along][j->b.along], r, FAST_LINES, fast_threads(64), FAST_SHARED);
    case GPU_GEMM_TMA:
        e = tiles_set(j, r->stacks, 256, r->sums == GPU_SUMS_KEPT ? 256 : 128);
        return e != cudaSuccess ? e : gpu_gemm_tma_launch(&r->formats, j, r->types, r->stacks, r->sums, stream_of(r));
    default:
        e = tiles_set(j, r->stacks, 128, r->path == GPU_GEMM_WIDE ? 256 : 128);
        return e != cudaSuccess
                   ? e
                   : gpu_gemm_wgmma_launch(&r->formats, j, r->types, r->path == GPU_GEMM_WIDE, r->sums, stream_of(r));
    }
}

/* Products of one kernel and its formats: FMA or MMA. */
static cudaError_t launch_jobs(const ready *r, const gpu_formats &f, const gpu_jobs &list)
{
    const int fma = r->path == GPU_GEMM_FMA;
    list_kernel *const k = !fma       ? mma_list_kernels[r->types]
                           : r->fused ? gemm_list_kernel<gemm_fma<1>>
                                      : gemm_list_kernel<gemm_fma<0>>;
    GPU_LAUNCH_ON(stream_of(r), k, list.end[list.n - 1], fma ? int(FMA_THREADS) : int(MMA_THREADS), 0, f, list);
    return cudaGetLastError();
}

static int job_set(ready *x, const gpu_product *p, char *why, size_t size)
{
    gpu_job *j = &x->job;
    if (lines_set(&j->a, &x->formats.a, &p->a, !p->a.transposed, p->rows, p->a_apart) != 0 ||
        lines_set(&j->b, &x->formats.b, &p->b, p->b.transposed, p->columns, p->b_apart) != 0 ||
        finish_set(&j->out, &x->formats, p) != 0)
        return gemm_fail(why, size, "a format of the product has numbers that binary32 has not");
    j->depth = p->depth_limit && p->depth_limit < p->depth ? p->depth_limit : p->depth;
    if (j->depth > 1 << 29) /* kernels count its bytes, and stages behind its end, in an int */
        return gemm_fail(why, size, "a depth of more than 2^29");
    if (p->start != TRAIN_FROM_ZERO && x->formats.out[0].kind != GPU_BINARY32)
        return gemm_fail(why, size, "sums that go on are binary32");
    j->a_factors = p->a_factors;
    j->b_factors = p->b_factors;
    j->shared = p->shared ? static_cast<unsigned>(p->shared) : 1;
    return 0;
}

static int make_ready(ready *x, const gpu_product *p, int sm, gpu_gemm_path path, char *why, size_t size)
{
    const model_row *r = row_of(*p->model, sm, p->a.format, p->b.format);
    memset(static_cast<void *>(x), 0, sizeof *x);
    r = r ? r : row_of(*p->model, sm);
    if (!r)
        return gemm_fail(why, size, "no kernel computes model \"%s\" on a device of sm_%d", p->model->name, sm);
    x->types = types_of(p->a.format, p->b.format);
    if (!(r->paths & FMA) && (x->types < 0 || !mpsim_model_accepts(p->model, p->a.format, p->b.format)))
        return gemm_fail(why, size, "model \"%s\" does not take operands %s and %s", p->model->name, p->a.format->name,
                         p->b.format->name);
    if (job_set(x, p, why, size))
        return -1;
    if (p->a_factors.at && (!r->factors || p->start != TRAIN_FROM_ZERO || p->stacks > 1))
        return gemm_fail(why, size, "model \"%s\" has no factors of blocks, or not for this", p->model->name);
    x->product = p;
    if (p->rows == 0 || p->columns == 0)
        return 0;
    x->stacks = p->stacks ? p->stacks : 1;
    x->path = path == GPU_GEMM_AUTO ? path_for(r, &x->job, x->stacks) : path;
    if (!can(r, &x->job, x->path))
        return gemm_fail(why, size, "this kernel does not compute model \"%s\" with these operands", p->model->name);
    x->fused = p->model->addition == MPSIM_ADDITION_FMA;
    x->sums = p->a_factors.at ? GPU_SUMS_FACTORED : r->promote ? GPU_SUMS_PROMOTED : GPU_SUMS_KEPT;
    return 0;
}

static int launched(cudaError_t e, char *why, size_t size)
{
    if (e == cudaSuccess)
        return 0;
    cudaGetLastError(); /* one that does not stay shall not meet the next launch */
    return gemm_fail(why, size, "matrix product: %s", cudaGetErrorString(e));
}

static void play_cores(int sm)
{
#if GPU_ON_HOST
    gpu_host_cores_set(sm);
#else
    (void)sm;
#endif
}

int gpu_gemm(const gpu_product *p, int sm, gpu_gemm_path path, char *why, size_t size)
{
    ready x;
    if (make_ready(&x, p, sm, path, why, size))
        return -1;
    play_cores(sm);
    return x.path == GPU_GEMM_AUTO ? 0 : launched(launch_path(&x), why, size);
}

/* ---- several ---- */

/* Whether one launch can compute both: by a kernel for small products, of operands in the same formats. */
static int alike(const ready *x, const ready *y)
{
    const gpu_product *p = x->product, *q = y->product;
    return x->path == y->path && (x->path == GPU_GEMM_FMA || x->path == GPU_GEMM_MMA) && x->types == y->types &&
           x->fused == y->fused && p->stream == q->stream && mpsim_format_same(p->a.format, q->a.format) &&
           mpsim_format_same(p->b.format, q->b.format) && !p->bias == !q->bias &&
           (!p->bias || mpsim_format_same(p->bias_format, q->bias_format));
}

/* A launch as it grows. */
struct growing {
    gpu_jobs list;
    gpu_formats formats;
    const mpsim_format *out[2];
    unsigned blocks;
};

/* Whether there is room for y, of one of two formats, among products like x. */
static int takes(growing *g, const ready *x, ready *y)
{
    const mpsim_format *f = y->product->format;
    unsigned to = 0;
    if (!alike(x, y))
        return 0;
    while (to < 2 && g->out[to] && !mpsim_format_same(g->out[to], f))
        to++;
    if (to == 2)
        return 0;
    g->out[to] = f;
    g->formats.out[to] = y->formats.out[0];
    y->job.to = to;
    return 1;
}

/* x and those of the n after it that are like it; these become AUTO: they are done. */
static int launch_alike(ready *x, size_t n, char *why, size_t size)
{
    const size_t tile = x->path == GPU_GEMM_FMA ? size_t(FMA_LINES) : size_t(MMA_LINES);
    growing g;
    g.formats = x->formats;
    g.out[0] = g.out[1] = NULL;
    g.blocks = g.list.n = 0;
    for (size_t i = 0; i < n; i++) {
        gpu_job *j = &x[i].job;
        if (!takes(&g, x, &x[i]))
            continue;
        if (tiles_set(j, x[i].stacks, tile, tile) != cudaSuccess || j->blocks > 0x7fffffff - g.blocks)
            return launched(cudaErrorInvalidConfiguration, why, size);
        j->first = g.blocks;
        g.blocks += j->blocks;
        g.list.end[g.list.n] = g.blocks;
        g.list.item[g.list.n++] = *j;
        if (i > 0)
            x[i].path = GPU_GEMM_AUTO;
    }
    return launched(g.list.n > 1 ? launch_jobs(x, g.formats, g.list) : launch_path(x), why, size);
}

int gpu_gemm_list(const gpu_product *p, size_t n, int sm, char *why, size_t size)
{
    ready x[GPU_GEMM_AT_ONCE];
    if (n > GPU_GEMM_AT_ONCE)
        return gemm_fail(why, size, "%zu products at once", n);
    for (size_t i = 0; i < n; i++)
        if (make_ready(&x[i], &p[i], sm, GPU_GEMM_AUTO, why, size))
            return -1;
    play_cores(sm);
    for (size_t i = 0; i < n; i++)
        if (x[i].path != GPU_GEMM_AUTO && launch_alike(&x[i], n - i, why, size))
            return -1;
    return 0;
}
