/* t-cut.c -- texts in too little room: of every size from one byte on a text is cut, and nothing behind it is written. */
#include "sim/advise/advise.h"
#include "sim/operand/element.h"
#include "sim/operand/scalerword.h"
#include "sim/policy/policy.h"
#include "sim/quant/quant.h"
#include "sim/record/step.h"
#include "sim/scaler/report.h"
#include "sim/scaler/spec.h"
#include "sim/scaler/table.h"
#include "sim/traininglog/sentences.h"
#include "sim/stat/part.h"
#include "sim/text/words.h"
#include "sim/train/describe.h"
#include "sim/train/policy.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])

/* Writes what there is to say of something. */
typedef void writer(char *out, size_t size, const void *of);

typedef struct row {
    const char *name;
    writer *write;
    const void *of;
} row;

enum { ROOM = 4096, BEHIND = 0xa5 };

/* In every size what fits of the text, which ends, and all bytes behind as they were. */
static void check(const row *r)
{
    static char full[ROOM / 2], text[ROOM], behind[ROOM];
    memset(behind, BEHIND, sizeof behind);
    r->write(full, sizeof full, r->of);
    const size_t length = strlen(full);
    ck_assert_msg(length > 0 && length + 1 < sizeof full, "%s: a text of %zu bytes", r->name, length);
    for (size_t size = 1; size <= length + 1; size++) {
        memset(text, BEHIND, sizeof text);
        r->write(text, size, r->of);
        ck_assert_msg(memcmp(text, full, size - 1) == 0 && text[size - 1] == '\0',
                      "%s: in %zu bytes '%.*s', not the beginning of '%s'", r->name, size, (int)size, text, full);
        ck_assert_msg(memcmp(text + size, behind, sizeof text - size) == 0, "%s: in %zu bytes it writes behind them",
                      r->name, size);
    }
}

/* ---- text_add ---- */

static void add_twice(char *out, size_t size, const void *of)
{
    *out = '\0';
    text_add(out, size, "%s %d", (const char *)of, 12345);
    text_add(out, size, ", %s", "twice");
}

CASE("cut", 60);

TEST(text_add_says_what_it_left_out)
{
    char text[8] = "";
    check(&(row){"text_add", add_twice, "added"});
    ck_assert_int_eq(text_add(text, sizeof text, "%s", "abc"), 0);
    ck_assert_int_eq(text_add(text, sizeof text, "%d", 4567), 0);
    ck_assert_str_eq(text, "abc4567");
    ck_assert_int_eq(text_add(text, sizeof text, "%s", ""), 0);
    ck_assert_int_eq(text_add(text, sizeof text, "8"), -1);
    ck_assert_str_eq(text, "abc4567");
    text[3] = '\0';
    ck_assert_int_eq(text_add(text, sizeof text, "%s", "defgh"), -1);
    ck_assert_str_eq(text, "abcdefg");
    ck_assert_int_eq(text_add(text, 0, "x"), -1);
    memset(text, 'z', sizeof text);
    ck_assert_int_eq(text_add(text, sizeof text, "x"), -1); /* that text does not end */
    for (size_t i = 0; i < sizeof text; i++)
        ck_assert_int_eq(text[i], 'z');
}

/* ---- loss scalers ---- */

static void of_track(char *out, size_t size, const void *of)
{
    (void)traininglog_track_verdict(of, out, size);
}

static void of_span(char *out, size_t size, const void *of)
{
    const track *t = of;
    (void)traininglog_events_text(out, size, t, &t->spans[t->count - 1]);
}

static void of_config(char *out, size_t size, const void *of)
{
    (void)scaler_config_text(out, size, &((const track *)of)->scaler.config);
}

/* The trace has seen Inf. */
static void of_trace(char *out, size_t size, const void *of)
{
    recorded_step step = {.number = 3, .amax = 2, .fits = 0x1p14, .n_seen = 1, .worst = "wgrad:fc1.weight"};
    track t = *(const track *)of;
    const scalerrun run = {.steps = &step, .n_steps = 1};
    t.not_finite_steps = 1;
    t.first_not_finite = 3;
    step.counts.not_finite = t.steps % 2; /* or says what fits */
    (void)scaler_verdict(&(scaler_report){.run = &run}, &t, out, size);
}

TEST(scalers)
{
    static const char *const patterns[] = {
        "((.x)*2 1*3)*4 #end\n.", "{2^14}*100000", "1*3,0*2000,1", "0*2000 1 0", "(.*3 x)*60", "1*100", "1*3", "0"};
    static const char *const specs[] = {"torch",
                                        "deepspeed",
                                        "fairseq",
                                        "keras",
                                        "static",
                                        "apex:growth=1,init=2",
                                        "tutorial:floor=2^10,ceiling=2^12,tolerance=.1,guard=1"};
    unsigned seen = 0;
    for (size_t p = 0; p < COUNT(patterns); p++) {
        scalerrun s = {0};
        for (size_t i = 0; i < COUNT(specs); i++)
            ck_assert_int_eq(scaler_spec_add(&s, specs[i]), 0);
        scaler_run_pattern(&s, patterns[p]);
        for (size_t i = 0; i < s.count; i++) {
            static char all[ROOM];
            track *t = &s.tracks[i];
            seen |= 1u << traininglog_track_verdict(t, all, sizeof all);
            check(&(row){"track_verdict", of_track, t});
            check(&(row){"scaler_verdict", of_trace, t});
            check(&(row){"events_text", of_span, t});
            if (p == 0)
                check(&(row){"scaler_config_text", of_config, t});
            traininglog_track_clear(t);
        }
        free(s.tracks);
    }
    for (int v = VERDICT_CLEAN; v <= VERDICT_STUCK; v++) /* from a pattern no Inf and NaN are known */
        ck_assert_msg(seen >> v & 1 || v == VERDICT_NOT_FINITE, "no track is %s", traininglog_verdict_name((verdict)v));
}

static void of_log(char *out, size_t size, const void *of)
{
    snprintf(out, size, "overflows come.");
    traininglog_sentence_rest(of, 1, 1, out, size);
}

TEST(logs)
{
    log_jump jump = {.line = 7};
    const training_log l = {.jumps = &jump, .n_jumps = 1};
    const facts since = {.l = &l, .loss = {.lost = 2, .ending = 2, .since = 1234567}};
    const facts some = {.l = &l, .loss = {.lost = 1234567, .as = VALUE_INF}};
    check(&(row){"what else a log tells", of_log, &since});
    check(&(row){"what else a log tells", of_log, &some});
}

/* ---- policies, trainings ---- */

static void of_plan(char *out, size_t size, const void *of)
{
    (void)policy_plan_describe(of, out, size);
}

static void of_optimizers(char *out, size_t size, const void *of)
{
    (void)policy_plan_optimizers(out, size, of);
}

static void of_network(char *out, size_t size, const void *of)
{
    (void)train_decoder_text(out, size, &((const train_run *)of)->settings);
}

static void of_clip(char *out, size_t size, const void *of)
{
    (void)train_clip_text(out, size, of);
}

static void of_products(char *out, size_t size, const void *of)
{
    (void)train_products_text(out, size, of);
}

TEST(policies_and_trainings)
{
    static const char *const names[] = {"te-nvfp4", "muon-bf16", "fp32-bf16-fp16", "torchao-adamw4bit",
                                        "te-fp8-current-dpa"};
    check(&(row){"plan_optimizers", of_optimizers, " and "});
    for (size_t i = 0; i < COUNT(names); i++) {
        policy p;
        trace_error e = {0};
        char error[TRAIN_ERROR];
        train_run run = {.n_layers = 0};
        train_settings s;
        train_settings_init(&s, "llama");
        s.decoder.tile = 16;
        ck_assert_msg(policy_load(&p, names[i], 10, &e) == 0, "%s", e.text);
        for (size_t k = 0; k < p.count; k++)
            check(&(row){"plan_describe", of_plan, &p.plans[k]});
        ck_assert_msg(train_run_of_policy(&run, &p, &s, NULL, error) == 0, "%s: %s", names[i], error);
        for (size_t k = 0; k < run.n_plans; k++)
            run.plans[k].max_norm = 1 / (3.0 + (double)k);
        const row rows[] = {{"train_decoder_text", of_network, &run},
                            {"train_clip_text", of_clip, &run},
                            {"train_products_text", of_products, &run}};
        for (size_t k = 0; k < COUNT(rows); k++)
            check(&rows[k]);
        train_run_clear(&run);
        policy_clear(&p);
    }
}

/* ---- others ---- */

static void of_shape(char *out, size_t size, const void *of)
{
    const trace_tensor *x = of;
    (void)text_shape(out, size, x->shape, x->rank);
}

static void of_flags(char *out, size_t size, const void *of)
{
    (void)element_flags_text(out, size, *(const unsigned *)of);
}

static void of_events(char *out, size_t size, const void *of)
{
    (void)step_events_text(out, size, "+", *(const unsigned *)of);
}

static void of_format(char *out, size_t size, const void *of)
{
    (void)stat_part_describe(out, size, of, &(mpsim_rounding){.mode = MPSIM_ROUND_STOCHASTIC_A, .sr_bits = 16});
}

static void of_recipe(char *out, size_t size, const void *of)
{
    block_target t = {.label = "nvfp4:rht16", .transform = 16};
    t.recipe = *(const mpsim_block_recipe *)of;
    (void)stat_part_describe_block(out, size, &t);
}

static void of_layout(char *out, size_t size, const void *of)
{
    ck_assert_ptr_null(quant_form_find(of, "e3m2", "e8m0", 7, 7, 0, out, size));
}

static void of_stored(char *out, size_t size, const void *of)
{
    ck_assert_int_eq(trace_quantised_word(of, out, size), -1);
}

/* A gradient that needs a scale, or for which there is none. */
static void of_advice(char *out, size_t size, const void *of)
{
    advise a = {.bounds = {.overflow = 0}};
    advise_tensor t = {.gradient = 1, .scales = *(const unsigned *)of, .low = {-12, 34}, .high = {17, 5}};
    ck_assert_int_eq(advise_candidates_make(&a.candidates, NULL), 0);
    for (size_t i = 0; i < CANDIDATES_MOST; i++)
        t.of[i].overflow.value = 0.01;
    (void)advise_scale_reason(out, size, &a, &t);
}

TEST(other_texts)
{
    static const unsigned all = ~0u, none = 0;
    static const uint64_t shape[] = {1234567, 1, 89};
    static const trace_tensor tensor = {.rank = 3, .shape = shape}, one = {.rank = 0, .shape = shape};
    const row rows[] = {{"text_shape", of_shape, &tensor},
                        {"text_shape of one", of_shape, &one},
                        {"element_flags_text", of_flags, &all},
                        {"step_events_text", of_events, &all},
                        {"part_describe", of_format, mpsim_format_find("e4m3")},
                        {"part_describe_block", of_recipe, mpsim_block_find("nvfp4")},
                        {"quant_form_find", of_layout, "deepseek"},
                        {"quant_form_find of nothing", of_layout, "nothing"},
                        {"trace_quantised_word", of_stored, "nothing"},
                        {"trace_quantised_word of elements", of_stored, "plain:nothing"},
                        {"advise_scale_reason", of_advice, &all},
                        {"advise_scale_reason of none", of_advice, &none}};
    for (size_t i = 0; i < COUNT(rows); i++)
        check(&rows[i]);
}

int main(void)
{
    setenv("MPSIM_POLICIES", test_source_path("data/policies"), 1);
    return test_main("cut", test_cases());
}
