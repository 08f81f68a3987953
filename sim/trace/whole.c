/* whole.c -- see whole.h. */
#include "whole.h"

#include <errno.h>
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

int whole_write(int fd, const void *p, size_t n)
{
    return write_all(fd, p, n, NULL);
}

int whole_write_at(int fd, const void *p, size_t n, uint64_t at)
{
    return write_all(fd, p, n, &at);
}

ssize_t whole_read_at(int fd, void *p, size_t n, uint64_t at)
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
