/* report.c -- see report.h. JSON and CSV go out as tensors come; text waits for the verdict. */
#include "report.h"

#include "../text/words.h"
#include "entry.h"

#include "../array/need.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 20 }; /* rows of text without --tensors */

typedef struct step_sum {
    int64_t step;
    uint64_t tensors, differ;
} step_sum;

struct diffreport {
    FILE *to;
    report_style style;
    const diffreport_head *head;
    const tolerance *within;
    int all, sorted;
    uint64_t tensors, elements, equal, tolerated, differ, missing, extra, renamed, other_how[MATCH_SHAPE + 1];
    uint64_t not_numbers, not_compared, missing_steps, verdicts[VERDICTS];
    char unseen[640]; /* the first that was not compared, and why     */
    json_t *unread;   /* all of them                                  */
    json_t *first;    /* the entry of the first that differs, or NULL */
    table *rows;
    uint64_t unlisted;
    step_sum *steps;
    size_t n_steps;
    int64_t other_steps[2]; /* the first two that were compared and have other numbers */
    uint64_t written;       /* entries of JSON */
};

diffreport *diffreport_new(FILE *to, report_style style, const diffreport_head *head, const tolerance *within, int all)
{
    diffreport *r = need_memory(1, sizeof *r);
    *r = (diffreport){.to = to, .style = style, .head = head, .within = within, .all = all};
    r->unread = json_array();
    if (style == REPORT_TEXT)
        r->rows = table_new(">step|<tensor|<verdict|>differ|>max ULP|>max rel|>SQNR (dB)");
    if (style == REPORT_JSON) {
        fprintf(to, "{\"schema\": \"mpsim.diff/1\", \"mpsim\": \"%s\", \"config\": ", mpsim_version());
        json_t *match = json_array(), *kinds = json_array();
        for (size_t i = 0; i < head->match->count; i++)
            json_array_append_new(match, json_of_path(head->match->items[i]));
        for (size_t i = 0; i < head->kinds->count; i++)
            json_array_append_new(kinds, json_string(head->kinds->items[i]));
        json_write(to, json_pack("{s:o,s:o,s:o,s:o,s:o}", "a", json_of_path(head->paths[0]), "b",
                                 json_of_path(head->paths[1]), "tolerance",
                                 head->tolerance ? json_string(head->tolerance) : json_null(), "match", match, "kinds",
                                 kinds));
        fputs(",\n\"tensors\": [", to);
    }
    if (style == REPORT_CSV)
        entry_csv_head(to);
    return r;
}

void diffreport_free(diffreport *r)
{
    if (!r)
        return;
    json_decref(r->first);
    json_decref(r->unread);
    table_free(r->rows);
    free(r->steps);
    free(r);
}

uint64_t diffreport_compared(const diffreport *r)
{
    return r->tensors;
}

uint64_t diffreport_unseen(const diffreport *r)
{
    return r->not_compared;
}

const char *diffreport_first_unseen(const diffreport *r)
{
    return r->unseen;
}

uint64_t diffreport_differing(const diffreport *r)
{
    return r->differ + r->missing + r->extra + r->missing_steps;
}

/* ---- entries ---- */

static void add_step(diffreport *r, int64_t step, int differs)
{
    if (r->n_steps == 0 || r->steps[r->n_steps - 1].step != step) {
        need_room(&r->steps, r->n_steps, sizeof *r->steps);
        r->steps[r->n_steps++] = (step_sum){.step = step};
    }
    r->steps[r->n_steps - 1].tensors++;
    r->steps[r->n_steps - 1].differ += differs != 0;
}

static void say_unseen(diffreport *r, const sequence_entry *e)
{
    char name[256];
    snprintf(r->unseen, sizeof r->unseen, "'%s' of %.60s (%.250s)", escape_text(name, sizeof name, e->tensors[0]->name),
             e->tensors[0]->dtype, e->compared->found.evidence);
}

static void add_unread(diffreport *r, const sequence_entry *e)
{
    if (r->not_compared++ == 0)
        say_unseen(r, e);
    json_array_append_new(r->unread, json_pack("{s:s,s:s,s:s}", "name", e->tensors[0]->name, "dtype",
                                               e->tensors[0]->dtype, "reason", e->compared->found.evidence));
}

static void count(diffreport *r, const sequence_entry *e, verdict v)
{
    r->verdicts[v]++;
    r->missing_steps += e->compared == NULL;
    if (!e->compared)
        return;
    r->missing += v == VERDICT_MISSING;
    r->extra += v == VERDICT_EXTRA;
    if (!e->tensors[0] || !e->tensors[1])
        return;
    r->not_numbers += !e->tensors[0]->format && !e->tensors[1]->format;
    if (v == VERDICT_NOT_COMPARED) {
        add_unread(r, e);
        return;
    }
    r->tensors++;
    r->elements += e->tensors[1]->count;
    r->equal += v == VERDICT_EQUAL;
    r->other_how[e->how]++;
    r->renamed += e->how != MATCH_NAME;
    if (v == VERDICT_TOLERATED || v == VERDICT_DTYPE || v == VERDICT_CODES)
        r->tolerated += compare_differs(v, r->within) ? 0 : 1;
    r->differ += compare_differs(v, r->within) ? 1 : 0;
}

static void list(diffreport *r, const sequence_entry *e)
{
    if (r->all || table_rows(r->rows) < FEW)
        entry_row(r->rows, e);
    else
        r->unlisted++;
}

int diffreport_told(void *context, const sequence_entry *e)
{
    diffreport *r = context;
    const verdict v = entry_verdict(e);
    const int differs = compare_differs(v, r->within);
    count(r, e, v);
    r->sorted |= e->sorted;
    if (e->compared && e->steps[0] != e->steps[1] && r->other_steps[0] == r->other_steps[1])
        memcpy(r->other_steps, e->steps, sizeof r->other_steps);
    add_step(r, e->steps[0], differs);
    if (differs && !r->first)
        r->first = entry_json(e);
    if (r->style == REPORT_TEXT && differs)
        list(r, e);
    if (r->style == REPORT_CSV)
        entry_csv(r->to, e);
    if (r->style == REPORT_JSON) {
        fputs(r->written++ ? ",\n  " : "\n  ", r->to);
        json_write(r->to, entry_json(e));
    }
    return 0;
}

/* ---- what else is to be known ---- */

/* "step 8" */
static const char *step_text(char out[40], int64_t step)
{
    if (step < 0)
        return "no step";
    snprintf(out, 40, "step %" PRId64, step);
    return out;
}

/* Two steps of other numbers, which are compared because there is no choice; NULL: none. */
static const char *steps_note(char out[160], const diffreport *r)
{
    char a[40], b[40];
    if (r->other_steps[0] == r->other_steps[1])
        return NULL;
    snprintf(out, 160, "A is of %s, B of %s", step_text(a, r->other_steps[0]), step_text(b, r->other_steps[1]));
    return out;
}

/* Files of a side whose metadata and names say other steps; NULL: none. */
static const char *names_note(char out[512], const diffreport *r, int which)
{
    const side *s = &r->head->sides[which];
    const side_file *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i].said.named >= 0 && s->files[i].said.step != s->files[i].said.named && n++ == 0)
            first = &s->files[i];
    if (!first)
        return NULL;
    snprintf(out, 512, "%c: %.300s is of step %" PRId64 " by its metadata, of step %" PRId64 " by its name",
             which ? 'B' : 'A', first->below[0] ? first->below : first->path, first->said.step, first->said.named);
    if (n > 1)
        text_add(out, 512, ", and %zu more files disagree", n - 1);
    text_add(out, 512, "; the metadata count");
    return out;
}

static json_t *notes_json(const diffreport *r)
{
    json_t *notes = json_array();
    char text[512];
    if (steps_note(text, r))
        json_array_append_new(notes, json_string(text));
    for (int which = 0; which < 2; which++)
        if (names_note(text, r, which))
            json_array_append_new(notes, json_of_path(text));
    return notes;
}

static void print_notes(const diffreport *r)
{
    char text[512], shown[600];
    if (steps_note(text, r))
        fprintf(r->to, "%s\n", text);
    for (int which = 0; which < 2; which++)
        if (names_note(text, r, which))
            fprintf(r->to, "%s\n", escape_text(shown, sizeof shown, text));
}

/* ---- the end: JSON ---- */

static json_t *counts_json(const diffreport *r)
{
    json_t *v = json_object(), *verdicts = json_object();
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {{"tensors", r->tensors},
                  {"elements", r->elements},
                  {"equal", r->equal},
                  {"tolerated", r->tolerated},
                  {"differ", r->differ},
                  {"missing", r->missing},
                  {"extra", r->extra},
                  {"missing_steps", r->missing_steps},
                  {"renamed", r->renamed},
                  {"not_numbers", r->not_numbers},
                  {"not_compared", r->not_compared}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(v, counts[i].key, json_of_count(counts[i].n));
    for (int i = 0; i < VERDICTS; i++)
        if (r->verdicts[i])
            json_object_set_new(verdicts, verdict_words[i].word, json_of_count(r->verdicts[i]));
    json_object_set_new(v, "verdicts", verdicts);
    if (r->sorted)
        json_object_set_new(v, "order", json_string("of layers"));
    return v;
}

static json_t *step_json(const step_sum *s)
{
    return json_pack("{s:o,s:o,s:o}", "step", s->step < 0 ? json_null() : json_of_count((uint64_t)s->step), "tensors",
                     json_of_count(s->tensors), "differ", json_of_count(s->differ));
}

static void end_json(diffreport *r, int failed)
{
    fputs("\n],\n\"steps\": [", r->to);
    for (size_t i = 0; i < r->n_steps; i++) {
        fputs(i ? ",\n  " : "\n  ", r->to);
        json_write(r->to, step_json(&r->steps[i]));
    }
    fputs("\n],\n\"total\": ", r->to);
    json_write(r->to, counts_json(r));
    fputs(",\n\"notes\": ", r->to);
    json_write(r->to, notes_json(r));
    fputs(",\n\"unread\": ", r->to);
    json_write(r->to, json_incref(r->unread));
    fprintf(r->to, ",\n\"failed\": %d,\n\"equal\": %s,\n\"verdict\": ", failed,
            r->first || r->not_compared ? "false" : "true");
    const char *word = json_string_value(json_object_get(r->first, "verdict"));
    json_write(r->to, json_string(word              ? word
                                  : r->not_compared ? "equal-in-part"
                                  : r->tolerated    ? "tolerated"
                                                    : "equal"));
    fputs(",\n\"first\": ", r->to);
    json_write(r->to, r->first ? json_incref(r->first) : json_null());
    fputs("\n}\n", r->to);
}

/* ---- the end: text ---- */

/* What was not compared: of which nobody can say that it is equal. */
static void print_unseen(const diffreport *r)
{
    char a[32], text[900];
    if (!r->not_compared)
        return;
    snprintf(text, sizeof text, "%s tensor%s not compared: %s%s", text_count(a, r->not_compared),
             r->not_compared == 1 ? " was" : "s were", r->unseen, r->not_compared > 1 ? " and others" : "");
    text_wrapped(r->to, "", text);
}

static void print_verdict(const diffreport *r)
{
    char a[32], b[32], name[512];
    const char *title = json_string_value(json_object_get(r->first, "title"));
    const json_t *step = json_object_get(r->first, "step");
    if (!r->first) {
        fprintf(r->to, "Equal%s%s: %s tensor%s, %s elements\n", r->not_compared ? " in what was compared" : "",
                r->tolerated ? " within the tolerance" : "", text_count(a, r->tensors), text_plural(r->tensors),
                text_count(b, r->elements));
        print_unseen(r);
        return;
    }
    const char *shown = json_string_value(json_object_get(r->first, "name"));
    fprintf(r->to, "Differ: %s of %s tensor%s", text_count(a, diffreport_differing(r) - r->missing_steps),
            text_count(b, r->tensors + r->missing + r->extra), text_plural(r->tensors + r->missing + r->extra));
    if (r->missing_steps)
        fprintf(r->to, " and %s step%s", text_count(a, r->missing_steps), text_plural(r->missing_steps));
    if (shown && shown[0])
        fprintf(r->to, ", first %s", escape_text(name, sizeof name, shown));
    if (json_is_integer(step))
        fprintf(r->to, "%s step %" JSON_INTEGER_FORMAT, shown ? " of" : ", first", json_integer_value(step));
    fprintf(r->to, ": %s\n", title ? title : "");
    text_wrapped(r->to, "", json_string_value(json_object_get(r->first, "evidence")));
}

static void print_others(const diffreport *r)
{
    char a[32], b[32];
    const uint64_t others = diffreport_differing(r) - 1;
    if (!r->first || (others == 0 && r->tensors <= 1))
        return;
    if (others == 0)
        fprintf(r->to, "\nAll others are equal.\n");
    else {
        fprintf(r->to, "\nIn order of %s, %s that differ%s:\n",
                r->sorted ? "layers (sorted names do not tell the order of execution)" : "execution",
                text_count(a, others + 1), r->missing_steps ? ", missing steps among them" : "");
        table_print(r->rows, r->to, "  ");
        if (r->unlisted)
            fprintf(r->to, "  and %s more: --tensors lists them\n", text_count(b, r->unlisted));
    }
}

static void print_compared(const diffreport *r, int failed)
{
    static const char *const how[] = {[MATCH_KIND] = "by kind and parameter",
                                      [MATCH_PREFIX] = "but for what is in front of their names",
                                      [MATCH_CONTENT] = "by their numbers",
                                      [MATCH_SHAPE] = "by shape and order"};
    char a[32], b[32], d[32], path[512];
    fprintf(r->to, "\nA  %s\n", escape_text(path, sizeof path, r->head->paths[0]));
    fprintf(r->to, "B  %s\n", escape_text(path, sizeof path, r->head->paths[1]));
    print_notes(r);
    const size_t steps = r->n_steps - (size_t)(r->n_steps && r->steps[0].step < 0);
    fprintf(r->to, "%s tensor%s of %s elements compared", text_count(a, r->tensors), text_plural(r->tensors),
            text_count(b, r->elements));
    if (steps)
        fprintf(r->to, " in %s step%s", text_count(d, steps), text_plural(steps));
    fprintf(r->to, ", %s equal", text_count(a, r->equal));
    if (r->tolerated)
        fprintf(r->to, ", %s within the tolerance", text_count(b, r->tolerated));
    fputc('\n', r->to);
    for (int i = MATCH_KIND; i <= MATCH_SHAPE; i++)
        if (r->other_how[i])
            fprintf(r->to, "%s of other names in A and B, matched %s\n", text_count(a, r->other_how[i]), how[i]);
    if (r->not_numbers > r->not_compared)
        fprintf(r->to, "%s without floating-point numbers, compared by their integers or bytes\n",
                text_count(a, r->not_numbers - r->not_compared));
    if (r->first)
        print_unseen(r);
    if (failed)
        fprintf(r->to, "%d could not be read\n", failed);
}

void diffreport_end(diffreport *r, int failed)
{
    if (r->style == REPORT_JSON)
        end_json(r, failed);
    if (r->style == REPORT_TEXT) {
        print_verdict(r);
        if (r->first)
            entry_print(r->to, r->first);
        print_others(r);
        print_compared(r, failed);
    }
}
