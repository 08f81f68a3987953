/* generic.c -- the kernel in vectors of 128 bits. */
#include "../../simd/generic.h"
#include "vector.h"
