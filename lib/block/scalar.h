/* scalar.h -- scaled quantisation of one block and of one element, as C17 and as CUDA C++: the scale rules of scale.c's table, and
 * what the elements of a rule have besides mpsim_scalar_encode. Operations of C round to nearest and are not contracted. NaNs are
 * those of x86: where an operation gives another device's, `settle` has its bits.
 *
 * Every step is a binary32 operation of the source, rounded to nearest even, unless a comment
 * says otherwise. TransformerEngine @d0067d0d, torchao @36027d82 and release 0.18,
 * microxcaling @7bc41952, MS-AMP @9746ea85, DeepSeek-V3 @06231633 (inference/kernel.py), DeepGEMM
 * @38939a4c (deep_gemm/utils/math.py). */
#pragma once

#include "../round/scalar.h"

#include <mpsim/block.h>

#include <float.h>

/* A block's scale. */
typedef struct mpsim_block_scale {
    float factor;  /* elements are multiplied by it                                   */
    float inverse; /* dequantises                                                     */
    uint8_t code;  /* E8M0 or E4M3; 0 where the scale is binary32                     */
} mpsim_block_scale;

/* What a rule knows besides amax. */
typedef struct mpsim_scale_env {
    int rule;       /* mpsim_scale_rule                        */
    float max;      /* largest number of the element format    */
    int emax;       /* its exponent                            */
    int mbits;      /* significand field of the element format */
    float given;    /* the caller's scale                      */
    double epsilon; /* of the recipe: amax is at least this    */
    float for_inf;  /* what an infinite scale becomes          */
    int power_of_two, margin;
    float encode; /* the tensor's scale (NVFP4), 1 for others */
    float decode; /* the inverse that is stored with codes    */
    float amax;   /* of the tensor (NVFP4_TE)                 */
} mpsim_scale_env;

/* How elements are cast once they are scaled. */
typedef enum mpsim_element_cast {
    MPSIM_CAST_CUDA,  /* cvt.satfinite: the preset cuda                                  */
    MPSIM_CAST_TORCH, /* clamp, then torch's or torchao's conversion: NaN keeps its sign */
    MPSIM_CAST_MICROX /* microxcaling's arithmetic                                       */
} mpsim_element_cast;

#define MPSIM_RULE static inline MPSIM_HD

MPSIM_RULE int mpsim_rule_is_nan(float x)
{
    return (mpsim_bits_f32(x) & 0x7fffffffu) > 0x7f800000u;
}

MPSIM_RULE int mpsim_rule_is_finite(float x)
{
    return (mpsim_bits_f32(x) & 0x7f800000u) != 0x7f800000u;
}

/* y of an operation with a and b: a NaN of x86, that of a, else of b, else its own, which is negative. */
MPSIM_RULE float mpsim_rule_settle(float y, float a, float b)
{
    if (!mpsim_rule_is_nan(y))
        return y;
    const uint32_t from = mpsim_rule_is_nan(a)   ? mpsim_bits_f32(a)
                          : mpsim_rule_is_nan(b) ? mpsim_bits_f32(b)
                                                 : 0xffc00000u;
    return mpsim_f32_bits(from | 0x400000u);
}

/* ---- numbers ---- */

enum { MPSIM_E8M0_NAN = 255, MPSIM_E8M0_BIAS = 127, MPSIM_RULE_E4M3 = 448 };

/* 2^e for -149 <= e <= 127. */
MPSIM_RULE float mpsim_rule_power(int e)
{
    return mpsim_f32_bits(e < -126 ? (uint32_t)1 << (e + 149) : (uint32_t)(e + 127) << 23);
}

/* floor(log2 x) of a finite x > 0, and what of its significand is behind the point, in 2^-23. */
MPSIM_RULE int mpsim_rule_split(float x, uint32_t *fraction)
{
    const mpsim_number v = mpsim_number_f32(x);
    *fraction = (uint32_t)(v.hi << 1 >> 41);
    return v.exp;
}

/* torch takes log2 in binary32 before floor or ceil: a number within so many steps of 2^k gives k itself.
 * The distance is that of half a unit in the last place of k on the side in question, in steps of
 * x: log2(1 - n 2^-24) = -n 2^-24 / ln 2, nearly. */
MPSIM_RULE uint32_t mpsim_rule_log2_steps(int k, int below)
{
    const uint64_t ln2 = 0xb17217f7d1cf79abu; /* 2^64 ln 2 */
    const unsigned a = (unsigned)(k < 0 ? -k : k);
    if (a == 0)
        return 0;
    int j = 63 - mpsim_clz64(a);
    if ((a & (a - 1)) == 0 && (k > 0) == below) /* the nearer neighbour of a power of two */
        j--;
    if (!below) /* above 2^k x has steps of 2^-23 */
        j--;
    return j > 0 ? (uint32_t)(ln2 >> (64 - j)) : 0;
}

/* floor and ceil of log2 x, rounded to binary32 first; x finite, > 0. */
MPSIM_RULE int mpsim_rule_floor_log2(float x)
{
    uint32_t fraction;
    const int k = mpsim_rule_split(x, &fraction);
    return k + (fraction != 0 && 0x800000u - fraction <= mpsim_rule_log2_steps(k + 1, 1));
}

MPSIM_RULE int mpsim_rule_ceil_log2(float x)
{
    uint32_t fraction;
    const int k = mpsim_rule_split(x, &fraction);
    return k + (fraction > mpsim_rule_log2_steps(k, 0));
}

/* a / b, a * b, with NaNs of x86. */
MPSIM_RULE float mpsim_rule_quotient(float a, float b)
{
    return mpsim_rule_settle(a / b, a, b);
}

MPSIM_RULE float mpsim_rule_product(float a, float b)
{
    return mpsim_rule_settle(a * b, a, b);
}

/* ---- power-of-two scales ---- */

MPSIM_RULE mpsim_block_scale mpsim_rule_e8m0(int code)
{
    mpsim_block_scale s;
    s.factor = s.inverse = mpsim_f32_bits(0x7fc00000u);
    s.code = (uint8_t)code;
    if (code != MPSIM_E8M0_NAN) {
        s.factor = mpsim_rule_power(MPSIM_E8M0_BIAS - code);
        s.inverse = mpsim_rule_power(code - MPSIM_E8M0_BIAS);
    }
    return s;
}

/* The code of exponent e, within -127 and 128. */
MPSIM_RULE int mpsim_rule_code(int e)
{
    return (e < -MPSIM_E8M0_BIAS      ? -MPSIM_E8M0_BIAS
            : e > MPSIM_E8M0_BIAS + 1 ? MPSIM_E8M0_BIAS + 1
                                      : e) +
           MPSIM_E8M0_BIAS;
}

/* The exponent field of amax, less its bias, as torchao reads it: -127 for zero and subnormals, 128
 * for infinity. */
MPSIM_RULE int mpsim_rule_field(float amax)
{
    return (int)(mpsim_bits_f32(amax) >> 23 & 0xff) - 127;
}

MPSIM_RULE int mpsim_rule_has_fraction(float amax)
{
    return (mpsim_bits_f32(amax) & 0x7fffff) != 0;
}

/* amax rounded to the element's significand, halves up, and cut to its exponent. */
MPSIM_RULE float mpsim_rule_rounded(const mpsim_scale_env *env, float amax)
{
    const uint32_t half = (uint32_t)1 << (22 - env->mbits);
    return mpsim_rule_is_nan(amax) ? amax : mpsim_f32_bits((mpsim_bits_f32(amax) + half) & 0xff800000u);
}

/* Exponents of the rules floor, even and ceil. */
MPSIM_RULE mpsim_block_scale mpsim_rule_shared(const mpsim_scale_env *env, float amax, int e)
{
    return mpsim_rule_e8m0(mpsim_rule_is_finite(amax) ? mpsim_rule_code(e - env->emax) : MPSIM_E8M0_NAN);
}

MPSIM_RULE mpsim_block_scale mpsim_rule_floor(const mpsim_scale_env *env, float amax)
{
    return mpsim_rule_shared(env, amax, mpsim_rule_field(amax));
}

MPSIM_RULE mpsim_block_scale mpsim_rule_ceil(const mpsim_scale_env *env, float amax)
{
    return mpsim_rule_shared(env, amax, mpsim_rule_field(amax) + mpsim_rule_has_fraction(amax));
}

/* v rounded up to a power of two; of subnormals 2^-127 is one. */
MPSIM_RULE int mpsim_rule_up(float v)
{
    const uint32_t u = mpsim_bits_f32(v), e = u >> 23, m = u & 0x7fffff;
    return (int)e + (e == 0 ? m > 0x400000u : m != 0);
}

MPSIM_RULE mpsim_block_scale mpsim_rule_rceil(const mpsim_scale_env *env, float amax)
{
    const float v = amax * (1 / env->max);
    return mpsim_rule_e8m0(mpsim_rule_is_finite(v) ? mpsim_rule_up(v) : MPSIM_E8M0_NAN);
}

/* cvt.rp.satfinite.ue8m0x2 */
MPSIM_RULE mpsim_block_scale mpsim_rule_te(const mpsim_scale_env *env, float amax)
{
    const float v = amax * (1 / env->max);
    if (mpsim_rule_is_nan(v))
        return mpsim_rule_e8m0(MPSIM_E8M0_NAN);
    return mpsim_rule_e8m0(v > 0x1p127f ? 254 : mpsim_rule_up(v));
}

/* An exponent above 127 is NaN, below -127 it is -127; an amax of 0 counts as 2^-126. */
MPSIM_RULE mpsim_block_scale mpsim_rule_microx(const mpsim_scale_env *env, float amax)
{
    if (!mpsim_rule_is_finite(amax))
        return mpsim_rule_e8m0(MPSIM_E8M0_NAN);
    return mpsim_rule_e8m0(mpsim_rule_code((amax > 0 ? mpsim_rule_floor_log2(amax) : -126) - env->emax));
}

/* The first four in torchao 0.18. Elements are divided by the scale, which is not below 2^-126, though the
 * code may be that of 2^-127; an infinite amax has exponent 128; code 255 divides by infinity. */
MPSIM_RULE mpsim_block_scale mpsim_rule_shared_018(const mpsim_scale_env *env, float amax, int e)
{
    mpsim_block_scale s = mpsim_rule_e8m0(mpsim_rule_is_nan(amax) ? MPSIM_E8M0_NAN : mpsim_rule_code(e - env->emax));
    if (s.code == 0)
        s.factor = 0x1p126f;
    else if (s.code == MPSIM_E8M0_NAN)
        s.factor = 0;
    return s;
}

/* ceil of a binary32 log2 of the quotient; code 0 leaves elements as they are. */
MPSIM_RULE mpsim_block_scale mpsim_rule_rceil_018(const mpsim_scale_env *env, float amax)
{
    const float v = amax / env->max;
    if (mpsim_rule_is_nan(v))
        return mpsim_rule_e8m0(MPSIM_E8M0_NAN);
    const int code = !mpsim_rule_is_finite(v) ? 254 : v > 0 ? mpsim_rule_code(mpsim_rule_ceil_log2(v)) : 0;
    mpsim_block_scale s = mpsim_rule_e8m0(code < 254 ? code : 254);
    if (s.code == 0)
        s.factor = 1;
    return s;
}

MPSIM_RULE float mpsim_rule_at_least(const mpsim_scale_env *env, float amax)
{
    const float least = (float)env->epsilon;
    return amax < least ? least : amax;
}

/* DeepGEMM: codes are 1 to 254. */
MPSIM_RULE mpsim_block_scale mpsim_rule_deepgemm(const mpsim_scale_env *env, float amax)
{
    const float v = mpsim_rule_at_least(env, amax) / env->max;
    if (!mpsim_rule_is_finite(v))
        return mpsim_rule_e8m0(MPSIM_E8M0_NAN);
    const int code = mpsim_rule_field(v) + mpsim_rule_has_fraction(v) + MPSIM_E8M0_BIAS;
    return mpsim_rule_e8m0(code < 1 ? 1 : code);
}

/* ---- binary32 scales ---- */

MPSIM_RULE mpsim_block_scale mpsim_rule_binary32(float factor, float inverse)
{
    mpsim_block_scale s;
    s.factor = factor;
    s.inverse = inverse;
    s.code = 0;
    return s;
}

MPSIM_RULE mpsim_block_scale mpsim_rule_over(float factor)
{
    return mpsim_rule_binary32(factor, mpsim_rule_quotient(1, factor));
}

/* mpsim_fp8_scale, see mpsim/recipe.h. */
MPSIM_RULE float mpsim_rule_fp8(float amax, float max, float epsilon, float for_inf, int power_of_two)
{
    if (amax < epsilon)
        amax = epsilon;
    if (!mpsim_rule_is_finite(amax) || amax == 0)
        return 1;
    float scale = max / amax;
    if (!mpsim_rule_is_finite(scale) && !mpsim_rule_is_nan(scale))
        scale = for_inf;
    return power_of_two ? mpsim_f32_bits(mpsim_bits_f32(scale) & 0xff800000u) : scale;
}

MPSIM_RULE mpsim_block_scale mpsim_rule_amax_te(const mpsim_scale_env *env, float amax)
{
    return mpsim_rule_over(mpsim_rule_fp8(amax, env->max, (float)env->epsilon, env->for_inf, env->power_of_two));
}

/* The quotient in binary64; NaN stays NaN; 2^floor(log2) in binary32, 0 for 0. */
MPSIM_RULE mpsim_block_scale mpsim_rule_amax_torchao(const mpsim_scale_env *env, float amax)
{
    const double least = env->epsilon, a = (double)amax;
    if (mpsim_rule_is_nan(amax))
        return mpsim_rule_over(mpsim_rule_settle(amax, amax, amax));
    const float s = (float)((double)env->max / (a < least ? least : a));
    if (!env->power_of_two || !mpsim_rule_is_finite(s) || s == 0)
        return mpsim_rule_over(s);
    return mpsim_rule_over(mpsim_rule_power(mpsim_rule_floor_log2(s)));
}

MPSIM_RULE mpsim_block_scale mpsim_rule_deepseek(const mpsim_scale_env *env, float amax)
{
    const float v = mpsim_rule_at_least(env, amax) / env->max, s = v == 0 ? 1 : v;
    return mpsim_rule_binary32(mpsim_rule_quotient(1, s), s);
}

/* No amax (0, infinity, NaN): the scale so far, but for infinity 1 over it, since log2(max / inf)
 * is negative. The exponent is exact. */
MPSIM_RULE mpsim_block_scale mpsim_rule_msamp(const mpsim_scale_env *env, float amax)
{
    uint32_t fraction;
    if (mpsim_rule_is_nan(amax) || amax <= 0)
        return mpsim_rule_over(env->given);
    if (!mpsim_rule_is_finite(amax))
        return mpsim_rule_over(mpsim_rule_quotient(1, env->given));
    const float ratio = env->max / amax;
    if (!mpsim_rule_is_finite(ratio))
        return mpsim_rule_over(ratio);
    const int e = mpsim_rule_split(ratio, &fraction) - env->margin, n = e < 0 ? -e : e;
    const float s = n > 127 ? mpsim_f32_bits(0x7f800000u) : mpsim_rule_power(n);
    return mpsim_rule_over(e < 0 ? 1 / s : s);
}

/* ---- NVFP4 ---- */

/* The E4M3 code nearest to v >= 0, saturated; NaN: 0x7f, with its sign in torch. */
MPSIM_RULE uint8_t mpsim_rule_e4m3(float v, int keeps_sign, float *value)
{
    const uint32_t u = mpsim_bits_f32(v), unit = 0x46800000u; /* 2^14, whose last place is 2^-9 */
    if (mpsim_rule_is_nan(v)) {
        const uint32_t sign = keeps_sign ? u >> 31 : 0;
        *value = mpsim_f32_bits(sign << 31 | 0x7ff00000u); /* of a code with all bits set */
        return (uint8_t)(sign << 7 | 0x7f);
    }
    uint32_t m = u < 0x3c800000u ? mpsim_bits_f32(v + 0x1p14f) - unit
                                 : ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (120u << 3);
    m = u >= 0x43e00000u || m > 0x7e ? 0x7e : m;
    *value = m >> 3 ? mpsim_f32_bits((m + (120u << 3)) << 20) : (float)m * 0x1p-9f;
    return (uint8_t)m;
}

MPSIM_RULE void mpsim_rule_nvfp4_te_tensor(mpsim_scale_env *env, float amax)
{
    const float encode = MPSIM_RULE_E4M3 * env->max / amax;
    env->encode = encode < FLT_MAX ? encode : FLT_MAX;
    if (amax == 0 || env->encode == 0)
        env->encode = 1;
    env->decode = 1 / env->encode;
    env->amax = amax;
}

/* Elements are scaled by way of `decode`, and back by the amax itself (dequantize_nvfp4.cuh). */
MPSIM_RULE mpsim_block_scale mpsim_rule_nvfp4_te(const mpsim_scale_env *env, float amax)
{
    mpsim_block_scale s;
    float value;
    s.code = mpsim_rule_e4m3(amax * (env->encode * (1 / env->max)), 0, &value);
    s.factor = 1 / (value * env->decode);
    s.factor = s.factor < FLT_MAX ? s.factor : FLT_MAX;
    s.inverse = mpsim_rule_product(value, env->amax) * (1 / (MPSIM_RULE_E4M3 * env->max));
    s.inverse = mpsim_rule_settle(s.inverse, mpsim_rule_product(value, env->amax), 0);
    return s;
}

MPSIM_RULE void mpsim_rule_nvfp4_torchao_tensor(mpsim_scale_env *env, float amax)
{
    env->decode = mpsim_rule_quotient(amax, MPSIM_RULE_E4M3 * env->max);
    env->encode = mpsim_rule_quotient(1, env->decode);
}

/* The block scale is at least 2^-6, E4M3's smallest normal number; NaN stays NaN, and shows in codes. */
MPSIM_RULE mpsim_block_scale mpsim_rule_nvfp4_torchao(const mpsim_scale_env *env, float amax)
{
    mpsim_block_scale s;
    float v = mpsim_rule_quotient(mpsim_rule_quotient(amax, env->max), env->decode), value;
    v = v < 0x1p-6f ? 0x1p-6f : v > MPSIM_RULE_E4M3 ? (float)MPSIM_RULE_E4M3 : v;
    s.code = mpsim_rule_e4m3(v, 1, &value);
    s.inverse = mpsim_rule_product(env->decode, value);
    s.factor = mpsim_rule_quotient(env->encode, value);
    return s;
}

/* ---- all rules ---- */

/* mpsim_rule_tensor -- what a tensor's amax decides. */
MPSIM_RULE void mpsim_rule_tensor(mpsim_scale_env *env, float amax)
{
    if (env->rule == MPSIM_SCALE_NVFP4_TE)
        mpsim_rule_nvfp4_te_tensor(env, amax);
    else if (env->rule == MPSIM_SCALE_NVFP4_TORCHAO)
        mpsim_rule_nvfp4_torchao_tensor(env, amax);
}

/* mpsim_rule_block -- the scale of a block. */
MPSIM_RULE mpsim_block_scale mpsim_rule_block(const mpsim_scale_env *env, float amax)
{
    switch (env->rule) {
    case MPSIM_SCALE_E8M0_FLOOR:
        return mpsim_rule_floor(env, amax);
    case MPSIM_SCALE_E8M0_EVEN:
        return mpsim_rule_floor(env, mpsim_rule_rounded(env, amax));
    case MPSIM_SCALE_E8M0_CEIL:
        return mpsim_rule_ceil(env, amax);
    case MPSIM_SCALE_E8M0_RCEIL:
        return mpsim_rule_rceil(env, amax);
    case MPSIM_SCALE_E8M0_TE:
        return mpsim_rule_te(env, amax);
    case MPSIM_SCALE_E8M0_MICROX:
        return mpsim_rule_microx(env, amax);
    case MPSIM_SCALE_AMAX_TE:
        return mpsim_rule_amax_te(env, amax);
    case MPSIM_SCALE_AMAX_TORCHAO:
        return mpsim_rule_amax_torchao(env, amax);
    case MPSIM_SCALE_MSAMP:
        return mpsim_rule_msamp(env, amax);
    case MPSIM_SCALE_NVFP4_TE:
        return mpsim_rule_nvfp4_te(env, amax);
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL:
        return mpsim_rule_nvfp4_torchao(env, amax);
    case MPSIM_SCALE_TORCHAO_018_FLOOR:
        return mpsim_rule_shared_018(env, amax, mpsim_rule_field(amax));
    case MPSIM_SCALE_TORCHAO_018_EVEN:
        return mpsim_rule_shared_018(env, amax, mpsim_rule_field(mpsim_rule_rounded(env, amax)));
    case MPSIM_SCALE_TORCHAO_018_CEIL:
        return mpsim_rule_shared_018(env, amax, mpsim_rule_field(amax) + mpsim_rule_has_fraction(amax));
    case MPSIM_SCALE_TORCHAO_018_RCEIL:
        return mpsim_rule_rceil_018(env, amax);
    case MPSIM_SCALE_AMAX_DEEPSEEK:
        return mpsim_rule_deepseek(env, amax);
    case MPSIM_SCALE_E8M0_DEEPGEMM:
        return mpsim_rule_deepgemm(env, amax);
    case MPSIM_SCALE_GIVEN:
    default:
        return mpsim_rule_over(env->given);
    }
}

/* ---- elements ---- */

/* torchao's conversion to FP4 and FP6 knows no NaN and rounds its bits like a number's. */
MPSIM_RULE uint8_t mpsim_rule_torch_nan(const mpsim_format *f, float y)
{
    const uint32_t u = mpsim_bits_f32(y), a = u & 0x7fffffffu;
    const int drop = 23 - f->mbits;
    const uint32_t odd = a >> drop & 1;
    const uint32_t rebias = (uint32_t)(127 - f->bias) << 23;
    const uint32_t m = (a - rebias + (((uint32_t)1 << (drop - 1)) - 1) + odd) >> drop;
    return (uint8_t)((m & 0xff) | mpsim_sign_bit(f, (int)(u >> 31)));
}

/* E2M1 by random bits, as TransformerEngine's software form of cvt.rs: the random part of a step is
 * added, and the sum truncated on the grid where it lies. y is not NaN; flags: MPSIM_FLAG_*. */
MPSIM_RULE float mpsim_rule_fp4_step(float a)
{
    return a < 2 ? 0.5f : a < 4 ? 1.0f : 2.0f;
}

MPSIM_RULE uint8_t mpsim_rule_fp4_random(float y, uint32_t word, unsigned *flags)
{
    const uint32_t u = mpsim_bits_f32(y);
    const float a = mpsim_f32_bits(u & 0x7fffffffu), part = (float)(word >> 24) / 256;
    const float t = part * mpsim_rule_fp4_step(a) + a; /* the product is exact */
    const int code = (t >= 0.5f) + (t >= 1) + (t >= 1.5f) + (t >= 2) + (t >= 3) + (t >= 4) + (t >= 6);
    *flags = t >= 8 && mpsim_rule_is_finite(y) ? MPSIM_FLAG_OVERFLOW : code == 1 ? MPSIM_FLAG_SUBNORMAL : 0;
    return (uint8_t)(code | (u >> 31 ? 8 : 0));
}
