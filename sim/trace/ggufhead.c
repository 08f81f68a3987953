/* ggufhead.c -- numbers, strings and key-values of a GGUF file; see gguf.h.
 *
 * Keys and values become metadata as text: numbers as they print, an array of at most 16 numbers as "[1, 2]", a longer
 * one, or one of strings, as what it is ("array of 32000 strings"), which the file is only walked through. */
#include "gguf.h"

#include "../text/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 65535, SHOWN = 16, TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9 };

/* The types of values: their bytes, and what they are ('u' 'i' 'f' 'b'); strings and arrays have no size. */
static const struct {
    const char *name;
    uint8_t bytes;
    char kind;
} types[] = {
    {"uint8", 1, 'u'},  {"int8", 1, 'i'},    {"uint16", 2, 'u'},  {"int16", 2, 'i'}, {"uint32", 4, 'u'},
    {"int32", 4, 'i'},  {"float32", 4, 'f'}, {"bool", 1, 'b'},    {"string", 0, 0},  {"array", 0, 0},
    {"uint64", 8, 'u'}, {"int64", 8, 'i'},   {"float64", 8, 'f'},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- bytes ---- */

static int must_have(const gguf *g, uint64_t n, const char *what)
{
    if (n <= g->t->size - g->at)
        return 0;
    return trace_fail(g->t, g->error, g->at, "%s needs %" PRIu64 " bytes, but %" PRIu64 " are left", what, n,
                      g->t->size - g->at);
}

static int take(gguf *g, void *to, size_t n)
{
    unsigned char *p = to;
    g->at += n;
    while (n) {
        if (g->used == g->fill) {
            const uint64_t left = g->t->size - g->t->at;
            g->fill = left < sizeof g->buffer ? (size_t)left : sizeof g->buffer;
            g->used = 0;
            if (trace_bytes(g->t, g->buffer, g->fill, g->error))
                return -1;
        }
        const size_t m = g->fill - g->used < n ? g->fill - g->used : n;
        memcpy(p, g->buffer + g->used, m);
        g->used += m;
        p += m;
        n -= m;
    }
    return 0;
}

int trace_gguf_skip(gguf *g, uint64_t n)
{
    if (must_have(g, n, "what follows"))
        return -1;
    g->at += n;
    if (n <= g->fill - g->used) {
        g->used += (size_t)n;
    } else {
        g->used = g->fill = 0;
        g->t->at = g->at;
    }
    return 0;
}

int trace_gguf_number(gguf *g, unsigned bytes, uint64_t *u)
{
    unsigned char p[8];
    *u = 0;
    if (must_have(g, bytes, "a number") || take(g, p, bytes))
        return -1;
    for (unsigned i = 0; i < bytes; i++)
        *u = *u << 8 | p[g->big ? i : bytes - 1 - i];
    return 0;
}

/* ---- strings ---- */

static char *any_string(gguf *g, uint64_t max, const char *what)
{
    uint64_t n;
    const uint64_t at = g->at;
    if (trace_gguf_number(g, 8, &n) || must_have(g, n, what))
        return NULL;
    if (n > max || n > g->room) {
        trace_fail(g->t, g->error, at, "%s of %" PRIu64 " bytes is too long", what, n);
        return NULL;
    }
    g->room -= n;
    char *s = trace_alloc(g->t, (size_t)n + 1);
    if (!s) {
        trace_no_memory(g->t, g->error);
        return NULL;
    }
    s[n] = '\0';
    if (take(g, s, (size_t)n))
        return NULL;
    if (memchr(s, 0, (size_t)n)) {
        trace_fail(g->t, g->error, at, "%s holds a NUL", what);
        return NULL;
    }
    return s;
}

const char *trace_gguf_string(gguf *g, const char *what)
{
    const uint64_t at = g->at;
    const char *s = any_string(g, NAME_MAX_BYTES, what);
    if (s && !trace_is_utf8(s)) {
        trace_fail(g->t, g->error, at, "%s is not UTF-8", what);
        return NULL;
    }
    return s;
}

/* ---- values ---- */

/* A number as text. */
static int number_text(gguf *g, uint64_t type, char *out, size_t size)
{
    uint64_t u;
    const unsigned bytes = types[type].bytes;
    if (trace_gguf_number(g, bytes, &u))
        return -1;
    const int64_t i = bytes == 8 ? (int64_t)u : (int64_t)(u << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    const uint32_t narrow = (uint32_t)u;
    float f;
    double d;
    memcpy(&f, &narrow, sizeof f);
    memcpy(&d, &u, sizeof d);
    switch (types[type].kind) {
    case 'b':
        snprintf(out, size, "%s", u ? "true" : "false");
        break;
    case 'i':
        snprintf(out, size, "%" PRId64, i);
        break;
    case 'u':
        snprintf(out, size, "%" PRIu64, u);
        break;
    default:
        snprintf(out, size, "%.*g", bytes == 4 ? 9 : 17, bytes == 4 ? (double)f : d);
    }
    return 0;
}

/* Past n elements of an array that is not shown. */
static int skip_array(gguf *g, uint64_t type, uint64_t n)
{
    if (type != TYPE_STRING)
        return n > g->t->size ? must_have(g, n, "an array") : trace_gguf_skip(g, n * types[type].bytes);
    if (n > (g->t->size - g->at) / 8) /* each has a length */
        return trace_fail(g->t, g->error, g->at - 8,
                          "an array of %" PRIu64 " strings does not fit the %" PRIu64 " bytes left", n,
                          g->t->size - g->at);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t length;
        if (trace_gguf_number(g, 8, &length) || must_have(g, length, "a string") || trace_gguf_skip(g, length))
            return -1;
    }
    return 0;
}

static char *array_text(gguf *g)
{
    char text[SHOWN * 32], one[32];
    uint64_t type, n;
    const uint64_t at = g->at;
    if (trace_gguf_number(g, 4, &type) || trace_gguf_number(g, 8, &n))
        return NULL;
    if (type >= TYPES || type == TYPE_ARRAY) {
        trace_fail(g->t, g->error, at, "type %" PRIu64 " of an array is not %s", type,
                   type == TYPE_ARRAY ? "read: arrays in an array" : "known");
        return NULL;
    }
    if (type == TYPE_STRING || n > SHOWN) {
        snprintf(text, sizeof text, "array of %" PRIu64 " %s%s", n, types[type].name, text_plural(n));
        if (skip_array(g, type, n))
            return NULL;
    } else {
        strcpy(text, "[");
        for (uint64_t i = 0; i < n; i++) {
            if (number_text(g, type, one, sizeof one))
                return NULL;
            text_add(text, sizeof text, "%s%s", i ? ", " : "", one);
        }
        text_add(text, sizeof text, "]");
    }
    char *s = trace_string(g->t, text, strlen(text));
    if (!s)
        trace_no_memory(g->t, g->error);
    return s;
}

/* A string as it is, escaped if it is not UTF-8. */
static char *string_value(gguf *g)
{
    char *s = any_string(g, g->t->max_header, "a value");
    char *kept = s ? trace_utf8(g->t, s) : NULL;
    if (s && !kept)
        trace_no_memory(g->t, g->error);
    return kept;
}

/* The alignment is a uint32 and a power of two. */
static int take_alignment(gguf *g, uint64_t type, uint64_t at, const char *text)
{
    const uint64_t u = strtoull(text, NULL, 10);
    if (type != 4)
        return trace_fail(g->t, g->error, at, "general.alignment is of type %s, not uint32", types[type].name);
    if (u == 0 || (u & (u - 1)))
        return trace_fail(g->t, g->error, at, "general.alignment is %s, not a power of two", text);
    g->alignment = u;
    return 0;
}

int trace_gguf_pair(gguf *g)
{
    char text[32];
    uint64_t type;
    const char *value = NULL;
    const char *key = trace_gguf_string(g, "a key");
    const uint64_t at = g->at;
    if (!key || trace_gguf_number(g, 4, &type))
        return -1;
    if (type >= TYPES)
        return trace_fail(g->t, g->error, at, "type %" PRIu64 " of key '%s' is not known", type, key);
    if (type == TYPE_STRING)
        value = string_value(g);
    else if (type == TYPE_ARRAY)
        value = array_text(g);
    else if (number_text(g, type, text, sizeof text) == 0 && !(value = trace_string(g->t, text, strlen(text))))
        return trace_no_memory(g->t, g->error);
    if (!value || (strcmp(key, "general.alignment") == 0 && take_alignment(g, type, at, value)))
        return -1;
    return trace_add_metadata(g->t, key, value, g->error);
}
