/* text.c -- text that may have been chosen to harm: what of it enters a figure.
 *
 * gnuplot runs commands: `...` and system() in a script, "..." with escapes, a file name that
 * begins with < or |. In single quotes nothing is special but the quote itself, which may be doubled
 * where it stands alone inside, but not beside another or at an end (5.4 takes that for the end of
 * the string); in a column of a data file nothing but the double quote and the backslash. */
#include "impl.h"

#include "../array/need.h"
#include "../text/escape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The characters of a text as escape_text shows it. */
typedef struct shown {
    const char *rest; /* of the text */
    const char *at;   /* in the unit */
    char unit[ESCAPE_UNIT];
} shown;

static shown shown_of(const char *text)
{
    return (shown){.rest = text};
}

/* The next character and its bytes; *n = 0 at the end. */
static const char *next(shown *s, size_t *n)
{
    *n = 0;
    if (!s->at || !*s->at) {
        if (!*s->rest)
            return s->rest;
        s->rest += escape_next(s->unit, s->rest);
        s->at = s->unit;
    }
    const char *at = s->at;
    do
        ++*n;
    while ((at[*n] & 0xc0) == 0x80);
    s->at += *n;
    return at;
}

size_t plot_characters(const char *text)
{
    shown s = shown_of(text);
    size_t length = 0;
    for (size_t n; next(&s, &n), n;)
        length++;
    return length;
}

/* The width of a character is that of style.gp. */
size_t plot_fit(double inches, size_t most)
{
    const double characters = inches / 0.0583;
    return characters < (double)most ? (size_t)fmax(characters, 1) : most;
}

/* At most n characters, the middle replaced by "…"; `size` > 4 n + 4. */
static void shorten(char *to, size_t size, const char *from, size_t n)
{
    const size_t length = plot_characters(from), head = (n - 1) / 2, tail = n - 1 - head;
    shown s = shown_of(from);
    size_t bytes, used = 0;
    for (size_t i = 0;; i++) {
        const char *at = next(&s, &bytes);
        if (length > n && i == head) {
            at = "\xe2\x80\xa6"; /* … */
            memcpy(to + used, at, 3);
            used += 3;
        } else if (bytes && (length <= n || i < head || i >= length - tail)) {
            memcpy(to + used, at, bytes);
            used += bytes;
        }
        if (!bytes || used + 8 > size)
            break;
    }
    to[used] = '\0';
}

void plot_put_data(FILE *to, const char *text)
{
    shown s = shown_of(text);
    size_t n;
    fputc('"', to);
    for (const char *at = next(&s, &n); n; at = next(&s, &n))
        if (*at == '"')
            fputs("\\042", to);
        else if (*at == '\\')
            fputs("\\\\", to);
        else
            fwrite(at, 1, n, to);
    fputc('"', to);
}

void plot_put_label(FILE *to, const char *text, size_t n)
{
    char label[4 * PLOT_LABEL_MAX + 8];
    shorten(label, sizeof label, text, n < PLOT_LABEL_MAX ? n : PLOT_LABEL_MAX);
    plot_put_data(to, label);
}

void plot_common_add(plot_common *c, const char *name)
{
    const char *first = c->name ? c->name : name;
    const size_t n = strlen(name), m = strlen(first);
    if (!c->name)
        *c = (plot_common){name, n, n, 0};
    size_t prefix = 0, suffix = 0;
    while (prefix < c->prefix && prefix < n && name[prefix] == first[prefix])
        prefix++;
    while (suffix < c->suffix && suffix < n && name[n - 1 - suffix] == first[m - 1 - suffix])
        suffix++;
    *c = (plot_common){first, prefix, suffix, c->names + 1};
}

static int separates(char c)
{
    return strchr(".:/, ", c) != NULL; /* the end of the text, too */
}

/* Where the part of a name begins that ends before `at`. */
static size_t part_start(const char *name, size_t at)
{
    while (at > 0 && !separates(name[at - 1]))
        at--;
    return at;
}

/* Whole parts of the name are left out: what all names begin with, and, if that is not enough, what they end with; then
 * what they begin with comes back as far as it fits. */
void plot_put_label_of(FILE *to, const char *name, size_t n, const plot_common *c)
{
    static const char dots[] = "\xe2\x80\xa6"; /* … */
    const size_t length = strlen(name);
    size_t from = part_start(name, c->prefix), end = length - c->suffix;
    while (!separates(name[end]))
        end++;
    if (c->names < 2 || plot_characters(name) <= n || from >= end) {
        plot_put_label(to, name, n);
        return;
    }
    if (plot_characters(name + from) + 1 <= n)
        end = length;
    for (size_t more; from && (more = part_start(name, from - 1), end - more + 2 <= n);)
        from = more;
    char *text = need_format("%s%.*s%s", from ? dots : "", (int)(end - from), name + from, end < length ? dots : "");
    plot_put_label(to, text, n);
    free(text);
}

void plot_put_comment(FILE *to, const char *text)
{
    shown s = shown_of(text);
    size_t n;
    for (const char *at = next(&s, &n); n; at = next(&s, &n))
        if (n > 1 || !strchr("`\\@$!\"'{}", *at))
            fwrite(at, 1, n, to);
        else
            fputc('?', to);
}

void plot_put_variable(FILE *to, const char *name, const char *text)
{
    fprintf(to, "%s = '", name);
    for (const char *p = text; *p; p++)
        fputc((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x7f && !strchr("'`\\", *p) ? *p : '?', to);
    fputs("'\n", to);
}

char *plot_quote(const char *text)
{
    static const char joined[] = "'.\"'\".'"; /* ends the string, and begins another behind a quote */
    char *quoted = need_memory((sizeof joined - 1) * strlen(text) + 3, 1), *to = quoted;
    *to++ = '\'';
    for (size_t i = 0; text[i]; i++) {
        const int alone = i > 0 && text[i - 1] != '\'' && text[i + 1] && text[i + 1] != '\'';
        if (text[i] == '\'' && !alone)
            to = stpcpy(to, joined);
        else
            *to++ = text[i];
        if (text[i] == '\'' && alone)
            *to++ = '\'';
    }
    *to++ = '\'';
    *to = '\0';
    return quoted;
}

const char *plot_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
