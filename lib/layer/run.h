/* run.h -- what an operation on arrays in memory is; shared by run.c and kinds.c. See mpsim/between.h. */
#pragma once

#include "strided.h"

/* How an array takes part. */
typedef enum mpsim_layer_use {
    MPSIM_USE_ROWS,    /* the whole shape */
    MPSIM_USE_COLUMNS, /* a number a column */
    MPSIM_USE_SCALARS, /* a number a row */
    MPSIM_USE_TABLE,   /* entries of rows of columns */
    MPSIM_USE_TAKEN,   /* the entry of the table that a row's index says */
    MPSIM_USE_MASK     /* a byte an element */
} mpsim_layer_use;

enum {
    MPSIM_USE_IN = 1,
    MPSIM_USE_OUT = 2,
    MPSIM_USE_OPTIONAL = 4, /* may be missing: NULL then, */
    MPSIM_USE_ONES = 8,     /* or 1 everywhere, */
    MPSIM_USE_ZEROS = 16,   /* or 0 everywhere, */
    MPSIM_USE_ROOM = 32     /* or what is not wanted of a function that writes it */
};

typedef struct mpsim_layer_operand {
    uint8_t use, how;
} mpsim_layer_operand;

/* Some rows of all columns, or all rows of some columns, as dense rows of binary32. */
typedef struct mpsim_layer_part {
    size_t first, rows, cols; /* the first row */
    float *x[MPSIM_BETWEEN_ARRAYS];
    const uint8_t *mask;
    const uint32_t *index; /* of these rows */
    uint64_t found[2];
} mpsim_layer_part;

typedef enum mpsim_layer_cut {
    MPSIM_CUT_ROWS,    /* a part is some rows */
    MPSIM_CUT_COLUMNS, /* a part is some columns */
    MPSIM_CUT_ELEMENTS /* a part is some elements, of arrays without gaps of any shape */
} mpsim_layer_cut;

typedef mpsim_status mpsim_layer_some(const mpsim_between *o, mpsim_layer_part *p);

/* What a kind is: its arrays, and the function of a part. */
typedef struct mpsim_layer_row {
    mpsim_layer_operand arrays[MPSIM_BETWEEN_ARRAYS];
    uint8_t n;
    uint8_t cut; /* mpsim_layer_cut */
    uint8_t indexed;
    mpsim_layer_some *some;
} mpsim_layer_row;

/* An index that is to be ignored. */
enum { MPSIM_BETWEEN_IGNORED = -1 };

/* mpsim_layer_row_of -- NULL for an unknown kind. */
const mpsim_layer_row *mpsim_layer_row_of(unsigned kind);
