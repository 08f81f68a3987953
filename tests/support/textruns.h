/* textruns.h -- small runs of transformers for tests of the trainer. */
#pragma once

#include "trainruns.h"

/* Products in `low`, the rest in binary32, as under autocast; AdamW. */
static inline void text_plan(train_plan *p, const train_run *r, const char *low, const char *scaler)
{
    const recipe_of_run c = {.low = "binary32", .optimizer = "adamw", .scaler = scaler, .clip = "torch"};
    mpsim_format f;
    fill_plan(p, r, &c, c.low);
    ck_assert_int_eq(mpsim_format_parse(&f, low), MPSIM_OK);
    for (size_t i = 0; i < r->n_layers; i++) {
        const uint8_t type = r->layers[i].type;
        for (int k = 0; k < TRAIN_ROLES; k++)
            if (type == TRAIN_LINEAR || type == TRAIN_SCORES || type == TRAIN_CONTEXT)
                p->layers[i].format[k] = f;
    }
    p->optimizer.weight_decay = 0.1;
}

static inline void text_run(train_run *r, const char *net, const char *low, const char *scaler)
{
    train_settings *s = &r->settings;
    memset(r, 0, sizeof *r);
    train_settings_init(s, net);
    s->depth = 1;
    s->width = 16;
    s->batch = 2;
    s->seed = 11;
    s->gain = 4;
    s->decoder.heads = s->decoder.kv_heads = 2;
    s->decoder.hidden = 24;
    s->decoder.context = 12;
    s->decoder.validation = 5;
    s->decoder.warmup = 2;
    char error[TRAIN_ERROR];
    r->n_layers = train_network(s, r->layers, error);
    ck_assert_msg(r->n_layers > 0, "%s", error);
    r->n_plans = 1;
    r->plans = calloc(1, sizeof *r->plans);
    ck_assert_ptr_nonnull(r->plans);
    text_plan(r->plans, r, low, scaler);
}
