/* updates.c -- see check.h: gradients, the optimizer, sums over ranks. */
#include "check.h"

/* ---- gradients ---- */

static int unscale(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                   unsigned *found)
{
    int bad = check_list(e, "unscale", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tensor(e, "unscale", list[i].x) ||
              check_shape(e, "unscale", list[i].y, list[i].x->rows, list[i].x->cols);
    return bad ? -1 : e->own->unscale(e, list, n, rule, scale, found);
}

static int norm(train_engine *e, const train_tensor *const *x, size_t n, const mpsim_format *const *f, float *norms)
{
    if (!norms && n)
        return check_fail(e, "norm: result pointer is NULL");
    int bad = check_list(e, "norm", x, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tensor(e, "norm", x[i]);
    return bad ? -1 : e->own->norm(e, x, n, f, norms);
}

static int scale(train_engine *e, train_tensor *const *x, size_t n, float factor)
{
    int bad = check_list(e, "scale", x, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_tensor(e, "scale", x[i]);
    return bad ? -1 : e->own->scale(e, x, n, factor);
}

/* ---- the optimizer ---- */

/* One of the tensors of an update: NULL or like the parameter. */
static int check_like(train_engine *e, const train_tensor *x, const train_tensor *param, const mpsim_format *f)
{
    if (!x)
        return 0;
    return check_shape(e, "optim", x, param->rows, param->cols) || (f && check_formats(e, "optim", x->format, f));
}

static int check_optim(train_engine *e, const mpsim_optim *o)
{
    if (!o || !o->variant)
        return check_fail(e, "optim: optimizer or tensors are NULL");
    const mpsim_status s = mpsim_optim_check(o);
    return s ? check_fail(e, "optim: %s of %s in %s: %s", o->variant->name,
                          mpsim_optim_name((mpsim_optim_algorithm)o->algorithm), o->param.name, mpsim_status_string(s))
             : 0;
}

static int check_update(train_engine *e, const train_update *u)
{
    const mpsim_optim *o = u->optim;
    if (check_optim(e, o) || check_tensor(e, "optim", u->param) || check_tensor(e, "optim", u->grad) ||
        check_formats(e, "optim", u->param->format, &o->param) || check_like(e, u->grad, u->param, NULL) ||
        check_like(e, u->m, u->param, &o->state) || check_like(e, u->v, u->param, &o->state) ||
        check_like(e, u->vmax, u->param, &o->state) || check_like(e, u->kahan, u->param, &o->param))
        return -1;
    const unsigned arrays = mpsim_optim_arrays(o);
    if (((arrays & MPSIM_OPTIM_M) && !u->m) || ((arrays & MPSIM_OPTIM_V) && !u->v) ||
        ((arrays & MPSIM_OPTIM_VMAX) && !u->vmax))
        return check_fail(e, "optim: step %llu of %s: a state tensor is NULL", (unsigned long long)u->step,
                          o->variant->name);
    if (u->step == 0 || (o->store == MPSIM_STORE_STOCHASTIC && !u->rng))
        return check_fail(
            e, "optim: step %llu of %s: the step must be at least 1, and stochastic storing needs a generator",
            (unsigned long long)u->step, o->variant->name);
    return 0;
}

static int optim(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost)
{
    int bad = check_list(e, "optim", list, n);
    for (size_t i = 0; i < n && !bad; i++)
        bad = check_update(e, &list[i]);
    return bad ? -1 : e->own->optim(e, list, n, updates, lost);
}

static int muon(train_engine *e, const train_update *u, const mpsim_muon *o, uint64_t *updates, uint64_t *lost)
{
    const mpsim_status s = mpsim_muon_check(o);
    if (s)
        return check_fail(e, "muon: %s", mpsim_status_string(s));
    if (!u->m)
        return check_fail(e, "muon: buffer is NULL");
    const train_tensor *const p = u->param;
    return check_tensor(e, "muon", p) || check_shape(e, "muon", u->grad, p->rows, p->cols) ||
                   check_formats(e, "muon", p->format, &o->param) || check_shape(e, "muon", u->m, p->rows, p->cols) ||
                   check_formats(e, "muon", u->m->format, &o->param)
               ? -1
               : e->own->muon(e, u, o, updates, lost);
}

static int keep(train_engine *e, const mpsim_states *s, train_tensor *kept, train_tensor *m, train_tensor *v,
                train_tensor *vmax)
{
    const train_tensor *const all[] = {m, v, vmax};
    int bad = check_tensor(e, "keep", kept);
    for (size_t i = 0; i < 3 && !bad; i++)
        bad = all[i] && check_shape(e, "keep", all[i], kept->rows, kept->cols);
    return bad ? -1 : e->own->keep(e, s, kept, m, v, vmax);
}

/* ---- sums over ranks ---- */

enum { RANKS = 1 << 16 };

static int check_sum(train_engine *e, const mpsim_reduce *r, const train_sum *s, size_t ranks)
{
    int bad = check_tensor(e, "reduce", s->y) || check_formats(e, "reduce", s->y->format, &r->result);
    for (size_t k = 0; k < ranks && !bad; k++)
        bad = check_shape(e, "reduce", s->x[k], s->y->rows, s->y->cols);
    return bad;
}

static int reduce(train_engine *e, const mpsim_reduce *r, const train_sum *list, size_t n, size_t ranks)
{
    if (!r || (!list && n) || ranks == 0 || r->order > MPSIM_REDUCE_TREE || r->average > MPSIM_AVERAGE_AFTER)
        return check_fail(e, "reduce: settings or ranks are NULL");
    if (ranks > RANKS)
        return check_fail(e, "reduce: %zu ranks are too many", ranks);
    for (size_t i = 0; i < n; i++)
        if (check_sum(e, r, &list[i], ranks))
            return -1;
    return e->own->reduce(e, r, list, n, ranks);
}

void check_updates(train_ops *to)
{
    to->unscale = unscale;
    to->norm = norm;
    to->scale = scale;
    to->optim = optim;
    to->muon = to->muon ? muon : NULL; /* an engine may lack these */
    to->keep = to->keep ? keep : NULL;
    to->reduce = reduce;
}
