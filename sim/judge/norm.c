/* norm.c -- the judge of LayerNorm and RMSNorm of the rows of a matrix (mpsim/judge.h). */
#include "table.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"

#include <mpsim/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_norm_roles[] = {"x", "y", NULL, "weight", "bias", "eps", NULL};
enum { X, Y, WEIGHT, BIAS, EPS };

enum { ROWS_MOST = 64 };

typedef struct norm_row {
    char name[MPSIM_JUDGE_ROW];
    mpsim_norm_kind kind;
    double eps; /* below 0: not said */
    mpsim_format math,
        normalised; /* normalised: of (x - mean) / root before the weight; without a name: nothing is rounded there */
} norm_row;

typedef struct question {
    judge_case *w;
    norm_row row[ROWS_MOST + 1];
    size_t n, rows, columns;
    float *weight, *bias, *ones; /* weight: ones where it is not given; bias: or NULL */
} question;

/* ---- rows ---- */

static const char *const kinds[] = {"layernorm", "rmsnorm"}; /* as mpsim_norm_kind */

static int set_word(void *context, const char *word, const char *value)
{
    norm_row *row = context;
    if (value && strcmp(word, "eps") == 0)
        return parse_number(&row->eps, value) || row->eps < 0 ? -1 : 0;
    if (value && strcmp(word, "normalised") == 0)
        return mpsim_format_parse(&row->normalised, value) == MPSIM_OK ? 0 : -1;
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->math, value) == MPSIM_OK ? 0 : -1;
}

/* layernorm or rmsnorm[:eps=X][:math=FORMAT | :normalised=FORMAT]. 0, or -1. */
static int parse(norm_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    memset(row, 0, sizeof *row);
    row->eps = -1;
    row->math = *judge_math_at(0);
    if (strlen(text) >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(row->name, sizeof row->name, "%s", text);
    if (judge_words(copy, set_word, row))
        return -1;
    if (*row->normalised.name && judge_math(&row->math))
        return -1;
    row->kind = strcmp(copy, kinds[MPSIM_NORM_RMS]) == 0 ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER;
    return strcmp(copy, kinds[row->kind]) == 0 ? 0 : -1;
}

static double number(const mpsim_judge_array *a, size_t i)
{
    return mpsim_decode(a->format, element_code(a->codes, mpsim_format_code_bytes(a->format), i));
}

static void add_of_eps(question *q, double eps)
{
    for (size_t i = 0; judge_math_at(i); i++)
        for (int kind = 0; kind < 2; kind++) {
            char name[MPSIM_JUDGE_ROW], math[48];
            snprintf(name, sizeof name, "%s:eps=%.9g%s", kinds[kind], eps, judge_math_word(math, judge_math_at(i)));
            if (q->n < ROWS_MOST && parse(&q->row[q->n], name) == 0)
                q->n++;
        }
}

static void add_normalised(question *q, double eps)
{
    for (size_t i = 1; judge_math_at(i); i++)
        for (int kind = 0; kind < 2; kind++) {
            char name[MPSIM_JUDGE_ROW];
            snprintf(name, sizeof name, "%s:eps=%.9g:normalised=%s", kinds[kind], eps, judge_math_at(i)->name);
            if (q->n < ROWS_MOST && parse(&q->row[q->n], name) == 0)
                q->n++;
        }
}

/* eps: the one that is said, or those that are usual. */
static void add_rows(question *q, double like)
{
    static const double usual[] = {1e-5, 1e-6, 1e-8, 1e-12, 0};
    const double given = like >= 0 ? like : q->w->of[EPS] ? number(q->w->of[EPS], 0) : -1;
    if (given >= 0)
        add_of_eps(q, given), add_normalised(q, given);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && !(given >= 0 && q->w->of[EPS]); i++)
        if (usual[i] != given)
            add_of_eps(q, usual[i]), add_normalised(q, usual[i]);
}

static const char *name(const void *self, size_t row)
{
    return ((const question *)self)->row[row].name;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const norm_row *row = &q->row[which];
    const int apart = *row->normalised.name != '\0';
    const mpsim_rownorm r = {
        u->n, q->columns, (uint8_t)row->kind, (float)row->eps, judge_math(&row->math), apart ? &row->normalised : NULL};
    float *means = want_memory(2 * u->n + 1, sizeof *means);
    if (!means)
        return MPSIM_ENOMEM;
    judge_lines(y[0], q->w->of[X], u, q->columns);
    const mpsim_status s = mpsim_rownorm_forward(&r, y[0], means, means + u->n, y[0], apart ? q->ones : q->weight,
                                                 apart ? NULL : q->bias);
    for (size_t i = 0; i < u->n * q->columns && apart && s == MPSIM_OK; i++)
        y[0][i] = y[0][i] * q->weight[i % q->columns] + (q->bias ? q->bias[i % q->columns] : 0);
    free(means);
    return s;
}

static const mpsim_format *math_of(const void *self, size_t row)
{
    const norm_row *r = &((const question *)self)->row[row];
    return *r->normalised.name ? &r->normalised : &r->math;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"rounding",
     "the results that were tried are as near the exact ones as rounding leaves them: another order of operations"},
    {"mean",
     "LayerNorm and RMSNorm are mistaken for one another: the mean is not subtracted, or is where it should not be"},
    {"eps", "eps is added to the root of the variance, not to the variance"},
    {"eps", "eps is left out"},
    {"eps", "eps is 1e-5"},
    {"eps", "eps is 1e-6"},
    {"variance", "the variance is that of a sample: divided by the number of columns less one"},
    {"weight", "the weight counts from 1: it is 1 + weight"},
    {"weight", "the weight is left out"},
    {"bias", "the bias is left out"},
    {"bias", "the bias is added twice"},
    {"axis", "the mean and the variance are those of columns, not of rows"},
};
enum {
    OF_KIND = 1,
    OF_ROOT,
    OF_NO_EPS,
    OF_EPS_5,
    OF_EPS_6,
    OF_SAMPLE,
    OF_PLUS_ONE,
    OF_NO_WEIGHT,
    OF_NO_BIAS,
    OF_BIAS_TWICE,
    OF_AXIS
};

typedef struct moments {
    double mean, variance, size; /* size: the mean magnitude */
} moments;

static moments moments_of(const question *q, int subtracts, size_t formula, size_t at)
{
    const size_t n = formula == OF_AXIS ? q->rows : q->columns, step = formula == OF_AXIS ? q->columns : 1;
    const size_t first = formula == OF_AXIS ? at % q->columns : at / q->columns * q->columns;
    moments m = {0, 0, 0};
    for (size_t k = 0; k < n; k++) {
        const double x = number(q->w->of[X], first + k * step);
        m.mean += subtracts ? x / (double)n : 0;
        m.size += fabs(x) / (double)n;
    }
    for (size_t k = 0; k < n; k++) {
        const double d = number(q->w->of[X], first + k * step) - m.mean;
        m.variance += d * d / (double)(formula == OF_SAMPLE ? n - 1 : n);
    }
    return m;
}

static double eps_of(const norm_row *row, size_t formula)
{
    return formula == OF_NO_EPS ? 0 : formula == OF_EPS_5 ? 1e-5 : formula == OF_EPS_6 ? 1e-6 : (double)(float)row->eps;
}

static int has_formula(const question *q, const norm_row *row, size_t formula)
{
    switch (formula) {
    case OF_ROOT:
    case OF_NO_EPS:
        return row->eps > 0;
    case OF_SAMPLE:
        return q->columns > 1;
    case OF_PLUS_ONE:
    case OF_NO_WEIGHT:
        return q->w->of[WEIGHT] != NULL;
    case OF_NO_BIAS:
    case OF_BIAS_TWICE:
        return q->bias != NULL;
    default:
        return 1;
    }
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const norm_row *row = &q->row[which];
    const size_t c = at % q->columns;
    const double u = judge_unit_of(&row->math),
                 of_apart = *row->normalised.name ? 2 * judge_unit_of(&row->normalised) : 0,
                 n = (double)(formula == OF_AXIS ? q->rows : q->columns), eps = eps_of(row, formula);
    const int subtracts = (row->kind == MPSIM_NORM_LAYER) != (formula == OF_KIND);
    (void)output;
    if (!has_formula(q, row, formula))
        return (judge_exact){NAN, 0};
    const moments m = moments_of(q, subtracts, formula, at);
    const double w = formula == OF_NO_WEIGHT ? 1 : (double)q->weight[c] + (formula == OF_PLUS_ONE);
    const double b = !q->bias || formula == OF_NO_BIAS ? 0 : (double)q->bias[c] * (formula == OF_BIAS_TWICE ? 2 : 1);
    const double inverse = formula == OF_ROOT ? 1 / (sqrt(m.variance) + eps) : 1 / sqrt(m.variance + eps);
    const double d = number(q->w->of[X], at) - m.mean, of_d = u * ((subtracts ? (n + 2) * m.size : 0) + 2 * fabs(d));
    const double y = d * inverse * w + b;
    const double of_inverse = 2 * of_d * inverse + u * (n + 10); /* relative errors of the root */
    return (judge_exact){y, inverse * fabs(w) * (of_d + fabs(d) * of_inverse) + 4 * u * (fabs(y) + fabs(b)) +
                                of_apart * fabs(y - b)};
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    judge_case *w = q->w;
    const mpsim_judge_array *x = w->of[X], *y = w->of[Y];
    mpsim_status s = MPSIM_OK;
    for (int i = 0; i <= EPS && s == MPSIM_OK; i++)
        s = judge_has_numbers(w, w->of[i]);
    if (s != MPSIM_OK)
        return s;
    q->rows = x->rows;
    q->columns = x->columns;
    if (x->rows != y->rows || x->columns != y->columns || x->rows * x->columns == 0)
        return judge_fail(w, MPSIM_EINVAL, "expected as many results as numbers: x is %zu x %zu, y is %zu x %zu",
                          x->rows, x->columns, y->rows, y->columns);
    for (int i = WEIGHT; i <= EPS; i++)
        if (w->of[i] && w->of[i]->rows * w->of[i]->columns != (i == EPS ? 1 : q->columns))
            return judge_fail(w, MPSIM_EINVAL, "%s: expected %zu numbers, found %zu", w->of[i]->role,
                              i == EPS ? (size_t)1 : q->columns, w->of[i]->rows * w->of[i]->columns);
    if (w->of[EPS] && !(number(w->of[EPS], 0) >= 0))
        return judge_fail(w, MPSIM_EINVAL, "eps: expected a number of 0 or more");
    return MPSIM_OK;
}

static mpsim_status take_factors(question *q)
{
    const judge_case *w = q->w;
    q->weight = w->of[WEIGHT] ? judge_numbers(w->of[WEIGHT]) : want_memory(q->columns, sizeof *q->weight);
    q->bias = w->of[BIAS] ? judge_numbers(w->of[BIAS]) : NULL;
    q->ones = want_memory(q->columns, sizeof *q->ones);
    if (!q->weight || !q->ones || (w->of[BIAS] && !q->bias))
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < q->columns; i++) {
        q->ones[i] = 1;
        q->weight[i] = w->of[WEIGHT] ? q->weight[i] : 1;
    }
    return MPSIM_OK;
}

static mpsim_status take_like(norm_row *row, judge_ending *e, const judge_case *w)
{
    char text[MPSIM_JUDGE_ROW];
    snprintf(text, sizeof text, "%s", w->like);
    if (judge_ending_take(e, text) || parse(row, text))
        return judge_fail(w, MPSIM_ENOTFOUND, "'%s' is not a row of a norm: layernorm or rmsnorm, :eps=X, :math=FORMAT",
                          w->like);
    if (row->eps < 0)
        row->eps = w->of[EPS] ? number(w->of[EPS], 0) : 1e-5;
    return MPSIM_OK;
}

static mpsim_status answer(question *q)
{
    judge_case *w = q->w;
    norm_row like = {.eps = -1};
    judge_table t = {.w = w,
                     .self = q,
                     .found = {w->of[Y]},
                     .outputs = 1,
                     .unit = q->columns,
                     .work = q->columns,
                     .like = w->like != NULL,
                     .name = name,
                     .compute = compute,
                     .math = math_of,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact};
    const mpsim_status s = w->like ? take_like(&like, &t.ending, w) : MPSIM_OK;
    if (s != MPSIM_OK)
        return s;
    add_rows(q, like.eps);
    t.rows = q->n;
    q->row[q->n] = like;
    return judge_table_answer(&t);
}

mpsim_status judge_norm(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status s = check(q);
    s = s == MPSIM_OK ? take_factors(q) : s;
    s = s == MPSIM_OK ? answer(q) : s;
    free(q->weight);
    free(q->bias);
    free(q->ones);
    free(q);
    return s;
}
