/* attention64.c -- attention in binary64, not tiled; see mpsim/attention.h. */
#include "../base/matrix.h"
#include "seen.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 32 }; /* queries whose scores are there at once */

typedef struct job {
    const mpsim_attention *a;
    const mpsim_attention_shape *shape;
    double *s, *v, *y; /* scores of some rows; all of v; results */
    size_t first;      /* of these rows */
} job;

/* Row `at` of those whose scores are there: its exponentials over its largest score and their products with V. */
static void do_row(size_t at, void *context)
{
    const job *j = context;
    const size_t i = j->first + at, size = j->shape->size;
    const mpsim_keys seen = mpsim_keys_of(j->a, j->shape, i);
    double *const s = j->s + at * j->shape->keys, *const y = j->y + i * size;
    double most = -HUGE_VAL, sum = 0;
    for (size_t c = 0; c < size; c++)
        y[c] = 0;
    for (size_t k = seen.from; k < seen.to; k++) {
        s[k] *= (double)j->a->scale;
        if (!mpsim_key_masked(j->a, j->shape, i, k))
            most = s[k] > most || s[k] != s[k] ? s[k] : most;
    }
    for (size_t k = seen.from; k < seen.to; k++) {
        if (mpsim_key_masked(j->a, j->shape, i, k))
            continue;
        const double e = exp(s[k] - most);
        sum += e;
        for (size_t c = 0; c < size; c++)
            y[c] += e * j->v[k * size + c];
    }
    for (size_t c = 0; mpsim_keys_any(j->a, j->shape, i, seen, 0) && c < size; c++)
        y[c] /= sum;
}

static mpsim_status some_rows(job *j, size_t n, const mpsim_model *exact, const mpsim_matrix *q, const mpsim_matrix *k,
                              const mpsim_pool *pool)
{
    const size_t step = q->transposed ? 1 : q->stride;
    mpsim_matrix rows = *q, columns = *k;
    if (j->shape->dim > 0)
        rows.codes = (const unsigned char *)q->codes + j->first * step * mpsim_format_code_bytes(q->format);
    columns.transposed = !k->transposed;
    const mpsim_status s = mpsim_gemm(exact, n, j->shape->keys, j->shape->dim, &rows, &columns, NULL, j->s,
                                      j->shape->keys, NULL, pool);
    if (s == MPSIM_OK && pool)
        pool->run(pool->self, n, do_row, j);
    for (size_t i = 0; s == MPSIM_OK && !pool && i < n; i++)
        do_row(i, j);
    return s;
}

static void decode_rows(double *to, const mpsim_matrix *m, size_t rows, size_t columns)
{
    const size_t bytes = mpsim_format_code_bytes(m->format);
    for (size_t i = 0; i < rows; i++)
        for (size_t c = 0; m->transposed && c < columns; c++)
            mpsim_decode_array(m->format, to + i * columns + c,
                               (const unsigned char *)m->codes + (c * m->stride + i) * bytes, 1);
    for (size_t i = 0; !m->transposed && i < rows; i++)
        mpsim_decode_array(m->format, to + i * columns, (const unsigned char *)m->codes + i * m->stride * bytes,
                           columns);
}

static double *memory(size_t n, size_t m)
{
    return m && n > SIZE_MAX / sizeof(double) / m ? NULL : malloc((n && m ? n * m : 1) * sizeof(double));
}

mpsim_status mpsim_attention_exact(const mpsim_attention *a, const mpsim_attention_shape *shape, const mpsim_matrix *q,
                                   const mpsim_matrix *k, const mpsim_matrix *v, double *y, const mpsim_pool *pool)
{
    mpsim_model exact;
    if (!a || !shape || !isfinite(a->scale) || !mpsim_is_operand(q, shape->queries, shape->dim) ||
        !mpsim_is_operand(k, shape->keys, shape->dim) || !mpsim_is_operand(v, shape->keys, shape->size) ||
        (!y && shape->queries && shape->size) || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    if (shape->queries == 0 || shape->size == 0)
        return MPSIM_OK;
    job j = {a, shape, memory(ROWS, shape->keys), memory(shape->keys, shape->size), y, 0};
    mpsim_status s = mpsim_model_parse(&exact, "exact:binary64");
    if (!j.s || !j.v)
        s = MPSIM_ENOMEM;
    else
        decode_rows(j.v, v, shape->keys, shape->size);
    for (; s == MPSIM_OK && j.first < shape->queries; j.first += ROWS) {
        const size_t left = shape->queries - j.first;
        s = some_rows(&j, left < ROWS ? left : ROWS, &exact, q, k, pool);
    }
    free(j.s);
    free(j.v);
    return s;
}
