/* exact.h -- the correctly rounded values of the functions that the special function unit approximates, in integers only: a
 * reference that a CPU and a device form alike, from which results are kept as differences.
 *
 * Binary32 in and out, rounded to nearest; subnormal operands and results are flushed to zeros of their sign, as the unit does,
 * but of tanh. sin and cos are those of 2 pi r, where r is x / (2 pi) as ptxas forms it: a product with the nearest
 * binary32 of 1 / (2 pi), cut toward zero.
 *
 * A value is a significand of 64 bits, wrong by less than GPU_DOUBT units (16 are never seen), and an exponent. Where that leaves a rounding open,
 * *open is set: `tests/gpu/t-exact --all` finds such operands among all 2^32 and asks MPFR about them. */
#pragma once

#include "../../lib/round/scalar.h"
#include "functions.h"

enum { GPU_DOUBT = 32, GPU_TERMS = 20 };

#ifndef GPU_SEEN /* a test looks at values before they are rounded */
#define GPU_SEEN(value) ((void)0)
#endif

/* m / 2^63 2^exp, the top bit of m set. */
typedef struct gpu_real {
    int sign, exp;
    uint64_t m;
} gpu_real;

/* An operand: 1 <= significand / 2^23 < 2. */
typedef struct gpu_operand {
    int sign, exp;
    uint64_t significand;
} gpu_operand;

static inline MPSIM_HD uint64_t gpu_high(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    uint64_t hi, lo;
    mpsim_mul64(&hi, &lo, a, b);
    return hi;
#endif
}

/* ---- from a value to a code ---- */

static inline MPSIM_HD uint32_t gpu_exact_code(gpu_real y)
{
    const uint64_t rest = y.m & 0xffffffffffu, half = (uint64_t)1 << 39, kept = y.m >> 40;
    const uint64_t up = rest > half || (rest == half && (kept & 1));
    const int64_t code = (int64_t)(y.exp + 126) * 0x800000 + (int64_t)(kept + up); /* a carry moves the exponent on */
    const uint32_t sign = (uint32_t)y.sign << 31;
    if (code >= 0x7f800000)
        return sign | 0x7f800000u;
    return code < 0x800000 ? sign : sign | (uint32_t)code;
}

static inline MPSIM_HD uint32_t gpu_rounded(gpu_real y, int *open)
{
    const uint64_t rest = y.m & 0xffffffffffu, half = (uint64_t)1 << 39;
    GPU_SEEN(y);
    *open |= rest + GPU_DOUBT >= half && rest <= half + GPU_DOUBT;
    return gpu_exact_code(y);
}

static inline MPSIM_HD uint32_t gpu_power_of_2(int sign, int exp)
{
    const gpu_real y = {sign, exp, (uint64_t)1 << 63};
    return gpu_exact_code(y);
}

static inline MPSIM_HD gpu_real gpu_normal(int sign, int exp, uint64_t hi, uint64_t lo)
{
    const int shift = mpsim_clz64(hi);
    const gpu_real y = {sign, exp - shift, shift ? hi << shift | lo >> (64 - shift) : hi};
    return y;
}

/* ---- arithmetic ---- */

/* x times a / 2^63 2^exp; a is not 0. */
static inline MPSIM_HD gpu_real gpu_product(gpu_real x, uint64_t a, int exp)
{
    return gpu_normal(x.sign, x.exp + exp + 1, gpu_high(x.m, a), x.m * a);
}

/* a / d of two numbers with their top bits set; the last bit says whether there is more. */
static inline MPSIM_HD gpu_real gpu_quotient(uint64_t a, uint64_t d, int exp)
{
    const int less = a < d;
    uint64_t r = less ? a : a - d, q = less ? 0 : 1;
#if defined(__SIZEOF_INT128__) && !defined(__CUDACC__)
    __extension__ typedef unsigned __int128 wide;
    const wide n = (wide)a << (less ? 64 : 63);
    q = (uint64_t)(n / d);
    r = (uint64_t)(n % d);
#else
    for (int i = less ? 64 : 63; i > 0; i--) {
        const int carry = (int)(r >> 63);
        r <<= 1;
        const int fits = carry || r >= d;
        r -= fits ? d : 0;
        q = q << 1 | (uint64_t)fits;
    }
#endif
    const gpu_real y = {0, exp - less, q | (r != 0)};
    return y;
}

/* x^2 < 1 as a fraction of 2^64. */
static inline MPSIM_HD uint64_t gpu_square(gpu_real x)
{
    const int shift = -2 * x.exp - 2;
    return shift < 64 ? gpu_high(x.m, x.m) >> shift : 0;
}

/* ---- series: coefficients and sums are multiples of 2^-63, arguments of 2^-64 ---- */

/* (e^t - 1) / t for 0 <= t < 1. */
static inline MPSIM_HD uint64_t gpu_exp_series(uint64_t t)
{
    const uint64_t c[GPU_TERMS] = {0x8000000000000000, 0x4000000000000000, 0x1555555555555555, 0x0555555555555555,
                                   0x0111111111111111, 0x002d82d82d82d82e, 0x0006806806806807, 0x0000d00d00d00d01,
                                   0x0000171de3a556c7, 0x0000024fc9f6ef14, 0x00000035cc8acfeb, 0x000000047bb63bfe,
                                   0x000000005849184f, 0x00000000064e5d2a, 0x00000000006b9fd0, 0x000000000006b9fd,
                                   0x000000000000654b, 0x00000000000005a1, 0x000000000000004c, 0x0000000000000004};
    uint64_t sum = 0;
    for (int i = GPU_TERMS - 1; i >= 0; i--)
        sum = c[i] + gpu_high(t, sum);
    return sum;
}

/* atanh(z) / z, w = z^2 < 0.03. */
static inline MPSIM_HD uint64_t gpu_atanh_series(uint64_t w)
{
    const uint64_t c[14] = {0x8000000000000000, 0x2aaaaaaaaaaaaaab, 0x199999999999999a, 0x1249249249249249,
                            0x0e38e38e38e38e39, 0x0ba2e8ba2e8ba2e9, 0x09d89d89d89d89d9, 0x0888888888888889,
                            0x0787878787878788, 0x06bca1af286bca1b, 0x0618618618618618, 0x0590b21642c8590b,
                            0x051eb851eb851eb8, 0x04bda12f684bda13};
    uint64_t sum = 0;
    for (int i = 13; i >= 0; i--)
        sum = c[i] + gpu_high(w, sum);
    return sum;
}

/* sin(a) / a, w = a^2 < 0.62. */
static inline MPSIM_HD uint64_t gpu_sin_series(uint64_t w)
{
    const uint64_t c[10] = {0x8000000000000000, 0x1555555555555555, 0x0111111111111111, 0x0006806806806807,
                            0x0000171de3a556c7, 0x00000035cc8acfeb, 0x000000005849184f, 0x00000000006b9fd0,
                            0x000000000000654b, 0x000000000000004c};
    uint64_t sum = 0;
    for (int i = 9; i >= 0; i--)
        sum = c[i] - gpu_high(w, sum);
    return sum;
}

/* (1 - cos(a)) / a^2. */
static inline MPSIM_HD uint64_t gpu_cos_series(uint64_t w)
{
    const uint64_t c[10] = {0x4000000000000000, 0x0555555555555555, 0x002d82d82d82d82e, 0x0000d00d00d00d01,
                            0x0000024fc9f6ef14, 0x000000047bb63bfe, 0x00000000064e5d2a, 0x000000000006b9fd,
                            0x00000000000005a1, 0x0000000000000004};
    uint64_t sum = 0;
    for (int i = 9; i >= 0; i--)
        sum = c[i] - gpu_high(w, sum);
    return sum;
}

/* 2^f / 2^-63 for f / 2^64 below 1. */
static inline MPSIM_HD uint64_t gpu_power_fraction(uint64_t f)
{
    const uint64_t t = gpu_high(f, 0xb17217f7d1cf79acu); /* ln 2 */
    return ((uint64_t)1 << 63) + gpu_high(t, gpu_exp_series(t));
}

/* ---- the functions, of operands that are neither zero nor infinite ---- */

static inline MPSIM_HD uint32_t gpu_exact_rcp(gpu_operand x)
{
    if (x.significand == 0x800000)
        return gpu_power_of_2(x.sign, -x.exp);
    gpu_real y = gpu_quotient((uint64_t)1 << 63, x.significand << 40, -x.exp);
    y.sign = x.sign;
    return gpu_exact_code(y);
}

/* The largest r < 2^26 with r^2 a < 2^75. */
static inline MPSIM_HD uint64_t gpu_root_of_inverse(uint64_t a)
{
    uint64_t r = 0, hi, lo;
    for (int i = 25; i >= 0; i--) {
        const uint64_t s = r | (uint64_t)1 << i;
        mpsim_mul64(&hi, &lo, s * s, a);
        r = hi < 0x800 ? s : r;
    }
    return r;
}

static inline MPSIM_HD uint32_t gpu_exact_rsqrt(gpu_operand x)
{
    const int odd = x.exp & 1;
    if (x.significand == 0x800000 && !odd)
        return gpu_power_of_2(0, -(x.exp >> 1));
    const gpu_real y = {0, -(x.exp >> 1) - 1, gpu_root_of_inverse(x.significand << odd) << 38 | 1};
    return gpu_exact_code(y);
}

static inline MPSIM_HD uint32_t gpu_exact_sqrt(gpu_operand x)
{
    const uint64_t a = x.significand << (x.exp & 1 ? 40 : 39);
    uint64_t r = 0;
    for (int i = 31; i >= 0; i--) {
        const uint64_t s = r | (uint64_t)1 << i;
        r = s * s <= a ? s : r;
    }
    const gpu_real y = {0, x.exp >> 1, r << 32 | (r * r != a)};
    return gpu_exact_code(y);
}

static inline MPSIM_HD uint32_t gpu_exact_ex2(gpu_operand x, int *open)
{
    if (x.exp < -26)
        return 0x3f800000;
    if (x.exp > 7)
        return x.sign ? 0 : 0x7f800000;
    uint64_t f = x.significand << (41 + x.exp);
    int whole = x.exp < 0 ? 0 : (int)(x.significand >> (23 - x.exp));
    if (x.sign) {
        whole = -whole - (f != 0);
        f = 0 - f;
    }
    const gpu_real y = {0, whole, gpu_power_fraction(f)};
    return f ? gpu_rounded(y, open) : gpu_power_of_2(0, whole);
}

/* whole + part for |part| <= 1/2 and whole not 0. */
static inline MPSIM_HD gpu_real gpu_add_whole(int whole, gpu_real part)
{
    const int sign = whole < 0, apart = part.sign != sign;
    const uint64_t size = (uint64_t)(sign ? -whole : whole), fraction = part.exp < -64 ? 1 : part.m >> (-1 - part.exp);
    const uint64_t hi = size - (uint64_t)apart, lo = apart ? 0 - fraction : fraction;
    return hi ? gpu_normal(sign, 63, hi, lo) : gpu_normal(sign, -1, lo, 0);
}

static inline MPSIM_HD uint32_t gpu_exact_lg2(gpu_operand x, int *open)
{
    const int upper = x.significand > 0xb504f3; /* the square root of 2 */
    const int64_t base = upper ? 0x1000000 : 0x800000, apart = (int64_t)x.significand - base;
    const int whole = x.exp + upper;
    const gpu_real zero = {0, 0, 0};
    gpu_real y = zero;
    if (apart) { /* the logarithm of the significand: 2 atanh z / ln 2 with z = (m - 1) / (m + 1) */
        const gpu_real n = gpu_normal(apart < 0, 63, (uint64_t)(apart < 0 ? -apart : apart), 0);
        const gpu_real d = gpu_normal(0, 63, x.significand + (uint64_t)base, 0);
        gpu_real z = gpu_quotient(n.m, d.m, n.exp - d.exp);
        z.sign = n.sign;
        y = gpu_product(gpu_product(z, gpu_atanh_series(gpu_square(z)), 0), 0xb8aa3b295c17f0bcu, 1);
    }
    if (whole && apart)
        return gpu_rounded(gpu_add_whole(whole, y), open);
    if (whole)
        return gpu_exact_code(gpu_normal(whole < 0, 63, (uint64_t)(whole < 0 ? -whole : whole), 0));
    return apart ? gpu_rounded(y, open) : 0;
}

/* r = x / (2 pi) as the product that ptxas writes before MUFU.SIN and MUFU.COS (sm_90): cut toward zero, subnormal numbers kept. */
static inline MPSIM_HD uint32_t gpu_turns(uint32_t x)
{
    const uint32_t size = x & 0x7fffffff, sign = x & 0x80000000u;
    if (size >= 0x7f800000)
        return 0x7fffffff;
    const int field = (int)(size >> 23);
    const uint64_t m = field ? (size & 0x7fffff) | 0x800000 : size, p = m * 0xa2f983u; /* of 1 / (2 pi): 2^-26 */
    if (!p)
        return sign;
    const int top = 63 - mpsim_clz64(p), exp = (field ? field : 1) - 127 - 23 - 26 + top;
    const int drop = top - 23 + (exp < -126 ? -126 - exp : 0);
    const uint32_t cut = drop >= 64 ? 0 : (uint32_t)(drop >= 0 ? p >> drop : p << -drop);
    return sign | (exp < -126 ? cut : (uint32_t)((exp + 126) << 23) + cut);
}

/* sin or cos of a quarter of y / 2^64 turns. */
static inline MPSIM_HD uint32_t gpu_quarter(int sign, int is_cos, uint64_t y, int *open)
{
    if (y > (uint64_t)1 << 63) {
        y = 0 - y;
        is_cos = !is_cos;
    }
    if (!y)
        return is_cos ? gpu_power_of_2(sign, 0) : (uint32_t)sign << 31;
    const gpu_real a = gpu_product(gpu_normal(sign, -1, y, 0), 0xc90fdaa22168c235u, 0);
    const uint64_t w = gpu_square(a);
    if (!is_cos)
        return gpu_rounded(gpu_product(a, gpu_sin_series(w), 0), open);
    return gpu_rounded(gpu_normal(sign, 0, ((uint64_t)1 << 63) - gpu_high(w, gpu_cos_series(w)), 0), open);
}

static inline MPSIM_HD uint32_t gpu_exact_wave(gpu_operand r, int is_cos, int *open)
{
    const int sign = is_cos ? 0 : r.sign;
    if (r.exp < -41) {
        const gpu_real x = {sign, r.exp, r.significand << 40};
        return is_cos ? 0x3f800000 : gpu_rounded(gpu_product(x, 0xc90fdaa22168c235u, 2), open);
    }
    const uint64_t f = r.exp < 23 ? r.significand << (41 + r.exp) : 0;
    const int quadrant = (int)(f >> 62) + is_cos;
    return gpu_quarter(sign ^ (quadrant >> 1 & 1), quadrant & 1, f << 2, open);
}

/* tanh x = t / (t + 2) with t = e^u - 1 and u = 2 x, for u < 1. */
static inline MPSIM_HD gpu_real gpu_tanh_small(gpu_operand x)
{
    const gpu_real u = {0, x.exp + 1, x.significand << 40};
    const gpu_real t = gpu_product(u, gpu_exp_series(x.significand << (42 + x.exp)), 0);
    return gpu_quotient(t.m, ((uint64_t)1 << 63) + (t.m >> (1 - t.exp)), t.exp - 1);
}

/* 1 - 2 / (e^u + 1), for 1 <= u < 32. */
static inline MPSIM_HD gpu_real gpu_tanh_large(gpu_operand x)
{
    uint64_t hi, lo;
    mpsim_mul64(&hi, &lo, x.significand << (36 + x.exp), 0xb8aa3b295c17f0bcu); /* u / ln 2: multiples of 2^-121 */
    const int whole = (int)(hi >> 57);
    const uint64_t e = gpu_power_fraction(hi << 7 | lo >> 57), d = e + ((uint64_t)1 << 63 >> whole);
    const int carry = d < e;
    const uint64_t divisor = carry ? d >> 1 | (uint64_t)1 << 63 : d;
    const gpu_real q = gpu_quotient((uint64_t)1 << 63, divisor, 1 - whole - carry);
    return gpu_normal(0, -1, 0 - (q.m >> (-1 - q.exp)), 0);
}

static inline MPSIM_HD uint32_t gpu_exact_tanh(uint32_t code, gpu_operand x, int *open)
{
    if (x.exp < -13)
        return code;
    if (x.exp > 3)
        return code >> 31 ? 0xbf800000 : 0x3f800000;
    gpu_real y = x.exp < -1 ? gpu_tanh_small(x) : gpu_tanh_large(x);
    y.sign = x.sign;
    return gpu_rounded(y, open);
}

/* ---- zeros, infinities and NaNs ---- */

static inline MPSIM_HD uint32_t gpu_exact_of_zero(gpu_function f, uint32_t sign)
{
    switch (f) {
    case GPU_RCP:
    case GPU_RSQRT:
        return sign | 0x7f800000;
    case GPU_LG2:
        return 0xff800000;
    case GPU_EX2:
    case GPU_COS:
        return 0x3f800000;
    default:
        return sign;
    }
}

static inline MPSIM_HD uint32_t gpu_exact_of_infinity(gpu_function f, uint32_t sign)
{
    switch (f) {
    case GPU_RCP:
        return sign;
    case GPU_EX2:
        return sign ? 0 : 0x7f800000;
    case GPU_TANH:
        return sign | 0x3f800000;
    case GPU_LG2:
    case GPU_SQRT:
        return sign ? 0x7fffffff : 0x7f800000;
    case GPU_RSQRT:
        return sign ? 0x7fffffff : 0;
    default:
        return 0x7fffffff;
    }
}

/* The code of f(x); *open is set, not cleared, where the rounding is open. */
static inline MPSIM_HD uint32_t gpu_exact(gpu_function f, uint32_t x, int *open)
{
    const int is_wave = f == GPU_SIN || f == GPU_COS;
    const uint32_t code = is_wave ? gpu_turns(x) : x, size = code & 0x7fffffff, sign = code & 0x80000000u;
    const int is_root = f == GPU_LG2 || f == GPU_SQRT || f == GPU_RSQRT;
    if (size > 0x7f800000)
        return 0x7fffffff;
    if (size == 0x7f800000)
        return gpu_exact_of_infinity(f, sign);
    if (size < 0x800000)
        return f == GPU_TANH ? code : gpu_exact_of_zero(f, sign);
    if (is_root && sign)
        return 0x7fffffff;
    const gpu_operand o = {(int)(sign >> 31), (int)(size >> 23) - 127, (size & 0x7fffff) | 0x800000};
    switch (f) {
    case GPU_RCP:
        return gpu_exact_rcp(o);
    case GPU_RSQRT:
        return gpu_exact_rsqrt(o);
    case GPU_SQRT:
        return gpu_exact_sqrt(o);
    case GPU_EX2:
        return gpu_exact_ex2(o, open);
    case GPU_LG2:
        return gpu_exact_lg2(o, open);
    case GPU_TANH:
        return gpu_exact_tanh(code, o, open);
    default:
        return gpu_exact_wave(o, f == GPU_COS, open);
    }
}
