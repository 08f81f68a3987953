/* t-replay-lost.c -- lost updates: how many weights stand still where binary64 moves them, against
 * optimizer steps as the frameworks document them; and that Kahan summation, masters and stochastic
 * rounding keep them. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct step_inputs {
    float *w, *g, *m, *v;
    size_t n;
} step_inputs;

static step_inputs inputs_of(trace *t, const char *name)
{
    step_inputs s = {0};
    s.w = floats(t, "weight", name, &s.n);
    s.g = floats(t, "wgrad", name, &s.n);
    s.m = floats(t, "opt.m", name, &s.n);
    s.v = floats(t, "opt.v", name, &s.n);
    ck_assert(s.w && s.g);
    return s;
}

static void inputs_free(step_inputs *s)
{
    free(s->w);
    free(s->g);
    free(s->m);
    free(s->v);
}

/* torch's foreach kernels on CUDA over bf16 tensors: opmath is float, what an operation gives is
 * rounded; scalars are floats. */
static float sgd_bf16(float w, float g, float m, int first)
{
    const float buffer = first ? g : b16(b16(m * 0.9f) + g);
    return b16(fmaf(-0.1f, buffer, w));
}

static float sgd_fp32(float w, float g, float m, int first)
{
    const float buffer = first ? g : f32((double)f32((double)m * (double)0.9f) + (double)g);
    const float move = 0.1f * buffer;
    return w - move;
}

static float adamw_bf16(float w, float g, float m, float v, int t)
{
    const double bc1 = 1 - pow(0.9, t), root = sqrt(1 - pow(0.99, t));
    const float p = b16(w * (float)(1 - 0.002 * 0.01));
    m = b16(fmaf((float)(1 - 0.9), g - m, m));
    v = b16(v * 0.99f);
    v = b16(fmaf((float)(1 - 0.99), g * g, v));
    float d = b16(sqrtf(v));
    d = b16(d / (float)root);
    d = b16(d + 1e-8f);
    return b16(fmaf((float)(-0.002 / bc1), m / d, p));
}

typedef float (*mover)(const step_inputs *s, size_t i, int t);
typedef double (*mover64)(const step_inputs *s, size_t i, int t);

static float digits_pure(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return sgd_bf16(b16(s->w[i]), b16(s->g[i]), s->m ? b16(s->m[i]) : 0, !s->m);
}

/* What the README of the trace counts: the update of fp32 on a weight kept in bf16. */
static float digits_readme(const step_inputs *s, size_t i, int t)
{
    (void)t;
    const float m = s->m ? f32((double)(s->m[i] * 0.9f) + (double)s->g[i]) : s->g[i];
    return b16(b16(s->w[i]) - 0.1f * m);
}

static float digits_plain(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return sgd_fp32(s->w[i], s->g[i], s->m ? s->m[i] : 0, !s->m);
}

static float charlm_pure(const step_inputs *s, size_t i, int t)
{
    return adamw_bf16(b16(s->w[i]), b16(s->g[i]), s->m ? b16(s->m[i]) : 0, s->v ? b16(s->v[i]) : 0, t);
}

/* The update in binary64: the weight becomes w - u. */
static double digits_f64(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return 0.1 * (0.9 * (s->m ? (double)s->m[i] : 0) + (double)s->g[i]);
}

static double charlm_f64(const step_inputs *s, size_t i, int t)
{
    const double w = (double)s->w[i], g = (double)s->g[i];
    const double m = 0.9 * (s->m ? (double)s->m[i] : 0) + 0.1 * g;
    const double v = 0.99 * (s->v ? (double)s->v[i] : 0) + 0.01 * g * g;
    const double d = sqrt(v / (1 - pow(0.99, t))) + 1e-8;
    return 0.002 * 0.01 * w + 0.002 * (m / (1 - pow(0.9, t))) / d;
}

static float charlm_readme(const step_inputs *s, size_t i, int t)
{
    return b16(f32((double)b16(s->w[i]) - charlm_f64(s, i, t)));
}

typedef struct losses {
    uint64_t updates, lost;
} losses;

static void fit_inputs(step_inputs *x, size_t i, const grid *kept)
{
    float *all[] = {x->w, x->g, x->m, x->v};
    for (int k = 0; k < 4; k++)
        if (all[k])
            all[k][i] = (float)fit(kept, (double)all[k][i], NULL);
}

/* Of the elements that move in binary64, from the numbers that are kept (recorded: from the
 * recorded ones, and all whose update is not zero, however small), those that do not as `move`
 * computes. */
static losses count_lost(const char *folder, const replay_step *s, const grid *kept, mover move, mover64 exact,
                         int recorded)
{
    losses c = {0};
    trace *t = open_step(folder, s->step);
    for (size_t i = 0; i < s->n_weights; i++) {
        step_inputs x = inputs_of(t, s->weights[i].name);
        for (size_t k = 0; k < x.n; k++) {
            if (!recorded)
                fit_inputs(&x, k, kept);
            const double u = exact(&x, k, (int)s->step), w = (double)x.w[k];
            if (u == 0 || (!recorded && w - u == w))
                continue;
            const float before = (float)fit(kept, (double)x.w[k], NULL);
            c.updates++;
            c.lost += move(&x, k, (int)s->step) == before;
        }
        inputs_free(&x);
    }
    trace_close(t);
    return c;
}

static double percent(losses c)
{
    return 100 * (double)c.lost / (double)c.updates;
}

#define PURE "precision: bf16\nautocast: all\nparams: bf16\n"
#define MASTER PURE "master_weights: true\ngrads: fp32\n"
static const struct lossy {
    const char *trace;
    mover pure, readme;
    mover64 exact;
    double claims[7]; /* per cent, to the digits of the README; 0: no claim */
    double digits;
} lossy[] = {
    {"data/digits-cnn", digits_pure, digits_readme, digits_f64, {0, 34.5, 94.5, 99.3, 0, 0, 99.8}, 0.05},
    {"data/charlm", charlm_pure, charlm_readme, charlm_f64, {0, 40, 49, 0, 67}, 0.5},
};

CASE("lost", 60);

TESTS(bf16_loses_what_the_readme_says, 2)
{
    const struct lossy *c = &lossy[_i];
    run r;
    replay_path(&r, "data/policies/bf16-pure.yaml", c->trace, REPLAY_RECORDED);
    ck_assert_int_eq(r.code, 0);
    for (size_t i = 0; i < r.n; i++) {
        const sums got = sum_step(&r.step[i]);
        const losses want = count_lost(c->trace, &r.step[i], &bf16, c->pure, c->exact, 0);
        const losses readme = count_lost(c->trace, &r.step[i], &bf16, c->readme, c->exact, 1);
        printf("# %s step %d: lost %llu of %llu, oracle %llu of %llu, fp32 update %.2f %%\n", c->trace,
               (int)r.step[i].step, (unsigned long long)got.lost, (unsigned long long)got.updates,
               (unsigned long long)want.lost, (unsigned long long)want.updates, percent(readme));
        ck_assert_int_eq(r.step[i].from_record, 1);
        ck_assert_uint_eq(got.updates, want.updates);
        ck_assert_uint_eq(got.lost, want.lost);
        ck_assert_uint_eq(got.lost_model, want.lost);
        if (c->claims[i] > 0)
            ck_assert_double_eq_tol(percent(readme), c->claims[i], c->digits);
        if (c->claims[i] > 0)
            ck_assert_double_eq_tol(100 * (double)got.lost / (double)got.updates, c->claims[i], 0.5 + c->digits);
    }
    forget(&r);
}

/* An fp32 master loses what fp32 itself loses; the model's bf16 copy stands still all the same. */
TEST(a_master_keeps_updates)
{
    run r;
    replay_path(&r, MASTER "optimizer: {name: trace, variant: ieee}\n", "data/digits-cnn", REPLAY_RECORDED);
    ck_assert_msg(r.code == 0, "%s", r.error);
    for (size_t i = 0; i < r.n; i++) {
        const sums got = sum_step(&r.step[i]);
        const losses want = count_lost("data/digits-cnn", &r.step[i], &fp32, digits_plain, digits_f64, 0);
        const losses model = count_lost("data/digits-cnn", &r.step[i], &bf16, digits_readme, digits_f64, 1);
        ck_assert_uint_eq(got.updates, want.updates);
        ck_assert_uint_eq(got.lost, want.lost);
        ck_assert_uint_ge(got.lost_model, model.lost * 9 / 10);
        for (size_t k = 0; k < r.step[i].n_weights; k++)
            ck_assert_int_eq(r.step[i].weights[k].master, 1);
    }
    forget(&r);
}

/* How far the model's bf16 weights are from runs of the same gradients in fp32 and binary64, and
 * these from each other: one step from the record. */
TEST(distances_from_the_references)
{
    run r;
    replay_path(&r, "data/policies/bf16-pure.yaml", "data/digits-cnn", REPLAY_RECORDED);
    ck_assert_msg(r.code == 0, "%s", r.error);
    for (size_t k = 0; k < r.n; k++) {
        const replay_step *s = &r.step[k];
        double from32 = 0, from64 = 0, between = 0, norm32 = 0, norm64 = 0;
        trace *t = open_step("data/digits-cnn", s->step);
        for (size_t j = 0; j < s->n_weights; j++) {
            step_inputs x = inputs_of(t, s->weights[j].name);
            for (size_t i = 0; i < x.n; i++) {
                const double plain32 = (double)digits_plain(&x, i, 0);
                const double plain64 = (double)x.w[i] - digits_f64(&x, i, 0);
                const double w = (double)digits_pure(&x, i, 0);
                from32 += (w - plain32) * (w - plain32);
                from64 += (w - plain64) * (w - plain64);
                between += (plain32 - plain64) * (plain32 - plain64);
                norm32 += plain32 * plain32;
                norm64 += plain64 * plain64;
            }
            inputs_free(&x);
        }
        trace_close(t);
        ck_assert_double_eq_tol(s->distance_fp32 / sqrt(from32 / norm32), 1, 1e-9);
        ck_assert_double_eq_tol(s->distance_f64 / sqrt(from64 / norm64), 1, 1e-9);
        ck_assert_double_eq_tol(s->fp32_f64 / sqrt(between / norm64), 1, 1e-6);
    }
    forget(&r);
}

TEST(kahan_keeps_updates)
{
    run r;
    replay_ok(&r, "data/policies/bf16-kahan.yaml", "data/digits-cnn");
    const sums t = sum_run(&r);
    printf("# kahan: lost %llu of %llu, in the model %llu\n", (unsigned long long)t.lost, (unsigned long long)t.updates,
           (unsigned long long)t.lost_model);
    ck_assert_uint_lt(t.lost * 1000, t.updates);
    ck_assert_uint_gt(t.lost_model * 2, t.updates);
    forget(&r);
}

/* Fused variants get scaled gradients and divide themselves: what moves in binary64 is counted from
 * gradients that are divided once. An update of 2^-7 1e-10 moves 1 in binary64, not in binary32;
 * 65536 times smaller it would not move there either. */
TESTS(bug_20261120_fused_variants_divide_once, 4)
{
    static const char *const variants[] = {"torch", "torch-fused-a", "torch-fused-b", "torch-fused-c"};
    enum { N = 64 };
    float w[N], g[N];
    char path[700], text[160], *at = path;
    run r;
    for (size_t i = 0; i < N; i++) {
        w[i] = 1;
        g[i] = 0x1p-7f;
    }
    snprintf(path, sizeof path, "%s", made_begin("fused", 1, 0));
    made_set("mpsim.lr", "1e-10");
    made_put(W, &fp32, w, N, 0);
    made_put(G, &fp32, g, N, 0);
    made_end();
    snprintf(text, sizeof text,
             "precision: fp16\nloss_scaling: 65536\noptimizer:\n"
             "  name: trace\n  variant: %s\n",
             variants[_i]);
    const replay_options o = {0};
    replay_files(&r, text, &at, 1, &o);
    ck_assert_msg(r.code == 0, "%s", r.error);
    const sums t = sum_run(&r);
    ck_assert_uint_eq(t.updates, N);
    ck_assert_uint_eq(t.lost, N);
    forget(&r);
}

/* ---- stochastic rounding ---- */

CASE("stochastic", 60);

/* 1 - u lies between 1 - 2^-8 and 1, -1 - u between -1 and -1 - 2^-7: they move with the
 * probability of the rest, so that the mean movement is u. */
TEST(stochastic_rounding_moves_by_the_update_on_average)
{
    enum { N = 1000, SEEDS = 200 };
    static float w[2][N / 2], g[N / 2];
    const double u = 0x1p-8 * 77 / 256;
    uint64_t moved[2] = {0}, last = 0, changes = 0;
    char *at = NULL;
    char path[700];
    run r;
    for (size_t i = 0; i < N / 2; i++) {
        w[0][i] = 1;
        w[1][i] = -1;
        g[i] = (float)(2 * u);
    }
    snprintf(path, sizeof path, "%s", made_begin("stochastic", 1, 0));
    at = path;
    made_put("weight:down", &bf16, w[0], N / 2, 0);
    made_put("weight:up", &bf16, w[1], N / 2, 0);
    made_put("wgrad:down", &bf16, g, N / 2, 0);
    made_put("wgrad:up", &bf16, g, N / 2, 0);
    made_end();
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const replay_options o = {.seed = seed};
        replay_files(&r, "data/policies/bf16-stochastic.yaml", &at, 1, &o);
        ck_assert_msg(r.code == 0, "%s", r.error);
        const replay_weight *a = weight_of(&r.step[0], "down"), *b = weight_of(&r.step[0], "up");
        ck_assert_uint_eq(a->updates + b->updates, N);
        moved[0] += a->updates - a->lost;
        moved[1] += b->updates - b->lost;
        changes += a->lost != last;
        last = a->lost;
        forget(&r);
    }
    const double trials = SEEDS * N / 2;
    for (int i = 0; i < 2; i++) {
        const double step = i ? 0x1p-7 : 0x1p-8, p = u / step;
        const double mean = (double)moved[i] * step / trials;
        const double error = step * sqrt(p * (1 - p) / trials);
        printf("# mean movement %g, update %g, standard error %g\n", mean, u, error);
        ck_assert_double_eq_tol(mean, u, 4 * error);
    }
    ck_assert_uint_gt(changes, SEEDS / 2);
}

TEST_MAIN_BY(replay_test_main, "replay-lost");
