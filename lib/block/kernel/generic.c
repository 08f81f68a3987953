/* generic.c -- the functions in vectors of 128 bits. */
#include "../../simd/generic.h"
#include "vector.h"
