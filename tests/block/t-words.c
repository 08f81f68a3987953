/* t-words.c -- block recipes as text: what every spelling is, what is refused and how. */
#include "support/support.h"

#include <mpsim/block.h>

#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { EVEN = MPSIM_ROUND_NEAREST_EVEN, AWAY = MPSIM_ROUND_NEAREST_AWAY, SR = MPSIM_ROUND_STOCHASTIC_A };

static const struct {
    const char *text, *name, *element;
    int rule, mode;
    uint32_t rows, cols;
    unsigned transform;
} good[] = {
    {"mxfp8", "mxfp8", "e4m3", MPSIM_SCALE_E8M0_TE, EVEN, 1, 32, 0},
    {"MXFP8:RCEIL", "mxfp8:rceil", "e4m3", MPSIM_SCALE_E8M0_RCEIL, EVEN, 1, 32, 0},
    {"mxfp8:te", "mxfp8:te", "e4m3", MPSIM_SCALE_E8M0_TE, EVEN, 1, 32, 0},
    {"mxfp8:microx", "mxfp8:microx", "e4m3", MPSIM_SCALE_E8M0_MICROX, AWAY, 1, 32, 0},
    {"mxfp8-rceil", "mxfp8-rceil", "e4m3", MPSIM_SCALE_E8M0_RCEIL, EVEN, 1, 32, 0},
    {"mxfp8e5m2:even", "mxfp8-e5m2:even", "e5m2", MPSIM_SCALE_E8M0_EVEN, EVEN, 1, 32, 0},
    {"mxfp6e3m2", "mxfp6-e3m2", "e3m2", MPSIM_SCALE_E8M0_FLOOR, EVEN, 1, 32, 0},
    {"mxfp6_e2m3:ceil:rht", "mxfp6-e2m3:ceil:rht16", "e2m3", MPSIM_SCALE_E8M0_CEIL, EVEN, 1, 32, 16},
    {"mxfp4:rht128:floor", "mxfp4:floor:rht128", "e2m1", MPSIM_SCALE_E8M0_FLOOR, EVEN, 1, 32, 128},
    {"nvfp4", "nvfp4", "e2m1", MPSIM_SCALE_NVFP4_TE, EVEN, 1, 16, 0},
    {"nvfp4:2d", "nvfp4:2d", "e2m1", MPSIM_SCALE_NVFP4_TE, EVEN, 16, 16, 0},
    {"nvfp4:sr:2d", "nvfp4:2d:sr", "e2m1", MPSIM_SCALE_NVFP4_TE, SR, 16, 16, 0},
    {"nvfp4:rht64:1level", "nvfp4:1level:rht64", "e2m1", MPSIM_SCALE_NVFP4_1LEVEL, EVEN, 1, 16, 64},
    {"nvfp4torchao:1level", "nvfp4-torchao:1level", "e2m1", MPSIM_SCALE_NVFP4_1LEVEL, EVEN, 1, 16, 0},
    {"te-block-128x128:rht32", "te-block-128x128:rht32", "e4m3", MPSIM_SCALE_AMAX_TE, EVEN, 128, 128, 32},
    {"e4m3/1x128", "e4m3/1x128", "e4m3", MPSIM_SCALE_AMAX_DEEPSEEK, EVEN, 1, 128, 0},
    {"fp8_e4m3/001x128:f32", "e4m3/1x128:f32", "e4m3", MPSIM_SCALE_AMAX_DEEPSEEK, EVEN, 1, 128, 0},
    {"e5m2/128x128:ue8m0", "e5m2/128x128:ue8m0", "e5m2", MPSIM_SCALE_E8M0_DEEPGEMM, EVEN, 128, 128, 0},
    {"E4M3/32x32:rceil:rht16", "e4m3/32x32:rceil:rht16", "e4m3", MPSIM_SCALE_E8M0_RCEIL, EVEN, 32, 32, 16},
    {"e2m1/1x4294967295", "e2m1/1x4294967295", "e2m1", MPSIM_SCALE_AMAX_DEEPSEEK, EVEN, 1, 4294967295u, 0},
    {"e4m3/tensor", "e4m3/tensor", "e4m3", MPSIM_SCALE_AMAX_DEEPSEEK, EVEN, 0, 0, 0},
    {"e4m3/ROW:microx", "e4m3/row:microx", "e4m3", MPSIM_SCALE_E8M0_MICROX, AWAY, 1, 0, 0},
};

CASE("words", 60);

TEST(spellings)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        mpsim_block_recipe b, again;
        unsigned transform = 99, other = 98;
        char error[200] = "x";
        const mpsim_status s = mpsim_block_parse(&b, &transform, good[i].text, error, sizeof error);
        ck_assert_msg(s == MPSIM_OK, "%s: %s", good[i].text, error);
        ck_assert_str_eq(error, "");
        ck_assert_str_eq(b.name, good[i].name);
        ck_assert_str_eq(b.element, good[i].element);
        ck_assert_msg(b.rule == good[i].rule && b.element_mode == good[i].mode, "%s", good[i].text);
        ck_assert_msg(b.block_rows == good[i].rows && b.block_cols == good[i].cols, "%s", good[i].text);
        ck_assert_uint_eq(transform, good[i].transform);
        ck_assert_int_eq(mpsim_block_check(&b), MPSIM_OK);
        ck_assert(b.source && strlen(b.source) > 4 && b.power_of_two == (b.rule == MPSIM_SCALE_AMAX_TE));
        ck_assert(b.sr_bits == (good[i].mode == SR ? 8 : 0));
        /* the name in its one spelling says the same */
        ck_assert_int_eq(mpsim_block_parse(&again, &other, b.name, error, sizeof error), MPSIM_OK);
        ck_assert(memcmp(&again, &b, sizeof b) == 0 && other == transform);
    }
}

TEST(names_of_the_table)
{
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_block_recipe *row = mpsim_block_at(i);
        mpsim_block_recipe b;
        unsigned transform = 99;
        char typed[40];
        size_t n = 0;
        for (const char *p = row->name; *p; p++)
            if (*p != '-')
                typed[n++] = *p;
        typed[n] = 0;
        ck_assert_int_eq(mpsim_block_parse(&b, &transform, row->name, NULL, 0), MPSIM_OK);
        ck_assert(memcmp(&b, row, sizeof b) == 0 && transform == 0);
        ck_assert_int_eq(mpsim_block_parse(&b, &transform, typed, NULL, 0), MPSIM_OK);
        ck_assert_str_eq(b.name, row->name);
    }
}

/* What does not begin as a recipe is left to others: formats above all. */
TEST(formats_are_none)
{
    static const char *const none[] = {"",          ":",      ":rceil",  "mxfp",        "mxfp88", "nvfp4-",
                                       "fp16@cuda", "e4m3:x", "e3m4:fn", "binary8p3se", "-",      "mxfp8--floor"};
    mpsim_block_recipe b;
    unsigned transform = 7;
    char error[50];
    memset(&b, 0x5a, sizeof b);
    for (size_t i = 0; i < mpsim_format_count(); i++)
        ck_assert_int_eq(mpsim_block_parse(&b, &transform, mpsim_format_at(i)->name, error, sizeof error),
                         MPSIM_ENOTFOUND);
    for (size_t i = 0; i < COUNT(none); i++) {
        ck_assert_msg(mpsim_block_parse(&b, &transform, none[i], error, sizeof error) == MPSIM_ENOTFOUND, "%s",
                      none[i]);
        ck_assert_str_eq(error, "");
    }
    ck_assert(transform == 7 && (unsigned char)b.name[0] == 0x5a);
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"mxfp8:foo",
     "\"foo\" is not a word of this recipe; its words are floor even ceil rceil te microx "
     "torchao-0.18-floor torchao-0.18-even torchao-0.18-ceil torchao-0.18-rceil rht rht16 rht32 rht64 rht128"},
    {"mxfp8:",
     "\"\" is not a word of this recipe; its words are floor even ceil rceil te microx "
     "torchao-0.18-floor torchao-0.18-even torchao-0.18-ceil torchao-0.18-rceil rht rht16 rht32 rht64 rht128"},
    {"mxfp8:rceil:", "\" is not a word"},
    {"mxfp8:2d", "\"2d\" is not a word"},
    {"mxfp8:ue8m0", "\"ue8m0\" is not a word"},
    {"mxfp8-rceil:floor", "\"floor\" is not a word of this recipe; its words are rht"},
    {"mxfp8:floor:ceil", "\"ceil\" is one too many beside \"floor\""},
    {"mxfp8:rht:rht16", "\"rht16\" is one too many beside \"rht\""},
    {"nvfp4:2d:2d", "\"2d\" is one too many beside \"2d\""},
    {"nvfp4:sr:1level", "\"1level\" is one too many beside \"sr\""},
    {"nvfp4:rceil", "\"rceil\" is not a word of this recipe; its words are 2d 1level sr rht"},
    {"nvfp4-2d:1level", "\"1level\" is not a word"},
    {"e4m3/1x128:f32:ue8m0", "\"ue8m0\" is one too many beside \"f32\""},
    {"e4m3/", "\"\" is not a shape of blocks: expected RxC, tensor or row"},
    {"e4m3/0x128", "\"0x128\" is not a shape"},
    {"e4m3/1x0", "\"1x0\" is not a shape"},
    {"e4m3/128", "\"128\" is not a shape"},
    {"e4m3/1x128x", "\"1x128x\" is not a shape"},
    {"e4m3/-1x128", "\"-1x128\" is not a shape"},
    {"e4m3/1x4294967296", "\"1x4294967296\" is not a shape"},
    {"e4m3/1x99999999999999999999999", "is not a shape"},
    {"/1x128", "\"\" is not a format of elements"},
    {"fp16/1x128", "\"fp16\" is not a format of elements: these have a sign, a significand and at most 8 bits"},
    {"e8m0/1x128", "\"e8m0\" is not a format of elements: these"},
    {"nonsense/1x128", "\"nonsense\" is not a format of elements"},
    {"a-very-long-name-of-a-format/1x1", "\"a-very-long-name-of-a-format\" is not a format of elements"},
    {"e4m3\n\x1b/1x1", "\"e4m3\?\?\" is not a format of elements"},
    {"e4m3b11fnuz/1024x1024:rceil:rht128", "\"rht128\" is the name is too long"},
};

TEST(refusals)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        mpsim_block_recipe b;
        unsigned transform = 7;
        char error[200];
        memset(&b, 0x5a, sizeof b);
        ck_assert_msg(mpsim_block_parse(&b, &transform, bad[i].text, error, sizeof error) == MPSIM_EINVAL, "%s",
                      bad[i].text);
        ck_assert_msg(strstr(error, bad[i].error) != NULL, "%s: %s", bad[i].text, error);
        ck_assert(transform == 7 && (unsigned char)b.name[0] == 0x5a);
        for (size_t size = 0; size < 40; size += 7) { /* cut where there is no room */
            char less[48];
            memset(less, 0x5a, sizeof less);
            (void)mpsim_block_parse(&b, &transform, bad[i].text, size ? less : NULL, size);
            ck_assert(less[size] == 0x5a);
            ck_assert(size == 0 || (strlen(less) == size - 1 && strncmp(less, error, size - 1) == 0) ||
                      strcmp(less, error) == 0);
        }
    }
    unsigned transform;
    mpsim_block_recipe b;
    ck_assert_int_eq(mpsim_block_parse(NULL, &transform, "mxfp8", NULL, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_block_parse(&b, NULL, "mxfp8", NULL, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_block_parse(&b, &transform, NULL, NULL, 0), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_block_parse(&b, &transform, "mxfp8:what", NULL, 64), MPSIM_EINVAL);
}

/* Whatever is typed: a recipe whose name says it again, or a line; nothing beyond the ends. */
TEST(anything)
{
    static const char *const parts[] = {
        "mxfp8",  "nvfp4", "e4m3", "e2m1", "/",      ":",  "x",   "1",     "32", "128", "tensor", "row",        "floor",
        "microx", "ue8m0", "f32",  "2d",   "1level", "sr", "rht", "rht64", "-",  "_",   "te",     "99999999999"};
    uint64_t random = test_seed();
    size_t recipes = 0, lines = 0;
    for (size_t run = 0; run < test_scaled(200000); run++) {
        char text[200] = "", error[100] = "";
        const size_t n = test_random(&random) % 9;
        for (size_t i = 0; i < n; i++)
            strcat(text, parts[test_random(&random) % COUNT(parts)]);
        mpsim_block_recipe b, again;
        unsigned transform, other;
        const mpsim_status s = mpsim_block_parse(&b, &transform, text, error, sizeof error);
        ck_assert(s == MPSIM_OK || s == MPSIM_EINVAL || s == MPSIM_ENOTFOUND);
        ck_assert_msg((s == MPSIM_EINVAL) == (error[0] != 0), "%s", text);
        lines += s == MPSIM_EINVAL;
        if (s != MPSIM_OK)
            continue;
        recipes++;
        ck_assert_msg(mpsim_block_check(&b) == MPSIM_OK, "%s", text);
        ck_assert_msg(mpsim_block_parse(&again, &other, b.name, NULL, 0) == MPSIM_OK, "%s", b.name);
        ck_assert_msg(memcmp(&again, &b, sizeof b) == 0 && other == transform, "%s", text);
    }
    printf("# %zu recipes, %zu lines\n", recipes, lines);
    ck_assert(recipes > test_scaled(1000) && lines > test_scaled(1000));
}

TEST_MAIN("block-words");
