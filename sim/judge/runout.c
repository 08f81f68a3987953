/* runout.c -- mpsim judge RUN: the report (see run.h). */
#include "run.h"

#include "../array/need.h"
#include "../process/host.h"
#include "../process/output.h"
#include "record.h"

#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

#define AT(member) offsetof(run_verdict, member)
static const record_field operation_fields[] = {
    FIELD(SIZE, "number", IN_ALL, AT(number), "The place of the operation in run.json, from 1.", .title = ">#"),
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL, .title = "<operation"),
    FIELD(TEXT, "kind", IN_ALL, AT(kind), "The kind of operation.", .title = "<kind"),
    FIELD(TEXT, "state", IN_ALL, AT(state), "equal, differs or not judged.", .title = "<state"),
    FIELD(CHARS, "row", IN_ALL, AT(row), "The row that results are compared with; empty: there is none.",
          .title = "<row"),
    FIELD(COUNT, "results", IN_ALL, AT(results), "Results that were compared bit by bit.", .title = ">results"),
    FIELD(COUNT, "differ", IN_ALL, AT(differ), "Results that are not those of the row.", .title = ">differ"),
    FIELD(COUNT, "digests", IN_ALL | FIELD_BLANK, AT(digests), "Digests of results that were not kept.",
          .title = ">digests"),
    FIELD(COUNT, "digests_differ", IN_ALL | FIELD_BLANK, AT(digests_differ),
          "Digests that are not those of the row's results.", .title = ">differ"),
    FIELD(CHARS, "text", IN_ALL, AT(text), "Why an operation was not judged, or which digest differs; or empty.",
          .title = "<"),
    {0}};
#undef AT
static const record_kind operation = {"operation", "An operation of the run.", sizeof(run_verdict), operation_fields};

typedef struct run_report {
    const char *run;
    uint64_t operations, equal, differing, not_judged, results, differ, digests, digests_differ;
    const run_verdict *first, *verdict;
    size_t findings;
    const mpsim_judge_finding *finding;
} run_report;

#define AT(member) offsetof(run_report, member)
static const record_field document_fields[] = {
    FIELD(TEXT, "run", IN_JSON, AT(run), "The file that lists the operations."),
    FIELD(COUNT, "operations", IN_JSON, AT(operations), NULL),
    FIELD(COUNT, "equal", IN_JSON, AT(equal), "Operations of which all results are those of the row."),
    FIELD(COUNT, "differing", IN_JSON, AT(differing), "Operations of which some results are not."),
    FIELD(COUNT, "not_judged", IN_JSON, AT(not_judged), "Operations without a verdict."),
    FIELD(COUNT, "results", IN_JSON, AT(results), "Results that were compared bit by bit."),
    FIELD(COUNT, "differ", IN_JSON, AT(differ), "Results that are not those of the row."),
    FIELD(COUNT, "digests", IN_JSON, AT(digests), "Digests of results that were not kept."),
    FIELD(COUNT, "digests_differ", IN_JSON, AT(digests_differ), "Digests that are not those of the row's results."),
    FIELD(RECORD, "first_guilty", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(first),
          "The first operation whose results are not those that its own inputs give.", .record = &operation),
    FIELD(LIST, "findings", IN_JSON, AT(finding), "Of the first guilty operation, where its results were kept.",
          .record = &judge_finding_record, .of = AT(findings)),
    FIELD(LIST, "verdicts", IN_JSON | FIELD_STREAM, 0, NULL, .record = &operation),
    {0}};
#undef AT
static const record_kind document = {"document", NULL, sizeof(run_report), document_fields};
const report_kind judge_run_kind = {
    "mpsim.judge-run/1", "mpsim judge RUN: a stored run",
    "Whether the results of each operation are those that its own inputs give under a row.", &document};

static void sum_up(run_report *to, const run *r, const run_verdict *v, const mpsim_judgement *first)
{
    *to = (run_report){.run = r->path, .verdict = v, .operations = r->operations};
    to->findings = first->findings;
    to->finding = first->finding;
    for (size_t i = 0; i < r->operations; i++) {
        to->equal += v[i].state == run_equal;
        to->differing += v[i].state == run_differs;
        to->not_judged += v[i].state == run_not_judged;
        to->first = !to->first && v[i].state == run_differs ? &v[i] : to->first;
        to->results += v[i].results;
        to->differ += v[i].differ;
        to->digests += v[i].digests;
        to->digests_differ += v[i].digests_differ;
    }
}

/* ---- for people ---- */

/* Operations of a kind, a row, a state and a reason are one line. */
typedef struct run_line {
    uint64_t operations, results, digests;
    const char *kind, *row, *state, *why;
} run_line;

#define AT(member) offsetof(run_line, member)
static const record_field line_fields[] = {COLUMN(TEXT, "<kind", 0, AT(kind), NULL),
                                           COLUMN(COUNT, ">operations", 0, AT(operations), NULL),
                                           COLUMN(COUNT, ">results", 0, AT(results), NULL),
                                           COLUMN(COUNT, ">digests", FIELD_BLANK, AT(digests), NULL),
                                           COLUMN(TEXT, "<state", 0, AT(state), NULL),
                                           COLUMN(TEXT, "<row", 0, AT(row), NULL),
                                           COLUMN(TEXT, "<", 0, AT(why), NULL),
                                           {0}};
#undef AT
static const record_kind line = {"line", NULL, sizeof(run_line), line_fields};

static int is_of(const run_line *l, const run_verdict *v)
{
    return strcmp(l->kind, v->kind) == 0 && strcmp(l->row, v->row) == 0 && l->state == v->state &&
           (v->state != run_not_judged || strcmp(l->why, v->text) == 0);
}

static void print_lines(FILE *to, const run_report *d)
{
    run_line *lines = need_memory((size_t)d->operations, sizeof *lines);
    size_t n = 0;
    for (const run_verdict *v = d->verdict; v < d->verdict + d->operations; v++) {
        size_t i = 0;
        while (i < n && !is_of(&lines[i], v))
            i++;
        if (i == n)
            lines[n++] = (run_line){
                .kind = v->kind, .row = v->row, .state = v->state, .why = v->state == run_not_judged ? v->text : ""};
        lines[i].operations++;
        lines[i].results += v->results;
        lines[i].digests += v->digests;
    }
    table *t = record_table(&line, 0);
    for (size_t i = 0; i < n; i++)
        record_cells(t, &line, &lines[i], 0);
    fputs("\n", to);
    table_print(t, to, "  ");
    table_free(t);
    free(lines);
}

static void print_digests(FILE *to, const run_report *d)
{
    char n[2][32];
    if (d->digests)
        fprintf(to, ", %s of %s digests", text_count(n[0], d->digests - d->digests_differ),
                text_count(n[1], d->digests));
}

static void print(FILE *to, const run_report *d, const mpsim_judgement *first)
{
    char n[5][32];
    judge_report r;
    fprintf(to, "%s: %s of %s operations equal in all bits: %s of %s results", d->run, text_count(n[0], d->equal),
            text_count(n[1], d->operations), text_count(n[2], d->results - d->differ), text_count(n[3], d->results));
    print_digests(to, d);
    fputs("\n", to);
    if (d->not_judged)
        fprintf(to, "not judged: %s of %s\n", text_count(n[4], d->not_judged), n[1]);
    if (d->first)
        fprintf(to, "first guilty operation: %zu, %s (%s)\n", d->first->number, d->first->name, d->first->kind);
    if (d->first && first->differ) {
        judge_report_fill(&r, d->first->kind, first);
        judge_report_print(to, &r);
    } else if (d->first) {
        fprintf(to, "  %s: it is not that of %s\n", d->first->text, d->first->row);
    }
    print_lines(to, d);
}

/* ---- the command ---- */

static int write_report(const report_options *form, const run_report *d, const mpsim_judgement *first)
{
    output out;
    record_writer w = {.kind = &judge_run_kind, .style = report_options_style(form), .document = d};
    const int code = report_options_open(&out, form);
    if (code)
        return code;
    w.to = out.file;
    if (w.style == REPORT_TEXT) {
        print(out.file, d, first);
        return output_close(&out);
    }
    record_begin(&w);
    for (size_t i = 0; i < d->operations; i++)
        record_row(&w, &d->verdict[i]);
    record_end(&w);
    return output_close(&out);
}

static int partial(const run_report *d)
{
    return fail(EXIT_PARTIAL, "judge: %s: %llu of %llu operations were not judged", d->run,
                (unsigned long long)d->not_judged, (unsigned long long)d->operations);
}

int run_judge_command(const char *path, const report_options *form)
{
    run r;
    run_report d;
    mpsim_judgement first;
    run_verdict *v = NULL;
    int code = run_open(&r, path);
    if (!code) {
        v = need_memory(r.operations, sizeof *v);
        code = run_judge(v, &first, &r);
    }
    if (!code) {
        sum_up(&d, &r, v, &first);
        code = write_report(form, &d, &first);
        code = code ? code : d.differing ? EXIT_CHECK : d.not_judged ? partial(&d) : 0;
    }
    free(v);
    run_close(&r);
    return code;
}
