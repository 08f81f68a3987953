/* softmax.c -- the judge of softmax and log-softmax of the rows of a matrix (mpsim/judge.h). */
#include "table.h"

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
    char name[MPSIM_JUDGE_ROW];
    int log, causal;
    double scale;
    mpsim_format math,
        sum; /* sum: of the sum of the powers, one after the other; without a name: as mpsim_softmax_rows has it */
} softmax_row;

typedef struct question {
    judge_case *w;
    softmax_row row[ROWS_MOST + 1];
    size_t n, rows, columns;
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
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->math, value) == MPSIM_OK ? 0 : -1;
}

/* softmax or log-softmax[:causal][:scale=X][:math=FORMAT], or [:scale=X][:sum=FORMAT]. 0, or -1. */
static int parse(softmax_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    memset(row, 0, sizeof *row);
    row->scale = 1;
    row->math = *judge_math_at(0);
    if (strlen(text) >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(row->name, sizeof row->name, "%s", text);
    if (judge_words(copy, set_word, row))
        return -1;
    if (*row->sum.name && (row->causal || judge_math(&row->math)))
        return -1;
    row->log = strcmp(copy, "log-softmax") == 0;
    return row->log || strcmp(copy, "softmax") == 0 ? 0 : -1;
}

static void add_rows(question *q)
{
    for (int causal = 0; causal < 1 + (q->rows > 1 && q->rows % q->columns == 0); causal++)
        for (size_t i = 0; judge_math_at(i); i++)
            for (int log = 0; log < 2; log++) {
                char name[MPSIM_JUDGE_ROW], math[48];
                snprintf(name, sizeof name, "%ssoftmax%s%s", log ? "log-" : "", causal ? ":causal" : "",
                         judge_math_word(math, judge_math_at(i)));
                if (parse(&q->row[q->n], name) == 0)
                    q->n++;
            }
}

static void add_sums(question *q)
{
    static const char *const sums[] = {"softmax:sum=fp16", "softmax:sum=bf16", "log-softmax:sum=fp16",
                                       "log-softmax:sum=bf16"};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        q->n += parse(&q->row[q->n], sums[i]) == 0;
}

static const char *name(const void *self, size_t row)
{
    return ((const question *)self)->row[row].name;
}

/* A line in binary32, but for the sum. */
static mpsim_status line_by_sum(float *y, const softmax_row *row, size_t n)
{
    float most = -HUGE_VALF;
    float *powers = want_memory(n + 1, sizeof *powers);
    if (!powers)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        y[i] *= (float)row->scale;
        most = isnan(y[i]) || isnan(most) ? NAN : fmaxf(most, y[i]);
    }
    for (size_t i = 0; i < n; i++)
        powers[i] = mpsim_exp(y[i] - most);
    const float sum = mpsim_sum_lanes(&row->sum, powers, n, 1, 1);
    for (size_t i = 0; i < n; i++)
        y[i] = row->log ? y[i] - most - mpsim_log(sum) : powers[i] / sum;
    free(powers);
    return MPSIM_OK;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const softmax_row *row = &q->row[which];
    const int by_sum = *row->sum.name != '\0';
    const size_t each = u->at || by_sum ? 1 : u->n;
    mpsim_softmax c = {each, q->columns, row->causal ? q->columns : 0, 0, (float)row->scale, judge_math(&row->math),
                       NULL};
    mpsim_status s = MPSIM_OK;
    judge_lines(y[0], q->w->of[X], u, q->columns);
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
    const softmax_row *r = &((const question *)self)->row[row];
    return *r->sum.name ? &r->sum : &r->math;
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
    const mpsim_judge_array *x = q->w->of[X];
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), l->first + k * l->step));
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const softmax_row *row = &q->row[which];
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
    return (judge_exact){y, is_log ? share + u * fabs(y) : share * y + 2 * mpsim_format_min_positive(&row->math)};
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const mpsim_judge_array *x = q->w->of[X], *y = q->w->of[Y];
    mpsim_status s = judge_has_numbers(q->w, x);
    s = s == MPSIM_OK ? judge_has_numbers(q->w, y) : s;
    if (s != MPSIM_OK)
        return s;
    q->rows = x->rows;
    q->columns = x->columns;
    if (x->rows != y->rows || x->columns != y->columns || x->rows * x->columns == 0)
        return judge_fail(q->w, MPSIM_EINVAL, "expected as many results as numbers: x is %zu x %zu, y is %zu x %zu",
                          x->rows, x->columns, y->rows, y->columns);
    return MPSIM_OK;
}

static mpsim_status take_like(question *q, judge_table *t)
{
    char text[MPSIM_JUDGE_ROW];
    softmax_row *row = &q->row[t->rows];
    snprintf(text, sizeof text, "%s", q->w->like);
    if (judge_ending_take(&t->ending, text) || parse(row, text))
        return judge_fail(q->w, MPSIM_ENOTFOUND,
                          "'%s' is not a row of a softmax: softmax or log-softmax, :causal, :scale=X, :math=FORMAT",
                          q->w->like);
    t->like = 1;
    for (size_t i = 0; i < q->n; i++) { /* the scale that was asked for is that of all rows */
        q->row[i].scale = row->scale;
        if (row->scale != 1)
            (void)text_add(q->row[i].name, sizeof q->row[i].name, ":scale=%.9g", row->scale);
    }
    return MPSIM_OK;
}

mpsim_status judge_softmax(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status s = check(q);
    if (s == MPSIM_OK) {
        add_rows(q);
        add_sums(q);
        judge_table t = {.w = c,
                         .self = q,
                         .found = {c->of[Y]},
                         .outputs = 1,
                         .unit = q->columns,
                         .work = q->columns,
                         .rows = q->n,
                         .name = name,
                         .compute = compute,
                         .math = math_of,
                         .formulas = formulas,
                         .formulas_n = sizeof formulas / sizeof formulas[0],
                         .exact = exact};
        s = c->like ? take_like(q, &t) : MPSIM_OK;
        s = s == MPSIM_OK ? judge_table_answer(&t) : s;
    }
    free(q);
    return s;
}
