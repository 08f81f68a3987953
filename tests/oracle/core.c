/* core.c -- see core.h. */
#include "core.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *architecture;
    oracle_core core;
} cores[] = {
    {"hopper", {"fp16", 16, 25, 23}},    {"hopper", {"bf16", 16, 25, 23}},    {"hopper", {"tf32", 8, 25, 23}},
    {"hopper", {"e4m3", 32, 13, 13}},    {"hopper", {"e5m2", 32, 13, 13}},    {"volta", {"fp16", 4, 23, 23}},
    {"ampere", {"fp16", 8, 24, 23}},     {"ampere", {"bf16", 8, 24, 23}},     {"ampere", {"tf32", 4, 24, 23}},
    {"ada", {"bf16", 8, 24, 23}},        {"ada", {"e4m3", 16, 13, 13}},       {"ada", {"e5m2", 16, 13, 13}},
    {"blackwell", {"fp16", 16, 25, 23}}, {"blackwell", {"bf16", 16, 25, 23}}, {"blackwell", {"tf32", 8, 25, 23}},
    {"blackwell", {"e4m3", 32, 25, 23}}, {"blackwell", {"e5m2", 32, 25, 23}},
};

const oracle_core *oracle_core_of(const char *architecture, const char *operand)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcmp(cores[i].architecture, architecture) == 0 && strcmp(cores[i].core.operands, operand) == 0)
            return &cores[i].core;
    return NULL;
}

const oracle_core *oracle_core_find(const char *operand)
{
    return oracle_core_of("hopper", operand);
}

oracle_part oracle_take_apart(const oracle_format *f, float x)
{
    oracle_part p = {x, 0, f->emin};
    if (!isfinite(x) || x == 0)
        return p;
    int e;
    (void)frexpf(x, &e);
    if (e - 1 > f->emin)
        p.exponent = e - 1;
    p.significand = (int32_t)ldexpf(x, f->precision - 1 - p.exponent);
    return p;
}

/* A magnitude in units of 2^(unit), from one in units of 2^(own): cut off. */
static int64_t aligned(int64_t s, int own, int unit)
{
    const int64_t m = s < 0 ? -s : s;
    const int shift = unit - own;
    const int64_t y = shift <= 0 ? m << -shift : shift > 62 ? 0 : m >> shift;
    return s < 0 ? -y : y;
}

static float cut(int64_t sum, int unit, int kept)
{
    uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
    int top = -1;
    while (m >> (top + 1) && top < 62)
        top++;
    int lowest = (top + unit > -126 ? top + unit : -126) - kept;
    if (lowest > unit) {
        m = lowest - unit > 62 ? 0 : m >> (lowest - unit);
    } else {
        lowest = unit;
    }
    const double y = ldexp((double)m, lowest);
    if (m == 0)
        return 0;
    return y >= 0x1p128 ? copysignf(INFINITY, (float)sum) : (float)copysign(y, (double)sum);
}

/* 1 and the result if a product or the accumulator is infinite or NaN. */
static int special(float s, const oracle_part *a, size_t sa, const oracle_part *b, size_t sb, size_t n, float *result)
{
    int finite = isfinite(s);
    double sum = isfinite(s) ? 0 : (double)s;
    for (size_t i = 0; i < n; i++) {
        const double x = (double)a[i * sa].value, y = (double)b[i * sb].value;
        if (isfinite(x) && isfinite(y))
            continue;
        finite = 0;
        sum += x * y;
    }
    *result = (float)sum;
    return !finite;
}

/* One addition. */
static float add(const oracle_core *c, float s, int pa, const oracle_part *a, size_t sa, int pb, const oracle_part *b,
                 size_t sb, size_t n)
{
    static const oracle_format binary32 = {"binary32", 24, -126, 0, 1};
    float result;
    if (special(s, a, sa, b, sb, n, &result))
        return result;
    const oracle_part own = oracle_take_apart(&binary32, s);
    int most = -100000;
    if (own.significand)
        most = own.exponent;
    for (size_t i = 0; i < n; i++)
        if (a[i * sa].significand && b[i * sb].significand && a[i * sa].exponent + b[i * sb].exponent > most)
            most = a[i * sa].exponent + b[i * sb].exponent;
    const int unit = most - c->fraction;
    int64_t sum = own.significand ? aligned(own.significand, own.exponent - 23, unit) : 0;
    for (size_t i = 0; i < n; i++) {
        const oracle_part x = a[i * sa], y = b[i * sb];
        if (x.significand && y.significand)
            sum += aligned((int64_t)x.significand * y.significand, x.exponent - pa + 1 + y.exponent - pb + 1, unit);
    }
    return sum ? cut(sum, unit, c->kept) : 0;
}

float core_dot(const oracle_core *c, int precision_a, const oracle_part *a, size_t stride_a, int precision_b,
               const oracle_part *b, size_t stride_b, size_t n)
{
    return core_dot_from(c, 0, precision_a, a, stride_a, precision_b, b, stride_b, n);
}

float core_dot_from(const oracle_core *c, float s, int precision_a, const oracle_part *a, size_t stride_a,
                    int precision_b, const oracle_part *b, size_t stride_b, size_t n)
{
    const size_t length = c->length ? (size_t)c->length : 1;
    for (size_t k = 0; k < n; k += length) {
        const oracle_part *x = a + k * stride_a, *y = b + k * stride_b;
        const size_t now = n - k < length ? n - k : length;
        if (c->length)
            s = add(c, s, precision_a, x, stride_a, precision_b, y, stride_b, now);
        else
            s = c->kept == 1 ? fmaf(x->value, y->value, s) : s + x->value * y->value;
    }
    return s;
}
