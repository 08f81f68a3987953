/* keys.c -- see keys.h. From top to bottom: what each key sets, in the order of the
 * table, which stands at the end with what walks it.
 *
 * A row may give the type, the range and the needs of its key. An entry of a schedule has the same keys again.
 * Contradictions are errors: no key overrides another. Keys of maps (`optimizer`, `muon`, `clip`, `grad_reduce`)
 * are rows of the same kind, read by policy_map_read. */
#include "impl.h"

#include "../array/want.h"
#include "../cli/options.h"
#include "../text/words.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The key at hand contradicts another one that is given, too. */
static int contradicts(policy_draft *d, policy_key k, const char *other)
{
    return d->line[k] ? policy_bad(&d->r, d->at, "%s contradicts %s of line %u", d->name, other, d->line[k]) : 0;
}

/* ---- the policy ---- */

/* Text for people: what would need escapes on a terminal is refused. */
static int set_text(policy_draft *d, const yaml_value *v, void *at)
{
    char escaped[1024], **to = at;
    const char *text = NULL;
    if (policy_value_text(&d->r, d->name, v, &text))
        return -1;
    if (strlen(text) >= sizeof escaped / 4 || strcmp(escape_text(escaped, sizeof escaped, text), text) != 0)
        return policy_bad(&d->r, d->at, "%s: a line of at most %zu printable characters is needed", d->name,
                          sizeof escaped / 4 - 1);
    char *own = want_text(text);
    if (!own)
        return -1;
    free(*to);
    *to = own;
    return 0;
}

/* Its entries are policy.c's. */
static int check_schedule(policy_draft *d, const yaml_value *v)
{
    return v->type == YAML_LIST ? 0 : policy_bad(&d->r, v->line, "schedule: a list of entries is needed");
}

/* ---- where a schedule's entry begins: at a step, or at the first one of an epoch, from 1 ---- */

static int set_step(policy_draft *d, const yaml_value *v)
{
    if (!d->line[KEY_STEP] == !d->line[KEY_EPOCH])
        return policy_bad(&d->r, d->entry, "schedule: an entry needs either step or epoch");
    return v ? policy_value_count(&d->r, d->name, v, &d->plan->from) : 0;
}

/* ---- precision: what the keys below are where they are not given ---- */

static const precision_row *find_precision(policy_draft *d, const char *word)
{
    const policy_words *words = d->key == KEY_OPT_LEVEL ? &policy_levels : &policy_precisions;
    const int i = policy_word(&d->r, d->at, d->name, word, words);
    return i < 0 ? NULL : policy_precision_at(words, i);
}

static int take_precision(policy_draft *d, const yaml_value *v)
{
    const char *word = "fp32";
    plan *p = d->plan;
    if (v && policy_value_text(&d->r, d->name, v, &word))
        return -1;
    word += strncmp(word, "torch.", 6) == 0 ? 6 : 0;
    const precision_row *row = find_precision(d, word);
    if (!row)
        return -1;
    d->precision = row;
    snprintf(p->precision, sizeof p->precision, "%s", word);
    p->compute = *mpsim_format_find(row->compute);
    p->params = *mpsim_format_find(row->params);
    p->grads = *mpsim_format_find(row->grads);
    p->autocast = policy_autocast_find(row->autocast);
    p->master = row->master;
    mpsim_scaler_parse(&p->scaler, row->scaler); /* a row of the table */
    return 0;
}

/* An opt level with bf16 as its half precision: what the level keeps in fp16 is bf16, and nothing is scaled. */
static void take_bf16(policy_draft *d)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    plan *p = d->plan;
    mpsim_format *const formats[] = {&p->compute, &p->params, &p->grads};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i]->name, "fp16") == 0)
            *formats[i] = *bf16;
    mpsim_scaler_parse(&p->scaler, "none");
    text_add(p->precision, sizeof p->precision, " bf16");
}

/* Guides print precision beside opt_level: the level says more, and counts; but bf16 is what it lowers to. */
static int set_precision(policy_draft *d, const yaml_value *v)
{
    const char *word = NULL;
    if (!d->value[KEY_OPT_LEVEL])
        return take_precision(d, v);
    if (!v)
        return 0;
    if (policy_value_text(&d->r, d->name, v, &word))
        return -1;
    const precision_row *row = find_precision(d, word);
    if (!row)
        return -1;
    if (strcmp(row->compute, "bf16") == 0 && !row->recipe && strcmp(d->plan->compute.name, "fp16") == 0) {
        take_bf16(d);
        return 0;
    }
    policy_remark(&d->r, d->at, "precision %.40s does not count beside opt_level %s of line %u", word,
                  d->plan->precision, d->line[KEY_OPT_LEVEL]);
    return 0;
}

/* ---- formats ---- */

/* FSDP's MixedPrecision: all of a module is computed in param_dtype, from binary32 shards. The scaler stays that of the precision. */
static int set_param_dtype(policy_draft *d, const yaml_value *v)
{
    plan *p = d->plan;
    if (policy_value_format(&d->r, d->name, v, &p->params))
        return -1;
    p->compute = p->grads = p->params;
    p->autocast = policy_autocast_find(p->params.mbits == 23 ? "none" : "all");
    p->master = p->params.mbits == 23 ? TRAIN_NO_MASTER : TRAIN_MASTER;
    if (!d->value[KEY_PRECISION] && !d->value[KEY_OPT_LEVEL])
        snprintf(p->precision, sizeof p->precision, "param_dtype %s", p->params.name);
    return 0;
}

static int is_fp32(const mpsim_format *f)
{
    return f->mbits == 23;
}

/* A level that lowers to fp16 lowers to bf16 where `compute` is bf16. */
static int set_compute(policy_draft *d, const yaml_value *v)
{
    mpsim_format compute = d->plan->compute;
    if (v && policy_value_format(&d->r, d->name, v, &compute))
        return -1;
    if (d->value[KEY_OPT_LEVEL] && strcmp(d->plan->compute.name, "fp16") == 0 && strcmp(compute.name, "bf16") == 0)
        take_bf16(d);
    d->plan->compute = compute;
    if (v && !d->value[KEY_GRADS])
        d->plan->grads = d->plan->compute;
    return 0;
}

static int set_autocast(policy_draft *d, const yaml_value *v)
{
    const char *word = NULL;
    if (policy_value_text(&d->r, d->name, v, &word) || policy_word(&d->r, d->at, d->name, word, &policy_autocasts) < 0)
        return -1;
    d->plan->autocast = policy_autocast_find(word);
    return 0;
}

static int set_keep_batchnorm(policy_draft *d, const yaml_value *v)
{
    int keep = 0;
    if (contradicts(d, KEY_AUTOCAST, "autocast") || policy_value_bool(&d->r, d->name, v, &keep))
        return -1;
    if (is_fp32(&d->plan->params))
        return policy_bad(&d->r, d->at, "keep_batchnorm_fp32: all parameters are fp32 already");
    d->plan->autocast = policy_autocast_find(keep ? "batchnorm-fp32" : "all");
    return 0;
}

static int take_master(policy_draft *d, const yaml_value *v)
{
    plan *p = d->plan;
    int yes = 0;
    if (v->type == YAML_TEXT && strcasecmp(v->text, "split") == 0) {
        p->master = TRAIN_SPLIT_MASTER;
        if (strcmp(p->params.name, "bf16") != 0)
            return policy_bad(&d->r, v->line, "master_weights: split needs bf16 parameters (params), not %s",
                              p->params.name);
        return 0;
    }
    if (policy_value_bool(&d->r, d->name, v, &yes))
        return -1;
    if (yes && is_fp32(&p->params))
        return policy_bad(&d->r, v->line,
                          "master_weights: the parameters are fp32 already: give params in a lower precision");
    p->master = yes ? TRAIN_MASTER : TRAIN_NO_MASTER;
    return 0;
}

/* A lower precision that no layer takes up. */
static int has_effect(policy_draft *d, policy_key k, const char *name, const mpsim_format *f)
{
    unsigned taken = 0;
    for (int i = 0; i < LAYER_KINDS; i++)
        taken |= d->plan->autocast->low[i];
    if (!d->line[k] || is_fp32(f) || taken)
        return 0;
    return policy_bad(&d->r, d->line[k], "%s: %s has no effect: autocast %s leaves every layer in fp32", name, f->name,
                      d->plan->autocast->name);
}

/* The last of the formats: also says what they are together. */
static int set_master(policy_draft *d, const yaml_value *v)
{
    const plan *p = d->plan;
    if (v && take_master(d, v))
        return -1;
    if (has_effect(d, KEY_PARAMS, "params", &p->params) || has_effect(d, KEY_COMPUTE, "compute", &p->compute))
        return -1;
    if (p->master != TRAIN_NO_MASTER && is_fp32(&p->params))
        return policy_bad(&d->r, d->line[KEY_PARAMS],
                          "params: fp32 contradicts the fp32 master of %s: say master_weights: false", p->precision);
    return 0;
}

/* ---- fp8 ---- */

static int set_fp8_recipe(policy_draft *d, const yaml_value *v)
{
    d->recipe = d->precision->recipe;
    return v ? policy_value_text(&d->r, d->name, v, &d->recipe) : 0;
}

/* hybrid or e4m3, or NULL; "none" is NeMo's word for no FP8. */
static int take_fp8(policy_draft *d, const yaml_value *v, const char **format)
{
    static const char *const words[] = {"hybrid", "e4m3", "none"};
    static const policy_words forms = POLICY_WORDS(words);
    if (policy_value_text(&d->r, d->name, v, format) || policy_word(&d->r, d->at, d->name, *format, &forms) < 0)
        return -1;
    const int none = strcasecmp(*format, "none") == 0;
    if (none && d->recipe)
        return policy_bad(&d->r, d->at, "fp8: none contradicts the recipe %.60s", d->recipe);
    if (none)
        *format = NULL;
    else if (!d->recipe)
        d->recipe = "delayed";
    return 0;
}

static int set_fp8(policy_draft *d, const yaml_value *v)
{
    plan *p = d->plan;
    const char *format = NULL;
    char list[384];
    mpsim_delayed_config_init(&p->delayed, mpsim_format_find("e4m3"));
    p->delayed.history = 1024;
    p->delayed.margin = 0;
    p->delayed.algorithm = MPSIM_AMAX_MAX;
    if (v && take_fp8(d, v, &format))
        return -1;
    const recipe_row *row = p->recipe = d->recipe ? policy_recipe_find(d->recipe) : NULL;
    if (d->recipe && !row)
        return policy_bad(&d->r, d->line[KEY_FP8_RECIPE], "fp8_recipe: '%.60s' is not known: %s", d->recipe,
                          policy_words_text(&policy_recipes, list, sizeof list));
    p->fp8_e4m3 = format ? strcasecmp(format, "e4m3") == 0 : row ? row->default_e4m3 : 0;
    if (format && !(p->fp8_e4m3 ? row->agrad_e4m3 : row->agrad_hybrid))
        return policy_bad(&d->r, d->at, "fp8: the recipe %s has no %s form", row->name, format);
    return 0;
}

/* ---- what has keys of its own ---- */

static int set_scaling(policy_draft *d, const yaml_value *v)
{
    return policy_resolve_scaling(&d->r, v, d->line[KEY_OPT_LEVEL] != 0, &d->plan->scaler);
}

static int set_optimizer(policy_draft *d, const yaml_value *v)
{
    return policy_resolve_optimizer(&d->r, v, &d->plan->optimizer);
}

/* The words of frameworks for clip have 0 for none. */
static int is_zero(const policy_draft *d, const yaml_value *v)
{
    double x = 1;
    return v && v->type == YAML_TEXT && strcmp(d->name, "clip") != 0 && parse_number(&x, v->text) == 0 && x == 0;
}

static int set_clip(policy_draft *d, const yaml_value *v)
{
    const int none = is_zero(d, v), code = policy_resolve_clip(&d->r, none ? NULL : v, d->plan);
    d->plan->clip_given = v != NULL;
    return code;
}

/* Whether the clip is there and switched off. */
static int is_off(const policy_draft *d)
{
    const yaml_value *clip = d->value[KEY_CLIP];
    return clip && clip->type == YAML_TEXT && d->plan->clip == MPSIM_CLIP_NONE;
}

/* The word of NeMo RL and of trainers for the norm of clip. */
static int set_max_grad_norm(policy_draft *d, const yaml_value *v)
{
    if (v->type != YAML_TEXT)
        return policy_bad(&d->r, d->at, "max_grad_norm: a number is needed");
    if (is_off(d)) {
        policy_remark(&d->r, d->at, "max_grad_norm %.40s does not count: %s of line %u turns the clip off", v->text,
                      d->said[KEY_CLIP], d->line[KEY_CLIP]);
        return 0;
    }
    return contradicts(d, KEY_CLIP, "clip") || policy_resolve_clip(&d->r, v, d->plan) ? -1 : 0;
}

/* FSDP's reduce_dtype may be None: the gradients' own. */
static int is_none(const policy_draft *d, const yaml_value *v)
{
    return strcmp(d->name, "reduce_dtype") == 0 && v->type == YAML_TEXT &&
           (strcasecmp(v->text, "null") == 0 || strcasecmp(v->text, "none") == 0);
}

static int set_reduce(policy_draft *d, const yaml_value *v)
{
    return policy_resolve_reduce(&d->r, v && is_none(d, v) ? NULL : v, d->plan);
}

/* What the keys are together: whether the optimizer's way of storing has a use in the whole plan. */
static int finish(policy_draft *d)
{
    plan *p = d->plan;
    const int store = p->optimizer.store;
    if (d->entry && d->line[KEY_EPOCH])
        p->from = (p->from - 1) * d->epoch + 1;
    p->params_given = d->value[KEY_PARAMS] || d->value[KEY_OPT_LEVEL] || d->value[KEY_PARAM_DTYPE];
    p->grads_given = d->value[KEY_GRADS] != NULL;
    if (store != MPSIM_STORE_NEAREST && p->master != TRAIN_NO_MASTER)
        return policy_bad(&d->r, d->line[KEY_OPTIMIZER],
                          "optimizer: store %s contradicts master_weights: the master keeps what the parameter loses",
                          store == MPSIM_STORE_KAHAN ? "kahan" : "stochastic");
    if (store != MPSIM_STORE_NEAREST && is_fp32(&p->params))
        return policy_bad(&d->r, d->line[KEY_OPTIMIZER],
                          "optimizer: store needs parameters in a lower precision (params)");
    return 0;
}

/* ---- the table ---- */

/* Where a key may stand; PLAN: in both. ANEW: a new precision in a schedule's entry forgets it. IDLE: an entry that inherits it and does not
 * have what it works on goes without it. DRAFT: the value's place is in the draft. */
enum { FILE_KEY = 1, ENTRY_KEY = 2, PLAN_KEY = 3, ANEW = 4, IDLE = 8, DRAFT = 16 };

typedef struct key_row {
    policy_row value; /* of the plan                                                     */
    /* instead of value.type: what the value is made of, also where it is none; only where there is one; and with its place */
    int (*always)(policy_draft *d, const yaml_value *v);
    int (*given)(policy_draft *d, const yaml_value *v);
    int (*place)(policy_draft *d, const yaml_value *v, void *to);
    unsigned scope;
    policy_need needs; /* what a value, or true, works on */
} key_row;

/* A key by how it is read, where it may stand; a place of the plan, and what it works on. */
#define OWN(name, how, function, scope_)                  \
    {                                                     \
        .value = {name}, .how = function, .scope = scope_ \
    }
#define TYPED(name, type, at_, scope_, needs_, ...)                                                            \
    {                                                                                                          \
        .value = {name, type, offsetof(plan, at_), __VA_ARGS__}, .scope = PLAN_KEY | (scope_), .needs = needs_ \
    }
#define PLACED(name, function, at_, scope_, needs_)                                                         \
    {                                                                                                       \
        .value = {.key = name, .at = offsetof(plan, at_)}, .place = function, .scope = PLAN_KEY | (scope_), \
        .needs = needs_                                                                                     \
    }
#define TEXT(name)                                                                                  \
    {                                                                                               \
        .value = {.key = #name, .at = offsetof(policy, name)}, .place = set_text, .scope = FILE_KEY \
    }

static const char *const algorithm_words[] = {"max", "most_recent"};
static const policy_words algorithms = POLICY_WORDS(algorithm_words);

static const key_row keys[POLICY_KEYS] = {
    [KEY_NAME] = TEXT(name),
    [KEY_SOURCE] = TEXT(source),
    [KEY_NOTE] = TEXT(note),
    [KEY_SCHEDULE] = OWN("schedule", given, check_schedule, FILE_KEY),
    [KEY_STEPS_PER_EPOCH] = {.value = {"steps_per_epoch", POLICY_COUNT64, offsetof(policy_draft, epoch),
                                       .range = {1, UINT32_MAX, 0, 0}},
                             .scope = FILE_KEY | DRAFT},
    [KEY_STEP] = OWN("step", always, set_step, ENTRY_KEY),
    [KEY_EPOCH] = {.value = {"epoch", POLICY_COUNT64, offsetof(plan, from), .range = {1, UINT32_MAX, 0, 0}},
                   .scope = ENTRY_KEY,
                   .needs = NEED_EPOCHS},
    /* formats: plan.compute, params, grads, autocast, master */
    [KEY_OPT_LEVEL] = OWN("opt_level", given, take_precision, PLAN_KEY | ANEW),
    [KEY_PRECISION] = OWN("precision", always, set_precision, PLAN_KEY | ANEW),
    [KEY_PARAM_DTYPE] = OWN("param_dtype", given, set_param_dtype, PLAN_KEY | ANEW),
    [KEY_COMPUTE] = OWN("compute", always, set_compute, PLAN_KEY | ANEW),
    [KEY_PARAMS] = TYPED("params", POLICY_FORMAT, params, ANEW, NEED_NOTHING, .words = NULL),
    [KEY_GRADS] = TYPED("grads", POLICY_FORMAT, grads, ANEW, NEED_NOTHING, .words = NULL),
    [KEY_AUTOCAST] = OWN("autocast", given, set_autocast, PLAN_KEY | ANEW),
    [KEY_KEEP_BATCHNORM] = OWN("keep_batchnorm_fp32", given, set_keep_batchnorm, PLAN_KEY | ANEW),
    [KEY_MASTER_WEIGHTS] = OWN("master_weights", always, set_master, PLAN_KEY | ANEW),
    /* plan.recipe, fp8_*, delayed, without_*, ends_kept */
    [KEY_FP8_RECIPE] = OWN("fp8_recipe", always, set_fp8_recipe, PLAN_KEY | ANEW),
    [KEY_FP8] = OWN("fp8", always, set_fp8, PLAN_KEY | ANEW),
    [KEY_FP8_PARAMS] = TYPED("fp8_params", POLICY_YES, fp8_params, ANEW, NEED_RECIPE, .words = NULL),
    [KEY_FP8_ATTENTION] = TYPED("fp8_attention", POLICY_YES, fp8_attention, ANEW, NEED_RECIPE, .words = NULL),
    [KEY_FP8_EXCLUDE] = PLACED("fp8_exclude", policy_patterns_set, fp8_exclude, ANEW, NEED_RECIPE),
    [KEY_FP8_MARGIN] = TYPED("fp8_margin", POLICY_INT16, delayed.margin, ANEW, NEED_DELAYED,
                             .range = {-126, 126, 0, 0}),
    [KEY_FP8_HISTORY] = TYPED("fp8_amax_history_len", POLICY_COUNT, delayed.history, ANEW, NEED_DELAYED,
                              .range = {1, 1 << 20, 0, 0}),
    [KEY_FP8_ALGO] = TYPED("fp8_amax_compute_algo", POLICY_WORD, delayed.algorithm, ANEW, NEED_DELAYED,
                           .words = &algorithms),
    [KEY_WITHOUT_RHT] = TYPED("disable_rht", POLICY_YES, without_rht, ANEW | IDLE, NEED_NVFP4, .words = NULL),
    [KEY_WITHOUT_2D] = TYPED("disable_2d_quantization", POLICY_YES, without_2d, ANEW | IDLE, NEED_NVFP4, .words = NULL),
    [KEY_WITHOUT_SR] = TYPED("disable_stochastic_rounding", POLICY_YES, without_sr, ANEW | IDLE, NEED_NVFP4,
                             .words = NULL),
    [KEY_ENDS] = TYPED("first_last_layers_bf16", POLICY_YES, ends_kept, ANEW | IDLE, NEED_RECIPE, .words = NULL),
    [KEY_AT_START] = PLACED("num_layers_at_start_in_bf16", policy_blocks_set_count, at_start, ANEW | IDLE, NEED_ENDS),
    [KEY_AT_END] = PLACED("num_layers_at_end_in_bf16", policy_blocks_set_count, at_end, ANEW | IDLE, NEED_ENDS),
    /* the rest of a plan */
    [KEY_KEEP_FP32] = PLACED("keep_fp32", policy_patterns_set, keep_fp32, 0, NEED_NOTHING),
    [KEY_LAYER_KINDS] = PLACED("layer_kinds", policy_patterns_set_kinds, layer_kinds, 0, NEED_NOTHING),
    [KEY_LOSS_SCALING] = OWN("loss_scaling", given, set_scaling, PLAN_KEY | ANEW),
    [KEY_OPTIMIZER] = OWN("optimizer", always, set_optimizer, PLAN_KEY),
    [KEY_MUON_EXCLUDE] = PLACED("muon_exclude", policy_patterns_set, muon_exclude, 0, NEED_MUON),
    [KEY_CLIP] = OWN("clip", always, set_clip, PLAN_KEY),
    [KEY_MAX_GRAD_NORM] = OWN("max_grad_norm", given, set_max_grad_norm, PLAN_KEY),
    [KEY_GRAD_REDUCE] = OWN("grad_reduce", always, set_reduce, PLAN_KEY),
};

const policy_words policy_keys_own = POLICY_WORDS(keys);

/* Other words for keys, as frameworks and guides print them. */
static const struct key_word {
    const char *name;
    policy_key key;
} key_words[] = {
    {"mixed_precision", KEY_PRECISION}, /* accelerate, Hugging Face         */
    {"policy", KEY_PRECISION},          /* Keras; a map is NeMo RL's block  */
    {"amp_opt_level", KEY_OPT_LEVEL},   /* fairseq, Detectron and others    */
    {"gradient_clipping", KEY_CLIP},    /* DeepSpeed                        */
    {"gradient_clip_val", KEY_CLIP},    /* Lightning                        */
    {"reduce_dtype", KEY_GRAD_REDUCE},  /* FSDP                             */
};
enum { KEY_WORDS = sizeof key_words / sizeof *key_words };

const policy_words policy_keys_other = POLICY_WORDS(key_words);

/* Keys of FSDP's MixedPrecision that change no number here, and why. */
static const struct passed_over {
    const char *name, *reason;
} passed_over[] = {
    {"buffer_dtype", "buffers are not rounded"},
    {"cast_forward_inputs", "the inputs of a layer are rounded as the layer computes"},
    {"cast_root_forward_inputs", "the inputs of a layer are rounded as the layer computes"},
};

const policy_words policy_keys_passed_over = POLICY_WORDS(passed_over);

/* Whether a key is one of these, which a note then says. */
static int pass_over(policy_draft *d, const yaml_item *item)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof *passed_over; i++)
        if (strcmp(passed_over[i].name, item->key) == 0) {
            policy_remark(&d->r, item->line, "%s does not count: %s", item->key, passed_over[i].reason);
            return 1;
        }
    return 0;
}

static unsigned scope_of(unsigned entry)
{
    return entry ? ENTRY_KEY : FILE_KEY;
}

static int find_key(const char *name, unsigned entry)
{
    for (int k = 0; k < POLICY_KEYS; k++)
        if ((keys[k].scope & scope_of(entry)) && strcmp(keys[k].value.key, name) == 0)
            return k;
    for (int i = 0; i < KEY_WORDS; i++)
        if (strcmp(key_words[i].name, name) == 0)
            return (int)key_words[i].key;
    return -1;
}

int policy_keys_mean(const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (int k = 0; k < POLICY_KEYS; k++) {
        if (strcmp(keys[k].value.key, name) == 0)
            return 1;
        suggestion_consider(&s, keys[k].value.key);
    }
    return s.count > 0 || find_key(name, 1) >= 0;
}

static int unknown_key(policy_draft *d, const yaml_item *item, unsigned entry)
{
    suggestion s;
    char escaped[128];
    suggestion_init(&s, item->key);
    for (int k = 0; k < POLICY_KEYS; k++)
        if (keys[k].scope & scope_of(entry))
            suggestion_consider(&s, keys[k].value.key);
    for (int i = 0; i < KEY_WORDS; i++)
        suggestion_consider(&s, key_words[i].name);
    const char *hint = suggestion_end(&s, "");
    return policy_bad(&d->r, item->line, "unknown key '%s'%s%s", escape_text(escaped, sizeof escaped, item->key),
                      entry ? " in an entry of the schedule" : "", hint);
}

static int gives_precision(const yaml_value *map)
{
    for (size_t i = 0; i < map->count; i++) {
        const int k = find_key(map->items[i].key, 1);
        if (k == KEY_PRECISION || k == KEY_OPT_LEVEL)
            return 1;
    }
    return 0;
}

/* What an entry does not inherit. */
static void forget(policy_draft *d, int new_precision)
{
    for (int k = 0; k < POLICY_KEYS; k++)
        if (keys[k].scope == ENTRY_KEY || (new_precision && (keys[k].scope & ANEW))) {
            d->value[k] = NULL;
            d->line[k] = 0;
        }
}

/* One key of a map: item i. */
static int read_key(policy_draft *d, const yaml_value *map, size_t i, unsigned entry)
{
    const yaml_item *item = &map->items[i];
    const int k = find_key(item->key, entry);
    if (k < 0)
        return pass_over(d, item) ? 0 : unknown_key(d, item, entry);
    for (size_t before = 0; before < i; before++)
        if (find_key(map->items[before].key, entry) == k)
            return policy_bad(&d->r, item->line, "%s and %s of line %u are one key", item->key, map->items[before].key,
                              map->items[before].line);
    d->value[k] = item->value;
    d->line[k] = item->line;
    d->said[k] = item->key;
    return 0;
}

int policy_keys_read(policy_draft *d, const yaml_value *map, unsigned entry)
{
    d->entry = entry;
    if (map->type != YAML_MAP)
        return policy_bad(&d->r, map->line, "'key: value' pairs are needed here");
    if (entry)
        forget(d, gives_precision(map));
    for (size_t i = 0; i < map->count; i++)
        if (read_key(d, map, i, entry))
            return -1;
    return 0;
}

const policy_row *policy_key_row(size_t i, policy_need *needs)
{
    *needs = keys[i].needs;
    return &keys[i].value;
}

static void *place_of(policy_draft *d, const key_row *row)
{
    void *base = row->scope & DRAFT ? (void *)d : row->scope & ENTRY_KEY ? (void *)d->plan : d->policy;
    return (char *)base + row->value.at;
}

/* A value by its row. */
static int read_value(policy_draft *d, const key_row *row, const yaml_item *item)
{
    if (row->place)
        return row->place(d, item->value, place_of(d, row));
    if (row->given)
        return row->given(d, item->value);
    return policy_row_read(&d->r, NULL, &row->value, item, (char *)place_of(d, row) - row->value.at);
}

/* The key at hand, of which v may be NULL; a truth needs what it works on only where it is true. */
static int set_key(policy_draft *d, const key_row *row, const yaml_value *v)
{
    const yaml_item item = {(char *)(uintptr_t)d->name, d->at, (yaml_value *)(uintptr_t)v};
    if (row->always)
        return row->always(d, v);
    if (!v)
        return 0;
    const int is_truth = row->value.type == POLICY_YES, lacks = !policy_need_met(d, row->needs);
    const int is_idle = lacks && row->scope & IDLE && d->at < d->entry;
    if (lacks && !is_truth)
        return is_idle ? 0 : policy_need_missing(d, row->needs);
    if (read_value(d, row, &item))
        return -1;
    int *yes = is_truth ? place_of(d, row) : NULL;
    if (!lacks || !*yes)
        return 0;
    *yes = 0;
    return is_idle ? 0 : policy_need_missing(d, row->needs);
}

int policy_keys_apply(policy_draft *d, plan *p)
{
    memset(p, 0, sizeof *p);
    p->at_start.n = p->at_end.n = 1;
    d->plan = p;
    for (int k = 0; k < POLICY_KEYS; k++) {
        d->key = (policy_key)k;
        d->name = d->value[k] ? d->said[k] : keys[k].value.key;
        d->at = d->line[k];
        if ((keys[k].scope & scope_of(d->entry)) && set_key(d, &keys[k], d->value[k]))
            return -1;
    }
    return finish(d);
}
