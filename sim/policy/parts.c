/* parts.c -- see parts.h. */
#include "impl.h"

#include "muon.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- optimizer ---- */

static int set_name(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    const char *word = NULL;
    char list[128];
    mpsim_optim_algorithm a;
    if (policy_value_text(r, "optimizer", v, &word))
        return -1;
    if (strcasecmp(word, "trace") == 0) {
        o->algorithm = -1;
        return 0;
    }
    if (mpsim_optim_parse(&a, word))
        return policy_bad(r, v->line, "optimizer: '%.60s' is not one of %s, trace", word,
                          policy_plan_optimizers(list, sizeof list, ", "));
    o->algorithm = (int)a;
    return 0;
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
static int set_variant(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    o->n_variants = 0;
    o->variant_given = 1;
    if (v->type != YAML_LIST)
        return add_variant(r, v, o);
    for (size_t i = 0; i < v->count; i++)
        if (add_variant(r, v->items[i].value, o))
            return -1;
    return o->n_variants ? 0 : policy_bad(r, v->line, "variant: the list is empty");
}

static int set_store(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    static const char *const words[] = {"nearest", "stochastic", "kahan"};
    const char *word = NULL;
    if (policy_value_text(r, "store", v, &word))
        return -1;
    for (int i = 0; i < 3; i++)
        if (strcasecmp(words[i], word) == 0) {
            o->store = (mpsim_store)i;
            return 0;
        }
    return policy_bad(r, v->line, "store: '%.60s' is not one of nearest, stochastic, kahan", word);
}

static int set_states(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    const char *word = NULL;
    char list[256] = "";
    if (policy_value_text(r, "states", v, &word))
        return -1;
    o->states = mpsim_states_find(word);
    for (size_t i = 0; i < mpsim_states_count(); i++)
        text_add(list, sizeof list, "%s%s", i ? ", " : "", mpsim_states_at(i)->name);
    return o->states ? 0 : policy_bad(r, v->line, "states: '%.60s' is not one of %s", word, list);
}

static int set_betas(policy_reader *r, const yaml_value *v, plan_optimizer *o)
{
    if (v->type != YAML_LIST || v->count != 2)
        return policy_bad(r, v->line, "betas: two numbers are needed: [0.9, 0.999]");
    return policy_value_number(r, "betas", v->items[0].value, &o->beta1) ||
                   policy_value_number(r, "betas", v->items[1].value, &o->beta2)
               ? -1
               : 0;
}

/* -1 after a message, 0, or 1 for any other key. */
static int set_number(policy_reader *r, const yaml_item *item, plan_optimizer *o)
{
    const struct {
        const char *key;
        int *to;
    } flags[] = {{"nesterov", &o->nesterov}, {"amsgrad", &o->amsgrad}, {"maximize", &o->maximize}};
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        if (strcmp(item->key, mpsim_optim_setting_name((mpsim_optim_setting)i)) == 0)
            return policy_value_number(r, item->key, item->value, &o->number[i]);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(item->key, flags[i].key) == 0)
            return policy_value_bool(r, item->key, item->value, flags[i].to);
    return 1;
}

static int set_key(policy_reader *r, const yaml_item *item, plan_optimizer *o)
{
    if (strcmp(item->key, "name") == 0)
        return set_name(r, item->value, o);
    if (strcmp(item->key, "variant") == 0)
        return set_variant(r, item->value, o);
    if (strcmp(item->key, "store") == 0)
        return set_store(r, item->value, o);
    if (strcmp(item->key, "betas") == 0)
        return set_betas(r, item->value, o);
    if (strcmp(item->key, "muon") == 0) {
        o->has_muon = 1;
        return policy_resolve_muon(r, item->value, &o->muon, &o->muon_given);
    }
    if (strcmp(item->key, "states") == 0)
        return set_states(r, item->value, o);
    if (strcmp(item->key, "state") == 0) {
        o->state_given = 1;
        return policy_value_format(r, "state", item->value, &o->state);
    }
    const int code = set_number(r, item, o);
    return code == 1 ? policy_bad(r, item->line, "optimizer: unknown key '%.60s'", item->key) : code;
}

static unsigned line_of(const yaml_value *v, const char *key)
{
    for (size_t i = 0; v->type == YAML_MAP && i < v->count; i++)
        if (strcmp(v->items[i].key, key) == 0)
            return v->items[i].line;
    return 0;
}

/* A setting that the policy names, or that a list of two does, is in its domain, and the named optimizer has it. */
static int check_setting(policy_reader *r, const yaml_value *v, const plan_optimizer *o, mpsim_optim_setting s,
                         int in_list)
{
    const int is_beta = s == MPSIM_OPTIM_BETA1 || s == MPSIM_OPTIM_BETA2;
    const char *key = in_list && is_beta ? "betas" : mpsim_optim_setting_name(s);
    const unsigned line = line_of(v, key);
    const double least = s == MPSIM_OPTIM_BETA2_DECAY ? -(double)INFINITY : s == MPSIM_OPTIM_D ? 1 : 0;
    const double most = s == MPSIM_OPTIM_BETA2_DECAY ? 0 : is_beta ? nextafter(1, 0) : DBL_MAX;
    const double x = s < MPSIM_OPTIM_NUMBERS ? o->number[s] : 0;
    if (line && !isnan(x) && s < MPSIM_OPTIM_NUMBERS && !(x >= least && x <= most))
        return policy_bad(r, line, "optimizer: %s: %g is not possible", key, x);
    if (line && o->algorithm >= 0 && !mpsim_optim_has(o->algorithm, s))
        return policy_bad(r, line, "optimizer: %s has no %s", mpsim_optim_name((mpsim_optim_algorithm)o->algorithm),
                          key);
    return 0;
}

/* Numbers in their domains, and keys that the named optimizer has. */
static int check_numbers(policy_reader *r, const yaml_value *v, const plan_optimizer *o)
{
    for (int s = 0; s < MPSIM_OPTIM_SETTINGS; s++)
        if (check_setting(r, v, o, (mpsim_optim_setting)s, 1) || check_setting(r, v, o, (mpsim_optim_setting)s, 0))
            return -1;
    if (o->has_muon && (o->states || o->state_given || o->store != MPSIM_STORE_NEAREST || o->maximize > 0))
        return policy_bad(r, line_of(v, "muon"),
                          "optimizer: muon keeps its buffer in the parameter's format, stores to "
                          "nearest and minimises: no state, states, stochastic, kahan, maximize");
    if (o->states && mpsim_optim_traits_of(o->algorithm)->factors)
        return policy_bad(r, line_of(v, "states"), "optimizer: %s has moments of rows and columns: no states",
                          mpsim_optim_name((mpsim_optim_algorithm)o->algorithm));
    if (o->states && o->state_given)
        return policy_bad(r, line_of(v, "state"), "optimizer: state contradicts states");
    if (line_of(v, "betas") && (line_of(v, "beta1") || line_of(v, "beta2")))
        return policy_bad(r, line_of(v, line_of(v, "beta1") ? "beta1" : "beta2"),
                          "optimizer: beta1 and beta2 contradict betas");
    return 0;
}

/* Whether one of the variants can do what is asked, as far as the policy says it. */
static int check_variants(policy_reader *r, const yaml_value *v, const plan_optimizer *o)
{
    static const char *const stores[] = {"nearest", "stochastic", "kahan"};
    const unsigned line = line_of(v, "variant");
    const char *lacks = "";
    for (size_t i = 0; i < o->n_variants; i++) {
        const mpsim_optim_variant *t = o->variants[i];
        mpsim_optim full;
        if (!(t->stores >> o->store & 1)) {
            lacks = stores[o->store];
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
    if (v->type == YAML_TEXT)
        return set_name(r, v, o);
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "optimizer: a name or 'key: value' pairs are needed");
    for (size_t i = 0; i < v->count; i++)
        if (set_key(r, &v->items[i], o))
            return -1;
    return check_numbers(r, v, o) || check_variants(r, v, o) ? -1 : 0;
}

/* ---- clip ---- */

static int set_max_norm(policy_reader *r, const yaml_value *v, plan *p)
{
    if (policy_value_number(r, "clip", v, &p->max_norm))
        return -1;
    if (!(p->max_norm > 0))
        return policy_bad(r, v->line, "clip: the largest norm must be above 0");
    return 0;
}

int policy_resolve_clip(policy_reader *r, const yaml_value *v, plan *p)
{
    const char *word = NULL;
    p->clip = MPSIM_CLIP_NONE;
    p->clip_given = v != NULL;
    if (!v)
        return 0;
    if (v->type == YAML_TEXT) {
        static const char *const none[] = {"none", "no", "null", "~", "false", "off"};
        for (size_t i = 0; i < sizeof none / sizeof *none; i++)
            if (strcasecmp(v->text, none[i]) == 0)
                return 0;
        p->clip = MPSIM_CLIP_TORCH;
        return set_max_norm(r, v, p);
    }
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "clip: a norm, or rule and max_norm are needed");
    p->clip = MPSIM_CLIP_TORCH;
    for (size_t i = 0; i < v->count; i++) {
        const yaml_item *item = &v->items[i];
        if (strcmp(item->key, "max_norm") == 0) {
            if (set_max_norm(r, item->value, p))
                return -1;
        } else if (strcmp(item->key, "rule") == 0) {
            if (policy_value_text(r, "rule", item->value, &word))
                return -1;
            if (mpsim_clip_parse(&p->clip, word))
                return policy_bad(r, item->line,
                                  "clip: '%.60s' is not a rule: torch, torch-cpu, apex, "
                                  "megatron, megatron-float, deepspeed, deepspeed-zero, fairseq, none",
                                  word);
        } else if (strcmp(item->key, "before_unscale") == 0) {
            if (policy_value_bool(r, "before_unscale", item->value, &p->clip_scaled))
                return -1;
        } else if (strcmp(item->key, "norm") == 0) {
            if (policy_value_text(r, "norm", item->value, &word))
                return -1;
            p->norm_given = 1;
            p->recorded_norm = strcasecmp(word, "trace") == 0;
            if (!p->recorded_norm && strcasecmp(word, "exact") != 0)
                return policy_bad(r, item->line, "clip: norm: '%.60s' is neither exact nor trace", word);
        } else {
            return policy_bad(r, item->line, "clip: unknown key '%.60s'", item->key);
        }
    }
    if (p->clip == MPSIM_CLIP_NONE && p->max_norm > 0)
        return policy_bad(r, line_of(v, "max_norm"), "clip: max_norm contradicts rule none");
    if (p->clip != MPSIM_CLIP_NONE && !(p->max_norm > 0))
        return policy_bad(r, v->line, "clip: key 'max_norm' is missing");
    if (p->clip_scaled && (p->clip == MPSIM_CLIP_NONE || mpsim_clip_unscales(p->clip)))
        return policy_bad(r, line_of(v, "before_unscale"),
                          "clip: before_unscale needs a rule that does not unscale: not %s", mpsim_clip_name(p->clip));
    return 0;
}

/* ---- grad_reduce ---- */

static int set_word(policy_reader *r, const yaml_item *item, const char *const *words, int n, uint8_t *to)
{
    const char *word = NULL;
    if (policy_value_text(r, item->key, item->value, &word))
        return -1;
    for (int i = 0; i < n; i++)
        if (strcasecmp(words[i], word) == 0) {
            *to = (uint8_t)i;
            return 0;
        }
    return policy_bad(r, item->line, "grad_reduce: %s: '%.60s' is not one of %s, %s, %s", item->key, word, words[0],
                      words[1], words[2]);
}

int policy_resolve_reduce(policy_reader *r, const yaml_value *v, plan *p)
{
    static const char *const orders[] = {"sequential", "ring", "tree"};
    static const char *const averages[] = {"none", "before", "after"};
    mpsim_reduce *d = &p->reduce;
    int accumulate = 0, code = 0;
    d->order = MPSIM_REDUCE_RING;
    d->average = MPSIM_AVERAGE_BEFORE;
    d->wire = d->result = p->grads;
    d->accumulator = p->grads;
    if (!v)
        return 0;
    p->reduce_given = 1;
    if (v->type == YAML_TEXT) {
        code = policy_value_format(r, "grad_reduce", v, &d->wire);
        d->accumulator = d->result = d->wire;
        return code;
    }
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "grad_reduce: a format or 'key: value' pairs are needed");
    for (size_t i = 0; i < v->count && !code; i++) {
        const yaml_item *item = &v->items[i];
        if (strcmp(item->key, "wire") == 0) {
            code = policy_value_format(r, "wire", item->value, &d->wire);
        } else if (strcmp(item->key, "accumulate") == 0) {
            code = policy_value_format(r, "accumulate", item->value, &d->accumulator);
            accumulate = 1;
        } else if (strcmp(item->key, "order") == 0) {
            code = set_word(r, item, orders, 3, &d->order);
        } else if (strcmp(item->key, "average") == 0) {
            code = set_word(r, item, averages, 3, &d->average);
        } else {
            code = policy_bad(r, item->line, "grad_reduce: unknown key '%.60s'", item->key);
        }
    }
    if (!accumulate)
        d->accumulator = d->wire;
    d->result = d->wire;
    return code;
}
