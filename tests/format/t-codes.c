/* t-codes.c -- proves <mpsim/format.h>: what every code means, and every spelling of a
 * format.
 *
 * The formats are those of the library's table, by iteration: a new row fails here until
 * the oracle knows it. Their meaning is the oracle's. */
#include "oracle/neighbours.h"
#include "support/cases.h"
#include "support/support.h"

#include <ctype.h>
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

START_TEST(every_code_decodes_to_its_value)
{
    for_all(check_every_code_decodes_to_its_value);
}
END_TEST

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

START_TEST(every_code_has_its_class)
{
    for_all(check_every_code_has_its_class);
}
END_TEST

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

START_TEST(bits_above_the_code_are_ignored)
{
    for_all(check_bits_above_the_code_are_ignored);
}
END_TEST

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

START_TEST(decoding_and_encoding_gives_the_same_code)
{
    for_all(check_decoding_and_encoding_gives_the_same_code);
}
END_TEST

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

START_TEST(next_up_and_next_down_are_the_neighbours)
{
    for_all(check_next_up_and_next_down_are_the_neighbours);
}
END_TEST

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

START_TEST(ulp_is_the_spacing_of_the_binade)
{
    for_all(check_ulp_is_the_spacing_of_the_binade);
}
END_TEST

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

START_TEST(landmarks_are_the_published_numbers)
{
    for_all(check_landmarks_are_the_published_numbers);
}
END_TEST

/* Formats with other names may be the same, as e5m10 and fp16 are. */
START_TEST(the_same_format)
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
END_TEST

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

START_TEST(the_descriptor_is_consistent)
{
    for_all(check_the_descriptor_is_consistent);
}
END_TEST

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

START_TEST(decoding_an_array_is_decoding_each)
{
    for_all(check_decoding_an_array_is_decoding_each);
}
END_TEST

START_TEST(decoding_an_array_checks_its_arguments)
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
    ck_assert(y[0] == 1 && y[1] == 2);
}
END_TEST

static int same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const int ca = *a == '-' ? '_' : tolower((unsigned char)*a);
        const int cb = *b == '-' ? '_' : tolower((unsigned char)*b);
        if (ca != cb)
            return 0;
    }
    return *a == *b;
}

/* All names and aliases of the table, in one list. */
typedef struct spelling {
    char text[64];
    size_t row;
} spelling;

static size_t list_spellings(spelling *list, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < mpsim_format_count(); i++) {
        const mpsim_format *f = mpsim_format_at(i);
        ck_assert_uint_lt(n, room);
        snprintf(list[n].text, sizeof list[n].text, "%s", f->name);
        list[n++].row = i;
        const char *a = f->aliases ? f->aliases : "";
        while (*a) {
            const size_t len = strcspn(a, " ");
            ck_assert_uint_lt(n, room);
            ck_assert_uint_lt(len, sizeof list[n].text);
            if (len) {
                snprintf(list[n].text, sizeof list[n].text, "%.*s", (int)len, a);
                list[n++].row = i;
            }
            a += len + (a[len] == ' ');
        }
    }
    return n;
}

START_TEST(every_name_and_alias_finds_its_row)
{
    static spelling list[1000];
    const size_t n = list_spellings(list, 1000);
    for (size_t i = 0; i < n; i++) {
        const mpsim_format *row = mpsim_format_at(list[i].row);
        char other[sizeof list[0].text];
        memcpy(other, list[i].text, sizeof other);
        for (char *p = other; *p; p++)
            *p = (char)(*p == '_' ? '-' : *p == '-' ? '_' : toupper((unsigned char)*p));
        ck_assert_msg(mpsim_format_find(list[i].text) == row, "find(%s)", list[i].text);
        ck_assert_msg(mpsim_format_find(other) == row, "find(%s)", other);
        mpsim_format f;
        memset(&f, 0x5a, sizeof f);
        ck_assert_msg(mpsim_format_parse(&f, list[i].text) == MPSIM_OK, "parse(%s)", list[i].text);
        ck_assert_msg(strcmp(f.name, row->name) == 0, "parse(%s) is %s", list[i].text, f.name);
        ck_assert_int_eq(mpsim_format_parse(&f, other), MPSIM_OK);
    }
}
END_TEST

START_TEST(names_are_unique_whatever_their_case)
{
    static spelling list[1000];
    const size_t n = list_spellings(list, 1000);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            ck_assert_msg(!same_name(list[i].text, list[k].text), "%s of %s and of %s", list[i].text,
                          mpsim_format_at(list[i].row)->name, mpsim_format_at(list[k].row)->name);
}
END_TEST

START_TEST(the_table_holds_the_promised_rows_and_ends)
{
    static const char *const names[] = {
        "binary64", "binary32",    "tf32",     "fp16", "bf16", "e4m3", "e5m2", "e4m3fnuz",
        "e5m2fnuz", "e4m3b11fnuz", "e4m3ieee", "e3m4", "e3m2", "e2m3", "e2m1", "e8m0",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_msg(mpsim_format_find(names[i]) != NULL, "no row %s", names[i]);
    char name[32];
    for (int p = 1; p <= 8; p++)
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof name, "binary8p%d%c%c", p, "su"[k / 2], "ef"[k % 2]);
            if (p <= 7 || k / 2)
                ck_assert_msg(mpsim_format_find(name) != NULL, "no row %s", name);
        }
    ck_assert_ptr_null(mpsim_format_at(mpsim_format_count()));
    ck_assert_ptr_null(mpsim_format_at((size_t)-1));
    ck_assert_ptr_null(mpsim_format_find("binary8p8se"));
    ck_assert_ptr_null(mpsim_format_find(""));
    ck_assert_ptr_null(mpsim_format_find("e5m7")); /* the table only */
    ck_assert_ptr_null(mpsim_format_find("e4m3 e5m2"));
}
END_TEST

START_TEST(every_p3109_name_parses_or_is_out_of_range)
{
    char name[40];
    for (int k = 2; k <= 18; k++)
        for (int p = 0; p <= k + 1; p++)
            for (int v = 0; v < 4; v++) {
                snprintf(name, sizeof name, "binary%dp%d%c%c", k, p, "su"[v / 2], "ef"[v % 2]);
                mpsim_format f, before;
                memset(&f, 0x5a, sizeof f);
                before = f;
                const mpsim_status got = mpsim_format_parse(&f, name);
                const oracle_format *of = oracle_find(name);
                if (!of) {
                    const int named = k >= 3 && k <= 16 && p >= 1 && p <= k - (v < 2);
                    const mpsim_status want = named ? MPSIM_ERANGE : MPSIM_ENOTFOUND;
                    ck_assert_msg(got == want, "%s: status %d, expected %d", name, (int)got, (int)want);
                    ck_assert_msg(memcmp(&f, &before, sizeof f) == 0, "%s touched *f", name);
                    continue;
                }
                ck_assert_msg(got == MPSIM_OK, "%s: status %d", name, (int)got);
                ck_assert_str_eq(f.name, name);
                ck_assert_int_eq(f.bits, k);
                ck_assert_int_eq(mpsim_format_check(&f), MPSIM_OK);
                for (uint64_t c = 0; c < (uint64_t)1 << k; c++) {
                    const double a = oracle_decode(of, c), b = mpsim_decode(&f, c);
                    if (bits_of_f64(a) != bits_of_f64(b))
                        ck_abort_msg("%s code 0x%" PRIx64 ": expected %a, got %a", name, c, a, b);
                }
            }
}
END_TEST

/* Spellings that mean the same format as another one. */
START_TEST(options_combine_in_any_order)
{
    /* clang-format off */
    static const char *const same[][2] = {
        {"e5m10", "fp16"}, {"E5M10", "fp16"}, {"e8m7", "bf16"}, {"e8m23", "binary32"},
        {"e11m52", "binary64"}, {"e5m2:ieee", "e5m2"}, {"e4m3:fn", "e4m3"},
        {"e4m3:fnuz", "e4m3fnuz"}, {"e5m2:fnuz", "e5m2fnuz"}, {"e4m3:ieee", "e4m3ieee"},
        {"e4m3:fnuz:bias=11", "e4m3b11fnuz"}, {"e4m3:bias=11:fnuz", "e4m3b11fnuz"},
        {"e3m2:finite", "e3m2"}, {"e2m3:finite", "e2m3"}, {"e2m1:finite", "e2m1"},
        {"e5m2:inf", "e5m2"}, {"e4m3:fn:noinf", "e4m3"}, {"e4m3:finite:noinf", "e4m3:finite"},
        {"e4m3:inf:fn", "e4m3:fn:inf"}, {"e5m3:fn:unsigned", "e5m3:unsigned:fn"},
        {"e5m2:fn:bias=20", "e5m2:bias=20:fn"}, {"e5m2:bias=15", "e5m2"},
        {"E4M3:FN:INF", "e4m3:fn:inf"}, {"e4m3:bias=7:fn", "e4m3"},
        {"e4m3:ieee:bias=7", "e4m3ieee"}, {"e3m4:bias=3", "e3m4"},
    };
    /* clang-format on */
    for (size_t k = 0; k < sizeof same / sizeof same[0]; k++) {
        mpsim_format a, b;
        ck_assert_msg(mpsim_format_parse(&a, same[k][0]) == MPSIM_OK, "%s", same[k][0]);
        ck_assert_msg(mpsim_format_parse(&b, same[k][1]) == MPSIM_OK, "%s", same[k][1]);
        ck_assert_msg(a.bits == b.bits && a.ebits == b.ebits && a.mbits == b.mbits && a.inf == b.inf &&
                          a.nan == b.nan && a.zero == b.zero && a.bias == b.bias && a.max_finite == b.max_finite &&
                          a.nan_code == b.nan_code,
                      "%s is not %s", same[k][0], same[k][1]);
    }
}
END_TEST

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

START_TEST(a_parsed_name_parses_again)
{
    for_all(check_a_parsed_name_parses_again);
}
END_TEST

static const struct {
    const char *name;
    mpsim_status want;
} bad_names[] = {
    {"", MPSIM_ENOTFOUND},
    {"fp", MPSIM_ENOTFOUND},
    {"nonsense", MPSIM_ENOTFOUND},
    {"e", MPSIM_ENOTFOUND},
    {"e5", MPSIM_ENOTFOUND},
    {"em", MPSIM_ENOTFOUND},
    {"e5m", MPSIM_ENOTFOUND},
    {"em5", MPSIM_ENOTFOUND},
    {"e5m2x", MPSIM_ENOTFOUND},
    {"xe5m2", MPSIM_ENOTFOUND},
    {"e-1m3", MPSIM_ENOTFOUND},
    {"e5m-2", MPSIM_ENOTFOUND},
    {"e5 m7", MPSIM_ENOTFOUND},
    {" e5m7", MPSIM_ENOTFOUND},
    {"binary8p4", MPSIM_ENOTFOUND},
    {"binary8p4xe", MPSIM_ENOTFOUND},
    {"binary8p4sx", MPSIM_ENOTFOUND},
    {"binary8p4se1", MPSIM_ENOTFOUND},
    {"binaryp4se", MPSIM_ENOTFOUND},
    {"binary08p4se", MPSIM_ENOTFOUND}, /* leading zeros: a format has one name */
    {"binary8p04se", MPSIM_ENOTFOUND},
    {"e04m3", MPSIM_ENOTFOUND},
    {"e4m03", MPSIM_ENOTFOUND},
    {"e5m00:fn", MPSIM_ENOTFOUND},
    {"e5m7:bias=07", MPSIM_EINVAL},
    {"e5m7:bias=-07", MPSIM_EINVAL},
    {"e4m3:bias=7", MPSIM_EINVAL}, /* the row e4m3 is no IEEE layout: which is meant? */
    {"E4M3:bias=9", MPSIM_EINVAL},
    {"e4m3:inf", MPSIM_EINVAL},
    {"e4m3:unsigned", MPSIM_EINVAL},
    {"e3m2:bias=3", MPSIM_EINVAL},
    {"e2m3:unsigned", MPSIM_EINVAL},
    {"e2m1:noinf", MPSIM_EINVAL},
    {"e8m0:bias=127", MPSIM_EINVAL},
    {"e5m7:", MPSIM_EINVAL},
    {"e5m7::fn", MPSIM_EINVAL},
    {"e5m7:fast", MPSIM_EINVAL},
    {"e5m7:fn:fast", MPSIM_EINVAL},
    {"e5m7:fn:fn", MPSIM_EINVAL}, /* each at most once */
    {"e5m7:fn:fnuz", MPSIM_EINVAL},
    {"e5m7:ieee:finite", MPSIM_EINVAL},
    {"e5m7:inf:noinf", MPSIM_EINVAL},
    {"e5m7:inf:inf", MPSIM_EINVAL},
    {"e5m7:bias", MPSIM_EINVAL},
    {"e5m7:bias=", MPSIM_EINVAL},
    {"e5m7:bias=x", MPSIM_EINVAL},
    {"e5m7:bias=7x", MPSIM_EINVAL},
    {"e5m7:bias=99999", MPSIM_EINVAL},
    {"e5m7:bias=1201", MPSIM_EINVAL},
    {"e5m7:bias=-1201", MPSIM_EINVAL},
    {"e5m7:bias=3:bias=4", MPSIM_EINVAL},
    {"e5m7:unsigned:unsigned", MPSIM_EINVAL},
    {"e5m7:fnuz:unsigned", MPSIM_EINVAL}, /* there is no code of -0 to put the NaN in */
    {"e12m3", MPSIM_ERANGE},              /* fields that no descriptor holds: status.h */
    {"e5m53", MPSIM_ERANGE},
    {"e0m3", MPSIM_ERANGE},
    /* Outside of binary64 by one: below 2^-1074, and at 2^1024. */
    {"e8m7:bias=1069:finite", MPSIM_ERANGE},
    {"e4m3:bias=-1009:finite", MPSIM_ERANGE},
    {"e11m52:bias=1024", MPSIM_ERANGE},
    {"e11m3:bias=1022:ieee", MPSIM_ERANGE},
    {"e11m3:finite", MPSIM_ERANGE},
};

START_TEST(bad_names_give_the_documented_error)
{
    for (size_t k = 0; k < sizeof bad_names / sizeof bad_names[0]; k++) {
        mpsim_format f, before;
        memset(&f, 0x5a, sizeof f);
        before = f;
        const mpsim_status got = mpsim_format_parse(&f, bad_names[k].name);
        ck_assert_msg(got == bad_names[k].want, "\"%s\": expected %s, got %s", bad_names[k].name,
                      mpsim_status_string(bad_names[k].want), mpsim_status_string(got));
        ck_assert_msg(memcmp(&f, &before, sizeof f) == 0, "\"%s\" touched *f", bad_names[k].name);
    }
    mpsim_format f;
    ck_assert_int_eq(mpsim_format_parse(NULL, "fp16"), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_format_parse(&f, NULL), MPSIM_EINVAL);
    ck_assert_ptr_null(mpsim_format_find(NULL));
    char endless[4000];
    memset(endless, 'e', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    ck_assert_int_eq(mpsim_format_parse(&f, endless), MPSIM_ENOTFOUND);
}
END_TEST

/* A descriptor filled in by hand, with one thing wrong. */
START_TEST(an_inconsistent_descriptor_is_refused)
{
    const mpsim_format good = *mpsim_format_find("e4m3");
    mpsim_format f;
#define REFUSED(change)                                                             \
    do {                                                                            \
        f = good;                                                                   \
        change;                                                                     \
        ck_assert_msg(mpsim_format_check(&f) != MPSIM_OK, "accepted: %s", #change); \
    } while (0)
    ck_assert_int_eq(mpsim_format_check(&good), MPSIM_OK);
    ck_assert_int_eq(mpsim_format_check(NULL), MPSIM_EINVAL);
    REFUSED(f.bits = 0);
    REFUSED(f.bits = 65);
    REFUSED(f.bits = 10);
    REFUSED(f.ebits = 0);
    REFUSED(f.ebits = 12);
    REFUSED(f.mbits = 53);
    REFUSED(f.inf = 2);
    REFUSED(f.nan = 3);
    REFUSED(f.zero = 3);
    REFUSED(f.max_finite = 0x80);
    REFUSED(f.inf = 1);         /* max_finite + 1 would be both infinity and the only NaN */
    REFUSED(f.nan_code = 0x7e); /* a number */
    REFUSED(f.nan_code = 0x17f);
    REFUSED(f.bias = 1200);
    REFUSED(f.bias = -1200);
    REFUSED(f.zero = MPSIM_ZERO_UNSIGNED); /* signed, and the code of -0 is not the NaN */
    REFUSED(f.zero = MPSIM_ZERO_UNSIGNED; f.nan = MPSIM_NAN_NONE; f.max_finite = 0x7f);
    REFUSED(f.bits = 7); /* unsigned, and there is no code for -0 */
#undef REFUSED
    f = good;
    f.bits = 7;
    f.zero = MPSIM_ZERO_UNSIGNED;
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_OK);
    f = *mpsim_format_find("e4m3fnuz"); /* signed with one zero: NaN is at -0 */
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_OK);
    f.nan = MPSIM_NAN_NONE;
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_EINVAL);
}
END_TEST

int main(void)
{
    TCase *codes = test_case("codes", 60);
    TCase *names = test_case("names", 60);
    tcase_add_test(codes, every_code_decodes_to_its_value);
    tcase_add_test(codes, every_code_has_its_class);
    tcase_add_test(codes, bits_above_the_code_are_ignored);
    tcase_add_test(codes, decoding_and_encoding_gives_the_same_code);
    tcase_add_test(codes, next_up_and_next_down_are_the_neighbours);
    tcase_add_test(codes, ulp_is_the_spacing_of_the_binade);
    tcase_add_test(codes, landmarks_are_the_published_numbers);
    tcase_add_test(codes, the_same_format);
    tcase_add_test(codes, the_descriptor_is_consistent);
    tcase_add_test(codes, decoding_an_array_is_decoding_each);
    tcase_add_test(codes, a_parsed_name_parses_again);
    tcase_add_test(codes, decoding_an_array_checks_its_arguments);
    tcase_add_test(names, every_name_and_alias_finds_its_row);
    tcase_add_test(names, names_are_unique_whatever_their_case);
    tcase_add_test(names, the_table_holds_the_promised_rows_and_ends);
    tcase_add_test(names, every_p3109_name_parses_or_is_out_of_range);
    tcase_add_test(names, options_combine_in_any_order);
    tcase_add_test(names, bad_names_give_the_documented_error);
    tcase_add_test(names, an_inconsistent_descriptor_is_refused);
    return test_main("codes", (TCase *const[]){codes, names, NULL});
}
