/* avx512.c -- the kernel for AVX-512 (F, DQ, BW, VL); compiled with its flags. */
#define MPSIM_KERNEL_LANES 8
#define MPSIM_KERNEL_RUN mpsim_kernel_avx512
#include "vector.h"
