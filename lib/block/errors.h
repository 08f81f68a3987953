/* errors.h -- sums of squared errors, exact and in vectors.
 *
 * An error d that fits binary32 has a square of at most 48 bits, exact in binary64. It is added to level 0:
 * a sum of binary64 between 2^52 and 2^53 units, so that what it rounds to is a whole number of units, and
 * what was rounded off, exact again, goes to level 1, whose unit is 43 bits lower, and so on. A square is
 * below 2^43 units of level 0, a rest at most 2^42 of the next, so 256 additions do not leave the binade.
 * The bits of a level, less those that it began with, are units: an integer. Which units are taken, `top`
 * says; it moves with the scales of blocks. */
#pragma once

#include <mpsim/stats.h>

enum {
    MPSIM_ERROR_LEVELS = 5,
    MPSIM_ERROR_LANES = 8,       /* the most that a vector of binary64 has */
    MPSIM_ERROR_STEP = 43,       /* bits from a level to the next          */
    MPSIM_ERROR_ADDITIONS = 256, /* to a lane                              */
    MPSIM_ERROR_SLACK = 30       /* top may be so much larger than needed  */
};

typedef struct mpsim_block_errors {
    mpsim_cast_stats *to;
    int top;            /* squares are below 2^top                                      */
    unsigned additions; /* to each lane since the levels were emptied                   */
    float relative;     /* no d <= |x| * relative is a larger relative error            */
    double level[MPSIM_ERROR_LEVELS][2][MPSIM_ERROR_LANES]; /* of the first, the last lanes */
} mpsim_block_errors;

void mpsim_block_errors_begin(mpsim_block_errors *e, mpsim_cast_stats *to);

/* mpsim_block_errors_move -- empty the levels into the sum and begin anew with this top. */
void mpsim_block_errors_move(mpsim_block_errors *e, int top);

/* mpsim_block_errors_one -- one element by the reference; it is taken for compared already. */
void mpsim_block_errors_one(mpsim_block_errors *e, float x, float value);

/* mpsim_block_errors_relative -- x has the error d, which its square says already. */
void mpsim_block_errors_relative(mpsim_block_errors *e, float x, float d);

/* mpsim_block_errors_rest -- n rests that no level takes. */
void mpsim_block_errors_rest(mpsim_block_errors *e, const double *rest, size_t n);
