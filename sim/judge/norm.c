/* norm.c -- the judge of LayerNorm and RMSNorm of the rows of a matrix (mpsim/judge.h). */
#include "list.h"

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

enum { ROWS_MOST = 96 };

typedef struct norm_row {
    judge_row of;
    mpsim_norm_kind kind;
    double eps;              /* below 0: not said */
    mpsim_format normalised; /* of (x - mean) / root before the weight; without a name: nothing is rounded there */
    mpsim_format inverse;    /* of 1 / root; without a name: binary32 */
} norm_row;

typedef struct question {
    judge_list list;
    size_t rows, columns;
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
    if (value && strcmp(word, "inverse") == 0)
        return mpsim_format_parse(&row->inverse, value) == MPSIM_OK ? 0 : -1;
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->of.math, value) == MPSIM_OK ? 0 : -1;
}

/* layernorm or rmsnorm[:eps=X][:math=FORMAT | :normalised=FORMAT | :inverse=FORMAT]. 0, or -1. */
static int read(void *to, char *text)
{
    norm_row *row = to;
    row->eps = -1;
    if (judge_words(text, set_word, row) ||
        (*row->normalised.name != '\0') + (*row->inverse.name != '\0') + (judge_math(&row->of.math) != NULL) > 1)
        return -1;
    row->kind = strcmp(text, kinds[MPSIM_NORM_RMS]) == 0 ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER;
    return strcmp(text, kinds[row->kind]) == 0 ? 0 : -1;
}

static double number(const mpsim_judge_array *a, size_t i)
{
    return mpsim_decode(a->format, element_code(a->codes, mpsim_format_code_bytes(a->format), i));
}

static void add_of_eps(judge_list *l, double eps)
{
    char math[48];
    for (size_t i = 0; judge_math_at(i); i++)
        for (int kind = 0; kind < 2; kind++)
            judge_list_add(l, "%s:eps=%.9g%s", kinds[kind], eps, judge_math_word(math, judge_math_at(i)));
    for (size_t i = 1; judge_math_at(i); i++)
        for (int kind = 0; kind < 2; kind++)
            for (int inverse = 0; inverse < 2; inverse++)
                judge_list_add(l, "%s:eps=%.9g:%s=%s", kinds[kind], eps, inverse ? "inverse" : "normalised",
                               judge_math_at(i)->name);
}

/* eps: the one that is said, or those that are usual. */
static mpsim_status add(void *question_, void *like)
{
    static const double usual[] = {1e-5, 1e-6, 1e-8, 1e-12, 0};
    question *q = question_;
    norm_row *row = like;
    const mpsim_judge_array *eps = q->list.w->of[EPS];
    const double given = row && row->eps >= 0 ? row->eps : eps ? number(eps, 0) : row ? usual[0] : -1;
    if (row)
        row->eps = given;
    if (given >= 0)
        add_of_eps(&q->list, given);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && !(given >= 0 && eps); i++)
        if (usual[i] != given)
            add_of_eps(&q->list, usual[i]);
    return MPSIM_OK;
}

/* Lines by inverse roots that are rounded; means: of the lines, then the roots' inverses. */
static void by_inverse(float *y, const question *q, const norm_row *row, const judge_units *u, const float *means)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    judge_lines(y, q->list.w->of[X], u, q->columns);
    for (size_t i = 0; i < u->n; i++) {
        float inverse = means[u->n + i];
        const float mean = row->kind == MPSIM_NORM_RMS ? 0 : means[i];
        (void)mpsim_round_array_f32(&row->inverse, &r, NULL, &inverse, &inverse, 1, NULL);
        for (size_t k = 0; k < q->columns; k++) {
            float *to = &y[i * q->columns + k];
            *to = (*to - mean) * inverse * q->weight[k] + (q->bias ? q->bias[k] : 0);
        }
    }
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const norm_row *row = judge_list_at(q, which);
    const int apart = *row->normalised.name != '\0';
    const mpsim_rownorm r = {u->n,
                             q->columns,
                             (uint8_t)row->kind,
                             (float)row->eps,
                             judge_math(&row->of.math),
                             apart ? &row->normalised : NULL};
    float *means = want_memory(2 * u->n + 1, sizeof *means);
    if (!means)
        return MPSIM_ENOMEM;
    judge_lines(y[0], q->list.w->of[X], u, q->columns);
    const mpsim_status s = mpsim_rownorm_forward(&r, y[0], means, means + u->n, y[0], apart ? q->ones : q->weight,
                                                 apart ? NULL : q->bias);
    for (size_t i = 0; i < u->n * q->columns && apart && s == MPSIM_OK; i++)
        y[0][i] = y[0][i] * q->weight[i % q->columns] + (q->bias ? q->bias[i % q->columns] : 0);
    if (*row->inverse.name && s == MPSIM_OK)
        by_inverse(y[0], q, row, u, means);
    free(means);
    return s;
}

static const mpsim_format *math_of(const void *self, size_t row)
{
    const norm_row *r = judge_list_at(self, row);
    return *r->normalised.name ? &r->normalised : *r->inverse.name ? &r->inverse : &r->of.math;
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
        const double x = number(q->list.w->of[X], first + k * step);
        m.mean += subtracts ? x / (double)n : 0;
        m.size += fabs(x) / (double)n;
    }
    for (size_t k = 0; k < n; k++) {
        const double d = number(q->list.w->of[X], first + k * step) - m.mean;
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
        return q->list.w->of[WEIGHT] != NULL;
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
    const norm_row *row = judge_list_at(q, which);
    const size_t c = at % q->columns;
    const double u = judge_unit_of(&row->of.math),
                 of_apart = *row->normalised.name ? 2 * judge_unit_of(&row->normalised)
                            : *row->inverse.name  ? 2 * judge_unit_of(&row->inverse)
                                                  : 0,
                 n = (double)(formula == OF_AXIS ? q->rows : q->columns), eps = eps_of(row, formula);
    const int subtracts = (row->kind == MPSIM_NORM_LAYER) != (formula == OF_KIND);
    (void)output;
    if (!has_formula(q, row, formula))
        return (judge_exact){NAN, 0};
    const moments m = moments_of(q, subtracts, formula, at);
    const double w = formula == OF_NO_WEIGHT ? 1 : (double)q->weight[c] + (formula == OF_PLUS_ONE);
    const double b = !q->bias || formula == OF_NO_BIAS ? 0 : (double)q->bias[c] * (formula == OF_BIAS_TWICE ? 2 : 1);
    const double inverse = formula == OF_ROOT ? 1 / (sqrt(m.variance) + eps) : 1 / sqrt(m.variance + eps);
    const double d = number(q->list.w->of[X], at) - m.mean,
                 of_d = u * ((subtracts ? (n + 2) * m.size : 0) + 2 * fabs(d));
    const double y = d * inverse * w + b;
    const double of_inverse = 2 * of_d * inverse + u * (n + 10); /* relative errors of the root */
    return (judge_exact){y, inverse * fabs(w) * (of_d + fabs(d) * of_inverse) + 4 * u * (fabs(y) + fabs(b)) +
                                of_apart * fabs(y - b)};
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_status s = judge_list_alike(w, w->of[X], w->of[Y]);
    if (s != MPSIM_OK)
        return s;
    q->rows = w->of[X]->rows;
    q->columns = w->of[X]->columns;
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
    const judge_case *w = q->list.w;
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

mpsim_status judge_norm(judge_case *c)
{
    question q = {.list = {.w = c,
                           .size = sizeof(norm_row),
                           .most = ROWS_MOST,
                           .read = read,
                           .texts = "a norm: layernorm or rmsnorm, :eps=X, :math=FORMAT"}};
    mpsim_status s = check(&q);
    judge_table t = {.unit = q.columns,
                     .work = q.columns,
                     .compute = compute,
                     .math = math_of,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact};
    s = s == MPSIM_OK ? take_factors(&q) : s;
    s = s == MPSIM_OK ? judge_list_answer(&q.list, &t, add) : s;
    free(q.weight);
    free(q.bias);
    free(q.ones);
    return s;
}
