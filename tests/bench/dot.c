/* dot.c -- speed of matrix products and arithmetic on one thread, as ratios in the same run.
 *
 *   dot [TEXT...]   rows whose model or operation contains one of the texts; all of them.
 *                   MPSIM_ISA chooses the instruction set
 *
 * Matrix products: multiply-adds per second of mpsim_gemm divided by those of a plain loop in
 * binary32, s += a[k] * b[k]; the median of the repeats, in seconds of the processor. Operands: +-U(0, 1). Shapes that training
 * has ("shape"; a transposed operand has a T), with zeros and smaller numbers among the operands:
 * ratios to the large product of the same model. Arithmetic: operations per
 * second of mpsim_arith_array on random codes, as a ratio to mpsim's own conversion in the same
 * format. CSV. */
#include "timing.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

static char **wanted; /* names, up to NULL */

static int is_wanted(const char *name)
{
    int found = !*wanted;
    for (char **w = wanted; *w; w++)
        found |= strstr(name, *w) != NULL;
    return found;
}

/* Seconds of the processor: other work on the machine does not count. */
static double spent(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Median seconds of run(context). */
static double median(void (*run)(void *), void *context)
{
    double t[REPEATS];
    run(context);
    for (int i = 0; i < REPEATS; i++) {
        const double t0 = spent();
        run(context);
        t[i] = spent() - t0;
    }
    return middle(t, REPEATS);
}

/* ---- matrix products ---- */

typedef struct product {
    mpsim_model m;
    mpsim_matrix a, b;
    size_t rows, columns, depth;
    void *d;
    const float *fa, *fb;
} product;

static void do_gemm(void *context)
{
    product *p = context;
    if (mpsim_gemm(&p->m, p->rows, p->columns, p->depth, &p->a, &p->b, NULL, p->d, p->columns, NULL,
                   NULL) != MPSIM_OK)
        abort();
}

static void do_plain(void *context)
{
    product *p = context;
    float *d = p->d;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->columns; j++) {
            float s = 0;
            for (size_t k = 0; k < p->depth; k++)
                s += p->fa[i * p->depth + k] * p->fb[j * p->depth + k];
            d[i * p->columns + j] = s;
        }
}

static void report(const char *kind, const product *p, const char *format, double base, double t)
{
    const double work = (double)p->rows * (double)p->columns * (double)p->depth;
    printf("%s,%s,%s,%zux%zux%zu%s%s,%.3f,%.3f\n", kind, p->m.name, format, p->rows, p->columns,
           p->depth, p->a.transposed ? " aT" : "", p->b.transposed ? " bT" : "", base * work / t,
           work / t * 1e-9);
    fflush(stdout);
}

/* The rows of the table, then software models in other formats. */
static int model_at(mpsim_model *m, size_t i)
{
    static const char *const typed[] = {
        "sequential:bf16", "sequential:fp16", "sequential:e4m3", "pairwise:bf16", "pairwise:fp16",
        "pairwise:e4m3", "fma:bf16", "fma:fp16", "fma:e4m3", "chunked:fp16", "chunked:bf16",
        "sequential:product=bf16"};
    const size_t n = mpsim_model_count();
    if (i < n)
        return mpsim_model_at(m, i) == MPSIM_OK;
    return i - n < sizeof typed / sizeof typed[0] && mpsim_model_parse(m, typed[i - n]) == MPSIM_OK;
}

static int run_products(void)
{
    enum { N = 256, DEPTH = 1024 };
    static const char *const formats[] = {"fp16", "bf16", "tf32", "e4m3", "binary32"};
    double *x = malloc(N * DEPTH * sizeof *x);
    float *f = malloc(N * DEPTH * sizeof *f);
    void *a = malloc(N * DEPTH * 4), *d = malloc(N * N * 8);
    if (!x || !f || !a || !d)
        return 1;
    for (size_t i = 0; i < N * DEPTH; i++) {
        const uint32_t w = mpsim_rng_word(1, 0, i);
        x[i] = (w & 1 ? 1 : -1) * (double)w * 0x1p-32;
        f[i] = (float)x[i];
    }
    product p = {.rows = N, .columns = N, .depth = DEPTH, .d = d, .fa = f, .fb = f};
    strcpy(p.m.name, "plain binary32 loop");
    const double plain = median(do_plain, &p) / ((double)N * N * DEPTH);
    report("gemm", &p, "binary32", plain, plain * N * N * DEPTH);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; model_at(&p.m, i); i++)
        for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            const mpsim_format *format = mpsim_format_find(formats[k]);
            if (!mpsim_model_accepts(&p.m, format, format) || !is_wanted(p.m.name))
                continue;
            if (mpsim_encode_array_f64(format, &r, NULL, a, x, N * DEPTH, NULL) != MPSIM_OK)
                return 1;
            p.a = (mpsim_matrix){format, a, DEPTH, 0};
            p.b = (mpsim_matrix){format, a, DEPTH, 1};
            report("gemm", &p, format->name, plain, median(do_gemm, &p));
        }
    free(x);
    free(f);
    free(a);
    free(d);
    return 0;
}

/* ---- shapes of training ---- */

/* Layers of 64 and 128 features in batches of 64, with both gradients; convolutions of 3 x 3 over
 * 1 and 16 channels as products, with both gradients; the last is large. */
static const struct shape {
    size_t rows, columns, depth;
    int a_transposed, b_transposed;
} shapes[] = {
    {64, 64, 128, 0, 0},   {64, 128, 64, 0, 1},  {128, 64, 64, 1, 0},  {2048, 16, 9, 0, 1},
    {16, 9, 2048, 1, 0},   {2048, 9, 16, 0, 0},  {2048, 32, 144, 0, 1}, {32, 144, 2048, 1, 0},
    {2048, 144, 32, 0, 0}, {256, 256, 1024, 0, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], MOST = 2048 * 144 };

static const char *const shape_models[][2] = {
    {"hopper-fp16-fp32", "fp16"}, {"hopper-bf16-fp32", "bf16"}, {"hopper-wgmma-fp8-fp32", "e4m3"},
    {"hopper-wgmma-fp8-promoted", "e4m3"}, {"fma", "binary32"}, {"fma", "fp16"},
    {"sequential", "binary32"}, {"exact", "fp16"}, {"exact", "bf16"}, {"exact", "e4m3"},
    {"exact", "binary32"}};

static int run_shapes(void)
{
    double *x = malloc(MOST * sizeof *x);
    void *a = malloc(MOST * 4), *d = malloc(MOST * 4);
    if (!x || !a || !d)
        return 1;
    for (size_t i = 0; i < MOST; i++) {
        const uint32_t w = mpsim_rng_word(1, 0, i), v = mpsim_rng_word(1, 1, i);
        x[i] = v % 4 ? (w & 1 ? 1 : -1) * (double)w * 0x1p-32 / (1 + (v >> 8) % 16) : 0;
    }
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < sizeof shape_models / sizeof shape_models[0]; i++) {
        const mpsim_format *f = mpsim_format_find(shape_models[i][1]);
        product p = {.d = d};
        if (!is_wanted(shape_models[i][0]))
            continue;
        if (mpsim_model_parse(&p.m, shape_models[i][0]) != MPSIM_OK ||
            mpsim_encode_array_f64(f, &r, NULL, a, x, MOST, NULL) != MPSIM_OK)
            return 1;
        double each = 0; /* seconds of a multiply-add in the large product */
        for (size_t k = SHAPES; k-- > 0;) {
            const struct shape *s = &shapes[k];
            p.rows = s->rows;
            p.columns = s->columns;
            p.depth = s->depth;
            p.a = (mpsim_matrix){f, a, s->a_transposed ? s->rows : s->depth, s->a_transposed};
            p.b = (mpsim_matrix){f, a, s->b_transposed ? s->depth : s->columns, s->b_transposed};
            const double t = median(do_gemm, &p);
            if (k == SHAPES - 1)
                each = t / ((double)s->rows * (double)s->columns * (double)s->depth);
            report("shape", &p, f->name, each, t);
        }
    }
    free(x);
    free(a);
    free(d);
    return 0;
}

/* ---- arithmetic ---- */

enum { ELEMENTS = 1 << 18 };

typedef struct operation {
    mpsim_arith o;
    uint32_t *a, *b, *c, *d; /* room for the widest codes here */
} operation;

static void do_arith(void *context)
{
    operation *p = context;
    (void)mpsim_arith_array(&p->o, NULL, p->d, p->a, p->b, p->c, ELEMENTS, NULL);
}

static int run_arithmetic(void)
{
    static const char *const formats[] = {"e4m3", "fp16", "bf16", "binary32"};
    operation p;
    uint32_t *codes = malloc(4 * ELEMENTS * sizeof *codes);
    if (!codes)
        return 1;
    for (size_t i = 0; i < 4 * ELEMENTS; i++)
        codes[i] = mpsim_rng_word(2, 0, i);
    p.a = codes;
    p.b = codes + ELEMENTS;
    p.c = codes + 2 * ELEMENTS;
    p.d = codes + 3 * ELEMENTS;
    for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
        double base = 0;
        for (int op = 0; op < MPSIM_OPS; op++) {
            if (op != MPSIM_OP_CONVERT && !is_wanted(mpsim_op_name((mpsim_op)op)))
                continue;
            mpsim_arith_init(&p.o, (mpsim_op)op, mpsim_format_find(formats[k]),
                             MPSIM_ROUND_NEAREST_EVEN);
            const double t = median(do_arith, &p);
            base = op == MPSIM_OP_CONVERT ? t : base;
            printf("arith,%s,%s,%d,%.3f,%.4f\n", mpsim_op_name((mpsim_op)op), formats[k], ELEMENTS,
                   base / t, ELEMENTS / t * 1e-9);
        }
    }
    free(codes);
    return 0;
}

int main(int argc, char **argv)
{
    const char *isa = getenv("MPSIM_ISA");
    (void)argc;
    wanted = argv + 1;
    if (isa && *isa && mpsim_isa_use(isa) != MPSIM_OK) {
        fprintf(stderr, "bench: MPSIM_ISA: no %s here\n", isa);
        return 2;
    }
    printf("kind,what,format,size,ratio,giga_operations_per_second\n");
    if (run_products() || run_shapes() || run_arithmetic()) {
        fputs("bench: out of memory\n", stderr);
        return 1;
    }
    return 0;
}
