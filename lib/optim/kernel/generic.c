/* generic.c -- the loops of optimizer steps in vectors of the compiler. */
#include "../../simd/generic.h"
#include "kernels.h"
