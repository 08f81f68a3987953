/* sum.c -- the judge of sums along the rows or columns of a matrix (mpsim/judge.h). Their orders are models of mpsim/dot.h, with factors of
 * 1, and mpsim_sum_lanes. */
#include "list.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"
#include "../text/words.h"

#include <mpsim/layer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_sum_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

enum { ROWS_MOST = 160 };

typedef enum sum_mean { SUM, MEAN, MEAN_RECIPROCAL, MEANS } sum_mean;

typedef struct sum_row {
    judge_row of;
    size_t lanes; /* 0: the model's order */
    mpsim_model model;
    int reverse, columns, mean;
} sum_row;

typedef struct question {
    judge_list list;
    size_t results;
    int sums; /* what the results seem to be: sums, or means */
} question;

/* ---- names ---- */

static const char *const mean_words[MEANS] = {"", "mean", "mean-by-reciprocal"};

/* Whether a text ends with ":WORD", which is cut off. */
static int cut_word(char *text, const char *word)
{
    const size_t n = strlen(text), k = strlen(word);
    if (n <= k + 1 || text[n - k - 1] != ':' || strcmp(text + n - k, word) != 0)
        return 0;
    text[n - k - 1] = '\0';
    return 1;
}

static int cut_words(sum_row *row, char *text)
{
    for (int m = MEAN; m < MEANS; m++)
        if (cut_word(text, mean_words[m])) {
            row->mean = m;
            return 1;
        }
    return cut_word(text, "columns") ? (row->columns = 1) : cut_word(text, "reverse") ? (row->reverse = 1) : 0;
}

static int set_lanes_word(void *context, const char *word, const char *value)
{
    sum_row *row = context;
    uint64_t n;
    if (!value && parse_count(&n, word) == 0 && n >= 1 && n <= 1024 && (n & (n - 1)) == 0) {
        row->lanes = (size_t)n;
        return 0;
    }
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->of.math, value) == MPSIM_OK ? 0 : -1;
}

/* lanes:N[:math=FORMAT] or a model; then :reverse, :columns, :mean. 0, or -1. */
static int read(void *to, char *text)
{
    sum_row *row = to;
    while (cut_words(row, text))
        ;
    if (strncmp(text, "lanes:", 6) == 0)
        return judge_words(text, set_lanes_word, row) || !row->lanes ? -1 : 0;
    if (mpsim_model_parse(&row->model, text) != MPSIM_OK || row->model.block || row->model.result.format.mbits > 23)
        return -1;
    row->of.math = row->model.addition == MPSIM_ADDITION_EXACT && !row->model.chunk ? row->model.result.format
                                                                                    : row->model.accumulator.format;
    return 0;
}

/* ---- which there are ---- */

static size_t depth_of(const question *q, const sum_row *row)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    return q->results == 1 ? x->rows * x->columns : row->columns ? x->rows : x->columns;
}

static int fits(const question *q, int columns)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    return q->results == 1 ? !columns : q->results == (columns ? x->columns : x->rows);
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void
add(question *q, int columns, const char *text, ...)
{
    char name[MPSIM_JUDGE_ROW] = "";
    va_list values;
    va_start(values, text);
    (void)text_add_list(name, sizeof name, text, values);
    va_end(values);
    for (int mean = q->sums ? SUM : MEAN; mean < (q->sums ? MEAN : MEANS); mean++)
        judge_list_add(&q->list, "%s%s%s%s", name, columns ? ":columns" : "", mean ? ":" : "", mean_words[mean]);
}

static void add_orders(question *q, int columns)
{
    const sum_row shape = {.columns = columns};
    const size_t depth = depth_of(q, &shape);
    for (size_t i = 0; judge_math_at(i); i++) {
        const char *f = judge_math_at(i)->name;
        char math[48];
        add(q, columns, i ? "sequential:%s" : "sequential", f);
        add(q, columns, i ? "sequential:%s:reverse" : "sequential:reverse", f);
        add(q, columns, i ? "pairwise:%s" : "pairwise", f);
        for (unsigned lanes = 2; lanes <= 1024; lanes *= 2)
            add(q, columns, "lanes:%u%s", lanes, judge_math_word(math, judge_math_at(i)));
    }
    add(q, columns, "exact:result=%s", q->list.w->of[Y]->format->name);
    for (unsigned lanes = 2; lanes <= 64 && depth < 1u << 30; lanes *= 2)
        add(q, columns, "sequential:chunk=%zu:order=lanes:L=%u", depth, lanes);
    for (unsigned chunk = 8; chunk <= 4096 && chunk < depth; chunk *= 2)
        add(q, columns, "sequential:chunk=%u", chunk);
}

static mpsim_status add_rows(void *question_, void *like)
{
    question *q = question_;
    const sum_row *row = like;
    if (row && !fits(q, row->columns))
        return judge_fail(q->list.w, MPSIM_EINVAL, "'%s': y does not have a result for each %s", q->list.w->like,
                          row->columns ? "column" : "row");
    for (int columns = 0; columns < 2; columns++)
        if (fits(q, columns))
            add_orders(q, columns);
    return MPSIM_OK;
}

/* ---- sums in binary64 ---- */

static double number(const mpsim_judge_array *a, size_t i)
{
    return mpsim_decode(a->format, element_code(a->codes, mpsim_format_code_bytes(a->format), i));
}

static double element_of(const question *q, const sum_row *row, size_t line, size_t k)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    return number(x, row->columns ? k * x->columns + line : line * depth_of(q, row) + k);
}

typedef struct total {
    double sum, magnitudes, squares;
} total;

static total total_of(const question *q, const sum_row *row, size_t line, size_t first, size_t end)
{
    total t = {0, 0, 0};
    double rest = 0;
    for (size_t k = first; k < end; k++) {
        const double x = element_of(q, row, line, k), y = t.sum + x;
        rest += fabs(t.sum) >= fabs(x) ? t.sum - y + x : x - y + t.sum;
        t.sum = y;
        t.magnitudes += fabs(x);
        t.squares += x * x;
    }
    if (isfinite(rest))
        t.sum += rest;
    return t;
}

/* Results are sums unless they are nearer to means. */
static int are_sums(const question *q)
{
    const sum_row row = {.columns = !fits(q, 0)};
    size_t sums = 0, means = 0;
    for (size_t i = 0; i < q->results && i < 16; i++) {
        const double s = total_of(q, &row, i, 0, depth_of(q, &row)).sum, y = number(q->list.w->of[Y], i);
        const double mean = s / (double)depth_of(q, &row);
        sums += fabs(y - s) < fabs(y - mean);
        means += fabs(y - s) > fabs(y - mean);
    }
    return sums >= means;
}

/* ---- results of a row ---- */

/* Codes of the lines, one after the other, in the order in which they are added. */
static void *take_lines(const question *q, const sum_row *row, const judge_units *u)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    const size_t depth = depth_of(q, row), bytes = mpsim_format_code_bytes(x->format);
    char *lines = want_memory(u->n * depth + 1, bytes);
    for (size_t i = 0; i < u->n && lines; i++) {
        const size_t line = judge_unit(u, i);
        if (!row->columns && !row->reverse) {
            memcpy(lines + i * depth * bytes, (const char *)x->codes + line * depth * bytes, depth * bytes);
            continue;
        }
        for (size_t k = 0; k < depth; k++) {
            const size_t at = row->reverse ? depth - 1 - k : k;
            memcpy(lines + (i * depth + k) * bytes,
                   (const char *)x->codes + (row->columns ? at * x->columns + line : line * depth + at) * bytes, bytes);
        }
    }
    return lines;
}

static mpsim_status add_lanes(float *y, const sum_row *row, const mpsim_format *f, const char *lines, size_t n,
                              size_t depth)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    float *x = want_memory(depth + 1, sizeof *x);
    for (size_t i = 0; i < n && x; i++) {
        (void)mpsim_decode_array_f32(f, x, lines + i * depth * bytes, depth);
        y[i] = mpsim_sum_lanes(judge_math(&row->of.math), x, depth, 1, row->lanes);
    }
    free(x);
    return x ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status add_by_model(float *y, const sum_row *row, const mpsim_format *f, const char *lines, size_t n,
                                 size_t depth)
{
    const mpsim_format *result = &row->model.result.format;
    float *ones = want_memory(depth + 1, sizeof *ones);
    void *codes = want_memory(n + 1, mpsim_format_code_bytes(result));
    mpsim_status s = ones && codes ? MPSIM_OK : MPSIM_ENOMEM;
    for (size_t k = 0; k < depth && ones; k++)
        ones[k] = 1;
    if (s == MPSIM_OK) {
        const mpsim_matrix a = {f, lines, depth, 0}, b = {mpsim_format_find("binary32"), ones, depth, 1};
        s = mpsim_gemm(&row->model, n, 1, depth, &a, &b, NULL, codes, 1, NULL, NULL);
    }
    if (s == MPSIM_OK)
        s = mpsim_decode_array_f32(result, y, codes, n);
    free(ones);
    free(codes);
    return s;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const sum_row *row = judge_list_at(q, which);
    const mpsim_format *f = q->list.w->of[X]->format;
    const size_t depth = depth_of(q, row);
    char *lines = take_lines(q, row, u);
    mpsim_status s = lines ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        s = (row->lanes ? add_lanes : add_by_model)(y[0], row, f, lines, u->n, depth);
    for (size_t i = 0; i < u->n && s == MPSIM_OK; i++)
        y[0][i] = row->mean == MEAN              ? y[0][i] / (float)depth
                  : row->mean == MEAN_RECIPROCAL ? y[0][i] * (1 / (float)depth)
                                                 : y[0][i];
    free(lines);
    return s;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"sum-order",
     "the results that were tried are as near the exact sums as rounding leaves them: another order of sums"},
    {"mean", "the results are sums instead of means, or means instead of sums"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 4, are left out"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 8, are left out"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 16, are left out"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 32, are left out"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 64, are left out"},
    {"tail", "the last numbers of each sum, which do not fill a vector of 128, are left out"},
    {"tail", "the last number of each sum is left out"},
    {"tail", "the first number of each sum is left out"},
    {"squares", "the results are sums of the squares"},
    {"magnitudes", "the results are sums of the magnitudes"},
};
enum { OF_MEAN = 1, OF_TAIL, OF_LAST = 8, OF_FIRST, OF_SQUARES, OF_MAGNITUDES };

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t line)
{
    const question *q = self;
    const sum_row *row = judge_list_at(q, which);
    const size_t depth = depth_of(q, row);
    size_t first = formula == OF_FIRST, end = formula == OF_LAST ? depth - 1 : depth;
    (void)output;
    if (formula >= OF_TAIL && formula < OF_LAST) {
        const size_t vector = (size_t)4 << (formula - OF_TAIL);
        end = depth % vector ? depth / vector * vector : 0;
    }
    if (end <= first)
        return (judge_exact){NAN, 0};
    const total t = total_of(q, row, line, first, end);
    const double value = formula == OF_SQUARES ? t.squares : formula == OF_MAGNITUDES ? t.magnitudes : t.sum;
    const double size = formula == OF_SQUARES ? t.squares : t.magnitudes;
    const double by = (row->mean != SUM) != (formula == OF_MEAN) ? 1 / (double)depth : 1;
    return (judge_exact){value * by, judge_unit_of(&row->of.math) * ((double)(end - first) + 3) * size * by};
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *x = w->of[X], *y = w->of[Y];
    const mpsim_status s = judge_list_numbers(w);
    if (s != MPSIM_OK)
        return s;
    q->results = y->rows * y->columns;
    if (x->rows * x->columns == 0 || !(fits(q, 0) || fits(q, 1)))
        return judge_fail(w, MPSIM_EINVAL,
                          "expected a sum for each row or column of x, or one of all: x is %zu x %zu, y is %zu x %zu",
                          x->rows, x->columns, y->rows, y->columns);
    return MPSIM_OK;
}

mpsim_status judge_sum(judge_case *c)
{
    question q = {.list = {.w = c,
                           .size = sizeof(sum_row),
                           .most = ROWS_MOST,
                           .read = read,
                           .texts = "a sum: a model or lanes:N, :reverse, :columns, :mean"}};
    const mpsim_status s = check(&q);
    if (s != MPSIM_OK)
        return s;
    q.sums = are_sums(&q);
    judge_table t = {.unit = 1,
                     .work = c->of[X]->rows * c->of[X]->columns / q.results,
                     .compute = compute,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact};
    return judge_list_answer(&q.list, &t, add_rows);
}
