/* oracle_sum.c -- see oracle_sum.h. */
#include "../impl.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- exact sums --------------------------------------------------------------------------- */

mpz_t oracle_total;
static mpz_t term, rest, high, half; /* short-lived */

uint64_t oracle_integer(const mpz_t z)
{
    uint64_t x = 0;
    assert(mpz_sgn(z) >= 0 && mpz_sizeinbase(z, 2) <= 64);
    mpz_export(&x, NULL, 1, sizeof x, 0, 0, z);
    return x;
}

void oracle_begin(oracle_exact *x)
{
    static int done;
    if (!done)
        mpz_inits(oracle_total, term, rest, high, half, (mpz_ptr)0);
    done = 1;
    *x = (oracle_exact){.kind = NUMBER};
    mpz_set_ui(oracle_total, 0);
}

/* The first NaN counts, also before an operation without a value: arith.h. */
static void add_nan(oracle_exact *x, double nan)
{
    if (x->kind == NOT_A_NUMBER)
        return;
    uint64_t u;
    memcpy(&u, &nan, sizeof u);
    x->kind = NOT_A_NUMBER;
    x->negative = (int)(u >> 63);
    x->payload = u & 0xfffffffffffff;
}

static void add_invalid(oracle_exact *x)
{
    if (x->kind != NOT_A_NUMBER)
        x->kind = NO_VALUE;
}

void oracle_forget_nan(oracle_exact *x)
{
    if (x->kind == NOT_A_NUMBER)
        x->kind = NO_VALUE;
}

void oracle_add_infinity(oracle_exact *x, int negative)
{
    if (x->kind == INFINITE && x->negative != negative) {
        add_invalid(x);
    } else if (x->kind == NUMBER) {
        x->kind = INFINITE;
        x->negative = negative;
    }
}

static void count_sign(oracle_exact *x, int negative)
{
    if (negative)
        x->minus++;
    else
        x->plus++;
}

/* oracle_total 2^unit += term 2^w; `term` is changed. */
static void add_term(oracle_exact *x, long w)
{
    if (mpz_sgn(term) == 0)
        return;
    if (mpz_sgn(oracle_total) == 0) {
        x->unit = w;
    } else if (w > x->unit) {
        mpz_mul_2exp(term, term, (mp_bitcnt_t)(w - x->unit));
    } else if (w < x->unit) {
        mpz_mul_2exp(oracle_total, oracle_total, (mp_bitcnt_t)(x->unit - w));
        x->unit = w;
    }
    mpz_add(oracle_total, oracle_total, term);
}

/* z = v 2^(53 - e), an integer, for a finite v; returns its unit e - 53. */
static long set_double(mpz_ptr z, double v)
{
    int e;
    mpz_set_d(z, ldexp(frexp(v, &e), 53));
    return e - 53;
}

void oracle_add(oracle_exact *x, double v)
{
    if (isnan(v)) {
        add_nan(x, v);
    } else if (isinf(v)) {
        oracle_add_infinity(x, v < 0);
    } else {
        count_sign(x, !!signbit(v));
        const long w = set_double(term, v);
        add_term(x, w);
    }
}

void oracle_add_product(oracle_exact *x, double a, double b)
{
    const int negative = !!signbit(a) != !!signbit(b);
    if (isnan(a) || isnan(b)) {
        add_nan(x, isnan(a) ? a : b);
    } else if (isinf(a) || isinf(b)) {
        if (a == 0 || b == 0)
            add_invalid(x);
        else
            oracle_add_infinity(x, negative);
    } else {
        count_sign(x, negative);
        long w = set_double(rest, a);
        w += set_double(term, b);
        mpz_mul(term, term, rest);
        add_term(x, w);
    }
}

void oracle_add_aligned(uint64_t s, int negative, long w, int alignment, long unit)
{
    mpz_import(term, 1, 1, sizeof s, 0, 0, &s);
    if (negative)
        mpz_neg(term, term);
    if (w >= unit) {
        mpz_mul_2exp(term, term, (mp_bitcnt_t)(w - unit));
    } else {
        const mp_bitcnt_t shift = (mp_bitcnt_t)(unit - w);
        if (alignment == MPSIM_ALIGN_TRUNCATE) {
            mpz_tdiv_q_2exp(term, term, shift);
        } else if (alignment == MPSIM_ALIGN_FLOOR) {
            mpz_fdiv_q_2exp(term, term, shift);
        } else { /* floor(x + 1/2), one less if that was a tie and is odd */
            mpz_set_ui(half, 1);
            mpz_mul_2exp(half, half, shift - 1);
            mpz_add(term, term, half);
            mpz_fdiv_r_2exp(rest, term, shift);
            mpz_fdiv_q_2exp(term, term, shift);
            if (mpz_sgn(rest) == 0 && mpz_odd_p(term))
                mpz_sub_ui(term, term, 1);
        }
    }
    mpz_add(oracle_total, oracle_total, term);
}

/* ---- rounding ----------------------------------------------------------------------------- */

/* floor(rest 2^n / 2^shift), n <= 33: a number below 2^33. */
static uint64_t fraction_bits(long shift, int n)
{
    mpz_mul_2exp(high, rest, (mp_bitcnt_t)n);
    mpz_fdiv_q_2exp(high, high, (mp_bitcnt_t)shift);
    return oracle_integer(high);
}

/* The integer nearest to rest 2^n / 2^shift, ties to even. */
static uint64_t fraction_nearest(long shift, int n)
{
    const uint64_t twice = fraction_bits(shift, n + 1);
    mpz_set_ui(half, 0);
    mpz_mul_2exp(high, rest, (mp_bitcnt_t)n + 1);
    mpz_fdiv_r_2exp(half, high, (mp_bitcnt_t)shift);
    const uint64_t below = twice / 2;
    if (twice % 2 == 0)
        return below;
    return mpz_sgn(half) != 0 || below % 2 ? below + 1 : below;
}

/* Is the code of the lower candidate odd? Codes ascend by one from number to number. */
static int is_odd(const oracle_format *of, long e)
{
    if (of->precision > 1)
        return mpz_odd_p(high) != 0;
    return mpz_sgn(high) != 0 && ((e - of->emin + (of->zeros ? 1 : 0)) & 1);
}

/* Round |oracle_total| 2^unit, which is not zero: round.h, first page. */
static void round_sum(oracle_rounded *out, const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r,
                      uint32_t random)
{
    const int negative = out->negative && (of->is_signed || r->negative != MPSIM_NEGATIVE_ABS);
    mpz_abs(oracle_total, oracle_total);
    const long e = (long)mpz_sizeinbase(oracle_total, 2) - 1 + x->unit;
    const long q = (e > of->emin ? e : of->emin) - of->precision + 1;
    long shift = q - x->unit;
    if (shift < 0) {
        mpz_mul_2exp(oracle_total, oracle_total, (mp_bitcnt_t)-shift);
        shift = 0;
    }
    mpz_fdiv_q_2exp(high, oracle_total, (mp_bitcnt_t)shift);
    mpz_fdiv_r_2exp(rest, oracle_total, (mp_bitcnt_t)shift);
    double s = mpz_get_d(high); /* at most 53 bits */
    const int odd = is_odd(of, e);
    const int any = mpz_sgn(rest) != 0;
    mpz_set_ui(half, 1); /* 2 rest against 2^shift */
    mpz_mul_2exp(half, half, (mp_bitcnt_t)shift);
    mpz_mul_2exp(term, rest, 1);
    const int beside_half = mpz_cmp(term, half);
    int away = 0;
    switch (r->mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        away = beside_half > 0 || (beside_half == 0 && odd);
        break;
    case MPSIM_ROUND_NEAREST_AWAY:
        away = beside_half >= 0;
        break;
    case MPSIM_ROUND_TOWARD_ZERO:
        break;
    case MPSIM_ROUND_UP:
        away = any && !negative;
        break;
    case MPSIM_ROUND_DOWN:
        away = any && negative;
        break;
    case MPSIM_ROUND_TO_ODD:
        away = any && !odd;
        break;
    default: {
        const int n = r->sr_bits;
        const uint64_t top = (uint64_t)1 << n, bits = random >> (32 - n);
        if (r->mode == MPSIM_ROUND_STOCHASTIC_A)
            away = fraction_bits(shift, n) + bits >= top;
        else if (r->mode == MPSIM_ROUND_STOCHASTIC_B)
            away = fraction_bits(shift, n + 1) + 2 * bits + 1 >= 2 * top;
        else
            away = fraction_nearest(shift, n) + bits >= top;
    }
    }
    if (away)
        s += 1;
    out->exact = !any;
    out->magnitude = q > 1023 ? HUGE_VAL : ldexp(s, (int)q);
    out->kind = out->magnitude > of->max ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
}

uint64_t oracle_code(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *rounding, uint32_t random,
                     int negative_zero, int to_infinity)
{
    mpsim_rounding r = *rounding;
    oracle_rounded in = {.kind = ORACLE_IS_FINITE, .exact = 1};
    if (x->kind == NOT_A_NUMBER) {
        in.kind = ORACLE_IS_NAN;
        in.negative = x->negative;
        in.payload = x->payload;
    } else if (x->kind == NO_VALUE) {
        in.kind = ORACLE_IS_NAN;
    } else if (x->kind == INFINITE) {
        in.kind = ORACLE_IS_INF;
        in.negative = x->negative;
    } else if (mpz_sgn(oracle_total) == 0) {
        in.negative = negative_zero;
        in.read_zero = 1;
    } else {
        in.negative = mpz_sgn(oracle_total) < 0;
        in.nonzero = 1;
        round_sum(&in, x, of, &r, random);
        if (to_infinity && in.kind == ORACLE_IS_BEYOND)
            r.mode = MPSIM_ROUND_NEAREST_AWAY; /* as if it rounded to infinity */
    }
    unsigned flags;
    return oracle_finish(of, &r, &in, &flags);
}

int oracle_is_negative_zero(const oracle_exact *x, const mpsim_rounding *r)
{
    return x->minus && !x->plus ? 1 : x->plus && !x->minus ? 0 : r->mode == MPSIM_ROUND_DOWN;
}

int oracle_is_tiny(const oracle_exact *x, const oracle_format *of, const mpsim_rounding *r, uint32_t random)
{
    static mpz_t saved;
    static int there;
    oracle_format lower = *of;
    oracle_rounded out = {.negative = mpz_sgn(oracle_total) < 0};
    if (x->kind != NUMBER || mpz_sgn(oracle_total) == 0)
        return 0;
    if (!there)
        mpz_init(saved);
    there = 1;
    mpz_set(saved, oracle_total);
    lower.emin -= 4;
    round_sum(&out, x, &lower, r, random);
    mpz_set(oracle_total, saved);
    return out.magnitude < ldexp(1, of->emin);
}
