/* t-recipe-scale.c -- configurations of delayed scaling; scales that an amax gives; the largest
 * magnitude of an array. */
#include "oracle/recipe.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/block.h>
#include <mpsim/recipe.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- configuration ---- */

CASE("functions", 10);

TEST(configurations)
{
    mpsim_delayed_config c;
    mpsim_delayed_config_init(&c, mpsim_format_find("e5m2"));
    ck_assert(c.fp8_max == 57344 && mpsim_delayed_config_check(&c) == MPSIM_OK);
    mpsim_delayed_config_init(&c, mpsim_format_find("e4m3"));
    ck_assert(c.history == 1024 && c.algorithm == MPSIM_AMAX_MAX && c.margin == 0 && c.variant == MPSIM_DELAYED_BULK &&
              c.fp8_max == 448);
    c.fp8_max = 0.5f; /* anything above 0 */
    ck_assert(mpsim_delayed_config_check(&c) == MPSIM_OK);
    c.fp8_max = 448;
    const mpsim_delayed_config good = c;
    ck_assert(mpsim_delayed_config_check(&c) == MPSIM_OK);
    mpsim_delayed_config bad[9];
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].history = 0;
    bad[1].algorithm = 2;
    bad[2].variant = 3;
    bad[3].margin = 127;
    bad[4].margin = -127;
    bad[5].fp8_max = 0;
    bad[6].fp8_max = -448;
    bad[7].fp8_max = NAN;
    bad[8].fp8_max = INFINITY;
    float history[1024];
    for (size_t i = 0; i < COUNT(bad); i++) {
        mpsim_delayed d;
        memset(&d, 0x5a, sizeof d);
        history[0] = 7;
        ck_assert_msg(mpsim_delayed_config_check(&bad[i]) == MPSIM_EINVAL, "case %zu", i);
        ck_assert_msg(mpsim_delayed_init(&d, &bad[i], history) == MPSIM_EINVAL, "case %zu", i);
        ck_assert(history[0] == 7);
    }
    for (int m = -126; m <= 126; m += 126) {
        c.margin = (int16_t)m;
        ck_assert(mpsim_delayed_config_check(&c) == MPSIM_OK);
    }
    mpsim_delayed d;
    ck_assert(mpsim_delayed_init(&d, &good, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_delayed_init(&d, &good, history) == MPSIM_OK);
    ck_assert(d.scale == 1 && d.scale_inverse == 1 && d.history == history);
    for (size_t i = 0; i < 1024; i++)
        ck_assert(bits_of_f32(history[i]) == 0);
}

/* ---- mpsim_fp8_scale, mpsim_amax ---- */

static float oracle_scale(float amax, float max, float epsilon, float for_inf, int power)
{
    if (amax < epsilon)
        amax = epsilon;
    if (isnan(amax) || isinf(amax) || amax == 0)
        return 1;
    float s = quotient(max, amax);
    if (isinf(s))
        s = for_inf;
    return power ? f32_of_bits(bits_of_f32(s) & 0xff800000u) : s;
}

TEST(scales_from_amax)
{
    static const float maxes[] = {448, 57344, 6};
    static const uint32_t edges[] = {
        0,          1,          2,          0x00200000, 0x003fffff, 0x00400000, 0x007fffff, 0x00800000, 0x03e00000,
        0x3f800000, 0x3f7fffff, 0x3f800001, 0x43e00000, 0x43e00001, 0x43dfffff, 0x43e80000, 0x43f00000, 0x47600000,
        0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, 0xffc00000, 0x7e800000, 0x7f000000, 0x037fffff, 0x03800001,
    };
    static const float infs[] = {0x1.fffffep127f, 0x1.fep127f, 65504};
    static const float epsilons[] = {0, 1e-12f, 0x1p-126f, 3.5f};
    uint64_t r = test_seed() + 3;
    const size_t random = test_scaled(20000);
    unsigned long long wrong = 0, compared = 0;
    char first[200] = "";
    for (size_t i = 0; i < COUNT(edges) + random; i++)
        for (size_t m = 0; m < COUNT(maxes); m++)
            for (size_t e = 0; e < COUNT(epsilons); e++) {
                const int edge = i < COUNT(edges);
                const float a = f32_of_bits(edge ? edges[i] : (uint32_t)(test_random(&r) >> 33));
                for (size_t k = 0; k < (edge ? 6 : 1); k++) {
                    const int power = (int)(edge ? k % 2 : i % 2);
                    const float f = infs[k / 2];
                    const float want = oracle_scale(a, maxes[m], epsilons[e], f, power);
                    const float got = mpsim_fp8_scale(a, maxes[m], epsilons[e], f, power);
                    compared++;
                    if (!recipe_same(got, want) && wrong++ == 0)
                        snprintf(first, sizeof first, "amax %a max %a epsilon %a power %d: %a %a", (double)a,
                                 (double)maxes[m], (double)epsilons[e], power, (double)got, (double)want);
                }
            }
    printf("# %llu scales, %llu wrong\n", compared, wrong);
    ck_assert_msg(wrong == 0, "%llu of %llu differ (library, oracle): %s", wrong, compared, first);
}

TEST(powers_of_two_lie_below)
{
    /* 448/1 has the power 256; a quotient of 2^k stays; FLT_MAX gives 2^127. */
    ck_assert(mpsim_fp8_scale(1, 448, 0, FLT_MAX, 1) == 256);
    ck_assert(mpsim_fp8_scale(448, 448, 0, FLT_MAX, 1) == 1);
    ck_assert(mpsim_fp8_scale(nextafterf(448, 500), 448, 0, FLT_MAX, 1) == 0.5f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, FLT_MAX, 1) == 0x1p127f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, 0x1.fep127f, 1) == 0x1p127f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, 65504, 1) == 32768);
}

TESTS(largest_magnitudes, test_isa_count())
{
    if (!test_isa_use((size_t)_i))
        return;
    const float nan2[] = {NAN, -NAN}, mixed[] = {NAN, -3, 2, NAN, -0.0f};
    const float zeros[] = {-0.0f, 0, -0.0f}, inf[] = {1, -INFINITY, NAN, 3};
    const float tiny[] = {0x1p-149f, -0x1p-148f, 0};
    float signalling[] = {2, 0, -1};
    signalling[1] = f32_of_bits(0x7f800001);
    ck_assert(mpsim_amax(signalling, 3) == 2 && mpsim_amax(signalling + 1, 2) == 1);
    ck_assert(bits_of_f32(mpsim_amax(nan2, 2)) == 0);
    ck_assert(mpsim_amax(mixed, 5) == 3);
    ck_assert(mpsim_amax(mixed, 1) == 0);
    ck_assert(bits_of_f32(mpsim_amax(zeros, 3)) == 0);
    ck_assert(mpsim_amax(inf, 4) == (float)INFINITY);
    ck_assert(mpsim_amax(inf, 1) == 1);
    ck_assert(mpsim_amax(tiny, 3) == 0x1p-148f);
    ck_assert(bits_of_f32(mpsim_amax(mixed, 0)) == 0);
    ck_assert(bits_of_f32(mpsim_amax(NULL, 0)) == 0);
    /* Anywhere in a row, whatever blocks a loop takes. */
    float x[77];
    for (size_t n = 1; n <= COUNT(x); n++)
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < n; i++)
                x[i] = i % 5 == 4 ? NAN : (float)(i % 3);
            x[at] = -9;
            ck_assert(mpsim_amax(x, n) == 9);
        }
}

TEST_MAIN("recipe-scale");
