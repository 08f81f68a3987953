/* nocuda.c -- what stands for cuda.c in a build without CUDA. */
#include "train.h"

const train_opener train_open_cuda = NULL;
