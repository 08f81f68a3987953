/* keys.h -- one table of the keys of a policy, and a policy under construction. */
#pragma once

#include "policy.h"
#include "value.h"

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

/* policy_keys_read -- take the keys of a map: the file, or (entry is its line) an entry of the schedule,
 * where a new precision forgets what belongs to the old one. 0, or -1 after policy_bad. */
int policy_keys_read(policy_draft *d, const yaml_value *map, unsigned entry);

/* policy_keys_apply -- a plan from what has been read: values, defaults, contradictions. Of the file itself
 * also the policy's name, source and note. 0, or -1 after policy_bad. */
int policy_keys_apply(policy_draft *d, plan *p);
