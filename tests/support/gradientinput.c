/* gradientinput.c -- see gradientinput.h. */
#include "gradientinput.h"

#include "support.h"

const int narrow[3] = {B32, BF16, FP16};

const mpsim_format *gradient_format(int f)
{
    const mpsim_format *found = mpsim_format_find(shapes[f].name);
    ck_assert_ptr_nonnull(found);
    return found;
}

static const double edges[] = {
    0.0,     -0.0,    0x1p-149, -0x1p-149,  0x1p-133,        0x1p-126, -0x1.8p-127, 0x1p-24, -0x1p-25,     1, -1, 3,
    0x1p-14, 0x1p-75, -0x1p70,  0x1.fep127, -0x1.fffffep127, 65504,    -65520,      33000,   0x1.fffffep-1};

static double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

double uniform(uint64_t *random, int lo, int hi)
{
    const int e = lo + (int)(test_random(random) % (uint64_t)(hi - lo + 1));
    return ldexp((1 + unit(random)) * (test_random(random) & 1 ? -1 : 1), e);
}

int same(double want, float got)
{
    return isnan(want) ? isnan(got) : bits_of_f32((float)want) == bits_of_f32(got);
}

int same64(double want, double got)
{
    return isnan(want) ? isnan(got) : bits_of_f64(want) == bits_of_f64(got);
}

void gradient_fill(float *x, size_t n, int f, int special, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t kind = test_random(random) % 8;
        double y = uniform(random, -12, 2);
        if (kind == 0)
            y = uniform(random, (int)shapes[f].emin, (int)shapes[f].emax - 2);
        if (kind == 1)
            y = edges[test_random(random) % (sizeof edges / sizeof edges[0])];
        if (special && kind == 2 && i % 3 == 0)
            y = test_random(random) % 3 == 0 ? NOTANUMBER : copysign(INFINITE, y);
        x[i] = (float)to(f, y);
    }
}
