/* decoderattention.c -- heads, and attention with all scores at once or in tiles. */
#include "decoderparts.h"
#include "decoderrows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- heads ---- */

decoder_sizes decoder_sizes_of(const oracle_decoder *d)
{
    const size_t size = d->base.run->settings.width / d->is->heads;
    return (decoder_sizes){.sequences = d->sequences,
                           .length = d->is->context,
                           .heads = d->is->heads,
                           .kv_heads = d->is->kv_heads,
                           .size = size,
                           .scale = (float)(1 / sqrt((double)size))};
}

size_t decoder_index(const oracle_decoder *d, const layer *l)
{
    return (size_t)(l - d->base.layers);
}

/* Number c of a head of x at that place, turned by it; back: the other way. */
static float turned_number(const oracle_decoder *d, const float *x, size_t place, size_t c, int back)
{
    const size_t half = decoder_sizes_of(d).size / 2, k = c % half;
    const float cosine = d->cos[place * half + k];
    const float sine = back ? -d->sin[place * half + k] : d->sin[place * half + k];
    const float own = x[c] * cosine, other = c < half ? x[c + half] * sine : x[c - half] * sine;
    return c < half ? own - other : own + other;
}

void heads_split(const oracle_decoder *d, matrix *y, const oracle_format *f, const matrix *x, size_t heads,
                 size_t first, int turned)
{
    const decoder_sizes z = decoder_sizes_of(d);
    shape(y, z.sequences * heads * z.length, z.size, f);
    for (size_t r = 0; r < y->rows; r++) {
        const size_t place = r % z.length, h = r / z.length % heads, b = r / z.length / heads;
        const float *from = x->v + (b * z.length + place) * x->cols + first + h * z.size;
        for (size_t c = 0; c < z.size; c++)
            y->v[r * z.size + c] = oracle_to(f, (double)(turned ? turned_number(d, from, place, c, 0) : from[c]));
    }
}

void heads_join(const oracle_decoder *d, matrix *x, const matrix *y, size_t heads, size_t first, int turned)
{
    const decoder_sizes z = decoder_sizes_of(d);
    for (size_t r = 0; r < y->rows; r++) {
        const size_t place = r % z.length, h = r / z.length % heads, b = r / z.length / heads;
        const float *from = y->v + r * z.size;
        float *to = x->v + (b * z.length + place) * x->cols + first + h * z.size;
        for (size_t c = 0; c < z.size; c++)
            to[c] = oracle_to(x->f, (double)(turned ? turned_number(d, from, place, c, 1) : from[c]));
    }
}

void heads_forward(oracle_decoder *d, layer *l, const matrix *x)
{
    const decoder_sizes z = decoder_sizes_of(d);
    const oracle_format *f = oracle_format_of(&l->in->format[TRAIN_OUT]);
    decoder_layer *m = &d->more[decoder_index(d, l)];
    heads_split(d, &l->out, f, x, z.heads, 0, d->is->rotary);
    heads_split(d, &m->out_key, f, x, z.kv_heads, z.heads * z.size, d->is->rotary);
    heads_split(d, &m->out_value, f, x, z.kv_heads, (z.heads + z.kv_heads) * z.size, 0);
}

void heads_back(oracle_decoder *d, layer *l)
{
    const decoder_sizes z = decoder_sizes_of(d);
    const size_t i = decoder_index(d, l); /* then scores, softmax, context */
    shape(&l->dgrad, z.sequences * z.length, (z.heads + 2 * z.kv_heads) * z.size,
          oracle_format_of(&l->in->format[TRAIN_DGRAD]));
    heads_join(d, &l->dgrad, &l[1].dgrad, z.heads, 0, d->is->rotary);
    heads_join(d, &l->dgrad, &d->more[i + 1].dkey, z.kv_heads, z.heads * z.size, d->is->rotary);
    heads_join(d, &l->dgrad, &d->more[i + 3].dkey, z.kv_heads, (z.heads + z.kv_heads) * z.size, 0);
}

/* ---- products of heads ---- */

/* Rows first to first + n - 1 of matrix i of a stack of `of`. */
static matrix part_of(const matrix *x, size_t i, size_t of, size_t first, size_t n)
{
    matrix y = *x;
    y.rows = n;
    y.v = x->v + (i * (x->rows / of) + first) * x->cols;
    return y;
}

static matrix one_of(const matrix *x, size_t i, size_t of)
{
    return part_of(x, i, of, 0, x->rows / of);
}

static void put_part(matrix *y, const matrix *x, size_t i, size_t of, size_t first)
{
    const matrix to = part_of(y, i, of, first, x->rows);
    memcpy(to.v, x->v, x->rows * x->cols * sizeof *x->v);
}

/* d = op(a) op(b) of every head; `shared` heads after each other have one matrix of b. */
static void product_of_heads(const oracle_decoder *d, matrix *y, const oracle_format *f, const matrix *a, int ta,
                             const matrix *b, int tb, size_t shared)
{
    const decoder_sizes z = decoder_sizes_of(d);
    const size_t n = z.sequences * z.heads;
    for (size_t i = 0; i < n; i++) {
        matrix t = {0};
        product(&d->base, &t, f, one_of(a, i, n), ta, one_of(b, i / shared, n / shared), tb, NULL);
        if (i == 0)
            shape(y, n * t.rows, t.cols, f);
        put_part(y, &t, i, n, 0);
        free(t.v);
    }
}

static size_t shared_heads(const oracle_decoder *d)
{
    return d->is->heads / d->is->kv_heads;
}

/* The gradient of keys or values: of every head, then the sums of those that share. */
static void shared_sums(const oracle_decoder *d, decoder_layer *m, matrix *of_heads)
{
    const size_t group = shared_heads(d), length = d->is->context;
    if (group == 1) {
        free(m->dkey.v);
        m->dkey = *of_heads;
        return;
    }
    free(m->dkeys.v);
    m->dkeys = *of_heads;
    shape(&m->dkey, of_heads->rows / group, of_heads->cols, of_heads->f);
    for (size_t i = 0; i < m->dkey.rows; i++)
        for (size_t c = 0; c < m->dkey.cols; c++) {
            const size_t first = i / length * group * length + i % length;
            float s = of_heads->v[first * m->dkey.cols + c];
            for (size_t k = 1; k < group; k++)
                s = s + of_heads->v[(first + k * length) * m->dkey.cols + c];
            m->dkey.v[i * m->dkey.cols + c] = oracle_to(m->dkey.f, (double)s);
        }
}

/* ---- all scores at once ---- */

static oracle_rows rows_of(const oracle_decoder *d, const layer *l, train_role role)
{
    return (oracle_rows){l->act.rows, l->act.cols, d->math_softmax, oracle_format_of(&l->in->format[role])};
}

/* The copy that products read, or what it is of. */
static matrix operand(const layer *l, int which, const matrix *x)
{
    return l->q[which].v ? l->q[which] : *x;
}

static void whole_forward(oracle_decoder *d, layer *scores)
{
    layer *softmax = scores + 1, *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, scores)];
    const matrix q = entering(&d->base, scores, ACT_Q, &scores->act);
    const matrix k = entering(&d->base, scores, WEIGHT_Q, &m->key);
    product_of_heads(d, &scores->out, oracle_format_of(&scores->in->format[TRAIN_OUT]), &q, 0, &k, 1, shared_heads(d));
    cast(&softmax->act, &scores->out, oracle_format_of(&softmax->in->format[TRAIN_ACT]));
    const oracle_rows r = rows_of(d, softmax, TRAIN_OUT);
    shape(&softmax->out, r.rows, r.cols, r.f);
    oracle_causal(&r, decoder_sizes_of(d).scale, softmax->out.v, softmax->act.v);
    cast(&context->act, &softmax->out, oracle_format_of(&context->in->format[TRAIN_ACT]));
    const matrix p = entering(&d->base, context, ACT_Q, &context->act);
    const matrix v = entering(&d->base, context, WEIGHT_Q, &m[2].key);
    product_of_heads(d, &m[2].heads, oracle_format_of(&context->in->format[TRAIN_OUT]), &p, 0, &v, 0, shared_heads(d));
}

static void whole_back(oracle_decoder *d, layer *scores)
{
    layer *softmax = scores + 1, *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, scores)];
    const oracle_format *f = oracle_format_of(&context->in->format[TRAIN_DGRAD]);
    matrix each = {0};
    const matrix g = entering(&d->base, context, AGRAD_Q, &m[2].agrad_heads);
    const matrix v = operand(context, WEIGHT_Q, &m[2].key), p = operand(context, ACT_Q, &context->act);
    product_of_heads(d, &context->dgrad, f, &g, 0, &v, 1, shared_heads(d));
    product_of_heads(d, &each, f, &p, 1, &g, 0, 1);
    shared_sums(d, &m[2], &each);
    cast(&softmax->agrad, &context->dgrad, oracle_format_of(&softmax->in->format[TRAIN_AGRAD]));
    const oracle_rows r = rows_of(d, softmax, TRAIN_DGRAD);
    shape(&softmax->dgrad, r.rows, r.cols, r.f);
    oracle_causal_back(&r, decoder_sizes_of(d).scale, softmax->dgrad.v, softmax->agrad.v, softmax->out.v);
    cast(&scores->agrad, &softmax->dgrad, oracle_format_of(&scores->in->format[TRAIN_AGRAD]));
    f = oracle_format_of(&scores->in->format[TRAIN_DGRAD]);
    const matrix s = entering(&d->base, scores, AGRAD_Q, &scores->agrad);
    const matrix k = operand(scores, WEIGHT_Q, &m->key), q = operand(scores, ACT_Q, &scores->act);
    product_of_heads(d, &scores->dgrad, f, &s, 0, &k, 0, shared_heads(d));
    each = (matrix){0};
    product_of_heads(d, &each, f, &s, 1, &q, 0, 1);
    shared_sums(d, m, &each);
}

/* ---- in tiles ---- */

/* A tile of a head: its first column, their number, the rows from the first one on. */
typedef struct tile_at {
    size_t head, heads, first, cols, rows;
} tile_at;

static tile_at tile_of(const oracle_decoder *d, size_t head, size_t first)
{
    const decoder_sizes z = decoder_sizes_of(d);
    const size_t rest = z.length - first, tile = d->is->tile;
    return (tile_at){head, z.sequences * z.heads, first, rest < tile ? rest : tile, rest};
}

static matrix of_rows(const matrix *x, const tile_at *t)
{
    return part_of(x, t->head, t->heads, t->first, t->rows);
}

static matrix of_cols(const oracle_decoder *d, const matrix *x, const tile_at *t)
{
    const size_t shared = shared_heads(d);
    return part_of(x, t->head / shared, t->heads / shared, t->first, t->cols);
}

static oracle_tile_row row_of(const oracle_decoder *d, const tile_at *t, size_t row, const oracle_format *f)
{
    const decoder_sizes z = decoder_sizes_of(d);
    return (oracle_tile_row){.n = row < t->cols ? row + 1 : t->cols,
                             .cols = t->cols,
                             .size = z.size,
                             .scale = z.scale,
                             .p_scale = 1,
                             .f = f};
}

/* The format that P enters the product in, and what it is multiplied by first. */
static const oracle_format *format_of_p(const layer *context, float *p_scale)
{
    const mpsim_block_recipe *r = context->in->recipe[TRAIN_ACT];
    *p_scale = 1;
    if (!r)
        return oracle_format_of(&context->in->format[TRAIN_ACT]);
    const oracle_format *f = oracle_format_find(r->element);
    while (2 * (double)*p_scale <= f->max)
        *p_scale *= 2;
    return f;
}

/* Rows of `length` numbers of one column: the larger so far, sums, their logarithms. */
static void columns_new(matrix *x, const tile_at *t, size_t length, float value)
{
    shape(x, t->heads * length, 1, oracle_format_find(NULL));
    for (size_t i = 0; i < x->rows; i++)
        x->v[i] = value;
}

static void tile_forward(oracle_decoder *d, layer *context, const tile_at *t, const matrix qkv[3], matrix *o,
                         matrix *max, matrix *sum)
{
    const oracle_format *wide = oracle_format_find(NULL);
    matrix s = {0}, p = {0}, p32 = {0}, y = {0};
    float p_scale;
    const oracle_format *f = format_of_p(context, &p_scale);
    product(&d->base, &s, wide, of_rows(&qkv[0], t), 0, of_cols(d, &qkv[1], t), 1, NULL);
    shape(&p, t->rows, t->cols, f);
    const matrix so = of_rows(o, t), sm = of_rows(max, t), ss = of_rows(sum, t);
    for (size_t i = 0; i < t->rows; i++) {
        oracle_tile_row r = row_of(d, t, i, f);
        r.p_scale = p_scale;
        oracle_tile(&r, p.v + i * t->cols, so.v + i * r.size, sm.v + i, ss.v + i, s.v + i * t->cols);
    }
    matrix v = of_cols(d, &qkv[2], t);
    v.inverse = 1;
    product_from(&d->base, &y, wide, in_tf32(&d->base, &p32, &p), 0, v, 0, NULL, so.v);
    put_part(o, &y, t->head, t->heads, t->first);
    free(s.v);
    free(p.v);
    free(p32.v);
    free(y.v);
}

static void tiles_forward(oracle_decoder *d, layer *scores)
{
    layer *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, scores)];
    const decoder_sizes z = decoder_sizes_of(d);
    const matrix qkv[3] = {entering(&d->base, scores, ACT_Q, &scores->act),
                           entering(&d->base, scores, WEIGHT_Q, &m->key),
                           entering(&d->base, context, WEIGHT_Q, &m[2].key)};
    matrix o = {0}, max = {0}, sum = {0};
    const tile_at all = tile_of(d, 0, 0);
    columns_new(&max, &all, z.length, -INFINITY);
    columns_new(&sum, &all, z.length, 0);
    columns_new(&m[2].lse, &all, z.length, 0);
    shape(&o, max.rows, z.size, oracle_format_find(NULL));
    for (size_t h = 0; h < all.heads; h++)
        for (size_t first = 0; first < z.length; first += d->is->tile) {
            const tile_at t = tile_of(d, h, first);
            tile_forward(d, context, &t, qkv, &o, &max, &sum);
        }
    shape(&m[2].heads, o.rows, z.size, oracle_format_of(&context->in->format[TRAIN_OUT]));
    for (size_t i = 0; i < o.rows * z.size && qkv[2].inverse != 1; i++)
        o.v[i] = o.v[i] * qkv[2].inverse;
    for (size_t i = 0; i < o.rows; i++) {
        oracle_tile_row r = row_of(d, &all, 0, m[2].heads.f);
        (void)format_of_p(context, &r.p_scale);
        oracle_tile_end(&r, m[2].heads.v + i * z.size, m[2].lse.v + i, o.v + i * z.size, max.v[i], sum.v[i]);
    }
    free(o.v);
    free(max.v);
    free(sum.v);
}

/* What the tiles of a backward pass read and leave. */
typedef struct tile_work {
    matrix q, k, v, g; /* operands: not quantised */
    matrix copies[3];  /* of q, k, v, in tf32     */
    matrix dq, dk, dv; /* dk, dv: of every head   */
} tile_work;

/* The scores of a tile again, what their gradient is and P, both as they enter products. */
static void tile_again(oracle_decoder *d, layer *scores, const tile_at *t, const tile_work *w, matrix *p, matrix *ds)
{
    const layer *context = scores + 2;
    const decoder_layer *m = &d->more[decoder_index(d, context)];
    const oracle_format *wide = oracle_format_find(NULL);
    matrix s = {0}, dp = {0};
    product(&d->base, &s, wide, of_rows(&w->q, t), 0, of_cols(d, &w->k, t), 1, NULL);
    product(&d->base, &dp, wide, of_rows(&w->g, t), 0, of_cols(d, &w->v, t), 1, NULL);
    shape(p, t->rows, t->cols, oracle_format_of(&context->in->format[TRAIN_ACT]));
    shape(ds, t->rows, t->cols, oracle_format_of(&scores->in->format[TRAIN_AGRAD]));
    const matrix lse = of_rows(&m->lse, t), dots = of_rows(&m->dots, t);
    for (size_t i = 0; i < t->rows; i++) {
        oracle_tile_row r = row_of(d, t, i, p->f);
        oracle_tile_again(&r, p->v + i * t->cols, s.v + i * t->cols, lse.v[i]);
        r.f = ds->f;
        oracle_tile_back(&r, ds->v + i * t->cols, dp.v + i * t->cols, s.v + i * t->cols, lse.v[i], dots.v[i]);
    }
    free(s.v);
    free(dp.v);
}

static void tile_back(oracle_decoder *d, layer *scores, const tile_at *t, tile_work *w)
{
    matrix p = {0}, ds = {0}, p32 = {0}, ds32 = {0}, y = {0};
    tile_again(d, scores, t, w, &p, &ds);
    const matrix pp = in_tf32(&d->base, &p32, &p), ss = in_tf32(&d->base, &ds32, &ds);
    product(&d->base, &y, w->dv.f, pp, 1, of_rows(&w->g, t), 0, NULL);
    put_part(&w->dv, &y, t->head, t->heads, t->first);
    product(&d->base, &y, w->dk.f, ss, 1, of_rows(&w->q, t), 0, NULL);
    put_part(&w->dk, &y, t->head, t->heads, t->first);
    product(&d->base, &y, w->dq.f, ss, 0, of_cols(d, &w->k, t), 0, NULL);
    const matrix to = of_rows(&w->dq, t);
    for (size_t i = 0; i < y.rows * y.cols; i++)
        to.v[i] = to.v[i] + y.v[i];
    matrix *const all[] = {&p, &ds, &p32, &ds32, &y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->v);
}

static void tiles_back(oracle_decoder *d, layer *scores)
{
    const layer *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, scores)];
    const decoder_sizes z = decoder_sizes_of(d);
    const tile_at all = tile_of(d, 0, 0);
    tile_work w;
    memset(&w, 0, sizeof w);
    w.q = in_tf32(&d->base, &w.copies[0], &scores->act);
    w.k = in_tf32(&d->base, &w.copies[1], &m->key);
    w.v = in_tf32(&d->base, &w.copies[2], &m[2].key);
    w.g = in_tf32(&d->base, &scores[2].q[AGRAD_Q], &m[2].agrad_heads);
    const size_t rows = all.heads * z.length;
    shape(&w.dq, rows, z.size, oracle_format_find(NULL));
    shape(&w.dk, rows, z.size, oracle_format_of(&scores->in->format[TRAIN_DGRAD]));
    shape(&w.dv, rows, z.size, oracle_format_of(&context->in->format[TRAIN_DGRAD]));
    columns_new(&m[2].dots, &all, z.length, 0);
    for (size_t i = 0; i < rows; i++)
        m[2].dots.v[i] = oracle_dots(m[2].agrad_heads.v + i * z.size, m[2].heads.v + i * z.size, z.size);
    for (size_t h = 0; h < all.heads; h++)
        for (size_t first = 0; first < z.length; first += d->is->tile) {
            const tile_at t = tile_of(d, h, first);
            tile_back(d, scores, &t, &w);
        }
    cast(&scores->dgrad, &w.dq, w.dk.f);
    shared_sums(d, m, &w.dk);
    shared_sums(d, &m[2], &w.dv);
    free(w.dq.v);
    for (size_t i = 0; i < 3; i++)
        free(w.copies[i].v);
}

/* ---- both ---- */

void attention_forward(oracle_decoder *d, layer *scores)
{
    layer *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, scores)];
    const decoder_sizes z = decoder_sizes_of(d);
    cast(&scores->act, &scores[-1].out, oracle_format_of(&scores->in->format[TRAIN_ACT]));
    cast(&m->key, &m[-1].out_key, oracle_format_of(&scores->in->format[TRAIN_WEIGHT]));
    cast(&m[2].key, &m[-1].out_value, oracle_format_of(&context->in->format[TRAIN_WEIGHT]));
    (d->is->tile ? tiles_forward : whole_forward)(d, scores);
    shape(&context->out, z.sequences * z.length, z.heads * z.size, m[2].heads.f);
    heads_join(d, &context->out, &m[2].heads, z.heads, 0, 0);
}

/* context's agrad is there. */
void attention_back(oracle_decoder *d, layer *scores)
{
    const layer *context = scores + 2;
    decoder_layer *m = &d->more[decoder_index(d, context)];
    heads_split(d, &m->agrad_heads, context->agrad.f, &context->agrad, d->is->heads, 0, 0);
    (d->is->tile ? tiles_back : whole_back)(d, scores);
}
