/* generic.c -- casting arrays in vectors of 128 bits, on any machine. */
#include "../../simd/generic.h"

#include "loops.h"
