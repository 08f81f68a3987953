/* avx2.c -- the kernel for AVX2; compiled with its flags. */
#define MPSIM_KERNEL_LANES 4
#define MPSIM_KERNEL_RUN mpsim_kernel_avx2
#include "vector.h"
