/* avx512.c -- the loop of the second digest for AVX-512; compiled with its flags. */
#include "../../simd/avx512.h"

#include "digest_loop.h"
