/* t-replay.c -- replay_run against recorded runs: their loss scales, skips and weights,
 * bit for bit; and policies that are wrong in one thing, which the comparison must see. */
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <stdio.h>
#include <string.h>

static const struct recording {
    const char *policy, *trace;
    uint64_t compared;
    size_t steps;    /* that have a file after them */
    int last_trains; /* whether the last file has gradients */
} recordings[] = {
    {"data/amp-mlp/autocast.yaml", "data/amp-mlp/sgd", 52030, 24, 0},
    {"data/amp-mlp/autocast.yaml", "data/amp-mlp/adam", 75020, 24, 0},
    {"data/amp-mlp/adamw.yaml", "data/amp-mlp/adamw", 75020, 24, 0},
    {"data/amp-mlp/half.yaml", "data/amp-mlp/half", 81070, 24, 0},
    {"data/amp-mlp/cuda/foreach.yaml", "data/amp-mlp/cuda/foreach-adamw", 42350, 15, 1},
    {"data/amp-mlp/cuda/fused.yaml", "data/amp-mlp/cuda/fused-adamw", 54450, 15, 1},
};

/* What the files say of a step, and of the next one. */
static void check_recorded_step(const char *folder, const replay_step *s)
{
    trace *now = open_step(folder, s->step), *next = open_step(folder, s->step + 1);
    const int found = number_of(now, "mpsim.found_inf") > 0;
    const int skipped = number_of(now, "mpsim.skipped") > 0;
    const double scale = number_of(now, "mpsim.loss_scale");
    const double after = number_of(next, "mpsim.loss_scale");
    ck_assert_double_eq(s->scale, scale);
    ck_assert_double_eq(s->unscale, scale);
    ck_assert_double_eq(s->recorded_scale, scale);
    ck_assert_double_eq(s->next_scale, after);
    ck_assert_double_eq((double)s->tracker, number_of(next, "mpsim.growth_tracker"));
    const unsigned events = (found ? MPSIM_SCALER_OVERFLOW : 0) | (skipped ? MPSIM_SCALER_SKIP : 0) |
                            (after < scale ? MPSIM_SCALER_BACKOFF : 0) | (after > scale ? MPSIM_SCALER_GROWTH : 0);
    ck_assert_uint_eq(s->events, events);
    ck_assert_int_eq(s->cause != NULL, found);
    ck_assert_int_eq(s->from_record, s->step == 1);
    trace_close(now);
    trace_close(next);
}

CASE("recorded", 60);

TESTS(recorded_runs_give_their_bits, 4)
{
    const struct recording *c = &recordings[_i];
    run r;
    replay_ok(&r, c->policy, c->trace);
    ck_assert_uint_eq(r.n, c->steps + 1);
    for (size_t i = 0; i < c->steps; i++) {
        ck_assert_int_eq(r.step[i].step, (int64_t)i + 1);
        ck_assert_int_eq(r.step[i].trains, 1);
        check_recorded_step(c->trace, &r.step[i]);
    }
    ck_assert_int_eq(r.step[c->steps].trains, c->last_trains);
    const sums t = sum_run(&r);
    ck_assert_uint_eq(t.compared, c->compared);
    ck_assert_uint_eq(t.differ, 0);
    forget(&r);
}

TEST(clipped_where_the_norm_is_above)
{
    run r;
    int clipped = 0;
    replay_ok(&r, recordings[2].policy, recordings[2].trace);
    for (size_t i = 0; i < 24; i++) {
        trace *t = open_step(recordings[2].trace, r.step[i].step);
        const double norm = number_of(t, "mpsim.grad_norm");
        if (!(r.step[i].events & MPSIM_SCALER_SKIP)) {
            ck_assert_double_eq(r.step[i].norm, norm);
            ck_assert_int_eq(r.step[i].clipped, norm > 0.4);
            clipped += r.step[i].clipped;
        }
        trace_close(t);
    }
    ck_assert(clipped > 0 && clipped < 16);
    forget(&r);
}

TEST(digits_in_fp32_give_the_last_step)
{
    run r;
    replay_ok(&r, "data/policies/fp32.yaml", "data/digits-cnn");
    ck_assert_uint_eq(r.n, 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert_int_eq(r.step[i].from_record, i != 6);
    const sums t = sum_run(&r), last = sum_step(&r.step[6]);
    ck_assert_uint_eq(t.compared, 7364);
    ck_assert_uint_eq(last.compared, 7364);
    ck_assert_uint_eq(t.differ, 0);
    ck_assert_double_eq(r.step[6].distance_fp32, 0);
    forget(&r);
}

/* Policies that are wrong in one thing: the comparison of weights must see it, or that of the loss
 * scales (a power of two more or less changes no weight that is recorded here). */
#define TORCH "precision: fp16\nloss_scaling: {scaler: torch-cpu, "
#define AMP TORCH "init_scale: 2^24, growth_interval: 6}\n"
#define AMP7 TORCH "init_scale: 2^24, growth_interval: 7}\n"
#define AMP23 TORCH "init_scale: 2^23, growth_interval: 6}\n"
#define CPU "optimizer: {name: trace, variant: torch-cpu-default"
static const struct wrong {
    const char *text, *trace;
    int scale;
} wrongs[] = {
    {AMP "optimizer: {name: trace, variant: torch-cpu}\n", "data/amp-mlp/sgd", 0},
    {AMP "optimizer: {name: trace, variant: torch-cpu}\n", "data/amp-mlp/adam", 0},
    {AMP "optimizer: {name: trace, variant: apex}\n", "data/amp-mlp/adam", 0},
    {AMP CPU ", lr: 0.1000001}\n", "data/amp-mlp/sgd", 0},
    {AMP CPU ", momentum: 0.8999}\n", "data/amp-mlp/sgd", 0},
    {AMP CPU ", eps: 1e-7}\n", "data/amp-mlp/adam", 0},
    {AMP CPU "}\nclip: {rule: torch, max_norm: 0.4, norm: exact}\n", "data/amp-mlp/adamw", 0},
    {AMP CPU "}\nclip: none\n", "data/amp-mlp/adamw", 0},
    {AMP7 CPU "}\n", "data/amp-mlp/sgd", 1},
    {AMP23 CPU "}\n", "data/amp-mlp/sgd", 1},
    {AMP7 CPU "}\n", "data/amp-mlp/adam", 1},
    {"precision: bf16\nautocast: all\nloss_scaling: {scaler: torch-cpu, init_scale: 2^24, "
     "growth_interval: 6}\n" CPU "}\n",
     "data/amp-mlp/sgd", 0},
    {"precision: fp32\noptimizer: {name: trace, variant: ieee, lr: 0.11}\n", "data/digits-cnn", 0},
};
enum { N_WRONGS = sizeof wrongs / sizeof *wrongs };

TESTS(a_wrong_policy_is_seen, N_WRONGS)
{
    run r;
    uint64_t scales = 0;
    replay_ok(&r, wrongs[_i].text, wrongs[_i].trace);
    const sums t = sum_run(&r);
    for (size_t i = 0; i < r.n; i++)
        scales += r.step[i].trains && r.step[i].scale != r.step[i].recorded_scale;
    printf("# wrong policy %d: %llu of %llu differ, %llu scales\n", _i, (unsigned long long)t.differ,
           (unsigned long long)t.compared, (unsigned long long)scales);
    ck_assert_int_eq(t.differ > 0, !wrongs[_i].scale);
    if (strncmp(wrongs[_i].trace, "data/amp", 8) == 0)
        ck_assert_int_eq(scales > 0, wrongs[_i].scale);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay");
