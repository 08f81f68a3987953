/* report.c -- what mpsim verify writes: see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../text/screen.h"
#include "../text/words.h"
#include "impl.h"

#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {
    [VERIFY_DONE] = "done", [VERIFY_SKIPPED] = "skipped", [VERIFY_FAILED] = "failed", NULL};

/* ---- records ---- */

/* A row: what is compared with what; texts may be NULL. */
typedef struct line {
    const char *group, *what, *status, *with, *text, *first, *reason, *note;
    int fitting; /* FIELD_NONE: not of vectors */
    size_t done;
    uint64_t compared, mismatches;
    char outcome[1100]; /* for people: what it was compared with, or why it was not */
} line;

#define AT(member) offsetof(line, member)
static const record_field line_fields[] = {
    FIELD(TEXT, "group", IN_ALL, AT(group), NULL, .title = "<group"),
    FIELD(TEXT, "what", IN_ALL | FIELD_NULL, AT(what), "What is compared.", .title = "<what"),
    FIELD(TEXT, "status", IN_ALL, AT(status), NULL, .words = status_names),
    FIELD(TEXT, "with", IN_ALL | FIELD_NULL, AT(with), "What it was compared with."),
    FIELD(INTEGER, "models_that_fit", IN_TREE | FIELD_OPTIONAL, AT(fitting),
          "Of recorded vectors: rows of the table of models that give every bit."),
    FIELD(COUNT, "compared", IN_ALL | FIELD_NULL | FIELD_IF, AT(compared), "Comparisons; null: it is not done.",
          .title = ">compared", .of = AT(done)),
    FIELD(COUNT, "mismatches", IN_ALL | FIELD_NULL | FIELD_IF, AT(mismatches),
          "Comparisons that differ; null: it is not done.", .title = ">mismatches", .of = AT(done)),
    FIELD(SHARE, NULL, FIELD_BLANK, AT(mismatches), NULL, .title = ">share", .spare = 2, .of = AT(compared)),
    FIELD(TEXT, "text", IN_CSV, AT(text), "The first mismatch, or why nothing was compared."),
    FIELD(TEXT, "first", IN_TREE | FIELD_NULL, AT(first), "The first mismatch."),
    FIELD(TEXT, "reason", IN_TREE | FIELD_NULL, AT(reason), "Why nothing was compared."),
    FIELD(TEXT, "note", IN_ALL | FIELD_NULL, AT(note), "What else there is to say of mismatches."),
    FIELD(CHARS, NULL, 0, AT(outcome), NULL, .title = "<with"),
    {0}};
#undef AT
static const record_kind line_record = {"row", NULL, sizeof(line), line_fields};

/* What is asked for. */
typedef struct config {
    int thorough;
    uint64_t seed;
    const char *vectors, *architecture, **models;
    size_t count;
} config;

#define AT(member) offsetof(config, member)
static const record_field config_fields[] = {
    FIELD(BOOLEAN, "thorough", IN_JSON, AT(thorough), NULL),
    FIELD(COUNT, "seed", IN_JSON, AT(seed), "Of random inputs."),
    FIELD(TEXT, "vectors", IN_JSON | FIELD_NULL, AT(vectors), "The folder or file of recorded vectors."),
    FIELD(TEXT, "architecture", IN_JSON | FIELD_NULL, AT(architecture), "Of all files; null: told by their names."),
    FIELD(TEXTS, "models", IN_JSON, AT(models), "Those of --model.", .of = AT(count)),
    {0}};
#undef AT
static const record_kind config_record = {"config", "What is asked for.", sizeof(config), config_fields};

/* What all rows come to. */
typedef struct summary {
    uint64_t comparisons, rows, mismatches, ambiguous; /* sets that several rows of the table give */
} summary;

#define AT(member) offsetof(summary, member)
static const record_field summary_fields[] = {FIELD(COUNT, "comparisons", IN_JSON, AT(comparisons), NULL),
                                              FIELD(COUNT, "rows", IN_JSON, AT(rows), "Rows that are done."),
                                              FIELD(COUNT, "mismatches", IN_JSON, AT(mismatches), NULL),
                                              {0}};
#undef AT
static const record_kind summary_record = {"total", NULL, sizeof(summary), summary_fields};

typedef struct document {
    config config;
    summary total;
} document;

static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, offsetof(document, config), NULL, .record = &config_record),
    FIELD(LIST, "rows", IN_JSON | FIELD_STREAM, 0, NULL, .record = &line_record),
    FIELD(RECORD, "total", IN_JSON, offsetof(document, total), "Of rows that are done.", .record = &summary_record),
    {0}};
static const record_kind document_record = {"document", NULL, sizeof(document), document_fields};
const report_kind verify_kind = {"mpsim.verify/1", "mpsim verify: mpsim beside other computations",
                                 "Results of mpsim compared with those of an oracle, of libraries and of processors. "
                                 "$defs/line is a line of --ndjson, which names no schema.",
                                 &document_record};

static const char *some(const char *text)
{
    return text && text[0] ? text : NULL;
}

static void write_row(record_writer *w, const verify_row *r)
{
    const int done = r->status == VERIFY_DONE;
    line row = {.group = r->group,
                .what = some(r->what),
                .status = status_names[r->status],
                .with = some(r->with),
                .text = r->text,
                .first = done ? some(r->text) : NULL,
                .reason = done ? NULL : some(r->text),
                .note = some(r->note),
                .fitting = r->fitting ? (int)r->fitting : FIELD_NONE,
                .done = (size_t)done,
                .compared = done ? r->compared : 0,
                .mismatches = r->mismatches};
    if (done)
        snprintf(row.outcome, sizeof row.outcome, "%s", r->with);
    else
        snprintf(row.outcome, sizeof row.outcome, "%s: %s", row.status, r->text);
    record_row(w, &row);
}

static summary sum_up(const verify *v)
{
    summary s = {0};
    for (size_t i = 0; i < v->count; i++) {
        s.comparisons += v->rows[i].compared;
        s.mismatches += v->rows[i].mismatches;
        s.rows += v->rows[i].status == VERIFY_DONE;
        s.ambiguous += v->rows[i].fitting > 1;
    }
    return s;
}

/* ---- text ---- */

/* Rows of a group with that status, and whether they are all of it. */
static size_t count_rows(const verify *v, const char *group, verify_status status, int *all)
{
    size_t n = 0, rows = 0;
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->rows[i].group, group) == 0) {
            rows++;
            n += v->rows[i].status == status;
        }
    *all = n == rows;
    return n;
}

static void print_wrapped(FILE *to, const char *text)
{
    enum { INDENT = 4, WIDTH = 116 };
    fprintf(to, "%*s", INDENT, "");
    text_wrap(to, INDENT, screen_width(to, WIDTH), " ", text);
}

/* What rows with mismatches or answers, or rows that were skipped, have to say beyond the table. */
static void print_notes(const verify *v, FILE *to, const char *title, int skipped)
{
    enum { AT_MOST = 10 };
    char n[32];
    uint64_t shown = 0, more = 0;
    for (size_t i = 0; i < v->count; i++) {
        const verify_row *r = &v->rows[i];
        const int has_something = skipped ? r->status == VERIFY_SKIPPED && r->note[0]
                                          : r->mismatches || (r->status == VERIFY_DONE && r->note[0]);
        if (!has_something)
            continue;
        if (shown == AT_MOST) {
            more++;
            continue;
        }
        if (shown++ == 0)
            fprintf(to, "\n%s\n", title);
        fprintf(to, "  %s: %s\n", r->group, r->what);
        if (!skipped && r->mismatches)
            print_wrapped(to, r->text);
        if (r->note[0])
            print_wrapped(to, r->note);
    }
    if (more)
        fprintf(to, "  and those of %s more row%s: see --csv\n", text_count(n, more), text_plural(more));
}

/* Rows from i on that are of one set: how many there are; the models of those without a mismatch in names. */
static size_t one_set(const verify *v, size_t i, char *names, size_t size)
{
    size_t n = 0;
    names[0] = '\0';
    for (; i + n < v->count && strcmp(v->rows[i + n].what, v->rows[i].what) == 0; n++)
        if (v->rows[i + n].mismatches == 0)
            text_add(names, size, "%s%s", *names ? ", " : "", v->rows[i + n].with);
    return n;
}

/* Of several models that the user names: those that give every bit of a set. */
static void print_fitting(const verify *v, FILE *to)
{
    char names[4096];
    size_t n;
    if (v->n_models < 2 || v->count == 0 || v->rows[0].status != VERIFY_DONE)
        return;
    fputs("\nModels that give every bit\n", to);
    for (size_t i = 0; i < v->count && v->rows[i].status == VERIFY_DONE; i += n) {
        n = one_set(v, i, names, sizeof names);
        fprintf(to, "  %s\n", v->rows[i].what);
        print_wrapped(to, *names ? names : "none of them");
    }
}

/* "; skipped: nvidia, 2 rows of vectors" */
static void print_status(const verify *v, FILE *to, verify_status status)
{
    int first = 1;
    for (const verify_group *g = verify_groups; g->name; g++) {
        int all;
        const size_t n = count_rows(v, g->name, status, &all);
        if (n == 0)
            continue;
        fprintf(to, "%s", first ? "; " : ", ");
        if (first)
            fprintf(to, "%s: ", status_names[status]);
        if (all)
            fputs(g->name, to);
        else
            fprintf(to, "%zu row%s of %s", n, text_plural(n), g->name);
        first = 0;
    }
}

static void print_total(const verify *v, const summary *s, FILE *to)
{
    char comparisons[32], rows[32], mismatches[32];
    if (s->rows)
        fprintf(to, "\n%s comparison%s in %s row%s, %s mismatch%s", text_count(comparisons, s->comparisons),
                text_plural(s->comparisons), text_count(rows, s->rows), text_plural(s->rows),
                text_count(mismatches, s->mismatches), s->mismatches == 1 ? "" : "es");
    else
        fputs("\nNothing was compared", to);
    print_status(v, to, VERIFY_SKIPPED);
    print_status(v, to, VERIFY_FAILED);
    fputc('\n', to);
    if (s->ambiguous)
        fprintf(to, "%s set%s fit%s several rows of the table, named with 'or': the set does not tell them apart\n",
                text_count(rows, s->ambiguous), text_plural(s->ambiguous), s->ambiguous == 1 ? "s" : "");
}

static void print_text(const verify *v, const record_writer *w, const summary *s)
{
    table_print(w->rows, w->to, "");
    print_fitting(v, w->to);
    print_notes(v, w->to, "First mismatches", 0);
    print_notes(v, w->to, "Skipped, but", 1);
    print_total(v, s, w->to);
}

void verify_print(const verify *v, report_style style, FILE *to)
{
    const char **models = need_memory(v->n_models, sizeof *models);
    for (size_t i = 0; i < v->n_models; i++)
        models[i] = v->models[i].name;
    const document d = {{v->thorough, v->seed, some(v->vectors), some(v->architecture), models, v->n_models},
                        sum_up(v)};
    record_writer w = {.kind = &verify_kind, .to = to, .style = style, .document = &d};
    record_begin(&w);
    for (size_t i = 0; i < v->count; i++)
        write_row(&w, &v->rows[i]);
    if (style == REPORT_TEXT)
        print_text(v, &w, &d.total);
    record_end(&w);
    free(models);
}
