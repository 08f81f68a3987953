/* memory.c -- what a trace owns: strings and shapes in an arena, growing arrays of tensors
 * and metadata. Sizes are bounded by the header cap, because every item stands in a header
 * that has been read, and by TRACE_ITEMS_MAX. */
#include "impl.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 << 10 };

typedef struct arena {
    struct arena *next;
    size_t used, size;
    _Alignas(8) char data[];
} arena;

void *trace_alloc(trace *t, size_t n)
{
    arena *a = t->arena;
    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + 7) & ~(size_t)7;
    if (!a || a->size - a->used < n) {
        const size_t size = n > BLOCK / 4 ? n : BLOCK;
        arena *b = malloc(sizeof *b + size);
        if (!b)
            return NULL;
        b->used = 0;
        b->size = size;
        if (a && size != BLOCK) { /* a block of its own goes behind the one being filled */
            b->next = a->next;
            a->next = b;
        } else {
            b->next = a;
            t->arena = b;
        }
        a = b;
    }
    void *p = a->data + a->used;
    a->used += n;
    t->arena_bytes += n;
    return p;
}

char *trace_string(trace *t, const char *s, size_t n)
{
    char *copy = trace_alloc(t, n + 1);
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = 0;
    }
    return copy;
}

int trace_is_utf8(const char *s)
{
    uint32_t c;
    size_t n = 1;
    for (; *s && n; s += n)
        n = utf8_character(s, &c);
    return n != 0;
}

char *trace_utf8(trace *t, const char *s)
{
    char *escaped = trace_is_utf8(s) ? NULL : escape_all(s);
    const char *kept = escaped ? escaped : s;
    char *copy = escaped || trace_is_utf8(s) ? trace_string(t, kept, strlen(kept)) : NULL;
    free(escaped);
    return copy;
}

uint64_t trace_ratio(const trace_options *options)
{
    return options->max_ratio ? options->max_ratio : TRACE_RATIO_DEFAULT;
}

int trace_shows(trace *t, const trace_options *options, uint64_t bytes)
{
    t->shown = bytes < UINT64_MAX - t->shown ? t->shown + bytes : UINT64_MAX;
    return t->shown > TRACE_SHOWN_FREE &&
           t->shown / trace_ratio(options) > (t->packing ? t->packed : t->size) + t->beside;
}

trace_entry *trace_add(trace *t, trace_error *error)
{
    if (t->count == TRACE_ITEMS_MAX) {
        trace_fail(t, error, TRACE_NO_OFFSET, "more than %d tensors", TRACE_ITEMS_MAX);
        return NULL;
    }
    const uint64_t spare = t->max_header - t->text_bytes; /* of a header below the cap */
    if (t->arena_bytes + t->count * sizeof *t->entries > TRACE_MEMORY + spare) {
        trace_fail(t, error, TRACE_NO_OFFSET,
                   "the header describes %zu tensors so far, which take more than %d MiB of memory", t->count,
                   TRACE_MEMORY >> 20);
        return NULL;
    }
    if (t->count == t->room) {
        const size_t room = t->room ? t->room + t->room / 2 : 16;
        trace_entry *p = realloc(t->entries, room * sizeof *p);
        if (!p) {
            trace_no_memory(t, error);
            return NULL;
        }
        t->entries = p;
        t->room = room;
    }
    trace_entry *e = &t->entries[t->count++];
    memset(e, 0, sizeof *e);
    return e;
}

int trace_add_metadata(trace *t, const char *key, const char *value, trace_error *error)
{
    if (t->n_metadata == TRACE_ITEMS_MAX)
        return trace_fail(t, error, TRACE_NO_OFFSET, "more than %d metadata entries", TRACE_ITEMS_MAX);
    if (t->n_metadata == t->metadata_room) {
        const size_t room = t->metadata_room ? t->metadata_room + t->metadata_room / 2 : 16;
        const char **p = realloc(t->metadata, room * 2 * sizeof *p);
        if (!p)
            return trace_no_memory(t, error);
        t->metadata = p;
        t->metadata_room = room;
    }
    t->metadata[2 * t->n_metadata] = key;
    t->metadata[2 * t->n_metadata + 1] = value;
    t->n_metadata++;
    return 0;
}

const char *trace_metadata_key(const trace *t, size_t i)
{
    return i < t->n_metadata ? t->metadata[2 * i] : NULL;
}

const char *trace_metadata_value(const trace *t, size_t i)
{
    return i < t->n_metadata ? t->metadata[2 * i + 1] : NULL;
}

const char *trace_metadata(const trace *t, const char *key)
{
    for (size_t i = 0; i < t->n_metadata; i++)
        if (strcmp(t->metadata[2 * i], key) == 0)
            return t->metadata[2 * i + 1];
    return NULL;
}

static int compare_entries(const void *pa, const void *pb)
{
    const trace_entry *a = pa, *b = pb;
    if (a->tensor.offset != b->tensor.offset)
        return a->tensor.offset < b->tensor.offset ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static int compare_places(const void *pa, const void *pb)
{
    return compare_entries(*(const trace_entry *const *)pa, *(const trace_entry *const *)pb);
}

/* Files are nearly always in order. Else pointers are sorted, because qsort may copy what it
 * sorts, and the entries follow, each moved once. */
int trace_order(trace *t)
{
    size_t sorted = 1;
    while (sorted < t->count && compare_entries(&t->entries[sorted - 1], &t->entries[sorted]) <= 0)
        sorted++;
    if (sorted >= t->count)
        return 0;
    const trace_entry **order = malloc(t->count * sizeof *order);
    if (!order)
        return -1;
    for (size_t i = 0; i < t->count; i++)
        order[i] = &t->entries[i];
    qsort(order, t->count, sizeof *order, compare_places);
    for (size_t i = 0; i < t->count; i++) { /* one cycle of the permutation at a time */
        const trace_entry first = t->entries[i];
        size_t to = i;
        while (order[to]) {
            const size_t from = (size_t)(order[to] - t->entries);
            order[to] = NULL;
            t->entries[to] = from == i ? first : t->entries[from];
            to = from;
        }
    }
    free(order);
    return 0;
}

/* Equal strings stay in the order of their places, so that the later one is found. */
static int compare_strings(const void *pa, const void *pb)
{
    const char *const *a = *(const char *const *const *)pa;
    const char *const *b = *(const char *const *const *)pb;
    const int c = strcmp(*a, *b);
    return c ? c : a < b ? -1 : a > b;
}

const char *const *trace_duplicate(const char *const *strings, size_t n, size_t stride, int *failed)
{
    const char *const *found = NULL;
    *failed = 0;
    if (n < 2)
        return NULL;
    /* Sorting and not hashing: no input makes it slow. */
    const char *const **order = malloc(n * sizeof *order);
    if (!order) {
        *failed = 1;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = (const char *const *)(const void *)((const char *)strings + i * stride);
    qsort(order, n, sizeof *order, compare_strings);
    for (size_t i = 1; i < n && !found; i++)
        if (strcmp(*order[i - 1], *order[i]) == 0)
            found = order[i];
    free(order);
    return found;
}

void trace_memory_clear(trace *t)
{
    for (arena *a = t->arena, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    t->arena = NULL;
    free(t->entries);
    free(t->metadata);
    free(t->buffer);
    free(t->text);
}
