/* t-stochastic.c -- stochastic rounding: exact probabilities, fixed consumption of bits.
 *
 * P3109 interim report 4.0, 4.7.4: with N random bits a number whose fraction is nu rounds
 * away for exactly floor(nu 2^N) (A), floor(nu 2^N + 1/2) (B) or the nearest-even integer of
 * nu 2^N (C) of the 2^N draws. The tests compute these from nu = k / 2^m in integers. */
#include <mpsim/isa.h>
#include <mpsim/round.h>

#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A = MPSIM_ROUND_STOCHASTIC_A, B = MPSIM_ROUND_STOCHASTIC_B, C = MPSIM_ROUND_STOCHASTIC_C };

/* ---- counts ---- */

/* How many of 2^n draws round away, for nu = k / 2^m, k < 2^m, m < 64, n <= 32. */
static uint64_t count_away(int mode, uint64_t k, int m, int n)
{
    if (m <= n) /* nu 2^n is an integer */
        return k << (n - m);
    const int drop = m - n;
    const uint64_t whole = k >> drop, rest = k & (((uint64_t)1 << drop) - 1);
    const uint64_t half = (uint64_t)1 << (drop - 1);
    if (mode == A)
        return whole;
    if (mode == B)
        return whole + (rest >= half);
    return whole + (rest > half || (rest == half && whole % 2 == 1));
}

CASE("counts", 20);

/* The table of the reference, N = 4: what the function above must reproduce, too. */
TEST(counts_of_the_reference_table)
{
    static const struct {
        uint64_t k;
        int m;
        uint64_t want[3];
    } rows[] = {
        {1, 6, {0, 0, 0}},  {1, 5, {0, 1, 0}}, {3, 6, {0, 1, 1}},     {1, 4, {1, 1, 1}},
        {31, 6, {7, 8, 8}}, {1, 1, {8, 8, 8}}, {31, 5, {15, 16, 16}}, {63, 6, {15, 16, 16}},
    };
    const mpsim_format *f = mpsim_format_find("e4m3");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int mode = A; mode <= C; mode++) {
            const float x = 1 + ldexpf((float)rows[i].k, -3 - rows[i].m); /* between 1 and 1.125 */
            mpsim_rounding r;
            uint64_t away = 0;
            mpsim_rounding_init(&r, (mpsim_round_mode)mode);
            r.sr_bits = 4;
            for (uint32_t draw = 0; draw < 16; draw++)
                away += mpsim_encode_f32(f, &r, x, draw << 28 | 0x0fffffff, NULL) == 0x39;
            ck_assert_msg(away == rows[i].want[mode - A], "%s nu=%d/2^%d: expected %d, got %d",
                          mpsim_round_mode_name(r.mode), (int)rows[i].k, rows[i].m, (int)rows[i].want[mode - A],
                          (int)away);
            ck_assert_uint_eq(count_away(mode, rows[i].k, rows[i].m, 4), rows[i].want[mode - A]);
        }
}

/* ---- points between two codes ---- */

/* A format as this file needs it, typed from the standards: significand bits, exponent of
 * the smallest normal number. */
typedef struct grid {
    const char *name;
    int mbits, emin;
    uint64_t sign;
} grid;

static const grid grids[] = {
    {"fp16", 10, -14, 0x8000}, {"bf16", 7, -126, 0x8000},    {"e4m3", 3, -6, 0x80},
    {"e5m2", 2, -14, 0x80},    {"e4m3fnuz", 3, -7, 0x80},    {"e2m1", 1, 0, 0x8},
    {"e3m2", 2, -2, 0x20},     {"binary8p4se", 3, -7, 0x80}, {"binary8p1se", 0, -63, 0x80},
};
enum { GRIDS = sizeof grids / sizeof grids[0] };

/* The first mismatch of a test. */
typedef struct report {
    size_t compared, wrong;
    char first[400];
} report;

#define ck_no_mismatch(p) ck_assert_msg((p)->wrong == 0, "%zu of %zu wrong; %s", (p)->wrong, (p)->compared, (p)->first)

/* One input with its two candidates: x = (S + k / 2^m) 2^q rounds to code `low` or to
 * `high`, in the magnitude. */
typedef struct point {
    double x;
    uint64_t low, high, sign;
    uint64_t k;
    int m;
} point;

static void check_draw(report *p, const mpsim_format *f, const mpsim_rounding *r, const point *at, int negative,
                       int narrow, uint32_t draw, uint64_t away)
{
    const int n = r->sr_bits;
    /* What follows the n bits must not matter. */
    const uint32_t junk = (draw * 0x9e3779b9u ^ 0x5a5a5a5au) >> (n - 1) >> 1;
    const uint32_t word = draw << (32 - n) | junk;
    const double x = negative ? -at->x : at->x;
    const int up = draw >= ((uint64_t)1 << n) - away;
    const uint64_t want = (up ? at->high : at->low) | (negative ? at->sign : 0);
    const uint64_t got = narrow ? mpsim_encode_f32(f, r, (float)x, word, NULL) : mpsim_encode_f64(f, r, x, word, NULL);
    p->compared++;
    if (got != want && p->wrong++ == 0)
        snprintf(p->first, sizeof p->first,
                 "%s %s:%d x=%a (%#018" PRIx64 ", as %s) nu=%" PRIu64 "/2^%d R=%" PRIu32 " word %08" PRIx32
                 ": expected %#" PRIx64 ", got %#" PRIx64,
                 f->name, mpsim_round_mode_name(r->mode), n, x, bits_of_f64(x), narrow ? "f32" : "f64", at->k, at->m,
                 draw, word, want, got);
}

/* All draws of up to `exhaustive` bits; for more bits those around the threshold. */
static void check_point(report *p, const mpsim_format *f, const point *at, int exhaustive)
{
    const int has_f32 = (double)(float)at->x == at->x;
    for (int mode = A; mode <= C; mode++)
        for (int n = 1; n <= 32; n++) {
            mpsim_rounding r;
            mpsim_rounding_init(&r, (mpsim_round_mode)mode);
            r.sr_bits = (uint8_t)n;
            const uint64_t away = count_away(mode, at->k, at->m, n);
            const uint64_t draws = (uint64_t)1 << n, edge = draws - away;
            for (int variant = 0; variant < 4; variant++) {
                const int negative = variant & 1, narrow = variant >> 1;
                if (narrow && !has_f32)
                    continue;
                if (n <= exhaustive)
                    for (uint32_t draw = 0; draw < draws; draw++)
                        check_draw(p, f, &r, at, negative, narrow, draw, away);
                const uint64_t some[] = {0, edge - 1, edge, edge + 1, draws / 2, draws - 1};
                for (size_t i = 0; n > exhaustive && i < sizeof some / sizeof some[0]; i++)
                    if (some[i] < draws)
                        check_draw(p, f, &r, at, negative, narrow, (uint32_t)some[i], away);
            }
        }
}

/* Fractions nu = k / 2^m: multiples of small powers of two, one bit beyond any number of
 * random bits, one bit below and above the half of an integer. */
static const struct {
    uint64_t k;
    int m;
} fractions[] = {
    {0, 1},
    {1, 1},
    {1, 2},
    {3, 2},
    {1, 3},
    {7, 3},
    {1, 5},
    {3, 5},
    {21, 5},
    {31, 5},
    {1, 8},
    {0x7f, 8},
    {0x81, 8},
    {0xff, 8},
    {1, 13},
    {0xfff, 13},
    {0x1001, 13},
    {0x1fff, 13},
    {0x155, 10},
    {1, 20},
    {0xfffff, 20},
    {0x80001, 20},
    {0x7ffff, 20},
    {0xaaaaa, 20},
    {1, 32},
    {0xffffffff, 32},
    {0x80000000, 32},
    {0x7fffffff, 32},
    {1, 33},
    {3, 33},
    {0x1ffffffff, 33},
    {1, 34},
    {3, 34},
    {0x200000001, 34},
    {1, 40},
    {0xffffffffff, 40},
};
enum { FRACTIONS = sizeof fractions / sizeof fractions[0] };

/* Significands S: 0 and 1 and the last subnormal one (the carry into the normal range); the
 * first and the last normal one (the carry into the next binade), at several exponents. */
static size_t points_of(point *out, const grid *g, uint64_t k, int m)
{
    const uint64_t hidden = (uint64_t)1 << g->mbits;
    const struct {
        uint64_t s;
        int binade;
    } places[] = {
        {0, 0}, {1, 0}, {hidden - 1, 0}, {hidden, 0}, {2 * hidden - 1, 0}, {hidden, 1}, {2 * hidden - 1, 1},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const uint64_t s = places[i].s;
        const int q = g->emin - g->mbits + places[i].binade;
        const uint64_t low = ((uint64_t)places[i].binade << g->mbits) + s;
        out[n].x = ldexp((double)s + ldexp((double)k, -m), q);
        out[n].low = low;
        out[n].high = low + 1;
        out[n].sign = g->sign;
        out[n].k = k;
        out[n++].m = m;
    }
    return n;
}

TESTS(counts_are_exact_for_up_to_12_random_bits, GRIDS)
{
    const grid *g = &grids[_i];
    const mpsim_format *f = mpsim_format_find(g->name);
    const int one_zero = f->zero == MPSIM_ZERO_UNSIGNED;
    report p = {0};
    ck_assert_msg(f != NULL, "no format %s", g->name);
    /* One point in nine sees every draw of up to 12 bits, the others of up to 6 bits. */
    for (size_t i = 0; i < FRACTIONS; i++) {
        point points[8];
        const size_t n = points_of(points, g, fractions[i].k, fractions[i].m);
        for (size_t j = 0; j < n; j++) {
            if (one_zero && points[j].low == 0)
                continue; /* below */
            check_point(&p, f, &points[j], (i + j) % 9 == (size_t)_i || test_expensive() ? 12 : 6);
        }
    }
    ck_no_mismatch(&p);
    ck_assert_uint_gt(p.compared, 500000);
}

/* Formats with one zero: a negative number that does not round away from it gives code 0. */
TEST(negative_numbers_beside_the_only_zero)
{
    report p = {0};
    const mpsim_format *f = mpsim_format_find("e4m3fnuz");
    for (int mode = A; mode <= C; mode++)
        for (uint32_t draw = 0; draw < 256; draw++) {
            mpsim_rounding r;
            mpsim_rounding_init(&r, (mpsim_round_mode)mode);
            r.sr_bits = 8;
            const uint64_t got = mpsim_encode_f32(f, &r, -0.625f * 0x1p-10f, draw << 24, NULL);
            const uint64_t want = draw >= 256 - 160 ? 0x81 : 0;
            p.compared++;
            if (got != want && p.wrong++ == 0)
                snprintf(p.first, sizeof p.first, "mode %d R=%" PRIu32 ": expected %#" PRIx64 ", got %#" PRIx64, mode,
                         draw, want, got);
        }
    ck_no_mismatch(&p);
}

/* E8M0 has no zero and one binade per code: the fraction of 2^e (1 + nu) is nu; below 2^-127
 * it is X / 2^-127, and both results are 2^-127. */
TEST(powers_of_two_round_with_the_same_counts)
{
    const mpsim_format *f = mpsim_format_find("e8m0");
    report p = {0};
    for (size_t i = 0; i < FRACTIONS; i++)
        for (int e = -127; e <= 126; e += 23) {
            const double nu = ldexp((double)fractions[i].k, -fractions[i].m);
            const point at = {ldexp(1 + nu, e), (uint64_t)(e + 127), (uint64_t)(e + 128), 0,
                              fractions[i].k,   fractions[i].m};
            for (int mode = A; mode <= C; mode++)
                for (int n = 1; n <= 8; n++) {
                    mpsim_rounding r;
                    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
                    r.sr_bits = (uint8_t)n;
                    for (uint32_t draw = 0; draw < 1u << n; draw++)
                        check_draw(&p, f, &r, &at, 0, 0, draw, count_away(mode, at.k, at.m, n));
                }
        }
    for (uint32_t draw = 0; draw < 256; draw++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_A);
        r.sr_bits = 8;
        if (mpsim_encode_f64(f, &r, 0x1.5p-128, draw << 24, NULL) != 0)
            p.wrong++;
        r.no_zero = MPSIM_NO_ZERO_NAN; /* 168 of 256 draws round away, to 2^-127 */
        if (mpsim_encode_f64(f, &r, 0x1.5p-128, draw << 24, NULL) != (draw >= 256 - 168 ? 0u : 0xffu))
            p.wrong++;
    }
    ck_no_mismatch(&p);
}

/* x * scale is what is rounded: with scale 3 the fraction is that of 3 x. */
TEST(scaled_numbers_round_with_the_fraction_of_the_product)
{
    const mpsim_format *f = mpsim_format_find("bf16");
    report p = {0};
    for (uint64_t j = 0; j < 64; j++) {
        const uint64_t x = ((uint64_t)1 << 20) + 977 * j; /* 3 x in [2^21, 2^22): q = 14 */
        const uint64_t product = 3 * x, k = product & 0x3fff;
        const uint64_t low = ((uint64_t)(21 + 127) << 7) + (product >> 14) - 128;
        for (int mode = A; mode <= C; mode++)
            for (int n = 1; n <= 8; n++) {
                mpsim_rounding r;
                mpsim_rounding_init(&r, (mpsim_round_mode)mode);
                r.sr_bits = (uint8_t)n;
                r.scale = 3;
                const point at = {(double)x, low, low + 1, 0x8000, k, 14};
                for (uint32_t draw = 0; draw < 1u << n; draw++)
                    for (int v = 0; v < 4; v++)
                        check_draw(&p, f, &r, &at, v & 1, v >> 1, draw, count_away(mode, k, 14, n));
            }
    }
    ck_no_mismatch(&p);
}

/* ---- the ends of the range, and what is not a number between two others ---- */

CASE("ends", 20);

/* Above the largest number the candidate is the number that would follow, and reaching it is
 * overflow: infinity just as often as the fraction says, always beyond one unit. */
TEST(overflow_has_the_probability_of_the_fraction)
{
    const mpsim_format *half = mpsim_format_find("fp16"), *f8 = mpsim_format_find("e4m3");
    report p = {0};
    for (size_t i = 0; i < FRACTIONS; i++) {
        if (fractions[i].m > 36) /* x would not be a binary64 number */
            continue;
        const double nu = ldexp((double)fractions[i].k, -fractions[i].m);
        const point h = {65504 + 32 * nu, 0x7bff, 0x7c00, 0x8000, fractions[i].k, fractions[i].m};
        const point n = {448 + 32 * nu, 0x7e, 0x7f, 0x80, fractions[i].k, fractions[i].m};
        check_point(&p, half, &h, 6);
        check_point(&p, f8, &n, 6);
    }
    for (int mode = A; mode <= C; mode++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, (mpsim_round_mode)mode);
        for (uint32_t j = 0; j < 512; j++) {
            const uint32_t word = j * 0x00804021u;
            unsigned flags;
            r.sr_bits = (uint8_t)(1 + j % 32);
            r.overflow = MPSIM_OVERFLOW_INF;
            if (mpsim_encode_f32(half, &r, 65536, word, &flags) != 0x7c00 ||
                flags != (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW))
                p.wrong++;
            r.overflow = MPSIM_OVERFLOW_MAX;
            if (mpsim_encode_f32(half, &r, 65535, word, &flags) != 0x7bff)
                p.wrong++;
            if (mpsim_encode_f32(f8, &r, -1e30f, word, &flags) != 0xfe)
                p.wrong++;
        }
    }
    ck_no_mismatch(&p);
}

/* No draw moves an exact number, an infinity or a NaN: noise added to the bits of an
 * infinity gave NaN elsewhere. All codes of up to 16 bits. */
TEST(exact_numbers_infinities_and_nans_do_not_move)
{
    static const uint32_t words[] = {0, 0xffffffff, 0x80000000, 0x7fffffff, 0x9e3779b9};
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->bits > 16)
            continue;
        for (uint64_t code = 0; code < (uint64_t)1 << f->bits; code++) {
            const double v = mpsim_decode(f, code);
            for (size_t k = 0; k < 15; k++) {
                mpsim_rounding r;
                unsigned flags;
                mpsim_rounding_init(&r, (mpsim_round_mode)(A + (int)k % 3));
                r.sr_bits = (uint8_t)(1 + (code + k) % 32);
                const uint64_t got = mpsim_encode_f64(f, &r, v, words[k / 3], &flags);
                p.compared++;
                if ((isnan(v) ? mpsim_classify(f, got) != MPSIM_CLASS_NAN : got != code) ||
                    (flags & (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW)))
                    if (p.wrong++ == 0)
                        snprintf(p.first, sizeof p.first,
                                 "%s %s:%d code %#" PRIx64 " = %a word %08" PRIx32 ": got %#" PRIx64, f->name,
                                 mpsim_round_mode_name(r.mode), r.sr_bits, code, v, words[k / 3], got);
            }
        }
    }
    ck_no_mismatch(&p);
}

/* ---- frequencies ---- */

/* n draws with probability P of rounding away: their number is binomial, with mean n P and
 * standard deviation sqrt(n P (1 - P)), so that the frequency has the standard deviation
 * sqrt(P (1 - P) / n). Five of them are allowed: by the normal approximation a fair generator
 * leaves them in less than one of a million rows. The seeds are fixed, so nothing is left to
 * chance. All probabilities here are multiples of 2^-32, so that A, B and C agree. */
static const struct frequency {
    const char *format;
    double x, low, high, p;
} frequencies[] = {
    {"bf16", 1 + 0x1p-9, 1, 1 + 0x1p-7, 0.25},
    {"bf16", 1 + 0x1p-8, 1, 1 + 0x1p-7, 0.5},
    {"bf16", 1 + 0x1p-17, 1, 1 + 0x1p-7, 0x1p-10},
    {"bf16", 1 + 0x1p-23, 1, 1 + 0x1p-7, 0x1p-16},
    {"fp16", 1 + 0x1p-12, 1, 1 + 0x1p-10, 0.25},
    {"e4m3", 1 + 0x1p-5, 1, 1.125, 0.25},
    {"e5m2", 1 + 0x1p-4, 1, 1.25, 0.25},
    {"fp16", 0x1p-26, 0, 0x1p-24, 0.25},
    {"fp16", 0x1.cp-24, 0x1p-24, 0x1p-23, 0.75},
    {"fp16", 0x1p-40, 0, 0x1p-24, 0x1p-16},
    {"fp16", 0x1.8p-37, 0, 0x1p-24, 0x1.8p-13},
    {"e4m3", 0x1p-11, 0, 0x1p-9, 0.25},
    {"e5m2", 0x1p-30, 0, 0x1p-16, 0x1p-14},
    {"e5m2", 0x1.2p-14, 0x1p-14, 0x1.4p-14, 0.5}, /* 0x38900000 */
    {"e2m1", 2.25, 2, 3, 0.25},                   /* FP4 as NVFP4 recipes use it */
    {"e2m1", 0.125, 0, 0.5, 0.25},
    {"bf16", -(1 + 0x1p-9), -1, -(1 + 0x1p-7), 0.25},
    {"fp16", 1.9998779296875, 0x1.ffcp+0, 2, 0.875}, /* across the binade: 2 - 2^-13 */
    {"fp16", 2, 2, 2, 0},
    {"e4m3", 448, 448, 448, 0},
};
enum { FREQUENCIES = sizeof frequencies / sizeof frequencies[0], DRAWS = 1 << 20, CHUNK = 1 << 12 };

CASE("frequencies", 20);

TESTS(frequencies_are_the_probabilities, FREQUENCIES)
{
    const struct frequency *q = &frequencies[_i];
    const mpsim_format *f = mpsim_format_find(q->format);
    static double x[CHUNK], y[CHUNK], z[CHUNK];
    uint64_t up = 0, both = 0, neither = 0;
    mpsim_rng rng = {0x5eed, (uint64_t)_i, 0};
    mpsim_rounding r;
    for (size_t i = 0; i < CHUNK; i++)
        x[i] = q->x;
    mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_C);
    for (; rng.index < DRAWS; rng.index += CHUNK) {
        ck_assert(mpsim_round_array_f64(f, &r, &rng, y, x, CHUNK, NULL) == MPSIM_OK);
        for (size_t i = 0; i < CHUNK; i++) {
            neither += y[i] != q->low && y[i] != q->high;
            up += y[i] != q->low;
        }
        for (size_t i = 0; i < CHUNK; i += 2)
            both += y[i] != q->low && y[i + 1] != q->low;
        if (rng.index == 0)
            for (int mode = A; mode <= B; mode++) {
                mpsim_rounding other = r;
                other.mode = (uint8_t)mode;
                ck_assert(mpsim_round_array_f64(f, &other, &rng, z, x, CHUNK, NULL) == MPSIM_OK);
                ck_assert_mem_eq(y, z, sizeof y);
            }
    }
    ck_assert_uint_eq(neither, 0);
    const double n = DRAWS, got = (double)up / n;
    ck_assert_msg(fabs(got - q->p) <= 5 * sqrt(q->p * (1 - q->p) / n),
                  "%s x=%a: P = %.9g, but %" PRIu64 " of %d draws (%.9g) rounded away", q->format, q->x, q->p, up,
                  DRAWS, got);
    /* Neighbours are independent: pairs of them round away together with P^2. */
    const double p2 = q->p * q->p, pairs = n / 2, together = (double)both / pairs;
    ck_assert_msg(fabs(together - p2) <= 5 * sqrt(p2 * (1 - p2) / pairs), "%s x=%a: pairs %.9g, expected %.9g",
                  q->format, q->x, together, p2);
}

/* ---- consumption ---- */

enum { LENGTH = 3001 };

/* Values of every kind: what an element consumes must not depend on it. */
static void mixed_values(float x[LENGTH], uint64_t *state)
{
    static const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                       0x7f800001, 0x3f800000, 1,          0x7f7fffff};
    for (size_t i = 0; i < LENGTH; i++) {
        const uint64_t w = test_random(state);
        if (w % 4 == 0)
            x[i] = f32_of_bits(special[(w >> 8) % (sizeof special / sizeof special[0])]);
        else /* exponents from 2^-27 to 2^20 */
            x[i] = f32_of_bits((uint32_t)(w >> 32 & 0x807fffff) | (100 + (uint32_t)(w >> 8) % 47) << 23);
    }
}

static const uint64_t first_indices[] = {
    0, 1, 2, 3, 0xfffffff0u, 0x3fffffff0u, 0x7fffffffffffff01u, 0xfffffffffffffff3u};
enum { FIRST_INDICES = sizeof first_indices / sizeof first_indices[0] };

CASE("words", 20);

/* Element i of an array takes the word of rng.index + i, whatever is around it. */
TESTS(one_word_per_element_by_its_index, test_isa_count())
{
    static float x[LENGTH];
    static uint16_t codes[LENGTH];
    const mpsim_format *f = mpsim_format_find("fp16");
    uint64_t state = test_seed();
    report p = {0};
    if (!test_isa_use((size_t)_i))
        return;
    for (size_t t = 0; t < FIRST_INDICES * 3; t++) {
        mpsim_rounding r;
        const mpsim_rng rng = {test_random(&state), test_random(&state), first_indices[t / 3]};
        mpsim_rounding_init(&r, (mpsim_round_mode)(A + (int)(t % 3)));
        r.sr_bits = (uint8_t)(1 + test_random(&state) % 32);
        if (t % 2)
            r.sr_bits = 32; /* whose draws are added as they are */
        mixed_values(x, &state);
        ck_assert(mpsim_encode_array_f32(f, &r, &rng, codes, x, LENGTH, NULL) == MPSIM_OK);
        for (size_t i = 0; i < LENGTH; i++) {
            const uint32_t word = mpsim_rng_word(rng.seed, rng.stream, rng.index + i);
            const uint64_t want = mpsim_encode_f32(f, &r, x[i], word, NULL);
            p.compared++;
            if (codes[i] != want && p.wrong++ == 0)
                snprintf(p.first, sizeof p.first,
                         "fp16 %s:%d seed %#" PRIx64 " stream %#" PRIx64 " index %#" PRIx64 "+%zu x=%a (%#010" PRIx32
                         "): expected %#" PRIx64 ", got %#x",
                         mpsim_round_mode_name(r.mode), r.sr_bits, rng.seed, rng.stream, rng.index, i, (double)x[i],
                         bits_of_f32(x[i]), want, codes[i]);
        }
    }
    ck_no_mismatch(&p);
}

/* The four array functions, in one call and in many, with the index moved along. */
TESTS(any_split_over_calls_gives_the_same_bits, test_isa_count())
{
    static float x[LENGTH], y[2][LENGTH];
    static double x64[LENGTH], y64[2][LENGTH];
    static unsigned char codes[2][LENGTH], codes64[2][LENGTH];
    const mpsim_format *f = mpsim_format_find("e5m2");
    uint64_t state = test_seed() + 1;
    if (!test_isa_use((size_t)_i))
        return;
    for (size_t t = 0; t < 60; t++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, (mpsim_round_mode)(A + (int)(t % 3)));
        r.sr_bits = (uint8_t)(1 + t % 32);
        const mpsim_rng start = {t, ~(uint64_t)t, first_indices[t % FIRST_INDICES]};
        mpsim_counts counts[2] = {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}};
        mixed_values(x, &state);
        for (size_t i = 0; i < LENGTH; i++)
            x64[i] = (double)x[i];
        for (int part = 0; part < 2; part++) { /* 0: in one call, 1: in pieces */
            mpsim_rng rng = start;
            for (size_t i = 0; i < LENGTH;) {
                size_t n = LENGTH - i;
                if (part && n > 1) {
                    const uint64_t w = test_random(&state);
                    n = 1 + (w >> 8) % (w % 3 == 0 ? 5 : w % 3 == 1 ? 300 : n);
                    n = n < LENGTH - i ? n : LENGTH - i;
                }
                rng.index = start.index + i;
                const mpsim_status status[4] = {
                    mpsim_encode_array_f32(f, &r, &rng, codes[part] + i, x + i, n, &counts[part]),
                    mpsim_round_array_f32(f, &r, &rng, y[part] + i, x + i, n, NULL),
                    mpsim_encode_array_f64(f, &r, &rng, codes64[part] + i, x64 + i, n, NULL),
                    mpsim_round_array_f64(f, &r, &rng, y64[part] + i, x64 + i, n, NULL)};
                ck_assert(!status[0] && !status[1] && !status[2] && !status[3]); /* MPSIM_OK */
                i += n;
            }
        }
        ck_assert_mem_eq(codes[0], codes[1], sizeof codes[0]);
        ck_assert_mem_eq(codes[0], codes64[0], sizeof codes[0]);
        ck_assert_mem_eq(codes64[0], codes64[1], sizeof codes64[0]);
        ck_assert_mem_eq(y[0], y[1], sizeof y[0]);
        ck_assert_mem_eq(y64[0], y64[1], sizeof y64[0]);
        ck_assert_mem_eq(&counts[0], &counts[1], sizeof counts[0]);
    }
}

/* Changing the value of some elements leaves the others as they are: overflows, zeros and
 * NaNs consume no more and no less than other numbers. */
TEST(values_do_not_shift_the_draws_of_others)
{
    static float x[LENGTH], y[LENGTH], z[LENGTH];
    static const float special[] = {0, -0.0f, INFINITY, NAN, 1e30f, 1, 1e-30f};
    const mpsim_format *f = mpsim_format_find("e4m3");
    const mpsim_rng rng = {1, 2, 3};
    mpsim_rounding r;
    size_t wrong = 0, moved = 0;
    mpsim_rounding_init(&r, MPSIM_ROUND_STOCHASTIC_C);
    for (size_t i = 0; i < LENGTH; i++)
        x[i] = 1 + (float)i / LENGTH;
    ck_assert(mpsim_round_array_f32(f, &r, &rng, y, x, LENGTH, NULL) == MPSIM_OK);
    for (size_t i = 0; i < LENGTH; i += 3)
        x[i] = special[i / 3 % 7];
    ck_assert(mpsim_round_array_f32(f, &r, &rng, z, x, LENGTH, NULL) == MPSIM_OK);
    for (size_t i = 0; i < LENGTH; i++) {
        wrong += i % 3 != 0 && bits_of_f32(y[i]) != bits_of_f32(z[i]);
        moved += bits_of_f32(y[i]) != bits_of_f32(z[i]);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(moved, LENGTH / 5);
}

/* Halfway numbers: each draw is one fair bit, so two independent arrays agree in half of the
 * n places, with the standard deviation sqrt(n) / 2; five of them are allowed. */
TEST(seeds_streams_and_indices_give_different_draws)
{
    enum { N = 1 << 14 };
    static float x[N], y[5][N];
    static const mpsim_rng rngs[5] = {{1, 1, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, N}, {(uint64_t)1 << 32 | 1, 1, 0}};
    const mpsim_format *f = mpsim_format_find("bf16");
    mpsim_rounding r;
    for (int mode = A; mode <= C; mode++)
        for (int bits = 1; bits <= 32; bits += 31) {
            mpsim_rounding_init(&r, (mpsim_round_mode)mode);
            r.sr_bits = (uint8_t)bits;
            for (size_t i = 0; i < N; i++)
                x[i] = 1 + 0x1p-8f;
            for (int k = 0; k < 5; k++)
                ck_assert(mpsim_round_array_f32(f, &r, &rngs[k], y[k], x, N, NULL) == MPSIM_OK);
            for (int a = 0; a < 5; a++)
                for (int b = 0; b < a; b++) {
                    int same = 0;
                    for (size_t i = 0; i < N; i++)
                        same += y[a][i] == y[b][i];
                    ck_assert_msg(abs(same - N / 2) <= 5 * 64, "%s:%d: rng %d and %d agree in %d of %d",
                                  mpsim_round_mode_name(r.mode), bits, b, a, same, N);
                }
        }
}

/* Random numbers are taken by stochastic modes only, which then need an rng. */
TEST(only_stochastic_modes_need_an_rng)
{
    const mpsim_format *f = mpsim_format_find("e4m3");
    const float x = 1.0625f;
    unsigned char code = 0xaa;
    for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, (mpsim_round_mode)mode);
        const mpsim_status s = mpsim_encode_array_f32(f, &r, NULL, &code, &x, 1, NULL);
        ck_assert_int_eq(s, mode >= A ? MPSIM_EINVAL : MPSIM_OK);
        r.sr_bits = 0;
        ck_assert_int_eq(mpsim_rounding_check(&r), mode >= A ? MPSIM_EINVAL : MPSIM_OK);
        r.sr_bits = 33;
        ck_assert_int_eq(mpsim_rounding_check(&r), mode >= A ? MPSIM_EINVAL : MPSIM_OK);
        if (mode < A)
            for (uint32_t word = 1; word; word <<= 1) {
                const uint64_t with = mpsim_encode_f32(f, &r, x, word, NULL);
                ck_assert_uint_eq(with, mpsim_encode_f32(f, &r, x, 0, NULL));
            }
    }
}

TEST_MAIN("stochastic");
