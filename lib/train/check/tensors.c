/* tensors.c -- see check.h: what tensors hold, casts, block recipes. */
#include "check.h"

/* ---- tensors ---- */

static int alloc(train_engine *e, train_tensor *x)
{
    const size_t most = SIZE_MAX / 16; /* bytes of them and what engines keep beside them can be counted */
    if (!x || !x->format)
        return check_fail(e, "alloc: tensor or format is NULL");
    if (x->format->zero == MPSIM_ZERO_NONE)
        return check_fail(e, "alloc: a tensor of %s: the format has no zero", x->format->name);
    if (x->rows && x->cols > most / x->rows)
        return check_fail(e, "alloc: %zu x %zu elements are too many", x->rows, x->cols);
    return e->own->alloc(e, x);
}

static int check_values(train_engine *e, const char *operation, const train_tensor *x, const float *values)
{
    if (check_tensor(e, operation, x))
        return -1;
    return !values && check_size(x) ? check_fail(e, "%s: values are NULL", operation) : 0;
}

static int put(train_engine *e, train_tensor *x, const float *values)
{
    return check_values(e, "put", x, values) ? -1 : e->own->put(e, x, values);
}

static int get(train_engine *e, const train_tensor *x, float *values)
{
    return check_values(e, "get", x, values) ? -1 : e->own->get(e, x, values);
}

static int digest(train_engine *e, const train_tensor *x, uint64_t *to)
{
    if (check_tensor(e, "digest", x))
        return -1;
    return to ? e->own->digest(e, x, to) : check_fail(e, "digest: result pointer is NULL");
}

/* ---- casts ---- */

static int check_cast(train_engine *e, const train_tensor *y, const train_tensor *x, mpsim_round_mode mode)
{
    if (check_tensor(e, "cast", x) || check_shape(e, "cast", y, x->rows, x->cols))
        return -1;
    return mode == MPSIM_ROUND_NEAREST_EVEN || mode == MPSIM_ROUND_NEAREST_AWAY
               ? 0
               : check_fail(e, "cast: rounding must be to nearest");
}

static int cast(train_engine *e, train_tensor *y, const train_tensor *x, mpsim_round_mode mode, train_counts *counts)
{
    return check_cast(e, y, x, mode) ? -1 : e->own->cast(e, y, x, mode, counts);
}

static int cast_list(train_engine *e, const train_pair *list, size_t n, mpsim_round_mode mode)
{
    int bad = check_list(e, "cast", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_cast(e, list[i].y, list[i].x, mode);
    return bad ? -1 : e->own->cast_list(e, list, n, mode);
}

/* ---- block recipes ---- */

/* Factors have a number for each block of y, and are all that is needed beside the codes. */
static int check_factors(train_engine *e, const train_quantize *q, const train_tensor *y)
{
    size_t rows, cols;
    if (!q->blocks)
        return 0;
    mpsim_block_grid(q->recipe, y->rows, y->cols, &rows, &cols);
    if (!q->scale_codes && (q->recipe->rule == MPSIM_SCALE_NVFP4_TE || q->recipe->rule == MPSIM_SCALE_NVFP4_TORCHAO))
        return check_fail(e, "quantize: recipe %s has two scales: scale codes are needed", q->recipe->name);
    return check_floats(e, "quantize: blocks", q->blocks, rows, cols);
}

static int check_quantize(train_engine *e, const train_tensor *y, const train_tensor *x, const train_quantize *q)
{
    if (!q || mpsim_block_check(q->recipe))
        return check_fail(e, "quantize: recipe is not valid");
    const mpsim_block_recipe *b = q->recipe;
    const int codes = q->blocks || (b->block_rows == 0 && b->block_cols == 0);
    if (check_tensor(e, "quantize", x) ||
        check_shape(e, "quantize", y, q->transposed ? x->cols : x->rows, q->transposed ? x->rows : x->cols) ||
        check_formats(e, "quantize", y->format, mpsim_format_find(codes ? b->element : "bf16")) ||
        check_factors(e, q, y) || check_apart(e, "quantize", y, x))
        return -1;
    if (b->rule == MPSIM_SCALE_GIVEN && !(q->given >= 0))
        return check_fail(e, "quantize: scale of recipe %s must be at least 0, not %g", b->name, (double)q->given);
    return 0;
}

static int quantize(train_engine *e, train_tensor *y, const train_tensor *x, const train_quantize *q, float *amax,
                    train_counts *counts)
{
    return check_quantize(e, y, x, q) ? -1 : e->own->quantize(e, y, x, q, amax, counts);
}

static int quantize_list(train_engine *e, const train_quantized *list, size_t n)
{
    int bad = check_list(e, "quantize", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_quantize(e, list[i].y, list[i].x, list[i].how);
    return bad ? -1 : e->own->quantize_list(e, list, n);
}

static int hadamard(train_engine *e, train_tensor *y, const train_tensor *x, int transposed)
{
    if (check_tensor(e, "hadamard", x) ||
        check_shape(e, "hadamard", y, transposed ? x->cols : x->rows, transposed ? x->rows : x->cols) ||
        check_formats(e, "hadamard", y->format, x->format) || check_apart(e, "hadamard", y, x))
        return -1;
    return e->own->hadamard(e, y, x, transposed);
}

void check_tensors(train_ops *to)
{
    to->alloc = alloc;
    to->put = put;
    to->get = get;
    to->digest = digest;
    to->cast = cast;
    to->cast_list = cast_list;
    to->quantize = quantize;
    to->quantize_list = quantize_list;
    to->hadamard = hadamard;
}
