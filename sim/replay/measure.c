/* measure.c -- what a step is compared with: references, lost updates, distances. */
#include "state.h"

#include <math.h>
#include <stdlib.h>

/* ---- references: the recorded gradients in fp32 and binary64, clipped alike; skipped only where
 * the record is damaged ---- */

/* The mean of the ranks' gradients, times factor, in binary64. */
static double mean_gradient(const parameter *p, size_t i, double factor)
{
    double sum = 0;
    for (size_t k = 0; k < p->ranks; k++)
        sum += p->grads[k][i];
    return sum / (double)p->ranks * factor;
}

static double exact_norm(const replay *r, double factor)
{
    mpsim_sum *sum = malloc(sizeof *sum);
    double norm = (double)NAN;
    if (!sum)
        return norm;
    mpsim_sum_init(sum);
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        for (size_t j = 0; p->ranks && j < p->n; j++) {
            const double g = mean_gradient(p, j, factor);
            if (isfinite(g))
                mpsim_sum_add_square(sum, g);
        }
    }
    norm = sqrt(mpsim_sum_value(sum));
    free(sum);
    return norm;
}

/* A step whose recorded gradients are damaged was skipped when it was recorded. */
int replay_record_finite(const replay *r)
{
    for (size_t i = 0; i < r->n_parameters; i++) {
        const parameter *p = &r->parameters[i];
        for (size_t k = 0; k < p->ranks && p->group >= 0; k++)
            for (size_t j = 0; j < p->n; j++)
                if (!isfinite(p->grads[k][j]))
                    return 0;
    }
    return 1;
}

int replay_references(const mpsim_optim *o, parameter *p, double factor)
{
    mpsim_optim plain = *o;
    float *g32 = malloc((p->n ? p->n : 1) * sizeof *g32);
    double *g64 = malloc((p->n ? p->n : 1) * sizeof *g64);
    int code = g32 && g64 ? 0 : replay_no_memory();
    plain.variant = mpsim_optim_variant_find("ieee");
    plain.store = MPSIM_STORE_NEAREST;
    plain.grad_scale = 1;
    plain.param = plain.state = *mpsim_format_find("binary32");
    for (size_t i = 0; i < p->n && !code; i++) {
        g64[i] = mean_gradient(p, i, factor);
        g32[i] = (float)g64[i];
    }
    if (!code) {
        const mpsim_optim_tensor t = {.param = p->p32, .grad = g32, .m = p->m32, .v = p->v32,
                                      .vmax = p->x32, .n = p->n};
        p->t_reference++;
        if (mpsim_optim_step(&plain, p->t_reference, &t, NULL) ||
            mpsim_optim_reference(&plain, p->t_reference, p->p64, g64, p->m64, p->v64, p->x64,
                                  p->n))
            code = fail(EXIT_DATA, "replay: the reference of %s cannot be computed", p->name);
    }
    free(g32);
    free(g64);
    return code;
}

/* ---- lost updates ---- */

/* How many elements would move in binary64, from the very numbers that the run has, and did not;
 * with Kahan's method an update that the compensation keeps is not lost. */
int replay_count_lost(const mpsim_optim *o, const parameter *p, const float *before,
                      const float *model_before, const float *m, const float *v, const float *vmax,
                      const float *kahan, replay_weight *w)
{
    double *x[5];
    int bad = 0;
    for (int i = 0; i < 5; i++)
        bad |= (x[i] = malloc((p->n ? p->n : 1) * sizeof *x[i])) == NULL;
    for (size_t i = 0; i < p->n && !bad; i++) {
        x[0][i] = (double)before[i];
        x[1][i] = (double)p->g[i]; /* the reference divides by grad_scale */
        x[2][i] = (double)m[i];
        x[3][i] = (double)v[i];
        x[4][i] = (double)vmax[i];
    }
    if (!bad) {
        mpsim_optim_reference(o, p->t, x[0], x[1], x[2], x[3], x[4], p->n);
        for (size_t i = 0; i < p->n; i++) {
            if (!(x[0][i] != (double)before[i]))
                continue;
            w->updates++;
            w->lost += p->p[i] == before[i] && p->kahan[i] == kahan[i];
            w->lost_model += p->model[i] == model_before[i];
        }
    }
    for (int i = 0; i < 5; i++)
        free(x[i]);
    return bad ? replay_no_memory() : 0;
}

double replay_reference_factor(const replay *r)
{
    const double unscale = r->record.grads_scaled ? 1 / r->record.loss_scale : 1;
    if (r->out.clip == MPSIM_CLIP_NONE)
        return unscale;
    const double norm = exact_norm(r, unscale);
    return norm > r->out.max_norm ? unscale * r->out.max_norm / norm : unscale;
}

/* ---- distances: sums exact ---- */

static void distance_add(replay_distance *d, double a, double b)
{
    if (!isfinite(b))
        return;
    if (isfinite(a))
        mpsim_sum_add_square(&d->difference, a - b);
    else
        d->broken = 1;
    mpsim_sum_add_square(&d->size, b);
}

double replay_distance_value(const replay_distance *d)
{
    const double a = mpsim_sum_value(&d->difference), b = mpsim_sum_value(&d->size);
    return d->broken ? (double)INFINITY : a == 0 ? 0 : sqrt(a / b);
}

static void distance_merge(replay_distance *to, const replay_distance *d)
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

void replay_measure(const parameter *p, replay_weight *w, replay_distance all[4])
{
    replay_distance d[4];
    for (int i = 0; i < 4; i++)
        replay_distance_init(&d[i]);
    for (size_t i = 0; i < p->n; i++) {
        distance_add(&d[0], (double)p->model[i], (double)p->p32[i]);
        distance_add(&d[1], (double)p->model[i], p->p64[i]);
        distance_add(&d[2], (double)p->p32[i], p->p64[i]);
        distance_add(&d[3], (double)p->p[i], (double)p->p32[i]);
    }
    w->distance_fp32 = replay_distance_value(&d[0]);
    w->distance_f64 = replay_distance_value(&d[1]);
    w->kept_fp32 = replay_distance_value(&d[3]);
    for (int i = 0; i < 4; i++)
        distance_merge(&all[i], &d[i]);
}
