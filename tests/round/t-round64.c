/* t-round64.c -- proves <mpsim/round.h> for binary64 inputs: every format, mode and choice
 * against the oracle, code and flags.
 *
 * What binary64 adds to t-round.c: inputs between two binary32 numbers, where a detour
 * through binary32, bf16 or fp16 rounds twice; inputs beyond the range of binary32; the
 * formats that binary32 cannot feed. */
#include "sim/verify/oracles/oracle.h"
#include "support/cases.h"
#include "support/rounding.h"
#include "support/support.h"

#include <inttypes.h>
#include <mpsim/round.h>

CASE("oracle", 60);

/* Each of these goes wrong by way of a narrower intermediate format. */
TEST(known_double_roundings)
{
    static const struct {
        const char *format;
        double x;
        uint64_t code;
    } known[] = {
        {"fp16", 0x1.0020000000001p+0, 0x3c01}, /* binary32: the tie, 1.0 */
        {"fp16", 0x1.001fffffffffep+0, 0x3c00},
        {"fp16", -0x1.0020000000001p+0, 0xbc01},
        {"fp16", 0x1.000000000001p-25, 0x0001},  /* binary32: the tie, 0 */
        {"fp16", 0x1.ffdffffffffffp+15, 0x7bff}, /* binary32: the tie, infinity */
        {"bf16", 0x1.0100000000001p+0, 0x3f81},
        {"bf16", 16842753, 0x4b81},
        {"binary32", 0x1.0000010000001p+0, 0x3f800001},
        {"binary32", 0x1.0000000000001p-150, 0x00000001},
        {"e4m3", 464.00000000000006, 0x7f}, /* binary32: the tie, 448 */
        {"e4m3", 0x1.1000000000001p+0, 0x39},
        {"e5m2", 0x1.2000000000001p+0, 0x3d},
        {"e5m2", 0x1.dffffffffffffp+15, 0x7b},
        {"e2m1", 0x1.0000000000001p-2, 0x1},
        {"binary64", 0x1.0020000000001p+0, 0x3ff0020000000001},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const mpsim_format *f = mpsim_format_find(known[k].format);
        const oracle_format *of = oracle_find(known[k].format);
        ck_assert(f && of);
        const mpsim_rounding r = rounding(MPSIM_ROUND_NEAREST_EVEN);
        unsigned flags;
        const uint64_t want = oracle_encode(of, &r, known[k].x, 0, 0, &flags);
        const uint64_t got = mpsim_encode_f64(f, &r, known[k].x, 0, NULL);
        ck_assert_msg(want == known[k].code && got == known[k].code,
                      "%s %a: known 0x%" PRIx64 ", oracle 0x%" PRIx64 ", library 0x%" PRIx64, known[k].format,
                      known[k].x, known[k].code, want, got);
    }
}

static void two_ways(tally *t, const mpsim_format *f, const oracle_format *of)
{
    (void)f;
    static const double factors[] = {1, 1.0 / 3, 0x1p-1000};
    cases c;
    cases_init(&c, 64);
    for (size_t k = 0; k < 3; k++) {
        if (k && !test_in_part(k, 2))
            continue;
        cases_numbers(&c, of, factors[k], 100);
        cases_edges(&c, of, factors[k], 1);
        cases_sweep(&c, of, test_scaled(500), test_seed());
        compare_two_ways(t, of, &c, factors[k]);
        c.n = 0;
    }
    cases_clear(&c);
}

TEST(the_oracle_agrees_with_itself)
{
    for_all_formats(two_ways, 64);
}

static void numbers(tally *t, const mpsim_format *f, const oracle_format *of)
{
    cases c;
    cases_init(&c, 64);
    /* 16-bit formats: an eighth of the numbers; t-round.c takes all of them. */
    cases_numbers(&c, of, 1, of->bits <= 13 ? 5000 : of->bits <= 16 ? 4096 : test_scaled(1500));
    compare_in_turn(t, f, of, &c, 1, (size_t)of->bits);
    c.n = 0;
    cases_edges(&c, of, 1, 1);
    compare_modes(t, f, of, &c, 1);
    cases_clear(&c);
}

CASE("round", 120);

TEST(every_number_and_midpoint_rounds_in_every_mode)
{
    for_all_formats(numbers, 64);
}

static void thresholds(tally *t, const mpsim_format *f, const oracle_format *of)
{
    static const uint8_t widths[] = {1, 7, 8, 23, 31, 32};
    cases c;
    cases_init(&c, 64);
    cases_numbers(&c, of, 1, 24);
    cases_edges(&c, of, 1, 1);
    cases_sweep(&c, of, 100, test_seed());
    compare_thresholds(t, f, of, &c, widths, sizeof widths);
    cases_clear(&c);
}

TEST(stochastic_modes_decide_at_the_exact_word)
{
    for_all_formats(thresholds, 64);
}

static void sweep(tally *t, const mpsim_format *f, const oracle_format *of)
{
    compare_sweep(t, f, of, 64);
}

TEST(random_numbers_of_the_format_and_beyond)
{
    for_all_formats(sweep, 64);
}

/* x * scale has up to 106 bits and any exponent from -2148 to 2047. */
static void scales(tally *t, const mpsim_format *f, const oracle_format *of)
{
    static const double factors[] = {
        0x1p4,   0x1p-7,  0x1.8p3,   1.0 / 3,   0x1.fffffffffffffp0,   0x1.0000000000001p-1, 0x1.3456789abcdefp-40,
        0x1p300, 0x1p900, 0x1p-1000, 0x1p-1074, 0x1.fffffffffffffp1023};
    cases c;
    cases_init(&c, 64);
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        if (test_in_whole_part(k + (size_t)of->bits, 3))
            cases_numbers(&c, of, factors[k], 12);
        cases_edges(&c, of, factors[k], 1);
        cases_sweep(&c, of, 60, test_seed() + k);
        compare_in_turn(t, f, of, &c, factors[k], k);
        c.n = 0;
    }
    cases_clear(&c);
}

TEST(the_exact_product_with_scale_is_rounded_once)
{
    for_all_formats(scales, 64);
}

static void choices(tally *t, const mpsim_format *f, const oracle_format *of)
{
    compare_choices(t, f, of, 64);
}

TEST(every_combination_of_choices_in_every_mode)
{
    for_all_formats(choices, 64);
}

TEST_MAIN("round64");
