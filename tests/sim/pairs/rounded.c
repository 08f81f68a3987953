/* rounded.c -- pairs of narrower formats, and of sums in other orders and precisions. */
#include "sim/pairs/pairs.h"

#include "support/support.h"

#include <math.h>
#include <stdbool.h>

#define DEPTH 256

static double unit(uint64_t *random) { return (double)(test_random(random) >> 11) * 0x1p-53; }

static void each(pair_tensor *b, const char *format)
{
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = pair_rounded(format, b->x[i]);
}

/* B stored in another format. */
#define STORED(name, format_) \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) { (void)a, (void)random, b->format = format_; }
STORED(to_bf16, "bf16")
STORED(to_fp16, "fp16")
STORED(to_e4m3, "e4m3")
STORED(to_e5m2, "e5m2")
STORED(to_binary64, "binary64")

/* B rounded, and stored as A is. */
#define WIDENED(name, format) \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) { (void)a, (void)random, each(b, format); }
WIDENED(through_bf16, "bf16")
WIDENED(through_fp16, "fp16")
WIDENED(through_tf32, "tf32")
WIDENED(through_e4m3, "e4m3")

static void twice(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    each(b, "fp16");
    each(b, "bf16");
}

static void truncated(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = (double)f32_of_bits(bits_of_f32((float)b->x[i]) & 0xffff0000u);
}

static void stochastic(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = (double)f32_of_bits((bits_of_f32((float)b->x[i]) + (uint32_t)(test_random(random) & 0xffff)) &
                                      0xffff0000u);
}

static double largest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

static void scaled_each(double *x, size_t n, const char *format, double most)
{
    const double s = largest(x, n) / most;
    for (size_t i = 0; i < n; i++)
        x[i] = pair_rounded("binary32", pair_rounded(format, x[i] / s) * s);
}

static void e4m3_tensor(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    scaled_each(b->x, b->n, "e4m3", 448);
}

static void e4m3_rows(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    for (size_t r = 0; r < b->shape[0]; r++)
        scaled_each(b->x + r * b->shape[1], b->shape[1], "e4m3", 448);
}

static void int8_tensor(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    const double s = largest(b->x, b->n) / 127;
    (void)a, (void)random;
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = nearbyint(b->x[i] / s) * s;
}

static void mxfp4(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    for (size_t k = 0; k < b->n; k += 16) {
        const double s = exp2(floor(log2(largest(b->x + k, 16))) - 2);
        for (size_t i = k; i < k + 16; i++)
            b->x[i] = s * fmax(-6, fmin(6, pair_rounded("e2m1", b->x[i] / s)));
    }
}

/* Normal numbers, and the same rounded to a format. */
static void operand(double *x, double *rounded, size_t n, uint64_t *random, const char *format)
{
    for (size_t i = 0; i < n; i++)
        x[i] = pair_rounded("binary32", pair_normal(random));
    for (size_t i = 0; i < n; i++)
        rounded[i] = pair_rounded(format, x[i]);
}

/* Sums of products up and exact, or down and in binary32. */
static double summed(const double *x, const double *y, bool exact)
{
    double d = 0;
    for (size_t i = 0; i < DEPTH; i++) {
        const size_t k = exact ? i : DEPTH - 1 - i;
        d = exact ? d + x[k] * y[k] : (double)(float)(d + x[k] * y[k]);
    }
    return d;
}

/* Products of 64 rows and 48 columns: A exact and rounded once; B of operands rounded to a format, sums exact or not,
 * results rounded to another format. */
static void product(pair_tensor *a, pair_tensor *b, uint64_t *random, const char *of, bool exact, const char *result)
{
    static double u[64 * DEPTH], v[48 * DEPTH], ru[64 * DEPTH], rv[48 * DEPTH];
    pair_shape(a, "binary32", 64, 48), pair_shape(b, "binary32", 64, 48);
    operand(u, ru, 64 * DEPTH, random, of), operand(v, rv, 48 * DEPTH, random, of);
    for (size_t i = 0; i < a->n; i++) {
        const size_t r = i / 48 * DEPTH, c = i % 48 * DEPTH;
        a->x[i] = summed(u + r, v + c, true);
        b->x[i] = pair_rounded(result, summed(ru + r, rv + c, exact));
    }
}

#define PRODUCT(name, of, exact, result) \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) { product(a, b, random, of, exact, result); }
PRODUCT(product_f32, "binary32", false, "binary32")
PRODUCT(product_bf16, "bf16", true, "bf16")
PRODUCT(product_bf16_f32, "bf16", true, "binary32")
PRODUCT(product_fp16, "fp16", true, "fp16")
PRODUCT(product_tf32, "tf32", true, "binary32")
PRODUCT(product_e4m3, "e4m3", true, "bf16")

/* Sums of 32 numbers each, by two orders, in one format. */
static void sums(pair_tensor *a, pair_tensor *b, uint64_t *random, const char *format)
{
    double x[32];
    pair_shape(a, format, 48, 16), pair_shape(b, format, 48, 16);
    for (size_t i = 0; i < a->n; i++) {
        double up = 0, down = 0;
        for (size_t k = 0; k < 32; k++)
            x[k] = pair_rounded(format, pair_normal(random));
        for (size_t k = 0; k < 32; k++)
            up = pair_rounded(format, up + x[k]);
        for (size_t k = 32; k-- > 0;)
            down = pair_rounded(format, down + x[k]);
        a->x[i] = up, b->x[i] = down;
    }
}

#define SUMS(name, format) \
    static void name(pair_tensor *a, pair_tensor *b, uint64_t *random) { sums(a, b, random, format); }
SUMS(sums_f32, "binary32")
SUMS(sums_bf16, "bf16")
SUMS(sums_fp16, "fp16")

/* bf16 sums of which one element in a hundred was rounded the other way. */
static void few_bf16(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a;
    for (size_t i = 0; i < b->n; i++)
        if (unit(random) < 0.01)
            b->x[i] *= 1 + 0x1p-8;
}

static void one_last_bit(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)a, (void)random;
    b->x[1000] = (double)f32_of_bits(bits_of_f32((float)b->x[1000]) ^ 1);
}

static void rope_bf16(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    pair_shape(a, "binary32", 64, 0), pair_shape(b, "binary32", 64, 0);
    for (size_t i = 0; i < 64; i++)
        a->x[i] = pow(10000, -(double)i / 64), b->x[i] = pair_rounded("bf16", a->x[i]);
}

static void positions_bf16(pair_tensor *a, pair_tensor *b, uint64_t *random)
{
    (void)random;
    pair_shape(a, "binary32", 1024, 0), pair_shape(b, "binary32", 1024, 0);
    for (size_t i = 0; i < 1024; i++)
        a->x[i] = (double)i, b->x[i] = pair_rounded("bf16", (double)i);
}

#define ROW(n, c, right_, near_, base_, f)                                              \
    {                                                                                   \
        .name = n, .cause = c, .right = right_, .near = near_, .base = base_, .make = f \
    }
#define OUTPUT(n, c, right_, near_, f)                                                                            \
    {                                                                                                             \
        .name = n, .cause = c, .right = right_, .near = near_, .base = pair_empty, .make = f, .fqn = "out:layers" \
    }

/* clang-format off */
const pair pairs_rounded[] = {
    ROW("bf16", "stored as bf16", "rounded", "", pair_weight, to_bf16),
    ROW("fp16", "stored as fp16, some of it subnormal", "rounded", "", pair_gradient, to_fp16),
    ROW("e4m3", "stored as e4m3 without a scale", "rounded", "", pair_hidden, to_e4m3),
    ROW("e5m2", "stored as e5m2 without a scale", "rounded", "", pair_hidden, to_e5m2),
    ROW("binary64", "stored as binary64", "dtype", "", pair_weight, to_binary64),
    ROW("bf16 widened", "through bf16", "rounded", "computed", pair_weight, through_bf16),
    ROW("fp16 widened", "through fp16", "rounded", "computed", pair_weight, through_fp16),
    ROW("tf32 widened", "through tf32", "rounded", "computed", pair_weight, through_tf32),
    ROW("e4m3 widened", "through e4m3", "rounded", "computed", pair_hidden, through_e4m3),
    ROW("two roundings", "through fp16, then bf16", "rounded computed", "", pair_weight, twice),
    ROW("truncated", "bf16 by cutting bits", "rounded", "computed", pair_weight, truncated),
    ROW("stochastic", "bf16 by stochastic rounding", "rounded", "computed", pair_weight, stochastic),
    ROW("e4m3 by tensor", "e4m3 with one scale, dequantised", "rounded", "", pair_weight, e4m3_tensor),
    ROW("e4m3 by rows", "e4m3 with a scale for each row, dequantised", "rounded", "", pair_weight, e4m3_rows),
    ROW("int8", "8-bit integers with one scale, dequantised", "", "rounded", pair_weight, int8_tensor),
    ROW("mxfp4", "blocks of 4 bits, dequantised", "", "computed", pair_weight, mxfp4),
    ROW("inverse frequencies", "rotary frequencies through bf16", "rounded", "computed", pair_empty, rope_bf16),
    ROW("positions", "positions through bf16", "rounded", "computed", pair_empty, positions_bf16),

    OUTPUT("product, binary32", "a product added in another order", "sum-order", "", product_f32),
    OUTPUT("product, bf16", "computed in bf16 and widened", "computed", "", product_bf16),
    OUTPUT("product, bf16, sums", "operands of bf16, sums of binary32", "computed", "", product_bf16_f32),
    OUTPUT("product, fp16", "computed in fp16 and widened", "computed", "", product_fp16),
    OUTPUT("product, tf32", "operands of tf32, sums of binary32", "computed", "", product_tf32),
    OUTPUT("product, e4m3", "operands of e4m3, results of bf16", "computed", "", product_e4m3),
    OUTPUT("sums, binary32", "sums in another order", "sum-order", "", sums_f32),
    OUTPUT("sums, bf16", "sums of bf16 in another order", "sum-order", "", sums_bf16),
    OUTPUT("sums, fp16", "sums of fp16 in another order", "sum-order", "", sums_fp16),
    {.name = "few sums, bf16", .cause = "one sum in a hundred rounded the other way", .right = "sum-order", .near = "",
     .base = pair_gradient_bf16, .make = few_bf16, .fqn = "wgrad:layers"},
    {.name = "last bit of a gradient", .cause = "one sum of binary32 in another order", .right = "sum-order",
     .near = "", .base = pair_gradient, .make = one_last_bit, .fqn = "wgrad:layers"},
    {.name = "last bit of a weight", .cause = "one update of binary32 rounded the other way", .right = "sum-order",
     .near = "", .base = pair_weight, .make = one_last_bit},
    {.name = NULL},
};
/* clang-format on */
