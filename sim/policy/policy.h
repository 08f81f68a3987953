/* policy.h -- a policy: what is kept in which precision, with which scaler, optimizer and recipe.
 *
 * A policy is a YAML file in the words of the guides. It has one plan, or several that a schedule
 * puts in force one after the other. Nothing of the file is kept but what is here. */
#pragma once

#include "../process/resource.h"
#include "../trace/trace.h"
#include "plan.h"

typedef struct policy {
    char *path;
    char *name, *source, *note; /* note and source may be NULL */
    char *remarks;              /* lines about what of the file does not count; or NULL */
    plan *plans;                /* in the order of `from`; the first has 0 */
    size_t count;
    policy_patterns *patterns; /* of the plans */
} policy;

/* policy_load -- a file, or the name of a bundled one: "pytorch-amp-fp16". steps_per_epoch: of a
 * policy that does not say it; 0: its schedule must not speak of epochs then. 0, or an exit code
 * with *error filled; the line names the file, the line and the key. */
int policy_load(policy *p, const char *path, uint64_t steps_per_epoch, trace_error *error);
/* policy_load_from -- the same; bundled ones are those of a folder; NULL: see policy_bundled. policy_read -- of n bytes in memory, which
 * errors call `name`. */
int policy_load_from(policy *p, const char *path, const char *bundled, uint64_t steps_per_epoch, trace_error *error);
int policy_read(policy *p, const char *name, const char *text, size_t n, uint64_t steps_per_epoch, trace_error *error);
void policy_clear(policy *p);

/* policy_bundled -- the folder of the bundled policies, perhaps in `folder`. */
const char *policy_bundled(char folder[RESOURCE_PATH]);

/* policy_plan -- the plan in force at a step. */
const plan *policy_plan(const policy *p, uint64_t step);
