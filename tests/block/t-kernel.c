/* t-kernel.c -- scaled quantisation of every instruction set against the reference alone, bit for bit:
 * every recipe, element format and mode, sizes that no vector divides, numbers that are none. Combinations run
 * in parts that take turns (test_in_part), the ends of the range of scales always. */
#include "support/support.h"

#include <mpsim/block.h>
#include <mpsim/isa.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 34000 };

/* Whether test number i of a loop over the instruction sets is to run: on set i, which is not the reference. */
static int use_isa(int i)
{
    return strcmp(mpsim_isa_at((size_t)i), "scalar") != 0 && test_isa_use((size_t)i);
}

typedef struct results {
    uint8_t codes[MOST + 64], scale_codes[MOST];
    float values[MOST + 64], scales[MOST], inverses[MOST], amax[MOST], tensor;
    mpsim_cast_stats casts;
    mpsim_counts counts; /* of a call that asks for them beside codes and values */
    mpsim_counts alone;
} results;

static results got, want;
static float x[MOST + 1], origin[MOST + 1], given = 0.37f;

/* Numbers of a tensor, of which some rows are special: kind 0 to 7. */
static void fill(size_t n, int kind, uint64_t *random)
{
    static const float odd[] = {0, -0.0f, INFINITY, -INFINITY, 0x1p-149f, -0x1.8p-140f,   0x1.fffffep127f, 0x1p-126f,
                                1, -448,  449,      6,         -57344,    0x1.fffffep-1f, 0x1p-133f};
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(random);
        const int e = kind == 1   ? (int)(w % 250) - 140
                      : kind == 2 ? 110 + (int)(w % 17)
                      : kind == 3 ? -149 + (int)(w % 12) + 12 * (int)(i / 40 % 6) /* subnormal, then small ones */
                                  : (int)(w % 13) - 9;
        x[i] = (float)ldexp((double)(w >> 11) * 0x1p-52, e) * (w >> 10 & 1 ? 1 : -1);
        if (kind >= 4 && (w >> 40) % 97 == 0)
            x[i] = odd[(w >> 20) % (sizeof odd / sizeof odd[0])];
        if (kind == 5 && (w >> 32) % 64 == 0)
            x[i] = f32_of_bits((uint32_t)w | 0x7f800000u); /* NaN */
        if (kind == 6)
            x[i] = (w >> 32) % 30 ? (w >> 60 ? 0 : -0.0f) : ldexpf(1, (int)(w % 270) - 149);
        if (kind == 7) /* ties and their neighbours */
            x[i] = f32_of_bits(bits_of_f32((float)((w >> 50) % 64) / 16) + (uint32_t)(w % 3) - 1);
        if (kind == 7 && !isfinite(x[i]))
            x[i] = 0;
    }
}

static void quantize(results *r, const mpsim_block_recipe *b, size_t rows, size_t cols, float amax, int casts)
{
    const mpsim_rng rng = {3, 4, 5};
    mpsim_blocks out = {.codes = r->codes,
                        .values = r->values,
                        .scale_codes = r->scale_codes,
                        .scales = r->scales,
                        .inverses = r->inverses,
                        .amax = r->amax};
    memset(r, 0x5a, sizeof *r);
    mpsim_cast_stats_init(&r->casts);
    if (casts)
        out.casts = &r->casts;
    if (mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &out, &r->tensor) != MPSIM_OK)
        ck_abort_msg("%s is refused", b->name);
}

/* Counts beside codes and values, and alone. */
static void count(results *r, const mpsim_block_recipe *b, size_t rows, size_t cols, float amax)
{
    const mpsim_rng rng = {3, 4, 5};
    const mpsim_blocks out = {.codes = r->codes, .values = r->values, .counts = &r->counts};
    const mpsim_blocks nothing_else = {.counts = &r->alone};
    memset(r, 0x5a, sizeof *r);
    mpsim_cast_stats_init(&r->casts);
    r->counts = r->alone = (mpsim_counts){1, 2, 3, 4, 5};
    mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &out, NULL);
    mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &nothing_else, NULL);
}

static void differ(const mpsim_block_recipe *b, size_t rows, size_t cols, int kind, const char *what, const void *p,
                   const void *q, size_t size)
{
    const unsigned char *a = p, *c = q;
    size_t i = 0;
    while (a[i] == c[i])
        i++;
    i = i / size * size;
    ck_abort_msg("%s: %s (%s, mode %d), %zu x %zu, data %d: %s %zu is 0x%" PRIx64 ", reference "
                 "0x%" PRIx64,
                 mpsim_isa_active(), b->name, b->element, b->element_mode, rows, cols, kind, what, i / size,
                 code_load(a + i, size), code_load(c + i, size));
}

#define SAME(field)                                           \
    if (memcmp(got.field, want.field, sizeof got.field) != 0) \
    differ(b, rows, cols, kind, #field, got.field, want.field, sizeof got.field[0])

/* What this instruction set counts is what the reference's statistics of the cast count. */
static void compare_counts(const mpsim_block_recipe *b, size_t rows, size_t cols, int kind, float amax)
{
    const char *isa = mpsim_isa_active();
    ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
    quantize(&want, b, rows, cols, amax, 1);
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    count(&got, b, rows, cols, amax);
    const mpsim_counts *c = &want.casts.counts;
    const uint64_t all[] = {c->inexact + 1, c->underflow + 2, c->subnormal + 3, c->overflow + 4, c->nan + 5};
    if (memcmp(&got.counts, all, sizeof all) != 0)
        differ(b, rows, cols, kind, "count", &got.counts, all, sizeof all[0]);
    if (memcmp(&got.alone, all, sizeof all) != 0)
        differ(b, rows, cols, kind, "count alone", &got.alone, all, sizeof all[0]);
    SAME(codes);
    SAME(values);
}

/* Another tensor that x stands for: near it, sometimes far away or no number. */
static void fill_origin(size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = test_random(random);
        const float by = (float)((double)(w >> 40) * 0x1p-26 + 0.875);
        origin[i] = w % 50 == 0 ? 0 : w % 50 == 1 ? -x[i] : w % 500 == 2 ? f32_of_bits((uint32_t)w) : x[i] * by;
    }
}

/* Statistics of blocks: all bytes of them. Codes and values are those that there are without. */
static void compare_stats(const mpsim_block_recipe *b, size_t rows, size_t cols, int kind, float amax,
                          const float *against, int outputs)
{
    static mpsim_block_stats stats[2];
    static uint8_t codes[MOST + 64];
    static float values[MOST + 64];
    const mpsim_rng rng = {3, 4, 5};
    const char *isa = mpsim_isa_active();
    for (int turn = 0; turn < 2; turn++) {
        mpsim_counts counts = {0, 0, 0, 0, 0};
        const mpsim_blocks out = {.stats = &stats[turn],
                                  .origin = against,
                                  .codes = outputs ? codes : NULL,
                                  .values = outputs ? values : NULL,
                                  .counts = outputs ? &counts : NULL};
        ck_assert_int_eq(mpsim_isa_use(turn ? "scalar" : isa), MPSIM_OK);
        mpsim_block_stats_init(&stats[turn]);
        memset(codes, 0x5a, sizeof codes);
        memset(values, 0x5a, sizeof values);
        mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &out, NULL);
        if (!outputs)
            continue;
        ck_assert(memcmp(&counts, &stats[turn].casts.counts, sizeof counts) == 0);
        ck_assert_msg(memcmp(codes, got.codes, sizeof codes) == 0, "%s: codes beside statistics", b->name);
        ck_assert_msg(memcmp(values, got.values, sizeof values) == 0, "%s: values beside statistics", b->name);
    }
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    if (memcmp(&stats[0], &stats[1], sizeof stats[0]) != 0)
        differ(b, rows, cols, kind, "word of statistics", &stats[0], &stats[1], 8);
}

/* The same with one output alone is tried as well. */
static void compare(const mpsim_block_recipe *b, size_t rows, size_t cols, int kind, float amax)
{
    static float values[MOST + 64];
    static uint8_t codes[MOST + 64];
    const mpsim_rng rng = {3, 4, 5};
    const char *isa = mpsim_isa_active();
    quantize(&got, b, rows, cols, amax, kind == 0);
    ck_assert_int_eq(mpsim_isa_use("scalar"), MPSIM_OK);
    quantize(&want, b, rows, cols, amax, kind == 0);
    ck_assert_int_eq(mpsim_isa_use(isa), MPSIM_OK);
    SAME(amax);
    SAME(scale_codes);
    SAME(scales);
    SAME(inverses);
    SAME(codes);
    SAME(values);
    ck_assert(memcmp(&got.tensor, &want.tensor, sizeof got.tensor) == 0);
    ck_assert(memcmp(&got.casts, &want.casts, sizeof got.casts) == 0);
    memset(values, 0x5a, sizeof values);
    memset(codes, 0x5a, sizeof codes);
    const mpsim_blocks one = {.values = values}, other = {.codes = codes};
    mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &one, NULL);
    mpsim_block_quantize(b, x, rows, cols, amax, given, &rng, &other, NULL);
    ck_assert(memcmp(values, want.values, sizeof values) == 0);
    ck_assert(memcmp(codes, want.codes, sizeof codes) == 0);
    compare_counts(b, rows, cols, kind, amax);
    compare_stats(b, rows, cols, kind, amax, NULL, 0);
    compare_stats(b, rows, cols, kind, amax, NULL, 1);
    uint64_t random = rows * 1000 + cols + (size_t)kind;
    fill_origin(rows * cols, &random);
    compare_stats(b, rows, cols, kind, amax, origin, 0);
}

static const size_t shapes[][2] = {{1, 1},   {3, 7},    {5, 16},   {2, 33},    {17, 47},  {40, 96},
                                   {1, 300}, {130, 70}, {2, 2500}, {129, 257}, {33, 128}, {0, 5}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], KINDS = 8, PARTS = 8 };

CASE("casts", 120);

TESTS(every_recipe, test_isa_count())
{
    uint64_t random = test_seed();
    if (!use_isa(_i))
        return;
    for (size_t i = 0; i < mpsim_block_count(); i++)
        for (size_t s = 0; s < SHAPES; s++)
            for (int kind = 0; kind < KINDS; kind++) {
                if ((s + (size_t)kind + i) % 3 || !test_in_part((s + (size_t)kind + i) / 3 + s, PARTS))
                    continue;
                fill(shapes[s][0] * shapes[s][1], kind, &random);
                compare(mpsim_block_at(i), shapes[s][0], shapes[s][1], kind, -1);
            }
}

/* Every mode in every element format that there is. */
TESTS(every_element_format_and_mode, test_isa_count())
{
    uint64_t random = test_seed() + 1;
    if (!use_isa(_i))
        return;
    for (size_t i = 0; i < mpsim_format_count(); i++)
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            static const mpsim_scale_rule rules[] = {MPSIM_SCALE_E8M0_FLOOR, MPSIM_SCALE_GIVEN, MPSIM_SCALE_E8M0_MICROX,
                                                     MPSIM_SCALE_AMAX_TORCHAO, MPSIM_SCALE_TORCHAO_018_EVEN};
            mpsim_block_recipe b = {
                .name = "own", .block_rows = 1 + (uint32_t)mode % 2, .block_cols = mode % 3 ? 20 : 32};
            b.element_mode = (uint8_t)mode;
            b.rule = (uint8_t)rules[(i + (size_t)mode) % 5];
            b.sr_bits = 8;
            if (strlen(mpsim_format_at(i)->name) >= sizeof b.element)
                continue;
            strcpy(b.element, mpsim_format_at(i)->name);
            if (mpsim_block_check(&b) != MPSIM_OK)
                continue;
            for (int kind = 0; kind < KINDS; kind++) {
                if (!test_in_part(i + (size_t)(mode + kind), PARTS))
                    continue;
                fill(7 * 107, kind, &random);
                compare(&b, 7, 107, kind, -1);
            }
        }
}

CASE("scales", 120);

/* Under a tensor scale that somebody else found. */
TESTS(any_tensor_amax, test_isa_count())
{
    static const float amax[] = {0, 1, 0x1p-149f, 0x1p-130f, 3e38f, INFINITY, NAN, 1e-30f, 2688};
    static const char *const names[] = {"nvfp4", "nvfp4-2d", "nvfp4-sr", "nvfp4-torchao"};
    uint64_t random = test_seed() + 2;
    if (!use_isa(_i))
        return;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < sizeof amax / sizeof amax[0]; k++)
            for (int kind = 0; kind < KINDS; kind++) {
                if (!test_in_part(i + k + (size_t)kind, PARTS))
                    continue;
                fill(19 * 170, kind, &random);
                compare(mpsim_block_find(names[i]), 19, 170, kind, amax[k]);
            }
}

/* Under scales whose inverse, or product with elements, is beyond binary32. */
TESTS(any_given_scale, test_isa_count())
{
    static const float scales[] = {0,     0x1p-149f, 0x1p-130f,       0x1p-127f, 0x1.8p-126f, 0x1p-60f, 0x1.000002p0f,
                                   3e10f, 0x1p127f,  0x1.fffffep127f, INFINITY};
    uint64_t random = test_seed() + 3;
    if (!use_isa(_i))
        return;
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        for (int mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A; mode++)
            for (int kind = 0; kind < KINDS; kind++) {
                if (!test_in_part(i + (size_t)(mode + kind), PARTS))
                    continue;
                mpsim_block_recipe b = {.name = "own", .element = "e4m3", .rule = MPSIM_SCALE_GIVEN};
                b.element_mode = (uint8_t)mode;
                given = scales[i];
                fill(19 * 83, kind, &random);
                compare(&b, 19, 83, kind, -1);
            }
    given = 0.37f;
}

/* All amax within 200 steps of a power of two, where rules change. */
TESTS(amax_near_powers_of_two, test_isa_count())
{
    if (!use_isa(_i))
        return;
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_block_recipe *b = mpsim_block_at(i);
        for (int e = 1; e < 255; e += e < 20 || e > 240 ? 1 : 37)
            for (int turn = 0; turn < 2; turn++) {
                enum { ROWS = 200, COLS = 32 };
                const unsigned parts = e > 2 && e < 253 ? 3 * PARTS
                                                        : 1; /* the ends by the best instruction set each day */
                if ((parts > 1 || _i > 0) && !test_in_part(i + (size_t)(e + _i), parts))
                    continue;
                memset(x, 0, sizeof x);
                for (size_t r = 0; r < ROWS; r++)
                    x[r * COLS + r % COLS] =
                        f32_of_bits(((uint32_t)e << 23) + (turn ? 0x500000u + (uint32_t)r * 8192 : (uint32_t)r - 100));
                for (size_t r = 0; r < ROWS * COLS; r++)
                    x[r] = isfinite(x[r]) ? x[r] : 0;
                if (turn == 0 || e % 5 == 0)
                    compare(b, ROWS, COLS, 9, -1);
            }
    }
}

TEST_MAIN("block-kernel");
