/* steps.c -- speed of gradient operations and optimizer steps, elements a second, compared with memcpy of the
 * parameter (binary32), on one core.
 *
 * The rows say how many bytes of memory an element of a step reads and writes; of memcpy these are 8. 16 Mi
 * elements, fewer with --quick. Gradients and parameters are 0.02 * sqrt(3) * (sum of 4 uniform - 2). */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    float *p, *g, *m, *v, *kahan, *y;
    bench *bench;
    size_t n;
    mpsim_optim optim;
    double scale;
    int count;
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
    const mpsim_optim_tensor t = {.param = w->p, .grad = w->g, .m = w->m, .v = w->v, .kahan = w->kahan, .n = w->n};
    (void)mpsim_optim_step(&w->optim, 2, &t, &rng);
}

enum { PARAMS = 64 };

/* The same arrays as those of many parameters, stepped by one call. */
static void do_update(void *context)
{
    work *w = context;
    const size_t each = w->n / PARAMS;
    mpsim_update list[PARAMS];
    for (size_t i = 0; i < PARAMS; i++)
        list[i] = (mpsim_update){.optim = &w->optim,
                                 .step = 2,
                                 .t = {.param = w->p + i * each,
                                       .grad = w->g + i * each,
                                       .m = w->m + i * each,
                                       .v = w->v + i * each,
                                       .n = each}};
    (void)mpsim_update_run(list, PARAMS, w->count, NULL, NULL);
}

static void do_gradients(void *context)
{
    work *w = context;
    const size_t each = w->n / PARAMS;
    mpsim_gradient list[PARAMS];
    int64_t cause;
    for (size_t i = 0; i < PARAMS; i++)
        list[i] = (mpsim_gradient){.format = &w->optim.param, .x = w->g + i * each, .y = w->y + i * each, .n = each};
    (void)mpsim_gradients_check(list, PARAMS, MPSIM_UNSCALE_RECIPROCAL, MPSIM_CHECK_ELEMENTS, w->scale, NULL, &cause);
}

/* A row: memcpy is measured before and after. */
static void measure(work *w, void (*run)(void *), const char *operation, const char *what, const char *how)
{
    if (!bench_wants(w->bench, operation, what))
        return;
    const double before = bench_seconds(w->bench, do_memcpy, w);
    const double t = bench_seconds(w->bench, run, w);
    const double after = bench_seconds(w->bench, do_memcpy, w), base = (before + after) / 2;
    const double n = (double)w->n;
    const bench_row r = {.operation = operation,
                         .what = what,
                         .how = how,
                         .n = n,
                         .per_second = n / t,
                         .ratio = base / t,
                         .to = "memcpy",
                         .spread = fabs(before - after) / base,
                         .to_bytes = 8 * n / base};
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

static void bench_step(work *w, mpsim_optim_algorithm a, const char *variant, const char *format, mpsim_store store)
{
    char how[64];
    mpsim_optim_init(&w->optim, a, mpsim_optim_variant_find(variant));
    w->optim.param = w->optim.state = *mpsim_format_find(format);
    w->optim.store = (uint8_t)store;
    if (a == MPSIM_OPTIM_SGD)
        w->optim.momentum = 0.9;
    if (mpsim_optim_check(&w->optim) != MPSIM_OK)
        return;
    prepare(w, &w->optim.param);
    /* parameter, gradient, first and second moment, compensation: read, and written but for the gradient */
    const unsigned has = mpsim_optim_arrays(&w->optim);
    const int arrays = 2 + !!(has & MPSIM_OPTIM_M) + !!(has & MPSIM_OPTIM_V) + (store == MPSIM_STORE_KAHAN);
    snprintf(how, sizeof how, "%s %d B", format, (2 * arrays - 1) * 4);
    measure(w, do_step, mpsim_optim_name(a), variant, how);
}

static void make_values(float *x, size_t n, uint64_t seed)
{
    uint64_t four[1024];
    for (size_t i = 0; i < n; i++) {
        if (i % 1024 == 0)
            bench_random(four, sizeof four, seed += n);
        double sum = -2;
        for (int k = 0; k < 64; k += 16)
            sum += (double)(four[i % 1024] >> k & 0xffff) * 0x1p-16;
        x[i] = (float)(0.02 * 1.7320508 * sum);
    }
}

/* Steps in few bits. */
static const struct {
    mpsim_optim_algorithm algorithm;
    const char *variant, *format;
    mpsim_store store;
} narrow[] = {{MPSIM_OPTIM_ADAMW, "torch-foreach", "bf16", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_ADAMW, "torchao", "bf16", MPSIM_STORE_STOCHASTIC},
              {MPSIM_OPTIM_ADAMW, "optimi", "bf16", MPSIM_STORE_KAHAN},
              {MPSIM_OPTIM_SGD, "torch-foreach", "bf16", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_SGD, "torch-cpu", "fp16", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_SGD, "optimi", "bf16", MPSIM_STORE_KAHAN},
              {MPSIM_OPTIM_LION, "lion-pytorch", "binary32", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_LION, "lion-pytorch", "bf16", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_LION, "lion-pytorch-cpu", "fp16", MPSIM_STORE_NEAREST},
              {MPSIM_OPTIM_LION, "ieee", "bf16", MPSIM_STORE_STOCHASTIC}};

int main(int argc, char **argv)
{
    static const char *const variants[] = {"ieee", "torch-foreach", "torch-fused-b", "torch-fused-c", "apex"};
    bench b;
    work w = {.bench = &b, .scale = 65536};
    const int code = bench_begin(&b, argc, argv, "steps");
    if (code)
        return code;
    w.n = b.n < 1 << 20 ? b.n : b.quick ? 1 << 22 : 1 << 24;
    float **arrays[] = {&w.p, &w.g, &w.m, &w.v, &w.kahan, &w.y};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if ((*arrays[i] = calloc(w.n, sizeof **arrays[i])) == NULL)
            return 1;
    make_values(w.p, w.n, 1);
    make_values(w.g, w.n, 2);
    bench_part(&b, "Gradients and optimizer steps; ratios of elements a second");
    measure(&w, do_memcpy, "memcpy", "binary32", "");
    measure(&w, do_unscale, "unscale", "binary32", "");
    measure(&w, do_norm, "norm", "binary32", "");
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
            bench_step(&w, (mpsim_optim_algorithm)a, variants[i], "binary32", MPSIM_STORE_NEAREST);
    mpsim_optim_init(&w.optim, MPSIM_OPTIM_ADAMW, mpsim_optim_variant_find("torch-foreach"));
    prepare(&w, &w.optim.param);
    measure(&w, do_gradients, "check", "64 gradients", "binary32");
    measure(&w, do_update, "adamw", "64 parameters", "torch-foreach");
    w.count = 1;
    measure(&w, do_update, "adamw", "64 counted", "torch-foreach");
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        bench_step(&w, narrow[i].algorithm, narrow[i].variant, narrow[i].format, narrow[i].store);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(*arrays[i]);
    return bench_end(&b);
}
