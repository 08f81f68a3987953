/* record.c -- see record.h. */
#include "record.h"

#include "../array/need.h"
#include "table.h"

#include <stdlib.h>

/* ---- runs of steps ---- */

/* By bits: MPSIM_SCALER_*, then what a log shows beside the scaler's own events. */
static const char *const events[] = {
    "overflow", "skipped", "backoff", "growth", "tolerated", "floored", "ceiling", "refused", "raised",   "",    "",
    "",         "",        "",        "",       "",          "jump",    "restart", "mixed",   "inferred", "gap", NULL};

#define AT(member) offsetof(track_loss, member)
static const record_field loss_fields[] = {
    FIELD(COUNT, "elements", IN_ALL, AT(elements), "Gradient elements, a sum over the steps."),
    FIELD(COUNT, "lost", IN_ALL, AT(lost), "Elements that are not 0, and are 0 once scaled and rounded."),
    FIELD(COUNT, "overflowed", IN_ALL, AT(overflowed),
          "Elements that are finite as recorded, and are not once scaled and rounded."),
    FIELD(COUNT, "not_finite", IN_ALL, AT(not_finite), "Elements that are Inf or NaN as recorded."),
    {0}};
#undef AT
static const record_kind loss_record = {"loss", NULL, sizeof(track_loss), loss_fields};

#define AT(member) offsetof(span, member)
static const record_field span_fields[] = {
    FIELD(STEP, "from", IN_ALL | FIELD_NULL, AT(from),
          "The number of the first step; null: the steps have no numbers."),
    FIELD(STEP, "to", IN_ALL | FIELD_NULL, AT(to), "The number of the last step."),
    FIELD(COUNT, "steps", IN_ALL, AT(steps), "How many steps there are."),
    FIELD(REAL, "scale", IN_ALL, AT(scale), "The scale in force; NaN: unknown."),
    FIELD(REAL, "next", IN_ALL, AT(next), "The scale after the last step; NaN: unknown."),
    FIELD(SET, "events", IN_ALL, AT(events), "What happened in each step.", .words = events),
    FIELD(RECORD, "", IN_CSV | FIELD_INLINE, AT(loss), NULL, .record = &loss_record),
    FIELD(REAL, "fits", IN_CSV, AT(fits), NULL),
    FIELD(REAL, "fits", IN_TREE | FIELD_OPTIONAL, AT(fits),
          "The largest power of two that all steps would have taken; Infinity: any, 0: none. Left out: unknown."),
    {0}};
#undef AT
static const record_kind span_record = {"span", NULL, sizeof(span), span_fields};

typedef struct span_row {
    const char *scaler;
    int64_t index;
    const span *s;
    const track_loss *loss; /* NULL: no gradient is known */
} span_row;

#define AT(member) offsetof(span_row, member)
static const record_field row_fields[] = {
    FIELD(TEXT, "scaler", IN_LINE | IN_CSV, AT(scaler), "The scaler with its changes; recorded: that of a log."),
    FIELD(STEP, "index", IN_ALL | FIELD_NULL, AT(index),
          "Steps before the first, counted; null: the log does not tell."),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(s), NULL, .record = &span_record),
    FIELD(RECORD, "", IN_TREE | FIELD_INLINE | FIELD_POINTER | FIELD_OPTIONAL, AT(loss), NULL, .record = &loss_record),
    {0}};
#undef AT
static const record_kind row_record = {"run", "Steps that follow each other with the same events at the same scale.",
                                       sizeof(span_row), row_fields};

/* ---- scalers ---- */

#define AT(member) offsetof(log_evidence, member)
static const record_field evidence_fields[] = {
    FIELD(COUNT, "line", IN_JSON, AT(line), NULL),
    FIELD(COUNT, "last_line", IN_JSON, AT(last_line), NULL),
    FIELD(CHARS, "says", IN_JSON, AT(says), "What the lines tell, for people."),
    {0}};
#undef AT
static const record_kind evidence_record = {"evidence", NULL, sizeof(log_evidence), evidence_fields};

typedef struct judgement_row {
    const char *class;
    confidence sure;
    const log_evidence *evidence;
    size_t count;
    const char *missing, *advice;
} judgement_row;

#define AT(member) offsetof(judgement_row, member)
static const record_field judgement_fields[] = {
    FIELD(TEXT, "class", IN_JSON, AT(class), "Of a log: the verdict in a word for programs."),
    FIELD(WORD, "confidence", IN_JSON, AT(sure), "Of a log: how sure the verdict is.",
          .words = traininglog_confidence_names),
    FIELD(LIST, "evidence", IN_JSON, AT(evidence), "Of a log: the lines that the verdict is based on.", .of = AT(count),
          .record = &evidence_record),
    FIELD(TEXT, "missing", IN_JSON | FIELD_NULL, AT(missing), "What the log would have to tell; null: nothing."),
    FIELD(TEXT, "advice", IN_JSON, AT(advice), "Of a log: what to do."),
    {0}};
#undef AT
static const record_kind judgement_record = {"judgement", NULL, sizeof(judgement_row), judgement_fields};

#define AT(member) offsetof(track, member)
static const record_field sums_fields[] = {
    FIELD(COUNT, "overflows", IN_JSON, AT(overflows), "Steps that overflow."),
    FIELD(COUNT, "skipped", IN_JSON, AT(skipped), "Steps that are skipped."),
    FIELD(COUNT, "taken", IN_JSON, AT(taken), "Steps taken in spite of an overflow."),
    FIELD(COUNT, "growths", IN_JSON, AT(growths), "How often the scale grows."),
    FIELD(COUNT, "backoffs", IN_JSON, AT(backoffs), "How often the scale backs off."),
    FIELD(COUNT, "tolerated", IN_JSON, AT(tolerated), "Overflows that change nothing."),
    FIELD(COUNT, "floored", IN_JSON, AT(floored), "How often the smallest scale holds the scale."),
    FIELD(COUNT, "refused", IN_JSON, AT(refused), "How often growth to infinity is refused."),
    FIELD(STEP, "stopped_at", IN_JSON | FIELD_NULL, AT(stop), "The step at which the framework stops with its error."),
    FIELD(REAL, "smallest_scale", IN_JSON, AT(least), NULL),
    FIELD(REAL, "largest_scale", IN_JSON, AT(most), NULL),
    FIELD(REAL, "last_scale", IN_JSON, AT(last), NULL),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE, AT(loss), NULL, .record = &loss_record),
    FIELD(COUNT, "recorded_steps", IN_JSON, AT(compared), "Steps recorded with a scale."),
    FIELD(COUNT, "recorded_agreed", IN_JSON, AT(agreed), "Of them, those recorded with the scale in force here."),
    FIELD(BOOLEAN, "truncated", IN_JSON, AT(truncated), "Whether the trajectory is cut; the sums hold all steps."),
    {0}};
#undef AT
static const record_kind sums_record = {"sums", NULL, sizeof(track), sums_fields};

typedef struct scaler_row {
    const track *t;
    const char *scaler;
    const mpsim_scaler_config *config; /* NULL: recorded */
    int64_t steps;
    verdict verdict;
    char why[1280];
    const judgement_row *judgement; /* of a log */
} scaler_row;

#define AT(member) offsetof(scaler_row, member)
static const record_field scaler_fields[] = {
    FIELD(TEXT, "scaler", IN_JSON, AT(scaler), "The scaler with its changes; recorded: that of a log."),
    FIELD(RECORD, "config", IN_JSON | FIELD_POINTER | FIELD_OPTIONAL, AT(config), "Of a simulated scaler.",
          .record = &scaler_config_record),
    FIELD(STEP, "steps", IN_JSON | FIELD_NULL, AT(steps), "How many steps there are; null: the log does not tell."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(t), NULL, .record = &sums_record),
    FIELD(WORD, "verdict", IN_JSON, AT(verdict), NULL, .words = traininglog_verdict_names),
    FIELD(CHARS, "why", IN_JSON, AT(why), "The verdict's reason for people."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER | FIELD_OPTIONAL, AT(judgement), NULL,
          .record = &judgement_record),
    FIELD(LIST, "trajectory", IN_JSON | FIELD_STREAM, 0, "Runs of steps with the same events at the same scale.",
          .record = &row_record),
    {0}};
#undef AT
static const record_kind scaler_record = {"scaler", NULL, sizeof(scaler_row), scaler_fields};

/* ---- a log ---- */

#define AT(dialect) ((dialect) * sizeof(uint64_t))
static const record_field dialect_fields[] = {FIELD(COUNT, "Apex", IN_JSON, AT(LOG_APEX), NULL),
                                              FIELD(COUNT, "DeepSpeed", IN_JSON, AT(LOG_DEEPSPEED), NULL),
                                              FIELD(COUNT, "Megatron", IN_JSON, AT(LOG_MEGATRON), NULL),
                                              FIELD(COUNT, "fairseq", IN_JSON, AT(LOG_FAIRSEQ), NULL),
                                              FIELD(COUNT, "names and values", IN_JSON, AT(LOG_VALUES), NULL),
                                              FIELD(COUNT, "other phrases", IN_JSON, AT(LOG_OTHERS), NULL),
                                              FIELD(COUNT, "own pattern", IN_JSON, AT(LOG_OWN), NULL),
                                              {0}};
#undef AT
static const record_kind dialect_record = {"dialects", NULL, LOG_DIALECTS * sizeof(uint64_t), dialect_fields};

#define AT(member) offsetof(log_jump, member)
static const record_field jump_fields[] = {
    FIELD(COUNT, "line", IN_JSON, AT(line), NULL),
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(step), "Null: the log does not tell."),
    FIELD(REAL, "from", IN_JSON, AT(from), "The scale before."),
    FIELD(REAL, "to", IN_JSON, AT(to), "The scale after."),
    FIELD(BOOLEAN, "restart", IN_JSON, AT(restart), "Whether the step numbers begin again."),
    {0}};
#undef AT
static const record_kind jump_record = {"jump", "A change of the scale that no line explains.", sizeof(log_jump),
                                        jump_fields};

#define AT(member) offsetof(log_apart, member)
static const record_field apart_fields[] = {
    FIELD(COUNT, "lines", IN_JSON, AT(lines), "Lines that differ from that of another rank."),
    FIELD(COUNT, "line", IN_JSON, AT(line), "The first of them."),
    FIELD(STEP, "step", IN_JSON, AT(step), NULL),
    FIELD(STEP, "rank", IN_JSON, AT(rank), "The rank that told the step first."),
    FIELD(STEP, "other_rank", IN_JSON, AT(other), "The rank of the line."),
    FIELD(REAL, "value", IN_JSON, AT(scale), "The number of the first rank."),
    FIELD(REAL, "other_value", IN_JSON, AT(other_scale), "The number in the line."),
    {0}};
#undef AT
static const record_kind apart_record = {"apart", "Ranks that tell other numbers of the same step.", sizeof(log_apart),
                                         apart_fields};

typedef struct match_row {
    const log_match *m;
    const char *scaler;
    int64_t step;
    const double *recorded, *computed; /* NULL: nothing differs */
} match_row;

#define AT(member) offsetof(log_match, member)
static const record_field agreement_fields[] = {
    FIELD(COUNT, "compared", IN_JSON, AT(compared), "Changes of the scale and overflows that are compared."),
    FIELD(COUNT, "agreed", IN_JSON, AT(agreed), "Of them, those that are as the scaler's rules have them."),
    {0}};
#undef AT
static const record_kind agreement_record = {"agreement", NULL, sizeof(log_match), agreement_fields};

#define AT(member) offsetof(match_row, member)
static const record_field match_fields[] = {
    FIELD(TEXT, "scaler", IN_JSON, AT(scaler), NULL),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(m), NULL, .record = &agreement_record),
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(step),
          "The first step that differs; null: none, or its number is unknown."),
    FIELD(REAL, "recorded", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(recorded), "The recorded scale there."),
    FIELD(REAL, "computed", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(computed), "The scale by the scaler's rules."),
    {0}};
#undef AT
static const record_kind match_record = {"match", "A scaler's rules beside the log.", sizeof(match_row), match_fields};

#define AT(member) offsetof(sample, member)
static const record_field norm_fields[] = {
    FIELD(STEP, "step", IN_JSON, AT(step), NULL), FIELD(REAL, "norm", IN_JSON, AT(value), NULL), {0}};
#undef AT
static const record_kind norm_record = {"norm", NULL, sizeof(sample), norm_fields};

#define AT(member) offsetof(training_log, member)
static const record_field lines_fields[] = {
    FIELD(COUNT, "lines", IN_JSON, AT(reader.lines), "Lines that are not empty."),
    FIELD(COUNT, "recognised", IN_JSON, AT(total), "Lines that tell of the loss scale."),
    FIELD(RECORD, "dialects", IN_JSON, AT(recognised), "Recognised lines of each dialect.", .record = &dialect_record),
    FIELD(COUNT, "copies", IN_JSON, AT(copies), "How often each event is in the log, since each rank logs it."),
    FIELD(COUNT, "other_ranks", IN_JSON, AT(other_ranks), "Lines of other ranks, which are left out."),
    FIELD(COUNT, "without_scale", IN_JSON, AT(bad), "Lines that name a scale and have no usable one."),
    FIELD(COUNT, "averages", IN_JSON, AT(averages), "Lines with a mean of several scales, which are left out."),
    FIELD(COUNT, "cut", IN_JSON, AT(reader.cut), "Lines that are too long, of which only the beginning is read."),
    {0}};
static const record_field loss_line_fields[] = {
    FIELD(COUNT, "loss_not_finite", IN_JSON, AT(lost_lines), "Lines whose loss is Inf or NaN."), {0}};
static const record_field jumps_fields[] = {
    FIELD(COUNT, "restarts", IN_JSON, AT(restarts), "How often the step numbers begin again."),
    FIELD(LIST, "jumps", IN_JSON, AT(jumps), "Changes of the scale that no line explains.", .of = AT(n_jumps),
          .record = &jump_record),
    {0}};
#undef AT
static const record_kind lines_record = {"lines", NULL, sizeof(training_log), lines_fields};
static const record_kind loss_line_record = {"loss_lines", NULL, sizeof(training_log), loss_line_fields};
static const record_kind jumps_record = {"jumps", NULL, sizeof(training_log), jumps_fields};

typedef struct log_part {
    const training_log *l;
    const char *file;
    const char **unread;
    size_t n_unread;
    const log_apart *apart, *losses_apart; /* NULL: the ranks agree */
    int64_t lost_since;
    match_row *matches;
    size_t n_matches;
    series norms;
} log_part;

enum { OF_LOG = IN_JSON | FIELD_INLINE | FIELD_POINTER };
#define AT(member) offsetof(log_part, member)
static const record_field log_fields[] = {
    FIELD(TEXT, "file", IN_JSON, AT(file), NULL),
    FIELD(RECORD, "", OF_LOG, AT(l), NULL, .record = &lines_record),
    FIELD(TEXTS, "unread", IN_JSON, AT(unread),
          "Names of numbers that several lines tell and that are not read, since nothing is known of the names.",
          .of = AT(n_unread)),
    FIELD(RECORD, "scales_apart", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(apart),
          "The first step at which two ranks tell other loss scales; null: none.", .record = &apart_record),
    FIELD(RECORD, "losses_apart", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(losses_apart),
          "The first step at which two ranks tell other losses; null: none.", .record = &apart_record),
    FIELD(RECORD, "", OF_LOG, AT(l), NULL, .record = &loss_line_record),
    FIELD(STEP, "loss_not_finite_since", IN_JSON | FIELD_NULL, AT(lost_since),
          "The first line of those without a finite loss that end the log; null: none."),
    FIELD(RECORD, "", OF_LOG, AT(l), NULL, .record = &jumps_record),
    FIELD(LIST, "matches", IN_JSON, AT(matches), "Scalers' rules beside the log, the best first.", .of = AT(n_matches),
          .record = &match_record),
    FIELD(LIST, "norms", IN_JSON, AT(norms.at), "Norms of the gradients that are finite and whose line tells the step.",
          .of = AT(norms.n), .record = &norm_record),
    {0}};
#undef AT
static const record_kind log_record = {"log", "What the lines of a log tell.", sizeof(log_part), log_fields};

/* ---- a trace ---- */

#define AT(member) offsetof(recorded_step, member)
static const record_field step_fields[] = {
    FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(number), "Null: the files do not tell."),
    FIELD(SIZE, "files", IN_JSON, AT(files), NULL),
    FIELD(COUNT, "elements", IN_JSON, AT(counts.elements), "Gradient elements."),
    FIELD(COUNT, "not_finite", IN_JSON, AT(counts.not_finite), "Elements that are Inf or NaN as recorded."),
    FIELD(REAL, "recorded_scale", IN_JSON | FIELD_NULL, AT(scale),
          "What the gradients were multiplied by when they were recorded; null: the files do not tell."),
    FIELD(REAL, "amax", IN_JSON, AT(amax), "The largest magnitude of a finite gradient, unscaled."),
    FIELD(REAL, "fits", IN_JSON, AT(fits), "The largest power of two that the step would have taken without overflow."),
    FIELD(CHARS, "largest_in", IN_JSON, AT(worst), "The tensor that has Inf or NaN, otherwise the one that has amax."),
    FIELD(BOOLEAN, "record_contradicts", IN_JSON, AT(contradicts),
          "Whether the step, rounded, overflows at a scale at which it was recorded clean."),
    {0}};
#undef AT
static const record_kind step_record = {"step", NULL, sizeof(recorded_step), step_fields};

typedef struct trace_part {
    const scalerrun *run;
    const char *format;
    const char **names;
    size_t count;
    int failed;
} trace_part;

#define AT(member) offsetof(scalerrun, member)
static const record_field run_fields[] = {
    FIELD(COUNT, "binary32_tensors", IN_JSON, AT(in_wide), "Gradient tensors that the run had in binary32."),
    FIELD(COUNT, "roundoff", IN_JSON, AT(roundoff),
          "Elements of gradients that are nothing but rounding, in all steps, which do not count as lost."),
    FIELD(COUNT, "repeat", IN_JSON, AT(repeat), "How often the steps are run through."),
    {0}};
#undef AT
static const record_kind run_record = {"run_config", NULL, sizeof(scalerrun), run_fields};

#define AT(member) offsetof(trace_part, member)
static const record_field trace_fields[] = {
    FIELD(TEXT, "format", IN_JSON, AT(format), "What gradients are rounded to."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(run), NULL, .record = &run_record),
    FIELD(TEXTS, "binary32_names", IN_JSON, AT(names), "Names of the tensors that the run had in binary32.",
          .of = AT(count)),
    FIELD(INTEGER, "failed_files", IN_JSON, AT(failed), NULL),
    {0}};
#undef AT
static const record_kind trace_record = {"trace", NULL, sizeof(trace_part), trace_fields};

/* ---- the report ---- */

typedef struct config_part {
    const char *input;
    const char *const *inputs;
    size_t count;
    const char *pattern;
    const trace_part *trace; /* or NULL */
} config_part;

static const char *const kinds[] = {"log", "pattern", "trace", NULL};

#define AT(member) offsetof(config_part, member)
static const record_field config_fields[] = {
    FIELD(TEXT, "input", IN_JSON, AT(input), NULL, .words = kinds),
    FIELD(TEXTS, "inputs", IN_JSON, AT(inputs), "Files.", .of = AT(count)),
    FIELD(TEXT, "pattern", IN_JSON | FIELD_OPTIONAL, AT(pattern), "The pattern of overflows as it was given."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER | FIELD_OPTIONAL, AT(trace), NULL,
          .record = &trace_record),
    {0}};
#undef AT
static const record_kind config_record = {"settings", "What the command line says.", sizeof(config_part),
                                          config_fields};

typedef struct document {
    config_part config;
    const log_part *log;
    const recorded_step *steps;
    size_t count;
    const unread_list *unread;
} document;

#define AT(member) offsetof(document, member)
static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, AT(config), NULL, .record = &config_record),
    FIELD(RECORD, "log", IN_JSON | FIELD_POINTER | FIELD_OPTIONAL, AT(log), NULL, .record = &log_record),
    FIELD(LIST, "steps", IN_JSON | FIELD_OPTIONAL, AT(steps), "The steps of a trace.", .of = AT(count),
          .record = &step_record),
    FIELD(LIST, "scalers", IN_JSON | FIELD_STREAM, 0, NULL, .record = &scaler_record),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER | FIELD_OPTIONAL, AT(unread), NULL,
          .record = &unread_list_record),
    {0}};
#undef AT
static const record_kind document_record = {"document", NULL, sizeof(document), document_fields};
const report_kind scaler_kind = {
    "mpsim.scaler/1", "mpsim scaler: loss scalers",
    "The course of loss scales over a trace, a pattern of overflows, or a log. $defs/line is a line of --ndjson, which names "
    "no schema.",
    &document_record};

/* ---- what is in it ---- */

static span_row row_of_span(const track *t, size_t i)
{
    const span *s = &t->spans[i];
    return (span_row){t->label, t->unknown_steps ? -1 : (int64_t)s->first, s, s->loss.elements ? &s->loss : NULL};
}

static void write_track(record_writer *w, const scaler_report *r, const track *t)
{
    const log_judgement *j = r->judgement;
    judgement_row judged;
    scaler_row row = {.t = t, .scaler = t->label};
    row.steps = t->unknown_steps ? -1 : (int64_t)t->steps;
    row.verdict = scaler_verdict(r, t, row.why, sizeof row.why);
    if (t->recorded) {
        judged =
            (judgement_row){traininglog_class(j->verdict), j->sure, j->evidence, j->n_evidence, j->missing, j->advice};
        judged.missing = *j->missing ? j->missing : NULL;
        row.judgement = &judged;
    } else {
        row.config = &t->scaler.config;
    }
    record_open(w, &row);
    for (size_t i = 0; i < t->count; i++) {
        const span_row steps = row_of_span(t, i);
        record_row(w, &steps);
    }
    record_close(w, &row);
}

/* The finite ones of which the step is told. */
static void find_norms(series *norms, const training_log *l)
{
    size_t kept = 0;
    traininglog_series_find(norms, l, SERIES_NORM);
    for (size_t i = 0; i < norms->n; i++)
        if (norms->at[i].step >= 0)
            norms->at[kept++] = norms->at[i];
    norms->n = kept;
}

static void fill_matches(log_part *p, const scaler_report *r)
{
    p->n_matches = r->n_matches;
    p->matches = need_memory(r->n_matches, sizeof *p->matches);
    for (size_t i = 0; i < r->n_matches; i++) {
        const log_match *m = &r->matches[i];
        p->matches[i] = (match_row){m, m->label, m->at ? m->step : -1, m->at ? &m->recorded : NULL,
                                    m->at ? &m->computed : NULL};
    }
}

static void fill_unread(log_part *p, const metric_values *m)
{
    while (traininglog_metric_unread(m, p->n_unread))
        p->n_unread++;
    p->unread = need_memory(p->n_unread, sizeof *p->unread);
    for (size_t i = 0; i < p->n_unread; i++)
        p->unread[i] = traininglog_metric_unread(m, i);
}

static void fill_log(log_part *p, const scaler_report *r)
{
    const training_log *l = r->log;
    *p = (log_part){.l = l,
                    .file = r->log_path,
                    .apart = l->apart.lines ? &l->apart : NULL,
                    .losses_apart = l->losses_apart.lines ? &l->losses_apart : NULL,
                    .lost_since = l->lost_since ? (int64_t)l->lost : -1};
    fill_unread(p, &l->metrics);
    fill_matches(p, r);
    find_norms(&p->norms, l);
}

static void clear_log(log_part *p)
{
    free(p->unread);
    free(p->matches);
    traininglog_series_clear(&p->norms);
}

static void write_log(record_writer *w, document *d, const scaler_report *r)
{
    log_part part;
    fill_log(&part, r);
    d->log = &part;
    d->config = (config_part){.input = "log", .inputs = &r->log_path, .count = 1};
    record_begin(w);
    write_track(w, r, &r->log->recorded);
    record_end(w);
    clear_log(&part);
}

static void write_tracks(record_writer *w, const scaler_report *r)
{
    record_begin(w);
    for (size_t i = 0; i < r->run->count; i++)
        write_track(w, r, &r->run->tracks[i]);
    record_end(w);
}

static void write_pattern(record_writer *w, document *d, const scaler_report *r)
{
    const int is_file = r->pattern[0] == '@';
    const char *file = r->pattern + is_file;
    d->config = (config_part){.input = "pattern", .inputs = &file, .count = (size_t)is_file, .pattern = r->pattern};
    write_tracks(w, r);
}

static void write_trace(record_writer *w, document *d, const scaler_report *r)
{
    const scalerrun *run = r->run;
    const wide_gradients *wide = &run->wide;
    trace_part part = {run, r->format, need_memory(wide->count, sizeof *part.names), wide->count, run->in->failed};
    for (size_t i = 0; i < wide->count; i++)
        part.names[i] = wide->items[i].name;
    d->config = (config_part){.input = "trace",
                              .inputs = (const char *const *)run->in->tree.paths,
                              .count = run->in->tree.count,
                              .trace = &part};
    d->steps = run->n_steps ? run->steps : NULL;
    d->count = run->n_steps;
    d->unread = &run->in->unread;
    write_tracks(w, r);
    free(part.names);
}

static void write_report(record_writer *w, const scaler_report *r)
{
    document d = {.log = NULL};
    w->kind = &scaler_kind;
    w->document = &d;
    if (r->log)
        write_log(w, &d, r);
    else if (r->pattern)
        write_pattern(w, &d, r);
    else
        write_trace(w, &d, r);
}

void scaler_report_records(FILE *to, report_style style, const scaler_report *r)
{
    write_report(&(record_writer){.to = to, .style = style}, r);
}

void scaler_report_take(const record_sink *sink, const scaler_report *r)
{
    write_report(&(record_writer){.sink = sink, .style = REPORT_JSON}, r);
}
