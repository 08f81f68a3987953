/* trainupdate.c -- unscaling, clipping, optimizers, the scaler; tensors by name. */
#include "trainparts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void refresh(const oracle_train *o, const layer *l, parameter *p)
{
    const oracle_format *f = oracle_format_of(&l->in->storage);
    cast(&p->stored, &p->kept, f);
    for (size_t i = 0; o->plan->master == TRAIN_SPLIT_MASTER && f->precision == 8 && i < p->kept.rows * p->kept.cols;
         i++)
        p->stored.v[i] = nearest_away(f, p->kept.v[i]);
    cast(&p->used, &p->stored, oracle_format_of(&l->in->format[TRAIN_WEIGHT]));
}

/* ---- the update ---- */

static parameter *parameter_at(oracle_train *o, size_t i)
{
    parameter *p = &o->layers[i / 2].p[i % 2];
    return p->exists ? p : NULL;
}

static float kept_to(const matrix *m, float x)
{
    return oracle_to(m->f, (double)x);
}

/* Of step N: FNV-1a of the 8 bytes of N + 1, then of the name. */
uint64_t oracle_stream_of_step(const oracle_train *o, const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (int i = 0; i < 8; i++)
        h = (h ^ (((o->step + 1) >> (8 * i)) & 255)) * UINT64_C(1099511628211);
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return h;
}

/* A new parameter; bf16 stochastically: the 16 bits that do not fit, against a random word. */
static float stored(const oracle_train *o, const parameter *p, size_t i, float x)
{
    if (o->plan->optimizer.store != MPSIM_STORE_STOCHASTIC || p->kept.f->precision != 8 || !isfinite(x))
        return kept_to(&p->kept, x);
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    const uint32_t low = u << 16, word = mpsim_rng_word(o->run->settings.seed, oracle_stream_of_step(o, p->name), i);
    u = (u >> 16 << 16) + (low > UINT32_MAX - word ? 0x10000 : 0);
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The orders of mpsim/optim.h's ieee: binary32 after every operation. */
static void update_sgd(const oracle_train *o, parameter *p, size_t i, float g)
{
    const mpsim_optim *s = &o->plan->optimizer;
    const uint64_t t = o->age;
    const float x = p->kept.v[i], momentum = (float)s->momentum;
    if (s->weight_decay != 0)
        g = g + (float)s->weight_decay * x;
    if (s->momentum != 0) {
        g = t == 1 ? g : momentum * p->m.v[i] + (float)(1 - s->dampening) * g;
        p->m.v[i] = kept_to(&p->m, g);
    }
    p->kept.v[i] = stored(o, p, i, x - (float)s->lr * g);
}

static void update_adamw(const oracle_train *o, parameter *p, size_t i, float g)
{
    const mpsim_optim *s = &o->plan->optimizer;
    const uint64_t t = o->age;
    float x = p->kept.v[i];
    if (s->weight_decay != 0)
        x = x - (float)(s->lr * s->weight_decay) * x;
    const float m = (float)s->beta1 * p->m.v[i] + (float)(1 - s->beta1) * g;
    const float v = (float)s->beta2 * p->v.v[i] + (float)(1 - s->beta2) * (g * g);
    p->m.v[i] = kept_to(&p->m, m);
    p->v.v[i] = kept_to(&p->v, v);
    const float left = m / (float)(1 - mpsim_power(s->beta1, t));
    const float right = sqrtf(v / (float)(1 - mpsim_power(s->beta2, t))) + (float)s->eps;
    p->kept.v[i] = stored(o, p, i, x - (float)s->lr * left / right);
}

/* 1 if a gradient is not finite as backward leaves it. */
static int overflowed(oracle_train *o)
{
    for (size_t i = 0; i < 2 * o->n; i++) {
        const parameter *p = parameter_at(o, i);
        for (size_t k = 0; p && k < p->grad.rows * p->grad.cols; k++)
            if (!isfinite(p->grad.v[k]))
                return 1;
    }
    return 0;
}

static void unscale(oracle_train *o, double scale)
{
    const float factor = (float)(1 / scale);
    for (size_t i = 0; i < 2 * o->n; i++) {
        parameter *p = parameter_at(o, i);
        if (!p)
            continue;
        shape(&p->ready, p->grad.rows, p->grad.cols, p->kept.f);
        for (size_t k = 0; k < p->grad.rows * p->grad.cols; k++)
            p->ready.v[k] = kept_to(&p->ready, factor == 1 ? p->grad.v[k] : p->grad.v[k] * factor);
    }
}

static void clip(oracle_train *o, oracle_step *out)
{
    float norms[2 * TRAIN_LAYERS];
    size_t n = 0;
    const mpsim_clip_rule rule = o->plan->clip;
    const parameter *p;
    for (size_t i = 0; i < 2 * o->n; i++)
        if ((p = parameter_at(o, i)))
            norms[n++] = mpsim_norm(NULL, p->ready.v, p->ready.rows * p->ready.cols);
    out->norm = mpsim_clip_total(rule, NULL, norms, n);
    const mpsim_clip c = mpsim_clip_factor(rule, NULL, out->norm, o->plan->max_norm, (double)o->scale);
    for (size_t i = 0; c.apply && i < 2 * o->n; i++) {
        p = parameter_at(o, i);
        for (size_t k = 0; p && k < p->ready.rows * p->ready.cols; k++)
            p->ready.v[k] = kept_to(&p->ready, p->ready.v[k] * (float)c.factor);
    }
}

/* torch's GradScaler: a binary32 scale, factors in binary64; growth to infinity is refused. */
static void rescale_torch(oracle_train *o, int found)
{
    const mpsim_scaler_config *c = &o->plan->scaler;
    if (found) {
        o->scale = (float)((double)o->scale * c->backoff);
        o->clean = 0;
    } else if (++o->clean == c->window) {
        const float next = (float)((double)o->scale * c->growth);
        o->scale = isfinite(next) ? next : o->scale;
        o->clean = 0;
    }
}

void rescale(oracle_train *o, int found)
{
    if (!o->plan->scaler.dynamic)
        return;
    if (strcmp(o->plan->scaler.name, "torch") == 0) {
        rescale_torch(o, found);
        return;
    }
    (void)mpsim_scaler_update(&o->scaler, found);
    o->scale = (float)o->scaler.scale;
}

static void step(const oracle_train *o, parameter *p)
{
    const int sgd = o->plan->optimizer.algorithm == MPSIM_OPTIM_SGD;
    for (size_t k = 0; k < p->ready.rows * p->ready.cols; k++)
        (sgd ? update_sgd : update_adamw)(o, p, k, p->ready.v[k]);
}

void update(oracle_train *o, oracle_step *out)
{
    const int found = overflowed(o), early = o->plan->scaler.order == MPSIM_UPDATE_BEFORE_UNSCALE;
    if (early)
        rescale(o, found);
    out->norm = (double)NAN;
    out->skipped = found && o->plan->scaler.skip;
    /* Of a step that is skipped nobody reads them. */
    unscale(o, out->skipped ? out->scale : (double)o->scale);
    if (o->plan->clip != MPSIM_CLIP_NONE && !out->skipped)
        clip(o, out);
    o->age += !out->skipped;
    for (size_t i = 0; i < 2 * o->n && !out->skipped; i++) {
        parameter *p = parameter_at(o, i);
        if (!p)
            continue;
        step(o, p);
        refresh(o, &o->layers[i / 2], p);
    }
    if (!early)
        rescale(o, found);
}

/* ---- tensors by name ---- */

typedef struct entry {
    const char *kind;
    const char *owner; /* of a layer, or of a parameter */
    const matrix *m;
} entry;

static size_t entries_of(oracle_train *o, layer *l, entry *e)
{
    const char *name = l->is->name;
    const entry own[] = {
        {"act", name, &l->act},
        {"out", name, &l->out},
        {"agrad", name, &l->agrad},
        {"dgrad", name, &l->dgrad},
        {"act.q", name, &l->q[ACT_Q]},
        {"weight.q", name, &l->q[WEIGHT_Q]},
        {"agrad.q", name, &l->q[AGRAD_Q]},
        {"mean", name, &l->mean},
        {"act.qt", name, &l->qt[ACT_Q]},
        {"weight.qt", name, &l->qt[WEIGHT_Q]},
        {"agrad.qt", name, &l->qt[AGRAD_Q]},
        {"act.q.blocks", name, &l->q_blocks[ACT_Q]},
        {"act.qt.blocks", name, &l->qt_blocks[ACT_Q]},
        {"weight.q.blocks", name, &l->q_blocks[WEIGHT_Q]},
        {"weight.qt.blocks", name, &l->qt_blocks[WEIGHT_Q]},
        {"agrad.q.blocks", name, &l->q_blocks[AGRAD_Q]},
        {"agrad.qt.blocks", name, &l->qt_blocks[AGRAD_Q]},
        {"act.rht", name, &l->rht[ACT_Q]},
        {"agrad.rht", name, &l->rht[AGRAD_Q]},
        {"inverse", name, &l->inverse},
        {"columns", name, &l->columns},
        {"agrad.columns", name, &l->around},
        {"weight.turned", name, &l->turn},
        {"weight.in", name, &l->p[0].entered},
        {"bias.in", name, &l->p[1].entered},
    };
    size_t n = sizeof own / sizeof *own;
    memcpy(e, own, sizeof own);
    for (int k = 0; k < 2; k++) {
        const parameter *p = &l->p[k];
        const int adam = o->plan->optimizer.algorithm == MPSIM_OPTIM_ADAM ||
                         o->plan->optimizer.algorithm == MPSIM_OPTIM_ADAMW;
        const int has_m = o->plan->optimizer.algorithm != MPSIM_OPTIM_SGD || o->plan->optimizer.momentum != 0;
        const int two = o->plan->master != TRAIN_NO_MASTER && p->kept.f != p->stored.f;
        const matrix *const master = two ? &p->kept : NULL;
        e[n++] = (entry){"weight", p->name, &p->stored};
        e[n++] = (entry){"wgrad", p->name, &p->grad};
        e[n++] = (entry){"grad", p->name, &p->ready};
        e[n++] = (entry){"master", p->name, master};
        e[n++] = (entry){"opt.m", p->name, has_m ? &p->m : NULL};
        e[n++] = (entry){"opt.v", p->name, adam ? &p->v : NULL};
    }
    return n;
}

enum { ENTRIES = 40 };

int oracle_train_name(oracle_train *o, size_t at, char name[2 * TRAIN_NAME])
{
    for (size_t i = 0; i < o->n; i++) {
        entry e[ENTRIES];
        const size_t n = entries_of(o, &o->layers[i], e);
        for (size_t k = 0; k < n; k++) {
            if (!e[k].m || !e[k].m->v || at-- > 0)
                continue;
            (void)snprintf(name, 2 * TRAIN_NAME, "%s:%s", e[k].kind, e[k].owner);
            return 1;
        }
        for (int k = 0; k < 2; k++) {
            if (!o->layers[i].running[k].v || at-- > 0)
                continue;
            (void)snprintf(name, 2 * TRAIN_NAME, "running:%s.%s", o->layers[i].is->name, k ? "var" : "mean");
            return 1;
        }
    }
    return 0;
}

int oracle_train_find(oracle_train *o, const char *name, oracle_tensor *t)
{
    for (size_t i = 0; i < o->n; i++) {
        entry e[ENTRIES];
        char own[3 * TRAIN_NAME];
        size_t n = entries_of(o, &o->layers[i], e);
        e[n++] = (entry){"running", NULL, &o->layers[i].running[0]};
        e[n++] = (entry){"running", NULL, &o->layers[i].running[1]};
        for (size_t k = 0; k < n; k++) {
            const matrix *m = e[k].m;
            if (e[k].owner)
                (void)snprintf(own, sizeof own, "%s:%s", e[k].kind, e[k].owner);
            else
                (void)snprintf(own, sizeof own, "running:%s.%s", o->layers[i].is->name, k + 1 == n ? "var" : "mean");
            if (!m || !m->v || strcmp(own, name) != 0)
                continue;
            *t = (oracle_tensor){m->rows, m->cols, m->v, m->f, m->inverse};
            return 1;
        }
    }
    return 0;
}

static void clear(matrix *const *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(m[i]->v);
}

void oracle_train_close(oracle_train *o)
{
    for (size_t i = 0; o && i < o->n; i++) {
        layer *l = &o->layers[i];
        matrix *const own[] = {
            &l->act,         &l->out,         &l->agrad,        &l->dgrad,        &l->q[0],
            &l->q[1],        &l->q[2],        &l->qt[0],        &l->qt[1],        &l->qt[2],
            &l->mean,        &l->inverse,     &l->columns,      &l->running[0],   &l->running[1],
            &l->around,      &l->turn,        &l->rht[0],       &l->rht[2],       &l->q_blocks[0],
            &l->q_blocks[1], &l->q_blocks[2], &l->qt_blocks[0], &l->qt_blocks[1], &l->qt_blocks[2],
        };
        clear(own, sizeof own / sizeof *own);
        for (int k = 0; k < 2; k++) {
            parameter *p = &l->p[k];
            matrix *const all[] = {&p->stored, &p->used, &p->kept, &p->grad, &p->ready, &p->entered, &p->m, &p->v};
            clear(all, sizeof all / sizeof *all);
        }
        for (int q = 0; q < QUANTISED; q++)
            free(l->history[q]);
    }
    free(o);
}
