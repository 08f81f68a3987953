/* record.c -- see record.h. */
#include "record.h"

#include "../operand/element.h"
#include "../record/cells.h"
#include "../text/screen.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(mpsim_judge_finding, member)
static const record_field finding_fields[] = {
    FIELD(TEXT, "cause", IN_TREE, AT(cause), "What the results that differ have in common, in a word."),
    FIELD(COUNT, "explains", IN_TREE, AT(explains), "Of the results that differ, so many."),
    FIELD(CHARS, "text", IN_TREE, AT(text), "The same in a sentence."),
    {0}};
#undef AT
const record_kind judge_finding_record = {"finding", "Something that results which differ have in common.",
                                          sizeof(mpsim_judge_finding), finding_fields};

#define AT(member) offsetof(judge_place_row, member)
static const record_field place_fields[] = {
    FIELD(SIZE, "row", IN_ALL, AT(row), NULL, .title = ">row"),
    FIELD(SIZE, "column", IN_ALL, AT(column), NULL, .title = ">column"),
    FIELD(REAL, "exact", IN_ALL | FIELD_NULL, AT(exact),
          "What was to be rounded; null: it is not one number of binary64.", .title = ">exact", .format = "%.9g"),
    FIELD(CODE, "found_code", IN_ALL, AT(found_code), "The bits of the result.", .title = ">found"),
    FIELD(REAL, "found", IN_ALL, AT(found), "The result.", .title = ">value", .format = "%.9g"),
    FIELD(CODE, "expected_code", IN_ALL, AT(expected_code), "The bits of the row's result.", .title = ">expected"),
    FIELD(REAL, "expected", IN_ALL, AT(expected), "The row's result.", .title = ">value", .format = "%.9g"),
    {0}};
#undef AT
const record_kind judge_place_record = {"place", "A result that differs.", sizeof(judge_place_row), place_fields};

#define AT(member) offsetof(judge_report, member)
static const record_field document_fields[] = {
    FIELD(TEXT, "kind", IN_JSON, AT(kind), "The kind of operation."),
    FIELD(TEXT, "array", IN_JSON, AT(array), "The array of results that was judged."),
    FIELD(TEXT, "format", IN_JSON, AT(format), "The format of its codes."),
    FIELD(COUNT, "rows", IN_JSON, AT(rows), NULL),
    FIELD(COUNT, "columns", IN_JSON, AT(columns), NULL),
    FIELD(TEXT, "row", IN_JSON, AT(row), "The row that results are compared with: that of --like, or the nearest one."),
    FIELD(BOOLEAN, "equal", IN_JSON, AT(equal), "Whether all results are those of the row."),
    FIELD(COUNT, "results", IN_JSON, AT(results), "Results that were compared."),
    FIELD(COUNT, "differ", IN_JSON, AT(differ), "Results that are not those of the row."),
    FIELD(TEXT, "nearest", IN_JSON | FIELD_NULL, AT(nearest),
          "With --like, where results differ: the row with the fewest other results."),
    FIELD(COUNT, "nearest_differ", IN_JSON | FIELD_NULL | FIELD_IF, AT(nearest_differ),
          "Results that are not those of the nearest row.", .of = AT(has_nearest)),
    FIELD(SIZE, "same", IN_JSON, AT(same), "Rows that give the results of the row for these inputs."),
    FIELD(TEXTS, "class", IN_JSON, AT(class_list), "The first of these rows.", .of = AT(listed)),
    FIELD(LIST, "findings", IN_JSON, AT(finding), "What explains most comes first.", .record = &judge_finding_record,
          .of = AT(findings)),
    FIELD(LIST, "places", IN_JSON | FIELD_STREAM, 0, "The first results that differ.", .record = &judge_place_record),
    {0}};
#undef AT
static const record_kind document = {"document", NULL, sizeof(judge_report), document_fields};
const report_kind judge_kind = {"mpsim.judge/1", "mpsim judge: somebody else's results",
                                "Which row gives the results of an operation, and what is wrong where none does.",
                                &document};

static void fill_place(judge_place_row *to, const mpsim_judge_place *p, const mpsim_format *f)
{
    to->row = p->row;
    to->column = p->column;
    to->exact = p->exact;
    to->found = mpsim_decode(f, p->found);
    to->expected = mpsim_decode(f, p->expected);
    element_code_text(to->found_code, f, p->found);
    element_code_text(to->expected_code, f, p->expected);
}

void judge_report_fill(judge_report *r, const char *kind, const mpsim_judgement *j)
{
    *r = (judge_report){.kind = kind,
                        .array = j->role,
                        .format = j->format.name,
                        .rows = j->rows,
                        .columns = j->columns,
                        .row = j->row,
                        .nearest = *j->nearest ? j->nearest : NULL,
                        .has_nearest = *j->nearest != 0,
                        .nearest_differ = j->nearest_differ,
                        .equal = j->differ == 0,
                        .results = j->results,
                        .differ = j->differ,
                        .same = j->same,
                        .listed = j->same < MPSIM_JUDGE_ROWS ? j->same : MPSIM_JUDGE_ROWS,
                        .findings = j->findings,
                        .finding = j->finding,
                        .places = j->places};
    for (size_t i = 0; i < r->listed; i++)
        r->class_rows[i] = j->class_rows[i];
    for (size_t i = 0; i < j->places; i++)
        fill_place(&r->place_rows[i], &j->place[i], &j->format);
    r->class_list = r->class_rows;
    r->place = r->place_rows;
}

/* ---- for people ---- */

static void print_class(FILE *to, const judge_report *r)
{
    if (r->same < 2)
        return;
    fputs("the same results for these inputs: ", to);
    for (size_t i = 0, n = 0; i < r->listed; i++)
        if (strcmp(r->class_list[i], r->row) != 0)
            fprintf(to, "%s%s", n++ ? ", " : "", r->class_list[i]);
    fputs("\n", to);
}

static void print_nearest(FILE *to, const judge_report *r)
{
    char n[32];
    if (r->nearest && r->nearest_differ == 0)
        fprintf(to, "%s gives all results\n", r->nearest);
    else if (r->nearest)
        fprintf(to, "nearest row: %s, %s results differ\n", r->nearest, text_count(n, r->nearest_differ));
}

static void print_places(FILE *to, const judge_report *r)
{
    table *t = record_table(&judge_place_record, 0);
    for (size_t i = 0; i < r->places; i++)
        record_cells(t, &judge_place_record, &r->place[i], 0);
    fputs("\n", to);
    table_print(t, to, "  ");
    table_free(t);
}

void judge_report_print(FILE *to, const judge_report *r)
{
    char n[2][32];
    text_count(n[0], r->results);
    text_count(n[1], r->differ);
    if (r->equal) {
        fprintf(to, "%s %s: %s, equal in all %s results\n", r->kind, r->array, r->row, n[0]);
        print_class(to, r);
        for (size_t i = 0; i < r->findings; i++)
            fprintf(to, "  %s\n", r->finding[i].text);
        return;
    }
    fprintf(to, "%s %s: %s of %s results are not those of %s\n", r->kind, r->array, n[1], n[0], r->row);
    print_nearest(to, r);
    for (size_t i = 0; i < r->findings; i++)
        fprintf(to, "  %s: %s\n", r->finding[i].cause, r->finding[i].text);
    if (r->findings == 0)
        fputs("  nothing that these results have in common is known\n", to);
    print_places(to, r);
}
