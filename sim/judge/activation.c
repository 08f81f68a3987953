/* activation.c -- the judge of activations (mpsim/judge.h). */
#include "table.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <mpsim/transformer.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_activation_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

enum { ROWS_MOST = 32 };

typedef struct activation_row {
    char name[MPSIM_JUDGE_ROW];
    size_t kind;
    mpsim_format math;
} activation_row;

typedef struct question {
    judge_case *w;
    activation_row row[ROWS_MOST + 1];
    size_t n, columns; /* of the results */
    int gated;         /* a row of x is gates, then values */
} question;

/* ---- functions in binary64; v: the value of a gate ---- */

static double gelu_tanh(double x, double v)
{
    (void)v;
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
static double gelu(double x, double v)
{
    (void)v;
    return 0.5 * x * erfc(-x * 0.7071067811865476);
}
static double sigmoid(double x, double v)
{
    (void)v;
    return 1 / (1 + exp(-x));
}
static double silu(double x, double v)
{
    (void)v;
    return x / (1 + exp(-x));
}
static double swiglu(double x, double v)
{
    return silu(x, 0) * v;
}
static double relu(double x, double v)
{
    (void)v;
    return x > 0 || isnan(x) ? x : 0;
}
static double tanh_of(double x, double v)
{
    (void)v;
    return tanh(x);
}
static double exp_of(double x, double v)
{
    (void)v;
    return exp(x);
}
static double quick_gelu(double x, double v)
{
    (void)v;
    return x / (1 + exp(-1.702 * x));
}
static double itself(double x, double v)
{
    (void)v;
    return x;
}
static double leaky(double x, double v)
{
    (void)v;
    return x > 0 ? x : 0.01 * x;
}
static double values_first(double x, double v)
{
    return silu(v, 0) * x;
}
static double geglu(double x, double v)
{
    return gelu(x, 0) * v;
}
static double geglu_tanh(double x, double v)
{
    return gelu_tanh(x, 0) * v;
}
static double glu(double x, double v)
{
    return sigmoid(x, 0) * v;
}

/* Activations: first those of mpsim_activation, in its order, which are rows. cancels: an error as large as that of x remains of
 * a difference. */
static const struct {
    const char *name;
    double (*of)(double x, double v);
    int gated, cancels;
} kinds[] = {{"gelu-tanh", gelu_tanh, 0, 1},
             {"gelu", gelu, 0, 1},
             {"swiglu", swiglu, 1, 0},
             {"relu", relu, 0, 0},
             {"silu", silu, 0, 0},
             {"sigmoid", sigmoid, 0, 0},
             {"tanh", tanh_of, 0, 0},
             {"exp", exp_of, 0, 0},
             {"", quick_gelu, 0, 0},
             {"", itself, 0, 0},
             {"", leaky, 0, 0},
             {"", values_first, 1, 0},
             {"", geglu, 1, 1},
             {"", geglu_tanh, 1, 1},
             {"", glu, 1, 0}};
enum { KINDS = MPSIM_EXP + 1, ALL = sizeof kinds / sizeof kinds[0] };

static const judge_formula formulas[ALL + 1] = {
    {"rounding",
     "the results that were tried are as near the exact ones as rounding leaves them: another order of operations, or another "
     "function of the machine"},
    {"formula", "the results are those of GELU by tanh"},
    {"formula", "the results are those of GELU by erf"},
    {"formula", "the results are those of SwiGLU"},
    {"formula", "the results are those of ReLU"},
    {"formula", "the results are those of SiLU"},
    {"formula", "the results are those of the sigmoid function"},
    {"formula", "the results are those of tanh"},
    {"formula", "the results are those of exp"},
    {"formula", "the results are those of the quick GELU, x sigmoid(1.702 x)"},
    {"formula", "the results are the numbers themselves: there is no activation"},
    {"formula", "the results are those of a leaky ReLU, of 0.01"},
    {"formula", "gates and values have changed places"},
    {"formula", "the gates go through GELU by erf"},
    {"formula", "the gates go through GELU by tanh"},
    {"formula", "the gates go through the sigmoid function"},
};

/* ---- rows ---- */

static int set_word(void *context, const char *word, const char *value)
{
    activation_row *row = context;
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->math, value) == MPSIM_OK ? 0 : -1;
}

/* NAME[:math=FORMAT]. 0, or -1. */
static int parse(activation_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    memset(row, 0, sizeof *row);
    row->math = *judge_math_at(0);
    if (strlen(text) >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(row->name, sizeof row->name, "%s", text);
    if (judge_words(copy, set_word, row))
        return -1;
    while (row->kind < KINDS && strcmp(copy, kinds[row->kind].name) != 0)
        row->kind++;
    return row->kind < KINDS ? 0 : -1;
}

static void add_rows(question *q)
{
    for (size_t i = 0; judge_math_at(i); i++)
        for (size_t k = 0; k < KINDS; k++) {
            char name[MPSIM_JUDGE_ROW], math[48];
            snprintf(name, sizeof name, "%s%s", kinds[k].name, judge_math_word(math, judge_math_at(i)));
            if (kinds[k].gated == q->gated && parse(&q->row[q->n], name) == 0)
                q->n++;
        }
}

static const char *name(const void *self, size_t row)
{
    return ((const question *)self)->row[row].name;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const activation_row *row = &q->row[which];
    const size_t across = q->columns * (q->gated ? 2 : 1);
    float *x = want_memory(u->n * across + 1, sizeof *x);
    if (!x)
        return MPSIM_ENOMEM;
    judge_lines(x, q->w->of[X], u, across);
    const mpsim_status s = mpsim_activate((mpsim_activation)row->kind, judge_math(&row->math), NULL, y[0], x, u->n,
                                          q->columns);
    free(x);
    return s;
}

static const mpsim_format *math_of(const void *self, size_t row)
{
    return &((const question *)self)->row[row].math;
}

static double number(const question *q, size_t i)
{
    const mpsim_judge_array *x = q->w->of[X];
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), i));
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const activation_row *row = &q->row[which];
    const size_t kind = formula ? formula - 1 : row->kind;
    const size_t r = at / q->columns, c = at % q->columns;
    const double u = judge_unit_of(&row->math);
    (void)output;
    if (kinds[kind].gated != q->gated)
        return (judge_exact){NAN, 0};
    const double x = number(q, r * q->columns * (q->gated ? 2 : 1) + c),
                 v = q->gated ? number(q, (2 * r + 1) * q->columns + c) : 1;
    const double y = kinds[kind].of(x, v);
    return (judge_exact){y, u * ((fabs(x) + 8) * fabs(y) + (kinds[kind].cancels ? 8 * fabs(x * v) : 0)) +
                                2 * mpsim_format_min_positive(&row->math)};
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const mpsim_judge_array *x = q->w->of[X], *y = q->w->of[Y];
    mpsim_status s = judge_has_numbers(q->w, x);
    s = s == MPSIM_OK ? judge_has_numbers(q->w, y) : s;
    if (s != MPSIM_OK)
        return s;
    q->columns = y->columns;
    q->gated = x->columns == 2 * y->columns;
    if (x->rows != y->rows || (x->columns != y->columns && !q->gated) || y->rows * y->columns == 0)
        return judge_fail(
            q->w, MPSIM_EINVAL,
            "expected as many numbers as results, or, for gates and values, twice as many columns: x is %zu x %zu, y is "
            "%zu x %zu",
            x->rows, x->columns, y->rows, y->columns);
    return MPSIM_OK;
}

static mpsim_status take_like(question *q, judge_table *t)
{
    char text[MPSIM_JUDGE_ROW];
    activation_row *row = &q->row[t->rows];
    snprintf(text, sizeof text, "%s", q->w->like);
    if (judge_ending_take(&t->ending, text) || parse(row, text))
        return judge_fail(
            q->w, MPSIM_ENOTFOUND,
            "'%s' is not a row of an activation: gelu, gelu-tanh, silu, swiglu, relu, sigmoid, tanh or exp, :math=FORMAT",
            q->w->like);
    t->like = 1;
    if (kinds[row->kind].gated != q->gated)
        return judge_fail(q->w, MPSIM_EINVAL, "'%s': expected %s columns in x as in y", q->w->like,
                          q->gated ? "as many" : "twice as many");
    return MPSIM_OK;
}

mpsim_status judge_activation(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status s = check(q);
    if (s == MPSIM_OK) {
        add_rows(q);
        judge_table t = {.w = c,
                         .self = q,
                         .found = {c->of[Y]},
                         .outputs = 1,
                         .unit = q->columns,
                         .work = c->of[X]->columns,
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
