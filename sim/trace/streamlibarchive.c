/* streamlibarchive.c -- zstd, xz, bzip2 and lz4 through libarchive, one filter that is named, none that is guessed. */
#include "stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct packed {
    struct archive *a;
    int error; /* of input */
    int empty;
} packed;

static la_ssize_t more(struct archive *a, void *context, const void **p)
{
    stream *s = context;
    packed *k = s->state;
    const ssize_t r = s->input(s, p);
    if (r < 0) {
        k->error = errno;
        archive_set_error(a, errno, "cannot read");
    }
    return r;
}

/* Why libarchive stops. */
static int stopped(stream *s)
{
    packed *k = s->state;
    const char *text = archive_error_string(k->a);
    errno = k->error ? k->error : text ? archive_errno(k->a) : ENOMEM; /* where no reason is given, that was it */
    if (errno != ENOMEM && !k->error)
        snprintf(s->why, sizeof s->why, "%s", text);
    return -1;
}

static int open_packed(stream *s)
{
    struct archive_entry *entry;
    packed *k = s->state = calloc(1, sizeof *k);
    if (!k || !(k->a = archive_read_new())) {
        errno = ENOMEM;
        return -1;
    }
    const int filter = archive_read_append_filter(k->a, s->code);
    if (filter == ARCHIVE_WARN) { /* it would run a program */
        snprintf(s->why, sizeof s->why, "this libarchive cannot unpack them");
        return -1;
    }
    if (filter != ARCHIVE_OK || archive_read_support_format_empty(k->a) != ARCHIVE_OK ||
        archive_read_support_format_raw(k->a) != ARCHIVE_OK ||
        archive_read_open(k->a, s, NULL, more, NULL) != ARCHIVE_OK ||
        archive_errno(k->a) != 0) /* a filter that fails at once looks like an empty file */
        return stopped(s);
    const int code = archive_read_next_header(k->a, &entry);
    k->empty = code == ARCHIVE_EOF;
    return code == ARCHIVE_OK || k->empty ? 0 : stopped(s);
}

/* At the end: whether all that was given has been used. */
static ssize_t at_end(stream *s)
{
    packed *k = s->state;
    const void *p;
    const int last = archive_filter_count(k->a) - 1;
    if (k->error)
        return stopped(s);
    if (last >= 0 && (uint64_t)archive_filter_bytes(k->a, last) == s->packed && s->input(s, &p) == 0)
        return 0;
    snprintf(s->why, sizeof s->why, "something follows that is not %s", s->name);
    return -1;
}

static ssize_t read_packed(stream *s, void *p, size_t n)
{
    packed *k = s->state;
    size_t got = 0;
    while (got < n && !k->empty) {
        const la_ssize_t r = archive_read_data(k->a, (char *)p + got, n - got);
        if (r < 0)
            return stopped(s);
        k->empty = r == 0;
        got += (size_t)r;
    }
    return got || !k->empty ? (ssize_t)got : at_end(s);
}

static void close_packed(stream *s)
{
    packed *k = s->state;
    if (k && k->a)
        archive_read_free(k->a);
    free(k);
}

const stream_decoder trace_stream_libarchive = {open_packed, read_packed, close_packed};
