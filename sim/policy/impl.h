/* impl.h -- what the files of sim/policy have of one another. */
#pragma once

#include "plan.h"
#include "policy.h"
#include "value.h"
#include "yaml.h"

/* ---- keys.c: one table of the keys of a policy, and a policy under construction. ---- */

/* In the order in which they are applied: what a key needs of others stands before it. */
typedef enum policy_key {
    KEY_NAME,
    KEY_SOURCE,
    KEY_NOTE,
    KEY_SCHEDULE,
    KEY_STEPS_PER_EPOCH,
    KEY_STEP,
    KEY_EPOCH,
    KEY_OPT_LEVEL,
    KEY_PRECISION,
    KEY_PARAM_DTYPE,
    KEY_COMPUTE,
    KEY_PARAMS,
    KEY_GRADS,
    KEY_AUTOCAST,
    KEY_KEEP_BATCHNORM,
    KEY_MASTER_WEIGHTS,
    KEY_FP8_RECIPE,
    KEY_FP8,
    KEY_FP8_PARAMS,
    KEY_FP8_ATTENTION,
    KEY_FP8_EXCLUDE,
    KEY_FP8_MARGIN,
    KEY_FP8_HISTORY,
    KEY_FP8_ALGO,
    KEY_WITHOUT_RHT,
    KEY_WITHOUT_2D,
    KEY_WITHOUT_SR,
    KEY_ENDS,
    KEY_AT_START,
    KEY_AT_END,
    KEY_KEEP_FP32,
    KEY_LAYER_KINDS,
    KEY_LOSS_SCALING,
    KEY_OPTIMIZER,
    KEY_MUON_EXCLUDE,
    KEY_CLIP,
    KEY_MAX_GRAD_NORM,
    KEY_GRAD_REDUCE,
    POLICY_KEYS
} policy_key;

typedef struct policy_draft {
    policy_reader r;
    policy *policy; /* gets names and patterns                             */
    uint64_t epoch; /* steps of one, unless steps_per_epoch says it; 0: not known */
    /* what the file has given so far: an entry of a schedule inherits */
    const yaml_value *value[POLICY_KEYS];
    unsigned line[POLICY_KEYS];    /* 0: not given */
    const char *said[POLICY_KEYS]; /* the word that gave it: the key's name or another one */
    /* lists of patterns that have been read, and what from */
    const policy_patterns *patterns[POLICY_KEYS];
    const yaml_value *patterns_of[POLICY_KEYS];
    /* the key at hand */
    policy_key key;
    const char *name; /* as the file says it */
    unsigned at;      /* its line; 0: not given */
    /* the plan under construction */
    plan *plan;
    unsigned entry; /* line of the schedule's entry, 0: of the policy itself */
    const precision_row *precision;
    const char *recipe; /* fp8_recipe, or that of the precision; or NULL */
} policy_draft;

/* policy_keys_mean -- whether a name is a key, or looks like one that is misspelt. */
int policy_keys_mean(const char *name);

/* The keys of a policy, other words for them, and keys that do not count. */
extern const policy_words policy_keys_own, policy_keys_other, policy_keys_passed_over;

/* policy_keys_read -- take the keys of a map: the file, or (entry is its line) an entry of the schedule,
 * where a new precision forgets what belongs to the old one. 0, or -1 after policy_bad. */
int policy_keys_read(policy_draft *d, const yaml_value *map, unsigned entry);

/* policy_keys_apply -- a plan from what has been read: values, defaults, contradictions. Of the file itself
 * also the policy's name, source and note. 0, or -1 after policy_bad. */
int policy_keys_apply(policy_draft *d, plan *p);

/* ---- needs.c: what keys work on. ---- */

typedef enum policy_need {
    NEED_NOTHING,
    NEED_RECIPE,
    NEED_DELAYED,
    NEED_NVFP4,
    NEED_ENDS,
    NEED_MUON,
    NEED_EPOCHS,
    POLICY_NEEDS
} policy_need;

/* policy_need_met -- whether the policy has, so far, what is needed. policy_need_missing -- the error of the key at hand; -1. */
int policy_need_met(const policy_draft *d, policy_need n);
int policy_need_missing(policy_draft *d, policy_need n);
/* policy_need_say -- "works on delayed scaling". policy_key_row -- the row of a key, word i of policy_keys_own, and what it works on. */
const char *policy_need_say(policy_need n);
const policy_row *policy_key_row(size_t i, policy_need *needs);

/* ---- blocks.c ---- */

/* A key's value, a number of layers or a share, to its place in the draft's plan: 0, or -1 after policy_bad. */
int policy_blocks_set_count(policy_draft *d, const yaml_value *v, void *at);

/* ---- gather.c: settings of a loss scaler that stand one by one in a policy, as guides print them. ---- */

/* policy_gather_scaling -- grad_scaler_NAME, GradScaler's arguments, scale_factor and skip of a policy, and of the entries of its schedule,
 * become keys of their loss_scaling, which is dynamic where it is not there. */
void policy_gather_scaling(yaml_value *map);

/* ---- nemo.c: the `policy:` block of NeMo RL's configurations, as its guides print it. ---- */

/* policy_nemo_unfold -- replace the block of a file, if there is one, by the keys of a policy that say the same,
 * beside those that stand there already; what it has of no use to a policy becomes a remark, and so do the
 * other sections of a whole file (grpo, loss_fn, data, ...). 0, or -1 after policy_bad. */
int policy_nemo_unfold(policy_reader *r, yaml_value *file);

/* ---- parts.c: the keys of a policy that have keys of their own: loss_scaling, optimizer, clip,
 * grad_reduce. 0, or -1 after policy_bad. ---- */

extern const policy_map policy_optimizer_map, policy_muon_map /* in muon.c */, policy_clip_map, policy_reduce_map;

/* Keys of loss_scaling beside scaler, enabled and loss_scale (scaling.c). */
extern const policy_words policy_scaling_keys;
/* apex: "dynamic" is Apex's scaler, not torch's. */
int policy_resolve_scaling(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c);
/* v NULL: all is the trace's; nothing is clipped; ranks are added in the format of grads. */
int policy_resolve_optimizer(policy_reader *r, const yaml_value *v, plan_optimizer *o);
int policy_resolve_clip(policy_reader *r, const yaml_value *v, plan *p);
int policy_resolve_reduce(policy_reader *r, const yaml_value *v, plan *p);

/* ---- patterns.c: keys of a policy that are lists of patterns of names. ---- */

/* The key's value at *to, a list of the draft's policy: 0, or -1 after policy_bad. policy_patterns_set_kinds: 'pattern: kind' pairs. */
int policy_patterns_set(policy_draft *d, const yaml_value *v, void *to);
int policy_patterns_set_kinds(policy_draft *d, const yaml_value *v, void *to);

/* ---- tree.c: trees of YAML made and changed: what blocks of frameworks are unfolded into. ---- */

/* policy_tree_find -- the item of a key; NULL: there is none, or `map` is none. */
const yaml_item *policy_tree_find(const yaml_value *map, const char *key);
unsigned policy_tree_line(const yaml_value *map, const char *key); /* of the item; 0: there is none */
/* policy_tree_new, policy_tree_copy -- NULL where there is no memory (array/want.h). */
yaml_value *policy_tree_new(yaml_type type, unsigned line, const char *text);
/* policy_tree_add -- an item behind the others; v is taken over, and freed where there is no memory. policy_tree_add_text: a text. Both take NULL. 0, or -1. */
int policy_tree_add(yaml_value *to, const char *key, yaml_value *v);
int policy_tree_add_text(yaml_value *to, unsigned line, const char *key, const char *text);
yaml_value *policy_tree_copy(const yaml_value *v);
