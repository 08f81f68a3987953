/* report.c -- the report of mpsim scaler for people; see report.h. */
#include "report.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { HEAD_ROWS = 24, TAIL_ROWS = 12 };

/* ---- verdicts ---- */

/* What the trace knows: where Inf or NaN is, or which scale would have fitted. */
static void add_trace_text(const scaler_report *r, const track *t, verdict v, char *text, size_t size)
{
    const recorded_step *bad = NULL, *tight = NULL;
    char a[32], b[32];
    for (size_t i = 0; i < r->run->n_steps; i++) {
        const recorded_step *s = &r->run->steps[i];
        if (!bad && s->counts.not_finite)
            bad = s;
        if (s->n_seen && !s->counts.not_finite && s->amax > 0 && (!tight || s->fits < tight->fits))
            tight = s;
    }
    if (bad && t->not_finite_steps)
        text_add(text, size, " Inf or NaN first stand in step %" PRId64 ", in %s.", t->first_not_finite, bad->worst);
    else if (tight && v != VERDICT_CLEAN)
        text_add(text, size, " %s fit a scale of %s; the largest gradient is %s, in %s.",
                 r->run->bad_steps ? "As far as is recorded, all steps" : "All recorded steps",
                 text_scale(a, tight->fits), text_number(b, tight->amax), tight->worst);
}

verdict scaler_verdict(const scaler_report *r, const track *t, char *text, size_t size)
{
    if (t->recorded) {
        snprintf(text, size, "%s", r->judgement->text);
        return r->judgement->verdict;
    }
    const verdict v = traininglog_track_verdict(t, text, size);
    if (r->run && r->run->n_steps)
        add_trace_text(r, t, v, text, size);
    return v;
}

/* How sure the verdict on a log is, on what it rests, what is missing, what to do. */
static void print_evidence(FILE *to, const log_judgement *j)
{
    fprintf(to, "  Confidence: %s\n", traininglog_confidence_names[j->sure]);
    for (size_t i = 0; i < j->n_evidence; i++) {
        const log_evidence *e = &j->evidence[i];
        char where[64];
        if (e->line == e->last_line)
            snprintf(where, sizeof where, "    line %" PRIu64 ": ", e->line);
        else
            snprintf(where, sizeof where, "    lines %" PRIu64 "-%" PRIu64 ": ", e->line, e->last_line);
        if (i == 0)
            fputs("  Evidence\n", to);
        scaler_print_wrapped(to, where, e->says);
    }
    if (j->missing[0])
        scaler_print_wrapped(to, "  Missing: ", j->missing);
    scaler_print_wrapped(to, "  What to do: ", j->advice);
}

static void print_verdict(FILE *to, const scaler_report *r, const track *t)
{
    char text[1280], head[64];
    const verdict v = scaler_verdict(r, t, text, sizeof text);
    snprintf(head, sizeof head, "Verdict: %s", traininglog_verdict_name(v));
    fprintf(to, "\n%s\n", head);
    scaler_print_wrapped(to, "  ", text);
    if (t->recorded)
        print_evidence(to, r->judgement);
}

/* ---- what was read ---- */

/* Which of the tensors are rounded to binary32, and where the record stands against the rounding. */
static void print_wide(FILE *to, const scaler_report *r)
{
    const scalerrun *run = r->run;
    const size_t shown = scaler_wide_shown(&run->wide);
    char line[512], a[32], b[32];
    uint64_t against = 0;
    for (size_t i = 0; i < run->n_steps; i++)
        against += run->steps[i].contradicts != 0;
    if (run->in_wide) {
        snprintf(line, sizeof line,
                 "%s of these tensors to binary32, as the run had them: by numbers that %s has not, of %s name%s%s.",
                 text_count(a, run->in_wide), r->format, text_count(b, shown), text_plural(shown),
                 shown < run->wide.count ? ", the others as sums over micro-batches, which the record says they are"
                                         : "");
        scaler_print_wrapped(to, "", line);
    }
    if (against) {
        snprintf(line, sizeof line,
                 "%s step%s overflow%s when rounded to %s at a scale at which the record is clean: the record counts.",
                 text_count(a, against), text_plural(against), against == 1 ? "s" : "", r->format);
        scaler_print_wrapped(to, "", line);
    }
}

static void print_trace_head(FILE *to, const scaler_report *r)
{
    const scalerrun *run = r->run;
    char a[32], b[32], c[32];
    uint64_t elements = 0, steps = 0;
    for (size_t i = 0; i < run->n_steps; i++) {
        elements += run->steps[i].counts.elements;
        steps += run->steps[i].counts.elements > 0;
    }
    fprintf(to, "%s recorded step%s, %s gradient tensor%s, %s element%s; rounded to %s at the scale in force\n",
            text_count(a, steps), text_plural(steps), text_count(b, run->tensors), text_plural(run->tensors),
            text_count(c, elements), text_plural(elements), r->format);
    print_wide(to, r);
    if (run->twice)
        fputs("Files of the same step and rank: are they of several runs? They count together.\n", to);
    if (run->repeat > 1)
        fprintf(to, "The same steps over again, %s times in all: these gradients do not learn.\n",
                text_count(a, run->repeat));
    if (run->unscaled)
        fprintf(to, "Gradients recorded scaled were divided by their mpsim.loss_scale%s.\n",
                run->inexact ? ", not always a power of two: rounded to binary64" : "");
    if (run->unsaid)
        scaler_print_wrapped(
            to, "",
            "The files do not say whether gradients are unscaled; they are taken as unscaled. If they were saved "
            "between GradScaler's backward and unscale_, give the scale as --loss-scale S.");
    if (run->bad_steps)
        fprintf(to,
                "%s step%s recorded with Inf or NaN: an overflow at the recorded scale and above "
                "it; below it\nis not known, and taken as none.\n",
                text_count(a, run->bad_steps), run->bad_steps == 1 ? " was" : "s were");
    if (run->roundoff)
        fprintf(to, "%s element%s, the first in %s, %s nothing but rounding and not counted as lost.\n",
                text_count(a, run->roundoff), text_plural(run->roundoff), run->first_rounded,
                run->roundoff == 1 ? "is" : "are");
    if (run->narrow && !run->unscaled)
        screen_text(to, screen_columns(to),
                    "Some tensors were recorded in a format as narrow as fp16: what became zero or Inf "
                    "then cannot be\nseen.\n");
    if (run->in->failed)
        fprintf(to, "%d file%s failed and %s not in these numbers.\n", run->in->failed,
                text_plural((uint64_t)run->in->failed), run->in->failed == 1 ? "is" : "are");
    for (size_t i = 1; i < run->n_steps; i++)
        if (run->steps[i].number > run->steps[i - 1].number + 1 && run->steps[i - 1].number >= 0) {
            fputs("Not every step was recorded: those that were count as if they followed each other.\n", to);
            break;
        }
    fputs("Only the recorded gradients count here; what overflows inside the backward pass does not show.\n", to);
}

/* The numbers of the lines whose names say nothing. */
static void print_unread(FILE *to, const training_log *l)
{
    char text[sizeof l->unread + 80];
    if (l->n_unread == 0)
        return;
    snprintf(text, sizeof text, "%zu number%s not read, as %s not known: %s", l->n_unread,
             l->n_unread == 1 ? " was" : "s were", l->n_unread == 1 ? "its name is" : "their names are", l->unread);
    text_wrap(to, 0, screen_width(to, 96), " ", text);
}

static void print_apart(FILE *to, const log_apart *a, const char *what)
{
    char x[32], y[32], n[32];
    if (a->lines)
        fprintf(to,
                "The %s differs between ranks: at step %" PRId64 " it is %s on rank %" PRId64
                ", and %s on rank %" PRId64 " (line %" PRIu64 "); so in %s line%s.\n",
                what, a->step, text_number(x, a->scale), a->rank, text_number(y, a->other_scale), a->other, a->line,
                text_count(n, a->lines), text_plural(a->lines));
}

static void print_log_head(FILE *to, const scaler_report *r)
{
    const training_log *l = r->log;
    char name[512], a[32], b[32];
    escape_text(name, sizeof name, strcmp(r->log_path, "-") == 0 ? "standard input" : r->log_path);
    if (l->metrics.truncated)
        fprintf(to, "%s: of KL, rewards and the like only the first %d values are judged.\n", name, METRICS_MAX);
    if (l->total == 0) {
        fprintf(to, "%s: %s%s line%s of a loss scale: judged by the other numbers.\n", name,
                l->reader.lines == 1 ? "the only" : "none of ",
                l->reader.lines == 1 ? "" : text_count(b, l->reader.lines),
                l->reader.lines == 1 ? " does not tell" : "s tells");
        return;
    }
    fprintf(to, "%s: %s of %s lines tell of the loss scale:", name, text_count(a, l->total),
            text_count(b, l->reader.lines));
    for (int d = 0, first = 1; d < LOG_DIALECTS; d++)
        if (l->recognised[d]) {
            fprintf(to, "%s %s %s", first ? "" : ",", traininglog_dialect_name((log_dialect)d),
                    text_count(a, l->recognised[d]));
            first = 0;
        }
    fputc('\n', to);
    if (l->copies > 1)
        fprintf(to, "Every event stands there %" PRIu64 " times, as %" PRIu64 " ranks log it: counted once.\n",
                l->copies, l->copies);
    if (l->other_ranks)
        fprintf(to, "%s line%s of other ranks than %" PRId64 " left out.\n", text_count(a, l->other_ranks),
                text_plural(l->other_ranks), l->rank);
    if (l->other_scalers)
        fprintf(to, "%s line%s of other loss scalers than %" PRId64 " left out.\n", text_count(a, l->other_scalers),
                text_plural(l->other_scalers), l->scaler);
    if (l->bad)
        fprintf(to, "%s line%s without a usable scale left out.\n", text_count(a, l->bad), text_plural(l->bad));
    if (l->averages)
        fprintf(to, "%s line%s with a mean of several scales left out.\n", text_count(a, l->averages),
                text_plural(l->averages));
    if (l->reader.cut)
        fprintf(to, "%s line%s longer than %d bytes: only their beginning was read.\n", text_count(a, l->reader.cut),
                l->reader.cut == 1 ? " is" : "s are", LOG_WIDTH);
    if (l->before)
        fputs("The lines tell the scale before a step, as skipped steps show.\n", to);
    if (l->recorded.unknown_steps)
        fputs("The lines carry no step numbers: how many clean steps lie between is not known.\n", to);
    if (l->mixed)
        fprintf(to, "%s interval%s several steps: which of them were skipped is not known.\n", text_count(a, l->mixed),
                l->mixed == 1 ? " holds" : "s hold");
}

/* ---- the trajectory ---- */

#define AT(member) offsetof(track_loss, member)
static const record_field loss_fields[] = {
    COLUMN(SHARE, ">lost", 0, AT(lost), "Elements that are not zero and become zero.", .of = AT(elements)),
    COLUMN(COUNT, ">overflowed", FIELD_BLANK, AT(overflowed), "Elements that become Inf or NaN."),
    COLUMN(COUNT, ">Inf, NaN", FIELD_BLANK, AT(not_finite), "Elements that are Inf or NaN as recorded."),
    {0}};
#undef AT
static const record_kind loss_record = {"loss", NULL, sizeof(track_loss), loss_fields};

#define AT(member) offsetof(scaler_span, member)
static const record_field row_fields[] = {
    COLUMN(CHARS, "<step", 0, AT(step), NULL),
    COLUMN(CHARS, ">scale", 0, AT(scale), "The loss scale in force."),
    COLUMN(CHARS, ">recorded", 0, AT(recorded), "The loss scale that the files name."),
    COLUMN(CHARS, "<what happens", 0, AT(what), NULL),
    COLUMN(RECORD, "", FIELD_POINTER, AT(loss), NULL, .record = &loss_record),
    COLUMN(CHARS, ">fits", 0, AT(fits), "The largest power of two without an overflow."),
    COLUMN(TEXT, "<largest in", 0, AT(worst), "The tensor with Inf or NaN, or else with the largest magnitude.",
           .spare = 2),
    {0}};
#undef AT
const record_kind scaler_span_record = {"row", NULL, sizeof(scaler_span), row_fields};

static void write_step(char *out, size_t size, const track *t, const span *s)
{
    const int numbered = s->from >= 0;
    const int64_t from = numbered ? s->from : (int64_t)s->first + 1;
    const int64_t to = numbered ? s->to : (int64_t)(s->first + s->steps);
    if (t->recorded && !numbered)
        snprintf(out, size, "?");
    else
        snprintf(out, size, from == to ? "%" PRId64 : "%" PRId64 "-%" PRId64, from, to);
}

/* What only logs have. */
static const char *recorded_text(char *out, size_t size, const track *t, const span *s)
{
    char what[128] = "", a[32];
    if (s->events & RECORDED_MIXED && !(s->events & MPSIM_SCALER_OVERFLOW))
        snprintf(what, sizeof what, "%s clean in this interval", text_count(a, s->steps));
    else if (s->events & RECORDED_MIXED && s->steps > 1)
        snprintf(what, sizeof what, "%s overflows in this interval", text_count(a, s->steps));
    else
        traininglog_events_text(what, sizeof what, t, s);
    snprintf(out, size, "%s%s%s%s", s->events & RECORDED_RESTART ? "RESUMED; " : "",
             s->events & RECORDED_JUMP ? "JUMP; " : "", what,
             s->events & RECORDED_INFERRED && s->events & MPSIM_SCALER_BACKOFF ? " (not logged)"
             : s->events & RECORDED_INFERRED && t->unknown_steps               ? " (not logged)"
                                                                               : "");
    return out;
}

void scaler_span_fill(scaler_span *row, const scaler_report *r, const track *t, const span *s)
{
    const recorded_step *step = r->run && t->by_step ? scaler_run_step(r->run, s->from) : NULL;
    *row = (scaler_span){.scale = "?", .loss = &s->loss, .worst = step ? step->worst : NULL};
    write_step(row->step, sizeof row->step, t, s);
    if (!isnan(s->scale))
        text_scale(row->scale, s->scale);
    if (step && !isnan(step->scale))
        text_scale(row->recorded, step->scale);
    (t->recorded ? recorded_text : traininglog_events_text)(row->what, sizeof row->what, t, s);
    if (isnan(s->fits) || t->recorded)
        return;
    if (isinf(s->fits) || s->fits == 0)
        snprintf(row->fits, sizeof row->fits, "%s", s->fits == 0 ? "none" : "any");
    else
        text_scale(row->fits, s->fits);
}

static void print_row(table *all, const scaler_report *r, const track *t, const span *s)
{
    char worst[41];
    scaler_span row;
    scaler_span_fill(&row, r, t, s);
    snprintf(worst, sizeof worst, "%s", row.worst ? row.worst : "");
    row.worst = worst;
    record_cells(all, &scaler_span_record, &row, 0);
}

static void print_paragraph(FILE *to, const char *text)
{
    fputs("\n  ", to);
    text_wrap(to, 2, screen_width(to, 96), " ", text);
}

static void print_trajectory(FILE *to, const scaler_report *r, const track *t)
{
    const size_t most = HEAD_ROWS + TAIL_ROWS;
    const int cut = !r->all && t->count > most + 4;
    char a[32];
    table *all = record_table(&scaler_span_record, 0);
    fprintf(to, "\n%s\n\n", t->recorded ? "Recorded scale" : "Trajectory");
    for (size_t i = 0; i < t->count; i++) {
        if (cut && i == HEAD_ROWS) {
            scaler_span left_out = {.step = "..."};
            snprintf(left_out.what, sizeof left_out.what, "%s rows left out: --all shows them",
                     text_count(a, t->count - most));
            record_cells(all, &scaler_span_record, &left_out, 0);
            i = t->count - TAIL_ROWS;
        }
        print_row(all, r, t, &t->spans[i]);
    }
    table_print(all, to, "  ");
    table_free(all);
    if (t->truncated)
        fputs("  (the rest is in the totals only)\n", to);
    if (r->run && r->run->n_steps && !t->recorded)
        print_paragraph(to, "lost: share of all elements that are not zero and become zero; overflowed: elements that "
                            "become Inf or NaN; fits: the largest power of two without an overflow");
}

/* ---- totals ---- */

static void print_totals(FILE *to, const track *t, int mixed)
{
    char a[32], b[32], c[32], share[32];
    fputs("\nTotals\n\n", to);
    if (!t->unknown_steps)
        fprintf(to, "  steps       %s\n", text_count(a, t->steps));
    fprintf(to, "  overflows   %s", text_count(a, t->overflows));
    if (t->skipped || t->taken)
        fprintf(to, ", steps skipped %s", text_count(a, t->skipped));
    if (t->skipped && !t->unknown_steps)
        fprintf(to, " (%s)", text_share(share, t->skipped, t->steps));
    if (t->taken)
        fprintf(to, ", taken %s", text_count(b, t->taken));
    fprintf(to, "\n  scale       up %s time%s, down %s time%s", text_count(a, t->growths), text_plural(t->growths),
            text_count(b, t->backoffs), text_plural(t->backoffs));
    if (mixed)
        fputs(" that show; inside intervals of several steps they do not", to);
    if (t->tolerated)
        fprintf(to, ", %s overflow%s tolerated", text_count(c, t->tolerated), text_plural(t->tolerated));
    if (t->floored)
        fprintf(to, ", %s time%s held by the floor", text_count(c, t->floored), text_plural(t->floored));
    if (t->refused)
        fprintf(to, ", growth to infinity refused %s time%s", text_count(c, t->refused), text_plural(t->refused));
    fputs("\n  range       ", to);
    if (t->least > t->most)
        fputs("not told", to);
    else
        fprintf(to, "%s to %s; at the end %s", text_scale(a, t->least), text_scale(b, t->most),
                isnan(t->last) ? "not told" : text_scale(c, t->last));
    fputc('\n', to);
    if (t->compared)
        fprintf(to, "  recorded    the scale in force is the recorded one in %s of %s steps\n",
                text_count(a, t->agreed), text_count(b, t->compared));
    if (t->loss.elements)
        fprintf(to, "  gradients   %s of %s elements lost (%s), %s overflowed\n", text_count(a, t->loss.lost),
                text_count(b, t->loss.elements), text_share(share, t->loss.lost, t->loss.elements),
                text_count(c, t->loss.overflowed));
}

static void print_one(FILE *to, const scaler_report *r, const track *t)
{
    char text[512];
    const mpsim_scaler_type *row = mpsim_scaler_find(t->scaler.config.name);
    if (!t->recorded) {
        fprintf(to, "%s: %s%s%s\n", t->label, row->framework, strchr(t->label, ':') ? ", with changes" : "",
                r->own ? ", as the run was trained with" : "");
        scaler_print_wrapped(to, "  ", scaler_config_text(text, sizeof text, &t->scaler.config));
    }
    print_trajectory(to, r, t);
    print_totals(to, t, 0);
    print_verdict(to, r, t);
}

/* The verdicts, each once with the scalers that it is about. */
static void print_verdicts(FILE *to, const scaler_report *r)
{
    verdict of[TRACKS_MAX];
    char text[1024], head[64];
    for (size_t i = 0; i < r->run->count; i++)
        of[i] = scaler_verdict(r, &r->run->tracks[i], text, sizeof text);
    fputs("\nVerdicts\n\n", to);
    for (size_t i = 0; i < r->run->count; i++) {
        char names[TRACKS_MAX * 98] = "";
        int told = 0;
        for (size_t k = 0; k < r->run->count; k++) {
            told |= k < i && of[k] == of[i];
            if (k >= i && of[k] == of[i])
                text_add(names, sizeof names, "%s%s", *names ? ", " : "", r->run->tracks[k].label);
        }
        snprintf(head, sizeof head, "  %s: ", traininglog_verdict_name(of[i]));
        if (!told)
            scaler_print_wrapped(to, head, names);
    }
}

static void print_several(FILE *to, const scaler_report *r)
{
    table *all = table_new("<scaler|>steps|>skipped|>|>up|>down|1>tolerated|>start|>last|>as recorded|>lost");
    const track *tracks = r->run->tracks;
    int differ = r->run->count && tracks[0].stop >= 0; /* those that stop see fewer steps */
    for (size_t i = 1; i < r->run->count; i++)
        differ |= tracks[i].steps != tracks[0].steps;
    fputc('\n', to);
    for (size_t i = 0; i < r->run->count; i++) {
        const track *t = &tracks[i];
        char a[32], b[32];
        table_cell(all, "%s", t->label);
        table_cell(all, "%s", differ ? text_count(a, t->steps) : "");
        table_cell(all, "%s", text_count(a, t->skipped));
        table_cell(all, "%s", t->skipped ? text_share(a, t->skipped, t->steps) : "");
        table_cell(all, "%s", text_count(a, t->growths));
        table_cell(all, "%s", text_count(a, t->backoffs));
        table_cell(all, "%s", t->tolerated ? text_count(a, t->tolerated) : "");
        table_cell(all, "%s", text_scale(a, t->count ? t->spans[0].scale : t->scaler.scale));
        table_cell(all, "%s", text_scale(a, t->last));
        if (t->compared)
            table_cell(all, "%s of %s", text_count(a, t->agreed), text_count(b, t->compared));
        else
            table_cell(all, "%s", "");
        table_cell(all, "%s", t->loss.elements ? text_share(a, t->loss.lost, t->loss.elements) : "");
    }
    table_print(all, to, "  ");
    table_free(all);
    if (r->run->n_steps)
        fputs("\n  lost: share of all gradient elements that are not zero and become zero\n", to);
    print_verdicts(to, r);
}

/* ---- logs ---- */

static void print_jump(FILE *to, const log_jump *j)
{
    char a[32], b[32], where[64], text[256] = "";
    snprintf(where, sizeof where, "  line %" PRIu64 ": ", j->line);
    if (j->restart)
        snprintf(text, sizeof text, "the steps begin again at %" PRId64 ", and ", j->step);
    else if (j->step >= 0)
        snprintf(text, sizeof text, "at step %" PRId64 " ", j->step);
    text_add(text, sizeof text, "the scale is %s where it was %s%s", text_scale(a, j->to), text_scale(b, j->from),
             j->restart ? ": the scaler's state was lost on resume."
                        : ", and no line tells why: a new start without the scaler's state, or lines are missing.");
    scaler_print_wrapped(to, where, text);
}

static void print_jumps(FILE *to, const training_log *l)
{
    enum { MOST = 20 };
    if (l->n_jumps == 0) {
        if (l->restarts)
            fputs("\nThe run was resumed, and the scale goes on as it was.\n", to);
        return;
    }
    fputs("\nWhat the log does not explain\n\n", to);
    for (size_t i = 0; i < l->n_jumps && i < MOST; i++)
        print_jump(to, &l->jumps[i]);
    if (l->n_jumps > MOST)
        fprintf(to, "  and %zu more\n", l->n_jumps - MOST);
}

static void print_matches(FILE *to, const scaler_report *r)
{
    char a[32], b[32];
    if (r->n_matches == 0 || r->matches[0].compared == 0)
        return;
    table *all = table_new("<scaler|>agrees with|<first difference");
    fputs("\nWhose rules reproduce the recorded scale (from its first value on)\n\n", to);
    for (size_t i = 0; i < r->n_matches; i++) {
        const log_match *m = &r->matches[i];
        table_cell(all, "%s", m->label);
        table_cell(all, "%s of %s", text_count(a, m->agreed), text_count(b, m->compared));
        if (!m->at)
            table_cell(all, "%s", "");
        else if (m->step >= 0)
            table_cell(all, "step %" PRId64 ": recorded %s, would be %s", m->step, text_scale(a, m->recorded),
                       text_scale(b, m->computed));
        else
            table_cell(all, "change %" PRIu64 ": recorded %s, would be %s", m->at, text_scale(a, m->recorded),
                       text_scale(b, m->computed));
    }
    table_print(all, to, "  ");
    table_free(all);
    if (r->log->recorded.unknown_steps)
        print_paragraph(to,
                        "Clean steps are not logged: growth is taken as it is recorded, and only what overflows do is "
                        "compared.");
}

void scaler_report_text(FILE *to, const scaler_report *r)
{
    char a[32];
    if (r->log) {
        print_log_head(to, r);
        print_apart(to, &r->log->apart, "loss scale");
        print_apart(to, &r->log->losses_apart, "loss");
        print_unread(to, r->log);
        if (r->log->recorded.steps) {
            print_trajectory(to, r, &r->log->recorded);
            print_totals(to, &r->log->recorded, r->log->mixed != 0);
            print_jumps(to, r->log);
            print_matches(to, r);
        }
        print_verdict(to, r, &r->log->recorded);
        return;
    }
    if (r->pattern)
        fprintf(to, "%s steps of an overflow pattern\n", text_count(a, r->pattern_steps));
    else {
        print_trace_head(to, r);
        unread_print(to, &r->run->in->unread);
    }
    if (r->several)
        print_several(to, r);
    else {
        fputc('\n', to);
        print_one(to, r, &r->run->tracks[0]);
    }
}
