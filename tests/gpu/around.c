/* around.c -- what ptxas of CUDA 13.0 writes around MUFU for sm_90, read from its machine code by nvdisasm:
 *
 *   ftz, tanh       MUFU alone
 *   sin, cos        MUFU behind FMUL.RZ by 1 / (2 pi), which is taken for a part of the function here
 *   rcp             x s, MUFU, times s: s = 2^24 below 2^-126, 1/4 above 2^126
 *   rsqrt, sqrt     below 2^-126: of x 2^24, times 2^12 or 2^-12
 *   lg2             below 2^-126: of x 2^24, minus 24
 *   ex2             below -126 (NaNs, too): of x / 2, squared
 *   div.approx      a MUFU(b); without ftz below 2^-126 a and b times 2^24
 *   div.full        the same, above 2^126 a and b by 4
 *
 * Products and sums are IEEE's to nearest, with .FTZ where the instruction has it. */
#include "unit.h"

#include "../../gpu/functions/exact.h"

#include <string.h>

static float number(uint32_t code)
{
    float x;
    memcpy(&x, &code, sizeof x);
    return x;
}

/* NaNs are 7fffffff, as the device's arithmetic gives them. */
static uint32_t code(float x)
{
    uint32_t c;
    memcpy(&c, &x, sizeof c);
    return x != x ? 0x7fffffff : c;
}

static uint32_t flushed(uint32_t c)
{
    return (c & 0x7fffffff) < 0x800000 ? c & 0x80000000u : c;
}

static uint32_t product(uint32_t a, uint32_t b, int ftz)
{
    return ftz ? flushed(code(number(flushed(a)) * number(flushed(b)))) : code(number(a) * number(b));
}

static int is_below(uint32_t x)
{
    return (x & 0x7fffffff) < 0x800000;
}

static int is_above(uint32_t x)
{
    const uint32_t size = x & 0x7fffffff;
    return size > 0x7e800000 && size <= 0x7f800000;
}

enum { POWER_24 = 0x4b800000, POWER_12 = 0x45800000, POWER_M12 = 0x39800000, QUARTER = 0x3e800000, ONE = 0x3f800000 };

static int reciprocal(uint32_t x, test_mufu *mufu, const void *of, uint32_t *y)
{
    const uint32_t s = is_above(x) ? QUARTER : is_below(x) ? POWER_24 : ONE;
    const int lacks = mufu(of, GPU_RCP, product(x, s, 0), y);
    *y = product(*y, s, 0);
    return lacks;
}

/* x 2^24 where that is not normal, then something. */
static int scaled(int function, uint32_t x, test_mufu *mufu, const void *of, uint32_t *y)
{
    const int below = is_below(x);
    const int lacks = mufu(of, function, below ? product(x, POWER_24, 0) : x, y);
    if (below && function == GPU_LG2)
        *y = code(number(*y) - 24.0f);
    else if (below)
        *y = product(*y, function == GPU_SQRT ? POWER_M12 : POWER_12, 0);
    return lacks;
}

static int power(uint32_t x, test_mufu *mufu, const void *of, uint32_t *y)
{
    const int low = !(number(x) >= -126.0f);
    const int lacks = mufu(of, GPU_EX2, low ? code(number(x) * 0.5f) : x, y);
    if (low)
        *y = product(*y, *y, 0);
    return lacks;
}

static int quotient(uint32_t a, uint32_t b, int full, int ftz, test_mufu *mufu, const void *of, uint32_t *y)
{
    const int above = full && is_above(ftz ? flushed(b) : b), below = !ftz && is_below(b);
    const uint32_t s = above ? QUARTER : below ? POWER_24 : 0;
    const int lacks = mufu(of, GPU_RCP, s ? product(b, s, ftz) : b, y);
    *y = product(*y, s ? product(a, s, ftz) : a, ftz);
    return lacks;
}

int test_around_mufu(int operation, uint32_t a, uint32_t b, test_mufu *mufu, const void *of, uint32_t *y)
{
    static const int plain[] = {GPU_EX2, GPU_RCP, GPU_RSQRT, GPU_LG2, GPU_SIN, GPU_COS, GPU_SQRT};
    if (operation >= 23)
        return quotient(a, b, operation >= 25, operation == 23 || operation == 25, mufu, of, y);
    const int function = operation < GPU_FUNCTIONS ? operation : plain[operation - GPU_FUNCTIONS];
    if (operation < GPU_FUNCTIONS || function == GPU_SIN || function == GPU_COS)
        return mufu(of, function, a, y);
    return function == GPU_RCP   ? reciprocal(a, mufu, of, y)
           : function == GPU_EX2 ? power(a, mufu, of, y)
                                 : scaled(function, a, mufu, of, y);
}
