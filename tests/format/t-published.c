/* t-published.c -- figures that papers print, computed again.
 *
 * Graphcore, 8-bit numerical formats for deep neural networks (arXiv 2206.02915), table 1: dynamic
 * range D = 20 log10(largest / smallest number) and SNR of a unit normal, in dB. Micikevicius et al.
 * (arXiv 1710.03740): range of fp16. Their 8-bit formats are FNUZ. */
#include "support/support.h"

#include <math.h>
#include <mpsim/mpsim.h>
#include <stdlib.h>

typedef struct row {
    const char *format;
    double range, snr; /* dB, as printed */
} row;

static const row rows[] = {
    {"binary32", 1667.7, 151.9}, {"fp16", 240.8, 73.7},     {"bf16", 1571.3, 55.6},
    {"e6m9", 0, 67.6}, /* DLFloat has no subnormals: another range */
    {"e5m2fnuz", 197.5, 25.5},   {"e4m3fnuz", 107.8, 31.5}, {"e3m4:fnuz", 66.0, 37.5},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double decibels(double ratio)
{
    return 20 * log10(ratio);
}

CASE("graphcore", 30);

TESTS(dynamic_range, ROWS)
{
    mpsim_format f;
    if (rows[_i].range == 0)
        return;
    ck_assert_int_eq(mpsim_format_parse(&f, rows[_i].format), MPSIM_OK);
    const double d = decibels(mpsim_format_max(&f)) - decibels(mpsim_format_min_positive(&f));
    ck_assert_msg(fabs(d - rows[_i].range) < 0.06, "%s: %.2f dB, printed %.1f", rows[_i].format, d, rows[_i].range);
}

TESTS(snr_of_a_unit_normal, ROWS)
{
    enum { N = 400000 };
    mpsim_format f;
    mpsim_rounding nearest;
    mpsim_stats stats;
    mpsim_cast_stats casts;
    uint64_t state = 20240601;
    double *x = malloc(N * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < N; i += 2)
        test_normal_pair(&state, x + i);
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_stats_init(&stats);
    mpsim_cast_stats_init(&casts);
    ck_assert_int_eq(mpsim_format_parse(&f, rows[_i].format), MPSIM_OK);
    mpsim_stats_add(&stats, x, N);
    ck_assert_int_eq(mpsim_cast_stats_add(&casts, &f, &nearest, NULL, x, N), MPSIM_OK);
    const double snr = mpsim_cast_stats_sqnr_db(&casts, &stats);
    free(x);
    /* what is printed is rounded to 0.1; 400,000 samples scatter by less than 0.05 */
    ck_assert_msg(fabs(snr - rows[_i].snr) < 0.1, "%s: %.2f dB, printed %.1f", rows[_i].format, snr, rows[_i].snr);
}

CASE("fp16", 10);

TEST(fp16_spans_forty_binades)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    ck_assert(mpsim_format_min_positive(f) == 0x1p-24 && mpsim_format_max(f) == 65504);
    ck_assert_int_eq(ilogb(mpsim_format_max(f)) - ilogb(mpsim_format_min_positive(f)) + 1, 40);
}

/* Micikevicius et al., 3.2: in SSD a scale of 8 saves the values in [2^-27, 2^-24). */
TEST(a_scale_of_eight_saves_three_binades)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (int e = -27; e < -24; e++) {
        mpsim_encode_f64(f, &r, ldexp(1, e), 0, &flags);
        ck_assert((flags & MPSIM_FLAG_UNDERFLOW) != 0); /* 2^-25 is a tie, to even: zero */
        r.scale = 8;
        mpsim_encode_f64(f, &r, ldexp(1, e), 0, &flags);
        ck_assert(flags == MPSIM_FLAG_SUBNORMAL);
        r.scale = 1;
    }
}

TEST_MAIN("published");
