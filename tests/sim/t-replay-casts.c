/* t-replay-casts.c -- what replay counts of casts of recorded tensors, and the bytes that a policy
 * takes, against an oracle that shares nothing with it (oracle/replay.h). */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counts of casts ---- */

typedef struct counts {
    uint64_t nonzero, nonfinite, underflow, subnormal, overflow;
    double amax, signal, noise;
} counts;

static counts count_cast(const grid *g, const double *x, size_t n, double scale)
{
    counts c = {0};
    for (size_t i = 0; i < n; i++) {
        int over = 0;
        const double v = x[i] * scale, y = fit(g, v, &over);
        c.nonzero += v != 0;
        c.nonfinite += isfinite(v) ? 0 : 1;
        c.underflow += v != 0 && y == 0;
        c.subnormal += y != 0 && fabs(y) < ldexp(1, g->least);
        c.overflow += (uint64_t)over;
        c.amax = fmax(c.amax, fabs(v));
        if (isfinite(y)) {
            c.signal += v * v;
            c.noise += (v - y) * (v - y);
        }
    }
    return c;
}

/* The format of a tensor of digits-cnn: torch's autocast leaves the parameters of batch norm and
 * their gradients alone; Apex O3 converts all of the model. */
static const grid *digits_format(const grid *low, int all, const char *name)
{
    const int parameter = strncmp(name, "w", 1) == 0;
    return parameter && !all && strstr(name, ":bn") ? &fp32 : low;
}

static const struct counted {
    const char *policy;
    const grid *low;
    int all;
    double scale;
} counted[] = {
    {"data/policies/pytorch-amp-fp16.yaml", &fp16, 0, 65536},
    {"data/policies/apex-O3.yaml", &fp16, 1, 1},
    {"data/policies/pytorch-amp-bf16.yaml", &bf16, 0, 1},
};

/* A model whose parameters are kept in the low format casts what it keeps. */
static void check_cast(const struct counted *c, const replay_step *s, const char *name, double *x, size_t n)
{
    const int gradient = strstr(name, "grad:") != NULL;
    const double scale = gradient ? c->scale : 1;
    const grid *g = digits_format(c->low, c->all, name);
    for (size_t i = 0; c->all && strncmp(name, "weight", 6) == 0 && i < n; i++)
        x[i] = fit(g, x[i], NULL);
    const counts want = count_cast(g, x, n, scale);
    const replay_cast *got = cast_of(s, name);
    ck_assert_msg(got != NULL, "step %d: no cast of %s", (int)s->step, name);
    ck_assert_msg(strcmp(got->format, g->name) == 0, "%s: step %d, %s: %s, not %s", c->policy, (int)s->step, name,
                  got->format, g->name);
    ck_assert_msg(got->scale == scale, "%s: scale %g", name, got->scale);
    ck_assert_msg(got->count == n && got->nonzero == want.nonzero && got->nonfinite == want.nonfinite &&
                      got->underflow == want.underflow && got->subnormal == want.subnormal &&
                      got->overflow == want.overflow && got->stale == 0 && got->amax == want.amax,
                  "%s: step %d, %s: underflow %u (%u), subnormal %u (%u), overflow %u (%u), "
                  "amax %a (%a)",
                  c->policy, (int)s->step, name, (unsigned)got->underflow, (unsigned)want.underflow,
                  (unsigned)got->subnormal, (unsigned)want.subnormal, (unsigned)got->overflow, (unsigned)want.overflow,
                  got->amax, want.amax);
    if (want.noise > 0)
        ck_assert_double_eq_tol(got->sqnr_db, 10 * log10(want.signal / want.noise), 1e-6);
}

CASE("casts", 60);

TESTS(casts_are_counted, 3)
{
    const struct counted *c = &counted[_i];
    run r;
    size_t checked = 0;
    replay_ok(&r, c->policy, "data/digits-cnn");
    for (size_t k = 0; k < r.n; k++) {
        size_t casts = 0;
        trace *t = open_step("data/digits-cnn", r.step[k].step);
        for (size_t i = 0; i < trace_count(t); i++) {
            const char *name = trace_at(t, i)->name;
            size_t n;
            if (strncmp(name, "opt", 3) == 0)
                continue;
            casts++;
            if (strncmp(name, "weight", 6) == 0 && (!r.step[k].from_record || strstr(name, ".bias")))
                continue;
            double *x = elements(t, i, &n);
            check_cast(c, &r.step[k], name, x, n);
            checked += n;
            free(x);
        }
        ck_assert_uint_eq(r.step[k].n_casts, casts);
        trace_close(t);
    }
    printf("# %s: %zu casts counted\n", c->policy, checked);
    ck_assert_uint_gt(checked, 600000);
    forget(&r);
}

/* autocast casts all arguments of linear: weight and bias; the gradient of both comes in fp16. */
TEST(a_bias_is_cast_like_its_weight)
{
    run r;
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", "data/digits-cnn");
    for (size_t k = 0; k < r.n; k++)
        for (int i = 0; i < 4; i++) {
            static const char *const names[] = {"weight:fc1.bias", "weight:fc2.bias", "wgrad:fc1.bias",
                                                "wgrad:fc2.bias"};
            const replay_cast *c = cast_of(&r.step[k], names[i]);
            ck_assert_ptr_nonnull(c);
            ck_assert_msg(c->layer == LAYER_LINEAR && strcmp(c->format, "fp16") == 0, "%s: %s, %s", c->name,
                          policy_layer_kind_name(c->layer), c->format);
        }
    forget(&r);
}

/* Layer norm, softmax and embeddings stay in fp32 under torch's autocast. */
TEST(what_autocast_leaves_in_fp32)
{
    run r;
    size_t seen = 0, low = 0;
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", "data/charlm");
    for (size_t k = 0; k < r.n; k++)
        for (size_t i = 0; i < r.step[k].n_casts; i++) {
            const replay_cast *c = &r.step[k].casts[i];
            const char *n = c->name;
            const int norm = strstr(n, "ln1") || strstr(n, "ln2") || strstr(n, "lnf");
            const int embedding = strstr(n, ":tok") || strstr(n, ":pos");
            const layer_kind kind = norm                   ? LAYER_NORM
                                    : embedding            ? LAYER_EMBEDDING
                                    : strstr(n, "softmax") ? LAYER_SOFTMAX
                                                           : LAYER_LINEAR;
            if (strcmp(c->kind, "weight") == 0 && strstr(n, ".bias"))
                continue;
            ck_assert_msg(c->layer == kind, "%s is %s", n, policy_layer_kind_name(c->layer));
            ck_assert_msg(strcmp(c->format, kind == LAYER_LINEAR ? "fp16" : "binary32") == 0, "%s: %s", n, c->format);
            if (kind == LAYER_LINEAR) {
                low += c->underflow;
                continue;
            }
            seen++;
            ck_assert_uint_eq(c->underflow + c->overflow + c->subnormal, 0);
        }
    ck_assert_uint_gt(seen, 100);
    ck_assert_uint_gt(low, 0);
    forget(&r);
}

/* ---- what a policy makes of a model ---- */

CASE("formats", 60);

/* Layers that a policy keeps out of FP8, keeps in fp32, or calls something else. */
TEST(exceptions_of_a_policy)
{
    static const char text[] = "precision: fp8\nfp8_exclude: [fc2]\nkeep_fp32: [conv1]\n"
                               "layer_kinds: {conv2: softmax}\n";
    static const char *const want[][2] = {{"act:fc1", "bf16 > e4m3"},   {"weight:fc1.weight", "bf16 > e4m3"},
                                          {"agrad:fc1", "bf16 > e5m2"}, {"wgrad:fc1.weight", "bf16"},
                                          {"act:fc2", "bf16"},          {"agrad:fc2", "bf16"},
                                          {"act:conv1", "binary32"},    {"wgrad:conv1.weight", "binary32"},
                                          {"act:conv2", "binary32"},    {"weight:bn1.weight", "binary32"},
                                          {"act:bn1", "bf16"}};
    run r;
    replay_ok(&r, text, "data/digits-cnn");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const replay_cast *c = cast_of(&r.step[0], want[i][0]);
        ck_assert_msg(c && strcmp(c->format, want[i][1]) == 0, "%s: %s, not %s", want[i][0], c ? c->format : "none",
                      want[i][1]);
    }
    forget(&r);
}

/* digits-cnn: 3682 parameters, 48 of them of batch norm; activations 33792, 3072 of them of linear
 * layers (32 x 64 and 32 x 32). SGD with momentum: one number of state each. */
enum { P = 3682, BN = 48, ACTS = 33792, LINEAR = 3072 };
static const struct memory {
    const char *policy;
    train_bytes want; /* weights, master, gradients, state, activations */
} memories[] = {
    {"fp32", {4 * P, 0, 4 * P, 4 * P, 4 * ACTS}},
    {"pytorch-amp-fp16", {4 * P, 0, 4 * P, 4 * P, 2 * ACTS}},
    {"pytorch-amp-bf16", {4 * P, 0, 4 * P, 4 * P, 2 * ACTS}},
    {"apex-O2", {2 * P + 2 * BN, 4 * (P - BN), 2 * P + 2 * BN, 4 * P, 2 * ACTS}},
    {"apex-O3", {2 * P, 0, 2 * P, 2 * P, 2 * ACTS}},
    {"bf16-pure", {2 * P, 0, 2 * P, 2 * P, 2 * ACTS}},
    {"bf16-kahan", {2 * P, 0, 2 * P, 4 * P, 2 * ACTS}},
    {"megatron-bf16", {2 * P, 4 * P, 4 * P, 4 * P, 2 * ACTS}},
    {"megatron-fp16", {2 * P, 4 * P, 2 * P, 4 * P, 2 * ACTS}},
    {"deepseek-v3-fp8", {2 * P, 4 * P, 4 * P, 2 * P, 2 * (ACTS - LINEAR) + LINEAR + 64 * 4}},
    {"te-mxfp8", {2 * P, 4 * P, 4 * P, 4 * P, 2 * (ACTS - LINEAR) + LINEAR + LINEAR / 32}},
    {"nemo-fp8-hybrid-max", /* weights of linear layers in FP8, with a scale each */
     {2 * P - (64 * 32 + 32 * 10) + 2 * 4, 4 * P, 4 * P, 4 * P, 2 * (ACTS - LINEAR) + LINEAR + 2 * 4}},
    {"te-nvfp4", {2 * P, 4 * P, 4 * P, 4 * P, 2 * (ACTS - LINEAR) + LINEAR / 2 + LINEAR / 16 + 2 * 4}},
};
enum { N_MEMORIES = sizeof memories / sizeof *memories };

TESTS(bytes_by_hand, N_MEMORIES)
{
    const struct memory *c = &memories[_i];
    char path[200];
    run r;
    snprintf(path, sizeof path, "data/policies/%s.yaml", c->policy);
    replay_ok(&r, path, "data/digits-cnn");
    const train_bytes *b = &r.step[6].bytes;
    ck_assert_msg(b->weights == c->want.weights && b->master == c->want.master && b->gradients == c->want.gradients &&
                      b->state == c->want.state && b->activations == c->want.activations,
                  "%s: weights %u (%u), master %u (%u), gradients %u (%u), state %u (%u), "
                  "activations %u (%u)",
                  c->policy, (unsigned)b->weights, (unsigned)c->want.weights, (unsigned)b->master,
                  (unsigned)c->want.master, (unsigned)b->gradients, (unsigned)c->want.gradients, (unsigned)b->state,
                  (unsigned)c->want.state, (unsigned)b->activations, (unsigned)c->want.activations);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-casts");
