/* jsonout.c -- see jsonout.h. */
#include "jsonout.h"

#include "../array/lacking.h"
#include "../text/escape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int jsonout_visibly(const char *text, size_t n, void *to)
{
    size_t from = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const size_t bytes = escape_hidden(text + i, n - i, &c);
        if (bytes == 0) {
            i++;
            continue;
        }
        fwrite(text + from, 1, i - from, to);
        if (c > 0xffff) /* a pair of surrogates */
            fprintf(to, "\\u%04x", 0xd800u + ((c - 0x10000) >> 10));
        fprintf(to, "\\u%04x", c > 0xffff ? 0xdc00u + ((c - 0x10000) & 0x3ff) : c);
        i += bytes;
        from = i;
    }
    fwrite(text + from, 1, n - from, to);
    return ferror(to) ? -1 : 0;
}

/* ---- strings ---- */

/* What has an escape of its own in JSON; of the other control characters a number. */
static void put_control(FILE *to, char c)
{
    static const char letters[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (letters[i][0] == c) {
            fputc('\\', to);
            fputc(letters[i][1], to);
            return;
        }
    fprintf(to, "\\u%04X", (unsigned)c);
}

/* n bytes, whole characters. */
static void put_characters(FILE *to, const char *s, size_t n)
{
    size_t from = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == '"' || s[i] == '\\') {
            (void)jsonout_visibly(s + from, i - from, to);
            put_control(to, s[i]);
            from = i + 1;
        }
    (void)jsonout_visibly(s + from, n - from, to);
}

static int is_utf8(const char *s)
{
    uint32_t c;
    size_t n = 1;
    for (; *s && n; s += n)
        n = (unsigned char)*s < 0x80 ? 1 : utf8_character(s, &c);
    return n != 0;
}

static int is_plain(const char *s)
{
    while (*s >= 0x20 && *s < 0x7f && *s != '"' && *s != '\\')
        s++;
    return *s == '\0';
}

static void put_string(FILE *to, const char *s)
{
    char unit[ESCAPE_UNIT];
    fputc('"', to);
    if (is_plain(s))
        fputs(s, to);
    else if (is_utf8(s))
        put_characters(to, s, strlen(s));
    else
        while (*s) {
            s += escape_next(unit, s);
            put_characters(to, unit, strlen(unit));
        }
    fputc('"', to);
}

/* ---- members ---- */

/* What is in front of a value. */
static void put_key(jsonout *o, const char *key)
{
    const uint32_t bit = UINT32_C(1) << o->depth;
    if (o->depth && o->some & bit)
        fputs(", ", o->to);
    o->some |= bit;
    if (key) { /* ours, without anything to escape */
        fputc('"', o->to);
        fputs(key, o->to);
        fputs("\": ", o->to);
    }
}

void jsonout_begin(jsonout *o, const char *key, char bracket)
{
    put_key(o, key);
    fputc(bracket, o->to);
    o->depth++;
    o->some &= ~(UINT32_C(1) << o->depth);
}

void jsonout_end(jsonout *o, char bracket)
{
    fputc(bracket, o->to);
    o->depth--;
}

void jsonout_text(jsonout *o, const char *key, const char *text)
{
    put_key(o, key);
    if (text)
        put_string(o->to, text);
    else
        fputs("null", o->to);
}

void jsonout_count(jsonout *o, const char *key, uint64_t n)
{
    put_key(o, key);
    fprintf(o->to, "%" PRIu64, n);
}

void jsonout_integer(jsonout *o, const char *key, int64_t n)
{
    put_key(o, key);
    fprintf(o->to, "%" PRId64, n);
}

/* 17 significant digits, which round-trip; a point or an exponent says that it is no integer. */
static void put_real(FILE *to, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    char *point = strchr(text, ','); /* of a locale */
    if (point)
        *point = '.';
    char *e = strchr(text, 'e');
    if (!e) {
        fprintf(to, strchr(text, '.') ? "%s" : "%s.0", text);
        return;
    }
    char *digits = e + 1 + (e[1] == '-');
    const char *from = e + 1 + strspn(e + 1, "+-");
    from += strspn(from, "0");
    memmove(digits, from, strlen(from) + 1);
    fputs(text, to);
}

void jsonout_real(jsonout *o, const char *key, double x)
{
    put_key(o, key);
    if (isnan(x))
        fputs("\"NaN\"", o->to);
    else if (isinf(x))
        fputs(x > 0 ? "\"Infinity\"" : "\"-Infinity\"", o->to);
    else
        put_real(o->to, x);
}

void jsonout_boolean(jsonout *o, const char *key, int is)
{
    put_key(o, key);
    fputs(is ? "true" : "false", o->to);
}

void jsonout_null(jsonout *o, const char *key)
{
    jsonout_text(o, key, NULL);
}

void jsonout_value(jsonout *o, const char *key, const json_t *v)
{
    put_key(o, key);
    if (json_dump_callback(v, jsonout_visibly, o->to, JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY) && !ferror(o->to))
        (void)host_no_memory();
}
