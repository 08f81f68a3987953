/* zeroname.c -- see zeroname.h.
 * Source: deepspeed/runtime/engine.py of DeepSpeed 0.19.8 (_get_zero_ckpt_name, _get_ckpt_name, _get_expert_ckpt_name,
 * _get_optimizer_ckpt_name). */
#include "zeroname.h"

#include <stdlib.h>
#include <string.h>

/* Whether *p goes on with `word`, which is passed then. */
static int take(const char **p, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0)
        return 0;
    *p += n;
    return 1;
}

static int number(const char **p, uint64_t *u)
{
    const size_t n = strspn(*p, "0123456789");
    *u = n && n < 10 ? strtoull(*p, NULL, 10) : 0;
    *p += n;
    return n && n < 10;
}

int trace_zero_name_parse(const char *file, zero_name *name)
{
    const char *p = file;
    uint64_t skipped;
    *name = (zero_name){.other = 1};
    take(&p, "bf16_");
    take(&p, "fp16_");
    if (take(&p, "layer_")) {
        name->expert = number(&p, &skipped) && take(&p, "_expert_") && number(&p, &skipped);
        if (!name->expert || !take(&p, "_"))
            return -1;
    } else if (take(&p, "expp_rank_")) {
        name->expert = 1;
        if (!number(&p, &name->rank) || !take(&p, "_"))
            return -1;
    } else if (take(&p, "zero_pp_rank_")) {
        name->other = 0;
        if (!number(&p, &name->rank) || !take(&p, "_"))
            return -1;
    }
    if (!take(&p, "mp_rank_") || !number(&p, &name->model_rank))
        return -1;
    take(&p, "_"); /* missing in files of 2020 */
    name->optimizer = strcmp(p, "optim_states.pt") == 0;
    return name->optimizer || strcmp(p, "model_states.pt") == 0 ? 0 : -1;
}
