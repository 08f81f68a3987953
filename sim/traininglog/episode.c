/* episode.c -- see episode.h. */
#include "episode.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>

/* NEAR: notes that are looked through for a place. SLACK: how far a progress bar may run ahead of
 * the lines beside it. */
enum { NEAR = 64, SLACK = 3 };

/* ---- places ---- */

/* The first note behind a line, by index. Lines are told by their .seq. */
static size_t note_after(const training_log *l, uint64_t seq)
{
    size_t low = 0, high = l->notes.count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (l->notes.at[middle].seq > seq)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The longest bar is that of the training; others are of evaluations and of loading. */
static int64_t longest_bar(const training_log *l)
{
    int64_t whole = -1;
    for (size_t i = 0; i < l->notes.count; i++)
        if (l->notes.at[i].of > whole)
            whole = l->notes.at[i].of;
    return whole;
}

static int has_place(const log_note *n, int64_t whole)
{
    return n->step >= 0 && (n->of < 0 || n->of == whole);
}

static void take_place(log_place *p, const log_note *n)
{
    if (n->step > p->step)
        *p = (log_place){n->step, n->of, n->per_epoch, n->epoch < p->epoch ? p->epoch : n->epoch, n->line, n->seq};
    else if (n->epoch > p->epoch)
        p->epoch = n->epoch;
}

log_place traininglog_place_at(const training_log *l, int64_t whole, uint64_t seq)
{
    log_place p = {-1, -1, 0, -1, 0, 0};
    const size_t behind = note_after(l, seq);
    for (size_t i = behind, k = 0; i > 0 && k < NEAR; i--, k++) {
        const log_note *n = &l->notes.at[i - 1];
        if (has_place(n, whole) && (p.step < 0 || n->seq == seq || n->of != p.of))
            take_place(&p, n);
        else if (n->epoch > p.epoch)
            p.epoch = n->epoch;
    }
    for (size_t i = behind, k = 0; p.step < 0 && i < l->notes.count && k < NEAR; i++, k++)
        if (has_place(&l->notes.at[i], whole))
            take_place(&p, &l->notes.at[i]);
    return p;
}

/* ---- episodes ---- */

/* Whether a line between two others tells a loss or a place. */
static int is_between(const training_log *l, uint64_t from, uint64_t to)
{
    const size_t i = note_after(l, from);
    return i < l->notes.count && l->notes.at[i].seq < to;
}

/* Clean steps that the bars and steps of other lines show between two overflows. */
static uint64_t shown_between(const log_episodes *e, const training_log *l, uint64_t from, uint64_t to)
{
    const log_place a = traininglog_place_at(l, e->whole, from), b = traininglog_place_at(l, e->whole, to);
    if (a.step < 0 || b.step < 0 || a.of != b.of || a.seq >= b.seq || b.seq > to)
        return 0;
    const int64_t n = b.step - a.step;
    return n > 1 + SLACK ? (uint64_t)n - 1 : 0;
}

static episode *open_episode(log_episodes *e, const training_log *l, const span *s)
{
    need_room(&e->at, e->count, sizeof *e->at);
    episode *new = &e->at[e->count++];
    *new = (episode){.line = s->line, .seq = s->seq, .before = s->scale, .inferred = 1};
    new->first = traininglog_place_at(l, e->whole, s->seq);
    if (s->from >= 0 && s->from > new->first.step)
        new->first.step = s->from;
    return new;
}

static void extend(const log_episodes *e, const training_log *l, episode *at, const span *s)
{
    at->n += s->steps;
    at->last_line = s->last_line;
    at->last_seq = s->last_seq;
    at->after = s->next;
    at->floored += s->events & MPSIM_SCALER_FLOORED || (s->scale <= 1 && s->next == s->scale)
                       ? (int)fmin((double)s->steps, 1000)
                       : 0;
    at->inferred &= (s->events & RECORDED_INFERRED) != 0;
    at->last = traininglog_place_at(l, e->whole, s->last_seq);
    if (s->to >= 0 && s->to > at->last.step)
        at->last.step = s->to;
}

/* Clean steps after a line, by the totals of steps and of skipped ones; *skipped: the others. */
static uint64_t totals(const training_log *l, uint64_t seq, uint64_t *skipped)
{
    const log_note *first = NULL, *last = NULL;
    for (size_t i = note_after(l, seq); i < l->notes.count; i++) {
        const log_note *n = &l->notes.at[i];
        if (n->skipped >= 0 && n->step >= 0) {
            first = first ? first : n;
            last = n;
        }
    }
    if (!first || last->step <= first->step || last->skipped < first->skipped)
        return 0;
    const int64_t n = last->step - first->step, some = last->skipped - first->skipped;
    *skipped = (uint64_t)some;
    return n > some ? (uint64_t)(n - some) : 0;
}

/* What follows the last overflow. */
static void find_tail(log_episodes *e, const training_log *l)
{
    const uint64_t seq = e->count ? e->at[e->count - 1].last_seq : 0;
    log_place last = {-1, -1, 0, -1, 0, 0};
    for (size_t i = note_after(l, seq); i < l->notes.count; i++) {
        const log_note *n = &l->notes.at[i];
        const int again = i > 0 && n->loss_value == l->notes.at[i - 1].loss_value &&
                          n->norm_value == l->notes.at[i - 1].norm_value &&
                          n->step == l->notes.at[i - 1].step; /* as another process prints it */
        if ((n->loss == VALUE_FINITE || n->norm == VALUE_FINITE) && !again) {
            e->tail_lines++;
            e->tail_line = n->line;
        }
        if (has_place(n, e->whole))
            take_place(&last, n);
    }
    const log_place from = traininglog_place_at(l, e->whole, seq);
    if (e->count && from.step >= 0 && from.seq <= seq && last.of == from.of && last.step > from.step + 1 &&
        (uint64_t)(last.step - from.step - 1) > e->tail_steps)
        e->tail_steps = (uint64_t)(last.step - from.step - 1);
    if (e->count && totals(l, seq, &e->tail_skipped) > e->tail_steps)
        e->tail_steps = totals(l, seq, &e->tail_skipped);
    if (last.step >= 0 && last.line > e->tail_line)
        e->tail_line = last.line;
}

/* Whether the span is a growth that nothing but the next overflow shows, which is the last one
 * again, on lines that follow each other. */
static int is_copy(const training_log *l, const episode *at, const span *s, const span *next)
{
    return s->events & MPSIM_SCALER_GROWTH && s->events & RECORDED_INFERRED && l->recorded.unknown_steps && next &&
           next->events & MPSIM_SCALER_OVERFLOW && next->next == at->after && next->seq == s->seq &&
           !is_between(l, at->last_seq, next->seq);
}

void traininglog_episodes_find(log_episodes *e, const training_log *l)
{
    const track *t = &l->recorded;
    episode *at = NULL;
    uint64_t clean = 0, unsure = 0; /* of an interval in which a step overflowed: which is not known */
    int grown = 0, reset = 0;
    double last = (double)NAN;
    *e = (log_episodes){.whole = longest_bar(l)};
    for (size_t i = 0; i < t->count; i++) {
        const span *s = &t->spans[i];
        const int jump = s->events & (RECORDED_JUMP | RECORDED_RESTART) && !(s->events & RECORDED_GAP);
        /* the same overflow again with nothing between: a growth, or another process */
        if (at && is_copy(l, at, s, i + 1 < t->count ? s + 1 : NULL)) {
            at->last_line = t->spans[++i].last_line;
            at->last_seq = t->spans[i].last_seq;
            continue;
        }
        reset |= jump;
        grown |= s->events & MPSIM_SCALER_GROWTH || s->scale > last;
        if (!(s->events & MPSIM_SCALER_OVERFLOW)) {
            const episode *before = e->count ? &e->at[e->count - 1] : NULL;
            clean += s->steps;
            if (before && before->inferred && s->seq == before->last_seq && s->last_seq == s->seq)
                unsure += s->steps;
            at = NULL;
        } else {
            const uint64_t shown = at ? shown_between(e, l, at->last_seq, s->seq) : 0;
            clean = clean < shown ? shown : clean;
            if ((shown || grown || jump) && at)
                at = NULL;
            if (!at) {
                at = open_episode(e, l, s);
                at->clean = clean;
                at->grown = grown;
                at->reset = reset;
            }
            extend(e, l, at, s);
            clean = unsure = 0;
            grown = reset = 0;
        }
        last = isnan(s->next) ? last : s->next;
    }
    e->tail_steps = clean;
    e->tail_unsure = clean > 0 && unsure == clean;
    for (size_t i = t->count; i > 0 && !(t->spans[i - 1].events & MPSIM_SCALER_OVERFLOW); i--)
        e->tail_line = e->tail_line ? e->tail_line : t->spans[i - 1].last_line;
    find_tail(e, l);
}

void traininglog_episodes_clear(log_episodes *e)
{
    free(e->at);
    e->at = NULL;
    e->count = 0;
}
