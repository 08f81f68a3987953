/* whole.c -- see whole.h. */
#include "whole.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int write_all(int fd, const unsigned char *p, size_t n, const uint64_t *at)
{
    for (size_t done = 0; done < n;) {
        const ssize_t w = at ? pwrite(fd, p + done, n - done, (off_t)(*at + done)) : write(fd, p + done, n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        done += (size_t)w;
    }
    return 0;
}

int trace_whole_write(int fd, const void *p, size_t n)
{
    return write_all(fd, p, n, NULL);
}

int trace_whole_write_at(int fd, const void *p, size_t n, uint64_t at)
{
    return write_all(fd, p, n, &at);
}

ssize_t trace_whole_read_at(int fd, void *p, size_t n, uint64_t at)
{
    size_t got = 0;
    while (got < n && at + got <= INT64_MAX) { /* no file is longer */
        const ssize_t r = pread(fd, (char *)p + got, n - got, (off_t)(at + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

/* ---- streams ---- */

typedef struct under {
    int fd, *error;
} under;

static ssize_t failed(const under *u, ssize_t result)
{
    if (u->error && !*u->error)
        *u->error = errno;
    return result;
}

static ssize_t stream_write(void *to, const char *p, size_t n)
{
    const under *u = to;
    return trace_whole_write(u->fd, p, n) ? failed(u, 0) : (ssize_t)n;
}

static ssize_t stream_read(void *from, char *p, size_t n)
{
    const under *u = from;
    ssize_t got;
    do
        got = read(u->fd, p, n);
    while (got < 0 && errno == EINTR);
    return got < 0 ? failed(u, -1) : got;
}

static int stream_seek(void *of, off64_t *at, int whence)
{
    const under *u = of;
    const off_t place = lseek(u->fd, (off_t)*at, whence);
    *at = place;
    return place < 0 ? (int)failed(u, -1) : 0;
}

static int stream_close(void *of)
{
    free(of);
    return 0;
}

FILE *trace_whole_stream(int fd, const char *mode, int *error)
{
    const cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};
    under *u = malloc(sizeof *u);
    if (!u)
        return NULL;
    *u = (under){fd, error};
    FILE *f = fopencookie(u, mode, calls);
    if (!f)
        free(u);
    return f;
}
