/* report.c -- what mpsim verify writes: text, JSON (schema mpsim.verify/1), CSV. */
#include "report.h"

#include "../cli/input.h"
#include "../report/report.h"
#include "../text/words.h"
#include "groups.h"

#include <inttypes.h>
#include <string.h>

static const char *const status_names[] = {"done", "skipped", "failed"};

/* What all rows come to. */
typedef struct summary {
    uint64_t comparisons, rows, mismatches, ambiguous; /* sets that several rows of the table give */
} summary;

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

/* ---- text ---- */

static void print_row(table *t, const verify_row *r)
{
    char compared[32], mismatches[32], share[32];
    const int done = r->status == VERIFY_DONE;
    table_cell(t, "%s", r->group);
    table_cell(t, "%s", r->what);
    table_cell(t, "%s", done ? text_count(compared, r->compared) : "");
    table_cell(t, "%s", done ? text_count(mismatches, r->mismatches) : "");
    table_cell(t, "%s", done && r->mismatches && r->compared ? text_share(share, r->mismatches, r->compared) : "");
    if (done)
        table_cell(t, "%s", r->with);
    else
        table_cell(t, "%s: %s", status_names[r->status], r->text);
}

static void print_wrapped(FILE *to, const char *text)
{
    enum { INDENT = 4, WIDTH = 116 };
    fprintf(to, "%*s", INDENT, "");
    text_wrap(to, INDENT, WIDTH, " ", text);
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

void verify_print(const verify *v, FILE *to)
{
    const summary s = sum_up(v);
    char comparisons[32], rows[32], mismatches[32];
    table *t = table_new("<group|<what|>compared|>mismatches|>share|<with");
    for (size_t i = 0; i < v->count; i++)
        print_row(t, &v->rows[i]);
    table_print(t, to, "");
    table_free(t);
    print_fitting(v, to);
    print_notes(v, to, "First mismatches", 0);
    print_notes(v, to, "Skipped, but", 1);
    if (s.rows)
        fprintf(to, "\n%s comparison%s in %s row%s, %s mismatch%s", text_count(comparisons, s.comparisons),
                text_plural(s.comparisons), text_count(rows, s.rows), text_plural(s.rows),
                text_count(mismatches, s.mismatches), s.mismatches == 1 ? "" : "es");
    else
        fputs("\nNothing was compared", to);
    print_status(v, to, VERIFY_SKIPPED);
    print_status(v, to, VERIFY_FAILED);
    fputc('\n', to);
    if (s.ambiguous)
        fprintf(to, "%s set%s fit%s several rows of the table, named with 'or': the set does not tell them apart\n",
                text_count(rows, s.ambiguous), text_plural(s.ambiguous), s.ambiguous == 1 ? "s" : "");
}

/* ---- JSON, CSV ---- */

static json_t *text_or_null(const char *s)
{
    return s && s[0] ? json_string(s) : json_null();
}

static json_t *row_json(const verify_row *r)
{
    const int done = r->status == VERIFY_DONE;
    json_t *o = json_object();
    json_object_set_new(o, "group", json_string(r->group));
    json_object_set_new(o, "what", text_or_null(r->what));
    json_object_set_new(o, "status", json_string(status_names[r->status]));
    json_object_set_new(o, "with", text_or_null(r->with));
    if (r->fitting)
        json_object_set_new(o, "models_that_fit", json_integer(r->fitting));
    json_object_set_new(o, "compared", done ? json_of_count(r->compared) : json_null());
    json_object_set_new(o, "mismatches", done ? json_of_count(r->mismatches) : json_null());
    json_object_set_new(o, "first", done ? text_or_null(r->text) : json_null());
    json_object_set_new(o, "reason", done ? json_null() : text_or_null(r->text));
    json_object_set_new(o, "note", text_or_null(r->note));
    return o;
}

void verify_json(const verify *v, FILE *to)
{
    const summary s = sum_up(v);
    json_t *config = json_object(), *models = json_array(), *total = json_object();
    for (size_t i = 0; i < v->n_models; i++)
        json_array_append_new(models, json_string(v->models[i].name));
    json_object_set_new(config, "thorough", json_boolean(v->thorough));
    json_object_set_new(config, "seed", json_of_count(v->seed));
    json_object_set_new(config, "vectors", v->vectors && v->vectors[0] ? json_of_path(v->vectors) : json_null());
    json_object_set_new(config, "architecture", text_or_null(v->architecture));
    json_object_set_new(config, "models", models);
    json_object_set_new(total, "comparisons", json_of_count(s.comparisons));
    json_object_set_new(total, "rows", json_of_count(s.rows));
    json_object_set_new(total, "mismatches", json_of_count(s.mismatches));
    json_begin(to, "mpsim.verify/1");
    fputs("\"config\": ", to);
    json_write(to, config);
    fputs(",\n\"rows\": [", to);
    for (size_t i = 0; i < v->count; i++)
        json_item(to, REPORT_JSON, i, row_json(&v->rows[i]));
    fputs("],\n\"total\": ", to);
    json_write(to, total);
    fputs("}\n", to);
}

void verify_csv(const verify *v, FILE *to)
{
    fputs("group,what,status,with,compared,mismatches,text,note\n", to);
    for (size_t i = 0; i < v->count; i++) {
        const verify_row *r = &v->rows[i];
        csv_text(to, r->group);
        fputc(',', to);
        csv_text(to, r->what);
        fprintf(to, ",%s,", status_names[r->status]);
        csv_text(to, r->with);
        if (r->status == VERIFY_DONE)
            fprintf(to, ",%" PRIu64 ",%" PRIu64 ",", r->compared, r->mismatches);
        else
            fputs(",,,", to);
        csv_text(to, r->text);
        fputc(',', to);
        csv_text(to, r->note);
        fputc('\n', to);
    }
}
