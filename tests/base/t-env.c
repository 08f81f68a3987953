/* t-env.c -- the floating-point environment: how the project is compiled, and that rounding
 * does not depend on how the calling program is set.
 *
 * Host programs leave flush-to-zero on, or another rounding mode; compilers contract x y + z.
 * Conversions of libmpsim work on integers, and must not notice; nor must its matrix products, whose
 * fast path does floating-point operations. */
#include <mpsim/arith.h>
#include <mpsim/digest.h>
#include <mpsim/dot.h>
#include <mpsim/isa.h>
#include <mpsim/round.h>

#include "support/support.h"

#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* ---- how this was compiled ---- */

/* Operands that the compiler cannot know, in an expression that it could contract. */
static double multiply_add(double x, double y, double z)
{
    return x * y + z;
}

static float multiply_add_f32(float x, float y, float z)
{
    return x * y + z;
}

CASE("build", 10);

TEST(products_and_sums_are_rounded_separately)
{
    volatile double x = 1 + 0x1p-30, y = 1 - 0x1p-30, z = -1;
    volatile float u = 1 + 0x1p-14f, v = 1 - 0x1p-14f, w = -1;
    /* x y = 1 - 2^-60, rounded to 1; fused, -2^-60 would be left. */
    ck_assert(multiply_add(x, y, z) == 0);
    ck_assert(x * y + z == 0);
    ck_assert(multiply_add_f32(u, v, w) == 0);
    ck_assert(fma(x, y, z) == -0x1p-60);
    /* fmaf computed in binary64 would round twice */
    volatile float half = 0x1p-24f;
    ck_assert(fmaf(half, 1 + 0x1p-23f, 1) == 1 + 0x1p-23f); /* just above a tie */
    ck_assert(fmaf(half, 1, 1) == 1);                       /* a tie           */
    /* p q = 2^-24 (1 - 2^-46), so that the sum is just below a tie, where binary64 ends on the tie
     * and then goes up to the even number */
    volatile float p = 0x1.000002p-24f, q = 0x1.fffffcp-1f;
    ck_assert(fmaf(p, q, 1 + 0x1p-23f) == 1 + 0x1p-23f);
}

TEST(expressions_have_the_precision_of_their_type)
{
    volatile double one = 1, tiny = 0x1p-60, big = DBL_MAX;
    volatile float one32 = 1, tiny32 = 0x1p-30f;
    ck_assert_int_eq(FLT_EVAL_METHOD, 0); /* no x87 */
    ck_assert((one + tiny) - one == 0);
    ck_assert((one32 + tiny32) - one32 == 0);
    ck_assert(big * 2 / 2 > DBL_MAX);
    /* Not reassociated, and NaN is honoured. */
    volatile double nan = (double)NAN;
    ck_assert(nan != nan);
    ck_assert(isnan(nan));
    volatile double minus = -0.0;
    ck_assert(signbit(minus + minus) && !signbit(minus + 0.0));
}

TEST(subnormals_are_neither_flushed_nor_read_as_zero)
{
    volatile double least = 0x1p-1074, normal = DBL_MIN, two = 2;
    volatile float least32 = 0x1p-149f, normal32 = FLT_MIN, two32 = 2;
    ck_assert(normal / two > 0 && normal / two * two == normal); /* FTZ */
    ck_assert(least * 0x1p+1000 > 0);                            /* DAZ */
    ck_assert(normal32 / two32 > 0 && normal32 / two32 * two32 == normal32);
    ck_assert(least32 * 0x1p+100f > 0);
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
}

/* ---- the caller's environment ---- */

/* One state of the environment; state 0 is the default. */
typedef struct setting {
    const char *name;
    int rounding; /* of <fenv.h> */
    int flush;    /* 1: FTZ, 2: DAZ, 3: both */
} setting;

static const setting settings[] = {
    {"default", FE_TONEAREST, 0},
#if defined(FE_UPWARD) && defined(FE_DOWNWARD) && defined(FE_TOWARDZERO)
    {"upward", FE_UPWARD, 0},          {"downward", FE_DOWNWARD, 0},
    {"toward zero", FE_TOWARDZERO, 0},
#endif
#if defined(__SSE2__)
    {"FTZ", FE_TONEAREST, 1},          {"DAZ", FE_TONEAREST, 2},
    {"FTZ and DAZ", FE_TONEAREST, 3},  {"FTZ and DAZ, downward", FE_DOWNWARD, 3},
#endif
};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static void enter(const setting *s)
{
    fesetround(s->rounding);
#if defined(__SSE2__)
    if (s->flush & 1)
        _mm_setcsr(_mm_getcsr() | 0x8000);
    if (s->flush & 2)
        _mm_setcsr(_mm_getcsr() | 0x0040);
#endif
}

/* The control bits: rounding, FTZ, DAZ, masks; not the six exception flags. */
static unsigned control(void)
{
#if defined(__SSE2__)
    return _mm_getcsr() & ~0x3fu;
#else
    return (unsigned)fegetround();
#endif
}

static void leave(void)
{
    fesetround(FE_TONEAREST);
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
}

CASE("caller", 20);

/* The settings do something: without this the comparison below would prove nothing. */
TEST(settings_take_effect)
{
    if (test_under_valgrind())
        return;
    for (size_t i = 1; i < SETTINGS; i++) {
        volatile double one = 1, ten = 10, half = DBL_MIN, two = 2, least = 0x1p-1074;
        volatile double tenth, minus, flushed, read; /* volatile: computed before leave() */
        enter(&settings[i]);
        tenth = one / ten;
        minus = -one / ten;
        flushed = half / two;
        read = least * 0x1p+1000;
        leave();
        const int rounds = tenth != one / ten || minus != -one / ten;
        ck_assert_msg(rounds == (settings[i].rounding != FE_TONEAREST), "%s", settings[i].name);
        ck_assert_msg((flushed == 0) == (settings[i].flush & 1), "%s", settings[i].name);
        ck_assert_msg((read == 0) == (settings[i].flush >> 1), "%s", settings[i].name);
    }
}

enum { LENGTH = 400 };

/* Numbers around the format's, subnormals of both types, everything else. */
static void fill(const mpsim_format *f, float *x, double *y, uint64_t *state)
{
    for (size_t i = 0; i < LENGTH; i++) {
        const uint64_t w = test_random(state), v = test_random(state);
        const double near = mpsim_decode(f, w >> 8) * (1 + (double)(int)(v % 65) * 0x1p-20);
        uint32_t u = (uint32_t)v;
        switch (w % 5) {
        case 0:
            u &= 0x807fffffu; /* subnormal */
            break;
        case 1:
            u = u & 0x80000000u ? 0x80000000u | (u & 3) : u & 3;
            break;
        case 2:
            break;
        default:
            u = fabs(near) <= (double)FLT_MAX ? bits_of_f32((float)near) : u;
        }
        x[i] = f32_of_bits(u);
        y[i] = w % 5 > 2 ? near : w % 5 == 0 ? f64_of_bits(v & 0x800fffffffffffffu) : f64_of_bits(v);
    }
}

/* All results of a format, a mode and a scale, in one block of bytes. */
typedef struct results {
    uint64_t codes32[LENGTH], codes64[LENGTH], scalar[LENGTH];
    float rounded32[LENGTH];
    double rounded64[LENGTH], decoded[LENGTH], ulp[LENGTH];
    double landmarks[4];
    mpsim_counts counts;
    mpsim_status status[6];
    unsigned flags[LENGTH];
} results;

static void run(results *out, const mpsim_format *f, const mpsim_rounding *r, const float *x, const double *y)
{
    const mpsim_rng rng = {1, 2, 3};
    memset(out, 0, sizeof *out);
    out->status[0] = mpsim_encode_array_f32(f, r, &rng, out->codes32, x, LENGTH, &out->counts);
    out->status[1] = mpsim_encode_array_f64(f, r, &rng, out->codes64, y, LENGTH, &out->counts);
    out->status[2] = mpsim_round_array_f32(f, r, &rng, out->rounded32, x, LENGTH, &out->counts);
    out->status[3] = mpsim_round_array_f64(f, r, &rng, out->rounded64, y, LENGTH, &out->counts);
    out->status[4] = mpsim_decode_array(f, out->decoded, out->codes32, LENGTH);
    out->status[5] = mpsim_rounding_check(r);
    for (size_t i = 0; i < LENGTH; i++) {
        out->scalar[i] = mpsim_encode_f64(f, r, y[i], (uint32_t)i << 22, &out->flags[i]);
        out->ulp[i] = mpsim_ulp(f, out->scalar[i]);
    }
    out->landmarks[0] = mpsim_format_max(f);
    out->landmarks[1] = mpsim_format_min_normal(f);
    out->landmarks[2] = mpsim_format_min_positive(f);
    out->landmarks[3] = mpsim_format_epsilon(f);
}

/* Every format, every mode, three scales; one test per setting and instruction set. */
TESTS(conversions_do_not_depend_on_the_environment, SETTINGS *test_isa_count())
{
    static float x[LENGTH];
    static double y[LENGTH];
    static results want, got;
    static const double scales[] = {1, 0.1, 0x1.8p-1070};
    const setting *s = &settings[_i % SETTINGS];
    uint64_t state = test_seed();
    size_t wrong = 0;
    char first[200] = "";
    if (!test_isa_use((size_t)(_i / SETTINGS)))
        return;
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        fill(f, x, y, &state);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            mpsim_rounding r;
            if (!test_in_part(i + (size_t)(mode + _i), 2))
                continue;
            mpsim_rounding_init(&r, (mpsim_round_mode)mode);
            r.scale = scales[(i + (size_t)mode) % 3];
            r.sr_bits = (uint8_t)(1 + i % 32);
            r.flush_input = (i + (size_t)mode) % 5 == 0;
            run(&want, f, &r, x, y);
            enter(s);
            const unsigned before = control();
            run(&got, f, &r, x, y);
            const unsigned after = control();
            leave();
            if ((memcmp(&want, &got, sizeof want) != 0 || before != after) && wrong++ == 0)
                snprintf(first, sizeof first, "%s %s %s scale %a in \"%s\": %s", mpsim_isa_active(), f->name,
                         mpsim_round_mode_name(r.mode), r.scale, s->name,
                         before != after ? "the environment was changed" : "other results");
        }
    }
    ck_assert_msg(wrong == 0, "%zu wrong; %s", wrong, first);
}

/* Arrays without counts, which have loops of their own. */
typedef struct plain {
    uint64_t codes32[LENGTH], codes64[LENGTH];
    float rounded32[LENGTH];
    double rounded64[LENGTH];
    mpsim_status status[4];
} plain;

static void run_plain(plain *out, const mpsim_format *f, const mpsim_rounding *r, const float *x, const double *y)
{
    const mpsim_rng rng = {1, 2, 3};
    memset(out, 0, sizeof *out);
    out->status[0] = mpsim_encode_array_f32(f, r, &rng, out->codes32, x, LENGTH, NULL);
    out->status[1] = mpsim_encode_array_f64(f, r, &rng, out->codes64, y, LENGTH, NULL);
    out->status[2] = mpsim_round_array_f32(f, r, &rng, out->rounded32, x, LENGTH, NULL);
    out->status[3] = mpsim_round_array_f64(f, r, &rng, out->rounded64, y, LENGTH, NULL);
}

/* Every format, every mode, four scales, results flushed or not, in turns: each setting has a quarter of them. */
TESTS(arrays_without_counts_do_not_depend_on_the_environment, SETTINGS *test_isa_count())
{
    static float x[LENGTH];
    static double y[LENGTH];
    static plain want, got;
    static const double scales[] = {1, 3, 0.1, 1024};
    const setting *s = &settings[_i % SETTINGS];
    uint64_t state = test_seed();
    size_t wrong = 0;
    char first[200] = "";
    if (!test_isa_use((size_t)(_i / SETTINGS)))
        return;
    for (size_t i = 0; i < mpsim_format_count() * MPSIM_ROUND_MODES * 8; i++) {
        if (!test_in_part(i + i / 8 + (size_t)_i, 4))
            continue;
        const mpsim_format *f = mpsim_format_at(i / 8 / MPSIM_ROUND_MODES);
        mpsim_rounding r;
        mpsim_rounding_init(&r, (mpsim_round_mode)(i / 8 % MPSIM_ROUND_MODES));
        r.scale = scales[i % 4];
        r.flush_output = i / 4 % 2;
        fill(f, x, y, &state);
        run_plain(&want, f, &r, x, y);
        enter(s);
        run_plain(&got, f, &r, x, y);
        leave();
        if (memcmp(&want, &got, sizeof want) != 0 && wrong++ == 0)
            snprintf(first, sizeof first, "%s %s %s scale %a flushed %d in \"%s\"", mpsim_isa_active(), f->name,
                     mpsim_round_mode_name(r.mode), r.scale, r.flush_output, s->name);
    }
    ck_assert_msg(wrong == 0, "%zu wrong; %s", wrong, first);
}

/* Every accumulation model with every format that it takes, in turns: random codes of moderate exponents, so that
 * the fast path does most of it, and any codes. */
TESTS(products_do_not_depend_on_the_environment, SETTINGS)
{
    enum { ROWS = 5, COLUMNS = 18, DEPTH = 70 };
    static const char *const names[] = {"fp16", "bf16", "tf32", "e4m3", "e5m2"};
    static uint32_t a[ROWS * DEPTH], b[DEPTH * COLUMNS], c[ROWS * COLUMNS];
    static uint64_t want[ROWS * COLUMNS], got[ROWS * COLUMNS];
    const setting *s = &settings[_i];
    const mpsim_rng rng = {1, 2, 3};
    uint64_t state = test_seed();
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        for (size_t k = 0; k < 2 * sizeof names / sizeof names[0]; k++) {
            const mpsim_format *f = mpsim_format_find(names[k / 2]);
            const size_t bytes = mpsim_format_code_bytes(f);
            const int any = k % 2;
            if (!mpsim_model_accepts(&m, f, f) || !test_in_part(i + k + (size_t)_i, 1))
                continue;
            for (size_t j = 0; j < ROWS * DEPTH + DEPTH * COLUMNS; j++) {
                const uint64_t w = test_random(&state);
                const double x = (w & 1 ? 0x1p-52 : -0x1p-52) * (double)(w >> 12);
                mpsim_rounding r;
                mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
                const uint64_t code = any ? w : mpsim_encode_f64(f, &r, x, 0, NULL);
                unsigned char *to = j < ROWS * DEPTH ? (unsigned char *)a + j * bytes
                                                     : (unsigned char *)b + (j - ROWS * DEPTH) * bytes;
                code_store(to, bytes, code);
            }
            for (size_t j = 0; j < ROWS * COLUMNS; j++)
                c[j] = any ? (uint32_t)test_random(&state) : 0;
            const mpsim_matrix ma = {f, a, DEPTH, 0}, mb = {f, b, COLUMNS, 0};
            const mpsim_matrix mc = {&m.result.format, c, COLUMNS, 0};
            memset(want, 0, sizeof want);
            memset(got, 0, sizeof got);
            const mpsim_status first = mpsim_gemm(&m, ROWS, COLUMNS, DEPTH, &ma, &mb, &mc, want, COLUMNS, &rng, NULL);
            enter(s);
            const mpsim_status second = mpsim_gemm(&m, ROWS, COLUMNS, DEPTH, &ma, &mb, &mc, got, COLUMNS, &rng, NULL);
            leave();
            ck_assert_msg(first == MPSIM_OK && second == MPSIM_OK && memcmp(want, got, sizeof want) == 0,
                          "%s of %s in \"%s\"", m.name, f->name, s->name);
        }
}

/* Every operation of every format, every mode, in turns; and comparisons and digests of the results. */
TESTS(operations_do_not_depend_on_the_environment, SETTINGS)
{
    typedef struct outcome {
        uint64_t codes[LENGTH], digest;
        int8_t order[LENGTH];
        mpsim_counts counts;
        mpsim_status status;
    } outcome;
    static uint64_t a[LENGTH], b[LENGTH], c[LENGTH];
    static outcome want, got;
    const setting *s = &settings[_i];
    const mpsim_rng rng = {1, 2, 3};
    uint64_t state = test_seed();
    for (size_t i = 0; i < LENGTH; i++) {
        a[i] = test_random(&state);
        b[i] = i % 3 ? test_random(&state) : a[i] ^ (i & 7);
        c[i] = test_random(&state);
    }
    for (size_t k = 0; k < mpsim_format_count() * MPSIM_ROUND_MODES; k++) {
        const mpsim_format *f = mpsim_format_at(k / MPSIM_ROUND_MODES);
        for (int op = 0; op < MPSIM_OPS; op++) {
            mpsim_arith o;
            if (!test_in_part(k + (size_t)(op + _i), 1))
                continue;
            mpsim_arith_init(&o, (mpsim_op)op, f, (mpsim_round_mode)(k % MPSIM_ROUND_MODES));
            for (int second = 0; second < 2; second++) {
                outcome *to = second ? &got : &want;
                memset(to, 0, sizeof *to);
                if (second)
                    enter(s);
                to->status = mpsim_arith_array(&o, &rng, to->codes, a, b, c, LENGTH, &to->counts);
                for (size_t i = 0; i < LENGTH; i++)
                    to->order[i] = (int8_t)mpsim_compare(f, to->codes[i], f, a[i]);
                to->digest = mpsim_digest(f, to->codes, LENGTH, 0);
                leave();
            }
            ck_assert_msg(want.status == MPSIM_OK && memcmp(&want, &got, sizeof want) == 0, "%s of %s in \"%s\"",
                          mpsim_op_name((mpsim_op)op), f->name, s->name);
        }
    }
}

/* The inputs reach what matters: results in the subnormal range of binary32 and binary64. */
TEST(inputs_reach_subnormal_results)
{
    static float x[LENGTH];
    static double y[LENGTH];
    static results r;
    static const char *const names[] = {"bf16", "tf32", "binary32", "binary64"};
    uint64_t state = test_seed();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mpsim_format *f = mpsim_format_find(names[i]);
        mpsim_rounding rounding;
        mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
        fill(f, x, y, &state);
        run(&r, f, &rounding, x, y);
        ck_assert_msg(r.counts.subnormal > 50, "%s: %" PRIu64, names[i], r.counts.subnormal);
    }
}

TEST_MAIN("env");
