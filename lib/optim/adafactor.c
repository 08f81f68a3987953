/* adafactor.c -- Adafactor, as torch.optim.Adafactor's for-loop does it (PyTorch 2.15, torch/optim/_adafactor.py).
 *
 * A matrix keeps the mean squares of its rows (m) and of its columns (v), a vector those of its elements (v). Sums are
 * exact here and rounded once, as in mpsim_norm; torch adds in orders of its own. What a tensor is updated with is
 * computed twice, for its norm and for the step, rather than kept. */
#include "kernel/kernel.h"

#include "expand.h"

#include <mpsim/gradient.h>
#include <mpsim/stats.h>

#include <math.h>
#include <string.h>

typedef struct adafactor {
    const mpsim_optim_job *j;
    const mpsim_optim_tensor *t;
    size_t rows, cols, each; /* of a matrix, its elements; 0: a vector */
    size_t matrix;           /* whose rows have this mean              */
    float mean;
    mpsim_ops ops;
    double weight; /* of new mean squares                    */
} adafactor;

/* A sum, exact; and the sum of what is not finite, 0 where there is nothing. */
typedef struct total {
    mpsim_sum sum;
    float special;
} total;

static void add(total *s, float x, int squared)
{
    if (!isfinite(x))
        s->special += squared ? x * x : x;
    else if (squared)
        mpsim_sum_add_square(&s->sum, (double)x);
    else
        mpsim_sum_add(&s->sum, (double)x);
}

static double value_of(const total *s)
{
    return s->special != 0 ? (double)s->special : mpsim_sum_value(&s->sum);
}

/* ---- moments ---- */

/* The mean square of n elements of the gradient, every so many. */
static float mean_square(const adafactor *a, size_t at, size_t n, size_t stride)
{
    total s = {.special = 0};
    mpsim_sum_init(&s.sum);
    for (size_t i = 0; i < n; i++)
        add(&s, mpsim_optim_gradient(&a->j->x, a->t->grad[at + i * stride]), 1);
    const float norm = (float)sqrt(value_of(&s));
    return norm * norm / (float)n;
}

static void follow(adafactor *a)
{
    const size_t each = a->each ? a->each : 1;
    a->ops.n = 1;
    for (size_t i = 0; a->each && i < a->t->n / a->cols; i++) {
        const float mean = mean_square(a, i * a->cols, a->cols, 1);
        mpsim_op_lerp(&a->ops, &a->j->state, &a->t->m[i], &mean, a->weight);
    }
    for (size_t i = 0; i < a->t->n / a->rows; i++) {
        const float mean = mean_square(a, i / a->cols * each + i % a->cols, a->rows, a->cols);
        mpsim_op_lerp(&a->ops, &a->j->state, &a->t->v[i], &mean, a->weight);
    }
}

/* ---- updates ---- */

/* The mean of the moments of a matrix's rows, at least eps. */
static float mean_of_rows(const adafactor *a, size_t matrix)
{
    total s = {.special = 0};
    mpsim_sum_init(&s.sum);
    for (size_t i = 0; i < a->rows; i++)
        add(&s, a->t->m[matrix * a->rows + i], 0);
    const float mean = (float)value_of(&s) / (float)a->rows;
    return mean < a->j->x.eps ? a->j->x.eps : mean;
}

static float estimate(adafactor *a, size_t i)
{
    if (!a->each)
        return a->t->v[i];
    const size_t matrix = i / a->each;
    if (a->matrix != matrix)
        a->mean = mean_of_rows(a, a->matrix = matrix);
    return a->t->m[i / a->cols] * a->t->v[matrix * a->cols + i % a->cols] / a->mean;
}

/* The updates of a block, before they are clipped. */
static mpsim_optim_block updates(adafactor *a, size_t at, float *u)
{
    const float least = (float)(a->j->o->eps * a->j->o->eps);
    const size_t n = a->t->n - at < MPSIM_OPTIM_BLOCK ? a->t->n - at : MPSIM_OPTIM_BLOCK;
    for (size_t i = 0; i < n; i++) {
        const float v = estimate(a, at + i), root = sqrtf(v < least ? least : v);
        u[i] = 1 / root * mpsim_optim_gradient(&a->j->x, a->t->grad[at + i]);
    }
    return (mpsim_optim_block){.p = a->t->param + at, .at = at, .n = n};
}

static float norm_of_updates(adafactor *a)
{
    float u[MPSIM_OPTIM_BLOCK];
    total s = {.special = 0};
    mpsim_sum_init(&s.sum);
    for (size_t at = 0; at < a->t->n; at += MPSIM_OPTIM_BLOCK)
        for (size_t i = 0, n = updates(a, at, u).n; i < n; i++)
            add(&s, u[i], 1);
    return (float)sqrt(value_of(&s));
}

/* p = p (1 - lr wd) + step u, rounded where it is stored. */
static void apply(adafactor *a, double step)
{
    const mpsim_held single = mpsim_hold(NULL);
    const mpsim_optim *o = a->j->o;
    float u[MPSIM_OPTIM_BLOCK], p[MPSIM_OPTIM_BLOCK];
    for (size_t at = 0; at < a->t->n; at += MPSIM_OPTIM_BLOCK) {
        const mpsim_optim_block b = updates(a, at, u);
        memcpy(p, b.p, b.n * sizeof *p);
        a->ops.n = b.n;
        if (o->weight_decay != 0)
            mpsim_op_mul(&a->ops, &single, p, 1 - o->lr * o->weight_decay);
        mpsim_op_add(&a->ops, &single, p, u, step);
        mpsim_optim_store_param(a->j, &b, p);
    }
}

/* The relative step size. */
static double rho_of(const mpsim_optim *o, uint64_t step)
{
    const double rho = 1 / sqrt((double)step);
    return rho < o->lr ? rho : o->lr;
}

void mpsim_adafactor_plan_of(mpsim_adafactor_plan *p, const mpsim_optim *o, uint64_t step)
{
    *p = (mpsim_adafactor_plan){.weight = (float)mpsim_expand_wide(step, o->beta2_decay),
                                .kept = o->weight_decay != 0 ? (float)(1 - o->lr * o->weight_decay) : 1,
                                .rho = rho_of(o, step),
                                .eps2 = o->eps2,
                                .d = o->d,
                                .least = (float)(o->eps * o->eps),
                                .eps1 = (float)o->eps};
}

void mpsim_adafactor_step(const mpsim_optim_job *j, const mpsim_optim_tensor *t)
{
    const mpsim_optim *o = j->o;
    const double root_n = sqrt((double)t->n);
    adafactor a = {.j = j,
                   .t = t,
                   .rows = o->rows ? o->rows : 1,
                   .cols = o->rows ? o->cols : 1,
                   .each = o->rows * o->cols,
                   .matrix = SIZE_MAX,
                   .weight = mpsim_expand_wide(j->step, o->beta2_decay),
                   .ops = {.rules = j->row->rules ? j->row->rules : &mpsim_rules_cpu_loop_plain}};
    const double size = t->n ? (double)mpsim_norm(NULL, t->param, t->n) / root_n : 0;
    const double alpha = (size > o->eps2 ? size : o->eps2) * rho_of(o, j->step);
    follow(&a);
    const double clip = t->n ? (double)norm_of_updates(&a) / (root_n * o->d) : 0;
    apply(&a, -alpha / (clip > 1 ? clip : 1));
}
