/* blocks.h -- keys of recipes with blocks: what of NVFP4's recipe is left out, first and last layers in
 * bf16. */
#pragma once

#include "keys.h"

/* A key's value, NULL where it is not given, into the draft's plan: 0, or -1 after policy_bad. */
int policy_blocks_set_without(policy_draft *d, const yaml_value *v, int *without);
int policy_blocks_set_ends(policy_draft *d, const yaml_value *v);
int policy_blocks_set_start(policy_draft *d, const yaml_value *v);
int policy_blocks_set_end(policy_draft *d, const yaml_value *v);
