/* rounded.h -- operations that are exact and then rounded once, by MPFR and nothing else.
 *
 * A number is carried in a double, which holds every number of these formats; no function does
 * arithmetic on it. Rounding is to nearest, ties to even, with subnormals and infinities as in
 * IEEE 754: the result with an unbounded exponent, then mpfr_check_range and
 * mpfr_subnormalize. Typed from IEEE 754-2019 table 3.5 (bf16: 8 bits of precision with the
 * exponents of binary32). */
#pragma once

#include <mpfr.h>
#include <stdint.h>

enum { B64, B32, BF16, FP16, SHAPES };

/* An MPFR exponent e is that of a significand in [1/2, 1): 2^-149 has e = -148. */
typedef struct shape {
    const char *name;
    mpfr_prec_t precision;
    mpfr_exp_t emin, emax;
} shape;

static const shape shapes[SHAPES] = {
    {"binary64", 53, -1073, 1024},
    {"binary32", 24, -148, 128},
    {"bf16", 8, -132, 128},
    {"fp16", 11, -23, 16},
};

typedef struct rounded_numbers {
    int ready;
    mpfr_t a, b, c, wide, r[SHAPES];
} rounded_numbers;

static inline rounded_numbers *rounded_get(void)
{
    static rounded_numbers n;
    if (n.ready)
        return &n;
    n.ready = 1;
    mpfr_init2(n.a, 53);
    mpfr_init2(n.b, 53);
    mpfr_init2(n.c, 53);
    mpfr_init2(n.wide, 400);
    for (int f = 0; f < SHAPES; f++)
        mpfr_init2(n.r[f], shapes[f].precision);
    return &n;
}

/* The number r, of f's precision, with what its operation returned, in the range of f. */
static inline double rounded_end(int f, mpfr_t r, int ternary)
{
    /* A normal number of f is one already. */
    if (mpfr_regular_p(r) && mpfr_get_exp(r) <= shapes[f].emax &&
        mpfr_get_exp(r) >= shapes[f].emin + (mpfr_exp_t)shapes[f].precision)
        return mpfr_get_d(r, MPFR_RNDN);
    const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_set_emin(shapes[f].emin);
    mpfr_set_emax(shapes[f].emax);
    ternary = mpfr_check_range(r, ternary, MPFR_RNDN);
    mpfr_subnormalize(r, ternary, MPFR_RNDN);
    const double y = mpfr_get_d(r, MPFR_RNDN);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    return y;
}

static inline double to(int f, double x)
{
    rounded_numbers *n = rounded_get();
    return rounded_end(f, n->r[f], mpfr_set_d(n->r[f], x, MPFR_RNDN));
}

static inline double add(int f, double x, double y)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_set_d(n->b, y, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_add(n->r[f], n->a, n->b, MPFR_RNDN));
}

static inline double sub(int f, double x, double y)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_set_d(n->b, y, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_sub(n->r[f], n->a, n->b, MPFR_RNDN));
}

static inline double mul(int f, double x, double y)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_set_d(n->b, y, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_mul(n->r[f], n->a, n->b, MPFR_RNDN));
}

static inline double quo(int f, double x, double y)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_set_d(n->b, y, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_div(n->r[f], n->a, n->b, MPFR_RNDN));
}

static inline double root(int f, double x)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_sqrt(n->r[f], n->a, MPFR_RNDN));
}

/* x y + z with one rounding. */
static inline double fused(int f, double x, double y, double z)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_set_d(n->b, y, MPFR_RNDN);
    mpfr_set_d(n->c, z, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_fma(n->r[f], n->a, n->b, n->c, MPFR_RNDN));
}

/* x^n: 400 bits, then f. */
static inline double power(int f, double x, uint64_t e)
{
    rounded_numbers *n = rounded_get();
    mpfr_set_d(n->a, x, MPFR_RNDN);
    mpfr_pow_ui(n->wide, n->a, (unsigned long)e, MPFR_RNDN);
    return rounded_end(f, n->r[f], mpfr_set(n->r[f], n->wide, MPFR_RNDN));
}
