/* avx2.c -- the functions for AVX2 and FMA; compiled with their flags. */
#include "../../simd/avx2.h"
#include "vector.h"
