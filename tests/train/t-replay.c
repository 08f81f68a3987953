/* t-replay.c -- training and replay are one arithmetic: a training that was recorded,
 * replayed under its own policy, gives the recorded scales, events, weights, masters and optimizer
 * state, bit for bit; and policies that are wrong in one thing, which the comparison must see. */
#include "sim/policy/policy.h"
#include "sim/train/job.h"
#include "sim/train/policy.h"
#include "support/replaykept.h"
#include "support/support.h"
#include "support/trainruns.h"

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
    {"opt_level: O2\nloss_scaling: {scaler: apex, init_scale: 2^20}\n" ADAM, "mlp", NULL, 0, 1, -1, 1, 0},
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
    {"precision: bf16\nautocast: all\nparams: bf16\nmaster_weights: split\n" ADAM, "mlp", NULL, 0, 1, -1, 0, 0},
    {"precision: fp32\nclip: 0.05\n", "mlp", NULL, 0, 1, 2, 0, 1},
    {"precision: fp16\nclip: {rule: torch, max_norm: 0.05}\n" HIGH
     "optimizer: {name: adamw, variant: torch-foreach, lr: 0.01, weight_decay: 0.1}\n",
     "mlp", NULL, 0, 1, 3, 1, 1},
    {"precision: fp16\n" HIGH "optimizer: {name: sgd, variant: torch-fused-c, lr: 0.1, momentum: "
     "0.9, nesterov: true}\n",
     "mlp", NULL, 0, 1, 2, 1, 0},
    {"precision: fp16\noptimizer: {name: adam, variant: torch-fused-c, lr: 0.01, amsgrad: true}\n", "mlp", NULL, 0,
     0x1p-10, 3, 0, 0},
    {"data/policies/nemo-fp8-hybrid-max.yaml", "mlp", NULL, 0, 1, -1, 0, 0},
    {"data/policies/te-mxfp8.yaml", "mlp", NULL, 0, 1, -1, 0, 0},
    {"precision: fp16\nloss_scaling: none\n", "mlp", NULL, 0, 1, 2, 0, 0},
    {"precision: fp32\nschedule:\n  - {step: 4, precision: fp16, loss_scaling: torch}\n", "mlp", NULL, 0, 1, 2, 0, 0},
};
enum { TRAINED = sizeof trained / sizeof *trained };

/* Under recipes in blocks, whose transforms and scales go along batches. */
static const struct in_blocks {
    struct trained c;
    uint32_t batch;
} in_blocks[] = {
    {{"data/policies/te-nvfp4.yaml", "mlp", NULL, 0, 1, -1, 0, 0}, 40},
    {{"data/policies/te-nvfp4-without-sr.yaml", "cnn", NULL, 1, 1, -1, 0, 1}, 8},
    {{"data/policies/torchao-nvfp4.yaml", "mlp", NULL, 0, 1, 2, 0, 0}, 20},
    {{"data/policies/deepseek-v3-fp8.yaml", "mlp", NULL, 0, 1, -1, 0, 0}, 8},
    {{"data/policies/deepseek-v3-fp8-f32.yaml", "mlp", NULL, 0, 1, -1, 0, 0}, 150},
    {{"data/policies/mxfp8-rceil.yaml", "mlp", NULL, 0, 1, -1, 0, 0}, 8},
    {{"precision: nvfp4\nfirst_last_layers_bf16: true\nnum_layers_at_end_in_bf16: 0\n", "mlp", NULL, 0, 1, 2, 0, 0},
     32},
};
enum { IN_BLOCKS = sizeof in_blocks / sizeof *in_blocks };

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

/* The run of a training. */
static void run_of(const struct trained *c, uint32_t batch, uint64_t seed, train_run *r)
{
    char error[TRAIN_ERROR];
    policy p;
    trace_error bad;
    train_settings s;
    train_overrides o;
    ck_assert_msg(policy_load(&p, policy_path(c->policy), 0, &bad) == 0, "%s", bad.text);
    train_settings_init(&s, c->net);
    s.width = strcmp(c->net, "cnn") == 0 ? 3 : 13;
    s.batch = batch;
    s.steps = STEPS;
    s.seed = seed;
    s.batchnorm = c->batchnorm;
    s.loss_factor = c->loss_factor;
    train_overrides_init(&o);
    o.scaler = c->scaler;
    ck_assert_msg(train_run_of_policy(r, &p, &s, &o, error) == 0, "%s", error);
    policy_clear(&p);
}

/* Train and record; the folder of the trace. */
static const char *record(const struct trained *c, uint32_t batch, const char *name, uint64_t seed, train_total *total)
{
    static char folder[600];
    policy p;
    trace_error bad;
    train_job job = {.name = "trained", .policy = &p};
    train_watch w = {.recorder = {.policy = "trained", .run = &job.run, .steps = {.every = 1}}};
    snprintf(folder, sizeof folder, "%s/%s", replay_top, name);
    w.recorder.folder = folder;
    ck_assert_msg(policy_load(&p, policy_path(c->policy), 0, &bad) == 0, "%s", bad.text);
    run_of(c, batch, seed, &job.run);
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

static void same_training(const struct trained *c, uint32_t batch, int number)
{
    train_total total;
    run r;
    const uint64_t seed = 11 + (uint64_t)number;
    char name[32];
    snprintf(name, sizeof name, "right%d", number);
    const char *folder = record(c, batch, name, seed, &total);
    replay_seeded(&r, replayed_policy(c), folder, seed);
    for (size_t i = 0; i < STEPS; i++)
        check_step(&r.step[i], &steps[i]);
    ck_assert_int_eq(r.step[STEPS].trains, 0);
    const sums all = sum_run(&r);
    printf("# %.60s, %s: %llu compared, %llu differ, %llu skipped, %llu clipped\n",
           strchr(c->policy, ':') ? "a text" : c->policy, c->net, (unsigned long long)all.compared,
           (unsigned long long)all.differ, (unsigned long long)total.skipped, (unsigned long long)total.clipped);
    ck_assert_uint_eq(all.differ, 0);
    if (c->arrays > 0)
        ck_assert_uint_eq(all.compared, total.parameters * STEPS * (uint64_t)c->arrays);
    ck_assert_uint_ge(all.compared, total.parameters * STEPS);
    ck_assert_int_eq(total.skipped > 0, c->skips);
    ck_assert_int_eq(total.clipped > 0, c->clips);
    forget(&r);
    train_total_clear(&total);
}

CASE("replayed", 60);

/* Rows with 8 images, or (past the end of `trained`) those of in_blocks. */
TESTS(a_replay_gives_the_training, TRAINED + IN_BLOCKS)
{
    const int k = _i - TRAINED;
    same_training(k < 0 ? &trained[_i] : &in_blocks[k].c, k < 0 ? 8 : in_blocks[k].batch, _i);
}

/* ---- casts ---- */

/* Of x, the numbers that are zero in q. */
static uint64_t lost_in(train *t, const char *kind, const char *x, const char *q, const char *layer)
{
    char name[64];
    size_t n, m;
    uint64_t lost = 0;
    (void)snprintf(name, sizeof name, "%s%s:%s", kind, x, layer);
    float *from = values_of(t, name, &n);
    (void)snprintf(name, sizeof name, "%s%s:%s", kind, q, layer);
    float *to = values_of(t, name, &m);
    ck_assert_uint_eq(n, m);
    uint64_t nonzero = 0, kept = 0; /* a copy that is transposed has other places */
    for (size_t i = 0; i < n; i++) {
        nonzero += from[i] != 0;
        kept += to[i] != 0;
    }
    lost = nonzero - kept;
    free(from);
    free(to);
    return lost;
}

static uint64_t lost_of(const replay_step *s, const char *kind, const char *layer)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s:%s", kind, layer);
    for (size_t i = 0; i < s->n_casts; i++)
        if (strcmp(s->casts[i].name, name) == 0)
            return s->casts[i].underflow;
    ck_abort_msg("no cast of %s", name);
    return 0;
}

/* By rows and, for the weight's gradient, by columns: as many numbers are lost in a replay as in the
 * training's own copies, random bits included. */
TESTS(a_replay_casts_as_the_training, 2)
{
    static const struct {
        const char *policy, *transformed;
    } rows[] = {{"data/policies/te-nvfp4.yaml", ".rht"}, {"data/policies/te-nvfp4-without-rht.yaml", ""}};
    static const char *const layers[] = {"fc1", "fc2", "head"}, *const kinds[] = {"act", "agrad"};
    const struct trained c = {rows[_i].policy, "mlp", NULL, 0, 1, -1, 0, 0};
    char error[TRAIN_ERROR] = "", copy[16];
    train_total total;
    train_engine e;
    train_step step;
    run r;
    uint64_t compared = 0;
    snprintf(copy, sizeof copy, "casts%d", _i);
    const char *folder = record(&c, 40, copy, 3, &total);
    replay_seeded(&r, c.policy, folder, 3);
    train_run trained_run;
    run_of(&c, 40, 3, &trained_run);
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = train_open(&trained_run, &e, 0, error);
    ck_assert_msg(t != NULL, "%s", error);
    for (size_t i = 0; i < STEPS; i++) {
        ck_assert_msg(train_next(t, &step, error) == 0, "%s", error);
        for (int k = 0; k < 6; k++) {
            const char *kind = kinds[k / 3], *layer = layers[k % 3];
            (void)snprintf(copy, sizeof copy, "%s.qt", kind);
            if (k != 3) /* the gradient of fc1 enters no product by rows: there is no gradient of images */
                ck_assert_uint_eq(lost_of(&r.step[i], kind, layer), lost_in(t, kind, "", ".q", layer));
            const uint64_t lost = lost_of(&r.step[i], copy, layer);
            ck_assert_uint_eq(lost, lost_in(t, kind, rows[_i].transformed, ".qt", layer));
            compared += lost;
        }
    }
    ck_assert_uint_gt(compared, 200);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&trained_run);
    forget(&r);
    train_total_clear(&total);
}

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

CASE("wrong", 60);

TESTS(a_wrong_replay_is_seen, (sizeof wrongs / sizeof *wrongs))
{
    const struct wrong *c = &wrongs[_i];
    train_total total;
    run r;
    char name[32];
    snprintf(name, sizeof name, "wrong%d-", _i);
    const char *folder = record(&trained[c->trained], 8, name, 5, &total);
    replay_seeded(&r, c->policy, folder, 5 + c->seed);
    const sums all = sum_run(&r);
    printf("# wrong replay %d: %llu of %llu differ\n", _i, (unsigned long long)all.differ,
           (unsigned long long)all.compared);
    ck_assert_uint_gt(all.differ, 0);
    forget(&r);
    train_total_clear(&total);
}

TEST_MAIN_BY(replay_test_main, "train-replay");
