/* steps.c -- speed of gradient operations, optimizer steps and block recipes as a ratio to memcpy of
 * the parameter (binary32) in the same run, on one core.
 *
 * Medians of the repeats over 4 Mi elements. Gradients and parameters are 0.02 * (sum of 12 uniform
 * - 6). Ratios below 1 are slower than memcpy, by so much. */
#include "timing.h"

#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 22, COLS = 4096, REPEATS = 5 };

typedef struct work {
    float *p, *g, *m, *v, *kahan, *y;
    uint8_t *codes;
    mpsim_optim optim;
    const mpsim_block_recipe *recipe;
    double scale;
} work;

static double median(work *w, void (*run)(work *))
{
    double t[REPEATS];
    run(w);
    for (int i = 0; i < REPEATS; i++) {
        const double t0 = now();
        run(w);
        t[i] = now() - t0;
    }
    return middle(t, REPEATS);
}

static void do_memcpy(work *w)
{
    memcpy(w->y, w->p, N * sizeof *w->p);
    __asm__ volatile("" : : "r"(w->y) : "memory");
}

static void do_unscale(work *w)
{
    (void)mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, w->scale, NULL, w->y, w->g, N);
}

static void do_norm(work *w)
{
    w->y[0] = mpsim_norm(NULL, w->g, N);
}

static void do_step(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    const mpsim_optim_tensor t = {.param = w->p, .grad = w->g, .m = w->m, .v = w->v,
                                  .kahan = w->kahan, .n = N};
    (void)mpsim_optim_step(&w->optim, 2, &t, &rng);
}

static void do_quantize(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    const mpsim_blocks out = {.codes = w->codes};
    (void)mpsim_block_quantize(w->recipe, w->g, N / COLS, COLS, -1, 1, &rng, &out, NULL);
}

static void report(const char *what, const char *format, double base, double t)
{
    printf("%s,%s,%d,%.3f,%.1f\n", what, format, N, base / t, N / t * 1e-6);
    fflush(stdout);
}

/* Parameters as the format has them; moments at zero. */
static void prepare(work *w, const mpsim_format *f)
{
    mpsim_rounding nearest;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f32(f, &nearest, NULL, w->p, w->p, N, NULL);
    (void)mpsim_round_array_f32(f, &nearest, NULL, w->g, w->g, N, NULL);
    memset(w->m, 0, N * sizeof *w->m);
    memset(w->v, 0, N * sizeof *w->v);
    memset(w->kahan, 0, N * sizeof *w->kahan);
}

static void bench_step(work *w, mpsim_optim_algorithm a, const char *variant, const char *format,
                       mpsim_store store, double base)
{
    char what[64];
    mpsim_optim_init(&w->optim, a, mpsim_optim_variant_find(variant));
    w->optim.param = w->optim.state = *mpsim_format_find(format);
    w->optim.store = (uint8_t)store;
    if (a == MPSIM_OPTIM_SGD)
        w->optim.momentum = 0.9;
    if (mpsim_optim_check(&w->optim) != MPSIM_OK)
        return;
    prepare(w, &w->optim.param);
    snprintf(what, sizeof what, "%s %s", mpsim_optim_name(a), variant);
    report(what, format, base, median(w, do_step));
}

int main(void)
{
    static const char *const variants[] = {"ieee", "torch-foreach", "torch-fused-b", "torch-fused-c",
                                           "apex"};
    static const char *const recipes[] = {"te-current", "te-block-1x128", "te-block-128x128",
                                          "mxfp8", "mxfp4", "nvfp4", "nvfp4-sr"};
    work w = {.scale = 65536};
    uint64_t index = 0;
    float **arrays[] = {&w.p, &w.g, &w.m, &w.v, &w.kahan, &w.y};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if ((*arrays[i] = calloc(N, sizeof **arrays[i])) == NULL)
            return 1;
    if ((w.codes = malloc(N)) == NULL)
        return 1;
    for (size_t i = 0; i < 2 * (size_t)N; i++) {
        double sum = -6;
        for (int k = 0; k < 12; k++)
            sum += mpsim_rng_word(1, 0, index++) * 0x1p-32;
        (i < N ? w.p : w.g)[i % N] = (float)(0.02 * sum);
    }
    const double base = median(&w, do_memcpy);
    printf("operation,format,elements,ratio_to_memcpy,million_elements_per_second\n");
    report("memcpy", "binary32", base, base);
    report("unscale", "binary32", base, median(&w, do_unscale));
    report("norm", "binary32", base, median(&w, do_norm));
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        w.recipe = mpsim_block_find(recipes[i]);
        report("quantize", recipes[i], base, median(&w, do_quantize));
    }
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a += 2)
            bench_step(&w, (mpsim_optim_algorithm)a, variants[i], "binary32", MPSIM_STORE_NEAREST,
                       base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "torch-foreach", "bf16", MPSIM_STORE_NEAREST, base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "torchao", "bf16", MPSIM_STORE_STOCHASTIC, base);
    bench_step(&w, MPSIM_OPTIM_ADAMW, "optimi", "bf16", MPSIM_STORE_KAHAN, base);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(*arrays[i]);
    free(w.codes);
    return 0;
}
