/* t-decoder.c -- transformers on the CPU engine, and the same steps computed again as nested loops
 * (oracle/decoder.h): every tensor, loss, scale and flag in every bit, under every bundled policy and option. */
#include "oracle/decoder.h"
#include "sim/train/policy.h"
#include "support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is trained ---- */

enum { TRAINED = 600, HELD = 75, VOCABULARY = 32, PLACES = 8, SEQUENCES = 2, STEPS = 3 };

static uint32_t tokens[TRAINED + HELD];
static uint16_t narrow_tokens[TRAINED + HELD];

/* Words that follow each other, and noise; tokens of 2 or 4 bytes. */
static train_text text_new(int narrow)
{
    uint8_t codes[4 * (TRAINED + HELD)];
    uint32_t state = 12345;
    for (size_t i = 0; i < TRAINED + HELD; i++) {
        state = state * 1664525 + 1013904223;
        const uint32_t next = state >> 30 ? (i ? tokens[i - 1] * 5 + 3 : 7) : state >> 20;
        tokens[i] = next % VOCABULARY;
        narrow_tokens[i] = (uint16_t)tokens[i];
        const uint8_t own[4] = {(uint8_t)tokens[i], 0, 0, 0};
        memcpy(codes + 4 * i, own, sizeof own);
    }
    return (train_text){.name = "tiny", .tokens = narrow ? (const void *)narrow_tokens : tokens,
                        .bytes = narrow ? 2 : 4, .trained = TRAINED, .held = HELD, .vocabulary = VOCABULARY,
                        .digest = mpsim_digest_bytes(codes, sizeof codes, 0)};
}

static void settle(train_settings *s, const char *net, const train_text *x)
{
    train_settings_init(s, net);
    s->depth = 2;
    s->width = 16;
    s->batch = SEQUENCES;
    s->steps = STEPS;
    s->seed = 11;
    s->gain = 6; /* at this width, so that tokens tell layers something */
    s->decoder.heads = s->decoder.kv_heads = 2;
    s->decoder.hidden = strcmp(net, "gpt") == 0 ? 64 : 40;
    s->decoder.context = PLACES;
    s->decoder.vocabulary = x->vocabulary;
    s->decoder.warmup = 1;
    s->decoder.validation = 5;
    (void)snprintf(s->decoder.text, sizeof s->decoder.text, "%s", x->name);
    s->decoder.text_digest = x->digest;
}

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
    } rows[] = {{"ln1", TRAIN_NORM, w, w},           {"attn.qkv", TRAIN_LINEAR, w, qkv},
                {"attn.heads", TRAIN_HEADS, qkv, size}, {"attn.scores", TRAIN_SCORES, size, d->context},
                {"attn.softmax", TRAIN_SOFTMAX, 0, 0}, {"attn.context", TRAIN_CONTEXT, d->context, w},
                {"attn.proj", TRAIN_LINEAR, w, w},    {"add1", TRAIN_ADD, w, w},
                {"ln2", TRAIN_NORM, w, w},            {"mlp.fc", TRAIN_LINEAR, w, fc},
                {"mlp.act", TRAIN_ACTIVATION, fc, d->hidden}, {"mlp.proj", TRAIN_LINEAR, d->hidden, w},
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
    char others[4000], seen[20000]; /* names the oracle has not; names that were compared */
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
    ck_assert_msg(x->tensor->rows == t.rows && x->tensor->cols == t.cols,
                  "%s, step %llu, %s: %zu x %zu, not %zu x %zu", b->name, step, x->name, x->tensor->rows,
                  x->tensor->cols, t.rows, t.cols);
    ck_assert_msg(strcmp(x->tensor->format->name, t.format->name) == 0, "%s, step %llu, %s: %s, not %s", b->name,
                  step, x->name, x->tensor->format->name, t.format->name);
    ck_assert_msg(oracle_same(x->tensor->inverse, t.inverse), "%s, step %llu, %s: inverse %a, not %a", b->name,
                  step, x->name, (double)x->tensor->inverse, (double)t.inverse);
    float *v = malloc((n ? n : 1) * sizeof *v);
    ck_assert(v && b->e->ops->get(b->e, x->tensor, v) == 0);
    const size_t i = oracle_differs(v, t.values, n);
    ck_assert_msg(i == n, "%s, step %llu, %s: number %zu of %zu x %zu is %a, not %a", b->name, step, x->name, i,
                  t.rows, t.cols, (double)v[i], (double)t.values[i]);
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
                  "%s, step %llu: cause %s, not %s", b->name, (unsigned long long)b->step,
                  a->cause ? a->cause : "none", want->cause ? want->cause : "none");
}

static void compare_evaluation(const both *b)
{
    char error[TRAIN_ERROR] = "";
    double loss, accuracy, want_loss, want_accuracy;
    ck_assert_msg(train_evaluate(b->t, &loss, &accuracy, error) == 0, "%s: %s", b->name, error);
    oracle_decoder_evaluate(b->o, &want_loss, &want_accuracy);
    ck_assert_msg(equal(loss, want_loss), "%s: validation loss %a, not %a", b->name, loss, want_loss);
    ck_assert_msg(accuracy == want_accuracy, "%s: validation accuracy %g, not %g", b->name, accuracy,
                  want_accuracy);
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
}

/* ---- every policy ---- */

static const char *const nets[] = {"gpt", "llama"};

/* Those with optimizers that only a replay has. */
static const char *const for_replays[] = {"coat-fp8-states",  "fp8-lm",           "muon-bf16",
                                          "torchao-adamw4bit", "torchao-adamw8bit", "torchao-adamwfp8"};

static int is_for_replays(const char *name)
{
    for (size_t i = 0; i < sizeof for_replays / sizeof *for_replays; i++)
        if (strcmp(name, for_replays[i]) == 0)
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

static int run_of(train_run *r, const char *policy_name, const train_settings *s, const train_text *x)
{
    policy p;
    trace_error why = {0};
    char error[TRAIN_ERROR] = "", path[4096];
    memset(&p, 0, sizeof p);
    (void)snprintf(path, sizeof path, "%s/%s.yaml", folder_of_policies(), policy_name);
    ck_assert_msg(policy_load(&p, path, 1, &why) == 0, "%s: %s", policy_name, why.text);
    const int there = train_run_of_policy(r, &p, s, NULL, error) == 0;
    policy_clear(&p);
    ck_assert_msg(there || is_for_replays(policy_name), "%s: %s", policy_name, error);
    r->text = x;
    return there;
}

static int is_policy(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    return n > 5 && strcmp(e->d_name + n - 5, ".yaml") == 0;
}

START_TEST(every_policy)
{
    struct dirent **found;
    const train_text x = text_new(1);
    const int n = scandir(folder_of_policies(), &found, is_policy, alphasort);
    ck_assert_int_gt(n, 40);
    for (int i = 0; i < n; i++) {
        train_run run;
        train_settings s;
        char name[300];
        found[i]->d_name[strlen(found[i]->d_name) - 5] = 0;
        settle(&s, nets[_i], &x);
        (void)snprintf(name, sizeof name, "%s, %s", nets[_i], found[i]->d_name);
        if (run_of(&run, found[i]->d_name, &s, &x)) {
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
    ck_assert_uint_eq(all_runs, (size_t)n - sizeof for_replays / sizeof *for_replays);
    report();
}
END_TEST

/* ---- options ---- */

typedef struct option_scenario {
    const char *name, *net, *policy;
    void (*set)(train_settings *s);
    void (*place)(train_run *r);
    uint64_t skips;
} option_scenario;

#define WORD(to, word) (void)snprintf(to, sizeof(to), "%s", word)

static void tiles(train_settings *s) { s->decoder.tile = 3; }
static void one_tile(train_settings *s) { s->decoder.tile = 64; }
static void grouped(train_settings *s) { s->decoder.heads = 4, s->decoder.kv_heads = 2; }
static void one_key(train_settings *s) { s->decoder.heads = 4, s->decoder.kv_heads = 1; }

static void grouped_tiles(train_settings *s)
{
    one_key(s);
    s->decoder.tile = 5;
}

static void exact_gelu(train_settings *s) { s->decoder.activation = MPSIM_GELU; }

static void swapped(train_settings *s) /* of gpt what llama has, and the other way */
{
    const int gpt = strcmp(s->net, "gpt") == 0;
    s->decoder.norm = (uint8_t)(gpt ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER);
    s->decoder.activation = (uint8_t)(gpt ? MPSIM_SWIGLU : MPSIM_GELU_TANH);
    s->decoder.rotary = gpt != 0;
    s->decoder.biases = !gpt;
    s->decoder.tied = !gpt;
}

static void gathered(train_settings *s)
{
    s->decoder.accumulate = 2;
    WORD(s->decoder.accumulate_format, "bf16");
}

static void gathered_tiles(train_settings *s)
{
    gathered(s);
    grouped_tiles(s);
    s->decoder.ranks = 2;
    WORD(s->decoder.sum, "fp16");
}

static void ring(train_settings *s)
{
    s->decoder.ranks = 3;
    s->decoder.reduce = MPSIM_REDUCE_RING;
    WORD(s->decoder.wire, "bf16");
    WORD(s->decoder.sum, "bf16");
}

static void tree(train_settings *s)
{
    gathered(s);
    s->decoder.ranks = 5;
    s->decoder.reduce = MPSIM_REDUCE_TREE;
    WORD(s->decoder.wire, "fp16");
    s->loss_factor = 0.7;
}

static void sequential(train_settings *s)
{
    s->decoder.accumulate = 3;
    s->decoder.ranks = 2;
    s->decoder.reduce = MPSIM_REDUCE_SEQUENTIAL;
    WORD(s->decoder.sum, "bf16");
}

static void math_fp16(train_settings *s)
{
    WORD(s->decoder.math_norm, "fp16");
    WORD(s->decoder.math_softmax, "bf16");
}

static void math_bf16(train_settings *s) { WORD(s->math, "bf16"); }

static void math_all(train_settings *s)
{
    WORD(s->math, "fp16");
    WORD(s->decoder.math_norm, "binary32");
    s->decoder.activation = MPSIM_GELU;
}

static void tf32(train_settings *s) { s->tf32 = 1; }

static void tf32_tiles(train_settings *s)
{
    s->tf32 = 1;
    s->decoder.tile = 3;
}

static void ampere(train_settings *s) { WORD(s->arch, "ampere"); }
static void ada(train_settings *s) { WORD(s->arch, "ada"); }
static void odd(train_settings *s)
{
    s->seed = UINT64_C(0x123456789abcdef0);
    s->gain = 2.1;
    s->loss_factor = 0.3;
    s->batch = 3;
    s->depth = 1;
    s->decoder.context = 11;
    s->decoder.validation = 100;
}

static void odd_tiles(train_settings *s)
{
    odd(s);
    s->decoder.tile = 4;
    s->decoder.validation = 1;
}

static void volta(train_settings *s) { WORD(s->arch, "volta"); }
static void blackwell(train_settings *s) { WORD(s->arch, "blackwell"); }
static void chains(train_settings *s) { WORD(s->arch, "fp32-sequential"); }

static void cooled(train_settings *s)
{
    s->steps = 6;
    s->decoder.warmup = 2;
    s->decoder.cooldown = 2;
    s->decoder.decay = TRAIN_LINEAR_DECAY;
    s->decoder.min_lr = 0.2;
    s->decoder.decay_all = 1;
}

static void cosine(train_settings *s)
{
    s->steps = 5;
    s->decoder.warmup = 0;
    s->decoder.decay = TRAIN_COSINE;
    s->decoder.min_lr = 0.3;
    s->decoder.cooldown = 1;
}

static void constant(train_settings *s) { s->decoder.decay = TRAIN_CONSTANT; }

static void placed(train_run *r, const char *act, const char *weight, const char *agrad, int delayed)
{
    for (size_t k = 0; k < r->n_plans; k++) {
        for (size_t i = 0; i < r->n_layers; i++) {
            train_placement *p = &r->plans[k].layers[i];
            if (r->layers[i].type != TRAIN_SCORES && r->layers[i].type != TRAIN_CONTEXT)
                continue;
            p->recipe[TRAIN_ACT] = mpsim_block_find(act);
            p->recipe[TRAIN_WEIGHT] = mpsim_block_find(weight);
            p->recipe[TRAIN_AGRAD] = mpsim_block_find(agrad);
        }
        if (delayed)
            r->plans[k].delayed = 1;
    }
}

static void fp8_attention(train_run *r)
{
    placed(r, "te-current", "te-current", "te-current-e5m2", 1);
}

static void fp8_attention_now(train_run *r)
{
    placed(r, "te-current", "te-current", "te-current", 0);
}

static void e5m2_attention(train_run *r)
{
    placed(r, "te-current-e5m2", "te-current", "te-current-e5m2", 0);
}

/* Every layer's own formats, none alike where that is possible. */
static void mixed(train_run *r)
{
    static const char *const names[] = {"binary32", "bf16", "fp16"};
    for (size_t i = 0; i < r->n_layers; i++)
        for (int role = 0; role < TRAIN_ROLES; role++) {
            const train_type type = (train_type)r->layers[i].type;
            const int product = type == TRAIN_LINEAR || type == TRAIN_SCORES || type == TRAIN_CONTEXT;
            const int operand = role == TRAIN_ACT || role == TRAIN_WEIGHT || role == TRAIN_AGRAD;
            r->plans[0].layers[i].format[role] =
                *mpsim_format_find(names[(product && operand ? i : i + (size_t)role) % 3]);
        }
}

static void sgd(train_run *r)
{
    mpsim_optim_init(&r->plans[0].optimizer, MPSIM_OPTIM_SGD, mpsim_optim_variant_find("ieee"));
    r->plans[0].optimizer.lr = 0.1;
    r->plans[0].optimizer.momentum = 0.9;
    r->plans[0].optimizer.weight_decay = 1e-3;
    r->plans[0].clip = MPSIM_CLIP_NONE;
}

static void overflowing(train_run *r)
{
    r->plans[0].optimizer.variant = mpsim_optim_variant_find("ieee");
    r->plans[0].optimizer.algorithm = MPSIM_OPTIM_ADAM;
    ck_assert_int_eq(mpsim_scaler_parse(&r->plans[0].scaler, "torch:init=2^30,window=2"), MPSIM_OK);
}

static void clipped(train_run *r)
{
    r->plans[0].clip = MPSIM_CLIP_FAIRSEQ;
    r->plans[0].max_norm = 0.05;
}

static const option_scenario options[] = {
    {"tiles", "gpt", "fp32", tiles, NULL, 0},
    {"tiles, bf16", "llama", "pytorch-amp-bf16", tiles, NULL, 0},
    {"one tile, fp16", "gpt", "pytorch-amp-fp16", one_tile, NULL, 0},
    {"grouped queries", "llama", "pytorch-amp-bf16", grouped, NULL, 0},
    {"one head of keys", "gpt", "fp32", one_key, NULL, 0},
    {"one head of keys, tiles", "llama", "bf16-pure", grouped_tiles, NULL, 0},
    {"exact GELU", "gpt", "fp32", exact_gelu, NULL, 0},
    {"gpt with llama's parts", "gpt", "pytorch-amp-bf16", swapped, NULL, 0},
    {"llama with gpt's parts", "llama", "fp32", swapped, NULL, 0},
    {"accumulated in bf16", "gpt", "pytorch-amp-bf16", gathered, NULL, 0},
    {"a ring of 3 in bf16", "llama", "megatron-bf16", ring, NULL, 0},
    {"a tree of 5, accumulated", "gpt", "pytorch-amp-fp16", tree, NULL, 0},
    {"2 ranks one after the other", "llama", "fp32", sequential, NULL, 0},
    {"a ring, stochastic recipes", "gpt", "te-nvfp4", ring, NULL, 0},
    {"accumulated, delayed scaling", "gpt", "nemo-fp8-hybrid-max", gathered, NULL, 0},
    {"norm in fp16, softmax in bf16", "gpt", "pytorch-amp-bf16", math_fp16, NULL, 0},
    {"math in bf16", "llama", "bf16-pure", math_bf16, NULL, 0},
    {"math in bf16, tanh", "gpt", "pytorch-amp-bf16", math_bf16, NULL, 0},
    {"math in fp16 but norms", "gpt", "fp16-static", math_all, NULL, 0},
    {"tf32", "gpt", "fp32", tf32, NULL, 0},
    {"tf32 in tiles", "llama", "fp32", tf32_tiles, NULL, 0},
    {"ampere, tf32", "llama", "fp32", tf32, NULL, 0},
    {"ampere", "gpt", "pytorch-amp-bf16", ampere, NULL, 0},
    {"ada, fp8", "llama", "nemo-fp8-hybrid-recent", ada, NULL, 0},
    {"volta", "gpt", "pytorch-amp-fp16", volta, NULL, 0},
    {"blackwell, fp8", "gpt", "nemo-fp8-e4m3-max", blackwell, NULL, 0},
    {"sequential chains", "llama", "fp32", chains, NULL, 0},
    {"fp8 attention", "gpt", "nemo-fp8-hybrid-max", NULL, fp8_attention, 0},
    {"fp8 attention in tiles", "llama", "nemo-fp8-hybrid-max", grouped_tiles, fp8_attention, 0},
    {"fp8 attention, current scaling", "llama", "pytorch-amp-bf16", grouped, fp8_attention_now, 0},
    {"fp8 attention, P in e5m2, tiles", "gpt", "pytorch-amp-bf16", tiles, e5m2_attention, 0},
    {"linear decay, cool-down, all decay", "gpt", "fp32", cooled, NULL, 0},
    {"cosine", "llama", "pytorch-amp-bf16", cosine, NULL, 0},
    {"constant, SGD", "gpt", "fp32", constant, sgd, 0},
    {"odd sizes", "gpt", "pytorch-amp-bf16", odd, NULL, 0},
    {"odd sizes, tiles", "llama", "fp32", odd_tiles, NULL, 0},
    {"mixed formats", "gpt", "fp32", NULL, mixed, 0},
    {"mixed formats, tiles", "llama", "fp32", grouped_tiles, mixed, 0},
    {"overflows", "gpt", "pytorch-amp-fp16", NULL, overflowing, 1},
    {"overflows of ranks, accumulated, tiles", "llama", "pytorch-amp-fp16", gathered_tiles, overflowing, 1},
    {"stochastic, accumulated, tiles", "llama", "bf16-stochastic", gathered_tiles, NULL, 0},
    {"Kahan, a ring", "gpt", "bf16-kahan", ring, NULL, 0},
    {"clipped as fairseq does", "llama", "pytorch-amp-fp16", NULL, clipped, 0},
};

START_TEST(every_option)
{
    const train_text texts[] = {text_new(0), text_new(1)};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const option_scenario *o = &options[i];
        train_run run;
        train_settings s;
        settle(&s, o->net, &texts[i % 2]);
        if (o->set)
            o->set(&s);
        ck_assert(run_of(&run, o->policy, &s, &texts[i % 2]));
        if (o->place)
            o->place(&run);
        side_by_side(o->name, &run, o->skips);
        train_run_clear(&run);
    }
    report();
}
END_TEST

/* One plan after the other: numbers are rounded to the new formats; scalers and FP8 scales begin anew where they
 * changed. */
START_TEST(plans_one_after_the_other)
{
    static const char *const names[] = {"fp32",      "pytorch-amp-fp16", "nemo-fp8-hybrid-max", "nemo-fp8-hybrid-max",
                                        "bf16-pure", "te-nvfp4",         "deepseek-v3-fp8",     "apex-O2",
                                        "bf16-kahan", "fp32"};
    enum { PLANS = sizeof names / sizeof *names };
    const train_text x = text_new(1);
    train_run run, other;
    train_settings s;
    settle(&s, nets[_i], &x);
    s.steps = 2 * PLANS;
    s.decoder.tile = _i ? 3 : 0;
    ck_assert(run_of(&run, names[0], &s, &x));
    for (size_t i = 1; i < PLANS; i++) {
        ck_assert(run_of(&other, names[i], &s, &x));
        run.plans[i] = other.plans[0];
        run.plans[i].from = 2 * i;
        train_run_clear(&other);
    }
    run.n_plans = PLANS;
    side_by_side("plans", &run, 0);
    train_run_clear(&run);
}
END_TEST

/* The bundled text, bytes of one. */
START_TEST(bundled_text)
{
    train_run run;
    train_settings s;
    const train_text *x = train_text_bundled();
    settle(&s, "gpt", x);
    s.decoder.vocabulary = x->vocabulary;
    s.depth = 1;
    ck_assert(run_of(&run, "pytorch-amp-bf16", &s, NULL));
    side_by_side("bundled text", &run, 0);
    train_run_clear(&run);
    report();
}
END_TEST

int main(void)
{
    TCase *c = test_case("steps", 120);
    tcase_add_loop_test(c, every_policy, 0, 2);
    tcase_add_test(c, every_option);
    tcase_add_loop_test(c, plans_one_after_the_other, 0, 2);
    tcase_add_test(c, bundled_text);
    TCase *const cases[] = {c, NULL};
    return test_main("train-decoder", cases);
}
