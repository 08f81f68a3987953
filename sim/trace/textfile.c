/* textfile.c -- see textfile.h. */
#include "textfile.h"

#include "../text/filekind.h"
#include "impl.h"
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 2000 }; /* milliseconds that a writer of a pipe has to come */

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int refused(const char *path, trace_error *error, const char *what)
{
    return trace_error_set(error, TRACE_EXIT_DATA, name_of(path), UINT64_MAX, "%s", what);
}

/* What errno says. */
static int cannot(const char *path, trace_error *error)
{
    return trace_error_io(error, name_of(path), UINT64_MAX, "%s", "");
}

int trace_text_file_open(const char *path, trace_error *error)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        trace_inputs_add(STDIN_FILENO);
        return STDIN_FILENO;
    }
    /* O_NONBLOCK: opening a pipe does not wait for its writer */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENXIO)
        return refused(path, error, "is not a regular file");
    if (fd < 0 || fstat(fd, &st) != 0) {
        cannot(path, error);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)) {
        trace_inputs_add(fd);
        return fd;
    }
    char why[64];
    snprintf(why, sizeof why, "%s, not a text file", file_kind(st.st_mode));
    refused(path, error, why);
    close(fd);
    return -1;
}

/* The first bytes. A pipe without a writer gives none, and one whose writer is silent EAGAIN: that
 * writer is waited for. -1 and EPIPE: nobody has come. */
static ssize_t read_first(int fd, char *text, size_t room)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd == STDIN_FILENO)
        return read(fd, text, room);
    ssize_t got = read(fd, text, room);
    const int none = got == 0, nobody = none && poll(&p, 1, PATIENCE) == 0;
    const int silent = got < 0 && errno == EAGAIN, flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    if (none || silent)
        got = nobody ? -1 : read(fd, text, room);
    if (nobody)
        errno = EPIPE;
    return got;
}

ssize_t trace_text_file_next(int fd, const char *path, char *to, size_t room, int first, trace_error *error)
{
    ssize_t got;
    do
        got = first ? read_first(fd, to, room) : read(fd, to, room);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EPIPE)
        trace_error_set(error, TRACE_EXIT_IO, name_of(path), UINT64_MAX, "a pipe that nobody writes to");
    else if (got < 0)
        cannot(path, error);
    return got;
}

/* Everything to the end, but no more than `most` bytes and one; NULL with *error filled. */
static char *read_all(int fd, const char *path, size_t most, size_t *n, trace_error *error)
{
    size_t room = 0;
    char *text = NULL;
    *n = 0;
    for (;;) {
        if (room - *n < 2) { /* a byte, and the zero behind it */
            room = room < most / 2 ? 2 * room + (16 << 10) : most + 2;
            char *larger = realloc(text, room);
            if (!larger) {
                trace_error_memory(error, name_of(path));
                break;
            }
            text = larger;
        }
        const ssize_t got = trace_text_file_next(fd, path, text + *n, room - *n - 1, *n == 0, error);
        if (got < 0)
            break;
        *n += (size_t)got;
        if (*n > most) {
            trace_error_set(error, TRACE_EXIT_DATA, strcmp(path, "-") == 0 ? "standard input" : path, UINT64_MAX,
                            "more than the %zu bytes that such a text may have", most);
            break;
        }
        if (got == 0) {
            text[*n] = 0;
            return text;
        }
    }
    free(text);
    return NULL;
}

char *trace_text_file_whole(const char *path, size_t most, size_t *n, trace_error *error)
{
    size_t bytes = 0;
    const int fd = trace_text_file_open(path, error);
    char *text = fd >= 0 ? read_all(fd, path, most, &bytes, error) : NULL;
    if (fd > STDIN_FILENO)
        close(fd);
    if (n)
        *n = bytes;
    if (text && !n && memchr(text, 0, bytes)) {
        refused(path, error, "not a text: it holds a zero byte");
        free(text);
        text = NULL;
    }
    return text;
}
