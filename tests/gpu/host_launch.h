/* host_launch.h -- how tests/gpu/host.h launches a grid: shared memory and its guards, blocks of a cluster that take turns. */
#pragma once

#include "host_fibers.h"

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

/* The block of that rank of the cluster is at hand. */
inline void gpu_host_turn_to(unsigned rank)
{
    if (rank == gpu_host.rank)
        return;
    for (unsigned r : {gpu_host.rank, rank}) {
        gpu_host_member &m = gpu_host.members[r];
        std::swap(m.block, gpu_host.block);
        std::swap(m.fibers, gpu_host.fibers);
        std::swap(m.barrier, gpu_host.barrier);
        std::swap(m.ended, gpu_host.ended);
        std::swap(m.shared_room, gpu_host.shared_room);
        std::swap(m.shared, gpu_host.shared);
        std::swap(m.shared_used, gpu_host.shared_used);
        std::swap(m.arrays, gpu_host.arrays);
    }
    gpu_host.rank = rank;
}

/* The shared memory of a block of the cluster. */
inline unsigned char *gpu_host_shared_of(unsigned rank)
{
    return rank == gpu_host.rank ? gpu_host.shared : gpu_host.members[rank].shared;
}

inline const char *gpu_host_place(gpu_host_wait wait)
{
    switch (wait) {
    case GPU_AT_BARRIER:
        return "at __syncthreads";
    case GPU_AT_NAMED:
        return "at a named barrier";
    case GPU_AT_CLUSTER:
        return "at the cluster's barrier";
    case GPU_POLLS:
        return "waits for an mbarrier";
    default:
        return "in a collective";
    }
}

inline void gpu_host_stuck()
{
    char text[440] = "waiting for each other:";
    int said = 0;
    for (unsigned i = 0; i < gpu_host.threads && said < 3; i++) {
        const gpu_host_fiber *f = &gpu_host.fibers[i];
        if (i > 0 && f->wait == f[-1].wait && f->line == f[-1].line)
            continue;
        const size_t n = strlen(text);
        if (f->wait == GPU_ENDED)
            snprintf(text + n, sizeof text - n, " thread %u has ended;", i);
        else
            snprintf(text + n, sizeof text - n, " thread %u %s %s:%d;", i, gpu_host_place(f->wait), f->file, f->line);
        said++;
    }
    if (gpu_host.explain)
        gpu_host.explain(text + strlen(text), sizeof text - strlen(text));
    gpu_host_fail(cudaErrorLaunchFailure, text);
}

inline void gpu_host_block_begin()
{
    gpu_host.barrier = gpu_host.ended = 0;
    if (gpu_host.fibers.size() < gpu_host.threads)
        gpu_host.fibers.resize(gpu_host.threads);
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
}

/* Each thread of the block at hand that can runs until it waits; whether there was one. */
inline int gpu_host_block_pass()
{
    int ran = 0;
    for (unsigned i = 0; i < gpu_host.threads && gpu_host.error == cudaSuccess; i++) {
        gpu_host_fiber *const f = &gpu_host.fibers[i];
        if (f->wait == GPU_POLLS && f->may_go_on(f))
            f->wait = GPU_RUNS;
        if (f->wait == GPU_RUNS) {
            gpu_host_to_fiber(f);
            ran = 1;
        }
    }
    return ran;
}

inline void gpu_host_block_end()
{
    for (unsigned i = 0; i < gpu_host.threads; i++) {
        uint64_t canary;
        memcpy(&canary, gpu_host.fibers[i].stack, sizeof canary);
        if (canary != GPU_HOST_CANARY)
            gpu_host_fail(cudaErrorLaunchFailure, "a fiber's stack is too small (GPU_HOST_STACK)");
    }
    gpu_host_shared_check();
}

/* The blocks x to x + cluster - 1 of a row of the grid take turns: in every second cluster a block goes on as long as it can
 * before the next one begins. */
inline void gpu_host_run_cluster(gpu_index first)
{
    int goes_on = 1;
    gpu_host.yields = 0;
    gpu_host.serial++;
    for (unsigned r = 0; r < gpu_host.cluster; r++) {
        gpu_host_turn_to(r);
        gpu_host.block = gpu_index{first.x + r, first.y, first.z};
        gpu_host_shared_begin(gpu_host.dynamic_bytes);
        gpu_host_block_begin();
    }
    while (goes_on && gpu_host.error == cudaSuccess) {
        int ran = goes_on = 0;
        for (unsigned r = 0; r < gpu_host.cluster && gpu_host.error == cudaSuccess; r++) {
            gpu_host_turn_to(r);
            while (gpu_host_block_pass()) {
                ran = 1;
                if (gpu_host.serial % 2)
                    break;
            }
            goes_on |= gpu_host.ended < gpu_host.threads;
        }
        if (!ran && goes_on && !(gpu_host.deliver && gpu_host.deliver()))
            gpu_host_stuck();
    }
    for (unsigned r = 0; r < gpu_host.cluster; r++) {
        gpu_host_turn_to(r);
        gpu_host_block_end();
    }
    if (gpu_host.end)
        gpu_host.end();
    gpu_host_turn_to(0);
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
    gpu_host.cluster = gpu_host.next_cluster ? gpu_host.next_cluster : 1;
    gpu_host.next_cluster = 0;
    if (gpu_host.members.size() < gpu_host.cluster)
        gpu_host.members.resize(gpu_host.cluster);
    const uint64_t threads = uint64_t(block.x) * block.y * block.z;
    gpu_host.block = gpu_index{0, 0, 0};
    if (threads == 0 || threads > 1024 || grid.x == 0 || grid.x > 0x7fffffffu || grid.y == 0 || grid.y > 65535 ||
        grid.z == 0 || grid.z > 65535 || shared > 232448 || grid.x % gpu_host.cluster != 0) {
        gpu_host_fail(cudaErrorInvalidConfiguration, "invalid configuration of a launch");
        return;
    }
    gpu_host.threads = unsigned(threads);
    gpu_host.block_dim = block;
    gpu_host.grid_dim = grid;
    gpu_host.body = body;
    gpu_host.argument = argument;
    gpu_host.dynamic_bytes = shared;
    gpu_host.launches++;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x && gpu_host.error == cudaSuccess; x += gpu_host.cluster)
                gpu_host_run_cluster(gpu_index{x, y, z});
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

#define GPU_LAUNCH_NOW(stream, kernel, ...) ((void)(stream), gpu_host_launch(#kernel, kernel, __VA_ARGS__))
#define GPU_RECORD(kernel, ...) (gpu_host_know(#kernel, kernel), gpu_record(kernel, __VA_ARGS__))
/* Clusters of n blocks. */
#define GPU_LAUNCH_CLUSTERS(stream, n, ...) (gpu_host.next_cluster = (n), GPU_LAUNCH_ON(stream, __VA_ARGS__))
