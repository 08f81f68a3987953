/* t-decoder.c -- transformers on the CPU engine, and the same steps computed again as nested loops
 * (oracle/decoder.h): every tensor, loss, scale and flag in every bit, under every bundled policy and option. */
#include "oracle/decoder.h"
#include "sim/train/policy.h"
#include "support/decoderscenarios.h"
#include "support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- its layers ---- */

static const train_layer *layer_at(const train_run *r, size_t i, const char *name, train_type type, uint32_t inputs,
                                   uint32_t outputs)
{
    const train_layer *l = &r->layers[i];
    ck_assert_uint_lt(i, r->n_layers);
    ck_assert_msg(strcmp(l->name, name) == 0, "layer %zu is %s, not %s", i, l->name, name);
    ck_assert_msg(l->type == type, "%s: type %d, not %d", name, l->type, (int)type);
    ck_assert_msg(!inputs || (l->inputs == inputs && l->outputs == outputs), "%s: %u to %u, not %u to %u", name,
                  l->inputs, l->outputs, inputs, outputs);
    return l;
}

static size_t check_block(const train_run *r, uint32_t k, size_t at)
{
    const train_settings *s = &r->settings;
    const train_decoder *d = &s->decoder;
    const uint32_t w = s->width, size = w / d->heads, qkv = (d->heads + 2 * d->kv_heads) * size;
    const uint32_t fc = d->hidden * (d->activation == MPSIM_SWIGLU ? 2 : 1);
    const struct {
        const char *name;
        train_type type;
        uint32_t inputs, outputs; /* inputs 0: not said */
    } rows[] = {{"ln1", TRAIN_NORM, w, w},
                {"attn.qkv", TRAIN_LINEAR, w, qkv},
                {"attn.heads", TRAIN_HEADS, qkv, size},
                {"attn.scores", TRAIN_SCORES, size, d->context},
                {"attn.softmax", TRAIN_SOFTMAX, 0, 0},
                {"attn.context", TRAIN_CONTEXT, d->context, w},
                {"attn.proj", TRAIN_LINEAR, w, w},
                {"add1", TRAIN_ADD, w, w},
                {"ln2", TRAIN_NORM, w, w},
                {"mlp.fc", TRAIN_LINEAR, w, fc},
                {"mlp.act", TRAIN_ACTIVATION, fc, d->hidden},
                {"mlp.proj", TRAIN_LINEAR, d->hidden, w},
                {"add2", TRAIN_ADD, w, w}};
    size_t begins = at;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, at++) {
        char name[TRAIN_NAME];
        (void)snprintf(name, sizeof name, "h%u.%s", k, rows[i].name);
        const train_layer *l = layer_at(r, at, name, rows[i].type, rows[i].inputs, rows[i].outputs);
        begins = l->type == TRAIN_NORM ? at : begins;
        ck_assert(l->type != TRAIN_ADD || l->from == begins);
        ck_assert(l->type != TRAIN_LINEAR || l->plain == !d->biases);
        ck_assert(l->type != TRAIN_NORM || l->plain == (!d->biases || d->norm == MPSIM_NORM_RMS));
    }
    return at;
}

/* As train.h names them. */
static void check_layers(const train_run *r)
{
    const train_settings *s = &r->settings;
    size_t at = 0;
    (void)layer_at(r, at++, "wte", TRAIN_EMBED, s->decoder.vocabulary, s->width);
    if (!s->decoder.rotary)
        (void)layer_at(r, at++, "wpe", TRAIN_POSITIONS, s->decoder.context, s->width);
    for (uint32_t k = 0; k < s->depth; k++)
        at = check_block(r, k, at);
    (void)layer_at(r, at++, "lnf", TRAIN_NORM, s->width, s->width);
    ck_assert(layer_at(r, at++, "head", TRAIN_LINEAR, s->width, s->decoder.vocabulary)->plain);
    (void)layer_at(r, at++, "loss", TRAIN_LOSS, 0, 0);
    ck_assert_uint_eq(r->n_layers, at);
}

/* ---- side by side ---- */

typedef struct both {
    const char *name;
    oracle_decoder *o;
    train *t;
    train_engine *e;
    uint64_t step;
    size_t tensors, values, nonzero, odd; /* of numbers: finite and not zero; infinite or NaN */
    char others[4000], seen[20000];       /* names the oracle has not; names that were compared */
} both;

static size_t all_tensors, all_values, all_runs;

static int noted(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if (at > list && at[-1] == ' ' && (at[n] == ' ' || at[n] == 0))
            return 1;
    return 0;
}

static void note(char *list, size_t size, const char *name)
{
    if (noted(list, name))
        return;
    ck_assert(strlen(list) + strlen(name) + 2 < size);
    strcat(list, " ");
    strcat(list, name);
}

static int compare(const train_item *x, void *context)
{
    both *b = context;
    oracle_tensor t;
    const unsigned long long step = b->step;
    if (!oracle_decoder_find(b->o, x->name, &t)) {
        note(b->others, sizeof b->others, x->name);
        return 0;
    }
    note(b->seen, sizeof b->seen, x->name);
    const size_t n = x->tensor->rows * x->tensor->cols;
    ck_assert_msg(x->tensor->rows == t.rows && x->tensor->cols == t.cols, "%s, step %llu, %s: %zu x %zu, not %zu x %zu",
                  b->name, step, x->name, x->tensor->rows, x->tensor->cols, t.rows, t.cols);
    ck_assert_msg(strcmp(x->tensor->format->name, t.format->name) == 0, "%s, step %llu, %s: %s, not %s", b->name, step,
                  x->name, x->tensor->format->name, t.format->name);
    ck_assert_msg(oracle_same(x->tensor->inverse, t.inverse), "%s, step %llu, %s: inverse %a, not %a", b->name, step,
                  x->name, (double)x->tensor->inverse, (double)t.inverse);
    float *v = malloc((n ? n : 1) * sizeof *v);
    ck_assert(v && b->e->ops->get(b->e, x->tensor, v) == 0);
    const size_t i = oracle_differs(v, t.values, n);
    ck_assert_msg(i == n, "%s, step %llu, %s: number %zu of %zu x %zu is %a, not %a", b->name, step, x->name, i, t.rows,
                  t.cols, (double)v[i], (double)t.values[i]);
    for (size_t k = 0; k < n; k++) {
        b->nonzero += (size_t)(isfinite(v[k]) && v[k] != 0);
        b->odd += (size_t)!isfinite(v[k]);
    }
    free(v);
    b->tensors++;
    b->values += n;
    return 0;
}

static int equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_report(const both *b, const train_step *a, const oracle_decoded *want)
{
    const struct {
        const char *what;
        double is, wanted;
    } numbers[] = {{"loss", (double)a->loss, (double)want->step.loss},
                   {"accuracy", a->accuracy, want->step.accuracy},
                   {"lr", a->lr, want->lr},
                   {"scale", a->scale, want->step.scale},
                   {"next scale", a->next_scale, want->step.next_scale},
                   {"skipped", a->skipped, want->step.skipped},
                   {"norm", a->norm, want->step.norm},
                   {"clipped", a->clipped, want->clipped}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ck_assert_msg(equal(numbers[i].is, numbers[i].wanted), "%s, step %llu: %s is %a, not %a", b->name,
                      (unsigned long long)b->step, numbers[i].what, numbers[i].is, numbers[i].wanted);
    ck_assert_msg(a->cause && want->cause ? strcmp(a->cause, want->cause) == 0 : a->cause == want->cause,
                  "%s, step %llu: cause %s, not %s", b->name, (unsigned long long)b->step, a->cause ? a->cause : "none",
                  want->cause ? want->cause : "none");
}

static void compare_evaluation(const both *b)
{
    char error[TRAIN_ERROR] = "";
    double loss, accuracy, want_loss, want_accuracy;
    ck_assert_msg(train_evaluate(b->t, &loss, &accuracy, error) == 0, "%s: %s", b->name, error);
    oracle_decoder_evaluate(b->o, &want_loss, &want_accuracy);
    ck_assert_msg(equal(loss, want_loss), "%s: validation loss %a, not %a", b->name, loss, want_loss);
    ck_assert_msg(accuracy == want_accuracy, "%s: validation accuracy %g, not %g", b->name, accuracy, want_accuracy);
}

/* Every tensor of the oracle was compared, and the trainer has no others. */
static void nothing_is_left_out(const both *b)
{
    char name[2 * TRAIN_NAME];
    for (size_t i = 0; oracle_decoder_name(b->o, i, name); i++)
        ck_assert_msg(noted(b->seen, name), "%s: no %s", b->name, name);
    ck_assert_msg(!*b->others, "%s: not in the oracle:%s", b->name, b->others);
    ck_assert_msg(3 * b->nonzero > b->values, "%s: %zu of %zu values are zero or not finite", b->name,
                  b->values - b->nonzero, b->values);
    printf("# %s: %zu tensors, %zu values, %zu not finite\n", b->name, b->tensors, b->values, b->odd);
}

static void side_by_side(const char *name, const train_run *run, uint64_t skips)
{
    train_engine engine;
    memset(&engine, 0, sizeof engine);
    ck_assert_int_eq(train_engine_cpu(&engine, NULL), 0);
    char error[TRAIN_ERROR] = "";
    both *b = calloc(1, sizeof *b);
    ck_assert_ptr_nonnull(b);
    b->name = name;
    b->e = &engine;
    b->t = train_open(run, &engine, 0, error);
    ck_assert_msg(b->t != NULL, "%s: %s", name, error);
    check_layers(run);
    b->o = oracle_decoder_open(run, run->text ? run->text : train_text_bundled());
    uint64_t skipped = 0;
    for (; b->step < run->settings.steps; b->step++) {
        train_step a;
        oracle_decoded want;
        ck_assert_msg(train_next(b->t, &a, error) == 0, "%s: %s", name, error);
        oracle_decoder_next(b->o, &want);
        (void)train_visit(b->t, compare, b);
        compare_report(b, &a, &want);
        skipped += want.step.skipped != 0;
    }
    ck_assert_msg(skipped >= skips, "%s: %llu skipped", name, (unsigned long long)skipped);
    compare_evaluation(b);
    nothing_is_left_out(b);
    all_tensors += b->tensors;
    all_values += b->values;
    all_runs++;
    oracle_decoder_close(b->o);
    train_close(b->t);
    train_engine_close(&engine);
    free(b);
}

static void report(void)
{
    printf("# %zu runs: %zu tensors, %zu values\n", all_runs, all_tensors, all_values);
    all_runs = all_tensors = all_values = 0; /* the next test may be of the same process (CK_FORK=no) */
}

/* ---- every policy ---- */

/* Those with optimizers that the oracle has not: replays judge them (tests/cli/optimizers.sh). */
static const char *const other_judges[] = {
    "coat-fp8-states", "fp8-lm", "lion", "muon-bf16", "torchao-adamw4bit", "torchao-adamw8bit", "torchao-adamwfp8"};

static int has_other_judge(const char *name)
{
    for (size_t i = 0; i < sizeof other_judges / sizeof *other_judges; i++)
        if (strcmp(name, other_judges[i]) == 0)
            return 1;
    return 0;
}

static const char *folder_of_policies(void)
{
    static char folder[2048];
    const char *source = getenv("MPSIM_SRCDIR");
    (void)snprintf(folder, sizeof folder, "%s/data/policies", source ? source : ".");
    return folder;
}

/* policy_name: bundled, or a path. */
static void run_of(train_run *r, const char *policy_name, const train_settings *s, const train_text *x)
{
    policy p;
    trace_error why = {0};
    char error[TRAIN_ERROR] = "", path[4096];
    memset(&p, 0, sizeof p);
    (void)snprintf(path, sizeof path, *policy_name == '/' ? "%.0s%s" : "%s/%s.yaml", folder_of_policies(), policy_name);
    ck_assert_msg(policy_load(&p, path, 1, &why) == 0, "%s: %s", policy_name, why.text);
    const int there = train_run_of_policy(r, &p, s, NULL, error) == 0;
    policy_clear(&p);
    ck_assert_msg(there, "%s: %s", policy_name, error);
    r->text = x;
}

static int is_policy(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    return n > 5 && strcmp(e->d_name + n - 5, ".yaml") == 0;
}

CASE("steps", 120);

TESTS(every_policy, 3)
{
    struct dirent **found;
    const train_text x = text_new(1);
    const int n = scandir(folder_of_policies(), &found, is_policy, alphasort);
    size_t wanted = 0;
    ck_assert_int_gt(n, 40);
    for (int i = 0; i < n; i++) {
        train_run run;
        train_settings s;
        char name[300];
        found[i]->d_name[strlen(found[i]->d_name) - 5] = 0;
        /* half of the policies with each net in its turn */
        if (!test_in_part((uint64_t)(i + 2 * _i), 6)) {
            free(found[i]);
            continue;
        }
        wanted += !has_other_judge(found[i]->d_name);
        settle(&s, nets[_i % 2], &x);
        if (_i == 2) { /* and once in tiles */
            s.steps = 2;
            s.decoder.heads = 4;
            s.decoder.tile = 3;
        }
        (void)snprintf(name, sizeof name, "%s%s, %s", nets[_i % 2], _i == 2 ? " in tiles" : "", found[i]->d_name);
        if (!has_other_judge(found[i]->d_name)) {
            run_of(&run, found[i]->d_name, &s, &x);
            for (size_t k = 0; k < run.n_plans; k++) { /* of a schedule; what begins at 2^32 skips more steps */
                run.plans[k].from = k;
                run.plans[k].scaler.init = fmin(run.plans[k].scaler.init, 65536);
            }
            run.settings.steps += run.n_plans - 1;
            side_by_side(name, &run, 0);
            train_run_clear(&run);
        }
        free(found[i]);
    }
    free(found);
    ck_assert_uint_eq(all_runs, wanted);
    report();
}

/* ---- options ---- */

TEST(every_option)
{
    const train_text texts[] = {text_new(0), text_new(1)};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const option_scenario *o = &options[i];
        if (!test_in_part(i, 3))
            continue;
        train_run run;
        train_settings s;
        settle(&s, o->net, &texts[i % 2]);
        if (o->set)
            o->set(&s);
        run_of(&run, o->policy, &s, &texts[i % 2]);
        if (o->place)
            o->place(&run);
        side_by_side(o->name, &run, o->skips);
        train_run_clear(&run);
    }
    report();
}

/* By the policy's own key. */
TEST(fp8_attention_by_key)
{
    static const char *const recipes[] = {"delayed", "current"};
    char path[] = "/tmp/mpsim-t-decoder-XXXXXX", name[100];
    const train_text x = text_new(1);
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 4; i++) {
        train_run run;
        train_settings s;
        FILE *f = fopen(path, "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_int_gt(
            fprintf(f, "precision: fp8\nfp8: hybrid\nfp8_recipe: %s\nfp8_attention: true\n", recipes[i / 2]), 0);
        ck_assert_int_eq(fclose(f), 0);
        settle(&s, nets[i % 2], &x);
        s.decoder.tile = (uint32_t)i % 3;
        run_of(&run, path, &s, &x);
        size_t placed_so = 0;
        for (size_t k = 0; k < run.n_layers; k++)
            placed_so += (size_t)(run.layers[k].type == TRAIN_SCORES && run.plans[0].layers[k].recipe[TRAIN_ACT]);
        ck_assert_uint_eq(placed_so, s.depth);
        (void)snprintf(name, sizeof name, "fp8_attention, %s, %s, tile %d", recipes[i / 2], nets[i % 2], i % 3);
        side_by_side(name, &run, 0);
        train_run_clear(&run);
    }
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(unlink(path), 0);
}

/* One plan after the other: numbers are rounded to the new formats; scalers and FP8 scales begin anew where they
 * changed. */
TESTS(plans_one_after_the_other, 2)
{
    static const char *const names[] = {"fp32",
                                        "pytorch-amp-fp16",
                                        "nemo-fp8-hybrid-max",
                                        "nemo-fp8-hybrid-max",
                                        "bf16-pure",
                                        "te-nvfp4",
                                        "deepseek-v3-fp8",
                                        "apex-O2",
                                        "bf16-kahan",
                                        "fp32"};
    enum { PLANS = sizeof names / sizeof *names };
    if (!test_in_part((uint64_t)_i, 1))
        return;
    const train_text x = text_new(1);
    train_run run, other;
    train_settings s;
    settle(&s, nets[_i], &x);
    s.steps = 2 * PLANS;
    s.decoder.tile = _i ? 3 : 0;
    run_of(&run, names[0], &s, &x);
    for (size_t i = 1; i < PLANS; i++) {
        run_of(&other, names[i], &s, &x);
        run.plans[i] = other.plans[0];
        run.plans[i].from = 2 * i;
        train_run_clear(&other);
    }
    run.n_plans = PLANS;
    side_by_side("plans", &run, 0);
    train_run_clear(&run);
}

/* The bundled text, bytes of one. */
TEST(bundled_text)
{
    train_run run;
    train_settings s;
    const train_text *x = train_text_bundled();
    settle(&s, "gpt", x);
    s.decoder.vocabulary = x->vocabulary;
    s.depth = 1;
    run_of(&run, "pytorch-amp-bf16", &s, NULL);
    side_by_side("bundled text", &run, 0);
    train_run_clear(&run);
    report();
}

TEST_MAIN("train-decoder");
