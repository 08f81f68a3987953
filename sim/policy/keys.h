/* keys.h -- from the keys of a YAML map to a plan; used by policy.c only. */
#ifndef MPSIM_SIM_POLICY_KEYS_H
#define MPSIM_SIM_POLICY_KEYS_H

#include "policy.h"

typedef enum policy_key {
    KEY_NAME,
    KEY_SOURCE,
    KEY_NOTE,
    KEY_SCHEDULE,
    KEY_STEPS_PER_EPOCH,
    KEY_STEP,  /* of a schedule's entry */
    KEY_EPOCH, /* of a schedule's entry */
    KEY_PRECISION,
    KEY_OPT_LEVEL,
    KEY_COMPUTE,
    KEY_PARAMS,
    KEY_GRADS,
    KEY_MASTER_WEIGHTS,
    KEY_AUTOCAST,
    KEY_KEEP_BATCHNORM,
    KEY_KEEP_FP32,
    KEY_LAYER_KINDS,
    KEY_LOSS_SCALING,
    KEY_OPTIMIZER,
    KEY_CLIP,
    KEY_GRAD_REDUCE,
    KEY_FP8,
    KEY_FP8_RECIPE,
    KEY_FP8_MARGIN,
    KEY_FP8_HISTORY,
    KEY_FP8_ALGO,
    KEY_FP8_PARAMS,
    KEY_FP8_EXCLUDE,
    POLICY_KEYS
} policy_key;

/* The keys that a map gives; an entry of a schedule starts from those of the policy. */
typedef struct policy_settings {
    const yaml_value *value[POLICY_KEYS];
    unsigned line[POLICY_KEYS]; /* 0: not given */
} policy_settings;

typedef struct policy_reader {
    const char *path;
    trace_error *error;
} policy_reader;

/* policy_bad -- set the error "PATH: line N: MESSAGE"; returns -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int policy_bad(policy_reader *r, unsigned line, const char *message, ...);

/* settings_read -- take the keys of a map; `entry`: of a schedule. 0 or -1. */
int settings_read(policy_reader *r, policy_settings *s, const yaml_value *map, int entry);

/* settings_resolve -- a plan from settings: defaults, contradictions. 0 or -1. */
int settings_resolve(policy_reader *r, const policy_settings *s, plan *p);

/* Values: 0, or -1 after policy_bad, which names the key. */
int value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text);
int value_number(policy_reader *r, const char *key, const yaml_value *v, double *x);
int value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n);
int value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b);
int value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f);

/* The parts with keys of their own: parts.c. */
int resolve_scaling(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c);
int resolve_optimizer(policy_reader *r, const yaml_value *v, optimizer_choice *o);
int resolve_clip(policy_reader *r, const yaml_value *v, plan *p);
int resolve_reduce(policy_reader *r, const yaml_value *v, plan *p);

#endif
