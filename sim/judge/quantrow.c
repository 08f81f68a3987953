/* quantrow.c -- see quantrow.h. */
#include "quantrow.h"

#include <stdio.h>

static const char *const names[] = {"mxfp8", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"};
static const char *const rules[] = {"floor", "even", "ceil", "rceil", "te", "microx"};
enum { NAMES = sizeof names / sizeof names[0], RULES = sizeof rules / sizeof rules[0] };

int judge_quantise_row_at(mpsim_block_recipe *b, size_t i)
{
    const size_t n = mpsim_block_count();
    char text[64];
    unsigned transform;
    if (i < n) {
        *b = *mpsim_block_at(i);
        return 0;
    }
    if (i >= n + NAMES * RULES)
        return -1;
    snprintf(text, sizeof text, "%s:%s", names[(i - n) / RULES], rules[(i - n) % RULES]);
    return mpsim_block_parse(b, &transform, text, NULL, 0) == MPSIM_OK ? 0 : -1;
}

int judge_quantise_is_random(const mpsim_block_recipe *b)
{
    return b->element_mode >= MPSIM_ROUND_STOCHASTIC_A || b->rule == MPSIM_SCALE_GIVEN;
}
