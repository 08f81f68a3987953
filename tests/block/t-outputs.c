/* t-outputs.c -- what block quantisation refuses, and leaves untouched then; outputs that are
 * missing. */
#include "support/blockcompare.h"
#include "support/blockinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/block.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Nothing is touched when a recipe or an argument is refused. */
static void refused(const char *what, const mpsim_block_recipe *b, const float *x, const mpsim_rng *rng)
{
    mpsim_cast_stats before;
    float whole = 55;
    memset(&out, 0x3c, sizeof out);
    mpsim_cast_stats_init(&out.casts);
    before = out.casts;
    ck_assert_msg(mpsim_block_quantize(b, x, 2, 8, -1, 1, rng, &outputs, &whole) == MPSIM_EINVAL, "%s", what);
    int touched = whole != 55 || memcmp(&before, &out.casts, sizeof before) != 0;
    for (size_t i = 0; i < 16; i++)
        touched |= out.codes[i] != 0x3c || out.scale_codes[i] != 0x3c || bits_of_f32(out.values[i]) != 0x3c3c3c3c ||
                   bits_of_f32(out.scales[i]) != 0x3c3c3c3c || bits_of_f32(out.inverses[i]) != 0x3c3c3c3c ||
                   bits_of_f32(out.amax[i]) != 0x3c3c3c3c;
    ck_assert_msg(!touched, "%s", what);
}

CASE("outputs", 20);

TEST(refusals)
{
    float x[16] = {1};
    const mpsim_rng rng = {1, 2, 3};
    const mpsim_block_recipe good = *mpsim_block_find("mxfp8");
    mpsim_block_recipe b = good;
    ck_assert(mpsim_block_check(&b) == MPSIM_OK);
    b.rule = 200;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("rule", &b, x, &rng);
    b = good;
    snprintf(b.element, sizeof b.element, "e9m9x");
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("element", &b, x, &rng);
    b = good;
    b.element_mode = MPSIM_ROUND_MODES;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("mode", &b, x, &rng);
    b = *mpsim_block_find("nvfp4-sr");
    b.sr_bits = 0;
    ck_assert(mpsim_block_check(&b) != MPSIM_OK);
    refused("no random bits", &b, x, &rng);
    b = *mpsim_block_find("nvfp4");
    snprintf(b.element, sizeof b.element, "e4m3");
    ck_assert(mpsim_block_check(&b) == MPSIM_EINVAL);
    refused("NVFP4 of e4m3", &b, x, &rng);
    static const char *const others[] = {"fp16", "binary32", "e8m0", "binary8p1se"};
    for (size_t i = 0; i < COUNT(others); i++) {
        b = good;
        snprintf(b.element, sizeof b.element, "%s", others[i]);
        ck_assert_msg(mpsim_block_check(&b) != MPSIM_OK, "%s", others[i]);
        refused(others[i], &b, x, &rng);
    }
    b = *mpsim_block_find("ms-amp");
    static const double margins[] = {0.5, 127, -127, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < COUNT(margins); i++) {
        b.margin = margins[i];
        ck_assert_msg(mpsim_block_check(&b) == MPSIM_EINVAL, "margin %zu", i);
        refused("margin", &b, x, &rng);
    }
    refused("no generator", mpsim_block_find("nvfp4-sr"), x, NULL);
    refused("no matrix", &good, NULL, &rng);
    refused("no recipe", NULL, x, &rng);
    ck_assert(mpsim_block_check(NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_block_quantize(&good, x, 2, 8, -1, 1, NULL, NULL, NULL) != MPSIM_ENOMEM);
}

/* Not negative, not NaN; a recipe that takes none ignores it. */
TEST(given_scales)
{
    static const struct {
        const char *recipe;
        float given;
        mpsim_status status;
    } rows[] = {{"ms-amp", 0, MPSIM_OK},
                {"ms-amp", INFINITY, MPSIM_OK},
                {"ms-amp", -0x1p-149f, MPSIM_EINVAL},
                {"ms-amp", NAN, MPSIM_EINVAL},
                {"mxfp8", NAN, MPSIM_OK}};
    const float x[2] = {1, 0};
    for (size_t i = 0; i < COUNT(rows); i++)
        ck_assert_msg(mpsim_block_quantize(mpsim_block_find(rows[i].recipe), x, 1, 2, -1, rows[i].given, NULL, &outputs,
                                           NULL) == rows[i].status,
                      "row %zu", i);
}

/* The scale of a block that E8M0 has none for is torch's NaN. */
TEST(scales_that_are_nan)
{
    const float x[2] = {INFINITY, 1};
    ck_assert(mpsim_block_quantize(mpsim_block_find("mxfp8-floor"), x, 1, 2, -1, 1, NULL, &outputs, NULL) == MPSIM_OK);
    ck_assert_uint_eq(out.scale_codes[0], 255);
    ck_assert_uint_eq(bits_of_f32(out.scales[0]), 0x7fc00000);
    ck_assert_uint_eq(bits_of_f32(out.inverses[0]), 0x7fc00000);
}

/* Rows of no columns are not gone through. */
TEST(bug_20261126_rows_of_nothing)
{
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_rng rng = {1, 2, 3};
        const mpsim_blocks none = {0};
        float tensor_scale;
        ck_assert_int_eq(mpsim_block_quantize(mpsim_block_at(i), NULL, SIZE_MAX, 0, -1, 1, &rng, &none, &tensor_scale),
                         MPSIM_OK);
        ck_assert_int_eq(mpsim_block_quantize(mpsim_block_at(i), NULL, 0, SIZE_MAX, -1, 1, &rng, &none, &tensor_scale),
                         MPSIM_OK);
    }
}

/* Any output may be missing; the others do not change. Statistics are added to. */
TEST(missing_outputs)
{
    static float x[5 * 70];
    static uint8_t codes[5 * 70], scale_codes[100];
    static float values[5 * 70], scales[100], inverses[100], amax[100];
    uint64_t state = test_seed() + 14;
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = block_input(SPECIALS, i, &state);
    const mpsim_rng rng = {1, 2, 3};
    for (size_t k = 0; k < mpsim_block_count(); k++) {
        const mpsim_block_recipe *b = mpsim_block_at(k);
        mpsim_cast_stats_init(&out.casts);
        ck_assert(mpsim_block_quantize(b, x, 5, 70, 9, 1, &rng, &outputs, NULL) == MPSIM_OK);
        size_t r, c;
        mpsim_block_grid(b, 5, 70, &r, &c);
        ck_assert(r * c <= 100);
        for (int keep = 0; keep < 8; keep++) {
            mpsim_cast_stats twice = out.casts;
            mpsim_counts counts = {0, 0, 0, 0, 0};
            const mpsim_blocks o = {
                .codes = keep == 0 ? codes : NULL,
                .values = keep == 1 ? values : NULL,
                .scale_codes = keep == 2 ? scale_codes : NULL,
                .scales = keep == 3 ? scales : NULL,
                .inverses = keep == 4 ? inverses : NULL,
                .amax = keep == 5 ? amax : NULL,
                .casts = keep == 6 ? &twice : NULL,
                .counts = keep == 7 ? &counts : NULL,
            };
            ck_assert(mpsim_block_quantize(b, x, 5, 70, 9, 1, &rng, &o, NULL) == MPSIM_OK);
            const void *const got[] = {codes, values, scale_codes, scales, inverses, amax};
            const void *const want[] = {out.codes, out.values, out.scale_codes, out.scales, out.inverses, out.amax};
            const size_t bytes[] = {sizeof codes, sizeof values, r * c, 4 * r * c, 4 * r * c, 4 * r * c};
            ck_assert_msg(keep >= 6 || memcmp(got[keep], want[keep], bytes[keep]) == 0, "%s %d", b->name, keep);
            ck_assert(keep != 7 || memcmp(&counts, &out.casts.counts, sizeof counts) == 0);
            ck_assert(keep != 6 ||
                      (twice.compared == 2 * out.casts.compared && twice.counts.nan == 2 * out.casts.counts.nan &&
                       twice.counts.overflow == 2 * out.casts.counts.overflow &&
                       twice.max_rel_err == out.casts.max_rel_err &&
                       mpsim_sum_value(&twice.sum_squared_error) == 2 * mpsim_sum_value(&out.casts.sum_squared_error)));
        }
    }
}

TEST_MAIN("block-outputs");
