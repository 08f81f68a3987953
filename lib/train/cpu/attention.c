/* attention.c -- the CPU engine: softmax of causal attention, whole and in tiles. Pieces are whole
 * matrices. */
#include "cpu.h"

/* ---- whole ---- */

typedef struct causal {
    mpsim_causal c;
    float *to;
    const float *s, *p;
} causal;

/* The settings of a piece, whose first element is at *at. */
static mpsim_causal piece_of(const causal *o, size_t first, size_t n, size_t *at)
{
    mpsim_causal c = o->c;
    c.matrices = n / c.length;
    *at = first * c.length;
    return c;
}

static mpsim_status softmax(const void *operation, size_t first, size_t n)
{
    const causal *o = operation;
    size_t at;
    const mpsim_causal c = piece_of(o, first, n, &at);
    return mpsim_causal_softmax(&c, o->to + at, o->s + at);
}

static mpsim_status softmax_back(const void *operation, size_t first, size_t n)
{
    const causal *o = operation;
    size_t at;
    const mpsim_causal c = piece_of(o, first, n, &at);
    return mpsim_causal_softmax_backward(&c, o->to + at, o->s + at, o->p + at);
}

int cpu_causal(train_engine *e, const mpsim_format *math, float scale, train_tensor *p, const train_tensor *s,
               train_counts *counts)
{
    const causal o = {.c = {.length = s->cols, .scale = scale, .math = math}, .to = cpu_values(p), .s = cpu_values(s)};
    return cpu_rows(e, "causal", p, s->cols, softmax, &o, counts);
}

int cpu_causal_backward(train_engine *e, const mpsim_format *math, float scale, train_tensor *ds,
                        const train_tensor *dp, const train_tensor *p, train_counts *counts)
{
    const char *name = "causal_backward";
    const causal o = {.c = {.length = dp->cols, .scale = scale, .math = math},
                      .to = cpu_values(ds),
                      .s = cpu_values(dp),
                      .p = cpu_values(p)};
    return cpu_rows(e, name, ds, dp->cols, softmax_back, &o, counts);
}

/* ---- in tiles ---- */

/* Of one matrix and of the next: rows of a tile, numbers of a row of the whole. */
typedef struct tiles {
    mpsim_causal_tile t;
    size_t rows;
    float *to, *o, *max, *sum;
    const float *s, *dp, *from, *lse, *d;
} tiles;

static tiles tiles_of(const train_tile *t)
{
    return (tiles){.t = {.c = {.length = t->length, .scale = t->scale},
                         .first = t->first,
                         .cols = t->cols,
                         .size = t->size,
                         .p_scale = t->p_scale},
                   .rows = t->length - t->first};
}

static mpsim_causal_tile piece(const tiles *o, size_t matrices)
{
    mpsim_causal_tile t = o->t;
    t.c.matrices = matrices;
    return t;
}

static mpsim_status tile_forward(const void *operation, size_t first, size_t n)
{
    const tiles *o = operation;
    const mpsim_causal_tile t = piece(o, n / o->rows);
    const size_t row = first / o->rows * t.c.length, at = first * t.cols;
    return mpsim_causal_tile_forward(&t, o->to + at, o->o + row * t.size, o->max + row, o->sum + row, o->s + at);
}

int cpu_tile_forward(train_engine *e, const train_tile *t, train_tensor *p, train_tensor *o, train_tensor *max,
                     train_tensor *sum, const train_tensor *s, train_counts *counts)
{
    const char *name = "tile_forward";
    tiles x = tiles_of(t);
    x.to = cpu_values(p);
    x.o = cpu_values(o);
    x.max = cpu_values(max);
    x.sum = cpu_values(sum);
    x.s = cpu_values(s);
    return cpu_rows(e, name, p, x.rows, tile_forward, &x, counts);
}

static mpsim_status tile_end(const void *operation, size_t first, size_t n)
{
    const tiles *o = operation;
    const mpsim_causal_tile t = piece(o, n / o->t.c.length);
    return mpsim_causal_tile_end(&t, o->to + first * t.size, o->o + first, o->from + first * t.size, o->max + first,
                                 o->sum + first);
}

int cpu_tile_end(train_engine *e, const train_tile *t, train_tensor *y, train_tensor *lse, const train_tensor *o,
                 const train_tensor *max, const train_tensor *sum, train_counts *counts)
{
    const char *name = "tile_end";
    tiles x = tiles_of(t);
    x.to = cpu_values(y);
    x.o = cpu_values(lse);
    x.from = cpu_values(o);
    x.max = cpu_values(max);
    x.sum = cpu_values(sum);
    lse->inverse = 1;
    return cpu_rows(e, name, y, t->length, tile_end, &x, counts);
}

static mpsim_status tile_dots(const void *operation, size_t first, size_t n)
{
    const tiles *o = operation;
    const mpsim_causal_tile t = piece(o, n / o->t.c.length);
    return mpsim_causal_tile_dots(&t, o->to + first, o->dp + first * t.size, o->from + first * t.size);
}

int cpu_tile_dots(train_engine *e, const train_tile *t, train_tensor *d, const train_tensor *dy, const train_tensor *y)
{
    const char *name = "tile_dots";
    tiles x = tiles_of(t);
    x.to = cpu_values(d);
    x.dp = cpu_values(dy);
    x.from = cpu_values(y);
    return cpu_rows(e, name, d, t->length, tile_dots, &x, NULL);
}

static mpsim_status tile_again(const void *operation, size_t first, size_t n)
{
    const tiles *o = operation;
    const mpsim_causal_tile t = piece(o, n / o->rows);
    const size_t row = first / o->rows * t.c.length, at = first * t.cols;
    return mpsim_causal_tile_again(&t, o->to + at, o->s + at, o->lse + row);
}

static int again(train_engine *e, const train_tiled *i)
{
    const char *name = "tile_again";
    tiles x = tiles_of(i->tile);
    x.to = cpu_values(i->y);
    x.s = cpu_values(i->s);
    x.lse = cpu_values(i->lse);
    return cpu_rows(e, name, i->y, x.rows, tile_again, &x, i->counts);
}

int cpu_tile_again(train_engine *e, const train_tiled *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (again(e, &list[i]))
            return -1;
    return 0;
}

static mpsim_status tile_backward(const void *operation, size_t first, size_t n)
{
    const tiles *o = operation;
    const mpsim_causal_tile t = piece(o, n / o->rows);
    const size_t row = first / o->rows * t.c.length, at = first * t.cols;
    return mpsim_causal_tile_backward(&t, o->to + at, o->dp + at, o->s + at, o->lse + row, o->d + row);
}

static int backward(train_engine *e, const train_tiled *i)
{
    const char *name = "tile_backward";
    const train_tile *t = i->tile;
    tiles x = tiles_of(t);
    x.to = cpu_values(i->y);
    x.dp = cpu_values(i->dp);
    x.s = cpu_values(i->s);
    x.lse = cpu_values(i->lse);
    x.d = cpu_values(i->d);
    return cpu_rows(e, name, i->y, x.rows, tile_backward, &x, i->counts);
}

int cpu_tile_backward(train_engine *e, const train_tiled *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (backward(e, &list[i]))
            return -1;
    return 0;
}
