/* report.c -- see report.h. */
#include "report.h"

#include "../array/need.h"
#include "../process/textfile.h"
#include "../text/words.h"
#include "impl.h"

#include <fnmatch.h>
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

int plot_get_count(const plot_report *r, const json_t *object, const char *key, uint64_t *n)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return plot_wrong_member(r, key, "a count");
    *n = (uint64_t)json_integer_value(v);
    return 0;
}

/* A finite number >= 0. */
int plot_get_magnitude(const plot_report *r, const json_t *object, const char *key, double *x)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v) || json_number_value(v) < 0)
        return plot_wrong_member(r, key, "a magnitude");
    *x = json_number_value(v);
    return 0;
}

int plot_get_string(const plot_report *r, const json_t *object, const char *key, const char **s)
{
    *s = json_string_value(json_object_get(object, key));
    return *s ? 0 : plot_wrong_member(r, key, "a string");
}

int plot_get_array(const plot_report *r, const json_t *object, const char *key, const json_t **list)
{
    *list = json_object_get(object, key);
    return json_is_array(*list) ? 0 : plot_wrong_member(r, key, "an array");
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
    skim *own = need_memory(1, sizeof *own);
    r->texts = need_memory(1, sizeof *r->texts);
    r->texts[r->n_texts++] = own;
    if (plot_skim_open(own, text, n, lists))
        return fail(EXIT_DATA, "%s: not JSON: %s", r->path, own->error);
    r->json = own->root;
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
    r->schema = json_string_value(json_object_get(r->json, "schema"));
    r->version = json_string_value(json_object_get(r->json, "mpsim"));
    find_command(r, verbs);
    return check_schema(r, verbs, figure);
}

void plot_report_join(plot_report *r, plot_report *other)
{
    r->texts = need_more(r->texts, r->n_texts + other->n_texts, sizeof *r->texts);
    for (size_t i = 0; i < other->n_texts; i++)
        r->texts[r->n_texts++] = other->texts[i];
    other->n_texts = 0;
}

void plot_report_clear(plot_report *r)
{
    for (size_t i = 0; i < r->n_texts; i++) {
        plot_skim_close(r->texts[i]);
        free(r->texts[i]);
    }
    free(r->texts);
    memset(r, 0, sizeof *r);
}

int plot_each(const plot_report *r, const json_t *v, const char *key, int (*visit)(void *context, const json_t *item),
              void *context)
{
    for (size_t i = 0; i < r->n_texts; i++)
        if (plot_skim_is_list(r->texts[i], v)) {
            const int code = plot_skim_each(r->texts[i], v, visit, context);
            return code < 0 ? fail(EXIT_DATA, "%s: not JSON: %s", r->path, r->texts[i]->error) : code;
        }
    return plot_wrong_member(r, key, "an array");
}
