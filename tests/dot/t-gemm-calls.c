/* t-gemm-calls.c -- calls of mpsim_gemm: environments, strips, arguments, products without an addend, short lines. */
#include "support/dotcases.h"
#include "support/products.h"
#include "support/support.h"

#include <fenv.h>
#include <math.h>
#include <mpsim/dot.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

CASE("gemm-calls", 30);

/* The rounding mode of the machine changes nothing: every operation in binary is exact. */
TEST(rounding_of_the_machine)
{
    uint64_t seed = test_seed() + 18;
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list));
        product p = product_new(&m, &list[i % n], &list[(i + 1) % n], 3, 18, 40, &seed);
        product_fill(&p, i % 3 ? KIND_CANCEL : KIND_ZEROS, 0, &seed);
        /* Sums of exactly zero: row 1 is -1 + 1, in the last addition, row 2 is 0. */
        memset(p.a.codes + p.depth, 0, 2 * p.depth * sizeof *p.a.codes);
        p.a.codes[2 * p.depth - 1] = product_code_of(&p.a.f, 1);
        for (size_t j = 0; j < p.columns; j++) {
            p.b.codes[(p.depth - 1) * p.columns + j] = product_code_of(&p.b.f, 1);
            p.c.codes[p.columns + j] = product_code_of(&p.c.f, -1);
            p.c.codes[2 * p.columns + j] = 0;
        }
        p.no_c = 0;
        product_lay_out(&p);
        product_solve(&p);
        for (size_t k = 0; test_direction(k) >= 0; k++) {
            ck_assert(fesetround(test_direction(k)) == 0);
            product_check_once(&p, NULL, 0, ", another rounding mode");
            fesetround(FE_TONEAREST);
        }
        product_clear(&p);
    }
}

/* Integers up to 8: few codes of specials would make every result one of the reference. */
static void some_numbers(const mpsim_format *f, void *codes, size_t n, uint64_t *seed)
{
    mpsim_rounding r;
    double x[64];
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t k = 0; k < n; k += COUNT(x)) {
        const size_t some = n - k < COUNT(x) ? n - k : COUNT(x);
        for (size_t i = 0; i < some; i++)
            x[i] = (double)(test_random(seed) % 17) - 8;
        mpsim_encode_array_f64(f, &r, NULL, (unsigned char *)codes + k * mpsim_format_code_bytes(f), x, some, NULL);
    }
}

static size_t one(void *self)
{
    (void)self;
    return 1;
}

/* Wide and deep products are computed in strips of columns: as if their columns were products of their own. */
TEST(strips_do_not_show)
{
    enum { ROWS = 2, COLUMNS = 900, DEPTH = 2600, FEW = 90 };
    static const char *const models[][2] = {{"hopper-wgmma-fp8-fp32", "e4m3"},
                                            {"fma", "bf16"},
                                            {"fma:fp16", "e5m2"},
                                            {"exact", "fp16"},
                                            {"cdna3-fp16-fp32", "fp16"},
                                            {"cdna3-fp64", "binary64"},
                                            {"arm-bf16-fp32", "bf16"}};
    static uint64_t a[ROWS * DEPTH], b[(size_t)COLUMNS * DEPTH], c[ROWS * COLUMNS], d[ROWS * COLUMNS],
        want[ROWS * COLUMNS];
    const mpsim_pool pools[] = {{.run = product_on_threads}, {.run = product_on_threads, .threads = one}};
    uint64_t seed = test_part_seed();
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        ck_assert(mpsim_model_parse(&m, models[i][0]) == MPSIM_OK);
        const mpsim_format *f = mpsim_format_find(models[i][1]), *to = &m.result.format;
        const size_t bytes = mpsim_format_code_bytes(f), of_result = mpsim_format_code_bytes(to);
        some_numbers(f, a, COUNT(a), &seed);
        some_numbers(f, b, COUNT(b), &seed);
        some_numbers(to, c, COUNT(c), &seed);
        for (int turned = 0; turned < 2; turned++) {
            const mpsim_matrix ma = {f, a, DEPTH, 0}, mb = {f, b, turned ? DEPTH : COLUMNS, turned},
                               mc = {to, c, turned ? ROWS : COLUMNS, turned};
            for (size_t j = 0; j < COLUMNS; j += FEW) {
                mpsim_matrix pb = mb, pc = mc;
                pb.codes = (unsigned char *)b + bytes * j * (turned ? DEPTH : 1);
                pc.codes = (unsigned char *)c + of_result * j * (turned ? ROWS : 1);
                ck_assert(mpsim_gemm(&m, ROWS, FEW, DEPTH, &ma, &pb, &pc, (unsigned char *)want + of_result * j,
                                     COLUMNS, NULL, NULL) == MPSIM_OK);
            }
            for (size_t k = 0; k < COUNT(pools); k++) {
                ck_assert(mpsim_gemm(&m, ROWS, COLUMNS, DEPTH, &ma, &mb, &mc, d, COLUMNS, NULL, &pools[k]) == MPSIM_OK);
                ck_assert_msg(memcmp(d, want, of_result * ROWS * COLUMNS) == 0, "%s, turned: %d, pool %zu", m.name,
                              turned, k);
            }
        }
    }
}

TEST(wrong_arguments)
{
    mpsim_model m, bad;
    const mpsim_format *f = mpsim_format_find("fp16"), *wide = mpsim_format_find("binary64");
    mpsim_format broken = *f;
    static const uint16_t x[64];
    static const uint64_t w[64];
    static const uint32_t cc[64];
    uint32_t d[64], kept[64];
    broken.ebits = 40;
    memset(d, 0x55, sizeof d);
    memcpy(kept, d, sizeof d);
    ck_assert(mpsim_model_parse(&m, "hopper-fp16-fp32") == MPSIM_OK);
    const mpsim_matrix a = {f, x, 6, 0}, b = {f, x, 5, 0}, c = {&m.result.format, cc, 5, 0};
    mpsim_matrix y;
#define REFUSED(status, ...)                               \
    do {                                                   \
        ck_assert_int_eq(mpsim_gemm(__VA_ARGS__), status); \
        ck_assert(memcmp(d, kept, sizeof d) == 0);         \
    } while (0)
    /* 4 x 5 = 4 x 6 times 6 x 5 */
    REFUSED(MPSIM_EINVAL, NULL, 4, 5, 6, &a, &b, &c, d, 5, NULL, NULL);
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, NULL, &b, &c, d, 5, NULL, NULL);
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, NULL, &c, d, 5, NULL, NULL);
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &c, NULL, 5, NULL, NULL);
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &c, d, 4, NULL, NULL);
    y = a;
    y.stride = 5;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
    y.transposed = 1;
    y.stride = 3;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
    y = b;
    y.stride = 4;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &y, &c, d, 5, NULL, NULL);
    y.transposed = 1;
    y.stride = 5;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &y, &c, d, 5, NULL, NULL);
    y = c;
    y.stride = 4;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &y, d, 5, NULL, NULL);
    y.transposed = 1;
    y.stride = 3;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &y, d, 5, NULL, NULL);
    y = a;
    y.codes = NULL;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
    y = b;
    y.codes = NULL;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &y, &c, d, 5, NULL, NULL);
    y = c;
    y.codes = NULL;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &y, d, 5, NULL, NULL);
    y = a;
    y.format = &broken;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
    y.format = NULL;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
    y = b;
    y.format = &broken;
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &y, &c, d, 5, NULL, NULL);
    y = c;
    y.format = f; /* not the format of the result */
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &y, d, 5, NULL, NULL);
    const mpsim_matrix wa = {wide, w, 6, 0}, wb = {wide, w, 5, 0};
    REFUSED(MPSIM_ERANGE, &m, 4, 5, 6, &wa, &wb, &c, d, 5, NULL, NULL);
    REFUSED(MPSIM_ERANGE, &m, 4, 5, 6, &wa, &b, &c, d, 5, NULL, NULL);
    bad = m;
    bad.fraction = 0;
    REFUSED(MPSIM_EINVAL, &bad, 4, 5, 6, &a, &b, &c, d, 5, NULL, NULL);
    bad = m;
    bad.accumulator.rounding.mode = MPSIM_ROUND_STOCHASTIC_C;
    REFUSED(MPSIM_EINVAL, &bad, 4, 5, 6, &a, &b, &c, d, 5, NULL, NULL); /* no rng */
    const mpsim_pool no_threads = {NULL, NULL, NULL};
    REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &c, d, 5, NULL, &no_threads);
    /* strides whose last row is beyond what memory has */
    static const size_t strides[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 4 + 1};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        y = a;
        y.stride = strides[i];
        REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &y, &b, &c, d, 5, NULL, NULL);
        y = b;
        y.stride = strides[i];
        REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &y, &c, d, 5, NULL, NULL);
        y = c;
        y.stride = strides[i];
        REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &y, d, 5, NULL, NULL);
        REFUSED(MPSIM_EINVAL, &m, 4, 5, 6, &a, &b, &c, d, strides[i], NULL, NULL);
    }
#undef REFUSED
}

TEST(nothing_to_add)
{
    mpsim_model m;
    const mpsim_format *f = mpsim_format_find("fp16");
    static const uint16_t x[64];
    static const uint32_t cc[64];
    uint32_t d[64], kept[64];
    memset(d, 0x55, sizeof d);
    memcpy(kept, d, sizeof d);
    ck_assert(mpsim_model_parse(&m, "hopper-fp16-fp32") == MPSIM_OK);
    const mpsim_matrix a = {f, x, 6, 0}, b = {f, x, 5, 0}, c = {&m.result.format, cc, 5, 0};
    /* No row, no column. */
    ck_assert_int_eq(mpsim_gemm(&m, 0, 5, 6, &a, &b, &c, d, 5, NULL, NULL), MPSIM_OK);
    ck_assert_int_eq(mpsim_gemm(&m, 4, 0, 6, &a, &b, &c, d, 5, NULL, NULL), MPSIM_OK);
    ck_assert(memcmp(d, kept, sizeof d) == 0);
    ck_assert_int_eq(mpsim_gemm(&m, 4, 5, 6, &a, &b, &c, d, 5, NULL, NULL), MPSIM_OK);
    ck_assert_uint_eq(d[19], 0);
    ck_assert_uint_eq(d[20], kept[20]);
    /* Without products d = c. */
    static const uint32_t minus[2] = {0x80000000, 0x3f800000};
    const mpsim_matrix none = {f, x, 1, 0}, other = {&m.result.format, minus, 2, 0};
    ck_assert_int_eq(mpsim_gemm(&m, 1, 2, 0, &none, &b, &other, d, 2, NULL, NULL), MPSIM_OK);
    ck_assert(d[0] == 0x80000000 && d[1] == 0x3f800000);
    ck_assert_int_eq(mpsim_gemm(&m, 1, 2, 0, &none, &b, NULL, d, 2, NULL, NULL), MPSIM_OK);
    ck_assert(d[0] == 0 && d[1] == 0);
}

/* No addend is +0, also where the result's format has no zero. */
TEST(no_addend_is_zero)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    const uint16_t one = 0x3c00;
    const mpsim_matrix x = {f, &one, 1, 0};
    static const char *const models[] = {"exact:e8m0:result-round=up", "fma:e8m0:round=up", "pairwise:e8m0:round=up"};
    for (size_t i = 0; i < COUNT(models); i++) {
        mpsim_model m;
        uint8_t d = 0;
        ck_assert(mpsim_model_parse(&m, models[i]) == MPSIM_OK);
        ck_assert(mpsim_gemm(&m, 1, 1, 1, &x, &x, NULL, &d, 1, NULL, NULL) == MPSIM_OK);
        ck_assert_msg(d == 127, "%s: 1 * 1 is %d", models[i], d);
    }
}

/* Panels of rows so short that they are packed at once, with and without numbers that are none; rows that lie side by side,
 * few of them and so many products that squares of them are turned. */
TEST(short_lines)
{
    static const char *const models[] = {"hopper-fp16-fp32",    "hopper-wgmma-fp8-promoted",
                                         "hopper-mma-fp8-fp32", "fma",
                                         "sequential:bf16",     "exact",
                                         "avx512-bf16-fp32",    "cdna1-fp16-fp32",
                                         "cdna3-fp8-fp32",      "cdna3-fp64",
                                         "arm-bf16-fp32",       "rtx-blackwell-mxf8f6f4"};
    uint64_t seed = test_part_seed();
    for (size_t i = 0; i < COUNT(models) * test_scaled(8); i++) {
        const uint64_t u = test_random(&seed);
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_parse(&m, models[i % COUNT(models)]) == MPSIM_OK);
        const size_t n = dot_formats(&m, list, COUNT(list)), deep = u >> 60 == 0;
        product p = product_new(&m, &list[u % n], &list[(u >> 8) % n], deep ? 18 : 16 + (u >> 16) % 18,
                                1 + (u >> 24) % (deep ? 3 : 20), deep ? 1030 : 1 + (u >> 32) % 64, &seed);
        product_fill(&p, u >> 40 & 1 ? KIND_NORMAL : (int)((u >> 41) % KINDS), (int)(u >> 48 & 1), &seed);
        p.a.stride = u >> 50 & 1 && !p.a.transposed ? p.depth : p.a.stride;
        product_lay_out(&p);
        product_check(&p, &seed);
        product_clear(&p);
    }
}

TEST_MAIN("gemm-calls");
