/* skim.c -- see skim.h. The text is untrusted: jansson judges every part that becomes a value; of the
 * others only the brackets are looked at. */
#include "skim.h"

#include "../array/need.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE = 256 << 10,   /* bytes: a part of this size becomes a value at once         */
    ITEM_MAX = 4 << 20,  /* bytes of an item of a list                                 */
    TAKEN_MAX = 16 << 20 /* bytes beside the lists                                     */
};

/* ---- errors, blanks, the end of a value ---- */

static int bad(skim *s, size_t at, const char *what)
{
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < at && i < s->n; i++)
        if (s->text[i] == '\n') {
            line++;
            begin = i + 1;
        }
    snprintf(s->error, sizeof s->error, "line %zu, column %zu: %s", line, at - begin + 1, what);
    return -1;
}

static size_t blanks(const skim *s, size_t at)
{
    while (at < s->n && strchr(" \t\r\n", s->text[at]) && s->text[at])
        at++;
    return at;
}

/* Behind the string that begins at `at`; n if it does not end. */
static size_t string_end(const skim *s, size_t at)
{
    for (at++; at < s->n && s->text[at] != '"'; at++)
        at += s->text[at] == '\\';
    return at < s->n ? at + 1 : s->n;
}

/* Behind the value that begins at `at`; what is between is not judged. 0 if it does not end. */
static size_t value_end(const skim *s, size_t at)
{
    size_t depth = 0;
    const size_t from = at;
    while (at < s->n) {
        const char c = s->text[at];
        if (c == '"') {
            at = string_end(s, at);
        } else if (c == '[' || c == '{') {
            depth++;
            at++;
        } else if (c == ']' || c == '}') {
            if (depth == 0)
                return at > from ? at : 0;
            depth--;
            at++;
        } else if (depth == 0 && strchr(", \t\r\n:", c)) {
            return at > from ? at : 0;
        } else {
            at++;
            continue;
        }
        if (depth == 0)
            return at;
    }
    return depth == 0 && at > from ? at : 0;
}

/* The value of a part; NULL with an error. */
static json_t *take(skim *s, size_t at, size_t end)
{
    json_error_t e;
    json_t *v = json_loadb(s->text + at, end - at, JSON_DECODE_ANY, &e);
    if (!v)
        bad(s, at + (e.position > 0 ? (size_t)e.position - 1 : 0), e.text);
    return v;
}

/* ---- members ---- */

typedef int visitor(skim *s, const char *key, size_t at, size_t end, void *context);

/* Each value of the array or each member of the object that begins at `at`. */
static int each(skim *s, size_t at, visitor *visit, void *context)
{
    const int object = s->text[at] == '{';
    const char close = object ? '}' : ']';
    at = blanks(s, at + 1);
    if (at < s->n && s->text[at] == close)
        return 0;
    for (;;) {
        json_t *key = NULL;
        if (object) {
            const size_t end = at < s->n && s->text[at] == '"' ? string_end(s, at) : at;
            if (end == at || end - at > WHOLE)
                return bad(s, at, "a string is expected");
            if (!(key = take(s, at, end)))
                return -1;
            at = blanks(s, end);
            if (at == s->n || s->text[at] != ':') {
                json_decref(key);
                return bad(s, at, "':' is expected");
            }
            at = blanks(s, at + 1);
        }
        const size_t end = value_end(s, at);
        int stop = end ? visit(s, key ? json_string_value(key) : NULL, at, end, context)
                       : bad(s, at, "a value is expected, or has no end");
        json_decref(key);
        if (stop)
            return stop;
        at = blanks(s, end);
        if (at < s->n && s->text[at] == close)
            return 0;
        if (at == s->n || s->text[at] != ',')
            return bad(s, at, "',' or a closing bracket is expected");
        at = blanks(s, at + 1);
    }
}

/* ---- what becomes values ---- */

typedef struct parent {
    json_t *value;
    const char *const *lists;
    int depth;
} parent;

static json_t *add_list(skim *s, size_t at)
{
    s->lists = need_more(s->lists, s->n_lists + 1, sizeof *s->lists);
    s->lists[s->n_lists] = (skim_list){json_string(""), at};
    return json_incref(s->lists[s->n_lists++].mark);
}

static int is_named(const char *const *names, const char *key)
{
    for (; key && *names; names++)
        if (strcmp(*names, key) == 0)
            return 1;
    return 0;
}

static int read_member(skim *s, const char *key, size_t at, size_t end, void *context)
{
    enum { DEPTH = 4 };
    const parent *p = context;
    const char c = s->text[at];
    json_t *v = NULL;
    if (end - at <= WHOLE) {
        s->taken += end - at;
        if (s->taken > TAKEN_MAX)
            return bad(s, at, "more than 16 MiB beside its lists");
        v = take(s, at, end);
    } else if (c == '[' && is_named(p->lists, key)) {
        v = add_list(s, at);
    } else if ((c == '[' || c == '{') && p->depth < DEPTH) {
        parent below = {c == '[' ? json_array() : json_object(), p->lists, p->depth + 1};
        v = below.value;
        if (each(s, at, read_member, &below)) {
            json_decref(v);
            return -1;
        }
    } else {
        return bad(s, at, "a value of more than 256 KiB");
    }
    if (!v)
        return -1;
    if (key ? json_object_set_new(p->value, key, v) : json_array_append_new(p->value, v))
        return bad(s, at, "a name that is not UTF-8");
    return 0;
}

int plot_skim_open(skim *s, char *text, size_t n, const char *const *lists)
{
    memset(s, 0, sizeof *s);
    s->text = text;
    s->n = n;
    s->root = json_object();
    parent p = {s->root, lists, 0};
    const size_t at = blanks(s, 0), end = at < n ? value_end(s, at) : 0;
    if (!end)
        return bad(s, at, at == n ? "it is empty" : "a value is expected, or has no end");
    if (blanks(s, end) != n)
        return bad(s, blanks(s, end), "end of file expected");
    if (text[at] == '{')
        return each(s, at, read_member, &p);
    json_decref(s->root); /* no report; only whether it is JSON is left to say */
    s->root = end - at <= WHOLE ? take(s, at, end) : json_null();
    return s->root ? 0 : -1;
}

void plot_skim_close(skim *s)
{
    for (size_t i = 0; i < s->n_lists; i++)
        json_decref(s->lists[i].mark);
    free(s->lists);
    json_decref(s->root);
    free(s->text);
    memset(s, 0, sizeof *s);
}

/* ---- lists ---- */

static const skim_list *list_of(const skim *s, const json_t *v)
{
    for (size_t i = 0; v && i < s->n_lists; i++)
        if (s->lists[i].mark == v)
            return &s->lists[i];
    return NULL;
}

int plot_skim_is_list(const skim *s, const json_t *v)
{
    return json_is_array(v) || list_of(s, v) != NULL;
}

typedef struct reader {
    int (*visit)(void *context, const json_t *item);
    void *context;
} reader;

static int read_item(skim *s, const char *key, size_t at, size_t end, void *context)
{
    const reader *r = context;
    (void)key;
    if (end - at > ITEM_MAX)
        return bad(s, at, "an item of more than 4 MiB");
    json_t *item = take(s, at, end);
    const int code = item ? r->visit(r->context, item) : -1;
    json_decref(item);
    return code;
}

int plot_skim_each(skim *s, const json_t *v, int (*visit)(void *context, const json_t *item), void *context)
{
    const skim_list *list = list_of(s, v);
    reader r = {visit, context};
    size_t i;
    json_t *item;
    int code = 0;
    if (list)
        return each(s, list->at, read_item, &r);
    json_array_foreach(v, i, item) if (!code) code = visit(context, item);
    return code;
}
