/* peaks.c -- see peaks.h. */
#include "peaks.h"

#include <string.h>

static const uint32_t infinity = 0x7f800000;

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void peak_add(peak *p, const float *x, size_t n)
{
    peak q = *p;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], sizeof u);
        u &= 0x7fffffff;
        q.finite = larger(q.finite, u < infinity ? u : 0);
        q.number = larger(q.number, u <= infinity ? u : 0);
        q.all = larger(q.all, u);
    }
    *p = q;
}

void peak_merge(peak *to, const peak *from)
{
    to->finite = larger(to->finite, from->finite);
    to->number = larger(to->number, from->number);
    to->all = larger(to->all, from->all);
}

static void share(_Atomic uint32_t *to, uint32_t u)
{
    uint32_t others = atomic_load_explicit(to, memory_order_relaxed);
    while (u > others && !atomic_compare_exchange_weak(to, &others, u))
        continue;
}

void peak_share(shared_peak *to, const peak *p)
{
    share(&to->finite, p->finite);
    share(&to->number, p->number);
    share(&to->all, p->all);
}

peak peak_of(shared_peak *p)
{
    return (peak){atomic_load(&p->finite), atomic_load(&p->number), atomic_load(&p->all)};
}

float peak_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
