/* t-replay-rules.c -- schedules, and whole steps under the rules of the frameworks: scales,
 * clipping, masters, Adam; synthetic traces hold the weights that an oracle expects. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- schedules ---- */

CASE("rules", 60);

TEST(a_schedule_changes_plans)
{
    static const char text[] = "precision: fp32\nschedule:\n"
                               "  - {step: 3, precision: bf16}\n"
                               "  - {step: 5, precision: fp16, loss_scaling: {scaler: torch, init: 1024, "
                               "growth_interval: 2}}\n"
                               "  - {step: 8, precision: fp32}\n"
                               "  - {step: 9, precision: fp16, loss_scaling: {scaler: torch, init: 1024, "
                               "growth_interval: 2}}\n";
    static const struct {
        const char *format;
        double scale;
        uint64_t tracker;
        int begins;
    } want[] = {{"binary32", 1, 0, 0}, {"binary32", 1, 0, 0}, {"bf16", 1, 0, 1},    {"bf16", 1, 0, 0},
                {"fp16", 1024, 1, 1},  {"fp16", 1024, 0, 0},  {"fp16", 2048, 1, 0}, {"binary32", 1, 0, 1},
                {"fp16", 1024, 1, 1},  {"fp16", 1024, 0, 0}};
    run r;
    const char *at = NULL;
    float w[8];
    memcpy(w, ramp_w, sizeof w);
    for (int k = 0; k < 10; k++) {
        at = made_begin("schedule", k + 1, 0);
        made_put(W, &fp32, w, 2, 4);
        made_put(G, &fp32, ramp_g, 2, 4);
        made_end();
        for (int i = 0; i < 8; i++) {
            const float scale = (float)want[k].scale;
            const float g = k < 2 || k == 7 ? ramp_g[i] : k < 4 ? b16(ramp_g[i]) : h16(ramp_g[i] * scale) / scale;
            w[i] = plain(w[i], g);
        }
    }
    replay_ok(&r, text, at);
    ck_assert_uint_eq(r.n, 10);
    for (int k = 0; k < 10; k++) {
        const replay_step *s = &r.step[k];
        ck_assert_msg(strcmp(cast_of(s, G)->format, want[k].format) == 0, "step %d: %s", k + 1, cast_of(s, G)->format);
        ck_assert_double_eq(s->scale, want[k].scale);
        if (want[k].scale > 1)
            ck_assert_uint_eq(s->tracker, want[k].tracker);
        if (k > 0)
            ck_assert_msg(s->new_plan == want[k].begins, "step %d: new_plan %d", k + 1, s->new_plan);
        ck_assert_int_eq((s->events & MPSIM_SCALER_GROWTH) != 0, k == 5 || k == 9);
    }
    ck_assert_uint_eq(sum_run(&r).compared, 72);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* The bundled schedule, whose epochs have 1000 steps: bf16 from step 1001, fp16 from 6001. */
TEST(the_bundled_schedule)
{
    static const char *const formats[] = {"binary32", "binary32", "binary32", "bf16", "bf16", "fp16", "fp16"};
    run r;
    replay_ok(&r, "data/policies/fp32-bf16-fp16.yaml", "data/digits-cnn");
    for (int k = 0; k < 7; k++) {
        ck_assert_msg(strcmp(cast_of(&r.step[k], "act:fc1")->format, formats[k]) == 0, "%d", k);
        ck_assert_double_eq(r.step[k].scale, k < 5 ? 1 : 65536);
    }
    ck_assert_uint_eq(r.step[5].tracker, 1);
    forget(&r);
}

/* Parameters that become bf16, then have a master again. */
TEST(parameters_change_their_format)
{
    static const char text[] = "precision: fp32\nschedule:\n"
                               "  - {step: 2, precision: bf16, autocast: all, params: bf16}\n";
    float w[3][8];
    run r;
    for (int i = 0; i < 8; i++) {
        w[0][i] = plain(ramp_w[i], ramp_g[i]);
        w[1][i] = b16(plain(b16(w[0][i]), b16(ramp_g[i])));
    }
    const char *at = made_begin("convert", 1, 0);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    made_begin("convert", 2, 0);
    made_put(W, &fp32, w[0], 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    made_begin("convert", 3, 0);
    made_put(W, &bf16, w[1], 2, 4);
    made_end();
    replay_ok(&r, text, at);
    ck_assert_uint_eq(sum_step(&r.step[2]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[2]).differ, 0);
    ck_assert_str_eq(r.step[1].weights[0].storage, "bf16");
    forget(&r);
}

/* ---- whole steps of other rules ---- */

/* DeepSpeed updates the scale before it unscales: on a growth step by the new scale. */
TEST(deepspeed_unscales_with_the_new_scale)
{
    static const char text[] = "precision: fp16\nloss_scaling: {scaler: deepspeed, "
                               "initial_scale_power: 4, loss_scale_window: 1}\n";
    static const double scales[] = {16, 16, 32, 64}, unscales[] = {16, 32, 64};
    const char *at = NULL;
    float w[8];
    run r;
    memcpy(w, ramp_w, sizeof w);
    for (int k = 0; k < 4; k++) {
        at = made_begin("deepspeed", k + 1, 0);
        made_put(W, &fp32, w, 2, 4);
        if (k < 3)
            made_put(G, &fp32, ramp_g, 2, 4);
        made_end();
        for (int i = 0; i < 8 && k < 3; i++)
            w[i] = plain(w[i], h16(ramp_g[i] * (float)scales[k]) / (float)unscales[k]);
    }
    replay_ok(&r, text, at);
    for (int k = 0; k < 3; k++) {
        ck_assert_double_eq(r.step[k].scale, scales[k]);
        ck_assert_double_eq(r.step[k].unscale, unscales[k]);
        ck_assert_double_eq(r.step[k].next_scale, scales[k + 1]);
    }
    ck_assert_uint_eq(sum_run(&r).compared, 24);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* torch: the reciprocal of the norm plus 1e-6, times the largest norm, each rounded to binary32. */
TESTS(clipping_by_the_global_norm, 2)
{
    float next[2][8];
    run r;
    double squares[2] = {0, 0};
    const double most = _i ? 10 : 0.25;
    for (int i = 0; i < 8; i++) {
        squares[0] += (double)ramp_g[i] * (double)ramp_g[i];
        squares[1] += (double)(ramp_g[i] * 2) * (double)(ramp_g[i] * 2);
    }
    const float a = f32(sqrt(squares[0])), b = f32(sqrt(squares[1]));
    const float total = f32(sqrt((double)a * (double)a + (double)b * (double)b));
    const float factor = fminf(1, 1 / (total + 1e-6f) * (float)most);
    const char *at = made_begin("clip", 1, 0);
    float twice[8];
    for (int i = 0; i < 8; i++) {
        twice[i] = ramp_g[i] * 2;
        next[0][i] = plain(ramp_w[i], ramp_g[i] * factor);
        next[1][i] = plain(ramp_w[i], twice[i] * factor);
    }
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_put("weight:fc.bias", &fp32, ramp_w, 8, 0);
    made_put("wgrad:fc.bias", &fp32, twice, 8, 0);
    made_end();
    made_begin("clip", 2, 0);
    made_put(W, &fp32, next[0], 2, 4);
    made_put("weight:fc.bias", &fp32, next[1], 8, 0);
    made_end();
    replay_ok(&r, _i ? "precision: fp32\nclip: 10\n" : "precision: fp32\nclip: 0.25\n", at);
    ck_assert_double_eq_tol(r.step[0].norm, (double)total, 1e-7);
    ck_assert_int_eq(r.step[0].clipped, !_i);
    ck_assert_uint_eq(sum_run(&r).compared, 16);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* One factor unscales and clips. DeepSpeed: 1 / (S max(1, ((norm / S) + 1e-6) / most)); fairseq:
 * (1 / S) (most / (norm / S)), without the 1e-6; in binary64. */
TESTS(unscaling_and_clipping_at_once, 2)
{
    static const char *const texts[] = {"precision: fp16\nloss_scaling: {scaler: deepspeed, initial_scale_power: 8}\n"
                                        "clip: {rule: deepspeed-zero, max_norm: 0.3}\n",
                                        "precision: fp16\nloss_scaling: {scaler: fairseq, init: 256}\n"
                                        "clip: {rule: fairseq, max_norm: 0.3}\n"};
    float scaled[8], next[8];
    double squares = 0, factor = 1.0 / 256;
    run r;
    for (int i = 0; i < 8; i++) {
        scaled[i] = h16(ramp_g[i] * 256);
        squares += (double)scaled[i] * (double)scaled[i];
    }
    const double norm = (double)f32(sqrt(squares));
    ck_assert_double_gt(norm / 256, 0.3);
    if (_i)
        factor *= 0.3 / (factor * norm);
    else
        factor = 1 / (256 * ((norm / 256 + 1e-6) / 0.3));
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], scaled[i] * f32(factor));
    const char *at = made_begin("combined", 1, 0);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    made_begin("combined", 2, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    replay_ok(&r, texts[_i], at);
    ck_assert_double_eq_tol(r.step[0].norm, norm / 256, 1e-7);
    ck_assert_int_eq(r.step[0].clipped, 1);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* fp16 parameters, fp32 masters: the master moves by the unscaled gradient; the model's copy is the
 * master rounded. */
TEST(masters_and_the_models_copy)
{
    static const char text[] = "precision: fp16\nautocast: all\nparams: fp16\n"
                               "master_weights: true\nloss_scaling: {scaler: torch, init: 512}\n";
    float master[8], model[8], m[8];
    run r;
    const char *at = NULL;
    for (int i = 0; i < 8; i++)
        master[i] = h16(ramp_w[i]);
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 8; i++)
            model[i] = h16(master[i]);
        at = made_begin("master", k + 1, 0);
        made_set("mpsim.momentum", "0.9");
        made_put(W, &fp16, model, 2, 4);
        made_put("master:fc.weight", &fp32, master, 2, 4);
        if (k)
            made_put(M, &fp32, m, 2, 4);
        if (k < 3)
            made_put(G, &fp32, ramp_g, 2, 4);
        made_end();
        for (int i = 0; i < 8; i++) {
            const float g = h16(ramp_g[i] * 512) / 512, old = 0.9f * m[i];
            m[i] = k ? old + g : g;
            const float move = 0.5f * m[i];
            master[i] -= move;
        }
    }
    replay_ok(&r, text, at);
    ck_assert_uint_eq(sum_run(&r).compared, 72);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    ck_assert_int_eq(r.step[0].weights[0].master, 1);
    ck_assert_str_eq(r.step[0].weights[0].storage, "fp16");
    forget(&r);
}

/* A master split into the model's bf16 code and the other 16 bits: the model's copy is rounded to
 * nearest with ties away from zero, that of a plain master with ties to even. */
TEST(a_split_master_rounds_ties_away)
{
    static const float start[4] = {1, -1, 2, 0.5f};
    static const float masters[4] = {1 + 0x1p-8f, -1 - 0x1p-8f, 2 + 0x3p-7f, 0.5f + 0x1.8p-10f};
    static const float away[4] = {1 + 0x1p-7f, -1 - 0x1p-7f, 2 + 0x1p-5f, 0.5f};
    static const float even[4] = {1, -1, 2 + 0x1p-5f, 0.5f};
    char text[200];
    float g[4];
    run r;
    for (int i = 0; i < 4; i++)
        g[i] = (start[i] - masters[i]) * 2;
    const char *at = made_begin("split", 1, 0);
    made_put(W, &bf16, start, 2, 2);
    made_put(G, &fp32, g, 2, 2);
    made_end();
    for (int k = 0; k < 4; k++) { /* policy and record: split or not */
        made_begin("split", 2, 0);
        made_put(W, &bf16, k & 1 ? away : even, 2, 2);
        made_put("master:fc.weight", &fp32, masters, 2, 2);
        made_end();
        snprintf(text, sizeof text,
                 "precision: bf16\nautocast: all\nparams: bf16\ngrads: fp32\n"
                 "master_weights: %s\n",
                 k & 2 ? "split" : "true");
        replay_ok(&r, text, at);
        ck_assert_uint_eq(sum_run(&r).compared, 8);
        ck_assert_msg(sum_run(&r).differ == (!(k & 1) == !(k & 2) ? 0 : 2), "%d: %u differ", k,
                      (unsigned)sum_run(&r).differ);
        ck_assert_uint_eq(r.step[0].bytes.weights + r.step[0].bytes.master, k & 2 ? 16 : 24);
        forget(&r);
    }
}

/* Adam in the order of ieee; t does not advance where the step is skipped. Traces say the betas in
 * one key or in two. */
TESTS(adam_counts_the_steps_it_takes, 2)
{
    float w[8], m[8] = {0}, v[8] = {0}, bad[8];
    run r;
    const char *at = NULL;
    memcpy(w, ramp_w, sizeof w);
    memcpy(bad, ramp_g, sizeof bad);
    bad[2] = NAN;
    for (int k = 0, t = 0; k < 5; k++) {
        const int skipped = k == 0 || k == 2;
        at = made_begin("adam", k + 1, 0);
        made_set("mpsim.optimizer", "adam");
        made_set("mpsim.lr", "0.01");
        if (_i) {
            made_set("mpsim.beta1", "0.9");
            made_set("mpsim.beta2", "0.99");
        } else {
            made_set("mpsim.betas", "0.9,0.99");
        }
        made_set("mpsim.eps", "1e-6");
        made_put(W, &fp32, w, 2, 4);
        if (t) {
            made_put(M, &fp32, m, 2, 4);
            made_put("opt.v:fc.weight", &fp32, v, 2, 4);
        }
        if (k < 4)
            made_put(G, &fp32, skipped ? bad : ramp_g, 2, 4);
        made_end();
        t += !skipped;
        const float c1 = f32(1 - pow(0.9, t)), c2 = f32(1 - pow(0.99, t));
        for (int i = 0; i < 8 && !skipped; i++) {
            const float scale = k == 1 ? 512 : 256, g = h16(ramp_g[i] * scale) / scale;
            const float m0 = 0.9f * m[i], m1 = f32(1 - 0.9) * g, square = g * g;
            const float v0 = 0.99f * v[i], v1 = f32(1 - 0.99) * square;
            m[i] = m0 + m1;
            v[i] = v0 + v1;
            const float root = sqrtf(v[i] / c2), step = 0.01f * (m[i] / c1);
            w[i] -= step / (root + 1e-6f);
        }
    }
    replay_ok(&r, "precision: fp16\nloss_scaling: {scaler: torch, init: 1024}\n", at);
    ck_assert_uint_eq(sum_run(&r).compared, 8 + 3 * 24);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-rules");
