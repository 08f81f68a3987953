/* t-gemm.c -- matrix products: every element is what mpsim_dot gives, whatever the shape, the
 * layout, the instruction set and the threads. */
#include "support/dotcases.h"
#include "support/products.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/dot.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

static const size_t shapes[][3] = {{1, 1, 1},    {1, 1, 16},   {1, 19, 33}, {21, 1, 17},  {7, 9, 33},
                                   {17, 40, 65}, {2, 3, 0},    {8, 8, 32},  {5, 16, 31},  {4, 17, 64},
                                   {9, 33, 7},   {16, 31, 48}, {3, 65, 20}, {33, 5, 100}, {1, 64, 130}};

CASE("gemm", 30);

TEST(every_row)
{
    uint64_t seed = test_seed() + 11;
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        const size_t times = test_scaled(COUNT(shapes));
        for (size_t t = 0; t < times; t++) {
            const size_t *shape = shapes[t % COUNT(shapes)];
            const uint64_t u = test_random(&seed);
            product p = product_new(&m, &list[u % n], &list[(u >> 16) % n], shape[0], shape[1], shape[2], &seed);
            /* Around 1 is where a fast path works: half of the cases; few others among them. */
            const int kind = (int)((u >> 32) % (2 * KINDS));
            if (kind >= KINDS)
                product_fill(&p, KIND_NORMAL, 0, &seed);
            else
                product_fill(&p, kind, (int)(u >> 40 & 1), &seed);
            product_check(&p, &seed);
            product_clear(&p);
        }
    }
}

/* Every kind of operands in the rows that have fast paths, all pairs of formats. */
TEST(every_kind)
{
    uint64_t seed = test_seed() + 12;
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        if (m.addition != MPSIM_ADDITION_FUSED && m.addition != MPSIM_ADDITION_STAGED)
            continue;
        const size_t n = dot_formats(&m, list, COUNT(list));
        for (int kind = 0; kind < 2 * KINDS; kind++)
            for (size_t pair = 0; pair < n * n; pair++) {
                const uint64_t u = test_random(&seed);
                if (n > 2 && u % 4) /* five formats: a quarter of the pairs */
                    continue;
                if (!test_in_part(pair + (size_t)kind + i, 1))
                    continue;
                product p = product_new(&m, &list[pair % n], &list[pair / n], 1 + (u >> 8) % 9, 1 + (u >> 16) % 35,
                                        1 + (u >> 24) % 70, &seed);
                product_fill(&p, kind / 2, kind % 2, &seed);
                product_check(&p, &seed);
                product_clear(&p);
            }
    }
}

/* More than a tile in every direction. */
TEST(large)
{
    uint64_t seed = test_seed() + 13;
    static const char *const models[] = {"volta-fp16-fp32",
                                         "ampere-bf16-fp32",
                                         "ampere-tf32-fp32",
                                         "ada-fp8-fp32",
                                         "hopper-fp16-fp16",
                                         "hopper-bf16-fp32",
                                         "hopper-wgmma-fp8-promoted",
                                         "hopper-mma-fp8-fp32",
                                         "blackwell-tcgen05-fp8-fp32",
                                         "fma"};
    for (size_t i = 0; i < COUNT(models); i++) {
        if (!test_in_part(i, 1))
            continue;
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        product p = product_new(&m, &list[i % n], &list[(i + 1) % n], 71, 133, 160, &seed);
        product_fill(&p, i % 2 ? KIND_NORMAL : KIND_SPECIAL, i % 2 == 0, &seed);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Rows with a rule changed, which a fast path must not take for the row, operands that the
 * hardware does not have, and random models: random bits included. */
TEST(other_models)
{
    /* clang-format off */
    static const char *const typed[] = {
        "hopper-fp16-fp32:F=24", "hopper-fp16-fp32:F=50", "hopper-fp16-fp32:L=8",
        "hopper-fp16-fp32:L=128", "hopper-fp16-fp32:L=17", "hopper-fp16-fp32:align=floor",
        "hopper-fp16-fp32:align=nearest", "hopper-bf16-fp32:normalised=1",
        "hopper-bf16-fp32:floor=none", "hopper-bf16-fp32:floor=-100", "hopper-fp16-fp32:floor=5",
        "hopper-fp16-fp32:round=nearest-even", "hopper-fp16-fp32:round=down",
        "hopper-fp16-fp32:round=sr:8", "hopper-fp16-fp32:acc=e8m13", "hopper-fp16-fp32:acc=bf16",
        "hopper-fp16-fp32:result=fp16", "hopper-fp16-fp32:chunk=32",
        "hopper-fp16-fp32:chunk=48:outer-round=up", "hopper-fp16-fp32:order=quads:chunk=20",
        "hopper-fp16-fp16:acc=binary32", "hopper-fp16-fp16:round=toward-zero",
        "ada-fp8-fp32:acc=binary32", "ada-fp8-fp32:chunk=16:outer=fp16",
        "hopper-mma-fp8-fp16:order=sequential", "hopper-wgmma-fp8-promoted:outer-round=sra:5",
        "hopper-wgmma-fp8-promoted:result-round=sr", "fma:bf16:round=sr", "pairwise:round=srb",
        "chunked:product-round=sra:4", "exact:result-round=sr:3", "exact:chunk=7", "exact:L=4", "exact:L=3:fp16",
        "pairwise:L=4", "pairwise:L=3:bf16", "fma:flush=all", "cdna1-bf16-fp32:L=8",
        "cdna2-fp16-fp32:L=5", "cdna2-fp16-fp32:flush=none", "cdna3-fp16-fp32:kept=24", "cdna3-fp16-fp32:drop=1",
        "cdna3-fp16-fp32:kept=25:F=25:ways=2", "cdna3-bf16-fp32:ways=2:drop=1:L=16", "cdna3-fp8-fp32:drop=0:L=4",
        "cdna3-fp16-fp32:F=20:L=16", "cdna3-fp8-fp32:ways=1", "cdna3-bf16-fp32:acc=bf16", "cdna3-fp16-fp32:chunk=16",
        "rtx-blackwell-mxf4:group=8:L=24", "rtx-blackwell-mxf4:F=20:floor=none", "rtx-blackwell-mxf4:chunk=64",
        "rtx-blackwell-mxf4:align=floor", "rtx-blackwell-mxf8f6f4:F=13:acc=e8m13",
        "amx-bf16-fp32:result=bf16", "amx-fp16-fp32:result=fp16", "amx-fp16-fp32:result=e5m2:result-round=toward-zero",
        "avx512-bf16-fp32:result=bf16", "fma:result=bf16", "pairwise:result=fp16:result-round=up", "fma:result=e8m0",
        "cdna1-fp16-fp32:result=fp16", "cdna2-bf16-fp32:result=bf16", "cdna3-fp16-fp32:result=fp16:result-round=down"};
    uint64_t seed = test_seed() + 14;
    for (size_t i = 0; i < COUNT(typed) + test_scaled(150); i++) {
        mpsim_model m;
        if (i < COUNT(typed))
            ck_assert_msg(mpsim_model_parse(&m, typed[i]) == MPSIM_OK, "%s", typed[i]);
        else
            dot_any_model(&m, &seed);
        for (int t = 0; t < 4; t++) {
            const uint64_t u = test_random(&seed);
            mpsim_format own[16], fa = dot_format(u % DOT_FORMATS),
                                  fb = dot_format((u >> 8) % DOT_FORMATS);
            if (t % 2 && m.operands) {
                const size_t n = dot_formats(&m, own, COUNT(own));
                fa = own[u % n];
                fb = own[(u >> 8) % n];
            }
            if (!dot_can(&m, &fa, &fb))
                continue;
            product p = product_new(&m, &fa, &fb, 1 + (u >> 16) % 5, 1 + (u >> 24) % 20,
                                    1 + (u >> 32) % 66, &seed);
            product_fill(&p, (int)((u >> 40) % KINDS), (int)(u >> 50 & 1), &seed);
            product_check(&p, &seed);
            product_clear(&p);
        }
    }
    /* clang-format on */
}

/* eXmY with exponents and bits that no tensor core has; with `biased` a quarter lies elsewhere. */
static mpsim_format a_layout(int low, int high, int most, int biased, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    const unsigned ebits = (unsigned)low + (unsigned)(u % (unsigned)(high - low + 1));
    char name[40], bias[20] = "";
    mpsim_format f;
    if (biased && u >> 62 == 0 && ebits < 10)
        snprintf(bias, sizeof bias, ":ieee:bias=%d", (int)((u >> 32) % 200) - 60);
    snprintf(name, sizeof name, "e%um%u%s", ebits, 1 + (unsigned)((u >> 8) % (unsigned)most), bias);
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "%s", name);
    return f;
}

/* Exponents around the limits within which vectors of binary32 work, lines that differ in them, sums of
 * more than 31 bits, results that are subnormal. */
TEST(limits_of_lanes)
{
    static const char *const models[] = {"hopper-bf16-fp32",
                                         "volta-fp16-fp32:floor=none",
                                         "ampere-tf32-fp32",
                                         "hopper-fp16-fp32",
                                         "hopper-fp16-fp16",
                                         "blackwell-tcgen05-fp8-fp32",
                                         "blackwell-tcgen05-fp8-fp16",
                                         "hopper-wgmma-fp8-promoted",
                                         "hopper-bf16-fp32:acc=bf16:result=bf16:round=nearest-even",
                                         "hopper-bf16-fp32:acc=fp16:result=fp16",
                                         "hopper-mma-fp8-fp16",
                                         "hopper-bf16-fp32:L=6:F=28"};
    static const int middles[] = {0, 0, -45, -45, -62, 30, 32, 60, -7, -12};
    uint64_t seed = test_seed() + 19;
    for (size_t i = 0; i < COUNT(models) * test_scaled(40); i++) {
        mpsim_model m;
        mpsim_format list[16];
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
        ck_assert(mpsim_model_parse(&m, models[i % COUNT(models)]) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        product p = product_new(&m, &list[i % n], &list[(i + i / 7) % n], 5, 20, 50, &seed);
        product_fill(&p, KIND_NORMAL, 0, &seed);
        const int middle = middles[test_random(&seed) % COUNT(middles)];
        const int spread = (int)(test_random(&seed) % 12), full = test_random(&seed) % 3 == 0;
        for (size_t k = 0; k < p.rows * p.depth + p.depth * p.columns; k++) {
            const uint64_t u = test_random(&seed);
            const int of_a = k < p.rows * p.depth;
            const size_t at = of_a ? k : k - p.rows * p.depth;
            const size_t line = of_a ? at / p.depth : at % p.columns;
            const int e = middle + (int)(line % 3) * spread / 2 - (int)(u % (unsigned)(spread + 1));
            const double x = ldexp(full ? 2 - 0x1p-30 : 1 + (double)(u >> 40) * 0x1p-24, e);
            (of_a ? p.a.codes : p.b.codes)[at] = mpsim_encode_f64(
                of_a ? &p.a.f : &p.b.f, &r, u >> 32 & 15 ? (u >> 33 & 1 && !full ? -x : x) : 0, 0, NULL);
        }
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Models that differ from those of tensor cores in numbers only, up to where a fast path must give
 * up: ranges of operands, accumulators and results, fractions, lengths, floors. */
TEST(beyond_tensor_cores)
{
    static const int lengths[] = {1, 2, 4, 8, 16, 32, 33, 100, 128};
    uint64_t seed = test_seed() + 15;
    for (size_t i = 0; i < test_scaled(5000); i++) {
        const uint64_t u = test_random(&seed);
        mpsim_model m;
        ck_assert(mpsim_model_parse(&m, "hopper-fp16-fp32") == MPSIM_OK);
        m.length = (uint8_t)lengths[u % COUNT(lengths)];
        m.fraction = (uint8_t)(1 + (u >> 8) % 32);
        m.floor = u >> 16 & 1 ? MPSIM_MODEL_NO_FLOOR : (int16_t)((int)((u >> 20) % 1400) - 950);
        m.chunk = u >> 36 & 3 ? 0 : 1 + (uint32_t)((u >> 40) % 40);
        if ((u >> 33) % 8 == 0 && m.floor != MPSIM_MODEL_NO_FLOOR)
            m.floor = (int16_t)(m.floor * 8);
        if (u >> 48 & 1)
            m.operand_emin = (int16_t)(-(int)((u >> 49) % 300));
        m.accumulator.format = a_layout(4, 10, 32, 0, &seed);
        m.accumulator.rounding.mode = u >> 17 & 1 ? MPSIM_ROUND_NEAREST_EVEN : MPSIM_ROUND_TOWARD_ZERO;
        m.accumulator.rounding.overflow = u >> 18 & 1 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
        m.result.format = m.outer.format = m.accumulator.format;
        m.accumulator.rounding.flush_output = u >> 60 == 0;
        if (u >> 60 == 1) {
            m.result.format = a_layout(4, 10, 32, 1, &seed);
        } else if (u >> 19 & 1) { /* more bits, the same exponents */
            char name[16];
            snprintf(name, sizeof name, "e%um%u", (unsigned)m.accumulator.format.ebits,
                     m.accumulator.format.mbits + (unsigned)(u >> 48) % 20);
            ck_assert(mpsim_format_parse(&m.result.format, name) == MPSIM_OK);
        }
        const mpsim_format fa = a_layout(2, 10, 24, 1, &seed), fb = a_layout(2, 10, 24, 1, &seed);
        strcpy(m.name, "no row");
        product p = product_new(&m, &fa, &fb, 1 + (u >> 50) % 3, 1 + (u >> 53) % 20, 1 + (u >> 57) % 40, &seed);
        product_fill(&p, (int)(test_random(&seed) % KINDS), (int)(u >> 63), &seed);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* One product beside an accumulator beyond binary32; a zero times 2^511 beside a negative sum that
 * rounds to -0; operands beyond binary32 whose products are not; a tie at one and a half of the
 * smallest number; an operand whose exponent is below those of binary32's normal numbers. */
TEST(far_apart)
{
    static const struct {
        const char *model, *fa, *fb;
        double a[2], b[2], c;
    } cases[] = {{"hopper-fp16-fp32:e9m20", "fp16", "fp16", {1.5, 0}, {1, 1}, 0x1p156},
                 {"hopper-fp16-fp32:e9m20", "fp16", "fp16", {1.5, 0}, {1, 1}, -0x1p200},
                 {"ada-fp8-fp32:e9m13", "e4m3", "e5m2", {1.5, 0}, {1, 1}, 0x1p250},
                 {"hopper-fp16-fp32:floor=none", "e10m2", "e4m3", {0x1p511, 0x1p-510}, {0, -0x1p-9}, 0},
                 {"hopper-fp16-fp32", "e2m9:ieee:bias=134", "e7m5:ieee:bias=-45", {0x1p-132, 0}, {0x1p150, 0}, 1},
                 {"hopper-bf16-fp32:bf16:round=rne", "bf16", "bf16", {0x1.8p-70, 0}, {0x1p-63, 0}, 0},
                 {"hopper-fp16-fp32:F=13:floor=none", "e2m8:ieee:bias=132", "e4m7", {-0x1p-139, 0}, {0x1.fep7, 0}, 0},
                 {"cdna3-xf32-fp32", "bf16", "e4m7:bias=-100", {0x1.2p28, 0}, {0x1.8p99, 0}, 0}};
    uint64_t seed = test_seed() + 16;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
    for (size_t i = 0; i < COUNT(cases); i++) {
        mpsim_model m;
        mpsim_format fa, fb;
        ck_assert(mpsim_model_parse(&m, cases[i].model) == MPSIM_OK);
        ck_assert(mpsim_format_parse(&fa, cases[i].fa) == MPSIM_OK);
        ck_assert(mpsim_format_parse(&fb, cases[i].fb) == MPSIM_OK);
        product p = product_new(&m, &fa, &fb, 1, 1, 2, &seed);
        for (size_t k = 0; k < 2; k++) {
            p.a.codes[k] = mpsim_encode_f64(&fa, &r, cases[i].a[k], 0, NULL);
            p.b.codes[k] = mpsim_encode_f64(&fb, &r, cases[i].b[k], 0, NULL);
        }
        p.no_c = 0;
        p.c.codes[0] = mpsim_encode_f64(&m.result.format, &r, cases[i].c, 0, NULL);
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Products that are all beyond the range in which binary32 adds, of operands half of which are zeros. */
TEST(far_up)
{
    uint64_t seed = test_seed() + 20;
    for (int i = 0; i < 4; i++) {
        mpsim_model m;
        mpsim_format f;
        ck_assert(mpsim_model_parse(&m, "hopper-fp16-fp32:F=13:floor=none") == MPSIM_OK);
        ck_assert(mpsim_format_parse(&f, "e4m7:bias=-100") == MPSIM_OK);
        product p = product_new(&m, &f, &f, 9, 20, 40, &seed);
        product_fill(&p, i % 2 ? KIND_NORMAL : KIND_TINY, 0, &seed);
        for (size_t k = 0; k < p.b.rows * p.b.columns; k++)
            if (test_random(&seed) % 2)
                p.b.codes[k] = 0;
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

/* Additions that keep few bits: operands that are zeros of both signs, the smallest, the largest and any other numbers,
 * beside accumulators from the smallest to the largest; sums as large as they become. */
TEST(few_bits)
{
    static const char *const models[] = {"hopper-wgmma-fp8-fp32",
                                         "ada-fp8-fp32",
                                         "hopper-wgmma-fp8-promoted",
                                         "hopper-wgmma-fp8-fp32:F=14",
                                         "hopper-wgmma-fp8-fp32:F=1",
                                         "hopper-wgmma-fp8-fp32:L=8:acc=binary32",
                                         "hopper-wgmma-fp8-fp32:L=16:chunk=48",
                                         "hopper-wgmma-fp8-fp32:L=32:chunk=48",
                                         "hopper-wgmma-fp8-fp32:floor=-5",
                                         "hopper-wgmma-fp8-fp32:acc=e8m3:result=binary32"};
    uint64_t seed = test_part_seed();
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        const size_t times = test_scaled(12);
        for (size_t t = 0; t < times; t++) {
            const uint64_t how = test_random(&seed);
            product p = product_new(&m, &list[how % n], &list[(how >> 8) % n], 9, 20, 1 + (how >> 16) % 100, &seed);
            product_fill(&p, t % 4 ? KIND_NORMAL : KIND_TINY, 0, &seed);
            for (int b = 0; b < 2; b++) {
                product_matrix *x = b ? &p.b : &p.a;
                const uint64_t sign = (uint64_t)1 << 7, few[] = {0, 1, x->f.max_finite, x->f.max_finite};
                for (size_t k = 0; k < x->rows * x->columns; k++) {
                    const uint64_t u = test_random(&seed);
                    if (u % 4 < (how >> 32) % 5)
                        x->codes[k] = few[(how >> 40 & 1) + (u >> 8) % 3] | (u >> 16 & how >> 48 & 1 ? sign : 0);
                }
            }
            product_lay_out(&p);
            product_check(&p, &seed);
            product_clear(&p);
        }
    }
}

/* Zero products beside an accumulator of any exponent: it stays as it is. */
TEST(accumulators_alone)
{
    static const char *const models[] = {
        "volta-fp16-fp32",       "ampere-bf16-fp32", "ampere-tf32-fp32",           "hopper-fp16-fp32",
        "hopper-fp16-fp32:F=28", "ada-fp8-fp32",     "hopper-fp16-fp32:floor=none"};
    uint64_t seed = test_seed() + 17;
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        mpsim_format list[4];
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        dot_formats(&m, list, COUNT(list));
        product p = product_new(&m, &list[0], &list[0], 2, 255, 3, &seed);
        p.no_c = 0;
        for (size_t j = 0; j < 255; j++) { /* of the second row: one bit more, negative */
            p.c.codes[j] = (uint64_t)j << 23;
            p.c.codes[255 + j] = 0x80400000 | (uint64_t)j << 23;
        }
        p.a.codes[0] = p.a.codes[3] = 1; /* the smallest number; b is zero */
        product_lay_out(&p);
        product_check(&p, &seed);
        for (size_t j = 1; j < 510; j++) /* -133 - 25 and -2^-127: the bounds leave it alone */
            ck_assert_uint_eq(p.want[j], p.c.codes[j]);
        product_clear(&p);
    }
}

/* Addends of every exponent, infinities and NaNs among them, before products of which most are zero: the first additions
 * of chains, which look at them. */
TEST(addends_of_any_size)
{
    static const char *const models[] = {"hopper-wgmma-fp8-fp32",
                                         "ada-fp8-fp32",
                                         "hopper-wgmma-fp8-fp32:floor=-5",
                                         "hopper-wgmma-fp8-fp32:acc=binary32",
                                         "hopper-fp16-fp32",
                                         "hopper-bf16-fp32",
                                         "ampere-bf16-fp32",
                                         "ampere-tf32-fp32",
                                         "volta-fp16-fp32",
                                         "hopper-bf16-fp32:floor=none",
                                         "cdna3-bf16-fp32",
                                         "cdna3-fp16-fp32",
                                         "cdna3-fp8-fp32",
                                         "arm-bf16-fp32",
                                         "arm-ebf16-fp32"};
    uint64_t seed = test_part_seed() + 1;
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        const size_t times = test_scaled(5);
        for (size_t t = 0; t < times; t++) {
            const uint64_t how = test_random(&seed);
            product p = product_new(&m, &list[how % n], &list[(how >> 8) % n], 9, 20, 20 + (how >> 16) % 60, &seed);
            product_fill(&p, t % 3 ? KIND_NORMAL : KIND_TINY, 0, &seed);
            p.no_c = 0;
            for (size_t k = 0; k < p.a.rows * p.a.columns; k++)
                if ((k / 8 + (how >> 24)) % 4)
                    p.a.codes[k] = 0;
            for (size_t k = 0; k < p.c.rows * p.c.columns; k++) {
                const uint64_t u = test_random(&seed);
                p.c.codes[k] = (u >> 8) % 3 ? (u >> 16) % 0xff << 23 | (u >> 40 & 0x7fffff) | (u & 1) << 31 : u >> 32;
            }
            product_lay_out(&p);
            product_check(&p, &seed);
            product_clear(&p);
        }
    }
}

/* Sums of AMX that are flushed to -0 stay so where one of the two lanes has a product more. */
TEST(bug_20261126_lanes_of_odd_depth)
{
    uint64_t seed = test_seed() + 19;
    mpsim_model m;
    const mpsim_format *f = mpsim_format_find("bf16");
    ck_assert(mpsim_model_parse(&m, "amx-bf16-fp32") == MPSIM_OK);
    product p = product_new(&m, f, f, 9, 1, 3, &seed);
    for (size_t k = 0; k < 27; k++)
        p.a.codes[k] = product_code_of(f, 0x1p-70);
    for (size_t k = 0; k < 3; k++)
        p.b.codes[k] = product_code_of(f, -0x1p-70);
    p.no_c = 0;
    for (size_t i = 0; i < 9; i++)
        p.c.codes[i] = 0x80000000;
    product_lay_out(&p);
    product_check(&p, &seed);
    for (size_t i = 0; i < 9; i++)
        ck_assert_uint_eq(p.want[i], 0x80000000);
    product_clear(&p);
}

/* An infinity or a NaN is the smallest integer in a vector lane, which is computed again, and the accumulator is added. */
TEST(bug_20261126_lanes_that_wrap)
{
    uint64_t seed = test_seed() + 20;
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        mpsim_format list[16];
        if (m.addition != MPSIM_ADDITION_STAGED)
            continue;
        for (size_t n = dot_formats(&m, list, COUNT(list)); n-- > 0;) {
            product p = product_new(&m, &list[n], &list[n], 4, 16, (size_t)m.length, &seed);
            for (size_t k = 0; k < p.rows * p.depth; k++)
                p.a.codes[k] = product_code_of(&list[n], k % p.depth ? 0 : k ? HUGE_VAL : (double)NAN);
            for (size_t k = 0; k < p.columns * p.depth; k++)
                p.b.codes[k] = product_code_of(&list[n], 1);
            p.no_c = 0;
            for (size_t k = 0; k < p.rows * p.columns; k++)
                p.c.codes[k] = product_code_of(&m.result.format, -0x1p110);
            product_lay_out(&p);
            product_check(&p, &seed);
            product_clear(&p);
        }
    }
}

/* Of a format without explicit significand bits a tie goes to the even code, whatever kernel rounds: 3 lies between 2 and 4. */
TEST(bug_20261127_ties_of_one_bit)
{
    static const char *const models[] = {"fma:e3m0:fn",   "sequential:e3m0:fn", "pairwise:e3m0:fn",
                                         "exact:e3m0:fn", "fma:e4m0:fn:bias=8", "exact:e4m0:fn:bias=8",
                                         "exact:e4m0:fn"};
    const float a[] = {2, 1}, b[] = {1, 1};
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_matrix x = {f, a, 2, 0}, y = {f, b, 2, 1};
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        uint64_t want = 0, d = 0;
        ck_assert_msg(mpsim_model_parse(&m, models[i]) == MPSIM_OK, "%s", models[i]);
        ck_assert(mpsim_dot(&m, f, a, f, b, 2, 0, NULL, &want) == MPSIM_OK);
        ck_assert(mpsim_gemm(&m, 1, 1, 2, &x, &y, NULL, &d, 1, NULL, NULL) == MPSIM_OK);
        ck_assert_msg(d == want && d % 2 == 0, "%s: code %d, expected %d", models[i], (int)d, (int)want);
    }
}

TEST_MAIN("gemm");
