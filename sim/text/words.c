/* words.c -- see words.h. */
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int text_add_list(char *text, size_t size, const char *format, va_list values)
{
    const size_t n = strnlen(text, size);
    const int more = n < size ? vsnprintf(text + n, size - n, format, values) : -1;
    return more >= 0 && (size_t)more < size - n ? 0 : -1;
}

int text_add(char *text, size_t size, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int bad = text_add_list(text, size, format, values);
    va_end(values);
    return bad;
}

const char *text_shape(char *out, size_t size, const uint64_t *list, size_t n)
{
    snprintf(out, size, "[");
    for (size_t i = 0; i < n; i++)
        text_add(out, size, "%s%" PRIu64, i ? ", " : "", list[i]);
    text_add(out, size, "]");
    return out;
}

int text_columns(const char *s, size_t n)
{
    int columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

void text_wrap(FILE *to, int at, int width, const char *between, const char *text)
{
    const int mark = (int)strlen(between) - 1, indent = at; /* mark: what of `between` stays in its line */
    while (*text) {
        const char *end = strstr(text, between);
        const int n = end ? (int)(end - text) : (int)strlen(text);
        if (at > indent && at + 1 + n + mark > width)
            at = fprintf(to, "\n%*s", indent, "") - 1;
        at += fprintf(to, "%s%.*s", at > indent ? " " : "", n + (end ? mark : 0), text);
        text += n + (end ? mark + 1 : 0);
    }
    fputc('\n', to);
}

void text_beside(FILE *to, int at, int column, int width, const char *text)
{
    if (at >= column) {
        fputc('\n', to);
        at = 0;
    }
    fprintf(to, "%*s", column - at, "");
    text_wrap(to, column, width, " ", text);
}

const char *text_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

int text_ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

const char *text_error(int number)
{
    return number == ENOMEM ? "out of memory" : strerror(number);
}

size_t text_bracket(const char *s, size_t n)
{
    size_t i = 1;
    i += i < n && s[i] == '^';
    i += i < n && s[i] == ']';
    while (i < n && s[i] != ']') {
        if (s[i] == '[' && i + 1 < n && strchr(".:=", s[i + 1])) { /* [:alpha:] */
            const char c = s[i + 1];
            for (i += 2; i + 1 < n && !(s[i] == c && s[i + 1] == ']'); i++)
                ;
            i++;
        }
        i++;
    }
    return i < n ? i + 1 : n;
}
