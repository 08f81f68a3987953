/* oracle_arith.c -- see oracle_arith.h. */
#include "oracle_arith.h"

#include <gmp.h>
#include <math.h>
#include <mpfr.h>
#include <string.h>

/* ----------------------------------------------------------------------- operands ---- */

static oracle_operand read_operand(const oracle_arith *o, int i, uint64_t code)
{
    const oracle_format *of = o->operand[i];
    oracle_operand x = {.y = oracle_decode(of, code), .precision = of->precision};
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

int oracle_arith_read(oracle_operand x[3], oracle_value *v, const oracle_arith *o, const uint64_t codes[3])
{
    const int n = operands(o->op);
    for (int i = 0; i < 3; i++)
        x[i] = i < n ? read_operand(o, i, codes[i]) : (oracle_operand){.precision = 1};
    for (int i = 0; i < n; i++)
        if (isnan(x[i].y)) {
            *v = (oracle_value){.kind = ORACLE_VALUE_NAN, .negative = x[i].negative, .payload = x[i].payload};
            return 1;
        }
    return 0;
}

/* ---------------------------------------------------------------- the exact value ---- */

static mpz_t whole_part, rest;

static void set_up(void)
{
    static int done;
    if (done)
        return;
    mpz_inits(whole_part, rest, (mpz_ptr)0);
    done = 1;
}

void oracle_place(oracle_value *v, int negative, int q, mpz_t f, int sticky)
{
    set_up();
    *v = (oracle_value){.kind = ORACLE_VALUE_NUMBER, .negative = negative, .q = q, .sticky = sticky};
    mpz_fdiv_r_2exp(rest, f, ORACLE_FRACTION);
    v->fraction = (uint64_t)mpz_get_d(rest);
    mpz_fdiv_q_2exp(f, f, ORACLE_FRACTION);
    v->whole = (uint64_t)mpz_get_d(f); /* at most 53 bits: exact */
}

int oracle_unit(const oracle_format *of, int e)
{
    return (e > of->emin ? e : of->emin) - (of->precision - 1);
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
    const uint64_t one = (uint64_t)1 << ORACLE_FRACTION;
    const int any = v->fraction != 0 || v->sticky;
    const int half = v->fraction > one / 2 ? 1 : v->fraction < one / 2 ? -1 : v->sticky; /* sign of nu - 1/2 */
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
        return (v->fraction >> (ORACLE_FRACTION - n)) + (random >> (32 - n)) >= (uint64_t)1 << n;
    case MPSIM_ROUND_STOCHASTIC_B:
        return (v->fraction >> (ORACLE_FRACTION - n - 1)) + 2 * (uint64_t)(random >> (32 - n)) + 1 >= (uint64_t)1
                                                                                                          << (n + 1);
    default: {
        uint64_t integer_part = v->fraction >> (ORACLE_FRACTION - n);
        const uint64_t below = v->fraction & ((one >> n) - 1), tie = one >> n >> 1;
        if (below > tie || (below == tie && (v->sticky || integer_part % 2 == 1)))
            integer_part++;
        return integer_part + (random >> (32 - n)) >= (uint64_t)1 << n;
    }
    }
}

uint64_t oracle_arith_code(const oracle_value *v, const oracle_arith *o, uint32_t random, unsigned *flags)
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
        out.magnitude = ldexp((double)(v->whole + (uint64_t)rounds_away(v, o, random)), v->q);
        out.kind = out.magnitude > o->result->max ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
    }
    const uint64_t code = oracle_finish(o->result, &o->r, &out, flags);
    *flags |= v->flags;
    return code;
}

/* --------------------------------------------------------------- MPFR's operation ---- */

static mpfr_t in[3];       /* operands                     */
static mpfr_t long_result; /* for the modes that ask for nu */
static mpfr_t results[54]; /* results[p] has precision p   */

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
    const int q = oracle_unit(of, (int)mpfr_get_exp(long_result) - 1);
    const int negative = mpfr_signbit(long_result);
    mpfr_mul_2si(long_result, long_result, ORACLE_FRACTION - q, MPFR_RNDN);
    mpfr_abs(long_result, long_result, MPFR_RNDN);
    const int dropped = !mpfr_integer_p(long_result);
    mpfr_get_z(whole_part, long_result, MPFR_RNDZ);
    oracle_place(v, negative, q, whole_part, dropped || ternary != 0);
}

uint64_t oracle_arith_mpfr(const oracle_arith *o, uint64_t a, uint64_t b, uint64_t c, uint32_t random, unsigned *flags)
{
    const oracle_format *of = o->result;
    oracle_operand x[3];
    oracle_value v;
    set_up();
    set_up_mpfr();
    if (oracle_arith_read(x, &v, o, (const uint64_t[]){a, b, c}))
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
        const int beyond = out.magnitude > of->max || (out.magnitude != 0 && mpfr_get_exp(y) > 1024);
        out.kind = beyond ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
    }
    const uint64_t code = oracle_finish(of, &o->r, &out, flags);
    *flags |= more;
    return code;
}
