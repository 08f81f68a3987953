/* cmd.c -- mpsim explain: what a framework's message about mixed precision means. */
#include "../array/need.h"
#include "../cli/output.h"
#include "../cli/reportoptions.h"
#include "../cli/textfile.h"
#include "../commands.h"
#include "../text/words.h"
#include "match.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 4 << 20, WIDTH = 100, INDENT = 12, SHOWN = 60 };

static const char more[] =
    "MESSAGE is what a framework printed, as it was pasted: traceback, ranks, quotes, numbers, case and line\n"
    "breaks do not matter. - reads it from standard input. A piece of a message, or the name of a row of the\n"
    "list, will do. All messages that a text holds are told, the longest first.\n"
    "Exit code 3: no known message.\n"
    "\n"
    "Examples:\n"
    "  mpsim explain 'Attempting to unscale FP16 gradients'\n"
    "  tail -n 50 train.err | mpsim explain -\n"
    "  mpsim explain --list                       all that are known\n";

typedef struct options {
    int list;
    report_options form;
} options;

/* ---- text ---- */

static void field(FILE *to, const char *title, const char *text)
{
    fprintf(to, "  %-*s", INDENT - 2, title);
    text_wrap(to, INDENT, WIDTH, " ", text);
}

static void print_message(FILE *to, const message *m)
{
    fprintf(to, "%s: ", m->framework);
    text_wrap(to, (int)strlen(m->framework) + 2, WIDTH, " ", m->forms[0]);
    field(to, "meaning", m->meaning);
    field(to, "cause", m->cause);
    field(to, "cure", m->cure);
    if (m->policy)
        fprintf(to, "  %-*s%s (data/policies/%s.yaml)\n", INDENT - 2, "policy", m->policy, m->policy);
    for (int i = 0; i < MESSAGE_SEE && m->see[i]; i++)
        fprintf(to, "  %-*s%s\n", INDENT - 2, i ? "" : "see", m->see[i]);
    field(to, "source", m->source);
}

static void print_list(FILE *to)
{
    table *t = table_new("<name|<framework|<message");
    for (const message *m = messages; m->name; m++) {
        const size_t n = strlen(m->forms[0]);
        table_cell(t, "%s", m->name);
        table_cell(t, "%s", m->framework);
        table_cell(t, "%.*s%s", n > SHOWN ? SHOWN - 4 : SHOWN, m->forms[0], n > SHOWN ? " ..." : "");
    }
    table_print(t, to, "");
    table_free(t);
}

/* ---- JSON ---- */

static json_t *texts(const char *const *text, int most)
{
    json_t *v = json_array();
    for (int i = 0; i < most && text[i]; i++)
        json_array_append_new(v, json_string(text[i]));
    return v;
}

static json_t *message_json(const message *m)
{
    json_t *v = json_object();
    json_object_set_new(v, "name", json_string(m->name));
    json_object_set_new(v, "framework", json_string(m->framework));
    json_object_set_new(v, "messages", texts(m->forms, MESSAGE_FORMS));
    json_object_set_new(v, "meaning", json_string(m->meaning));
    json_object_set_new(v, "cause", json_string(m->cause));
    json_object_set_new(v, "cure", json_string(m->cure));
    json_object_set_new(v, "policy", m->policy ? json_string(m->policy) : json_null());
    json_object_set_new(v, "see", texts(m->see, MESSAGE_SEE));
    json_object_set_new(v, "source", json_string(m->source));
    return v;
}

static void print_json(FILE *to, const match *found, size_t n)
{
    json_begin(to, "mpsim.explain/1");
    fputs("\"found\": [", to);
    for (size_t i = 0; i < n; i++) {
        json_item(to, REPORT_JSON, i, message_json(found[i].message));
    }
    fputs("]}\n", to);
}

/* ---- the command ---- */

static int print_found(const options *o, const match *found, size_t n)
{
    output out;
    const int code = output_open(&out, o->form.path);
    if (code)
        return code;
    if (o->form.json)
        print_json(out.file, found, n);
    else if (o->list)
        print_list(out.file);
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
    for (; messages[n].name && n < MATCHES_MAX; n++)
        all[n] = (match){&messages[n], 0};
    return print_found(o, all, n);
}

static int explain(const options *o, const char *text)
{
    match found[MATCHES_MAX];
    const size_t n = match_find(found, text);
    if (n)
        return print_found(o, found, n);
    const message *near = match_nearest(text);
    if (near)
        return fail(EXIT_DATA, "explain: no message that is known; the nearest is %s's '%s' (mpsim explain %s)",
                    near->framework, near->forms[0], near->name);
    return fail(EXIT_DATA, "explain: no message that is known; 'mpsim explain --list' has them all");
}

/* All operands as one text, as if they had been quoted. */
static char *joined(char **words, int n)
{
    size_t room = 1;
    for (int i = 0; i < n; i++)
        room += strlen(words[i]) + 1;
    char *text = need_memory(room, 1), *at = text;
    for (int i = 0; i < n; i++)
        at = stpcpy(stpcpy(at, i ? " " : ""), words[i]);
    return text;
}

static int explain_operands(const options *o, char **words, int n)
{
    trace_error error;
    const int piped = n == 1 && strcmp(words[0], "-") == 0;
    char *text = piped ? text_file_read("-", TEXT_MOST, NULL, &error) : joined(words, n);
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
        {'l', "list", OPTION_FLAG, &o.list, NULL, "list all messages that are known (also without MESSAGE)"},
        JSON_OPTION_ROW(o.form, "mpsim.explain/1"),
        OUTPUT_OPTION_ROW(o.form),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    const int code = options_parse(self, table_of_options, argc, argv, &first, more);
    if (code >= 0)
        return code;
    if (o.list && first < argc)
        return fail(EXIT_USAGE, "explain: --list takes no message");
    if (first < argc)
        return explain_operands(&o, argv + first, argc - first);
    o.list = 1;
    return list_all(&o);
}
