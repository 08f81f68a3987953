/* expand.h -- binary32 powers and logarithms of base 2 that are the same everywhere; of expand.c. */
#pragma once

#include <stdint.h>

/* x^y for x >= 0 or NaN, as C's pow where an argument is 0, 1, infinite or NaN; log2 x, x > 0. Computed in
 * binary64 by operations in a fixed order, with an error below 2^-44, and rounded to binary32. */
float mpsim_expand_power(float x, float y);
float mpsim_expand_log2(float x);

/* x^y, as near, in binary64; x >= 1 as a binary32 number. */
double mpsim_expand_wide(uint64_t x, double y);
