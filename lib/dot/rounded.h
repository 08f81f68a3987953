/* rounded.h -- the fast path of software models in any format: chains of fused multiply-adds, of
 * products and sums, and trees, every place to nearest even.
 *
 * The columns of a panel are lanes of binary32 or binary64 numbers; each operation of the model is
 * one of the machine and one rounding to the format of its place. That the first changes nothing:
 *
 *  - Products are exact: the significands of the operands have together at most the bits of a lane. Below the normal numbers
 *    of binary32 one is, or it and what the lane makes of it are at most half of its format's smallest number, and become 0.
 *  - Sums of two numbers x, y of the place's format (significands of p bits, last bit 2^q) in lanes of
 *    P >= 2p + 2 bits. Let z = x + y, |x| >= |y|. Only if the lane's sum, RN(z), is a number m that lies
 *    in the middle between neighbours of the format and z is another, may rounding twice differ.
 *    Then z has more than P bits, the last of them not below y's, so |z| > 2^(P-p) |y| >= 2^(p+2) |y|,
 *    and z is above the subnormal range, where sums are exact. With 2^e <= |z| < 2^(e+1):
 *    |y| < 2^(e-p-1), so x has the exponent e - 1 at least; x and m are multiples of 2^(e-p), and
 *    |x - m| <= |y| + |z - m| < 2^(e-p-1) + 2^(e-P) < 2^(e-p). So x = m, but x is a number of the
 *    format and m is not.
 *  - Other sums (of formats that differ, of fused multiply-adds) are rounded to odd in binary64 first,
 *    after which a rounding to at most 51 bits is that of the exact value (Boldo and Melquiond, 2008).
 *
 * A rounding adds and subtracts 1.5 2^(M + u), where 2^u is the last bit that is kept, by the exponent
 * of x or that of subnormal numbers: the lane's own rounding to nearest even at that bit.
 * Formats with the exponents of binary32 are rounded in its bits: half a unit less one and the last bit are added, and what
 * is below is cut off.
 *
 * Lanes where a rounding passed the largest number of a place are reported. They are done again, `endless`: with infinities, as IEEE 754
 * has them, which then need no reference. Where all places are rounded as integers are, what is beyond the numbers is an
 * infinity by itself. Counts on the default environment. */
#pragma once

#include "chain.h"

enum {
    MPSIM_LANES_F32,
    MPSIM_LANES_F64,
    MPSIM_LANES_ODD /* of binary64; sums are rounded to odd first */
};

/* A rounding to nearest even in lanes. */
typedef struct mpsim_place {
    double spread; /* 1.5 2^(M - mbits): by it and the exponent of x               */
    double least;  /* the same for subnormal numbers                               */
    double most;   /* the largest number                                           */
    int is_signed; /* -0 is a number                                               */
    int drop;      /* bits of binary32 that it has not                              */
} mpsim_place;

typedef struct mpsim_rounded_chain {
    int kind;    /* MPSIM_CHAIN_... */
    int lanes;   /* MPSIM_LANES_... */
    int whole;   /* of binary32: all places have its exponents, and are rounded as integers are */
    int endless; /* what is beyond the numbers of a place is an infinity; a lane is that of the model, or a NaN */
    mpsim_place product, accumulator, outer;
} mpsim_rounded_chain;

/* mpsim_rounded_init -- whether the fast path can do this model with these operands; fills *p. */
int mpsim_rounded_init(mpsim_rounded_chain *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb);

/* A rounded function -- one chunk: all additions over `depth` products of `rows` rows of a and a panel
 * of b; values of lanes, as mpsim_chain_function. redo[r] |= the columns that the reference must do. */
typedef void mpsim_rounded_function(const mpsim_rounded_chain *p, const void *a, size_t next, const void *b, void *s,
                                    size_t rows, size_t depth, unsigned *redo);

/* A sum function -- s = outer(s + t), rows x MPSIM_PANEL times. */
typedef void mpsim_outer_function(const mpsim_rounded_chain *p, void *s, const void *t, size_t rows, unsigned *redo);
