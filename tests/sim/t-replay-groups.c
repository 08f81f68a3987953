/* t-replay-groups.c -- settings of parameter groups (mpsim.groups), step by step: synthetic traces hold
 * the weights that textbook formulas give, every operation rounded to binary32. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A parameter, and what its group does with it. */
typedef struct tensor {
    const char *name;
    float w[8], m[8], v[8], vmax[8];
    int t;
    double lr, momentum, dampening, decay, beta1, beta2, eps;
    int nesterov, maximize, amsgrad, adam, decoupled;
} tensor;

static void put(const tensor *p, const char *kind, const float *x)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%s", kind, p->name);
    made_put(name, &fp32, x, 2, 4);
}

/* What a file has of it: with the state, once there is one. */
static void put_all(const tensor *p, const float *g)
{
    put(p, "weight", p->w);
    if (g)
        put(p, "wgrad", g);
    if (p->t && (p->adam || p->momentum != 0))
        put(p, "opt.m", p->m);
    if (p->t && p->adam)
        put(p, "opt.v", p->v);
    if (p->t && p->amsgrad)
        put(p, "opt.vmax", p->vmax);
}

static void sgd(tensor *p, const float *grad)
{
    const float momentum = f32(p->momentum), rest = f32(1 - p->dampening);
    for (int i = 0; i < 8; i++) {
        float g = p->maximize ? -grad[i] : grad[i];
        if (p->decay != 0) {
            const float pull = f32(p->decay) * p->w[i];
            g = g + pull;
        }
        if (p->momentum != 0) {
            const float old = momentum * p->m[i], more = rest * g;
            p->m[i] = p->t ? old + more : g;
            const float ahead = momentum * p->m[i];
            g = p->nesterov ? g + ahead : p->m[i];
        }
        const float move = f32(p->lr) * g;
        p->w[i] -= move;
    }
    p->t++;
}

static void adam(tensor *p, const float *grad)
{
    const int t = ++p->t;
    const float c1 = f32(1 - pow(p->beta1, t)), c2 = f32(1 - pow(p->beta2, t));
    for (int i = 0; i < 8; i++) {
        float g = p->maximize ? -grad[i] : grad[i];
        if (p->decoupled) {
            const float pull = f32(p->lr * p->decay) * p->w[i];
            p->w[i] -= pull;
        } else if (p->decay != 0) {
            const float pull = f32(p->decay) * p->w[i];
            g = g + pull;
        }
        const float m0 = f32(p->beta1) * p->m[i], m1 = f32(1 - p->beta1) * g, square = g * g;
        const float v0 = f32(p->beta2) * p->v[i], v1 = f32(1 - p->beta2) * square;
        p->m[i] = m0 + m1;
        p->v[i] = v0 + v1;
        p->vmax[i] = p->amsgrad ? fmaxf(p->vmax[i], p->v[i]) : 0;
        const float root = sqrtf((p->amsgrad ? p->vmax[i] : p->v[i]) / c2);
        const float step = f32(p->lr) * (p->m[i] / c1);
        p->w[i] -= step / (root + f32(p->eps));
    }
}

static void move(tensor *p, const float *g)
{
    if (p->adam)
        adam(p, g);
    else
        sgd(p, g);
}

static const char *word(int yes)
{
    return yes ? "true" : "false";
}

/* A group of one parameter, as a recorder writes it. */
static void say_group(char *out, size_t size, const tensor *p, const char *more)
{
    const size_t n = strlen(out);
    if (p->adam)
        snprintf(out + n, size - n,
                 "%s{\"params\":[\"%s\"],\"optimizer\":\"%s\",\"class\":\"torch.optim.adam.Adam\","
                 "\"lr\":%.17g,\"beta1\":%.17g,\"beta2\":%.17g,\"eps\":%.17g,\"weight_decay\":%.17g,"
                 "\"amsgrad\":%s,\"maximize\":%s,\"steps\":%d%s}",
                 n > 1 ? "," : "", p->name, p->decoupled ? "adamw" : "adam", p->lr, p->beta1, p->beta2, p->eps,
                 p->decay, word(p->amsgrad), word(p->maximize), p->t, more);
    else
        snprintf(out + n, size - n,
                 "%s{\"params\":[\"%s\"],\"optimizer\":\"sgd\",\"lr\":%.17g,\"momentum\":%.17g,"
                 "\"dampening\":%.17g,\"weight_decay\":%.17g,\"nesterov\":%s,\"maximize\":%s,"
                 "\"steps\":[%d]%s}",
                 n > 1 ? "," : "", p->name, p->lr, p->momentum, p->dampening, p->decay, word(p->nesterov),
                 word(p->maximize), p->t, more);
}

static void say_groups(const tensor *list, size_t n, const char *more)
{
    char text[1024] = "[";
    for (size_t i = 0; i < n; i++)
        say_group(text, sizeof text, &list[i], more);
    snprintf(text + strlen(text), sizeof text - strlen(text), "]");
    made_set("mpsim.groups", text);
}

/* A gradient of its own for each tensor and step. */
static void gradient(float *g, size_t i, int step)
{
    for (int k = 0; k < 8; k++)
        g[k] = ramp_g[(size_t)k ^ (i & 3)] * (float)(step + 2) + (float)k * 0.01f;
}

/* A file of which nothing is known but what follows. */
static const char *begin(const char *folder, int step, int rank)
{
    const char *at = made_begin(folder, step, rank);
    made_set("mpsim.grad_clip", "0");
    return at;
}

/* Steps from `first` on, `lasts` of them, and the weights after the last one. Tensors with a bit in
 * `late` have no gradient in odd steps. */
static const char *record(const char *folder, tensor *list, size_t n, int first, int lasts, double lr_factor,
                          unsigned late)
{
    const char *at = NULL;
    for (int s = 1; s <= first + lasts; s++) {
        const int file = s >= first, train = s < first + lasts;
        if (file) {
            at = begin(folder, s, 0);
            say_groups(list, n, "");
        }
        for (size_t i = 0; i < n; i++) {
            float g[8];
            const int has = train && !((late >> i & 1) && (s & 1));
            gradient(g, i, s);
            if (file)
                put_all(&list[i], has ? g : NULL);
            if (has)
                move(&list[i], g);
            list[i].lr *= lr_factor;
        }
        if (file)
            made_end();
    }
    return at;
}

static tensor sgd_of(const char *name, double lr, double momentum, double dampening, double decay, int nesterov,
                     int maximize)
{
    tensor p = {.name = name,
                .lr = lr,
                .momentum = momentum,
                .dampening = dampening,
                .decay = decay,
                .nesterov = nesterov,
                .maximize = maximize};
    memcpy(p.w, ramp_w, sizeof p.w);
    return p;
}

static tensor adam_of(const char *name, double lr, double beta1, double beta2, double eps, double decay, int amsgrad,
                      int decoupled)
{
    tensor p = {.name = name,
                .lr = lr,
                .beta1 = beta1,
                .beta2 = beta2,
                .eps = eps,
                .decay = decay,
                .amsgrad = amsgrad,
                .decoupled = decoupled,
                .adam = 1};
    memcpy(p.w, ramp_w, sizeof p.w);
    return p;
}

/* All is equal, and nothing is lacking. */
static void all_equal(const run *r, uint64_t compared)
{
    const sums t = sum_run(r);
    ck_assert_uint_eq(t.compared, compared);
    ck_assert_msg(t.differ == 0, "%u of %u differ", (unsigned)t.differ, (unsigned)compared);
    for (int i = 0; i < REPLAY_NOTES; i++)
        if (i != NOTE_VARIANT)
            ck_assert_str_eq(r->step[0].notes->text[i], "");
}

/* ---- settings ---- */

CASE("groups", 60);

/* Momentum, dampening, Nesterov, decay and maximize, each in a group of its own; constant or by a
 * scheduler. */
TESTS(groups_of_sgd, 2)
{
    tensor list[] = {sgd_of("fc.weight", 0.1, 0.9, 0, 0, 1, 0), sgd_of("fc.bias", 0.05, 0.5, 0.25, 0, 0, 0),
                     sgd_of("head.weight", 0.2, 0, 0, 0.01, 0, 0), sgd_of("head.bias", 0.3, 0.8, 0, 0.02, 0, 1)};
    run r;
    const char *at = record(_i ? "sgd-lr" : "sgd", list, 4, 1, 4, _i ? 0.7 : 1, 0);
    replay_ok(&r, "precision: fp32\n", at);
    all_equal(&r, (4 + 3) * 4 * 8);
    const replay_step *s = &r.step[3];
    ck_assert_uint_eq(s->n_settings, 4);
    ck_assert_double_eq_tol(s->settings[2].optimizer.lr, _i ? 0.2 * 0.343 : 0.2, 1e-15);
    ck_assert_uint_eq(s->settings[3].parameters, 1);
    ck_assert_int_eq(s->settings[3].optimizer.maximize, 1);
    forget(&r);
}

/* Adam, AdamW and SGD in one run; betas and eps of their own. */
TEST(groups_of_several_optimizers)
{
    tensor list[] = {
        adam_of("fc.weight", 0.01, 0.9, 0.99, 1e-6, 0, 0, 0), adam_of("fc.bias", 0.02, 0.8, 0.95, 1e-3, 0.1, 0, 1),
        adam_of("head.weight", 0.02, 0.85, 0.9, 1e-8, 0.1, 0, 0), sgd_of("head.bias", 0.3, 0.8, 0, 0.02, 0, 0)};
    run r;
    const char *at = record("several", list, 4, 1, 4, 0.9, 0);
    replay_ok(&r, "precision: fp32\n", at);
    all_equal(&r, (4 + 4 + 3) * 4 * 8);
    forget(&r);
}

/* amsgrad, from the first step on, and from a later one with what is recorded of it. */
TESTS(amsgrad_goes_on_from_the_record, 2)
{
    tensor list[] = {adam_of("fc.weight", 0.01, 0.9, 0.8, 1e-6, 0, 1, 0),
                     adam_of("fc.bias", 0.02, 0.8, 0.7, 1e-4, 0.1, 1, 1)};
    run r;
    const char *at = record(_i ? "amsgrad-late" : "amsgrad", list, 2, _i ? 5 : 1, 4, 1, 0);
    replay_ok(&r, "precision: fp32\n", at);
    all_equal(&r, 2 * 4 * 4 * 8);
    forget(&r);
}

/* A parameter that has no gradient in some steps takes fewer: Adam's corrections are its own, SGD's
 * first step is its own, also where the record begins late. */
TESTS(steps_are_counted_by_parameter, 2)
{
    tensor list[] = {adam_of("fc.weight", 0.01, 0.9, 0.99, 1e-6, 0, 0, 0),
                     adam_of("fc.bias", 0.01, 0.9, 0.99, 1e-6, 0, 0, 0), sgd_of("head.weight", 0.1, 0.9, 0.5, 0, 0, 0),
                     sgd_of("head.bias", 0.1, 0.9, 0.5, 0, 0, 0)};
    run r;
    const char *at = record(_i ? "late" : "sometimes", list, 4, _i ? 4 : 1, 4, 1, 1 << 1 | 1 << 3);
    replay_ok(&r, "precision: fp32\n", at);
    ck_assert_uint_gt(sum_run(&r).compared, 200);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* ---- the policy's own settings ---- */

TEST(the_policy_wins_and_it_is_said)
{
    tensor list[] = {sgd_of("fc.weight", 0.1, 0.9, 0, 0, 0, 0), sgd_of("fc.bias", 0.05, 0.9, 0, 0.25, 0, 0)};
    run r;
    const char *at = record("wins", list, 2, 1, 3, 1, 0);
    replay_ok(&r, "precision: fp32\noptimizer: {name: trace, lr: 0.5}\n", at);
    const replay_step *s = &r.step[0];
    ck_assert_double_eq(s->settings[0].optimizer.lr, 0.5);
    ck_assert_double_eq(s->settings[1].optimizer.lr, 0.5);
    ck_assert_double_eq(s->settings[1].optimizer.weight_decay, 0.25);
    ck_assert_str_eq(s->notes->text[NOTE_POLICY], "lr 0.5 (recorded 0.1)");
    ck_assert_uint_gt(sum_run(&r).differ, 0);
    forget(&r);
    replay_ok(&r, "precision: fp32\noptimizer: adam\n", at);
    ck_assert_str_eq(r.step[0].notes->text[NOTE_POLICY], "optimizer adam (recorded sgd)");
    forget(&r);
}

/* ---- implementations ---- */

static const struct implementation {
    const char *impl, *capability, *device, *framework, *variant;
    int lacking;
} implementations[] = {
    {"forloop", "default", NULL, NULL, "torch-cpu-default", 0},
    {"forloop", "avx2", NULL, NULL, "torch-cpu", 0},
    {"foreach", "DEFAULT", NULL, NULL, "torch-cpu-foreach-default", 0},
    {"foreach", "avx512", NULL, NULL, "torch-cpu-foreach", 0},
    {"fused", "default", NULL, NULL, "torch-fused-cpu-default", 0},
    {"fused", "AVX512", "cpu", NULL, "torch-fused-cpu", 0},
    {"forloop", NULL, "cpu", NULL, "torch-cpu", 1},
    {"forloop", NULL, "cuda:0", NULL, "torch", 0},
    {"foreach", "avx2", "cuda", NULL, "torch-foreach", 0},
    {"fused", NULL, "cuda", "torch 2.15.0+cu132", "torch-fused-c", 0},
    {"fused", NULL, "cuda", "torch 2.6.0", "torch-fused-b", 0},
    {"forloop", NULL, NULL, NULL, "ieee", 1},
    {"unknown", "avx2", NULL, NULL, "ieee", 1},
    {NULL, "avx2", NULL, NULL, "ieee", 1},
};
enum { N_IMPLEMENTATIONS = sizeof implementations / sizeof *implementations };

TESTS(the_recorded_implementation, N_IMPLEMENTATIONS)
{
    const struct implementation *c = &implementations[_i];
    const tensor p = sgd_of("fc.weight", 0.1, 0.9, 0, 0, 0, 0);
    char more[64] = "", folder[32];
    run r;
    snprintf(folder, sizeof folder, "impl-%d", _i);
    const char *at = begin(folder, 1, 0);
    if (c->impl)
        snprintf(more, sizeof more, ",\"impl\":\"%s\"", c->impl);
    if (c->capability)
        made_set("mpsim.cpu_capability", c->capability);
    if (c->device)
        made_set("mpsim.device", c->device);
    if (c->framework)
        made_set("mpsim.framework", c->framework);
    say_groups(&p, 1, more);
    put_all(&p, ramp_g);
    made_end();
    replay_ok(&r, "precision: fp32\n", at);
    ck_assert_str_eq(r.step[0].optimizer->variant->name, c->variant);
    ck_assert_int_eq(r.step[0].notes->text[NOTE_VARIANT][0] != 0, c->lacking);
    forget(&r);
    replay_ok(&r, "precision: fp32\noptimizer: {name: trace, variant: apex}\n", at);
    ck_assert_str_eq(r.step[0].optimizer->variant->name, "apex");
    ck_assert_int_eq(r.step[0].notes->text[NOTE_POLICY][0] != 0, strcmp(c->variant, "ieee") != 0);
    forget(&r);
}

/* ---- what the record lacks ---- */

static const struct lacking {
    replay_note note;
    const char *unset, *key, *value, *says;
    int adam, state;
} lackings[] = {
    {NOTE_GROUPS, "mpsim.groups", NULL, NULL, "settings of the whole", 0, 1},
    {NOTE_UNGROUPED, NULL, "mpsim.groups", "[{\"params\":[],\"optimizer\":\"sgd\",\"lr\":1}]", "fc.weight", 0, 1},
    {NOTE_CLASS, NULL, "mpsim.groups",
     "[{\"params\":[\"fc.weight\"],\"optimizer\":\"sgd\",\"lr\":1,\"class\":\"mine.SGD\",\"steps\":4}]", "mine.SGD", 0,
     1},
    {NOTE_STEPS, NULL, "mpsim.groups", "[{\"params\":[\"fc.weight\"],\"optimizer\":\"adam\",\"lr\":1}]",
     "mpsim.optimizer_steps", 1, 1},
    {NOTE_STATE, NULL, NULL, NULL, "opt.m, opt.v", 1, 0},
    {NOTE_VMAX, NULL, "mpsim.groups",
     "[{\"params\":[\"fc.weight\"],\"optimizer\":\"adam\",\"lr\":1,\"amsgrad\":true,\"steps\":4}]",
     "opt.vmax of fc.weight at step 5", 1, 1},
    {NOTE_CLIP, "mpsim.grad_clip", NULL, NULL, "mpsim.grad_clip", 0, 1},
    {NOTE_NOT_RECORDED, NULL, "mpsim.not_recorded", "enc (Mamba): compiled", "Mamba", 0, 1},
};
enum { N_LACKINGS = sizeof lackings / sizeof *lackings };

TESTS(what_is_lacking_is_said, N_LACKINGS)
{
    const struct lacking *c = &lackings[_i];
    tensor p = c->adam ? adam_of("fc.weight", 0.01, 0.9, 0.99, 1e-6, 0, 0, 0)
                       : sgd_of("fc.weight", 0.1, 0.9, 0, 0, 0, 0);
    char folder[32];
    run r;
    p.t = 4;
    snprintf(folder, sizeof folder, "lack-%d", _i);
    const char *at = begin(folder, 5, 0);
    say_groups(&p, 1, "");
    if (c->unset)
        made_unset(c->unset);
    if (c->key)
        made_set(c->key, c->value);
    if (!c->state)
        p.t = 0;
    put_all(&p, ramp_g);
    made_end();
    replay_ok(&r, "precision: fp32\n", at);
    for (int i = 0; i < REPLAY_NOTES; i++)
        if (i == (int)c->note)
            ck_assert_msg(strstr(r.step[0].notes->text[i], c->says) != NULL, "%d: '%s'", i, r.step[0].notes->text[i]);
        else if (i != NOTE_VARIANT)
            ck_assert_str_eq(r.step[0].notes->text[i], "");
    forget(&r);
}

/* A parameter of no group is not updated, and its gradient skips no step. */
TEST(what_no_group_has_stays)
{
    tensor list[] = {sgd_of("fc.weight", 0.1, 0, 0, 0, 0, 0), sgd_of("odd.weight", 1, 0, 0, 0, 0, 0)};
    float bad[8];
    run r;
    const char *at = NULL;
    memcpy(bad, ramp_g, sizeof bad);
    bad[0] = INFINITY;
    for (int s = 1; s <= 2; s++) {
        at = begin("stays", s, 0);
        say_groups(list, 1, "");
        put_all(&list[0], ramp_g);
        put_all(&list[1], bad);
        made_end();
        sgd(&list[0], ramp_g);
    }
    replay_ok(&r, "precision: fp32\nloss_scaling: torch\n", at);
    ck_assert_uint_eq(r.step[0].events & MPSIM_SCALER_SKIP, 0);
    ck_assert_uint_eq(sum_run(&r).compared, 16);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}

/* ---- damage ---- */

static const struct damage {
    const char *key, *value, *says;
} damages[] = {
    {"mpsim.groups", "[", "mpsim.groups is not valid JSON"},
    {"mpsim.groups", "{}", "not a JSON array"},
    {"mpsim.groups", "[3]", "no list \"params\""},
    {"mpsim.groups", "[{\"params\":\"fc.weight\"}]", "no list \"params\""},
    {"mpsim.groups", "[{\"params\":[1]}]", "has no name"},
    {"mpsim.groups", "[{\"params\":[\"a\",\"a\"]}]", "a second time"},
    {"mpsim.groups", "[{\"params\":[\"a\"]},{\"params\":[\"a\"]}]", "a second time"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"steps\":-1}]", "not a number of steps"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"steps\":[\"x\"]}]", "not a number of steps"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"steps\":1.5}]", "not a number of steps"},
    {"mpsim.groups", "[{\"params\":[\"a\",\"b\"],\"steps\":[1]}]", "not a number of steps"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"steps\":[1,1]}]", "not a number of steps"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":\"0.1\"}]", "group 1: \"lr\" is not a number"},
    {"mpsim.groups", "[{\"params\":[]},{\"params\":[\"a\"],\"lr\":1,\"beta2\":[0.9]}]",
     "group 2: \"beta2\" is not a number"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"eps\":null}]", "\"eps\" is not a number"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"weight_decay\":true}]", "\"weight_decay\" is not a number"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"amsgrad\":1}]", "\"amsgrad\" is not true or false"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"nesterov\":\"true\"}]", "\"nesterov\" is not true or false"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"optimizer\":2}]", "\"optimizer\" is not a text"},
    {"mpsim.groups", "[{\"params\":[\"a\"],\"lr\":1,\"impl\":[]}]", "\"impl\" is not a text"},
    {"mpsim.lr", "fast", "mpsim.lr is not a number"},
    {"mpsim.momentum", "", "mpsim.momentum is not a number"},
    {"mpsim.beta1", "0.9,", "mpsim.beta1 is not a number"},
    {"mpsim.grad_clip", "one", "mpsim.grad_clip is not a number"},
    {"mpsim.grad_clip", "-1", "mpsim.grad_clip is not a number"},
    {"mpsim.grad_clip_value", "-0.5", "mpsim.grad_clip_value is not a number"},
    {"mpsim.grad_norm", "?", "mpsim.grad_norm is not a number"},
    {"mpsim.groups", "[{\"params\":[\"fc.weight\"],\"optimizer\":\"lamb\"}]", "'lamb'"},
    {"mpsim.groups", "[{\"params\":[\"fc.weight\"],\"optimizer\":\"sgd\"}]", "learning rate"},
    {"mpsim.groups", "[{\"params\":[\"fc.weight\"],\"optimizer\":\"sgd\",\"lr\":-1}]", "lr -1"},
    {"mpsim.tied", "[]", "mpsim.tied is not a JSON object"},
    {"mpsim.tied", "{\"a\":1}", "mpsim.tied is not a JSON object"},
    {"mpsim.accumulation", "0", "mpsim.accumulation"},
    {"mpsim.accumulation", "many", "mpsim.accumulation"},
};
enum { N_DAMAGES = sizeof damages / sizeof *damages };

TESTS(damaged_groups_are_refused, N_DAMAGES)
{
    const char *at = begin("damaged", 1, 0);
    made_set(damages[_i].key, damages[_i].value);
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    refused("precision: fp32\n", at, damages[_i].says);
}

/* Ranks of a step that do not agree. */
TEST(a_scale_that_is_0_in_binary32_is_refused)
{
    const char *at = begin("no-scale", 1, 0);
    made_set("mpsim.grads_scaled", "true");
    made_set("mpsim.loss_scale", "1e-300");
    made_put(W, &fp32, ramp_w, 2, 4);
    made_put(G, &fp32, ramp_g, 2, 4);
    made_end();
    refused("precision: fp32\n", at, "mpsim.loss_scale is missing or not above 0");
}

TEST(ranks_have_the_same_groups)
{
    const tensor p = sgd_of("fc.weight", 0.1, 0, 0, 0, 0, 0), q = sgd_of("fc.weight", 0.2, 0, 0, 0, 0, 0);
    const char *at = NULL;
    for (int k = 0; k < 2; k++) {
        at = begin("ranks", 1, k);
        made_set("mpsim.world", "2");
        say_groups(k ? &q : &p, 1, "");
        put_all(&p, ramp_g);
        made_end();
    }
    refused("precision: fp32\n", at, "must agree");
}

TEST_MAIN_BY(replay_test_main, "replay-groups");
