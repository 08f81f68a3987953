/* record.h -- the records of mpsim dot: results of models beside exact sums. */
#pragma once

#include "distancereport.h"
#include "error.h"

/* What is multiplied, and how K is split. */
typedef struct dot_operands {
    const operand *a, *b;
    const uint64_t *seed; /* of generated operands; NULL: read           */
    const double *above;  /* the bound, or NULL                          */
    dot_split split;
    const size_t *tile; /* of a stream                                 */
    size_t tiles;       /* 3                                           */
    size_t parts;       /* of K, if more than one; else 0              */
} dot_operands;

/* A model at a depth. */
typedef struct dot_row {
    size_t k;
    const char *model, *result_format;
    dot_error e;
    const dot_distance *apart; /* e.given, where it is not e.rounded; else NULL */
    const dot_operands *operands;
} dot_row;

/* Columns of a dot_row, beside those of distances. */
enum { DOT_SHOW_DEPTH = SHOW_NEXT, DOT_SHOW_VALUE = 2 * SHOW_NEXT, DOT_SHOW_SPLIT = 4 * SHOW_NEXT };

extern const report_kind dot_kind; /* a dot_operands of dot_rows */
