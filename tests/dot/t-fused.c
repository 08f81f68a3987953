/* t-fused.c -- additions of tensor cores that were computed by hand, and what zeros may not change.
 *
 * A case is a sum of a few products and c; the comment is the arithmetic. Units are those of the
 * aligned terms, 2^(E - F). */
#include "support/dotcases.h"
#include "support/support.h"

#include <mpsim/dot.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NMAX = 512 };

static uint64_t exactly(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_TOWARD_ZERO);
    const uint64_t code = mpsim_encode_f64(f, &r, x, 0, NULL);
    const double y = mpsim_decode(f, code);
    ck_assert_msg(isnan(x) ? isnan(y) : y == x, "%a is no number of %s", x, f->name);
    return code;
}

static mpsim_model parsed(const char *name)
{
    mpsim_model m;
    const mpsim_status s = mpsim_model_parse(&m, name);
    ck_assert_msg(s == MPSIM_OK, "%s: %s", name, mpsim_status_string(s));
    return m;
}

/* Products a b, the rest zeros. */
typedef struct pair {
    size_t k;
    double a, b;
} pair;

static uint64_t run(const mpsim_model *m, const char *format, size_t n, const pair *p, size_t pairs, double c)
{
    const mpsim_format *f = mpsim_format_find(format);
    static uint64_t codes[2][NMAX];
    static uint64_t packed[2][NMAX];
    memset(codes, 0, sizeof codes);
    for (size_t i = 0; i < pairs; i++) {
        ck_assert(n <= NMAX && (p[i].k < n || n == 0));
        codes[0][p[i].k] = exactly(f, p[i].a);
        codes[1][p[i].k] = exactly(f, p[i].b);
    }
    dot_pack(f, packed[0], 0, codes[0], n);
    dot_pack(f, packed[1], 0, codes[1], n);
    uint64_t d = 0;
    const mpsim_status s = mpsim_dot(m, f, packed[0], f, packed[1], n, exactly(&m->result.format, c), NULL, &d);
    ck_assert_msg(s == MPSIM_OK, "%s: %s", m->name, mpsim_status_string(s));
    /* The same by the matrix product. */
    const uint64_t cc = exactly(&m->result.format, c);
    uint64_t one[1], out[1] = {0};
    dot_pack(&m->result.format, one, 0, &cc, 1);
    const mpsim_matrix a = {f, packed[0], n, 0}, b = {f, packed[1], n, 1}, cm = {&m->result.format, one, 1, 0};
    ck_assert(mpsim_gemm(m, 1, 1, n, &a, &b, &cm, out, 1, NULL, NULL) == MPSIM_OK);
    ck_assert_uint_eq(dot_unpack(&m->result.format, out, 0), d);
    return d;
}

#define COUNT(p) (sizeof(p) / sizeof(p)[0])
#define PRODUCTS(...) (const pair[]){__VA_ARGS__}, COUNT(((const pair[]){__VA_ARGS__}))
#define IS(model, format, n, c, want, ...)                                                                             \
    do {                                                                                                               \
        const mpsim_model m_ = parsed(model);                                                                          \
        const uint64_t got_ = run(&m_, format, n, PRODUCTS(__VA_ARGS__), c);                                           \
        ck_assert_msg(got_ == (want), "line %d, %s: %llx, expected %llx", __LINE__, m_.name, (unsigned long long)got_, \
                      (unsigned long long)(want));                                                                     \
    } while (0)

#define H 0x1p-13 /* fp16: H H = 2^-26 */
#define Q 0x1p-12

CASE("by hand", 20);

TEST(every_addend_is_truncated)
{
    /* F = 25, E = 0: 2^-26 is half a unit; each is dropped, though three make more than one. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0x3f800000, {0, 1, 1}, {1, H, H}, {2, H, H}, {3, H, H});
    /* Its magnitude is truncated: 1 - 2^-26 is 1. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0x3f800000, {0, 1, 1}, {1, -H, H});
    /* Toward -infinity it is 1 - 2^-25, whose 24 bits are 1 - 2^-24. */
    IS("hopper-fp16-fp32:align=floor", "fp16", 16, 0, 0x3f7fffff, {0, 1, 1}, {1, -H, H});
    /* To nearest even: half a unit goes to 0; 3/4 of a unit would go to 1. */
    IS("hopper-fp16-fp32:align=nearest", "fp16", 16, 0, 0x3f800000, {0, 1, 1}, {1, -H, H});
    IS("hopper-fp16-fp32:align=nearest", "fp16", 16, 0, 0x3f7fffff, {0, 1, 1}, {1, -1.5 * H, H});
    /* F = 26 keeps them: 1 + 3 2^-26, truncated to 24 bits; 1 - 2^-26 is below 1. */
    IS("hopper-fp16-fp32:F=26", "fp16", 16, 0, 0x3f7fffff, {0, 1, 1}, {1, -H, H});
    /* F = 24: 2^-24 is a unit. 1 + 7 2^-24 = 1 + 3.5 2^-23, truncated once. */
    IS("ampere-fp16-fp32", "fp16", 8, 0, 0x3f800003, {0, 1, 1}, {1, Q, Q}, {2, Q, Q}, {3, Q, Q}, {4, Q, Q}, {5, Q, Q},
       {6, Q, Q}, {7, Q, Q});
    /* F = 23: it is half a unit. */
    IS("volta-fp16-fp32", "fp16", 4, 0, 0x3f800000, {0, 1, 1}, {1, Q, Q}, {2, Q, Q}, {3, Q, Q});
    /* c too: products of 4, E = 2, unit 2^-21 in Volta: c = 2^-22 is dropped, 2^-21 is not. */
    IS("volta-fp16-fp32", "fp16", 4, 0x1p-22, 0, {0, 4, 1}, {1, -4, 1});
    IS("volta-fp16-fp32", "fp16", 4, 0x1.8p-21, 0x35000000, {0, 4, 1}, {1, -4, 1});
}

TEST(products_are_not_normalised)
{
    /* 1.5 1.5 = 2.25 has e = 0: the unit is 2^-25, so that 2^-25 survives 2.25 - 2.25. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0x33000000, {0, 1.5, 1.5}, {1, -1.5, 1.5}, {2, Q, H});
    /* With e = 1 the unit is 2^-24. */
    IS("hopper-fp16-fp32:normalised=1", "fp16", 16, 0, 0, {0, 1.5, 1.5}, {1, -1.5, 1.5}, {2, Q, H});
    /* 2.25 as 1.125 2 has e = 1 by itself. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0, {0, 1.125, 2}, {1, -1.125, 2}, {2, Q, H});
    /* A subnormal has e = -14, however small: 2^-24 2 has e = -13, whose unit is 2^-38, and
       2^-39 vanishes. Normalised, 2^-23 has e = -23 and the unit 2^-48. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0, {0, 0x1p-24, 2}, {1, -0x1p-24, 2}, {4, 0x1p-24, 0x1p-15});
    IS("hopper-fp16-fp32:normalised=1", "fp16", 16, 0, 0x2c000000, {0, 0x1p-24, 2}, {1, -0x1p-24, 2},
       {4, 0x1p-24, 0x1p-15});
}

TEST(additions_follow_each_other)
{
    /* L = 16: 1 + 8 2^-24 = 1 + 4 2^-23. */
    IS("hopper-fp16-fp32", "fp16", 16, 0, 0x3f800004, {0, 1, 1}, {1, Q, Q}, {2, Q, Q}, {3, Q, Q}, {4, Q, Q}, {5, Q, Q},
       {6, Q, Q}, {7, Q, Q}, {8, Q, Q});
    /* L = 8: 1 + 7 2^-24 is truncated to 1 + 3 2^-23; so is that with the eighth. */
    IS("ampere-fp16-fp32", "fp16", 16, 0, 0x3f800003, {0, 1, 1}, {1, Q, Q}, {2, Q, Q}, {3, Q, Q}, {4, Q, Q}, {5, Q, Q},
       {6, Q, Q}, {7, Q, Q}, {8, Q, Q});
    /* k ascending: two halves of an ulp in the second addition are one ulp. */
    IS("ampere-fp16-fp32", "fp16", 16, 0, 0x3f800001, {0, 1, 1}, {8, Q, Q}, {9, Q, Q});
    IS("ampere-fp16-fp32", "fp16", 16, 0, 0x3f800000, {0, 1, 1}, {7, Q, Q}, {8, Q, Q});
}

TEST(results_of_fp16)
{
    /* To nearest even, once: 1 + 2^-11 is a tie, 1 + 2^-11 + 2^-25 is not (F = 25). */
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x3c00, {0, 1, 1}, {1, 1, 0x1p-11});
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x3c01, {0, 1, 1}, {1, 1, 0x1p-11}, {2, Q, H});
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x3c00, {0, 1, 1}, {1, 1, 0x1p-11}, {2, H, H});
    /* Beyond 65504 + 16, half a unit, infinity; just below, the largest number. */
    IS("hopper-fp16-fp16", "fp16", 16, 65504, 0x7c00, {0, 16, 1});
    IS("hopper-fp16-fp16", "fp16", 16, 65504, 0x7bff, {0, 15, 1});
    IS("hopper-fp16-fp16", "fp16", 16, -65504, 0xfc00, {0, -16, 1});
    /* Subnormal results: 2^-24 1.5 is a tie between 1 and 2. */
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x0002, {0, 0x1.8p-12, Q});
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x0000, {0, -H, Q});
}

TEST(thirteen_bits)
{
    const char *const m = "hopper-wgmma-fp8-fp32";
    /* F = 13, E = 0: 2^-13 = 2^-7 2^-6 is a unit, half of it is nothing. */
    IS(m, "e4m3", 32, 0, 0x3f800400, {0, 1, 1}, {1, 0x1p-7, 0x1p-6});
    IS(m, "e4m3", 32, 0, 0x3f800000, {0, 1, 1}, {1, 0x1p-7, 0x1p-7});
    /* 2 + 2^-13 with e = 1 has its last bit at 2^-12: truncated, also when negative. */
    IS(m, "e4m3", 32, 0, 0x40000000, {0, 1, 1}, {1, 1, 1}, {2, 0x1p-7, 0x1p-6});
    IS(m, "e4m3", 32, 0, 0xc0000000, {0, -1, 1}, {1, -1, 1}, {2, -0x1p-7, 0x1p-6});
    /* c is a term like another: 1 + 2^-14 loses its last bit. Without products d = c. */
    IS(m, "e4m3", 32, 1 + 0x1p-14, 0x3f800000, {0, 0x1p-9, 0x1p-9});
    IS(m, "e4m3", 0, 1 + 0x1p-14, 0x3f800200, {0, 0, 0});
    /* Rounded to nearest: 2 + 2^-13 is a tie, 2 + 3 2^-13 goes up. */
    IS("hopper-wgmma-fp8-fp32:round=nearest-even", "e4m3", 32, 0, 0x40000000, {0, 1, 1}, {1, 1, 1},
       {2, 0x1p-7, 0x1p-6});
    IS("hopper-wgmma-fp8-fp32:round=nearest-even", "e4m3", 32, 0, 0x40000800, {0, 1, 1}, {1, 1, 1},
       {2, 0x1.8p-6, 0x1p-6});
    /* Promotion: the 128 products and c are added in binary32 to nearest. 2^24 + 3 is a tie that
       goes to 2^24 + 4, once for each chunk; in one accumulator of 13 bits it vanishes. */
    IS("hopper-wgmma-fp8-promoted", "e4m3", 128, 0x1p24, 0x4b800002, {0, 3, 1});
    IS("hopper-wgmma-fp8-promoted", "e4m3", 256, 0x1p24, 0x4b800004, {0, 3, 1}, {128, 1, 3});
    IS("hopper-wgmma-fp8-promoted", "e4m3", 256, 0x1p24, 0x4b800003, {0, 3, 1}, {127, 1, 3});
    IS(m, "e4m3", 256, 0x1p24, 0x4b800000, {0, 3, 1}, {128, 1, 3});
}

TEST(emulated_fp8)
{
    /* Places 0, 1 of each four come first, then 2, 3; c last, to nearest. */
    IS("hopper-mma-fp8-fp32", "e5m2", 32, 0, 0x32800000, {0, 1, 1}, {1, -1, 1}, {2, H, H});
    IS("hopper-mma-fp8-fp32", "e5m2", 32, 0, 0x32800000, {28, 1, 1}, {29, -1, 1}, {3, H, H});
    /* All in the first addition, or all in the second: 2^-26 is half a unit beside 1. */
    IS("hopper-mma-fp8-fp32", "e5m2", 32, 0, 0, {0, 1, 1}, {1, -1, 1}, {4, H, H});
    IS("hopper-mma-fp8-fp32", "e5m2", 32, 0, 0, {2, 1, 1}, {3, -1, 1}, {30, H, H});
    /* In the order of k 2^-26 is in the first addition. */
    IS("hopper-mma-fp8-fp32:order=sequential", "e5m2", 32, 0, 0, {0, 1, 1}, {1, -1, 1}, {2, H, H});
    /* 2^24 + 3 to nearest even; toward zero it would be 2^24 + 2. */
    IS("hopper-mma-fp8-fp32", "e5m2", 32, 0x1p24, 0x4b800002, {0, 3, 1});
    IS("hopper-mma-fp8-fp32:chunk=0:order=sequential", "e5m2", 32, 0x1p24, 0x4b800001, {0, 3, 1});
    /* fp16 between the additions: 2048 + 1 is a tie, dropped; the second 1 too. */
    IS("hopper-mma-fp8-fp16", "e5m2", 32, 0, 0x6800, {0, 32, 64}, {1, 1, 1}, {2, 1, 1});
    IS("hopper-mma-fp8-fp16:order=sequential", "e5m2", 32, 0, 0x6801, {0, 32, 64}, {1, 1, 1}, {2, 1, 1});
}

TEST(overflow_and_specials)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    /* 2^127 + 2^127 = 2^128: infinity, though the mode is toward zero. */
    IS("hopper-bf16-fp32", "bf16", 16, 0, 0x7f800000, {0, 0x1p127, 1}, {1, 0x1p127, 1});
    IS("ampere-bf16-fp32", "bf16", 8, 0, 0xff800000, {0, -0x1p127, 1}, {1, 0x1p127, -1});
    mpsim_model m = parsed("hopper-bf16-fp32");
    m.accumulator.rounding.overflow = MPSIM_OVERFLOW_MAX;
    const pair big[] = {{0, 0x1p127, 1}, {1, 0x1p127, 1}};
    ck_assert_uint_eq(run(&m, "bf16", 16, big, 2, 0), 0x7f7fffff);
    /* 24 ones and a half: truncated, the largest number. */
    IS("hopper-bf16-fp32", "bf16", 16, 0x1.fffffep127, 0x7f7fffff, {0, 0x1p100, 8});
    /* RZ13: 2^128 - 2^115, truncated from c, is a number; one unit more is none. */
    IS("hopper-wgmma-fp8-fp32", "e4m3", 32, 0x1.fffffep127, 0x7f7ffc00, {0, 1, 1});
    /* 2^129 - 2^129 + 2^127: the sum has no range. */
    IS("hopper-bf16-fp32", "bf16", 16, 0, 0x7f000000, {0, 0x1p127, 4}, {1, -0x1p127, 4}, {2, 0x1p127, 1});
    /* Between the additions it has: 2^128 - 2^128 in two additions is inf - 2^128 = inf. */
    IS("ampere-bf16-fp32", "bf16", 16, 0, 0x7f800000, {0, 0x1p127, 2}, {8, -0x1p127, 2});
    IS("hopper-bf16-fp32", "bf16", 16, 0, 0, {0, 0x1p127, 2}, {8, -0x1p127, 2});

    /* NaN is 7fffffff, 7fff, whatever the sign. */
    static const char *const rows[] = {"volta-fp16-fp32", "ampere-fp16-fp32", "hopper-fp16-fp32",
                                       "blackwell-fp16-fp32"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        IS(rows[i], "fp16", 4, 0, 0x7fffffff, {0, nan, 1});
        IS(rows[i], "fp16", 4, 0, 0x7fffffff, {0, 1, -nan});
        IS(rows[i], "fp16", 4, nan, 0x7fffffff, {0, 1, 1});
        IS(rows[i], "fp16", 4, -nan, 0x7fffffff, {0, 1, 1});
        IS(rows[i], "fp16", 4, 0, 0x7fffffff, {0, inf, 0}, {1, 1, 1});
        IS(rows[i], "fp16", 4, 0, 0x7fffffff, {3, 0, -inf}, {1, 1, 1});
        IS(rows[i], "fp16", 4, 0, 0x7fffffff, {0, inf, 1}, {1, -inf, 1});
        IS(rows[i], "fp16", 4, -inf, 0x7fffffff, {0, inf, 1});
        IS(rows[i], "fp16", 4, -inf, 0x7fffffff, {0, inf, 0});
        IS(rows[i], "fp16", 4, 1, 0x7f800000, {0, inf, 1}, {1, -65504, 65504});
        IS(rows[i], "fp16", 4, 1, 0xff800000, {0, inf, -1});
        IS(rows[i], "fp16", 4, -inf, 0xff800000, {0, inf, -1});
        IS(rows[i], "fp16", 4, inf, 0x7f800000, {0, -65504, 65504});
        IS(rows[i], "fp16", 64, 0, 0x7fffffff, {0, inf, 1}, {60, -inf, 1});
        IS(rows[i], "fp16", 64, 0, 0xff800000, {0, -inf, 1}, {60, 1, 1});
    }
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0x7fff, {0, nan, 1});
    IS("hopper-fp16-fp16", "fp16", 16, inf, 0x7fff, {0, -inf, 1});
    IS("hopper-mma-fp8-fp16", "e5m2", 32, 0, 0x7fff, {0, inf, 0});
    IS("hopper-mma-fp8-fp32", "e4m3", 32, 0, 0x7fffffff, {31, nan, 0});
    IS("hopper-wgmma-fp8-fp32", "e5m2", 32, 0, 0x7fffffff, {31, inf, 1}, {2, inf, -1});
    IS("hopper-wgmma-fp8-promoted", "e5m2", 256, -inf, 0x7fffffff, {200, inf, 1});
    IS("ada-fp8-fp32", "e4m3", 32, -nan, 0x7fffffff, {31, 1, 0});
    /* An infinity in one addition meets its opposite in the next: NaN, also with overflow. */
    IS("ampere-bf16-fp32", "bf16", 16, 0, 0x7fffffff, {0, 0x1p127, 2}, {8, -inf, 2});
}

/* Zeros: T = 0, and a T that rounds to zero, are +0, whatever the terms. */
TEST(signs_of_zero)
{
    IS("hopper-bf16-fp32", "bf16", 16, -0.0, 0, {0, -0.0, 1}, {1, 0.0, -1});
    IS("hopper-bf16-fp32", "bf16", 16, 0.0, 0, {0, -0.0, 1});
    IS("hopper-bf16-fp32", "bf16", 16, -1, 0, {0, 1, 1});
    IS("hopper-bf16-fp32:round=down", "bf16", 16, -1, 0, {0, 1, 1});
    IS("hopper-bf16-fp32", "bf16", 16, -1, 0, {0, 0x1p-70, -0x1p-70}, {1, 1, 1});
    /* -2^-150, which is T = -2^8, truncated; the same before another addition */
    IS("hopper-bf16-fp32", "bf16", 16, 0, 0, {0, -0x1p-75, 0x1p-75});
    IS("hopper-bf16-fp32", "bf16", 32, 0, 0, {0, -0x1p-75, 0x1p-75});
    IS("hopper-fp16-fp16", "fp16", 16, 0, 0, {0, -0x1p-24, 0x1p-2});
    IS("hopper-fp16-fp16", "fp16", 16, -0x1p-24, 0x8001, {0, -0x1p-24, 0x1p-2});
    IS("hopper-wgmma-fp8-fp32", "e5m2", 32, -0x1p-149, 0, {0, 0, 1});
    IS("hopper-bf16-fp32", "bf16", 16, 0, 0, {0, 0x1p-75, 0x1p-75});
    IS("hopper-fp16-fp16", "fp16", 16, -0.0, 0, {0, -0.0, 1});
    /* No product: d = c. */
    IS("hopper-bf16-fp32", "bf16", 0, -0.0, 0x80000000, {0, 0, 0});
}

/* Inputs that tell the bounds of the exponent apart; the row has one of them. */
typedef struct probe {
    const char *row, *format;
    pair p[2];
    int copies; /* of p[0] */
    uint64_t none, low, zero;
    int low_is;  /* emin of the result - (F - 18) + 11: -133, -132, -21, -20 */
    int zero_is; /* emin of the result */
} probe;

static const probe probes[] = {
    /* P1, P1b: zero times a large number is no term. */
    {"hopper-bf16-fp32", "bf16", {{0, 0, 0x1p127}, {1, 1, 0x1p-30}}, 1, 0x30800000, 0x30800000, 0x30800000, -133, -126},
    {"hopper-fp16-fp32",
     "fp16",
     {{0, 0, 0x1p15}, {1, 0x1p-13, 0x1p-12}},
     1,
     0x33000000,
     0x33000000,
     0x33000000,
     -133,
     -126},
    /* P2: 16 2^-152. With E >= -126 the unit is 2^-151. */
    {"hopper-bf16-fp32", "bf16", {{0, 0x1p-76, 0x1p-76}, {0, 0, 0}}, 16, 2, 2, 0, -133, -126},
    /* P2d: 2^-149 - 2^-160. Without a bound the unit is 2^-174, and less than 2^-149 is left. With
       E >= -133 it is 2^-158, and 2^-160 is no term. */
    {"hopper-bf16-fp32", "bf16", {{0, 0x1p-75, 0x1p-74}, {1, -0x1p-80, 0x1p-80}}, 1, 0, 1, 1, -133, -126},
    /* P12: 2^-25 + 2^-46 is above the tie at 2^-25: with E >= -21 the unit is 2^-46. */
    {"hopper-fp16-fp16", "fp16", {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-23}}, 1, 1, 1, 0, -21, -14},
    /* P12b: 2^-47 is less than the unit. */
    {"hopper-fp16-fp16", "fp16", {{0, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-24}}, 1, 1, 0, 0, -21, -14},
};

TEST(bounds_of_the_exponent)
{
    for (size_t i = 0; i < COUNT(probes); i++) {
        const probe *t = &probes[i];
        pair p[17];
        for (int j = 0; j < t->copies; j++)
            p[j] = (pair){(size_t)j, t->p[0].a, t->p[0].b};
        p[t->copies] = t->p[1];
        const size_t pairs = t->copies == 16 ? 16 : 2;
        mpsim_model m = parsed(t->row);
        const int row = m.floor;
        ck_assert_msg(row == MPSIM_MODEL_NO_FLOOR || row == t->low_is, "%s: floor %d", t->row, row);
        const uint64_t want = row == MPSIM_MODEL_NO_FLOOR ? t->none : t->low;
        ck_assert_msg(run(&m, t->format, 16, p, pairs, 0) == want, "%s, probe %zu: the row", t->row, i);
        char name[96];
        snprintf(name, sizeof name, "%s:floor=none", t->row);
        m = parsed(name);
        ck_assert_msg(run(&m, t->format, 16, p, pairs, 0) == t->none, "%s, probe %zu", name, i);
        snprintf(name, sizeof name, "%s:floor=%d", t->row, t->low_is);
        m = parsed(name);
        ck_assert_msg(run(&m, t->format, 16, p, pairs, 0) == t->low, "%s, probe %zu", name, i);
        snprintf(name, sizeof name, "%s:floor=%d", t->row, t->zero_is);
        m = parsed(name);
        ck_assert_msg(run(&m, t->format, 16, p, pairs, 0) == t->zero, "%s, probe %zu", name, i);
    }
}

/* Zeros behind the last product change nothing: hardware fills its instruction with them. (Only a
 * -0 may become +0, and a c that has not been aligned yet.) */
TEST(zeros_change_nothing)
{
    enum { LONG = 256 };
    uint64_t seed = test_seed() + 1;
    for (size_t i = 0; i < mpsim_model_count(); i++) {
        mpsim_model m;
        mpsim_format list[16];
        ck_assert(mpsim_model_at(&m, i) == MPSIM_OK);
        if (m.addition != MPSIM_ADDITION_FUSED)
            continue;
        const size_t formats = dot_formats(&m, list, COUNT(list));
        for (size_t round = 0; round < test_scaled(60); round++) {
            const mpsim_format *fa = &list[test_random(&seed) % formats];
            const mpsim_format *fb = &list[test_random(&seed) % formats];
            uint64_t a[LONG] = {0}, b[LONG] = {0}, x = 0, y = 0;
            uint64_t pa[LONG], pb[LONG];
            const size_t n = 1 + (size_t)(test_random(&seed) % 70);
            const int kind = (int)(test_random(&seed) % KINDS);
            verify_kinds_fill(fa, a, fb, b, n, &m.result.format, kind, &seed);
            const uint64_t c = verify_kinds_addend(&m.result.format, kind, &seed);
            dot_pack(fa, pa, 0, a, LONG);
            dot_pack(fb, pb, 0, b, LONG);
            ck_assert(mpsim_dot(&m, fa, pa, fb, pb, n, c, NULL, &x) == MPSIM_OK);
            ck_assert(mpsim_dot(&m, fa, pa, fb, pb, LONG, c, NULL, &y) == MPSIM_OK);
            const double v = mpsim_decode(&m.result.format, x);
            ck_assert_msg(x == y || (v == 0 && y == 0), "%s, %s x %s, %s, n = %zu: %llx, with zeros %llx", m.name,
                          fa->name, fb->name, verify_kinds_name(kind), n, (unsigned long long)x, (unsigned long long)y);
        }
    }
}

/* Where fp8 is widened to fp16 by the compiler, the exponent of a subnormal number is its own: the
 * rows give what they give for the same numbers as fp16 codes, and two formats of fp8 show it. */
TEST(widened_operands)
{
    static const char *const rows[] = {"hopper-mma-fp8-fp32", "hopper-mma-fp8-fp16", "blackwell-mma-fp8-fp32",
                                       "blackwell-mma-fp8-fp16"};
    static const char *const pairs[][2] = {{"e5m2", "e4m3"}, {"e4m3", "e5m2"}, {"e4m3", "e4m3"}, {"e5m2", "e5m2"}};
    enum { N = 32 };
    uint64_t seed = test_seed() + 3;
    const mpsim_format *wide = mpsim_format_find("fp16");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const mpsim_model m = parsed(rows[i]);
        char name[96];
        snprintf(name, sizeof name, "%s:operand-emin=own", rows[i]);
        const mpsim_model own = parsed(name);
        size_t differ = 0;
        for (size_t k = 0; k < COUNT(pairs); k++)
            for (size_t round = 0; round < 300 + test_scaled(700); round++) {
                const mpsim_format *fa = mpsim_format_find(pairs[k][0]);
                const mpsim_format *fb = mpsim_format_find(pairs[k][1]);
                uint8_t a[N], b[N];
                uint16_t wa[N], wb[N];
                uint64_t x = 0, y = 0, z = 0;
                for (size_t j = 0; j < N; j++) {
                    const uint64_t u = test_random(&seed);
                    a[j] = (uint8_t)u;
                    b[j] = (uint8_t)(u >> 8);
                    if (u >> 16 & 1) /* e4m3: zero or subnormal */
                        *(k == 0 ? &b[j] : &a[j]) &= 0x87;
                    if (mpsim_classify(fa, a[j]) < MPSIM_CLASS_ZERO)
                        a[j] &= 0x83;
                    if (mpsim_classify(fb, b[j]) < MPSIM_CLASS_ZERO)
                        b[j] &= 0x83;
                    wa[j] = (uint16_t)exactly(wide, mpsim_decode(fa, a[j]));
                    wb[j] = (uint16_t)exactly(wide, mpsim_decode(fb, b[j]));
                }
                ck_assert(mpsim_dot(&m, fa, a, fb, b, N, 0, NULL, &x) == MPSIM_OK);
                ck_assert(mpsim_dot(&m, wide, wa, wide, wb, N, 0, NULL, &y) == MPSIM_OK);
                ck_assert(mpsim_dot(&own, fa, a, fb, b, N, 0, NULL, &z) == MPSIM_OK);
                ck_assert_msg(x == y, "%s, %s x %s: %llx, of fp16 %llx", m.name, fa->name, fb->name,
                              (unsigned long long)x, (unsigned long long)y);
                differ += x != z;
            }
        ck_assert_msg(differ > 0 || m.result.format.bits == 16, "%s: no operands show it", m.name);
    }
}

/* No exponent of the alignment is too high: what overflows is an infinity in every format. */
TEST(high_floors)
{
    static const char *const formats[] = {"binary64", "binary32", "fp16", "e11m50"};
    static const int floors[] = {1100, 4000, 32000, 32767};
    for (size_t i = 0; i < COUNT(formats); i++)
        for (size_t k = 0; k < COUNT(floors); k++) {
            char name[96];
            snprintf(name, sizeof name, "hopper-fp16-fp32:%s:align=floor", formats[i]);
            mpsim_model m = parsed(name);
            const uint16_t one = 0x3c00, minus = 0xbc00;
            uint64_t d = 0;
            m.floor = (int16_t)floors[k];
            ck_assert(mpsim_dot(&m, mpsim_format_find("fp16"), &one, mpsim_format_find("fp16"), &minus, 1, 0, NULL,
                                &d) == MPSIM_OK);
            const double v = mpsim_decode(&m.result.format, d);
            ck_assert_msg(isinf(v) && v < 0, "%s, floor %d: %a", name, floors[k], v);
        }
}

TEST_MAIN("fused");
