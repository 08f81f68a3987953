/* attention.c -- attention as operations of a pass, its scores materialised or in tiles; see train.h.
 *
 * Of the layers heads, scores, softmax and context of a block, which follow one another, heads keeps keys
 * and values for the two others in b->key and b->value; going back their gradients come back there. */
#include "../trainer.h"

#include <math.h>
#include <stdlib.h>

static const train_placement *place(const train_build *b, size_t layer)
{
    return &b->plan->layers[layer];
}

static const train_decoder *decoder(const train_build *b)
{
    return &b->t->run->settings.decoder;
}

static size_t head_size(const train_build *b)
{
    return train_head_size(&b->t->run->settings);
}

/* Matrices of heads, of kv_heads; their rows all together. */
static size_t stacks(const train_build *b)
{
    return b->p->images * decoder(b)->heads;
}

static size_t rows_of_heads(const train_build *b)
{
    return stacks(b) * decoder(b)->context;
}

static size_t rows_of_kv(const train_build *b)
{
    return b->p->images * decoder(b)->kv_heads * decoder(b)->context;
}

static size_t shared(const train_build *b)
{
    return decoder(b)->heads / decoder(b)->kv_heads;
}

/* ---- heads ---- */

static train_heads heads_at(const train_build *b, size_t heads, size_t first, int rotated)
{
    const train *t = b->t;
    train_heads h = {.sequences = b->p->images,
                     .length = decoder(b)->context,
                     .heads = heads,
                     .size = head_size(b),
                     .first = first * head_size(b)};
    if (rotated && decoder(b)->rotary) {
        h.cos = &t->rotary[0];
        h.sin = &t->rotary[1];
    }
    return h;
}

/* Heads of x, as rows of their own, under the name KIND:LAYER. */
static const train_tensor *split(train_build *b, size_t i, const char *kind, const train_tensor *x, train_heads h,
                                 const mpsim_format *f, train_counts *counts)
{
    train_do *d = train_add(b, WORK_SPLIT, i, kind, h.sequences * h.heads * h.length, h.size, f);
    d->x = x;
    d->heads = h;
    d->counts = counts;
    return d->results[0].to;
}

const train_tensor *train_heads_forward(train_build *b, size_t i, const train_tensor *x)
{
    const size_t h = decoder(b)->heads, kv = decoder(b)->kv_heads;
    const mpsim_format *f = &place(b, i)->format[TRAIN_OUT];
    train_counts *counts = &b->t->act;
    const train_tensor *q = split(b, i, "out", x, heads_at(b, h, 0, 1), f, counts);
    b->key = split(b, i, "out.key", x, heads_at(b, kv, h, 1), f, counts);
    b->value = split(b, i, "out.value", x, heads_at(b, kv, h + kv, 0), f, counts);
    return q;
}

const train_tensor *train_heads_backward(train_build *b, size_t i, const train_tensor *dq)
{
    const size_t h = decoder(b)->heads, kv = decoder(b)->kv_heads;
    const struct {
        const train_tensor *x;
        train_heads heads;
    } parts[] = {{dq, heads_at(b, h, 0, 1)}, {b->key, heads_at(b, kv, h, 1)}, {b->value, heads_at(b, kv, h + kv, 0)}};
    train_tensor *dx = NULL;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        train_do *d = dx ? train_add_bare(b, WORK_JOIN)
                         : train_add(b, WORK_JOIN, i, "dgrad", b->p->images * decoder(b)->context,
                                     b->t->run->layers[i].inputs, &place(b, i)->format[TRAIN_DGRAD]);
        if (dx)
            train_go_on(b, d, dx);
        dx = d->results[0].to;
        d->x = parts[k].x;
        d->heads = parts[k].heads;
        d->counts = &b->t->agrad;
    }
    return dx;
}

/* ---- operands ---- */

/* x in the format of a role, KIND:LAYER, and as products read it, KIND.q:LAYER. */
static void operand(train_build *b, train_operand *o, size_t i, train_role role, const char *kind,
                    const train_tensor *x, train_counts *counts)
{
    char word[32];
    o->base = train_in_format(b, i, kind, x, &place(b, i)->format[role], counts);
    snprintf(word, sizeof word, "%.24s.q", kind);
    o->first = o->second = train_copy_named(b, i, role, word, o->base, 0, counts);
}

/* Going back in tiles nothing is quantised, but tf32 stays. */
static const train_tensor *unquantised(const train_build *b, const train_operand *o, size_t i, train_role role)
{
    return train_copy_kind(b, i, role) == COPY_TF32 ? o->first : o->base;
}

/* The gradient of O in the order of heads, as agrad of layer i. */
static const train_tensor *gradient_of_heads(train_build *b, size_t i, const train_tensor *dy)
{
    const mpsim_format *f = &place(b, i)->format[TRAIN_AGRAD];
    dy = train_in_format(b, i, "agrad", dy, f, &b->t->agrad);
    return split(b, i, "agrad.heads", dy, heads_at(b, decoder(b)->heads, 0, 0), f, NULL);
}

/* O at its place. */
static const train_tensor *at_its_place(train_build *b, size_t i, const train_tensor *o)
{
    train_do *d = train_add(b, WORK_JOIN, i, "out", b->p->images * decoder(b)->context, b->t->run->layers[i].outputs,
                            o->format);
    d->x = o;
    d->heads = heads_at(b, decoder(b)->heads, 0, 0);
    return d->results[0].to;
}

/* ---- products ---- */

/* A matrix of every head: that of x, as it is or transposed, times that of y. */
typedef struct operands {
    const train_tensor *x;
    int x_transposed;
    const train_tensor *y;
    int y_transposed;
    size_t shared; /* heads that take one matrix of y */
} operands;

static const train_tensor *product(train_build *b, size_t i, const char *kind, train_role role, size_t cols, operands o,
                                   train_counts *counts)
{
    train_do *d = train_add(b, WORK_GEMM, i, kind, rows_of_heads(b), cols, &place(b, i)->format[role]);
    train_product(b, d, i, o.x, o.x_transposed, o.y, o.y_transposed, NULL, counts);
    d->gemm.stacks = stacks(b);
    d->gemm.shared = o.shared;
    return d->results[0].to;
}

/* The sums of heads that share keys or values, KIND:LAYER. */
static const train_tensor *sum_of_groups(train_build *b, size_t i, const char *kind, const train_tensor *x)
{
    if (shared(b) == 1)
        return x;
    train_do *d = train_add(b, WORK_GROUPS, i, kind, rows_of_kv(b), x->cols, x->format);
    d->x = x;
    d->heads = heads_at(b, decoder(b)->kv_heads, 0, 0);
    d->heads.heads = shared(b);
    d->counts = &b->t->agrad;
    return d->results[0].to;
}

/* dK, dV: "dgrad.key" of all that share it, or before their sum "dgrad.keys" of every head. */
static const char *kind_of_heads(const train_build *b, int value)
{
    return shared(b) == 1 ? value ? "dgrad.value" : "dgrad.key" : value ? "dgrad.values" : "dgrad.keys";
}

/* ---- materialised ---- */

const train_tensor *train_scores_forward(train_build *b, size_t i, const train_tensor *q)
{
    operand(b, &b->act[i], i, TRAIN_ACT, "act", q, &b->t->act);
    operand(b, &b->weight[i], i, TRAIN_WEIGHT, "key", b->key, &b->t->act);
    if (decoder(b)->tile)
        return q;
    return product(b, i, "out", TRAIN_OUT, decoder(b)->context,
                   (operands){b->act[i].first, 0, b->weight[i].first, 1, shared(b)}, &b->t->act);
}

const train_tensor *train_scores_backward(train_build *b, size_t i, const train_tensor *ds)
{
    train_operand dy;
    if (decoder(b)->tile)
        return ds; /* of the queries already */
    operand(b, &dy, i, TRAIN_AGRAD, "agrad", ds, &b->t->agrad);
    const train_tensor *dq = product(b, i, "dgrad", TRAIN_DGRAD, head_size(b),
                                     (operands){dy.first, 0, b->weight[i].first, 0, shared(b)}, &b->t->agrad);
    const train_tensor *dk = product(b, i, kind_of_heads(b, 0), TRAIN_DGRAD, head_size(b),
                                     (operands){dy.first, 1, b->act[i].first, 0, 1}, &b->t->agrad);
    b->key = sum_of_groups(b, i, "dgrad.key", dk);
    return dq;
}

const train_tensor *train_softmax_forward(train_build *b, size_t i, const train_tensor *s)
{
    if (decoder(b)->tile)
        return s;
    s = train_in_format(b, i, "act", s, &place(b, i)->format[TRAIN_ACT], &b->t->act);
    train_do *d = train_add(b, WORK_CAUSAL, i, "out", s->rows, s->cols, &place(b, i)->format[TRAIN_OUT]);
    d->x = s;
    d->counts = &b->t->act;
    b->layer[i] = d;
    return d->results[0].to;
}

const train_tensor *train_softmax_backward(train_build *b, size_t i, const train_tensor *dp)
{
    if (decoder(b)->tile)
        return dp;
    dp = train_in_format(b, i, "agrad", dp, &place(b, i)->format[TRAIN_AGRAD], &b->t->agrad);
    train_do *d = train_add(b, WORK_CAUSAL_BACK, i, "dgrad", dp->rows, dp->cols, &place(b, i)->format[TRAIN_DGRAD]);
    d->x = dp;
    d->y = b->layer[i]->results[0].to;
    d->counts = &b->t->agrad;
    return d->results[0].to;
}

/* ---- in tiles ---- */

static void borrow_named(train_build *b, const char *name, train_tensor *x, size_t rows, size_t cols,
                         const mpsim_format *f, float value)
{
    *x = (train_tensor){.format = f, .rows = rows, .cols = cols};
    if (!b->failed)
        b->failed = train_borrow(b->p, name, x, value, b->error);
}

static void borrow(train_build *b, train_tiles *t, train_scratch_use use, size_t rows, size_t cols,
                   const mpsim_format *f)
{
    char name[16];
    snprintf(name, sizeof name, "tiles.%d", (int)use);
    borrow_named(b, name, &t->scratch[use], rows, cols, f, use == SCRATCH_INFINITES ? -INFINITY : 0);
}

/* How many tiles are done at once. */
static size_t at_once(const train_build *b, const train_tiles *t)
{
    const size_t tiles = (t->shape.length + t->tile - 1) / t->tile;
    const size_t fit = TRAIN_TILES_NUMBERS / t->tile / rows_of_heads(b);
    const size_t most = fit < TRAIN_TILES_AT_ONCE ? fit : TRAIN_TILES_AT_ONCE;
    return most < 1 ? 1 : most < tiles ? most : tiles;
}

/* Of an operation its tiles, or NULL after a failure. */
static train_tiles *new_tiles(train_build *b, train_do *d, size_t tile)
{
    const train_decoder *s = decoder(b);
    train_tiles *t = b->failed ? NULL : calloc(1, sizeof *t);
    if (!t) {
        if (!b->failed)
            b->failed = train_fail(b->error, "out of memory");
        return NULL;
    }
    d->tiles = t;
    t->tile = tile < s->context ? tile : s->context;
    t->shared = shared(b);
    t->shape = (train_tile){.matrices = stacks(b),
                            .length = s->context,
                            .cols = s->context,
                            .size = head_size(b),
                            .scale = (float)(1 / sqrt((double)head_size(b))),
                            .p_scale = 1};
    t->at_once = at_once(b, t);
    t->act = &b->t->act;
    t->agrad = &b->t->agrad;
    return t;
}

static void borrow_tile(train_build *b, train_tiles *t, train_tile_use use, const mpsim_format *f)
{
    for (size_t k = 0; k < t->at_once; k++) {
        char name[40];
        snprintf(name, sizeof name, "tile.%d.%zu", (int)use, k);
        borrow_named(b, name, &t->own[k][use], rows_of_heads(b), t->tile, f, 0);
    }
}

/* What S and the sums of all tiles need. */
static void borrow_all(train_build *b, train_tiles *t)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    borrow_tile(b, t, TILE_S, fp32);
    borrow(b, t, SCRATCH_SUM, rows_of_heads(b), head_size(b), fp32);
    borrow(b, t, SCRATCH_ZEROS, rows_of_heads(b), head_size(b), fp32);
}

/* P or dS, rounded to f, as products read them: in tf32 a copy. */
static const mpsim_format *borrow_operand(train_build *b, train_tiles *t, train_tile_use use, const mpsim_format *f,
                                          train_copy kind)
{
    borrow_tile(b, t, use, f);
    if (kind != COPY_TF32)
        return f;
    f = mpsim_format_find("tf32");
    borrow_tile(b, t, use == TILE_P ? TILE_P_TF32 : TILE_DS_TF32, f);
    return f;
}

/* 2^floor(log2 of the largest number). */
static float power_below_largest(const mpsim_format *f)
{
    int e;
    frexp(mpsim_format_max(f), &e);
    return (float)ldexp(1, e - 1);
}

/* scores: the layer before softmax, which is before this. */
static const train_tensor *tiles_forward(train_build *b, size_t i)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const size_t scores = i - 2, rows = rows_of_heads(b);
    const mpsim_block_recipe *r = place(b, i)->recipe[TRAIN_ACT];
    const mpsim_format *f = r ? train_element_format(b, r) : &place(b, i)->format[TRAIN_ACT];
    train_do *d = train_add(b, WORK_TILES, i, "out.heads", rows, head_size(b), &place(b, i)->format[TRAIN_OUT]);
    train_add_result(b, d, i, "lse", rows, 1, fp32);
    train_tiles *t = new_tiles(b, d, decoder(b)->tile);
    if (!t)
        return d->results[0].to;
    t->q = b->act[scores].first;
    t->k = b->weight[scores].first;
    t->v = b->weight[i].first;
    if (r)
        t->shape.p_scale = power_below_largest(f);
    borrow_all(b, t);
    borrow(b, t, SCRATCH_ROW_MAX, rows, 1, fp32);
    borrow(b, t, SCRATCH_ROW_SUM, rows, 1, fp32);
    borrow(b, t, SCRATCH_INFINITES, rows, 1, fp32);
    f = borrow_operand(b, t, TILE_P, f, train_copy_kind(b, i, TRAIN_ACT));
    train_product_model(b, scores, t->q->format, t->k->format, &t->scores);
    train_product_model(b, i, f, t->v->format, &t->context);
    b->layer[i] = d;
    return d->results[0].to;
}

/* The models of the five products of a tile going back. */
static void models_backward(train_build *b, train_tiles *t, size_t scores, size_t context, const mpsim_format *p,
                            const mpsim_format *ds)
{
    train_product_model(b, scores, t->q->format, t->k->format, &t->scores);
    train_product_model(b, context, p, t->dy->format, &t->dvalue);
    train_product_model(b, context, t->dy->format, t->v->format, &t->dp);
    train_product_model(b, scores, ds, t->q->format, &t->dkey);
    train_product_model(b, scores, ds, t->k->format, &t->dquery);
}

/* d = sum of dO * y of every row. */
static const train_tensor *dots(train_build *b, size_t i, const train_tensor *dy)
{
    train_do *d = train_add(b, WORK_DOTS, i, "dots", dy->rows, 1, mpsim_format_find("binary32"));
    train_tiles *t = new_tiles(b, d, 1);
    if (t) {
        d->x = dy;
        d->y = b->layer[i]->results[0].to;
    }
    return d->results[0].to;
}

/* All three gradients; that of the queries is handed on. */
static const train_tensor *tiles_backward(train_build *b, size_t i, const train_tensor *dy)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const size_t scores = i - 2, rows = rows_of_heads(b), size = head_size(b);
    const mpsim_format *dgrad = &place(b, scores)->format[TRAIN_DGRAD];
    const train_tensor *sums = dots(b, i, dy);
    const train_tensor *copy = train_copy_kind(b, i, TRAIN_AGRAD) == COPY_TF32
                                   ? train_copy_of(b, i, TRAIN_AGRAD, ".q", dy, 0, &b->t->agrad)
                                   : dy;
    train_do *d = train_add(b, WORK_TILES_BACK, i, kind_of_heads(b, 1), rows, size, &place(b, i)->format[TRAIN_DGRAD]);
    train_add_result(b, d, scores, "dgrad", rows, size, dgrad);
    train_add_result(b, d, scores, kind_of_heads(b, 0), rows, size, dgrad);
    train_tiles *t = new_tiles(b, d, decoder(b)->tile);
    if (!t)
        return d->results[0].to;
    t->q = unquantised(b, &b->act[scores], scores, TRAIN_ACT);
    t->k = unquantised(b, &b->weight[scores], scores, TRAIN_WEIGHT);
    t->v = unquantised(b, &b->weight[i], i, TRAIN_WEIGHT);
    t->dy = copy;
    t->lse = b->layer[i]->results[1].to;
    t->dots = sums;
    borrow_all(b, t);
    borrow_tile(b, t, TILE_DP, fp32);
    const mpsim_format *p = borrow_operand(b, t, TILE_P, &place(b, i)->format[TRAIN_ACT],
                                           train_copy_kind(b, i, TRAIN_ACT));
    const mpsim_format *ds = borrow_operand(b, t, TILE_DS, &place(b, scores)->format[TRAIN_AGRAD],
                                            train_copy_kind(b, scores, TRAIN_AGRAD));
    models_backward(b, t, scores, i, p, ds);
    b->value = sum_of_groups(b, i, "dgrad.value", d->results[0].to);
    b->key = sum_of_groups(b, scores, "dgrad.key", d->results[2].to);
    return d->results[1].to;
}

/* ---- context ---- */

const train_tensor *train_context_forward(train_build *b, size_t i, const train_tensor *p)
{
    const train_tensor *o;
    if (!decoder(b)->tile)
        operand(b, &b->act[i], i, TRAIN_ACT, "act", p, &b->t->act);
    operand(b, &b->weight[i], i, TRAIN_WEIGHT, "value", b->value, &b->t->act);
    if (decoder(b)->tile)
        o = tiles_forward(b, i);
    else
        o = product(b, i, "out.heads", TRAIN_OUT, head_size(b),
                    (operands){b->act[i].first, 0, b->weight[i].first, 0, shared(b)}, &b->t->act);
    return at_its_place(b, i, o);
}

const train_tensor *train_context_backward(train_build *b, size_t i, const train_tensor *dy)
{
    const train_tensor *heads = gradient_of_heads(b, i, dy);
    if (decoder(b)->tile)
        return tiles_backward(b, i, heads);
    const train_tensor *q = train_copy_of(b, i, TRAIN_AGRAD, ".q", heads, 0, &b->t->agrad);
    const train_tensor *dp = product(b, i, "dgrad", TRAIN_DGRAD, decoder(b)->context,
                                     (operands){q, 0, b->weight[i].first, 1, shared(b)}, &b->t->agrad);
    const train_tensor *dv = product(b, i, kind_of_heads(b, 1), TRAIN_DGRAD, head_size(b),
                                     (operands){b->act[i].first, 1, q, 0, 1}, &b->t->agrad);
    b->value = sum_of_groups(b, i, "dgrad.value", dv);
    return dp;
}
