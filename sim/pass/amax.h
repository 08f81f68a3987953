/* amax.h -- the largest magnitudes of elements, as scale rules may see them. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Three of them, as bits of binary32 without the sign: these grow with the magnitude, infinity and NaN above all numbers. 0
 * without elements. */
typedef struct amax3 {
    uint32_t finite; /* of the finite elements    */
    uint32_t number; /* of those that are not NaN */
    uint32_t all;
} amax3;

/* The same, which several threads add to: pass_amax3_share adds, pass_amax3_of reads. */
typedef struct shared_amax3 {
    _Atomic uint32_t finite, number, all;
} shared_amax3;

void pass_amax3_add(amax3 *p, const float *x, size_t n);
void pass_amax3_merge(amax3 *to, const amax3 *from);
void pass_amax3_share(shared_amax3 *to, const amax3 *p);
amax3 pass_amax3_of(shared_amax3 *p);

float pass_amax3_float(uint32_t bits);
