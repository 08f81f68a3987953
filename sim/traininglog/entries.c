/* entries.c -- from lines about the loss scale to entries: what a line is to the entry before it. See impl.h. */
#include "impl.h"

#include "../array/need.h"

#include <math.h>
#include <string.h>

/* RECENT: how far back a line of another process, which comes late, may lie. */
enum { RECENT = 8 };

static log_entry *last_of(const training_log *log)
{
    return log->count ? &log->entries[log->count - 1] : NULL;
}

/* ---- numbers that are no scale ---- */

/* Whether the number that ends a log without the end of a line is one that the last scale does not
 * lead to: digits are missing. */
static int is_cut_short(const training_log *log, const log_line *l, const char *text)
{
    const size_t n = strlen(text);
    const double last = log->count ? log->entries[log->count - 1].said.after : (double)NAN;
    if (n == 0 || !strchr("0123456789.", text[n - 1]) || isnan(last) || isnan(l->after))
        return 0;
    return l->after != last && l->after != 2 * last && l->after != last / 2 && l->after != l->before / 2;
}

/* Whether a scale above 1 is no power of two in a log whose first one is: a mean, or unreadable. */
static int is_off_chain(double base, double scale)
{
    return traininglog_words_is_power(base) && scale > 1 && !traininglog_words_is_power(scale);
}

/* Whether the line tells a mean of scales, or a number that is no scale: l->average, l->bad. The first scale of the log is what others
 * are powers of two away from. */
static void judge_number(training_log *log, log_line *l, const char *text)
{
    if (log->base == 0 && l->after > 0 && !l->average)
        log->base = l->after;
    const int off = is_off_chain(log->base, l->after);
    if (off && l->what & LOG_STATUS)
        l->average |= l->after != floor(l->after) || l->rounded;
    else
        l->bad |= off || is_off_chain(log->base, l->before);
    l->bad |= log->unterminated && is_cut_short(log, l, text);
    log->last_bad = l->bad;
}

/* ---- what a line is to the entries before it ---- */

static int same_or_unknown(double a, double b)
{
    return a == b || isnan(a) || isnan(b);
}

static int same_scales(const log_entry *e, const log_line *l)
{
    return same_or_unknown(e->said.before, l->before) && same_or_unknown(e->said.after, l->after);
}

/* Of several phrases of one overflow one at least is a detail. */
static int is_phrase_of(const log_entry *e, const log_line *l)
{
    return (e->said.what & l->what & LOG_OVERFLOW) && ((e->said.what | l->what) & LOG_DETAIL) && l->rule >= 0 &&
           same_scales(e, l);
}

/* One more phrase about the overflow of the last entry. */
static int is_detail(const log_entry *e, const log_line *l)
{
    return is_phrase_of(e, l) && !(e->rules >> l->rule & 1) && e->said.dialect == l->dialect;
}

/* The last entry again, as each process prints it: the same step; or the same change of a scale that is no longer the one before it;
 * or a phrase that has told it. */
static int is_repeated(const log_entry *e, const log_line *l, uint64_t seq)
{
    if (e->said.what != l->what || e->said.dialect != l->dialect || !same_scales(e, l))
        return is_phrase_of(e, l) && e->rules >> l->rule & 1 && (l->step < 0 || e->to == l->step);
    if (l->step >= 0)
        return e->to == l->step;
    const int changes = l->what & LOG_OVERFLOW ? l->before > l->after : l->before < l->after;
    return l->what & (LOG_OVERFLOW | LOG_GROWTH) && l->rank < 0 && changes && seq < e->last_seq + RECENT;
}

/* What one of the last entries says, of an earlier step and at another scale than now: from another process, late. */
static int is_late(const training_log *log, const log_line *l)
{
    for (size_t i = 1; i < RECENT && i < log->count && l->what & LOG_STATUS && l->step >= 0; i++) {
        const log_entry *e = &log->entries[log->count - 1 - i];
        if (e->said.what == l->what && e->said.step <= l->step && e->to >= l->step)
            return e->said.after == l->after && last_of(log)->said.after != l->after;
    }
    return 0;
}

/* A status that says what the last entry says, a step later. */
static int is_more(const log_entry *e, const log_line *l)
{
    return e->said.what == l->what && l->what & LOG_STATUS && e->said.skipped == 0 && l->skipped == 0 &&
           e->said.after == l->after && e->said.dialect == l->dialect && l->tracker >= e->tracker &&
           (l->step < 0 ? e->to < 0 : e->to >= 0 && l->step > e->to);
}

typedef enum relation { MEAN, UNREAD, OTHER_SCALER, DETAIL, REPEATED, LATE, MORE, NEW } relation;

/* The first that holds. */
static relation relation_of(const training_log *log, const log_line *l)
{
    const log_entry *last = last_of(log);
    if (l->average)
        return MEAN;
    if (l->bad || (l->what == LOG_STATUS && isnan(l->after)))
        return UNREAD;
    if (l->scaler != log->scaler)
        return OTHER_SCALER;
    if (!last)
        return NEW;
    return is_detail(last, l)               ? DETAIL
           : is_repeated(last, l, log->seq) ? REPEATED
           : is_late(log, l)                ? LATE
           : is_more(last, l)               ? MORE
                                            : NEW;
}

/* ---- what becomes of it ---- */

/* The line is about the last entry, too. */
static void extend(training_log *log, const log_line *l)
{
    (void)l;
    last_of(log)->last_line = log->line;
    last_of(log)->last_seq = log->seq;
}

static void add_detail(training_log *log, const log_line *l)
{
    log_entry *e = last_of(log);
    e->rules |= 1u << l->rule;
    e->said.before = isnan(l->before) ? e->said.before : l->before;
    e->said.after = isnan(l->after) ? e->said.after : l->after;
    if (l->step >= 0)
        e->said.step = e->to = l->step;
    e->said.what |= l->what & LOG_STOP;
    extend(log, l);
}

static void add_step(training_log *log, const log_line *l)
{
    log_entry *e = last_of(log);
    e->to = l->step;
    e->tracker = l->tracker;
    e->n++;
    extend(log, l);
}

static void add_entry(training_log *log, const log_line *l)
{
    log->full = log->count == ENTRIES_MAX;
    if (log->full)
        return;
    need_room(&log->entries, log->count, sizeof *log->entries);
    log->entries[log->count++] = (log_entry){.line = log->line,
                                             .last_line = log->line,
                                             .seq = log->seq,
                                             .last_seq = log->seq,
                                             .said = *l,
                                             .to = l->step,
                                             .tracker = l->tracker,
                                             .n = 1,
                                             .rules = l->rule >= 0 ? 1u << l->rule : 0};
}

#define AT(member) offsetof(training_log, member)
/* Where a line is counted (0: nowhere), and what becomes of the entries (NULL: nothing). */
static const struct {
    size_t count;
    void (*take)(training_log *log, const log_line *l);
} fates[] = {
    [MEAN] = {AT(averages), NULL},
    [UNREAD] = {AT(bad), NULL},
    [OTHER_SCALER] = {AT(other_scalers), NULL},
    [DETAIL] = {0, add_detail},
    [REPEATED] = {AT(repeats), extend},
    [LATE] = {AT(repeats), NULL},
    [MORE] = {0, add_step},
    [NEW] = {0, add_entry},
};
#undef AT

void traininglog_entry_take(training_log *log, log_line *l, const char *text)
{
    judge_number(log, l, text);
    const relation r = relation_of(log, l);
    if (fates[r].count)
        ++*(uint64_t *)(void *)((char *)log + fates[r].count);
    if (fates[r].take)
        fates[r].take(log, l);
    if (l->bad && l->what & LOG_OVERFLOW)
        log->unread_line = log->line;
    log->numbered |= l->what & LOG_STATUS && l->step >= 0;
}

/* ---- several ranks that say the same without a number ---- */

static int are_equal(const log_entry *a, const log_entry *b)
{
    return a->said.what == b->said.what && a->said.dialect == b->said.dialect && a->to < 0 && b->to < 0 &&
           (a->said.before == b->said.before || isnan(a->said.before)) &&
           (a->said.after == b->said.after || isnan(a->said.after));
}

static size_t run_of(const training_log *l, size_t i)
{
    size_t n = 1;
    while (i + n < l->count && are_equal(&l->entries[i], &l->entries[i + n]))
        n++;
    return n;
}

/* Where every run of equal overflows is a multiple of n > 1, n ranks have logged each. */
void traininglog_entries_thin(training_log *l)
{
    size_t divisor = 0, runs = 0, kept = 0;
    l->copies = 1;
    for (size_t i = 0, n; i < l->count; i += n, runs++) {
        n = run_of(l, i);
        for (size_t a = n, b; a; a = b) { /* the greatest common divisor */
            b = divisor % a;
            divisor = a;
        }
        if (!(l->entries[i].said.what & LOG_OVERFLOW) || l->entries[i].said.what & LOG_STATUS)
            return;
    }
    if (runs < 2 || divisor < 2)
        return;
    l->copies = divisor;
    for (size_t i = 0; i < l->count; i += divisor) {
        log_entry e = l->entries[i];
        e.last_line = l->entries[i + divisor - 1].last_line;
        e.last_seq = l->entries[i + divisor - 1].last_seq;
        l->entries[kept++] = e;
    }
    l->count = kept;
}
