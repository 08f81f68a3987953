/* bounds.cuh -- the largest relative error of a cast, of a block.
 *
 * Relative errors are quotients of an error and a number, integers of one unit. A bound's ratio is 2^56 times it and 16
 * more: two quotients of integers below 2^24 are further apart than that makes, so what is_larger says is exact for them, and
 * an error as large as the bound is not larger. Where a cast saturates, errors have more bits, and the ratio is less, not more:
 * is_larger may say yes for what is as large then.
 *
 * To nearest, of a binade that loses d bits, the largest relative errors are those of fractions about 2^(d - 1), half a unit above the power of
 * two: once the bound is above all others', only fractions f between two thresholds have a larger one,
 *
 *     f / (2^23 + f) > r             f > r 2^23 / (1 - r)
 *     (2^d - f) / (2^23 + f) > r     f < (2^d - r 2^23) / (1 + r)
 *
 * which a subtraction and a minimum find, an instruction an element where the device has both in one (sm_90). The
 * thresholds are integers that may be stale, each by itself: then more fractions are between them. */
#pragma once

#include "limbs.cuh"

namespace stats
{

enum : unsigned { FIRST = 0x800001u, LAST = 0x7fffffffu }; /* the first significand that loses something; above all */

__device__ inline int is_larger(unsigned error, unsigned number, u64 ratio)
{
    const u64 product = u64(number) * unsigned(ratio >> 32) + (u64(number) * unsigned(ratio) >> 32);
    return (u64(error) << 24) > product;
}

/* The significands that a bound r leaves. A number so close to an integer is that integer, but for what rounding made of it. */
__device__ inline void narrow(const cast &c, unsigned *thresholds, double r)
{
    const double close = c.saturates ? -0x1p-20 : 0x1p-27;
    const double half = power(c.drop - 1), unit = 2 * half;
    if (c.drop < 1 || c.drop > 22 || r < half / (0x1p23 + 3 * half))
        return;
    const double low = r < 0.5 ? r * 0x1p23 / (1 - r) : half;
    const double high = (unit - r * 0x1p23) / (1 + r);
    atomicMax(thresholds, FIRST + (low >= half ? 1u << 24 : unsigned(__double2ll_rd(low + close))));
    atomicMin(thresholds + 1, high < 1 ? 0u : 0x800000u + unsigned(__double2ll_ru(high - close)));
}

/* error / number, if it is larger than what the block has. */
__device__ GPU_NOINLINE void raise(const job &j, int i, double error, double number)
{
    const cast &c = j.casts[i];
    const double r = error / number;
    const u64 bits = u64(__double_as_longlong(r)); /* positive numbers are ordered as their bits */
    if (atomicMax(block_bounds() + i, bits) >= bits)
        return;
    const u64 ratio = u64(__double2ll_rd(r * 0x1p56));
    atomicMax(block_ratios() + i, c.saturates ? (ratio > 16 ? ratio - 16 : 0) : ratio + 16);
    narrow(c, block_thresholds() + 2 * i, r);
}

} // namespace stats
