/* source.c -- a path becomes a descriptor that can be read at any offset.
 *
 * Regular files are read where they are, with pread and never through a mapping: a file that
 * shrinks gives a short read and not a signal. Pipes are copied to an unnamed temporary file
 * first, packed streams (stream.h) unpacked to one. Everything else (devices, directories,
 * sockets, terminals) is refused before a byte of it is read.
 *
 * Mapping would gain nothing on tmpfs and a third on ext4. The sum of 256 MiB in the page cache, GB a second of CPU
 * time, one thread:
 *
 *                                                tmpfs        ext4
 *   pread into 512 KiB that stay in the cache    6.4 to 6.8   11.4
 *   mapped at once                               6.7          14.9
 *   windows of 4 and 16 MiB, MADV_SEQUENTIAL     6.3 to 6.7   14.6 to 15.9
 *   MADV_POPULATE_READ, MAP_POPULATE             5.5 to 6.4   9.8 to 11.8 */
#include "../text/filekind.h"
#include "impl.h"
#include "inputs.h"
#include "stream.h"
#include "unnamed.h"
#include "whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(const trace *t, trace_error *error, const char *what)
{
    return trace_error_io(error, t->path, TRACE_NO_OFFSET, "%s", what);
}

enum { CHUNK = 64 << 10, UNPACKED_FREE = 64 << 20 };

/* Bytes on their way to a temporary file: those of a pipe, behind what was read of it already, or those that a
 * stream unpacks to. */
typedef struct supply {
    int pipe;
    stream *packed; /* NULL: the pipe */
    size_t begun;   /* bytes of the buffer that are there already */
} supply;

/* Fill a chunk, but for the last one. The bytes, or -1. */
static ssize_t next_chunk(supply *from, unsigned char *buffer)
{
    size_t fill = from->begun;
    from->begun = 0;
    while (fill < CHUNK) {
        const ssize_t r = from->packed ? trace_stream_read(from->packed, buffer + fill, CHUNK - fill)
                                       : read(from->pipe, buffer + fill, CHUNK - fill);
        if (r < 0 && errno == EINTR && !from->packed)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        fill += (size_t)r;
    }
    return (ssize_t)fill;
}

/* Why a chunk could not be had. */
static int no_chunk(const trace *t, const supply *from, trace_error *error)
{
    if (!from->packed)
        return io_error(t, error, "cannot read");
    if (from->packed->why[0])
        return trace_fail(t, error, TRACE_NO_OFFSET, "the %s data are damaged: %s", from->packed->name,
                          from->packed->why);
    return errno == ENOMEM ? trace_no_memory(t, error) : io_error(t, error, "cannot read");
}

/* Whether the first bytes may be a file of tensors, and the rest is not too much. */
static int check_chunk(trace *t, const supply *from, const unsigned char *buffer, size_t n,
                       const trace_options *options, uint64_t room, trace_error *error)
{
    const int first = t->size == 0;
    const uint64_t ratio = trace_ratio(options);
    const char *again = first ? trace_stream_of(buffer, n) : NULL;
    t->size += n;
    if (again && from->packed)
        return trace_fail(t, error, TRACE_NO_OFFSET, "%s data inside %s data: unpack it first", again,
                          from->packed->name);
    if (first && !options->raw_format && !trace_layout_of(buffer, n < TRACE_HEAD ? n : TRACE_HEAD)) {
        t->size = n < CHUNK ? n : INT64_MAX; /* how much would follow is not known */
        return trace_layout_unknown(t, buffer, n, error);
    }
    if (from->packed && t->size > UNPACKED_FREE && t->size / ratio > from->packed->packed)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the %s data unpack to more than %" PRIu64 " times their size: "
                          "if that is right, raise --max-ratio",
                          from->packed->name, ratio);
    if (t->size > room)
        return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET,
                               "%s more than the %" PRIu64
                               " bytes that a temporary file in %s has room for: set TMPDIR",
                               from->packed ? "the file unpacks to" : "the pipe gives", room, trace_unnamed_place());
    return 0;
}

/* Copies them to a temporary file and puts that in the place of the file. Something else that is endless must not
 * fill the disk: the first bytes are looked at before they are written. */
static int copy(trace *t, supply *from, unsigned char *buffer, const trace_options *options, trace_error *error)
{
    const char *what = from->packed ? "unpack the file" : "copy the pipe";
    const int out = trace_unnamed_file();
    ssize_t n = CHUNK;
    int bad = 0;
    if (out < 0)
        return trace_error_io(error, t->path, TRACE_NO_OFFSET, "cannot create a temporary file in %s to %s to",
                              trace_unnamed_place(), what);
    const uint64_t room = trace_unnamed_room(out);
    t->size = 0;
    while (n == CHUNK && !bad) {
        n = next_chunk(from, buffer);
        bad = n < 0 ? no_chunk(t, from, error) : check_chunk(t, from, buffer, (size_t)n, options, room, error);
        if (!bad && trace_whole_write(out, buffer, (size_t)n))
            bad = trace_error_io(error, t->path, TRACE_NO_OFFSET, "cannot %s to a temporary file%s%s", what,
                                 from->packed ? " in " : "", from->packed ? trace_unnamed_place() : "");
    }
    if (bad)
        close(out);
    else
        t->fd = out;
    return bad;
}

/* The packed file fd, or the packed pipe of which n bytes are in the buffer. */
static int unpack(trace *t, int fd, int is_file, unsigned char *buffer, size_t n, const trace_options *options,
                  trace_error *error)
{
    if (!trace_stream_readable(buffer, n))
        return trace_fail(t, error, 0, "%s data, and this mpsim was built without libarchive: unpack it first",
                          trace_stream_of(buffer, n));
    unsigned char *chunk = malloc(CHUNK);
    supply from = {.packed = chunk ? trace_stream_open(fd, is_file, buffer, n) : NULL};
    t->packing = trace_stream_of(buffer, n);
    const int bad = from.packed ? copy(t, &from, chunk, options, error) : trace_no_memory(t, error);
    t->packed = from.packed ? from.packed->packed : 0;
    trace_stream_close(from.packed);
    free(chunk);
    return bad;
}

/* Takes a pipe as it takes a file. */
static int spool(trace *t, int in, const trace_options *options, trace_error *error)
{
    supply from = {.pipe = in};
    unsigned char *buffer = malloc(CHUNK);
    const ssize_t n = buffer ? next_chunk(&from, buffer) : 0;
    int bad;
    if (!buffer)
        bad = trace_no_memory(t, error);
    else if (n < 0)
        bad = no_chunk(t, &from, error);
    else if (trace_stream_of(buffer, (size_t)n))
        bad = unpack(t, in, 0, buffer, (size_t)n, options, error);
    else {
        from.begun = (size_t)n;
        bad = copy(t, &from, buffer, options, error);
    }
    free(buffer);
    return bad;
}

/* A regular file, where it is or, if it is packed, unpacked. Takes over fd. */
static int take_file(trace *t, int fd, uint64_t size, const trace_options *options, trace_error *error)
{
    unsigned char head[TRACE_HEAD];
    const ssize_t n = trace_pread(fd, head, sizeof head, 0);
    if (n < 0) {
        io_error(t, error, "cannot read");
        close(fd);
        return -1;
    }
    if (trace_stream_of(head, (size_t)n)) {
        const int bad = unpack(t, fd, 1, head, (size_t)n, options, error);
        close(fd);
        return bad;
    }
    t->fd = fd;
    t->size = size;
    return 0;
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
    trace_inputs_add(fd);
    if (S_ISREG(st.st_mode))
        return take_file(t, fd, (uint64_t)st.st_size, options, error);
    if (S_ISFIFO(st.st_mode)) {
        const int result = spool(t, fd, options, error);
        close(fd);
        return result;
    }
    kind = S_ISCHR(st.st_mode) && isatty(fd) ? "is a terminal" : file_kind(st.st_mode);
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
    trace_inputs_add(fd);
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
