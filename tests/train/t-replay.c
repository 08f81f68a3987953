/* t-replay.c -- training and replay are one arithmetic: a training that was recorded,
 * replayed under its own policy, gives the recorded scales, events, weights, masters and optimizer
 * state, bit for bit; and policies that are wrong in one thing, which the comparison must see. */
#include "sim/policy/policy.h"
#include "sim/train/job.h"
#include "sim/train/policy.h"
#include "support/replaykept.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8 };

#define ADAM "optimizer: {name: adam, variant: torch-foreach, lr: 0.01}\n"
#define HIGH "loss_scaling: {scaler: torch, init_scale: 2^20, growth_interval: 2}\n"

/* A policy (its file, or its text), how the run differs from the default, and how many arrays of
 * every parameter the replay can compare (model's weights, optimizer state, masters; -1: not those
 * of all parameters alike). */
static const struct trained {
    const char *policy;
    const char *net, *scaler;
    uint32_t batchnorm;
    double loss_factor;
    int arrays;
    int skips, clips; /* it must */
} trained[] = {
    {"data/policies/fp32.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"data/policies/fp32.yaml", "mlp", NULL, 1, 1, 2, 0, 0},
    {"data/policies/pytorch-amp-fp16.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"precision: fp16\n" HIGH, "mlp", NULL, 0, 1, 2, 1, 0},
    {"precision: fp16\n" HIGH ADAM, "mlp", NULL, 1, 1, 3, 1, 0},
    {"precision: fp16\n" HIGH, "cnn", NULL, 1, 1, 2, 1, 0},
    {"data/policies/apex-O1.yaml", "mlp", "apex:init=2^20", 0, 1, 2, 1, 0},
    {"data/policies/apex-O2.yaml", "mlp", NULL, 1, 1, -1, 1, 0},
    {"opt_level: O2\nloss_scaling: {scaler: apex, init_scale: 2^20}\n" ADAM, "mlp", NULL, 0, 1, -1,
     1, 0},
    {"data/policies/apex-O3.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"data/policies/keras-mixed-float16.yaml", "cnn", NULL, 1, 1, 2, 0, 0},
    {"data/policies/deepspeed-fp16.yaml", "mlp", "deepspeed:init=2^20", 0, 1, -1, 1, 0},
    {"data/policies/megatron-fp16.yaml", "mlp", "megatron:init=2^20", 0, 1, -1, 1, 0},
    {"data/policies/megatron-bf16.yaml", "mlp", NULL, 0, 1, -1, 0, 0},
    {"data/policies/pytorch-amp-bf16.yaml", "cnn", NULL, 1, 1, 2, 0, 0},
    {"data/policies/bf16-pure.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"data/policies/bf16-pure.yaml", "cnn", NULL, 1, 1, 2, 0, 0},
    {"data/policies/bf16-stochastic.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"data/policies/bf16-kahan.yaml", "mlp", NULL, 0, 1, 2, 0, 0},
    {"precision: bf16\nautocast: all\nparams: bf16\nmaster_weights: split\n" ADAM, "mlp", NULL, 0,
     1, -1, 0, 0},
    {"precision: fp32\nclip: 0.05\n", "mlp", NULL, 0, 1, 2, 0, 1},
    {"precision: fp16\nclip: {rule: torch, max_norm: 0.05}\n" HIGH
     "optimizer: {name: adamw, variant: torch-foreach, lr: 0.01, weight_decay: 0.1}\n", "mlp", NULL,
     0, 1, 3, 1, 1},
    {"precision: fp16\n" HIGH "optimizer: {name: sgd, variant: torch-fused-c, lr: 0.1, momentum: "
     "0.9, nesterov: true}\n", "mlp", NULL, 0, 1, 2, 1, 0},
    {"precision: fp16\noptimizer: {name: adam, variant: torch-fused-c, lr: 0.01, amsgrad: true}\n",
     "mlp", NULL, 0, 0x1p-10, 3, 0, 0},
    {"data/policies/nemo-fp8-hybrid-max.yaml", "mlp", NULL, 0, 1, -1, 0, 0},
    {"data/policies/te-mxfp8.yaml", "mlp", NULL, 0, 1, -1, 0, 0},
    {"precision: fp16\nloss_scaling: none\n", "mlp", NULL, 0, 1, 2, 0, 0},
    {"precision: fp32\nschedule:\n  - {step: 4, precision: fp16, loss_scaling: torch}\n", "mlp",
     NULL, 0, 1, 2, 0, 0},
};
enum { TRAINED = sizeof trained / sizeof *trained };

/* ---- a training with its trace ---- */

/* The path of a policy's file, that of a text written first. */
static const char *policy_path(const char *text)
{
    static char path[1024];
    if (!strchr(text, ':'))
        return test_source_path(text);
    snprintf(path, sizeof path, "%s/trained.yaml", replay_top);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static train_step steps[STEPS];

static void keep_step(const train_row *row, void *context)
{
    (void)context;
    ck_assert_uint_lt(row->step.step, STEPS);
    steps[row->step.step] = row->step;
}

/* Train and record; the folder of the trace. */
static const char *record(const struct trained *c, const char *name, uint64_t seed,
                          train_total *total)
{
    static char folder[600];
    char error[TRAIN_ERROR];
    policy p;
    trace_error bad;
    train_settings s;
    train_overrides o;
    train_job job = {.name = "trained", .policy = &p};
    train_watch w = {.recorder = {.policy = "trained", .run = &job.run, .steps = {.every = 1}}};
    snprintf(folder, sizeof folder, "%s/%s%d", replay_top, name, (int)(c - trained));
    w.recorder.folder = folder;
    ck_assert_msg(policy_load(&p, policy_path(c->policy), 0, &bad) == 0, "%s", bad.text);
    train_settings_init(&s, c->net);
    s.width = strcmp(c->net, "cnn") == 0 ? 3 : 13;
    s.batch = 8;
    s.steps = STEPS;
    s.seed = seed;
    s.batchnorm = c->batchnorm;
    s.loss_factor = c->loss_factor;
    train_overrides_init(&o);
    o.scaler = c->scaler;
    ck_assert_msg(train_run_of_policy(&job.run, &p, &s, &o, error) == 0, "%s", error);
    ck_assert_int_eq(train_job_run(&job, &w, keep_step, NULL, NULL, total), 0);
    ck_assert_uint_eq(total->done, STEPS);
    ck_assert_uint_eq(w.recorder.written, STEPS + 1);
    train_record_clear(&w.recorder);
    train_run_clear(&job.run);
    policy_clear(&p);
    return folder;
}

/* The scaler of the command line belongs into the policy that replays. */
static const char *replayed_policy(const struct trained *c)
{
    static char text[2048];
    if (!c->scaler)
        return c->policy;
    FILE *f = fopen(test_source_path(c->policy), "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text / 2, f);
    fclose(f);
    char *key = NULL; /* that of the file, to its next key without indentation, goes */
    text[n] = '\0';
    if ((key = strstr(text, "\nloss_scaling:")) != NULL) {
        char *end = key + 1;
        do
            end += strcspn(end, "\n") + 1;
        while (*end == ' ');
        memmove(key + 1, end, strlen(end) + 1);
        n = strlen(text);
    }
    snprintf(text + n, sizeof text - n, "loss_scaling: '%s'\n", c->scaler);
    return text;
}

static void replay_seeded(run *r, const char *text, const char *folder, uint64_t seed)
{
    char path[1024];
    char *files[1] = {path};
    const replay_options o = {.weights = REPLAY_AUTO, .seed = seed};
    snprintf(path, sizeof path, "%s", folder);
    replay_files(r, text, files, 1, &o);
    ck_assert_msg(r->code == 0 && !r->error[0], "%s: exit %d: %s", text, r->code, r->error);
    ck_assert_uint_eq(r->n, STEPS + 1);
}

static void check_step(const replay_step *s, const train_step *t)
{
    ck_assert_int_eq(s->step, (int64_t)t->step + 1);
    ck_assert_int_eq(s->trains, 1);
    ck_assert_double_eq(s->scale, t->scale);
    ck_assert_double_eq(s->recorded_scale, t->scale);
    ck_assert_double_eq(s->next_scale, t->next_scale);
    ck_assert_uint_eq(s->events, t->events);
    ck_assert_int_eq(s->clipped, t->clipped);
    ck_assert_int_eq(s->from_record, t->step == 0);
    if (isfinite(t->norm) && !t->skipped)
        ck_assert_double_eq(s->norm, t->norm);
}

START_TEST(a_replay_gives_the_training)
{
    const struct trained *c = &trained[_i];
    train_total total;
    run r;
    const uint64_t seed = 11 + (uint64_t)_i;
    const char *folder = record(c, "right", seed, &total);
    replay_seeded(&r, replayed_policy(c), folder, seed);
    for (size_t i = 0; i < STEPS; i++)
        check_step(&r.step[i], &steps[i]);
    ck_assert_int_eq(r.step[STEPS].trains, 0);
    const sums all = sum_run(&r);
    printf("# %.60s, %s: %llu compared, %llu differ, %llu skipped, %llu clipped\n",
           strchr(c->policy, ':') ? "a text" : c->policy, c->net, (unsigned long long)all.compared,
           (unsigned long long)all.differ, (unsigned long long)total.skipped,
           (unsigned long long)total.clipped);
    ck_assert_uint_eq(all.differ, 0);
    if (c->arrays > 0)
        ck_assert_uint_eq(all.compared, total.parameters * STEPS * (uint64_t)c->arrays);
    ck_assert_uint_ge(all.compared, total.parameters * STEPS);
    ck_assert_int_eq(total.skipped > 0, c->skips);
    ck_assert_int_eq(total.clipped > 0, c->clips);
    forget(&r);
    train_total_clear(&total);
}
END_TEST

/* ---- a replay that is wrong ---- */

static const struct wrong {
    int trained;
    const char *policy;
    uint64_t seed; /* added */
} wrongs[] = {
    {0, "precision: fp32\noptimizer: {name: trace, variant: torch-foreach, lr: 0.1000001}\n", 0},
    {0, "precision: bf16\noptimizer: {name: trace, variant: torch-foreach}\n", 0},
    {20, "precision: fp32\nclip: 0.0500001\n", 0},
    {17, "data/policies/bf16-stochastic.yaml", 1},
    {18, "data/policies/bf16-pure.yaml", 0},
    {4, "precision: fp16\n" HIGH "optimizer: {name: adam, variant: apex, lr: 0.01}\n", 0},
};

START_TEST(a_wrong_replay_is_seen)
{
    const struct wrong *c = &wrongs[_i];
    train_total total;
    run r;
    char name[32];
    snprintf(name, sizeof name, "wrong%d-", _i);
    const char *folder = record(&trained[c->trained], name, 5, &total);
    replay_seeded(&r, c->policy, folder, 5 + c->seed);
    const sums all = sum_run(&r);
    printf("# wrong replay %d: %llu of %llu differ\n", _i, (unsigned long long)all.differ,
           (unsigned long long)all.compared);
    ck_assert_uint_gt(all.differ, 0);
    forget(&r);
    train_total_clear(&total);
}
END_TEST

int main(void)
{
    TCase *right = test_case("replayed", 60);
    tcase_add_loop_test(right, a_replay_gives_the_training, 0, TRAINED);
    TCase *wrong = test_case("wrong", 60);
    tcase_add_loop_test(wrong, a_wrong_replay_is_seen, 0, (int)(sizeof wrongs / sizeof *wrongs));
    return replay_test_main("train-replay", (TCase *const[]){right, wrong, NULL});
}
