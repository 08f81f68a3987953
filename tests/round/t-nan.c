/* t-nan.c -- NaN inputs that other emulators lost, carried into the sign, or made infinity or
 * zero of. See peers.h. */
#include "support/peers.h"

#include <inttypes.h>
#include <math.h>

/* NaN inputs that lost their payload, carried into the sign, or became infinity or zero. */
START_TEST(nan_rows)
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
                    const uint64_t code = mpsim_encode_f32(f, &r, f32_of_bits(u), 0xffffffffu, &flags);
                    if (!is_quiet_nan(f, code) || flags != MPSIM_FLAG_NAN)
                        peers_note(&p, "%s %s rule %d input %#010" PRIx32 ": got %#" PRIx64 " = %a, flags %u", f->name,
                                   mpsim_round_mode_name(r.mode), rule, u, code, mpsim_decode(f, code), flags);
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
END_TEST

/* E2M1, E2M3 and E3M2 have no NaN: the choice decides, nothing else. */
START_TEST(formats_without_nan_follow_the_choice)
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
END_TEST

int main(void)
{
    TCase *nan = test_case("nan", 20);
    tcase_add_test(nan, nan_rows);
    tcase_add_test(nan, no_nan_becomes_a_number);
    tcase_add_test(nan, no_binary64_nan_becomes_a_number);
    tcase_add_test(nan, formats_without_nan_follow_the_choice);
    return test_main("nan", (TCase *const[]){nan, NULL});
}
