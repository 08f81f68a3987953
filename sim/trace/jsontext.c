/* jsontext.c -- see jsontext.h. */
#include "jsontext.h"

#include "../text/json.h"

#include <string.h>

uint64_t trace_cursor_offset(const json_cursor *c)
{
    return c->before + c->at;
}

void trace_cursor_skip_space(json_cursor *c)
{
    while (c->at < c->n &&
           (c->text[c->at] == ' ' || c->text[c->at] == '\n' || c->text[c->at] == '\r' || c->text[c->at] == '\t'))
        c->at++;
}

int trace_cursor_more(json_cursor *c)
{
    trace_cursor_skip_space(c);
    return c->at < c->n
               ? 0
               : trace_fail(c->t, c->error, trace_cursor_offset(c), "%s is not valid JSON: it ends too early", c->what);
}

int trace_cursor_expect(json_cursor *c, const char *wanted, char *got)
{
    if (trace_cursor_more(c))
        return -1;
    const char ch = c->text[c->at];
    if (!ch || !strchr(wanted, ch))
        return trace_fail(c->t, c->error, trace_cursor_offset(c), "%s is not valid JSON: expected '%c'%s%c%s", c->what,
                          wanted[0], wanted[1] ? " or '" : "", wanted[1] ? wanted[1] : ' ', wanted[1] ? "'" : "");
    c->at++;
    if (got)
        *got = ch;
    return 0;
}

json_t *trace_cursor_value(json_cursor *c, char first, size_t limit, const char *what)
{
    json_error_t e;
    if (trace_cursor_more(c))
        return NULL;
    if (c->text[c->at] != first) {
        trace_fail(c->t, c->error, trace_cursor_offset(c), "%s is not valid: %s expected", c->what, what);
        return NULL;
    }
    const size_t left = c->n - c->at, n = left < limit ? left : limit;
    int no_memory = 0;
    json_t *v = json_text(c->text + c->at, n, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &e,
                          &no_memory);
    if (v) {
        c->at += (size_t)e.position;
        return v;
    }
    if (no_memory)
        trace_no_memory(c->t, c->error);
    else if (n < left && (size_t)e.position + 8 >= n)
        trace_fail(c->t, c->error, trace_cursor_offset(c), "%s is longer than %zu bytes", what, limit);
    else
        trace_fail(c->t, c->error, trace_cursor_offset(c) + (uint64_t)e.position, "%s is not valid JSON: %s", c->what,
                   e.text);
    return NULL;
}

const char *trace_cursor_string(json_cursor *c, size_t limit, const char *what)
{
    trace_cursor_skip_space(c);
    char *place = c->text + c->at;
    const size_t left = c->n - c->at, n = trace_plain_string(place, left < limit ? left : limit);
    if (n) {
        memmove(place, place + 1, n - 2);
        place[n - 2] = '\0';
        c->at += n;
        return place;
    }
    json_t *v = trace_cursor_value(c, '"', limit, what);
    if (!v)
        return NULL;
    memcpy(place, json_string_value(v), json_string_length(v) + 1);
    json_decref(v);
    return place;
}
