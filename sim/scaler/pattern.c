/* pattern.c -- see pattern.h. */
#include "pattern.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16 };

/* Steps alike, or a group: the parts behind it. Only what has steps is one, so that playing them takes as long as their
 * steps, however much text there is between. */
typedef struct part {
    double limit;
    uint64_t times;
    size_t inside; /* parts of a group; 0: steps alike */
} part;

typedef struct reader {
    const char *text, *p;
    const char *reason;
    int keep; /* the parts */
    part *parts;
    size_t n;
} reader;

static void skip_blanks(reader *r)
{
    for (;;) {
        r->p += strspn(r->p, " \t\r\n,");
        if (*r->p != '#')
            return;
        r->p += strcspn(r->p, "\n");
    }
}

static int mistake(reader *r, const char *reason)
{
    r->reason = reason;
    return -1;
}

static const char too_many[] = "more than 10^8 steps";

/* "*N" after an item, or nothing. */
static int read_times(reader *r, uint64_t *n)
{
    *n = 1;
    const char *p = r->p + strspn(r->p, " \t");
    if (*p != '*')
        return 0;
    p += 1 + strspn(p + 1, " \t");
    r->p = p;
    if (*p < '0' || *p > '9')
        return mistake(r, "a number of times is missing after '*'");
    for (*n = 0; *p >= '0' && *p <= '9'; p++) {
        if (*n > PATTERN_STEPS)
            return mistake(r, too_many);
        *n = 10 * *n + (uint64_t)(*p - '0');
    }
    r->p = p;
    return 0;
}

/* "{S}" */
static int read_limit(reader *r, double *limit)
{
    char number[64];
    const size_t n = strcspn(r->p + 1, "}");
    if (r->p[1 + n] != '}' || n >= sizeof number)
        return mistake(r, "'}' is missing");
    memcpy(number, r->p + 1, n);
    number[n] = 0;
    if (parse_number(limit, number) != 0 || !(*limit >= 0))
        return mistake(r, "{ } takes a scale, as {2^14}");
    r->p += n + 2;
    return 0;
}

static int sequence(reader *r, int depth, uint64_t *steps);

/* One item, with its number of times. */
static int item(reader *r, int depth, uint64_t *steps)
{
    double limit = (double)INFINITY;
    const char c = *r->p;
    const size_t at = r->n;
    uint64_t length = 1, times;
    if (r->keep)
        need_room(&r->parts, r->n++, sizeof *r->parts);
    if (c == '(') {
        r->p++;
        length = 0;
        if (depth == DEPTH)
            return mistake(r, "too many parentheses inside each other");
        if (sequence(r, depth + 1, &length))
            return -1;
        if (*r->p != ')')
            return mistake(r, "')' is missing");
        r->p++;
    } else if (c == '{') {
        if (read_limit(r, &limit))
            return -1;
    } else if (c == '0' || c == '.') {
        r->p++;
    } else if (c == '1' || c == 'x' || c == 'X') {
        limit = -1;
        r->p++;
    } else {
        return mistake(r, "not one of 0 . 1 x { ( *");
    }
    if (read_times(r, &times))
        return -1;
    if (length && times > (PATTERN_STEPS - *steps) / length)
        return mistake(r, too_many);
    *steps += length * times;
    if (r->keep && length && times)
        r->parts[at] = (part){limit, times, r->n - at - 1};
    else
        r->n = at;
    return 0;
}

static int sequence(reader *r, int depth, uint64_t *steps)
{
    for (;;) {
        skip_blanks(r);
        if (*r->p == 0 || *r->p == ')')
            return 0;
        if (item(r, depth, steps))
            return -1;
    }
}

static int play(const part *parts, size_t n, pattern_visit visit, void *context)
{
    int stopped = 0;
    for (size_t i = 0; i < n && !stopped; i += 1 + parts[i].inside)
        if (!parts[i].inside)
            stopped = visit(parts[i].limit, parts[i].times, context);
        else
            for (uint64_t k = 0; k < parts[i].times && !stopped; k++)
                stopped = play(parts + i + 1, parts[i].inside, visit, context);
    return stopped;
}

int scaler_pattern_each(const char *text, pattern_visit visit, void *context, uint64_t *steps, size_t *at,
                        const char **reason)
{
    reader r = {.text = text, .p = text, .keep = visit != NULL};
    *steps = 0;
    int result = sequence(&r, 0, steps);
    if (!result && *r.p == ')')
        result = mistake(&r, "')' without '('");
    *at = (size_t)(r.p - text);
    *reason = r.reason;
    if (!result)
        result = play(r.parts, r.n, visit, context);
    free(r.parts);
    return result;
}
