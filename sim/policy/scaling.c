/* scaling.c -- the key loss_scaling of a policy; see parts.h. */
#include "impl.h"

#include "../cli/options.h"
#include "../operand/scalerword.h"
#include "../text/words.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What frameworks call the parameters of their scalers, and ours. */
static const struct scaler_word {
    const char *word, *key;
} scaler_words[] = {
    {"init", "init"},
    {"init_scale", "init"},              /* torch                                     */
    {"initial_scale", "init"},           /* Keras                                     */
    {"initial_loss_scale", "init"},      /* Megatron                                  */
    {"fp16_initial_loss_scale", "init"}, /* NeMo                                      */
    {"initial_scale_power", "init=2^"},  /* DeepSpeed                                 */
    {"scale_factor", "growth"},          /* Apex, DeepSpeed, fairseq: backing off divides by it; with_backoff */
    {"growth", "growth"},
    {"growth_factor", "growth"},
    {"backoff", "backoff"},
    {"backoff_factor", "backoff"},
    {"window", "window"},
    {"growth_interval", "window"},
    {"dynamic_growth_steps", "window"}, /* Keras                                     */
    {"loss_scale_window", "window"},    /* DeepSpeed, Megatron, NeMo                 */
    {"scale_window", "window"},         /* DeepSpeed, Apex, fairseq: the class       */
    {"hysteresis", "hysteresis"},
    {"delayed_shift", "hysteresis"}, /* DeepSpeed: the class                      */
    {"floor", "floor"},
    {"min_loss_scale", "floor"},
    {"min_scale", "floor"}, /* DeepSpeed: the class                      */
    {"ceiling", "ceiling"},
    {"max_loss_scale", "ceiling"}, /* Apex                                      */
    {"tolerance", "tolerance"},
    {"threshold", "threshold"},
    {"skip", "skip"},
    {"refill", "refill"},
    {"growth_rule", "growth-rule"},
    {"floor_rule", "floor-rule"},
    {"order", "order"},
    {"unscale", "unscale"},
    {"arithmetic", "arithmetic"},
    {"check", "check"},
    {"guard", "guard"},
};

/* What no framework accepts, or what cannot work. */
static int check_scaler(policy_reader *r, unsigned line, const mpsim_scaler_config *c)
{
    if (c->dynamic && !(c->growth > 1))
        return policy_bad(r, line, "loss_scaling: growth must be above 1");
    if (c->dynamic && !(c->backoff < 1))
        return policy_bad(r, line, "loss_scaling: backoff must be below 1");
    if (c->dynamic && (c->floor > c->init || c->ceiling < c->init))
        return policy_bad(r, line, "loss_scaling: the initial scale must lie between floor and ceiling");
    return 0;
}

static int parse_scaler(policy_reader *r, unsigned line, const char *spec, mpsim_scaler_config *c)
{
    const char *why = scaler_read(c, spec);
    if (!why)
        return 0;
    return policy_bad(r, line, "loss_scaling: '%.100s' is not a scaler: %s; see 'mpsim scaler --list'", spec, why);
}

/* The scaler that a word stands for: a row, "dynamic", or the constant scale itself. */
static int scaler_word(policy_reader *r, const yaml_value *v, int apex, char *spec, size_t size)
{
    const char *word = NULL;
    double x;
    if (policy_value_text(r, "loss_scaling", v, &word))
        return -1;
    if (strcasecmp(word, "dynamic") == 0)
        word = apex ? "apex" : "torch";
    else if (strcasecmp(word, "false") == 0 || strcasecmp(word, "no") == 0)
        word = "none";
    if (parse_number(&x, word) == 0)
        snprintf(spec, size, "static:init=%.100s", word);
    else
        snprintf(spec, size, "%.150s", word);
    return 0;
}

/* The value of a key that has two values, as the library writes it. */
static const char *flag_text(const char *key, const char *text)
{
    static const char *const words[][2] = {{"false", "0"}, {"no", "0"}, {"true", "1"}, {"yes", "1"}};
    const int is_flag = strcmp(key, "skip") == 0 || strcmp(key, "guard") == 0;
    for (size_t i = 0; is_flag && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i][0]) == 0)
            return words[i][1];
    return text;
}

static const char *key_of(const char *word)
{
    for (size_t k = 0; k < sizeof scaler_words / sizeof *scaler_words; k++)
        if (strcmp(scaler_words[k].word, word) == 0)
            return scaler_words[k].key;
    return NULL;
}

/* One factor for both ways. */
static int with_backoff(policy_reader *r, const yaml_item *item, char *spec, size_t size)
{
    double factor = 0;
    if (strcmp(item->key, "scale_factor") != 0)
        return 0;
    if (policy_value_number(r, item->key, item->value, &factor))
        return -1;
    if (!(factor > 1))
        return policy_bad(r, item->line, "loss_scaling: scale_factor: above 1 is needed");
    text_add(spec, size, ",backoff=%a", 1 / factor);
    return 0;
}

/* loss_scale, a framework's: 0 is dynamic, any other number the constant scale of a scaler that has one. */
static int is_dynamic(const yaml_item *item)
{
    double x = 1;
    return item->value->type == YAML_TEXT && parse_number(&x, item->value->text) == 0 && x == 0;
}

static int add_word(policy_reader *r, const yaml_item *item, char *spec, size_t size, mpsim_scaler_config *c)
{
    const int constant = strcmp(item->key, "loss_scale") == 0;
    const char *text = NULL, *key = constant ? "init" : key_of(item->key);
    if (constant && is_dynamic(item))
        return 0;
    if (constant && !strstr(spec, "static"))
        return policy_bad(r, item->line,
                          "loss_scaling: loss_scale: only 0 (dynamic); a constant scale "
                          "is loss_scaling: NUMBER; DeepSpeed's, which skips, deepspeed-static:NUMBER");
    if (!key)
        return policy_bad(r, item->line, "loss_scaling: unknown key '%.60s'", item->key);
    if (policy_value_text(r, item->key, item->value, &text))
        return -1;
    text_add(spec, size, "%c%s%s%.60s", strchr(spec, ':') ? ',' : ':', key, strchr(key, '=') ? "" : "=",
             flag_text(key, text));
    if (with_backoff(r, item, spec, size))
        return -1;
    const char *why = scaler_read(c, spec);
    return why ? policy_bad(r, item->line, "loss_scaling: %.60s: '%.60s' is not possible: %s", item->key, text, why)
               : 0;
}

/* Which scaler a map means: by its key; a constant one, if it only has a loss_scale. */
static int named_scaler(policy_reader *r, const yaml_value *v, int apex, char *spec, size_t size)
{
    const yaml_item *name = policy_tree_find(v, "scaler"), *constant = policy_tree_find(v, "loss_scale");
    if (name)
        return scaler_word(r, name->value, apex, spec, size);
    if (!constant || is_dynamic(constant))
        return policy_bad(r, v->line, "loss_scaling: which scaler: key 'scaler' is missing");
    snprintf(spec, size, "static");
    return 0;
}

/* torch's enabled: 1, 0 where it is false, -1 after a message. */
static int is_enabled(policy_reader *r, const yaml_value *v)
{
    const yaml_item *item = policy_tree_find(v, "enabled");
    int yes = 1;
    return item && policy_value_bool(r, "enabled", item->value, &yes) ? -1 : yes;
}

static int read_map(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c)
{
    char spec[1024] = "";
    const int enabled = is_enabled(r, v);
    if (enabled <= 0)
        return enabled < 0 ? -1 : parse_scaler(r, v->line, "none", c);
    if (named_scaler(r, v, apex, spec, sizeof spec))
        return -1;
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->items[i].key, "scaler") != 0 && strcmp(v->items[i].key, "enabled") != 0 &&
            add_word(r, &v->items[i], spec, sizeof spec, c))
            return -1;
    return parse_scaler(r, v->line, spec, c) ? -1 : check_scaler(r, v->line, c);
}

int policy_resolve_scaling(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c)
{
    char spec[1024] = "";
    if (v->type == YAML_MAP)
        return read_map(r, v, apex, c);
    if (v->type != YAML_TEXT)
        return policy_bad(r, v->line, "loss_scaling: a scaler's name or 'key: value' pairs are needed");
    if (scaler_word(r, v, apex, spec, sizeof spec) || parse_scaler(r, v->line, spec, c))
        return -1;
    return check_scaler(r, v->line, c);
}
