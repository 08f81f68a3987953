/* t-gradient.c -- gradients between backward pass and optimizer against MPFR (rounded.h):
 * unscaling, norms, every clipping rule at its edges, sums over ranks in every order. */
#include "rounded.h"
#include "support.h"

#include <math.h>
#include <mpsim/gradient.h>
#include <stdio.h>
#include <string.h>

#define INFINITE ((double)INFINITY)
#define NOTANUMBER ((double)NAN)

static const mpsim_format *format_of(int f)
{
    const mpsim_format *found = mpsim_format_find(shapes[f].name);
    ck_assert_ptr_nonnull(found);
    return found;
}

static const int narrow[] = {B32, BF16, FP16};

static const double edges[] = {
    0.0, -0.0, 0x1p-149, -0x1p-149, 0x1p-133, 0x1p-126, -0x1.8p-127, 0x1p-24, -0x1p-25, 1, -1, 3,
    0x1p-14, 0x1p-75, -0x1p70, 0x1.fep127, -0x1.fffffep127, 65504, -65520, 33000, 0x1.fffffep-1};

static double unit(uint64_t *random)
{
    return (double)(test_random(random) >> 11) * 0x1p-53;
}

static double uniform(uint64_t *random, int lo, int hi)
{
    const int e = lo + (int)(test_random(random) % (uint64_t)(hi - lo + 1));
    return ldexp((1 + unit(random)) * (test_random(random) & 1 ? -1 : 1), e);
}

static int same(double want, float got)
{
    return isnan(want) ? isnan(got) : bits_of_f32((float)want) == bits_of_f32(got);
}

static int same64(double want, double got)
{
    return isnan(want) ? isnan(got) : bits_of_f64(want) == bits_of_f64(got);
}

/* Elements of f: usual ones, any, edges; with `special`, also infinities and NaN. */
static void fill(float *x, size_t n, int f, int special, uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t kind = test_random(random) % 8;
        double y = uniform(random, -12, 2);
        if (kind == 0)
            y = uniform(random, (int)shapes[f].emin, (int)shapes[f].emax - 2);
        if (kind == 1)
            y = edges[test_random(random) % (sizeof edges / sizeof edges[0])];
        if (special && kind == 2 && i % 3 == 0)
            y = test_random(random) % 3 == 0 ? NOTANUMBER : copysign(INFINITE, y);
        x[i] = (float)to(f, y);
    }
}

/* ------------------------------------------------------------------------------------ unscale */

static double factor_of(double scale)
{
    return to(B32, quo(B64, 1, scale));
}

START_TEST(factor_of_every_kind_of_scale)
{
    static const double scales[] = {
        0.0, 1, 2, 0.5, 65536, 0x1p24, 0x1p32, 3, 7, 1e-3, 0x1p-149, 0x1p-128, 0x1.000002p-128,
        0x1p-127,
        0x1p-126, 0x1p126, 0x1.8p126, 0x1p127, 0x1p128, 0x1p148, 0x1p149, 0x1.8p149,
        0x1.fffffffffffffp149,
        0x1p150, 0x1p151, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp-1,
        0x1.0000000000001p0, 45875.2001953125, 0x1.fffffep127};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        ck_assert_msg(same(factor_of(scales[i]), mpsim_unscale_factor(scales[i])),
                      "%a: %a, expected %a",
                      scales[i], (double)mpsim_unscale_factor(scales[i]), factor_of(scales[i]));
    ck_assert(isinf(mpsim_unscale_factor(0)) && mpsim_unscale_factor(0) > 0);
    ck_assert(mpsim_unscale_factor(0x1p150) == 0);
    ck_assert(mpsim_unscale_factor(0x1.8p149) == 0x1p-149f);
    ck_assert(mpsim_unscale_factor(INFINITE) == 0);
    ck_assert(isnan(mpsim_unscale_factor(NOTANUMBER)));
    uint64_t random = test_seed();
    for (size_t i = 0; i < test_scaled(60000); i++) {
        const double s = fabs(uniform(&random, -155, 155));
        ck_assert_msg(same(factor_of(s), mpsim_unscale_factor(s)), "%a", s);
    }
}
END_TEST

/* 53 >= 2 24 + 2: the double rounding of f32(1 / f64(S)) is innocuous. */
START_TEST(reciprocal_of_a_binary32_scale_is_the_ieee_one)
{
    uint64_t random = test_seed() + 1;
    for (size_t i = 0; i < test_scaled(60000); i++) {
        const uint32_t bits = (uint32_t)(test_random(&random) >> 33);
        const float s = f32_of_bits(bits);
        if (!(s >= 0x1p-126f) || isinf(s))
            continue;
        const double want = quo(B32, 1, (double)s);
        ck_assert_msg(same(want, mpsim_unscale_factor((double)s)), "%a", (double)s);
        ck_assert_msg(same(want, 1.0f / s), "the machine divides 1 by %a", (double)s);
    }
}
END_TEST

enum { N = 96 };

static void unscale_once(mpsim_unscale_rule rule, double scale, int f, const float *x)
{
    float y[N], z[N];
    unsigned want = 0;
    memcpy(z, x, sizeof z);
    const mpsim_format *format = f == B32 ? NULL : format_of(f);
    const unsigned found = mpsim_unscale_array(rule, scale, format, y, x, N);
    const double inv = factor_of(scale);
    for (size_t i = 0; i < N; i++) {
        const double v = (double)x[i];
        double u = rule == MPSIM_UNSCALE_DIVIDE ? quo(B32, v, to(B32, scale)) : mul(B32, v, inv);
        u = rule == MPSIM_UNSCALE_RECIPROCAL && inv == 1 ? v : to(f, u);
        want |= !isfinite(v) ? MPSIM_FOUND_INPUT : 0u;
        want |= !isfinite(u) ? MPSIM_FOUND_OUTPUT : 0u;
        ck_assert_msg(same(u, y[i]), "%s rule %d scale %a: %a gives %a, expected %a",
                      shapes[f].name,
                      (int)rule, scale, v, (double)y[i], u);
    }
    ck_assert_msg(found == want, "%s rule %d scale %a: found %u, expected %u", shapes[f].name,
                  (int)rule,
                  scale, found, want);
    ck_assert_uint_eq(mpsim_unscale_array(rule, scale, format, z, z, N), want);
    ck_assert_int_eq(memcmp(y, z, sizeof y), 0); /* in place */
}

START_TEST(unscaling_by_both_rules)
{
    static const double scales[] = {1, 2, 65536, 0x1p24, 3, 0x1.8p16, 45875.2001953125, 7e-3,
                                    0x1p-10,
                                    0x1p-130, 0x1p140, 0x1p149, 0x1p200, 0.0, 0x1p127};
    uint64_t random = test_seed() + 2;
    for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++)
        for (size_t f = 0; f < 3; f++)
            for (int special = 0; special < 4; special++) {
                float x[N];
                fill(x, N, narrow[f], special & 1, &random);
                unscale_once(MPSIM_UNSCALE_RECIPROCAL, scales[k], narrow[f], x);
                unscale_once(MPSIM_UNSCALE_DIVIDE, scales[k], narrow[f], x);
            }
}
END_TEST

START_TEST(factor_one_leaves_every_bit)
{
    static const uint32_t codes[] = {0, 0x80000000u, 1, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                     0x7f800001u,
                                     0xff812345u, 0xffffffffu, 0x7fa00000u, 0x3f800001u};
    enum { M = sizeof codes / sizeof codes[0] };
    static const double ones[] = {1, 0x1.fffffffffffffp-1,
                                  0x1.0000000000001p0}; /* all are f32(1) */
    for (size_t k = 0; k < 3; k++) {
        float x[M], y[M];
        memcpy(x, codes, sizeof x);
        memset(y, 0x55, sizeof y);
        ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ones[k], NULL, y, x, M),
                          MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
        ck_assert_int_eq(memcmp(y, codes, sizeof y), 0);
        ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ones[k], NULL, x, x, M),
                          MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
        ck_assert_int_eq(memcmp(x, codes, sizeof x), 0);
    }
}
END_TEST

START_TEST(found_is_of_input_or_output)
{
    const float finite[] = {1, 0, -0x1p-149f}, large[] = {1, 60000}, inf[] = {1, INFINITY};
    float y[3];
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 8, NULL, y, finite, 3), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 8, NULL, y, finite, 0), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 8, NULL, y, inf, 2),
                      MPSIM_FOUND_INPUT | MPSIM_FOUND_OUTPUT);
    /* Divided by infinity, an infinity is NaN, and a number 0. */
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0x1p200, NULL, y, large, 2), 0);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0.5, format_of(FP16), y, large, 2),
                      MPSIM_FOUND_OUTPUT);
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, 0.5, NULL, y, large, 2), 0);
    /* A scale of 0 after its collapse: 0 inf is NaN. */
    ck_assert_uint_eq(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, 0, NULL, y, finite, 3),
                      MPSIM_FOUND_OUTPUT);
    ck_assert(isinf(y[0]) && isnan(y[1]));
}
END_TEST

/* The product with the reciprocal and the quotient differ for 3 2^k, agree for 2^k. */
START_TEST(product_and_quotient)
{
    enum { M = 4096 };
    static float x[M], y[M], z[M];
    uint64_t random = test_seed() + 3;
    for (size_t i = 0; i < M; i++)
        x[i] = (float)to(B32, uniform(&random, -20, 10));
    for (int k = -8; k <= 24; k += 8) {
        mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ldexp(3, k), NULL, y, x, M);
        mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, ldexp(3, k), NULL, z, x, M);
        size_t differ = 0;
        for (size_t i = 0; i < M; i++)
            differ += y[i] < z[i] || y[i] > z[i];
        ck_assert_msg(differ > M / 20 && differ < M, "3 2^%d: %d of %d differ", k, (int)differ,
                      (int)M);
        mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, ldexp(1, k), NULL, y, x, M);
        mpsim_unscale_array(MPSIM_UNSCALE_DIVIDE, ldexp(1, k), NULL, z, x, M);
        ck_assert_int_eq(memcmp(y, z, sizeof y), 0);
    }
}
END_TEST

/* --------------------------------------------------------------------------------------- norms */

/* Squares of binary32 numbers and sums of 2^20 of them have at most 2 (149 + 128) + 20 bits. */
static double exact_norm(int f, const float *x, size_t n)
{
    mpfr_t sum, square, y;
    int nan = 0, inf = 0;
    mpfr_init2(sum, 640);
    mpfr_init2(square, 64);
    mpfr_init2(y, 53);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < n; i++) {
        nan |= isnan(x[i]);
        inf |= isinf(x[i]);
        if (!isfinite(x[i]))
            continue;
        ck_assert_int_eq(mpfr_set_flt(square, x[i], MPFR_RNDN), 0);
        ck_assert_int_eq(mpfr_sqr(square, square, MPFR_RNDN), 0);
        ck_assert_int_eq(mpfr_add(sum, sum, square, MPFR_RNDN), 0);
    }
    const double s = rounded_end(B64, y, mpfr_set(y, sum, MPFR_RNDN));
    mpfr_clears(sum, square, y, (mpfr_ptr)NULL);
    return nan ? NOTANUMBER : inf ? INFINITE : to(f, root(B64, s));
}

START_TEST(norms_are_exact_sums)
{
    uint64_t random = test_seed() + 4;
    for (size_t k = 0; k < test_scaled(600); k++) {
        float x[N];
        const int f = narrow[k % 3];
        const size_t n = test_random(&random) % (N + 1);
        fill(x, N, f, k % 16 == 15, &random);
        if (k & 8) /* none dominates */
            for (size_t i = 0; i < N; i++)
                x[i] = (float)to(f, uniform(&random, -1, 0));
        const float got = mpsim_norm(f == B32 ? NULL : format_of(f), x, n);
        ck_assert_msg(same(exact_norm(f, x, n), got), "%s, %d elements: %a, expected %a",
                      shapes[f].name,
                      (int)n, (double)got, exact_norm(f, x, n));
    }
}
END_TEST

START_TEST(norms_at_the_edges)
{
    const float huge[] = {0x1.fffffep127f, 0x1.fffffep127f}, tiny[] = {0x1p-149f, 0x1p-149f};
    const float tiny4[] = {0x1p-149f, -0x1p-149f, 0x1p-149f, 0x1p-149f};
    const float half[] = {40000, -60000}, pair[] = {3, -4};
    const float nan[] = {1, INFINITY, NAN}, inf[] = {1, -INFINITY, 0};
    ck_assert(mpsim_norm(NULL, pair, 2) == 5);
    ck_assert(mpsim_norm(NULL, pair, 0) == 0 && !signbit(mpsim_norm(NULL, pair, 0)));
    ck_assert(isinf(mpsim_norm(NULL, huge, 2)) && mpsim_norm(NULL, huge, 1) == huge[0]);
    ck_assert(mpsim_norm(NULL, tiny, 2) == 0x1p-149f && mpsim_norm(NULL, tiny4, 4) == 0x1p-148f);
    ck_assert(isinf(mpsim_norm(format_of(FP16), half, 2)));
    ck_assert(same(exact_norm(BF16, half, 2), mpsim_norm(format_of(BF16), half, 2)));
    ck_assert(isnan(mpsim_norm(NULL, nan, 3)) && isinf(mpsim_norm(NULL, nan, 2)));
    ck_assert(isinf(mpsim_norm(NULL, inf, 3)) && mpsim_norm(NULL, inf, 3) > 0);
}
END_TEST

START_TEST(totals_of_norms)
{
    uint64_t random = test_seed() + 5;
    for (size_t k = 0; k < 400; k++) {
        float x[8];
        const int f = narrow[k % 3];
        fill(x, 8, f, k % 16 == 15, &random);
        for (size_t i = 0; i < 8; i++)
            x[i] = fabsf(x[i]);
        for (int rule = MPSIM_CLIP_TORCH; rule < MPSIM_CLIP_RULES; rule++) {
            const int g = rule == MPSIM_CLIP_TORCH ? f : B32;
            const float got = mpsim_clip_total((mpsim_clip_rule)rule, f == B32 ? NULL
                                               : format_of(f), x,
                                               k % 9);
            ck_assert_msg(same(exact_norm(g, x, k % 9), got), "%s %s: %a, expected %a",
                          mpsim_clip_name((mpsim_clip_rule)rule), shapes[f].name, (double)got,
                          exact_norm(g, x, k % 9));
        }
    }
}
END_TEST

/* --------------------------------------------------------------------------------------- rules */

START_TEST(names_of_rules)
{
    static const char *const names[] = {"none", "torch", "apex", "megatron", "megatron-float",
                                        "deepspeed", "deepspeed-zero", "fairseq"};
    ck_assert_uint_eq(sizeof names / sizeof names[0], MPSIM_CLIP_RULES);
    for (int i = 0; i < MPSIM_CLIP_RULES; i++) {
        mpsim_clip_rule rule = MPSIM_CLIP_RULES;
        ck_assert_str_eq(mpsim_clip_name((mpsim_clip_rule)i), names[i]);
        ck_assert_int_eq(mpsim_clip_parse(&rule, names[i]), MPSIM_OK);
        ck_assert_int_eq(rule, i);
    }
    mpsim_clip_rule rule = MPSIM_CLIP_APEX;
    ck_assert_int_eq(mpsim_clip_parse(&rule, "clip"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(rule, MPSIM_CLIP_APEX);
}
END_TEST

/* max / (norm + 1e-6) on tensors of f: each operation in binary32, rounded to f; number /
 * tensor is the reciprocal, rounded, times the number; at most 1, NaN stays. */
static double tensor_coefficient(int f, double norm, double max)
{
    const double d = to(f, add(B32, norm, to(B32, 1e-6)));
    const double c = to(f, mul(B32, to(f, quo(B32, 1, d)), to(B32, max)));
    return c > 1 ? 1 : c;
}

static double deepspeed_factor(int zero, double norm, double max, double scale)
{
    double clip = quo(B64, add(B64, quo(B64, norm, scale), 1e-6), max);
    if (zero && clip < 1)
        clip = 1;
    if (!zero && !(clip > 1))
        return quo(B64, 1, scale);
    return quo(B64, 1, mul(B64, clip, scale));
}

static double fairseq_factor(double norm, double max, double scale)
{
    const double factor = quo(B64, 1, scale), unscaled = mul(B64, factor, norm);
    return unscaled > max ? mul(B64, factor, quo(B64, max, unscaled)) : factor;
}

static int rule_is(mpsim_clip_rule rule, mpsim_clip c, int f, double norm, double max, double scale)
{
    double plain;
    switch (rule) {
    case MPSIM_CLIP_TORCH:
    case MPSIM_CLIP_APEX:
    case MPSIM_CLIP_MEGATRON:
        f = rule == MPSIM_CLIP_TORCH ? f : B32;
        return c.apply && !c.unscales && same64(tensor_coefficient(f, norm, max), c.factor);
    case MPSIM_CLIP_MEGATRON_FLOAT:
        plain = quo(B64, max, add(B64, norm, 1e-6));
        if (!(plain < 1)) /* NaN too: nothing is multiplied */
            return !c.apply && !c.unscales;
        return c.apply && !c.unscales && same64(plain, c.factor);
    case MPSIM_CLIP_DEEPSPEED:
    case MPSIM_CLIP_DEEPSPEED_ZERO:
        return c.apply && c.unscales &&
               same64(deepspeed_factor(rule != MPSIM_CLIP_DEEPSPEED, norm, max, scale), c.factor);
    case MPSIM_CLIP_FAIRSEQ:
        return c.apply && c.unscales && same64(fairseq_factor(norm, max, scale), c.factor);
    default:
        return !c.apply && !c.unscales;
    }
}

/* Norms below, at, beside and above max, in f, as the rule sees them. */
static double norm_near(size_t k, double max, double scale, int f, uint64_t *random)
{
    static const double special[] = {0, 0x1p-149, INFINITE, NOTANUMBER, 1e-6, 65504,
                                     0x1.fffffep127};
    double x = max * scale;
    if (k % 4 == 0)
        x = special[k / 4 % 7];
    if (k % 4 == 1)
        x *= 1 + ldexp((double)(int)(k / 4 % 9) - 4, -23);
    if (k % 4 == 2)
        x *= fabs(uniform(random, -6, 6));
    return to(f, x);
}

START_TEST(every_rule)
{
    static const double maxima[] = {1, 0.1, 0.25, 5, 1e-7, 2.5, 1e4};
    static const double scales[] = {1, 65536, 0x1.8p10, 45875.2001953125, 0x1p-3};
    uint64_t random = test_seed() + 6;
    for (size_t k = 0; k < test_scaled(9000); k++) {
        const double max = maxima[test_random(&random) % 7];
        for (int r = MPSIM_CLIP_NONE; r < MPSIM_CLIP_RULES; r++) {
            const mpsim_clip_rule rule = (mpsim_clip_rule)r;
            const int unscales = rule >= MPSIM_CLIP_DEEPSPEED;
            const double scale = scales[test_random(&random) % 5];
            const int f = rule == MPSIM_CLIP_TORCH ? narrow[k % 3] : B32;
            const double norm = norm_near(k, max, unscales ? scale : 1, f, &random);
            const mpsim_clip c = mpsim_clip_factor(rule, f == B32 ? NULL : format_of(f),
                                                   (float)norm, max,
                                                   scale);
            ck_assert_msg(rule_is(rule, c, f, norm, max, scale),
                          "%s %s norm %a max %a scale %a: factor %a apply %d unscales %d",
                          mpsim_clip_name(rule), shapes[f].name, norm, max, scale, c.factor,
                          c.apply,
                          c.unscales);
            /* Half a percent off the border, in which rounding has no part. */
            const double unscaled = unscales ? norm / scale : norm;
            if (rule != MPSIM_CLIP_NONE && (unscaled > 1.005 * max || unscaled < 0.995 * max))
                ck_assert_msg(c.clipped == (unscaled > max),
                              "%s norm %a max %a scale %a: clipped %d",
                              mpsim_clip_name(rule), norm, max, scale, c.clipped);
        }
    }
}
END_TEST

START_TEST(rules_at_the_edges)
{
    const double s = 1024;
    for (int r = MPSIM_CLIP_TORCH; r < MPSIM_CLIP_RULES; r++) {
        const mpsim_clip_rule rule = (mpsim_clip_rule)r;
        const float one = rule >= MPSIM_CLIP_DEEPSPEED ? (float)s : 1;
        const mpsim_clip inf = mpsim_clip_factor(rule, NULL, INFINITY, 1, s);
        ck_assert_msg(inf.factor == 0 && inf.apply && inf.clipped, "%s", mpsim_clip_name(rule));
        const mpsim_clip zero = mpsim_clip_factor(rule, NULL, 0, 1, s);
        ck_assert(!zero.clipped && (!zero.apply || zero.factor == 1 / (double)one));
        const mpsim_clip at = mpsim_clip_factor(rule, NULL, one, 1, s); /* exactly max: not above */
        ck_assert_msg(!at.clipped, "%s", mpsim_clip_name(rule));
        ck_assert_msg(fabs(at.factor * (double)one - 1) < 2e-6, "%s", mpsim_clip_name(rule));
        const mpsim_clip nan = mpsim_clip_factor(rule, NULL, NAN, 1, s);
        ck_assert(!nan.clipped);
        if (rule <= MPSIM_CLIP_MEGATRON || rule == MPSIM_CLIP_DEEPSPEED_ZERO)
            ck_assert_msg(isnan(nan.factor) && nan.apply, "%s", mpsim_clip_name(rule));
        else if (rule == MPSIM_CLIP_MEGATRON_FLOAT) /* NaN < 1 is false */
            ck_assert(isnan(nan.factor) && !nan.apply);
        else /* NaN > max is false */
            ck_assert_msg(nan.factor == 1 / s && nan.apply, "%s", mpsim_clip_name(rule));
    }
    /* 1e-6 makes a coefficient below 1 of a norm of max, but for fairseq. */
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_TORCH, NULL, 1, 1, 1).factor < 1);
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_DEEPSPEED, NULL, 1, 1, 1).factor < 1);
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_FAIRSEQ, NULL, 1, 1, 1).factor == 1);
    /* In fp16 and bf16 it is lost: the same norm gives 1. */
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_TORCH, format_of(FP16), 1, 1, 1).factor == 1);
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_TORCH, format_of(BF16), 1, 1, 1).factor == 1);
    const mpsim_clip none = mpsim_clip_factor(MPSIM_CLIP_NONE, NULL, INFINITY, 1, s);
    ck_assert(!none.apply && !none.unscales);
}
END_TEST

/* A finite gradient under an infinite norm becomes 0, an infinite one NaN. */
START_TEST(arrays_times_a_factor)
{
    uint64_t random = test_seed() + 7;
    static const double factors[] = {1, 0.5, 0x1.fffffep-1, 0.1, 0, 1e-30, 1e30, NOTANUMBER, 3, -1};
    for (size_t k = 0; k < 10 * 3 * 4; k++) {
        float x[N], y[N];
        const int f = narrow[k % 3];
        const float factor = (float)factors[k / 3 % 10];
        fill(x, N, f, 1, &random);
        mpsim_scale_array(f == B32 ? NULL : format_of(f), y, x, N, factor);
        for (size_t i = 0; i < N; i++) {
            const double want = to(f, mul(B32, (double)x[i], (double)factor));
            ck_assert_msg(same(want, y[i]), "%s: %a %a gives %a, expected %a", shapes[f].name,
                          (double)x[i], (double)factor, (double)y[i], want);
        }
        mpsim_scale_array(f == B32 ? NULL : format_of(f), x, x, N, factor);
        ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
    }
}
END_TEST

/* -------------------------------------------------------------------------------- all-reduce */

typedef struct lane {
    int wire, accumulator, result;
} lane;

static double pair_sum(const lane *l, double a, double b)
{
    return to(l->accumulator, add(B32, a, b));
}

/* Element i of n. */
static double reduced(const mpsim_reduce *r, const lane *l, float *const *x, size_t ranks, size_t i,
                      size_t n)
{
    double v[16];
    for (size_t k = 0; k < ranks; k++) {
        v[k] = to(l->wire, (double)x[k][i]);
        if (r->average == MPSIM_AVERAGE_BEFORE)
            v[k] = to(l->wire, mul(B32, v[k], quo(B32, 1, (double)ranks)));
    }
    double sum;
    if (r->order == MPSIM_REDUCE_TREE) {
        for (size_t m = ranks; m > 1; m = (m + 1) / 2)
            for (size_t k = 0; k < (m + 1) / 2; k++)
                v[k] = 2 * k + 1 < m ? pair_sum(l, v[2 * k], v[2 * k + 1]) : v[2 * k];
        sum = v[0];
    } else {
        const size_t chunk = (n + ranks - 1) / ranks;
        const size_t first = r->order == MPSIM_REDUCE_RING ? i / chunk : 0;
        sum = v[first];
        for (size_t k = 1; k < ranks; k++)
            sum = pair_sum(l, sum, v[(first + k) % ranks]);
    }
    if (r->average == MPSIM_AVERAGE_AFTER)
        sum = quo(B32, sum, (double)ranks);
    return to(l->result, sum);
}

static mpsim_reduce reduction(const lane *l, int order, int average)
{
    const mpsim_reduce r = {*format_of(l->wire), *format_of(l->accumulator), *format_of(l->result),
                            (uint8_t)order, (uint8_t)average};
    return r;
}

static const lane lanes[] = {{B32, B32, B32},    {BF16, BF16, BF16}, {BF16, B32, BF16},
                             {BF16, B32, B32},   {BF16, BF16, B32},  {FP16, FP16, FP16},
                             {FP16, B32, FP16},  {FP16, FP16, B32}};
enum { LANES = sizeof lanes / sizeof lanes[0], RANKS = 9, ELEMENTS = 23 };

START_TEST(sums_over_ranks)
{
    uint64_t random = test_seed() + 8;
    static float data[RANKS][ELEMENTS];
    float *x[RANKS];
    for (size_t k = 0; k < RANKS; k++)
        x[k] = data[k];
    for (size_t c = 0; c < LANES * 9 * RANKS * 2; c++) {
        const lane *l = &lanes[c % LANES];
        const mpsim_reduce r = reduction(l, (int)(c / LANES % 3), (int)(c / LANES / 3 % 3));
        const size_t ranks = 1 + c / LANES / 9 % RANKS, n = test_random(&random) % (ELEMENTS + 1);
        for (size_t k = 0; k < ranks; k++)
            fill(x[k], ELEMENTS, test_random(&random) % 4 ? l->wire : B32, k == 2, &random);
        float y[ELEMENTS];
        memset(y, 0x55, sizeof y);
        ck_assert_int_eq(mpsim_reduce_array(&r, y, (const float *const *)x, ranks, n), MPSIM_OK);
        for (size_t i = 0; i < n; i++) {
            const double want = reduced(&r, l, x, ranks, i, n);
            ck_assert_msg(same(want, y[i]),
                          "%s %s %s order %d average %d ranks %d element %d of %d: %a, expected %a",
                          shapes[l->wire].name, shapes[l->accumulator].name, shapes[l->result].name,
                          r.order, r.average, (int)ranks, (int)i, (int)n, (double)y[i], want);
        }
        for (size_t i = n; i < ELEMENTS; i++)
            ck_assert_uint_eq(bits_of_f32(y[i]), 0x55555555u);
        float *const target = x[test_random(&random) % ranks]; /* y may be one of them */
        ck_assert_int_eq(mpsim_reduce_array(&r, target, (const float *const *)x, ranks, n),
                         MPSIM_OK);
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(same((double)y[i], target[i]), "in place, order %d: %a, expected %a",
                          r.order,
                          (double)target[i], (double)y[i]);
    }
}
END_TEST

/* By hand. bf16 of 1 + 2^-8 three times: lost each time; in binary32 the sum is 1 + 3 2^-8. */
START_TEST(orders_and_accumulators_by_hand)
{
    const float one = 1, h = 0x1p-8f;
    const float *const x[] = {&one, &h, &h, &h};
    const lane narrow_sums = {BF16, BF16, BF16}, wide_sums = {BF16, B32, B32}, back = {BF16, B32,
                                                                                       BF16};
    float y = 0;
    mpsim_reduce r = reduction(&narrow_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1);
    r = reduction(&narrow_sums, MPSIM_REDUCE_TREE, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1p-7f); /* (1 + h) + (h + h) = 1 + 2^-7 */
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1.8p-7f);
    r = reduction(&back, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, x, 4, 1), MPSIM_OK);
    ck_assert(y == 1 + 0x1p-6f); /* the tie of 1 + 3 2^-8 goes to even */
    /* A ring of 3 ranks and 4 elements: chunks of 2, 2 and none; 2^24 + 1 + 1 by starting rank. */
    const float a[] = {0x1p24f, 0x1p24f, 0x1p24f, 0x1p24f}, b[] = {1, 1, 1, 1};
    const float *const ring[] = {a, b, b};
    float z[4];
    const lane f32 = {B32, B32, B32};
    r = reduction(&f32, MPSIM_REDUCE_RING, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(&r, z, ring, 3, 4), MPSIM_OK);
    ck_assert(z[0] == 0x1p24f && z[1] == 0x1p24f);       /* (2^24 + 1) + 1 */
    ck_assert(z[2] == 0x1p24f + 2 && z[3] == z[2]);      /* (1 + 1) + 2^24 */
    /* Averages: before, 3 times bf16(1/3) is 1.002 rounded; after, it is exact. */
    const float *const ones[] = {&one, &one, &one};
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_BEFORE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, ones, 3, 1), MPSIM_OK);
    ck_assert(y == 3 * 0x1.56p-2f);
    r = reduction(&wide_sums, MPSIM_REDUCE_SEQUENTIAL, MPSIM_AVERAGE_AFTER);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, ones, 3, 1), MPSIM_OK);
    ck_assert(y == 1);
    /* fp16 overflows in the sum, not if it is averaged before. */
    const float big = 40000;
    const float *const bigs[] = {&big, &big};
    const lane half = {FP16, FP16, FP16};
    r = reduction(&half, MPSIM_REDUCE_RING, MPSIM_AVERAGE_AFTER);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, bigs, 2, 1), MPSIM_OK);
    ck_assert(isinf(y) && y > 0);
    r = reduction(&half, MPSIM_REDUCE_RING, MPSIM_AVERAGE_BEFORE);
    ck_assert_int_eq(mpsim_reduce_array(&r, &y, bigs, 2, 1), MPSIM_OK);
    ck_assert(y == 40000);
}
END_TEST

START_TEST(refused_reductions)
{
    const float a[2] = {1, 2};
    const float *const x[2] = {a, a}, *const hole[2] = {a, NULL};
    float y[2] = {7, 8};
    const lane f32 = {B32, B32, B32};
    const mpsim_reduce good = reduction(&f32, MPSIM_REDUCE_RING, MPSIM_AVERAGE_NONE);
    ck_assert_int_eq(mpsim_reduce_array(NULL, y, x, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, NULL, x, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, NULL, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, hole, 2, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, x, 0, 2), MPSIM_EINVAL);
    mpsim_reduce r = good;
    r.order = 3;
    ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    r = good;
    r.average = 3;
    ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    for (int k = 0; k < 3; k++) {
        r = good;
        mpsim_format *const f = k == 0 ? &r.wire : k == 1 ? &r.accumulator : &r.result;
        *f = *format_of(B64);
        ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_ERANGE);
        *f = good.wire;
        f->ebits = 0;
        ck_assert_int_eq(mpsim_reduce_array(&r, y, x, 2, 2), MPSIM_EINVAL);
    }
    ck_assert(y[0] == 7 && y[1] == 8);
    ck_assert_int_eq(mpsim_reduce_array(&good, y, x, 2, 0), MPSIM_OK);
    ck_assert(y[0] == 7 && y[1] == 8);
}
END_TEST

int main(void)
{
    TCase *const unscale = test_case("unscale", 30);
    tcase_add_test(unscale, factor_of_every_kind_of_scale);
    tcase_add_test(unscale, reciprocal_of_a_binary32_scale_is_the_ieee_one);
    tcase_add_test(unscale, unscaling_by_both_rules);
    tcase_add_test(unscale, factor_one_leaves_every_bit);
    tcase_add_test(unscale, found_is_of_input_or_output);
    tcase_add_test(unscale, product_and_quotient);
    TCase *const clip = test_case("clip", 30);
    tcase_add_test(clip, norms_are_exact_sums);
    tcase_add_test(clip, norms_at_the_edges);
    tcase_add_test(clip, totals_of_norms);
    tcase_add_test(clip, names_of_rules);
    tcase_add_test(clip, every_rule);
    tcase_add_test(clip, rules_at_the_edges);
    tcase_add_test(clip, arrays_times_a_factor);
    TCase *const reduce = test_case("reduce", 30);
    tcase_add_test(reduce, sums_over_ranks);
    tcase_add_test(reduce, orders_and_accumulators_by_hand);
    tcase_add_test(reduce, refused_reductions);
    TCase *const cases[] = {unscale, clip, reduce, NULL};
    return test_main("gradient", cases);
}
