/* power.c -- beta^t without the C library, whose powers differ.
 *
 * significand * 2^exp with significand in [2^191, 2^192), the highest limb first. A product is
 * truncated: its error is below 2^-190, and n products of repeated squaring err by less than
 * n 2^-190 together, below 2^-126 for every n. */
#include <mpsim/optim.h>

#include "../round/scalar.h"

#include <math.h>

typedef struct wide {
    uint64_t limb[3];
    int64_t exp;
} wide;

static wide wide_product(const wide *a, const wide *b)
{
    uint64_t p[6] = {0, 0, 0, 0, 0, 0}; /* lowest first */
    for (int i = 0; i < 3; i++) {
        uint64_t carry = 0;
        for (int k = 0; k < 3; k++) {
            uint64_t hi, lo;
            mpsim_mul64(&hi, &lo, a->limb[2 - i], b->limb[2 - k]);
            lo += carry;
            hi += lo < carry;
            p[i + k] += lo;
            carry = hi + (p[i + k] < lo);
        }
        p[i + 3] = carry;
    }
    wide y = {.limb = {p[5], p[4], p[3]}, .exp = a->exp + b->exp + 192};
    if (!(p[5] >> 63)) {
        y.limb[0] = p[5] << 1 | p[4] >> 63;
        y.limb[1] = p[4] << 1 | p[3] >> 63;
        y.limb[2] = p[3] << 1 | p[2] >> 63;
        y.exp--;
    }
    return y;
}

/* Rounded once, to nearest even. */
static double wide_value(const wide *x)
{
    const mpsim_format *f = mpsim_format_find("binary64");
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_number y = {.kind = MPSIM_NUMBER_FINITE,
                            .exp = (int)(x->exp + 191),
                            .hi = x->limb[0],
                            .lo = x->limb[1] | (x->limb[2] != 0)};
    return mpsim_scalar_decode(f, mpsim_scalar_encode(f, &r, r.mode, y, 0, &flags));
}

double mpsim_power(double beta, uint64_t n)
{
    enum { TINY = -4000 }; /* below it, a power rounds to 0 */
    const mpsim_number b = mpsim_number_f64(beta);
    if (!(beta >= 0 && beta < 1))
        return (double)NAN;
    if (n == 0 || beta == 0)
        return n == 0;
    wide base = {.limb = {b.hi, 0, 0}, .exp = b.exp - 191};
    wide power = {.limb = {(uint64_t)1 << 63, 0, 0}, .exp = -191};
    for (;; n >>= 1) {
        if (n & 1)
            power = wide_product(&power, &base);
        if (power.exp < TINY || (base.exp < TINY && n > 1))
            return 0;
        if (n <= 1)
            return wide_value(&power);
        base = wide_product(&base, &base);
    }
}
