/* generic.c -- the loop of the second digest for 128-bit vectors of the compiler. */
#include "../../simd/generic.h"

#include "digest_loop.h"
