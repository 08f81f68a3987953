/* arith.c -- the judge of element-wise arithmetic (mpsim/judge.h). Results are compared as codes, NaNs too. */
#include "arithrow.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_arith_roles[] = {"a", "y", NULL, "b", "c", NULL};
enum { A, Y, B, C };

enum { ROWS_MOST = 11264, UNIT = 16, COMPARED = 1 << 16 };

typedef struct question {
    judge_list list;
    const mpsim_judge_array *x[ARITH_OPERANDS]; /* a, b, c */
    size_t n;                                   /* operands, elements */
    size_t elements;
    judge_table *t;
    mpsim_format result;                                  /* of the rows: that of y, or a narrower one */
    int nans, tiny_operands, tiny_results, large_results; /* what there is */
} question;

/* ---- what there is ---- */

static int is_op_of(const question *q, mpsim_op op)
{
    return op != MPSIM_OP_CONVERT && (size_t)mpsim_op_operands(op) == q->n;
}

static void look(question *q, const mpsim_judge_array *x)
{
    const size_t bytes = mpsim_format_code_bytes(x->format);
    const int result = x == q->list.w->of[Y];
    const double most = mpsim_format_max(&q->result), least = mpsim_format_min_normal(&q->result);
    for (size_t i = 0; i < q->elements; i++) {
        const uint64_t code = element_code(x->codes, bytes, i);
        const mpsim_class is = mpsim_classify(x->format, code);
        const double size = result ? fabs(mpsim_decode(x->format, code)) : 0;
        q->nans |= is == MPSIM_CLASS_NAN;
        q->tiny_operands |= !result && is == MPSIM_CLASS_SUBNORMAL;
        q->tiny_results |= result && size < least;
        q->large_results |= result && size >= most;
    }
}

/* Whether an operation, rounded to nearest to the format of y, gives all results; of many the first ones. */
static int is_plain(const question *q, mpsim_op op)
{
    const mpsim_judge_array *y = q->list.w->of[Y];
    const arith_row row = {.op = op, .nans = ARITH_ANY};
    const size_t n = q->elements < COMPARED ? q->elements : COMPARED;
    arith_operand x[ARITH_OPERANDS] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    void *codes = want_memory(n + 1, mpsim_format_code_bytes(y->format));
    for (size_t k = 0; k < q->n; k++)
        x[k] = (arith_operand){q->x[k]->format, q->x[k]->codes};
    const judge_pair p = {y->format, y->codes, codes, 1, n, 1};
    size_t same = 0;
    if (codes && judge_arith_compute(&row, y->format, x, n, codes) == MPSIM_OK)
        while (same < n && judge_pair_same(&p, same))
            same++;
    free(codes);
    return same == n;
}

/* The format of the results: of y; that of the row that is asked for; or a narrower one, whose numbers those of y are, unless an operation
 * gives them as it is. */
static mpsim_status take_result(question *q, const arith_row *like)
{
    const mpsim_judge_array *y = q->list.w->of[Y];
    judge_ending *e = &q->t->ending;
    int plain = 0;
    if (like && e->mode != MPSIM_ROUND_NEAREST_EVEN)
        return judge_fail(q->list.w, MPSIM_ENOTFOUND, "'%s': a mode of arithmetic is ':MODE', not '+round=MODE'",
                          q->list.w->like);
    const mpsim_format *f = like && *e->format.name ? &e->format : judge_narrow_of(&y, 1);
    for (int op = 0; op < MPSIM_OPS && f && f != &e->format && !plain; op++)
        plain = is_op_of(q, (mpsim_op)op) && (!like || op == (int)like->op) && is_plain(q, (mpsim_op)op);
    if (f && f->mbits > y->format->mbits)
        return judge_fail(q->list.w, MPSIM_ERANGE, "'%s': y has no room for %s", q->list.w->like, f->name);
    q->result = f && !plain ? *f : *y->format;
    q->t->narrow = f && !plain ? &q->result : NULL;
    look(q, y);
    for (size_t k = 0; k < q->n; k++)
        look(q, q->x[k]);
    return MPSIM_OK;
}

/* ---- rows ---- */

static void add_one(void *list, const char *name)
{
    judge_list_add(list, "%s", name);
}

/* The widest format of operands. */
static const mpsim_format *widest(const question *q)
{
    const mpsim_format *f = q->x[0]->format;
    for (size_t k = 1; k < q->n; k++)
        f = q->x[k]->format->mbits > f->mbits ? q->x[k]->format : f;
    return f;
}

static mpsim_status add(void *question_, void *like)
{
    question *q = question_;
    const arith_row *row = like;
    if (row && !is_op_of(q, row->op))
        return judge_fail(q->list.w, MPSIM_EINVAL, "'%s': expected %d operand%s, found %zu", q->list.w->like,
                          mpsim_op_operands(row->op), mpsim_op_operands(row->op) == 1 ? "" : "s", q->n);
    const mpsim_status s = take_result(q, row);
    if (s != MPSIM_OK)
        return s;
    const arith_rows from = {&q->result,      widest(q),        q->nans, q->tiny_operands,
                             q->tiny_results, q->large_results, add_one, &q->list};
    for (int mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A; mode++)
        for (int op = 0; op < MPSIM_OPS; op++)
            if (is_op_of(q, (mpsim_op)op))
                judge_arith_rows(&from, (mpsim_op)op, (mpsim_round_mode)mode);
    return MPSIM_OK;
}

/* ---- results of a row ---- */

static size_t length_of(const question *q, size_t unit)
{
    const size_t left = q->elements - unit * UNIT;
    return left < UNIT ? left : UNIT;
}

/* Codes of an array at some units, one behind the other. */
static size_t gather(const question *q, void *to, const mpsim_judge_array *x, const judge_units *u)
{
    const size_t bytes = mpsim_format_code_bytes(x->format);
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const size_t unit = judge_unit(u, i), length = length_of(q, unit);
        memcpy((char *)to + n * bytes, (const char *)x->codes + unit * UNIT * bytes, length * bytes);
        n += length;
    }
    return n;
}

/* Where any NaN is right, the one that was found is expected. */
static void take_nans(const question *q, const judge_units *u, void *codes, size_t n)
{
    const mpsim_judge_array *y = q->list.w->of[Y];
    const size_t bytes = mpsim_format_code_bytes(y->format);
    for (size_t i = 0, at = 0; i < u->n && at < n; i++)
        for (size_t k = 0; k < length_of(q, judge_unit(u, i)); k++, at++) {
            const uint64_t found = element_code(y->codes, bytes, judge_unit(u, i) * UNIT + k);
            if (mpsim_classify(y->format, found) == MPSIM_CLASS_NAN &&
                mpsim_classify(y->format, element_code(codes, bytes, at)) == MPSIM_CLASS_NAN)
                element_put_code(codes, bytes, at, found);
        }
}

/* Codes of the rows' format as those of y, which has all their numbers, and payloads of NaNs. */
static mpsim_status widen(const question *q, void *to, const void *codes, size_t n)
{
    mpsim_arith o;
    mpsim_arith_init(&o, MPSIM_OP_CONVERT, q->list.w->of[Y]->format, MPSIM_ROUND_NEAREST_EVEN);
    o.operand[0] = q->result;
    o.rounding.nan = MPSIM_NANS_PAYLOAD;
    return mpsim_arith_array(&o, NULL, to, codes, NULL, NULL, n, NULL);
}

static mpsim_status results(const question *q, const arith_row *row, const arith_operand x[ARITH_OPERANDS], size_t n,
                            void *y)
{
    if (!q->t->narrow)
        return judge_arith_compute(row, &q->result, x, n, y);
    void *codes = want_memory(n + 1, mpsim_format_code_bytes(&q->result));
    mpsim_status s = codes ? judge_arith_compute(row, &q->result, x, n, codes) : MPSIM_ENOMEM;
    s = s == MPSIM_OK ? widen(q, y, codes, n) : s;
    free(codes);
    return s;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const arith_row *row = judge_list_at(q, which);
    arith_operand x[ARITH_OPERANDS] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    void *room[ARITH_OPERANDS] = {NULL, NULL, NULL};
    mpsim_status s = MPSIM_OK;
    size_t n = 0;
    for (size_t k = 0; k < q->n && s == MPSIM_OK; k++) {
        room[k] = want_memory(u->n * UNIT, mpsim_format_code_bytes(q->x[k]->format));
        s = room[k] ? MPSIM_OK : MPSIM_ENOMEM;
        n = room[k] ? gather(q, room[k], q->x[k], u) : 0;
        x[k] = (arith_operand){q->x[k]->format, room[k]};
    }
    if (s == MPSIM_OK)
        s = results(q, row, x, n, y[0]);
    if (s == MPSIM_OK && row->nans == ARITH_ANY)
        take_nans(q, u, y[0], n);
    for (size_t k = 0; k < q->n; k++)
        free(room[k]);
    return s;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"rounding",
     "the results that were tried are each one of the two numbers beside the exact value: they are not correctly rounded"},
    {"operands", "the operands have changed places"},
    {"sign", "c is subtracted from the product, not added"},
    {"sign", "the product is subtracted from c, not added"},
    {"sign", "the product and c are both subtracted"},
    {"operands", "c is left out"},
    {"operands", "b and c have changed places: a c + b"},
    {"operands", "a and c have changed places: c b + a"},
};
enum { OF_SWAPPED = 1, OF_MINUS_C, OF_MINUS_PRODUCT, OF_MINUS_BOTH, OF_NO_C, OF_A_C, OF_C_B };

static double value(const question *q, size_t k, size_t at)
{
    const mpsim_judge_array *x = q->x[k];
    return k < q->n ? mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), at)) : 0;
}

static double fma_of(size_t formula, double a, double b, double c)
{
    return formula == OF_MINUS_C         ? fma(a, b, -c)
           : formula == OF_MINUS_PRODUCT ? fma(-a, b, c)
           : formula == OF_MINUS_BOTH    ? fma(-a, b, -c)
           : formula == OF_NO_C          ? a * b
           : formula == OF_A_C           ? fma(a, c, b)
           : formula == OF_C_B           ? fma(c, b, a)
                                         : fma(a, b, c);
}

static double result_of(mpsim_op op, double a, double b)
{
    return op == MPSIM_OP_ADD   ? a + b
           : op == MPSIM_OP_SUB ? a - b
           : op == MPSIM_OP_MUL ? a * b
           : op == MPSIM_OP_DIV ? a / b
                                : sqrt(a);
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const arith_row *row = judge_list_at(q, which);
    const double a = value(q, 0, at), b = value(q, 1, at), c = value(q, 2, at);
    const int fused = row->op == MPSIM_OP_FMA, turns = row->op == MPSIM_OP_SUB || row->op == MPSIM_OP_DIV;
    (void)output;
    if (formula && (formula == OF_SWAPPED ? !turns : !fused))
        return (judge_exact){NAN, 0};
    const double y = fused                   ? fma_of(formula, a, b, c)
                     : formula == OF_SWAPPED ? result_of(row->op, b, a)
                                             : result_of(row->op, a, b);
    return (judge_exact){y, fabs(y) * 0x1p-52};
}

/* What the nearest row has otherwise than the row that is asked for. */
static void differs(const void *self, size_t nearest, uint64_t n)
{
    const question *q = self;
    const arith_row *like = judge_list_at(q, q->list.n), *best = judge_list_at(q, nearest);
    mpsim_judgement *j = q->list.w->j;
    if (like->op != best->op) {
        judge_find(j, "formula", n, "the operation is %s, not %s", mpsim_op_name(best->op), mpsim_op_name(like->op));
        return;
    }
    if (like->mode != best->mode)
        judge_find(j, "mode", n, "the mode is %s, not %s", mpsim_round_mode_name((mpsim_round_mode)best->mode),
                   mpsim_round_mode_name((mpsim_round_mode)like->mode));
    if (like->twice != best->twice)
        judge_find(j, "double-rounding", n, "%s",
                   like->op == MPSIM_OP_DIV ? best->twice ? "a is multiplied by one over b, which is rounded"
                                                          : "the quotient is rounded once"
                   : best->twice            ? "the product is rounded before c is added"
                                            : "the product is not rounded before c is added");
    if (*best->via.name && !mpsim_format_same(&like->via, &best->via))
        judge_find(j, "double-rounding", n, "the results are rounded to %s first", best->via.name);
    if (like->flush_inputs != best->flush_inputs)
        judge_find(j, "subnormal-inputs", n, "subnormal operands are %s",
                   best->flush_inputs ? "read as zeros" : "not read as zeros");
    if (like->flush != best->flush)
        judge_find(j, "subnormal-results", n, "subnormal results: %s, not %s", judge_arith_flushes[best->flush],
                   judge_arith_flushes[like->flush]);
    if (like->overflow != best->overflow)
        judge_find(j, "overflow", n, "what overflows becomes %s", best->overflow ? "the largest number" : "infinity");
    if (like->nans != best->nans && like->nans != ARITH_ANY)
        judge_find(j, "nan", n, "NaNs are those of %s%s, not of nan=%s", best->nans == ARITH_ANY ? "no rule" : "nan=",
                   best->nans == ARITH_ANY ? "" : judge_arith_nans[best->nans], judge_arith_nans[like->nans]);
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *const given[] = {w->of[A], w->of[B], w->of[C], w->of[Y]}, *y = w->of[Y];
    q->elements = y->rows * y->columns;
    if (w->of[C] && !w->of[B])
        return judge_fail(w, MPSIM_EINVAL, "expected an array 'b' beside 'c'");
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        const mpsim_judge_array *x = given[i];
        if (x && !x->format)
            return judge_fail(w, MPSIM_EINVAL, "%s: expected numbers, found bytes", x->role);
        if (x && (x->rows * x->columns != q->elements || q->elements == 0))
            return judge_fail(w, MPSIM_EINVAL, "%s: expected as many numbers as results, %zu, found %zu", x->role,
                              q->elements, x->rows * x->columns);
        if (x && x != y)
            q->x[q->n++] = x;
    }
    return MPSIM_OK;
}

mpsim_status judge_arith(judge_case *c)
{
    question q = {
        .list = {.w = c,
                 .size = sizeof(arith_row),
                 .most = ROWS_MOST,
                 .read = judge_arith_read,
                 .texts =
                     "arithmetic: add, sub, mul, div, sqrt or fma, :MODE, :nan=RULE, :flush-inputs, :flush-results, "
                     ":flush-tiny, :flush-before, :overflow=max, :separate, :reciprocal, :via=FORMAT"}};
    const mpsim_status s = check(&q);
    judge_table t = {.unit = UNIT,
                     .work = UNIT,
                     .coded = 1,
                     .compute = compute,
                     .formulas = formulas,
                     .formulas_n = s == MPSIM_OK && c->of[Y]->format->mbits <= 23 ? sizeof formulas / sizeof formulas[0]
                                                                                  : 0,
                     .exact = exact,
                     .differs = differs};
    q.t = &t;
    return s == MPSIM_OK ? judge_list_answer(&q.list, &t, add) : s;
}
