/* attention.c -- attention in tiles of keys; see mpsim/attention.h.
 *
 * The scores of a tile are one product of matrices, its part of O another; between them rows go their ways.
 *
 * O is a number of the result format of its model after every step. So "O in bf16" is a model (:result=bf16), not
 * an option. sim/attention compares the result with exact attention. The trainer's tiles
 * (lib/train/decoder/tiles.c) are made of operations of engines and share no code with this file. */
#include <mpsim/attention.h>
#include <mpsim/layer.h>

#include "../base/matrix.h"
#include "kernel/kernel.h"
#include "operands.h"
#include "rows.h"
#include "seen.h"
#include "transformer.h"

#include <math.h>

enum { ROWS_A_TASK = 16, CHUNK = 64, DEFAULT_TILE = 128 };

void mpsim_attention_init(mpsim_attention *a, size_t dim)
{
    if (!a)
        return;
    memset(a, 0, sizeof *a);
    a->p.format = *mpsim_format_find("binary32");
    mpsim_rounding_init(&a->p.rounding, MPSIM_ROUND_NEAREST_EVEN);
    a->p_scale = 1;
    a->scale = (float)(1 / sqrt((double)(dim ? dim : 1)));
    a->tile = DEFAULT_TILE;
    a->left = a->right = SIZE_MAX;
}

/* ---- the work ---- */

/* A row between its tiles. */
typedef struct row {
    float max, sum;
    float top;   /* the largest x of all tiles, */
    size_t ties; /* and how often it is there   */
    uint64_t moved;
} row;

typedef struct work {
    const mpsim_attention *a;
    const mpsim_attention_shape *shape;
    const mpsim_matrix *q, *k, *v;
    const mpsim_rng *rng;
    const mpsim_pool *pool;
    const mpsim_layer_kernels *kernels;
    mpsim_numbers s, p, o;
    mpsim_math s_math, o_math, y_math; /* of the softmax, of O, of y */
    mpsim_rounding nearest;
    float back;  /* 1 / p_scale */
    float log2e; /* with exp2: of x, scale log2 e */
    float *x;    /* of the tile: scores, exponentials, P in turn */
    float *sums;
    unsigned char *s_codes, *p_codes, *o_codes;
    row *rows;
    mpsim_attention_counts *counts; /* of a task each */
    mpsim_key_tile tile;
    float *y, *lse; /* results */
    uint8_t *flags;
} work;

static mpsim_keys seen_of_tile(const work *w, size_t i)
{
    return mpsim_keys_of_tile(mpsim_keys_of(w->a, w->shape, i), w->tile.first, w->tile.n);
}

static int sees_any(const work *w, size_t i)
{
    return mpsim_keys_any(w->a, w->shape, i, mpsim_keys_of(w->a, w->shape, i), 0);
}

/* task(w, i) for rows from `from` to `to` - 1, on the threads. */
typedef struct rows_job {
    work *w;
    size_t from, to;
    void (*task)(work *w, size_t i, mpsim_attention_counts *c);
} rows_job;

static void some_rows(size_t t, void *context)
{
    const rows_job *j = context;
    const size_t first = j->from + t * ROWS_A_TASK, left = j->to - first;
    for (size_t i = 0; i < ROWS_A_TASK && i < left; i++)
        j->task(j->w, first + i, &j->w->counts[t]);
}

static void each_row(work *w, size_t from, size_t to, void (*task)(work *, size_t, mpsim_attention_counts *))
{
    rows_job j = {w, from, to, task};
    const size_t n = from < to ? (to - from - 1) / ROWS_A_TASK + 1 : 0;
    if (w->pool && n > 1) {
        w->pool->run(w->pool->self, n, some_rows, &j);
        return;
    }
    for (size_t t = 0; t < n; t++)
        some_rows(t, &j);
}

/* ---- a row of a tile ---- */

/* A row of scores of a tile, in turn x, exponentials and P: those between k.from and k.to that are not masked. */
typedef struct seen_row {
    float *x;
    mpsim_keys k;
    const uint8_t *mask; /* of the keys of the tile; NULL: none is masked */
} seen_row;

/* x of the scores, -infinity of masked ones; the largest. */
static inline float scores(const work *w, const mpsim_math *m, const seen_row *s, const void *codes)
{
    float most = -INFINITY, *const x = s->x;
    mpsim_decode_array_f32(w->s.format, x, codes, w->tile.n);
    if (w->a->exp2)
        mpsim_rows_round(m, x + s->k.from, s->k.to - s->k.from);
    for (size_t j = s->k.from; j < s->k.to && !w->a->exp2; j++)
        x[j] = mpsim_causal_x(m, w->a->scale, x[j]);
    for (size_t j = s->k.from; j < s->k.to && s->mask; j++)
        x[j] = s->mask[j] ? x[j] : -INFINITY;
    for (size_t j = s->k.from; j < s->k.to; j++)
        most = mpsim_softmax_max(most, x[j]);
    return most;
}

static size_t from_on(const seen_row *s, float least)
{
    size_t found = 0;
    for (size_t j = s->k.from; j < s->k.to; j++)
        found += s->x[j] >= least && (!s->mask || s->mask[j]);
    return found;
}

/* How often the largest x of the whole row is there. */
static void note_ties(row *r, const seen_row *s, float most)
{
    if (most > r->top || r->ties == 0) {
        r->top = most;
        r->ties = 0;
    }
    if (most == r->top)
        r->ties += from_on(s, most);
}

/* The largest number, moved where it repeats. */
static inline float moved(const work *w, const mpsim_math *m, row *r, const seen_row *s, float most)
{
    if (!(w->a->beta > 0) || most == 0 || from_on(s, mpsim_math_sub(m, most, w->a->margin)) < 2)
        return most;
    r->moved = 1;
    return most > 0 ? mpsim_math_mul(m, w->a->beta, most) : 0.0f;
}

/* a, by which what was summed before is multiplied. */
static inline float factor_of(const work *w, const mpsim_math *m, float max, float r)
{
    const float less = mpsim_math_sub(m, max, r);
    return mpsim_math_round(m, w->a->exp2 ? mpsim_exp2_f32(mpsim_math_mul(m, less, w->log2e)) : mpsim_exp_f32(less));
}

/* The exponentials; +0 of keys that it does not see. */
static inline void exponentials(const work *w, const mpsim_math *m, const seen_row *s, float r)
{
    float *const x = s->x, most = mpsim_math_mul(m, r, w->log2e);
    const mpsim_keys k = s->k;
    for (size_t j = k.from; j < k.to && w->a->exp2; j++)
        x[j] = mpsim_math_round(m, mpsim_f32_fma(x[j], w->log2e, -most));
    for (size_t j = k.from; j < k.to && !w->a->exp2; j++)
        x[j] = mpsim_math_sub(m, x[j], r);
    (w->a->exp2 ? w->kernels->exp2 : w->kernels->exp)(x + k.from, x + k.from, k.to - k.from);
    mpsim_rows_round(m, x + k.from, k.to - k.from);
    for (size_t j = k.from; j < k.to && s->mask; j++)
        x[j] = s->mask[j] ? x[j] : 0;
    for (size_t j = 0; j < k.from; j++)
        x[j] = 0;
    for (size_t j = k.to; j < w->tile.n; j++)
        x[j] = 0;
}

/* The sum over the numbers of a row, each times factor. */
static inline float sum_of(const work *w, const mpsim_math *m, const float *x, float factor)
{
    mpsim_lanes a = {{0}};
    float term[MPSIM_LANES_ROW];
    for (size_t j = 0; j < w->tile.n; j += MPSIM_LANES_ROW) {
        const size_t width = mpsim_rows_width(w->tile.n, j);
        for (size_t t = 0; t < width; t++)
            term[t] = mpsim_math_mul(m, x[j + t], factor);
        mpsim_lanes_add(m, &a, term, width);
    }
    return mpsim_lanes_sum(m, &a);
}

/* P, as a code and as a number in x. */
static void probabilities(const work *w, const seen_row *s, void *codes, mpsim_attention_counts *c)
{
    float *const x = s->x;
    for (size_t j = 0; j < w->tile.n; j++)
        x[j] = mpsim_f32_mul(x[j], w->a->p_scale);
    mpsim_encode_array_f32(w->p.format, &w->a->p.rounding, NULL, codes, x, w->tile.n, NULL);
    mpsim_decode_array_f32(w->p.format, x, codes, w->tile.n);
    uint64_t seen = s->k.to - s->k.from, zero = 0, one = 0;
    for (size_t j = s->k.from; j < s->k.to; j++) {
        zero += x[j] == 0;
        one += x[j] == w->a->p_scale;
    }
    for (size_t j = s->k.from; j < s->k.to && s->mask; j++) {
        seen -= !s->mask[j]; /* whose P is 0 */
        zero -= !s->mask[j];
    }
    c->elements += seen;
    c->p_zero += zero;
    c->p_one += one;
}

static void rescale(const work *w, size_t i, float a)
{
    const size_t size = w->shape->size;
    float *const o = w->sums + i * size;
    for (size_t c = 0; c < size; c++)
        o[c] = mpsim_math_mul(&w->o_math, o[c], a);
    if (!w->a->separate && !w->o.plain)
        mpsim_encode_array_f32(w->o.format, &w->nearest, NULL, w->o_codes + i * size * w->o.bytes, o, size, NULL);
}

static inline void row_of_tile(work *w, const mpsim_math *m, size_t i, mpsim_attention_counts *c)
{
    const size_t at = i * w->tile.n;
    const seen_row s = {w->x + at, seen_of_tile(w, i),
                        w->a->mask ? w->a->mask + i * w->shape->keys + w->tile.first : NULL};
    row *const r = &w->rows[i];
    const float most = scores(w, m, &s, w->s_codes + at * w->s.bytes);
    note_ties(r, &s, most);
    const float max = mpsim_softmax_max(r->max, moved(w, m, r, &s, most)), middle = mpsim_tile_r(max);
    const float a = factor_of(w, m, r->max, middle);
    exponentials(w, m, &s, middle);
    const float plain = sum_of(w, m, s.x, 1);
    probabilities(w, &s, w->p_codes + at * w->p.bytes, c);
    r->sum = mpsim_math_add(m, mpsim_math_mul(m, r->sum, a), w->a->sum_rounded ? sum_of(w, m, s.x, w->back) : plain);
    r->max = max;
    rescale(w, i, a);
}

static void softmax_row(work *w, size_t i, mpsim_attention_counts *c)
{
    MPSIM_ROWS_BY_MATH(&w->s_math, m, row_of_tile(w, m, i, c));
}

/* What a tile gave, taken into O: joined it is O. */
static void take_row(work *w, size_t i, mpsim_attention_counts *c)
{
    float part[CHUNK];
    (void)c;
    for (size_t at = 0; at < w->shape->size; at += CHUNK) {
        const size_t left = w->shape->size - at, width = left < CHUNK ? left : CHUNK, place = i * w->shape->size + at;
        float *const o = w->sums + place;
        mpsim_decode_array_f32(w->o.format, part, w->o_codes + place * w->o.bytes, width);
        for (size_t j = 0; j < width; j++)
            o[j] = w->a->separate ? mpsim_math_add(&w->o_math, o[j], part[j]) : part[j];
    }
}

/* ---- tiles ---- */

static mpsim_rng stream(const work *w, size_t which)
{
    mpsim_rng r = {0, 0, 0};
    if (w->rng) {
        r = *w->rng;
        r.stream += 2 * (w->tile.first / (w->a->tile ? w->a->tile : w->shape->keys)) + which;
    }
    return r;
}

static mpsim_status multiply_scores(work *w)
{
    const size_t rows = w->tile.to - w->tile.from;
    const mpsim_matrix q = mpsim_from_row(w->q, w->tile.from, 0), k = mpsim_from_row(w->k, w->tile.first, 1);
    const mpsim_rng rng = stream(w, 0);
    return mpsim_gemm(w->a->scores, rows, w->tile.n, w->shape->dim, &q, &k, NULL,
                      w->s_codes + w->tile.from * w->tile.n * w->s.bytes, w->tile.n, w->rng ? &rng : NULL, w->pool);
}

static mpsim_status multiply_context(work *w)
{
    const size_t rows = w->tile.to - w->tile.from, size = w->shape->size;
    unsigned char *const o = w->o_codes + w->tile.from * size * w->o.bytes;
    const mpsim_matrix p = {w->p.format, w->p_codes + w->tile.from * w->tile.n * w->p.bytes, w->tile.n, 0};
    const mpsim_matrix v = mpsim_from_row(w->v, w->tile.first, 0), c = {w->o.format, o, size, 0};
    const mpsim_rng rng = stream(w, 1);
    return mpsim_gemm(w->a->context, rows, size, w->tile.n, &p, &v, w->a->separate ? NULL : &c, o, size,
                      w->rng ? &rng : NULL, w->pool);
}

static mpsim_status tile(work *w)
{
    mpsim_status s = multiply_scores(w);
    if (s != MPSIM_OK)
        return s;
    each_row(w, w->tile.from, w->tile.to, softmax_row);
    s = multiply_context(w);
    if (s == MPSIM_OK && (w->a->separate || !w->o.plain))
        each_row(w, w->tile.from, w->tile.to, take_row);
    return s;
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

/* ---- the end ---- */

static void end_row(work *w, size_t i, mpsim_attention_counts *c)
{
    const row *const r = &w->rows[i];
    const size_t size = w->shape->size;
    const float *const o = w->sums + i * size;
    const float inverse = mpsim_f32_div(1.0f, r->sum);
    float *const y = w->y + i * size;
    for (size_t j = 0; j < size; j++)
        y[j] = r->sum == 0        ? 0.0f
               : w->a->reciprocal ? mpsim_f32_mul(mpsim_f32_mul(o[j], w->back), inverse)
                                  : mpsim_tile_y(o[j], w->back, r->sum);
    mpsim_rows_round(&w->y_math, y, size);
    if (w->lse)
        w->lse[i] = mpsim_tile_lse(w->a->exp2 ? mpsim_f32_mul(r->max, w->a->scale) : r->max, r->sum);
    if (w->flags)
        w->flags[i] = r->ties > 1;
    c->rows++;
    c->masked += !sees_any(w, i);
    c->repeated += r->ties > 1;
    c->moved += r->moved;
    c->vanished += r->sum == 0 && sees_any(w, i);
}

static void add_counts(mpsim_attention_counts *to, const mpsim_attention_counts *c)
{
    to->rows += c->rows;
    to->masked += c->masked;
    to->repeated += c->repeated;
    to->moved += c->moved;
    to->vanished += c->vanished;
    to->elements += c->elements;
    to->p_zero += c->p_zero;
    to->p_one += c->p_one;
}

/* ---- begin ---- */

static mpsim_status check(work *w)
{
    const mpsim_attention *a = w->a;
    if (mpsim_model_check(a->scores) != MPSIM_OK || mpsim_model_check(a->context) != MPSIM_OK ||
        !mpsim_is_plain_rounding(&a->p) || !(a->p_scale > 0) || !isfinite(a->p_scale) || !isfinite(a->scale) ||
        (a->beta != 0 && !(a->beta > 1)) || !isfinite(a->beta) || !(a->margin >= 0) || (a->exp2 && !(a->scale > 0)))
        return MPSIM_EINVAL;
    mpsim_status s = mpsim_math_init(&w->y_math, a->f);
    if (s == MPSIM_OK)
        s = mpsim_math_init(&w->o_math, &a->context->result.format);
    if (s == MPSIM_OK)
        s = mpsim_check_zero(&a->context->result.format);
    if (s == MPSIM_OK)
        s = mpsim_check_zero(&a->scores->result.format);
    if (s == MPSIM_OK && a->softmax)
        s = mpsim_check_zero(a->softmax);
    if (s == MPSIM_OK)
        s = mpsim_math_init(&w->s_math, a->softmax);
    return s == MPSIM_OK ? mpsim_check_zero(&a->p.format) : s;
}

static mpsim_status check_operands(const mpsim_attention_shape *shape, const mpsim_matrix *q, const mpsim_matrix *k,
                                   const mpsim_matrix *v, const void *y)
{
    if (!mpsim_is_operand(q, shape->queries, shape->dim) || !mpsim_is_operand(k, shape->keys, shape->dim) ||
        !mpsim_is_operand(v, shape->keys, shape->size) || (!y && shape->queries && shape->size))
        return MPSIM_EINVAL;
    return MPSIM_OK;
}

static mpsim_status allocate(work *w)
{
    const size_t queries = w->shape->queries, keys = w->shape->keys, size = w->shape->size;
    const size_t width = w->a->tile && w->a->tile < keys ? w->a->tile : keys;
    w->x = mpsim_zeros(queries, width, sizeof *w->x);
    w->s_codes = mpsim_zeros(queries, width, w->s.bytes);
    w->p_codes = mpsim_zeros(queries, width, w->p.bytes);
    w->sums = mpsim_zeros(queries, size, sizeof *w->sums);
    w->o_codes = !w->a->separate && w->o.plain ? (unsigned char *)w->sums : mpsim_zeros(queries, size, w->o.bytes);
    w->rows = mpsim_zeros(queries, 1, sizeof *w->rows);
    w->counts = mpsim_zeros(queries / ROWS_A_TASK + 1, 1, sizeof *w->counts);
    for (size_t i = 0; w->rows && i < queries; i++)
        w->rows[i].max = -INFINITY;
    return w->x && w->s_codes && w->p_codes && w->sums && w->o_codes && w->rows && w->counts ? MPSIM_OK : MPSIM_ENOMEM;
}

static void release(work *w)
{
    if (w->o_codes != (unsigned char *)w->sums)
        free(w->o_codes);
    free(w->x);
    free(w->s_codes);
    free(w->p_codes);
    free(w->sums);
    free(w->rows);
    free(w->counts);
}

static mpsim_status run(work *w, mpsim_attention_counts *counts)
{
    w->s = mpsim_numbers_of(&w->a->scores->result.format);
    w->p = mpsim_numbers_of(&w->a->p.format);
    w->o = mpsim_numbers_of(&w->a->context->result.format);
    w->back = mpsim_f32_div(1.0f, w->a->p_scale);
    w->log2e = (float)((double)w->a->scale * 0x1.71547652b82fep+0);
    w->kernels = mpsim_layer_kernels_active();
    mpsim_rounding_init(&w->nearest, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_status s = allocate(w);
    if (s == MPSIM_OK)
        s = tiles(w);
    if (s == MPSIM_OK) {
        each_row(w, 0, w->shape->queries, end_row);
        for (size_t t = 0; counts && t < w->shape->queries / ROWS_A_TASK + 1; t++)
            add_counts(counts, &w->counts[t]);
    }
    release(w);
    return s;
}

mpsim_status mpsim_attention_forward(const mpsim_attention *a, const mpsim_attention_shape *shape,
                                     const mpsim_matrix *q, const mpsim_matrix *k, const mpsim_matrix *v, float *y,
                                     float *lse, uint8_t *flags, mpsim_attention_counts *counts, const mpsim_rng *rng,
                                     const mpsim_pool *pool)
{
    work w = {.a = a, .shape = shape, .q = q, .k = k, .v = v, .rng = rng, .pool = pool, .y = y, .lse = lse};
    if (!a || !shape || !a->scores || !a->context || !mpsim_is_pool(pool))
        return MPSIM_EINVAL;
    w.flags = flags;
    mpsim_status s = check(&w);
    if (s == MPSIM_OK)
        s = check_operands(shape, q, k, v, y);
    if (s == MPSIM_OK && shape->queries && !shape->dim && !shape->size && shape->keys > INT32_MAX) /* in no memory */
        s = MPSIM_ERANGE;
    return s == MPSIM_OK && shape->queries > 0 ? run(&w, counts) : s;
}
