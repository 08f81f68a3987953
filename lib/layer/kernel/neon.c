/* neon.c -- functions of arrays with NEON. */
#include "../../simd/neon.h"

#include "vector.h"
