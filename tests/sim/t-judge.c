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

static int is_cause(const char *word)
{
    for (const char *const *c = mpsim_judge_causes(); *c; c++)
        if (strcmp(*c, word) == 0)
            return 1;
    return 0;
}

static int found(const char *cause)
{
    ck_assert_msg(is_cause(cause), "%s", cause);
    for (size_t i = 0; i < j.findings; i++)
        if (strcmp(j.finding[i].cause, cause) == 0)
            return 1;
    return 0;
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

/* ---- block quantisation ---- */

CASE("quantisers", 20);

enum { BLOCKS = N / 32, GRID = COLUMNS / 32 };

static uint8_t codes[N], scale_codes[BLOCKS], packed[N / 2];

static void quantise_as(const char *recipe)
{
    mpsim_block_recipe b;
    unsigned transform;
    uint64_t state = 5;
    float tensor;
    const mpsim_blocks out = {.codes = codes, .scale_codes = scale_codes};
    for (size_t i = 0; i < N; i++)
        x[i] = ldexpf((float)(int64_t)(test_random(&state) >> 40) - 0x800000, (int)(i / 32 % 7) - 24);
    ck_assert(mpsim_block_parse(&b, &transform, recipe, NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_block_quantize(&b, x, ROWS, COLUMNS, -1, 1, NULL, &out, &tensor) == MPSIM_OK);
}

/* The codes in as many bytes as `packed` says, scales of so many rows. */
static void ask_quantiser(const char *like, int is_packed, size_t scale_rows)
{
    const mpsim_judge_array arrays[] = {
        {"x", mpsim_format_find("binary32"), x, ROWS, COLUMNS},
        {"codes", NULL, is_packed ? packed : codes, ROWS, is_packed ? COLUMNS / 2 : COLUMNS},
        {"scales", NULL, scale_codes, scale_rows, BLOCKS / scale_rows}};
    char why[256] = "";
    ck_assert_msg(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 3, like, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
}

/* Scales of the maximum of the first half of each block; scales at strides that are not theirs. */
TEST(scales_of_parts_and_strides)
{
    static uint8_t kept[BLOCKS];
    static float whole[N];
    quantise_as("mxfp8");
    memcpy(whole, x, sizeof x);
    memcpy(kept, scale_codes, sizeof kept);
    for (size_t i = 0; i < N; i++) { /* most blocks have their maximum in the second half */
        whole[i] = i % 32 < 16 ? x[i] / 16 : x[i];
        x[i] = i % 32 < 16 ? whole[i] : 0;
    }
    mpsim_block_recipe b;
    unsigned transform;
    float tensor;
    const mpsim_blocks out = {.codes = codes, .scale_codes = scale_codes};
    ck_assert(mpsim_block_parse(&b, &transform, "mxfp8", NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_block_quantize(&b, x, ROWS, COLUMNS, -1, 1, NULL, &out, &tensor) == MPSIM_OK);
    memcpy(x, whole, sizeof x);
    ask_quantiser("mxfp8", 0, ROWS);
    ck_assert(found("scale-factor"));
    quantise_as("mxfp8");
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t at = i / GRID + i % GRID;
        scale_codes[i] = kept[at % ROWS * GRID + at / ROWS];
    }
    ask_quantiser("mxfp8", 0, ROWS);
    ck_assert(found("scale-order"));
}

TEST(recipes_are_found)
{
    static const char *const names[] = {"mxfp8-floor",
                                        "mxfp8-rceil",
                                        "mxfp8-even",
                                        "mxfp8-e5m2",
                                        "mxfp4",
                                        "mxfp6-e3m2",
                                        "mxfp4:torchao-0.18-rceil",
                                        "mxfp6-e2m3:torchao-0.18-floor"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        quantise_as(names[i]);
        ask_quantiser(NULL, 0, ROWS);
        ck_assert_msg(j.differ == 0 && judged_in_class(&j, names[i]), "%s: %s, %d", names[i], j.row, (int)j.differ);
        ask_quantiser(names[i], 0, ROWS);
        ck_assert(j.differ == 0 && j.results == N + BLOCKS);
    }
}

static float scales[N]; /* of binary32 */

/* What a recipe makes of x, with scales of binary32; those of rows in blocks of one row. */
static void scale_as(const char *recipe)
{
    mpsim_block_recipe b;
    unsigned transform;
    float tensor;
    const mpsim_blocks out = {.codes = codes, .inverses = scales};
    ck_assert(mpsim_block_parse(&b, &transform, recipe, NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_block_quantize(&b, x, ROWS, COLUMNS, -1, 1, NULL, &out, &tensor) == MPSIM_OK);
}

static void ask_scaled(const char *like, size_t scale_rows, size_t scale_columns)
{
    const mpsim_judge_array arrays[] = {{"x", mpsim_format_find("binary32"), x, ROWS, COLUMNS},
                                        {"codes", NULL, codes, ROWS, COLUMNS},
                                        {"scales", mpsim_format_find("binary32"), scales, scale_rows, scale_columns}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 3, like, NULL, NULL, 0) == MPSIM_OK);
}

static const char *text_of(const char *cause)
{
    for (size_t i = 0; i < j.findings; i++)
        if (strcmp(j.finding[i].cause, cause) == 0)
            return j.finding[i].text;
    return "";
}

TEST(fp8_by_tensor_and_row)
{
    static const char *const names[] = {"e4m3/row", "e5m2/row", "e4m3fnuz/row", "e5m2fnuz/row"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        quantise_as("mxfp8");
        scale_as(names[i]);
        ask_scaled(NULL, ROWS, 1);
        ck_assert_msg(j.differ == 0 && judged_in_class(&j, names[i]), "%s: %s, %d", names[i], j.row, (int)j.differ);
    }
}

/* Scales that are kept in bf16; a row of zeros whose scale is zero and whose codes are 0 / 0. */
TEST(scales_of_bf16_and_of_zero)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    quantise_as("mxfp8");
    scale_as("e4m3/row");
    for (size_t i = 0; i < ROWS; i++)
        scales[i] = (float)mpsim_decode(mpsim_format_find("bf16"),
                                        mpsim_encode_f32(mpsim_format_find("bf16"), &r, scales[i], 0, NULL));
    for (size_t i = 0; i < N; i++)
        codes[i] = (uint8_t)mpsim_encode_f32(mpsim_format_find("e4m3"), &r, x[i] / scales[i / COLUMNS], 0, NULL);
    ask_scaled("e4m3/row", ROWS, 1);
    ck_assert(j.differ > 0 && strstr(text_of("format"), "rounded to bf16"));
    for (size_t i = 0; i < 2 * COLUMNS; i++)
        x[i] = 0;
    scale_as("e4m3/row");
    scales[0] = scales[1] = 0;
    memset(codes, 0x7f, 2 * COLUMNS);
    ask_scaled("e4m3/row", ROWS, 1);
    ck_assert(strstr(text_of("nan"), "their blocks are 0"));
}

/* Zeros without their sign, and a scale that is twice what it should be. */
TEST(zeros_beside_a_wrong_scale)
{
    quantise_as("mxfp4");
    scale_codes[3]++;
    for (size_t i = 0; i < N; i++)
        codes[i] = codes[i] == 8 ? 0 : codes[i];
    ask_quantiser("mxfp4", 0, ROWS);
    ck_assert(found("zero") && found("scale-factor"));
}

/* Scales that go up from 1.75 x 2^k on, that number among them. */
TEST(scales_from_a_bound_on)
{
    quantise_as("mxfp8");
    for (size_t i = 0; i < 8; i++)
        x[32 * i] = ldexpf(1.75f, 20 + (int)i);
    for (size_t i = 8; i < 16; i++)
        x[32 * i] = ldexpf(1.625f, 20 + (int)i);
    mpsim_block_recipe b;
    unsigned transform;
    float tensor;
    const mpsim_blocks out = {.codes = codes, .scale_codes = scale_codes};
    ck_assert(mpsim_block_parse(&b, &transform, "mxfp8-rceil", NULL, 0) == MPSIM_OK);
    ck_assert(mpsim_block_quantize(&b, x, ROWS, COLUMNS, -1, 1, NULL, &out, &tensor) == MPSIM_OK);
    for (size_t i = 0; i < 8; i++)
        scale_codes[i]++;
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert_msg(strstr(text_of("scale-factor"), "is 1.75 x 2^k"), "%s", text_of("scale-factor"));
}

TEST(scales_that_are_wrong)
{
    quantise_as("mxfp8-floor"); /* where the largest magnitude is above 1.75 x 2^k, the scale is half */
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert(j.differ > 0 && found("scale-factor") && found("elements-follow"));
    ck_assert_str_eq(j.role, "scales");
    ck_assert_uint_eq(j.nearest_differ, 0);
    quantise_as("mxfp8-rceil");
    for (size_t i = 0; i < BLOCKS; i++)
        scale_codes[i]++;
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert(found("scale-factor") && !found("elements-follow"));
    quantise_as("mxfp8-rceil");
    for (size_t i = 0; i < BLOCKS; i++)
        scale_codes[i] = (uint8_t)(254 - scale_codes[i]);
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert(found("scale-inverted") && !found("scale-factor"));
    quantise_as("mxfp8-rceil");
    for (size_t i = 0; i < BLOCKS; i++)
        scale_codes[i] = (uint8_t)(2 * scale_codes[i] - 127);
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert(found("scale-squared"));
}

TEST(scales_in_another_order)
{
    static uint8_t right[BLOCKS];
    quantise_as("mxfp8-rceil");
    memcpy(right, scale_codes, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++)
        scale_codes[i] = right[i % ROWS * GRID + i / ROWS];
    ask_quantiser("mxfp8-rceil", 0, GRID); /* its shape says so */
    ck_assert_uint_eq(j.differ, 0);
    ck_assert(found("scale-order"));
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert_uint_eq(j.differ, BLOCKS);
    ck_assert(found("scale-order"));
}

TEST(elements_that_are_wrong)
{
    quantise_as("mxfp4");
    for (size_t i = 0; i < N / 2; i++)
        packed[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
    ask_quantiser("mxfp4", 1, ROWS);
    ck_assert_uint_eq(j.differ, 0);
    for (size_t i = 0; i < N / 2; i++)
        packed[i] = (uint8_t)(codes[2 * i + 1] | codes[2 * i] << 4);
    ask_quantiser("mxfp4", 1, ROWS);
    ck_assert(found("nibbles"));
    quantise_as("mxfp8-rceil");
    const mpsim_format *e4m3 = mpsim_format_find("e4m3");
    for (size_t i = 0; i < N; i++) { /* cut instead of rounded */
        const double scale = ldexp(1, scale_codes[i / COLUMNS * GRID + i % COLUMNS / 32] - 127);
        codes[i] = (uint8_t)(fabs(mpsim_decode(e4m3, codes[i])) * scale > fabs((double)x[i]) ? codes[i] - 1 : codes[i]);
    }
    ask_quantiser("mxfp8-rceil", 0, ROWS);
    ck_assert(j.differ > 0 && found("mode"));
    ck_assert_str_eq(j.role, "codes");
}

/* ---- products: the sums are made here, by the machine's fma ---- */

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

TEST(a_block_with_a_factor_of_its_own)
{
    static float values[N];
    const mpsim_format *f = mpsim_format_find("binary32");
    quantise_as("mxfp8-floor");
    for (size_t i = 0; i < N; i++) /* the codes of scales are multiplied as integers */
        values[i] = (float)mpsim_decode(mpsim_format_find("e4m3"), codes[i]) *
                    (float)scale_codes[i / COLUMNS * GRID + i % COLUMNS / 32];
    const mpsim_judge_array arrays[] = {{"x", f, x, ROWS, COLUMNS}, {"y", f, values, ROWS, COLUMNS}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 2, "mxfp8-floor", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(found("factor"));
    for (size_t i = 0; i < N; i++) /* no scales */
        values[i] = (float)mpsim_decode(mpsim_format_find("e4m3"), codes[i]);
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 2, "mxfp8-floor", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(found("scale-missing"));
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

CASE("products", 20);

enum { M = 7, L = 9, K = 96 };

static float a[M * K], b[K * L], d[M * L];

static void make_operands(void)
{
    uint64_t state = 7;
    for (size_t i = 0; i < M * K; i++)
        a[i] = (float)(int32_t)(test_random(&state) >> 44) * 0x1p-19f - 1;
    for (size_t i = 0; i < K * L; i++)
        b[i] = (float)(int32_t)(test_random(&state) >> 44) * 0x1p-19f - 1;
}

/* Parts of the depth, each a chain of fma, added in order; cut: bits of the operands that are cleared. */
static void multiply(size_t parts, uint32_t cut)
{
    for (size_t i = 0; i < M; i++)
        for (size_t n = 0; n < L; n++) {
            float sum = 0;
            for (size_t p = 0; p < parts; p++) {
                float s = 0;
                for (size_t k = p * K / parts; k < (p + 1) * K / parts; k++)
                    s = fmaf(f32_of_bits(bits_of_f32(a[i * K + k]) & ~cut),
                             f32_of_bits(bits_of_f32(b[k * L + n]) & ~cut), s);
                sum = p ? sum + s : s;
            }
            d[i * L + n] = sum;
        }
}

static void ask_product(const char *like, int turned)
{
    static float t[K * L];
    const mpsim_format *f = mpsim_format_find("binary32");
    char why[256] = "";
    for (size_t i = 0; i < K * L; i++)
        t[i % L * K + i / L] = b[i];
    const mpsim_judge_array arrays[] = {
        {"a", f, a, M, K}, {"b", f, turned ? t : b, turned ? L : K, turned ? K : L}, {"d", f, d, M, L}};
    ck_assert_msg(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, like, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
}

TEST(sums_are_found)
{
    make_operands();
    multiply(1, 0);
    for (int turned = 0; turned < 2; turned++) {
        ask_product(NULL, turned);
        ck_assert(j.differ == 0 && judged_in_class(&j, "fma"));
        ck_assert_uint_eq(j.results, M * L);
    }
    multiply(3, 0);
    ask_product(NULL, 0);
    ck_assert(j.differ == 0 && judged_in_class(&j, "fma+split=3"));
    ask_product("fma+split=3", 0);
    ck_assert_uint_eq(j.differ, 0);
    ask_product("fma", 0);
    ck_assert(j.differ > 0 && j.nearest_differ == 0 && found("sum-order"));
    multiply(1, 0x1fff); /* these operands are cut, which no row does */
    ask_product("fma", 0);
    ck_assert(j.differ > 0 && !found("format"));
}

TEST(operands_are_rounded_first)
{
    make_operands();
    for (size_t i = 0; i < M * K; i++)
        a[i] = f32_of_bits(bits_of_f32(a[i]) & ~0x1fffu);
    multiply(1, 0);
    for (size_t i = 0; i < K * L; i++) /* as if b had been tf32, rounded to nearest; halfway is not there */
        b[i] = f32_of_bits((bits_of_f32(b[i]) & ~0x1fffu) | 0x7ff);
    multiply(1, 0x1fff);
    ask_product(NULL, 0);
    ck_assert(j.differ == 0 && judged_in_class(&j, "fma+operands=tf32"));
    ask_product("fma", 0);
    ck_assert(found("format") && !found("formula"));
}

TEST(results_that_are_cut)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    static uint16_t cut[M * L];
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        cut[i] = (uint16_t)(bits_of_f32(d[i]) >> 16);
    const mpsim_judge_array arrays[] = {
        {"a", f, a, M, K}, {"b", f, b, K, L}, {"d", mpsim_format_find("bf16"), cut, M, L}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, "fma", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(j.differ > 0 && found("mode") && !found("formula"));
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_PRODUCT, arrays, 3, "fma+round=toward-zero", NULL, NULL, 0) == MPSIM_OK);
    ck_assert_uint_eq(j.differ, 0);
}

TEST(products_that_are_left_out)
{
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M; i++) /* the last 8 */
        for (size_t n = 0; n < L; n++) {
            float s = 0;
            for (size_t k = 0; k < K - 8; k++)
                s = fmaf(a[i * K + k], b[k * L + n], s);
            d[i * L + n] = s;
        }
    ask_product("fma", 0);
    ck_assert(found("tail"));
}

TEST(products_that_are_wrong)
{
    make_operands();
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        d[i] += 0.25f;
    ask_product("fma", 0);
    ck_assert(found("offset") && !found("sum-order"));
    multiply(1, 0);
    for (size_t i = 0; i < M * L; i++)
        d[i] += (float)(i * i % 5);
    ask_product("fma", 0);
    ck_assert(found("formula") && !found("sum-order") && !found("offset"));
    for (size_t i = 0; i < M * L; i++)
        d[i] = i % 2 ? 0.0f : -0.0f;
    ask_product("fma", 0);
    ck_assert(found("zeros"));
    multiply(1, 0);
    for (size_t n = 0; n < L; n++) {
        const float kept = d[n];
        d[n] = d[2 * L + n];
        d[2 * L + n] = kept;
    }
    ask_product("fma", 0);
    ck_assert(found("rows-permuted"));
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
    ck_assert_str_eq(mpsim_judge_roles(MPSIM_JUDGE_CAST)[0], "x");
}

TEST_MAIN("judge");
