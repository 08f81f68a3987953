/* tokens.c -- see check.h: sums, tables, heads, normalisation of rows, activations. */
#include "check.h"

/* ---- sums of two ---- */

static int add(train_engine *e, train_tensor *y, const train_tensor *a, const train_tensor *b, train_counts *counts)
{
    if (check_tensor(e, "add", y) || check_shape(e, "add", a, y->rows, y->cols) ||
        check_shape(e, "add", b, y->rows, y->cols))
        return -1;
    return e->own->add(e, y, a, b, counts);
}

static int add_rows(train_engine *e, train_tensor *y, const train_tensor *x, const train_tensor *table,
                    train_counts *counts)
{
    if (check_tensor(e, "add_rows", x) || check_shape(e, "add_rows", y, x->rows, x->cols) ||
        check_tensor(e, "add_rows", table) || check_shape(e, "add_rows: table", table, table->rows, x->cols) ||
        check_apart(e, "add_rows", y, table))
        return -1;
    if (!table->rows && x->rows)
        return check_fail(e, "add_rows: table has no rows");
    return e->own->add_rows(e, y, x, table, counts);
}

/* A gradient of a table from rows of dy. */
static int check_table(train_engine *e, const char *operation, const train_tensor *dtable, const train_tensor *dy)
{
    return check_tensor(e, operation, dy) || check_tensor(e, operation, dtable) ||
           check_shape(e, operation, dtable, dtable->rows, dy->cols) || check_apart(e, operation, dtable, dy);
}

static int add_rows_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, train_counts *counts)
{
    const char *name = "add_rows_backward";
    if (check_table(e, name, dtable, dy))
        return -1;
    if (!dtable->rows && dy->rows)
        return check_fail(e, "%s: table has no rows", name);
    return e->own->add_rows_backward(e, dtable, dy, counts);
}

static int add_groups(train_engine *e, train_tensor *y, const train_tensor *x, size_t length, size_t group,
                      train_counts *counts)
{
    const char *name = "add_groups";
    if (check_tensor(e, name, y) || check_tensor(e, name, x) || check_shape(e, name, x, x->rows, y->cols) ||
        check_apart(e, name, y, x))
        return -1;
    if (!length || !group || !y->cols || y->rows % length || x->rows % group || x->rows / group != y->rows)
        return check_fail(e, "%s: %zu x %zu of %zu x %zu in groups of %zu matrices of %zu rows", name, y->rows, y->cols,
                          x->rows, x->cols, group, length);
    return e->own->add_groups(e, y, x, length, group, counts);
}

/* ---- rows of a table ---- */

static int check_index(train_engine *e, const char *operation, const uint32_t *index, size_t n, size_t rows)
{
    if (!index && n)
        return check_fail(e, "%s: index is NULL", operation);
    if (n > UINT32_MAX)
        return check_fail(e, "%s: %zu rows are too many", operation, n);
    for (size_t i = 0; i < n; i++)
        if (index[i] >= rows)
            return check_fail(e, "%s: number %zu is %lu, beyond %zu rows", operation, i, (unsigned long)index[i], rows);
    return 0;
}

static int embed(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index,
                 train_counts *counts)
{
    if (check_tensor(e, "embed", table) || check_tensor(e, "embed", y) ||
        check_shape(e, "embed", y, y->rows, table->cols) || check_apart(e, "embed", y, table) ||
        check_index(e, "embed", index, y->rows, table->rows))
        return -1;
    return e->own->embed(e, y, table, index, counts);
}

static int embed_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index,
                          int added, train_counts *counts)
{
    const char *name = "embed_backward";
    if (check_table(e, name, dtable, dy) || check_index(e, name, index, dy->rows, dtable->rows))
        return -1;
    return e->own->embed_backward(e, dtable, dy, index, added, counts);
}

/* ---- heads ---- */

/* x: rows of tokens, y: matrices of heads. */
static int check_heads(train_engine *e, const char *operation, const train_tensor *x, const train_tensor *y,
                       const train_heads *h)
{
    if (!h)
        return check_fail(e, "%s: heads are NULL", operation);
    if (check_tensor(e, operation, x) || check_tensor(e, operation, y))
        return -1;
    if (!h->sequences || !h->length || !h->heads || !h->size || h->first > x->cols ||
        h->heads > (x->cols - h->first) / h->size)
        return check_fail(e, "%s: %zu heads of %zu from column %zu of %zu", operation, h->heads, h->size, h->first,
                          x->cols);
    if (x->rows % h->length || x->rows / h->length != h->sequences || y->rows % h->heads ||
        y->rows / h->heads != x->rows || y->cols != h->size)
        return check_fail(e, "%s: %zu x %zu and %zu x %zu of %zu sequences of %zu", operation, x->rows, x->cols,
                          y->rows, y->cols, h->sequences, h->length);
    if (!h->cos != !h->sin || (h->cos && h->size % 2))
        return check_fail(e, "%s: rotations need tables of cosines and sines, and heads of an even size", operation);
    return (h->cos && (check_floats(e, operation, h->cos, h->length, h->size / 2) ||
                       check_floats(e, operation, h->sin, h->length, h->size / 2))) ||
           check_apart(e, operation, x, y);
}

static int split(train_engine *e, const train_turn *list, size_t n)
{
    int bad = check_list(e, "split", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_heads(e, "split", list[i].x, list[i].y, list[i].heads);
    return bad ? -1 : e->own->split(e, list, n);
}

static int join(train_engine *e, const train_turn *list, size_t n)
{
    int bad = check_list(e, "join", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_heads(e, "join", list[i].y, list[i].x, list[i].heads);
    return bad ? -1 : e->own->join(e, list, n);
}

/* ---- normalisation ---- */

static int check_norm(train_engine *e, const char *operation, const mpsim_rownorm *r, const train_tensor *x,
                      const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight)
{
    if (!r)
        return check_fail(e, "%s: settings are NULL", operation);
    return check_tensor(e, operation, x) || check_floats(e, operation, mean, x->rows, 1) ||
           check_floats(e, operation, inverse, x->rows, 1) || check_shape(e, operation, weight, 1, x->cols);
}

static int check_kind(train_engine *e, const char *operation, const mpsim_rownorm *r)
{
    return r->kind > MPSIM_NORM_RMS ? check_fail(e, "%s: unknown normalisation %d", operation, (int)r->kind) : 0;
}

static int rownorm(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                   const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts)
{
    if (check_norm(e, "rownorm", r, x, mean, inverse, weight) || check_shape(e, "rownorm", y, x->rows, x->cols) ||
        (bias && check_shape(e, "rownorm", bias, 1, x->cols)) || check_kind(e, "rownorm", r))
        return -1;
    return e->own->rownorm(e, r, y, mean, inverse, x, weight, bias, counts);
}

static int check_gradients(train_engine *e, const train_normed *i)
{
    const char *name = "rownorm_gradients";
    const train_tensor *x = i->x;
    return check_norm(e, name, i->r, x, i->mean, i->inverse, i->weight) ||
           check_shape(e, name, i->dy, x->rows, x->cols) || check_shape(e, name, i->dweight, 1, x->cols) ||
           (i->dbias && check_shape(e, name, i->dbias, 1, x->cols)) || check_kind(e, name, i->r);
}

static int rownorm_gradients(train_engine *e, const train_normed *list, size_t n)
{
    int bad = check_list(e, "rownorm_gradients", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_gradients(e, &list[i]);
    return bad ? -1 : e->own->rownorm_gradients(e, list, n);
}

static int rownorm_backward(train_engine *e, const mpsim_rownorm *r, train_tensor *dx, train_tensor *dweight,
                            train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                            const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                            train_counts *counts)
{
    const char *name = "rownorm_backward";
    const train_normed own = {r, dweight, dbias, dy, x, mean, inverse, weight};
    if (check_norm(e, name, r, x, mean, inverse, weight) || check_shape(e, name, dy, x->rows, x->cols) ||
        check_shape(e, name, dx, x->rows, x->cols) || check_apart(e, name, dx, x) ||
        (dweight && check_gradients(e, &own)) || check_kind(e, name, r))
        return -1;
    return e->own->rownorm_backward(e, r, dx, dweight, dbias, dy, x, mean, inverse, weight, counts);
}

/* ---- activations ---- */

static int check_activation(train_engine *e, const char *operation, mpsim_activation kind, const train_tensor *x,
                            const train_tensor *y)
{
    if (kind != MPSIM_GELU_TANH && kind != MPSIM_GELU && kind != MPSIM_SWIGLU)
        return check_fail(e, "%s: unknown activation %d", operation, (int)kind);
    if (check_tensor(e, operation, x) || check_tensor(e, operation, y))
        return -1;
    if (kind == MPSIM_SWIGLU && x->cols % 2)
        return check_fail(e, "%s: %zu columns cannot be halved into gates and values", operation, x->cols);
    return check_shape(e, operation, y, x->rows, kind == MPSIM_SWIGLU ? x->cols / 2 : x->cols);
}

static int activate(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                    const train_tensor *x, train_counts *counts)
{
    if (check_activation(e, "activate", kind, x, y) || check_apart(e, "activate", y, x))
        return -1;
    return e->own->activate(e, kind, math, y, x, counts);
}

static int activate_backward(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *dx,
                             const train_tensor *dy, const train_tensor *x, train_counts *counts)
{
    const char *name = "activate_backward";
    if (check_activation(e, name, kind, x, dy) || check_shape(e, name, dx, x->rows, x->cols) ||
        check_apart(e, name, dx, dy) || check_apart(e, name, dx, x))
        return -1;
    return e->own->activate_backward(e, kind, math, dx, dy, x, counts);
}

void check_tokens(train_ops *to)
{
    to->add = add;
    to->add_rows = add_rows;
    to->add_rows_backward = add_rows_backward;
    to->add_groups = add_groups;
    to->embed = embed;
    to->embed_backward = embed_backward;
    to->split = split;
    to->join = join;
    to->rownorm = rownorm;
    to->rownorm_gradients = rownorm_gradients;
    to->rownorm_backward = rownorm_backward;
    to->activate = activate;
    to->activate_backward = activate_backward;
}
