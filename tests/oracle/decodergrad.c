/* decodergrad.c -- gradients of micro-batches and ranks, and what the optimizer makes of them. */
#include "decoderoptim.h"
#include "decoderparts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static parameter *parameter_at(oracle_decoder *d, size_t i)
{
    parameter *p = &d->base.layers[i / 2].p[i % 2];
    return p->exists ? p : NULL;
}

static size_t count(const matrix *m)
{
    return m->rows * m->cols;
}

/* ---- micro-batches and ranks ---- */

void gradients_add(oracle_decoder *d, unsigned rank, unsigned micro)
{
    const oracle_format *f = oracle_format_find(d->is->accumulate_format);
    if (d->is->accumulate == 1 && d->is->ranks == 1)
        return;
    for (size_t i = 0; i < 2 * d->base.n; i++) {
        const parameter *p = parameter_at(d, i);
        decoder_layer *m = &d->more[i / 2];
        if (!p)
            continue;
        cast(&m->micro[i % 2], &p->grad, p->grad.f);
        if (!m->sums[i % 2])
            m->sums[i % 2] = calloc(d->is->ranks, sizeof **m->sums);
        if (!m->sums[i % 2])
            abort();
        matrix *sum = &m->sums[i % 2][rank];
        if (micro == 0)
            cast(sum, &p->grad, d->is->accumulate > 1 ? f : p->grad.f);
        for (size_t k = 0; micro > 0 && k < count(sum); k++)
            sum->v[k] = oracle_to(f, (double)(sum->v[k] + p->grad.v[k]));
    }
}

/* Element k of n of all ranks, rounded to the wire: the sum of `ranks` numbers in that order. */
static float reduced(const oracle_decoder *d, const float *x, size_t k, size_t n)
{
    const oracle_format *f = oracle_format_find(d->is->sum);
    const size_t ranks = d->is->ranks, chunk = (n + ranks - 1) / ranks;
    const size_t first = d->is->reduce == MPSIM_REDUCE_RING ? k / chunk : 0;
    float s[64] = {0}, sum;
    if (ranks > 64)
        abort();
    for (size_t r = 0; r < ranks; r++)
        s[r] = x[(first + r) % ranks];
    sum = s[0];
    if (d->is->reduce == MPSIM_REDUCE_TREE) {
        for (size_t apart = 1; apart < ranks; apart *= 2)
            for (size_t r = 0; r + apart < ranks; r += 2 * apart)
                s[r] = oracle_to(f, (double)(s[r] + s[r + apart]));
        sum = s[0];
    } else {
        for (size_t r = 1; r < ranks; r++)
            sum = oracle_to(f, (double)(sum + s[r]));
    }
    return sum / (float)ranks;
}

static void reduce(const oracle_decoder *d, matrix *y, const matrix *sums)
{
    const oracle_format *wire = oracle_format_find(d->is->wire);
    const size_t n = count(&sums[0]), ranks = d->is->ranks;
    float x[64];
    shape(y, sums[0].rows, sums[0].cols, oracle_format_find(NULL));
    for (size_t k = 0; k < n; k++) {
        for (size_t r = 0; r < ranks; r++)
            x[r] = oracle_to(wire, (double)sums[r].v[k]);
        y->v[k] = reduced(d, x, k, n);
    }
}

/* What comes out takes the place of what backward left. */
void gradients_end(oracle_decoder *d)
{
    for (size_t i = 0; i < 2 * d->base.n; i++) {
        parameter *p = parameter_at(d, i);
        const matrix *sums = d->more[i / 2].sums[i % 2];
        if (!p || !sums)
            continue;
        if (d->is->ranks > 1)
            reduce(d, &p->grad, sums);
        else
            cast(&p->grad, &sums[0], sums[0].f);
    }
}

/* ---- unscaling and clipping ---- */

static float ready_to(const parameter *p, float x)
{
    return oracle_to(p->kept.f, (double)x);
}

/* The first gradient that is not finite as it comes. */
static const char *overflowed(oracle_decoder *d)
{
    for (size_t i = 0; i < 2 * d->base.n; i++) {
        const parameter *p = parameter_at(d, i);
        for (size_t k = 0; p && k < count(&p->grad); k++)
            if (!isfinite(p->grad.v[k]))
                return p->name;
    }
    return NULL;
}

/* One number by a scaler's rule; factor: f32(1 / scale). */
static float unscaled(mpsim_unscale_rule rule, const parameter *p, double scale, float factor, float x)
{
    if (rule == MPSIM_UNSCALE_DIVIDE)
        return x / (float)scale;
    if (rule == MPSIM_UNSCALE_ROUNDED)
        factor = ready_to(p, factor);
    return factor == 1 ? x : x * factor;
}

static void unscale(oracle_decoder *d, double scale)
{
    const mpsim_unscale_rule rule = (mpsim_unscale_rule)d->base.plan->scaler.unscale;
    for (size_t i = 0; i < 2 * d->base.n; i++) {
        parameter *p = parameter_at(d, i);
        if (!p)
            continue;
        shape(&p->ready, p->grad.rows, p->grad.cols, p->kept.f);
        for (size_t k = 0; k < count(&p->grad); k++)
            p->ready.v[k] = ready_to(p, unscaled(rule, p, scale, (float)(1 / scale), p->grad.v[k]));
    }
}

/* The format of the norm of all: that of all gradients, or binary32 where they differ. */
static const oracle_format *promoted(oracle_decoder *d)
{
    const oracle_format *f = NULL;
    for (size_t i = 0; i < 2 * d->base.n; i++) {
        const parameter *p = parameter_at(d, i);
        if (p && f && p->kept.f != f)
            return oracle_format_find(NULL);
        f = p ? p->kept.f : f;
    }
    return f;
}

static void clip(oracle_decoder *d, double scale, oracle_decoded *out)
{
    float norms[2 * TRAIN_LAYERS];
    size_t n = 0;
    const train_plan *plan = d->base.plan;
    const int narrow = plan->clip == MPSIM_CLIP_TORCH || plan->clip == MPSIM_CLIP_TORCH_CPU;
    const mpsim_format *f = narrow ? mpsim_format_find(promoted(d)->name) : NULL;
    parameter *p;
    for (size_t i = 0; i < 2 * d->base.n; i++)
        if ((p = parameter_at(d, i)))
            norms[n++] = mpsim_norm(narrow ? mpsim_format_find(p->kept.f->name) : NULL, p->ready.v, count(&p->ready));
    const double total = mpsim_clip_total(plan->clip, f, norms, n);
    const mpsim_clip c = mpsim_clip_factor(plan->clip, f, total, plan->max_norm, scale);
    out->step.norm = mpsim_clip_unscales(plan->clip) ? total / scale : total;
    out->clipped = c.clipped;
    for (size_t i = 0; c.apply && i < 2 * d->base.n; i++) {
        p = parameter_at(d, i);
        for (size_t k = 0; p && k < count(&p->ready); k++)
            p->ready.v[k] = ready_to(p, p->ready.v[k] * (float)c.factor);
    }
}

/* ---- the update ---- */

/* What is stored by a rule that binary32 does not need. */
static void step(oracle_decoder *d, size_t i, double in_optimizer)
{
    const layer *l = &d->base.layers[i / 2];
    parameter *p = &d->base.layers[i / 2].p[i % 2];
    matrix *kahan = &d->more[i / 2].kahan[i % 2];
    mpsim_optim o = d->base.plan->optimizer;
    const int vector = l->is->type == TRAIN_NORM || i % 2;
    o.lr = d->lr;
    o.weight_decay = vector && !d->is->decay_all ? 0 : o.weight_decay;
    o.store = p->kept.f->precision == 24 ? MPSIM_STORE_NEAREST : o.store;
    o.param = l->in->kept;
    o.state = l->in->state;
    o.grad_scale = in_optimizer;
    const int adam = o.algorithm == MPSIM_OPTIM_ADAM || o.algorithm == MPSIM_OPTIM_ADAMW;
    const int has_m = o.algorithm != MPSIM_OPTIM_SGD || o.momentum != 0;
    const oracle_step_of t = {
        .n = count(&p->ready),
        .p = p->kept.v,
        .g = p->ready.v,
        .m = has_m ? p->m.v : NULL,
        .v = adam ? p->v.v : NULL,
        .k = o.store == MPSIM_STORE_KAHAN ? kahan->v : NULL,
        .rng = {.seed = d->base.run->settings.seed, .stream = oracle_stream_of_step(&d->base, p->name)}};
    oracle_optim(&o, d->base.age, &t);
    refresh(&d->base, l, p);
}

void decoder_update(oracle_decoder *d, oracle_decoded *out)
{
    oracle_train *o = &d->base;
    const train_plan *plan = o->plan;
    out->cause = overflowed(d);
    const int found = out->cause != NULL, early = plan->scaler.order == MPSIM_UPDATE_BEFORE_UNSCALE;
    if (early)
        rescale(o, found);
    out->step.skipped = found && plan->scaler.skip;
    const double scale = out->step.skipped ? out->step.scale : (double)o->scale;
    const int clips = plan->clip != MPSIM_CLIP_NONE, both = clips && mpsim_clip_unscales(plan->clip);
    const int fused = !clips && mpsim_optim_variant_unscales(plan->optimizer.variant);
    out->step.norm = (double)NAN;
    unscale(d, both || fused ? 1 : scale);
    if (clips && !out->step.skipped)
        clip(d, scale, out);
    o->age += !out->step.skipped;
    for (size_t i = 0; i < 2 * o->n && !out->step.skipped; i++)
        if (parameter_at(d, i))
            step(d, i, fused ? scale : 1);
    decoder_share(d);
    if (!early)
        rescale(o, found);
}
