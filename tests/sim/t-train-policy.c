/* t-train-policy.c -- what training runs the policies give: typed from what the frameworks' guides
 * say of layers, not from the tables of sim/. */
#include "sim/train/policy.h"
#include "support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])
#define F32 "binary32"

static char folder[] = "/tmp/mpsim-train-policy-XXXXXX";
static char path[64];
static policy loaded;
static train_run run;
static train_settings settings;
static train_overrides given;
static char error[TRAIN_ERROR];

static void setup(void)
{
    memset(&loaded, 0, sizeof loaded);
    memset(&run, 0, sizeof run);
    train_overrides_init(&given);
    train_settings_init(&settings, "mlp");
}

static void teardown(void)
{
    train_run_clear(&run);
    policy_clear(&loaded);
}

static void load(const char *name)
{
    trace_error e = {0};
    policy_clear(&loaded);
    ck_assert_msg(policy_load(&loaded, name, train_steps_per_pass(&settings, 0), &e) == 0, "%s: %s", name, e.text);
}

static void load_text(const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    load(path);
}

static void make(const char *name)
{
    train_run_clear(&run);
    ck_assert_msg(train_run_of_policy(&run, &loaded, &settings, &given, error) == 0, "%s: %s", name, error);
}

/* The run of a policy and a network, as they are. */
static void make_run(const char *name, const char *net)
{
    train_settings_init(&settings, net);
    load(name);
    make(name);
}

static size_t layer_at(const char *name)
{
    for (size_t i = 0; i < run.n_layers; i++)
        if (strcmp(run.layers[i].name, name) == 0)
            return i;
    ck_abort_msg("no layer %s", name);
    return 0;
}

static const train_placement *layer(size_t at, const char *name)
{
    ck_assert_uint_lt(at, run.n_plans);
    return &run.plans[at].layers[layer_at(name)];
}

/* ---- all of them ---- */

static int has_parameters(const train_layer *l)
{
    return l->type == TRAIN_LINEAR || l->type == TRAIN_CONV || l->type == TRAIN_BATCHNORM || l->type == TRAIN_NORM ||
           l->type == TRAIN_EMBED || l->type == TRAIN_POSITIONS;
}

/* Whether recipes may be for it: linear layers and, by fp8_attention, the products of attention. */
static int multiplies(const train_layer *l)
{
    return l->type == TRAIN_LINEAR || l->type == TRAIN_SCORES || l->type == TRAIN_CONTEXT;
}

static void check_plan(const char *name, const train_plan *t)
{
    ck_assert_msg(mpsim_scaler_config_check(&t->scaler) == MPSIM_OK, "%s", name);
    ck_assert(t->precision[0]);
    for (size_t i = 0; i < run.n_layers; i++) {
        const train_placement *l = &t->layers[i];
        mpsim_optim o = t->optimizer;
        for (int role = 0; role < TRAIN_ROLES; role++) {
            ck_assert_msg(mpsim_format_check(&l->format[role]) == MPSIM_OK, "%s", name);
            ck_assert(!l->recipe[role] || multiplies(&run.layers[i]));
            ck_assert(!l->recipe[role] || role == TRAIN_ACT || role == TRAIN_WEIGHT || role == TRAIN_AGRAD);
        }
        o.param = l->kept;
        o.state = l->state;
        ck_assert(!l->muon || (strstr(name, "muon") && has_parameters(&run.layers[i])));
        ck_assert(!l->states || (l->states == loaded.plans[0].optimizer.states && has_parameters(&run.layers[i])));
        o.store = (uint8_t)(l->kept.mbits < 23 ? o.store : MPSIM_STORE_NEAREST);
        if (has_parameters(&run.layers[i]))
            ck_assert_msg(mpsim_optim_check(&o) == MPSIM_OK, "%s: %s", name, o.variant->name);
        if (t->master == TRAIN_NO_MASTER)
            ck_assert_str_eq(l->kept.name, l->storage.name);
        else
            ck_assert_str_eq(l->kept.name, F32);
    }
}

START_TEST(test_bundled)
{
    static const char *const nets[] = {"mlp", "cnn", "gpt", "llama"};
    DIR *dir = opendir(getenv("MPSIM_POLICIES"));
    ck_assert_ptr_nonnull(dir);
    size_t n = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char name[256];
        if (!strstr(e->d_name, ".yaml"))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(strlen(e->d_name) - 5), e->d_name);
        make_run(name, nets[_i]);
        ck_assert_uint_eq(run.n_plans, loaded.count);
        ck_assert_str_eq(run.settings.net, nets[_i]);
        ck_assert_uint_eq(run.plans[0].from, 0);
        for (size_t i = 0; i < run.n_plans; i++) {
            ck_assert(i == 0 || run.plans[i].from > run.plans[i - 1].from);
            check_plan(name, &run.plans[i]);
        }
        n++;
    }
    closedir(dir);
    ck_assert_uint_ge(n, 37);
}

/* ---- formats of layers ---- */

#define LOW(f)           \
    {                    \
        f, f, f, f, f, f \
    }
#define PASSES(f)            \
    {                        \
        f, f, F32, f, f, F32 \
    } /* activations only: its parameters stay in fp32 */

static const struct placed {
    const char *policy, *net, *layer;
    const char *format[TRAIN_ROLES];
    const char *storage, *kept, *state;
} placed[] = {
    /* torch.autocast: products in fp16; batch norm, relu and pooling take what comes; the loss in
     * fp32; parameters in fp32 */
    {"pytorch-amp-fp16", "cnn", "conv1", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "bn1", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "relu1", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "pool1", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "conv2", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "bn2", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "flatten", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "head", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "cnn", "loss", LOW(F32), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "fc1", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "relu1", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "fc2", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "relu2", PASSES("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "head", LOW("fp16"), F32, F32, F32},
    {"pytorch-amp-fp16", "mlp", "loss", LOW(F32), F32, F32, F32},
    {"pytorch-amp-bf16", "mlp", "fc2", LOW("bf16"), F32, F32, F32},
    {"fp32", "cnn", "conv1", LOW(F32), F32, F32, F32},
    {"fp32", "cnn", "bn1", LOW(F32), F32, F32, F32},
    /* Apex: O1 patches functions; O2 casts the model but batch norm, and keeps masters; O3 all */
    {"apex-O0", "mlp", "fc1", LOW(F32), F32, F32, F32},
    {"apex-O1", "cnn", "conv1", LOW("fp16"), F32, F32, F32},
    {"apex-O1", "cnn", "bn1", PASSES("fp16"), F32, F32, F32},
    {"apex-O2", "cnn", "conv1", LOW("fp16"), "fp16", F32, F32},
    {"apex-O2", "cnn", "bn1", PASSES("fp16"), F32, F32, F32},
    {"apex-O2", "cnn", "loss", LOW(F32), F32, F32, F32},
    {"apex-O3", "cnn", "conv1", LOW("fp16"), "fp16", "fp16", "fp16"},
    {"apex-O3", "cnn", "bn1", LOW("fp16"), "fp16", "fp16", "fp16"},
    {"apex-O3", "cnn", "head", LOW("fp16"), "fp16", "fp16", "fp16"},
    {"apex-O3", "cnn", "loss", LOW(F32), F32, F32, F32},
    /* Keras: variables in fp32 */
    {"keras-mixed-float16", "cnn", "bn1", PASSES("fp16"), F32, F32, F32},
    {"keras-mixed-float16", "cnn", "conv2", LOW("fp16"), F32, F32, F32},
    /* Megatron: bf16 parameters with masters, gradients accumulated in fp32 */
    {"megatron-bf16", "mlp", "fc1", {"bf16", "bf16", "bf16", "bf16", "bf16", F32}, "bf16", F32, F32},
    {"megatron-fp16", "mlp", "fc1", LOW("fp16"), "fp16", F32, F32},
    {"deepseek-v3-fp8", "mlp", "fc1", {"bf16", "bf16", "bf16", "bf16", "bf16", F32}, "bf16", F32, "bf16"},
    {"bf16-pure", "cnn", "bn2", LOW("bf16"), "bf16", "bf16", "bf16"},
    {"bf16-kahan", "mlp", "head", LOW("bf16"), "bf16", "bf16", "bf16"},
};

static void check_placed(const struct placed *w, const train_placement *l)
{
    for (int role = 0; role < TRAIN_ROLES; role++)
        ck_assert_msg(strcmp(l->format[role].name, w->format[role]) == 0, "%s: %s: role %d in %s, expected %s",
                      w->policy, w->layer, role, l->format[role].name, w->format[role]);
    ck_assert_msg(strcmp(l->storage.name, w->storage) == 0 && strcmp(l->kept.name, w->kept) == 0 &&
                      strcmp(l->state.name, w->state) == 0,
                  "%s: %s: stored in %s, kept in %s, state in %s", w->policy, w->layer, l->storage.name, l->kept.name,
                  l->state.name);
}

START_TEST(test_formats)
{
    for (size_t i = 0; i < COUNT(placed); i++) {
        make_run(placed[i].policy, placed[i].net);
        check_placed(&placed[i], layer(0, placed[i].layer));
    }
}

/* Every layer of both networks, by its type. */
START_TEST(test_formats_of_amp)
{
    static const struct placed by_type[TRAIN_TYPES] = {
        [TRAIN_LINEAR] = {"amp", "", "", LOW("fp16"), F32, F32, F32},
        [TRAIN_CONV] = {"amp", "", "", LOW("fp16"), F32, F32, F32},
        [TRAIN_BATCHNORM] = {"amp", "", "", PASSES("fp16"), F32, F32, F32},
        [TRAIN_RELU] = {"amp", "", "", PASSES("fp16"), F32, F32, F32},
        [TRAIN_MAXPOOL] = {"amp", "", "", PASSES("fp16"), F32, F32, F32},
        [TRAIN_FLATTEN] = {"amp", "", "", PASSES("fp16"), F32, F32, F32},
        [TRAIN_LOSS] = {"amp", "", "", LOW(F32), F32, F32, F32},
    };
    make_run("pytorch-amp-fp16", _i ? "cnn" : "mlp");
    ck_assert_uint_gt(run.n_layers, 5);
    for (size_t i = 0; i < run.n_layers; i++) {
        struct placed w = by_type[run.layers[i].type];
        w.layer = run.layers[i].name;
        check_placed(&w, &run.plans[0].layers[i]);
    }
}

START_TEST(test_split)
{
    load_text("precision: bf16\nautocast: megatron\nparams: bf16\nmaster_weights: split\n");
    make("split");
    const struct placed w = {"split", "mlp", "fc1", LOW("bf16"), "bf16", F32, F32};
    check_placed(&w, layer(0, "fc1"));
    ck_assert_int_eq(run.plans[0].master, TRAIN_SPLIT_MASTER);
}

START_TEST(test_keep_fp32)
{
    load_text("opt_level: O2\nkeep_fp32: [head]\noptimizer: {name: trace, variant: apex}\n");
    make("keep_fp32");
    const struct placed head = {"O2", "mlp", "head", LOW(F32), F32, F32, F32};
    const struct placed other = {"O2", "mlp", "fc2", LOW("fp16"), "fp16", F32, F32};
    check_placed(&head, layer(0, "head"));
    check_placed(&other, layer(0, "fc2"));
    load_text("precision: fp16\nlayer_kinds: {fc1: norm, relu1: loss}\n");
    make("layer_kinds");
    const struct placed norm = {"kinds", "mlp", "fc1", LOW(F32), F32, F32, F32};
    check_placed(&norm, layer(0, "fc1"));
    check_placed(&norm, layer(0, "relu1"));
}

/* ---- recipes ---- */

static void check_recipes(const char *name, const char *act, const char *weight, const char *agrad)
{
    const train_placement *l = layer(0, name);
    const char *const want[TRAIN_ROLES] = {[TRAIN_ACT] = act, [TRAIN_WEIGHT] = weight, [TRAIN_AGRAD] = agrad};
    for (int role = 0; role < TRAIN_ROLES; role++) {
        const mpsim_block_recipe *b = l->recipe[role];
        ck_assert_msg(!b == !want[role] && (!b || strcmp(b->name, want[role]) == 0), "%s role %d: %s, expected %s",
                      name, role, b ? b->name : "none", want[role] ? want[role] : "none");
    }
}

START_TEST(test_recipes)
{
    make_run("nemo-fp8-hybrid-max", "mlp");
    check_recipes("fc1", "te-current", "te-current", "te-current-e5m2");
    check_recipes("relu1", NULL, NULL, NULL);
    check_recipes("loss", NULL, NULL, NULL);
    ck_assert_int_eq(run.plans[0].delayed, 1);
    ck_assert_uint_eq(run.plans[0].history.history, 1024);
    ck_assert_uint_eq(run.plans[0].history.algorithm, MPSIM_AMAX_MAX);
    ck_assert_int_eq(run.plans[0].history.margin, 0);
    ck_assert_int_eq(run.plans[0].master, TRAIN_MASTER);
    make_run("nemo-fp8-hybrid-recent", "cnn");
    check_recipes("head", "te-current", "te-current", "te-current-e5m2");
    check_recipes("conv1", NULL, NULL, NULL); /* linear layers only */
    ck_assert_uint_eq(run.plans[0].history.history, 1);
    ck_assert_uint_eq(run.plans[0].history.algorithm, MPSIM_AMAX_MOST_RECENT);
    make_run("nemo-fp8-e4m3-max", "mlp");
    check_recipes("fc2", "te-current", "te-current", "te-current");
    make_run("te-mxfp8", "mlp");
    check_recipes("fc1", "mxfp8", "mxfp8", "mxfp8");
    ck_assert_int_eq(run.plans[0].delayed, 0);
    make_run("te-nvfp4", "mlp");
    check_recipes("fc1", "nvfp4", "nvfp4-2d", "nvfp4-sr");
    make_run("deepseek-v3-fp8", "mlp");
    check_recipes("fc1", "te-block-1x128", "te-block-128x128", "te-block-1x128");
    check_recipes("head", NULL, NULL, NULL); /* excluded, yet in bf16 */
    ck_assert_str_eq(layer(0, "head")->format[TRAIN_ACT].name, "bf16");
    /* a kind that makes a relu linear gives it no recipe: it has no product */
    load_text("precision: mxfp8\nlayer_kinds: {relu1: linear}\n");
    make("kinds");
    check_recipes("relu1", NULL, NULL, NULL);
    check_recipes("fc1", "mxfp8", "mxfp8", "mxfp8");
}

/* ---- scaler, optimizer, clipping ---- */

static const struct settled {
    const char *policy, *scaler, *variant;
    double init;
    mpsim_store store;
    train_master master;
    mpsim_clip_rule clip;
    double norm;
} settled[] = {
    {"fp32", "none", "ieee", 1, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, MPSIM_CLIP_NONE, 0},
    {"pytorch-amp-fp16", "torch", "torch-foreach", 65536, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, MPSIM_CLIP_NONE, 0},
    {"apex-O2", "apex", "apex", 65536, MPSIM_STORE_NEAREST, TRAIN_MASTER, MPSIM_CLIP_NONE, 0},
    {"apex-O3", "static", "apex", 1, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, MPSIM_CLIP_NONE, 0},
    {"deepspeed-fp16", "deepspeed", "apex", 65536, MPSIM_STORE_NEAREST, TRAIN_MASTER, MPSIM_CLIP_DEEPSPEED_ZERO, 1},
    {"bf16-kahan", "none", "optimi", 1, MPSIM_STORE_KAHAN, TRAIN_NO_MASTER, MPSIM_CLIP_NONE, 0},
    /* torchao has no SGD: the second of the list */
    {"bf16-stochastic", "none", "ieee", 1, MPSIM_STORE_STOCHASTIC, TRAIN_NO_MASTER, MPSIM_CLIP_NONE, 0},
    {"nemo-rl-fp16", "none", "torch", 1, MPSIM_STORE_NEAREST, TRAIN_NO_MASTER, MPSIM_CLIP_MEGATRON_FLOAT, 1},
};

START_TEST(test_settled)
{
    for (size_t i = 0; i < COUNT(settled); i++) {
        const struct settled *w = &settled[i];
        make_run(w->policy, "mlp");
        const train_plan *t = &run.plans[0];
        ck_assert_str_eq(t->scaler.name, w->scaler);
        ck_assert(t->scaler.init == w->init);
        ck_assert_str_eq(t->optimizer.variant->name, w->variant);
        ck_assert_int_eq(t->optimizer.algorithm, MPSIM_OPTIM_SGD);
        ck_assert(t->optimizer.lr == 0.1 && t->optimizer.momentum == 0.9);
        ck_assert(t->optimizer.dampening == 0 && t->optimizer.weight_decay == 0);
        ck_assert_int_eq(t->optimizer.store, w->store);
        ck_assert_int_eq(t->master, w->master);
        ck_assert_int_eq(t->clip, w->clip);
        ck_assert(t->max_norm == w->norm || w->clip == MPSIM_CLIP_NONE);
    }
}

START_TEST(test_defaults)
{
    load_text("optimizer: adamw\n");
    make("adamw");
    const mpsim_optim *o = &run.plans[0].optimizer;
    ck_assert_int_eq(o->algorithm, MPSIM_OPTIM_ADAMW);
    ck_assert(o->lr == 1e-3 && o->weight_decay == 1e-2 && o->beta1 == 0.9 && o->beta2 == 0.999);
    ck_assert(o->eps == 1e-8 && o->momentum == 0);
    load_text("optimizer: {name: sgd, momentum: 0.5, nesterov: true, weight_decay: 0.25}\n");
    make("sgd");
    o = &run.plans[0].optimizer;
    ck_assert(o->lr == 0.1 && o->momentum == 0.5 && o->nesterov == 1 && o->weight_decay == 0.25);
    load_text("optimizer: {name: trace, lr: 0.5}\n");
    make("trace");
    ck_assert(run.plans[0].optimizer.algorithm == MPSIM_OPTIM_SGD && run.plans[0].optimizer.lr == 0.5);
}

START_TEST(test_overrides)
{
    load_text("precision: fp16\nclip: {rule: apex, max_norm: 2}\n"
              "optimizer: {name: adamw, variant: [torchao, ieee], lr: 0.25, betas: [0.5, 0.75]}\n");
    make("none given");
    ck_assert_str_eq(run.plans[0].optimizer.variant->name, "torchao");
    given.lr = 0.125;
    given.weight_decay = 0.5;
    given.eps = 1;
    given.max_norm = 3;
    given.scaler = "static:1024";
    make("numbers");
    const train_plan *t = run.plans;
    ck_assert(t->optimizer.lr == 0.125 && t->optimizer.weight_decay == 0.5);
    ck_assert(t->optimizer.eps == 1 && t->optimizer.beta1 == 0.5);
    ck_assert(t->clip == MPSIM_CLIP_APEX && t->max_norm == 3);
    ck_assert(t->scaler.init == 1024 && !t->scaler.dynamic);
    /* another optimizer drops the numbers of the policy's */
    train_overrides_init(&given);
    given.optimizer = "sgd";
    make("sgd");
    t = run.plans;
    ck_assert_int_eq(t->optimizer.algorithm, MPSIM_OPTIM_SGD);
    ck_assert_str_eq(t->optimizer.variant->name, "ieee");
    ck_assert(t->optimizer.lr == 0.1 && t->optimizer.momentum == 0.9 && !t->optimizer.nesterov);
    /* the same one keeps them */
    train_overrides_init(&given);
    given.optimizer = "adamw";
    given.variant = "apex";
    given.clip_rule = "none";
    make("adamw");
    t = run.plans;
    ck_assert(t->optimizer.lr == 0.25 && t->optimizer.beta2 == 0.75);
    ck_assert_str_eq(t->optimizer.variant->name, "apex");
    ck_assert_int_eq(t->clip, MPSIM_CLIP_NONE);
    given.max_norm = 1;
    make("none, and a norm");
    ck_assert_int_eq(run.plans[0].clip, MPSIM_CLIP_NONE);
    load_text("optimizer: {name: adam, amsgrad: true}\n");
    train_overrides_init(&given);
    make("amsgrad");
    ck_assert_int_eq(run.plans[0].optimizer.amsgrad, 1);
    given.optimizer = "sgd"; /* has no amsgrad */
    make("sgd");
    ck_assert_int_eq(run.plans[0].optimizer.amsgrad, 0);
    /* a norm alone clips as torch does */
    load_text("precision: fp16\n");
    train_overrides_init(&given);
    given.max_norm = 0.5;
    make("clip");
    ck_assert(run.plans[0].clip == MPSIM_CLIP_TORCH && run.plans[0].max_norm == 0.5);
    train_run_clear(&run);
    ck_assert(train_run_of_policy(&run, &loaded, &settings, NULL, error) == 0);
    ck_assert_int_eq(run.plans[0].clip, MPSIM_CLIP_NONE);
}

/* ---- schedules ---- */

START_TEST(test_schedule)
{
    make_run("fp32-bf16-fp16", "mlp"); /* epochs 2 and 7 of 1000 steps */
    ck_assert_uint_eq(run.n_plans, 3);
    ck_assert_uint_eq(run.plans[1].from, 1000);
    ck_assert_uint_eq(run.plans[2].from, 6000);
    ck_assert_str_eq(layer(0, "fc1")->format[TRAIN_ACT].name, F32);
    ck_assert_str_eq(layer(1, "fc1")->format[TRAIN_ACT].name, "bf16");
    ck_assert_str_eq(layer(2, "fc1")->format[TRAIN_ACT].name, "fp16");
    ck_assert_str_eq(run.plans[1].precision, "bf16");
    ck_assert_str_eq(run.plans[1].scaler.name, "none");
    ck_assert_str_eq(run.plans[2].scaler.name, "torch");
    /* passes over the images, 1437 / 64 = 22 steps each, where the policy does not say */
    ck_assert_uint_eq(train_steps_per_pass(&settings, 0), 22);
    load_text("schedule: [{epoch: 2, precision: bf16}, {step: 50, precision: fp16}]\n");
    make("passes");
    ck_assert_uint_eq(run.plans[1].from, 22);
    ck_assert_uint_eq(run.plans[2].from, 49);
    settings.batch = 2000;
    ck_assert_uint_eq(train_steps_per_pass(&settings, 0), 1);
    settings.batch = 64;
    /* a plan from the first step on takes the place of the policy's own */
    load_text("schedule: [{step: 1, precision: bf16}, {step: 2, precision: fp16}]\n");
    make("from the first");
    ck_assert_uint_eq(run.n_plans, 2);
    ck_assert_str_eq(run.plans[0].precision, "bf16");
    ck_assert_uint_eq(run.plans[0].from, 0);
    ck_assert_uint_eq(run.plans[1].from, 1);
}

/* ---- errors and notes ---- */

static void fails(const char *text, const char *words)
{
    load_text(text);
    train_run_clear(&run);
    error[0] = '\0';
    ck_assert_msg(train_run_of_policy(&run, &loaded, &settings, &given, error) == -1, "accepted: %s", text);
    ck_assert_msg(strstr(error, words) && !strchr(error, '\n'), "'%s' without '%s'", error, words);
    ck_assert_ptr_null(run.plans);
}

START_TEST(test_errors)
{
    char many[2048] = "schedule: [";
    for (int i = 2; i <= 17; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "{step: %d, precision: bf16}, ", i);
    strcat(many, "]\n");
    fails(many, "at most 16 plans");
    fails("optimizer: {name: trace, variant: torchao}\n", "variant torchao has no sgd");
    fails("optimizer: {name: trace, dampening: 0.5, nesterov: true}\n", "nesterov needs");
    fails("optimizer: {name: trace, variant: apex, amsgrad: true}\n", "variant apex of sgd");
    given.optimizer = "lamb";
    fails("precision: fp16\n", "'lamb' is not one of sgd, adam, adamw, lion");
    given.optimizer = "adam";
    given.momentum = 0.5;
    fails("precision: fp16\n", "momentum: adam has none");
    given.momentum = (double)NAN;
    given.variant = "new";
    fails("precision: fp16\n", "variant: 'new'");
    given.variant = "torchao";
    fails("optimizer: sgd\nclip: 1\nprecision: bf16\nautocast: all\nparams: bf16\n"
          "schedule: [{step: 2, optimizer: {name: adam, variant: optimi, store: kahan}}]\n",
          "variant torchao has no adam that stores");
    train_overrides_init(&given);
    given.lr = -1;
    fails("precision: fp16\n", "lr -1");
    train_overrides_init(&given);
    given.scaler = "torch:window=0";
    fails("precision: fp16\n", "loss_scaling: 'torch:window=0'");
    train_overrides_init(&given);
    given.max_norm = 0;
    fails("precision: fp16\n", "clip");
    given.clip_rule = "hard";
    fails("precision: fp16\n", "'hard'");
    train_overrides_init(&given);
    given.clip_rule = "apex"; /* and no norm anywhere */
    fails("precision: fp16\n", "clip");
}

START_TEST(test_notes)
{
    char text[1024];
    make_run("pytorch-amp-fp16", "mlp");
    ck_assert_str_eq(train_policy_notes(&loaded, &run, text, sizeof text), "");
    make_run("nemo-fp8-hybrid-max", "mlp");
    train_policy_notes(&loaded, &run, text, sizeof text);
    ck_assert(strstr(text, "grad_reduce: ") && strstr(text, "fp8_params: "));
    make_run("megatron-fp16", "mlp");
    train_policy_notes(&loaded, &run, text, sizeof text);
    ck_assert(strncmp(text, "grad_reduce: ", 13) == 0);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    load_text("precision: fp16\nkeep_fp32: [head, tail]\nclip: {max_norm: 1, norm: trace}\n"
              "layer_kinds: {'fc?': linear, 'norm*': norm}\n"
              "schedule: [{step: 9, precision: bf16}]\n");
    make("notes");
    train_policy_notes(&loaded, &run, text, sizeof text);
    ck_assert(strstr(text, "keep_fp32: 'tail' fits no layer") && !strstr(text, "'head'"));
    ck_assert(strstr(text, "layer_kinds: 'norm*'") && !strstr(text, "fc?"));
    const char *line = strstr(text, "clip: norm: trace");
    ck_assert(line && !strstr(line + 1, "clip: norm: trace")); /* once, with two plans */
    char little[40];
    train_policy_notes(&loaded, &run, little, sizeof little);
    ck_assert_str_eq(little, "keep_fp32: 'tail' fits no layer\n"); /* whole lines only */
}

int main(void)
{
    setenv("MPSIM_POLICIES", test_source_path("data/policies"), 1);
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof path, "%s/policy.yaml", folder);
    TCase *t = test_case("runs", 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_bundled, 0, 4);
    tcase_add_test(t, test_formats);
    tcase_add_loop_test(t, test_formats_of_amp, 0, 2);
    tcase_add_test(t, test_split);
    tcase_add_test(t, test_keep_fp32);
    tcase_add_test(t, test_recipes);
    tcase_add_test(t, test_settled);
    tcase_add_test(t, test_defaults);
    tcase_add_test(t, test_overrides);
    tcase_add_test(t, test_schedule);
    tcase_add_test(t, test_errors);
    tcase_add_test(t, test_notes);
    TCase *const cases[] = {t, NULL};
    const int code = test_main("train-policy", cases);
    unlink(path);
    rmdir(folder);
    return code;
}
