/* steps.c -- speed of gradient operations, optimizer steps and block recipes as a ratio to memcpy of
 * the parameter (binary32) in the same run, on one core, by instruction set.
 *
 * Over 4 Mi elements; each operation in turn with memcpy, the shortest times of both, of the
 * process's own time. Gradients and parameters are 0.02 * (sum of 12 uniform - 6). Ratios below 1 are slower
 * than memcpy, by so much. A step reads and writes more than memcpy does: "streams" is Adam's and SGD's
 * traffic with next to no arithmetic. binary32 parameters are masters; "> bf16": and the model's copy. */
#include <mpsim/mpsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 22, COLS = 4096, REPEATS = 5 };

typedef struct work {
    float *p, *g, *m, *v, *kahan, *y;
    uint8_t *codes;
    mpsim_optim optim;
    const mpsim_format *model; /* of a copy of the parameter; NULL: none */
    const mpsim_block_recipe *recipe;
    double scale;
} work;

static double own_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
    mpsim_rounding nearest;
    (void)mpsim_optim_step(&w->optim, 2, &t, &rng);
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    if (w->model)
        (void)mpsim_round_array_f32(w->model, &nearest, NULL, w->y, w->p, N, NULL);
}

typedef float lanes __attribute__((vector_size(64), aligned(4), may_alias));

static void do_sgd_streams(work *w)
{
    for (size_t i = 0; i < N; i += 16) {
        lanes *p = (lanes *)(w->p + i), *m = (lanes *)(w->m + i);
        *m += *(const lanes *)(w->g + i);
        *p += *m;
    }
}

static void do_adam_streams(work *w)
{
    for (size_t i = 0; i < N; i += 16) {
        lanes *p = (lanes *)(w->p + i), *m = (lanes *)(w->m + i), *v = (lanes *)(w->v + i);
        *m += *(const lanes *)(w->g + i);
        *v += *m;
        *p += *v;
    }
}

static void do_quantize(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    const mpsim_blocks out = {.codes = w->codes};
    (void)mpsim_block_quantize(w->recipe, w->g, N / COLS, COLS, -1, 1, &rng, &out, NULL);
}

static double shorter(double a, double t0)
{
    const double t = own_time() - t0;
    return t < a ? t : a;
}

static void bench(work *w, const char *what, const char *format, void (*run)(work *))
{
    double base = 1e9, best = 1e9;
    run(w);
    for (int i = 0; i < REPEATS; i++) {
        double t0 = own_time();
        do_memcpy(w);
        base = shorter(base, t0);
        t0 = own_time();
        run(w);
        best = shorter(best, t0);
    }
    printf("%s,%s,%s,%d,%.3f,%.1f\n", what, format, mpsim_isa_active(), N, base / best, N / best * 1e-6);
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

static void bench_step(work *w, mpsim_optim_algorithm a, const mpsim_optim_variant *v,
                       const char *format, const char *model, mpsim_store store)
{
    char what[64], formats[32];
    mpsim_optim_init(&w->optim, a, v);
    w->optim.param = w->optim.state = *mpsim_format_find(format);
    w->optim.store = (uint8_t)store;
    w->model = model ? mpsim_format_find(model) : NULL;
    if (a == MPSIM_OPTIM_SGD)
        w->optim.momentum = 0.9;
    if (mpsim_optim_check(&w->optim) != MPSIM_OK)
        return;
    prepare(w, &w->optim.param);
    snprintf(what, sizeof what, "%s %s", mpsim_optim_name(a), v->name);
    snprintf(formats, sizeof formats, "%s%s%s", format, model ? " > " : "", model ? model : "");
    bench(w, what, formats, do_step);
}

static void bench_all(work *w)
{
    static const char *const recipes[] = {"te-current", "te-block-1x128", "te-block-128x128",
                                          "mxfp8", "mxfp4", "nvfp4", "nvfp4-sr"};
    static const struct {
        const char *variant;
        mpsim_store store;
    } low[] = {{"torch-foreach", MPSIM_STORE_NEAREST}, {"torch-fused-c", MPSIM_STORE_NEAREST},
               {"torchao", MPSIM_STORE_STOCHASTIC}, {"optimi", MPSIM_STORE_KAHAN},
               {"optimi-triton", MPSIM_STORE_KAHAN}};
    const mpsim_optim_variant *v;
    bench(w, "unscale", "binary32", do_unscale);
    bench(w, "norm", "binary32", do_norm);
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        w->recipe = mpsim_block_find(recipes[i]);
        bench(w, "quantize", recipes[i], do_quantize);
    }
    for (size_t i = 0; (v = mpsim_optim_variant_at(i)) != NULL; i++)
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
            bench_step(w, (mpsim_optim_algorithm)a, v, "binary32", NULL, MPSIM_STORE_NEAREST);
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        bench_step(w, (mpsim_optim_algorithm)a, mpsim_optim_variant_find("torch-foreach"), "binary32",
                   "bf16", MPSIM_STORE_NEAREST);
    for (size_t i = 0; i < sizeof low / sizeof *low; i++)
        bench_step(w, MPSIM_OPTIM_ADAMW, mpsim_optim_variant_find(low[i].variant), "bf16", NULL,
                   low[i].store);
}

/* steps [ISA...]: of these instruction sets; none: of all that there are. */
int main(int argc, char **argv)
{
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
    printf("operation,format,isa,elements,ratio_to_memcpy,million_elements_per_second\n");
    bench(&w, "memcpy", "binary32", do_memcpy);
    bench(&w, "streams of sgd", "binary32", do_sgd_streams);
    bench(&w, "streams of adam", "binary32", do_adam_streams);
    for (int i = 1; i < argc; i++)
        if (mpsim_isa_use(argv[i]) == MPSIM_OK)
            bench_all(&w);
    for (size_t i = 0; argc < 2 && mpsim_isa_at(i); i++)
        if (strcmp(mpsim_isa_at(i), "scalar") != 0 && mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            bench_all(&w);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(*arrays[i]);
    free(w.codes);
    return 0;
}
