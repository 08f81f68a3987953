/* blocks.c -- speed of block recipes: values, amax and scales included, and codes; what they do to a
 * tensor, in one pass, compared with reading it. */
#include "frame.h"

#include <mpsim/mpsim.h>

enum { COLS = 4096 };

static const char *const recipes[] = {"te-current", "te-block-1x128", "te-block-128x128", "mxfp8",
                                      "mxfp8-rceil", "mxfp6-e3m2", "mxfp4", "nvfp4", "nvfp4-2d",
                                      "nvfp4-sr", "torchao-rowwise"};

/* Whose statistics are measured. */
static const char *const measured[] = {"mxfp8", "mxfp8-floor", "mxfp4", "nvfp4", "te-block-1x128",
                                       "te-block-128x128"};

typedef struct work {
    bench *b;
    const mpsim_block_recipe *recipe;
    int codes;
    mpsim_block_stats stats;
} work;

static void run_quantize(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = {1, 2, from};
    const mpsim_blocks out = {.values = w->codes ? NULL : w->b->y + from,
                              .codes = w->codes ? (uint8_t *)w->b->y + from : NULL};
    (void)mpsim_block_quantize(w->recipe, w->b->x + from, n / COLS, COLS, -1, 1, &g, &out, NULL);
}

static void run_statistics(void *context, size_t from, size_t n)
{
    work *w = context;
    const mpsim_blocks out = {.stats = &w->stats};
    (void)mpsim_block_quantize(w->recipe, w->b->x + from, n / COLS, COLS, -1, 1, NULL, &out, NULL);
}

static void statistics_rows(bench *b)
{
    const bench_job sum = bench_sum(b);
    work w = {.b = b};
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const bench_job j = {.operation = "quantize", .what = measured[i], .how = "statistics",
                             .n = b->n, .bytes = 4, .run = run_statistics, .context = &w, .to = &sum};
        w.recipe = mpsim_block_find(measured[i]);
        mpsim_block_stats_init(&w.stats);
        if (w.recipe)
            bench_run(b, &j);
    }
}

int main(int argc, char **argv)
{
    bench b;
    work w = {.b = &b};
    const int code = bench_begin(&b, argc, argv, "blocks");
    if (code)
        return code;
    if (bench_data(&b))
        return 1;
    const bench_job copy = bench_copy(&b);
    bench_part(&b, "Block recipes, rows of 4096 binary32 values; ratios of bytes a second");
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        w.recipe = mpsim_block_find(recipes[i]);
        for (w.codes = 0; w.codes < 2; w.codes++) {
            const bench_job j = {.operation = "quantize", .what = recipes[i],
                                 .how = w.codes ? "codes" : "values", .n = b.n,
                                 .bytes = w.codes ? 5 : 8, .run = run_quantize, .context = &w,
                                 .to = &copy};
            if (w.recipe && (!w.codes || i % 3 == 0))
                bench_run(&b, &j);
        }
    }
    statistics_rows(&b);
    return bench_end(&b);
}
