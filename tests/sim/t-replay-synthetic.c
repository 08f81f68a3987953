/* t-replay-synthetic.c -- synthetic traces of few numbers, which hold the weights that an oracle
 * expects: ranks that are averaged, recorded scales, gradients that are not finite. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

CASE("synthetic", 60);

/* The comparison sees one flipped bit, once, in the step that has it. */
TEST(one_flipped_bit_is_seen)
{
    float w[8], next[8];
    run r;
    const char *at = made_begin("flip", 1, 0);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    for (int i = 0; i < 8; i++)
        w[i] = plain(ramp_w[i], ramp_g[i]);
    made_begin("flip", 2, 0);
    w[5] = f32_of_bits(bits_of_f32(w[5]) ^ 1);
    made_put(W, &fp32, w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    w[5] = f32_of_bits(bits_of_f32(w[5]) ^ 1);
    for (int i = 0; i < 8; i++)
        next[i] = plain(w[i], ramp_g[i]);
    made_begin("flip", 3, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    replay_ok(&r, "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 3);
    ck_assert_uint_eq(sum_step(&r.step[1]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[1]).differ, 1);
    ck_assert_uint_eq(sum_step(&r.step[2]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[2]).differ, 0);
    const double ulp = fabs((double)w[5] - (double)f32_of_bits(bits_of_f32(w[5]) ^ 1));
    const double got = weight_of(&r.step[1], "fc.weight")->max_difference;
    ck_assert_double_eq_tol(got, ulp / fabs((double)w[5]), 1e-10);
    ck_assert_int_eq(r.step[2].trains, 0);
    forget(&r);
}

/* ---- several ranks ---- */

enum { RANKS = 4, WIDTH = 10 };

static float rank_g[RANKS][WIDTH], rank_w[WIDTH];

/* Ranks added in the order of a ring: chunk c of 3 elements starts with rank c. */
static float ring(const grid *wire, int before, size_t i)
{
    const size_t chunk = i / 3;
    float sum = 0;
    for (size_t k = 0; k < RANKS; k++) {
        const float g = rank_g[(chunk + k) % RANKS][i];
        const float share = (float)fit(wire, (double)(before ? g * 0.25f : g), NULL);
        sum = k ? (float)fit(wire, (double)(sum + share), NULL) : share;
    }
    return before ? sum : sum / 4;
}

static float in_sequence(size_t i)
{
    return (((rank_g[0][i] + rank_g[1][i]) + rank_g[2][i]) + rank_g[3][i]) / 4;
}

static const struct reduction {
    const char *name, *text;
    const grid *wire; /* NULL: sequential in fp32 */
    int before;
} reductions[] = {
    {"ring-fp32", "grad_reduce: {wire: fp32, order: ring, average: before}\n", &fp32, 1},
    {"ring-bf16", "grad_reduce: {wire: bf16, order: ring, average: before}\n", &bf16, 1},
    {"ring-fp16", "grad_reduce: {wire: fp16, order: ring, average: before}\n", &fp16, 1},
    {"ring-after", "grad_reduce: {wire: fp32, order: ring, average: after}\n", &fp32, 0},
    {"sequence", "grad_reduce: {wire: fp32, order: sequential, average: after}\n", NULL, 0},
    {"ring-bf16-2", "grad_reduce: bf16\n", &bf16, 1},
};
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions };

/* The folder of a trace of four ranks, and of the weights that are expected after it. */
static const char *make_ranks(const struct reduction *c, const char *reduced)
{
    const char *at = NULL;
    float next[WIDTH];
    for (size_t i = 0; i < WIDTH; i++) {
        rank_w[i] = random_float();
        for (size_t k = 0; k < RANKS; k++)
            rank_g[k][i] = random_float();
    }
    for (int k = 0; k < RANKS; k++) {
        at = made_begin(c->name, 1, k);
        made_set("mpsim.world", "4");
        made_set("mpsim.reduced", reduced);
        made_put(W, &fp32, rank_w, 2, 5);
        made_put(G, &fp32, rank_g[k], 2, 5);
        made_end();
    }
    for (size_t i = 0; i < WIDTH; i++) {
        const float g = c->wire ? ring(c->wire, c->before, i) : in_sequence(i);
        next[i] = plain(rank_w[i], g);
    }
    made_begin(c->name, 2, 0);
    made_put(W, &fp32, next, 2, 5);
    made_end();
    return at;
}

TESTS(ranks_are_averaged, N_REDUCTIONS)
{
    const struct reduction *c = &reductions[_i];
    char text[512];
    run r;
    const char *at = make_ranks(c, "pre");
    snprintf(text, sizeof text, "precision: fp32\n%s", c->text);
    replay_ok(&r, text, at);
    ck_assert_uint_eq(r.n, 2);
    const sums t = sum_run(&r);
    ck_assert_uint_eq(t.compared, WIDTH);
    ck_assert_msg(t.differ == 0, "%s: %u differ", c->name, (unsigned)t.differ);
    forget(&r);
}

/* A wire of bf16 is not one of fp32. */
TEST(another_wire_is_seen)
{
    run r;
    const char *at = make_ranks(&reductions[1], "pre");
    replay_ok(&r, "precision: fp32\ngrad_reduce: {wire: fp32, order: ring, average: before}\n", at);
    ck_assert_uint_gt(sum_run(&r).differ, 5);
    forget(&r);
}

/* What was reduced before it was recorded is the same on all ranks: rank 0's counts. */
TEST(reduced_gradients_are_taken_once)
{
    float next[8];
    run r;
    const char *at = NULL;
    for (int k = 0; k < 2; k++) {
        at = made_begin("post", 1, k);
        made_set("mpsim.world", "2");
        made_set("mpsim.reduced", "post");
        made_put(W, &fp32, ramp_w, 2, 4);
        made_put(G, &fp32, ramp_g, 2, 4);
        made_end();
    }
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], ramp_g[i]);
    made_begin("post", 2, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    replay_ok(&r, "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 2);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* An infinity on the last of three ranks skips the step of all. */
TEST(one_rank_overflows)
{
    run r;
    const char *at = NULL;
    float g[8];
    memcpy(g, ramp_g, sizeof g);
    for (int k = 0; k < 3; k++) {
        at = made_begin("one-bad", 1, k);
        made_set("mpsim.world", "3");
        made_set("mpsim.reduced", "pre");
        g[6] = k == 2 ? -INFINITY : ramp_g[6];
        made_put(W, &fp32, ramp_w, 2, 4);
        made_put(G, &fp32, g, 2, 4);
        made_end();
    }
    replay_ok(&r, "data/policies/megatron-fp16.yaml", at);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_SKIP, 0);
    forget(&r);
}

/* ---- recorded scales ---- */

/* Gradients recorded with the scale 1024 in fp16, replayed by a scaler that starts elsewhere. */
TESTS(recorded_scales_are_taken_out, 2)
{
    float scaled[8], next[8];
    run r;
    const double own = _i ? 65536 : 1024;
    for (int i = 0; i < 8; i++)
        scaled[i] = h16(ramp_g[i] * 1024);
    const char *at = made_begin(_i ? "scale-b" : "scale-a", 1, 0);
    made_set("mpsim.loss_scale", "1024");
    made_set("mpsim.grads_scaled", "true");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, scaled, 2, 4);
    made_end();
    for (int i = 0; i < 8; i++) {
        const float g = h16((float)((double)scaled[i] / 1024 * own));
        next[i] = plain(ramp_w[i], g * (float)(1 / own));
    }
    made_begin(_i ? "scale-b" : "scale-a", 2, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    replay_ok(&r,
              _i ? "precision: fp16\nloss_scaling: {scaler: torch, init: 65536}\n"
                 : "precision: fp16\nloss_scaling: {scaler: torch, init: 1024}\n",
              at);
    ck_assert_double_eq(r.step[0].scale, own);
    ck_assert_double_eq(r.step[0].recorded_scale, 1024);
    ck_assert_uint_eq(r.step[0].events, 0);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    ck_assert_double_eq(cast_of(&r.step[0], G)->scale, own);
    forget(&r);
}

/* Gradients that were recorded unscaled, although the scale is known. */
TEST(unscaled_gradients_stay)
{
    float next[8];
    run r;
    const char *at = made_begin("unscaled", 1, 0);
    made_set("mpsim.loss_scale", "1024");
    made_set("mpsim.grads_scaled", "false");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], h16(ramp_g[i] * 256) * (1.0f / 256));
    made_begin("unscaled", 2, 0);
    made_put(W, &fp32, next, 2, 4);
    made_end();
    replay_ok(&r, "precision: fp16\nloss_scaling: {scaler: torch, init: 256}\n", at);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* ---- gradients that are not finite ---- */

static const char *make_bad(const char *name, float bad)
{
    float g[8];
    memcpy(g, ramp_g, sizeof g);
    g[3] = bad;
    const char *at = made_begin(name, 1, 0);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, g, 2, 4);
    made_end();
    made_begin(name, 2, 0);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_end();
    return at;
}

TESTS(bad_gradients_are_skipped, 4)
{
    static const float bads[] = {INFINITY, -INFINITY, NAN, 1e30f};
    run r;
    const char *at = make_bad("bad", bads[_i]);
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    const replay_step *s = &r.step[0];
    ck_assert_uint_eq(s->events, MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | MPSIM_SCALER_BACKOFF);
    ck_assert_double_eq(s->next_scale, 32768);
    ck_assert_msg(s->cause && strstr(s->cause, "fc.weight"), "%s", s->cause);
    ck_assert_ptr_null(s->optimizer);
    ck_assert_uint_eq(s->tracker, 0);
    const replay_cast *c = cast_of(s, G);
    ck_assert_uint_eq(c->nonfinite, _i < 3);
    ck_assert_uint_eq(c->overflow, _i == 3);
    ck_assert_uint_eq(sum_step(s).updates, 0);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* Apex O3 has the constant scale 1, and never acts on an overflow: the weight becomes infinite. */
TEST(a_static_scale_takes_infinity)
{
    run r;
    const char *at = make_bad("taken", INFINITY);
    float next[8];
    for (int i = 0; i < 8; i++)
        next[i] = h16(plain(h16(ramp_w[i]), i == 3 ? INFINITY : h16(ramp_g[i])));
    made_begin("taken", 2, 0);
    made_put(W, &fp16, next, 2, 4);
    made_end();
    replay_ok(&r, "opt_level: O3\noptimizer: {name: trace, variant: ieee}\n", at);
    ck_assert_uint_eq(r.step[0].events & MPSIM_SCALER_SKIP, 0);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    ck_assert_ptr_nonnull(r.step[0].optimizer);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-synthetic");
