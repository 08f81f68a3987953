/* t-exact.c -- proves sim/exact: a decimal as it is typed, and operations on decimals, are rounded once, in every mode,
 * with the flags of the exact value.
 *
 * The judge reads the texts itself, as rational numbers of GMP, and rounds by the oracle (sim/verify/oracles/oracle_arith.h),
 * which shares nothing with the library. Decimals are random, or lie on ties of the format and a little beside them, in
 * the 30th or the 800th digit. */
#include "sim/exact/exact.h"
#include "sim/text/option.h"
#include "sim/verify/oracles/oracle_arith.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "binary64", "e4m3",
                                    "e5m2", "e2m1", "e8m0", "e4m3fnuz", "e5m7",     "e11m20"};
enum { FORMATS = sizeof names / sizeof names[0], TEXT = 1200 };

static mpz_t whole, part;
static mpq_t read[3], value;

/* ---- the judge ---- */

/* digits [. digits] [e exponent], with a sign */
static void read_decimal(mpq_t q, const char *text)
{
    char digits[TEXT];
    size_t n = 0;
    long exponent = 0;
    int behind = 0;
    const char *s = text + (*text == '-');
    for (; *s && *s != 'e'; s++) {
        if (*s == '.') {
            behind = 1;
            continue;
        }
        digits[n++] = *s;
        exponent -= behind;
    }
    digits[n] = '\0';
    exponent += *s ? strtol(s + 1, NULL, 10) : 0;
    mpq_set_ui(q, 0, 1);
    mpz_set_str(mpq_numref(q), digits, 10);
    mpz_ui_pow_ui(part, 10, (unsigned long)labs(exponent));
    if (exponent < 0)
        mpz_set(mpq_denref(q), part);
    else
        mpz_mul(mpq_numref(q), mpq_numref(q), part);
    mpq_canonicalize(q);
    if (*text == '-')
        mpq_neg(q, q);
}

/* floor(|v| 2^n), or that of the root of |v|; whether that is less. */
static int floor_of(mpz_t to, const mpq_t v, long n, int root)
{
    mpz_t top, bottom;
    mpz_init(top);
    mpz_init_set(bottom, mpq_denref(v));
    mpz_abs(top, mpq_numref(v));
    n = root ? 2 * n : n;
    if (n >= 0)
        mpz_mul_2exp(top, top, (mp_bitcnt_t)n);
    else
        mpz_mul_2exp(bottom, bottom, (mp_bitcnt_t)-n);
    mpz_fdiv_qr(to, top, top, bottom);
    int rest = mpz_sgn(top) != 0;
    if (root) {
        mpz_sqrtrem(to, top, to);
        rest |= mpz_sgn(top) != 0;
    }
    mpz_clear(top);
    mpz_clear(bottom);
    return rest;
}

/* The result of the operation in `value`, before its root. 0 if that is no business of numbers that are not zero. */
static int judge_value(mpsim_op op)
{
    if ((op == MPSIM_OP_DIV && mpq_sgn(read[1]) == 0) || (op == MPSIM_OP_SQRT && mpq_sgn(read[0]) < 0))
        return 0;
    mpq_set(value, read[0]);
    if (op == MPSIM_OP_ADD)
        mpq_add(value, value, read[1]);
    if (op == MPSIM_OP_SUB)
        mpq_sub(value, value, read[1]);
    if (op == MPSIM_OP_MUL || op == MPSIM_OP_FMA)
        mpq_mul(value, value, read[1]);
    if (op == MPSIM_OP_DIV)
        mpq_div(value, value, read[1]);
    if (op == MPSIM_OP_FMA)
        mpq_add(value, value, read[2]);
    return mpq_sgn(value) != 0;
}

static uint64_t judge(mpsim_op op, const oracle_format *of, const mpsim_rounding *r, uint32_t random, unsigned *flags)
{
    enum { BEYOND = 3000 };
    const oracle_arith o = {.op = MPSIM_OP_CONVERT, .result = of, .operand = {of}, .r = *r};
    const int root = op == MPSIM_OP_SQRT;
    oracle_value v;
    (void)floor_of(whole, value, BEYOND, root); /* its exponent */
    const int q = oracle_unit(of, (int)mpz_sizeinbase(whole, 2) - 1 - BEYOND);
    const int sticky = floor_of(whole, value, ORACLE_FRACTION - q, root);
    oracle_place(&v, mpq_sgn(value) < 0, q, whole, sticky);
    return oracle_arith_code(&v, &o, random, flags);
}

/* ---- subjects ---- */

static uint64_t compared;

static void compare(mpsim_op op, const char *name, const char *const text[3], uint64_t *state)
{
    static exact_number x[3];
    const exact_number *const operands[3] = {&x[0], &x[1], &x[2]};
    const oracle_format *of = oracle_find(name);
    mpsim_format f;
    ck_assert_int_eq(mpsim_format_parse(&f, name), MPSIM_OK);
    for (int i = 0; i < mpsim_op_operands(op); i++) {
        ck_assert_msg(exact_parse(&x[i], text[i]) == 0, "'%s' is not taken", text[i]);
        read_decimal(read[i], text[i]);
    }
    if (!judge_value(op))
        return;
    for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
        mpsim_rounding r;
        unsigned got_flags, want_flags;
        const uint32_t random = (uint32_t)test_random(state);
        mpsim_rounding_init(&r, (mpsim_round_mode)mode);
        r.sr_bits = mode < MPSIM_ROUND_STOCHASTIC_A || random % 3 == 0 ? 32 : (uint8_t)(1 + random % 32);
        const uint64_t want = judge(op, of, &r, random, &want_flags);
        const uint64_t got = exact_apply(op, &f, &r, operands, random, &got_flags, NULL);
        compared++;
        ck_assert_msg(got == want && got_flags == want_flags,
                      "%s %s %s %s in %s, %s of %d bits: 0x%" PRIx64 " with flags %u, not 0x%" PRIx64 " with %u",
                      mpsim_op_name(op), text[0], text[1], text[2], name, mpsim_round_mode_name((mpsim_round_mode)mode),
                      r.sr_bits, got, got_flags, want, want_flags);
        unsigned cast_flags = 0;
        ck_assert(op != MPSIM_OP_CONVERT ||
                  (exact_encode(&f, &r, &x[0], random, &cast_flags, NULL) == want && cast_flags == want_flags));
    }
}

/* ---- texts ---- */

static void random_decimal(char text[TEXT], int spread, uint64_t *state)
{
    char *s = text;
    if (test_random(state) % 3 == 0)
        *s++ = '-';
    const int n = 1 + (int)(test_random(state) % (test_random(state) % 8 ? 6 : 40));
    for (int i = 0; i < n; i++) {
        *s++ = (char)('0' + (i == 0 ? 1 + test_random(state) % 9 : test_random(state) % 10));
        if (i == 0 && n > 1 && test_random(state) % 2)
            *s++ = '.';
    }
    snprintf(s, 16, "e%d", (int)(test_random(state) % (uint64_t)(2 * spread + 1)) - spread - n / 2);
}

/* x in full, and a little more or less: `where` digits after its last one. */
static void beside(char text[TEXT], double x, int side, int where)
{
    snprintf(text, TEXT, "%.*e", 770, x);
    char *e = strchr(text, 'e'), exponent[16], *end = e;
    snprintf(exponent, sizeof exponent, "%s", e);
    while (end[-1] == '0' && end > text + 3)
        end--;
    if (side < 0) { /* borrow */
        char *last = end - 1;
        while (*last == '0' || *last == '.')
            last--;
        (*last)--;
        for (char *p = last + 1; p < end; p++)
            *p = *p == '.' ? '.' : '9';
    }
    for (int i = 0; i < where && side; i++)
        *end++ = side < 0 ? '9' : '0';
    if (side)
        *end++ = '1';
    memcpy(end, exponent, strlen(exponent) + 1);
}

/* A number of the format or the middle of two. */
static double corner(const mpsim_format *f, uint64_t *state)
{
    const uint64_t m = test_random(state) % (f->max_finite + 1);
    const double a = mpsim_decode(f, m), b = m < f->max_finite ? mpsim_decode(f, m + 1) : a;
    const double x = test_random(state) % 4 ? a / 2 + b / 2 : a;
    return x == 0 ? 1 : x;
}

START_TEST(decimals_are_rounded_once)
{
    char text[TEXT];
    uint64_t state = test_seed();
    const char *const words[3] = {text, "", ""};
    for (size_t i = 0; i < FORMATS; i++)
        for (size_t k = 0; k < test_scaled(600); k++) {
            random_decimal(text, i == 4 || i == 11 ? 300 : i == 1 || i == 3 || i == 8 ? 40 : 9, &state);
            compare(MPSIM_OP_CONVERT, names[i], words, &state);
        }
}

START_TEST(beside_a_tie)
{
    char text[TEXT];
    uint64_t state = test_seed() + 1;
    const char *const words[3] = {text, "", ""};
    for (size_t i = 0; i < FORMATS; i++) {
        mpsim_format f;
        (void)mpsim_format_parse(&f, names[i]);
        for (size_t k = 0; k < test_scaled(300); k++) {
            beside(text, corner(&f, &state), (int)(k % 3) - 1, k % 10 == 9 ? 300 : 25);
            compare(MPSIM_OP_CONVERT, names[i], words, &state);
        }
    }
}

START_TEST(operations_on_decimals)
{
    char text[3][TEXT];
    uint64_t state = test_seed() + 2;
    const char *const words[3] = {text[0], text[1], text[2]};
    for (size_t i = 0; i < FORMATS; i++)
        for (int op = 0; op < MPSIM_OPS; op++)
            for (size_t k = 0; k < test_scaled(100); k++) {
                mpsim_format f;
                (void)mpsim_format_parse(&f, names[i]);
                const int spread = i == 4 || i == 11 ? 160 : i == 8 ? 20 : 4;
                for (int n = 0; n < 3; n++)
                    random_decimal(text[n], k % 3 ? spread : 1, &state);
                if (k % 4 == 0)
                    beside(text[0], corner(&f, &state), (int)(test_random(&state) % 3) - 1, 25);
                if (k % 5 == 0) { /* almost all of it cancels */
                    memcpy(text[1], text[0], TEXT);
                    text[1][strcspn(text[1], "e") - 1] = '7';
                }
                compare((mpsim_op)op, names[i], words, &state);
            }
}

/* ---- by hand ---- */

static uint64_t cast(const char *text, const char *name, int mode, unsigned *flags)
{
    static exact_number x;
    mpsim_format f;
    mpsim_rounding r;
    ck_assert_msg(exact_parse(&x, text) == 0, "'%s'", text);
    (void)mpsim_format_parse(&f, name);
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    return exact_encode(&f, &r, &x, 0, flags, NULL);
}

START_TEST(known_numbers)
{
    static const struct {
        const char *text, *format;
        int mode;
        uint64_t code;
        unsigned flags;
    } rows[] = {
        {"259", "bf16", MPSIM_ROUND_TOWARD_ZERO, 0x4381, MPSIM_FLAG_INEXACT}, /* 258 */
        {"1.001", "bf16", MPSIM_ROUND_UP, 0x3f81, MPSIM_FLAG_INEXACT},
        {"1e5", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x7c00, MPSIM_FLAG_OVERFLOW | MPSIM_FLAG_INEXACT},
        {"1.00048828125", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x3c00, MPSIM_FLAG_INEXACT},
        {"1.000488281250000000000000000001", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x3c01, MPSIM_FLAG_INEXACT},
        {"0x1.0020000000000000001p0", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x3c01, MPSIM_FLAG_INEXACT},
        {"0x1.8p1", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x4200, 0},
        {"0X1.8", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x3e00, 0},
        {"2^-14", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0x0400, 0},
        {"2**-25", "fp16", MPSIM_ROUND_NEAREST_EVEN, 0, MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW},
        {"0.1", "binary64", MPSIM_ROUND_DOWN, 0x3fb9999999999999, MPSIM_FLAG_INEXACT},
        {"0.1", "binary64", MPSIM_ROUND_UP, 0x3fb999999999999a, MPSIM_FLAG_INEXACT},
        {"-0", "bf16", MPSIM_ROUND_UP, 0x8000, 0},
        {"-0e999999999999999999999", "bf16", MPSIM_ROUND_UP, 0x8000, 0},
        {"-inf", "fp16", MPSIM_ROUND_UP, 0xfc00, 0},
        {"nan", "fp16", MPSIM_ROUND_UP, 0x7e00, MPSIM_FLAG_NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned flags = 0;
        const uint64_t code = cast(rows[i].text, rows[i].format, rows[i].mode, &flags);
        ck_assert_msg(code == rows[i].code && flags == rows[i].flags, "%s in %s: 0x%" PRIx64 " with flags %u",
                      rows[i].text, rows[i].format, code, flags);
    }
}

START_TEST(what_is_no_number)
{
    static const char *const bad[] = {"",   "x",        "0x3c00", "-0x3c00", "0x", "1e",  "1..2",
                                      " 1", "infinity", "1,5",    "--1",     "2^", "2^x", "0x1p"};
    static const char *const far[] = {"1e999", "1e-999", "2^1024", "0x1p-2000"};
    static exact_number x;
    static char long_text[EXACT_LONGEST + 3] = "1";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(exact_parse(&x, bad[i]) == NUMBER_BAD, "'%s'", bad[i]);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++)
        ck_assert_msg(exact_parse(&x, far[i]) == NUMBER_RANGE, "'%s'", far[i]);
    memset(long_text + 1, '0', EXACT_LONGEST);
    ck_assert_int_eq(exact_parse(&x, long_text), NUMBER_RANGE);
    memcpy(long_text, "0.", 2);
    long_text[EXACT_LONGEST - 1] = '1';
    long_text[EXACT_LONGEST] = '\0';
    ck_assert_int_eq(exact_parse(&x, long_text), NUMBER_RANGE);
    ck_assert_int_eq(exact_is_code("0x3c00") && exact_is_code("-0X3C00") && !exact_is_code("0x1p3"), 1);
}

int main(void)
{
    mpz_init(whole);
    mpz_init(part);
    for (int i = 0; i < 3; i++)
        mpq_init(read[i]);
    mpq_init(value);
    TCase *t = test_case("exact", 300);
    tcase_add_test(t, known_numbers);
    tcase_add_test(t, what_is_no_number);
    tcase_add_test(t, decimals_are_rounded_once);
    tcase_add_test(t, beside_a_tie);
    tcase_add_test(t, operations_on_decimals);
    TCase *const cases[] = {t, NULL};
    return test_main("exact", cases);
}
