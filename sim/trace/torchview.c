/* torchview.c -- elements in the order of their tensor, from wherever its strides say they are.
 *
 * A run of elements that lie next to each other is one read. Of others, the range that is asked for is cut into
 * boxes (all of the inner dimensions, a part of one outer one), and a box into windows: stretches of the file that
 * hold many of its elements, read at once and picked apart. A transposed matrix of 8192 x 8192 would take a read for
 * every few elements, as callers ask for some 128 Ki of them: more are gathered at once and kept for who comes next,
 * which makes it some ten times faster. Memory is that of a window for each thread, and what is kept. */
#include "torch.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 8 << 20, WORTH = 64 << 10 }; /* bytes that are kept; that a caller asks for at least */
enum { WINDOW = 256 << 10, GAP = 2048 };    /* bytes; reading a gap is cheaper than a read of its own */

typedef struct dimension {
    uint64_t size, stride; /* elements of the storage */
    uint64_t to;           /* stride in the result    */
} dimension;

typedef struct gather {
    const trace *t;
    const torch_place *place;
    trace_error *error;
    unsigned char *window;
} gather;

static inline void copy_strided(unsigned char *to, size_t to_step, const unsigned char *from, size_t from_step,
                                size_t width, uint64_t n)
{
    for (; n; n--, to += to_step, from += from_step)
        memcpy(to, from, width);
}

/* n elements of a constant width, which the compiler turns into moves. */
static void copy(unsigned char *to, size_t to_step, const unsigned char *from, size_t from_step, size_t width,
                 uint64_t n)
{
    switch (width) {
    case 1:
        copy_strided(to, to_step, from, from_step, 1, n);
        break;
    case 2:
        copy_strided(to, to_step, from, from_step, 2, n);
        break;
    case 4:
        copy_strided(to, to_step, from, from_step, 4, n);
        break;
    case 8:
        copy_strided(to, to_step, from, from_step, 8, n);
        break;
    default:
        copy_strided(to, to_step, from, from_step, width, n);
    }
}

/* The next index in the dimensions from `first` on, and its places in the storage and in the result; 0 past the last. */
static inline int next_index(const dimension *d, size_t first, size_t rank, uint64_t *index, uint64_t *from,
                             uint64_t *at)
{
    for (size_t i = first; i < rank; i++) {
        *from += d[i].stride;
        *at += d[i].to;
        if (++index[i] < d[i].size)
            return 1;
        *from -= d[i].size * d[i].stride;
        *at -= d[i].size * d[i].to;
        index[i] = 0;
    }
    return 0;
}

/* The elements of some dimensions out of the window, whose first byte is that of the first. */
static void pick(const gather *g, const dimension *d, size_t rank, unsigned char *to)
{
    const size_t width = g->place->width;
    uint64_t index[TRACE_RANK_MAX] = {0}, from = 0, at = 0;
    if (rank == 0) {
        memcpy(to, g->window, width);
        return;
    }
    for (;;) {
        copy(to + at * width, (size_t)d[0].to * width, g->window + from * width, (size_t)d[0].stride * width, width,
             d[0].size);
        if (!next_index(d, 1, rank, index, &from, &at))
            return;
    }
}

/* How many dimensions, from the smallest stride on, one window covers, and the elements that it spans. The last
 * of them may be covered in pieces of *piece. */
static size_t cover(const dimension *d, size_t rank, size_t width, uint64_t *span, uint64_t *piece)
{
    size_t n = 0;
    *span = 1;
    *piece = 0;
    for (; n < rank; n++) {
        const uint64_t gap = d[n].stride > *span ? (d[n].stride - *span) * width : 0;
        if (gap > GAP)
            break;
        const uint64_t whole = *span + (d[n].size - 1) * d[n].stride;
        if (whole * width <= WINDOW) {
            *span = whole;
            *piece = d[n].size;
            continue;
        }
        *piece = (WINDOW / width - *span) / d[n].stride + 1; /* strides of 0 are within any window */
        *span += (*piece - 1) * d[n].stride;
        n++;
        break;
    }
    return n;
}

/* A box whose first element is `from` of the storage (after the place's first), by increasing strides. */
static int fetch_box(gather *g, dimension *d, size_t rank, uint64_t from, unsigned char *to)
{
    const size_t width = g->place->width;
    uint64_t span, piece, index[TRACE_RANK_MAX] = {0}, at = 0;
    for (size_t i = 1; i < rank; i++) /* few of them: by insertion */
        for (size_t k = i; k && d[k].stride < d[k - 1].stride; k--) {
            const dimension other = d[k];
            d[k] = d[k - 1];
            d[k - 1] = other;
        }
    const size_t covered = cover(d, rank, width, &span, &piece);
    const size_t cut = covered ? covered - 1 : 0; /* the dimension that is covered in pieces */
    const uint64_t whole = covered ? d[cut].size : 1;
    for (;;) {
        for (uint64_t first = 0; first < whole; first += piece) {
            uint64_t bytes = span * width;
            if (covered && whole - first < piece) {
                d[cut].size = whole - first;
                bytes -= (piece - d[cut].size) * d[cut].stride * width;
            } else if (covered) {
                d[cut].size = piece;
            }
            const uint64_t skip = covered ? first * d[cut].stride : 0;
            if (trace_torch_bytes(g->t, g->place->section, g->window, (size_t)bytes,
                                  g->place->first + (from + skip) * width, g->error))
                return -1;
            pick(g, d, covered, to + (at + (covered ? first * d[cut].to : 0)) * width);
            if (!covered)
                break;
        }
        if (covered)
            d[cut].size = whole;
        if (!next_index(d, covered, rank, index, &from, &at))
            return 0;
    }
}

/* Elements first to first + n of the tensor, box after box. */
static int fetch(gather *g, uint64_t first, unsigned char *codes, uint64_t n)
{
    const torch_place *p = g->place;
    const uint64_t *size = p->size, *stride = size + p->rank;
    while (n) {
        dimension d[TRACE_RANK_MAX];
        uint64_t rest = first, from = 0, inner = 1, index = 0;
        size_t k = p->rank, rank = 0;
        /* the outermost dimension that can be advanced by whole inner ones */
        for (;;) {
            k--;
            index = rest % size[k];
            rest /= size[k];
            if (k == 0 || index || inner * size[k] > n)
                break;
            inner *= size[k];
        }
        uint64_t count = n / inner < size[k] - index ? n / inner : size[k] - index;
        from = index * stride[k];
        for (size_t i = k; i-- > 0; rest /= size[i])
            from += rest % size[i] * stride[i];
        uint64_t to = 1;
        for (size_t i = p->rank; i-- > k + 1; to *= size[i])
            d[rank++] = (dimension){size[i], stride[i], to};
        if (count > 1 || rank == 0)
            d[rank++] = (dimension){count, stride[k], to};
        if (fetch_box(g, d, rank, from, codes))
            return -1;
        codes += count * inner * p->width;
        first += count * inner;
        n -= count * inner;
    }
    return 0;
}

static void flip_signs(unsigned char *codes, size_t width, size_t n, int big_endian)
{
    for (unsigned char *p = codes + (big_endian ? 0 : width - 1); n; n--, p += width)
        *p ^= 0x80;
}

/* Elements through what is kept of this tensor, which is gathered anew if need be; -1: that failed, and why is
 * not told. */
static int fetch_ahead(gather *g, uint64_t count, uint64_t first, void *codes, uint64_t n)
{
    torch_state *s = g->t->state;
    const size_t width = g->place->width;
    int failed = 0;
    while (atomic_flag_test_and_set_explicit(&s->gathering, memory_order_acquire))
        sched_yield();
    if (!s->ahead)
        s->ahead = malloc(AHEAD);
    if (s->ahead_of != g->place || first < s->ahead_first || first + n > s->ahead_first + s->ahead_n) {
        s->ahead_of = g->place;
        s->ahead_first = first;
        s->ahead_n = count - first < AHEAD / width ? count - first : AHEAD / width;
        failed = !s->ahead || n > s->ahead_n || fetch(g, first, s->ahead, s->ahead_n);
        if (failed)
            s->ahead_of = NULL;
    }
    if (!failed)
        memcpy(codes, s->ahead + (size_t)(first - s->ahead_first) * width, (size_t)n * width);
    atomic_flag_clear_explicit(&s->gathering, memory_order_release);
    return failed ? -1 : 0;
}

static int fetch_strided(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                         trace_error *error)
{
    const torch_place *p = &((torch_state *)t->state)->places[entry->at];
    trace_error unused;
    const uint64_t bytes = ((torch_state *)t->state)->sections[p->section].bytes;
    gather g = {t, p, &unused, malloc(bytes < WINDOW ? (size_t)bytes + 1 : WINDOW)};
    if (!g.window)
        return trace_no_memory(t, error);
    int failed = n * p->width < WORTH || fetch_ahead(&g, entry->tensor.count, first, codes, n);
    g.error = error;
    if (failed)
        failed = fetch(&g, first, codes, n);
    free(g.window);
    return failed;
}

int trace_torch_codes(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                      trace_error *error)
{
    const torch_place *p = &((torch_state *)t->state)->places[entry->at];
    if (n == 0)
        return 0;
    if (p->beyond)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%.200s' and those before it show more than %" PRIu64 " times "
                          "the bytes of the file: if that is right, raise --max-ratio",
                          entry->tensor.name, ((torch_state *)t->state)->ratio);
    if (trace_torch_ready(t, p->section, error))
        return -1;
    const int flat = p->rank == 0 || (p->rank == 1 && p->size[1] == 1);
    if (flat ? trace_torch_bytes(t, p->section, codes, n * p->width, p->first + first * p->width, error)
             : fetch_strided(t, entry, first, codes, n, error))
        return -1;
    if (p->flip)
        flip_signs(codes, p->width, n, entry->tensor.big_endian);
    return 0;
}
