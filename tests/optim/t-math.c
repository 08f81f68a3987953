/* t-math.c -- optimizer steps against the same mathematics in 200 bits (optimexact.h): every
 * variant, the reference in binary64, powers; and how far variants are from each other. */
#include "support/optiminput.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/optim.h>
#include <stdio.h>
#include <string.h>

static int far(double want, double got, double allowed)
{
    return !(fabs(want - got) <= allowed);
}

/* Numbers of the run that have few bits, so that no variant loses any by reading them early. */
static void plain_numbers(mpsim_optim *o, unsigned options, uint64_t *random)
{
    numbers(o, options, random);
    o->lr = 0x1p-10;
    o->beta1 = 0.875;
    o->beta2 = 1 - 0x1p-10;
    o->eps = 0x1p-26;
    o->momentum = o->momentum != 0 ? 0.875 : 0;
    o->dampening = o->dampening != 0 ? 0.25 : 0;
    o->weight_decay = o->weight_decay != 0 ? 0x1p-7 : 0;
    o->grad_scale = o->grad_scale != 1 ? 0x1.8p10 : 1;
}

static const uint64_t plain_steps[] = {1, 2, 20000}; /* 1 - beta^step loses nothing */

static void near_mathematics(const mpsim_optim *o, uint64_t *random, uint64_t *values)
{
    arrays a, before;
    optim_fill(&a, o, B32, B32, 0, random);
    for (size_t i = 0; i < N; i++) {
        a.p[i] = (float)draw(B32, random, 0, -8, 2);
        a.g[i] = (float)draw(B32, random, 0, -12, 0);
        a.m[i] = (float)draw(B32, random, 0, -12, 0);
        a.v[i] = (float)fabs(draw(B32, random, 0, -20, 0));
        a.x[i] = (float)fabs(draw(B32, random, 0, -20, 0));
    }
    before = a;
    const size_t from = strncmp(o->variant->name, "optimi", 6) == 0;
    for (size_t k = from; k < sizeof plain_steps / sizeof plain_steps[0]; k++) {
        a = before;
        const mpsim_optim_tensor t = tensor(&a, o, 0, N);
        ck_assert_int_eq(mpsim_optim_step(o, plain_steps[k], &t, NULL), MPSIM_OK);
        for (size_t i = 0; i < N; i++) {
            const element e = element_of(&before, i, 0);
            const exact y = exact_step(o, plain_steps[k], &e);
            const double ulps = 8 * 0x1p-24;
            int bad = far(y.p, (double)a.p[i], ulps * y.p_scale);
            if (t.m)
                bad |= far(y.m, (double)a.m[i], ulps * y.m_scale);
            if (t.v) /* v takes (1 - b2) g g, with the error of a g that decays */
                bad |= far(y.v, (double)a.v[i], 4 * ulps * (y.v_scale + y.m_scale * y.m_scale));
            ck_assert_msg(!bad, "%s %s step %d options %d%d%d: p %a %a m %a %a v %a %a", o->variant->name,
                          mpsim_optim_name(o->algorithm), (int)plain_steps[k], o->nesterov, o->amsgrad, o->maximize,
                          y.p, (double)a.p[i], y.m, (double)a.m[i], y.v, (double)a.v[i]);
            ++*values;
        }
    }
}

CASE("mathematics", 60);

/* Every variant that keeps binary32 is the mathematics to a few ulp, whatever its order; this
 * is all that is known of torch-fused-cpu, whose contractions differ between vector body and
 * tail. optimi keeps debiased moments, so that m and v are others, and its SGD starts from a
 * buffer of 0. */
TEST(every_variant_is_near_the_mathematics)
{
    uint64_t random = test_seed() + 100, values = 0;
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        const int optimi = strncmp(v->name, "optimi", 6) == 0;
        for (int a = 0; a < (optimi ? 1 : MPSIM_OPTIM_ALGORITHMS); a++)
            for (unsigned options = 0; options < 32; options++) {
                mpsim_optim o;
                mpsim_optim_init(&o, (mpsim_optim_algorithm)a, v);
                plain_numbers(&o, options, &random);
                if (optimi && o.dampening != 0) /* a switch there */
                    o.dampening = o.momentum;
                if (mpsim_optim_check(&o) == MPSIM_OK && a != MPSIM_OPTIM_ADAFACTOR) /* t-adafactor.c */
                    near_mathematics(&o, &random, &values);
            }
    }
    printf("# %" PRIu64 " elements near the mathematics\n", values);
    ck_assert_uint_gt(values, 10000);
}

TEST(the_reference_is_the_mathematics)
{
    uint64_t random = test_seed() + 101;
    const mpsim_optim_variant *v = mpsim_optim_variant_find("ieee");
    for (unsigned k = 0; k < MPSIM_OPTIM_ALGORITHMS * 16 * 8; k++) {
        if (k % MPSIM_OPTIM_ALGORITHMS == MPSIM_OPTIM_ADAFACTOR)
            continue;
        mpsim_optim o;
        const unsigned options = k / MPSIM_OPTIM_ALGORITHMS % 16;
        mpsim_optim_init(&o, (mpsim_optim_algorithm)(k % MPSIM_OPTIM_ALGORITHMS), v);
        numbers(&o, options, &random);
        const uint64_t step = steps[k / (16 * MPSIM_OPTIM_ALGORITHMS) % STEPS];
        enum { M = 40 };
        double p[M], g[M], m[M], s[M], x[M];
        element e[M];
        for (size_t i = 0; i < M; i++) {
            e[i].p = p[i] = draw(B64, &random, 0, -8, 2);
            e[i].g = g[i] = draw(B64, &random, 0, -18, 0);
            e[i].m = m[i] = draw(B64, &random, 0, -18, 0);
            e[i].v = s[i] = fabs(draw(B64, &random, 0, -30, 0));
            e[i].x = x[i] = fabs(draw(B64, &random, 0, -30, 0));
        }
        const int adam = is_adam(&o), has_m = mpsim_optim_arrays(&o) & MPSIM_OPTIM_M;
        ck_assert_int_eq(mpsim_optim_check(&o), MPSIM_OK);
        ck_assert_int_eq(
            mpsim_optim_reference(&o, step, p, g, has_m ? m : NULL, adam ? s : NULL, o.amsgrad ? x : NULL, M),
            MPSIM_OK);
        for (size_t i = 0; i < M; i++) {
            const exact y = exact_step(&o, step, &e[i]);
            int bad = far(y.p, p[i], 1e-11 * y.p_scale);
            if (has_m)
                bad |= far(y.m, m[i], 1e-14 * y.m_scale);
            if (adam)
                bad |= far(y.v, s[i], 1e-14 * (y.v_scale + y.m_scale * y.m_scale));
            if (o.amsgrad)
                bad |= far(y.x, x[i], 1e-14 * (y.x + y.v_scale + y.m_scale * y.m_scale));
            ck_assert_msg(!bad, "%s options %u step %d: p %a %a m %a %a v %a %a", mpsim_optim_name(o.algorithm),
                          options, (int)step, y.p, p[i], y.m, m[i], y.v, s[i]);
        }
    }
}

/* The generations of the fused kernel and Apex's order differ in last bits, and agree to 1e-6. */
TEST(orders_differ_in_last_bits_only)
{
    static const char *const names[] = {"torch-fused-a", "torch-fused-b", "torch-fused-c", "apex"};
    enum { NAMES = 4, M = 2000 };
    static float p[NAMES][M], m[NAMES][M], v[NAMES][M], g[M];
    uint64_t random = test_seed() + 5;
    for (size_t i = 0; i < M; i++) {
        const float x = (float)draw(B32, &random, 0, -3, 1);
        for (size_t k = 0; k < NAMES; k++)
            p[k][i] = x;
    }
    for (uint64_t step = 1; step <= 20; step++) {
        for (size_t i = 0; i < M; i++)
            g[i] = (float)draw(B32, &random, 0, -8, -3);
        for (size_t k = 0; k < NAMES; k++) {
            mpsim_optim o;
            mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find(names[k]));
            const mpsim_optim_tensor t = {p[k], g, m[k], v[k], NULL, NULL, M};
            ck_assert_int_eq(mpsim_optim_step(&o, step, &t, NULL), MPSIM_OK);
        }
    }
    for (size_t a = 0; a < NAMES; a++)
        for (size_t b = 0; b < a; b++) {
            size_t differ = 0;
            for (size_t i = 0; i < M; i++) {
                differ += bits_of_f32(p[a][i]) != bits_of_f32(p[b][i]);
                const double x = (double)p[a][i], y = (double)p[b][i];
                ck_assert_msg(fabs(x - y) <= 1e-6 * fabs(x), "%s %a, %s %a", names[a], x, names[b], y);
            }
            printf("# %s, %s: %d of %d differ\n", names[b], names[a], (int)differ, (int)M);
            ck_assert_msg(differ > 0, "%s equals %s", names[a], names[b]);
        }
}

/* -------------------------------------------------------------------------------------- powers */

TEST(powers_are_rounded_once)
{
    static const double betas[] = {0.9,         0.999,         0.99,        0.95,        0.98, 0.5,
                                   0x1p-1074,   0x1p-1022,     1 - 0x1p-53, 1 - 0x1p-52, 0.25, 0.75,
                                   1 - 0x1p-24, 0x1.fffffep-1, 1e-300,      0.1};
    static const uint64_t exponents[] = {0,    1,    2,    3,    10,    1074,   1075,    7000,
                                         7060, 7070, 7073, 7080, 65536, 744261, 1 << 24, (1 << 24) - 1};
    uint64_t random = test_seed() + 6;
    for (size_t i = 0; i < test_scaled(30000); i++) {
        const double beta = i % 3 == 0   ? betas[test_random(&random) % 16]
                            : i % 3 == 1 ? 1 - unit(&random) * ldexp(1, -(int)(i % 40))
                                         : unit(&random);
        const uint64_t n = i % 5 == 0 ? exponents[test_random(&random) % 16]
                                      : test_random(&random) >> (40 + test_random(&random) % 24);
        if (!(beta > 0 && beta < 1))
            continue;
        const double want = power(B64, beta, n), got = mpsim_power(beta, n);
        ck_assert_msg(want == got && !signbit(got), "%a^%" PRIu64 ": %a, expected %a", beta, n, got, want);
    }
    for (size_t b = 0; b < 16; b++)
        for (size_t k = 0; k < 16; k++)
            ck_assert_msg(mpsim_power(betas[b], exponents[k]) == power(B64, betas[b], exponents[k]), "%a^%" PRIu64,
                          betas[b], exponents[k]);
}

/* Powers in binary32: MPFR's, but for the second and third, which are products. */
TEST(corrections_of_tensors_are_binary32)
{
    uint64_t random = test_seed() + 7;
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("torch-cpu"));
    ck_assert(mpsim_optim_correction(&o, 0.999, 3) == 1 - power(B64, 0.999, 3));
    o.float_powers = 1;
    for (size_t i = 0; i < test_scaled(3000); i++) {
        const float beta = (float)(1 - unit(&random) * ldexp(1, -(int)(i % 20)));
        const uint64_t n = 1 + i % 9;
        if (!(beta > 0 && beta < 1))
            continue;
        const float square = beta * beta, cube = square * beta;
        const float p = n == 2 ? square : n == 3 ? cube : (float)power(B32, (double)beta, n);
        const float want = 1 - p;
        ck_assert_msg(mpsim_optim_correction(&o, (double)beta, n) == (double)want, "1 - %a^%d", (double)beta, (int)n);
    }
}

TEST_MAIN("optim-math");
