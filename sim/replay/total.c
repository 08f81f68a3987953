/* total.c -- adding up the steps of a replay; see total.h. */
#include "total.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void replay_total_init(replay_total *t)
{
    memset(t, 0, sizeof *t);
    t->final_scale = t->distance_fp32 = t->distance_f64 = (double)NAN;
}

void replay_total_clear(replay_total *t)
{
    for (size_t i = 0; i < t->n_tensors; i++)
        free(t->tensors[i].name);
    free(t->tensors);
    nameindex_clear(&t->names);
    for (size_t i = 0; i < t->n_differing; i++)
        free(t->differing[i].name);
    free(t->differing);
    nameindex_clear(&t->differing_names);
    for (size_t i = 0; i < t->n_moved; i++)
        free(t->moved[i].name);
    free(t->moved);
    nameindex_clear(&t->moved_names);
    for (size_t i = 0; i < t->n_omitted; i++)
        free(t->omitted[i].name);
    free(t->omitted);
    nameindex_clear(&t->omitted_names);
    for (size_t i = 0; i < t->n_stored; i++)
        free(t->stored[i].name);
    free(t->stored);
    nameindex_clear(&t->stored_names);
    free(t->settings);
    replay_total_init(t);
}

static replay_group replay_group_of(const char *kind)
{
    if (strcmp(kind, "wgrad") == 0)
        return GROUP_WGRAD;
    if (strcmp(kind, "weight") == 0)
        return GROUP_WEIGHT;
    return strcmp(kind, "act") == 0 || strcmp(kind, "out") == 0 ? GROUP_ACT : GROUP_AGRAD;
}

static void replay_counts_add(replay_counts *to, const replay_cast *c)
{
    to->count += c->count;
    to->nonzero += c->nonzero;
    to->nonfinite += c->nonfinite;
    to->underflow += c->underflow;
    to->subnormal += c->subnormal;
    to->overflow += c->overflow;
    to->stale += c->stale;
}

static replay_tensor *find_tensor(replay_total *t, const char *name)
{
    const size_t known = t->n_tensors;
    replay_tensor *e = nameindex_item(&t->names, &t->tensors, &t->n_tensors, sizeof *e, name);
    if (t->n_tensors > known)
        e->worst_sqnr = (double)INFINITY;
    return e;
}

/* ---- what differs from the record ---- */

static replay_difference *find_difference(replay_total *t, const char *name)
{
    return nameindex_item(&t->differing_names, &t->differing, &t->n_differing, sizeof *t->differing, name);
}

static void add_omission(replay_total *t, const replay_weight *w, const char *name, uint64_t count)
{
    replay_omission *o = nameindex_item(&t->omitted_names, &t->omitted, &t->n_omitted, sizeof *o, name);
    o->count += count;
    snprintf(o->recorded, sizeof o->recorded, "%.15s", w->recorded ? w->recorded : "");
    snprintf(o->here, sizeof o->here, "%.15s", w->storage);
}

static void add_differences(replay_total *t, const replay_weight *w)
{
    for (int k = 0; k < REPLAY_CARRIED; k++) {
        const replay_comparison *c = &w->carried[k];
        char name[512];
        if (!c->compared && !c->left_out)
            continue;
        snprintf(name, sizeof name, "%s:%s", replay_carried_kind((replay_carried)k), w->name);
        if (c->left_out)
            add_omission(t, w, name, c->left_out);
        if (!c->compared)
            continue;
        replay_difference *d = find_difference(t, name);
        d->c.compared += c->compared;
        d->c.differ += c->differ;
        d->c.max_difference = fmax(d->c.max_difference, c->max_difference);
    }
}

static int by_difference(const void *a, const void *b)
{
    const replay_difference *x = a, *y = b;
    const double sx = (double)x->c.differ / (double)x->c.compared;
    const double sy = (double)y->c.differ / (double)y->c.compared;
    if (sx != sy)
        return sx > sy ? -1 : 1;
    if (x->c.max_difference != y->c.max_difference)
        return x->c.max_difference > y->c.max_difference ? -1 : 1;
    return strcmp(x->name, y->name);
}

int replay_total_equals(const replay_total *t)
{
    return t->compared > 0 && t->differ == 0 && t->left_out == 0;
}

int replay_total_doubts(const replay_total *t)
{
    return !replay_total_equals(t);
}

/* ---- moments in few bits ---- */

static void add_moments(replay_total *t, const replay_weight *w)
{
    replay_stored *s = nameindex_item(&t->stored_names, &t->stored, &t->n_stored, sizeof *s, w->name);
    replay_moments_add(&t->moments, &w->moments);
    replay_moments_add(&s->sum, &w->moments);
}

/* Where nothing was compared: below all others. */
static double db_for_order(const replay_moments *m)
{
    const replay_error *e = replay_moments_error(m);
    return !e->is || isnan(e->db) ? -(double)INFINITY : e->db;
}

static int by_noise(const void *a, const void *b)
{
    const replay_stored *x = a, *y = b;
    const double dx = db_for_order(&x->sum), dy = db_for_order(&y->sum);
    return dx < dy ? -1 : dx > dy ? 1 : strcmp(x->name, y->name);
}

/* ---- movement ---- */

static void judge(replay_movement *m)
{
    const int moves = m->wanted > 0;
    m->share = moves ? m->moved / m->wanted : (double)NAN;
    m->error = moves ? sqrt(m->noise) / m->wanted : (double)NAN;
    m->drift = m->size > 0 ? (m->moved - m->wanted) / m->size : (double)NAN;
    m->lost = m->share + 3 * m->error < 0.9;
}

static void sum_movement(replay_movement *to, const replay_movement *from)
{
    to->wanted += from->wanted;
    to->moved += from->moved;
    to->noise += from->noise;
    to->small_wanted += from->small_wanted;
    to->small_moved += from->small_moved;
    to->small_noise += from->small_noise;
}

static void add_movement(replay_total *t, const replay_weight *w)
{
    replay_moved *m = nameindex_item(&t->moved_names, &t->moved, &t->n_moved, sizeof *m, w->name);
    sum_movement(&t->movement, &w->movement);
    sum_movement(&m->sum, &w->movement);
    t->movement.size += w->movement.size - m->sum.size;
    m->sum.size = w->movement.size;
}

static int by_share(const void *a, const void *b)
{
    const replay_moved *x = a, *y = b;
    const double sx = x->sum.share, sy = y->sum.share;
    return sx < sy ? -1 : sx > sy ? 1 : strcmp(x->name, y->name);
}

static void judge_all(replay_total *t)
{
    const replay_movement *m = &t->movement;
    t->small = (replay_movement){.wanted = m->small_wanted, .moved = m->small_moved, .noise = m->small_noise};
    judge(&t->small);
    judge(&t->movement);
    for (size_t i = 0; i < t->n_moved; i++)
        judge(&t->moved[i].sum);
}

void replay_total_sort(replay_total *t)
{
    nameindex_clear(&t->differing_names); /* numbers change */
    nameindex_clear(&t->stored_names);
    nameindex_clear(&t->moved_names);
    judge_all(t);
    if (t->n_moved)
        qsort(t->moved, t->n_moved, sizeof *t->moved, by_share);
    if (t->n_stored)
        qsort(t->stored, t->n_stored, sizeof *t->stored, by_noise);
    if (t->n_differing)
        qsort(t->differing, t->n_differing, sizeof *t->differing, by_difference);
    while (t->n_differing && t->differing[t->n_differing - 1].c.differ == 0)
        free(t->differing[--t->n_differing].name);
}

static void add_weight(replay_total *t, const replay_weight *w)
{
    t->updates += w->updates;
    t->lost += w->lost;
    t->lost_model += w->lost_model;
    t->compared += w->compared;
    t->differ += w->differ;
    t->left_out += w->left_out;
    if (w->max_difference > t->max_difference)
        t->max_difference = w->max_difference;
    if (w->movement.wanted > 0)
        add_movement(t, w);
    if (w->moments.arrays)
        add_moments(t, w);
    add_differences(t, w);
}

static void add_settings(replay_total *t, const replay_step *s)
{
    t->settings = need_more(t->settings, s->n_settings, sizeof *t->settings);
    t->n_settings = s->n_settings;
    memcpy(t->settings, s->settings, s->n_settings * sizeof *t->settings);
}

static void add_events(replay_total *t, const replay_step *s)
{
    t->skipped += (s->events & MPSIM_SCALER_SKIP) != 0;
    t->overflows += (s->events & MPSIM_SCALER_OVERFLOW) != 0;
    t->growths += (s->events & MPSIM_SCALER_GROWTH) != 0;
    t->backoffs += (s->events & MPSIM_SCALER_BACKOFF) != 0;
    t->raised += (s->events & MPSIM_SCALER_RAISED) != 0;
}

void replay_total_add(replay_total *t, const replay_step *s)
{
    t->steps += (uint64_t)s->trains;
    t->final_scale = s->next_scale;
    add_events(t, s);
    for (size_t k = 0; k < s->n_optimizers; k++)
        t->optimizer_skips[k] += (uint64_t)(s->optimizers[k].skipped != 0);
    t->n_optimizers = s->n_optimizers > t->n_optimizers ? s->n_optimizers : t->n_optimizers;
    t->notes = *s->notes;
    t->gradients += s->gradients;
    t->unheld += s->unheld;
    if (s->gradient_format)
        snprintf(t->gradient_format, sizeof t->gradient_format, "%.14s", s->gradient_format);
    if (s->unheld_in && !t->unheld_in[0])
        escape_text(t->unheld_in, sizeof t->unheld_in, s->unheld_in);
    if (s->recorded_clip) {
        t->clip = s->clip;
        t->own_clips = s->own_clips;
        t->max_norm = s->max_norm;
        t->clip_value = s->clip_value;
    }
    t->unknown += (uint64_t)s->unknown;
    t->reduces |= s->plan->reduce_given;
    if (s->ranks > t->ranks)
        t->ranks = s->ranks;
    if (s->plan->optimizer.states)
        t->states = s->plan->optimizer.states;
    if (s->muon)
        t->muon = *s->muon;
    else if (s->plan->optimizer.has_muon && !t->muon.model.name[0])
        t->muon = s->plan->optimizer.muon;
    t->clipped += (uint64_t)s->clipped;
    t->from_record += (uint64_t)s->from_record;
    if (s->trains)
        t->bytes = s->bytes;
    if (s->settings)
        add_settings(t, s);
    if (s->trains) {
        t->distance_fp32 = s->distance_fp32;
        t->distance_f64 = s->distance_f64;
    }
    for (size_t i = 0; i < s->n_weights; i++)
        add_weight(t, &s->weights[i]);
    for (size_t i = 0; i < s->n_casts; i++) {
        const replay_cast *c = &s->casts[i];
        replay_tensor *e = find_tensor(t, c->name);
        replay_counts_add(&t->groups[replay_group_of(c->kind)], c);
        replay_counts_add(&e->counts, c);
        e->steps++;
        e->layer = c->layer;
        e->scale = c->scale;
        e->next = c->next;
        if (e->steps > 1 && strcmp(e->format, c->format) != 0)
            snprintf(e->format, sizeof e->format, "several"); /* a schedule */
        else
            memcpy(e->format, c->format, sizeof e->format);
        if (c->sqnr_db < e->worst_sqnr)
            e->worst_sqnr = c->sqnr_db;
    }
}

void replay_group_counts(const replay_step *s, replay_counts groups[REPLAY_GROUPS])
{
    memset(groups, 0, REPLAY_GROUPS * sizeof *groups);
    for (size_t i = 0; i < s->n_casts; i++)
        replay_counts_add(&groups[replay_group_of(s->casts[i].kind)], &s->casts[i]);
}
