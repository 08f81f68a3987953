/* t-policy.c -- what the bundled policies say; kinds of layers, and what a plan says of them.
 *
 * The table of bundled policies is typed from the frameworks' documented defaults, not from the
 * files. */
#include "sim/policy/policy.h"
#include "support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one file, written again for every case ---- */

static char folder[] = "/tmp/mpsim-policy-XXXXXX";
static char path[64];

static void load(policy *p, const char *text)
{
    trace_error e = {0};
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    const int code = policy_load(p, path, 0, &e);
    ck_assert_msg(code == 0, "refused: %s\n%s", e.text, text);
}

/* ---- bundled policies ---- */

enum { RECENT = MPSIM_AMAX_MOST_RECENT, MAX = MPSIM_AMAX_MAX };

typedef struct want {
    const char *name;
    uint64_t from;
    const char *compute, *params, *grads, *autocast;
    train_master master;
    const char *scaler;
    double init;
    uint64_t window;
    uint32_t hysteresis;
    double floor;
    const char *recipe; /* NULL: none */
    int e4m3;
    uint32_t history; /* 0: no delayed scaling */
    int algorithm;
    mpsim_clip_rule clip;
    double norm;
    const char *wire;    /* NULL: none given */
    const char *variant; /* the first       */
    mpsim_store store;
    const char *state; /* NULL: not given */
} want;

#define F32 "binary32"
#define NO_SCALER "none", 1, 2000, 1, 0
#define CONSTANT_1 "static", 1, 2000, 1, 0
#define CONSTANT_1024 "static", 1024, 2000, 1, 0
#define TORCH_SCALER "torch", 65536, 2000, 1, 0
#define APEX_SCALER "apex", 65536, 2000, 1, 0
#define MEGATRON_SCALER "megatron", 4294967296, 1000, 2, 1
#define NO_FP8 NULL, 0, 0, 0
#define NO_CLIP MPSIM_CLIP_NONE, 0
#define MEGATRON_CLIP MPSIM_CLIP_MEGATRON, 1
#define MEGATRON_BF16 "bf16", "bf16", F32, "megatron", TRAIN_MASTER, NO_SCALER
#define MEGATRON_FP16 "fp16", "fp16", "fp16", "megatron", TRAIN_MASTER, MEGATRON_SCALER
#define NEAREST MPSIM_STORE_NEAREST, NULL
#define BF16_SR \
    "bf16", "bf16", "bf16", "all", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torchao", MPSIM_STORE_STOCHASTIC

/* clang-format off */
static const want wants[] = {
    {"fp32", 0, F32, F32, F32, "none", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "ieee", NEAREST},
    {"fp16-unscaled", 0, "fp16", F32, "fp16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"fp16-static", 0, "fp16", F32, "fp16", "torch", TRAIN_NO_MASTER, CONSTANT_1024, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"nemo-rl-fp32", 0, F32, F32, F32, "none", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, MPSIM_CLIP_MEGATRON_FLOAT, 1, F32, "torch", NEAREST},
    {"nemo-rl-fp16", 0, "fp16", F32, "fp16", "megatron", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, MPSIM_CLIP_MEGATRON_FLOAT, 1, F32, "torch", NEAREST},
    {"nemo-rl-bf16", 0, "bf16", F32, "bf16", "megatron", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, MPSIM_CLIP_MEGATRON_FLOAT, 1, F32, "torch", NEAREST},
    {"nemo-fp16-mixed", 0, "fp16", "fp16", "fp16", "megatron", TRAIN_MASTER, MEGATRON_SCALER, NO_FP8, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"nemo-bf16-mixed", 0, MEGATRON_BF16, NO_FP8, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"nemo-fp8-hybrid-recent", 0, MEGATRON_BF16, "delayed", 0, 1, RECENT, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"nemo-fp8-hybrid-max", 0, MEGATRON_BF16, "delayed", 0, 1024, MAX, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"nemo-fp8-e4m3-recent", 0, MEGATRON_BF16, "delayed", 1, 1, RECENT, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"nemo-fp8-e4m3-max", 0, MEGATRON_BF16, "delayed", 1, 1024, MAX, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"nemo-fp16-fp8-delayed", 0, MEGATRON_FP16, "delayed", 0, 1024, MAX, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"nemo-fp16-fp8-current", 0, MEGATRON_FP16, "tensorwise", 0, 0, 0, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"nemo-fp16-fp8-blockwise", 0, MEGATRON_FP16, "blockwise", 0, 0, 0, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"nemo-fp16-mxfp8", 0, MEGATRON_FP16, "mxfp8", 0, 0, 0, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"apex-O0", 0, F32, F32, F32, "none", TRAIN_NO_MASTER, CONSTANT_1, NO_FP8, NO_CLIP, NULL, "apex", NEAREST},
    {"apex-O1", 0, "fp16", F32, "fp16", "torch", TRAIN_NO_MASTER, APEX_SCALER, NO_FP8, NO_CLIP, NULL, "apex", NEAREST},
    {"apex-O2", 0, "fp16", "fp16", "fp16", "batchnorm-fp32", TRAIN_MASTER, APEX_SCALER, NO_FP8, NO_CLIP, NULL, "apex", NEAREST},
    {"apex-O3", 0, "fp16", "fp16", "fp16", "all", TRAIN_NO_MASTER, CONSTANT_1, NO_FP8, NO_CLIP, NULL, "apex", NEAREST},
    {"pytorch-amp-fp16", 0, "fp16", F32, "fp16", "torch", TRAIN_NO_MASTER, TORCH_SCALER, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"pytorch-amp-bf16", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"tf-mixed-float16", 0, "fp16", F32, "fp16", "norms-fp32", TRAIN_NO_MASTER, "tf-keras", 32768, 2000, 1, 1, NO_FP8, NO_CLIP, NULL, "ieee", NEAREST},
    {"keras-mixed-float16", 0, "fp16", F32, "fp16", "norms-fp32", TRAIN_NO_MASTER, "keras", 32768, 2000, 1, 0, NO_FP8, NO_CLIP, NULL, "ieee", NEAREST},
    {"deepspeed-fp16", 0, "fp16", "fp16", "fp16", "all", TRAIN_MASTER, "deepspeed", 65536, 1000, 2, 1, NO_FP8, MPSIM_CLIP_DEEPSPEED_ZERO, 1, "fp16", "apex", NEAREST},
    {"megatron-fp16", 0, "fp16", "fp16", "fp16", "megatron", TRAIN_MASTER, MEGATRON_SCALER, NO_FP8, MEGATRON_CLIP, "fp16", "apex", NEAREST},
    {"megatron-bf16", 0, MEGATRON_BF16, NO_FP8, MEGATRON_CLIP, F32, "apex", NEAREST},
    {"te-fp8-delayed", 0, MEGATRON_BF16, "delayed", 0, 1024, MAX, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-fp8-delayed-dpa", 0, MEGATRON_BF16, "delayed", 0, 1024, MAX, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-fp8-current", 0, MEGATRON_BF16, "current", 0, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-fp8-current-dpa", 0, MEGATRON_BF16, "current", 0, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-mxfp8", 0, MEGATRON_BF16, "mxfp8", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-nvfp4", 0, MEGATRON_BF16, "nvfp4", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-nvfp4-without-rht", 0, MEGATRON_BF16, "nvfp4", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-nvfp4-without-2d", 0, MEGATRON_BF16, "nvfp4", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"te-nvfp4-without-sr", 0, MEGATRON_BF16, "nvfp4", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"nvfp4-pretraining", 0, MEGATRON_BF16, "nvfp4", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"mxfp8-floor", 0, MEGATRON_BF16, "mxfp8:floor", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"mxfp8-even", 0, MEGATRON_BF16, "mxfp8:even", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"mxfp8-ceil", 0, MEGATRON_BF16, "mxfp8:ceil", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"mxfp8-rceil", 0, MEGATRON_BF16, "mxfp8:rceil", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", NEAREST},
    {"torchao-nvfp4", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, "nvfp4:torchao", 1, 0, 0, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"deepseek-v3-fp8", 0, MEGATRON_BF16, "deepseek", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", MPSIM_STORE_NEAREST, "bf16"},
    {"deepseek-v3-fp8-f32", 0, MEGATRON_BF16, "deepseek:f32", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", MPSIM_STORE_NEAREST, "bf16"},
    {"deepseek-v3-fp8-ue8m0", 0, MEGATRON_BF16, "deepseek:ue8m0", 1, 0, 0, MEGATRON_CLIP, NULL, "apex", MPSIM_STORE_NEAREST, "bf16"},
    {"bf16-pure", 0, "bf16", "bf16", "bf16", "all", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"bf16-stochastic", 0, "bf16", "bf16", "bf16", "all", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torchao", MPSIM_STORE_STOCHASTIC, NULL},
    {"bf16-kahan", 0, "bf16", "bf16", "bf16", "all", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "optimi", MPSIM_STORE_KAHAN, NULL},
    {"coat-fp8-states", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "coat", NEAREST},
    {"fp8-lm", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, "ms-amp", 1, 0, 0, NO_CLIP, NULL, "ms-amp", NEAREST},
    {"muon-bf16", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "torch-foreach", NEAREST},
    {"lion", 0, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, NO_CLIP, NULL, "lion-pytorch", NEAREST},
    {"torchao-adamw8bit", 0, BF16_SR, NULL},
    {"torchao-adamw4bit", 0, BF16_SR, NULL},
    {"torchao-adamwfp8", 0, BF16_SR, NULL},
    {"torchao-bf16-sr", 0, BF16_SR, NULL},
    /* epochs 2 and 7 of 1000 steps, counted from 1: their first steps */
    {"fp32-bf16-fp16", 0, F32, F32, F32, "none", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, MPSIM_CLIP_TORCH, 1, NULL, "ieee", NEAREST},
    {"fp32-bf16-fp16", 1001, "bf16", F32, "bf16", "torch", TRAIN_NO_MASTER, NO_SCALER, NO_FP8, MPSIM_CLIP_TORCH, 1, NULL, "ieee", NEAREST},
    {"fp32-bf16-fp16", 6001, "fp16", F32, "fp16", "torch", TRAIN_NO_MASTER, TORCH_SCALER, NO_FP8, MPSIM_CLIP_TORCH, 1, NULL, "ieee", NEAREST},
};
/* clang-format on */
enum { WANTS = sizeof wants / sizeof wants[0] };

static const train_placement *placed(const plan *p, layer_kind k, const char *layer)
{
    static train_placement to;
    policy_plan_place(p, k, layer, &to);
    return &to;
}

/* Of plans whose compute and gradients are below binary32. */
static int is_low(const plan *p, layer_kind k, const char *layer, train_role role)
{
    return strcmp(placed(p, k, layer)->format[role].name, F32) != 0;
}

static void same_word(const char *name, const char *key, const char *is, const char *should)
{
    ck_assert_msg(is && strcmp(is, should) == 0, "%s: %s is %s, not %s", name, key, is ? is : "(null)", should);
}

static void same_number(const char *name, const char *key, double is, double should)
{
    ck_assert_msg(is == should, "%s: %s is %.17g, not %.17g", name, key, is, should);
}

static void same_scaler(const want *w, const mpsim_scaler_config *c)
{
    const int dynamic = strcmp(w->scaler, "none") != 0 && strcmp(w->scaler, "static") != 0;
    same_word(w->name, "scaler", c->name, w->scaler);
    same_number(w->name, "init", c->init, w->init);
    same_number(w->name, "window", (double)c->window, (double)w->window);
    same_number(w->name, "hysteresis", c->hysteresis, w->hysteresis);
    same_number(w->name, "floor", c->floor, w->floor);
    same_number(w->name, "growth", c->growth, 2);
    same_number(w->name, "backoff", c->backoff, 0.5);
    same_number(w->name, "dynamic", c->dynamic, dynamic);
    same_number(w->name, "skip", c->skip, dynamic);
    same_number(w->name, "ceiling", c->ceiling, strcmp(w->scaler, "apex") == 0 ? 0x1p24 : (double)INFINITY);
    ck_assert_int_eq(mpsim_scaler_config_check(c), MPSIM_OK);
}

static void same_fp8(const want *w, const plan *p)
{
    if (!w->recipe) {
        ck_assert_msg(!p->recipe, "%s: a recipe", w->name);
        return;
    }
    same_word(w->name, "recipe", p->recipe ? p->recipe->name : NULL, w->recipe);
    same_number(w->name, "e4m3", p->fp8_e4m3, w->e4m3);
    same_number(w->name, "delayed", p->recipe->delayed, w->history != 0);
    if (w->history) {
        same_number(w->name, "history", p->delayed.history, w->history);
        same_number(w->name, "algorithm", p->delayed.algorithm, w->algorithm);
        same_number(w->name, "margin", p->delayed.margin, 0);
        same_number(w->name, "implementation", p->delayed.variant, MPSIM_DELAYED_BULK);
    }
}

static void same_optimizer(const want *w, const plan_optimizer *o)
{
    const double open[] = {o->lr, o->momentum, o->dampening, o->weight_decay, o->beta1, o->beta2, o->eps};
    mpsim_optim_algorithm named;
    /* from the trace, and all numbers, but in policies that an optimizer gives its name */
    const int is_named = mpsim_optim_parse(&named, w->name) == MPSIM_OK;
    same_number(w->name, "algorithm", o->algorithm, is_named ? (int)named : -1);
    ck_assert_msg(!is_named || o->lr > 0, "%s: the trace's learning rate is another optimizer's", w->name);
    for (size_t i = 0; i < sizeof open / sizeof open[0] && !is_named; i++)
        ck_assert_msg(isnan(open[i]), "%s: number %zu", w->name, i);
    same_word(w->name, "variant", o->n_variants ? o->variants[0]->name : NULL, w->variant);
    same_number(w->name, "store", o->store, w->store);
    same_number(w->name, "state given", o->state_given, w->state != NULL);
    if (w->state)
        same_word(w->name, "state", o->state.name, w->state);
}

static void same_plan(const want *w, const plan *p)
{
    same_number(w->name, "from", (double)p->from, (double)w->from);
    same_word(w->name, "compute", p->compute.name, w->compute);
    same_word(w->name, "params", p->params.name, w->params);
    same_word(w->name, "grads", p->grads.name, w->grads);
    same_word(w->name, "autocast", p->autocast->name, w->autocast);
    same_number(w->name, "master", p->master, w->master);
    same_scaler(w, &p->scaler);
    same_fp8(w, p);
    same_optimizer(w, &p->optimizer);
    same_number(w->name, "clip", p->clip, w->clip);
    same_number(w->name, "max_norm", p->max_norm, w->norm);
    same_number(w->name, "recorded_norm", p->recorded_norm, 0);
    same_number(w->name, "reduce", p->reduce_given, w->wire != NULL);
    if (w->wire) {
        same_word(w->name, "wire", p->reduce.wire.name, w->wire);
        same_word(w->name, "accumulate", p->reduce.accumulator.name, w->wire);
        same_word(w->name, "result", p->reduce.result.name, w->wire);
        same_number(w->name, "order", p->reduce.order, MPSIM_REDUCE_RING);
        same_number(w->name, "average", p->reduce.average, MPSIM_AVERAGE_BEFORE);
    }
}

static size_t rows_of(const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < WANTS; i++)
        n += strcmp(wants[i].name, name) == 0;
    return n;
}

START_TEST(bundled)
{
    for (size_t i = 0, nth = 0; i < WANTS; i++) {
        const want *w = &wants[i];
        policy p;
        trace_error e = {0};
        nth = i > 0 && strcmp(wants[i - 1].name, w->name) == 0 ? nth + 1 : 0;
        ck_assert_msg(policy_load(&p, w->name, 0, &e) == 0, "%s: %s", w->name, e.text);
        same_word(w->name, "name", p.name, w->name);
        same_number(w->name, "plans", (double)p.count, (double)rows_of(w->name));
        same_plan(w, &p.plans[nth]);
        ck_assert_ptr_eq(policy_plan(&p, w->from), &p.plans[nth]);
        ck_assert_msg(p.source || p.note, "%s: neither source nor note", w->name);
        policy_clear(&p);
    }
}

/* What a few of them have besides. */
START_TEST(bundled_details)
{
    policy p;
    trace_error e = {0};
    ck_assert_int_eq(policy_load(&p, "bf16-stochastic", 0, &e), 0);
    ck_assert_uint_eq(p.plans[0].optimizer.n_variants, 2);
    ck_assert_str_eq(p.plans[0].optimizer.variants[1]->name, "ieee");
    policy_clear(&p);
    ck_assert_int_eq(policy_load(&p, "deepspeed-fp16", 0, &e), 0);
    ck_assert_int_eq(p.plans[0].scaler.order, MPSIM_UPDATE_BEFORE_UNSCALE);
    ck_assert_int_eq(p.plans[0].scaler.growth_rule, MPSIM_GROWTH_INTERVAL);
    policy_clear(&p);
    ck_assert_int_eq(policy_load(&p, "deepseek-v3-fp8", 0, &e), 0);
    ck_assert_ptr_null(placed(&p.plans[0], LAYER_LINEAR, "lm_head")->recipe[TRAIN_ACT]);
    ck_assert_ptr_nonnull(placed(&p.plans[0], LAYER_LINEAR, "layers.0.up")->recipe[TRAIN_ACT]);
    policy_clear(&p);
    ck_assert_int_eq(policy_load(&p, "fp32-bf16-fp16", 0, &e), 0);
    ck_assert_str_eq(policy_plan(&p, 0)->precision, "fp32");
    ck_assert_str_eq(policy_plan(&p, 1)->precision, "fp32");
    ck_assert_str_eq(policy_plan(&p, 1000)->precision, "fp32");
    ck_assert_str_eq(policy_plan(&p, 1001)->precision, "bf16");
    ck_assert_str_eq(policy_plan(&p, 6000)->precision, "bf16");
    ck_assert_str_eq(policy_plan(&p, 6001)->precision, "fp16");
    ck_assert_str_eq(policy_plan(&p, UINT64_MAX)->precision, "fp16");
    policy_clear(&p);
}

/* What enters the products of a linear layer in the middle. */
START_TEST(bundled_blocks)
{
    static const struct {
        const char *name, *act, *weight, *agrad;
        unsigned hadamard, promote;
    } rows[] = {{"te-nvfp4", "nvfp4", "nvfp4-2d", "nvfp4-sr", 16, 0},
                {"te-nvfp4-without-rht", "nvfp4", "nvfp4-2d", "nvfp4-sr", 0, 0},
                {"te-nvfp4-without-2d", "nvfp4", "nvfp4", "nvfp4-sr", 16, 0},
                {"te-nvfp4-without-sr", "nvfp4", "nvfp4-2d", "nvfp4", 16, 0},
                {"nvfp4-pretraining", "nvfp4", "nvfp4-2d", "nvfp4-sr", 16, 0},
                {"torchao-nvfp4", "nvfp4-torchao", "nvfp4-torchao", "nvfp4-torchao", 0, 0},
                {"te-mxfp8", "mxfp8", "mxfp8", "mxfp8", 0, 0},
                {"mxfp8-floor", "mxfp8-floor", "mxfp8-floor", "mxfp8-floor", 0, 0},
                {"mxfp8-even", "mxfp8-even", "mxfp8-even", "mxfp8-even", 0, 0},
                {"mxfp8-ceil", "mxfp8-ceil", "mxfp8-ceil", "mxfp8-ceil", 0, 0},
                {"mxfp8-rceil", "mxfp8-rceil", "mxfp8-rceil", "mxfp8-rceil", 0, 0},
                {"deepseek-v3-fp8", "te-block-1x128", "te-block-128x128", "te-block-1x128", 0, 128},
                {"deepseek-v3-fp8-f32", "deepseek-1x128", "deepseek-128x128", "deepseek-1x128", 0, 128},
                {"deepseek-v3-fp8-ue8m0", "deepgemm-1x128", "deepgemm-128x128", "deepgemm-1x128", 0, 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        policy p;
        trace_error e = {0};
        ck_assert_int_eq(policy_load(&p, rows[i].name, 0, &e), 0);
        const train_placement *to = placed(&p.plans[0], LAYER_LINEAR, "layers.7.up");
        same_word(rows[i].name, "act", to->recipe[TRAIN_ACT]->name, rows[i].act);
        same_word(rows[i].name, "weight", to->recipe[TRAIN_WEIGHT]->name, rows[i].weight);
        same_word(rows[i].name, "agrad", to->recipe[TRAIN_AGRAD]->name, rows[i].agrad);
        same_number(rows[i].name, "hadamard", to->hadamard, rows[i].hadamard);
        same_number(rows[i].name, "promote", to->promote, rows[i].promote);
        ck_assert_ptr_null(placed(&p.plans[0], LAYER_NORM, "layers.7.norm")->recipe[TRAIN_ACT]);
        policy_clear(&p);
    }
}

/* Whether a layer of a network with layers of the numbers first to last has its recipe. */
static int is_quantised(const char *keys, uint64_t first, uint64_t last, const char *layer)
{
    policy p;
    char text[256];
    const policy_depth d = {1, first, last};
    (void)snprintf(text, sizeof text, "precision: nvfp4\nfirst_last_layers_bf16: true\n%s", keys);
    load(&p, text);
    train_placement to = *placed(&p.plans[0], LAYER_LINEAR, layer);
    policy_plan_keep_ends(&p.plans[0], &d, layer, &to);
    const int quantised = to.recipe[TRAIN_ACT] != NULL;
    ck_assert_int_eq(quantised, to.hadamard == 16);
    policy_clear(&p);
    return quantised;
}

START_TEST(layers_at_the_ends)
{
    static const char two_eight[] = "num_layers_at_start_in_bf16: 3.2 %\nnum_layers_at_end_in_bf16: 12.9 %\n";
    static const struct {
        const char *keys;
        uint64_t first, last;
        const char *layer;
        int quantised;
    } rows[] = {{"", 0, 3, "layers.0.up", 0},
                {"", 0, 3, "layers.1.up", 1},
                {"", 0, 3, "model.layers.2.mlp.fc1", 1},
                {"", 0, 3, "layers.3.up", 0},
                {"", 1, 4, "fc1", 0},
                {"", 1, 4, "fc2", 1},
                {"", 1, 4, "fc4", 0},
                {"", 0, 3, "head", 1},
                {"", 0, 3, "layers.12345678901234567890.up", 1},
                {"num_layers_at_start_in_bf16: 0\nnum_layers_at_end_in_bf16: 4\n", 0, 9, "h.0.fc", 1},
                {"num_layers_at_start_in_bf16: 0\nnum_layers_at_end_in_bf16: 4\n", 0, 9, "h.5.fc", 1},
                {"num_layers_at_start_in_bf16: 0\nnum_layers_at_end_in_bf16: 4\n", 0, 9, "h.6.fc", 0},
                {two_eight, 0, 61, "h.1.fc", 0},
                {two_eight, 0, 61, "h.2.fc", 1},
                {two_eight, 0, 61, "h.53.fc", 1},
                {two_eight, 0, 61, "h.54.fc", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(is_quantised(rows[i].keys, rows[i].first, rows[i].last, rows[i].layer) == rows[i].quantised,
                      "row %zu", i);
    policy_depth d = {0, 0, 0};
    ck_assert_int_eq(policy_depth_add(&d, "head"), 0);
    ck_assert_int_eq(policy_depth_add(&d, "h.7.fc"), 1);
    ck_assert_int_eq(policy_depth_add(&d, "h.7.proj"), 0);
    ck_assert_int_eq(policy_depth_add(&d, "h.11.fc"), 1);
    ck_assert_int_eq(policy_depth_add(&d, "h.9.fc"), 0);
    ck_assert_uint_eq(d.first, 7);
    ck_assert_uint_eq(d.last, 11);
}

START_TEST(bundled_all)
{
    DIR *d = opendir(test_source_path("data/policies"));
    size_t files = 0, names = 0;
    ck_assert_ptr_nonnull(d);
    for (struct dirent *f; (f = readdir(d)) != NULL;) {
        const char *dot = strrchr(f->d_name, '.');
        char name[256];
        if (!dot || strcmp(dot, ".yaml") != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(dot - f->d_name), f->d_name);
        ck_assert_msg(rows_of(name) > 0, "%s is not in the table of this test", name);
        files++;
    }
    closedir(d);
    for (size_t i = 0; i < WANTS; i++)
        names += i == 0 || strcmp(wants[i - 1].name, wants[i].name) != 0;
    ck_assert_uint_eq(files, names);
}

/* ---- layers ---- */

START_TEST(kinds_by_name)
{
    static const struct {
        const char *name;
        int rank;
        layer_kind kind;
    } rows[] = {
        {"bn1", 4, LAYER_BATCHNORM},
        {"layer1.0.bn2", 1, LAYER_BATCHNORM},
        {"BatchNorm_0", 1, LAYER_BATCHNORM},
        {"batch_norm", 1, LAYER_BATCHNORM},
        {"ln1", 1, LAYER_NORM},
        {"transformer.ln_f", 1, LAYER_NORM},
        {"lnf", 1, LAYER_NORM},
        {"input_layernorm", 1, LAYER_NORM},
        {"LayerNorm", 2, LAYER_NORM},
        {"q_norm", 1, LAYER_NORM},
        {"attn.softmax", -1, LAYER_SOFTMAX},
        {"log_softmax", -1, LAYER_SOFTMAX},
        {"embed_tokens", 2, LAYER_EMBEDDING},
        {"word_embeddings", 2, LAYER_EMBEDDING},
        {"wte", 2, LAYER_EMBEDDING},
        {"tok", 2, LAYER_EMBEDDING},
        {"pos", 2, LAYER_EMBEDDING},
        {"loss", -1, LAYER_LOSS},
        {"nll_loss", -1, LAYER_LOSS},
        {"conv1", 2, LAYER_CONV},
        {"features.Conv2d", 4, LAYER_CONV},
        /* not by name: by the rank of the weight */
        {"conv1_bn", 1, LAYER_BATCHNORM},
        {"bn_conv1", 1, LAYER_BATCHNORM},
        {"tok_emb", 2, LAYER_EMBEDDING},
        {"embed_out", 2, LAYER_LINEAR},
        {"unembed", 2, LAYER_LINEAR},
        {"conv1_relu", -1, LAYER_OTHER},
        {"fc1", 2, LAYER_LINEAR},
        {"attn.qkv", 2, LAYER_LINEAR},
        {"lm_head", 2, LAYER_LINEAR},
        {"downsample.0", 4, LAYER_CONV},
        {"x", 3, LAYER_CONV},
        {"x", 5, LAYER_CONV},
        {"x", 1, LAYER_NORM},
        {"x", 0, LAYER_OTHER},
        {"x", 6, LAYER_OTHER},
        {"relu", -1, LAYER_OTHER},
        /* the last component only */
        {"conv1.fc", 2, LAYER_LINEAR},
        {"embed.proj", 2, LAYER_LINEAR},
        {"", -1, LAYER_OTHER},
        {".", 2, LAYER_LINEAR},
        {"bnorm.", 2, LAYER_LINEAR},
        {"bnx", 2, LAYER_LINEAR},
        {"tokens", 2, LAYER_LINEAR},
        {"line", 2, LAYER_LINEAR},
    };
    policy p;
    load(&p, "precision: no\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const layer_kind k = policy_layer(&p.plans[0], rows[i].name, rows[i].rank);
        ck_assert_msg(k == rows[i].kind, "'%s', rank %d: %s, not %s", rows[i].name, rows[i].rank,
                      policy_layer_kind_name(k), policy_layer_kind_name(rows[i].kind));
    }
    policy_clear(&p);
    /* the policy's word before the name's; the first pattern that fits; the whole name */
    load(&p, "layer_kinds: {'blocks.*.bn1': linear, 'blocks.*': conv, '*norm': Other,\n"
             "  '[': loss}\n");
    const plan *q = &p.plans[0];
    ck_assert_int_eq((int)policy_layer(q, "blocks.3.bn1", 1), LAYER_LINEAR);
    ck_assert_int_eq((int)policy_layer(q, "blocks.3.fc", 2), LAYER_CONV);
    ck_assert_int_eq((int)policy_layer(q, "final_norm", 1), LAYER_OTHER);
    ck_assert_int_eq((int)policy_layer(q, "bn1", 1), LAYER_BATCHNORM);
    ck_assert_int_eq((int)policy_layer(q, "Blocks.3.fc", 2), LAYER_LINEAR);
    policy_clear(&p);
    for (int k = 0; k < LAYER_KINDS; k++) {
        layer_kind found = LAYER_KINDS;
        ck_assert_int_eq(policy_layer_kind_find(&found, policy_layer_kind_name((layer_kind)k)), 0);
        ck_assert_int_eq((int)found, k);
    }
    layer_kind none = LAYER_KINDS;
    ck_assert_int_ne(policy_layer_kind_find(&none, "dense"), 0);
    ck_assert_int_ne(policy_layer_kind_find(&none, ""), 0);
}

/* Which roles are in the compute format, in the order act out weight agrad dgrad wgrad. */
typedef struct low_row {
    const char *autocast;
    const char *low[LAYER_KINDS]; /* linear conv batchnorm norm softmax embedding loss other */
} low_row;

#define ALL_LOW "111111"
#define NO_LOW "000000"
#define PASSED "110110" /* activations as they come; parameters and their gradients in fp32 */

static const low_row lows[] = {
    {"none", {NO_LOW, NO_LOW, NO_LOW, NO_LOW, NO_LOW, NO_LOW, NO_LOW, NO_LOW}},
    /* ATen/autocast_mode.h: convolutions and matrix products; layer and group norm, softmax and
     * losses in fp32; batch norm and embedding on no list */
    {"torch", {ALL_LOW, ALL_LOW, PASSED, NO_LOW, NO_LOW, NO_LOW, NO_LOW, PASSED}},
    {"all", {ALL_LOW, ALL_LOW, ALL_LOW, ALL_LOW, ALL_LOW, ALL_LOW, NO_LOW, ALL_LOW}},
    /* Keras: parameters of norms with autocast=False; Apex convert_network: _BatchNorm only */
    {"norms-fp32", {ALL_LOW, ALL_LOW, PASSED, PASSED, ALL_LOW, ALL_LOW, NO_LOW, ALL_LOW}},
    {"batchnorm-fp32", {ALL_LOW, ALL_LOW, PASSED, ALL_LOW, ALL_LOW, ALL_LOW, NO_LOW, ALL_LOW}},
    {"megatron", {ALL_LOW, ALL_LOW, ALL_LOW, ALL_LOW, NO_LOW, ALL_LOW, NO_LOW, ALL_LOW}},
};

START_TEST(low_roles)
{
    const low_row *row = &lows[_i];
    char text[256];
    policy p;
    snprintf(text, sizeof text, "precision: fp16\n%sautocast: %s\nkeep_fp32: [k, 'h*']\n",
             strcmp(row->autocast, "none") == 0 ? "" : "params: fp16\n", row->autocast);
    load(&p, text);
    const plan *q = &p.plans[0];
    for (int k = 0; k < LAYER_KINDS; k++)
        for (int role = 0; role < TRAIN_ROLES; role++) {
            const int low = row->low[k][role] == '1';
            ck_assert_msg(!is_low(q, (layer_kind)k, "x", (train_role)role) == !low, "%s, %s, role %d", row->autocast,
                          policy_layer_kind_name((layer_kind)k), role);
            ck_assert(!is_low(q, (layer_kind)k, "k", (train_role)role));
            ck_assert(!is_low(q, (layer_kind)k, "h.1", (train_role)role));
        }
    for (int k = 0; k < LAYER_KINDS; k++) {
        same_word(row->autocast, "storage", placed(q, (layer_kind)k, "x")->storage.name,
                  row->low[k][TRAIN_WEIGHT] == '1' ? "fp16" : F32);
        ck_assert_str_eq(placed(q, (layer_kind)k, "head")->storage.name, F32);
        ck_assert_str_eq(placed(q, (layer_kind)k, "K")->storage.name, /* globs know case */
                         row->low[k][TRAIN_WEIGHT] == '1' ? "fp16" : F32);
    }
    policy_clear(&p);
}

/* A schedule's entry inherits a list of patterns itself; one that is written again is another. */
START_TEST(inherited_patterns)
{
    policy p;
    load(&p, "keep_fp32: [head, 'b*']\nlayer_kinds: {'x*': conv}\nschedule:\n"
             "  - {step: 2, clip: 1}\n  - {step: 3, keep_fp32: [head, 'b*']}\n");
    ck_assert_uint_eq(p.count, 3);
    const policy_patterns *first = p.plans[0].keep_fp32, *last = p.plans[2].keep_fp32;
    ck_assert_ptr_eq(p.plans[1].keep_fp32, first);
    ck_assert_ptr_ne(last, first);
    ck_assert_uint_eq(last->count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(first->items[i].glob, i ? "b*" : "head");
        ck_assert_str_eq(last->items[i].glob, first->items[i].glob);
    }
    for (size_t i = 0; i < p.count; i++) {
        ck_assert_ptr_eq(p.plans[i].layer_kinds, p.plans[0].layer_kinds);
        ck_assert_ptr_null(p.plans[i].fp8_exclude);
    }
    ck_assert_str_eq(p.plans[0].layer_kinds->items[0].glob, "x*");
    ck_assert_int_eq(p.plans[0].layer_kinds->items[0].kind, LAYER_CONV);
    policy_clear(&p);
}

/* Apex O2: fp16 everywhere but the parameters of batch norm (convert_network). */
START_TEST(apex_o2)
{
    policy p;
    load(&p, "opt_level: O2\n");
    const plan *q = &p.plans[0];
    ck_assert_str_eq(placed(q, LAYER_BATCHNORM, "bn1")->storage.name, F32);
    ck_assert(!is_low(q, LAYER_BATCHNORM, "bn1", TRAIN_WGRAD));
    ck_assert(is_low(q, LAYER_BATCHNORM, "bn1", TRAIN_ACT));
    ck_assert_str_eq(placed(q, LAYER_LINEAR, "fc")->storage.name, "fp16");
    ck_assert_str_eq(placed(q, LAYER_NORM, "ln")->storage.name, "fp16");
    ck_assert_str_eq(placed(q, LAYER_EMBEDDING, "tok")->storage.name, "fp16");
    ck_assert(is_low(q, LAYER_SOFTMAX, "softmax", TRAIN_OUT));
    ck_assert(!is_low(q, LAYER_LOSS, "loss", TRAIN_ACT));
    policy_clear(&p);
}

/* The block recipes of act, weight and agrad of linear layers. */
static const struct recipe_case {
    const char *keys, *block[3], *element[3];
} recipe_cases[] = {
    {"fp8: hybrid", {"te-current", "te-current", "te-current-e5m2"}, {"e4m3", "e4m3", "e5m2"}},
    {"fp8: e4m3", {"te-current", "te-current", "te-current"}, {"e4m3", "e4m3", "e4m3"}},
    {"fp8: hybrid\nfp8_recipe: current", {"te-current", "te-current", "te-current-e5m2"}, {"e4m3", "e4m3", "e5m2"}},
    {"fp8: e4m3\nfp8_recipe: tensorwise", {"te-current", "te-current", "te-current"}, {"e4m3", "e4m3", "e4m3"}},
    {"fp8_recipe: blockwise", {"te-block-1x128", "te-block-128x128", "te-block-1x128"}, {"e4m3", "e4m3", "e4m3"}},
    {"fp8: hybrid\nfp8_recipe: blockwise",
     {"te-block-1x128", "te-block-128x128", "te-block-1x128-e5m2"},
     {"e4m3", "e4m3", "e5m2"}},
    {"fp8_recipe: mxfp8", {"mxfp8", "mxfp8", "mxfp8"}, {"e4m3", "e4m3", "e4m3"}},
    {"fp8_recipe: mxfp6", {"mxfp6-e2m3", "mxfp6-e2m3", "mxfp6-e3m2"}, {"e2m3", "e2m3", "e3m2"}},
    {"fp8_recipe: mxfp4", {"mxfp4", "mxfp4", "mxfp4"}, {"e2m1", "e2m1", "e2m1"}},
    {"fp8_recipe: nvfp4", {"nvfp4", "nvfp4-2d", "nvfp4-sr"}, {"e2m1", "e2m1", "e2m1"}},
    {"fp8_recipe: torchao-tensorwise",
     {"torchao-tensorwise", "torchao-tensorwise", "torchao-tensorwise-e5m2"},
     {"e4m3", "e4m3", "e5m2"}},
    {"fp8_recipe: torchao-rowwise",
     {"torchao-rowwise", "torchao-rowwise", "torchao-rowwise"},
     {"e4m3", "e4m3", "e4m3"}},
    {"fp8_recipe: ms-amp", {"ms-amp", "ms-amp", NULL}, {"e4m3", "e4m3", NULL}},
};

START_TEST(block_recipes)
{
    static const train_role slots[] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};
    const struct recipe_case *c = &recipe_cases[_i];
    char text[256];
    policy p;
    snprintf(text, sizeof text, "precision: bf16\n%s\nkeep_fp32: [k]\nfp8_exclude: ['e.*']\n", c->keys);
    load(&p, text);
    const plan *q = &p.plans[0];
    for (size_t i = 0; i < 3; i++) {
        const mpsim_block_recipe *b = placed(q, LAYER_LINEAR, "fc")->recipe[slots[i]];
        ck_assert_msg(b != NULL, "%s: slot %zu", c->keys, i);
        if (c->block[i]) {
            same_word(c->keys, "recipe", b->name, c->block[i]);
            same_word(c->keys, "element", b->element, c->element[i]);
        }
        ck_assert_int_eq(mpsim_block_check(b), MPSIM_OK);
        ck_assert_ptr_null(placed(q, LAYER_LINEAR, "k")->recipe[slots[i]]);
        ck_assert_ptr_null(placed(q, LAYER_LINEAR, "e.1.2")->recipe[slots[i]]);
        for (int k = 1; k < LAYER_KINDS; k++)
            ck_assert_ptr_null(placed(q, (layer_kind)k, "fc")->recipe[slots[i]]);
    }
    ck_assert_ptr_null(placed(q, LAYER_LINEAR, "fc")->recipe[TRAIN_OUT]);
    ck_assert_ptr_null(placed(q, LAYER_LINEAR, "fc")->recipe[TRAIN_DGRAD]);
    ck_assert_ptr_null(placed(q, LAYER_LINEAR, "fc")->recipe[TRAIN_WGRAD]);
    /* excluded from FP8, still in the compute format */
    ck_assert(is_low(q, LAYER_LINEAR, "e.1.2", TRAIN_ACT));
    policy_clear(&p);
    load(&p, "precision: bf16\n");
    ck_assert_ptr_null(placed(&p.plans[0], LAYER_LINEAR, "fc")->recipe[TRAIN_ACT]);
    policy_clear(&p);
}

int main(void)
{
    int code;
    TCase *bundle = test_case("bundled", 20), *layers = test_case("layers", 20);
    tcase_add_test(bundle, bundled);
    tcase_add_test(bundle, bundled_details);
    tcase_add_test(bundle, bundled_blocks);
    tcase_add_test(bundle, layers_at_the_ends);
    tcase_add_test(bundle, bundled_all);
    tcase_add_test(layers, kinds_by_name);
    tcase_add_loop_test(layers, low_roles, 0, sizeof lows / sizeof lows[0]);
    tcase_add_test(layers, apex_o2);
    tcase_add_test(layers, inherited_patterns);
    tcase_add_loop_test(layers, block_recipes, 0, sizeof recipe_cases / sizeof recipe_cases[0]);
    if (!mkdtemp(folder))
        return 99;
    snprintf(path, sizeof path, "%s/case.yaml", folder);
    setenv("MPSIM_POLICIES", test_source_path("data/policies"), 1);
    code = test_main("policy", (TCase *const[]){bundle, layers, NULL});
    unlink(path);
    rmdir(folder);
    return code;
}
