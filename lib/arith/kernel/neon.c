/* neon.c -- the kernel for NEON. */
#include "../../simd/neon.h"
#include "vector.h"
