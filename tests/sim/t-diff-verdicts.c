/* t-diff-verdicts.c -- what mpsim diff takes a difference for: a seeded difference of each sort, in small tensors and in
 * those of many pieces, on 1, 2 and 7 threads. */
#include "samples.h"
#include "support/support.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- seeded differences ---- */

static float as(const char *format, mpsim_round_mode mode, float x, double scale)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, mode);
    r.scale = scale;
    return (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, (uint32_t)test_random(&sample_state), NULL));
}

static void flip(sample *s)
{
    s->x[s->n / 3] = f32_of_bits(bits_of_f32(s->x[s->n / 3]) ^ 1u << 21);
}
static void flip_sign(sample *s)
{
    s->x[s->n - 1] *= -1;
}
static void negate(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= -1;
}
static void scale(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 65536;
}
static void third(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] /= 3;
}
static void shrink(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 0.7312f;
}
static void to_bf16(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("bf16", MPSIM_ROUND_NEAREST_EVEN, s->x[i], 1);
}
static void chop(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("fp16", MPSIM_ROUND_TOWARD_ZERO, s->x[i], 1);
}
static void dither(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("bf16", MPSIM_ROUND_STOCHASTIC_C, s->x[i], 1);
}
static void half(sample *s)
{
    s->format = "fp16";
}
static void fp8(sample *s)
{
    float most = 0;
    for (size_t i = 0; i < s->n; i++)
        most = fmaxf(most, fabsf(s->x[i]));
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("e4m3", MPSIM_ROUND_NEAREST_EVEN, s->x[i], (double)(448 / most)) / (448 / most);
}
static void wipe(sample *s)
{
    memset(s->x, 0, s->n * sizeof *s->x);
}
static void cut(sample *s)
{
    memset(s->x + s->n / 2, 0, (s->n - s->n / 2) * sizeof *s->x);
}
static void flush(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fabsf(s->x[i]) < 0.5f ? 0 : s->x[i];
}
static void clip(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fmaxf(-2, fminf(2, s->x[i]));
}
static void poison(sample *s)
{
    s->x[s->n / 2] = NAN;
    s->x[s->n / 2 + 3] = HUGE_VALF;
}
static void swap_bytes(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = f32_of_bits(__builtin_bswap32(bits_of_f32(s->x[i])));
}
static void transpose(sample *s)
{
    sample c = sample_copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i % COLUMNS * (s->n / COLUMNS) + i / COLUMNS] = c.x[i];
    free(c.x);
}
static void backwards(sample *s)
{
    sample c = sample_copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = c.x[s->n - 1 - i];
    free(c.x);
}
static void roll(sample *s)
{
    sample c = sample_copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[(i + 3 * COLUMNS) % s->n] = c.x[i];
    free(c.x);
}
static void lose_row(sample *s)
{
    memmove(s->x + 2 * COLUMNS, s->x + 3 * COLUMNS, (s->n - 3 * COLUMNS) * sizeof *s->x);
}
static void swap_rows(sample *s)
{
    float row[COLUMNS];
    memcpy(row, s->x, sizeof row);
    memcpy(s->x, s->x + 5 * COLUMNS, sizeof row);
    memcpy(s->x + 5 * COLUMNS, row, sizeof row);
}
static void shuffle(sample *s)
{
    for (size_t i = s->n - 1; i > 0; i--) {
        const size_t k = test_random(&sample_state) % (i + 1);
        const float x = s->x[i];
        s->x[i] = s->x[k];
        s->x[k] = x;
    }
}
static void shorten(sample *s)
{
    memmove(s->x + 4 * COLUMNS, s->x + 6 * COLUMNS, (s->n - 6 * COLUMNS) * sizeof *s->x);
    s->shape[0] -= 2;
    s->n -= 2 * COLUMNS;
}
static void reshape(sample *s)
{
    s->shape[1] = s->shape[0];
    s->shape[0] = COLUMNS;
}
static void widen(sample *s)
{
    s->format = "binary64";
}
static void sum_otherwise(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)((double)s->x[i] + (sample_uniform() - sample_uniform()) * 4e-7);
}
static void damage(sample *s)
{
    for (size_t i = 0; i < 9; i++)
        s->x[s->n / 4 + i] = (float)sample_uniform();
}
static void forget(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)(sample_uniform() - 0.5);
}
static void nothing(sample *s)
{
    (void)s;
}
static void one_more(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] += 1;
}
static void magnitudes(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fabsf(s->x[i]);
}
static void sevens(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = 7;
}
static void drop(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = sample_uniform() < 0.25 ? 0 : s->x[i] / 0.75f;
}
static void rows(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 1 + (float)(i / COLUMNS % 7) / 8;
}
static void columns(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 1 + (float)(i % COLUMNS) / 8;
}
static void about_a_third(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= (float)((1 + 1e-5 * (sample_uniform() - 0.5)) / 3);
}
static void line(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = s->x[i] * 1.7f - 0.3f;
}
static void through_bf16(sample *s)
{
    for (size_t i = 0; i < s->n; i++) /* an error of several units of bf16 */
        s->x[i] = as("bf16", MPSIM_ROUND_NEAREST_EVEN, s->x[i] * (float)(1 + 0.01 * (sample_uniform() - 0.5)), 1);
}
static void move_rows(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (i / COLUMNS % 5 == 2)
            s->x[i] += (float)(0.01 * (sample_uniform() - 0.5));
}

/* Groups of four rows, in the opposite order. */
static void move_heads(sample *s)
{
    sample c = sample_copy(s);
    const size_t size = 4 * COLUMNS, groups = s->n / size;
    for (size_t g = 0; g < groups; g++)
        memcpy(s->x + g * size, c.x + (groups - 1 - g) * size, size * sizeof *s->x);
    free(c.x);
}
static void heads_bf16(sample *s)
{
    move_heads(s);
    to_bf16(s);
}
static void heads_noise(sample *s)
{
    move_heads(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= (float)(0.37 * (1 + 0.05 * (sample_uniform() - 0.5)));
}
static void rotary_bf16(sample *s)
{
    sample c = sample_copy(s);
    for (size_t i = 0; i < s->n; i++) {
        const size_t row = i / COLUMNS, in = row % 12, from = row - in + (in < 6 ? 2 * in : 2 * (in - 6) + 1);
        s->x[i] = c.x[from * COLUMNS + i % COLUMNS];
    }
    free(c.x);
    to_bf16(s);
}
static void mixed_rows_bf16(sample *s)
{
    sample c = sample_copy(s);
    const size_t n = s->n / COLUMNS;
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = c.x[i / COLUMNS * 7 % n * COLUMNS + i % COLUMNS];
    free(c.x);
    to_bf16(s);
}
static void columns_bf16(sample *s)
{
    sample c = sample_copy(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = c.x[i - i % COLUMNS + i % COLUMNS * 7 % COLUMNS];
    free(c.x);
    to_bf16(s);
}
/* Two matrices of rank two have nothing in common, however alike their rows are. */
static void other_of_low_rank(sample *s)
{
    float u[2][COLUMNS];
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < COLUMNS; i++)
            u[k][i] = (float)(sample_uniform() - 0.5);
    for (size_t i = 0; i < s->n; i += COLUMNS) {
        const float a = (float)(sample_uniform() - 0.5), b = (float)(sample_uniform() - 0.5);
        for (size_t k = 0; k < COLUMNS; k++)
            s->x[i + k] = a * u[0][k] + b * u[1][k];
    }
}

static const struct {
    const char *name;
    void (*change)(sample *s);
    verdict verdict;
    const char *words; /* in the evidence */
} cases[] = {
    {"equal", nothing, VERDICT_EQUAL, ""},
    {"bit", flip, VERDICT_FLIPPED_BIT, "bit 21, of the significand"},
    {"sign of one", flip_sign, VERDICT_FLIPPED_BIT, "bit 31, of the sign"},
    {"sign", negate, VERDICT_NEGATED, "B = -A"},
    {"loss scale", scale, VERDICT_SCALED, "2^16 exactly"},
    {"mean", third, VERDICT_SCALED, "a mean instead of a sum over 3"},
    {"ratio", shrink, VERDICT_SCALED, "B = A * 0.7312 exactly"},
    {"bf16", to_bf16, VERDICT_ROUNDED, "B = round(A, bf16, nearest-even) exactly"},
    {"chopped", chop, VERDICT_ROUNDED, "B = round(A, fp16, toward-zero) exactly"},
    {"stochastic", dither, VERDICT_ROUNDED, "as stochastic rounding does"},
    {"another dtype", half, VERDICT_ROUNDED, "B = round(A, fp16, nearest-even) exactly"},
    {"fp8", fp8, VERDICT_ROUNDED, "B = round(A * "},
    {"zeros", wipe, VERDICT_ZEROED, "never written"},
    {"tail", cut, VERDICT_ZEROED, "the tail"},
    {"flushed", flush, VERDICT_ZEROED, "all "},
    {"clipped", clip, VERDICT_CLIPPED, " 2 in magnitude"},
    {"NaN", poison, VERDICT_NON_FINITE, "2 elements are finite in A alone"},
    {"bytes", swap_bytes, VERDICT_BYTE_ORDER, "opposite order"},
    {"transposed", transpose, VERDICT_TRANSPOSED, "the axes (1, 0)"},
    {"backwards", backwards, VERDICT_REVERSED, "along axis 0, 1"},
    {"rolled", roll, VERDICT_SHIFTED, "3 rows of 20 before"},
    {"lost row", lose_row, VERDICT_SHIFTED, "1 row of 20 behind"},
    {"rows", swap_rows, VERDICT_PERMUTED, "rows 0 and 5"},
    {"shuffled", shuffle, VERDICT_PERMUTED, "the same codes, as often"},
    {"rows missing", shorten, VERDICT_RESIZED, "2 rows of 20 of A are missing, from row 4 on"},
    {"reshaped", reshape, VERDICT_RESHAPED, "all codes are equal"},
    {"wider", widen, VERDICT_DTYPE, "all values are equal, as binary32 in A and as binary64 in B"},
    {"sums", sum_otherwise, VERDICT_SUM_ORDER, "looks like it"},
    {"damaged", damage, VERDICT_CORRUPTED, "hold other numbers, the rest is equal"},
    {"unrelated", forget, VERDICT_UNRELATED, "correlation"},
    {"offset", one_more, VERDICT_OFFSET, "B = A + 1, within a rounding"},
    {"magnitudes", magnitudes, VERDICT_SIGNS, "B has no sign"},
    {"constant", sevens, VERDICT_CONSTANT, "B is 7 everywhere"},
    {"dropout", drop, VERDICT_DROPOUT, "dropout with p = 0.25?"},
    {"scales of rows", rows, VERDICT_SCALED, " rows of B is A's times a number of its own, 1 to 1.75"},
    {"scales of columns", columns, VERDICT_SCALED, "each of the 20 columns of B is A's times a number of its own"},
    {"about a third", about_a_third, VERDICT_SCALED, "a mean instead of a sum over 3?"},
    {"line", line, VERDICT_AFFINE, "B is 1.7"},
    {"computed in bf16", through_bf16, VERDICT_COMPUTED, "computed in bf16 and widened?"},
    {"heads, rounded", heads_bf16, VERDICT_REARRANGED, " groups of 4 rows changed places, each whole"},
    {"heads, what remains", heads_bf16, VERDICT_REARRANGED, "B is then A rounded to bf16 (nearest-even)"},
    {"heads, scaled", heads_noise, VERDICT_REARRANGED, "B is then A times 0.3"},
    {"rotary, rounded", rotary_bf16, VERDICT_REARRANGED, "in each group of 12, B has the even rows first"},
    {"rows, rounded", mixed_rows_bf16, VERDICT_REARRANGED, " rows have changed places: B's 1 is 7, "},
    {"columns, rounded", columns_bf16, VERDICT_REARRANGED, "18 of 20 columns have changed places"},
    {"low rank", other_of_low_rank, VERDICT_UNRELATED, "correlation"},
    {"rows moved", move_rows, VERDICT_PARTIAL, "rows, which differ as a whole"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Each, of a tensor of one piece and of one of many, on some threads. */
static void check_cases(size_t rows, unsigned threads)
{
    char wrong[512] = "";
    parallel_eager(1);
    parallel_init(threads);
    sample_state = test_seed();
    for (int i = 0; i < CASES && !wrong[0]; i++) {
        sample a = sample_make(rows), b = sample_copy(&a);
        cases[i].change(&b);
        const told t = sample_compare(&a, &b, NULL);
        if (t.found.verdict != cases[i].verdict || !strstr(t.found.evidence, cases[i].words))
            snprintf(wrong, sizeof wrong, "%s: %s, %.300s", cases[i].name, diff_verdict_words[t.found.verdict],
                     t.found.evidence);
        free(a.x);
        free(b.x);
    }
    ck_assert_msg(!wrong[0], "%s", wrong);
}

CASE("verdicts", 60);

TEST(verdicts_small)
{
    check_cases(ROWS, 1);
}
TEST(verdicts_large)
{
    check_cases(3000, 1);
}
TESTS(verdicts_threads, 2)
{
    if (!test_in_part((uint64_t)_i, 1))
        return;
    check_cases(3000, (unsigned)(5 * _i + 2));
}

/* ---- differences of which both sides have something ---- */

static void zero_and_nan(sample *s)
{
    s->x[5] = 0;
    s->x[7] = NAN;
}
static void other_zero_and_nan(sample *s)
{
    s->x[5] = -0.0f;
    s->x[7] = f32_of_bits(0x7fc00123);
}
static void to_fp16(sample *s)
{
    s->format = "fp16";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = as("fp16", MPSIM_ROUND_NEAREST_EVEN, s->x[i], 1);
}
static void fp16_as_bf16(sample *s)
{
    const mpsim_format *from = mpsim_format_find("fp16"), *to = mpsim_format_find("bf16");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    s->format = "bf16";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)mpsim_decode(to, mpsim_encode_f32(from, &r, s->x[i], 0, NULL));
}
static void flip_some(sample *s)
{
    for (size_t i = 3; i < 60; i += 19)
        s->x[i] = f32_of_bits(bits_of_f32(s->x[i]) ^ 1u << 21);
}
static void swap_two(sample *s)
{
    const float x = s->x[3];
    s->x[3] = s->x[50];
    s->x[50] = x;
}
static void shuffle_rows(sample *s)
{
    for (size_t row = 0; row < s->n / COLUMNS; row++) {
        float *x = s->x + row * COLUMNS, first = x[row % 7];
        x[row % 7] = x[9 + row % 5];
        x[9 + row % 5] = first;
    }
}
/* The same numbers under any seed: whether three roundings fit one ratio, depends on them. */
static void few(sample *s)
{
    sample_state = 3;
    s->shape[0] = 3;
    s->n = 3 * COLUMNS;
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = (float)(sample_uniform() + 0.25);
}
static void shrink_by_steps(sample *s)
{
    few(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = s->x[i] * 0.9f * 0.85f * 1.03f;
}
static void fp8_by_24(sample *s)
{
    s->format = "e4m3";
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 24;
}
static void to_e4m3_limits(sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= 200;
}
static void clip_at_448(sample *s)
{
    to_e4m3_limits(s);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] = fmaxf(-448, fminf(448, s->x[i]));
}

static const struct {
    const char *name;
    void (*change[2])(sample *s);
    verdict verdict;
    const char *words;
} both[] = {
    {"codes",
     {zero_and_nan, other_zero_and_nan},
     VERDICT_CODES,
     "the sign of zero differs in 1, the codes of NaN in 1"},
    {"read as another dtype", {to_fp16, fp16_as_bf16}, VERDICT_REINTERPRETED, "A's are read as fp16 and B's as bf16"},
    {"bits", {nothing, flip_some}, VERDICT_FLIPPED_BIT, "each in one bit, always bit 21, of the significand"},
    {"two elements", {nothing, swap_two}, VERDICT_PERMUTED, "elements 3 and 50 have changed places"},
    {"within rows", {nothing, shuffle_rows}, VERDICT_PERMUTED, "changed places within rows of 20, none between them"},
    {"zeros in A", {cut, nothing}, VERDICT_ZEROED, "A is zero from element "},
    {"clipped at a format's limit",
     {to_e4m3_limits, clip_at_448},
     VERDICT_CLIPPED,
     " 448 in magnitude, the largest number of e4m3"},
    {"ratio of three roundings", {few, shrink_by_steps}, VERDICT_SCALED, "within an ULP for "},
    {"cast with a scale", {nothing, fp8_by_24}, VERDICT_ROUNDED, "B = round(A * 24, e4m3"},
};

TEST(verdicts_both)
{
    char wrong[512] = "";
    sample_state = test_seed();
    for (size_t i = 0; i < sizeof both / sizeof both[0] && !wrong[0]; i++) {
        sample a = sample_make(ROWS), b = sample_copy(&a);
        both[i].change[0](&a);
        both[i].change[1](&b);
        const told t = sample_compare(&a, &b, NULL);
        if (t.found.verdict != both[i].verdict || !strstr(t.found.evidence, both[i].words))
            snprintf(wrong, sizeof wrong, "%s: %s, %.300s", both[i].name, diff_verdict_words[t.found.verdict],
                     t.found.evidence);
        free(a.x);
        free(b.x);
    }
    ck_assert_msg(!wrong[0], "%s", wrong);
}

/* The other way round a rounding is seen, too. */
TEST(other_way)
{
    sample_state = test_seed();
    sample a = sample_make(ROWS), b = sample_copy(&a);
    to_bf16(&a);
    const told t = sample_compare(&a, &b, NULL);
    ck_assert_int_eq(t.found.verdict, VERDICT_ROUNDED);
    ck_assert_msg(strstr(t.found.evidence, "A = round(B, bf16, nearest-even)"), "%s", t.found.evidence);
    ck_assert_str_eq(t.found.format, "bf16");
    ck_assert_str_eq(t.found.mode, "nearest-even");
    free(a.x);
    free(b.x);
}

TEST_MAIN("diff-verdicts");
