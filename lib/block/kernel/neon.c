/* neon.c -- the functions for NEON. */
#include "../../simd/neon.h"
#include "vector.h"
