/* traininglog.c -- see traininglog.h. */
#include "traininglog.h"

#include "impl.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../text/escape.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* RECENT: how far back a line of another process, which comes late, may lie. */
enum { ENTRIES_MAX = 1 << 20, RECENT = 8 };

/* ---- lines to entries ---- */

static int same_or_unknown(double a, double b)
{
    return a == b || isnan(a) || isnan(b);
}

/* Whether a line tells more of the overflow that the entry before it told: several phrases of one
 * event, of which one at least is a detail. */
static int is_detail(const log_entry *e, const log_line *l)
{
    return (e->said.what & l->what & LOG_OVERFLOW) && ((e->said.what | l->what) & LOG_DETAIL) && l->rule >= 0 &&
           !(e->rules >> l->rule & 1) && e->said.dialect == l->dialect && same_or_unknown(e->said.before, l->before) &&
           same_or_unknown(e->said.after, l->after);
}

static void add_detail(log_entry *e, const log_line *l)
{
    e->rules |= 1u << l->rule;
    e->said.before = isnan(l->before) ? e->said.before : l->before;
    e->said.after = isnan(l->after) ? e->said.after : l->after;
    if (l->step >= 0)
        e->said.step = e->to = l->step;
    e->said.what |= l->what & LOG_STOP;
}

/* One more line about an entry. */
static void add_line(const training_log *log, log_entry *e)
{
    e->last_line = log->line;
    e->last_seq = log->seq;
}

/* Whether a status says what the one before it says, a step later. */
static int is_more_of(const log_entry *e, const log_line *l)
{
    return e->said.what == l->what && l->what & LOG_STATUS && e->said.skipped == 0 && l->skipped == 0 &&
           e->said.after == l->after && e->said.dialect == l->dialect && l->tracker >= e->tracker &&
           (l->step < 0 ? e->to < 0 : e->to >= 0 && l->step > e->to);
}

/* Whether the line says again what the entry says: of the same step, or the same change of a scale
 * that is no longer the one before it, or one more phrase about it, as each process prints it. */
static int is_repeated(const log_entry *e, const log_line *l, uint64_t seq)
{
    if (e->said.what != l->what || e->said.dialect != l->dialect || !same_or_unknown(e->said.after, l->after) ||
        !same_or_unknown(e->said.before, l->before))
        return (e->said.what & l->what & LOG_OVERFLOW) && l->rule >= 0 && e->rules >> l->rule & 1 &&
               (e->said.what | l->what) & LOG_DETAIL && same_or_unknown(e->said.before, l->before) &&
               same_or_unknown(e->said.after, l->after) && (l->step < 0 || e->to == l->step);
    if (l->step >= 0)
        return e->to == l->step;
    const int changes = l->what & LOG_OVERFLOW ? l->before > l->after : l->before < l->after;
    return l->what & (LOG_OVERFLOW | LOG_GROWTH) && l->rank < 0 && changes && seq < e->last_seq + RECENT;
}

/* Whether one of the last entries says the same of an earlier step, at another scale than now: a
 * line of another process that comes late. */
static int is_late(const training_log *log, const log_line *l)
{
    for (size_t i = 1; i < RECENT && i < log->count && l->what & LOG_STATUS && l->step >= 0; i++) {
        const log_entry *e = &log->entries[log->count - 1 - i];
        if (e->said.what == l->what && e->said.step <= l->step && e->to >= l->step)
            return e->said.after == l->after && log->entries[log->count - 1].said.after != l->after;
    }
    return 0;
}

static void add_entry(training_log *log, const log_line *l)
{
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

/* Steps that count the batches of an epoch go on where the last epoch ended. */
static void number_steps(training_log *log, log_line *l, const log_note *n)
{
    if (l->step < 0)
        return;
    if (n->epoch > log->epoch && log->epoch >= 0 && l->step + log->step_base <= log->last_step)
        log->step_base = log->last_step + 1 - (l->step > 0);
    if (n->epoch >= 0)
        log->epoch = n->epoch;
    l->step += l->step < INT64_MAX / 2 ? log->step_base : 0;
    log->last_step = l->step;
}

/* Where the run stands, for the scales whose lines do not say it: by the bar that counts furthest,
 * or by steps in words, whichever came first. */
static void follow_place(log_line_place *at, const log_note *n)
{
    const int kind = n->worded ? 2 : 1;
    if (n->step < 0 || (at->kind && at->kind != kind) || n->of < at->of)
        return;
    at->fresh = at->kind == 0 || n->step != at->step;
    at->back |= n->step < at->step;
    at->kind = kind;
    at->of = n->of;
    at->step = n->step;
}

/* A scale without a step takes that place, if no other has it; counted on where it begins again, as
 * the bar of an epoch does. */
static void adopt_step(log_line_place *at, log_line *l, const log_entry *last)
{
    if (l->step < 0 && l->what & LOG_STATUS && !at->fresh && last && last->to == at->last &&
        last->said.after == l->after && last->said.what == l->what)
        l->step = at->last; /* the same line of another process */
    if (l->step >= 0 || !(l->what & LOG_STATUS) || !at->fresh)
        return;
    if (at->back)
        at->base = at->last + (at->step == 0);
    at->fresh = at->back = 0;
    if (at->step < INT64_MAX / 4 && at->base < INT64_MAX / 4)
        at->last = l->step = at->base + at->step;
}

/* A line with a loss that is not finite. */
static void count_lost(training_log *log)
{
    log->lost_lines++;
    log->lost = log->lost_since ? log->lost : log->line;
    log->lost_since = 1;
}

/* A message that the norm is not finite, and the line of values that says so, too, are one. */
static void count_lost_norm(training_log *log, log_note *n)
{
    log_note *last = log->notes.count ? &log->notes.at[log->notes.count - 1] : NULL;
    if (n->norm <= VALUE_FINITE)
        return;
    if (last && n->marks & last->marks & NOTE_TENSOR)
        n->norm = VALUE_UNSAID;
    else if (last && last->norm > VALUE_FINITE && last->marks & NOTE_LOST_NORM)
        last->norm = VALUE_UNSAID;
    else if (last && last->norm > VALUE_FINITE && n->marks & NOTE_LOST_NORM)
        n->norm = VALUE_UNSAID;
    else
        log->lost_norms++;
}

/* What the lines of the rank that counts say of the loss, the norm, where the run stands. */
static void take_note(training_log *log, log_note *n)
{
    n->line = log->line;
    n->seq = log->seq;
    n->about = log->about;
    if (n->loss == VALUE_FINITE)
        log->lost_since = 0;
    else if (n->loss != VALUE_UNSAID)
        count_lost(log);
    log->has_value |= n->loss || n->norm || n->validation || n->skipped >= 0;
    count_lost_norm(log, n);
    log->lost_validations += n->validation > VALUE_FINITE;
    traininglog_notes_add(&log->notes, n);
}

/* Megatron prints no loss where it is NaN: a line of a step that was not skipped, without the loss
 * that those before had. */
static int is_loss_gone(training_log *log, const log_line *l, const log_note *n)
{
    const log_entry *last = log->count ? &log->entries[log->count - 1] : NULL;
    const int falls = last && l->after < last->said.after;
    if (!n->timed || !(l->what & LOG_STATUS))
        return 0;
    log->has_loss |= n->loss == VALUE_FINITE;
    return log->has_loss && n->loss == VALUE_UNSAID && l->skipped == 0 && !falls;
}

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

/* A line about the loss scale. */
static void take_scale_line(training_log *log, log_line *l, const char *text)
{
    log_entry *last = log->count ? &log->entries[log->count - 1] : NULL;
    if (log->base == 0 && l->after > 0 && !l->average)
        log->base = l->after;
    if (is_off_chain(log->base, l->after) && l->what & LOG_STATUS)
        l->average |= l->after != floor(l->after) || l->rounded;
    else
        l->bad |= is_off_chain(log->base, l->after) || is_off_chain(log->base, l->before);
    log->last_bad = l->bad || (log->unterminated && is_cut_short(log, l, text));
    l->bad = log->last_bad;
    if (l->average)
        log->averages++;
    else if (l->bad || (l->what == LOG_STATUS && isnan(l->after)))
        log->bad++;
    else if (l->scaler != log->scaler)
        log->other_scalers++;
    else if (last && is_detail(last, l)) {
        add_detail(last, l);
        add_line(log, last);
    } else if (last && is_repeated(last, l, log->seq)) {
        log->repeats++;
        add_line(log, last);
    } else if (is_late(log, l)) {
        log->repeats++;
    } else if (last && is_more_of(last, l)) {
        last->to = l->step;
        last->tracker = l->tracker;
        add_line(log, last);
        last->n++;
    } else if (log->count == ENTRIES_MAX)
        log->full = 1;
    else
        add_entry(log, l);
    if (l->bad && l->what & LOG_OVERFLOW)
        log->unread_line = log->line;
    log->numbered |= l->what & LOG_STATUS && l->step >= 0;
}

/* ---- ranks ---- */

static void compare_ranks(log_apart *apart, const log_rank_line *first, const log_rank_line *line, double x, double y)
{
    if (isnan(x) || isnan(y) || x == y)
        return;
    if (!apart->lines++)
        *apart = (log_apart){1, line->line, line->step, first->rank, line->rank, x, y};
}

/* What a rank tells of a step, beside what the rank that counts has told of that step, or the other way round. */
static void follow_ranks(training_log *log, const log_line *l, const log_note *n, int64_t rank)
{
    const int status = l && l->what & LOG_STATUS && !l->bad && !l->average;
    const log_rank_line new = {.line = log->line,
                               .step = n->step,
                               .rank = rank,
                               .scale = status ? l->after : (double)NAN,
                               .loss = n->loss == VALUE_FINITE ? n->loss_value : (double)NAN};
    if (rank < 0 || n->step < 0)
        return;
    for (uint64_t i = 0; i < RANK_LINES && i < log->n_rank_lines; i++) {
        const log_rank_line *old = &log->rank_lines[i];
        if (old->step != new.step || (old->rank == log->rank) == (rank == log->rank))
            continue;
        compare_ranks(&log->apart, old, &new, old->scale, new.scale);
        compare_ranks(&log->losses_apart, old, &new, old->loss, new.loss);
    }
    log->rank_lines[log->n_rank_lines++ % RANK_LINES] = new;
}

/* ---- parts of the log ---- */

/* Whether both are the same finite number, or unsaid. */
static int same_value(value_kind a, double x, value_kind b, double y)
{
    return a == b && (a == VALUE_UNSAID || (a == VALUE_FINITE && x == y));
}

/* Whether the note before says the same of the same step, and no other line stands between, as where two handlers print each
 * line, or several processes without their rank. */
static int is_doubled(training_log *log, const log_note *n)
{
    const log_note *old = log->notes.count ? &log->notes.at[log->notes.count - 1] : NULL;
    const uint64_t told = log->told;
    log->told = log->seq;
    return old && told + 1 >= log->seq && n->step >= 0 && old->step == n->step && old->epoch == n->epoch &&
           old->marks == n->marks && (n->loss || n->norm || n->validation) &&
           same_value(old->loss, old->loss_value, n->loss, n->loss_value) &&
           same_value(old->norm, old->norm_value, n->norm, n->norm_value) &&
           same_value(old->validation, old->validation_value, n->validation, n->validation_value);
}

/* Of a line of another rank what ends or resumes the run counts. */
static int take_other_rank(training_log *log, const log_note *n, int found)
{
    log_note marks = {.marks = n->marks,
                      .step = -1,
                      .batch = -1,
                      .of = -1,
                      .about = -1,
                      .epoch = -1,
                      .skipped = -1,
                      .starts = (double)NAN};
    log->other_ranks += found || n->loss || n->norm;
    log->other_lost += n->loss > VALUE_FINITE;
    if (marks.marks)
        take_note(log, &marks);
    return log->full;
}

/* A line about a loss scale: its step. */
static void place_line(training_log *log, log_line *l, log_note *n)
{
    if (log->total == 1)
        log->scaler = l->scaler;
    number_steps(log, l, n);
    adopt_step(&log->place, l, log->count ? &log->entries[log->count - 1] : NULL);
    if (is_loss_gone(log, l, n))
        n->loss = VALUE_GONE;
    if (n->skipped >= 0 && l->what == LOG_STATUS) { /* as many as since the last line that tells how many in all */
        l->what |= log->skipped >= 0 ? LOG_SKIPS : 0;
        l->skipped = log->skipped >= 0 && n->skipped > log->skipped ? (uint64_t)(n->skipped - log->skipped) : 0;
        log->skipped = n->skipped;
    }
    l->loss = n->loss;
}

/* A part of the log; `masked`, as it is measured. */
static int take_part(void *context, const log_part *p, const char *text, const char *masked)
{
    training_log *log = context;
    log_line l;
    log_note n;
    log->line = p->line;
    log->seq = p->seq;
    log->unterminated = p->cut;
    const int noted = traininglog_note_parse(&n, masked, text);
    const int found = (log->own && traininglog_pattern_match(log->own, &l, &n, text)) ||
                      traininglog_line_parse(&l, masked);
    const int64_t rank = found && l.rank >= 0 ? l.rank : traininglog_line_rank(masked);
    int64_t *counts = found && l.rule >= 0 ? &log->event_rank : &log->rank; /* events may be told by another one */
    if (*counts < 0 && (found || noted))
        *counts = rank;
    if (found) {
        log->total++;
        log->recognised[l.dialect]++;
    }
    follow_ranks(log, found ? &l : NULL, &n, rank);
    if (rank >= 0 && rank != *counts)
        return take_other_rank(log, &n, found);
    if (noted)
        follow_place(&log->place, &n);
    log->about = n.step >= 0 ? n.step : log->about;
    if (n.batch >= 0) {
        log_line at = {.step = n.batch};
        number_steps(log, &at, &n);
        log->about = at.step;
    }
    if (found)
        place_line(log, &l, &n);
    const int doubled = (noted || found) && is_doubled(log, &n);
    log->doubled += (uint64_t)doubled;
    if ((noted || found) && !doubled)
        take_note(log, &n);
    if ((!found || l.rule < 0) && !doubled)
        traininglog_metric_values_take(&log->metrics, masked, log->line, log->about);
    log->has_value |= log->metrics.count > 0;
    if (found)
        take_scale_line(log, &l, masked);
    return log->full;
}

/* Whether a line has a number that is read. */
static int is_measuring(const char *text)
{
    log_line l;
    log_note n;
    (void)traininglog_note_parse(&n, text, text);
    return n.loss || n.norm || n.validation || (traininglog_line_parse(&l, text) && l.what & LOG_STATUS) ||
           traininglog_metric_is_in(text);
}

/* Whether a line tells an overflow, or a growth, in a fixed phrase. */
static int is_event(const char *text)
{
    log_line l;
    return traininglog_line_parse(&l, text) && l.rule >= 0;
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
static void drop_copies(training_log *l)
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

static void name_unread(training_log *l)
{
    const char *name;
    l->metrics.lossless = 1;
    for (size_t i = 0; i < l->notes.count; i++)
        l->metrics.lossless &= !l->notes.at[i].loss && !l->notes.at[i].validation;
    for (l->n_unread = 0; (name = traininglog_metric_unread(&l->metrics, l->n_unread)) != NULL; l->n_unread++)
        text_add(l->unread, sizeof l->unread, "%s%s", l->n_unread ? ", " : "", name);
}

int traininglog_training_log_read(training_log *l, const char *path, const log_pattern *own)
{
    char name[512];
    memset(l, 0, sizeof *l);
    l->own = own;
    l->epoch = -1;
    l->last_step = -1;
    l->about = -1;
    l->rank = l->event_rank = -1;
    l->skipped = -1;
    l->place = (log_line_place){.of = -1, .step = -1};
    escape_text(name, sizeof name, strcmp(path, "-") == 0 ? "standard input" : path);
    log_text *t = need_memory(1, sizeof *t);
    *t = (log_text){
        .reader = &l->reader, .measures = is_measuring, .is_event = is_event, .visit = take_part, .context = l};
    const int code = traininglog_text_read(t, path, name);
    free(t);
    const mpsim_scaler_config *any = &mpsim_scaler_find("static")->config;
    if (code)
        return code;
    if (!l->full && l->total == 0 && !l->has_value)
        return fail(
            EXIT_DATA,
            "%s: no line about a loss scale, a loss or a norm in %" PRIu64 " lines: known are those of Apex, "
            "DeepSpeed, Megatron and fairseq, 'step 12 scale 65536 skipped 0', 'loss: 2.3', and CSV with a header",
            name, l->reader.lines);
    drop_copies(l);
    traininglog_metric_values_sort(&l->metrics);
    name_unread(l);
    (void)traininglog_track_init(&l->recorded, "recorded", any); /* a row of the table is valid */
    l->recorded.recorded = 1;
    l->recorded.least = (double)INFINITY;
    l->recorded.most = 0;
    l->recorded.last = (double)NAN;
    if (l->full)
        return fail(EXIT_DATA, "%s: more than %d changes of the loss scale", name, ENTRIES_MAX);
    traininglog_walk(l);
    return 0;
}

void traininglog_training_log_clear(training_log *l)
{
    free(l->entries);
    free(l->jumps);
    traininglog_notes_clear(&l->notes);
    free(l->metrics.at);
    traininglog_track_clear(&l->recorded);
}
