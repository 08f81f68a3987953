/* train.h -- training on a CUDA device: the engine of lib/include/train/engine.h as kernels. Plain C. */
#pragma once

#include <train/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* train_engine_cuda -- an engine on the first device: every operation a kernel, tensors as codes in
 * the device's memory. 0, or -1 with one line in `why`: no device, or none that the code runs on
 * (compute capability 8.0 and later). Closed by train_engine_close.
 *
 * What it has not, operations say with -1: formats that are no subset of binary32, models of
 * products without a kernel (gpu_gemm_has), block recipes but per tensor (GIVEN, AMAX_TE) and by
 * blocks of a multiple of 32 columns (E8M0_TE, AMAX_TE) with FP8 elements to nearest, optimizer
 * variants but ieee, torch and torch-foreach. */
int train_engine_cuda(train_engine *e, char *why, size_t size);

#ifdef __cplusplus
}
#endif
