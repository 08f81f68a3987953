/* unitfit.h -- the fitter: from all results of a binade, quadratics that give every bit again.
 *
 * The form is the one that NVIDIA's authors describe (Oberman and Siu, ARITH-17, 2005; US 7,366,745): the leading bits of a
 * fraction choose three coefficients, the other bits x are interpolated, x^2 is cut. Sums are multiples of 2^-fraction:
 *
 *   S = k + c1 x + ((c2 (x^2 >> drop)) >> less), cut to the result's significand; k includes what rounds
 *
 * Widths, index bits and cuts of a device are not known; the fitter looks for some that give all results. */
#pragma once

#include <stdint.h>

enum { FIT_SEGMENTS = 512 };

typedef struct fit_shape {
    int index_bits, low_bits; /* of the operand's fraction: together how many bits a table has */
    int fraction, drop, less;
} fit_shape;

typedef struct fit_segment {
    int64_t k, c1, c2;
} fit_segment;

typedef struct fit {
    fit_shape shape;
    fit_segment segment[FIT_SEGMENTS];
    int left_out; /* segments with results below 2^-16, or zeros: they have too few bits here */
} fit;

/* What S may be for a positive, normal result that is cut: *lo <= S < *hi. */
void fit_bounds(uint32_t result, int fraction, int64_t *lo, int64_t *hi);

/* fit_one -- a segment's coefficients, of its results in order. 1; 0: there are none of this shape. `slack`: S may leave its bounds by
 * so much. */
int fit_one(const fit_shape *s, const uint32_t *results, int64_t slack, fit_segment *to);

/* fit_table -- all 2^bits results of a binade, none negative. 1: every bit is given again by *f; 0: no shape that is tried
 * does. `segments`: how many are looked at, evenly; 0: all. */
int fit_table(fit *f, const uint32_t *results, int bits, int segments);

/* The result of operand i of the binade. */
uint32_t fit_result(const fit *f, uint32_t i);
