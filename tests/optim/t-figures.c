/* t-figures.c -- how far the variants of Adam are from each other, and published figures
 * about lost updates, Kahan summation and stochastic rounding. */
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <mpsim/optim.h>
#include <stdio.h>

/* ---- variants among themselves ---- */

enum { ELEMENTS = 4096, STEPS = 5 };

/* Weights after STEPS steps of a variant from the same state with the same gradients. */
static void some_steps(const char *variant, mpsim_optim_algorithm a, float *p, double *reference)
{
    static float g[ELEMENTS], m[ELEMENTS], v[ELEMENTS];
    static double gd[ELEMENTS], md[ELEMENTS], vd[ELEMENTS];
    const mpsim_optim_tensor t = {.param = p, .grad = g, .m = m, .v = v, .n = ELEMENTS};
    uint64_t state = 1;
    mpsim_optim o;
    mpsim_optim_init(&o, a, mpsim_optim_variant_find(variant));
    o.lr = 0.005;
    o.weight_decay = 0.01;
    for (size_t i = 0; i < ELEMENTS; i++) {
        p[i] = 0.5f + (float)(test_random(&state) >> 40) * 0x1p-24f;
        reference[i] = (double)p[i];
        m[i] = v[i] = 0;
        md[i] = vd[i] = 0;
    }
    for (uint64_t step = 1; step <= STEPS; step++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            g[i] = (float)(test_random(&state) >> 40) * 0x1p-24f - 0.5f;
            gd[i] = (double)g[i];
        }
        ck_assert(mpsim_optim_step(&o, step, &t, NULL) == MPSIM_OK);
        ck_assert(mpsim_optim_reference(&o, step, reference, gd, md, vd, NULL, ELEMENTS) == MPSIM_OK);
    }
}

CASE("figures", 60);

/* No two of these orders of the same mathematics give the same bits, and all agree with binary64 to
 * a relative 1e-6. */
TESTS(adam_variants, 2)
{
    static const char *const names[] = {"ieee",
                                        "torch",
                                        "torch-foreach",
                                        "torch-capturable",
                                        "torch-foreach-capturable",
                                        "torch-cpu",
                                        "torch-cpu-default",
                                        "torch-fused-a",
                                        "torch-fused-b",
                                        "torch-fused-c",
                                        "apex",
                                        "torchao"};
    enum { NAMES = sizeof names / sizeof names[0] };
    static float p[NAMES][ELEMENTS];
    static double reference[ELEMENTS];
    const mpsim_optim_algorithm a = _i ? MPSIM_OPTIM_ADAMW : MPSIM_OPTIM_ADAM;
    for (size_t k = 0; k < NAMES; k++) {
        some_steps(names[k], a, p[k], reference);
        for (size_t i = 0; i < ELEMENTS; i++)
            ck_assert_msg(fabs((double)p[k][i] - reference[i]) <= 1e-6 * fabs(reference[i]), "%s: %a, %a", names[k],
                          (double)p[k][i], reference[i]);
        for (size_t other = 0; other < k; other++) {
            size_t differ = 0;
            for (size_t i = 0; i < ELEMENTS; i++)
                differ += !recorded_same(p[k][i], p[other][i]);
            ck_assert_msg(differ > 0, "%s gives the bits of %s", names[k], names[other]);
        }
    }
}

/* ---- published figures ---- */

static float step_one(const mpsim_optim *o, float w, float g)
{
    const mpsim_optim_tensor t = {.param = &w, .grad = &g, .n = 1};
    ck_assert(mpsim_optim_step(o, 1, &t, NULL) == MPSIM_OK);
    return w;
}

/* w - lr g with lr = 1: a sum in the format of the parameter. */
static mpsim_optim adder(const char *variant, const char *format, mpsim_store store)
{
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find(variant));
    o.param = o.state = *mpsim_format_find(format);
    o.lr = 1;
    o.store = (uint8_t)store;
    return o;
}

/* Micikevicius et al. 2018, 3.1: an fp16 weight at least 2048 times its update may lose it. From
 * 4096 on every weight does, below 2048 none; a power of two does from 2048 on, where a tie goes to
 * the even neighbour, itself, while an odd weight takes the update. */
TEST(updates_lost_in_fp16)
{
    const mpsim_optim o = adder("torch", "fp16", MPSIM_STORE_NEAREST);
    static float sum[4096], g[4096];
    const mpsim_optim_tensor t = {.param = sum, .grad = g, .n = 4096};
    size_t lost = 0, taken = 0, wrong = 0;
    for (int i = 0; i < 1024; i++) {
        const float w = 1 + ldexpf((float)i, -10);
        for (int k = 0; k < 4096; k++) { /* all fp16 numbers from 2^-13 to 2^-9 */
            sum[k] = w;
            g[k] = -ldexpf(1024 + (float)(k % 1024), -10 - 13 + k / 1024);
        }
        ck_assert(mpsim_optim_step(&o, 1, &t, NULL) == MPSIM_OK);
        for (int k = 0; k < 4096; k++) {
            const float u = -g[k];
            const int tie_to_even = u == ldexpf(1, -11) && i % 2 == 0;
            lost += sum[k] == w;
            taken += sum[k] > w;
            wrong += (sum[k] == w) != (u < ldexpf(1, -11) || tie_to_even);
            wrong += w >= 4096 * u && sum[k] != w;
            wrong += w < 2048 * u && sum[k] == w;
            wrong += i == 0 && (sum[k] == w) != (w >= 2048 * u);
        }
    }
    printf("# fp16, w + u: %zu updates lost, %zu taken\n", lost, taken);
    ck_assert(wrong == 0 && lost > 0 && taken > 0);
    for (int e = -13; e < 16; e++) { /* the same in every binade where the update is a number */
        const float w = ldexpf(1, e), u = ldexpf(1, e - 11);
        const float more = e - 11 > -14 ? u * (1 + 0x1p-10f) : u + 0x1p-24f;
        ck_assert(step_one(&o, w, -u) == w);
        ck_assert(step_one(&o, w, -more) > w);
    }
}

enum { COPIES = 2048 };

/* Sum `terms` terms, times(k) for k = 1, 2, ..., COPIES times at once, beginning with w. Mean and
 * root mean square error against the sum of the terms as the format holds them. */
typedef float term_function(int k);

static void sum_terms(mpsim_optim *o, float w, term_function *term, int terms, double *mean, double *error)
{
    static float p[COPIES], g[COPIES], c[COPIES];
    const mpsim_optim_tensor t = {.param = p, .grad = g, .kahan = c, .n = COPIES};
    double exact = (double)w, sum = 0, squares = 0;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (int i = 0; i < COPIES; i++) {
        p[i] = w;
        c[i] = 0;
    }
    for (int k = 1; k <= terms; k++) {
        float x = -term(k);
        const mpsim_rng rng = {.seed = 7, .stream = (uint64_t)k, .index = 0};
        ck_assert(mpsim_round_array_f32(&o->param, &r, NULL, &x, &x, 1, NULL) == MPSIM_OK);
        exact -= (double)x;
        for (int i = 0; i < COPIES; i++)
            g[i] = x;
        ck_assert(mpsim_optim_step(o, (uint64_t)k, &t, &rng) == MPSIM_OK);
    }
    for (int i = 0; i < COPIES; i++) {
        sum += (double)p[i];
        squares += ((double)p[i] - exact) * ((double)p[i] - exact);
    }
    *mean = sum / COPIES - exact;
    *error = sqrt(squares / COPIES);
}

static float small(int k)
{
    (void)k;
    return 0x1p-12f;
}

static float harmonic(int k)
{
    return 1 / (float)k;
}

/* Zamirai et al. 2020: bf16 weights of 1 and updates of 2^-12, a 32nd of the distance to the next
 * number. To nearest all are lost. Rounded stochastically they are right on average: every step has
 * variance below (1/32) 2^-14, so 2000 of them below 2^-8, and the mean of 2048 copies a standard
 * deviation below 2^-9.5. With Kahan summation the weight is off by half an ulp (2^-8) at most, and
 * by what the compensation itself lost. */
TEST(small_updates_in_bf16)
{
    double mean, error;
    mpsim_optim o = adder("ieee", "bf16", MPSIM_STORE_NEAREST);
    sum_terms(&o, 1, small, 2000, &mean, &error);
    ck_assert(mean == -2000 * 0x1p-12);
    o = adder("ieee", "bf16", MPSIM_STORE_STOCHASTIC);
    sum_terms(&o, 1, small, 2000, &mean, &error);
    printf("# 2000 small updates in bf16: stochastic: mean error %.2g, rms %.2g\n", mean, error);
    ck_assert(fabs(mean) < 5 * 0x1p-9);
    ck_assert(error > 0x1p-6 && error < 0x1p-3);
    static const char *const kahan[] = {"optimi", "optimi-cpu", "optimi-cpu-default", "optimi-triton"};
    for (size_t i = 0; i < sizeof kahan / sizeof kahan[0]; i++) {
        o = adder(kahan[i], "bf16", MPSIM_STORE_KAHAN);
        sum_terms(&o, 1, small, 2000, &mean, &error);
        ck_assert_msg(error <= 0x1p-8, "%s: %g", kahan[i], error);
    }
}

/* Croci et al. 2022: the harmonic series in bf16 stagnates to nearest, so that its error grows with
 * the sum; rounded stochastically it does not, and its mean is right. */
TEST(harmonic_series_in_bf16)
{
    double before, after, mean, error;
    mpsim_optim o = adder("ieee", "bf16", MPSIM_STORE_NEAREST);
    sum_terms(&o, 0, harmonic, 300, &before, &error);
    sum_terms(&o, 0, harmonic, 3000, &after, &error);
    ck_assert_msg(before - after > 2.2, "to nearest: %g, %g", before, after); /* ln 10 = 2.303 */
    o = adder("ieee", "bf16", MPSIM_STORE_STOCHASTIC);
    sum_terms(&o, 0, harmonic, 3000, &mean, &error);
    printf("# harmonic series in bf16, 3000 terms: to nearest off by %.3g, stochastic: mean %.2g, "
           "rms %.2g\n",
           after, mean, error);
    ck_assert(fabs(mean) < 5 * error / sqrt(COPIES));
    ck_assert(error < fabs(after) / 5);
    o = adder("optimi", "bf16", MPSIM_STORE_KAHAN);
    sum_terms(&o, 0, harmonic, 3000, &mean, &error);
    ck_assert_msg(error <= 0x1p-4, "Kahan: %g", error);
}

TEST_MAIN("optim-figures");
