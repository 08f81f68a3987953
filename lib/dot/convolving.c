/* convolving.c -- what both kinds of sums of a convolution share; see convolution.h. */
#include "../round/scalar.h"
#include "convolution.h"

#include <stdlib.h>

/* ---- operands ---- */

mpsim_axes mpsim_factor_axes(const mpsim_factor *f)
{
    return (mpsim_axes){.format = f->x.format, .codes = f->x.codes, .rounded = f->rounds ? &f->rounded : NULL};
}

int mpsim_factor_open(mpsim_factor *f, int planar, const mpsim_pool *pool)
{
    static const uint8_t by_channels[] = {0, 2, 3, 4, 1}, by_planes[] = {0, 1, 2, 3, 4};
    const uint8_t *turns = planar ? by_planes : by_channels;
    mpsim_tensor *x = &f->x;
    mpsim_axes axes = mpsim_factor_axes(f);
    int64_t side = 1;
    if (!f->rounds && (planar || x->stride[1] == 1 || x->size[1] == 1))
        return 1;
    for (size_t i = 0; i < MPSIM_TENSOR; i++)
        mpsim_axes_add(&axes, x->size[turns[i]], (ptrdiff_t)x->stride[turns[i]]);
    f->own = malloc(mpsim_axes_count(&axes) * mpsim_format_code_bytes(mpsim_axes_format(&axes)) + 1);
    if (!f->own)
        return 0;
    mpsim_axes_put(&axes, f->own, pool);
    for (size_t i = MPSIM_TENSOR; i-- > 0; side *= (int64_t)x->size[turns[i]])
        x->stride[turns[i]] = side;
    x->codes = (const unsigned char *)f->own;
    return 1;
}

/* ---- tasks ---- */

int mpsim_convolving_is_random(const mpsim_convolving *v)
{
    const mpsim_model *m = v->c->model;
    return v->c->rng &&
           (mpsim_is_stochastic(m->product.rounding.mode) || mpsim_is_stochastic(m->accumulator.rounding.mode) ||
            mpsim_is_stochastic(m->outer.rounding.mode) || mpsim_is_stochastic(m->result.rounding.mode));
}

typedef struct tasks {
    mpsim_task *task;
    void *context;
    unsigned char *status; /* of each */
} tasks;

static void run_task(size_t i, void *context)
{
    const tasks *t = (const tasks *)context;
    t->status[i] = (unsigned char)t->task(t->context, i);
}

mpsim_status mpsim_tasks_run(size_t n, mpsim_task *task, void *context, const mpsim_pool *pool)
{
    tasks t = {task, context, (unsigned char *)calloc(n ? n : 1, 1)};
    mpsim_status s = t.status ? MPSIM_OK : MPSIM_ENOMEM;
    if (pool && n > 1 && t.status)
        pool->run(pool->self, n, run_task, &t);
    else
        for (size_t i = 0; i < n && t.status; i++)
            run_task(i, &t);
    for (size_t i = 0; i < n && s == MPSIM_OK; i++)
        s = (mpsim_status)t.status[i];
    free(t.status);
    return s;
}
