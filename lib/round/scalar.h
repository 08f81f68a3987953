/* scalar.h -- THE reference arithmetic: decode and round, in integers only.
 *
 * Compiled as C17 and as CUDA C++; includes nothing that a device cannot compile, touches no
 * floating-point environment and performs no floating-point operation, so that flush-to-zero,
 * excess precision or a changed rounding mode cannot alter a bit. Written to be read, not to
 * be fast. mpsim/format.h and mpsim/round.h have the definitions that it implements. */
#pragma once

#include <mpsim/format.h>
#include <mpsim/round.h>

#include <string.h>

#ifdef __CUDACC__
#define MPSIM_HD __host__ __device__
#else
#define MPSIM_HD
#endif

/* An unpacked real number, infinity or NaN.
 *
 * A finite non-zero number is (-1)^sign * (hi:lo) / 2^127 * 2^exp with the top bit of hi set,
 * so exp = floor(log2 |x|). Zero has hi = lo = 0. A result with more than 128 bits may be
 * given with its lost bits or-ed into bit 0 of lo: no rounding to a significand of up to 53
 * bits with up to 32 random bits looks that far down. A NaN has its payload at the top of
 * hi, the quiet bit first. */
typedef struct mpsim_number {
    int kind; /* MPSIM_NUMBER_* */
    int sign;
    int exp;
    uint64_t hi, lo;
} mpsim_number;

enum { MPSIM_NUMBER_FINITE, MPSIM_NUMBER_INF, MPSIM_NUMBER_NAN };

/* ---- small integer helpers ---- */

/* Number of zero bits above the highest one; u is not 0. */
static inline MPSIM_HD int mpsim_clz64(uint64_t u)
{
#ifdef __CUDA_ARCH__
    return __clzll((long long)u);
#elif defined(__GNUC__)
    return __builtin_clzll(u);
#else
    int n = 0;
    for (; !(u >> 63); u <<= 1)
        n++;
    return n;
#endif
}

/* hi:lo = a * b; portably from four products of 32-bit halves. */
static inline MPSIM_HD void mpsim_mul64(uint64_t *hi, uint64_t *lo, uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__) && !defined(__CUDACC__)
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    *hi = (uint64_t)(product >> 64);
    *lo = (uint64_t)product;
#else
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32);
    const uint64_t middle = a0 * b1 + (uint32_t)cross;
    *hi = a1 * b1 + (cross >> 32) + (middle >> 32);
    *lo = (middle << 32) | (uint32_t)low;
#endif
}

static inline MPSIM_HD uint64_t mpsim_bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline MPSIM_HD double mpsim_f64_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline MPSIM_HD uint32_t mpsim_bits_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline MPSIM_HD float mpsim_f32_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- fields of a format ---- */

static inline MPSIM_HD int mpsim_magnitude_bits(const mpsim_format *f)
{
    return f->ebits + f->mbits;
}

static inline MPSIM_HD uint64_t mpsim_magnitude_mask(const mpsim_format *f)
{
    return ((uint64_t)1 << mpsim_magnitude_bits(f)) - 1; /* at most 63 bits */
}

static inline MPSIM_HD int mpsim_has_sign(const mpsim_format *f)
{
    return f->bits > mpsim_magnitude_bits(f);
}

static inline MPSIM_HD uint64_t mpsim_sign_bit(const mpsim_format *f, int sign)
{
    return sign && mpsim_has_sign(f) ? (uint64_t)1 << mpsim_magnitude_bits(f) : 0;
}

/* Exponent of the smallest normal number. */
static inline MPSIM_HD int mpsim_emin(const mpsim_format *f)
{
    return f->zero == MPSIM_ZERO_NONE ? -f->bias : 1 - f->bias;
}

static inline MPSIM_HD mpsim_class mpsim_scalar_classify(const mpsim_format *f, uint64_t code)
{
    const uint64_t m = code & mpsim_magnitude_mask(f);
    const int negative = mpsim_has_sign(f) && (code >> mpsim_magnitude_bits(f) & 1);
    if (f->nan == MPSIM_NAN_NEGZERO && negative && m == 0)
        return MPSIM_CLASS_NAN;
    if (m > f->max_finite)
        return f->inf && m == f->max_finite + 1 ? MPSIM_CLASS_INF : MPSIM_CLASS_NAN;
    if (f->zero == MPSIM_ZERO_NONE)
        return MPSIM_CLASS_NORMAL;
    if (m == 0)
        return MPSIM_CLASS_ZERO;
    return m >> f->mbits ? MPSIM_CLASS_NORMAL : MPSIM_CLASS_SUBNORMAL;
}

/* ---- unpack: code -> number ---- */

/* The number sig * 2^exp, or zero. */
static inline MPSIM_HD mpsim_number mpsim_number_make(int sign, uint64_t sig, int exp)
{
    mpsim_number x;
    x.kind = MPSIM_NUMBER_FINITE;
    x.sign = sign;
    x.lo = 0;
    if (sig == 0) {
        x.exp = 0;
        x.hi = 0;
    } else {
        const int n = mpsim_clz64(sig);
        x.exp = exp + 63 - n;
        x.hi = sig << n;
    }
    return x;
}

static inline MPSIM_HD mpsim_number mpsim_scalar_unpack(const mpsim_format *f, uint64_t code)
{
    const uint64_t m = code & mpsim_magnitude_mask(f);
    const uint64_t t = m & (((uint64_t)1 << f->mbits) - 1);
    const int negative = mpsim_has_sign(f) && (code >> mpsim_magnitude_bits(f) & 1);
    const int e = (int)(m >> f->mbits);
    mpsim_number x;
    switch (mpsim_scalar_classify(f, code)) {
    case MPSIM_CLASS_NAN:
        x.kind = MPSIM_NUMBER_NAN;
        x.sign = f->nan == MPSIM_NAN_NEGZERO ? 0 : negative;
        x.exp = 0;
        x.hi = f->nan == MPSIM_NAN_NEGZERO || f->mbits == 0 ? 0 : t << (64 - f->mbits);
        x.lo = 0;
        return x;
    case MPSIM_CLASS_INF:
        x = mpsim_number_make(negative, 0, 0);
        x.kind = MPSIM_NUMBER_INF;
        return x;
    case MPSIM_CLASS_NORMAL:
        return mpsim_number_make(negative, (uint64_t)1 << f->mbits | t, e - f->bias - f->mbits);
    case MPSIM_CLASS_ZERO:
    case MPSIM_CLASS_SUBNORMAL:
    default:
        return mpsim_number_make(negative, t, 1 - f->bias - f->mbits);
    }
}

/* The same for the two native types, whose layout is fixed (IEEE 754-2019 3.4). */
static inline MPSIM_HD mpsim_number mpsim_number_native(int sign, int e, uint64_t t, int mbits, int emax)
{
    mpsim_number x;
    if (e == 0) /* zero, subnormal */
        return mpsim_number_make(sign, t, 1 - emax - mbits);
    x.sign = sign;
    x.lo = 0;
    if (e == 2 * emax + 1) {
        x.kind = t ? MPSIM_NUMBER_NAN : MPSIM_NUMBER_INF;
        x.exp = 0;
        x.hi = t << (64 - mbits);
    } else {
        x.kind = MPSIM_NUMBER_FINITE;
        x.exp = e - emax;
        x.hi = ((uint64_t)1 << mbits | t) << (63 - mbits);
    }
    return x;
}

static inline MPSIM_HD mpsim_number mpsim_number_of_f32_bits(uint32_t u)
{
    return mpsim_number_native((int)(u >> 31), (int)(u >> 23 & 0xff), u & 0x7fffff, 23, 127);
}

static inline MPSIM_HD mpsim_number mpsim_number_f32(float v)
{
    return mpsim_number_of_f32_bits(mpsim_bits_f32(v));
}

static inline MPSIM_HD mpsim_number mpsim_number_f64(double v)
{
    const uint64_t u = mpsim_bits_f64(v);
    return mpsim_number_native((int)(u >> 63), (int)(u >> 52 & 0x7ff), u & 0xfffffffffffffu, 52, 1023);
}

/* x * |y| for a finite x and a finite non-zero y that both have lo = 0: exact in 128 bits. */
static inline MPSIM_HD mpsim_number mpsim_number_scale(mpsim_number x, mpsim_number y)
{
    if (x.kind != MPSIM_NUMBER_FINITE || x.hi == 0)
        return x;
    x.exp += y.exp;
    if (y.hi == (uint64_t)1 << 63) /* a power of two */
        return x;
    mpsim_mul64(&x.hi, &x.lo, x.hi, y.hi); /* in [2^126, 2^128) */
    if (x.hi >> 63) {
        x.exp++;
    } else {
        x.hi = x.hi << 1 | x.lo >> 63;
        x.lo <<= 1;
    }
    return x;
}

/* ---- decode: code -> binary64 ---- */

/* The binary64 of a number that is one: hi:lo has at most 53 significant bits, fewer below
 * the normal range. */
static inline MPSIM_HD double mpsim_number_to_f64(mpsim_number x)
{
    const uint64_t sign = (uint64_t)x.sign << 63;
    if (x.kind == MPSIM_NUMBER_NAN)
        return mpsim_f64_bits(sign | 0x7ff8000000000000u | x.hi >> 12);
    if (x.kind == MPSIM_NUMBER_INF)
        return mpsim_f64_bits(sign | 0x7ff0000000000000u);
    if (x.hi == 0)
        return mpsim_f64_bits(sign);
    if (x.exp < -1022)
        return mpsim_f64_bits(sign | x.hi >> (-1011 - x.exp)); /* 2^-1074 is bit 0 */
    return mpsim_f64_bits(sign | (uint64_t)(x.exp + 1023) << 52 | (x.hi << 1) >> 12);
}

/* The binary32 of a number that is one. */
static inline MPSIM_HD float mpsim_number_to_f32(mpsim_number x)
{
    const uint32_t sign = (uint32_t)x.sign << 31;
    if (x.kind == MPSIM_NUMBER_NAN)
        return mpsim_f32_bits(sign | 0x7fc00000u | (uint32_t)(x.hi >> 41));
    if (x.kind == MPSIM_NUMBER_INF)
        return mpsim_f32_bits(sign | 0x7f800000u);
    if (x.hi == 0)
        return mpsim_f32_bits(sign);
    if (x.exp < -126)
        return mpsim_f32_bits(sign | (uint32_t)(x.hi >> (-86 - x.exp))); /* 2^-149 is bit 0 */
    return mpsim_f32_bits(sign | (uint32_t)(x.exp + 127) << 23 | (uint32_t)((x.hi << 1) >> 41));
}

static inline MPSIM_HD double mpsim_scalar_decode(const mpsim_format *f, uint64_t code)
{
    return mpsim_number_to_f64(mpsim_scalar_unpack(f, code));
}

/* ---- encode: number -> code ---- */

static inline MPSIM_HD uint64_t mpsim_scalar_zero(const mpsim_format *f, int sign)
{
    return f->zero == MPSIM_ZERO_SIGNED ? mpsim_sign_bit(f, sign) : 0;
}

static inline MPSIM_HD uint64_t mpsim_scalar_max(const mpsim_format *f, int sign)
{
    return f->max_finite | mpsim_sign_bit(f, sign);
}

/* Whether a NaN is cut to its leading bits, see MPSIM_NANS_ONES_OR_CUT. */
static inline MPSIM_HD int mpsim_cuts_nans(const mpsim_format *f, const mpsim_rounding *r)
{
    const uint64_t payloads = ((uint64_t)1 << f->mbits) - 1;
    return r->nan == MPSIM_NANS_ONES_OR_CUT && r->mode == MPSIM_ROUND_NEAREST_AWAY && f->nan == MPSIM_NAN_TOP &&
           f->inf && f->mbits > 0 && f->max_finite + 1 == (mpsim_magnitude_mask(f) ^ payloads);
}

/* Whether the code of a NaN depends on more than its sign. */
static inline MPSIM_HD int mpsim_keeps_payloads(const mpsim_format *f, const mpsim_rounding *r)
{
    return f->nan == MPSIM_NAN_TOP && (r->nan == MPSIM_NANS_PAYLOAD || mpsim_cuts_nans(f, r));
}

/* The code for a NaN with the given sign and payload. A payload of 0 is that of no NaN which is read. */
static inline MPSIM_HD uint64_t mpsim_scalar_nan(const mpsim_format *f, const mpsim_rounding *r, int sign,
                                                 uint64_t payload)
{
    if (f->nan == MPSIM_NAN_NONE) {
        if (r->no_nan == MPSIM_NO_NAN_MAX)
            return mpsim_scalar_max(f, 0);
        return mpsim_scalar_zero(f, r->no_nan == MPSIM_NO_NAN_ANTIZERO && !sign);
    }
    if (f->nan == MPSIM_NAN_NEGZERO)
        return f->nan_code;
    switch (r->nan) {
    case MPSIM_NANS_POSITIVE:
        return f->nan_code;
    case MPSIM_NANS_PAYLOAD:
        return f->nan_code | (f->mbits ? payload >> (64 - f->mbits) : 0) | mpsim_sign_bit(f, sign);
    case MPSIM_NANS_ONES:
        return mpsim_magnitude_mask(f);
    case MPSIM_NANS_ONES_SIGNED:
        return mpsim_magnitude_mask(f) | mpsim_sign_bit(f, sign);
    case MPSIM_NANS_MINUS_ONES:
        return mpsim_magnitude_mask(f) | mpsim_sign_bit(f, 1);
    case MPSIM_NANS_ONES_OR_CUT:
        return payload && mpsim_cuts_nans(f, r)
                   ? (f->max_finite + 1 + (payload >> (64 - f->mbits))) | mpsim_sign_bit(f, sign)
                   : mpsim_magnitude_mask(f);
    case MPSIM_NANS_SIGNED:
    default:
        return f->nan_code | mpsim_sign_bit(f, sign);
    }
}

/* Infinity of the given sign, or what stands for it. The NaN that stands for an infinity
 * keeps its sign under every NaN rule, as in OCP, CUDA and PyTorch casts. */
static inline MPSIM_HD uint64_t mpsim_scalar_infinite(const mpsim_format *f, const mpsim_rounding *r, int sign)
{
    if (f->inf)
        return (f->max_finite + 1) | mpsim_sign_bit(f, sign);
    if (r->no_inf == MPSIM_NO_INF_NAN && f->nan == MPSIM_NAN_NEGZERO)
        return f->nan_code;
    if (r->no_inf == MPSIM_NO_INF_NAN && f->nan == MPSIM_NAN_TOP)
        return f->nan_code | mpsim_sign_bit(f, sign);
    return mpsim_scalar_max(f, sign);
}

/* A negative number or infinity in an unsigned format. */
static inline MPSIM_HD uint64_t mpsim_scalar_negative(const mpsim_format *f, const mpsim_rounding *r)
{
    return r->negative == MPSIM_NEGATIVE_NAN ? mpsim_scalar_nan(f, r, 0, 0) : 0;
}

/* Whether a finite overflow goes to infinity rather than to the largest finite number. */
static inline MPSIM_HD int mpsim_overflows_to_inf(const mpsim_format *f, int mode, int sign)
{
    switch (mode) {
    case MPSIM_ROUND_TOWARD_ZERO:
        return 0;
    case MPSIM_ROUND_UP:
        return !sign;
    case MPSIM_ROUND_DOWN:
        return sign;
    case MPSIM_ROUND_TO_ODD:
        return !(f->max_finite & 1);
    default:
        return 1;
    }
}

static inline MPSIM_HD int mpsim_is_stochastic(int mode)
{
    return mode >= MPSIM_ROUND_STOCHASTIC_A && mode <= MPSIM_ROUND_STOCHASTIC_C;
}

/* Whether the magnitude is rounded away from zero.
 *
 *   frac, sticky  nu = frac / 2^64, plus something in (0, 2^-64) if sticky
 *   odd           parity of the lower candidate */
static inline MPSIM_HD int mpsim_rounds_away(int mode, int sr_bits, uint32_t random, int sign, int odd, uint64_t frac,
                                             int sticky)
{
    const uint64_t half = (uint64_t)1 << 63;
    const int inexact = frac != 0 || sticky;
    const int n = mpsim_is_stochastic(mode) ? sr_bits : 32;
    const uint64_t draw = random >> (32 - n); /* R */
    switch (mode) {
    case MPSIM_ROUND_NEAREST_EVEN:
        return frac > half || (frac == half && (sticky || odd));
    case MPSIM_ROUND_NEAREST_AWAY:
        return frac >= half;
    case MPSIM_ROUND_UP:
        return inexact && !sign;
    case MPSIM_ROUND_DOWN:
        return inexact && sign;
    case MPSIM_ROUND_TO_ODD:
        return inexact && !odd;
    case MPSIM_ROUND_STOCHASTIC_A:
        return (frac >> (64 - n)) + draw >= (uint64_t)1 << n;
    case MPSIM_ROUND_STOCHASTIC_B:
        return (frac >> (63 - n)) + 2 * draw + 1 >= (uint64_t)2 << n;
    case MPSIM_ROUND_STOCHASTIC_C: {
        const uint64_t whole = frac >> (64 - n), rest = frac << n;
        const int up = rest > half || (rest == half && (sticky || (whole & 1)));
        return whole + (uint64_t)up + draw >= (uint64_t)1 << n;
    }
    case MPSIM_ROUND_TOWARD_ZERO:
    default:
        return 0;
    }
}

/* Larger exponents overflow every format alike, since all lie in binary64; with this one a code with
 * unbounded exponent still fits in 64 bits: (3000 + 1074 + 1) 2^52 < 2^64. */
enum { MPSIM_EXP_BEYOND = 3000 };

/* S = |x| / 2^q without its fraction; nu = the fraction, as frac / 2^64 and sticky. The significand
 * hi:lo has its point after the top bit, and `drop` bits of it go: at least 75. */
static inline MPSIM_HD uint64_t mpsim_scalar_split(mpsim_number x, int drop, uint64_t *frac, int *sticky)
{
    *frac = 0;
    *sticky = 1;
    if (drop < 128) {
        const int n = drop - 64;
        *frac = x.hi << (64 - n) | x.lo >> n;
        *sticky = x.lo << (64 - n) != 0;
        return x.hi >> n;
    }
    if (drop == 128) {
        *frac = x.hi;
        *sticky = x.lo != 0;
    } else if (drop < 192) {
        const int n = drop - 128;
        *frac = x.hi >> n;
        *sticky = (x.hi << (64 - n) | x.lo) != 0;
    }
    return 0;
}

/* The code of x rounded to f, once. `mode` is r->mode, as an argument of its own so that a
 * caller in a loop can make it a constant. *flags receives MPSIM_FLAG_*. */
static inline MPSIM_HD uint64_t mpsim_scalar_encode(const mpsim_format *f, const mpsim_rounding *r, int mode,
                                                    mpsim_number x, uint32_t random, unsigned *flags)
{
    const int no_zero = f->zero == MPSIM_ZERO_NONE;
    const int is_unsigned = !mpsim_has_sign(f);
    *flags = 0;
    if (x.kind == MPSIM_NUMBER_NAN) {
        *flags = MPSIM_FLAG_NAN;
        return mpsim_scalar_nan(f, r, x.sign, x.hi);
    }
    if (is_unsigned && r->negative == MPSIM_NEGATIVE_ABS)
        x.sign = 0;
    if (x.kind == MPSIM_NUMBER_INF) {
        if (is_unsigned && x.sign)
            return mpsim_scalar_negative(f, r);
        return r->infinity == MPSIM_INFINITY_MAX ? mpsim_scalar_max(f, x.sign) : mpsim_scalar_infinite(f, r, x.sign);
    }
    if (x.hi == 0) {
        if (!no_zero)
            return mpsim_scalar_zero(f, x.sign);
        *flags = MPSIM_FLAG_INEXACT;
        if (x.sign) {
            *flags |= MPSIM_FLAG_OVERFLOW;
            return mpsim_scalar_negative(f, r);
        }
        return r->no_zero == MPSIM_NO_ZERO_MIN ? 0 : mpsim_scalar_nan(f, r, 0, 0);
    }

    const int emin = mpsim_emin(f);
    if (x.exp > MPSIM_EXP_BEYOND)
        x.exp = MPSIM_EXP_BEYOND;
    const int e = x.exp > emin ? x.exp : emin;
    uint64_t frac;
    int sticky;
    const uint64_t s = mpsim_scalar_split(x, 127 - f->mbits + (e - x.exp), &frac, &sticky);

    /* Magnitude codes are consecutive, so the candidate above is the next code, also across
     * a binade. In a format without zero S = 0 has no code and counts as even. */
    const uint64_t below = ((uint64_t)(e - emin) << f->mbits) + s - (uint64_t)no_zero;
    const int odd = (int)(below & 1) && !(no_zero && s == 0);
    const int away = mpsim_rounds_away(mode, r->sr_bits, random, x.sign, odd, frac, sticky);
    const uint64_t m = below + (uint64_t)away;
    const int rounds_to_zero = s == 0 && !away;

    if (frac || sticky)
        *flags = MPSIM_FLAG_INEXACT;
    if (is_unsigned && x.sign && !(rounds_to_zero && !no_zero)) {
        *flags = MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW;
        return mpsim_scalar_negative(f, r);
    }
    if (rounds_to_zero) {
        if (no_zero)
            return r->no_zero == MPSIM_NO_ZERO_NAN ? mpsim_scalar_nan(f, r, 0, 0) : 0;
        *flags |= MPSIM_FLAG_UNDERFLOW;
        return mpsim_scalar_zero(f, x.sign);
    }
    if (m > f->max_finite) {
        *flags = MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW;
        if (r->overflow == MPSIM_OVERFLOW_MAX || !mpsim_overflows_to_inf(f, mode, x.sign))
            return mpsim_scalar_max(f, x.sign);
        return mpsim_scalar_infinite(f, r, x.sign);
    }
    if (!no_zero && m >> f->mbits == 0) {
        if (r->flush_output) {
            *flags = MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW;
            return mpsim_scalar_zero(f, x.sign);
        }
        *flags |= MPSIM_FLAG_SUBNORMAL;
    }
    return m | mpsim_sign_bit(f, x.sign);
}

/* Whether x is tiny in f: MPSIM_TINY_*; see mpsim_tiny_f64. */
static inline MPSIM_HD unsigned mpsim_scalar_tiny(const mpsim_format *f, const mpsim_rounding *r, mpsim_number x,
                                                  uint32_t random)
{
    const int emin = mpsim_emin(f);
    if (x.kind != MPSIM_NUMBER_FINITE || x.hi == 0 || x.exp >= emin)
        return 0;
    if (x.exp < emin - 1)
        return MPSIM_TINY_BEFORE | MPSIM_TINY_AFTER;
    uint64_t frac;
    int sticky;
    const uint64_t s = mpsim_scalar_split(x, 127 - f->mbits, &frac, &sticky);
    const int odd = f->mbits ? (int)(s & 1) : f->zero != MPSIM_ZERO_NONE ? 0 : 1;
    const int sign = x.sign && !(!mpsim_has_sign(f) && r->negative == MPSIM_NEGATIVE_ABS);
    const uint64_t rounded = s + (uint64_t)mpsim_rounds_away(r->mode, r->sr_bits, random, sign, odd, frac, sticky);
    return rounded >> f->mbits == 1 ? MPSIM_TINY_BEFORE | MPSIM_TINY_AFTER : MPSIM_TINY_BEFORE;
}

/* ---- from a native number to a code ---- */

/* Input flushing: a number too small counts as zero. `emin` is that of the source type. */
static inline MPSIM_HD mpsim_number mpsim_scalar_flush(const mpsim_rounding *r, mpsim_number x, int emin)
{
    if (!r->flush_input || x.kind != MPSIM_NUMBER_FINITE)
        return x;
    mpsim_number least = mpsim_number_f64(r->flush_below);
    if (least.hi == 0)
        least = mpsim_number_make(0, 1, emin);
    if (x.exp < least.exp || (x.exp == least.exp && x.hi < least.hi))
        x.hi = 0;
    return x;
}

/* Flush, scale, round; `scale` is r->scale, unpacked. */
static inline MPSIM_HD uint64_t mpsim_scalar_encode_number(const mpsim_format *f, const mpsim_rounding *r,
                                                           mpsim_number scale, mpsim_number x, int emin,
                                                           uint32_t random, unsigned *flags)
{
    const mpsim_number kept = mpsim_scalar_flush(r, x, emin);
    const uint64_t code = mpsim_scalar_encode(f, r, r->mode, mpsim_number_scale(kept, scale), random, flags);
    if (x.kind == MPSIM_NUMBER_FINITE && x.hi != 0 && kept.hi == 0) {
        *flags |= MPSIM_FLAG_INEXACT;
        if (mpsim_scalar_classify(f, code) == MPSIM_CLASS_ZERO)
            *flags |= MPSIM_FLAG_UNDERFLOW;
    }
    return code;
}

static inline MPSIM_HD uint64_t mpsim_scalar_encode_f32(const mpsim_format *f, const mpsim_rounding *r,
                                                        mpsim_number scale, float x, uint32_t random, unsigned *flags)
{
    return mpsim_scalar_encode_number(f, r, scale, mpsim_number_f32(x), -126, random, flags);
}

static inline MPSIM_HD uint64_t mpsim_scalar_encode_f64(const mpsim_format *f, const mpsim_rounding *r,
                                                        mpsim_number scale, double x, uint32_t random, unsigned *flags)
{
    return mpsim_scalar_encode_number(f, r, scale, mpsim_number_f64(x), -1022, random, flags);
}

/* A subnormal number of binary32 by its exponent field, see mpsim_rounding: whether it is read as 2^-126. */
static inline MPSIM_HD int mpsim_is_read_up(const mpsim_rounding *r, uint32_t x)
{
    const uint32_t m = x & 0x7fffffffu;
    if (!r->by_field || m == 0 || m > 0x7fffffu)
        return 0;
    return r->mode == MPSIM_ROUND_UP || (r->mode <= MPSIM_ROUND_NEAREST_AWAY && m > 0x400000u);
}

/* The bits of a binary32 number: the FPU of i386 makes signalling NaNs quiet where a float is copied. */
static inline MPSIM_HD uint64_t mpsim_scalar_encode_bits(const mpsim_format *f, const mpsim_rounding *r,
                                                         mpsim_number scale, uint32_t x, uint32_t random,
                                                         unsigned *flags)
{
    const int up = mpsim_is_read_up(r, x);
    const mpsim_number read = mpsim_number_of_f32_bits(up ? (x & 0x80000000u) | 0x800000u : x);
    const uint64_t code = mpsim_scalar_encode_number(f, r, scale, read, -126, random, flags);
    *flags |= up ? MPSIM_FLAG_INEXACT : 0;
    return code;
}

/* The binary32 number nearest to x, of which a NaN keeps its payload, with the flags that differ from those of its own cast.
 * binary32 is that format. */
static inline MPSIM_HD uint32_t mpsim_scalar_to_binary32(const mpsim_format *binary32, double x, unsigned *flags)
{
    mpsim_rounding r;
    memset(&r, 0, sizeof r);
    r.scale = 1;
    r.nan = MPSIM_NANS_PAYLOAD;
    const uint64_t u = mpsim_scalar_encode_f64(binary32, &r, mpsim_number_f64(1), x, 0, flags);
    *flags &= MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_UNDERFLOW;
    return (uint32_t)u;
}
