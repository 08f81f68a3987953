/* tolerance.h -- how far apart two tensors may be: --tolerance. */
#pragma once

#include "measure.h"

typedef struct tolerance {
    enum { TOLERANCE_NONE, TOLERANCE_ULP, TOLERANCE_RELATIVE, TOLERANCE_SQNR } by;
    double most; /* ULPs, relative error; of SQNR the least */
} tolerance;

/* diff_tolerance_parse -- "4ulp", "1e-3", "60dB"; NULL: no tolerance. 0, or EXIT_USAGE after a message. */
int diff_tolerance_parse(tolerance *t, const char *text, const char *verb);

/* diff_tolerance_holds -- whether what differs is within it. NaN and infinities are on one side only at no tolerance. */
int diff_tolerance_holds(const tolerance *t, const measure *m);
