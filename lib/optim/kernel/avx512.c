/* avx512.c -- the loops of optimizer steps in AVX-512; compiled with its flags. */
#include "../../simd/avx512.h"
#include "kernels.h"
