/* t-judge-narrow.c -- mpsim/judge.h: results of 16 bits in arrays of binary32. Results are made here, by loops of C. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>

#include <math.h>
#include <stdio.h>

enum { ROWS = 24, COLUMNS = 32, N = ROWS * COLUMNS };

static float x[N], b[N], y[N], w[N];
static mpsim_judgement j;

static void make(void)
{
    uint64_t state = 11;
    for (size_t i = 0; i < N; i++) {
        double pair[2];
        test_normal_pair(&state, pair);
        x[i] = (float)pair[0];
        b[i] = (float)pair[1];
    }
}

/* By a sum, for numbers that do not overflow. */
static float fp16(float v)
{
    const float large = v == 0 ? 0 : ldexpf(1.5f, (ilogbf(v) < -14 ? -14 : ilogbf(v)) + 13);
    const volatile float sum = v + large;
    return v == 0 ? v : sum - large;
}

static float (*const to[])(float) = {judged_bf16, fp16};
static const char *const ends[] = {"+result=bf16", "+result=fp16"};

static mpsim_judge_array of(const char *role, const float *codes, size_t rows, size_t columns)
{
    return (mpsim_judge_array){role, mpsim_format_find("binary32"), codes, rows, columns};
}

static void ask(mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n, const char *like)
{
    char why[256] = "";
    ck_assert_msg(mpsim_judge(&j, kind, arrays, n, like, NULL, why, sizeof why) == MPSIM_OK, "%s", why);
}

/* All results are those of `row` with this end; asked for without it, with it, and not at all. */
static void is(mpsim_judge_kind kind, const mpsim_judge_array *arrays, size_t n, const char *row, const char *end)
{
    char name[MPSIM_JUDGE_ROW];
    snprintf(name, sizeof name, "%s%s", row, end);
    const char *const likes[] = {row, name, NULL};
    for (size_t i = 0; i < sizeof likes / sizeof likes[0]; i++) {
        ask(kind, arrays, n, likes[i]);
        ck_assert_msg(j.differ == 0 && (likes[i] ? strcmp(j.row, name) == 0 : judged_in_class(&j, name)),
                      "%s, like %s: %s, %d differ", name, likes[i] ? likes[i] : "none", j.row, (int)j.differ);
    }
}

CASE("results of 16 bits", 20);

TEST(rows_of_a_matrix)
{
    make();
    for (size_t f = 0; f < 2; f++) {
        const mpsim_judge_array sums[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, 1)};
        for (size_t i = 0; i < ROWS; i++) {
            float s = 0;
            for (size_t k = 0; k < COLUMNS; k++)
                s += x[i * COLUMNS + k];
            y[i] = to[f](s);
        }
        is(MPSIM_JUDGE_SUM, sums, 2, "sequential", ends[f]);
        const mpsim_judge_array elements[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, COLUMNS)};
        for (size_t i = 0; i < N; i++)
            y[i] = to[f](fmaxf(x[i], 0));
        is(MPSIM_JUDGE_ACTIVATION, elements, 2, "relu", ends[f]);
        for (size_t i = 0; i < ROWS; i++) {
            double sum = 0;
            for (size_t k = 0; k < COLUMNS; k++)
                sum += exp((double)x[i * COLUMNS + k]);
            for (size_t k = 0; k < COLUMNS; k++)
                y[i * COLUMNS + k] = to[f]((float)(exp((double)x[i * COLUMNS + k]) / sum));
        }
        ask(MPSIM_JUDGE_SOFTMAX, elements, 2, "softmax");
        ck_assert(j.differ <= 2 && strstr(j.row, ends[f]));
    }
}

TEST(arithmetic)
{
    const mpsim_judge_array arrays[] = {of("a", x, 1, N), of("b", b, 1, N), of("y", y, 1, N)};
    for (size_t f = 0; f < 2; f++) {
        make();
        for (size_t i = 0; i < N; i++)
            y[i] = to[f](x[i] * b[i]);
        is(MPSIM_JUDGE_ARITH, arrays, 3, "mul:via=binary32", ends[f]);
        ask(MPSIM_JUDGE_ARITH, arrays, 3, "add");
        judged_has(&j, "formula", "mul, not add");
        for (size_t i = 0; i < N; i++) {
            x[i] = to[f](x[i]);
            b[i] = to[f](b[i]);
            y[i] = to[f](x[i] / b[i]);
        }
        is(MPSIM_JUDGE_ARITH, arrays, 3, "div", ends[f]);
        y[3] = nextafterf(to[f](y[3] * 2), 0); /* one result that is none of 16 bits */
        ask(MPSIM_JUDGE_ARITH, arrays, 3, "div");
        ck_assert(j.differ > N / 2 && strcmp(j.row, "div") == 0);
    }
}

/* Sums of small integers are numbers of 16 bits by themselves. NaNs keep their payload. */
TEST(arithmetic_that_is_plain)
{
    const mpsim_judge_array arrays[] = {of("a", x, 1, N), of("b", b, 1, N), of("y", y, 1, N)};
    const uint32_t nan = 0xffc10000u;
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)(i % 13) - 6;
        b[i] = (float)(i % 7);
        y[i] = x[i] + b[i];
    }
    is(MPSIM_JUDGE_ARITH, arrays, 3, "add", "");
    make();
    memcpy(&x[5], &nan, sizeof nan);
    for (size_t i = 0; i < N; i++)
        y[i] = i == 5 ? x[i] : judged_bf16(x[i] + b[i]);
    is(MPSIM_JUDGE_ARITH, arrays, 3, "add:via=binary32:nan=x86", "+result=bf16");
    ask(MPSIM_JUDGE_ARITH, arrays, 3, "add:via=binary32:nan=positive");
    ck_assert_int_eq((int)j.differ, 1);
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_ARITH, arrays, 3, "add+round=up", NULL, NULL, 0) == MPSIM_ENOTFOUND);
    ck_assert(mpsim_judge(&j, MPSIM_JUDGE_ARITH, arrays, 3, "add+result=binary64", NULL, NULL, 0) == MPSIM_ERANGE);
}

/* A step of SGD of which parameters are stored in 16 bits, moments in 32. */
TEST(updates)
{
    static float m[N], new_m[N];
    const mpsim_judge_array arrays[] = {of("param", x, ROWS, COLUMNS), of("grad", b, ROWS, COLUMNS),
                                        of("new_param", y, ROWS, COLUMNS), of("m", m, ROWS, COLUMNS),
                                        of("new_m", new_m, ROWS, COLUMNS)};
    for (size_t f = 0; f < 2; f++) {
        make();
        for (size_t i = 0; i < N; i++) {
            x[i] = to[f](x[i]);
            m[i] = b[(i * 7) % N];
            new_m[i] = 0.5f * m[i] + b[i];
            y[i] = to[f](x[i] - 0.125f * new_m[i]);
        }
        ask(MPSIM_JUDGE_UPDATE, arrays, 5, "sgd@ieee:lr=0.125:momentum=0.5:step=2");
        ck_assert_msg(j.differ == 0 && strstr(j.row, ends[f]), "%s: %d", j.row, (int)j.differ);
        ask(MPSIM_JUDGE_UPDATE, arrays, 5, "sgd@ieee:lr=0.125:momentum=0.5:step=2+result=bf16");
        ck_assert((j.differ == 0) == (f == 0));
        ask(MPSIM_JUDGE_UPDATE, arrays, 5, "sgd:lr=0.125:momentum=0.5:step=2");
        ck_assert(j.differ == 0 && strstr(j.row, ends[f]));
    }
}

/* Blocks of 8 along a depth of 32: sums, times the scale of a, in order. */
TEST(scaled_products)
{
    static uint8_t a[N], of_b[N];
    const mpsim_format *e = mpsim_format_find("e4m3");
    const mpsim_judge_array arrays[] = {{"a", e, a, ROWS, COLUMNS},
                                        {"b", e, of_b, ROWS, COLUMNS},
                                        of("scale_a", x, ROWS, 4),
                                        of("scale_b", w, 1, 1),
                                        of("d", y, ROWS, ROWS)};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    make();
    w[0] = 1;
    for (size_t i = 0; i < N; i++) {
        a[i] = (uint8_t)mpsim_encode_f32(e, &r, x[i], 0, NULL);
        of_b[i] = (uint8_t)mpsim_encode_f32(e, &r, b[i], 0, NULL);
    }
    for (size_t i = 0; i < ROWS * 4; i++)
        x[i] = fabsf(x[i]) + 0.25f;
    for (size_t i = 0; i < ROWS * ROWS; i++) {
        float sum = 0;
        for (size_t t = 0; t < 4; t++) {
            float s = 0;
            for (size_t k = 8 * t; k < 8 * t + 8; k++)
                s += (float)mpsim_decode(e, a[i / ROWS * COLUMNS + k]) *
                     (float)mpsim_decode(e, of_b[i % ROWS * COLUMNS + k]);
            sum += s * x[i / ROWS * 4 + t];
        }
        y[i] = judged_bf16(sum);
    }
    is(MPSIM_JUDGE_SCALED_PRODUCT, arrays, 5, "blocks:model=sequential", ends[0]);
}

TEST_MAIN("judge-narrow");
