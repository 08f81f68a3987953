/* update.c -- the CPU engine: gradients, the optimizer. */
#include "cpu.h"

#include <math.h>
#include <string.h>

/* ---- gradients ---- */

int cpu_unscale(train_engine *e, train_tensor *y, const train_tensor *x, mpsim_unscale_rule rule,
                double scale, unsigned *found)
{
    if (cpu_check(e, "unscale", x) || cpu_check_shape(e, "unscale", y, x->rows, x->cols))
        return -1;
    float *to = cpu_values(y);
    const size_t n = cpu_size(y);
    unsigned all = mpsim_unscale_array(rule, scale, y->format, to, cpu_values(x), n);
    if (cpu_store(e, y, to, NULL)) /* where the factor is 1, nothing has been rounded */
        return -1;
    for (size_t i = 0; i < n && !(all & MPSIM_FOUND_OUTPUT); i++)
        if (!isfinite(to[i]))
            all |= MPSIM_FOUND_OUTPUT;
    if (found)
        *found |= all;
    return 0;
}

int cpu_norm(train_engine *e, const train_tensor *x, const mpsim_format *f, float *norm)
{
    if (cpu_check(e, "norm", x))
        return -1;
    if (!norm)
        return cpu_fail(e, "norm: nowhere to put it");
    *norm = mpsim_norm(f, cpu_values(x), cpu_size(x));
    return 0;
}

int cpu_scale(train_engine *e, train_tensor *x, float factor)
{
    if (cpu_check(e, "scale", x))
        return -1;
    mpsim_scale_array(x->format, cpu_values(x), cpu_values(x), cpu_size(x), factor);
    return 0;
}

/* ---- the optimizer ---- */

/* One of the tensors of an update: NULL or like the parameter. */
static int check_like(train_engine *e, const train_tensor *x, const train_tensor *param,
                      const mpsim_format *f)
{
    if (!x)
        return 0;
    return cpu_check_shape(e, "optim", x, param->rows, param->cols) ||
           (f && cpu_check_formats(e, "optim", x->format, f));
}

static int check_update(train_engine *e, const mpsim_optim *o, const train_update *u)
{
    if (!o || !u || !o->variant)
        return cpu_fail(e, "optim: an optimizer or its tensors are missing");
    const mpsim_status s = mpsim_optim_check(o);
    if (s)
        return cpu_fail(e, "optim: %s of %s in %s: %s", o->variant->name,
                        mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), o->param.name,
                        mpsim_status_string(s));
    if (cpu_check(e, "optim", u->param) || cpu_check(e, "optim", u->grad) ||
        cpu_check_formats(e, "optim", u->param->format, &o->param) ||
        check_like(e, u->grad, u->param, NULL) || check_like(e, u->m, u->param, &o->state) ||
        check_like(e, u->v, u->param, &o->state) || check_like(e, u->vmax, u->param, &o->state) ||
        check_like(e, u->kahan, u->param, &o->param))
        return -1;
    return 0;
}

static float *optional(const train_tensor *x)
{
    return x ? cpu_values(x) : NULL;
}

/* The numbers of a tensor in binary64 at *to, which moves on; NULL for none. */
static double *widen(double **to, const float *x, size_t n)
{
    double *y = x ? *to : NULL;
    for (size_t i = 0; x && i < n; i++)
        y[i] = (double)x[i];
    *to += x ? n : 0;
    return y;
}

/* The parameter after the same step in binary64, in buffer 0. */
static double *reference(train_engine *e, const mpsim_optim *o, uint64_t step,
                         const mpsim_optim_tensor *t)
{
    double *to = cpu_buffer(e, 0, 5 * t->n * sizeof *to);
    if (!to)
        return NULL;
    double *param = widen(&to, t->param, t->n), *grad = widen(&to, t->grad, t->n);
    double *m = widen(&to, t->m, t->n), *v = widen(&to, t->v, t->n);
    double *vmax = widen(&to, t->vmax, t->n);
    if (mpsim_optim_reference(o, step, param, grad, m, v, vmax, t->n)) {
        cpu_fail(e, "optim: the reference cannot be computed");
        return NULL;
    }
    return param;
}

int cpu_optim(train_engine *e, const mpsim_optim *o, uint64_t step, const train_update *u,
              const mpsim_rng *rng, uint64_t *updates, uint64_t *lost)
{
    if (check_update(e, o, u))
        return -1;
    const size_t n = cpu_size(u->param);
    const mpsim_optim_tensor t = {.param = cpu_values(u->param), .grad = cpu_values(u->grad),
                                  .m = optional(u->m), .v = optional(u->v),
                                  .vmax = optional(u->vmax), .kahan = optional(u->kahan), .n = n};
    const int counting = updates || lost;
    const double *moved = counting ? reference(e, o, step, &t) : NULL;
    float *before = counting ? cpu_floats(e, 1, 2 * n) : NULL, *kahan = before ? before + n : NULL;
    if (counting && (!moved || !before))
        return -1;
    if (counting && n)
        memcpy(before, t.param, n * sizeof *before);
    if (counting && n && t.kahan)
        memcpy(kahan, t.kahan, n * sizeof *kahan);
    const mpsim_status s = mpsim_optim_step(o, step, &t, rng);
    if (s)
        return cpu_fail(e, "optim: step %llu of %s: %s", (unsigned long long)step,
                        o->variant->name, mpsim_status_string(s));
    for (size_t i = 0; counting && i < n; i++) {
        const int moves = moved[i] != (double)before[i];
        const int stays = t.param[i] == before[i] && (!t.kahan || t.kahan[i] == kahan[i]);
        if (updates)
            *updates += moves ? 1 : 0;
        if (lost)
            *lost += moves && stays ? 1 : 0;
    }
    return 0;
}
