/* bench.c -- speed of the library as a ratio to memcpy in the same run.
 *
 * One line per operation, instruction set and size: elements per second of the operation
 * divided by elements per second of memcpy of as many binary32 values; the median of the
 * repeats. Two sizes: 64 Ki elements (second-level cache) and 16 Mi (memory). Data: half of it
 * +-2^U(-40, 20), half of it 0.02 * (sum of 12 uniform - 6), as gradients may be. */
#include "timing.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1 << 16, LARGE = 1 << 24, REPEATS_SMALL = 61, REPEATS_LARGE = 7 };

typedef struct work {
    size_t n;
    float *x, *y;
    double *xd;
    void *codes;
    const mpsim_format *f;
    mpsim_rounding r;
} work;

static void do_memcpy(work *w)
{
    memcpy(w->y, w->x, w->n * sizeof *w->x);
    __asm__ volatile("" : : "r"(w->y) : "memory");
}

static void do_encode32(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    (void)mpsim_encode_array_f32(w->f, &w->r, &rng, w->codes, w->x, w->n, NULL);
}

static void do_encode64(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    (void)mpsim_encode_array_f64(w->f, &w->r, &rng, w->codes, w->xd, w->n, NULL);
}

static void do_round32(work *w)
{
    const mpsim_rng rng = {1, 2, 0};
    (void)mpsim_round_array_f32(w->f, &w->r, &rng, w->y, w->x, w->n, NULL);
}

static void do_stats(work *w)
{
    mpsim_stats s;
    mpsim_stats_init(&s);
    mpsim_stats_add(&s, w->xd, w->n);
}

static void do_cast_stats(work *w)
{
    mpsim_cast_stats c;
    mpsim_cast_stats_init(&c);
    (void)mpsim_cast_stats_add(&c, w->f, &w->r, NULL, w->xd, w->n);
}

/* Median seconds of one call. */
static double median(work *w, void (*run)(work *))
{
    double t[REPEATS_SMALL];
    const int repeats = w->n > SMALL ? REPEATS_LARGE : REPEATS_SMALL;
    run(w);
    for (int i = 0; i < repeats; i++) {
        const double t0 = now();
        run(w);
        t[i] = now() - t0;
    }
    return middle(t, (size_t)repeats);
}

static void report(work *w, const char *what, const char *format, const char *mode, double base,
                   double t)
{
    printf("%s,%s,%s,%s,%zu,%.3f,%.1f\n", mpsim_isa_active(), what, format, mode, w->n, base / t,
           (double)w->n / t * 1e-6);
    fflush(stdout);
}

static void run_size(work *w)
{
    static const char *const formats[] = {"fp16", "bf16", "e4m3", "e5m2"};
    static const mpsim_round_mode modes[] = {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_STOCHASTIC_C};
    const double base = median(w, do_memcpy);
    report(w, "memcpy", "binary32", "-", base, base);
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < 4; i++) {
            const char *mode = mpsim_round_mode_name(modes[m]);
            w->f = mpsim_format_find(formats[i]);
            mpsim_rounding_init(&w->r, modes[m]);
            report(w, "encode_f32", formats[i], mode, base, median(w, do_encode32));
            report(w, "encode_f64", formats[i], mode, base, median(w, do_encode64));
            report(w, "round_f32", formats[i], mode, base, median(w, do_round32));
        }
    w->f = mpsim_format_find("fp16");
    mpsim_rounding_init(&w->r, MPSIM_ROUND_NEAREST_EVEN);
    report(w, "stats", "-", "-", base, median(w, do_stats));
    report(w, "cast_stats", "fp16", "nearest-even", base, median(w, do_cast_stats));
}

int main(void)
{
    work w = {.n = LARGE};
    uint64_t index = 0;
    w.x = malloc(LARGE * sizeof *w.x);
    w.y = malloc(LARGE * sizeof *w.y);
    w.xd = malloc(LARGE * sizeof *w.xd);
    w.codes = malloc(LARGE * sizeof(uint64_t));
    if (!w.x || !w.y || !w.xd || !w.codes) {
        fputs("bench: out of memory\n", stderr);
        return 1;
    }
    for (size_t i = 0; i < LARGE; i++) {
        if (i % 2) {
            double sum = -6;
            for (int k = 0; k < 12; k++)
                sum += mpsim_rng_word(1, 0, index++) * 0x1p-32;
            w.xd[i] = 0.02 * sum;
        } else {
            const double u = mpsim_rng_word(1, 0, index++) * 0x1p-32;
            w.xd[i] = exp2(60 * u - 40) * (mpsim_rng_word(1, 0, index++) & 1 ? 1 : -1);
        }
        w.x[i] = (float)w.xd[i];
        w.xd[i] = (double)w.x[i];
    }
    printf("isa,operation,format,mode,elements,ratio_to_memcpy,million_elements_per_second\n");
    for (size_t k = 0; mpsim_isa_at(k); k++) {
        if (mpsim_isa_use(mpsim_isa_at(k)) != MPSIM_OK)
            continue;
        w.n = SMALL;
        run_size(&w);
        w.n = LARGE;
        run_size(&w);
    }
    free(w.x);
    free(w.y);
    free(w.xd);
    free(w.codes);
    return 0;
}
