/* blockcompare.h -- a matrix quantised by the library and by the oracle (oracle/block.h): codes,
 * values, scales, statistics. */
#pragma once

#include "oracle/block.h"

#include <mpsim/block.h>
#include <stddef.h>
#include <stdint.h>

enum { NMAX = 40000 }; /* elements of a matrix */

/* What was compared, and the first difference. */
typedef struct report {
    unsigned long long codes, values, blocks, stats, ties, wrong;
    char first[400];
} report;

/* What quantising the current matrix gave. */
typedef struct block_outputs {
    uint8_t codes[NMAX], scale_codes[NMAX];
    float values[NMAX], scales[NMAX], inverses[NMAX], amax[NMAX];
    mpsim_cast_stats casts;
    float tensor_scale;
} block_outputs;

extern block_outputs out;
extern const mpsim_blocks outputs; /* all of them */

/* The largest magnitude in rows box[0] to box[1] - 1 and columns box[2] to box[3] - 1. */
float block_amax(const row *r, const float *x, size_t cols, const size_t box[4]);

/* Quantises x and compares everything. */
void block_compare(report *p, const row *r, const float *x, size_t rows, size_t cols, float amax, float given);

/* Prints what was compared; a difference fails the test. */
void block_finish(const char *what, const report *p);
