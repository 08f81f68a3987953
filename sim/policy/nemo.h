/* nemo.h -- the `policy:` block of NeMo RL's configurations, as its guides print it. */
#pragma once

#include "value.h"

/* policy_nemo_unfold -- replace the block of a file, if there is one, by the keys of a policy that say the same,
 * beside those that stand there already; what it has of no use to a policy becomes a remark, and so do the
 * other sections of a whole file (grpo, loss_fn, data, ...). 0, or -1 after policy_bad. */
int policy_nemo_unfold(policy_reader *r, yaml_value *file);
