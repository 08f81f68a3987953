/* softmax.c -- the judge of softmax and log-softmax of the rows of a matrix (mpsim/judge.h). */
#include "list.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"
#include "../text/words.h"

#include <mpsim/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_softmax_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

enum { ROWS_MOST = 16 };

typedef struct softmax_row {
    judge_row of;
    int log, causal;
    double scale;
    mpsim_format sum; /* of the sum of the powers, one after the other; without a name: as mpsim_softmax_rows has it */
} softmax_row;

typedef struct question {
    judge_list list;
    size_t rows, columns;
} question;

/* ---- rows ---- */

static int set_word(void *context, const char *word, const char *value)
{
    softmax_row *row = context;
    if (!value && strcmp(word, "causal") == 0)
        return (row->causal = 1) - 1;
    if (value && strcmp(word, "scale") == 0)
        return parse_number(&row->scale, value) || row->scale == 0 ? -1 : 0;
    if (value && strcmp(word, "sum") == 0)
        return mpsim_format_parse(&row->sum, value) == MPSIM_OK ? 0 : -1;
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->of.math, value) == MPSIM_OK ? 0 : -1;
}

/* softmax or log-softmax[:causal][:scale=X][:math=FORMAT], or [:scale=X][:math=FORMAT][:sum=FORMAT]. 0, or -1. */
static int read(void *to, char *text)
{
    softmax_row *row = to;
    row->scale = 1;
    if (judge_words(text, set_word, row))
        return -1;
    if (*row->sum.name && row->causal)
        return -1;
    row->log = strcmp(text, "log-softmax") == 0;
    return row->log || strcmp(text, "softmax") == 0 ? 0 : -1;
}

/* The scale that is asked for is that of all rows. */
static mpsim_status add(void *question_, void *like)
{
    static const char *const sums[] = {"softmax:sum=fp16", "softmax:sum=bf16", "log-softmax:sum=fp16",
                                       "log-softmax:sum=bf16"};
    question *q = question_;
    char math[48], scale[48] = "";
    if (like && ((softmax_row *)like)->scale != 1)
        (void)text_add(scale, sizeof scale, ":scale=%.9g", ((softmax_row *)like)->scale);
    for (int causal = 0; causal < 1 + (q->rows > 1 && q->rows % q->columns == 0); causal++)
        for (size_t i = 0; judge_math_at(i); i++)
            for (int log = 0; log < 2; log++)
                judge_list_add(&q->list, "%ssoftmax%s%s%s", log ? "log-" : "", causal ? ":causal" : "",
                               judge_math_word(math, judge_math_at(i)), scale);
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        judge_list_add(&q->list, "%s%s", sums[i], scale);
        judge_list_add(&q->list, "%s%s:math=%s", sums[i], scale, strchr(sums[i], '=') + 1);
    }
    return MPSIM_OK;
}

/* A result of an operation, rounded to the format of the row's math. */
static float rounded(const softmax_row *row, float x)
{
    const mpsim_format *f = judge_math(&row->of.math);
    mpsim_rounding r;
    if (!f)
        return x;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (float)mpsim_decode(f, mpsim_encode_f32(f, &r, x, 0, NULL));
}

/* A line whose powers are added one after the other. */
static mpsim_status line_by_sum(float *y, const softmax_row *row, size_t n)
{
    float most = -HUGE_VALF;
    float *powers = want_memory(n + 1, sizeof *powers);
    if (!powers)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        y[i] = rounded(row, y[i] * (float)row->scale);
        most = isnan(y[i]) || isnan(most) ? NAN : fmaxf(most, y[i]);
    }
    for (size_t i = 0; i < n; i++)
        powers[i] = rounded(row, mpsim_exp(rounded(row, y[i] - most)));
    const float sum = mpsim_sum_lanes(&row->sum, powers, n, 1, 1);
    for (size_t i = 0; i < n; i++)
        y[i] = rounded(row, row->log ? rounded(row, y[i] - most) - rounded(row, mpsim_log(sum)) : powers[i] / sum);
    free(powers);
    return MPSIM_OK;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const softmax_row *row = judge_list_at(q, which);
    const int by_sum = *row->sum.name != '\0';
    const size_t each = u->at || by_sum ? 1 : u->n;
    mpsim_softmax c = {each, q->columns, row->causal ? q->columns : 0, 0, (float)row->scale, judge_math(&row->of.math),
                       NULL};
    mpsim_status s = MPSIM_OK;
    judge_lines(y[0], q->list.w->of[X], u, q->columns);
    for (size_t i = 0; i < u->n && s == MPSIM_OK; i += each) {
        float *to = y[0] + i * q->columns;
        c.first = judge_unit(u, i);
        s = by_sum ? line_by_sum(to, row, q->columns)
                   : (row->log ? mpsim_log_softmax : mpsim_softmax_rows)(&c, to, to, NULL);
    }
    return s;
}

static const mpsim_format *math_of(const void *self, size_t row)
{
    const softmax_row *r = judge_list_at(self, row);
    return *r->sum.name ? &r->sum : &r->of.math;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"rounding",
     "the results that were tried are as near the exact ones as rounding leaves them: another order of operations, or "
     "another exp"},
    {"formula", "softmax and log-softmax are mistaken for one another"},
    {"axis", "the softmax is taken along columns, not along rows"},
    {"formula", "the results are not normalised: powers without their sum"},
    {"formula", "powers of 2 are taken instead of those of e"},
    {"scale", "the scale is left out"},
    {"scale", "the numbers are divided by the scale, not multiplied"},
    {"mask", "the causal mask is left out, or is there where it should not be"},
    {"mask", "the causal mask lets each row see one column more"},
    {"mask", "the causal mask lets each row see one column less"},
};
enum { OF_LOG = 1, OF_AXIS, OF_POWERS, OF_TWO, OF_NO_SCALE, OF_DIVIDED, OF_MASK, OF_MORE, OF_LESS };

/* A line of numbers: element k is at first + k step. */
typedef struct line {
    size_t first, step, n, at;
} line;

/* The line of an element under a formula; n = 0: there is none. */
static line line_of(const question *q, const softmax_row *row, size_t formula, size_t at)
{
    const size_t r = at / q->columns, c = at % q->columns;
    const int causal = row->causal != (formula == OF_MASK);
    if (formula == OF_AXIS)
        return (line){c, q->columns, row->causal ? 0 : q->rows, r};
    if (!causal)
        return (line){r * q->columns, 1, formula == OF_MORE || formula == OF_LESS ? 0 : q->columns, c};
    const size_t seen = r % q->columns + 1 + (formula == OF_MORE) - (formula == OF_LESS);
    return (line){r * q->columns, 1, seen < q->columns ? seen : q->columns, c};
}

static double scale_of(const softmax_row *row, size_t formula)
{
    const double other = formula == OF_NO_SCALE ? 1 : formula == OF_DIVIDED ? 1 / row->scale : row->scale;
    return (formula == OF_NO_SCALE || formula == OF_DIVIDED) && row->scale == 1 ? (double)NAN : other;
}

static double number(const question *q, const line *l, size_t k)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), l->first + k * l->step));
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const softmax_row *row = judge_list_at(q, which);
    const line l = line_of(q, row, formula, at);
    const double scale = scale_of(row, formula), by = formula == OF_TWO ? log(2) : 1,
                 u = judge_unit_of(math_of(self, which));
    const int is_log = row->log != (formula == OF_LOG);
    double most = -HUGE_VAL, size = 0, sum = 0;
    (void)output;
    if (isnan(scale) || (l.n == 0 && formula != OF_LESS))
        return (judge_exact){NAN, 0};
    for (size_t k = 0; k < l.n; k++) {
        const double x = scale * number(q, &l, k);
        most = isnan(x) || isnan(most) ? (double)NAN : fmax(most, x);
        size = fmax(size, fabs(x));
    }
    if (l.at >= l.n)
        return (judge_exact){is_log ? -HUGE_VAL : 0.0, 0};
    for (size_t k = 0; k < l.n; k++)
        sum += exp((scale * number(q, &l, k) - most) * by);
    const double d = (scale * number(q, &l, l.at) - most) * by, rest = formula == OF_POWERS ? 1 : sum;
    const double share = u * (6 * size + (double)l.n + 8); /* of errors of exponents, of exp and of the sum */
    const double y = is_log ? d - log(rest) : exp(d) / rest;
    return (judge_exact){y, is_log ? share + u * fabs(y) : share * y + 2 * mpsim_format_min_positive(&row->of.math)};
}

/* ---- the answer ---- */

mpsim_status judge_softmax(judge_case *c)
{
    question q = {.list = {.w = c,
                           .size = sizeof(softmax_row),
                           .most = ROWS_MOST,
                           .read = read,
                           .texts = "a softmax: softmax or log-softmax, :causal, :scale=X, :math=FORMAT"},
                  .rows = c->of[X]->rows,
                  .columns = c->of[X]->columns};
    const mpsim_status s = judge_list_alike(c, c->of[X], c->of[Y]);
    judge_table t = {.unit = q.columns,
                     .work = q.columns,
                     .compute = compute,
                     .math = math_of,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact};
    return s == MPSIM_OK ? judge_list_answer(&q.list, &t, add) : s;
}
