/* t-names.c -- <mpsim/format.h>: every spelling of a format, bad names, descriptors that are inconsistent. */
#include "sim/verify/oracles/oracle.h"
#include "support/support.h"

#include <ctype.h>
#include <inttypes.h>
#include <mpsim/format.h>
#include <stdio.h>
#include <string.h>

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

CASE("names", 60);

TEST(every_name_and_alias_finds_its_row)
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

TEST(names_are_unique_whatever_their_case)
{
    static spelling list[1000];
    const size_t n = list_spellings(list, 1000);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            ck_assert_msg(!same_name(list[i].text, list[k].text), "%s of %s and of %s", list[i].text,
                          mpsim_format_at(list[i].row)->name, mpsim_format_at(list[k].row)->name);
}

TEST(the_table_holds_the_promised_rows_and_ends)
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

TEST(every_p3109_name_parses_or_is_out_of_range)
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

/* Spellings that mean the same format as another one. */
TEST(options_combine_in_any_order)
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

TEST(bad_names_give_the_documented_error)
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

/* A descriptor filled in by hand, with one thing wrong. */
TEST(an_inconsistent_descriptor_is_refused)
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

/* One bit of significand more than binary64 has, in 64 bits. */
TEST(formats_end_at_those_of_binary64)
{
    mpsim_format f = *mpsim_format_find("binary64");
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_OK);
    f.ebits = 10;
    f.mbits = 53;
    f.bias = 511;
    f.nan = MPSIM_NAN_NONE;
    f.inf = 0;
    f.nan_code = 0;
    f.max_finite = INT64_MAX;
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_EINVAL);
    f.bits = 63;
    f.mbits = 52; /* what else it says is right */
    f.max_finite = INT64_MAX >> 1;
    ck_assert_int_eq(mpsim_format_check(&f), MPSIM_OK);
}

TEST_MAIN("names");
