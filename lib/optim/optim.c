/* optim.c -- options of an optimizer, and a step of it: blocks of elements through the function of its row. */
#include "steps.h"

#include <mpsim/round.h>

#include <math.h>
#include <string.h>

/* ---- options ---- */

void mpsim_optim_init(mpsim_optim *o, mpsim_optim_algorithm a, const mpsim_optim_variant *v)
{
    memset(o, 0, sizeof *o);
    o->variant = v;
    o->algorithm = (uint8_t)a;
    o->lr = 1e-3;
    o->weight_decay = a == MPSIM_OPTIM_ADAMW ? 1e-2 : 0;
    o->beta1 = 0.9;
    o->beta2 = 0.999;
    o->eps = 1e-8;
    o->grad_scale = 1;
    o->param = o->state = *mpsim_format_find("binary32");
}

static int at_least_zero(double x)
{
    return isfinite(x) && x >= 0;
}

static int numbers_are_valid(const mpsim_optim *o)
{
    const double betas[] = {o->beta1, o->beta2};
    for (int i = 0; i < 2; i++)
        if (!at_least_zero(betas[i]) || betas[i] >= 1)
            return 0;
    if (o->nesterov && (o->momentum <= 0 || o->dampening != 0))
        return 0;
    return at_least_zero(o->lr) && at_least_zero(o->momentum) && isfinite(o->dampening) &&
           at_least_zero(o->weight_decay) && at_least_zero(o->eps) && isfinite(o->grad_scale) &&
           o->grad_scale > 0;
}

/* Whether a row can do what is asked for. */
static int is_available(const mpsim_optim_row *r, const mpsim_optim *o)
{
    unsigned needs = 0;
    if (o->amsgrad)
        needs |= MPSIM_HAS_AMSGRAD;
    if (o->maximize)
        needs |= MPSIM_HAS_MAXIMIZE;
    if (o->grad_scale != 1)
        needs |= MPSIM_HAS_GRAD_SCALE;
    if (o->nesterov)
        needs |= MPSIM_HAS_NESTEROV;
    if (o->dampening != 0 && o->dampening != o->momentum)
        needs |= MPSIM_HAS_DAMPENING;
    if (o->amsgrad && o->algorithm == MPSIM_OPTIM_SGD)
        return 0;
    return (r->variant.algorithms >> o->algorithm & 1) && (r->variant.stores >> o->store & 1) &&
           (needs & ~(unsigned)r->options) == 0;
}

/* MPSIM_OK if all numbers of f are binary32 numbers. */
static mpsim_status check_format(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL);
}

mpsim_status mpsim_optim_check(const mpsim_optim *o)
{
    const mpsim_optim_row *r = o ? mpsim_optim_row_of(o->variant) : NULL;
    if (!r || o->algorithm >= MPSIM_OPTIM_ALGORITHMS || o->store > MPSIM_STORE_KAHAN ||
        o->nesterov > 1 || o->amsgrad > 1 || o->maximize > 1 || !numbers_are_valid(o))
        return MPSIM_EINVAL;
    if (!is_available(r, o))
        return MPSIM_EUNAVAILABLE;
    const mpsim_status s = check_format(&o->param);
    return s == MPSIM_OK ? check_format(&o->state) : s;
}

/* ---- a step ---- */

static mpsim_optim_power power_of(const mpsim_optim *o, double beta, uint64_t step)
{
    if (o->algorithm == MPSIM_OPTIM_SGD)
        return (mpsim_optim_power){.of_double = 0, .of_float = 0};
    return (mpsim_optim_power){.of_double = mpsim_power(beta, step),
                               .of_float = mpsim_power((double)(float)beta, step)};
}

static int has_arrays(const mpsim_optim *o, const mpsim_optim_tensor *t)
{
    const int adam = o->algorithm != MPSIM_OPTIM_SGD;
    if (t->n == 0)
        return 1;
    return t->param && t->grad && (t->m || (!adam && o->momentum == 0)) && (t->v || !adam) &&
           (t->vmax || !o->amsgrad) && (t->kahan || o->store != MPSIM_STORE_KAHAN);
}

static float *from(float *x, size_t i)
{
    return x ? x + i : NULL;
}

/* Elements begin to end - 1 in blocks. */
static void run(const mpsim_optim_job *j, const mpsim_optim_tensor *t, size_t begin, size_t end,
                int tail)
{
    mpsim_optim_function *const step =
        j->o->algorithm == MPSIM_OPTIM_SGD ? j->row->sgd : j->row->adam;
    for (size_t i = begin; i < end; i += MPSIM_OPTIM_BLOCK) {
        const mpsim_optim_block b = {
            .p = t->param + i, .g = t->grad + i, .m = from(t->m, i), .v = from(t->v, i),
            .vmax = from(t->vmax, i), .kahan = from(t->kahan, i), .at = i,
            .n = end - i < MPSIM_OPTIM_BLOCK ? end - i : MPSIM_OPTIM_BLOCK, .tail = tail};
        step(j, &b);
    }
}

mpsim_status mpsim_optim_step(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t,
                              const mpsim_rng *rng)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0 || !t || !has_arrays(o, t) ||
        (o->store == MPSIM_STORE_STOCHASTIC && !rng))
        return MPSIM_EINVAL;
    const mpsim_optim_row *const row = mpsim_optim_row_of(o->variant);
    const mpsim_optim_job j = {.o = o, .row = row, .step = step, .rng = rng,
                               .param = mpsim_hold(&o->param), .state = mpsim_hold(&o->state),
                               .beta1 = power_of(o, o->beta1, step),
                               .beta2 = power_of(o, o->beta2, step)};
    const size_t multiple = row->body[j.param.exact ? 0 : 1];
    const size_t body = multiple ? t->n - t->n % multiple : 0;
    run(&j, t, 0, body, 0);
    run(&j, t, body, t->n, 1);
    return MPSIM_OK;
}
