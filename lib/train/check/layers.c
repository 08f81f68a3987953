/* layers.c -- see check.h: gather, ReLU, pooling, sums, the loss, batch normalisation. */
#include "check.h"

/* ---- gather ---- */

static int index_new(train_engine *e, const int32_t *index, size_t n, void **handle)
{
    if (!handle || (!index && n))
        return check_fail(e, "index: numbers are NULL");
    *handle = NULL;
    if (n > SIZE_MAX / 16)
        return check_fail(e, "index: %zu are too many", n);
    for (size_t i = 0; i < n; i++)
        if (index[i] < -1)
            return check_fail(e, "index: number %zu is %ld", i, (long)index[i]);
    return e->own->index_new(e, index, n, handle);
}

static int gather(train_engine *e, train_tensor *y, const train_tensor *x, const void *index)
{
    const train_indices *from = index;
    if (!from)
        return check_fail(e, "gather: index is NULL");
    if (check_tensor(e, "gather", x) || check_tensor(e, "gather", y) ||
        check_formats(e, "gather", x->format, y->format))
        return -1;
    if (check_size(y) != from->n)
        return check_fail(e, "gather: %zu x %zu elements from %zu indices", y->rows, y->cols, from->n);
    if (from->largest >= 0 && (size_t)from->largest >= check_size(x))
        return check_fail(e, "gather: index %ld is beyond %zu x %zu elements", (long)from->largest, x->rows, x->cols);
    return check_apart(e, "gather", y, x) ? -1 : e->own->gather(e, y, x, index);
}

/* ---- ReLU and pooling ---- */

static int relu(train_engine *e, train_tensor *y, const train_tensor *x)
{
    if (check_tensor(e, "relu", x) || check_shape(e, "relu", y, x->rows, x->cols) ||
        check_formats(e, "relu", x->format, y->format))
        return -1;
    return e->own->relu(e, y, x);
}

static int relu_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *y)
{
    const char *name = "relu_backward";
    if (check_tensor(e, name, y) || check_shape(e, name, dy, y->rows, y->cols) ||
        check_shape(e, name, dx, y->rows, y->cols) || check_formats(e, name, dx->format, dy->format))
        return -1;
    return e->own->relu_backward(e, dx, dy, y);
}

/* x: what is pooled, y: a number for each window, or its gradient. */
static int check_pool(train_engine *e, const char *operation, const train_tensor *x, const train_tensor *y,
                      const train_pool *p)
{
    if (!p || p->size == 0)
        return check_fail(e, "%s: windows are NULL, or their size is 0", operation);
    return check_shape(e, operation, x, p->images * p->height * p->width, p->channels) ||
           check_shape(e, operation, y, p->images * (p->height / p->size) * (p->width / p->size), p->channels);
}

static int maxpool(train_engine *e, train_tensor *y, const train_tensor *x, const train_pool *p)
{
    if (check_pool(e, "maxpool", x, y, p) || check_formats(e, "maxpool", x->format, y->format) ||
        check_apart(e, "maxpool", y, x))
        return -1;
    return e->own->maxpool(e, y, x, p);
}

static int maxpool_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                            const train_pool *p)
{
    const char *name = "maxpool_backward";
    if (check_pool(e, name, x, dy, p) || check_shape(e, name, dx, x->rows, x->cols) ||
        check_formats(e, name, dx->format, dy->format) || check_apart(e, name, dx, dy) || check_apart(e, name, dx, x))
        return -1;
    return e->own->maxpool_backward(e, dx, dy, x, p);
}

/* ---- sums and the loss ---- */

static int column_sums(train_engine *e, const train_pair *list, size_t n)
{
    const char *name = "column_sums";
    int bad = check_list(e, name, list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tensor(e, name, list[i].x) || check_shape(e, name, list[i].y, 1, list[i].x->cols);
    return bad ? -1 : e->own->column_sums(e, list, n);
}

static int softmax_xent(train_engine *e, train_tensor *dx, const train_tensor *x, const uint32_t *labels,
                        float coefficient, const mpsim_format *math, float *mean_loss, uint64_t *correct,
                        train_counts *counts)
{
    const char *name = "softmax_xent";
    if (check_tensor(e, name, x) || (dx && check_shape(e, name, dx, x->rows, x->cols)))
        return -1;
    if (!labels && x->rows)
        return check_fail(e, "%s: labels are NULL", name);
    for (size_t i = 0; i < x->rows; i++)
        if (labels[i] >= x->cols)
            return check_fail(e, "%s: label %zu is %lu, beyond %zu classes", name, i, (unsigned long)labels[i],
                              x->cols);
    return e->own->softmax_xent(e, dx, x, labels, coefficient, math, mean_loss, correct, counts);
}

/* ---- batch normalisation ---- */

/* Settings, x and y of its shape, and tensors of one number a channel. */
static int check_batchnorm(train_engine *e, const char *operation, const mpsim_batchnorm *b, const train_tensor *y,
                           const train_tensor *x, const train_tensor *const *small, size_t n)
{
    if (!b)
        return check_fail(e, "%s: settings are NULL", operation);
    int bad = check_tensor(e, operation, x) || check_shape(e, operation, y, x->rows, x->cols);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_shape(e, operation, small[i], 1, x->cols);
    return bad;
}

static int batchnorm(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, train_tensor *mean,
                     train_tensor *inverse, train_tensor *running_mean, train_tensor *running_var,
                     const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts)
{
    const char *name = "batchnorm", *running = "batchnorm: running";
    const train_tensor *const small[] = {mean, inverse, weight, bias};
    if (check_batchnorm(e, name, b, y, x, small, 4))
        return -1;
    if (!running_mean != !running_var)
        return check_fail(e, "batchnorm: running mean and running variance need each other");
    if (running_mean &&
        (check_floats(e, running, running_mean, 1, x->cols) || check_floats(e, running, running_var, 1, x->cols)))
        return -1;
    return e->own->batchnorm(e, b, y, mean, inverse, running_mean, running_var, x, weight, bias, counts);
}

static int batchnorm_backward(train_engine *e, const mpsim_batchnorm *b, train_tensor *dx, train_tensor *dweight,
                              train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                              const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                              train_counts *counts)
{
    const char *name = "batchnorm_backward";
    const train_tensor *const small[] = {dweight, dbias, mean, inverse, weight};
    if (check_batchnorm(e, name, b, dx, x, small, 5) || check_shape(e, name, dy, x->rows, x->cols))
        return -1;
    return e->own->batchnorm_backward(e, b, dx, dweight, dbias, dy, x, mean, inverse, weight, counts);
}

static int batchnorm_inference(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, const train_tensor *x,
                               const train_tensor *running_mean, const train_tensor *running_var,
                               const train_tensor *weight, const train_tensor *bias)
{
    const train_tensor *const small[] = {running_mean, running_var, weight, bias};
    if (check_batchnorm(e, "batchnorm_inference", b, y, x, small, 4))
        return -1;
    return e->own->batchnorm_inference(e, b, y, x, running_mean, running_var, weight, bias);
}

void check_layers(train_ops *to)
{
    to->index_new = index_new;
    to->gather = gather;
    to->relu = relu;
    to->relu_backward = relu_backward;
    to->maxpool = maxpool;
    to->maxpool_backward = maxpool_backward;
    to->column_sums = column_sums;
    to->softmax_xent = softmax_xent;
    to->batchnorm = batchnorm;
    to->batchnorm_backward = batchnorm_backward;
    to->batchnorm_inference = batchnorm_inference;
}
