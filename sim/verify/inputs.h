/* inputs.h -- inputs for comparisons with the oracle, and what its rows share.
 *
 * Points are listed from the oracle's formats: a wrong row of the library's table cannot steer
 * the comparison around its own mistake. */
#pragma once

#include "oracle.h"

/* Bit patterns of binary32 or binary64 numbers. */
typedef struct inputs {
    int width; /* 32 or 64 */
    size_t n;
    uint64_t *u;
} inputs;

/* verify_inputs_points -- numbers of the format, midpoints of neighbours, and what lies beside them in
 * the source type, both signs; the ends of both; infinities and NaNs. All numbers of a format
 * that has at most `limit`, else both ends and a stride between. */
void verify_inputs_points(inputs *in, const oracle_format *of, size_t limit);

/* verify_inputs_random -- n patterns; three in four with an exponent of the format's range. */
void verify_inputs_random(inputs *in, const oracle_format *of, size_t n, uint64_t *state);

void verify_inputs_clear(inputs *in); /* no more inputs; keeps the width and the memory */
void verify_inputs_free(inputs *in);

double verify_inputs_value(const inputs *in, size_t i); /* as the oracle takes it */

/* verify_inputs_word -- 64 well mixed bits; *state is the position in the sequence (SplitMix64). */
uint64_t verify_inputs_word(uint64_t *state);

/* verify_inputs_code -- a code of the format: any; near 1; at an end; one in four each. */
uint64_t verify_inputs_code(const oracle_format *of, uint64_t *state);
