/* t-functions.c -- tanh, erf, sigmoid, rsqrt, sin and cos against MPFR.
 *
 * Errors are counted as in t-math.c. Samples are judged by MPFR alone; the long run goes through every
 * float with the C library's binary64 functions as a sieve: what they place within 2^-20 ulp of the
 * bound or of the largest error so far goes to MPFR. */
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <mpsim/transformer.h>
#include <stdio.h>

typedef struct function {
    const char *name;
    float (*ours)(float x);
    double (*sieve)(double x);
    int (*exact)(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode);
    int mirror;    /* f(-x) = f(x) or -f(x): 1 or -1; 0: neither */
    int direction; /* 1 or -1: it never falls, or never rises; 0: waves */
    double bound;  /* of the error, in ulp */
} function;

static double sigmoid64(double x)
{
    return 1 / (1 + exp(-x));
}

static double rsqrt64(double x)
{
    return 1 / sqrt(x);
}

static int exact_sigmoid(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode)
{
    mpfr_neg(y, x, mode);
    mpfr_exp(y, y, mode);
    mpfr_add_ui(y, y, 1, mode);
    return mpfr_ui_div(y, 1, y, mode);
}

static const function functions[] = {
    {"tanh", mpsim_tanh, tanh, mpfr_tanh, -1, 1, 0.51},
    {"erf", mpsim_erf, erf, mpfr_erf, -1, 1, 0.52},
    {"sigmoid", mpsim_sigmoid, sigmoid64, exact_sigmoid, 0, 1, 0.51},
    {"rsqrt", mpsim_rsqrt, rsqrt64, mpfr_rec_sqrt, 0, -1, 0.501},
    {"sin", mpsim_sin, sin, mpfr_sin, -1, 0, 0.52},
    {"cos", mpsim_cos, cos, mpfr_cos, 1, 0, 0.52},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, RSQRT = 3 };

typedef struct worst {
    double error;
    float at;
} worst;

static double unit_of(double y)
{
    const int e = (int)(bits_of_f64(y) >> 52 & 2047) - 1023;
    return ldexp(1, (e > -126 ? e : -126) - 23);
}

static void look(const function *f, float x, worst *w)
{
    const float y = f->ours(x);
    mpfr_t a, b;
    mpfr_inits2(100, a, b, (mpfr_ptr)NULL);
    mpfr_set_d(a, (double)x, MPFR_RNDN);
    f->exact(b, a, MPFR_RNDN);
    const double unit = unit_of(mpfr_get_d(b, MPFR_RNDZ));
    mpfr_sub_d(b, b, (double)y, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(b, MPFR_RNDN)) / unit;
    mpfr_clears(a, b, (mpfr_ptr)NULL);
    ck_assert_msg(error <= f->bound, "%s(%a) = %a: %.9g ulp", f->name, (double)x, (double)y, error);
    if (error > w->error)
        *w = (worst){error, x};
}

static void report(const function *f, const worst *w, const char *of)
{
    printf("# %s: largest error %.5f ulp at %a (%s)\n", f->name, w->error, (double)w->at, of);
    fflush(stdout);
}

/* Finite, not 0; of rsqrt positive. */
static int has_result(const function *f, float x)
{
    return isfinite(x) && (f == &functions[RSQRT] ? x > 0 : x != 0);
}

CASE("errors", 60);

/* The ends of every binade, and words between. */
TESTS(samples, FUNCTIONS)
{
    const function *f = &functions[_i];
    uint64_t state = test_seed() + (uint64_t)_i;
    worst w = {0, 0};
    for (uint32_t top = 0; top < 512; top++)
        for (size_t i = 0; i < test_scaled((top & 255) > 115 && (top & 255) < 135 ? 600 : 60); i++) {
            const uint32_t low = i < 4 ? (uint32_t[]){0, 1, 0x7ffffe, 0x7fffff}[i]
                                       : (uint32_t)(test_random(&state) & 0x7fffff);
            const float x = f32_of_bits(top << 23 | low);
            if (has_result(f, x))
                look(f, x, &w);
        }
    report(f, &w, "samples");
}

/* Arguments next to multiples of pi / 2, that of all floats that is nearest among them. */
TEST(next_to_quarters)
{
    static const float hard[] = {16367173.0f * 0x1p+72f, FLT_MAX,        0x1.921fb6p+0f, 0x1.921fb6p+1f,
                                 0x1.921fb4p-1f,         0x1.921fb6p-1f, 0x1.921fb8p-1f, 0x1.2d97c8p+2f};
    for (int i = 4; i < FUNCTIONS; i++) {
        worst w = {0, 0};
        for (size_t k = 0; k < sizeof hard / sizeof *hard; k++) {
            look(&functions[i], hard[k], &w);
            look(&functions[i], -hard[k], &w);
        }
        for (int k = 1; k < 20000; k++)
            look(&functions[i], (float)(k * acos(0)), &w);
        report(&functions[i], &w, "next to quarters");
    }
}

static int has_bits(float x, uint32_t bits)
{
    return bits_of_f32(x) == bits;
}

CASE("contract", 10);

TEST(special_values)
{
    const uint32_t one = 0x3f800000, sign = UINT32_C(1) << 31, infinite = 0x7f800000;
    const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff};
    for (size_t i = 0; i < FUNCTIONS; i++)
        for (size_t k = 0; k < 5; k++)
            ck_assert(isnan(functions[i].ours(f32_of_bits(nans[k]))));
    for (size_t i = 0; i < 2; i++) {
        ck_assert(has_bits(functions[i].ours(0.0f), 0));
        ck_assert(has_bits(functions[i].ours(-0.0f), sign));
        ck_assert(has_bits(functions[i].ours(INFINITY), one));
        ck_assert(has_bits(functions[i].ours(-INFINITY), sign | one));
    }
    ck_assert(has_bits(mpsim_sigmoid(-INFINITY), 0) && has_bits(mpsim_sigmoid(INFINITY), one));
    ck_assert(mpsim_sigmoid(0.0f) == 0.5f && mpsim_sigmoid(-0.0f) == 0.5f);
    ck_assert(mpsim_sigmoid(-103.0f) > 0 && mpsim_sigmoid(-103.0f) < FLT_MIN);
    ck_assert(has_bits(mpsim_sigmoid(-FLT_MAX), 0) && has_bits(mpsim_sigmoid(FLT_MAX), one));
    ck_assert(has_bits(mpsim_rsqrt(0.0f), infinite) && has_bits(mpsim_rsqrt(-0.0f), sign | infinite));
    ck_assert(has_bits(mpsim_rsqrt(INFINITY), 0) && isnan(mpsim_rsqrt(-INFINITY)));
    ck_assert(isnan(mpsim_rsqrt(-FLT_TRUE_MIN)) && isnan(mpsim_rsqrt(-1)));
    for (int e = -74; e <= 63; e++)
        ck_assert(mpsim_rsqrt(ldexpf(1, 2 * e)) == ldexpf(1, -e));
    ck_assert(has_bits(mpsim_sin(0.0f), 0) && has_bits(mpsim_sin(-0.0f), sign));
    ck_assert(mpsim_cos(0.0f) == 1 && mpsim_cos(-0.0f) == 1);
    ck_assert(isnan(mpsim_sin(INFINITY)) && isnan(mpsim_sin(-INFINITY)));
    ck_assert(isnan(mpsim_cos(INFINITY)) && isnan(mpsim_cos(-INFINITY)));
}

static void in_order(const function *f, float x, float before, float y)
{
    ck_assert_msg(f->direction == 0 || (f->direction > 0 ? y >= before : y <= before), "%s is not monotonic at %a",
                  f->name, (double)x);
}

CASE("order", 30);

/* Runs of consecutive floats, each upwards. */
TESTS(monotonic, FUNCTIONS)
{
    const function *f = &functions[_i];
    uint64_t state = test_seed() + 100 + (uint64_t)_i;
    for (size_t i = 0; i < test_scaled(3000) && f->direction; i++) {
        const uint32_t top = i % 2 ? (uint32_t)(110 + test_random(&state) % 24) << 23
                                   : (uint32_t)(test_random(&state) % 254) << 23;
        float x = f32_of_bits((uint32_t)(test_random(&state) & 0x807fffff) | top);
        if (f->ours == mpsim_rsqrt)
            x = fabsf(x);
        float before = f->ours(x);
        for (size_t k = 0; k < 400; k++) {
            x = nextafterf(x, INFINITY);
            const float y = f->ours(x);
            in_order(f, x, before, y);
            before = y;
        }
    }
}

/* Every argument of a sign, away from 0. */
static void every(const function *f, uint32_t sign)
{
    worst w = {0.49, 0};
    float before = f->ours(f32_of_bits(sign));
    for (uint32_t code = 1; code < 0x7f800000; code++) {
        const float x = f32_of_bits(sign | code), y = f->ours(x);
        in_order(f, x, sign ? y : before, sign ? before : y);
        before = y;
        const double reference = f->sieve((double)x);
        const double error = fabs((double)y - reference) / unit_of(reference);
        if (!(error < f->bound - 0x1p-20) || error > w.error - 0x1p-20)
            look(f, x, &w);
    }
    report(f, &w, sign ? "every negative argument" : "every positive argument");
}

static void mirrored(const function *f)
{
    for (uint32_t code = 0; code < 0x7f800000; code++) {
        const float x = f32_of_bits(code), y = f->mirror > 0 ? f->ours(x) : -f->ours(x);
        ck_assert_msg(bits_of_f32(f->ours(-x)) == bits_of_f32(y), "%s(%a)", f->name, (double)-x);
    }
    printf("# %s: of every negative argument that of the positive one, %s\n", f->name,
           f->mirror > 0 ? "the same" : "negated");
}

CASE("all", 3000);

TESTS(every_argument, FUNCTIONS)
{
    const function *f = &functions[_i];
    if (!test_expensive())
        return;
    every(f, 0);
    if (f->mirror)
        mirrored(f);
    else if (f->ours != mpsim_rsqrt)
        every(f, UINT32_C(1) << 31);
}

TEST_MAIN("layer-functions");
