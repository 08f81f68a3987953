/* exact.c -- see exact.h. */
#include "exact.h"

void exact_add(mpfr_t s, double x, int square)
{
    mpfr_t t;
    int inexact = 0;
    mpfr_init2(t, 106);
    inexact |= mpfr_set_d(t, x, MPFR_RNDN);
    if (square)
        inexact |= mpfr_sqr(t, t, MPFR_RNDN);
    inexact |= mpfr_add(s, s, t, MPFR_RNDN);
    mpfr_clear(t);
    ck_assert(!inexact);
}

void exact_total(mpfr_t s, const double *x, size_t n, int square)
{
    mpfr_init2(s, WIDE);
    mpfr_set_zero(s, 1);
    for (size_t i = 0; i < n; i++)
        exact_add(s, x[i], square);
}

double exact_sum(const double *x, size_t n, int square)
{
    mpfr_t s;
    exact_total(s, x, n, square);
    const double v = mpfr_get_d(s, MPFR_RNDN);
    mpfr_clear(s);
    return v == 0 ? 0 : v; /* a zero is +0 */
}

int exact_same(double a, double b)
{
    return bits_of_f64(a) == bits_of_f64(b);
}

void adversarial(double *x, size_t n, uint64_t *state, int kind)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(state);
        const uint64_t sign = w & 0x8000000000000000u, t = w & 0xfffffffffffffu;
        const uint64_t pick = test_random(state);
        const uint64_t e = kind == 0   ? pick % 2047
                           : kind == 1 ? 1023 + pick % 60
                           : kind == 2 ? pick % 3
                           : kind == 3 ? 2046 - pick % 3
                                       : (pick % 2 ? 2046 - pick / 2 % 60 : pick / 2 % 60);
        x[i] = f64_of_bits(sign | e << 52 | (pick >> 60 ? t : 0xfffffffffffffu));
        if (i > 0 && pick >> 32 & 1) /* cancel an earlier one */
            x[i] = -x[(pick >> 33) % i];
    }
}
