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

#ifdef __cplusplus
}
#endif
