/* amax.c -- see amax.h. */
#include "amax.h"

#include <string.h>

static const uint32_t infinity = 0x7f800000;

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t magnitude(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u & 0x7fffffff;
}

/* The largest, of several that do not wait for each other. */
static uint32_t largest(const float *x, size_t n)
{
    enum { SIDE_BY_SIDE = 8 };
    int32_t m[SIDE_BY_SIDE] = {0};
    size_t i = 0;
    for (; i + SIDE_BY_SIDE <= n; i += SIDE_BY_SIDE)
        for (size_t k = 0; k < SIDE_BY_SIDE; k++) {
            const int32_t u = (int32_t)magnitude(x[i + k]);
            m[k] = u > m[k] ? u : m[k];
        }
    uint32_t all = 0;
    for (size_t k = 0; k < SIDE_BY_SIDE; k++)
        all = larger(all, (uint32_t)m[k]);
    for (; i < n; i++)
        all = larger(all, magnitude(x[i]));
    return all;
}

void pass_amax3_add(amax3 *p, const float *x, size_t n)
{
    const uint32_t all = largest(x, n);
    amax3 q = {all, all, all};
    if (all >= infinity)
        q.finite = q.number = 0;
    for (size_t i = 0; all >= infinity && i < n; i++) {
        const uint32_t u = magnitude(x[i]);
        q.finite = larger(q.finite, u < infinity ? u : 0);
        q.number = larger(q.number, u <= infinity ? u : 0);
    }
    pass_amax3_merge(p, &q);
}

void pass_amax3_merge(amax3 *to, const amax3 *from)
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

void pass_amax3_share(shared_amax3 *to, const amax3 *p)
{
    share(&to->finite, p->finite);
    share(&to->number, p->number);
    share(&to->all, p->all);
}

amax3 pass_amax3_of(shared_amax3 *p)
{
    return (amax3){atomic_load(&p->finite), atomic_load(&p->number), atomic_load(&p->all)};
}

float pass_amax3_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
