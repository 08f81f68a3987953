/* text.c -- error lines. */
#include "impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* A long path keeps its end, and leaves room for the message. */
static int put_path(char *out, size_t size, const char *path)
{
    char shown[480];
    const size_t length = strlen(path), keep = 300;
    const int cut = length > keep;
    const char *tail = cut ? path + length - keep : path;
    while (cut && ((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    return snprintf(out, size, "%s%s: ", cut ? "..." : "", escape_text(shown, sizeof shown, tail));
}

/* path: NULL, the message says what it is about. */
static int error_set(trace_error *error, int exit_code, const char *path, uint64_t offset, const char *member,
                     const char *message, va_list ap)
{
    if (!error)
        return -1;
    error->exit = exit_code;

    char raw[1024], *out = error->text;
    size_t left = sizeof error->text;
    int n = path ? put_path(out, left, path) : 0;
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
    error->refused = strncmp(raw, "refused: ", 9) == 0;
    escape_text(out, left, raw);
    return -1;
}

int trace_error_set(trace_error *error, int exit_code, const char *path, uint64_t offset, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, exit_code, path, offset, NULL, message, ap);
    va_end(ap);
    return -1;
}

int trace_error_say(trace_error *error, int exit_code, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, exit_code, NULL, TRACE_NO_OFFSET, NULL, message, ap);
    va_end(ap);
    return -1;
}

int trace_fail(const trace *t, trace_error *error, uint64_t offset, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, TRACE_EXIT_DATA, t->path, offset == TRACE_NO_OFFSET ? offset : t->base + offset, t->member,
              message, ap);
    va_end(ap);
    return -1;
}

int trace_no_memory(const trace *t, trace_error *error)
{
    return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "out of memory");
}
