/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = 96 };

/* ---- names ---- */

static const char *letter(char out[8], size_t k)
{
    snprintf(out, 8, k < 26 ? "%c" : "%d", k < 26 ? 'A' + (int)k : (int)k);
    return out;
}

/* The last run, and what it is compared with. */
static const char *sides(char out[64], const log_runs *r)
{
    char first[8], before[8], end[8];
    letter(first, 0);
    letter(before, r->count - 2);
    letter(end, r->count - 1);
    if (r->count > 2)
        snprintf(out, 64, "%s beside %s to %s", end, first, before);
    else
        snprintf(out, 64, "%s beside %s", end, first);
    return out;
}

static const char *gap_text(char out[48], double gap)
{
    char number[32];
    snprintf(out, 48, "%s%s", gap > 0 ? "+" : gap < 0 ? "-" : "", text_number(number, fabs(gap)));
    return out;
}

/* ---- fields ---- */

/* A run; behind its numbers, what only people see. */
typedef struct run_row {
    const char *path;
    const series *all;
    double noise, end, first, last;
    char letter[8], lost[96];
} run_row;

#define AT(member) offsetof(series, member)
static const record_field series_fields[] = {
    FIELD(SIZE, "values", IN_JSON, AT(n), "Finite numbers, a step each.", .title = ">steps"),
    FIELD(COUNT, "not_finite", IN_JSON, AT(lost), "Lines in which the number is Inf or NaN."),
    {0}};
#undef AT
static const record_kind series_record = {"series", NULL, sizeof(series), series_fields};

#define AT(member) offsetof(run_row, member)
static const record_field run_fields[] = {
    FIELD(CHARS, NULL, 0, AT(letter), NULL, .title = "<"),
    FIELD(TEXT, "file", IN_JSON, AT(path), NULL, .title = "<run"),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(all), NULL, .title = "", .record = &series_record),
    FIELD(REAL, NULL, 0, AT(first), NULL, .title = ">first"),
    FIELD(REAL, NULL, 0, AT(last), NULL, .title = ">last"),
    FIELD(REAL, "noise", IN_JSON, AT(noise),
          "Noise of a step: the median of the moves from one step to the next, over 0.954.",
          .title = ">noise of a step"),
    FIELD(REAL, "last_quarter", IN_JSON, AT(end), "Mean over the last quarter of the common steps."),
    FIELD(CHARS, NULL, 0, AT(lost), NULL, .title = "<"),
    {0}};
#undef AT
static const record_kind run_record = {"run", NULL, sizeof(run_row), run_fields};

/* A quarter of the common steps; behind its numbers, what only people see. */
typedef struct quarter_row {
    size_t number;
    int64_t from, to;
    run_part part;
    char steps[48], gap[48], error[32];
} quarter_row;

#define AT(member) offsetof(quarter_row, member)
#define GAP "Mean of the last run less that of the others."
#define GAP_ERROR "The true gap is within this of the gap, each way, with 95 %; NaN: not known."
static const record_field quarter_fields[] = {
    FIELD(SIZE, "quarter", IN_LINE | IN_CSV | FIELD_PLAIN, AT(number), "Which quarter of the common steps, from 1.",
          .title = "<quarter"),
    FIELD(STEP, "from", IN_ALL, AT(from), "The first step; of lines without steps the first line."),
    FIELD(STEP, "to", IN_ALL, AT(to), "The last step."),
    FIELD(CHARS, NULL, 0, AT(steps), NULL, .title = ">steps"),
    FIELD(REAL, "others", IN_ALL, AT(part.a), "Mean over the quarter and over all runs but the last.", .title = ">A"),
    FIELD(REAL, "last", IN_ALL, AT(part.b), "Mean over the quarter of the last run.", .title = ">B"),
    FIELD(REAL, "gap", IN_ALL, AT(part.gap), GAP),
    FIELD(CHARS, NULL, 0, AT(gap), GAP, .title = ">gap"),
    FIELD(REAL, "error", IN_ALL, AT(part.error), GAP_ERROR),
    FIELD(CHARS, NULL, 0, AT(error), GAP_ERROR, .title = ">+/-"),
    {0}};
#undef AT
static const record_kind quarter_record = {"quarter", "A quarter of the common steps.", sizeof(quarter_row),
                                           quarter_fields};

#define AT(member) offsetof(log_runs, member)
static const record_field runs_fields[] = {
    FIELD(TEXT, "of", IN_JSON, AT(what), "The name of the number that is compared."),
    FIELD(SIZE, "common", IN_JSON, AT(n), "Steps that all runs tell."),
    FIELD(BOOLEAN, "by_order", IN_JSON, AT(by_order),
          "Whether lines carry no steps, so that the first is compared with the first."),
    {0}};
#undef AT
static const record_kind runs_record = {"runs", NULL, sizeof(log_runs), runs_fields};

static const char *const trends[] = {"none", "grows", "shrinks", NULL};

#define AT(member) offsetof(comparison, member)
static const record_field comparison_fields[] = {
    FIELD(REAL, "moves_together", IN_JSON, AT(together),
          "Correlation of what the runs do from step to step; NaN: not known."),
    FIELD(REAL, "gap_noise", IN_JSON, AT(own), "Noise of a step of the gap, computed as that of a run."),
    FIELD(REAL, "gap_correlation", IN_JSON, AT(near),
          "Correlation of the gap with that of the next step, without its mean and trend."),
    FIELD(WORD, "trend", IN_JSON, AT(trend), "Trend of the gap.", .words = trends),
    FIELD(REAL, "spread", IN_JSON, AT(spread),
          "Standard deviation of `last_quarter` between all runs but the last; NaN: there is one."),
    FIELD(REAL, "reach", IN_JSON, AT(reach),
          "19 of 20 further runs like all but the last would end within this of their mean, each way."),
    FIELD(WORD, "verdict", IN_JSON, AT(verdict), NULL, .words = log_run_verdicts),
    {0}};
#undef AT
static const record_kind comparison_record = {"comparison", NULL, sizeof(comparison), comparison_fields};

typedef struct log_report {
    const log_runs *r;
    const comparison *c;
    run_row *runs; /* r->count of them */
    size_t count;
    int64_t first_gap, apart_from;
    char why[1024];
} log_report;

#define AT(member) offsetof(log_report, member)
static const record_field report_fields[] = {
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(r), NULL, .record = &runs_record),
    FIELD(LIST, "runs", IN_JSON, AT(runs), "The runs in the order in which they were given.", .of = AT(count),
          .record = &run_record),
    FIELD(LIST, "quarters", IN_JSON | FIELD_STREAM, 0, "Quarters without steps are left out.",
          .record = &quarter_record),
    FIELD(STEP, "first_gap", IN_JSON | FIELD_NULL, AT(first_gap), "The first step that differs; null: none."),
    FIELD(STEP, "apart_from", IN_JSON | FIELD_NULL, AT(apart_from),
          "The step from which the gap stays beyond three times the noise of a step; null: none."),
    FIELD(RECORD, "", IN_JSON | FIELD_INLINE | FIELD_POINTER, AT(c), NULL, .record = &comparison_record),
    FIELD(CHARS, "why", IN_JSON, AT(why), "The verdict's reason for people."),
    {0}};
#undef AT
static const record_kind report_record = {"document", NULL, sizeof(log_report), report_fields};
const report_kind log_kind = {
    "mpsim.log/1", "mpsim log: runs beside one another",
    "How far the last of several runs is from the others, beside the noise of a step. $defs/line is a line of --ndjson, "
    "which names no schema.",
    &report_record};

static run_row row_of_run(const log_runs *r, const comparison *c, size_t k)
{
    const series *s = &r->run[k].all;
    run_row row = {.path = r->run[k].path,
                   .all = s,
                   .noise = c->noise[k],
                   .end = c->ends[k],
                   .first = s->at[0].value,
                   .last = s->at[s->n - 1].value};
    char a[32];
    letter(row.letter, k);
    if (s->lost)
        snprintf(row.lost, sizeof row.lost, "%s lines Inf or NaN, first line %" PRIu64, text_count(a, s->lost),
                 s->first_lost);
    return row;
}

static quarter_row row_of_quarter(const log_runs *r, const comparison *c, size_t k)
{
    const run_part *p = &c->parts[k];
    quarter_row row = {k + 1, r->run[0].at[p->from].step, r->run[0].at[p->to - 1].step, *p, "", "", ""};
    snprintf(row.steps, sizeof row.steps, "%" PRId64 "-%" PRId64, row.from, row.to);
    gap_text(row.gap, p->gap);
    if (isfinite(p->error))
        text_number(row.error, p->error);
    return row;
}

/* ---- text ---- */

static void print_runs(FILE *to, const log_report *l)
{
    table *all = record_table(&run_record, 0);
    for (size_t k = 0; k < l->count; k++)
        record_cells(all, &run_record, &l->runs[k], 0);
    table_print(all, to, "  ");
    table_free(all);
}

/* The columns are those of the record, but that of the means have the letters of the runs. */
static void print_parts(FILE *to, const log_runs *r, const comparison *c)
{
    char end[8], columns[64];
    snprintf(columns, sizeof columns, "<quarter|>steps|>%s|>%s|>gap|>+/-", r->count > 2 ? "others" : "A",
             letter(end, r->count - 1));
    table *all = table_new(columns);
    for (size_t k = 0; k < PARTS; k++)
        if (c->parts[k].to > c->parts[k].from) {
            const quarter_row row = row_of_quarter(r, c, k);
            record_cells(all, &quarter_record, &row, 0);
        }
    fputs("\nMeans of the quarters; +/-: how far the gap is known, with 95 %\n\n", to);
    table_print(all, to, "  ");
    table_free(all);
}

static void print_together(FILE *to, const comparison *c)
{
    enum { SAME = 70, OTHER = 30 }; /* hundredths */
    const double percent = 100 * c->together;
    char line[256], a[32];
    if (isnan(c->together))
        return;
    snprintf(line, sizeof line, "%.2f%s. The gap's own noise is %s.", c->together,
             percent >= SAME    ? ": the same batches in the same order"
             : percent <= OTHER ? ": other batches, or another order"
                                : "",
             text_number(a, c->own));
    fputs("  moves together ", to);
    text_wrap(to, 17, screen_width(to, WIDTH), " ", line);
}

static void print_partings(FILE *to, const log_runs *r, const comparison *c)
{
    const log_run *end = &r->run[r->count - 1];
    char a[32], b[32];
    fputc('\n', to);
    if (c->first == r->n)
        fputs("  first gap      none\n", to);
    else
        fprintf(to, "  first gap      step %" PRId64 ": %s in line %" PRIu64 " of A, %s in line %" PRIu64 " of %s\n",
                end->at[c->first].step, text_number(a, r->run[0].at[c->first].value), r->run[0].at[c->first].line,
                text_number(b, end->at[c->first].value), end->at[c->first].line, letter((char[8]){0}, r->count - 1));
    if (c->apart < r->n)
        fprintf(to, "  apart          from step %" PRId64 " on by more than three times the noise of a step\n",
                end->at[c->apart].step);
    else
        fputs("  apart          at no time for good by more than three times the noise of a step\n", to);
    print_together(to, c);
}

/* What the last quarter says. */
static void gap_words(char *text, size_t size, const comparison *c)
{
    static const char *const ways[] = {", and does not change", ", and grows", ", and shrinks"};
    const run_part *p = &c->parts[PARTS - 1];
    const double noise = fmax(c->noise[0], c->noise[1]);
    char a[48], b[32];
    snprintf(text, size, "in the last quarter the gap is %s", gap_text(a, p->gap));
    if (isfinite(p->error))
        text_add(text, size, " +/- %s", text_number(b, p->error));
    if (noise > 0)
        text_add(text, size, ", %.2g times the noise of a step", fabs(p->gap) / noise);
    text_add(text, size, "%s.", c->verdict == RUNS_NO_GAP ? "" : ways[c->trend]);
}

static void spread_words(char *text, size_t size, const log_runs *r, const comparison *c)
{
    char a[32], b[32], d[32], e[32];
    snprintf(text, size,
             "in the last quarter %s is %s; the other %zu are %s, with a spread of %s. 19 of 20 further runs like "
             "these would lie within %s of their mean, as far as %zu runs can tell.",
             letter((char[8]){0}, r->count - 1), text_number(a, c->ends[r->count - 1]), r->count - 1,
             text_number(b, c->middle), text_number(d, c->spread), text_number(e, c->reach), r->count - 1);
}

static const char seeds[] = " Two runs cannot tell whether other seeds give as much: give another run of one side, "
                            "with another seed, before the last.";

static void words_of(char *text, size_t size, const log_runs *r, const comparison *c)
{
    char a[32];
    switch (c->verdict) {
    case RUNS_SAME:
        snprintf(text, size, "all %s common steps have the same %s, to the last digit.", text_count(a, r->n), r->what);
        break;
    case RUNS_LOST:
        snprintf(text, size, "one run becomes Inf or NaN and another does not; 'mpsim log FILE' judges each.");
        break;
    case RUNS_FEW:
        snprintf(text, size, "there are %s common step%s; a gap can be told from %d on.", text_count(a, r->n),
                 text_plural(r->n), ENOUGH_STEPS);
        break;
    case RUNS_WITHIN:
    case RUNS_OUTSIDE:
        spread_words(text, size, r, c);
        break;
    default:
        gap_words(text, size, c);
        text_add(text, size, "%s", c->verdict == RUNS_NO_GAP ? " That is no gap that these steps show." : seeds);
    }
}

/* Of long logs every second, fourth, eighth, ... is kept. */
static const char *ordinal(char out[32], uint64_t n)
{
    char a[32];
    snprintf(out, 32, "%s%s", text_count(a, n), n % 10 == 2 && n % 100 != 12 ? "nd" : "th");
    return out;
}

static void write_text(FILE *to, const log_report *l)
{
    const log_runs *r = l->r;
    const comparison *c = l->c;
    char both[64], a[32];
    fprintf(to, "%s of %s, at %s common %s%s\n\n", r->what, sides(both, r), text_count(a, r->n),
            r->by_order ? "line" : "step", text_plural(r->n));
    if (r->by_order)
        fputs("The lines carry no steps: the first is compared with the first, and so on.\n\n", to);
    for (size_t k = 0; k < r->count; k++)
        if (r->run[k].log->notes.stride > 1)
            fprintf(to, "Of %s every %s value is taken.\n%s", letter((char[8]){0}, k),
                    ordinal((char[32]){0}, r->run[k].log->notes.stride), k + 1 == r->count ? "\n" : "");
    print_runs(to, l);
    print_parts(to, r, c);
    print_partings(to, r, c);
    fprintf(to, "\nVerdict: %s\n  ", log_run_verdicts[c->verdict]);
    text_wrap(to, 2, screen_width(to, WIDTH), " ", l->why);
}

/* ---- for programs ---- */

static void write_rows(FILE *to, report_style style, const log_report *l)
{
    record_writer w = {.kind = &log_kind, .to = to, .style = style, .document = l};
    record_begin(&w);
    for (size_t k = 0; k < PARTS; k++)
        if (l->c->parts[k].to > l->c->parts[k].from) {
            const quarter_row row = row_of_quarter(l->r, l->c, k);
            record_row(&w, &row);
        }
    record_end(&w);
}

static int64_t step_at(const log_runs *r, size_t i)
{
    return i < r->n ? r->run[0].at[i].step : -1;
}

void log_report_write(FILE *to, report_style style, const log_runs *r, const comparison *c)
{
    log_report l = {.r = r, .c = c, .count = r->count, .runs = need_memory(r->count, sizeof(run_row))};
    l.first_gap = step_at(r, c->first);
    l.apart_from = step_at(r, c->apart);
    for (size_t k = 0; k < r->count; k++)
        l.runs[k] = row_of_run(r, c, k);
    words_of(l.why, sizeof l.why, r, c);
    if (style == REPORT_TEXT)
        write_text(to, &l);
    else
        write_rows(to, style, &l);
    free(l.runs);
}
