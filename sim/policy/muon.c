/* muon.c -- see muon.h. */
#include "muon.h"

#include "impl.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const form_words[] = {"torch", "keller"};
static const char *const scale_words[] = {"original", "match_rms_adamw", "spectral_unclamped", "none"};
static const policy_words forms = POLICY_WORDS(form_words), scales = POLICY_WORDS(scale_words);

/* What multiplies by ATen's kernels, as the variants with their instructions are called. */
static const char *const kernels[] = {"", "torch-cpu-default", "torch-cpu", "torch-cpu-onednn", "torch-cpu-onednn-amx"};

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

static int set_coefficients(policy_reader *r, const yaml_item *item, void *to)
{
    mpsim_muon *o = to;
    double *const places[] = {&o->a, &o->b, &o->c};
    const yaml_value *v = item->value;
    if (v->type != YAML_LIST || v->count != 3)
        return policy_bad(r, item->line, "muon: ns_coefficients: three numbers are needed: [3.4445, -4.7750, 2.0315]");
    for (size_t i = 0; i < 3; i++)
        if (policy_value_number(r, item->key, v->items[i].value, places[i]))
            return -1;
    return 0;
}

static int set_variant(policy_reader *r, const yaml_item *item, void *to)
{
    mpsim_muon *o = to;
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

#define AT(place) .at = offsetof(mpsim_muon, place)

/* By muon_key; then what no plan asks after. The model is read when the format is known, the form before all others. */
static const policy_row keys[] = {
    [MUON_LR] = {"lr", POLICY_NUMBER, AT(lr), .range = {0, HUGE_VAL, 0, 0}},
    [MUON_MOMENTUM] = {"momentum", POLICY_NUMBER, AT(momentum), .range = {0, 1, 0, 0}},
    [MUON_DECAY] = {"weight_decay", POLICY_NUMBER, AT(weight_decay), .range = {0, HUGE_VAL, 0, 0}},
    [MUON_EPS] = {"eps", POLICY_NUMBER, AT(eps), .range = {0, HUGE_VAL, 0, 0}},
    [MUON_NESTEROV] = {"nesterov", POLICY_FLAG, AT(nesterov)},
    [MUON_STEPS] = {"ns_steps", POLICY_BYTE, AT(steps), .range = {0, 99, 0, 0}},
    [MUON_SCALE] = {"adjust_lr", POLICY_WORD, AT(scale), .words = &scales},
    [MUON_CUBIC] = {"ns_coefficients", .set = set_coefficients},
    [MUON_VARIANT] = {"variant", .set = set_variant},
    [MUON_MODEL] = {"model", POLICY_LATER, .at = 0},
    {"form", POLICY_LATER, .at = 0},
    {"ns_dtype", POLICY_FORMAT, AT(format)},
};

const policy_map policy_muon_map = POLICY_MAP("muon", "'key: value' pairs are", keys, NULL, NULL);

/* The word of a form, which decides the defaults: -1 after a message. */
static int form_of(policy_reader *r, const yaml_item *item)
{
    const char *word = NULL;
    if (!item)
        return MPSIM_MUON_TORCH;
    return policy_value_text(r, item->key, item->value, &word) ? -1
                                                               : policy_word(r, item->line, "muon: form", word, &forms);
}

int policy_resolve_muon(policy_reader *r, const yaml_value *v, mpsim_muon *o, unsigned *given)
{
    const yaml_item *model = policy_tree_find(v, "model");
    const int form = form_of(r, policy_tree_find(v, "form"));
    if (form < 0)
        return -1;
    mpsim_muon_init(o, (mpsim_muon_form)form, mpsim_optim_variant_find("torch"));
    if (policy_map_read(r, &policy_muon_map, v, o) || (model && set_model(r, model, o)))
        return -1;
    for (int k = 0; k < MUON_KEYS; k++)
        *given |= (unsigned)(policy_tree_find(v, keys[k].key) != NULL) << k;
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
    const int i = policy_words_find(&scales, word);
    return i >= 0 && strcmp(scale_words[i], word) == 0 ? i : -1;
}

const char *policy_muon_describe(const mpsim_muon *o, char *out, size_t size)
{
    snprintf(out, size,
             "lr %g, momentum %g%s, weight decay %g, %s form, %u steps of Newton and Schulz in %s, products by %s, "
             "adjust_lr %s",
             o->lr, o->momentum, o->nesterov ? ", nesterov" : "", o->weight_decay, form_words[o->form], o->steps,
             o->format.name, o->products ? kernels[o->products] : o->model.name, scale_words[o->scale]);
    return out;
}
