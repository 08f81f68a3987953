/* avx2.c -- functions of arrays in AVX2; compiled with its flags. */
#include "../../simd/avx2.h"
#include "vector.h"
