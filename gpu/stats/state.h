/* state.h -- what the kernel of binary32 elements writes: integers that add up, and maxima.
 *
 * A sum is a fixed-point number in limbs of 32 bits, each kept in 64: limb i has the weight
 * 2^(32 i + STATE_LOWEST). That holds every binary32 number, the square of every difference of two that binary64 has, and
 * as many of them as there is memory. Everything begins as zero. */
#pragma once

enum {
    STATE_LIMBS = 26,
    STATE_LOWEST = -512,
    STATE_BINS = 277 /* by exponent, from -149 on */
};

/* Places in the array of words. */
enum {
    STATE_ZERO,
    STATE_INF,
    STATE_NAN,
    STATE_MAX,   /* the largest finite magnitude, as a word of binary32: a maximum     */
    STATE_UNMIN, /* 2^32 - 1 less the smallest that is not zero: a maximum; 0: none    */
    STATE_SUM,
    STATE_SQUARES = STATE_SUM + STATE_LIMBS,
    STATE_HISTOGRAM = STATE_SQUARES + STATE_LIMBS,
    STATE_CASTS = STATE_HISTOGRAM + STATE_BINS
};

/* And from STATE_CASTS on, of each cast. */
enum {
    STATE_EXACT, /* numbers that stay as they are, but zeros                           */
    STATE_UNDERFLOW,
    STATE_SUBNORMAL,
    STATE_OVERFLOW,
    STATE_LEFT,   /* elements without a finite result                                  */
    STATE_RATIO,  /* the bits of a binary64: the largest relative error, a maximum      */
    STATE_ERRORS, /* the sum of the squared errors                                      */
    STATE_LEFT_SQUARES = STATE_ERRORS + STATE_LIMBS,
    STATE_CAST = STATE_LEFT_SQUARES + STATE_LIMBS
};

static inline unsigned state_words(unsigned casts)
{
    return STATE_CASTS + casts * STATE_CAST;
}
