/* avx2.c -- the loops over cells for AVX2; compiled with its flags. */
#include "../../simd/avx2.h"

#include "cell_loops.h"
