/* kernel.h -- the fast path of the array functions: blocks of binary64 numbers to codes.
 *
 * The same function as mpsim_scalar_encode, without branches that depend on the data, for the
 * inputs that matter for speed; the others are marked and left to the reference. Compiled once
 * for each instruction set that the compiler knows; where none fits the machine, the reference
 * does everything. The choice changes speed, never a bit. */
#ifndef MPSIM_LIB_ROUND_KERNEL_KERNEL_H
#define MPSIM_LIB_ROUND_KERNEL_KERNEL_H

#include "../scalar.h"

enum { MPSIM_KERNEL_BLOCK = 256 };

/* Everything about a format and rounding that the kernel needs, in plain integers. */
typedef struct mpsim_kernel {
    int mode, sr_bits;
    int emin, mbits;
    int scale_exp;  /* scale = 2^scale_exp                          */
    int sign_shift; /* of the sign bit in a code; 63 if there is none */
    int is_unsigned;
    int flush;      /* subnormal results become zero                */
    uint64_t max_finite;
    int values;           /* the results are the bits of binary64 values, not codes    */
    uint64_t overflow[2]; /* result of an overflow, by sign                            */
    uint64_t zero[2];     /* result of a zero, by sign                                 */
    uint64_t least;       /* bits of the smallest positive value                       */
} mpsim_kernel;

/* A kernel function -- results[i] of the binary64 x[i], for MPSIM_KERNEL_BLOCK elements; what
 * happened is added to *counts. draws[i] is the R, 0 <= R < 2^sr_bits, of stochastic modes.
 * Where left[i] becomes non-zero the reference must do the element (NaN, infinities, subnormal
 * inputs, and a few more): results[i] means nothing there, and it is not counted. Returns whether
 * there is such an i. x may have any alignment. */
typedef int mpsim_kernel_function(const mpsim_kernel *k, uint64_t *results, uint64_t *left,
                                  mpsim_counts *counts, const void *x, const uint64_t *draws);

mpsim_kernel_function mpsim_kernel_avx2, mpsim_kernel_avx512;

/* mpsim_kernel_init -- fill *k, for codes or for values, and return the function of the active
 * instruction set, or NULL if there is none or if the kernel cannot do this format and rounding. */
mpsim_kernel_function *mpsim_kernel_init(mpsim_kernel *k, const mpsim_format *f,
                                         const mpsim_rounding *r, int values);

#endif
