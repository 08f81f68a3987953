/* pattern.c -- see pattern.h. */
#include "pattern.h"

#include "../cli/options.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 16 };

typedef struct reader {
    const char *text, *p;
    pattern_visit visit;
    void *context;
    const char *reason;
    int stopped; /* what visit returned */
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

static int sequence(reader *r, int depth, int emit, uint64_t *steps);

/* One item, with its number of times. */
static int item(reader *r, int depth, int emit, uint64_t *steps)
{
    double limit = (double)INFINITY;
    const char c = *r->p;
    const char *inside = NULL;
    uint64_t length = 1, times;
    if (c == '(') {
        inside = ++r->p;
        length = 0;
        if (depth == DEPTH)
            return mistake(r, "too many parentheses inside each other");
        if (sequence(r, depth + 1, 0, &length))
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
    if (!emit || !length)
        return 0;
    if (!inside) {
        r->stopped = r->visit(limit, times, r->context);
        return r->stopped;
    }
    const char *after = r->p;
    for (uint64_t i = 0; i < times; i++) {
        uint64_t ignored = 0;
        r->p = inside;
        if (sequence(r, depth + 1, 1, &ignored))
            return -1;
    }
    r->p = after;
    return 0;
}

static int sequence(reader *r, int depth, int emit, uint64_t *steps)
{
    for (;;) {
        skip_blanks(r);
        if (*r->p == 0 || *r->p == ')')
            return 0;
        if (item(r, depth, emit, steps))
            return -1;
    }
}

int pattern_each(const char *text, pattern_visit visit, void *context, uint64_t *steps, size_t *at,
                 const char **reason)
{
    reader r = {.text = text, .p = text, .visit = visit, .context = context};
    *steps = 0;
    int bad = sequence(&r, 0, visit != NULL, steps);
    if (!bad && *r.p == ')')
        bad = mistake(&r, "')' without '('");
    if (r.stopped)
        return r.stopped;
    *at = (size_t)(r.p - text);
    *reason = r.reason;
    return bad;
}
