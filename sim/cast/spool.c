/* spool.c -- see spool.h. */
#include "spool.h"

#include "../cli/options.h"
#include "../trace/temporary.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int io_error(trace_error *error, const char *what)
{
    return trace_error_set(error, EXIT_IO, temporary_place(), UINT64_MAX, "%s: %s", what, strerror(errno));
}

int spool_open(spool *s, trace_writer *to, uint64_t bytes, trace_error *error)
{
    *s = (spool){to, -1, bytes};
    if (trace_writer_has_places(to))
        return 0;
    s->fd = temporary_unnamed();
    if (s->fd < 0 || ftruncate(s->fd, (off_t)bytes))
        return spool_close(s, io_error(error, "cannot write a temporary file"), error);
    return 0;
}

int spool_put(const spool *s, uint64_t at, const void *bytes, size_t n, trace_error *error)
{
    const char *p = bytes;
    if (s->fd < 0)
        return trace_writer_data_at(s->to, at, bytes, n, error);
    while (n) {
        const ssize_t w = pwrite(s->fd, p, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return io_error(error, "cannot write a temporary file");
        p += w;
        at += (uint64_t)w;
        n -= (size_t)w;
    }
    return 0;
}

static int copy(const spool *s, trace_error *error)
{
    char buffer[1 << 16];
    for (uint64_t at = 0; at < s->bytes;) {
        const uint64_t left = s->bytes - at;
        const ssize_t r = pread(s->fd, buffer, left < sizeof buffer ? (size_t)left : sizeof buffer, (off_t)at);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return io_error(error, "cannot read a temporary file");
        if (trace_writer_data(s->to, buffer, (size_t)r, error))
            return -1;
        at += (uint64_t)r;
    }
    return 0;
}

int spool_close(spool *s, int failed, trace_error *error)
{
    if (s->fd >= 0) {
        failed = failed ? failed : copy(s, error);
        close(s->fd);
        s->fd = -1;
    }
    return failed;
}
