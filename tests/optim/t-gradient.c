/* t-gradient.c -- unscaling of gradients against MPFR (rounded.h): every kind of scale, both rules,
 * what is found. Norms and clipping: t-gradient-clip.c; sums over ranks: t-gradient-reduce.c. */
#include "oracle/rounded.h"
#include "support/gradientinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/gradient.h>
#include <string.h>

static double factor_of(double scale)
{
    return to(B32, quo(B64, 1, scale));
}

CASE("unscale", 30);

TEST(factor_of_every_kind_of_scale)
{
    /* clang-format off */
    static const double scales[] = {
        0.0, 1, 2, 0.5, 65536, 0x1p24, 0x1p32, 3, 7, 1e-3, 0x1p-149, 0x1p-128, 0x1.000002p-128,
        0x1p-127,
        0x1p-126, 0x1p126, 0x1.8p126, 0x1p127, 0x1p128, 0x1p148, 0x1p149, 0x1.8p149,
        0x1.fffffffffffffp149,
        0x1p150, 0x1p151, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp-1,
        0x1.0000000000001p0, 45875.2001953125, 0x1.fffffep127};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        ck_assert_msg(same(factor_of(scales[i]), mpsim_unscale_factor(scales[i])),
                      "%a: %a, expected %a",
                      scales[i], (double)mpsim_unscale_factor(scales[i]), factor_of(scales[i]));
    ck_assert(isinf(mpsim_unscale_factor(0)) && mpsim_unscale_factor(0) > 0);
    ck_assert(mpsim_unscale_factor(0x1p150) == 0);
    ck_assert(mpsim_unscale_factor(0x1.8p149) == 0x1p-149f);
    ck_assert(mpsim_unscale_factor(INFINITE) == 0);
    ck_assert(isnan(mpsim_unscale_factor(NOTANUMBER)));
    uint64_t random = test_seed();
    for (size_t i = 0; i < test_scaled(60000); i++) {
        const double s = fabs(uniform(&random, -155, 155));
        ck_assert_msg(same(factor_of(s), mpsim_unscale_factor(s)), "%a", s);
    }
    /* clang-format on */
}

/* 53 >= 2 24 + 2: the double rounding of f32(1 / f64(S)) is innocuous. */
TEST(reciprocal_of_a_binary32_scale_is_the_ieee_one)
{
    uint64_t random = test_seed() + 1;
    for (size_t i = 0; i < test_scaled(60000); i++) {
        const uint32_t bits = (uint32_t)(test_random(&random) >> 33);
        const float s = f32_of_bits(bits);
        if (!(s >= 0x1p-126f) || isinf(s))
            continue;
        const double want = quo(B32, 1, (double)s);
        ck_assert_msg(same(want, mpsim_unscale_factor((double)s)), "%a", (double)s);
        ck_assert_msg(same(want, 1.0f / s), "the machine divides 1 by %a", (double)s);
    }
}

static void unscale_once(mpsim_unscale_rule rule, double scale, int f, const float *x)
{
    float y[N], z[N];
    unsigned want = 0;
    memcpy(z, x, sizeof z);
    const mpsim_format *format = f == B32 ? NULL : gradient_format(f);
    const unsigned found = mpsim_unscale_array(rule, scale, format, y, x, N);
    const double inv = factor_of(scale);
    for (size_t i = 0; i < N; i++) {
        const double v = (double)x[i];
        double u = rule == MPSIM_UNSCALE_DIVIDE ? quo(B32, v, to(B32, scale)) : mul(B32, v, inv);
        u = rule == MPSIM_UNSCALE_RECIPROCAL && inv == 1 ? v : to(f, u);
        want |= !isfinite(v) ? MPSIM_FOUND_INPUT : 0u;
        want |= !isfinite(u) ? MPSIM_FOUND_OUTPUT : 0u;
        ck_assert_msg(same(u, y[i]), "%s rule %d scale %a: %a gives %a, expected %a", shapes[f].name, (int)rule, scale,
                      v, (double)y[i], u);
    }
    ck_assert_msg(found == want, "%s rule %d scale %a: found %u, expected %u", shapes[f].name, (int)rule, scale, found,
                  want);
    ck_assert_uint_eq(mpsim_unscale_array(rule, scale, format, z, z, N), want);
    ck_assert_int_eq(memcmp(y, z, sizeof y), 0); /* in place */
}

TEST(unscaling_by_both_rules)
{
    static const double scales[] = {1,       2,        65536,   0x1p24,  3,       0x1.8p16, 45875.2001953125, 7e-3,
                                    0x1p-10, 0x1p-130, 0x1p140, 0x1p149, 0x1p200, 0.0,      0x1p127};
    uint64_t random = test_seed() + 2;
    for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++)
        for (size_t f = 0; f < 3; f++)
            for (int special = 0; special < 4; special++) {
                float x[N];
                gradient_fill(x, N, narrow[f], special & 1, &random);
                unscale_once(MPSIM_UNSCALE_RECIPROCAL, scales[k], narrow[f], x);
                unscale_once(MPSIM_UNSCALE_DIVIDE, scales[k], narrow[f], x);
            }
}

TEST(factor_one_leaves_every_bit)
{
    static const uint32_t codes[] = {0,           0x80000000u, 1,           0x7f800000u, 0xff800000u, 0x7fc00000u,
                                     0x7f800001u, 0xff812345u, 0xffffffffu, 0x7fa00000u, 0x3f800001u};
    enum { M = sizeof codes / sizeof codes[0] };
    static const double ones[] = {1, 0x1.fffffffffffffp-1, 0x1.0000000000001p0}; /* all are f32(1) */
    for (size_t k = 0; k < 3; k++) {
        float x[M], y[M];
        memcpy(x, codes, sizeof x);
        memset(y, 0x55, sizeof y);
        ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ones[k], NULL, y, x, M),
                          MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
        ck_assert_int_eq(memcmp(y, codes, sizeof y), 0);
        ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ones[k], NULL, x, x, M),
                          MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
        ck_assert_int_eq(memcmp(x, codes, sizeof x), 0);
    }
}

TEST(found_is_of_input_or_output)
{
    const float finite[] = {1, 0, -0x1p-149f}, large[] = {1, 60000}, inf[] = {1, INFINITY};
    float y[3];
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 8, NULL, y, finite, 3), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 8, NULL, y, finite, 0), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 8, NULL, y, inf, 2),
                      MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
    /* Divided by infinity, an infinity is NaN, and a number 0. */
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0x1p200, NULL, y, large, 2), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0.5, gradient_format(FP16), y, large, 2),
                      MPSIM_FOUND_OUTPUT);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0.5, NULL, y, large, 2), 0);
    /* A scale of 0 after its collapse: 0 inf is NaN. */
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 0, NULL, y, finite, 3), MPSIM_FOUND_OUTPUT);
    ck_assert(isinf(y[0]) && isnan(y[1]));
}

/* The product with the reciprocal and the quotient differ for 3 2^k, agree for 2^k. */
TEST(product_and_quotient)
{
    enum { M = 4096 };
    static float x[M], y[M], z[M];
    uint64_t random = test_seed() + 3;
    for (size_t i = 0; i < M; i++)
        x[i] = (float)to(B32, uniform(&random, -20, 10));
    for (int k = -8; k <= 24; k += 8) {
        mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ldexp(3, k), NULL, y, x, M);
        mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, ldexp(3, k), NULL, z, x, M);
        size_t differ = 0;
        for (size_t i = 0; i < M; i++)
            differ += y[i] < z[i] || y[i] > z[i];
        ck_assert_msg(differ > M / 20 && differ < M, "3 2^%d: %d of %d differ", k, (int)differ, (int)M);
        mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ldexp(1, k), NULL, y, x, M);
        mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, ldexp(1, k), NULL, z, x, M);
        ck_assert_int_eq(memcmp(y, z, sizeof y), 0);
    }
}

/* tf.keras divides fp16 gradients by a factor that is rounded to fp16 first (data/vectors/scalers). */
TEST(rounded_factor)
{
    const mpsim_format *half = gradient_format(FP16);
    const float x[] = {65504, 1, 0x1p-24f, 3};
    float y[4];
    static const double scales[] = {3, 0x1p25, 0x1p24, 65536, 1, 0x1.8p10};
    for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++) {
        const double factor = to(FP16, to(B32, quo(B64, 1, scales[k])));
        mpsim_unscale_array(MPSIM_UNSCALE_ROUNDED, scales[k], half, y, x, 4);
        for (int i = 0; i < 4; i++)
            ck_assert_msg(same(to(FP16, mul(B32, (double)x[i], factor)), y[i]), "%a / %a: %a", (double)x[i], scales[k],
                          (double)y[i]);
        /* binary32 gradients: the same as the reciprocal */
        float a[4], b[4];
        mpsim_unscale_array(MPSIM_UNSCALE_ROUNDED, scales[k], NULL, a, x, 4);
        mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, scales[k], NULL, b, x, 4);
        ck_assert_mem_eq(a, b, sizeof a);
    }
    mpsim_unscale_array(MPSIM_UNSCALE_ROUNDED, 0x1p25, half, y, x, 1);
    ck_assert(y[0] == 0); /* 2^-25 is no fp16 number */
}

TEST_MAIN("gradient");
