/* avx512.c -- casting arrays with AVX-512 (F, CD, DQ, BW, VL); compiled with its flags. */
#include "../../simd/avx512.h"

#include "loops.h"
