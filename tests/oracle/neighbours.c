/* neighbours.c -- see neighbours.h. */
#include "neighbours.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one format, the last that was asked about: the codes that are not NaN, by value; order[rank[code]] == code. */
enum { CODES = 1 << 19 };
static const oracle_format *sorted;
static uint32_t order[CODES], rank[CODES];
static size_t ordered;

static uint64_t low_bits(const oracle_format *of)
{
    return of->bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << of->bits) - 1;
}

/* -0 before +0: from below, nextUp arrives at -0, and nextDown at +0 from above. */
static int by_value(const void *a, const void *b)
{
    const uint32_t ca = *(const uint32_t *)a, cb = *(const uint32_t *)b;
    const double va = oracle_decode(sorted, ca), vb = oracle_decode(sorted, cb);
    if (va != vb)
        return va < vb ? -1 : 1;
    return !!signbit(vb) - !!signbit(va);
}

static void sort_codes(const oracle_format *of)
{
    assert(of->bits <= 19);
    sorted = of;
    ordered = 0;
    for (size_t c = 0; c < (size_t)1 << of->bits; c++)
        if (oracle_classify(of, c) != ORACLE_NAN)
            order[ordered++] = (uint32_t)c;
    qsort(order, ordered, sizeof *order, by_value);
    for (size_t i = 0; i < ordered; i++)
        rank[order[i]] = (uint32_t)i;
}

/* The formats without a list are two of C's own types. */
static uint64_t next_of_c_type(const oracle_format *of, uint64_t code, double toward)
{
    if (of->bits == 32) {
        const uint32_t u = (uint32_t)code;
        float x;
        memcpy(&x, &u, sizeof x);
        x = nextafterf(x, (float)toward);
        uint32_t v;
        memcpy(&v, &x, sizeof v);
        return v;
    }
    double x;
    memcpy(&x, &code, sizeof x);
    x = nextafter(x, toward);
    uint64_t v;
    memcpy(&v, &x, sizeof v);
    return v;
}

static uint64_t next(const oracle_format *of, uint64_t code, int direction)
{
    code &= low_bits(of);
    if (oracle_classify(of, code) == ORACLE_NAN)
        return code;
    if (!of->values)
        return next_of_c_type(of, code, direction * (double)INFINITY);
    if (sorted != of)
        sort_codes(of);
    const double x = oracle_decode(of, code);
    for (size_t i = rank[code];;) {
        if (direction > 0 ? i + 1 == ordered : i == 0)
            return code;
        i = direction > 0 ? i + 1 : i - 1;
        const double y = oracle_decode(of, order[i]);
        if (direction > 0 ? y > x : y < x)
            return order[i];
    }
}

uint64_t oracle_next_up(const oracle_format *of, uint64_t code)
{
    return next(of, code, 1);
}

uint64_t oracle_next_down(const oracle_format *of, uint64_t code)
{
    return next(of, code, -1);
}

double oracle_ulp(const oracle_format *of, uint64_t code)
{
    const double y = fabs(oracle_decode(of, code));
    if (!isfinite(y))
        return y;
    const uint64_t sign = of->is_signed ? (uint64_t)1 << (of->bits - 1) : 0, i = code & low_bits(of) & ~sign;
    const double above = oracle_magnitude(of, i + 1);
    if (isfinite(above))
        return above - y;
    /* 2^1024: take the predecessor, in the same binade unless y is a power of two */
    return of->precision == 1 ? y : y - oracle_magnitude(of, i - 1);
}
