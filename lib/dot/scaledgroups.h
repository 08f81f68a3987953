/* scaledgroups.h -- the fast path of MPSIM_ADDITION_GROUPED: rows of a times a panel of columns of b. Bits of the reference.
 *
 * Values are binary32 numbers; the sum of the products of a group is exact there. With P that sum as an integer, S the
 * product of the significands of the scales and e that of their exponents, a term is P S 2^e, in the units of
 * alignment, 2^(E - F), (|P| S 2^up) >> (E - e): integers of 64 bits, which truncates. So is the accumulator; the whole
 * sum is exact in binary64, is cut to 24 bits there and is a binary32 number then. Lanes whose E is out of
 * range, and lines with infinities or NaNs, also among scales, are left to the reference. */
#pragma once

#include "panel.h"

typedef struct mpsim_scaledgroups {
    int group, length; /* products of a group, of an addition                                       */
    float up_p;        /* P is the sum of products times this                                       */
    int up;            /* a term of exponent E is P S 2^up units                                    */
    int fraction, floor;
} mpsim_scaledgroups;

/* mpsim_scaledgroups_init -- whether the fast path can do this model with these operands and formats of scales (NULL: none);
 * fills *p. */
int mpsim_scaledgroups_init(mpsim_scaledgroups *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb,
                            const mpsim_format *sa, const mpsim_format *sb);

/* What stands of each group of a line: bit i where element i is not zero (0 where the scale is zero), the significand of
 * the scale and its exponent. Of b: MPSIM_PANEL columns, group-major. */
typedef struct mpsim_group_info {
    uint32_t *nonzero, *significand;
    int32_t *exponent;
} mpsim_group_info;

/* A groups function -- all additions over `depth` products, a multiple of the group, of `rows` rows of a, `next` values
 * and next / group groups apart; the rest as mpsim_fused_function. */
typedef void mpsim_scaledgroups_function(const mpsim_scaledgroups *p, const float *a, const mpsim_group_info *of_a,
                                         size_t next, const float *b, const mpsim_group_info *of_b, float *c,
                                         size_t rows, size_t depth, unsigned *redo);
