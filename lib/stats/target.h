/* target.h -- what a cast of binary32 numbers does, binade by binade; see cells.h. */
#pragma once

#include "sum.h"

#include <mpsim/summary.h>

/* A cast to nearest or toward zero with a scale that is a power of two, into a signed format with a
 * zero. Its thresholds are magnitudes of binary32, as words: results are zero below `least`, zero or
 * subnormal below `normal`, beyond the largest number from `over` on; 0x7f800000 is none. */
typedef struct mpsim_target {
    size_t index;  /* of the cast                                                   */
    int kind;      /* MPSIM_CELL_NEAREST, MPSIM_CELL_TRUNCATED                      */
    int cuts_zero; /* 1: numbers below `least` are flushed, not rounded, to zero    */
    int saturates; /* 1: what is beyond the largest number becomes that number      */
    uint32_t least, normal, over;
    int drop, floor;                 /* bits dropped from a significand of 24; fewer of them stay
                              where the biased exponent is below `floor`                    */
    uint64_t largest;                /* the largest number / scale: largest * 2^largest_exp, odd      */
    int largest_exp, largest_binade; /* and floor(log2) of it                               */
} mpsim_target;

/* Whether a cast is such a one; *t describes it. The cast is valid. like: NULL, or another one, which saves time
 * where it differs by its scale alone. */
int mpsim_target_init(mpsim_target *t, const mpsim_cast *cast, size_t index, const mpsim_target *like);

/* Bits dropped in the binade of biased exponent `key`: none if <= 0, all and the half if > 24. */
static inline int mpsim_target_drop(const mpsim_target *t, int key)
{
    return t->drop + (key < t->floor ? t->floor - key : 0);
}

/* What the error of a saturated number of a binade is: |x| - largest, exactly; |x|, since the
 * difference rounds to it; or neither, so that the elements are needed one by one. */
enum { MPSIM_EXCESS_EXACT, MPSIM_EXCESS_WHOLE, MPSIM_EXCESS_ROUNDED };
int mpsim_target_excess(const mpsim_target *t, int key);

/* Whether the elements of a binade are needed one by one. */
static inline int mpsim_target_leaves(const mpsim_target *t, int key)
{
    return t->saturates && t->over < (uint32_t)(key + 1) << 23 && mpsim_target_excess(t, key) == MPSIM_EXCESS_ROUNDED;
}
