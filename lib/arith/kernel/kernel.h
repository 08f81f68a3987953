/* kernel.h -- the fast path of arrays of operations: blocks of codes to codes.
 *
 * The same results as mpsim_scalar_arith, for operands and results of at most 25 bits of precision
 * whose exponents leave all that is computed normal in binary64:
 *
 * 1. Operands are read as binary64 numbers, exactly.
 * 2. The operation in binary64, to nearest, and the sign of what is missing: of sums by Knuth's
 *    TwoSum (The Art of Computer Programming 2, 4.2.2, theorem B), of quotients and roots by the
 *    remainder in one fma (Markstein 1990); products of such operands are exact, so that x y + z is
 *    a sum. With that sign the result is rounded to odd: an inexact one becomes the neighbour of the
 *    exact value whose last bit is 1.
 * 3. One rounding of that to the format, in any mode. A number rounded to odd with 53 bits lies
 *    on the same side of every number, and of every midpoint, of at most 51 bits as the exact value
 *    does (Boldo and Melquiond, IEEE Transactions on Computers 57, 2008, theorem 3); so does what
 *    stochastic modes ask, if 2 more bits than the random ones are left.
 *
 * Quotients and roots need no remainder in deterministic modes. Let g be a number of p + 1 bits, where
 * the result has p. A quotient a / b that is not g differs from it by |a - g b| / b, a multiple of
 * the last places of g and b: by 2^-(p + p_b) of it at least. A root differs by |a - g g| / (root +
 * g): by more than 2^-(2 p + 2). If that is no less than half a last place of binary64, the number nearest
 * to the exact value is on the same side of g, and rounding twice is innocuous (Figueroa, SIGNUM
 * Newsletter 30, 1995: 53 >= 2 p + 2). Sums of mixed exponents and fma have no such bound.
 *
 * All of this holds for binary32, 24 instead of 53 bits and its range, in twice as many lanes: fp16, FP8 and
 * FP4 fit.
 *
 * Needs rounding to nearest and masked exceptions, which the caller sets. */
#pragma once

#include "../scalar.h"

enum { MPSIM_ARITH_BLOCK = 256 };

/* How codes of an operand are read. */
typedef struct mpsim_arith_operand {
    uint64_t magnitude, sign; /* masks of the fields of a code; no sign: 0                */
    int sign_shift;           /* from the sign to the top bit of a lane                   */
    int significand_shift;    /* from the significand to that of a lane                   */
    uint64_t rebias;          /* what is added to magnitudes of normal numbers then       */
    uint64_t first_normal;    /* magnitudes below are zero or subnormal                   */
    double least_normal;      /* of subnormal numbers: what is too much after `rebias`    */
    uint64_t max_finite;
    uint64_t infinity;      /* the magnitude; without one: max_finite, which is not it  */
    uint64_t negative_zero; /* the code if it is NaN, else one that none has            */
    uint64_t kept;          /* bits of the smallest number that is not flushed          */
    int plain;              /* neither of the last two matters                          */
    size_t bytes;
} mpsim_arith_operand;

typedef struct mpsim_arith_kernel {
    mpsim_op op;
    int mode, sr_bits;
    int operands;
    int lane_bits; /* 64 or 32: binary64 or binary32 */
    int enough;    /* the nearest such number needs no rounding to odd */
    int down;
    mpsim_arith_operand operand[3];
    int emin, mbits;
    int sign_shift; /* of the sign in a code of the result; the top bit if it has none */
    int is_unsigned;
    int flush;    /* subnormal results become zero                                    */
    int plain;    /* they do not, and zero has a sign                                 */
    int payloads; /* NaN results depend on more than the sign of a NaN                */
    size_t bytes;
    uint64_t max_finite;
    uint64_t zero[2], overflow[2], infinite[2], nan[2]; /* results by sign              */
} mpsim_arith_kernel;

/* A kernel function -- the codes of the first elements of n <= MPSIM_ARITH_BLOCK; their number, all
 * but less than a vector, is returned. words: random words, for the stochastic modes only. Where bit
 * i % 64 of left[i / 64], 0 before, becomes 1 the reference must do the element, as it must those
 * behind: its code means nothing, and it is not counted. What happened to the others is added to
 * *counts; NULL: they are not counted. */
typedef size_t mpsim_arith_function(const mpsim_arith_kernel *k, void *codes, uint64_t left[MPSIM_ARITH_BLOCK / 64],
                                    mpsim_counts *counts, const void *const from[3], const uint32_t *words, size_t n);

mpsim_arith_function mpsim_arith_run_generic, mpsim_arith_run_neon, mpsim_arith_run_avx2, mpsim_arith_run_avx512;

/* mpsim_arith_kernel_init -- fill *k for an operation of so many operands and return the function of
 * the active instruction set, or NULL if the kernel cannot do this operation. */
mpsim_arith_function *mpsim_arith_kernel_init(mpsim_arith_kernel *k, const mpsim_arith *o, int operands);
