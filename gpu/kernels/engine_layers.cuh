/* engine_layers.cuh -- operations of layers: gather, ReLU, pooling, sums, the loss, normalisation.
 */
#pragma once

#include "elements.cuh"
#include "engine_lists.cuh"
#include "flat_loss.cuh"
#include "flat_norms.cuh"
#include "layers.cuh"

/* ---- gather ---- */

static void cuda_index_free(train_engine *, void *handle)
{
    cuda_index *x = static_cast<cuda_index *>(handle);
    (void)gpu_flush();
    if (x)
        cudaFree(x->at);
    free(x);
}

static int cuda_index_new(train_engine *e, const int32_t *index, size_t n, void **handle)
{
    int32_t largest = -1;
    for (size_t i = 0; i < n; i++)
        largest = index[i] > largest ? index[i] : largest;
    cuda_index *x = static_cast<cuda_index *>(calloc(1, sizeof *x));
    if (!x)
        return cuda_fail(e, "index: out of memory");
    x->of.n = n;
    x->of.largest = largest;
    if (cuda_done(e, "index", cudaMalloc(&x->at, (n ? n : 1) * sizeof *index)) ||
        (n && cuda_done(e, "index", cudaMemcpy(x->at, index, n * sizeof *index, cudaMemcpyHostToDevice)))) {
        cuda_index_free(e, x);
        return -1;
    }
    *handle = x;
    return 0;
}

static int cuda_gather(train_engine *e, train_tensor *y, const train_tensor *x, const void *index)
{
    const cuda_index *from = static_cast<const cuda_index *>(index);
    const size_t n = size_of(y);
    const unsigned blocks = blocks_of(n, GPU_THREADS_ELEMENT);
    void *to = at_of(y);
    const void *source = at_of(x);
    switch (format_of(x).bytes) {
    case 1:
        GPU_LAUNCH(gather_kernel<uint8_t>, blocks, GPU_THREADS_ELEMENT, 0, static_cast<uint8_t *>(to),
                   static_cast<const uint8_t *>(source), from->at, n);
        break;
    case 2:
        GPU_LAUNCH(gather_kernel<uint16_t>, blocks, GPU_THREADS_ELEMENT, 0, static_cast<uint16_t *>(to),
                   static_cast<const uint16_t *>(source), from->at, n);
        break;
    default:
        GPU_LAUNCH(gather_kernel<uint32_t>, blocks, GPU_THREADS_ELEMENT, 0, static_cast<uint32_t *>(to),
                   static_cast<const uint32_t *>(source), from->at, n);
    }
    y->inverse = x->inverse;
    return cuda_launched(e, "gather");
}

/* ---- ReLU and pooling ---- */

static int cuda_relu(train_engine *e, train_tensor *y, const train_tensor *x)
{
    const size_t n = size_of(x);
    GPU_LAUNCH(relu_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(x), at_of(y), at_of(x),
               n);
    return wrote(e, "relu", y);
}

static int cuda_relu_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *y)
{
    const size_t n = size_of(y);
    GPU_LAUNCH(relu_backward_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(dx),
               at_of(dx), at_of(dy), format_of(y), at_of(y), n);
    return wrote(e, "relu_backward", dx);
}

static int pool_set(train_engine *e, const char *operation, gpu_pool *g, const train_pool *p)
{
    if (p->height > UINT32_MAX || p->width > UINT32_MAX || p->channels > UINT32_MAX || p->size > UINT32_MAX)
        return cuda_fail(e, "%s: images are too large", operation);
    g->height = (uint32_t)p->height;
    g->width = (uint32_t)p->width;
    g->channels = (uint32_t)p->channels;
    g->size = (uint32_t)p->size;
    return 0;
}

static int cuda_maxpool(train_engine *e, train_tensor *y, const train_tensor *x, const train_pool *p)
{
    gpu_pool g;
    if (pool_set(e, "maxpool", &g, p))
        return -1;
    const size_t n = size_of(y);
    GPU_LAUNCH(maxpool_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(x), at_of(y),
               at_of(x), g, n);
    return wrote(e, "maxpool", y);
}

static int cuda_maxpool_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                                 const train_pool *p)
{
    gpu_pool g;
    if (pool_set(e, "maxpool_backward", &g, p))
        return -1;
    const size_t n = size_of(dx);
    GPU_LAUNCH(maxpool_backward_kernel, blocks_of(n, GPU_THREADS_ELEMENT), GPU_THREADS_ELEMENT, 0, format_of(dx),
               at_of(dx), at_of(dy), format_of(x), at_of(x), g, n);
    return wrote(e, "maxpool_backward", dx);
}

/* ---- sums ---- */

static unsigned column_blocks(size_t cols)
{
    return (unsigned)((cols + GPU_COLUMNS - 1) / GPU_COLUMNS);
}

static unsigned flat_blocks(size_t cols)
{
    return (unsigned)((cols + GPU_FLAT_COLUMNS - 1) / GPU_FLAT_COLUMNS);
}

/* Whether kernels take eight elements of it at a time (flat.cuh). */
static int is_flat(const train_tensor *x)
{
    return x->cols % 8 == 0 && gpu_flat_format(format_of(x)) && gpu_flat_at(at_of(x));
}

/* All of them: one launch. */
static int are_flat_pairs(const train_pair *list, size_t n)
{
    int flat = 1;
    for (size_t i = 0; i < n; i++)
        flat = flat && is_flat(list[i].x) && is_flat(list[i].y);
    return flat;
}

static int cuda_column_sums(train_engine *e, const train_pair *list, size_t n)
{
    gpu_column_list now;
    size_t first = 0;
    unsigned blocks;
    int failed = 0;
    unsigned char *taken = untaken(e, n);
    if (!taken || reserve_slots(e, n))
        return -1;
    const int flat = are_flat_pairs(list, n);
    const auto alike = [&](size_t a, size_t b) { return alike_pairs(&list[a], &list[b]); };
    const auto fill = [&](gpu_columns *c, size_t i) {
        const train_tensor *x = list[i].x;
        list[i].y->inverse = 1;
        *c = gpu_columns{at_of(list[i].y), at_of(x), x->rows, x->cols, slot_of(e, list[i].counts, &failed)};
        return flat ? flat_blocks(x->cols) : column_blocks(x->cols);
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0)
        if (flat)
            GPU_LAUNCH(flat_column_sums_kernel, blocks, GPU_FLAT_COLUMN_THREADS, 0, format_of(list[first].y),
                       format_of(list[first].x), now);
        else
            GPU_LAUNCH(column_sums_kernel, blocks, dim3(GPU_COLUMNS, GPU_COLUMN_ROWS), 0, format_of(list[first].y),
                       format_of(list[first].x), now);
    return failed ? -1 : cuda_launched(e, "column_sums");
}

/* ---- the loss ---- */

static int is_binary32(const mpsim_format *math)
{
    gpu_format f;
    return !math || (gpu_format_set(&f, math) == 0 && f.kind == GPU_BINARY32);
}

static int check_math(train_engine *e, const char *operation, const mpsim_format *math)
{
    if (is_binary32(math))
        return 0;
    return cuda_fail(e, "%s: the device computes it in binary32 only", operation);
}

/* The labels on the device, NULL after an error. */
static uint32_t *labels_to_device(train_engine *e, const uint32_t *labels, size_t rows)
{
    uint32_t *to = static_cast<uint32_t *>(buffer_of(e, 0, rows * sizeof *labels));
    return to && upload(e, "softmax_xent", to, labels, rows * sizeof *labels) == 0 ? to : NULL;
}

static int cuda_softmax_xent(train_engine *e, train_tensor *dx, const train_tensor *x, const uint32_t *labels,
                             float coefficient, const mpsim_format *math, float *mean_loss, uint64_t *correct,
                             train_counts *counts)
{
    gpu_softmax p;
    int failed = 0;
    memset(&p, 0, sizeof p);
    if (check_math(e, "softmax_xent", math))
        return -1;
    p.from = format_of(x);
    p.to = dx ? format_of(dx) : p.from;
    p.rows = x->rows;
    p.classes = x->cols;
    p.coefficient = coefficient;
    const uint32_t *on_device = labels_to_device(e, labels, x->rows);
    float *losses = static_cast<float *>(buffer_of(e, 1, x->rows * sizeof(float)));
    if (!on_device || !losses || reserve_slots(e, 2))
        return -1;
    gpu_word *slot = slot_of(e, dx ? counts : NULL, &failed);
    gpu_word *score = slot_for(e, CUDA_SCORE, mean_loss, correct);
    if (failed || !score)
        return -1;
    if (is_flat(x) && (!dx || is_flat(dx)))
        GPU_LAUNCH(flat_loss_kernel, blocks_of(x->rows, GPU_SOFTMAX_THREADS / 32), GPU_SOFTMAX_THREADS, 0, p, losses,
                   dx ? at_of(dx) : NULL, at_of(x), on_device, reinterpret_cast<unsigned *>(score + 1), slot);
    else
        GPU_LAUNCH(softmax_kernel, blocks_of(x->rows, GPU_SOFTMAX_THREADS / 32), GPU_SOFTMAX_THREADS, 0, p, losses,
                   dx ? at_of(dx) : NULL, at_of(x), on_device, reinterpret_cast<unsigned *>(score + 1), slot);
    GPU_LAUNCH(mean_kernel, 1, GPU_MEAN_THREADS, 0, losses, x->rows, (float)x->rows, reinterpret_cast<float *>(score));
    if (dx)
        dx->inverse = 1;
    return cuda_launched(e, "softmax_xent");
}

/* ---- batch normalisation ---- */

/* What all three share; scratch is two numbers a channel. */
static int batchnorm_begin(train_engine *e, const mpsim_batchnorm *b, const train_tensor *x, gpu_batchnorm *g,
                           gpu_channel *scratch)
{
    memset(g, 0, sizeof *g);
    if (check_math(e, "batchnorm", b->math))
        return -1;
    g->x = format_of(x);
    g->rows = x->rows;
    g->channels = x->cols;
    g->n = (float)x->rows;
    g->eps = b->eps;
    g->n_less_one = (float)(x->rows - 1);
    g->momentum = b->momentum;
    float *at = static_cast<float *>(buffer_of(e, 2, 2 * x->cols * sizeof(float)));
    scratch->mean = at;
    scratch->inverse = at ? at + x->cols : NULL;
    return at ? 0 : -1;
}

static int cuda_batchnorm(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, train_tensor *mean,
                          train_tensor *inverse, train_tensor *running_mean, train_tensor *running_var,
                          const train_tensor *x, const train_tensor *weight, const train_tensor *bias,
                          train_counts *counts)
{
    gpu_batchnorm g;
    gpu_channel scratch;
    int failed = 0;
    if (x->rows == 0)
        return cuda_fail(e, "batchnorm: no rows");
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed || batchnorm_begin(e, b, x, &g, &scratch))
        return -1;
    g.y = format_of(y);
    g.mean = format_of(mean);
    g.inverse = format_of(inverse);
    g.weight = format_of(weight);
    g.bias = format_of(bias);
    mean->inverse = inverse->inverse = 1;
    if (x->cols == 0)
        return wrote(e, "batchnorm", y);
    GPU_LAUNCH(batchnorm_statistics_kernel, column_blocks(x->cols), dim3(GPU_COLUMNS, GPU_COLUMN_ROWS), 0, g, scratch,
               at_of(mean), at_of(inverse), static_cast<float *>(at_of(running_mean)),
               static_cast<float *>(at_of(running_var)), at_of(x));
    GPU_LAUNCH(batchnorm_apply_kernel, blocks_of(size_of(x), 256), 256, 0, g, scratch, at_of(y), at_of(x),
               at_of(weight), at_of(bias), slot);
    return wrote(e, "batchnorm", y);
}

static int cuda_batchnorm_backward(train_engine *e, const mpsim_batchnorm *b, train_tensor *dx, train_tensor *dweight,
                                   train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                                   const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                                   train_counts *counts)
{
    gpu_batchnorm g;
    gpu_channel scratch;
    int failed = 0;
    if (x->rows == 0)
        return cuda_fail(e, "batchnorm_backward: no rows");
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed || batchnorm_begin(e, b, x, &g, &scratch))
        return -1;
    g.y = format_of(dy);
    g.dx = format_of(dx);
    g.mean = format_of(mean);
    g.inverse = format_of(inverse);
    g.weight = format_of(weight);
    g.dweight = format_of(dweight);
    g.dbias = format_of(dbias);
    dweight->inverse = dbias->inverse = 1;
    if (x->cols == 0)
        return wrote(e, "batchnorm_backward", dx);
    GPU_LAUNCH(batchnorm_gradients_kernel, column_blocks(x->cols), dim3(GPU_COLUMNS, GPU_COLUMN_ROWS), 0, g, scratch,
               at_of(dweight), at_of(dbias), at_of(dy), at_of(x), at_of(mean), at_of(inverse));
    GPU_LAUNCH(batchnorm_backward_kernel, blocks_of(size_of(x), 256), 256, 0, g, scratch, at_of(dx), at_of(dy),
               at_of(x), at_of(mean), at_of(inverse), at_of(weight), slot);
    return wrote(e, "batchnorm_backward", dx);
}

static int cuda_batchnorm_inference(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, const train_tensor *x,
                                    const train_tensor *running_mean, const train_tensor *running_var,
                                    const train_tensor *weight, const train_tensor *bias)
{
    gpu_batchnorm g;
    gpu_channel scratch;
    if (batchnorm_begin(e, b, x, &g, &scratch))
        return -1;
    g.y = format_of(y);
    g.mean = format_of(running_mean);
    g.inverse = format_of(running_var);
    g.weight = format_of(weight);
    g.bias = format_of(bias);
    if (size_of(x) == 0)
        return wrote(e, "batchnorm_inference", y);
    GPU_LAUNCH(batchnorm_running_kernel, blocks_of(x->cols, 256), 256, 0, g, scratch, at_of(running_mean),
               at_of(running_var));
    GPU_LAUNCH(batchnorm_apply_kernel, blocks_of(size_of(x), 256), 256, 0, g, scratch, at_of(y), at_of(x),
               at_of(weight), at_of(bias), static_cast<gpu_word *>(NULL));
    return wrote(e, "batchnorm_inference", y);
}
