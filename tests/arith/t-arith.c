/* t-arith.c -- proves mpsim_arith_apply for the formats of at most 8 bits: every pair of operands,
 * every mode, code and flags against the oracle; the choices; and the oracle against itself.
 * Wider and mixed formats: t-wide.c. fma: t-fma.c. Arrays, names, comparisons:
 * t-array.c. All pairs of fp16: x-arith.c. */
#include "support/ops.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>

/* ------------------------------------------------------------ the oracle itself ---- */

/* Results that can be checked by hand: the oracle and the library must both know them. */
enum {
    NE = MPSIM_ROUND_NEAREST_EVEN,
    NA = MPSIM_ROUND_NEAREST_AWAY,
    TZ = MPSIM_ROUND_TOWARD_ZERO,
    UP = MPSIM_ROUND_UP,
    DN = MPSIM_ROUND_DOWN,
    OD = MPSIM_ROUND_TO_ODD
};
enum {
    INEXACT = MPSIM_FLAG_INEXACT,
    UNDERFLOW_ = MPSIM_FLAG_UNDERFLOW,
    SUBNORMAL = MPSIM_FLAG_SUBNORMAL,
    OVERFLOW_ = MPSIM_FLAG_OVERFLOW,
    ISNAN = MPSIM_FLAG_NAN,
    INVALID = MPSIM_FLAG_INVALID | MPSIM_FLAG_NAN,
    DIVBYZERO = MPSIM_FLAG_DIVBYZERO
};
static const struct {
    int op, mode;
    const char *format; /* of the operands and, without another, of the result */
    const char *result;
    uint64_t a, b, c, code;
    unsigned flags;
} known[] = {
    /* 1/3 = 0.0101..b: fp16 0x3555, up 0x3556; 2/3; sqrt 2 = 1.4142 */
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0x3c00, 0x4200, 0, 0x3555, INEXACT},
    {MPSIM_OP_DIV, UP, "fp16", NULL, 0x3c00, 0x4200, 0, 0x3556, INEXACT},
    {MPSIM_OP_DIV, OD, "fp16", NULL, 0x3c00, 0x4200, 0, 0x3555, INEXACT},
    {MPSIM_OP_DIV, DN, "fp16", NULL, 0xbc00, 0x4200, 0, 0xb556, INEXACT},
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0x4000, 0x4200, 0, 0x3955, INEXACT},
    {MPSIM_OP_SQRT, NE, "fp16", NULL, 0x4000, 0, 0, 0x3da8, INEXACT},
    {MPSIM_OP_SQRT, NE, "fp16", NULL, 0x4400, 0, 0, 0x4000, 0},
    {MPSIM_OP_SQRT, NE, "fp16", NULL, 0x0001, 0, 0, 0x0c00, 0}, /* 2^-24: 2^-12 */
    {MPSIM_OP_SQRT, NE, "fp16", NULL, 0x8000, 0, 0, 0x8000, 0},
    {MPSIM_OP_SQRT, NE, "fp16", NULL, 0xbc00, 0, 0, 0x7e00, INVALID},
    /* 65504 + 16 is the tie to infinity, 65504 + 15.99 is not */
    {MPSIM_OP_ADD, NE, "fp16", NULL, 0x7bff, 0x4c00, 0, 0x7c00, INEXACT | OVERFLOW_},
    {MPSIM_OP_ADD, NE, "fp16", NULL, 0x7bff, 0x4bff, 0, 0x7bff, INEXACT},
    {MPSIM_OP_ADD, TZ, "fp16", NULL, 0x7bff, 0x7bff, 0, 0x7bff, INEXACT | OVERFLOW_},
    {MPSIM_OP_SUB, NE, "fp16", NULL, 0x0400, 0x0001, 0, 0x03ff, SUBNORMAL},
    {MPSIM_OP_MUL, NE, "fp16", NULL, 0x0001, 0x3800, 0, 0x0000, INEXACT | UNDERFLOW_},
    {MPSIM_OP_MUL, NA, "fp16", NULL, 0x0001, 0x3800, 0, 0x0001, INEXACT | SUBNORMAL},
    {MPSIM_OP_MUL, NE, "fp16", NULL, 0x8001, 0x3800, 0, 0x8000, INEXACT | UNDERFLOW_},
    /* zeros */
    {MPSIM_OP_ADD, NE, "fp16", NULL, 0x8000, 0x8000, 0, 0x8000, 0},
    {MPSIM_OP_ADD, NE, "fp16", NULL, 0x0000, 0x8000, 0, 0x0000, 0},
    {MPSIM_OP_ADD, DN, "fp16", NULL, 0x0000, 0x8000, 0, 0x8000, 0},
    {MPSIM_OP_SUB, NE, "fp16", NULL, 0x3c00, 0x3c00, 0, 0x0000, 0},
    {MPSIM_OP_SUB, DN, "fp16", NULL, 0x3c00, 0x3c00, 0, 0x8000, 0},
    {MPSIM_OP_SUB, DN, "fp16", NULL, 0x0000, 0x8000, 0, 0x0000, 0},
    {MPSIM_OP_MUL, NE, "fp16", NULL, 0x8000, 0x3c00, 0, 0x8000, 0},
    {MPSIM_OP_FMA, NE, "fp16", NULL, 0x3c00, 0xbc00, 0x3c00, 0x0000, 0},
    {MPSIM_OP_FMA, DN, "fp16", NULL, 0x3c00, 0xbc00, 0x3c00, 0x8000, 0},
    {MPSIM_OP_FMA, NE, "fp16", NULL, 0x8000, 0x3c00, 0x8000, 0x8000, 0},
    /* infinities and operations without a value */
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0xbc00, 0x0000, 0, 0xfc00, DIVBYZERO},
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0x7c00, 0x8000, 0, 0xfc00, 0},
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0x3c00, 0xfc00, 0, 0x8000, 0},
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0x8000, 0x0000, 0, 0x7e00, INVALID},
    {MPSIM_OP_DIV, NE, "fp16", NULL, 0xfc00, 0x7c00, 0, 0x7e00, INVALID},
    {MPSIM_OP_SUB, NE, "fp16", NULL, 0x7c00, 0x7c00, 0, 0x7e00, INVALID},
    {MPSIM_OP_MUL, NE, "fp16", NULL, 0x8000, 0x7c00, 0, 0x7e00, INVALID},
    {MPSIM_OP_FMA, NE, "fp16", NULL, 0x7c00, 0x0000, 0x3c00, 0x7e00, INVALID},
    {MPSIM_OP_FMA, NE, "fp16", NULL, 0x7c00, 0x0000, 0xfe01, 0xfe00, ISNAN},
    {MPSIM_OP_FMA, NE, "fp16", NULL, 0x7c00, 0x3c00, 0xfc00, 0x7e00, INVALID},
    {MPSIM_OP_ADD, NE, "fp16", NULL, 0xfc01, 0x7e00, 0, 0xfe00, ISNAN},
    /* no infinity: 1 / 0 is NaN, 1 / -0 its negative; 448 + 16 = 464 is the tie to 448 */
    {MPSIM_OP_DIV, NE, "e4m3", NULL, 0x38, 0x00, 0, 0x7f, DIVBYZERO},
    {MPSIM_OP_DIV, NE, "e4m3", NULL, 0x38, 0x80, 0, 0xff, DIVBYZERO},
    {MPSIM_OP_ADD, NE, "e4m3", NULL, 0x7e, 0x58, 0, 0x7e, INEXACT},
    {MPSIM_OP_ADD, NE, "e4m3", NULL, 0x7e, 0x59, 0, 0x7f, INEXACT | OVERFLOW_},
    /* no NaN: 6 / 0 is 6, 0 / 0 the largest number, 1 / 3 = 0.33 the subnormal 0.5 */
    {MPSIM_OP_DIV, NE, "e2m1", NULL, 0x7, 0x8, 0, 0xf, DIVBYZERO},
    {MPSIM_OP_DIV, NE, "e2m1", NULL, 0x0, 0x8, 0, 0x7, INVALID},
    {MPSIM_OP_DIV, NE, "e2m1", NULL, 0x2, 0x5, 0, 0x1, INEXACT | SUBNORMAL},
    /* no zero: 1 + 2 = 3 is a tie and goes to the even code, 4; 1 - 2 is negative */
    {MPSIM_OP_ADD, NE, "e8m0", NULL, 0x7f, 0x80, 0, 0x80, INEXACT},
    {MPSIM_OP_ADD, NE, "e8m0", NULL, 0x80, 0x81, 0, 0x82, INEXACT},
    {MPSIM_OP_SUB, NE, "e8m0", NULL, 0x7f, 0x80, 0, 0xff, INEXACT | OVERFLOW_},
    {MPSIM_OP_SUB, NE, "e8m0", NULL, 0x7f, 0x7f, 0, 0x00, INEXACT},
    {MPSIM_OP_SQRT, NE, "e8m0", NULL, 0x81, 0, 0, 0x80, 0},
    /* one zero, infinities: 1 / 0 */
    {MPSIM_OP_DIV, NE, "binary8p4se", NULL, 0x40, 0x00, 0, 0x7f, DIVBYZERO},
    {MPSIM_OP_SUB, DN, "binary8p4se", NULL, 0x40, 0x40, 0, 0x00, 0},
    /* 2^-1074 / 2 + 0 and the end of binary64: (2^53 - 1) 2^971 + 2^970 is the tie */
    {MPSIM_OP_DIV, NE, "binary64", NULL, 1, 0x4000000000000000, 0, 0, INEXACT | UNDERFLOW_},
    {MPSIM_OP_ADD, NE, "binary64", NULL, 0x7fefffffffffffff, 0x7c90000000000000, 0, 0x7ff0000000000000,
     INEXACT | OVERFLOW_},
    {MPSIM_OP_ADD, NE, "binary64", NULL, 0x7fefffffffffffff, 0x7c8fffffffffffff, 0, 0x7fefffffffffffff, INEXACT},
    /* mixed: 448 * 448 = 200704 into fp16 and bf16 */
    {MPSIM_OP_MUL, NE, "e4m3", "fp16", 0x7e, 0x7e, 0, 0x7c00, INEXACT | OVERFLOW_},
    {MPSIM_OP_MUL, NE, "e4m3", "bf16", 0x7e, 0x7e, 0, 0x4844, 0},
};

CASE("oracle", 60);

TEST(known_values)
{
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const char *from = known[k].format, *to = known[k].result ? known[k].result : from;
        operation p = operation_make(known[k].op, to, from, from, from, known[k].mode);
        const uint64_t a = known[k].a, b = known[k].b, c = known[k].c;
        unsigned f[3];
        const uint64_t one = oracle_arith_apply(&p.oracle, a, b, c, 0, &f[0]);
        const uint64_t two = oracle_arith_mpfr(&p.oracle, a, b, c, 0, &f[1]);
        const uint64_t lib = mpsim_arith_apply(&p.lib, a, b, c, 0, &f[2]);
        const uint64_t want = known[k].code;
        const unsigned flags = known[k].flags;
        ck_assert_msg(
            one == want && two == want && lib == want && f[0] == flags && f[1] == flags && f[2] == flags,
            "%s %s %s of 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 ": expected "
            "0x%" PRIx64 " flags 0x%x, oracle 0x%" PRIx64 " 0x%x, 0x%" PRIx64 " 0x%x, library 0x%" PRIx64 " 0x%x",
            to, op_name(known[k].op), mode_name(known[k].mode), a, b, c, want, flags, one, f[0], two, f[1], lib, f[2]);
    }
}

/* Integers against MPFR: every pair of at most 6 bits, edges and random operands of the others,
 * mixed formats, random choices. */
TEST(the_oracle_agrees_with_itself)
{
    /* clang-format off */
    static const char *const formats[] = {
        "e3m2", "e2m3", "e2m1", "e4m3", "e5m2", "e8m0", "e4m3fnuz", "binary8p1se", "binary8p3ue",
        "binary8p8uf", "fp16", "bf16", "tf32", "binary32", "binary64", "e5m7", "e3m0:fn",
        "e3m3:unsigned:finite", "e8m7:bias=1068:finite"};
    enum { FORMATS = sizeof formats / sizeof formats[0] };
    uint64_t random = test_seed();
    tally t = {0};
    for (size_t i = 0; i < FORMATS; i++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            operation p = operation_make(op, formats[i], NULL, NULL, NULL, 0);
            const oracle_format *of = p.oracle.result;
            const codes x = of->bits <= 6 && op != MPSIM_OP_FMA ? codes_all(of)
                                                                : codes_edges(of, 1, &random);
            const size_t nb = op_operands(op) > 1 ? x.n : 1, nc = op == MPSIM_OP_FMA ? 8 : 1;
            for (size_t k = 0; k < x.n * nb * nc; k++) {
                const size_t c = test_random(&random) % x.n;
                if (x.n * nb * nc > 256 && !test_in_part(k, 1))
                    continue;
                tally_two_ways(&t, &p, x.code[k % x.n], x.code[k / x.n % nb], x.code[c], k);
            }
        }
    for (size_t k = 0; k < test_scaled(4000); k++) {
        const char *names[4];
        for (int i = 0; i < 4; i++)
            names[i] = formats[test_random(&random) % FORMATS];
        operation p = operation_make((int)(k % MPSIM_OPS), names[0], names[1], names[2],
                                     names[3], 0);
        if (k % 2) {
            const mpsim_rounding r = rounding_random(0, &random);
            operation_rounding(&p, &r);
        }
        for (int n = 0; n < 10; n++) {
            uint64_t x[3];
            for (int i = 0; i < 3; i++)
                x[i] = code_random(p.oracle.operand[i], 0, &random);
            tally_two_ways(&t, &p, x[0], x[1], x[2], k + (size_t)n);
        }
    }
    /* clang-format on */
    tally_passed(&t);
}

/* Where the exact result is a binary64 number the rounding oracle has an answer of its own. */
TEST(the_oracle_agrees_with_the_rounding_oracle)
{
    static const char *const results[] = {"e4m3",        "e5m2",     "e2m1", "e8m0",
                                          "binary8p3uf", "e4m3fnuz", "e5m7", "binary8p1se"};
    uint64_t random = test_seed() + 1;
    tally t = {0};
    size_t disagree = 0, n = 0;
    for (size_t k = 0; k < sizeof results / sizeof results[0]; k++)
        for (int op = MPSIM_OP_ADD; op <= MPSIM_OP_MUL; op++) {
            operation p = operation_make(op, results[k], "e4m3", "fp16", NULL, 0);
            for (size_t i = 0; i < test_scaled(4000); i++) {
                const uint64_t a = code_random(p.oracle.operand[0], 0, &random);
                const uint64_t b = code_random(p.oracle.operand[1], 0, &random);
                const double x = oracle_decode(p.oracle.operand[0], a);
                const double y = oracle_decode(p.oracle.operand[1], b);
                /* e4m3 and fp16 numbers: at most 27 bits apart, 15 significant bits */
                const double z = op == MPSIM_OP_ADD ? x + y : op == MPSIM_OP_SUB ? x - y : x * y;
                if (!isfinite(x) || !isfinite(y) || z == 0)
                    continue;
                mpsim_rounding r = rounding_random((int)(i % MPSIM_ROUND_MODES), &random);
                r.flush_input = 0;
                operation_rounding(&p, &r);
                const uint32_t word = cases_word(i);
                unsigned fa, fb;
                const uint64_t ca = oracle_arith_apply(&p.oracle, a, b, 0, word, &fa);
                const uint64_t cb = oracle_encode(p.oracle.result, &r, z, 0, word, &fb);
                disagree += ca != cb || fa != fb;
                n++;
                tally_op(&t, &p, a, b, 0, word);
            }
        }
    ck_assert_msg(disagree == 0, "%zu of %zu", disagree, n);
    tally_passed(&t);
}

/* ------------------------------------------------------------ all pairs, all modes ---- */

static void all_pairs(int op)
{
    tally t = {0};
    const char *name;
    for (size_t i = 0; (name = narrow_format(i, 8)); i++) {
        operation p = operation_make(op, name, NULL, NULL, NULL, 0);
        const codes x = codes_all(p.oracle.result);
        tally_pairs(&t, &p, &x, &x);
    }
    tally_passed(&t);
}

CASE("pairs", 120);

TEST(every_sum_of_every_narrow_format_in_every_mode)
{
    all_pairs(MPSIM_OP_ADD);
}

TEST(every_difference_of_every_narrow_format_in_every_mode)
{
    all_pairs(MPSIM_OP_SUB);
}

TEST(every_product_of_every_narrow_format_in_every_mode)
{
    all_pairs(MPSIM_OP_MUL);
}

TEST(every_quotient_of_every_narrow_format_in_every_mode)
{
    all_pairs(MPSIM_OP_DIV);
}

TEST(every_root_of_every_narrow_format_in_every_mode)
{
    all_pairs(MPSIM_OP_SQRT);
}

/* From every narrow format to every other one, in turns. */
TEST(every_conversion_between_narrow_formats)
{
    tally t = {0};
    const char *from, *to;
    for (size_t i = 0; (from = narrow_format(i, 8)); i++)
        for (size_t k = 0; (to = narrow_format(k, 8)); k++) {
            if (!test_in_part(i + k, 1))
                continue;
            operation p = operation_make(MPSIM_OP_CONVERT, to, from, NULL, NULL, 0);
            const codes x = codes_all(p.oracle.operand[0]);
            tally_pairs(&t, &p, &x, &x);
        }
    tally_passed(&t);
}

/* ----------------------------------------------------------------------- choices ---- */

CASE("choice", 60);

/* The operands at the edges, once per choice and value; a format and operation has some of them each time. */
TEST(each_choice_at_the_edges)
{
    uint64_t random = test_seed() + 2;
    tally t = {0};
    const char *name;
    for (size_t i = 0; (name = narrow_format(i, 8)); i++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            operation p = operation_make(op, name, NULL, NULL, NULL, 0);
            const codes x = codes_edges(p.oracle.result, 1, &random);
            for (int k = 0; k < ROUNDING_VARIANTS; k++) {
                if (!test_in_whole_part(i + (size_t)(op + k), 27)) /* tally_pairs has 40 */
                    continue;
                const mpsim_rounding r = rounding_variant(0, k);
                operation_rounding(&p, &r);
                if (op == MPSIM_OP_FMA) {
                    codes few = x;
                    few.n = few.n < 9 ? few.n : 9;
                    tally_triples(&t, &p, &few, &few, &few);
                } else {
                    tally_pairs(&t, &p, &x, &x);
                }
            }
        }
    tally_passed(&t);
}

/* All choices at once, any operands, other formats for the result. */
TEST(any_choices_with_any_operands)
{
    uint64_t random = test_seed() + 3;
    tally t = {0};
    size_t n = 0;
    while (narrow_format(n, 8))
        n++;
    for (size_t k = 0; k < test_scaled(6000); k++) {
        const char *from = narrow_format(test_random(&random) % n, 8);
        const char *to = k % 3 ? from : narrow_format(test_random(&random) % n, 8);
        operation p = operation_make((int)(k % MPSIM_OPS), to, from, from, from, 0);
        const mpsim_rounding r = rounding_random(0, &random);
        operation_rounding(&p, &r);
        for (size_t i = 0; i < 40; i++) {
            const uint64_t a = test_random(&random), b = a >> 8 & 0xff, c = a >> 16 & 0xff;
            tally_modes(&t, &p, a & 0xff, b, i % 4 ? c : a & 0xff, i);
        }
    }
    tally_passed(&t);
}

/* The bits above the width of an operand are ignored. */
TEST(bits_above_the_width_are_ignored)
{
    static const char *const names[] = {"e2m1", "e4m3", "e8m0", "tf32", "binary32"};
    uint64_t random = test_seed() + 4;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            operation p = operation_make(op, names[i], NULL, NULL, NULL, 0);
            const uint64_t above = ~(uint64_t)0 << p.oracle.result->bits;
            for (int k = 0; k < 500; k++) {
                uint64_t x[3];
                for (int j = 0; j < 3; j++)
                    x[j] = code_random(p.oracle.result, 0, &random);
                unsigned f = 0, g = 0;
                const uint64_t clean = mpsim_arith_apply(&p.lib, x[0], x[1], x[2], 0, &f);
                const uint64_t junk = test_random(&random);
                const uint64_t dirty = mpsim_arith_apply(&p.lib, x[0] | (junk & above), x[1] | (~junk & above),
                                                         x[2] | above, 0, &g);
                ck_assert_msg(clean == dirty && f == g, "%s %s", names[i], op_name(op));
                ck_assert(mpsim_arith_apply(&p.lib, x[0], x[1], x[2], 0, NULL) == clean);
            }
        }
}

TEST_MAIN("arith");
