/* host_fibers.h -- what tests/gpu/host.h runs threads as: fibers, and where they meet. */
#pragma once

#include "host_faults.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utility>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
/* AddressSanitizer marks the frames of fibers that were given up for ever. */
#if defined(__has_feature)
#define GPU_HOST_FEATURE(name) __has_feature(name)
#else
#define GPU_HOST_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || GPU_HOST_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define GPU_HOST_FORGET(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define GPU_HOST_FORGET(p, n) ((void)0)
#endif

/* ---- types ---- */

struct gpu_index {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};

#define GPU_HOST_VECTORS(type, name)                                        \
    struct __align__(2 * sizeof(type)) name##2                              \
    {                                                                       \
        type x, y;                                                          \
    };                                                                      \
    struct __align__(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 \
    {                                                                       \
        type x, y, z, w;                                                    \
    };                                                                      \
    static inline name##2 make_##name##2(type x, type y)                    \
    {                                                                       \
        return name##2 {x, y};                                              \
    }                                                                       \
    static inline name##4 make_##name##4(type x, type y, type z, type w)    \
    {                                                                       \
        return name##4 {x, y, z, w};                                        \
    }
GPU_HOST_VECTORS(float, float)
GPU_HOST_VECTORS(int, int)
GPU_HOST_VECTORS(unsigned, uint)
GPU_HOST_VECTORS(unsigned short, ushort)
GPU_HOST_VECTORS(unsigned char, uchar)
GPU_HOST_VECTORS(unsigned long long, ulonglong)
GPU_HOST_VECTORS(double, double)

/* ---- errors ---- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureImplicit = 906
};

/* ---- fibers ---- */

enum gpu_host_wait { GPU_RUNS, GPU_ENDED, GPU_AT_BARRIER, GPU_IN_MEETING, GPU_AT_NAMED, GPU_AT_CLUSTER, GPU_POLLS };

enum { GPU_HOST_STACK = 131072, GPU_HOST_GUARD = 64, GPU_HOST_SHARED = 232448 + 65536 };

#if defined(__x86_64__)
#if defined(__clang__)
#define GPU_HOST_OPAQUE __attribute__((naked, noinline))
#else
#define GPU_HOST_OPAQUE __attribute__((naked, noinline, noipa))
#endif
/* Registers that a call preserves go to the stack, whose pointer is exchanged. */
GPU_HOST_OPAQUE inline void gpu_host_switch(void **, void *)
{
    __asm__ volatile("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\t"
                     "pushq %r15\n\tmovq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\tpopq %r15\n\t"
                     "popq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}
#endif

struct gpu_host_fiber;
/* Whether a fiber that waits as GPU_POLLS may go on. */
typedef int gpu_host_poll(const gpu_host_fiber *f);

struct gpu_host_fiber {
    gpu_index thread;
    unsigned number; /* in the block */
    gpu_host_wait wait;
    /* where it waits, and with what */
    const char *file;
    int line;
    unsigned first, count;
    uint32_t mask;
    size_t bytes;
    const void *in;
    unsigned char *out;
    gpu_host_poll *may_go_on;
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    unsigned char *stack;
};

struct gpu_host_array { /* a shared array of the block at hand */
    const void *tag;
    size_t at, bytes;
};

struct gpu_host_memory { /* of cudaMalloc */
    unsigned char *base; /* guard, bytes, guard */
    size_t bytes;
    int device;
};

/* A block while another one of its cluster runs: the fields of gpu_host_state of these names. */
struct gpu_host_member {
    gpu_index block;
    std::vector<gpu_host_fiber> fibers;
    unsigned barrier, ended;
    std::vector<unsigned char> shared_room;
    unsigned char *shared;
    size_t shared_used;
    std::vector<gpu_host_array> arrays;

    ~gpu_host_member()
    {
        for (gpu_host_fiber &f : fibers)
            free(f.stack);
    }
};

struct gpu_host_state {
    gpu_host_fiber *now;
    gpu_index block;
    dim3 block_dim, grid_dim;
    std::vector<gpu_host_fiber> fibers;
    unsigned threads, barrier, ended;
    unsigned next_cluster;                /* of the next launch; 0: 1 */
    unsigned cluster, rank;               /* blocks of a cluster; which of them is at hand */
    std::vector<gpu_host_member> members; /* by rank; that of the block at hand is empty */
    uint64_t serial;                      /* of the cluster at hand */
    uint64_t yields;
    int (*deliver)();                         /* what is asynchronous goes on by one step: 0, there is nothing */
    void (*explain)(char *text, size_t size); /* what is asynchronous and not done */
    void (*end)();                            /* of a cluster: what must not be left is an error */
#if defined(__x86_64__)
    void *scheduler;
#else
    ucontext_t scheduler;
#endif
    void (*body)(void *);
    void *argument;
    std::vector<unsigned char> shared_room;
    unsigned char *shared; /* aligned in it */
    size_t shared_used, dynamic_bytes;
    std::vector<gpu_host_array> arrays;
    std::vector<gpu_host_memory> memory;
    cudaError_t error;
    char text[512];
    uint64_t broken;          /* the cluster of the last error */
    uint64_t launches, waits; /* waits: of the host for the device */
    uint64_t atomics;         /* on memory that is not a block's      */
    uint64_t shared_atomics;  /* on a block's                         */
    int device_nans;          /* 1: a NaN of a fused multiply-add is 7fffffff, as on a device */

    ~gpu_host_state()
    {
        for (gpu_host_fiber &f : fibers)
            free(f.stack);
    }
};

inline gpu_host_state gpu_host;

inline void gpu_host_fail(cudaError_t error, const char *text)
{
    if (gpu_host.error != cudaSuccess)
        return;
    gpu_host.error = error;
    gpu_host.broken = gpu_host.serial;
    snprintf(gpu_host.text, sizeof gpu_host.text, "block (%u, %u, %u): %s", gpu_host.block.x, gpu_host.block.y,
             gpu_host.block.z, text);
}

/* ---- switching ---- */

inline void gpu_host_to_scheduler()
{
    gpu_host_fiber *self = gpu_host.now;
#if defined(__x86_64__)
    gpu_host_switch(&self->stack_pointer, gpu_host.scheduler);
#else
    swapcontext(&self->context, &gpu_host.scheduler);
#endif
}

inline void gpu_host_to_fiber(gpu_host_fiber *f)
{
    gpu_host.now = f;
#if defined(__x86_64__)
    gpu_host_switch(&gpu_host.scheduler, f->stack_pointer);
#else
    swapcontext(&gpu_host.scheduler, &f->context);
#endif
}

inline void gpu_host_entry()
{
    gpu_host.body(gpu_host.argument);
    gpu_host.now->wait = GPU_ENDED;
    gpu_host.ended++;
    gpu_host_to_scheduler();
    abort(); /* never resumed */
}

enum : uint64_t { GPU_HOST_CANARY = 0x5aa55aa53cc33cc3u };

inline void gpu_host_prepare(gpu_host_fiber *f)
{
    if (!f->stack)
        f->stack = static_cast<unsigned char *>(aligned_alloc(64, GPU_HOST_STACK));
    GPU_HOST_FORGET(f->stack, GPU_HOST_STACK);
    const uint64_t canary = GPU_HOST_CANARY;
    memcpy(f->stack, &canary, sizeof canary);
#if defined(__x86_64__)
    void **top = reinterpret_cast<void **>(f->stack + GPU_HOST_STACK);
    *--top = nullptr; /* return address of the entry, which does not return */
    *--top = reinterpret_cast<void *>(gpu_host_entry);
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f->stack_pointer = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = GPU_HOST_STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, gpu_host_entry, 0);
#endif
}

/* ---- meeting ---- */

/* __syncthreads */
inline void gpu_host_barrier(const char *file, int line)
{
    gpu_host_fiber *self = gpu_host.now;
    self->wait = GPU_AT_BARRIER;
    self->file = file;
    self->line = line;
    if (++gpu_host.barrier < gpu_host.threads) {
        gpu_host_to_scheduler();
        return;
    }
    gpu_host.barrier = 0;
    for (unsigned i = 0; i < gpu_host.threads; i++) {
        gpu_host_fiber *f = &gpu_host.fibers[i];
        if (f->line != line || (f->file != file && strcmp(f->file, file) != 0)) {
            char text[200];
            snprintf(text, sizeof text, "__syncthreads at %s:%d and %s:%d at once", file, line, f->file, f->line);
            gpu_host_fail(cudaErrorLaunchFailure, text);
            gpu_host_to_scheduler();
        }
        f->wait = GPU_RUNS;
    }
}

inline int gpu_host_in_group(const gpu_host_fiber *f, uint32_t mask, unsigned i)
{
    return f->count > 32 || (mask >> i & 1);
}

/* What all threads of a group give goes to each that receives. A whole group is collected once. */
inline void gpu_host_exchange(gpu_host_fiber *group, unsigned n, const gpu_host_fiber *self, uint32_t mask,
                              size_t bytes)
{
    static std::vector<unsigned char> all;
    const uint32_t everyone = n < 32 ? (1u << n) - 1 : 0xffffffffu;
    const int whole = self->count > 32 || (mask & everyone) == everyone;
    if (bytes == 0) /* they only meet, and have no memory */
        n = 0;
    all.resize(n * bytes);
    for (unsigned from = 0; whole && from < n; from++)
        memcpy(all.data() + from * bytes, group[from].in, bytes);
    for (unsigned to = 0; to < n; to++) {
        if (!gpu_host_in_group(self, mask, to) || !group[to].out)
            continue;
        if (whole)
            memcpy(group[to].out, all.data(), n * bytes);
        for (unsigned from = 0; !whole && from < n; from++)
            if (gpu_host_in_group(self, mask, from))
                memcpy(group[to].out + from * bytes, group[from].in, bytes);
    }
}

/* Threads first to first + count - 1 of the block meet (count at most 32: those of the mask). Each
 * gives `bytes` bytes and receives those of all, in the order of threads, absent ones untouched.
 * This is every warp collective, and what mma instructions are made of. */
inline void gpu_host_meet(unsigned first, unsigned count, uint32_t mask, const void *in, size_t bytes, void *out,
                          const char *file, int line)
{
    gpu_host_fiber *self = gpu_host.now;
    self->wait = GPU_IN_MEETING;
    self->file = file;
    self->line = line;
    self->first = first;
    self->count = count;
    self->mask = mask;
    self->bytes = bytes;
    self->in = in;
    self->out = static_cast<unsigned char *>(out);
    gpu_host_fiber *group = &gpu_host.fibers[first];
    const unsigned n = first + count <= gpu_host.threads ? count : gpu_host.threads - first;
    if (!gpu_host_in_group(self, mask, self->number - first)) {
        gpu_host_fail(cudaErrorLaunchFailure, "a thread is not in the mask of its collective");
        gpu_host_to_scheduler();
    }
    for (unsigned i = n; i-- > 0;) /* threads run in their order: the last is the one that is missing */
        if (gpu_host_in_group(self, mask, i) &&
            (group[i].wait != GPU_IN_MEETING || group[i].first != first || group[i].count != count ||
             group[i].mask != mask || group[i].bytes != bytes || group[i].line != line ||
             (group[i].file != file && strcmp(group[i].file, file) != 0))) {
            gpu_host_to_scheduler(); /* not the last one: whoever is completes it */
            return;
        }
    gpu_host_exchange(group, n, self, mask, bytes);
    for (unsigned i = 0; i < n; i++)
        if (gpu_host_in_group(self, mask, i))
            group[i].wait = GPU_RUNS;
}

/* bar.sync: `count` threads meet at a barrier of that number. */
inline void gpu_host_named(unsigned number, unsigned count, const char *file, int line)
{
    gpu_host_fiber *self = gpu_host.now;
    unsigned here = 1;
    self->wait = GPU_AT_NAMED;
    self->file = file;
    self->line = line;
    self->first = number;
    self->count = count;
    for (unsigned i = 0; i < gpu_host.threads; i++) {
        const gpu_host_fiber *f = &gpu_host.fibers[i];
        if (f == self || f->wait != GPU_AT_NAMED || f->first != number)
            continue;
        here++;
        if (f->count != count)
            gpu_host_fail(cudaErrorLaunchFailure, "a named barrier of two counts of threads at once");
    }
    if (number == 0 || number > 15 || count % 32 != 0)
        gpu_host_fail(cudaErrorLaunchFailure, "a named barrier that there is not");
    for (unsigned i = 0; here == count && i < gpu_host.threads; i++)
        if (gpu_host.fibers[i].wait == GPU_AT_NAMED && gpu_host.fibers[i].first == number)
            gpu_host.fibers[i].wait = GPU_RUNS;
    if (here < count || gpu_host.error != cudaSuccess)
        gpu_host_to_scheduler();
}

/* Threads of all blocks of the cluster meet. */
inline void gpu_host_cluster_barrier(const char *file, int line)
{
    unsigned here = 0;
    gpu_host.now->wait = GPU_AT_CLUSTER;
    gpu_host.now->file = file;
    gpu_host.now->line = line;
    for (int go = 0; go < 2; go++)
        for (unsigned r = 0; r < gpu_host.cluster; r++)
            for (unsigned i = 0; i < gpu_host.threads; i++) {
                gpu_host_fiber *f = r == gpu_host.rank ? &gpu_host.fibers[i] : &gpu_host.members[r].fibers[i];
                here += !go && f->wait == GPU_AT_CLUSTER;
                if (go && here == gpu_host.threads * gpu_host.cluster)
                    f->wait = GPU_RUNS;
            }
    if (here < gpu_host.threads * gpu_host.cluster)
        gpu_host_to_scheduler();
}

/* What a thread calls in a loop that waits for another thread's word in memory. */
inline void gpu_host_yield()
{
    if (++gpu_host.yields > 10000000) {
        gpu_host_fail(cudaErrorLaunchFailure, "threads wait for each other without end");
    }
    gpu_host_to_scheduler();
}
