/* blocks.c -- see blocks.h. The words are those of TransformerEngine's NVFP4BlockScaling @d0067d0d and of
 * Megatron's transformer_config.py (first_last_layers_bf16; by default one layer at each end); shares are
 * ours, for papers that speak of them. */
#include "impl.h"

#include "../cli/options.h"

#include <string.h>

/* ---- NVFP4's recipe ---- */

/* Whether the key at hand comes from before the schedule's entry. */
static int is_inherited(const policy_draft *d)
{
    return d->at < d->entry;
}

/* A part is left out where there is one; false is always right. */
int policy_blocks_set_without(policy_draft *d, const yaml_value *v, void *without)
{
    const int has = d->plan->recipe && d->plan->recipe->hadamard;
    int yes = 0;
    if (policy_value_bool(&d->r, d->name, v, &yes))
        return -1;
    if (yes && !has && !is_inherited(d))
        return policy_bad(&d->r, d->at, "%s: works on TransformerEngine's NVFP4 recipe, which the policy does not have",
                          d->name);
    *(int *)without = yes && has;
    return 0;
}

/* ---- layers at the ends ---- */

int policy_blocks_set_ends(policy_draft *d, const yaml_value *v)
{
    int yes = 0;
    if (policy_value_bool(&d->r, d->name, v, &yes))
        return -1;
    if (yes && !d->plan->recipe && !is_inherited(d))
        return policy_bad(&d->r, d->at, "%s: works on an FP8 recipe, and the policy has none", d->name);
    d->plan->ends_kept = yes && d->plan->recipe;
    d->plan->at_start.n = d->plan->at_end.n = d->plan->ends_kept ? 1 : 0;
    return 0;
}

/* "4", or "12.5 %" of all. */
int policy_blocks_set_count(policy_draft *d, const yaml_value *v, void *at)
{
    plan_count *to = at;
    const char *text = NULL;
    char number[32];
    if (!d->plan->ends_kept && is_inherited(d))
        return 0;
    if (!d->plan->ends_kept)
        return policy_bad(&d->r, d->at, "%s: needs first_last_layers_bf16: true", d->name);
    if (policy_value_text(&d->r, d->name, v, &text))
        return -1;
    const size_t n = strcspn(text, " %");
    const int share = strcmp(text + n, "%") == 0 || strcmp(text + n, " %") == 0;
    if (!share && text[n] == '\0' && parse_count(&to->n, text) == 0)
        return 0;
    memcpy(number, text, n < sizeof number ? n : 0);
    number[n < sizeof number ? n : 0] = '\0';
    if (!share || parse_number(&to->share, number) || !(to->share >= 0 && to->share <= 100))
        return policy_bad(&d->r, d->at, "%s: '%.60s' is neither a number of layers nor a share as 15 %%", d->name,
                          text);
    to->n = 0;
    return 0;
}
