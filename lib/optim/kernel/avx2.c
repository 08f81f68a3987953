/* avx2.c -- the loops of optimizer steps in AVX2 and FMA; compiled with their flags. */
#include "../../simd/avx2.h"
#include "kernels.h"
