/* t-codes.c -- proves <mpsim/format.h>: what every code means. Spellings: t-names.c.
 *
 * The formats are those of the library's table, by iteration: a new row fails here until
 * the oracle knows it. Their meaning is the oracle's. */
#include "oracle/neighbours.h"
#include "support/cases.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/format.h>
#include <mpsim/round.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A format under test: row i of the table, and behind the rows the typed eXmY spellings. */
typedef struct subject {
    mpsim_format f;
    const oracle_format *of;
} subject;

static subject subject_at(size_t i)
{
    subject s;
    const mpsim_format *row = mpsim_format_at(i);
    const char *name = row ? row->name : oracle_typed(i - mpsim_format_count());
    ck_assert_msg(mpsim_format_parse(&s.f, name) == MPSIM_OK, "%s does not parse", name);
    s.of = oracle_find(name);
    ck_assert_msg(s.of != NULL, "the oracle does not know row %s", name);
    return s;
}

/* One process for all of them: a fork per format would cost more than the checks. */
static void for_all(void (*check)(size_t index))
{
    size_t n = mpsim_format_count();
    for (size_t k = 0; oracle_typed(k); k++)
        n++;
    for (size_t i = 0; i < n; i++)
        check(i);
}

/* Codes to test: all of them up to 19 bits; beyond that code number k of a sample which
 * holds the ends of every field and random codes. */
static size_t codes_of(const oracle_format *of)
{
    return of->bits <= 19 ? (size_t)1 << of->bits : test_scaled(400000);
}

static uint64_t code_at(const oracle_format *of, size_t k)
{
    if (of->bits <= 19)
        return k;
    const uint64_t all = of->bits < 64 ? ((uint64_t)1 << of->bits) - 1 : ~(uint64_t)0;
    const uint64_t anchors[] = {0, (uint64_t)1 << (of->precision - 1), of->max_code, of->inf, of->nan, of->nan_high};
    const size_t n = sizeof anchors / sizeof anchors[0];
    if (k < n * 16) {
        const uint64_t c = anchors[k % n] + k / n % 8 - 4;
        return (k / n < 8 ? c : c | (uint64_t)1 << (of->bits - 1)) & all;
    }
    uint64_t state = test_seed() + k;
    return test_random(&state) & all;
}

/* Only the list gives the neighbours, and C's own types. */
static int has_neighbours(const oracle_format *of)
{
    return of->values || strcmp(of->name, "binary32") == 0 || strcmp(of->name, "binary64") == 0;
}

static mpsim_class library_class(oracle_class c)
{
    switch (c) {
    case ORACLE_NAN:
        return MPSIM_CLASS_NAN;
    case ORACLE_INF:
        return MPSIM_CLASS_INF;
    case ORACLE_ZERO:
        return MPSIM_CLASS_ZERO;
    case ORACLE_SUBNORMAL:
        return MPSIM_CLASS_SUBNORMAL;
    default:
        return MPSIM_CLASS_NORMAL;
    }
}

static void check_every_code_decodes_to_its_value(size_t index)
{
    const subject s = subject_at(index);
    for (size_t k = 0; k < codes_of(s.of); k++) {
        const uint64_t c = code_at(s.of, k);
        const double want = oracle_decode(s.of, c), got = mpsim_decode(&s.f, c);
        if (bits_of_f64(want) != bits_of_f64(got))
            ck_abort_msg("%s code 0x%" PRIx64 ": expected %a 0x%016" PRIx64 ", got %a 0x%016" PRIx64, s.of->name, c,
                         want, bits_of_f64(want), got, bits_of_f64(got));
    }
}

CASE("codes", 60);

TEST(every_code_decodes_to_its_value)
{
    for_all(check_every_code_decodes_to_its_value);
}

static void check_every_code_has_its_class(size_t index)
{
    const subject s = subject_at(index);
    for (size_t k = 0; k < codes_of(s.of); k++) {
        const uint64_t c = code_at(s.of, k);
        const int want = (int)library_class(oracle_classify(s.of, c));
        const int got = (int)mpsim_classify(&s.f, c);
        if (want != got)
            ck_abort_msg("%s code 0x%" PRIx64 " %a: expected class %d, got %d", s.of->name, c, oracle_decode(s.of, c),
                         want, got);
    }
}

TEST(every_code_has_its_class)
{
    for_all(check_every_code_has_its_class);
}

static void check_bits_above_the_code_are_ignored(size_t index)
{
    const subject s = subject_at(index);
    if (s.of->bits == 64)
        return;
    for (size_t k = 0; k < 4096; k++) {
        const uint64_t c = code_at(s.of, k * 37 % codes_of(s.of));
        uint64_t state = k;
        const uint64_t dirty = c | test_random(&state) << s.of->bits;
        if (mpsim_classify(&s.f, dirty) != mpsim_classify(&s.f, c) ||
            bits_of_f64(mpsim_decode(&s.f, dirty)) != bits_of_f64(mpsim_decode(&s.f, c)))
            ck_abort_msg("%s code 0x%" PRIx64 " differs from 0x%" PRIx64, s.of->name, dirty, c);
    }
}

TEST(bits_above_the_code_are_ignored)
{
    for_all(check_bits_above_the_code_are_ignored);
}

/* What encode(decode(c)) must be, under the NaN rule: c itself, but for NaNs and for the
 * one zero of a format, whose value 0 has one code anyway. */
static uint64_t round_trip(const oracle_format *of, const mpsim_rounding *r, uint64_t c)
{
    if (oracle_classify(of, c) != ORACLE_NAN || !of->nan_low)
        return c;
    const uint64_t sign = of->is_signed ? c & (uint64_t)1 << (of->bits - 1) : 0;
    if (r->nan == MPSIM_NANS_SIGNED)
        return sign | of->nan;
    /* PAYLOAD: the same NaN, made quiet, where the format has a quiet bit */
    const uint64_t quiet = of->precision > 1 ? (uint64_t)1 << (of->precision - 2) : 0;
    return oracle_classify(of, c | quiet) == ORACLE_NAN ? c | quiet : sign | of->nan;
}

static void check_decoding_and_encoding_gives_the_same_code(size_t index)
{
    const subject s = subject_at(index);
    static const mpsim_nan_rule rules[] = {MPSIM_NANS_SIGNED, MPSIM_NANS_PAYLOAD};
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        for (size_t q = 0; q < 2; q++) {
            mpsim_rounding r;
            if ((m || q) && !test_in_part(index + (size_t)m + q, 1))
                continue;
            mpsim_rounding_init(&r, (mpsim_round_mode)m);
            r.nan = (uint8_t)rules[q];
            for (size_t k = 0; k < codes_of(s.of); k++) {
                const uint64_t c = code_at(s.of, k);
                if (codes_of(s.of) > 1024 && !test_in_part(k + (size_t)m, 16) &&
                    oracle_classify(s.of, c) == ORACLE_NORMAL)
                    continue;
                const uint64_t want = round_trip(s.of, &r, c);
                const double y = mpsim_decode(&s.f, c);
                const uint32_t word = cases_word(k);
                unsigned flags = 0xdead, flags32 = 0xdead;
                const uint64_t c64 = mpsim_encode_f64(&s.f, &r, y, word, &flags);
                uint64_t c32 = want;
                const int nan = isnan(y);
                uint32_t u32 = 0;
                if (nan) {
                    const uint64_t u = bits_of_f64(y);
                    u32 = (uint32_t)(u >> 63) << 31 | 0x7f800000 | ((uint32_t)(u >> 29) & 0x7fffff);
                } else if ((double)(float)y == y) {
                    u32 = bits_of_f32((float)y);
                }
                if (nan || (double)(float)y == y)
                    c32 = mpsim_encode_f32(&s.f, &r, f32_of_bits(u32), word, &flags32);
                else
                    flags32 = flags;
                /* An exact value raises nothing; NaN and subnormal are what they are. */
                const oracle_class k_class = oracle_classify(s.of, c);
                const unsigned want_flags = k_class == ORACLE_NAN         ? MPSIM_FLAG_NAN
                                            : k_class == ORACLE_SUBNORMAL ? MPSIM_FLAG_SUBNORMAL
                                                                          : 0;
                /* more payload bits than binary32 has cannot come through it */
                const int lost = nan && s.of->precision > 24;
                if (c64 != want || (c32 != want && !lost) || flags != want_flags || flags32 != want_flags)
                    ck_abort_msg("%s %s nan=%d code 0x%" PRIx64 " %a: expected 0x%" PRIx64
                                 " flags 0x%x, got _f64 0x%" PRIx64 " 0x%x, _f32 0x%" PRIx64 " 0x%x",
                                 s.of->name, mode_name(m), r.nan, c, y, want, want_flags, c64, flags, c32, flags32);
            }
        }
}

TEST(decoding_and_encoding_gives_the_same_code)
{
    for_all(check_decoding_and_encoding_gives_the_same_code);
}

static void check_next_up_and_next_down_are_the_neighbours(size_t index)
{
    const subject s = subject_at(index);
    if (!has_neighbours(s.of))
        return;
    for (size_t k = 0; k < codes_of(s.of); k++) {
        const uint64_t c = code_at(s.of, k);
        const uint64_t up = oracle_next_up(s.of, c), down = oracle_next_down(s.of, c);
        const uint64_t got_up = mpsim_next_up(&s.f, c), got_down = mpsim_next_down(&s.f, c);
        if (up != got_up || down != got_down)
            ck_abort_msg("%s code 0x%" PRIx64 " %a: expected up 0x%" PRIx64 " down 0x%" PRIx64 ", got 0x%" PRIx64
                         " 0x%" PRIx64,
                         s.of->name, c, oracle_decode(s.of, c), up, down, got_up, got_down);
    }
}

TEST(next_up_and_next_down_are_the_neighbours)
{
    for_all(check_next_up_and_next_down_are_the_neighbours);
}

static void check_ulp_is_the_spacing_of_the_binade(size_t index)
{
    const subject s = subject_at(index);
    if (!has_neighbours(s.of))
        return;
    for (size_t k = 0; k < codes_of(s.of); k++) {
        const uint64_t c = code_at(s.of, k);
        const double want = oracle_ulp(s.of, c), got = mpsim_ulp(&s.f, c);
        if (isnan(want) ? !isnan(got) : bits_of_f64(want) != bits_of_f64(got))
            ck_abort_msg("%s code 0x%" PRIx64 " %a: expected ulp %a, got %a", s.of->name, c, oracle_decode(s.of, c),
                         want, got);
    }
}

TEST(ulp_is_the_spacing_of_the_binade)
{
    for_all(check_ulp_is_the_spacing_of_the_binade);
}

static void check_landmarks_are_the_published_numbers(size_t index)
{
    const subject s = subject_at(index);
    const double least = oracle_magnitude(s.of, s.of->zeros ? 1 : 0);
    ck_assert_msg(mpsim_format_max(&s.f) == s.of->max, "%s max: expected %a, got %a", s.of->name, s.of->max,
                  mpsim_format_max(&s.f));
    ck_assert_msg(mpsim_format_min_normal(&s.f) == ldexp(1, s.of->emin), "%s min_normal: expected %a, got %a",
                  s.of->name, ldexp(1, s.of->emin), mpsim_format_min_normal(&s.f));
    ck_assert_msg(mpsim_format_min_positive(&s.f) == least, "%s min_positive: expected %a, got %a", s.of->name, least,
                  mpsim_format_min_positive(&s.f));
    ck_assert_msg(mpsim_format_epsilon(&s.f) == ldexp(1, 1 - s.of->precision), "%s epsilon: expected %a, got %a",
                  s.of->name, ldexp(1, 1 - s.of->precision), mpsim_format_epsilon(&s.f));
}

TEST(landmarks_are_the_published_numbers)
{
    for_all(check_landmarks_are_the_published_numbers);
}

/* Formats with other names may be the same, as e5m10 and fp16 are. */
TEST(the_same_format)
{
    mpsim_format typed;
    for (size_t i = 0; mpsim_format_at(i); i++)
        for (size_t k = 0; mpsim_format_at(k); k++) {
            const mpsim_format *a = mpsim_format_at(i), *b = mpsim_format_at(k);
            int same = i == k || (a->bits == b->bits && mpsim_format_max(a) == mpsim_format_max(b));
            for (uint64_t c = 0; same && a->bits <= 8 && c < 1u << a->bits; c++) {
                const double x = mpsim_decode(a, c), y = mpsim_decode(b, c);
                same = memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
            }
            ck_assert_msg(mpsim_format_same(a, b) == same, "%s and %s", a->name, b->name);
        }
    ck_assert_int_eq(mpsim_format_parse(&typed, "e5m10"), MPSIM_OK);
    ck_assert(mpsim_format_same(&typed, mpsim_format_find("fp16")));
    ck_assert_int_eq(mpsim_format_parse(&typed, "e5m10:bias=14"), MPSIM_OK);
    ck_assert(!mpsim_format_same(&typed, mpsim_format_find("fp16")));
}

static void check_the_descriptor_is_consistent(size_t index)
{
    const subject s = subject_at(index);
    ck_assert_int_eq(mpsim_format_check(&s.f), MPSIM_OK);
    ck_assert_int_eq(s.f.bits, s.of->bits);
    ck_assert_int_eq(s.f.mbits, s.of->precision - 1);
    ck_assert_int_eq(s.f.bits - s.f.ebits - s.f.mbits, s.of->is_signed);
    ck_assert_int_eq(mpsim_format_is_signed(&s.f), s.of->is_signed);
    ck_assert_int_eq(s.f.inf, s.of->inf != 0);
    ck_assert_uint_eq(s.f.max_finite, s.of->max_code);
    ck_assert_uint_eq(s.f.nan_code, s.of->nan);
    ck_assert_int_eq(s.f.zero, s.of->zeros == 2   ? MPSIM_ZERO_SIGNED
                               : s.of->zeros == 1 ? MPSIM_ZERO_UNSIGNED
                                                  : MPSIM_ZERO_NONE);
    const size_t bytes = s.of->bits <= 8 ? 1 : s.of->bits <= 16 ? 2 : s.of->bits <= 32 ? 4 : 8;
    ck_assert_uint_eq(mpsim_format_code_bytes(&s.f), bytes);
    if (mpsim_format_at(index))
        ck_assert_msg(s.f.source && s.f.source[0], "%s has no source", s.of->name);
}

TEST(the_descriptor_is_consistent)
{
    for_all(check_the_descriptor_is_consistent);
}

/* Arrays of codes against the scalar function, at any alignment and length. */
static void check_decoding_an_array_is_decoding_each(size_t index)
{
    const subject s = subject_at(index);
    const size_t bytes = mpsim_format_code_bytes(&s.f);
    enum { MOST = 1031 };
    unsigned char *room = malloc(MOST * 8 + 8);
    unsigned char *out = malloc((MOST + 2) * sizeof(double));
    ck_assert(room && out);
    for (size_t n = 0; n <= MOST; n += n < 70 ? 1 : 137) {
        unsigned char *codes = room + n % 8;
        for (size_t i = 0; i < n; i++) {
            const uint64_t c = code_at(s.of, (i * 7919 + n) % codes_of(s.of));
            const uint8_t c8 = (uint8_t)c;
            const uint16_t c16 = (uint16_t)c;
            const uint32_t c32 = (uint32_t)c;
            memcpy(codes + i * bytes,
                   bytes == 1   ? (const void *)&c8
                   : bytes == 2 ? (const void *)&c16
                   : bytes == 4 ? (const void *)&c32
                                : (const void *)&c,
                   bytes);
        }
        memset(out, 0x5a, (MOST + 2) * sizeof(double));
        ck_assert_int_eq(mpsim_decode_array(&s.f, (double *)(void *)out, codes, n), MPSIM_OK);
        for (size_t i = 0; i < n; i++) {
            const uint64_t c = code_at(s.of, (i * 7919 + n) % codes_of(s.of));
            double got;
            memcpy(&got, out + i * sizeof got, sizeof got);
            const double want = mpsim_decode(&s.f, c);
            if (bits_of_f64(got) != bits_of_f64(want))
                ck_abort_msg("%s n=%zu element %zu code 0x%" PRIx64 ": expected %a, got %a", s.of->name, n, i, c, want,
                             got);
        }
        for (size_t i = n * sizeof(double); i < (MOST + 2) * sizeof(double); i++)
            if (out[i] != 0x5a)
                ck_abort_msg("%s n=%zu wrote beyond the end", s.of->name, n);
    }
    free(room);
    free(out);
}

TEST(decoding_an_array_is_decoding_each)
{
    for_all(check_decoding_an_array_is_decoding_each);
}

TEST(decoding_an_array_checks_its_arguments)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    double y[2] = {1, 2};
    const uint16_t codes[2] = {0x3c00, 0x4000};
    mpsim_format broken = *f;
    broken.ebits = 12;
    ck_assert_int_eq(mpsim_decode_array(f, NULL, NULL, 0), MPSIM_OK);
    ck_assert_int_eq(mpsim_decode_array(f, NULL, codes, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_decode_array(f, y, NULL, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_decode_array(NULL, y, codes, 2), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_decode_array(&broken, y, codes, 2), MPSIM_EINVAL);
    broken = *f;
    memset(broken.name, 'x', sizeof broken.name); /* was read past its end */
    ck_assert_int_eq(mpsim_decode_array(&broken, y, codes, 2), MPSIM_EINVAL);
    ck_assert(y[0] == 1 && y[1] == 2);
}

/* One name for one format: what parse writes into f.name parses to the same format. */
static void check_a_parsed_name_parses_again(size_t index)
{
    const subject s = subject_at(index);
    mpsim_format again;
    ck_assert_msg(mpsim_format_parse(&again, s.f.name) == MPSIM_OK, "%s", s.f.name);
    ck_assert_str_eq(again.name, s.f.name);
    ck_assert(again.bits == s.f.bits && again.ebits == s.f.ebits && again.mbits == s.f.mbits);
    ck_assert(again.bias == s.f.bias && again.max_finite == s.f.max_finite);
    ck_assert(again.inf == s.f.inf && again.nan == s.f.nan && again.zero == s.f.zero);
    ck_assert(again.nan_code == s.f.nan_code);
}

TEST(a_parsed_name_parses_again)
{
    for_all(check_a_parsed_name_parses_again);
}

TEST_MAIN("codes");
