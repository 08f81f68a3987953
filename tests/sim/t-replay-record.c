/* t-replay-record.c -- what a record says of gradients and layers, used in a replay: its clip and norm,
 * sums over micro-batches, tied weights, layers by their weights; and what the report makes of values that
 * differ. */
#include "oracle/replay.h"
#include "sim/replay/total.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHTS = 21 };

static float w0[WEIGHTS], g0[WEIGHTS], b0[3], h0[3]; /* of fc.weight and fc.bias */

static void fill(void)
{
    for (int i = 0; i < WEIGHTS; i++) {
        w0[i] = random_float();
        g0[i] = random_float();
    }
    for (int i = 0; i < 3; i++) {
        b0[i] = random_float();
        h0[i] = random_float();
    }
}

static void put_two(const float *w, const float *b)
{
    made_put("weight:fc.weight", &fp32, w, 3, 7);
    made_put("weight:fc.bias", &fp32, b, 3, 0);
}

/* A step of these gradients, and the weights that a factor gives. */
static const char *one_step(const char *folder, float factor, const char *const (*keys)[2])
{
    float w[WEIGHTS], b[3];
    made_begin(folder, 1, 0);
    for (; (*keys)[0]; keys++)
        made_set((*keys)[0], (*keys)[1]);
    put_two(w0, b0);
    made_put("wgrad:fc.weight", &fp32, g0, 3, 7);
    made_put("wgrad:fc.bias", &fp32, h0, 3, 0);
    made_end();
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = plain(w0[i], g0[i] * factor);
    for (int i = 0; i < 3; i++)
        b[i] = plain(b0[i], h0[i] * factor);
    const char *at = made_begin(folder, 2, 0);
    put_two(w, b);
    made_end();
    return at;
}

static void equal(run *r, const char *says, const char *at)
{
    replay_ok(r, says, at);
    ck_assert_uint_eq(sum_run(r).compared, WEIGHTS + 3);
    ck_assert_msg(sum_run(r).differ == 0, "%u differ", (unsigned)sum_run(r).differ);
}

static float factor_of(float norm, float most)
{
    return fminf(1, 1 / (norm + 1e-6f) * most);
}

/* ---- clipping ---- */

static float exact_norm(void)
{
    double squares = 0;
    for (int i = 0; i < WEIGHTS; i++)
        squares += (double)g0[i] * (double)g0[i];
    const float a = f32(sqrt(squares));
    squares = 0;
    for (int i = 0; i < 3; i++)
        squares += (double)h0[i] * (double)h0[i];
    const float b = f32(sqrt(squares));
    return f32(sqrt((double)a * (double)a + (double)b * (double)b));
}

CASE("record", 60);

/* The recorded norm counts, although it is another one; the policy is silent. One that speaks of
 * clipping has its own. */
TEST(the_recorded_clip_and_norm)
{
    run r;
    fill();
    const float norm = exact_norm() * 1.5f;
    char text[32];
    snprintf(text, sizeof text, "%.17g", (double)norm);
    const char *const keys[][2] = {{"mpsim.grad_clip", "0.25"}, {"mpsim.grad_norm", text}, {NULL, NULL}};
    const char *at = one_step("clip", factor_of(norm, 0.25f), keys);
    equal(&r, "precision: fp32\n", at);
    ck_assert_int_eq(r.step[0].clipped, 1);
    ck_assert_int_eq(r.step[0].recorded_clip, 1);
    ck_assert_double_eq(r.step[0].max_norm, 0.25);
    ck_assert_double_eq(r.step[0].norm, (double)norm);
    ck_assert_str_eq(r.step[0].notes->text[NOTE_NORM], "");
    forget(&r);
    equal(&r, "precision: fp32\nclip: 0.25\n", at);
    ck_assert_int_eq(r.step[0].recorded_clip, 0);
    forget(&r);
    static const char *const others[] = {"precision: fp32\nclip: none\n",
                                         "precision: fp32\nclip: {max_norm: 0.25, norm: exact}\n",
                                         "precision: fp32\nclip: 0.125\n"};
    for (int i = 0; i < 3; i++) {
        replay_ok(&r, others[i], at);
        ck_assert_msg(sum_run(&r).differ > 0, "%s", others[i]);
        ck_assert_int_eq(r.step[0].notes->text[NOTE_POLICY][0] != 0, i != 1);
        forget(&r);
    }
}

/* Other gradients than the recorded ones have another norm: their own. */
TEST(another_scale_has_its_own_norm)
{
    static const char *const keys[][2] = {{"mpsim.grad_clip", "0.25"}, {"mpsim.grad_norm", "77"}, {NULL, NULL}};
    run r;
    fill();
    const char *at = one_step("own-norm", 1, keys);
    replay_ok(&r, "precision: bf16\n", at);
    ck_assert_double_eq_tol(r.step[0].norm, (double)exact_norm(), 1e-2);
    forget(&r);
}

/* ATen's CPU kernels: eight lanes, their sum, and the rest, of which some with an FMA. */
static float lanes(const float *x, int n, int contracts)
{
    float lane[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) {
            const float square = x[i + k] * x[i + k];
            lane[k] = lane[k] + square;
        }
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum = k ? sum + lane[k] : lane[k];
    for (int left = n - i, k = 0; k < left; k++, i++) {
        const float square = x[i] * x[i];
        sum = contracts && k >= (left & 4) ? f32(fma((double)x[i], (double)x[i], (double)sum)) : sum + square;
    }
    return sqrtf(sum);
}

#define GROUP "[{\"params\":[\"fc.weight\",\"fc.bias\"],\"optimizer\":\"sgd\",\"lr\":0.5}]"
#define TURNED "[{\"params\":[\"fc.bias\",\"fc.weight\"],\"optimizer\":\"sgd\",\"lr\":0.5}]"
#define APART                                                         \
    "[{\"params\":[\"fc.weight\"],\"optimizer\":\"sgd\",\"lr\":0.5}," \
    "{\"params\":[\"fc.bias\"],\"optimizer\":\"sgd\",\"lr\":0.5}]"

/* Without a recorded norm: ATen's sum where device, instructions and order are known, else the exact
 * one, and a word of it. */
static const struct norms {
    const char *groups, *capability;
    int known, contracts;
} norms[] = {{GROUP, "default", 1, 0}, {GROUP, "avx512", 1, 1}, {TURNED, "avx2", 1, 1},
             {APART, "default", 0, 0}, {GROUP, NULL, 0, 0},     {NULL, "default", 0, 0}};
enum { N_NORMS = sizeof norms / sizeof *norms };

TEST(the_largest_magnitude_as_norm)
{
    static const char *const keys[][2] = {
        {"mpsim.grad_clip", "0.25"}, {"mpsim.grad_norm_type", "inf"}, {"mpsim.groups", APART}, {NULL, NULL}};
    run r;
    fill();
    float norm = 0;
    for (int i = 0; i < WEIGHTS; i++)
        norm = fmaxf(norm, fabsf(g0[i]));
    for (int i = 0; i < 3; i++)
        norm = fmaxf(norm, fabsf(h0[i]));
    const char *at = one_step("largest", factor_of(norm, 0.25f), keys);
    equal(&r, "precision: fp32\n", at);
    ck_assert_double_eq(r.step[0].norm, (double)norm);
    ck_assert(!r.step[0].notes->text[NOTE_NORM][0]);
    forget(&r);
}

TEST(norms_of_other_types_are_not_known)
{
    static const char *const keys[][2] = {{"mpsim.grad_clip", "0.25"}, {"mpsim.grad_norm_type", "1"}, {NULL, NULL}};
    run r;
    fill();
    const char *at = one_step("other", factor_of(exact_norm(), 0.25f), keys);
    equal(&r, "precision: fp32\n", at);
    ck_assert(strstr(r.step[0].notes->text[NOTE_NORM], "the exact 2-norm is taken"));
    forget(&r);
}

TESTS(norms_that_are_not_recorded, N_NORMS)
{
    const struct norms *c = &norms[_i];
    const char *keys[5][2] = {{"mpsim.grad_clip", "0.25"}, {NULL, NULL}};
    int n = 1, differ = 0;
    run r;
    if (c->capability) {
        keys[n][0] = "mpsim.cpu_capability";
        keys[n++][1] = c->capability;
    }
    if (c->groups) {
        keys[n][0] = "mpsim.groups";
        keys[n++][1] = c->groups;
    }
    keys[n][0] = NULL;
    for (int k = 0; k < 20; k++) {
        fill();
        float parts[2] = {lanes(g0, WEIGHTS, c->contracts), lanes(h0, 3, c->contracts)};
        if (c->groups && strcmp(c->groups, TURNED) == 0) {
            const float first = parts[0];
            parts[0] = parts[1];
            parts[1] = first;
        }
        const float norm = c->known ? lanes(parts, 2, c->contracts) : exact_norm();
        differ += norm != exact_norm();
        const char *at = one_step("norm", factor_of(norm, 0.25f), (const char *const(*)[2])keys);
        equal(&r, "precision: fp32\n", at);
        ck_assert_double_eq(r.step[0].norm, (double)norm);
        ck_assert_int_eq(r.step[0].notes->text[NOTE_NORM][0] != 0, !c->known);
        forget(&r);
    }
    ck_assert_int_eq(differ > 3, c->known);
}

TEST(values_are_clipped)
{
    static const char *const keys[][2] = {{"mpsim.grad_clip", "0.0"}, {"mpsim.grad_clip_value", "0.125"}, {NULL, NULL}};
    run r;
    fill();
    for (int i = 0; i < WEIGHTS; i++)
        g0[i] = i % 3 ? g0[i] : i & 1 ? 3 : -5;
    const char *at = one_step("value", 1, keys);
    float w[WEIGHTS], b[3];
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = plain(w0[i], fmaxf(-0.125f, fminf(0.125f, g0[i])));
    for (int i = 0; i < 3; i++)
        b[i] = plain(b0[i], fmaxf(-0.125f, fminf(0.125f, h0[i])));
    made_begin("value", 2, 0);
    put_two(w, b);
    made_end();
    equal(&r, "precision: fp32\n", at);
    ck_assert_double_eq(r.step[0].clip_value, 0.125);
    forget(&r);
    replay_ok(&r, "precision: fp32\nclip: none\n", at);
    ck_assert_double_eq(r.step[0].clip_value, 0);
    ck_assert_uint_gt(sum_run(&r).differ, 5);
    forget(&r);
}

/* ---- gradients that a format cannot hold ---- */

/* Numbers of fp16 times 256, and of these `odd` that are none. */
static int make_scaled(float *g, int odd)
{
    int n = 0;
    for (int i = 0; i < 8; i++) {
        g[i] = h16(ramp_g[i] * 256);
        if (odd && i % 3 == 0)
            g[i] = g[i] * 1.0001f;
        n += g[i] != h16(g[i]);
    }
    return n;
}

static const struct gradients {
    const char *key, *value, *policy;
    int odd, kept, counted;
} gradient_cases[] = {
    /* a run that does not say what it computed in; one that did in fp16; sums of micro-batches */
    {"mpsim.accumulation", "1", "", 1, 0, 1},
    {"mpsim.autocast", "float16", "", 1, 0, 1},
    {"mpsim.accumulation", "4", "", 1, 1, 0},
    {"mpsim.tied", "{\"dec.weight\":\"fc.weight\"}", "", 1, 1, 0},
    {"mpsim.accumulation", "4", "grads: fp16\n", 1, 0, 1},
    {"mpsim.accumulation", "4", "grads: fp32\n", 1, 1, 0},
    {"mpsim.autocast", "float16", "", 0, 0, 1},
    /* known to be of another precision: what fp16 would do is what is asked for */
    {"mpsim.dtype_computed", "F32", "", 1, 0, 0},
    {"mpsim.autocast", "bfloat16", "", 1, 0, 0},
};
enum { N_GRADIENTS = sizeof gradient_cases / sizeof *gradient_cases };

TESTS(gradients_that_are_no_numbers_of_the_format, N_GRADIENTS)
{
    const struct gradients *c = &gradient_cases[_i];
    const int sums_up = strcmp(c->key, "mpsim.autocast") != 0 && strcmp(c->key, "mpsim.dtype_computed") != 0 &&
                        strcmp(c->value, "1") != 0;
    char text[200];
    float g[8], next[8];
    run r;
    const int odd = make_scaled(g, c->odd);
    const char *at = made_begin("held", 1, 0);
    made_set("mpsim.loss_scale", "256");
    made_set("mpsim.grads_scaled", "true");
    made_set(c->key, c->value);
    if (sums_up)
        made_set("mpsim.autocast", "float16");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, g, 2, 4);
    made_end();
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], (c->kept ? g[i] : h16(g[i])) / 256);
    made_begin("held", 2, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    snprintf(text, sizeof text, "precision: fp16\nloss_scaling: {scaler: torch, init: 256}\n%s", c->policy);
    replay_ok(&r, text, at);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    ck_assert_str_eq(cast_of(&r.step[0], G)->format, c->kept ? "binary32" : "fp16");
    ck_assert_uint_eq(r.step[0].gradients, c->counted ? 8 : 0);
    ck_assert_uint_eq(r.step[0].unheld, (uint64_t)(c->counted ? odd : 0));
    ck_assert_str_eq(r.step[0].gradient_format ? r.step[0].gradient_format : "", c->counted ? "fp16" : "");
    ck_assert_str_eq(r.step[0].unheld_in ? r.step[0].unheld_in : "", c->counted && odd ? "fc.weight" : "");
    ck_assert(!c->odd || odd > 1);
    forget(&r);
}

/* ---- layers ---- */

static const struct layered {
    const char *tensor, *layer, *tied, *left_out;
    int rank;
    layer_kind kind;
} layered[] = {
    {"attn.in_proj_weight", "attn", NULL, NULL, 2, LAYER_LINEAR},
    {"attn.q_proj_weight", "attn", NULL, NULL, 2, LAYER_LINEAR},
    {"rnn.weight_ih_l0", "rnn", NULL, NULL, 2, LAYER_LINEAR},
    {"encoder.weight", "decoder", "{\"decoder.weight\":\"encoder.weight\"}", NULL, 2, LAYER_LINEAR},
    {"encoder.weight", "decoder", "{\"decoder.weight\":\"encoder.weight\"}", "encoder (Embedding): integers", 2,
     LAYER_LINEAR},
    {"encoder.weight", "decoder", NULL, NULL, 2, LAYER_OTHER},
    {"scale.gamma", "scale", NULL, NULL, 2, LAYER_OTHER},
    {"odd.weight_scale", "odd", NULL, NULL, 1, LAYER_OTHER},
    {"rms.weight", "rms", NULL, NULL, 1, LAYER_NORM},
    {"embed.weight", "embed", NULL, NULL, 2, LAYER_EMBEDDING},
    {"table.weight", "table", NULL, "x (Mamba): compiled,table (Embedding): integers", 2, LAYER_EMBEDDING},
    {"table.weight", "table", NULL, "table.0 (Embedding): integers,table (Linear): why", 2, LAYER_LINEAR},
};
enum { N_LAYERED = sizeof layered / sizeof *layered };

TESTS(layers_are_known_by_their_weights, N_LAYERED)
{
    const struct layered *c = &layered[_i];
    char name[64], act[64];
    run r;
    const char *at = made_begin("layers", 1, 0);
    if (c->tied)
        made_set("mpsim.tied", c->tied);
    if (c->left_out)
        made_set("mpsim.not_recorded", c->left_out);
    const size_t rows = c->rank == 2 ? 2 : 8, cols = c->rank == 2 ? 4 : 0;
    snprintf(name, sizeof name, "weight:%s", c->tensor);
    made_put(name, &fp32, ramp_w, rows, cols);
    snprintf(name, sizeof name, "wgrad:%s", c->tensor);
    made_put(name, &fp32, ramp_g, rows, cols);
    snprintf(act, sizeof act, "act:%s", c->layer);
    made_put(act, &fp32, ramp_g, 2, 4);
    made_end();
    replay_ok(&r, "precision: fp16\n", at);
    ck_assert_int_eq((int)cast_of(&r.step[0], act)->layer, (int)c->kind);
    if (strncmp(c->tensor, c->layer, strlen(c->layer)) == 0) {
        ck_assert_int_eq((int)cast_of(&r.step[0], name)->layer, (int)c->kind);
        ck_assert_str_eq(cast_of(&r.step[0], name)->format, c->kind == LAYER_LINEAR ? "fp16" : "binary32");
    }
    forget(&r);
}

/* ---- what differs ---- */

/* Three tensors, of which two differ: the one with the larger share first. */
TEST(the_worst_tensors_have_names)
{
    static const char *const names[] = {"a.weight", "b.weight", "c.weight"};
    replay_total t;
    char name[64];
    const char *at = NULL;
    run r;
    for (int s = 1; s <= 2; s++) {
        at = made_begin("worst", s, 0);
        for (int k = 0; k < 3; k++) {
            float w[8];
            for (int i = 0; i < 8; i++)
                w[i] = s == 1 ? ramp_w[i] : plain(ramp_w[i], ramp_g[i]);
            if (s == 2 && k == 0)
                w[3] *= 2;
            if (s == 2 && k == 2)
                w[0] *= 1.25f, w[1] *= 1.5f;
            snprintf(name, sizeof name, "weight:%s", names[k]);
            made_put(name, &fp32, w, 2, 4);
            snprintf(name, sizeof name, "wgrad:%s", names[k]);
            if (s == 1)
                made_put(name, &fp32, ramp_g, 2, 4);
        }
        made_end();
    }
    replay_ok(&r, "precision: fp32\n", at);
    replay_total_init(&t);
    for (size_t i = 0; i < r.n; i++) {
        plan p = {.reduce_given = 0};
        r.step[i].plan = &p;
        replay_total_add(&t, &r.step[i]);
    }
    replay_total_sort(&t);
    ck_assert_uint_eq(t.n_differing, 2);
    ck_assert_str_eq(t.differing[0].name, "weight:c.weight");
    ck_assert_uint_eq(t.differing[0].c.differ, 2);
    ck_assert_uint_eq(t.differing[0].c.compared, 8);
    ck_assert_double_eq_tol(t.differing[0].c.max_difference, 1.0 / 3, 1e-6);
    ck_assert_str_eq(t.differing[1].name, "weight:a.weight");
    ck_assert_double_eq_tol(t.differing[1].c.max_difference, 0.5, 1e-6);
    ck_assert_int_eq(replay_total_doubts(&t), 1);
    replay_total_clear(&t);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-record");
