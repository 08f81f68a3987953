/* points.c -- see points.h. */
#include "points.h"

#include "support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void points_init(points *p, int width)
{
    *p = (points){.width = width};
}

void points_clear(points *p)
{
    free(p->u);
    points_init(p, p->width);
}

void points_push(points *p, uint64_t u)
{
    if (p->n == p->room) {
        p->room = p->room ? 2 * p->room : 1024;
        p->u = realloc(p->u, p->room * sizeof *p->u);
        ck_assert(p->u != NULL);
    }
    p->u[p->n++] = u;
}

static void push_both(points *p, uint64_t magnitude)
{
    points_push(p, magnitude);
    points_push(p, magnitude | (uint64_t)1 << (p->width - 1));
}

void points_near(points *p, double v, int steps)
{
    v = fabs(v);
    if (isnan(v))
        return;
    const uint64_t top = p->width == 32 ? 0x7f800000u : 0x7ff0000000000000u;
    const uint64_t u = p->width == 64 ? bits_of_f64(v) : v > (double)FLT_MAX ? top : bits_of_f32((float)v);
    for (int k = -steps; k <= steps; k++) {
        const uint64_t w = u + (uint64_t)(int64_t)k;
        if (w <= top) /* below zero wraps around */
            push_both(p, w);
    }
}

void points_specials(points *p)
{
    /* clang-format off */
    static const uint32_t of32[] = {0, 1, 2, 3, 0x00400000, 0x007fffff, 0x00800000, 0x00800001,
                                    0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001,
                                    0x7fffffff, 0x7fbfffff, 0x7fa00000, 0x7fe12345, 0x7f802000};
    /* clang-format on */
    static const uint64_t of64[] = {0,
                                    1,
                                    2,
                                    3,
                                    0x0008000000000000,
                                    0x000fffffffffffff,
                                    0x0010000000000000,
                                    0x0010000000000001,
                                    0x3ff0000000000000,
                                    0x36a0000000000000,
                                    0x3690000000000000,
                                    0x3690000000000001,
                                    0x380fffffffffffff,
                                    0x3810000000000000,
                                    0x47efffffe0000000,
                                    0x47efffffefffffff,
                                    0x47effffff0000000,
                                    0x47f0000000000000,
                                    0x7fefffffffffffff,
                                    0x7ff0000000000000,
                                    0x7ff8000000000000,
                                    0x7ff0000000000001,
                                    0x7fffffffffffffff,
                                    0x7ff7ffffffffffff,
                                    0x7ff0000010000000,
                                    0x7ff000001fffffff,
                                    0x7ff4000000000000};
    if (p->width == 32)
        for (size_t i = 0; i < sizeof of32 / sizeof of32[0]; i++)
            push_both(p, of32[i]);
    else
        for (size_t i = 0; i < sizeof of64 / sizeof of64[0]; i++)
            push_both(p, of64[i]);
}

/* A magnitude of the format, and the midpoint to the next one. */
static void code_and_midpoint(points *p, const mpsim_format *f, uint64_t magnitude, double scale)
{
    const double a = mpsim_decode(f, magnitude);
    const double b = magnitude < f->max_finite ? mpsim_decode(f, magnitude + 1) : a + mpsim_ulp(f, magnitude);
    points_near(p, a / scale, 2);
    points_near(p, (a + (b - a) / 2) / scale, 2);
    if (p->width == 64) { /* what a detour through binary32 would take for the midpoint */
        points_near(p, (a + (b - a) / 2) / scale * (1 + 0x1p-30), 0);
        points_near(p, (a + (b - a) / 2) / scale * (1 - 0x1p-30), 0);
    }
}

void points_codes(points *p, const mpsim_format *f, double scale, size_t most, uint64_t *state)
{
    const uint64_t last = f->max_finite;
    if (last < most) {
        for (uint64_t m = 0; m <= last; m++)
            code_and_midpoint(p, f, m, scale);
    } else {
        for (uint64_t m = 0; m < 12; m++) {
            code_and_midpoint(p, f, m, scale);
            code_and_midpoint(p, f, last - m, scale);
        }
        for (uint64_t k = 1; k < 3; k++) /* the ends of the first two binades */
            for (uint64_t d = 0; d < 5; d++)
                code_and_midpoint(p, f, ((k << f->mbits) + d - 2) % last, scale);
        for (size_t i = 0; i < most; i++) {
            const uint64_t m = test_random(state) % last;
            code_and_midpoint(p, f, i % 4 ? m : m >> f->mbits << f->mbits, scale);
        }
    }
    const double max = mpsim_format_max(f), least = mpsim_format_min_positive(f);
    const double of[] = {max * 1.5, max * 2, max * 4, max + mpsim_ulp(f, last), least / 4, least * 0.75};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        points_near(p, of[i] / scale, 2);
}

void points_stride(points *p, size_t n, uint64_t stride, uint64_t *state)
{
    uint64_t u = test_random(state);
    for (size_t i = 0; i < n; i++, u += stride)
        points_push(p, p->width == 32 ? (uint32_t)u : u << 32 | (test_random(state) & 0xffffffffu));
}

void points_ordinary(points *p, size_t n, int centre, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0; /* of 8 uniform numbers: nearly normal */
        for (int k = 0; k < 4; k++) {
            const uint64_t w = test_random(state);
            sum += ((double)(w & 0xffffffffu) + (double)(w >> 32)) * 0x1p-32 - 1;
        }
        const double v = ldexp(sum, centre);
        points_push(p, p->width == 32 ? bits_of_f32(fabs(v) > (double)FLT_MAX ? FLT_MAX : (float)v) : bits_of_f64(v));
    }
}

void points_shuffle(points *p, uint64_t *state)
{
    for (size_t i = p->n; i > 1; i--) {
        const size_t k = test_random(state) % i;
        const uint64_t u = p->u[k];
        p->u[k] = p->u[i - 1];
        p->u[i - 1] = u;
    }
}

double points_value(const points *p, size_t i)
{
    return p->width == 32 ? (double)f32_of_bits((uint32_t)p->u[i]) : f64_of_bits(p->u[i]);
}

void points_store(const points *p, void *to, size_t n)
{
    const size_t size = (size_t)p->width / 8;
    for (size_t i = 0; i < n; i++)
        code_store((unsigned char *)to + i * size, size, p->u[i]);
}

uint64_t points_encode(const points *p, size_t i, const mpsim_format *f, const mpsim_rounding *r, uint32_t random,
                       unsigned *flags)
{
    return p->width == 32 ? mpsim_encode_f32(f, r, f32_of_bits((uint32_t)p->u[i]), random, flags)
                          : mpsim_encode_f64(f, r, f64_of_bits(p->u[i]), random, flags);
}
