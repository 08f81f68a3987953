/* t-policy-reader.c -- policies through libmpsim-trace (mpsim/policy.h): plans and places are those of the program, of every bundled policy;
 * errors; text in memory; and every allocation failing in turn. */
#include "support/allocations.h"
#include "sim/policy/policy.h"
#include "support/badfile.h"
#include "support/support.h"

#include <mpsim/policy.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCH = 10, LAYERS = 6 };

static const mpsim_layer_place layers[LAYERS] = {{"h.0.mlp.fc", -1, 2, 1, 1, 0},
                                                 {"h.3.attn.qkv", MPSIM_LAYER_LINEAR, 2, 1, 1, 0},
                                                 {"ln", -1, 1, 1, 0, 0},
                                                 {"conv", MPSIM_LAYER_CONV, 4, 1, 1, 0},
                                                 {"wte", -1, MPSIM_RANK_TABLE, 1, 0, 0},
                                                 {"h.1.scores", MPSIM_LAYER_LINEAR, MPSIM_RANK_NONE, 0, 1, 1}};

static void check_place(const mpsim_policy *p, const policy *q, size_t i, const mpsim_layer_place *l)
{
    const policy_depth depth = {1, 0, 3};
    mpsim_depth own = {0, 0, 0};
    train_placement want;
    mpsim_placement to;
    const plan_layer asked = {l->name, l->kind, l->rank, l->weighs, l->multiplies, l->attends};
    mpsim_depth_add(&own, "h.3.x");
    mpsim_depth_add(&own, "h.0.x");
    policy_plan_place_layer(&q->plans[i], &depth, &asked, &want);
    ck_assert_int_eq(mpsim_policy_place(p, i, l, &own, &to), MPSIM_OK);
    ck_assert_mem_eq(&to, &want, sizeof to);
    ck_assert_int_eq((int)mpsim_policy_kind(p, i, l->name, l->rank), (int)policy_layer(&q->plans[i], l->name, l->rank));
}

static void check_plan(const mpsim_policy *p, const policy *q, size_t i)
{
    const plan *of = &q->plans[i];
    char line[1024], want[1024];
    mpsim_plan to;
    ck_assert_int_eq(mpsim_policy_plan(p, i, &to), MPSIM_OK);
    ck_assert_int_eq(mpsim_policy_describe(p, i, line, sizeof line), MPSIM_OK);
    ck_assert_str_eq(line, policy_plan_describe(of, want, sizeof want));
    ck_assert_str_eq(to.precision, of->precision);
    ck_assert_str_eq(to.autocast, of->autocast->name);
    ck_assert(mpsim_format_same(&to.compute, &of->compute) && mpsim_format_same(&to.params, &of->params));
    ck_assert(to.clip == (int)of->clip && to.master == (int)of->master && to.from == of->from);
    ck_assert_str_eq(to.scaler.name, of->scaler.name);
    for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
        ck_assert_ptr_eq(mpsim_policy_variant(p, i, a), policy_variant(&of->optimizer, a));
    ck_assert_ptr_null(mpsim_policy_variant(p, i, -1));
    for (int k = 0; k < LAYERS; k++)
        check_place(p, q, i, &layers[k]);
}

static void check_bundled(const char *name, const char *folder)
{
    trace_error e = {0};
    char why[1024] = "";
    mpsim_policy *p;
    policy q;
    ck_assert_int_eq(policy_load(&q, name, EPOCH, &e), 0);
    ck_assert_msg(mpsim_policy_open(&p, name, folder, EPOCH, why, sizeof why) == MPSIM_OK, "%s", why);
    ck_assert_str_eq(mpsim_policy_say(p, MPSIM_POLICY_NAME), q.name);
    ck_assert_uint_eq(mpsim_policy_plans(p), q.count);
    ck_assert_uint_eq(mpsim_policy_plan_at(p, 25), (size_t)(policy_plan(&q, 25) - q.plans));
    for (size_t i = 0; i < q.count; i++)
        check_plan(p, &q, i);
    mpsim_policy_free(p);
    policy_clear(&q);
}

START_TEST(bundled_policies_are_the_programs)
{
    const char *folder = test_source_path("data/policies");
    struct dirent **list;
    int seen = 0;
    const int n = scandir(folder, &list, NULL, alphasort);
    ck_assert_int_gt(n, 0);
    setenv("MPSIM_POLICIES", folder, 1);
    for (int i = 0; i < n; i++) {
        char *dot = strstr(list[i]->d_name, ".yaml");
        if (dot) {
            *dot = '\0';
            check_bundled(list[i]->d_name, seen % 2 ? folder : NULL);
            seen++;
        }
        free(list[i]);
    }
    free(list);
    ck_assert_int_gt(seen, 50);
}

/* ---- text in memory, and errors ---- */

static mpsim_status read_text(mpsim_policy **p, const char *text, char *why, size_t size)
{
    return mpsim_policy_read(p, "mine", text, strlen(text), 0, why, size);
}

START_TEST(text_is_read_and_errors_are_one_line)
{
    char why[200];
    mpsim_policy *p;
    mpsim_plan of;
    ck_assert_int_eq(read_text(&p, "{\"precision\": \"fp16\", \"clip\": 0.5, \"note\": \"a run\"}", why, sizeof why),
                     MPSIM_OK);
    ck_assert_int_eq(mpsim_policy_plan(p, 0, &of), MPSIM_OK);
    ck_assert(of.clip == MPSIM_CLIP_TORCH && of.max_norm == 0.5 && isnan(of.optimizer.number[MPSIM_OPTIM_LR]));
    ck_assert_str_eq(mpsim_policy_say(p, MPSIM_POLICY_NOTE), "a run");
    ck_assert_str_eq(mpsim_policy_say(p, MPSIM_POLICY_NAME), "mine");
    ck_assert_ptr_null(mpsim_policy_say(p, MPSIM_POLICY_REMARKS));
    ck_assert_int_eq(mpsim_policy_plan(p, 1, &of), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_policy_describe(p, 1, why, sizeof why), MPSIM_EINVAL);
    mpsim_layer_place bad = layers[0];
    mpsim_placement to;
    bad.kind = MPSIM_LAYER_KINDS;
    ck_assert_int_eq(mpsim_policy_place(p, 0, &bad, NULL, &to), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_policy_place(p, 1, &layers[0], NULL, &to), MPSIM_EINVAL);
    ck_assert_str_eq(mpsim_layer_kind_name(MPSIM_LAYER_NORM), "norm");
    ck_assert_ptr_null(mpsim_layer_kind_name(MPSIM_LAYER_KINDS));
    mpsim_policy_free(p);
    ck_assert_int_eq(read_text(&p, "precision: fp61", why, sizeof why), MPSIM_EDATA);
    ck_assert_ptr_null(p);
    ck_assert_msg(strstr(why, "mine: line 1: precision"), "%s", why);
    ck_assert_int_eq(read_text(&p, "", why, sizeof why), MPSIM_EDATA);
    ck_assert_int_eq(mpsim_policy_open(&p, "no-such-policy", "/nowhere", 0, why, sizeof why), MPSIM_EIO);
    ck_assert_msg(strstr(why, "no bundled policy of that name in /nowhere"), "%s", why);
    ck_assert_int_eq(mpsim_policy_open(&p, "no-such-policy", "/nowhere", 0, NULL, 0), MPSIM_EIO);
    mpsim_policy_free(NULL);
}

/* ---- allocations ---- */

#ifdef CAN_FAIL
static const char *const texts[] = {
    "precision: fp16\nkeep_fp32: [head, '*.norm']\nlayer_kinds: {a: norm}\ngrad_scaler_init_scale: 4\nname: x\nnote: y\n"
    "schedule:\n- step: 5\n  precision: bf16\n- {step: 9, precision: fp32}\n",
    "a: &a {precision: bf16}\npolicy:\n  <<: *a\n  model_name: q\n  other: [1, 2]\n  max_grad_norm: 1\n  megatron_cfg: {enabled: true, optimizer: "
    "{optimizer: adam, lr: 1e-3, clip_grad: 1}}\nlogger: {}\ndefaults: x.yaml\n",
    "precision: bf16\npolicy: [",
    "opt_level: O2\nprecision: fp16\noptimizer: {name: adamw, betas: [0.9, 0.95], muon: {lr: 0.01}}\n"};

static int fail_at(const char *text, long n, mpsim_status want)
{
    char why[256] = "";
    mpsim_policy *p;
    const long before = live;
    failed = 0;
    until = n;
    const mpsim_status s = read_text(&p, text, why, sizeof why);
    until = 0;
    mpsim_policy_free(p);
    ck_assert_msg(live == before, "allocation %ld: %ld are not freed", n, live - before);
    ck_assert_msg(s == want || (failed && s == MPSIM_ENOMEM && strcmp(why, "out of memory") == 0),
                  "allocation %ld: status %d, %s", n, (int)s, why);
    return failed;
}

START_TEST(each_allocation_that_fails_is_said)
{
    char why[256];
    mpsim_policy *p;
    const mpsim_status want = read_text(&p, texts[_i], why, sizeof why);
    mpsim_policy_free(p);
    long n = 1;
    while (fail_at(texts[_i], n, want))
        n++;
    ck_assert_int_gt(n, 20);
}
#endif

int main(void)
{
    TCase *t = test_case("policy reader", 60);
    tcase_add_test(t, bundled_policies_are_the_programs);
    tcase_add_test(t, text_is_read_and_errors_are_one_line);
#ifdef CAN_FAIL
    if (!test_under_valgrind())
        tcase_add_loop_test(t, each_allocation_that_fails_is_said, 0, (int)(sizeof texts / sizeof *texts));
#endif
    TCase *const cases[] = {t, NULL};
    return bad_main("policy-reader", cases);
}
