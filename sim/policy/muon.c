/* muon.c -- see muon.h. */
#include "muon.h"

#include "../text/words.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const forms[] = {"torch", "keller", NULL};
static const char *const scales[] = {"original", "match_rms_adamw", "spectral_unclamped", "none", NULL};

/* What multiplies by ATen's kernels, as the variants with their instructions are called. */
static const char *const kernels[] = {"", "torch-cpu-default", "torch-cpu", "torch-cpu-onednn", "torch-cpu-onednn-amx"};

/* The place of a value's word in a list, -1 after a message. */
static int word_of(policy_reader *r, const yaml_item *item, const char *const *words)
{
    const char *word = NULL;
    char list[128] = "";
    if (policy_value_text(r, item->key, item->value, &word))
        return -1;
    for (int i = 0; words[i]; i++) {
        if (strcasecmp(words[i], word) == 0)
            return i;
        text_add(list, sizeof list, "%s%s", i ? ", " : "", words[i]);
    }
    return policy_bad(r, item->line, "muon: %s: '%.60s' is not one of %s", item->key, word, list);
}

/* A model's name, or an architecture: its default for such operands; or the kernels of torch. */
static int set_model(policy_reader *r, const yaml_item *item, mpsim_muon *o)
{
    const char *word = NULL;
    if (policy_value_text(r, "model", item->value, &word))
        return -1;
    for (int i = MPSIM_MUON_ATEN; i <= MPSIM_MUON_ONEDNN_AMX; i++)
        if (strcmp(word, kernels[i]) == 0) {
            o->products = (uint8_t)i;
            return 0;
        }
    if (mpsim_model_parse(&o->model, word) == MPSIM_OK ||
        mpsim_model_for(&o->model, word, &o->format, &o->format, mpsim_format_find("binary32")) == MPSIM_OK)
        return 0;
    return policy_bad(r, item->line,
                      "muon: model: '%.60s' is neither a model (mpsim formats --models), nor an architecture that "
                      "multiplies %s, nor torch-cpu, torch-cpu-default, torch-cpu-onednn or torch-cpu-onednn-amx",
                      word, o->format.name);
}

static int set_coefficients(policy_reader *r, const yaml_item *item, mpsim_muon *o)
{
    double *const to[] = {&o->a, &o->b, &o->c};
    const yaml_value *v = item->value;
    if (v->type != YAML_LIST || v->count != 3)
        return policy_bad(r, item->line, "muon: ns_coefficients: three numbers are needed: [3.4445, -4.7750, 2.0315]");
    for (size_t i = 0; i < 3; i++)
        if (policy_value_number(r, item->key, v->items[i].value, to[i]))
            return -1;
    return 0;
}

static int set_steps(policy_reader *r, const yaml_item *item, mpsim_muon *o)
{
    enum { MOST = 99 };
    uint64_t n = 0;
    if (policy_value_count(r, item->key, item->value, &n))
        return -1;
    if (n > MOST)
        return policy_bad(r, item->line, "muon: ns_steps: less than 100");
    o->steps = (uint8_t)n;
    return 0;
}

static int set_variant(policy_reader *r, const yaml_item *item, mpsim_muon *o)
{
    const char *word = NULL;
    if (policy_value_text(r, item->key, item->value, &word))
        return -1;
    mpsim_muon plain; /* what other keys say is not the variant's */
    o->variant = mpsim_optim_variant_find(word);
    mpsim_muon_init(&plain, MPSIM_MUON_TORCH, o->variant);
    return mpsim_muon_check(&plain) == MPSIM_OK
               ? 0
               : policy_bad(r, item->line,
                            "muon: variant: '%.60s' has no operations on tensors: torch, torch-foreach, "
                            "torch-cpu, torch-cpu-default, ... have",
                            word);
}

static int set_key(policy_reader *r, const yaml_item *item, mpsim_muon *o)
{
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"lr", &o->lr}, {"momentum", &o->momentum}, {"weight_decay", &o->weight_decay}, {"eps", &o->eps}};
    int word = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(item->key, numbers[i].key) == 0)
            return policy_value_number(r, item->key, item->value, numbers[i].to);
    if (strcmp(item->key, "form") == 0)
        return 0;
    if (strcmp(item->key, "ns_dtype") == 0)
        return policy_value_format(r, item->key, item->value, &o->format);
    if (strcmp(item->key, "model") == 0)
        return 0; /* when the format is known */
    if (strcmp(item->key, "ns_coefficients") == 0)
        return set_coefficients(r, item, o);
    if (strcmp(item->key, "ns_steps") == 0)
        return set_steps(r, item, o);
    if (strcmp(item->key, "variant") == 0)
        return set_variant(r, item, o);
    if (strcmp(item->key, "nesterov") == 0) {
        word = o->nesterov;
        const int code = policy_value_bool(r, item->key, item->value, &word);
        o->nesterov = (uint8_t)word;
        return code;
    }
    if (strcmp(item->key, "adjust_lr") != 0)
        return policy_bad(r, item->line, "muon: unknown key '%.60s'", item->key);
    word = word_of(r, item, scales);
    o->scale = (uint8_t)word;
    return word < 0 ? -1 : 0;
}

static const yaml_item *item_of(const yaml_value *v, const char *key)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->items[i].key, key) == 0)
            return &v->items[i];
    return NULL;
}

int policy_resolve_muon(policy_reader *r, const yaml_value *v, mpsim_muon *o, unsigned *given)
{
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "muon: 'key: value' pairs are needed");
    static const char *const keys[MUON_KEYS] = {
        [MUON_LR] = "lr",           [MUON_MOMENTUM] = "momentum",     [MUON_DECAY] = "weight_decay",
        [MUON_EPS] = "eps",         [MUON_NESTEROV] = "nesterov",     [MUON_STEPS] = "ns_steps",
        [MUON_SCALE] = "adjust_lr", [MUON_CUBIC] = "ns_coefficients", [MUON_VARIANT] = "variant",
        [MUON_MODEL] = "model"};
    const yaml_item *form = item_of(v, "form"), *model = item_of(v, "model");
    const int word = form ? word_of(r, form, forms) : 0;
    if (word < 0)
        return -1;
    mpsim_muon_init(o, (mpsim_muon_form)word, mpsim_optim_variant_find("torch"));
    for (size_t i = 0; i < v->count; i++)
        if (set_key(r, &v->items[i], o))
            return -1;
    if (model && set_model(r, model, o))
        return -1;
    for (int k = 0; k < MUON_KEYS; k++)
        *given |= (unsigned)(item_of(v, keys[k]) != NULL) << k;
    switch (mpsim_muon_check(o)) {
    case MPSIM_OK:
        return 0;
    case MPSIM_EUNAVAILABLE:
        return policy_bad(r, v->line, "muon: nesterov needs a momentum");
    case MPSIM_ERANGE:
        return policy_bad(r, v->line, "muon: model %s does not multiply %s, or its result is not in binary32",
                          o->model.name, o->format.name);
    default:
        return policy_bad(r, v->line,
                          "muon: no Muon has such settings: lr %g, momentum %g, weight decay %g, eps %g, "
                          "coefficients %g %g %g",
                          o->lr, o->momentum, o->weight_decay, o->eps, o->a, o->b, o->c);
    }
}

int policy_muon_scale_of(const char *word)
{
    for (int i = 0; scales[i]; i++)
        if (strcmp(scales[i], word) == 0)
            return i;
    return -1;
}

const char *policy_muon_describe(const mpsim_muon *o, char *out, size_t size)
{
    snprintf(out, size,
             "lr %g, momentum %g%s, weight decay %g, %s form, %u steps of Newton and Schulz in %s, products by %s, "
             "adjust_lr %s",
             o->lr, o->momentum, o->nesterov ? ", nesterov" : "", o->weight_decay, forms[o->form], o->steps,
             o->format.name, o->products ? kernels[o->products] : o->model.name, scales[o->scale]);
    return out;
}
