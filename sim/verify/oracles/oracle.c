/* oracle.c -- see oracle.h.
 *
 * Every number in the two tables below is typed from the standard named beside it. Do not
 * derive one from another, and do not copy one from lib/: two independent statements of the
 * same fact are the point. */
#include "oracle.h"

#include <assert.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNED 1
#define UNSIGNED 0

/* The typed rows; behind them oracle_find puts the P3109 formats that it is asked for. */
/* clang-format off */
static oracle_format formats[1200] = {
    /* IEEE 754-2019, table 3.5; NaN and infinity codes: 3.4, quiet bit: 6.2.1. */
    {.name = "binary64", .bits = 64, .is_signed = SIGNED, .precision = 53, .emin = -1022,
     .zeros = 2, .max = 0x1.fffffffffffffp1023, .inf = 0x7ff0000000000000,
     .nan = 0x7ff8000000000000, .nan_low = 0x7ff0000000000001, .nan_high = 0x7fffffffffffffff},
    {.name = "binary32", .bits = 32, .is_signed = SIGNED, .precision = 24, .emin = -126,
     .zeros = 2, .max = 0x1.fffffep127, .inf = 0x7f800000,
     .nan = 0x7fc00000, .nan_low = 0x7f800001, .nan_high = 0x7fffffff},
    {.name = "fp16", .bits = 16, .is_signed = SIGNED, .precision = 11, .emin = -14,
     .zeros = 2, .max = 65504, .inf = 0x7c00,
     .nan = 0x7e00, .nan_low = 0x7c01, .nan_high = 0x7fff},
    /* The upper 19 and 16 bits of binary32. */
    {.name = "tf32", .bits = 19, .is_signed = SIGNED, .precision = 11, .emin = -126,
     .zeros = 2, .max = 0x1.ffcp127, .inf = 0x3fc00,
     .nan = 0x3fe00, .nan_low = 0x3fc01, .nan_high = 0x3ffff},
    {.name = "bf16", .bits = 16, .is_signed = SIGNED, .precision = 8, .emin = -126,
     .zeros = 2, .max = 0x1.fep127, .inf = 0x7f80,
     .nan = 0x7fc0, .nan_low = 0x7f81, .nan_high = 0x7fff},
    /* OCP OFP8 1.0, tables 1 and 2. */
    {.name = "e4m3", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 448, .nan = 0x7f, .nan_low = 0x7f, .nan_high = 0x7f},
    {.name = "e5m2", .bits = 8, .is_signed = SIGNED, .precision = 3, .emin = -14,
     .zeros = 2, .max = 57344, .inf = 0x7c, .nan = 0x7e, .nan_low = 0x7d, .nan_high = 0x7f},
    /* ml_dtypes: float8_e4m3fnuz, float8_e5m2fnuz, float8_e4m3b11fnuz, float8_e4m3,
       float8_e3m4. */
    {.name = "e4m3fnuz", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -7,
     .zeros = 1, .max = 240, .nan = 0x80},
    {.name = "e5m2fnuz", .bits = 8, .is_signed = SIGNED, .precision = 3, .emin = -15,
     .zeros = 1, .max = 57344, .nan = 0x80},
    {.name = "e4m3b11fnuz", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -10,
     .zeros = 1, .max = 30, .nan = 0x80},
    {.name = "e4m3ieee", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 240, .inf = 0x78, .nan = 0x7c, .nan_low = 0x79, .nan_high = 0x7f},
    {.name = "e3m4", .bits = 8, .is_signed = SIGNED, .precision = 5, .emin = -2,
     .zeros = 2, .max = 15.5, .inf = 0x70, .nan = 0x78, .nan_low = 0x71, .nan_high = 0x7f},
    /* OCP MX 1.0, section 5.3. */
    {.name = "e3m2", .bits = 6, .is_signed = SIGNED, .precision = 3, .emin = -2,
     .zeros = 2, .max = 28},
    {.name = "e2m3", .bits = 6, .is_signed = SIGNED, .precision = 4, .emin = 0,
     .zeros = 2, .max = 7.5},
    {.name = "e2m1", .bits = 4, .is_signed = SIGNED, .precision = 2, .emin = 0,
     .zeros = 2, .max = 6},
    {.name = "e8m0", .bits = 8, .is_signed = UNSIGNED, .precision = 1, .emin = -127,
     .zeros = 0, .max = 0x1p127, .nan = 0xff, .nan_low = 0xff, .nan_high = 0xff},

    /* What a user may type: the layouts that mpsim_format_parse documents, by hand. */
    {.name = "e5m7", .bits = 13, .is_signed = SIGNED, .precision = 8, .emin = -14,
     .zeros = 2, .max = 0x1.fep15, .inf = 0xf80,
     .nan = 0xfc0, .nan_low = 0xf81, .nan_high = 0xfff},
    {.name = "e6m9", .bits = 16, .is_signed = SIGNED, .precision = 10, .emin = -30,
     .zeros = 2, .max = 0x1.ff8p31, .inf = 0x7e00,
     .nan = 0x7f00, .nan_low = 0x7e01, .nan_high = 0x7fff},
    {.name = "e3m0:finite", .bits = 4, .is_signed = SIGNED, .precision = 1, .emin = -2,
     .zeros = 2, .max = 16},
    {.name = "e3m0:fn", .bits = 4, .is_signed = SIGNED, .precision = 1, .emin = -2,
     .zeros = 2, .max = 8, .nan = 7, .nan_low = 7, .nan_high = 7},
    {.name = "e3m0:fnuz", .bits = 4, .is_signed = SIGNED, .precision = 1, .emin = -3,
     .zeros = 1, .max = 8, .nan = 8},
    {.name = "e4m3:finite", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 480},
    {.name = "e4m3:ieee", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 240, .inf = 0x78, .nan = 0x7c, .nan_low = 0x79, .nan_high = 0x7f},
    {.name = "e4m3:ieee:noinf", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 240, .nan = 0x7c, .nan_low = 0x78, .nan_high = 0x7f},
    {.name = "e4m3:fn:inf", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 416, .inf = 0x7e, .nan = 0x7f, .nan_low = 0x7f, .nan_high = 0x7f},
    {.name = "e4m3:finite:inf", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -6,
     .zeros = 2, .max = 448, .inf = 0x7f},
    {.name = "e4m3:fnuz:inf", .bits = 8, .is_signed = SIGNED, .precision = 4, .emin = -7,
     .zeros = 1, .max = 224, .inf = 0x7f, .nan = 0x80},
    {.name = "e5m2:bias=20:fn", .bits = 8, .is_signed = SIGNED, .precision = 3, .emin = -19,
     .zeros = 2, .max = 3072, .nan = 0x7f, .nan_low = 0x7f, .nan_high = 0x7f},
    {.name = "e8m7:noinf", .bits = 16, .is_signed = SIGNED, .precision = 8, .emin = -126,
     .zeros = 2, .max = 0x1.fep127, .nan = 0x7fc0, .nan_low = 0x7f80, .nan_high = 0x7fff},
    {.name = "e4m4:unsigned", .bits = 8, .is_signed = UNSIGNED, .precision = 5, .emin = -6,
     .zeros = 1, .max = 248, .inf = 0xf0, .nan = 0xf8, .nan_low = 0xf1, .nan_high = 0xff},
    {.name = "e5m3:unsigned:fn", .bits = 8, .is_signed = UNSIGNED, .precision = 4, .emin = -14,
     .zeros = 1, .max = 114688, .nan = 0xff, .nan_low = 0xff, .nan_high = 0xff},
    {.name = "e3m3:unsigned:finite", .bits = 6, .is_signed = UNSIGNED, .precision = 4,
     .emin = -2, .zeros = 1, .max = 30},
    {.name = "e2m1:ieee:bias=-3", .bits = 4, .is_signed = SIGNED, .precision = 2, .emin = 4,
     .zeros = 2, .max = 48, .inf = 6, .nan = 7, .nan_low = 7, .nan_high = 7},
    {.name = "e1m6:finite", .bits = 8, .is_signed = SIGNED, .precision = 7, .emin = 1,
     .zeros = 2, .max = 3.96875},
    {.name = "e11m1:fnuz", .bits = 13, .is_signed = SIGNED, .precision = 2, .emin = -1023,
     .zeros = 1, .max = 0x1.8p1023, .nan = 0x1000},
    /* At the lower and the upper end of binary64. */
    {.name = "e8m7:bias=1068:finite", .bits = 16, .is_signed = SIGNED, .precision = 8,
     .emin = -1067, .zeros = 2, .max = 0x1.fep-813},
    {.name = "e4m3:bias=-1008:finite", .bits = 8, .is_signed = SIGNED, .precision = 4,
     .emin = 1009, .zeros = 2, .max = 0x1.ep1023},
    {.name = "e11m20", .bits = 32, .is_signed = SIGNED, .precision = 21, .emin = -1022,
     .zeros = 2, .max = 0x1.fffffp1023, .inf = 0x7ff00000,
     .nan = 0x7ff80000, .nan_low = 0x7ff00001, .nan_high = 0x7fffffff},
    {.name = "e8m23:bias=100", .bits = 32, .is_signed = SIGNED, .precision = 24, .emin = -99,
     .zeros = 2, .max = 0x1.fffffep154, .inf = 0x7f800000,
     .nan = 0x7fc00000, .nan_low = 0x7f800001, .nan_high = 0x7fffffff},
    {.name = "e9m30", .bits = 40, .is_signed = SIGNED, .precision = 31, .emin = -254,
     .zeros = 2, .max = 0x1.fffffffcp255, .inf = 0x7fc0000000,
     .nan = 0x7fe0000000, .nan_low = 0x7fc0000001, .nan_high = 0x7fffffffff},
};
/* clang-format on */

#define FIRST_TYPED "e5m7" /* of the rows above: the first one that no table names */

static mpfr_t product;     /* x * scale: 106 bits hold it exactly                */
static mpfr_t scaled;      /* the same times a power of two                      */
static mpfr_t whole;       /* its integer part                                   */
static mpfr_t nu;          /* its fraction                                       */
static mpfr_t rounded[54]; /* rounded[p] has precision p                         */

static void set_up(void)
{
    static int done;
    if (done)
        return;
    /* Wide, so that only what is narrowed on purpose below is ever clipped. */
    mpfr_set_emin(-20000);
    mpfr_set_emax(20000);
    mpfr_inits2(106, product, scaled, whole, nu, (mpfr_ptr)0);
    for (int p = 1; p <= 53; p++)
        mpfr_init2(rounded[p], p);
    done = 1;
}

static uint64_t low_bits(int n)
{
    return n >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
}

static uint64_t sign_bit(const oracle_format *of)
{
    return of->is_signed ? (uint64_t)1 << (of->bits - 1) : 0;
}

/* The number of the smallest normal among the magnitudes: the subnormals and zero precede
 * it, which are 2^(p-1) in number. */
static uint64_t subnormals(const oracle_format *of)
{
    return of->zeros ? (uint64_t)1 << (of->precision - 1) : 0;
}

double oracle_magnitude(const oracle_format *of, uint64_t i)
{
    if (of->values && i <= of->max_code + 1)
        return of->values[i];
    const int t = of->precision - 1;
    if (i < subnormals(of))
        return ldexp((double)i, of->emin - t);
    const uint64_t above = i - subnormals(of);
    const int e = of->emin + (int)(above >> t);
    return ldexp((double)(((uint64_t)1 << t) + (above & low_bits(t))), e - t);
}

/* The inverse: magnitudes are numbered in ascending order, which is how every one of these
 * standards assigns its codes. */
static uint64_t number_of(const oracle_format *of, double magnitude)
{
    if (magnitude == 0)
        return 0;
    const int t = of->precision - 1;
    int e;
    const double m = frexp(magnitude, &e); /* in [1/2, 1) */
    e--;
    if (e < of->emin)
        return (uint64_t)ldexp(magnitude, t - of->emin);
    const uint64_t significand = (uint64_t)ldexp(m, t + 1);
    return subnormals(of) + ((uint64_t)(e - of->emin) << t) + (significand - ((uint64_t)1 << t));
}

/* The ascending list: from 0 (or the smallest number) in steps of one unit in the last
 * place, which doubles whenever the next power of two is reached. */
static void list_values(oracle_format *of)
{
    double step = ldexp(1, of->emin - of->precision + 1);
    double v = of->zeros ? 0 : ldexp(1, of->emin);
    double binade_end = ldexp(1, of->emin + 1);
    of->values = malloc((size_t)(of->max_code + 2) * sizeof *of->values);
    assert(of->values);
    for (uint64_t i = 0; i <= of->max_code + 1; i++) {
        of->values[i] = v;
        assert(i > of->max_code || number_of(of, v) == i);
        v += step;
        if (v >= binade_end) {
            binade_end *= 2;
            step *= 2;
        }
    }
    assert(of->values[of->max_code] == of->max);
}

static const oracle_format *prepared(oracle_format *of)
{
    set_up();
    if (of->max_code)
        return of;
    of->max_code = number_of(of, of->max);
    if (of->bits <= 19)
        list_values(of);
    return of;
}

/* P3109 interim report 4.0, 4.2: bias 2^(K-P-1) signed, 2^(K-P) unsigned. Signed: NaN is
 * 2^(K-1), +inf the code before it. Unsigned: NaN is the last code, +inf the one before. */
static int fill_p3109(oracle_format *of, int k, int p, int is_signed, int extended)
{
    if (k < 3 || k > 16 || p < 1 || p > (is_signed ? k - 1 : k))
        return 0;
    const int bias = 1 << (is_signed ? k - p - 1 : k - p);
    const uint64_t nan = is_signed ? (uint64_t)1 << (k - 1) : low_bits(k);
    const uint64_t last = nan - 1; /* the largest magnitude that is a number or infinity */
    *of = (oracle_format){.bits = k, .is_signed = is_signed, .precision = p, .emin = 1 - bias, .zeros = 1, .nan = nan};
    if (!is_signed)
        of->nan_low = of->nan_high = nan;
    if (extended)
        of->inf = last;
    snprintf(of->name, sizeof of->name, "binary%dp%d%c%c", k, p, is_signed ? 's' : 'u', extended ? 'e' : 'f');
    of->max = oracle_magnitude(of, extended ? last - 1 : last);
    /* All of it must lie in binary64. */
    return of->emin - p + 1 >= -1074 && isfinite(of->max);
}

const oracle_format *oracle_find(const char *name)
{
    size_t i = 0;
    for (; formats[i].name[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return prepared(&formats[i]);
    assert(i + 1 < sizeof formats / sizeof formats[0]);
    int k, p;
    char s, e;
    if (sscanf(name, "binary%dp%d%c%c", &k, &p, &s, &e) != 4)
        return NULL;
    if (!fill_p3109(&formats[i], k, p, s == 's', e == 'e') || strcmp(formats[i].name, name) != 0) {
        formats[i] = (oracle_format){.bits = 0};
        return NULL;
    }
    return prepared(&formats[i]);
}

const char *oracle_typed(size_t i)
{
    size_t k = 0;
    while (strcmp(formats[k].name, FIRST_TYPED) != 0)
        k++;
    for (; formats[k].name[0]; k++)
        if (strncmp(formats[k].name, "binary", 6) != 0 && i-- == 0)
            return formats[k].name;
    return NULL;
}

oracle_class oracle_classify(const oracle_format *of, uint64_t code)
{
    code &= low_bits(of->bits);
    if (of->nan && code == of->nan)
        return ORACLE_NAN;
    const uint64_t magnitude = code & ~sign_bit(of);
    if (of->nan_low && magnitude >= of->nan_low && magnitude <= of->nan_high)
        return ORACLE_NAN;
    if (of->inf && magnitude == of->inf)
        return ORACLE_INF;
    assert(magnitude <= of->max_code);
    if (of->zeros && magnitude == 0)
        return ORACLE_ZERO;
    return magnitude < subnormals(of) ? ORACLE_SUBNORMAL : ORACLE_NORMAL;
}

double oracle_decode(const oracle_format *of, uint64_t code)
{
    code &= low_bits(of->bits);
    const int negative = (code & sign_bit(of)) != 0;
    const uint64_t magnitude = code & ~sign_bit(of);
    const int t = of->precision - 1;
    uint64_t u;
    double y;
    switch (oracle_classify(of, code)) {
    case ORACLE_NAN:
        /* Quiet, the code's sign, its payload at the top; 1000..0: the positive one. */
        u = 0x7ff8000000000000;
        if (of->nan_low)
            u |= (code & low_bits(t)) << (52 - t) | (uint64_t)negative << 63;
        memcpy(&y, &u, sizeof y);
        return y;
    case ORACLE_INF:
        return negative ? -(double)INFINITY : (double)INFINITY;
    default:
        y = oracle_magnitude(of, magnitude);
        return negative ? -y : y;
    }
}

double oracle_widen(uint32_t binary32)
{
    double y;
    if ((binary32 & 0x7fffffff) > 0x7f800000) { /* bit by bit: C may quiet a NaN */
        const uint64_t u = (uint64_t)(binary32 >> 31) << 63 | (uint64_t)0x7ff << 52 |
                           (uint64_t)(binary32 & 0x7fffff) << 29;
        memcpy(&y, &u, sizeof y);
        return y;
    }
    float x;
    memcpy(&x, &binary32, sizeof x);
    return (double)x;
}

/* What needs no rounding, and for the rest x * scale, exactly, in `product`: signed, or its
 * magnitude. Returns 0 if there is nothing left to round. */
static int begin(oracle_rounded *out, const mpsim_rounding *r, double x, int is_f32)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    *out = (oracle_rounded){.kind = ORACLE_IS_FINITE, .exact = 1};
    out->negative = (int)(u >> 63);
    if (isnan(x)) {
        out->kind = ORACLE_IS_NAN;
        out->payload = u & low_bits(52);
        return 0;
    }
    if (isinf(x)) {
        out->kind = ORACLE_IS_INF;
        return 0;
    }
    out->nonzero = x != 0;
    const double normal = is_f32 ? 0x1p-126 : 0x1p-1022; /* the smallest of the source type */
    const double least_kept = r->flush_below != 0 ? r->flush_below : normal;
    out->read_zero = x == 0 || (r->flush_input && fabs(x) < least_kept);
    if (out->read_zero) {
        out->exact = x == 0; /* a flushed one: the result, zero, differs from x * scale */
        return 0;
    }
    mpfr_set_d(product, x, MPFR_RNDN);
    if (r->scale != 1) {
        const int inexact = mpfr_mul_d(product, product, r->scale, MPFR_RNDN);
        assert(!inexact);
    }
    return 1;
}

/* A sign that the choice ignores does not direct the rounding. */
static int ignores_sign(const oracle_format *of, const mpsim_rounding *r)
{
    return !of->is_signed && r->negative == MPSIM_NEGATIVE_ABS;
}

static void store(oracle_rounded *out, const oracle_format *of, mpfr_srcptr y)
{
    const double magnitude = fabs(mpfr_get_d(y, MPFR_RNDZ)); /* RNDZ: DBL_MAX, if beyond */
    const int beyond = magnitude > of->max || (magnitude != 0 && mpfr_get_exp(y) > 1024);
    out->kind = beyond ? ORACLE_IS_BEYOND : ORACLE_IS_FINITE;
    out->magnitude = magnitude;
}

/* floor(nu 2^n), n <= 33. */
static uint64_t floor_of_nu(int n)
{
    mpfr_mul_2si(scaled, nu, n, MPFR_RNDN);
    return (uint64_t)mpfr_get_d(scaled, MPFR_RNDZ); /* toward zero twice is once */
}

void oracle_round_defined(oracle_rounded *out, const oracle_format *of, const mpsim_rounding *r, double x, int is_f32,
                          uint32_t random)
{
    if (!begin(out, r, x, is_f32))
        return;
    const int negative = out->negative && !ignores_sign(of, r);
    const int p = of->precision;
    mpfr_abs(product, product, MPFR_RNDN);
    const int e = (int)mpfr_get_exp(product) - 1; /* MPFR's significands are in [1/2, 1) */
    const int q = (e > of->emin ? e : of->emin) - p + 1;
    mpfr_mul_2si(scaled, product, -q, MPFR_RNDN);
    mpfr_floor(whole, scaled);
    mpfr_sub(nu, scaled, whole, MPFR_RNDN);

    /* Parity of the code of the lower candidate. With p = 1 it is zero, which is even, or a
     * power of two, whose codes alternate: from code 1, or without zero from code 0. */
    int odd = (int)((uint64_t)mpfr_get_d(whole, MPFR_RNDZ) & 1); /* at most 53 bits: exact */
    if (p == 1 && odd)
        odd = (e - of->emin + (of->zeros ? 1 : 0)) & 1;

    const int half = mpfr_cmp_ui_2exp(nu, 1, -1); /* sign of nu - 1/2 */
    const int any = !mpfr_zero_p(nu);
    int away = 0;
    switch (r->mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        away = half > 0 || (half == 0 && odd);
        break;
    case MPSIM_ROUND_NEAREST_AWAY:
        away = half >= 0;
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
        const uint64_t top = (uint64_t)1 << n, draw = random >> (32 - n);
        out->fraction = floor_of_nu(32);
        if (r->mode == MPSIM_ROUND_STOCHASTIC_A) {
            away = floor_of_nu(n) + draw >= top;
        } else if (r->mode == MPSIM_ROUND_STOCHASTIC_B) {
            away = floor_of_nu(n + 1) + 2 * draw + 1 >= 2 * top;
        } else {
            mpfr_mul_2si(scaled, nu, n, MPFR_RNDN);
            mpfr_roundeven(scaled, scaled);
            away = (uint64_t)mpfr_get_d(scaled, MPFR_RNDN) + draw >= top;
        }
    }
    }
    if (away)
        mpfr_add_ui(whole, whole, 1, MPFR_RNDN);
    mpfr_mul_2si(whole, whole, q, MPFR_RNDN);
    out->exact = !any;
    store(out, of, whole);
}

void oracle_round(oracle_rounded *out, const oracle_format *of, const mpsim_rounding *r, double x, int is_f32,
                  uint32_t random)
{
    mpfr_rnd_t direction;
    switch (r->mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        direction = MPFR_RNDN;
        break;
    case MPSIM_ROUND_TOWARD_ZERO:
        direction = MPFR_RNDZ;
        break;
    case MPSIM_ROUND_UP:
        direction = MPFR_RNDU;
        break;
    case MPSIM_ROUND_DOWN:
        direction = MPFR_RNDD;
        break;
    default:
        oracle_round_defined(out, of, r, x, is_f32, random);
        return;
    }
    /* With one bit of precision MPFR has no parity to go by. */
    if (of->precision == 1 && direction == MPFR_RNDN) {
        oracle_round_defined(out, of, r, x, is_f32, random);
        return;
    }
    if (!begin(out, r, x, is_f32))
        return;
    if (ignores_sign(of, r))
        mpfr_abs(product, product, MPFR_RNDN);

    /* One rounding to p bits; if that is below the normal numbers, MPFR undoes it by the
     * ternary value t and rounds again at the fixed position. In MPFR's count an exponent
     * is one more than in IEEE 754, and emin is that of the smallest subnormal. */
    mpfr_ptr y = rounded[of->precision];
    int t = mpfr_set(y, product, direction);
    if (mpfr_get_exp(y) < of->emin + 1) {
        mpfr_set_emin(of->emin - of->precision + 2);
        t = mpfr_check_range(y, t, direction);
        t = mpfr_subnormalize(y, t, direction);
        mpfr_set_emin(-20000);
    }
    out->exact = t == 0;
    store(out, of, y);
}

/* Is a result in the range of the subnormals? */
static int is_subnormal(const oracle_format *of, double magnitude)
{
    return of->zeros && magnitude != 0 && magnitude < ldexp(1, of->emin);
}

static uint64_t with_sign(const oracle_format *of, int negative, uint64_t code)
{
    return negative ? sign_bit(of) | code : code;
}

static uint64_t largest(const oracle_format *of, int negative)
{
    return with_sign(of, negative, of->max_code);
}

/* A NaN, read or made, in the format: its code under the rules of r. */
static uint64_t nan_code(const oracle_format *of, const mpsim_rounding *r, int negative, uint64_t payload)
{
    if (!of->nan) {
        if (r->no_nan == MPSIM_NO_NAN_MAX)
            return of->max_code;
        /* zero of the opposite sign, where there are two */
        return r->no_nan == MPSIM_NO_NAN_ANTIZERO && !negative && of->zeros == 2 ? sign_bit(of) : 0;
    }
    if (!of->nan_low) /* only one NaN */
        return of->nan;
    const int t = of->precision - 1;
    const uint64_t ones = of->nan_high; /* all exponent and significand bits */
    switch (r->nan) {
    case MPSIM_NANS_POSITIVE:
        return of->nan;
    case MPSIM_NANS_ONES:
        return ones;
    case MPSIM_NANS_ONES_SIGNED:
        return with_sign(of, negative, ones);
    case MPSIM_NANS_MINUS_ONES:
        return with_sign(of, 1, ones);
    case MPSIM_NANS_ONES_OR_CUT: /* the bits of the source from the top, where they can be an infinity's */
        return r->mode != MPSIM_ROUND_NEAREST_AWAY || !payload || !of->inf || !t || of->inf != (ones & ~low_bits(t))
                   ? ones
                   : with_sign(of, negative, of->inf | payload >> (52 - t));
    case MPSIM_NANS_PAYLOAD: {
        /* top exponent, quiet bit, leading payload bits: if the format calls that a NaN */
        uint64_t code = (ones & ~low_bits(t)) | payload >> (52 - t);
        if (t)
            code |= (uint64_t)1 << (t - 1);
        return with_sign(of, negative, code >= of->nan_low ? code : of->nan);
    }
    default:
        return with_sign(of, negative, of->nan);
    }
}

/* What stands for an infinity of that sign. */
static uint64_t infinity_code(const oracle_format *of, const mpsim_rounding *r, int negative)
{
    if (of->inf)
        return with_sign(of, negative, of->inf);
    /* The canonical NaN with the infinity's sign: the NaN rule is for NaNs that are read. */
    if (r->no_inf == MPSIM_NO_INF_NAN && of->nan)
        return of->nan_low ? with_sign(of, negative, of->nan) : of->nan;
    return largest(of, negative);
}

/* Does the mode round numbers beyond the largest away from zero, to infinity? */
static int overflows_to_infinity(const oracle_format *of, const mpsim_rounding *r, int negative)
{
    switch (r->mode) {
    case MPSIM_ROUND_TOWARD_ZERO:
        return 0;
    case MPSIM_ROUND_UP:
        return !negative;
    case MPSIM_ROUND_DOWN:
        return negative;
    case MPSIM_ROUND_TO_ODD:
        return of->max_code % 2 == 0;
    default:
        return 1;
    }
}

uint64_t oracle_finish(const oracle_format *of, const mpsim_rounding *r, const oracle_rounded *in, unsigned *flags)
{
    int negative = in->negative;
    *flags = 0;
    if (in->kind == ORACLE_IS_NAN) {
        *flags = MPSIM_FLAG_NAN;
        return nan_code(of, r, negative, in->payload);
    }
    if (in->kind == ORACLE_IS_INF) {
        if (negative && !of->is_signed) {
            if (r->negative == MPSIM_NEGATIVE_NAN)
                return nan_code(of, r, negative, 0);
            if (r->negative == MPSIM_NEGATIVE_MIN)
                return 0;
            negative = 0;
        }
        return r->infinity == MPSIM_INFINITY_MAX ? largest(of, negative) : infinity_code(of, r, negative);
    }

    double magnitude = in->magnitude;
    int exact = in->exact;
    const int beyond = in->kind == ORACLE_IS_BEYOND;
    /* Before flushing: a number that only flushing makes zero did not round to zero. */
    if (ignores_sign(of, r))
        negative = 0;
    if (negative && !of->is_signed && (beyond || magnitude != 0 || of->zeros == 0)) {
        *flags |= MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_INEXACT;
        if (r->negative == MPSIM_NEGATIVE_NAN)
            return nan_code(of, r, negative, 0);
        return 0;
    }
    if (beyond) {
        *flags |= MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_INEXACT;
        if (r->overflow == MPSIM_OVERFLOW_INF && overflows_to_infinity(of, r, negative))
            return infinity_code(of, r, negative);
        return largest(of, negative);
    }
    if (r->flush_output && is_subnormal(of, magnitude)) {
        magnitude = 0;
        exact = 0;
    }
    if (!exact)
        *flags |= MPSIM_FLAG_INEXACT;
    if (magnitude == 0 && of->zeros == 0) {
        *flags |= MPSIM_FLAG_INEXACT;
        const int nan = r->no_zero == MPSIM_NO_ZERO_NAN || (r->no_zero == MPSIM_NO_ZERO_NAN_MIN && in->read_zero);
        return nan ? nan_code(of, r, negative, 0) : 0;
    }
    if (magnitude == 0) {
        if (in->nonzero)
            *flags |= MPSIM_FLAG_UNDERFLOW;
        return with_sign(of, negative && of->zeros == 2, 0);
    }
    if (is_subnormal(of, magnitude))
        *flags |= MPSIM_FLAG_SUBNORMAL;
    return with_sign(of, negative, number_of(of, magnitude));
}

uint64_t oracle_encode(const oracle_format *of, const mpsim_rounding *r, double x, int is_f32, uint32_t random,
                       unsigned *flags)
{
    oracle_rounded in;
    oracle_round(&in, of, r, x, is_f32, random);
    return oracle_finish(of, r, &in, flags);
}
