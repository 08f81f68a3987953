/* bytewalk.c -- see bytewalk.h. */
#include "bytewalk.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MAX = 64 << 10 };

static int must_have(const bytewalk *w, uint64_t end, uint64_t n)
{
    const uint64_t left = w->at < end ? end - w->at : 0;
    if (n <= left)
        return 0;
    return trace_fail(w->t, w->error, w->at, "%" PRIu64 " bytes are needed, but %" PRIu64 " are left", n, left);
}

/* The buffer begins with what follows. */
static int fill(bytewalk *w)
{
    const uint64_t left = w->t->size - w->at;
    w->begin = w->t->at = w->at;
    w->fill = 0;
    const size_t n = left < sizeof w->buffer ? (size_t)left : sizeof w->buffer;
    if (trace_bytes(w->t, w->buffer, n, w->error))
        return -1;
    w->fill = n;
    return 0;
}

int trace_walk_take(bytewalk *w, uint64_t end, void *to, size_t n)
{
    unsigned char *p = to;
    if (must_have(w, end < w->t->size ? end : w->t->size, n))
        return -1;
    while (n) {
        if ((w->at < w->begin || w->at >= w->begin + w->fill) && fill(w))
            return -1;
        const size_t skip = (size_t)(w->at - w->begin), have = w->fill - skip, m = n < have ? n : have;
        memcpy(p, w->buffer + skip, m);
        p += m;
        w->at += m;
        n -= m;
    }
    return 0;
}

int trace_walk_skip(bytewalk *w, uint64_t end, uint64_t n)
{
    if (must_have(w, end < w->t->size ? end : w->t->size, n))
        return -1;
    w->at += n;
    return 0;
}

int trace_walk_number(bytewalk *w, uint64_t end, unsigned bytes, uint64_t *u)
{
    unsigned char p[8];
    *u = 0;
    if (trace_walk_take(w, end, p, bytes))
        return -1;
    for (unsigned i = 0; i < bytes; i++)
        *u = *u << 8 | p[i];
    return 0;
}

int trace_walk_varint(bytewalk *w, uint64_t end, uint64_t *u)
{
    unsigned char byte = 0x80;
    *u = 0;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 63)
            return trace_fail(w->t, w->error, w->at, "a number has more than ten bytes");
        if (trace_walk_take(w, end, &byte, 1))
            return -1;
        *u |= (uint64_t)(byte & 0x7f) << shift;
    }
    return 0;
}

const char *trace_walk_text(bytewalk *w, uint64_t end, uint64_t n)
{
    if (n > TEXT_MAX) {
        trace_fail(w->t, w->error, w->at, "a name of %" PRIu64 " bytes is too long", n);
        return NULL;
    }
    char *s = trace_alloc(w->t, (size_t)n + 1);
    if (!s) {
        trace_no_memory(w->t, w->error);
        return NULL;
    }
    if (trace_walk_take(w, end, s, (size_t)n))
        return NULL;
    for (size_t i = 0; i < n; i++)
        s[i] = s[i] ? s[i] : '?';
    s[n] = '\0';
    const char *text = trace_utf8(w->t, s);
    if (!text)
        trace_no_memory(w->t, w->error);
    return text;
}
