/* t-decoder-torch.c -- transformers against PyTorch (data/vectors/decoder): the gradient of every parameter
 * against autograd in float64, the losses of a training against PyTorch's in float32; both forms of
 * attention. It judges what is computed; other tests judge the bits. */
#include "sim/train/policy.h"
#include "support/decoderinput.h"
#include "support/recorded.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const cases[] = {"gpt", "gpt-gelu", "llama", "llama-kv1"};
static const uint32_t tiles[] = {0, 3}; /* of 8 columns; 0: materialised */
enum { CASES = sizeof cases / sizeof *cases, TILES = sizeof tiles / sizeof *tiles };

/* A gradient may be so much of the largest one of its parameter from PyTorch's, a loss this share. */
static const double TOLERANCE = 1e-6, LOSSES = 2e-6;

typedef struct comparison {
    recorded *file;
    train *t;
    double worst;
    char where[2 * TRAIN_NAME];
    size_t tensors, values;
} comparison;

static double number(const recorded *r, const char *key)
{
    char name[64], *end;
    snprintf(name, sizeof name, "mpsim.%s", key);
    const char *text = recorded_metadata(r, name);
    ck_assert_msg(text != NULL, "%s is missing", name);
    const double x = strtod(text, &end);
    ck_assert_msg(end != text && *end == 0, "%s: '%s'", name, text);
    return x;
}

/* The place of a word in a list that NULL ends. */
static uint8_t word(const recorded *r, const char *key, const char *const *words)
{
    char name[64];
    snprintf(name, sizeof name, "mpsim.%s", key);
    const char *text = recorded_metadata(r, name);
    for (uint8_t i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    ck_abort_msg("%s: '%s'", name, text ? text : "");
}

static void settings_of(train_settings *s, const recorded *r, uint32_t tile, uint32_t accumulate, const char *arch)
{
    static const char *const norms[] = {"layernorm", "rmsnorm", NULL},
                             *const activations[] = {"gelu-tanh", "gelu", "swiglu", NULL},
                             *const positions[] = {"learned", "rotary", NULL};
    train_settings_init(s, recorded_metadata(r, "mpsim.net"));
    train_decoder *d = &s->decoder;
    s->depth = (uint32_t)number(r, "depth");
    s->width = (uint32_t)number(r, "width");
    s->batch = (uint32_t)number(r, "batch");
    s->seed = (uint64_t)number(r, "seed");
    s->steps = (uint64_t)number(r, "steps");
    snprintf(s->arch, sizeof s->arch, "%s", arch);
    d->heads = (uint32_t)number(r, "heads");
    d->kv_heads = (uint32_t)number(r, "kv_heads");
    d->hidden = (uint32_t)number(r, "hidden");
    d->context = (uint32_t)number(r, "context");
    d->vocabulary = (uint32_t)number(r, "vocabulary");
    d->norm = word(r, "norm", norms);
    d->activation = word(r, "activation", activations);
    d->rotary = word(r, "positions", positions);
    d->biases = (uint8_t)number(r, "biases");
    d->tied = (uint8_t)number(r, "tied");
    d->tile = tile;
    d->accumulate = accumulate;
    d->decay = TRAIN_COSINE;
    d->warmup = (uint64_t)number(r, "warmup");
    d->min_lr = number(r, "min_lr");
}

static void open_run(train_run *run, const recorded *r, train_settings *s)
{
    char error[TRAIN_ERROR];
    trace_error trouble;
    train_overrides o;
    policy p;
    const train_text *text = decoder_text(s->decoder.vocabulary);
    snprintf(s->decoder.text, sizeof s->decoder.text, "%s", text->name);
    s->decoder.text_digest = text->digest;
    train_overrides_init(&o);
    o.optimizer = "adamw";
    o.lr = number(r, "lr");
    o.beta1 = number(r, "beta1");
    o.beta2 = number(r, "beta2");
    o.eps = number(r, "eps");
    o.weight_decay = number(r, "weight_decay");
    o.clip_rule = "torch";
    o.max_norm = number(r, "max_norm");
    ck_assert_msg(policy_load(&p, test_source_path("data/policies/fp32.yaml"), 0, &trouble) == 0, "%s", trouble.text);
    ck_assert_msg(train_run_of_policy(run, &p, s, &o, error) == 0, "%s", error);
    policy_clear(&p);
    run->text = text;
}

/* The weights of formula.py; in this run the model reads them where they are kept. */
static int put_weight(const train_item *x, void *context)
{
    train *t = context;
    const size_t n = x->tensor->rows * x->tensor->cols;
    if (strncmp(x->name, "weight:", 7) != 0)
        return 0;
    float *values = malloc(n * sizeof *values);
    ck_assert(values && x->state);
    for (size_t i = 0; i < n; i++)
        values[i] = decoder_weight(x->name + 7, i);
    ck_assert(train_engine_of(t)->ops->put(train_engine_of(t), x->tensor, values) == 0);
    free(values);
    return 0;
}

static train *open_train(const train_run *run, train_engine *e)
{
    char error[TRAIN_ERROR];
    ck_assert_int_eq(train_engine_cpu(e, NULL), 0);
    train *t = train_open(run, e, 0, error);
    ck_assert_msg(t != NULL, "%s", error);
    ck_assert_msg(train_prepare(t, error) == 0, "%s", error);
    ck_assert_int_eq(train_visit(t, put_weight, t), 0);
    return t;
}

static int compare(const train_item *x, void *context)
{
    comparison *c = context;
    size_t n = 0;
    if (strncmp(x->name, "wgrad:", 6) != 0)
        return 0;
    const size_t have = x->tensor->rows * x->tensor->cols;
    float *want = recorded_floats(c->file, x->name, NULL, &n), *got = malloc(have * sizeof *got);
    double largest = 0;
    train_engine *e = train_engine_of(c->t);
    ck_assert_msg(want && got, "%s is not recorded", x->name);
    ck_assert_uint_eq(n, have);
    ck_assert_msg(e->ops->get(e, x->tensor, got) == 0, "%s", e->error);
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)want[i]));
    ck_assert_msg(largest > 0, "%s is all zeros", x->name);
    for (size_t i = 0; i < n; i++) {
        const double error = fabs((double)got[i] - (double)want[i]) / largest;
        ck_assert_msg(error < TOLERANCE, "%s: element %zu is %.9g, not %.9g: %.2g of the largest", x->name, i,
                      (double)got[i], (double)want[i], error);
        if (error > c->worst)
            snprintf(c->where, sizeof c->where, "%s", x->name);
        c->worst = fmax(c->worst, error);
    }
    c->tensors++;
    c->values += n;
    free(want);
    free(got);
    return 0;
}

static size_t recorded_gradients(const recorded *r, const train_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n_layers; i++)
        for (int k = 0; k < 2; k++) {
            char name[2 * TRAIN_NAME];
            snprintf(name, sizeof name, "wgrad:%s.%s", run->layers[i].name, k ? "bias" : "weight");
            n += recorded_tensor(r, name, NULL) != NULL;
        }
    return n;
}

CASE("pytorch", 60);

TESTS(gradients, CASES *TILES)
{
    const char *name = cases[_i % CASES];
    const uint32_t tile = tiles[_i / CASES];
    char path[128], error[TRAIN_ERROR];
    train_settings s;
    train_engine e;
    train_run run;
    train_step step;
    snprintf(path, sizeof path, "data/vectors/decoder/%s.safetensors", name);
    comparison c = {.file = recorded_open(path)};
    settings_of(&s, c.file, tile, 1, "exact");
    open_run(&run, c.file, &s);
    c.t = open_train(&run, &e);
    ck_assert_msg(train_next(c.t, &step, error) == 0, "%s", error);
    float *loss = recorded_floats(c.file, "loss", NULL, NULL);
    ck_assert(loss != NULL);
    const double apart = fabs((double)step.loss - (double)*loss) / (double)*loss;
    ck_assert_int_eq(train_visit(c.t, compare, &c), 0);
    printf(
        "# %-9s %s: %zu gradients of %zu parameters, at most %.1e of the largest apart (%s; PyTorch's own in float32 %s); "
        "loss %.1e\n",
        name, tile ? "tiled       " : "materialised", c.values, c.tensors, c.worst, c.where,
        recorded_metadata(c.file, "mpsim.float32_apart"), apart);
    ck_assert(apart < TOLERANCE);
    ck_assert_uint_gt(c.tensors, 10);
    ck_assert_uint_eq(c.tensors, recorded_gradients(c.file, &run));
    free(loss);
    train_close(c.t);
    train_engine_close(&e);
    train_run_clear(&run);
    recorded_close(c.file);
}

TESTS(losses, CASES *TILES)
{
    const char *name = cases[_i % CASES];
    const uint32_t tile = tiles[_i / CASES];
    char path[128], error[TRAIN_ERROR];
    size_t n, n64;
    double worst[2] = {0, 0};
    train_settings s;
    train_engine e;
    train_run run;
    snprintf(path, sizeof path, "data/vectors/decoder/%s.safetensors", name);
    recorded *file = recorded_open(path);
    settings_of(&s, file, tile, (uint32_t)number(file, "accumulate"), "hopper");
    open_run(&run, file, &s);
    train *t = open_train(&run, &e);
    float *want = recorded_floats(file, "losses", NULL, &n), *want64 = recorded_floats(file, "losses64", NULL, &n64);
    ck_assert(want && want64 && n == s.steps && n64 == n);
    for (size_t i = 0; i < n; i++) {
        train_step step;
        ck_assert_msg(train_next(t, &step, error) == 0, "%s", error);
        const double got = (double)step.loss, apart = fabs(got - (double)want[i]) / (double)want[i];
        ck_assert_msg(apart < LOSSES, "%s: step %zu: loss %.9g, not %.9g", name, i + 1, got, (double)want[i]);
        worst[0] = fmax(worst[0], apart);
        worst[1] = fmax(worst[1], fabs(got - (double)want64[i]) / (double)want64[i]);
    }
    printf("# %-9s %s: losses of %zu steps, at most %.1e from float32, %.1e from float64\n", name,
           tile ? "tiled       " : "materialised", n, worst[0], worst[1]);
    free(want);
    free(want64);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&run);
    recorded_close(file);
}

TEST_MAIN("train-decoder-torch");
