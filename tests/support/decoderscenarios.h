/* decoderscenarios.h -- the runs that train/t-decoder.c compares: a tiny gpt, a tiny llama, and options of both. */
#pragma once

#include "support.h"

#include <stdio.h>
#include <string.h>
#include <train/train.h>

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
    return (train_text){.name = "tiny",
                        .tokens = narrow ? (const void *)narrow_tokens : tokens,
                        .bytes = narrow ? 2 : 4,
                        .trained = TRAINED,
                        .held = HELD,
                        .vocabulary = VOCABULARY,
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

static const char *const nets[] = {"gpt", "llama"};

/* ---- options ---- */

typedef struct option_scenario {
    const char *name, *net, *policy;
    void (*set)(train_settings *s);
    void (*place)(train_run *r);
    uint64_t skips;
} option_scenario;

#define WORD(to, word) (void)snprintf(to, sizeof(to), "%s", word)

static void tiles(train_settings *s)
{
    s->decoder.tile = 3;
}
static void one_tile(train_settings *s)
{
    s->decoder.tile = 64;
}
static void grouped(train_settings *s)
{
    s->decoder.heads = 4, s->decoder.kv_heads = 2;
}
static void one_key(train_settings *s)
{
    s->decoder.heads = 4, s->decoder.kv_heads = 1;
}

static void grouped_tiles(train_settings *s)
{
    one_key(s);
    s->decoder.tile = 5;
}

static void exact_gelu(train_settings *s)
{
    s->decoder.activation = MPSIM_GELU;
}

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

/* More than the lanes of sums: of rows 32, of columns 256. */
static void wide(train_settings *s)
{
    s->width = 40;
    s->depth = 1;
    s->batch = 7;
    s->steps = 2;
    s->gain = 2;
    s->decoder.hidden = 48;
    s->decoder.heads = s->decoder.kv_heads = 1;
    s->decoder.context = 40;
    s->decoder.validation = 1;
}

static void wide_tiles(train_settings *s)
{
    wide(s);
    s->decoder.tile = 36;
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

static void math_bf16(train_settings *s)
{
    WORD(s->math, "bf16");
}

static void math_all(train_settings *s)
{
    WORD(s->math, "fp16");
    WORD(s->decoder.math_norm, "binary32");
    s->decoder.activation = MPSIM_GELU;
}

static void tf32(train_settings *s)
{
    s->tf32 = 1;
}

static void tf32_tiles(train_settings *s)
{
    s->tf32 = 1;
    s->decoder.tile = 3;
}

static void ampere(train_settings *s)
{
    WORD(s->arch, "ampere");
}
static void ada(train_settings *s)
{
    WORD(s->arch, "ada");
}
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

static void volta(train_settings *s)
{
    WORD(s->arch, "volta");
}
static void blackwell(train_settings *s)
{
    WORD(s->arch, "blackwell");
}
static void chains(train_settings *s)
{
    WORD(s->arch, "fp32-sequential");
}

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

static void constant(train_settings *s)
{
    s->decoder.decay = TRAIN_CONSTANT;
}

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
    {"wide", "gpt", "fp32", wide, NULL, 0},
    {"wide, tiles", "llama", "fp32", wide_tiles, NULL, 0},
    {"mixed formats", "gpt", "fp32", NULL, mixed, 0},
    {"mixed formats, tiles", "llama", "fp32", grouped_tiles, mixed, 0},
    {"overflows", "gpt", "pytorch-amp-fp16", NULL, overflowing, 1},
    {"overflows of ranks, accumulated, tiles", "llama", "pytorch-amp-fp16", gathered_tiles, overflowing, 1},
    {"stochastic, accumulated, tiles", "llama", "bf16-stochastic", gathered_tiles, NULL, 0},
    {"Kahan, a ring", "gpt", "bf16-kahan", ring, NULL, 0},
    {"clipped as fairseq does", "llama", "pytorch-amp-fp16", NULL, clipped, 0},
};
