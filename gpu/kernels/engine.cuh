/* engine.cuh -- what the operations of the CUDA engine share: its memory, checks, counters. */
#ifndef MPSIM_GPU_KERNELS_ENGINE_CUH
#define MPSIM_GPU_KERNELS_ENGINE_CUH

#include "codes.cuh"
#include "sums.cuh"
#include "../train.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What train_tensor.data points to. Views of fewer elements are allowed. */
struct cuda_data {
    void *at; /* codes, on the device */
    size_t n;
    gpu_format format;
};

struct cuda_index {
    int32_t *at;
    size_t n;
    int32_t largest;
};

/* Results that an operation waits for. */
struct cuda_results {
    gpu_squares squares;
    gpu_word digest, moved[2];
    unsigned found, amax, correct;
    float mean;
};

/* Counts are added up on the device, four to a slot, and given to their owners by finish. */
enum { CUDA_SLOTS = 256, CUDA_BUFFERS = 3 };

struct cuda_self {
    int sm;
    cuda_results *results; /* on the device */
    cuda_results host;
    gpu_word *slots; /* on the device */
    train_counts *owners[CUDA_SLOTS];
    int used;
    void *buffer[CUDA_BUFFERS]; /* on the device: kept from one operation to the next */
    size_t bytes[CUDA_BUFFERS];
    void *staging; /* on the host */
    size_t staging_bytes;
};

static cuda_self *self_of(train_engine *e)
{
    return static_cast<cuda_self *>(e->self);
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
cuda_fail(train_engine *e, const char *message, ...)
{
    va_list arguments;
    const int n = snprintf(e->error, sizeof e->error, "cuda: ");
    va_start(arguments, message);
    vsnprintf(e->error + n, sizeof e->error - (size_t)n, message, arguments);
    va_end(arguments);
    return -1;
}

/* 0 if a call, or the launch before, went well. */
static int cuda_done(train_engine *e, const char *operation, cudaError_t status)
{
    if (status == cudaSuccess)
        return 0;
    cudaGetLastError(); /* one that does not stay shall not meet the next launch */
    return cuda_fail(e, "%s: %s", operation, cudaGetErrorString(status));
}

static int cuda_launched(train_engine *e, const char *operation)
{
    return cuda_done(e, operation, cudaGetLastError());
}

/* ---- memory ---- */

static void *staging_of(train_engine *e, size_t bytes)
{
    cuda_self *self = self_of(e);
    if (!self->staging || self->staging_bytes < bytes) {
        free(self->staging);
        self->staging = malloc(bytes ? bytes : 1);
        self->staging_bytes = self->staging ? bytes : 0;
        if (!self->staging)
            cuda_fail(e, "out of memory (%zu bytes)", bytes);
    }
    return self->staging;
}

/* Buffer i of the device, of at least `bytes` bytes; NULL with a line. */
static void *buffer_of(train_engine *e, int i, size_t bytes)
{
    cuda_self *self = self_of(e);
    if (!self->buffer[i] || self->bytes[i] < bytes) {
        unsigned char *fresh = NULL;
        cudaFree(self->buffer[i]);
        self->buffer[i] = NULL;
        if (cuda_done(e, "memory", cudaMalloc(&fresh, bytes ? bytes : 1)))
            return NULL;
        self->buffer[i] = fresh;
        self->bytes[i] = bytes;
    }
    return self->buffer[i];
}

/* ---- tensors ---- */

static cuda_data *data_of(const train_tensor *x)
{
    return static_cast<cuda_data *>(x->data);
}

static void *at_of(const train_tensor *x)
{
    return x ? data_of(x)->at : NULL;
}

static const gpu_format &format_of(const train_tensor *x)
{
    return data_of(x)->format;
}

static size_t size_of(const train_tensor *x)
{
    return x->rows * x->cols;
}

static int fits(const train_tensor *x, size_t n)
{
    return x->rows == 0 || x->cols <= n / x->rows;
}

static int check(train_engine *e, const char *operation, const train_tensor *x)
{
    if (!x || !x->data || !x->format)
        return cuda_fail(e, "%s: a tensor is missing", operation);
    if (!fits(x, data_of(x)->n))
        return cuda_fail(e, "%s: %zu x %zu elements are asked of a tensor of %zu", operation,
                         x->rows, x->cols, data_of(x)->n);
    return 0;
}

static int check_shape(train_engine *e, const char *operation, const train_tensor *x, size_t rows,
                       size_t cols)
{
    if (check(e, operation, x))
        return -1;
    if (x->rows != rows || x->cols != cols)
        return cuda_fail(e, "%s: a tensor is %zu x %zu where %zu x %zu is needed", operation,
                         x->rows, x->cols, rows, cols);
    return 0;
}

static int check_formats(train_engine *e, const char *operation, const mpsim_format *a,
                         const mpsim_format *b)
{
    if (!a || !b)
        return cuda_fail(e, "%s: a format is missing", operation);
    if (mpsim_format_same(a, b))
        return 0;
    return cuda_fail(e, "%s: formats %s and %s must be one", operation, a->name, b->name);
}

/* Blocks of a kernel with one element a thread, or more. */
static unsigned blocks_of(size_t n, unsigned threads)
{
    const size_t most = 4096, blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* ---- counts and results ---- */

static int flush_counts(train_engine *e)
{
    cuda_self *self = self_of(e);
    gpu_word host[CUDA_SLOTS * GPU_COUNTERS];
    const size_t bytes = (size_t)self->used * GPU_COUNTERS * sizeof *host;
    if (self->used == 0)
        return 0;
    if (cuda_done(e, "counts", cudaMemcpy(host, self->slots, bytes, cudaMemcpyDeviceToHost)) ||
        cuda_done(e, "counts", cudaMemset(self->slots, 0, bytes)))
        return -1;
    for (int i = 0; i < self->used; i++) {
        const gpu_word *c = host + GPU_COUNTERS * i;
        self->owners[i]->nonzero += c[GPU_COUNT_NONZERO];
        self->owners[i]->lost += c[GPU_COUNT_LOST];
        self->owners[i]->overflow += c[GPU_COUNT_OVERFLOW];
        self->owners[i]->nonfinite += c[GPU_COUNT_NONFINITE];
    }
    self->used = 0;
    return 0;
}

/* Where an operation counts; NULL: it does not. *failed is set after an error. */
static gpu_word *slot_of(train_engine *e, train_counts *counts, int *failed)
{
    cuda_self *self = self_of(e);
    if (!counts)
        return NULL;
    for (int i = 0; i < self->used; i++)
        if (self->owners[i] == counts)
            return self->slots + GPU_COUNTERS * i;
    if (self->used == CUDA_SLOTS && flush_counts(e)) {
        *failed = 1;
        return NULL;
    }
    self->owners[self->used] = counts;
    return self->slots + GPU_COUNTERS * self->used++;
}

/* Results as zeros, before an operation that waits for them. */
static int results_begin(train_engine *e, const char *operation)
{
    cuda_self *self = self_of(e);
    return cuda_done(e, operation, cudaMemsetAsync(self->results, 0, sizeof *self->results));
}

/* Results on the host, NULL after an error. */
static const cuda_results *results_end(train_engine *e, const char *operation)
{
    cuda_self *self = self_of(e);
    if (cuda_launched(e, operation) ||
        cuda_done(
            e, operation,
            cudaMemcpy(&self->host, self->results, sizeof self->host, cudaMemcpyDeviceToHost)))
        return NULL;
    return &self->host;
}

/* For operations that write y: its numbers stand for themselves. */
static int wrote(train_engine *e, const char *operation, train_tensor *y)
{
    y->inverse = 1;
    return cuda_launched(e, operation);
}

#endif
