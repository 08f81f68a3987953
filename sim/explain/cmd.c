/* cmd.c -- mpsim explain: what a framework's message about mixed precision means. */
#include "../array/need.h"
#include "../process/output.h"
#include "../cli/reportoptions.h"
#include "../process/textfile.h"
#include "../commands.h"
#include "../text/screen.h"
#include "../text/words.h"
#include "explain.h"
#include "match.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 4 << 20, WIDTH = 100, INDENT = 12, SHOWN = 60 };

static const char more[] =
    "MESSAGE is the text that a framework printed. Tracebacks, ranks, quotes, numbers, case and line\n"
    "breaks do not matter. - reads the text from standard input. A part of a message, or a name of the\n"
    "list, is enough. All known messages in the text are explained, the longest first. Exit code 3: no\n"
    "known message.\n"
    "\n"
    "Examples:\n"
    "  mpsim explain 'Attempting to unscale FP16 gradients'\n"
    "  tail -n 50 train.err | mpsim explain -\n"
    "  mpsim explain --list                       all known messages\n";

typedef struct options {
    int list;
    report_options form;
    report_style style;
} options;

/* ---- text ---- */

static void field(FILE *to, const char *title, const char *text)
{
    fprintf(to, "  %-*s", INDENT - 2, title);
    text_wrap(to, INDENT, screen_width(to, WIDTH), " ", text);
}

static void print_message(FILE *to, const message *m)
{
    fprintf(to, "%s: ", m->framework);
    text_wrap(to, (int)strlen(m->framework) + 2, screen_width(to, WIDTH), " ", m->forms[0]);
    field(to, "meaning", m->meaning);
    field(to, "cause", m->cause);
    field(to, "cure", m->cure);
    if (m->policy)
        fprintf(to, "  %-*s%s (data/policies/%s.yaml)\n", INDENT - 2, "policy", m->policy, m->policy);
    for (int i = 0; i < MESSAGE_SEE && m->see[i]; i++)
        fprintf(to, "  %-*s%s\n", INDENT - 2, i ? "" : "see", m->see[i]);
    field(to, "source", m->source);
}

/* A message in reports. */
typedef struct explain_row {
    const message *m;
    const char *const *forms, *const *see;
    size_t form_count, see_count;
    char shown[SHOWN + 8]; /* for people */
} explain_row;

#define AT(member) offsetof(message, member)
static const record_field message_fields[] = {
    FIELD(TEXT, "name", IN_ALL, AT(name), NULL, .title = "<name"),
    FIELD(TEXT, "framework", IN_ALL, AT(framework), NULL, .title = "<framework", .spare = 2),
    {0}};
static const record_field explanation_fields[] = {
    FIELD(TEXT, "meaning", IN_ALL, AT(meaning), NULL),
    FIELD(TEXT, "cause", IN_ALL, AT(cause), NULL),
    FIELD(TEXT, "cure", IN_ALL, AT(cure), NULL),
    FIELD(TEXT, "policy", IN_ALL | FIELD_NULL, AT(policy), "A bundled policy that does it right."),
    {0}};
static const record_field source_fields[] = {FIELD(TEXT, "source", IN_ALL, AT(source), NULL), {0}};
#undef AT
static const record_kind message_record = {"message", NULL, sizeof(message), message_fields};
static const record_kind explanation_record = {"explanation", NULL, sizeof(message), explanation_fields};
static const record_kind source_record = {"source", NULL, sizeof(message), source_fields};

enum { OF_MESSAGE = IN_ALL | FIELD_INLINE | FIELD_POINTER };
#define AT(member) offsetof(explain_row, member)
static const record_field row_fields[] = {
    FIELD(RECORD, "", OF_MESSAGE, AT(m), NULL, .title = "", .record = &message_record),
    FIELD(TEXTS, "messages", IN_TREE, AT(forms), "The forms of the message; ... stands for what differs.",
          .of = AT(form_count)),
    FIELD(CHARS, NULL, 0, AT(shown), NULL, .title = "<message"),
    FIELD(RECORD, "", OF_MESSAGE, AT(m), NULL, .record = &explanation_record),
    FIELD(TEXTS, "see", IN_TREE, AT(see), "Commands.", .of = AT(see_count)),
    FIELD(RECORD, "", OF_MESSAGE, AT(m), NULL, .record = &source_record),
    {0}};
#undef AT
static const record_kind row_record = {"found", "A message, the best match first.", sizeof(explain_row), row_fields};
const report_kind explain_kind = {"mpsim.explain/1", "mpsim explain: messages of frameworks",
                                  "What a framework's message means, its cause and its cure.",
                                  REPORT_ROWS("found", &row_record)};

static size_t count_of(const char *const *texts, size_t most)
{
    size_t n = 0;
    while (n < most && texts[n])
        n++;
    return n;
}

static void write_messages(const match *found, size_t n, report_style style, FILE *to)
{
    record_writer w = {.kind = &explain_kind, .to = to, .style = style};
    record_begin(&w);
    for (size_t i = 0; i < n; i++) {
        const message *m = found[i].message;
        const int is_long = strlen(m->forms[0]) > SHOWN;
        explain_row row = {m, m->forms, m->see, count_of(m->forms, MESSAGE_FORMS), count_of(m->see, MESSAGE_SEE), ""};
        snprintf(row.shown, sizeof row.shown, "%.*s%s", is_long ? SHOWN - 4 : SHOWN, m->forms[0],
                 is_long ? " ..." : "");
        record_row(&w, &row);
    }
    table_print(w.rows, to, "");
    record_end(&w);
}

/* ---- the command ---- */

static int print_found(const options *o, const match *found, size_t n)
{
    output out;
    const int code = report_options_open(&out, &o->form);
    if (code)
        return code;
    if (o->list || o->style != REPORT_TEXT)
        write_messages(found, n, o->style, out.file);
    else
        for (size_t i = 0; i < n; i++) {
            fputs(i ? "\n" : "", out.file);
            print_message(out.file, found[i].message);
        }
    return output_close(&out);
}

static int list_all(const options *o)
{
    match all[MATCHES_MAX];
    size_t n = 0;
    for (; explain_messages[n].name && n < MATCHES_MAX; n++)
        all[n] = (match){&explain_messages[n], 0};
    return print_found(o, all, n);
}

static int explain(const options *o, const char *text)
{
    match found[MATCHES_MAX];
    const size_t n = explain_match_find(found, text);
    if (n)
        return print_found(o, found, n);
    const message *near = explain_match_nearest(text);
    if (near)
        return fail(EXIT_DATA, "explain: no message that is known; the nearest is %s's '%s' (mpsim explain %s)",
                    near->framework, near->forms[0], near->name);
    return fail(EXIT_DATA, "explain: no message that is known; 'mpsim explain --list' has them all");
}

static int explain_operands(const options *o, char **words, int n)
{
    trace_error error;
    const int piped = n == 1 && strcmp(words[0], "-") == 0;
    char *text = piped ? text_file_read("-", TEXT_MOST, NULL, &error)
                       : need_join((const char *const *)words, (size_t)n, " ");
    if (!text)
        return fail(error.exit, "%s", error.text);
    const int code = explain(o, text);
    free(text);
    return code;
}

int cmd_explain(const command *self, int argc, char **argv)
{
    options o = {0};
    int first;
    const option_row table_of_options[] = {
        {'l', "list", OPTION_FLAG, &o.list, NULL, "list all known messages (also without MESSAGE)"},
        JSON_OPTION_ROW(o.form, "mpsim.explain/1"),
        NDJSON_OPTION_ROW(o.form, "message"),
        CSV_OPTION_ROW(o.form, ""),
        OUTPUT_OPTION_ROW(o.form),
        EXCLUDES("list", "MESSAGE", NULL),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    o.style = report_options_style(&o.form);
    if (first < argc)
        return explain_operands(&o, argv + first, argc - first);
    o.list = 1;
    return list_all(&o);
}
