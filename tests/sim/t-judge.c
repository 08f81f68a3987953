/* t-judge.c -- mpsim/judge.h: casts whose faults are made here, by other means than the judge's: bits of binary32, tables of codes. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/block.h>
#include <mpsim/judge.h>

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 96, N = ROWS * COLUMNS };

static float x[N];
static uint8_t y[N];
static mpsim_judgement j;

/* Numbers of many binades, with specials and ties, and e4m3 of them as OCP has it. */
static void make(int saturate)
{
    uint64_t state = 1;
    for (size_t i = 0; i < N; i++) {
        const uint64_t r = test_random(&state);
        x[i] = ldexpf((float)(int64_t)(r >> 40) - 0x800000, (int)(r % 24) - 34);
        if (r % 7 == 0)
            x[i] = ldexpf((float)(r >> 8 & 31) + 0.5f, (int)(r >> 16 & 7) - 8); /* halfway, mostly */
    }
    x[0] = INFINITY;
    x[1] = -INFINITY;
    x[2] = NAN;
    x[3] = 0;
    x[4] = 500;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (saturate)
        r.overflow = MPSIM_OVERFLOW_MAX, r.infinity = MPSIM_INFINITY_MAX;
    ck_assert(mpsim_encode_array_f32(mpsim_format_find("e4m3"), &r, NULL, y, x, N, NULL) == MPSIM_OK);
}

static mpsim_status judge_of(const char *like, size_t rows, size_t columns)
{
    const mpsim_judge_array arrays[] = {{"y", mpsim_format_find("e4m3"), y, rows, columns},
                                        {"x", mpsim_format_find("binary32"), x, rows, columns}};
    char why[256] = "";
    const mpsim_status s = mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, like, NULL, why, sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
}

static int found(const char *cause)
{
    return judged_found(&j, cause);
}

static void ask(const char *like)
{
    ck_assert_int_eq(judge_of(like, ROWS, COLUMNS), MPSIM_OK);
}

CASE("casts", 20);

TEST(the_row_is_found)
{
    make(0);
    ask(NULL);
    ck_assert_str_eq(j.row, "e4m3");
    ck_assert_uint_eq(j.results, N);
    ck_assert_uint_eq(j.differ, 0);
    ck_assert(j.same >= 1 && j.findings == 0 && j.places == 0);
    make(1);
    ask(NULL);
    ck_assert_uint_eq(j.differ, 0);
    ck_assert_str_eq(j.row, "e4m3@saturate");
}

TEST(all_modes_and_choices_are_found)
{
    static const char *const rows[] = {"e4m3:nearest-away",
                                       "e4m3:toward-zero",
                                       "e4m3:up",
                                       "e4m3:down",
                                       "e4m3:to-odd",
                                       "e4m3:flush-subnormals",
                                       "e4m3@saturate:toward-zero:flush-subnormals",
                                       "e4m3:overflow=max"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        make(0);
        if (i < 5)
            r.mode = (uint8_t)(MPSIM_ROUND_NEAREST_AWAY + i);
        r.flush_output = i == 5 || i == 6;
        r.overflow = i >= 6;
        r.infinity = i == 6;
        r.mode = i == 6 ? MPSIM_ROUND_TOWARD_ZERO : r.mode;
        ck_assert(mpsim_encode_array_f32(mpsim_format_find("e4m3"), &r, NULL, y, x, N, NULL) == MPSIM_OK);
        ask(NULL);
        ck_assert_msg(j.differ == 0, "%s: %s", rows[i], j.row);
        ask(rows[i]); /* the name is read, and means the same */
        ck_assert_msg(j.differ == 0 && strcmp(j.row, rows[i]) == 0, "%s: %s", rows[i], j.row);
    }
}

TEST(numbers_that_stand_for_codes)
{
    static float values[N];
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    make(0);
    for (size_t i = 0; i < N; i++)
        values[i] = f32_of_bits(bits_of_f32(x[i]) & 0xffff0000u); /* bf16, cut */
    const mpsim_judge_array arrays[] = {{"x", binary32, x, 1, N}, {"y", binary32, values, 1, N}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, NULL, NULL, NULL, 0) == MPSIM_OK);
    ck_assert_str_eq(j.row, "bf16:toward-zero");
    ck_assert_uint_eq(j.differ, 0);
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, "bf16", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(found("mode") && j.nearest_differ == 0 && j.differ > N / 4);
}

CASE("faults", 20);

TEST(ties_and_subnormal_results)
{
    mpsim_rounding r;
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = (uint8_t)((y[i] & 0x78) == 0 ? y[i] & 0x80 : y[i]);
    ask("e4m3");
    ck_assert(j.differ > 0 && found("subnormal-results") && j.nearest_differ == 0);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_AWAY);
    ck_assert(mpsim_encode_array_f32(mpsim_format_find("e4m3"), &r, NULL, y, x, N, NULL) == MPSIM_OK);
    ask("e4m3");
    ck_assert(j.differ > 0 && found("mode") && found("one-code"));
}

TEST(other_places)
{
    static uint8_t right[N];
    make(0);
    memcpy(right, y, N);
    for (size_t i = 0; i < N; i++)
        y[i] = right[i ^ 1];
    ask("e4m3");
    ck_assert(found("pairs-swapped"));
    for (size_t i = 0; i < N; i++)
        y[i] = right[(i / COLUMNS ^ 4) * COLUMNS + i % COLUMNS];
    ask("e4m3");
    ck_assert(found("rows-permuted"));
    for (size_t i = 0; i < N; i++)
        y[i] = right[(i + 1) % N];
    ask("e4m3");
    ck_assert(found("shifted"));
}

TEST(a_transposed_square)
{
    static uint8_t right[N];
    make(0);
    memcpy(right, y, N);
    for (size_t i = 0; i < 64 * 64; i++)
        y[i] = right[i % 64 * 64 + i / 64];
    ck_assert_int_eq(judge_of("e4m3", 64, 64), MPSIM_OK);
    ck_assert(found("transposed"));
}

TEST(codes_and_ranges)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] ^= 0x80;
    ask("e4m3");
    ck_assert(found("sign"));
    make(0);
    memset(y, 0, N);
    ask("e4m3");
    ck_assert(found("zeros") && j.places == MPSIM_JUDGE_PLACES);
    make(0);
    memset(y + 4 * COLUMNS, 0x40, 4 * COLUMNS);
    ask("e4m3");
    ck_assert(found("rows") && j.place[0].row == 4 && j.place[0].found == 0x40);
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = i / COLUMNS % 16 > 7 ? (uint8_t)(3 * i % 251) : y[i];
    ask("e4m3");
    ck_assert(found("rows") && strstr(j.finding[0].text, "8 to 15 of each 16"));
    make(0);
    for (size_t i = 5; i < N; i += 8)
        y[i] = (uint8_t)(y[i] == 0x11 ? 0x12 : 0x11);
    ask("e4m3");
    ck_assert(found("columns"));
}

TEST(random_bits)
{
    const mpsim_rng rng = {1, 2, 3};
    mpsim_rounding r;
    make(0);
    mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_C);
    ck_assert(mpsim_encode_array_f32(mpsim_format_find("e4m3"), &r, &rng, y, x, N, NULL) == MPSIM_OK);
    ask(NULL);
    ck_assert(j.differ > 0 && found("stochastic"));
    make(0);
    for (size_t i = 0; i < N; i++) /* NaN from a magnitude on is not random */
        y[i] = (uint8_t)(fabsf(x[i]) >= 16 ? 0x7f : y[i]);
    ask("e4m3");
    ck_assert(j.differ > N / 16 && !found("stochastic") && found("nan"));
    make(0);
    ask("e4m3:toward-zero"); /* always one way is not random */
    ck_assert(j.differ > 0 && !found("stochastic"));
}

/* ---- two roundings, NaNs, few results ---- */

static double wide[N];

static uint8_t e4m3_of(float v)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (uint8_t)mpsim_encode_f32(mpsim_format_find("e4m3"), &r, v, 0, NULL);
}

static float bf16_of(float v)
{
    const uint32_t bits = bits_of_f32(v);
    return isnan(v) ? v : f32_of_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

static void ask_wide(const char *like, const void *from, const char *format)
{
    const mpsim_judge_array arrays[] = {{"y", mpsim_format_find("e4m3"), y, ROWS, COLUMNS},
                                        {"x", mpsim_format_find(format), from, ROWS, COLUMNS}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, like, NULL, NULL, 0) == MPSIM_OK);
}

TEST(two_roundings)
{
    make(0);
    for (size_t i = 0; i < N; i++) { /* near to halfway: only the first rounding makes them so */
        x[i] = i % 3 && isfinite(x[i])
                   ? ldexpf((float)(8 + i / 2 % 8) + (i % 2 ? 0.50001f : 0.49999f), (int)(i % 9) - 4)
                   : x[i];
        wide[i] = isfinite(x[i])
                      ? ((double)(8 + i / 2 % 8) + 0.5 + (i % 2 ? 1e-12 : -1e-12)) * ldexp(1, (int)(i % 7) - 4)
                      : (double)x[i];
        y[i] = e4m3_of((float)wide[i]);
    }
    ask_wide("e4m3", wide, "binary64");
    ck_assert(found("double-rounding") && j.nearest_differ == 0 && !found("stochastic") && !found("pairs-swapped"));
    ask_wide("e4m3:via=binary32", wide, "binary64");
    ck_assert_uint_eq(j.differ, 0);
    ask_wide(NULL, wide, "binary64");
    ck_assert_msg(j.differ == 0, "%s", j.row);
    for (size_t i = 0; i < N; i++)
        y[i] = e4m3_of(bf16_of(x[i]));
    ask("e4m3");
    ck_assert(j.differ > N / 8 && found("double-rounding"));
    ask(NULL);
    ck_assert_msg(j.differ == 0 && strcmp(j.row, "e4m3:via=bf16") == 0, "%s", j.row);
}

TEST(nans_that_stay_signalling)
{
    static uint16_t half[N];
    const mpsim_judge_array arrays[] = {{"x", mpsim_format_find("binary32"), x, ROWS, COLUMNS},
                                        {"y", mpsim_format_find("fp16"), half, ROWS, COLUMNS}};
    mpsim_rounding r;
    make(0);
    for (size_t i = 5; i < 25; i++)
        x[i] = f32_of_bits((i % 2 ? 0xff800000u : 0x7f800000u) | (uint32_t)1 << (i - 5));
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert(mpsim_encode_array_f32(arrays[1].format, &r, NULL, half, x, N, NULL) == MPSIM_OK);
    for (size_t i = 5; i < 25; i++)
        half[i] = (uint16_t)((i % 2 ? 0xfc00 : 0x7c00) | (i < 18 ? 1 : 1 << (i - 18)));
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, "fp16", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(found("nan") && !found("columns") && !found("rows") && j.nearest_differ == 0);
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, "fp16:nan=cut", NULL, NULL, 0) == MPSIM_OK);
    ck_assert_uint_eq(j.differ, 0);
}

TEST(nans_infinities_and_their_bits)
{
    static uint16_t half[N];
    const mpsim_judge_array arrays[] = {{"x", mpsim_format_find("binary32"), x, ROWS, COLUMNS},
                                        {"y", mpsim_format_find("fp16"), half, ROWS, COLUMNS}};
    static const struct {
        float x;
        uint16_t y;
        const char *cause, *text;
    } cases[] = {{INFINITY, 0x7e00, "nan", "NaN, and should be infinite"},
                 {NAN, 0x7c00, "overflow", "infinite, and should be NaN"},
                 {NAN, 0x7e03, "nan", "NaNs with other bits"}};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        make(0);
        for (size_t i = 0; i < 3; i++)
            x[i * 77 + 5] = cases[c].x;
        ck_assert(mpsim_encode_array_f32(arrays[1].format, &r, NULL, half, x, N, NULL) == MPSIM_OK);
        half[5] = cases[c].y;
        ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, "fp16", NULL, NULL, 0) == MPSIM_OK);
        ck_assert_uint_eq(j.differ, 1);
        const char *text = NULL;
        for (unsigned i = 0; i < j.findings; i++)
            text = strcmp(j.finding[i].cause, cases[c].cause) == 0 ? j.finding[i].text : text;
        ck_assert_msg(text && strstr(text, cases[c].text), "case %zu: %s", c, text ? text : "no finding");
    }
}

TEST(few_results_are_no_pattern)
{
    make(0);
    for (size_t i = 0; i < 6; i++) /* columns 7 to 14 of each 16 */
        y[(i * 11 + 3) * COLUMNS + 16 * (i % 6) + 7 + i] ^= 0x15;
    ask("e4m3");
    ck_assert(j.differ == 6 && !found("rows") && !found("columns") && !found("bits") && !found("pairs-swapped"));
}

TEST(an_unfair_choice_is_not_stochastic)
{
    make(0);
    for (size_t i = 0; i < N; i++) { /* one result in five is the other number around the input */
        mpsim_rounding r;
        mpsim_rounding_init(&r, i % 10 ? MPSIM_ROUND_NEAREST_EVEN : i % 20 ? MPSIM_ROUND_UP : MPSIM_ROUND_DOWN);
        y[i] = (uint8_t)mpsim_encode_f32(mpsim_format_find("e4m3"), &r, x[i], 0, NULL);
    }
    ask("e4m3");
    ck_assert(j.differ > 0 && !found("stochastic"));
}

TEST(two_faults_at_once)
{
    const mpsim_format *e4m3 = mpsim_format_find("e4m3");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_AWAY);
    make(0);
    r.overflow = MPSIM_OVERFLOW_MAX;
    ck_assert(mpsim_encode_array_f32(e4m3, &r, NULL, y, x, N, NULL) == MPSIM_OK);
    for (size_t i = 0; i < N; i++) /* the largest number from 256 on */
        if (fabsf(x[i]) >= 256 && isfinite(x[i]))
            y[i] = (uint8_t)(x[i] < 0 ? 0xfe : 0x7e);
    ask("e4m3:overflow=max");
    ck_assert(found("mode") && found("overflow"));
}

TEST(codes_read_as_another_format)
{
    static float values[N];
    make(0);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)mpsim_decode(mpsim_format_find("e5m2"), y[i]);
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_judge_array arrays[] = {{"x", f, x, 1, N}, {"y", f, values, 1, N}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, arrays, 2, "e4m3", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(found("format"));
}

TEST(bits_that_are_never_set)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = (uint8_t)((y[i] & 0x78) && (y[i] & 0x7f) != 0x7f ? y[i] & ~1 : y[i]);
    ask("e4m3");
    ck_assert(found("bits") && !found("sign"));
}

TEST(halves_and_signs_of_zeros)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = (uint8_t)((y[i] & 0x7f) >= 0x18 && (y[i] & 0x7f) != 0x7f && i % 3 ? y[i] - 8 : y[i]);
    ask("e4m3");
    ck_assert(found("factor"));
    make(0);
    for (size_t i = 0; i < N; i++)
        x[i] = i % 2 ? -1e-9f : 1;
    memset(y, 0, N);
    for (size_t i = 0; i < N; i += 2)
        y[i] = 0x38;
    ask("e4m3");
    ck_assert(found("zero") && !found("sign") && !found("zeros"));
}

CASE("arguments", 20);

TEST(bad_arguments)
{
    char why[128];
    make(0);
    ck_assert_int_eq(judge_of("e4m3:sideways", ROWS, COLUMNS), MPSIM_ENOTFOUND);
    ck_assert_int_eq(judge_of("e4m3@nobody", ROWS, COLUMNS), MPSIM_ENOTFOUND);
    ck_assert_int_eq(judge_of("bf16", ROWS, COLUMNS), MPSIM_ERANGE); /* e4m3 has not all of its numbers */
    const mpsim_judge_array one = {"x", mpsim_format_find("binary32"), x, 2, 3};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, &one, 1, NULL, NULL, why, sizeof why) == MPSIM_EINVAL);
    ck_assert(strstr(why, "'y'") != NULL);
    const mpsim_judge_array two[] = {one, {"y", mpsim_format_find("e4m3"), y, 3, 2}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_CAST, two, 2, NULL, NULL, why, sizeof why) == MPSIM_EINVAL);
    ck_assert_int_eq(judge_of(NULL, SIZE_MAX / 4, 96), MPSIM_EINVAL);
    ck_assert_str_eq(mpsim_judge_kind_name(MPSIM_JUDGE_CAST), "cast");
    ck_assert(mpsim_judge_kind_name(MPSIM_JUDGE_KINDS) == NULL);
    ck_assert_str_eq(mpsim_judge_causes()[0], "constant");
    ck_assert_str_eq(mpsim_judge_roles(MPSIM_JUDGE_CAST)[0], "x");
}

TEST_MAIN("judge");
