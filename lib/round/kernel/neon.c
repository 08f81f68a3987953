/* neon.c -- casting arrays with NEON. */
#include "../../simd/neon.h"

#include "loops.h"
