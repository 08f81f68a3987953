/* cuda.c -- opens the engine on a CUDA device. */
#include "train.h"

#include "../../gpu/gpu.h"
#include "../../gpu/train.h"

static int open_cuda(train_engine *e, char *why, size_t size)
{
    gpu_device d;
    return gpu_open(&d, why, size) ? -1 : train_engine_cuda(e, why, size);
}

const train_opener train_open_cuda = open_cuda;
