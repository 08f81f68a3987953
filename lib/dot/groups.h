/* groups.h -- the fast path of instructions that add few products among themselves first: Arm's bfdot in both its
 * forms, the exact sums of AMX-FP8.
 *
 * Rounding to odd: lanes of binary32, where products that are not tiny are exact. A row with a sum that is the largest number
 * or none is added again, with a look at each sum.
 *
 * The others: lanes of binary64. Products of the operands are exact. A sum of two is rounded to odd (see rounded.h), after which
 * a rounding to 24 bits to nearest is that of the exact value. Exact sums are kept in two parts:
 * products rounded to multiples of 1, and what is left of them, multiples of 2^-40; of 4096 products below 2^37 the
 * sums of both parts are exact.
 *
 * Sums that are tiny become zeros where the model says so: with rounding to odd no number below 2^-126 becomes 2^-126,
 * and sums of numbers of binary32 are exact there. Lanes whose sum is beyond binary32 are reported. */
#pragma once

#include "rounded.h"

enum {
    MPSIM_GROUP_ODD,   /* two products, everything rounded to odd and flushed */
    MPSIM_GROUP_PAIRS, /* the exact sum of two products, to nearest           */
    MPSIM_GROUP_EXACT  /* the exact sum of a chunk, to nearest, and flushed   */
};

typedef struct mpsim_group {
    int kind;
    size_t chunk;
    mpsim_place place;
} mpsim_group;

/* mpsim_group_init -- whether the fast path can do this model with these operands; fills *p. */
int mpsim_group_init(mpsim_group *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* An odd function -- the same of the kind ODD in binary32. */
typedef void mpsim_odd_groups_function(const float *a, size_t next, const float *b, float *s, size_t rows,
                                       size_t depth);

/* A group function -- all chunks over `depth` products of `rows` rows of a and a panel of b; binary64 values, as
 * mpsim_rounded_function. redo[r] |= the columns that the reference must do. */
typedef void mpsim_group_function(const mpsim_group *p, const double *a, size_t next, const double *b, double *s,
                                  size_t rows, size_t depth, unsigned *redo);
