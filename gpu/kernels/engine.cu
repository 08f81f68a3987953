/* engine.cu -- the CUDA engine of training: lib/include/train/engine.h with kernels. See gpu/train.h.
 *
 * Launches go to one stream. Only operations with a result for the host wait: get, digest, finish,
 * unscale with found, norm, and quantize where a scale follows from the whole tensor. */
#include "engine.cuh"

#include "digests.cuh"
#include "elements.cuh"
#include "engine_attention.cuh"
#include "engine_blocks.cuh"
#include "engine_casts.cuh"
#include "engine_layers.cuh"
#include "engine_lists.cuh"
#include "engine_quantize.cuh"
#include "engine_rows.cuh"
#include "engine_tokens.cuh"
#include "engine_updates.cuh"
#include "gemm.h"

#include <new>

/* ---- tensors ---- */

static void cuda_release(train_engine *, train_tensor *x)
{
    if (!x)
        return;
    cuda_data *d = data_of(x);
    if (d) {
        (void)gpu_flush(); /* what is kept may use it; a failure stays, and the next operation says so */
        cudaFree(d->at);
    }
    free(d);
    x->data = NULL;
}

static int cuda_alloc(train_engine *e, train_tensor *x)
{
    gpu_format f;
    if (gpu_format_set(&f, x->format))
        return cuda_fail(e, "alloc: the device has no tensors of %s", x->format->name);
    cuda_data *d = static_cast<cuda_data *>(calloc(1, sizeof *d));
    if (!d)
        return cuda_fail(e, "alloc: out of memory");
    d->of.n = size_of(x);
    d->format = f;
    unsigned char *at = NULL;
    const size_t bytes = d->of.n ? d->of.n * (size_t)f.bytes : 1;
    if (cuda_done(e, "alloc", cudaMalloc(&at, bytes)) || cuda_done(e, "alloc", cudaMemset(at, 0, bytes))) {
        cudaFree(at);
        free(d);
        return -1;
    }
    d->at = at;
    x->data = d;
    x->inverse = 1;
    return 0;
}

static int cuda_put(train_engine *e, train_tensor *x, const float *values)
{
    mpsim_rounding r;
    mpsim_counts c = {0, 0, 0, 0, 0};
    const size_t n = size_of(x), bytes = n * (size_t)format_of(x).bytes;
    void *codes = staging_of(e, bytes);
    if (!codes)
        return -1;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (mpsim_encode_array_f32(x->format, &r, NULL, codes, values, n, &c) != MPSIM_OK || c.inexact != 0)
        return cuda_fail(e, "put: a value is not a number of %s", x->format->name);
    x->inverse = 1;
    return upload(e, "put", at_of(x), codes, bytes);
}

static int cuda_get(train_engine *e, const train_tensor *x, float *values)
{
    const size_t PART = 1024;
    double wide[1024];
    const size_t n = size_of(x), size = (size_t)format_of(x).bytes;
    unsigned char *codes = static_cast<unsigned char *>(staging_of(e, n * size));
    if (!codes)
        return -1;
    if (read_back(e, "get", codes, at_of(x), n * size))
        return -1;
    for (size_t i = 0; i < n; i += PART) {
        const size_t m = n - i < PART ? n - i : PART;
        mpsim_decode_array(x->format, wide, codes + i * size, m);
        for (size_t k = 0; k < m; k++)
            values[i + k] = (float)wide[k];
    }
    return 0;
}

static void digest_codes(train_engine *e, const train_tensor *x)
{
    const size_t n = size_of(x);
    GPU_LAUNCH(digest_kernel, blocks_of(n, GPU_THREADS_DIGEST), GPU_THREADS_DIGEST, 0, format_of(x), at_of(x), n,
               (uint32_t)mpsim_digest_ones(x->format), &self_of(e)->results->digest);
}

static int digest_blocks(train_engine *e, const train_tensor *x)
{
    const size_t width = (size_t)format_of(x).bytes, words = (size_of(x) * width + 3) / 4;
    gpu_digest_job j = {};
    j.codes = static_cast<const unsigned char *>(at_of(x));
    j.bytes = size_of(x) * width;
    j.width = int(width);
    j.aligned = reinterpret_cast<size_t>(j.codes) % 16 == 0;
    if (!mpsim_digest_format_set(&j.format, x->format))
        return cuda_fail(e, "digest: the device has no digest by blocks of %s", x->format->name);
    GPU_LAUNCH(digest_blocks_kernel, blocks_of((words + 15) / 16, GPU_THREADS_DIGEST), GPU_THREADS_DIGEST, 0, j,
               &self_of(e)->results->digest);
    return 0;
}

static int cuda_digest(train_engine *e, const train_tensor *x, uint64_t *digest)
{
    if (results_begin(e, "digest"))
        return -1;
    if (e->digests == TRAIN_DIGEST_CODES)
        digest_codes(e, x);
    else if (digest_blocks(e, x))
        return -1;
    const cuda_results *r = results_end(e, "digest");
    *digest = r ? r->digest : 0;
    return r ? 0 : -1;
}

static int cuda_finish(train_engine *e)
{
    return self_of(e)->used ? flush_slots(e) : wait_for(e, "finish"); /* a copy waits for all before it */
}

/* ---- products ---- */

/* From row `first` on. */
static mpsim_matrix matrix_of(const train_tensor *x, size_t first, int transposed)
{
    mpsim_matrix m;
    m.format = x->format;
    m.codes = static_cast<const unsigned char *>(at_of(x)) + first * x->cols * (size_t)format_of(x).bytes;
    m.stride = x->cols;
    m.transposed = transposed != 0;
    return m;
}

/* The matrices of x, one of `stacks` below one another: from row *first, *n rows of each. */
static void part_of(const train_tensor *x, size_t stacks, const train_part *part, size_t *first, size_t *n)
{
    *first = part->first;
    *n = part->n ? part->n : x->rows / stacks;
}

/* The shape of a product, or of each product of a stack. */
static void shape_of(const train_tensor *d, const train_gemm *g, gpu_product *p)
{
    const size_t stacks = g->stacks ? g->stacks : 1, shared = g->shared ? g->shared : 1;
    size_t a, b, c, height, deep;
    part_of(g->a, stacks, &g->a_part, &a, &height);
    part_of(g->b, stacks / shared, &g->b_part, &b, &deep);
    part_of(d, stacks, &g->d_part, &c, &p->rows);
    p->depth = g->a_transposed ? height : g->a->cols;
    p->columns = d->cols;
    p->stacks = stacks;
    p->shared = shared;
    p->a_apart = g->a->rows / stacks * g->a->cols;
    p->b_apart = g->b->rows / (stacks / shared) * g->b->cols;
    p->d_apart = d->rows / stacks * d->cols;
    p->a = matrix_of(g->a, a, g->a_transposed);
    p->b = matrix_of(g->b, b, g->b_transposed);
    p->d = static_cast<unsigned char *>(at_of(d)) + c * d->cols * (size_t)format_of(d).bytes;
}

static int product_of(train_engine *e, const train_multiply *m, gpu_product *p)
{
    const train_gemm *g = m->g;
    int failed = 0;
    memset(p, 0, sizeof *p);
    shape_of(m->d, g, p);
    p->model = g->model;
    p->depth_limit = g->depth_limit;
    p->factor = g->a->inverse != 1 || g->b->inverse != 1 ? g->a->inverse * g->b->inverse : 1;
    p->bias_format = g->bias ? g->bias->format : NULL;
    p->bias = at_of(g->bias);
    p->format = m->d->format;
    p->d_stride = m->d->cols;
    p->start = g->start;
    p->counts = slot_of(e, m->counts, &failed);
    return failed ? -1 : 0;
}

/* GPU_GEMM_AT_ONCE at most. Those with blocks are done one by one. */
static int multiply_some(train_engine *e, const train_multiply *list, size_t n)
{
    gpu_product p[GPU_GEMM_AT_ONCE];
    char why[160] = "";
    size_t k = 0;
    if (reserve_slots(e, n))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (list[i].g->model->block)
            return cuda_fail(e,
                             "gemm: %s: products with the scales of blocks are for the CPU; an arch without -scaled "
                             "multiplies bf16 numbers",
                             list[i].g->model->name);
        if (product_of(e, &list[i], &p[k]))
            return -1;
        if (!list[i].g->a_blocks)
            k += size_of(list[i].d) > 0;
        else if (size_of(list[i].d) && gemm_blocks(e, list[i].g, &p[k]))
            return -1;
    }
    if (gpu_gemm_list(p, k, self_of(e)->sm, why, sizeof why))
        return cuda_fail(e, "gemm: %s", why);
    for (size_t i = 0; i < n; i++)
        list[i].d->inverse = 1;
    return cuda_launched(e, "gemm");
}

static int cuda_gemm_list(train_engine *e, const train_multiply *list, size_t n)
{
    for (size_t i = 0; i < n; i += GPU_GEMM_AT_ONCE)
        if (multiply_some(e, list + i, n - i < GPU_GEMM_AT_ONCE ? n - i : size_t(GPU_GEMM_AT_ONCE)))
            return -1;
    return 0;
}

static int cuda_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    const train_multiply one = {d, g, counts};
    return multiply_some(e, &one, 1);
}

/* ---- the engine ---- */

static void cuda_close(train_engine *e)
{
    cuda_self *self = self_of(e);
    if (!self)
        return;
    train_engine_cuda_graphs(e, 0);
    cudaFree(self->results);
    cudaFree(self->slots);
    cudaFreeHost(self->pinned);
    for (int i = 0; i < CUDA_BUFFERS; i++)
        cudaFree(self->buffer[i]);
    free(self->staging);
    free(self);
}

static const train_ops cuda_ops = {
    .name = "cuda",
    .cuda = 1,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .put = cuda_put,
    .get = cuda_get,
    .digest = cuda_digest,
    .finish = cuda_finish,
    .cast = cuda_cast,
    .cast_list = cuda_cast_list,
    .gemm = cuda_gemm,
    .gemm_list = cuda_gemm_list,
    .quantize = cuda_quantize,
    .quantize_list = cuda_quantize_list,
    .hadamard = cuda_hadamard,
    .index_new = cuda_index_new,
    .index_free = cuda_index_free,
    .gather = cuda_gather,
    .relu = cuda_relu,
    .relu_backward = cuda_relu_backward,
    .maxpool = cuda_maxpool,
    .maxpool_backward = cuda_maxpool_backward,
    .column_sums = cuda_column_sums,
    .softmax_xent = cuda_softmax_xent,
    .batchnorm = cuda_batchnorm,
    .batchnorm_backward = cuda_batchnorm_backward,
    .batchnorm_inference = cuda_batchnorm_inference,
    .unscale = cuda_unscale,
    .norm = cuda_norm,
    .scale = cuda_scale,
    .optim = cuda_optim,
    .muon = NULL,
    .keep = NULL,
    .add = cuda_add,
    .add_rows = cuda_add_rows,
    .add_rows_backward = cuda_add_rows_backward,
    .embed = cuda_embed,
    .embed_backward = cuda_embed_backward,
    .split = cuda_split,
    .join = cuda_join,
    .rownorm = cuda_rownorm,
    .rownorm_backward = cuda_rownorm_backward,
    .rownorm_gradients = cuda_rownorm_gradients,
    .activate = cuda_activate,
    .activate_backward = cuda_activate_backward,
    .causal = cuda_causal,
    .causal_backward = cuda_causal_backward,
    .add_groups = cuda_add_groups,
    .tile_forward = cuda_tile_forward,
    .tile_end = cuda_tile_end,
    .tile_dots = cuda_tile_dots,
    .tile_again = cuda_tile_again,
    .tile_backward = cuda_tile_backward,
    .reduce = cuda_reduce,
    .close = cuda_close,
};

int train_engine_cuda_graphs(train_engine *e, int on)
{
    cuda_self *self = self_of(e);
    const int code = self->recorder ? cuda_done(e, "graphs", self->recorder->flush()) : 0;
    delete self->recorder;
    self->recorder = on ? new (std::nothrow) gpu_recorder : NULL;
    gpu_recording = self->recorder;
    return on && !self->recorder ? cuda_fail(e, "graphs: out of memory") : code;
}

void train_engine_cuda_replays(const train_engine *e, train_replays *r)
{
    const cuda_self *self = static_cast<const cuda_self *>(e->self);
    const gpu_replays none = {0, 0, 0, 0}, &d = self->recorder ? self->recorder->done : none;
    r->nodes = d.nodes;
    r->launches = d.launches;
    r->made = d.made;
    r->changed = d.changed;
}

/* The thread's device, if the code runs there: its compute capability as 90, its name and multiprocessors, else -1. */
static int open_device(char name[256], int *multiprocessors, char *why, size_t size)
{
    int count = 0, device = 0;
    cudaDeviceProp p;
    cudaFuncAttributes a;
    cudaError_t s = cudaGetDeviceCount(&count);
    if (s == cudaSuccess && count == 0) {
        snprintf(why, size, "no CUDA device");
        return -1;
    }
    if (s == cudaSuccess)
        s = cudaGetDevice(&device);
    if (s == cudaSuccess)
        s = cudaGetDeviceProperties(&p, device);
    if (s != cudaSuccess) {
        snprintf(why, size, "%s", cudaGetErrorString(s));
        cudaGetLastError();
        return -1;
    }
    if (p.major < 8 || cudaFuncGetAttributes(&a, cast_kernel) != cudaSuccess) {
        snprintf(why, size, "%s: compute capability %d.%d, for which nothing was compiled", p.name, p.major, p.minor);
        cudaGetLastError();
        return -1;
    }
    snprintf(name, 256, "%s", p.name);
    *multiprocessors = p.multiProcessorCount;
    return 10 * p.major + p.minor;
}

int train_engine_cuda(train_engine *e, char *why, size_t size)
{
    memset(e, 0, sizeof *e);
    int multiprocessors;
    const int sm = open_device(e->device, &multiprocessors, why, size);
    if (sm < 0)
        return -1;
    cuda_self *self = static_cast<cuda_self *>(calloc(1, sizeof *self));
    if (!self) {
        snprintf(why, size, "out of memory");
        return -1;
    }
    self->sm = sm;
    self->multiprocessors = multiprocessors;
    e->self = self;
    train_engine_begin(e, &cuda_ops);
    const size_t bytes = CUDA_SLOTS * CUDA_WORDS * sizeof(gpu_word);
    if (cuda_done(e, "open", cudaMalloc(&self->results, sizeof *self->results)) ||
        cuda_done(e, "open", cudaMalloc(&self->slots, bytes)) ||
        cuda_done(e, "open", cudaMallocHost(&self->pinned, CUDA_PINNED)) ||
        cuda_done(e, "open", cudaMemset(self->slots, 0, bytes))) {
        snprintf(why, size, "%s", e->error);
        cuda_close(e);
        memset(e, 0, sizeof *e);
        return -1;
    }
    return 0;
}
