/* moments.c -- see moments.h. */
#include "moments.h"

#include <math.h>

/* ---- sums ---- */

typedef struct sums {
    mpsim_sum signal, noise;
    replay_error *e;
} sums;

static void begin(sums *s, replay_error *e)
{
    mpsim_sum_init(&s->signal);
    mpsim_sum_init(&s->noise);
    s->e = e;
}

static void take(sums *s, double x, double y)
{
    s->e->count++;
    s->e->nonzero += x != 0;
    if (!isfinite(x) || !isfinite(y)) {
        s->e->not_finite++;
        return;
    }
    s->e->lost += x != 0 && y == 0;
    mpsim_sum_add_square(&s->signal, x);
    mpsim_sum_add_square(&s->noise, x - y);
}

static void judge(replay_error *e)
{
    e->is = e->count > 0;
    e->db = e->count == e->not_finite ? (double)NAN
            : e->noise > 0            ? 10 * log10(e->signal / e->noise)
                                      : (double)INFINITY;
}

static void end(sums *s)
{
    s->e->signal = mpsim_sum_value(&s->signal);
    s->e->noise = mpsim_sum_value(&s->noise);
    judge(s->e);
}

static void add_error(replay_error *to, const replay_error *e)
{
    to->signal += e->signal;
    to->noise += e->noise;
    to->count += e->count;
    to->nonzero += e->nonzero;
    to->not_finite += e->not_finite;
    to->lost += e->lost;
    judge(to);
}

static void judge_steps(replay_moments *m)
{
    if (m->step.count == m->step.not_finite)
        m->largest = m->largest_stored = (double)NAN;
}

void replay_moments_add(replay_moments *to, const replay_moments *from)
{
    to->arrays += from->arrays;
    add_error(&to->m, &from->m);
    add_error(&to->v, &from->v);
    add_error(&to->kept, &from->kept);
    add_error(&to->step, &from->step);
    add_error(&to->bounded, &from->bounded);
    add_error(&to->muon, &from->muon);
    to->largest = fmax(to->largest, from->largest);
    to->largest_stored = fmax(to->largest_stored, from->largest_stored);
    to->unbounded += from->unbounded;
    judge_steps(to);
}

const replay_error *replay_moments_error(const replay_moments *m)
{
    return m->muon.count ? &m->muon : m->step.count ? &m->step : &m->m;
}

/* ---- storing ---- */

replay_arrays replay_moments_arrays(const mpsim_states *s, uint64_t count, float *m, float *v, float *kept)
{
    return (replay_arrays){.m = s && mpsim_states_apply(s, s->m, count) ? m : NULL,
                           .v = s && mpsim_states_apply(s, s->v, count) ? v : NULL,
                           .kept = s && mpsim_states_apply(s, s->kept, count) ? kept : NULL};
}

static void keep(const mpsim_state *array, float *x, size_t n)
{
    if (x)
        mpsim_state_quantise(array, x, n, NULL, NULL, x);
}

void replay_moments_store(const mpsim_states *s, const replay_arrays *a, size_t n)
{
    if (!s)
        return;
    keep(s->m, a->m, n);
    keep(s->v, a->v, n);
    keep(s->kept, a->kept, n);
}

/* ---- what it did ---- */

static void measure_array(const float *before, const float *after, size_t n, replay_error *e)
{
    sums s;
    begin(&s, e);
    for (size_t i = 0; i < n; i++)
        take(&s, (double)before[i], (double)after[i]);
    end(&s);
}

void replay_error_measure(const double *a, const float *b, size_t n, replay_error *e)
{
    sums s;
    begin(&s, e);
    for (size_t i = 0; i < n; i++)
        take(&s, a[i], (double)b[i]);
    end(&s);
}

/* What Adam divides: an update in units of the learning rate, in binary64. */
typedef struct updates {
    double bc1, bc2, eps;
} updates;

static double update_of(const updates *u, float m, float v)
{
    return (double)m / u->bc1 / (sqrt((double)v / u->bc2) + u->eps);
}

static void measure_steps(const updates *u, const replay_arrays *a, const replay_arrays *b, size_t n,
                          replay_moments *out)
{
    sums s, rest;
    begin(&s, &out->step);
    begin(&rest, &out->bounded);
    for (size_t i = 0; i < n; i++) {
        const double x = update_of(u, a->m[i], a->v[i]), y = update_of(u, b->m[i], b->v[i]);
        take(&s, x, y);
        if (isfinite(x))
            out->largest = fmax(out->largest, fabs(x));
        if (isfinite(y))
            out->largest_stored = fmax(out->largest_stored, fabs(y));
        const int unbounded = b->v[i] == 0 && a->v[i] != 0 && b->m[i] != 0;
        out->unbounded += (uint64_t)unbounded;
        if (!unbounded)
            take(&rest, x, y);
    }
    end(&s);
    end(&rest);
    judge_steps(out);
}

void replay_moments_measure(const mpsim_optim *o, uint64_t t, const replay_arrays *before, const replay_arrays *after,
                            size_t n, replay_moments *out)
{
    const updates u = {mpsim_optim_correction(o, o->beta1, t), mpsim_optim_correction(o, o->beta2, t), o->eps};
    out->arrays = (size_t)(before->m != NULL) + (before->v != NULL) + (before->kept != NULL);
    if (before->m)
        measure_array(before->m, after->m, n, &out->m);
    if (before->v)
        measure_array(before->v, after->v, n, &out->v);
    if (before->kept)
        measure_array(before->kept, after->kept, n, &out->kept);
    if (before->m && before->v)
        measure_steps(&u, before, after, n, out);
}
