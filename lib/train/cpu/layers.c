/* layers.c -- the CPU engine: gathering, activations, pooling, sums, the loss, normalisation. */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- gathering ---- */

typedef struct cpu_index {
    train_indices of;
    int32_t at[];
} cpu_index;

int cpu_index_new(train_engine *e, const int32_t *index, size_t n, void **handle)
{
    cpu_index *x = malloc(sizeof *x + n * sizeof *index);
    if (!x)
        return cpu_fail(e, "index: out of memory");
    x->of.n = n;
    x->of.largest = -1;
    for (size_t i = 0; i < n; i++) {
        x->at[i] = index[i];
        x->of.largest = index[i] > x->of.largest ? index[i] : x->of.largest;
    }
    *handle = x;
    return 0;
}

void cpu_index_free(train_engine *e, void *handle)
{
    (void)e;
    free(handle);
}

int cpu_gather(train_engine *e, train_tensor *y, const train_tensor *x, const void *index)
{
    (void)e;
    const cpu_index *from = index;
    const float *v = cpu_values(x);
    float *to = cpu_values(y);
    for (size_t i = 0; i < from->of.n; i++)
        to[i] = from->at[i] < 0 ? 0.0f : v[from->at[i]];
    y->inverse = x->inverse;
    return 0;
}

/* ---- activations ---- */

int cpu_relu(train_engine *e, train_tensor *y, const train_tensor *x)
{
    const mpsim_status s = mpsim_activate(MPSIM_RELU, NULL, NULL, cpu_values(y), cpu_values(x), 1, cpu_size(x));
    y->inverse = 1;
    return s ? cpu_fail(e, "relu: %s", mpsim_status_string(s)) : 0;
}

int cpu_relu_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *y)
{
    const mpsim_status s = mpsim_activate_backward(MPSIM_RELU, NULL, NULL, cpu_values(dx), cpu_values(dy),
                                                   cpu_values(y), 1, cpu_size(y));
    dx->inverse = 1;
    return s ? cpu_fail(e, "relu_backward: %s", mpsim_status_string(s)) : 0;
}

/* ---- pooling ---- */

/* The first element of window `window` (a row of the pooled tensor) in channel 0. */
static size_t window_start(const train_pool *p, size_t window)
{
    const size_t across = p->width / p->size, down = p->height / p->size;
    const size_t image = window / (across * down), at = window % (across * down);
    const size_t top = at / across * p->size, left = at % across * p->size;
    return ((image * p->height + top) * p->width + left) * p->channels;
}

enum { CHANNELS = 64 }; /* that are looked at side by side */

/* The elements of x that the window with that first element takes in n channels: the first of the largest, or of the
 * NaNs. Without branches: which one it is no processor foresees. */
static void find_largest(size_t *best, const float *x, const train_pool *p, size_t first, size_t n)
{
    for (size_t c = 0; c < n; c++)
        best[c] = first + c;
    for (size_t i = 0; i < p->size; i++)
        for (size_t j = 0; j < p->size; j++)
            for (size_t c = 0, k = first + (i * p->width + j) * p->channels; c < n; c++, k++) {
                const float most = x[best[c]];
                const size_t takes = (size_t)(most < x[k]) | ((size_t) !!isnan(x[k]) & (size_t)!isnan(most));
                best[c] += (k - best[c]) & (0 - takes);
            }
}

static size_t channels_left(size_t all, size_t first)
{
    return all - first < CHANNELS ? all - first : CHANNELS;
}

int cpu_maxpool(train_engine *e, train_tensor *y, const train_tensor *x, const train_pool *p)
{
    (void)e;
    const float *from = cpu_values(x);
    float *to = cpu_values(y);
    size_t best[CHANNELS];
    for (size_t i = 0; i < y->rows; i++)
        for (size_t j = 0; j < y->cols; j += CHANNELS) {
            const size_t n = channels_left(y->cols, j);
            find_largest(best, from, p, window_start(p, i) + j, n);
            for (size_t c = 0; c < n; c++)
                to[i * y->cols + j + c] = from[best[c]];
        }
    y->inverse = 1;
    return 0;
}

int cpu_maxpool_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                         const train_pool *p)
{
    (void)e;
    const float *from = cpu_values(dy), *input = cpu_values(x);
    float *to = cpu_values(dx);
    size_t best[CHANNELS];
    memset(to, 0, cpu_size(dx) * sizeof *to);
    for (size_t i = 0; i < dy->rows; i++)
        for (size_t j = 0; j < dy->cols; j += CHANNELS) {
            const size_t n = channels_left(dy->cols, j);
            find_largest(best, input, p, window_start(p, i) + j, n);
            for (size_t c = 0; c < n; c++)
                to[best[c]] = from[i * dy->cols + j + c];
        }
    dx->inverse = 1;
    return 0;
}

/* ---- sums and the loss ---- */

/* Columns of a piece at least: what one thread sums side by side. */
enum { ABREAST = 16 };

typedef struct columns {
    const float *x;
    float *sums;
    size_t rows, cols;
    mpsim_status status[CPU_PIECES];
} columns;

static void sum_columns(void *job, size_t piece, size_t first, size_t n)
{
    columns *o = job;
    o->status[piece] = mpsim_column_sums(NULL, NULL, o->sums + first, o->x + first, o->rows, n, o->cols);
}

static int sums_of(train_engine *e, train_tensor *d, const train_tensor *x, train_counts *counts)
{
    columns o = {cpu_values(x), cpu_floats(e, 0, x->cols), x->rows, x->cols, {MPSIM_OK}};
    if (!o.sums)
        return -1;
    cpu_pieces(e, x->cols, ABREAST, x->rows, sum_columns, &o);
    for (size_t i = 0; i < CPU_PIECES; i++)
        if (o.status[i])
            return cpu_fail(e, "column_sums: %s", mpsim_status_string(o.status[i]));
    return cpu_store(e, d, o.sums, counts);
}

int cpu_column_sums(train_engine *e, const train_pair *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sums_of(e, list[i].y, list[i].x, list[i].counts))
            return -1;
    return 0;
}

typedef struct loss {
    const mpsim_format *math;
    size_t classes;
    const float *x;
    const uint32_t *labels;
    float coefficient, *losses, *dx;
    mpsim_status status[CPU_PIECES];
    uint64_t correct[CPU_PIECES];
} loss;

static void some_losses(void *job, size_t piece, size_t first, size_t n)
{
    loss *o = job;
    const size_t at = first * o->classes;
    o->status[piece] = mpsim_softmax_xent(o->math, NULL, n, o->classes, o->x + at, o->labels + first, o->coefficient,
                                          o->losses + first, o->dx ? o->dx + at : NULL, &o->correct[piece]);
}

int cpu_softmax_xent(train_engine *e, train_tensor *dx, const train_tensor *x, const uint32_t *labels,
                     float coefficient, const mpsim_format *math, float *mean_loss, uint64_t *correct,
                     train_counts *counts)
{
    loss o = {.math = math,
              .classes = x->cols,
              .x = cpu_values(x),
              .labels = labels,
              .coefficient = coefficient,
              .losses = cpu_floats(e, 1, x->rows),
              .dx = dx ? cpu_values(dx) : NULL};
    if (!o.losses)
        return -1;
    cpu_pieces(e, x->rows, 1, x->cols, some_losses, &o);
    uint64_t hits = 0;
    for (size_t i = 0; i < CPU_PIECES; i++) {
        if (o.status[i])
            return cpu_fail(e, "softmax_xent: %s", mpsim_status_string(o.status[i]));
        hits += o.correct[i];
    }
    if (correct)
        *correct = hits;
    if (mean_loss)
        *mean_loss = mpsim_mean(math, o.losses, x->rows, x->rows);
    return dx ? cpu_store(e, dx, o.dx, counts) : 0;
}

/* ---- batch normalisation ---- */

/* Shape from x; results not rounded to a format, so that cpu_store counts. */
static mpsim_batchnorm settings_for(const mpsim_batchnorm *b, const train_tensor *x)
{
    mpsim_batchnorm own = *b;
    own.rows = x->rows;
    own.channels = x->cols;
    own.f = NULL;
    return own;
}

int cpu_batchnorm(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                  train_tensor *running_mean, train_tensor *running_var, const train_tensor *x,
                  const train_tensor *weight, const train_tensor *bias, train_counts *counts)
{
    const mpsim_batchnorm own = settings_for(b, x);
    float *out = cpu_floats(e, 0, cpu_size(x)), *m = cpu_floats(e, 1, 2 * x->cols);
    if (!out || !m)
        return -1;
    const mpsim_status s = mpsim_batchnorm_forward(
        &own, out, m, m + x->cols, running_mean ? cpu_values(running_mean) : NULL,
        running_var ? cpu_values(running_var) : NULL, cpu_values(x), cpu_values(weight), cpu_values(bias));
    if (s)
        return cpu_fail(e, "batchnorm: %s", mpsim_status_string(s));
    return cpu_store(e, mean, m, NULL) || cpu_store(e, inverse, m + x->cols, NULL) || cpu_store(e, y, out, counts) ? -1
                                                                                                                   : 0;
}

int cpu_batchnorm_backward(train_engine *e, const mpsim_batchnorm *b, train_tensor *dx, train_tensor *dweight,
                           train_tensor *dbias, const train_tensor *dy, const train_tensor *x, const train_tensor *mean,
                           const train_tensor *inverse, const train_tensor *weight, train_counts *counts)
{
    const mpsim_batchnorm own = settings_for(b, x);
    float *out = cpu_floats(e, 0, cpu_size(x)), *d = cpu_floats(e, 1, 2 * x->cols);
    if (!out || !d)
        return -1;
    const mpsim_status s = mpsim_batchnorm_backward(&own, out, d, d + x->cols, cpu_values(dy), cpu_values(x),
                                                    cpu_values(mean), cpu_values(inverse), cpu_values(weight));
    if (s)
        return cpu_fail(e, "batchnorm_backward: %s", mpsim_status_string(s));
    return cpu_store(e, dweight, d, NULL) || cpu_store(e, dbias, d + x->cols, NULL) || cpu_store(e, dx, out, counts)
               ? -1
               : 0;
}

int cpu_batchnorm_inference(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, const train_tensor *x,
                            const train_tensor *running_mean, const train_tensor *running_var,
                            const train_tensor *weight, const train_tensor *bias)
{
    const mpsim_batchnorm own = settings_for(b, x);
    float *out = cpu_floats(e, 0, cpu_size(x));
    if (!out)
        return -1;
    const mpsim_status s = mpsim_batchnorm_inference(&own, out, cpu_values(x), cpu_values(running_mean),
                                                     cpu_values(running_var), cpu_values(weight), cpu_values(bias));
    if (s)
        return cpu_fail(e, "batchnorm_inference: %s", mpsim_status_string(s));
    return cpu_store(e, y, out, NULL);
}
