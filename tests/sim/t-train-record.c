/* t-train-record.c -- what train writes: the files of a trace. */
#include "sim/cli/options.h"
#include "sim/train/job.h"
#include "sim/train/policy.h"
#include "support/replaykept.h"
#include "support/support.h"
#include "support/trainer.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which steps ---- */

CASE("trace", 30);

TEST(steps_are_chosen)
{
    static const struct {
        const char *text;
        uint64_t chosen; /* of the steps 1 to 12: bit 1 to 12 */
    } lists[] = {{"1", 2},         {"1,2,10-12", 0x1c06}, {"5-5", 32},
                 {"12,1", 0x1002}, {"2-3,3-4", 28},       {"1-1000000", 0x1ffe}};
    static const char *const bad[] = {"",   "0",  "3-2",  "1,",  ",1",    "a",
                                      "1-", "-1", "1,,2", "1 2", "1-2-3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        step_selection c = {.every = 0};
        uint64_t chosen = 0;
        ck_assert_int_eq(train_step_selection_parse(&c, lists[i].text), 0);
        for (uint64_t s = 1; s <= 12; s++)
            chosen |= (uint64_t)train_step_selected(&c, s) << s;
        ck_assert_msg(chosen == lists[i].chosen, "%s: %llx", lists[i].text, (unsigned long long)chosen);
        train_step_selection_clear(&c);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        step_selection c = {.every = 0};
        ck_assert_msg(train_step_selection_parse(&c, bad[i]) != 0, "%s", bad[i]);
        train_step_selection_clear(&c);
    }
    const step_selection every = {.every = 5};
    for (uint64_t s = 1; s <= 12; s++)
        ck_assert_int_eq(train_step_selected(&every, s), s == 1 || s == 5 || s == 10);
}

/* ---- a trace ---- */

/* A run of one policy with every step recorded, in replay_top/NAME. */
static void record(const char *name, const char *net, uint64_t steps, const char *scaler, const char *folder)
{
    char error[TRAIN_ERROR], path[256];
    trace_error bad;
    policy p;
    train_settings s;
    train_overrides o;
    train_total total;
    train_job job = {.name = name, .policy = &p};
    train_watch w = {.recorder = {.folder = folder, .policy = name, .run = &job.run, .steps = {.every = 1}}};
    snprintf(path, sizeof path, "data/policies/%s.yaml", name);
    ck_assert_int_eq(policy_load(&p, test_source_path(path), 0, &bad), 0);
    train_settings_init(&s, net);
    s.width = strcmp(net, "cnn") == 0 ? 3 : 12;
    s.batch = 8;
    s.steps = steps;
    train_overrides_init(&o);
    o.scaler = scaler;
    ck_assert_msg(train_run_of_policy(&job.run, &p, &s, &o, error) == 0, "%s", error);
    ck_assert_int_eq(train_job_run(&job, &w, NULL, NULL, NULL, &total), 0);
    train_record_clear(&w.recorder);
    train_total_clear(&total);
    train_run_clear(&job.run);
    policy_clear(&p);
}

static trace *open_file(const char *folder, int step)
{
    char path[800];
    trace_error error;
    snprintf(path, sizeof path, "%s/step_%06d/rank_00000.safetensors", folder, step);
    trace *t = trace_open(path, NULL, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    return t;
}

static const trace_tensor *tensor_of(const trace *t, const char *name)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0)
            return trace_at(t, i);
    return NULL;
}

/* What a file must hold: "NAME DTYPE d d d". */
static void check_tensors(const trace *t, const char *const *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[256], name[128];
        int at = 0;
        ck_assert_int_eq(sscanf(want[i], "%127s%n", name, &at), 1);
        const trace_tensor *x = tensor_of(t, name);
        ck_assert_msg(x != NULL, "%s is missing", name);
        size_t k = (size_t)snprintf(text, sizeof text, " %s", x->dtype);
        for (size_t d = 0; d < x->rank; d++)
            k += (size_t)snprintf(text + k, sizeof text - k, " %d", (int)x->shape[d]);
        ck_assert_msg(strcmp(text, want[i] + at) == 0, "%s:%s, not%s", name, text, want[i] + at);
    }
}

static void check_metadata(const trace *t, const char *key, const char *value)
{
    char full[64];
    snprintf(full, sizeof full, "mpsim.%s", key);
    const char *is = trace_metadata(t, full);
    ck_assert_msg(is != NULL && strcmp(is, value) == 0, "%s: %s, not %s", key, is ? is : "none", value);
}

TEST(a_trace_of_autocast)
{
    static const char *const tensors[] = {"act:fc1 F16 8 64",        "out:fc1 F16 8 12",
                                          "act:head F16 8 12",       "out:head F16 8 10",
                                          "agrad:fc1 F16 8 12",      "agrad:head F16 8 10",
                                          "dgrad:head F16 8 12",     "weight:fc1.weight F32 12 64",
                                          "weight:fc1.bias F32 12",  "weight:head.weight F32 10 12",
                                          "weight:head.bias F32 10", "wgrad:fc1.weight F16 12 64",
                                          "wgrad:fc1.bias F16 12",   "opt.m:fc1.weight F32 12 64",
                                          "opt.m:head.bias F32 10"};
    static const char *const after[] = {"weight:fc1.weight F32 12 64", "opt.m:fc1.weight F32 12 64"};
    const char *folder = trainer_path("autocast");
    record("pytorch-amp-fp16", "mlp", 3, NULL, folder);
    for (int step = 1; step <= 3; step++) {
        char text[16];
        trace *t = open_file(folder, step);
        ck_assert_int_eq(trace_step(t), step);
        check_tensors(t, tensors, sizeof tensors / sizeof *tensors);
        ck_assert_ptr_null(tensor_of(t, "master:fc1.weight"));
        ck_assert_ptr_null(tensor_of(t, "dgrad:fc1"));
        snprintf(text, sizeof text, "%d", step);
        check_metadata(t, "step", text);
        check_metadata(t, "loss_scale", "65536");
        check_metadata(t, "grads_scaled", "true");
        check_metadata(t, "optimizer", "sgd");
        check_metadata(t, "lr", "0.10000000000000001");
        check_metadata(t, "momentum", "0.90000000000000002");
        check_metadata(t, "policy", "pytorch-amp-fp16");
        check_metadata(t, "schema", "mpsim-trace/1");
        snprintf(text, sizeof text, "%d", step - 1);
        check_metadata(t, "optimizer_steps", text);
        check_metadata(t, "skipped", "0");
        trace_close(t);
    }
    trace *t = open_file(folder, 4);
    check_tensors(t, after, sizeof after / sizeof *after);
    for (size_t i = 0; i < trace_count(t); i++) /* no gradients */
        ck_assert(strncmp(trace_at(t, i)->name, "weight:", 7) == 0 || strncmp(trace_at(t, i)->name, "opt.", 4) == 0);
    check_metadata(t, "optimizer_steps", "3");
    trace_close(t);
}

/* Skipped steps are none of the optimizer's. */
TEST(a_trace_with_skipped_steps)
{
    enum { STEPS = 6 };
    int taken = 0;
    double scale = 0x1p20;
    const char *folder = trainer_path("skipped");
    record("pytorch-amp-fp16", "mlp", STEPS, "torch:init=2^20", folder);
    for (int step = 1; step <= STEPS; step++) {
        char text[32];
        trace *t = open_file(folder, step);
        const char *skipped = trace_metadata(t, "mpsim.skipped");
        snprintf(text, sizeof text, "%d", taken);
        check_metadata(t, "optimizer_steps", text);
        snprintf(text, sizeof text, "%.17g", scale);
        check_metadata(t, "loss_scale", text);
        ck_assert_ptr_nonnull(skipped);
        check_metadata(t, "found_inf", skipped);
        taken += strcmp(skipped, "0") == 0;
        scale /= strcmp(skipped, "0") == 0 ? 1 : 2;
        trace_close(t);
    }
    ck_assert_int_gt(taken, 0);
    ck_assert_int_lt(taken, STEPS);
}

TEST(a_trace_with_masters)
{
    static const char *const tensors[] = {
        "weight:conv1.weight F16 3 3 3 1", "master:conv1.weight F32 3 3 3 1", "wgrad:conv1.weight F16 3 3 3 1",
        "opt.m:conv1.weight F32 3 3 3 1",  "weight:conv2.weight F16 6 3 3 3", "act:conv1 F16 8 8 8 1",
        "out:conv1 F16 8 8 8 3",           "act:conv2 F16 8 4 4 3",           "weight:bn1.weight F32 3",
        "weight:head.weight F16 10 24",    "master:head.weight F32 10 24"};
    const char *folder = trainer_path("masters");
    record("apex-O2", "cnn", 2, NULL, folder);
    trace *t = open_file(folder, 2);
    check_tensors(t, tensors, sizeof tensors / sizeof *tensors);
    trace_close(t);
}

TEST(formats_of_files)
{
    static const char *const own[] = {"binary32", "fp16", "bf16", "e4m3", "e5m2"};
    static const char *const wider[] = {"tf32", "e3m2", "e2m1"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ck_assert_str_eq(train_stored_format(mpsim_format_find(own[i]))->name, own[i]);
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++) {
        ck_assert_ptr_nonnull(mpsim_format_find(wider[i]));
        ck_assert_str_eq(train_stored_format(mpsim_format_find(wider[i]))->name, "binary32");
    }
}

/* Codes of weights, as a file holds them. */
typedef struct initial {
    stored_list list;
    train_engine *engine;
} initial;

static int take_weights(const train_item *x, void *context)
{
    initial *k = context;
    char error[TRAIN_ERROR];
    return strncmp(x->name, "weight:", 7) == 0 ? train_stored_add(&k->list, k->engine, x, error) : 0;
}

TEST(weights_are_those_before_the_step)
{
    trainer own;
    const char *folder = trainer_path("before");
    record("bf16-pure", "mlp", 3, NULL, folder);
    trainer_open(&own, "bf16-pure", "mlp", 3);
    for (int step = 1; step <= 4; step++) {
        initial k = {.engine = &own.engine};
        trace *t = open_file(folder, step);
        trace_error error;
        ck_assert_int_eq(train_visit(own.train, take_weights, &k), 0);
        ck_assert_uint_gt(k.list.count, 0);
        for (size_t i = 0; i < k.list.count; i++) {
            const stored_tensor *s = &k.list.items[i];
            double x[1024];
            size_t got, at = 0;
            while (strcmp(trace_at(t, at)->name, s->name) != 0)
                at++;
            ck_assert_int_eq(trace_select(t, at, &error), 0);
            ck_assert_uint_le(s->count, 1024);
            ck_assert_int_eq(trace_read(t, x, 1024, &got, &error), 0);
            ck_assert_uint_eq(got, s->count);
            for (size_t j = 0; j < got; j++)
                ck_assert_double_eq(x[j], mpsim_decode(s->format, s->codes[2 * j] | s->codes[2 * j + 1] << 8));
        }
        train_stored_clear(&k.list);
        trace_close(t);
        if (step < 4)
            (void)trainer_next(&own);
    }
    trainer_close(&own);
}

TEST_MAIN_BY(replay_test_main, "train-record");
