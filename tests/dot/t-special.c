/* t-special.c -- matrix products whose operands and addends have infinities and NaNs, from a single one to nothing else, beside
 * zeros and numbers that overflow: every element is what mpsim_dot gives, in every model. */
#include "support/dotcases.h"
#include "support/products.h"
#include "support/support.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

CASE("special", 40);

/* What is put among ordinary numbers, as bits. */
enum { NANS = 1, INFINITIES = 2, ONE_SIGN = 4, ZEROS = 8, LARGE = 16, EDGE = 32, ROUNDED = 64 };

static uint64_t with_sign(const mpsim_format *f, uint64_t magnitude, int sign)
{
    return magnitude | (sign && mpsim_format_is_signed(f) ? (uint64_t)1 << (f->bits - 1) : 0);
}

/* A code of that kind, or the largest number where the format has none. */
static uint64_t special_code(const mpsim_format *f, unsigned kinds, uint64_t u)
{
    const uint64_t mask = ((uint64_t)1 << (f->ebits + f->mbits)) - 1, infinity = f->max_finite + 1;
    const int sign = (u & 1) && !(kinds & ONE_SIGN),
              is_infinite = kinds & INFINITIES && (!(kinds & NANS) || u >> 1 & 1);
    if (is_infinite)
        return with_sign(f, f->inf ? infinity : f->max_finite, sign);
    if (f->nan == MPSIM_NAN_NEGZERO)
        return f->nan_code;
    const uint64_t first = infinity + f->inf;
    return with_sign(f, first <= mask ? first + (u >> 8) % (mask - first + 1) : f->max_finite, u >> 1 & 1);
}

/* Every `apart`-th element, by chance; 0: one element. */
static void strew(product_matrix *x, unsigned kinds, size_t apart, uint64_t *seed)
{
    const size_t n = x->rows * x->columns;
    for (size_t k = 0; n && k < n; k++) {
        const uint64_t u = test_random(seed);
        const int negative = mpsim_format_is_signed(&x->f) && !(kinds & ONE_SIGN) && u >> 40 & 1;
        if (kinds & ZEROS && u % 5 == 0)
            x->codes[k] = x->f.nan == MPSIM_NAN_NEGZERO ? 0 : with_sign(&x->f, 0, negative);
        if (kinds & LARGE && (u >> 8) % 3)
            x->codes[k] = with_sign(&x->f, x->f.max_finite - (u >> 16) % (x->f.max_finite / 8 + 1), negative);
        if (kinds & EDGE && (u >> 4) % (apart + 1) == 0) /* products about the largest number of binary32 */
            x->codes[k] = with_sign(&x->f, (((uint64_t)x->f.bias + 61 + (u >> 16) % 4) << x->f.mbits) | (u >> 32) % 128,
                                    negative);
        if (kinds & ROUNDED) /* with those, about what is rounded to in its last place */
            x->codes[k] = with_sign(&x->f, (((uint64_t)x->f.bias + 39 + (u >> 16) % 4) << x->f.mbits) | (u >> 32) % 128,
                                    negative);
        if (kinds & (NANS | INFINITIES) && apart && (u >> 20) % apart == 0)
            x->codes[k] = special_code(&x->f, kinds, test_random(seed));
    }
    if (n && !apart && kinds & (NANS | INFINITIES))
        x->codes[test_random(seed) % n] = special_code(&x->f, kinds, test_random(seed));
}

static void check(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, uint64_t *seed)
{
    static const size_t apart[] = {0, 1, 2, 8, 40, 200};
    const uint64_t u = test_random(seed), v = test_random(seed);
    const size_t rows = 1 + u % 19, columns = 1 + (u >> 8) % 36, depth = 1 + (u >> 16) % (u >> 62 ? 40 : 150);
    product p = product_new(m, fa, fb, rows, columns, depth, seed);
    product_fill(&p, KIND_NORMAL, 0, seed);
    if (u >> 24 & 1 && m->result.format.zero != MPSIM_ZERO_NONE) {
        p.no_c = 1;
        memset(p.c.codes, 0, rows * columns * sizeof *p.c.codes);
    }
    if (u >> 25 & 1)
        strew(&p.a, (unsigned)(v % 32), apart[(u >> 32) % COUNT(apart)], seed);
    if (u >> 26 & 1 || !(u >> 25 & 1))
        strew(&p.b, (unsigned)((v >> 5) % 32), apart[(u >> 40) % COUNT(apart)], seed);
    if (!p.no_c && (u >> 27 & 3) == 0)
        strew(&p.c, (unsigned)((v >> 10) % 32), apart[(u >> 48) % COUNT(apart)], seed);
    product_lay_out(&p);
    product_check(&p, seed);
    product_clear(&p);
}

TEST(every_row)
{
    uint64_t seed = test_part_seed();
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list)), times = test_scaled(2);
        for (size_t t = 0; t < times; t++) {
            const uint64_t u = test_random(&seed);
            check(&m, &list[u % n], &list[(u >> 8) % n], &seed);
        }
    }
}

/* Formats of sums and results with few numbers, no infinity, one NaN or none; rules for NaNs; places that saturate. */
TEST(every_place)
{
    static const char *const typed[] = {"fma:bf16",
                                        "fma:fp16",
                                        "fma:e4m3",
                                        "fma:e5m2",
                                        "fma:e2m1",
                                        "sequential:bf16",
                                        "sequential:fp16",
                                        "sequential:e4m3",
                                        "sequential:e4m3fnuz",
                                        "sequential:acc=fp16",
                                        "sequential:product=fp16",
                                        "sequential:product=bf16:acc=fp16",
                                        "pairwise:bf16",
                                        "pairwise:fp16",
                                        "pairwise:L=5:fp16",
                                        "pairwise:chunk=12",
                                        "chunked:bf16",
                                        "chunked:chunk=7",
                                        "chunked:outer=binary32",
                                        "exact:result=fp16",
                                        "exact:result=e4m3",
                                        "exact:result=e2m1",
                                        "exact:result=e8m0",
                                        "exact:chunk=9",
                                        "exact:L=4",
                                        "fma:result=e2m1",
                                        "fma:result=e4m3",
                                        "fma:chunk=16",
                                        "sequential:chunk=16",
                                        "fma:order=odd-first",
                                        "sequential:order=odd-first",
                                        "fma:order=lanes:chunk=12:L=3",
                                        "sequential:order=lanes:chunk=12:L=3",
                                        "fma:flush=all",
                                        "sequential:flush=all",
                                        "hopper-fp16-fp32:result=e4m3",
                                        "hopper-bf16-fp32:result=fp16",
                                        "hopper-bf16-fp32:chunk=32",
                                        "hopper-fp16-fp16:chunk=32",
                                        "hopper-fp16-fp32:acc=e8m13",
                                        "hopper-bf16-fp32:acc=fp16:result=fp16",
                                        "amx-bf16-fp32:chunk=6",
                                        "amx-bf16-fp32:result=bf16",
                                        "avx512-bf16-fp32:result=fp16",
                                        "cdna1-bf16-fp32:result=fp16",
                                        "cdna3-bf16-fp32:result=bf16",
                                        "arm-bf16-fp32:result=bf16"};
    static const uint8_t rules[] = {MPSIM_NANS_SIGNED, MPSIM_NANS_POSITIVE,    MPSIM_NANS_PAYLOAD,
                                    MPSIM_NANS_ONES,   MPSIM_NANS_ONES_SIGNED, MPSIM_NANS_MINUS_ONES};
    uint64_t seed = test_part_seed() + 1;
    for (size_t i = 0; i < test_scaled(3) * COUNT(typed); i++) {
        mpsim_model m;
        mpsim_format own[16];
        const uint64_t u = test_random(&seed);
        ck_assert_msg(mpsim_model_parse(&m, typed[i % COUNT(typed)]) == MPSIM_OK, "%s", typed[i % COUNT(typed)]);
        mpsim_rounded *const places[] = {&m.product, &m.accumulator, &m.outer, &m.result};
        const uint8_t one = rules[(u >> 16) % COUNT(rules)];
        for (size_t k = 0; u >> 24 & 3 && k < COUNT(places); k++)
            places[k]->rounding.nan = (u >> 26) % 4 ? one : rules[(u >> (30 + 8 * k)) % COUNT(rules)];
        if ((u >> 62 & 3) == 0)
            places[u >> 28 & 3]->rounding.infinity = MPSIM_INFINITY_MAX;
        if ((u >> 60 & 3) == 0)
            places[u >> 56 & 3]->rounding.overflow = MPSIM_OVERFLOW_MAX;
        mpsim_format fa = dot_format(u % DOT_FORMATS), fb = dot_format((u >> 8) % DOT_FORMATS);
        const size_t n = m.operands ? dot_formats(&m, own, COUNT(own)) : 0;
        if (n && u >> 40 & 1)
            fa = fb = own[u % n];
        if (dot_can(&m, &fa, &fb))
            check(&m, &fa, &fb, &seed);
    }
}

/* Finite numbers whose products, or their sums, overflow, or nearly do. */
TEST(overflow)
{
    static const char *const models[] = {"cdna3-bf16-fp32", "cdna2-bf16-fp32", "arm-bf16-fp32", "cdna1-bf16-fp32"};
    static const size_t apart[] = {0, 3, 60};
    uint64_t seed = test_part_seed() + 3;
    const mpsim_format f = *mpsim_format_find("bf16");
    for (size_t i = 0; i < test_scaled(24) * COUNT(models); i++) {
        mpsim_model m;
        ck_assert(mpsim_model_parse(&m, models[i % COUNT(models)]) == MPSIM_OK);
        const uint64_t u = test_random(&seed);
        product p = product_new(&m, &f, &f, 1 + u % 9, 1 + (u >> 8) % 36, 1 + (u >> 16) % (u >> 46 & 1 ? 150 : 6),
                                &seed);
        product_fill(&p, KIND_NORMAL, 0, &seed);
        strew(&p.a, EDGE | (u >> 32 & 1 ? ONE_SIGN : 0), apart[u >> 36 & 1], &seed);
        strew(&p.b, (u >> 44 & 1 ? ROUNDED : EDGE) | (u >> 33 & 1 ? ONE_SIGN : 0), apart[(u >> 40) % COUNT(apart)],
              &seed);
        for (size_t k = 0; !p.no_c && u >> 45 & 1 && k < p.c.rows * p.c.columns; k++) /* the largest numbers */
            p.c.codes[k] = with_sign(&p.c.f, p.c.f.max_finite - test_random(&seed) % 3, (int)(k & 1));
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Any exponents, products of few bits: sums of lines that are wide, with ties and what is far below them, and differences. */
static void strew_exponents(product_matrix *x, uint64_t *seed)
{
    const uint64_t exponents = ((uint64_t)1 << x->f.ebits) - 1, few = x->f.mbits < 3 ? x->f.mbits : 3;
    const uint64_t apart = 1 + test_random(seed) % 9;
    for (size_t k = 0; k < x->rows * x->columns; k++) {
        const uint64_t u = test_random(seed);
        const uint64_t field = (u >> 8) % apart ? (uint64_t)x->f.bias - 2 + (u >> 16) % 4 : (u >> 24) % exponents;
        const uint64_t trailing = u >> 40 & 1 ? (u >> 44) % (1u << few) << (x->f.mbits - few)
                                              : (u >> 41) % (1u << x->f.mbits);
        x->codes[k] = with_sign(&x->f, field << x->f.mbits | trailing, u & 1);
    }
}

TEST(wide_sums)
{
    static const char *const models[] = {"exact",
                                         "exact:bf16",
                                         "exact:result=fp16",
                                         "exact:result=e4m3",
                                         "exact:result-round=down",
                                         "exact:result-round=rz",
                                         "exact:result-round=to-odd",
                                         "exact:result-round=nearest-away",
                                         "exact:binary64"};
    static const char *const formats[] = {"bf16", "tf32", "binary32"};
    uint64_t seed = test_part_seed() + 4;
    for (size_t i = 0; i < test_scaled(6) * COUNT(models); i++) {
        mpsim_model m;
        ck_assert_msg(mpsim_model_parse(&m, models[i % COUNT(models)]) == MPSIM_OK, "%s", models[i % COUNT(models)]);
        const uint64_t u = test_random(&seed);
        const mpsim_format f = *mpsim_format_find(formats[(u >> 40) % COUNT(formats)]);
        product p = product_new(&m, &f, &f, 1 + u % 9, 1 + (u >> 8) % 36, 1 + (u >> 16) % (u >> 46 & 1 ? 150 : 6),
                                &seed);
        product_fill(&p, KIND_NORMAL, 0, &seed);
        strew_exponents(&p.a, &seed);
        strew_exponents(&p.b, &seed);
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Random models. */
TEST(any_model)
{
    uint64_t seed = test_part_seed() + 2;
    for (size_t i = 0; i < test_scaled(60); i++) {
        mpsim_model m;
        const uint64_t u = test_random(&seed);
        const mpsim_format fa = dot_format(u % DOT_FORMATS), fb = dot_format((u >> 8) % DOT_FORMATS);
        dot_any_model(&m, &seed);
        if (dot_can(&m, &fa, &fb))
            check(&m, &fa, &fb, &seed);
    }
}

TEST_MAIN("special");
