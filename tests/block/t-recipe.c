/* t-recipe.c -- FP8 delayed scaling against its pseudo-code (oracle/recipe.h): every script of a few
 * steps, random runs, and what follows from the pseudo-code. */
#include "oracle/recipe.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <mpsim/block.h>
#include <mpsim/recipe.h>
#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- every script of up to five steps ---- */

/* 0, small, big, infinity, NaN, FLT_MAX, a subnormal. */
static const uint32_t amaxes[] = {0, 0x3a9d495a, 0x47c35012, 0x7f800000, 0x7fc00000, 0x7f7fffff, 0x00000357};
enum { DEPTH = 5 };

typedef struct walk {
    unsigned long long steps, wrong;
    int script[DEPTH], reduces;
    char first[900];
} walk;

static void explore(walk *w, const pair *p, int depth)
{
    for (int v = 0; v < (int)COUNT(amaxes); v++) {
        pair next;
        pair_copy(&next, p);
        /* The group's amax: all values in turn, 0 too. */
        const int other = (3 * v + 2 * depth + 1) % (int)COUNT(amaxes);
        step(&next, f32_of_bits(amaxes[v]), w->reduces ? f32_of_bits(amaxes[other]) : 0);
        w->script[depth] = v;
        w->steps++;
        if (!pair_equal(&next)) {
            if (w->wrong++ == 0) {
                char script[DEPTH + 1] = "";
                for (int i = 0; i <= depth; i++)
                    script[i] = (char)('0' + w->script[i]);
                snprintf(w->first, sizeof w->first, "script %s, reduced %d, %s", script, w->reduces, describe(&next));
            }
        } else if (depth + 1 < DEPTH) {
            explore(w, &next, depth + 1);
        }
    }
}

static void all_scripts(int variant)
{
    walk w = {0};
    for (int length = 1; length <= 4; length++)
        for (int algorithm = 0; algorithm < 2; algorithm++)
            for (int margin = -3; margin <= 3; margin++)
                for (w.reduces = 0; w.reduces < 2; w.reduces++) {
                    pair p;
                    pair_init(&p, length, algorithm, variant, margin, margin & 1 ? 57344 : 448);
                    ck_assert(pair_equal(&p));
                    explore(&w, &p, 0);
                }
    printf("# variant %d: %llu steps, %llu wrong\n", variant, w.steps, w.wrong);
    ck_assert_msg(w.wrong == 0, "%llu of %llu steps differ (library, oracle): %s", w.wrong, w.steps, w.first);
}

CASE("scripts", 20);

TEST(scripts_bulk)
{
    all_scripts(MPSIM_DELAYED_BULK);
}

TEST(scripts_legacy)
{
    all_scripts(MPSIM_DELAYED_LEGACY);
}

TEST(scripts_python)
{
    all_scripts(MPSIM_DELAYED_PYTHON);
}

/* Long runs of random amaxes, several casts in a step, histories up to 8, wide margins. */
TEST(random_runs)
{
    uint64_t r = test_seed() + 17;
    unsigned long long wrong = 0, steps = 0;
    char first[900] = "";
    for (size_t run = 0; run < test_scaled(1500); run++) {
        const int wide = run % 4 == 0,
                  margin = wide ? (int)(test_random(&r) % 253) - 126 : (int)(test_random(&r) % 17) - 8;
        pair p;
        pair_init(&p, 1 + (int)(test_random(&r) % SLOTS), (int)(test_random(&r) % 2), (int)(test_random(&r) % 3),
                  margin, test_random(&r) % 2 ? 448 : 57344);
        for (int t = 0; t < 40; t++, steps++) {
            for (int casts = (int)(test_random(&r) % 3); casts > 0; casts--) {
                const float a = f32_of_bits((uint32_t)(test_random(&r) >> 33));
                oracle_record(&p.s, a);
                mpsim_delayed_record(&p.d, a);
            }
            const int pick = (int)(test_random(&r) % 8);
            const float reduced = pick == 0 ? f32_of_bits((uint32_t)(test_random(&r) >> 33)) : 0;
            oracle_update(&p.s, reduced);
            mpsim_delayed_update(&p.d, reduced);
            if (!pair_equal(&p) && wrong++ == 0)
                snprintf(first, sizeof first, "%s", describe(&p));
        }
    }
    ck_assert_msg(wrong == 0, "%llu of %llu differ (library, oracle): %s", wrong, steps, first);
}

/* ---- what follows from the pseudo-code ---- */

static void plain(pair *p, int length, int algorithm, int variant, int margin)
{
    pair_init(p, length, algorithm, variant, margin, 448);
}

/* One step; the new scale. */
static float after(pair *p, float amax)
{
    step(p, amax, 0);
    ck_assert_msg(pair_equal(p), "%s", describe(p));
    return p->d.scale;
}

CASE("consequences", 10);

TEST(the_scale_is_no_power_of_two)
{
    pair p;
    plain(&p, 4, 0, MPSIM_DELAYED_BULK, 0);
    ck_assert_uint_eq(bits_of_f32(after(&p, 3)), bits_of_f32(0x1.2aaaaap7f)); /* 149.333... */
    ck_assert_uint_eq(bits_of_f32(p.d.scale_inverse), bits_of_f32(0x1.b6db6ep-8f));
}

TEST(layout_after_a_roll)
{
    pair p;
    plain(&p, 4, 0, MPSIM_DELAYED_BULK, 0);
    for (int t = 1; t <= 6; t++)
        after(&p, (float)t);
    /* Slot 1 is the oldest, the last slot this step's, slot 0 is cleared. */
    const float want[] = {0, 4, 5, 6};
    for (int i = 0; i < 4; i++)
        ck_assert(p.d.history[i] == want[i]);
}

TEST(the_window_holds_len_values)
{
    for (int length = 1; length <= 4; length++) {
        pair p;
        plain(&p, length, 0, MPSIM_DELAYED_BULK, 0);
        after(&p, 64);
        for (int t = 1; t < length; t++)
            ck_assert(after(&p, 1) == 7); /* 448/64: 64 is one of len values */
        ck_assert(after(&p, 1) == 448);
    }
}

TEST(amax_zero_neither_rolls_nor_scales)
{
    pair p;
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    after(&p, 8);
    after(&p, 2);
    for (int t = 0; t < 5; t++)
        ck_assert(after(&p, 0) == 56 && p.d.history[1] == 8 && p.d.history[2] == 2);
    /* The legacy kernel rolls: 8 leaves the window, then 2; the scale follows, then stays. */
    plain(&p, 3, 0, MPSIM_DELAYED_LEGACY, 0);
    after(&p, 8);
    after(&p, 2);
    ck_assert(after(&p, 0) == 56 && p.d.history[1] == 2 && p.d.history[2] == 0);
    ck_assert(after(&p, 0) == 224);
    ck_assert(after(&p, 0) == 224);
    plain(&p, 3, 1, MPSIM_DELAYED_LEGACY, 0);
    after(&p, 8);
    ck_assert(after(&p, 0) == 56 && p.d.history[1] == 8 && p.d.history[2] == 0);
}

TEST(infinity_freezes_the_scale)
{
    for (int variant = 0; variant < 3; variant++)
        for (int length = 1; length <= 4; length++) {
            pair p;
            plain(&p, length, 0, variant, 0);
            ck_assert(after(&p, 4) == 112);
            ck_assert(after(&p, INFINITY) == 112);
            for (int t = 1; t < length; t++)
                ck_assert(after(&p, 1) == 112);
            ck_assert(after(&p, 1) == 448); /* it left after len rolls */
        }
}

TEST(nan_is_dropped_but_by_torch_max)
{
    pair p;
    /* The cast drops it: this step's amax is 0. */
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    after(&p, 4);
    ck_assert(after(&p, NAN) == 112 && p.d.history[0] == 0 && p.d.history[2] == 4);
    /* From the group it is rolled in, and fmaxf drops it there. */
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    after(&p, 4);
    step(&p, 2, NAN);
    ck_assert(pair_equal(&p) && p.d.scale == 112 && isnan(p.d.history[2]) && p.d.history[1] == 4);
    after(&p, 1);
    ck_assert(after(&p, 1) == 448);
    plain(&p, 3, 1, MPSIM_DELAYED_BULK, 0); /* most recent: not finite, unchanged */
    after(&p, 4);
    step(&p, 2, NAN);
    ck_assert(pair_equal(&p) && p.d.scale == 112 && isnan(p.d.history[2]));
    /* torch.max: unchanged until it leaves the window. */
    plain(&p, 3, 0, MPSIM_DELAYED_PYTHON, 0);
    ck_assert(after(&p, 4) == 112);
    ck_assert(after(&p, NAN) == 112 && isnan(p.d.history[2]));
    ck_assert(after(&p, 1) == 112);
    ck_assert(after(&p, 1) == 112);
    ck_assert(after(&p, 1) == 448);
}

/* Whatever its payload; fmaxf of the C library makes a signalling one quiet instead. */
TEST(signalling_nan_is_dropped)
{
    static const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff};
    for (size_t i = 0; i < COUNT(nans); i++)
        for (int variant = 0; variant < 2; variant++) {
            pair p;
            plain(&p, 2, 0, variant, 0);
            mpsim_delayed_record(&p.d, 4);
            mpsim_delayed_record(&p.d, f32_of_bits(nans[i]));
            ck_assert(p.d.history[0] == 4);
            mpsim_delayed_update(&p.d, 0);
            ck_assert(p.d.scale == 112);
            mpsim_delayed_record(&p.d, 2);
            mpsim_delayed_update(&p.d, f32_of_bits(nans[i])); /* rolled in, then dropped */
            ck_assert(p.d.scale == 112);
            mpsim_delayed_record(&p.d, 2);
            mpsim_delayed_update(&p.d, 0);
            ck_assert(p.d.scale == 224);
        }
}

TEST(history_of_one)
{
    for (int variant = 0; variant < 3; variant++)
        for (int algorithm = 0; algorithm < 2; algorithm++) {
            pair p;
            plain(&p, 1, algorithm, variant, 0);
            ck_assert(after(&p, 8) == 56 && p.d.history[0] == 0);
            ck_assert(after(&p, 1) == 448 && p.d.history[0] == 0);
            ck_assert(after(&p, 0) == 448 && p.d.history[0] == 0);
        }
}

TEST(an_infinite_scale_is_flt_max)
{
    for (int variant = 0; variant < 3; variant++) {
        pair p;
        plain(&p, 2, 0, variant, 0);
        ck_assert(after(&p, 0x1p-149f) == FLT_MAX);
        ck_assert_uint_eq(bits_of_f32(p.d.scale_inverse), 0x00200000); /* 2^-128, a subnormal */
    }
}

TEST(orders_of_operations)
{
    pair p;
    plain(&p, 1, 0, MPSIM_DELAYED_BULK, 3);
    ck_assert(after(&p, 1) == 56);
    /* 448 / 2^-120 is infinite before it is divided by 2^3; 56 / 2^-120 is not. */
    ck_assert(after(&p, 0x1p-120f) == 0x1.cp125f);
    plain(&p, 1, 0, MPSIM_DELAYED_PYTHON, 3);
    ck_assert(after(&p, 1) == 56);
    ck_assert(after(&p, 0x1p-120f) == FLT_MAX);
    /* One rounding, or two (three where the scale is subnormal): the orders differ in about a
       quarter of the scales, in the last bit, but not for powers of two. */
    unsigned differ = 0, tiny = 0, compared = 0;
    for (uint32_t i = 0; i < 400; i++, compared++) {
        const float a = 1000 + (float)i * 0.37f;
        pair q;
        plain(&p, 1, 0, MPSIM_DELAYED_BULK, 3);
        plain(&q, 1, 0, MPSIM_DELAYED_PYTHON, 3);
        const float bulk = after(&p, a), python = after(&q, a);
        ck_assert(fabsf(bulk - python) <= bulk * 0x1p-22f);
        differ += bulk != python;
        ck_assert(after(&p, ldexpf(1, (int)i % 100)) == after(&q, ldexpf(1, (int)i % 100)));
        plain(&p, 1, 0, MPSIM_DELAYED_BULK, 126);
        plain(&q, 1, 0, MPSIM_DELAYED_PYTHON, 126);
        tiny += after(&p, a) != after(&q, a);
    }
    printf("# of %u scales the orders differ in %u; of as many subnormal ones in %u\n", compared, differ, tiny);
    ck_assert(differ > 0 && differ < compared / 2);
}

TEST(the_group_decides)
{
    pair p;
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    step(&p, 2, 16); /* a larger amax elsewhere */
    ck_assert(pair_equal(&p) && p.d.scale == 28 && p.d.history[2] == 16);
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    step(&p, 0, 16);
    ck_assert(pair_equal(&p) && p.d.scale == 28 && p.d.history[2] == 16);
}

TEST(several_casts_in_a_step)
{
    pair p;
    plain(&p, 2, 0, MPSIM_DELAYED_BULK, 0);
    const float a[] = {1, 7, NAN, 3};
    for (size_t i = 0; i < COUNT(a); i++) {
        mpsim_delayed_record(&p.d, a[i]);
        oracle_record(&p.s, a[i]);
        ck_assert(p.d.scale == 1); /* until the update */
    }
    ck_assert(p.d.history[0] == 7);
    mpsim_delayed_update(&p.d, 0);
    ck_assert(p.d.scale == 64 && p.d.history[1] == 7 && p.d.history[0] == 0);
}

/* A tensor is cast with the scale of the steps before: at first 1, then 448 over their amax. */
TEST(a_cast_uses_the_last_steps_scale)
{
    mpsim_block_recipe b = *mpsim_block_find("te-current");
    b.rule = MPSIM_SCALE_GIVEN;
    pair p;
    plain(&p, 2, 0, MPSIM_DELAYED_BULK, 0);
    static const struct {
        float x;
        uint8_t code; /* of x * scale, with the scale at that time */
    } steps[] = {
        {3.5f, 0x46}, /* 3.5 * 1                             */
        {7, 0x7e},    /* 7 * 128 saturates                   */
        {7, 0x7e},    /* 7 * 64 = 448                        */
        {1, 0x68},    /* 64                                  */
        {0.5f, 0x60}, /* 7 is still in the window: 32        */
        {0.5f, 0x76}, /* 1 is the largest: 224               */
        {0.5f, 0x7e}, /* 0.5 * 896                           */
    };
    for (size_t t = 0; t < COUNT(steps); t++) {
        uint8_t code = 0;
        float value = 0, inverse = 0, amax = 0;
        const mpsim_blocks o = {.codes = &code, .values = &value, .inverses = &inverse, .amax = &amax};
        ck_assert(mpsim_block_quantize(&b, &steps[t].x, 1, 1, -1, p.d.scale, NULL, &o, NULL) == MPSIM_OK);
        ck_assert_msg(code == steps[t].code, "step %zu: %02x", t, code);
        ck_assert(amax == steps[t].x && recipe_same(inverse, p.d.scale_inverse));
        step(&p, amax, 0);
        ck_assert_msg(pair_equal(&p), "%s", describe(&p));
    }
}

TEST_MAIN("recipe");
