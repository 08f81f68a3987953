/* text.c -- text that may have been chosen to harm: what of it enters a figure.
 *
 * gnuplot runs commands: `...` and system() in a script, "..." with escapes, a file name that
 * begins with < or |. In single quotes nothing is special but the quote itself; in a column
 * of a data file nothing but the double quote and the backslash. */
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the well-formed UTF-8 character at s, with its code point; 0 if it is not one. */
static size_t character(const char *s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)s;
    if (b[0] < 0x80) {
        *code = b[0];
        return 1;
    }
    const size_t n = b[0] >> 5 == 6 ? 2 : b[0] >> 4 == 14 ? 3 : b[0] >> 3 == 30 ? 4 : 0;
    if (n == 0)
        return 0;
    uint32_t u = b[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (b[i] >> 6 != 2) /* also the terminating zero */
            return 0;
        u = u << 6 | (b[i] & 0x3fu);
    }
    *code = u;
    return u < least[n] || u > 0x10ffff || u >> 11 == 0x1b ? 0 : n;
}

static int printable(uint32_t u)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     /* controls, soft hyphen        */
        {0x061c, 0x061c}, {0x180e, 0x180e},                   /* direction mark, separator    */
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, /* zero width, lines, direction */
        {0xd800, 0xf8ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, /* private, variants, BOM       */
        {0xfff0, 0xffff}, {0xe0000, 0x10ffff},                /* specials, tags, private      */
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (u >= hidden[i].first && u <= hidden[i].last)
            return 0;
    return 1;
}

/* The next printable character from *s on, which moves behind it; *n = 0 at the end. */
static const char *next(const char **s, size_t *n)
{
    while (**s) {
        uint32_t u = 0;
        const char *at = *s;
        *n = character(at, &u);
        *s += *n ? *n : 1;
        if (*n && printable(u))
            return at;
    }
    *n = 0;
    return *s;
}

void plot_text_clean(char *to, size_t size, const char *from)
{
    size_t n, used = 0;
    for (const char *at = next(&from, &n); n && used + n < size; at = next(&from, &n)) {
        memcpy(to + used, at, n);
        used += n;
    }
    to[used] = '\0';
}

void plot_text_shorten(char *to, size_t size, const char *from, size_t n)
{
    size_t length = 0, i = 0, bytes, used = 0;
    for (const char *s = from; next(&s, &bytes), bytes;)
        length++;
    const size_t head = (n - 1) / 2, tail = n - 1 - head;
    for (const char *s = from;; i++) {
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

void plot_put_script(FILE *to, const char *text)
{
    size_t n;
    fputc('\'', to);
    for (const char *at = next(&text, &n); n; at = next(&text, &n)) {
        fwrite(at, 1, n, to);
        if (*at == '\'')
            fputc('\'', to);
    }
    fputc('\'', to);
}

void plot_put_data(FILE *to, const char *text)
{
    size_t n;
    fputc('"', to);
    for (const char *at = next(&text, &n); n; at = next(&text, &n))
        if (*at == '"')
            fputc('\'', to);
        else if (*at == '\\')
            fputc('/', to);
        else
            fwrite(at, 1, n, to);
    fputc('"', to);
}

void plot_put_label(FILE *to, const char *text, size_t n)
{
    char label[4 * PLOT_LABEL_MAX + 8];
    plot_text_shorten(label, sizeof label, text, n < PLOT_LABEL_MAX ? n : PLOT_LABEL_MAX);
    plot_put_data(to, label);
}

void plot_put_comment(FILE *to, const char *text)
{
    size_t n;
    for (const char *at = next(&text, &n); n; at = next(&text, &n))
        if (n > 1 || !strchr("`\\@$!\"'{}", *at))
            fwrite(at, 1, n, to);
        else
            fputc('?', to);
}

char *plot_quote(const char *text)
{
    char *quoted = malloc(2 * strlen(text) + 3), *to = quoted;
    if (!quoted)
        return NULL;
    *to++ = '\'';
    for (; *text; text++) {
        *to++ = *text;
        if (*text == '\'')
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
