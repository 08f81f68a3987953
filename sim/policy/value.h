/* value.h -- values of a policy's YAML tree, and the errors of those that are not valid. */
#pragma once

#include "yaml.h"

#include <mpsim/mpsim.h>

typedef struct policy_reader {
    const char *path;
    trace_error *error;
    char **remarks; /* lines about what of the file does not count; *remarks NULL: none */
} policy_reader;

/* policy_bad -- set the error "PATH: line N: MESSAGE"; returns -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int policy_bad(policy_reader *r, unsigned line, const char *message, ...);

/* policy_remark -- add "line N: MESSAGE" to the remarks. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void policy_remark(policy_reader *r, unsigned line, const char *message, ...);

/* Values: 0, or -1 after policy_bad, which names the key. A format is one of tensors: its numbers
 * are binary32 numbers, and signed. */
int policy_value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text);
int policy_value_number(policy_reader *r, const char *key, const yaml_value *v, double *x);
int policy_value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n);
int policy_value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b);
int policy_value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f);
