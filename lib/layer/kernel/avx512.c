/* avx512.c -- functions of arrays in AVX-512; compiled with its flags. */
#include "../../simd/avx512.h"
#include "vector.h"
