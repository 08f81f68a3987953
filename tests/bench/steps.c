/* steps.c -- speed of gradient operations and optimizer steps as a ratio to memcpy of the parameter
 * (binary32) in the same run, on one core.
 *
 * 4 Mi elements, fewer with --quick. Gradients and parameters are 0.02 * (sum of 12 uniform - 6). */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    float *p, *g, *m, *v, *kahan, *y;
    bench *bench;
    size_t n;
    mpsim_optim optim;
    double scale;
} work;

static void do_memcpy(void *context)
{
    work *w = context;
    memcpy(w->y, w->p, w->n * sizeof *w->p);
    __asm__ volatile("" : : "r"(w->y) : "memory");
}

static void do_unscale(void *context)
{
    work *w = context;
    (void)mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, w->scale, NULL, w->y, w->g, w->n);
}

static void do_norm(void *context)
{
    work *w = context;
    w->y[0] = mpsim_norm(NULL, w->g, w->n);
}

static void do_step(void *context)
{
    work *w = context;
    const mpsim_rng rng = {1, 2, 0};
    const mpsim_optim_tensor t = {.param = w->p, .grad = w->g, .m = w->m, .v = w->v,
                                  .kahan = w->kahan, .n = w->n};
    (void)mpsim_optim_step(&w->optim, 2, &t, &rng);
}

static void report(const work *w, const char *what, const char *how, const char *format, double base, double t)
{
    const bench_row r = {.operation = what, .what = how, .how = format, .n = (double)w->n,
                         .per_second = (double)w->n / t, .ratio = base / t, .to = "memcpy"};
    bench_print(w->bench, &r);
}

/* Parameters as the format has them; moments at zero. */
static void prepare(work *w, const mpsim_format *f)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f32(f, &nearest, NULL, w->p, w->p, w->n, NULL);
    (void)mpsim_round_array_f32(f, &nearest, NULL, w->g, w->g, w->n, NULL);
    memset(w->m, 0, w->n * sizeof *w->m);
    memset(w->v, 0, w->n * sizeof *w->v);
    memset(w->kahan, 0, w->n * sizeof *w->kahan);
}

static void bench_step(work *w, mpsim_optim_algorithm a, const char *variant, const char *format,
                       mpsim_store store, double base)
{
    mpsim_optim_init(&w->optim, a, mpsim_optim_variant_find(variant));
    w->optim.param = w->optim.state = *mpsim_format_find(format);
    w->optim.store = (uint8_t)store;
    if (a == MPSIM_OPTIM_SGD)
        w->optim.momentum = 0.9;
    if (mpsim_optim_check(&w->optim) != MPSIM_OK)
        return;
    prepare(w, &w->optim.param);
    report(w, mpsim_optim_name(a), variant, format, base, bench_seconds(w->bench, do_step, w));
}

int main(int argc, char **argv)
{
    static const char *const variants[] = {"ieee", "torch-foreach", "torch-fused-b", "torch-fused-c",
                                           "apex"};
    bench b;
    work w = {.bench = &b, .scale = 65536};
    const int code = bench_begin(&b, argc, argv, "steps");
    if (code)
        return code;
    w.n = b.n < 1 << 20 ? b.n : b.quick ? 1 << 20 : 1 << 22;
    uint64_t index = 0;
    float **arrays[] = {&w.p, &w.g, &w.m, &w.v, &w.kahan, &w.y};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if ((*arrays[i] = calloc(w.n, sizeof **arrays[i])) == NULL)
            return 1;
    for (size_t i = 0; i < 2 * w.n; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++)
            sum += mpsim_rng_word(1, 0, index++) * 0x1p-32;
        (i < w.n ? w.p : w.g)[i % w.n] = (float)(0.02 * sum);
    }
    const double base = bench_seconds(&b, do_memcpy, &w);
    bench_part(&b, "Gradients and optimizer steps; ratios of elements a second");
    report(&w, "memcpy", "binary32", "", base, base);
    report(&w, "unscale", "binary32", "", base, bench_seconds(&b, do_unscale, &w));
    report(&w, "norm", "binary32", "", base, bench_seconds(&b, do_norm, &w));
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a += 2)
            bench_step(&w, (mpsim_optim_algorithm)a, variants[i], "binary32", MPSIM_STORE_NEAREST,
                       base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "torch-foreach", "bf16", MPSIM_STORE_NEAREST, base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "torchao", "bf16", MPSIM_STORE_STOCHASTIC, base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "optimi", "bf16", MPSIM_STORE_KAHAN, base);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(*arrays[i]);
    return bench_end(&b);
}
