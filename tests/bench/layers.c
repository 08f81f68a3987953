/* layers.c -- speed of what a transformer computes beside products: GELU, norms of rows and
 * softmax of causal attention, forward and back, compared with memcpy. Inputs are numbers up to 4. */
#include "frame.h"

#include <mpsim/transformer.h>

#include <stdlib.h>

enum { COLS = 1024, LENGTH = 64, CHUNK = LENGTH * LENGTH, MOST = 1 << 26 };

typedef struct work {
    bench *b;
    const mpsim_format *math;
    mpsim_activation kind;
    mpsim_norm_kind norm;
    float *mean, *inverse; /* a number a row */
    float weight[COLS], sums[2 * COLS];
} work;

static void run_gelu(void *context, size_t from, size_t n)
{
    const work *w = context;
    (void)mpsim_activate(w->kind, w->math, NULL, w->b->y + from, w->b->x + from, n / COLS, COLS);
}

static void run_gelu_back(void *context, size_t from, size_t n)
{
    const work *w = context;
    const float *x = w->b->x + from;
    (void)mpsim_activate_backward(w->kind, w->math, NULL, w->b->y + from, x, x, n / COLS, COLS);
}

static mpsim_rownorm norm_of(const work *w, size_t n)
{
    return (mpsim_rownorm){.rows = n / COLS, .cols = COLS, .kind = (uint8_t)w->norm, .eps = 1e-5f, .math = w->math};
}

static void run_norm(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rownorm r = norm_of(w, n);
    (void)mpsim_rownorm_forward(&r, w->b->y + from, w->mean, w->inverse, w->b->x + from, w->weight, w->weight);
}

static void run_norm_back(void *context, size_t from, size_t n)
{
    work *w = context;
    const float *x = w->b->x + from;
    const mpsim_rownorm r = norm_of(w, n);
    (void)mpsim_rownorm_backward(&r, w->b->y + from, w->sums, w->sums + COLS, x, x, w->mean, w->inverse, w->weight);
}

static mpsim_causal causal_of(const work *w, size_t n)
{
    return (mpsim_causal){.matrices = n / CHUNK, .length = LENGTH, .scale = 0.125f, .math = w->math};
}

static void run_softmax(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_causal c = causal_of(w, n);
    (void)mpsim_causal_softmax(&c, w->b->y + from, w->b->x + from);
}

static void run_softmax_back(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_causal c = causal_of(w, n);
    (void)mpsim_causal_softmax_backward(&c, w->b->y + from, w->b->x + from, w->b->x + from);
}

static void run_rows(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_softmax c = {.rows = n / COLS, .cols = COLS, .scale = 0.125f, .math = w->math};
    (void)mpsim_softmax_rows(&c, w->b->y + from, w->b->x + from, NULL);
}

static void run_sums(void *context, size_t from, size_t n)
{
    work *w = context;
    (void)mpsim_column_sums(w->math, NULL, w->sums, w->b->x + from, n / COLS, COLS, COLS);
}

static void run_dropout(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng rng = {1, 2, from};
    (void)mpsim_dropout(w->math, NULL, 0.1, &rng, w->b->y + from, w->b->x + from, n);
}

static const struct {
    const char *operation, *how;
    void (*run)(void *context, size_t from, size_t n);
    mpsim_activation kind;
    mpsim_norm_kind norm;
} rows[] = {
    {"activate", "gelu-tanh", run_gelu, MPSIM_GELU_TANH, MPSIM_NORM_LAYER},
    {"activate", "gelu-tanh back", run_gelu_back, MPSIM_GELU_TANH, MPSIM_NORM_LAYER},
    {"activate", "gelu", run_gelu, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"activate", "relu", run_gelu, MPSIM_RELU, MPSIM_NORM_LAYER},
    {"activate", "silu", run_gelu, MPSIM_SILU, MPSIM_NORM_LAYER},
    {"rownorm", "layernorm", run_norm, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"rownorm", "layernorm back", run_norm_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"rownorm", "rmsnorm", run_norm, MPSIM_GELU, MPSIM_NORM_RMS},
    {"causal", "softmax 64", run_softmax, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"causal", "softmax 64 back", run_softmax_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "rows of 1024", run_rows, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"sums", "columns", run_sums, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"dropout", "p = 0.1", run_dropout, MPSIM_GELU, MPSIM_NORM_LAYER},
};

int main(int argc, char **argv)
{
    static const char *const maths[] = {"binary32", "bf16", "fp16"};
    bench b;
    work w = {.b = &b};
    const int code = bench_begin(&b, argc, argv, "layers");
    if (code)
        return code;
    w.mean = calloc(2 * MOST / COLS, sizeof *w.mean);
    if (!w.mean || bench_data(&b))
        return 1;
    w.inverse = w.mean + MOST / COLS;
    for (size_t i = 0; i < COLS; i++)
        w.weight[i] = 1;
    for (size_t i = 0; i < b.n; i++)
        while (b.x[i] > 4 || b.x[i] < -4)
            b.x[i] *= 0.0625f;
    const bench_job copy = bench_copy(&b);
    bench_part(&b, "Elements of transformers, binary32 values; ratios of bytes a second");
    for (size_t m = 0; m < sizeof maths / sizeof *maths; m++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const bench_job j = {.operation = rows[i].operation,
                                 .what = maths[m],
                                 .how = rows[i].how,
                                 .n = b.n,
                                 .bytes = 8,
                                 .run = rows[i].run,
                                 .context = &w,
                                 .to = &copy};
            w.math = mpsim_format_find(maths[m]);
            w.kind = rows[i].kind;
            w.norm = rows[i].norm;
            bench_run(&b, &j);
        }
    free(w.mean);
    return bench_end(&b);
}
