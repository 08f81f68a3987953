/* logwalk.c -- from the entries of a log to the recorded track: spans of steps at one scale, with the events of each. See impl.h.
 *
 * The walk stands at a step and a scale. An entry says where it stands next:
 *
 *     overflow, no scale told ---> it waits (walk.mute) until a scale is told
 *     overflow or growth --------> clean steps up to it (arrive), then a step of its own (record)
 *     status: step, scale, n skipped
 *        some skipped -----------> walk_skips: they halve the scale as late as they can
 *        none, or not known -----> walk_quiet: a lower scale was skipped steps (inferred), else arrive
 *
 *     arrive: a higher scale is growth (inferred), or, where it is more than scalers grow in so many steps or the scale fell with no
 *     overflow, a jump
 *
 * A step number that is not above the last one is a restart: if the next scale differs, that is a jump. */
#include "impl.h"

#include "../array/need.h"

#include <math.h>

/* What needs no explanation: growth by 2^SILENT that no line tells, and by one power for each WINDOW steps, the shortest
 * that frameworks have; a skipped step that divides the scale by 2^STEEP. TOLERATED overflows in a row that change
 * nothing are no floor. */
enum { SILENT = 2, WINDOW = 500, STEEP = 4, TOLERATED = 3 };

/* ---- before or after the step ---- */

/* Lines with a scale and whether the step was skipped tell by the skipped ones which scale it is:
 * after the step, if it falls with the first of them; before it, if it falls after the last. */
static void find_convention(training_log *l)
{
    uint64_t before = 0, after = 0;
    for (size_t i = 1; i < l->count; i++) {
        const log_line *a = &l->entries[i - 1].said, *b = &l->entries[i].said;
        const log_line *c = i + 1 < l->count ? &l->entries[i + 1].said : NULL;
        if (b->dialect != LOG_VALUES || !b->skipped || !(a->what & LOG_STATUS))
            continue;
        after += !a->skipped && b->after < a->after;
        before += c && c->what & LOG_STATUS && !c->skipped && c->after < b->after;
    }
    l->before = before > after;
}

/* ---- entries to the recorded track ---- */

/* The events that tell of it. */
static unsigned add_jump(training_log *l, const log_entry *e, double from, double to, int restart)
{
    const int gap = !restart && e->said.step < 0 && !(e->said.what & LOG_STATUS);
    need_room(&l->jumps, l->n_jumps, sizeof *l->jumps);
    l->jumps[l->n_jumps++] =
        (log_jump){.line = e->line, .step = e->said.step, .from = from, .to = to, .restart = restart, .gap = gap};
    return RECORDED_JUMP | (gap && to < from ? (unsigned)RECORDED_GAP : 0);
}

/* Where the walk over the entries stands. */
typedef struct walk {
    training_log *log;
    double scale;    /* in force; NaN at first */
    int64_t step;    /* the last one; -1       */
    unsigned extra;  /* RECORDED_RESTART after one */
    unsigned held;   /* overflows in a row that left the scale as it was */
    uint64_t loose;  /* overflows without a number since the last line with one: steps of its own
                       interval, if it counts all */
    uint64_t mute;   /* overflows that told no scale, not yet recorded */
    double told;     /* the scale after the last growth that a line without a number told; 0 */
    int64_t tracker; /* of the last line; -1 */
} walk;

/* Overflows of which the scale was not told: the next one that is told is after them. */
static void record_mute(walk *w)
{
    const unsigned events = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | MPSIM_SCALER_BACKOFF;
    if (w->mute)
        traininglog_track_record(&w->log->recorded, -1, -1, w->mute, events | w->extra, w->scale, (double)NAN);
    if (w->mute)
        w->scale = (double)NAN;
    w->mute = 0;
}

static void record(walk *w, int64_t from, int64_t to, uint64_t n, unsigned events, double next)
{
    traininglog_track_record(&w->log->recorded, from, to, n, events | w->extra, w->scale, next);
    w->extra = 0;
    w->held = events & MPSIM_SCALER_OVERFLOW && next == w->scale ? w->held + 1 : 0;
    w->scale = next;
    if (to >= 0)
        w->step = to;
}

/* Whether the scale may have grown so far in n steps without an overflow: a line told it, or it takes no explanation. */
static int may_grow(const walk *w, double scale, uint64_t n)
{
    const double powers = log2(scale / w->scale);
    return scale <= w->told || powers <= SILENT || powers * WINDOW <= (double)n;
}

/* The scale is `scale` after n clean steps (0: their number is unknown): by growth that no line
 * tells, somewhere among them, or by a jump. */
static void arrive(walk *w, const log_entry *e, double scale, uint64_t n)
{
    const double ratio = scale / w->scale;
    const int64_t first = n && w->step >= 0 ? w->step + 1 : -1;
    const int64_t last = first >= 0 ? w->step + (int64_t)n : -1;
    if (isnan(w->scale) || isnan(scale)) {
        w->scale = isnan(scale) ? w->scale : scale;
        if (n)
            record(w, first, last, n, 0, w->scale);
        return;
    }
    if (w->extra & RECORDED_RESTART ? ratio != 1 : ratio < 1 || !may_grow(w, scale, n)) {
        w->extra |= add_jump(w->log, e, w->scale, scale, (w->extra & RECORDED_RESTART) != 0);
        w->scale = scale;
        if (n)
            record(w, first, last, n, 0, scale);
    } else if (ratio > 1) {
        const unsigned inferred = n == 1 ? 0 : RECORDED_INFERRED;
        for (; n > 1 && scale > 2 * w->scale && scale <= w->told; n--) /* each was told, but not at which step */
            record(w, -1, -1, 1, MPSIM_SCALER_GROWTH | RECORDED_INFERRED, 2 * w->scale);
        record(w, first, last, n ? n : 1, MPSIM_SCALER_GROWTH | inferred, scale);
    } else if (n) {
        record(w, first, last, n, 0, scale);
    }
}

/* How often the scale has halved, which is less than before. Logs print small ones with few digits:
 * 0.0005 and 0.0002 are 2^-11 and 2^-12, and 0 is less than they print. */
static double halvings(double from, double to)
{
    if (to == 0)
        return from <= 1 ? from > 0 : (double)INFINITY;
    return to < 1 ? fmax(1, round(log2(from / to))) : log2(from / to);
}

/* The scale before an overflow of which a line tells the one after it. */
static double scale_before(const walk *w, double after)
{
    if (after < 1 && (isnan(w->scale) ? after == 0 : halvings(w->scale, after) == 1))
        return w->scale;
    return 2 * after;
}

/* An overflow that leaves the scale as it is: tolerated (DeepSpeed's hysteresis, 2 unless the user
 * says otherwise), or at the minimum: 1, or a user's, where it happens more often than that. */
static unsigned held(const walk *w, double scale)
{
    if (scale == 0)
        return MPSIM_SCALER_BACKOFF;
    return scale <= 1 || w->held >= TOLERATED ? MPSIM_SCALER_BACKOFF | MPSIM_SCALER_FLOORED : MPSIM_SCALER_TOLERATED;
}

/* An event without a number. */
static void mark_unnumbered(walk *w, const log_line *l)
{
    w->loose += l->step < 0;
    w->log->recorded.unknown_steps |= l->step < 0 && !w->log->numbered;
}

/* An overflow that tells neither its step nor a scale. */
static int is_mute(const log_line *l)
{
    return l->what == LOG_OVERFLOW && l->step < 0 && isnan(l->before) && isnan(l->after);
}

/* The scale before and after an event: what the line does not tell follows from the scale in force. */
typedef struct change {
    double before, after;
} change;

static change change_of(const walk *w, const log_line *l)
{
    change c = {l->before, l->after};
    if (isnan(c.before))
        c.before = isnan(c.after) || l->what & LOG_STOP ? w->scale : scale_before(w, c.after);
    if (isnan(c.after) && (l->what & ~(unsigned)LOG_DETAIL) == LOG_OVERFLOW && (l->step < 0 || !isnan(l->before)))
        c.after = c.before / 2; /* "Attempted loss scale: 8", and no more */
    if (isnan(c.after) || l->what & LOG_STOP)
        c.after = c.before;
    return c;
}

/* What becomes of the scale in an event. */
static unsigned scale_event(const walk *w, const log_line *l, change c)
{
    if (l->what & LOG_GROWTH)
        return MPSIM_SCALER_GROWTH;
    if (l->what & LOG_STOP)
        return MPSIM_SCALER_RAISED;
    if (c.after < c.before || isnan(c.before))
        return MPSIM_SCALER_BACKOFF;
    return l->what & LOG_TOLERATED ? (unsigned)MPSIM_SCALER_TOLERATED : held(w, c.after);
}

/* A line that tells an overflow, or a growth. */
static void walk_event(walk *w, const log_entry *e)
{
    const log_line *l = &e->said;
    const int known = l->step >= 0 && w->step >= 0 && l->step > w->step;
    const unsigned overflow = l->what & LOG_TAKEN      ? MPSIM_SCALER_OVERFLOW
                              : l->what & LOG_OVERFLOW ? MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP
                                                       : 0;
    if (is_mute(l)) {
        w->mute++;
        mark_unnumbered(w, l);
        return;
    }
    record_mute(w);
    const change c = change_of(w, l);
    w->told = l->what & LOG_GROWTH ? fmax(w->told, c.after) : w->told;
    if (l->what & LOG_GROWTH && l->step < 0 && w->step >= 0)
        return; /* the next step with a number tells between which steps it was */
    mark_unnumbered(w, l);
    arrive(w, e, c.before, known ? (uint64_t)(l->step - w->step - 1) : 0);
    record(w, l->step, l->step, 1, overflow | scale_event(w, l, c), c.after);
    w->told = l->what & LOG_OVERFLOW ? 0 : w->told;
}

/* Overflows in a row, of which the scale before and after is known: it halves as late as it can. */
static void walk_row(walk *w, int64_t first, uint64_t n, double next, unsigned extra)
{
    enum { MOST = 64 };
    const double times = w->scale > next ? ceil(halvings(w->scale, next) - 1e-9) : 0;
    const uint64_t down = times < MOST ? (uint64_t)times : MOST;
    const uint64_t kept = n > down ? n - down : 0;
    const unsigned events = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | extra;
    if (kept)
        record(w, first, first >= 0 ? first + (int64_t)kept - 1 : -1, kept, events | MPSIM_SCALER_TOLERATED,
               down ? w->scale : next);
    for (uint64_t i = kept; i < n; i++) {
        const int64_t at = first >= 0 ? first + (int64_t)i : -1;
        record(w, at, at, 1, events | MPSIM_SCALER_BACKOFF, i + 1 == n ? next : fmax(w->scale / 2, next));
    }
}

/* n steps of which `skipped` were skipped; the scale is `next` after them. */
static void walk_skips(walk *w, const log_entry *e, uint64_t n, uint64_t skipped, double next, unsigned extra)
{
    const double ratio = next / w->scale;
    const int64_t last = w->step >= 0 && e->said.step >= 0 ? e->said.step : -1;
    const int64_t first = last >= 0 ? last - (int64_t)n + 1 : -1;
    const unsigned overflow = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | extra;
    const double times = ratio < 1 ? halvings(w->scale, next) : 0;
    const int jump = ratio > 1 << SILENT || times > STEEP * (double)skipped;
    if (n == skipped && !jump && !isnan(ratio)) {
        walk_row(w, first, n, next, extra);
        return;
    }
    if (jump) {
        w->extra |= add_jump(w->log, e, w->scale, next, (w->extra & RECORDED_RESTART) != 0);
    }
    w->log->mixed += n > 1;
    record(w, first, last, skipped, overflow | RECORDED_MIXED, next);
    if (n > skipped)
        record(w, first, last, n - skipped, RECORDED_MIXED, next);
}

/* Steps of which it is known that none was skipped, or not known whether. How many steps lie
 * between lines without a number is not known: a loss that is NaN explains any number of overflows.
 */
static void walk_quiet(walk *w, const log_entry *e, uint64_t n, double next, int skips_told)
{
    const double ratio = next / w->scale;
    const double times = ratio < 1 ? halvings(w->scale, next) : 0;
    if (e->said.step < 0 && isfinite(times) && e->said.loss >= VALUE_NAN && n < (uint64_t)times)
        n = (uint64_t)times;
    if (ratio < 1 && !skips_told && times <= (double)n) {
        walk_skips(w, e, n, (uint64_t)ceil(times - 1e-9), next, RECORDED_INFERRED);
        return;
    }
    arrive(w, e, next, n);
}

/* Steps between the first two lines of numbered ones: what the first of them stands for, too. */
static uint64_t spacing(const training_log *l)
{
    const log_entry *a = &l->entries[0], *b = &l->entries[1];
    const int64_t next = a->n > 1 ? a->said.step + (a->to - a->said.step) / (int64_t)(a->n - 1) : b->said.step;
    const int64_t n = next - a->said.step;
    return n > 0 && n <= a->said.step ? (uint64_t)n : 1;
}

/* What the lines of overflows have told of the steps of a status: the rest of them. */
static void walk_rest(walk *w, const log_entry *e, double scale, uint64_t n, uint64_t skipped)
{
    const log_line *l = &e->said;
    /* Megatron may print 0 always */
    const int told = l->what & LOG_SKIPS && l->dialect != LOG_MEGATRON;
    if (n == 0 && scale == w->scale)
        return;
    if (w->extra & RECORDED_RESTART && skipped == 0)
        arrive(w, e, scale, 1);
    else if (skipped)
        walk_skips(w, e, n, skipped, scale, 0);
    else
        walk_quiet(w, e, n, scale, told);
}

/* A tracker that has begun again beside the same scale: that has grown and come down, `tracker` of the n steps ago. */
static uint64_t walk_reset(walk *w, const log_entry *e, double scale, uint64_t n)
{
    const log_line *l = &e->said;
    const unsigned down = MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | MPSIM_SCALER_BACKOFF | RECORDED_INFERRED;
    const int reset = l->tracker >= 0 && l->tracker < w->tracker && scale == w->scale && l->skipped == 0;
    const int64_t first = w->step + 1, at = l->step - l->tracker; /* of the overflow */
    w->tracker = e->tracker;
    if (!reset)
        return n;
    const int known = l->step >= 0 && w->step >= 0 && at > first;
    record(w, known ? first : -1, known ? at - 1 : -1, known ? (uint64_t)(at - first) : 1,
           MPSIM_SCALER_GROWTH | RECORDED_INFERRED, 2 * scale);
    record(w, known ? at : -1, known ? at : -1, 1, down, scale);
    return known ? (uint64_t)l->tracker : n;
}

/* So many steps, of which so many were skipped. */
typedef struct steps {
    uint64_t all, skipped;
} steps;

static uint64_t less(uint64_t n, uint64_t by)
{
    return n > by ? n - by : 0;
}

/* The steps of a status, without those that lines of overflows have told already, with those that are not recorded yet. */
static steps take_steps(walk *w, const log_line *l)
{
    const int numbered = l->step >= 0;
    const uint64_t told = numbered && !l->taken_only ? w->loose : 0;
    steps n = {numbered && w->step >= 0 ? (uint64_t)(l->step - w->step) : 1, l->skipped};
    if (numbered && w->step < 0 && w->log->count > 1 && w->log->entries[0].said.step >= 0)
        n.all = spacing(w->log); /* the first line: as the next one */
    n = (steps){less(n.all, told), less(n.skipped, told)};
    n.skipped = n.skipped < w->mute ? w->mute : n.skipped;
    w->loose = w->mute = 0;
    return n;
}

/* A status, or several that say the same, a step later each. */
static void walk_status(walk *w, const log_entry *e, double scale)
{
    const log_line *l = &e->said;
    const int numbered = l->step >= 0;
    steps n = take_steps(w, l);
    w->log->recorded.unknown_steps |= !numbered;
    n.all = walk_reset(w, e, scale, n.all);
    if (isnan(w->scale) && !n.skipped) /* before a skipped step it is not known */
        w->scale = scale;
    n.all = n.all < n.skipped ? n.skipped : n.all;
    if (numbered && w->step < 0)
        w->step = l->step - (int64_t)n.all;
    walk_rest(w, e, scale, n.all, n.skipped);
    if (numbered)
        w->step = l->step;
    if (e->n > 1)
        record(w, numbered ? w->step + 1 : -1, e->to, numbered ? (uint64_t)(e->to - w->step) : e->n - 1, 0, w->scale);
}

/* Lines that tell the scale before the step: after it is what the next one says. Of several that
 * say the same only the last may differ. */
static void walk_before(walk *w, const log_entry *e, const log_entry *next)
{
    const log_line *said = &e->said;
    const int followed = next && next->said.what & LOG_STATUS;
    log_entry part = *e;
    if (isnan(w->scale))
        w->scale = said->after;
    if (e->n > 1) {
        part.n = e->n - 1;
        part.to = e->to < 0 ? -1 : e->to - (e->to - said->step) / (int64_t)part.n;
        walk_status(w, &part, said->after);
        part.said.step = part.to = e->to;
        part.n = 1;
    }
    walk_status(w, &part, followed ? next->said.after : said->skipped ? (double)NAN : said->after);
}

/* Jumps that are growth by a factor of the scaler's own: several, all up and all alike, but for the
 * last, which may have come to the largest number. */
static void explain_jumps(training_log *l)
{
    enum { SEVERAL = 3 };
    track *t = &l->recorded;
    for (size_t i = 0; i < l->n_jumps; i++) {
        const log_jump *first = &l->jumps[0], *j = &l->jumps[i];
        const double off = j->to / j->from / (first->to / first->from) - 1;
        const int last = i + 1 == l->n_jumps;
        if (j->restart || j->gap || !(j->to > j->from) || !(off < 0.01 && (last || off > -0.01)))
            return;
    }
    if (l->n_jumps < SEVERAL)
        return;
    for (size_t i = 0; i < t->count; i++)
        if (t->spans[i].events & RECORDED_JUMP)
            t->spans[i].events ^= RECORDED_JUMP | RECORDED_INFERRED | MPSIM_SCALER_GROWTH;
    t->growths += l->n_jumps;
    l->n_jumps = 0;
}

/* The steps begin again: resumed from a checkpoint. */
static void walk_restart(walk *w, const log_entry *e)
{
    if (e->said.step < 0 || w->step < 0 || e->said.step > w->step)
        return;
    w->log->restarts++;
    w->extra |= RECORDED_RESTART;
    w->step = e->said.step - 1;
}

/* An entry; `next`: the one after it, or NULL. */
static void walk_entry(walk *w, const log_entry *e, const log_entry *next)
{
    track *t = &w->log->recorded;
    t->line = e->line;
    t->seq = e->seq;
    walk_restart(w, e);
    if (!(e->said.what & LOG_STATUS))
        walk_event(w, e);
    else if (w->log->before)
        walk_before(w, e, next);
    else
        walk_status(w, e, e->said.after);
    if (t->count) {
        t->spans[t->count - 1].last_line = e->last_line;
        t->spans[t->count - 1].last_seq = e->last_seq;
    }
}

void traininglog_walk(training_log *l)
{
    walk w = {.log = l, .scale = (double)NAN, .step = -1, .tracker = -1};
    find_convention(l);
    for (size_t i = 0; i < l->count; i++)
        walk_entry(&w, &l->entries[i], i + 1 < l->count ? &l->entries[i + 1] : NULL);
    record_mute(&w);
    explain_jumps(l);
}
