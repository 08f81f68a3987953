/* avx512.c -- the loops over cells for AVX-512; compiled with its flags. */
#include "../../simd/avx512.h"

#include "cell_loops.h"
