/* instructions.c -- see instructions.h. */
#include "oracle/instructions.h"

#include <assert.h>
#include <gmp.h>
#include <math.h>
#include <string.h>

enum { UNIT = 300, QUIET = 0x7fc00000 };

typedef enum mode { NEAREST, ODD } mode;
typedef enum flush { KEEP, FLUSH } flush;

static float number(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* "Input denormals are always treated as zero" */
static double daz(double x)
{
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

/* z += x y, finite */
static void add_product(mpz_t z, double x, double y)
{
    int ex, ey;
    mpz_t p, q;
    mpz_init_set_d(p, ldexp(frexp(x, &ex), 53));
    mpz_init_set_d(q, ldexp(frexp(y, &ey), 53));
    mpz_mul(p, p, q);
    const int up = ex + ey - 106 + UNIT;
    if (up >= 0)
        mpz_mul_2exp(p, p, (mp_bitcnt_t)up);
    else
        mpz_fdiv_q_2exp(p, p, (mp_bitcnt_t)-up); /* zeros: the numbers are multiples of 2^-300 */
    mpz_add(z, z, p);
    mpz_clears(p, q, (mpz_ptr)0);
}

/* |z| in units of 2^(e - UNIT), rounded. */
static uint64_t in_units(const mpz_t z, int e, mode how)
{
    mpz_t m, rest, half;
    mpz_inits(m, rest, half, (mpz_ptr)0);
    mpz_abs(m, z);
    mpz_fdiv_r_2exp(rest, m, (mp_bitcnt_t)e);
    mpz_fdiv_q_2exp(m, m, (mp_bitcnt_t)e);
    uint64_t s = 0;
    assert(mpz_sizeinbase(m, 2) <= 64);
    mpz_export(&s, NULL, 1, sizeof s, 0, 0, m);
    mpz_set_ui(half, 1);
    mpz_mul_2exp(half, half, (mp_bitcnt_t)(e > 0 ? e - 1 : 0));
    const int beside = mpz_cmp(rest, half);
    if (how == ODD)
        s |= mpz_sgn(rest) != 0;
    else if (e > 0)
        s += beside > 0 || (beside == 0 && s % 2);
    mpz_clears(m, rest, half, (mpz_ptr)0);
    return s;
}

/* z to binary32; a zero has the sign given. */
static float rounded(const mpz_t z, int negative_zero, mode how, flush small)
{
    const double sign = mpz_sgn(z) < 0 ? -1 : 1;
    if (mpz_sgn(z) == 0)
        return negative_zero ? -0.0F : 0.0F;
    const int top = (int)mpz_sizeinbase(z, 2) - 1; /* 2^(top - UNIT) <= |z| */
    const int free = top - 23 > 0 ? top - 23 : 0;  /* the last bit of 24, however small the number is */
    if (small == FLUSH && ldexp((double)in_units(z, free, how), free - UNIT) < 0x1p-126)
        return (float)(sign * 0.0);
    const int last = free > UNIT - 149 ? free : UNIT - 149;
    const double x = ldexp((double)in_units(z, last, how), last - UNIT);
    return (float)(sign * (x > 0x1.fffffep127 ? (double)INFINITY : x));
}

/* x y + s, rounded once */
static float fma_step(double x, double y, float s, mode how, flush small)
{
    if (!isfinite(x) || !isfinite(y) || !isfinite(s)) {
        const float r = (float)(x * y + (double)s); /* the product of two numbers is one here */
        return r;
    }
    mpz_t z;
    mpz_init(z);
    add_product(z, x, y);
    add_product(z, (double)s, 1);
    const int product_sign = !!signbit(x) != !!signbit(y);
    const float r = rounded(z, product_sign && signbit(s), how, small);
    mpz_clear(z);
    return r;
}

static float add_step(float x, float y, mode how, flush small)
{
    return fma_step((double)x, 1, y, how, small);
}

static uint32_t no_payload(float x)
{
    return isnan(x) ? QUIET : bits(x);
}

/* The first of the NaNs in order of priority, made quiet; or that of an operation without a value, which is
 * negative on x86. */
static uint32_t first_nan(const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(number(list[i])))
            return list[i] | 0x400000;
    return 0xffc00000;
}

uint32_t instruction_vdpbf16ps(uint32_t c, const instruction_operands *x)
{
    const uint32_t priorities[] = {x->bits_a[0], x->bits_b[0], x->bits_a[1], x->bits_b[1], c};
    float s = (float)daz((double)number(c));
    s = fma_step(daz(x->a[1]), daz(x->b[1]), s, NEAREST, FLUSH);
    s = fma_step(daz(x->a[0]), daz(x->b[0]), s, NEAREST, FLUSH);
    return isnan(s) ? first_nan(priorities, 5) : bits(s);
}

static uint32_t tile_element(uint32_t c, const instruction_operands *x, double (*read)(double))
{
    float even = 0, odd = 0;
    for (size_t k = 0; k + 1 < x->n; k += 2) {
        even = fma_step(read(x->a[k]), read(x->b[k]), even, NEAREST, FLUSH);
        odd = fma_step(read(x->a[k + 1]), read(x->b[k + 1]), odd, NEAREST, FLUSH);
    }
    const float t = add_step(even, odd, NEAREST, FLUSH);
    return no_payload(add_step((float)daz((double)number(c)), t, NEAREST, FLUSH));
}

static double as_it_is(double x)
{
    return x;
}

uint32_t instruction_tdpbf16ps(uint32_t c, const instruction_operands *x)
{
    return tile_element(c, x, daz);
}

uint32_t instruction_tdpfp16ps(uint32_t c, const instruction_operands *x)
{
    return tile_element(c, x, as_it_is);
}

/* The exact sum, rounded once; *negative_zero: all products are -0. */
static float exact_sum(const instruction_operands *x, int from_zero, flush small)
{
    mpz_t z;
    double special = 0; /* infinities and NaNs alone */
    int negative = 1;
    mpz_init(z);
    for (size_t k = 0; k < x->n; k++) {
        if (!isfinite(x->a[k]) || !isfinite(x->b[k]))
            special += x->a[k] * x->b[k];
        else
            add_product(z, x->a[k], x->b[k]);
        negative &= !!signbit(x->a[k]) != !!signbit(x->b[k]);
    }
    const float r = special != 0 ? (float)special : rounded(z, negative && !from_zero, NEAREST, small);
    mpz_clear(z);
    return r;
}

uint32_t instruction_tdpfp8ps(uint32_t c, const instruction_operands *x)
{
    return no_payload(add_step((float)daz((double)number(c)), exact_sum(x, 1, FLUSH), NEAREST, FLUSH));
}

uint32_t instruction_bfdot(uint32_t c, const instruction_operands *x)
{
    float p[2];
    for (int k = 0; k < 2; k++)
        p[k] = fma_step(daz(x->a[k]), daz(x->b[k]), signbit(x->a[k]) == signbit(x->b[k]) ? 0.0F : -0.0F, ODD, FLUSH);
    const float t = add_step(p[0], p[1], ODD, FLUSH);
    return no_payload(add_step((float)daz((double)number(c)), t, ODD, FLUSH));
}

uint32_t instruction_bfdot_ebf(uint32_t c, const instruction_operands *x)
{
    return no_payload(add_step(number(c), exact_sum(x, 0, KEEP), NEAREST, KEEP));
}

uint32_t instruction_fmlal(uint32_t c, const instruction_operands *x)
{
    return no_payload(fma_step(x->a[0], x->b[0], number(c), NEAREST, KEEP));
}
