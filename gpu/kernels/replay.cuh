/* replay.cuh -- launches of a thread on the default stream, kept until the host waits, and done as CUDA graphs.
 *
 * While a gpu_recorder is the thread's, GPU_LAUNCH keeps a kernel and its arguments, and gpu_copy_async and gpu_set_async keep copies and
 * fills. gpu_recorder::flush does what is kept, in order, by one launch of a graph. A graph is made once for a sequence of kernels.
 * When the sequence comes again, nodes whose arguments differ (a loss scale, a learning rate, a step, a random stream, an address of
 * the host) get the new ones, so that results are those of single launches, whatever the host decides between two waits. */
#pragma once

#include <string.h>

#include <type_traits>
#include <vector>

/* AT_ONCE: nodes of a graph at most, so that the device begins before all are known. KEPT: graphs at most. */
enum { GPU_NODES_AT_ONCE = 64, GPU_GRAPHS_KEPT = 64 };

enum gpu_node_kind { GPU_NODE_KERNEL, GPU_NODE_COPY, GPU_NODE_SET };

struct alignas(128) gpu_node_words {
    unsigned char bytes[128];
};

/* A kernel, or a copy or fill of device memory. */
struct gpu_node {
    gpu_node_kind kind;
    const void *function;
    dim3 grid, block;
    size_t shared;
    std::vector<gpu_node_words> arguments;
    std::vector<size_t> places; /* of arguments */
    void *to;
    const void *from;
    size_t bytes;
    int value;
    cudaGraphNode_t node;

    void *argument(size_t i)
    {
        return arguments[0].bytes + places[i];
    }
    int like(const gpu_node &b) const
    {
        return kind == b.kind && function == b.function && places == b.places;
    }
    int same(const gpu_node &b) const
    {
        return grid.x == b.grid.x && grid.y == b.grid.y && grid.z == b.grid.z && block.x == b.block.x &&
               block.y == b.block.y && block.z == b.block.z && shared == b.shared && to == b.to && from == b.from &&
               bytes == b.bytes && value == b.value && arguments.size() == b.arguments.size() &&
               (arguments.empty() ||
                memcmp(arguments.data(), b.arguments.data(), arguments.size() * sizeof(gpu_node_words)) == 0);
    }
};

struct gpu_replay {
    std::vector<gpu_node> nodes;
    cudaGraph_t graph;
    cudaGraphExec_t run;
};

/* What a recorder has done. */
struct gpu_replays {
    unsigned long long nodes, launches, made, changed; /* changed: nodes that got new arguments */
};

struct gpu_recorder {
    std::vector<gpu_node> pending;
    std::vector<gpu_replay> kept;
    gpu_replays done = {0, 0, 0, 0};
    cudaError_t error = cudaSuccess;

    ~gpu_recorder()
    {
        for (gpu_replay &r : kept)
            drop(r);
    }
    void add(gpu_node &&n)
    {
        pending.push_back(static_cast<gpu_node &&>(n));
        if (pending.size() >= GPU_NODES_AT_ONCE)
            begin();
    }
    /* All of it, and the first error so far. */
    cudaError_t flush()
    {
        begin();
        const cudaError_t e = error;
        error = cudaSuccess;
        return e;
    }

  private:
    void see(cudaError_t e)
    {
        error = error == cudaSuccess ? e : error;
    }
    static void drop(gpu_replay &r)
    {
        (void)cudaGraphExecDestroy(r.run);
        (void)cudaGraphDestroy(r.graph);
    }
    void begin()
    {
        if (pending.empty())
            return;
        done.nodes += pending.size();
        gpu_replay *r = find();
        if (r)
            change(*r);
        else
            r = make();
        pending.clear();
        if (r && error == cudaSuccess) {
            see(cudaGraphLaunch(r->run, 0));
            done.launches++;
        }
    }
    gpu_replay *find()
    {
        for (gpu_replay &r : kept) {
            size_t i = r.nodes.size() == pending.size() ? 0 : pending.size();
            while (i < pending.size() && r.nodes[i].like(pending[i]))
                i++;
            if (i == pending.size() && r.nodes.size() == i)
                return &r;
        }
        return nullptr;
    }
    static cudaKernelNodeParams kernel_of(gpu_node &n, std::vector<void *> &arguments)
    {
        arguments.clear();
        for (size_t i = 0; i < n.places.size(); i++)
            arguments.push_back(n.argument(i));
        return cudaKernelNodeParams{
            const_cast<void *>(n.function), n.grid, n.block, unsigned(n.shared), arguments.data(), nullptr};
    }
    static cudaMemsetParams fill_of(const gpu_node &n)
    {
        cudaMemsetParams p;
        memset(static_cast<void *>(&p), 0, sizeof p);
        p.dst = n.to;
        p.value = unsigned(n.value);
        p.elementSize = 1;
        p.width = n.bytes;
        p.height = 1;
        return p;
    }
    cudaError_t append(cudaGraph_t graph, gpu_node &n, const cudaGraphNode_t *behind)
    {
        std::vector<void *> arguments;
        const size_t number = behind ? 1 : 0;
        if (n.kind == GPU_NODE_COPY)
            return cudaGraphAddMemcpyNode1D(&n.node, graph, behind, number, n.to, n.from, n.bytes,
                                            cudaMemcpyHostToDevice);
        if (n.kind == GPU_NODE_SET) {
            const cudaMemsetParams p = fill_of(n);
            return cudaGraphAddMemsetNode(&n.node, graph, behind, number, &p);
        }
        const cudaKernelNodeParams p = kernel_of(n, arguments);
        return cudaGraphAddKernelNode(&n.node, graph, behind, number, &p);
    }
    gpu_replay *make()
    {
        gpu_replay r;
        if (kept.size() == GPU_GRAPHS_KEPT) {
            drop(kept.front());
            kept.erase(kept.begin());
        }
        cudaError_t e = cudaGraphCreate(&r.graph, 0);
        if (e != cudaSuccess) {
            see(e);
            return nullptr;
        }
        r.nodes.swap(pending);
        for (size_t i = 0; i < r.nodes.size() && e == cudaSuccess; i++)
            e = append(r.graph, r.nodes[i], i ? &r.nodes[i - 1].node : nullptr);
        if (e == cudaSuccess)
            e = cudaGraphInstantiate(&r.run, r.graph, 0);
        if (e != cudaSuccess) {
            (void)cudaGraphDestroy(r.graph);
            see(e);
            return nullptr;
        }
        done.made++;
        kept.push_back(r);
        return &kept.back();
    }
    /* Nodes that are to do something else than the last time. */
    void change(gpu_replay &r)
    {
        for (size_t i = 0; i < r.nodes.size(); i++) {
            gpu_node &n = r.nodes[i];
            if (n.same(pending[i]))
                continue;
            const cudaGraphNode_t node = n.node;
            n = pending[i];
            n.node = node;
            see(set(r.run, n));
            done.changed++;
        }
    }
    static cudaError_t set(cudaGraphExec_t run, gpu_node &n)
    {
        std::vector<void *> arguments;
        if (n.kind == GPU_NODE_COPY)
            return cudaGraphExecMemcpyNodeSetParams1D(run, n.node, n.to, n.from, n.bytes, cudaMemcpyHostToDevice);
        if (n.kind == GPU_NODE_SET) {
            const cudaMemsetParams p = fill_of(n);
            return cudaGraphExecMemsetNodeSetParams(run, n.node, &p);
        }
        const cudaKernelNodeParams p = kernel_of(n, arguments);
        return cudaGraphExecKernelNodeSetParams(run, n.node, &p);
    }
};

/* The thread's, or NULL: launches are done at once. */
inline thread_local gpu_recorder *gpu_recording = nullptr;

/* An argument behind those of n, as the kernel takes it. */
template <class P, class A>
static inline void gpu_node_argument(gpu_node &n, size_t *at, const A &a)
{
    typedef std::remove_cv_t<std::remove_reference_t<P>> type;
    static_assert(std::is_trivially_copyable<type>::value, "arguments of kernels are bytes");
    const type value = a;
    *at = (*at + alignof(type) - 1) / alignof(type) * alignof(type);
    n.places.push_back(*at);
    n.arguments.resize((*at + sizeof value) / sizeof(gpu_node_words) + 1);
    memcpy(n.arguments[0].bytes + *at, static_cast<const void *>(&value), sizeof value);
    *at += sizeof value;
}

template <class... P, class... A>
static inline void gpu_record(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, const A &...arguments)
{
    gpu_node n = {};
    size_t at = 0;
    n.kind = GPU_NODE_KERNEL;
    n.function = reinterpret_cast<const void *>(kernel);
    n.grid = grid;
    n.block = block;
    n.shared = shared;
    (gpu_node_argument<P>(n, &at, arguments), ...);
    gpu_recording->add(static_cast<gpu_node &&>(n));
}

/* Bytes of pinned memory of the host, which must stay as they are until the host has waited. */
static inline cudaError_t gpu_copy_async(void *to, const void *from, size_t bytes)
{
    if (!gpu_recording)
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice);
    gpu_node n = {};
    n.kind = GPU_NODE_COPY;
    n.to = to;
    n.from = from;
    n.bytes = bytes;
    gpu_recording->add(static_cast<gpu_node &&>(n));
    return cudaSuccess;
}

static inline cudaError_t gpu_set_async(void *to, int value, size_t bytes)
{
    if (!gpu_recording || bytes == 0)
        return cudaMemsetAsync(to, value, bytes);
    gpu_node n = {};
    n.kind = GPU_NODE_SET;
    n.to = to;
    n.value = value;
    n.bytes = bytes;
    gpu_recording->add(static_cast<gpu_node &&>(n));
    return cudaSuccess;
}

static inline cudaError_t gpu_flush()
{
    return gpu_recording ? gpu_recording->flush() : cudaSuccess;
}
