/* text.c -- error lines, and names from files made safe to print. */
#include "impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

size_t trace_utf8(const char *text, uint32_t *c)
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

/* Code points that a terminal or a reader would not see as a character of their own:
 * controls, line separators, directional marks and overrides, byte order mark. */
static int is_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return 1;
    return 0;
}

/* One unit of output for the bytes at s; returns how many bytes of s it stands for. */
static size_t escape_unit(char unit[16], const char *s)
{
    uint32_t c = 0;
    const size_t n = trace_utf8(s, &c);
    if (n == 0)
        snprintf(unit, 16, "\\x%02x", (unsigned)(unsigned char)*s);
    else if (c == '\n' || c == '\t')
        snprintf(unit, 16, "%s", c == '\n' ? "\\n" : "\\t");
    else if (c < 0x80 && is_hidden(c))
        snprintf(unit, 16, "\\x%02x", (unsigned)c);
    else if (is_hidden(c))
        snprintf(unit, 16, "\\u{%04x}", (unsigned)c);
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
        char unit[16];
        s += escape_unit(unit, s);
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

static int error_set(trace_error *error, int exit_code, const char *path, uint64_t offset,
                     const char *member, const char *message, va_list ap)
{
    if (!error)
        return -1;
    error->exit = exit_code;

    /* A long path keeps its end, and leaves room for the message. */
    char shown[480], raw[1024], *out = error->text;
    const size_t length = strlen(path), keep = 300;
    const int cut = length > keep;
    const char *tail = cut ? path + length - keep : path;
    while (cut && ((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    size_t left = sizeof error->text;
    int n = snprintf(out, left, "%s%s: ", cut ? "..." : "", escape_text(shown, sizeof shown, tail));
    out += n, left -= (size_t)n;
    if (member) {
        char name[160];
        n = snprintf(out, left, "member '%s': ", escape_text(name, sizeof name, member));
        out += n, left -= (size_t)n;
    }
    if (offset != TRACE_NO_OFFSET) {
        n = snprintf(out, left, "offset %" PRIu64 ": ", offset);
        out += n, left -= (size_t)n;
    }
    vsnprintf(raw, sizeof raw, message, ap);
    escape_text(out, left, raw);
    return -1;
}

int trace_error_set(trace_error *error, int exit_code, const char *path, uint64_t offset,
                    const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, exit_code, path, offset, NULL, message, ap);
    va_end(ap);
    return -1;
}

int trace_fail(const trace *t, trace_error *error, uint64_t offset, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, TRACE_EXIT_DATA, t->path, offset, t->member, message, ap);
    va_end(ap);
    return -1;
}

int trace_no_memory(const trace *t, trace_error *error)
{
    return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "out of memory");
}
