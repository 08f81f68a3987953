/* stream.c -- see stream.h.
 *
 * What begins a stream: gzip RFC 1952, zstd RFC 8878, xz its file format 1.2.1, bzip2 the magic of a block or of
 * an empty file, lz4 its frame format 1.6.4. More than the magic of gzip is compared (its method, flags, the hint of
 * the deflater, the system), so that neither a safetensors header of 560,927 bytes nor raw numbers look like it. */
#include "stream.h"

#include "config.h"
#include "impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT = 64 << 10 };

typedef struct stream_kind {
    const char *name, *magic;
    size_t n;
    const stream_decoder *decoder; /* NULL: not in this program */
    int code;
} stream_kind;

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#define BY_LIBARCHIVE(filter) &trace_stream_libarchive, ARCHIVE_FILTER_##filter
#else
#define BY_LIBARCHIVE(filter) NULL, 0
#endif

static const stream_kind kinds[] = {
    {"gzip", "\x1f\x8b\x08", 3, &trace_stream_gzip, 0},
    {"zstd", "\x28\xb5\x2f\xfd", 4, BY_LIBARCHIVE(ZSTD)},
    {"xz",
     "\xfd"
     "7zXZ\0",
     6, BY_LIBARCHIVE(XZ)},
    {"bzip2", "BZh", 3, BY_LIBARCHIVE(BZIP2)},
    {"lz4", "\x04\x22\x4d\x18", 4, BY_LIBARCHIVE(LZ4)},
};

/* What follows the magic of gzip and bzip2. */
static int is_plausible(const stream_kind *k, const unsigned char *head, size_t n)
{
    if (k == &kinds[0])
        return n >= 10 && !(head[3] & 0xe0) && (head[8] == 0 || head[8] == 2 || head[8] == 4) &&
               (head[9] <= 13 || head[9] == 255);
    if (k == &kinds[3])
        return n >= 10 && head[3] >= '1' && head[3] <= '9' &&
               (memcmp(head + 4, "1AY&SY", 6) == 0 || memcmp(head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
    return 1;
}

static const stream_kind *kind_of(const unsigned char *head, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (n >= kinds[i].n && memcmp(head, kinds[i].magic, kinds[i].n) == 0 && is_plausible(&kinds[i], head, n))
            return &kinds[i];
    return NULL;
}

const char *trace_stream_of(const unsigned char *head, size_t n)
{
    const stream_kind *k = kind_of(head, n);
    return k ? k->name : NULL;
}

int trace_stream_readable(const unsigned char *head, size_t n)
{
    const stream_kind *k = kind_of(head, n);
    return k && k->decoder;
}

static ssize_t next_piece(stream *s, const void **p)
{
    ssize_t r;
    if (s->head_bytes) {
        *p = s->head;
        r = (ssize_t)s->head_bytes;
        s->head_bytes = 0;
    } else {
        *p = s->buffer;
        do
            r = s->is_file ? trace_pread(s->fd, s->buffer, INPUT, s->packed) : read(s->fd, s->buffer, INPUT);
        while (r < 0 && errno == EINTR);
    }
    if (r > 0)
        s->packed += (uint64_t)r;
    return r;
}

stream *trace_stream_open(int fd, int is_file, const unsigned char *head, size_t n)
{
    const stream_kind *k = kind_of(head, n);
    stream *s = calloc(1, sizeof *s + INPUT);
    if (!s)
        return NULL;
    s->buffer = (unsigned char *)(s + 1);
    s->kind = k;
    s->name = k->name;
    s->code = k->code;
    s->input = next_piece;
    s->fd = fd;
    s->is_file = is_file;
    s->head = head;
    s->head_bytes = is_file ? 0 : n;
    if (k->decoder->open(s) && !s->why[0] && errno == ENOMEM) {
        trace_stream_close(s);
        return NULL;
    }
    return s;
}

ssize_t trace_stream_read(stream *s, void *p, size_t n)
{
    return s->why[0] ? -1 : s->kind->decoder->read(s, p, n);
}

void trace_stream_close(stream *s)
{
    if (s)
        s->kind->decoder->close(s);
    free(s);
}
