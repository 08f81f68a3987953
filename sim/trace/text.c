/* text.c -- error lines. */
#include "../text/words.h"
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* A long path keeps its end, and leaves room for the message. */
static void put_path(char *out, size_t size, const char *path)
{
    char shown[480];
    const size_t length = strlen(path), keep = 300;
    const int cut = length > keep;
    const char *tail = cut ? path + length - keep : path;
    while (cut && ((unsigned char)*tail & 0xc0) == 0x80)
        tail++;
    text_add(out, size, "%s%s: ", cut ? "..." : "", escape_text(shown, sizeof shown, tail));
}

/* path: NULL, the message says what it is about. number: an errno, or 0. */
static int error_set(trace_error *error, int exit_code, const char *path, uint64_t offset, const char *member,
                     int number, const char *message, va_list ap)
{
    if (!error)
        return -1;
    error->exit = exit_code;

    enum { SIZE = sizeof error->text };
    char raw[1024], name[160];
    error->text[0] = '\0';
    if (path)
        put_path(error->text, SIZE, path);
    if (member)
        text_add(error->text, SIZE, "member '%s': ", escape_text(name, sizeof name, member));
    if (offset != TRACE_NO_OFFSET)
        text_add(error->text, SIZE, "offset %" PRIu64 ": ", offset);
    vsnprintf(raw, sizeof raw, message, ap);
    if (number)
        text_add(raw, sizeof raw, "%s%s", *raw ? ": " : "", text_error(number));
    error->memory = number == ENOMEM;
    error->refused = strncmp(raw, "refused: ", 9) == 0;
    escape_text(strchr(error->text, '\0'), SIZE - strlen(error->text), raw);
    return -1;
}

int trace_error_set(trace_error *error, int exit_code, const char *path, uint64_t offset, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, exit_code, path, offset, NULL, 0, message, ap);
    va_end(ap);
    return -1;
}

int trace_error_say(trace_error *error, int exit_code, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, exit_code, NULL, TRACE_NO_OFFSET, NULL, 0, message, ap);
    va_end(ap);
    return -1;
}

int trace_fail(const trace *t, trace_error *error, uint64_t offset, const char *message, ...)
{
    va_list ap;
    va_start(ap, message);
    error_set(error, TRACE_EXIT_DATA, t->path, offset == TRACE_NO_OFFSET ? offset : t->base + offset, t->member, 0,
              message, ap);
    va_end(ap);
    return -1;
}

int trace_error_io(trace_error *error, const char *path, uint64_t offset, const char *message, ...)
{
    const int number = errno;
    va_list ap;
    va_start(ap, message);
    error_set(error, TRACE_EXIT_IO, path, offset, NULL, number ? number : EIO, message, ap);
    va_end(ap);
    return -1;
}

int trace_error_memory(trace_error *error, const char *path)
{
    errno = ENOMEM;
    return trace_error_io(error, path, TRACE_NO_OFFSET, "%s", "");
}

int trace_no_memory(const trace *t, trace_error *error)
{
    return trace_error_memory(error, t->path);
}
