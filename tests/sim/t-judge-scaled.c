/* t-judge-scaled.c -- mpsim/judge.h: products of block-scaled operands. Results and faults are made here, by loops of C. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>

#include <math.h>

enum { ROWS = 40, COLUMNS = 48, DEPTH = 160, BLOCK = 32, GRID = DEPTH / BLOCK };

static uint8_t a[ROWS * DEPTH], b[COLUMNS * DEPTH], e8[(ROWS + COLUMNS) * GRID];
static float scale_a[ROWS * GRID], scale_b[COLUMNS * GRID], d[ROWS * COLUMNS], tensor = 1.5f;
static mpsim_judgement j;

static void make(void)
{
    uint64_t state = 5;
    for (size_t i = 0; i < sizeof a + sizeof b; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint8_t code = (uint8_t)(state >> 56);
        *(i < sizeof a ? &a[i] : &b[i - sizeof a]) = (code & 0x7f) == 0x7f ? 0 : code & 0xbf; /* no NaN, below 2 */
    }
    for (size_t i = 0; i < ROWS * GRID; i++)
        scale_a[i] = ldexpf(1, (int)(i * 5 % 7) - 3);
    for (size_t i = 0; i < COLUMNS * GRID; i++)
        scale_b[i] = ldexpf(1, (int)(i * 3 % 5) - 2);
}

static mpsim_status ask_with(const char *like, const mpsim_judge_array *more)
{
    const mpsim_format *f = mpsim_format_find("binary32"), *e = mpsim_format_find("e4m3");
    const mpsim_judge_array arrays[] = {{"a", e, a, ROWS, DEPTH},
                                        {"b", e, b, COLUMNS, DEPTH},
                                        {"scale_a", f, scale_a, ROWS, GRID},
                                        {"scale_b", f, scale_b, COLUMNS, GRID},
                                        {"d", f, d, ROWS, COLUMNS},
                                        more ? *more : (mpsim_judge_array){"d", f, d, 0, 0}};
    char why[512] = "";
    const mpsim_status s = mpsim_judge(&j, MPSIM_JUDGE_SCALED_PRODUCT, arrays, more ? 6 : 5, like, NULL, why,
                                       sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
}

static void ask(const char *like)
{
    ck_assert_int_eq(ask_with(like, NULL), MPSIM_OK);
}

static float e4m3(uint8_t code)
{
    return (float)mpsim_decode(mpsim_format_find("e4m3"), code);
}

/* What the scales of a and b are, of a line and a block. */
typedef float scale_rule(size_t line, size_t t);
static float plain_a(size_t line, size_t t)
{
    return scale_a[line * GRID + t];
}
static float plain_b(size_t line, size_t t)
{
    return scale_b[line * GRID + t];
}
static float one(size_t line, size_t t)
{
    (void)line, (void)t;
    return 1;
}
static float turned_a(size_t line, size_t t)
{
    return scale_a[t * ROWS + line];
}
static float next_b(size_t line, size_t t)
{
    return plain_b(line, t + 1 < GRID ? t + 1 : t);
}
static float first_a(size_t line, size_t t)
{
    (void)t;
    return plain_a(line, 0);
}
static float squared_a(size_t line, size_t t)
{
    return plain_a(line, t) * plain_a(line, t);
}
static float squared_b(size_t line, size_t t)
{
    return plain_b(line, t) * plain_b(line, t);
}
static float last_plain_a(size_t line, size_t t)
{
    return t == GRID - 1 ? 1 : plain_a(line, t);
}
static float last_plain_b(size_t line, size_t t)
{
    return t == GRID - 1 ? 1 : plain_b(line, t);
}

static float all_a(size_t line, size_t t)
{
    return plain_a(line, t) * (line ? all_a(line - 1, t) : 1);
}
/* A tile of lines without scales. */
static float tile_a(size_t line, size_t t)
{
    return line >= 13 && line <= 27 ? 1 : plain_a(line, t);
}

/* Sums of blocks in binary32, times the scales. */
static void by_blocks(scale_rule *of_a, scale_rule *of_b, size_t blocks)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t n = 0; n < COLUMNS; n++) {
            float sum = 0;
            for (size_t t = 0; t < blocks; t++) {
                float part = 0;
                for (size_t k = t * BLOCK; k < (t + 1) * BLOCK; k++)
                    part += e4m3(a[i * DEPTH + k]) * e4m3(b[n * DEPTH + k]);
                const volatile float scaled = part * (of_a(i, t) * of_b(n, t));
                sum += scaled;
            }
            d[i * COLUMNS + n] = sum;
        }
}

/* Operands are scaled first; sums in binary32. */
static void by_operands(void)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t n = 0; n < COLUMNS; n++) {
            float sum = 0;
            for (size_t k = 0; k < DEPTH; k++) {
                const volatile float p = e4m3(a[i * DEPTH + k]) * plain_a(i, k / BLOCK) *
                                         (e4m3(b[n * DEPTH + k]) * plain_b(n, k / BLOCK));
                sum += p;
            }
            d[i * COLUMNS + n] = sum;
        }
}

static void make_uneven(void)
{
    make();
    for (size_t i = 0; i < ROWS * GRID; i++)
        scale_a[i] *= 1 + (float)(i % 11) / 16.0f + 0x1p-20f;
    for (size_t i = 0; i < COLUMNS * GRID; i++)
        scale_b[i] *= 1 + (float)(i % 13) / 32.0f + 0x1p-19f;
}

CASE("scaled products", 30);

TEST(rows)
{
    make_uneven();
    by_blocks(plain_a, plain_b, GRID);
    ask(NULL);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "blocks:model=sequential"), "%s: %d", j.row, (int)j.differ);
    by_operands();
    ask(NULL);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "dequant:to=binary32:model=sequential"), "%s: %d", j.row,
                  (int)j.differ);
    ask("blocks");
    ck_assert_str_eq(j.nearest, "dequant:to=binary32:model=sequential");
    ck_assert_int_eq((int)j.nearest_differ, 0);
}

/* Chunks of one product, which are added: the chain of additions. */
TEST(a_model_with_changes)
{
    make_uneven();
    by_blocks(plain_a, plain_b, GRID);
    ck_assert_int_eq(ask_with("blocks:model=fma:chunk=1", NULL), MPSIM_OK);
    ck_assert_int_eq((int)j.differ, 0);
    ck_assert_int_eq(ask_with("blocks:model=fma:acc=bf16", NULL), MPSIM_OK);
    ck_assert_int_ne((int)j.differ, 0);
}

TEST(hardware)
{
    const mpsim_format *e = mpsim_format_find("e8m0"), *f = mpsim_format_find("e4m3");
    const mpsim_matrix ma = {f, a, DEPTH, 0}, mb = {f, b, DEPTH, 1};
    const mpsim_scales sa = {e, e8, GRID}, sb = {e, e8 + ROWS * GRID, GRID};
    mpsim_model m;
    make();
    for (size_t i = 0; i < ROWS * GRID; i++)
        e8[i] = (uint8_t)(127 + ilogbf(scale_a[i]));
    for (size_t i = 0; i < COLUMNS * GRID; i++)
        e8[ROWS * GRID + i] = (uint8_t)(127 + ilogbf(scale_b[i]));
    ck_assert(mpsim_model_parse(&m, "blackwell-tcgen05-mxf8f6f4") == MPSIM_OK);
    ck_assert(mpsim_gemm_scaled(&m, ROWS, COLUMNS, DEPTH, &ma, &sa, &mb, &sb, NULL, d, COLUMNS, NULL, NULL) ==
              MPSIM_OK);
    const mpsim_judge_array arrays[] = {{"a", f, a, ROWS, DEPTH},
                                        {"b", f, b, COLUMNS, DEPTH},
                                        {"scale_a", e, e8, ROWS, GRID},
                                        {"scale_b", NULL, e8 + ROWS * GRID, COLUMNS, GRID},
                                        {"d", mpsim_format_find("binary32"), d, ROWS, COLUMNS}};
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_SCALED_PRODUCT, arrays, 5, NULL, NULL, NULL, 0) == MPSIM_OK);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "native:model=blackwell-tcgen05-mxf8f6f4"), "%s: %d", j.row,
                  (int)j.differ);
}

TEST(faults)
{
    static const struct {
        scale_rule *of_a, *of_b;
        size_t blocks;
        const char *cause, *words;
    } cases[] = {{one, plain_b, GRID, "scale-missing", "of a are left out"},
                 {plain_a, one, GRID, "scale-missing", "of b are left out"},
                 {one, one, GRID, "scale-missing", "all scales"},
                 {turned_a, plain_b, GRID, "scale-order", "of a are read as those of the transposed"},
                 {plain_a, next_b, GRID, "scale-order", "the next block of the line, in b"},
                 {first_a, plain_b, GRID, "scale-order", "the scale of its first block, in a"},
                 {squared_a, squared_b, GRID, "scale-squared", "twice"},
                 {plain_a, plain_b, GRID - 1, "tail", "the last block of the depth is left out"},
                 {last_plain_a, last_plain_b, GRID, "scale-missing", "has no scales"},
                 {all_a, plain_b, GRID, "scale-squared", "of a are multiplied by the scales of the lines before"}};
    make_uneven();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        by_blocks(cases[i].of_a, cases[i].of_b, cases[i].blocks);
        ask("blocks");
        judged_has(&j, cases[i].cause, cases[i].words);
    }
}

/* All results are off by rounding, and a tile has no scales: where it is, and what it lacks. */
TEST(a_tile)
{
    make_uneven();
    by_blocks(tile_a, plain_b, GRID);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        d[i] = nextafterf(d[i], i % 3 ? HUGE_VALF : -HUGE_VALF);
    ask("blocks");
    judged_has(&j, "rows", "rounding explains all results but those of rows 13 to 27");
    judged_has(&j, "scale-missing", "in rows 13 to 27: the scales of a are left out");
}

TEST(tensors)
{
    const mpsim_judge_array t = {"tensor_a", mpsim_format_find("binary32"), &tensor, 1, 1};
    make_uneven();
    by_blocks(plain_a, plain_b, GRID);
    ck_assert_int_eq(ask_with("blocks", &t), MPSIM_OK);
    judged_has(&j, "scale-missing", "of tensors");
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        d[i] *= tensor;
    ck_assert_int_eq(ask_with("blocks", &t), MPSIM_OK);
    ck_assert_int_eq((int)j.differ, 0);
}

TEST(refusals)
{
    make();
    ck_assert_int_eq(ask_with("blocks:to=bf16", NULL), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_with("native:model=fma", NULL), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_with("blocks:model=fma:chunk=0.5", NULL), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_with("native:model=blackwell-tcgen05-mxf8f6f4", NULL), MPSIM_ERANGE);
    const mpsim_judge_array wrong = {"bias", mpsim_format_find("binary32"), d, 1, 3};
    ck_assert_int_eq(ask_with("blocks", &wrong), MPSIM_EINVAL);
}

TEST_MAIN("judge-scaled");
