/* avx2.c -- the loop of the second digest for AVX2; compiled with its flags. */
#include "../../simd/avx2.h"

#include "digest_loop.h"
