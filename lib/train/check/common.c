/* common.c -- see check.h: what all checks use. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>

int check_fail(train_engine *e, const char *message, ...)
{
    va_list arguments;
    const int n = snprintf(e->error, sizeof e->error, "%s: ", e->own->name);
    va_start(arguments, message);
    vsnprintf(e->error + n, sizeof e->error - (size_t)n, message, arguments);
    va_end(arguments);
    return -1;
}

size_t check_size(const train_tensor *x)
{
    return x->rows * x->cols;
}

int check_is_binary32(const mpsim_format *f)
{
    return f->bits == 32 && f->ebits == 8 && f->mbits == 23 && f->bias == 127 && f->inf;
}

int check_tensor(train_engine *e, const char *operation, const train_tensor *x)
{
    if (!x || !x->data || !x->format)
        return check_fail(e, "%s: a tensor is NULL", operation);
    const train_data *d = x->data;
    if (x->rows && x->cols > d->n / x->rows)
        return check_fail(e, "%s: %zu x %zu elements are beyond a tensor of %zu", operation, x->rows, x->cols, d->n);
    return 0;
}

int check_shape(train_engine *e, const char *operation, const train_tensor *x, size_t rows, size_t cols)
{
    if (check_tensor(e, operation, x))
        return -1;
    if (x->rows != rows || x->cols != cols)
        return check_fail(e, "%s: a tensor must be %zu x %zu, not %zu x %zu", operation, rows, cols, x->rows, x->cols);
    return 0;
}

int check_floats(train_engine *e, const char *operation, const train_tensor *x, size_t rows, size_t cols)
{
    if (check_shape(e, operation, x, rows, cols))
        return -1;
    if (!check_is_binary32(x->format))
        return check_fail(e, "%s: a tensor must be in binary32, not in %s", operation, x->format->name);
    return 0;
}

int check_apart(train_engine *e, const char *operation, const train_tensor *y, const train_tensor *x)
{
    return y->data == x->data ? check_fail(e, "%s: result and operand must be different tensors", operation) : 0;
}

int check_formats(train_engine *e, const char *operation, const mpsim_format *a, const mpsim_format *b)
{
    if (!a || !b)
        return check_fail(e, "%s: a format is NULL", operation);
    if (mpsim_format_same(a, b))
        return 0;
    return check_fail(e, "%s: formats must be equal, not %s and %s", operation, a->name, b->name);
}

int check_list(train_engine *e, const char *operation, const void *list, size_t n)
{
    return !list && n ? check_fail(e, "%s: list of tensors is NULL", operation) : 0;
}
