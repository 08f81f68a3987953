/* onebyone.h -- for engines with a fault in their product: those of a list are single ones. */
#pragma once

#include <train/engine.h>

static inline int one_by_one(train_engine *e, const train_multiply *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (e->ops->gemm(e, list[i].d, list[i].g, list[i].counts))
            return -1;
    return 0;
}
