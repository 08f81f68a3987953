/* product.c -- the judge of matrix products (mpsim/judge.h).
 *
 * Rows are tried on a few rows and columns of the result; what is left is computed whole. Where no row has all bits, the results are
 * beside exact sums: another order of sums leaves less than a bound, another formula does not. */
#include "formulas.h"
#include "productrow.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_product_roles[] = {"a", "b", "d", NULL, "c", "bias", "scale_a", "scale_b", NULL};
enum { A, B, D, C, BIAS, SCALE_A, SCALE_B, ROLES };

enum { SIDE = 12 };

typedef struct question {
    judge_case *w;
    size_t rows, columns, depth;
    int turned;     /* b is columns x depth */
    void *expected; /* of the row that is told about */
    product_row rows_of[PRODUCT_ROWS];
    size_t n;
} question;

/* ---- shapes ---- */

static mpsim_status take_shapes(question *q)
{
    const mpsim_judge_array *a = q->w->of[A], *b = q->w->of[B], *d = q->w->of[D], *bias = q->w->of[BIAS],
                            *c = q->w->of[C];
    for (int i = 0; i < ROLES; i++)
        if (q->w->of[i] && !q->w->of[i]->format)
            return judge_fail(q->w, MPSIM_EINVAL, "expected numbers, found bytes");
    q->rows = d->rows;
    q->columns = d->columns;
    q->depth = a->columns;
    const int straight = b->rows == q->depth && b->columns == q->columns;
    const int turned = b->rows == q->columns && b->columns == q->depth;
    if (a->rows != q->rows || !(straight || turned))
        return judge_fail(
            q->w, MPSIM_EINVAL,
            "expected b of %zu x %zu or %zu x %zu and a of %zu x %zu for d of %zu x %zu: a is %zu x %zu, b is %zu x %zu",
            q->depth, q->columns, q->columns, q->depth, q->rows, q->depth, q->rows, q->columns, a->rows, a->columns,
            b->rows, b->columns);
    if (bias && bias->rows * bias->columns != q->columns)
        return judge_fail(q->w, MPSIM_EINVAL, "bias: expected %zu numbers", q->columns);
    if (c && (c->rows != q->rows || c->columns != q->columns))
        return judge_fail(q->w, MPSIM_EINVAL, "c: expected %zu x %zu numbers", q->rows, q->columns);
    for (int i = SCALE_A; i <= SCALE_B; i++) {
        const size_t lines = i == SCALE_A ? q->rows : q->columns,
                     n = q->w->of[i] ? q->w->of[i]->rows * q->w->of[i]->columns : 1;
        if (n != 1 && n != lines)
            return judge_fail(q->w, MPSIM_EINVAL, "%s: expected one number, or %zu, found %zu", q->w->of[i]->role,
                              lines, n);
    }
    q->turned = turned && !straight;
    return MPSIM_OK;
}

/* ---- results of a row ---- */

static product_operands operands_of(const question *q, const size_t *rows, const size_t *columns)
{
    const mpsim_judge_array *const *of = q->w->of;
    return (product_operands){.a = of[A],
                              .b = of[B],
                              .c = of[C],
                              .bias = of[BIAS],
                              .scale_a = of[SCALE_A],
                              .scale_b = of[SCALE_B],
                              .turned = q->turned,
                              .rows = rows,
                              .columns = columns,
                              .pool = q->w->pool};
}

/* The places of a sample: spread over the lines, the last ones among them. */
static size_t spread(size_t at[SIDE], size_t n)
{
    const size_t some = n < SIDE ? n : SIDE;
    for (size_t i = 0; i < some; i++)
        at[i] = some < 2 ? 0 : i * (n - 1) / (some - 1);
    return some;
}

/* How many results of the sample differ from those of `depth` products from `at` on; UINT64_MAX if the row cannot be computed. */
static uint64_t count_part(const question *q, const product_row *row, size_t at, size_t depth)
{
    size_t rows[SIDE], columns[SIDE];
    const size_t m = spread(rows, q->rows), n = spread(columns, q->columns);
    const mpsim_judge_array *d = q->w->of[D];
    const size_t bytes = mpsim_format_code_bytes(d->format);
    product_operands o = operands_of(q, rows, columns);
    uint64_t codes[SIDE * SIDE], differ = 0;
    o.first = at;
    if (judge_product_compute(codes, &o, row, d->format, m, n, depth) != MPSIM_OK)
        return UINT64_MAX;
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < n; k++) {
            const uint64_t found = element_code(d->codes, bytes, rows[i] * d->columns + columns[k]);
            const uint64_t expected = element_code(codes, bytes, i * n + k);
            differ += found != expected && !(mpsim_classify(d->format, found) == MPSIM_CLASS_NAN &&
                                             mpsim_classify(d->format, expected) == MPSIM_CLASS_NAN);
        }
    return differ;
}

static uint64_t count_sample(const question *q, const product_row *row)
{
    return count_part(q, row, 0, q->depth);
}

/* All results; NULL without memory, or if the row cannot be computed. */
static void *compute(const question *q, const product_row *row)
{
    const mpsim_format *f = q->w->of[D]->format;
    void *codes = want_memory(q->rows * q->columns + 1, mpsim_format_code_bytes(f));
    const product_operands o = operands_of(q, NULL, NULL);
    if (codes && judge_product_compute(codes, &o, row, f, q->rows, q->columns, q->depth) == MPSIM_OK)
        return codes;
    free(codes);
    return NULL;
}

static judge_pair pair_of(const question *q, const void *expected)
{
    return (judge_pair){q->w->of[D]->format, q->w->of[D]->codes, expected, q->rows, q->columns, 1};
}

static uint64_t count_all(const question *q, const product_row *row)
{
    void *codes = compute(q, row);
    uint64_t n = codes ? 0 : UINT64_MAX;
    const judge_pair p = pair_of(q, codes);
    for (size_t i = 0; i < q->rows * q->columns && codes; i++)
        n += !judge_pair_same(&p, i);
    free(codes);
    return n;
}

/* ---- the search ---- */

static void add_rows(question *q)
{
    const mpsim_judge_array *a = q->w->of[A], *b = q->w->of[B];
    const product_rows_source from = {a->format, b->format, q->w->of[D]->format, q->depth,
                                      q->w->of[SCALE_A] && q->w->of[SCALE_B]};
    q->n = judge_product_rows(q->rows_of, PRODUCT_ROWS, &from);
}

/* The row with the fewest other results, in the sample and then in all. */
static const product_row *find_row(const question *q, uint64_t *differ)
{
    const product_row *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < q->n && least; i++) {
        uint64_t n = count_sample(q, &q->rows_of[i]);
        if (n == 0) /* others may fit the sample, too */
            n = count_all(q, &q->rows_of[i]);
        else if (n != UINT64_MAX)
            n += (uint64_t)1 << 62; /* behind all that fit the sample */
        if (n < least) {
            least = n;
            best = &q->rows_of[i];
        }
    }
    *differ = !best ? UINT64_MAX : least >> 62 && !q->w->sink ? count_all(q, best) : least;
    return best;
}

static void find_class(const question *q, const char *row)
{
    mpsim_judgement *j = q->w->j;
    for (size_t i = 0; i < q->n; i++) {
        if (strcmp(q->rows_of[i].name, row) != 0 && (count_sample(q, &q->rows_of[i]) || count_all(q, &q->rows_of[i])))
            continue;
        if (j->same < MPSIM_JUDGE_ROWS)
            snprintf(j->class_rows[j->same], MPSIM_JUDGE_ROW, "%s", q->rows_of[i].name);
        j->same++;
    }
}

/* ---- beside exact sums ---- */

static const judge_formula formulas[] = {
    {"sum-order",
     "the results that were tried are as near the exact sums as sums in binary32 are: another order of sums, or another unit"},
    {"bias", "the bias is left out"},
    {"bias", "the bias is added twice"},
    {"bias", "the bias of the columns is added along the rows"},
    {"bias", "c is left out"},
    {"bias", "c is subtracted, not added"},
    {"operands", "b is taken as its transpose"},
    {"operands", "a is taken as its transpose"},
    {"operands", "the operands have changed places: b a instead of a b"},
    {"epilogue", "the results are cut at zero, as by ReLU"},
    {"epilogue", "the results have gone through GELU"},
    {"scale", "both scales are left out"},
    {"scale", "the scale of a is left out"},
    {"scale", "the scale of b is left out"},
    {"scale", "the results are divided by the scales, not multiplied"},
    {"scale", "the scales count twice"},
    {"tail", "the last product of each sum is left out"},
    {"tail", "the last products of each sum, which do not fill a tile of 8, are left out"},
    {"tail", "the last products of each sum, which do not fill a tile of 16, are left out"},
    {"tail", "the last products of each sum, which do not fill a tile of 32, are left out"},
    {"tail", "the last products of each sum, which do not fill a tile of 64, are left out"},
    {"tail", "the last products of each sum, which do not fill a tile of 128, are left out"},
};
enum {
    OF_NO_BIAS = 1,
    OF_BIAS_TWICE,
    OF_BIAS_TURNED,
    OF_NO_C,
    OF_MINUS_C,
    OF_B_TURNED,
    OF_A_TURNED,
    OF_SWAPPED,
    OF_RELU,
    OF_GELU,
    OF_NO_SCALES,
    OF_NO_SCALE_A,
    OF_NO_SCALE_B,
    OF_DIVIDED,
    OF_SCALES_TWICE,
    OF_LAST,
    OF_TILE
};

static double number(const mpsim_judge_array *a, size_t i)
{
    return mpsim_decode(a->format, element_code(a->codes, mpsim_format_code_bytes(a->format), i));
}

static double of_a(const question *q, size_t i, size_t k)
{
    return number(q->w->of[A], i * q->depth + k);
}

static double of_b(const question *q, size_t k, size_t n)
{
    return number(q->w->of[B], q->turned ? n * q->depth + k : k * q->columns + n);
}

/* Product k of a result. */
static double product_of(const question *q, size_t formula, size_t i, size_t k, size_t n)
{
    return formula == OF_B_TURNED   ? of_a(q, i, k) * of_b(q, n, k)
           : formula == OF_A_TURNED ? of_a(q, k, i) * of_b(q, k, n)
           : formula == OF_SWAPPED  ? of_b(q, i, k) * of_a(q, k, n)
                                    : of_a(q, i, k) * of_b(q, k, n);
}

/* How many products of a result count; 0: the formula is none of this product. */
static size_t depth_of(const question *q, size_t formula)
{
    const judge_case *w = q->w;
    const int b_square = q->depth == q->columns, a_square = q->depth == q->rows;
    const size_t tile = formula >= OF_TILE ? (size_t)8 << (formula - OF_TILE) : 1;
    switch (formula) {
    case OF_NO_BIAS:
    case OF_BIAS_TWICE:
        return w->of[BIAS] ? q->depth : 0;
    case OF_BIAS_TURNED:
        return w->of[BIAS] && q->rows == q->columns ? q->depth : 0;
    case OF_NO_C:
    case OF_MINUS_C:
        return w->of[C] ? q->depth : 0;
    case OF_B_TURNED:
        return b_square ? q->depth : 0;
    case OF_A_TURNED:
        return a_square ? q->depth : 0;
    case OF_SWAPPED:
        return a_square && b_square ? q->depth : 0;
    case OF_NO_SCALES:
    case OF_DIVIDED:
    case OF_SCALES_TWICE:
        return w->of[SCALE_A] || w->of[SCALE_B] ? q->depth : 0;
    case OF_NO_SCALE_A:
        return w->of[SCALE_A] && w->of[SCALE_B] ? q->depth : 0;
    case OF_NO_SCALE_B:
        return w->of[SCALE_A] && w->of[SCALE_B] ? q->depth : 0;
    case OF_LAST:
        return q->depth ? q->depth - 1 : 0;
    default:
        return formula < OF_TILE ? q->depth : q->depth % tile ? q->depth / tile * tile : 0;
    }
}

static double scale_of(const mpsim_judge_array *x, size_t line)
{
    return !x ? 1 : number(x, x->rows * x->columns == 1 ? 0 : line);
}

static double scale(const question *q, size_t formula, size_t i, size_t n)
{
    const double a = formula == OF_NO_SCALE_A ? 1 : scale_of(q->w->of[SCALE_A], i);
    const double b = formula == OF_NO_SCALE_B ? 1 : scale_of(q->w->of[SCALE_B], n);
    return formula == OF_NO_SCALES      ? 1
           : formula == OF_DIVIDED      ? 1 / (a * b)
           : formula == OF_SCALES_TWICE ? a * a * b * b
                                        : a * b;
}

static double epilogue(size_t formula, double y)
{
    return formula == OF_RELU ? fmax(y, 0) : formula == OF_GELU ? 0.5 * y * erfc(-y * 0.7071067811865476) : y;
}

static judge_exact exact(const void *self, size_t formula, size_t at)
{
    const question *q = self;
    const mpsim_judge_array *c = q->w->of[C], *bias = q->w->of[BIAS];
    const size_t i = at / q->columns, n = at % q->columns, depth = depth_of(q, formula);
    double sum = 0, magnitudes = 0;
    if (depth == 0 && q->depth)
        return (judge_exact){(double)NAN, 0};
    for (size_t k = 0; k < depth; k++) {
        const double p = product_of(q, formula, i, k, n);
        sum += p;
        magnitudes += fabs(p);
    }
    const double by = scale(q, formula, i, n);
    const double of_c = c && formula != OF_NO_C ? number(c, at) * (formula == OF_MINUS_C ? -1 : 1) : 0;
    const size_t of_line = formula == OF_BIAS_TURNED ? i : n;
    const double of_bias = bias && formula != OF_NO_BIAS ? number(bias, of_line) * (formula == OF_BIAS_TWICE ? 2 : 1)
                                                         : 0;
    const double size = magnitudes * fabs(by) + fabs(of_c) + fabs(of_bias);
    const double y = epilogue(formula, sum * by + of_c + of_bias);
    return (judge_exact){y, 2 * ((double)depth + 2) * (double)FLT_EPSILON * size};
}

/* Results that differ: whether they are as near the exact sums as rounding every addition to binary32 leaves them. */
static void explain_formula(const question *q, const product_row *row)
{
    const mpsim_format *f = q->w->of[D]->format;
    const judge_pair p = pair_of(q, q->expected);
    const judge_formulas all = {.of = formulas,
                                .n = sizeof formulas / sizeof formulas[0],
                                .unit = ldexp(1, -(int)(f->mbits < 23 ? f->mbits : 23)),
                                .halves = row->mode <= MPSIM_ROUND_NEAREST_AWAY &&
                                          row->model.result.rounding.mode <= MPSIM_ROUND_NEAREST_AWAY,
                                .self = q,
                                .exact = exact};
    judge_formulas_explain(q->w->j, &p, &all);
}

/* ---- what another row, or another depth, explains ---- */

/* What makes the results those of the nearest row. */
static void explain_rows(const question *q, const product_row *like, const product_row *best, uint64_t n)
{
    mpsim_judgement *j = q->w->j;
    const int other_parts = *best->partials.name && !mpsim_format_same(&like->partials, &best->partials);
    const mpsim_format *sums[2] = {&like->model.accumulator.format, &best->model.accumulator.format};
    if (*best->operands.name && !mpsim_format_same(&like->operands, &best->operands))
        judge_find(j, "format", n, "the operands are rounded to %s first", best->operands.name);
    else if (other_parts)
        judge_find(j, "format", n, "the depth is summed in %zu parts, whose sums are kept in %s", best->split,
                   best->partials.name);
    else if (!mpsim_format_same(sums[0], sums[1]) && like->model.addition != MPSIM_ADDITION_EXACT &&
             best->model.addition != MPSIM_ADDITION_EXACT)
        judge_find(j, "format", n, "the sums are kept in %s, not in %s", sums[1]->name, sums[0]->name);
    else if (like->split != best->split)
        judge_find(j, "sum-order", n, "the depth is summed in %zu part%s, not in %zu", best->split,
                   best->split == 1 ? "" : "s", like->split);
    else
        judge_find(j, "sum-order", n, "the sums are those of %s, not of %s", best->name, like->name);
}

/* Results of the row under another last rounding. */
static int explain_mode(const question *q, const product_row *row)
{
    const uint64_t all = count_sample(q, row);
    for (uint8_t mode = 0; mode < MPSIM_ROUND_STOCHASTIC_A && all > 1; mode++) {
        product_row other = *row;
        other.mode = mode;
        if (mode == row->mode || count_sample(q, &other) > all / 4)
            continue;
        judge_find(q->w->j, "mode", q->w->j->differ, "the results are rounded by %s, not by %s",
                   mpsim_round_mode_name((mpsim_round_mode)mode), mpsim_round_mode_name((mpsim_round_mode)row->mode));
        return 1;
    }
    return 0;
}

/* Results of which the first or the last products are left out. */
static int explain_depth(const question *q, const product_row *row)
{
    const uint64_t all = count_sample(q, row);
    for (size_t k = 1; k < q->depth && k <= 256; k++)
        for (int last = 0; last < 2; last++) {
            const uint64_t n = count_part(q, row, last ? 0 : k, q->depth - k);
            if (n <= all / 4 && all > 1) {
                judge_find(q->w->j, "tail", q->w->j->differ, "the %s %zu of %zu products are left out",
                           last ? "last" : "first", k, q->depth);
                return 1;
            }
        }
    return 0;
}

/* ---- the answer ---- */

static mpsim_status say(question *q, const product_row *row)
{
    mpsim_judgement *j = q->w->j;
    const mpsim_judge_array *d = q->w->of[D];
    q->expected = compute(q, row);
    if (!q->expected)
        return judge_fail(q->w, MPSIM_ERANGE, "'%s' does not take %s and %s", row->name, q->w->of[A]->format->name,
                          q->w->of[B]->format->name);
    const judge_pair p = pair_of(q, q->expected);
    if (q->w->sink) {
        snprintf(j->row, sizeof j->row, "%s", row->name);
        judge_take(q->w, d->role, &p);
        return MPSIM_OK;
    }
    j->role = d->role;
    j->format = *d->format;
    j->rows = q->rows;
    j->columns = q->columns;
    j->results = (uint64_t)q->rows * q->columns;
    snprintf(j->row, sizeof j->row, "%s", row->name);
    judge_places(j, &p, JUDGE_ALL);
    for (size_t i = 0; i < j->places; i++)
        j->place[i].exact = exact(q, 0, j->place[i].row * q->columns + j->place[i].column).value;
    return MPSIM_OK;
}

/* Where all results in an array of binary32 are numbers of bf16 or fp16, they are judged as such: *as, codes in *own. */
static mpsim_status narrow(question *q, mpsim_judge_array *as, void **own)
{
    const mpsim_judge_array *d = q->w->of[D];
    const mpsim_format *f = d->format->mbits == 23 ? judge_narrow_of(&d, 1) : NULL;
    if (!f)
        return MPSIM_OK;
    if (!(*own = judge_narrow_codes(f, d)))
        return MPSIM_ENOMEM;
    *as = (mpsim_judge_array){d->role, f, *own, d->rows, d->columns};
    q->w->of[D] = as;
    return MPSIM_OK;
}

/* Whether nothing has to be said of sizes: results that depend on nothing. */
static int is_known(const mpsim_judgement *j)
{
    return j->findings && (strcmp(j->finding[0].cause, "zeros") == 0 || strcmp(j->finding[0].cause, "constant") == 0);
}

static mpsim_status answer(question *q, const product_row *like)
{
    mpsim_judgement *j = q->w->j;
    uint64_t differ = 0;
    const product_row *best = like;
    if (!like && !(best = find_row(q, &differ)))
        return judge_fail(q->w, MPSIM_ERANGE, "no row takes %s and %s", q->w->of[A]->format->name,
                          q->w->of[B]->format->name);
    if (q->w->sink && differ) { /* none gives all: which is nearest is not asked */
        j->differ = differ;
        return MPSIM_OK;
    }
    const mpsim_status status = say(q, best);
    if (status != MPSIM_OK || q->w->sink)
        return status;
    if (j->differ == 0) {
        find_class(q, best->name);
        return MPSIM_OK;
    }
    const product_row *row = best;
    if (like && (best = find_row(q, &differ)) && differ <= j->differ / 2) {
        snprintf(j->nearest, sizeof j->nearest, "%s", best->name);
        j->nearest_differ = differ;
        if (differ == 0)
            judge_forget(j);
        explain_rows(q, like, best, j->differ - differ);
        if (differ > j->differ / 100)
            explain_formula(q, row);
    } else if (!is_known(j) && !explain_mode(q, row) && !explain_depth(q, row)) {
        explain_formula(q, row);
    }
    return MPSIM_OK;
}

mpsim_status judge_product(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    product_row like;
    mpsim_judge_array as;
    void *own = NULL;
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status status = take_shapes(q);
    if (status == MPSIM_OK && c->like && judge_product_row_parse(&like, c->like) != MPSIM_OK)
        status = judge_fail(
            c, MPSIM_ENOTFOUND,
            "'%s' is not a row of a product: a model or mkl-fp32, +split=N, +operands=FORMAT, +scales=ORDER, +round=MODE",
            c->like);
    if (status == MPSIM_OK)
        status = narrow(q, &as, &own);
    if (status == MPSIM_OK) {
        if (!c->sink || !c->like)
            add_rows(q);
        status = answer(q, c->like ? &like : NULL);
    }
    free(own);
    free(q->expected);
    free(q);
    return status;
}
