/* tiles.c -- attention in tiles, done: the operations of an engine for each tile of columns, and for each
 * only the rows that meet it; see train.h. */
#include "../trainer.h"

/* A tile at hand: its columns, and the rows of a head from its first column on. */
typedef struct at_hand {
    train *t;
    train_tiles *x;
    train_tile shape;
    train_part columns, below;
} at_hand;

static at_hand tile_at(train *t, train_tiles *x, size_t first)
{
    const size_t left = x->shape.length - first, n = left < x->tile ? left : x->tile;
    at_hand h = {t, x, x->shape, {first, n}, {first, left}};
    h.shape.first = first;
    h.shape.cols = n;
    return h;
}

static train_tensor view(const train_tensor *x, size_t rows, size_t cols)
{
    train_tensor y = *x;
    y.rows = rows;
    y.cols = cols;
    y.inverse = 1;
    return y;
}

/* The tile of a tensor that holds scores. */
static train_tensor tile_of(const at_hand *h, train_scratch_use use)
{
    return view(&h->x->scratch[use], h->shape.matrices * h->below.n, h->shape.cols);
}

static int multiply(const at_hand *h, train_tensor *d, train_gemm g, const mpsim_model *m,
                    train_counts *counts)
{
    g.model = m;
    g.stacks = h->shape.matrices;
    return h->t->e->ops->gemm(h->t->e, d, &g, counts);
}

/* P, dS as products read them. */
static int as_operand(const at_hand *h, train_tensor *x, train_scratch_use tf32)
{
    if (!h->x->scratch[tf32].data)
        return 0;
    train_tensor y = tile_of(h, tf32);
    const int code = h->t->e->ops->cast(h->t->e, &y, x, MPSIM_ROUND_NEAREST_AWAY, NULL);
    *x = y;
    return code;
}

static int scores(const at_hand *h, train_tensor *s)
{
    const train_tiles *x = h->x;
    return multiply(h, s,
                    (train_gemm){.a = x->q, .a_part = h->below, .b = x->k, .b_part = h->columns,
                                 .b_transposed = 1, .shared = x->shared},
                    &x->scores, NULL);
}

/* ---- forward ---- */

static int begin(const train_ops *ops, train_engine *e, train_tiles *x)
{
    const size_t rows = x->shape.matrices * x->shape.length;
    train_tensor zeros = x->scratch[SCRATCH_ZEROS];
    if (ops->cast(e, &x->scratch[SCRATCH_SUM], &zeros, MPSIM_ROUND_NEAREST_EVEN, NULL))
        return -1;
    if (!x->scratch[SCRATCH_ROW_MAX].data)
        return 0;
    zeros = view(&zeros, rows, 1);
    return ops->cast(e, &x->scratch[SCRATCH_ROW_MAX], &x->scratch[SCRATCH_INFINITES],
                     MPSIM_ROUND_NEAREST_EVEN, NULL) ||
                   ops->cast(e, &x->scratch[SCRATCH_ROW_SUM], &zeros, MPSIM_ROUND_NEAREST_EVEN, NULL)
               ? -1
               : 0;
}

static int tile_forward(const at_hand *h)
{
    train_tiles *x = h->x;
    train_tensor s = tile_of(h, SCRATCH_S), p = tile_of(h, SCRATCH_P);
    train_tensor *o = &x->scratch[SCRATCH_SUM];
    const train_tensor v = view(x->v, x->v->rows, x->v->cols);
    if (scores(h, &s) ||
        h->t->e->ops->tile_forward(h->t->e, &h->shape, &p, o, &x->scratch[SCRATCH_ROW_MAX],
                                   &x->scratch[SCRATCH_ROW_SUM], &s, x->act) ||
        as_operand(h, &p, SCRATCH_P_TF32))
        return -1;
    return multiply(h, o,
                    (train_gemm){.a = &p, .b = &v, .b_part = h->columns, .d_part = h->below,
                                 .shared = x->shared, .start = TRAIN_FROM_SUM},
                    &x->context, NULL);
}

static int forward(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    train_tiles *x = d->tiles;
    train_tensor *o = &x->scratch[SCRATCH_SUM];
    if (begin(ops, t->e, x))
        return -1;
    for (size_t first = 0; first < x->shape.length; first += x->tile) {
        const at_hand h = tile_at(t, x, first);
        if (tile_forward(&h))
            return -1;
    }
    if (x->v->inverse != 1 && ops->scale(t->e, &o, 1, x->v->inverse))
        return -1;
    return ops->tile_end(t->e, &x->shape, d->results[0].to, d->results[1].to, o,
                         &x->scratch[SCRATCH_ROW_MAX], &x->scratch[SCRATCH_ROW_SUM], x->act);
}

/* ---- back ---- */

/* P of the tile and, from it, dV. */
static int values_backward(const at_hand *h, train_tensor *dv, const train_tensor *s)
{
    const train_tiles *x = h->x;
    train_tensor p = tile_of(h, SCRATCH_P);
    if (h->t->e->ops->tile_again(h->t->e, &h->shape, &p, s, x->lse, NULL) ||
        as_operand(h, &p, SCRATCH_P_TF32))
        return -1;
    return multiply(h, dv,
                    (train_gemm){.a = &p, .a_transposed = 1, .b = x->dy, .b_part = h->below,
                                 .d_part = h->columns},
                    &x->dvalue, x->agrad);
}

/* dS of the tile and, from it, dK and a part of dQ. */
static int tile_backward(const at_hand *h, train_tensor *dk, const train_tensor *s)
{
    train_tiles *x = h->x;
    train_tensor dp = tile_of(h, SCRATCH_DP), ds = tile_of(h, SCRATCH_DS);
    if (multiply(h, &dp,
                 (train_gemm){.a = x->dy, .a_part = h->below, .b = x->v, .b_part = h->columns,
                              .b_transposed = 1, .shared = x->shared},
                 &x->dp, NULL) ||
        h->t->e->ops->tile_backward(h->t->e, &h->shape, &ds, &dp, s, x->lse, x->dots, x->agrad) ||
        as_operand(h, &ds, SCRATCH_DS_TF32) ||
        multiply(h, dk,
                 (train_gemm){.a = &ds, .a_transposed = 1, .b = x->q, .b_part = h->below,
                              .d_part = h->columns},
                 &x->dkey, x->agrad))
        return -1;
    return multiply(h, &x->scratch[SCRATCH_SUM],
                    (train_gemm){.a = &ds, .b = x->k, .b_part = h->columns, .d_part = h->below,
                                 .shared = x->shared, .start = TRAIN_ADD_TO},
                    &x->dquery, NULL);
}

static int backward(train *t, train_do *d)
{
    train_tiles *x = d->tiles;
    if (begin(t->e->ops, t->e, x))
        return -1;
    for (size_t first = 0; first < x->shape.length; first += x->tile) {
        const at_hand h = tile_at(t, x, first);
        train_tensor s = tile_of(&h, SCRATCH_S);
        if (scores(&h, &s) || values_backward(&h, d->results[0].to, &s) ||
            tile_backward(&h, d->results[2].to, &s))
            return -1;
    }
    return t->e->ops->cast(t->e, d->results[1].to, &x->scratch[SCRATCH_SUM],
                           MPSIM_ROUND_NEAREST_EVEN, x->agrad);
}

int train_do_tiles(train *t, train_do *d)
{
    if (d->work == WORK_DOTS)
        return t->e->ops->tile_dots(t->e, &d->tiles->shape, d->results[0].to, d->x, d->y);
    return d->work == WORK_TILES ? forward(t, d) : backward(t, d);
}
