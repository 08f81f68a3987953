/* t-function.c -- exp, log and tanh against MPFR: every number of formats up to 16 bits, random and
 * built operands of binary32 and binary64, every mode.
 *
 * The oracle: MPFR's value cut to 53 bits, the last of which is set since there is always more, is
 * rounded by the oracle of casts, which has fewer bits to keep than it. For binary64 MPFR rounds. */
#include "lib/arith/fixed.h"
#include "sim/verify/oracles/oracle.h"
#include "support/support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <mpfr.h>
#include <mpsim/function.h>
#include <stdio.h>
#include <string.h>

typedef int mpfr_function(mpfr_ptr y, mpfr_srcptr x, mpfr_rnd_t mode);

static mpfr_function *const oracles[MPSIM_FUNCTIONS] = {mpfr_exp, mpfr_log, mpfr_tanh};

enum { MODES = MPSIM_ROUND_MODES };

/* The value as a double that no format of fewer bits can tell from it. */
static double near_value(mpsim_function f, double x, int *exact, unsigned *flags)
{
    mpfr_t a, y;
    mpfr_inits2(53, a, y, (mpfr_ptr)NULL);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_clear_divby0();
    *exact = oracles[f](y, a, MPFR_RNDZ) == 0;
    *flags |= mpfr_divby0_p() ? MPSIM_FLAG_DIVBYZERO : 0;
    *flags |= mpfr_nan_p(y) ? MPSIM_FLAG_INVALID | MPSIM_FLAG_NAN : 0;
    double v = mpfr_nan_p(y) ? (double)NAN : mpfr_get_d(y, MPFR_RNDZ);
    if (!*exact && !isnan(v)) {
        v = v == 0 ? copysign(0x1p-1074, v) : v;
        v = f64_of_bits(bits_of_f64(v) | 1);
    }
    mpfr_clears(a, y, (mpfr_ptr)NULL);
    return v;
}

static void check_code(mpsim_function f, const mpsim_format *format, const oracle_format *of, const mpsim_format *to,
                       const oracle_format *oto, int mode, uint64_t code, uint32_t random)
{
    mpsim_rounding r;
    unsigned flags = 0, raised = 0, expected_flags = 0;
    int exact;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    const uint64_t result = mpsim_function_apply(f, format, to, &r, code, random, &flags);
    if (oracle_classify(of, code) == ORACLE_NAN) { /* passed on as a conversion does */
        mpsim_arith o;
        mpsim_arith_init(&o, MPSIM_OP_CONVERT, format, (mpsim_round_mode)mode);
        o.result = *to;
        const uint64_t nan = mpsim_arith_apply(&o, code, 0, 0, random, &expected_flags);
        ck_assert_msg(result == nan && flags == expected_flags, "NaN");
        return;
    }
    const double x = oracle_decode(of, code), v = near_value(f, x, &exact, &raised);
    const uint64_t expected = oracle_encode(oto, &r, v, 0, random, &expected_flags);
    ck_assert_msg(result == expected && flags == (expected_flags | raised),
                  "%s(%a) to %s, mode %d: 0x%" PRIx64 " flags %u, not 0x%" PRIx64 " flags %u", mpsim_function_name(f),
                  x, to->name, mode, result, flags, expected, expected_flags | raised);
}

/* ---- every operand ---- */

static const char *const small[] = {"e4m3", "e5m2", "e4m3fnuz", "e3m4", "e2m3", "e2m1", "e8m0", "binary8p3se"};
static const char *const half[] = {"fp16", "bf16"};

CASE("functions", 120);

TESTS(every_number_of_8_bits, sizeof small / sizeof *small)
{
    const mpsim_format *format = mpsim_format_find(small[_i]);
    const oracle_format *of = oracle_find(small[_i]);
    const mpsim_format *wide = mpsim_format_find("binary32");
    const oracle_format *owide = oracle_find("binary32");
    uint64_t state = test_seed();
    ck_assert(format && of);
    for (int f = 0; f < MPSIM_FUNCTIONS; f++)
        for (uint64_t code = 0; code >> format->bits == 0; code++)
            for (int mode = 0; mode < MODES; mode++) {
                const uint32_t random = (uint32_t)test_random(&state);
                check_code((mpsim_function)f, format, of, format, of, mode, code, random);
                if (test_in_part(code + (uint64_t)(mode + f), 3))
                    check_code((mpsim_function)f, format, of, wide, owide, mode, code, random);
            }
}

TESTS(every_number_of_16_bits, 2 * MPSIM_FUNCTIONS)
{
    const mpsim_format *format = mpsim_format_find(half[_i % 2]);
    const oracle_format *of = oracle_find(half[_i % 2]);
    const mpsim_function f = (mpsim_function)(_i / 2);
    uint64_t state = test_seed();
    for (uint64_t code = 0; code < 65536; code++) { /* in parts, but for the ends */
        if (!test_in_part(code + code / 16, 12) && (code & 0x7fff) > 256 && (code & 0x7fff) < 0x7800)
            continue;
        check_code(f, format, of, format, of, MPSIM_ROUND_NEAREST_EVEN, code, 0);
        if (code / 4 % 4 == 0)
            check_code(f, format, of, format, of, (int)(test_random(&state) % MODES), code,
                       (uint32_t)test_random(&state));
    }
}

/* ---- binary32 ---- */

/* Where results leave the range, where they are next to 1 or to x, and anywhere. */
static double operand(mpsim_function f, uint64_t *state, int mbits, int emin, size_t k)
{
    const double unit = (double)(test_random(state) >> 11) * 0x1p-53;
    const double m = 1 + floor(ldexp(unit, mbits)) * ldexp(1, -mbits);
    const int span = f == MPSIM_FUNCTION_LOG ? -emin : 40;
    int e = (int)(test_random(state) % (uint64_t)(2 * span)) - span;
    if (k % 4 == 0) /* of a moderate size */
        e = (int)(test_random(state) % 12) - 4;
    const double x = f == MPSIM_FUNCTION_LOG && k % 4 == 1
                         ? 1 + (unit - 0.5) * ldexp(1, -(int)(test_random(state) % (uint64_t)mbits))
                         : ldexp(m, e);
    return f != MPSIM_FUNCTION_LOG && (test_random(state) & 1) ? -x : x;
}

TESTS(random_binary32, MPSIM_FUNCTIONS)
{
    const mpsim_function f = (mpsim_function)_i;
    const mpsim_format *to[] = {mpsim_format_find("binary32"), mpsim_format_find("bf16"), mpsim_format_find("e4m3"),
                                mpsim_format_find("tf32")};
    const oracle_format *of = oracle_find("binary32");
    uint64_t state = test_seed() + (uint64_t)_i;
    for (size_t k = 0; k < test_scaled(10000); k++) {
        const uint64_t code = bits_of_f32((float)operand(f, &state, 23, -126, k));
        const mpsim_format *t = to[k % 8 < 5 ? 0 : k % 8 - 4];
        check_code(f, to[0], of, t, oracle_find(t->name), (int)(k % MODES), code, (uint32_t)test_random(&state));
    }
}

/* Special operands, thresholds of overflow and underflow and their neighbours. */
TEST(edges_of_binary32)
{
    /* clang-format off */
    static const float at[] = {0, 1, FLT_MIN, FLT_MAX, FLT_TRUE_MIN, INFINITY, 0x1.62e42ep+6f, 0x1.62e43p+6f,
                               0x1.9d1d9p+6f, 0x1.9fe368p+6f, 0x1.9fe36ap+6f, 0x1p-24f, 0x1p-25f, 0x1p-12f,
                               0x1p-70f, 0x1p-71f, 0x1p-130f, 0x1p-131f, 0x1p12f, 0x1p13f, 32, 64, 9.01f, 9.02f, 0.75f,
                               1.5f, 0.5f, 2, 0x1.fffffep-1f, 0x1.000002p0f, 0x1.65f904p+0f};
    /* clang-format on */
    const mpsim_format *format = mpsim_format_find("binary32");
    const oracle_format *of = oracle_find("binary32");
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int d = -2; d <= 2; d++)
            for (int negative = 0; negative < 2; negative++)
                for (int mode = 0; mode < MODES; mode++)
                    for (int f = 0; f < MPSIM_FUNCTIONS; f++)
                        check_code((mpsim_function)f, format, of, format, of, mode,
                                   (uint32_t)(bits_of_f32(at[i]) + (uint32_t)d) ^ (uint32_t)negative << 31,
                                   0x80000000u);
}

/* ---- binary64 ---- */

static double rounded(mpsim_function f, double x, mpfr_rnd_t mode)
{
    mpfr_t a, y;
    const mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
    mpfr_inits2(53, a, y, (mpfr_ptr)NULL);
    mpfr_set_d(a, x, MPFR_RNDN);
    mpfr_set_emin(-1073);
    mpfr_set_emax(1024);
    const int ternary = oracles[f](y, a, mode);
    mpfr_subnormalize(y, ternary, mode);
    const double v = mpfr_get_d(y, mode);
    mpfr_set_emin(emin);
    mpfr_set_emax(emax);
    mpfr_clears(a, y, (mpfr_ptr)NULL);
    return v;
}

static void check_binary64(mpsim_function f, double x)
{
    static const struct {
        int ours;
        mpfr_rnd_t theirs;
    } modes[] = {{MPSIM_ROUND_NEAREST_EVEN, MPFR_RNDN},
                 {MPSIM_ROUND_TOWARD_ZERO, MPFR_RNDZ},
                 {MPSIM_ROUND_UP, MPFR_RNDU},
                 {MPSIM_ROUND_DOWN, MPFR_RNDD}};
    const mpsim_format *format = mpsim_format_find("binary64");
    for (size_t m = 0; m < 4; m++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, (mpsim_round_mode)modes[m].ours);
        const double y = f64_of_bits(mpsim_function_apply(f, format, format, &r, bits_of_f64(x), 0, NULL));
        const double v = rounded(f, x, modes[m].theirs);
        ck_assert_msg(bits_of_f64(y) == bits_of_f64(v) || (isnan(y) && isnan(v)), "%s(%a), mode %d: %a, not %a",
                      mpsim_function_name(f), x, modes[m].ours, y, v);
    }
}

TESTS(random_binary64, MPSIM_FUNCTIONS)
{
    const mpsim_function f = (mpsim_function)_i;
    uint64_t state = test_seed() + (uint64_t)_i;
    for (size_t k = 0; k < test_scaled(3000); k++)
        check_binary64(f, operand(f, &state, 52, -1022, k));
}

/* Thresholds of the range, tiny operands, and arguments that are hard to round: 118 bits are needed
 * to tell log of the fifth from the middle of two numbers (Lefevre and Muller, worst cases of the
 * elementary functions in double precision). */
TEST(edges_of_binary64)
{
    /* clang-format off */
    static const double at[] = {0x1.62e42fefa39efp+9, 0x1.62e42fefa39fp+9, -0x1.74910d52d3051p9, -0x1.74910d52d3052p9,
                                0x1.62a88613629b6p+678, -0x1.1d31a9fce90e7p-9, 0x1.9e9cbbfd6080bp-31, 0x1p-1074, 0x1p-1022,
                                DBL_MAX, 0x1p-54, 0x1p-53, 0x1.fffffffffffffp-1, 0x1.0000000000001p0, 64, 63.99, 19.06,
                                0x1p-70, 0x1p-131, 5000, 8192};
    /* clang-format on */
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (int f = 0; f < MPSIM_FUNCTIONS; f++) {
            check_binary64((mpsim_function)f, at[i]);
            check_binary64((mpsim_function)f, -at[i]);
        }
}

TEST(every_word_of_log_2)
{
    mpfr_t x;
    mpfr_init2(x, 32 * MPSIM_FIXED_LIMBS);
    for (int n = 2; n <= MPSIM_FIXED_LIMBS; n++) {
        const mpsim_fixed a = mpsim_fixed_log_2(n);
        mpfr_const_log2(x, MPFR_RNDZ);
        ck_assert(a.n == n && a.limb[n - 1] == 0);
        for (int i = n - 2; i >= 0; i--) {
            mpfr_mul_2ui(x, x, 32, MPFR_RNDZ);
            ck_assert_uint_eq(a.limb[i], mpfr_get_ui(x, MPFR_RNDZ));
            mpfr_frac(x, x, MPFR_RNDZ);
        }
    }
    mpfr_clear(x);
}

TEST(names)
{
    mpsim_function f;
    ck_assert(mpsim_function_parse(&f, "TANH") == MPSIM_OK && f == MPSIM_FUNCTION_TANH);
    for (int i = 0; i < MPSIM_FUNCTIONS; i++)
        ck_assert(mpsim_function_parse(&f, mpsim_function_name((mpsim_function)i)) == MPSIM_OK && (int)f == i);
    ck_assert(mpsim_function_parse(&f, "sqrt") == MPSIM_ENOTFOUND);
    ck_assert(mpsim_function_parse(NULL, "exp") == MPSIM_EINVAL && mpsim_function_parse(&f, NULL) == MPSIM_EINVAL);
    ck_assert_ptr_null(mpsim_function_name(MPSIM_FUNCTIONS));
}

TEST_MAIN("function");
