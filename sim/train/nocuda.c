/* nocuda.c -- what stands for cuda.c in a build without CUDA. */
#include "device.h"

const train_opener train_open_cuda = NULL;
