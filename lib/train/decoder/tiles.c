/* tiles.c -- attention in tiles, done: the operations of an engine for each tile of columns, and for each
 * only the rows that meet it; what does not depend on other tiles is done for some of them at once; see train.h.
 *
 * The tiles are a loop over products of stacks of matrices and rows of scores: an engine has no operation for
 * attention. Up to four tiles are done at once, fewer if their scores are more than 2^22 numbers. Sums over tiles
 * keep their order. */
#include "../trainer.h"

/* A tile at hand: its columns, the rows of a head from its first column on, and its matrices. */
typedef struct at_hand {
    train_tile shape;
    train_part columns, below;
    train_tensor s, p, dp, ds;
    train_tensor p_read, ds_read; /* as products read them */
} at_hand;

static train_tensor view(const train_tensor *x, size_t rows, size_t cols)
{
    train_tensor y = *x;
    y.rows = rows;
    y.cols = cols;
    y.inverse = 1;
    return y;
}

/* The tile from column `first` on, in place k. */
static at_hand tile_at(const train_tiles *x, size_t first, size_t k)
{
    const size_t left = x->shape.length - first, n = left < x->tile ? left : x->tile;
    const size_t rows = x->shape.matrices * left;
    const train_tensor *all = x->own[k];
    at_hand h = {.shape = x->shape,
                 .columns = {first, n},
                 .below = {first, left},
                 .s = view(&all[TILE_S], rows, n),
                 .p = view(&all[TILE_P], rows, n),
                 .dp = view(&all[TILE_DP], rows, n),
                 .ds = view(&all[TILE_DS], rows, n),
                 .p_read = view(&all[all[TILE_P_TF32].data ? TILE_P_TF32 : TILE_P], rows, n),
                 .ds_read = view(&all[all[TILE_DS_TF32].data ? TILE_DS_TF32 : TILE_DS], rows, n)};
    h.shape.first = first;
    h.shape.cols = n;
    return h;
}

/* Those from column *first on that are done at once, and *first behind them. */
static size_t tiles_at(const train_tiles *x, size_t *first, at_hand *h)
{
    size_t n = 0;
    for (; n < x->at_once && *first < x->shape.length; *first += x->tile, n++)
        h[n] = tile_at(x, *first, n);
    return n;
}

/* ---- products that are done at once ---- */

typedef struct products {
    train_gemm g[2 * TRAIN_TILES_AT_ONCE];
    train_multiply list[2 * TRAIN_TILES_AT_ONCE];
    size_t n;
} products;

static void add(products *p, const at_hand *h, train_tensor *d, train_gemm g, const mpsim_model *m,
                train_counts *counts)
{
    g.model = m;
    g.stacks = h->shape.matrices;
    p->g[p->n] = g;
    p->list[p->n] = (train_multiply){.d = d, .g = &p->g[p->n], .counts = counts};
    p->n++;
}

static int multiply(train *t, const products *p)
{
    return t->e->ops->gemm_list(t->e, p->list, p->n);
}

static void add_scores(products *p, const train_tiles *x, at_hand *h)
{
    add(p, h, &h->s,
        (train_gemm){
            .a = x->q, .a_part = h->below, .b = x->k, .b_part = h->columns, .b_transposed = 1, .shared = x->shared},
        &x->scores, NULL);
}

/* One of a list of copies in tf32, where products read such. */
static size_t add_copy(train_pair *list, size_t n, train_tensor *y, const train_tensor *x)
{
    if (y->data == x->data)
        return n;
    list[n] = (train_pair){.y = y, .x = x};
    return n + 1;
}

/* ---- forward ---- */

static int begin(train *t, train_tiles *x)
{
    const size_t rows = x->shape.matrices * x->shape.length;
    const train_tensor zeros = view(&x->scratch[SCRATCH_ZEROS], rows, 1);
    const train_pair list[] = {{.y = &x->scratch[SCRATCH_SUM], .x = &x->scratch[SCRATCH_ZEROS]},
                               {.y = &x->scratch[SCRATCH_ROW_MAX], .x = &x->scratch[SCRATCH_INFINITES]},
                               {.y = &x->scratch[SCRATCH_ROW_SUM], .x = &zeros}};
    const size_t n = x->scratch[SCRATCH_ROW_MAX].data ? 3 : 1;
    return t->e->ops->cast_list(t->e, list, n, MPSIM_ROUND_NEAREST_EVEN);
}

/* A tile after those before it: their sums go on. */
static int tile_forward(train *t, train_tiles *x, at_hand *h)
{
    train_tensor *o = &x->scratch[SCRATCH_SUM];
    const train_tensor v = view(x->v, x->v->rows, x->v->cols);
    train_pair copy;
    products p = {.n = 0};
    if (t->e->ops->tile_forward(t->e, &h->shape, &h->p, o, &x->scratch[SCRATCH_ROW_MAX], &x->scratch[SCRATCH_ROW_SUM],
                                &h->s, x->act) ||
        t->e->ops->cast_list(t->e, &copy, add_copy(&copy, 0, &h->p_read, &h->p), MPSIM_ROUND_NEAREST_AWAY))
        return -1;
    add(&p, h, o,
        (train_gemm){.a = &h->p_read,
                     .b = &v,
                     .b_part = h->columns,
                     .d_part = h->below,
                     .shared = x->shared,
                     .start = TRAIN_FROM_SUM},
        &x->context, NULL);
    return multiply(t, &p);
}

static int some_forward(train *t, train_tiles *x, at_hand *h, size_t n)
{
    products p = {.n = 0};
    for (size_t k = 0; k < n; k++)
        add_scores(&p, x, &h[k]);
    if (multiply(t, &p))
        return -1;
    for (size_t k = 0; k < n; k++)
        if (tile_forward(t, x, &h[k]))
            return -1;
    return 0;
}

static int forward(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    train_tiles *x = d->tiles;
    train_tensor *o = &x->scratch[SCRATCH_SUM];
    at_hand h[TRAIN_TILES_AT_ONCE];
    if (begin(t, x))
        return -1;
    for (size_t first = 0, n; (n = tiles_at(x, &first, h)) > 0;)
        if (some_forward(t, x, h, n))
            return -1;
    if (x->v->inverse != 1 && ops->scale(t->e, &o, 1, x->v->inverse))
        return -1;
    return ops->tile_end(t->e, &x->shape, d->results[0].to, d->results[1].to, o, &x->scratch[SCRATCH_ROW_MAX],
                         &x->scratch[SCRATCH_ROW_SUM], x->act);
}

/* ---- back ---- */

/* S and dP. */
static int multiply_scores(train *t, const train_tiles *x, at_hand *h, size_t n)
{
    products p = {.n = 0};
    for (size_t k = 0; k < n; k++) {
        add_scores(&p, x, &h[k]);
        add(&p, &h[k], &h[k].dp,
            (train_gemm){.a = x->dy,
                         .a_part = h[k].below,
                         .b = x->v,
                         .b_part = h[k].columns,
                         .b_transposed = 1,
                         .shared = x->shared},
            &x->dp, NULL);
    }
    return multiply(t, &p);
}

/* P and dS, as products read them. */
static int rows_backward(train *t, const train_tiles *x, at_hand *h, size_t n)
{
    const train_ops *ops = t->e->ops;
    train_tiled p[TRAIN_TILES_AT_ONCE], ds[TRAIN_TILES_AT_ONCE];
    train_pair copies[2 * TRAIN_TILES_AT_ONCE];
    size_t copied = 0;
    for (size_t k = 0; k < n; k++) {
        p[k] = (train_tiled){.tile = &h[k].shape, .y = &h[k].p, .s = &h[k].s, .lse = x->lse};
        ds[k] = (train_tiled){.tile = &h[k].shape,
                              .y = &h[k].ds,
                              .s = &h[k].s,
                              .lse = x->lse,
                              .dp = &h[k].dp,
                              .d = x->dots,
                              .counts = x->agrad};
        copied = add_copy(copies, copied, &h[k].p_read, &h[k].p);
        copied = add_copy(copies, copied, &h[k].ds_read, &h[k].ds);
    }
    return ops->tile_again(t->e, p, n) || ops->tile_backward(t->e, ds, n)
               ? -1
               : ops->cast_list(t->e, copies, copied, MPSIM_ROUND_NEAREST_AWAY);
}

/* dV and dK. */
static int multiply_gradients(train *t, const train_tiles *x, const at_hand *h, size_t n, train_do *d)
{
    products p = {.n = 0};
    for (size_t k = 0; k < n; k++) {
        add(&p, &h[k], d->results[0].to,
            (train_gemm){
                .a = &h[k].p_read, .a_transposed = 1, .b = x->dy, .b_part = h[k].below, .d_part = h[k].columns},
            &x->dvalue, x->agrad);
        add(&p, &h[k], d->results[2].to,
            (train_gemm){
                .a = &h[k].ds_read, .a_transposed = 1, .b = x->q, .b_part = h[k].below, .d_part = h[k].columns},
            &x->dkey, x->agrad);
    }
    return multiply(t, &p);
}

/* A tile's part of dQ, after those of the tiles before it. */
static int add_dquery(train *t, train_tiles *x, const at_hand *h)
{
    products p = {.n = 0};
    add(&p, h, &x->scratch[SCRATCH_SUM],
        (train_gemm){.a = &h->ds_read,
                     .b = x->k,
                     .b_part = h->columns,
                     .d_part = h->below,
                     .shared = x->shared,
                     .start = TRAIN_ADD_TO},
        &x->dquery, NULL);
    return multiply(t, &p);
}

static int some_backward(train *t, train_tiles *x, at_hand *h, size_t n, train_do *d)
{
    if (multiply_scores(t, x, h, n) || rows_backward(t, x, h, n) || multiply_gradients(t, x, h, n, d))
        return -1;
    for (size_t k = 0; k < n; k++)
        if (add_dquery(t, x, &h[k]))
            return -1;
    return 0;
}

static int backward(train *t, train_do *d)
{
    train_tiles *x = d->tiles;
    at_hand h[TRAIN_TILES_AT_ONCE];
    if (begin(t, x))
        return -1;
    for (size_t first = 0, n; (n = tiles_at(x, &first, h)) > 0;)
        if (some_backward(t, x, h, n, d))
            return -1;
    return t->e->ops->cast(t->e, d->results[1].to, &x->scratch[SCRATCH_SUM], MPSIM_ROUND_NEAREST_EVEN, x->agrad);
}

int train_do_tiles(train *t, train_do *d)
{
    if (d->work == WORK_DOTS)
        return t->e->ops->tile_dots(t->e, &d->tiles->shape, d->results[0].to, d->x, d->y);
    return d->work == WORK_TILES ? forward(t, d) : backward(t, d);
}
