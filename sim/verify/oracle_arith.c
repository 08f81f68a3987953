/* oracle_arith.c -- see oracle_arith.h. */
#include "oracle_arith.h"

#include <assert.h>
#include <gmp.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { FRACTION = 34 }; /* bits of a fraction: 33 are asked for by stochastic-b of 32 bits */

/* ----------------------------------------------------------------------- operands ---- */

/* An operand as it is read: flushed, decoded. */
typedef struct operand {
    double y;
    uint64_t payload;
    int negative;
    int precision;
} operand;

static operand read_operand(const oracle_arith *o, int i, uint64_t code)
{
    const oracle_format *of = o->operand[i];
    operand x = {.y = oracle_decode(of, code), .precision = of->precision};
    if (o->r.flush_input && isfinite(x.y)) {
        const double least = o->r.flush_below != 0 ? o->r.flush_below : ldexp(1, of->emin);
        if (fabs(x.y) < least)
            x.y = copysign(0, x.y);
    }
    uint64_t u;
    memcpy(&u, &x.y, sizeof u);
    x.negative = (int)(u >> 63);
    x.payload = u & 0xfffffffffffff;
    return x;
}

static int operands(int op)
{
    return op == MPSIM_OP_CONVERT || op == MPSIM_OP_SQRT ? 1 : op == MPSIM_OP_FMA ? 3 : 2;
}

/* The operands in x, those that the operation lacks as zeros; returns 1, and the value, if
 * one of them is NaN. */
static int read_operands(operand x[3], oracle_value *v, const oracle_arith *o,
                         const uint64_t codes[3])
{
    const int n = operands(o->op);
    for (int i = 0; i < 3; i++)
        x[i] = i < n ? read_operand(o, i, codes[i]) : (operand){.precision = 1};
    for (int i = 0; i < n; i++)
        if (isnan(x[i].y)) {
            *v = (oracle_value){.kind = ORACLE_VALUE_NAN, .negative = x[i].negative,
                                .payload = x[i].payload};
            return 1;
        }
    return 0;
}

/* ------------------------------------------------------- the exact value: integers ---- */

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

/* F = floor(X 2^(34 - q)) is in whole_part, and X is more than that if `sticky`. */
static void place(oracle_value *v, int negative, int q, int sticky)
{
    *v = (oracle_value){.kind = ORACLE_VALUE_NUMBER, .negative = negative, .q = q,
                        .sticky = sticky};
    mpz_fdiv_r_2exp(rest, whole_part, FRACTION);
    v->fraction = (uint64_t)mpz_get_d(rest);
    mpz_fdiv_q_2exp(whole_part, whole_part, FRACTION);
    v->whole = (uint64_t)mpz_get_d(whole_part); /* at most 53 bits: exact */
}

/* q for a number with floor(log2 X) = e. */
static int unit(const oracle_format *of, int e)
{
    return (e > of->emin ? e : of->emin) - (of->precision - 1);
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
    const int q = unit(of, e + k - below);
    const int shift = e + FRACTION - q;
    if (shift >= 0)
        mpz_mul_2exp(numerator, numerator, (mp_bitcnt_t)shift);
    else
        mpz_mul_2exp(denominator, denominator, (mp_bitcnt_t)-shift);
    mpz_tdiv_qr(whole_part, rest, numerator, denominator);
    place(v, negative, q, mpz_sgn(rest) != 0);
}

/* X = |numerator| 2^e. */
static void place_integer(oracle_value *v, const oracle_format *of, int negative, int e)
{
    mpz_abs(numerator, numerator);
    const int q = unit(of, e + bits_of(numerator) - 1);
    const int shift = e + FRACTION - q;
    int sticky = 0;
    if (shift >= 0) {
        mpz_mul_2exp(whole_part, numerator, (mp_bitcnt_t)shift);
    } else {
        sticky = mpz_scan1(numerator, 0) < (mp_bitcnt_t)-shift;
        mpz_fdiv_q_2exp(whole_part, numerator, (mp_bitcnt_t)-shift);
    }
    place(v, negative, q, sticky);
}

/* X = sqrt(numerator 2^e). With Y = X^2 4^(34 - q) it is floor(sqrt(Y)) = floor(sqrt(floor Y)),
 * since no integer lies between floor Y and Y; X is exact there if Y is an integer and a
 * square. */
static void place_root(oracle_value *v, const oracle_format *of, int e)
{
    const int log2_of_square = e + bits_of(numerator) - 1;
    const int odd = log2_of_square & 1; /* of a negative number, too: two's complement */
    const int q = unit(of, (log2_of_square - odd) / 2);
    const int shift = e + 2 * (FRACTION - q);
    int sticky = 0;
    if (shift >= 0) {
        mpz_mul_2exp(numerator, numerator, (mp_bitcnt_t)shift);
    } else {
        sticky = mpz_scan1(numerator, 0) < (mp_bitcnt_t)-shift;
        mpz_fdiv_q_2exp(numerator, numerator, (mp_bitcnt_t)-shift);
    }
    mpz_sqrtrem(whole_part, rest, numerator);
    place(v, 0, q, sticky || mpz_sgn(rest) != 0);
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
static void value_of_sum(oracle_value *v, const oracle_format *of, const operand *x,
                         const operand *y)
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

static void value_of_product(oracle_value *v, const oracle_format *of, const operand *x,
                             const operand *y)
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

static void value_of_quotient(oracle_value *v, const oracle_format *of, const operand *x,
                              const operand *y)
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

static void value_of_root(oracle_value *v, const oracle_format *of, const operand *x)
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

static void value_of_fma(oracle_value *v, const oracle_format *of, const operand *x,
                         const operand *y, const operand *z)
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
        const operand product = {.y = negative ? -0.0 : 0.0, .negative = negative,
                                 .precision = 1};
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

void oracle_arith_value(oracle_value *v, const oracle_arith *o, uint64_t a, uint64_t b,
                        uint64_t c)
{
    operand x[3];
    set_up();
    if (read_operands(x, v, o, (const uint64_t[]){a, b, c}))
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

/* ----------------------------------------------------------------------- rounding ---- */

/* A sign that the choice ignores does not direct the rounding. */
static int ignores_sign(const oracle_arith *o)
{
    return !o->result->is_signed && o->r.negative == MPSIM_NEGATIVE_ABS;
}

/* Away from zero? The sentences of round.h. */
static int rounds_away(const oracle_value *v, const oracle_arith *o, uint32_t random)
{
    const oracle_format *of = o->result;
    const int negative = v->negative && !ignores_sign(o);
    const uint64_t one = (uint64_t)1 << FRACTION;
    const int any = v->fraction != 0 || v->sticky;
    const int half = v->fraction > one / 2 ? 1
                     : v->fraction < one / 2 ? -1
                                             : v->sticky; /* sign of nu - 1/2 */
    int odd = (int)(v->whole & 1);
    /* With p = 1 the lower candidate is zero, whose code is even, or the power of two 2^q,
     * whose codes alternate from the smallest one on: code 1, or without zero code 0. */
    if (of->precision == 1 && odd)
        odd = (v->q - of->emin + (of->zeros ? 1 : 0)) & 1;

    const int n = o->r.sr_bits;
    switch (o->r.mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return half > 0 || (half == 0 && odd);
    case MPSIM_ROUND_NEAREST_AWAY:
        return half >= 0;
    case MPSIM_ROUND_TOWARD_ZERO:
        return 0;
    case MPSIM_ROUND_UP:
        return any && !negative;
    case MPSIM_ROUND_DOWN:
        return any && negative;
    case MPSIM_ROUND_TO_ODD:
        return any && !odd;
    case MPSIM_ROUND_STOCHASTIC_A:
        return (v->fraction >> (FRACTION - n)) + (random >> (32 - n)) >= (uint64_t)1 << n;
    case MPSIM_ROUND_STOCHASTIC_B:
        return (v->fraction >> (FRACTION - n - 1)) + 2 * (uint64_t)(random >> (32 - n)) + 1 >=
               (uint64_t)1 << (n + 1);
    default: {
        uint64_t integer_part = v->fraction >> (FRACTION - n);
        const uint64_t below = v->fraction & ((one >> n) - 1), tie = one >> n >> 1;
        if (below > tie || (below == tie && (v->sticky || integer_part % 2 == 1)))
            integer_part++;
        return integer_part + (random >> (32 - n)) >= (uint64_t)1 << n;
    }
    }
}

uint64_t oracle_arith_code(const oracle_value *v, const oracle_arith *o, uint32_t random,
                           unsigned *flags)
{
    oracle_rounded out = {.negative = v->negative, .exact = 1, .payload = v->payload};
    switch (v->kind) {
    case ORACLE_VALUE_NAN:
        out.kind = ORACLE_IS_NAN;
        break;
    case ORACLE_VALUE_INF:
        out.kind = ORACLE_IS_INF;
        break;
    case ORACLE_VALUE_ZERO:
        out.kind = ORACLE_IS_FINITE;
        out.read_zero = 1;
        if (v->by_mode)
            out.negative = o->r.mode == MPSIM_ROUND_DOWN;
        break;
    default:
        out.nonzero = 1;
        out.exact = v->fraction == 0 && !v->sticky;
        out.magnitude =
            ldexp((double)(v->whole + (uint64_t)rounds_away(v, o, random)), v->q);
        out.kind = out.magnitude > o->result->max ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
    }
    const uint64_t code = oracle_finish(o->result, &o->r, &out, flags);
    *flags |= v->flags;
    return code;
}

uint64_t oracle_arith_apply(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c,
                            uint32_t random, unsigned *flags)
{
    oracle_value v;
    oracle_arith_value(&v, o, a, b, c);
    return oracle_arith_code(&v, o, random, flags);
}

/* --------------------------------------------------------------- the other way: MPFR ---- */

static mpfr_t in[3];        /* operands                     */
static mpfr_t long_result;  /* for the modes that ask for nu */
static mpfr_t results[54];  /* results[p] has precision p   */

enum { LONG = 300 };

static void set_up_mpfr(void)
{
    static int done;
    if (done)
        return;
    for (int i = 0; i < 3; i++)
        mpfr_init2(in[i], 53);
    for (int p = 1; p <= 53; p++)
        mpfr_init2(results[p], p);
    mpfr_init2(long_result, LONG);
    done = 1;
}

static int operate(mpfr_ptr y, int op, mpfr_rnd_t direction)
{
    switch (op) {
    case MPSIM_OP_CONVERT:
        return mpfr_set(y, in[0], direction);
    case MPSIM_OP_ADD:
        return mpfr_add(y, in[0], in[1], direction);
    case MPSIM_OP_SUB:
        return mpfr_sub(y, in[0], in[1], direction);
    case MPSIM_OP_MUL:
        return mpfr_mul(y, in[0], in[1], direction);
    case MPSIM_OP_DIV:
        return mpfr_div(y, in[0], in[1], direction);
    case MPSIM_OP_SQRT:
        return mpfr_sqrt(y, in[0], direction);
    default:
        return mpfr_fma(y, in[0], in[1], in[2], direction);
    }
}

/* The value from a result of 300 bits, truncated: F = floor(X 2^(34 - q)) has at most 87 bits,
 * so truncation changes F nowhere, and a ternary value other than 0 is the sticky bit. */
static void place_mpfr(oracle_value *v, const oracle_format *of, int ternary)
{
    const int q = unit(of, (int)mpfr_get_exp(long_result) - 1);
    const int negative = mpfr_signbit(long_result);
    mpfr_mul_2si(long_result, long_result, FRACTION - q, MPFR_RNDN);
    mpfr_abs(long_result, long_result, MPFR_RNDN);
    const int dropped = !mpfr_integer_p(long_result);
    mpfr_get_z(whole_part, long_result, MPFR_RNDZ);
    place(v, negative, q, dropped || ternary != 0);
}

uint64_t oracle_arith_mpfr(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c,
                           uint32_t random, unsigned *flags)
{
    const oracle_format *of = o->result;
    operand x[3];
    oracle_value v;
    set_up();
    set_up_mpfr();
    if (read_operands(x, &v, o, (const uint64_t[]){a, b, c}))
        return oracle_arith_code(&v, o, random, flags);
    for (int i = 0; i < 3; i++)
        mpfr_set_d(in[i], x[i].y, MPFR_RNDN);

    /* With one bit of precision MPFR has no parity of codes to go by. */
    const int mode = o->r.mode, magnitude_only = ignores_sign(o);
    mpfr_ptr y = results[of->precision];
    mpfr_rnd_t direction = MPFR_RNDZ;
    if (mode == MPSIM_ROUND_NEAREST_EVEN && of->precision > 1)
        direction = MPFR_RNDN;
    else if (mode == MPSIM_ROUND_UP)
        direction = magnitude_only ? MPFR_RNDA : MPFR_RNDU;
    else if (mode == MPSIM_ROUND_DOWN)
        direction = magnitude_only ? MPFR_RNDZ : MPFR_RNDD;
    else if (mode != MPSIM_ROUND_TOWARD_ZERO)
        y = long_result;

    mpfr_clear_flags();
    int t = operate(y, o->op, direction);
    oracle_rounded out = {.negative = mpfr_signbit(y), .exact = 1};
    unsigned more = 0;
    if (mpfr_nan_p(y)) {
        out.kind = ORACLE_IS_NAN;
        out.negative = 0;
        more = MPSIM_FLAG_INVALID;
    } else if (mpfr_inf_p(y)) {
        out.kind = ORACLE_IS_INF;
        more = mpfr_divby0_p() ? MPSIM_FLAG_DIVBYZERO : 0;
    } else if (mpfr_zero_p(y)) {
        out.kind = ORACLE_IS_FINITE;
        out.read_zero = 1;
    } else if (y == long_result) {
        place_mpfr(&v, of, t);
        return oracle_arith_code(&v, o, random, flags);
    } else {
        /* One rounding to p bits; below the normal numbers MPFR undoes it by the ternary
         * value and rounds again at the fixed position. Its exponents are one more than IEEE
         * 754's, and its emin is that of the smallest subnormal. */
        if (mpfr_get_exp(y) < of->emin + 1) {
            const mpfr_exp_t wide = mpfr_get_emin();
            mpfr_set_emin(of->emin - of->precision + 2);
            t = mpfr_check_range(y, t, direction);
            t = mpfr_subnormalize(y, t, direction);
            mpfr_set_emin(wide);
        }
        out.nonzero = 1;
        out.exact = t == 0;
        out.magnitude = fabs(mpfr_get_d(y, MPFR_RNDZ));
        const int beyond =
            out.magnitude > of->max || (out.magnitude != 0 && mpfr_get_exp(y) > 1024);
        out.kind = beyond ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
    }
    const uint64_t code = oracle_finish(of, &o->r, &out, flags);
    *flags |= more;
    return code;
}

/* --------------------------------------------------------------------- comparison ---- */

/* All numbers are numbers of binary64, which C compares exactly. */
int oracle_compare(const oracle_format *fa, uint64_t a, const oracle_format *fb, uint64_t b)
{
    const double x = oracle_decode(fa, a), y = oracle_decode(fb, b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}
