/* tree.h -- trees of YAML made and changed: what blocks of frameworks are unfolded into. */
#pragma once

#include "yaml.h"

/* policy_tree_find -- the item of a key; NULL: there is none, or `map` is none. */
const yaml_item *policy_tree_find(const yaml_value *map, const char *key);
/* policy_tree_new, policy_tree_copy -- NULL where there is no memory (array/want.h). */
yaml_value *policy_tree_new(yaml_type type, unsigned line, const char *text);
/* policy_tree_add -- an item behind the others; v is taken over, and freed where there is no memory. policy_tree_add_text: a text. Both take NULL. 0, or -1. */
int policy_tree_add(yaml_value *to, const char *key, yaml_value *v);
int policy_tree_add_text(yaml_value *to, unsigned line, const char *key, const char *text);
yaml_value *policy_tree_copy(const yaml_value *v);
