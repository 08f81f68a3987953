/* keys.c -- see keys.h: the keys of a policy, their defaults, their contradictions. */
#include "keys.h"

#include "../cli/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct key_row {
    const char *name;
    uint8_t entry; /* 0: of the policy only, 1: of both, 2: of a schedule's entry only */
} keys[POLICY_KEYS] = {
    [KEY_NAME] = {"name", 0},
    [KEY_SOURCE] = {"source", 0},
    [KEY_NOTE] = {"note", 0},
    [KEY_SCHEDULE] = {"schedule", 0},
    [KEY_STEPS_PER_EPOCH] = {"steps_per_epoch", 0},
    [KEY_STEP] = {"step", 2},
    [KEY_EPOCH] = {"epoch", 2},
    [KEY_PRECISION] = {"precision", 1},
    [KEY_OPT_LEVEL] = {"opt_level", 1},
    [KEY_COMPUTE] = {"compute", 1},
    [KEY_PARAMS] = {"params", 1},
    [KEY_GRADS] = {"grads", 1},
    [KEY_MASTER_WEIGHTS] = {"master_weights", 1},
    [KEY_AUTOCAST] = {"autocast", 1},
    [KEY_KEEP_BATCHNORM] = {"keep_batchnorm_fp32", 1},
    [KEY_KEEP_FP32] = {"keep_fp32", 1},
    [KEY_LAYER_KINDS] = {"layer_kinds", 1},
    [KEY_LOSS_SCALING] = {"loss_scaling", 1},
    [KEY_OPTIMIZER] = {"optimizer", 1},
    [KEY_CLIP] = {"clip", 1},
    [KEY_GRAD_REDUCE] = {"grad_reduce", 1},
    [KEY_FP8] = {"fp8", 1},
    [KEY_FP8_RECIPE] = {"fp8_recipe", 1},
    [KEY_FP8_MARGIN] = {"fp8_margin", 1},
    [KEY_FP8_HISTORY] = {"fp8_amax_history_len", 1},
    [KEY_FP8_ALGO] = {"fp8_amax_compute_algo", 1},
    [KEY_FP8_PARAMS] = {"fp8_params", 1},
    [KEY_FP8_EXCLUDE] = {"fp8_exclude", 1},
};

int policy_bad(policy_reader *r, unsigned line, const char *message, ...)
{
    char text[512];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    return trace_error_set(r->error, EXIT_DATA, r->path, UINT64_MAX, "line %u: %s", line, text);
}

/* ---- values ---- */

int value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text)
{
    if (v->type != YAML_TEXT || !v->text[0])
        return policy_bad(r, v->line, "%s: one word or number is needed", key);
    *text = v->text;
    return 0;
}

int value_number(policy_reader *r, const char *key, const yaml_value *v, double *x)
{
    const char *text = NULL;
    if (value_text(r, key, v, &text))
        return -1;
    if (parse_number(x, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a number", key, text);
    return 0;
}

int value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n)
{
    const char *text = NULL;
    if (value_text(r, key, v, &text))
        return -1;
    if (parse_count(n, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a non-negative integer", key, text);
    return 0;
}

int value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b)
{
    static const char *const words[][2] = {{"false", "true"}, {"no", "yes"}, {"off", "on"}};
    const char *text = NULL;
    if (value_text(r, key, v, &text))
        return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int j = 0; j < 2; j++)
            if (strcasecmp(text, words[i][j]) == 0) {
                *b = j;
                return 0;
            }
    return policy_bad(r, v->line, "%s: '%.60s' is neither true nor false", key, text);
}

/* Formats of tensors: those whose numbers are all binary32 numbers. */
int value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f)
{
    const char *text = NULL;
    if (value_text(r, key, v, &text))
        return -1;
    if (mpsim_format_parse(f, text))
        return policy_bad(r, v->line, "%s: '%.60s' is not a format", key, text);
    if (f->mbits > 23 || mpsim_format_max(f) > 0x1.fffffep127 ||
        mpsim_format_min_positive(f) < 0x1p-149 || !mpsim_format_is_signed(f))
        return policy_bad(r, v->line, "%s: %.40s is not a part of binary32", key, text);
    return 0;
}

/* ---- keys ---- */

static int find_key(const char *name, int entry)
{
    for (int k = 0; k < POLICY_KEYS; k++)
        if (strcmp(keys[k].name, name) == 0 && (entry ? keys[k].entry >= 1 : keys[k].entry <= 1))
            return k;
    return -1;
}

static int unknown_key(policy_reader *r, const yaml_item *item, int entry)
{
    suggestion s;
    char escaped[128];
    suggestion_init(&s, item->key);
    for (int k = 0; k < POLICY_KEYS; k++)
        if (entry ? keys[k].entry >= 1 : keys[k].entry <= 1)
            suggestion_consider(&s, keys[k].name);
    const char *hint = suggestion_end(&s, "");
    return policy_bad(r, item->line, "unknown key '%s'%s%s",
                      escape_text(escaped, sizeof escaped, item->key),
                      entry ? " in an entry of the schedule" : "", hint);
}

/* Keys that say what a new precision says anew. */
static const policy_key of_precision[] = {
    KEY_PRECISION,   KEY_OPT_LEVEL,      KEY_COMPUTE,        KEY_PARAMS,
    KEY_GRADS,       KEY_MASTER_WEIGHTS, KEY_AUTOCAST,       KEY_KEEP_BATCHNORM,
    KEY_LOSS_SCALING, KEY_FP8,           KEY_FP8_RECIPE,     KEY_FP8_MARGIN,
    KEY_FP8_HISTORY, KEY_FP8_ALGO,       KEY_FP8_PARAMS,     KEY_FP8_EXCLUDE};

static int gives(const yaml_value *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->items[i].key, name) == 0)
            return 1;
    return 0;
}

int settings_read(policy_reader *r, policy_settings *s, const yaml_value *map, int entry)
{
    if (map->type != YAML_MAP)
        return policy_bad(r, map->line, "'key: value' pairs are needed here");
    if (entry && (gives(map, "precision") || gives(map, "opt_level")))
        for (size_t i = 0; i < sizeof of_precision / sizeof *of_precision; i++) {
            s->value[of_precision[i]] = NULL;
            s->line[of_precision[i]] = 0;
        }
    for (size_t i = 0; i < map->count; i++) {
        const int k = find_key(map->items[i].key, entry);
        if (k < 0)
            return unknown_key(r, &map->items[i], entry);
        s->value[k] = map->items[i].value;
        s->line[k] = map->items[i].line;
    }
    return 0;
}

/* ---- from settings to a plan ---- */

static int contradicts(policy_reader *r, const policy_settings *s, policy_key a, policy_key b)
{
    if (!s->line[a] || !s->line[b])
        return 0;
    return policy_bad(r, s->line[a], "%s contradicts %s of line %u", keys[a].name, keys[b].name,
                      s->line[b]);
}

static int resolve_precision(policy_reader *r, const policy_settings *s, plan *p,
                             const precision_row **row)
{
    const int level = s->line[KEY_OPT_LEVEL] != 0;
    const policy_key k = level ? KEY_OPT_LEVEL : KEY_PRECISION;
    const char *word = "fp32";
    if (contradicts(r, s, KEY_OPT_LEVEL, KEY_PRECISION))
        return -1;
    if (s->line[k] && value_text(r, keys[k].name, s->value[k], &word))
        return -1;
    *row = precision_find(word, level);
    if (!*row)
        return policy_bad(r, s->line[k], "%s: '%.60s' is none of %s", keys[k].name, word,
                          precision_words(level));
    p->precision = word;
    p->compute = *mpsim_format_find((*row)->compute);
    p->params = *mpsim_format_find((*row)->params);
    p->grads = *mpsim_format_find((*row)->grads);
    p->autocast = autocast_find((*row)->autocast);
    p->master = (*row)->master;
    return 0;
}

static int is_fp32(const mpsim_format *f)
{
    return f->mbits == 23;
}

static int resolve_master(policy_reader *r, const policy_settings *s, plan *p)
{
    const yaml_value *v = s->value[KEY_MASTER_WEIGHTS];
    int yes = 0;
    if (!v)
        return 0;
    if (v->type == YAML_TEXT && strcasecmp(v->text, "split") == 0) {
        p->master = MASTER_SPLIT;
        if (strcmp(p->params.name, "bf16") != 0)
            return policy_bad(r, v->line, "master_weights: split needs bf16 parameters (params), "
                                          "not %s", p->params.name);
        return 0;
    }
    if (value_bool(r, "master_weights", v, &yes))
        return -1;
    if (yes && is_fp32(&p->params))
        return policy_bad(r, v->line, "master_weights: the parameters are fp32 already: give "
                                      "params in a lower precision");
    p->master = yes ? MASTER_FP32 : MASTER_NONE;
    return 0;
}

/* A lower precision that no layer takes up, and a master beside parameters that need none. */
static int check_effect(policy_reader *r, const policy_settings *s, const plan *p)
{
    static const policy_key lower[] = {KEY_PARAMS, KEY_COMPUTE};
    unsigned taken = 0;
    for (int k = 0; k < LAYER_KINDS; k++)
        taken |= p->autocast->low[k];
    for (int i = 0; i < 2; i++) {
        const mpsim_format *f = i ? &p->compute : &p->params;
        if (s->line[lower[i]] && !is_fp32(f) && !taken)
            return policy_bad(r, s->line[lower[i]],
                              "%s: %s has no effect: autocast %s leaves every layer in fp32",
                              keys[lower[i]].name, f->name, p->autocast->name);
    }
    if (p->master != MASTER_NONE && is_fp32(&p->params))
        return policy_bad(r, s->line[KEY_PARAMS],
                          "params: fp32 contradicts the fp32 master of %s: say master_weights: "
                          "false", p->precision);
    return 0;
}

static int resolve_formats(policy_reader *r, const policy_settings *s, plan *p)
{
    const char *word = NULL;
    int keep = 0;
    if (s->value[KEY_COMPUTE] && value_format(r, "compute", s->value[KEY_COMPUTE], &p->compute))
        return -1;
    if (s->line[KEY_COMPUTE] && !s->line[KEY_GRADS])
        p->grads = p->compute;
    if (s->value[KEY_PARAMS] && value_format(r, "params", s->value[KEY_PARAMS], &p->params))
        return -1;
    if (s->value[KEY_GRADS] && value_format(r, "grads", s->value[KEY_GRADS], &p->grads))
        return -1;
    if (s->value[KEY_AUTOCAST]) {
        if (value_text(r, "autocast", s->value[KEY_AUTOCAST], &word))
            return -1;
        p->autocast = autocast_find(word);
        if (!p->autocast)
            return policy_bad(r, s->line[KEY_AUTOCAST],
                              "autocast: '%.60s' is none of none, all, torch, norms-fp32, "
                              "batchnorm-fp32, megatron",
                              word);
    }
    if (s->value[KEY_KEEP_BATCHNORM]) {
        if (contradicts(r, s, KEY_KEEP_BATCHNORM, KEY_AUTOCAST) ||
            value_bool(r, "keep_batchnorm_fp32", s->value[KEY_KEEP_BATCHNORM], &keep))
            return -1;
        if (is_fp32(&p->params))
            return policy_bad(r, s->line[KEY_KEEP_BATCHNORM],
                              "keep_batchnorm_fp32: all parameters are fp32 already");
        p->autocast = autocast_find(keep ? "batchnorm-fp32" : "all");
    }
    return resolve_master(r, s, p) || check_effect(r, s, p) ? -1 : 0;
}

static int resolve_delayed(policy_reader *r, const policy_settings *s, plan *p)
{
    static const policy_key of_delayed[] = {KEY_FP8_MARGIN, KEY_FP8_HISTORY, KEY_FP8_ALGO};
    double margin = 0;
    uint64_t history = 1024;
    const char *algorithm = "max";
    for (size_t i = 0; i < sizeof of_delayed / sizeof *of_delayed; i++) {
        const policy_key k = of_delayed[i];
        if (s->line[k] && (!p->recipe || !p->recipe->delayed))
            return policy_bad(r, s->line[k], "%s: there is no delayed scaling: %s%s", keys[k].name,
                              p->recipe ? "the recipe is " : "precision is ",
                              p->recipe ? p->recipe->name : p->precision);
    }
    if (s->value[KEY_FP8_MARGIN] &&
        value_number(r, "fp8_margin", s->value[KEY_FP8_MARGIN], &margin))
        return -1;
    if (!(margin >= -126 && margin <= 126) || margin != (double)(int)margin)
        return policy_bad(r, s->line[KEY_FP8_MARGIN],
                          "fp8_margin: an integer from -126 to 126 is needed");
    if (s->value[KEY_FP8_HISTORY] &&
        value_count(r, "fp8_amax_history_len", s->value[KEY_FP8_HISTORY], &history))
        return -1;
    if (history < 1 || history > 1 << 20)
        return policy_bad(r, s->line[KEY_FP8_HISTORY],
                          "fp8_amax_history_len: 1 to 1048576 is needed");
    if (s->value[KEY_FP8_ALGO] &&
        value_text(r, "fp8_amax_compute_algo", s->value[KEY_FP8_ALGO], &algorithm))
        return -1;
    if (strcasecmp(algorithm, "max") != 0 && strcasecmp(algorithm, "most_recent") != 0)
        return policy_bad(r, s->line[KEY_FP8_ALGO],
                          "fp8_amax_compute_algo: '%.60s' is neither max nor most_recent",
                          algorithm);
    mpsim_delayed_config_init(&p->delayed, mpsim_format_find("e4m3"));
    p->delayed.history = (uint32_t)history;
    p->delayed.margin = (int16_t)margin;
    p->delayed.algorithm =
        strcasecmp(algorithm, "max") == 0 ? MPSIM_AMAX_MAX : MPSIM_AMAX_MOST_RECENT;
    return 0;
}

/* Hybrid or e4m3, where the recipe has both; "none" is NeMo's word for no FP8. */
static int resolve_fp8_format(policy_reader *r, const policy_settings *s, plan *p,
                              const char *format)
{
    const recipe_row *recipe = p->recipe;
    p->fp8_e4m3 = recipe ? recipe->default_e4m3 : 0;
    if (!format)
        return 0;
    p->fp8_e4m3 = strcasecmp(format, "e4m3") == 0;
    if (!(p->fp8_e4m3 ? recipe->agrad_e4m3 : recipe->agrad_hybrid))
        return policy_bad(r, s->line[KEY_FP8], "fp8: the recipe %s has no %s form", recipe->name,
                          format);
    return 0;
}

static int resolve_fp8(policy_reader *r, const policy_settings *s, plan *p,
                       const precision_row *row)
{
    const char *word = row->recipe;
    const char *format = NULL;
    if (s->value[KEY_FP8_RECIPE] &&
        value_text(r, "fp8_recipe", s->value[KEY_FP8_RECIPE], &word))
        return -1;
    if (s->value[KEY_FP8]) {
        if (value_text(r, "fp8", s->value[KEY_FP8], &format))
            return -1;
        const int none = strcasecmp(format, "none") == 0;
        if (!none && strcasecmp(format, "hybrid") != 0 && strcasecmp(format, "e4m3") != 0)
            return policy_bad(r, s->line[KEY_FP8], "fp8: '%.60s' is none of hybrid, e4m3, none",
                              format);
        if (none && word)
            return policy_bad(r, s->line[KEY_FP8], "fp8: none contradicts the recipe %.60s", word);
        if (none)
            format = NULL;
        else if (!word)
            word = "delayed";
    }
    p->recipe = word ? recipe_find(word) : NULL;
    if (word && !p->recipe)
        return policy_bad(r, s->line[KEY_FP8_RECIPE], "fp8_recipe: '%.60s' is not known: delayed, "
                          "current, tensorwise, blockwise, mxfp8, mxfp6, mxfp4, nvfp4, "
                          "torchao-tensorwise, torchao-rowwise, ms-amp", word);
    if (resolve_fp8_format(r, s, p, format))
        return -1;
    if (s->value[KEY_FP8_PARAMS]) {
        if (value_bool(r, "fp8_params", s->value[KEY_FP8_PARAMS], &p->fp8_params))
            return -1;
        if (!p->recipe && p->fp8_params)
            return policy_bad(r, s->line[KEY_FP8_PARAMS], "fp8_params: there is no FP8 recipe");
    }
    p->fp8_exclude = s->value[KEY_FP8_EXCLUDE];
    if (p->fp8_exclude && !p->recipe)
        return policy_bad(r, s->line[KEY_FP8_EXCLUDE], "fp8_exclude: there is no FP8 recipe");
    return resolve_delayed(r, s, p);
}

static int check_globs(policy_reader *r, const char *key, const yaml_value *v)
{
    if (!v)
        return 0;
    if (v->type != YAML_LIST)
        return policy_bad(r, v->line, "%s: a list of patterns is needed: ['*norm*', head]", key);
    for (size_t i = 0; i < v->count; i++)
        if (v->items[i].value->type != YAML_TEXT)
            return policy_bad(r, v->items[i].line, "%s: a pattern is one word", key);
    return 0;
}

static int check_kinds(policy_reader *r, const yaml_value *v)
{
    if (!v)
        return 0;
    if (v->type != YAML_MAP)
        return policy_bad(r, v->line, "layer_kinds: 'pattern: kind' pairs are needed");
    for (size_t i = 0; i < v->count; i++) {
        layer_kind kind;
        const char *word = NULL;
        if (value_text(r, "layer_kinds", v->items[i].value, &word))
            return -1;
        if (layer_kind_find(&kind, word))
            return policy_bad(r, v->items[i].line, "layer_kinds: '%.60s' is none of linear, conv, "
                              "batchnorm, norm, softmax, embedding, loss, other", word);
    }
    return 0;
}

static int check_stores(policy_reader *r, const policy_settings *s, const plan *p)
{
    const optimizer_choice *o = &p->optimizer;
    if (o->store != MPSIM_STORE_NEAREST && p->master != MASTER_NONE)
        return policy_bad(r, s->line[KEY_OPTIMIZER],
                          "optimizer: store %s contradicts master_weights: the master keeps what "
                          "the parameter loses",
                          o->store == MPSIM_STORE_KAHAN ? "kahan" : "stochastic");
    if (o->store != MPSIM_STORE_NEAREST && is_fp32(&p->params))
        return policy_bad(r, s->line[KEY_OPTIMIZER],
                          "optimizer: store needs parameters in a lower precision (params)");
    return 0;
}

int settings_resolve(policy_reader *r, const policy_settings *s, plan *p)
{
    const precision_row *row;
    memset(p, 0, sizeof *p);
    if (resolve_precision(r, s, p, &row) || resolve_formats(r, s, p) || resolve_fp8(r, s, p, row))
        return -1;
    if (check_globs(r, "keep_fp32", s->value[KEY_KEEP_FP32]) ||
        check_globs(r, "fp8_exclude", p->fp8_exclude) ||
        check_kinds(r, s->value[KEY_LAYER_KINDS]))
        return -1;
    p->keep_fp32 = s->value[KEY_KEEP_FP32];
    p->layer_kinds = s->value[KEY_LAYER_KINDS];
    mpsim_scaler_parse(&p->scaler, row->scaler); /* a row of the table */
    if (s->value[KEY_LOSS_SCALING] &&
        resolve_scaling(r, s->value[KEY_LOSS_SCALING], s->line[KEY_OPT_LEVEL] != 0, &p->scaler))
        return -1;
    if (resolve_optimizer(r, s->value[KEY_OPTIMIZER], &p->optimizer) ||
        resolve_clip(r, s->value[KEY_CLIP], p) ||
        resolve_reduce(r, s->value[KEY_GRAD_REDUCE], p))
        return -1;
    return check_stores(r, s, p);
}
