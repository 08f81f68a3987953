/* t-peers.c -- conversions that other emulators, frameworks and compilers got wrong.
 *
 * Every row is a defect that was observed somewhere; the comment of its group says what goes
 * wrong. The right results are typed in from the standards. Rows about fused multiply-add
 * belong to the arithmetic module, and are not here. */
#include <mpsim/round.h>

#include "support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- reports ---- */

/* The first mismatch of a test, in words, and how many there are. */
typedef struct report {
    size_t wrong;
    char first[400];
} report;

__attribute__((format(printf, 2, 3))) static void note(report *p, const char *text, ...)
{
    va_list list;
    if (p->wrong++ == 0) {
        va_start(list, text);
        vsnprintf(p->first, sizeof p->first, text, list);
        va_end(list);
    }
}

#define ck_no_mismatch(p) ck_assert_msg((p)->wrong == 0, "%zu wrong; %s", (p)->wrong, (p)->first)

/* ---- short names for the tables below ---- */

enum {
    RNE = MPSIM_ROUND_NEAREST_EVEN, RNA = MPSIM_ROUND_NEAREST_AWAY,
    RTZ = MPSIM_ROUND_TOWARD_ZERO, RUP = MPSIM_ROUND_UP, RDN = MPSIM_ROUND_DOWN,
    ODD = MPSIM_ROUND_TO_ODD, SRA = MPSIM_ROUND_STOCHASTIC_A, SRB = MPSIM_ROUND_STOCHASTIC_B,
    SRC = MPSIM_ROUND_STOCHASTIC_C
};

static mpsim_format format_of(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "no format %s", name);
    return f;
}

static mpsim_rounding rounding_of(const char *preset, const mpsim_format *f, int mode)
{
    mpsim_rounding r;
    const mpsim_preset *p = mpsim_preset_find(preset);
    ck_assert_msg(p != NULL, "no preset %s", preset);
    mpsim_rounding_preset(&r, p, f);
    r.mode = (uint8_t)mode;
    return r;
}

/* The code of x, by the binary64 function and, if x is a binary32 number, by the binary32
 * function too; a difference between them is noted. */
static uint64_t encode(report *p, const mpsim_format *f, const mpsim_rounding *r, double x,
                       unsigned *flags)
{
    unsigned flags32;
    const uint64_t c = mpsim_encode_f64(f, r, x, 0, flags);
    if (fabs(x) <= (double)FLT_MAX && (double)(float)x == x) {
        const uint64_t c32 = mpsim_encode_f32(f, r, (float)x, 0, &flags32);
        if (c32 != c || flags32 != *flags)
            note(p, "%s %s x=%a: f64 gives %#" PRIx64 " (flags %u), f32 %#" PRIx64 " (flags %u)",
                 f->name, mpsim_round_mode_name(r->mode), x, c, *flags, c32, flags32);
    }
    return c;
}

/* One row: what x becomes. The value, as far as it is none of NaN, and the sign. */
typedef struct row {
    const char *format, *preset;
    int mode;
    double x, want;
} row;

static void check_rows(const row *rows, size_t n)
{
    report p = {0};
    for (size_t i = 0; i < n; i++) {
        const mpsim_format f = format_of(rows[i].format);
        const mpsim_rounding r = rounding_of(rows[i].preset, &f, rows[i].mode);
        unsigned flags;
        const uint64_t code = encode(&p, &f, &r, rows[i].x, &flags);
        const double got = mpsim_decode(&f, code);
        if (isnan(rows[i].want) ? !isnan(got) : bits_of_f64(got) != bits_of_f64(rows[i].want))
            note(&p, "%s %s %s x=%a (%#018" PRIx64 "): expected %a, got %a (code %#" PRIx64 ")",
                 f.name, rows[i].preset, mpsim_round_mode_name(r.mode), rows[i].x,
                 bits_of_f64(rows[i].x), rows[i].want, got, code);
    }
    ck_no_mismatch(&p);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof rows[0])

#define NOT_A_NUMBER ((double)NAN)
#define INFINITE     ((double)INFINITY)

/* ---- double rounding ----
 *
 * Rounding to an intermediate format first can land on a tie that the number itself is not. */

/* The number of significands where the detour through `via` differs from rounding binary32
 * to `to` at once, and the check that the direct way is right.
 *
 * In [1, 2) the ties of `to` are 1 + (2 j + 1) eps / 2; every difference lies within half a
 * unit of `via` around a tie, so that windows of a whole unit see all of them. */
static size_t detours_around_ties(report *p, const char *to_name, const char *via_name)
{
    const mpsim_format to = format_of(to_name), via = format_of(via_name);
    const mpsim_rounding r = rounding_of("ieee", &to, RNE);
    const int32_t window = 1 << (23 - via.mbits);
    size_t differ = 0;
    for (uint32_t j = 0; j < 1u << to.mbits; j++) {
        const uint32_t tie = 0x3f800000u + ((2 * j + 1) << (22 - to.mbits));
        const uint64_t one = mpsim_encode_f32(&to, &r, 1.0f, 0, NULL);
        for (int32_t d = -window; d <= window; d++) {
            const uint32_t u = tie + (uint32_t)d;
            const float x = f32_of_bits(u);
            const uint64_t want = one + j + (d > 0 || (d == 0 && j % 2 == 1));
            const uint64_t got = mpsim_encode_f32(&to, &r, x, 0, NULL);
            const uint64_t step = mpsim_encode_f32(&via, &r, x, 0, NULL);
            differ += mpsim_encode_f64(&to, &r, mpsim_decode(&via, step), 0, NULL) != got;
            if (got != want)
                note(p, "%s nearest-even x=%a (%#010" PRIx32 "): expected %#" PRIx64
                        ", got %#" PRIx64, to.name, (double)x, u, want, got);
        }
    }
    return differ;
}

START_TEST(f32_to_e5m2_does_not_pass_through_fp16)
{
    static const row rows[] = {
        {"e5m2", "ieee", RNE, 1.125 + 0x1p-12, 1.25}, /* 0x3f900800 */
        {"e5m2", "ieee", RNE, -(1.125 + 0x1p-12), -1.25},
        {"e5m2", "ieee", RNE, 1.125, 1.0},
        {"e5m2", "ieee", RNE, 1.375 - 0x1p-12, 1.25},
        {"e5m2", "ieee", RNA, 1.125 - 0x1p-12, 1.0},
    };
    report p = {0};
    CHECK_ROWS(rows);
    ck_assert_uint_eq(detours_around_ties(&p, "e5m2", "fp16"), 16384);
    ck_no_mismatch(&p);
}
END_TEST

START_TEST(f32_to_e4m3_does_not_pass_through_bf16)
{
    static const row rows[] = {
        {"e4m3", "ieee", RNE, 1.31640625, 1.375},
        {"e4m3", "ieee", RNE, -1.31640625, -1.375},
        {"e4m3", "ieee", RNE, 1.3125, 1.25},
    };
    report p = {0};
    CHECK_ROWS(rows);
    ck_assert_uint_eq(detours_around_ties(&p, "e4m3", "bf16"), 262144);
    ck_no_mismatch(&p);
}
END_TEST

START_TEST(f64_to_fp16_does_not_pass_through_f32)
{
    static const row rows[] = {
        {"fp16", "ieee", RNE, 0x1.0020000000001p+0, 1.0009765625},
        {"fp16", "ieee", RNE, 0x1.0020000000000p+0, 1.0},
        {"fp16", "ieee", RNE, 0x1.0060000000000p+0, 0x1.008p+0},
        {"fp16", "ieee", RNE, 0x1.005ffffffffffp+0, 0x1.004p+0},
        {"fp16", "ieee", RNE, 0x1.0000000000001p-25, 0x1p-24},
        {"fp16", "ieee", RNA, 0x1.fffffffffffffp-26, 0.0},
        {"bf16", "ieee", RNE, 0x1.0100000000001p+0, 0x1.02p+0},
    };
    CHECK_ROWS(rows);
    /* The detour does go wrong here: the row is sharp. */
    const mpsim_format f = format_of("fp16");
    const mpsim_rounding r = rounding_of("ieee", &f, RNE);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, (float)0x1.0020000000001p+0, 0, NULL), 0x3c00);
}
END_TEST

/* The same for every format that is coarser than binary32 by two bits or more: just above
 * and just below the two ties next to 1, by less than binary32 can tell. */
START_TEST(no_format_rounds_f64_twice)
{
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        const mpsim_rounding r = rounding_of("ieee", f, RNE);
        const double eps = mpsim_format_epsilon(f);
        if (f->mbits > 21)
            continue;
        const double x[2] = {1 + eps / 2 + 0x1p-45, 1 + 1.5 * eps - 0x1p-45};
        for (int k = 0; k < 2; k++) {
            unsigned flags;
            const double got = mpsim_decode(f, encode(&p, f, &r, x[k], &flags));
            if (got != 1 + eps)
                note(&p, "%s x=%a: expected %a, got %a", f->name, x[k], 1 + eps, got);
        }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* Integers from 2^24 on are not all binary32 numbers: int -> f32 -> bf16 rounds twice for
 * 8064 of the integers below 2^30. All of them are within one binary32 unit of a tie. */
START_TEST(integers_to_bf16_do_not_pass_through_f32)
{
    const mpsim_format f = format_of("bf16");
    const mpsim_rounding r = rounding_of("ieee", &f, RNE);
    report p = {0};
    size_t differ = 0;
    ck_assert_uint_eq(mpsim_encode_f64(&f, &r, 16842753, 0, NULL), 0x4b81);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, (float)16842753, 0, NULL), 0x4b80);
    for (int k = 24; k < 30; k++) {
        const int64_t unit = (int64_t)1 << (k - 23);
        const uint64_t first = (uint64_t)(127 + k) << 7; /* code of 2^k */
        for (int64_t j = 0; j < 128; j++) {
            const int64_t tie = ((int64_t)1 << k) + (2 * j + 1) * ((int64_t)1 << (k - 8));
            for (int64_t d = -unit; d <= unit; d++) {
                const int64_t n = tie + d;
                const uint64_t want = first + (uint64_t)j + (d > 0 || (d == 0 && j % 2 == 1));
                const uint64_t got = mpsim_encode_f64(&f, &r, (double)n, 0, NULL);
                differ += mpsim_encode_f32(&f, &r, (float)n, 0, NULL) != got;
                if (got != want)
                    note(&p, "bf16 nearest-even n=%" PRId64 ": expected %#" PRIx64
                             ", got %#" PRIx64, n, want, got);
            }
        }
    }
    ck_no_mismatch(&p);
    ck_assert_uint_eq(differ, 8064);
}
END_TEST

/* ---- overflow and saturation ---- */

/* OCP E4M3 ends at 448, not at 480; 464 is a tie and goes to the even 448. */
START_TEST(e4m3_overflow_without_saturation)
{
    static const row rows[] = {
        {"e4m3", "ocp", RNE, 448, 448},      {"e4m3", "ocp", RNE, 464, 448},
        {"e4m3", "ocp", RNE, 464.0625, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 465, NOT_A_NUMBER}, {"e4m3", "ocp", RNE, 480, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 481, NOT_A_NUMBER}, {"e4m3", "ocp", RNE, 496, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 1e6, NOT_A_NUMBER}, {"e4m3", "ocp", RNE, -480, NOT_A_NUMBER},
        {"e4m3", "ocp", RNA, 464, NOT_A_NUMBER}, {"e4m3", "ocp", RNA, 463.9375, 448},
        {"e4m3", "ocp", RTZ, 480, 448},      {"e4m3", "ocp", RTZ, 500, 448},
        {"e4m3", "ocp", RTZ, 1e6, 448},      {"e4m3", "ocp", RTZ, -1e6, -448},
        {"e4m3", "ocp", RUP, 449, NOT_A_NUMBER}, {"e4m3", "ocp", RUP, -449, -448},
        {"e4m3", "ocp", RDN, 449, 448},      {"e4m3", "ocp", RDN, -449, NOT_A_NUMBER},
        {"e4m3", "ocp", RTZ, INFINITE, NOT_A_NUMBER},
        {"e4m3", "ocp", RDN, -INFINITE, NOT_A_NUMBER},
    };
    CHECK_ROWS(rows);
}
END_TEST

START_TEST(e4m3_overflow_with_saturation)
{
    static const double x[] = {464, 464.0625, 465, 480, 481, 496, 500, 1e6, 1e300, INFINITE};
    report p = {0};
    const mpsim_format f = format_of("e4m3");
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            const mpsim_rounding r = rounding_of("ocp-sat", &f, mode);
            unsigned flags;
            const uint64_t up = encode(&p, &f, &r, x[i], &flags);
            const uint64_t down = encode(&p, &f, &r, -x[i], &flags);
            if (up != 0x7e || down != 0xfe)
                note(&p, "e4m3 ocp-sat %s x=+-%a: expected 0x7e, 0xfe, got %#" PRIx64 ", %#" PRIx64,
                     mpsim_round_mode_name(r.mode), x[i], up, down);
        }
    ck_no_mismatch(&p);
}
END_TEST

/* What 480, 1e6 and infinity become in E4M3, stack by stack. 7e is 448, 7f is NaN. */
START_TEST(presets_overflow_e4m3_as_their_stacks_do)
{
    static const struct {
        const char *preset;
        uint64_t overflow, infinity;
    } stacks[] = {
        {"ieee", 0x7f, 0x7f},      {"saturate", 0x7e, 0x7e},
        {"ocp", 0x7f, 0x7f},       {"ocp-sat", 0x7e, 0x7e},
        {"cuda", 0x7e, 0x7e},      {"cuda-nosat", 0x7f, 0x7f},
        {"ml-dtypes", 0x7f, 0x7f}, {"pytorch", 0x7e, 0x7e},
        {"pytorch-2.12", 0x7f, 0x7f},
        {"onnx", 0x7e, 0x7e},      {"onnx-nosat", 0x7f, 0x7f},
        /* P3109 has no rule for a NaN that stands for infinity: the largest number does */
        {"p3109-satfinite", 0x7e, 0x7e}, {"p3109-satpropagate", 0x7e, 0x7e},
        {"p3109-satnone", 0x7e, 0x7e},
    };
    static const double x[] = {464.0625, 465, 480, 481, 1e6, (double)FLT_MAX, 1e300};
    const mpsim_format f = format_of("e4m3");
    report p = {0};
    for (size_t k = 0; k < mpsim_preset_count(); k++) {
        const char *name = mpsim_preset_at(k)->name;
        const mpsim_rounding r = rounding_of(name, &f, RNE);
        size_t s = 0;
        while (s < sizeof stacks / sizeof stacks[0] && strcmp(stacks[s].preset, name) != 0)
            s++;
        if (s == sizeof stacks / sizeof stacks[0]) {
            note(&p, "preset %s: no expectation in this test", name);
            continue;
        }
        unsigned flags;
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
            for (int sign = 0; sign < 2; sign++) {
                const uint64_t want = stacks[s].overflow | (sign ? 0x80u : 0);
                const uint64_t got = encode(&p, &f, &r, sign ? -x[i] : x[i], &flags);
                if (got != want || flags != (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW))
                    note(&p, "e4m3 %s x=%a: expected %#" PRIx64 ", got %#" PRIx64 ", flags %u",
                         name, sign ? -x[i] : x[i], want, got, flags);
            }
        for (int sign = 0; sign < 2; sign++) {
            const uint64_t want = stacks[s].infinity | (sign ? 0x80u : 0);
            const uint64_t got = encode(&p, &f, &r, sign ? -INFINITE : INFINITE, &flags);
            if (got != want || flags != 0)
                note(&p, "e4m3 %s x=%sinf: expected %#" PRIx64 ", got %#" PRIx64 ", flags %u",
                     name, sign ? "-" : "", want, got, flags);
        }
        if (encode(&p, &f, &r, 464, &flags) != 0x7e || encode(&p, &f, &r, -464, &flags) != 0xfe)
            note(&p, "e4m3 %s: 464, a tie, did not go to 448", name);
    }
    ck_no_mismatch(&p);
}
END_TEST

/* In E5M2 61440 is the tie and goes to infinity; fp16 and bf16 likewise beyond their ends.
 * Others gave 65536, 131008 or 0, or stopped at the wrong power of two. */
START_TEST(formats_with_infinity_overflow_where_they_end)
{
    static const row rows[] = {
        {"e5m2", "ieee", RNE, 61440, INFINITE},  {"e5m2", "ieee", RNE, 65536, INFINITE},
        {"e5m2", "ieee", RNE, 100000, INFINITE}, {"e5m2", "ieee", RNE, 131071, INFINITE},
        {"e5m2", "ieee", RNE, 61439.99609375, 57344},
        {"e5m2", "ocp-sat", RNE, 61440, 57344},  {"e5m2", "ocp-sat", RNE, -1e9, -57344},
        {"e5m2", "ieee", RTZ, 65536, 57344},
        {"fp16", "ieee", RNE, -123912.9, -INFINITE}, {"fp16", "ieee", RTZ, -123912.9, -65504},
        {"fp16", "ieee", RNE, 65536, INFINITE},  {"fp16", "ieee", RTZ, 131071, 65504},
        {"fp16", "ieee", RNE, 65519, 65504},     {"fp16", "ieee", RNE, 65520, INFINITE},
        {"fp16", "ieee", RNE, 65535, INFINITE},  {"fp16", "ieee", RNE, 65519.99609375, 65504},
        {"fp16", "ieee", RUP, 65519, INFINITE},  {"fp16", "ieee", RUP, -65519, -65504},
        {"fp16", "ieee", RTZ, 200000, 65504},    {"fp16", "ieee", RDN, 200000, 65504},
        {"fp16", "ieee", RDN, -200000, -INFINITE},
        {"fp16", "ieee", RNE, 1e6, INFINITE},    {"fp16", "ieee", RNE, INFINITE, INFINITE},
        {"fp16", "ieee", RTZ, INFINITE, INFINITE}, {"fp16", "ieee", RDN, INFINITE, INFINITE},
        {"fp16", "ieee", RUP, -INFINITE, -INFINITE},
        {"e4m3ieee", "ieee", RNE, 247.9375, 240}, {"e4m3ieee", "ieee", RNE, 248, INFINITE},
        {"e4m3ieee", "ieee", RNE, 256, INFINITE}, {"e4m3ieee", "ieee", RNE, 448, INFINITE},
        {"e4m3", "ieee", RNE, 248, 256},         {"e4m3", "ieee", RNE, 448, 448},
        {"bf16", "ieee", RNE, (double)FLT_MAX, INFINITE},
        {"bf16", "ieee", RNE, 0x1.fefffep+127, 0x1.fep+127},
        {"bf16", "ieee", RTZ, (double)FLT_MAX, 0x1.fep+127},
        {"bf16", "ieee", RNE, 1e300, INFINITE},  {"tf32", "ieee", RNE, 1e300, INFINITE},
        {"binary32", "ieee", RNE, 0x1.ffffffp+127, INFINITE},
        {"binary32", "ieee", RNE, 0x1.fffffefffffffp+127, (double)FLT_MAX},
    };
    CHECK_ROWS(rows);
}
END_TEST

/* To odd: the largest number stays if its code is odd, else infinity or what stands for it
 * follows, which is the odd one. */
START_TEST(to_odd_overflows_by_the_parity_of_the_largest_code)
{
    static const row rows[] = {
        {"fp16", "ieee", ODD, 1e6, 65504},  {"fp16", "ieee", ODD, -1e6, -65504},  /* 7bff */
        {"e5m2", "ieee", ODD, 1e6, 57344},  {"e4m3ieee", "ieee", ODD, 1e6, 240},  /* 7b, 77 */
        {"e4m3", "ieee", ODD, 1e6, NOT_A_NUMBER}, {"e4m3", "ieee", ODD, 449, NOT_A_NUMBER}, /* 7e */
        {"binary8p4se", "ieee", ODD, 1e6, INFINITE},                             /* 7e */
        {"binary8p4se", "ieee", ODD, -1e6, -INFINITE},
        {"binary8p4ue", "ieee", ODD, 0x1p40, 0x1.ap+15},                         /* fd */
    };
    CHECK_ROWS(rows);
}
END_TEST

/* ---- NaN ---- */

/* NaN inputs that lost their payload, carried into the sign, or became infinity or zero. */
START_TEST(nan_rows)
{
    static const struct {
        uint32_t u;
        const char *format;
        uint64_t want;
    } rows[] = {
        {0x7f800001, "fp16", 0x7e00}, {0x7f800001, "bf16", 0x7fc0}, {0x7f800001, "e4m3", 0x7f},
        {0x7f800001, "e5m2", 0x7e},   {0x7fffe2da, "fp16", 0x7e00}, {0x7fe003cf, "e5m2", 0x7e},
        {0x7ff000f6, "e4m3", 0x7f},   {0x7fff8c22, "bf16", 0x7fc0}, {0x7fffffff, "bf16", 0x7fc0},
        {0x7fc00000, "e4m3", 0x7f},   {0x7fc00000, "tf32", 0x3fe00}, {0x7fc00000, "e8m0", 0xff},
        {0x7f800001, "e4m3fnuz", 0x80}, {0x7fc00000, "e5m2fnuz", 0x80},
        {0x7f800001, "e4m3b11fnuz", 0x80}, {0x7f800001, "e4m3ieee", 0x7c},
        {0x7f800001, "e3m4", 0x78},   {0x7f800001, "binary32", 0x7fc00000},
        {0x7f800001, "binary64", 0x7ff8000000000000},
        {0x7f800001, "binary8p4se", 0x80}, {0x7f800001, "binary8p4ue", 0xff},
    };
    report p = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mpsim_format f = format_of(rows[i].format);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
            for (uint32_t random = 0;; random = 0xffffffffu) {
                const mpsim_rounding r = rounding_of("ieee", &f, mode);
                const uint64_t sign = f.nan != MPSIM_NAN_NEGZERO && mpsim_format_is_signed(&f)
                                          ? (uint64_t)1 << (f.bits - 1) : 0;
                unsigned flags, flags2;
                const uint64_t plus =
                    mpsim_encode_f32(&f, &r, f32_of_bits(rows[i].u), random, &flags);
                const uint64_t minus = mpsim_encode_f32(
                    &f, &r, f32_of_bits(rows[i].u | 0x80000000u), random, &flags2);
                if (plus != rows[i].want || minus != (rows[i].want | sign) ||
                    flags != MPSIM_FLAG_NAN || flags2 != MPSIM_FLAG_NAN)
                    note(&p, "%s %s input %#010" PRIx32 ": expected %#" PRIx64 " and %#" PRIx64
                             ", got %#" PRIx64 " (flags %u) and %#" PRIx64 " (flags %u)",
                         f.name, mpsim_round_mode_name(r.mode), rows[i].u, rows[i].want,
                         rows[i].want | sign, plus, flags, minus, flags2);
                if (random)
                    break;
            }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* Whether a code is a quiet NaN of the format: IEEE formats with more than one NaN per sign
 * have the quiet bit at the top of the significand. Typed here from the layouts. */
static int is_quiet_nan(const mpsim_format *f, uint64_t code)
{
    if (mpsim_classify(f, code) != MPSIM_CLASS_NAN || !isnan(mpsim_decode(f, code)))
        return 0;
    return !f->inf || f->mbits < 2 || f->nan != MPSIM_NAN_TOP || f->zero == MPSIM_ZERO_UNSIGNED ||
           (code >> (f->mbits - 1) & 1);
}

/* All leading eleven payload bits, with several tails, both signs. */
START_TEST(no_nan_becomes_a_number)
{
    static const uint32_t tails[] = {0, 1, 0x800, 0xfff};
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->nan == MPSIM_NAN_NONE)
            continue;
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
            for (int rule = 0; rule <= MPSIM_NANS_MINUS_ONES; rule++) {
                mpsim_rounding r = rounding_of(mode % 2 ? "saturate" : "ieee", f, mode);
                r.nan = (uint8_t)rule;
                r.scale = rule % 2 ? 0.75 : 1;
                /* The four tails take turns, so that each rule and mode sees all of them. */
                for (uint32_t k = 0; k < 0x1000; k++) {
                    const uint32_t tail = tails[(k + (uint32_t)(rule + mode)) % 4];
                    const uint32_t payload = (k & 0x7ff) << 12 | tail;
                    if (payload == 0)
                        continue;
                    const uint32_t u = (k >> 11) << 31 | 0x7f800000u | payload;
                    unsigned flags;
                    const uint64_t code =
                        mpsim_encode_f32(f, &r, f32_of_bits(u), 0xffffffffu, &flags);
                    if (!is_quiet_nan(f, code) || flags != MPSIM_FLAG_NAN)
                        note(&p, "%s %s rule %d input %#010" PRIx32 ": got %#" PRIx64
                                 " = %a, flags %u", f->name, mpsim_round_mode_name(r.mode), rule, u, code,
                             mpsim_decode(f, code), flags);
                }
            }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* The same with binary64: every single payload bit, and runs of ones from either end. */
START_TEST(no_binary64_nan_becomes_a_number)
{
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
            for (int rule = 0; rule <= MPSIM_NANS_MINUS_ONES; rule++) {
                mpsim_rounding r = rounding_of("ieee", f, mode);
                r.nan = (uint8_t)rule;
                for (int k = 0; k < 3 * 52 * 2; k++) {
                    const int bit = k / 2 % 52;
                    const uint64_t one = (uint64_t)1 << bit, all = 0xfffffffffffffu;
                    const uint64_t payload = k / 104 == 0 ? one
                                             : k / 104 == 1 ? 2 * one - 1 : all & ~(one - 1);
                    const uint64_t u = (uint64_t)(k % 2) << 63 | 0x7ffu * (all + 1) | payload;
                    unsigned flags;
                    const uint64_t code = mpsim_encode_f64(f, &r, f64_of_bits(u), 0, &flags);
                    const int good = f->nan == MPSIM_NAN_NONE
                                         ? code == f->max_finite : is_quiet_nan(f, code);
                    if (!good || flags != MPSIM_FLAG_NAN)
                        note(&p, "%s %s rule %d input %#018" PRIx64 ": got %#" PRIx64 ", flags %u",
                             f->name, mpsim_round_mode_name(r.mode), rule, u, code, flags);
                }
            }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* E2M1, E2M3 and E3M2 have no NaN: the policy decides, nothing else. */
START_TEST(formats_without_nan_follow_the_policy)
{
    static const struct {
        const char *format;
        uint64_t max, minus_zero;
    } rows[] = {{"e2m1", 0x7, 0x8}, {"e2m3", 0x1f, 0x20}, {"e3m2", 0x1f, 0x20}};
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0x7fffffff, 0x7fffe2da, 0x7fa00000};
    report p = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mpsim_format f = format_of(rows[i].format);
        for (int policy = 0; policy <= MPSIM_NO_NAN_ANTIZERO; policy++)
            for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
                for (size_t k = 0; k < 2 * sizeof nans / sizeof nans[0]; k++) {
                    mpsim_rounding r = rounding_of("ieee", &f, mode);
                    r.no_nan = (uint8_t)policy;
                    const uint32_t u = nans[k / 2] | (uint32_t)(k % 2) << 31;
                    const uint64_t got = mpsim_encode_f32(&f, &r, f32_of_bits(u), 0, NULL);
                    const uint64_t want = policy == MPSIM_NO_NAN_MAX    ? rows[i].max
                                          : policy == MPSIM_NO_NAN_ZERO ? 0
                                          : k % 2                       ? 0
                                                                        : rows[i].minus_zero;
                    if (got != want)
                        note(&p, "%s %s policy %d input %#010" PRIx32 ": expected %#" PRIx64
                                 ", got %#" PRIx64, f.name, mpsim_round_mode_name(r.mode),
                             policy, u, want, got);
                }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* ---- signed zero and subnormals ---- */

/* -0 stays -0, and what rounds to zero keeps its sign, in every mode; an underflow to -0
 * counts like one to +0. */
START_TEST(zeros_keep_their_sign)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "e5m2", "e4m3", "e4m3ieee",
                                        "e3m4", "e3m2", "e2m3", "e2m1", "binary32"};
    static const double tiny[] = {0, 1e-30, 0x1p-149, 0x1p-30, 0x1p-1074, 0x1p-160};
    report p = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mpsim_format f = format_of(names[i]);
        const uint64_t minus_zero = (uint64_t)1 << (f.bits - 1);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
            for (size_t k = 0; k < sizeof tiny / sizeof tiny[0]; k++) {
                /* Skip what is not far below half of the smallest number. */
                const double least = mpsim_format_min_positive(&f);
                if (tiny[k] > least / 16)
                    continue;
                const mpsim_rounding r = rounding_of("ieee", &f, mode);
                unsigned plus_flags, minus_flags;
                const uint64_t plus = encode(&p, &f, &r, tiny[k], &plus_flags);
                const uint64_t minus = encode(&p, &f, &r, -tiny[k], &minus_flags);
                const int inexact = tiny[k] != 0;
                const int up = inexact && (mode == RUP || mode == ODD);
                const int down = inexact && (mode == RDN || mode == ODD);
                const uint64_t want_plus = up ? 1 : 0;
                const uint64_t want_minus = minus_zero | (down ? 1 : 0);
                const unsigned zero_flags =
                    inexact ? MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW : 0;
                const unsigned least_flags = MPSIM_FLAG_INEXACT | MPSIM_FLAG_SUBNORMAL;
                if (plus != want_plus || minus != want_minus ||
                    plus_flags != (up ? least_flags : zero_flags) ||
                    minus_flags != (down ? least_flags : zero_flags))
                    note(&p, "%s %s x=+-%a: expected %#" PRIx64 ", %#" PRIx64 ", got %#" PRIx64
                             " (flags %u), %#" PRIx64 " (flags %u)",
                         f.name, mpsim_round_mode_name(r.mode), tiny[k], want_plus, want_minus,
                         plus, plus_flags, minus, minus_flags);
            }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* Zero times a scale is zero, however large the scale and the range of the format; in arrays
 * too, which take another path than single numbers. */
START_TEST(zeros_are_zeros_under_every_scale)
{
    enum { N = 300 };
    static const char *const names[] = {"e11m1:fnuz", "e11m10", "e11m51", "binary64", "binary32",
                                        "bf16", "fp16", "e4m3", "e2m1", "binary8p1se"};
    static const double scales[] = {0x1p-1074, 0x1p-500, 0.5, 1, 2, 3, 8, 0x1p+100, 0x1p+1023};
    static float x[N];
    static double y[N];
    static unsigned char codes[2][8 * N];
    report p = {0};
    for (size_t i = 0; i < N; i++) {
        x[i] = i % 3 ? 0 : -0.0f;
        y[i] = i % 3 ? 0 : -0.0;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++)
            for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
                const mpsim_format f = format_of(names[i]);
                const mpsim_rng rng = {1, 2, 3};
                const size_t bytes = mpsim_format_code_bytes(&f);
                mpsim_rounding r = rounding_of("ieee", &f, mode);
                mpsim_counts c = {0, 0, 0, 0, 0};
                r.scale = scales[k];
                ck_assert(!mpsim_encode_array_f32(&f, &r, &rng, codes[0], x, N, &c) &&
                          !mpsim_encode_array_f64(&f, &r, &rng, codes[1], y, N, &c));
                for (size_t j = 0; j < 2 * N; j++) {
                    double v;
                    if (mpsim_decode_array(&f, &v, &codes[j / N][j % N * bytes], 1) != MPSIM_OK ||
                        v != 0 || (signbit(v) != 0) != (j % N % 3 == 0 && f.zero == MPSIM_ZERO_SIGNED))
                        note(&p, "%s %s scale %a, array, element %zu: %a", f.name,
                             mpsim_round_mode_name(r.mode), r.scale, j, v);
                }
                if (c.inexact || c.underflow || c.subnormal || c.overflow || c.nan)
                    note(&p, "%s %s scale %a: zeros were counted", f.name,
                         mpsim_round_mode_name(r.mode), r.scale);
            }
    ck_no_mismatch(&p);
}
END_TEST

/* P3109 and FNUZ formats have one zero: -0 and negative underflow give it, not their NaN. */
START_TEST(formats_with_one_zero_have_no_minus_zero)
{
    report p = {0};
    size_t formats = 0;
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->zero != MPSIM_ZERO_UNSIGNED)
            continue;
        formats++;
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            const mpsim_rounding r = rounding_of("ieee", f, mode);
            unsigned flags;
            if (encode(&p, f, &r, -0.0, &flags) != 0 || flags != 0)
                note(&p, "%s %s: -0 is not code 0", f->name, mpsim_round_mode_name(r.mode));
            if (mode != RDN && mode != ODD && encode(&p, f, &r, -1e-300, &flags) != 0)
                note(&p, "%s %s: -1e-300 is not code 0", f->name, mpsim_round_mode_name(r.mode));
        }
    }
    ck_no_mismatch(&p);
    ck_assert_uint_ge(formats, 30);
}
END_TEST

START_TEST(subnormals_are_kept)
{
    static const row rows[] = {
        {"fp16", "ieee", RNE, -0x1p-30, -0.0},
        {"fp16", "ieee", RNE, 0x1p-25, 0.0},   /* a tie */
        {"fp16", "ieee", RNE, -0x1p-25, -0.0},
        {"fp16", "ieee", RNA, 0x1p-25, 0x1p-24},
        {"fp16", "ieee", RNE, 0x1.8p-24, 0x1p-23},
        {"fp16", "ieee", RNE, 0x1.000002p-25, 0x1p-24},
        {"bf16", "ieee", RUP, 0x1p-149, 0x1p-133},
        {"bf16", "ieee", RDN, -0x1p-149, -0x1p-133},
        {"bf16", "ieee", RNE, 0x1p-133, 0x1p-133},
        {"bf16", "ieee", RNE, 0x1p-134, 0.0},
        {"bf16", "ieee", RNE, 0x1.000002p-134, 0x1p-133},
        {"e2m1", "ieee", RNE, 0x1.000002p-2, 0.5}, /* 0.25000003: the sticky bit */
        {"e2m1", "ieee", RNE, 0.25000006, 0.5},
        {"e2m1", "ieee", RNE, 0.25, 0.0},
        {"e2m1", "ieee", RNE, 0.75, 1.0},
        {"e4m3", "ieee", RNE, 0x1p-10, 0.0},
        {"e4m3", "ieee", RNE, 0x1.000002p-10, 0x1p-9},
        {"e4m3", "ieee", RNE, 0x1.ep-7, 0x1p-6},   /* the largest subnormal is 1.75 * 2^-7 */
        {"e5m2", "ieee", RNE, 0x1p-17, 0.0},
        {"e5m2", "ieee", RNE, 0x1.cp-15, 0x1p-14}, /* a tie: into the normal range */
    };
    CHECK_ROWS(rows);
}
END_TEST

/* Flushing is a policy of its own, for input and output separately. */
START_TEST(flushing_is_explicit)
{
    const mpsim_format bf16 = format_of("bf16"), fp16 = format_of("fp16");
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_init(&r, MPSIM_ROUND_UP);
    ck_assert(!r.flush_input && !r.flush_output);
    r.flush_input = 1;
    ck_assert_uint_eq(mpsim_encode_f32(&bf16, &r, 0x1p-149f, 0, &flags), 0);
    ck_assert_uint_eq(mpsim_encode_f32(&bf16, &r, -0x1.fffffcp-127f, 0, &flags), 0x8000);
    ck_assert_uint_eq(mpsim_encode_f32(&bf16, &r, 0x1p-126f, 0, &flags), 0x0080);
    /* The same number is normal in binary64. */
    ck_assert_uint_eq(mpsim_encode_f64(&bf16, &r, 0x1p-149, 0, &flags), 1);
    ck_assert_uint_eq(mpsim_encode_f64(&bf16, &r, 0x1p-1074, 0, &flags), 0);
    r.flush_input = 0;
    r.flush_output = 1;
    ck_assert_uint_eq(mpsim_encode_f32(&bf16, &r, 0x1p-149f, 0, &flags), 0);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW);
    ck_assert_uint_eq(mpsim_encode_f32(&fp16, &r, -0x1p-24f, 0, &flags), 0x8000);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW);
    /* After rounding: the largest number below the normal range rounds up out of it. */
    ck_assert_uint_eq(mpsim_encode_f32(&fp16, &r, 0x1.fffffep-15f, 0, &flags), 0x0400);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT);
    ck_assert_uint_eq(mpsim_encode_f32(&fp16, &r, 0x1.ff8p-15f, 0, &flags), 0);
}
END_TEST

/* Decoding and encoding gives the code back: all codes that are not NaN, every mode, every
 * preset that does not forbid infinities. */
START_TEST(every_code_survives_decoding_and_encoding)
{
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->bits > 19)
            continue;
        for (uint64_t code = 0; code < (uint64_t)1 << f->bits; code++) {
            const double v = mpsim_decode(f, code);
            if (isnan(v))
                continue;
            for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
                mpsim_rounding r;
                unsigned flags;
                mpsim_rounding_init(&r, (mpsim_round_mode)mode);
                if (mode % 2 && isfinite(v)) { /* saturation must not touch numbers */
                    r.overflow = MPSIM_OVERFLOW_MAX;
                    r.infinity = MPSIM_INFINITY_MAX;
                }
                const uint64_t got = mpsim_encode_f64(f, &r, v, 0xffffffffu, &flags);
                if (got != code || (flags & ~(unsigned)MPSIM_FLAG_SUBNORMAL))
                    note(&p, "%s %s code %#" PRIx64 " = %a: got %#" PRIx64 ", flags %u", f->name,
                         mpsim_round_mode_name(r.mode), code, v, got, flags);
            }
        }
    }
    ck_no_mismatch(&p);
}
END_TEST

/* ---- ties and mode names ---- */

START_TEST(ties_go_where_the_mode_says)
{
    static const row rows[] = {
        {"fp16", "ieee", RNE, 1.00048828125, 1.0}, /* 1 + 2^-11 */
        {"fp16", "ieee", RNA, 1.00048828125, 1.0009765625},
        {"fp16", "ieee", RNE, 1.00146484375, 1.001953125},
        {"e4m3", "ieee", RNE, 1.0625, 1.0},  {"e4m3", "ieee", RNA, 1.0625, 1.125},
        {"e4m3", "ieee", RNE, -1.0625, -1.0}, {"e4m3", "ieee", RNA, -1.0625, -1.125},
        {"e4m3", "ieee", RNE, 1.1875, 1.25},
        /* Directed modes act on any discarded part, however small. */
        {"e5m2", "ieee", RUP, 1.0625, 1.25},  {"e5m2", "ieee", RDN, 1.0625, 1.0},
        {"e5m2", "ieee", RUP, -1.0625, -1.0}, {"e5m2", "ieee", RDN, -1.0625, -1.25},
        {"e5m2", "ieee", RUP, 1.0000001192092896, 1.25},
        {"e5m2", "ieee", RDN, -1.0000001192092896, -1.25},
        {"e5m2", "ieee", RTZ, 1.2499998807907104, 1.0},
        {"bf16", "ieee", RNE, (double)0.2691408770292272f, 0.26953125},
        {"bf16", "ieee", RTZ, (double)0.2691408770292272f, 0.267578125},
        {"bf16", "ieee", RNE, 0.2691408770292272, 0.26953125},
    };
    CHECK_ROWS(rows);
}
END_TEST

/* floor(|a| + 0.5) in binary32 takes (1/2 - 2^-25) for 1/2. */
START_TEST(almost_half_of_the_smallest_number_is_zero)
{
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        if (f->zero == MPSIM_ZERO_NONE || f->bits == 64)
            continue;
        const double least = mpsim_format_min_positive(f);
        for (int mode = RNE; mode <= RNA; mode++) {
            const mpsim_rounding r = rounding_of("ieee", f, mode);
            unsigned flags;
            const uint64_t below = encode(&p, f, &r, least * (0.5 - 0x1p-25), &flags);
            const uint64_t above = encode(&p, f, &r, least * (0.5 + 0x1p-24), &flags);
            const uint64_t tie = encode(&p, f, &r, least * 0.5, &flags);
            if (below != 0 || above != 1 || tie != (mode == RNA))
                note(&p, "%s %s: half of %a less, equal, more: got %#" PRIx64 ", %#" PRIx64
                         ", %#" PRIx64, f->name, mpsim_round_mode_name(r.mode), least, below,
                     tie, above);
        }
    }
    ck_no_mismatch(&p);
}
END_TEST

START_TEST(mode_names_say_where_ties_go)
{
    static const struct {
        const char *name;
        int mode;
    } good[] = {
        {"nearest-even", RNE}, {"nearest-away", RNA}, {"toward-zero", RTZ}, {"up", RUP},
        {"down", RDN}, {"to-odd", ODD}, {"stochastic-a", SRA}, {"stochastic-b", SRB},
        {"stochastic-c", SRC}, {"stochastic", SRC}, {"sr", SRC}, {"rne", RNE}, {"RNE", RNE},
        {"rna", RNA}, {"rtz", RTZ}, {"rup", RUP}, {"rdn", RDN}, {"rto", ODD}, {"sra", SRA},
        {"srb", SRB}, {"src", SRC}, {"TiesToEven", RNE},
    };
    static const char *const bad[] = {
        "", "nearest", "round", "rpinf", "rninf", "rn e", "rne ", " rne", "up:8", "rne:8",
        "nearest_even!", "stochastic:0", "stochastic:33", "stochastic:", "stochastic:8x", "stochastic:-1",
        "stochastic:1e1", "stochastic-d", "stochastic:100000000000000000000",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        mpsim_round_mode m = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        ck_assert_msg(mpsim_round_mode_parse(&m, &bits, good[i].name) == MPSIM_OK &&
                          (int)m == good[i].mode && bits == 77,
                      "%s", good[i].name);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mpsim_round_mode m = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        ck_assert_msg(mpsim_round_mode_parse(&m, &bits, bad[i]) == MPSIM_ENOTFOUND &&
                          m == MPSIM_ROUND_MODES && bits == 77,
                      "\"%s\" was accepted, or changed the outputs", bad[i]);
    }
}
END_TEST

/* ---- block scales ---- */

/* A scale floor(log2 amax) - emax saturates the largest element: 957 / 2 is beyond 448. The
 * next larger scale does not. The multiplication by the scale is part of the rounding. */
START_TEST(block_scales_saturate_or_not)
{
    const mpsim_format f = format_of("e4m3");
    mpsim_rounding r = rounding_of("saturate", &f, RNE);
    unsigned flags;
    r.scale = 0.5;
    ck_assert_double_eq(mpsim_decode(&f, mpsim_encode_f32(&f, &r, 957, 0, &flags)), 448);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW);
    r.scale = 0.25;
    ck_assert_double_eq(mpsim_decode(&f, mpsim_encode_f32(&f, &r, 957, 0, &flags)), 240);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT);
    /* 1 / 3 as a scale is rounded by the caller; the product is not rounded before the cast:
     * 3 * (1/3 rounded down to binary64) is just below 1, which up to down tells. */
    const mpsim_format h = format_of("fp16");
    mpsim_rounding d = rounding_of("ieee", &h, RDN);
    d.scale = 1.0 / 3;
    ck_assert_uint_eq(mpsim_encode_f32(&h, &d, 3, 0, &flags), 0x3bff);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT);
    d.mode = RUP;
    ck_assert_uint_eq(mpsim_encode_f32(&h, &d, 3, 0, &flags), 0x3c00);
}
END_TEST

/* The product of two 53-bit significands needs 106 bits: this one is 1 + 2^-11, a tie of fp16,
 * plus 2^-69 or so. Rounded to binary64 or to 64 bits first, it is the tie. */
START_TEST(products_with_the_scale_are_not_rounded_first)
{
    const double x = 0x1.f7e5ed1c4b865p+0, scale = 0x1.043e39a980f8bp-1;
    const mpsim_format f = format_of("fp16");
    mpsim_rounding r = rounding_of("ieee", &f, RNE);
    ck_assert(x * scale == 1 + 0x1p-11);
    r.scale = scale;
    ck_assert_uint_eq(mpsim_encode_f64(&f, &r, x, 0, NULL), 0x3c01);
    ck_assert_uint_eq(mpsim_encode_f64(&f, &r, -x, 0, NULL), 0xbc01);
    uint16_t codes[2];
    const double two[2] = {x, -x};
    ck_assert_int_eq(mpsim_encode_array_f64(&f, &r, NULL, codes, two, 2, NULL), MPSIM_OK);
    ck_assert(codes[0] == 0x3c01 && codes[1] == 0xbc01);
}
END_TEST

/* floor(log2 amax) and ceil(log2 amax) as an E8M0 scale are roundings toward zero and up:
 * exact at and next to every power of two, where log2() in binary32 is not. */
START_TEST(e8m0_scales_are_exact_logarithms)
{
    const mpsim_format f = format_of("e8m0");
    report p = {0};
    for (int e = -127; e <= 127; e++)
        for (int k = -1; k <= 1; k++) {
            const float power = ldexpf(1.0f, e);
            const uint32_t u = bits_of_f32(power) + (uint32_t)k;
            const double x = (double)f32_of_bits(u);
            const int floor_log = e - (k < 0), ceil_log = e + (k > 0);
            const mpsim_rounding down = rounding_of("ieee", &f, RTZ);
            const mpsim_rounding up = rounding_of("ieee", &f, RUP);
            unsigned flags;
            const uint64_t c = encode(&p, &f, &down, x, &flags);
            const uint64_t d = encode(&p, &f, &up, x, &flags);
            const uint64_t want_down = (uint64_t)(floor_log < -127 ? 0 : floor_log + 127);
            const uint64_t want_up = (uint64_t)(ceil_log + 127); /* 255: NaN, beyond 2^127 */
            if (c != want_down || d != want_up)
                note(&p, "e8m0 x=%a (%#010" PRIx32 "): expected %#" PRIx64 ", %#" PRIx64
                         ", got %#" PRIx64 ", %#" PRIx64, x, u, want_down, want_up, c, d);
        }
    ck_no_mismatch(&p);
}
END_TEST

/* amax = 0, subnormal, infinite or NaN. */
START_TEST(e8m0_scales_of_special_maxima)
{
    const mpsim_format f = format_of("e8m0");
    mpsim_rounding r = rounding_of("ieee", &f, RTZ);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, 0, 0, NULL), 0);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, 0x1p-149f, 0, NULL), 0);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, INFINITY, 0, NULL), 0xff);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, NAN, 0, NULL), 0xff);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, -1, 0, NULL), 0xff);
    r.no_zero = MPSIM_NO_ZERO_NAN;
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, 0, 0, NULL), 0xff);
    r.negative = MPSIM_NEGATIVE_ABS;
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, -1, 0, NULL), 127);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, -0x1p+127f, 0, NULL), 0xfe);
    r.negative = MPSIM_NEGATIVE_MIN;
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, -1, 0, NULL), 0);
    r.infinity = MPSIM_INFINITY_MAX;
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, INFINITY, 0, NULL), 0xfe);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, -INFINITY, 0, NULL), 0);
}
END_TEST

/* ---- names that are none ---- */

START_TEST(unknown_formats_are_errors)
{
    static const struct {
        const char *name;
        mpsim_status want;
    } bad[] = {
        {"", MPSIM_ENOTFOUND},        {" ", MPSIM_ENOTFOUND},
        {"fp9", MPSIM_ENOTFOUND},     {"fp", MPSIM_ENOTFOUND},
        {"bf16 ", MPSIM_ENOTFOUND},   {" bf16", MPSIM_ENOTFOUND},
        {"fp64 float64", MPSIM_ENOTFOUND}, {"e4m3x", MPSIM_ENOTFOUND},
        {"e4", MPSIM_ENOTFOUND},      {"em", MPSIM_ENOTFOUND},
        {"e4m", MPSIM_ENOTFOUND},     {"m3e4", MPSIM_ENOTFOUND},
        {"e-4m3", MPSIM_ENOTFOUND},   {"e4m-3", MPSIM_ENOTFOUND},
        {"e4.0m3", MPSIM_ENOTFOUND},  {"e4m3,ieee", MPSIM_ENOTFOUND},
        {"binary8p4", MPSIM_ENOTFOUND}, {"binary8p4s", MPSIM_ENOTFOUND},
        {"binary8p4xe", MPSIM_ENOTFOUND}, {"binary8p9se", MPSIM_ENOTFOUND},
        {"binary8p0se", MPSIM_ENOTFOUND}, {"binary2p1se", MPSIM_ENOTFOUND},
        {"binary17p4se", MPSIM_ENOTFOUND}, {"binary8p4se ", MPSIM_ENOTFOUND},
        {"e4m3:foo", MPSIM_EINVAL},   {"e4m3:", MPSIM_EINVAL},
        {"e4m3:ieee:", MPSIM_EINVAL}, {"e4m3:ieee:ieee", MPSIM_EINVAL},
        {"e4m3:ieee:fn", MPSIM_EINVAL}, {"e4m3:inf:noinf", MPSIM_EINVAL},
        {"e4m3:bias=", MPSIM_EINVAL}, {"e4m3:bias=x", MPSIM_EINVAL},
        {"e4m3:bias=1201", MPSIM_EINVAL}, {"e4m3:bias=7:bias=7", MPSIM_EINVAL},
        {"e4m3:fnuz:unsigned", MPSIM_EINVAL}, {"e12m3", MPSIM_ERANGE},
        {"e4m53", MPSIM_ERANGE},      {"e0m3", MPSIM_ERANGE},
        {"e11m52:bias=1030", MPSIM_ERANGE},
        {"a name of a format that is far longer than any name of a format", MPSIM_ENOTFOUND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mpsim_format f, before;
        memset(&before, 0x5a, sizeof before);
        memcpy(&f, &before, sizeof f);
        const mpsim_status got = mpsim_format_parse(&f, bad[i].name);
        ck_assert_msg(got == bad[i].want, "\"%s\": expected status %d, got %d", bad[i].name,
                      (int)bad[i].want, (int)got);
        ck_assert_msg(memcmp(&f, &before, sizeof f) == 0, "\"%s\" changed the format", bad[i].name);
        ck_assert_msg(mpsim_format_find(bad[i].name) == NULL, "\"%s\" was found", bad[i].name);
    }
    mpsim_format f;
    ck_assert_int_eq(mpsim_format_parse(&f, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_format_parse(NULL, "fp16"), MPSIM_EINVAL);
    ck_assert_ptr_null(mpsim_format_find(NULL));
    ck_assert_ptr_null(mpsim_format_at(mpsim_format_count()));
}
END_TEST

START_TEST(unknown_presets_are_errors)
{
    static const char *const bad[] = {"", " ", "none", "cudaa", "cud", "cuda nosat", "ocp "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(mpsim_preset_find(bad[i]) == NULL, "\"%s\" was found", bad[i]);
    ck_assert_ptr_null(mpsim_preset_find(NULL));
    ck_assert_ptr_null(mpsim_preset_at(mpsim_preset_count()));
    for (size_t i = 0; i < mpsim_preset_count(); i++)
        ck_assert_ptr_eq(mpsim_preset_find(mpsim_preset_at(i)->name), mpsim_preset_at(i));
}
END_TEST

/* Options out of their domain are errors, and nothing is written then. */
START_TEST(invalid_options_are_errors)
{
    const mpsim_format good = format_of("e4m3");
    mpsim_format bad = good;
    mpsim_rounding r, w;
    const float x[2] = {1, 2};
    unsigned char out[2] = {0xaa, 0xaa};
    mpsim_counts n = {1, 2, 3, 4, 5};
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    bad.max_finite = 0x7f; /* no room for the NaN */
    ck_assert_int_eq(mpsim_encode_array_f32(&bad, &r, NULL, out, x, 2, &n), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_encode_array_f32(NULL, &r, NULL, out, x, 2, &n), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_encode_array_f32(&good, NULL, NULL, out, x, 2, &n), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &r, NULL, NULL, x, 2, &n), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &r, NULL, out, NULL, 2, &n), MPSIM_EINVAL);
    w = r;
    w.mode = MPSIM_ROUND_MODES;
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &w, NULL, out, x, 2, &n), MPSIM_EINVAL);
    w.mode = MPSIM_ROUND_STOCHASTIC_C; /* without random numbers */
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &w, NULL, out, x, 2, &n), MPSIM_EINVAL);
    static const double scales[] = {0, -1, INFINITE, NOT_A_NUMBER, -0.0};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        w = r;
        w.scale = scales[i];
        ck_assert_int_eq(mpsim_rounding_check(&w), MPSIM_EINVAL);
        ck_assert_int_eq(mpsim_encode_array_f32(&good, &w, NULL, out, x, 2, &n), MPSIM_EINVAL);
    }
    ck_assert(out[0] == 0xaa && out[1] == 0xaa);
    ck_assert(n.inexact == 1 && n.underflow == 2 && n.subnormal == 3 &&
              n.overflow == 4 && n.nan == 5);
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &r, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
}
END_TEST

int main(void)
{
    TCase *twice = test_case("double rounding", 20);
    tcase_add_test(twice, f32_to_e5m2_does_not_pass_through_fp16);
    tcase_add_test(twice, f32_to_e4m3_does_not_pass_through_bf16);
    tcase_add_test(twice, f64_to_fp16_does_not_pass_through_f32);
    tcase_add_test(twice, no_format_rounds_f64_twice);
    tcase_add_test(twice, integers_to_bf16_do_not_pass_through_f32);
    TCase *overflow = test_case("overflow", 20);
    tcase_add_test(overflow, e4m3_overflow_without_saturation);
    tcase_add_test(overflow, e4m3_overflow_with_saturation);
    tcase_add_test(overflow, presets_overflow_e4m3_as_their_stacks_do);
    tcase_add_test(overflow, formats_with_infinity_overflow_where_they_end);
    tcase_add_test(overflow, to_odd_overflows_by_the_parity_of_the_largest_code);
    TCase *nan = test_case("nan", 20);
    tcase_add_test(nan, nan_rows);
    tcase_add_test(nan, no_nan_becomes_a_number);
    tcase_add_test(nan, no_binary64_nan_becomes_a_number);
    tcase_add_test(nan, formats_without_nan_follow_the_policy);
    TCase *zero = test_case("zeros and subnormals", 20);
    tcase_add_test(zero, zeros_keep_their_sign);
    tcase_add_test(zero, zeros_are_zeros_under_every_scale);
    tcase_add_test(zero, formats_with_one_zero_have_no_minus_zero);
    tcase_add_test(zero, subnormals_are_kept);
    tcase_add_test(zero, flushing_is_explicit);
    tcase_add_test(zero, every_code_survives_decoding_and_encoding);
    TCase *ties = test_case("ties and names", 20);
    tcase_add_test(ties, ties_go_where_the_mode_says);
    tcase_add_test(ties, almost_half_of_the_smallest_number_is_zero);
    tcase_add_test(ties, mode_names_say_where_ties_go);
    TCase *blocks = test_case("block scales", 20);
    tcase_add_test(blocks, block_scales_saturate_or_not);
    tcase_add_test(blocks, products_with_the_scale_are_not_rounded_first);
    tcase_add_test(blocks, e8m0_scales_are_exact_logarithms);
    tcase_add_test(blocks, e8m0_scales_of_special_maxima);
    TCase *errors = test_case("errors", 20);
    tcase_add_test(errors, unknown_formats_are_errors);
    tcase_add_test(errors, unknown_presets_are_errors);
    tcase_add_test(errors, invalid_options_are_errors);
    TCase *const all[] = {twice, overflow, nan, zero, ties, blocks, errors, NULL};
    return test_main("peers", all);
}
