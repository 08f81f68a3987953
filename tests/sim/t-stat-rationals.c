/* t-stat-rationals.c -- what stat prints of block recipes: every count, and every digit of the errors.
 *
 * Random tensors of odd shapes, with NaN, infinities, zeros, subnormal and huge numbers, go through the
 * program as a file, along rows, columns and requantised, with and without the Hadamard transform. The
 * judge is oracle/blockstat.h. The decibels of SQNR go through a quotient and log10 of the C library: two
 * units of the last place, or 2e-15 dB where they are few, are allowed there, and counted. Those of a
 * transformed tensor are compared to 1e-6 dB: stat takes the tensor's own sum of squares for the signal,
 * which the transform keeps but for its roundings; to 1e-3 dB where some of it is not finite, and not
 * at all where that is because the transform left binary32's range. */
#include "oracle/blockstat.h"
#include "support/badfile.h"
#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define E4M3 4, 3, 7, 448
#define E5M2 5, 2, 15, 57344
#define E2M3 2, 3, 1, 7.5
#define E3M2 3, 2, 3, 28
#define E2M1 2, 1, 1, 6

static const judged_recipe recipes[] = {
    {"mxfp8:floor", JUDGED_FLOOR, E4M3, 1, 32},
    {"mxfp8:rceil", JUDGED_RCEIL, E4M3, 1, 32},
    {"mxfp8:te", JUDGED_TE, E4M3, 1, 32},
    {"mxfp8e5m2:te", JUDGED_TE, E5M2, 1, 32},
    {"mxfp6e2m3:ceil", JUDGED_CEIL, E2M3, 1, 32},
    {"mxfp6e3m2", JUDGED_FLOOR, E3M2, 1, 32},
    {"mxfp4:even", JUDGED_EVEN, E2M1, 1, 32},
    {"nvfp4", JUDGED_NVFP4, E2M1, 1, 16},
    {"nvfp4:2d", JUDGED_NVFP4, E2M1, 16, 16},
    {"nvfp4:1level", JUDGED_NVFP4_ONE, E2M1, 1, 16},
    {"e4m3/1x128", JUDGED_DEEPSEEK, E4M3, 1, 128},
    {"e4m3/128x128", JUDGED_DEEPSEEK, E4M3, 128, 128},
    {"e4m3/1x128:ue8m0", JUDGED_DEEPGEMM, E4M3, 1, 128},
    {"e5m2/3x5:ue8m0", JUDGED_DEEPGEMM, E5M2, 3, 5},
    {"e4m3/row", JUDGED_DEEPSEEK, E4M3, 1, 0},
    {"e5m2/tensor", JUDGED_DEEPSEEK, E5M2, 0, 0},
};

#define LENGTH(a) (sizeof(a) / sizeof(a)[0])

/* ---- a tensor in a file ---- */

enum { DIMENSIONS = 3, GROUP = 16 };

typedef struct subject {
    size_t shape[DIMENSIONS], rank, rows, cols;
    int special; /* 0 ordinary numbers; 1 and zeros, subnormal and huge ones; 2 and NaN and infinities */
} subject;

static const subject subjects[] = {
    {{33, 70}, 2, 33, 70, 0},     {{33, 70}, 2, 33, 70, 1},  {{45, 67}, 2, 45, 67, 2}, {{5, 7, 40}, 3, 35, 40, 2},
    {{130, 140}, 2, 130, 140, 1}, {{1, 50}, 2, 1, 50, 1},    {{50, 1}, 2, 50, 1, 2},   {{37}, 1, 1, 37, 1},
    {{64, 64}, 2, 64, 64, 0},     {{3, 2, 16}, 3, 6, 16, 2},
};

static float number(uint64_t *state, int row, int special)
{
    const uint64_t u = test_random(state);
    const uint32_t pick = (uint32_t)(u >> 40 & 255);
    int exponent = 120 + row % 12 - __builtin_ctz((uint32_t)u | 0x200);
    if (special && row % 9 == 4)
        exponent = row % 2 ? 3 : 0;
    if (special && row % 9 == 7)
        exponent += 250 - 127;
    if (special && (pick < 6 || row % 9 == 2))
        return pick % 2 ? -0.0F : 0.0F;
    if (special > 1 && pick < 8)
        return pick == 6 ? NAN : u >> 60 & 1 ? INFINITY : -INFINITY;
    exponent = exponent < 0 ? 0 : exponent;
    return f32_of_bits((uint32_t)(u >> 63) << 31 | (uint32_t)exponent << 23 | (uint32_t)(u >> 8 & 0x7fffff));
}

static void write_subject(const char *path, const subject *s, const float *x)
{
    char head[200], shape[60];
    const size_t n = s->rows * s->cols;
    int at = 0;
    for (size_t i = 0; i < s->rank; i++)
        at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%zu", i ? "," : "", s->shape[i]);
    const int length = snprintf(head, sizeof head,
                                "{\"w.weight\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,%zu]}}", shape,
                                n * sizeof *x);
    blob b = {0};
    blob_int(&b, (uint64_t)length, 8);
    blob_add(&b, head, (size_t)length);
    for (size_t i = 0; i < n; i++)
        blob_int(&b, bits_of_f32(x[i]), 4);
    FILE *f = fopen(path, "wb");
    ck_assert(f != NULL);
    ck_assert_uint_eq(fwrite(b.data, b.n, 1, f), 1);
    ck_assert_int_eq(fclose(f), 0);
    blob_clear(&b);
}

static json_t *stat_of(const char *path)
{
    char command[2048];
    json_error_t error;
    int at = snprintf(command, sizeof command, "'%s' stat --json --axis both --rht 16 -f ", getenv("MPSIM"));
    for (size_t i = 0; i < LENGTH(recipes); i++)
        at += snprintf(command + at, sizeof command - (size_t)at, "%s%s", i ? "," : "", recipes[i].words);
    snprintf(command + at, sizeof command - (size_t)at, " '%s'", path);
    FILE *pipe = popen(command, "r");
    ck_assert(pipe != NULL);
    json_t *v = json_loadf(pipe, 0, &error);
    const int status = pclose(pipe);
    ck_assert_msg(v != NULL, "%s: %s", command, error.text);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return v;
}

/* ---- comparison ---- */

typedef struct tally {
    size_t targets, counts, digits, last_places, signals, wrong;
} tally;

typedef enum power { EXACT, ROUNDED, CANCELLED, OVERFLOWN } power; /* of the signal */

static const double decibels[] = {[EXACT] = 2e-15, [ROUNDED] = 1e-6, [CANCELLED] = 1e-3};

static void differs(tally *t, const char *what, const char *key, double got, double expected)
{
    t->wrong++;
    printf("# %s: %s %.17g, not %.17g\n", what, key, got, expected);
}

static void same_count(tally *t, const char *what, const json_t *in, const char *key, uint64_t expected)
{
    const json_t *v = json_object_get(in, key);
    t->counts++;
    if (!json_is_integer(v) || (uint64_t)json_integer_value(v) != expected)
        differs(t, what, key, json_number_value(v), (double)expected);
}

/* NaN and infinity are words. */
static double number_of(const json_t *v)
{
    return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_is_number(v) ? json_number_value(v) : -1;
}

static void same_digits(tally *t, const char *what, const json_t *in, const char *key, double expected,
                        double tolerance)
{
    const double got = number_of(json_object_get(in, key));
    t->digits++;
    if (got == expected || (isnan(got) && isnan(expected)))
        return;
    if (fabs(got - expected) <= tolerance)
        t->last_places++;
    else
        differs(t, what, key, got, expected);
}

static double tolerance_of(power s, double db)
{
    return fmax(2 * (nextafter(fabs(db), HUGE_VAL) - fabs(db)), decibels[s]);
}

static void same_scales(tally *t, const char *what, const json_t *in, const judged *j)
{
    const json_t *counts = json_object_get(in, "counts");
    const json_t *start = json_object_get(in, "first");
    long first = 0, last = JUDGED_BINS - 1;
    same_count(t, what, in, "zero", j->scale_zero);
    same_count(t, what, in, "nonfinite", j->scale_nonfinite);
    while (first < JUDGED_BINS && j->scales[first] == 0)
        first++;
    while (last >= 0 && j->scales[last] == 0)
        last--;
    const size_t n = last < first ? 0 : (size_t)(last - first + 1);
    t->counts += n;
    if (json_array_size(counts) != n || (n > 0 && json_integer_value(start) != first + JUDGED_MIN)) {
        differs(t, what, "scales", (double)json_array_size(counts), (double)n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if ((uint64_t)json_integer_value(json_array_get(counts, i)) != j->scales[first + (long)i])
            differs(t, what, "scales.counts", (double)json_integer_value(json_array_get(counts, i)),
                    (double)j->scales[first + (long)i]);
}

static void same(tally *t, const char *what, const json_t *b, const judged *j, power s)
{
    const double db = judged_sqnr_db(j);
    const struct {
        const char *key;
        uint64_t expected;
    } counts[] = {
        {"elements", j->elements},
        {"underflow", j->underflow},
        {"subnormal", j->subnormal},
        {"overflow", j->overflow},
        {"spoilt", j->spoilt},
        {"inexact", j->inexact},
        {"compared", j->compared},
        {"blocks", j->blocks},
        {"zero_blocks", j->zero_blocks},
        {"saturated_blocks", j->saturated_blocks},
        {"lost_blocks", j->lost_blocks},
        {"nonfinite_blocks", j->nonfinite_blocks},
        {"least_scales", j->least_scales},
        {"largest_scales", j->largest_scales},
    };
    for (size_t i = 0; i < LENGTH(counts); i++)
        same_count(t, what, b, counts[i].key, counts[i].expected);
    same_digits(t, what, b, "mse", judged_mse(j), 0);
    same_digits(t, what, b, "max_rel_err", j->compared ? j->max_rel_err : (double)NAN, 0);
    if (s == OVERFLOWN)
        t->signals++;
    else
        same_digits(t, what, b, "sqnr_db", db, tolerance_of(s, db));
    same_scales(t, what, json_object_get(b, "scales"), j);
    t->targets++;
}

/* ---- the three axes ---- */

static float *room(size_t n)
{
    float *p = calloc(n + 1, sizeof *p);
    ck_assert(p != NULL);
    return p;
}

static float *transposed(const float *x, size_t rows, size_t cols)
{
    float *t = room(rows * cols);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            t[c * rows + r] = x[r * cols + c];
    return t;
}

static power power_of(const float *x, const float *transformed, size_t rows, size_t cols)
{
    power s = ROUNDED;
    for (size_t i = 0; i < rows * cols; i++) {
        const size_t end = (i / cols + 1) * cols, start = i - i % cols % GROUP;
        int finite = 1;
        for (size_t k = start; k < start + GROUP && k < end; k++)
            finite &= isfinite(x[k]) != 0;
        if (!isfinite(transformed[i]) && finite)
            return OVERFLOWN;
        if (!isfinite(transformed[i]))
            s = CANCELLED;
    }
    return s;
}

/* Axis 0: rows, 1: columns, 2: what rows give, transformed back, along columns. What the signal is. */
static power judge_axis(judged *j, const judged_recipe *r, const float *x, size_t rows, size_t cols, int axis,
                        int transform)
{
    float *const along = room(rows * cols), *const values = room(rows * cols);
    float *const turned = transposed(x, rows, cols), *const origin = transposed(x, rows, cols);
    judged first;
    memcpy(along, x, rows * cols * sizeof *x);
    if (transform) {
        judge_hadamard(along, rows, cols);
        judge_hadamard(origin, cols, rows);
    }
    judged_init(&first);
    judge_blocks(axis == 0 ? j : &first, r, along, NULL, rows, cols, values);
    judged_clear(&first);
    if (transform)
        judge_hadamard_back(values, rows, cols);
    float *const down = transposed(axis == 1 ? x : values, rows, cols);
    if (transform)
        judge_hadamard(down, cols, rows);
    if (axis > 0)
        judge_blocks(j, r, down, origin, cols, rows, NULL);
    power s = EXACT;
    if (transform)
        s = axis ? power_of(turned, origin, cols, rows) : power_of(x, along, rows, cols);
    free(along);
    free(values);
    free(down);
    free(origin);
    free(turned);
    return s;
}

static void check_recipe(tally *t, const json_t *blocks, size_t i, const subject *s, const float *x)
{
    static const char *const axes[] = {"rows", "columns", "requantised"};
    for (int transform = 0; transform < 2; transform++)
        for (int axis = 0; axis < 3; axis++) {
            const json_t *b = NULL;
            char label[64], what[200];
            judged j;
            snprintf(label, sizeof label, "%s%s", recipes[i].words, transform ? ":rht16" : "");
            snprintf(what, sizeof what, "%zux%zu (%d) %s %s", s->rows, s->cols, s->special, label, axes[axis]);
            if (!test_in_part(i + (size_t)(transform + axis), 2))
                continue;
            const size_t k = (i * 2 + (size_t)transform) * 3 + (size_t)axis;
            b = json_array_get(blocks, k);
            if (s->rank == 1)
                b = axis == 0 ? json_array_get(blocks, i * 2 + (size_t)transform) : NULL;
            if (s->rank == 1 && axis > 0)
                continue;
            ck_assert_msg(b != NULL, "%s: nothing", what);
            ck_assert_str_eq(json_string_value(json_object_get(b, "axis")), axes[axis]);
            judged_init(&j);
            const power signal = judge_axis(&j, &recipes[i], x, s->rows, s->cols, axis, transform);
            same(t, what, b, &j, signal);
            judged_clear(&j);
        }
}

CASE("blocks", 60);

TESTS(stat_blocks, LENGTH(subjects))
{
    const subject *const s = &subjects[_i];
    const size_t n = s->rows * s->cols;
    uint64_t state = test_seed() + (uint64_t)_i;
    char path[300];
    tally t = {0, 0, 0, 0, 0, 0};
    const char *under = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/mpsim-blocks-XXXXXX", under && *under ? under : "/tmp");
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    float *x = room(n);
    for (size_t i = 0; i < n; i++)
        x[i] = number(&state, (int)(i / s->cols), s->special);
    write_subject(path, s, x);
    json_t *report = stat_of(path);
    const json_t *tensor = json_array_get(json_object_get(report, "tensors"), 0);
    for (size_t i = 0; i < LENGTH(recipes); i++)
        check_recipe(&t, json_object_get(tensor, "blocks"), i, s, x);
    json_decref(report);
    unlink(path);
    free(x);
    printf("# %zu x %zu: %zu targets, %zu counts and %zu errors, %zu differ; %zu SQNR within their "
           "tolerance, %zu not compared\n",
           s->rows, s->cols, t.targets, t.counts, t.digits, t.wrong, t.last_places, t.signals);
    fflush(stdout);
    ck_assert_uint_eq(t.wrong, 0);
}

TEST_MAIN("stat-rationals");
