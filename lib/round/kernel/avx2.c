/* avx2.c -- casting arrays with AVX2; compiled with its flags. */
#include "../../simd/avx2.h"

#include "loops.h"
