/* share.c -- a replay on several processes (cli/world.h); see state.h.
 *
 * Each process goes through all files, parameters and casts, but tensors that are another's have no elements here. So
 * everything that names, settings and counts of steps decide is decided everywhere alike, and what elements decide is
 * asked for where all need it: overflow, norms, sums. A parameter is one process's, with its gradients and moments
 * of all ranks that recorded them, and so is a tensor of a layer, over all steps: the FP8 state stays with it. */
#include "impl.h"

#include "../array/array.h"
#include "../array/need.h"
#include "../process/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who has what ---- */

/* What is one process's: a tensor of a layer by its name, a parameter by ":" and its own. */
static const char *key_of(const char *name)
{
    static const char *const layers[] = {"act", "out", "agrad", "dgrad"};
    const char *kind = trace_kind(name);
    for (size_t i = 0; kind && i < sizeof layers / sizeof *layers; i++)
        if (strcmp(kind, layers[i]) == 0)
            return name;
    return strchr(name, ':');
}

int replay_wants(const replay *r, const trace_tensor *t)
{
    return t->kind && t->format && input_selects(r->in, t);
}

int replay_is_mine(const replay *r, const char *name)
{
    const ptrdiff_t at = world_size() > 1 ? nameindex_find(&r->division.index, key_of(name)) : -1;
    return world_size() == 1 || (at >= 0 && r->division.items[at].rank == world_rank());
}

/* The name that a replay gives to a tensor, whatever its file calls it; cut where replay refuses it. */
static const char *name_of(char name[2 * REPLAY_NAME_MAX], const trace_tensor *t)
{
    snprintf(name, 2 * REPLAY_NAME_MAX, "%s:%s", t->kind, t->fqn);
    return name;
}

int replay_tensor_is_mine(const replay *r, const trace_tensor *t)
{
    char name[2 * REPLAY_NAME_MAX];
    return replay_is_mine(r, name_of(name, t));
}

/* Parameters first, which take memory for good; the largest first. */
static int by_size(const void *a, const void *b)
{
    const replay_piece *x = *(replay_piece *const *)a, *y = *(replay_piece *const *)b;
    const int of_layer_x = x->key[0] != ':', of_layer_y = y->key[0] != ':';
    if (of_layer_x != of_layer_y)
        return of_layer_x - of_layer_y;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->key, y->key);
}

/* Those from `first` on, each to the process that has least. */
static void assign(replay_division *d, size_t first)
{
    const size_t n = d->count - first, size = (size_t)world_size();
    replay_piece **order = need_memory(n, sizeof *order);
    if (!d->loads)
        d->loads = need_memory(size, sizeof *d->loads);
    for (size_t i = 0; i < n; i++)
        order[i] = &d->items[first + i];
    if (n)
        qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        size_t least = 0;
        for (size_t k = 1; k < size; k++)
            if (d->loads[k] < d->loads[least])
                least = k;
        d->loads[least] += order[i]->bytes + 1;
        order[i]->rank = (int)least;
    }
    free(order);
}

void replay_divide(replay *r, const trace *t)
{
    char name[2 * REPLAY_NAME_MAX];
    replay_division *d = &r->division;
    const size_t first = d->count;
    if (world_size() == 1)
        return;
    world_expect(trace_size(t));
    world_expect(trace_count(t));
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        if (!replay_wants(r, tensor))
            continue;
        const char *key = key_of(name_of(name, tensor));
        replay_piece *p = nameindex_item(&d->index, &d->items, &d->count, sizeof *p, key);
        p->bytes += tensor->count * mpsim_format_code_bytes(tensor->format);
    }
    assign(d, first);
}

void replay_division_clear(replay_division *d)
{
    nameindex_clear(&d->index);
    for (size_t i = 0; i < d->count; i++)
        free(d->items[i].key);
    free(d->items);
    free(d->loads);
}

/* ---- what all need to know ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int replay_share_facts(replay_facts *f)
{
    const size_t n = (size_t)world_size();
    replay_facts *all = need_memory(n, sizeof *all);
    const int code = world_all(f, sizeof *f, all);
    for (size_t i = 0; i < n && !code; i++) {
        const replay_facts *g = &all[i];
        if (i == 0) {
            *f = *g;
            continue;
        }
        f->infinite = least(f->infinite, g->infinite);
        f->not_finite = least(f->not_finite, g->not_finite);
        f->unheld_in = least(f->unheld_in, g->unheld_in);
        f->counting = g->counting > f->counting ? g->counting : f->counting;
        f->damaged |= g->damaged;
        f->not_finite_in |= g->not_finite_in;
        f->gradients += g->gradients;
        f->unheld += g->unheld;
    }
    free(all);
    return code;
}

/* ---- what the first process reports ---- */

/* What is sent of a cast or of a weight, with its place; the pointers in it are the receiver's own. */
typedef struct sent_cast {
    size_t at;
    replay_cast cast;
    float history[REPLAY_HISTORY_SHOWN]; /* the newest, as many as there are */
} sent_cast;

typedef struct sent_weight {
    size_t at;
    replay_weight weight;
} sent_weight;

typedef struct sent_head {
    size_t casts, weights;
    replay_distance distances[4];
} sent_head;

static size_t shown(const replay_cast *c)
{
    return c->n_history < REPLAY_HISTORY_SHOWN ? c->n_history : REPLAY_HISTORY_SHOWN;
}

static const cast_state *state_of(const replay *r, const replay_cast *c)
{
    return &r->states[nameindex_find(&r->state_names, c->name)];
}

static void pack(const replay *r, array_bytes *p)
{
    sent_head head = {0, 0, {{.broken = 0}}};
    memcpy(head.distances, r->distances, sizeof head.distances);
    for (size_t i = 0; i < r->n_casts; i++)
        head.casts += (size_t)state_of(r, &r->casts[i])->mine;
    for (size_t i = 0; i < r->n_parameters; i++)
        head.weights += (size_t)r->parameters[i].mine;
    array_put(p, &head, sizeof head);
    for (size_t i = 0; i < r->n_casts; i++) {
        const replay_cast *c = &r->casts[i];
        sent_cast s = {.at = i, .cast = *c};
        if (!state_of(r, c)->mine)
            continue;
        if (c->history)
            memcpy(s.history, c->history + c->n_history - shown(c), shown(c) * sizeof *s.history);
        array_put(p, &s, sizeof s);
    }
    for (size_t i = 0; i < r->n_parameters; i++) {
        const sent_weight s = {i, r->weights[i]};
        if (r->parameters[i].mine)
            array_put(p, &s, sizeof s);
    }
}

static void take_cast(replay *r, const sent_cast *s)
{
    replay_cast *c = &r->casts[s->at];
    const replay_cast own = *c;
    *c = s->cast;
    c->name = own.name;
    c->kind = own.kind;
    c->history = own.history;
    c->n_history = own.n_history;
    if (own.history) /* room of the state's, which the process that has the tensor goes on with */
        memcpy((float *)(uintptr_t)(own.history + own.n_history - shown(&own)), s->history,
               shown(&own) * sizeof *s->history);
}

static void take_weight(replay *r, const sent_weight *s)
{
    replay_weight *w = &r->weights[s->at];
    const replay_weight own = *w;
    *w = s->weight;
    w->name = own.name;
    w->storage = own.storage;
    w->recorded = own.recorded;
    w->grads = own.grads;
}

static int take(void *context, int rank, const void *bytes, size_t n)
{
    replay *r = context;
    const char *at = bytes;
    sent_head head;
    (void)n;
    if (rank == 0)
        return 0;
    memcpy(&head, at, sizeof head);
    at += sizeof head;
    for (int i = 0; i < 4; i++)
        replay_distance_merge(&r->distances[i], &head.distances[i]);
    for (size_t i = 0; i < head.casts; i++, at += sizeof(sent_cast)) {
        sent_cast s;
        memcpy(&s, at, sizeof s);
        take_cast(r, &s);
    }
    for (size_t i = 0; i < head.weights; i++, at += sizeof(sent_weight)) {
        sent_weight s;
        memcpy(&s, at, sizeof s);
        take_weight(r, &s);
    }
    return 0;
}

int replay_collect(replay *r)
{
    array_bytes p = {.n = 0};
    if (world_size() == 1)
        return 0;
    if (world_rank())
        pack(r, &p);
    if (p.failed)
        (void)need(NULL);
    const int code = world_collect(p.p, p.n, take, r);
    free(p.p);
    return code;
}
