/* decodernames.c -- tensors of decoder.h by their names. */
#include "decoderparts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *kind, *owner; /* of a layer, or of a parameter */
    const matrix *m;
} entry;

enum { ENTRIES = 64 };

static size_t put(entry *to, const entry *from, size_t n, size_t at)
{
    memcpy(to + at, from, n * sizeof *from);
    return at + n;
}
#define PUT(e, n, list) put(e, list, sizeof list / sizeof *list, n)

static size_t entries_of_attention(const oracle_decoder *d, const layer *l, entry *e, size_t n)
{
    const decoder_layer *m = &d->more[decoder_index(d, l)];
    const char *name = l->is->name;
    const entry heads[] = {{"out.key", name, &m->out_key}, {"out.value", name, &m->out_value}};
    const entry scores[] = {{"key", name, &m->key},
                            {"key.q", name, &l->q[WEIGHT_Q]},
                            {"dgrad.key", name, &m->dkey},
                            {"dgrad.keys", name, &m->dkeys}};
    const entry context[] = {{"value", name, &m->key},        {"value.q", name, &l->q[WEIGHT_Q]},
                             {"dgrad.value", name, &m->dkey}, {"dgrad.values", name, &m->dkeys},
                             {"out.heads", name, &m->heads},  {"agrad.heads", name, &m->agrad_heads},
                             {"lse", name, &m->lse},          {"dots", name, &m->dots}};
    return l->is->type == TRAIN_HEADS     ? PUT(e, n, heads)
           : l->is->type == TRAIN_SCORES  ? PUT(e, n, scores)
           : l->is->type == TRAIN_CONTEXT ? PUT(e, n, context)
                                          : n;
}

static size_t entries_of_layer(const oracle_decoder *d, const layer *l, entry *e)
{
    const char *name = l->is->name;
    const int linear = l->is->type == TRAIN_LINEAR;
    const entry own[] = {
        {"act", name, &l->act},
        {"out", name, &l->out},
        {"agrad", name, &l->agrad},
        {"dgrad", name, &l->dgrad},
        {"act.q", name, &l->q[ACT_Q]},
        {"agrad.q", name, &l->q[AGRAD_Q]},
        {"weight.q", name, linear ? &l->q[WEIGHT_Q] : NULL},
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
        {"mean", name, &l->mean},
        {"inverse", name, &l->inverse},
        {"weight.in", name, &l->p[0].entered},
        {"bias.in", name, &l->p[1].entered},
    };
    return entries_of_attention(d, l, e, PUT(e, 0, own));
}

/* An array that one plan of a run needs is there in all. */
static int compensated(const oracle_decoder *d, size_t i)
{
    for (size_t k = 0; k < d->base.run->n_plans; k++) {
        const train_plan *p = &d->base.run->plans[k];
        if (p->optimizer.store == MPSIM_STORE_KAHAN && oracle_format_of(&p->layers[i].kept)->precision < 24)
            return 1;
    }
    return 0;
}

static size_t entries_of(const oracle_decoder *d, const layer *l, entry *e)
{
    size_t n = entries_of_layer(d, l, e);
    const train_plan *plan = d->base.plan;
    const decoder_layer *m = &d->more[decoder_index(d, l)];
    const int adam = plan->optimizer.algorithm == MPSIM_OPTIM_ADAM || plan->optimizer.algorithm == MPSIM_OPTIM_ADAMW;
    const int has_m = plan->optimizer.algorithm != MPSIM_OPTIM_SGD || plan->optimizer.momentum != 0;
    for (int k = 0; k < 2; k++) {
        const parameter *p = &l->p[k];
        const int two = plan->master != TRAIN_NO_MASTER && p->kept.f != p->stored.f;
        const int kahan = compensated(d, decoder_index(d, l));
        const entry own[] = {{"weight", p->name, &p->stored},
                             {"wgrad", p->name, &p->grad},
                             {"wgrad.micro", p->name, &m->micro[k]},
                             {"grad", p->name, &p->ready},
                             {"master", p->name, two ? &p->kept : NULL},
                             {"opt.m", p->name, has_m ? &p->m : NULL},
                             {"opt.v", p->name, adam ? &p->v : NULL},
                             {"kahan", p->name, kahan ? &m->kahan[k] : NULL}};
        if (p->exists)
            n = PUT(e, n, own);
    }
    if (n > ENTRIES)
        abort();
    return n;
}

/* The at-th of all, or, with a name, that one. */
static int entry_of(oracle_decoder *d, size_t at, const char *wanted, char name[2 * TRAIN_NAME], const matrix **m)
{
    for (size_t i = 0; i < d->base.n; i++) {
        entry e[ENTRIES];
        const size_t n = entries_of(d, &d->base.layers[i], e);
        for (size_t k = 0; k < n; k++) {
            if (!e[k].m || !e[k].m->v || (!wanted && at-- > 0))
                continue;
            (void)snprintf(name, 2 * TRAIN_NAME, "%s:%s", e[k].kind, e[k].owner);
            *m = e[k].m;
            if (!wanted || strcmp(name, wanted) == 0)
                return 1;
        }
    }
    return 0;
}

int oracle_decoder_name(oracle_decoder *d, size_t i, char name[2 * TRAIN_NAME])
{
    const matrix *m;
    return entry_of(d, i, NULL, name, &m);
}

int oracle_decoder_find(oracle_decoder *d, const char *name, oracle_tensor *t)
{
    char own[2 * TRAIN_NAME];
    const matrix *m;
    if (!entry_of(d, 0, name, own, &m))
        return 0;
    *t = (oracle_tensor){m->rows, m->cols, m->v, m->f, m->inverse};
    return 1;
}

static void clear(const matrix *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(m[i].v);
}

static void clear_layer(const oracle_decoder *d, layer *l)
{
    const decoder_layer *m = &d->more[decoder_index(d, l)];
    const matrix own[] = {l->act,    l->out, l->agrad,   l->dgrad,     l->mean,     l->inverse,     l->rht[0],
                          l->rht[2], m->key, m->out_key, m->out_value, m->heads,    m->agrad_heads, m->dkey,
                          m->dkeys,  m->lse, m->dots,    m->micro[0],  m->micro[1], m->kahan[0],    m->kahan[1]};
    clear(own, sizeof own / sizeof *own);
    clear(l->q, QUANTISED);
    clear(l->qt, QUANTISED);
    clear(l->q_blocks, QUANTISED);
    clear(l->qt_blocks, QUANTISED);
    for (int k = 0; k < 2; k++) {
        const parameter *p = &l->p[k];
        const matrix all[] = {p->stored, p->used, p->kept, p->grad, p->ready, p->entered, p->m, p->v};
        clear(all, sizeof all / sizeof *all);
        if (m->sums[k])
            clear(m->sums[k], d->is->ranks);
        free(m->sums[k]);
    }
    for (int q = 0; q < QUANTISED; q++)
        free(l->history[q]);
}

void oracle_decoder_close(oracle_decoder *d)
{
    for (size_t i = 0; d && i < d->base.n; i++)
        clear_layer(d, &d->base.layers[i]);
    if (d) {
        free(d->tokens);
        free(d->labels);
        free(d->cos);
        free(d->sin);
    }
    free(d);
}
