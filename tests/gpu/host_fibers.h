/* host_fibers.h -- how tests/gpu/host.h runs a grid: fibers, meetings, shared memory, guards. */
#pragma once

#include "host_faults.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

enum gpu_host_wait { GPU_RUNS, GPU_ENDED, GPU_AT_BARRIER, GPU_IN_MEETING };

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

struct gpu_host_state {
    gpu_host_fiber *now;
    gpu_index block;
    dim3 block_dim, grid_dim;
    std::vector<gpu_host_fiber> fibers;
    unsigned threads, barrier, ended;
    uint64_t yields;
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
    char text[256];
    uint64_t launches, waits; /* waits: of the host for the device */
    uint64_t atomics;         /* on memory that is not a block's      */

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

/* What a thread calls in a loop that waits for another thread's word in memory. */
inline void gpu_host_yield()
{
    if (++gpu_host.yields > 10000000) {
        gpu_host_fail(cudaErrorLaunchFailure, "threads wait for each other without end");
    }
    gpu_host_to_scheduler();
}

/* ---- shared memory ---- */

inline void *gpu_host_shared(const void *tag, size_t bytes)
{
    for (const gpu_host_array &a : gpu_host.arrays)
        if (a.tag == tag)
            return gpu_host.shared + a.at;
    const size_t at = gpu_host.shared_used;
    gpu_host.shared_used += (bytes + GPU_HOST_GUARD + 63) / 64 * 64;
    if (gpu_host.shared_used > GPU_HOST_SHARED) {
        gpu_host_fail(cudaErrorLaunchFailure, "too much static shared memory");
        gpu_host_to_scheduler();
    }
    gpu_host.arrays.push_back(gpu_host_array{tag, at, bytes});
    return gpu_host.shared + at;
}

#define GPU_SHARED(type, name, dims)  \
    static const char name##_tag = 0; \
    typedef type name##_type dims;    \
    name##_type &name = *static_cast<name##_type *>(gpu_host_shared(&name##_tag, sizeof(name##_type)))
#define GPU_DYNAMIC_SHARED(type, name) type *const name = reinterpret_cast<type *>(gpu_host.shared)

inline void gpu_host_shared_begin(size_t dynamic)
{
    if (gpu_host.shared_room.empty())
        gpu_host.shared_room.resize(GPU_HOST_SHARED + 1024);
    const uintptr_t p = reinterpret_cast<uintptr_t>(gpu_host.shared_room.data());
    gpu_host.shared = gpu_host.shared_room.data() + (1024 - p % 1024) % 1024;
    const size_t used = gpu_host.shared_used ? gpu_host.shared_used : size_t(GPU_HOST_SHARED);
    memset(gpu_host.shared, 0xff, used);
    gpu_host.arrays.clear();
    gpu_host.arrays.push_back(gpu_host_array{nullptr, 0, dynamic});
    gpu_host.shared_used = (dynamic + GPU_HOST_GUARD + 63) / 64 * 64;
    memset(gpu_host.shared, 0xff, gpu_host.shared_used);
}

inline int gpu_host_guard_is_whole(const unsigned char *p)
{
    for (int i = 0; i < GPU_HOST_GUARD; i++)
        if (p[i] != 0xff)
            return 0;
    return 1;
}

inline void gpu_host_shared_check()
{
    for (const gpu_host_array &a : gpu_host.arrays)
        if (!gpu_host_guard_is_whole(gpu_host.shared + a.at + a.bytes))
            gpu_host_fail(cudaErrorLaunchFailure, "a write behind a shared array");
}

/* ---- launches ---- */

inline void gpu_host_stuck()
{
    char text[240] = "waiting for each other:";
    int said = 0;
    for (unsigned i = 0; i < gpu_host.threads && said < 3; i++) {
        const gpu_host_fiber *f = &gpu_host.fibers[i];
        if (i > 0 && f->wait == f[-1].wait && f->line == f[-1].line)
            continue;
        const size_t n = strlen(text);
        if (f->wait == GPU_ENDED)
            snprintf(text + n, sizeof text - n, " thread %u has ended;", i);
        else
            snprintf(text + n, sizeof text - n, " thread %u %s %s:%d;", i,
                     f->wait == GPU_AT_BARRIER ? "at __syncthreads" : "in a collective", f->file, f->line);
        said++;
    }
    gpu_host_fail(cudaErrorLaunchFailure, text);
}

inline void gpu_host_run_block()
{
    gpu_host.barrier = gpu_host.ended = 0;
    gpu_host.yields = 0;
    for (unsigned i = 0; i < gpu_host.threads; i++) {
        gpu_host_fiber *f = &gpu_host.fibers[i];
        f->number = i;
        f->thread.x = i % gpu_host.block_dim.x;
        f->thread.y = i / gpu_host.block_dim.x % gpu_host.block_dim.y;
        f->thread.z = i / gpu_host.block_dim.x / gpu_host.block_dim.y;
        f->wait = GPU_RUNS;
        f->file = "";
        f->line = 0;
        gpu_host_prepare(f);
    }
    while (gpu_host.ended < gpu_host.threads && gpu_host.error == cudaSuccess) {
        int ran = 0;
        for (unsigned i = 0; i < gpu_host.threads && gpu_host.error == cudaSuccess; i++)
            if (gpu_host.fibers[i].wait == GPU_RUNS) {
                gpu_host_to_fiber(&gpu_host.fibers[i]);
                ran = 1;
            }
        if (!ran)
            gpu_host_stuck();
    }
    for (unsigned i = 0; i < gpu_host.threads; i++) {
        uint64_t canary;
        memcpy(&canary, gpu_host.fibers[i].stack, sizeof canary);
        if (canary != GPU_HOST_CANARY)
            gpu_host_fail(cudaErrorLaunchFailure, "a fiber's stack is too small (GPU_HOST_STACK)");
    }
}

/* Every allocation's guards. */
inline cudaError_t gpu_host_check()
{
    for (const gpu_host_memory &m : gpu_host.memory)
        if (!gpu_host_guard_is_whole(m.base) || !gpu_host_guard_is_whole(m.base + GPU_HOST_GUARD + m.bytes)) {
            char text[120];
            snprintf(text, sizeof text, "a write beside an allocation of %zu bytes", m.bytes);
            gpu_host_fail(cudaErrorLaunchFailure, text);
        }
    return gpu_host.error;
}

inline void gpu_host_grid(dim3 grid, dim3 block, size_t shared, void (*body)(void *), void *argument)
{
    if (gpu_host.error != cudaSuccess)
        return;
    const uint64_t threads = uint64_t(block.x) * block.y * block.z;
    gpu_host.block = gpu_index{0, 0, 0};
    if (threads == 0 || threads > 1024 || grid.x == 0 || grid.x > 0x7fffffffu || grid.y == 0 || grid.y > 65535 ||
        grid.z == 0 || grid.z > 65535 || shared > 232448) {
        gpu_host_fail(cudaErrorInvalidConfiguration, "invalid configuration of a launch");
        return;
    }
    if (gpu_host.fibers.size() < threads)
        gpu_host.fibers.resize(threads);
    gpu_host.threads = unsigned(threads);
    gpu_host.block_dim = block;
    gpu_host.grid_dim = grid;
    gpu_host.body = body;
    gpu_host.argument = argument;
    gpu_host.dynamic_bytes = shared;
    gpu_host.launches++;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x && gpu_host.error == cudaSuccess; x++) {
                gpu_host.block = gpu_index{x, y, z};
                gpu_host_shared_begin(shared);
                gpu_host_run_block();
                gpu_host_shared_check();
            }
    gpu_host_check();
}

template <class... P, class... A>
static inline void gpu_host_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                                   A... arguments)
{
    if (gpu_host_faults(name, reinterpret_cast<const void *>(kernel)))
        gpu_host_fail(cudaErrorLaunchFailure, "a fault that the tests asked for");
    auto call = [&] { kernel(static_cast<P>(arguments)...); };
    gpu_host_grid(
        grid, block, shared, [](void *p) { (*static_cast<decltype(call) *>(p))(); }, &call);
}

#define GPU_LAUNCH_ON(stream, ...) ((void)(stream), GPU_LAUNCH(__VA_ARGS__))
#define GPU_LAUNCH(kernel, grid, block, shared, ...) gpu_host_launch(#kernel, kernel, grid, block, shared, __VA_ARGS__)
