/* attentionback.c -- the gradients of attention in tiles of keys; see mpsim/attention.h.
 *
 * Of a tile the scores and dP are products of matrices, then rows become P and dS, whose products are the gradients.
 *
 * No tile is kept from the forward pass: scores are computed again, P comes from lse, and each product has a model
 * of its own. */
#include <mpsim/attention.h>
#include <mpsim/layer.h>

#include "../base/matrix.h"
#include "kernel/kernel.h"
#include "operands.h"
#include "rows.h"
#include "seen.h"
#include "transformer.h"

#include <math.h>

enum { ROWS_A_TASK = 16, STREAMS = 5 };

void mpsim_attention_gradient_init(mpsim_attention_gradient *g, const mpsim_attention *a)
{
    if (!g)
        return;
    memset(g, 0, sizeof *g);
    g->a = a;
    g->p.format = g->ds.format = *mpsim_format_find("binary32");
    mpsim_rounding_init(&g->p.rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_rounding_init(&g->ds.rounding, MPSIM_ROUND_NEAREST_EVEN);
}

/* The matrices of a tile, one row a query. */
typedef enum which { SCORES, DP, PROBABILITIES, DS, MATRICES } which;

typedef struct work {
    const mpsim_attention_gradient *g;
    const mpsim_attention *a;
    const mpsim_attention_shape *shape;
    const mpsim_matrix *q, *k, *v, *dy;
    const float *lse;
    const mpsim_rng *rng;
    const mpsim_pool *pool;
    const mpsim_layer_kernels *kernels;
    mpsim_math math, out; /* of the softmax, of the gradients */
    float log2e;          /* with exp2: of x, scale log2 e */
    mpsim_numbers as[MATRICES];
    unsigned char *codes[MATRICES];
    float *x, *dp;  /* of the tile: scores, then P; dP, then dS */
    float *d, *sum; /* of all rows: dots; dQ so far */
    unsigned char *part;
    float *dq, *dk, *dv;
    mpsim_key_tile tile;
} work;

/* ---- rows ---- */

/* The exponentials of the scores in x that a row sees, +0 of others. */
static inline void exponentials(const work *w, const mpsim_math *m, float *x, mpsim_keys k, size_t i)
{
    const float scale = w->a->scale, lse = w->lse[i], far = mpsim_math_mul(m, lse, 0x1.715476p+0f);
    mpsim_rows_round(m, x + k.from, w->a->exp2 ? k.to - k.from : 0);
    for (size_t j = k.from; j < k.to; j++)
        x[j] = w->a->exp2 ? mpsim_math_round(m, mpsim_f32_fma(x[j], w->log2e, -far))
                          : mpsim_math_sub(m, mpsim_causal_x(m, scale, x[j]), lse);
    (w->a->exp2 ? w->kernels->exp2 : w->kernels->exp)(x + k.from, x + k.from, k.to - k.from);
    mpsim_rows_round(m, x + k.from, k.to - k.from);
    for (size_t j = k.from; j < k.to && w->a->mask; j++)
        x[j] = mpsim_key_masked(w->a, w->shape, i, w->tile.first + j) ? 0.0f : x[j];
    memset(x, 0, k.from * sizeof *x);
    memset(x + k.to, 0, (w->tile.n - k.to) * sizeof *x);
}

static inline void differentiate(const work *w, const mpsim_math *m, const float *e, float *dp, mpsim_keys k, size_t i)
{
    const float d = mpsim_math_round(m, w->d[i]), scale = w->g->scale_last ? 1.0f : w->a->scale;
    for (size_t j = 0; j < w->tile.n; j++) {
        const int seen = j >= k.from && j < k.to && !mpsim_key_masked(w->a, w->shape, i, w->tile.first + j);
        dp[j] = seen ? mpsim_causal_ds(m, e[j], mpsim_math_round(m, dp[j]), d, scale) : 0.0f;
    }
}

static void take(const work *w, which k, size_t at, float *x)
{
    mpsim_decode_array_f32(w->as[k].format, x, w->codes[k] + at * w->as[k].bytes, w->tile.n);
}

static void give(const work *w, which k, const mpsim_rounding *r, size_t at, const float *x)
{
    mpsim_encode_array_f32(w->as[k].format, r, NULL, w->codes[k] + at * w->as[k].bytes, x, w->tile.n, NULL);
}

static void row(const work *w, size_t i)
{
    const size_t at = i * w->tile.n;
    const mpsim_keys k = mpsim_keys_of_tile(mpsim_keys_of(w->a, w->shape, i), w->tile.first, w->tile.n);
    take(w, SCORES, at, w->x + at);
    take(w, DP, at, w->dp + at);
    MPSIM_ROWS_BY_MATH(&w->math, m, exponentials(w, m, w->x + at, k, i));
    MPSIM_ROWS_BY_MATH(&w->math, m, differentiate(w, m, w->x + at, w->dp + at, k, i));
    give(w, PROBABILITIES, &w->g->p.rounding, at, w->x + at);
    give(w, DS, &w->g->ds.rounding, at, w->dp + at);
}

static void some_rows(size_t t, void *job)
{
    const work *w = job;
    const size_t first = w->tile.from + t * ROWS_A_TASK, left = w->tile.to - first;
    for (size_t i = 0; i < ROWS_A_TASK && i < left; i++)
        row(w, first + i);
}

static void each_row(work *w)
{
    const size_t n = (w->tile.to - w->tile.from - 1) / ROWS_A_TASK + 1;
    if (w->pool && n > 1) {
        w->pool->run(w->pool->self, n, some_rows, w);
        return;
    }
    for (size_t t = 0; t < n; t++)
        some_rows(t, w);
}

/* ---- products ---- */

/* Codes of rows x cols, of the operands, by a model; stream: that of random bits. */
static mpsim_status multiply(const work *w, const mpsim_model *m, size_t rows, size_t cols, size_t depth,
                             const mpsim_matrix *a, const mpsim_matrix *b, void *codes, size_t stream)
{
    mpsim_rng rng = {0, 0, 0};
    if (w->rng) {
        rng = *w->rng;
        rng.stream += STREAMS * (w->tile.first / (w->a->tile ? w->a->tile : w->shape->keys)) + stream;
    }
    return mpsim_gemm(m, rows, cols, depth, a, b, NULL, codes, cols, w->rng ? &rng : NULL, w->pool);
}

/* The rows of a matrix of the tile. */
static unsigned char *rows_of(const work *w, which k)
{
    return w->codes[k] + w->tile.from * w->tile.n * w->as[k].bytes;
}

static mpsim_status multiply_scores(const work *w)
{
    const size_t rows = w->tile.to - w->tile.from;
    const mpsim_matrix q = mpsim_from_row(w->q, w->tile.from, 0), dy = mpsim_from_row(w->dy, w->tile.from, 0);
    const mpsim_matrix k = mpsim_from_row(w->k, w->tile.first, 1), v = mpsim_from_row(w->v, w->tile.first, 1);
    const mpsim_status s = multiply(w, w->a->scores, rows, w->tile.n, w->shape->dim, &q, &k, rows_of(w, SCORES), 0);
    return s != MPSIM_OK ? s : multiply(w, w->g->dp, rows, w->tile.n, w->shape->size, &dy, &v, rows_of(w, DP), 1);
}

/* The gradient of the tile's keys or values: a matrix of the tile, transposed, times rows of x. */
static mpsim_status multiply_columns(const work *w, const mpsim_model *m, which k, const mpsim_matrix *x, size_t cols,
                                     float *to, size_t stream)
{
    const mpsim_matrix a = {w->as[k].format, rows_of(w, k), w->tile.n, 1}, b = mpsim_from_row(x, w->tile.from, 0);
    float *const row = to + w->tile.first * cols;
    const mpsim_status s = multiply(w, m, w->tile.n, cols, w->tile.to - w->tile.from, &a, &b, w->part, stream);
    if (s == MPSIM_OK)
        mpsim_decode_array_f32(&m->result.format, row, w->part, w->tile.n * cols);
    return s;
}

/* The tile's part of dQ, added to those before it. */
static mpsim_status add_dquery(const work *w)
{
    const size_t dim = w->shape->dim, rows = w->tile.to - w->tile.from;
    const mpsim_format *const f = &w->g->dquery->result.format;
    const mpsim_matrix a = {w->as[DS].format, rows_of(w, DS), w->tile.n, 0}, b = mpsim_from_row(w->k, w->tile.first, 0);
    float *const sum = w->sum + w->tile.from * dim, some[64];
    const mpsim_status s = multiply(w, w->g->dquery, rows, dim, w->tile.n, &a, &b, w->part, 4);
    for (size_t i = 0; s == MPSIM_OK && i < rows * dim; i += 64) {
        const size_t n = rows * dim - i < 64 ? rows * dim - i : 64;
        mpsim_decode_array_f32(f, some, w->part + i * mpsim_format_code_bytes(f), n);
        for (size_t j = 0; j < n; j++)
            sum[i + j] = mpsim_f32_add(sum[i + j], some[j]);
    }
    return s;
}

static mpsim_status multiply_gradients(const work *w)
{
    mpsim_status s = MPSIM_OK;
    if (w->dv)
        s = multiply_columns(w, w->g->dvalue, PROBABILITIES, w->dy, w->shape->size, w->dv, 2);
    if (s == MPSIM_OK && w->dk)
        s = multiply_columns(w, w->g->dkey, DS, w->q, w->shape->dim, w->dk, 3);
    return s == MPSIM_OK && w->dq ? add_dquery(w) : s;
}

/* ---- tiles ---- */

static mpsim_status tile(work *w)
{
    const mpsim_status s = multiply_scores(w);
    if (s != MPSIM_OK)
        return s;
    each_row(w);
    return multiply_gradients(w);
}

static mpsim_status tiles(work *w)
{
    const size_t n = mpsim_key_tiles(w->a, w->shape);
    mpsim_status s = MPSIM_OK;
    for (size_t t = 0; t < n && s == MPSIM_OK; t++) {
        w->tile = mpsim_key_tile_at(w->a, w->shape, t);
        if (w->tile.from < w->tile.to)
            s = tile(w);
    }
    return s;
}

/* ---- begin and end ---- */

/* d of every row, from y unless it is given. */
static void dots(work *w, const float *y, const float *given)
{
    const size_t size = w->shape->size;
    for (size_t i = 0; i < w->shape->queries; i++) {
        mpsim_lanes a = {{0}};
        for (size_t c = 0; c < size && !given; c++) {
            const size_t step = w->dy->transposed ? w->dy->stride : 1, line = w->dy->transposed ? 1 : w->dy->stride;
            const unsigned char *code = (const unsigned char *)w->dy->codes +
                                        (i * line + c * step) * mpsim_format_code_bytes(w->dy->format);
            float g;
            mpsim_decode_array_f32(w->dy->format, &g, code, 1);
            float *const lane = &a.s[c % MPSIM_LANES_ROW];
            *lane = mpsim_f32_add(*lane, mpsim_f32_mul(g, y[i * size + c]));
        }
        w->d[i] = given ? given[i] : mpsim_lanes_sum(&mpsim_rows_binary32, &a);
    }
}

static void finish(const work *w, float *to, const float *x, size_t n, float scale)
{
    for (size_t i = 0; to && i < n; i++)
        to[i] = w->g->scale_last && scale != 1 ? mpsim_f32_mul(x[i], scale) : x[i];
    if (to)
        mpsim_rows_round(&w->out, to, n);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static mpsim_status allocate(work *w)
{
    const mpsim_attention_shape *s = w->shape;
    const size_t width = w->a->tile && w->a->tile < s->keys ? w->a->tile : s->keys;
    int all = 1;
    for (int k = 0; k < MATRICES; k++) {
        w->codes[k] = mpsim_zeros(s->queries, width, w->as[k].bytes);
        all = all && w->codes[k];
    }
    w->x = mpsim_zeros(s->queries, width, sizeof *w->x);
    w->dp = mpsim_zeros(s->queries, width, sizeof *w->dp);
    w->d = mpsim_zeros(s->queries, 1, sizeof *w->d);
    w->sum = mpsim_zeros(s->queries, s->dim, sizeof *w->sum);
    w->part = mpsim_zeros(larger(s->queries, width), larger(s->dim, s->size), sizeof(uint64_t));
    return all && w->x && w->dp && w->d && w->sum && w->part ? MPSIM_OK : MPSIM_ENOMEM;
}

static void release(work *w)
{
    for (int k = 0; k < MATRICES; k++)
        free(w->codes[k]);
    free(w->x);
    free(w->dp);
    free(w->d);
    free(w->sum);
    free(w->part);
}

static mpsim_status run(work *w, const float *y, const float *given)
{
    const mpsim_attention_shape *shape = w->shape;
    w->as[SCORES] = mpsim_numbers_of(&w->a->scores->result.format);
    w->as[DP] = mpsim_numbers_of(&w->g->dp->result.format);
    w->as[PROBABILITIES] = mpsim_numbers_of(&w->g->p.format);
    w->as[DS] = mpsim_numbers_of(&w->g->ds.format);
    w->log2e = (float)((double)w->a->scale * 0x1.71547652b82fep+0);
    w->kernels = mpsim_layer_kernels_active();
    mpsim_status s = allocate(w);
    if (s == MPSIM_OK) {
        dots(w, y, given);
        memset(w->dk ? w->dk : w->x, 0, w->dk ? shape->keys * shape->dim * sizeof *w->dk : 0);
        memset(w->dv ? w->dv : w->x, 0, w->dv ? shape->keys * shape->size * sizeof *w->dv : 0);
        s = tiles(w);
    }
    if (s == MPSIM_OK) {
        finish(w, w->dq, w->sum, shape->queries * shape->dim, w->a->scale);
        finish(w, w->dk, w->dk, shape->keys * shape->dim, w->a->scale);
        finish(w, w->dv, w->dv, shape->keys * shape->size, 1);
    }
    release(w);
    return s;
}

/* ---- checks ---- */

static mpsim_status check_models(const mpsim_attention_gradient *g)
{
    const mpsim_model *const models[] = {g->a->scores, g->dp, g->dvalue, g->dkey, g->dquery};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!models[i] || mpsim_model_check(models[i]) != MPSIM_OK)
            return MPSIM_EINVAL;
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; s == MPSIM_OK && i < sizeof models / sizeof *models; i++)
        s = mpsim_check_zero(&models[i]->result.format);
    return s;
}

/* Whether each model takes its operands: what a product would refuse only when others are done. */
static mpsim_status check_products(const work *w)
{
    const mpsim_format *p = &w->g->p.format, *ds = &w->g->ds.format;
    const struct {
        const mpsim_model *model;
        const mpsim_format *a, *b;
    } products[] = {{w->a->scores, w->q->format, w->k->format},
                    {w->g->dp, w->dy->format, w->v->format},
                    {w->g->dvalue, p, w->dy->format},
                    {w->g->dkey, ds, w->q->format},
                    {w->g->dquery, ds, w->k->format}};
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; s == MPSIM_OK && i < sizeof products / sizeof *products; i++) {
        const mpsim_matrix a = {products[i].a, "", 1, 0}, b = {products[i].b, "", 1, 0};
        uint64_t code;
        s = mpsim_gemm(products[i].model, 1, 1, 0, &a, &b, NULL, &code, 1, w->rng, NULL);
    }
    return s;
}

static mpsim_status check(work *w, const float *y, const float *given)
{
    const mpsim_attention *a = w->a;
    const mpsim_attention_shape *s = w->shape;
    if (!mpsim_is_plain_rounding(&w->g->p) || !mpsim_is_plain_rounding(&w->g->ds) || !isfinite(a->scale) ||
        (a->exp2 && !(a->scale > 0)))
        return MPSIM_EINVAL;
    if (!mpsim_is_operand(w->q, s->queries, s->dim) || !mpsim_is_operand(w->k, s->keys, s->dim) ||
        !mpsim_is_operand(w->v, s->keys, s->size) || !mpsim_is_operand(w->dy, s->queries, s->size))
        return MPSIM_EINVAL;
    if (s->queries > 0 && (!w->lse || (!y && !given)))
        return MPSIM_EINVAL;
    mpsim_status status = check_models(w->g);
    const mpsim_format *const formats[] = {&w->g->p.format, &w->g->ds.format, w->dy->format};
    for (size_t i = 0; status == MPSIM_OK && i < 3; i++)
        status = mpsim_check_zero(formats[i]);
    if (status == MPSIM_OK && a->softmax)
        status = mpsim_check_zero(a->softmax);
    if (status == MPSIM_OK)
        status = mpsim_math_init(&w->math, a->softmax);
    if (status == MPSIM_OK)
        status = mpsim_math_init(&w->out, w->g->f);
    return status == MPSIM_OK ? check_products(w) : status;
}

mpsim_status mpsim_attention_backward(const mpsim_attention_gradient *g, const mpsim_attention_shape *shape,
                                      const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v,
                                      const mpsim_matrix *dy, const float *y, const float *dots, const float *lse,
                                      float *dq, float *dk, float *dv, const mpsim_rng *rng, const mpsim_pool *pool)
{
    if (!g || !g->a || !shape || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    work w = {
        .g = g, .a = g->a, .shape = shape, .q = q, .k = k, .v = v, .dy = dy, .lse = lse, .rng = rng, .pool = pool};
    w.dq = dq;
    w.dk = dk;
    w.dv = dv;
    mpsim_status s = check(&w, y, dots);
    if (s == MPSIM_OK && shape->queries && !shape->dim && !shape->size && shape->keys > INT32_MAX) /* in no memory */
        s = MPSIM_ERANGE;
    return s == MPSIM_OK ? run(&w, y, dots) : s;
}
