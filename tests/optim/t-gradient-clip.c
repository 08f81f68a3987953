/* t-gradient-clip.c -- norms of gradients, and every clipping rule at its edges, against MPFR
 * (rounded.h). */
#include "oracle/rounded.h"
#include "support/gradientinput.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/gradient.h>
#include <string.h>

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

CASE("clip", 30);

TEST(norms_are_exact_sums)
{
    uint64_t random = test_seed() + 4;
    for (size_t k = 0; k < test_scaled(600); k++) {
        float x[N];
        const int f = narrow[k % 3];
        const size_t n = test_random(&random) % (N + 1);
        gradient_fill(x, N, f, k % 16 == 15, &random);
        if (k & 8) /* none dominates */
            for (size_t i = 0; i < N; i++)
                x[i] = (float)to(f, uniform(&random, -1, 0));
        const float got = mpsim_norm(f == B32 ? NULL : gradient_format(f), x, n);
        ck_assert_msg(same(exact_norm(f, x, n), got), "%s, %d elements: %a, expected %a", shapes[f].name, (int)n,
                      (double)got, exact_norm(f, x, n));
    }
}

TEST(norms_at_the_edges)
{
    const float huge[] = {0x1.fffffep127f, 0x1.fffffep127f}, tiny[] = {0x1p-149f, 0x1p-149f};
    const float tiny4[] = {0x1p-149f, -0x1p-149f, 0x1p-149f, 0x1p-149f};
    const float half[] = {40000, -60000}, pair[] = {3, -4};
    const float nan[] = {1, INFINITY, NAN}, inf[] = {1, -INFINITY, 0};
    ck_assert(mpsim_norm(NULL, pair, 2) == 5);
    ck_assert(mpsim_norm(NULL, pair, 0) == 0 && !signbit(mpsim_norm(NULL, pair, 0)));
    ck_assert(isinf(mpsim_norm(NULL, huge, 2)) && mpsim_norm(NULL, huge, 1) == huge[0]);
    ck_assert(mpsim_norm(NULL, tiny, 2) == 0x1p-149f && mpsim_norm(NULL, tiny4, 4) == 0x1p-148f);
    ck_assert(isinf(mpsim_norm(gradient_format(FP16), half, 2)));
    ck_assert(same(exact_norm(BF16, half, 2), mpsim_norm(gradient_format(BF16), half, 2)));
    ck_assert(isnan(mpsim_norm(NULL, nan, 3)) && isinf(mpsim_norm(NULL, nan, 2)));
    ck_assert(isinf(mpsim_norm(NULL, inf, 3)) && mpsim_norm(NULL, inf, 3) > 0);
}

TEST(totals_of_norms)
{
    uint64_t random = test_seed() + 5;
    for (size_t k = 0; k < 400; k++) {
        float x[8];
        const int f = narrow[k % 3];
        gradient_fill(x, 8, f, k % 16 == 15, &random);
        for (size_t i = 0; i < 8; i++)
            x[i] = fabsf(x[i]);
        for (int rule = MPSIM_CLIP_TORCH; rule < MPSIM_CLIP_RULES; rule++) {
            const int torch = rule == MPSIM_CLIP_TORCH || rule == MPSIM_CLIP_TORCH_CPU;
            const int g = torch ? f : B32;
            const double got = mpsim_clip_total((mpsim_clip_rule)rule, f == B32 ? NULL : gradient_format(f), x, k % 9);
            double want = exact_norm(g, x, k % 9);
            if (rule == MPSIM_CLIP_MEGATRON_FLOAT) /* total.item() ** 0.5 */
                want = root(B64, mul(B32, want, want));
            ck_assert_msg(same64(want, got), "%s %s: %a, expected %a", mpsim_clip_name((mpsim_clip_rule)rule),
                          shapes[f].name, got, want);
        }
    }
}

/* --------------------------------------------------------------------------------------- rules */

TEST(names_of_rules)
{
    static const char *const names[] = {"none",           "torch",     "torch-cpu",      "apex",   "megatron",
                                        "megatron-float", "deepspeed", "deepspeed-zero", "fairseq"};
    ck_assert_uint_eq(sizeof names / sizeof names[0], MPSIM_CLIP_RULES);
    for (int i = 0; i < MPSIM_CLIP_RULES; i++) {
        mpsim_clip_rule rule = MPSIM_CLIP_RULES;
        ck_assert_str_eq(mpsim_clip_name((mpsim_clip_rule)i), names[i]);
        ck_assert_int_eq(mpsim_clip_parse(&rule, names[i]), MPSIM_OK);
        ck_assert_int_eq(rule, i);
        ck_assert_int_eq(mpsim_clip_unscales(rule), i >= 6);
    }
    mpsim_clip_rule rule = MPSIM_CLIP_APEX;
    ck_assert_int_eq(mpsim_clip_parse(&rule, "clip"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(rule, MPSIM_CLIP_APEX);
}

/* max / (norm + 1e-6) on tensors of f: each operation in binary32, rounded to f; number /
 * tensor is the reciprocal, rounded, times the number; at most 1, NaN stays. */
static double tensor_coefficient(int f, int cpu, double norm, double max)
{
    const double epsilon = cpu ? to(f, to(B32, 1e-6)) : to(B32, 1e-6);
    const double d = to(f, add(B32, norm, epsilon));
    const double c = to(f, mul(B32, to(f, quo(B32, 1, d)), to(B32, max)));
    return c > 1 ? 1 : c;
}

/* FP16_Optimizer: Python floats. */
static double deepspeed_factor(double norm, double max, double scale)
{
    const double clip = quo(B64, add(B64, quo(B64, norm, scale), 1e-6), max);
    return quo(B64, 1, clip > 1 ? mul(B64, clip, scale) : scale);
}

/* ZeRO: binary32 tensors; a tensor over a number is a product with the number's reciprocal. */
static double zero_factor(double norm, double max, double scale)
{
    const double s = to(B32, scale), over_s = quo(B32, 1, s), over_max = quo(B32, 1, to(B32, max));
    double clip = mul(B32, add(B32, mul(B32, norm, over_s), to(B32, 1e-6)), over_max);
    if (clip < 1)
        clip = 1;
    return quo(B32, 1, mul(B32, clip, s));
}

/* A number for the factor, binary32 tensors for the norm. */
static double fairseq_factor(double norm, double max, double scale)
{
    const double plain = quo(B64, 1, scale), factor = to(B32, plain);
    const double unscaled = mul(B32, factor, norm);
    return unscaled > max ? mul(B32, factor, mul(B32, quo(B32, 1, unscaled), to(B32, max))) : plain;
}

static int rule_is(mpsim_clip_rule rule, mpsim_clip c, int f, double norm, double max, double scale)
{
    double plain;
    switch (rule) {
    case MPSIM_CLIP_TORCH:
    case MPSIM_CLIP_TORCH_CPU:
    case MPSIM_CLIP_APEX:
    case MPSIM_CLIP_MEGATRON:
        f = rule <= MPSIM_CLIP_TORCH_CPU ? f : B32;
        return c.apply && !c.unscales &&
               same64(tensor_coefficient(f, rule == MPSIM_CLIP_TORCH_CPU, norm, max), c.factor);
    case MPSIM_CLIP_MEGATRON_FLOAT:
        plain = quo(B64, max, add(B64, norm, 1e-6));
        if (!(plain < 1)) /* NaN too: nothing is multiplied */
            return !c.apply && !c.unscales;
        return c.apply && !c.unscales && same64(plain, c.factor);
    case MPSIM_CLIP_DEEPSPEED:
        return c.apply && c.unscales && same64(deepspeed_factor(norm, max, scale), c.factor);
    case MPSIM_CLIP_DEEPSPEED_ZERO:
        return c.apply && c.unscales && same64(zero_factor(norm, max, scale), c.factor);
    case MPSIM_CLIP_FAIRSEQ:
        return c.apply && c.unscales && same64(fairseq_factor(norm, max, scale), c.factor);
    default:
        return !c.apply && !c.unscales;
    }
}

/* Norms below, at, beside and above max, in f, as the rule sees them. */
static double norm_near(size_t k, double max, double scale, int f, uint64_t *random)
{
    static const double special[] = {0, 0x1p-149, INFINITE, NOTANUMBER, 1e-6, 65504, 0x1.fffffep127};
    double x = max * scale;
    if (k % 4 == 0)
        x = special[k / 4 % 7];
    if (k % 4 == 1)
        x *= 1 + ldexp((double)(int)(k / 4 % 9) - 4, -23);
    if (k % 4 == 2)
        x *= fabs(uniform(random, -6, 6));
    return to(f, x);
}

TEST(every_rule)
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
            const int torch = rule == MPSIM_CLIP_TORCH || rule == MPSIM_CLIP_TORCH_CPU;
            const int f = torch ? narrow[k % 3] : B32;
            const double norm = norm_near(k, max, unscales ? scale : 1, f, &random);
            const mpsim_clip c = mpsim_clip_factor(rule, f == B32 ? NULL : gradient_format(f), norm, max, scale);
            ck_assert_msg(rule_is(rule, c, f, norm, max, scale),
                          "%s %s norm %a max %a scale %a: factor %a apply %d unscales %d", mpsim_clip_name(rule),
                          shapes[f].name, norm, max, scale, c.factor, c.apply, c.unscales);
            /* Half a percent off the border, in which rounding has no part. */
            const double unscaled = unscales ? norm / scale : norm;
            if (rule != MPSIM_CLIP_NONE && (unscaled > 1.005 * max || unscaled < 0.995 * max))
                ck_assert_msg(c.clipped == (unscaled > max), "%s norm %a max %a scale %a: clipped %d",
                              mpsim_clip_name(rule), norm, max, scale, c.clipped);
        }
    }
}

TEST(rules_at_the_edges)
{
    const double s = 1024;
    for (int r = MPSIM_CLIP_TORCH; r < MPSIM_CLIP_RULES; r++) {
        const mpsim_clip_rule rule = (mpsim_clip_rule)r;
        const float one = rule >= MPSIM_CLIP_DEEPSPEED ? (float)s : 1;
        const mpsim_clip inf = mpsim_clip_factor(rule, NULL, INFINITE, 1, s);
        ck_assert_msg(inf.factor == 0 && inf.apply && inf.clipped, "%s", mpsim_clip_name(rule));
        const mpsim_clip zero = mpsim_clip_factor(rule, NULL, 0, 1, s);
        ck_assert(!zero.clipped && (!zero.apply || zero.factor == 1 / (double)one));
        const mpsim_clip at = mpsim_clip_factor(rule, NULL, (double)one, 1, s); /* exactly max: not above */
        ck_assert_msg(!at.clipped, "%s", mpsim_clip_name(rule));
        ck_assert_msg(fabs(at.factor * (double)one - 1) < 2e-6, "%s", mpsim_clip_name(rule));
        const mpsim_clip nan = mpsim_clip_factor(rule, NULL, NOTANUMBER, 1, s);
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
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_TORCH, gradient_format(FP16), 1, 1, 1).factor == 1);
    ck_assert(mpsim_clip_factor(MPSIM_CLIP_TORCH, gradient_format(BF16), 1, 1, 1).factor == 1);
    const mpsim_clip none = mpsim_clip_factor(MPSIM_CLIP_NONE, NULL, INFINITE, 1, s);
    ck_assert(!none.apply && !none.unscales);
}

/* A finite gradient under an infinite norm becomes 0, an infinite one NaN. */
TEST(arrays_times_a_factor)
{
    uint64_t random = test_seed() + 7;
    static const double factors[] = {1, 0.5, 0x1.fffffep-1, 0.1, 0, 1e-30, 1e30, NOTANUMBER, 3, -1};
    for (size_t k = 0; k < 10 * 3 * 4; k++) {
        float x[N], y[N];
        const int f = narrow[k % 3];
        const float factor = (float)factors[k / 3 % 10];
        gradient_fill(x, N, f, 1, &random);
        mpsim_scale_array(f == B32 ? NULL : gradient_format(f), y, x, N, factor);
        for (size_t i = 0; i < N; i++) {
            const double want = to(f, mul(B32, (double)x[i], (double)factor));
            ck_assert_msg(same(want, y[i]), "%s: %a %a gives %a, expected %a", shapes[f].name, (double)x[i],
                          (double)factor, (double)y[i], want);
        }
        mpsim_scale_array(f == B32 ? NULL : gradient_format(f), x, x, N, factor);
        ck_assert_int_eq(memcmp(x, y, sizeof x), 0);
    }
}

TEST_MAIN("gradient-clip");
