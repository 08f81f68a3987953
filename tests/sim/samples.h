/* samples.h -- for tests of mpsim diff: two files of one tensor, and what is told of them. */
#pragma once

#include "sim/diff/sequence.h"

#include <stddef.h>
#include <stdint.h>

enum { ROWS = 12, COLUMNS = 20, SMALL = ROWS * COLUMNS };

typedef struct sample {
    float *x;
    uint64_t shape[2];
    size_t n;
    const char *format; /* of the file; NULL: binary32 */
} sample;

typedef struct told {
    int n;
    finding found;
    measure all;
    match_how how;
    char names[64][40];
} told;

extern uint64_t sample_state; /* of all random numbers below */
double sample_uniform(void);  /* in [0, 1)                    */

/* Numbers of a few binades, both signs, none zero; its x is the caller's to free, as a copy's. */
sample sample_make(size_t rows);
sample sample_copy(const sample *s);

/* A path for a file of this process; valid until the fourth call after this one. */
const char *sample_path(const char *name);

/* What is told of two files, and of files of two samples. within: a tolerance, or NULL. */
told sample_run(const char *a, const char *b, const char *within);
told sample_compare(const sample *a, const sample *b, const char *within);
