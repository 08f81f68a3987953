/* t-round.c -- proves <mpsim/round.h> for binary32 inputs: every format, mode and choice
 * against the oracle, code and flags; roundings, presets and names.
 *
 * What is tested where, so that every combination occurs and few occur twice:
 *   numbers      every number, midpoint and neighbour, to nearest even and in turn the other modes; the edges in all modes
 *   choices      the few inputs on which choices act, all modes, ALL choice combinations
 *   thresholds   the stochastic modes at several widths, around the word that decides
 *   sweep        inputs that nobody chose
 * binary64 inputs: t-round64.c. Arrays: t-arrays.c. All 2^32 inputs: x-sweep.c. */
#include "sim/verify/oracles/oracle.h"
#include "support/cases.h"
#include "support/rounding.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/round.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ------------------------------------------------------------ the oracle itself ---- */

/* Published results, those that other emulators got wrong among them; the oracle and the
 * library must both know them. */
START_TEST(known_values)
{
    static const struct {
        const char *format;
        int mode;
        int overflow;
        uint32_t x;
        uint64_t code;
    } known[] = {
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x477ff000, 0x7c00}, /* 65520 */
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x477fefff, 0x7bff},
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_MAX, 0x477ff000, 0x7bff},
        {"fp16", MPSIM_ROUND_TOWARD_ZERO, MPSIM_OVERFLOW_INF, 0xc77ff000, 0xfbff},
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x33000000, 0x0000}, /* 2^-25 */
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x33000001, 0x0001},
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x330000b2, 0x0001},
        {"fp16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0xb0800000, 0x8000},
        {"fp16", MPSIM_ROUND_UP, MPSIM_OVERFLOW_INF, 0x80000001, 0x8000},
        {"fp16", MPSIM_ROUND_DOWN, MPSIM_OVERFLOW_INF, 0x80000001, 0x8001},
        {"fp16", MPSIM_ROUND_UP, MPSIM_OVERFLOW_INF, 0x7fffe2da, 0x7e00},
        {"bf16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x7f7fffff, 0x7f80},
        {"bf16", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x7fff8c22, 0x7fc0},
        {"bf16", MPSIM_ROUND_UP, MPSIM_OVERFLOW_INF, 0x00000001, 0x0001},
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x43e80000, 0x7e}, /* 464 */
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x43e80800, 0x7f},
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_MAX, 0x43e80800, 0x7e},
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0xc3f00000, 0xff}, /* -480 */
        {"e4m3", MPSIM_ROUND_TOWARD_ZERO, MPSIM_OVERFLOW_INF, 0x43f00000, 0x7e},
        {"e4m3", MPSIM_ROUND_UP, MPSIM_OVERFLOW_INF, 0x43e08000, 0x7f}, /* 449 */
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x7f800001, 0x7f},
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0xff800001, 0xff},
        /* 1.31640625, above the tie that bf16 would make of it */
        {"e4m3", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3fa88000, 0x3b},
        {"e5m2", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x47700000, 0x7c}, /* 61440 */
        {"e5m2", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x476fffff, 0x7b},
        {"e5m2", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3f900800, 0x3d},
        {"e2m1", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3e800002, 0x1},
        {"e2m1", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3e800000, 0x0},
        {"e2m1", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x40a00000, 0x6}, /* 5: 4 */
        {"e8m0", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3f800000, 0x7f},
        {"e8m0", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x7f800000, 0xff},
        {"e8m0", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x00000000, 0x00},
        {"e8m0", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x3fc00000, 0x80}, /* 1.5 */
        {"e4m3fnuz", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x80000000, 0x00},
        {"e4m3fnuz", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0xff800000, 0x80},
        {"binary8p4se", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x7f800000, 0x7f},
        {"binary8p4se", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0xff800000, 0xff},
        {"binary8p4se", MPSIM_ROUND_NEAREST_EVEN, MPSIM_OVERFLOW_INF, 0x43600000, 0x7e},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const mpsim_format *f = mpsim_format_find(known[k].format);
        const oracle_format *of = oracle_find(known[k].format);
        ck_assert(f && of);
        mpsim_rounding r = rounding(known[k].mode);
        r.overflow = (uint8_t)known[k].overflow;
        unsigned flags;
        const double x = oracle_widen(known[k].x);
        const uint64_t want = oracle_encode(of, &r, x, 1, 0, &flags);
        const uint64_t got = mpsim_encode_f32(f, &r, f32_of_bits(known[k].x), 0, NULL);
        ck_assert_msg(want == known[k].code && got == known[k].code,
                      "%s %s %a = 0x%08" PRIx32 ": published 0x%" PRIx64 ", oracle 0x%" PRIx64 ", library 0x%" PRIx64,
                      known[k].format, mode_name(known[k].mode), x, known[k].x, known[k].code, want, got);
    }
}

static void two_ways(tally *t, const mpsim_format *f, const oracle_format *of)
{
    (void)f;
    cases c;
    cases_init(&c, 32);
    cases_numbers(&c, of, 1, 400);
    cases_edges(&c, of, 1, 1);
    cases_sweep(&c, of, test_scaled(2000), test_seed());
    compare_two_ways(t, of, &c, 1);
    cases_clear(&c);
}

START_TEST(the_oracle_agrees_with_itself)
{
    for_all_formats(two_ways, 32);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t f16c(float x, int mode)
{
    switch (mode) {
    case MPSIM_ROUND_TOWARD_ZERO:
        return _cvtss_sh(x, 3);
    case MPSIM_ROUND_UP:
        return _cvtss_sh(x, 2);
    case MPSIM_ROUND_DOWN:
        return _cvtss_sh(x, 1);
    default:
        return _cvtss_sh(x, 0);
    }
}

START_TEST(the_oracle_agrees_with_the_f16c_instructions)
{
    unsigned eax, ebx, ecx = 0, edx; /* not every compiler knows this feature by name */
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_F16C))
        return;
    static const int modes[] = {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_TOWARD_ZERO, MPSIM_ROUND_UP, MPSIM_ROUND_DOWN};
    const oracle_format *of = oracle_find("fp16");
    cases c;
    cases_init(&c, 32);
    cases_numbers(&c, of, 1, 4000);
    cases_edges(&c, of, 1, 1);
    cases_sweep(&c, of, test_scaled(100000), test_seed());
    tally t = {0};
    for (size_t m = 0; m < 4; m++) {
        mpsim_rounding r = rounding(modes[m]);
        r.nan = MPSIM_NANS_PAYLOAD;
        for (size_t i = 0; i < c.n; i++) {
            unsigned flags;
            const uint64_t a = oracle_encode(of, &r, cases_value(&c, i), 1, 0, &flags);
            const uint16_t b = f16c(f32_of_bits((uint32_t)c.u[i]), modes[m]);
            tally_code(&t, of, &r, 32, i, c.u[i], 0, b, flags, a, flags);
        }
    }
    cases_clear(&c);
    ck_assert_msg(t.wrong == 0, "%zu wrong, first (expected: F16C): %s", t.wrong, t.first);
}
#endif

/* ---------------------------------------------------------------------- rounding ---- */

/* Whether all magnitudes fit the exhaustive lists: formats of up to 16 bits. */
static size_t all_or_some(const oracle_format *of)
{
    return of->bits <= 16 ? 40000 : test_scaled(3000);
}

static void numbers(tally *t, const mpsim_format *f, const oracle_format *of)
{
    cases c;
    cases_init(&c, 32);
    /* Every number of the 16-bit rows; of typed formats so wide, a sample. */
    const int row = mpsim_format_find(of->name) != NULL;
    cases_numbers(&c, of, 1, row ? all_or_some(of) : 2500);
    compare_in_turn(t, f, of, &c, 1, (size_t)of->bits);
    c.n = 0;
    cases_edges(&c, of, 1, 1);
    compare_modes(t, f, of, &c, 1);
    cases_clear(&c);
}

START_TEST(every_number_and_midpoint_rounds_in_every_mode)
{
    for_all_formats(numbers, 32);
}

static void thresholds(tally *t, const mpsim_format *f, const oracle_format *of)
{
    static const uint8_t widths[] = {1, 2, 8, 13, 24, 32};
    cases c;
    cases_init(&c, 32);
    cases_numbers(&c, of, 1, 40);
    cases_edges(&c, of, 1, 1);
    cases_sweep(&c, of, 100, test_seed());
    compare_thresholds(t, f, of, &c, widths, sizeof widths);
    cases_clear(&c);
}

START_TEST(stochastic_modes_decide_at_the_exact_word)
{
    for_all_formats(thresholds, 32);
}

/* Every word of few random bits: the number of those that round away is the definition. */
START_TEST(stochastic_modes_count_as_defined)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    /* P3109 interim report, N = 4, of 16 words: nu in 1/64 */
    static const int nu64[] = {1, 2, 3, 4, 31, 32, 62, 63};
    static const int away[3][8] = {{0, 0, 0, 1, 7, 8, 15, 15}, {0, 1, 1, 1, 8, 8, 16, 16}, {0, 0, 1, 1, 8, 8, 16, 16}};
    for (int m = 0; m < 3; m++)
        for (size_t k = 0; k < 8; k++) {
            mpsim_rounding r = rounding(MPSIM_ROUND_STOCHASTIC_A + m);
            r.sr_bits = 4;
            const float x = 1 + (float)nu64[k] / 64 / 8; /* the ulp of 1 is 1/8 */
            int n = 0;
            for (uint32_t w = 0; w < 16; w++)
                n += mpsim_encode_f32(f, &r, x, w << 28 | 0x0abcdef, NULL) == 0x39;
            ck_assert_msg(n == away[m][k], "%s nu=%d/64: expected %d of 16, got %d", mode_name(r.mode), nu64[k],
                          away[m][k], n);
        }
}

static void sweep(tally *t, const mpsim_format *f, const oracle_format *of)
{
    compare_sweep(t, f, of, 32);
}

START_TEST(a_prime_stride_through_all_of_binary32)
{
    for_all_formats(sweep, 32);
}

/* x * scale is rounded once: powers of two, products of more than 53 bits, products that
 * leave binary32 and binary64. */
static void scales(tally *t, const mpsim_format *f, const oracle_format *of)
{
    static const double factors[] = {
        0x1p4,    0x1p-7,          0x1.8p3, 1.0 / 3,   0x1.fffffffffffffp0, 0x1.0000000000001p-1,  0x1p100,
        0x1p-120, 0x1.2345678p-90, 0x1p900, 0x1p-1000, 0x1p-1074,           0x1.fffffffffffffp1023};
    cases c;
    cases_init(&c, 32);
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        if (test_in_whole_part(k + (size_t)of->bits, 3))
            cases_numbers(&c, of, factors[k], 40);
        cases_edges(&c, of, factors[k], 1);
        cases_sweep(&c, of, 30, test_seed() + k);
        compare_in_turn(t, f, of, &c, factors[k], k);
        c.n = 0;
    }
    cases_clear(&c);
}

START_TEST(the_exact_product_with_scale_is_rounded_once)
{
    for_all_formats(scales, 32);
}

/* ----------------------------------------------------------------------- choices ---- */

static void choices(tally *t, const mpsim_format *f, const oracle_format *of)
{
    compare_choices(t, f, of, 32);
}

START_TEST(every_combination_of_choices_in_every_mode)
{
    for_all_formats(choices, 32);
}

/* The neighbourhood of the edges, once per choice field and value: to nearest even; the other modes in turn. */
static void one_choice(tally *t, const mpsim_format *f, const oracle_format *of)
{
    cases c;
    cases_init(&c, 32);
    cases_edges(&c, of, 1, 1);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        for (int k = 0; k < 19; k++) {
            mpsim_rounding r = rounding(m);
            if (m != MPSIM_ROUND_NEAREST_EVEN && !test_in_part((size_t)(m + k) + (size_t)of->bits, 1))
                continue;
            switch (k) {
            case 0:
                r.overflow = MPSIM_OVERFLOW_MAX;
                break;
            case 1:
                r.infinity = MPSIM_INFINITY_MAX;
                break;
            case 2:
                r.no_inf = MPSIM_NO_INF_MAX;
                break;
            case 3:
            case 4:
            case 5:
            case 6:
            case 7:
                r.nan = (uint8_t)(k - 2);
                break;
            case 8:
            case 9:
                r.no_nan = (uint8_t)(k - 7);
                break;
            case 10:
            case 11:
                r.negative = (uint8_t)(k - 9);
                break;
            case 12:
                r.no_zero = MPSIM_NO_ZERO_NAN;
                break;
            case 13:
                r.flush_input = 1;
                break;
            case 14:
                r.flush_output = 1;
                break;
            case 15:
                r.no_zero = MPSIM_NO_ZERO_NAN_MIN;
                break;
            case 16:
                r.flush_input = 1, r.flush_below = ldexp(1, of->emin);
                break;
            case 17:
                r.flush_input = 1, r.flush_below = 1, r.no_zero = MPSIM_NO_ZERO_NAN_MIN;
                break;
            case 18:
                r.flush_below = 1;
                break; /* without flush_input: nothing */
            }
            tally_cases(t, f, of, &r, &c, 0);
        }
    cases_clear(&c);
}

START_TEST(each_choice_around_each_edge)
{
    for_all_formats(one_choice, 32);
}

static void presets(tally *t, const mpsim_format *f, const oracle_format *of)
{
    cases c;
    cases_init(&c, 32);
    cases_edges(&c, of, 1, 0);
    enum { SETS = 2 + MPSIM_PRESET_EXCEPTIONS };
    for (size_t p = 0; p < mpsim_preset_count(); p++)
        for (int k = 0; k < SETS; k++) {
            const mpsim_preset *preset = mpsim_preset_at(p);
            if (k >= 2 && !preset->exceptions[k - 2].format)
                continue;
            for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
                if (m != MPSIM_ROUND_NEAREST_EVEN && !test_in_part(p + (size_t)(m + k) + (size_t)of->bits, 1))
                    continue;
                mpsim_rounding r = k == 0 ? preset->narrow : k == 1 ? preset->wide : preset->exceptions[k - 2].rounding;
                r.mode = (uint8_t)m;
                r.sr_bits = 8;
                r.scale = 1;
                r.via_binary32 = r.by_field = 0; /* routes: t-framework.c */
                tally_cases(t, f, of, &r, &c, 0);
            }
        }
    cases_clear(&c);
}

START_TEST(every_preset_in_every_mode)
{
    for_all_formats(presets, 32);
}

/* -------------------------------------------------------------- roundings, names ---- */

START_TEST(the_default_rounding_is_as_documented)
{
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        mpsim_rounding r;
        memset(&r, 0x5a, sizeof r);
        mpsim_rounding_init(&r, (mpsim_round_mode)m);
        ck_assert_int_eq(r.mode, m);
        ck_assert_int_eq(r.sr_bits, 32);
        ck_assert_int_eq(r.overflow, MPSIM_OVERFLOW_INF);
        ck_assert_int_eq(r.infinity, MPSIM_INFINITY_KEEP);
        ck_assert_int_eq(r.no_inf, MPSIM_NO_INF_NAN);
        ck_assert_int_eq(r.nan, MPSIM_NANS_SIGNED);
        ck_assert_int_eq(r.no_nan, MPSIM_NO_NAN_MAX);
        ck_assert_int_eq(r.negative, MPSIM_NEGATIVE_NAN);
        ck_assert_int_eq(r.no_zero, MPSIM_NO_ZERO_MIN);
        ck_assert(!r.flush_input && !r.flush_output && r.scale == 1 && r.flush_below == 0);
        ck_assert_int_eq(mpsim_rounding_check(&r), MPSIM_OK);
    }
}

START_TEST(a_rounding_outside_its_domain_is_refused)
{
    mpsim_rounding r;
#define STATUS(mode, change, want)                                        \
    do {                                                                  \
        mpsim_rounding_init(&r, mode);                                    \
        change;                                                           \
        ck_assert_msg(mpsim_rounding_check(&r) == (want), "%s", #change); \
    } while (0)
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.mode = MPSIM_ROUND_MODES, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_STOCHASTIC_A, r.sr_bits = 0, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_STOCHASTIC_C, r.sr_bits = 33, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_STOCHASTIC_B, r.sr_bits = 1, MPSIM_OK);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.sr_bits = 0, MPSIM_OK); /* ignored there */
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.overflow = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.infinity = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.no_inf = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.nan = MPSIM_NAN_RULES, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.no_nan = 3, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.negative = 3, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.no_zero = 3, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.via_binary32 = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.by_field = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.flush_input = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.flush_output = 2, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = 0, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = -1, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = (double)INFINITY, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = (double)NAN, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.flush_below = -1, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.flush_below = (double)NAN, MPSIM_EINVAL);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.flush_below = 0x1p-1074, MPSIM_OK);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = 0x1p-1074, MPSIM_OK);
    STATUS(MPSIM_ROUND_NEAREST_EVEN, r.scale = 0x1.fffffffffffffp1023, MPSIM_OK);
#undef STATUS
    ck_assert_int_eq(mpsim_rounding_check(NULL), MPSIM_EINVAL);
}

START_TEST(modes_are_known_by_name)
{
    static const struct {
        const char *name;
        int mode;
        int bits; /* 0: untouched */
    } known[] = {
        {"rne", MPSIM_ROUND_NEAREST_EVEN, 0},
        {"rna", MPSIM_ROUND_NEAREST_AWAY, 0},
        {"rtz", MPSIM_ROUND_TOWARD_ZERO, 0},
        {"rup", MPSIM_ROUND_UP, 0},
        {"rdn", MPSIM_ROUND_DOWN, 0},
        {"rto", MPSIM_ROUND_TO_ODD, 0},
        {"sra", MPSIM_ROUND_STOCHASTIC_A, 0},
        {"srb", MPSIM_ROUND_STOCHASTIC_B, 0},
        {"src", MPSIM_ROUND_STOCHASTIC_C, 0},
        {"sr", MPSIM_ROUND_STOCHASTIC_C, 0},
        {"stochastic", MPSIM_ROUND_STOCHASTIC_C, 0},
        {"sr:8", MPSIM_ROUND_STOCHASTIC_C, 8},
        {"SRA:1", MPSIM_ROUND_STOCHASTIC_A, 1},
        {"srb:32", MPSIM_ROUND_STOCHASTIC_B, 32},
        {"stochastic:13", MPSIM_ROUND_STOCHASTIC_C, 13},
        {"stochastic-b:4", MPSIM_ROUND_STOCHASTIC_B, 4},
        {"NEAREST-EVEN", MPSIM_ROUND_NEAREST_EVEN, 0},
        {"RtZ", MPSIM_ROUND_TOWARD_ZERO, 0},
    };
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        ck_assert_str_eq(mpsim_round_mode_name((mpsim_round_mode)m), mode_name(m));
        mpsim_round_mode got = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        ck_assert_int_eq(mpsim_round_mode_parse(&got, &bits, mode_name(m)), MPSIM_OK);
        ck_assert(got == (mpsim_round_mode)m && bits == 77);
    }
    ck_assert_ptr_null(mpsim_round_mode_name(MPSIM_ROUND_MODES));
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        mpsim_round_mode got = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        const mpsim_status s = mpsim_round_mode_parse(&got, &bits, known[k].name);
        ck_assert_msg(s == MPSIM_OK && (int)got == known[k].mode && bits == (known[k].bits ? known[k].bits : 77),
                      "%s: status %d mode %d bits %d", known[k].name, (int)s, (int)got, bits);
    }
    static const char *const unknown[] = {"",     "nearest", "even",  "sr:",   "sr:0", "sr:33",
                                          "sr:x", "sr:8x",   "rne:8", "sr:-1", " rne", "rne "};
    for (size_t k = 0; k < sizeof unknown / sizeof unknown[0]; k++) {
        mpsim_round_mode got = MPSIM_ROUND_DOWN;
        uint8_t bits = 77;
        const mpsim_status s = mpsim_round_mode_parse(&got, &bits, unknown[k]);
        ck_assert_msg(s == MPSIM_ENOTFOUND && got == MPSIM_ROUND_DOWN && bits == 77,
                      "\"%s\": status %d mode %d bits %d", unknown[k], (int)s, (int)got, bits);
    }
}

START_TEST(presets_are_found_and_chosen_by_format)
{
    ck_assert_uint_gt(mpsim_preset_count(), 0);
    ck_assert_ptr_null(mpsim_preset_at(mpsim_preset_count()));
    ck_assert_ptr_null(mpsim_preset_find("no such preset"));
    for (size_t p = 0; p < mpsim_preset_count(); p++) {
        const mpsim_preset *preset = mpsim_preset_at(p);
        ck_assert_ptr_eq(mpsim_preset_find(preset->name), preset);
        ck_assert(preset->source && preset->source[0]);
        for (size_t q = 0; q < p; q++)
            ck_assert_str_ne(mpsim_preset_at(q)->name, preset->name);
        for (size_t k = 0; k < mpsim_format_count(); k++) {
            const mpsim_format *f = mpsim_format_at(k);
            const mpsim_rounding *from = f->bits <= 8 ? &preset->narrow : &preset->wide;
            for (int x = 0; x < MPSIM_PRESET_EXCEPTIONS; x++) {
                const mpsim_preset_exception *e = &preset->exceptions[x];
                if (e->format && strcmp(e->format, f->name) == 0)
                    from = &e->rounding;
            }
            mpsim_rounding r;
            memset(&r, 0x5a, sizeof r);
            mpsim_rounding_preset(&r, preset, f);
            ck_assert_int_eq(mpsim_rounding_check(&r), MPSIM_OK);
            ck_assert_int_eq(r.mode, MPSIM_ROUND_NEAREST_EVEN);
            ck_assert(r.scale == 1);
            ck_assert_msg(r.overflow == from->overflow && r.infinity == from->infinity && r.no_inf == from->no_inf &&
                              r.nan == from->nan && r.no_nan == from->no_nan && r.negative == from->negative &&
                              r.no_zero == from->no_zero && r.flush_input == from->flush_input &&
                              r.flush_output == from->flush_output && r.flush_below == from->flush_below,
                          "%s, %s", preset->name, f->name);
        }
        for (int x = 0; x < MPSIM_PRESET_EXCEPTIONS; x++) {
            const char *name = preset->exceptions[x].format;
            ck_assert_msg(!name || mpsim_format_find(name), "%s: exception for %s", preset->name, name);
        }
    }
}

int main(void)
{
    TCase *oracle = test_case("oracle", 60);
    tcase_add_test(oracle, known_values);
    tcase_add_test(oracle, the_oracle_agrees_with_itself);
#if defined(__x86_64__)
    tcase_add_test(oracle, the_oracle_agrees_with_the_f16c_instructions);
#endif
    TCase *round = test_case("round", 120);
    tcase_add_test(round, every_number_and_midpoint_rounds_in_every_mode);
    tcase_add_test(round, stochastic_modes_decide_at_the_exact_word);
    tcase_add_test(round, stochastic_modes_count_as_defined);
    tcase_add_test(round, a_prime_stride_through_all_of_binary32);
    tcase_add_test(round, the_exact_product_with_scale_is_rounded_once);
    TCase *choice = test_case("choice", 120);
    tcase_add_test(choice, every_combination_of_choices_in_every_mode);
    tcase_add_test(choice, each_choice_around_each_edge);
    tcase_add_test(choice, every_preset_in_every_mode);
    TCase *names = test_case("names", 10);
    tcase_add_test(names, the_default_rounding_is_as_documented);
    tcase_add_test(names, a_rounding_outside_its_domain_is_refused);
    tcase_add_test(names, modes_are_known_by_name);
    tcase_add_test(names, presets_are_found_and_chosen_by_format);
    return test_main("round", (TCase *const[]){oracle, round, choice, names, NULL});
}
