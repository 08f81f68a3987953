/* sumtile.c -- see sumtile.h. */
#include "sumtile.h"

#include "../base/environment.h"
#include "dot.h"
#include "panel.h"
#include "strided.h"

#include <math.h>
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

static int is_rounded(const mpsim_rounded *r)
{
    return mpsim_format_check(&r->format) == MPSIM_OK && mpsim_rounding_check(&r->rounding) == MPSIM_OK &&
           r->rounding.mode < MPSIM_ROUND_STOCHASTIC_A;
}

static int is_wide(const mpsim_model *m)
{
    return !mpsim_in_binary32(&m->result.format);
}

mpsim_status mpsim_summing_check(const mpsim_convolution_how *how, const mpsim_format *a, const mpsim_format *b,
                                 const mpsim_strided *result)
{
    const mpsim_rounded *r = result->rounded;
    const mpsim_status s = mpsim_dot_check(how->model, a, b, how->rng);
    if (s != MPSIM_OK)
        return s;
    if (!is_wide(how->model) && (double)(float)how->factor != how->factor)
        return MPSIM_EINVAL;
    if (mpsim_format_check(result->format) != MPSIM_OK || (r && !is_rounded(r)))
        return MPSIM_EINVAL;
    if (!r || mpsim_format_same(&r->format, result->format))
        return MPSIM_OK;
    return contains(result->format, &r->format) && (mpsim_in_binary32(&r->format) || is_wide(how->model))
               ? MPSIM_OK
               : MPSIM_ERANGE;
}

void mpsim_summing_init(mpsim_summing *s, const mpsim_convolution_how *how, const mpsim_format *a,
                        const mpsim_format *b, const mpsim_strided *result)
{
    *s = (mpsim_summing){
        .how = how, .a = a, .b = b, .result = result, .wide = is_wide(how->model), .piece = piece_of(how->model)};
}

void *mpsim_summing_bias(const mpsim_summing *s, const mpsim_strided *bias, size_t n)
{
    mpsim_rounded to = {.format = *mpsim_format_find(s->wide ? "binary64" : "binary32")};
    mpsim_axes x = {.format = bias->format, .codes = (const unsigned char *)bias->codes, .rounded = &to};
    void *values = malloc((n ? n : 1) * sizeof(double));
    mpsim_rounding_init(&to.rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_axes_add(&x, n, bias->stride[1]);
    if (values)
        mpsim_axes_put(&x, values, NULL);
    return values;
}

/* ---- sums ---- */

int mpsim_sumtile_open(mpsim_sumtile *t, const mpsim_summing *s, size_t rows, size_t columns)
{
    const size_t n = rows * columns;
    memset(t, 0, sizeof *t);
    t->s = s;
    t->rows = rows;
    t->columns = columns;
    t->row = (mpsim_place *)malloc((rows + columns) * sizeof *t->row);
    t->sums = (unsigned char *)malloc(n * sizeof(uint64_t)); /* in turn of results */
    t->values = malloc(n * sizeof(double));
    t->column = t->row ? t->row + rows : NULL;
    return t->row && t->sums && t->values;
}

void mpsim_sumtile_close(mpsim_sumtile *t)
{
    free(t->row);
    free(t->sums);
    free(t->values);
}

mpsim_status mpsim_sumtile_add(mpsim_sumtile *t, const mpsim_matrix *a, const mpsim_matrix *b, size_t depth,
                               int is_first)
{
    const mpsim_model *m = t->s->how->model;
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
    const size_t of_a = depth * mpsim_format_code_bytes(s->a), of_b = depth * mpsim_format_code_bytes(s->b);
    const size_t bytes = mpsim_format_code_bytes(&s->how->model->result.format);
    mpsim_status status = MPSIM_OK;
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = 0; j < t->columns && status == MPSIM_OK; j++) {
            mpsim_rng rng = *s->how->rng;
            const mpsim_matrix row = {s->a, (const unsigned char *)a + i * of_a, depth, 0};
            const mpsim_matrix column = {s->b, (const unsigned char *)b + j * of_b, depth, 1};
            rng.index += (t->row[i].number + t->column[j].number) << 32;
            status = mpsim_gemm(s->how->model, 1, 1, depth, &row, &column, NULL, t->sums + (i * t->columns + j) * bytes,
                                1, &rng, NULL);
        }
    return status;
}

/* ---- what follows the sums ---- */

/* In functions of their own, which the environment cannot be moved past. */
static __attribute__((noinline)) void finish_f32(const mpsim_sumtile *t, float *v)
{
    const float factor = (float)t->s->how->factor, *bias = (const float *)t->s->bias;
    const size_t n = t->rows * t->columns;
    for (size_t i = 0; factor != 1 && i < n; i++)
        v[i] *= factor;
    for (size_t i = 0; bias && i < t->rows; i++)
        for (size_t j = 0; j < t->columns; j++)
            v[i * t->columns + j] += bias[t->bias_by_row ? t->row[i].output : t->column[j].output];
    for (size_t i = 0; (bias || factor != 1) && i < n; i++)
        v[i] = isnan(v[i]) ? NAN : v[i];
}

static __attribute__((noinline)) void finish_f64(const mpsim_sumtile *t, double *v)
{
    const double factor = t->s->how->factor, *bias = (const double *)t->s->bias;
    const size_t n = t->rows * t->columns;
    for (size_t i = 0; factor != 1 && i < n; i++)
        v[i] *= factor;
    for (size_t i = 0; bias && i < t->rows; i++)
        for (size_t j = 0; j < t->columns; j++)
            v[i * t->columns + j] += bias[t->bias_by_row ? t->row[i].output : t->column[j].output];
    for (size_t i = 0; (bias || factor != 1) && i < n; i++)
        v[i] = isnan(v[i]) ? (double)NAN : v[i];
}

static void finish(mpsim_sumtile *t)
{
    const mpsim_environment before = mpsim_environment_default();
    const size_t n = t->rows * t->columns;
    const mpsim_format *f = &t->s->how->model->result.format;
    if (t->s->wide) {
        mpsim_decode_array(f, (double *)t->values, t->sums, n);
        finish_f64(t, (double *)t->values);
    } else {
        mpsim_decode_array_f32(f, (float *)t->values, t->sums, n);
        finish_f32(t, (float *)t->values);
    }
    mpsim_environment_restore(before);
}

/* The values rounded as the result asks, as codes in memory's format. */
static void encode(mpsim_sumtile *t)
{
    const mpsim_strided *y = t->s->result;
    const size_t n = t->rows * t->columns;
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    const int twice = y->rounded && !mpsim_format_same(&y->rounded->format, y->format);
    const mpsim_rounding *last = y->rounded && !twice ? &y->rounded->rounding : &nearest;
    if (t->s->wide) {
        double *v = (double *)t->values;
        if (twice)
            mpsim_round_array_f64(&y->rounded->format, &y->rounded->rounding, NULL, v, v, n, NULL);
        mpsim_encode_array_f64(y->format, last, NULL, t->sums, v, n, NULL);
    } else {
        float *v = (float *)t->values;
        if (twice)
            mpsim_round_array_f32(&y->rounded->format, &y->rounded->rounding, NULL, v, v, n, NULL);
        mpsim_encode_array_f32(y->format, last, NULL, t->sums, v, n, NULL);
    }
}

/* How far the places of n rows or columns are apart, if all are alike; else 0. */
static ptrdiff_t step_of(const mpsim_place *p, size_t n)
{
    const ptrdiff_t step = n > 1 ? p[1].at - p[0].at : 1;
    for (size_t i = 2; i < n; i++)
        if (p[i].at - p[i - 1].at != step)
            return 0;
    return step;
}

/* A line of the tile, n codes `next` apart, to places from `at` on. */
static void store_line(const mpsim_sumtile *t, ptrdiff_t at, const mpsim_place *p, size_t n, ptrdiff_t step,
                       size_t first, size_t next)
{
    const size_t bytes = mpsim_format_code_bytes(t->s->result->format);
    const ptrdiff_t each = (ptrdiff_t)bytes;
    unsigned char *to = (unsigned char *)t->s->result->codes + at * each;
    const unsigned char *from = t->sums + first * bytes;
    if (step) {
        mpsim_copy_codes(bytes, to + p[0].at * each, step, from, (ptrdiff_t)next, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        mpsim_copy_codes(bytes, to + p[i].at * each, 1, from + i * next * bytes, 1, 1);
}

void mpsim_sumtile_store(mpsim_sumtile *t)
{
    const ptrdiff_t along_rows = step_of(t->column, t->columns), along_columns = step_of(t->row, t->rows);
    finish(t);
    encode(t);
    if (t->columns > 1 && (along_rows == 1 || (!along_columns && t->columns > t->rows))) {
        for (size_t i = 0; i < t->rows; i++)
            store_line(t, t->row[i].at, t->column, t->columns, along_rows, i * t->columns, 1);
        return;
    }
    for (size_t j = 0; j < t->columns; j++)
        store_line(t, t->column[j].at, t->row, t->rows, along_columns, j, t->columns);
}
