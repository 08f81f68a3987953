/* unmatched.h -- patterns of a policy that fit no layer of a model, which is perhaps a misspelt name. */
#pragma once

#include "policy.h"

/* policy_find_unmatched -- the patterns of all plans that fit nothing: "keep_fp32 'wte', 'x'; fp8_exclude 'y'"; "" where all fit. fits:
 * whether a layer of the model has such a name. */
typedef int policy_fits(const void *context, const char *glob);
void policy_find_unmatched(const policy *p, policy_fits *fits, const void *context, char *out, size_t size);
