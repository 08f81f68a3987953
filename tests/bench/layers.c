/* layers.c -- speed of what a transformer computes beside products: activations, norms of rows and
 * softmax, forward and back, sums, compared with memcpy. The same on arrays of any
 * format and strides (mpsim/between.h), compared with the function on dense rows of binary32.
 * Inputs are numbers up to 4. */
#include "frame.h"

#include <mpsim/between.h>

#include <stdlib.h>

enum { COLS = 1024, CHANNELS = 64, BATCH = 1 << 18, LENGTH = 64, CHUNK = LENGTH * LENGTH, MOST = 1 << 26 };

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

/* n results, of as many gates and values. */
static void run_gates(void *context, size_t from, size_t n)
{
    const work *w = context;
    (void)mpsim_activate(MPSIM_SWIGLU, w->math, NULL, w->b->y + from, w->b->x + 2 * from, n / COLS, COLS);
}

static void run_gates_back(void *context, size_t from, size_t n)
{
    const work *w = context;
    const float *x = w->b->x + 2 * from;
    (void)mpsim_activate_backward(MPSIM_SWIGLU, w->math, NULL, w->b->y + 2 * from, x, x, n / COLS, COLS);
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

/* Of the elements that are left BATCH at most: the number of rows is one of fp16. */
static mpsim_batchnorm batch_of(const work *w, size_t left)
{
    const size_t rows = (left < BATCH ? left : BATCH) / CHANNELS;
    return (mpsim_batchnorm){.rows = rows, .channels = CHANNELS, .eps = 1e-5f, .math = w->math};
}

static void run_batch(void *context, size_t from, size_t n)
{
    const work *w = context;
    for (size_t i = from; i < from + n; i += BATCH) {
        const mpsim_batchnorm b = batch_of(w, from + n - i);
        (void)mpsim_batchnorm_forward(&b, w->b->y + i, w->mean, w->inverse, NULL, NULL, w->b->x + i, w->weight,
                                      w->weight);
    }
}

static void run_batch_back(void *context, size_t from, size_t n)
{
    work *w = context;
    for (size_t i = from; i < from + n; i += BATCH) {
        const mpsim_batchnorm b = batch_of(w, from + n - i);
        const float *x = w->b->x + i;
        (void)mpsim_batchnorm_backward(&b, w->b->y + i, w->sums, w->sums + COLS, x, x, w->mean, w->inverse, w->weight);
    }
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

static mpsim_softmax softmax_of(const work *w, size_t n)
{
    return (mpsim_softmax){.rows = n / COLS, .cols = COLS, .scale = 0.125f, .math = w->math};
}

static void run_rows(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_softmax c = softmax_of(w, n);
    (void)mpsim_softmax_rows(&c, w->b->y + from, w->b->x + from, NULL);
}

static void run_rows_back(void *context, size_t from, size_t n)
{
    const work *w = context;
    const float *x = w->b->x + from;
    const mpsim_softmax c = softmax_of(w, n);
    (void)mpsim_softmax_backward(&c, w->b->y + from, x, x, NULL);
}

static void run_log(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_softmax c = softmax_of(w, n);
    (void)mpsim_log_softmax(&c, w->b->y + from, w->b->x + from, NULL);
}

static void run_log_back(void *context, size_t from, size_t n)
{
    const work *w = context;
    const float *x = w->b->x + from;
    const mpsim_softmax c = softmax_of(w, n);
    (void)mpsim_log_softmax_backward(&c, w->b->y + from, x, x, NULL);
}

static void run_products(void *context, size_t from, size_t n)
{
    const work *w = context;
    const float *x = w->b->x + from;
    (void)mpsim_multiply_array(w->math, NULL, w->b->y + from, x, x, n);
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

static void run_xent(void *context, size_t from, size_t n)
{
    static const uint32_t labels[MOST / COLS];
    const work *w = context;
    (void)mpsim_softmax_xent(w->math, NULL, n / COLS, COLS, w->b->x + from, labels, 0.125f, NULL, w->b->y + from, NULL);
}

static void run_normal(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng rng = {1, 2, from};
    mpsim_normal_array(&rng, 0.02f, w->b->y + from, n);
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
    {"activate", "gelu back", run_gelu_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"activate", "swiglu", run_gates, MPSIM_SWIGLU, MPSIM_NORM_LAYER},
    {"activate", "swiglu back", run_gates_back, MPSIM_SWIGLU, MPSIM_NORM_LAYER},
    {"activate", "relu", run_gelu, MPSIM_RELU, MPSIM_NORM_LAYER},
    {"activate", "silu", run_gelu, MPSIM_SILU, MPSIM_NORM_LAYER},
    {"activate", "silu back", run_gelu_back, MPSIM_SILU, MPSIM_NORM_LAYER},
    {"activate", "sigmoid", run_gelu, MPSIM_SIGMOID, MPSIM_NORM_LAYER},
    {"activate", "tanh", run_gelu, MPSIM_TANH, MPSIM_NORM_LAYER},
    {"activate", "exp", run_gelu, MPSIM_EXP, MPSIM_NORM_LAYER},
    {"rownorm", "layernorm", run_norm, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"rownorm", "layernorm back", run_norm_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"rownorm", "rmsnorm", run_norm, MPSIM_GELU, MPSIM_NORM_RMS},
    {"rownorm", "rmsnorm back", run_norm_back, MPSIM_GELU, MPSIM_NORM_RMS},
    {"batchnorm", "64 channels", run_batch, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"batchnorm", "64 channels back", run_batch_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"causal", "softmax 64", run_softmax, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"causal", "softmax 64 back", run_softmax_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "rows of 1024", run_rows, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "rows of 1024 back", run_rows_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "logarithm", run_log, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "logarithm back", run_log_back, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"softmax", "cross-entropy", run_xent, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"elements", "products", run_products, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"sums", "columns", run_sums, MPSIM_GELU, MPSIM_NORM_LAYER},
    {"dropout", "p = 0.1", run_dropout, MPSIM_GELU, MPSIM_NORM_LAYER},
};

/* ---- arrays as they lie ---- */

enum { SOME = 1000 * COLS }; /* elements of an array */

static const struct {
    const char *what, *how;
    int by_columns; /* a column's elements lie side by side */
} arrays[] = {{"binary32", "", 0}, {"binary32", "columns", 1}, {"bf16", "", 0}, {"bf16", "columns", 1}};

static const struct {
    mpsim_between_kind kind;
    const char *how;
    void (*dense)(void *context, size_t from, size_t n);
} operations[] = {{MPSIM_BETWEEN_ACTIVATE, "gelu-tanh", run_gelu},
                  {MPSIM_BETWEEN_ROWNORM, "layernorm", run_norm},
                  {MPSIM_BETWEEN_SOFTMAX, "softmax", run_rows}};

typedef struct lying {
    work *w;
    mpsim_between_kind kind;
    const mpsim_format *format;
    int by_columns;
    void *x, *y;
} lying;

static mpsim_strided array_of(const lying *a, void *data, size_t height)
{
    return (mpsim_strided){
        .format = a->format, .data = data, .stride = {a->by_columns ? 1 : COLS, a->by_columns ? (ptrdiff_t)height : 1}};
}

static void run_between(void *context, size_t from, size_t n)
{
    const lying *a = context;
    const size_t height = n / COLS;
    const mpsim_between o = {.kind = (uint8_t)a->kind,
                             .norm = MPSIM_NORM_LAYER,
                             .activation = MPSIM_GELU_TANH,
                             .dims = 2,
                             .shape = {height, COLS},
                             .eps = 1e-5f,
                             .scale = 0.125f,
                             .math = a->w->math};
    const mpsim_strided x = array_of(a, a->x, height), y = array_of(a, a->y, height), none = {0};
    const mpsim_strided weight = {.data = a->w->weight, .stride = {0, 1}};
    const mpsim_strided normed[] = {x, weight, weight, y, none, none}, other[] = {x, none, y};
    const int is_norm = a->kind == MPSIM_BETWEEN_ROWNORM;
    (void)from;
    if (mpsim_between_run(&o, is_norm ? normed : other, is_norm ? 6 : 3, NULL, NULL) != MPSIM_OK)
        abort();
}

static int run_arrays(bench *b, work *w)
{
    const size_t n = b->n < SOME ? b->n / COLS * COLS : SOME;
    lying a = {.w = w, .x = malloc(n * 4), .y = malloc(n * 4)};
    mpsim_rounding r;
    int bad = !a.x || !a.y;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    w->math = mpsim_format_find("binary32");
    w->kind = MPSIM_GELU_TANH;
    w->norm = MPSIM_NORM_LAYER;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays && !bad; i++) {
        a.format = mpsim_format_find(arrays[i].what);
        a.by_columns = arrays[i].by_columns;
        bad = mpsim_encode_array_f32(a.format, &r, NULL, a.x, b->x, n, NULL) != MPSIM_OK;
        for (size_t k = 0; k < sizeof operations / sizeof *operations && !bad; k++) {
            char how[64];
            const bench_job dense = {
                .name = "dense", .isa = "", .n = n, .bytes = 8, .run = operations[k].dense, .context = w};
            const bench_job j = {.operation = "between",
                                 .what = arrays[i].what,
                                 .how = how,
                                 .n = n,
                                 .bytes = 8,
                                 .run = run_between,
                                 .context = &a,
                                 .to = &dense};
            a.kind = operations[k].kind;
            snprintf(how, sizeof how, "%s%s%s", operations[k].how, *arrays[i].how ? " " : "", arrays[i].how);
            bench_run(b, &j);
        }
    }
    free(a.x);
    free(a.y);
    return bad;
}

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
            const int gates = rows[i].kind == MPSIM_SWIGLU, back = rows[i].run == run_gates_back;
            const bench_job j = {.operation = rows[i].operation,
                                 .what = maths[m],
                                 .how = rows[i].how,
                                 .n = gates ? b.n / 2 : b.n,
                                 .bytes = back    ? 16
                                          : gates ? 12
                                                  : 8,
                                 .run = rows[i].run,
                                 .context = &w,
                                 .to = &copy};
            w.math = mpsim_format_find(maths[m]);
            w.kind = rows[i].kind;
            w.norm = rows[i].norm;
            bench_run(&b, &j);
        }
    const bench_job normal = {.operation = "normal",
                              .what = "binary32",
                              .how = "",
                              .n = b.n,
                              .bytes = 8,
                              .run = run_normal,
                              .context = &w,
                              .to = &copy};
    bench_run(&b, &normal);
    bench_part(&b, "The same on arrays of any format and strides; ratios of elements a second");
    const int bad = run_arrays(&b, &w);
    free(w.mean);
    return bench_end(&b) || bad;
}
