/* generic.c -- the loops over cells for 128-bit vectors of the compiler. */
#include "../../simd/generic.h"

#include "cell_loops.h"
