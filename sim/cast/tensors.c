/* tensors.c -- see tensors.h.
 *
 * The tensors are cut into pieces; a thread reads a piece, casts it and writes it at its place. What must be read
 * or written in order (members of archives, pipes) is left to one thread. A column-major array that is to be row-major
 * is cast as it lies, for the sake of random bits, and reordered in memory. */
#include "cast.h"

#include "../array/need.h"
#include "../operand/stream.h"
#include "../pass/elements.h"
#include "../pass/pass.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 17 }; /* elements: what is read and written stays in the cache of a core */

/* What a thread has of its own. */
typedef struct lane {
    unsigned char *in, *out;
    mpsim_counts counts;
} lane;

typedef struct item {
    size_t index;
    const trace_tensor *x;
    const trace_copy *copy;     /* NULL: it is cast                                */
    uint64_t stream, count;     /* count: of elements, or of units of what is copied */
    size_t width;               /* bytes of one as it is written, a byte where several share one */
    const mpsim_format *packed; /* what is written has codes of it that share bytes; else NULL   */
    const converter *how;       /* NULL: it is copied                              */
    uint64_t before, pieces;    /* bytes and pieces of those before it             */
} item;

typedef struct work {
    caster *c;
    trace *t;
    trace_writer *w;
    item *items;           /* and behind them the end of the last */
    converter *converters; /* one for each format of the tensors  */
    size_t n;
    size_t at;            /* the item at hand                    */
    unsigned char *whole; /* NULL, or where its codes go for now */
    lane *lanes;
    int n_lanes;
    trace_error *error;
} work;

/* ---- what is to be done ---- */

static const converter *find_converter(work *k, const mpsim_format *source)
{
    for (const converter *c = k->converters; c; c = c->next)
        if (c->source == source)
            return c;
    converter *c = need_memory(1, sizeof *c);
    cast_converter_init(c, k->c->to, source, k->c->out);
    c->next = k->converters;
    k->converters = c;
    return c;
}

static void make_lanes(work *k, uint64_t pieces)
{
    k->n_lanes = pieces > (uint64_t)pass_lanes() ? pass_lanes() : pieces ? (int)pieces : 1;
    k->lanes = need_memory((uint64_t)k->n_lanes, sizeof *k->lanes);
    for (int i = 0; i < k->n_lanes; i++) {
        k->lanes[i].in = need_memory(PIECE, sizeof(uint64_t));
        k->lanes[i].out = need_memory(PIECE, sizeof(uint64_t));
    }
}

static void plan_one(work *k, item *at, const content *c)
{
    const trace_tensor *x = c->copied ? &c->copy.tensor : trace_at(k->t, c->index);
    *at = (item){.index = c->index, .x = x, .copy = c->copied ? &c->copy : NULL};
    at->count = c->copied ? c->copy.units : x->count;
    at->width = c->copied ? c->copy.width : mpsim_format_code_bytes(k->c->out);
    if (c->copied)
        return;
    at->packed = k->c->npy || !trace_packed_dtype(k->c->out) ? NULL : k->c->out;
    at->stream = tensor_stream(k->t, x);
    at->how = find_converter(k, x->format);
}

/* Where element or unit n of an item is written, from its begin on: of packed codes n is a multiple of four, or the end. */
static uint64_t bytes_before(const item *at, uint64_t n)
{
    return at->packed ? (n * trace_code_bits(at->packed) + 7) / 8 : n * at->width;
}

static void plan(work *k, const content *all, size_t n)
{
    uint64_t before = 0, pieces = 0;
    k->items = need_memory(n + 1, sizeof *k->items);
    for (size_t i = 0; i < n; i++) {
        plan_one(k, &k->items[i], &all[i]);
        k->items[i].before = before;
        k->items[i].pieces = pieces;
        before += bytes_before(&k->items[i], k->items[i].count);
        pieces += (k->items[i].count + PIECE - 1) / PIECE;
    }
    k->items[n] = (item){.before = before, .pieces = pieces};
    k->n = n;
    make_lanes(k, pieces);
}

static void clear(work *k)
{
    for (int i = 0; k->lanes && i < k->n_lanes; i++) {
        free(k->lanes[i].in);
        free(k->lanes[i].out);
    }
    for (converter *c = k->converters, *next; c; c = next) {
        next = c->next;
        cast_converter_clear(c);
        free(c);
    }
    free(k->lanes);
    free(k->items);
}

/* ---- pieces ---- */

static int put_bytes(const work *k, uint64_t at, const void *bytes, size_t n, trace_error *error)
{
    return trace_writer_has_places(k->w) ? trace_writer_data_at(k->w, at, bytes, n, error)
                                         : trace_writer_data(k->w, bytes, n, error);
}

/* n elements or units of an item from `first` on, packed where they are codes that share bytes. */
static int put(const work *k, const item *at, uint64_t first, unsigned char *codes, size_t n, trace_error *error)
{
    const size_t bytes = at->packed ? trace_pack(at->packed, codes, codes, n) : n * at->width;
    return put_bytes(k, at->before + bytes_before(at, first), codes, bytes, error);
}

/* What lane l has read, from element `first` of an item, is cast and written, or written as it is. */
static int convert(const work *k, const item *at, uint64_t first, lane *l, size_t n, trace_error *error)
{
    const mpsim_rng rng = {k->c->seed, at->stream, first};
    unsigned char *to = k->whole ? k->whole + first * at->width : at->how ? l->out : l->in;
    if (at->how)
        cast_converter_run(at->how, &rng, to, l->in, n, k->c->counted ? &l->counts : NULL);
    else if (k->whole)
        memcpy(to, l->in, n * at->width);
    return k->whole ? 0 : put(k, at, first, to, n, error);
}

/* The item that has a piece. */
static const item *item_of(const work *k, uint64_t piece)
{
    size_t low = 0, high = k->n;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (k->items[middle].pieces <= piece)
            low = middle;
        else
            high = middle;
    }
    return &k->items[low];
}

/* Piece i behind those before the item at hand. */
static int run_piece(void *context, uint64_t i, int lane_number, trace_error *error)
{
    const work *k = context;
    const uint64_t piece = k->items[k->at].pieces + i;
    const item *at = item_of(k, piece);
    const uint64_t first = (piece - at->pieces) * PIECE, left = at->count - first;
    const size_t n = left < PIECE ? (size_t)left : PIECE;
    lane *l = &k->lanes[lane_number];
    if (at->copy ? trace_copy_units(k->t, at->copy, first, l->in, n, error)
                 : trace_codes(k->t, at->index, first, l->in, n, error))
        return -1;
    return convert(k, at, first, l, n, error);
}

/* Items from the one at hand to before `end`: by one thread where they are written in order. */
static int run_pieces(work *k, size_t end)
{
    return pass_pieces(k->items[end].pieces - k->items[k->at].pieces,
                       k->whole || trace_writer_has_places(k->w) ? k->n_lanes : 1, run_piece, k, NULL, k->error);
}

/* The item at hand, which is copied, as it comes. */
static int copy_in_order(work *k)
{
    const item *at = &k->items[k->at];
    lane *l = &k->lanes[0];
    for (uint64_t first = 0; first < at->count; first += PIECE) {
        const uint64_t left = at->count - first;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        if (trace_copy_units(k->t, at->copy, first, l->in, n, k->error) || convert(k, at, first, l, n, k->error))
            return -1;
    }
    return 0;
}

/* The item at hand as it comes. */
static int run_in_order(work *k)
{
    const item *at = &k->items[k->at];
    lane *l = &k->lanes[0];
    size_t n = 1;
    if (at->copy)
        return copy_in_order(k);
    if (trace_select(k->t, at->index, k->error))
        return -1;
    for (uint64_t first = 0;; first += n) {
        if (trace_read_codes(k->t, l->in, PIECE, &n, k->error))
            return -1;
        if (n == 0)
            return 0;
        if (convert(k, at, first, l, n, k->error))
            return -1;
    }
}

/* ---- tensors ---- */

static int is_reordered(const work *k, size_t i)
{
    return !k->c->npy && i < k->n && pass_elements_by_columns(k->items[i].x);
}

static int run_reordered(work *k)
{
    const item *at = &k->items[k->at];
    const size_t bytes = at->width, n = (size_t)at->count;
    unsigned char *whole = need_memory(at->count, bytes), *rows = need_memory(at->count, bytes);
    k->whole = whole;
    int result = trace_is_flat(k->t) ? run_pieces(k, k->at + 1) : run_in_order(k);
    k->whole = NULL;
    if (!result) {
        pass_elements_in_rows(rows, whole, at->x, bytes);
        result = put(k, at, 0, rows, n, k->error);
    }
    free(whole);
    free(rows);
    return result;
}

/* As many items at once as can be. */
static int run_items(work *k)
{
    const int flat = trace_is_flat(k->t);
    int result = 0;
    for (size_t end; k->at < k->n && !result; k->at = end) {
        end = k->at + 1;
        while (flat && end < k->n && !is_reordered(k, k->at) && !is_reordered(k, end))
            end++;
        result = is_reordered(k, k->at) ? run_reordered(k) : flat ? run_pieces(k, end) : run_in_order(k);
    }
    return result;
}

int cast_caster_write(caster *c, trace *t, const content *all, size_t n, trace_writer *w, trace_error *error)
{
    work k = {.c = c, .t = t, .w = w, .error = error};
    plan(&k, all, n);
    const int result = run_items(&k);
    for (int i = 0; i < k.n_lanes && !result; i++)
        cast_counts_add(&c->counts, &k.lanes[i].counts);
    clear(&k);
    return result;
}
