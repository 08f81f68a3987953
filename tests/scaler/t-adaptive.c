/* t-adaptive.c -- adaptive loss scaling (Zhao et al., 2020) against MPFR with 320 bits.
 *
 * The oracle evaluates the authors' rule on the exact values of its arguments: erfinv by solving
 * erf(x) = y, then s = u_min / (sqrt(2) erfinv(n_uf) sigma_o), not below 1, not above
 * u_max / fan_in / (largest |g w|), upper and accumulated / previous, cut to a power of two. The
 * library's result in binary64 is held to a relative 1e-9 before the cut; where the exact s is as
 * near as that to a power of two, but is none, the one below is accepted, too. */
#include <mpsim/scaler.h>

#include "support/support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

enum { BITS = 320 };

static const double TOLERANCE = 1e-9;

/* ---- the oracle ---- */

/* x with erf(x) = y, |y| < 1: bisection until Newton's method converges, then to the last bits. */
static void erfinv(mpfr_t x, const mpfr_t y)
{
    mpfr_t low, high, v, d;
    mpfr_inits2(BITS, low, high, v, d, (mpfr_ptr)0);
    mpfr_set_si(low, -20, MPFR_RNDN);
    mpfr_set_si(high, 20, MPFR_RNDN);
    for (int i = 0; i < 24; i++) {
        mpfr_add(x, low, high, MPFR_RNDN);
        mpfr_div_2ui(x, x, 1, MPFR_RNDN);
        mpfr_erf(v, x, MPFR_RNDN);
        mpfr_set(mpfr_cmp(v, y) < 0 ? low : high, x, MPFR_RNDN);
    }
    for (int i = 0; i < 12; i++) { /* x -= (erf(x) - y) sqrt(pi) / 2 exp(x^2) */
        mpfr_erf(v, x, MPFR_RNDN);
        mpfr_sub(v, v, y, MPFR_RNDN);
        mpfr_sqr(d, x, MPFR_RNDN);
        mpfr_exp(d, d, MPFR_RNDN);
        mpfr_mul(v, v, d, MPFR_RNDN);
        mpfr_const_pi(d, MPFR_RNDN);
        mpfr_sqrt(d, d, MPFR_RNDN);
        mpfr_mul(v, v, d, MPFR_RNDN);
        mpfr_div_2ui(v, v, 1, MPFR_RNDN);
        mpfr_sub(x, x, v, MPFR_RNDN);
    }
    mpfr_clears(low, high, v, d, (mpfr_ptr)0);
}

/* erfinv(a n_uf + b), remembered. */
static void quantile(mpfr_t x, double n_uf, int a, int b)
{
    enum { KEPT = 64 };
    static struct {
        double n_uf;
        int a;
        mpfr_t x;
    } kept[KEPT];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (kept[i].n_uf == n_uf && kept[i].a == a) {
            mpfr_set(x, kept[i].x, MPFR_RNDN);
            return;
        }
    mpfr_t y;
    mpfr_init2(y, BITS);
    mpfr_set_d(y, n_uf, MPFR_RNDN);
    mpfr_mul_si(y, y, a, MPFR_RNDN);
    mpfr_add_si(y, y, b, MPFR_RNDN);
    erfinv(x, y);
    mpfr_clear(y);
    if (count < KEPT) {
        kept[count].n_uf = n_uf;
        kept[count].a = a;
        mpfr_init2(kept[count].x, BITS);
        mpfr_set(kept[count].x, x, MPFR_RNDN);
        count++;
    }
}

/* deviation^2 + mean^2 */
static void second_moment(mpfr_t r, const mpsim_moments *m, mpfr_t scratch)
{
    mpfr_set_d(r, m->deviation, MPFR_RNDN);
    mpfr_sqr(r, r, MPFR_RNDN);
    mpfr_set_d(scratch, m->mean, MPFR_RNDN);
    mpfr_sqr(scratch, scratch, MPFR_RNDN);
    mpfr_add(r, r, scratch, MPFR_RNDN);
}

/* u_min / (sqrt(2) erfinv(n_uf) sigma_o), sigma_o = sqrt(E g^2 E w^2) sqrt(fan_in / 2) */
static void normal(mpfr_t s, const mpsim_adaptive_config *c, const mpsim_moments *g, const mpsim_moments *w,
                   double fan_in)
{
    mpfr_t t, u;
    mpfr_inits2(BITS, t, u, (mpfr_ptr)0);
    second_moment(s, g, u);
    second_moment(t, w, u);
    mpfr_mul(s, s, t, MPFR_RNDN);
    mpfr_mul_d(s, s, fan_in, MPFR_RNDN);
    mpfr_sqrt(s, s, MPFR_RNDN); /* the two in sqrt(2) and in fan_in / 2 cancel */
    quantile(t, c->n_uf, 1, 0);
    mpfr_mul(s, s, t, MPFR_RNDN);
    mpfr_d_div(s, c->u_min, s, MPFR_RNDN);
    mpfr_clears(t, u, (mpfr_ptr)0);
}

/* exp(ln u_min - mean - deviation sqrt(2) erfinv(2 n_uf - 1)) */
static void lognormal(mpfr_t s, const mpsim_adaptive_config *c, const mpsim_moments *g)
{
    mpfr_t t, u;
    mpfr_inits2(BITS, t, u, (mpfr_ptr)0);
    quantile(t, c->n_uf, 2, -1);
    mpfr_sqrt_ui(u, 2, MPFR_RNDN);
    mpfr_mul(t, t, u, MPFR_RNDN);
    mpfr_mul_d(t, t, g->deviation, MPFR_RNDN);
    mpfr_set_d(s, c->u_min, MPFR_RNDN);
    mpfr_log(s, s, MPFR_RNDN);
    mpfr_sub_d(s, s, g->mean, MPFR_RNDN);
    mpfr_sub(s, s, t, MPFR_RNDN);
    mpfr_exp(s, s, MPFR_RNDN);
    mpfr_clears(t, u, (mpfr_ptr)0);
}

/* Which bound decided. */
enum { FREE, ONE, LARGEST, ACCUMULATED, UPPER, BOUNDS };

typedef struct statistics {
    mpsim_moments g, w;
    int has_w;
    double fan_in, previous;
} statistics;

static int lower(mpfr_t s, const mpfr_t bound, int was, int now)
{
    if (mpfr_cmp(bound, s) >= 0)
        return was;
    mpfr_set(s, bound, MPFR_RNDN);
    return now;
}

/* The scale before it is cut to a power of two. */
static int exact(mpfr_t s, const mpsim_adaptive_config *c, const statistics *x)
{
    int by = FREE;
    mpfr_t b;
    mpfr_init2(b, BITS);
    if (x->has_w)
        normal(s, c, &x->g, &x->w, x->fan_in);
    else
        lognormal(s, c, &x->g);
    if (mpfr_cmp_ui(s, 1) < 0) {
        mpfr_set_ui(s, 1, MPFR_RNDN);
        by = ONE;
    }
    mpfr_set_d(b, c->u_max, MPFR_RNDN);
    mpfr_div_d(b, b, x->fan_in, MPFR_RNDN);
    mpfr_div_d(b, b, x->g.amax, MPFR_RNDN);
    if (x->has_w)
        mpfr_div_d(b, b, x->w.amax, MPFR_RNDN);
    by = lower(s, b, by, LARGEST);
    mpfr_set_d(b, c->accumulated, MPFR_RNDN);
    mpfr_div_d(b, b, x->previous, MPFR_RNDN);
    by = lower(s, b, by, ACCUMULATED);
    mpfr_set_d(b, c->upper, MPFR_RNDN);
    by = lower(s, b, by, UPPER);
    mpfr_clear(b);
    return by;
}

static int near(double is, const mpfr_t should)
{
    mpfr_t e;
    mpfr_init2(e, BITS);
    mpfr_d_sub(e, is, should, MPFR_RNDN);
    mpfr_div(e, e, should, MPFR_RNDN);
    mpfr_abs(e, e, MPFR_RNDN);
    const int yes = isfinite(is) && mpfr_cmp_d(e, TOLERANCE) <= 0;
    mpfr_clear(e);
    return yes;
}

/* 2^floor(log2 s), and the power beside it where s is too near to one. */
static int agrees(double is, const mpfr_t s, int power_of_two, int *tie)
{
    if (!power_of_two)
        return near(is, s);
    const double down = ldexp(1, (int)mpfr_get_exp(s) - 1);
    *tie = 0;
    if (mpfr_cmp_d(s, down) == 0)
        return is == down;
    *tie = 1;
    if (near(down, s) && is == down / 2)
        return 1;
    if (near(2 * down, s) && is == 2 * down)
        return 1;
    *tie = near(down, s) || near(2 * down, s);
    return is == down;
}

static double scale(const mpsim_adaptive_config *c, const statistics *x)
{
    return mpsim_adaptive_scale(c, &x->g, x->has_w ? &x->w : NULL, x->fan_in, x->previous);
}

/* ---- random statistics ---- */

static double uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * ((double)(test_random(state) >> 11) * 0x1p-53);
}

static statistics random_statistics(uint64_t *state, int has_w)
{
    static const double previous[] = {1, 2, 16, 64, 100, 512, 1024, 2000};
    statistics x = {.has_w = has_w, .previous = previous[test_random(state) % 8]};
    x.fan_in = has_w ? (double)(1 + test_random(state) % 5000) : 1;
    if (!has_w) {
        x.g.mean = uniform(state, -22, -1);
        x.g.deviation = uniform(state, 0.01, 4);
        x.g.amax = exp(x.g.mean + x.g.deviation * uniform(state, 1, 6));
        return x;
    }
    x.g.deviation = exp2(uniform(state, -34, -2));
    x.g.mean = x.g.deviation * uniform(state, -1, 1);
    x.g.amax = x.g.deviation * exp2(uniform(state, 0, 24));
    x.w.deviation = exp2(uniform(state, -10, 3));
    x.w.mean = x.w.deviation * uniform(state, -2, 2);
    x.w.amax = x.w.deviation * exp2(uniform(state, 0, 8));
    return x;
}

static const double shares[] = {1e-3, 1e-6, 1e-4, 0.01, 0.1, 0.3, 0.49};

CASE("layers", 120);

TESTS(random_layers, 4)
{
    const int has_w = _i & 1, power_of_two = _i >> 1;
    uint64_t state = test_seed() + (uint64_t)_i;
    size_t ties = 0, by[BOUNDS] = {0};
    const size_t n = test_scaled(20000);
    mpfr_t s;
    mpfr_init2(s, BITS);
    for (size_t i = 0; i < n; i++) {
        mpsim_adaptive_config c;
        mpsim_adaptive_init(&c);
        c.power_of_two = (uint8_t)power_of_two;
        c.n_uf = shares[test_random(&state) % 7];
        if (i % 3 == 0)
            c.upper = 1e30, c.accumulated = 1e30;
        const statistics x = random_statistics(&state, has_w);
        int tie = 0;
        by[exact(s, &c, &x)]++;
        const double is = scale(&c, &x);
        ck_assert_msg(agrees(is, s, power_of_two, &tie),
                      "n_uf %g, g %a %a %a, w %a %a %a, fan-in "
                      "%g, previous %g, power of two %d: %a, exactly %a",
                      c.n_uf, x.g.mean, x.g.deviation, x.g.amax, x.w.mean, x.w.deviation, x.w.amax, x.fan_in,
                      x.previous, power_of_two, is, mpfr_get_d(s, MPFR_RNDN));
        ties += tie != 0;
    }
    mpfr_clear(s);
    printf("# %s, power of two %d: %zu layers, %zu near a power of two; decided by: the rule %zu, "
           "one %zu, the largest product %zu, all layers' %zu, the upper bound %zu\n",
           has_w ? "normal" : "lognormal", power_of_two, n, ties, by[FREE], by[ONE], by[LARGEST], by[ACCUMULATED],
           by[UPPER]);
    for (int b = 0; b < BOUNDS; b++)
        ck_assert_msg(by[b] > n / 100, "bound %d decided only %zu of %zu", b, by[b], n);
}

/* ---- single cases ---- */

CASE("cases", 10);

TEST(defaults)
{
    mpsim_adaptive_config c;
    mpsim_adaptive_init(&c);
    ck_assert(c.n_uf == 1e-3 && c.u_min == 6e-8 && c.u_max == 65504);
    ck_assert(c.upper == 16 && c.accumulated == 1024 && c.power_of_two == 1);
}

static double with_bounds(double upper, double accumulated, double previous, int power_of_two)
{
    mpsim_adaptive_config c;
    mpsim_adaptive_init(&c);
    c.upper = upper;
    c.accumulated = accumulated;
    c.power_of_two = (uint8_t)power_of_two;
    const statistics x = {{0, 1e-12, 1e-12}, {0, 1, 1}, 1, 10, previous};
    return scale(&c, &x);
}

/* The rule wants far more than any bound here. */
TEST(bounds)
{
    ck_assert(with_bounds(16, 1024, 1, 1) == 16);
    ck_assert(with_bounds(16, 1024, 64, 1) == 16);
    ck_assert(with_bounds(16, 1024, 128, 1) == 8);
    ck_assert(with_bounds(16, 1024, 100, 1) == 8);
    ck_assert(with_bounds(16, 1024, 1024, 1) == 1);
    ck_assert(with_bounds(16, 1024, 2048, 1) == 0.5);
    ck_assert(with_bounds(15.999, 1024, 1, 1) == 8);
    ck_assert(with_bounds(15.5, 1024, 1, 0) == 15.5);
    ck_assert(with_bounds(16, 1024, 100, 0) == 10.24);
    ck_assert(with_bounds(16, 7, 2, 0) == 3.5);
}

/* u_max / fan_in / (amax amax) is 4, or just below. */
TEST(largest_product)
{
    mpsim_adaptive_config c;
    mpsim_adaptive_init(&c);
    statistics x = {{0, 1e-12, 2047}, {0, 1, 1}, 1, 8, 1};
    ck_assert(scale(&c, &x) == 4);
    x.g.amax = nextafter(2047, 3000);
    ck_assert(scale(&c, &x) == 2);
    x.g.amax = 16376;
    ck_assert(scale(&c, &x) == 0.5);
    x.g.amax = 2047, x.w.amax = 0.5;
    ck_assert(scale(&c, &x) == 8);
    x.g.amax = 0; /* no product: no bound */
    ck_assert(scale(&c, &x) == 16);
    const statistics y = {{-40, 1, 16376}, {0, 0, 0}, 0, 1, 1};
    ck_assert(scale(&c, &y) == 4);
}

/* Gradients that are large enough: 1, whatever the share. */
TEST(large_gradients)
{
    mpsim_adaptive_config c;
    mpsim_adaptive_init(&c);
    const statistics x = {{0, 1, 5}, {0, 1, 5}, 1, 100, 1}, y = {{0, 1, 5}, {0, 0, 0}, 0, 1, 1};
    ck_assert(scale(&c, &x) == 1 && scale(&c, &y) == 1);
    c.power_of_two = 0;
    ck_assert(scale(&c, &x) == 1 && scale(&c, &y) == 1);
}

TEST(nothing_to_go_by)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    for (int power_of_two = 0; power_of_two < 2; power_of_two++) {
        mpsim_adaptive_config c;
        mpsim_adaptive_init(&c);
        c.power_of_two = (uint8_t)power_of_two;
        const mpsim_moments w = {0, 1, 3};
        const mpsim_moments none[] = {{0, 0, 0},     {1e-12, 0, 1e-12}, {nan, nan, nan},
                                      {nan, nan, 0}, {0, inf, inf},     {nan, nan, inf}};
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            const double a = mpsim_adaptive_scale(&c, &none[i], &w, 10, 1);
            const double b = mpsim_adaptive_scale(&c, &none[i], NULL, 1, 1);
            ck_assert_msg(a == 1 && b == 1, "statistics %zu: %g and %g", i, a, b);
        }
        const mpsim_moments g = {0, 1e-9, 1e-8};
        ck_assert(mpsim_adaptive_scale(&c, &g, &none[0], 10, 1) == 1);
        ck_assert(mpsim_adaptive_scale(&c, &g, &none[2], 10, 1) == 1);
    }
}

/* A chain of layers, each scaled after the one before it: the product stays within 1024. */
TEST(chain)
{
    mpsim_adaptive_config c;
    mpsim_adaptive_init(&c);
    const statistics x = {{0, 1e-12, 1e-10}, {0, 1, 4}, 1, 64, 1};
    static const double expected[] = {16, 16, 4, 1, 1};
    double product = 1;
    for (size_t i = 0; i < 5; i++) {
        const double s = mpsim_adaptive_scale(&c, &x.g, &x.w, x.fan_in, product);
        ck_assert_msg(s == expected[i], "layer %zu: %g", i, s);
        product *= s;
    }
    ck_assert(product == 1024);
}

TEST_MAIN("t-adaptive");
