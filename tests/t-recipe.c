/* t-recipe.c -- FP8 delayed scaling against its pseudo-code, written again on arrays of its own.
 *
 * TransformerEngine @d0067d0d: common/recipe/delayed_scaling.cu, common/recipe/recipe_common.cuh
 * and pytorch/quantization.py. Quotients and products of the oracle are MPFR's at 24 bits with the
 * exponents and subnormals of binary32. */
#include "support.h"

#include <mpsim/block.h>
#include <mpsim/recipe.h>

#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- binary32 by MPFR ---- */

typedef int (*operation)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static float f32_op(operation op, float a, float b)
{
    static mpfr_t x, y, z;
    static int ready;
    if (!ready) {
        mpfr_inits2(24, x, y, z, (mpfr_ptr)0);
        mpfr_set_emin(-148); /* 2^-149 is 0.1b 2^-148 */
        mpfr_set_emax(128);
        ready = 1;
    }
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    const int inexact = op(z, x, y, MPFR_RNDN);
    mpfr_subnormalize(z, inexact, MPFR_RNDN);
    return mpfr_get_flt(z, MPFR_RNDN);
}

static float quotient(float a, float b)
{
    return f32_op(mpfr_div, a, b);
}

/* ---- the oracle ---- */

enum { SLOTS = 8 };

typedef struct state {
    int length, most_recent, variant, margin;
    float max, scale, inverse;
    float history[SLOTS];
} state;

static float larger(float a, float b, int nan_wins)
{
    if (isnan(a))
        return nan_wins ? a : b;
    if (isnan(b))
        return nan_wins ? b : a;
    return a > b ? a : b;
}

static void oracle_record(state *s, float amax)
{
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    s->history[0] = larger(s->history[0], amax, python);
}

/* The scale that an amax gives, remembered: there are few different ones. */
static float fresh(const state *s, float amax)
{
    static struct {
        uint32_t amax, max;
        int margin, python, used;
        float scale;
    } memo[4096];
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    const uint32_t a = bits_of_f32(amax), m = bits_of_f32(s->max);
    const uint32_t hash = (a ^ a >> 11 ^ m >> 7 ^ (uint32_t)(s->margin + 200) * 2654435761u
                           ^ (uint32_t)python * 97u) % COUNT(memo);
    if (memo[hash].used && memo[hash].amax == a && memo[hash].max == m
        && memo[hash].margin == s->margin && memo[hash].python == python)
        return memo[hash].scale;
    const float power = ldexpf(1, s->margin), unpower = ldexpf(1, -s->margin);
    /* torch divides a number by a tensor as reciprocal times number. */
    float scale = python ? quotient(f32_op(mpfr_mul, quotient(1, amax), s->max), power)
                         : quotient(f32_op(mpfr_mul, s->max, unpower), amax);
    if (isinf(scale))
        scale = f32_of_bits(0x7f7fffff);
    memo[hash].amax = a;
    memo[hash].max = m;
    memo[hash].margin = s->margin;
    memo[hash].python = python;
    memo[hash].scale = scale;
    memo[hash].used = 1;
    return scale;
}

static void oracle_update(state *s, float reduced)
{
    const float last = reduced != 0 ? reduced : s->history[0];
    const int python = s->variant == MPSIM_DELAYED_PYTHON;
    float amax = 0, rolled[SLOTS];
    if (s->variant == MPSIM_DELAYED_BULK && last == 0) {
        memcpy(rolled, s->history, sizeof rolled);
    } else {
        for (int i = 0; i < s->length; i++) {
            const float a = i == s->length - 1 ? last : s->history[i + 1];
            amax = larger(amax, a, python);
            rolled[i] = i == 0 ? 0 : a;
        }
    }
    if (s->most_recent)
        amax = last;
    memcpy(s->history, rolled, (size_t)s->length * sizeof rolled[0]);
    if (isfinite(amax) && amax > 0) {
        static float of = 1, is = 1;
        s->scale = fresh(s, amax);
        if (bits_of_f32(of) != bits_of_f32(s->scale)) {
            of = s->scale;
            is = quotient(1, of);
        }
        s->inverse = is;
    }
}

/* ---- side by side ---- */

typedef struct pair {
    state s;
    mpsim_delayed d;
    float history[SLOTS];
} pair;

static void pair_init(pair *p, int length, int algorithm, int variant, int margin, float max)
{
    memset(p, 0, sizeof *p);
    p->s = (state){.length = length, .most_recent = algorithm, .variant = variant,
                   .margin = margin, .max = max, .scale = 1, .inverse = 1};
    mpsim_delayed_config c;
    mpsim_delayed_config_init(&c, mpsim_format_find("e4m3"));
    c.history = (uint32_t)length;
    c.algorithm = algorithm ? MPSIM_AMAX_MOST_RECENT : MPSIM_AMAX_MAX;
    c.variant = (uint8_t)variant;
    c.margin = (int16_t)margin;
    c.fp8_max = max;
    for (int i = 0; i < SLOTS; i++)
        p->history[i] = i < length ? 99 : 55; /* init clears its own */
    ck_assert_int_eq(mpsim_delayed_init(&p->d, &c, p->history), MPSIM_OK);
}

/* A copy whose history is its own. */
static void pair_copy(pair *to, const pair *from)
{
    *to = *from;
    to->d.history = to->history;
}

static int same(float a, float b)
{
    return (isnan(a) && isnan(b)) || bits_of_f32(a) == bits_of_f32(b);
}

static int pair_equal(const pair *p)
{
    int equal = same(p->d.scale, p->s.scale) && same(p->d.scale_inverse, p->s.inverse);
    for (int i = 0; i < p->s.length; i++)
        equal &= same(p->history[i], p->s.history[i]);
    for (int i = p->s.length; i < SLOTS; i++)
        equal &= p->history[i] == 55;
    return equal;
}

static void step(pair *p, float amax, float reduced)
{
    oracle_record(&p->s, amax);
    mpsim_delayed_record(&p->d, amax);
    oracle_update(&p->s, reduced);
    mpsim_delayed_update(&p->d, reduced);
}

static const char *describe(const pair *p)
{
    static char text[640];
    int n = snprintf(text, sizeof text, "length %d algorithm %d variant %d margin %d: scale %a %a, "
                     "inverse %a %a, history", p->s.length, p->s.most_recent, p->s.variant,
                     p->s.margin, (double)p->d.scale, (double)p->s.scale,
                     (double)p->d.scale_inverse, (double)p->s.inverse);
    for (int i = 0; i < p->s.length && n > 0 && (size_t)n < sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %a %a", (double)p->history[i],
                      (double)p->s.history[i]);
    return text;
}

/* ---- every script of up to five steps ---- */

/* 0, small, big, infinity, NaN, FLT_MAX, a subnormal. */
static const uint32_t amaxes[] = {0,          0x3a9d495a, 0x47c35012, 0x7f800000,
                                  0x7fc00000, 0x7f7fffff, 0x00000357};
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
                snprintf(w->first, sizeof w->first, "script %s, reduced %d, %s", script, w->reduces,
                         describe(&next));
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
    ck_assert_msg(w.wrong == 0, "%llu of %llu steps differ (library, oracle): %s", w.wrong, w.steps,
                  w.first);
}

START_TEST(scripts_bulk)
{
    all_scripts(MPSIM_DELAYED_BULK);
}
END_TEST

START_TEST(scripts_legacy)
{
    all_scripts(MPSIM_DELAYED_LEGACY);
}
END_TEST

START_TEST(scripts_python)
{
    all_scripts(MPSIM_DELAYED_PYTHON);
}
END_TEST

/* Long runs of random amaxes, several casts in a step, histories up to 8, wide margins. */
START_TEST(random_runs)
{
    uint64_t r = test_seed() + 17;
    unsigned long long wrong = 0, steps = 0;
    char first[900] = "";
    for (size_t run = 0; run < test_scaled(1500); run++) {
        const int wide = run % 4 == 0, margin = wide ? (int)(test_random(&r) % 253) - 126
                                                     : (int)(test_random(&r) % 17) - 8;
        pair p;
        pair_init(&p, 1 + (int)(test_random(&r) % SLOTS), (int)(test_random(&r) % 2),
                  (int)(test_random(&r) % 3), margin, test_random(&r) % 2 ? 448 : 57344);
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
END_TEST

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

START_TEST(the_scale_is_no_power_of_two)
{
    pair p;
    plain(&p, 4, 0, MPSIM_DELAYED_BULK, 0);
    ck_assert_uint_eq(bits_of_f32(after(&p, 3)), bits_of_f32(0x1.2aaaaap7f)); /* 149.333... */
    ck_assert_uint_eq(bits_of_f32(p.d.scale_inverse), bits_of_f32(0x1.b6db6ep-8f));
}
END_TEST

START_TEST(layout_after_a_roll)
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
END_TEST

START_TEST(the_window_holds_len_values)
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
END_TEST

START_TEST(amax_zero_neither_rolls_nor_scales)
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
END_TEST

START_TEST(infinity_freezes_the_scale)
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
END_TEST

START_TEST(nan_is_dropped_but_by_torch_max)
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
END_TEST

/* Whatever its payload; fmaxf of the C library makes a signalling one quiet instead. */
START_TEST(signalling_nan_is_dropped)
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
END_TEST

START_TEST(history_of_one)
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
END_TEST

START_TEST(an_infinite_scale_is_flt_max)
{
    for (int variant = 0; variant < 3; variant++) {
        pair p;
        plain(&p, 2, 0, variant, 0);
        ck_assert(after(&p, 0x1p-149f) == FLT_MAX);
        ck_assert_uint_eq(bits_of_f32(p.d.scale_inverse), 0x00200000); /* 2^-128, a subnormal */
    }
}
END_TEST

START_TEST(orders_of_operations)
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
    printf("# of %u scales the orders differ in %u; of as many subnormal ones in %u\n", compared,
           differ, tiny);
    ck_assert(differ > 0 && differ < compared / 2);
}
END_TEST

START_TEST(the_group_decides)
{
    pair p;
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    step(&p, 2, 16); /* a larger amax elsewhere */
    ck_assert(pair_equal(&p) && p.d.scale == 28 && p.d.history[2] == 16);
    plain(&p, 3, 0, MPSIM_DELAYED_BULK, 0);
    step(&p, 0, 16);
    ck_assert(pair_equal(&p) && p.d.scale == 28 && p.d.history[2] == 16);
}
END_TEST

START_TEST(several_casts_in_a_step)
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
END_TEST

/* A tensor is cast with the scale of the steps before: at first 1, then 448 over their amax. */
START_TEST(a_cast_uses_the_last_steps_scale)
{
    mpsim_block_recipe b = *mpsim_block_find("te-current");
    b.rule = MPSIM_SCALE_GIVEN;
    pair p;
    plain(&p, 2, 0, MPSIM_DELAYED_BULK, 0);
    static const struct {
        float x;
        uint8_t code; /* of x * scale, with the scale at that time */
    } steps[] = {
        {3.5f, 0x46},  /* 3.5 * 1                             */
        {7, 0x7e},     /* 7 * 128 saturates                   */
        {7, 0x7e},     /* 7 * 64 = 448                        */
        {1, 0x68},     /* 64                                  */
        {0.5f, 0x60},  /* 7 is still in the window: 32        */
        {0.5f, 0x76},  /* 1 is the largest: 224               */
        {0.5f, 0x7e},  /* 0.5 * 896                           */
    };
    for (size_t t = 0; t < COUNT(steps); t++) {
        uint8_t code = 0;
        float value = 0, inverse = 0, amax = 0;
        const mpsim_blocks o = {.codes = &code, .values = &value, .inverses = &inverse,
                                .amax = &amax};
        ck_assert(mpsim_block_quantize(&b, &steps[t].x, 1, 1, -1, p.d.scale, NULL, &o, NULL)
                  == MPSIM_OK);
        ck_assert_msg(code == steps[t].code, "step %zu: %02x", t, code);
        ck_assert(amax == steps[t].x && same(inverse, p.d.scale_inverse));
        step(&p, amax, 0);
        ck_assert_msg(pair_equal(&p), "%s", describe(&p));
    }
}
END_TEST

/* ---- configuration ---- */

START_TEST(configurations)
{
    mpsim_delayed_config c;
    mpsim_delayed_config_init(&c, mpsim_format_find("e5m2"));
    ck_assert(c.fp8_max == 57344 && mpsim_delayed_config_check(&c) == MPSIM_OK);
    mpsim_delayed_config_init(&c, mpsim_format_find("e4m3"));
    ck_assert(c.history == 1024 && c.algorithm == MPSIM_AMAX_MAX && c.margin == 0
              && c.variant == MPSIM_DELAYED_BULK && c.fp8_max == 448);
    const mpsim_delayed_config good = c;
    ck_assert(mpsim_delayed_config_check(&c) == MPSIM_OK);
    mpsim_delayed_config bad[9];
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].history = 0;
    bad[1].algorithm = 2;
    bad[2].variant = 3;
    bad[3].margin = 127;
    bad[4].margin = -127;
    bad[5].fp8_max = 0;
    bad[6].fp8_max = -448;
    bad[7].fp8_max = NAN;
    bad[8].fp8_max = INFINITY;
    float history[1024];
    for (size_t i = 0; i < COUNT(bad); i++) {
        mpsim_delayed d;
        memset(&d, 0x5a, sizeof d);
        history[0] = 7;
        ck_assert_msg(mpsim_delayed_config_check(&bad[i]) == MPSIM_EINVAL, "case %zu", i);
        ck_assert_msg(mpsim_delayed_init(&d, &bad[i], history) == MPSIM_EINVAL, "case %zu", i);
        ck_assert(history[0] == 7);
    }
    for (int m = -126; m <= 126; m += 126) {
        c.margin = (int16_t)m;
        ck_assert(mpsim_delayed_config_check(&c) == MPSIM_OK);
    }
    mpsim_delayed d;
    ck_assert(mpsim_delayed_init(&d, &good, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_delayed_init(&d, &good, history) == MPSIM_OK);
    ck_assert(d.scale == 1 && d.scale_inverse == 1 && d.history == history);
    for (size_t i = 0; i < 1024; i++)
        ck_assert(bits_of_f32(history[i]) == 0);
}
END_TEST

/* ---- mpsim_fp8_scale, mpsim_amax ---- */

static float oracle_scale(float amax, float max, float epsilon, float for_inf, int power)
{
    if (amax < epsilon)
        amax = epsilon;
    if (isnan(amax) || isinf(amax) || amax == 0)
        return 1;
    float s = quotient(max, amax);
    if (isinf(s))
        s = for_inf;
    return power ? f32_of_bits(bits_of_f32(s) & 0xff800000u) : s;
}

START_TEST(scales_from_amax)
{
    static const float maxes[] = {448, 57344, 6};
    static const uint32_t edges[] = {
        0,          1,          2,          0x00200000, 0x003fffff, 0x00400000, 0x007fffff,
        0x00800000, 0x03e00000, 0x3f800000, 0x3f7fffff, 0x3f800001, 0x43e00000, 0x43e00001,
        0x43dfffff, 0x43e80000, 0x43f00000, 0x47600000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
        0x7f800001, 0xffc00000, 0x7e800000, 0x7f000000, 0x037fffff, 0x03800001,
    };
    static const float infs[] = {0x1.fffffep127f, 0x1.fep127f, 65504};
    static const float epsilons[] = {0, 1e-12f, 0x1p-126f, 3.5f};
    uint64_t r = test_seed() + 3;
    const size_t random = test_scaled(20000);
    unsigned long long wrong = 0, compared = 0;
    char first[200] = "";
    for (size_t i = 0; i < COUNT(edges) + random; i++)
        for (size_t m = 0; m < COUNT(maxes); m++)
            for (size_t e = 0; e < COUNT(epsilons); e++) {
                const int edge = i < COUNT(edges);
                const float a = f32_of_bits(edge ? edges[i] : (uint32_t)(test_random(&r) >> 33));
                for (size_t k = 0; k < (edge ? 6 : 1); k++) {
                    const int power = (int)(edge ? k % 2 : i % 2);
                    const float f = infs[k / 2];
                    const float want = oracle_scale(a, maxes[m], epsilons[e], f, power);
                    const float got = mpsim_fp8_scale(a, maxes[m], epsilons[e], f, power);
                    compared++;
                    if (!same(got, want) && wrong++ == 0)
                        snprintf(first, sizeof first, "amax %a max %a epsilon %a power %d: %a %a",
                                 (double)a, (double)maxes[m], (double)epsilons[e], power,
                                 (double)got, (double)want);
                }
            }
    printf("# %llu scales, %llu wrong\n", compared, wrong);
    ck_assert_msg(wrong == 0, "%llu of %llu differ (library, oracle): %s", wrong, compared, first);
}
END_TEST

START_TEST(powers_of_two_lie_below)
{
    /* 448/1 has the power 256; a quotient of 2^k stays; FLT_MAX gives 2^127. */
    ck_assert(mpsim_fp8_scale(1, 448, 0, FLT_MAX, 1) == 256);
    ck_assert(mpsim_fp8_scale(448, 448, 0, FLT_MAX, 1) == 1);
    ck_assert(mpsim_fp8_scale(nextafterf(448, 500), 448, 0, FLT_MAX, 1) == 0.5f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, FLT_MAX, 1) == 0x1p127f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, 0x1.fep127f, 1) == 0x1p127f);
    ck_assert(mpsim_fp8_scale(0x1p-149f, 448, 0, 65504, 1) == 32768);
}
END_TEST

START_TEST(largest_magnitudes)
{
    const float nan2[] = {NAN, -NAN}, mixed[] = {NAN, -3, 2, NAN, -0.0f};
    const float zeros[] = {-0.0f, 0, -0.0f}, inf[] = {1, -INFINITY, NAN, 3};
    const float tiny[] = {0x1p-149f, -0x1p-148f, 0};
    float signalling[] = {2, 0, -1};
    signalling[1] = f32_of_bits(0x7f800001);
    ck_assert(mpsim_amax(signalling, 3) == 2 && mpsim_amax(signalling + 1, 2) == 1);
    ck_assert(bits_of_f32(mpsim_amax(nan2, 2)) == 0);
    ck_assert(mpsim_amax(mixed, 5) == 3);
    ck_assert(mpsim_amax(mixed, 1) == 0);
    ck_assert(bits_of_f32(mpsim_amax(zeros, 3)) == 0);
    ck_assert(mpsim_amax(inf, 4) == (float)INFINITY);
    ck_assert(mpsim_amax(inf, 1) == 1);
    ck_assert(mpsim_amax(tiny, 3) == 0x1p-148f);
    ck_assert(bits_of_f32(mpsim_amax(mixed, 0)) == 0);
    ck_assert(bits_of_f32(mpsim_amax(NULL, 0)) == 0);
    /* Anywhere in a row, whatever blocks a loop takes. */
    float x[77];
    for (size_t n = 1; n <= COUNT(x); n++)
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < n; i++)
                x[i] = i % 5 == 4 ? NAN : (float)(i % 3);
            x[at] = -9;
            ck_assert(mpsim_amax(x, n) == 9);
        }
}
END_TEST

int main(void)
{
    TCase *s = test_case("scripts", 20), *t = test_case("consequences", 10),
          *u = test_case("functions", 10);
    tcase_add_test(s, scripts_bulk);
    tcase_add_test(s, scripts_legacy);
    tcase_add_test(s, scripts_python);
    tcase_add_test(s, random_runs);
    tcase_add_test(t, the_scale_is_no_power_of_two);
    tcase_add_test(t, layout_after_a_roll);
    tcase_add_test(t, the_window_holds_len_values);
    tcase_add_test(t, amax_zero_neither_rolls_nor_scales);
    tcase_add_test(t, infinity_freezes_the_scale);
    tcase_add_test(t, nan_is_dropped_but_by_torch_max);
    tcase_add_test(t, signalling_nan_is_dropped);
    tcase_add_test(t, history_of_one);
    tcase_add_test(t, an_infinite_scale_is_flt_max);
    tcase_add_test(t, orders_of_operations);
    tcase_add_test(t, the_group_decides);
    tcase_add_test(t, several_casts_in_a_step);
    tcase_add_test(t, a_cast_uses_the_last_steps_scale);
    tcase_add_test(u, configurations);
    tcase_add_test(u, scales_from_amax);
    tcase_add_test(u, powers_of_two_lie_below);
    tcase_add_test(u, largest_magnitudes);
    TCase *const cases[] = {s, t, u, NULL};
    return test_main("recipe", cases);
}
