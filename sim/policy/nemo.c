/* nemo.c -- see nemo.h.
 *
 * Sources: NeMo RL examples/configs/grpo_math_1B.yaml @00294d9b, sft.yaml @00455ac0; docs/fp8.md @00fa1285;
 * nemo_rl/models/megatron/setup.py @001de1ba (params_dtype is the precision, fp8_cfg needs enabled);
 * nemo_rl/models/policy/dtensor_policy_worker.py. Of the DTensor worker, and of Megatron's, the rest is as
 * in data/policies/nemo-rl-*.yaml and megatron-*.yaml. */
#include "impl.h"

#include "../array/want.h"
#include "../cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct unfolding {
    policy_reader *r;
    yaml_value *file; /* gets the keys                             */
    const yaml_value *block;
    unsigned line; /* of the block                              */
    int megatron;  /* its worker trains, not DTensor's          */
    char *ignored; /* names, with commas                        */
} unfolding;

/* ---- trees ---- */

/* The value itself, or what "${policy.KEY.KEY}" refers to. */
static const yaml_value *resolve(unfolding *u, const yaml_value *v)
{
    static const char start[] = "${policy.";
    for (int depth = 0; depth < 8; depth++) {
        if (v->type != YAML_TEXT || strncmp(v->text, start, sizeof start - 1) != 0)
            return v;
        const yaml_value *at = u->block;
        for (const char *p = v->text + sizeof start - 1; at && *p && *p != '}';) {
            char key[64];
            const size_t n = strcspn(p, ".}");
            snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : 0), p);
            const yaml_item *item = policy_tree_find(at, key);
            at = item ? item->value : NULL;
            p += n + (p[n] == '.');
        }
        if (!at)
            break;
        v = at;
    }
    policy_bad(u->r, v->line, "policy: '%.60s' refers to nothing in the block", v->text);
    return NULL;
}

static int is_null(const yaml_value *v)
{
    return v->type == YAML_TEXT && (!v->text[0] || strcmp(v->text, "~") == 0 || strcasecmp(v->text, "null") == 0);
}

/* A key of the block under a policy's name; null is as if it were not there. */
static int add_copy(unfolding *u, yaml_value *to, const char *key, const yaml_value *from)
{
    const yaml_value *v = resolve(u, from);
    if (!v)
        return -1;
    if (to == u->file && policy_tree_find(to, key))
        return policy_bad(u->r, from->line, "policy: %s stands beside the block, too", key);
    if (!is_null(v))
        policy_tree_add(to, key, policy_tree_copy(v));
    return 0;
}

/* What the worker does where the file does not say it itself. */
static void add_default(unfolding *u, const char *key, const char *text)
{
    if (!policy_tree_find(u->file, key))
        policy_tree_add_text(u->file, u->line, key, text);
}

/* ---- what is of no use ---- */

static void ignore(unfolding *u, const char *prefix, const char *key)
{
    char name[160], *before = u->ignored;
    escape_text(name, sizeof name, key);
    char *both = want_format("%s%s%s%s", before ? before : "", before ? ", " : "", prefix, name);
    if (!both)
        return;
    free(before);
    u->ignored = both;
}

/* Keys of a map: those of the table become a policy's, a misspelt one is an error, the rest is ignored. */
typedef struct word {
    const char *key, *ours; /* ours: NULL if the caller takes it */
} word;

static int take(unfolding *u, const char *prefix, const yaml_value *map, const word *words, size_t n, yaml_value *to)
{
    for (size_t i = 0; i < map->count; i++) {
        const yaml_item *item = &map->items[i];
        char escaped[128];
        suggestion near;
        size_t k = 0;
        suggestion_init(&near, item->key);
        while (k < n && strcmp(words[k].key, item->key) != 0)
            suggestion_consider(&near, words[k++].key);
        if (k < n && words[k].ours && add_copy(u, to, words[k].ours, item->value))
            return -1;
        if (k == n && near.count)
            return policy_bad(u->r, item->line, "policy: unknown key '%s%s'%s", prefix,
                              escape_text(escaped, sizeof escaped, item->key), suggestion_end(&near, ""));
        if (k == n)
            ignore(u, prefix, item->key);
    }
    return 0;
}

#define TAKE(u, prefix, map, words, to) take(u, prefix, map, words, sizeof words / sizeof *words, to)

/* The map of a key, or NULL: absent or null. */
static int map_of(unfolding *u, const yaml_value *in, const char *key, const yaml_value **map)
{
    const yaml_item *item = policy_tree_find(in, key);
    *map = NULL;
    if (!item || is_null(item->value))
        return 0;
    if (item->value->type != YAML_MAP)
        return policy_bad(u->r, item->line, "policy: %s: 'key: value' pairs are needed", key);
    *map = item->value;
    return 0;
}

/* *yes: a key of a map that is true or false; left as it is where the map does not say so. */
static int is_true(unfolding *u, const yaml_value *map, const char *key, int *yes)
{
    const yaml_item *item = policy_tree_find(map, key);
    return item ? policy_value_bool(u->r, key, item->value, yes) : 0;
}

/* *text: the same of a text, which errors call `name`. */
static int text_of(unfolding *u, const yaml_item *item, const char *name, const char **text)
{
    return item ? policy_value_text(u->r, name, item->value, text) : 0;
}

/* ---- the parts of the block ---- */

static int set_clip(unfolding *u, const yaml_value *norm)
{
    const yaml_value *v = norm ? resolve(u, norm) : NULL;
    if (norm && !v)
        return -1;
    if (!v || is_null(v))
        return 0;
    if (policy_tree_find(u->file, "clip"))
        return policy_bad(u->r, norm->line, "policy: clip stands beside the block, too");
    yaml_value *clip = policy_tree_new(YAML_MAP, norm->line, NULL);
    policy_tree_add_text(clip, norm->line, "rule", u->megatron ? "megatron" : "megatron-float");
    policy_tree_add(clip, "max_norm", policy_tree_copy(v));
    policy_tree_add(u->file, "clip", clip);
    return 0;
}

/* "torch.optim.AdamW", kwargs. */
static int set_dtensor_optimizer(unfolding *u, const yaml_value *from, yaml_value *to)
{
    static const word words[] = {{"name", NULL}, {"kwargs", NULL}};
    static const word arguments[] = {{"lr", "lr"},
                                     {"weight_decay", "weight_decay"},
                                     {"betas", "betas"},
                                     {"eps", "eps"},
                                     {"momentum", "momentum"},
                                     {"dampening", "dampening"},
                                     {"nesterov", "nesterov"},
                                     {"amsgrad", "amsgrad"},
                                     {"maximize", "maximize"},
                                     {"foreach", NULL},
                                     {"fused", NULL}};
    const yaml_item *name = policy_tree_find(from, "name");
    const yaml_value *kwargs;
    const char *text = "trace";
    int foreach = 0, fused = 0;
    if (TAKE(u, "optimizer.", from, words, to) || map_of(u, from, "kwargs", &kwargs) ||
        text_of(u, name, "optimizer", &text))
        return -1;
    const char *dot = strrchr(text, '.');
    policy_tree_add_text(to, name ? name->line : u->line, "name", dot ? dot + 1 : text);
    if ((kwargs && TAKE(u, "optimizer.kwargs.", kwargs, arguments, to)) || is_true(u, kwargs, "foreach", &foreach) ||
        is_true(u, kwargs, "fused", &fused))
        return -1;
    policy_tree_add_text(to, u->line, "variant", fused ? "torch-fused-c" : foreach ? "torch-foreach" : "torch");
    return 0;
}

/* Megatron's adam decouples the weight decay. */
static int set_megatron_optimizer(unfolding *u, const yaml_value *from, yaml_value *to)
{
    const yaml_item *name = policy_tree_find(from, "optimizer"), *clip = policy_tree_find(from, "clip_grad");
    const char *text = "trace";
    if (text_of(u, name, "optimizer", &text))
        return -1;
    const int is_sgd = strcasecmp(text, "sgd") == 0;
    const word words[] = {{"optimizer", NULL},
                          {"lr", "lr"},
                          {"weight_decay", "weight_decay"},
                          {"clip_grad", NULL},
                          {"adam_beta1", is_sgd ? NULL : "beta1"},
                          {"adam_beta2", is_sgd ? NULL : "beta2"},
                          {"adam_eps", is_sgd ? NULL : "eps"},
                          {"sgd_momentum", is_sgd ? "momentum" : NULL}};
    policy_tree_add_text(to, name ? name->line : u->line, "name", strcasecmp(text, "adam") ? text : "adamw");
    if (TAKE(u, "megatron_cfg.optimizer.", from, words, to))
        return -1;
    policy_tree_add_text(to, u->line, "variant", "apex");
    return clip && !policy_tree_find(u->block, "max_grad_norm") ? set_clip(u, clip->value) : 0;
}

static int set_optimizer(unfolding *u, const yaml_value *megatron)
{
    const yaml_value *from;
    if (map_of(u, u->megatron ? megatron : u->block, "optimizer", &from))
        return -1;
    if (u->megatron && policy_tree_find(u->block, "optimizer"))
        ignore(u, "", "optimizer (Megatron's counts)");
    if (policy_tree_find(u->file, "optimizer"))
        return from ? policy_bad(u->r, from->line, "policy: optimizer stands beside the block, too") : 0;
    yaml_value *to = policy_tree_new(YAML_MAP, u->line, NULL);
    if (policy_tree_add(u->file, "optimizer", to))
        return -1;
    if (from)
        return u->megatron ? set_megatron_optimizer(u, from, to) : set_dtensor_optimizer(u, from, to);
    policy_tree_add_text(to, u->line, "name", "trace");
    policy_tree_add_text(to, u->line, "variant", u->megatron ? "apex" : "torch");
    return 0;
}

static int set_fp8(unfolding *u, const yaml_value *from)
{
    static const word words[] = {
        {"enabled", NULL}, {"fp8", "fp8"}, {"fp8_recipe", "fp8_recipe"}, {"fp8_param", "fp8_params"}};
    int yes = 1;
    if (!from || is_true(u, from, "enabled", &yes))
        return from ? -1 : 0;
    if (!yes) {
        ignore(u, "", "fp8_cfg (not enabled)");
        return 0;
    }
    if (!policy_tree_find(from, "enabled"))
        policy_remark(u->r, from->line, "fp8_cfg is taken as enabled; NeMo RL needs enabled: true");
    return TAKE(u, "fp8_cfg.", from, words, u->file);
}

/* What the workers do: low-precision parameters with an fp32 master under Megatron, fp32 ones that are
 * cast for the layers, and gradients reduced in fp32, under DTensor. */
static int set_worker(unfolding *u, const char *precision, const yaml_value *megatron)
{
    const int fp32 = strcasecmp(precision, "float32") == 0 || strcasecmp(precision, "fp32") == 0;
    const int fp16 = strcasecmp(precision, "float16") == 0 || strcasecmp(precision, "fp16") == 0;
    const yaml_value *ddp;
    int wide = 0;
    if (map_of(u, megatron, "distributed_data_parallel_config", &ddp) || is_true(u, ddp, "grad_reduce_in_fp32", &wide))
        return -1;
    const char *low = fp32 ? "fp32" : fp16 ? "fp16" : "bf16", *reduced = u->megatron && !wide ? low : "fp32";
    add_default(u, "grad_reduce", reduced);
    if (!fp32)
        add_default(u, "autocast", "megatron");
    if (fp16 && !u->megatron && !policy_tree_find(u->file, "loss_scaling"))
        policy_remark(
            u->r, u->line,
            "precision %.40s: NeMo RL's guide promises a loss scaler, but its DTensor worker has none, so none is "
            "taken here; loss_scaling: torch beside the block has one",
            precision);
    add_default(u, "loss_scaling", fp16 && u->megatron ? "megatron" : "none");
    if (u->megatron && !fp32) {
        add_default(u, "params", low);
        add_default(u, "master_weights", "true");
        add_default(u, "grads", reduced);
    }
    return 0;
}

/* gradient_clipping of the block: false turns the clip off, a number is its norm; true leaves it to max_grad_norm. */
static int clipping(unfolding *u, const yaml_item **norm)
{
    const yaml_item *item = policy_tree_find(u->block, "gradient_clipping");
    double x = 1;
    int yes = 0;
    if (!item || is_null(item->value))
        return 0;
    if (item->value->type == YAML_TEXT && parse_number(&x, item->value->text) == 0) {
        *norm = item;
        yes = x != 0;
    } else if (policy_value_bool(u->r, "gradient_clipping", item->value, &yes)) {
        return -1;
    }
    if (yes)
        return 0;
    if (*norm && *norm != item)
        policy_remark(u->r, (*norm)->line,
                      "max_grad_norm does not count: gradient_clipping of line %u turns the clip off", item->line);
    *norm = NULL;
    add_default(u, "clip", "none");
    return 0;
}

static int unfold(unfolding *u)
{
    static const word words[] = {{"precision", "precision"}, {"max_grad_norm", NULL}, {"gradient_clipping", NULL},
                                 {"optimizer", NULL},        {"megatron_cfg", NULL},  {"fp8_cfg", NULL}};
    static const word megatron_words[] = {
        {"enabled", NULL}, {"optimizer", NULL}, {"fp8_cfg", NULL}, {"distributed_data_parallel_config", NULL}};
    const yaml_value *megatron, *fp8, *inner;
    const yaml_item *norm = policy_tree_find(u->block, "max_grad_norm"),
                    *precision = policy_tree_find(u->block, "precision");
    const char *text = "bfloat16";
    if (map_of(u, u->block, "megatron_cfg", &megatron) || map_of(u, u->block, "fp8_cfg", &fp8) ||
        map_of(u, megatron, "fp8_cfg", &inner))
        return -1;
    u->megatron = megatron != NULL;
    if (is_true(u, megatron, "enabled", &u->megatron) || text_of(u, precision, "precision", &text))
        return -1;
    if (TAKE(u, "", u->block, words, u->file))
        return -1;
    if (!precision)
        add_default(u, "precision", text);
    if (clipping(u, &norm) || set_clip(u, norm ? norm->value : NULL) ||
        (u->megatron && TAKE(u, "megatron_cfg.", megatron, megatron_words, u->file)))
        return -1;
    if (megatron && !u->megatron)
        ignore(u, "", "megatron_cfg (not enabled)");
    return set_optimizer(u, megatron) || set_worker(u, text, u->megatron ? megatron : NULL) ||
                   set_fp8(u, fp8           ? fp8
                              : u->megatron ? inner
                                            : NULL)
               ? -1
               : 0;
}

/* ---- what stands beside the block in a whole file ---- */

/* A section of a run, which says nothing of its precision: one of these, or any name that is not meant as a key of a
 * policy. */
static int is_section(const char *key)
{
    static const char *const sections[] = {"checkpointing", "cluster",   "data",    "distillation", "dpo", "env",
                                           "grpo",          "logger",    "loss_fn", "ppo",          "rm",  "sft",
                                           "teacher",       "tokenizer", "value"};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (strcmp(key, sections[i]) == 0)
            return 1;
    return !policy_keys_mean(key);
}

/* "defaults: grpo_math_1B.yaml": OmegaConf reads that file first. */
static void remark_defaults(unfolding *u, const yaml_item *item)
{
    char name[128];
    policy_remark(u->r, item->line, "what defaults brings (%s) is not read: say here what of it counts",
                  item->value->type == YAML_TEXT ? escape_text(name, sizeof name, item->value->text) : "files");
}

/* Sections go, and are named. */
static void drop_sections(unfolding *u)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->file->count; i++) {
        yaml_item *item = &u->file->items[i];
        const int defaults = strcmp(item->key, "defaults") == 0;
        if (!defaults && !is_section(item->key)) {
            u->file->items[kept++] = *item;
            continue;
        }
        if (defaults)
            remark_defaults(u, item);
        else
            ignore(u, "", item->key);
        free(item->key);
        policy_tree_free(item->value);
    }
    u->file->count = kept;
    if (u->ignored)
        policy_remark(u->r, u->line, "ignored beside policy: %s", u->ignored);
    free(u->ignored);
    u->ignored = NULL;
}

int policy_nemo_unfold(policy_reader *r, yaml_value *file)
{
    const yaml_item *item = policy_tree_find(file, "policy");
    unfolding u = {.r = r, .file = file};
    if (!item || item->value->type != YAML_MAP)
        return 0;
    if (item->value->count == 0)
        return policy_bad(r, item->line, "policy: no key is given: 'key: value' lines are needed under it");
    const size_t at = (size_t)(item - file->items);
    yaml_item taken = *item;
    memmove(&file->items[at], &file->items[at + 1], (--file->count - at) * sizeof *file->items);
    u.block = taken.value;
    u.line = taken.line;
    drop_sections(&u);
    const int code = unfold(&u);
    if (!code && u.ignored)
        policy_remark(r, u.line, "ignored in policy: %s", u.ignored);
    free(u.ignored);
    free(taken.key);
    policy_tree_free(taken.value);
    return code;
}
