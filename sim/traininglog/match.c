/* match.c -- see match.h. */
#include "match.h"

#include "traininglog.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WINDOWS = 6, BUDGET = 20000000 };

/* Logs print scales with few digits, or cut to an integer. */
static int same_scale(double computed, double recorded)
{
    return computed == recorded || fabs(computed - recorded) <= 1e-6 * recorded || floor(computed) == recorded;
}

/* A scaler on its way through a log. */
typedef struct follower {
    log_match *m;
    const track *t;
    mpsim_scaler s;
    int synced;      /* its counter is the recorded one's             */
    int held;        /* the hysteresis is used up where it is unknown */
    uint64_t budget; /* updates that are left                         */
} follower;

static void restart(follower *f, double scale)
{
    const mpsim_scaler_config c = f->s.config;
    (void)mpsim_scaler_init(&f->s, &c); /* it was valid before */
    f->s.scale = scale;
    if (f->held)
        f->s.hysteresis = 1;
    f->synced = 0;
}

static void update(follower *f, uint64_t n, int overflow)
{
    for (uint64_t i = 0; i < n && !f->s.stopped; i++)
        (void)mpsim_scaler_update(&f->s, overflow);
    f->budget -= n < f->budget ? n : f->budget;
}

static void compare(follower *f, const span *r)
{
    log_match *m = f->m;
    m->compared++;
    if (same_scale(f->s.scale, r->next)) {
        m->agreed++;
        return;
    }
    if (!m->at) {
        m->at = m->compared;
        m->step = r->to;
        m->recorded = r->next;
        m->computed = f->s.scale;
    }
    f->s.scale = r->next;
}

/* Growth at a time that the log does not tell: as many clean steps as it takes. A scaler that has not
 * grown in a window and one step will not: it is static, or at its ceiling, 0 or infinity. */
static void grow(follower *f, const span *r)
{
    const double before = f->s.scale;
    const uint64_t window = f->s.config.window, most = window < BUDGET ? window + 1 : BUDGET;
    for (uint64_t n = 0; n < most && f->budget > 0 && f->s.scale == before && !f->s.stopped; n++)
        update(f, 1, 0);
    f->s.scale = r->next;
}

/* The first growth of a log that does not begin with the training: the counter was unknown. */
static void synchronise(follower *f, const span *r)
{
    mpsim_scaler *s = &f->s;
    s->scale = r->next;
    s->clean = 0;
    s->step++;
    s->last_overflow = (int64_t)s->step - 1 - (s->config.growth_rule == MPSIM_GROWTH_INTERVAL);
    s->hysteresis = s->config.hysteresis;
}

/* Overflows: where clean steps between are not told, one may have refilled the hysteresis. */
static void follow_overflow(follower *f, const span *r)
{
    mpsim_scaler before = f->s;
    update(f, 1, 1);
    if (f->t->unknown_steps && !same_scale(f->s.scale, r->next)) {
        const mpsim_scaler first = f->s;
        f->s = before;
        update(f, 1, 0);
        update(f, 1, 1);
        if (!same_scale(f->s.scale, r->next))
            f->s = first;
    }
    if (!(r->events & MPSIM_SCALER_RAISED))
        compare(f, r);
}

static void follow(follower *f, const span *r)
{
    const unsigned unclear = RECORDED_JUMP | RECORDED_MIXED | RECORDED_RESTART;
    const double before = f->s.scale;
    if (r->events & unclear || isnan(r->next) || r->steps > f->budget) {
        restart(f, r->next);
    } else if (r->events & MPSIM_SCALER_OVERFLOW) {
        for (uint64_t i = 0; i < r->steps; i++)
            follow_overflow(f, r);
        f->synced = 1;
    } else if (r->events & MPSIM_SCALER_GROWTH && f->t->unknown_steps) {
        grow(f, r);
    } else if (r->events & MPSIM_SCALER_GROWTH && !f->synced) {
        synchronise(f, r);
        f->synced = !(r->events & RECORDED_INFERRED);
    } else if (!f->t->unknown_steps) {
        update(f, r->steps, 0);
        if (r->events & MPSIM_SCALER_GROWTH || (f->synced && f->s.scale != before))
            compare(f, r);
        f->s.scale = r->next;
    }
}

static void match_from(log_match *m, const mpsim_scaler_config *c, const track *t, int held)
{
    follower f = {.m = m, .t = t, .held = held, .budget = BUDGET};
    m->compared = m->agreed = m->at = 0;
    m->step = -1;
    (void)mpsim_scaler_init(&f.s, c); /* the caller's configuration is valid */
    restart(&f, t->count ? t->spans[0].scale : 0);
    f.synced = t->count && t->spans[0].from >= 0 && t->spans[0].from <= 1;
    for (size_t i = 0; i < t->count; i++)
        follow(&f, &t->spans[i]);
}

/* What is tolerated at the start of a log from the middle of a training, or of one whose first line
 * tells an overflow without the scale before it, is not known: the better of both. */
static void match(log_match *m, const mpsim_scaler_config *c, const track *t)
{
    log_match held;
    const span *first = t->count ? &t->spans[0] : NULL;
    match_from(m, c, t, 0);
    if (!first || c->hysteresis == 1 || (first->from <= 1 && !isnan(first->scale)))
        return;
    memcpy(held.label, m->label, sizeof held.label);
    match_from(&held, c, t, 1);
    if (held.agreed > m->agreed)
        *m = held;
}

/* The different numbers of clean steps before growth that the log shows. */
static int find_windows(const track *t, uint64_t windows[WINDOWS])
{
    const unsigned unclear = RECORDED_JUMP | RECORDED_MIXED | RECORDED_INFERRED;
    uint64_t clean = 0;
    int n = 0, known = 0;
    for (size_t i = 0; i < t->count && !t->unknown_steps; i++) {
        const span *r = &t->spans[i];
        const int ends = (r->events & (unclear | MPSIM_SCALER_OVERFLOW)) != 0;
        clean = ends ? 0 : clean + r->steps;
        if (ends)
            known = (r->events & unclear) == 0;
        if (ends || !(r->events & MPSIM_SCALER_GROWTH))
            continue;
        for (uint64_t w = clean; known && w > 0 && w + 2 > clean && n < WINDOWS; w--) {
            int old = 0;
            for (int k = 0; k < n; k++)
                old |= windows[k] == w;
            if (!old)
                windows[n++] = w;
        }
        clean = 0;
        known = 1;
    }
    return n;
}

void traininglog_match_scaler(log_match *m, const char *label, const mpsim_scaler_config *c, const track *t,
                              int windows)
{
    uint64_t seen[WINDOWS];
    snprintf(m->label, sizeof m->label, "%s", label);
    match(m, c, t);
    const int n = windows && m->agreed < m->compared && c->dynamic ? find_windows(t, seen) : 0;
    for (int i = 0; i < n; i++) {
        mpsim_scaler_config other = *c;
        log_match with = {.label = ""};
        other.window = seen[i];
        match(&with, &other, t);
        if (with.compared && with.agreed * m->compared > m->agreed * with.compared) {
            snprintf(with.label, sizeof with.label, "%.60s%swindow=%" PRIu64, label, strchr(label, ':') ? "," : ":",
                     seen[i]);
            *m = with;
        }
    }
}
