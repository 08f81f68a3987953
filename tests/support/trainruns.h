/* trainruns.h -- runs for tests of the trainer, and their tensors by name. */
#pragma once

#include "support.h"

#include <train/train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs ---- */

typedef struct recipe_of_run {
    const char *net, *low, *kept, *optimizer, *variant, *scaler;
    const char *recipe; /* of linear layers and convolutions, or NULL */
    int delayed, batchnorm;
    mpsim_store store;
    const char *clip;
    const char *then; /* format of a second plan from step 4, or NULL */
} recipe_of_run;

static inline void fill_plan(train_plan *p, const train_run *r, const recipe_of_run *c, const char *low)
{
    mpsim_format f, kept;
    mpsim_optim_algorithm a;
    const mpsim_block_recipe *recipe = c->recipe ? mpsim_block_find(c->recipe) : NULL;
    ck_assert_int_eq(mpsim_format_parse(&f, low), MPSIM_OK);
    ck_assert_int_eq(mpsim_format_parse(&kept, c->kept ? c->kept : low), MPSIM_OK);
    for (size_t i = 0; i < r->n_layers; i++) {
        train_placement *l = &p->layers[i];
        const int product = r->layers[i].type == TRAIN_LINEAR || r->layers[i].type == TRAIN_CONV;
        for (int k = 0; k < TRAIN_ROLES; k++)
            l->format[k] = f;
        l->storage = f;
        l->kept = l->state = kept;
        if (product)
            l->recipe[TRAIN_ACT] = l->recipe[TRAIN_WEIGHT] = l->recipe[TRAIN_AGRAD] = recipe;
    }
    strcpy(p->precision, "test");
    p->master = c->kept ? TRAIN_MASTER : TRAIN_NO_MASTER;
    ck_assert_int_eq(mpsim_optim_parse(&a, c->optimizer), MPSIM_OK);
    mpsim_optim_init(&p->optimizer, a, mpsim_optim_variant_find(c->variant ? c->variant : "ieee"));
    p->optimizer.store = (uint8_t)c->store;
    p->optimizer.lr = a == MPSIM_OPTIM_SGD ? 0.1 : 2e-3;
    p->optimizer.momentum = a == MPSIM_OPTIM_SGD ? 0.9 : 0;
    ck_assert_int_eq(mpsim_scaler_parse(&p->scaler, c->scaler ? c->scaler : "none"), MPSIM_OK);
    p->max_norm = 0.5;
    if (c->clip)
        ck_assert_int_eq(mpsim_clip_parse(&p->clip, c->clip), MPSIM_OK);
    p->delayed = c->delayed;
    mpsim_delayed_config_init(&p->history, mpsim_format_find("e4m3"));
    p->history.history = 4;
}

static inline void make_run(train_run *r, const recipe_of_run *c)
{
    char error[TRAIN_ERROR];
    memset(r, 0, sizeof *r);
    train_settings_init(&r->settings, c->net);
    r->settings.width = 24;
    r->settings.batch = 20;
    r->settings.seed = 11;
    r->settings.batchnorm = (uint32_t)c->batchnorm;
    if (strcmp(c->net, "cnn") == 0)
        r->settings.width = 4;
    r->n_layers = train_network(&r->settings, r->layers, error);
    ck_assert_msg(r->n_layers > 0, "%s", error);
    r->n_plans = c->then ? 2 : 1;
    r->plans = calloc(r->n_plans, sizeof *r->plans);
    ck_assert_ptr_nonnull(r->plans);
    fill_plan(&r->plans[0], r, c, c->low);
    if (c->then) {
        fill_plan(&r->plans[1], r, c, c->then);
        r->plans[1].from = 4;
    }
}

static inline train *begin(const train_run *r, train_engine *e)
{
    char error[TRAIN_ERROR] = "";
    train *t = train_open(r, e, 0, error);
    ck_assert_msg(t != NULL, "%s", error);
    return t;
}

static inline train_step next(train *t)
{
    char error[TRAIN_ERROR] = "";
    train_step s;
    const int code = train_next(t, &s, error);
    ck_assert_msg(code == 0, "%s", error);
    return s;
}

static inline uint64_t digest(train *t, const train_step *s)
{
    char error[TRAIN_ERROR] = "";
    uint64_t all;
    const int code = train_digest_step(t, s, &all, NULL, NULL, error);
    ck_assert_msg(code == 0, "%s", error);
    return all;
}

/* clang-format off */
static const recipe_of_run runs[] = {
    {.net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .scaler = "torch"},
    {.net = "mlp", .low = "binary32", .optimizer = "adamw", .clip = "torch"},
    {.net = "mlp", .low = "bf16", .optimizer = "adamw", .store = MPSIM_STORE_STOCHASTIC},
    {.net = "mlp", .low = "bf16", .optimizer = "adamw", .variant = "optimi",
     .store = MPSIM_STORE_KAHAN},
    {.net = "mlp", .low = "bf16", .kept = "binary32", .optimizer = "adam", .recipe = "te-current",
     .delayed = 1},
    {.net = "mlp", .low = "bf16", .kept = "binary32", .optimizer = "sgd", .recipe = "nvfp4-sr"},
    {.net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .batchnorm = 1,
     .scaler = "torch:init=2^30", .clip = "megatron"},
    {.net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd",
     .scaler = "deepspeed:init=2^30", .clip = "deepspeed"},
    {.net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd",
     .scaler = "deepspeed:init=2^30"},
    {.net = "mlp", .low = "binary32", .optimizer = "adam", .then = "bf16"},
    {.net = "mlp", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .then = "bf16",
     .scaler = "torch:init=2^10,window=3"},
    {.net = "cnn", .low = "fp16", .kept = "binary32", .optimizer = "sgd", .batchnorm = 1,
     .scaler = "torch"},
    {.net = "cnn", .low = "binary32", .optimizer = "sgd"},
    {.net = "cnn", .low = "bf16", .kept = "binary32", .optimizer = "sgd", .recipe = "te-current",
     .delayed = 1, .batchnorm = 1},
    {.net = "cnn", .low = "bf16", .kept = "binary32", .optimizer = "sgd", .recipe = "mxfp8"},
};
/* clang-format on */

enum { RUNS = sizeof runs / sizeof *runs };

/* ---- tensors by name ---- */

typedef struct wanted {
    const char *name;
    train_tensor *tensor;
    size_t rank, shape[4];
} wanted;

static inline int look(const train_item *x, void *context)
{
    wanted *w = context;
    if (strcmp(x->name, w->name) != 0)
        return 0;
    w->tensor = x->tensor;
    w->rank = x->rank;
    memcpy(w->shape, x->shape, sizeof w->shape);
    return 1;
}

static inline float *values_of(train *t, const char *name, size_t *n)
{
    wanted w = {.name = name};
    train_engine *e = train_engine_of(t);
    ck_assert_msg(train_visit(t, look, &w) == 1, "no %s", name);
    *n = w.tensor->rows * w.tensor->cols;
    float *values = malloc(*n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    ck_assert_int_eq(e->ops->get(e, w.tensor, values), 0);
    return values;
}

/* ---- checkpoints ---- */

typedef struct kept_state {
    float *values[400];
    size_t sizes[400]; /* bytes */
    size_t n, at;
    train_engine *e;
    int put;
} kept_state;

static inline int keep(const train_item *x, void *context)
{
    kept_state *k = context;
    if (!x->state)
        return 0;
    if (k->put)
        return k->e->ops->put(k->e, x->tensor, k->values[k->at++]);
    ck_assert_uint_lt(k->n, 400);
    k->sizes[k->n] = x->tensor->rows * x->tensor->cols * sizeof(float);
    k->values[k->n] = malloc(k->sizes[k->n] + 1);
    ck_assert_ptr_nonnull(k->values[k->n]);
    return k->e->ops->get(k->e, x->tensor, k->values[k->n++]);
}

/* A second run from the state of *t after `done` steps. */
static inline train *restored(train *t, const train_run *r, train_engine *e)
{
    char text[4096], again[4096], error[TRAIN_ERROR];
    kept_state k = {.e = train_engine_of(t)};
    const size_t n = train_state_save(t, text, sizeof text);
    ck_assert_uint_lt(n, sizeof text);
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_int_eq(train_visit(t, keep, &k), 0);
    train *u = begin(r, e);
    error[0] = 0;
    const int code = train_state_load(u, text, error);
    ck_assert_msg(code == 0, "%s\n%s", error, text);
    k.e = e;
    k.put = 1;
    ck_assert_int_eq(train_visit(u, keep, &k), 0);
    ck_assert_uint_eq(k.at, k.n);
    ck_assert_uint_eq(train_steps_done(u), train_steps_done(t));
    train_state_save(u, again, sizeof again);
    ck_assert_str_eq(text, again);
    for (size_t i = 0; i < k.n; i++)
        free(k.values[i]);
    return u;
}
