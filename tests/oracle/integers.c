/* integers.c -- see integers.h. */
#include "integers.h"

#include <assert.h>
#include <gmp.h>
#include <math.h>

static mpz_t numerator, denominator, other, whole_part, rest;

static void set_up(void)
{
    static int done;
    if (done)
        return;
    mpz_inits(numerator, denominator, other, whole_part, rest, (mpz_ptr)0);
    done = 1;
}

/* y = n * 2^e, n an integer of that many bits. */
static int integer(mpz_t n, double y, int precision)
{
    int e;
    mpz_set_d(n, ldexp(frexp(y, &e), precision)); /* an integer: y has the precision */
    return e - precision;
}

static void invalid(oracle_value *v)
{
    *v = (oracle_value){.kind = ORACLE_VALUE_NAN, .flags = MPSIM_FLAG_INVALID};
}

static void infinite(oracle_value *v, int negative)
{
    *v = (oracle_value){.kind = ORACLE_VALUE_INF, .negative = negative};
}

static void zero(oracle_value *v, int negative, int by_mode)
{
    *v = (oracle_value){.kind = ORACLE_VALUE_ZERO, .negative = negative, .by_mode = by_mode};
}

static int bits_of(const mpz_t n)
{
    return (int)mpz_sizeinbase(n, 2);
}

/* X = |numerator| 2^e / denominator, denominator > 0. */
static void place_quotient(oracle_value *v, const oracle_format *of, int negative, int e)
{
    mpz_abs(numerator, numerator);
    /* N / D lies in [2^(n-d), 2^(n-d+1)) if N >= D 2^(n-d), else in the binade below. */
    const int k = bits_of(numerator) - bits_of(denominator);
    int below;
    if (k >= 0) {
        mpz_mul_2exp(other, denominator, (mp_bitcnt_t)k);
        below = mpz_cmp(numerator, other) < 0;
    } else {
        mpz_mul_2exp(other, numerator, (mp_bitcnt_t)-k);
        below = mpz_cmp(other, denominator) < 0;
    }
    const int q = oracle_unit(of, e + k - below);
    const int shift = e + ORACLE_FRACTION - q;
    if (shift >= 0)
        mpz_mul_2exp(numerator, numerator, (mp_bitcnt_t)shift);
    else
        mpz_mul_2exp(denominator, denominator, (mp_bitcnt_t)-shift);
    mpz_tdiv_qr(whole_part, rest, numerator, denominator);
    oracle_place(v, negative, q, whole_part, mpz_sgn(rest) != 0);
}

/* X = |numerator| 2^e. */
static void place_integer(oracle_value *v, const oracle_format *of, int negative, int e)
{
    mpz_abs(numerator, numerator);
    const int q = oracle_unit(of, e + bits_of(numerator) - 1);
    const int shift = e + ORACLE_FRACTION - q;
    int sticky = 0;
    if (shift >= 0) {
        mpz_mul_2exp(whole_part, numerator, (mp_bitcnt_t)shift);
    } else {
        sticky = mpz_scan1(numerator, 0) < (mp_bitcnt_t)-shift;
        mpz_fdiv_q_2exp(whole_part, numerator, (mp_bitcnt_t)-shift);
    }
    oracle_place(v, negative, q, whole_part, sticky);
}

/* X = sqrt(numerator 2^e). With Y = X^2 4^(34 - q) it is floor(sqrt(Y)) = floor(sqrt(floor Y)),
 * since no integer lies between floor Y and Y; X is exact there if Y is an integer and a
 * square. */
static void place_root(oracle_value *v, const oracle_format *of, int e)
{
    const int log2_of_square = e + bits_of(numerator) - 1;
    const int odd = log2_of_square & 1; /* of a negative number, too: two's complement */
    const int q = oracle_unit(of, (log2_of_square - odd) / 2);
    const int shift = e + 2 * (ORACLE_FRACTION - q);
    int sticky = 0;
    if (shift >= 0) {
        mpz_mul_2exp(numerator, numerator, (mp_bitcnt_t)shift);
    } else {
        sticky = mpz_scan1(numerator, 0) < (mp_bitcnt_t)-shift;
        mpz_fdiv_q_2exp(numerator, numerator, (mp_bitcnt_t)-shift);
    }
    mpz_sqrtrem(whole_part, rest, numerator);
    oracle_place(v, 0, q, whole_part, sticky || mpz_sgn(rest) != 0);
}

/* numerator 2^e + other 2^f, in numerator and the exponent returned. */
static int add_integers(int e, int f)
{
    if (e > f) {
        mpz_mul_2exp(numerator, numerator, (mp_bitcnt_t)(e - f));
        e = f;
    } else if (f > e) {
        mpz_mul_2exp(other, other, (mp_bitcnt_t)(f - e));
    }
    mpz_add(numerator, numerator, other);
    return e;
}

/* x + y; IEEE 754-2019, 6.1 to 6.3. */
static void value_of_sum(oracle_value *v, const oracle_format *of, const oracle_operand *x, const oracle_operand *y)
{
    if (isinf(x->y) || isinf(y->y)) {
        if (isinf(x->y) && isinf(y->y) && x->negative != y->negative)
            invalid(v);
        else
            infinite(v, isinf(x->y) ? x->negative : y->negative);
        return;
    }
    if (x->y == 0 && y->y == 0) {
        zero(v, x->negative, x->negative != y->negative);
        return;
    }
    int e = integer(numerator, x->y, x->precision);
    e = add_integers(e, integer(other, y->y, y->precision));
    if (mpz_sgn(numerator) == 0)
        zero(v, 0, 1);
    else
        place_integer(v, of, mpz_sgn(numerator) < 0, e);
}

static void value_of_product(oracle_value *v, const oracle_format *of, const oracle_operand *x, const oracle_operand *y)
{
    const int negative = x->negative != y->negative;
    if (isinf(x->y) || isinf(y->y)) {
        if (x->y == 0 || y->y == 0)
            invalid(v);
        else
            infinite(v, negative);
        return;
    }
    if (x->y == 0 || y->y == 0) {
        zero(v, negative, 0);
        return;
    }
    int e = integer(numerator, x->y, x->precision);
    e += integer(other, y->y, y->precision);
    mpz_mul(numerator, numerator, other);
    place_integer(v, of, negative, e);
}

static void value_of_quotient(oracle_value *v, const oracle_format *of, const oracle_operand *x,
                              const oracle_operand *y)
{
    const int negative = x->negative != y->negative;
    if ((isinf(x->y) && isinf(y->y)) || (x->y == 0 && y->y == 0)) {
        invalid(v);
    } else if (isinf(x->y)) {
        infinite(v, negative);
    } else if (y->y == 0) {
        infinite(v, negative);
        v->flags = MPSIM_FLAG_DIVBYZERO;
    } else if (x->y == 0 || isinf(y->y)) {
        zero(v, negative, 0);
    } else {
        int e = integer(numerator, x->y, x->precision);
        e -= integer(denominator, fabs(y->y), y->precision);
        place_quotient(v, of, negative, e);
    }
}

static void value_of_root(oracle_value *v, const oracle_format *of, const oracle_operand *x)
{
    if (x->y == 0)
        zero(v, x->negative, 0);
    else if (x->negative)
        invalid(v);
    else if (isinf(x->y))
        infinite(v, 0);
    else
        place_root(v, of, integer(numerator, x->y, x->precision));
}

static void value_of_fma(oracle_value *v, const oracle_format *of, const oracle_operand *x, const oracle_operand *y,
                         const oracle_operand *z)
{
    const int negative = x->negative != y->negative;
    if (isinf(x->y) || isinf(y->y)) {
        if (x->y == 0 || y->y == 0 || (isinf(z->y) && z->negative != negative))
            invalid(v);
        else
            infinite(v, negative);
        return;
    }
    if (isinf(z->y)) {
        infinite(v, z->negative);
        return;
    }
    if (x->y == 0 || y->y == 0) { /* a zero of that sign, plus z */
        const oracle_operand product = {.y = negative ? -0.0 : 0.0, .negative = negative, .precision = 1};
        value_of_sum(v, of, &product, z);
        return;
    }
    int e = integer(numerator, x->y, x->precision);
    e += integer(other, y->y, y->precision);
    mpz_mul(numerator, numerator, other);
    if (z->y != 0)
        e = add_integers(e, integer(other, z->y, z->precision));
    if (mpz_sgn(numerator) == 0)
        zero(v, 0, 1);
    else
        place_integer(v, of, mpz_sgn(numerator) < 0, e);
}

void oracle_arith_value(oracle_value *v, const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c)
{
    oracle_operand x[3];
    set_up();
    if (oracle_arith_read(x, v, o, (const uint64_t[]){a, b, c}))
        return;
    const oracle_format *of = o->result;
    switch (o->op) {
    case MPSIM_OP_CONVERT:
        if (isinf(x[0].y))
            infinite(v, x[0].negative);
        else if (x[0].y == 0)
            zero(v, x[0].negative, 0);
        else
            place_integer(v, of, x[0].negative, integer(numerator, x[0].y, x[0].precision));
        break;
    case MPSIM_OP_SUB:
        x[1].y = -x[1].y;
        x[1].negative = !x[1].negative;
        value_of_sum(v, of, &x[0], &x[1]);
        break;
    case MPSIM_OP_ADD:
        value_of_sum(v, of, &x[0], &x[1]);
        break;
    case MPSIM_OP_MUL:
        value_of_product(v, of, &x[0], &x[1]);
        break;
    case MPSIM_OP_DIV:
        value_of_quotient(v, of, &x[0], &x[1]);
        break;
    case MPSIM_OP_SQRT:
        value_of_root(v, of, &x[0]);
        break;
    default:
        assert(o->op == MPSIM_OP_FMA);
        value_of_fma(v, of, &x[0], &x[1], &x[2]);
    }
}

uint64_t oracle_arith_apply(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random, unsigned *flags)
{
    oracle_value v;
    oracle_arith_value(&v, o, a, b, c);
    return oracle_arith_code(&v, o, random, flags);
}

/* All numbers are numbers of binary64, which C compares exactly. */
int oracle_compare(const oracle_format *fa, uint64_t a, const oracle_format *fb, uint64_t b)
{
    const double x = oracle_decode(fa, a), y = oracle_decode(fb, b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}
