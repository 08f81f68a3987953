/* t-stores.c -- how a parameter is stored: the split master, stochastic rounding, and which
 * updates are lost to nearest and kept by Kahan summation. */
#include "support/optiminput.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/optim.h>
#include <stdio.h>

/* --------------------------------------------------------------------- the split master, stores */

/* RNA from its definition: the nearer of two multiples of 2^16 units; exact in binary64. */
static uint16_t nearest_away(uint32_t bits)
{
    const uint32_t low = bits & 0x7fff0000u, high = low + 0x10000u;
    const double top = high == 0x7f800000u ? 0x1p128 : (double)f32_of_bits(high);
    const double x = (double)f32_of_bits(bits & 0x7fffffffu);
    const uint32_t y = x - (double)f32_of_bits(low) >= top - x ? high : low;
    return (uint16_t)((y | (bits & 0x80000000u)) >> 16);
}

/* What a function returns: i386 does that in the x87, in which a signalling NaN becomes quiet. */
static uint32_t returned(uint32_t bits)
{
#if defined(__i386__)
    if ((bits & 0x7fffffff) > 0x7f800000)
        return bits | 0x400000;
#endif
    return bits;
}

/* Whether splitting and joining the master is right; the codes of NaN and infinity are only
 * lossless. */
static int split_is_right(uint32_t bits)
{
    uint16_t model = 0;
    int16_t rest = 0;
    mpsim_master_split(&model, &rest, f32_of_bits(bits));
    const uint32_t upper = bits >> 16, low = bits & 0xffff;
    return bits_of_f32(mpsim_master_join(model, rest)) == returned(bits) && (uint16_t)rest == low &&
           model == (uint16_t)(upper + (low >= 0x8000)) &&
           ((bits & 0x7f800000u) == 0x7f800000u || model == nearest_away(bits));
}

CASE("stores", 30);

TEST(split_master_is_lossless_and_nearest_away)
{
    static const uint32_t lower[] = {0,      1,      2,      0x3fff, 0x4000, 0x7ffe, 0x7fff,
                                     0x8000, 0x8001, 0x8002, 0xc000, 0xfffe, 0xffff};
    enum { LOWER = sizeof lower / sizeof lower[0] };
    uint64_t random = test_seed() + 7, wrong = 0;
    uint32_t first = 0;
    for (uint32_t upper = 0; upper < 0x10000; upper++)
        for (size_t k = 0; k < LOWER + 3; k++) {
            const uint32_t low = k < LOWER ? lower[k] : (uint32_t)(test_random(&random) & 0xffff);
            if (!split_is_right(upper << 16 | low) && wrong++ == 0)
                first = upper << 16 | low;
        }
    for (uint32_t i = 0; i < 0x10000; i++) { /* a remainder with any code */
        const float x = mpsim_master_join((uint16_t)(i * 40503u), (int16_t)(uint16_t)i);
        if ((bits_of_f32(x) & 0xffff) != i && wrong++ == 0)
            first = bits_of_f32(x);
    }
    ck_assert_msg(wrong == 0, "%" PRIu64 " wrong, the first is %08x", wrong, first);
}

/* A variant with SGD that can store stochastically, or NULL. */
static const mpsim_optim_variant *stochastic_sgd(void)
{
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++) {
        const mpsim_optim_variant *v = mpsim_optim_variant_at(i);
        if ((v->algorithms >> MPSIM_OPTIM_SGD & 1) && (v->stores >> MPSIM_STORE_STOCHASTIC & 1))
            return v;
    }
    return NULL;
}

/* With lr 1, 1 - g is stored; g = -lo 2^-23 makes the binary32 number 1 + lo 2^-23, whose bits are
 * those of 1 with lo in the lower half: away with the probability lo / 65536. */
TEST(stochastic_store_has_its_probabilities)
{
    const mpsim_optim_variant *v = stochastic_sgd();
    ck_assert_ptr_nonnull(v);
    enum { DRAWS = 8192, LOWS = 96 };
    static float p[DRAWS], g[DRAWS];
    uint64_t random = test_seed() + 8;
    double chi = 0;
    int classes = 0;
    for (unsigned k = 0; k < LOWS; k++) {
        static const uint32_t chosen[] = {0, 1, 0xffff, 0x8000, 0x4000, 0x7fff, 0x8001, 0x100};
        const uint32_t low = k < 8 ? chosen[k] : (uint32_t)(test_random(&random) & 0xffff);
        for (size_t i = 0; i < DRAWS; i++) {
            p[i] = 1;
            g[i] = -(float)low * 0x1p-23f;
        }
        mpsim_optim o;
        mpsim_optim_init(&o, MPSIM_OPTIM_SGD, v);
        o.lr = 1;
        o.store = MPSIM_STORE_STOCHASTIC;
        o.param = *optim_format(BF16);
        const mpsim_rng rng = {test_seed(), 77, (uint64_t)k * DRAWS};
        const mpsim_optim_tensor t = {p, g, NULL, NULL, NULL, NULL, DRAWS};
        ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, &rng), MPSIM_OK);
        size_t away = 0;
        for (size_t i = 0; i < DRAWS; i++) {
            const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
            const uint32_t up = ((uint64_t)low << 16) + word >= (uint64_t)1 << 32;
            ck_assert_uint_eq(bits_of_f32(p[i]), 0x3f800000u + (up << 16));
            away += up;
        }
        const double q = low / 65536.0, mean = DRAWS * q;
        ck_assert(low != 0 || away == 0);
        if (mean < 20 || mean > DRAWS - 20)
            continue;
        chi += ((double)away - mean) * ((double)away - mean) / (mean * (1 - q));
        classes++;
    }
    /* Chi-square of so many degrees of freedom: beyond six standard deviations is a fault. */
    printf("# chi-square %.1f of %d\n", chi, classes);
    ck_assert(fabs(chi - classes) < 6 * sqrt(2.0 * classes));
}

/* -0 - g with lr 1 is -g, rounded once. A NaN leaves some elements to the reference, a run of NaNs more and more of
 * them. */
TESTS(what_kernels_leave_is_rounded_once, 2)
{
    static const char *const names[] = {"bf16", "fp16"};
    static const uint32_t low[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { ALL = 1 << 16 };
    static float p[ALL], g[ALL];
    const mpsim_format *f = mpsim_format_find(names[_i]);
    mpsim_rounding r;
    mpsim_optim o;
    size_t wrong = 0, nans = 0;
    uint64_t random = test_seed() + 9;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("torch-foreach"));
    o.lr = 1;
    o.param = o.state = *f;
    for (size_t i = 0; i < ALL; i++) {
        const uint32_t u = (uint32_t)i << 16 | low[test_random(&random) % (sizeof low / sizeof *low)];
        p[i] = -0.0f;
        g[i] = i % 40 == 3 || i / 3000 % 5 == 1 ? NAN : f32_of_bits(u);
    }
    const mpsim_optim_tensor t = {p, g, NULL, NULL, NULL, NULL, ALL};
    ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, NULL), MPSIM_OK);
    for (size_t i = 0; i < ALL; i++) {
        const double want = mpsim_decode(f, mpsim_encode_f32(f, &r, -g[i], 0, NULL));
        nans += isnan(g[i]) != 0;
        wrong += isnan(g[i]) ? (bits_of_f32(p[i]) & 0x7fffffff) != 0x7fc00000
                             : bits_of_f32(p[i]) != bits_of_f32((float)want);
    }
    ck_assert_msg(wrong == 0, "%s: %zu wrong", names[_i], wrong);
    ck_assert(nans > ALL / 8 && nans < ALL / 2);
}

/* A sum of exactly 2^32 goes away: the word that completes the fraction. */
TEST(stochastic_store_at_the_border)
{
    const mpsim_optim_variant *v = stochastic_sgd();
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, v);
    o.lr = 1;
    o.store = MPSIM_STORE_STOCHASTIC;
    o.param = *optim_format(BF16);
    unsigned found = 0;
    for (uint64_t index = 0; index < 400000 && found < 4; index++) {
        const uint32_t word = mpsim_rng_word(3, 4, index);
        if ((word & 0xffff) != 0 || word == 0)
            continue;
        const uint32_t low = 0x10000u - (word >> 16);
        for (uint32_t less = 0; less < 2; less++) {
            float p = 1;
            const float g = -(float)(low - less) * 0x1p-23f;
            const mpsim_rng rng = {3, 4, index};
            const mpsim_optim_tensor t = {&p, &g, NULL, NULL, NULL, NULL, 1};
            ck_assert_int_eq(mpsim_optim_step(&o, 1, &t, &rng), MPSIM_OK);
            ck_assert_uint_eq(bits_of_f32(p), less ? 0x3f800000u : 0x3f810000u);
        }
        found++;
    }
    ck_assert_uint_gt(found, 0);
}

/* ------------------------------------------------------------------------------- lost updates */

static float sgd_once(const mpsim_optim *o, float p, float g)
{
    const mpsim_optim_tensor t = {&p, &g, NULL, NULL, NULL, NULL, 1};
    ck_assert_int_eq(mpsim_optim_step(o, 1, &t, NULL), MPSIM_OK);
    return p;
}

/* Micikevicius et al. 2018, 3.1: an fp16 weight loses an update of 1/2048 of it. In [1, 2)
 * half a unit is 2^-11: less is lost, and half a unit itself goes to the even neighbour. */
TEST(updates_of_a_2048th_are_lost_in_fp16)
{
    mpsim_optim o, master;
    mpsim_optim_init(&o, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    o.lr = 1;
    master = o;
    o.param = *optim_format(FP16);
    for (int k = 0; k < 1024; k++) {
        const float w = 1 + (float)k * 0x1p-10f, up = w + 0x1p-10f;
        ck_assert(sgd_once(&o, w, -0x1.ffep-12f) == w);
        ck_assert(sgd_once(&o, w, -0x1p-11f) == (k % 2 ? up : w));
        ck_assert(sgd_once(&o, w, -w / 2048) == (k ? up : w));
        ck_assert(sgd_once(&o, w, -w / 4096) == w);
        ck_assert(sgd_once(&master, w, -w / 4096) > w);
    }
}

/* The parameter after n steps of Adam with a constant gradient: 1 less n lr, but for rounding. */
static double walk(const char *variant, mpsim_store store, int pf, int sf, unsigned n, double lr)
{
    enum { M = 512 };
    static float p[M], g[M], m[M], v[M], k[M];
    for (size_t i = 0; i < M; i++) {
        p[i] = 1;
        g[i] = 0.25f;
        m[i] = v[i] = k[i] = 0;
    }
    mpsim_optim o;
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find(variant));
    o.lr = lr;
    o.store = (uint8_t)store;
    o.param = *optim_format(pf);
    o.state = *optim_format(sf);
    const mpsim_optim_tensor t = {p, g, m, v, NULL, store == MPSIM_STORE_KAHAN ? k : NULL, M};
    for (unsigned step = 1; step <= n; step++) {
        const mpsim_rng rng = {5, step, 0};
        ck_assert_int_eq(mpsim_optim_step(&o, step, &t, &rng), MPSIM_OK);
    }
    double sum = 0;
    for (size_t i = 0; i < M; i++)
        sum += (double)p[i];
    return sum / M;
}

/* Zamirai et al., 2010.06192: nearest rounding cancels small updates, a compensation or stochastic
 * rounding keeps them. Half a unit of bf16 below 1 is 2^-9. */
TEST(small_updates_survive_kahan_and_stochastic_rounding)
{
    const double lr = 0x1p-13, want = 1 - 300 * lr;
    ck_assert(walk("torch", MPSIM_STORE_NEAREST, BF16, BF16, 300, lr) == 1);
    ck_assert(walk("torchao", MPSIM_STORE_NEAREST, BF16, B32, 300, lr) == 1);
    ck_assert(fabs(walk("ieee", MPSIM_STORE_NEAREST, B32, B32, 300, lr) - want) < 1e-5);
    ck_assert(fabs(walk("optimi", MPSIM_STORE_KAHAN, BF16, BF16, 300, lr) - want) < 0x1p-8);
    ck_assert(fabs(walk("optimi-triton", MPSIM_STORE_KAHAN, BF16, BF16, 300, lr) - want) < 0x1p-8);
    /* Unbiased: 300 steps of standard deviation at most 2^-9, over 512 elements. */
    const double mean = walk("torchao", MPSIM_STORE_STOCHASTIC, BF16, B32, 300, lr);
    ck_assert_msg(fabs(mean - want) < 6 * 0x1p-9 * sqrt(300.0 / 512), "%a, expected %a", mean, want);
}

TEST_MAIN("optim-stores");
