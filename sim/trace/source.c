/* source.c -- a path becomes a descriptor that can be read at any offset.
 *
 * Regular files are read where they are, with pread and never through a mapping: a file that
 * shrinks gives a short read and not a signal. Pipes are copied to an unnamed temporary file
 * first. Everything else (devices, directories, sockets, terminals) is refused before a byte
 * of it is read. */
#include "impl.h"
#include "inputs.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(const trace *t, trace_error *error, const char *what)
{
    return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "%s: %s", what,
                           strerror(errno));
}

static int write_all(int fd, const unsigned char *p, size_t n)
{
    while (n) {
        const ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* Copies pipe `in` to a temporary file and puts that in its place. An endless pipe of
 * something else must not fill the disk: the first bytes are looked at before they are
 * written. */
static int spool(trace *t, int in, const trace_options *options, trace_error *error)
{
    enum { CHUNK = 64 << 10 };
    int result = -1, end = 0, known = options->raw_format != NULL;
    size_t fill = 0;
    const int out = temporary_unnamed();
    unsigned char *buffer = out >= 0 ? malloc(CHUNK) : NULL;
    if (out < 0)
        trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "cannot create a temporary file "
                        "in %s to copy the pipe to: %s", temporary_place(), strerror(errno));
    else if (!buffer)
        trace_no_memory(t, error);
    if (out < 0 || !buffer)
        goto done;
    t->size = 0;
    while (!end) {
        const ssize_t r = read(in, buffer + fill, CHUNK - fill);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            io_error(t, error, "cannot read");
            goto done;
        }
        end = r == 0;
        fill += (size_t)r;
        if (fill < CHUNK && !end)
            continue;
        t->size += fill;
        if (!known && !trace_layout_of(buffer, fill < TRACE_HEAD ? fill : TRACE_HEAD)) {
            t->size = end ? fill : INT64_MAX; /* how much would follow is not known */
            trace_layout_unknown(t, buffer, fill, error);
            goto done;
        }
        known = 1;
        if (write_all(out, buffer, fill)) {
            io_error(t, error, "cannot copy the pipe to a temporary file");
            goto done;
        }
        fill = 0;
    }
    t->fd = out;
    result = 0;
done:
    free(buffer);
    if (result && out >= 0)
        close(out);
    return result;
}

const char *trace_kind_of_file(mode_t mode)
{
    return S_ISDIR(mode)    ? "is a directory"
           : S_ISFIFO(mode) ? "is a FIFO"
           : S_ISCHR(mode)  ? "is a character device"
           : S_ISBLK(mode)  ? "is a block device"
                            : "is not a regular file";
}

/* Takes over fd, whatever comes of it. */
static int accept_fd(trace *t, int fd, const trace_options *options, trace_error *error)
{
    struct stat st;
    const char *kind;
    if (fstat(fd, &st)) {
        io_error(t, error, "cannot stat");
        close(fd);
        return -1;
    }
    inputs_add(fd);
    if (S_ISREG(st.st_mode)) {
        t->fd = fd;
        t->size = (uint64_t)st.st_size;
        return 0;
    }
    if (S_ISFIFO(st.st_mode)) {
        const int result = spool(t, fd, options, error);
        close(fd);
        return result;
    }
    kind = S_ISCHR(st.st_mode) && isatty(fd) ? "is a terminal" : trace_kind_of_file(st.st_mode);
    close(fd);
    return trace_fail(t, error, TRACE_NO_OFFSET, "%s, not a file of tensors", kind);
}

/* A duplicate that programs started later do not inherit. */
static int standard_input(trace *t, const trace_options *options, trace_error *error)
{
    struct stat st;
    const int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return io_error(t, error, "cannot read");
    inputs_add(fd);
    /* A file that somebody has read from already begins here, not at its start. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) > 0) {
        const int result = spool(t, fd, options, error);
        close(fd);
        return result;
    }
    return accept_fd(t, fd, options, error);
}

int trace_source_open(trace *t, const trace_options *options, trace_error *error)
{
    if (strcmp(t->path, "-") == 0)
        return standard_input(t, options, error);

    /* O_NONBLOCK: a FIFO without a writer is an empty file and not a wait for ever; opening
     * it does not disturb a device (O_NOCTTY) before fstat has told what it is. */
    const int fd = open(t->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENXIO || errno == ENODEV) /* a socket, a device without a driver */
            return trace_fail(t, error, TRACE_NO_OFFSET, "is not a regular file");
        return io_error(t, error, "cannot open");
    }
    /* A pipe with a writer is waited for. */
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    return accept_fd(t, fd, options, error);
}
