/* fuzz-drawing.c -- any text as an SVG picture that a page shall hold (mpsim report): it is refused, or it becomes one element that
 * XML and HTML read alike, in which nothing runs, nothing is loaded and every id has its prefix; and which is a drawing once more. */
#include "input.h"
#include "sim/page/svg.h"
#include "sim/text/escape.h"

#include <stdlib.h>
#include <string.h>

enum { DEEP = 64, ATTRIBUTES = 64 };
static const char prefix[] = "f1-";

static int begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static int is_any(const char *const *list, const char *s, size_t n)
{
    for (; *list; list++)
        if (strlen(*list) == n && memcmp(*list, s, n) == 0)
            return 1;
    return 0;
}

/* Characters of XML, of which a terminal is shown all. */
static void check_characters(const char *s)
{
    while (*s) {
        uint32_t c = 0;
        const size_t n = utf8_character(s, &c);
        must(n && (c == '\n' || (c >= 0x20 && c < 0x7f) || (c >= 0xa0 && c != 0xfffe && c != 0xffff)));
        s += n;
    }
}

/* At '&': behind what is escaped. */
static const char *check_reference(const char *s)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", NULL};
    const size_t n = strcspn(s, ";") + 1;
    must(is_any(known, s, n));
    return s + n;
}

/* A value, up to its quote: it calls functions of places and colours, and refers to the drawing itself. */
static const char *check_value(const char *s, int is_words)
{
    static const char *const calls[] = {"matrix", "translate", "scale", "rotate", "skewX", "skewY",
                                        "rgb",    "rgba",      "hsl",   "hsla",   "url",   NULL};
    const char *word = s;
    while (*s != '"') {
        must(*s && *s != '<' && *s != '>' && *s != '\n' && (is_words || (*s != '\\' && *s != ':' && !begins(s, "//"))));
        if (*s == '(' && !is_words) {
            must(is_any(calls, word, (size_t)(s - word)));
            must(!begins(word, "url") || begins(s + 1, "#f1-"));
        }
        if (*s == '&') {
            must(is_words);
            s = check_reference(s);
        } else if (!strchr("abcdefghijklmnopqrstuvwxyzXY", *s)) {
            word = ++s;
        } else {
            s++;
        }
    }
    return s;
}

/* The attributes of a begin: behind the last. */
static const char *check_attributes(const char *s, int is_root)
{
    static const char *const never[] = {"style", "src", "class", "action", "xmlns", "data", "values", "to", NULL};
    const char *names[ATTRIBUTES];
    size_t lengths[ATTRIBUTES], count = 0;
    while (*s == ' ') {
        const char *name = ++s;
        const size_t n = strcspn(s, "=");
        must(n && count < ATTRIBUTES && name[n + 1] == '"' && !begins(name, "on") && !is_any(never, name, n));
        for (size_t i = 0; i < n; i++)
            must(strchr("abcdefghijklmnopqrstuvwxyz-12BPU", name[i]) != NULL); /* viewBox, patternUnits */
        for (size_t i = 0; i < count; i++)
            must(lengths[i] != n || memcmp(names[i], name, n) != 0);
        s += n + 2;
        must(!begins(name, "href=") || (*s == '#' && begins(s + 1, prefix)));
        must(!begins(name, "id=") || begins(s, prefix));
        s = check_value(s, is_root && begins(name, "aria-label=")) + 1;
        names[count] = name;
        lengths[count++] = n;
    }
    return s;
}

/* One element and nothing else. */
static void check(const char *s)
{
    static const char *const known[] = {"svg",   "g",       "defs",     "path",    "rect", "circle",
                                        "line",  "polygon", "polyline", "ellipse", "use",  "text",
                                        "tspan", "pattern", "clipPath", NULL};
    const char *open[DEEP];
    size_t lengths[DEEP], depth = 0;
    must(begins(s, "<svg role=\"img\" aria-label=\"&quot;&lt;a&gt; &amp; &#39;\\x07&quot;\""));
    check_characters(s);
    do {
        if (*s == '&') {
            s = check_reference(s);
        } else if (*s != '<') {
            must(*s && *s != '>');
            s++;
        } else if (s[1] == '/') {
            must(depth-- && memcmp(s + 2, open[depth], lengths[depth]) == 0 && s[2 + lengths[depth]] == '>');
            s += 3 + lengths[depth];
        } else {
            must(depth < DEEP);
            open[depth] = ++s;
            lengths[depth] = strcspn(s, " />");
            must(is_any(known, s, lengths[depth]));
            s = check_attributes(s + lengths[depth], depth == 0);
            depth += *s != '/';
            s += *s == '/';
            must(*s++ == '>');
        }
    } while (depth);
    must(*s == 0 || strcmp(s, "\n") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char label[] = "\"<a> & '\a\"";
    char *text = input_text(data, n), *shown = page_svg_inline(text, prefix, label);
    if (shown) {
        check(shown);
        char *again = page_svg_inline(shown, prefix, label);
        must(again != NULL);
        free(again);
    }
    free(shown);
    free(text);
    return 0;
}
