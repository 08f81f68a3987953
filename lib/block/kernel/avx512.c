/* avx512.c -- the functions for AVX-512; compiled with its flags. */
#include "../../simd/avx512.h"
#include "vector.h"
