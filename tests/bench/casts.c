/* casts.c -- speed of casting arrays: values and codes, formats, modes, scales, sources. */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <stdlib.h>
#include <string.h>

enum { FLUSH = 1, SATURATE = 2 };

/* A row of values (round) and one of codes (encode). */
typedef struct cast {
    const char *format;
    const char *round;
    double scale;
    int flags;
} cast;

/* On the best instruction set. */
static const cast full[] = {
    {"fp16", "nearest-even", 1, 0},
    {"bf16", "nearest-even", 1, 0},
    {"e4m3", "nearest-even", 1, 0},
    {"e5m2", "nearest-even", 1, 0},
    {"e3m2", "nearest-even", 1, 0},
    {"e2m1", "nearest-even", 1, 0},
    {"e8m0", "nearest-even", 1, 0},
    {"e4m3fnuz", "nearest-even", 1, 0},
    {"tf32", "nearest-even", 1, 0},
    {"fp16", "nearest-even", 1, FLUSH},
    {"e4m3", "nearest-even", 1, SATURATE},
    {"fp16", "nearest-even", 1024, 0},
    {"e4m3", "nearest-even", 1024, 0},
    {"fp16", "nearest-even", 3, 0},
    {"bf16", "nearest-even", 3, 0},
    {"e4m3", "nearest-even", 3, 0},
    {"e5m2", "nearest-even", 3, 0},
    {"fp16", "nearest-away", 1, 0},
    {"fp16", "toward-zero", 1, 0},
    {"fp16", "up", 1, 0},
    {"fp16", "to-odd", 1, 0},
    {"bf16", "toward-zero", 1, 0},
    {"e4m3", "toward-zero", 1, 0},
    {"e5m2", "down", 1, 0},
    {"fp16", "stochastic-c", 1, 0},
    {"fp16", "stochastic-a", 1, 0},
    {"bf16", "stochastic-c", 1, 0},
    {"e4m3", "stochastic-c", 1, 0},
    {"e5m2", "stochastic-b", 1, 0},
};

/* From binary64, and on the other instruction sets from binary32. */
static const cast few[] = {
    {"fp16", "nearest-even", 1, 0}, {"e4m3", "nearest-even", 1, 0}, {"bf16", "toward-zero", 1, 0},
    {"e5m2", "nearest-even", 3, 0}, {"fp16", "stochastic-c", 1, 0},
};

static const cast threaded[] = {
    {"fp16", "nearest-even", 1, 0},
    {"fp16", "stochastic-c", 1, 0},
};

#define COUNT(table) (sizeof table / sizeof *table)

typedef struct work {
    bench *b;
    double *x64;
    const mpsim_format *f;
    mpsim_rounding r;
    bench_job copy;
} work;

/* Element i takes the random word i, also in a part of the array. */
static mpsim_rng stream(size_t from)
{
    return (mpsim_rng){1, 2, from};
}

static void round32(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = stream(from);
    (void)mpsim_round_array_f32(w->f, &w->r, &g, w->b->y + from, w->b->x + from, n, NULL);
}

static void round64(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = stream(from);
    (void)mpsim_round_array_f64(w->f, &w->r, &g, (double *)(void *)w->b->y + from, w->x64 + from, n, NULL);
}

static void encode32(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = stream(from);
    char *codes = (char *)w->b->y + from * mpsim_format_code_bytes(w->f);
    (void)mpsim_encode_array_f32(w->f, &w->r, &g, codes, w->b->x + from, n, NULL);
}

static void encode64(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = stream(from);
    char *codes = (char *)w->b->y + from * mpsim_format_code_bytes(w->f);
    (void)mpsim_encode_array_f64(w->f, &w->r, &g, codes, w->x64 + from, n, NULL);
}

static void prepare(work *w, const cast *c)
{
    mpsim_round_mode mode = MPSIM_ROUND_NEAREST_EVEN;
    uint8_t bits = 32;
    w->f = mpsim_format_find(c->format);
    if (!w->f || mpsim_round_mode_parse(&mode, &bits, c->round) != MPSIM_OK)
        abort();
    mpsim_rounding_init(&w->r, mode);
    w->r.scale = c->scale;
    w->r.flush_output = (c->flags & FLUSH) != 0;
    w->r.overflow = c->flags & SATURATE ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
}

/* A cast from binary32, or with x64 from binary64: values and codes. */
static void run_cast(work *w, const cast *c, unsigned threads, int from64)
{
    char how[64];
    prepare(w, c);
    snprintf(how, sizeof how, "%s%s%s%s%s", c->round,
             c->scale > 3   ? " x 1024"
             : c->scale > 1 ? " x 3"
                            : "",
             c->flags & FLUSH ? " flushed" : "", c->flags & SATURATE ? " saturated" : "", from64 ? " of binary64" : "");
    bench_job j = {.what = c->format,
                   .how = how,
                   .name = "1 thread",
                   .threads = 1,
                   .n = from64 ? w->b->n / 2 : w->b->n,
                   .context = w,
                   .to = &w->copy};
    const double code = (double)mpsim_format_code_bytes(w->f);
    const bench_job both[] = {
        {.operation = "round", .bytes = from64 ? 16 : 8, .run = from64 ? round64 : round32},
        {.operation = "encode", .bytes = from64 ? 8 + code : 4 + code, .run = from64 ? encode64 : encode32}};
    for (size_t i = 0; i < 2; i++) {
        j.operation = both[i].operation;
        j.bytes = both[i].bytes;
        j.run = both[i].run;
        const bench_job one = j;
        bench_job several = j;
        several.threads = threads;
        several.to = &one;
        bench_run(w->b, threads > 1 ? &several : &one);
    }
}

static void run_list(work *w, const cast *list, size_t n, unsigned threads, int from64)
{
    for (size_t i = 0; i < n; i++)
        run_cast(w, &list[i], threads, from64);
}

int main(int argc, char **argv)
{
    bench b;
    work w = {.b = &b};
    int code = bench_begin(&b, argc, argv, "casts");
    if (code)
        return code;
    w.x64 = malloc(b.n / 2 * sizeof *w.x64);
    if (!w.x64 || bench_data(&b))
        return 1;
    for (size_t i = 0; i < b.n / 2; i++)
        w.x64[i] = (double)b.x[i];
    w.copy = bench_copy(&b);
    bench_job copies = w.copy;
    copies.threads = 2;
    bench_job one = w.copy;
    one.name = "1 thread";
    copies.to = &one;
    bench_part(&b, "Casts of binary32 values of 2^-40 to 2^20; ratios of bytes a second");
    bench_run(&b, &w.copy);
    bench_run(&b, &copies);
    run_list(&w, full, COUNT(full), 1, 0);
    run_list(&w, few, COUNT(few), 1, 1);
    run_list(&w, threaded, COUNT(threaded), 2, 0);
    const char *const best = mpsim_isa_active();
    for (size_t i = 0; mpsim_isa_at(i); i++)
        if (strcmp(mpsim_isa_at(i), best) != 0 && mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            run_list(&w, few, COUNT(few), 1, 0);
    bench_run(&b, &w.copy);
    free(w.x64);
    return bench_end(&b);
}
