/* t-replay-odd.c -- traces with gaps; traces that lack something or have something odd: what replay
 * does without, and what it refuses. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>

/* ---- gaps, and whose weights ---- */

/* Steps 1, 2, 5; every file has the same weights and gradients. */
static const char *make_gap(void)
{
    static const int steps[] = {1, 2, 5};
    const char *at = NULL;
    for (int i = 0; i < 3; i++) {
        at = made_begin("gap", steps[i], 0);
        made_put(W, &fp32, ramp_w, 2, 4);
        made_put(G, &fp32, ramp_g, 2, 4);
        made_end();
    }
    return at;
}

CASE("odd", 60);

TESTS(gaps_begin_from_the_record, 3)
{
    static const int from[3][3] = {{1, 0, 1}, {1, 1, 1}, {1, 0, 0}};
    static const unsigned compared[3][3] = {{0, 8, 0}, {0, 0, 0}, {0, 8, 8}};
    run r;
    replay_path(&r, "data/policies/fp32.yaml", make_gap(), (replay_weights)_i);
    ck_assert_int_eq(r.code, 0);
    ck_assert_uint_eq(r.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(r.step[i].from_record, from[_i][i]);
        ck_assert_msg(sum_step(&r.step[i]).compared == compared[_i][i], "step %d: %u compared", i,
                      (unsigned)sum_step(&r.step[i]).compared);
    }
    if (_i == REPLAY_CARRY) { /* the weight moves by 0.05 a step, in fp32 */
        const float moved = plain(plain(ramp_w[0], ramp_g[0]), ramp_g[0]);
        const double far = (1 - (double)moved) / 1;
        ck_assert_uint_eq(sum_step(&r.step[2]).differ, sum_step(&r.step[1]).differ);
        ck_assert_double_ge(r.step[2].weights[0].max_difference, far);
    }
    forget(&r);
}

/* ---- what is missing or odd ---- */

static const char *make_odd(const char *name, int steps, void (*change)(int step))
{
    const char *at = NULL;
    for (int i = 1; i <= steps; i++) {
        at = made_begin(name, i, 0);
        made_put(W, &fp32, ramp_w, 2, 4);
        made_put(G, &fp32, ramp_g, 2, 4);
        change(i);
        made_end();
    }
    return at;
}

/* Changes of metadata: a key, and its value or NULL for none. */
static const char *change_key, *change_value;
static void metadata(int step)
{
    (void)step;
    if (change_value)
        made_set(change_key, change_value);
    else
        made_unset(change_key);
}

static const char *make_with(const char *name, const char *key, const char *value)
{
    change_key = key;
    change_value = value;
    return make_odd(name, 1, metadata);
}

static void shape(int step)
{
    for (int i = 0; i < 2; i++) {
        made.tensor[i].shape[0] = step == 2 ? 4 : 2;
        made.tensor[i].shape[1] = step == 2 ? 2 : 4;
    }
}
static void size(int step)
{
    if (step == 2)
        for (int i = 0; i < 2; i++) {
            made.tensor[i].n = 4;
            made.tensor[i].shape[0] = 1;
        }
}
static void size_of_grad(int step)
{
    (void)step;
    made.tensor[1].n = 4;
    made.tensor[1].shape[0] = 1;
}
static void backwards(int step)
{
    made_set("mpsim.step", step == 1 ? "7" : "3");
}

TEST(what_is_missing_is_said)
{
    static const char fixed[] = "precision: fp32\n"
                                "optimizer: {name: trace, variant: ieee, lr: 0.5}\n";
    static const char sgd[] = "precision: fp32\noptimizer: {name: sgd, variant: ieee}\n";
    static const char plain32[] = "data/policies/fp32.yaml";
    run r;
    refused(plain32, make_with("no-lr", "mpsim.lr", NULL), "lr");
    replay_ok(&r, fixed, make_with("no-lr", "mpsim.lr", NULL));
    forget(&r);
    refused(plain32, make_with("no-name", "mpsim.optimizer", NULL), "optimizer");
    replay_ok(&r, sgd, make_with("no-name", "mpsim.optimizer", NULL));
    forget(&r);
    refused(plain32, make_with("odd-name", "mpsim.optimizer", "lamb"), "optimizer");
    refused(plain32, make_with("odd-lr", "mpsim.lr", "fast"), "lr");
    refused(plain32, make_with("nan-lr", "mpsim.lr", "nan"), "lr");
    const char *at = made_begin("odd-scale", 1, 0);
    made_set("mpsim.grads_scaled", "true");
    made_set("mpsim.loss_scale", "0");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    refused(plain32, at, "scale");
}

TEST(shapes_and_steps_must_fit)
{
    static const char plain32[] = "data/policies/fp32.yaml";
    refused(plain32, make_odd("size", 2, size), "fc.weight");
    run r; /* as many elements in another shape are the same elements */
    replay_ok(&r, plain32, make_odd("shape", 2, shape));
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    forget(&r);
    refused(plain32, make_odd("grad-size", 1, size_of_grad), "fc.weight");
    refused(plain32, make_odd("backwards", 2, backwards), "step");
}

/* A file that says no step: neither its metadata nor its folder. */
TEST(a_file_needs_a_step)
{
    made_begin("stepless", 1, 0);
    made_unset("mpsim.step");
    snprintf(made.path, sizeof made.path, "%s/stepless/a.safetensors", replay_top);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    char path[700];
    snprintf(path, sizeof path, "%s", made.path);
    made_end();
    refused("data/policies/fp32.yaml", path, "step");
}

/* Gradients alone are enough for casts and scaler. */
TEST(gradients_alone)
{
    run r;
    const char *at = made_begin("only-grads", 1, 0);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_ptr_nonnull(cast_of(&r.step[0], G));
    ck_assert_uint_eq(sum_run(&r).updates, 0);
    forget(&r);
    at = made_begin("only-bad", 1, 0); /* the scaler has gradients to look at all the same */
    float g[8] = {INFINITY};
    made_put(G, &fp32, g, 2, 4);
    made_end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    forget(&r);
}

TEST(weights_alone)
{
    run r;
    const char *at = made_begin("only-weights", 1, 0);
    made_unset("mpsim.optimizer");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_int_eq(r.step[0].trains, 0);
    ck_assert_ptr_nonnull(cast_of(&r.step[0], W));
    ck_assert_uint_eq(sum_run(&r).updates, 0);
    forget(&r);
}

TEST(activations_alone)
{
    run r;
    const char *at = made_begin("only-acts", 1, 0);
    made_put("act:fc", &fp32, ramp_w, 2, 4);
    made_unset("mpsim.optimizer");
    made_end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_uint_eq(r.step[0].n_casts, 1);
    ck_assert_uint_eq(r.step[0].n_weights, 0);
    forget(&r);
}

TESTS(empty_and_scalar_tensors, 2)
{
    run r;
    const char *at = NULL;
    for (int step = 1; step <= 2; step++) {
        at = made_begin("tiny", step, 0);
        const float one = step == 1 ? 1 : 0.75f, g = 0.5f;
        made_put("weight:none", &fp32, ramp_w, 0, 0);
        made_put("wgrad:none", &fp32, ramp_w, 0, 0);
        made_put("weight:gain", &fp32, &one, 1, 0);
        made_put("wgrad:gain", &fp32, &g, 1, 0);
        made.tensor[2].rank = made.tensor[3].rank = 0;
        made_end();
    }
    replay_ok(&r, _i ? "data/policies/nemo-fp8-hybrid-max.yaml" : "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 2);
    if (!_i) {
        ck_assert_uint_eq(sum_run(&r).compared, 1);
        ck_assert_uint_eq(sum_run(&r).differ, 0);
    }
    ck_assert_uint_eq(weight_of(&r.step[0], "none")->count, 0);
    ck_assert_uint_eq(weight_of(&r.step[0], "gain")->count, 1);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-odd");
