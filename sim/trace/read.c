/* read.c -- bytes of an open file, and the elements of a selected tensor as exact binary64 values. */
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 256 << 10 }; /* a multiple of every code width */

ssize_t trace_pread(int fd, void *p, size_t n, uint64_t offset)
{
    size_t got = 0;
    while (got < n) {
        if (offset + got > INT64_MAX)
            break; /* past any file */
        const ssize_t r = pread(fd, (char *)p + got, n - got, (off_t)(offset + got));
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

int trace_bytes(trace *t, void *p, size_t n, trace_error *error)
{
    if (t->type->bytes && t->member) {
        if (t->type->bytes(t, p, n, error))
            return -1;
    } else {
        const ssize_t r = trace_pread(t->fd, p, n, t->at);
        if (r < 0)
            return trace_error_set(error, TRACE_EXIT_IO, t->path, t->at, "cannot read: %s",
                                   strerror(errno));
        if ((size_t)r < n)
            return trace_fail(t, error, t->at + (size_t)r, "the file ends here, it has become "
                              "shorter than its %" PRIu64 " bytes", t->size);
    }
    t->at += n;
    return 0;
}

int trace_select(trace *t, size_t i, trace_error *error)
{
    t->current = NULL;
    t->member = NULL;
    if (i >= t->count)
        return trace_fail(t, error, TRACE_NO_OFFSET, "there is no tensor %zu", i);
    const trace_entry *e = &t->entries[i];
    if (!e->tensor.format)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%s' of dtype %s does not hold "
                          "floating-point numbers", e->tensor.name, e->tensor.dtype);
    t->at = e->tensor.offset;
    if (t->type->start && t->type->start(t, e, error))
        return -1;
    if (!t->buffer && !(t->buffer = malloc(BUFFER)))
        return trace_no_memory(t, error);
    t->current = e;
    t->done = 0;
    t->finished = 0;
    return 0;
}

static void swap_bytes(unsigned char *p, size_t width, size_t n)
{
    for (; n; n--, p += width)
        for (size_t i = 0; i < width / 2; i++) {
            const unsigned char c = p[i];
            p[i] = p[width - 1 - i];
            p[width - 1 - i] = c;
        }
}

int trace_read(trace *t, double *values, size_t n, size_t *got, trace_error *error)
{
    static const uint16_t one = 1;
    const int host_is_big = *(const unsigned char *)&one == 0;
    *got = 0;
    if (!t->current)
        return trace_fail(t, error, TRACE_NO_OFFSET, "no tensor is selected");
    const trace_tensor *x = &t->current->tensor;
    const size_t width = mpsim_format_code_bytes(x->format), chunk = BUFFER / width;
    while (*got < n && t->done < x->count) {
        size_t m = n - *got < chunk ? n - *got : chunk;
        if (m > x->count - t->done)
            m = (size_t)(x->count - t->done);
        if (trace_bytes(t, t->buffer, m * width, error))
            goto fail;
        if (x->big_endian != host_is_big)
            swap_bytes(t->buffer, width, m);
        if (mpsim_decode_array(x->format, values + *got, t->buffer, m) != MPSIM_OK) {
            trace_fail(t, error, TRACE_NO_OFFSET, "format %s cannot be decoded",
                       x->format->name);
            goto fail;
        }
        *got += m;
        t->done += m;
    }
    if (t->done == x->count && !t->finished) {
        t->finished = 1;
        if (t->type->finish && t->type->finish(t, error))
            goto fail;
    }
    return 0;
fail:
    *got = 0;
    t->current = NULL; /* an error does not go away by reading on */
    return -1;
}

int trace_read_bytes(trace *t, void *bytes, size_t n, trace_error *error)
{
    if (!t->current)
        return trace_fail(t, error, TRACE_NO_OFFSET, "no tensor is selected");
    const size_t width = mpsim_format_code_bytes(t->current->tensor.format);
    const uint64_t left = t->current->bytes - t->done * width;
    if (n % width || n > left)
        return trace_fail(t, error, TRACE_NO_OFFSET, "only %llu bytes are left of the tensor",
                          (unsigned long long)left);
    if (trace_bytes(t, bytes, n, error)) {
        t->current = NULL;
        return -1;
    }
    t->done += n / width;
    return 0;
}
