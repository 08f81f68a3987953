/* replay.c -- see replay.h. */
#include "replay.h"

#include "support/support.h"

#include <math.h>

const grid fp32 = {"binary32", 24, -126, 0x1.fffffep127, 0};
const grid fp16 = {"fp16", 11, -14, 65504, 0};
const grid bf16 = {"bf16", 8, -126, 0x1.fep127, 0};
const grid e4m3 = {"e4m3", 4, -6, 448, 1};
const grid e5m2 = {"e5m2", 3, -14, 57344, 1};

double fit(const grid *g, double x, int *over)
{
    int e;
    if (x == 0 || isnan(x) || (isinf(x) && !g->saturates))
        return x;
    if (isinf(x))
        return copysign(g->max, x);
    frexp(x, &e);
    const double q = ldexp(1, (e - 1 < g->least ? g->least : e - 1) - g->bits + 1);
    const double y = rint(x / q) * q;
    if (fabs(y) <= g->max)
        return y;
    if (over)
        *over = 1;
    return copysign(g->saturates ? g->max : (double)INFINITY, x);
}

uint64_t bits16(const grid *g, double x)
{
    if (g->bits == 8)
        return bits_of_f32((float)x) >> 16;
    const uint64_t sign = signbit(x) ? 0x8000 : 0;
    int e;
    if (isnan(x))
        return sign | 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    x = fabs(x);
    if (x < 0x1p-14)
        return sign | (uint64_t)(x * 0x1p24);
    const double m = frexp(x, &e);
    return sign | (uint64_t)(e - 1 + 15) << 10 | ((uint64_t)(m * 2048) & 0x3ff);
}

static uint64_t random_state = 20240701;

float random_float(void)
{
    const double u = (double)(test_random(&random_state) >> 11) * 0x1p-53;
    const double e = (double)(test_random(&random_state) % 12);
    return (float)((2 * u - 1) * pow(2, -e));
}
