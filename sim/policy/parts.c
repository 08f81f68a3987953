/* parts.c -- see parts.h. */
#include "impl.h"

#include "muon.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- optimizer ---- */

#define AT(place) .at = offsetof(plan_optimizer, place)
#define NUMBER(key_, place, ...)                                                      \
    {                                                                                 \
        .key = key_, .type = POLICY_NUMBER, AT(place), .range = { __VA_ARGS__, 0, 0 } \
    }
#define BETA(key_, place)                                                            \
    {                                                                                \
        .key = key_, .type = POLICY_NUMBER, AT(place), .range = { 0, 1, .below = 1 } \
    }

static int set_name(policy_reader *r, const yaml_item *item, void *to)
{
    plan_optimizer *o = to;
    const char *word = NULL;
    char list[128];
    mpsim_optim_algorithm a;
    if (policy_value_text(r, "optimizer", item->value, &word))
        return -1;
    if (strcasecmp(word, "trace") == 0) {
        o->algorithm = -1;
        return 0;
    }
    if (mpsim_optim_parse(&a, word))
        return policy_bad(r, item->value->line, "optimizer: '%.60s' is not one of %s, trace", word,
                          policy_plan_optimizers(list, sizeof list, ", "));
    o->algorithm = (int)a;
    return 0;
}

static const char *name_word(const void *to)
{
    const plan_optimizer *o = to;
    return o->algorithm < 0 ? "trace" : mpsim_optim_name((mpsim_optim_algorithm)o->algorithm);
}

static int add_variant(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    const char *word = NULL;
    if (policy_value_text(r, "variant", v, &word))
        return -1;
    const mpsim_optim_variant *found = mpsim_optim_variant_find(word);
    if (found && o->n_variants < sizeof o->variants / sizeof *o->variants) {
        o->variants[o->n_variants++] = found;
        return 0;
    }
    char list[512] = "";
    for (size_t i = 0; i < mpsim_optim_variant_count(); i++)
        text_add(list, sizeof list, "%s%s", i ? ", " : "", mpsim_optim_variant_at(i)->name);
    return found ? policy_bad(r, v->line, "variant: too many")
                 : policy_bad(r, v->line, "variant: '%.60s' is not one of %s", word, list);
}

/* One word, or a list in the order of preference. */
static int set_variant(policy_reader *r, const yaml_item *item, void *to)
{
    const yaml_value *v = item->value;
    plan_optimizer *o = to;
    o->n_variants = 0;
    if (v->type != YAML_LIST)
        return add_variant(r, v, o);
    for (size_t i = 0; i < v->count; i++)
        if (add_variant(r, v->items[i].value, o))
            return -1;
    return o->n_variants ? 0 : policy_bad(r, v->line, "variant: the list is empty");
}

static int set_states(policy_reader *r, const yaml_item *item, void *to)
{
    plan_optimizer *o = to;
    const char *word = NULL;
    char list[256] = "";
    if (policy_value_text(r, "states", item->value, &word))
        return -1;
    o->states = mpsim_states_find(word);
    for (size_t i = 0; i < mpsim_states_count(); i++)
        text_add(list, sizeof list, "%s%s", i ? ", " : "", mpsim_states_at(i)->name);
    return o->states ? 0 : policy_bad(r, item->value->line, "states: '%.60s' is not one of %s", word, list);
}

static int set_betas(policy_reader *r, const yaml_item *item, void *to)
{
    static const policy_row rows[] = {BETA("betas", beta1), BETA("betas", beta2)};
    const yaml_value *v = item->value;
    if (v->type != YAML_LIST || v->count != 2)
        return policy_bad(r, v->line, "betas: two numbers are needed: [0.9, 0.999]");
    for (size_t i = 0; i < 2; i++)
        if (policy_row_read(r, "optimizer", &rows[i], &(yaml_item){item->key, item->line, v->items[i].value}, to))
            return -1;
    return 0;
}

static int set_muon(policy_reader *r, const yaml_item *item, void *to)
{
    plan_optimizer *o = to;
    o->has_muon = 1;
    return policy_resolve_muon(r, item->value, &o->muon, &o->muon_given);
}

static const char *const store_words[] = {"nearest", "stochastic", "kahan"};
static const policy_words stores = POLICY_WORDS(store_words);

/* Settings, by mpsim_optim_setting, and the rest. */
static const policy_row optimizer_keys[] = {
    [MPSIM_OPTIM_LR] = NUMBER("lr", lr, 0, HUGE_VAL),
    [MPSIM_OPTIM_MOMENTUM] = NUMBER("momentum", momentum, 0, HUGE_VAL),
    [MPSIM_OPTIM_DAMPENING] = NUMBER("dampening", dampening, 0, HUGE_VAL),
    [MPSIM_OPTIM_WEIGHT_DECAY] = NUMBER("weight_decay", weight_decay, 0, HUGE_VAL),
    [MPSIM_OPTIM_BETA1] = BETA("beta1", beta1),
    [MPSIM_OPTIM_BETA2] = BETA("beta2", beta2),
    [MPSIM_OPTIM_EPS] = NUMBER("eps", eps, 0, HUGE_VAL),
    [MPSIM_OPTIM_BETA2_DECAY] = NUMBER("beta2_decay", beta2_decay, -HUGE_VAL, 0),
    [MPSIM_OPTIM_EPS2] = NUMBER("eps2", eps2, 0, HUGE_VAL),
    [MPSIM_OPTIM_D] = NUMBER("d", d, 1, HUGE_VAL),
    [MPSIM_OPTIM_NESTEROV] = {"nesterov", POLICY_YES, AT(nesterov)},
    [MPSIM_OPTIM_AMSGRAD] = {"amsgrad", POLICY_YES, AT(amsgrad)},
    [MPSIM_OPTIM_MAXIMIZE] = {"maximize", POLICY_YES, AT(maximize)},
    {"name", .set = set_name, .word = name_word},
    {"variant", .set = set_variant},
    {"store", POLICY_WORD, AT(store), .words = &stores, .label = "store"},
    {"betas", .set = set_betas},
    {"muon", .set = set_muon},
    {"states", .set = set_states},
    {"state", POLICY_FORMAT, AT(state)},
};

static const option_row optimizer_rules[] = {
    EXCLUDES("muon", "state states store=stochastic store=kahan maximize",
             "muon keeps its buffer in the parameter's format, stores to nearest and minimises"),
    EXCLUDES("states", "name=adafactor", "adafactor has moments of rows and columns"),
    EXCLUDES("state", "states", NULL),
    EXCLUDES("beta1 beta2", "betas", NULL),
    {0, NULL, OPTION_NEEDS, NULL, NULL, NULL},
};

const policy_map policy_optimizer_map = POLICY_MAP("optimizer", "a name or 'key: value' pairs are", optimizer_keys,
                                                   &optimizer_keys[MPSIM_OPTIM_SETTINGS], optimizer_rules);

/* Settings that the named optimizer has; betas are two. */
static int check_settings(policy_reader *r, const yaml_value *v, const plan_optimizer *o)
{
    for (int s = 0; s < MPSIM_OPTIM_SETTINGS && o->algorithm >= 0; s++) {
        const int is_beta = s == MPSIM_OPTIM_BETA1 || s == MPSIM_OPTIM_BETA2;
        const yaml_item *own = policy_tree_find(v, optimizer_keys[s].key);
        const yaml_item *item = own || !is_beta ? own : policy_tree_find(v, "betas");
        if (item && !mpsim_optim_has(o->algorithm, (mpsim_optim_setting)s))
            return policy_bad(r, item->line, "optimizer: %s has no %s", name_word(o), item->key);
    }
    return 0;
}

/* Whether one of the variants can do what is asked, as far as the policy says it. */
static int check_variants(policy_reader *r, const yaml_value *v, const plan_optimizer *o)
{
    const unsigned line = policy_tree_line(v, "variant");
    const char *lacks = "";
    for (size_t i = 0; i < o->n_variants; i++) {
        const mpsim_optim_variant *t = o->variants[i];
        mpsim_optim full;
        if (!(t->stores >> o->store & 1)) {
            lacks = store_words[o->store];
            continue;
        }
        if (o->algorithm < 0)
            return 0;
        lacks = mpsim_optim_name((mpsim_optim_algorithm)o->algorithm);
        if (!(t->algorithms >> o->algorithm & 1))
            continue;
        mpsim_optim_init(&full, (mpsim_optim_algorithm)o->algorithm, t);
        full.momentum = isnan(o->momentum) ? (o->nesterov > 0 ? 0.9 : 0) : o->momentum;
        full.nesterov = o->nesterov > 0;
        full.amsgrad = o->amsgrad > 0;
        full.maximize = o->maximize > 0;
        if (mpsim_optim_check(&full) == MPSIM_OK)
            return 0;
        lacks = o->amsgrad > 0 ? "amsgrad" : o->nesterov > 0 ? "nesterov like this" : "maximize";
    }
    return policy_bad(r, line ? line : v->line, "optimizer: variant %s has no %s%s", o->variants[0]->name, lacks,
                      o->n_variants > 1 ? ", nor have the others" : "");
}

int policy_resolve_optimizer(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    const double unset = (double)NAN;
    memset(o, 0, sizeof *o);
    o->algorithm = -1;
    o->variants[0] = mpsim_optim_variant_find("ieee");
    o->n_variants = 1;
    o->store = MPSIM_STORE_NEAREST;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        o->number[i] = unset;
    o->nesterov = o->amsgrad = o->maximize = -1;
    if (!v)
        return 0;
    if (policy_map_read(r, &policy_optimizer_map, v, o))
        return -1;
    if (v->type == YAML_TEXT)
        return 0;
    o->variant_given = policy_tree_line(v, "variant") != 0;
    o->state_given = policy_tree_line(v, "state") != 0;
    return check_settings(r, v, o) || check_variants(r, v, o) ? -1 : 0;
}

/* ---- clip ---- */

static int set_rule(policy_reader *r, const yaml_item *item, void *to)
{
    const char *word = NULL;
    plan *p = to;
    if (policy_value_text(r, item->key, item->value, &word))
        return -1;
    return mpsim_clip_parse(&p->clip, word) == MPSIM_OK
               ? 0
               : policy_bad(r, item->line,
                            "clip: '%.60s' is not a rule: torch, torch-cpu, apex, megatron, megatron-float, deepspeed, "
                            "deepspeed-zero, fairseq, none",
                            word);
}

static const char *rule_word(const void *to)
{
    return mpsim_clip_name(((const plan *)to)->clip);
}

static const char *const norm_words[] = {"exact", "trace"};
static const policy_words norms = POLICY_WORDS(norm_words);

static const policy_row clip_keys[] = {
    {"max_norm", POLICY_NUMBER, .at = offsetof(plan, max_norm), .range = {0, HUGE_VAL, .above = 1}},
    {"rule", .set = set_rule, .word = rule_word},
    {"before_unscale", POLICY_YES, .at = offsetof(plan, clip_scaled)},
    {"norm", POLICY_WORD, .at = offsetof(plan, recorded_norm), .words = &norms},
};

static const option_row clip_rules[] = {
    EXCLUDES("max_norm", "rule=none", NULL),
    NEEDS("", "max_norm rule=none", NULL),
    EXCLUDES("before_unscale", "rule=none rule=deepspeed rule=deepspeed-zero rule=fairseq",
             "it needs a rule that does not unscale"),
    {0, NULL, OPTION_NEEDS, NULL, NULL, NULL},
};

const policy_map policy_clip_map = POLICY_MAP("clip", "a norm, or rule and max_norm are", clip_keys, &clip_keys[0],
                                              clip_rules);

int policy_resolve_clip(policy_reader *r, const yaml_value *v, plan *p)
{
    static const char *const none_words[] = {"none", "no", "null", "~", "false", "off"};
    static const policy_words none = POLICY_WORDS(none_words);
    p->clip = MPSIM_CLIP_NONE;
    p->clip_given = v != NULL;
    if (!v || (v->type == YAML_TEXT && policy_words_find(&none, v->text) >= 0))
        return 0;
    p->clip = MPSIM_CLIP_TORCH;
    if (policy_map_read(r, &policy_clip_map, v, p))
        return -1;
    p->norm_given = policy_tree_line(v, "norm") != 0;
    return 0;
}

/* ---- grad_reduce ---- */

static const char *const order_words[] = {"sequential", "ring", "tree"};
static const char *const average_words[] = {"none", "before", "after"};
static const policy_words orders = POLICY_WORDS(order_words), averages = POLICY_WORDS(average_words);

static const policy_row reduce_keys[] = {
    {"wire", POLICY_FORMAT, .at = offsetof(mpsim_reduce, wire)},
    {"accumulate", POLICY_FORMAT, .at = offsetof(mpsim_reduce, accumulator)},
    {"order", POLICY_WORD, .at = offsetof(mpsim_reduce, order), .words = &orders},
    {"average", POLICY_WORD, .at = offsetof(mpsim_reduce, average), .words = &averages},
};

const policy_map policy_reduce_map = POLICY_MAP("grad_reduce", "a format or 'key: value' pairs are", reduce_keys,
                                                &reduce_keys[0], NULL);

int policy_resolve_reduce(policy_reader *r, const yaml_value *v, plan *p)
{
    mpsim_reduce *d = &p->reduce;
    d->order = MPSIM_REDUCE_RING;
    d->average = MPSIM_AVERAGE_BEFORE;
    d->wire = d->accumulator = p->grads;
    p->reduce_given = v != NULL;
    const int code = v ? policy_map_read(r, &policy_reduce_map, v, d) : 0;
    if (!policy_tree_find(v, "accumulate"))
        d->accumulator = d->wire;
    d->result = d->wire;
    return code;
}
