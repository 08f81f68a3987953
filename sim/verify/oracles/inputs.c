/* inputs.c -- see inputs.h. */
#include "../impl.h"

#include "../../array/need.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t verify_inputs_word(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t low_bits(int n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

uint64_t verify_inputs_code(const oracle_format *of, uint64_t *state)
{
    const uint64_t u = verify_inputs_word(state), any = u & low_bits(of->bits);
    const uint64_t sign = of->is_signed ? (u >> 40 & 1) << (of->bits - 1) : 0;
    const int t = of->precision - 1;
    /* zero, the smallest, the largest numbers and what follows them */
    const uint64_t ends[] = {
        0, 1, low_bits(t), (uint64_t)1 << t, of->max_code, of->max_code - 1, of->max_code + 1, of->max_code + 2};
    if (u >> 62 == 0)
        return (ends[u % 8] | sign) & low_bits(of->bits);
    if (u >> 62 == 1 || t == 0)
        return any;
    /* 1 has the exponent field -emin + 1, and -emin where that of 0 is a number's */
    const int64_t one = (of->zeros ? 1 : 0) - of->emin, top = (int64_t)(of->max_code >> t);
    int64_t e = one + (int64_t)(verify_inputs_word(state) % (uint64_t)(2 * t + 3)) - (t + 1);
    e = e < 0 ? 0 : e > top ? top : e;
    return sign | (uint64_t)e << t | (any & low_bits(t));
}

double verify_inputs_value(const inputs *in, size_t i)
{
    double x;
    if (in->width == 32)
        return oracle_widen((uint32_t)in->u[i]);
    memcpy(&x, &in->u[i], sizeof x);
    return x;
}

static void push(inputs *in, uint64_t u)
{
    need_room(&in->u, in->n, sizeof *in->u);
    in->u[in->n++] = u;
}

static void push_both(inputs *in, uint64_t magnitude)
{
    push(in, magnitude);
    push(in, magnitude | (uint64_t)1 << (in->width - 1));
}

/* The number x >= 0 in the source type, and its neighbours there. */
static void push_near(inputs *in, double x)
{
    uint64_t u = 0;
    if (in->width == 32) {
        const float y = x > (double)FLT_MAX ? FLT_MAX : (float)x;
        uint32_t bits;
        memcpy(&bits, &y, sizeof bits);
        u = bits;
    } else if (x <= DBL_MAX) {
        memcpy(&u, &x, sizeof u);
    }
    push_both(in, u);
    push_both(in, u + 1);
    if (u)
        push_both(in, u - 1);
}

/* From number i to the next that is taken: all of the first and last `dense`, a stride between. */
static uint64_t next_taken(uint64_t i, uint64_t n, uint64_t dense, uint64_t stride)
{
    if (i < dense || i >= n - dense)
        return i + 1;
    return i + stride < n - dense ? i + stride : n - dense;
}

void verify_inputs_points(inputs *in, const oracle_format *of, size_t limit)
{
    const uint64_t n = of->max_code + 1, first = of->zeros ? 1 : 0;
    const uint64_t dense = n <= limit ? n : limit / 4, stride = 2 * n / limit | 1;
    for (uint64_t i = 0; i < n; i = next_taken(i, n, dense, stride)) {
        const double a = oracle_magnitude(of, i), b = oracle_magnitude(of, i + 1);
        push_near(in, a);
        if (b <= DBL_MAX)
            push_near(in, a + (b - a) / 2);
    }
    const double least = oracle_magnitude(of, first);
    const double ends[] = {least / 2, least / 4, least * 0.75, 2 * of->max, (double)FLT_MIN, (double)FLT_MAX,
                           0x1p-149,  0x1p-150,  DBL_MIN,      DBL_MAX,     0x1p-1074};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        push_near(in, ends[i]);
    /* infinity; NaNs: quiet, signalling, one bit, all bits, mixed */
    const int t = in->width == 32 ? 23 : 52;
    const uint64_t inf = in->width == 32 ? 0xff : 0x7ff, payloads[] = {0,
                                                                       (uint64_t)1 << (t - 1),
                                                                       1,
                                                                       low_bits(t),
                                                                       low_bits(t - 1),
                                                                       0x2468a1234567 & low_bits(t),
                                                                       (uint64_t)3 << (t - 3)};
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        push_both(in, inf << t | payloads[i]);
}

void verify_inputs_random(inputs *in, const oracle_format *of, size_t n, uint64_t *state)
{
    const int t = in->width == 32 ? 23 : 52, bias = in->width == 32 ? 127 : 1023;
    const int low = of->emin - of->precision - 3, high = ilogb(of->max) + 3;
    for (size_t i = 0; i < n; i++) {
        uint64_t u = verify_inputs_word(state) & low_bits(in->width);
        if (i % 4) {
            int e = low + (int)(verify_inputs_word(state) % (uint64_t)(high - low)) + bias;
            e = e < 0 ? 0 : e > 2 * bias ? 2 * bias : e;
            u = (u & ~(low_bits(in->width - 1 - t) << t)) | (uint64_t)e << t;
        }
        push(in, u);
    }
}

void verify_inputs_clear(inputs *in)
{
    in->n = 0;
}

void verify_inputs_free(inputs *in)
{
    free(in->u);
    *in = (inputs){.width = in->width};
}
