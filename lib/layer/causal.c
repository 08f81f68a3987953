/* causal.c -- softmax of the rows of causal attention; see mpsim/transformer.h. */
#include <mpsim/transformer.h>

#include "../base/extent.h"

static mpsim_softmax rows_of(const mpsim_causal *c)
{
    return (mpsim_softmax){.rows = mpsim_elements(c->matrices, c->length),
                           .cols = c->length,
                           .length = c->length,
                           .scale = c->scale,
                           .math = c->math,
                           .f = c->f};
}

mpsim_status mpsim_causal_softmax(const mpsim_causal *c, float *p, const float *s)
{
    if (!c)
        return MPSIM_EINVAL;
    const mpsim_softmax rows = rows_of(c);
    return mpsim_softmax_rows(&rows, p, s, NULL);
}

mpsim_status mpsim_causal_softmax_backward(const mpsim_causal *c, float *ds, const float *dp, const float *p)
{
    if (!c)
        return MPSIM_EINVAL;
    const mpsim_softmax rows = rows_of(c);
    return mpsim_softmax_backward(&rows, ds, dp, p, NULL);
}
