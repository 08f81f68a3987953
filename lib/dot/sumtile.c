/* sumtile.c -- see sumtile.h. */
#include "sumtile.h"

#include "../base/environment.h"
#include "dot.h"
#include "panel.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 2048 /* products; panels of them stay in a cache */ };

/* ---- what can be done ---- */

/* Whether every number of f is one of `in`. */
static int contains(const mpsim_format *in, const mpsim_format *f)
{
    return in->mbits >= f->mbits && mpsim_format_last_bit(in) <= mpsim_format_last_bit(f) &&
           mpsim_format_max(in) >= mpsim_format_max(f) && (in->inf || !f->inf) &&
           (in->nan != MPSIM_NAN_NONE || f->nan == MPSIM_NAN_NONE) &&
           (in->zero == MPSIM_ZERO_SIGNED || in->zero == f->zero) && mpsim_has_sign(in) >= mpsim_has_sign(f);
}

/* How many products a sum can be cut behind, or multiples of it, so that the number which is there goes on as c; 0: it
 * cannot be cut. That number must be one of the result's format, which leaves it as it is. */
static size_t unit_of(const mpsim_model *m)
{
    const mpsim_rounded *last = m->chunk ? &m->outer : &m->accumulator;
    const mpsim_rounding *r = &m->result.rounding;
    if (!contains(&m->result.format, &last->format) || r->flush_input || r->flush_output ||
        r->infinity != MPSIM_INFINITY_KEEP || r->nan != last->rounding.nan)
        return 0;
    if (m->chunk)
        return m->chunk;
    if (m->addition == MPSIM_ADDITION_EXACT || m->order == MPSIM_ORDER_PAIRWISE || m->order == MPSIM_ORDER_LANES)
        return 0;
    return m->addition == MPSIM_ADDITION_FMA || m->addition == MPSIM_ADDITION_MULADD
               ? m->order == MPSIM_ORDER_ODD_FIRST ? 2 : 1
               : m->length;
}

static size_t piece_of(const mpsim_model *m)
{
    const size_t unit = unit_of(m);
    return unit && unit < PIECE ? PIECE / unit * unit : unit;
}

mpsim_status mpsim_summing_check(const mpsim_convolution *c)
{
    const mpsim_status s = mpsim_dot_check(c->model, c->a->format, c->b->format, c->rng);
    if (s != MPSIM_OK)
        return s;
    if (!mpsim_is_stack(c->d, 1) || (c->numbers && mpsim_format_check(c->numbers) != MPSIM_OK) ||
        (c->bias && !mpsim_is_stack(c->bias, 0)))
        return MPSIM_EINVAL;
    if (c->bias && mpsim_in_binary32(&c->model->result.format) && !mpsim_in_binary32(c->bias->format))
        return MPSIM_ERANGE;
    return !c->numbers || mpsim_format_same(c->numbers, c->d->format) || contains(c->d->format, c->numbers)
               ? MPSIM_OK
               : MPSIM_ERANGE;
}

void mpsim_summing_init(mpsim_summing *s, const mpsim_convolution *c)
{
    s->c = c;
    s->piece = piece_of(c->model);
    mpsim_epilogue_init(&s->e, &c->model->result.format, c->numbers, c->d->format);
    mpsim_epilogue_scale(&s->e, c->a->inverse, c->b->inverse, c->factor);
    s->e.counting = c->counts != NULL;
}

mpsim_status mpsim_summing_end(mpsim_summing *s)
{
    mpsim_epilogue_count(&s->e, s->c->counts);
    return (mpsim_status)s->e.status;
}

/* ---- sums ---- */

int mpsim_sumtile_open(mpsim_sumtile *t, mpsim_summing *s, size_t rows, size_t columns)
{
    memset(t, 0, sizeof *t);
    t->s = s;
    t->rows = rows;
    t->columns = columns;
    t->row = (mpsim_spot *)malloc((rows + columns) * sizeof *t->row);
    t->sums = (unsigned char *)malloc(rows * columns * mpsim_format_code_bytes(&s->c->model->result.format));
    t->column = t->row ? t->row + rows : NULL;
    return t->row && t->sums;
}

void mpsim_sumtile_close(mpsim_sumtile *t)
{
    free(t->row);
    free(t->sums);
}

mpsim_status mpsim_sumtile_add(mpsim_sumtile *t, const mpsim_matrix *a, const mpsim_matrix *b, size_t depth,
                               int is_first)
{
    const mpsim_model *m = t->s->c->model;
    const mpsim_matrix c = {&m->result.format, t->sums, t->columns, 0};
    return mpsim_gemm(m, t->rows, t->columns, depth, a, b, is_first ? NULL : &c, t->sums, t->columns, NULL, NULL);
}

static const void *from_product(const mpsim_matrix *x, int by_rows, size_t k)
{
    const size_t step = by_rows == !x->transposed ? 1 : x->stride;
    return (const unsigned char *)x->codes + k * step * mpsim_format_code_bytes(x->format);
}

mpsim_status mpsim_sumtile_whole(mpsim_sumtile *t, const mpsim_matrix *a, const mpsim_matrix *b, size_t depth)
{
    const size_t piece = t->s->piece && t->s->piece < depth ? t->s->piece : depth;
    mpsim_status s = depth ? MPSIM_OK : mpsim_sumtile_add(t, a, b, 0, 1);
    for (size_t k = 0; k < depth && s == MPSIM_OK; k += piece) {
        mpsim_matrix ak = *a, bk = *b;
        ak.codes = from_product(a, 1, k);
        bk.codes = from_product(b, 0, k);
        s = mpsim_sumtile_add(t, &ak, &bk, depth - k < piece ? depth - k : piece, k == 0);
    }
    return s;
}

mpsim_status mpsim_sumtile_dots(mpsim_sumtile *t, const void *a, const void *b, size_t depth)
{
    const mpsim_summing *s = t->s;
    const mpsim_format *fa = s->c->a->format, *fb = s->c->b->format;
    const size_t of_a = depth * mpsim_format_code_bytes(fa), of_b = depth * mpsim_format_code_bytes(fb);
    const size_t bytes = mpsim_format_code_bytes(&s->c->model->result.format);
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = 0; j < t->columns && status == MPSIM_OK; j++) {
            mpsim_rng rng = *s->c->rng;
            const mpsim_matrix row = {fa, (const unsigned char *)a + i * of_a, depth, 0};
            const mpsim_matrix column = {fb, (const unsigned char *)b + j * of_b, depth, 1};
            rng.index += (t->row[i].number + t->column[j].number) << 32;
            status = mpsim_gemm(s->c->model, 1, 1, depth, &row, &column, NULL, t->sums + (i * t->columns + j) * bytes,
                                1, &rng, NULL);
        }
    return status;
}

/* ---- what follows the sums ---- */

/* How many of n rows or columns, from the first on, are equally far apart in memory; *step: how far. */
static size_t count_even(const mpsim_spot *p, size_t n, int64_t *step)
{
    size_t i = 1;
    for (*step = n > 1 ? p[1].at - p[0].at : 0; i < n && p[i].at - p[i - 1].at == *step; i++)
        ;
    return i;
}

static mpsim_addend bias_of(const mpsim_sumtile *t, size_t row, size_t column)
{
    const mpsim_stack *bias = t->s->c->bias;
    if (!bias)
        return (mpsim_addend){0};
    const int64_t step = bias->strides[bias->rank - 1];
    const size_t output = t->bias_by_row ? t->row[row].output : t->column[column].output;
    return (mpsim_addend){bias->format, bias->codes, (int64_t)output * step, t->bias_by_row ? step : 0,
                          t->bias_by_row ? 0 : step};
}

/* Rows and columns that are equally far apart. */
static void store_part(const mpsim_sumtile *t, size_t row, size_t rows, int64_t row_step, size_t column, size_t columns,
                       int64_t column_step)
{
    enum { ROWS = MPSIM_ENDING_ROWS, N = MPSIM_PANEL };
    mpsim_ending to = {.e = &t->s->e,
                       .d = t->s->c->d->codes,
                       .first = t->row[row].at + t->column[column].at,
                       .row = row_step,
                       .col = column_step,
                       .bias = bias_of(t, row, column)};
    const size_t bytes = mpsim_format_code_bytes(to.e->sums);
    const unsigned char *sums = t->sums + (row * t->columns + column) * bytes;
    for (size_t i = 0; i < rows; i += ROWS)
        for (size_t j = 0; j < columns; j += N)
            mpsim_end_sums(&to, i, rows - i < ROWS ? rows - i : ROWS, j, columns - j < N ? columns - j : N,
                           sums + (i * t->columns + j) * bytes, t->columns);
}

void mpsim_sumtile_store(mpsim_sumtile *t)
{
    const mpsim_environment before = mpsim_environment_default();
    int64_t down, across;
    for (size_t i = 0, rows; i < t->rows; i += rows) {
        rows = count_even(t->row + i, t->rows - i, &down);
        for (size_t j = 0, columns; j < t->columns; j += columns) {
            columns = count_even(t->column + j, t->columns - j, &across);
            store_part(t, i, rows, down, j, columns, across);
        }
    }
    mpsim_environment_restore(before);
}
