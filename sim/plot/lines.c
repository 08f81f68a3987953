/* lines.c -- see lines.h. */
#include "impl.h"

#include "../array/memory.h"
#include "../cli/options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists of a report beside that of its tensors, and the level of their records. */
static const struct {
    const char *level, *member;
} lists[] = {{"kind", "kinds"}, {"step", "steps"}};
enum { LISTS = 2 };

/* Tensors become their list where the lines were, so that they are in memory once. */
typedef struct builder {
    char *report; /* the text of the lines */
    size_t length;
    char *text[LISTS]; /* records with commas between */
    size_t n[LISTS], records[LISTS];
    FILE *to[LISTS];
    char *config, *total; /* the first line, and the last that is of that level, or NULL */
    int scaled;           /* a record of a loss scale that is not 1: gradients of mpsim.watch hold it */
} builder;

static json_t *parsed(const char *line, size_t n, char error[160])
{
    json_error_t e;
    json_t *v = json_loadb(line, n, 0, &e);
    if (!v)
        snprintf(error, 160, "not JSON: %.100s", e.text);
    return v;
}

static size_t line_length(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    return end ? (size_t)(end - text) : n;
}

static char *copy_of(const char *line, size_t n)
{
    char *copy = malloc(n + 1);
    if (copy) {
        memcpy(copy, line, n);
        copy[n] = '\0';
    }
    return copy;
}

static int is_level(const json_t *v, const char *level)
{
    const char *own = json_string_value(json_object_get(v, "level"));
    return own && strcmp(own, level) == 0;
}

int plot_lines_are(const char *text, size_t n)
{
    char error[160];
    const size_t length = line_length(text, n);
    json_t *v = length < n ? parsed(text, length, error) : NULL;
    const int are = is_level(v, "config");
    json_decref(v);
    return are;
}

/* Behind what the report has; there is room, since a line ended in one more character. */
static void add_tensor(builder *b, const char *line, size_t n)
{
    if (b->report[b->length - 1] != '[')
        b->report[b->length++] = ',';
    memmove(b->report + b->length, line, n);
    b->length += n;
}

/* Put a record into its list. */
static int add_line(builder *b, const char *line, size_t n, char error[160])
{
    json_t *v = parsed(line, n, error);
    if (!v)
        return -1;
    for (int i = 0; i < LISTS; i++)
        if (is_level(v, lists[i].level)) {
            fputs(b->records[i]++ ? ",\n" : "", b->to[i]);
            fwrite(line, 1, n, b->to[i]);
        }
    const int is_total = is_level(v, "total");
    if (is_level(v, "tensor"))
        add_tensor(b, line, n);
    b->scaled |= is_level(v, "scaler") && json_number_value(json_object_get(v, "scale")) != 1;
    json_decref(v);
    if (is_total) {
        free(b->total);
        b->total = copy_of(line, n);
    }
    snprintf(error, 160, "out of memory");
    return is_total && !b->total ? -1 : 0;
}

/* Those from `at` on. */
static int add_lines(builder *b, const char *text, size_t at, size_t n, const char *path, char error[160])
{
    for (size_t number = 1; at < n; number++) {
        const size_t length = line_length(text + at, n - at);
        char what[160];
        if (at + length == n) {
            note("%s: line %zu is cut off and ignored", path, number + 1);
            return 0;
        }
        if (add_line(b, text + at, length, what)) {
            snprintf(error, 160, "line %zu: %.140s", number + 1, what);
            return -1;
        }
        at += length + 1;
    }
    return 0;
}

static int open_lists(builder *b)
{
    memset(b, 0, sizeof *b);
    int failed = 0;
    for (int i = 0; i < LISTS; i++)
        failed |= !(b->to[i] = memory_open(&b->text[i], &b->n[i]));
    return failed;
}

static int close_lists(builder *b)
{
    int failed = 0;
    for (int i = 0; i < LISTS; i++)
        if (b->to[i]) {
            failed |= ferror(b->to[i]);
            failed |= fclose(b->to[i]);
        }
    return failed;
}

/* The first line as "config", and what a report has of it beside. */
static void put_config(FILE *to, const char *line)
{
    static const char *const members[] = {"schema", "mpsim", "formats", "recipes"};
    char error[160];
    json_t *v = parsed(line, strlen(line), error);
    fprintf(to, ",\n\"config\": %s", line);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char *text = json_dumps(json_object_get(v, members[i]), JSON_ENCODE_ANY);
        if (text)
            fprintf(to, ",\n\"%s\": %s", members[i], text);
        free(text);
    }
    json_decref(v);
}

/* What stands behind the tensors, by its length; NULL: no memory. */
static char *rest_of(const builder *b, size_t *n)
{
    char *text = NULL;
    FILE *to = memory_open(&text, n);
    if (!to)
        return NULL;
    fputc(']', to);
    put_config(to, b->config);
    for (int i = 0; i < LISTS; i++)
        if (b->n[i])
            fprintf(to, ",\n\"%s\": [%s]", lists[i].member, b->text[i]);
    if (b->total)
        fprintf(to, ",\n\"total\": %s", b->total);
    fputs(b->scaled ? ",\n\"scaled\": true}\n" : "}\n", to);
    const int failed = ferror(to);
    if (fclose(to) || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* The report takes the place of the lines; NULL: no memory, and they are as they were. */
static char *report_of(const builder *b)
{
    size_t n;
    char *rest = rest_of(b, &n), *report = rest ? realloc(b->report, b->length + n + 1) : NULL;
    if (report)
        memcpy(report + b->length, rest, n + 1);
    free(rest);
    return report;
}

char *plot_lines_joined(char *text, size_t n, const char *path, char error[160])
{
    static const char begin[] = "{\"tensors\": ["; /* no longer than a line of that level, which is kept apart */
    builder b;
    int failed = open_lists(&b);
    b.config = copy_of(text, line_length(text, n));
    b.report = text;
    b.length = sizeof begin - 1;
    snprintf(error, 160, "out of memory");
    failed |= !b.config;
    if (b.config)
        memcpy(text, begin, b.length);
    failed = failed || add_lines(&b, text, strlen(b.config) + 1, n, path, error);
    failed |= close_lists(&b);
    char *report = failed ? NULL : report_of(&b);
    if (!report)
        free(text);
    for (int i = 0; i < LISTS; i++)
        free(b.text[i]);
    free(b.total);
    free(b.config);
    return report;
}
