/* t-fma.c -- proves fma of <mpsim/arith.h>: one rounding of a * b + c, code and flags
 * against the oracle. All triples of the formats of at most 6 bits, structured and random
 * operands of the others, cancellation, and operands built so that an emulation that goes
 * through binary32 or binary64 gets them wrong. */
#include "support/ops.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* --------------------------------------------------------------- many operands ---- */

CASE("many", 60);

TEST(every_triple_of_at_most_six_bits_in_every_mode)
{
    static const char *const more[] = {"e3m0:finite",       "e3m0:fn",     "e3m0:fnuz",   "e3m3:unsigned:finite",
                                       "e2m1:ieee:bias=-3", "binary3p1se", "binary4p2uf", "binary5p1uf"};
    tally t = {0};
    for (size_t i = 0; i < 3 + sizeof more / sizeof more[0]; i++) {
        const char *name = i < 3 ? narrow_format(i, 6) : more[i - 3];
        operation p = operation_make(MPSIM_OP_FMA, name, NULL, NULL, NULL, 0);
        const codes x = codes_all(p.oracle.result);
        tally_triples(&t, &p, &x, &x, &x);
    }
    tally_passed(&t);
}

TEST(structured_triples_of_eight_bits_in_every_mode)
{
    uint64_t random = test_seed();
    tally t = {0};
    const char *name;
    for (size_t i = 0; (name = narrow_format(i, 8)); i++) {
        operation p = operation_make(MPSIM_OP_FMA, name, NULL, NULL, NULL, 0);
        const codes x = codes_edges(p.oracle.result, 1, &random);
        tally_triples(&t, &p, &x, &x, &x);
    }
    tally_passed(&t);
}

TEST(structured_triples_of_wide_formats_in_every_mode)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "binary32", "binary64", "e9m30"};
    uint64_t random = test_seed() + 1;
    tally t = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        operation p = operation_make(MPSIM_OP_FMA, names[i], NULL, NULL, NULL, 0);
        const codes x = codes_edges(p.oracle.result, 1, &random);
        tally_triples(&t, &p, &x, &x, &x);
    }
    tally_passed(&t);
}

/* c close to the product as often as not. */
TEST(random_triples_in_every_mode)
{
    uint64_t random = test_seed() + 2;
    tally t = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        operation p = operation_make(MPSIM_OP_FMA, mpsim_format_at(i)->name, NULL, NULL, NULL, 0);
        operation product = p;
        product.oracle.op = MPSIM_OP_MUL;
        const oracle_format *of = p.oracle.result;
        for (size_t k = 0; k < test_scaled(of->bits > 8 ? 6000 : 2000); k++) {
            const uint64_t a = code_random(of, 0, &random), b = code_random(of, a, &random);
            unsigned flags;
            const uint64_t near = oracle_arith_apply(&product.oracle, a, b, 0, 0, &flags);
            tally_modes(&t, &p, a, b, code_random(of, near, &random), k);
        }
    }
    tally_passed(&t);
}

/* The rounding error of a product, exactly: a * b - round(a * b), and the neighbours of c; and
 * a product that leaves the range, which c brings back into it. */
TEST(cancellation_and_products_beyond_the_range)
{
    uint64_t random = test_seed() + 3;
    tally t = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        operation p = operation_make(MPSIM_OP_FMA, mpsim_format_at(i)->name, NULL, NULL, NULL, 0);
        operation product = p;
        product.oracle.op = MPSIM_OP_MUL;
        const oracle_format *of = p.oracle.result;
        const uint64_t minus = of->is_signed ? (uint64_t)1 << (of->bits - 1) : 0;
        for (size_t k = 0; k < test_scaled(1000); k++) {
            const uint64_t a = code_random(of, 0, &random), b = code_random(of, 0, &random);
            unsigned flags;
            const uint64_t c = oracle_arith_apply(&product.oracle, a, b, 0, 0, &flags) ^ minus;
            tally_modes(&t, &p, a, b, c, k);
            tally_modes(&t, &p, a, b, c + 1, k);
            tally_modes(&t, &p, a, b, c - 1, k);
        }
        if (of->max < 2)
            continue;
        const uint64_t two = code_of(of, 2);
        for (uint64_t k = 0; k < 16; k++) {
            const uint64_t top = of->max_code - k % 4, back = (of->max_code - k / 4) | minus;
            tally_modes(&t, &p, top, two, back, k);
            tally_modes(&t, &p, top | minus, two, back ^ minus, k);
            tally_modes(&t, &p, top, top | minus, back, k);
        }
    }
    tally_passed(&t);
}

/* Products just above a power of two, 2^105 + d with d < 2^41: 64 bits of them look like the power
 * itself. Added to c they lie just above half of the last place that stochastic-c looks at, or,
 * subtracted, just beyond it; and what is subtracted from a midpoint of a narrower result. */
TEST(the_last_bits_of_a_product_count)
{
    static const char *const results[] = {"binary64", "binary32", "fp16"};
    uint64_t random = test_seed() + 5;
    tally t = {0};
    size_t found = 0;
    while (found < test_scaled(150)) {
        const double m = (double)(test_random(&random) >> 11 | (uint64_t)1 << 52 | 1);
        const double n = rint(0x1p105 / m), d = fma(m, n, -0x1p105);
        if (!(d > 0 && d < 0x1p41))
            continue;
        operation p = operation_make(MPSIM_OP_FMA, results[found % 3], "binary64", "binary64", "binary64",
                                     MPSIM_ROUND_STOCHASTIC_C);
        const oracle_format *from = p.oracle.operand[0], *to = p.oracle.result;
        const double c = 1 + ldexp((double)(found % 7), 1 - to->precision);
        for (int bits = 1; bits <= 32; bits++) {
            /* to 2^-(p + bits), half of the last place */
            const int e = -to->precision - bits - 105;
            const uint64_t a = code_of(from, ldexp(m, e / 2));
            const uint64_t b = code_of(from, ldexp(n, e - e / 2));
            p.lib.rounding.sr_bits = p.oracle.r.sr_bits = (uint8_t)bits;
            for (int sign = 0; sign < 2; sign++)
                for (uint32_t k = 0; k < 4; k++) {
                    const uint32_t draw = k < 2 ? ~(uint32_t)0 - k % 2 * 0x80000000u
                                                : (uint32_t)1 << (32 - bits) << (k - 2) % 2;
                    tally_op(&t, &p, a ^ (uint64_t)sign << 63, b, code_of(from, c), draw);
                }
        }
        for (int e = -40; e > -140; e -= 7) { /* c on a midpoint, or not */
            const uint64_t a = code_of(from, ldexp(m, e - 52));
            const double mid = c + (to->precision < 53 ? ldexp(1, -to->precision) : 0);
            tally_modes(&t, &p, a, code_of(from, ldexp(n, -53)), code_of(from, mid), found);
            tally_modes(&t, &p, a, code_of(from, ldexp(-n, -53)), code_of(from, mid), found);
        }
        found++;
    }
    tally_passed(&t);
}

/* ----------------------------------------------------------------- double rounding ---- */

/* What goes wrong: the fused operation in binary32 or binary64, rounded again. */
static uint64_t twice(const operation *p, uint64_t a, uint64_t b, uint64_t c, int width)
{
    const oracle_arith *o = &p->oracle;
    const double x = oracle_decode(o->operand[0], a), y = oracle_decode(o->operand[1], b);
    const double z = oracle_decode(o->operand[2], c);
    const double s = width == 64 ? fma(x, y, z) : (double)fmaf((float)x, (float)y, (float)z);
    unsigned flags;
    return oracle_encode(o->result, &o->r, s, 0, 0, &flags);
}

CASE("twice", 60);

/* Results of other emulators that were wrong, and what they gave. */
TEST(known_double_roundings)
{
    static const struct {
        const char *format;
        int through;
        double a, b, c, wrong, right;
    } known[] = {
        {"fp16", 32, -0x1.664p-8, -0x1.57p+5, -0x1.628p+5, -0x1.608p+5, -0x1.60cp+5},
        {"fp16", 32, 0x1.eacp+7, 0x1.3f4p+4, 0x1.c04p+14, 0x1.068p+15, 0x1.064p+15},
        {"bf16", 32, -0x1.6p+7, -0x1.fp+17, 0x1.bap-13, 0x1.54p+25, 0x1.56p+25},
        {"e5m2", 32, -0x1.4p+4, 0x1.8p+10, 0x1.4p-13, -0x1p+15, -0x1.cp+14},
        {"tf32", 32, 0x1.79p+15, 0x1.cp+3, -0x1.c48p-14, 0x1.4ap+19, 0x1.49cp+19},
        {"binary32", 64, 4097, 4097, 0x1p-30, 16785408, 16785410},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        operation p = operation_make(MPSIM_OP_FMA, known[k].format, NULL, NULL, NULL, 0);
        const oracle_format *of = p.oracle.result;
        const uint64_t a = code_of(of, known[k].a), b = code_of(of, known[k].b);
        const uint64_t c = code_of(of, known[k].c), right = code_of(of, known[k].right);
        unsigned flags;
        ck_assert_uint_eq(oracle_arith_apply(&p.oracle, a, b, c, 0, &flags), right);
        ck_assert_uint_eq(oracle_arith_mpfr(&p.oracle, a, b, c, 0, &flags), right);
        ck_assert_msg(mpsim_arith_apply(&p.lib, a, b, c, 0, NULL) == right, "%s, row %zu", known[k].format, k);
        ck_assert_uint_eq(twice(&p, a, b, c, known[k].through), code_of(of, known[k].wrong));
    }
    /* bf16 by codes: 0x2a20 * 0x51a6 + 0x9359 is 0x3c4f, not 0x3c50 */
    operation p = operation_make(MPSIM_OP_FMA, "bf16", NULL, NULL, NULL, 0);
    unsigned flags;
    ck_assert_uint_eq(oracle_arith_apply(&p.oracle, 0x2a20, 0x51a6, 0x9359, 0, &flags), 0x3c4f);
    ck_assert_uint_eq(mpsim_arith_apply(&p.lib, 0x2a20, 0x51a6, 0x9359, 0, NULL), 0x3c4f);
    ck_assert_uint_eq(twice(&p, 0x2a20, 0x51a6, 0x9359, 32), 0x3c50);
}

static uint64_t odd_of(int bits, uint64_t *random)
{
    return bits <= 1 ? 1 : ((test_random(random) >> (64 - bits)) | (uint64_t)1 << (bits - 1) | 1);
}

static int between(int low, int high, uint64_t *random)
{
    return low + (int)(test_random(random) % (uint64_t)(high - low + 1));
}

static int in_range(const oracle_format *of, double y)
{
    return fabs(y) <= of->max && (y == 0 || ilogb(y) >= of->emin);
}

/* The exact sum lies beside a midpoint of the result's format, and misses it by less than an
 * intermediate of `width` bits can tell:
 *
 *   kind 0  the product is the midpoint: an odd integer of p + 1 bits, times a power of two; c
 *           is smaller by 2^-(25 or 54) or more
 *   kind 1  c is a number of p bits with unit u, the product is u / 2 (1 - j^2 4^(1 - p)), from
 *           the factors 1 + j 2^(1 - p) and 1 - j 2^(1 - p), p those of a and b
 *
 * Returns 0 if the formats have no room for it. */
static int build(const operation *op, int width, int kind, double y[3], uint64_t *random)
{
    const oracle_format *const *of = op->oracle.operand;
    const oracle_format *to = op->oracle.result;
    const int p = to->precision, gap = width == 64 ? 55 : 26;
    double sign = test_random(random) >> 63 ? 1 : -1;
    if (kind == 0) {
        int k = between(2, p - 1, random);
        if (p + 1 - k > of[1]->precision)
            k = p + 1 - of[1]->precision;
        if (k > of[0]->precision)
            k = of[0]->precision;
        if (p + 1 - k > of[1]->precision)
            return 0;
        uint64_t m, n;
        do { /* 2^(p-1) < m n < 2^(p+1): until it has p + 1 bits */
            m = odd_of(k, random);
            n = odd_of(p + 1 - k, random);
        } while (m * n >> p == 0);
        const int top = ilogb(to->max) - 1;
        int low = ilogb(oracle_magnitude(of[2], 1)) + gap;
        low = low > to->emin ? low : to->emin;
        if (low > top)
            return 0;
        const int e = between(low, top, random); /* of the product */
        const int ea = e / 2 - between(0, 2, random), eb = e - ea;
        y[0] = ldexp((double)m, ea - k + 1);
        y[1] = ldexp((double)n, eb - p + k);
        const int least = ilogb(oracle_magnitude(of[2], 1)), most = e - gap;
        const int ec = between(least > most - 40 ? least : most - 40, most, random);
        y[2] = sign * ldexp((double)odd_of(1, random), ec);
    } else {
        const int q = of[0]->precision < of[1]->precision ? of[0]->precision : of[1]->precision;
        const double j = between(1, q > 6 ? 3 : 1, random);
        const int e = between(to->emin + p + 1, ilogb(to->max) - 1, random); /* of c */
        const int h = e - p, ea = h / 2, eb = h - ea;
        y[0] = ldexp(1 + ldexp(j, 1 - q), ea);
        y[1] = ldexp(1 - ldexp(j, 1 - q), eb);
        y[2] = sign * ldexp((double)odd_of(p, random), e - p + 1);
    }
    if (test_random(random) >> 63)
        y[0] = -y[0];
    return in_range(of[0], y[0]) && in_range(of[1], y[1]) && fabs(y[2]) <= of[2]->max;
}

/* Each row must meet results that two roundings get wrong, or the operands prove nothing. */
TEST(operands_built_against_double_rounding)
{
    static const struct {
        const char *result, *a, *c;
        int through;
    } rows[] = {
        {"fp16", "fp16", "fp16", 32},
        {"bf16", "bf16", "bf16", 32},
        {"tf32", "tf32", "tf32", 32},
        {"e5m2", "e5m2", "e5m2", 32},
        {"e4m3", "e4m3", "binary32", 32},
        {"fp16", "fp16", "binary32", 32},
        {"e5m2", "e4m3", "bf16", 32},
        {"bf16", "bf16", "bf16", 64},
        {"tf32", "tf32", "tf32", 64},
        {"binary32", "binary32", "binary32", 64},
        {"binary32", "binary32", "binary64", 64},
        {"e4m3", "fp16", "binary32", 64},
        {"e5m2", "e5m2", "binary64", 64},
    };
    uint64_t random = test_seed() + 4;
    tally t = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        operation p = operation_make(MPSIM_OP_FMA, rows[i].result, rows[i].a, rows[i].a, rows[i].c, 0);
        size_t broken = 0, built = 0;
        for (size_t k = 0; k < test_scaled(4000); k++) {
            double y[3];
            uint64_t x[3];
            if (!build(&p, rows[i].through, (int)(k % 2), y, &random))
                continue;
            for (int n = 0; n < 3; n++)
                x[n] = code_of(p.oracle.operand[n], y[n]);
            tally_modes(&t, &p, x[0], x[1], x[2], k);
            operation_mode(&p, MPSIM_ROUND_NEAREST_EVEN);
            unsigned flags;
            const uint64_t want = oracle_arith_apply(&p.oracle, x[0], x[1], x[2], 0, &flags);
            broken += want != twice(&p, x[0], x[1], x[2], rows[i].through);
            built++;
        }
        printf("# %s * %s + %s -> %s: through binary%d %zu of %zu are wrong\n", rows[i].a, rows[i].a, rows[i].c,
               rows[i].result, rows[i].through, broken, built);
        ck_assert_msg(broken * 5 > built && built > 100, "%s through binary%d: %zu of %zu", rows[i].result,
                      rows[i].through, broken, built);
    }
    tally_passed(&t);
}

TEST_MAIN("arith-fma");
