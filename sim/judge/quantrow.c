/* quantrow.c -- see quantrow.h. */
#include "quantrow.h"

#include <stdio.h>

/* Names, and what follows each of them: a rule of E8M0 scales, or the shape of a block with a scale of binary32. */
typedef struct family {
    const char *names[8], *ends[12];
} family;

static const family families[] = {
    {{"mxfp8", "mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"},
     {":floor", ":even", ":ceil", ":rceil", ":te", ":microx"}},
    {{"mxfp8-e5m2", "mxfp6-e3m2", "mxfp6-e2m3", "mxfp4"},
     {":torchao-0.18-floor", ":torchao-0.18-even", ":torchao-0.18-ceil", ":torchao-0.18-rceil"}},
    {{"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"}, {"/tensor", "/row", "/1x128", "/128x128"}}};

int judge_quantise_row_at(mpsim_block_recipe *b, size_t i)
{
    size_t n = mpsim_block_count();
    char text[64];
    unsigned transform;
    if (i < n) {
        *b = *mpsim_block_at(i);
        return 0;
    }
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (size_t name = 0; families[f].names[name]; name++)
            for (size_t end = 0; families[f].ends[end]; end++)
                if (n++ == i) {
                    snprintf(text, sizeof text, "%s%s", families[f].names[name], families[f].ends[end]);
                    return mpsim_block_parse(b, &transform, text, NULL, 0) == MPSIM_OK ? 0 : -1;
                }
    return -1;
}

int judge_quantise_is_random(const mpsim_block_recipe *b)
{
    return b->element_mode >= MPSIM_ROUND_STOCHASTIC_A || b->rule == MPSIM_SCALE_GIVEN;
}
