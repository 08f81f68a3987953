/* attention.c -- see check.h: softmax of causal scores, whole and in tiles. */
#include "check.h"

/* ---- whole ---- */

static int check_causal(train_engine *e, const char *operation, const train_tensor *x, const train_tensor *y)
{
    if (check_tensor(e, operation, x) || check_shape(e, operation, y, x->rows, x->cols))
        return -1;
    if (!x->cols || x->rows % x->cols)
        return check_fail(e, "%s: %zu x %zu is not a stack of square matrices", operation, x->rows, x->cols);
    return 0;
}

static int causal(train_engine *e, const mpsim_format *math, float scale, train_tensor *p, const train_tensor *s,
                  train_counts *counts)
{
    return check_causal(e, "causal", s, p) ? -1 : e->own->causal(e, math, scale, p, s, counts);
}

static int causal_backward(train_engine *e, const mpsim_format *math, float scale, train_tensor *ds,
                           const train_tensor *dp, const train_tensor *p, train_counts *counts)
{
    const char *name = "causal_backward";
    if (check_causal(e, name, dp, ds) || check_shape(e, name, p, dp->rows, dp->cols) || check_apart(e, name, ds, p))
        return -1;
    return e->own->causal_backward(e, math, scale, ds, dp, p, counts);
}

/* ---- in tiles ---- */

/* A tile that lies in its matrices, whose rows can be counted. */
static int check_tile(train_engine *e, const char *operation, const train_tile *t)
{
    if (!t)
        return check_fail(e, "%s: tile is NULL", operation);
    if (!t->length || t->first >= t->length || !t->cols || t->cols > t->length - t->first ||
        t->matrices > SIZE_MAX / t->length)
        return check_fail(e, "%s: columns %zu to %zu are beyond the columns of %zu matrices of size %zu", operation,
                          t->first, t->first + t->cols, t->matrices, t->length);
    return 0;
}

/* Rows that a tile has, and those of its matrices. */
static size_t own_rows(const train_tile *t)
{
    return t->matrices * (t->length - t->first);
}

static size_t all_rows(const train_tile *t)
{
    return t->matrices * t->length;
}

static int check_scores(train_engine *e, const char *operation, const train_tile *t, const train_tensor *x)
{
    return check_floats(e, operation, x, own_rows(t), t->cols);
}

/* A number for each row. */
static int check_numbers(train_engine *e, const char *operation, const train_tile *t, const train_tensor *x)
{
    return check_floats(e, operation, x, all_rows(t), 1);
}

static int tile_forward(train_engine *e, const train_tile *t, train_tensor *p, train_tensor *o, train_tensor *max,
                        train_tensor *sum, const train_tensor *s, train_counts *counts)
{
    const char *name = "tile_forward";
    if (check_tile(e, name, t) || check_scores(e, name, t, s) || check_shape(e, name, p, own_rows(t), t->cols) ||
        check_numbers(e, name, t, max) || check_numbers(e, name, t, sum) ||
        check_floats(e, name, o, all_rows(t), t->size) || check_apart(e, name, p, s))
        return -1;
    return e->own->tile_forward(e, t, p, o, max, sum, s, counts);
}

static int tile_end(train_engine *e, const train_tile *t, train_tensor *y, train_tensor *lse, const train_tensor *o,
                    const train_tensor *max, const train_tensor *sum, train_counts *counts)
{
    const char *name = "tile_end";
    if (check_tile(e, name, t) || check_numbers(e, name, t, lse) || check_numbers(e, name, t, max) ||
        check_numbers(e, name, t, sum) || check_floats(e, name, o, all_rows(t), t->size) ||
        check_shape(e, name, y, all_rows(t), t->size))
        return -1;
    return e->own->tile_end(e, t, y, lse, o, max, sum, counts);
}

static int tile_dots(train_engine *e, const train_tile *t, train_tensor *d, const train_tensor *dy,
                     const train_tensor *y)
{
    const char *name = "tile_dots";
    if (check_tile(e, name, t) || check_numbers(e, name, t, d) || check_shape(e, name, dy, all_rows(t), t->size) ||
        check_shape(e, name, y, all_rows(t), t->size))
        return -1;
    return e->own->tile_dots(e, t, d, dy, y);
}

/* Of a list; backward: dp and d are read, too. */
static int check_tiled(train_engine *e, const char *operation, const train_tiled *i, int backward)
{
    const train_tile *t = i->tile;
    if (check_tile(e, operation, t) || check_scores(e, operation, t, i->s) ||
        check_shape(e, operation, i->y, own_rows(t), t->cols) || check_numbers(e, operation, t, i->lse))
        return -1;
    return backward ? check_scores(e, operation, t, i->dp) || check_numbers(e, operation, t, i->d) : 0;
}

static int tile_again(train_engine *e, const train_tiled *list, size_t n)
{
    int bad = check_list(e, "tile_again", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tiled(e, "tile_again", &list[i], 0);
    return bad ? -1 : e->own->tile_again(e, list, n);
}

static int tile_backward(train_engine *e, const train_tiled *list, size_t n)
{
    int bad = check_list(e, "tile_backward", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tiled(e, "tile_backward", &list[i], 1);
    return bad ? -1 : e->own->tile_backward(e, list, n);
}

void check_attention(train_ops *to)
{
    to->causal = causal;
    to->causal_backward = causal_backward;
    to->tile_forward = tile_forward;
    to->tile_end = tile_end;
    to->tile_dots = tile_dots;
    to->tile_again = tile_again;
    to->tile_backward = tile_backward;
}
