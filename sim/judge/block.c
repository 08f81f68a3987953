/* block.c -- the judge of products of block-scaled operands (mpsim/judge.h). */
#include "blockrow.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_block_roles[] = {"a",  "d",        "b",        "scale_a", "scale_b",
                                         NULL, "tensor_a", "tensor_b", "bias",    NULL};
enum { A, D, B, SCALE_A, SCALE_B, TENSOR_A, TENSOR_B, BIAS };

enum { ROWS_MOST = 512, TRIED = 24 };

typedef struct question {
    judge_list list;
    block_operand x[2]; /* a, b */
    size_t rows, columns, depth;
    double tensor; /* both scales of tensors */
} question;

static double number(const mpsim_judge_array *x, size_t i)
{
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), i));
}

/* ---- operands ---- */

/* A byte has two elements, the first in bits 0 to 3. */
static size_t width_of(const mpsim_judge_array *x)
{
    return x->format ? x->columns : 2 * x->columns;
}

static mpsim_status take_elements(question *q, int i, const mpsim_judge_array *from, int turned)
{
    block_operand *x = &q->x[i];
    x->format = from->format ? from->format : mpsim_format_find("e2m1");
    x->lines = i ? q->columns : q->rows;
    x->depth = q->depth;
    const size_t bytes = mpsim_format_code_bytes(x->format);
    x->codes = want_memory(x->lines * x->depth + 1, bytes);
    for (size_t line = 0; line < x->lines && x->codes; line++)
        for (size_t k = 0; k < x->depth; k++) {
            const size_t at = turned ? k * x->lines + line : line * x->depth + k;
            const uint64_t code = from->format ? element_code(from->codes, bytes, at)
                                               : ((const uint8_t *)from->codes)[at / 2] >> (at % 2 ? 4 : 0) & 15;
            element_put_code(x->codes, bytes, line * x->depth + k, code);
        }
    return x->codes ? MPSIM_OK : MPSIM_ENOMEM;
}

/* How many of n elements share a scale, where there are `grid` scales: a power of two if it can be one. 0: no number. */
static size_t share_of(size_t n, size_t grid)
{
    if (grid == 0 || grid > n)
        return 0;
    size_t power = 1;
    while (power < (n + grid - 1) / grid)
        power *= 2;
    if ((n + power - 1) / power == grid)
        return power;
    const size_t share = (n + grid - 1) / grid;
    return (n + share - 1) / share == grid ? share : 0;
}

static const mpsim_format *scale_format(const block_operand *x, const mpsim_judge_array *s)
{
    return s->format ? s->format : mpsim_format_find(x->format->bits <= 4 && x->across == 16 ? "e4m3" : "e8m0");
}

/* A grid that is rows x columns of scales. */
static int take_grid(block_operand *x, size_t rows, size_t columns)
{
    x->down = share_of(x->lines, rows);
    x->across = share_of(x->depth, columns);
    x->grid_lines = rows;
    x->grid = columns;
    return x->down && x->across;
}

/* As many scales as tiles of 128 x 4 have: blocks of 16 or 32 elements. */
static int take_swizzled(block_operand *x, size_t n, const mpsim_format *f)
{
    const size_t across = f && f->mbits == 3 ? 16 : 32, grid = (x->depth + across - 1) / across;
    if (n != (x->lines + 127) / 128 * 128 * ((grid + 3) / 4 * 4))
        return 0;
    x->down = 1;
    x->across = across;
    x->grid = grid;
    x->grid_lines = x->lines;
    return x->swizzled_only = 1;
}

static mpsim_status take_scales(question *q, int i, const mpsim_judge_array *s, int turned)
{
    block_operand *x = &q->x[i];
    const size_t n = s->rows * s->columns;
    x->given = s;
    x->n = n;
    x->turned = turned && n > 1 && s->rows != 1 && s->columns != 1;
    const int fits = n == 1                                               ? take_grid(x, 1, 1)
                     : n == x->lines && (s->rows == 1 || s->columns == 1) ? take_grid(x, n, 1)
                     : turned                                             ? take_grid(x, s->columns, s->rows)
                                                                          : take_grid(x, s->rows, s->columns);
    if (!fits && !take_swizzled(x, n, s->format))
        return judge_fail(q->list.w, MPSIM_EINVAL, "%s: %zu x %zu scales are none of blocks of %zu x %zu elements",
                          s->role, s->rows, s->columns, x->lines, x->depth);
    x->scale_format = scale_format(x, s);
    x->scales = want_memory(n + 1, sizeof *x->scales);
    for (size_t k = 0; k < n && x->scales; k++)
        x->scales[k] = (float)fabs(
            mpsim_decode(x->scale_format, element_code(s->codes, mpsim_format_code_bytes(x->scale_format), k)));
    return x->scales ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status take_others(question *q)
{
    const judge_case *w = q->list.w;
    q->tensor = 1;
    for (int i = TENSOR_A; i <= BIAS; i++) {
        const mpsim_judge_array *x = w->of[i];
        const size_t n = i == BIAS ? q->columns : 1;
        if (x && (!x->format || x->rows * x->columns != n))
            return judge_fail(w, MPSIM_EINVAL, "%s: expected %zu number%s", x->role, n, n == 1 ? "" : "s");
        if (x && i != BIAS)
            q->tensor = (double)((float)q->tensor * (float)number(x, 0));
    }
    return MPSIM_OK;
}

static mpsim_status take(question *q)
{
    const judge_case *w = q->list.w;
    const mpsim_judge_array *a = w->of[A], *b = w->of[B], *d = w->of[D];
    mpsim_status s = judge_has_numbers(w, d);
    if (s != MPSIM_OK)
        return s;
    q->rows = d->rows;
    q->columns = d->columns;
    q->depth = width_of(a);
    const int turned = b->format && b->rows == q->depth && b->columns == q->columns,
              straight = b->rows == q->columns && width_of(b) == q->depth;
    if (a->rows != q->rows || !(turned || straight) || q->rows * q->columns * q->depth == 0)
        return judge_fail(
            w, MPSIM_EINVAL,
            "expected a of %zu x K and b of %zu x K or K x %zu for d of %zu x %zu: a is %zu x %zu, b is %zu x %zu",
            q->rows, q->columns, q->columns, q->rows, q->columns, a->rows, width_of(a), b->rows, width_of(b));
    s = take_elements(q, 0, a, 0);
    s = s == MPSIM_OK ? take_elements(q, 1, b, !straight) : s;
    s = s == MPSIM_OK ? take_scales(q, 0, w->of[SCALE_A], 0) : s;
    s = s == MPSIM_OK ? take_scales(q, 1, w->of[SCALE_B], !straight) : s;
    return s == MPSIM_OK ? take_others(q) : s;
}

/* ---- rows ---- */

static void add_one(question *q, const char *text)
{
    for (int swizzled = 0; swizzled < 2; swizzled++) {
        judge_list_add(&q->list, "%s%s", text, swizzled ? ":swizzled" : "");
        if (q->list.n && !judge_block_takes(judge_list_at(q, q->list.n - 1), &q->x[0], &q->x[1]))
            q->list.n--;
    }
}

static void add_form(question *q, const mpsim_model *m)
{
    static const char *const sums[] = {"", ":fma", ":separate"}, *const to[] = {"binary32", "bf16", "fp16"};
    char text[MPSIM_JUDGE_ROW];
    for (size_t i = 0; i < 3; i++) {
        *text = '\0';
        (void)text_add(text, sizeof text, "blocks:model=%s%s", m->name, sums[i]);
        add_one(q, text);
        *text = '\0';
        (void)text_add(text, sizeof text, "dequant:to=%s:model=%s", to[i], m->name);
        add_one(q, text);
    }
}

static mpsim_status add(void *question_, void *like)
{
    question *q = question_;
    mpsim_model m;
    if (like && !judge_block_takes(like, &q->x[0], &q->x[1]))
        return judge_fail(q->list.w, MPSIM_ERANGE, "'%s' does not take %s and %s with these scales", q->list.w->like,
                          q->x[0].format->name, q->x[1].format->name);
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        char text[MPSIM_JUDGE_ROW] = "";
        (void)text_add(text, sizeof text, "native:model=%s", m.name);
        if (m.block)
            add_one(q, text);
        else
            add_form(q, &m);
    }
    return MPSIM_OK;
}

/* ---- results of a row ---- */

static void finish(const question *q, size_t first, size_t n, float *y)
{
    const mpsim_judge_array *bias = q->list.w->of[BIAS];
    for (size_t i = 0; i < n; i++) {
        y[i] = q->tensor != 1 ? y[i] * (float)q->tensor : y[i];
        y[i] += bias ? (float)number(bias, (first + i) % q->columns) : 0;
    }
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0, n; i < u->n && s == MPSIM_OK; i += n) {
        const size_t at = judge_unit(u, i), column = at % q->columns, left = u->n - i;
        const size_t lines = u->at || column ? 1 : left / q->columns;
        n = u->at ? 1 : lines ? lines * q->columns : left;
        if (!u->at && column)
            n = q->columns - column < left ? q->columns - column : left;
        const size_t across = lines > 1 || n == q->columns ? q->columns : n;
        s = judge_block_compute(judge_list_at(q, which), &q->x[0], &q->x[1], at / q->columns, n / across, column,
                                across, y[0] + i);
        finish(q, at, n, y[0] + i);
    }
    return s;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"sum-order",
     "the results that were tried are as near the exact sums as sums of this model are: another order of sums, or another unit"},
    {"scale-missing", "the scales of a are left out"},
    {"scale-missing", "the scales of b are left out"},
    {"scale-missing", "all scales of blocks are left out"},
    {"scale-missing", "the scales of tensors are left out"},
    {"scale-inverted", "elements are divided by their scales"},
    {"scale-squared", "the scales are multiplied twice"},
    {"scale-order", "the scales of a are read as those of the transposed grid"},
    {"scale-order", "the scales of b are read as those of the transposed grid"},
    {"scale-order", "the scales of a and b are read as those of transposed grids"},
    {"scale-order", "the scales of a are read in the swizzled order of cuBLAS"},
    {"scale-order", "the scales of b are read in the swizzled order of cuBLAS"},
    {"scale-order", "the scales of a and b are read in the swizzled order of cuBLAS"},
    {"scale-order", "a block has the scale of the next block of the line, in a"},
    {"scale-order", "a block has the scale of the next block of the line, in b"},
    {"scale-order", "a block has the scale of the block before it, in a"},
    {"scale-order", "a block has the scale of the block before it, in b"},
    {"scale-order", "all blocks of a line have the scale of its first block, in a"},
    {"scale-order", "all blocks of a line have the scale of its first block, in b"},
    {"scale-order", "a line of a has the scales of the line before it"},
    {"scale-order", "a line of b has the scales of the line before it"},
    {"scale-squared", "lines of a are multiplied by the scales of the lines before them, too"},
    {"scale-squared", "lines of b are multiplied by the scales of the lines before them, too"},
    {"operands", "the scales of a and b have changed places"},
    {"tail", "the last block of the depth is left out"},
    {"scale-missing", "the last block of the depth has no scales"},
    {"nibbles", "the elements of each pair have changed places, in a"},
    {"nibbles", "the elements of each pair have changed places, in b"},
    {"bias", "the bias is left out"},
    {"format", "the results that were tried are no farther from the exact sums than if sums were kept in bf16"},
};
enum {
    NO_A = 1,
    NO_B,
    NO_SCALES,
    NO_TENSOR,
    INVERTED,
    SQUARED,
    TURNED_A,
    TURNED_B,
    TURNED,
    SWIZZLED_A,
    SWIZZLED_B,
    SWIZZLED,
    NEXT_A,
    NEXT_B,
    BEFORE_A,
    BEFORE_B,
    FIRST_A,
    FIRST_B,
    LINE_A,
    LINE_B,
    ALL_A,
    ALL_B,
    CHANGED,
    TAIL,
    TAIL_PLAIN,
    NIBBLES_A,
    NIBBLES_B,
    NO_BIAS,
    OF_BF16
};

enum { LINES_MOST = 64 }; /* scales that are multiplied */

static int has(const question *q, const block_row *row, size_t formula)
{
    const block_operand *a = &q->x[0], *b = &q->x[1];
    const int of_b = formula == TURNED_B || formula == SWIZZLED_B || formula == NEXT_B || formula == BEFORE_B ||
                     formula == FIRST_B || formula == LINE_B || formula == ALL_B;
    const block_operand *x = of_b ? b : a;
    switch (formula) {
    case NO_TENSOR:
        return q->tensor != 1;
    case TURNED_A:
    case TURNED_B:
        return x->grid > 1 && x->grid_lines > 1;
    case TURNED:
        return a->grid > 1 && a->grid_lines > 1 && b->grid > 1 && b->grid_lines > 1;
    case SWIZZLED_A:
    case SWIZZLED_B:
    case SWIZZLED:
        return a->down == 1 && b->down == 1 && a->grid > 1 && b->grid > 1;
    case NEXT_A:
    case NEXT_B:
    case BEFORE_A:
    case BEFORE_B:
    case FIRST_A:
    case FIRST_B:
        return x->grid > 1;
    case LINE_A:
    case LINE_B:
        return x->grid_lines > 1;
    case ALL_A:
    case ALL_B:
        return x->grid_lines > 1 && x->grid_lines <= LINES_MOST;
    case CHANGED:
        return a->grid == b->grid && a->grid_lines == b->grid_lines && a->down == b->down && a->n > 1;
    case TAIL:
    case TAIL_PLAIN:
        return a->grid > 1 || b->grid > 1;
    case NIBBLES_A:
    case NIBBLES_B:
        return q->depth % 2 == 0;
    case NO_BIAS:
        return q->list.w->of[BIAS] != NULL;
    case OF_BF16:
        return row->model.accumulator.format.mbits > 7;
    default:
        return 1;
    }
}

/* Scale t of a line, as a formula reads it; i: of a or b. */
static double scale_of(const question *q, const block_row *row, size_t formula, int i, size_t line, size_t k)
{
    const block_operand *x = &q->x[formula == CHANGED ? 1 - i : i];
    const size_t next = (size_t)(i ? NEXT_B : NEXT_A), before = (size_t)(i ? BEFORE_B : BEFORE_A);
    size_t l = line / x->down, t = k / x->across;
    if (formula == NO_SCALES || formula == (size_t)(i ? NO_B : NO_A))
        return 1;
    t = formula == next && t + 1 < x->grid           ? t + 1
        : formula == before && t                     ? t - 1
        : formula == (size_t)(i ? FIRST_B : FIRST_A) ? 0
                                                     : t;
    l = formula == (size_t)(i ? LINE_B : LINE_A) && l ? l - 1 : l;
    const int turns = formula == TURNED || formula == (size_t)(i ? TURNED_B : TURNED_A);
    const int swizzles = formula == SWIZZLED || formula == (size_t)(i ? SWIZZLED_B : SWIZZLED_A);
    size_t at = judge_block_scale_at(x, row->swizzled != swizzles, l, t);
    if (turns)
        at = x->turned ? l * x->grid + t : t * x->grid_lines + l;
    double scale = at < x->n ? (double)x->scales[at] : 1;
    for (size_t before_l = 0; formula == (size_t)(i ? ALL_B : ALL_A) && before_l < l; before_l++)
        scale *= (double)x->scales[judge_block_scale_at(x, row->swizzled, before_l, t)];
    return formula == INVERTED ? 1 / scale : formula == SQUARED ? scale * scale : scale;
}

static double value(const block_operand *x, size_t line, size_t k)
{
    return mpsim_decode(x->format, element_code(x->codes, mpsim_format_code_bytes(x->format), line * x->depth + k));
}

static double error_of(const question *q, const block_row *row, size_t formula)
{
    const mpsim_model *m = &row->model;
    const double exponent = m->fraction && m->fraction < m->accumulator.format.mbits ? m->fraction
                                                                                     : m->accumulator.format.mbits;
    const double additions = (double)q->depth + (double)q->x[0].grid;
    const double of_to = row->form == BLOCK_DEQUANT ? 2 * judge_unit_of(&row->to) : 0;
    return formula == OF_BF16 ? 0x1p-9
                              : exp2(-(exponent < 1    ? 23
                                       : exponent < 23 ? exponent
                                                       : 23)) *
                                        additions +
                                    of_to + 0x1p-21;
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const block_row *row = judge_list_at(q, which);
    const mpsim_judge_array *bias = q->list.w->of[BIAS];
    const size_t i = at / q->columns, n = at % q->columns;
    const size_t step = q->x[0].across < q->x[1].across ? q->x[0].across : q->x[1].across,
                 last = (q->depth - 1) / step * step;
    double sum = 0, size = 0;
    (void)output;
    if (!has(q, row, formula))
        return (judge_exact){NAN, 0};
    for (size_t k = 0; k < (formula == TAIL ? last : q->depth); k++) {
        const int plain = formula == TAIL_PLAIN && k >= last;
        const double by = plain ? 1 : scale_of(q, row, formula, 0, i, k) * scale_of(q, row, formula, 1, n, k);
        const double p = value(&q->x[0], i, formula == NIBBLES_A ? k ^ 1 : k) *
                         value(&q->x[1], n, formula == NIBBLES_B ? k ^ 1 : k) * by;
        sum += p;
        size += fabs(p);
    }
    const double tensor = formula == NO_TENSOR ? 1 : q->tensor,
                 of_bias = bias && formula != NO_BIAS ? number(bias, n) : 0;
    return (judge_exact){sum * tensor + of_bias,
                         error_of(q, row, formula) * size * fabs(tensor) + 0x1p-21 * fabs(of_bias)};
}

/* ---- the answer ---- */

mpsim_status judge_block(judge_case *c)
{
    question q = {
        .list = {
            .w = c,
            .size = sizeof(block_row),
            .most = ROWS_MOST,
            .read = judge_block_read,
            .texts =
                "a scaled product: dequant[:to=FORMAT], blocks[:fma][:separate] or native, :model=NAME, :swizzled"}};
    const mpsim_status s = take(&q);
    judge_table t = {.unit = 1,
                     .work = 1,
                     .sample = TRIED,
                     .compute = compute,
                     .formulas = formulas,
                     .formulas_n = sizeof formulas / sizeof formulas[0],
                     .exact = exact};
    const mpsim_status answer = s == MPSIM_OK ? judge_list_answer(&q.list, &t, add) : s;
    for (int i = 0; i < 2; i++) {
        free(q.x[i].codes);
        free(q.x[i].scales);
    }
    return answer;
}
