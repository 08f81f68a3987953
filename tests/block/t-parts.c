/* t-parts.c -- blocks quantised in parts, each with the largest magnitude of what it lacks (mpsim_blocks.block_amax),
 * against the same blocks in one piece: codes, values, scales, statistics of elements, bit for bit; every recipe, cuts
 * anywhere, numbers of every kind, every instruction set. */
#include "support/blockinput.h"
#include "support/support.h"

#include <mpsim/block.h>
#include <mpsim/isa.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40000, BLOCKS = 3, PARTS = 4 };

typedef struct results {
    uint8_t codes[MOST], scale_codes[BLOCKS];
    float values[MOST], scales[BLOCKS], inverses[BLOCKS], amax[BLOCKS];
    mpsim_block_stats stats;
    mpsim_cast_stats casts;
} results;

static results whole, part, joined;
static float x[MOST], origin[MOST], of_part[MOST], origin_of_part[MOST];

/* A matrix of one block beside the other downwards, of any height where a block is a row. */
typedef struct shape {
    size_t rows, cols, blocks;
} shape;

static shape shape_of(const mpsim_block_recipe *b)
{
    const size_t height = b->block_rows ? b->block_rows : 5, n = height > 16 || b->block_rows == 0 ? 1 : BLOCKS;
    return (shape){n * height, b->block_cols ? b->block_cols : 71, n};
}

static void fill(size_t n, int kind, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = block_input(kind, i, random);
        origin[i] = block_input(ORDINARY, i, random);
    }
}

static void quantise(results *to, const mpsim_block_recipe *b, const float *of, const float *against, size_t rows,
                     size_t cols, const float *amax, int kernels)
{
    const mpsim_blocks out = {.codes = kernels ? NULL : to->codes,
                              .values = kernels ? NULL : to->values,
                              .scale_codes = to->scale_codes,
                              .scales = to->scales,
                              .inverses = to->inverses,
                              .amax = to->amax,
                              .stats = &to->stats,
                              .casts = kernels ? NULL : &to->casts,
                              .origin = against,
                              .block_amax = amax};
    mpsim_block_stats_init(&to->stats);
    mpsim_cast_stats_init(&to->casts);
    ck_assert(mpsim_block_quantize(b, of, rows, cols, 300, 0.37f, NULL, &out, NULL) == MPSIM_OK);
}

/* ---- a part ---- */

static void copy_columns(float *to, const float *from, const shape *s, size_t first, size_t n)
{
    for (size_t i = 0; i < s->rows; i++)
        memcpy(to + i * n, from + i * s->cols + first, n * sizeof *to);
}

/* The largest bits of magnitudes outside of the columns, in each block, of NaNs where the rule lets them count; the sign
 * is of no account. */
static void amax_outside(float *amax, const shape *s, size_t first, size_t n)
{
    for (size_t k = 0; k < s->blocks; k++) {
        const uint32_t bound = isnan(whole.amax[k]) ? 0x7fffffff : 0x7f800000;
        uint32_t most = 0;
        for (size_t i = k * s->rows / s->blocks; i < (k + 1) * s->rows / s->blocks; i++)
            for (size_t j = 0; j < s->cols; j++) {
                const uint32_t bits = bits_of_f32(x[i * s->cols + j]) & 0x7fffffff;
                most = (j < first || j >= first + n) && bits > most && bits <= bound ? bits : most;
            }
        amax[k] = f32_of_bits(most | (k % 2 ? 0x80000000u : 0));
    }
}

static void has_no_blocks(const mpsim_block_stats *s)
{
    ck_assert(s->blocks == 0 && s->zero_blocks == 0 && s->saturated_blocks == 0 && s->lost_blocks == 0);
    ck_assert(s->nonfinite_blocks == 0 && s->least_scales == 0 && s->largest_scales == 0);
    ck_assert(s->scale_zero == 0 && s->scale_nonfinite == 0);
    for (size_t i = 0; i < MPSIM_SCALE_BINS; i++)
        ck_assert(s->scales[i] == 0);
}

static void compare_scales(const mpsim_block_recipe *b, const shape *s)
{
    const size_t n = s->blocks * sizeof(float);
    ck_assert_msg(memcmp(part.scale_codes, whole.scale_codes, s->blocks) == 0, "%s", b->name);
    ck_assert_msg(memcmp(part.scales, whole.scales, n) == 0, "%s", b->name);
    ck_assert_msg(memcmp(part.inverses, whole.inverses, n) == 0, "%s", b->name);
    ck_assert_msg(memcmp(part.amax, whole.amax, n) == 0, "%s", b->name);
}

static void compare_elements(const mpsim_block_recipe *b, const shape *s, size_t first, size_t n)
{
    for (size_t i = 0; i < s->rows; i++) {
        ck_assert_msg(memcmp(part.codes + i * n, whole.codes + i * s->cols + first, n) == 0, "%s", b->name);
        ck_assert_msg(memcmp(part.values + i * n, whole.values + i * s->cols + first, n * sizeof(float)) == 0, "%s",
                      b->name);
    }
}

static void add_part(const mpsim_block_recipe *b, const shape *s, size_t first, size_t n, int kernels, int against)
{
    float amax[BLOCKS];
    copy_columns(of_part, x, s, first, n);
    copy_columns(origin_of_part, origin, s, first, n);
    amax_outside(amax, s, first, n);
    quantise(&part, b, of_part, against ? origin_of_part : NULL, s->rows, n, amax, kernels);
    has_no_blocks(&part.stats);
    compare_scales(b, s);
    if (!kernels)
        compare_elements(b, s, first, n);
    mpsim_block_stats_merge(&joined.stats, &part.stats);
    mpsim_cast_stats_merge(&joined.casts, &part.casts);
}

/* ---- all parts ---- */

static void compare_casts(const mpsim_block_recipe *b, const mpsim_cast_stats *got, const mpsim_cast_stats *want)
{
    ck_assert_msg(memcmp(&got->counts, &want->counts, sizeof got->counts) == 0, "%s", b->name);
    ck_assert_msg(got->compared == want->compared && got->max_rel_err == want->max_rel_err, "%s", b->name);
    ck_assert(mpsim_sum_value(&got->sum_squared_error) == mpsim_sum_value(&want->sum_squared_error));
    ck_assert(mpsim_sum_value(&got->sum_squares_left_out) == mpsim_sum_value(&want->sum_squares_left_out));
}

static void compare(const mpsim_block_recipe *b, int kind, int kernels, int against, uint64_t *random)
{
    const shape s = shape_of(b);
    const mpsim_block_stats *got = &joined.stats, *want = &whole.stats;
    fill(s.rows * s.cols, kind, random);
    quantise(&whole, b, x, against ? origin : NULL, s.rows, s.cols, NULL, kernels);
    mpsim_block_stats_init(&joined.stats);
    mpsim_cast_stats_init(&joined.casts);
    for (size_t first = 0, n, left = PARTS; first<s.cols; first += n, left -= left> 1) {
        const size_t most = s.cols - first;
        n = left == 1 ? most : 1 + (size_t)(test_random(random) % most);
        add_part(b, &s, first, n, kernels, against);
    }
    compare_casts(b, &got->casts, &want->casts);
    compare_casts(b, &joined.casts, &whole.casts); /* asked for beside codes */
    ck_assert_msg(got->underflow == want->underflow && got->saturated == want->saturated, "%s", b->name);
    ck_assert_msg(got->spoilt == want->spoilt, "%s", b->name);
}

CASE("parts", 120);

TESTS(every_recipe, test_isa_count())
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < mpsim_block_count() && test_isa_use((size_t)_i); i++)
        for (int kind = 0; kind < FILLS; kind++)
            for (int how = 0; how < 4 && mpsim_block_at(i)->sr_bits == 0; how++)
                if (test_in_part(i + (size_t)(kind + how + _i), 1))
                    compare(mpsim_block_at(i), kind, how & 1, how >> 1, &random);
}

TESTS(blocks_of_any_size, test_isa_count())
{
    static const char *const words[] = {"e4m3/row",    "e5m2/row:ue8m0",   "e2m1/tensor",     "e4m3/3x7",
                                        "e3m2/1x2000", "e2m3/tensor:ceil", "e4m3/row:microx", "e5m2/4x300"};
    uint64_t random = test_seed() + 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && test_isa_use((size_t)_i); i++) {
        mpsim_block_recipe b;
        unsigned transform;
        ck_assert(mpsim_block_parse(&b, &transform, words[i], NULL, 0) == MPSIM_OK);
        for (int kind = 0; kind < FILLS; kind++)
            for (int how = 0; how < 4; how++)
                compare(&b, kind, how & 1, how >> 1, &random);
    }
}

/* One more element of 16 among ones and a half: the scale is 2^(4 - 8), and nothing is larger than 256. */
TEST(by_hand)
{
    const mpsim_block_recipe *b = mpsim_block_find("mxfp8-floor");
    const float ones[] = {1, 0.5f, -1}, amax = -16;
    float values[3], seen, scale;
    uint8_t codes[3];
    mpsim_block_stats stats;
    mpsim_block_stats_init(&stats);
    const mpsim_blocks out = {
        .codes = codes, .values = values, .scales = &scale, .amax = &seen, .stats = &stats, .block_amax = &amax};
    ck_assert(mpsim_block_quantize(b, ones, 1, 3, -1, 1, NULL, &out, NULL) == MPSIM_OK);
    ck_assert(scale == 16 && seen == 16 && values[0] == 1 && values[1] == 0.5f && values[2] == -1);
    ck_assert(codes[0] == 0x58 && codes[1] == 0x50 && codes[2] == 0xd8); /* 16, 8, -16 of e4m3 */
    ck_assert(stats.casts.compared == 3 && stats.blocks == 0);
}

TEST_MAIN("block-parts");
