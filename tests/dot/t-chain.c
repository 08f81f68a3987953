/* t-chain.c -- matrix products under software models: the fast paths of chains, trees and exact
 * sums give what mpsim_dot, the scalar reference, gives, with every instruction set: all models and formats, all pairs, every shape. */
#include "chain.h"

#include <math.h>
#include <stdio.h>

/* ---- random problems ---------------------------------------------------------------------- */

static const char *const models[] = {
    "fma", "sequential", "pairwise", "exact", "fma:chunk=16", "sequential:chunk=7", "pairwise:chunk=9", "exact:fp16",
    "exact:bf16", "exact:e4m3", "exact:binary64", "exact:e8m0", "exact:chunk=5", "exact:result-round=down",
    "exact:result-round=up", "exact:result-round=toward-zero", "exact:e8m23:finite",
    /* every place in lanes: one kind of numbers, several */
    "chunked", "chunked:chunk=5", "sequential:fp16", "sequential:bf16", "sequential:e4m3", "sequential:e5m2",
    "sequential:e4m3fnuz", "sequential:tf32", "sequential:e3m2", "pairwise:fp16", "pairwise:bf16", "pairwise:e4m3",
    "pairwise:tf32:chunk=7", "fma:fp16", "fma:bf16", "fma:e4m3", "fma:tf32:chunk=4", "fma:e5m24", "sequential:e8m24",
    "sequential:product=bf16", "sequential:acc=bf16", "pairwise:acc=fp16", "fma:acc=fp16",
    "sequential:fp16:chunk=6:outer=binary32", "pairwise:bf16:chunk=6:outer=e6m9", "fma:bf16:chunk=9:outer=fp16",
    "sequential:fp16:result=binary32", "sequential:e5m40",
    /* which no fast path may take */
    "fma:round=down", "fma:round=toward-zero", "sequential:product=bf16", "sequential:product-round=up",
    "pairwise:round=nearest-away", "fma:chunk=4:outer-round=down", "fma:result=fp16", "fma:e8m23:fn",
    "sequential:binary64"};

START_TEST(every_model_and_format)
{
    uint64_t seed = test_seed() + 31;
    for (size_t i = 0; i < test_scaled(COUNT(models) * CHAIN_FORMATS * CHAIN_KINDS / 2); i++) {
        const uint64_t u = test_random(&seed);
        const mpsim_format fa = chain_format(chain_formats[i / 2 % CHAIN_FORMATS]);
        const mpsim_format fb = u & 1 ? fa : chain_format(chain_formats[(u >> 8) % CHAIN_FORMATS]);
        const char *model = models[(u >> 16) % COUNT(models)];
        chain_new(model, &fa, &fb, 1 + (u >> 32) % 11, 1 + (u >> 40) % 20, (u >> 48) % 50, &seed);
        chain_fill((int)((u >> 24) % CHAIN_KINDS), &seed);
        chain_check();
    }
}

/* The models that training uses, in every kind of numbers. */
START_TEST(every_kind)
{
    static const char *const main_models[] = {"fma", "sequential", "pairwise", "exact"};
    uint64_t seed = test_seed() + 32;
    for (size_t i = 0; i < COUNT(main_models); i++)
        for (size_t k = 0; k < 11; k++)
            for (int kind = 0; kind < CHAIN_KINDS; kind++) {
                const mpsim_format f = chain_format(chain_formats[k]);
                chain_new(main_models[i], &f, &f, 1 + test_random(&seed) % 10, 1 + test_random(&seed) % 18,
                          1 + test_random(&seed) % 70, &seed);
                chain_fill(kind, &seed);
                chain_check();
            }
}

/* Products of numbers with the exponents of binary32 that are subnormal there: 16384 pairs of significands each. */
START_TEST(products_below_binary32)
{
    enum { SIGNIFICANDS = 128, BIAS = 127 };
    static const char *const of[] = {"bf16", "tf32"};
    uint64_t seed = test_seed() + 40;
    for (size_t t = 0; t < COUNT(of); t++)
        for (uint64_t e = 58; e <= 68; e += 2) {
            const mpsim_format f = chain_format(of[t]);
            char model[64];
            snprintf(model, sizeof model, "sequential:%s", of[t]);
            chain_new(model, &f, &f, SIGNIFICANDS, SIGNIFICANDS, 1, &seed);
            chain.no_c = 1;
            for (uint64_t i = 0; i < SIGNIFICANDS; i++) {
                chain.a.codes[i] = (uint64_t)(BIAS - 70) << f.mbits | i << (f.mbits - 7);
                chain.b.codes[i] = (uint64_t)(BIAS - e) << f.mbits | i << (f.mbits - 7) | t;
            }
            chain_check();
        }
}

/* All products of two numbers and all sums of two in small formats, and, with products of fused
 * multiply-adds, sums of three. */
START_TEST(all_pairs)
{
    static const char *const small[] = {"e4m3", "e5m2", "e4m3fnuz", "e3m2", "e2m1"};
    static const char *const kinds[] = {"sequential", "fma"};
    uint64_t seed = test_seed() + 39;
    for (size_t i = 0; i < COUNT(small) * COUNT(kinds); i++) {
        const mpsim_format f = chain_format(small[i % COUNT(small)]);
        const size_t n = (size_t)1 << f.bits;
        char model[64];
        snprintf(model, sizeof model, "%s:%s", kinds[i / COUNT(small)], f.name);
        for (int sums = 0; sums < 2; sums++) {
            chain_new(model, &f, &f, n, n, 1, &seed);
            chain.no_c = !(sums || i / COUNT(small) == 1);
            for (size_t j = 0; j < n; j++) {
                chain.a.codes[j] = j;
                chain.b.codes[j] = sums ? chain_code(&f, 1) : j;
            }
            for (size_t j = 0; !chain.no_c && j < n * n; j++)
                chain.c.codes[j] = sums ? j % n : test_random(&seed) % n;
            chain_check();
        }
    }
}

/* Random sums of numbers that are far apart, ties among them, in every format that has lanes. */
START_TEST(near_ties_of_formats)
{
    static const char *const to[] = {"fp16", "bf16", "e6m9", "tf32", "e5m10:bias=20", "e8m14", "e8m24", "e8m23:fn"};
    static const char *const kinds[] = {"fma", "sequential", "pairwise"};
    uint64_t seed = test_seed() + 40;
    for (size_t i = 0; i < COUNT(to) * COUNT(kinds) * test_scaled(4); i++) {
        char model[64];
        mpsim_format r;
        snprintf(model, sizeof model, "%s:%s", kinds[i % COUNT(kinds)], to[i / COUNT(kinds) % COUNT(to)]);
        const mpsim_format f = chain_format(i % 5 ? "binary32" : "bf16");
        chain_new(model, &f, &f, 9, 17, 1 + i % 3, &seed);
        chain.no_c = 0;
        r = chain_model.result.format;
        const int far = (int)(test_random(&seed) % 40);
        /* c: a number, the products near half a unit of its last bit, or far below */
        for (size_t k = 0; k < chain.rows * chain.depth; k++)
            chain.a.codes[k] = chain_code(&f, ldexp(1, (int)(test_random(&seed) % 3) - 1) +
                                                  ldexp(chain_uniform(&seed), -(int)(test_random(&seed) % 26)));
        for (size_t k = 0; k < chain.depth * chain.columns; k++)
            chain.b.codes[k] = chain_code(
                &f, ldexp(test_random(&seed) & 1 ? 1 : -1, -(int)r.mbits - 1 - (test_random(&seed) & 1 ? far : 0)));
        for (size_t j = 0; j < chain.rows * chain.columns; j++)
            chain.c.codes[j] = chain_code(&r, chain_uniform(&seed) + (double)(i & 1));
        chain_check();
    }
}

/* Every number of columns around a panel, of rows around what is done at once, and of products. */
START_TEST(tails)
{
    static const char *const some[] = {"fma",         "sequential",      "pairwise", "exact",
                                       "fma:chunk=3", "chunked:chunk=3", "fma:bf16", "pairwise:fp16"};
    const mpsim_format f = chain_format("binary32"), h = chain_format("fp16");
    uint64_t seed = test_seed() + 33;
    for (size_t columns = 1; columns <= 18; columns++)
        for (size_t rows = 1; rows <= 10; rows += 1 + columns % 2) {
            if (!test_in_part(rows + columns, 1))
                continue;
            chain_new(some[(rows + columns) % COUNT(some)], rows % 2 ? &f : &h, columns % 3 ? &f : &h, rows, columns,
                      (rows * columns) % 19, &seed);
            chain_fill(CHAIN_NORMAL, &seed);
            chain_check();
        }
    for (size_t i = 0; i < COUNT(some); i++) {
        for (size_t depth = 0; depth <= 40; depth++) {
            if (depth > 9 && !test_in_part(depth + i, 1))
                continue;
            chain_new(some[i], &f, &f, 3, 5, depth, &seed);
            chain_fill(CHAIN_COARSE, &seed);
            chain_check();
        }
        if (!test_in_part(i, 1))
            continue;
        chain_new(some[i], &f, &h, 71, 37, 300, &seed); /* more than a task in every direction */
        chain_fill(CHAIN_NORMAL, &seed);
        chain_check();
    }
}

/* Panels beside each other and those that are left over, rows that are done at once and those that are not, chunks with a
 * rest, in every kind of numbers; instructions, too. */
START_TEST(panels)
{
    static const char *const all[][2] = {{"fma", "binary32"},
                                         {"sequential", "binary32"},
                                         {"sequential", "fp16"},
                                         {"sequential", "bf16"},
                                         {"pairwise", "binary32"},
                                         {"fma:chunk=7", "bf16"},
                                         {"sequential:chunk=32", "binary32"},
                                         {"pairwise:chunk=9", "fp16"},
                                         {"avx512-bf16-fp32", "bf16"},
                                         {"amx-bf16-fp32", "bf16"},
                                         {"amx-fp16-fp32", "fp16"},
                                         {"cdna3-fp64", "binary64"}};
    static const size_t rows[] = {1, 4, 8, 9, 19}, columns[] = {16, 17, 32, 47, 49}, depths[] = {1, 2, 31, 33, 66};
    uint64_t seed = test_seed() + 41;
    for (size_t i = 0; i < COUNT(all) * CHAIN_KINDS; i++) {
        const mpsim_format f = chain_format(all[i / CHAIN_KINDS][1]);
        const uint64_t u = test_random(&seed);
        chain_new(all[i / CHAIN_KINDS][0], &f, &f, rows[u % COUNT(rows)], columns[(u >> 8) % COUNT(columns)],
                  depths[(u >> 16) % COUNT(depths)], &seed);
        chain_fill((int)(i % CHAIN_KINDS), &seed);
        chain_check();
    }
}

int main(void)
{
    TCase *t = test_case("chain", 120);
    tcase_add_checked_fixture(t, NULL, chain_end);
    tcase_add_test(t, every_model_and_format);
    tcase_add_test(t, every_kind);
    tcase_add_test(t, all_pairs);
    tcase_add_test(t, products_below_binary32);
    tcase_add_test(t, near_ties_of_formats);
    tcase_add_test(t, tails);
    tcase_add_test(t, panels);
    return test_main("chain", (TCase *const[]){t, NULL});
}
