/* report.c -- see report.h. Rows of programs go out as tensors come; text waits for the verdict. */
#include "report.h"

#include "../text/words.h"
#include "impl.h"

#include "../array/need.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 20 }; /* rows of text without --tensors */

typedef struct step_sum {
    int64_t step;
    uint64_t tensors, differ;
} step_sum;

typedef struct totals {
    uint64_t tensors, elements, equal, tolerated, differ, missing, extra, missing_steps, renamed, not_numbers,
        not_compared;
    const uint64_t *verdicts; /* of the report */
    const char *order;        /* or NULL */
} totals;

/* A tensor that was not compared; the texts are its own. */
typedef struct unseen {
    char *name, *dtype, *reason;
} unseen;

struct diffreport {
    record_writer w;
    const diffreport_head *head;
    const tolerance *within;
    int all;
    uint64_t other_how[MATCH_SHAPE + 1], verdicts[VERDICTS], unlisted;
    totals total;
    entry *first; /* the first that differs, or NULL */
    unseen *unread;
    step_sum *steps;
    size_t n_unread, n_steps, n_notes;
    int64_t other_steps[2]; /* the first two that were compared and have other numbers */
    char text[3][512];
    const char *note[3];      /* in `text` */
    const char *const *notes; /* `note` */
    uint64_t failed;
    int equal;
    verdict verdict;
    char first_unseen[640]; /* of `unread` */
};

/* ---- the record ---- */

#define AT(member) offsetof(diffreport_head, member)
static const record_field config_fields[] = {
    FIELD(TEXT, "a", IN_JSON, AT(paths[0]), NULL),
    FIELD(TEXT, "b", IN_JSON, AT(paths[1]), NULL),
    FIELD(TEXT, "tolerance", IN_JSON | FIELD_NULL, AT(tolerance), NULL),
    FIELD(TEXTS, "match", IN_JSON, AT(match.items), "Patterns of --match.", .of = AT(match.count)),
    FIELD(TEXTS, "kinds", IN_JSON, AT(kinds.items), "Of --kind.", .of = AT(kinds.count)),
    {0}};
static const record_kind config_record = {"config", NULL, sizeof(diffreport_head), config_fields};
#undef AT

#define AT(member) offsetof(step_sum, member)
static const record_field step_fields[] = {FIELD(STEP, "step", IN_JSON | FIELD_NULL, AT(step), NULL),
                                           FIELD(COUNT, "tensors", IN_JSON, AT(tensors), NULL),
                                           FIELD(COUNT, "differ", IN_JSON, AT(differ), NULL),
                                           {0}};
static const record_kind step_record = {"step", NULL, sizeof(step_sum), step_fields};
#undef AT

#define AT(member) offsetof(totals, member)
static const char *const orders[] = {"of layers", NULL};
static const record_field total_fields[] = {
    FIELD(COUNT, "tensors", IN_JSON, AT(tensors), "Compared."),
    FIELD(COUNT, "elements", IN_JSON, AT(elements), "Of the tensors that were compared."),
    FIELD(COUNT, "equal", IN_JSON, AT(equal), NULL),
    FIELD(COUNT, "tolerated", IN_JSON, AT(tolerated), "Not equal, but within --tolerance."),
    FIELD(COUNT, "differ", IN_JSON, AT(differ), NULL),
    FIELD(COUNT, "missing", IN_JSON, AT(missing), "In A alone."),
    FIELD(COUNT, "extra", IN_JSON, AT(extra), "In B alone."),
    FIELD(COUNT, "missing_steps", IN_JSON, AT(missing_steps), "Steps that are in A or B alone."),
    FIELD(COUNT, "renamed", IN_JSON, AT(renamed), "Matched, though they have other names."),
    FIELD(COUNT, "not_numbers", IN_JSON, AT(not_numbers),
          "Without floating-point numbers: compared by their integers or bytes, or not compared."),
    FIELD(COUNT, "not_compared", IN_JSON, AT(not_compared), "Their data are not there."),
    FIELD(TALLY, "verdicts", IN_JSON, AT(verdicts), "Tensors of each verdict.", .words = diff_verdict_words),
    FIELD(TEXT, "order", IN_JSON | FIELD_OPTIONAL, AT(order), "Sorted names do not tell the order of execution.",
          .words = orders),
    {0}};
static const record_kind total_record = {"total", NULL, sizeof(totals), total_fields};
#undef AT

#define AT(member) offsetof(unseen, member)
static const record_field unseen_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL),
                                             FIELD(TEXT, "dtype", IN_JSON, AT(dtype), NULL),
                                             FIELD(TEXT, "reason", IN_JSON, AT(reason), NULL),
                                             {0}};
static const record_kind unseen_record = {"unread", NULL, sizeof(unseen), unseen_fields};
#undef AT

#define AT(member) offsetof(struct diffreport, member)
static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON | FIELD_POINTER, AT(head), NULL, .record = &config_record),
    FIELD(LIST, "tensors", IN_JSON | FIELD_STREAM, 0, NULL, .record = &diff_entry_record),
    FIELD(LIST, "steps", IN_JSON, AT(steps), NULL, .of = AT(n_steps), .record = &step_record),
    FIELD(RECORD, "total", IN_JSON, AT(total), NULL, .record = &total_record),
    FIELD(TEXTS, "notes", IN_JSON, AT(notes), NULL, .of = AT(n_notes)),
    FIELD(LIST, "unread", IN_JSON, AT(unread), "Tensors that were not compared.", .of = AT(n_unread),
          .record = &unseen_record),
    FIELD(COUNT, "failed", IN_JSON, AT(failed), "Files that could not be read."),
    FIELD(BOOLEAN, "equal", IN_JSON, AT(equal), "All tensors were compared, and none differs."),
    FIELD(WORD, "verdict", IN_JSON, AT(verdict),
          "Of the first tensor that differs; else equal, tolerated, or equal-in-part: some were not compared.",
          .words = diff_verdict_words),
    FIELD(RECORD, "first", IN_JSON | FIELD_POINTER | FIELD_NULL, AT(first), "The first tensor that differs.",
          .record = &diff_entry_record),
    {0}};
static const record_kind document = {"document", NULL, sizeof(struct diffreport), document_fields};
const report_kind diff_kind = {"mpsim.diff/1", "mpsim diff: where two traces differ",
                               "Tensors of A and B, what they differ by and what explains it. $defs/line is a line of "
                               "--ndjson, which is a tensor and names no schema.",
                               &document};
#undef AT

/* ---- begin and end ---- */

diffreport *diff_report_new(FILE *to, report_style style, const diffreport_head *head, const tolerance *within, int all)
{
    diffreport *r = need_memory(1, sizeof *r);
    *r = (diffreport){
        .w = {.kind = &diff_kind, .to = to, .style = style, .document = r}, .head = head, .within = within, .all = all};
    r->total.verdicts = r->verdicts;
    r->notes = r->note;
    record_begin(&r->w);
    return r;
}

void diff_report_free(diffreport *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_unread; i++) {
        free(r->unread[i].name);
        free(r->unread[i].dtype);
        free(r->unread[i].reason);
    }
    diff_entry_free(r->first);
    table_free(r->w.rows);
    free(r->unread);
    free(r->steps);
    free(r);
}

uint64_t diff_report_compared(const diffreport *r)
{
    return r->total.tensors;
}

uint64_t diff_report_unseen(const diffreport *r)
{
    return r->total.not_compared;
}

const char *diff_report_first_unseen(const diffreport *r)
{
    return r->first_unseen;
}

uint64_t diff_report_differing(const diffreport *r)
{
    const totals *t = &r->total;
    return t->differ + t->missing + t->extra + t->missing_steps;
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

static void say_unseen(diffreport *r, const unseen *u)
{
    char name[256];
    snprintf(r->first_unseen, sizeof r->first_unseen, "'%s' of %.60s (%.250s)", escape_text(name, sizeof name, u->name),
             u->dtype, u->reason);
}

static void add_unseen(diffreport *r, const sequence_entry *e)
{
    const side_tensor *x = e->tensors[0];
    const unseen u = {need_text(x->name), need_text(x->dtype), need_text(e->compared->found.evidence)};
    if (r->total.not_compared++ == 0)
        say_unseen(r, &u);
    need_room(&r->unread, r->n_unread, sizeof *r->unread);
    r->unread[r->n_unread++] = u;
}

static void count_pair(diffreport *r, const sequence_entry *e, verdict v)
{
    totals *t = &r->total;
    const int may_tolerate = v == VERDICT_TOLERATED || v == VERDICT_DTYPE || v == VERDICT_CODES;
    const int differs = diff_compare_differs(v, r->within);
    t->not_numbers += !e->tensors[0]->format && !e->tensors[1]->format;
    if (v == VERDICT_NOT_COMPARED) {
        add_unseen(r, e);
        return;
    }
    t->tensors++;
    t->elements += e->tensors[1]->count;
    t->equal += v == VERDICT_EQUAL;
    t->renamed += e->how != MATCH_NAME;
    t->tolerated += may_tolerate && !differs;
    t->differ += differs != 0;
    r->other_how[e->how]++;
}

static void count(diffreport *r, const sequence_entry *e, verdict v)
{
    totals *t = &r->total;
    r->verdicts[v]++;
    t->missing_steps += e->compared == NULL;
    t->missing += e->compared && v == VERDICT_MISSING;
    t->extra += e->compared && v == VERDICT_EXTRA;
    if (e->compared && e->tensors[0] && e->tensors[1])
        count_pair(r, e, v);
}

/* A row; for people only of what differs, and of the first. */
static void put_row(diffreport *r, const entry *e, int differs)
{
    const int text = r->w.style == REPORT_TEXT;
    if (text && !differs)
        return;
    if (!text || r->all || table_rows(r->w.rows) < FEW)
        record_row(&r->w, e);
    else
        r->unlisted++;
}

int diff_report_told(void *context, const sequence_entry *e)
{
    diffreport *r = context;
    const verdict v = diff_entry_verdict(e);
    const int differs = diff_compare_differs(v, r->within);
    entry *one = diff_entry_new(e);
    count(r, e, v);
    if (e->sorted)
        r->total.order = orders[0];
    if (e->compared && e->steps[0] != e->steps[1] && r->other_steps[0] == r->other_steps[1])
        memcpy(r->other_steps, e->steps, sizeof r->other_steps);
    add_step(r, e->steps[0], differs);
    put_row(r, one, differs);
    if (differs && !r->first)
        r->first = one;
    else
        diff_entry_free(one);
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
static const char *steps_note(char out[512], const diffreport *r)
{
    char a[40], b[40];
    if (r->other_steps[0] == r->other_steps[1])
        return NULL;
    snprintf(out, 512, "A is of %s, B of %s", step_text(a, r->other_steps[0]), step_text(b, r->other_steps[1]));
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

static void add_note(diffreport *r, const char *text)
{
    if (text)
        r->note[r->n_notes++] = text;
}

static void take_notes(diffreport *r)
{
    add_note(r, steps_note(r->text[0], r));
    for (int which = 0; which < 2; which++)
        add_note(r, names_note(r->text[1 + which], r, which));
}

/* ---- the end: text ---- */

/* What was not compared: of which nobody can say that it is equal. */
static void print_unseen(const diffreport *r)
{
    char a[32], text[900];
    const uint64_t n = r->total.not_compared;
    if (!n)
        return;
    snprintf(text, sizeof text, "%s tensor%s not compared: %s%s", text_count(a, n), n == 1 ? " was" : "s were",
             r->first_unseen, n > 1 ? " and others" : "");
    text_wrapped(r->w.to, "", text);
}

static void print_equal(const diffreport *r)
{
    const totals *t = &r->total;
    char a[32], b[32];
    fprintf(r->w.to, "Equal%s%s: %s tensor%s, %s elements\n", t->not_compared ? " in what was compared" : "",
            t->tolerated ? " within the tolerance" : "", text_count(a, t->tensors), text_plural(t->tensors),
            text_count(b, t->elements));
    print_unseen(r);
}

static void print_first(const diffreport *r)
{
    const totals *t = &r->total;
    const entry *e = r->first;
    const uint64_t all = t->tensors + t->missing + t->extra;
    char a[32], b[32], name[512];
    fprintf(r->w.to, "Differ: %s of %s tensor%s", text_count(a, diff_report_differing(r) - t->missing_steps),
            text_count(b, all), text_plural(all));
    if (t->missing_steps)
        fprintf(r->w.to, " and %s step%s", text_count(a, t->missing_steps), text_plural(t->missing_steps));
    if (e->name && e->name[0])
        fprintf(r->w.to, ", first %s", escape_text(name, sizeof name, e->name));
    if (e->step >= 0)
        fprintf(r->w.to, "%s step %" PRId64, e->name ? " of" : ", first", e->step);
    fprintf(r->w.to, ": %s\n", e->title);
    text_wrapped(r->w.to, "", e->evidence);
    diff_entry_print(r->w.to, e);
}

static void print_others(const diffreport *r)
{
    char a[32];
    const uint64_t others = diff_report_differing(r) - 1;
    if (others == 0 && r->total.tensors > 1)
        fprintf(r->w.to, "\nAll others are equal.\n");
    if (others == 0)
        return;
    fprintf(r->w.to, "\nIn order of %s, %s that differ%s:\n",
            r->total.order ? "layers (sorted names do not tell the order of execution)" : "execution",
            text_count(a, others + 1), r->total.missing_steps ? ", missing steps among them" : "");
    table_print(r->w.rows, r->w.to, "  ");
    if (r->unlisted)
        fprintf(r->w.to, "  and %s more: --tensors lists them\n", text_count(a, r->unlisted));
}

static void print_paths(const diffreport *r)
{
    char text[600];
    fprintf(r->w.to, "\nA  %s\n", escape_text(text, sizeof text, r->head->paths[0]));
    fprintf(r->w.to, "B  %s\n", escape_text(text, sizeof text, r->head->paths[1]));
    for (size_t i = 0; i < r->n_notes; i++)
        fprintf(r->w.to, "%s\n", escape_text(text, sizeof text, r->notes[i]));
}

static void print_compared(const diffreport *r)
{
    const totals *t = &r->total;
    char a[32], b[32];
    const size_t steps = r->n_steps - (size_t)(r->n_steps && r->steps[0].step < 0);
    fprintf(r->w.to, "%s tensor%s of %s elements compared", text_count(a, t->tensors), text_plural(t->tensors),
            text_count(b, t->elements));
    if (steps)
        fprintf(r->w.to, " in %s step%s", text_count(a, steps), text_plural(steps));
    fprintf(r->w.to, ", %s equal", text_count(a, t->equal));
    if (t->tolerated)
        fprintf(r->w.to, ", %s within the tolerance", text_count(b, t->tolerated));
    fputc('\n', r->w.to);
}

static void print_rest(const diffreport *r)
{
    static const char *const how[] = {[MATCH_KIND] = "by kind and parameter",
                                      [MATCH_PREFIX] = "but for what is in front of their names",
                                      [MATCH_CONTENT] = "by their numbers",
                                      [MATCH_SHAPE] = "by shape and order"};
    char a[32];
    for (int i = MATCH_KIND; i <= MATCH_SHAPE; i++)
        if (r->other_how[i])
            fprintf(r->w.to, "%s of other names in A and B, matched %s\n", text_count(a, r->other_how[i]), how[i]);
    if (r->total.not_numbers > r->total.not_compared)
        fprintf(r->w.to, "%s without floating-point numbers, compared by their integers or bytes\n",
                text_count(a, r->total.not_numbers - r->total.not_compared));
    if (r->first)
        print_unseen(r);
    if (r->failed)
        fprintf(r->w.to, "%" PRIu64 " could not be read\n", r->failed);
}

static void print_text(const diffreport *r)
{
    if (r->first) {
        print_first(r);
        print_others(r);
    } else {
        print_equal(r);
    }
    print_paths(r);
    print_compared(r);
    print_rest(r);
}

void diff_report_end(diffreport *r, int failed)
{
    const totals *t = &r->total;
    r->failed = (uint64_t)failed;
    r->equal = !r->first && !t->not_compared;
    r->verdict = r->first          ? r->first->verdict
                 : t->not_compared ? VERDICT_IN_PART
                 : t->tolerated    ? VERDICT_TOLERATED
                                   : VERDICT_EQUAL;
    take_notes(r);
    if (r->w.style == REPORT_TEXT)
        print_text(r);
    record_end(&r->w);
}
