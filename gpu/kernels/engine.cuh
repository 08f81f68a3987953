/* engine.cuh -- what the operations of the CUDA engine share: its memory, counters. What they are given has been
 * checked (lib/train/check/check.h). */
#pragma once

#include "codes.cuh"
#include "../train.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What train_tensor.data points to. */
struct cuda_data {
    train_data of;
    void *at; /* codes, on the device */
    gpu_format format;
};

struct cuda_index {
    train_indices of;
    int32_t *at;
};

/* Results that an operation waits for. */
struct cuda_results {
    gpu_word digest;
    unsigned amax;
};

/* Results that nobody waits for: on the device, four words to a slot, given to their owners by finish. */
enum cuda_kind {
    CUDA_COUNTS, /* train_counts                             */
    CUDA_MOVED,  /* two words: what moves, what of it stays  */
    CUDA_SCORE,  /* a float and an unsigned: loss, hits      */
    CUDA_AMAX    /* bits of a float                          */
};

struct cuda_owner {
    int kind;
    void *to, *more; /* places of a slot's results, or NULL */
};

/* PINNED: bytes of the host that copies to the device are made from, so that nobody waits for them. */
enum { CUDA_SLOTS = 1024, CUDA_WORDS = 4, CUDA_BUFFERS = 3, CUDA_PINNED = 4 << 20 };

struct cuda_self {
    int sm, multiprocessors;
    cuda_results *results; /* on the device */
    cuda_results host;
    gpu_word *slots; /* on the device */
    cuda_owner owners[CUDA_SLOTS];
    int used;
    unsigned char *pinned; /* on the host: what lies below pinned_used may still be copied */
    size_t pinned_used;
    void *buffer[CUDA_BUFFERS]; /* on the device: kept from one operation to the next */
    size_t bytes[CUDA_BUFFERS];
    gpu_recorder *recorder; /* NULL: launches are done at once */
    void *staging;          /* on the host */
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
        if (cuda_done(e, "memory", gpu_flush()))
            return NULL;
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

/* Blocks of a kernel with one element a thread, or more. */
static unsigned blocks_of(size_t n, unsigned threads)
{
    const size_t most = 4096, blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* ---- copies ---- */

/* Bytes of the device, after all work before: the host waits. */
static int read_back(train_engine *e, const char *operation, void *to, const void *from, size_t bytes)
{
    if (cuda_done(e, operation, gpu_flush()))
        return -1;
    self_of(e)->pinned_used = 0;
    return bytes ? cuda_done(e, operation, cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost)) : 0;
}

static int wait_for(train_engine *e, const char *operation)
{
    if (cuda_done(e, operation, gpu_flush()))
        return -1;
    self_of(e)->pinned_used = 0;
    return cuda_done(e, operation, cudaDeviceSynchronize());
}

/* Bytes to the device, which the caller may change afterwards; it waits for large ones only, or where many
 * have not been copied yet. */
static int upload(train_engine *e, const char *operation, void *to, const void *from, size_t bytes)
{
    cuda_self *self = self_of(e);
    if (bytes > CUDA_PINNED)
        return cuda_done(e, operation, gpu_flush()) ||
                       cuda_done(e, operation, cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice))
                   ? -1
                   : 0;
    if (bytes > CUDA_PINNED - self->pinned_used && wait_for(e, operation))
        return -1;
    unsigned char *at = self->pinned + self->pinned_used;
    if (bytes)
        memcpy(at, from, bytes);
    self->pinned_used += bytes;
    return bytes ? cuda_done(e, operation, gpu_copy_async(to, at, bytes)) : 0;
}

/* ---- counts and results ---- */

static void give_counts(train_counts *to, const gpu_word *c)
{
    to->nonzero += c[GPU_COUNT_NONZERO];
    to->lost += c[GPU_COUNT_LOST];
    to->overflow += c[GPU_COUNT_OVERFLOW];
    to->nonfinite += c[GPU_COUNT_NONFINITE];
}

static void give_moved(const cuda_owner *o, const gpu_word *c)
{
    if (o->to)
        *static_cast<uint64_t *>(o->to) += c[0];
    if (o->more)
        *static_cast<uint64_t *>(o->more) += c[1];
}

static void give_score(const cuda_owner *o, const gpu_word *c)
{
    if (o->to)
        memcpy(o->to, c, sizeof(float));
    if (o->more)
        *static_cast<uint64_t *>(o->more) = c[1];
}

static void give_amax(float *to, const gpu_word *c)
{
    const float amax = mpsim_f32_bits((uint32_t)c[0]);
    if (amax > *to)
        *to = amax;
}

static int flush_slots(train_engine *e)
{
    cuda_self *self = self_of(e);
    gpu_word host[CUDA_SLOTS * CUDA_WORDS];
    const size_t bytes = (size_t)self->used * CUDA_WORDS * sizeof *host;
    const int used = self->used;
    self->used = 0; /* also where the copy fails: owners may be gone when the next one is made */
    if (used == 0)
        return 0;
    if (read_back(e, "results", host, self->slots, bytes) ||
        cuda_done(e, "results", gpu_set_async(self->slots, 0, bytes)))
        return -1;
    for (int i = 0; i < used; i++) {
        const cuda_owner *o = &self->owners[i];
        const gpu_word *c = host + CUDA_WORDS * i;
        switch (o->kind) {
        case CUDA_COUNTS:
            give_counts(static_cast<train_counts *>(o->to), c);
            break;
        case CUDA_MOVED:
            give_moved(o, c);
            break;
        case CUDA_SCORE:
            give_score(o, c);
            break;
        default:
            give_amax(static_cast<float *>(o->to), c);
        }
    }
    return 0;
}

/* Before an operation takes n: none is given away before it is launched. */
static int reserve_slots(train_engine *e, size_t n)
{
    return n > (size_t)(CUDA_SLOTS - self_of(e)->used) ? flush_slots(e) : 0;
}

/* Zeros on the device, or what the same owner has there already; a score has always a new one. NULL
 * after an error. */
static gpu_word *slot_for(train_engine *e, cuda_kind kind, void *to, void *more)
{
    cuda_self *self = self_of(e);
    for (int i = 0; i < self->used && kind != CUDA_SCORE; i++) {
        const cuda_owner *o = &self->owners[i];
        if (o->kind == kind && o->to == to && o->more == more)
            return self->slots + CUDA_WORDS * i;
    }
    if (self->used == CUDA_SLOTS && flush_slots(e))
        return NULL;
    self->owners[self->used] = cuda_owner{kind, to, more};
    return self->slots + CUDA_WORDS * self->used++;
}

/* Where an operation counts; NULL: it does not. *failed is set after an error. */
static gpu_word *slot_of(train_engine *e, train_counts *counts, int *failed)
{
    gpu_word *slot = counts ? slot_for(e, CUDA_COUNTS, counts, NULL) : NULL;
    *failed = counts && !slot ? 1 : *failed;
    return slot;
}

/* Results as zeros, before an operation that waits for them. */
static int results_begin(train_engine *e, const char *operation)
{
    cuda_self *self = self_of(e);
    return cuda_done(e, operation, gpu_set_async(self->results, 0, sizeof *self->results));
}

/* Results on the host, NULL after an error. */
static const cuda_results *results_end(train_engine *e, const char *operation)
{
    cuda_self *self = self_of(e);
    if (cuda_launched(e, operation) || read_back(e, operation, &self->host, self->results, sizeof self->host))
        return NULL;
    return &self->host;
}

/* For operations that write y: the inverse of its scale is 1. */
static int wrote(train_engine *e, const char *operation, train_tensor *y)
{
    y->inverse = 1;
    return cuda_launched(e, operation);
}
