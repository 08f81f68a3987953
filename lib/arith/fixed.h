/* fixed.h -- non-negative fixed-point numbers of many words. */
#pragma once

#include <stdint.h>

enum { MPSIM_FIXED_LIMBS = 52 };

/* The sum of limb[i] * 2^(32 (i - n + 1)): one word before the point. All operands of an operation
 * have the same n; a result must be below 2^32. Bits below the last word are cut off. */
typedef struct mpsim_fixed {
    int n;
    uint32_t limb[MPSIM_FIXED_LIMBS];
} mpsim_fixed;

mpsim_fixed mpsim_fixed_integer(int n, uint32_t x);
/* mpsim_fixed_power -- m * 2^e; e below 32, what is cut off must be zero, or does not matter. */
mpsim_fixed mpsim_fixed_power(int n, uint64_t m, int e);
mpsim_fixed mpsim_fixed_log_2(int n); /* log 2 */
int mpsim_fixed_is_zero(const mpsim_fixed *a);
int mpsim_fixed_less(const mpsim_fixed *a, const mpsim_fixed *b);
void mpsim_fixed_add(mpsim_fixed *a, const mpsim_fixed *b);      /* a += b         */
void mpsim_fixed_subtract(mpsim_fixed *a, const mpsim_fixed *b); /* a -= b, a >= b */
void mpsim_fixed_multiply(mpsim_fixed *a, const mpsim_fixed *b); /* a *= b         */
void mpsim_fixed_divide(mpsim_fixed *a, const mpsim_fixed *b);   /* a /= b, a < 2 b */
void mpsim_fixed_multiply_by(mpsim_fixed *a, uint32_t x);
void mpsim_fixed_divide_by(mpsim_fixed *a, uint32_t x);
void mpsim_fixed_shift(mpsim_fixed *a, int bits); /* a *= 2^-bits */

/* mpsim_fixed_bit -- bit i, of the value 2^(i - 32 (n - 1)). */
static inline int mpsim_fixed_bit(const mpsim_fixed *a, int i)
{
    return a->limb[i / 32] >> i % 32 & 1;
}
