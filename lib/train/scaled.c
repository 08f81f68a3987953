/* scaled.c -- products of blocks with their scales, as the block-scaled instructions of an architecture compute them. */
#include "trainer.h"

#include <stdio.h>
#include <string.h>

int train_is_scaled(const train_settings *s, char base[64])
{
    static const char suffix[] = "-scaled";
    const size_t n = strlen(s->arch), end = sizeof suffix - 1;
    snprintf(base, 64, "%s", s->arch);
    if (n <= end || strcmp(base + n - end, suffix) != 0)
        return 0;
    base[n - end] = 0;
    return 1;
}

int train_scaled_model(const train_settings *s, const mpsim_block_recipe *x, const mpsim_block_recipe *y,
                       mpsim_model *m)
{
    char base[64];
    const mpsim_format *fx = mpsim_format_find(x->element), *fy = mpsim_format_find(y->element);
    const mpsim_format *scales = mpsim_block_scale_format(x), *other = mpsim_block_scale_format(y);
    if (!train_is_scaled(s, base) || !fx || !fy || !scales || scales != other || x->block_cols != y->block_cols)
        return -1;
    return mpsim_model_for_blocks(m, base, fx, fy, x->block_cols, scales) == MPSIM_OK ? 0 : -1;
}
