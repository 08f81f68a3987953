/* t-math.c -- mpsim_exp, mpsim_exp2 and mpsim_log against MPFR.
 *
 * An error is counted in units of the last place of the exact result: 2^(max(e, -126) - 23) for
 * results from 2^e below 2^(e + 1). Samples are judged by MPFR alone. The long run goes through
 * every float with the C library's binary64 functions as a sieve: what they place within 2^-20 ulp
 * of the bound or of the largest error so far goes to MPFR. */
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <mpsim/layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct function {
    const char *name;
    float (*ours)(float x);
    double (*library)(double x); /* the C library's, of binary64 */
    int (*exact)(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode);
    float lowest, highest; /* arguments with finite results, of exp with results above 0, too */
} function;

static const function functions[] = {
    {"exp", mpsim_exp, exp, mpfr_exp, -104.5f, 0x1.62e42ep+6f},
    {"exp2", mpsim_exp2, exp2, mpfr_exp2, -150.5f, 0x1.fffffep+6f},
    {"log", mpsim_log, log, mpfr_log, FLT_TRUE_MIN, FLT_MAX},
};
enum { EXP, EXP2, LOG };

typedef struct worst {
    double error;
    float at;
} worst;

static double unit_of(double y)
{
    const int e = (int)(bits_of_f64(y) >> 52 & 2047) - 1023;
    return f64_of_bits((uint64_t)((e > -126 ? e : -126) - 23 + 1023) << 52);
}

/* The error of a finite result y at x. */
static double error_at(const function *f, float x, float y)
{
    static mpfr_t a, b;
    static int ready;
    if (!ready)
        mpfr_inits2(90, a, b, (mpfr_ptr)NULL);
    ready = 1;
    mpfr_set_d(a, (double)x, MPFR_RNDN);
    f->exact(b, a, MPFR_RNDN);
    const double unit = unit_of(mpfr_get_d(b, MPFR_RNDZ));
    mpfr_sub_d(b, b, (double)y, MPFR_RNDN);
    return fabs(mpfr_get_d(b, MPFR_RNDN)) / unit;
}

static void look(const function *f, float x, worst *w)
{
    const float y = f->ours(x);
    const double error = isfinite(y) ? error_at(f, x, y) : (double)INFINITY;
    ck_assert_msg(error < 1, "%s(%a) = %a: %g ulp", f->name, (double)x, (double)y, error);
    if (error > w->error)
        *w = (worst){error, x};
}

static void report(const function *f, const worst *w, const char *of)
{
    printf("# %s: largest error %.4f ulp at %a (%s)\n", f->name, w->error, (double)w->at, of);
    fflush(stdout);
}

/* Both ends of every binade, and words between. */
static void binade(const function *f, uint32_t sign, uint32_t exponent, size_t n, uint64_t *state, worst *w)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code = exponent << 23 | (uint32_t)(test_random(state) & 0x7fffff);
        if (i < 4)
            code = exponent << 23 | (uint32_t[]){0, 1, 0x7ffffe, 0x7fffff}[i];
        const float x = f32_of_bits(sign | code);
        if (x >= f->lowest && x <= f->highest)
            look(f, x, w);
    }
}

START_TEST(exp_is_within_an_ulp)
{
    const function *f = &functions[_i];
    uint64_t state = test_seed();
    worst w = {0, 0};
    for (uint32_t e = 0; e <= 133; e++) {
        /* Below 2^-30 the result is 1 or a neighbour of it. */
        const size_t n = test_scaled(e < 97 ? 10 : e < 124 ? 300 : 2500);
        binade(f, 0, e, n, &state, &w);
        binade(f, UINT32_C(1) << 31, e, n, &state, &w);
    }
    for (size_t i = 0; i < test_scaled(8000); i++) { /* subnormal results */
        const double share = (double)(test_random(&state) >> 11) * 0x1p-53;
        look(f, (float)(_i == EXP2 ? -126 - 24 * share : -87.3 - 16.9 * share), &w);
    }
    report(f, &w, "samples");
}

START_TEST(log_is_within_an_ulp)
{
    uint64_t state = test_seed() + 1;
    worst w = {0, 0};
    for (uint32_t e = 0; e <= 254; e++)
        binade(&functions[LOG], 0, e, test_scaled(e >= 125 && e <= 128 ? 4000 : 150), &state, &w);
    for (size_t i = 0; i < test_scaled(15000); i++) { /* towards 1 from both sides */
        const double step = ldexp(1 + (double)(test_random(&state) >> 40) * 0x1p-24,
                                  -1 - (int)(test_random(&state) % 24));
        look(&functions[LOG], (float)(test_random(&state) & 1 ? 1 + step : 1 - step / 2), &w);
    }
    for (uint32_t k = 1; k < 24; k++) /* subnormal arguments */
        for (size_t i = 0; i < test_scaled(100); i++)
            look(&functions[LOG],
                 f32_of_bits((uint32_t)(test_random(&state) & ((UINT32_C(1) << k) - 1)) | UINT32_C(1) << (k - 1)), &w);
    report(&functions[LOG], &w, "samples");
}

static int positive_zero(float x)
{
    return bits_of_f32(x) == 0;
}

START_TEST(special_values_of_exp2)
{
    for (int i = -149; i < 128; i++)
        ck_assert(mpsim_exp2((float)i) == ldexpf(1, i));
    ck_assert(mpsim_exp2(0.0f) == 1 && mpsim_exp2(-0.0f) == 1 && mpsim_exp2(FLT_TRUE_MIN) == 1);
    ck_assert(positive_zero(mpsim_exp2(-INFINITY)) && positive_zero(mpsim_exp2(-150)));
    ck_assert(mpsim_exp2(nextafterf(-150, 0)) == 0x1p-149f && positive_zero(mpsim_exp2(nextafterf(-150, -151))));
    ck_assert(mpsim_exp2(INFINITY) == INFINITY && mpsim_exp2(128) == INFINITY && mpsim_exp2(FLT_MAX) == INFINITY);
    ck_assert(isfinite(mpsim_exp2(functions[EXP2].highest)) && isnan(mpsim_exp2(f32_of_bits(0xffc00001))));
}

START_TEST(special_values_of_exp)
{
    ck_assert(mpsim_exp(0.0f) == 1 && mpsim_exp(-0.0f) == 1);
    ck_assert(positive_zero(mpsim_exp(-INFINITY)));
    ck_assert(mpsim_exp(INFINITY) == INFINITY);
    const float exp_last = functions[EXP].highest;
    ck_assert(isfinite(mpsim_exp(exp_last)));
    ck_assert(mpsim_exp(nextafterf(exp_last, INFINITY)) == INFINITY);
    ck_assert(mpsim_exp(FLT_MAX) == INFINITY && mpsim_exp(1e6f) == INFINITY);
    ck_assert(positive_zero(mpsim_exp(-104.5f)) && positive_zero(mpsim_exp(-1e4f)));
    ck_assert(positive_zero(mpsim_exp(-FLT_MAX)));
    ck_assert(mpsim_exp(FLT_TRUE_MIN) == 1 && mpsim_exp(-FLT_TRUE_MIN) == 1);
    const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fffffff};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        ck_assert(isnan(mpsim_exp(f32_of_bits(nans[i]))));
        ck_assert(isnan(mpsim_log(f32_of_bits(nans[i]))));
    }
}

START_TEST(special_values_of_log)
{
    ck_assert(positive_zero(mpsim_log(1.0f)));
    ck_assert(mpsim_log(0.0f) == -INFINITY && mpsim_log(-0.0f) == -INFINITY);
    ck_assert(mpsim_log(INFINITY) == INFINITY);
    ck_assert(isnan(mpsim_log(-INFINITY)) && isnan(mpsim_log(-1.0f)));
    ck_assert(isnan(mpsim_log(-FLT_TRUE_MIN)) && isnan(mpsim_log(-FLT_MAX)));
}

/* Where results become +0: between the two numbers whose exponential is 2^-150 and 2^-149. */
START_TEST(threshold_of_zero)
{
    float x = -103.0f;
    while (x > -105.0f && !positive_zero(mpsim_exp(x)))
        x = nextafterf(x, -INFINITY);
    ck_assert_msg(fabs((double)x + 103.97) < 0.05, "+0 from %.9g", (double)x);
    printf("# exp: +0 from %a\n", (double)x);
    for (; x > -104.5f; x = nextafterf(x, -INFINITY))
        ck_assert(positive_zero(mpsim_exp(x)));
}

/* Runs of consecutive floats, each upwards. */
static void runs(const function *f, uint64_t state, float low, float high, size_t count)
{
    const size_t length = 400;
    for (size_t i = 0; i < count; i++) {
        float x = f32_of_bits((uint32_t)(test_random(&state) % 0x7f000000) |
                              (uint32_t)(test_random(&state) & UINT32_C(1) << 31));
        if (i % 2) {
            const double share = (double)(test_random(&state) >> 11) * 0x1p-53;
            x = (float)((double)low + share * ((double)high - (double)low));
        }
        if (f->ours == mpsim_log)
            x = fabsf(x);
        float before = f->ours(x);
        for (size_t k = 0; k < length; k++) {
            x = nextafterf(x, INFINITY);
            const float y = f->ours(x);
            ck_assert_msg(y >= before, "%s(%a) = %a is below %a, that of the float before it", f->name, (double)x,
                          (double)y, (double)before);
            before = y;
        }
    }
}

START_TEST(all_are_monotonic)
{
    runs(&functions[EXP], test_seed() + 2, -104, 88.7f, test_scaled(2000));
    runs(&functions[EXP], test_seed() + 3, -1, 1, test_scaled(2000));
    runs(&functions[EXP2], test_seed() + 5, -150, 128, test_scaled(2000));
    runs(&functions[EXP2], test_seed() + 6, -1, 1, test_scaled(2000));
    runs(&functions[LOG], test_seed() + 4, 0.25f, 4, test_scaled(4000));
}

/* One float of the long run. The exponential of x next to 0 is 1 to half an ulp. */
static void sieve(const function *f, float x, float y, worst *w)
{
    if (f->ours != mpsim_log && fabsf(x) < 0x1p-26f && y == 1)
        return;
    const double reference = f->library((double)x);
    const double error = fabs((double)y - reference) / unit_of(reference);
    if (!(error < 1 - 0x1p-20) || error > w->error - 0x1p-20)
        look(f, x, w);
}

/* Every argument with a finite result, upwards: error and order. */
static void every(const function *f, uint32_t sign)
{
    worst w = {0.49, 0}; /* below this nothing is a largest error */
    float before = sign ? 1 : -INFINITY;
    for (uint32_t code = 1;; code++) {
        const float x = f32_of_bits(sign | code);
        if (x < f->lowest || x > f->highest)
            break;
        const float y = f->ours(x);
        ck_assert_msg(sign ? y <= before : y >= before, "%s is not monotonic at %a", f->name, (double)x);
        before = y;
        sieve(f, x, y, &w);
    }
    report(f, &w, sign ? "every negative argument" : "every positive argument");
}

START_TEST(every_argument)
{
    if (!test_expensive())
        return;
    every(&functions[_i / 2], _i == 1 ? UINT32_C(1) << 31 : 0);
}

int main(void)
{
    TCase *of_exp = test_case("exp", 30), *of_log = test_case("log", 30);
    TCase *order = test_case("order", 30), *all = test_case("all", 3000);
    tcase_add_loop_test(of_exp, exp_is_within_an_ulp, EXP, LOG);
    tcase_add_test(of_exp, special_values_of_exp);
    tcase_add_test(of_exp, special_values_of_exp2);
    tcase_add_test(of_exp, threshold_of_zero);
    tcase_add_test(of_log, log_is_within_an_ulp);
    tcase_add_test(of_log, special_values_of_log);
    tcase_add_test(order, all_are_monotonic);
    tcase_add_loop_test(all, every_argument, 0, 2 * LOG + 1);
    TCase *const cases[] = {of_exp, of_log, order, all, NULL};
    return test_main("layer-math", cases);
}
