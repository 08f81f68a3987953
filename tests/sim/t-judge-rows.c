/* t-judge-rows.c -- mpsim/judge.h: sums, softmax, norms and activations. Results and faults are made here, by loops of C and functions of the
 * C library in binary64. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

enum { ROWS = 40, COLUMNS = 60, N = ROWS * COLUMNS };

static float x[2 * N], y[N], weight[COLUMNS], bias[COLUMNS];
static uint16_t x16[N], y16[N];
static mpsim_judgement j;

static const mpsim_format *binary32(void)
{
    return mpsim_format_find("binary32");
}

/* Numbers around `mean`, also negative. */
static void make(double mean)
{
    uint64_t state = 11;
    for (size_t i = 0; i < 2 * N; i += 2) {
        double pair[2];
        test_normal_pair(&state, pair);
        x[i] = (float)(pair[0] + mean);
        x[i + 1] = (float)(pair[1] + mean);
    }
    for (size_t c = 0; c < COLUMNS; c++) {
        weight[c] = (float)(1 + 0.25 * sin((double)c));
        bias[c] = (float)(0.5 * cos((double)c));
    }
}

static void narrow(uint16_t *to, const float *from, size_t n)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    ck_assert(mpsim_encode_array_f32(mpsim_format_find("bf16"), &r, NULL, to, from, n, NULL) == MPSIM_OK);
}

static mpsim_judge_array of(const char *role, const float *codes, size_t rows, size_t columns)
{
    return (mpsim_judge_array){role, binary32(), codes, rows, columns};
}

static mpsim_status judge_arrays(mpsim_judge_kind kind, const char *like, const mpsim_judge_array *arrays, size_t n)
{
    char why[256] = "";
    const mpsim_status s = mpsim_judge(&j, kind, arrays, n, like, NULL, why, sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
}

/* x and y of that many results. */
static void ask(mpsim_judge_kind kind, const char *like, size_t rows, size_t columns)
{
    const mpsim_judge_array arrays[] = {of("x", x, ROWS, COLUMNS), of("y", y, rows, columns)};
    ck_assert_int_eq(judge_arrays(kind, like, arrays, 2), MPSIM_OK);
}

static const char *first_cause(void)
{
    return j.findings ? j.finding[0].cause : "";
}

static int found(const char *cause)
{
    return judged_found(&j, cause);
}

CASE("sums", 20);

/* Sums of rows in binary32, in steps of `lanes`, which are added from the first to the last. */
static void add_rows(size_t lanes, int backward)
{
    for (size_t r = 0; r < ROWS; r++) {
        float s[64] = {0};
        for (size_t i = 0; i < COLUMNS; i++)
            s[i % lanes] += x[r * COLUMNS + (backward ? COLUMNS - 1 - i : i)];
        y[r] = s[0];
        for (size_t h = lanes / 2; h; h /= 2) {
            for (size_t t = 0; t < h; t++)
                s[t] += s[t + h];
            y[r] = s[0];
        }
    }
}

TEST(orders_of_sums)
{
    make(0.5);
    add_rows(1, 0);
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential"));
    add_rows(1, 1);
    ask(MPSIM_JUDGE_SUM, NULL, 1, ROWS); /* a vector */
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential:reverse"));
    add_rows(16, 0);
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert(j.differ == 0 && judged_in_class(&j, "lanes:16") && j.results == ROWS);
    ask(MPSIM_JUDGE_SUM, "sequential", ROWS, 1);
    ck_assert(j.differ > 0 && j.nearest_differ == 0 && found("sum-order"));
    ck_assert_str_eq(j.nearest, "lanes:16");
}

TEST(columns_means_and_narrow_results)
{
    make(0.5);
    for (size_t c = 0; c < COLUMNS; c++) {
        y[c] = 0;
        for (size_t r = 0; r < ROWS; r++)
            y[c] += x[r * COLUMNS + c];
    }
    ask(MPSIM_JUDGE_SUM, NULL, 1, COLUMNS);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential:columns"));
    for (size_t c = 0; c < COLUMNS; c++)
        y[c] /= ROWS;
    ask(MPSIM_JUDGE_SUM, NULL, 1, COLUMNS);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential:columns:mean"));
    ask(MPSIM_JUDGE_SUM, "sequential:columns", 1, COLUMNS);
    ck_assert(j.differ == COLUMNS && found("mean"));
    add_rows(1, 0);
    for (size_t r = 0; r < ROWS; r++)
        y[r] = f32_of_bits(bits_of_f32(y[r]) & 0xffff0000u); /* bf16, cut */
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential+result=bf16+round=toward-zero"));
    ask(MPSIM_JUDGE_SUM, "sequential+result=bf16", ROWS, 1);
    ck_assert(j.differ > 0 && j.nearest_differ == 0);
    y[0] = 0; /* all of it */
    for (size_t i = 0; i < N; i++)
        y[0] += x[i];
    ask(MPSIM_JUDGE_SUM, NULL, 1, 1);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential"));
}

TEST(an_accumulator_of_bf16)
{
    make(0.5);
    for (size_t i = 0; i < N; i++)
        x[i] = f32_of_bits(bits_of_f32(x[i]) & 0xffff0000u);
    for (size_t r = 0; r < ROWS; r++) {
        y[r] = 0;
        for (size_t c = 0; c < COLUMNS; c++) {
            narrow(y16, (const float[1]){y[r] + x[r * COLUMNS + c]}, 1);
            y[r] = f32_of_bits((uint32_t)y16[0] << 16);
        }
    }
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert(j.differ == 0 && judged_in_class(&j, "sequential:bf16"));
    ask(MPSIM_JUDGE_SUM, "sequential", ROWS, 1);
    ck_assert(j.differ > 0 && !found("sum-order") && j.nearest_differ == 0);
}

/* Sums of `end` numbers from `first` on, of f(x). */
static void add_part(size_t first, size_t end, float f(float))
{
    for (size_t r = 0; r < ROWS; r++) {
        y[r] = 0;
        for (size_t c = first; c < end; c++)
            y[r] += f ? f(x[r * COLUMNS + c]) : x[r * COLUMNS + c];
    }
}

static float square(float a)
{
    return a * a;
}

TEST(sums_that_are_wrong)
{
    make(0.5);
    add_part(0, COLUMNS - 1, NULL);
    ask(MPSIM_JUDGE_SUM, "pairwise", ROWS, 1);
    judged_has(&j, "tail", "the last number of");
    add_part(0, 32, NULL);
    ask(MPSIM_JUDGE_SUM, "pairwise", ROWS, 1);
    judged_has(&j, "tail", "vector of 32");
    add_part(1, COLUMNS, NULL);
    ask(MPSIM_JUDGE_SUM, "pairwise", ROWS, 1);
    judged_has(&j, "tail", "the first number");
    add_part(0, COLUMNS, square);
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert_str_eq(first_cause(), "squares");
    add_part(0, COLUMNS, fabsf);
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    ck_assert_str_eq(first_cause(), "magnitudes");
    add_rows(1, 0);
    for (size_t r = 0; r < ROWS; r++)
        y[r] = y[r] * 1.5f + 0x1p-19f;
    ask(MPSIM_JUDGE_SUM, "lanes:32", ROWS, 1);
    judged_has(&j, "factor", "1.5 times");
    add_rows(1, 0);
    for (size_t r = 0; r < ROWS; r++)
        y[r] += 8;
    ask(MPSIM_JUDGE_SUM, "lanes:32", ROWS, 1);
    judged_has(&j, "offset", "plus 8");
    add_rows(1, 0);
    for (size_t r = 0; r < ROWS; r += 2)
        y[r] += (float)r;
    ask(MPSIM_JUDGE_SUM, "lanes:32", ROWS, 1);
    ck_assert(found("formula") && !found("offset") && !found("factor") && !found("sum-order"));
    memset(y, 0, sizeof y);
    ask(MPSIM_JUDGE_SUM, "lanes:32", ROWS, 1);
    ck_assert(found("zeros") && !found("formula") && !found("tail"));
}

CASE("softmax", 20);

/* exp(scale x - m) / sum over what a row sees, in binary64; along columns; of base 2. */
typedef struct softmax_fault {
    double scale, base;
    int causal, columns, powers, log;
} softmax_fault;

static void make_softmax(softmax_fault f)
{
    for (size_t i = 0; i < N; i++) {
        const size_t r = i / COLUMNS, c = i % COLUMNS, n = f.columns ? ROWS : f.causal ? r + (size_t)f.causal : COLUMNS;
        double sum = 0, most = -HUGE_VAL;
        for (size_t k = 0; k < n && k < COLUMNS; k++)
            most = fmax(most, (double)x[f.columns ? k * COLUMNS + c : r * COLUMNS + k] * f.scale);
        for (size_t k = 0; k < n && k < COLUMNS; k++)
            sum += pow(f.base, (double)x[f.columns ? k * COLUMNS + c : r * COLUMNS + k] * f.scale - most);
        const double d = (double)x[i] * f.scale - most;
        const double p = pow(f.base, d) / (f.powers ? 1 : sum);
        y[i] = (float)(f.log ? d - log(sum) : c < n || f.columns ? p : 0);
    }
}

static void ask_softmax(const char *like)
{
    ask(MPSIM_JUDGE_SOFTMAX, like, ROWS, COLUMNS);
}

TEST(softmax_that_is_sound)
{
    const double e = exp(1);
    make(0);
    make_softmax((softmax_fault){1, e, 0, 0, 0, 0}); /* another exp, another order */
    ask_softmax(NULL);
    ck_assert_str_eq(j.row, "softmax");
    ck_assert(j.differ > 0 && strcmp(first_cause(), "rounding") == 0);
    make_softmax((softmax_fault){1, e, 0, 0, 0, 1});
    ask_softmax("log-softmax");
    ck_assert(found("rounding"));
    make_softmax((softmax_fault){1, e, 0, 0, 0, 0});
    narrow(y16, y, N); /* and rounded to bf16 these are the same */
    narrow(x16, x, N);
    for (size_t i = 0; i < N; i++)
        x[i] = f32_of_bits((uint32_t)x16[i] << 16);
    make_softmax((softmax_fault){1, e, 0, 0, 0, 0});
    narrow(y16, y, N);
    const mpsim_judge_array arrays[] = {{"x", mpsim_format_find("bf16"), x16, ROWS, COLUMNS},
                                        {"y", mpsim_format_find("bf16"), y16, ROWS, COLUMNS}};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_SOFTMAX, NULL, arrays, 2), MPSIM_OK);
    ck_assert_str_eq(j.row, "softmax");
    ck_assert(j.differ == 0);
}

TEST(softmax_that_is_wrong)
{
    const double e = exp(1);
    static const struct {
        softmax_fault f;
        const char *like, *cause, *words;
    } faults[] = {{{1, 0, 0, 1, 0, 0}, "softmax", "axis", "along columns"},
                  {{1, 2, 0, 0, 0, 0}, "softmax", "formula", "powers of 2"},
                  {{1, 0, 0, 0, 1, 0}, "softmax", "formula", "not normalised"},
                  {{1, 0, 0, 0, 0, 1}, "softmax", "formula", "mistaken"},
                  {{1, 0, 0, 0, 0, 0}, "softmax:scale=0.25", "scale", "left out"},
                  {{4, 0, 0, 0, 0, 0}, "softmax:scale=0.25", "scale", "divided"},
                  {{1, 0, 0, 0, 0, 0}, "softmax:causal", "mask", "left out"},
                  {{1, 0, 2, 0, 0, 0}, "softmax:causal", "mask", "one column more"}};
    make(0);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        softmax_fault f = faults[i].f;
        f.base = f.base > 0 ? f.base : e;
        make_softmax(f);
        ask_softmax(faults[i].like);
        ck_assert(j.differ > N / 4 && !found("rounding"));
        judged_has(&j, faults[i].cause, faults[i].words);
    }
    make_softmax((softmax_fault){1, e, 0, 0, 0, 0});
    for (size_t i = 0; i < N; i += 3)
        y[i] = y[i] * 0.75f;
    ask_softmax("softmax");
    judged_has(&j, "formula", "farther");
}

TEST(a_sum_in_fp16)
{
    make(0);
    for (size_t r = 0; r < ROWS; r++) {
        double most = -HUGE_VAL;
        float sum = 0;
        for (size_t c = 0; c < COLUMNS; c++)
            most = fmax(most, (double)x[r * COLUMNS + c]);
        for (size_t c = 0; c < COLUMNS; c++) {
            const double e = exp((double)x[r * COLUMNS + c] - most);
            mpsim_rounding nearest;
            mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
            y[r * COLUMNS + c] = (float)e;
            const mpsim_format *f = mpsim_format_find("fp16");
            const double term = mpsim_decode(f, mpsim_encode_f64(f, &nearest, e, 0, NULL));
            sum = (float)mpsim_decode(f, mpsim_encode_f64(f, &nearest, (double)sum + term, 0, NULL));
        }
        for (size_t c = 0; c < COLUMNS; c++)
            y[r * COLUMNS + c] /= sum;
    }
    ask_softmax("softmax");
    ck_assert(j.differ > N / 2 && found("factor") && !found("rounding"));
    ask_softmax("softmax:sum=fp16");
    ck_assert(found("rounding"));
}

static float fp16_of(double value)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(mpsim_format_find("fp16"),
                               mpsim_encode_f64(mpsim_format_find("fp16"), &nearest, value, 0, NULL));
}

TEST(a_softmax_in_fp16)
{
    make(0);
    for (size_t r = 0; r < ROWS; r++) {
        float most = -HUGE_VALF, sum = 0;
        for (size_t c = 0; c < COLUMNS; c++)
            most = fmaxf(most, x[r * COLUMNS + c] = fp16_of((double)x[r * COLUMNS + c]));
        for (size_t c = 0; c < COLUMNS; c++) {
            y[r * COLUMNS + c] = fp16_of(exp((double)fp16_of((double)(x[r * COLUMNS + c] - most))));
            sum = fp16_of((double)(sum + y[r * COLUMNS + c]));
        }
        for (size_t c = 0; c < COLUMNS; c++)
            y[r * COLUMNS + c] = fp16_of((double)y[r * COLUMNS + c] / (double)sum);
    }
    ask_softmax("softmax+result=fp16");
    ck_assert_str_eq(j.nearest, "softmax:sum=fp16:math=fp16");
    judged_has(&j, "format", "kept in fp16");
}

TEST(rows_that_should_be_nan)
{
    make(0);
    make_softmax((softmax_fault){.scale = 1, .base = 2.718281828459045});
    for (size_t i = 0; i < COLUMNS; i++)
        y[3 * COLUMNS + i] = 1.0f / COLUMNS;
    x[3 * COLUMNS + 5] = NAN;
    ask_softmax("softmax");
    judged_has(&j, "nan", "should be NaN");
    make(0);
    make_softmax((softmax_fault){.scale = 1, .base = 2.718281828459045});
    y[7] = INFINITY;
    ask_softmax("softmax");
    judged_has(&j, "overflow", "should be numbers");
}

CASE("norms", 20);

typedef struct norm_fault {
    int rms, sample, root, plus_one, no_weight, no_bias;
    double eps, bias;
} norm_fault;

static void make_norm(norm_fault f)
{
    for (size_t r = 0; r < ROWS; r++) {
        const float *row = x + r * COLUMNS;
        double mean = 0, var = 0;
        for (size_t c = 0; c < COLUMNS; c++)
            mean += f.rms ? 0 : (double)row[c] / COLUMNS;
        for (size_t c = 0; c < COLUMNS; c++)
            var += ((double)row[c] - mean) * ((double)row[c] - mean) / (COLUMNS - f.sample);
        for (size_t c = 0; c < COLUMNS; c++) {
            const double d = f.root ? sqrt(var) + f.eps : sqrt(var + f.eps);
            y[r * COLUMNS + c] =
                (float)(((double)row[c] - mean) / d * (f.no_weight ? 1 : (double)weight[c] + f.plus_one) +
                        (f.no_bias ? 0 : f.bias * (double)bias[c]));
        }
    }
}

static void ask_norm(const char *like, int has_bias)
{
    const mpsim_judge_array arrays[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, COLUMNS),
                                        of("weight", weight, 1, COLUMNS), of("bias", bias, 1, COLUMNS)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_NORM, like, arrays, has_bias ? 4 : 3), MPSIM_OK);
}

TEST(norms_that_are_sound)
{
    make(0.5);
    make_norm((norm_fault){.eps = (double)1e-5f, .bias = 1});
    ask_norm(NULL, 1);
    ck_assert_msg(j.differ > 0 && found("rounding"), "%s", j.row);
    ask_norm("layernorm", 1);
    ck_assert_msg(found("rounding"), "%s: %s", j.row, j.finding[0].text);
    make_norm((norm_fault){.rms = 1, .no_bias = 1, .eps = (double)1e-6f});
    ask_norm("rmsnorm:eps=1e-6", 0);
    ck_assert(found("rounding"));
}

static float bf16_of(float value)
{
    uint16_t code;
    narrow(&code, &value, 1);
    return f32_of_bits((uint32_t)code << 16);
}

/* Numbers of a row that are rounded once too often, or results of which a fifth are the next number: that is no order of operations. */
TEST(norms_with_one_rounding_more)
{
    make(0);
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0;
        for (size_t c = 0; c < COLUMNS; c++) {
            x[r * COLUMNS + c] = bf16_of(x[r * COLUMNS + c]);
            sum += (double)x[r * COLUMNS + c] * (double)x[r * COLUMNS + c];
        }
        const float inverse = bf16_of((float)(1 / sqrt(sum / COLUMNS + 1e-5)));
        for (size_t c = 0; c < COLUMNS; c++)
            y[r * COLUMNS + c] = bf16_of(x[r * COLUMNS + c] * inverse);
    }
    const mpsim_judge_array arrays[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, COLUMNS)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_NORM, "rmsnorm:eps=1e-5+result=bf16", arrays, 2), MPSIM_OK);
    ck_assert_str_eq(j.nearest, "rmsnorm:eps=1e-05:inverse=bf16+result=bf16");
    ck_assert(found("factor") && found("format") && !found("rounding"));
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t c = 0; c < COLUMNS; c++)
            sum += pow((double)x[i / COLUMNS * COLUMNS + c], 2);
        const double exact = (double)x[i] / sqrt(sum / COLUMNS + 1e-5);
        const float right = bf16_of((float)exact), below = bf16_of((float)exact * (1 - 0x1p-8f));
        y[i] = i % 5 ? right : below;
    }
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_NORM, "rmsnorm:eps=1e-5+result=bf16", arrays, 2), MPSIM_OK);
    ck_assert(j.differ > N / 10 && !found("rounding"));
}

TEST(norms_that_are_wrong)
{
    static const struct {
        norm_fault f;
        const char *like, *cause, *words;
    } faults[] = {{{.rms = 1, .eps = 0.01, .bias = 1}, "layernorm:eps=0.01", "mean", "mistaken"},
                  {{.root = 1, .eps = 0.01, .bias = 1}, "layernorm:eps=0.01", "eps", "added to the root"},
                  {{.eps = 0, .bias = 1}, "layernorm:eps=0.01", "eps", "left out"},
                  {{.eps = 1e-5, .bias = 1}, "layernorm:eps=0.001", "eps", "1e-5"},
                  {{.sample = 1, .eps = 1e-5, .bias = 1}, "layernorm", "variance", "less one"},
                  {{.plus_one = 1, .eps = 1e-5, .bias = 1}, "layernorm", "weight", "1 + weight"},
                  {{.no_weight = 1, .eps = 1e-5, .bias = 1}, "layernorm", "weight", "left out"},
                  {{.no_bias = 1, .eps = 1e-5}, "layernorm", "bias", "left out"},
                  {{.eps = 1e-5, .bias = 2}, "layernorm", "bias", "twice"}};
    make(0.5);
    for (size_t i = 0; i < N; i++)
        x[i] *= 0.0625f; /* eps counts */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        make_norm(faults[i].f);
        ask_norm(faults[i].like, 1);
        ck_assert(j.differ > N / 2 && !found("rounding"));
        judged_has(&j, faults[i].cause, faults[i].words);
    }
    make_norm((norm_fault){.eps = 1e-5, .bias = 1, .no_weight = 1, .no_bias = 1, .rms = 1});
    narrow(y16, y, N);
    for (size_t i = 0; i < N; i++)
        y[i] = f32_of_bits((uint32_t)y16[i] << 16) * weight[i % COLUMNS];
    ask_norm("rmsnorm", 0);
    ck_assert_str_eq(j.nearest, "rmsnorm:eps=1e-05:normalised=bf16");
    judged_has(&j, "format", "bf16, not in binary32");
    make_norm((norm_fault){.eps = 1e-5, .bias = 1});
    for (size_t i = 0; i < N; i++)
        y[i] *= 1 + (float)(i / COLUMNS) / 64; /* a scale each row */
    ask_norm("layernorm", 1);
    judged_has(&j, "factor", "of each row");
}

CASE("activations", 20);

TEST(activations)
{
    make(0);
    for (size_t i = 0; i < N; i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    ask(MPSIM_JUDGE_ACTIVATION, NULL, ROWS, COLUMNS);
    ck_assert(j.differ == 0 && judged_in_class(&j, "relu"));
    for (size_t i = 0; i < N; i++)
        y[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * sqrt(0.5))));
    ask(MPSIM_JUDGE_ACTIVATION, "gelu", ROWS, COLUMNS);
    ck_assert(j.differ > 0 && found("rounding"));
    ask(MPSIM_JUDGE_ACTIVATION, "gelu-tanh", ROWS, COLUMNS);
    judged_has(&j, "formula", "GELU by erf");
    for (size_t i = 0; i < N; i++)
        y[i] = (float)((double)x[i] / (1 + exp(-1.702 * (double)x[i])));
    ask(MPSIM_JUDGE_ACTIVATION, "gelu", ROWS, COLUMNS);
    judged_has(&j, "formula", "quick GELU");
    for (size_t i = 0; i < N; i++)
        y[i] = (float)sin((double)x[i]);
    ask(MPSIM_JUDGE_ACTIVATION, NULL, ROWS, COLUMNS);
    judged_has(&j, "formula", "farther");
}

/* x / 2 tanh + x / 2 is zero in a tail; x / 2 (1 + tanh) in binary64 is not. */
TEST(tails)
{
    for (int cancels = 0; cancels < 2; cancels++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (float)i / 100 - 12;
            const double u = 0.7978845608028654 * ((double)x[i] + 0.044715 * pow((double)x[i], 3));
            const volatile float half = x[i] / 2, product = half * (float)tanh(u);
            y[i] = cancels ? product + half : (float)((double)x[i] / (1 + exp(-2 * u)));
        }
        ask(MPSIM_JUDGE_ACTIVATION, "gelu-tanh", ROWS, COLUMNS);
        ck_assert(found("rounding") && found("zeros") == cancels);
    }
}

TEST(gates)
{
    make(0);
    for (int swapped = 0; swapped < 2; swapped++) {
        for (size_t i = 0; i < N; i++) {
            const size_t at = i / COLUMNS * 2 * COLUMNS + i % COLUMNS;
            const double g = (double)x[at + (swapped ? COLUMNS : 0)], v = (double)x[at + (swapped ? 0 : COLUMNS)];
            y[i] = (float)(g / (1 + exp(-g)) * v);
        }
        const mpsim_judge_array arrays[] = {of("x", x, ROWS, 2 * COLUMNS), of("y", y, ROWS, COLUMNS)};
        ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_ACTIVATION, "swiglu", arrays, 2), MPSIM_OK);
        ck_assert(found(swapped ? "formula" : "rounding") && !found(swapped ? "rounding" : "formula"));
    }
    judged_has(&j, "formula", "changed places");
}

CASE("updates", 20);

static float grad[N], m[N], v[N], new_m[N], new_v[N];

/* A step of SGD in the order of `ieee`, in binary32. */
static void step_sgd(float lr, float momentum, float decay)
{
    for (size_t i = 0; i < N; i++) {
        const float g = grad[i] + decay * x[i];
        new_m[i] = momentum * m[i] + g;
        y[i] = x[i] - lr * new_m[i];
    }
}

typedef struct adam_fault {
    int coupled, eps_inside, no_gradient;
    double decay, step, factor; /* step 0: nothing is corrected */
} adam_fault;

/* A step of AdamW in binary64: lr 0.01, betas 0.9 and 0.99, eps 1e-4. */
static void step_adam(adam_fault f)
{
    for (size_t i = 0; i < N; i++) {
        const double g = (f.no_gradient ? 0 : (double)grad[i]) + (f.coupled ? f.decay * (double)x[i] : 0);
        const double a = 0.9 * (double)m[i] + 0.1 * g, b = 0.99 * (double)v[i] + 0.01 * g * g;
        const double ca = f.step > 0 ? 1 - pow(0.9, f.step) : 1, cb = f.step > 0 ? 1 - pow(0.99, f.step) : 1;
        const double root = f.eps_inside ? sqrt(b / cb + 1e-4) : sqrt(b / cb) + 1e-4;
        y[i] = (float)((double)x[i] - f.factor * (0.01 * (a / ca / root + (f.coupled ? 0 : f.decay * (double)x[i]))));
        new_m[i] = (float)a;
        new_v[i] = (float)b;
    }
}

static void make_step(void)
{
    make(0);
    for (size_t i = 0; i < N; i++) {
        grad[i] = x[N + i] * 0.01f;
        m[i] = x[(i * 7) % N] * 0.003f;
        v[i] = x[(i * 11) % N] * x[(i * 11) % N] * 1e-5f;
    }
}

static void ask_step(const char *like, int has_v)
{
    const mpsim_judge_array arrays[] = {of("param", x, ROWS, COLUMNS),     of("grad", grad, ROWS, COLUMNS),
                                        of("new_param", y, ROWS, COLUMNS), of("m", m, ROWS, COLUMNS),
                                        of("new_m", new_m, 1, N),          of("v", v, ROWS, COLUMNS),
                                        of("new_v", new_v, N, 1)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_UPDATE, like, arrays, has_v ? 7 : 5), MPSIM_OK);
}

TEST(steps_that_are_sound)
{
    make_step();
    step_sgd(0.125f, 0.5f, 0.25f);
    ask_step("sgd@ieee:lr=0.125:momentum=0.5:weight_decay=0.25:step=2", 0);
    ck_assert(j.differ == 0 && j.results == 2 * N && j.same > 1);
    ask_step("sgd:lr=0.125:momentum=0.5:weight_decay=0.25:step=2", 0);
    step_sgd(0.01f, 0.9f, 0.1f);
    ask_step(NULL, 0);
    ck_assert(j.differ == 0 && strstr(j.row, ":lr=0.01:weight_decay=0.1:momentum=0.9:step=2"));
    step_sgd(0.125f, 0.5f, 0.25f);
    ask_step("sgd:lr=0.125:momentum=0.5:weight_decay=0.25:step=2", 0);
    ck_assert(j.differ == 0 && strncmp(j.row, "sgd@", 4) == 0);
    step_adam((adam_fault){0, 0, 0, 0.5, 3, 1});
    ask_step("adamw:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
    ck_assert(j.differ > 0 && j.differ < 3 * N && found("rounding") && !found("formula"));
    ask_step("adamw@ieee:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
    ck_assert(found("rounding"));
}

TEST(steps_that_are_wrong)
{
    static const struct {
        adam_fault f;
        const char *cause, *words;
    } faults[] = {
        {{0, 0, 0, 0.5, 0, 1}, "correction", "left out"},     {{0, 0, 0, 0.5, 2, 1}, "correction", "the step before"},
        {{0, 0, 0, 0.5, 4, 1}, "correction", "that follows"}, {{0, 0, 0, 0.5, 1, 1}, "correction", "the first step"},
        {{1, 0, 0, 0.5, 3, 1}, "decay", "coupled"},           {{0, 0, 0, 0, 3, 1}, "decay", "left out"},
        {{0, 0, 0, -0.5, 3, 1}, "decay", "opposite sign"},    {{0, 1, 0, 0.5, 3, 1}, "eps", "under the root"},
        {{0, 0, 1, 0.5, 3, 1}, "gradient", "zero"},           {{0, 0, 0, 0.5, 3, 3}, "factor", "the step is 3 times"}};
    make_step();
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        step_adam(faults[i].f);
        ask_step("adamw@ieee:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
        ck_assert(j.differ > N / 2 && !found("rounding") && j.nearest_differ == 0);
        judged_has(&j, faults[i].cause, faults[i].words);
    }
    step_adam((adam_fault){0, 0, 0, 0, 3, 1});
    for (size_t i = 0; i < N; i++)
        y[i] *= 1 - 0.01f * 0.5f;
    ask_step("adamw@ieee:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
    judged_has(&j, "decay", "after the step");
    step_adam((adam_fault){0, 0, 0, 0.5, 3, 1});
    for (size_t i = 0; i < N; i++) {
        const double ca = 1 - pow(0.9, 3), cb = 1 - pow(0.99, 3);
        y[i] = (float)((double)x[i] * (1 - 0.01 * 0.5) -
                       0.01 * sqrt(cb) / ca * (double)new_m[i] / (sqrt((double)new_v[i]) + 1e-4));
    }
    ask_step("adamw@ieee:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
    judged_has(&j, "eps", "before the bias correction");
    const mpsim_judge_array unsaid[] = {of("param", x, ROWS, COLUMNS), of("grad", grad, ROWS, COLUMNS),
                                        of("new_param", y, ROWS, COLUMNS)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_UPDATE, NULL, unsaid, 3), MPSIM_ERANGE); /* which optimizer? */
    step_adam((adam_fault){0, 0, 0, 0.5, 3, 1});
    memcpy(y, x, sizeof y); /* the master was not written back */
    ask_step("adamw@ieee:lr=0.01:beta2=0.99:eps=1e-4:weight_decay=0.5:step=3", 1);
    judged_has(&j, "unchanged", "has not been moved");
    ck_assert_str_eq(j.role, "new_param");
}

CASE("arguments", 20);

static void refused(mpsim_judge_kind kind, const char *like, mpsim_status status)
{
    const mpsim_judge_array arrays[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, COLUMNS)};
    ck_assert_int_eq(judge_arrays(kind, like, arrays, 2), status);
}

TEST(bad_rows_and_shapes)
{
    static const char *const bad[] = {
        "nothing", "softmax:math=fp99", "softmax:scale=0", "softmax+round=sr", "log-softmax:eps=1", "softmax+result",
        ""};
    make(0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(MPSIM_JUDGE_SOFTMAX, bad[i], MPSIM_ENOTFOUND);
    refused(MPSIM_JUDGE_NORM, "layernorm:eps=-1", MPSIM_ENOTFOUND);
    const mpsim_judge_array step[] = {of("param", x, ROWS, COLUMNS), of("grad", x, ROWS, COLUMNS),
                                      of("new_param", y, ROWS, COLUMNS), of("new_v", y, ROWS, COLUMNS),
                                      of("m", x, 1, 3)};
    static const char *const bad_steps[] = {"adamw@nobody",     "adagrad",    "adamw:lr=x",
                                            "adamw:momentum=1", "sgd:step=0", "adafactor"};
    for (size_t i = 0; i < sizeof bad_steps / sizeof bad_steps[0]; i++)
        ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_UPDATE, bad_steps[i], step, 3), MPSIM_ENOTFOUND);
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_UPDATE, "sgd@ieee", step, 4), MPSIM_ERANGE); /* it has no v */
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_UPDATE, NULL, step, 5), MPSIM_EINVAL);
    refused(MPSIM_JUDGE_ACTIVATION, "mish", MPSIM_ENOTFOUND);
    refused(MPSIM_JUDGE_ACTIVATION, "swiglu", MPSIM_EINVAL);
    refused(MPSIM_JUDGE_SUM, "lanes:3", MPSIM_EINVAL); /* y has the shape of x */
    ask(MPSIM_JUDGE_SUM, NULL, ROWS, 1);
    const mpsim_judge_array sums[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, 1)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_SUM, "lanes:3", sums, 2), MPSIM_ENOTFOUND);
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_SUM, "sequential:columns", sums, 2), MPSIM_EINVAL);
    static double wide[N];
    const mpsim_judge_array binary64[] = {{"x", mpsim_format_find("binary64"), wide, ROWS, COLUMNS},
                                          of("y", y, ROWS, 1)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_SUM, NULL, binary64, 2), MPSIM_ERANGE);
    const mpsim_judge_array bytes[] = {of("x", x, ROWS, COLUMNS), {"y", NULL, y, ROWS, COLUMNS}};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_NORM, NULL, bytes, 2), MPSIM_EINVAL);
    const mpsim_judge_array none[] = {of("x", x, 0, 0), of("y", y, 0, 0)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_SUM, NULL, none, 2), MPSIM_EINVAL);
    const mpsim_judge_array weights[] = {of("x", x, ROWS, COLUMNS), of("y", y, ROWS, COLUMNS),
                                         of("weight", weight, 1, 3)};
    ck_assert_int_eq(judge_arrays(MPSIM_JUDGE_NORM, NULL, weights, 3), MPSIM_EINVAL);
}

TEST_MAIN("judge-rows");
