/* t-nan.c -- NaN inputs that other emulators lost, carried into the sign, or made infinity or
 * zero of. See peers.h. */
#include "support/peers.h"

#include <mpsim/arith.h>
#include <mpsim/isa.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

CASE("nan", 20);

/* NaN inputs that lost their payload, carried into the sign, or became infinity or zero. */
TEST(nan_rows)
{
    static const struct {
        uint32_t u;
        const char *format;
        uint64_t want;
    } rows[] = {
        {0x7f800001, "fp16", 0x7e00},
        {0x7f800001, "bf16", 0x7fc0},
        {0x7f800001, "e4m3", 0x7f},
        {0x7f800001, "e5m2", 0x7e},
        {0x7fffe2da, "fp16", 0x7e00},
        {0x7fe003cf, "e5m2", 0x7e},
        {0x7ff000f6, "e4m3", 0x7f},
        {0x7fff8c22, "bf16", 0x7fc0},
        {0x7fffffff, "bf16", 0x7fc0},
        {0x7fc00000, "e4m3", 0x7f},
        {0x7fc00000, "tf32", 0x3fe00},
        {0x7fc00000, "e8m0", 0xff},
        {0x7f800001, "e4m3fnuz", 0x80},
        {0x7fc00000, "e5m2fnuz", 0x80},
        {0x7f800001, "e4m3b11fnuz", 0x80},
        {0x7f800001, "e4m3ieee", 0x7c},
        {0x7f800001, "e3m4", 0x78},
        {0x7f800001, "binary32", 0x7fc00000},
        {0x7f800001, "binary64", 0x7ff8000000000000},
        {0x7f800001, "binary8p4se", 0x80},
        {0x7f800001, "binary8p4ue", 0xff},
    };
    report p = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mpsim_format f = peers_format(rows[i].format);
        for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
            for (uint32_t random = 0;; random = 0xffffffffu) {
                const mpsim_rounding r = rounding_of("ieee", &f, mode);
                const uint64_t sign = f.nan != MPSIM_NAN_NEGZERO && mpsim_format_is_signed(&f)
                                          ? (uint64_t)1 << (f.bits - 1)
                                          : 0;
                unsigned flags, flags2;
                const uint64_t plus = mpsim_encode_f32(&f, &r, f32_of_bits(rows[i].u), random, &flags);
                const uint64_t minus = mpsim_encode_f32(&f, &r, f32_of_bits(rows[i].u | 0x80000000u), random, &flags2);
                if (plus != rows[i].want || minus != (rows[i].want | sign) || flags != MPSIM_FLAG_NAN ||
                    flags2 != MPSIM_FLAG_NAN)
                    peers_note(&p,
                               "%s %s input %#010" PRIx32 ": expected %#" PRIx64 " and %#" PRIx64 ", got %#" PRIx64
                               " (flags %u) and %#" PRIx64 " (flags %u)",
                               f.name, mpsim_round_mode_name(r.mode), rows[i].u, rows[i].want, rows[i].want | sign,
                               plus, flags, minus, flags2);
                if (random)
                    break;
            }
    }
    ck_no_mismatch(&p);
}

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
TEST(no_nan_becomes_a_number)
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
                    const uint64_t code = mpsim_encode_f32(f, &r, f32_of_bits(u), 0xffffffffu, &flags);
                    if (!is_quiet_nan(f, code) || flags != MPSIM_FLAG_NAN)
                        peers_note(&p, "%s %s rule %d input %#010" PRIx32 ": got %#" PRIx64 " = %a, flags %u", f->name,
                                   mpsim_round_mode_name(r.mode), rule, u, code, mpsim_decode(f, code), flags);
                }
            }
    }
    ck_no_mismatch(&p);
}

/* The same with binary64: every single payload bit, and runs of ones from either end. */
TEST(no_binary64_nan_becomes_a_number)
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
                    const uint64_t payload = k / 104 == 0 ? one : k / 104 == 1 ? 2 * one - 1 : all & ~(one - 1);
                    const uint64_t u = (uint64_t)(k % 2) << 63 | 0x7ffu * (all + 1) | payload;
                    unsigned flags;
                    const uint64_t code = mpsim_encode_f64(f, &r, f64_of_bits(u), 0, &flags);
                    const int good = f->nan == MPSIM_NAN_NONE ? code == f->max_finite : is_quiet_nan(f, code);
                    if (!good || flags != MPSIM_FLAG_NAN)
                        peers_note(&p, "%s %s rule %d input %#018" PRIx64 ": got %#" PRIx64 ", flags %u", f->name,
                                   mpsim_round_mode_name(r.mode), rule, u, code, flags);
                }
            }
    }
    ck_no_mismatch(&p);
}

/* cvt.rna.tf32 keeps a NaN's sign and its leading bits, which may be those of an infinity: an H200 said so for all
 * 2^24 NaNs (data/gpu). Other conversions to tf32 make NaNs canonical. Arrays and numbers, all kernels. */
static uint64_t cuda_tf32(uint32_t u, int mode)
{
    return mode == MPSIM_ROUND_NEAREST_AWAY ? u >> 13 : 0x3ffff;
}

static void compare_cuda_tf32(report *p, const mpsim_format *f, const mpsim_rounding *r, const uint32_t *u, size_t n)
{
    static uint32_t codes[2048];
    static float x[2048], y[2048];
    mpsim_counts counts = {0, 0, 0, 0, 0};
    memcpy(x, u, n * sizeof *x);
    ck_assert(mpsim_encode_array_f32(f, r, NULL, codes, x, n, n % 2 ? &counts : NULL) == MPSIM_OK &&
              mpsim_round_array_f32(f, r, NULL, y, x, n, NULL) == MPSIM_OK && counts.nan == (n % 2 ? n : 0));
    for (size_t i = 0; i < n; i++) {
        const uint64_t want = cuda_tf32(u[i], r->mode), one = mpsim_encode_f32(f, r, f32_of_bits(u[i]), 0, NULL);
        const uint64_t value = bits_of_f64(mpsim_decode(f, want)),
                       single = value >> 63 << 31 | 0x7f800000 | (value >> 29 & 0x7fffff);
        if (codes[i] != want || bits_of_f32(y[i]) != single || (sizeof(void *) == 8 && one != want))
            peers_note(p,
                       "%s mode %d scale %a input %#010" PRIx32 ": expected %#" PRIx64 ", got %#" PRIx32 " %#" PRIx64
                       " value %#" PRIx32,
                       mpsim_isa_active(), r->mode, r->scale, u[i], want, codes[i], one, bits_of_f32(y[i]));
    }
}

TEST(bug_20261127_cuda_tf32_nans)
{
    static const char *const presets[] = {"cuda", "cuda-nosat"};
    static const double scales[] = {1, 3, 0x1p60, 0x1p300};
    const mpsim_format *f = mpsim_format_find("tf32");
    const char *active = mpsim_isa_active();
    report p = {0};
    static uint32_t u[2048];
    for (size_t k = 0; mpsim_isa_at(k); k++)
        for (int c = 0; c < 2 * 4 * MPSIM_ROUND_STOCHASTIC_A && mpsim_isa_use(mpsim_isa_at(k)) == MPSIM_OK; c++) {
            mpsim_rounding r = rounding_of(presets[c & 1], f, c / 8);
            r.scale = scales[c / 2 % 4];
            for (size_t i = 0; i < 2048; i++) /* one bit of the payload, and all below or above it */
                u[i] = (uint32_t)(i & 1) << 31 | 0x7f800000u |
                       (i < 46   ? 1u << i / 2
                        : i < 92 ? (2u << (i - 46) / 2) - 1
                                 : (uint32_t)(i * 0x9e3779b1u) & 0x7fffff) |
                       (i >= 92);
            compare_cuda_tf32(&p, f, &r, u, 2048);
            compare_cuda_tf32(&p, f, &r, u + 1, 77);
        }
    ck_assert(mpsim_isa_use(active) == MPSIM_OK);
    ck_no_mismatch(&p);
}

/* Of other formats: leading bits where these are a NaN's or an infinity's, else ones; never a number. A NaN that an
 * operation makes has no payload: ones. */
TEST(cut_nans_are_no_numbers)
{
    report p = {0};
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        mpsim_rounding r = rounding_of("ieee", f, MPSIM_ROUND_NEAREST_AWAY), ones = r;
        r.nan = MPSIM_NANS_ONES_OR_CUT;
        ones.nan = MPSIM_NANS_ONES;
        const int cut = f->nan == MPSIM_NAN_TOP && f->inf && f->mbits &&
                        f->max_finite + 1 == (uint64_t)((1 << f->ebits) - 1) << f->mbits;
        for (int bit = 0; bit < 52 && f->nan; bit++) {
            const double x = f64_of_bits(UINT64_C(0xfff0000000000000) | UINT64_C(1) << bit);
            const uint64_t code = mpsim_encode_f64(f, &r, x, 0, NULL),
                           canonical = mpsim_encode_f64(f, &ones, x, 0, NULL);
            const uint64_t kept = f->mbits + bit >= 52 ? (uint64_t)1 << (f->mbits + bit - 52) : 0;
            const uint64_t sign = mpsim_format_is_signed(f) ? (uint64_t)1 << (f->bits - 1) : 0;
            if (code != (cut ? (f->max_finite + 1 + kept) | sign : canonical))
                peers_note(&p, "%s bit %d: got %#" PRIx64, f->name, bit, code);
        }
        mpsim_arith o;
        mpsim_arith_init(&o, MPSIM_OP_SUB, f, MPSIM_ROUND_NEAREST_AWAY);
        const uint64_t inf = f->max_finite + 1;
        o.rounding = r;
        const uint64_t made = mpsim_arith_apply(&o, inf, inf, 0, 0, NULL);
        if (f->inf && mpsim_classify(f, made) != MPSIM_CLASS_NAN)
            peers_note(&p, "%s: inf - inf is %#" PRIx64, f->name, made);
    }
    ck_no_mismatch(&p);
}

/* E2M1, E2M3 and E3M2 have no NaN: the choice decides, nothing else. */
TEST(formats_without_nan_follow_the_choice)
{
    static const struct {
        const char *format;
        uint64_t max, minus_zero;
    } rows[] = {{"e2m1", 0x7, 0x8}, {"e2m3", 0x1f, 0x20}, {"e3m2", 0x1f, 0x20}};
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0x7fffffff, 0x7fffe2da, 0x7fa00000};
    report p = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const mpsim_format f = peers_format(rows[i].format);
        for (int choice = 0; choice <= MPSIM_NO_NAN_ANTIZERO; choice++)
            for (int mode = 0; mode < MPSIM_ROUND_MODES; mode++)
                for (size_t k = 0; k < 2 * sizeof nans / sizeof nans[0]; k++) {
                    mpsim_rounding r = rounding_of("ieee", &f, mode);
                    r.no_nan = (uint8_t)choice;
                    const uint32_t u = nans[k / 2] | (uint32_t)(k % 2) << 31;
                    const uint64_t got = mpsim_encode_f32(&f, &r, f32_of_bits(u), 0, NULL);
                    const uint64_t want = choice == MPSIM_NO_NAN_MAX    ? rows[i].max
                                          : choice == MPSIM_NO_NAN_ZERO ? 0
                                          : k % 2                       ? 0
                                                                        : rows[i].minus_zero;
                    if (got != want)
                        peers_note(&p, "%s %s choice %d input %#010" PRIx32 ": expected %#" PRIx64 ", got %#" PRIx64,
                                   f.name, mpsim_round_mode_name(r.mode), choice, u, want, got);
                }
    }
    ck_no_mismatch(&p);
}

TEST_MAIN("nan");
