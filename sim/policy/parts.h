/* parts.h -- the keys of a policy that have keys of their own: loss_scaling, optimizer, clip,
 * grad_reduce. 0, or -1 after policy_bad. */
#pragma once

#include "plan.h"
#include "value.h"

/* apex: "dynamic" is Apex's scaler, not torch's. */
int policy_resolve_scaling(policy_reader *r, const yaml_value *v, int apex, mpsim_scaler_config *c);
/* v NULL: all is the trace's; nothing is clipped; ranks are added in the format of grads. */
int policy_resolve_optimizer(policy_reader *r, const yaml_value *v, plan_optimizer *o);
int policy_resolve_clip(policy_reader *r, const yaml_value *v, plan *p);
int policy_resolve_reduce(policy_reader *r, const yaml_value *v, plan *p);
