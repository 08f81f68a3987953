/* patterns.h -- keys of a policy that are lists of patterns of names. */
#pragma once

#include "keys.h"

/* The key's value, NULL where it is not given, at *to: 0, or -1 after policy_bad. policy_patterns_set_kinds: 'pattern: kind' pairs, into the plan. */
int policy_patterns_set(policy_draft *d, const yaml_value *v, const policy_patterns **to);
int policy_patterns_set_kinds(policy_draft *d, const yaml_value *v);
