/* report.c -- see report.h. */
#include "report.h"

#include "../trace/inputs.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- members ---- */

int plot_malformed(const plot_report *r, const char *what)
{
    return fail(EXIT_DATA, "%s: not a report of mpsim %s: %s", r->path, r->command, what);
}

int plot_wrong_member(const plot_report *r, const char *key, const char *what)
{
    return fail(EXIT_DATA, "%s: not a report of mpsim %s: \"%s\" is missing or not %s", r->path,
                r->command, key, what);
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
    return strncmp(schema, "mpsim.", 6) == 0 && strncmp(schema + 6, verb, n) == 0 &&
           schema[6 + n] == '/';
}

static int check_schema(const plot_report *r, const char *figure)
{
    static const char *const known[] = {"stat", "dot", "train"};
    char wanted[64];
    snprintf(wanted, sizeof wanted, "mpsim.%s/1", r->command);
    if (r->schema && strcmp(r->schema, wanted) == 0)
        return 0;
    if (r->schema && written_by(r->schema, r->command))
        return fail(EXIT_DATA, "%s: a report of another version of mpsim: this one reads %s",
                    r->path, wanted);
    for (size_t i = 0; r->schema && i < sizeof known / sizeof known[0]; i++)
        if (written_by(r->schema, known[i]))
            return fail(EXIT_DATA, "%s: a report of mpsim %s: mpsim plot %s takes one of "
                                   "mpsim %s --json", r->path, known[i], figure,
                        r->command);
    char what[96];
    snprintf(what, sizeof what, "\"schema\" is not %s", wanted);
    return plot_malformed(r, what);
}

int plot_report_load(plot_report *r, const char *path, const char *verb, const char *figure)
{
    json_error_t error;
    memset(r, 0, sizeof *r);
    r->path = path;
    r->command = verb;
    errno = 0;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!f)
        return fail(EXIT_IO, "%s: %s", path, strerror(errno));
    inputs_add(fileno(f));
    r->json = json_loadf(f, 0, &error);
    const int unreadable = ferror(f);
    const int why = errno;
    if (f != stdin)
        fclose(f);
    if (unreadable)
        return fail(EXIT_IO, "%s: %s", path, strerror(why));
    if (!r->json)
        return fail(EXIT_DATA, "%s: not JSON: line %d, column %d: %s", path, error.line,
                    error.column, error.text);
    r->schema = json_string_value(json_object_get(r->json, "schema"));
    const json_t *config = json_object_get(r->json, "config");
    r->version = json_string_value(json_object_get(config, "mpsim"));
    if (!r->version)
        r->version = json_string_value(json_object_get(config, "version"));
    return check_schema(r, figure);
}

void plot_report_clear(plot_report *r)
{
    json_decref(r->json);
    memset(r, 0, sizeof *r);
}
