/* gather.h -- settings of a loss scaler that stand one by one in a policy, as guides print them. */
#pragma once

#include "yaml.h"

/* policy_gather_scaling -- grad_scaler_NAME, GradScaler's arguments, scale_factor and skip of a policy, and of the entries of its schedule,
 * become keys of their loss_scaling, which is dynamic where it is not there. */
void policy_gather_scaling(yaml_value *map);
