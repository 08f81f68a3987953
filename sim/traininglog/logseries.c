/* logseries.c -- see logseries.h. */
#include "impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 256, VALUE = 64 };

typedef struct scan {
    const char *p;
    uint64_t line;
} scan;

static void skip_blanks(scan *s)
{
    for (; isspace((unsigned char)*s->p); s->p++)
        s->line += *s->p == '\n';
}

/* The mark that is next, with what is blank before it. */
static int take(scan *s, char mark)
{
    skip_blanks(s);
    if (*s->p != mark)
        return 0;
    s->p++;
    return 1;
}

/* "TEXT": without marks that need a backslash, as names of metrics are. */
static int take_text(scan *s, char out[NAME])
{
    if (!take(s, '"'))
        return 0;
    const size_t n = strcspn(s->p, "\"\\\n");
    if (s->p[n] != '"' || n >= NAME)
        return 0;
    memcpy(out, s->p, n);
    out[n] = 0;
    s->p += n + 1;
    return 1;
}

static int take_value(scan *s, char out[VALUE])
{
    skip_blanks(s);
    const size_t n = strcspn(s->p, ",}] \t\r\n");
    if (n == 0 || n >= VALUE)
        return 0;
    memcpy(out, s->p, n);
    out[n] = 0;
    s->p += n;
    return 1;
}

/* {"1": 0.5, "2": 0.4}; -1: damaged. */
static int take_series(scan *s, const char *name, int (*visit)(const char *, uint64_t, void *), void *context)
{
    char step[NAME], value[VALUE], line[NAME * 2 + VALUE + 16];
    if (!take(s, '{'))
        return -1;
    do {
        if (take(s, '}'))
            return 0; /* none */
        if (!take_text(s, step) || !take(s, ':') || !take_value(s, value))
            return -1;
        snprintf(line, sizeof line, "step: %s  %s: %s", step, name, value);
        const int stop = visit(line, s->line, context);
        if (stop)
            return stop;
    } while (take(s, ','));
    return take(s, '}') ? 0 : -1;
}

void traininglog_series_name(char *name, size_t size, const char *tag)
{
    const char *known = tag && *tag ? tag : "loss";
    snprintf(name, size, "%.*s", (int)strcspn(known, "."), known);
    if (strncmp(name, "train_", 6) == 0 || strncmp(name, "val_", 4) == 0)
        *strchr(name, '_') = '/';
}

/* [wall time, step, value], as TensorBoard's download has them; -1: damaged. */
static int take_point(scan *s, const char *name, int (*visit)(const char *, uint64_t, void *), void *context)
{
    char wall[VALUE], step[VALUE], value[VALUE], line[NAME + 3 * VALUE];
    if (!take(s, '[') || !take_value(s, wall) || !take(s, ',') || !take_value(s, step) || !take(s, ',') ||
        !take_value(s, value) || !take(s, ']'))
        return -1;
    snprintf(line, sizeof line, "step: %s  %s: %s", step, name, value);
    return visit(line, s->line, context);
}

static int points(scan *s, const char *tag, int (*visit)(const char *, uint64_t, void *), void *context)
{
    char name[NAME];
    int stop = 0;
    traininglog_series_name(name, sizeof name, tag);
    do
        stop = take_point(s, name, visit, context);
    while (!stop && take(s, ','));
    return stop;
}

static int begins_points(scan s)
{
    char value[VALUE];
    return take(&s, '[') && take(&s, '[') && take_value(&s, value) && take(&s, ',') &&
           strspn(value, "0123456789.e+") == strlen(value);
}

int traininglog_series_begins(const char *bytes, size_t n)
{
    char begin[1024], name[NAME], step[NAME];
    scan s = {begin, 1};
    const size_t most = n < sizeof begin - 1 ? n : sizeof begin - 1;
    memcpy(begin, bytes, most);
    begin[most] = 0;
    if (begins_points(s))
        return 1;
    return take(&s, '{') && take_text(&s, name) && take(&s, ':') && take(&s, '{') && take_text(&s, step) &&
           take(&s, ':') && step[0] && strspn(step, "0123456789") == strlen(step);
}

int traininglog_series_lines(const char *text, const char *tag,
                             int (*visit)(const char *line, uint64_t number, void *context), void *context)
{
    scan s = {text, 1};
    char name[NAME];
    if (begins_points(s) && take(&s, '[')) {
        const int stop = points(&s, tag, visit, context);
        return stop < 0 ? 0 : stop;
    }
    if (!take(&s, '{'))
        return 0;
    do {
        if (!take_text(&s, name) || !take(&s, ':'))
            return 0;
        const int stop = take_series(&s, name, visit, context);
        if (stop)
            return stop < 0 ? 0 : stop;
    } while (take(&s, ','));
    return 0;
}
