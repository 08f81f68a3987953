/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../process/textfile.h"
#include "../text/words.h"
#include "impl.h"

#include <fnmatch.h>
#include <mpsim/mpsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

int plot_malformed(const plot_report *r, const char *what)
{
    return fail(EXIT_DATA, "%s: not a report of mpsim %s: %s", r->path, r->command, what);
}

int plot_wrong_member(const plot_report *r, const char *key, const char *what)
{
    return fail(EXIT_DATA, "%s: not a report of mpsim %s: \"%s\" is missing or not %s", r->path, r->command, key, what);
}

int plot_listed(const option_list *l, const char *text, int glob)
{
    int found = l->count == 0;
    for (size_t i = 0; text && !found && i < l->count; i++)
        found = glob ? fnmatch(l->items[i], text, 0) == 0 : option_list_has(l, text);
    return found;
}

/* ---- the whole ---- */

/* Whether the schema is "mpsim.VERB/" and something. */
static int written_by(const char *schema, const char *verb)
{
    const size_t n = strlen(verb);
    return strncmp(schema, "mpsim.", 6) == 0 && strncmp(schema + 6, verb, n) == 0 && schema[6 + n] == '/';
}

/* Which of the words `verbs` wrote the report; the first of them if none did. */
static void find_command(plot_report *r, const char *verbs)
{
    for (const char *at = verbs; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
        char verb[sizeof r->command];
        snprintf(verb, sizeof verb, "%.*s", (int)strcspn(at, " "), at);
        if (at == verbs || (r->schema && written_by(r->schema, verb)))
            memcpy(r->command, verb, sizeof verb);
    }
}

/* "mpsim train or mpsim replay" */
static void name_commands(char *to, size_t size, const char *verbs, const char *suffix)
{
    *to = '\0';
    for (const char *at = verbs; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        text_add(to, size, "%smpsim %.*s%s", *to ? " or " : "", (int)strcspn(at, " "), at, suffix);
}

static int check_schema(const plot_report *r, const char *verbs, const char *figure)
{
    static const char *const known[] = {"stat", "dot", "train", "diff", "scaler", "replay", "memory", "attention"};
    char wanted[64], commands[128] = "";
    snprintf(wanted, sizeof wanted, "mpsim.%s/1", r->command);
    if (r->schema && strcmp(r->schema, wanted) == 0)
        return 0;
    if (r->schema && written_by(r->schema, r->command))
        return fail(EXIT_DATA, "%s: a report of another version of mpsim: this one reads %s", r->path, wanted);
    name_commands(commands, sizeof commands, verbs, " --json");
    for (size_t i = 0; r->schema && i < sizeof known / sizeof known[0]; i++)
        if (written_by(r->schema, known[i]))
            return fail(EXIT_DATA, "%s: a report of mpsim %s: mpsim plot %s takes one of %s", r->path, known[i], figure,
                        commands);
    char what[96];
    snprintf(what, sizeof what, "\"schema\" is not %s", wanted);
    return plot_malformed(r, what);
}

/* Take over the text of a report. */
static int read_text(plot_report *r, char *text, size_t n)
{
    static const char *const lists[] = {"tensors", "kinds", "steps", "results", "trajectory", "norms", NULL};
    r->text = need_memory(1, sizeof *r->text);
    if (plot_skim_open(r->text, text, n, lists))
        return fail(EXIT_DATA, "%s: not JSON: %s", r->path, r->text->error);
    r->root.json = r->text->root;
    return 0;
}

/* JSON lines as the report that they are. */
static int join_lines(const plot_report *r, char **text)
{
    char error[160];
    char *report = *text = plot_lines_joined(*text, strlen(*text), r->path, error);
    return report ? 0 : fail(EXIT_DATA, "%s: %s", r->path, error);
}

int plot_report_load(plot_report *r, const char *path, const char *verbs, const char *figure)
{
    enum { BYTES_MAX = 256 << 20 };
    trace_error error;
    memset(r, 0, sizeof *r);
    r->path = path;
    find_command(r, verbs);
    size_t n;
    char *text = text_file_read(path, BYTES_MAX, &n, &error);
    int code = text ? 0 : fail(error.exit, "%s", error.text);
    if (!code && memchr(text, 0, n)) {
        free(text);
        code = fail(EXIT_DATA,
                    "%s: not a report: figures are drawn from what another command writes, as mpsim stat --json", path);
    }
    if (!code && plot_lines_are(text, strlen(text)))
        code = join_lines(r, &text);
    if (!code)
        code = read_text(r, text, strlen(text));
    if (code)
        return code;
    r->schema = json_string_value(json_object_get(r->root.json, "schema"));
    r->version = json_string_value(json_object_get(r->root.json, "mpsim"));
    find_command(r, verbs);
    return check_schema(r, verbs, figure);
}

void plot_report_join(plot_report *r, plot_report *other)
{
    while (r->next)
        r = r->next;
    r->next = need_memory(1, sizeof *r->next);
    *r->next = *other;
    *other = (plot_report){.path = NULL};
}

void plot_report_clear(plot_report *r)
{
    if (r->next)
        plot_report_clear(r->next);
    free(r->next);
    if (r->text)
        plot_skim_close(r->text);
    free(r->text);
    memset(r, 0, sizeof *r);
}

int plot_report_kept(plot_report *r, const record_keep *k, const char *path, const char *verb, const char *schema)
{
    *r = (plot_report){
        .path = path, .root = {.kind = k->kind, .at = k->at}, .schema = schema, .version = mpsim_version()};
    snprintf(r->command, sizeof r->command, "%s", verb);
    return k->bad ? plot_wrong_member(r, k->bad, "as figures read it") : 0;
}

/* ---- what is in it ---- */

typedef struct visitor {
    plot_visit *visit;
    void *context;
} visitor;

static int visit_json(void *context, const json_t *item)
{
    const visitor *v = context;
    return v->visit(v->context, (record_source){.json = item});
}

static int each_kept(record_source of, const char *key, const visitor *v)
{
    int code = 0;
    const size_t n = record_items(of, key);
    for (size_t i = 0; i < n && !code; i++)
        code = v->visit(v->context, record_item(of, key, i));
    return code;
}

int plot_each(const plot_report *r, record_source of, const char *key, plot_visit *visit, void *context)
{
    visitor v = {visit, context};
    const json_t *list = json_object_get(of.json, key);
    if (of.at)
        return each_kept(of, key, &v);
    if (!plot_skim_is_list(r->text, list))
        return plot_wrong_member(r, key, "an array");
    const int code = plot_skim_each(r->text, list, visit_json, &v);
    return code < 0 ? fail(EXIT_DATA, "%s: not JSON: %s", r->path, r->text->error) : code;
}

int plot_read(const plot_report *r, const record_kind *kind, record_source from, void *at, const char *needs)
{
    const char *wanted, *bad = record_read(kind, from, at, needs, &wanted);
    return bad ? plot_wrong_member(r, bad, wanted) : 0;
}
