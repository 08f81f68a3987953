/* dot.c -- speed of matrix products and arithmetic on one thread, as ratios in the same run.
 *
 * Matrix products: multiply-adds per second of mpsim_gemm divided by those of a plain loop in
 * binary32, s += a[k] * b[k]; the median of the repeats. Operands: +-U(0, 1). Arithmetic: operations per
 * second of mpsim_arith_array on random codes, as a ratio to mpsim's own conversion in the same
 * format. CSV. */
#include "timing.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 5 };

/* Median seconds of run(context). */
static double median(void (*run)(void *), void *context)
{
    double t[REPEATS];
    run(context);
    for (int i = 0; i < REPEATS; i++) {
        const double t0 = now();
        run(context);
        t[i] = now() - t0;
    }
    return middle(t, REPEATS);
}

/* ---- matrix products ---- */

typedef struct product {
    mpsim_model m;
    mpsim_matrix a, b;
    size_t n, depth; /* n x depth times depth x n */
    void *d;
    const float *fa, *fb;
} product;

static void do_gemm(void *context)
{
    product *p = context;
    if (mpsim_gemm(&p->m, p->n, p->n, p->depth, &p->a, &p->b, NULL, p->d, p->n, NULL, NULL) != MPSIM_OK)
        abort();
}

static void do_plain(void *context)
{
    product *p = context;
    float *d = p->d;
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->n; j++) {
            float s = 0;
            for (size_t k = 0; k < p->depth; k++)
                s += p->fa[i * p->depth + k] * p->fb[j * p->depth + k];
            d[i * p->n + j] = s;
        }
}

static void report(const char *what, const char *format, size_t n, size_t depth, double base, double t)
{
    const double work = (double)n * (double)n * (double)depth;
    printf("gemm,%s,%s,%zux%zux%zu,%.3f,%.3f\n", what, format, n, n, depth, base * work / t,
           work / t * 1e-9);
    fflush(stdout);
}

static int run_products(void)
{
    enum { N = 256, DEPTH = 1024, SOFT = 64 };
    static const char *const formats[] = {"fp16", "bf16", "tf32", "e4m3"};
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
    product p = {.n = N, .depth = DEPTH, .d = d, .fa = f, .fb = f};
    const double plain = median(do_plain, &p) / ((double)N * N * DEPTH);
    report("plain binary32 loop", "binary32", N, DEPTH, plain, plain * N * N * DEPTH);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; mpsim_model_at(&p.m, i) == MPSIM_OK; i++)
        for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++) {
            const mpsim_format *format = mpsim_format_find(formats[k]);
            if (!mpsim_model_accepts(&p.m, format, format) || (!p.m.architecture && k > 0))
                continue;
            p.n = p.m.architecture ? N : SOFT;
            if (mpsim_encode_array_f64(format, &r, NULL, a, x, N * DEPTH, NULL) != MPSIM_OK)
                return 1;
            p.a = (mpsim_matrix){format, a, DEPTH, 0};
            p.b = (mpsim_matrix){format, a, DEPTH, 1};
            report(p.m.name, format->name, p.n, DEPTH, plain, median(do_gemm, &p));
        }
    free(x);
    free(f);
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

int main(void)
{
    printf("kind,what,format,size,ratio,giga_operations_per_second\n");
    if (run_products() || run_arithmetic()) {
        fputs("bench: out of memory\n", stderr);
        return 1;
    }
    return 0;
}
