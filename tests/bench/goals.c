/* goals.c -- see goals.h. The goals are for one core of an AVX-512 machine, arrays of 2^26 elements. */
#include "goals.h"

#include <mpsim/isa.h>

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define CASTS "round encode"
#define NARROW "fp16 bf16 e5m2 e4m3 e4m3* e3m2 e2m3 e2m1 e8m0" /* at most 16 bits */
#define OTHERS "*nearest-away* *toward-zero* *up* *down* *to-odd*"
#define DETERMINISTIC "nearest-even nearest-away toward-zero up down to-odd"
#define SMALL "2048x16x9* 16x9x2048* 2048x9x16*"
#define TENSOR_CORES "volta-* turing-* ampere-* ada-* hopper-* blackwell-* rtx-*"

const bench_goal bench_goals[] = {
    /* operation, what, how, isa, threads, kind, least, words */
    {"*", "*", "*", NULL, 2, GOAL_RATIO, 1.8, "two threads 1.8 times one"},
    {CASTS, NARROW, "*stochastic*binary64*", NULL, 1, GOAL_RATIO, 0.15, "from binary64 half of that"},
    {CASTS, NARROW, "*x?3*binary64*", NULL, 1, GOAL_RATIO, 0.25, "from binary64 half of that"},
    {CASTS, NARROW, "nearest-even*binary64*", NULL, 1, GOAL_RATIO, 0.45, "from binary64 half of that"},
    {CASTS, NARROW, "*binary64*", NULL, 1, GOAL_RATIO, 0.35, "from binary64 half of that"},
    /* bound by the two ports of vectors: Philox 2.1 operations an element, rounding and storing 1.5 */
    {"encode", NARROW, "*stochastic*", NULL, 1, GOAL_RATIO, 0.38, "to codes 0.38"},
    {CASTS, NARROW, "*stochastic*", NULL, 1, GOAL_RATIO, 0.3, "stochastic with Philox4x32-10 0.3"},
    {CASTS, NARROW, "*x?3*", NULL, 1, GOAL_RATIO, 0.5, "scales that are not powers of two 0.5"},
    {CASTS, NARROW, "nearest-even*", NULL, 1, GOAL_RATIO, 0.9,
     "to-nearest-even to every format of at most 16 bits 0.9"},
    {CASTS, NARROW, OTHERS, NULL, 1, GOAL_RATIO, 0.7, "other deterministic modes 0.7"},
    /* these read twice: the scale of the tensor comes first. 0.4 is the bound where two reads and the codes take 1.56 times as
       long as memcpy, see lib/block/kernel/kernel.h */
    {"quantize", "nvfp4", "codes", NULL, 1, GOAL_RATIO, 0.4, "NVFP4 codes 0.4"},
    {"quantize", "nvfp4-2d", "codes", NULL, 1, GOAL_RATIO, 0.5, "NVFP4 codes of squares 0.5"},
    /* bound by Philox, 2.1 operations an element, and rounding, 2.2: 0.23 with two ports of vectors at 2.95 GHz */
    {"quantize", "nvfp4-sr", "codes", NULL, 1, GOAL_RATIO, 0.4, "NVFP4 codes by random bits 0.4"},
    {"quantize", "*", "*", NULL, 1, GOAL_RATIO, 0.3, "block recipes: 0.3 of memcpy for values"},
    /* 0.2 of the plain sum over a mapped file, see below */
    {"blocks", "*", "statistics", NULL, 1, GOAL_SPEED, 300e6,
     "300 million a second and core for a block recipe with all its statistics"},
    {"add sub mul fma", "fp16 bf16 e4m3 e5m2", DETERMINISTIC, NULL, 1, GOAL_SPEED, 300e6,
     "300 million a second and core for add, sub, mul and fma in fp16, bf16 and fp8"},
    {"sweep", "*", "*", NULL, 1, GOAL_RATIO, 1 / 1.5, "a sweep over 25 scales costs at most 1.5 times one scale"},
    /* to a plain sum over the mapped file; the same functions over memory have no goal of their own */
    {"stat", "binary32", "counts*4*", NULL, 1, GOAL_RATIO, 0.5, "counts and exponent histogram for four formats 0.5"},
    {"stat", "binary32", "all*4*", NULL, 1, GOAL_RATIO, 0.2,
     "with mean, l2, amax, amin, SQNR, MSE and largest relative error for four formats 0.2"},
    {"stat", "binary32", "blocks*", NULL, 1, GOAL_RATIO, 0.2,
     "quantising and its statistics 0.2 of reading for one recipe"},
    {"stat", "binary32", "25?scales*", NULL, 1, GOAL_RATIO, 1 / 1.5,
     "a sweep over 25 scales costs at most 1.5 times one scale"},
    {"stat", "fp16 bf16", "all*", NULL, 1, GOAL_RATIO, 0.3,
     "bf16 and fp16 dumps 0.3 of their own bytes' speed with everything"},
    {"cast", "e4m3 bf16", "*", NULL, 1, GOAL_RATIO, 0.5, "at least half the speed of cp of the same bytes"},
    {"gemm", "*tf32*", "tf32", "avx512", 1, GOAL_SPEED, 1.5e9, "tf32 and exact sums 1.5"},
    {"gemm", "exact", "*", "avx512", 1, GOAL_SPEED, 1.5e9, "tf32 and exact sums 1.5"},
    {"gemm", "chunked* pairwise*", "*", "avx512", 1, GOAL_SPEED, 1e9, "chunked and pairwise sums in any format 1 G"},
    {"gemm", TENSOR_CORES, "*", "avx512", 1, GOAL_SPEED, 3e9, "3 G for fp16, bf16 and fp8 rows with AVX-512"},
    {"gemm", "cdna*", "*", "avx512", 1, GOAL_SPEED, 3e9, "the same of AMD's"},
    {"gemm", "cdna*", "*", "avx2", 1, GOAL_SPEED, 1.5e9, "and 1.5 with AVX2"},
    {"gemm", TENSOR_CORES, "*", "avx2", 1, GOAL_SPEED, 1.5e9, "and 1.5 with AVX2"},
    /* of the multiply-adds, or products and sums, that the machine can do at most */
    {"chain", "fma avx512-*", "*", NULL, 1, GOAL_RATIO, 0.78, "chains in binary32 0.78 of the machine's multiply-adds"},
    {"chain", "sequential", "binary32", NULL, 1, GOAL_RATIO, 0.66, "0.66 of its products and sums"},
    {"chain", "amx-*", "*", NULL, 1, GOAL_RATIO, 0.47, "two lanes in chunks of 32 0.47"},
    {"chain", "exact", "e4m3", NULL, 1, GOAL_RATIO, 0.56, "exact sums 0.56 of those in binary64"},
    {"chain", "exact", "*", NULL, 1, GOAL_RATIO, 0.7, "in two of them 0.7 of half of those"},
    {"chain", "cdna3-bf16-* cdna3-fp8-*", "*", "avx512", 1, GOAL_RATIO, 0.17, "8 products in two stages 0.17"},
    {"chain", "*-fp64", "*", NULL, 1, GOAL_RATIO, 0.87, "chains in binary64 0.87"},
    /* where one unit does all operations (Intel); 35, 16, 12 and 10 G of 57 and 29 where sums have units of their own */
    {"chain", "hopper-wgmma-*", "*", "avx512", 1, GOAL_RATIO, 0.33, "fp8 0.33 of those in binary32"},
    {"chain", "hopper-*", "*", "avx512", 1, GOAL_RATIO, 0.28, "16 products an addition 0.28 of those in binary64"},
    {"chain", "ampere-*", "*", "avx512", 1, GOAL_RATIO, 0.2, "8 products 0.2"},
    {"chain", "volta-*", "*", "avx512", 1, GOAL_RATIO, 0.13, "4 products 0.13"},
    {"chain", "chunked sequential:* arm-*", "*", "avx512", 1, GOAL_RATIO, 0.04,
     "a rounding for each product and sum 0.04"},
    /* of the large product of the same model: what a line costs before its first product bounds them, see lib/dot/gemm.c */
    {"shape", "hopper-fp16-* hopper-bf16-*", SMALL, "avx512", 1, GOAL_RATIO, 0.2,
     "small products 0.2 in fp16 and bf16"},
    {"shape", "hopper-*", SMALL, "avx512", 1, GOAL_RATIO, 0.09, "0.09 in fp8"},
    {"shape", "sequential", SMALL, "avx512", 1, GOAL_RATIO, 0.14, "0.14 of products and sums"},
    {"shape", "fma", SMALL, "avx512", 1, GOAL_RATIO, 0.08, "0.08 of multiply-adds"},
    {"shape", "exact", SMALL, "avx512", 1, GOAL_RATIO, 0.06, "0.06 of exact sums"},
    {"shape", "hopper-* fma sequential", "*", "avx512", 1, GOAL_RATIO, 0.35, "layers of a network 0.35"},
    /* of ordinary operands; lib/dot/special.h */
    {"special", "*", "1?NaN 1?infinity", NULL, 1, GOAL_RATIO, 1 / 1.5,
     "products with one infinity or NaN 1.5 times as long as without"},
    {"special", "*", "*", NULL, 1, GOAL_RATIO, 1 / 3.0, "with any number of them 3 times"},
    {"attention", "*", "*", NULL, 1, GOAL_RATIO, 0.4, "attention in tiles 0.4 of its two products"},
    {"activate elements dropout", "binary32 bf16 fp16", "*", "avx512", 1, GOAL_RATIO, 0.07,
     "activations and elements 0.07 of memcpy, 200 million a second where it copies 2.8 G"},
    {"rownorm batchnorm causal softmax sums", "binary32 bf16 fp16", "*", "avx512", 1, GOAL_RATIO, 0.055,
     "norms, softmax and sums 0.055, 150 million there"},
    /* bound by 360 operations on vectors for 16 numbers, 67 of them Philox's */
    {"normal", "*", "*", "avx512", 1, GOAL_RATIO, 0.05, "normal numbers 0.05"},
    {"train", "*", "*step", NULL, 1, GOAL_SPEED, 2e9, "training emulation at 2 G in whole steps"},
    {"norm unscale", "*", "*", NULL, 1, GOAL_RATIO, 0.8, "0.8 for unscale and norm"},
    /* bound by conversions to binary64 and divisions there */
    {"adam adamw", "torch-fused-b", "binary32*", NULL, 1, GOAL_RATIO, 0.28, "0.28 for AdamW in binary64"},
    {"sgd adamw lion", "*", "bf16* fp16*", NULL, 1, GOAL_SPEED, 600e6,
     "steps in bf16 and fp16, with stochastic rounding and Kahan summation, too: 600 million a second"},
    {"sgd adam adamw lion", "*", "binary32*", NULL, 1, GOAL_RATIO, 0.4,
     "0.4 for SGD, Adam, AdamW and Lion with masters in every variant"},
    {NULL, NULL, NULL, NULL, 0, GOAL_RATIO, 0, NULL},
};

static int fits(const char *patterns, const char *word)
{
    while (*patterns) {
        char pattern[64];
        const size_t n = strcspn(patterns, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, patterns);
        if (fnmatch(pattern, word, 0) == 0)
            return 1;
        patterns += n;
        patterns += strspn(patterns, " ");
    }
    return 0;
}

/* The first instruction set of the library that the machine has. */
static const char *best_isa(void)
{
    static const char *best;
    const char *const active = mpsim_isa_active();
    for (size_t i = 0; !best && mpsim_isa_at(i); i++)
        if (mpsim_isa_use(mpsim_isa_at(i)) == MPSIM_OK)
            best = mpsim_isa_at(i);
    (void)mpsim_isa_use(active);
    return best;
}

const bench_goal *bench_goal_of(const char *operation, const char *what, const char *how, const char *isa,
                                unsigned threads)
{
    for (const bench_goal *g = bench_goals; g->operation; g++)
        if (g->threads == threads && fits(g->operation, operation) && fits(g->what, what) && fits(g->how, how) &&
            fits(g->isa ? g->isa : best_isa(), isa))
            return g;
    return NULL;
}
