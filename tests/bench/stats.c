/* stats.c -- speed of statistics, compared with a plain sum of as many bytes.
 *
 * Four formats are fp16, bf16, E4M3 and E5M2; "everything" is histogram, sums and errors. Beside them,
 * what a tensor costs where it has few elements. */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <stdlib.h>
#include <string.h>

enum {
    COUNTS = 0,
    HISTOGRAM = MPSIM_SUMMARY_HISTOGRAM,
    EVERYTHING = MPSIM_SUMMARY_HISTOGRAM | MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS
};
enum { FORMATS = 4, SCALES = 25, CASTS = FORMATS * SCALES, THREADS = 2 };

static const char *const names[FORMATS] = {"fp16", "bf16", "e4m3", "e5m2"};

/* Of a thread. */
typedef struct accumulators {
    mpsim_summary *summary;
    mpsim_stats stats;
    mpsim_histogram histogram;
    mpsim_cast_stats casts[CASTS];
} accumulators;

typedef struct task {
    bench *b;
    accumulators *a;            /* of each thread */
    const mpsim_format *source; /* binary32, binary64, or of codes */
    const void *x;
    size_t tensor; /* elements of each; 0: all are one */
    unsigned want;
    size_t n_casts;
    mpsim_cast casts[CASTS];
} task;

static void add(const task *t, mpsim_summary *s, size_t from, size_t n)
{
    const mpsim_rng g = {1, 2, from};
    const void *x = (const char *)t->x + from * mpsim_format_code_bytes(t->source);
    if (strcmp(t->source->name, "binary32") == 0)
        (void)mpsim_summary_add_f32(s, &g, x, n);
    else if (strcmp(t->source->name, "binary64") == 0)
        (void)mpsim_summary_add_f64(s, &g, x, n);
    else
        (void)mpsim_summary_add_codes(s, t->source, &g, x, n);
}

/* The first of two threads begins at 0. */
static void run_summary(void *context, size_t from, size_t n)
{
    const task *t = context;
    accumulators *a = &t->a[from > 0];
    const size_t step = t->tensor ? t->tensor : n;
    for (size_t i = 0; i < n; i += step) {
        (void)mpsim_summary_begin(a->summary, t->casts, t->n_casts, t->want);
        add(t, a->summary, from + i, n - i < step ? n - i : step);
        (void)mpsim_summary_read(a->summary, &a->stats, &a->histogram, a->casts);
    }
}

/* So many formats times so many scales, 2^0 upwards. */
static void set_casts(task *t, size_t formats, size_t scales, mpsim_round_mode mode)
{
    t->n_casts = 0;
    for (size_t f = 0; f < formats; f++)
        for (size_t k = 0; k < scales; k++) {
            mpsim_cast *c = &t->casts[t->n_casts++];
            c->format = mpsim_format_find(names[f]);
            mpsim_rounding_init(&c->rounding, mode);
            c->rounding.scale = (double)((uint64_t)1 << k);
        }
}

/* ---- rows ---- */

typedef struct row {
    const char *how;
    const char *source;
    size_t formats, scales;
    mpsim_round_mode mode;
    unsigned want;
    unsigned threads; /* 2: compared with one */
    size_t tensor;
} row;

#define NEAREST MPSIM_ROUND_NEAREST_EVEN

static const row rows[] = {
    {"counts 1 format", "binary32", 1, 1, NEAREST, COUNTS, 1, 0},
    {"counts 4 formats", "binary32", 4, 1, NEAREST, COUNTS, 1, 0},
    {"histogram 4 formats", "binary32", 4, 1, NEAREST, HISTOGRAM, 1, 0},
    {"everything 1 format", "binary32", 1, 1, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "binary32", 4, 1, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "binary64", 4, 1, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "fp16", 4, 1, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "bf16", 4, 1, NEAREST, EVERYTHING, 1, 0},
    {"histogram toward-zero", "binary32", 4, 1, MPSIM_ROUND_TOWARD_ZERO, HISTOGRAM, 1, 0},
    {"everything toward-zero", "binary32", 4, 1, MPSIM_ROUND_TOWARD_ZERO, EVERYTHING, 1, 0},
    {"histogram stochastic-c", "binary32", 1, 1, MPSIM_ROUND_STOCHASTIC_C, HISTOGRAM, 1, 0},
    {"everything stochastic-c", "binary32", 1, 1, MPSIM_ROUND_STOCHASTIC_C, EVERYTHING, 1, 0},
    {"tensors of 1024 elements", "binary32", 4, 1, NEAREST, EVERYTHING, 1, 1024},
    {"tensors of 64 elements", "binary32", 4, 1, NEAREST, EVERYTHING, 1, 64},
    {"counts 1 format", "binary32", 1, SCALES, NEAREST, HISTOGRAM, 1, 0},
    {"everything 1 format", "binary32", 1, SCALES, NEAREST, EVERYTHING, 1, 0},
    {"counts 4 formats", "binary32", 4, SCALES, NEAREST, HISTOGRAM, 1, 0},
    {"everything 4 formats", "binary32", 4, SCALES, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "bf16", 4, SCALES, NEAREST, EVERYTHING, 1, 0},
    {"histogram 4 formats", "binary32", 4, 1, NEAREST, HISTOGRAM, 2, 0},
    {"everything 4 formats", "binary32", 4, 1, NEAREST, EVERYTHING, 2, 0},
    {"everything 4 formats", "bf16", 4, 1, NEAREST, EVERYTHING, 2, 0},
};

/* On the other instruction sets. */
static const row few[] = {
    {"histogram 4 formats", "binary32", 4, 1, NEAREST, HISTOGRAM, 1, 0},
    {"everything 4 formats", "binary32", 4, 1, NEAREST, EVERYTHING, 1, 0},
    {"everything 4 formats", "bf16", 4, 1, NEAREST, EVERYTHING, 1, 0},
};

#define COUNT(table) (sizeof table / sizeof *table)

/* The inputs of a run. */
typedef struct inputs {
    bench *b;
    accumulators *a;
    double *x64;
    void *codes[2]; /* fp16, bf16 */
    bench_job sum;
} inputs;

static const void *input_of(const inputs *in, const char *source)
{
    return strcmp(source, "binary32") == 0   ? (const void *)in->b->x
           : strcmp(source, "binary64") == 0 ? in->x64
                                             : in->codes[strcmp(source, "bf16") == 0];
}

static void run_row(const inputs *in, const row *r)
{
    task t = {.b = in->b,
              .a = in->a,
              .source = mpsim_format_find(r->source),
              .x = input_of(in, r->source),
              .tensor = r->tensor,
              .want = r->want};
    task one_scale = t;
    const size_t bytes = mpsim_format_code_bytes(t.source);
    set_casts(&t, r->formats, r->scales, r->mode);
    set_casts(&one_scale, r->formats, 1, r->mode);
    bench_job j = {.operation = r->scales > 1 ? "sweep" : "summary",
                   .what = r->source,
                   .how = r->how,
                   .n = in->b->n * sizeof *in->b->x / (bytes < 4 ? 4 : bytes),
                   .bytes = (double)bytes,
                   .run = run_summary,
                   .context = &t,
                   .to = &in->sum};
    bench_job other = j;
    other.name = r->threads > 1 ? "1 thread" : "one scale";
    other.context = &one_scale;
    j.threads = r->threads;
    if (r->threads > 1 || r->scales > 1)
        j.to = &other;
    bench_run(in->b, &j);
}

static void run_rows(const inputs *in)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        run_row(in, &rows[i]);
    const char *const best = mpsim_isa_active();
    for (size_t k = 0; mpsim_isa_at(k); k++)
        for (size_t i = 0; strcmp(mpsim_isa_at(k), best) != 0 && i < COUNT(few); i++)
            if (mpsim_isa_use(mpsim_isa_at(k)) == MPSIM_OK)
                run_row(in, &few[i]);
    (void)mpsim_isa_use(best);
}

/* As many elements of each source as make the bytes of the binary32 array, but no more. */
static int make_inputs(inputs *in)
{
    static const char *const sources[] = {"fp16", "bf16"};
    const size_t n = in->b->n;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    in->a = calloc(THREADS, sizeof *in->a);
    in->x64 = malloc(n / 2 * sizeof *in->x64);
    if (!in->a || !in->x64)
        return 1;
    for (size_t i = 0; i < n / 2; i++)
        in->x64[i] = (double)in->b->x[i];
    for (size_t k = 0; k < 2; k++) {
        in->codes[k] = (char *)in->b->y + k * n * 2;
        in->a[k].summary = mpsim_summary_new();
        if (!in->a[k].summary || mpsim_encode_array_f32(mpsim_format_find(sources[k]), &r, NULL, in->codes[k], in->b->x,
                                                        n, NULL) != MPSIM_OK)
            return 1;
    }
    in->sum = bench_sum(in->b);
    return 0;
}

int main(int argc, char **argv)
{
    bench b;
    inputs in = {.b = &b};
    const int code = bench_begin(&b, argc, argv, "stats");
    if (code)
        return code;
    if (bench_data(&b) || make_inputs(&in))
        return 1;
    bench_part(&b, "Statistics; ratios of bytes a second");
    bench_run(&b, &in.sum);
    run_rows(&in);
    for (size_t k = 0; k < THREADS; k++)
        mpsim_summary_free(in.a[k].summary);
    free(in.a);
    free(in.x64);
    return bench_end(&b);
}
