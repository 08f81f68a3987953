/* scalar.h -- the binary32 arithmetic of layers, one number at a time: operations, exp, log,
 * the elements of softmax and batch normalisation. See mpsim/layer.h.
 *
 * Compiled as C17 and as CUDA C++, with the same bits: every operation is rounded to nearest, none
 * is contracted or approximated, subnormal numbers are kept. Sums are left to the caller.
 *
 * exp and log are our own fixed sequences of operations, because no two C libraries give the same last bits.
 * lib/arith/function.c has others that are correctly rounded to any format. */
#pragma once

#include "../round/scalar.h"

#include <float.h>
#include <math.h>

#if !defined(__CUDACC__)
_Static_assert(FLT_EVAL_METHOD == 0, "layers need operations in their own type");
#endif

/* ---- operations ---- */

#ifdef __CUDA_ARCH__
#define MPSIM_F32_ADD(a, b) __fadd_rn(a, b)
#define MPSIM_F32_SUB(a, b) __fsub_rn(a, b)
#define MPSIM_F32_MUL(a, b) __fmul_rn(a, b)
#define MPSIM_F32_DIV(a, b) __fdiv_rn(a, b)
#define MPSIM_F32_FMA(a, b, c) __fmaf_rn(a, b, c)
#define MPSIM_F32_SQRT(a) __fsqrt_rn(a)
#else
#define MPSIM_F32_ADD(a, b) ((a) + (b))
#define MPSIM_F32_SUB(a, b) ((a) - (b))
#define MPSIM_F32_MUL(a, b) ((a) * (b))
#define MPSIM_F32_DIV(a, b) ((a) / (b))
#define MPSIM_F32_FMA(a, b, c) fmaf(a, b, c)
#define MPSIM_F32_SQRT(a) sqrtf(a)
#endif

static inline MPSIM_HD float mpsim_f32_add(float a, float b)
{
    return MPSIM_F32_ADD(a, b);
}

static inline MPSIM_HD float mpsim_f32_sub(float a, float b)
{
    return MPSIM_F32_SUB(a, b);
}

static inline MPSIM_HD float mpsim_f32_mul(float a, float b)
{
    return MPSIM_F32_MUL(a, b);
}

static inline MPSIM_HD float mpsim_f32_div(float a, float b)
{
    return MPSIM_F32_DIV(a, b);
}

/* a b + c, rounded once. */
static inline MPSIM_HD float mpsim_f32_fma(float a, float b, float c)
{
    return MPSIM_F32_FMA(a, b, c);
}

static inline MPSIM_HD float mpsim_f32_sqrt(float a)
{
    return MPSIM_F32_SQRT(a);
}

/* ---- exp and log ---- */

/* hi + lo: a number with about 47 bits, |lo| being some units in the last place of hi. */
typedef struct mpsim_pair {
    float hi, lo;
} mpsim_pair;

/* ln 2 = hi + lo + 2^-44: products of hi and integers up to 2^8 are exact. */
#define MPSIM_LN2_HI 0x1.62e4p-1f
#define MPSIM_LN2_LO 0x1.7f7d1cp-20f
#define MPSIM_LN2 0x1.62e43p-1f /* the nearest number */
#define MPSIM_LN2_REST -0x1.05c61p-29f

/* hi + x; |hi| >= |x| or hi = 0: the sum of the result's parts is exact (Dekker, 1971). */
static inline MPSIM_HD mpsim_pair mpsim_pair_sum(float hi, float x)
{
    mpsim_pair s;
    s.hi = mpsim_f32_add(hi, x);
    s.lo = mpsim_f32_add(mpsim_f32_sub(hi, s.hi), x);
    return s;
}

static inline MPSIM_HD mpsim_pair mpsim_pair_mul(float a, mpsim_pair b)
{
    mpsim_pair p;
    p.hi = mpsim_f32_mul(a, b.hi);
    p.lo = mpsim_f32_fma(a, b.lo, mpsim_f32_fma(a, b.hi, -p.hi));
    return p;
}

/* c + c_lo + x b: a step of Horner's rule; |c| >= |x b|. */
static inline MPSIM_HD mpsim_pair mpsim_pair_horner(float c, float c_lo, float x, mpsim_pair b)
{
    const mpsim_pair p = mpsim_pair_mul(x, b);
    mpsim_pair s = mpsim_pair_sum(c, p.hi);
    s.lo = mpsim_f32_add(s.lo, mpsim_f32_add(p.lo, c_lo));
    return s;
}

/* e^(r + tail) for |r| < 0.34668 and a tail below half a unit of r: 1 + r + r^2 / 2 + r^3 q(r),
 * where q has degree 4 and is a weighted minimax fit; relative error 2^-33.2 before the roundings
 * of q, which move the result by 2^-31. */
static inline MPSIM_HD mpsim_pair mpsim_exp_reduced(float r, float tail)
{
    float q = 0x1.9dfbc6p-13f;
    q = mpsim_f32_fma(q, r, 0x1.6d4cc2p-10f);
    q = mpsim_f32_fma(q, r, 0x1.11130ep-7f);
    q = mpsim_f32_fma(q, r, 0x1.5554e8p-5f);
    q = mpsim_f32_fma(q, r, 0x1.555554p-3f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner(0.5f, 0.0f, r, s);
    s = mpsim_pair_horner(1.0f, 0.0f, r, s);
    s = mpsim_pair_horner(1.0f, 0.0f, r, s);
    s.lo = mpsim_f32_fma(tail, s.hi, s.lo);
    return s;
}

/* y 2^n below 2^128, rounded once; y is 0, or y.hi its nearest number, a normal one. The code of a
 * result below 2^-125 is its number of units of 2^-149: y is rounded to their multiples in the sum
 * with c, 2^23 of them. */
static inline MPSIM_HD float mpsim_exp_scale(mpsim_pair y, int32_t n)
{
    const int32_t code = (int32_t)mpsim_bits_f32(mpsim_f32_add(y.hi, y.lo)) + n * 0x800000;
    if (code >= 0x800000)
        return mpsim_f32_bits((uint32_t)code);
    const uint32_t c_bits = (uint32_t)(1 - n) << 23;
    const float c = mpsim_f32_bits(c_bits);
    const float t = mpsim_f32_add(c, y.hi);
    const float rest = mpsim_f32_add(mpsim_f32_sub(y.hi, mpsim_f32_sub(t, c)), y.lo);
    return mpsim_f32_bits(mpsim_bits_f32(mpsim_f32_add(t, rest)) - c_bits);
}

/* x = n ln 2 + r + tail, n the nearest integer to x / ln 2. */
typedef struct mpsim_exp_argument {
    float r, tail;
    int32_t n;
} mpsim_exp_argument;

/* |x| <= 104; n is the low bits of its sum with 3 * 2^22. */
static inline MPSIM_HD mpsim_exp_argument mpsim_exp_reduce(float x)
{
    mpsim_exp_argument a;
    const float big = mpsim_f32_fma(x, 0x1.715476p+0f, 0x1.8p+23f);
    const float n = mpsim_f32_sub(big, 0x1.8p+23f);
    const float part = mpsim_f32_fma(-n, MPSIM_LN2_HI, x); /* exact */
    a.r = mpsim_f32_fma(-n, MPSIM_LN2_LO, part);
    a.tail = mpsim_f32_fma(-n, MPSIM_LN2_LO, mpsim_f32_sub(part, a.r));
    a.n = (int32_t)(mpsim_bits_f32(big) - 0x4b400000u);
    return a;
}

static inline MPSIM_HD float mpsim_exp_f32(float x)
{
    if (x > 0x1.62e42ep+6f)
        return mpsim_f32_bits(0x7f800000u);
    if (x < -104.0f)
        return 0.0f;
    if (x != x)
        return mpsim_f32_add(x, x);
    const mpsim_exp_argument a = mpsim_exp_reduce(x);
    return mpsim_exp_scale(mpsim_exp_reduced(a.r, a.tail), a.n);
}

/* x ln 2 = n ln 2 + r + tail, n the nearest integer to x; |x| <= 150. */
static inline MPSIM_HD mpsim_exp_argument mpsim_exp2_reduce(float x)
{
    mpsim_exp_argument a;
    const float big = mpsim_f32_add(x, 0x1.8p+23f);
    const float f = mpsim_f32_sub(x, mpsim_f32_sub(big, 0x1.8p+23f)); /* exact */
    a.r = mpsim_f32_mul(f, MPSIM_LN2);
    a.tail = mpsim_f32_fma(f, MPSIM_LN2_REST, mpsim_f32_fma(f, MPSIM_LN2, -a.r));
    a.n = (int32_t)(mpsim_bits_f32(big) - 0x4b400000u);
    return a;
}

static inline MPSIM_HD float mpsim_exp2_f32(float x)
{
    if (x >= 128.0f)
        return mpsim_f32_bits(0x7f800000u);
    if (x < -150.0f)
        return 0.0f;
    if (x != x)
        return mpsim_f32_add(x, x);
    const mpsim_exp_argument a = mpsim_exp2_reduce(x);
    return mpsim_exp_scale(mpsim_exp_reduced(a.r, a.tail), a.n);
}

/* ln(1 + f) for f in (-0.2929, 0.4143): f - f^2 / 2 + f^3 (c + f q(f)), c in two parts, q of degree
 * 8, a weighted minimax fit; relative error 2^-32.8 before the roundings of q. */
static inline MPSIM_HD mpsim_pair mpsim_log_reduced(float f)
{
    float q = -0x1.e95876p-5f;
    q = mpsim_f32_fma(q, f, 0x1.b357e0p-4f);
    q = mpsim_f32_fma(q, f, -0x1.bb27c8p-4f);
    q = mpsim_f32_fma(q, f, 0x1.c411ccp-4f);
    q = mpsim_f32_fma(q, f, -0x1.fce8e4p-4f);
    q = mpsim_f32_fma(q, f, 0x1.248ef6p-3f);
    q = mpsim_f32_fma(q, f, -0x1.5563a2p-3f);
    q = mpsim_f32_fma(q, f, 0x1.999a14p-3f);
    q = mpsim_f32_fma(q, f, -0x1.ffffd4p-3f);
    mpsim_pair s = {q, 0.0f};
    s = mpsim_pair_horner(0x1.555554p-2f, 0x1.5e308ap-27f, f, s);
    s = mpsim_pair_horner(-0.5f, 0.0f, f, s);
    s = mpsim_pair_horner(1.0f, 0.0f, f, s);
    return mpsim_pair_mul(f, s);
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)), cut at the codes. */
static inline MPSIM_HD float mpsim_log_f32(float x)
{
    const uint32_t root = 0x3f3504f3u; /* sqrt(1/2) */
    uint32_t u = mpsim_bits_f32(x);
    int32_t e = -127;
    if (x != x || x < 0.0f)
        return mpsim_f32_bits(0x7fc00000u);
    if (x == 0.0f)
        return mpsim_f32_bits(0xff800000u);
    if (u == 0x7f800000u)
        return x;
    if (u < 0x800000u) { /* subnormal */
        u = mpsim_bits_f32(mpsim_f32_mul(x, 0x1p+24f));
        e -= 24;
    }
    u += 0x3f800000u - root;
    e += (int32_t)(u >> 23);
    const float f = mpsim_f32_sub(mpsim_f32_bits((u & 0x7fffffu) + root), 1.0f); /* exact */
    const mpsim_pair s = mpsim_log_reduced(f);
    const mpsim_pair sum = mpsim_pair_sum(mpsim_f32_mul((float)e, MPSIM_LN2_HI), s.hi);
    return mpsim_f32_add(sum.hi, mpsim_f32_add(sum.lo, mpsim_f32_fma((float)e, MPSIM_LN2_LO, s.lo)));
}

/* ---- rounding to a format ---- */

/* A format that results are rounded to, to nearest even, overflow to infinity. kind says how: not
 * at all (binary32); by adding to the bits of the binary32 value, of which `shift` are dropped
 * (formats with signed zeros and NaNs at the top); by the reference. */
typedef struct mpsim_math {
    int kind; /* MPSIM_MATH_* */
    int shift;
    uint32_t min_normal, max, beyond; /* bits of the smallest normal and the largest number, and
                                         of what overflow becomes                         */
    float subnormal;                  /* 2^23 times the smallest subnormal number         */
    mpsim_format format;
} mpsim_math;

enum { MPSIM_MATH_BINARY32, MPSIM_MATH_BITS, MPSIM_MATH_REFERENCE };

/* f: valid, its numbers binary32 numbers, or NULL: binary32. */
static inline void mpsim_math_set(mpsim_math *m, const mpsim_format *f)
{
    memset(m, 0, sizeof *m);
    m->kind = MPSIM_MATH_BINARY32;
    if (!f)
        return;
    m->format = *f;
    const int signs = mpsim_has_sign(f) && f->zero == MPSIM_ZERO_SIGNED && f->nan == MPSIM_NAN_TOP;
    if (signs && f->mbits == 23 && f->bias == 127 && f->inf && f->max_finite == 0x7f7fffff)
        return;
    m->kind = MPSIM_MATH_REFERENCE;
    const int emin = mpsim_emin(f);
    if (!signs || f->mbits < 1 || f->mbits > 22 || emin < -126 || emin > 100)
        return;
    m->kind = MPSIM_MATH_BITS;
    m->shift = 23 - f->mbits;
    m->min_normal = (uint32_t)(emin + 127) << 23;
    m->max = mpsim_bits_f32((float)mpsim_scalar_decode(f, f->max_finite));
    m->beyond = f->inf ? 0x7f800000u : 0x7fc00000u;
    m->subnormal = mpsim_f32_bits((uint32_t)(emin - f->mbits + 23 + 127) << 23);
}

static inline MPSIM_HD float mpsim_math_by_reference(const mpsim_format *f, float x)
{
    mpsim_rounding r;
    unsigned flags;
    memset(&r, 0, sizeof r); /* the default choices are the enumerators with value 0 */
    r.scale = 1;
    r.mode = MPSIM_ROUND_NEAREST_EVEN;
    const uint64_t code = mpsim_scalar_encode(f, &r, MPSIM_ROUND_NEAREST_EVEN, mpsim_number_f32(x), 0, &flags);
    return mpsim_number_to_f32(mpsim_scalar_unpack(f, code));
}

static inline MPSIM_HD float mpsim_math_by_bits(const mpsim_math *m, float x)
{
    const uint32_t u = mpsim_bits_f32(x), sign = u & 0x80000000u;
    uint32_t a = u ^ sign;
    if (a > 0x7f800000u) /* NaN */
        return x;
    if (a < m->min_normal) {
        const float sum = mpsim_f32_add(mpsim_f32_bits(a), m->subnormal);
        a = mpsim_bits_f32(mpsim_f32_sub(sum, m->subnormal));
    } else {
        a += (1u << (m->shift - 1)) - 1 + (a >> m->shift & 1);
        a = a >> m->shift << m->shift;
    }
    return mpsim_f32_bits(sign | (a > m->max ? m->beyond : a));
}

static inline MPSIM_HD float mpsim_math_narrow(const mpsim_math *m, float x)
{
    return m->kind == MPSIM_MATH_BITS ? mpsim_math_by_bits(m, x) : mpsim_math_by_reference(&m->format, x);
}

static inline MPSIM_HD float mpsim_math_round(const mpsim_math *m, float x)
{
    return m->kind == MPSIM_MATH_BINARY32 ? x : mpsim_math_narrow(m, x);
}

/* y of a + b or a * b: the NaN is that of a, where a is one. Compilers exchange these operands, and machines take the
 * first one's NaN. A GPU has one NaN. */
static inline MPSIM_HD float mpsim_math_settle(float a, float y)
{
#ifndef __CUDA_ARCH__
    if (a != a)
        return mpsim_f32_bits(mpsim_bits_f32(a) | 0x400000u);
#else
    (void)a;
#endif
    return y;
}

static inline MPSIM_HD float mpsim_math_add(const mpsim_math *m, float a, float b)
{
    return mpsim_math_round(m, mpsim_math_settle(a, mpsim_f32_add(a, b)));
}

static inline MPSIM_HD float mpsim_math_sub(const mpsim_math *m, float a, float b)
{
    return mpsim_math_round(m, mpsim_f32_sub(a, b));
}

static inline MPSIM_HD float mpsim_math_mul(const mpsim_math *m, float a, float b)
{
    return mpsim_math_round(m, mpsim_math_settle(a, mpsim_f32_mul(a, b)));
}

static inline MPSIM_HD float mpsim_math_div(const mpsim_math *m, float a, float b)
{
    return mpsim_math_round(m, mpsim_f32_div(a, b));
}

/* ---- softmax with cross-entropy; inputs are numbers of m ---- */

/* The larger of a maximum so far and x; NaN once there was one. */
static inline MPSIM_HD float mpsim_softmax_max(float max, float x)
{
    return x > max || x != x ? x : max;
}

static inline MPSIM_HD float mpsim_softmax_exp(const mpsim_math *m, float x, float max)
{
    return mpsim_math_round(m, mpsim_exp_f32(mpsim_math_sub(m, x, max)));
}

/* x: the logit of the label. */
static inline MPSIM_HD float mpsim_softmax_loss(const mpsim_math *m, float sum, float x, float max)
{
    const float log_sum = mpsim_math_round(m, mpsim_log_f32(sum));
    return mpsim_math_sub(m, log_sum, mpsim_math_sub(m, x, max));
}

static inline MPSIM_HD float mpsim_softmax_gradient(const mpsim_math *m, float e, float sum, float coefficient,
                                                    int is_label)
{
    const float g = mpsim_math_mul(m, mpsim_math_div(m, e, sum), coefficient);
    return is_label ? mpsim_math_sub(m, g, coefficient) : g;
}

/* ---- batch normalisation; inputs are numbers of m ---- */

/* A term of the variance. */
static inline MPSIM_HD float mpsim_batchnorm_square(const mpsim_math *m, float x, float mean)
{
    const float d = mpsim_math_sub(m, x, mean);
    return mpsim_math_mul(m, d, d);
}

static inline MPSIM_HD float mpsim_batchnorm_inverse(const mpsim_math *m, float var, float eps)
{
    const float root = mpsim_math_round(m, mpsim_f32_sqrt(mpsim_math_add(m, var, eps)));
    return mpsim_math_div(m, 1.0f, root);
}

static inline MPSIM_HD float mpsim_batchnorm_normal(const mpsim_math *m, float x, float mean, float inverse)
{
    return mpsim_math_mul(m, mpsim_math_sub(m, x, mean), inverse);
}

/* h: mpsim_batchnorm_normal. */
static inline MPSIM_HD float mpsim_batchnorm_y(const mpsim_math *m, float h, float weight, float bias)
{
    return mpsim_math_add(m, mpsim_math_mul(m, h, weight), bias);
}

/* binary32, whatever m is. */
static inline MPSIM_HD float mpsim_batchnorm_running(float running, float momentum, float value)
{
    const float keep = mpsim_f32_sub(1.0f, momentum);
    return mpsim_f32_add(mpsim_f32_mul(keep, running), mpsim_f32_mul(momentum, value));
}

/* h: mpsim_batchnorm_normal; factor = weight * inverse; a = dbias / n; c = dweight / n. */
static inline MPSIM_HD float mpsim_batchnorm_dx(const mpsim_math *m, float dy, float h, float factor, float a, float c)
{
    const float centred = mpsim_math_sub(m, dy, a);
    return mpsim_math_mul(m, factor, mpsim_math_sub(m, centred, mpsim_math_mul(m, h, c)));
}
