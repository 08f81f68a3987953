/* unit.c -- see unit.h. A table has a quadratic for each value of the leading bits of a fraction; sums are multiples of 2^-40. */
#include "unit.h"

#include "../../gpu/functions/exact.h"

#include <math.h>
#include <string.h>

enum { SEGMENTS = 128, FRACTION = 40, DROP = 8, LESS = 8 };

typedef struct table {
    int index_bits, low_bits; /* of the operand: together 23, sin 21                    */
    double first, width;      /* the range                                              */
    double (*of)(double x);
    int64_t c0[SEGMENTS], c1[SEGMENTS], c2[SEGMENTS];
    int is_filled;
} table;

static double inverse(double x)
{
    return 1 / x;
}
static double inverse_root(double x)
{
    return 1 / sqrt(x);
}
static double quarter_wave(double x)
{
    return sin(1.57079632679489661923 * x);
}

enum { RCP, RSQRT, RSQRT_ODD, ROOT, ROOT_ODD, EX2, LG2, WAVE, TANH, TABLES };
static table tables[TABLES] = {
    [RCP] = {7, 16, 1, 1, inverse, {0}, {0}, {0}, 0},
    [RSQRT] = {6, 17, 1, 1, inverse_root, {0}, {0}, {0}, 0},
    [RSQRT_ODD] = {6, 17, 2, 2, inverse_root, {0}, {0}, {0}, 0},
    [ROOT] = {6, 17, 1, 1, sqrt, {0}, {0}, {0}, 0},
    [ROOT_ODD] = {6, 17, 2, 2, sqrt, {0}, {0}, {0}, 0},
    [EX2] = {6, 17, 0, 1, exp2, {0}, {0}, {0}, 0},
    [LG2] = {6, 17, 1, 1, log2, {0}, {0}, {0}, 0},
    [WAVE] = {6, 15, 0, 1, quarter_wave, {0}, {0}, {0}, 0},
    [TANH] = {7, 16, 0, 8, tanh, {0}, {0}, {0}, 0},
};

/* The quadratic through three points of each segment, rounded. */
static void fill(table *t)
{
    const double h = t->width / (1 << t->index_bits), n = 1 << t->low_bits;
    for (int i = 0; i < 1 << t->index_bits; i++) {
        const double a = t->first + i * h, u = 0.067, v = 0.5, w = 0.933;
        const double fu = t->of(a + u * h), fv = t->of(a + v * h), fw = t->of(a + w * h);
        const double k2 = ((fw - fv) / (w - v) - (fv - fu) / (v - u)) / (w - u);
        const double k1 = (fv - fu) / (v - u) - k2 * (u + v), k0 = fu - k1 * u - k2 * u * u;
        t->c0[i] = llround(ldexp(k0, 28));
        t->c1[i] = llround(ldexp(k1 / n, FRACTION));
        t->c2[i] = llround(ldexp(k2 / n / n, FRACTION + LESS + DROP));
    }
    t->is_filled = 1;
}

/* A multiple of 2^-40. */
static int64_t interpolate(int which, uint32_t operand)
{
    table *t = &tables[which];
    if (!t->is_filled)
        fill(t);
    const uint32_t i = operand >> t->low_bits;
    const int64_t x = operand & ((UINT32_C(1) << t->low_bits) - 1);
    return t->c0[i] * (1 << (FRACTION - 28)) + t->c1[i] * x + (t->c2[i] * ((x * x) >> DROP) >> LESS) + (1 << 15);
}

/* 2^exp sum / 2^40, cut to 24 bits. */
static uint32_t cut(int sign, int64_t sum, int exp)
{
    if (sum <= 0)
        return (uint32_t)sign << 31;
    gpu_real y = gpu_normal(sign, exp + 63 - FRACTION, (uint64_t)sum, 0);
    y.m &= ~(uint64_t)0xffffffffff;
    return gpu_exact_code(y);
}

/* |x| as a fixed-point number with 23 bits below the point, cut. */
static uint64_t fixed(gpu_operand x)
{
    return x.exp >= 0    ? x.exp < 9 ? x.significand << x.exp : (uint64_t)1 << 32
           : x.exp > -24 ? x.significand >> -x.exp
                         : 0;
}

static uint32_t power(gpu_operand x)
{
    const int64_t t = x.sign ? -(int64_t)fixed(x) : (int64_t)fixed(x);
    const int whole = (int)(t >> 23);
    return whole > 127 ? 0x7f800000 : whole < -126 ? 0 : cut(0, interpolate(EX2, (uint32_t)(t & 0x7fffff)), whole);
}

static uint32_t wave(gpu_operand x, int is_cos)
{
    const uint32_t t = x.exp < 24 ? (uint32_t)(x.exp >= 0 ? x.significand << x.exp : fixed(x)) : 0;
    const uint32_t quadrant = (t >> 21 & 3) + (uint32_t)is_cos, low = t & 0x1fffff;
    const uint32_t at = quadrant & 1 ? 0x200000 - low : low;
    const int sign = (int)(quadrant >> 1 & 1) ^ (is_cos ? 0 : x.sign);
    return at == 0x200000 ? (uint32_t)sign << 31 | 0x3f800000
           : at == 0      ? (uint32_t)sign << 31
                          : cut(sign, interpolate(WAVE, at), 0);
}

static uint32_t logarithm(gpu_operand x)
{
    const int64_t whole = (int64_t)x.exp * ((int64_t)1 << FRACTION);
    const int64_t sum = x.significand == 0x800000 ? whole
                                                  : whole + interpolate(LG2, (uint32_t)x.significand & 0x7fffff);
    return sum < 0 ? cut(1, -sum, 0) : cut(0, sum, 0);
}

static uint32_t of_operand(int function, uint32_t code, gpu_operand x)
{
    const uint32_t low = (uint32_t)x.significand & 0x7fffff;
    switch (function) {
    case GPU_RCP:
        return low ? cut(x.sign, interpolate(RCP, low), -x.exp) : gpu_power_of_2(x.sign, -x.exp);
    case GPU_RSQRT:
        return cut(0, interpolate(x.exp & 1 ? RSQRT_ODD : RSQRT, low), -(x.exp >> 1));
    case GPU_SQRT:
        return cut(0, interpolate(x.exp & 1 ? ROOT_ODD : ROOT, low), x.exp >> 1);
    case GPU_EX2:
        return power(x);
    case GPU_LG2:
        return logarithm(x);
    case GPU_TANH:
        return x.exp < -4  ? code
               : x.exp > 2 ? (code & 0x80000000u) | 0x3f800000
                           : cut(x.sign, interpolate(TANH, (uint32_t)(fixed(x) >> 3)), 0);
    default:
        return wave(x, function == GPU_COS);
    }
}

uint32_t test_unit_mufu(int function, uint32_t operand)
{
    const uint32_t x = function == GPU_SIN || function == GPU_COS ? gpu_turns(operand) : operand;
    const uint32_t size = x & 0x7fffffff, sign = x >> 31;
    const int is_root = function == GPU_RSQRT || function == GPU_SQRT || function == GPU_LG2;
    if (size > 0x7f800000)
        return 0x7fffffff;
    if (size == 0x7f800000)
        return gpu_exact_of_infinity((gpu_function)function, x & 0x80000000u);
    if (size < 0x800000)
        return function == GPU_TANH ? x : gpu_exact_of_zero((gpu_function)function, x & 0x80000000u);
    if (sign && is_root)
        return 0x7fffffff;
    const gpu_operand o = {(int)sign, (int)(size >> 23) - 127, (size & 0x7fffff) | 0x800000};
    return of_operand(function, x, o);
}

/* ---- 16 bits: of the same number in binary32, cut ---- */

static uint32_t fp16_as_binary32(uint32_t x)
{
    const uint32_t size = x & 0x7fff, sign = (x & 0x8000) << 16;
    const float below = (float)size * 0x1p-24f;
    uint32_t code;
    memcpy(&code, &below, sizeof code);
    return sign | (size >= 0x7c00 ? 0x7f800000 | (size & 0x3ff) << 13
                   : size < 0x400 ? code
                                  : (size << 13) + 0x38000000);
}

static uint32_t cut_to_fp16(uint32_t y)
{
    const uint32_t size = y & 0x7fffffff, sign = y >> 16 & 0x8000, lower = 126 - (size >> 23);
    if (size >= 0x47800000)
        return size > 0x7f800000 ? 0x7fff : sign | (size == 0x7f800000 ? 0x7c00 : 0x7bff);
    if (size < 0x38800000)
        return sign | (lower > 31 ? 0 : ((size & 0x7fffff) | 0x800000) >> lower);
    return sign | (size - 0x38000000) >> 13;
}

static uint32_t of_half(int is_bf16, int function, uint32_t x)
{
    return is_bf16 ? test_unit_mufu(function, x << 16) >> 16
                   : cut_to_fp16(test_unit_mufu(function, fp16_as_binary32(x)));
}

static int mufu(const void *of, int function, uint32_t x, uint32_t *y)
{
    (void)of;
    *y = test_unit_mufu(function, x);
    return 0;
}

uint32_t test_unit(int operation, uint32_t a, uint32_t b)
{
    uint32_t y = 0;
    if (operation < 15 || operation > 22) {
        test_around_mufu(operation, a, b, mufu, 0, &y);
        return y;
    }
    const int function = operation & 1 ? GPU_EX2 : GPU_TANH, is_bf16 = (operation - 15) % 4 >= 2;
    return operation < 19 ? of_half(is_bf16, function, a)
                          : of_half(is_bf16, function, a >> 16) << 16 | of_half(is_bf16, function, a & 0xffff);
}
