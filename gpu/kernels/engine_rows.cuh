/* engine_rows.cuh -- operations on rows of transformers: normalisation, activations. */
#pragma once

#include "engine_layers.cuh"
#include "engine_tokens.cuh"
#include "flat_elements.cuh"
#include "flat_norms.cuh"
#include "rows.cuh"

/* The format of the arithmetic, NULL: binary32. */
static int math_set(train_engine *e, const char *operation, gpu_format *f, const mpsim_format *math)
{
    if (gpu_format_set(f, math ? math : mpsim_format_find("binary32")) || f->math.kind == MPSIM_MATH_REFERENCE)
        return cuda_fail(e, "%s: the device does not compute in %s", operation, math->name);
    return 0;
}

static float *floats_of(const train_tensor *x)
{
    return static_cast<float *>(at_of(x));
}

/* ---- normalisation ---- */

/* Whether the kernels of flat_norms.cuh compute it: of these tensors those that are there. */
static int is_flat_norm(const mpsim_rownorm *r, std::initializer_list<const train_tensor *> tensors)
{
    int flat = is_binary32(r->math);
    for (const train_tensor *t : tensors)
        flat = flat && (!t || is_flat(t));
    return flat;
}

static int rownorm_set(train_engine *e, const char *operation, gpu_rownorm *g, const mpsim_rownorm *r,
                       const train_tensor *x, const train_tensor *weight)
{
    memset(g, 0, sizeof *g);
    if (math_set(e, operation, &g->math, r->math))
        return -1;
    g->x = format_of(x);
    g->weight = format_of(weight);
    g->rows = x->rows;
    g->cols = x->cols;
    g->layer = r->kind == MPSIM_NORM_LAYER;
    g->n = mpsim_math_round(&g->math.math, (float)x->cols);
    g->eps = mpsim_math_round(&g->math.math, r->eps);
    return 0;
}

static int cuda_rownorm(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean,
                        train_tensor *inverse, const train_tensor *x, const train_tensor *weight,
                        const train_tensor *bias, train_counts *counts)
{
    gpu_rownorm g;
    int failed = 0;
    if (rownorm_set(e, "rownorm", &g, r, x, weight))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    g.y = format_of(y);
    g.bias = bias ? format_of(bias) : g.weight;
    mean->inverse = inverse->inverse = 1;
    const size_t room = gpu_flat_room(x->cols, g.x.bytes);
    if (size_of(x) && is_flat_norm(r, {x, y, weight, bias}))
        GPU_LAUNCH(flat_norm_kernel, blocks_of(x->rows, GPU_FLAT_ROWS), GPU_FLAT_THREADS, room, g, at_of(y),
                   floats_of(mean), floats_of(inverse), at_of(x), at_of(weight), at_of(bias), slot, room != 0);
    else if (size_of(x))
        GPU_LAUNCH_BY_MATH(g.math, rownorm_kernel, blocks_of(x->rows, GPU_ROW_WARPS), GPU_ROW_THREADS, g, at_of(y),
                           floats_of(mean), floats_of(inverse), at_of(x), at_of(weight), at_of(bias), slot);
    return wrote(e, "rownorm", y);
}

/* ---- gradients of many ---- */

/* What kernels know of one of a list, but for its places. */
static int normed_set(train_engine *e, gpu_rownorm *g, const train_normed *i)
{
    if (rownorm_set(e, "rownorm_gradients", g, i->r, i->x, i->weight))
        return -1;
    g->y = format_of(i->dy);
    g->dweight = format_of(i->dweight);
    g->dbias = i->dbias ? format_of(i->dbias) : g->dweight;
    return 0;
}

static int same_format(const train_tensor *a, const train_tensor *b)
{
    return !a == !b && (!a || mpsim_format_same(a->format, b->format));
}

static int same_math(const mpsim_format *a, const mpsim_format *b)
{
    return !a == !b && (!a || mpsim_format_same(a, b));
}

static int is_flat_normed(const train_normed *i)
{
    return is_flat_norm(i->r, {i->x, i->dy, i->dweight, i->dbias});
}

static int alike_normed(const train_normed *a, const train_normed *b)
{
    return is_flat_normed(a) == is_flat_normed(b) && a->x->rows == b->x->rows && a->x->cols == b->x->cols &&
           a->r->kind == b->r->kind && same_math(a->r->math, b->r->math) && same_format(a->x, b->x) &&
           same_format(a->dy, b->dy) && same_format(a->dweight, b->dweight) && same_format(a->dbias, b->dbias);
}

static int cuda_rownorm_gradients(train_engine *e, const train_normed *list, size_t n)
{
    gpu_rownorm g;
    gpu_normed_list now;
    size_t first = 0;
    unsigned blocks;
    for (size_t i = 0; i < n; i++)
        if (normed_set(e, &g, &list[i]))
            return -1;
    unsigned char *taken = untaken(e, n);
    if (!taken)
        return -1;
    const auto alike = [&](size_t a, size_t b) { return alike_normed(&list[a], &list[b]); };
    const auto fill = [&](gpu_normed *p, size_t i) {
        const train_normed *t = &list[i];
        *p = gpu_normed{{at_of(t->dy), at_of(t->x), at_of(t->weight), floats_of(t->mean), floats_of(t->inverse)},
                        at_of(t->dweight),
                        at_of(t->dbias)};
        t->dweight->inverse = 1;
        if (t->dbias)
            t->dbias->inverse = 1;
        return t->x->cols ? is_flat_normed(t) ? flat_blocks(t->x->cols) : column_blocks(t->x->cols) : 0;
    };
    while ((blocks = gpu_list_next(&now, taken, n, &first, alike, fill)) > 0) {
        if (normed_set(e, &g, &list[first]))
            return -1;
        if (is_flat_normed(&list[first]))
            GPU_LAUNCH(flat_norm_gradients_kernel, blocks, GPU_FLAT_COLUMN_THREADS, 0, g, now);
        else
            GPU_LAUNCH_BY_MATH(g.math, rownorm_gradients_kernel, blocks, dim3(GPU_COLUMNS, GPU_COLUMN_ROWS), g, now);
    }
    return cuda_launched(e, "rownorm_gradients");
}

static int cuda_rownorm_backward(train_engine *e, const mpsim_rownorm *r, train_tensor *dx, train_tensor *dweight,
                                 train_tensor *dbias, const train_tensor *dy, const train_tensor *x,
                                 const train_tensor *mean, const train_tensor *inverse, const train_tensor *weight,
                                 train_counts *counts)
{
    const char *name = "rownorm_backward";
    const train_normed own = {r, dweight, dbias, dy, x, mean, inverse, weight};
    gpu_rownorm g;
    int failed = 0;
    if (rownorm_set(e, name, &g, r, x, weight))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed || (dweight && cuda_rownorm_gradients(e, &own, 1))) /* before dx is written, which may be dy */
        return -1;
    const gpu_rownorm_in in = {at_of(dy), at_of(x), at_of(weight), floats_of(mean), floats_of(inverse)};
    g.y = format_of(dy);
    g.dx = format_of(dx);
    const size_t of_dy = gpu_flat_room(x->cols, g.y.bytes), of_x = gpu_flat_room(x->cols, g.x.bytes);
    const size_t room = of_dy && of_x && of_dy + of_x <= GPU_FLAT_ROOM ? of_dy + of_x : 0;
    if (size_of(x) && is_flat_norm(r, {x, dy, dx, weight}))
        GPU_LAUNCH(flat_norm_backward_kernel, blocks_of(x->rows, GPU_FLAT_ROWS), GPU_FLAT_THREADS, room, g, in,
                   at_of(dx), slot, room ? (unsigned)(of_dy / 16) : 0u);
    else if (size_of(x))
        GPU_LAUNCH_BY_MATH(g.math, rownorm_backward_kernel, blocks_of(x->rows, GPU_ROW_WARPS), GPU_ROW_THREADS, g, in,
                           at_of(dx), slot);
    return wrote(e, name, dx);
}

/* ---- activations ---- */

/* Whether the kernels of flat_elements.cuh compute it. */
static int is_flat_gelu(mpsim_activation kind, const mpsim_format *math,
                        std::initializer_list<const train_tensor *> tensors)
{
    int flat = kind != MPSIM_SWIGLU && is_binary32(math);
    for (const train_tensor *t : tensors)
        flat = flat && is_flat(t);
    return flat;
}

/* y: the result of the forward pass, or its gradient. */
static int activation_set(train_engine *e, const char *operation, gpu_activation *a, mpsim_activation kind,
                          const mpsim_format *math, const train_tensor *x, const train_tensor *y)
{
    memset(a, 0, sizeof *a);
    if (math_set(e, operation, &a->math, math))
        return -1;
    a->x = format_of(x);
    a->y = format_of(y);
    a->kind = kind;
    a->n = size_of(y);
    a->cols = y->cols;
    mpsim_gelu_set(&a->gelu, &a->math.math);
    return 0;
}

static int cuda_activate(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                         const train_tensor *x, train_counts *counts)
{
    gpu_activation a;
    int failed = 0;
    if (activation_set(e, "activate", &a, kind, math, x, y))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    const unsigned eights = blocks_of(a.n / 8, GPU_THREADS_ELEMENT);
    if (!is_flat_gelu(kind, math, {x, y}))
        GPU_LAUNCH_BY_MATH(a.math, activate_kernel, blocks_of(a.n, 256), 256, a, at_of(y), at_of(x), slot);
    else if (a.n && kind == MPSIM_GELU)
        GPU_LAUNCH(flat_gelu_kernel<MPSIM_GELU>, eights, GPU_THREADS_ELEMENT, 0, a, at_of(y), at_of(x), slot);
    else if (a.n)
        GPU_LAUNCH(flat_gelu_kernel<MPSIM_GELU_TANH>, eights, GPU_THREADS_ELEMENT, 0, a, at_of(y), at_of(x), slot);
    return wrote(e, "activate", y);
}

static int cuda_activate_backward(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *dx,
                                  const train_tensor *dy, const train_tensor *x, train_counts *counts)
{
    const char *name = "activate_backward";
    gpu_activation a;
    int failed = 0;
    if (activation_set(e, name, &a, kind, math, x, dy))
        return -1;
    gpu_word *slot = slot_of(e, counts, &failed);
    if (failed)
        return -1;
    a.dx = format_of(dx);
    const unsigned eights = blocks_of(a.n / 8, GPU_THREADS_ELEMENT);
    if (!is_flat_gelu(kind, math, {x, dy, dx}))
        GPU_LAUNCH_BY_MATH(a.math, activate_backward_kernel, blocks_of(a.n, 256), 256, a, at_of(dx), at_of(dy),
                           at_of(x), slot);
    else if (a.n && kind == MPSIM_GELU)
        GPU_LAUNCH(flat_gelu_backward_kernel<MPSIM_GELU>, eights, GPU_THREADS_ELEMENT, 0, a, at_of(dx), at_of(dy),
                   at_of(x), slot);
    else if (a.n)
        GPU_LAUNCH(flat_gelu_backward_kernel<MPSIM_GELU_TANH>, eights, GPU_THREADS_ELEMENT, 0, a, at_of(dx), at_of(dy),
                   at_of(x), slot);
    return wrote(e, name, dx);
}
