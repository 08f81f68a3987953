/* streamgzip.c -- gzip through zlib, which compares the CRC and the length of each member (libarchive 3.6.2 does
 * neither). Members one behind the other are one stream; zeros may follow, as on tapes, and nothing else. */
#include "stream.h"

#define ZLIB_CONST
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

typedef struct gzip {
    z_stream z;
    int started, between; /* between: a member has ended */
} gzip;

enum { WINDOW = 15 + 16 }; /* the largest, of gzip and nothing else */

static int open_gzip(stream *s)
{
    gzip *g = s->state = calloc(1, sizeof *g);
    if (!g || inflateInit2(&g->z, WINDOW) != Z_OK) {
        errno = ENOMEM;
        return -1;
    }
    g->started = 1;
    return 0;
}

static int damaged(stream *s, const char *what)
{
    snprintf(s->why, sizeof s->why, "%s", what);
    return -1;
}

/* More input: 1, 0 at the end of the file, -1. */
static int refill(stream *s)
{
    gzip *g = s->state;
    const void *p;
    if (g->z.avail_in)
        return 1;
    const ssize_t r = s->input(s, &p);
    if (r <= 0)
        return (int)r;
    g->z.next_in = p;
    g->z.avail_in = (uInt)r;
    return 1;
}

/* Past the end of a member: whether another one begins. */
static int another(stream *s)
{
    gzip *g = s->state;
    int more;
    while ((more = refill(s)) > 0 && *g->z.next_in == 0)
        g->z.next_in++, g->z.avail_in--;
    if (more <= 0)
        return more;
    if (*g->z.next_in != 0x1f)
        return damaged(s, "something follows that is not gzip");
    g->between = 0;
    return inflateReset(&g->z) == Z_OK ? 1 : damaged(s, "inflateReset");
}

static ssize_t read_gzip(stream *s, void *p, size_t n)
{
    gzip *g = s->state;
    g->z.next_out = p;
    g->z.avail_out = (uInt)n;
    while (g->z.avail_out) {
        const int more = g->between ? another(s) : refill(s);
        if (more == 0 && g->between)
            break;
        if (more == 0)
            return damaged(s, "they end too early");
        if (more < 0)
            return -1;
        const int code = inflate(&g->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            g->between = 1;
        else if (code == Z_MEM_ERROR)
            errno = ENOMEM;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            damaged(s, g->z.msg ? g->z.msg : "a preset dictionary");
        if (code == Z_MEM_ERROR || s->why[0])
            return -1;
    }
    return (ssize_t)(n - g->z.avail_out);
}

static void close_gzip(stream *s)
{
    gzip *g = s->state;
    if (g && g->started)
        inflateEnd(&g->z);
    free(g);
}

const stream_decoder trace_stream_gzip = {open_gzip, read_gzip, close_gzip};
