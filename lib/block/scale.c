/* scale.c -- the scale rules, one function each, and their table.
 *
 * Every step is a binary32 operation of the source, rounded to nearest even, unless a comment
 * says otherwise. TransformerEngine @d0067d0d, torchao @36027d82 and release 0.18,
 * microxcaling @7bc41952, MS-AMP @9746ea85, DeepSeek-V3 @06231633 (inference/kernel.py), DeepGEMM
 * @38939a4c (deep_gemm/utils/math.py). */
#include "scale.h"

#include "../round/scalar.h"

#include <mpsim/recipe.h>

#include <float.h>
#include <math.h>

enum { E8M0_BIAS = 127, E8M0_NAN = 255 };

/* 2^e for -149 <= e <= 127. */
static float power_of_two(int e)
{
    return mpsim_f32_bits(e < -126 ? (uint32_t)1 << (e + 149) : (uint32_t)(e + 127) << 23);
}

/* floor(log2 x) of a finite x > 0, and what of its significand is behind the point, in 2^-23. */
static int split(float x, uint32_t *fraction)
{
    const mpsim_number v = mpsim_number_f32(x);
    *fraction = (uint32_t)(v.hi << 1 >> 41);
    return v.exp;
}

/* ---- log2 rounded to binary32 ----
 *
 * torch takes log2 in binary32 before floor or ceil: a number within `steps` of 2^k gives k itself.
 * The distance is that of half a unit in the last place of k on the side in question, in steps of
 * x: log2(1 - n 2^-24) = -n 2^-24 / ln 2, nearly. */
static uint32_t log2_steps(int k, int below)
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
static int floor_log2_f32(float x)
{
    uint32_t fraction;
    const int k = split(x, &fraction);
    return k + (fraction != 0 && 0x800000u - fraction <= log2_steps(k + 1, 1));
}

static int ceil_log2_f32(float x)
{
    uint32_t fraction;
    const int k = split(x, &fraction);
    return k + (fraction > log2_steps(k, 0));
}

/* ---- power-of-two scales ---- */

static mpsim_block_scale e8m0(int code)
{
    const float nan = mpsim_f32_bits(0x7fc00000u);
    mpsim_block_scale s = {.factor = nan, .inverse = nan, .code = (uint8_t)code};
    if (code != E8M0_NAN) {
        s.factor = power_of_two(E8M0_BIAS - code);
        s.inverse = power_of_two(code - E8M0_BIAS);
    }
    return s;
}

/* The code of exponent e, within -127 and 128. */
static int e8m0_code(int e)
{
    return (e < -E8M0_BIAS ? -E8M0_BIAS : e > E8M0_BIAS + 1 ? E8M0_BIAS + 1 : e) + E8M0_BIAS;
}

/* The exponent field of amax, less its bias, as torchao reads it: -127 for zero and subnormals, 128
 * for infinity. */
static int field(float amax)
{
    return (int)(mpsim_bits_f32(amax) >> 23 & 0xff) - 127;
}

static int has_fraction(float amax)
{
    return (mpsim_bits_f32(amax) & 0x7fffff) != 0;
}

/* amax rounded to the element's significand, halves up, and cut to its exponent. */
static float rounded(const mpsim_scale_env *env, float amax)
{
    const uint32_t half = (uint32_t)1 << (22 - env->mbits);
    return isnan(amax) ? amax : mpsim_f32_bits((mpsim_bits_f32(amax) + half) & 0xff800000u);
}

static mpsim_block_scale shared(const mpsim_scale_env *env, float amax, int e)
{
    return e8m0(isfinite(amax) ? e8m0_code(e - env->emax) : E8M0_NAN);
}

static mpsim_block_scale floor_rule(const mpsim_scale_env *env, float amax)
{
    return shared(env, amax, field(amax));
}

static mpsim_block_scale even_rule(const mpsim_scale_env *env, float amax)
{
    return floor_rule(env, rounded(env, amax));
}

static mpsim_block_scale ceil_rule(const mpsim_scale_env *env, float amax)
{
    return shared(env, amax, field(amax) + has_fraction(amax));
}

/* v rounded up to a power of two; of subnormals 2^-127 is one. */
static int round_up(float v)
{
    const uint32_t u = mpsim_bits_f32(v), e = u >> 23, m = u & 0x7fffff;
    return (int)e + (e == 0 ? m > 0x400000u : m != 0);
}

static mpsim_block_scale rceil_rule(const mpsim_scale_env *env, float amax)
{
    const float v = amax * (1 / env->max);
    return e8m0(isfinite(v) ? round_up(v) : E8M0_NAN);
}

/* cvt.rp.satfinite.ue8m0x2 */
static mpsim_block_scale te_rule(const mpsim_scale_env *env, float amax)
{
    const float v = amax * (1 / env->max);
    if (isnan(v))
        return e8m0(E8M0_NAN);
    return e8m0(isinf(v) || v > 0x1p127f ? 254 : round_up(v));
}

/* An exponent above 127 is NaN, below -127 it is -127; an amax of 0 counts as 2^-126. */
static mpsim_block_scale microx_rule(const mpsim_scale_env *env, float amax)
{
    if (!isfinite(amax))
        return e8m0(E8M0_NAN);
    return e8m0(e8m0_code((amax > 0 ? floor_log2_f32(amax) : -126) - env->emax));
}

/* ---- the same in torchao 0.18 ----
 *
 * Elements are divided by the scale, which is not below 2^-126, though the code may be that of
 * 2^-127; an infinite amax has exponent 128; code 255 divides by infinity. */
static mpsim_block_scale shared_018(const mpsim_scale_env *env, float amax, int e)
{
    mpsim_block_scale s = e8m0(isnan(amax) ? E8M0_NAN : e8m0_code(e - env->emax));
    if (s.code == 0)
        s.factor = 0x1p126f;
    else if (s.code == E8M0_NAN)
        s.factor = 0;
    return s;
}

static mpsim_block_scale floor_018_rule(const mpsim_scale_env *env, float amax)
{
    return shared_018(env, amax, field(amax));
}

static mpsim_block_scale even_018_rule(const mpsim_scale_env *env, float amax)
{
    return floor_018_rule(env, rounded(env, amax));
}

static mpsim_block_scale ceil_018_rule(const mpsim_scale_env *env, float amax)
{
    return shared_018(env, amax, field(amax) + has_fraction(amax));
}

/* ceil of a binary32 log2 of the quotient; code 0 leaves elements as they are. */
static mpsim_block_scale rceil_018_rule(const mpsim_scale_env *env, float amax)
{
    const float v = amax / env->max;
    if (isnan(v))
        return e8m0(E8M0_NAN);
    int code = isinf(v) ? 254 : v > 0 ? e8m0_code(ceil_log2_f32(v)) : 0;
    mpsim_block_scale s = e8m0(code < 254 ? code : 254);
    if (s.code == 0)
        s.factor = 1;
    return s;
}

/* ---- DeepGEMM ---- */

static float at_least(const mpsim_scale_env *env, float amax)
{
    const float least = (float)env->recipe->amax_epsilon;
    return amax < least ? least : amax;
}

/* Codes are 1 to 254. */
static mpsim_block_scale deepgemm_rule(const mpsim_scale_env *env, float amax)
{
    const float v = at_least(env, amax) / env->max;
    if (!isfinite(v))
        return e8m0(E8M0_NAN);
    const int code = field(v) + has_fraction(v) + E8M0_BIAS;
    return e8m0(code < 1 ? 1 : code);
}

/* ---- binary32 scales ---- */

static mpsim_block_scale binary32(float factor)
{
    const float inverse = 1 / factor;
    const mpsim_block_scale s = {.factor = factor, .inverse = inverse};
    return s;
}

static mpsim_block_scale amax_te_rule(const mpsim_scale_env *env, float amax)
{
    const mpsim_block_recipe *b = env->recipe;
    return binary32(mpsim_fp8_scale(amax, env->max, (float)b->amax_epsilon, (float)b->scale_for_inf, b->power_of_two));
}

/* The quotient in binary64; NaN stays NaN; 2^floor(log2) in binary32, 0 for 0. */
static mpsim_block_scale amax_torchao_rule(const mpsim_scale_env *env, float amax)
{
    const double least = env->recipe->amax_epsilon, a = (double)amax;
    const float s = (float)((double)env->max / (a < least ? least : a));
    if (!env->recipe->power_of_two || !isfinite(s) || s == 0)
        return binary32(s);
    return binary32(power_of_two(floor_log2_f32(s)));
}

static mpsim_block_scale amax_deepseek_rule(const mpsim_scale_env *env, float amax)
{
    const float v = at_least(env, amax) / env->max, s = v == 0 ? 1 : v;
    const mpsim_block_scale scale = {.factor = 1 / s, .inverse = s};
    return scale;
}

/* No amax (0, infinity, NaN): the scale so far, but for infinity 1 over it, since log2(max / inf)
 * is negative. The exponent is exact. */
static mpsim_block_scale msamp_rule(const mpsim_scale_env *env, float amax)
{
    uint32_t fraction;
    if (isinf(amax))
        return binary32(1 / env->given);
    if (isnan(amax) || amax <= 0)
        return binary32(env->given);
    const float ratio = env->max / amax;
    if (isinf(ratio))
        return binary32(ratio);
    const int e = split(ratio, &fraction) - (int)env->recipe->margin;
    const float s = ldexpf(1, e < 0 ? -e : e);
    return binary32(e < 0 ? 1 / s : s);
}

static mpsim_block_scale given_rule(const mpsim_scale_env *env, float amax)
{
    (void)amax;
    return binary32(env->given);
}

/* ---- NVFP4 ---- */

/* The E4M3 code nearest to v, saturated; NaN: 0x7f, with its sign in torch. */
static uint8_t e4m3(float v, int nan_rule, float *value)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    r.infinity = MPSIM_INFINITY_MAX;
    r.nan = (uint8_t)nan_rule;
    const uint64_t code = mpsim_encode_f32(f, &r, v, 0, NULL);
    *value = (float)mpsim_decode(f, code);
    return (uint8_t)code;
}

enum { E4M3_MAX = 448 };

static void nvfp4_te_tensor(mpsim_scale_env *env, float amax)
{
    env->encode = fminf(E4M3_MAX * env->max / amax, FLT_MAX);
    if (amax == 0 || env->encode == 0)
        env->encode = 1;
    env->decode = 1 / env->encode;
    env->amax = amax;
}

/* Elements are scaled by way of `decode`, and back by the amax itself (dequantize_nvfp4.cuh). */
static mpsim_block_scale nvfp4_te_rule(const mpsim_scale_env *env, float amax)
{
    mpsim_block_scale s;
    float value;
    s.code = e4m3(amax * (env->encode * (1 / env->max)), MPSIM_NANS_ONES, &value);
    s.factor = fminf(1 / (value * env->decode), FLT_MAX);
    s.inverse = value * env->amax * (1 / (E4M3_MAX * env->max));
    return s;
}

/* a / b, whose NaNs show in codes: the NaN of a, else that of b, else x86's own, a negative one. */
static float quotient(float a, float b)
{
    const float q = a / b;
    if (!isnan(q))
        return q;
    const uint32_t from = isnan(a) ? mpsim_bits_f32(a) : isnan(b) ? mpsim_bits_f32(b) : 0xffc00000u;
    return mpsim_f32_bits(from | 0x400000u);
}

static void nvfp4_torchao_tensor(mpsim_scale_env *env, float amax)
{
    env->decode = quotient(amax, E4M3_MAX * env->max);
    env->encode = quotient(1, env->decode);
}

/* The block scale is at least 2^-6, E4M3's smallest normal number; NaN stays NaN. */
static mpsim_block_scale nvfp4_torchao_rule(const mpsim_scale_env *env, float amax)
{
    mpsim_block_scale s;
    float v = quotient(quotient(amax, env->max), env->decode), value;
    v = v < 0x1p-6f ? 0x1p-6f : v > E4M3_MAX ? (float)E4M3_MAX : v;
    s.code = e4m3(v, MPSIM_NANS_ONES_SIGNED, &value);
    s.inverse = env->decode * value;
    s.factor = quotient(env->encode, value);
    return s;
}

/* ---- the table ---- */

#define E8M0(function, how, ...)                                                               \
    {                                                                                          \
        .block = (function), .cast = (how), .scale_bytes = 1, .largest_code = 254, __VA_ARGS__ \
    }
#define BINARY32(function, ...)                            \
    {                                                      \
        .block = (function), .scale_bytes = 4, __VA_ARGS__ \
    }

static const mpsim_scale_rule_row rules[] = {
    [MPSIM_SCALE_E8M0_FLOOR] = E8M0(floor_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_E8M0_EVEN] = E8M0(even_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_E8M0_CEIL] = E8M0(ceil_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_E8M0_RCEIL] = E8M0(rceil_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_E8M0_TE] = E8M0(te_rule, MPSIM_CAST_CUDA, .drops_nan = 1),
    [MPSIM_SCALE_E8M0_MICROX] = E8M0(microx_rule, MPSIM_CAST_MICROX, .drops_nan = 0),
    [MPSIM_SCALE_AMAX_TE] = BINARY32(amax_te_rule, .drops_nan = 1),
    [MPSIM_SCALE_AMAX_TORCHAO] = BINARY32(amax_torchao_rule, .cast = MPSIM_CAST_TORCH, .dequantize = MPSIM_OVER_FACTOR),
    [MPSIM_SCALE_MSAMP] = BINARY32(msamp_rule, .takes_given = 1),
    [MPSIM_SCALE_NVFP4_TE] = {nvfp4_te_tensor, nvfp4_te_rule, MPSIM_CAST_CUDA, MPSIM_TIMES_INVERSE, .drops_nan = 1,
                              .scale_bytes = 1, .fp4_only = 1, .least_code = 1, .largest_code = 0x7e},
    [MPSIM_SCALE_NVFP4_TORCHAO] = {nvfp4_torchao_tensor, nvfp4_torchao_rule, MPSIM_CAST_TORCH, MPSIM_TIMES_INVERSE,
                                   .scale_bytes = 1, .fp4_only = 1, .least_code = 8, .largest_code = 0x7e},
    [MPSIM_SCALE_GIVEN] = BINARY32(given_rule, .drops_nan = 1, .takes_given = 1),
    [MPSIM_SCALE_TORCHAO_018_FLOOR] = E8M0(floor_018_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_TORCHAO_018_EVEN] = E8M0(even_018_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_TORCHAO_018_CEIL] = E8M0(ceil_018_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_TORCHAO_018_RCEIL] = E8M0(rceil_018_rule, MPSIM_CAST_TORCH, .drops_nan = 0),
    [MPSIM_SCALE_NVFP4_1LEVEL] = {NULL, nvfp4_torchao_rule, MPSIM_CAST_TORCH, MPSIM_TIMES_INVERSE, .scale_bytes = 1,
                                  .fp4_only = 1, .least_code = 8, .largest_code = 0x7e},
    [MPSIM_SCALE_AMAX_DEEPSEEK] = BINARY32(amax_deepseek_rule, .drops_nan = 1, .divides = 1),
    [MPSIM_SCALE_E8M0_DEEPGEMM] = E8M0(deepgemm_rule, MPSIM_CAST_TORCH, .least_code = 1),
};

const mpsim_scale_rule_row *mpsim_scale_rule_at(unsigned rule)
{
    return rule < sizeof rules / sizeof rules[0] ? &rules[rule] : NULL;
}
