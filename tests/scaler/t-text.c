/* t-text.c -- loss scalers as text: names, settings, saved states. */
#include <mpsim/scaler.h>

#include "support/support.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

CASE("texts", 10);

TEST(names)
{
    static const char *const all[] = {"none",
                                      "static",
                                      "megatron-static",
                                      "torch",
                                      "torch-cpu",
                                      "apex",
                                      "apex-hysteresis",
                                      "megatron",
                                      "deepspeed",
                                      "deepspeed-fused",
                                      "deepspeed-unfused",
                                      "deepspeed-static",
                                      "keras",
                                      "tf-keras",
                                      "fairseq",
                                      "tutorial"};
    const size_t n = sizeof all / sizeof *all;
    ck_assert_uint_eq(mpsim_scaler_count(), n);
    for (size_t i = 0; i < n; i++) {
        const mpsim_scaler_type *t = mpsim_scaler_at(i);
        ck_assert_str_eq(t->config.name, all[i]);
        ck_assert(mpsim_scaler_find(all[i]) == t);
    }
    ck_assert(mpsim_scaler_at(n) == NULL && mpsim_scaler_at(SIZE_MAX) == NULL);
    ck_assert(mpsim_scaler_find("Tf_Keras") == mpsim_scaler_find("tf-keras"));
    ck_assert(mpsim_scaler_find("MEGATRON_STATIC") == mpsim_scaler_find("megatron-static"));
    static const char *const none[] = {"", "torc", "torchx", "torch cpu", "torch:", " torch"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_msg(mpsim_scaler_find(none[i]) == NULL, "\"%s\" is a row", none[i]);
    ck_assert(mpsim_scaler_find(NULL) == NULL);
}

/* ---- parse ---- */

typedef struct spelling {
    const char *text, *row;
    size_t offset;
    int kind; /* 0 double, 1 uint8_t, 2 uint32_t, 3 uint64_t */
    double value;
} spelling;

#define AT(field) offsetof(mpsim_scaler_config, field)

static const spelling good[] = {
    {"torch", "torch", AT(init), 0, 65536},
    {"TORCH:init=2^10", "torch", AT(init), 0, 1024},
    {"torch:init=2**15", "torch", AT(init), 0, 32768},
    {"torch:init=2.**-3", "torch", AT(init), 0, 0.125},
    {"torch:init=2.0**16,window=2**4", "torch", AT(init), 0, 65536},
    {"torch_cpu:window=500", "torch-cpu", AT(window), 3, 500},
    {"Megatron:hysteresis=3", "megatron", AT(hysteresis), 2, 3},
    {"static:1024", "static", AT(init), 0, 1024},
    {"static:2^7", "static", AT(init), 0, 128},
    {"static:init=1024", "static", AT(init), 0, 1024},
    {"megatron-static:0x1.8p+3", "megatron-static", AT(init), 0, 12},
    {"torch:4096,window=7", "torch", AT(window), 3, 7},
    {"torch:window=18446744073709551615", "torch", AT(window), 3, 0x1p+64},
    {"torch:init=0", "torch", AT(init), 0, 0},
    {"torch:init=2^-14", "torch", AT(init), 0, 0x1p-14},
    {"torch:init=1.25e-3", "torch", AT(init), 0, 1.25e-3},
    {"torch:growth=1.5,init=3000.1", "torch", AT(init), 0, 3000.1},
    {"torch:backoff=0x1.6p-1", "torch", AT(backoff), 0, 0.6875},
    {"torch:backoff=.7", "torch", AT(backoff), 0, 0.7},
    {"apex:floor=1", "apex", AT(floor), 0, 1},
    {"apex:ceiling=inf", "apex", AT(ceiling), 0, (double)INFINITY},
    {"torch:ceiling=2^24", "torch", AT(ceiling), 0, 16777216},
    {"fairseq:tolerance=0.3,threshold=4", "fairseq", AT(tolerance), 0, 0.3},
    {"fairseq:tolerance=0.3,threshold=4", "fairseq", AT(threshold), 0, 4},
    {"torch:skip=0", "torch", AT(skip), 1, 0},
    {"static:skip=1", "static", AT(skip), 1, 1},
    {"torch:dynamic=0", "torch", AT(dynamic), 1, 0},
    {"torch:guard=0", "torch", AT(guard), 1, 0},
    {"deepspeed:refill=clean", "deepspeed", AT(refill), 1, 1},
    {"deepspeed:refill=growth", "deepspeed", AT(refill), 1, 2},
    {"deepspeed:refill=backoff", "deepspeed", AT(refill), 1, 4},
    {"deepspeed:refill=clean+growth+backoff", "deepspeed", AT(refill), 1, 7},
    {"deepspeed:refill=growth+clean", "deepspeed", AT(refill), 1, 3},
    {"deepspeed:refill=never", "deepspeed", AT(refill), 1, 0},
    {"torch:growth-rule=counter", "torch", AT(growth_rule), 1, MPSIM_GROWTH_COUNTER},
    {"torch:growth-rule=interval", "torch", AT(growth_rule), 1, MPSIM_GROWTH_INTERVAL},
    {"torch:growth-rule=multiple", "torch", AT(growth_rule), 1, MPSIM_GROWTH_MULTIPLE},
    {"fairseq:floor-rule=clamp", "fairseq", AT(floor_rule), 1, MPSIM_FLOOR_CLAMP},
    {"fairseq:floor-rule=raise", "fairseq", AT(floor_rule), 1, MPSIM_FLOOR_RAISE},
    {"torch:floor-rule=stop", "torch", AT(floor_rule), 1, MPSIM_FLOOR_STOP},
    {"apex:order=after-step", "apex", AT(order), 1, MPSIM_UPDATE_AFTER_STEP},
    {"torch:order=before-step", "torch", AT(order), 1, MPSIM_UPDATE_BEFORE_STEP},
    {"torch:order=before-unscale", "torch", AT(order), 1, MPSIM_UPDATE_BEFORE_UNSCALE},
    {"keras:unscale=reciprocal", "keras", AT(unscale), 1, MPSIM_UNSCALE_RECIPROCAL},
    {"torch:unscale=divide", "torch", AT(unscale), 1, MPSIM_UNSCALE_DIVIDE},
    {"apex:arithmetic=f32-f64", "apex", AT(arithmetic), 1, MPSIM_SCALE_F32_F64},
    {"torch:arithmetic=f32", "torch", AT(arithmetic), 1, MPSIM_SCALE_F32},
    {"torch:arithmetic=f64", "torch", AT(arithmetic), 1, MPSIM_SCALE_F64},
    {"fairseq:check=elements", "fairseq", AT(check), 1, MPSIM_CHECK_ELEMENTS},
    {"torch:check=norm", "torch", AT(check), 1, MPSIM_CHECK_NORM},
};

static double field_of(const mpsim_scaler_config *c, size_t offset, int kind)
{
    const char *p = (const char *)c + offset;
    double d;
    uint32_t u;
    uint64_t v;
    switch (kind) {
    case 0:
        memcpy(&d, p, sizeof d);
        return d;
    case 1:
        return *(const uint8_t *)p;
    case 2:
        memcpy(&u, p, sizeof u);
        return u;
    default:
        memcpy(&v, p, sizeof v);
        return (double)v;
    }
}

TEST(parse_good)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        mpsim_scaler_config c;
        const spelling *g = &good[i];
        const mpsim_status s = mpsim_scaler_parse(&c, g->text);
        ck_assert_msg(s == MPSIM_OK, "%s: %s", g->text, mpsim_status_string(s));
        ck_assert_str_eq(c.name, g->row);
        const double v = field_of(&c, g->offset, g->kind);
        ck_assert_msg(bits_of_f64(v) == bits_of_f64(g->value), "%s gave %a", g->text, v);
        ck_assert(mpsim_scaler_config_check(&c) == MPSIM_OK);
    }
}

/* Nothing but the keys that were given changes. */
TEST(parse_rows)
{
    for (size_t i = 0; i < mpsim_scaler_count(); i++) {
        const mpsim_scaler_config *row = &mpsim_scaler_at(i)->config;
        mpsim_scaler_config c;
        ck_assert(mpsim_scaler_parse(&c, row->name) == MPSIM_OK);
        ck_assert(memcmp(&c, row, sizeof c) == 0);
        char text[64];
        snprintf(text, sizeof text, "%s:window=77", row->name);
        ck_assert(mpsim_scaler_parse(&c, text) == MPSIM_OK && c.window == 77);
        c.window = row->window;
        ck_assert(memcmp(&c, row, sizeof c) == 0);
    }
}

enum { ANY = -1 }; /* the header leaves open which */

static const struct {
    const char *text;
    int status;
} bad[] = {
    {"", MPSIM_ENOTFOUND},
    {"nosuch", MPSIM_ENOTFOUND},
    {"nosuch:init=1", MPSIM_ENOTFOUND},
    {"torch:bogus=1", MPSIM_ENOTFOUND},
    {"torch:init=1,bogus=1", MPSIM_ENOTFOUND},
    {"torch:refill=sometimes", MPSIM_ENOTFOUND},
    {"torch:refill=clean+x", MPSIM_ENOTFOUND},
    {"torch:order=before", MPSIM_ENOTFOUND},
    {"torch:growth-rule=x", MPSIM_ENOTFOUND},
    {"torch:floor-rule=x", MPSIM_ENOTFOUND},
    {"torch:unscale=multiply", MPSIM_ENOTFOUND},
    {"torch:arithmetic=f16", MPSIM_ENOTFOUND},
    {"torch:check=inputs", MPSIM_ENOTFOUND},
    {"torch:init=abc", MPSIM_EINVAL},
    {"torch:init=", MPSIM_EINVAL},
    {"torch:init=1x", MPSIM_EINVAL},
    {"torch:init=0x", MPSIM_EINVAL},
    {"torch:init=1e", MPSIM_EINVAL},
    {"torch:init=2^", MPSIM_EINVAL},
    {"torch:init=2**", MPSIM_EINVAL},
    {"torch:init=2.5**2", MPSIM_EINVAL},
    {"torch:init=2^x", MPSIM_EINVAL},
    {"torch:init=1.2.3", MPSIM_EINVAL},
    {"torch:window=abc", MPSIM_EINVAL},
    {"torch:hysteresis=", MPSIM_EINVAL},
    {"torch:init=1,init=2", MPSIM_EINVAL},
    {"static:1024,init=5", MPSIM_EINVAL},
    {"torch:skip=1,window=2,skip=1", MPSIM_EINVAL},
    {"torch:init=-1", MPSIM_ERANGE},
    {"torch:growth=0", MPSIM_ERANGE},
    {"torch:growth=-2", MPSIM_ERANGE},
    {"torch:backoff=0", MPSIM_ERANGE},
    {"torch:window=0", MPSIM_ERANGE},
    {"torch:hysteresis=0", MPSIM_ERANGE},
    {"torch:hysteresis=4294967296", MPSIM_ERANGE},
    {"torch:skip=2", MPSIM_ERANGE},
    {"torch:dynamic=2", MPSIM_ERANGE},
    {"torch:guard=-1", MPSIM_ERANGE},
    {"torch:floor=-1", MPSIM_ERANGE},
    {"torch:tolerance=-0.5", MPSIM_ERANGE},
    {"torch:threshold=-1", MPSIM_ERANGE},
    {"torch:ceiling=-1", MPSIM_ERANGE},
    {"torch:init=inf", ANY},
    {"torch:init=nan", ANY},
    {"torch:ceiling=nan", ANY},
    {"torch:growth=inf", ANY},
    {"torch:init=1e400", ANY},
    {"torch:init=2^5000", ANY},
    {"torch:window=1.5", ANY},
    {"torch:window=-1", ANY},
    {"torch:window=1e30", ANY},
    {"torch:init", ANY},
    {"torch:,", ANY},
    {"torch:init=1,", ANY},
    {"torch:,init=1", ANY},
    {"torch:init=1,,window=2", ANY},
    {"torch:init=1;window=2", ANY},
    {"torch init=1", ANY},
    {"torch:=1", ANY},
    {"torch:init=1 ", ANY},
    {"torch:init= 1", ANY},
    {"torch:in=1", ANY},
    {"torch:refill=", ANY},
    {"torch:refill=clean+", ANY},
    {"torch:refill=+clean", ANY},
    {"torch:refill=never+clean", ANY},
    {"torch:init=3^2", ANY},
    {"torch:window=2^64", ANY},
    {"torch:window=99999999999999999999", ANY},
    {"apex:arithmetic=f32,growth=1e300", ANY},
    {"apex:arithmetic=f32,backoff=1e-300", ANY},
    {"apex:arithmetic=f32-f64,init=1e300", ANY},
    {"torch:2,3", ANY},
    {"torch:window=2,1024", ANY},
};

/* Numbers at the ends of what the scale's arithmetic and whole numbers hold; the text of a saved scale has no zeros at its end. */
TEST(ends)
{
    mpsim_scaler_config c;
    mpsim_scaler s;
    char line[1024];
    ck_assert_int_eq(mpsim_scaler_parse(&c, "torch:arithmetic=f32-f64,growth=1e300"), MPSIM_OK);
    ck_assert_int_eq(mpsim_scaler_parse(&c, "torch:arithmetic=f64,growth=1e300,init=1e300"), MPSIM_OK);
    ck_assert_int_eq(mpsim_scaler_parse(&c, "torch:arithmetic=f64,init=2^-1074"), MPSIM_OK);
    ck_assert(c.init == 0x1p-1074);
    ck_assert_int_eq(mpsim_scaler_parse(&c, "torch:window=18446744073709551615"), MPSIM_OK);
    ck_assert(c.window == UINT64_MAX);
    ck_assert_int_eq(mpsim_scaler_parse(&c, "torch:init=2^16"), MPSIM_OK);
    ck_assert_int_eq(mpsim_scaler_init(&s, &c), MPSIM_OK);
    mpsim_scaler_save(&s, line, sizeof line);
    ck_assert_msg(strncmp(line, "scale=0x1p+16 ", 14) == 0, "%s", line);
    s.scale = 24;
    mpsim_scaler_save(&s, line, sizeof line);
    ck_assert_msg(strncmp(line, "scale=0x1.8p+4 ", 15) == 0, "%s", line);
}

/* Changes one by one: a key twice, and what is wrong by itself, leave all as it was. */
TEST(one_by_one)
{
    static const struct {
        const char *key, *value;
        mpsim_status status;
    } rows[] = {{"init", "4x", MPSIM_OK},         {"growth-rule", "multiple", MPSIM_OK},
                {"floor_rule", "stop", MPSIM_OK}, {"INIT", "8", MPSIM_EINVAL},
                {"windw", "3", MPSIM_ENOTFOUND},  {"order", "never", MPSIM_ENOTFOUND},
                {"window", "3x", MPSIM_EINVAL},   {"window", "", MPSIM_EINVAL},
                {"skip", "2", MPSIM_ERANGE},      {"ceiling", "1e400", MPSIM_ERANGE}};
    mpsim_scaler_config c = mpsim_scaler_find("torch")->config, wanted, before;
    unsigned given = 0;
    ck_assert_int_eq(mpsim_scaler_parse(&wanted, "torch:init=4,growth-rule=multiple,floor-rule=stop"), MPSIM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned set = given;
        const size_t m = strcspn(rows[i].value, i ? "" : "x");
        before = c;
        ck_assert_int_eq(mpsim_scaler_set(&c, &given, rows[i].key, strlen(rows[i].key), rows[i].value, m),
                         rows[i].status);
        ck_assert_msg((given != set) == (rows[i].status == MPSIM_OK), "%s", rows[i].key);
        ck_assert_msg((memcmp(&c, &before, sizeof c) != 0) == (rows[i].status == MPSIM_OK), "%s", rows[i].key);
    }
    ck_assert(memcmp(&c, &wanted, sizeof c) == 0);
    ck_assert_int_eq(mpsim_scaler_set(NULL, &given, "init", 4, "1", 1), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_scaler_set(&c, NULL, "init", 4, "1", 1), MPSIM_EINVAL);
}

TEST(parse_bad)
{
    mpsim_scaler_config c, before;
    memset(&before, 0x5a, sizeof before);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c = before;
        const mpsim_status s = mpsim_scaler_parse(&c, bad[i].text);
        ck_assert_msg(bad[i].status == ANY ? s != MPSIM_OK : (int)s == bad[i].status, "\"%s\": %s", bad[i].text,
                      mpsim_status_string(s));
        ck_assert_msg(memcmp(&c, &before, sizeof c) == 0, "\"%s\" wrote", bad[i].text);
    }
    ck_assert(mpsim_scaler_parse(&c, NULL) == MPSIM_EINVAL);
    ck_assert(mpsim_scaler_parse(NULL, "torch") == MPSIM_EINVAL);
    ck_assert(memcmp(&c, &before, sizeof c) == 0);
}

/* ---- save and load ---- */

enum { LINE = 1024 };

static int equal(const mpsim_scaler *a, const mpsim_scaler *b)
{
    return bits_of_f64(a->scale) == bits_of_f64(b->scale) && a->step == b->step && a->clean == b->clean &&
           a->last_overflow == b->last_overflow && a->last_rescale == b->last_rescale && a->overflows == b->overflows &&
           a->hysteresis == b->hysteresis && a->stopped == b->stopped;
}

static int same_result(mpsim_scaler_result a, mpsim_scaler_result b)
{
    return a.events == b.events && bits_of_f64(a.scale) == bits_of_f64(b.scale) &&
           bits_of_f64(a.unscale) == bits_of_f64(b.unscale) && bits_of_f64(a.next) == bits_of_f64(b.next);
}

/* Saves *s, loads it into a fresh scaler, and lets copies of both go on. */
static void resume(const char *name, const mpsim_scaler *s, uint64_t random)
{
    char line[LINE], part[LINE];
    mpsim_scaler a = *s, b;
    const size_t n = mpsim_scaler_save(s, line, sizeof line);
    ck_assert_msg(n < sizeof line && strlen(line) == n && !strchr(line, '\n'), "%s", line);
    for (size_t size = 0; size <= n + 1; size += 1 + size / 3) {
        memset(part, 'x', sizeof part);
        ck_assert_uint_eq(mpsim_scaler_save(s, part, size), n);
        ck_assert(part[size] == 'x');
        ck_assert(size == 0 || (memcmp(part, line, size - 1) == 0 && part[size - 1] == 0));
    }
    ck_assert(mpsim_scaler_init(&b, &s->config) == MPSIM_OK);
    ck_assert_msg(mpsim_scaler_load(&b, line) == MPSIM_OK, "%s: %s", name, line);
    ck_assert_msg(equal(s, &b), "%s: %s", name, line);
    for (int i = 0; i < 24; i++) {
        const int inf = (int)(random >> i & 1);
        const mpsim_scaler_result ra = mpsim_scaler_update(&a, inf);
        ck_assert_msg(same_result(ra, mpsim_scaler_update(&b, inf)) && equal(&a, &b), "%s: differs %d steps after %s",
                      name, i + 1, line);
    }
}

CASE("states", 60);

/* Every row, near the ends of its numbers, with windows and hysteresis that are soon used up. */
TESTS(resumed, mpsim_scaler_count())
{
    static const char *const changes[] = {"init=1024",
                                          "init=3000.1,growth=1.1,backoff=0.7",
                                          "init=2^126",
                                          "init=2^-147,floor=0",
                                          "init=8,floor=3,ceiling=20",
                                          "init=24,floor=5,tolerance=0.2,threshold=7",
                                          "init=0"};
    const char *name = mpsim_scaler_at((size_t)_i)->config.name;
    uint64_t state = test_seed() + 77 + (uint64_t)_i;
    for (size_t i = 0; i < 4 * sizeof changes / sizeof *changes; i++) {
        char text[160];
        snprintf(text, sizeof text, "%s:%s,window=%zu,hysteresis=%zu", name, changes[i / 4], 1 + i % 4, 1 + i % 3);
        mpsim_scaler_config c;
        mpsim_scaler s;
        ck_assert_msg(mpsim_scaler_parse(&c, text) == MPSIM_OK, "%s", text);
        ck_assert(mpsim_scaler_init(&s, &c) == MPSIM_OK);
        for (int step = 0; step < 60; step++) {
            resume(text, &s, test_random(&state));
            mpsim_scaler_update(&s, test_random(&state) % 100 < (step < 30 ? 20 : 70));
        }
    }
}

static void unloadable(const mpsim_scaler *fresh, const char *text)
{
    mpsim_scaler s = *fresh;
    ck_assert_msg(mpsim_scaler_load(&s, text) == MPSIM_EINVAL, "takes \"%s\"", text);
    ck_assert_msg(memcmp(&s, fresh, sizeof s) == 0, "\"%s\" changed the scaler", text);
}

/* The line with word number `at` replaced; returns 0 past the last word. */
static int replaced(char *out, const char *line, int at, const char *value, const char *whole)
{
    char copy[LINE];
    snprintf(copy, sizeof copy, "%s", line);
    size_t length = 0;
    int i = 0;
    *out = 0;
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "), i++) {
        const int key = (int)(strcspn(w, "=") + 1);
        const char *gap = length ? " " : "";
        if (i != at)
            length += (size_t)snprintf(out + length, LINE - length, "%s%s", gap, w);
        else if (whole)
            length += (size_t)snprintf(out + length, LINE - length, "%s%s", *whole ? gap : "", whole);
        else
            length += (size_t)snprintf(out + length, LINE - length, "%s%.*s%s", gap, key, w, value);
    }
    return at < i;
}

TEST(malformed)
{
    static const char *const values[] = {
        "", "x", "nan", "1x", "--1", "=1", "1=1", "+", "0x", "99999999999999999999999999", "1,5"};
    static const char *const others[] = {"", "bogus=1", "scale", "scale=1"};
    static const char *const lines[] = {"", " ", "x", "scale", "scale=", "scale=0x1p+16", "{}", "0x1p+16 12 12"};
    mpsim_scaler fresh, s;
    memset(&fresh, 0, sizeof fresh);
    ck_assert(mpsim_scaler_init(&fresh, &mpsim_scaler_find("megatron")->config) == MPSIM_OK);
    s = fresh;
    for (int i = 0; i < 40; i++)
        mpsim_scaler_update(&s, i % 7 == 3);
    char line[LINE], text[2 * LINE];
    mpsim_scaler_save(&s, line, sizeof line);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (int at = 0; replaced(text, line, at, values[v], NULL); at++)
            if (strcmp(values[v], "99999999999999999999999999") != 0 || at > 0)
                unloadable(&fresh, text);
    /* A second scale= in place of the first is no error. */
    for (size_t v = 0; v < sizeof others / sizeof *others; v++)
        for (int at = v == 3; replaced(text, line, at, NULL, others[v]); at++)
            unloadable(&fresh, text);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        unloadable(&fresh, lines[i]);
    snprintf(text, sizeof text, "%s %s", line, line);
    unloadable(&fresh, text);
    snprintf(text, sizeof text, "%s x", line);
    unloadable(&fresh, text);
    replaced(text, line, 0, "-1", NULL);
    unloadable(&fresh, text);
    unloadable(&fresh, NULL);
    ck_assert(mpsim_scaler_load(&fresh, line) == MPSIM_OK && equal(&fresh, &s));
}

TEST_MAIN("t-scaler-text");
