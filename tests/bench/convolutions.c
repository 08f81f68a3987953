/* convolutions.c -- speed of convolutions of two dimensions and their gradients (mpsim/convolution.h) on one thread,
 * multiply-adds a second. Each is compared with mpsim_gemm: the same multiply-adds in one product, of operands that lie
 * as the sums read them, so that nothing is gathered, padded or scattered. Operands: +-U(0, 1). */
#include "frame.h"

#include <mpsim/convolution.h>
#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>

#define COUNT(table) (sizeof table / sizeof *table)

/* Layers in the middle of a network, and a first one, whose input has no gradient. */
static const struct layer {
    size_t images, channels, outputs, side, kernel, stride;
    int is_first;
} layers[] = {{2, 64, 64, 28, 3, 1, 0}, {2, 64, 128, 28, 3, 2, 0}, {2, 256, 64, 28, 1, 1, 0}, {2, 3, 64, 112, 7, 2, 1}};

static const char *const models[][2] = {{"hopper-bf16-fp32", "bf16"}, {"fma", "binary32"}, {"exact", "bf16"}};

/* The largest tensor, and the largest matrix of windows. */
enum { LARGEST = 2 * 64 * 56 * 56, WINDOWS = 2 * 56 * 56 * 3 * 49 };

static const struct kind {
    const char *operation;
    mpsim_status (*run)(const mpsim_convolution *c, const mpsim_pool *pool);
} kinds[] = {{"conv", mpsim_convolution_forward},
             {"conv dx", mpsim_convolution_backward_input},
             {"conv dw", mpsim_convolution_backward_weight}};

typedef struct work {
    bench *frame;
    mpsim_model m;
    const mpsim_format *format;
    void *codes, *results;
    struct layer l;
    size_t out;
    mpsim_convolution c;
    mpsim_operand a, b;
    mpsim_stack d;
    const struct kind *kind;
} work;

static void do_convolution(void *context)
{
    const work *w = context;
    if (w->kind->run(&w->c, NULL) != MPSIM_OK)
        abort();
}

/* rows x depth by depth x columns, without what a stride leaves out. */
static void product_of(const work *w, size_t *rows, size_t *columns, size_t *depth)
{
    const size_t taps = w->l.kernel * w->l.kernel, positions = w->l.images * w->out * w->out;
    const size_t of_input = w->l.images * w->l.side * w->l.side, met = w->l.stride * w->l.stride;
    const size_t each[COUNT(kinds)][3] = {{positions, w->l.outputs, taps * w->l.channels},
                                          {of_input, w->l.channels, (taps * w->l.outputs + met - 1) / met},
                                          {w->l.outputs, taps * w->l.channels, positions}};
    const size_t *n = each[w->kind - kinds];
    *rows = n[0];
    *columns = n[1];
    *depth = n[2];
}

static void do_product(void *context)
{
    const work *w = context;
    size_t rows, columns, depth;
    product_of(w, &rows, &columns, &depth);
    const int by_columns = w->kind->run == mpsim_convolution_backward_weight; /* of windows */
    const mpsim_matrix a = {w->format, w->codes, depth, 0};
    const mpsim_matrix b = {w->format, w->codes, by_columns ? columns : depth, !by_columns};
    if (mpsim_gemm(&w->m, rows, columns, depth, &a, &b, NULL, w->results, columns, NULL, NULL) != MPSIM_OK)
        abort();
}

static mpsim_stack tensor(const mpsim_format *f, void *codes, int last, size_t first, size_t channels, size_t side)
{
    const int64_t c = (int64_t)channels, n = (int64_t)side;
    mpsim_stack s = {.format = f, .codes = codes, .rank = 4, .shape = {first, channels, side, side}};
    const int64_t by_planes[4] = {c * n * n, n * n, n, 1}, by_channels[4] = {c * n * n, 1, n * c, c};
    for (int i = 0; i < 4; i++)
        s.strides[i] = last ? by_channels[i] : by_planes[i];
    return s;
}

static void set_convolution(work *w, int last)
{
    const struct layer *l = &w->l;
    const size_t k = (size_t)(w->kind - kinds);
    const mpsim_stack of[3] = {tensor(w->format, w->codes, last, l->images, l->channels, l->side),
                               tensor(w->format, w->codes, last, l->outputs, l->channels, l->kernel),
                               tensor(w->format, w->codes, last, l->images, l->outputs, w->out)};
    static const int a[] = {0, 2, 2}, b[] = {1, 1, 0}, d[] = {2, 0, 1};
    mpsim_convolution_init(&w->c);
    mpsim_operand_init(&w->a, &of[a[k]], NULL, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_operand_init(&w->b, &of[b[k]], NULL, MPSIM_ROUND_NEAREST_EVEN);
    w->d = of[d[k]];
    w->d.format = &w->m.result.format;
    w->d.codes = w->results;
    w->c.model = &w->m;
    w->c.a = &w->a;
    w->c.b = &w->b;
    w->c.d = &w->d;
    for (int i = 0; i < 2; i++) {
        w->c.padding[i] = l->kernel / 2;
        w->c.stride[i] = l->stride;
    }
}

static void measure(work *w, int last)
{
    char how[64];
    size_t rows, columns, depth;
    set_convolution(w, last);
    product_of(w, &rows, &columns, &depth);
    const double n = (double)rows * (double)columns * (double)depth;
    const double before = bench_seconds(w->frame, do_product, w), t = bench_seconds(w->frame, do_convolution, w);
    const double after = bench_seconds(w->frame, do_product, w), base = (before + after) / 2;
    snprintf(how, sizeof how, "%s %zux%zu/%zu %zu-%zu", last ? "NHWC" : "NCHW", w->l.kernel, w->l.kernel, w->l.stride,
             w->l.channels, w->l.outputs);
    const bench_row r = {.operation = w->kind->operation,
                         .what = w->m.name,
                         .how = how,
                         .n = n,
                         .per_second = n / t,
                         .ratio = base / t,
                         .to = "product",
                         .spread = fabs(before - after) / base};
    bench_print(w->frame, &r);
}

static void run_model(work *w)
{
    for (size_t i = 0; i < COUNT(layers); i++)
        for (size_t k = 0; k < COUNT(kinds); k++)
            for (int last = 0; last < 2; last++) {
                w->l = layers[i];
                w->l.side /= w->frame->quick ? 4 : 1;
                w->out = (w->l.side - 1) / w->l.stride + 1;
                w->kind = &kinds[k];
                if (!(w->l.is_first && w->kind->run == mpsim_convolution_backward_input) &&
                    bench_wants(w->frame, w->kind->operation, w->m.name))
                    measure(w, last);
            }
}

static int set_model(work *w, size_t i, const double *x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    w->format = mpsim_format_find(models[i][1]);
    return mpsim_model_parse(&w->m, models[i][0]) == MPSIM_OK &&
           mpsim_encode_array_f64(w->format, &r, NULL, w->codes, x, WINDOWS, NULL) == MPSIM_OK;
}

int main(int argc, char **argv)
{
    bench b;
    work w = {.frame = &b};
    const int code = bench_begin(&b, argc, argv, "convolutions");
    if (code)
        return code;
    double *x = malloc(WINDOWS * sizeof *x);
    w.codes = malloc(WINDOWS * 4);
    w.results = malloc(LARGEST * 4);
    int bad = !x || !w.codes || !w.results;
    for (size_t i = 0; !bad && i < WINDOWS; i++) {
        const uint32_t u = mpsim_rng_word(1, 0, i);
        x[i] = (u & 1 ? 1 : -1) * (double)u * 0x1p-32;
    }
    bench_part(&b, "Convolutions, compared with the same multiply-adds in one product, multiply-adds a second");
    for (size_t i = 0; i < COUNT(models) && !bad; i++) {
        bad = !set_model(&w, i, x);
        if (!bad)
            run_model(&w);
    }
    free(x);
    free(w.codes);
    free(w.results);
    return bench_end(&b) || bad;
}
