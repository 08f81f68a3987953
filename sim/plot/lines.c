/* lines.c -- see lines.h. */
#include "lines.h"

#include "../array/memory.h"
#include "../cli/options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists of a report and the level of their records. */
static const struct {
    const char *level, *member;
} lists[] = {{"tensor", "tensors"}, {"kind", "kinds"}, {"step", "steps"}};
enum { LISTS = 3 };

typedef struct builder {
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

int lines_are(const char *text, size_t n)
{
    char error[160];
    const size_t length = line_length(text, n);
    json_t *v = length < n ? parsed(text, length, error) : NULL;
    const int are = is_level(v, "config");
    json_decref(v);
    return are;
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
    b->scaled |= is_level(v, "scaler") && json_number_value(json_object_get(v, "scale")) != 1;
    json_decref(v);
    if (is_total) {
        free(b->total);
        b->total = copy_of(line, n);
    }
    snprintf(error, 160, "out of memory");
    return is_total && !b->total ? -1 : 0;
}

static int add_lines(builder *b, const char *text, size_t n, const char *path, char error[160])
{
    size_t number = 1;
    for (size_t at = line_length(text, n) + 1; at < n; number++) {
        const size_t length = line_length(text + at, n - at);
        char what[160];
        if (at + length == n) {
            note("%s: line %zu is cut off, and left out", path, number + 1);
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
static void put_config(FILE *to, const char *line, size_t n)
{
    static const char *const members[] = {"schema", "mpsim", "formats", "recipes"};
    char error[160];
    json_t *v = parsed(line, n, error);
    fprintf(to, "{\"config\": %.*s", (int)n, line);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        char *text = json_dumps(json_object_get(v, members[i]), JSON_ENCODE_ANY);
        if (text)
            fprintf(to, ",\n\"%s\": %s", members[i], text);
        free(text);
    }
    json_decref(v);
}

/* A list is given up as soon as the report has it, so that the records are in memory twice at most. */
static void put_lists(builder *b, FILE *to)
{
    for (int i = 0; i < LISTS; i++) {
        if (b->n[i] || i == 0)
            fprintf(to, ",\n\"%s\": [%s]", lists[i].member, b->text[i]);
        free(b->text[i]);
        b->text[i] = NULL;
    }
}

static char *report_of(builder *b)
{
    char *report = NULL;
    size_t size;
    FILE *to = memory_open(&report, &size);
    if (!to)
        return NULL;
    put_config(to, b->config, strlen(b->config));
    put_lists(b, to);
    if (b->total)
        fprintf(to, ",\n\"total\": %s", b->total);
    fputs(b->scaled ? ",\n\"scaled\": true}\n" : "}\n", to);
    const int failed = ferror(to);
    if (fclose(to) || failed) {
        free(report);
        return NULL;
    }
    return report;
}

char *lines_joined(char *text, size_t n, const char *path, char error[160])
{
    builder b;
    char *report = NULL;
    snprintf(error, 160, "out of memory");
    int failed = open_lists(&b);
    failed = failed || add_lines(&b, text, n, path, error);
    failed |= close_lists(&b);
    b.config = copy_of(text, line_length(text, n));
    free(text);
    if (!failed && b.config)
        report = report_of(&b);
    for (int i = 0; i < LISTS; i++)
        free(b.text[i]);
    free(b.total);
    free(b.config);
    return report;
}
