/* function.c -- exp, log and tanh; see mpsim/function.h.
 *
 * Of an operand that is a fraction, none of these values is one but those that are listed: e^a, log a
 * and tanh a are transcendental (Lindemann). So no value is a number of a format or the middle of two,
 * and enough of its bits decide every rounding. They are computed in fixed point with an error of
 * less than 2^ERROR units of the last place, and again with twice the words where that leaves the
 * first 128 bits open (Ziv's test). */
#include <mpsim/function.h>

#include "../base/words.h"
#include "fixed.h"
#include "scalar.h"

/* Each step below loses a few units of the last place, a hundred terms a few hundred, the squarings a
 * factor of 2^9, the multiple of log 2 one of 2^13, a quotient one of 2: less than 2^30 in all. */
enum { ERROR = 40, FIRST_LIMBS = 13 };

/* ---- names ---- */

static const char *const names[MPSIM_FUNCTIONS] = {
    [MPSIM_FUNCTION_EXP] = "exp", [MPSIM_FUNCTION_LOG] = "log", [MPSIM_FUNCTION_TANH] = "tanh"};

const char *mpsim_function_name(mpsim_function f)
{
    return (unsigned)f < MPSIM_FUNCTIONS ? names[f] : NULL;
}

mpsim_status mpsim_function_parse(mpsim_function *f, const char *name)
{
    if (!f || !name)
        return MPSIM_EINVAL;
    for (int i = 0; i < MPSIM_FUNCTIONS; i++)
        if (mpsim_same_word(name, strlen(name), names[i])) {
            *f = (mpsim_function)i;
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

/* ---- from fixed point to a number ---- */

/* (-1)^sign a 2^exp: its first 128 bits, the last one set since there is always more. 0 if the error of
 * a leaves them open. */
static int to_number(mpsim_number *x, int sign, const mpsim_fixed *a, int exp)
{
    int top = 32 * a->n - 1, ones = 0, zeros = 0;
    mpsim_u128 m = {0, 0};
    while (top > 0 && !mpsim_fixed_bit(a, top))
        top--;
    if (top < 128 + ERROR + 8)
        return 0;
    for (int i = 0; i < 128; i++) {
        m = mpsim_u128_left(m, 1);
        m.lo |= (uint64_t)mpsim_fixed_bit(a, top - i);
    }
    for (int i = top - 128; i >= ERROR; i--) {
        ones |= mpsim_fixed_bit(a, i);
        zeros |= !mpsim_fixed_bit(a, i);
    }
    m.lo |= 1;
    *x = mpsim_number_wide(sign, m, top - 32 * (a->n - 1) + exp);
    return ones && zeros;
}

/* The number a hair above (hair > 0) or below that of the 64 bits m, the first one set, times 2^(exp - 63). */
static mpsim_number beside(int sign, uint64_t m, int exp, int hair)
{
    const mpsim_u128 at = {m, 0}, one = {0, 1};
    mpsim_number x = mpsim_number_wide(sign, hair > 0 ? at : mpsim_u128_sub(at, one), exp);
    x.lo |= 1;
    return x;
}

/* ---- functions in fixed point ---- */

/* atanh of 0 <= z <= 1/3: z + z^3 / 3 + z^5 / 5 + ... */
static mpsim_fixed atanh_series(const mpsim_fixed *z)
{
    mpsim_fixed sum = *z, power = *z, square = *z;
    mpsim_fixed_multiply(&square, z);
    for (uint32_t k = 3; !mpsim_fixed_is_zero(&power); k += 2) {
        mpsim_fixed_multiply(&power, &square);
        mpsim_fixed term = power;
        mpsim_fixed_divide_by(&term, k);
        mpsim_fixed_add(&sum, &term);
    }
    return sum;
}

/* e^(+-a) = *y 2^*exp with y near [1, 2], for a up to 2^13. */
static void exp_fixed(mpsim_fixed *y, int *exp, const mpsim_fixed *a, int negative)
{
    enum { HALVINGS = 8 };
    const mpsim_fixed log2 = mpsim_fixed_log_2(a->n);
    mpsim_fixed r = *a, multiple;
    int k = 0;
    for (int bit = 1 << 14; bit > 0; bit >>= 1) { /* the largest k with k log 2 <= a */
        multiple = log2;
        mpsim_fixed_multiply_by(&multiple, (uint32_t)(k + bit));
        if (!mpsim_fixed_less(a, &multiple))
            k += bit;
    }
    k += negative;
    multiple = log2;
    mpsim_fixed_multiply_by(&multiple, (uint32_t)k);
    if (negative) {
        r = multiple;
        mpsim_fixed_subtract(&r, a);
    } else {
        mpsim_fixed_subtract(&r, &multiple);
    }
    mpsim_fixed_shift(&r, HALVINGS);
    mpsim_fixed term = mpsim_fixed_integer(a->n, 1);
    *y = term;
    for (uint32_t i = 1; !mpsim_fixed_is_zero(&term); i++) {
        mpsim_fixed_multiply(&term, &r);
        mpsim_fixed_divide_by(&term, i);
        mpsim_fixed_add(y, &term);
    }
    for (int i = 0; i < HALVINGS; i++)
        mpsim_fixed_multiply(y, y);
    *exp = negative ? -k : k;
}

/* ---- one operand, finite and not zero: its bits and exponent as in mpsim_number ---- */

static mpsim_fixed magnitude(int n, mpsim_number x)
{
    return mpsim_fixed_power(n, x.hi, x.exp - 63);
}

/* With n words: 1, or 0 if the bits stay open. */
static int exp_with(mpsim_number *y, mpsim_number x, int n)
{
    const mpsim_fixed a = magnitude(n, x);
    mpsim_fixed e;
    int exp;
    exp_fixed(&e, &exp, &a, x.sign);
    return to_number(y, 0, &e, exp);
}

static int tanh_with(mpsim_number *y, mpsim_number x, int n)
{
    mpsim_fixed one = mpsim_fixed_integer(n, 1), a = magnitude(n, x), e, q = one;
    int exp;
    mpsim_fixed_add(&a, &a);
    exp_fixed(&e, &exp, &a, 1);
    mpsim_fixed_shift(&e, -exp);
    mpsim_fixed_subtract(&q, &e); /* (1 - e^-2a) / (1 + e^-2a) */
    mpsim_fixed_add(&one, &e);
    mpsim_fixed_divide(&q, &one);
    return to_number(y, x.sign, &q, 0);
}

/* x = m 2^e with m in [3/4, 3/2), log m = 2 atanh((m - 1) / (m + 1)); they do not cancel. */
static int log_with(mpsim_number *y, mpsim_number x, int n)
{
    const uint64_t m = x.hi >> 11, one = (uint64_t)1 << 52; /* an operand has 53 bits at most */
    const int below = m > one + one / 2, e = x.exp + below;
    const uint64_t unit = below ? 2 * one : one;
    mpsim_fixed z = mpsim_fixed_power(n, below ? unit - m : m - unit, -54);
    const mpsim_fixed divisor = mpsim_fixed_power(n, m + unit, -54);
    mpsim_fixed_divide(&z, &divisor);
    mpsim_fixed log_m = atanh_series(&z);
    mpsim_fixed_add(&log_m, &log_m);
    if (e == 0)
        return to_number(y, below, &log_m, 0);
    mpsim_fixed sum = mpsim_fixed_log_2(n);
    mpsim_fixed_multiply_by(&sum, (uint32_t)(e < 0 ? -e : e));
    if ((e < 0) == below)
        mpsim_fixed_add(&sum, &log_m);
    else
        mpsim_fixed_subtract(&sum, &log_m);
    return to_number(y, e < 0, &sum, 0);
}

/* ---- special values ---- */

static mpsim_number exp_of(mpsim_number x)
{
    mpsim_number y = mpsim_number_make(0, 1, 0);
    if (x.kind == MPSIM_NUMBER_INF)
        return x.sign ? mpsim_number_make(0, 0, 0) : x;
    if (x.hi == 0)
        return y;
    if (x.exp < -130) /* 1 + x + ... */
        return beside(0, (uint64_t)1 << 63, 0, x.sign ? -1 : 1);
    if (x.exp > 12) /* beyond every format */
        return beside(0, (uint64_t)1 << 63, x.sign ? -8000 : 8000, 1);
    for (int n = FIRST_LIMBS; n <= MPSIM_FIXED_LIMBS && !exp_with(&y, x, n); n *= 2)
        ;
    return y;
}

static mpsim_number log_of(mpsim_number x, unsigned *flags)
{
    mpsim_number y = mpsim_number_make(0, 0, 0);
    if (mpsim_number_is_zero(x)) {
        *flags |= MPSIM_FLAG_DIVBYZERO;
        return mpsim_number_infinity(1);
    }
    if (x.sign)
        return mpsim_number_invalid(flags);
    if (x.kind == MPSIM_NUMBER_INF)
        return x;
    if (x.exp == 0 && x.hi == (uint64_t)1 << 63)
        return y;
    for (int n = FIRST_LIMBS; n <= MPSIM_FIXED_LIMBS && !log_with(&y, x, n); n *= 2)
        ;
    return y;
}

static mpsim_number tanh_of(mpsim_number x)
{
    mpsim_number y = mpsim_number_make(x.sign, 1, 0);
    if (x.kind == MPSIM_NUMBER_INF)
        return y;
    if (x.hi == 0)
        return x;
    if (x.exp < -70) /* x - x^3 / 3 + ... */
        return beside(x.sign, x.hi, x.exp, -1);
    if (x.exp > 5) /* 1 - 2 e^-2x + ... */
        return beside(x.sign, (uint64_t)1 << 63, 0, -1);
    for (int n = FIRST_LIMBS; n <= MPSIM_FIXED_LIMBS && !tanh_with(&y, x, n); n *= 2)
        ;
    return y;
}

uint64_t mpsim_function_apply(mpsim_function f, const mpsim_format *operand, const mpsim_format *result,
                              const mpsim_rounding *r, uint64_t a, uint32_t random, unsigned *flags)
{
    const mpsim_number x = mpsim_scalar_operand(operand, r, a);
    unsigned raised = 0, ignored;
    mpsim_number y = x;
    if (x.kind != MPSIM_NUMBER_NAN)
        y = f == MPSIM_FUNCTION_EXP ? exp_of(x) : f == MPSIM_FUNCTION_LOG ? log_of(x, &raised) : tanh_of(x);
    unsigned *to = flags ? flags : &ignored;
    const uint64_t code = mpsim_scalar_encode(result, r, r->mode, y, random, to);
    *to |= raised;
    return code;
}
