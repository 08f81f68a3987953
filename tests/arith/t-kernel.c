/* t-kernel.c -- the fast path of mpsim_arith_array against the integer reference, for every
 * instruction set: codes, counts, and that the environment of the caller is left as it was.
 *
 * Operands: any codes; neighbours that nearly cancel; results that are a midpoint but for the last
 * bit of binary64, or for something far below it, where rounding twice to nearest goes wrong. */
#include "support/support.h"

#include <mpsim/arith.h>
#include <mpsim/isa.h>
#include <mpsim/rng.h>

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

enum { N = 1500 };

static mpsim_format format(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "%s", name);
    return f;
}

static uint64_t encode(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_encode_f64(f, &r, x, 0, NULL);
}

static mpsim_rounding any_rounding(mpsim_round_mode mode, uint64_t *random)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, mode);
    const uint64_t w = test_random(random);
    if (w % 3 == 0)
        return r;
    r.sr_bits = (uint8_t)(w >> 8 & 1 ? 1 + w % 32 : 8);
    r.overflow = w >> 9 & 1;
    r.infinity = w >> 10 & 1;
    r.no_inf = w >> 11 & 1;
    r.nan = (uint8_t)((w >> 12 & 255) % 6);
    r.no_nan = (uint8_t)((w >> 20 & 255) % 3);
    r.negative = (uint8_t)((w >> 28 & 255) % 3);
    r.no_zero = (uint8_t)((w >> 36 & 255) % 3);
    r.flush_input = w >> 44 & 1;
    r.flush_output = w >> 45 & 1;
    r.flush_below = w >> 46 & 1 ? 0x1.8p-4 : 0;
    return r;
}

/* ---- operands ---- */

/* A number of at most 25 bits near 1, then one that is a midpoint of f. */
static double some(uint64_t *random)
{
    return ldexp((double)(test_random(random) % 0x1ffffff), (int)(test_random(random) % 9) - 28);
}

static double midpoint(const mpsim_format *f, uint64_t *random)
{
    const uint64_t m = (uint64_t)2 << f->mbits;
    return ldexp((double)((m + test_random(random) % m) | 1), -(int)(f->mbits + 1));
}

static void fill(const mpsim_arith *o, void *const x[3], uint64_t *random)
{
    const mpsim_format *f = o->operand;
    const size_t bytes[3] = {mpsim_format_code_bytes(f), mpsim_format_code_bytes(f + 1),
                             mpsim_format_code_bytes(f + 2)};
    for (size_t i = 0; i < N; i++) {
        const double m = midpoint(&o->result, random), v = some(random), tiny = ldexp(v, -90);
        const int minus = test_random(random) & 1;
        double a = v, b = some(random), c = some(random);
        switch (test_random(random) % 10) {
        case 0: /* a midpoint and a little */
            a = m, b = o->op == MPSIM_OP_FMA ? 1 : minus ? -tiny : tiny, c = minus ? -tiny : tiny;
            break;
        case 1: /* quotients and roots near one */
            b = v, a = o->op == MPSIM_OP_SQRT ? m * m : m * v;
            break;
        case 2:
            a = minus ? 0 : v, b = minus ? v : -v, c = -a * b;
            break;
        case 3:
            b = -(double)nextafterf((float)v, 2), c = -(double)nextafterf((float)(a * b), 2);
            break;
        case 4: /* below, above and at the ends of the result's range */
            a = ldexp(a, ilogb(minus ? mpsim_format_max(&o->result) : mpsim_format_min_positive(&o->result)));
            b = minus ? a : b, c = a;
            break;
        case 5: /* from one end of the operands' range to the other, by midpoints */
            a = ldexp(m, ilogb(mpsim_format_max(minus ? &o->result : f)));
            b = c = mpsim_format_min_positive(f + (o->op == MPSIM_OP_FMA ? 2 : 1));
            if (o->op == MPSIM_OP_FMA)
                b = 1;
            break;
        case 6:
            a = v * (minus ? mpsim_format_min_normal(f) : mpsim_format_max(f) / 2);
            b = b * (minus ? mpsim_format_max(f + 1) / 2 : mpsim_format_min_normal(f + 1));
            break;
        default: /* any codes */
            for (int k = 0; k < 3; k++)
                code_store((unsigned char *)x[k] + i * bytes[k], bytes[k], test_random(random));
            continue;
        }
        const double value[3] = {minus ? -a : a, minus ? -b : b, minus ? -c : c};
        for (int k = 0; k < 3; k++)
            code_store((unsigned char *)x[k] + i * bytes[k], bytes[k], encode(f + k, value[k]));
    }
}

/* ---- comparison ---- */

static void count(mpsim_counts *n, unsigned flags)
{
    n->inexact += !!(flags & MPSIM_FLAG_INEXACT);
    n->underflow += !!(flags & MPSIM_FLAG_UNDERFLOW);
    n->subnormal += !!(flags & MPSIM_FLAG_SUBNORMAL);
    n->overflow += !!(flags & MPSIM_FLAG_OVERFLOW);
    n->nan += !!(flags & MPSIM_FLAG_NAN);
}

static void compare(const mpsim_arith *o, void *const x[3], size_t n)
{
    static uint64_t result[2][N];
    const size_t bytes = mpsim_format_code_bytes(&o->result);
    const mpsim_rng rng = {7, 8, 9};
    mpsim_counts got = {0}, want = {0};
    ck_assert_int_eq(mpsim_arith_array(o, &rng, result[0], x[0], x[1], x[2], n, &got), MPSIM_OK);
    ck_assert_int_eq(mpsim_arith_array(o, &rng, result[1], x[0], x[1], x[2], n, NULL), MPSIM_OK);
    ck_assert(memcmp(result[0], result[1], n * bytes) == 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t code[3];
        unsigned flags;
        for (int k = 0; k < 3; k++) {
            const size_t size = mpsim_format_code_bytes(&o->operand[k]);
            code[k] = code_load((unsigned char *)x[k] + i * size, size);
        }
        const uint64_t z = mpsim_arith_apply(o, code[0], code[1], code[2], mpsim_rng_word(7, 8, 9 + i), &flags);
        count(&want, flags);
        const uint64_t y = code_load((unsigned char *)result[0] + i * bytes, bytes);
        if (y != z)
            ck_abort_msg("%s: %s of %s %s %s in %s, %s: 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 ": reference 0x%" PRIx64
                         ", array 0x%" PRIx64,
                         mpsim_isa_active(), mpsim_op_name(o->op), o->operand[0].name, o->operand[1].name,
                         o->operand[2].name, o->result.name, mpsim_round_mode_name((mpsim_round_mode)o->rounding.mode),
                         code[0], code[1], code[2], z, y);
    }
    if (memcmp(&got, &want, sizeof got) != 0)
        ck_abort_msg("%s: %s in %s, %s: counts differ", mpsim_isa_active(), mpsim_op_name(o->op), o->result.name,
                     mpsim_round_mode_name((mpsim_round_mode)o->rounding.mode));
}

/* Operands, the result last. What the kernel does not do, as well. */
/* clang-format off */
static const char *const mixes[][4] = {
    {"fp16", "fp16", "fp16", "fp16"}, {"bf16", "bf16", "bf16", "bf16"},
    {"e4m3", "e4m3", "e4m3", "e4m3"}, {"e5m2", "e5m2", "e5m2", "e5m2"},
    {"tf32", "tf32", "tf32", "tf32"}, {"binary32", "binary32", "binary32", "binary32"},
    {"binary32", "binary32", "binary32", "bf16"}, {"binary32", "bf16", "e8m0", "fp16"},
    {"e8m24", "e7m24", "e8m24", "e8m24"}, {"e4m3fnuz", "e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz"},
    {"binary8p3se", "binary8p5ue", "binary8p3sf", "binary8p4se"},
    {"binary8p4uf", "e2m1", "bf16", "binary8p5uf"}, {"e2m3", "e3m2", "e2m1", "e2m1"},
    {"bf16", "bf16", "bf16", "e5m7:fn"}, {"e5m9:fn:inf", "fp16", "e5m9:fn:inf", "e6m9:fnuz"},
    {"fp16", "fp16", "fp16", "e8m0"}, {"fp16", "binary64", "fp16", "fp16"},
    {"e9m10", "e9m10", "e9m10", "e9m10"}, {"e8m3:bias=200", "e4m3", "e8m3:bias=200", "e3m4"},
    {"e6m21", "e6m21", "e6m21", "e6m21"}, {"e6m11", "e6m11", "e6m23", "e6m21"},
    {"e5m10", "e5m11", "e5m10", "e5m10"}, {"e5m11", "e5m11", "e5m11", "e5m11"},
    {"e5m14", "e5m14", "e5m14", "e5m14"}, {"e7m12", "e7m2", "e4m3", "e8m19"},
    {"e4m11", "e4m11", "e4m11", "e4m3"}, {"fp16", "binary8p3se", "e4m3b11fnuz", "e5m2fnuz"},
    {"fp16", "e4m3", "fp16", "e8m9:fnuz:bias=133"}, {"e4m3", "e5m2", "fp16", "binary32"}, {"fp16", "fp16", "binary32", "binary32"},
};
/* clang-format on */
enum { MIXES = sizeof mixes / sizeof mixes[0] };

CASE("results", 60);

TESTS(every_result_is_the_reference_s, test_isa_count())
{
    static uint64_t room[3][N];
    void *const x[3] = {room[0], room[1], room[2]};
    uint64_t random = test_seed();
    if (!test_isa_use((size_t)_i))
        return;
    for (size_t i = 0; i < MIXES; i++)
        for (int op = 0; op < MPSIM_OPS; op++)
            for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
                mpsim_arith o = {.op = (mpsim_op)op, .result = format(mixes[i][3])};
                if (!test_in_part(i + (size_t)(op + m + _i), 3))
                    continue;
                for (int k = 0; k < 3; k++)
                    o.operand[k] = format(mixes[i][k]);
                o.rounding = any_rounding((mpsim_round_mode)m, &random);
                fill(&o, x, &random);
                compare(&o, x, N - test_random(&random) % 40);
            }
}

/* All infinite, all zero, all NaN: nothing depends on how many there are. */
TESTS(arrays_of_one_number, test_isa_count())
{
    static uint16_t room[3][N];
    void *const x[3] = {room[0], room[1], room[2]};
    static const uint16_t codes[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0xfd03, 0x3c00, 0x8001};
    if (!test_isa_use((size_t)_i))
        return;
    for (int op = 0; op < MPSIM_OPS; op++)
        for (int m = 0; m < MPSIM_ROUND_MODES; m++)
            for (size_t k = 0; k < 64; k++) {
                mpsim_arith o;
                const mpsim_format f = format("fp16");
                mpsim_arith_init(&o, (mpsim_op)op, &f, (mpsim_round_mode)m);
                for (size_t i = 0; i < 48; i++) {
                    room[0][i] = codes[k % 8];
                    room[1][i] = codes[k / 8];
                    room[2][i] = codes[(k + i / 8) % 8];
                }
                compare(&o, x, 48);
            }
}

/* ---- the environment ---- */

/* All that the caller may have set, with exceptions that stop the program unless they are `raised`. */
static void one_environment(const mpsim_arith *o, void *const x[3], int direction, int raised)
{
    fesetround(direction);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(raised);
#ifdef __GLIBC__
    if (!raised)
        feenableexcept(FE_INEXACT | FE_INVALID | FE_DIVBYZERO);
#endif
#if defined(__SSE2__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush-to-zero, denormals are zero */
    const unsigned control = _mm_getcsr();
#endif
    const int had = fetestexcept(FE_ALL_EXCEPT);
    compare(o, x, N);
    ck_assert_int_eq(fegetround(), direction);
    ck_assert_int_eq(fetestexcept(FE_ALL_EXCEPT), had);
#if defined(__SSE2__)
    ck_assert_uint_eq(_mm_getcsr(), control);
#endif
    fesetenv(FE_DFL_ENV);
}

CASE("environment", 20);

TESTS(the_environment_stays, test_isa_count())
{
    static const char *const names[] = {"fp16", "binary32"};
    static uint32_t room[3][N];
    void *const x[3] = {room[0], room[1], room[2]};
    uint64_t random = test_seed();
    if (!test_isa_use((size_t)_i))
        return;
    for (int op = 0; op < MPSIM_OPS; op++)
        for (size_t d = 0; test_direction(d) >= 0; d++)
            for (size_t k = 0; k < 2; k++) {
                mpsim_arith o;
                const mpsim_format f = format(names[k]);
                mpsim_arith_init(&o, (mpsim_op)op, &f, MPSIM_ROUND_NEAREST_EVEN);
                fill(&o, x, &random);
                one_environment(&o, x, test_direction(d), 0);
                one_environment(&o, x, test_direction(d), FE_INEXACT | FE_OVERFLOW);
            }
}

TEST_MAIN("arith-kernel");
