/* track.c -- see track.h. */
#include "track.h"

#include "../array/need.h"
#include "../record/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_MAX = 1 << 20, EARLY = 100, OWED = 3 };

int traininglog_track_init(track *t, const char *label, const mpsim_scaler_config *c)
{
    memset(t, 0, sizeof *t);
    snprintf(t->label, sizeof t->label, "%s", label);
    t->first_not_finite = t->stop = -1;
    if (mpsim_scaler_init(&t->scaler, c) != MPSIM_OK)
        return -1;
    t->least = t->most = t->last = t->begin = t->scaler.scale;
    t->run_fits = t->all_fit = t->clean_fits = (double)INFINITY;
    return 0;
}

void traininglog_track_clear(track *t)
{
    free(t->spans);
    t->spans = NULL;
    t->count = 0;
}

/* ---- spans ---- */

static void add_loss(track_loss *to, const track_loss *from)
{
    to->elements += from->elements;
    to->lost += from->lost;
    to->overflowed += from->overflowed;
    to->not_finite += from->not_finite;
}

static int same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Steps that change nothing and are alike become one span. */
static int merges(const track *t, const span *s)
{
    const span *last = t->count ? &t->spans[t->count - 1] : NULL;
    return last && !t->by_step && !(s->events & MPSIM_SCALER_GROWTH) && last->events == s->events &&
           same(last->next, s->scale) && same(last->scale, s->scale) && same(s->next, s->scale) &&
           last->first + last->steps == s->first && (s->from < 0 ? last->to < 0 : last->to >= 0 && last->to <= s->from);
}

static void append(track *t, const span *s)
{
    if (merges(t, s)) {
        span *last = &t->spans[t->count - 1];
        last->steps += s->steps;
        last->to = s->to;
        last->last_line = s->last_line;
        last->last_seq = s->last_seq;
        last->fits = last->fits < s->fits || isnan(s->fits) ? last->fits : s->fits;
        add_loss(&last->loss, &s->loss);
        return;
    }
    if (t->count == SPANS_MAX) {
        t->truncated = 1;
        return;
    }
    need_room(&t->spans, t->count, sizeof *t->spans);
    t->spans[t->count++] = *s;
}

/* ---- totals ---- */

/* Overflows that a growth leads to: as many as the hysteresis allows, the last of which backs off.
 * Of recorded scalers it is not known, and taken as OWED. */
static void count_overflows(track *t, const span *s)
{
    const uint64_t n = s->steps, owed = n < t->owed ? n : t->owed;
    t->overflows += n;
    t->after_growth += t->grown;
    t->grown = 0;
    t->owed = s->events & MPSIM_SCALER_BACKOFF ? 0 : t->owed - owed;
    if (t->clean_seen && s->first >= EARLY) /* before that they are of the search */
        t->spikes += n - owed;
    t->run += n;
    t->run_fits = isnan(s->fits) ? 0 : fmin(t->run_fits, s->fits);
    t->all_fit = isnan(s->fits) ? 0 : fmin(t->all_fit, s->fits);
    t->clean_fits = (double)INFINITY;
    t->run_floored += s->events & MPSIM_SCALER_FLOORED ? n : 0;
}

static void count_clean(track *t, const span *s)
{
    t->clean_seen = 1;
    t->run = t->run_floored = 0;
    t->run_fits = (double)INFINITY;
    t->clean_fits = fmin(t->clean_fits, isnan(s->fits) ? (double)INFINITY : s->fits);
    if (s->events & MPSIM_SCALER_GROWTH) {
        t->grown = 1;
        t->owed = t->recorded ? OWED : t->scaler.config.hysteresis;
    }
}

static uint64_t if_any(const span *s, unsigned events)
{
    return s->events & events ? s->steps : 0;
}

static void account(track *t, const span *s)
{
    if (s->events & MPSIM_SCALER_OVERFLOW)
        count_overflows(t, s);
    else
        count_clean(t, s);
    t->steps += s->steps;
    t->skipped += if_any(s, MPSIM_SCALER_SKIP);
    t->taken += if_any(s, MPSIM_SCALER_OVERFLOW) - if_any(s, MPSIM_SCALER_SKIP);
    t->growths += (s->events & MPSIM_SCALER_GROWTH) != 0; /* once, somewhere among several steps */
    t->backoffs += if_any(s, MPSIM_SCALER_BACKOFF);
    t->tolerated += if_any(s, MPSIM_SCALER_TOLERATED);
    t->refused += if_any(s, MPSIM_SCALER_REFUSED);
    t->floored += if_any(s, MPSIM_SCALER_FLOORED);
    if (s->events & MPSIM_SCALER_RAISED && t->stop < 0)
        t->stop = s->from >= 0 ? s->from : (int64_t)s->first + 1;
    if (s->loss.not_finite) {
        t->not_finite_steps += s->steps;
        if (t->first_not_finite < 0)
            t->first_not_finite = s->from >= 0 ? s->from : (int64_t)s->first + 1;
    }
    add_loss(&t->loss, &s->loss);
    t->least = fmin(t->least, fmin(s->scale, s->next));
    t->most = fmax(t->most, fmax(s->scale, s->next));
    if (!isnan(s->next))
        t->last = s->next;
    append(t, s);
}

mpsim_scaler_result traininglog_track_step(track *t, int64_t number, int overflow, const track_loss *loss, double fits)
{
    static const track_loss nothing;
    const int stopped = t->scaler.stopped;
    const mpsim_scaler_result r = mpsim_scaler_update(&t->scaler, overflow);
    const span s = {.first = t->steps,
                    .steps = 1,
                    .from = number,
                    .to = number,
                    .scale = r.scale,
                    .next = r.next,
                    .events = r.events,
                    .loss = loss ? *loss : nothing,
                    .fits = fits};
    if (!stopped)
        account(t, &s);
    return r;
}

void traininglog_track_record(track *t, int64_t from, int64_t to, uint64_t n, unsigned events, double scale,
                              double next)
{
    const span s = {.first = t->steps,
                    .steps = n,
                    .from = from,
                    .to = to,
                    .scale = scale,
                    .next = next,
                    .events = events,
                    .fits = (double)NAN,
                    .line = t->line,
                    .last_line = t->line,
                    .seq = t->seq,
                    .last_seq = t->seq};
    if (n)
        account(t, &s);
}

/* ---- words ---- */

/* The change of the scale: "to 32768". */
static int changed_text(char *out, size_t size, const span *s)
{
    char a[32];
    if (isnan(s->next))
        return 0;
    return snprintf(out, size, " to %s", text_scale(a, s->next));
}

const char *traininglog_events_text(char *out, size_t size, const track *t, const span *s)
{
    const unsigned e = s->events;
    char to[64] = "", a[32], many[40] = "";
    if (s->steps > 1)
        snprintf(many, sizeof many, "%s ", text_count(a, s->steps));
    if (e & (MPSIM_SCALER_BACKOFF | MPSIM_SCALER_GROWTH))
        changed_text(to, sizeof to, s);
    if (e & MPSIM_SCALER_RAISED)
        snprintf(out, size, "overflow: the framework stops with its error");
    else if (e & MPSIM_SCALER_OVERFLOW)
        snprintf(out, size, "%soverflow%s%s%s%s%s", many, s->steps > 1 ? "s" : "",
                 e & MPSIM_SCALER_SKIP ? ", skipped" : ", step taken",
                 e & MPSIM_SCALER_TOLERATED ? ", tolerated"
                 : e & MPSIM_SCALER_BACKOFF ? ", down"
                                            : "",
                 to, e & MPSIM_SCALER_FLOORED ? " (floor)" : "");
    else if (e & MPSIM_SCALER_GROWTH)
        snprintf(out, size, "%sclean, up%s%s%s", many, to, e & MPSIM_SCALER_CEILING ? " (ceiling)" : "",
                 s->steps > 1 ? " in one of them" : "");
    else if (e & MPSIM_SCALER_REFUSED)
        snprintf(out, size, "clean, growth to infinity refused");
    else
        snprintf(out, size, "%sclean", t->recorded && t->unknown_steps ? "" : many);
    return out;
}
