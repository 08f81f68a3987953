/* steps.h -- for tests of the CUDA engine without a device: a training as a row of a table, its steps on
 * both engines. */
#pragma once

#include "pairs.h"
#include "support/onebyone.h"

#include <train/train.h>

struct row {
    const char *net, *low, *kept, *optimizer, *variant, *scaler, *recipe, *gradients, *clip;
    int delayed, batchnorm;
    mpsim_store store;
    train_master master;
    int tf32;
    unsigned steps;
    const char *weights; /* their recipe, NULL: that of all */
    unsigned hadamard, promote;
    /* of transformers */
    const char *rows = NULL; /* format of embeddings, norms, softmax, sums; NULL: low */
    unsigned tile = 0, kv_heads = 0, accumulate = 0, ranks = 0;
    unsigned attention = 0; /* 1: its products have the recipes */
};

inline int train_is_decoder(const row &c)
{
    return strcmp(c.net, "gpt") == 0 || strcmp(c.net, "llama") == 0;
}

/* Two heads of a block, 8 places; of several ranks norms and softmax compute in `rows`. */
inline void settle(train_settings *s, const row &c)
{
    train_decoder *d = &s->decoder;
    s->depth = 1;
    s->width = 16;
    s->batch = 2;
    s->steps = c.steps;
    s->gain = 6;
    d->heads = 2;
    d->kv_heads = c.kv_heads ? c.kv_heads : 2;
    d->hidden = strcmp(c.net, "gpt") == 0 ? 64 : 40;
    d->context = 8;
    d->warmup = 1;
    d->tile = c.tile;
    d->accumulate = c.accumulate ? c.accumulate : 1;
    d->ranks = c.ranks ? c.ranks : 1;
    d->reduce = MPSIM_REDUCE_RING;
    snprintf(d->wire, sizeof d->wire, "%s", c.ranks ? "bf16" : "binary32");
    snprintf(d->math_norm, sizeof d->math_norm, "%s", c.rows && c.ranks ? c.rows : "");
    snprintf(d->math_softmax, sizeof d->math_softmax, "%s", c.rows && c.ranks && !c.tile ? c.rows : "");
}

inline int is_of_rows(int type)
{
    return type == TRAIN_EMBED || type == TRAIN_POSITIONS || type == TRAIN_NORM || type == TRAIN_SOFTMAX ||
           type == TRAIN_ADD;
}

inline int is_product(int type, const row &c)
{
    return type == TRAIN_LINEAR || type == TRAIN_CONV ||
           (c.attention && (type == TRAIN_SCORES || type == TRAIN_CONTEXT));
}

static inline int fill(train_run *r, train_plan *p, const row &c)
{
    mpsim_optim_algorithm a;
    memset(r, 0, sizeof *r);
    memset(p, 0, sizeof *p);
    char error[TRAIN_ERROR] = "";
    train_settings_init(&r->settings, c.net);
    const int cnn = strcmp(c.net, "cnn") == 0;
    r->settings.width = cnn ? 4 : 40;
    r->settings.batch = cnn ? 6 : 20;
    if (train_is_decoder(c))
        settle(&r->settings, c);
    r->settings.seed = 3;
    r->settings.batchnorm = (uint32_t)c.batchnorm;
    r->settings.tf32 = (uint32_t)c.tf32;
    r->n_layers = train_network(&r->settings, r->layers, error);
    r->plans = p;
    r->n_plans = 1;
    for (size_t i = 0; i < r->n_layers; i++) {
        train_placement *l = &p->layers[i];
        for (int k = 0; k < TRAIN_ROLES; k++)
            l->format[k] = *format(c.rows && is_of_rows(r->layers[i].type) ? c.rows : c.low);
        l->storage = *format(c.low);
        l->kept = l->state = *format(c.kept ? c.kept : c.low);
        if (c.recipe && is_product(r->layers[i].type, c)) {
            l->recipe[TRAIN_ACT] = l->recipe[TRAIN_WEIGHT] = mpsim_block_find(c.recipe);
            l->recipe[TRAIN_AGRAD] = mpsim_block_find(c.gradients);
            if (c.weights)
                l->recipe[TRAIN_WEIGHT] = mpsim_block_find(c.weights);
            l->hadamard = c.hadamard;
            l->promote = c.promote;
        }
    }
    snprintf(p->precision, sizeof p->precision, "test");
    p->master = c.master;
    p->max_norm = 0.5;
    p->delayed = c.delayed;
    mpsim_delayed_config_init(&p->history, format("e4m3"));
    p->history.history = 4;
    if (mpsim_optim_parse(&a, c.optimizer) || mpsim_scaler_parse(&p->scaler, c.scaler) ||
        (c.clip && mpsim_clip_parse(&p->clip, c.clip)))
        return -1;
    mpsim_optim_init(&p->optimizer, a, mpsim_optim_variant_find(c.variant));
    p->optimizer.store = (uint8_t)c.store;
    p->optimizer.lr = a == MPSIM_OPTIM_SGD ? 0.1 : 2e-3;
    p->optimizer.momentum = a == MPSIM_OPTIM_SGD ? 0.9 : 0;
    if (r->n_layers == 0)
        printf("# %s\n", error);
    return r->n_layers ? 0 : -1;
}

/* Steps on both engines: 0, or what train_compare_step says; its report in text. */
static inline int run_both(const row &c, char *text, size_t size)
{
    static train_plan plan;
    static train_run r;
    char error[TRAIN_ERROR] = "";
    int result = -1;
    text[0] = 0;
    if (fill(&r, &plan, c)) {
        printf("# the row is invalid\n");
        return -1;
    }
    train *a = train_open(&r, &cpu, 1, error);
    train *b = a ? train_open(&r, &cuda, 1, error) : NULL;
    for (unsigned i = 0; a && b && i < c.steps; i++) {
        train_step x, y;
        result = train_compare_step(a, b, &x, &y, text, size, error);
        if (result)
            break;
    }
    if (result < 0)
        printf("# %s\n", error);
    if (a)
        train_close(a);
    if (b)
        train_close(b);
    return result;
}

/* A line for each row; a half of them in its turn. */
template <size_t N>
inline void test_rows(const row (&rows)[N])
{
    char text[1000], more[100];
    unsigned index = 0;
    for (const row &c : rows) {
        if (!test_in_part(index++, 2))
            continue;
        const int result = run_both(c, text, sizeof text);
        if (result)
            printf("# %s\n", text);
        snprintf(more, sizeof more, "%s%s%s%s", c.tf32 ? ", tf32" : "", c.tile ? ", in tiles" : "",
                 c.attention ? ", attention too" : "", c.ranks ? ", some ranks" : "");
        OK(result == 0, "%s in %s%s%s%s%s, %s of %s: the same bits", c.net, c.low,
           c.master == TRAIN_SPLIT_MASTER ? " with split master"
           : c.kept                       ? " with master"
                                          : "",
           c.recipe ? " by " : "", c.recipe ? c.recipe : "", more, c.optimizer, c.variant);
    }
}

/* ---- operations that are wrong ---- */

/* The CUDA engine's own. */
static const train_ops *right;

/* A training with operations of which one is wrong: that is found, and the report names where. */
inline void test_mutant(const row &c, const train_ops &wrong, const char *where, const char *what)
{
    char text[1000];
    cuda.ops = &wrong;
    const int result = run_both(c, text, sizeof text);
    cuda.ops = right;
    printf("# %s\n", text);
    OK(result == 1 && strstr(text, where), "%s is found and named", what);
}

/* A program of tests: each row, then `more`. */
template <size_t N>
inline int test_steps(const row (&rows)[N], void (*more)())
{
    if (open_engines())
        return 1;
    right = cuda.ops;
    test_rows(rows);
    more();
    OK(cuda.ops->finish(&cuda) == 0, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    return tap_end();
}
