/* svg.c -- see svg.h.
 *
 * Only listed elements and attributes are copied, only values of plain characters that call listed functions; ids
 * get a prefix. The dark form is the drawing inverted. tests/fuzz/fuzz-drawing.c reads the result strictly. */
#include "svg.h"

#include "../array/need.h"
#include "../text/escape.h"
#include "html.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 32 };

typedef struct drawing {
    FILE *to;
    const char *prefix, *label;
    char name[DEEP][24]; /* of the open elements */
    char *begin[DEEP];   /* it waits: where nothing follows but its end, both are left out; NULL: it is written */
    int depth, dropped;  /* dropped: at this depth and below all is left out; 0: nothing is */
    int root;            /* the first element was met */
} drawing;

/* Where a word stands in a list, from 1 on; 0: nowhere. */
static int place_in(const char *const *list, const char *word, size_t n)
{
    for (int i = 0; list[i]; i++)
        if (strlen(list[i]) == n && strncmp(list[i], word, n) == 0)
            return i + 1;
    return 0;
}

static int is_shape(const char *name, size_t n)
{
    static const char *const known[] = {"svg",   "g",       "defs",     "path",    "rect", "circle",
                                        "line",  "polygon", "polyline", "ellipse", "use",  "text",
                                        "tspan", "pattern", "clipPath", NULL};
    return place_in(known, name, n) != 0;
}

/* A number for each attribute that is copied as it is. */
static int attribute(const char *name, size_t n)
{
    static const char *const known[] = {"d",
                                        "x",
                                        "y",
                                        "dx",
                                        "dy",
                                        "x1",
                                        "y1",
                                        "x2",
                                        "y2",
                                        "cx",
                                        "cy",
                                        "r",
                                        "rx",
                                        "ry",
                                        "width",
                                        "height",
                                        "points",
                                        "transform",
                                        "fill",
                                        "fill-opacity",
                                        "fill-rule",
                                        "stroke",
                                        "stroke-width",
                                        "stroke-dasharray",
                                        "stroke-opacity",
                                        "stroke-linecap",
                                        "stroke-linejoin",
                                        "color",
                                        "opacity",
                                        "font-family",
                                        "font-size",
                                        "font-weight",
                                        "font-style",
                                        "text-anchor",
                                        "viewBox",
                                        "patternUnits",
                                        "clip-path",
                                        "clipPathUnits",
                                        "shape-rendering",
                                        NULL};
    return place_in(known, name, n);
}

/* ---- attributes ---- */

/* A value without blanks side by side; what refers to an id of the drawing gets the prefix. */
static void put_value(FILE *to, const char *value, size_t n, const char *prefix)
{
    char last = ' ';
    for (size_t i = 0; i < n; i++) {
        const char c = isspace((unsigned char)value[i]) ? ' ' : value[i];
        const int is_blank = c == ' ' && (last == ' ' || last == '(' || last == ',' || i + 1 == n);
        if (n - i >= 5 && strncmp(value + i, "url(#", 5) == 0) {
            fprintf(to, "url(#%s", prefix);
            i += 4;
        } else if (!is_blank) {
            fputc(c, to);
        }
        last = c;
    }
}

/* Plain characters, which need no escape and begin none of CSS's, and as functions those that place and colour, or refer to an
 * id of the drawing. */
static int is_safe(const char *value, size_t n)
{
    static const char *const known[] = {"matrix", "translate", "scale", "rotate", "skewX", "skewY",
                                        "rgb",    "rgba",      "hsl",   "hsla",   NULL};
    size_t word = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = value[i];
        if (isalpha((unsigned char)c))
            continue;
        if (!isspace((unsigned char)c) && !isdigit((unsigned char)c) && (!c || !strchr("#%'()+,-.;_", c)))
            return 0;
        if (c == '(' && !place_in(known, value + word, i - word) &&
            (i - word != 3 || strncmp(value + word, "url(#", 5) != 0))
            return 0;
        word = i + 1;
    }
    return 1;
}

/* What every pen of gnuplot says, and SVG without it, too. */
static int is_usual(const char *name, size_t n, const char *value, size_t length)
{
    return (n == 14 && strncmp(name, "stroke-linecap", n) == 0 && length == 4 && strncmp(value, "butt", 4) == 0) ||
           (n == 15 && strncmp(name, "stroke-linejoin", n) == 0 && length == 5 && strncmp(value, "miter", 5) == 0);
}

/* Unless there is one of its name already, which `put` has a bit for. */
static void put_attribute(const drawing *w, FILE *to, const char *name, size_t n, const char *value, size_t length,
                          uint64_t *put)
{
    static const char *const own[] = {"id", "href", "xlink:href", NULL};
    const int which = place_in(own, name, n), refers = which > 1;
    const uint64_t bit = (uint64_t)1 << (which ? 61 + refers : attribute(name, n));
    if (bit == 1 || *put & bit || !is_safe(value, length) || is_usual(name, n, value, length) ||
        (refers && *value != '#'))
        return;
    if (which)
        fprintf(to, refers ? " href=\"#%s" : " id=\"%s", w->prefix);
    else
        fprintf(to, " %.*s=\"", (int)n, name);
    put_value(to, value + refers, length - (size_t)refers, w->prefix);
    fputc('"', to);
    *put |= bit;
}

/* All attributes of a begin: behind them, or NULL. */
static const char *put_attributes(const drawing *w, FILE *to, const char *s)
{
    uint64_t put = 0;
    for (;;) {
        s += strspn(s, " \t\r\n");
        if (*s == '>' || *s == '/')
            return s;
        const char *name = s;
        const size_t n = strcspn(s, " \t\r\n=/><\"'");
        s += n;
        s += strspn(s, " \t\r\n");
        if (!n || *s++ != '=')
            return NULL;
        s += strspn(s, " \t\r\n");
        const char quote = *s++;
        const char *end = quote == '"' || quote == '\'' ? strchr(s, quote) : NULL;
        if (!end)
            return NULL;
        if (w->depth > 1 || (n == 7 && strncmp(name, "viewBox", n) == 0)) /* of <svg> itself its place alone */
            put_attribute(w, to, name, n, s, (size_t)(end - s), &put);
        s = end + 1;
    }
}

/* ---- elements ---- */

static void put_waiting(drawing *w)
{
    for (int i = 0; i < w->depth; i++)
        if (w->begin[i]) {
            fputs(w->begin[i], w->to);
            fputc('>', w->to);
            free(w->begin[i]);
            w->begin[i] = NULL;
        }
}

static void end_element(drawing *w)
{
    w->depth--;
    if (w->dropped > w->depth)
        w->dropped = 0;
    else if (w->dropped)
        return;
    else if (w->begin[w->depth] && strcmp(w->name[w->depth], "g") == 0)
        free(w->begin[w->depth]); /* nothing in it */
    else if (w->begin[w->depth]) {
        char *own = w->begin[w->depth];
        w->begin[w->depth] = NULL;
        put_waiting(w);
        fprintf(w->to, "%s/>", own);
        free(own);
    } else
        fprintf(w->to, "</%s>\n", w->name[w->depth]);
    w->begin[w->depth] = NULL;
}

/* A begin, at its '<': behind it, or NULL. */
static const char *begin_element(drawing *w, const char *s)
{
    const char *name = ++s;
    const size_t n = strcspn(s, " \t\r\n/><");
    char *text = NULL;
    size_t size = 0;
    if (!n || n >= sizeof w->name[0] || w->depth == DEEP)
        return NULL;
    snprintf(w->name[w->depth], sizeof w->name[0], "%.*s", (int)n, name);
    if (!w->root && strcmp(w->name[0], "svg") != 0)
        return NULL;
    FILE *to = page_html_begin(&text, &size);
    fprintf(to, "<%s", w->name[w->depth]);
    if (!w->root) {
        fputs(" role=\"img\" aria-label=\"", to);
        page_html_text(to, w->label);
        fputc('"', to);
    }
    w->root = 1;
    w->depth++;
    if (!w->dropped && !is_shape(name, n))
        w->dropped = w->depth;
    s = put_attributes(w, to, s + n);
    page_html_end(to, &text);
    w->begin[w->depth - 1] = text;
    if (w->dropped || !s) {
        free(text);
        w->begin[w->depth - 1] = NULL;
    }
    if (s && *s == '/') {
        end_element(w);
        s++;
    }
    return s && *s == '>' ? s + 1 : NULL;
}

static void put_code(char to[5], unsigned long c)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    to[n] = 0;
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(unsigned char)(0x80 | (c & 0x3f));
    to[0] = (char)(unsigned char)(first[n] | c);
}

/* The character that a reference at '&' stands for, in UTF-8: bytes of the reference; 0: it is none. */
static size_t read_reference(char to[5], const char *s)
{
    static const char *const names[] = {"amp", "lt", "gt", "quot", "apos", NULL}, means[] = " &<>\"'";
    const size_t n = strcspn(++s, ";");
    char *end;
    if (s[n] != ';')
        return 0;
    if (*s == '#') {
        const int is_hex = s[1] == 'x';
        const unsigned long c = strtoul(s + 1 + is_hex, &end, is_hex ? 16 : 10);
        if (!isxdigit((unsigned char)s[1 + is_hex]) || end != s + n || c == 0 || c > 0x10ffff)
            return 0;
        put_code(to, c);
    } else {
        const int i = place_in(names, s, n);
        if (!i)
            return 0;
        put_code(to, (unsigned char)means[i]);
    }
    return n + 2;
}

/* What stands between elements; only texts have any. */
static const char *put_text(drawing *w, const char *s)
{
    const size_t n = strcspn(s, "<");
    const char *in = w->depth ? w->name[w->depth - 1] : "";
    if (w->dropped || (strcmp(in, "text") != 0 && strcmp(in, "tspan") != 0))
        return s + n;
    put_waiting(w);
    char *text = need_part(s, n);
    for (const char *rest = text; *rest;) {
        char unit[ESCAPE_UNIT], c[5];
        const size_t known = *rest == '&' ? read_reference(c, rest) : 0; /* a character that is escaped already */
        rest += known ? known : escape_next(unit, rest);
        page_html_text(w->to, known ? c : unit);
    }
    free(text);
    return s + n;
}

static const char *put_next(drawing *w, const char *s)
{
    if (*s != '<')
        return put_text(w, s);
    if (s[1] == '?' || s[1] == '!') {
        const char *close = s[1] == '?' ? "?>" : strncmp(s, "<!--", 4) == 0 ? "-->" : ">";
        const char *end = strstr(s, close);
        return end ? end + strlen(close) : NULL;
    }
    if (s[1] != '/')
        return begin_element(w, s);
    const char *end = strchr(s, '>');
    const size_t n = strcspn(s + 2, " \t\r\n>");
    if (!end || !w->depth || strlen(w->name[w->depth - 1]) != n || strncmp(w->name[w->depth - 1], s + 2, n) != 0)
        return NULL;
    end_element(w);
    return end + 1;
}

char *page_svg_inline(const char *drawn, const char *prefix, const char *label)
{
    char *text = NULL;
    size_t size = 0;
    drawing w = {.to = page_html_begin(&text, &size), .prefix = prefix, .label = label};
    const char *s = drawn;
    while (s && *s && !(w.root && w.depth == 0))
        s = put_next(&w, s);
    const int bad = !s || !w.root || w.depth;
    for (int i = 0; i < DEEP; i++)
        free(w.begin[i]);
    page_html_end(w.to, &text);
    if (!bad)
        return text;
    free(text);
    return NULL;
}
