/* expand.c -- see expand.h: x^y = 2^(y log2 x) from series whose terms are added from the smallest on. C
 * libraries differ in pow and log2. */
#include "expand.h"

#include "../round/scalar.h"

#include <math.h>
#include <stddef.h>

/* log2 of a positive finite binary32 number: 2^e times a number from sqrt(1/2) to sqrt(2), whose logarithm is
 * 2 artanh(s) with |s| < 0.172. */
static double log2_of(float x)
{
    static const double log2_e = 0x1.71547652b82fep+0, tail = 0x1.777d0ffda0d24p-56; /* 1 / ln 2 */
    int e;
    double m = frexp((double)x, &e);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    static const double odd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    const double s = (m - 1) / (m + 1), s2 = s * s;
    double sum = 0;
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        sum = (sum + odd[k]) * s2;
    const double ln = 2 * s + 2 * s * sum;
    return (double)e + (ln * log2_e + ln * tail);
}

/* 2^y, -1100 < y < 1100. */
static double exp2_of(double y)
{
    static const double ln2 = 0x1.62e42fefa39efp-1;
    static const double terms[] = {/* 1 / 14! to 1 / 0! */
                                   1.0 / 87178291200,
                                   1.0 / 6227020800,
                                   1.0 / 479001600,
                                   1.0 / 39916800,
                                   1.0 / 3628800,
                                   1.0 / 362880,
                                   1.0 / 40320,
                                   1.0 / 5040,
                                   1.0 / 720,
                                   1.0 / 120,
                                   1.0 / 24,
                                   1.0 / 6,
                                   0.5,
                                   1,
                                   1};
    const double n = floor(y + 0.5), f = (y - n) * ln2;
    double sum = 0;
    for (size_t k = 0; k < sizeof terms / sizeof *terms; k++)
        sum = sum * f + terms[k];
    return ldexp(sum, (int)n);
}

float mpsim_expand_log2(float x)
{
    return (float)log2_of(x);
}

double mpsim_expand_wide(uint64_t x, double y)
{
    return x == 1 ? 1 : exp2_of(y * log2_of((float)x));
}

float mpsim_expand_power(float x, float y)
{
    const double large = 1000;
    if (y == 0 || x == 1)
        return 1;
    if (isnan(x) || isnan(y))
        return (float)NAN;
    if (x == 0 || isinf(x))
        return (x == 0) == (y > 0) ? 0 : (float)INFINITY;
    if (isinf(y))
        return (x > 1) == (y > 0) ? (float)INFINITY : 0;
    const double z = (double)y * log2_of(x);
    return (float)exp2_of(z > large ? large : z < -large ? -large : z);
}
