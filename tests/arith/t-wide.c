/* t-wide.c -- proves mpsim_arith_apply for formats of more than 8 bits and for operands and
 * results of different formats: structured and random operands, results built to lie on ties,
 * beside ties and at both ends of the range; every mode, code and flags. */
#include "support/ops.h"
#include "support/rounding.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const char *const wide[] = {"fp16", "bf16", "tf32", "binary32", "binary64"};
static const char *const typed[] = {
    "e5m7", "e6m9", "e11m20", "e8m23:bias=100", "e9m30", "e8m7:bias=1068:finite", "binary12p5sf", "binary16p11se"};
enum { WIDE = sizeof wide / sizeof wide[0], TYPED = sizeof typed / sizeof typed[0] };

static const char *subject(size_t i)
{
    return i < WIDE ? wide[i] : i < WIDE + TYPED ? typed[i - WIDE] : NULL;
}

/* ------------------------------------------------------- structured, random operands ---- */

CASE("operands", 60);

TEST(structured_operands_in_every_mode)
{
    uint64_t random = test_seed();
    tally t = {0};
    for (size_t i = 0; subject(i); i++)
        for (int op = 0; op < MPSIM_OP_FMA; op++) {
            operation p = operation_make(op, subject(i), NULL, NULL, NULL, 0);
            const codes x = codes_edges(p.oracle.result, i >= WIDE, &random);
            tally_pairs(&t, &p, &x, &x);
        }
    tally_passed(&t);
}

TEST(random_operands_in_every_mode)
{
    uint64_t random = test_seed() + 1;
    tally t = {0};
    for (size_t i = 0; subject(i); i++)
        for (int op = 0; op < MPSIM_OP_FMA; op++) {
            operation p = operation_make(op, subject(i), NULL, NULL, NULL, 0);
            for (size_t k = 0; k < test_scaled(i < WIDE ? 4000 : 800); k++) {
                const uint64_t a = code_random(p.oracle.result, 0, &random);
                const uint64_t b = code_random(p.oracle.result, a, &random);
                tally_modes(&t, &p, a, b, 0, k);
            }
        }
    tally_passed(&t);
}

TEST(every_root_of_16_bits)
{
    static const char *const names[] = {"fp16", "bf16", "e6m9", "binary16p11se"};
    tally t = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        operation p = operation_make(MPSIM_OP_SQRT, names[i], NULL, NULL, NULL, 0);
        for (uint64_t a = i; a < 0x10000; a += i < 2 ? 1 : 13)
            if (i < 2)
                tally_op(&t, &p, a, 0, 0, 0);
            else
                tally_modes(&t, &p, a, 0, 0, a);
    }
    tally_passed(&t);
}

TEST(choices_with_structured_operands)
{
    uint64_t random = test_seed() + 2;
    tally t = {0};
    for (size_t i = 0; i < WIDE; i++)
        for (int op = 0; op < MPSIM_OP_FMA; op++) {
            operation p = operation_make(op, wide[i], NULL, NULL, NULL, 0);
            const codes x = codes_edges(p.oracle.result, 1, &random);
            for (int k = 0; k < ROUNDING_VARIANTS; k++) {
                const mpsim_rounding r = rounding_variant(0, k);
                operation_rounding(&p, &r);
                for (size_t n = (size_t)k % 3; n < x.n * x.n; n += 3)
                    tally_modes(&t, &p, x.code[n % x.n], x.code[n / x.n], 0, n);
            }
        }
    tally_passed(&t);
}

/* ------------------------------------------------------------- ties, ends of the range ---- */

static uint64_t odd_of(int bits, uint64_t *random)
{
    return bits <= 1 ? 1 : ((test_random(random) >> (64 - bits)) | (uint64_t)1 << (bits - 1) | 1);
}

static double with_sign(double y, uint64_t *random)
{
    return test_random(random) >> 63 ? -y : y;
}

/* a with its neighbours, b with its neighbours. */
static void around(tally *t, operation *p, double a, double b, size_t turn)
{
    const uint64_t ca = code_of(p->oracle.operand[0], a), cb = code_of(p->oracle.operand[1], b);
    tally_modes(t, p, ca, cb, 0, turn);
    tally_modes(t, p, ca, cb + 1, 0, turn + 1);
    tally_modes(t, p, ca, cb - 1, 0, turn + 2);
    tally_modes(t, p, ca - 1, cb, 0, turn + 3);
}

static int is_tie(const operation *p, double a, double b)
{
    oracle_value v;
    oracle_arith_value(&v, &p->oracle, code_of(p->oracle.operand[0], a), code_of(p->oracle.operand[1], b), 0);
    return v.kind == ORACLE_VALUE_NUMBER && v.fraction == (uint64_t)1 << 33 && !v.sticky;
}

CASE("built", 60);

/* A sum on a tie: a of exponent e, b an odd multiple of half its unit. A product on a tie: odd
 * factors of k and p + 1 - k bits. A quotient on a tie, which only the subnormal range has: the
 * odd multiple of half its unit, times the divisor, over the divisor. A quotient of ones or a
 * root beside a tie: random ones near 1. */
TEST(ties_and_their_neighbours)
{
    uint64_t random = test_seed() + 3;
    tally t = {0};
    for (size_t i = 0; subject(i); i++) {
        operation add = operation_make(MPSIM_OP_ADD, subject(i), NULL, NULL, NULL, 0);
        operation mul = operation_make(MPSIM_OP_MUL, subject(i), NULL, NULL, NULL, 0);
        operation div = operation_make(MPSIM_OP_DIV, subject(i), NULL, NULL, NULL, 0);
        const oracle_format *of = add.oracle.result;
        const int p = of->precision;
        const int high = ilogb(of->max) - p - 4, low = of->emin + p + 4;
        size_t ties = 0, tries = 0;
        for (size_t k = 0; k < test_scaled(400); k++) {
            const int e = low >= high ? of->emin + (int)(k % 3)
                                      : low + (int)(test_random(&random) % (uint64_t)(high - low));
            const double a = ldexp((double)odd_of(p, &random), e);
            const double b = ldexp((double)odd_of((int)(k % (size_t)p) + 1, &random), e - 1);
            if (ilogb(a) < ilogb(of->max) && e - 1 >= of->emin - p + 1) {
                const double x = with_sign(a, &random), y = with_sign(b, &random);
                ties += (size_t)is_tie(&add, x, y);
                tries++;
                around(&t, &add, x, y, k);
            }
            const int bits = 1 + (int)(k % (size_t)p);
            const int f = -(int)(test_random(&random) % (uint64_t)(p + 2)) - 1;
            const double c = ldexp((double)odd_of(bits, &random), f);
            const double d = ldexp((double)odd_of(p + 1 - bits, &random), -f - 1);
            if (fabs(c) <= of->max && fabs(d) <= of->max && f >= of->emin - p + 1 && -f - 1 >= of->emin - p + 1) {
                const double x = with_sign(c, &random), y = with_sign(d, &random);
                ties += (size_t)is_tie(&mul, x, y);
                tries++;
                around(&t, &mul, x, y, k);
            }
            const int n = 1 + (int)(k % (size_t)(p - 2));
            const double m = (double)odd_of(n, &random) * (double)odd_of(1, &random);
            const double s = (double)odd_of(p - n > 1 ? p - n - 1 : 1, &random);
            /* least / 2 = 2^(emin - p) */
            const int g = of->emin < -20 || of->emin > 20 ? -of->emin / 2 : p + 1;
            const double u = ldexp(m * s, of->emin - p + g), v = ldexp(s, g);
            if (u <= of->max && v <= of->max && of->emin - p + g >= of->emin - p + 1 && g >= of->emin - p + 1) {
                const double x = with_sign(u, &random), y = with_sign(v, &random);
                ties += (size_t)is_tie(&div, x, y);
                tries++;
                around(&t, &div, x, y, k);
            }
        }
        ck_assert_msg(ties * 3 > tries && tries * 4 > test_scaled(400), "%s: %zu ties in %zu", of->name, ties, tries);
    }
    tally_passed(&t);
}

/* Roots on a tie and beside it: the squares of midpoints of the result, in a wide format. */
TEST(roots_on_ties_and_beside)
{
    static const char *const results[] = {"fp16", "bf16",        "tf32", "e4m3",    "e5m2",
                                          "e5m7", "binary8p3ue", "e8m0", "binary32"};
    uint64_t random = test_seed() + 4;
    tally t = {0};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        operation p = operation_make(MPSIM_OP_SQRT, results[i], "binary64", NULL, NULL, 0);
        const oracle_format *of = p.oracle.result;
        size_t ties = 0;
        for (uint64_t k = 0; k < test_scaled(300); k++) {
            const uint64_t m = test_random(&random) % of->max_code;
            const double a = oracle_magnitude(of, m), b = oracle_magnitude(of, m + 1);
            const double mid = a + (b - a) / 2;
            uint64_t u = bits_of_f64(mid * mid); /* exact but for binary32 */
            for (int d = -1; d <= 1; d++)
                tally_modes(&t, &p, u + (uint64_t)(int64_t)d, 0, 0, k);
            oracle_value v;
            oracle_arith_value(&v, &p.oracle, u, 0, 0);
            ties += v.fraction == (uint64_t)1 << 33 && !v.sticky;
        }
        ck_assert_msg(ties > 0 || of->precision > 20, "%s: no ties", of->name);
    }
    tally_passed(&t);
}

/* (2 h + 1) g * 2^-k, given that it lies within 2^-40 of an integer of at most 53 bits. */
static double scaled_product(uint64_t h, double g, int k)
{
    return rint(ldexp(fma(2 * (double)h, g, g), -k));
}

static void hard(tally *t, operation *p, double a, double b, size_t *close, size_t turn)
{
    const uint64_t ca = code_of(p->oracle.operand[0], a), cb = code_of(p->oracle.operand[1], b);
    const uint64_t half = (uint64_t)1 << 33;
    oracle_value v;
    oracle_arith_value(&v, &p->oracle, ca, cb, 0);
    *close += v.sticky &&
              (v.fraction == half || v.fraction == half - 1 || v.fraction == 0 || v.fraction == 2 * half - 1);
    tally_modes(t, p, ca, cb, 0, turn);
}

/* Quotients and roots as close to a midpoint (an odd M of p + 1 bits) or to a number (p bits) as
 * they come. With M b + d = 2^k N the quotient N 2^k / b is M + d / b: M is the inverse of b times
 * -d, modulo 2^k. With M^2 + d = 2^k N the root of 2^k N is M + d / (2 M): M is a square root of
 * -d modulo 2^k, which exists if -d is 1 modulo 8, and is lifted bit by bit. */
TEST(the_hardest_quotients_and_roots)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "binary64", "e9m30", "e11m20"};
    uint64_t random = test_seed() + 8;
    tally t = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        operation div = operation_make(MPSIM_OP_DIV, names[i], NULL, NULL, NULL, 0);
        operation root = operation_make(MPSIM_OP_SQRT, names[i], NULL, NULL, NULL, 0);
        const int p = div.oracle.result->precision;
        size_t quotients = 0, roots = 0, close[2] = {0};
        for (size_t n = 0; n < 400 || n < test_scaled(400); n++) {
            const int bits = p + (int)(n & 1), k = bits;
            const uint64_t b = odd_of(p, &random);
            const uint64_t d = (test_random(&random) % 4 * 2 + 1) * (n & 2 ? 1 : ~(uint64_t)0);
            uint64_t inverse = b; /* right modulo 8; each step doubles the bits */
            for (int step = 0; step < 5; step++)
                inverse *= 2 - b * inverse;
            const uint64_t m = (~d + 1) * inverse & (((uint64_t)1 << k) - 1);
            if (m >> (bits - 1) == 0)
                continue;
            const double a = scaled_product(m / 2, (double)b, k);
            hard(&t, &div, ldexp(a, -p), ldexp(with_sign((double)b, &random), -p), &close[0], n);
            quotients++;
        }
        for (size_t n = 0; n < 200 || n < test_scaled(200); n++) {
            /* M of `bits` bits: M^2 below 2^(2 bits), k leaves p of them */
            const int bits = p + (int)(n & 1), k = 2 * bits - p;
            const uint64_t square = 1 + ((uint64_t)(n / 2 % 50) - 25) * 8; /* -d, also below zero */
            uint64_t r = 1;
            for (int j = 3; j < k; j++)
                if ((r * r - square) >> j & 1)
                    r += (uint64_t)1 << (j - 1);
            for (int which = 0; which < 4; which++) {
                uint64_t m = (which & 1 ? ~r + 1 : r) + (which & 2 ? (uint64_t)1 << (k - 1) : 0);
                m &= ((uint64_t)1 << k) - 1;
                if (m >> (bits - 1) != 1)
                    continue;
                /* M^2 = 4 h (h + 1) + 1 */
                const double h = (double)(m / 2), a = rint(ldexp(h * (h + 1), 2 - k));
                const int e = k - 2 * bits; /* of the parity of k */
                if (a < 1 || a >= ldexp(1, p))
                    continue;
                hard(&t, &root, ldexp(a, e), 1, &close[1], n);
                roots++;
            }
        }
        ck_assert_msg(quotients > 100 && roots > 100, "%s: %zu quotients, %zu roots", names[i], quotients, roots);
        /* From 40 bits on, 34 bits of fraction do not tell them from the midpoint or number. */
        ck_assert_msg(p < 40 || (close[0] == quotients && close[1] * 10 > roots * 9), "%s: %zu of %zu, %zu of %zu",
                      names[i], close[0], quotients, close[1], roots);
    }
    tally_passed(&t);
}

/* The number nearest to m * 2^e. */
static uint64_t nearest(const oracle_format *of, double m, int e)
{
    mpsim_rounding r = rounding_variant(MPSIM_ROUND_NEAREST_EVEN, 0);
    unsigned flags;
    return oracle_encode(of, &r, ldexp(m, e), 0, 0, &flags);
}

/* Products and quotients close to a point of interest: the midpoint beyond the largest number,
 * the ends of the normal and the subnormal range, midpoints there. */
TEST(results_at_the_ends_of_the_range)
{
    uint64_t random = test_seed() + 5;
    tally t = {0};
    for (size_t i = 0; subject(i); i++) {
        operation mul = operation_make(MPSIM_OP_MUL, subject(i), NULL, NULL, NULL, 0);
        operation div = operation_make(MPSIM_OP_DIV, subject(i), NULL, NULL, NULL, 0);
        operation add = operation_make(MPSIM_OP_ADD, subject(i), NULL, NULL, NULL, 0);
        const oracle_format *of = mul.oracle.result;
        const int p = of->precision;
        int e_max;
        const double m_max = frexp(of->max, &e_max); /* in [1/2, 1) */
        const struct {
            double m;
            int e;
        } points[] = {
            {m_max + ldexp(1, -p - 1), e_max},
            {m_max, e_max},
            {1, of->emin},
            {1 - ldexp(1, -p), of->emin},
            {1 - ldexp(1, 1 - p), of->emin},
            {1, of->emin - p + 1},
            {0.5, of->emin - p + 1},
            {1.5, of->emin - p + 1},
            {2.5, of->emin - p + 1},
            {1 + ldexp(1, -p), 0},
        };
        for (size_t k = 0; k < sizeof points / sizeof points[0]; k++)
            for (size_t n = 0; n < test_scaled(40); n++) {
                const uint64_t ca = nearest(of, with_sign(1 + (double)(test_random(&random) >> 11) * 0x1p-53, &random),
                                            points[k].e / 2);
                const double a = oracle_decode(of, ca);
                int ea;
                const double ma = frexp(a, &ea);
                const uint64_t cb = nearest(of, points[k].m / ma, points[k].e - ea);
                const uint64_t cd = nearest(of, ma / points[k].m, ea - points[k].e);
                for (uint64_t d = 0; d < 5; d++) {
                    tally_modes(&t, &mul, ca, cb + d - 2, 0, n);
                    tally_modes(&t, &div, ca, cd + d - 2, 0, n);
                }
            }
        /* max + ulp / 2 and its neighbours */
        for (uint64_t d = 0; d < 9; d++) {
            const uint64_t half = code_of(of, ldexp(1, e_max - p - 1)) + d - 4;
            tally_modes(&t, &add, of->max_code, half, 0, d);
            tally_modes(&t, &add, of->max_code - d, of->max_code - 1, 0, d);
        }
    }
    tally_passed(&t);
}

/* -------------------------------------------------------------------- mixed formats ---- */

CASE("mixed", 60);

TEST(every_pair_of_e4m3_and_e5m2_into_wider_formats)
{
    static const char *const results[] = {"fp16", "bf16", "binary32"};
    tally t = {0};
    for (size_t i = 0; i < 3; i++)
        for (int op = MPSIM_OP_ADD; op <= MPSIM_OP_DIV; op++) {
            operation p = operation_make(op, results[i], i % 2 ? "e5m2" : "e4m3", i % 2 ? "e4m3" : "e5m2", NULL, 0);
            const codes x = codes_all(p.oracle.operand[0]);
            tally_pairs(&t, &p, &x, &x);
        }
    tally_passed(&t);
}

TEST(mixed_formats)
{
    static const char *const mixes[][4] = {
        {"binary32", "fp16", "fp16", "binary32"},
        {"binary32", "bf16", "bf16", "binary32"},
        {"binary32", "tf32", "tf32", "binary32"},
        {"fp16", "fp16", "fp16", "binary32"},
        {"e4m3", "binary64", "binary64", "binary64"},
        {"e5m2", "binary32", "binary32", "fp16"},
        {"bf16", "binary32", "bf16", "binary32"},
        {"binary64", "binary32", "e4m3", "fp16"},
        {"e8m0", "binary32", "binary32", "binary32"},
        {"e8m0", "e8m0", "e4m3", "e8m0"},
        {"e4m3", "e8m0", "e8m0", "e8m0"},
        {"binary32", "e8m0", "e2m1", "binary32"},
        {"fp16", "e8m0", "e8m0", "bf16"},
        {"e2m1", "bf16", "e8m0", "bf16"},
        {"binary8p3ue", "fp16", "binary8p3se", "bf16"},
        {"binary8p1uf", "fp16", "fp16", "fp16"},
        {"fp16", "binary8p3ue", "binary8p4uf", "binary8p8ue"},
        {"e4m3fnuz", "e5m2fnuz", "e4m3", "fp16"},
        {"fp16", "e4m3fnuz", "e4m3b11fnuz", "e5m2"},
        {"e5m7:fn", "fp16", "e5m7:fn", "e5m7"},
        {"e5m2:bias=20:fn", "e5m7", "e6m9", "e5m7"},
        {"e4m4:unsigned", "fp16", "fp16", "fp16"},
        {"e3m0:fn", "e3m0:finite", "e4m3", "e2m1"},
        {"e11m1:fnuz", "binary64", "binary64", "binary64"},
        {"e8m7:bias=1068:finite", "binary64", "e8m7:bias=1068:finite", "binary64"},
        {"e4m3:bias=-1008:finite", "binary64", "fp16", "binary64"},
        {"e9m30", "binary32", "binary32", "binary64"},
    };
    uint64_t random = test_seed() + 6;
    tally t = {0};
    for (size_t i = 0; i < sizeof mixes / sizeof mixes[0]; i++)
        for (int op = 0; op < MPSIM_OPS; op++) {
            operation p = operation_make(op, mixes[i][0], mixes[i][1], mixes[i][2], mixes[i][3], 0);
            const oracle_format *const *x = p.oracle.operand;
            codes e[3];
            for (int k = 0; k < 3; k++)
                e[k] = codes_edges(x[k], 1, &random);
            if (op != MPSIM_OP_FMA)
                tally_pairs(&t, &p, &e[0], &e[1]);
            for (size_t k = 0; k < test_scaled(1000); k++) {
                if (k % 5 == 4) {
                    const mpsim_rounding r = rounding_random(0, &random);
                    operation_rounding(&p, &r);
                }
                uint64_t u[3];
                for (int n = 0; n < 3; n++) /* one in four from the edges */
                    u[n] = (test_random(&random) & 3) == 0 ? e[n].code[test_random(&random) % e[n].n]
                                                           : code_random(x[n], 0, &random);
                tally_modes(&t, &p, u[0], u[1], u[2], k);
            }
        }
    tally_passed(&t);
}

/* Any four formats, any choices. */
TEST(any_formats_with_any_choices)
{
    uint64_t random = test_seed() + 7;
    tally t = {0};
    size_t rows = mpsim_format_count(), all = rows;
    while (oracle_typed(all - rows))
        all++;
    for (size_t k = 0; k < test_scaled(6000); k++) {
        const char *name[4];
        for (int i = 0; i < 4; i++) {
            const size_t n = test_random(&random) % all;
            name[i] = n < rows ? mpsim_format_at(n)->name : oracle_typed(n - rows);
        }
        operation p = operation_make((int)(k % MPSIM_OPS), name[0], name[1], name[2], name[3], 0);
        const mpsim_rounding r = rounding_random(0, &random);
        operation_rounding(&p, &r);
        for (size_t i = 0; i < 20; i++) {
            uint64_t u[3];
            for (int n = 0; n < 3; n++)
                u[n] = code_random(p.oracle.operand[n], 0, &random);
            tally_modes(&t, &p, u[0], u[1], u[2], i + k);
        }
    }
    tally_passed(&t);
}

/* Numbers, midpoints, neighbours: conversion is what mpsim_encode_f64 and _f32 do. */
static void conversions(tally *t, const mpsim_format *f, const oracle_format *of)
{
    for (int width = 32; width <= 64; width += 32) {
        operation p = operation_make(MPSIM_OP_CONVERT, of->name, width == 64 ? "binary64" : "binary32", NULL, NULL, 0);
        cases c;
        cases_init(&c, width);
        cases_numbers(&c, of, 1, 40);
        cases_edges(&c, of, 1, 1);
        for (size_t i = 0; i < c.n; i++) {
            tally_modes(t, &p, c.u[i], 0, 0, i);
            operation_mode(&p, (int)(i % MPSIM_ROUND_MODES));
            unsigned a, b;
            const uint64_t one = mpsim_arith_apply(&p.lib, c.u[i], 0, 0, cases_word(i), &a);
            const uint64_t two = encode_bits(f, &p.lib.rounding, width, c.u[i], cases_word(i), &b);
            if ((one != two || a != b) && t->wrong++ == 0)
                snprintf(t->first, sizeof t->first,
                         "%s: converting binary%d 0x%" PRIx64 " gives 0x%" PRIx64 " flags 0x%x, encoding it 0x%" PRIx64
                         " flags 0x%x",
                         of->name, width, c.u[i], one, a, two, b);
        }
        cases_clear(&c);
    }
}

TEST(conversions_round_as_encoding_does)
{
    for_all_formats(conversions, 64);
}

TEST_MAIN("arith-wide");
