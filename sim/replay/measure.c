/* measure.c -- what a step is compared with: references, lost updates, distances. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../process/world.h"

#include <threads/parallel.h>

#include <math.h>
#include <stdlib.h>

/* ---- references: the recorded gradients in fp32 and binary64, clipped alike; skipped only where
 * the record is damaged ---- */

enum { BLOCK = 4096 }; /* elements that are at hand in binary64 */

/* The mean of the ranks' gradients, times factor, in binary64. */
double replay_mean_gradient(const parameter *p, size_t i, double factor)
{
    double sum = 0;
    for (size_t k = 0; k < p->ranks; k++)
        sum += replay_value_at(&p->grads[k], i);
    return sum / (double)p->ranks * factor;
}

static void add_squares(replay *r, parameter *p, replay_weight *w)
{
    mpsim_sum *sum = &replay_self(r)->squares;
    (void)w;
    const int counts = r->only < 0 || replay_owner(r, p) == (size_t)r->only;
    for (size_t j = 0; p->ranks && counts && j < p->n; j++) {
        const double g = replay_mean_gradient(p, j, r->reference_factor);
        if (isfinite(g))
            mpsim_sum_add_square(sum, g);
    }
}

/* The sums of all processes. 0 or an exit code. */
static int add_others(mpsim_sum *sum)
{
    const size_t n = (size_t)world_size();
    mpsim_sum *all = need_memory(n, sizeof *all);
    const int code = world_all(sum, sizeof *sum, all);
    if (!code)
        mpsim_sum_init(sum);
    for (size_t i = 0; i < n && !code; i++)
        mpsim_sum_merge(sum, &all[i]);
    free(all);
    return code;
}

static int exact_norm(replay *r, double *norm)
{
    mpsim_sum sum;
    mpsim_sum_init(&sum);
    for (int t = 0; t < parallel_threads(); t++)
        mpsim_sum_init(&r->workers[t].squares);
    (void)replay_each(r, add_squares);
    for (int t = 0; t < parallel_threads(); t++)
        mpsim_sum_merge(&sum, &r->workers[t].squares);
    const int code = add_others(&sum);
    *norm = code ? 0 : sqrt(mpsim_sum_value(&sum));
    return code;
}

int replay_reference_factor(replay *r, double *factor)
{
    const double unscale = r->record.grads_scaled ? 1 / r->record.loss_scale : 1;
    double norm;
    *factor = unscale;
    if (r->out.clip == MPSIM_CLIP_NONE)
        return 0;
    r->reference_factor = unscale;
    const int code = exact_norm(r, &norm);
    if (!code && norm > r->out.max_norm)
        *factor = unscale * r->out.max_norm / norm;
    return code;
}

static float *from(float *x, size_t i)
{
    return x ? x + i : NULL;
}

static double *from_wide(double *x, size_t i)
{
    return x ? x + i : NULL;
}

mpsim_optim replay_shaped(const mpsim_optim *o, const parameter *p)
{
    mpsim_optim shaped = *o;
    shaped.rows = p->shape_rank > 1 ? p->kernel : 0;
    shaped.cols = p->shape_rank > 1 ? p->cols : 0;
    return shaped;
}

/* How many elements are stepped at once: all, where moments are of rows and columns. */
static size_t block_of(const mpsim_optim *o, const parameter *p)
{
    return mpsim_optim_traits_of(o->algorithm)->factors || p->n < BLOCK ? p->n : BLOCK;
}

void replay_references(const mpsim_optim *o, parameter *p, double factor)
{
    mpsim_optim plain = replay_shaped(o, p);
    const size_t block = block_of(o, p);
    double *g64 = need(array_memory(block, sizeof *g64));
    float *g32 = need(array_memory(block, sizeof *g32));
    plain.variant = mpsim_optim_variant_find("ieee");
    plain.store = MPSIM_STORE_NEAREST;
    plain.grad_scale = 1;
    plain.param = plain.state = *mpsim_format_find("binary32");
    p->t_reference++;
    for (size_t i = 0; i < p->n && !p->problem.code; i += block) {
        const size_t n = p->n - i < block ? p->n - i : block;
        for (size_t j = 0; j < n; j++) {
            g64[j] = replay_mean_gradient(p, i + j, factor);
            g32[j] = (float)g64[j];
        }
        const mpsim_optim_tensor t = {
            .param = p->p32 + i, .grad = g32, .m = p->m32 + i, .v = p->v32 + i, .vmax = from(p->x32, i), .n = n};
        if (mpsim_optim_step(&plain, p->t_reference, &t, NULL) ||
            mpsim_optim_reference(&plain, p->t_reference, p->p64 + i, g64, p->m64 + i, p->v64 + i, from_wide(p->x64, i),
                                  n))
            replay_fails(&p->problem, EXIT_DATA, "replay: the reference of %s cannot be computed", p->name);
    }
    free(g32);
    free(g64);
}

/* ---- lost updates ---- */

/* n numbers from i on in binary64; where there are none, zeros. */
static void widen(double *y, const float *x, size_t i, size_t n)
{
    for (size_t j = 0; j < n; j++)
        y[j] = x ? (double)x[i + j] : 0;
}

void replay_nearest(const mpsim_format *f, double *nearest, const double *y, size_t n)
{
    mpsim_rounding rounding;
    mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_round_array_f64(f, &rounding, NULL, nearest, y, n, NULL); /* both are valid */
}

void replay_move(replay_movement *m, double x, double y, double nearest, double z)
{
    const double wanted = y - x, moved = z - x;
    if (!isfinite(wanted) || !isfinite(moved))
        return;
    const double along = wanted < 0 ? -moved : moved, missing = (moved - wanted) * (moved - wanted);
    m->wanted += fabs(wanted);
    m->moved += along;
    m->noise += missing;
    m->size += fabs(x);
    if (nearest != x)
        return;
    m->small_wanted += fabs(wanted);
    m->small_moved += along;
    m->small_noise += missing;
}

/* By how much the compensation has changed that Kahan's method adds to the element later. */
static double held_back(const replay_before *before, const parameter *p, size_t k)
{
    return before->kahan ? (double)p->kahan[k] - (double)before->kahan[k] : 0;
}

/* How many elements would move in binary64, from the very numbers that the run has, and did not;
 * with Kahan's method an update that the compensation keeps is not lost. */
void replay_count_lost(const mpsim_optim *o, parameter *p, const replay_before *before, replay_weight *w)
{
    const size_t block = block_of(o, p);
    double *x = need(array_memory(block, 6 * sizeof *x)), *g = x + block, *m = g + block, *v = m + block,
           *vmax = v + block, *nearest = vmax + block;
    for (size_t i = 0; i < p->n; i += block) {
        const size_t n = p->n - i < block ? p->n - i : block;
        widen(x, before->p, i, n);
        widen(g, p->g, i, n); /* the reference divides by grad_scale */
        widen(m, before->m, i, n);
        widen(v, before->v, i, n);
        widen(vmax, before->vmax, i, n);
        mpsim_optim_reference(o, p->t, x, g, m, v, vmax, n);
        replay_nearest(&p->place.kept, nearest, x, n);
        for (size_t j = 0, k = i; j < n; j++, k++) {
            if (!(x[j] != (double)before->p[k]))
                continue;
            w->updates++;
            replay_move(&w->movement, (double)before->p[k], x[j], nearest[j],
                        (double)p->p[k] + held_back(before, p, k));
            w->lost += p->p[k] == before->p[k] && (!before->kahan || p->kahan[k] == before->kahan[k]);
            w->lost_model += p->model[k] == before->model[k];
        }
    }
    free(x);
}

/* ---- distances: sums exact ---- */

double replay_distance_value(const replay_distance *d)
{
    const double a = mpsim_sum_value(&d->difference), b = mpsim_sum_value(&d->size);
    return d->broken ? (double)INFINITY : a == 0 ? 0 : sqrt(a / b);
}

void replay_distance_merge(replay_distance *to, const replay_distance *d)
{
    mpsim_sum_merge(&to->difference, &d->difference);
    mpsim_sum_merge(&to->size, &d->size);
    to->broken |= d->broken;
}

void replay_distance_init(replay_distance *d)
{
    mpsim_sum_init(&d->difference);
    mpsim_sum_init(&d->size);
    d->broken = 0;
}

/* What stands beside a reference. The sum of the reference's squares is that of another distance where
 * `size` is 0. */
static void distance_add(replay_distance *d, int size, double a, double b)
{
    if (!isfinite(b))
        return;
    if (isfinite(a))
        mpsim_sum_add_square(&d->difference, a - b);
    else
        d->broken = 1;
    if (size)
        mpsim_sum_add_square(&d->size, b);
}

void replay_measure(parameter *p, replay_weight *w, replay_worker *self)
{
    replay_distance d[4];
    for (int i = 0; i < 4; i++)
        replay_distance_init(&d[i]);
    for (size_t i = 0; i < p->n; i++) {
        distance_add(&d[0], 1, (double)p->model[i], (double)p->p32[i]);
        distance_add(&d[1], 1, (double)p->model[i], p->p64[i]);
        distance_add(&d[2], 0, (double)p->p32[i], p->p64[i]);
        distance_add(&d[3], 0, (double)p->p[i], (double)p->p32[i]);
    }
    d[2].size = d[1].size;
    d[3].size = d[0].size;
    w->distance_fp32 = replay_distance_value(&d[0]);
    w->distance_f64 = replay_distance_value(&d[1]);
    w->kept_fp32 = replay_distance_value(&d[3]);
    for (int i = 0; i < 4; i++)
        replay_distance_merge(&self->distances[i], &d[i]);
}
