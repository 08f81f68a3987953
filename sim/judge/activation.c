/* activation.c -- the judge of activations (mpsim/judge.h). */
#include "list.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <mpsim/transformer.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_activation_roles[] = {"x", "y", NULL, NULL};
enum { X, Y };

enum { ROWS_MOST = 32 };

typedef struct activation_row {
    judge_row of;
    size_t kind;
} activation_row;

typedef struct question {
    judge_list list;
    size_t columns; /* of the results */
    int gated;      /* a row of x is gates, then values */
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
    return value && strcmp(word, "math") == 0 && mpsim_format_parse(&row->of.math, value) == MPSIM_OK ? 0 : -1;
}

/* NAME[:math=FORMAT]. 0, or -1. */
static int read(void *to, char *text)
{
    activation_row *row = to;
    if (judge_words(text, set_word, row))
        return -1;
    while (row->kind < KINDS && strcmp(text, kinds[row->kind].name) != 0)
        row->kind++;
    return row->kind < KINDS ? 0 : -1;
}

static mpsim_status add(void *question_, void *like)
{
    question *q = question_;
    const activation_row *row = like;
    char math[48];
    if (row && kinds[row->kind].gated != q->gated)
        return judge_fail(q->list.w, MPSIM_EINVAL, "'%s': expected %s columns in x as in y", q->list.w->like,
                          q->gated ? "as many" : "twice as many");
    for (size_t i = 0; judge_math_at(i); i++)
        for (size_t k = 0; k < KINDS; k++)
            if (kinds[k].gated == q->gated)
                judge_list_add(&q->list, "%s%s", kinds[k].name, judge_math_word(math, judge_math_at(i)));
    return MPSIM_OK;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const activation_row *row = judge_list_at(q, which);
    const size_t across = q->columns * (q->gated ? 2 : 1);
    float *x = want_memory(u->n * across + 1, sizeof *x);
    if (!x)
        return MPSIM_ENOMEM;
    judge_lines(x, q->list.w->of[X], u, across);
    const mpsim_status s = mpsim_activate((mpsim_activation)row->kind, judge_math(&row->of.math), NULL, y[0], x, u->n,
                                          q->columns);
    free(x);
    return s;
}

static double number(const question *q, size_t i)
{
    const mpsim_judge_array *x = q->list.w->of[X];
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), i));
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const activation_row *row = judge_list_at(q, which);
    const size_t kind = formula ? formula - 1 : row->kind;
    const size_t r = at / q->columns, c = at % q->columns;
    const double u = judge_unit_of(&row->of.math);
    (void)output;
    if (kinds[kind].gated != q->gated)
        return (judge_exact){NAN, 0};
    const double x = number(q, r * q->columns * (q->gated ? 2 : 1) + c),
                 v = q->gated ? number(q, (2 * r + 1) * q->columns + c) : 1;
    const double y = kinds[kind].of(x, v);
    return (judge_exact){y, u * ((fabs(x) + 8) * fabs(y) + (kinds[kind].cancels ? 8 * fabs(x * v) : 0)) +
                                2 * mpsim_format_min_positive(&row->of.math)};
}

/* A function that cancels leaves an error as large as that of x, which makes zeros of a whole tail. */
static void find_tail(const void *self, size_t which, const judge_pair *p, mpsim_judgement *j)
{
    const question *q = self;
    const activation_row *row = judge_list_at(q, which);
    const size_t bytes = mpsim_format_code_bytes(p->format);
    double most = 0, at = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < p->rows * p->columns && kinds[row->kind].cancels && !q->gated; i++) {
        const double y = fabs(exact(self, which, 0, 0, i).value);
        if (judge_pair_same(p, i) || mpsim_decode(p->format, element_code(p->found, bytes, i)) != 0 ||
            !(y >= mpsim_format_min_normal(p->format)))
            continue;
        n++;
        at = y > most ? number(q, i) : at;
        most = fmax(most, y);
    }
    if (n)
        judge_find(j, "zeros", n,
                   "%" PRIu64
                   " results of a tail are zero, and the exact ones are not: up to %.3g at x = %.4g; a sum cancels",
                   n, most, at);
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const mpsim_judge_array *x = q->list.w->of[X], *y = q->list.w->of[Y];
    const mpsim_status s = judge_list_numbers(q->list.w);
    if (s != MPSIM_OK)
        return s;
    q->columns = y->columns;
    q->gated = x->columns == 2 * y->columns;
    if (x->rows != y->rows || (x->columns != y->columns && !q->gated) || y->rows * y->columns == 0)
        return judge_fail(
            q->list.w, MPSIM_EINVAL,
            "expected as many numbers as results, or, for gates and values, twice as many columns: x is %zu x %zu, y is "
            "%zu x %zu",
            x->rows, x->columns, y->rows, y->columns);
    return MPSIM_OK;
}

mpsim_status judge_activation(judge_case *c)
{
    question q = {
        .list = {.w = c,
                 .size = sizeof(activation_row),
                 .most = ROWS_MOST,
                 .read = read,
                 .texts = "an activation: gelu, gelu-tanh, silu, swiglu, relu, sigmoid, tanh or exp, :math=FORMAT"}};
    const mpsim_status s = check(&q);
    judge_table t = {.unit = q.columns,
                     .work = c->of[X]->columns,
                     .compute = compute,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact,
                     .besides = find_tail};
    return s == MPSIM_OK ? judge_list_answer(&q.list, &t, add) : s;
}
