/* update.c -- the CPU engine: gradients, the optimizer. */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>

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

static mpsim_update update_of(const train_update *u)
{
    return (mpsim_update){.optim = u->optim,
                          .states = u->states,
                          .rng = u->rng,
                          .step = u->step,
                          .rows = u->param->rows,
                          .cols = u->param->cols,
                          .t = {.param = cpu_values(u->param),
                                .grad = cpu_values(u->grad),
                                .m = optional(u->m),
                                .v = optional(u->v),
                                .vmax = optional(u->vmax),
                                .kahan = optional(u->kahan),
                                .n = cpu_size(u->param)}};
}

static void add_counts(const mpsim_update *list, size_t n, uint64_t *updates, uint64_t *lost)
{
    for (size_t i = 0; i < n; i++) {
        if (updates)
            *updates += list[i].updates;
        if (lost)
            *lost += list[i].lost;
    }
}

int cpu_optim(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost)
{
    size_t which = 0;
    mpsim_update *all = malloc((n ? n : 1) * sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = update_of(&list[i]);
    const mpsim_status s = all ? mpsim_update_run(all, n, updates || lost, e->pool, &which) : MPSIM_ENOMEM;
    if (!s)
        add_counts(all, n, updates, lost);
    free(all);
    return s ? cpu_fail(e, "optim: step %llu of %s: %s", (unsigned long long)(n ? list[which].step : 0),
                        n ? list[which].optim->variant->name : "no parameters", mpsim_status_string(s))
             : 0;
}

int cpu_muon(train_engine *e, const train_update *u, const mpsim_muon *o, uint64_t *updates, uint64_t *lost)
{
    mpsim_update one = update_of(u);
    one.muon = o;
    const mpsim_status s = mpsim_update_run(&one, 1, updates || lost, e->pool, NULL);
    if (s)
        return cpu_fail(e, "muon: %s", mpsim_status_string(s));
    add_counts(&one, 1, updates, lost);
    return 0;
}

/* ---- moments in few bits ---- */

int cpu_keep(train_engine *e, const mpsim_states *s, train_tensor *kept, train_tensor *m, train_tensor *v,
             train_tensor *vmax)
{
    const mpsim_status status = mpsim_states_keep(s, optional(kept), optional(m), optional(v), optional(vmax),
                                                  cpu_size(kept));
    return status ? cpu_fail(e, "keep: states %s: %s", s->name, mpsim_status_string(status)) : 0;
}
