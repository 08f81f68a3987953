/* partsource.c -- see partsource.h. */
#include "partsource.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    OPEN_MAX = 64,        /* sources that stay open while nobody reads them */
    OPEN_BYTES = 32 << 20 /* what their directories may take                */
};

typedef struct source {
    const char *path;
    uint64_t at, bytes;
    trace *t;
    uint32_t users;
    int opening;
    uint64_t used; /* when, for who is closed first */
} source;

struct part_sources {
    trace *whole; /* the trace that has them */
    trace_options options;
    source *sources;
    size_t n, room;
    uint32_t *open; /* those that are open */
    size_t n_open, open_room;
    uint64_t clock;
    atomic_flag lock; /* for all of this once the trace is open */
};

int trace_part_grow(trace *t, void **array, size_t n, size_t *room, size_t size, trace_error *error)
{
    if (n < *room)
        return 0;
    const size_t more = *room ? *room / 2 : 16;
    if (t->arena_bytes + more * size > TRACE_MEMORY)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "its tensors consist of more than %zu pieces, which take more than %d MiB of memory", n,
                          TRACE_MEMORY >> 20);
    void *p = realloc(*array, (*room + more) * size);
    if (!p)
        return trace_no_memory(t, error);
    *array = p;
    *room += more;
    t->arena_bytes += more * size;
    return 0;
}

part_sources *trace_part_sources_new(trace *t, const trace_options *options, trace_error *error)
{
    part_sources *s = calloc(1, sizeof *s);
    if (!s) {
        trace_no_memory(t, error);
        return NULL;
    }
    s->whole = t;
    s->options = *options;
    s->options.quantised = "parts"; /* codes and scales may be in different files: the whole looks at them */
    atomic_flag_clear(&s->lock);
    return s;
}

void trace_part_sources_free(part_sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_open; i++)
        s->whole->others->close(s->sources[s->open[i]].t);
    free(s->sources);
    free(s->open);
    free(s);
}

int trace_part_sources_add(part_sources *s, const char *path, uint64_t at, uint64_t bytes, uint32_t *number,
                           trace_error *error)
{
    if (trace_part_grow(s->whole, (void **)&s->sources, s->n, &s->room, sizeof *s->sources, error))
        return -1;
    *number = (uint32_t)s->n;
    s->sources[s->n++] = (source){.path = path, .at = at, .bytes = bytes};
    return 0;
}

static void lock(part_sources *s)
{
    while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
        sched_yield();
}

static void unlock(part_sources *s)
{
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

/* Take those out of the list of open sources that nobody reads and nobody has read for longest, until few are
 * left. They are chained by *out, to be closed without the lock. */
static size_t retire(part_sources *s, trace **out, size_t max)
{
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < s->n_open; i++)
        bytes += s->sources[s->open[i]].t->arena_bytes + s->sources[s->open[i]].t->text_bytes;
    while (n < max && (s->n_open >= OPEN_MAX || bytes > OPEN_BYTES)) {
        size_t oldest = s->n_open;
        for (size_t i = 0; i < s->n_open; i++)
            if (s->sources[s->open[i]].users == 0 &&
                (oldest == s->n_open || s->sources[s->open[i]].used < s->sources[s->open[oldest]].used))
                oldest = i;
        if (oldest == s->n_open)
            break;
        source *old = &s->sources[s->open[oldest]];
        bytes -= old->t->arena_bytes + old->t->text_bytes;
        out[n++] = old->t;
        old->t = NULL;
        s->open[oldest] = s->open[--s->n_open];
    }
    return n;
}

/* Open a source that nobody else is opening. */
static trace *open_source(part_sources *s, source *x, trace_error *error)
{
    const trace_others *others = s->whole->others;
    trace *old[OPEN_MAX];
    lock(s);
    const size_t n = retire(s, old, OPEN_MAX);
    unlock(s);
    for (size_t i = 0; i < n; i++)
        others->close(old[i]);
    trace *opened = others->open(x->path, x->at, x->bytes, &s->options, error);
    lock(s);
    if (opened && s->n_open == s->open_room) {
        const size_t room = s->open_room ? 2 * s->open_room : OPEN_MAX;
        uint32_t *p = realloc(s->open, room * sizeof *p);
        if (p) {
            s->open = p;
            s->open_room = room;
        }
    }
    if (opened && s->n_open < s->open_room) {
        s->open[s->n_open++] = (uint32_t)(x - s->sources);
        x->t = opened;
        x->users = 1;
        x->used = ++s->clock;
    } else if (opened) {
        others->close(opened);
        opened = NULL;
        trace_no_memory(s->whole, error);
    }
    x->opening = 0;
    unlock(s);
    return opened;
}

trace *trace_part_sources_use(part_sources *s, uint32_t number, trace_error *error)
{
    source *x = &s->sources[number];
    for (;;) {
        lock(s);
        trace *open = x->t;
        const int wait = x->opening;
        if (open) {
            x->users++;
            x->used = ++s->clock;
        } else if (!wait) {
            x->opening = 1;
        }
        unlock(s);
        if (open)
            return open;
        if (!wait)
            return open_source(s, x, error);
        sched_yield();
    }
}

void trace_part_sources_leave(part_sources *s, uint32_t number)
{
    lock(s);
    s->sources[number].users--;
    unlock(s);
}

const char *trace_part_sources_path(const part_sources *s, uint32_t number)
{
    return s->sources[number].path;
}
