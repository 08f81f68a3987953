/* blocks.c -- speed of block recipes: values, amax and scales included, and codes; statistics of blocks,
 * compared with a plain sum. */
#include "frame.h"

#include <mpsim/mpsim.h>

#include <string.h>

enum { COLS = 4096 };

static const char *const recipes[] = {
    "te-current", "te-block-1x128", "te-block-128x128", "mxfp8",    "mxfp8-rceil",    "mxfp6-e3m2",
    "mxfp4",      "nvfp4",          "nvfp4-2d",         "nvfp4-sr", "torchao-rowwise"};

static const char *const counted[] = {"mxfp8",    "mxfp8:rceil", "mxfp4",        "nvfp4",
                                      "nvfp4:2d", "e4m3/1x128",  "e4m3/128x128", "e4m3/1x128:ue8m0"};

typedef struct work {
    bench *b;
    const mpsim_block_recipe *recipe;
    int codes;
} work;

static void run_quantize(void *context, size_t from, size_t n)
{
    const work *w = context;
    const mpsim_rng g = {1, 2, from};
    const mpsim_blocks out = {.values = w->codes ? NULL : w->b->y + from,
                              .codes = w->codes ? (uint8_t *)w->b->y + from : NULL};
    (void)mpsim_block_quantize(w->recipe, w->b->x + from, n / COLS, COLS, -1, 1, &g, &out, NULL);
}

static void run_stats(void *context, size_t from, size_t n)
{
    static mpsim_block_stats stats;
    const work *w = context;
    const mpsim_rng g = {1, 2, from};
    const mpsim_blocks out = {.stats = &stats};
    (void)mpsim_block_quantize(w->recipe, w->b->x + from, n / COLS, COLS, 0x1p21f, 1, &g, &out, NULL);
}

static void run_counted(work *w)
{
    const bench_job sum = bench_sum(w->b);
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        mpsim_block_recipe b;
        unsigned transform;
        const bench_job j = {.operation = "blocks",
                             .what = counted[i],
                             .how = "statistics",
                             .n = w->b->n,
                             .bytes = 4,
                             .run = run_stats,
                             .context = w,
                             .to = &sum};
        w->recipe = &b;
        if (mpsim_block_parse(&b, &transform, counted[i], NULL, 0) == MPSIM_OK)
            bench_run(w->b, &j);
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
            const bench_job j = {.operation = "quantize",
                                 .what = recipes[i],
                                 .how = w.codes ? "codes" : "values",
                                 .n = b.n,
                                 .bytes = w.codes ? 5 : 8,
                                 .run = run_quantize,
                                 .context = &w,
                                 .to = &copy};
            if (w.recipe && (!w.codes || i % 3 == 0 || strncmp(recipes[i], "nvfp4", 5) == 0))
                bench_run(&b, &j);
        }
    }
    run_counted(&w);
    return bench_end(&b);
}
