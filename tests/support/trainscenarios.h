/* trainscenarios.h -- the runs that train/t-oracle.c compares. */
#pragma once

#include "support.h"

#include <stdio.h>
#include <string.h>
#include <train/train.h>

enum {
    FP8 = 1,         /* copies with one scale, delayed; gradients in e5m2 */
    FP8_ALL_ONE = 2, /* in e4m3, too                                      */
    NO_HISTORY = 4,  /* scales of this step                               */
    MXFP8 = 8,
    NVFP4 = 16,
    DEEPSEEK = 32, /* blocks of 128                                     */
    TF32 = 64,
    LOSS_LOW = 128, /* the loss, or normalisation, in `low`              */
    NORM_LOW = 256,
    LOW_STATE = 512, /* moments in the format of the parameter            */
    ODD = 1024,      /* batch, gain, loss factor and seed                 */
    DAMPENED = 2048,
    STOCHASTIC = 4096, /* parameters stored so */
    HADAMARD = 8192,   /* NVFP4 as published: transform, square blocks, stochastic gradients */
    PROMOTED = 16384,  /* codes multiplied, sums moved every 128 */
    QUOTIENT = 32768   /* DEEPSEEK with its binary32 scales     */
};

typedef struct scenario {
    const char *name, *net;
    uint32_t depth, width, batchnorm;
    const char *low;     /* of activations, their gradients and what enters products */
    const char *storage; /* of parameters of linear layers and convolutions         */
    train_master master;
    const char *scaler; /* as mpsim_scaler_parse takes it                          */
    int algorithm;
    double lr, weight_decay, max_norm; /* max_norm 0: not clipped                   */
    unsigned flags;
    const char *math, *arch;
    uint64_t steps;
    int skips; /* 1: at least one step must be skipped and one taken      */
} scenario;

#define SGD MPSIM_OPTIM_SGD
#define ADAMW MPSIM_OPTIM_ADAMW

static const scenario scenarios[] = {
    {"fp32", "mlp", 2, 24, 0, "binary32", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0, 0, "binary32", "hopper",
     12, 0},
    {"fp32 sequential, AdamW", "mlp", 1, 24, 1, "binary32", "binary32", TRAIN_NO_MASTER, "none", ADAMW, 0.013, 0.017, 0,
     0, "binary32", "fp32-sequential", 12, 0},
    {"tf32", "mlp", 2, 24, 0, "binary32", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 1e-3, 0, TF32, "binary32",
     "hopper", 6, 0},
    {"fp16 amp", "mlp", 2, 24, 0, "fp16", "binary32", TRAIN_NO_MASTER, "torch:init=2^24,window=3", SGD, 0.1, 1e-4, 0, 0,
     "binary32", "hopper", 14, 1},
    {"fp16 masters", "mlp", 2, 24, 1, "fp16", "fp16", TRAIN_MASTER, "torch:init=2^22,window=4", ADAMW, 0.01, 0.01, 0, 0,
     "binary32", "hopper", 12, 1},
    {"fp16 without masters", "mlp", 3, 24, 0, "fp16", "fp16", TRAIN_NO_MASTER, "torch:init=2^20,window=4", SGD, 0.05, 0,
     0, 0, "binary32", "hopper", 12, 1},
    {"fp16 without masters, AdamW", "mlp", 1, 20, 0, "fp16", "fp16", TRAIN_NO_MASTER, "static:1024", ADAMW, 0.01, 0.01,
     0, LOW_STATE, "binary32", "hopper", 8, 0},
    {"fp16 everywhere", "mlp", 2, 24, 1, "fp16", "fp16", TRAIN_NO_MASTER, "static:1024", SGD, 0.05, 0, 0,
     LOSS_LOW | NORM_LOW | LOW_STATE, "fp16", "hopper", 12, 0},
    {"bf16", "mlp", 2, 24, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0, 0, "binary32", "hopper", 12,
     0},
    {"bf16 masters, AdamW", "mlp", 2, 24, 1, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW, 0.01, 0.1, 0, NORM_LOW,
     "binary32", "hopper", 12, 0},
    {"bf16 split masters", "mlp", 1, 24, 0, "bf16", "bf16", TRAIN_SPLIT_MASTER, "none", SGD, 0.1, 0, 0, 0, "binary32",
     "hopper", 8, 0},
    {"bf16 stochastic", "mlp", 2, 24, 0, "bf16", "bf16", TRAIN_NO_MASTER, "none", SGD, 0.01, 1e-3, 0, STOCHASTIC,
     "binary32", "hopper", 8, 0},
    {"bf16 stochastic, AdamW", "mlp", 1, 24, 1, "bf16", "bf16", TRAIN_NO_MASTER, "none", ADAMW, 0.001, 0.01, 0,
     STOCHASTIC | NORM_LOW | ODD, "binary32", "hopper", 6, 0},
    {"fp16, DeepSpeed's scaler", "mlp", 2, 24, 0, "fp16", "fp16", TRAIN_MASTER,
     "deepspeed:init=2^18,window=2,hysteresis=2", SGD, 0.1, 0, 0, ODD, "binary32", "hopper", 14, 1},
    {"fp16 clipped", "mlp", 2, 24, 0, "fp16", "binary32", TRAIN_NO_MASTER, "torch:init=2^22,window=4", SGD, 0.1, 0, 0.5,
     DAMPENED, "binary32", "hopper", 12, 1},
    {"fp8 hybrid", "mlp", 2, 24, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0, FP8, "binary32",
     "hopper", 12, 0},
    {"fp8 e4m3 on fp16", "mlp", 2, 40, 1, "fp16", "fp16", TRAIN_MASTER, "torch:init=2^18,window=4", ADAMW, 0.01, 0.01,
     1, FP8 | FP8_ALL_ONE, "binary32", "hopper", 10, 0},
    {"fp8 current scaling", "mlp", 1, 24, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0,
     FP8 | NO_HISTORY, "binary32", "hopper", 5, 0},
    {"mxfp8", "mlp", 2, 40, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0, MXFP8, "binary32", "hopper",
     6, 0},
    {"fp8 in blocks of 128", "mlp", 1, 140, 0, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW, 0.01, 0.1, 0, DEEPSEEK,
     "binary32", "hopper", 4, 0},
    {"nvfp4", "mlp", 2, 24, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0, NVFP4, "binary32", "hopper",
     4, 0},
    {"nvfp4 as published", "mlp", 2, 40, 0, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW, 0.01, 0.1, 0, NVFP4 | HADAMARD,
     "binary32", "hopper", 4, 0},
    {"nvfp4 as published, tails", "mlp", 1, 24, 0, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.1, 0, 0,
     NVFP4 | HADAMARD | ODD, "binary32", "hopper", 4, 0},
    {"fp8 in blocks of 128, promoted", "mlp", 2, 150, 0, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW, 0.01, 0.1, 0,
     DEEPSEEK | PROMOTED, "binary32", "hopper", 3, 0},
    {"fp8 in blocks of 128, promoted, binary32 scales", "mlp", 1, 150, 0, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW,
     0.01, 0.1, 0, DEEPSEEK | PROMOTED | QUOTIENT, "binary32", "hopper", 3, 0},
    {"cnn nvfp4 as published", "cnn", 2, 4, 1, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.05, 0, 0,
     NVFP4 | HADAMARD, "binary32", "hopper", 3, 0},
    {"cnn fp8 in blocks of 128, promoted", "cnn", 2, 4, 1, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.05, 0, 0,
     DEEPSEEK | PROMOTED, "binary32", "hopper", 3, 0},
    {"cnn mxfp8", "cnn", 2, 4, 1, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.05, 0, 0, MXFP8, "binary32",
     "hopper", 3, 0},
    {"cnn fp32", "cnn", 2, 4, 0, "binary32", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.05, 0, 0, 0, "binary32",
     "hopper", 4, 0},
    {"cnn fp32 that explodes", "cnn", 2, 4, 0, "binary32", "binary32", TRAIN_NO_MASTER, "none", SGD, 0x1p60, 0, 0, ODD,
     "binary32", "hopper", 4, 0},
    {"cnn fp16", "cnn", 2, 4, 1, "fp16", "binary32", TRAIN_NO_MASTER, "torch:init=2^24,window=3", SGD, 0.05, 1e-4, 0, 0,
     "binary32", "hopper", 8, 1},
    {"cnn bf16", "cnn", 1, 6, 1, "bf16", "bf16", TRAIN_MASTER, "none", ADAMW, 0.01, 0.01, 0, NORM_LOW, "binary32",
     "hopper", 4, 0},
    {"cnn fp8", "cnn", 2, 4, 1, "bf16", "binary32", TRAIN_NO_MASTER, "none", SGD, 0.05, 0, 0, FP8, "binary32", "hopper",
     4, 0},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios, BATCH = 16 };

/* The last row that fits counts. */
static const struct {
    unsigned flags;
    const char *act, *weight, *agrad;
} recipes[] = {
    {FP8, "te-current", "te-current", "te-current-e5m2"},
    {FP8 | FP8_ALL_ONE, "te-current", "te-current", "te-current"},
    {MXFP8, "mxfp8", "mxfp8", "mxfp8"},
    {NVFP4, "nvfp4", "nvfp4", "nvfp4"},
    {NVFP4 | HADAMARD, "nvfp4", "nvfp4-2d", "nvfp4-sr"},
    {DEEPSEEK, "te-block-1x128", "te-block-128x128", "te-block-1x128"},
    {DEEPSEEK | QUOTIENT, "deepseek-1x128", "deepseek-128x128", "deepseek-1x128"},
};

static void place(const scenario *s, const train_layer *l, train_placement *p)
{
    const int norm = l->type == TRAIN_BATCHNORM && !(s->flags & NORM_LOW);
    const int loss = l->type == TRAIN_LOSS && !(s->flags & LOSS_LOW);
    const mpsim_format *wide = mpsim_format_find("binary32"), *low = mpsim_format_find(s->low);
    for (int role = 0; role < TRAIN_ROLES; role++)
        p->format[role] = loss ? *wide : *low;
    p->storage = norm ? *wide : *mpsim_format_find(s->storage);
    if (norm)
        p->format[TRAIN_WEIGHT] = p->format[TRAIN_WGRAD] = *wide;
    p->kept = s->master == TRAIN_NO_MASTER ? p->storage : *wide;
    p->state = s->flags & LOW_STATE ? p->kept : *wide;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if ((s->flags & recipes[i].flags) == recipes[i].flags && (l->type == TRAIN_LINEAR || l->type == TRAIN_CONV)) {
            p->recipe[TRAIN_ACT] = mpsim_block_find(recipes[i].act);
            p->recipe[TRAIN_WEIGHT] = mpsim_block_find(recipes[i].weight);
            p->recipe[TRAIN_AGRAD] = mpsim_block_find(recipes[i].agrad);
            p->hadamard = s->flags & HADAMARD ? 16 : 0;
            p->promote = s->flags & PROMOTED ? 128 : 0;
        }
}

static void settle(const scenario *s, train_settings *t)
{
    train_settings_init(t, s->net);
    t->depth = s->depth;
    t->width = s->width;
    t->batchnorm = s->batchnorm;
    t->batch = s->flags & ODD ? 11 : BATCH;
    t->steps = s->steps * (test_expensive() ? 10 : 1);
    t->seed = s->flags & ODD ? UINT64_C(0x123456789abcdef0) : 5;
    t->gain = s->flags & ODD ? 2.1 : 1;
    t->loss_factor = s->flags & ODD ? 0.3 : 1;
    t->tf32 = (s->flags & TF32) != 0;
    (void)snprintf(t->math, sizeof t->math, "%s", s->math);
    (void)snprintf(t->arch, sizeof t->arch, "%s", s->arch);
}

static void plan_of(const scenario *s, const train_run *r, train_plan *p)
{
    memset(p, 0, sizeof *p);
    (void)snprintf(p->precision, sizeof p->precision, "%s", s->low);
    for (size_t i = 0; i < r->n_layers; i++)
        place(s, &r->layers[i], &p->layers[i]);
    p->master = s->master;
    ck_assert_int_eq(mpsim_scaler_parse(&p->scaler, s->scaler), MPSIM_OK);
    mpsim_optim_init(&p->optimizer, (mpsim_optim_algorithm)s->algorithm, mpsim_optim_variant_find("ieee"));
    if (s->flags & STOCHASTIC)
        p->optimizer.store = MPSIM_STORE_STOCHASTIC;
    p->optimizer.lr = s->lr;
    p->optimizer.momentum = s->algorithm == SGD && !(s->flags & ODD) ? 0.9 : 0;
    p->optimizer.dampening = s->flags & DAMPENED ? 0.3 : 0;
    p->optimizer.weight_decay = s->weight_decay;
    p->clip = s->max_norm > 0 ? MPSIM_CLIP_TORCH : MPSIM_CLIP_NONE;
    p->max_norm = s->max_norm;
    p->delayed = (s->flags & (FP8 | NO_HISTORY)) == FP8;
    mpsim_delayed_config_init(&p->history, mpsim_format_find("e4m3"));
    p->history.history = 4;
}

static void prepare(const scenario *s, train_run *r, train_plan *p)
{
    char error[TRAIN_ERROR] = "";
    memset(r, 0, sizeof *r);
    settle(s, &r->settings);
    r->n_layers = train_network(&r->settings, r->layers, error);
    ck_assert_msg(r->n_layers > 0, "%s: %s", s->name, error);
    r->plans = p;
    r->n_plans = 1;
    plan_of(s, r, p);
}
