/* gradients.c -- see mpsim/update.h: the gradients of a step in memory. */
#include <mpsim/update.h>

#include "../base/extent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All of them, and what is done to each; status: of each. */
typedef struct work {
    mpsim_gradient *list;
    size_t n;
    const mpsim_pool *pool;
    mpsim_status *status;
    float *norms;
    /* of this pass */
    mpsim_unscale_rule rule;
    double scale;
    int own, of_x; /* norms: in the format of each, else in binary32; of what backward left, else of y */
    float factor;
} work;

static mpsim_status run(work *w, void (*task)(size_t i, void *job))
{
    if (w->pool && w->n > 1)
        w->pool->run(w->pool->self, w->n, task, w);
    else
        for (size_t i = 0; i < w->n; i++)
            task(i, w);
    for (size_t i = 0; i < w->n; i++)
        if (w->status[i])
            return w->status[i];
    return MPSIM_OK;
}

/* Where the factor is 1, nothing has been rounded: in narrow formats numbers may become infinite here. */
static mpsim_status store(const mpsim_format *f, float *y, size_t n, unsigned *found)
{
    mpsim_rounding nearest;
    if (mpsim_format_same(f, mpsim_format_find("binary32")))
        return MPSIM_OK;
    mpsim_rounding_init(&nearest, MPSIM_ROUND_NEAREST_EVEN);
    const mpsim_status s = mpsim_round_array_f32(f, &nearest, NULL, y, y, n, NULL);
    for (size_t i = 0; i < n && !(*found & MPSIM_FOUND_OUTPUT); i++)
        if (!isfinite(y[i]))
            *found |= MPSIM_FOUND_OUTPUT;
    return s;
}

static void unscale_one(size_t i, void *job)
{
    work *w = job;
    mpsim_gradient *g = &w->list[i];
    unsigned found = mpsim_unscale_array(w->rule, w->scale, g->format, g->y, g->x, g->n);
    w->status[i] = store(g->format, g->y, g->n, &found);
    g->found |= found;
}

static void norm_one(size_t i, void *job)
{
    work *w = job;
    const mpsim_gradient *g = &w->list[i];
    w->norms[i] = mpsim_norm(w->own ? g->format : NULL, w->of_x ? g->x : g->y, g->n);
}

static void scale_one(size_t i, void *job)
{
    work *w = job;
    const mpsim_gradient *g = &w->list[i];
    mpsim_scale_array(g->format, g->y, g->y, g->n, w->factor);
}

/* ---- as mpsim_gradients ---- */

static const mpsim_format *format_of(void *context, size_t i)
{
    const work *w = context;
    return w->list[i].format;
}

static int unscale(void *context, mpsim_unscale_rule rule, double scale)
{
    work *w = context;
    w->rule = rule;
    w->scale = scale;
    return (int)run(w, unscale_one);
}

static int norms_of(void *context, int own, float *norms)
{
    work *w = context;
    w->own = own;
    w->norms = norms;
    return (int)run(w, norm_one);
}

static int scale_by(void *context, float factor)
{
    work *w = context;
    w->factor = factor;
    return (int)run(w, scale_one);
}

/* ---- calls ---- */

static mpsim_status begin(work *w, mpsim_gradient *list, size_t n, const mpsim_pool *pool)
{
    *w = (work){.list = list, .n = n, .pool = pool};
    if (!mpsim_fits(n, sizeof *list))
        return MPSIM_EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!list[i].format || (list[i].n && (!list[i].x || !list[i].y)) || !mpsim_fits(list[i].n, sizeof *list[i].x))
            return MPSIM_EINVAL;
    w->status = calloc(n ? n : 1, sizeof *w->status);
    w->norms = malloc((n ? n : 1) * sizeof *w->norms);
    return w->status && w->norms ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status end(work *w, float *norms, mpsim_status s)
{
    free(w->status);
    free(norms);
    return s;
}

mpsim_status mpsim_gradients_check(mpsim_gradient *list, size_t n, mpsim_unscale_rule rule, mpsim_overflow_check check,
                                   double scale, const mpsim_pool *pool, int64_t *cause)
{
    work w;
    mpsim_status s = begin(&w, list, n, pool);
    *cause = MPSIM_CAUSE_NONE;
    w.of_x = 1;
    if (!s && check == MPSIM_CHECK_NORM)
        s = run(&w, norm_one);
    const int overflows = !s && check == MPSIM_CHECK_NORM && mpsim_norm_overflows(w.norms, n);
    if (!s)
        s = (mpsim_status)unscale(&w, rule, scale);
    for (size_t i = 0; !s && i < n && *cause == MPSIM_CAUSE_NONE; i++)
        if (list[i].found & MPSIM_FOUND_INPUT)
            *cause = (int64_t)i;
    if (check == MPSIM_CHECK_NORM && !s && (!overflows || *cause == MPSIM_CAUSE_NONE))
        *cause = overflows ? MPSIM_CAUSE_NORM : MPSIM_CAUSE_NONE;
    return end(&w, w.norms, s);
}

mpsim_status mpsim_gradients_move(const mpsim_step_rules *r, mpsim_gradient *list, size_t n, double scale,
                                  double unscaled, const mpsim_pool *pool, mpsim_readied *out)
{
    work w;
    mpsim_status s = begin(&w, list, n, pool);
    float *norms = w.norms;
    const mpsim_gradients all = {&w, n, norms, format_of, unscale, norms_of, scale_by};
    if (!s)
        s = (mpsim_status)mpsim_gradients_ready(r, &all, scale, unscaled, (double)NAN, out);
    return end(&w, norms, s);
}
