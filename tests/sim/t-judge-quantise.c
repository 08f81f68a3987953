/* t-judge-quantise.c -- mpsim/judge.h: block quantisers, whose codes and scales are spoilt here. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/block.h>
#include <mpsim/judge.h>

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 96, N = ROWS * COLUMNS };

static float x[N];
static mpsim_judgement j;

static int found(const char *cause)
{
    return judged_found(&j, cause);
}

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

/* Scales, scaled elements and values in bf16, as torch has them for tensors of it; a row of zeros. */
TEST(scales_in_bf16)
{
    static float kept[ROWS], values[N];
    const mpsim_format *f = mpsim_format_find("binary32"), *e = mpsim_format_find("e4m3");
    const mpsim_judge_array arrays[] = {{"x", f, x, ROWS, COLUMNS},
                                        {"codes", NULL, codes, ROWS, COLUMNS},
                                        {"scales", f, kept, ROWS, 1},
                                        {"y", f, values, ROWS, COLUMNS}};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    quantise_as("mxfp8");
    for (size_t i = 0; i < ROWS; i++) {
        float amax = 0;
        for (size_t k = i * COLUMNS; k < (i + 1) * COLUMNS; k++) {
            x[k] = i == 3 ? 0 : judged_bf16(x[k]);
            amax = fmaxf(amax, fabsf(x[k]));
        }
        kept[i] = i == 3 ? 1 : judged_bf16(amax / 448);
        for (size_t k = i * COLUMNS; k < (i + 1) * COLUMNS; k++) {
            const float scaled = judged_bf16(x[k] / kept[i]);
            codes[k] = (uint8_t)mpsim_encode_f32(e, &r, fmaxf(fminf(scaled, 448), -448), 0, NULL);
            values[k] = judged_bf16((float)mpsim_decode(e, codes[k]) * kept[i]);
        }
    }
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 4, NULL, NULL, NULL, 0) == MPSIM_OK);
    ck_assert_msg(j.differ == 0 && strcmp(j.row, "e4m3/row:scale=bf16") == 0, "%s: %d", j.row, (int)j.differ);
    const mpsim_judge_array of_values[] = {arrays[0], arrays[3]};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, of_values, 2, "e4m3/row", NULL, NULL, 0) == MPSIM_OK);
    ck_assert(j.differ > N / 8 && strcmp(j.nearest, "e4m3/row:scale=bf16") == 0 && j.nearest_differ == 0);
    static const char *const bad[] = {"e4m3/row:scale=tf32", "mxfp8:scale=bf16", "e4m3/row:ue8m0:scale=bf16"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 4, bad[i], NULL, NULL, 0) == MPSIM_ENOTFOUND);
    x[5] = nextafterf(x[5], 0); /* a number that is not one of bf16 */
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_QUANTISE, arrays, 4, "e4m3/row:scale=bf16", NULL, NULL, 0) == MPSIM_ERANGE);
}

/* ---- products: the sums are made here, by the machine's fma ---- */

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

TEST_MAIN("judge-quantise");
