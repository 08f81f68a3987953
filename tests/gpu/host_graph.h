/* host_graph.h -- CUDA graphs on a CPU: nodes in a line, launched one after the other. See tests/gpu/host.h. A node keeps the bytes of its
 * arguments, as a device's does, so that a kernel of a replayed graph sees those and no others. */
#pragma once

#include "host_runtime.h"

#include <map>
#include <type_traits>
#include <utility>
#include <vector>

struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaMemsetParams {
    void *dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
};

/* What a launch of a kernel by its address needs. */
struct gpu_host_kernel {
    const char *name;
    unsigned cluster;
    std::vector<size_t> sizes;
    void (*call)(const gpu_host_kernel &k, const void *function, dim3 grid, dim3 block, size_t shared,
                 void *const *arguments);
};
inline std::map<const void *, gpu_host_kernel> gpu_host_kernels;

struct alignas(128) gpu_host_words {
    unsigned char bytes[128];
};

struct gpu_host_node {
    int kind; /* 0: a kernel, 1: a copy, 2: a fill */
    cudaKernelNodeParams kernel;
    std::vector<std::vector<gpu_host_words>> arguments;
    void *to;
    const void *from;
    size_t bytes;
    int value;
};
struct gpu_host_graph {
    std::vector<gpu_host_node *> nodes;
};
struct gpu_host_graph_run {
    std::map<gpu_host_node *, size_t> places;
    std::vector<gpu_host_node> nodes;
};
typedef gpu_host_graph *cudaGraph_t;
typedef gpu_host_node *cudaGraphNode_t;
typedef gpu_host_graph_run *cudaGraphExec_t;

/* Of graphs: launches, nodes that got other arguments, instances. */
struct gpu_host_graph_counts {
    uint64_t launches, changes, instances;
};
inline gpu_host_graph_counts gpu_host_graphs = {0, 0, 0};

static inline void gpu_host_node_keep(gpu_host_node *n, const cudaKernelNodeParams *p)
{
    n->kind = 0;
    n->kernel = *p;
    n->arguments.clear();
    const std::vector<size_t> &sizes = gpu_host_kernels[p->func].sizes;
    for (size_t i = 0; i < sizes.size(); i++) {
        n->arguments.emplace_back(sizes[i] / sizeof(gpu_host_words) + 1);
        memcpy(n->arguments.back()[0].bytes, p->kernelParams[i], sizes[i]);
    }
}

static inline void gpu_host_node_keep(gpu_host_node *n, void *to, const void *from, size_t bytes)
{
    n->kind = 1;
    n->to = to;
    n->from = from;
    n->bytes = bytes;
}

static inline void gpu_host_node_keep(gpu_host_node *n, const cudaMemsetParams *p)
{
    n->kind = 2;
    n->to = p->dst;
    n->bytes = p->width * p->elementSize;
    n->value = int(p->value);
}

static inline cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned)
{
    *g = new gpu_host_graph;
    return cudaSuccess;
}

/* A node behind the last one. */
template <class... A>
static inline cudaError_t gpu_host_graph_add(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *behind,
                                             size_t n, A... what)
{
    if (n != (g->nodes.empty() ? 0u : 1u) || (n && behind[0] != g->nodes.back()))
        return cudaErrorInvalidValue;
    *node = new gpu_host_node();
    gpu_host_node_keep(*node, what...);
    g->nodes.push_back(*node);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *behind,
                                                 size_t n, const cudaKernelNodeParams *p)
{
    return gpu_host_kernels.count(p->func) ? gpu_host_graph_add(node, g, behind, n, p) : cudaErrorInvalidValue;
}
static inline cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *behind,
                                                   size_t n, void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    return gpu_host_graph_add(node, g, behind, n, to, from, bytes);
}
static inline cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t g, const cudaGraphNode_t *behind,
                                                 size_t n, const cudaMemsetParams *p)
{
    return gpu_host_graph_add(node, g, behind, n, p);
}

static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t g, unsigned long long = 0)
{
    *run = new gpu_host_graph_run;
    for (gpu_host_node *n : g->nodes) {
        (*run)->places[n] = (*run)->nodes.size();
        (*run)->nodes.push_back(*n);
    }
    gpu_host_graphs.instances++;
    return cudaSuccess;
}

template <class... A>
static inline cudaError_t gpu_host_graph_set(cudaGraphExec_t run, cudaGraphNode_t node, A... what)
{
    if (!run->places.count(node))
        return cudaErrorInvalidValue;
    gpu_host_node_keep(&run->nodes[run->places[node]], what...);
    gpu_host_graphs.changes++;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t run, cudaGraphNode_t node,
                                                           const cudaKernelNodeParams *p)
{
    return node->kernel.func == p->func ? gpu_host_graph_set(run, node, p) : cudaErrorInvalidValue;
}
static inline cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t run, cudaGraphNode_t node, void *to,
                                                             const void *from, size_t bytes, cudaMemcpyKind)
{
    return gpu_host_graph_set(run, node, to, from, bytes);
}
static inline cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t run, cudaGraphNode_t node,
                                                           const cudaMemsetParams *p)
{
    return gpu_host_graph_set(run, node, p);
}

static inline cudaError_t gpu_host_node_run(gpu_host_node &n)
{
    if (n.kind == 1)
        return cudaMemcpyAsync(n.to, n.from, n.bytes, cudaMemcpyHostToDevice);
    if (n.kind == 2)
        return cudaMemsetAsync(n.to, n.value, n.bytes);
    std::vector<void *> arguments;
    for (auto &a : n.arguments)
        arguments.push_back(a[0].bytes);
    const gpu_host_kernel &k = gpu_host_kernels[n.kernel.func];
    k.call(k, n.kernel.func, n.kernel.gridDim, n.kernel.blockDim, n.kernel.sharedMemBytes, arguments.data());
    return gpu_host.error;
}

static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t)
{
    gpu_host_graphs.launches++;
    for (gpu_host_node &n : run->nodes) {
        const cudaError_t e = gpu_host_node_run(n);
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run)
{
    delete run;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    for (gpu_host_node *n : g->nodes)
        delete n;
    delete g;
    return cudaSuccess;
}

/* ---- kernels by their addresses ---- */

template <class... P, size_t... I>
static inline void gpu_host_call(std::index_sequence<I...>, const gpu_host_kernel &k, const void *function, dim3 grid,
                                 dim3 block, size_t shared, void *const *arguments)
{
    void (*const kernel)(P...) = reinterpret_cast<void (*)(P...)>(const_cast<void *>(function));
    gpu_host.next_cluster = k.cluster;
    gpu_host_launch(k.name, kernel, grid, block, shared,
                    *static_cast<std::remove_cv_t<std::remove_reference_t<P>> *>(arguments[I])...);
}

template <class... P>
static inline void gpu_host_invoke(const gpu_host_kernel &k, const void *function, dim3 grid, dim3 block, size_t shared,
                                   void *const *arguments)
{
    gpu_host_call<P...>(std::index_sequence_for<P...>(), k, function, grid, block, shared, arguments);
}

/* Before a kernel becomes part of a graph. */
template <class... P>
static inline void gpu_host_know(const char *name, void (*kernel)(P...))
{
    gpu_host_kernels[reinterpret_cast<const void *>(kernel)] = gpu_host_kernel{
        name, gpu_host.next_cluster, {sizeof(std::remove_cv_t<std::remove_reference_t<P>>)...}, gpu_host_invoke<P...>};
    gpu_host.next_cluster = 0;
}
