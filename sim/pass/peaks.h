/* peaks.h -- the largest magnitudes of elements, as scale rules may see them. */
#ifndef MPSIM_SIM_PASS_PEAKS_H
#define MPSIM_SIM_PASS_PEAKS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* As bits of binary32 without the sign, which grow with the magnitude, NaN above infinity; 0 without elements. */
typedef struct peak {
    uint32_t finite; /* of the finite elements           */
    uint32_t number; /* of those that are not NaN        */
    uint32_t all;
} peak;

/* The same, to which any thread may add. */
typedef struct shared_peak {
    _Atomic uint32_t finite, number, all;
} shared_peak;

void peak_add(peak *p, const float *x, size_t n);
void peak_merge(peak *to, const peak *from);
void peak_share(shared_peak *to, const peak *p);
peak peak_of(shared_peak *p);

float peak_float(uint32_t bits);

#endif
