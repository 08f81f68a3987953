/* escape.c -- see escape.h. */
#include "escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_character(const char *text, uint32_t *c)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n;
    uint32_t u;
    if (s[0] < 0x80) {
        *c = s[0];
        return 1;
    }
    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        n = 2;
        u = s[0] & 0x1fu;
    } else if (s[0] >= 0xe0 && s[0] <= 0xef) {
        n = 3;
        u = s[0] & 0xfu;
    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        n = 4;
        u = s[0] & 7u;
    } else {
        return 0;
    }
    /* the terminating 0 is no continuation byte: the loop stops there */
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        u = u << 6 | (s[i] & 0x3fu);
    }
    if (u < least[n] || u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
        return 0;
    *c = u;
    return n;
}

/* Code points that a terminal or a reader would not see as a character of their own. */
static int is_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},        /* controls, soft hyphen        */
        {0x61c, 0x61c},   {0x180e, 0x180e},                      /* direction mark, separator    */
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},    /* zero width, lines, direction */
        {0xe000, 0xf8ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},    /* private, variants, BOM       */
        {0xfff0, 0xfffc}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff}, /* specials, tags, private   */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return 1;
    return 0;
}

size_t escape_hidden(const char *s, size_t n, uint32_t *c)
{
    char first[5] = "";
    if (*s >= 0x20 && *s < 0x7f)
        return 0;
    memcpy(first, s, n < 4 ? n : 4);
    const size_t bytes = utf8_character(first, c);
    return bytes && is_hidden(*c) ? bytes : 0;
}

size_t escape_next(char unit[ESCAPE_UNIT], const char *s)
{
    uint32_t c = 0;
    const size_t n = utf8_character(s, &c);
    if (n == 0)
        snprintf(unit, ESCAPE_UNIT, "\\x%02x", (unsigned)(unsigned char)*s);
    else if (c == '\n' || c == '\t')
        snprintf(unit, ESCAPE_UNIT, "%s", c == '\n' ? "\\n" : "\\t");
    else if (c < 0x80 && is_hidden(c))
        snprintf(unit, ESCAPE_UNIT, "\\x%02x", (unsigned)c);
    else if (is_hidden(c))
        snprintf(unit, ESCAPE_UNIT, "\\u{%04x}", (unsigned)c);
    else {
        memcpy(unit, s, n);
        unit[n] = 0;
    }
    return n ? n : 1;
}

char *escape_text(char *out, size_t size, const char *s)
{
    size_t used = 0, fits = 0; /* fits: the last end of a unit that leaves room for "..." */
    if (size == 0)
        return out;
    while (*s) {
        char unit[ESCAPE_UNIT];
        s += escape_next(unit, s);
        const size_t n = strlen(unit);
        if (used + n >= size) {
            used = fits;
            if (used + 3 < size) {
                memcpy(out + used, "...", 3);
                used += 3;
            }
            break;
        }
        memcpy(out + used, unit, n);
        used += n;
        if (used + 3 < size)
            fits = used;
    }
    out[used] = 0;
    return out;
}

char *escape_all(const char *s)
{
    const size_t size = 4 * strlen(s) + 1; /* a byte becomes four at most */
    char *out = malloc(size);
    return out ? escape_text(out, size, s) : NULL;
}
