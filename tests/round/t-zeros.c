/* t-zeros.c -- signed zeros, subnormals, flushing and ties as other emulators got them wrong.
 * See peers.h. */
#include "support/peers.h"

#include <inttypes.h>
#include <math.h>

/* ---- signed zero and subnormals ---- */

CASE("zeros and subnormals", 20);

/* -0 stays -0, and what rounds to zero keeps its sign, in every mode; an underflow to -0
 * counts like one to +0. */
TEST(zeros_keep_their_sign)
{
    static const char *const names[] = {"fp16", "bf16", "tf32", "e5m2", "e4m3",    "e4m3ieee",
                                        "e3m4", "e3m2", "e2m3", "e2m1", "binary32"};
    static const double tiny[] = {0, 1e-30, 0x1p-149, 0x1p-30, 0x1p-1074, 0x1p-160};
    report p = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mpsim_format f = peers_format(names[i]);
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
                const unsigned zero_flags = inexact ? MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW : 0;
                const unsigned least_flags = MPSIM_FLAG_INEXACT | MPSIM_FLAG_SUBNORMAL;
                if (plus != want_plus || minus != want_minus || plus_flags != (up ? least_flags : zero_flags) ||
                    minus_flags != (down ? least_flags : zero_flags))
                    peers_note(&p,
                               "%s %s x=+-%a: expected %#" PRIx64 ", %#" PRIx64 ", got %#" PRIx64
                               " (flags %u), %#" PRIx64 " (flags %u)",
                               f.name, mpsim_round_mode_name(r.mode), tiny[k], want_plus, want_minus, plus, plus_flags,
                               minus, minus_flags);
            }
    }
    ck_no_mismatch(&p);
}

/* Zero times a scale is zero, however large the scale and the range of the format; in arrays
 * too, which take another path than single numbers. */
TEST(zeros_are_zeros_under_every_scale)
{
    enum { N = 300 };
    static const char *const names[] = {"e11m1:fnuz", "e11m10", "e11m51", "binary64", "binary32",
                                        "bf16",       "fp16",   "e4m3",   "e2m1",     "binary8p1se"};
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
                const mpsim_format f = peers_format(names[i]);
                const mpsim_rng rng = {1, 2, 3};
                const size_t bytes = mpsim_format_code_bytes(&f);
                mpsim_rounding r = rounding_of("ieee", &f, mode);
                mpsim_counts c = {0, 0, 0, 0, 0};
                r.scale = scales[k];
                ck_assert(!mpsim_encode_array_f32(&f, &r, &rng, codes[0], x, N, &c) &&
                          !mpsim_encode_array_f64(&f, &r, &rng, codes[1], y, N, &c));
                for (size_t j = 0; j < 2 * N; j++) {
                    double v;
                    if (mpsim_decode_array(&f, &v, &codes[j / N][j % N * bytes], 1) != MPSIM_OK || v != 0 ||
                        (signbit(v) != 0) != (j % N % 3 == 0 && f.zero == MPSIM_ZERO_SIGNED))
                        peers_note(&p, "%s %s scale %a, array, element %zu: %a", f.name, mpsim_round_mode_name(r.mode),
                                   r.scale, j, v);
                }
                if (c.inexact || c.underflow || c.subnormal || c.overflow || c.nan)
                    peers_note(&p, "%s %s scale %a: zeros were counted", f.name, mpsim_round_mode_name(r.mode),
                               r.scale);
            }
    ck_no_mismatch(&p);
}

/* P3109 and FNUZ formats have one zero: -0 and negative underflow give it, not their NaN. */
TEST(formats_with_one_zero_have_no_minus_zero)
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
                peers_note(&p, "%s %s: -0 is not code 0", f->name, mpsim_round_mode_name(r.mode));
            if (mode != RDN && mode != ODD && encode(&p, f, &r, -1e-300, &flags) != 0)
                peers_note(&p, "%s %s: -1e-300 is not code 0", f->name, mpsim_round_mode_name(r.mode));
        }
    }
    ck_no_mismatch(&p);
    ck_assert_uint_ge(formats, 30);
}

TEST(subnormals_are_kept)
{
    static const row rows[] = {
        {"fp16", "ieee", RNE, -0x1p-30, -0.0},
        {"fp16", "ieee", RNE, 0x1p-25, 0.0}, /* a tie */
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
        {"e4m3", "ieee", RNE, 0x1.ep-7, 0x1p-6}, /* the largest subnormal is 1.75 * 2^-7 */
        {"e5m2", "ieee", RNE, 0x1p-17, 0.0},
        {"e5m2", "ieee", RNE, 0x1.cp-15, 0x1p-14}, /* a tie: into the normal range */
    };
    CHECK_ROWS(rows);
}

/* Flushing is a choice of its own, for input and output separately. */
TEST(flushing_is_explicit)
{
    const mpsim_format bf16 = peers_format("bf16"), fp16 = peers_format("fp16");
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

/* Decoding and encoding gives the code back: all codes that are not NaN, every mode, every
 * preset that does not forbid infinities. */
TEST(every_code_survives_decoding_and_encoding)
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
                    peers_note(&p, "%s %s code %#" PRIx64 " = %a: got %#" PRIx64 ", flags %u", f->name,
                               mpsim_round_mode_name(r.mode), code, v, got, flags);
            }
        }
    }
    ck_no_mismatch(&p);
}

/* ---- ties ---- */

CASE("ties", 20);

TEST(ties_go_where_the_mode_says)
{
    static const row rows[] = {
        {"fp16", "ieee", RNE, 1.00048828125, 1.0}, /* 1 + 2^-11 */
        {"fp16", "ieee", RNA, 1.00048828125, 1.0009765625},
        {"fp16", "ieee", RNE, 1.00146484375, 1.001953125},
        {"e4m3", "ieee", RNE, 1.0625, 1.0},
        {"e4m3", "ieee", RNA, 1.0625, 1.125},
        {"e4m3", "ieee", RNE, -1.0625, -1.0},
        {"e4m3", "ieee", RNA, -1.0625, -1.125},
        {"e4m3", "ieee", RNE, 1.1875, 1.25},
        /* Directed modes act on any discarded part, however small. */
        {"e5m2", "ieee", RUP, 1.0625, 1.25},
        {"e5m2", "ieee", RDN, 1.0625, 1.0},
        {"e5m2", "ieee", RUP, -1.0625, -1.0},
        {"e5m2", "ieee", RDN, -1.0625, -1.25},
        {"e5m2", "ieee", RUP, 1.0000001192092896, 1.25},
        {"e5m2", "ieee", RDN, -1.0000001192092896, -1.25},
        {"e5m2", "ieee", RTZ, 1.2499998807907104, 1.0},
        {"bf16", "ieee", RNE, (double)0.2691408770292272f, 0.26953125},
        {"bf16", "ieee", RTZ, (double)0.2691408770292272f, 0.267578125},
        {"bf16", "ieee", RNE, 0.2691408770292272, 0.26953125},
    };
    CHECK_ROWS(rows);
}

/* floor(|a| + 0.5) in binary32 takes (1/2 - 2^-25) for 1/2. */
TEST(almost_half_of_the_smallest_number_is_zero)
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
                peers_note(&p, "%s %s: half of %a less, equal, more: got %#" PRIx64 ", %#" PRIx64 ", %#" PRIx64,
                           f->name, mpsim_round_mode_name(r.mode), least, below, tie, above);
        }
    }
    ck_no_mismatch(&p);
}

TEST_MAIN("zeros");
