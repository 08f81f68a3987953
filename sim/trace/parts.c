/* parts.c -- see parts.h: pieces, and the elements that they make. */
#include "parts.h"

#include "partsource.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMPARED_MAX = 100000000, /* pairs of pieces that are compared for an overlap */
    BUFFER = 32 << 10
};

/* A run of elements, or a box: its corner and sizes follow each other. begin and end: the first element and past
 * the last one, as places in the tensor; reach: the largest end up to this piece. */
typedef struct piece {
    uint32_t source, entry;
    uint64_t first, begin, end, reach;
    const uint64_t *box;   /* NULL: a run */
    const uint64_t *shape; /* of PARTS_ONLY: that of the tensor there; NULL: not known */
} piece;

/* The pieces of tensor i are [first[i], first[i + 1]). */
typedef struct parts {
    part_sources *sources;
    piece *pieces;
    size_t n_pieces, pieces_room;
    size_t *first;
    size_t first_room, n_tensors;
    size_t compared;              /* pairs of pieces */
    const trace_options *options; /* only while the trace is opened */
} parts;

int trace_parts_begin(trace *t, const trace_options *options, trace_error *error)
{
    parts *s = calloc(1, sizeof *s);
    if (!s)
        return trace_no_memory(t, error);
    t->state = s;
    s->options = options;
    s->sources = trace_part_sources_new(t, options, error);
    return s->sources ? 0 : -1;
}

void trace_parts_close(trace *t)
{
    parts *s = t->state;
    if (!s)
        return;
    trace_part_sources_free(s->sources);
    free(s->pieces);
    free(s->first);
    free(s);
    t->state = NULL;
}

const char *trace_parts_beside(trace *t, const char *name)
{
    const char *slash = strrchr(t->path, '/');
    const size_t n = t->fd < 0 ? strlen(t->path) : slash ? (size_t)(slash + 1 - t->path) : 0;
    const size_t size = n + strlen(name) + 2;
    char *path = trace_alloc(t, size);
    if (path)
        snprintf(path, size, "%.*s%s%s", (int)n, t->path, n && t->path[n - 1] != '/' ? "/" : "", name);
    return path;
}

int trace_parts_add(trace *t, const char *path, uint64_t at, uint64_t bytes, uint32_t *source, trace_error *error)
{
    const parts *s = t->state;
    return path ? trace_part_sources_add(s->sources, path, at, bytes, source, error) : trace_no_memory(t, error);
}

trace *trace_parts_use(const trace *t, uint32_t source, trace_error *error)
{
    const parts *s = t->state;
    return trace_part_sources_use(s->sources, source, error);
}

void trace_parts_leave(const trace *t, uint32_t source)
{
    const parts *s = t->state;
    trace_part_sources_leave(s->sources, source);
}

/* ---- tensors and pieces ---- */

trace_entry *trace_parts_tensor(trace *t, const char *name, const trace_tensor *like, trace_error *error)
{
    parts *s = t->state;
    trace_entry *e = name ? trace_add(t, error) : NULL;
    uint64_t *shape = trace_alloc(t, like->rank * sizeof *shape);
    const char *dtype = trace_string(t, like->dtype, strlen(like->dtype)); /* that of a source goes with it */
    uint64_t bytes;
    if (!name || !shape || !dtype)
        trace_no_memory(t, error);
    if (!e || !shape || !dtype ||
        trace_part_grow(t, (void **)&s->first, t->count, &s->first_room, sizeof *s->first, error))
        return NULL;
    if (like->rank)
        memcpy(shape, like->shape, like->rank * sizeof *shape);
    e->tensor =
        (trace_tensor){.name = name, .dtype = dtype, .format = like->format, .shape = shape, .rank = like->rank};
    e->at = t->count - 1;
    if (trace_shape_bytes(shape, like->rank, like->format ? (unsigned)mpsim_format_code_bytes(like->format) * 8 : 8,
                          &e->tensor.count, &bytes)) {
        trace_fail(t, error, TRACE_NO_OFFSET, "shape of tensor '%s' is too large", name);
        return NULL;
    }
    e->bytes = bytes;
    s->first[t->count - 1] = s->n_pieces;
    s->n_tensors = t->count;
    return e;
}

static int add_piece(trace *t, piece p, trace_error *error)
{
    parts *s = t->state;
    if (p.begin == p.end)
        return 0;
    if (trace_part_grow(t, (void **)&s->pieces, s->n_pieces, &s->pieces_room, sizeof *s->pieces, error))
        return -1;
    s->pieces[s->n_pieces++] = p;
    return 0;
}

int trace_parts_run(trace *t, uint32_t number, uint32_t entry, uint64_t first, uint64_t begin, uint64_t end,
                    trace_error *error)
{
    return add_piece(t, (piece){.source = number, .entry = entry, .first = first, .begin = begin, .end = end}, error);
}

int trace_parts_box(trace *t, uint32_t number, uint32_t entry, const uint64_t *offset, const uint64_t *size,
                    trace_error *error)
{
    const trace_tensor *x = &t->entries[t->count - 1].tensor;
    const size_t rank = x->rank;
    size_t inner = rank, outer = 0;
    piece p = {.source = number, .entry = entry};
    uint64_t count = 1, last = 0;
    for (size_t i = 0; i < rank; i++) {
        if (size[i] > x->shape[i] || offset[i] > x->shape[i] - size[i])
            return trace_fail(t, error, TRACE_NO_OFFSET, "a piece of tensor '%s' goes beyond its shape", x->name);
        count *= size[i];
        p.begin = p.begin * x->shape[i] + offset[i];
        last = last * x->shape[i] + offset[i] + (size[i] ? size[i] - 1 : 0);
    }
    if (count == 0)
        return 0;
    p.end = last + 1;
    while (inner && size[inner - 1] == x->shape[inner - 1])
        inner--;
    while (outer < rank && size[outer] == 1)
        outer++;
    const int is_box = outer + 1 < inner; /* not one run of elements */
    if (rank && (is_box || entry == PARTS_ONLY)) {
        uint64_t *box = trace_alloc(t, 2 * rank * sizeof *box);
        if (!box)
            return trace_no_memory(t, error);
        memcpy(box, offset, rank * sizeof *box);
        memcpy(box + rank, size, rank * sizeof *box);
        p.box = is_box ? box : NULL;
        p.shape = entry == PARTS_ONLY ? box + rank : NULL;
    }
    return add_piece(t, p, error);
}

static uint64_t piece_count(const piece *p, size_t rank)
{
    uint64_t n = 1;
    if (!p->box)
        return p->end - p->begin;
    for (size_t i = 0; i < rank; i++)
        n *= p->box[rank + i];
    return n;
}

/* How many elements of a box are before place x of a tensor. */
static uint64_t box_before(const trace_tensor *tensor, const uint64_t *box, uint64_t x)
{
    uint64_t at[TRACE_RANK_MAX], before = 0, row = 1;
    const size_t rank = tensor->rank;
    for (size_t i = rank; i-- > 0;) {
        at[i] = x % tensor->shape[i];
        x /= tensor->shape[i];
        row *= box[rank + i];
    }
    if (x) /* past the last element */
        return row;
    for (size_t i = 0; i < rank; i++) {
        row /= box[rank + i];
        if (at[i] < box[i])
            return before;
        if (at[i] >= box[i] + box[rank + i])
            return before + box[rank + i] * row;
        before += (at[i] - box[i]) * row;
    }
    return before;
}

static int boxes_meet(const trace_tensor *x, const piece *a, const piece *b)
{
    if (!a->box || !b->box) { /* a run: the elements of the other between its ends */
        const piece *run = a->box ? b : a, *box = a->box ? a : b;
        return !box->box || box_before(x, box->box, run->begin) < box_before(x, box->box, run->end);
    }
    for (size_t i = 0; i < x->rank; i++) {
        const uint64_t p = a->box[i], q = b->box[i];
        if (p + a->box[x->rank + i] <= q || q + b->box[x->rank + i] <= p)
            return 0;
    }
    return 1;
}

static int compare_pieces(const void *pa, const void *pb)
{
    const piece *a = pa, *b = pb;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

int trace_parts_whole(trace *t, trace_error *error)
{
    parts *s = t->state;
    const trace_entry *e = &t->entries[t->count - 1];
    const trace_tensor *x = &e->tensor;
    piece *p = s->n_pieces ? s->pieces + s->first[t->count - 1] : NULL;
    const size_t n = s->n_pieces - s->first[t->count - 1];
    uint64_t sum = 0, reach = 0;
    if (trace_shows(t, s->options, e->bytes)) /* many pieces may be the same bytes */
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%.200s' and those before it show more than %" PRIu64 " times "
                          "the bytes of the files: if that is right, raise --max-ratio",
                          x->name, trace_ratio(s->options));
    if (n > 1)
        qsort(p, n, sizeof *p, compare_pieces);
    for (size_t i = 0; i < n; i++) {
        const uint64_t count = piece_count(&p[i], x->rank);
        for (size_t k = i; k-- > 0 && p[k].reach > p[i].begin;) {
            if (++s->compared > COMPARED_MAX)
                return trace_fail(t, error, TRACE_NO_OFFSET, "the %zu pieces of tensor '%s' overlap", n, x->name);
            if (p[k].end > p[i].begin && boxes_meet(x, &p[k], &p[i]))
                return trace_fail(t, error, TRACE_NO_OFFSET, "two pieces of tensor '%s' overlap", x->name);
        }
        reach = p[i].end > reach ? p[i].end : reach;
        p[i].reach = reach;
        sum += count;
    }
    if (sum != x->count)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the pieces of tensor '%s' have %" PRIu64 " of its %" PRIu64 " elements", x->name, sum,
                          x->count);
    return 0;
}

int trace_parts_names(const trace *t, trace_error *error)
{
    int failed = 0;
    const char *const *twice = NULL;
    if (t->count)
        twice = trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed);
    if (failed)
        return trace_no_memory(t, error);
    return twice ? trace_fail(t, error, TRACE_NO_OFFSET, "two tensors have the name '%s'", *twice) : 0;
}

int trace_parts_metadata(trace *t, const char *key, const char *value, trace_error *error)
{
    const char *k = trace_string(t, key, strlen(key)), *v = trace_string(t, value, strlen(value));
    return k && v ? trace_add_metadata(t, k, v, error) : trace_no_memory(t, error);
}

const char *trace_parts_file(const trace *t, const trace_entry *e)
{
    const parts *s = t->state;
    const size_t first = s->first[e->at];
    return first < s->n_pieces ? trace_part_sources_path(s->sources, s->pieces[first].source) : t->path;
}

/* ---- elements ---- */

/* n codes of a piece from its element `at` on. */
static int piece_codes(const trace *t, const trace_entry *e, const piece *p, uint64_t at, void *codes, size_t n,
                       trace_error *error)
{
    const trace_tensor *x = &e->tensor;
    const uint64_t need = p->first + piece_count(p, x->rank);
    trace *from = trace_parts_use(t, p->source, error);
    int result = -1;
    if (!from)
        return -1;
    const size_t entry = p->entry == PARTS_ONLY ? 0 : p->entry;
    const trace_tensor *there = entry < from->count ? &from->entries[entry].tensor : NULL;
    if (!there || (p->entry == PARTS_ONLY && from->count != 1))
        trace_fail(from, error, TRACE_NO_OFFSET, "%zu tensors, where there should be one piece of '%s'", from->count,
                   x->name);
    else if (there->format != x->format || (!x->format && strcmp(there->dtype, x->dtype) != 0))
        trace_fail(from, error, TRACE_NO_OFFSET, "tensor '%s' is of dtype %s, not %s as '%s', of which it is a piece",
                   there->name, there->dtype, x->dtype, x->name);
    else if (there->count < need || (p->entry == PARTS_ONLY && there->count != need))
        trace_fail(from, error, TRACE_NO_OFFSET,
                   "tensor '%s' has %" PRIu64 " elements, not the %" PRIu64 " of a piece of '%s'", there->name,
                   there->count, need, x->name);
    else if (p->shape && (there->rank != x->rank || memcmp(there->shape, p->shape, x->rank * sizeof *p->shape) != 0))
        trace_fail(from, error, TRACE_NO_OFFSET, "tensor '%s' has not the shape of the piece of '%s' that it is",
                   there->name, x->name);
    else
        result = trace_stored(from, &from->entries[entry], p->first + at, codes, n, error);
    trace_parts_leave(t, p->source);
    return result;
}

/* The elements [low, high) of a tensor that are in a box, to their places in codes, which begins with `low`. The
 * box's own elements are read in their order, as many at once as the buffer takes. */
static int box_codes(const trace *t, const trace_entry *e, const piece *p, uint64_t low, uint64_t high,
                     unsigned char *codes, trace_error *error)
{
    _Alignas(16) unsigned char buffer[BUFFER];
    const trace_tensor *x = &e->tensor;
    const size_t rank = x->rank, width = trace_width(e);
    const uint64_t *corner = p->box, *size = p->box + rank, end = box_before(x, p->box, high);
    for (uint64_t at = box_before(x, p->box, low); at < end;) {
        const size_t n = end - at < BUFFER / width ? (size_t)(end - at) : BUFFER / width;
        if (piece_codes(t, e, p, at, buffer, n, error))
            return -1;
        for (size_t done = 0; done < n;) {
            uint64_t rest = at + done, place = 0, stride = 1;
            const uint64_t column = rest % size[rank - 1], left = size[rank - 1] - column;
            for (size_t i = rank; i-- > 0; rest /= size[i], stride *= x->shape[i])
                place += (corner[i] + rest % size[i]) * stride;
            const size_t m = left < n - done ? (size_t)left : n - done;
            memcpy(codes + (place - low) * width, buffer + done * width, m * width);
            done += m;
        }
        at += n;
    }
    return 0;
}

int trace_parts_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    const parts *s = t->state;
    const size_t begin = s->first[e->at];
    const size_t end = e->at + 1 < s->n_tensors ? s->first[e->at + 1] : s->n_pieces;
    const size_t width = trace_width(e);
    const uint64_t last = first + n;
    size_t low = begin, high = end;
    while (low < high) { /* the first piece that reaches beyond `first` */
        const size_t middle = low + (high - low) / 2;
        if (s->pieces[middle].reach > first)
            high = middle;
        else
            low = middle + 1;
    }
    for (size_t i = low; i < end && s->pieces[i].begin < last; i++) {
        const piece *p = &s->pieces[i];
        const uint64_t a = p->begin > first ? p->begin : first, b = p->end < last ? p->end : last;
        unsigned char *out = (unsigned char *)codes + (size_t)(a - first) * width;
        if (a >= b)
            continue;
        if (p->box ? box_codes(t, e, p, a, b, out, error)
                   : piece_codes(t, e, p, a - p->begin, out, (size_t)(b - a), error))
            return -1;
    }
    return 0;
}
