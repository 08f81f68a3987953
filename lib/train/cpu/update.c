/* update.c -- the CPU engine: gradients, the optimizer. */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- gradients ---- */

static int unscale_one(train_engine *e, const train_pair *p, mpsim_unscale_rule rule, double scale, unsigned *found)
{
    float *to = cpu_values(p->y);
    const size_t n = cpu_size(p->y);
    unsigned all = mpsim_unscale_array(rule, scale, p->y->format, to, cpu_values(p->x), n);
    if (cpu_store(e, p->y, to, NULL)) /* where the factor is 1, nothing has been rounded */
        return -1;
    for (size_t i = 0; i < n && !(all & MPSIM_FOUND_OUTPUT); i++)
        if (!isfinite(to[i]))
            all |= MPSIM_FOUND_OUTPUT;
    if (found)
        *found |= all;
    return 0;
}

int cpu_unscale(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                unsigned *found)
{
    for (size_t i = 0; i < n; i++)
        if (unscale_one(e, &list[i], rule, scale, found ? &found[i] : NULL))
            return -1;
    return 0;
}

int cpu_norm(train_engine *e, const train_tensor *const *x, size_t n, const mpsim_format *const *f, float *norms)
{
    (void)e;
    for (size_t i = 0; i < n; i++)
        norms[i] = mpsim_norm(f ? f[i] : NULL, cpu_values(x[i]), cpu_size(x[i]));
    return 0;
}

int cpu_scale(train_engine *e, train_tensor *const *x, size_t n, float factor)
{
    (void)e;
    for (size_t i = 0; i < n; i++)
        mpsim_scale_array(x[i]->format, cpu_values(x[i]), cpu_values(x[i]), cpu_size(x[i]), factor);
    return 0;
}

/* ---- the optimizer ---- */

static float *optional(const train_tensor *x)
{
    return x ? cpu_values(x) : NULL;
}

/* Elements of a piece; those whose step is also taken in binary64 at a time, for which a thread's stack has room. */
enum { SOME = 4096, AT_ONCE = 512 };

typedef struct update {
    const mpsim_optim *o;
    uint64_t step;
    mpsim_optim_tensor t;
    const mpsim_rng *rng;
    const mpsim_states *states;
    int counting;
    mpsim_status status[CPU_PIECES];
    uint64_t updates[CPU_PIECES], lost[CPU_PIECES];
} update;

static mpsim_optim_tensor part_of(const mpsim_optim_tensor *t, size_t first, size_t n)
{
    mpsim_optim_tensor part = *t;
    float **const all[] = {&part.param, &part.m, &part.v, &part.vmax, &part.kahan};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = *all[i] ? *all[i] + first : NULL;
    part.grad += first;
    part.n = n;
    return part;
}

static double *widen(double *y, const float *x, size_t n)
{
    for (size_t i = 0; x && i < n; i++)
        y[i] = (double)x[i];
    return x ? y : NULL;
}

/* Of the elements of a step that is counted. */
typedef struct room {
    double *param, *grad, *m, *v, *vmax;
    float *before, *kahan;
    unsigned char *moves;
} room;

/* moves[i]: the same step in binary64 changes the parameter. */
static mpsim_status reference(const update *u, const mpsim_optim_tensor *t, const room *w)
{
    const mpsim_status s = mpsim_optim_reference(u->o, u->step, widen(w->param, t->param, t->n),
                                                 widen(w->grad, t->grad, t->n), widen(w->m, t->m, t->n),
                                                 widen(w->v, t->v, t->n), widen(w->vmax, t->vmax, t->n), t->n);
    for (size_t i = 0; !s && i < t->n; i++)
        w->moves[i] = w->param[i] != (double)t->param[i];
    return s;
}

static mpsim_status step_elements(update *u, size_t piece, size_t first, size_t n, const room *w)
{
    const mpsim_optim_tensor t = part_of(&u->t, first, n);
    mpsim_rng rng = {0, 0, 0};
    if (u->rng) {
        rng = *u->rng;
        rng.index += first;
    }
    if (u->counting) {
        const mpsim_status s = reference(u, &t, w);
        if (s)
            return s;
        memcpy(w->before, t.param, n * sizeof *w->before);
        if (t.kahan)
            memcpy(w->kahan, t.kahan, n * sizeof *w->kahan);
    }
    mpsim_status s = mpsim_optim_step(u->o, u->step, &t, u->rng ? &rng : NULL);
    if (!s && u->states)
        s = cpu_keep_values(u->states, t.param, t.m, t.v, t.vmax, n);
    for (size_t i = 0; !s && u->counting && i < n; i++) {
        const int stays = t.param[i] == w->before[i] && (!t.kahan || t.kahan[i] == w->kahan[i]);
        u->updates[piece] += w->moves[i];
        u->lost[piece] += w->moves[i] && stays ? 1 : 0;
    }
    return s;
}

static mpsim_status some_elements(update *u, size_t piece, size_t first, size_t n)
{
    double param[AT_ONCE], grad[AT_ONCE], m[AT_ONCE], v[AT_ONCE], vmax[AT_ONCE];
    float before[AT_ONCE], kahan[AT_ONCE];
    unsigned char moves[AT_ONCE];
    const room w = {param, grad, m, v, vmax, before, kahan, moves};
    return step_elements(u, piece, first, n, &w);
}

/* Of an optimizer that steps tensors as a whole, and of arrays that are stored in blocks. */
static mpsim_status all_elements(update *u)
{
    const size_t n = u->counting ? u->t.n : 1;
    double *wide = malloc((n ? n : 1) * (5 * sizeof *wide + 2 * sizeof(float) + 1));
    float *narrow = (float *)(wide + 5 * n);
    const room w = {wide,         wide + n, wide + 2 * n, wide + 3 * n,
                    wide + 4 * n, narrow,   narrow + n,   (unsigned char *)(narrow + 2 * n)};
    const mpsim_status s = wide ? step_elements(u, 0, 0, u->t.n, &w) : MPSIM_ENOMEM;
    free(wide);
    return s;
}

static void some_pieces(void *job, size_t piece, size_t first, size_t n)
{
    update *u = job;
    const size_t most = u->counting ? AT_ONCE : n;
    for (size_t i = 0; i < n && !u->status[piece]; i += most)
        u->status[piece] = some_elements(u, piece, first + i, n - i < most ? n - i : most);
}

static int optim_one(train_engine *e, const train_update *u, uint64_t *updates, uint64_t *lost)
{
    update all = {.o = u->optim,
                  .step = u->step,
                  .rng = u->rng,
                  .states = u->states,
                  .counting = updates || lost,
                  .t = {.param = cpu_values(u->param),
                        .grad = cpu_values(u->grad),
                        .m = optional(u->m),
                        .v = optional(u->v),
                        .vmax = optional(u->vmax),
                        .kahan = optional(u->kahan),
                        .n = cpu_size(u->param)}};
    if (u->states || mpsim_optim_traits_of(u->optim->algorithm)->factors)
        all.status[0] = all_elements(&all);
    else
        cpu_pieces(e, all.t.n, SOME, 1, some_pieces, &all);
    for (size_t i = 0; i < CPU_PIECES; i++) {
        if (all.status[i])
            return cpu_fail(e, "optim: step %llu of %s: %s", (unsigned long long)u->step, u->optim->variant->name,
                            mpsim_status_string(all.status[i]));
        if (updates)
            *updates += all.updates[i];
        if (lost)
            *lost += all.lost[i];
    }
    return 0;
}

int cpu_optim(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost)
{
    for (size_t i = 0; i < n; i++)
        if (optim_one(e, &list[i], updates, lost))
            return -1;
    return 0;
}
