/* traininglog.c -- see traininglog.h. What becomes of a part of a log, which logtext.c cuts:
 *
 *     part -+- of a rank that does not count -----------> only what ends or resumes the run, and whether ranks agree
 *           |
 *           +- lognote.c: a loss, a norm, a place ------> place, notes
 *           +- logline.c: a loss scale, an overflow ----> its step, then entries.c
 *           +- metric.c: other numbers by their names --> metrics
 *
 * Behind the last part logwalk.c makes the recorded track of the entries. The first line about a scale, or note, chooses the rank
 * that counts; phrases about overflows may be told by another one. */
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

/* ---- steps ---- */

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

/* The rank whose lines count: the first that tells something. Phrases about overflows and growth may be told by another one. */
static int is_of_other_rank(training_log *log, const log_line *l, int told, int64_t rank)
{
    int64_t *counts = l && l->rule >= 0 ? &log->event_rank : &log->rank;
    if (*counts < 0 && told)
        *counts = rank;
    return rank >= 0 && rank != *counts;
}

/* Where the run stands behind a note. */
static void place_note(training_log *log, const log_note *n, int noted)
{
    log_line at = {.step = n->batch};
    if (noted)
        follow_place(&log->place, n);
    log->about = n->step >= 0 ? n->step : log->about;
    if (n->batch < 0)
        return;
    number_steps(log, &at, n);
    log->about = at.step;
}

/* What a part tells besides a scale, once; `values`: numbers by their names are read, too. */
static void take_values(training_log *log, log_note *n, int told, int values, const char *masked)
{
    if (told && is_doubled(log, n)) {
        log->doubled++;
        return;
    }
    if (told)
        take_note(log, n);
    if (values)
        traininglog_metric_values_take(&log->metrics, masked, log->line, log->about);
    log->has_value |= log->metrics.count > 0;
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
    const int other = is_of_other_rank(log, found ? &l : NULL, found || noted, rank);
    if (found) {
        log->total++;
        log->recognised[l.dialect]++;
    }
    follow_ranks(log, found ? &l : NULL, &n, rank);
    if (other)
        return take_other_rank(log, &n, found);
    place_note(log, &n, noted);
    if (found)
        place_line(log, &l, &n);
    take_values(log, &n, found || noted, !found || l.rule < 0, masked);
    if (found)
        traininglog_entry_take(log, &l, masked);
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

static void name_unread(training_log *l)
{
    const char *name;
    l->metrics.lossless = 1;
    for (size_t i = 0; i < l->notes.count; i++)
        l->metrics.lossless &= !l->notes.at[i].loss && !l->notes.at[i].validation;
    for (l->n_unread = 0; (name = traininglog_metric_unread(&l->metrics, l->n_unread)) != NULL; l->n_unread++)
        text_add(l->unread, sizeof l->unread, "%s%s", l->n_unread ? ", " : "", name);
}

/* Nothing is known yet. */
static void begin(training_log *l, const log_pattern *own)
{
    *l = (training_log){.own = own,
                        .epoch = -1,
                        .last_step = -1,
                        .about = -1,
                        .rank = -1,
                        .event_rank = -1,
                        .skipped = -1,
                        .place = {.of = -1, .step = -1}};
}

static void begin_track(track *t)
{
    const mpsim_scaler_config *any = &mpsim_scaler_find("static")->config;
    (void)traininglog_track_init(t, "recorded", any); /* a row of the table is valid */
    t->recorded = 1;
    t->least = (double)INFINITY;
    t->most = 0;
    t->last = (double)NAN;
}

/* All lines have been read. 0, or an exit code after a message. */
static int end(training_log *l, const char *name)
{
    if (!l->full && l->total == 0 && !l->has_value)
        return fail(
            EXIT_DATA,
            "%s: no line about a loss scale, a loss or a norm in %" PRIu64 " lines: known lines are those of Apex, "
            "DeepSpeed, Megatron and fairseq, 'step 12 scale 65536 skipped 0', 'loss: 2.3', and CSV with a header",
            name, l->reader.lines);
    traininglog_entries_thin(l);
    traininglog_metric_values_sort(&l->metrics);
    name_unread(l);
    begin_track(&l->recorded);
    if (l->full)
        return fail(EXIT_DATA, "%s: more than %d changes of the loss scale", name, ENTRIES_MAX);
    traininglog_walk(l);
    return 0;
}

int traininglog_training_log_read(training_log *l, const char *path, const log_pattern *own)
{
    char name[512];
    begin(l, own);
    escape_text(name, sizeof name, strcmp(path, "-") == 0 ? "standard input" : path);
    log_text *t = need_memory(1, sizeof *t);
    *t = (log_text){
        .reader = &l->reader, .measures = is_measuring, .is_event = is_event, .visit = take_part, .context = l};
    const int code = traininglog_text_read(t, path, name);
    free(t);
    return code ? code : end(l, name);
}

void traininglog_training_log_clear(training_log *l)
{
    free(l->entries);
    free(l->jumps);
    traininglog_notes_clear(&l->notes);
    free(l->metrics.at);
    traininglog_track_clear(&l->recorded);
}
