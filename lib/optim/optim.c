/* optim.c -- options of an optimizer, and a step of it: blocks of elements through the function of its row. */
#include "kernel/kernel.h"

#include <mpsim/round.h>

#include <math.h>
#include <string.h>

/* ---- options ---- */

void mpsim_optim_init(mpsim_optim *o, mpsim_optim_algorithm a, const mpsim_optim_variant *v)
{
    memset(o, 0, sizeof *o);
    o->variant = v;
    o->algorithm = (uint8_t)a;
    const mpsim_optim_traits *t = mpsim_optim_traits_of((int)a);
    o->lr = t->lr;
    o->weight_decay = t->weight_decay;
    o->beta1 = t->beta1;
    o->beta2 = t->beta2;
    o->eps = t->eps;
    o->beta2_decay = t->beta2_decay;
    o->eps2 = t->eps2;
    o->d = t->d;
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
    if (mpsim_optim_has(o->algorithm, MPSIM_OPTIM_D) &&
        !(at_least_zero(-o->beta2_decay) && at_least_zero(o->eps2) && isfinite(o->d) && o->d >= 1))
        return 0;
    return at_least_zero(o->lr) && at_least_zero(o->momentum) && isfinite(o->dampening) &&
           at_least_zero(o->weight_decay) && at_least_zero(o->eps) && isfinite(o->grad_scale) && o->grad_scale > 0;
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
    if (o->amsgrad && !mpsim_optim_has(o->algorithm, MPSIM_OPTIM_AMSGRAD))
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
    if (!r || o->algorithm >= MPSIM_OPTIM_ALGORITHMS || o->store > MPSIM_STORE_KAHAN || o->nesterov > 1 ||
        o->amsgrad > 1 || o->maximize > 1 || o->float_powers > 1 || !numbers_are_valid(o))
        return MPSIM_EINVAL;
    if (!is_available(r, o))
        return MPSIM_EUNAVAILABLE;
    const mpsim_status s = check_format(&o->param);
    return s == MPSIM_OK ? check_format(&o->state) : s;
}

/* ---- a step ---- */

/* ATen's pow of a binary32 number: x, x x and (x x) x for the first three exponents, else C's powf. */
static float float_power(float beta, uint64_t n)
{
    return n == 2 ? beta * beta : n == 3 ? beta * beta * beta : (float)mpsim_power((double)beta, n);
}

double mpsim_optim_correction(const mpsim_optim *o, double beta, uint64_t step)
{
    return o->float_powers ? (double)(1 - float_power((float)beta, step)) : 1 - mpsim_power(beta, step);
}

static mpsim_optim_power power_of(const mpsim_optim *o, double beta, uint64_t step)
{
    if (!mpsim_optim_traits_of(o->algorithm)->corrects)
        return (mpsim_optim_power){.of_double = 0, .of_float = 0};
    if (o->float_powers) { /* 1 - a binary32 number above 2^-24 is exact */
        const double power = 1 - mpsim_optim_correction(o, beta, step);
        return (mpsim_optim_power){.of_double = power, .of_float = power};
    }
    return (mpsim_optim_power){.of_double = mpsim_power(beta, step),
                               .of_float = mpsim_power((double)(float)beta, step)};
}

static int has_arrays(const mpsim_optim *o, const mpsim_optim_tensor *t)
{
    const unsigned arrays = mpsim_optim_arrays(o);
    if (t->n == 0)
        return 1;
    return t->param && t->grad && (t->m || !(arrays & MPSIM_OPTIM_M)) && (t->v || !(arrays & MPSIM_OPTIM_V)) &&
           (t->vmax || !(arrays & MPSIM_OPTIM_VMAX)) && (t->kahan || o->store != MPSIM_STORE_KAHAN);
}

static float *from(float *x, size_t i)
{
    return x ? x + i : NULL;
}

/* The next n elements. */
static void advance(mpsim_optim_block *b, size_t n)
{
    b->p += n;
    b->g += n;
    b->m = from(b->m, n);
    b->v = from(b->v, n);
    b->vmax = from(b->vmax, n);
    b->kahan = from(b->kahan, n);
    b->at += n;
    b->n -= n;
}

/* Random words are made of the lower halves of lanes (lib/round/kernel/philox.h), which are not the first where the high ones are. */
static const int draws_in_registers = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

/* Whether kernels round to the formats of a step in registers, and store what it keeps. */
static int rounds_in_registers(const mpsim_optim_job *j)
{
    const int draws = j->o->store == MPSIM_STORE_STOCHASTIC && !j->param.exact;
    return j->param.in != MPSIM_HELD_ARRAY && j->state.in != MPSIM_HELD_ARRAY &&
           (!draws || (draws_in_registers && j->param.in == MPSIM_HELD_FLAT));
}

/* As many of the first elements as the kernel does, up to a block of those that are rounded after it. */
static size_t run_kernel(const mpsim_optim_job *j, mpsim_step_function *kernel, const mpsim_optim_block *b)
{
    float p[MPSIM_OPTIM_BLOCK], m[MPSIM_OPTIM_BLOCK], v[MPSIM_OPTIM_BLOCK], vmax[MPSIM_OPTIM_BLOCK];
    mpsim_optim_block part = *b;
    mpsim_optim_results r = {b->p, b->m, b->v, b->vmax, 1};
    if (rounds_in_registers(j))
        return kernel(j, b, &r);
    r.rounds = 0;
    if (!j->param.exact)
        r.p = p;
    if (!j->state.exact) {
        r.m = m;
        r.v = v;
        r.vmax = vmax;
    }
    part.n = part.n < MPSIM_OPTIM_BLOCK ? part.n : MPSIM_OPTIM_BLOCK;
    part.n = kernel(j, &part, &r);
    mpsim_optim_store_param(j, &part, r.p);
    if (mpsim_optim_stores_m(j))
        mpsim_optim_store_state(j, b->m, r.m, part.n);
    if (j->arrays & MPSIM_OPTIM_V)
        mpsim_optim_store_state(j, b->v, r.v, part.n);
    if (j->arrays & MPSIM_OPTIM_VMAX)
        mpsim_optim_store_state(j, b->vmax, r.vmax, part.n);
    return part.n;
}

/* Elements begin to end - 1, by the kernel, if there is one, and what it leaves by the reference. */
static void run(const mpsim_optim_job *j, const mpsim_optim_tensor *t, size_t begin, size_t end, int tail,
                mpsim_step_function *kernel)
{
    size_t most = kernel ? MPSIM_OPTIM_LEFT : MPSIM_OPTIM_BLOCK;
    mpsim_optim_block b = {.p = t->param + begin,
                           .g = t->grad + begin,
                           .m = from(t->m, begin),
                           .v = from(t->v, begin),
                           .vmax = from(t->vmax, begin),
                           .kahan = from(t->kahan, begin),
                           .at = begin,
                           .n = end - begin,
                           .tail = tail};
    while (b.n > 0) {
        const size_t done = kernel ? run_kernel(j, kernel, &b) : 0;
        advance(&b, done);
        if (b.n == 0 || done == MPSIM_OPTIM_BLOCK)
            continue;
        if (kernel) /* where the kernel stops again and again, the reference does more at once */
            most = done > 0 ? MPSIM_OPTIM_LEFT : most < MPSIM_OPTIM_BLOCK ? 2 * most : most;
        mpsim_optim_block left = b;
        left.n = b.n < most ? b.n : most;
        j->run->run(j, &left);
        advance(&b, left.n);
    }
}

/* The kernel of a step, or NULL. Sequences of operations are one pass where the kernel rounds between them. */
static mpsim_step_function *kernel_of(const mpsim_optim_job *j)
{
    const mpsim_optim_kernels *k = mpsim_optim_kernels_active();
    const int holds = rounds_in_registers(j) || j->row->one_pass;
    return k && holds && !j->x.uneven ? k->step[j->row->kernel[j->traits->family]] : NULL;
}

/* What all variants round alike, or most of them; the variant's own numbers. */
static void find_numbers(mpsim_optim_job *j)
{
    const mpsim_optim *o = j->o;
    j->x = (mpsim_optim_numbers){.lr = (float)o->lr,
                                 .wd = (float)o->weight_decay,
                                 .eps = (float)o->eps,
                                 .momentum = (float)o->momentum,
                                 .b1 = (float)o->beta1,
                                 .b2 = (float)o->beta2,
                                 .rest1 = (float)(1 - o->beta1),
                                 .rest2 = (float)(1 - o->beta2),
                                 .grad_scale = (float)o->grad_scale,
                                 .decays = o->weight_decay != 0,
                                 .has_momentum = o->momentum != 0,
                                 .divides = o->grad_scale != 1,
                                 .negates = o->maximize};
    if (j->run)
        j->run->numbers(j, &j->x);
    if (j->run && j->row->rules)
        mpsim_op_scalars(j, &j->x);
}

/* A checked step of a tensor of n elements. */
static mpsim_optim_job job_of(const mpsim_optim *o, uint64_t step, size_t n, const mpsim_rng *rng)
{
    const mpsim_optim_row *const row = mpsim_optim_row_of(o->variant);
    const mpsim_optim_traits *const traits = mpsim_optim_traits_of(o->algorithm);
    mpsim_optim_job j = {.o = o,
                         .row = row,
                         .traits = traits,
                         .run = row->step[traits->family],
                         .arrays = mpsim_optim_arrays(o),
                         .step = step,
                         .n = n,
                         .rng = rng,
                         .param = mpsim_hold(&o->param),
                         .state = mpsim_hold(&o->state),
                         .beta1 = power_of(o, o->beta1, step),
                         .beta2 = power_of(o, o->beta2, step)};
    find_numbers(&j);
    return j;
}

static size_t multiple_of(const mpsim_optim_job *j)
{
    return j->row->body[j->param.exact ? 0 : 1];
}

mpsim_status mpsim_optim_step(const mpsim_optim *o, uint64_t step, const mpsim_optim_tensor *t, const mpsim_rng *rng)
{
    if (mpsim_optim_check(o) != MPSIM_OK || step == 0 || !t || !has_arrays(o, t) ||
        (o->store == MPSIM_STORE_STOCHASTIC && !rng) || !mpsim_optim_fits(o, t->n))
        return MPSIM_EINVAL;
    const mpsim_optim_job j = job_of(o, step, t->n, rng);
    if (j.traits->factors) {
        if (t->n > 0)
            j.row->tensor(&j, t);
        return MPSIM_OK;
    }
    mpsim_step_function *const kernel = kernel_of(&j);
    const size_t multiple = multiple_of(&j);
    const size_t body = multiple ? t->n - t->n % multiple : 0;
    run(&j, t, 0, body, 0, kernel);
    run(&j, t, body, t->n, 1, multiple ? NULL : kernel); /* a scalar tail is not what vectors do */
    return MPSIM_OK;
}

mpsim_status mpsim_optim_plan_of(mpsim_optim_plan *p, const mpsim_optim *o, uint64_t step)
{
    const mpsim_status s = mpsim_optim_check(o);
    if (s || step == 0)
        return s ? s : MPSIM_EINVAL;
    const mpsim_optim_job j = job_of(o, step, 0, NULL);
    *p = (mpsim_optim_plan){.x = j.x,
                            .kernel = (mpsim_step_kernel)j.row->kernel[j.traits->family],
                            .arrays = j.arrays,
                            .contraction = j.row->rules ? mpsim_op_contraction(j.row->rules) : MPSIM_CONTRACT_NONE,
                            .family = j.traits->family,
                            .decoupled = j.traits->decoupled,
                            .first = step == 1,
                            .stores_m = (uint8_t)(mpsim_optim_stores_m(&j) != 0),
                            .multiple = (uint8_t)multiple_of(&j)};
    return MPSIM_OK;
}
