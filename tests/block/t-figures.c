/* t-figures.c -- published figures about formats and block scales: signal to noise,
 * landmarks, which exponent rule saturates. Errors of block formats: t-published.c. */
#include "support/support.h"

#include <math.h>
#include <mpsim/block.h>
#include <stdio.h>

#define LENGTH(a) ((int)(sizeof(a) / sizeof(a)[0]))

/* Signal to noise of a unit normal, rounded to nearest even: arXiv 2206.02915, table 1 (a scale of
 * 1; the tolerance covers the sample and the printed digit). */
static const struct {
    const char *format;
    double decibels;
} published[] = {{"fp16", 73.7}, {"bf16", 55.6}, {"e4m3", 31.5}, {"e5m2", 25.5}};

enum { SAMPLES = 400000, PART = 4000 };

CASE("published", 60);

TESTS(signal_to_noise, LENGTH(published))
{
    const mpsim_format *f = mpsim_format_find(published[_i].format);
    static double x[PART];
    mpsim_rounding r;
    mpsim_stats s;
    mpsim_cast_stats c;
    uint64_t state = 2022;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_stats_init(&s);
    mpsim_cast_stats_init(&c);
    for (size_t done = 0; done < SAMPLES; done += PART) {
        for (size_t i = 0; i < PART; i += 2)
            test_normal_pair(&state, x + i);
        mpsim_stats_add(&s, x, PART);
        ck_assert_int_eq(mpsim_cast_stats_add(&c, f, &r, NULL, x, PART), MPSIM_OK);
    }
    const double db = mpsim_cast_stats_sqnr_db(&c, &s);
    printf("# %s: %.2f dB of %d samples, published %.1f\n", f->name, db, (int)SAMPLES, published[_i].decibels);
    ck_assert_double_eq_tol(db, published[_i].decibels, 0.1);
}

/* arXiv 2209.05433, table 1, and Micikevicius et al. 2018: the landmarks of the formats. A binade
 * counts if any number lies in it. */
static const struct {
    const char *format;
    double max, min_normal, min_positive;
    int binades;
} landmarks[] = {
    {"e4m3", 448, 0x1p-6, 0x1p-9, 18},
    {"e5m2", 57344, 0x1p-14, 0x1p-16, 32},
    {"e4m3ieee", 240, 0x1p-6, 0x1p-9, 17},
    {"fp16", 65504, 0x1p-14, 0x1p-24, 40},
};

TESTS(format_table, LENGTH(landmarks))
{
    const mpsim_format *f = mpsim_format_find(landmarks[_i].format);
    int top, bottom;
    ck_assert(f != NULL);
    ck_assert_double_eq(mpsim_format_max(f), landmarks[_i].max);
    ck_assert_double_eq(mpsim_format_min_normal(f), landmarks[_i].min_normal);
    ck_assert_double_eq(mpsim_format_min_positive(f), landmarks[_i].min_positive);
    (void)frexp(mpsim_format_max(f), &top);
    (void)frexp(mpsim_format_min_positive(f), &bottom);
    ck_assert_int_eq(top - bottom + 1, landmarks[_i].binades);
}

/* NVIDIA's round-up exponent against OCP's floor (arXiv 2506.08027): nothing saturates under the
 * first; under the second a block whose amax lies between 464 and 512, times a power of two: from
 * 448 to 464 rounding leads back. */
TEST(round_up_never_saturates)
{
    const mpsim_block_recipe *up = mpsim_block_find("mxfp8");
    const mpsim_block_recipe *down = mpsim_block_find("mxfp8-floor");
    uint64_t state = 2506;
    size_t floor_saturates = 0, expected = 0;
    for (int k = 0; k < 4000; k++) {
        float x[32];
        double pair[2], amax = 0;
        mpsim_cast_stats cu, cd;
        mpsim_blocks bu = {.casts = &cu}, bd = {.casts = &cd};
        int e;
        for (int i = 0; i < 32; i++) {
            test_normal_pair(&state, pair);
            x[i] = (float)pair[0];
            amax = fmax(amax, fabs((double)x[i]));
        }
        mpsim_cast_stats_init(&cu);
        mpsim_cast_stats_init(&cd);
        mpsim_block_quantize(up, x, 1, 32, -1, 1, NULL, &bu, NULL);
        mpsim_block_quantize(down, x, 1, 32, -1, 1, NULL, &bd, NULL);
        ck_assert_uint_eq(cu.counts.overflow, 0);
        ck_assert_uint_eq(cu.compared, 32);
        floor_saturates += cd.counts.overflow > 0;
        expected += frexp(amax, &e) * 512 > 464;
    }
    printf("# floor: %zu of 4000 blocks saturate\n", floor_saturates);
    ck_assert_uint_gt(expected, 0);
    ck_assert_uint_eq(floor_saturates, expected);
}

TEST_MAIN("block-figures");
