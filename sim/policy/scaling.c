/* scaling.c -- the key loss_scaling of a policy; see parts.h. */
#include "impl.h"

#include "../cli/options.h"
#include "../operand/scalerword.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What frameworks call the parameters of their scalers, and ours. */
static const struct scaler_word {
    const char *word, *key;
    int is_power; /* 2 to this power */
} scaler_words[] = {
    {"init", "init", 0},
    {"init_scale", "init", 0},              /* torch                                     */
    {"initial_scale", "init", 0},           /* Keras                                     */
    {"initial_loss_scale", "init", 0},      /* Megatron                                  */
    {"fp16_initial_loss_scale", "init", 0}, /* NeMo                                      */
    {"initial_scale_power", "init", 1},     /* DeepSpeed                                 */
    {"scale_factor", "growth", 0},          /* Apex, DeepSpeed, fairseq: backing off divides by it; with_backoff */
    {"growth", "growth", 0},
    {"growth_factor", "growth", 0},
    {"backoff", "backoff", 0},
    {"backoff_factor", "backoff", 0},
    {"window", "window", 0},
    {"growth_interval", "window", 0},
    {"dynamic_growth_steps", "window", 0}, /* Keras                                     */
    {"loss_scale_window", "window", 0},    /* DeepSpeed, Megatron, NeMo                 */
    {"scale_window", "window", 0},         /* DeepSpeed, Apex, fairseq: the class       */
    {"hysteresis", "hysteresis", 0},
    {"delayed_shift", "hysteresis", 0}, /* DeepSpeed: the class                      */
    {"floor", "floor", 0},
    {"min_loss_scale", "floor", 0},
    {"min_scale", "floor", 0}, /* DeepSpeed: the class                      */
    {"ceiling", "ceiling", 0},
    {"max_loss_scale", "ceiling", 0}, /* Apex                                      */
    {"tolerance", "tolerance", 0},
    {"threshold", "threshold", 0},
    {"skip", "skip", 0},
    {"refill", "refill", 0},
    {"growth_rule", "growth-rule", 0},
    {"floor_rule", "floor-rule", 0},
    {"order", "order", 0},
    {"unscale", "unscale", 0},
    {"arithmetic", "arithmetic", 0},
    {"check", "check", 0},
    {"guard", "guard", 0},
};

const policy_words policy_scaling_keys = POLICY_WORDS(scaler_words);

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

/* The scaler that a word stands for: a row, "dynamic", or the constant scale itself. */
static int read_word(policy_reader *r, const yaml_value *v, int apex, scaler_draft *d)
{
    const char *word = NULL, *why;
    double x;
    if (policy_value_text(r, "loss_scaling", v, &word))
        return -1;
    if (strcasecmp(word, "dynamic") == 0)
        why = scaler_begin(d, apex ? "apex" : "torch");
    else if (strcasecmp(word, "false") == 0 || strcasecmp(word, "no") == 0)
        why = scaler_begin(d, "none");
    else if (parse_number(&x, word))
        why = scaler_begin(d, word);
    else if (!(why = scaler_begin(d, "static")))
        why = scaler_set(d, "init", word);
    why = why ? why : scaler_end(d);
    return why ? policy_bad(r, v->line, "loss_scaling: '%.100s' is not a scaler: %s; see 'mpsim scaler --list'", word,
                            why)
               : 0;
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

static const struct scaler_word *row_of(const char *word)
{
    for (size_t k = 0; k < sizeof scaler_words / sizeof *scaler_words; k++)
        if (strcmp(scaler_words[k].word, word) == 0)
            return &scaler_words[k];
    return NULL;
}

/* loss_scale, a framework's: 0 is dynamic, any other number the constant scale of a scaler that has one. */
static int is_dynamic(const yaml_item *item)
{
    double x = 1;
    return item->value->type == YAML_TEXT && parse_number(&x, item->value->text) == 0 && x == 0;
}

static int impossible(policy_reader *r, const yaml_item *item, const char *why)
{
    return policy_bad(r, item->line, "loss_scaling: %.60s: '%.60s' is not possible: %s", item->key, item->value->text,
                      why);
}

/* A key and its value. scale_factor is one factor for both ways. */
static int set_key(policy_reader *r, const struct scaler_word *row, const yaml_item *item, scaler_draft *d)
{
    const char *text = NULL;
    char made[80];
    double factor = 2;
    const int both = strcmp(row->word, "scale_factor") == 0;
    if (policy_value_text(r, item->key, item->value, &text) ||
        (both && policy_value_number(r, item->key, item->value, &factor)))
        return -1;
    if (!(factor > 1))
        return policy_bad(r, item->line, "loss_scaling: scale_factor: above 1 is needed");
    snprintf(made, sizeof made, "2^%.60s", text);
    const char *why = scaler_set(d, row->key, row->is_power ? made : flag_text(row->key, text));
    snprintf(made, sizeof made, "%a", 1 / factor);
    if (both && !why)
        why = scaler_set(d, "backoff", made);
    return why ? impossible(r, item, why) : 0;
}

static int add_word(policy_reader *r, const yaml_item *item, scaler_draft *d)
{
    static const struct scaler_word constant = {"loss_scale", "init", 0};
    const int is_constant = strcmp(item->key, constant.word) == 0;
    const struct scaler_word *row = is_constant ? &constant : row_of(item->key);
    if (is_constant && is_dynamic(item))
        return 0;
    if (is_constant && !strstr(d->config.name, "static"))
        return policy_bad(r, item->line,
                          "loss_scaling: loss_scale: only 0 (dynamic); a constant scale "
                          "is loss_scaling: NUMBER; DeepSpeed's, which skips, deepspeed-static:NUMBER");
    return row ? set_key(r, row, item, d) : policy_bad(r, item->line, "loss_scaling: unknown key '%.60s'", item->key);
}

/* Which scaler a map means: by its key; a constant one, if it only has a loss_scale. */
static int named_scaler(policy_reader *r, const yaml_value *v, int apex, scaler_draft *d)
{
    const yaml_item *name = policy_tree_find(v, "scaler"), *constant = policy_tree_find(v, "loss_scale");
    if (name)
        return read_word(r, name->value, apex, d);
    if (!constant || is_dynamic(constant))
        return policy_bad(r, v->line, "loss_scaling: which scaler: key 'scaler' is missing");
    return scaler_begin(d, "static") ? -1 : 0;
}

/* The keys of a map, one after the other: what they are together counts at the end, and is said of the key that spoilt it. */
static int read_keys(policy_reader *r, const yaml_value *v, scaler_draft *d)
{
    const yaml_item *spoils = NULL;
    const char *why = NULL;
    for (size_t i = 0; i < v->count; i++) {
        const yaml_item *item = &v->items[i];
        if (strcmp(item->key, "scaler") == 0 || strcmp(item->key, "enabled") == 0)
            continue;
        if (add_word(r, item, d))
            return -1;
        const char *now = scaler_end(d);
        spoils = now && !why ? item : spoils;
        why = now;
    }
    return why ? impossible(r, spoils, why) : 0;
}

static int read_map(policy_reader *r, const yaml_value *v, int apex, scaler_draft *d)
{
    const yaml_item *enabled = policy_tree_find(v, "enabled"); /* torch's */
    int yes = 1;
    if (enabled && policy_value_bool(r, "enabled", enabled->value, &yes))
        return -1;
    if (!yes)
        return scaler_begin(d, "none") ? -1 : 0;
    return named_scaler(r, v, apex, d) || read_keys(r, v, d) ? -1 : check_scaler(r, v->line, &d->config);
}

int policy_resolve_scaling(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c)
{
    scaler_draft d;
    if (v->type == YAML_LIST)
        return policy_bad(r, v->line, "loss_scaling: a scaler's name or 'key: value' pairs are needed");
    if (v->type == YAML_MAP ? read_map(r, v, apex, &d)
                            : read_word(r, v, apex, &d) || check_scaler(r, v->line, &d.config))
        return -1;
    *c = d.config;
    return 0;
}
