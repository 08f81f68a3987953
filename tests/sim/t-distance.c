/* t-distance.c -- errors of dot products against the operands as given and as rounded: the exact sums to the last bit, all measures
 * to 1e-14, by rationals of GMP and MPFR. */
#include "sim/dot/error.h"
#include "support/support.h"

#include <gmp.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

enum { ROWS = 5, COLUMNS = 7, DEPTH = 40, RESULTS = ROWS * COLUMNS, BITS = 4000 };

/* Numbers of the operands: of binary32, of 37 bits (generated), of binary64 near and far from 1, and near the ends of binary32. */
typedef enum numbers { SINGLE, GENERATED, DOUBLE, SCATTERED, TINY } numbers;

static const struct {
    numbers a, b;
    const char *format;
    double scale;
    mpsim_round_mode mode;
    double above;
} cases[] = {
    {SINGLE, SINGLE, "tf32", 1, MPSIM_ROUND_TOWARD_ZERO, -1},
    {GENERATED, GENERATED, "bf16", 1, MPSIM_ROUND_NEAREST_EVEN, 0.5},
    {GENERATED, SINGLE, "e5m2", 8, MPSIM_ROUND_NEAREST_EVEN, 0},
    {SINGLE, GENERATED, "fp16", 0.25, MPSIM_ROUND_DOWN, 3},
    {DOUBLE, GENERATED, "fp16", 1, MPSIM_ROUND_NEAREST_EVEN, 1},
    {DOUBLE, DOUBLE, "bf16", 1, MPSIM_ROUND_NEAREST_AWAY, -1},
    {SCATTERED, DOUBLE, "binary64", 1, MPSIM_ROUND_NEAREST_EVEN, -1},
    {SCATTERED, SINGLE, "bf16", 1, MPSIM_ROUND_TOWARD_ZERO, 1e-3},
    {TINY, GENERATED, "bf16", 1, MPSIM_ROUND_NEAREST_EVEN, 1e-39},
    {SINGLE, SINGLE, "binary32", 1, MPSIM_ROUND_NEAREST_EVEN, 1e9},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static double draw(numbers kind, uint64_t *state)
{
    double pair[2];
    test_normal_pair(state, pair);
    const double x = pair[0];
    switch (kind) {
    case SINGLE:
        return (double)(float)x;
    case GENERATED:
        return rint(ldexp(x, 33)) * 0x1p-33;
    case SCATTERED:
        return ldexp(x, (int)(test_random(state) % 60) - 40);
    case TINY:
        return ldexp(rint(ldexp(x, 20)), -149);
    case DOUBLE:
    default:
        return x;
    }
}

static void fill(operand *o, size_t rows, numbers kind, uint64_t *state)
{
    int uniform = 0;
    ck_assert(dot_distribution_find(&uniform, "uniform") == 0);
    dot_operand_generate(o, rows, DEPTH, uniform, 1, 0);
    for (size_t i = 0; i < rows * DEPTH; i++)
        o->x[i] = draw(kind, state);
}

/* Element i as it was rounded, the scale included. */
static double rounded(const operand *o, size_t i)
{
    double x;
    const size_t bytes = mpsim_format_code_bytes(&o->format);
    ck_assert(mpsim_decode_array(&o->format, &x, o->codes + i * bytes, 1) == MPSIM_OK);
    return x;
}

/* The exact product of row i and row j of the numbers, as rounded or as given times both scales. */
static void product(mpq_t to, const operand *a, const operand *b, size_t i, size_t j, int given)
{
    mpq_t x, y;
    mpq_inits(x, y, NULL);
    mpq_set_ui(to, 0, 1);
    for (size_t k = 0; k < DEPTH; k++) {
        mpq_set_d(x, given ? a->x[i * DEPTH + k] * a->scale : rounded(a, i * DEPTH + k));
        mpq_set_d(y, given ? b->x[j * DEPTH + k] * b->scale : rounded(b, j * DEPTH + k));
        mpq_mul(x, x, y);
        mpq_add(to, to, x);
    }
    mpq_clears(x, y, NULL);
}

static double nearest(const mpq_t x)
{
    mpfr_t r;
    mpfr_init2(r, 53);
    const int inexact = mpfr_set_q(r, x, MPFR_RNDN);
    (void)inexact;
    const double d = mpfr_get_d(r, MPFR_RNDN);
    mpfr_clear(r);
    return d;
}

static void check_sums(const double *exact, const operand *a, const operand *b, int given)
{
    mpq_t want;
    mpq_init(want);
    for (size_t i = 0; i < RESULTS; i++) {
        product(want, a, b, i / COLUMNS, i % COLUMNS, given);
        ck_assert_msg(exact[i] == nearest(want), "result %zu, %s: %a, expected %a", i, given ? "given" : "rounded",
                      exact[i], nearest(want));
    }
    mpq_clear(want);
}

/* ---- measures ---- */

static void check_near(const char *what, double got, const mpfr_t want)
{
    const double w = mpfr_get_d(want, MPFR_RNDN);
    ck_assert_msg(fabs(got - w) <= 1e-14 * fabs(w), "%s: %.17g, expected %.17g", what, got, w);
}

/* Sums of d - e and of what is made of it, over results that count: rel, bias, mean_rel; over all: rmse, mean_abs, mean. */
enum { SQUARES, EXACT_SQUARES, GAINED, MAGNITUDES, QUOTIENTS, ALL_SQUARES, SIZES, ERRORS, SUMS };

static void add_result(mpfr_t *s, double *largest, uint64_t *counted, double d, double e, int counts)
{
    mpfr_t x, y;
    mpfr_inits2(BITS, x, y, NULL);
    mpfr_set_d(x, d - e, MPFR_RNDN); /* the error is binary64's: d and e are close, or one is far larger */
    mpfr_add(s[ERRORS], s[ERRORS], x, MPFR_RNDN);
    mpfr_abs(y, x, MPFR_RNDN);
    mpfr_add(s[SIZES], s[SIZES], y, MPFR_RNDN);
    mpfr_sqr(x, x, MPFR_RNDN);
    mpfr_add(s[ALL_SQUARES], s[ALL_SQUARES], x, MPFR_RNDN);
    if (counts) {
        mpfr_add(s[SQUARES], s[SQUARES], x, MPFR_RNDN);
        mpfr_add_d(s[MAGNITUDES], s[MAGNITUDES], fabs(e), MPFR_RNDN);
        mpfr_add_d(s[GAINED], s[GAINED], fabs(d), MPFR_RNDN);
        mpfr_sub_d(s[GAINED], s[GAINED], fabs(e), MPFR_RNDN);
        mpfr_div_d(y, y, fabs(e), MPFR_RNDN);
        mpfr_add(s[QUOTIENTS], s[QUOTIENTS], y, MPFR_RNDN);
        mpfr_set_d(x, e, MPFR_RNDN);
        mpfr_sqr(x, x, MPFR_RNDN);
        mpfr_add(s[EXACT_SQUARES], s[EXACT_SQUARES], x, MPFR_RNDN);
        *largest = fmax(*largest, fabs(d - e) / fabs(e));
        ++*counted;
    }
    mpfr_clears(x, y, NULL);
}

static void check_relative(const dot_distance *g, mpfr_t *s, double largest, uint64_t counted)
{
    ck_assert_uint_eq(g->compared, counted);
    if (counted == 0) {
        ck_assert(isnan(g->rel) && isnan(g->max_rel) && isnan(g->mean_rel) && isnan(g->bias));
        return;
    }
    mpfr_div(s[SQUARES], s[SQUARES], s[EXACT_SQUARES], MPFR_RNDN);
    mpfr_sqrt(s[SQUARES], s[SQUARES], MPFR_RNDN);
    check_near("rel", g->rel, s[SQUARES]);
    mpfr_div(s[GAINED], s[GAINED], s[MAGNITUDES], MPFR_RNDN);
    check_near("bias", g->bias, s[GAINED]);
    mpfr_div_ui(s[QUOTIENTS], s[QUOTIENTS], (unsigned long)counted, MPFR_RNDN);
    check_near("mean_rel", g->mean_rel, s[QUOTIENTS]);
    ck_assert(fabs(g->max_rel - largest) <= 1e-14 * largest);
}

static void check_distance(const dot_distance *g, const double *d, const double *e, const dot_truth *t)
{
    const double unit = t->unit[0] * t->unit[1]; /* a power of two */
    mpfr_t s[SUMS];
    double largest = 0, most = 0;
    uint64_t counted = 0;
    for (int i = 0; i < SUMS; i++) {
        mpfr_init2(s[i], BITS);
        mpfr_set_ui(s[i], 0, MPFR_RNDN);
    }
    for (size_t i = 0; i < RESULTS; i++) {
        add_result(s, &largest, &counted, d[i], e[i], fabs(t->given[i]) / unit > t->above);
        most = fmax(most, fabs(d[i] - e[i]));
    }
    ck_assert(g->max_abs == most / unit);
    mpfr_div_ui(s[ALL_SQUARES], s[ALL_SQUARES], RESULTS, MPFR_RNDN);
    mpfr_sqrt(s[ALL_SQUARES], s[ALL_SQUARES], MPFR_RNDN);
    mpfr_div_d(s[ALL_SQUARES], s[ALL_SQUARES], unit, MPFR_RNDN);
    check_near("rmse", g->rmse, s[ALL_SQUARES]);
    mpfr_div_d(s[SIZES], s[SIZES], RESULTS * unit, MPFR_RNDN);
    check_near("mean_abs", g->mean_abs, s[SIZES]);
    mpfr_div_d(s[ERRORS], s[ERRORS], RESULTS * unit, MPFR_RNDN);
    check_near("mean", g->mean, s[ERRORS]);
    check_relative(g, s, largest, counted);
    for (int i = 0; i < SUMS; i++)
        mpfr_clear(s[i]);
}

CASE("distance", 20);

TESTS(against_both, CASES)
{
    operand a = {0}, b = {0};
    double rounded_sums[RESULTS], given_sums[RESULTS], d[RESULTS];
    uint64_t state = test_seed() + (uint64_t)_i;
    const dot_split whole = {.parts = 1};
    mpsim_model m;
    dot_error e;
    fill(&a, ROWS, cases[_i].a, &state);
    fill(&b, COLUMNS, cases[_i].b, &state);
    ck_assert(dot_operand_encode(&a, mpsim_format_find(cases[_i].format), cases[_i].mode, cases[_i].scale) == 0 &&
              dot_operand_encode(&b, mpsim_format_find(cases[_i].format), cases[_i].mode, cases[_i].scale) == 0);
    ck_assert(dot_exact(rounded_sums, &a, &b, DEPTH) == 0 && dot_exact_given(given_sums, &a, &b, DEPTH) == 0);
    check_sums(rounded_sums, &a, &b, 0);
    check_sums(given_sums, &a, &b, 1);
    const int same = a.exact && b.exact;
    ck_assert(!same || memcmp(rounded_sums, given_sums, sizeof given_sums) == 0);
    const dot_truth truth = {same ? rounded_sums : given_sums, rounded_sums, {a.scale, b.scale}, cases[_i].above};
    ck_assert(mpsim_model_parse(&m, "fma") == MPSIM_OK && dot_results(d, &m, &whole, &a, &b, DEPTH) == MPSIM_OK);
    ck_assert(dot_error_measure(&e, &m, &whole, &a, &b, DEPTH, &truth) == 0);
    ck_assert(e.same == same && e.not_finite == 0 && e.count == RESULTS);
    check_distance(&e.rounded, d, rounded_sums, &truth);
    check_distance(&e.given, d, truth.given, &truth);
    dot_operand_clear(&a);
    dot_operand_clear(&b);
}

/* Results that are not finite are left out of both; errors beyond binary64's squares, and none at all. */
TEST(ends)
{
    double given[] = {1, 4, -2, 0, 0x1p-600}, rounded_values[] = {1, 3, -2, 0, 0x1p-600};
    const double d[] = {INFINITY, 3, NAN, 0, 0x1.8p-600};
    const dot_truth truth = {given, rounded_values, {1, 1}, -1}, high = {given, rounded_values, {1, 1}, 8};
    dot_error e;
    dot_error_compare(&e, d, &truth, 5, 24);
    ck_assert(e.not_finite == 2 && e.given.compared == 3 && e.given.max_abs == 1 && e.rounded.max_abs == 0x1p-601);
    ck_assert(e.rounded.max_rel == 0.5 && e.given.max_rel == 0.5 && e.given.mean == -(1 - 0x1p-601) / 3);
    dot_error_compare(&e, d + 4, &(dot_truth){given + 4, given + 4, {1, 1}, -1}, 1, 24);
    ck_assert(e.same && e.given.rel == 0.5 && e.given.rmse == 0x1p-601 && e.bits_lost == 23);
    dot_error_compare(&e, d, &high, 5, 24);
    ck_assert(e.given.compared == 0 && isnan(e.given.rel) && isnan(e.bits_lost) && e.given.max_abs == 1);
    dot_error_compare(&e, d, &truth, 1, 24);
    ck_assert(e.not_finite == 1 && isnan(e.given.max_abs) && isnan(e.given.rmse) && isnan(e.given.mean_abs));
}

TEST_MAIN("distance");
