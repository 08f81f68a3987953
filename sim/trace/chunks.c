/* chunks.c -- see chunks.h. The pieces of an array keep their order by their keys, wherever they lie. */
#include "chunks.h"

#include "../array/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct piece {
    uint64_t begin, at; /* the first element; where it lies */
} piece;

/* An array: its pieces, and behind them where it ends. trace_entry.at is its number from 1 on; 0: an array in one piece. */
typedef struct joined {
    const piece *pieces;
    size_t n;
} joined;

typedef struct chunks {
    joined *all;
    size_t n;
} chunks;

void trace_chunks_close(trace *t)
{
    chunks *c = t->state;
    if (c)
        free(c->all);
    free(c);
    t->state = NULL;
}

static int bad(const trace *t, const char *path, const char *why, trace_error *error)
{
    return trace_fail(t, error, TRACE_NO_OFFSET, "array '%s' in pieces: %s", path, why);
}

/* What stands behind PATH/WORD/ in a name, a number below `limit`; `limit`: something else does. */
static uint64_t number_behind(const char *name, const char *path, const char *word, uint64_t limit)
{
    const size_t n = strlen(path), k = strlen(word);
    const char *s = name + n + (n != 0);
    uint64_t u = 0;
    if (strncmp(s, word, k) != 0 || s[k] != '/' || !s[k + 1])
        return limit;
    for (s += k + 1; *s >= '0' && *s <= '9' && u < limit; s++)
        u = u * 10 + (uint64_t)(*s - '0');
    return *s || u >= limit ? limit : u;
}

/* The sides of the array, from pairs of metadata on. */
static int take_shape(trace *t, const char *path, size_t pairs, uint64_t *sides, size_t *rank, trace_error *error)
{
    uint64_t have = 0;
    for (size_t i = pairs; i < t->n_metadata; i++) {
        const uint64_t side = number_behind(t->metadata[2 * i], path, "shape", TRACE_RANK_MAX);
        char *end;
        if (side == TRACE_RANK_MAX)
            continue;
        sides[side] = strtoull(t->metadata[2 * i + 1], &end, 10);
        if (*end || t->metadata[2 * i + 1][0] == '-' || have >> side & 1)
            return bad(t, path, "a side of its shape is not a natural number", error);
        have |= (uint64_t)1 << side;
        *rank += 1;
    }
    return have == (*rank == 64 ? UINT64_MAX : ((uint64_t)1 << *rank) - 1)
               ? 0
               : bad(t, path, "a side of its shape is missing", error);
}

/* Where the entries behind `first` belong, each in its place. */
static int sort_pieces(trace *t, const char *path, size_t first, piece *pieces, trace_error *error)
{
    const size_t n = t->count - first;
    const trace_tensor *like = &t->entries[first].tensor;
    uint64_t begin = 0;
    for (size_t i = 0; i < n; i++)
        pieces[i].at = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const trace_entry *e = &t->entries[first + i];
        const uint64_t number = number_behind(e->tensor.name, path, "chunks", n);
        if (number == n || pieces[number].at != UINT64_MAX || e->at)
            return bad(t, path, "its pieces are not numbered from 0 on", error);
        if (e->tensor.count == 0)
            return bad(t, path, "one of its pieces is empty", error);
        if (strcmp(e->tensor.dtype, like->dtype) != 0 || e->tensor.format != like->format)
            return bad(t, path, "its pieces are of different dtypes", error);
        pieces[number] = (piece){e->tensor.count, e->tensor.offset};
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t count = pieces[i].begin;
        pieces[i].begin = begin;
        begin += count;
    }
    pieces[n].begin = begin;
    return 0;
}

static int remember(trace *t, const piece *pieces, size_t n, uint64_t *number, trace_error *error)
{
    chunks *c = t->state ? t->state : calloc(1, sizeof *c);
    t->state = c;
    if (!c || array_room(&c->all, c->n, sizeof *c->all))
        return trace_no_memory(t, error);
    c->all[c->n++] = (joined){pieces, n};
    *number = c->n;
    return 0;
}

int trace_chunks_join(trace *t, const char *path, size_t entries, size_t pairs, trace_error *error)
{
    uint64_t sides[TRACE_RANK_MAX], count, bytes;
    const size_t n = t->count - entries;
    size_t rank = 0;
    if (n == 0)
        return bad(t, path, "there is none", error);
    if (take_shape(t, path, pairs, sides, &rank, error))
        return -1;
    trace_entry *e = &t->entries[entries];
    piece *pieces = trace_alloc(t, (n + 1) * sizeof *pieces);
    uint64_t *shape = trace_alloc(t, rank * sizeof *shape);
    const char *name = trace_string(t, path, strlen(path));
    if (!pieces || !shape || !name)
        return trace_no_memory(t, error);
    const unsigned width = (unsigned)trace_width(e);
    if (sort_pieces(t, path, entries, pieces, error))
        return -1;
    if (trace_shape_bytes(sides, rank, 8 * width, &count, &bytes) || count != pieces[n].begin)
        return bad(t, path, "they do not have the elements of its shape", error);
    if (rank)
        memcpy(shape, sides, rank * sizeof *shape);
    e->tensor.name = name;
    e->tensor.shape = shape;
    e->tensor.rank = rank;
    e->tensor.count = count;
    e->tensor.offset = pieces[0].at;
    e->bytes = bytes;
    t->count = entries + 1;
    t->n_metadata = pairs;
    return remember(t, pieces, n, &e->at, error);
}

/* The piece that an element is in. */
static size_t find(const joined *a, uint64_t element)
{
    size_t low = 0, high = a->n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (a->pieces[middle].begin <= element)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int trace_chunks_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const size_t width = trace_width(e);
    const piece whole[] = {{0, e->tensor.offset}, {UINT64_MAX, 0}};
    const joined one = {whole, 1}, *a = e->at ? &((const chunks *)t->state)->all[e->at - 1] : &one;
    unsigned char *to = codes;
    for (size_t i = find(a, first); n; i++) {
        const uint64_t left = a->pieces[i + 1].begin - first,
                       at = a->pieces[i].at + (first - a->pieces[i].begin) * width;
        const size_t m = left < n ? (size_t)left : n;
        if (trace_was_read(t, trace_file_pread(t, to, m * width, at), m * width, at, error))
            return -1;
        first += m;
        to += m * width;
        n -= m;
    }
    return 0;
}
