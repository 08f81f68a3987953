/* track.c -- see track.h. */
#include "track.h"

#include "stuck.h"

#include "../array/need.h"
#include "../report/report.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_MAX = 1 << 20, EARLY = 100, ENDLESS = 10, OWED = 3 };

int track_init(track *t, const char *label, const mpsim_scaler_config *c)
{
    memset(t, 0, sizeof *t);
    snprintf(t->label, sizeof t->label, "%s", label);
    t->first_not_finite = t->stop = -1;
    if (mpsim_scaler_init(&t->scaler, c) != MPSIM_OK)
        return -1;
    t->least = t->most = t->last = t->begin = t->scaler.scale;
    t->run_fits = t->clean_fits = (double)INFINITY;
    return 0;
}

void track_clear(track *t)
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
    if (!t->clean_seen || s->first < EARLY)
        t->early += n - owed;
    else
        t->spikes += n - owed;
    t->run += n;
    t->run_fits = isnan(s->fits) ? 0 : fmin(t->run_fits, s->fits);
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

mpsim_scaler_result track_step(track *t, int64_t number, int overflow, const track_loss *loss, double fits)
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

void track_record(track *t, int64_t from, int64_t to, uint64_t n, unsigned events, double scale, double next)
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

static const char *const names[] = {
    [VERDICT_NONE] = "no steps",
    [VERDICT_CLEAN] = "no overflow",
    [VERDICT_STARTUP] = "start-up search",
    [VERDICT_SEARCHING] = "start-up search, not finished",
    [VERDICT_STEADY] = "steady",
    [VERDICT_SPIKES] = "spikes",
    [VERDICT_NOT_FINITE] = "Inf or NaN in the gradients",
    [VERDICT_RUNAWAY] = "runaway",
    [VERDICT_FLOOR] = "floor reached",
    [VERDICT_TAKEN] = "overflow taken",
    [VERDICT_STUCK] = "scale stuck",
    [VERDICT_DIVERGING] = "diverging",
    [VERDICT_RESUMED] = "scaler state lost",
    [VERDICT_UNCLEAR] = "not enough to tell",
    [VERDICT_LOST] = "Inf or NaN",
    [VERDICT_WELL] = "nothing unusual",
    [VERDICT_UNLEARNED] = "nothing is learned",
    [VERDICT_MISMATCH] = "trainer and sampler differ",
};

const char *verdict_name(verdict v)
{
    return names[v];
}

/* A scale that has never moved, and will not. */
static int is_constant(const track *t)
{
    return t->recorded ? t->least == t->most && t->most > 1 : !t->scaler.config.dynamic;
}

static verdict classify(const track *t)
{
    if (t->steps == 0)
        return VERDICT_NONE;
    if (t->stop >= 0)
        return VERDICT_FLOOR;
    if (t->taken)
        return VERDICT_TAKEN;
    if (t->overflows == 0)
        return stuck_find(t) != STUCK_NOT ? VERDICT_STUCK : VERDICT_CLEAN;
    const int all = t->run == t->steps;
    const int low = t->last < 1 || t->run_floored >= 3;
    if (stuck_find(t) != STUCK_NOT)
        return VERDICT_STUCK;
    if (t->run >= ENDLESS && (low || !all))
        return VERDICT_RUNAWAY;
    if (t->not_finite_steps && t->not_finite_steps == t->overflows && t->run > 1)
        return VERDICT_RUNAWAY;
    if (2 * t->not_finite_steps >= t->overflows && t->not_finite_steps)
        return VERDICT_NOT_FINITE;
    if (is_constant(t))
        return VERDICT_SPIKES;
    if (all)
        return VERDICT_SEARCHING;
    if (t->spikes > t->after_growth / 10)
        return VERDICT_SPIKES;
    if (t->run && !all && !t->after_growth)
        return VERDICT_SEARCHING;
    return t->after_growth ? VERDICT_STEADY : VERDICT_STARTUP;
}

static void steady_text(const track *t, char *text, size_t size)
{
    char a[32], b[32], share[32];
    const int often = !t->unknown_steps && t->skipped > t->steps / 50;
    snprintf(text, size,
             "after the start overflows come only where the scale has grown: %s of "
             "%s growth%s led to one. This is what a dynamic scaler does all the time",
             text_count(a, t->after_growth), text_count(b, t->growths), text_plural(t->growths));
    if (t->unknown_steps)
        text_add(text, size, ".");
    else
        text_add(text, size, "; it skips %s of the steps.%s", text_share(share, t->skipped, t->steps),
                 often ? " A longer window would skip fewer." : "");
}

static void floor_text(const track *t, char *text, size_t size)
{
    char where[64] = "";
    const int unknown = t->least > t->most; /* no line tells a scale */
    char a[32];
    if (!t->recorded) /* of a log the evidence tells where */
        snprintf(where, sizeof where, " at step %" PRId64, t->stop);
    if (!t->recorded && stuck_floor(t) > 0) {
        snprintf(text, size,
                 "the scale is down at its floor and a step overflows again: the framework stops training with an "
                 "error%s. The gradients fit at a scale of %s: the floor is at fault, not Inf or NaN.",
                 where, text_scale(a, stuck_floor(t)));
        return;
    }
    snprintf(text, size,
             "%s: the framework stops training with an error%s. What overflows %s is mostly Inf or "
             "NaN from somewhere else: a lower floor only delays the end.",
             unknown ? "steps overflow again and again" : "the scale is down at its floor and a step overflows again",
             where, unknown ? "at every scale" : "at such a scale");
}

/* The start, where the scale comes down. */
static void start_text(const track *t, verdict v, char *text, size_t size)
{
    char a[32], b[32];
    const int all = t->run == t->steps;
    if (v == VERDICT_STARTUP)
        snprintf(text, size,
                 "%s overflow%s while the scale came down to what the gradients fit, then none. This is normal.",
                 text_count(a, t->overflows), text_plural(t->overflows));
    else if (all && t->run_floored)
        snprintf(text, size,
                 "every step overflows so far; the scale is %s, its floor, and comes down no further. A lower floor "
                 "shows whether it is the scale or Inf and NaN from somewhere else.",
                 text_scale(b, t->last));
    else if (all)
        snprintf(text, size,
                 "every step overflows so far; the scale is %s and still coming down. Start lower, "
                 "or give it more steps.",
                 text_scale(b, t->last));
    else
        snprintf(text, size,
                 "%s in %s overflow%s, down to a scale of %s: what follows is not known. A few at "
                 "the start are normal; if they go on, Inf or NaN comes from somewhere else.",
                 t->recorded ? "the log ends" : "the steps end", t->run == 1 ? "an" : text_count(a, t->run),
                 text_plural(t->run), text_scale(b, t->last));
}

/* Verdicts of which the numbers say most. */
static void numbers_text(const track *t, verdict v, char *text, size_t size)
{
    char a[32], b[32], c[32];
    if (v == VERDICT_STUCK)
        stuck_text(t, text, size);
    else if (v == VERDICT_STARTUP || v == VERDICT_SEARCHING)
        start_text(t, v, text, size);
    else if (v == VERDICT_NOT_FINITE)
        snprintf(text, size,
                 "%s of %s overflows are steps whose gradients hold Inf or NaN already: they come "
                 "from somewhere else (data, forward pass, a division), not from the loss scale.",
                 text_count(a, t->not_finite_steps), text_count(b, t->overflows));
    else if (v == VERDICT_SPIKES && is_constant(t))
        snprintf(text, size,
                 "%s of %s steps overflow at the constant scale of %s and are skipped: it is too large for them, or "
                 "they hold Inf or NaN.",
                 text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last));
    else if (v == VERDICT_SPIKES)
        snprintf(text, size,
                 "%s of %s overflows come where the scale had not grown before: gradients spike, "
                 "or some steps hold Inf or NaN.%s",
                 text_count(a, t->spikes), text_count(b, t->overflows),
                 t->run ? " The last step overflows, too: what follows is not known." : "");
    else if (is_constant(t))
        snprintf(text, size,
                 "the last %s steps all overflow at a constant scale of %s, which never moves. A smaller one, or a "
                 "dynamic scaler, shows whether it is the scale or Inf and NaN from somewhere else.",
                 text_count(a, t->run), text_number(c, t->last));
    else if (!t->recorded && t->run_floored && t->last > 1)
        snprintf(text, size,
                 "the last %s steps all overflow, %s of them at the floor, a scale of %s. A lower floor shows whether "
                 "it is the scale or Inf and NaN from somewhere else.",
                 text_count(a, t->run), text_count(b, t->run_floored), text_scale(c, t->last));
    else if (t->run < ENDLESS)
        snprintf(text, size,
                 "the scale is down to %s, far below what gradients need%s. Inf or NaN comes from "
                 "somewhere else (data, forward pass, a division): no loss scale helps.",
                 text_number(c, t->last), t->recorded ? "" : ": every step overflowed on the way there");
    else
        snprintf(text, size,
                 "the last %s steps all overflow, down to a scale of %s. Inf or NaN comes from "
                 "somewhere else (data, forward pass, a division): no loss scale helps.",
                 text_count(a, t->run), text_number(c, t->last));
}

void verdict_text(const track *t, verdict v, char *text, size_t size)
{
    char a[32];
    switch (v) {
    case VERDICT_NONE:
        snprintf(text, size, "there is no step.");
        break;
    case VERDICT_CLEAN:
        snprintf(text, size, "no step overflows at the scales in force.");
        break;
    case VERDICT_FLOOR:
        floor_text(t, text, size);
        break;
    case VERDICT_TAKEN:
        snprintf(text, size, "%s step%s with Inf or NaN in the gradients %s taken: the weights are lost.%s",
                 text_count(a, t->taken), text_plural(t->taken), t->taken == 1 ? "is" : "are",
                 stuck_floor(t) > 0 ? " A smaller scale fits: the constant one is at fault." : "");
        break;
    case VERDICT_STEADY:
        steady_text(t, text, size);
        break;
    default:
        numbers_text(t, v, text, size);
        break;
    }
}

verdict track_verdict(const track *t, char *text, size_t size)
{
    const verdict v = classify(t);
    verdict_text(t, v, text, size);
    return v;
}

/* The change of the scale: "to 32768". */
static int changed_text(char *out, size_t size, const span *s)
{
    char a[32];
    if (isnan(s->next))
        return 0;
    return snprintf(out, size, " to %s", text_scale(a, s->next));
}

const char *events_text(char *out, size_t size, const track *t, const span *s)
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
