/* train.h -- training on a CUDA device: the engine of lib/include/train/engine.h as kernels. Plain C. */
#pragma once

#include <train/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* train_engine_cuda -- an engine on the current device of the thread, which has to be current in all later calls: every
 * operation a kernel, tensors as codes in the device's memory. 0, or -1 with one line in `why`: no device, or none that the code runs on
 * (compute capability 8.0 and later). Closed by train_engine_close.
 *
 * What it lacks, operations say with -1: formats that are no subset of binary32; models of products
 * without a kernel (gpu_gemm_has); block recipes whose rule of scales is not in the table of
 * scale_rule_of (kernels/engine_quantize.cuh), or whose elements are neither FP8 to nearest nor
 * NVFP4's; optimizers without `cuda` in lib/optim/traits.c; Kahan sums of updates. */
int train_engine_cuda(train_engine *e, char *why, size_t size);

/* train_engine_cuda_graphs -- on: from now on the engine keeps what it would launch, and does it as CUDA graphs when the host waits, or
 * when 64 kernels are kept. A graph is made once for a sequence of kernels; what differs the next time (a scale, a rate, a step) is put into
 * the graph. Results are the same bits. The thread must not launch on the default stream by itself meanwhile. off: launches at once.
 *
 * train_engine_cuda_replays -- what was done so since `on`. */
typedef struct train_replays {
    unsigned long long nodes;    /* kernels, copies and fills           */
    unsigned long long launches; /* of graphs                           */
    unsigned long long made;     /* graphs                              */
    unsigned long long changed;  /* nodes that got new arguments        */
} train_replays;
int train_engine_cuda_graphs(train_engine *e, int on);
void train_engine_cuda_replays(const train_engine *e, train_replays *r);

#ifdef __cplusplus
}
#endif
