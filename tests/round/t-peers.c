/* t-peers.c -- conversions that other emulators, frameworks and compilers got wrong: double
 * rounding, overflow and saturation, block scales. See peers.h; NaN: t-nan.c, zeros,
 * subnormals and ties: t-zeros.c, names and options: t-refused.c. */
#include "support/peers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    const mpsim_format to = peers_format(to_name), via = peers_format(via_name);
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
                peers_note(p, "%s nearest-even x=%a (%#010" PRIx32 "): expected %#" PRIx64 ", got %#" PRIx64, to.name,
                           (double)x, u, want, got);
        }
    }
    return differ;
}

CASE("double rounding", 20);

TEST(f32_to_e5m2_does_not_pass_through_fp16)
{
    static const row rows[] = {
        {"e5m2", "ieee", RNE, 1.125 + 0x1p-12, 1.25}, /* 0x3f900800 */
        {"e5m2", "ieee", RNE, -(1.125 + 0x1p-12), -1.25}, {"e5m2", "ieee", RNE, 1.125, 1.0},
        {"e5m2", "ieee", RNE, 1.375 - 0x1p-12, 1.25},     {"e5m2", "ieee", RNA, 1.125 - 0x1p-12, 1.0},
    };
    report p = {0};
    CHECK_ROWS(rows);
    ck_assert_uint_eq(detours_around_ties(&p, "e5m2", "fp16"), 16384);
    ck_no_mismatch(&p);
}

TEST(f32_to_e4m3_does_not_pass_through_bf16)
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

TEST(f64_to_fp16_does_not_pass_through_f32)
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
    const mpsim_format f = peers_format("fp16");
    const mpsim_rounding r = rounding_of("ieee", &f, RNE);
    ck_assert_uint_eq(mpsim_encode_f32(&f, &r, (float)0x1.0020000000001p+0, 0, NULL), 0x3c00);
}

/* The same for every format that is coarser than binary32 by two bits or more: just above
 * and just below the two ties next to 1, by less than binary32 can tell. */
TEST(no_format_rounds_f64_twice)
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
                peers_note(&p, "%s x=%a: expected %a, got %a", f->name, x[k], 1 + eps, got);
        }
    }
    ck_no_mismatch(&p);
}

/* Integers from 2^24 on are not all binary32 numbers: int -> f32 -> bf16 rounds twice for
 * 8064 of the integers below 2^30. All of them are within one binary32 unit of a tie. */
TEST(integers_to_bf16_do_not_pass_through_f32)
{
    const mpsim_format f = peers_format("bf16");
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
                    peers_note(&p, "bf16 nearest-even n=%" PRId64 ": expected %#" PRIx64 ", got %#" PRIx64, n, want,
                               got);
            }
        }
    }
    ck_no_mismatch(&p);
    ck_assert_uint_eq(differ, 8064);
}

/* ---- overflow and saturation ---- */

CASE("overflow", 20);

/* OCP E4M3 ends at 448, not at 480; 464 is a tie and goes to the even 448. */
TEST(e4m3_overflow_without_saturation)
{
    static const row rows[] = {
        {"e4m3", "ocp", RNE, 448, 448},
        {"e4m3", "ocp", RNE, 464, 448},
        {"e4m3", "ocp", RNE, 464.0625, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 465, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 480, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 481, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 496, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, 1e6, NOT_A_NUMBER},
        {"e4m3", "ocp", RNE, -480, NOT_A_NUMBER},
        {"e4m3", "ocp", RNA, 464, NOT_A_NUMBER},
        {"e4m3", "ocp", RNA, 463.9375, 448},
        {"e4m3", "ocp", RTZ, 480, 448},
        {"e4m3", "ocp", RTZ, 500, 448},
        {"e4m3", "ocp", RTZ, 1e6, 448},
        {"e4m3", "ocp", RTZ, -1e6, -448},
        {"e4m3", "ocp", RUP, 449, NOT_A_NUMBER},
        {"e4m3", "ocp", RUP, -449, -448},
        {"e4m3", "ocp", RDN, 449, 448},
        {"e4m3", "ocp", RDN, -449, NOT_A_NUMBER},
        {"e4m3", "ocp", RTZ, INFINITE, NOT_A_NUMBER},
        {"e4m3", "ocp", RDN, -INFINITE, NOT_A_NUMBER},
    };
    CHECK_ROWS(rows);
}

TEST(e4m3_overflow_with_saturation)
{
    static const double x[] = {464, 464.0625, 465, 480, 481, 496, 500, 1e6, 1e300, INFINITE};
    report p = {0};
    const mpsim_format f = peers_format("e4m3");
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++) {
            const mpsim_rounding r = rounding_of("ocp-sat", &f, mode);
            unsigned flags;
            const uint64_t up = encode(&p, &f, &r, x[i], &flags);
            const uint64_t down = encode(&p, &f, &r, -x[i], &flags);
            if (up != 0x7e || down != 0xfe)
                peers_note(&p, "e4m3 ocp-sat %s x=+-%a: expected 0x7e, 0xfe, got %#" PRIx64 ", %#" PRIx64,
                           mpsim_round_mode_name(r.mode), x[i], up, down);
        }
    ck_no_mismatch(&p);
}

/* What 480, 1e6 and infinity become in E4M3, stack by stack. 7e is 448, 7f is NaN. */
TEST(presets_overflow_e4m3_as_their_stacks_do)
{
    static const struct {
        const char *preset;
        uint64_t overflow, infinity;
    } stacks[] = {
        {"ieee", 0x7f, 0x7f},
        {"saturate", 0x7e, 0x7e},
        {"ocp", 0x7f, 0x7f},
        {"ocp-sat", 0x7e, 0x7e},
        {"cuda", 0x7e, 0x7e},
        {"cuda-nosat", 0x7f, 0x7f},
        {"ml-dtypes", 0x7f, 0x7f},
        {"pytorch", 0x7e, 0x7e},
        {"pytorch-2.12", 0x7f, 0x7f},
        {"onnx", 0x7e, 0x7e},
        {"onnx-nosat", 0x7f, 0x7f},
        /* P3109 has no rule for a NaN that stands for infinity: the largest number does */
        {"p3109-satfinite", 0x7e, 0x7e},
        {"p3109-satpropagate", 0x7e, 0x7e},
        {"p3109-satnone", 0x7e, 0x7e},
    };
    static const double x[] = {464.0625, 465, 480, 481, 1e6, (double)FLT_MAX, 1e300};
    const mpsim_format f = peers_format("e4m3");
    report p = {0};
    for (size_t k = 0; k < mpsim_preset_count(); k++) {
        const char *name = mpsim_preset_at(k)->name;
        const mpsim_rounding r = rounding_of(name, &f, RNE);
        size_t s = 0;
        while (s < sizeof stacks / sizeof stacks[0] && strcmp(stacks[s].preset, name) != 0)
            s++;
        if (s == sizeof stacks / sizeof stacks[0]) {
            peers_note(&p, "preset %s: no expectation in this test", name);
            continue;
        }
        unsigned flags;
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
            for (int sign = 0; sign < 2; sign++) {
                const uint64_t want = stacks[s].overflow | (sign ? 0x80u : 0);
                const uint64_t got = encode(&p, &f, &r, sign ? -x[i] : x[i], &flags);
                if (got != want || flags != (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW))
                    peers_note(&p, "e4m3 %s x=%a: expected %#" PRIx64 ", got %#" PRIx64 ", flags %u", name,
                               sign ? -x[i] : x[i], want, got, flags);
            }
        for (int sign = 0; sign < 2; sign++) {
            const uint64_t want = stacks[s].infinity | (sign ? 0x80u : 0);
            const uint64_t got = encode(&p, &f, &r, sign ? -INFINITE : INFINITE, &flags);
            if (got != want || flags != 0)
                peers_note(&p, "e4m3 %s x=%sinf: expected %#" PRIx64 ", got %#" PRIx64 ", flags %u", name,
                           sign ? "-" : "", want, got, flags);
        }
        if (encode(&p, &f, &r, 464, &flags) != 0x7e || encode(&p, &f, &r, -464, &flags) != 0xfe)
            peers_note(&p, "e4m3 %s: 464, a tie, did not go to 448", name);
    }
    ck_no_mismatch(&p);
}

/* In E5M2 61440 is the tie and goes to infinity; fp16 and bf16 likewise beyond their ends.
 * Others gave 65536, 131008 or 0, or stopped at the wrong power of two. */
TEST(formats_with_infinity_overflow_where_they_end)
{
    /* clang-format off */
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
    /* clang-format on */
    CHECK_ROWS(rows);
}

/* To odd: the largest number stays if its code is odd, else infinity or what stands for it
 * follows, which is the odd one. */
TEST(to_odd_overflows_by_the_parity_of_the_largest_code)
{
    static const row rows[] = {
        {"fp16", "ieee", ODD, 1e6, 65504},
        {"fp16", "ieee", ODD, -1e6, -65504}, /* 7bff */
        {"e5m2", "ieee", ODD, 1e6, 57344},
        {"e4m3ieee", "ieee", ODD, 1e6, 240}, /* 7b, 77 */
        {"e4m3", "ieee", ODD, 1e6, NOT_A_NUMBER},
        {"e4m3", "ieee", ODD, 449, NOT_A_NUMBER},    /* 7e */
        {"binary8p4se", "ieee", ODD, 1e6, INFINITE}, /* 7e */
        {"binary8p4se", "ieee", ODD, -1e6, -INFINITE},
        {"binary8p4ue", "ieee", ODD, 0x1p40, 0x1.ap+15}, /* fd */
    };
    CHECK_ROWS(rows);
}

/* ---- block scales ---- */

CASE("block scales", 20);

/* A scale floor(log2 amax) - emax saturates the largest element: 957 / 2 is beyond 448. The
 * next larger scale does not. The multiplication by the scale is part of the rounding. */
TEST(block_scales_saturate_or_not)
{
    const mpsim_format f = peers_format("e4m3");
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
    const mpsim_format h = peers_format("fp16");
    mpsim_rounding d = rounding_of("ieee", &h, RDN);
    d.scale = 1.0 / 3;
    ck_assert_uint_eq(mpsim_encode_f32(&h, &d, 3, 0, &flags), 0x3bff);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT);
    d.mode = RUP;
    ck_assert_uint_eq(mpsim_encode_f32(&h, &d, 3, 0, &flags), 0x3c00);
}

/* The product of two 53-bit significands needs 106 bits: this one is 1 + 2^-11, a tie of fp16,
 * plus 2^-69 or so. Rounded to binary64 or to 64 bits first, it is the tie. */
TEST(products_with_the_scale_are_not_rounded_first)
{
    const double x = 0x1.f7e5ed1c4b865p+0, scale = 0x1.043e39a980f8bp-1;
    const mpsim_format f = peers_format("fp16");
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

/* floor(log2 amax) and ceil(log2 amax) as an E8M0 scale are roundings toward zero and up:
 * exact at and next to every power of two, where log2() in binary32 is not. */
TEST(e8m0_scales_are_exact_logarithms)
{
    const mpsim_format f = peers_format("e8m0");
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
                peers_note(
                    &p, "e8m0 x=%a (%#010" PRIx32 "): expected %#" PRIx64 ", %#" PRIx64 ", got %#" PRIx64 ", %#" PRIx64,
                    x, u, want_down, want_up, c, d);
        }
    ck_no_mismatch(&p);
}

/* amax = 0, subnormal, infinite or NaN. */
TEST(e8m0_scales_of_special_maxima)
{
    const mpsim_format f = peers_format("e8m0");
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

TEST_MAIN("peers");
