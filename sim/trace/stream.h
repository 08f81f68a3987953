/* stream.h -- packed streams: files as gzip, zstd, xz, bzip2 or lz4 write them, of which one is the whole file.
 *
 * Recognised by content. One level: what unpacks to a packed stream is refused.
 *
 * The source unpacks to a file without a name, so that every layout can be read from any place and on all threads.
 * The first bytes are checked before any is written, and the output is bounded by the input. What is unpacked or
 * copied to TMPDIR leaves a sixteenth of the room there to others (trace_unnamed_room). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct stream stream;

/* How a kind of stream is unpacked. */
typedef struct stream_decoder {
    int (*open)(stream *s); /* 0, or -1 */
    /* Up to n bytes, fewer only at the end; -1 if there are none to be had. */
    ssize_t (*read)(stream *s, void *p, size_t n);
    void (*close)(stream *s); /* also after open has failed */
} stream_decoder;

extern const stream_decoder trace_stream_gzip;       /* streamgzip.c: zlib             */
extern const stream_decoder trace_stream_libarchive; /* streamlibarchive.c: the others */

struct stream {
    const struct stream_kind *kind;
    const char *name; /* "gzip" */
    int code;         /* of libarchive's filter */
    /* The next packed bytes, *p of them; 0 at the end, -1 and errno. */
    ssize_t (*input)(stream *s, const void **p);
    int fd, is_file;
    const unsigned char *head; /* a pipe: what was read of it already */
    size_t head_bytes;
    unsigned char *buffer;
    uint64_t packed; /* bytes that input has given */
    void *state;     /* of the decoder             */
    char why[160];   /* what is wrong with the data; "": nothing, errno tells */
};

/* trace_stream_of -- the name of the kind of stream that begins so; NULL: none. */
const char *trace_stream_of(const unsigned char *head, size_t n);

/* trace_stream_readable -- whether this program unpacks what begins so. */
int trace_stream_readable(const unsigned char *head, size_t n);

/* trace_stream_open -- unpack what begins with `head` (which stays): the whole file fd, or, if it is a pipe, head and what
 * follows in it. NULL without memory, or a stream that trace_stream_read says the reason of. */
stream *trace_stream_open(int fd, int is_file, const unsigned char *head, size_t n);
ssize_t trace_stream_read(stream *s, void *p, size_t n); /* as of the decoder */
void trace_stream_close(stream *s);                      /* accepts NULL */
