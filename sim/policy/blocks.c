/* blocks.c -- numbers of layers at the ends that stay in bf16, in the words of Megatron's transformer_config.py (first_last_layers_bf16;
 * by default one layer at each end); shares are ours, for papers that speak of them. */
#include "impl.h"

#include "../cli/options.h"

#include <string.h>

/* "4", or "12.5 %" of all. */
int policy_blocks_set_count(policy_draft *d, const yaml_value *v, void *at)
{
    plan_count *to = at;
    const char *text = NULL;
    char number[32];
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
