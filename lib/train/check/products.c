/* products.c -- see check.h: matrix products, one or a stack of them. */
#include "check.h"

/* Factors of blocks have a row for each `rows` of x's, a number for each block of the depth. */
static int check_blocks(train_engine *e, const train_tensor *blocks, const train_tensor *x, size_t rows, size_t promote)
{
    if (!rows || !promote)
        return check_fail(e, "gemm: rows and depth of blocks must be above 0");
    return check_floats(e, "gemm: blocks", blocks, (x->rows + rows - 1) / rows, (x->cols + promote - 1) / promote);
}

/* What a product alone may have. */
static int check_alone(train_engine *e, const train_gemm *g, size_t columns)
{
    const int parts = g->a_part.n || g->b_part.n || g->d_part.n;
    if ((g->stacks > 1 || parts) && (g->bias || g->a_blocks || g->b_blocks || g->depth_limit))
        return check_fail(e, "gemm: a stack of products takes no bias, blocks or depth limit");
    if (!g->stacks && parts)
        return check_fail(e, "gemm: parts of matrices need a stack of products");
    if (g->bias && check_shape(e, "gemm: bias", g->bias, 1, columns))
        return -1;
    if (!g->a_blocks != !g->b_blocks || (g->a_blocks && (g->a_transposed || !g->b_transposed)))
        return check_fail(e, "gemm: both operands or none have blocks, along the depth");
    if (g->model->block && (!g->a_blocks || g->promote != g->model->block))
        return check_fail(e, "gemm: model %s needs the scales of its blocks", g->model->name);
    return g->a_blocks && (check_blocks(e, g->a_blocks, g->a, g->a_rows, g->promote) ||
                           check_blocks(e, g->b_blocks, g->b, g->b_rows, g->promote))
               ? -1
               : 0;
}

static int check_start(train_engine *e, const train_tensor *d, const train_gemm *g)
{
    if (g->start > TRAIN_ADD_TO)
        return check_fail(e, "gemm: unknown start mode %d", (int)g->start);
    if (g->start == TRAIN_FROM_ZERO)
        return 0;
    if (!check_is_binary32(d->format))
        return check_fail(e, "gemm: sums continue in binary32, not in %s", d->format->name);
    if (g->start == TRAIN_FROM_SUM && (g->a_blocks || g->a->inverse != 1 || g->b->inverse != 1))
        return check_fail(e, "gemm: sums with scales cannot continue");
    return 0;
}

/* Rows of each of the matrices of a stack that are in the product. */
static int check_part(train_engine *e, const char *name, const train_tensor *x, size_t matrices, const train_part *part,
                      size_t *rows)
{
    if (check_tensor(e, "gemm", x))
        return -1;
    if (x->rows % matrices)
        return check_fail(e, "gemm: %zu rows of %s cannot be divided into %zu matrices", x->rows, name, matrices);
    const size_t height = x->rows / matrices;
    *rows = part->n ? part->n : height;
    if (*rows > height || part->first > height - *rows)
        return check_fail(e, "gemm: rows %zu to %zu of %s are beyond its matrices of %zu rows", part->first,
                          part->first + part->n, name, height);
    return 0;
}

static int check_shapes(train_engine *e, const train_tensor *d, const train_gemm *g, size_t *columns)
{
    const size_t stacks = g->stacks ? g->stacks : 1, shared = g->shared ? g->shared : 1;
    size_t rows_a, rows_b, rows_d;
    if (stacks % shared)
        return check_fail(e, "gemm: %zu products are not a multiple of the %zu that share b", stacks, shared);
    if (check_part(e, "a", g->a, stacks, &g->a_part, &rows_a) ||
        check_part(e, "b", g->b, stacks / shared, &g->b_part, &rows_b) ||
        check_part(e, "d", d, stacks, &g->d_part, &rows_d))
        return -1;
    const size_t rows = g->a_transposed ? g->a->cols : rows_a, depth = g->a_transposed ? rows_a : g->a->cols;
    const size_t depth_b = g->b_transposed ? g->b->cols : rows_b;
    *columns = g->b_transposed ? rows_b : g->b->cols;
    if (depth_b != depth)
        return check_fail(e, "gemm: a has depth %zu, b has depth %zu", depth, depth_b);
    if (rows_d != rows || d->cols != *columns)
        return check_fail(e, "gemm: result must be %zu x %zu, not %zu x %zu", rows, *columns, rows_d, d->cols);
    return 0;
}

static int check_gemm(train_engine *e, const train_tensor *d, const train_gemm *g)
{
    size_t columns = 0;
    if (!g || !g->model)
        return check_fail(e, "gemm: model is NULL");
    if (check_shapes(e, d, g, &columns))
        return -1;
    if (!check_is_binary32(&g->model->result.format))
        return check_fail(e, "gemm: results of model %s are not binary32", g->model->name);
    return check_apart(e, "gemm", d, g->a) || check_apart(e, "gemm", d, g->b) || check_alone(e, g, columns) ||
                   check_start(e, d, g)
               ? -1
               : 0;
}

static int gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    return check_gemm(e, d, g) ? -1 : e->own->gemm(e, d, g, counts);
}

static int gemm_list(train_engine *e, const train_multiply *list, size_t n)
{
    int bad = check_list(e, "gemm", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_gemm(e, list[i].d, list[i].g);
    return bad ? -1 : e->own->gemm_list(e, list, n);
}

void check_products(train_ops *to)
{
    to->gemm = gemm;
    to->gemm_list = gemm_list;
}
