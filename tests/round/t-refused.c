/* t-refused.c -- names and options that other emulators took for something: what is none is
 * an error, and changes nothing. See peers.h. */
#include "support/peers.h"

#include <string.h>

CASE("errors", 20);

TEST(mode_names_say_where_ties_go)
{
    static const struct {
        const char *name;
        int mode;
    } good[] = {
        {"nearest-even", RNE}, {"nearest-away", RNA}, {"toward-zero", RTZ},  {"up", RUP},           {"down", RDN},
        {"to-odd", ODD},       {"stochastic-a", SRA}, {"stochastic-b", SRB}, {"stochastic-c", SRC}, {"stochastic", SRC},
        {"sr", SRC},           {"rne", RNE},          {"RNE", RNE},          {"rna", RNA},          {"rtz", RTZ},
        {"rup", RUP},          {"rdn", RDN},          {"rto", ODD},          {"sra", SRA},          {"srb", SRB},
        {"src", SRC},          {"TiesToEven", RNE},
    };
    /* clang-format off */
    static const char *const bad[] = {
        "", "nearest", "round", "rpinf", "rninf", "rn e", "rne ", " rne", "up:8", "rne:8",
        "nearest_even!", "stochastic:0", "stochastic:33", "stochastic:", "stochastic:8x", "stochastic:-1",
        "stochastic:1e1", "stochastic-d", "stochastic:100000000000000000000",
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        mpsim_round_mode m = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        ck_assert_msg(mpsim_round_mode_parse(&m, &bits, good[i].name) == MPSIM_OK && (int)m == good[i].mode &&
                          bits == 77,
                      "%s", good[i].name);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mpsim_round_mode m = MPSIM_ROUND_MODES;
        uint8_t bits = 77;
        ck_assert_msg(mpsim_round_mode_parse(&m, &bits, bad[i]) == MPSIM_ENOTFOUND && m == MPSIM_ROUND_MODES &&
                          bits == 77,
                      "\"%s\" was accepted, or changed the outputs", bad[i]);
    }
}

TEST(unknown_formats_are_errors)
{
    static const struct {
        const char *name;
        mpsim_status want;
    } bad[] = {
        {"", MPSIM_ENOTFOUND},
        {" ", MPSIM_ENOTFOUND},
        {"fp9", MPSIM_ENOTFOUND},
        {"fp", MPSIM_ENOTFOUND},
        {"bf16 ", MPSIM_ENOTFOUND},
        {" bf16", MPSIM_ENOTFOUND},
        {"fp64 float64", MPSIM_ENOTFOUND},
        {"e4m3x", MPSIM_ENOTFOUND},
        {"e4", MPSIM_ENOTFOUND},
        {"em", MPSIM_ENOTFOUND},
        {"e4m", MPSIM_ENOTFOUND},
        {"m3e4", MPSIM_ENOTFOUND},
        {"e-4m3", MPSIM_ENOTFOUND},
        {"e4m-3", MPSIM_ENOTFOUND},
        {"e4.0m3", MPSIM_ENOTFOUND},
        {"e4m3,ieee", MPSIM_ENOTFOUND},
        {"binary8p4", MPSIM_ENOTFOUND},
        {"binary8p4s", MPSIM_ENOTFOUND},
        {"binary8p4xe", MPSIM_ENOTFOUND},
        {"binary8p9se", MPSIM_ENOTFOUND},
        {"binary8p0se", MPSIM_ENOTFOUND},
        {"binary2p1se", MPSIM_ENOTFOUND},
        {"binary17p4se", MPSIM_ENOTFOUND},
        {"binary8p4se ", MPSIM_ENOTFOUND},
        {"e4m3:foo", MPSIM_EINVAL},
        {"e4m3:", MPSIM_EINVAL},
        {"e4m3:ieee:", MPSIM_EINVAL},
        {"e4m3:ieee:ieee", MPSIM_EINVAL},
        {"e4m3:ieee:fn", MPSIM_EINVAL},
        {"e4m3:inf:noinf", MPSIM_EINVAL},
        {"e4m3:bias=", MPSIM_EINVAL},
        {"e4m3:bias=x", MPSIM_EINVAL},
        {"e4m3:bias=1201", MPSIM_EINVAL},
        {"e4m3:bias=7:bias=7", MPSIM_EINVAL},
        {"e4m3:fnuz:unsigned", MPSIM_EINVAL},
        {"e12m3", MPSIM_ERANGE},
        {"e4m53", MPSIM_ERANGE},
        {"e0m3", MPSIM_ERANGE},
        {"e11m52:bias=1030", MPSIM_ERANGE},
        {"a name of a format that is far longer than any name of a format", MPSIM_ENOTFOUND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mpsim_format f, before;
        memset(&before, 0x5a, sizeof before);
        memcpy(&f, &before, sizeof f);
        const mpsim_status got = mpsim_format_parse(&f, bad[i].name);
        ck_assert_msg(got == bad[i].want, "\"%s\": expected status %d, got %d", bad[i].name, (int)bad[i].want,
                      (int)got);
        ck_assert_msg(memcmp(&f, &before, sizeof f) == 0, "\"%s\" changed the format", bad[i].name);
        ck_assert_msg(mpsim_format_find(bad[i].name) == NULL, "\"%s\" was found", bad[i].name);
    }
    mpsim_format f;
    ck_assert_int_eq(mpsim_format_parse(&f, NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_format_parse(NULL, "fp16"), MPSIM_EINVAL);
    ck_assert_ptr_null(mpsim_format_find(NULL));
    ck_assert_ptr_null(mpsim_format_at(mpsim_format_count()));
}

TEST(unknown_presets_are_errors)
{
    static const char *const bad[] = {"", " ", "none", "cudaa", "cud", "cuda nosat", "ocp "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(mpsim_preset_find(bad[i]) == NULL, "\"%s\" was found", bad[i]);
    ck_assert_ptr_null(mpsim_preset_find(NULL));
    ck_assert_ptr_null(mpsim_preset_at(mpsim_preset_count()));
    for (size_t i = 0; i < mpsim_preset_count(); i++)
        ck_assert_ptr_eq(mpsim_preset_find(mpsim_preset_at(i)->name), mpsim_preset_at(i));
}

/* Options out of their domain are errors, and nothing is written then. */
TEST(invalid_options_are_errors)
{
    const mpsim_format good = peers_format("e4m3");
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
    ck_assert(n.inexact == 1 && n.underflow == 2 && n.subnormal == 3 && n.overflow == 4 && n.nan == 5);
    ck_assert_int_eq(mpsim_encode_array_f32(&good, &r, NULL, NULL, NULL, 0, NULL), MPSIM_OK);
}

/* Each choice alone beyond its last. */
TEST(each_choice_has_an_end)
{
    static const struct {
        size_t offset;
        uint8_t last;
    } rows[] = {{offsetof(mpsim_rounding, mode), MPSIM_ROUND_MODES - 1},
                {offsetof(mpsim_rounding, overflow), MPSIM_OVERFLOW_MAX},
                {offsetof(mpsim_rounding, infinity), MPSIM_INFINITY_MAX},
                {offsetof(mpsim_rounding, no_inf), MPSIM_NO_INF_MAX},
                {offsetof(mpsim_rounding, nan), MPSIM_NAN_RULES - 1},
                {offsetof(mpsim_rounding, no_nan), MPSIM_NO_NAN_ANTIZERO},
                {offsetof(mpsim_rounding, negative), MPSIM_NEGATIVE_ABS},
                {offsetof(mpsim_rounding, no_zero), MPSIM_NO_ZERO_NAN_MIN},
                {offsetof(mpsim_rounding, via_binary32), 1},
                {offsetof(mpsim_rounding, by_field), 1},
                {offsetof(mpsim_rounding, flush_input), 1},
                {offsetof(mpsim_rounding, flush_output), 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        ((uint8_t *)&r)[rows[i].offset] = rows[i].last;
        ck_assert_msg(mpsim_rounding_check(&r) == MPSIM_OK, "choice %zu", i);
        ((uint8_t *)&r)[rows[i].offset]++;
        ck_assert_msg(mpsim_rounding_check(&r) == MPSIM_EINVAL, "choice %zu", i);
    }
}

TEST_MAIN("refused");
